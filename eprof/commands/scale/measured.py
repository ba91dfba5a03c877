"""Runs at several node counts and clocks: tables of one's own, what Slurm's `sacct` prints, and simulated ones."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from eprof.base.errors import LogError
from eprof.base.resources import lines as lines_of
from eprof.base.resources import log_content
from eprof.base.text import listed, pattern
from eprof.clusters import simulated
from eprof.clusters.run import Run, medians
from eprof.commands.scale import ranks

# What columns are called, the first that a table has; `sacct`'s names are among them.
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "program": ("program", "application", "benchmark", "jobname"),
    "size": ("size", "n", "problem_size"),
    "processes": ("processes", "processors", "nodes", "p", "nnodes", "ntasks", "ranks"),
    "core_mhz": ("core_mhz", "clock_mhz", "mhz"),
    "time_s": ("time_s", "elapsed_s", "seconds", "elapsedraw"),
    "energy_j": ("energy_j", "joules", "consumedenergyraw"),
    "report": ("report",),
}
_NEEDED = ("processes", "time_s")
_FREQUENCY = "reqcpufreq"
_JOB = "jobid"
_STEP = pattern(r"(\d+(?:[_+]\d+)?)(?:\.(\w+))?")
_SEPARATORS = "|,;\t"
_MOST_BYTES = 64 << 20
_ASK = "sacct -P -o JobID,JobName,NNodes,ElapsedRaw,ConsumedEnergyRaw,ReqCPUFreq,State"
_KHZ_SUFFIX = {"k": 1e-3, "m": 1.0, "g": 1e3}


def read(paths: Sequence[str], reading: ranks.Reading | None = None) -> tuple[list[Run], list[str]]:
    """The measured runs of tables, of simulations and of the ranks of GPU clusters, and notes.

    Raises LogError with file and line.
    """
    notes: list[str] = []
    runs: list[Run] = []
    reports: list[ranks.Report] = []
    reading = reading or ranks.Reading()
    for path in paths:
        if manifest := simulated.record(Path(path)):
            runs += simulated.runs(Path(path), manifest, notes)
        elif ranks.is_one(path):
            reports.append(ranks.read(path, reading))
        else:
            table = list(_table(path, notes))
            runs += [run for run in table if not run.report]
            reports += [ranks.told(run, run.report, Path(path).parent, reading) for run in table if run.report]
    if reports:
        runs += ranks.runs(reports, reading.beside, notes)
    if len({run.cluster for run in runs}) > 1:
        runs = [replace(run, program=f"{run.program} on {run.cluster}") if run.cluster else run for run in runs]
    notes = list(dict.fromkeys(notes))
    return medians(runs, notes), notes


def _table(path: str, notes: list[str]) -> Iterator[Run]:
    """The measured runs of a table."""
    lines = lines_of(log_content(path, _MOST_BYTES))
    header = next((line for line in lines if line.strip()), None)
    if header is None:
        raise LogError(
            f"{path}: is empty; runs are a table with a header: program,size,processes,core_mhz,time_s,energy_j."
        )
    separator = max(_SEPARATORS, key=header.count)
    first = lines.index(header)
    rows = csv.reader(lines[first:], delimiter=separator)
    names = [name.strip().lower() for name in next(rows)]
    found = {key: [names.index(name) for name in known if name in names] for key, known in _COLUMNS.items()}
    places = {key: numbers[0] for key, numbers in found.items() if numbers}
    lacks = [key for key in _NEEDED if key not in places]
    if lacks:
        raise LogError(
            f"{path}:{first + 1}: no column {listed(lacks, 'or')} in the header; name the columns program, size, "
            f"processes, core_mhz, time_s, energy_j, or give what `{_ASK}` prints."
        )
    cells = ((number, [cell.strip() for cell in row]) for number, row in enumerate(rows, first + 2) if any(row))
    if _JOB in names:
        yield from _jobs(path, cells, names, places, notes)
        return
    for number, row in cells:
        if len(row) != len(names):
            raise LogError(f"{path}:{number}: {len(row)} cells, but the header has {len(names)}.")
        yield _run(f"{path}:{number}", {key: row[place] for key, place in places.items()})


def _run(where: str, cells: Mapping[str, str], energy_j: float | None = None) -> Run:
    """A row of a table of measured runs as a run.

    Energy of 0 or blank is not known: a meter that saw nothing saw no program either.
    """
    processors = _number(where, "processes", cells["processes"])
    time_s = _number(where, "time_s", cells["time_s"])
    if processors is None or processors < 1 or processors != int(processors):
        raise LogError(f"{where}: processes is `{cells['processes']}`, and must be a whole number from 1 on.")
    if not time_s:
        raise LogError(f"{where}: time_s is `{cells['time_s']}`, and must be more than 0.")
    return Run(
        program=cells.get("program", "") or "program",
        size=_number(where, "size", cells.get("size", "")) or None,
        processors=int(processors),
        core_mhz=_number(where, "core_mhz", cells.get("core_mhz", "")) or None,
        time_s=time_s,
        energy_j=energy_j or _number(where, "energy_j", cells.get("energy_j", "")) or None,
        report=cells.get("report", ""),
        where=where,
    )


def _number(where: str, key: str, text: str) -> float | None:
    """A number in a table of measured runs, not negative; None where nothing is written."""
    if not text or text.lower() in ("unknown", "n/a", "nan", "-"):
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise LogError(f"{where}: {key} is `{text[:40]}`, which is no number from 0 on.")
    return number


# ---- sacct


def _jobs(
    path: str, cells: Iterable[tuple[int, list[str]]], names: list[str], places: Mapping[str, int], notes: list[str]
) -> Iterator[Run]:
    """The measured jobs in what `sacct` prints.

    Rows do not add up: a job's energy is its own row's, else its largest step's.
    """
    jobs: dict[str, list[tuple[str, list[str]]]] = {}
    left_out: list[str] = []
    for number, row in cells:
        step = _STEP.fullmatch(row[names.index(_JOB)]) if len(row) == len(names) else None
        if step is None:
            if any(cell.strip("-") for cell in row):
                left_out.append(str(number))
            continue
        jobs.setdefault(step[1], []).append((f"{path}:{number}", row))
    if left_out:
        notes.append(
            f"{path}: {len(left_out)} lines are no rows of jobs and were left out (the first is {left_out[0]})"
        )
    from_steps = []
    for job, rows in jobs.items():
        (where, first), *steps = rows
        if not first[places["time_s"]] or first[places["time_s"]] == "0":
            notes.append(f"{path}: job {job} took no time and was left out")
            continue
        energy_j = _number(where, "energy_j", _table_cell(first, places, "energy_j"))
        if not energy_j:
            energy_j = max(
                (_number(at, "energy_j", _table_cell(row, places, "energy_j")) or 0.0 for at, row in steps), default=0.0
            )
            if energy_j:
                from_steps.append(job)
        mhz = _mhz(first[names.index(_FREQUENCY)]) if _FREQUENCY in names else None
        clock = {"core_mhz": f"{mhz:g}"} if mhz else {}
        yield _run(where, {key: first[place] for key, place in places.items()} | {"energy_j": ""} | clock, energy_j)
    if from_steps:
        notes.append(f"{path}: the energy of jobs {listed(from_steps[:3])} is that of their largest step")


def _table_cell(row: Sequence[str], places: Mapping[str, int], key: str) -> str:
    return row[places[key]] if key in places else ""


def _mhz(text: str) -> float | None:
    """A clock as Slurm writes it: kHz, or with K, M or G behind it; None for "Unknown", "Performance", 0."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kKmMgG]?)", text)
    if match is None:
        return None
    return float(match[1]) * _KHZ_SUFFIX[match[2].lower() or "k"] or None
