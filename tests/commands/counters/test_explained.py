"""What `eprof counters` says of definitions: how each count is made, and what another profiler calls a counter."""

import json
import re

import pytest

from eprof.commands.counters.command import explain, other_names, search, summary
from eprof.counts import definition_files


@pytest.mark.parametrize("path", definition_files.definition_files(), ids=str)
def test_every_definition_file_is_explained(path):
    assert explain(definition_files.load(path))


def test_search_tells_who_uses_a_counter():
    found = search("l1_global_load_hit")
    assert {row["definition"] for row in found} == {
        "nvprof/fermi",
        "nvprof/kepler-3.0",
        "nvprof/kepler-3.2",
        "nvprof/kepler-3.5",
    }
    assert all("l1_read" in row["words"] for row in found)
    assert search("nothing_like_it") == []


def test_summary_and_explain_are_plain_data():
    for definition in definition_files.definitions():
        json.dumps([summary(definition), explain(definition)])
    rows = explain(definition_files.find("nvprof", "7.0"))
    tensor = next(row for row in rows if row["word"] == "tensor")
    assert tensor["marks"] == ["missing"] and "Nsight" in tensor["note"] and tensor["rank"] == 0
    assert {row["books"] for row in rows} >= {"both", "served", "accessed", "step"}


def test_the_table_of_names_is_tidy():
    pairs = other_names()
    assert len(pairs) >= 60
    old = [name for pair in pairs for name in pair.nvprof]
    assert len(set(old)) == len(old)
    assert all(re.fullmatch(r"[a-z0-9_*]+", name) for name in old)
    assert all(re.match(r"(smsp|sm|l1tex|lts|dram)__", metric) for pair in pairs for metric in pair.metrics)
    known = frozenset().union(*(one.profiler_names for one in definition_files.definitions() if one.profiler == "ncu"))
    used = [metric for pair in pairs for metric in pair.metrics if metric in known]
    assert len(used) > 40, "most names of the table are those that the definitions use"


def test_find_shows_the_name_in_the_other_profiler():
    found = search("inst_integer")
    assert (
        all(
            any("smsp__sass_thread_inst_executed_op_integer_pred_on.sum" in one for one in row["also"]) for row in found
        )
        and found
    )
    assert any("nvprof: inst_integer" in one for row in search("op_integer") for one in row["also"])
    lone = search("sm_efficiency")
    assert all(row["words"] == ["sm_active_cycle", "sm_active"] for row in lone) and lone[0]["also"]
    unused = search("l2_atomic_transactions")
    assert unused == [{"definition": "", "counter": "l2_atomic_transactions", "words": [], "also": unused[0]["also"]}]
    assert "slices" in search("l2_subp0_total_read")[0]["also"][0]
