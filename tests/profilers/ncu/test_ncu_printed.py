"""What the real `ncu -i` prints (2022.3 and 2024.1, see the docstrings), in made-up logs of the same shape."""

import pytest
from frames_support import combine
from logs_support import read_tuned
from test_ncu_logs import FFMA, NEW, TIME, log_of, refused, row, wide
from test_ncu_page import LINE, total

from eprof.logs.stream import Tuning

OPCODES = "sass__thread_inst_executed_true_per_opcode"
ATTRIBUTE = "device__attribute_display_name"
KERNEL = "axpy(int, float *)"


def table(indent, *rows, widths=(48, 11, 20), ruler_above=True, names=("Metric Name", "Metric Unit", "Metric Value")):
    """A table of the page whose cells are given line by line, as ncu broke them."""
    ruler = indent + " ".join("-" * width for width in widths)
    cells = [names, *rows]
    lines = [
        f"{indent}{one[0]:{widths[0]}} {one[1]:>{widths[1]}} {' '.join(f'{cell:>{w}}' for cell, w in zip(one[2:], widths[2:], strict=True))}"
        for one in cells
    ]
    return [*([ruler] if ruler_above else []), lines[0], ruler, *lines[1:], *([ruler] if ruler_above else []), ""]


@pytest.mark.parametrize("chunk", [None, 90])
def test_cells_that_go_on_in_the_lines_below(tmp_path, chunk):
    """`--page raw --print-metric-instances details`: a column of 20 characters, for values of any length."""
    rows = [
        ("launch__func_cache_config", "", "cudaFuncCachePreferN"),
        ("", "", "one"),
        (OPCODES, "", "12 (FFMA: 5; LDG.E:"),
        ("", "", "3; IMAD: 4)"),
        (FFMA, "inst", "34567890123456.00000"),
        ("", "", "0"),
        ("inst_executed", "inst", "1378276906"),
        ("", "", "(1176704; 1176704)"),
        (TIME, "ns", "500"),
    ]
    path = tmp_path / "log.txt"
    path.write_text("\n".join(["[77] prog@127.0.0.1", f"  {LINE}", *table("  ", *rows)]) + "\n")
    log = read_tuned(path, Tuning() if chunk is None else Tuning(chunk_bytes=chunk))
    assert total(log, f"{OPCODES}[IMAD]") == {KERNEL: (1, 4)} and total(log, f"{OPCODES}[FFMA]") == {KERNEL: (1, 5)}
    assert total(log, FFMA) == {KERNEL: (1, 34567890123456)}
    assert total(log, "inst_executed") == {KERNEL: (1, 1378276906)}
    assert log.skipped_lines == 0


def test_a_name_that_goes_on_below_and_one_that_does_not(tmp_path):
    """Of label and name, broken in the midst of a word; a metric whose value is empty (`memory_access_type`) is another."""
    rows = [(f"Fused ({FFMA[:-6]}", "inst", "7"), (f"{FFMA[-6:]})", "", ""), ("memory_access_type", "", "")]
    rows += [("smsp__inst_executed.sum", "inst", "5"), ("memory_access_size_type", "", "")]
    rows += [("dram__bytes_read.sum", "byte", "9"), ("done", "", "")]
    log = log_of(tmp_path, "[77] prog@127.0.0.1", f"  {LINE}", *table("  ", *rows, widths=(60, 11, 20)))
    assert total(log, FFMA) == {KERNEL: (1, 7)} and total(log, "dram__bytes_read.sum") == {KERNEL: (1, 9)}
    assert total(log, "smsp__inst_executed.sum") == {KERNEL: (1, 5)}
    assert log.skipped_lines == 1  # what the program says


@pytest.mark.parametrize("page_of", [True, False])
def test_labels_with_the_names_of_their_metrics(tmp_path, page_of):
    """`--print-metric-name label-name`; two labels of one metric are one."""
    cells = [(f"Duration ({TIME})", "us", "2.50"), (f"SM: Fused (adds) ({FFMA})", "inst", "8")]
    cells += [(f"Fused ({FFMA})", "inst", "8"), ("Threads (of all)", "thread", "64")]
    page = ["[77] prog@127.0.0.1", f"  {LINE}", *table("    ", *cells, widths=(80, 11, 20))]
    log = log_of(tmp_path, *(page if page_of else [NEW, *(row(0, *one) for one in cells)]))
    assert total(log, FFMA) == {KERNEL: (1, 8)}
    assert combine([log]).kernels["time_s"].tolist() == pytest.approx([2.5e-6])
    assert list(log.tables[0].units)[:2] == [TIME, FFMA] and "Threads (of all)" in log.tables[0].units


@pytest.mark.parametrize("per", ["kernel", "gpu"])
def test_summaries_of_the_page_up_to_2022(tmp_path, per):
    """The kernel's line comes again with each section, and has neither tuples nor `Invocations 3`."""
    end = ", Device 0, 3 invocations " if per == "kernel" else ", 3 invocations "
    names = ("Metric Name", "Metric Unit", "Minimum", "Maximum", "Average")
    device = [] if per == "kernel" else ["  Device 0", *table("  ", (ATTRIBUTE, "", "NVIDIA Made-up"), (TIME, "", "9"))]

    def section(grid, *rows):
        line = f"  axpy(int, float *), Block Size 64, Grid Size {grid}{end}"
        return [
            line,
            "    Section: Of one",
            *table("    ", *rows, widths=(60, 11, 8, 8, 8), ruler_above=False, names=names),
        ]

    log = log_of(
        tmp_path,
        "[77] prog@127.0.0.1",
        *device,
        *section(2, (FFMA, "inst", "9.00", "11.00", "10.50")),
        *section(2, (TIME, "ns", "100.00", "300.00", "200.00"), (FFMA, "inst", "9.00", "11.00", "10.50")),
        *section(4, (FFMA, "inst", "1.00", "1.00", "1.00"), (TIME, "ns", "1.00", "1.00", "1.00")),
    )
    assert total(log, FFMA) == {KERNEL: (6, 34.5)}
    joined = combine([log])
    assert joined.kernels["time_s"].tolist() == pytest.approx([603e-9])
    assert joined.kernels["device"].tolist() == ["ncu device 0" if per == "kernel" else "NVIDIA Made-up (0)"]
    orphans = [note for note in log.notes if "names their kernel" in note]
    assert len(orphans) == (per == "gpu")  # a metric in front of all kernels is of none; attributes are of the device


def broken(width, head, cells):
    """Lines as ncu breaks them: after so many cells, whatever rows these are of."""
    lines = [cells[start : start + width] for start in range(0, len(cells), width)]
    return [head, *(",".join(f'"{cell}"' for cell in line) for line in lines)]


@pytest.mark.parametrize("chunk", [None, 150])
@pytest.mark.parametrize("attributes", [1, 5, 150])
def test_a_summary_per_gpu_whose_rows_are_broken(tmp_path, attributes, chunk):
    """`--csv --page raw --print-summary per-gpu`: attributes of 10 cells each, between rows of 14."""
    columns = ["Process ID", "Process Name", "Host Name", "Device", "CC", "Kernel Name", "Block Size", "Grid Size"]
    columns += ["Invocations", "Metric Name", "Metric Unit", "Minimum", "Maximum", "Average"]
    cells = ["0", "", "", "", "", "device__attribute_x", "", "", "", "1"] * attributes
    for name, average in ((FFMA, "10.5"), (TIME, "200"), ("dram__bytes_read.sum", "0")):
        cells += ["77", "prog", "host", "0", "8.0", KERNEL, "(64, 1, 1)", "(2, 1, 1)", "3", name]
        cells += ["byte" if "bytes" in name else "ns" if name == TIME else "inst", "1", "9", average]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(broken(14, ",".join(f'"{one}"' for one in columns), cells)) + "\n")
    log = read_tuned(path, Tuning() if chunk is None else Tuning(chunk_bytes=chunk))
    assert total(log, FFMA) == {KERNEL: (3, 31.5)} and total(log, "dram__bytes_read.sum") == {KERNEL: (3, 0)}
    assert combine([log]).kernels["time_s"].tolist() == pytest.approx([600e-9])
    assert log.skipped_lines == 0 and any("put together again" in note for note in log.notes)


def test_damaged_rows_of_a_summary_are_no_broken_ones(tmp_path):
    columns = "Process ID,Process Name,Device,CC,Kernel Name,Block Size,Grid Size,Invocations,Metric Name,Metric Unit"
    head = ",".join(f'"{one}"' for one in [*columns.split(","), "Minimum", "Maximum", "Average"])
    good = f'"7","prog","0","8.0","{KERNEL}","(64, 1, 1)","(2, 1, 1)","3","{FFMA}","inst","1","9","2"'
    lost = f'"7","prog","0","8.0","{KERNEL}","(64, 1, 1)","(2, 1, 1)","3","{TIME}","ns","1","9"'
    log = log_of(tmp_path, head, lost, good, lost)
    assert total(log, FFMA) == {KERNEL: (3, 6)}
    assert log.skipped_lines == 2 and not any("put together" in note for note in log.notes)


@pytest.mark.parametrize(
    ("says", "lines"),
    [
        (
            "page of source code (line 2)",
            ['"Kernel Name","axpy",', '"Address","Source","Samples"', '"0x10","MOV R1","3"'],
        ),
        ("page of source code (line 4)", ["--- ---", "Kernel Name axpy", "--- ---", "Address   Source      # Samples"]),
        ("page of source code (line 2)", ['"File Name","/a.cu"', '"Line No","Source"', '"1","int main()"']),
        ("page of the session (line 2)", ["Launch Settings", '"Launch Attribute","Value"', '"Command","ncu"']),
        (
            "page of the session (line 3)",
            ["Launch Settings", "---- ----", "Launch Attribute      Value   ", "---- ----"],
        ),
        ("summary per NVTX range", ['"Domain","Range:PL_Type","Kernel Name","Device","Metric Name","Average"']),
        (
            "ncu failed (line 1 says: unrecognised option '--bogus')",
            ["unrecognised option '--bogus'", "", "Use --help"],
        ),
        ("names 1 launch but no metric", ["[7] p@h", f"  {LINE}", *table("  ")]),
        (
            "no table of ncu was found",
            ["  Note: The shown averages are calculated as the arithmetic mean of", "  all."],
        ),
    ],
)
def test_pages_without_counters_say_what_they_are(tmp_path, says, lines):
    sentence = refused(tmp_path, *lines)
    assert says in sentence and "nvprof" not in sentence


def test_a_page_of_the_session_in_front_of_a_table_changes_nothing(tmp_path):
    log = log_of(tmp_path, "Launch Settings", '"Launch Attribute","Value"', "", NEW, row(0, FFMA, "inst", "8"))
    assert total(log, FFMA) == {KERNEL: (1, 8)} and not any("session" in note for note in log.notes)


@pytest.mark.parametrize("long", [True, False])
def test_counts_in_scaled_units_are_told_to_be_rounded(tmp_path, long):
    """`--csv` scales units by default: 128 bytes of one launch are `0.000000` Gbyte beside those of another."""
    lines = [NEW, row(0, FFMA, "inst", "8"), row(0, "dram__bytes.sum", "Gbyte", "0.000000"), row(0, TIME, "us", "2.50")]
    raw = wide(("0", "7", KERNEL, "8", "0.000000", "2.50"), units=("inst", "Gbyte", "usecond"))
    log = log_of(tmp_path, *(lines if long else raw.splitlines()))
    (note,) = [note for note in log.notes if "scaled units" in note]
    assert "dram__bytes.sum;" in note and FFMA not in note and TIME not in note
    base = log_of(tmp_path, *(one.replace("Gbyte", "byte").replace("usecond", "ns") for one in raw.splitlines()))
    assert not any("scaled units" in note for note in base.notes)


@pytest.mark.parametrize("long", [True, False])
def test_scaled_numbers_have_six_decimals_and_a_point_in_every_locale(tmp_path, long):
    """In German 2024.1 writes `8.192` instructions, `0,27` per cent and `1.530000` Gbyte in one file."""
    cells = ((FFMA, "inst", "8.192"), ("dram__bytes.sum", "Gbyte", "1.530000"), ("sm__a.avg.pct", "%", "0,27"))
    names, units, values = zip(*cells, strict=True)
    raw = wide(("0", "7", KERNEL, *values), names=names, units=units).splitlines()
    log = log_of(tmp_path, *([NEW, *(row(0, *one) for one in cells)] if long else raw))
    assert total(log, FFMA) == {KERNEL: (1, 8192)} and total(log, "dram__bytes.sum") == {KERNEL: (1, 1.53e9)}


def test_six_decimals_do_not_tell_how_other_numbers_are_written(tmp_path):
    sentence = refused(tmp_path, NEW, row(0, "a", "Mbyte", "1.530000"), row(0, "b", "Mbyte", "1.530"))
    assert "`1.530` may have decimals or groups" in sentence


def test_what_is_left_out_of_old_ncu_is_said(tmp_path):
    says = "Invalid option --nvtx specified for --mode import"
    assert f"ncu failed (line 1 says: {says})" in refused(tmp_path, says, "", "Use --help for further details.")
