"""The shipped priors and fitted tables are what the scripts of docs/studies/power make."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

pytest.importorskip("scipy")

from eprof import costs
from eprof.lab.fitting import fit
from eprof.lab.fitting.solve import form_for
from eprof.lab.measurements import read

ROOT = Path(__file__).parents[2]
STUDY = ROOT / "docs" / "studies" / "power"
DATA = ROOT.parent / "shared" / "data" / "power"
FITTED = ("gtx980", "gtx1080ti", "p100", "v100")
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="no shared measurements here")


def commands():
    """Table -> the command line of tables.sh that makes it, as the table records it."""
    script = (STUDY / "tables.sh").read_text().replace("\\\n", " ")
    source = re.search("^source='(.*)'$", script, re.M)[1]
    lines = [line for line in script.splitlines() if line.startswith("eprof fit")]
    words = [shlex.split(line.replace('"$source"', shlex.quote(source)).replace("$data/", "")) for line in lines]
    return {line[line.index("-o") + 1].removesuffix(".toml"): shlex.join(line) for line in words}


def test_the_tables_record_the_command_lines_of_the_script():
    assert set(commands()) == set(FITTED)
    for name, command in commands().items():
        assert f"#   {command}\n" in (ROOT / "costs" / f"{name}.toml").read_text(), name


@needs_data
def test_the_prior_is_what_its_script_makes(monkeypatch):
    monkeypatch.syspath_prepend(str(STUDY))
    import prior

    shipped = (ROOT / "counters" / "measurements" / "priors" / "energies.toml").read_text()
    assert shipped.endswith(prior.entries(prior.measured(DATA)))


@needs_data
@pytest.mark.parametrize("name", FITTED)
def test_the_prices_of_a_shipped_table_come_back_from_its_data(name):
    table = costs.load(name)
    device = table.devices[0]
    measurements = read([DATA / file for file in table.fit.data["data"]], device=device)
    fitted = fit(measurements, replace(form_for(measurements, device), loss="l2"))  # as the script has it
    at_reference = table.at("/".join(f"{clock:g}" for clock in fitted.reference)).prices
    for term, pj in fitted.prices_pj.items():
        assert at_reference[term].pj == pytest.approx(pj, rel=0.06, abs=0.1), term


@needs_data
def test_fp64_of_a_v100_is_not_drawn_to_that_of_geforce_cards():
    assert 20 < costs.load("v100").at().prices["fp64_instruction"].pj < 40


@needs_data
@pytest.mark.skipif("EPROF_REMAKE_TABLES" not in os.environ, reason="minutes: set EPROF_REMAKE_TABLES=1")
def test_the_tables_are_what_the_script_makes_to_the_last_digit(tmp_path):
    program = tmp_path / "bin" / "eprof"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m eprof "$@"\n')
    program.chmod(0o755)
    environment = os.environ | {"PATH": f"{program.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    subprocess.run([shutil.which("sh"), STUDY / "tables.sh", DATA], cwd=tmp_path, env=environment, check=True)
    for name in FITTED:
        assert (tmp_path / f"{name}.toml").read_text() == (ROOT / "costs" / f"{name}.toml").read_text(), name
