"""eprof against a second, independent implementation (`oracle`): every log in CSV that is at hand, and logs made by hypothesis."""

import re
from functools import cache

import pytest
from conftest import ROOT, SHARED
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from logs_support import K20C, METRICS, metric, profiled
from oracle import NotUnderstood, Prices, named, names, read, totals
from oracle.amounts import Amount
from oracle_logs import (
    ADDED,
    DEVICES,
    INSIDE,
    KERNELS,
    MOVED,
    NCU,
    TOTALS,
    Run,
    both,
    holes,
    ncu,
    runs,
    summary,
    trace,
    wide,
)
from oracle_support import disagreement, wrong_counters, wrong_words

from eprof.base.errors import EprofError
from eprof.base.vocabulary import Mark
from eprof.profile import api

# Logs are small, and eprof reads them by the hundred: what fails is not made smaller, which takes minutes.
quick = settings(
    max_examples=10,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
to_fail = settings(quick, max_examples=20, database=None)
TABLES = {name: Prices(ROOT / "costs" / f"{name}.toml") for name in ("gtx680", "jetson-tk1", "v100", "gtx980")}
HEADERS = rb'"?ID"?,"?Process ID|"?Device"?,"?(Kernel|Context)|"Duration"|"?Time\(%\)"?,"?Time'
FOLDERS = ("nvprof", "ncu", "ncu-modern", "repro", "traces/nsys")
UNTOLD = {"a100-details-kernel-time": "8.0", "details-rewritten-by-pandas": "8.0", "celeritas-roofline": "7.0"}


def tables():
    """The logs with a table in CSV."""
    for folder in FOLDERS:
        for path in sorted((SHARED / folder).glob("*")) if (SHARED / folder).is_dir() else ():
            if path.suffix in (".csv", ".gz", ".txt") and (
                path.suffix == ".gz" or re.search(HEADERS, path.read_bytes())
            ):
                yield path


LOGS = list(tables())
DESCRIBED = names([path for path in LOGS if "metrics-summary" in path.name])


def rows_of(path):
    try:
        return read(path)
    except (NotUnderstood, EOFError):
        pytest.skip("no table in CSV, which is all that the oracle reads")


def options_of(path):
    told = [capability for start, capability in UNTOLD.items() if path.name.startswith(start)]
    return {"capability": told[0]} if told else {}


def profiler(rows):
    return "ncu" if rows[0].kind == "ncu" else "nvprof"


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_counters_instructions_bytes_and_joules_of_a_real_log(path):
    rows = rows_of(path)
    told = options_of(path)
    try:
        profile = api.load(path, cache=False, **told)
    except EprofError:
        assert not any(row.values for row in rows), "eprof refuses what the oracle reads"
        return
    found, compared = wrong_counters([path], [rows])
    assert not found and compared
    kernels = totals([named(rows, DESCRIBED)])
    # One table of each way to keep books; of two with the same way, each for every second log.
    for costs in (("gtx680", "jetson-tk1")[LOGS.index(path) % 2], "v100"):
        try:
            found, _ = wrong_words(profile, kernels, TABLES[costs], costs, profiler(rows), **told)
        except EprofError:
            return
        assert not found, costs


def test_the_oracle_has_something_to_say_of_real_logs(real_log):
    least = {"titan-wide-trace-events-and-metrics.csv": 36, "gtx1080ti-cuda8-metrics-summary.csv": 25}
    for name, number in least.items():
        path = real_log(name)
        profile, rows = api.load(path, cache=False), read(path)
        assert wrong_words(profile, totals([named(rows, DESCRIBED)]), TABLES["gtx680"], "gtx680", "nvprof")[1] >= number
        assert wrong_counters([path], [rows])[1] > 50


# ------------------------------------------------------------------------------------------------- logs that are made


def check(tmp_path, texts, costs="gtx680", words=True, name="log{}.csv"):
    """Write logs and let both read them."""
    paths = [tmp_path / name.format(number) for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    rows = [read(path) for path in paths]
    kernels = totals(rows)
    found, compared = wrong_counters(paths, rows)
    if words:
        more, number = wrong_words(api.load(*paths, cache=False), kernels, TABLES[costs], costs, profiler(rows[0]))
        found, compared = found + more, compared + number
    assert not found
    assert compared
    return kernels


def contains(found, made, holes=frozenset()):
    """The oracle's totals must hold the truth, and be exact where nothing lacks. Runs may ask for different counters."""
    for (_, kernel), total in found.items():
        own = {}
        for run in made:
            for number, (name, counts) in enumerate(run.launches):
                for counter in run.counters if name == kernel else ():
                    own.setdefault(counter, []).append((counts[counter], (number, counter) in holes))
        for counter, cells in own.items():
            truth, amount = sum(value for value, _ in cells), total.counters[counter]
            assert amount.low <= truth * (1 + 1e-12) and truth <= amount.high * (1 + 1e-12)
            whole = len(cells) == max(map(len, own.values())) and not any(lost for _, lost in cells)
            assert amount.is_exact == whole


@pytest.mark.parametrize("costs", ["gtx680", "jetson-tk1", "v100", "gtx980"])
@given(made=runs(alike=True, counters=(*ADDED, *INSIDE)), milliseconds=st.integers(1, 10**6))
@quick
def test_summaries_of_several_runs(tmp_path, costs, made, milliseconds):
    texts = [summary(run) for run in made] + [trace(made[0], milliseconds / 1000)]
    contains(check(tmp_path, texts, costs), made)


@given(made=runs(alike=True, counters=(*ADDED, *MOVED), least=2))
@quick
def test_several_runs_in_one_file_and_in_several(tmp_path, made):
    check(tmp_path, ["".join(summary(run) for run in made)])
    check(tmp_path, [summary(run) for run in made])


@given(data=st.data(), made=runs(most=2, counters=(*ADDED, *MOVED, *INSIDE)))
@quick
def test_traces_add_up_launch_by_launch(tmp_path, data, made):
    contains(check(tmp_path, [wide(run) for run in made]), made)


@given(data=st.data(), made=runs(most=1, counters=(*ADDED, "dram_write_transactions"), fewer=False))
@quick
def test_a_hole_is_no_zero(tmp_path, data, made):
    lost = data.draw(holes(made[0]))
    cell = data.draw(st.sampled_from(['"<OVERFLOW>"', '"<INVALID>"', "", "nan"]))
    contains(check(tmp_path, [wide(made[0], lost, cell)]), made, lost)


@given(data=st.data(), made=runs(most=1, counters=(*ADDED, *MOVED, *INSIDE), fewer=False))
@to_fail
def test_a_hole_in_what_is_subtracted_makes_no_bound(tmp_path, data, made):
    lost = data.draw(holes(made[0], ("dram_read_transactions", "flop_count_sp_special", "flop_count_dp_fma")))
    check(tmp_path, [wide(made[0], lost)])


@given(made=runs(alike=True, most=2, device=DEVICES[0], fewer=False))
@to_fail
def test_events_and_metrics_of_one_run_are_of_the_same_launches(tmp_path, made):
    contains(check(tmp_path, ["".join(both(run) for run in made)]), made)


@given(made=runs(alike=True, most=1, device=DEVICES[0], fewer=False))
@to_fail
def test_events_and_metrics_of_one_run_in_two_files(tmp_path, made):
    check(tmp_path, [summary(made[0], TOTALS, ("inst_executed",)), summary(made[0])])


@given(data=st.data(), milliseconds=st.lists(st.integers(1, 10**5), min_size=2, max_size=2))
@quick
def test_each_gpu_of_a_log_has_its_own_prices(tmp_path, data, milliseconds):
    devices = ("GeForce GTX 980 (0)", "Tesla V100-SXM2-16GB (1)")
    made = [
        data.draw(runs(alike=True, most=1, device=device, counters=(*ADDED, *INSIDE, *MOVED)))[0] for device in devices
    ]
    texts = [summary(run) + trace(run, time / 1000) for run, time in zip(made, milliseconds, strict=True)]
    paths = [tmp_path / "log.csv"]
    paths[0].write_text("".join(texts))
    rows = [read(path) for path in paths]
    prices = {"GeForce GTX 980": TABLES["gtx980"], "Tesla V100-SXM2-16GB": TABLES["v100"]}
    found, compared = wrong_words(api.load(*paths, cache=False), totals(rows), prices, None, "nvprof")
    assert not found and compared


@given(made=runs(least=2, most=3, fewer=False))
@to_fail
def test_a_run_whose_every_cell_overflowed_makes_a_lower_bound(tmp_path, made):
    first = frozenset((number, "inst_integer") for number in range(len(made[0].launches)))
    check(tmp_path, [wide(made[0], first) + "".join(wide(run) for run in made[1:])])


@given(made=runs(alike=True, most=2), form=st.sampled_from([summary, wide]), pasted=st.booleans())
@to_fail
def test_the_same_log_twice_counts_once(tmp_path, made, form, pasted):
    text = "".join(form(run) for run in made)
    contains(check(tmp_path, [text + text] if pasted else [text, text]), made)


@given(data=st.data(), made=runs(most=1, fewer=False))
@to_fail
def test_a_counter_that_ran_backwards_is_a_hole(tmp_path, data, made):
    lost = data.draw(holes(made[0]))
    cell = data.draw(st.sampled_from([str(2**64 - 1), "18446744073709551615.000000", str(2**64 - 24)]))
    check(tmp_path, [wide(made[0], lost, cell)])


@given(data=st.data(), made=runs(counters=tuple(NCU), most=2, fewer=False))
@quick
def test_ncu_launch_by_launch(tmp_path, data, made):
    lost = data.draw(holes(made[0])) if len(made) == 1 else frozenset()
    contains(check(tmp_path, [ncu(made, lost)], "v100"), made, lost)


@given(made=runs(counters=tuple(NCU), least=2, most=2, fewer=False))
@quick
def test_ncu_in_several_files(tmp_path, made):
    contains(check(tmp_path, [ncu([run]) for run in made], "v100"), made)


OPERATIONS = [
    f"sm__ops_path_tensor_src_{kind}.sum"
    for kind in (
        "fp16_dst_fp16",
        "fp16_dst_fp32_sparsity_on",
        "fp16_dst_fp32_sparsity_off",
        "bf16_dst_fp32",
        "tf32_dst_fp32",
        "fp64",
        "int8",
        "int4",
        "int1",
    )
]


@given(data=st.data(), capability=st.sampled_from(["7.0", "8.0", "8.6"]), made=runs(counters=tuple(OPERATIONS), most=1))
@quick
def test_tensor_operations_by_type(tmp_path, data, capability, made):
    check(tmp_path, [ncu(made, data.draw(holes(made[0])), capability)], "v100")


OPCODES = (
    "HMMA.16816.F32", "HMMA.1688.F32.BF16", "HMMA.1688.F32.TF32", "HGMMA.64x96x16.F32.BF16", "DMMA.884", "IMMA.16832.S8.S8",
    "IMMA.8832.U4.U4", "BMMA.168128.XOR.POPC", "FFMA", "HFMA2.MMA", "IADD3", "UTCHMMA.2CTA", "HMMA.884.F32.F32.STEP0",
)  # fmt: skip
BY_OPCODE = "sass__inst_executed_per_opcode_with_modifier_all"


@given(
    launches=st.lists(
        st.dictionaries(st.sampled_from(OPCODES), st.integers(0, 10**9), min_size=1), min_size=1, max_size=3
    )
)
@quick
def test_matrix_instructions_by_opcode(tmp_path, launches):
    counters = ("smsp__inst_executed.sum", BY_OPCODE)
    made = [(KERNELS[0], {counters[0]: sum(opcodes.values()), BY_OPCODE: opcodes}) for opcodes in launches]
    check(tmp_path, [ncu([Run(1, "", made, counters)], capability="9.0")], "v100")


RATE = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed"
CYCLES = "smsp__cycles_elapsed.avg"


def rates(launches):
    """Launches of one kernel with so many multiply-adds a cycle in so many cycles."""
    made = [(KERNELS[0], {RATE: rate, CYCLES: cycles}) for rate, cycles in launches]
    return ncu([Run(1, "", made, (RATE, CYCLES))])


@given(rate=st.integers(1, 5000), cycles=st.integers(1, 10**6), number=st.integers(1, 4))
@quick
def test_rates_a_cycle_of_launches_alike(tmp_path, rate, cycles, number):
    check(tmp_path, [rates([(rate, cycles)] * number)], "v100")


@given(launches=st.lists(st.tuples(st.integers(1, 5000), st.integers(1, 10**6)), min_size=2, max_size=5))
@to_fail
def test_rates_a_cycle_of_unlike_launches(tmp_path, launches):
    check(tmp_path, [rates(launches)], "v100")


def test_rates_a_cycle_of_the_issue(tmp_path):
    check(tmp_path, [rates([(1000, 100), (10, 10000)])], "v100")


@given(flops=st.integers(2, 10**9))
@to_fail
def test_flops_alone_are_a_lower_bound_of_instructions(tmp_path, flops):
    check(
        tmp_path,
        [profiled(1, METRICS, metric("flop_count_dp", flops, launches=1), metric("inst_integer", 5, launches=1))],
    )


def test_a_packed_log_that_is_cut_is_a_lower_bound():
    path, whole = SHARED / "repro" / "cut-trace.csv.gz", SHARED / "repro" / "whole-trace.csv.gz"
    if not path.exists():
        pytest.skip(f"needs the real log {path.name}, which is not part of this project")
    ((_, truth),) = totals([read(whole)]).items()
    counted = api.load(path, cache=False).counts()
    assert counted.table["integer"].iloc[0] <= truth.counters["inst_integer"].low
    assert counted.marks["integer"].iloc[0] & int(Mark.MISSING)


# ------------------------------------------------------------------------------------------------- less tells no more


def family(word):
    """A class stands for its kinds, or they for it: they are compared as one."""
    return word[:4] if word.startswith("fp") else word


def amounts(path):
    """((kernel or "all", family) -> its count, unknown as nothing; those of them that have no mark)."""
    counted = api.load(path, cache=False).counts()
    found, marked = {}, set()
    table, all_marks = counted.table.fillna(0), counted.marks
    for word in table:
        values, marks = table[word], all_marks[word]
        for kernel, value, mark in zip(counted.kernels["kernel"], values, marks, strict=True):
            for key in ((kernel, family(word)), ("all", family(word))):
                found[key] = found.get(key, 0) + value
                marked |= {key} if mark else set()
    return found, found.keys() - marked


amounts_once = cache(amounts)


def takes_away(tmp_path, before, lines, is_row, drop):
    """Without some rows nothing that is not marked may be more than the amounts `before`."""
    rows = [number for number, line in enumerate(lines) if is_row(line)]
    lost = {rows[place % len(rows)] for place in drop}
    path = tmp_path / "less.csv"
    path.write_text("".join(line for number, line in enumerate(lines) if number not in lost))
    try:
        after, exact = amounts(path)
    except EprofError:
        return
    assert not {key: (before[key], after[key]) for key in exact if after[key] > before[key] * (1 + 1e-9)}


MONOTONE = [
    "titan-wide-trace-events-and-metrics.csv",
    "k40c-wide-trace-events-only-no-units-row.csv",
    "gtx1080ti-cuda8-metrics-summary.csv",
    "gtx760-dev1-metrics-summary-lavamd.csv",
    "v100-events-and-metrics-summary-with-total.csv",
]


@pytest.mark.parametrize("name", MONOTONE)
@given(drop=st.lists(st.integers(0, 10**6), min_size=1, max_size=60))
@settings(quick, max_examples=5)
def test_rows_taken_from_a_real_log_raise_no_total(tmp_path, real_log, name, drop):
    path = real_log(name)
    before, _ = amounts_once(path)
    lines = path.read_text().splitlines(keepends=True)
    takes_away(tmp_path, before, lines, lambda line: re.match(r'"[^"]*\(\d+\)",', line), drop)


@given(
    made=runs(counters=(*ADDED, *MOVED, *INSIDE), device=K20C, alike=True),
    form=st.sampled_from([summary, wide]),
    drop=st.lists(st.integers(0, 10**6), min_size=1, max_size=20),
)
@quick
def test_rows_taken_from_a_made_log_raise_no_total(tmp_path, made, form, drop):
    lines = "".join(form(run) for run in made).splitlines(keepends=True)
    path = tmp_path / "whole.csv"
    path.write_text("".join(lines))
    before, _ = amounts(path)
    takes_away(tmp_path, before, lines, lambda line: line.startswith('"Tesla'), drop)


# ------------------------------------------------------------------------------------------------------- the judge


@pytest.mark.parametrize(
    ("value", "marks", "truth", "fine"),
    [
        (10.0, Mark(0), (10, 10, 10), True),
        (10.1, Mark(0), (10, 10, 10), False),
        (float("nan"), Mark.MISSING, (10, 10, 10), False),
        (9.0, Mark.MISSING, (10, 10, 10), True),
        (11.0, Mark.MISSING, (10, 10, 10), False),
        (5.0, Mark(0), (5, 5, float("inf")), False),
        (5.0, Mark.ESTIMATED, (5, 5, float("inf")), False),
        (5.0, Mark.MISSING, (5, 5, float("inf")), True),
        (5.0, Mark.MISSING, (0, 5, 5), False),
        (float("nan"), Mark.MISSING, (0, 5, 5), True),
    ],
)
def test_what_the_judge_says(value, marks, truth, fine):
    assert (disagreement(value, int(marks), Amount(*truth)) is None) == fine
