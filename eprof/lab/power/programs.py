"""Sampled logs as rows of measurements: the mean power and the work of a program, some seconds a row ([S] 5.4)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from eprof import costs
from eprof.base.arrays import Ints
from eprof.base.errors import CostError, LogError, UsageError
from eprof.base.optional import gathered
from eprof.costs import CostTable
from eprof.lab.power import logs, marks
from eprof.lab.power.activity import Activity, activities, is_busy, work_per_s
from eprof.lab.power.marks import Marks, Pieces
from eprof.lab.power.series import Series

if TYPE_CHECKING:
    from eprof.lab.measurements import Measurements

_ROW_S = 10.0
_MOST_ROWS = 2000  # of a log
_LEAST_S, _PERIODS = 0.5, 8  # of a row, and samples of the meter in it
_NOTES = 4  # of logs
_IDLE = "idle"


def measurements(
    paths: Iterable[str | Path],
    table: CostTable,
    levels: bool = False,
    reference: tuple[float, float] | None = None,
    marked: Sequence[str] = (),
) -> Measurements:
    """Rows of sampled logs as measurements; a program is called as its log is, without numbers behind the name.

    Moments in which nothing ran are rows of a program `idle`. table: whose peaks turn activity into work; levels: with
    the levels that a byte of DRAM has passed, where the table prices each. marked: files of what ran when, on the logs'
    clock: programs are called as the marks that they ran in, and as the log outside of all. Raises LogError, CostError.
    """
    import pandas as pd

    from eprof.lab.measurements.reading import from_frame

    if table.default.core_mhz is None:
        mend = "name a table that has, with --costs."
        raise CostError(f"{table.name} has no clocks, so its peaks are known at none; {mend}")
    notes: list[str] = []
    rows: list[dict[str, Any]] = []
    names = list(dict.fromkeys(map(str, paths)))
    ran = marks.read_all(marked)
    chosen, _ = marks.one_rank(ran.marks)
    pieces = marks.exclusive(chosen)
    met = False
    for path in names:
        name = Path(path).name.partition(".")[0]
        program = re.sub(r"([-_]\d+)+$", "", name) or name
        powers, beside = logs.sampled(path, notes)
        by_name = {power.component: power for power in powers}
        for gpu in activities(beside):
            notes += gpu.notes
            if gpu.label in by_name:
                owner = _owners(gpu, by_name[gpu.label], replace(ran, marks=tuple(chosen)), pieces)
                met = met or bool((owner >= 0).any())
                rows += _rows(gpu, by_name[gpu.label], (*pieces.names, program), owner, table, levels)
    if marked and not met:
        raise LogError(f"{marked[0]}: no mark lies where a log has samples; give marks by the clock of the logs.")
    if not rows:
        raise LogError(f"{names[0]}: no {_LEAST_S:g} s of it have both activity and power, so it has no row.")
    frame = pd.DataFrame(_with_one_idle(rows))
    is_whole = (frame["benchmark"] == _IDLE) | frame.notna().all(axis=1)
    if not is_whole.any():
        raise LogError(f"{names[0]}: no row of it has every count, as fields were not sampled.")
    if not is_whole.all():
        lost = int((~is_whole).sum())
        notes.insert(0, f"{lost} of {len(frame)} rows lack a count that others have, and are left out.")
    frame = frame[is_whole].fillna(0.0)  # idle rows have no work
    frame = frame.loc[:, (frame != 0).any()]
    made = from_frame(frame, names[0], "sampled", reference)
    told = f"Rows are {_ROW_S:g} s of a program at a clock, or less; work is active x clock x units of {table.name}."
    several = [f"There are {len(notes) - _NOTES} such notes more."] * (len(notes) > _NOTES)
    return replace(made, notes=(told, *notes[:_NOTES], *several, *made.notes), sources=tuple(names))


def reader(
    files: Sequence[str], table: str | None, naming: str, marked: Sequence[str], **options: Any
) -> Callable[[Iterable[str | Path]], Measurements] | None:
    """A function that reads logs of sampled activity as `measurements`, by a table and `options`; None: these are no
    logs.

    naming: what says the name of the table. marked: files of marks. Raises UsageError: it is not said, or marks are of
    other files; LogError: some are such logs and others are not.
    """
    if not logs.are_sampled(files):
        if marked:
            raise UsageError("--marks tells programs of sampled logs apart, of which there are none.")
        return None
    if table is None:
        raise UsageError(f"What a GPU sampled is work by its peaks, and these logs do not name it; {naming}.")
    return partial(measurements, table=costs.load(table), marked=marked, **options)


def peaks(table: CostTable) -> tuple[dict[str, float], float | None]:
    """Peaks of a table, flop or bytes a cycle ("sp_flop_per_core_cycle"...); its number of multiprocessors or None."""
    costs = table.at()
    told = {
        "sp_flop_per_core_cycle": (costs.peaks.sp_gflops, costs.setting.core_mhz),
        "dp_flop_per_core_cycle": (costs.peaks.dp_gflops, costs.setting.core_mhz),
        "dram_byte_per_memory_cycle": (costs.peaks.dram_gb_per_s, costs.setting.memory_mhz),
    }
    return {name: 1e3 * peak / mhz for name, (peak, mhz) in told.items() if peak and mhz}, table.sm_count


def _with_one_idle(rows: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yields the rows, then one in place of all idle ones at each core clock, with their mean power over their time."""
    yield from (row for row in rows if row["benchmark"] != _IDLE)
    idle = gathered((row["core_mhz"], row) for row in rows if row["benchmark"] == _IDLE)
    for same in idle.values():
        seconds = sum(row["sampled_s"] for row in same)
        joules = sum(row["power_w"] * row["sampled_s"] for row in same)
        yield {**same[0], "sampled_s": seconds, "power_w": joules / seconds}


def _owners(gpu: Activity, power: Series, ran: Marks, pieces: Pieces) -> Ints:
    """The program that each sample lies in, as its place in `pieces.names`, (n,); -1: in none. Raises LogError."""
    middles = (gpu.edges[:-1] + gpu.edges[1:]) / 2
    if not len(pieces.begin_s):
        return np.full(len(middles), -1)
    if power.absolute != ran.absolute:
        raise LogError(f"{gpu.source}: the log or the marks have no dates; both need dates, or seconds from its start.")
    middles = middles + marks.zone_offset_s(power, ran.marks)
    piece = np.searchsorted(pieces.begin_s, middles, side="right") - 1
    inside = (piece >= 0) & (middles < pieces.end_s[piece])
    return np.where(inside, pieces.owner[piece], -1).astype(np.int64)


def _rows(
    gpu: Activity, power: Series, programs: Sequence[str], owner: Ints, table: CostTable, levels: bool
) -> Iterator[dict[str, Any]]:
    """Yields the rows of one GPU: stretches of one clock and program, by its place (`owner`, (n,)), or of none."""
    default = table.default
    begin_s, end_s = gpu.edges[:-1], gpu.edges[1:]
    clock = np.where(np.isnan(gpu.clock_mhz), default.core_mhz or 0.0, np.round(gpu.clock_mhz))
    lasts_s = max(_ROW_S, float(end_s[-1] - begin_s[0]) / _MOST_ROWS)
    busy = is_busy(gpu.shares)
    window = np.where(busy, (begin_s - begin_s[0]) // lasts_s, -1.0)
    known_s, joules = power.known_s(begin_s, end_s), power.energy_j(begin_s, end_s)
    keys, row = np.unique(np.column_stack([window, np.where(busy, owner, -1), clock]), axis=0, return_inverse=True)
    row = row.reshape(-1)
    seconds, energy_j = np.bincount(row, known_s), np.bincount(row, joules)
    used = np.flatnonzero(seconds >= max(_LEAST_S, _PERIODS * power.period_s))
    per_s = {}
    for mhz in np.unique(keys[used, 2]):
        costs = table.at(table.nearest(mhz, None))
        per_s[mhz] = list(work_per_s(gpu.shares, table, costs, np.array([mhz]), levels))
    shares = {}
    for name, share in gpu.shares.items():
        told_s = np.bincount(row, np.where(np.isnan(share), 0.0, known_s))
        active_s = np.bincount(row, np.nan_to_num(share) * known_s)
        # What was not sampled for a while is as in the rest of its row; where it never was it is not known.
        shares[name] = np.divide(active_s * seconds, told_s, out=np.full(len(seconds), np.nan), where=told_s > 0)
    for place in used:
        since, of_program, mhz = keys[place]
        name, work = _IDLE, dict[str, float]()
        if since >= 0:
            name = programs[int(of_program)]
            work = {word: shares[field][place] * most[0] for field, word, most in per_s[mhz]}
        yield {
            "benchmark": name,
            "core_mhz": mhz,
            "memory_mhz": default.memory_mhz or 1.0,
            "sampled_s": seconds[place],
            "power_w": energy_j[place] / seconds[place],
            **work,
        }
