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


def made(mutants, source):
    """Every changed program of one, as text."""
    return [ast.unparse(mutants.mutated(source, one.number)) for one in mutants.mutants("x.py", source)]


def test_each_operator_is_changed_and_annotations_and_texts_are_not(mutants):
    programs = made(mutants, SMALL)
    changed = {line.strip() for program in programs for line in program.splitlines()}
    assert changed - {line.strip() for line in ast.unparse(ast.parse(SMALL)).splitlines()} == {
        "def f(a: int | None, b=(2, 2)) -> bool | None:",
        "def f(a: int | None, b=(1, 3)) -> bool | None:",
        "if a or not b < 2:",
        "if a and b < 2:",
        "if a and (not b <= 2):",
        "if a and (not b > 2):",
        "if a and (not b < 3):",
        "if not (a and (not b < 2)):",
        "return np.fmax(a, b).any()",
        "return np.fmin(a, b).all()",
        "return None",
        "return (a - b) * -0.5",
        "return (a + b) / -0.5",
        "return (a + b) * 0.5",
        "return (a + b) * -1.5",
        "return a * -0.5",
        "return b * -0.5",
    }
    assert len(set(programs)) == len(programs) == 18


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        ("x = max(a, b)", ["x = min(a, b)"]),
        ("x = a - b", ["x = a + b", "x = a"]),
        ("x = a * 0.001", ["x = a", "x = a * 1e-06", "x = a / 0.001"]),
        ("x = 1000 * a", ["x = a", "x = 1001 * a", "x = 1000000.0 * a"]),
        ("x = abs(a)", ["x = a"]),
        ("x = a[i:]", ["x = a[i + 1:]"]),
        ("x = a[:-n]", ["x = a[:-n - 1]", "x = a[:n]"]),
        ("x = not a", ["x = a"]),
        ("x = {'a': p, 'b': q}", ["x = {'a': q, 'b': p}"]),
        ("x = f'a{b}' + c", ["x = f'a{b}' - c"]),
        ("for c in d:\n    e(c)", ["for c in d:\n    if True:\n        e(c)\n        break"]),
        ("class C(B, eq=False):\n    a = zip(b, strict=True)", []),
    ],
)
def test_what_a_line_may_become(mutants, line, changes):
    programs = made(mutants, line)
    assert set(changes) <= set(programs) and bool(changes) == bool(programs)
    assert "x = f'a{b}'" not in programs


def test_functions_end_early(mutants):
    source = "def f(a):\n    b = [1]\n    b += a\n    return b"
    assert source.replace("b += a", "pass") in made(mutants, source)


def test_modules_that_make_numbers_are_found(mutants):
    """By their names: no list that a move of files would leave behind."""
    found = mutants.executed.modules()
    lines = sum(len((ROOT / "eprof" / module).read_text().splitlines()) for module in found)
    assert lines > 24_000 and len(found) > 100
    assert not any(part in found for part in ("words", "page", "terminal"))


MODULE = """
LIMIT = 5
def f(a):
    return max(a, LIMIT)
def g(a):
    if a > 9:
        return 1
    return a + 1
"""
TESTS = """
import os, subprocess, sys
from eprof import small
def test_before():
    os.environ["BEFORE"] = "1"
def test_that_needs_the_one_before():
    assert small.g(20) == 1 and "BEFORE" in os.environ
def test_limit():
    assert small.f(9) == 9 and small.f(0) == 5
def test_in_a_process():
    code = "from eprof import small; print(small.g(3))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "4\\n"
"""


# In a process of its own: what is forked of one that holds thousands of tests takes ten times as long.
MAIN = """
import sys
from pathlib import Path
import executed, mutants
executed.ROOT, executed.BESIDE = Path(sys.argv.pop(1)), []
if sys.argv.pop(1) == "again":
    executed.fork = None  # what is in the state is not run again
sys.exit(mutants.main())
"""


def test_a_mutant_meets_the_tests_that_execute_it(tmp_path):
    """Also in a process that a test starts, and where only a constant is used; the tree itself stays as it is."""
    here, state = tmp_path / "here", tmp_path / "state"
    for folder in ("eprof", "tests"):
        (here / folder).mkdir(parents=True)
    (here / "eprof" / "__init__.py").touch()
    module = here / "eprof" / "small.py"
    module.write_text(MODULE)
    (here / "tests" / "test_small.py").write_text(TESTS)
    # A pytest a mutant: none needs plugins.
    variables = environment(PYTHONPATH=str(ROOT / "benchmarks"), PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    variables.pop("BEFORE", None)

    def run(how):
        words = [str(here), how, "--number", "99", "--state", str(state), "--jobs", "2"]
        return subprocess.run(
            [sys.executable, "-c", MAIN, *words], cwd=tmp_path, env=variables, capture_output=True, text=True
        )

    done = run("first")
    assert done.returncode == 1, done.stderr
    told = done.stdout
    assert "killed by tests/test_small.py::test_limit\n    small.py:2: 5 -> 6" in told
    assert "killed by tests/test_small.py::test_in_a_process\n    small.py:8: a + 1 -> a - 1" in told
    assert "test_that_needs_the_one_before fails without any change" in told
    assert "survived, 0 of 1 tests, line 7\nsmall.py: return 1: 1 -> 2" in told
    assert module.read_text() == MODULE
    ran = (state / "fates.jsonl").read_text()
    again = run("again")
    assert (again.returncode, again.stderr) == (1, "") and (state / "fates.jsonl").read_text() == ran
