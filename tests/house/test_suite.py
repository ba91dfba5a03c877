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
    found = [one for one in mutants.mutants("x.py", SMALL) if mutants.parses(SMALL, one)]
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
        "return ((a)) * -0.5",
        "return ((b)) * -0.5",
    }
    assert len({mutants.mutated(SMALL, one) for one in found}) == len(found) == 18
    for one in found:
        ast.parse(mutants.mutated(SMALL, one))


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        ("x = max(a, b)", ["x = min(a, b)"]),
        ("x = a - b", ["x = a + b", "x = (a)"]),
        ("x = a * 1e-3", ["x = (a)", "x = a * 1e-06", "x = a / 1e-3"]),
        ("x = 1000 * a", ["x = (a)", "x = 1001 * a", "x = 1000000.0 * a"]),
        ("x = abs(a)", ["x = (a)"]),
        ("x = a[i:]", ["x = a[(i) + 1:]"]),
        ("x = a[:-n]", ["x = a[:(-n) - 1]", "x = a[:n]"]),
        ("x = not a", ["x =  a"]),
        ('x = {"a": p, "b": q}', ["x = {\"a\": q, 'b': p}"]),
        ('x = f"a{b}" + c', ['x = f"a{b}" - c']),
    ],
)
def test_what_a_line_may_become(mutants, line, changes):
    made = [one for one in mutants.mutants("x.py", line) if mutants.parses(line, one)]
    assert set(changes) <= {mutants.mutated(line, one) for one in made}
    assert '(f"a{b}")' not in {one.new for one in made}


def test_loops_and_functions_end_early(mutants):
    source = "def f(a):\n    b = [1]\n    b += a\n    return b\nfor c in d:\n    e(c)\n"
    made = {mutants.mutated(source, one) for one in mutants.mutants("x.py", source)}
    assert source.replace("b += a", "pass") in made and source.replace("e(c)", "e(c)\n    break") in made


def test_a_mutant_at_the_end_of_a_file_has_a_name(mutants, tmp_path, monkeypatch):
    (tmp_path / "eprof").mkdir()
    source = "for c in d:\n    e(c)\n"
    (tmp_path / "eprof" / "x.py").write_text(source)
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    assert "x.py:  -> break" in {mutants.named(one) for one in mutants.mutants("x.py", source)}


def test_modules_that_make_numbers_are_found_and_the_tests_nearest_to_them(mutants):
    """By their names and what tests import: no list that a move of files would leave behind."""
    found = mutants.modules()
    lines = sum(len((ROOT / "eprof" / module).read_text().splitlines()) for module in found)
    assert lines > 24_000 and len(found) > 150
    assert not any(part in found for part in ("words", "page", "terminal"))
    for module in found:
        near = mutants.nearest(module)
        assert {"golden", "oracle"} <= set(near), module
        assert len(near) == len(set(near)) and all(list((ROOT / "tests").rglob(f"test_{name}.py")) for name in near)
    (counts,) = [module for module in found if module.endswith("/counts.py")]
    assert mutants.nearest(counts)[0] == "counts"


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
    monkeypatch.setattr(mutants, "modules", lambda: ["small.py"])
    monkeypatch.setattr(mutants, "nearest", lambda _: ["broken", "small"])
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
