"""Time by component of a profile: from logs to the document, what-if, and what is missing."""

import json

import pytest
from logs_support import TRACE, TRACE_UNITS, profiled, real, write

import eprof
from eprof.base import resources
from eprof.base.errors import UsageError
from eprof.cli import main
from eprof.commands.report import terminal
from eprof.commands.report.page import html
from eprof.energy.time_by_component import COMPONENTS

GPU = "GeForce GTX 580 (0)"
BLOCKS, THREADS = 3584, 128
WARPS = BLOCKS * THREADS // 32
# A reduction with bank conflicts, made up: what each warp does, by the events and metrics of Fermi.
COUNTED = {
    "l1_global_load_hit": 0.5 * WARPS,
    "l1_global_load_miss": WARPS,
    "uncached_global_load_transaction": 0.5 * WARPS,
    "global_store_transaction": 0.25 * WARPS,
    "shared_load": 6 * WARPS,
    "shared_store": 4 * WARPS,
    "l1_shared_bank_conflict": 6 * WARPS,
    "tex0_cache_sector_queries": 0,
    "tex0_cache_sector_misses": 0,
    "inst_fp_32": 42 * 32 * WARPS,
    "flop_count_sp_special": 2 * 32 * WARPS,
    "flop_count_sp_fma": 10 * 32 * WARPS,
    "flop_count_sp_add": 20 * 32 * WARPS,
    "flop_count_sp_mul": 10 * 32 * WARPS,
}


def counters(tmp_path, counted=COUNTED, launches=1):
    header = ",".join(f'"{name}"' for name in ("Device", "Context", "Stream", "Kernel", *counted))
    row = ",".join([f'"{GPU}","1","7","reduce(int*)"', *(f"{value:.0f}" for value in counted.values())])
    return write(tmp_path, profiled(1, header, *[row] * launches), "counters.csv")


def trace(tmp_path, launches=1, ms=0.1):
    row = f'0.5,{ms},{BLOCKS // 2},2,1,{THREADS},1,1,16,0.0,512,,,"{GPU}","1","7","reduce(int*) [1]"'
    return write(tmp_path, profiled(1, TRACE, TRACE_UNITS, *[row] * launches), "trace.csv")


def document(*logs, **options):
    energy = eprof.load(*map(str, logs)).energy("gtx580", by_component=True, **options)
    return energy.document()


def test_the_cycles_of_a_reduction_by_hand(tmp_path):
    """The formulas of [S] 5.5 in plain numbers: 16 multiprocessors at 1.54 GHz, 192.4 GB/s, 600 cycles of latency."""
    made = document(counters(tmp_path, launches=3), trace(tmp_path, launches=3))["time_components"]
    (kernel,) = made["kernels"]
    apart = 128 / (192.4e9 / 16 / 1.54e9)
    rounds = BLOCKS / (16 * 8)
    expected = {
        "loads": 600 + (2 - 1) * apart,
        "computation": 32 * (40 * 32 / 32 + 2 * 32 / 4),
        "shared": 32 * 10 * 32 / 16,
        "conflicts": 32 * 6 * 32 / 16,
        "texture": 0,
        "stores": 0.25 * apart,
        "bandwidth": 0,
    }
    assert kernel["rounds"] == rounds and kernel["active_warps"] == 32
    assert tuple(kernel["cycles"]) == COMPONENTS
    assert kernel["cycles"] == pytest.approx({name: 3 * rounds * cycles for name, cycles in expected.items()})
    assert kernel["time_s"] == pytest.approx(sum(kernel["cycles"].values()) / 1.54e9)
    assert kernel["missing"] == ["DRAM bytes"]
    assert made["marks"] == ["estimated", "assumed"]


def test_the_example_of_a_c2075(tmp_path):
    """14 multiprocessors at 1.15 GHz, 144 GB/s: 109,884 cycles, 95.552 us, of which conflicts are 11.18 %."""
    text = (resources.folder("costs") / "gtx580.toml").read_text()
    changes = {"number = 16": "number = 14", "core_mhz = 1540": "core_mhz = 1150", "= 192.4": "= 144"}
    for old, new in changes.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    table = write(tmp_path, text, "c2075.toml")
    logs = [str(counters(tmp_path)), str(trace(tmp_path))]
    energy = eprof.load(*logs).energy(str(table), by_component=True)
    (kernel,) = energy.document()["time_components"]["kernels"]
    assert sum(kernel["cycles"].values()) == pytest.approx(109_884, abs=0.5)
    assert kernel["time_s"] == pytest.approx(95.552e-6, abs=5e-10)
    assert kernel["cycles"]["conflicts"] / 109_884 == pytest.approx(0.1118, abs=5e-5)


def test_a_time_of_the_log_stays_and_another_is_modelled(tmp_path):
    timed = document(counters(tmp_path), trace(tmp_path, ms=0.25))
    assert timed["kernels"][0]["time_s"] == pytest.approx(0.25e-3) and timed["kernels"][0]["time_marks"] == []
    untimed = document(counters(tmp_path))
    kernel = untimed["time_components"]["kernels"][0]
    assert untimed["kernels"][0]["time_s"] == kernel["time_s"]
    assert untimed["kernels"][0]["time_marks"] == ["estimated", "assumed"]
    assert kernel["missing"] == ["launch shape", "DRAM bytes"]
    assert any("without launch shape, DRAM bytes" in note for note in untimed["warnings"])
    assert untimed["time_from"] == "modelled by component"


def test_a_total_time_is_shared_out_as_modelled(tmp_path):
    """As with the roofline's times of simulated kernels: `--time 0.5` stays the time of all."""
    loaded = eprof.load(str(counters(tmp_path)), time=["0.5"])
    made = loaded.energy("gtx580", by_component=True).document()
    assert made["time_s"] == pytest.approx(0.5) and made["kernels"][0]["time_s"] == pytest.approx(0.5)
    assert made["time_components"]["kernels"][0]["time_s"] < 1e-3


def test_simulated_kernels_keep_the_time_of_the_roofline():
    """Its range is told on the first screen; cycles by component stand beside it."""
    fmm = resources.folder("costs").parent / "samples" / "logs" / "simulated" / "fmm.txt"
    loaded = eprof.load(str(fmm))
    plain, made = (loaded.energy("jetson-tk1", by_component=asked).document() for asked in (False, True))
    assert made["modelled_time"] == plain["modelled_time"] and made["time_s"] == plain["time_s"]
    assert made["time_components"]["kernels"]


def test_nothing_of_it_without_being_asked_for(tmp_path):
    plain = eprof.load(str(counters(tmp_path))).energy("gtx580").document()
    assert "time_components" not in plain and plain["kernels"][0]["time_s"] is None


def test_fewer_conflicts_and_larger_blocks(tmp_path):
    """What the modelled time saves, the kernel saves; shared memory of a block limits larger blocks."""
    energy = eprof.load(str(counters(tmp_path)), str(trace(tmp_path))).energy("gtx580", by_component=True)
    modelled = energy.document()["time_components"]["kernels"][0]
    cycles, share = modelled["cycles"], modelled["time_s"] / 0.1e-3
    without = energy.what_if("conflicts=0")
    assert without.time_share == pytest.approx(-share * cycles["conflicts"] / sum(cycles.values()))
    assert "fewer bank conflicts" in without.says
    assert energy.what_if("block=128").time_share == pytest.approx(0)
    # 48 warps instead of 32 are active, in 19 rounds instead of 28.
    of_a_warp = {name: cycles[name] / 28 / 32 for name in ("computation", "shared", "conflicts")}
    of_a_round = (cycles["loads"] + cycles["stores"]) / 28
    after = 19 * (of_a_round + 48 * sum(of_a_warp.values()))
    assert energy.what_if("block=192").time_share == pytest.approx(share * (after / sum(cycles.values()) - 1))


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("block=0", "1 to 1024"),
        ("block=many", "1 to 1024"),
        ("block=1e9", "1 to 1024"),
        ("conflicts=-150%", "factor of 0 or more"),
    ],
)
def test_questions_that_are_none(tmp_path, question, says):
    energy = eprof.load(str(counters(tmp_path)), str(trace(tmp_path))).energy("gtx580")
    with pytest.raises(UsageError, match=says):
        energy.what_if(question)


def test_what_cannot_be_asked(tmp_path):
    untold = {name: value for name, value in COUNTED.items() if name != "l1_shared_bank_conflict"}
    energy = eprof.load(str(counters(tmp_path, untold))).energy("gtx580", by_component=True)
    how = "bank conflicts of no kernel; count l1_shared_bank_conflict with nvprof"
    with pytest.raises(UsageError, match=how):
        energy.what_if("conflicts=0")
    with pytest.raises(UsageError, match="launch shape of no kernel; give along with them: nvprof --print-gpu-trace"):
        energy.what_if("block=64")
    other = eprof.load(str(counters(tmp_path))).energy("a100", by_component=True)
    with pytest.raises(UsageError, match=r"a100 has no \[time_components\]"):
        other.what_if("block=64")
    assert "time_components" not in other.document()
    assert any("a100 has no [time_components]" in note for note in other.warnings)
    without_table = counters(tmp_path).read_text().replace("GTX 580", "GTX 750")
    with pytest.raises(UsageError, match="needs a cost table"):
        eprof.load(str(write(tmp_path, without_table, "other.csv"))).energy(by_component=True)


def test_a_kernel_whose_conflicts_were_not_counted_keeps_its_time_and_is_told(tmp_path):
    told = counters(tmp_path).read_text()
    other = (
        told.splitlines()[-1]
        .replace("reduce(int*)", "scan(int*)")
        .replace(f"{COUNTED['l1_shared_bank_conflict']:.0f}", "")
    )
    row = trace(tmp_path).read_text().splitlines()[-1]
    both = write(tmp_path, f"{told}{other}\n", "both.csv")
    times = write(tmp_path, f"{trace(tmp_path).read_text()}{row.replace('reduce', 'scan')}\n", "times.csv")
    answer = eprof.load(str(both), str(times)).energy("gtx580").what_if("conflicts=0")
    assert "; 1 of 2 keep theirs, as no log tells their bank conflicts" in answer.assumes and answer.time_share < 0


def test_logs_of_times_alone_are_asked_for_counts(tmp_path):
    energy = eprof.load(str(trace(tmp_path))).energy("gtx580")
    with pytest.raises(UsageError, match="count nothing that tells the cycles of a kernel"):
        energy.what_if("conflicts=0")


def test_the_page_and_the_terminal_say_it(tmp_path):
    made = document(counters(tmp_path), trace(tmp_path))
    page, text = html(made), terminal.text(made, verbose=True)
    assert "Time by component" in page and "bank conflicts" in page
    assert "computation" in terminal.text(made)
    assert "conflicts" in text and "Cycles of one multiprocessor" in text


def test_the_command(tmp_path, capsys):
    logs = [str(counters(tmp_path)), str(trace(tmp_path))]

    def printed(*words):
        with pytest.raises(SystemExit) as end:
            main([*words, *logs, "--costs", "gtx580", "--format", "json"])
        assert not end.value.code
        return json.loads(capsys.readouterr().out)

    assert printed("report", "--time", "components")["time_components"]["kernels"][0]["cycles"]["conflicts"] > 0
    (dot,) = printed("roofline")["kernels"]
    # 10 multiply-adds, 30 others in 40 cycles, and two special functions in 16.
    per_cycle = (10 * 64 + 30 * 32 + 16 * 20) / 56
    assert dot["mix_peak_flop_per_s"] == pytest.approx(per_cycle * 16 * 1.54e9)


def test_launch_shapes_of_ncu():
    """A long log has grid and block size as columns, a report file as metrics."""
    assert shape_of("../ncu-modern/rtx3050laptop-indian-grouping.csv", "blocks", "threads") == (2048, 256)
    assert shape_of("../ncu-modern/rtx3070-scan.ncu-rep", "blocks", "threads", "registers") == (19532, 512, 18)


def shape_of(name, *numbers):
    """Some numbers of the first kernel of a real log, for one launch."""
    counts = eprof.load(str(real(name))).counts()
    return tuple(counts.shape[number][0] / counts.rows.launches[0] for number in numbers)
