"""What the real `ncu -i` prints (2022.3 and 2024.1, see the docstrings), in made-up logs of the same shape."""

import pytest
from test_ncu_logs import FFMA, NEW, TIME, log_of, row
from test_ncu_page import LINE, total

from eprof.logs import combine
from eprof.logs.reading import read_tuned
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
    long_name = "smsp__sass_thread_inst_executed_op_ffma_pred_on"
    rows = [(f"{long_name}.", "inst", "7"), ("sum", "", ""), ("dram__bytes_read.sum", "byte", "9"), ("done", "", "")]
    log = log_of(tmp_path, "[77] prog@127.0.0.1", f"  {LINE}", *table("  ", *rows))
    assert total(log, FFMA) == {KERNEL: (1, 7)} and total(log, "dram__bytes_read.sum") == {KERNEL: (1, 9)}
    assert log.skipped_lines == 1  # what the program says below a short name


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
