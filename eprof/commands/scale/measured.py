"""Runs at several node counts and clocks: tables of one's own, jobs of Slurm as `sacct` prints them, simulated ones."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_
from pathlib import Path

from msgspec.structs import replace

from eprof.base.errors import LogError
from eprof.base.marks import Mark
from eprof.base.text import counted, listed, pattern
from eprof.clusters import simulated
from eprof.clusters.cluster import Run, medians
from eprof.commands.scale import ranks, rows
from eprof.commands.scale.rows import JOB, Row

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
        runs += of_jobs(accounted, notes)
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


# A job of an array, a part of a heterogeneous one, a step. A number that is cut off ("1234567+") is none.
_NUMBER = pattern(r"(\d{1,18}(?:_(?:\d{1,18}|\[.*\]))?)(?:\+(\d{1,9}))?(?:\.(.+))?")
_EXTERN = "extern"
_MOST_NODE_W = 1e5
_SAME = 1.01
_Rows = list[tuple[str, Row]]


def of_jobs(rows: Sequence[Row], notes: list[str]) -> Iterator[Run]:
    """The runs of jobs, in whatever order their rows stand, and however often.

    Rows do not add up: a job's energy is its own row's, else its largest step's. Jobs that did not come to their end
    are no runs. Raises LogError: none did.
    """
    jobs: dict[tuple[str, str], dict[str, _Rows]] = {}
    strange = []
    for row in {tuple(sorted(row.cells.items())): row for row in rows}.values():
        match = _NUMBER.fullmatch(row.text(JOB))
        if match is None:
            strange.append(row.where)
            continue
        parts = jobs.setdefault((row.text("grid"), match[1]), {})
        parts.setdefault(match[2] or "", []).append((match[3] or "", row))
    if strange:
        notes.append(f"{counted(len(strange), 'row')} without the number of a job left out (the first is {strange[0]})")
    made = [_job(job, parts, notes) for (_, job), parts in jobs.items()]
    left_out = Counter(run for run in made if isinstance(run, str))
    if left_out:
        number, reasons = left_out.total(), listed([f"{number} {why}" for why, number in sorted(left_out.items())])
        notes.append(f"{number} of {counted(len(jobs), 'job')} left out, as no whole runs: {reasons}")
        if number == len(jobs):
            raise LogError(f"{rows[0].where}: of {counted(len(jobs), 'job')} none is a whole run: {reasons}.")
    if not any(row.text("state") for row in rows):
        notes.append("nothing tells which jobs came to their end; ask sacct for State, too")
    yield from (run for run in made if isinstance(run, Run))


def _job(job: str, parts: dict[str, _Rows], notes: list[str]) -> Run | str:
    """A job as a run, or why it is none. Parts of a heterogeneous job run together, each on nodes of its own."""
    if "" in parts:
        return _part(job, parts[""], notes)
    runs = []
    for number in map(str, range(max(2, len(parts)))):
        run = _part(f"{job}+{number}", parts[number], notes) if number in parts else "without some of their parts"
        if isinstance(run, str):
            return run
        runs.append(run)
    first = runs[0]
    energies = [run.energy_j for run in runs if run.energy_j is not None]
    marks = reduce(or_, (run.marks for run in runs))
    if 0 < len(energies) < len(runs):
        marks |= Mark.MISSING
    clocks = {run.core_mhz for run in runs}
    notes.append("parts of a heterogeneous job are one run: their nodes and joules add up")
    return replace(
        first,
        processors=sum(run.processors for run in runs),
        core_mhz=first.core_mhz if len(clocks) == 1 else None,
        time_s=max(run.time_s for run in runs),
        energy_j=sum(energies) or None,
        marks=int(marks),
    )


def _part(job: str, rows: _Rows, notes: list[str]) -> Run | str:
    """The run of a job, or of a part of one, in its own row and those of its steps; or why it is none."""
    own = [row for step, row in rows if not step]
    if not own:
        return "with rows of steps alone"
    whole = [row for row in own if row.is_whole]
    if not whole:
        return min(row.text("state").split()[0] if row.text("state") else "without a state" for row in own)
    # A step that is written as the job is takes no longer than it.
    by_time = [(row.number("time_s") or 0.0, row.number("energy_j") or 0.0, row.text("program")) for row in whole]
    first = whole[by_time.index(max(by_time))]
    steps = [(step, row) for step, row in rows if step or (row in whole and row is not first)]
    time_s, processors = first.number("time_s"), first.number("processes")
    if not time_s or not processors or processors % 1:
        return "that took no time or no nodes"
    clocks = {row.number("core_mhz") for row in [first, *(row for _, row in steps)]} - {None, 0.0}
    own_mhz = first.number("core_mhz")
    run = Run(
        program=first.text("program") or "program",
        size=None,
        processors=int(processors),
        core_mhz=own_mhz or (clocks.pop() if len(clocks) == 1 else None),
        time_s=time_s,
        energy_j=first.number("energy_j") or None,
        where=first.where,
    )
    broken = sorted(step for step, row in steps if not row.is_whole and step != _EXTERN)
    if broken:
        notes.append(f"job {job} came to its end, but not its step {listed(broken[:3])}: it may have done only a part")
    outside_j = max((row.number("energy_j") or 0.0 for step, row in steps if step == _EXTERN), default=0.0)
    if run.energy_j is None:
        run = _of_steps(job, run, [row for step, row in steps if row.is_whole or step == _EXTERN], notes)
    elif 0 < outside_j * _SAME < run.energy_j:
        notes.append(
            f"job {job}: its own row has {run.energy_j:.6g} J, but its step {_EXTERN}, which sees all of it, "
            f"{outside_j:.6g} J: this Slurm seems to add up steps that overlap"
        )
    if (run.energy_j or 0.0) > _MOST_NODE_W * run.time_s * run.processors:
        notes.append(f"job {job}: {run.energy_j:.3g} J would be more than 100 kW a node; its energy is not known")
        return replace(run, energy_j=None, marks=0)
    return run


def _of_steps(job: str, run: Run, steps: Sequence[Row], notes: list[str]) -> Run:
    """A job with the energy of its largest step: a lower bound, unless that ran as long and on as many nodes."""
    energy_j = max((row.number("energy_j") or 0.0 for row in steps), default=0.0)
    if not energy_j:
        return run
    notes.append(f"the energy of job {job} is that of its largest step")
    is_all = any(
        (row.number("time_s") or 0.0) >= run.time_s - 1 and (row.number("processes") or 0.0) >= run.processors
        for row in steps
        if row.number("energy_j") == energy_j
    )
    return replace(run, energy_j=energy_j, marks=0 if is_all else int(Mark.MISSING))
