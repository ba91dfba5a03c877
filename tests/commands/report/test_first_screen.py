"""The first screen of a report: at most 15 lines of 80 columns, and nothing in it that went in as a default."""

import contextlib
import itertools
import json
import re
from pathlib import Path

import pytest
from conftest import SHARED
from msgspec.structs import replace
from report_support import CASES

import eprof
from eprof.base.errors import EprofError
from eprof.commands.report.advice import _levers, _told, what_to_try
from eprof.commands.report.advice.execution import _at_work
from eprof.commands.report.advice.waiting import busier, excess
from eprof.commands.report.headline import headline, least_constant
from eprof.commands.report.hotspots import hotspots
from eprof.commands.report.terminal import _family_legend, text
from eprof.commands.report.trust import notes, trust
from eprof.commands.report.view import View
from eprof.counts.times import ONE_SECOND
from eprof.logs.log import CUT_OFF
from eprof.profile.document import document
from eprof.show.numbers import percent, quantity

LINES, COLUMNS = 15, 80


@pytest.mark.parametrize("case", CASES)
def test_any_report_fits_the_first_screen(case):
    screen = text(CASES[case](), width=COLUMNS).splitlines()
    assert len(screen) <= LINES
    assert max(map(len, screen)) <= COLUMNS


@pytest.mark.parametrize("folder", ["nvprof", "ncu", "ncu-modern", "cpu", "traces/nsys"])
def test_first_screens_of_real_logs_keep_to_what_the_documents_say(folder):
    """docs/index.md and docs/cli.md: at most 21 lines, and most logs keep to fifteen."""
    lengths = []
    for path in sorted((SHARED / folder).glob("*")):
        with contextlib.suppress(EprofError, OSError):
            if path.is_file() and path.stat().st_size < 1e6:
                made = document(eprof.load(path).energy())
                lengths.append(len(text(made, width=COLUMNS).splitlines()))
    if not lengths:
        pytest.skip("needs ../shared/data")
    assert max(lengths) <= 23
    assert sum(length <= LINES for length in lengths) > len(lengths) / 2


@pytest.mark.parametrize("dram", ["", '{cells},"DRAM Throughput","%","20.87"\n{cells},"# SMs","SM","82"\n'])
def test_no_share_is_told_where_dram_and_most_else_was_not_counted(tmp_path, dram):
    """A Speed Of Light table of a GPU that nothing names: what moved through DRAM may take more than all that is known."""
    cells = '"0","k(int)","0","8.6","GPU Speed Of Light Throughput"'
    told = [("Duration", "ms", "55.05"), ("SM Active Cycles", "cycle", "68,108,156"), ("SM Frequency", "Ghz", "1.24")]
    header = '"ID","Kernel Name","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"\n'
    path = tmp_path / "log.csv"
    rows = "".join(f'{cells},"{name}","{unit}","{value}"\n' for name, unit, value in told)
    path.write_text(header + rows + dram.format(cells=cells))
    screen = text(document(eprof.load(path, cache=False).energy()), width=COLUMNS)
    assert "at most" in screen
    assert ("1 launch of 55.1 ms" in screen) == (not dram)
    assert ("▓" in screen) == bool(dram), "an RTX 3090 has 82 multiprocessors and a peak, which tell DRAM's bytes"


def test_nothing_is_advised_twice_nor_said_where_standard_error_said_it(tmp_path):
    """AMD's counters without times: `Try` has the command of the note, which with -v stays."""
    log = tmp_path / "results.csv"
    log.write_text("Index,KernelName,gpu-id,FETCH_SIZE\n0,k,0,8000\n")
    made = document(eprof.load(log, cache=False).energy("mi250x"))
    made = replace(made, warnings=[*made.warnings, "Left out: other.csv: it is no log"])
    screen, everything = (" ".join(text(made, verbose=verbose).split()) for verbose in (False, True))
    assert screen.count("rocprofv3 --kernel-trace") == 1 and "Note" not in screen
    assert "rocprofv3 --kernel-trace" in everything and "Left out: other.csv" in everything


@pytest.mark.parametrize(
    ("counters", "told"),
    [
        ("dram__bytes_read.sum", "8.00\u202fMB from DRAM counted"),
        ("dram__bytes_write.sum", "8.00\u202fMB to DRAM counted"),
        ("dram__bytes_read.sum dram__bytes_write.sum", "16.0\u202fMB from and to DRAM counted"),
    ],
)
def test_the_way_that_was_counted_is_named(tmp_path, counters, told):
    header = '"ID","Process ID","Process Name","Kernel Name","Metric Name","Metric Unit","Metric Value"\n'
    rows = [f'"0","1","a","k(int)","{name}","byte","8000000"\n' for name in counters.split()]
    (tmp_path / "log.csv").write_text("==PROF== Connected to process 1 (/a)\n" + header + "".join(rows))
    made = document(eprof.load(tmp_path / "log.csv", cache=False).energy("none"))
    assert told in headline(View(made)).text


@pytest.mark.parametrize("case", CASES)
def test_the_bar_and_its_legend_share_a_line(case):
    bars = [line for line in text(CASES[case](), width=COLUMNS).splitlines() if line.startswith(tuple("░▓█"))]
    assert all("%" in bar for bar in bars) and len(bars) <= 1


@pytest.mark.parametrize("joules", list(itertools.product((1e-9, 0.0015, 0.4, 1.0), repeat=3)))
def test_the_bar_fits_whatever_the_shares(joules):
    parts = dict(zip(("constant", "fp64", "dram"), joules, strict=True))
    assert all(len(_family_legend(View(case()), parts)) <= COLUMNS - 20 for case in CASES.values())


def test_a_mark_that_all_kernels_share_stands_beside_none_of_them():
    document = CASES["fmm"]()
    for kernel in document["kernels"]:
        kernel["energy_marks"]["total"] = ["estimated"]
    assert "~" not in text(document, width=COLUMNS)
    document["kernels"][0]["energy_marks"]["total"] = []
    assert "~" in text(document, width=COLUMNS)


def test_constant_power_takes_no_less_than_the_flops_of_a_cpu_at_their_peak(tmp_path):
    """Scalar flops are among all: 1e12 and 4 * 2e12."""
    rows = "1,000,000,000,000 fp_arith_inst_retired.scalar_double # 1 GFLOPs\n 2,000,000,000,000 fp_arith_inst_retired.256b_packed_double\n"
    path = tmp_path / "perf.txt"
    path.write_text(f" Performance counter stats for './a':\n\n {rows}")
    view = View(eprof.load(path, cache=False).energy().document())
    (machine,) = [each for each in view.document.limits.machines if each.precision == "fp64"]
    assert least_constant(view)[0] == pytest.approx(view.document.constant_w * 9e12 / machine.peak_flop_per_s)


def test_constant_power_takes_no_less_than_active_cycles_at_the_top_clock(tmp_path):
    """13 multiprocessors at 758 MHz, which owners of a K20c may choose."""
    metrics = {"flop_count_sp": 1000, "active_cycles": 9_854_000_000, "shared_load_transactions": 5}
    rows = [
        f'"Tesla K20c (0)","k(int)",1,"{name}","{name}",{number},{number},{number}' for name, number in metrics.items()
    ]
    path = tmp_path / "metrics.csv"
    path.write_text(
        "==1== Profiling result:\n==1== Metric result:\n"
        '"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"\n' + "\n".join(rows)
    )
    view = View(eprof.load(path, cache=False).energy("estimated").document())
    least_j, why = least_constant(view)
    assert least_j == pytest.approx(view.document.constant_w * 1.0, rel=2e-3)
    assert why == "all multiprocessors active at their top clock"


def test_what_kernels_take_of_which_nothing_is_known_is_no_zero():
    document = CASES["fifty"]()
    for kernel in document["kernels"][1:]:
        kernel["energy_j"]["total"] = None
    assert ", not known (-v shows them)" in text(document, width=COLUMNS)


def test_the_cause_of_a_kernel_is_its_largest_energy():
    view = View(CASES["data_bound"]())
    for kernel in view.kernels:
        parts = {group: amount.value or 0.0 for group, amount in view.groups_of(kernel).items()}
        causes = view.causes_of(kernel)
        assert causes is not None
        assert causes.parts[0].share == pytest.approx(max(parts.values()) / kernel.energy_j.total)


def test_more_bytes_than_were_requested_are_the_cause():
    document = CASES["data_bound"]()
    for kernel in document["kernels"]:
        moved = sum(kernel["counts"][name]["value"] for name in ("dram_read", "dram_write"))
        kernel["counts"]["global_read"] = {"value": moved / 4, "unit": "byte", "energy_j": None, "marks": []}
        kernel["counts"]["global_write"] = {"value": 0.0, "unit": "byte", "energy_j": None, "marks": []}
    document["counts"] |= {
        name: {**document["kernels"][0]["counts"][name], "how": []} for name in ("global_read", "global_write")
    }
    assert "DRAM" in text(document) and "4.00 times the bytes requested" in text(document)


@pytest.mark.parametrize("signs", [{}, {"sm_busy": 0.889, "dram_busy": 0.008}, {"l1_busy": 0.9, "dram_busy": 0.2}])
def test_the_bytes_that_take_most_are_tried_with_what_types_half_as_wide_leave_of_them(signs):
    """Where DRAM does not hold a kernel back, fewer bytes save their joules and no time."""
    document = CASES["data_bound"]()
    for kernel in document["kernels"]:
        kernel["signs"] = signs
    view = View(document)
    joules = view.groups["dram"].value
    share = view.energy("data").value / view.energy("total").value  # such types halve what all levels move
    tried = what_to_try(view).text.replace("\u202f", " ")
    assert re.search(rf"fewer DRAM bytes .*saves up to \S+ J \({50 * share:.0f} % of .*half as wide", tried)
    assert f"; {quantity(0.1 * joules, 'J')} for each 10 % fewer".replace("\u202f", " ") in tried


@pytest.mark.parametrize(
    ("issuing", "unit", "is_sooner"), [(0.57, 0.45, True), (0.45, 0.45, False), (0.57, 0.7, False)]
)
def test_a_kernel_that_fills_most_issue_slots_is_at_work_where_nothing_else_holds_it_back(issuing, unit, is_sooner):
    document = CASES["data_bound"]()
    for kernel in document["kernels"]:
        kernel["signs"] = {"issue_busy": issuing, "dram_busy": unit}
    for limit in document["limits"]["kernels"]:
        limit["speed_share"] = 0.2
    view = View(document)
    assert [*_at_work(view)] == list(view.kernels) * is_sooner


@pytest.mark.parametrize(("time_from", "is_told"), [(None, True), (ONE_SECOND, False)])
def test_bytes_of_a_second_are_not_those_of_a_launch(time_from, is_told):
    document = CASES["data_bound"]()
    for entry in (document, *document["kernels"]):
        for name in ("dram_read", "dram_write"):
            entry["counts"][name]["value"] *= 1e6
    assert ("its GPU holds" in what_to_try(View(document | {"time_from": time_from})).text) == is_told


@pytest.mark.parametrize(("share", "is_tried"), [(0.5, True), (0.1, False)])
def test_sectors_of_dram_that_come_for_a_part_of_them_are_tried_and_are_no_bytes(share, is_tried):
    document = CASES["data_bound"]()
    before = text(document)
    for entry in (document, *document["kernels"]):
        moved = sum(entry["counts"][name]["value"] for name in ("dram_read", "dram_write"))
        entry["counts"]["random"] = {"value": share * moved / 32, "unit": "access", "energy_j": 1e-12, "marks": []}
    document["counts"]["random"]["how"] = []
    view = View(document)
    saved = 100 * share * view.groups["dram"].value / view.energy("total").value
    tried = what_to_try(view).text
    act = f"coalesce accesses: {share:.0%} of DRAM's bytes come beside those that are used".replace("%", "\u202f%")
    assert (act in tried and f"({saved:.0f}" in tried) == is_tried
    assert text(document).partition("Try")[0] == before.partition("Try")[0]


def test_arithmetic_that_the_work_needs_is_tried_in_a_narrower_type_and_never_less_of_it():
    document = CASES["compute_bound"]()
    charges = document["costs"]["charges"]
    charges["fp32_fma"] = {**charges["fp64_fma"], "pj": charges["fp64_fma"]["pj"] / 4}
    view = View(document)
    tried = what_to_try(view).text
    share = 0.75 * view.groups["fp64"].value / view.energy("total").value
    assert tried.startswith("use FP32 for FP64, if accurate enough") and f"({100 * share:.0f}" in tried
    del charges["fp32_fma"]
    assert "FP64" not in what_to_try(View(document)).text


@pytest.mark.parametrize(("seconds", "less"), [("900.00ms", "73 to "), ("20.00s", "3.3 to ")])
def test_flops_whose_kinds_are_not_told_hold_a_kernel_back_too(tmp_path, seconds, less):
    row = "          1  {:>30}  Described  {}  {}  {}\n".format
    flops, moved = "5.0000e+10", "700000000"  # 0.86 s at the peak of FP64, 0.2 s of DRAM
    log = (
        "            Type  Time(%)      Time     Calls       Avg       Min       Max  Name\n"
        f" GPU activities:  100.00%  {seconds}         1  {seconds}  {seconds}  {seconds}  mm(double*)\n\n"
        "Invocations  Metric Name  Metric Description  Min  Max  Avg\n"
        'Device "GeForce GTX 1050 (0)"\n    Kernel: mm(double*)\n'
        + row("flop_count_dp", *[flops] * 3)
        + row("dram_read_transactions", *[moved] * 3)
        + row("dram_write_transactions", *["0"] * 3)
    )
    (tmp_path / "log.txt").write_text(log)
    view = View(eprof.load(tmp_path / "log.txt").energy().document())
    (change,) = (each for each in _levers(view) if each.act.startswith("use FP32 for FP64"))
    least_s = 50 / 58.2 - 700e6 * 32 / 112.1e9
    double_j = change.ends[0] - view.document.constant_w * least_s
    assert 0 < double_j < 25e9 * 165e-12
    assert change.beside.startswith(f", {less}") and change.beside.endswith(" less time")


def test_multiplications_beside_additions_are_tried_as_one_instruction():
    document = CASES["compute_bound"]()
    fma = document["kernels"][0]["counts"]["fp64_fma"]
    for kind in ("add", "mul"):
        document["costs"]["charges"][f"fp64_{kind}"] = document["costs"]["charges"]["fp64_fma"]
        for entry in (document, document["kernels"][0]):
            more = {"value": 2 * fma["value"], "energy_j": 0.0}
            entry["counts"][f"fp64_{kind}"] = {**entry["counts"]["fp64_fma"], **more}
    document["costs"]["charges"].pop("fp32_fma", None)
    assert what_to_try(View(document)).text.startswith("fuse up to ")


def test_work_on_tensor_cores_is_tried_in_a_narrower_type_that_has_a_price():
    document = CASES["compute_bound"]()
    document["device"]["capability"] = "8.9"
    joules = View(document).groups["fp64"].value
    price = document["costs"]["charges"]["fp64_fma"]
    document["costs"]["charges"] |= {"tensor_fp16": {**price, "pj": 0.4}, "tensor_fp8": {**price, "pj": 0.1}}
    for entry in (document, *document["kernels"]):
        for name in [name for name in entry["counts"] if name.startswith("fp64")]:
            count = entry["counts"].pop(name)
            if name == "fp64_fma":
                entry["counts"]["tensor_fp16"] = count
    tried = what_to_try(View(document))
    assert tried.text.startswith("use FP8 for FP16 on tensor cores")
    assert View(document).groups["tensor"].value == pytest.approx(joules, rel=0.2)
    document["device"]["capability"] = "8.0"
    assert "FP8" not in what_to_try(View(document)).text, "this GPU has none"
    document["device"]["capability"] = "8.9"
    del document["costs"]["charges"]["tensor_fp8"]
    assert "ensor" not in what_to_try(View(document)).text


def test_other_clocks_are_tried_with_what_their_voltages_are():
    document = CASES["fmm"]()
    clocks = document["clocks"]
    clocks["lowest"] |= {"core_mhz": 396.0, "energy_j": 0.5 * clocks["lowest"]["energy_j"], "energy_range_j": []}
    document["costs"]["setting_from"] = "the table's default"
    assert "modelled" not in what_to_try(View(document)).text, "the clocks that it would be held against are assumed"
    document["costs"]["setting_from"] = "the logs"
    assert "modelled" in what_to_try(View(document)).text and "voltages" not in what_to_try(View(document)).text
    clocks["voltages"] = "carried over from the A100's, at the same share of the top clock"
    assert what_to_try(View(document)).text.endswith("modelled, core voltages carried over from the A100's")


def test_what_the_prices_leave_open_is_tried_with_both_ends():
    document = CASES["data_bound"]()
    joules, total = View(document).groups["dram"].value, document["energy_j"]["total"]
    document["interval_j"] = {"share": 0.9, "replicas": 30, "groups": {"dram": [0.0, 3 * joules]}}
    tried = what_to_try(View(document)).text.replace("\u202f", " ")
    high = min(3 * joules, total)
    assert f"saves up to {0.5 * high:#.3g} J" in tried and f"; up to {100 * high:.3g} mJ for each 10 %" in tried
    assert re.search(r"DRAM \d+ % or L2 \d+ %", text(document).replace("\u202f", " "))


def test_where_nothing_can_be_tried_the_reason_is_said():
    assert "--tdp-w WATTS" in what_to_try(View(CASES["no_costs"]())).text
    listed = CASES["no_costs"]()
    listed["device"]["name"] = "NVIDIA GeForce RTX 4090"
    assert what_to_try(View(listed)).text == "price it by its data sheet: --costs estimated"
    unnamed = CASES["no_costs"]()
    unnamed["device"]["name"] = None
    assert what_to_try(View(unnamed)).text.startswith('name the GPU, as in --costs "RTX 4090"')
    for kernel in unnamed["kernels"]:
        kernel["counts"] = {}
    unnamed["counts"] = {}
    tried = what_to_try(View(unnamed)).text
    assert "begin with " in tried and "; count with `" in tried and '; name the GPU, as in --costs "' in tried
    counting = "count with `nvprof --metrics all --csv --log-file counts.csv ./fmm --n 131072 --s 128`"
    timed = CASES["time_only"]()
    assert what_to_try(View(timed)).text == f"begin with U (near field, P2P), 41\u202f% of the time; {counting}"
    del timed["kernels"][1:]
    assert what_to_try(View(timed)).text == counting, "of one kernel there is nowhere else to begin"


def test_trust_begins_with_a_verdict_and_an_error():
    document = CASES["compute_bound"]()
    del document["limits"]
    assert trust(View(document)).text.startswith("rough (error unknown).")
    document["costs"]["fit"] = {"error_percent": {"leave_one_benchmark_out": 8.64}}
    assert trust(View(document)).text.startswith("good (new kernels 8.6\u202f% off on average).")
    document["energy_marks"]["total"] = ["missing"]
    assert trust(View(document)).text.startswith("rough, a lower bound"), "nothing tells how much is missing"
    total = document["energy_j"]["total"]
    for most, word in ((0.05, "good"), (0.5, "rough")):
        uncounted = {"l2": most * total, "total": most * total}
        document["interval_j"] = {"share": 0.9, "replicas": 30, "total": [total, 2 * total], "uncounted": uncounted}
        said = trust(View(document)).text
        assert said.startswith(word) and ("Not counted, at most " in said) == (word == "rough")


@pytest.mark.parametrize(
    ("time", "said"),
    [
        ("0.1144s", "good (new kernels"),
        ("0.0485s", "good (new kernels"),  # 1.04 times what the board may draw
        ("0.02s", "rough: these times would take 1.81 times the power that the board may draw."),
        ("0.005s", "rough: these times would take 6.43 times the power that the board may draw."),
    ],
)
def test_a_time_that_would_take_more_power_than_the_board_draws_is_no_good(time, said):
    log = SHARED / "nvprof" / "gtx1080ti-cuda8-metrics-summary.csv"
    if not log.exists():
        pytest.skip("needs ../shared/data")
    energy = eprof.load(log, time=[time]).energy()
    assert trust(View(document(energy))).text.startswith(said)
    seconds = float(time.removesuffix("s"))
    made_w = (energy.energy_j + energy.split.over_j.sum()) / seconds
    share = max(1.0, made_w / energy.limits.device_w[0])
    assert ("rough" in said) == (share > 1.1)


@pytest.mark.parametrize("size", [700, 9_000])
def test_a_log_that_looks_cut_off_is_told_first(tmp_path, size):
    """Of 19.4 J, 9,000 bytes tell 18.4 J; and nothing of it is good."""
    log = SHARED / "nvprof" / "gtx1080ti-cuda8-metrics-summary.csv"
    if not log.exists():
        pytest.skip("needs ../shared/data")
    path = tmp_path / "short.csv"
    path.write_bytes(log.read_bytes()[:size])
    told = trust(View(document(eprof.load(path).energy()))).text
    assert "The log looks cut off, so totals are lower bounds." in told and not told.startswith("good")
    both = trust(View(document(eprof.load(path, log).energy()))).text
    assert "short.csv looks cut off, so totals are lower bounds." in both
    assert "cut off" not in trust(View(document(eprof.load(log).energy()))).text


def test_nothing_of_logs_that_look_cut_off_is_good():
    log = SHARED / "nvprof" / "gtx1080ti-cuda8-metrics-summary.csv"
    if not log.exists():
        pytest.skip("needs ../shared/data")
    made = View(document(eprof.load(log).energy())).document
    assert trust(View(made)).text.startswith("good (")
    told = trust(View(replace(made, warnings=[f"a.csv: {CUT_OFF}"]))).text
    assert told.startswith("rough (") and "The log looks cut off, so totals are lower bounds." in told
    several = replace(made, inputs=made.inputs * 3, warnings=[f"{name}.csv: {CUT_OFF}" for name in "abc"])
    assert "a.csv, b.csv and 1 more look cut off, so totals are lower bounds." in trust(View(several)).text


def test_a_time_that_is_shorter_than_the_roofline_allows_is_no_good():
    made = CASES["fmm"]()
    limits = made["limits"]["kernels"]
    assert "as fast as" not in trust(View(made)).text
    limits[1]["speed_share"] = 1.25
    name = View(made).label(View(made).kernels[1])
    assert trust(View(made)).text.startswith(f"rough: {name} would be 1.25 times as fast as the roofline.")
    made["costs"]["gpu_match"] = "other"
    assert "as fast as" not in trust(View(made)).text, "the roofline is of another GPU"


def test_a_name_that_is_cut_off_is_no_note_where_it_tells_the_prices():
    made = CASES["fmm"]()
    made["warnings"] = [
        "a note on all",
        "no table has the GPU's whole name; by what the logs tell it is Tesla P100-PCIE",
    ]
    assert notes(View(made)) == ["a note on all"]
    made["costs"]["gpu_match"] = "other"
    assert notes(View(made)) == made["warnings"]


def test_counters_that_no_number_rests_on_are_no_note_beside_joules():
    made = CASES["fmm"]()
    made["warnings"] = ["a note on all", "Counted, and not used with ncu/ampere-8.0: `sass__x` and 2 more events."]
    assert notes(View(made)) == ["a note on all"]
    bare = CASES["no_costs_no_time"]()
    bare["warnings"] = ["no cost table", made["warnings"][1]]
    assert notes(View(bare)) == bare["warnings"][1:]


def test_trust_tells_what_has_no_price_apart_from_what_was_not_counted():
    document = CASES["missing"]()
    missing = "Not counted: special functions, part of DRAM write; no price: tensor cores."
    assert missing in trust(View(document)).text
    uncounted = {"tensor": None, "sfu": 1e3, "total": None}
    document["interval_j"] = {"share": 0.9, "replicas": 30, "uncounted": uncounted}
    assert "Not counted: special functions (1.00\u202fkJ); no price: tensor cores." in trust(View(document)).text
    document["interval_j"]["uncounted"] = {"tensor": None, "total": None}
    assert "No price: tensor cores." in trust(View(document)).text
    without = CASES["missing"]() | {"costs": None, "prices": []}
    assert "o price: " not in trust(View(without)).text, "nothing has one"


def modelled(document, efficiency=0.25):
    """The document as if its times were those of a model."""
    document["modelled_time"] = {"efficiency": efficiency, "given": False}
    document["time_marks"] = ["estimated", "simulated"]
    for kernel in document["kernels"]:
        kernel["time_marks"] = ["estimated", "simulated"]
    return document


def test_modelled_constant_power_is_a_range_and_no_cause():
    document = modelled(CASES["fmm"]())
    screen = " ".join(text(document, width=COLUMNS).split())
    view = View(document)
    above, constant = view.above.value, view.energy("constant").value
    assert f"{above + constant / 4:.3g} to {above + constant:.3g} J" in screen
    assert "since time is a model: at the roofline's speed and at 25 % of it." in screen.replace("\u202f", " ")
    assert "constant power" not in " ".join(str(row.cells[3]) for row in hotspots(view).rows)
    assert "% of roofline" not in screen, "the efficiency that went in is no finding"


def test_the_lower_end_of_modelled_joules_does_not_depend_on_the_efficiency():
    first = modelled(CASES["fmm"]())
    second = json.loads(json.dumps(modelled(CASES["fmm"](), 0.5)))
    for entry in (second, *second["kernels"]):
        constant = entry["energy_j"]["constant"]
        entry["energy_j"]["constant"] = constant / 2
        entry["energy_j"]["total"] -= constant / 2
        entry["time_s"] /= 2
    heads = [re.split(r" to | J", text(document, width=COLUMNS).splitlines()[1])[0] for document in (first, second)]
    assert heads[0] == heads[1]


def test_given_times_stay_where_others_are_modelled():
    """The constant energy of a kernel whose time is given does not shrink with the efficiency of the model."""
    document = modelled(CASES["fmm"]())
    first = document["kernels"][0]
    first["time_marks"] = []
    low = first["energy_j"]["constant"] + (document["energy_j"]["constant"] - first["energy_j"]["constant"]) / 4
    screen = " ".join(text(document, width=COLUMNS).split())
    assert f"{View(document).above.value + low:.3g} to " in screen
    shares = [row.cells[-2].value for row in hotspots(View(document)).rows]
    assert sum(shares) <= 1


def test_a_large_part_that_the_prices_leave_open_is_not_skipped():
    document = CASES["data_bound"]()
    second = sorted(View(document).groups.items(), key=lambda item: -(item[1].value or 0))[1]
    joules = second[1].value
    document["interval_j"] = {"share": 0.9, "replicas": 30, "groups": {second[0]: [0.0, 3 * joules]}}
    share = 100 * 3 * joules / document["energy_j"]["total"]
    screen = text(document, width=200).replace("\u202f", " ")
    assert re.search(rf"{View(document).in_prose(second[0])} \(0 to {share:.0f} %\)|0 to {share:.0f} %", screen)


def test_nothing_is_divided_where_only_the_whole_has_a_time():
    document = CASES["fmm"]()
    for kernel in document["kernels"]:
        kernel["time_s"], kernel["energy_j"]["constant"] = None, None
        kernel["energy_j"]["total"] = 0.0
    assert len(text(document, width=COLUMNS).splitlines()) <= LINES


def test_idle_time_that_a_meter_saw_is_tried_of_all_that_it_saw():
    document = CASES["data_bound"]()
    total = document["energy_j"]["total"]
    document["to_meter"] = {
        **{"metered_j": 3 * total, "source": "--energy", "shape": "x", "own": True, "basis": "fitted", "factor": 1.0},
        **{"modelled_j": 3 * total, "idle_s": 1.0, "idle_j": 2 * total, "within": 1.33},
    }
    tried = what_to_try(View(document)).text.replace("\u202f", " ")
    assert tried.startswith("wait less for the host (1.00 s in gaps: ")
    assert f"saves up to {2 * total:#.3g} J (67 % of {3 * total:#.3g} J)" in tried


def test_what_is_spilled_is_spared_behind_l1_too_and_coalescing_spares_none_of_it():
    def tried(signs):
        document = CASES["data_bound"]()
        for entry in (document, *document["kernels"]):
            moved = {"value": 1e9, "unit": "byte", "energy_j": 0.01, "marks": []}
            entry["counts"] |= {"l1_read": {**moved}, "local_read": {**moved, "value": 5e8, "energy_j": 0.0}}
        for name in ("l1_read", "local_read"):
            document["counts"][name]["how"] = []
        for kernel in document["kernels"]:
            kernel["signs"] = {"excess": 0.75, "dram_busy": 0.8, "issue_busy": 0.2, **signs}
        changes = {change.act.partition(" ")[0]: change for change in _levers(View(document))}
        return changes["spill"], changes["coalesce"]

    (spills, coalesce), (behind, rest) = tried({}), tried({"local_share": 0.9})
    assert max(behind.ends) > max(spills.ends) and min(behind.ends) >= min(spills.ends)
    assert max(rest.ends) < max(coalesce.ends)
    assert "75\u202f% less time" in behind.beside  # the next unit is the one that issues: 0.2 of 0.8
    assert "90\u202f% of what L1 and L2 pass on" in behind.act


FEW_BLOCKS = {"sm_active": 0.13, "blocks": 16.0, "multiprocessors": 80.0}


@pytest.mark.parametrize(
    ("lacks", "told"),
    [
        ((), r"saves up to \S+ m?J \([\d.]+ % of"),
        (("energy",), r"saves up to \S+ m?s \(87 % of"),
        (("energy", "time"), r"\(what that saves was not counted\)"),
    ],
)
def test_what_saves_time_is_tried_whether_a_log_tells_joules_times_or_neither(lacks, told):
    document = without(CASES["data_bound"](), lacks)
    document["kernels"] = document["kernels"][:1]
    kernel = document["kernels"][0] | {"signs": FEW_BLOCKS}
    document |= {"kernels": [kernel], "time_s": kernel["time_s"]}
    view = View(document)
    tried = "".join(_told(view, change) for change in _levers(view)).replace("\u202f", " ")
    assert re.search(rf"launch more blocks of .*have work 13 % of the time, as it has 16 blocks for 80.* {told}", tried)


@pytest.mark.parametrize(
    ("signs", "told"),
    [
        ({"sm_active": 0.03, "lanes": 1 / 32}, "in blocks of 32 threads or more, then in more blocks .*99.9 %"),
        ({"sm_active": 0.9, "threads": 8.0}, r"in blocks of 32 threads or more \(its blocks fill 25 % of .*\(78 %"),
        ({"sm_active": 0.9, "threads": 8.0, "dram_busy": 0.7}, ""),
        ({"sm_active": 0.9, "lanes": 1.0}, ""),
    ],
)
def test_blocks_of_less_than_a_warp_get_more_threads_before_there_are_more_of_them(signs, told):
    document = without(CASES["data_bound"](), ["energy"])
    kernel = document["kernels"][0] | {"signs": signs}
    view = View(document | {"kernels": [kernel], "time_s": kernel["time_s"]})
    acts = [_told(view, change) for change in busier(view)]
    assert len(acts) == bool(told) and all(re.search(told, act.replace("\u202f", " ")) for act in acts), acts


def without(document, lacks):
    """A document whose log told no joules, or no times."""
    for entry in (document, *document["kernels"]):
        if "energy" in lacks:
            entry["energy_j"] = dict.fromkeys(entry["energy_j"])
            entry["counts"] = {}
        if "time" in lacks:
            entry["time_s"] = None
    if "energy" in lacks:
        document |= {"costs": None, "prices": [], "counts": {}}
        document.pop("interval_j", None)
    return document


@pytest.mark.parametrize(
    ("name", "share", "condition"),
    [
        ("sums(const float *, unsigned long)", 0.875, ", if each thread moves 4\u202fB at a time"),
        ("sums(float4*)", 0.5, ""),
        ("sums(float*, double *)", 0.75, ", if each thread moves 8\u202fB at a time"),
        ("sums<Array<char*, 2>>(Array<char*, 2>)", 0.5, ""),
        ("sums", 0.5, ""),
    ],
)
def test_sectors_that_a_warp_needs_are_as_wide_as_what_its_pointers_point_to(name, share, condition):
    kernel = View(CASES["data_bound"]()).kernels[0]
    assert excess(replace(kernel, name=name, signs={"request_sectors": 32.0})) == (share, condition)
    assert excess(replace(kernel, name=name, signs={"request_sectors": 32.0, "excess": 0.1})) == (0.1, "")


def test_nobody_is_told_to_rewrite_a_compiled_library():
    document = CASES["compute_bound"]()
    for charge in ("fp32_fma", "fp32"):
        document["costs"]["charges"].pop(charge, None)
    assert "fewer" in what_to_try(View(document)).text or "loads in flight" in what_to_try(View(document)).text
    for place, kernel in enumerate(document["kernels"]):
        kernel["name"] = f"sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize128x{64 + place}x32_cublas"
    tried = what_to_try(View(document)).text
    assert "tiles" not in tried and "unroll" not in tried and "loads in flight" not in tried


@pytest.mark.parametrize(
    ("library", "advice"),
    [
        ("OpenBLAS", "less to do ({}): fewer elements, or narrower ones (float32): each 10\u202f% less saves"),
        ("Python", "replace the loop at solver.py:5"),
        ("libmine.so", "each 10\u202f% fewer"),
    ],
)
def test_nobody_is_told_to_rewrite_what_python_has_a_compiled_library_do(library, advice):
    document = CASES["compute_bound"]()
    for charge in ("fp32_fma", "fp32"):
        document["costs"]["charges"].pop(charge, None)
    document["device"]["processor"] = "cpu"
    for kernel in document["kernels"]:
        kernel["name"] = f"a.dot, {library}"
        kernel["lines"] = [{"place": "solver.py:5", "above_constant_j": 1.0, "counts": {}}]
    view = View(document)
    tried = what_to_try(view).text
    largest = max(view.ranked(kernel).or_zero for kernel in view.kernels)
    assert advice.format(percent(largest / view.whole)) in tried
    assert ("10\u202f% fewer" in tried) == (library == "libmine.so")


@pytest.mark.parametrize(
    ("library", "shares", "said"),
    [
        (
            "OpenBLAS",
            (1.0, 1.0),
            "OpenBLAS (100\u202f%) ran other code than in the timed run: Valgrind's processor has no X or Y.",
        ),
        ("libcrypto", (0.2, 1.0), "libcrypto ("),
        ("OpenBLAS", (0.0, 0.01), ""),
        ("C library", (1.0, 1.0), ""),
        ("Python", (1.0, 1.0), ""),
    ],
)
def test_libraries_that_valgrind_had_run_other_code_are_told_where_they_take_much(library, shares, said):
    made = CASES["compute_bound"]()
    made["device"]["processor"] = "cpu"
    made["warnings"].append("Valgrind's processor has no X or Y, and this one has: libraries that choose ...")
    total = made["energy_j"]["total"]
    kernels = made["kernels"]
    for kernel in kernels:
        is_of_library = kernel["energy_j"]["total"] / total <= shares[1] and shares[0] > 0
        kernel["name"] = f"a.dot, {library if is_of_library else 'Python'}"
        kernel["lines"] = [{"place": "solver.py:5", "above_constant_j": 1.0, "counts": {}}]
    told = trust(View(made)).text
    assert said in told and ("other code" in told) is bool(said)
    made["warnings"].pop()
    assert "other code" not in trust(View(made)).text


CALLGRIND = """# callgrind format
version: 1
creator: callgrind-3.19.0
cmd: ./strided
positions: line
events: Ir Dr Dw D1mr D1mw DLmr DLmw
ob=(1) /strided
fn=(1) {first}
1 1000000 0 0 {first_l1} 0 {first_ll} 0
fn=(2) {second}
9 200000 0 0 {second_l1} 0 {second_ll} 0
"""


@pytest.mark.parametrize(
    ("misses", "said"),
    [
        # Of the first 1 M instructions wait 10,000 misses, 1 M cycles in memory; of the second 200 k, 100,000 in L2.
        ((10_000, 10_000, 100_000, 0), "first 28 to 92\u202f%, or second more"),
        ((10_000, 10_000, 4_000, 0), "first 82 to 96\u202f%"),
        ((1_000, 0, 1_000, 0), ""),
    ],
)
def test_how_far_a_model_of_cycles_tells_which_function_takes_most(tmp_path, misses, said):
    names = ("first_l1", "first_ll", "second_l1", "second_ll")
    text = CALLGRIND.format(first="first", second="second", **dict(zip(names, misses, strict=True)))
    (tmp_path / "callgrind.out.1").write_text(text)
    view = View(document(eprof.load(tmp_path / "callgrind.out.1").energy("icelake-sp")))
    told = replace(
        view.document, time_from="0.01 s of the program, run without a profiler, shared out by an estimate of cycles"
    )
    words = trust(View(told)).text
    if not said:
        assert words.count("estimate of cycles.") == 1 and "misses" not in words
        return
    shares = []
    for l1, ll in itertools.product((2.5, 10, 40), (25, 100, 400)):
        cycles = [1e6 + l1 * misses[0] + ll * misses[1], 2e5 + l1 * misses[2] + ll * misses[3]]
        shares.append(cycles[0] / sum(cycles))
    assert said.startswith(f"first {100 * min(shares):.0f} to {100 * max(shares):.0f}\u202f%")
    assert (
        f"Time: a bare run's, shared out by an estimate of cycles; with misses a quarter as dear, or four times, {said}."
        in words
    )
    assert ("second more" in said) is (min(shares) < 0.5)


def test_kernels_of_a_simulated_gpu_wait_for_no_caches():
    """Their DRAM bytes are of simulated caches, as a CPU's are; but other warps run while one waits."""
    view = View(json.loads((Path(__file__).parents[2] / "golden" / "documents" / "gemm.json").read_text()))
    assert [view.waits(kernel.counts) for kernel in view.kernels] == [0.0]
    assert "waits for caches" not in text(view.document)
