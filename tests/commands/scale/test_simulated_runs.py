"""`eprof scale` on what `eprof run --profiler simgrid` leaves behind. The run directories are made up."""

import json

import pytest

from eprof.base.errors import LogError
from eprof.commands.scale import measured_runs

LOG = (
    "[7.661194] [host_energy/INFO] Total energy consumption: 9.5 Joules (used hosts: 3854.972073 Joules; unused: 5.0)\n"
)


def run_directory(place, cluster):
    """One simulation at 2.8 GHz of four processes on a cluster of this name."""
    (place / "logs").mkdir(parents=True)
    (place / "logs" / "2800mhz-1.log").write_text(LOG)
    about = {"program": "program", "processes": 4, "name": cluster, "marks": ["simulated", "assumed"]}
    record = {"schema": "eprof.run/1", "cluster": about, "measurements": [{"what": "2800mhz"}]}
    (place / "run.json").write_text(json.dumps(record))
    return str(place)


def test_runs_on_different_clusters_are_no_repeats(tmp_path):
    runs, _ = measured_runs.read([run_directory(tmp_path / name, name) for name in ("gigabit-demo", "mine")])
    assert [(run.time_s, run.energy_j, run.processors) for run in runs] == [(7.661194, 3854.972073, 4)] * 2
    assert sorted({run.program for run in runs}) == ["program on gigabit-demo", "program on mine"]


@pytest.mark.parametrize(
    "record", ["", "{}", '{"schema": "eprof.run/1"}', '{"schema": "eprof.run/1", "cluster": {"a": 1}}']
)
def test_a_directory_without_simulations_is_refused(tmp_path, record):
    (tmp_path / "run.json").write_text(record)
    with pytest.raises(LogError, match=r"run\.json|no simulated runs|nothing to report on"):
        measured_runs.read([str(tmp_path)])
