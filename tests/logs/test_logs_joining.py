"""Tables joined: what is the same launches, what is further ones, what is a copy, and what is only a lower bound."""

import gzip
from math import isnan

import pytest
from conftest import SHARED
from frames_support import combine
from logs_support import (
    EVENTS,
    K20C,
    METRICS,
    TRACE,
    TRACE_UNITS,
    USAGE,
    cell,
    event,
    launch,
    metric,
    profiled,
    read,
    totals,
    write,
)

import eprof
from eprof.base.errors import LogError
from eprof.base.vocabulary import Mark
from eprof.counts import definition_files
from eprof.logs.many import Cache, Stamp
from eprof.logs.passes import added_runs, gathered_in_first
from eprof.logs.runs import labelled

KERNEL = "axpy(int, float*)"
WIDE = '"Device","Context","Stream","Kernel","a","b"'
WRONG = ("18446744073709551615", "1.84467e+19")


def logs_of(tmp_path, *texts):
    return [read(write(tmp_path, text, f"{number}.csv")) for number, text in enumerate(texts)]


def joined(tmp_path, *texts):
    return combine(logs_of(tmp_path, *texts))


def counted(found):
    """What is known of the first kernel: counter -> value; and its launches."""
    row = found.counters.iloc[0]
    return {**row[row.notna()].to_dict(), "launches": int(found.kernels["launches"].iloc[0])}


def marked(found):
    return {name: int(mark) for name, mark in found.marks.iloc[0].items() if mark}


def events(*rows, pid=1):
    return profiled(pid, f"=={pid}== Event result:", EVENTS, *rows)


def metrics(*rows, pid=1):
    return profiled(pid, f"=={pid}== Metric result:", METRICS, *rows)


def launches(*cells, pid=1, command="./made_up"):
    rows = [f'"{K20C}","1","7","{KERNEL}",{a},{b}' for a, b in cells]
    return profiled(pid, WIDE, ",,,,,", *rows, command=command)


# --- passes over the same launches

EVENT_ROWS = (event("inst_executed", 100, launches=4), event("e", 3, launches=4))
METRIC_ROWS = (metric("inst_executed", 100, launches=4), metric("m", 9, launches=4))
BOTH = {"inst_executed": 400, "e": 12, "m": 36, "launches": 4}


@pytest.mark.parametrize(
    "texts",
    [
        (profiled(1, EVENTS, *EVENT_ROWS, "", "==1== Metric result:", METRICS, *METRIC_ROWS),),
        (events(*EVENT_ROWS), metrics(*METRIC_ROWS, pid=2)),
        (metrics(*METRIC_ROWS) + events(*EVENT_ROWS, pid=2),),
        (metrics(METRIC_ROWS[0]), metrics(*METRIC_ROWS[1:], pid=2), events(*EVENT_ROWS, pid=3)),
    ],
    ids=["one run", "two files", "two runs of one file", "three files"],
)
def test_events_and_metrics_are_of_the_same_launches(tmp_path, texts):
    found = joined(tmp_path, *texts)
    assert counted(found) == BOTH and not marked(found) and not found.warnings


def test_a_counter_in_another_unit_is_not_added_though_a_cell_of_it_is_lost(tmp_path):
    rows = [f'"{K20C}","1","7","{KERNEL}",{a},{b}' for a, b in ((50, 1), ('"<OVERFLOW>"', 1))]
    percent = profiled(2, WIDE, ',,,,"%",', *rows)
    found = joined(tmp_path, launches((5, 1), (6, 1)), percent)
    assert counted(found)["a"] == 22 and marked(found)["a"] == Mark.ESTIMATED, "brought to four launches"
    assert any("`a` is a count in one table and a percent in another" in warning for warning in found.warnings)


def test_of_many_kernels_three_are_named_and_the_others_counted(tmp_path):
    timed = profiled(1, TRACE, TRACE_UNITS, *(launch(1.0, kernel=f"k{number}(int)") for number in range(5)))
    found = joined(tmp_path, timed, metrics(metric("a", 5), pid=2))
    assert any("`k0(int)`, `k1(int)`, `k2(int)` and 2 more kernels: no counters" in said for said in found.warnings)


def test_passes_that_contradict_each_other_make_estimates_and_are_said(tmp_path):
    """Of two kernels one is counted differently by the two passes: that one alone is an estimate, and is named."""
    other = "other(float*)"
    first = events(*EVENT_ROWS, event("inst_executed", 7, launches=4, kernel=other))
    second = metrics(
        metric("inst_executed", 200, launches=4), metric("inst_executed", 7, launches=4, kernel=other), pid=2
    )
    found = joined(tmp_path, first, second)
    estimated = (found.marks["inst_executed"] & int(Mark.ESTIMATED)).tolist()
    assert estimated == [int(Mark.ESTIMATED) if name == KERNEL else 0 for name in found.kernels["kernel"]]
    assert found.counters["inst_executed"].tolist()[found.kernels["kernel"].tolist().index(other)] == 28
    (said,) = [warning for warning in found.warnings if "tell different counts" in warning]
    assert said.startswith(f"`{KERNEL}`: ") and "`inst_executed`" in said and other not in said


def test_events_and_metrics_in_text_are_of_the_same_launches(tmp_path):
    def table(kind, *rows):
        described = "Metric Description  " if kind == "Metric" else ""
        return [
            f"==1== {kind} result:",
            f"Invocations    {kind} Name   {described}       Min         Max         Avg",
            f'Device "{K20C}"',
            f"    Kernel: {KERNEL}",
            *rows,
        ]

    lines = [
        *table("Event", "    4     inst_executed     100    100    100", "    4     e     3    3    3", ""),
        *table("Metric", "    4     inst_executed  Executed   100    100    100", "    4   m  Words   9    9    9"),
    ]
    found = joined(tmp_path, profiled(1, *lines))
    assert counted(found) == BOTH and not marked(found)


def test_ranks_with_events_and_metrics_add_up_in_each_pass(tmp_path):
    ranks = range(1, 9)
    texts = [events(*EVENT_ROWS, pid=n) for n in ranks] + [metrics(*METRIC_ROWS, pid=10 + n) for n in ranks]
    assert counted(joined(tmp_path, *texts)) == {name: 8 * value for name, value in BOTH.items()}
    assert counted(combine(gathered_in_first(logs_of(tmp_path, *texts)))) == {
        name: 8 * value for name, value in BOTH.items()
    }


def test_two_lists_of_metrics_with_one_in_common_are_passes(tmp_path):
    one, two = (metrics(metric(name, 7), metric("x", 5), pid=pid) for pid, name in enumerate("AB", 1))
    for found in (joined(tmp_path, one, two), joined(tmp_path, one + two)):
        assert counted(found) == {"A": 14, "B": 14, "x": 10, "launches": 2} and not marked(found)
        assert found.warnings == (
            "`x`: counted in tables whose other counters are not the same, so these are taken for passes over the same "
            "launches, and it is counted once",
        )


def test_a_small_part_of_a_list_is_a_pass_where_nothing_tells_processes(tmp_path):
    tables = [(METRICS, metric("a", 7)), (METRICS, *(metric(name, 7) for name in "abcd"))]
    found = joined(tmp_path, *("\n".join(["", *lines, ""]) for lines in tables))
    assert counted(found) == {"a": 14, "b": 14, "c": 14, "d": 14, "launches": 2}


@pytest.mark.parametrize(("again", "added"), [("c", 2), ("b", 1)])
def test_passes_over_the_same_launches_are_no_runs_that_are_added_up(tmp_path, again, added):
    (tmp_path / "log.csv").write_text(metrics(metric("c", 7)) + metrics(metric(again, 8), pid=2))
    assert added_runs(read(tmp_path / "log.csv")) == added


def test_a_summary_and_a_trace_of_two_runs_are_no_runs_that_are_added_up(tmp_path):
    """Of times told in two ways those of one are used."""
    summary = profiled(
        1, '"Time(%)","Time","Calls","Avg","Min","Max","Name"', "%,us,,us,us,us,", '100,50,5,10,10,10,"k(int)"'
    )
    trace = profiled(2, '"Start","Duration","Device","Stream","Name"', "us,us,,,", '1,20,"A (0)","7","k(int)"')
    (tmp_path / "log.csv").write_text(summary + trace)
    assert added_runs(read(tmp_path / "log.csv")) <= 1
    (tmp_path / "log.csv").write_text(summary + summary.replace("==1==", "==3=="))
    assert added_runs(read(tmp_path / "log.csv")) == 2


@pytest.mark.parametrize("less", [(), ("c",), ("b", "c", "d")])
def test_the_same_list_or_a_part_of_it_is_a_further_run(tmp_path, less):
    whole = metrics(*(metric(name, 7) for name in "abcd"))
    again = metrics(*(metric(name, 7) for name in "abcd" if name not in less), pid=2)
    found = joined(tmp_path, whole, again)
    assert counted(found) == {"a": 28, "b": 28, "c": 28, "d": 28, "launches": 4}
    assert marked(found) == {name: Mark.ESTIMATED for name in less}


def test_a_counter_of_several_passes_is_that_of_most_launches(tmp_path):
    found = joined(tmp_path, events(event("x", 5, launches=3)), metrics(metric("x", 5, launches=4), metric("m", 1)))
    assert counted(found) == {"x": 20, "m": 4, "launches": 4} and marked(found) == {"m": Mark.ESTIMATED}
    assert "`m` saw 2 launches, other counters 4" in found.warnings[0]


def test_passes_that_contradict_each_other_are_told(tmp_path):
    near, far = (joined(tmp_path, events(event("x", 100)), metrics(metric("x", value))) for value in (103, 110))
    assert not near.warnings and counted(near)["x"] == 206
    assert "different counts a launch of `x`" in far.warnings[0]


def test_a_column_twice_in_a_trace_is_counted_once_and_fills_holes(tmp_path):
    header = '"Device","Context","Stream","Kernel","inst_executed","inst_executed"'
    rows = [f'"{K20C}","1","7","k",{one},{two}' for one, two in ((5, 5), ('"<OVERFLOW>"', 6))]
    found = joined(tmp_path, profiled(1, header, ",,,,,", *rows))
    assert counted(found) == {"inst_executed": 11, "launches": 2} and not marked(found)


@pytest.mark.parametrize("name", ["v100-events-and-metrics-summary-with-total.csv"])
def test_a_real_log_of_events_and_metrics(tmp_path, name):
    path = SHARED / "nvprof" / name
    if not path.exists():
        pytest.skip("needs the real logs")
    text = path.read_text()
    row = next(line for line in text.split("\n") if '"inst_executed"' in line)
    also = row.replace('"inst_executed"', '"inst_executed","Instructions Executed"').rpartition(",")[0]
    found = joined(tmp_path, text.rstrip("\n") + "\n" + also + "\n")
    assert counted(found)["inst_executed"] == 458752 and counted(found)["launches"] == 1


# --- holes


@pytest.mark.parametrize("hole", ["<OVERFLOW>", "<INVALID>", ""])
def test_a_hole_is_a_lower_bound_however_a_log_is_split(tmp_path, hole):
    cells = [(5, 1), (f'"{hole}"', 1), (7, 1)]
    ways = [
        (launches(*cells),),
        tuple(launches(one, pid=pid) for pid, one in enumerate(cells)),
        ("".join(launches(one, pid=pid) for pid, one in enumerate(cells)),),
        (launches(*cells[:2]), launches(cells[2], pid=2)),
    ]
    for texts in ways:
        found = joined(tmp_path, *texts)
        assert counted(found) == {"a": 12, "b": 3, "launches": 3} and marked(found) == {"a": Mark.MISSING}
        assert not found.warnings


@pytest.mark.parametrize("together", [True, False])
def test_a_hole_in_a_summary_is_a_lower_bound(tmp_path, together):
    texts = [metrics(metric("a", 5), metric("b", 1)), metrics(metric("a", "<OVERFLOW>"), metric("b", 1), pid=2)]
    found = joined(tmp_path, "".join(texts)) if together else joined(tmp_path, *texts)
    assert counted(found) == {"a": 10, "b": 4, "launches": 4} and marked(found) == {"a": Mark.MISSING}


def test_a_counter_that_a_run_did_not_collect_is_brought_up_by_its_average(tmp_path):
    texts = [metrics(metric("a", 5), metric("b", 1)), metrics(metric("b", 1), pid=2)]
    for found in (joined(tmp_path, "".join(texts)), joined(tmp_path, *texts)):
        assert counted(found) == {"a": 20, "b": 4, "launches": 4} and marked(found) == {"a": Mark.ESTIMATED}


def test_rows_of_one_kernel_with_other_counters_and_launches_are_no_holes(tmp_path):
    found = joined(tmp_path, metrics(metric("a", 5, launches=3), metric("b", 1, launches=2)))
    assert counted(found) == {"a": 15, "b": 3, "launches": 3} and marked(found) == {"b": Mark.ESTIMATED}


def test_a_time_that_lacks_a_launch_is_a_lower_bound(tmp_path):
    found = joined(tmp_path, profiled(1, TRACE, TRACE_UNITS, launch(2.0), launch(""), launch(4.0)))
    assert found.kernels[["launches", "time_s", "time_marks"]].values.tolist() == [
        [3, pytest.approx(6e-3), Mark.MISSING]
    ]


# --- devices


NCU = '"ID","Process ID","Process Name","Kernel Name","Device","CC","Metric Name","Metric Unit","Metric Value"'


def ncu_log(tmp_path, name, *counts, cc="7.0", pid=7, kernel="k", first=0):
    rows = [
        f'"{number}","{pid}","p","{kernel}","0","{cc}","{metric}","{unit}","{value}"'
        for number, (metric, unit, value) in enumerate(counts, first)
    ]
    return read(write(tmp_path, "\n".join([NCU, *rows, ""]), name))


def timed(tmp_path, device, kernel="k"):
    return read(write(tmp_path, profiled(1, TRACE, TRACE_UNITS, launch(2.0, kernel, device=device)), "times.csv"))


INST = "smsp__inst_executed.sum"


def test_devices_of_one_number_and_other_capabilities_are_two(tmp_path):
    new, old = (ncu_log(tmp_path, f"{cc}.csv", (INST, "inst", 5), cc=cc) for cc in ("12.0", "7.0"))
    times = timed(tmp_path, "Tesla V100-SXM2-16GB (0)")
    found = combine([new, times], definition_files.capability_of)
    assert found.kernels["device"].tolist() == ["ncu device 0 (CC 12.0)", "Tesla V100-SXM2-16GB (0)"]
    assert isnan(found.kernels["time_s"].iloc[0])
    both = combine([new, old, times], definition_files.capability_of)
    assert set(both.kernels["device"]) == {"ncu device 0 (CC 12.0)", "Tesla V100-SXM2-16GB (0)"}
    assert sum("is taken to be Tesla V100" in one for one in both.warnings) == 1


def test_of_several_capabilities_none_is_a_device_whose_own_is_not_known(tmp_path):
    new, old = (ncu_log(tmp_path, f"{cc}.csv", (INST, "inst", 5), cc=cc) for cc in ("12.0", "7.0"))
    times = timed(tmp_path, "Some GPU (0)")
    assert len(set(combine([new, old, times], definition_files.capability_of).kernels["device"])) == 3
    assert len(set(combine([old, times], definition_files.capability_of).kernels["device"])) == 1


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ('Device "TITAN Xp (0)"', "TITAN Xp (0)"),
        ('GPU Device 0: "Tesla V100-SXM2-16GB" with compute capability 7.0', "Tesla V100-SXM2-16GB (0)"),
    ],
)
def test_a_device_that_only_a_line_beside_the_tables_names(tmp_path, line, name):
    text = profiled(1, line, "", "==1== Profiling result:", USAGE, "%,ms,,ms,ms,ms,", f'100,2.0,2,1,1,1,"{KERNEL}"')
    found = joined(tmp_path, text)
    assert found.kernels["device"].tolist() == [name]
    assert f"what the logs tell it is {name.removesuffix(' (0)')}" in found.warnings[0]
    counts = metrics(metric("a", 5, device="Tesla K20c (1)"), pid=2)
    assert joined(tmp_path, text, counts).kernels["device"].tolist() == ["Tesla K20c (1)"]
    two = text.replace(line, f'{line}\nDevice "Tesla P4 (1)"')
    assert joined(tmp_path, two).kernels["device"].tolist() == [None]


# --- logs that lack rows


def test_a_packed_log_that_is_cut_is_a_lower_bound_in_every_total(tmp_path):
    text = launches(*((number * 7919 % 10007, number) for number in range(3000)))
    packed = gzip.compress(text.encode())
    whole = read(write(tmp_path, packed, "whole.gz"))
    cut = read(write(tmp_path, packed[: len(packed) // 2], "cut.gz"))
    assert not combine([whole]).marks.to_numpy().any()
    assert combine([cut]).lacks_rows and not combine([whole]).lacks_rows
    times = read(write(tmp_path, gzip.compress(profiled(1, TRACE, TRACE_UNITS, *[launch(2.0)] * 99).encode())[:-20]))
    assert combine([times]).kernels["time_marks"].tolist() == [Mark.MISSING]
    # Of two logs, what the whole one counts alone is known.
    found = combine([times, read(write(tmp_path, metrics(metric("a", 5)), "a"))])
    assert not found.lacks_rows and found.kernels["time_marks"].iloc[0] & Mark.MISSING


def test_shared_packed_logs_whole_and_cut(tmp_path):
    folder = SHARED / "repro"
    if not folder.is_dir():
        pytest.skip("needs the shared data")
    whole, cut = (combine([read(folder / f"{name}-trace.csv.gz")]) for name in ("whole", "cut"))
    assert cut.lacks_rows and not whole.lacks_rows
    totals = eprof.load(folder / "cut-trace.csv.gz").energy("gtx580").document()
    assert all("missing" in cell["marks"] for cell in totals["counts"].values() if cell["value"])


@pytest.mark.parametrize("end", ['"Tesla K20c (0)","1","7","axpy(int, fl', '"Tesla K20c (0)","1","7","k",12'])
def test_a_log_whose_last_row_is_cut_is_a_lower_bound(tmp_path, end):
    text = launches((5, 1), (6, 1))
    assert joined(tmp_path, text + end).lacks_rows
    assert not joined(tmp_path, text + "==1== the program says: done").lacks_rows


@pytest.mark.parametrize(
    "damaged", ['"Tesla K20c (0)","1","7","axpy(int, float*)",7', '"Tesla K20c (0)","1","7",8,9,1,2,']
)
def test_a_row_that_something_happened_to_is_known_to_be_missing(tmp_path, damaged):
    lines = launches(*[(5, 1)] * 5).split("\n")
    log = read(write(tmp_path, "\n".join([*lines[:-2], damaged, *lines[-2:]])))
    assert combine([log]).lacks_rows
    assert any("something happened to, so totals are lower bounds" in note for note in log.notes)


def test_what_a_log_lacks_is_kept_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.setattr("eprof.logs.many.SMALLEST_BYTES", 1)
    path = write(
        tmp_path, metrics(metric("a", 5), metric("b", 5, kernel="k(int)"), metric("a", 1, kernel="k(int)")) + '"'
    )
    log = read(path)
    assert any(table.lacks_rows for table in log.tables) and any(table.collected for table in log.tables)
    stamp, cache = Stamp.of(path), Cache(tmp_path / "cache", "asked")
    cache.put(stamp, log)
    again = cache.get(stamp)
    assert [(one.collected, one.lacks_rows) for one in again.tables] == [
        (one.collected, one.lacks_rows) for one in log.tables
    ]


def test_a_log_that_lost_its_quotes_is_not_cut_off(tmp_path):
    header, row = METRICS.replace('"', ""), "Tesla K20c (0),k(int, int),2,a,described,5,5,5"
    for lines in ((header, row), (METRICS, row)):
        with pytest.raises(LogError, match="the log has lost its quotes .a row has 9 fields and its header 8"):
            read(write(tmp_path, profiled(1, *lines).rstrip("\n")))
    log = read(write(tmp_path, profiled(1, header, row.replace("int, int", "int"), row).rstrip("\n")))
    assert cell(log, "a") == 10 and combine([log]).lacks_rows
    assert any("has lost its quotes" in note for note in log.notes) and not any("cut off" in note for note in log.notes)


# --- copies

RUN = profiled(1, METRICS, metric("a", 5), metric("r", "10%"), "", "==1== Event result:", EVENTS, event("e", 3))


@pytest.mark.parametrize(
    "copy",
    [
        RUN,
        RUN.replace("\n", "\r\n"),
        gzip.compress(RUN.encode()),
        RUN.encode("utf-16"),
        f"a program said\n{RUN}and this\n",
    ],
    ids=["same", "line ends", "packed", "encoding", "output around"],
)
def test_a_copy_of_a_log_counts_once(tmp_path, copy):
    logs = logs_of(tmp_path, RUN, copy)
    for found in (combine(logs), combine(gathered_in_first(logs))):
        assert counted(found) == {"a": 10, "r": 10, "e": 6, "launches": 2} and not marked(found)
        (said,) = found.warnings
        assert said.startswith("2 tables stand in these logs twice, cell by cell") and "--group rank" in said


@pytest.mark.parametrize("times", [2, 3])
def test_a_log_appended_to_itself_counts_once(tmp_path, times):
    found = joined(tmp_path, RUN * times)
    assert counted(found) == {"a": 10, "r": 10, "e": 6, "launches": 2}
    assert "counted once" in found.warnings[0]


def test_a_long_trace_and_its_copy_count_once(tmp_path):
    text = launches(*((number, 1) for number in range(70_000)))
    once = counted(joined(tmp_path, text))
    assert counted(joined(tmp_path, text, text + "\n")) == counted(joined(tmp_path, text * 2)) == once


def test_times_and_launches_of_ncu_that_stand_twice_count_once(tmp_path):
    times = profiled(1, TRACE, TRACE_UNITS, launch(2.0), launch(4.5))
    assert joined(tmp_path, times, times + "\n").kernels[["launches", "time_s"]].values.tolist() == [
        [2, pytest.approx(6.5e-3)]
    ]
    rows = [(INST, "inst", 5), (INST, "inst", 6)]
    one, copy = ncu_log(tmp_path, "a.csv", *rows), ncu_log(tmp_path, "b.csv", *rows)
    other = ncu_log(tmp_path, "c.csv", *rows, pid=8)
    assert counted(combine([one, copy])) == {INST: 11, "launches": 2}
    assert counted(combine([one, other])) == {INST: 22, "launches": 4}


def test_the_same_counts_of_another_process_or_rank_are_a_further_run(tmp_path):
    other = RUN.replace("==1==", "==2==")
    found = joined(tmp_path, RUN, other)
    assert counted(found) == {"a": 20, "r": 10, "e": 12, "launches": 4} and not found.warnings
    one, two = logs_of(tmp_path, RUN, RUN)
    ranks = combine([labelled(one, "0"), labelled(two, "1")])
    assert ranks.counters["a"].tolist() == [10, 10]


def test_one_cell_that_differs_makes_another_run(tmp_path):
    assert totals(*logs_of(tmp_path, RUN, RUN.replace(",5,5,5", ",5,5,6")))[K20C, KERNEL, "a"] == 22


def test_logs_of_several_programs_are_told(tmp_path):
    one = launches((1, 2), command="./fmm 100")
    for command, words in (
        ("/opt/other 100", "joined logs of 2 programs: `fmm`, `other`"),
        ("./fmm 200", "joined logs of 2 commands: `./fmm 100`, `./fmm 200`"),
    ):
        two = launches((3, 4), pid=2, command=command)
        assert joined(tmp_path, one, two).warnings[0].startswith(words)
        (log,) = logs_of(tmp_path, one + two)
        assert any(note.startswith(words.replace("joined logs", "the log is")) for note in log.notes)
    same = launches((3, 4), pid=2, command="/home/me/fmm 100").replace("/home/me/fmm 100", "./fmm  100")
    assert not joined(tmp_path, one, same).warnings


# --- a counter that went wrong


@pytest.mark.parametrize("wrong", [*WRONG, '"18,446,744,073,709,551,615"'])
@pytest.mark.parametrize("many", [1, 3000])
def test_all_bits_set_are_a_hole(tmp_path, wrong, many):
    log = read(write(tmp_path, launches(*[(5, 1)] * many, (wrong, 1))))
    found = combine([log])
    assert counted(found) == {"a": 5 * many, "b": many + 1, "launches": many + 1}
    assert marked(found) == {"a": Mark.MISSING} and any(note.startswith("a: 1 cell") for note in log.notes)


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("place", [5, 6, 7])
@pytest.mark.parametrize("many", [1, 3000])
def test_all_bits_set_in_any_cell_of_a_summary_are_a_hole(tmp_path, wrong, place, many):
    fields = [f'"{K20C}"', f'"{KERNEL}"', "2", '"a"', '"said"', "5", "5", "5"]
    fields[place] = wrong
    others = [metric("a", 1, kernel=f"k{number}(int)") for number in range(many)]
    log = read(write(tmp_path, metrics(*others, ",".join(fields))))
    assert isnan(cell(log, "a", "axpy")) and any("2^64-1" in note for note in log.notes)


def test_all_bits_set_in_a_text_summary_and_in_a_log_of_ncu(tmp_path):
    text = [
        "Invocations    Metric Name   Metric Description     Min         Max         Avg",
        f'Device "{K20C}"',
        f"    Kernel: {KERNEL}",
        "    2     a  Words   1    18446744073709551615    9223372036854775808",
    ]
    assert isnan(cell(read(write(tmp_path, profiled(1, *text))), "a"))
    log = ncu_log(tmp_path, "n.csv", (INST, "inst", 5), (INST, "inst", "18,446,744,073,709,551,615"))
    found = combine([log])
    assert counted(found) == {INST: 5, "launches": 2} and marked(found) == {INST: Mark.MISSING}


# --- several views of one run


def nsys_table(header, *rows):
    return "\n".join([header, *rows]) + "\n"


SUM = "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name"
GPU_TRACE = "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,Strm,Name"


def test_tables_of_nsys_that_tell_one_run_again_count_once(tmp_path):
    """A trace with short names beside a summary with whole ones, in two files: three launches of 5 us, not six of 10."""
    summed = nsys_table(
        SUM, "60,3000,2,1500,1500,1000,2000,0,void k<int>(int)", "40,2000,1,2000,2000,2000,2000,0,b(int)"
    )
    times = (("k", 1000), ("k", 2000), ("b", 2000))
    traced = nsys_table(
        GPU_TRACE,
        *(f"{at},{ns},{at},1,1,1,32,1,1,16,0,0,,,,,NVIDIA A100 (0),1,7,{name}" for at, (name, ns) in enumerate(times)),
    )
    found = joined(tmp_path, summed, traced)
    assert found.kernels["launches"].sum() == 3 and found.kernels["time_s"].sum() == pytest.approx(5e-6)
    assert any("tells the 3 launches of nsys-trace again" in warning for warning in found.warnings)
    other = nsys_table(SUM, "100,7000,4,1750,1750,1750,1750,0,c(int)")
    assert joined(tmp_path, traced, other).kernels["launches"].sum() == 7, "another run, of other kernels"


def test_one_run_of_ncu_in_two_forms_counts_once(tmp_path):
    """The raw page and the long form of one collection: views, not further runs."""
    start = '"{id}","77","prog","host","k(int)","1","7","(1,1,1)","(32,1,1)","0","8.0"'
    names = ("Block Size", "Grid Size")
    head = (
        '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","{}","{}","Device","CC"'.format(
            *names
        )
    )
    long = [f'{head},"Section Name","Metric Name","Metric Unit","Metric Value"']
    raw = [f'{head},"dram__bytes_read.sum"', '"","","","","","","","","","","","byte"']
    for number in range(2):
        long.append(f'{start.format(id=number)},"Command line profiler metrics","dram__bytes_read.sum","byte","32,000"')
        raw.append(f'{start.format(id=number)},"32,000"')
    found = joined(tmp_path, "\n".join(long) + "\n", "\n".join(raw) + "\n")
    assert found.counters["dram__bytes_read.sum"].tolist() == [64_000] and found.kernels["launches"].tolist() == [2]
