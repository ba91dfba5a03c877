"""`eprof timeline`: joules of functions from steps of power, logs of real meters, clocks that are apart."""

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eprof.base.errors import EprofError
from eprof.cli import main
from eprof.commands.timeline import document as timeline_document
from eprof.commands.timeline import fusion, joules, page, words
from eprof.lab.power import logs as power
from eprof.lab.power import marks
from eprof.lab.power.marks import Mark, Marks
from eprof.lab.power.series import Series, without_changes
from eprof.show.amounts import MISSING

TRACES = Path(__file__).parents[4] / "shared" / "data" / "traces"
RAPL = Path(__file__).parents[4] / "shared" / "data" / "cpu" / "perf-csv-interval-rapl-in-readme.md"


def shared(path):
    if not path.is_file():
        pytest.skip("the shared data is not here")
    return str(path)


def written(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    return str(path)


def document(tmp_path, table, mark_table=None, **asked):
    notes = []
    series = power.read(written(tmp_path, "power.csv", table), notes)
    read = marks.read(written(tmp_path, "marks.csv", mark_table)) if mark_table else Marks((), False)
    return fused_document(series, read, notes, **asked)


def fused_document(series, read, notes, **asked):
    return timeline_document.document(
        fusion.fused(series, read, fusion.Asked(**asked), notes),
        fusion.Asked(**asked),
        "a test",
    )


def steps(times):
    """100 W before 4 s, 50 W from then on."""
    return "time_s,cpu_w\n" + "".join(f"{time},{100 if time < 4 else 50}\n" for time in times)


TWO = "begin_s,end_s,name\n0,4,compute\n4,10,exchange\n"


# ------------------------------------------------------------------------------------------------------------- joules


def test_functions_get_the_joules_of_their_time(tmp_path):
    made = document(tmp_path, steps(range(10)), TWO)
    assert {function.name: function.energy_j for function in made.functions} == {
        "compute": {"cpu": 400},
        "exchange": {"cpu": 300},
    }
    assert made.total_j == 700 and made.outside_j == {"cpu": 0}


def test_samples_between_the_marks_see_a_step_late_and_sync_finds_by_how_much(tmp_path):
    times = [second - 0.5 for second in range(11)]
    late = document(tmp_path, steps(times), TWO)
    assert [function.energy_j["cpu"] for function in late.functions] == [400, 325]
    found = document(tmp_path, steps(times), TWO, sync_s=1.0)
    assert [function.energy_j["cpu"] for function in found.functions] == pytest.approx([400, 300])
    assert found.components[0].offset_s == pytest.approx(-0.5)
    assert found.components[0].moved_j_per_ms == pytest.approx(0.05)  # it falls by 50 W at 4 s


def test_clocks_that_are_apart_move_the_jump_at_a_border_whatever_the_period():
    times = np.arange(0, 10, 0.25)
    series = Series.of_power("cpu", "s", times, np.where(times < 4, 100.0, 50.0), False)
    pieces = marks.exclusive([Mark("compute", 2, 4), Mark("exchange", 4, 6)])
    assert joules.moved_j_per_ms(series, pieces) == pytest.approx(0.05), "50 W for a ms, at 4 s alone"


@pytest.mark.parametrize(("at_h", "way_s"), [(3, -3600), (2, 3600)])
def test_a_clock_is_set_on_the_sunday_on_which_the_hour_comes_not_on_the_day_that_the_log_began(at_h, way_s):
    """Samples of a minute from Saturday evening on, 2026-10-24: only the jump itself is in the night of Sunday."""
    began = datetime(2026, 10, 24, 20, tzinfo=UTC).timestamp()
    true_s = began + 60.0 * np.arange(12 * 60)
    changed_s = datetime(2026, 10, 25, at_h, tzinfo=UTC).timestamp()
    shown_s = true_s + way_s * (true_s >= changed_s)
    times, changes = without_changes(shown_s)
    assert times.tolist() == true_s.tolist() and changes == [(changed_s + way_s, way_s)]
    days_before = shown_s - 3 * 86400
    assert without_changes(days_before)[1] == [], "clocks do not change on a Thursday"


def test_the_innermost_function_owns_the_joules_and_recursion_counts_once(tmp_path):
    nested = "begin_s,end_s,name\n0,10,main\n2,6,solve\n3,5,solve\n4,5,wait\n"
    made = document(tmp_path, "time_s,w_w\n" + "".join(f"{t},10\n" for t in range(12)), nested)
    assert {f.name: (f.energy_j["w"], f.inclusive_j["w"], f.calls) for f in made.functions} == {
        "main": (60, 100, 1),
        "solve": (30, 40, 2),
        "wait": (10, 10, 1),
    }
    assert made.outside_j["w"] == 20


@given(
    watts=st.lists(st.floats(0, 1e4), min_size=2, max_size=30),
    spans=st.lists(st.tuples(st.floats(-5, 40), st.floats(0.01, 20), st.sampled_from("abc")), min_size=1, max_size=12),
)
@settings(max_examples=80)
def test_functions_and_the_rest_are_the_integral(watts, spans):
    series = Series.of_power("c", "s", np.arange(float(len(watts))), np.array(watts), False)
    pieces = marks.exclusive(sorted((Mark(name, at, at + long) for at, long, name in spans), key=lambda m: m.begin_s))
    inside = series.energy_j(pieces.begin_s, pieces.end_s).sum()
    covered = np.zeros(0)
    grid = np.unique(np.concatenate([series.edges, pieces.begin_s, pieces.end_s, covered]))
    middle = (grid[1:] + grid[:-1]) / 2
    open_ = np.array([any(at <= moment < at + long for at, long, _ in spans) for moment in middle], dtype=bool)
    expected = series.energy_j(grid[:-1], grid[1:])[open_].sum()
    assert inside == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_ranks_are_told_wherever_their_column_stands(tmp_path):
    read = marks.read(written(tmp_path, "marks.csv", "rank,begin_s,end_s,name\n0,0,1,a\n1,0,2,a\n"))
    assert [mark.rank for mark in read.marks] == ["0", "1"]


def test_idle_power_is_what_was_drawn_before_and_after(tmp_path):
    watts = [30] * 4 + [90] * 4 + [45] * 4  # a board that stays warm
    table = "time_s,cpu_w\n" + "".join(f"{t},{watt}\n" for t, watt in enumerate(watts))
    made = document(tmp_path, table, "begin_s,end_s,name\n4,8,work\n")
    assert made.components[0].idle_w == 30
    assert made.functions[0].above_idle_j == {"cpu": 240}


def test_a_function_shorter_than_three_samples_is_estimated(tmp_path):
    made = document(tmp_path, steps(range(10)), "begin_s,end_s,name\n0,4,long\n5,5.5,short\n")
    assert {function.name: function.estimated for function in made.functions} == {"long": False, "short": True}
    made = document(tmp_path, steps(range(10)), "begin_s,end_s,name\n0,9,main\n1,8,step\n")
    assert [(each.estimated, each.inclusive_estimated) for each in made.functions] == [(True, False), (False, False)]


# ---------------------------------------------------------------------------------------------------------- real logs


def test_nvidia_smi_and_the_nsys_run_beside_it_meet_though_the_clock_has_no_zone():
    notes = []
    series = power.read(shared(TRACES / "power" / "flame-torch-ex-smi.csv"), notes)
    ranges = marks.read(shared(TRACES / "nsys" / "flame-torch-ex.sqlite"))
    made = fused_document(series, ranges, notes)
    assert "moved by +4 h" in " ".join(made.warnings)
    inside = sum(function.energy_j["gpu"] for function in made.functions)
    assert inside + made.outside_j["gpu"] == pytest.approx(made.total_j, rel=1e-9)
    assert {function.name for function in made.functions} >= {"forward", "iteration19"}


@pytest.mark.parametrize(
    ("name", "joules"),
    [
        ("flame-nvidia-smi-50ms.csv", {"gpu": 80.959}),
        ("tegra-orin-nano-bjgeiser.log", {"VDD_IN": 1358.6, "VDD_CPU_GPU_CV": 727.3, "VDD_SOC": 207.07}),
        ("turbostat-nopkgcol-spr.txt", {"PkgWatt": 1539.4, "RAMWatt": 24.44}),
    ],
)
def test_logs_of_real_meters(name, joules):
    series = power.read(shared(TRACES / "power" / name), [])
    assert {s.component: s.energy_j(s.edges[[0]], s.edges[[-1]])[0] for s in series} == pytest.approx(joules, rel=1e-4)


def test_rails_inside_of_another_are_not_added(tmp_path):
    series = power.read(shared(TRACES / "power" / "tegra-orin-nano-bjgeiser.log"), [])
    made = fused_document(series, Marks((), False), [])
    assert made.total_j == pytest.approx(1358.6, rel=1e-4)
    assert [component.part_of for component in made.components] == [None, "VDD_IN", "VDD_IN"]


def test_columns_that_begin_alike_are_a_package_and_its_cores(tmp_path):
    header = "time_s,host_a_watts_core,host_a_watts_package,host_b_watts_core"
    made = document(tmp_path, f"{header}\n0,1,3,2\n1,1,3,2\n")
    assert {component.name: component.part_of for component in made.components} == {
        "host_a core": "host_a package",
        "host_a package": None,
        "host_b core": None,
    }, "cores of another host are none of its own"
    assert made.total_j == 10


def test_cores_lie_in_their_package_and_all_in_the_platform(tmp_path):
    made = document(tmp_path, "time_s,psys_w,package-0_W,core_w,dram_kW\n0,150,100,60,0.02\n1,150,100,60,0.02\n")
    assert {component.name: (component.energy_j, component.part_of) for component in made.components} == {
        "psys": (300, None),
        "package-0": (200, "psys"),
        "core": (120, "psys"),
        "dram": (40, "psys"),
    }
    assert made.total_j == 300
    made = document(tmp_path, "time_s,package_w,cores_w,dram_w\n0,100,60,20\n1,100,60,20\n")
    assert made.total_j == 240


@pytest.mark.parametrize("unit", [1e-3, 1e-6, 1e-9])
def test_times_since_the_epoch_may_be_in_parts_of_a_second(tmp_path, unit):
    lines = [f"{round((1760000000 + second) / unit)},100\n" for second in range(10)]
    made = document(tmp_path, "timestamp,cpu_w\n" + "".join(lines), "begin_s,end_s,name\n1760000002,1760000005,x\n")
    assert made.functions[0].energy_j["cpu"] == pytest.approx(300)
    assert made.total_j == pytest.approx(1000)


def test_a_mark_that_reaches_beyond_the_power_is_a_lower_bound(tmp_path):
    made = document(tmp_path, steps(range(10)), "begin_s,end_s,name\n-5,4,early\n4,6,inside\n6,40,late\n")
    assert [function.time_s for function in made.functions] == [4, 2, 4]
    assert any("`early`, `late`: marked also where no power was logged" in warning for warning in made.warnings)


def test_joules_of_perf_intervals_add_up_to_what_perf_printed():
    (series,) = power.read(shared(RAPL), [])
    assert series.energy_j(series.edges[[0]], series.edges[[-1]])[0] == pytest.approx(595.11)


@pytest.mark.parametrize("name", ["rocm-smi-mi300x-concise.txt", "ipmi-dcmi-wdes.txt", "pcm-power-excerpt.txt"])
def test_single_readings_are_refused(name):
    with pytest.raises(EprofError, match="and no power over time"):
        power.read(shared(TRACES / "power" / name), [])


def test_regions_of_otf2_print_are_marks_of_a_rank():
    read = marks.read(shared(TRACES / "mpi" / "ping-pong-otf2.otf2-print.txt"))
    main_ = [mark for mark in read.marks if mark.name.startswith("int main")]
    assert {mark.rank for mark in main_} == {"0", "1"} and len(read.marks) > 20


def test_the_definitions_of_otf2_tell_how_long_a_tick_is(tmp_path):
    parts = [Path(shared(TRACES / "mpi" / f"ping-pong-otf2.otf2-print{part}.txt")).read_text() for part in ("-G", "")]
    read = marks.read(written(tmp_path, "all.txt", "".join(parts)))
    begun = next(mark for mark in read.marks if mark.name == "MPI_Init" and mark.rank == "0")
    ticks = 7397467382698364 - 7397466977702853
    assert begun.end_s - begun.begin_s == pytest.approx(ticks / 2095197216) and read.notes == ()


# ---------------------------------------------------------------------------------------------------------- bad input


def test_holes_gaps_and_counters_that_fall_are_not_known(tmp_path):
    table = (
        "time_s,a_w,b_j\n"
        + "".join(f"{t},10,{10 * t}\n" for t in range(6))
        + "6,[N/A],5\n7,10,15\n60,10,25\n61,10,35\n"
    )
    made = document(tmp_path, table)
    known = {component.name: (component.energy_j, component.unknown_s) for component in made.components}
    assert known == {"a": (70, 54), "b": (70, 54)}
    assert "not known for 54 s" in " ".join(made.warnings)


def test_a_unit_that_nobody_wrote_is_told(tmp_path):
    assert "no unit is written for power; taken for W" in " ".join(
        document(tmp_path, "time_s,power\n0,1\n1,1\n").warnings
    )
    told = "time_s,power\n" + "".join(f"{second},1 W\n" for second in range(30))
    assert not document(tmp_path, told).warnings


def test_the_joules_of_a_function_in_a_gap_are_a_bound(tmp_path):
    table = "time_s,a_w\n" + "".join(f"{t},10\n" for t in [*range(6), *range(60, 66)])
    made = document(tmp_path, table, "begin_s,end_s,name\n0,3,before\n4,61,across\n")
    assert {function.name: function.unknown_s for function in made.functions} == {"before": 0, "across": 55}


def test_samples_that_go_back_in_time_are_left_out(tmp_path):
    made = document(tmp_path, "time_s,a_w\n0,10\n1,10\n0.5,99\n1,99\n2,10\n")
    assert "2 samples of a do not come later" in " ".join(made.warnings)
    assert made.total_j == 10 and made.components[0].unknown_s == 1  # between 1 s and 2 s the clock went back
    assert words.headline(made).text.startswith("At least ")


def test_samples_of_one_moment_do_not_make_power_unknown(tmp_path):
    made = document(tmp_path, "time_s,a_w\n0,10\n0,10\n1,10\n1,10\n2,10\n")
    assert made.total_j == 30 and made.components[0].unknown_s == 0


def test_a_clock_that_goes_back_to_the_end_leaves_a_bound(tmp_path):
    made = document(tmp_path, "time_s,a_j\n0,0\n1,10\n2,20\n1,30\n1.5,40\n")
    assert made.components[0].unknown_s == 1 and made.total_j == 10


def test_a_gap_in_what_is_not_added_leaves_the_total_exact(tmp_path):
    rows = [f"{t},30,{'' if t == 3 else 10}\n" for t in range(10)]
    made = document(tmp_path, "time_s,system_w,cpu_w\n" + "".join(rows))
    assert made.components[1].unknown_s and made.components[1].part_of == "system"
    assert words.headline(made).text.startswith("270")


def test_a_lower_bound_holds_no_sample_on(tmp_path):
    """Of two GPUs one ends earlier: what is known is from the first to the last sample of each."""
    rows = [f"{t},{gpu},50\n" for t in range(6) for gpu in (0, 1) if not (gpu and t > 3)]
    made = document(tmp_path, "timestamp,index,power.draw [W]\n" + "".join(rows))
    assert {each.name: each.energy_j for each in made.components} == {"gpu 0": 250, "gpu 1": 150}
    assert words.headline(made).text.startswith("At least 400\u202fJ in 5.00\u202fs")
    assert "last sample" not in " ".join(made.warnings)


def test_a_last_sample_that_holds_much_of_the_time_is_told(tmp_path):
    few = document(tmp_path, "time_s,cpu_w\n0,10\n60,10\n120,10\n")
    assert few.duration_s == 180 and few.total_j == 1800
    assert "The last sample is taken to hold as long as most do, 60 s: 33 % of the time." in few.warnings
    many = document(tmp_path, "time_s,cpu_w\n" + "".join(f"{t},10\n" for t in range(30)))
    assert many.duration_s == 30 and not many.warnings
    two = [Series.of_power(name, name, np.arange(0.0, end, step), np.full(end // step, 9.0), False)
           for name, end, step in (("a", 100, 1), ("b", 120, 20))]  # fmt: skip
    assert "20 s: 17 % of the time." in " ".join(fused_document(two, Marks((), False), []).warnings)
    counter = document(tmp_path, "time_s,cpu_j\n0,0\n60,10\n120,20\n")
    assert counter.duration_s == 120 and not counter.warnings, "a counter ends with its last sample"


def test_a_machine_that_was_busy_outside_of_all_marks_was_not_idle_there(tmp_path):
    table = "time_s,cpu_w\n" + "".join(f"{t},{20 if 5 <= t < 15 else 100}\n" for t in range(20))
    said = "Power in `quiet` is lower than before and after all marks, so that was not idle power; --idle says it."
    made = document(tmp_path, table, "begin_s,end_s,name\n5,15,quiet\n")
    assert made.components[0].idle_w == 100 and made.functions[0].above_idle_j == {"cpu": -800}
    assert said in made.warnings
    assert said not in document(tmp_path, table, "begin_s,end_s,name\n5,15,quiet\n", idle_w=30.0).warnings
    short = document(tmp_path, table, "begin_s,end_s,name\n5,7,quiet\n7,15,quiet too\n").warnings
    assert [said.replace("quiet", "quiet too")] == [one for one in short if "lower" in one], "two samples tell little"
    steady = "time_s,cpu_w\n" + "".join(f"{t},{19 + t % 2}\n" for t in range(40))
    assert not document(tmp_path, steady, "begin_s,end_s,name\n5,16,quiet\n").warnings, "noise is no lower power"


def test_an_offset_at_the_end_of_what_sync_looked_at_is_told(tmp_path):
    times = [second - 0.5 for second in range(11)]
    far = " ".join(document(tmp_path, steps(times), TWO, sync_s=0.5).warnings)
    assert "moved by -500 ms, as far as --sync looked; let it look farther." in far
    assert "looked" not in " ".join(document(tmp_path, steps(times), TWO, sync_s=1.0).warnings)


def test_sync_takes_no_rounding_for_an_offset(tmp_path):
    made = document(tmp_path, steps(range(10)), TWO, sync_s=1.0)
    assert made.components[0].offset_s == 0 and "moved by +0 ms" in " ".join(made.warnings)


def test_a_mark_that_never_ends_goes_on_to_the_end(tmp_path):
    made = document(tmp_path, steps(range(10)), "begin_s,end_s,name\n4,,exchange\n")
    assert made.functions[0].energy_j == {"cpu": 300} and "have no end" in " ".join(made.warnings)


def test_a_counter_stands_for_the_power_beside_it(tmp_path):
    made = document(tmp_path, "time_s,power_w,energy_j\n0,1,0\n1,1,10\n2,1,25\n")
    assert [(component.name, component.energy_j) for component in made.components] == [("power", 25)]
    beside = document(tmp_path, "time_s,gpu_w,cpu_j\n0,1,0\n1,1,10\n2,1,25\n")
    assert beside.duration_s == 2 and not beside.warnings, "power ends with the counter: no sample is held on"


@pytest.mark.parametrize(
    ("table", "mark_table", "sentence"),
    [
        ("", None, "no power over time was found"),
        ("a,b\n1,2\n", None, "no power over time was found"),
        ("time_s,a_w\nx,1\n", None, "power.csv:2: `x` is no time"),
        ("time_s,a_w\n0,1\n", None, "fewer than two samples"),
        ("time_s,node [MJ]\n0,1\n1,2\n", None, r"`node \[MJ\]` may be in mJ or in millions of J"),
        ("TIME_S,GPU_POWER_MW\n0,1\n1,2\n", None, "`GPU_POWER_MW` may be in mW"),
        (steps(range(4)), "begin_s,end_s,name\n2e9,2.1e9,x\n", None),
        (steps(range(4)), "begin_s,end_s,name\n100,101,x\n", "different times"),
        (steps(range(4)), "begin_s,end_s,name\n2,1,x\n", "`x` ends at 1 s"),
        (steps(range(4)), "begin_s,end_s,name\nq,1,x\n", "marks.csv:2: `q` is no time"),
        (steps(range(4)), "start,stop\n", "no column begin_s or end_s or name"),
        (steps(range(4)), "begin_s,end_s,name\n", "no ranges of a program"),
    ],
)
def test_bad_input_gets_one_sentence(tmp_path, table, mark_table, sentence):
    if sentence is None:
        assert "have no date" in " ".join(document(tmp_path, table, mark_table).warnings)
        return
    with pytest.raises(EprofError, match=sentence):
        document(tmp_path, table, mark_table)


@given(cut=st.integers(0, 300), noise=st.binary(max_size=6))
@settings(max_examples=80)
def test_a_log_cut_or_damaged_anywhere_gives_joules_or_one_sentence(tmp_path_factory, cut, noise):
    path = tmp_path_factory.getbasetemp() / "damaged.csv"
    text = b"timestamp, power.draw [W]\n" + b"".join(b"2024/10/30 18:42:%02d.189, 22.89 W\n" % s for s in range(8))
    path.write_bytes(text[:cut] + noise + text[cut + 2 :])
    try:
        fused_document(power.read(str(path), []), Marks((), False), [])
    except EprofError as err:
        assert "\n" not in str(err)


@pytest.mark.parametrize(("hole", "is_outside"), [(2, False), (6, True)])
def test_joules_that_lack_what_a_hole_hides_are_lower_bounds_everywhere(tmp_path, hole, is_outside):
    table = "time_s,cpu_w\n" + "".join(f"{t},{'' if t == hole else 100}\n" for t in range(10))
    made = document(tmp_path, table, "begin_s,end_s,name\n0,4,compute\n8,9,exchange\n")
    outside = words.functions(made, True).rows[-1].cells
    assert outside[0] == words.OUTSIDE and bool(outside[3].marks & MISSING) == is_outside
    assert words.headline(made).text.startswith("At least ")
    assert page._heat(made).count("at least") == 1


def test_joules_in_no_function_are_lower_bounds_only_of_meters_that_have_holes(tmp_path):
    table = "time_s,cpu_w,gpu_w\n" + "".join(f"{t},{'' if t == 6 else 100},50\n" for t in range(10))
    made = document(tmp_path, table, "begin_s,end_s,name\n0,4,compute\n8,9,exchange\n")
    cells = words.functions(made, True).rows[-1].cells
    assert [bool(cell.marks & MISSING) for cell in (cells[3], cells[5], cells[6])] == [True, True, False]
    assert page._heat(made).count("at least") == 1


def test_every_form_of_the_document_is_made(tmp_path, capsys):
    table, ranges = written(tmp_path, "p.csv", steps(range(10))), written(tmp_path, "m.csv", TWO)
    outputs = [tmp_path / f"x.{suffix}" for suffix in ("json", "html", "md", "csv", "txt")]
    with pytest.raises(SystemExit) as ended:
        main(["timeline", table, "--marks", ranges, *(word for out in outputs for word in ("-o", str(out)))])
    assert not ended.value.code and "700 J in 10.0 s: 57 % in compute and 43 % in" in capsys.readouterr().out
    assert json.loads(outputs[0].read_text())["total_j"] == 700
    assert all(out.stat().st_size > 100 for out in outputs)


def test_regions_of_no_length_are_read_and_own_nothing(tmp_path):
    """A region shorter than the clock's step: called, with no time and no joules, and others' joules stay theirs."""
    (tmp_path / "marks.csv").write_text("begin_s,end_s,name\n0,2,a\n1,1,tick\n1,1,tick\n2,2,a\n2,4,b\n")
    found = marks.read(str(tmp_path / "marks.csv")).marks
    assert [mark.name for mark in found] == ["a", "tick", "tick", "a", "b"]
    for pieces in (marks.exclusive(found), joules.inclusive(found)):
        lengths = pieces.summed(pieces.end_s - pieces.begin_s)
        assert dict(zip(pieces.names, lengths, strict=True)) == {"a": 2, "tick": 0, "b": 2}
    (tmp_path / "marks.csv").write_text("begin_s,end_s,name\n1,0.5,back\n")
    with pytest.raises(EprofError, match="`back` ends at 0.5 s, before its beginning at 1 s"):
        marks.read(str(tmp_path / "marks.csv"))
