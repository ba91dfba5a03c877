"""A small soak: logs of mixed health in one command; benchmarks/soak.py is the one of a thousand and more."""

import importlib.util
from pathlib import Path

import pytest

SOAK = Path(__file__).parents[2] / "benchmarks" / "soak.py"


@pytest.fixture(scope="module")
def soak():
    spec = importlib.util.spec_from_file_location("soak", SOAK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_logs_of_mixed_health_lose_nothing(soak, tmp_path, monkeypatch, capsys):
    """One process and several give one document, with the sums of one by one and a reason for each log left out."""
    monkeypatch.setenv("SOAK_MANY", "1")
    run = soak.Soak(tmp_path)
    run.mixed(45, {"one process": {}, "two processes": {"workers": 2}})
    run.clean()
    assert not run.wrong, run.wrong
    assert capsys.readouterr().out.count("ok ") == 6


def test_a_soak_sees_what_is_lost(soak, tmp_path):
    run = soak.Soak(tmp_path)
    run._left_out(
        {"warnings": ["Left out: a: why"], "inputs": [{"path": "b"}]}, ["a", "b", "c"], {"a": "a: why", "c": "c: why"}
    )
    assert len(run.wrong) == 1  # c, of which nothing is said
    run._left_out({"warnings": ["Left out: a: why"], "inputs": []}, ["a", "b"], {"a": "a: why"})
    assert len(run.wrong) == 2  # b, which is in no report


def test_memory_threads_and_descriptors_stay_as_they_are(soak, tmp_path):
    if not Path("/proc/self/statm").exists():
        pytest.skip("needs /proc")
    run = soak.Soak(tmp_path)
    (tmp_path / "healthy").mkdir()
    for i in range(6):
        (tmp_path / "healthy" / f"log-{i}.csv").write_text(soak.HEALTHY[i % 5](i))
    run.again(6)
    assert not run.wrong, run.wrong
