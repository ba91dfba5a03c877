"""Rows of measurements from programs: a run directory of `eprof run` is a row, and each stretch of a GPU's sampled log.

A run: what was counted, over what the meter saw. The joules of a run cover the program from start to end, so constant
power flowed for the whole metered time T, while everything that was counted happened somewhere within it:

    E = sum_i n_i eps_i + P_const T   =>   P = E / T = sum_i (n_i / T) eps_i + P_const        ([FMM] section II)

Both the power and the rates are therefore over T, not over the time of the kernels, which would put the energy of
start-up, copies and idle time on the kernels. What that leaves out: an idle GPU draws less than P_const (docs/fit.md).

A log: the mean power and the work of a program, some seconds a row ([S] 5.4).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from msgspec import Struct
from msgspec.structs import replace

from eprof import costs
from eprof.base.arrays import Columns, Ints
from eprof.base.errors import CostError, LogError, UsageError
from eprof.base.optional import gathered
from eprof.base.text import few, phrase
from eprof.base.units import clock_pair
from eprof.base.vocabulary import COUNTS, CPU, FLOAT_PARTS, GPU, Mark, stand_ins
from eprof.costs import CostTable
from eprof.lab.measurements.mapping import load
from eprof.lab.measurements.reading import from_frame
from eprof.lab.measurements.values import DOMAINS, PLAUSIBLE_W, MeasurementError, Measurements
from eprof.lab.power import logs, marks
from eprof.lab.power.activity import Activity, activities, is_busy, work_per_s
from eprof.lab.power.marks import Marks, Pieces
from eprof.lab.power.series import Series
from eprof.logs.runs import Run, clock_note
from eprof.profile.profile import Profile

MAPPINGS = {GPU: "eprof-counts", CPU: "eprof-cpu"}
_SAME_CLOCK = 0.01  # what --setting says and what a meter saw are one clock
# With these a profiler counts some launches only, while the meter sees all of them.
_CHOOSING = {"--kernels", "-k", "--launch-skip", "--launch-count", "--nvtx-include"}
Setting = tuple[float, float]


class Program(Struct, frozen=True):
    """A run of a whole program as a row. counts: word -> its instructions or bytes in accessed books, NaN = not known.

    kernel_s: the time of all kernels, NaN = not known; time_s: of one run of the program while it was metered. setting:
    core and memory MHz of a GPU; None for a CPU, which chooses its clocks itself.
    """

    path: str
    processor: str
    command: str
    device: str | None
    setting: Setting | None
    time_s: float
    joules: float
    kernel_s: float
    counts: Mapping[str, float]
    notes: tuple[str, ...]


def from_profiles(
    profiles: Sequence[tuple[str, Profile]], reference: Setting | None = None, lost: Sequence[str] = ()
) -> tuple[Measurements, str | None]:
    """Measurements, a row for each run directory (path, profile), and the GPU or CPU that all are of (None: not known).

    What cannot be a row is left out, with a sentence in the notes; `lost`: such sentences on those that could not be
    read. reference: core and memory MHz at which relative voltages are 1. Raises MeasurementError: no row is left, or
    the rows are of several GPUs.
    """
    programs: list[Program] = []
    notes = list(lost)
    for path, profile in profiles:
        measured = as_program(path, profile)
        if isinstance(measured, str):
            notes.append(f"{path} was left out: {measured}.")
        else:
            programs.append(measured)
    processors = {program.processor for program in programs}
    if len(processors) > 1:
        raise MeasurementError("Some run directories are of GPUs and some of CPUs; fit them one by one.")
    mapping = MAPPINGS[next(iter(processors), GPU)]
    counts, count_notes = _common(programs, mapping)
    kept = [program for program in programs if program.path in counts.index]
    notes += count_notes
    if not kept:
        raise MeasurementError(f"No run directory can be a row of measurements. {' '.join(notes)}")
    names = list(dict.fromkeys(program.device for program in kept if program.device))
    if len(names) > 1:
        raise MeasurementError(
            f"The run directories are of several processors ({', '.join(names)}); fit them one by one."
        )
    device = next(iter(names), None)
    rows: list[dict[str, Any]] = []
    for program in kept:
        row = {"kernel": program.command, "time_s": program.time_s}
        power_w = program.joules / program.time_s
        if program.setting is None:
            rows.append({**row, "benchmark": program.command, "cpu": program.device or "CPU", "power_w": power_w})
        else:
            core_mhz, memory_mhz = program.setting
            rows.append({**row, "core_mhz": core_mhz, "memory_mhz": memory_mhz, "measured_power_w": power_w})
    frame = pd.DataFrame(rows).join(counts.reset_index(drop=True))
    measurements = from_frame(frame, kept[0].path, mapping, reference)
    notes += [note for program in kept for note in program.notes]
    idle = [program.path for program in kept if program.kernel_s < 0.5 * program.time_s]
    if idle:
        notes.append(
            f"Kernels fill less than half of the metered time of {few(idle, 4)}: such rows tell of idle "
            "power more than of what instructions and bytes cost. Make the program do more work a run."
        )
    if any(" line" in note for note in measurements.notes):
        notes.append("Lines of run directories are counted from 2, in the order in which they were named and used.")
    sources = tuple(program.path for program in kept)
    return replace(measurements, notes=(*notes, *measurements.notes), sources=sources), device


def as_program(path: str, profile: Profile) -> Program | str:
    """The run of a program as a row of measurements, or why it cannot be one."""
    run = profile.run
    if run is None:
        return "it is no single run directory"
    why = _unfit(run, profile)
    if why is not None:
        return why
    measured = profile.measured
    if measured is None:
        return "no meter was read in it, or the meter saw too little; `eprof doctor` tells what is there"
    if measured.seconds is None:
        return "run.json does not tell for how long energy was measured (window_s)"
    watts = measured.joules / measured.seconds
    if not PLAUSIBLE_W[0] <= watts <= PLAUSIBLE_W[1]:
        return f"{measured.joules:.4g} J in {measured.seconds:.4g} s are {watts:.4g} W, which no processor draws"
    setting: Setting | None = None
    notes: list[str] = []
    if not profile.is_of_cpu:
        # As the meter saw the clocks; those of `--setting`, where they agree or are all there is.
        given = clock_pair(str(run.pricing("setting") or "")) or (None, None)
        clocks = []
        for domain, seen, set_to in zip(DOMAINS, (measured.core_mhz, measured.memory_mhz), given, strict=True):
            clocks.append(set_to or seen)
            if seen and set_to and abs(seen / set_to - 1) > _SAME_CLOCK:
                clocks[-1] = seen
                notes.append(
                    f"{path}: the {domain} clock was {seen:g} MHz by the meter, not {set_to:g} as --setting says."
                )
        core_mhz, memory_mhz = clocks
        if not core_mhz or not memory_mhz:
            return "its clocks are not known: its meter did not read both, and `eprof run` was not given --setting"
        setting = float(core_mhz), float(memory_mhz)
    if moved := clock_note(run):
        notes.append(f"{path}: {moved}")
    device = run.section("device")
    counted = profile.counts("accessed")
    return Program(
        path=path,
        processor=CPU if profile.is_of_cpu else GPU,
        command=run.command or Path(path).stem,
        device=profile.counted[0].device.name or device.get("name"),
        setting=setting,
        time_s=measured.seconds,
        joules=measured.joules,
        kernel_s=float(counted.kernels["time_s"].sum(skipna=False)),
        counts=_whole(counted.amounts, counted.amount_marks, profile.is_of_cpu),
        notes=tuple(notes),
    )


def _unfit(run: Run, profile: Profile) -> str | None:
    """Why counts and joules of a program's run are not of the same thing; None where they are."""
    meter = run.section("meter")
    boards = max(len(meter.get("devices") or []), len(profile.counted))
    if run.is_partial:
        return "the run is not complete"
    if run.section("profiler").get("simulated"):
        return "its kernels were counted on a simulated device, which draws no power"
    measured = profile.measured
    if measured is not None and measured.boards is not None and (measured.boards == 0) != profile.is_of_cpu:
        return f"its meter covers {measured.covers}"
    if boards > 1:
        return f"its meter or its kernels are of {boards} GPUs together, and a cost table is of one"
    program_words = len(run.manifest.get("program", []))
    for measurement in run.manifest.get("measurements", []):
        command = [str(word) for word in measurement.get("command", [])]
        options = command[: len(command) - program_words]
        if measurement.get("what") == "counters" and not _CHOOSING.isdisjoint(options):
            return (
                "some of its kernels were not counted (-k, --launch-skip, --launch-count, --nvtx), but all were metered"
            )
    return None


def _whole(amounts: Columns, marks: Columns, as_flops: bool) -> dict[str, float]:
    """Word -> its sum over all kernels of a program; NaN where a kernel lacks it.

    The kinds of FP64, FP32, FP16 are added. as_flops: a multiply-add is two, as it is where counters tell no kinds.
    """
    families = {total: (total, *parts) for total, parts in FLOAT_PARTS.items()}
    inside = {part for parts in families.values() for part in parts[1:]}
    sums = {}
    for word in COUNTS:
        if word in inside:
            continue
        members = [name for name in families.get(word, (word,)) if name in amounts]
        values = amounts.only(members)
        # A total and its parts exclude each other: the one that does not apply is NaN without a mark.
        lost = (marks.only(members) & int(Mark.MISSING)).any() or np.isnan(values).all(axis=1).any()
        weights = [1 + (as_flops and COUNTS[name].flops == 2) for name in members]
        sums[word] = float("nan") if lost else float(np.nansum(values * weights))
    return sums


def _common(programs: Sequence[Program], mapping: str) -> tuple[pd.DataFrame, list[str]]:
    """A table of the programs' counts, (path, word), of runs that lack no word that others have; and notes."""
    table = pd.DataFrame({program.path: dict(program.counts) for program in programs}).T
    if table.empty:
        return table, []
    formed = {name for term in load(mapping).terms for formula in term.formulas for name in formula.names}
    used = [word for word in COUNTS if word in formed and word in table]
    known = [word for word in used if table[word].notna().any()]
    lost = [word for word in used if not {word, *stand_ins(word)} & set(known)]
    notes = list(filter(None, [phrase("Not counted in any run, so not among the terms: {}.", ", ".join(lost))]))
    gaps = table[known].isna()
    for path in table.index[gaps.any(axis=1)]:
        words = ", ".join(word for word in known if gaps[word][path])
        notes.append(f"{path} was left out: {words} was not counted for all of its kernels, unlike in other runs.")
    return table.loc[~gaps.any(axis=1), known], notes


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
    """Read logs of a GPU's sampled activity as measurements; a program is named after its log, without its number.

    Moments in which nothing ran are rows of a program `idle`. table: whose peaks turn activity into work; levels: with
    the levels that a byte of DRAM has passed, where the table prices each. marked: files of what ran when, on the logs'
    clock: programs are called as the marks that they ran in, and as the log outside of all. Raises LogError, CostError.
    """
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
    # One row in place of all idle ones at each core clock, with their mean power over their time.
    idle = gathered((row["core_mhz"], row) for row in rows if row["benchmark"] == _IDLE)
    rows = [row for row in rows if row["benchmark"] != _IDLE]
    for same in idle.values():
        seconds = sum(row["sampled_s"] for row in same)
        joules = sum(row["power_w"] * row["sampled_s"] for row in same)
        rows.append({**same[0], "sampled_s": seconds, "power_w": joules / seconds})
    frame = pd.DataFrame(rows)
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
    """A function that reads logs by `measurements` and `options`; None: `files` are no logs of sampled activity.

    table: the name of a cost table; naming: how a user names one ("say --device"). marked: files of marks. Raises
    UsageError: no table is named, or marks are of other files; LogError: only some files are such logs.
    """
    if not logs.are_sampled(files):
        if marked:
            raise UsageError("--marks tells programs of sampled logs apart, of which there are none.")
        return None
    if table is None:
        raise UsageError(f"What a GPU sampled is work by its peaks, and these logs do not name it; {naming}.")
    return partial(measurements, table=costs.load(table), marked=marked, **options)


def peaks(table: CostTable) -> tuple[dict[str, float], float | None]:
    """A cost table's peaks, flop or bytes a cycle ("sp_flop_per_core_cycle"...); number of multiprocessors or None."""
    costs = table.at()
    told = {
        "sp_flop_per_core_cycle": (costs.peaks.sp_gflops, costs.setting.core_mhz),
        "dp_flop_per_core_cycle": (costs.peaks.dp_gflops, costs.setting.core_mhz),
        "dram_byte_per_memory_cycle": (costs.peaks.dram_gb_per_s, costs.setting.memory_mhz),
    }
    return {name: 1e3 * peak / mhz for name, (peak, mhz) in told.items() if peak and mhz}, table.sm_count


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
    """Yields one GPU's rows of measurements: samples of a stretch, clock and program (`owner`: its place, -1: none)."""
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
