"""Jobs of Slurm as runs: every form that `sacct` prints, in any order, doubled, cut anywhere; states, parts, unknown numbers."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eprof.base.errors import EprofError, LogError
from eprof.commands.scale import measured_runs

SACCT = Path(__file__).parents[4] / "shared" / "data" / "meters" / "sacct"
COLUMNS = ("JobID", "JobName", "NNodes", "Elapsed", "ElapsedRaw", "ConsumedEnergyRaw", "ReqCPUFreq", "State")
UNKNOWN = ("", "0", "4294967294", "4294967295", "18446744073709551614", "18446744073709551615", "9223372036854775807")
BROKEN = ("FAILED", "CANCELLED by 1001", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "PREEMPTED", "RUNNING", "PENDING", "BOOT_FAIL",
          "DEADLINE", "REQUEUED", "SUSPENDED", "COMPLETE+", "COMPLETING", "CANCELLED+")  # fmt: skip


def elapsed(seconds):
    days, rest = divmod(seconds, 86400)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days}-{clock}" if days else clock


def row(job, name="ft", nodes=4, seconds=100, joules="50000", clock="Unknown", state="COMPLETED"):
    cells = (job, name, str(nodes), elapsed(seconds), str(seconds), joules, clock, state)
    return dict(zip(COLUMNS, cells, strict=True))


def separated(rows, columns=COLUMNS, separator="|", end=""):
    lines = [separator.join(columns) + end]
    return "\n".join([*lines, *(separator.join(each[name] for name in columns) + end for each in rows), ""])


def in_columns(rows, columns=COLUMNS, width=20):
    """As sacct prints without -P: right-aligned, and cut where the column is too narrow."""

    def line(cells):
        return " ".join(cell.rjust(width) if len(cell) <= width else cell[: width - 1] + "+" for cell in cells)

    lines = [line(columns), " ".join(["-" * width] * len(columns))]
    return "\n".join([*lines, *(line([each[name] for name in columns]) for each in rows), ""])


def number(value):
    return {"set": value is not None, "infinite": False, "number": value or 0}


def as_json(rows):
    """As `sacct --json` prints: steps below their job; what is not known is NO_VAL, below 0 or not set."""
    jobs = {}
    for each in rows:
        job, _, step = each["JobID"].partition(".")
        base, _, part = job.partition("+")
        entry = jobs.setdefault(job, {"job_id": int(base), "steps": [], "cluster": "c"})
        joules, clock = each["ConsumedEnergyRaw"], each["ReqCPUFreq"]
        if not step:
            tres = [{"type": "cpu", "count": 8}, {"type": "energy", "count": int(joules) if joules else -2}]
            entry |= {"name": each["JobName"], "nodes": "n[1-9]", "allocation_nodes": int(each["NNodes"])}
            entry |= {
                "time": {"elapsed": int(each["ElapsedRaw"])},
                "state": {"current": [each["State"]], "reason": "None"},
            }
            entry |= {
                "tres": {"allocated": tres},
                "het": {"job_id": int(base) if part else 0, "job_offset": number(int(part or 0))},
            }
            continue
        steps = {"step": {"id": each["JobID"], "name": each["JobName"]}, "state": [each["State"]]}
        steps |= {"nodes": {"count": int(each["NNodes"])}, "time": {"elapsed": int(each["ElapsedRaw"])}}
        steps["statistics"] = {"energy": {"consumed": number(int(joules) if joules else None)}}
        steps["CPU"] = {"requested_frequency": {"max": number(int(clock) if clock.isdecimal() else 0)}}
        entry["steps"].append(steps)
    return json.dumps({"jobs": list(jobs.values()), "meta": {}, "errors": []})


def read(folder, text, name="jobs.txt"):
    path = folder / name
    path.write_text(text)
    return measured_runs.read([str(path)])


def told(runs):
    return sorted((run.program, run.processors, run.time_s, run.energy_j, run.core_mhz or 0, run.marks) for run in runs)


# ---------------------------------------------------------------------------------------------------- tables of any kind


@st.composite
def jobs(draw):
    """Rows of some jobs, and what each was: programs differ, so that no two jobs are repeats."""
    rows, truth = [], []
    for place in range(draw(st.integers(1, 5))):
        job, name = str(1000 + place), f"p{place}"
        nodes, seconds, joules = (
            draw(st.sampled_from([1, 2, 16])),
            draw(st.integers(1, 200_000)),
            draw(st.integers(1, 10**5)),
        )
        parts = draw(st.sampled_from([1, 1, 2, 3]))
        clock = draw(st.sampled_from(["Unknown", "2400000", "0"]))
        state = draw(st.sampled_from(["COMPLETED", "COMPLETED", "COMPLETED", *BROKEN]))
        by_step = draw(st.booleans())
        for part in range(parts):
            own = f"{job}+{part}" if parts > 1 else job
            own_joules = draw(st.sampled_from(UNKNOWN)) if by_step else str(joules)
            rows.append(row(own, name, nodes, seconds, own_joules, "Unknown", state if part == 0 else "COMPLETED"))
            rows.append(row(f"{own}.batch", "batch", 1, seconds, str(joules // 3), "Unknown"))
            rows.append(row(f"{own}.extern", "extern", nodes, seconds, str(joules), "Unknown", "CANCELLED"))
            rows.append(row(f"{own}.0", "a.out", nodes, max(1, seconds - 3), str(joules // 2), clock))
        if state == "COMPLETED":
            mhz = 2400 if clock == "2400000" else 0
            truth.append((name, parts * nodes, seconds, parts * joules, mhz, 0))
    return rows, sorted(truth)


@settings(max_examples=120, deadline=None)
@given(made=jobs(), seed=st.integers(0, 10**6))
def test_every_form_in_any_order_and_doubled_tells_the_same_jobs(tmp_path_factory, made, seed):
    rows, truth = made
    folder = tmp_path_factory.mktemp("jobs")
    mixed = random.Random(seed).sample(rows, len(rows))
    cut = seed % (len(rows) + 1)
    columns = [name for name in COLUMNS if name != "ElapsedRaw"]
    texts = {
        "as sacct -P": separated(rows),
        "mixed": separated(mixed),
        "doubled": separated([*rows, *mixed]),
        "as sacct -p": separated(mixed, end="|"),
        "by commas": separated(mixed, separator=","),
        "fixed": in_columns(mixed),
        "Elapsed alone": separated(rows, columns),
        "columns mixed": separated(mixed, random.Random(seed).sample(COLUMNS, len(COLUMNS))),
        "json": as_json(rows),
    }
    for form, text in texts.items():
        try:
            runs, _ = read(folder, text, "jobs.json" if form == "json" else "jobs.txt")
        except LogError as err:
            assert not truth and "none is a whole run" in str(err), form
        else:
            assert told(runs) == truth, form
    parts = []
    for place, part in enumerate(part for part in (mixed[:cut], mixed[cut:]) if part):
        parts.append(str(folder / f"{place}.txt"))
        Path(parts[-1]).write_text(separated(part))
    if truth:
        assert told(measured_runs.read(parts)[0]) == truth


TABLE = separated(
    [
        row("7", "ft", 4, 100, "", clock="2400000"),
        row("7.extern", "extern", 4, 100, "90000"),
        row("8", "cg", 2, 3723, "70123"),
        row("8.batch", "batch", 1, 3723, "40123"),
        row("9", "ep", 1, 5, "612", state="FAILED"),
        row("10+0", "het", 1, 50, "2000"),
        row("10+1", "het", 2, 60, "3000"),
    ]
)
TRUTH = {("ft", 4, 100, 90000, 2400, 0), ("cg", 2, 3723, 70123, 0, 0), ("het", 3, 60, 5000, 0, 0)}


def test_a_table_cut_at_any_byte_tells_whole_jobs_or_marks_or_one_sentence(tmp_path):
    known = {(name, nodes, seconds, joules) for name, nodes, seconds, joules, *_ in TRUTH}
    # The step that tells the energy of the first job may be what is cut off: then it is not known.
    known.add(("ft", 4, 100, None))
    seen = 0
    for cut in range(len(TABLE)):
        try:
            runs, notes = read(tmp_path, TABLE[:cut])
        except EprofError as err:
            assert "\n" not in str(err)
            continue
        assert {(run.program, run.processors, run.time_s, run.energy_j) for run in runs} <= known, cut
        assert TABLE[cut - 1] == "\n" or any("its last line has no end" in note for note in notes)
        seen += 1
    assert seen > 100


@pytest.mark.parametrize("name", COLUMNS)
def test_a_table_without_a_column_says_so_or_knows_less(tmp_path, name):
    rows = [dict(zip(COLUMNS, line.split("|"), strict=True)) for line in TABLE.splitlines()[1:]]
    columns = [column for column in COLUMNS if column != name]
    if name in ("NNodes", "JobID"):
        with pytest.raises(LogError, match="no column processes" if name == "NNodes" else "is a step of some job"):
            read(tmp_path, separated(rows, columns))
        return
    runs, notes = read(tmp_path, separated(rows, columns))
    found = {run.program: run for run in runs}
    if name == "State":
        assert found["ep"].energy_j == 612 and any("ask sacct for State" in note for note in notes)
    elif name == "JobName":
        assert {run.program for run in runs} == {"program"}
    elif name == "ConsumedEnergyRaw":
        assert [run.energy_j for run in runs] == [None] * 3
    elif name == "ReqCPUFreq":
        assert found["ft"].core_mhz is None and found["ft"].energy_j == 90000
    else:
        assert set(told(runs)) == TRUTH


# ----------------------------------------------------------------------------------------------------------- what it is


@pytest.mark.parametrize("state", BROKEN)
def test_a_job_that_did_not_come_to_its_end_is_no_run_and_wins_nothing(tmp_path, state):
    rows = [row("1", joules="50000"), row("2", nodes=1, seconds=2, joules="700", state=state)]
    runs, notes = read(tmp_path, separated(rows))
    assert told(runs) == [("ft", 4, 100, 50000, 0, 0)]
    assert notes == [f"1 of 2 jobs left out, as no whole runs: 1 {state.split()[0]}"]
    with pytest.raises(LogError, match="jobs.txt:2: of 1 job none is a whole run: 1 "):
        read(tmp_path, separated(rows[1:]))


@pytest.mark.parametrize("unknown", [*UNKNOWN, "Unknown", "N/A", "18446744073709551614.00"])
def test_numbers_that_stand_for_unknown_are_no_joules(tmp_path, unknown):
    runs, _ = read(tmp_path, separated([row("1", joules=unknown), row("1.0", joules=unknown)]))
    assert told(runs) == [("ft", 4, 100, None, 0, 0)]


@pytest.mark.parametrize("joules", ["-5", "nan joules", "1234567+", "1e999", "12J", "0x10", "1e18"])
def test_joules_that_are_no_number_are_refused_with_their_line(tmp_path, joules):
    with pytest.raises(LogError, match=r"jobs.txt:3: energy_j is `.*`, which is no number from 0 on"):
        read(tmp_path, separated([row("1"), row("2", joules=joules)]))


@pytest.mark.parametrize(
    ("text", "joules"),
    [("19.05K", 19050), ("2.5M", 2.5e6), ("1.25G", 1.25e9), ("186", 186), ("0.5k", 500), ("", None), ("4.29G", 4.29e9)],
)
def test_energy_with_a_suffix_is_read_where_the_raw_column_is_not_there_or_blank(tmp_path, text, joules):
    columns = [*COLUMNS, "ConsumedEnergy"]
    each = row("1", nodes=4, seconds=200_000, joules="18446744073709551614") | {"ConsumedEnergy": text}
    assert [run.energy_j for run in read(tmp_path, separated([each], columns))[0]] == [joules]
    columns.remove("ConsumedEnergyRaw")
    assert [run.energy_j for run in read(tmp_path, separated([each], columns))[0]] == [joules]
    raw = each | {"ConsumedEnergyRaw": "19053"}
    assert [run.energy_j for run in read(tmp_path, separated([raw], [*COLUMNS, "ConsumedEnergy"]))[0]] == [19053]


def test_more_than_100_kw_a_node_is_no_energy_of_a_job(tmp_path):
    runs, notes = read(
        tmp_path, separated([row("1", nodes=2, seconds=10, joules="2000001"), row("2", "cg", 2, 10, "2000000")])
    )
    assert told(runs) == [("cg", 2, 10, 2e6, 0, 0), ("ft", 2, 10, None, 0, 0)]
    assert any("job 1: 2e+06 J would be more than 100 kW a node" in note for note in notes)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("00:01:30", 90),
        ("1-02:03:04", 93784),
        ("01:30", 90),
        ("10-00:00:00", 864000),
        ("00:00:05.250", 5.25),
        ("100:00:00", 360000),
    ],
)
def test_elapsed_is_read_as_slurm_writes_it(tmp_path, text, seconds):
    each = row("1") | {"Elapsed": text}
    runs, _ = read(tmp_path, separated([each], ["JobID", "NNodes", "Elapsed", "ConsumedEnergyRaw", "State"]))
    assert [run.time_s for run in runs] == [seconds]


@pytest.mark.parametrize("text", ["90", "1:2:3:4", "-00:01:30", "00:01:3x", "1-02:03:0", "00:01:", "UNLIMITED?"])
def test_a_time_that_is_cut_off_or_another_s_is_refused(tmp_path, text):
    columns = ["JobID", "NNodes", "Elapsed", "ConsumedEnergyRaw", "State"]
    if text == "1-02:03:0":  # whole, as far as anybody can tell, but for the digit that is not there
        return
    with pytest.raises(LogError, match=r"jobs.txt:2: time_s is `.*`, which is no time \(days-hours:minutes:seconds\)"):
        read(tmp_path, separated([row("1") | {"Elapsed": text}], columns))


@pytest.mark.parametrize(
    ("clocks", "mhz"),
    [
        (["2400000", "Unknown"], 2400), (["2.40G", "0"], 2400), (["2.40M", "Unknown"], 2400), (["800.50M", ""], 800.5),
        (["Unknown", "1.80G"], 1800), (["Unknown", "Performance"], None), (["Unknown", "1.80G", "2.40G"], None),
        (["Unknown", "1.80G", "1800000"], 1800), (["2.40G", "1.80G"], 2400), (["OnDemand", "Low"], None),
        (["HighM1", "Conservat+"], None), (["2181038080", "2400000"], 2400), (["2147483651", "4294967294"], None),
    ],
)  # fmt: skip
def test_the_clock_is_the_job_s_own_or_that_of_all_its_steps(tmp_path, clocks, mhz):
    own, *steps = clocks
    rows = [row("1", clock=own), *(row(f"1.{number}", clock=clock) for number, clock in enumerate(steps))]
    assert [run.core_mhz for run in read(tmp_path, separated(rows))[0]] == [mhz]


@pytest.mark.parametrize("text", ["2.4OG", "24oo", "2.40 GHz", "1.8-2.4G", "?"])
def test_a_clock_that_is_mistyped_is_no_governor(tmp_path, text):
    with pytest.raises(LogError, match=r"jobs.txt:2: core_mhz is `.*`, which is no clock in kHz"):
        read(tmp_path, separated([row("1", clock=text)]))


@pytest.mark.parametrize(
    ("nodes", "seconds", "marks"), [(4, 100, 0), (4, 99, 0), (4, 98, 1), (3, 100, 1), (1, 100, 1), (5, 101, 0)]
)
def test_the_energy_of_a_step_is_a_lower_bound_unless_it_is_the_whole_job(tmp_path, nodes, seconds, marks):
    rows = [
        row("1", joules="0"),
        row("1.0", nodes=nodes, seconds=seconds, joules="900"),
        row("1.1", nodes=4, joules="30"),
    ]
    runs, notes = read(tmp_path, separated(rows))
    assert told(runs) == [("ft", 4, 100, 900, 0, marks)]
    assert notes == ["the energy of job 1 is that of its largest step"]


def test_parts_of_a_heterogeneous_job_are_one_run(tmp_path):
    rows = [row("5+0", "cpu", 2, 100, "7000"), row("5+1", "gpu", 3, 90, ""), row("5+1.0", "x", 1, 9, "50")]
    runs, notes = read(tmp_path, separated(rows))
    assert told(runs) == [("cpu", 5, 100, 7050, 0, 1)]
    assert any("parts of a heterogeneous job are one run" in note for note in notes)
    assert told(read(tmp_path, separated(rows[:2]))[0]) == [("cpu", 5, 100, 7000, 0, 1)]
    runs, notes = read(tmp_path, separated([row("5+0", joules=""), row("5+1", joules="")]))
    assert told(runs) == [("ft", 8, 100, None, 0, 0)]
    clocks = [row("5+0", clock="1.80G"), row("5+1", clock="2.40G")]
    assert read(tmp_path, separated(clocks))[0][0].core_mhz is None
    for broken in ([row("5+0"), row("5+1", state="FAILED")], [row("5+0"), row("5+2")], [row("5+1")], [row("5+0")]):
        _, notes = read(tmp_path, separated([*broken, row("6")]))
        assert any("1 of 2 jobs left out" in note for note in notes)


def test_a_job_whose_step_failed_and_steps_that_are_added_up_are_told(tmp_path):
    rows = [row("1", joules="19050"), row("1.extern", joules="13660"), row("1.0", joules="5390", state="FAILED")]
    runs, notes = read(tmp_path, separated(rows))
    assert told(runs) == [("ft", 4, 100, 13660, 0, 0)]
    assert any("job 1 came to its end, but not its step 0" in note for note in notes)
    assert any("own row has 19050 J" in note and "has 13660 J, and counts" in note for note in notes)
    rows[1] = row("1.extern", joules="13660", seconds=50)  # saw half of it
    assert told(read(tmp_path, separated(rows))[0]) == [("ft", 4, 100, 19050, 0, 0)]
    rows = [row("1", joules="13700"), row("1.extern", joules="13660", state="CANCELLED")]
    assert read(tmp_path, separated(rows))[1] == []


def test_steps_of_an_attempt_before_are_not_the_job_s_in_any_order(tmp_path):
    rows = [
        row("1", joules="0"),
        row("1.0", joules="900", state="NODE_FAIL"),
        row("1.0", joules="400"),
        row("1.1", joules="90"),
    ]
    for mixed in (rows, rows[::-1]):
        assert told(read(tmp_path, separated(mixed))[0]) == [("ft", 4, 100, 400, 0, 0)]
    extern = [row("1", joules="500"), row("1.extern", joules="300"), row("1.extern", joules="499", seconds=99)]
    for mixed in (extern, extern[::-1]):
        assert read(tmp_path, separated(mixed))[1] == []


def test_a_step_that_is_written_as_its_job_is_a_step(tmp_path):
    """As a script of Alps prints it: the longest of the rows is the job's own."""
    rows = [row("1", joules="0"), row("1", "a.out", seconds=99, joules="900")]
    for mixed in (rows, rows[::-1]):
        assert told(read(tmp_path, separated(mixed))[0]) == [("ft", 4, 100, 900, 0, 0)]


def test_a_requeued_job_is_its_last_run_and_clusters_have_numbers_of_their_own(tmp_path):
    rows = [
        row("1", seconds=900, joules="90", state="NODE_FAIL"),
        row("1", joules="500"),
        row("1.0", joules="400", seconds=9),
    ]
    assert told(read(tmp_path, separated(rows))[0]) == [("ft", 4, 100, 500, 0, 0)]
    columns = [*COLUMNS, "Cluster"]
    rows = [row("1") | {"Cluster": "a"}, row("1", "cg", joules="60000") | {"Cluster": "b"}]
    assert len(read(tmp_path, separated(rows, columns))[0]) == 2


def test_lines_that_are_no_rows_are_left_out_with_a_note(tmp_path):
    text = separated([row("1"), row("1234567+"), row("[8-9]"), row("3_[4-5]", state="PENDING"), row("3_4", "b")])
    runs, notes = read(tmp_path, text + "Disk quota exceeded\n")
    assert told(runs) == [("b", 4, 100, 50000, 0, 0), ("ft", 4, 100, 50000, 0, 0)]
    assert any("2 rows without the number of a job" in note and "jobs.txt:3" in note for note in notes)
    assert any("1 lines are no rows of jobs and were left out (the first is 7)" in note for note in notes)
    quoted = read(tmp_path, separated([row("1", 'x"y'), row("2", '"z')]))[0]
    assert {run.program for run in quoted} == {'x"y', '"z'}


def test_columns_of_a_fixed_width_are_read_where_they_stand(tmp_path):
    rows = [row("1", "two words"), row("2", "cg", state="CANCELLED by 1000000001")]
    runs, notes = read(tmp_path, in_columns(rows, width=18))
    assert told(runs) == [("two words", 4, 100, 50000, 0, 0)] and "1 CANCELLED" in notes[0]
    lines = in_columns([*rows, row("3", "a-name-of-more-than-it-can-hold")], width=18).splitlines()
    lines[2] = lines[2].replace(" two words", "  two words")
    runs, notes = read(tmp_path, "\n".join([*lines, ""]))
    assert told(runs) == [("a-name-of-more-th+", 4, 100, 50000, 0, 0)]
    assert any("the first is 3" in note for note in notes) and any(
        "names of jobs are cut off" in note for note in notes
    )


@pytest.mark.parametrize(
    "text",
    [
        "  12535498  COMPLETED   2   1 2020-11-18T13:54:24    2.77K\n",
        "1|ft|4|100|50000|COMPLETED\n",
        "ft,1024,4,2800,7.6,38.5\n",
    ],
)
def test_a_table_without_a_header_is_refused(tmp_path, text):
    with pytest.raises(LogError, match="jobs.txt:1: the first line is a row and no header"):
        read(tmp_path, text)


def test_a_table_of_markdown_is_that_of_sacct(tmp_path):
    """With empty cells at both ends of its steps' rows, below prose, and above another table."""
    columns = ("State", *COLUMNS[:-1], "Comment")
    jobs = [{**each, "Comment": ""} for each in (row("7"), row("7.batch", nodes=1, joules="9000", state=""))]
    plain = separated(jobs, columns)
    lines = [f"| {line.replace('|', ' | ')} |" for line in plain.splitlines()]
    lines.insert(1, "|:---" * len(columns) + "|")
    prose = "# Slurm\n\na|b\n\n"
    (found,), notes = read(tmp_path, prose + "\n".join(lines) + "\n\n|a|b|\n|-|-|\n|1|2|\n")
    (expected,), _ = read(tmp_path, plain)
    assert (found.energy_j, found.time_s, found.processors) == (expected.energy_j, 100, 4) == (50000, 100, 4)
    assert "holds 2 tables; the first, of line 5, is read alone" in " ".join(notes)
    with pytest.raises(
        LogError, match="jobs.txt:1: no column processes or time_s in the header, taken to be `# Slurm`"
    ):
        read(tmp_path, prose)


@pytest.mark.parametrize("content", ['{"jobs": [', '{"job": []}', "{}", '{"jobs": 3}', "[" * 5000])
def test_json_that_is_no_accounting_is_one_sentence(tmp_path, content):
    for name in ("jobs.json", "jobs.txt"):
        with pytest.raises(EprofError):
            read(tmp_path, content, name)


def test_steps_in_json_may_be_told_by_their_parts(tmp_path):
    job = {"job_id": 7, "name": "ft", "allocation_nodes": 2, "time": {"elapsed": 50}, "state": {"current": "COMPLETED"}}
    job |= {"array": {"job_id": 5, "task_id": {"set": True, "infinite": False, "number": 3}}}
    step = {
        "step": {"id": {"job_id": 7, "step_id": "extern"}, "name": "extern"},
        "state": "COMPLETED",
        "nodes": {"count": 2},
    }
    step |= {
        "time": {"elapsed": 50},
        "statistics": {"energy": {"consumed": 800}},
        "CPU": {"requested_frequency": {"max": None}},
    }
    runs, _ = read(tmp_path, json.dumps({"jobs": [job | {"steps": [step]}]}), "sacct.json")
    assert told(runs) == [("ft", 2, 50, 800, 0, 0)] and runs[0].where.endswith("sacct.json: job 5_3")


def test_real_tables(tmp_path):
    if not SACCT.is_dir():
        pytest.skip("the shared data is not here")
    (run,), _ = measured_runs.read([str(SACCT / "ear-santis-derived.psv")])
    assert (run.processors, run.time_s, run.energy_j, run.program) == (4, 2102, 20543125, "eff.slm")
    (run,), notes = measured_runs.read([str(SACCT / "autosubmit-wrapper_big-derived.psv")])
    assert (run.processors, run.time_s, run.energy_j) == (1, 90, 13660) and "19050 J" in notes[0]
    runs, _ = measured_runs.read([str(SACCT / "steampunk-tests-sacct.csv")])
    assert [(run.time_s, run.energy_j) for run in runs] == [(778, None)]
    for name, words in {
        "autosubmit-wrapper1.txt": "a row and no header",
        "ood-test-sacct.txt": "no column processes or time_s",
        "slurmio-sacct.txt": "no column time_s",
    }.items():
        with pytest.raises(LogError, match=words):
            measured_runs.read([str(SACCT / name)])
