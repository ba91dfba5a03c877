"""Groups by rank, stream and NVTX range: they add up to the whole, and what nothing tells is not guessed."""

import json
import math

import pytest

import eprof
from eprof import console, grouping, report
from eprof.__main__ import main
from eprof.errors import UsageError
from eprof.logs.ranks import ranks

METRICS = ("flop_count_sp_fma", "inst_fp_32", "inst_integer", "dram_read_transactions", "dram_write_transactions")
DEVICE = "Tesla K20c (0)"


def metrics(path, kernels):
    """A metrics summary. kernels: name -> (launches, average of each metric)."""
    lines = ['"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"']
    for kernel, (launches, average) in kernels.items():
        lines += [
            f'"{DEVICE}","{kernel}",{launches},"{one}","{one}",{average},{average},{average + place}'
            for place, one in enumerate(METRICS)
        ]
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
        f'"{DEVICE}","1","{stream}","{kernel} [{at}]",' + ",".join(str(value + place) for place in range(len(METRICS)))
        for at, (kernel, value, stream) in enumerate(launches)
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
    assert "and 10 more groups" in console.text(found)
