"""The suite itself: what it says of tests that did not run, and the mutants that measure it."""

import ast
import re
import subprocess
import sys

import pytest
from conftest import ROOT, environment

SKIPPING = """
import pytest
@pytest.mark.parametrize("name", ["a.csv", "b.csv", "c.csv"])
def test_log(name):
    pytest.skip(f"needs the real log {name}, which is not part of this project")
@pytest.mark.skipif(True, reason="needs a browser")
def test_page():
    pass
@pytest.fixture
def device():
    pytest.skip("needs a GPU")
def test_device(device):
    pass
def test_that_runs():
    pass
"""


@pytest.mark.parametrize("workers", [[], ["-n", "1"]], ids=["alone", "xdist"])
def test_skipped_tests_are_told_with_their_reasons(tmp_path, workers):
    (tmp_path / "test_some.py").write_text(SKIPPING)
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = none\n")
    command = [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", *workers, "test_some.py"]
    paths = f"{ROOT / 'tests'}:{ROOT / 'tests' / 'support'}:{ROOT}"
    done = subprocess.run(command, cwd=tmp_path, env=environment(PYTHONPATH=paths), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    told = done.stdout.partition("5 tests skipped")[2].splitlines()
    assert [line.split(maxsplit=1) for line in told if re.match(" +[0-9]", line)] == [
        ["3", "needs the real log, which is not part of this project"],
        ["1", "needs a GPU"],
        ["1", "needs a browser"],
    ]


# ---- benchmarks/mutants.py


@pytest.fixture
def mutants(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import mutants

    return mutants


SMALL = """
def f(a: int | None, b=(1, 2)) -> bool | None:
    \"\"\"Not < this.\"\"\"
    if a and not (b < 2):
        return np.fmin(a, b).any()
    return (a + b) * -0.5
"""


def test_each_operator_is_changed_and_annotations_and_texts_are_not(mutants):
    found = mutants.mutants("x.py", SMALL)
    lines = {mutants.mutated(SMALL, one).splitlines()[one.line - 1].strip() for one in found}
    assert lines >= {
        "def f(a: int | None, b=(2, 2)) -> bool | None:",
        "if a or not (b < 2):",
        "if a and  (b < 2):",
        "if a and not (b <= 2):",
        "if a and not (b > 2):",
        "if (not (a and not (b < 2))):",
        "return np.fmax(a, b).any()",
        "return np.fmin(a, b).all()",
        "return None",
        "return (a - b) * -0.5",
        "return (a + b) / -0.5",
        "return (a + b) * 0.5",
        "return (a + b) * -1.5",
    }
    assert len({mutants.mutated(SMALL, one) for one in found}) == len(found) == 16
    for one in found:
        ast.parse(mutants.mutated(SMALL, one))


def test_the_nearest_tests_of_each_module_are_there(mutants):
    for module, names in mutants.TESTS.items():
        assert (ROOT / "eprof" / module).exists()
        for name in [*names, *mutants.ALL]:
            assert list((ROOT / "tests").rglob(f"test_{name}.py")), name


def test_a_mutant_goes_into_a_copy_and_a_survivor_is_told(mutants, tmp_path, monkeypatch, capsys):
    """A tree of one module, with a test that sees some of its changes and one that fails anyhow."""
    for folder in ("eprof", "tests"):
        (tmp_path / "here" / folder).mkdir(parents=True)
    (tmp_path / "here" / "eprof" / "__init__.py").touch()
    (tmp_path / "here" / "tests" / "test_broken.py").write_text("def test():\n    raise ValueError\n")
    source = "def f(a):\n    return max(a, 5)\n"
    (tmp_path / "here" / "eprof" / "small.py").write_text(source)
    (tmp_path / "here" / "tests" / "test_small.py").write_text(
        "from eprof.small import f\ndef test():\n    assert f(9) == 9\n"
    )
    monkeypatch.setattr(mutants, "ROOT", tmp_path / "here")
    monkeypatch.setattr(mutants, "TESTS", {"small.py": ["broken", "small"]})
    monkeypatch.setattr(mutants, "ALL", [])
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # a pytest a mutant: none needs plugins
    state = tmp_path / "state.jsonl"
    monkeypatch.setattr(sys, "argv", ["mutants.py", "--number", "99", "--state", str(state), "--jobs", "2"])
    assert mutants.main() == 1
    told = capsys.readouterr().out
    assert "test_broken.py fails without any change" in told
    assert "killed by test_small.py          small.py:2: max(a, 5) -> None" in told
    assert "survived: small.py:2: 5 -> 6" in told and "+    return max(a, 6)" in told
    assert (tmp_path / "here" / "eprof" / "small.py").read_text() == source
    ran = len(state.read_text().splitlines())
    monkeypatch.setattr(mutants, "fate", None)  # what is in the state is not run again
    assert mutants.main() == 1 and len(state.read_text().splitlines()) == ran
