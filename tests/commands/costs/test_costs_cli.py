"""`eprof costs` as a user runs it: a table of one's own is checked and shown."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from eprof import costs
from eprof.cli import main

ROOT = Path(__file__).parents[3]

RIGHT = """\
schema = 1
name = "mine"
device = "My GPU"
source = "measured"
books = "accessed"
[pj]
dram_byte = 100.0
[constant_power]
w = 3
[charge]
dram_read = { formula = "dram_byte", why = "measured" }
dram_write = { unpriced = "never measured" }
"""
WRONG = (
    RIGHT.replace('"measured"\nbooks = "accessed"', '" "\nbooks = "kept"')
    .replace("w = 3", "w = -3")
    .replace('formula = "dram_byte"', 'formula = "l2_byte"')
)


def test_every_mistake_of_a_file_is_a_line_on_standard_error(eprof_here, tmp_path):
    (tmp_path / "mine.toml").write_text(WRONG)
    done = eprof_here("costs", "mine.toml")
    assert done.returncode == 1
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert [line.split(": ")[1] for line in lines] == [f"mine.toml:{number}" for number in (4, 5, 9, 11)]
    for line, said in zip(
        lines, ("`source` must be a text", "`books` is 'kept'", "`w` must not", "`l2_byte`"), strict=True
    ):
        assert said in line and line.endswith(".")
    found = [one.removeprefix(f"{tmp_path}/") for one in costs.check(str(tmp_path / "mine.toml"))]
    assert [line.removeprefix("eprof: ") for line in lines] == found


@pytest.mark.parametrize("arguments", [["--format", "json"], ["--setting", "852/924"]])
def test_mistakes_come_first_whatever_is_asked_for(eprof_here, tmp_path, arguments):
    (tmp_path / "mine.toml").write_text(WRONG)
    done = eprof_here("costs", "./mine.toml", *arguments)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 4)


@pytest.mark.parametrize(("text", "said"), [(None, "cannot be read"), ("schema = ", "not valid TOML")])
def test_a_file_that_cannot_be_read_is_one_line(eprof_here, tmp_path, text, said):
    if text is not None:
        (tmp_path / "mine.toml").write_text(text)
    done = eprof_here("costs", "mine.toml")
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
    assert done.stderr.startswith("eprof: mine.toml") and said in done.stderr


def test_a_right_file_is_shown_and_nothing_is_complained_of(eprof_here, tmp_path):
    (tmp_path / "mine.toml").write_text(RIGHT)
    done = eprof_here("costs", "mine.toml")
    assert (done.returncode, done.stderr) == (0, "")
    assert "mine: My GPU" in done.stdout


def test_a_file_is_read_once_so_that_a_pipe_will_do(eprof_command):
    shown = eprof_command("costs", "/dev/stdin", input=RIGHT)
    assert (shown.returncode, shown.stderr) == (0, "")
    wrong = eprof_command("costs", "/dev/stdin", input=WRONG)
    assert (wrong.returncode, len(wrong.stderr.splitlines())) == (1, 4)


def test_no_price_is_said_once(eprof_here, tmp_path):
    (tmp_path / "mine.toml").write_text(RIGHT)
    shown = eprof_here("costs", "mine.toml").stdout
    assert "no price" in shown and "never measured" in shown
    assert "missing" not in shown


@pytest.mark.parametrize("module", ["costs", "costs.file", "costs.table"])
def test_each_module_can_be_imported_first(module):
    subprocess.run([sys.executable, "-c", f"import eprof.{module}"], cwd=ROOT, check=True)


@pytest.mark.parametrize(
    ("name", "listed", "left_out"),
    [
        ("i7-950", ("Divisions and roots", "L3 read", "DRAM read"), ("Tensor", "Warp", "Shared", "Shuffles", "spills")),
        ("gtx680", ("Special functions", "Shared memory read", "Warp"), ("L3",)),
    ],
)
def test_what_only_the_other_processor_has_is_not_listed(capsys, name, listed, left_out):
    """A CPU has no tensor cores to be priced. It has an L3, for which this table has no price: that is listed."""
    with pytest.raises(SystemExit):
        main(["costs", name])
    said = " ".join(capsys.readouterr().out.split())
    assert all(label in said for label in listed)
    assert not [label for label in left_out if label in said]


def test_a_price_is_listed_whoever_has_it(capsys, tmp_path):
    """A table that does not say that it is of a CPU, and prices an L3 all the same."""
    path = tmp_path / "mine.toml"
    path.write_text(RIGHT + 'l3_read = { formula = "dram_byte", why = "measured" }\n')
    with pytest.raises(SystemExit):
        main(["costs", str(path)])
    said = " ".join(capsys.readouterr().out.split())
    assert "L3 read" in said and "L3 write" not in said


def test_tables_explain_themselves(eprof_here):
    listing = eprof_here("costs").stdout
    for name in ("jetson-tk1", "gtx580", "gtx680", "i7-950", "fermi-keckler"):
        assert name in listing
    shown = eprof_here("costs", "jetson-tk1", "--setting", "852/924").stdout
    assert "377" in shown and "852/924" in shown
    assert json.loads(eprof_here("costs", "jetson-tk1", "--format", "json").stdout)
