"""Run directories as inputs (`Run`: logs, times, measured joules; medians of repetitions), ranks by names of logs."""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof import logs, profilers
from eprof.base.arrays import finite
from eprof.base.errors import LogError, UsageError
from eprof.base.kernels import match_names
from eprof.base.optional import either, gathered, only, relative_range, summed
from eprof.base.text import ShortRepr, few, listed, pattern, when
from eprof.base.units import in_joules
from eprof.base.vocabulary import Mark
from eprof.collect import directory
from eprof.logs.log import Launches, Log, Names, much_in_kernel

TIME, ENERGY, COUNTERS = "time", "energy", "counters"
PARTIAL = "this is a partial run"
_BY_PRODUCTS = (".out", ".err", ".nsys-rep", ".sqlite", ".part")
_EXAMPLES = 3
_SAME_LAUNCHES = 0.001
_NOTEWORTHY_SPREAD = 0.05
_TELLING_SHARE = 0.05  # of the time, that a storage device works, or that is left out
_LEAST_SYSTEM_S = 0.04  # of all runs together: ten ticks of 4 ms, by which Linux tells user time from the kernel's
_BUSY = 0.3  # of the time that a program waits for a processor: the machine is busy
_HOST_METER = "RAPL"
Reader = Callable[[Path], Log]
# A log's measurement and repetition: "counters-1-4711.csv".
_LOG_NAME = pattern(rf"({TIME}|{ENERGY}|{COUNTERS})-([0-9]+)")


class Key(NamedTuple):
    """A kernel, or a part of one, on a device: by this the same one is found in repetitions of a run."""

    device: object
    kernel: object
    part: object


class Measured(Struct, frozen=True):
    """The joules that a meter saw in one run of the program: the median over repetitions.

    method, covers: how and of what, in words. runs: how many were metered; 0: joules are of all that the logs are of.
    seconds: how long one run was metered, from the program's start to its end, the median likewise. boards: how many
    GPU boards the meter covers, 0 if it is one of the host; None: not known. beside: what else the meter saw.
    """

    joules: float
    method: str
    covers: str
    runs: int
    spread: float | None = None
    core_mhz: float | None = None
    memory_mhz: float | None = None
    slowed_by: tuple[str, ...] = ()
    seconds: float | None = None
    boards: int | None = None
    beside: str = "start-up, copies and idle time, the prediction only the kernels"

    @property
    def words(self) -> str:
        """The measured joules as a phrase, and how they were measured: "12.3 J a run (energy counter, 5 runs)"."""
        if self.runs:
            around = "" if self.spread is None else f", spread {100 * self.spread:.2g} %"
            return f"{in_joules(self.joules)} a run ({self.method}, {self.runs} runs{around})"
        power = f" in {self.seconds:.6g} s, {self.joules / self.seconds:.6g} W" if self.seconds else ""
        return f"{self.joules:.6g} J of {self.covers}{power} ({self.method})"

    def reasons(self) -> str:
        """A phrase on why the measured energy of a run may differ from what is predicted."""
        words = [
            f"it covers {self.covers} during the whole program, with {self.beside}",
            "the meter samples and averages",
        ]
        if self.slowed_by:
            words.append(f"the GPU was slowed down ({', '.join(self.slowed_by)})")
        return "; ".join(words)


class Run(ShortRepr, Struct, frozen=True):
    """What a run directory of `eprof run` holds. whole: all kernels are looked at.

    manifest: of `run.json`, empty if there is none. files: logs by measurement and repetition. strange: names in
    `logs/` that are no plain files of this directory, and were not read.
    """

    path: Path
    manifest: Mapping[str, Any]
    files: Mapping[str, Mapping[int, Sequence[Path]]]
    whole: bool = True
    strange: tuple[str, ...] = ()

    @property
    def command(self) -> str | None:
        """The command line of the program that was run."""
        return self.manifest.get("command") or None

    @property
    def is_at_own_clocks(self) -> bool:
        """Whether `eprof run` left the clocks alone (no --lock-clocks); False if its command is not known."""
        words = self.manifest.get("command_line", ())
        return bool(words) and "--lock-clocks" not in words

    @property
    def commit(self) -> str | None:
        """The git commit of the program's working directory, with "-dirty" where files differed; None: not known."""
        return self.manifest.get("commit")

    @property
    def started_utc(self) -> str | None:
        """When the run began, "2026-01-31T12:00:00.000000Z"; None: not known."""
        return self.manifest.get("started_utc")

    @property
    def program_s(self) -> float | None:
        """The program's time in s without a profiler, without `left_out_s`: the median over repetitions.

        None where it did not run alone, and of a partial run: not all of what was timed was counted then.
        """
        return median(self.alone_s) if self.alone_s and not self.is_partial else None

    @property
    def cores(self) -> float | None:
        """Cores that the program kept busy when it ran alone: processor time over time; None: not measured."""
        if not self.used_s or not median(self.alone_s):
            return None
        return median(self.used_s) / median(self.alone_s)

    @property
    def used_s(self) -> list[float]:
        """The processor times in s that go with `alone_s`; empty where they were not measured."""
        used_s = [each.get("cpu_seconds", 0.0) - each.get("left_out_cpu_s", 0.0) for each in self._alone]
        return used_s if all(seconds > 0 for seconds in used_s) else []

    @property
    def io(self) -> Mapping[str, float]:
        """Bytes read and written (`io` of `run.json`) and `seconds`, of the run alone or the first; empty: not told."""
        for each in [*self._alone, *self.manifest.get("measurements", [])]:
            if each.get("io") and each.get("seconds"):
                return {**each["io"], "seconds": each["seconds"]}
        return {}

    @property
    def left_out_s(self) -> dict[str, float]:
        """Why time is not counted ("imports") -> seconds, medians over runs; only what is 5 % of the time or more."""
        left_out = [each.get("left_out_s", {}) for each in self._alone]
        medians = {what: median([each.get(what, 0.0) for each in left_out]) for each in left_out for what in each}
        least_s = _TELLING_SHARE * (sum(medians.values()) + median(self.alone_s or [0.0]))
        return {what: seconds for what, seconds in medians.items() if what != directory.QUEUED and seconds > least_s}

    @property
    def alone_s(self) -> list[float]:
        """The times of the program without a profiler in s, one a repetition, without what is left out."""
        return [float(each["seconds"]) - sum(each.get("left_out_s", {}).values()) for each in self._alone]

    @property
    def repeats_s(self) -> list[float]:
        """The times of repetitions in s if the program was counted once, so that its kernels share these times.

        Where one core's joules go by processor time, so do these: others that keep the program waiting cost it none.
        Empty where logs time the kernels of each repetition.
        """
        if TIME in self.files or not self.program_s:
            return []
        return self.used_s or self.alone_s

    @property
    def repeats(self) -> int:
        """The number of runs in which the program was timed, or counted, whichever is more."""
        return max([len(self.alone_s), *(len(self.files.get(kind, {})) for kind in (TIME, COUNTERS))])

    @property
    def _alone(self) -> list[Mapping[str, Any]]:
        """The measurements in `run.json` of the program alone, timed without a profiler."""
        alone = [
            measurement
            for measurement in self.manifest.get("measurements", [])
            if measurement.get("what") == TIME and measurement.get("command") == self.manifest.get("program")
        ]
        # A program that fails when it runs again did something else then.
        return [each for each in alone if each.get("exit_status") == alone[0].get("exit_status")]

    @property
    def is_partial(self) -> bool:
        """Whether the run did not come to its end."""
        return self.manifest.get("status") != directory.COMPLETE

    def pricing(self, key: str) -> Any:
        """`costs`, `setting` or `efficiency` as they were given to the run; None if they were not."""
        value = self.section("pricing").get(key)
        if key == "costs" and value and set("/\\") & set(str(value)) and not str(value).endswith(".toml"):
            # Somebody else may have written it, and whatever it names would be opened.
            raise LogError(f"{self.path}: run.json names a file as its costs that is no .toml file ({value}).")
        return value

    def section(self, key: str) -> Mapping[str, Any]:
        """The table `key` of the run's `run.json`; empty if there is none."""
        return self.manifest.get(key) or {}

    @property
    def metered(self) -> list[Mapping[str, Any]]:
        """The `energy` tables in `run.json`, one for each measurement that was metered."""
        return [each["energy"] for each in self.manifest.get("measurements", []) if each.get("energy")]

    def main_logs(self) -> list[Path]:
        """The logs of a run directory that are joined: the counters, and the times, of the first repetition."""
        kinds = [repeats for kind in (COUNTERS, TIME) if (repeats := self.files.get(kind))]
        return [path for repeats in kinds for path in repeats[min(repeats)]]

    def notes(self) -> list[str]:
        """Sentences for the user on the run: partial, its own warnings, time left out, waits, page faults, files."""
        notes = []
        if self.is_partial:
            state = when(self.manifest, "was not finished") or "has no run.json"
            measurements = self.manifest.get("measurements", [])
            if any(each.get("signal") and each.get("what") == COUNTERS for each in measurements):
                state = "died in the counters run"
            notes.append(f"{self.path.name} {state}: {PARTIAL}, and only what was collected is shown.")
        notes += self.manifest.get("warnings", [])
        if self.left_out_s:
            parts = listed([f"{what} ({seconds:.3g} s)" for what, seconds in self.left_out_s.items()])
            notes.append(f"Left out of the time, as nothing is counted then: {parts}.")
        queued = median([each.get("queued_seconds", 0.0) / each["seconds"] for each in self._alone] or [0.0])
        if queued > _BUSY:
            is_left_out = any(directory.QUEUED in each.get("left_out_s", {}) for each in self._alone)
            then = when(is_left_out, "which is left out") or "so times are too long: run it where nothing else runs"
            notes.append(f"The program waited {queued:.0%} of the time for a processor that others had, {then}.")
        # What is left out may be the kernel's.
        system_s = [each.get("system_seconds", 0.0) - each.get("left_out_cpu_s", 0.0) for each in self._alone]
        of_kernel_s = sum(max(seconds, 0.0) for seconds in system_s)
        if of_kernel_s >= _LEAST_SYSTEM_S and self.used_s:
            faults = median([each.get("page_faults", 0.0) for each in self._alone])
            told = much_in_kernel(sum(self.used_s), of_kernel_s, faults, least="At least ")
            notes += [f"{note}; it is shared out to functions by their cycles." for note in told]
        if len(self.alone_s) > 1:
            notes.append(
                f"The time is the median of {len(self.alone_s)} runs, {min(self.alone_s):.3g} to "
                f"{max(self.alone_s):.3g} s."
            )
        io = self.io
        read_mb, written_mb = (io.get(f"{way}_bytes", 0.0) / 1e6 for way in ("read", "written"))
        if read_mb + written_mb and io.get("device_s", 0.0) > _TELLING_SHARE * io["seconds"]:
            notes.append(
                f"The program read {read_mb:.4g} MB from storage devices and wrote {written_mb:.4g} MB; the busiest "
                f"device worked {io['device_s'] / io['seconds']:.0%} of the time, for all programs. Its joules have no "
                "price here; `eprof scale --cluster` takes its power."
            )
        return notes + _not_read(self.strange)

    @property
    def limit_w(self) -> float | None:
        """The power limit in W that all boards of the run had; None where its meter tells none, or several."""
        told = self.section("meter").get("limits_w")
        if not isinstance(told, list):
            return None
        return only({limit for limit in told if isinstance(limit, int | float) and limit > 0})

    def measured(self) -> Measured | None:
        """The energy that a meter measured of the whole run; None: it saw too little, or kernels are left out."""
        results = [energy for energy in self.metered if energy.get("joules")]
        if not results or not self.whole:
            return None
        joules = [float(energy["joules"]) for energy in results]
        windows = [(energy.get("window_s"), max(int(energy.get("runs", 1)), 1)) for energy in results]
        seconds = [float(window) / runs for window, runs in windows if window]
        first, meter = results[0], self.section("meter")
        boards = 0 if meter.get("name") == _HOST_METER else len(meter.get("devices") or ()) or None
        duration_s = median(seconds) if len(seconds) == len(results) else None
        return Measured(
            median(joules),
            str(first.get("method")),
            str(meter.get("covers", "the meter's domain")),
            sum(int(energy.get("runs", 1)) for energy in results),
            spread=relative_range(joules) or 0.0 if len(joules) > 1 else None,
            core_mhz=first.get("core_mhz"),
            memory_mhz=first.get("memory_mhz"),
            slowed_by=tuple(sorted({str(why) for energy in results for why in energy.get("slowed_by", [])})),
            seconds=duration_s,
            boards=boards,
        )


def metered_in(several: Sequence[Launches]) -> Measured | None:
    """The joules that logs hold among their counters, added up; None if there is nothing that a meter saw in all.

    Of several meters it is the one that saw most, which covers what the others do.
    """
    joules = [launches.energy_j() for launches in several]
    totals_j = summed((covers, known[covers]) for known in joules for covers in set.intersection(*map(set, joules)))
    if not totals_j:
        return None
    covers = max(totals_j, key=totals_j.__getitem__)
    # The mean power is that of the same runs: none where some have joules and no time.
    rows = [launches.rows for launches in several]
    is_timed = not any((each.time_marks & int(Mark.MISSING)).any() for each in rows)
    time_s = sum(float(each.time_s.sum()) for each in rows) if is_timed else math.nan
    profiler = next(iter(several[0].profilers.values()))
    return Measured(
        totals_j[covers],
        f"the processor's energy counters, in the log of {profiler}",
        covers,
        runs=0,
        seconds=finite(time_s),
        beside="idle time and all else that ran there",
    )


def median(values: Sequence[float]) -> float:
    """The median of values of one repetition or more."""
    return float(np.median(values))


def is_run(path: Path) -> bool:
    """Whether `path` is a run directory, finished or not."""
    return directory.is_run_directory(path)


def open_run(path: Path) -> Run:
    """What a run directory holds. Raises LogError if nothing was collected, CollectError if `run.json` is damaged."""
    manifest = directory.manifest(path) or {}
    files: dict[str, dict[int, list[Path]]] = {}
    strange = []
    collectors = profilers.collectors()
    for file in sorted((path / "logs").glob("*")):
        if not (file.is_file() and file.resolve().is_relative_to(path.resolve())):
            strange.append(f"logs/{file.name}")
            continue
        name = _LOG_NAME.match(file.name)
        # Of standard outputs only those of processes that ran kernels.
        is_result = file.suffix not in _BY_PRODUCTS and file.stat().st_size > 0
        if name and is_result and all(collector.is_log(file) for collector in collectors):
            files.setdefault(name[1], {}).setdefault(int(name[2]), []).append(file)
    run = Run(path, manifest, files, manifest.get("whole", True), tuple(strange))
    if run.main_logs():
        return run
    if manifest.get("cluster"):
        raise LogError(f"{path}: is a program on a simulated cluster; `eprof scale {path}` reports on it.")
    if run.section("profiler").get("name") == "none":
        raise LogError(f"{path}: was run without a profiler; `eprof timeline {path}` shows its power over time.")
    reasons = manifest.get("warnings") or ["The run ended before a profiler wrote anything."]
    raise LogError(f"{path}: holds nothing to report on. {' '.join([*reasons, *_not_read(strange)])}")


def open_all(paths: Sequence[Path], alone: bool) -> tuple[list[Run], list[str]]:
    """(The run directories that hold logs, a sentence on each that does not).

    alone: the user gave nothing else to read. Raises LogError if the only one then holds nothing, or none does;
    CollectError if a `run.json` is damaged.
    """
    opened: list[Run] = []
    errors: list[LogError] = []
    for path in paths:
        try:
            opened.append(open_run(path))
        except LogError as err:
            errors.append(err)
    if alone and errors and len(paths) == 1:
        raise errors[0]
    if alone and errors and not opened:
        raise LogError(f"None of the {len(paths)} runs can be reported on. The first: {errors[0]}")
    return opened, [f"Left out: {err}" for err in errors]


def _not_read(names: Sequence[str]) -> list[str]:
    why = "they are no plain files of the run directory, or links that lead out of it"
    return [f"Not read, for {why}: {few(names, _EXAMPLES)}."] * bool(names)


def titled(run: Run, log: Log) -> Log:
    """A log of the run directory `run`, with the run's command line and GPU where the log does not tell them itself."""
    name = run.section("device").get("name")
    tables = []
    for table in log.tables:
        signs = profilers.signs_of(table.profiler)
        rows, size = table.rows, len(table.rows)
        if signs.of_programs and run.command is not None:
            rows = replace(rows, kernel=Names.of([run.command] * size), device=Names.of([name] * size))
        if signs.first_device is not None and name:  # its profiler logs numbers only
            devices = rows.device.texts()
            is_first = [device is None or signs.first_device.match(device) is not None for device in devices]
            rows = replace(rows, device=Names.of(np.where(is_first, f"{name} (0)", devices)))
        tables.append(replace(table, rows=rows))
    log = replace(log, tables=tuple(tables))
    if run.files.get(TIME):
        # These notes are for logs whose slowed times are all there is; here kernels were traced.
        slowed = {signs.slowed_note for signs in profilers.signs().values()}
        log = replace(log, notes=tuple(note for note in log.notes if note not in slowed))
    if run.command is not None and not log.command:
        log = replace(log, command=run.command)
    return log


def settle(run: Run, launches: Launches, read: Reader) -> tuple[Launches, list[str]]:
    """(The run's launches with times as medians over repetitions; notes on how times, processes and work varied).

    read: makes a `Log` of a path.
    """
    notes: list[str] = []
    for kind in (COUNTERS, TIME):
        repeats = [paths for _, paths in sorted(run.files.get(kind, {}).items())]
        if repeats:
            notes += _spread_notes(f"processes ({kind} runs)", [[path] for path in repeats[0]], read)
        if len(repeats) > 1:
            repetitions = [logs.combine([read(path) for path in paths]) for paths in repeats]
            notes += _work_notes(kind, repetitions)
            if kind == TIME:
                launches = _median_times(launches, repetitions)
                totals = [float(np.nansum(repetition.rows.time_s)) for repetition in repetitions]
                notes.append(f"Times are medians over {len(repetitions)} repetitions; {_kernel_time(totals)}.")
    return launches, notes


def _median_times(launches: Launches, repetitions: Sequence[Launches]) -> Launches:
    """The launches with each kernel's time as the median over the repetitions of a run that timed the kernel."""
    timed = chain.from_iterable(map(_timed, repetitions))
    times = gathered((key, seconds) for key, seconds in timed if not math.isnan(seconds))
    # nsys names no device, and may spell kernels otherwise than the log of counters.
    spellings, _ = match_names({str(key.kernel) for key in times}, set(launches.rows.kernel))
    for key in list(times):
        if str(key.kernel) in spellings:
            times[key._replace(kernel=spellings[str(key.kernel)])] = times[key]
    medians = []
    for key, seconds in _timed(launches):
        alike = (key, key._replace(device=None), Key(None, key.kernel, None))
        known = next((times[one] for one in alike if one in times and not math.isnan(seconds)), [seconds])
        medians.append(median(known))
    return replace(launches, rows=replace(launches.rows, time_s=np.array(medians)))


def _kernel_time(totals: Sequence[float]) -> str:
    return (
        f"kernel time {min(totals):.6g} to {max(totals):.6g} s (spread {100 * (relative_range(totals) or 0.0):.2g} %)"
    )


def _timed(launches: Launches) -> Iterable[tuple[Key, float]]:
    rows = launches.rows
    keys = map(Key, rows.device, rows.kernel, either(rows.part, [None] * len(rows)))
    return zip(keys, rows.time_s.tolist(), strict=True)


def _work_notes(kind: str, repetitions: Sequence[Launches]) -> list[str]:
    """Notes if repetitions did not do the same work: numbers of launches, and the counter that differs most."""
    notes = []
    runs = f"{len(repetitions)} {kind} runs"
    totals = [int(repetition.rows.launches.sum()) for repetition in repetitions]
    if len(set(totals)) > 1:
        notes.append(f"The program does other work each time: {min(totals):,} to {max(totals):,} launches in {runs}.")
    counters = [repetition.counters for repetition in repetitions]
    sums = [dict(zip(each.names, np.nansum(each.values, axis=0).tolist(), strict=True)) for each in counters]
    names = [name for name in sums[0] if all(name in counted for counted in sums)]
    values = {name: [counted[name] for counted in sums] for name in names}
    worst = max(names, key=lambda name: ((relative_range(values[name]) or 0.0), name), default=None)
    if worst is not None and (relative_range(values[worst]) or 0.0) > _SAME_LAUNCHES:
        notes.append(
            f"The program does other work each time: `{worst}` was {min(values[worst]):,.0f} to "
            f"{max(values[worst]):,.0f} in {runs} ({100 * (relative_range(values[worst]) or 0.0):.2g} %)."
        )
    return notes


def between(several: Sequence[Run], read: Reader) -> list[str]:
    """A list of one note on how launches and times vary over runs (such as of MPI ranks); [] for one run."""
    return _spread_notes("runs", [run.main_logs() for run in several], read)


def _spread_notes(noun: str, groups: Sequence[Sequence[Path]], read: Reader) -> list[str]:
    """A list of one note on how launches and times vary over groups of logs, called `noun`; [] for one group."""
    if len(groups) < 2:
        return []
    parts = []
    for paths in groups:
        with contextlib.suppress(LogError):
            parts.append(logs.combine([read(path) for path in paths]))
    if not parts:
        return []
    launches = [float(part.rows.launches.sum()) for part in parts]
    times = [float(np.nansum(part.rows.time_s)) for part in parts if not np.isnan(part.rows.time_s).all()]
    words = f"{len(groups)} {noun}: {min(launches):,.0f} to {max(launches):,.0f} launches each"
    if times:
        words += f", {_kernel_time(times)}"
    return [f"{words}; their counts and times are added up."]


def clock_note(run: Run) -> str | None:
    """A sentence if the GPU's clock moved by more than 5 % while the run's energy was measured, else None."""
    for moved in (energy.get("core_mhz_spread") or 0.0 for energy in run.metered):
        if moved > _NOTEWORTHY_SPREAD:
            return (
                f"The GPU's core clock moved by {100 * moved:.2g} % while energy was measured; lock it "
                "(nvidia-smi -lgc) to compare with one setting."
            )
    return None


# ----------------------------------------------------------------------------------------------------------------------
# Which rank of a parallel program a log is of: its name or the user gives it.

_NUMBER = pattern(r"\d+")


def ranks(paths: Sequence[Path], pattern: str | None, each: bool = False) -> dict[Path, str]:
    """The MPI rank of each log or run directory, as text; numbers without zeros in front.

    pattern: a regular expression whose first group is the rank; it is looked for in the names below the folder that all
    share, and where it is not in all of these, in the whole paths. Without a pattern, the rank is the number in the
    names that differs between logs named alike ("rank0/metrics.csv", "rank1/metrics.csv"), or the only one in the name
    of a single log. each: where names tell no rank, every path (a run directory) is one, called by its name.
    Raises UsageError, one sentence, if a rank cannot be told.
    """
    folder = os.path.commonpath([path.parent for path in paths])
    names = [os.path.relpath(path, folder) for path in paths]
    if pattern is not None:
        return dict(zip(paths, _matched(paths, names, pattern), strict=True))
    alike = gathered((_NUMBER.sub("#", name), place) for place, name in enumerate(names))
    rank_of: dict[Path, str] = {}
    for places in alike.values():
        of_names = [_NUMBER.findall(names[place]) for place in places]
        # The one number in which names that are else alike differ is the rank of each.
        columns = [column for column in zip(*of_names, strict=True) if len(set(column)) > 1]
        numbers = only({tuple(map(int, column)): list(column) for column in columns}.values())
        if len(paths) == 1:
            numbers = of_names[0][:1] if len(set(map(int, of_names[0]))) == 1 else None
        if numbers is None and each and len(paths) > 1:
            return dict(zip(paths, names, strict=True))
        if numbers is None:
            examples = ", ".join(names[place] for place in places[:_EXAMPLES])
            raise UsageError(
                f"--group rank: no one number in the names of the inputs ({examples}"
                f"{when(len(places) > _EXAMPLES, ' ...')}) tells their ranks; say where it stands with a regular "
                r"expression, such as --rank 'rank(\d+)'."
            )
        rank_of |= {paths[place]: _plain_rank(number) for place, number in zip(places, numbers, strict=True)}
    return {path: rank_of[path] for path in paths}


def labelled(log: Log, rank: str) -> Log:
    """The log with its MPI rank as the part of all its rows."""
    tables = []
    for table in log.tables:
        part = Names((rank,), np.zeros(len(table.rows), dtype=np.int8))
        tables.append(replace(table, rows=replace(table.rows, part=part)))
    return replace(log, tables=tuple(tables))


def _matched(paths: Sequence[Path], names: Sequence[str], pattern: str) -> list[str]:
    """The rank of each path by `--rank PATTERN`: in all `names`, else in all whole paths. Raises UsageError."""
    try:
        compiled = re.compile(pattern)
    except re.error as err:
        raise UsageError(f"--rank {pattern}: not a regular expression ({err}).") from err
    if not compiled.groups:
        raise UsageError(rf"--rank {pattern}: put the rank in parentheses, such as 'rank(\d+)'.")
    for texts in (names, [str(path) for path in paths]):
        matches = [compiled.search(text) for text in texts]
        if all(matches):
            break
    for name, match in zip(names, matches, strict=True):
        if not match or not match[1]:
            raise UsageError(f"--rank {pattern}: tells no rank in {name}; it must for every input.")
    return [_plain_rank(match[1]) for match in matches if match]


def _plain_rank(rank: str) -> str:
    return str(int(rank)) if rank.isascii() and rank.isdigit() else rank
