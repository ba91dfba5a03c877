"""Runs at several node counts and clocks: tables of one's own, what Slurm's `sacct` prints, and simulated ones."""

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from eprof.base.errors import LogError
from eprof.clusters import simulated
from eprof.clusters.run import Run, medians
from eprof.commands.scale import jobs, ranks, rows

_STEPS = ("batch", "extern", "interactive")


def read(paths: Sequence[str], reading: ranks.Reading | None = None) -> tuple[list[Run], list[str]]:
    """The measured runs of tables, of simulations and of the ranks of GPU clusters, and notes.

    Raises LogError with file and line.
    """
    notes: list[str] = []
    runs: list[Run] = []
    reports: list[ranks.Report] = []
    accounted: list[rows.Row] = []
    reading = reading or ranks.Reading()
    for path in paths:
        if manifest := simulated.record(Path(path)):
            runs += simulated.runs(Path(path), manifest, notes)
        elif ranks.is_one(path) and not rows.is_accounting(path):
            reports.append(ranks.read(path, reading))
        else:
            table = rows.read(path, notes)
            accounted += [row for row in table if row.has(rows.JOB)]
            whole = [row for row in table if row.is_whole and not row.has(rows.JOB)]
            runs += [_run(row) for row in whole if not row.text("report")]
            told = [row for row in whole if row.text("report")]
            reports += [ranks.told(_run(row), row.text("report"), Path(path).parent, reading) for row in told]
            if left_out := sum(not row.is_whole for row in table if not row.has(rows.JOB)):
                notes.append(f"{path}: {left_out} of {len(table)} rows left out, as no whole runs by their state")
    if accounted:
        runs += jobs.runs(accounted, notes)
    if reports:
        runs += ranks.runs(reports, reading.beside, notes)
    if len({run.cluster for run in runs}) > 1:
        runs = [replace(run, program=f"{run.program} on {run.cluster}") if run.cluster else run for run in runs]
    notes = list(dict.fromkeys(notes))
    return medians(runs, notes), notes


def _run(row: rows.Row) -> Run:
    """A row of a table of measured runs as a run.

    Energy of 0 or blank is not known: a meter that saw nothing saw no program either.
    """
    processors, time_s = row.number("processes"), row.number("time_s")
    if processors is None or processors < 1 or processors != int(processors):
        raise LogError(f"{row.where}: processes is `{row.text('processes')}`, and must be a whole number from 1 on.")
    if not time_s:
        raise LogError(f"{row.where}: time_s is `{row.text('time_s')}`, and must be more than 0.")
    if row.cells.get("jobname") in _STEPS:
        raise LogError(f"{row.where}: `{row.text('program')}` is a step of some job; ask sacct for JobID, which tells.")
    return Run(
        program=row.text("program") or "program",
        size=row.number("size") or None,
        processors=int(processors),
        core_mhz=row.number("core_mhz") or None,
        time_s=time_s,
        energy_j=row.number("energy_j") or None,
        where=row.where,
    )
