"""Groups by rank, stream and NVTX range: they add up to the whole, and what nothing tells is not guessed."""

import csv
import json
import math

import pytest
from frames_support import combine
from logs_support import read_tuned
from pandas.testing import assert_frame_equal

import eprof
from eprof import logs
from eprof.base.errors import LogError, UsageError
from eprof.cli.dispatch import main
from eprof.commands.report import page as report
from eprof.commands.report import terminal as console
from eprof.logs import many
from eprof.logs.runs import ranks
from eprof.logs.stream import Tuning
from eprof.profile import grouping
from eprof.profilers.ncu.launches import innermost

METRICS = ("flop_count_sp_fma", "inst_fp_32", "inst_integer", "dram_read_transactions", "dram_write_transactions")
DEVICE = "Tesla K20c (0)"


def metrics(path, kernels):
    """A metrics summary. kernels: name -> (launches, average of each metric)."""
    lines = ['"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"']
    for kernel, (launches, average) in kernels.items():
        lines += [f'"{DEVICE}","{kernel}",{launches},"{one}","{one}",{average},{average},{average}' for one in METRICS]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return path


def trace(path, launches):
    """A GPU trace. launches: (kernel, milliseconds, stream)."""
    lines = ['"Start","Duration","Grid X","Device","Context","Stream","Name"', "ms,ms,,,,,"]
    lines += [
        f'{at},{ms},1,"{DEVICE}","1","{stream}","{kernel} [{at}]"' for at, (kernel, ms, stream) in enumerate(launches)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return path


def summary(path, kernels):
    """A GPU summary, which tells neither device nor stream. kernels: name -> (calls, milliseconds)."""
    lines = ['"Time(%)","Time","Calls","Avg","Min","Max","Name"', "%,ms,,ms,ms,ms,"]
    lines += [f'50,{ms},{calls},1,1,1,"{kernel}"' for kernel, (calls, ms) in kernels.items()]
    path.write_text("\n".join(lines) + "\n")
    return path


def wide(path, launches):
    """A trace of counters. launches: (kernel, value, stream)."""
    lines = ['"Device","Context","Stream","Kernel",' + ",".join(f'"{one}"' for one in METRICS)]
    lines += [
        f'"{DEVICE}","1","{stream}","{kernel}",' + ",".join([str(value)] * len(METRICS))
        for kernel, value, stream in launches
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def document(*inputs, by, **options):
    """The priced document, grouped by parts."""
    return eprof.load(*inputs, parts=by, **options).energy("gtx680").grouped(by).document()


def plain(*inputs):
    return eprof.load(*inputs).energy("gtx680").document()


def names(found):
    return [one["name"] for one in found["groups"]]


def adds_up(found):
    """Groups add up to the whole, count by count and joule by joule, and no mark of the whole is lost."""
    groups = found["groups"]
    for word, cell in found["counts"].items():
        for key in ("value", "energy_j"):
            known = [one["counts"][word][key] for one in groups if one["counts"].get(word, {}).get(key) is not None]
            assert (math.fsum(known) if known else None) == (
                cell[key] if cell[key] is None else pytest.approx(cell[key])
            )
        assert set(cell["marks"]) <= {mark for one in groups for mark in one["counts"].get(word, cell)["marks"]}
    for part in ("computation", "data", "constant", "total"):
        assert math.fsum(one["energy_j"][part] or 0 for one in groups) == pytest.approx(found["energy_j"][part] or 0)
    assert math.fsum(one["time_s"] or 0 for one in groups) == pytest.approx(found["time_s"] or 0)
    assert sum(one["launches"] for one in groups) == found["launches"]
    assert set(found["marks"]) <= {mark for one in groups for mark in one["marks"]}


def same_whole(found, without):
    """Grouping changes nothing of the whole, nor of its kernels."""
    assert found["time_s"] == pytest.approx(without["time_s"])
    assert found["energy_j"] == pytest.approx(without["energy_j"])
    assert found["launches"] == without["launches"]
    for one, other in zip(found["kernels"], without["kernels"], strict=True):
        assert (one["name"], one["launches"], one["marks"]) == (other["name"], other["launches"], other["marks"])
        for word, cell in other["counts"].items():
            assert one["counts"][word]["value"] == pytest.approx(cell["value"])
            assert one["counts"][word]["marks"] == cell["marks"]


# --------------------------------------------------------------------------------------------------------------- ranks


@pytest.fixture
def four(tmp_path):
    """Four ranks with a log of counters and one of times each; rank 3 takes longest, rank 2 has one more kernel."""
    made = []
    for rank in range(4):
        kernels = {"a(int)": (2, 1000 * (rank + 1)), "b(int)": (1, 500)}
        launches = [("a(int)", 1.0 + rank, 7), ("a(int)", 1.0, 7), ("b(int)", 2.0, 8)]
        if rank == 2:
            kernels["c(int)"], launches = (1, 40), [*launches, ("c(int)", 0.5, 7)]
        made += [
            metrics(tmp_path / f"rank{rank:02d}" / "metrics-v1.csv", kernels),
            trace(tmp_path / f"rank{rank:02d}" / "trace-v1.csv", launches),
        ]
    return made


def test_ranks_add_up_and_their_logs_join(four):
    found = document(*four, by="rank")
    assert names(found) == ["rank 0", "rank 1", "rank 2", "rank 3"]
    assert [one["time_s"] for one in found["groups"]] == pytest.approx([4e-3, 5e-3, 6.5e-3, 7e-3])
    assert [len(one["kernels"]) for one in found["groups"]] == [2, 2, 3, 2]
    adds_up(found)
    same_whole(found, plain(*four))
    spread = found["ranks"]
    assert spread["number"] == 4 and spread["slowest"] == "rank 3"
    assert spread["time_s"] == pytest.approx({"min": 4e-3, "median": 5.75e-3, "max": 7e-3})
    assert spread["imbalance"] == pytest.approx(7 / (22.5 / 4) - 1)
    assert spread["launches"] == {"min": 3, "median": 3, "max": 4}
    assert spread["energy_j"]["max"] == pytest.approx(max(one["energy_j"]["total"] for one in found["groups"]))


def test_without_parts_nothing_changes(four):
    found = plain(*four)
    assert "ranks" not in found and "groups" not in found
    assert "part" not in eprof.load(*four).energy("gtx680").to_frame()


def test_a_rank_without_times_leaves_the_imbalance_open(four):
    spread = document(*four[:-1], by="rank")["ranks"]
    assert spread["imbalance"] is None and spread["time_marks"] == ["missing"]
    assert "not known" in console.text(document(*four[:-1], by="rank"))


def test_terminal_and_page_tell_the_slowest_rank(four):
    found = document(*four, by="rank")
    for text in (console.text(found), report.html(found)):
        assert "Rank 3 is the slowest; imbalance 24 %" in " ".join(text.split())


def test_rows_by_rank_are_in_the_table(four):
    frame = eprof.load(*four, parts="rank").energy("gtx680").to_frame()
    assert sorted(frame["part"].unique()) == ["0", "1", "2", "3"]
    assert len(frame) == 9


def test_ranks_by_a_regular_expression(tmp_path):
    paths = [tmp_path / f"node{node}-r{rank}.csv" for node, rank in [(1, 0), (1, 1), (2, 2), (2, 3)]]
    with pytest.raises(UsageError, match="--rank"):
        ranks(paths, None)
    assert list(ranks(paths, r"-r(\d+)").values()) == ["0", "1", "2", "3"]
    assert list(ranks(paths, r"(node\d)").values()) == ["node1", "node1", "node2", "node2"]
    for wrong in (r"-r\d+", r"-q(\d+)", "(", "x(y)?"):
        with pytest.raises(UsageError, match="--rank"):
            ranks(paths, wrong)


def test_ranks_by_the_one_number_that_differs(tmp_path):
    def told(*names):
        return list(ranks([tmp_path / name for name in names], None).values())

    assert told("rank0/m-1.csv", "rank10/m-1.csv", "rank0/t-2.csv", "rank10/t-2.csv") == ["0", "10", "0", "10"]
    assert told("r007-of-007.csv", "r001-of-007.csv") == ["7", "1"]
    assert told("3/rank3.csv", "4/rank4.csv") == ["3", "4"]
    for names in (("one.csv",), ("a.csv", "b.csv"), ("r1.csv", "r2.csv", "t1.csv")):
        with pytest.raises(UsageError, match="--rank"):
            told(*names)


def test_run_directories_are_ranks(tmp_path, four):
    """Each with its own name where no number tells; their logs join as those of one rank."""
    for rank, name in enumerate(("alpha", "beta")):
        (tmp_path / name / "logs").mkdir(parents=True)
        (tmp_path / name / "logs" / "counters-1.csv").write_text(four[2 * rank].read_text())
        (tmp_path / name / "logs" / "time-1.csv").write_text(four[2 * rank + 1].read_text())
        (tmp_path / name / "run.json").write_text(json.dumps({"schema": "eprof.run/1", "status": "complete"}))
    found = document(tmp_path / "alpha", tmp_path / "beta", by="rank")
    assert names(found) == ["rank alpha", "rank beta"]
    assert [one["time_s"] for one in found["groups"]] == pytest.approx([4e-3, 5e-3])
    adds_up(found)


def test_command_line_groups_by_rank(four, tmp_path, capsys):
    pattern = str(tmp_path / "rank*" / "*.csv")
    with pytest.raises(SystemExit) as end:
        main(["report", pattern, "--group", "rank", "--costs", "gtx680", "--format", "json"])
    assert end.value.code == 0
    assert json.loads(capsys.readouterr().out)["ranks"]["number"] == 4
    for wrong in (["--rank", "x"], ["--group", "rank", "--rank", "("], ["--group", "rank", "--group", "a=b"]):
        with pytest.raises(SystemExit) as end:
            main(["report", pattern, "--costs", "gtx680", *wrong])
        assert end.value.code == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_many_ranks_are_few_groups(tmp_path, monkeypatch):
    """60 ranks in at most 20 groups: 19 ranks and the sum of the others; the statistics are of all."""
    monkeypatch.setattr(grouping, "_SHOWN", 20)
    made = [trace(tmp_path / f"t{rank}.csv", [("a(int)", 1.0 + rank, 7), ("b(int)", 1.0, 7)]) for rank in range(60)]
    found = document(*made, by="rank", cache=False)
    assert len(found["groups"]) == 20
    assert found["groups"][-1]["name"] == "41 others" and found["groups"][-1]["stands_for"] == 41
    assert names(found)[0] == "rank 41"
    assert found["ranks"]["number"] == 60 and found["ranks"]["slowest"] == "rank 59"
    assert found["ranks"]["time_s"]["min"] == pytest.approx(2e-3)
    assert found["ranks"]["time_s"]["max"] == pytest.approx(61e-3)
    adds_up(found)
    assert len(found["kernels"]) == 2
    assert "more groups" in console.text(found)


# ------------------------------------------------------------------------------------------------------------- streams


def two_streams(folder):
    """Kernel a in streams 7 and 14, b in 7; counters and times both tell."""
    launches = [("a(int)", 100, 7), ("a(int)", 300, 14), ("b(int)", 50, 7), ("a(int)", 200, 14)]
    counted = wide(folder / "counters.csv", launches)
    timed = trace(folder / "times.csv", [(kernel, value / 100, stream) for kernel, value, stream in launches])
    return counted, timed


def test_streams_add_up(tmp_path):
    made = two_streams(tmp_path)
    found = document(*made, by="stream")
    assert names(found) == ["stream 7", "stream 14"]
    assert [one["launches"] for one in found["groups"]] == [2, 2]
    assert [one["time_s"] for one in found["groups"]] == pytest.approx([1.5e-3, 5e-3])
    assert [one["counts"]["integer"]["value"] for one in found["groups"]] == [150, 500]
    adds_up(found)
    same_whole(found, plain(*made))
    assert "ranks" not in found


def test_adding_up_keeps_streams_apart(tmp_path):
    launches = [(f"k{at % 3}(int)", 10 + at % 7, 7 + at % 2) for at in range(4000)]
    made = wide(tmp_path / "w.csv", launches), trace(tmp_path / "t.csv", launches)
    for one in made:
        whole = logs.read(one, parts="stream")
        folded = read_tuned(one, Tuning(chunk_bytes=4096, fast_from=1), parts="stream")
        assert len(folded.tables[0].rows) == len(whole.tables[0].rows) == 6
        a, b = (combine([log]) for log in (whole, folded))
        assert len(a.kernels) == 6 and set(a.kernels["part"]) == {"7", "8"}
        key = ["kernel", "part"]
        a, b = (one.kernels.join(one.counters).sort_values(key).reset_index(drop=True) for one in (a, b))
        assert_frame_equal(a, b, rtol=1e-12)


def test_a_kernel_of_one_stream_takes_what_does_not_tell(tmp_path):
    timed = trace(tmp_path / "times.csv", [("a(int)", 1.0, 7), ("a(int)", 2.0, 7), ("b(int)", 3.0, 14)])
    counted = metrics(tmp_path / "metrics.csv", {"a(int)": (2, 1000), "b(int)": (1, 10)})
    found = document(timed, counted, by="stream")
    assert names(found) == ["stream 7", "stream 14"]
    assert [one["counts"]["integer"]["value"] for one in found["groups"]] == [2000, 10]
    assert all("missing" not in one["time_marks"] for one in found["groups"])
    adds_up(found)
    same_whole(found, plain(timed, counted))


def test_what_no_table_tells_is_not_shared_out(tmp_path):
    """Kernel a runs in two streams, but its time is from a summary: neither stream gets a time by guessing."""
    counted, _ = two_streams(tmp_path)
    timed = summary(tmp_path / "summary.csv", {"a(int)": (3, 6.0), "b(int)": (1, 0.5)})
    found = document(counted, timed, by="stream")
    assert names(found) == ["stream 7", "stream not told"]
    seven, untold = found["groups"]
    assert untold["time_s"] == pytest.approx(6e-3) and untold["counts"]["integer"]["value"] == 600
    assert seven["time_s"] == pytest.approx(0.5e-3)
    assert "missing" in seven["marks"] and "missing" in seven["time_marks"], "some of a may be of stream 7"
    assert seven["counts"]["integer"]["lower_bound"]
    assert any("cannot be shared out" in one for one in found["warnings"])
    adds_up(found)
    same_whole(found, plain(counted, timed))


def test_logs_that_tell_no_streams(tmp_path):
    counted = metrics(tmp_path / "metrics.csv", {"a(int)": (2, 1000)})
    with pytest.raises(LogError, match="none of these logs tells streams"):
        eprof.load(counted, parts="stream")
    with pytest.raises(UsageError, match='parts="stream"'):
        eprof.load(counted).energy("gtx680").grouped("stream")
    with pytest.raises(UsageError, match="not by thread"):
        eprof.load(counted, parts="thread")


def test_the_cache_keeps_streams(tmp_path, monkeypatch):
    monkeypatch.setenv("EPROF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(many, "SMALLEST_BYTES", 1)
    monkeypatch.setattr(many, "_SETTLED_S", -1.0)
    made = two_streams(tmp_path)
    first, again, without = (document(*made, by="stream"), document(*made, by="stream"), plain(*made))
    assert list((tmp_path / "cache").glob("*-*-*"))
    assert first["groups"] == again["groups"]
    assert "groups" not in without


# --------------------------------------------------------------------------------------------------------- NVTX ranges

COLUMN = "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"
NCU = {
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": "inst",
    "dram__bytes_read.sum": "byte",
    "gpu__time_duration.sum": "nsecond",
}


def cell(*ranges):
    """A cell as ncu writes it, the outermost range first."""
    return "1  " + "".join(f'"<default domain>:{one}:none:none:none:none:none:none"  ' for one in ranges)


LAUNCHES = [("k", cell("step", "solve"), 10), ("k", cell("step"), 20), ("j", "", 30), ("k", cell("step", "a:b"), 40)]


def ncu_log(path, page):
    """A log of ncu with `--nvtx`: the raw page, or a row a metric."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file, quoting=csv.QUOTE_ALL)
        fixed = ["ID", "Process ID", "Process Name", "Host Name", COLUMN, "Kernel Name", "Context", "Stream", "Device"]
        fixed += ["CC"]
        rows.writerow([*fixed, *(NCU if page == "raw" else ["Metric Name", "Metric Unit", "Metric Value"])])
        if page == "raw":
            rows.writerow([""] * len(fixed) + list(NCU.values()))
        for at, (kernel, told, value) in enumerate(LAUNCHES):
            own = [at, 77, "app", "host", told, kernel, 1, 7 + at % 2, 0, "7.0"]
            if page == "raw":
                rows.writerow([*own, *([value] * len(NCU))])
            else:
                rows.writerows([*own, name, unit, value] for name, unit in NCU.items())
    return path


@pytest.mark.parametrize(("page", "by"), [("raw", "nvtx"), ("long", "mark")])
def test_nvtx_ranges_add_up(tmp_path, page, by):
    log = ncu_log(tmp_path / "ncu.csv", page)
    found = document(log, by=by)
    values = {one["name"]: one["counts"]["fp32_fma"]["value"] for one in found["groups"]}
    assert values == {"solve": 10, "step": 20, "(outside of ranges)": 30, "a:b": 40}
    times = {one["name"]: one["time_s"] for one in found["groups"]}
    assert times["solve"] == pytest.approx(10e-9)
    adds_up(found)
    same_whole(found, plain(log))
    streams = document(log, by="stream")
    assert {one["name"]: one["launches"] for one in streams["groups"]} == {"stream 7": 2, "stream 8": 2}
    adds_up(streams)


def test_a_log_without_ranges(tmp_path):
    with pytest.raises(LogError, match="--nvtx"):
        eprof.load(trace(tmp_path / "t.csv", [("a(int)", 1.0, 7)]), parts="nvtx")


def test_innermost_range():
    assert innermost(cell("x")) == "x"
    assert innermost(cell("outer", "inner: 3")) == "inner: 3"
    assert innermost("1  ") == innermost("") == "(outside of ranges)"
    assert innermost('7  "odd"') == "odd"


def test_what_if_of_ranks_is_that_of_all_of_them(four):
    """Also with the costs of a table that counts bytes in another way, for which all is counted again."""
    for costs, other in (("jetson-tk1", "gtx1080ti"), ("gtx980", "jetson-tk1")):
        whole = eprof.load(*four).energy(costs).what_if(f"costs={other}")
        ranked = eprof.load(*four, parts="rank").energy(costs).grouped("rank").asking(f"costs={other}").document()
        asked = ranked["what_if"][0]["energy_j"]
        assert asked["total"] == pytest.approx(whole.energy_j["total"], rel=1e-12)


def test_ranks_of_which_one_lacks_a_time_have_no_imbalance(four):
    path = four[1]
    path.write_text(path.read_text() + f'9,,1,"{DEVICE}","1","7","a(int) [9]"\n')
    spread = document(*four, by="rank")["ranks"]
    assert spread["imbalance"] is None and spread["time_marks"] == ["missing"]


def test_a_total_time_of_one_kernel_is_its_time_on_all_ranks(tmp_path):
    logs_ = [metrics(tmp_path / f"rank{rank}.csv", {"a(int)": (1 + rank, 1000)}) for rank in range(2)]
    profile = eprof.load(*logs_, parts="rank", time=["3"])
    found = profile.energy("jetson-tk1").grouped("rank").document()
    assert found["kernels"][0]["time_s"] == 3 and [group["time_s"] for group in found["groups"]] == [1, 2]
