"""`eprof scale`: against closed forms that were worked out elsewhere, real tables, and what must hold whatever they say."""

import json
from math import log2, sqrt
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from eprof.base.errors import EprofError, UsageError
from eprof.base.toml import Document, Formula
from eprof.cli import main
from eprof.clusters import cluster
from eprof.clusters.cluster import Clock
from eprof.commands.scale import document as scale_document
from eprof.commands.scale import measured_runs, model, words
from eprof.commands.scale.model import Fit
from eprof.lab.objective import parse
from eprof.show.blocks import Medium

DATA = Path(__file__).parents[4] / "shared" / "data"
RUNS = DATA / "cluster" / "runs.csv"
PROGRAMS = sorted(file.stem for file in (Path(__file__).parents[3] / "counters" / "programs").glob("*.toml"))
SACCT = DATA / "traces" / "power" / "sacct-santis-gh200-mdtable.txt"
# Machine T of the oracles: 25 W idle, 10 W more while it computes at 2.8 GHz, growing with the square of the clock.
MACHINE = """schema = 1
name = "t"
unit = "core"
source = "a test"
basis = "assumed"
gamma = 2
[[setting]]
core_mhz = 2800
idle_w = 25
on_chip_w = 10
off_chip_w = 4
[time]
on_chip_cycles = 1.0
off_chip_s = 1e-7
[message]
start_s = 5e-6
byte_s = 1e-9
"""
# Program, size, processors: time, E1, Ep, EE at 2.8 GHz and at 2.4 GHz, from an implementation that is not eprof's.
ORACLES = [
    ("ep", 2**24, 256, 0.00217835, 19.9234, 19.9351, 0.999415, 0.999455),
    ("cg", 75000, 4, 0.0230513, 2.53607, 2.97563, 0.852282, 0.856490),
    ("cg", 75000, 16, 0.00824223, 2.53607, 3.98218, 0.636855, 0.645897),
    ("cg", 75000, 64, 0.00374354, 2.53607, 6.68973, 0.379099, 0.389365),
    ("ft", 2**20, 16, 0.00574085, 2.51658, 2.88055, 0.873647, 0.877090),
    ("ft", 2**20, 64, 0.00170056, 2.51658, 3.30510, 0.761425, 0.767111),
    ("romm", 1000, 64, 0.0437648, 70.3125, 83.4165, 0.842909, 0.846508),
    ("romm", 1000, 256, 0.0181374, 70.3125, 129.472, 0.543069, 0.549869),
]
ASKED = scale_document.Asked([parse(name) for name in ("energy", "edp", "e2d", "ed2p")])


def machine(**changes):
    return replace(cluster.read(Document.parse(MACHINE, "t.toml")), **changes)


def one_case(on, program):
    return model.Case(on, program, 1e3, [1], [on.at(None)], "interrupt")


def point(name, size, processors, *, on=None, mhz=2800, waiting="interrupt"):
    on = on or machine()
    return model.points(on, model.load(name), size, [processors], on.at(mhz), waiting)[0]


@pytest.fixture
def eprof(capsys):
    """Runs a command in this process; its exit code and what it printed."""

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(list(map(str, arguments)))
        return int(ended.value.code or 0), *capsys.readouterr()

    return run


# ------------------------------------------------------------------------------------------------------- closed form


@pytest.mark.parametrize(("name", "size", "p", "time_s", "base_j", "energy_j", "at_2800", "at_2400"), ORACLES)
def test_the_closed_form_is_that_of_the_oracle(name, size, p, time_s, base_j, energy_j, at_2800, at_2400):
    at = point(name, size, p)
    assert (at.time_s, at.base_j, at.energy_j) == pytest.approx((time_s, base_j, energy_j), rel=1e-5)
    assert at.efficiency == pytest.approx(at_2800, rel=1e-5)
    assert point(name, size, p, mhz=2400).efficiency == pytest.approx(at_2400, rel=1e-5)


def test_polling_is_dearer_than_waiting_for_an_interrupt():
    assert point("cg", 75000, 16, waiting="poll").efficiency == pytest.approx(0.556818, rel=1e-5)
    assert point("ft", 2**20, 64, waiting="poll").efficiency == pytest.approx(0.695092, rel=1e-5)


def test_less_work_together_than_alone_is_an_efficiency_above_1():
    counts = {"on_chip": "1e9", "off_chip": "1e7", "off_chip_extra": "0 - 2e6"}
    program = model.Program("x", "", "", "n", 0.9, {word: Formula.parse(text) for word, text in counts.items()})
    case = one_case(machine(), program)
    assert case.efficiency(1.0, 4, case.clocks[0]) == pytest.approx(1.161550, rel=1e-5)


def test_the_best_clock_decides_whether_efficiency_rises_with_the_clock():
    cg = model.load("cg")
    assert model.best_clock_mhz(machine(), cg) == pytest.approx(4200)
    assert [model.best_clock_mhz(machine(gamma=gamma), cg) for gamma in (None, 0.5, 1.0)] == [None] * 3
    still = Clock(2800, 25, 0, 4)
    assert model.best_clock_mhz(machine(clocks=(still,), default=still), cg) is None
    steep = machine(gamma=3.0, clocks=(Clock(2800, 25, 40, 4),), default=Clock(2800, 25, 40, 4))
    assert model.best_clock_mhz(steep, cg) == pytest.approx(1834.5, rel=1e-4)
    assert point("cg", 75000, 16, on=steep).efficiency == pytest.approx(0.720555, rel=1e-5)
    assert point("cg", 75000, 16, on=steep, mhz=2400).efficiency == pytest.approx(0.706292, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("romm", [42.95, 97.15, 201.31, 407.16, 817.36, 1636.88]),
        ("ft", [4686, 526294, 4.79e7, 5.15e8, 1.70e9, 3.11e9]),
        ("cg", [4592, None, None, None, None, None]),
    ],
)
def test_how_a_problem_must_grow_to_keep_its_efficiency(name, sizes):
    on = machine()
    for processors, size in zip((2, 4, 8, 16, 32, 64), sizes, strict=True):
        kept = model.size_to_keep(one_case(on, model.load(name)), processors, 0.9)
        assert kept.size == (None if size is None else pytest.approx(size, rel=2e-3))
        assert (kept.because is None) == (size is not None)


def test_memory_bounds_how_far_a_problem_may_grow():
    on = machine(memory_bytes=1e6)
    kept = model.size_to_keep(one_case(on, model.load("romm")), 64, 0.9)
    assert kept.size is None and "the largest that memory holds" in kept.because


def test_memory_is_filled_to_four_fifths():
    """(24 + 8 (p - 1)) n^2 bytes of romm on 16 processors of 1 MB each."""
    asked = ASKED._replace(keep=0.99)
    on = machine(memory_bytes=1e6)
    case = scale_document.Case(on, model.load("romm"), 100, [1, 16], on.clocks, "interrupt")
    (kept,) = scale_document.modelled(case, asked).keep
    largest = sqrt(0.8 * 16e6 / (24 + 8 * 15))
    assert kept.size is None and f"at {largest:.3g}, the largest that memory holds" in kept.because


def test_a_memory_that_holds_next_to_nothing_is_what_bounds_a_problem():
    kept = model.size_to_keep(one_case(machine(memory_bytes=100.0), model.load("romm")), 64, 0.9)
    assert kept.size is None and "the largest that memory holds" in kept.because


def test_a_size_that_efficiency_no_longer_reacts_to_is_told_from_one_that_memory_ends():
    """A program whose extra work grows as it does reacts to no size; one with messages does, as far as memory goes."""
    text = 'schema = 1\nname = "x"\nsource = "t"\nalpha = 1\nmemory_bytes = "n"\n[count]\non_chip = "n"\noff_chip = "0 * n"\n'
    on = machine(memory_bytes=1e6)
    for extra, reason in (('on_chip_extra = "n"', "no longer reacts"), ('messages = "1e4"', "the largest that memory")):
        counted = model.read(Document.parse(text + extra + "\n", "x.toml"))
        kept = model.size_to_keep(one_case(on, counted), 4, 0.999)
        assert kept.size is None and reason in kept.because


@pytest.mark.parametrize("least", [0.4, 1.0, 2.5])
@pytest.mark.parametrize(("spread", "said"), [(1.0, False), (1.049, False), (1.051, True), (3.0, True)])
def test_alpha_that_varies_by_more_than_5_percent_is_told(least, spread, said):
    alphas = {"1": least * 1.01 if spread > 1.02 else least, "2": least * spread, "4": least}
    fitted = Fit(
        fitted_on=[1, 2, 4],
        factors={},
        alpha=least,
        alpha_by_processors=alphas,
        left_out_time=None,
        left_out_energy=None,
        predictions=[],
    )
    assert bool(model.fit_warnings(machine(), fitted)) == said


counts = st.floats(0, 1e12)


@given(on_chip=st.floats(1, 1e12), off_chip=counts, messages=counts, network_bytes=counts, factor=st.floats(0.01, 100))
@settings(max_examples=50)
def test_efficiency_does_not_know_the_unit_of_power(on_chip, off_chip, messages, network_bytes, factor):
    amounts = {"on_chip": on_chip, "off_chip": off_chip, "messages": messages, "network_bytes": network_bytes}
    counts = {word: Formula.parse(f"{amount:.17g}") for word, amount in amounts.items()}
    case = one_case(machine(), model.Program("x", "", "", "n", 0.9, counts))._replace(waiting="poll")
    clock = case.clocks[0]
    scaled = Clock(clock.core_mhz, factor * clock.idle_w, factor * clock.on_chip_w, factor * clock.off_chip_w)
    assert case.efficiency(1.0, 4, scaled) == pytest.approx(case.efficiency(1.0, 4, clock), rel=1e-9)


@given(
    name=st.sampled_from(PROGRAMS),
    size=st.floats(100, 1e6),
    processors=st.sampled_from([1, 4, 16, 64]),
)
@settings(max_examples=60)
def test_what_p_processors_take_more_adds_up(name, size, processors):
    at = point(name, size, processors, waiting="poll")
    assert at.base_j + sum(at.overhead_j.values()) == pytest.approx(at.energy_j, rel=1e-12)
    if processors == 1:
        assert at.efficiency == pytest.approx(1) and not any(at.overhead_j.values())


def test_alpha_drops_out_where_nothing_draws_more_than_idle_power():
    still = Clock(2800, 25, 0, 0)
    on = machine(clocks=(still,), default=still)
    counts = {word: Formula.parse("1e6") for word in ("on_chip", "off_chip", "off_chip_extra", "messages")}
    cases = [one_case(on, model.Program("x", "", "", "n", alpha, counts)) for alpha in (0.5, 1.5)]
    half, more = (case._replace(waiting="poll").efficiency(1.0, 4, still) for case in cases)
    assert half == pytest.approx(more) and half < 1


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_grows_with_its_size_and_says_what_it_counts(name):
    one, two = (model.load(name).work(size, 16) for size in (1e4, 2e4))
    assert two["on_chip"] > one["on_chip"] > 0
    assert model.load(name).source and model.load(name).about


def test_a_table_of_messages_is_a_line_between_its_points_and_beyond():
    table = cluster.Messages((1.0, 101.0, 201.0), (1.0, 2.0, 5.0))
    assert [table.of_size(size) for size in (0.5, 1, 51, 151, 301)] == [1, 1, 1.5, 3.5, 8]


@pytest.mark.parametrize(
    ("extra", "shape"),
    [
        ("", 1),  # the same work, however many processors share it
        ('on_chip_extra = "0.019 * n * (p - 1) / 63"', 1),  # 0.981 of it
        ('on_chip_extra = "0.022 * n * (p - 1) / 63"', 4),
        ('on_chip_extra = "n * (p - 1)"', 4),  # more work in proportion to the problem
        ('messages = "n * p"', 4),
        ('on_chip_extra = "2e9 * (p - 1)"', 2),  # more work, whatever the problem
        ('off_chip_extra = "2e7 * (p - 1)"\nmessages = "p"', 2),
        ('messages = "1e6 * (p - 1)"', 3),  # messages, whatever the problem
        ('messages = "p"\nnetwork_bytes = "1e9 * (p - 1)"', 3),
        ('messages = "1e6 * (p - 1)"\non_chip_extra = "2e10 * (p - 1)"', 2),
        ('messages = "1e6 * (p - 1)"\non_chip_extra = "2e8 * (p - 1)"', 3),
    ],
)
def test_the_class_of_a_program_is_how_its_efficiency_falls(extra, shape):
    text = f'schema = 1\nname = "x"\nsource = "t"\nalpha = 1\n[count]\non_chip = "n"\noff_chip = "0 * n"\n{extra}\n'
    on = machine()
    for waiting in ("interrupt", "poll"):
        case = scale_document.Case(on, model.read(Document.parse(text, "x.toml")), 1e10, [64, 1], on.clocks, waiting)
        assert scale_document.modelled(case, ASKED).shape == shape


def test_a_deadline_and_a_power_limit_allow_what_meets_them_and_ties_go_to_fewer_seconds(tmp_path):
    table = tmp_path / "runs.csv"
    table.write_text("program,size,processes,time_s,energy_j\na,1,1,10,100\na,1,2,6,120\na,1,4,5,150\na,1,8,4,150\n")
    runs, notes = measured_runs.read([str(table)])

    def chosen(objective, deadline_s=None, power_limit_w=None):
        asked = ASKED._replace(objectives=[parse(objective, None, power_limit_w)], deadline_s=deadline_s)
        (answer,) = scale_document.measured(runs, notes, "runs", asked).best
        return answer.processors

    assert [chosen("energy", deadline_s) for deadline_s in (None, 10, 9.9, 6, 5, 4, 3.9)] == [1, 1, 2, 2, 8, 8, None]
    assert [chosen("time", None, watts) for watts in (None, 37.5, 37.4, 30, 20, 10, 9.9)] == [8, 8, 4, 4, 2, 1, None]
    assert chosen("edp") == 8
    rows = scale_document.measured(runs, notes, "runs", ASKED).rows
    assert [row.pareto for row in rows] == [True, True, False, True]


def test_a_cluster_s_nodes_end_somewhere():
    on = cluster.load("gigabit-demo")
    for most, said in ((128, False), (129, True)):
        case = scale_document.Case(on, model.load("ep"), 1e6, [1, most], on.clocks, "poll")
        assert any("has 128 nodes" in warning for warning in scale_document.modelled(case, ASKED).warnings) == said


# ------------------------------------------------------------------------------------------------------ measured runs


def runs_of(name):
    if not RUNS.is_file():
        pytest.skip("the shared data is not here")
    runs, _ = measured_runs.read([str(RUNS)])
    return [run for run in runs if run.program == name]


def test_efficiency_and_best_node_counts_of_measured_runs():
    rows = scale_document.measured(runs_of("ft"), [], "runs", ASKED).rows
    at = {(row.processors, row.core_mhz): row for row in rows}
    assert [at[p, 2800].efficiency for p in (4, 16, 128)] == pytest.approx([0.4663, 0.3978, 0.2069], abs=5e-5)
    assert at[4, 2800].efficiency_to_slowest_clock == pytest.approx(1782.579202 / 3854.972073)
    best = {
        b.objective: b.processors
        for b in scale_document.measured(runs_of("cg"), [], "runs", ASKED).best
        if b.size == 3e5
    }
    assert best == {"energy": 1, "edp": 16, "e2d": 16, "ed2p": 64}


def test_a_fit_on_small_runs_predicts_large_ones():
    fitted = model.fit_program(cluster.load("gigabit-demo"), model.load("ft"), runs_of("ft"), [16, 32, 64])
    assert fitted.fitted_on == [1, 2, 4, 8]
    assert fitted.factors["work"] == pytest.approx(6, rel=1e-3)  # the runs make six iterations
    assert max(abs(prediction.energy_error) for prediction in fitted.predictions) < 0.05


@pytest.mark.parametrize(
    ("counts", "lacks"),
    [((1, 2, 4), "their times and energies do not follow what ft counts"), ((2, 4, 8), "give runs on one processor")],
)
def test_runs_that_show_no_work_are_told_what_they_lack(counts, lacks):
    runs = [measured_runs.Run("ft", 2.0**20, count, 2400.0, 10 / count, 1e-3) for count in counts]
    with pytest.raises(UsageError, match=f"do not show how much work the program does; {lacks}"):
        model.fit_program(cluster.load("gigabit-demo"), model.load("ft"), runs, [])


def test_a_fit_is_to_the_runs_of_its_program_whatever_a_table_of_one_calls_it():
    runs = [measured_runs.Run(name, 10.0, 1, None, 1.0, 5.0) for name in ("ft", "cg", "ft")]
    assert model.runs_of_program(runs, "ft") == [runs[0], runs[2]] and model.runs_of_program([runs[1]], "ft") == [
        runs[1]
    ]
    with pytest.raises(UsageError, match="There is no run of ep; there are runs of ft, cg"):
        model.runs_of_program(runs, "ep")


def test_two_numbers_for_all_messages_are_told_to_drift():
    on = cluster.load("gigabit-demo")
    linear = replace(on, messages=cluster.Messages((0.0, 1.0), (2.02e-4, 2.02e-4 + 8e-9)))
    fitted = model.fit_program(linear, model.load("ft"), runs_of("ft"), [16, 32, 64])
    assert max(abs(prediction.energy_error) for prediction in fitted.predictions) > 0.25
    assert "predictions drift" in " ".join(model.fit_warnings(linear, fitted))


def test_jobs_of_sacct_do_not_add_up():
    if not SACCT.is_file():
        pytest.skip("the shared data is not here")
    (run,), notes = measured_runs.read([str(SACCT)])
    assert (run.processors, run.time_s, run.energy_j) == (4, 2102, 20543125)


def test_a_job_without_energy_of_its_own_has_that_of_its_largest_step(tmp_path):
    table = tmp_path / "jobs.txt"
    table.write_text(
        "JobID|JobName|NNodes|ElapsedRaw|ConsumedEnergyRaw|ReqCPUFreq\n"
        "7|ft|4|10||2400000\n7.batch|batch|1|10|90|2.40M\n7.0|ft|4|10|400|2.40M\n8|ft|2|0|0|Unknown\n9_1|ft|1|30|0|Unknown\n"
    )
    runs, notes = measured_runs.read([str(table)])
    assert [(run.processors, run.core_mhz, run.energy_j) for run in runs] == [(4, 2400, 400), (1, None, None)]
    said = " ".join(notes)
    assert "1 of 3 jobs left out, as no whole runs: 1 that took no time" in said
    assert "the energy of job 7 is that of its largest step" in said and "ask sacct for State" in said


@pytest.mark.parametrize(("size", "core_mhz"), [(None, None), (10.0, None), (None, 2400.0)])
def test_a_table_has_no_column_of_which_nothing_is_known(size, core_mhz):
    runs = [measured_runs.Run("a", size, count, core_mhz, 8.0 / count, 100.0) for count in (1, 2)]
    labels = {
        column.label for column in words.rows(scale_document.measured(runs, [], "runs", ASKED)).on(Medium.PAGE).columns
    }
    assert ("size" in labels) == (size is not None)
    assert ("MHz" in labels) == ("to slowest clock" in labels) == (core_mhz is not None)


def test_what_is_not_known_is_no_zero(tmp_path):
    table = tmp_path / "runs.csv"
    table.write_text("program,size,processes,core_mhz,time_s,energy_j\na,1,1,,10,0\na,1,2,,6,200\na,1,2,,8,\n")
    runs, notes = measured_runs.read([str(table)])
    document = scale_document.measured(runs, notes, "runs", ASKED)
    assert [(row.energy_j, row.time_s, row.repeats) for row in document.rows] == [(None, 10, 1), (200, 7, 2)]
    assert all(row.efficiency is None for row in document.rows)
    said = " ".join(document.warnings)
    assert "1 of 2 runs without energy" in said and "without efficiency" in said and "medians" in said


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty"),
        ("a,b\n1,2\n", "no column processes or time_s"),
        ("p,time_s\n0,1\n", ":2: processes is `0`"),
        ("p,time_s\n2.5,1\n", ":2: processes is `2.5`"),
        ("p,time_s\n2,0\n", ":2: time_s is `0`"),
        ("p,time_s\n2,nan\n", ":2: time_s is `nan`"),
        ("p,time_s,energy_j\n2,1,-4\n", ":2: energy_j is `-4`"),
        ("p,time_s\n2,1,3\n", ":2: 3 cells, but the header has 2"),
        ("p,time_s\n", "has no runs"),
    ],
)
def test_a_bad_table_is_refused_in_one_sentence(tmp_path, text, sentence):
    table = tmp_path / "runs.csv"
    table.write_text(text)
    with pytest.raises(EprofError, match=sentence.replace("(", r"\(")):
        scale_document.measured(*measured_runs.read([str(table)]), str(table), ASKED)


@given(cut=st.integers(0, 400), noise=st.binary(max_size=8))
@settings(max_examples=80)
def test_a_table_cut_or_damaged_anywhere_gives_rows_or_one_sentence(tmp_path_factory, cut, noise):
    table = tmp_path_factory.getbasetemp() / "damaged.csv"
    text = b"program,size,processes,core_mhz,time_s,energy_j\n" + b"ft,33554432,4,2800,7.661194,3854.972073\n" * 8
    table.write_bytes(text[:cut] + noise + text[cut + 3 :])
    try:
        scale_document.measured(*measured_runs.read([str(table)]), str(table), ASKED)
    except EprofError as err:
        assert "\n" not in str(err)


# ------------------------------------------------------------------------------------------------------ definitions


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("byte_s = 1e-9", "", "`byte_s` is missing"),
        ("byte_s = 1e-9", "byte_s = -1", "number from 0"),
        ('basis = "assumed"', 'basis = "guessed"', "`basis` is 'guessed'"),
        ("core_mhz = 2800", "", "`core_mhz` is missing"),
        ("[time]", "[times]", "unknown key `times`"),
        ("start_s = 5e-6\nbyte_s = 1e-9", "bytes = [1, 1]\nseconds = [1, 2]", "must rise"),
        ("start_s = 5e-6\nbyte_s = 1e-9", "bytes = [1]\nseconds = [1]", "two numbers or more"),
    ],
)
def test_a_bad_cluster_is_refused_with_its_line(before, after, sentence):
    with pytest.raises(EprofError, match=f"t.toml:[0-9]+: .*{sentence}"):
        cluster.read(Document.parse(MACHINE.replace(before, after), "t.toml"))


def test_a_clock_that_the_table_lacks_is_refused():
    with pytest.raises(EprofError, match="no powers at 1000 MHz; it lists 2800 and 2400 MHz"):
        cluster.load("gigabit-demo").at(1000)


@pytest.mark.parametrize("formula", ["n ** 2", "n^p", "sin(n)", "n^-1", "__import__('os')", "n^99", "log2(n, 2)"])
def test_a_formula_may_grow_but_no_more(formula):
    text = f'schema = 1\nname = "x"\nsource = "t"\nalpha = 1\n[count]\non_chip = "{formula}"\noff_chip = "n"\n'
    with pytest.raises(EprofError, match="x.toml:6"):
        model.read(Document.parse(text, "x.toml"))


@pytest.mark.parametrize("formula", ["log2(n - 2)", "sqrt(1 - n)", "1 / (n - 2)", "n^64 * n^64 * n^64", "-n"])
def test_a_count_that_is_no_number_is_said(formula):
    text = f'schema = 1\nname = "x"\nsource = "t"\nalpha = 1\n[count]\non_chip = "{formula}"\noff_chip = "n"\n'
    counted = model.read(Document.parse(text, "x.toml"))
    with pytest.raises(UsageError, match="x: `on_chip`"):
        counted.work(2 if "2" in formula else 1e6, 4)


def test_the_formulas_of_a_program_are_arithmetic():
    work = model.load("cg").work(1000, 16)
    assert work["network_bytes"] == 240 * 1000 * (sqrt(16) - 1) and work["messages"] == 30 * 16 * log2(16)


# ------------------------------------------------------------------------------------------------------ command line


def test_the_command_tells_best_place_cause_and_what_polling_costs(tmp_path, eprof):
    code, out, _ = eprof("scale", "--program", "ft", "--size", "2^25", "-p", "1..128", "-o", tmp_path / "x.json")
    assert code == 0 and len(out.splitlines()) <= 20
    document = json.loads((tmp_path / "x.json").read_text())
    assert document["schema"] == "eprof.scale/1" and len(document["rows"]) == 16
    assert "energy if processors poll" in out and "assumed" in out


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ([], 2, "Give tables of RUNS"),
        (["--program", "ft", "--size", "0", "-p", "4"], 2, "no size above 0"),
        (["--program", "ft", "--size", "1e30", "-p", "4"], 2, "below 10^18"),
        (["--program", "ft", "--size", "2^25", "-p", "0"], 2, "from 1 to"),
        (["--program", "ft", "--size", "2^25", "-p", "2.5"], 2, "no whole number of nodes"),
        (["--program", "ft", "--size", "2^25", "-p", "1,8..4"], 2, "`8..4` goes from more to less"),
        (["--program", "ft", "--size", "2^25", "-p", "4", "--clock", "1000"], 1, "no powers at 1000 MHz"),
        (["--program", "gt", "--size", "2^25", "-p", "4"], 1, "no program `gt`"),
        (["--program", "ft", "--size", "2^25", "-p", "4", "--cluster", "x"], 1, "no cluster `x`"),
        (["--program", "ft", "--size", "2^25", "-p", "4", "--keep", "1.5"], 2, "between 0 and 1"),
        (["nowhere.csv"], 1, "nowhere.csv"),
    ],
)
def test_bad_requests_get_one_sentence(arguments, code, sentence, eprof):
    ended, out, err = eprof("scale", *arguments)
    assert (ended, out) == (code, "") and sentence in err


@pytest.mark.parametrize(
    ("energy_j", "sentence"),
    [(125, "falls to 0.800 (b of 1 on 2 nodes)."), (50, "is nowhere below 1.25 (a of 1 on 2 nodes).")],
)
def test_an_efficiency_above_1_is_not_said_to_fall(tmp_path, eprof, energy_j, sentence):
    table = tmp_path / "runs.csv"
    rows = ["a,1,1,10,100", "a,1,2,5,80", "b,1,1,10,100", f"b,1,2,5,{energy_j}"]
    table.write_text("\n".join(["program,size,processes,time_s,energy_j", *rows, ""]))
    code, out, _ = eprof("scale", table)
    assert code == 0 and sentence in " ".join(out.split())


@pytest.mark.parametrize("basis", ["assumed", "measured"])
def test_what_rests_on_an_assumed_cluster_is_marked_in_every_form(tmp_path, eprof, basis):
    (tmp_path / "t.toml").write_text(MACHINE.replace('basis = "assumed"', f'basis = "{basis}"'))
    asked = ["scale", "--program", "cg", "--size", "75000", "-p", "1,4", "--cluster", tmp_path / "t.toml"]
    outputs = [tmp_path / f"x.{suffix}" for suffix in ("json", "csv", "html", "md")]
    code, out, _ = eprof(*asked, "-v", *(word for path in outputs for word in ("-o", path)))
    assert code == 0
    is_assumed = basis == "assumed"
    document = json.loads(outputs[0].read_text())
    marks = ["assumed"] if is_assumed else []
    assert all(entry["marks"] == entry["time_marks"] == marks for entry in [*document["rows"], *document["best"]])
    header, *rows = (line.split(",") for line in outputs[1].read_text().splitlines())
    assert len(rows) == 2 and all(row[header.index("marks")] == "".join(marks) for row in rows)
    assert ("?2.54 J" in out) == ("?2.98 J" in out) == is_assumed and "2.98 J" in out
    assert ("are assumed: nobody measured them" in " ".join(out.split())) == is_assumed
    assert ("2.98 J" in outputs[2].read_text().replace("\u202f", " ")) and "2.98" in outputs[3].read_text()
    figures = [part.split("</dd>")[0] for part in outputs[2].read_text().split("<dt>")[1:]]
    assert all(("?" in part) == is_assumed for part in figures if "Least" in part)


@pytest.mark.parametrize("suffix", ["html", "md", "csv", "txt", "parquet"])
def test_every_form_of_the_document_is_made(tmp_path, suffix, eprof):
    out = tmp_path / f"x.{suffix}"
    code, *_ = eprof("scale", "--program", "romm", "--size", "1000", "-p", "1..64", "--keep", "0.9", "-q", "-o", out)
    assert code == 0 and out.stat().st_size > 200


def test_the_first_line_is_the_answer_with_its_numbers(capsys, tmp_path):
    with pytest.raises(SystemExit):
        main(["scale", "--program", "ft", "--size", "2^25", "-p", "1..128", "--clock", "2400,2800"])
    assert (
        capsys.readouterr().out.splitlines()[2] == "32 nodes at 2800 MHz take the least energy x time: 735 J, 190 ms."
    )
    table = tmp_path / "runs.csv"
    rows = ["a,1,1,2800,4,40", "a,1,2,2800,3,50", "b,9,1,2800,8,80", "b,9,2,2800,2,90", "b,3,1,2800,1,1"]
    table.write_text("\n".join(["program,size,processes,core_mhz,time_s,energy_j", *rows]))
    with pytest.raises(SystemExit):
        main(["scale", str(table), "-o", str(tmp_path / "s.html")])
    said = capsys.readouterr().out
    assert (
        "Least energy x time: a of 1 on 2 nodes at 2800 MHz (50.0 J, 3.00 s), b of 9 on 2 nodes at 2800 MHz (90.0 J, 2.00 s)."
        in " ".join(said.split())
    )
    assert '<dl class="figures">' not in (tmp_path / "s.html").read_text()  # several problems have no key figure


def test_a_page_draws_the_lines_that_have_a_point(tmp_path):
    """A program of one run has energy but no efficiency: its line is in no chart, and the others are drawn."""
    table, page = tmp_path / "runs.csv", tmp_path / "s.html"
    table.write_text("program,processes,time_s,energy_j\na,1,4,40\na,2,3,50\nb,4,3,50\n")
    with pytest.raises(SystemExit) as ended:
        main(["scale", str(table), "-o", str(page)])
    assert ended.value.code == 0 and page.read_text().count("<svg") >= 2


def test_lines_that_no_eye_tells_apart_are_drawn_once():
    from eprof.commands.scale import page

    points = [(1, 1.0), (2, 0.5)]
    assert page._is_alike([(1, 1.01), (2, 0.505)], points)
    assert not page._is_alike([(1, 1.0), (2, 0.52)], points) and not page._is_alike(points[:1], points)


def test_a_program_that_reads_files_needs_a_cluster_that_tells_what_they_take():
    """[S] 4.4 and 4.8: T_IO is a term of the time, dP_IO of the power above idle; each processor reads all."""
    text = (Path(__file__).parents[3] / "costs" / "clusters" / "gigabit-demo.toml").read_text()
    counts = 'on_chip = "1e9 * n"\noff_chip = "0"\nio_bytes = "1e9 * n"\nio_bytes_extra = "1e9 * n * (p - 1)"\n'
    about = 'schema = 1\nname = "reader"\nsource = "t"\nalpha = 1.0\n[count]\n'
    program = model.read(Document.parse(about + counts, "x.toml"))

    def modelled(more):
        machine = cluster.read(Document.parse(text + more, "t.toml"))
        case = scale_document.Case(machine, program, 1.0, [1, 4], [machine.default], "interrupt")
        return scale_document.modelled(case, scale_document.Asked([parse("energy")])).rows

    with pytest.raises(UsageError, match=r"gigabit-demo has no \[storage\], which a program with `io_bytes` needs"):
        modelled("")
    one, four = modelled("[storage]\nbyte_s = 2e-9\nbusy_w = 12\n")
    computing_s = 1e9 / 2.8e9
    assert one.time_s == pytest.approx(computing_s + 2.0)
    assert one.energy_j == pytest.approx(95 * (computing_s + 2.0) + 105 * computing_s + 12 * 2.0)
    assert four.overhead_j["io"] == pytest.approx(3 * 2.0 * (95 + 12)) == sum(four.overhead_j.values())
