"""Report files of Nsight Compute: two real ones of a V100 against ncu's own derived metrics, and what is no report."""

import csv
import gzip
import io
import sys

import numpy as np
import pytest
from conftest import SHARED
from frames_support import combine
from msgspec.structs import replace

import eprof
from eprof import logs
from eprof.base.arrays import Columns
from eprof.base.errors import LogError
from eprof.base.vocabulary import INSTRUCTIONS, Mark
from eprof.counts import counts, definition_files
from eprof.logs import read
from eprof.profile import planned_counters

pytest.importorskip("ncu_report", reason="needs pip install ncu-report")
REPORTS = [SHARED / "ncu" / f"v100-miniweather-{name}.ncu-rep" for name in ("baseline", "div-to-mult")]
OPCODES = "sass__thread_inst_executed_true_per_opcode"
TIME = "gpu__time_duration.sum"
LARGE = ("compute_tendencies_x_279_gpu", "compute_tendencies_x_309_gpu", "semi_discrete_step_232_gpu")
pytestmark = pytest.mark.skipif(not REPORTS[0].exists(), reason="the real reports are not part of this project")


@pytest.fixture(scope="module", params=REPORTS, ids=lambda path: path.stem.removeprefix("v100-miniweather-"))
def report(request):
    return Report(request.param)


class Report:
    """A real report: everything in it, by kernel, and what eprof counts of it."""

    def __init__(self, path):
        self.path, self.log = path, read(path)
        kernels = self.log.tables[0].rows.frame()["kernel"]
        self.raw = self.log.tables[0].counters.frame().set_index(kernels.astype(str))
        self.launches = logs.combine([read(path, keep=definition_files.names_in_use("ncu"))])
        counted = counts.count(self.launches, definition_files.find("ncu", "7.0"), "accessed")
        self.table = counted.table.set_index(counted.kernels["kernel"])
        self.marks = counted.marks.set_index(counted.kernels["kernel"])


@pytest.fixture(scope="module")
def baseline():
    return Report(REPORTS[0])


def refused(path, data):
    path.write_bytes(data)
    with pytest.raises(LogError) as caught:
        read(path)
    sentence = str(caught.value)
    assert sentence.startswith(f"{path}: ") and "\n" not in sentence and len(sentence) < 600
    return sentence.removeprefix(f"{path}: ")


# ------------------------------------------------------------------------------------------------------------ reading


def test_a_report_holds_launches_with_their_metrics(baseline):
    log = baseline.log
    (table,) = log.tables
    assert log.format == "ncu-report" and log.command.endswith("/openacc") and log.runs == 1
    assert list(table.rows.frame()["kernel"])[2:] == list(LARGE)
    assert set(table.rows.frame()["device"]) == {"Tesla V100-SXM2-32GB (0)"}
    assert table.rows.frame()["time_s"].to_list() == pytest.approx(
        [11360e-9, 13120e-9, 6190944e-9, 3625056e-9, 5618848e-9]
    )
    assert table.counters.frame()["dram__bytes_read.sum"].iloc[2] == 1_209_119_616
    assert table.counters.frame()["smsp__inst_executed.sum"].iloc[0] == 125_952
    assert table.counters.frame()[f"{OPCODES}[DFMA]"].to_list()[1:] == [0, 8_024_982_557, 1_457_747_040, 150_601_728]
    assert table.units["dram__bytes.sum.per_second"] == "byte_per_s"
    assert table.units["smsp__thread_inst_executed_per_inst_executed.ratio"] == "other"
    assert table.units["lts__throughput.avg.pct_of_peak_sustained_elapsed"] == "percent"
    assert np.isnan(table.counters.frame()["memory_access_type"]).all(), "a metric without a value is not known"
    assert combine([log]).kernels["time_marks"].to_list() == [Mark.ESTIMATED] * 5


def test_only_wanted_counters_are_kept(baseline):
    log = read(baseline.path, keep={f"{OPCODES}[HMMA]", f"{OPCODES}[LDG]", "dram__bytes_read.sum"})
    assert set(log.tables[0].counters.frame()) == {f"{OPCODES}[HMMA]", f"{OPCODES}[LDG]", "dram__bytes_read.sum"}
    assert log.tables[0].counters.frame()[f"{OPCODES}[HMMA]"].to_list() == [0] * 5, "an opcode that no launch has is 0"
    assert log.tables[0].rows.frame()["time_s"].notna().all()
    none = read(baseline.path, keep={"another"})
    assert any("none of the log's" in note and "percentages or rates" in note for note in none.notes)


def test_a_packed_report_is_the_same(baseline, tmp_path):
    packed = tmp_path / "report.ncu-rep.gz"
    packed.write_bytes(gzip.compress(baseline.path.read_bytes(), 1))
    again = read(packed)
    assert again.tables[0].counters.frame().equals(baseline.log.tables[0].counters.frame())
    assert again.size_bytes == packed.stat().st_size


# -------------------------------------------------------------------------------------------------------------- truth


def test_operations_are_those_of_ncus_roofline(report):
    """Its operations a second are (add + mul + 2 fma a cycle) x cycles a second."""
    found = 0
    for letter, word in (("d", "fp64"), ("f", "fp32")):
        rate = sum(
            weight * report.raw[f"smsp__sass_thread_inst_executed_op_{letter}{kind}_pred_on.sum.per_cycle_elapsed"]
            for kind, weight in (("add", 1), ("mul", 1), ("fma", 2))
        )
        theirs = rate * report.raw["smsp__cycles_elapsed.avg.per_second"] * report.raw[TIME] / 1e9
        ours = report.table[f"{word}_add"] + report.table[f"{word}_mul"] + 2 * report.table[f"{word}_fma"]
        for kernel in report.table.index:
            assert ours[kernel] == pytest.approx(theirs[kernel], rel=0.01), (word, kernel)
            found += theirs[kernel] > 0
        assert (report.marks[[f"{word}_{kind}" for kind in ("add", "mul", "fma")]] == 0).all(axis=None)
    assert found == 5, "FP64 in three kernels, FP32 in two"


def test_a_rate_a_cycle_times_the_mean_cycles_is_the_opcode_count(report):
    """What the definition makes of a log without opcodes, to the last digit; with the longest clock, within 0.15 %."""
    mean = report.raw["smsp__cycles_elapsed.sum"] / (80 * 4)
    exact = 0
    for opcode in ("DADD", "DFMA", "DMUL", "FADD", "FFMA", "FMUL"):
        name = f"smsp__sass_thread_inst_executed_op_{opcode.lower()}_pred_on.sum.per_cycle_elapsed"
        truth = report.raw.get(f"{OPCODES}[{opcode}]", 0 * mean)
        assert np.allclose(report.raw[name] * mean, truth, rtol=1e-12, atol=1e-6)
        assert np.allclose(report.raw[name] * report.raw["gpc__cycles_elapsed.max"], truth, rtol=1.5e-3)
        exact += (truth > 0).sum()
    assert exact == 9
    blind = logs.combine(
        [read(report.path, keep={n for n in definition_files.names_in_use("ncu") if "per_opcode" not in n})]
    )
    counted = counts.count(blind, definition_files.find("ncu", "7.0"))
    assert np.allclose(counted.table["fp64_fma"], report.table["fp64_fma"], rtol=1e-12)
    assert (counted.marks["fp64_fma"] == int(Mark.ESTIMATED)).all()


def test_bytes_are_those_of_ncus_throughputs(report):
    for words, rate in (
        (("dram_read",), "dram__bytes_read.sum.per_second"),
        (("dram_write",), "dram__bytes_write.sum.per_second"),
        (("dram_read", "dram_write"), "dram__bytes.sum.per_second"),
        (("l2_read",), "l1tex__m_xbar2l1tex_read_bytes.sum.per_second"),
        (("l2_write",), "l1tex__m_l1tex2xbar_write_bytes.sum.per_second"),
    ):
        theirs = report.raw[rate] * report.raw[TIME] / 1e9
        ours = report.table[list(words)].sum(axis=1, min_count=len(words))
        for kernel in LARGE:
            assert ours[kernel] == pytest.approx(theirs[kernel], rel=0.01), (rate, kernel)
    assert (report.table["dram_read"] == report.raw["dram__bytes_read.sum"]).all()


def test_the_classes_are_all_instructions(report):
    words = [word for word in INSTRUCTIONS if word != "warp_issue"]
    assert (report.table[words].sum(axis=1) == report.raw[OPCODES]).all()
    threads = report.raw["smsp__thread_inst_executed_pred_on_per_inst_executed.ratio"]
    assert np.allclose(report.table[words].sum(axis=1), threads * report.raw["smsp__inst_executed.sum"], rtol=1e-5)
    assert (report.table["load_store"] == report.raw[f"{OPCODES}[LDG]"] + report.raw[f"{OPCODES}[STG]"]).all()
    assert (report.table["special"] == report.raw[f"{OPCODES}[MUFU]"]).all()
    assert (report.marks["special"] == 0).all() and (report.marks["integer"] == int(Mark.ASSUMED)).all()
    assert counts.check(report.launches, definition_files.find("ncu", "7.0")) == []


def test_a_division_less_is_seen(baseline):
    """The two reports are of a program before and after divisions became multiplications, in one kernel."""
    after, kernel = Report(REPORTS[1]), LARGE[0]
    assert after.table.loc[kernel, "fp64_fma"] < 0.5 * baseline.table.loc[kernel, "fp64_fma"]
    assert after.table.loc[kernel, "special"] < 0.3 * baseline.table.loc[kernel, "special"]
    for same in LARGE[1:]:
        for word in ("fp64_fma", "fp64_add", "integer", "special", "load_store"):
            assert after.table.loc[same, word] == baseline.table.loc[same, word]


def test_tampered_opcodes_are_noticed(baseline):
    name = f"{OPCODES}[DFMA]"
    counters_ = baseline.launches.counters
    tampered = counters_.values * np.where(np.array(counters_.names) == name, 1.5, 1.0)
    broken = replace(baseline.launches, counters=Columns(counters_.names, tampered))
    assert any("elapsed cycles" in one for one in counts.check(broken, definition_files.find("ncu", "7.0")))


# ----------------------------------------------------------------------------------------- a full set and a minimal one

CLASSES = {
    "dfma": "DFMA", "dadd": "DADD", "dmul": "DMUL", "fp64": "DFMA DADD DMUL DSETP", "ffma": "FFMA", "fadd": "FADD",
    "fmul": "FMUL", "fp32": "FFMA FSETP FSEL MUFU", "hfma": "", "hadd": "", "hmul": "", "fp16": "",
    "integer": "IMAD IADD3 ISETP LEA", "bit": "LOP3 SHF", "conversion": "I2F F2I", "memory": "LDG STG",
    "control": "BSYNC BSSY BMOV BRA RET CALL EXIT", "inter_thread_communication": "", "misc": "MOV S2R SEL CS2R",
}  # fmt: skip

HEADER = [
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size",
    "Device", "CC", "Section Name", "Metric Name", "Metric Unit", "Metric Value",
]  # fmt: skip


def minimal_of(report):
    """The metrics that eprof asks ncu for, DERIVED from a report of the full set: taken over where it has them.

    Instruction classes are added up from its opcodes; atomics, host memory and shared memory are 0, as it says of these
    kernels by other names.
    """
    assert (report.raw["lts__t_sectors_srcunit_tex_op_red.sum"] == 0).all()
    assert (report.raw["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"] == 0).all()
    zeros, found = 0 * report.raw[TIME], {TIME: report.raw[TIME]}
    for name in planned_counters.plan(definition_files.find("ncu", "7.0"), None).counters:
        kind = name.partition("_op_")[2].removesuffix("_pred_on.sum")
        if name in report.raw:
            found[name] = report.raw[name]
        elif name.startswith("smsp__sass_thread_inst_executed_op_"):
            found[name] = zeros + sum(report.raw.get(f"{OPCODES}[{one}]", 0) for one in CLASSES[kind].split())
        elif any(part in name for part in ("mem_shared", "_op_atom", "_op_red", "sysmem", "pipe_tensor")):
            found[name] = zeros
    return found


def as_long_form(values, path):
    """A log in the long form of ncu, a row a launch and metric."""
    with path.open("w", newline="") as file:
        out = csv.writer(file, quoting=csv.QUOTE_ALL)
        out.writerow(HEADER)
        for place, kernel in enumerate(next(iter(values.values())).index):
            for name, column in values.items():
                unit = "ns" if name == TIME else "byte" if "bytes" in name else "inst"
                cell = f"{column.iloc[place]:,.2f}" if name == TIME else f"{column.iloc[place]:,.0f}"
                if name.endswith("[MUFU]"):
                    name, cell = OPCODES, f"{cell} (MUFU: {cell})"
                out.writerow(
                    [place, 7, "openacc", "host", kernel, 1, 7, "", "", 0, "7.0", "Command line", name, unit, cell]
                )
    return path


def test_the_full_set_and_the_minimal_set_give_the_same_energies(report, tmp_path):
    minimal = as_long_form(minimal_of(report), tmp_path / "derived.csv")
    full, small = (eprof.load(path).energy("jetson-tk1", "852/924") for path in (report.path, minimal))
    one, other = full.split.table, small.split.table
    assert list(full.counts.kernels["kernel"]) == list(small.counts.kernels["kernel"])
    priced = [word for word in one if one[word].notna().any()]
    other = other.reindex(columns=priced)  # what only one of the two tells is none
    assert {"fp64_fma", "integer", "dram_read", "l1_read", "l2_read", "constant"} <= set(priced)
    for word in priced:
        assert np.allclose(one[word].fillna(0), other[word].fillna(0), rtol=1e-9, atol=1e-15), word


def test_the_same_launches_as_a_raw_page(baseline, tmp_path):
    """What `ncu --import --page raw --print-units base --print-metric-instances details` makes of it, DERIVED, unrounded."""
    names = [name for name in baseline.raw if not name.startswith("sass__") and baseline.raw[name].notna().all()]
    units = {"count": "inst", "percent": "%", "byte_per_s": "byte/second", "other": "inst/cycle"}
    kinds = baseline.log.tables[0].units
    path = tmp_path / "raw.csv"
    with path.open("w", newline="") as file:
        out = csv.writer(file, quoting=csv.QUOTE_ALL)
        out.writerow([*HEADER[:11], "device__attribute_display_name", OPCODES, *names])
        out.writerow([""] * 13 + ["ns" if name == TIME else units[kinds[name]] for name in names])
        for place, kernel in enumerate(baseline.raw.index):
            own = {
                name[len(OPCODES) + 1 : -1]: n for name, n in baseline.raw.iloc[place].items() if f"{OPCODES}[" in name
            }
            told = "; ".join(f"{opcode}: {number:.0f}" for opcode, number in own.items() if number)
            about = [place, 7, "openacc", "host", kernel, 1, 7, "", "", 0, "7.0", "Tesla V100-SXM2-32GB"]
            cells = [repr(float(baseline.raw[name].iloc[place])) for name in names]
            out.writerow([*about, f"{sum(own.values()):.0f} ({told})", *cells])
    again = logs.combine([read(path, keep=definition_files.names_in_use("ncu"))])
    assert list(again.rows.device) == ["Tesla V100-SXM2-32GB (0)"] * 5
    counted = counts.count(again, definition_files.find("ncu", "7.0"), "accessed")
    for word in baseline.table:
        assert np.allclose(counted.table[word], baseline.table[word], rtol=1e-12, equal_nan=True), word
        assert list(counted.marks[word]) == list(baseline.marks[word]), word


# ---------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("share", [0.00001, 0.001, 0.1, 0.5, 0.93, 0.999999])
def test_a_report_that_is_cut_off_is_refused(tmp_path, share):
    data = REPORTS[0].read_bytes()
    sentence = refused(tmp_path / "cut.ncu-rep", data[: max(4, int(share * len(data)))])
    assert "the report file is cut off at byte" in sentence and "copy the file again" in sentence


def test_launches_that_the_package_does_not_see_are_told(tmp_path):
    """NVIDIA's reader passes over them without a word, as it does with a report newer than itself."""
    data = bytearray(REPORTS[0].read_bytes())
    place = data.index(b"set_halo_values_x_396_gpu", data.index(b"launch__grid_size"))
    data[place - 14 : place] = b"\xff" * 14
    sentence = refused(tmp_path / "newer.ncu-rep", bytes(data))
    assert "of the 5 launches in this report of ncu 2022.2.0" in sentence and "newer than the package" in sentence
    assert "pip install --upgrade ncu-report" in sentence and "ncu --import" in sentence


def test_damaged_reports_never_end_in_a_traceback(tmp_path):
    data = REPORTS[0].read_bytes()
    random = np.random.default_rng(5)
    for number in range(12):
        bad = np.frombuffer(data, dtype=np.uint8).copy()
        bad[random.integers(4, len(bad) if number % 2 else 4000, 40)] = random.integers(0, 256, 40)
        path = tmp_path / f"{number}.ncu-rep"
        path.write_bytes(bad.tobytes())
        try:
            assert len(read(path).tables[0].rows.frame()) == 5
        except LogError as err:
            assert "\n" not in str(err) and str(path) in str(err)


def test_without_the_package_a_sentence_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ncu_report", None)  # what an import finds where it is not installed
    with pytest.raises(LogError, match=r"pip install ncu-report.*`ncu --import FILE.ncu-rep --csv"):
        read(REPORTS[0])


def test_a_report_without_launches(tmp_path):
    data = REPORTS[0].read_bytes()
    sentence = refused(tmp_path / "empty.ncu-rep", data[: 10 + 4 + 204])
    assert sentence.startswith("the report holds no profiled kernel; ")


def test_a_csv_that_is_called_a_report_is_read_as_what_it_is(tmp_path):
    from eprof.profilers.ncu import report as ncu_report_blocks

    path = tmp_path / "log.ncu-rep"
    path.write_text(
        '"ID","Process ID","Process Name","Host Name","Kernel Name","a.sum"\n"","","","","",""\n"0","7","p","h","k","5"\n'
    )
    assert read(path).format == "ncu-raw"
    with pytest.raises(LogError, match="this is no report file of Nsight Compute"):
        ncu_report_blocks.report_file_of("log.csv", io.BytesIO(path.read_bytes()))


def test_a_report_beside_times(tmp_path, baseline):
    times = tmp_path / "times.csv"
    times.write_text("Time (%),Total Time (ns),Instances,Avg (ns),Name\n" + f"100,2000,1,2000,{LARGE[0]}\n")
    joined = combine([baseline.log, read(times)])
    assert len(joined.kernels) == 5
    mine = joined.kernels.set_index("kernel").loc[LARGE[0]]
    assert mine["time_s"] == pytest.approx(2e-6) and mine["time_marks"] == 0
