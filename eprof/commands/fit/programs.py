"""Rows of measurements from runs of whole programs (`eprof run`): what was counted, over what the meter saw.

The joules of a run cover the program from start to end, so constant power flowed for the whole metered time T, while
everything that was counted happened somewhere within it:

    E = sum_i n_i eps_i + P_const T   =>   P = E / T = sum_i (n_i / T) eps_i + P_const        ([FMM] section II)

Both the power and the rates are therefore over T, not over the time of the kernels, which would put the energy of
start-up, copies and idle time on the kernels. What that leaves out: an idle GPU draws less than P_const (docs/fit.md).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Columns
from eprof.base.text import few, phrase
from eprof.base.units import clock_pair
from eprof.base.vocabulary import COUNTS, CPU, FLOAT_PARTS, GPU, Mark, stand_ins
from eprof.lab.measurements.mapping import load
from eprof.lab.measurements.reading import from_frame
from eprof.lab.measurements.values import DOMAINS, PLAUSIBLE_W, MeasurementError, Measurements
from eprof.logs.runs import Run, clock_note
from eprof.profile.profile import Profile

MAPPINGS = {GPU: "eprof-counts", CPU: "eprof-cpu"}
_SAME_CLOCK = 0.01  # what --setting says and what a meter saw are one clock
# With these a profiler counts some launches only, while the meter sees all of them.
_CHOOSING = {"--kernels", "-k", "--launch-skip", "--launch-count", "--nvtx-include"}
Setting = tuple[float, float]


class Program(Struct, frozen=True):
    """One run as a row. counts: word -> instructions or bytes of the whole program in accessed books, NaN = not known.

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
    """Counts by path and word, without runs that lack words of others and words that all lack; and notes."""
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
