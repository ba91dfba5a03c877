"""Reading run directories: which logs belong together, medians over repetitions, spread over processes, measured J."""

import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from eprof import logs
from eprof.base.errors import LogError
from eprof.base.text import few
from eprof.logs.join import spelling
from eprof.profilers.ncu.notes import SLOWED
from eprof.profilers.oclgrind import reader as oclgrind
from eprof.rows.log import Launches, Log, Names
from eprof.rundir import directory

TIME, ENERGY, COUNTERS = "time", "energy", "counters"
_ASIDE = (".out", ".err", ".icd", ".nsys-rep", ".sqlite", ".part")
_EXAMPLES = 3
_FIRST_DEVICE = re.compile(r"ncu device 0\b")
_SAME_LAUNCHES = 0.001
_NOTEWORTHY_SPREAD = 0.05
Reader = Callable[[Path], Log]


@dataclass(frozen=True)
class Measured:
    """Energy that a meter saw, in J for one run of the program: the median over repetitions.

    seconds: for how long it was metered in one run, from the program's start to its end, the median likewise.
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

    def reasons(self) -> str:
        """Why it may differ from what is predicted."""
        words = [
            f"it covers {self.covers} during the whole program, with start-up, copies and idle time, the prediction "
            "only the kernels",
            "the meter samples and averages",
        ]
        if self.slowed_by:
            words.append(f"the GPU was slowed down ({', '.join(self.slowed_by)})")
        return "; ".join(words)


@dataclass(frozen=True)
class Run:
    """What a run directory holds. `files`: logs by measurement and repetition; `whole`: all kernels are looked at.

    strange: names in `logs/` that are no plain files of this directory, and were not read.
    """

    path: Path
    manifest: Mapping[str, Any] | None
    files: Mapping[str, Mapping[int, tuple[Path, ...]]]
    whole: bool = True
    strange: tuple[str, ...] = ()

    @property
    def command(self) -> str | None:
        """The program's command line."""
        return None if self.manifest is None else str(self.manifest.get("command") or "") or None

    @property
    def is_partial(self) -> bool:
        """Whether the run did not come to its end."""
        return self.manifest is None or self.manifest.get("status") != directory.COMPLETE

    def pricing(self, key: str) -> Any:
        """`costs`, `setting` or `efficiency` as they were given to the run; None if they were not."""
        told = None if self.manifest is None else (self.manifest.get("pricing") or {}).get(key)
        if key == "costs" and told and set("/\\") & set(str(told)) and not str(told).endswith(".toml"):
            # Somebody else may have written it, and whatever it names would be opened.
            raise LogError(f"{self.path}: run.json names a file as its costs that is no .toml file ({told}).")
        return told

    def main_logs(self) -> list[Path]:
        """The logs that are joined: the counters, and the times, of the first repetition."""
        first = [self.files[what][min(self.files[what])] for what in (COUNTERS, TIME) if self.files.get(what)]
        return [path for paths in first for path in paths]

    def notes(self) -> list[str]:
        """What the user should know of the run itself."""
        found = [str(one) for one in (self.manifest or {}).get("warnings", [])]
        if self.is_partial:
            what = "has no run.json" if self.manifest is None else "was not finished"
            found.insert(0, f"{self.path.name} {what}: this is a partial run, and only what was collected is shown.")
        if self.strange:
            found.append(_not_read(self.strange))
        return found

    def measured(self) -> Measured | None:
        """What the meter saw; None where none was read, or saw too little, or where some kernels are left out."""
        if not self.whole:
            return None
        results = [
            one["energy"]
            for one in (self.manifest or {}).get("measurements", [])
            if one.get("energy") and one["energy"].get("joules")
        ]
        if not results:
            return None
        joules = [float(one["joules"]) for one in results]
        seconds = [float(one["window_s"]) / max(int(one.get("runs", 1)), 1) for one in results if one.get("window_s")]
        return Measured(
            statistics.median(joules),
            str(results[0].get("method")),
            str(((self.manifest or {}).get("meter") or {}).get("covers", "the meter's domain")),
            sum(int(one.get("runs", 1)) for one in results),
            spread=spread(joules) if len(joules) > 1 else None,
            core_mhz=results[0].get("core_mhz"),
            memory_mhz=results[0].get("memory_mhz"),
            slowed_by=tuple(sorted({str(why) for one in results for why in one.get("slowed_by", [])})),
            seconds=statistics.median(seconds) if len(seconds) == len(results) else None,
        )


def spread(values: Sequence[float]) -> float:
    """(largest - smallest) / median; 0 where the median is 0."""
    middle = statistics.median(values)
    return (max(values) - min(values)) / middle if middle else 0.0


def is_run(path: Path) -> bool:
    """Whether `path` is a run directory, finished or not."""
    return directory.is_run_directory(path)


def open_run(path: Path) -> Run:
    """Look into a run directory. Raises LogError if nothing was collected, CollectError if `run.json` is damaged."""
    manifest = directory.manifest(path)
    files: dict[str, dict[int, tuple[Path, ...]]] = {}
    strange = []
    home = path.resolve()
    for file in sorted((path / "logs").glob("*")) if (path / "logs").is_dir() else ():
        if not (file.is_file() and file.resolve().is_relative_to(home)):
            strange.append(f"logs/{file.name}")
            continue
        what, _, rest = file.name.partition("-")
        digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
        if what in (TIME, ENERGY, COUNTERS) and digits and _is_log(file):
            repeats = files.setdefault(what, {})
            repeats[int(digits)] = (*repeats.get(int(digits), ()), file)
    run = Run(path, manifest, files, strange=tuple(strange))
    if not run.main_logs():
        why = (
            " ".join(str(one) for one in (manifest or {}).get("warnings", []))
            or "The run ended before a profiler wrote anything."
        )
        if strange:
            why += f" {_not_read(strange)}"
        raise LogError(f"{path}: holds nothing to report on. {why}")
    return run


def open_all(paths: Sequence[Path], alone: bool) -> tuple[list[Run], list[str]]:
    """The run directories that hold something, and a sentence on each that does not. alone: nothing else is read.

    Raises LogError if the only one holds nothing, or none does; CollectError if a `run.json` is damaged.
    """
    found: list[Run] = []
    empty: list[str] = []
    for path in paths:
        try:
            found.append(open_run(path))
        except LogError as err:
            if len(paths) == 1 and alone:
                raise
            empty.append(f"Left out: {err}")
    if alone and not found and empty:
        raise LogError(f"None of the {len(paths)} runs can be reported on. The first: {empty[0][10:]}")
    return found, empty


def _not_read(names: Sequence[str]) -> str:
    return (
        f"Not read, for they are no plain files of the run directory, or links that lead out of it: "
        f"{few(names, _EXAMPLES)}."
    )


def _is_log(file: Path) -> bool:
    """Whether a file is worth reading: of standard outputs (.txt), only those of processes that ran kernels."""
    if file.suffix in _ASIDE or not file.stat().st_size:
        return False
    return file.suffix != ".txt" or oclgrind.is_in(str(file))


def titled(run: Run, log: Log) -> Log:
    """`log` with the program's command line and the GPU's name, where it does not tell them itself."""
    log = _named(run, log)
    if log.format.startswith("ncu") and run.files.get(TIME):
        # Said where ncu's own times are all there is; here kernels were traced.
        log = replace(log, notes=tuple(note for note in log.notes if note != SLOWED))
    return log if log.command or run.command is None else replace(log, command=run.command)


def _named(run: Run, log: Log) -> Log:
    """The log of ncu tells the number of a GPU at best; the first one's name was noted when the run was made."""
    name = ((run.manifest or {}).get("device") or {}).get("name")
    if not name or not log.format.startswith("ncu"):
        return log
    tables = []
    for table in log.tables:
        devices = table.rows.device.texts()
        first = [device is None or _FIRST_DEVICE.match(device) is not None for device in devices]
        named = Names.of(np.where(first, f"{name} (0)", devices))
        tables.append(replace(table, rows=replace(table.rows, device=named)))
    return replace(log, tables=tuple(tables))


def settle(run: Run, launches: Launches, read: Reader) -> tuple[Launches, list[str]]:
    """Times as medians over the repetitions, and sentences on spreads, on other work each time, and on processes."""
    notes: list[str] = []
    for what in (COUNTERS, TIME):
        repeats = [paths for _, paths in sorted(run.files.get(what, {}).items())]
        if repeats:
            notes += _spread_notes(f"processes ({what} runs)", [[path] for path in repeats[0]], read)
        if len(repeats) > 1:
            several = [logs.combine([read(path) for path in paths]) for paths in repeats]
            notes += _work_notes(what, several)
            if what == TIME:
                launches, more = _median_times(launches, several)
                notes += more
    return launches, notes


def _median_times(launches: Launches, several: Sequence[Launches]) -> tuple[Launches, list[str]]:
    """Each kernel's time as the median over repetitions that timed it."""
    found: dict[tuple[object, ...], list[float]] = {}
    for one in several:
        for *key, seconds in _timed(one):
            if not np.isnan(seconds):
                found.setdefault(tuple(key), []).append(seconds)
    rows = launches.rows
    # nsys tells no device, and may spell names otherwise than the log of counters.
    names, _ = spelling.match({str(kernel) for _, kernel, _ in found}, set(rows.kernel))
    found |= {(one[0], names[str(one[1])], one[2]): times for one, times in found.items() if str(one[1]) in names}
    known = [
        next((found[one] for one in [(device, *rest), (None, *rest), (None, rest[0], None)] if one in found), None)
        for device, *rest, _ in _timed(launches)
    ]
    time_s = [
        statistics.median(times) if times and not np.isnan(now) else now
        for times, now in zip(known, rows.time_s, strict=True)
    ]
    totals = [float(np.nansum(one.rows.time_s)) for one in several]
    note = (
        f"Times are medians over {len(several)} repetitions; kernel time {min(totals):.6g} to {max(totals):.6g} s "
        f"(spread {100 * spread(totals):.2g} %)."
    )
    return replace(launches, rows=replace(rows, time_s=np.array(time_s))), [note]


def _timed(launches: Launches) -> Iterator[tuple[object, object, object, float]]:
    """Device, kernel, part (None without parts) and time in s (NaN = not known) of every row."""
    rows = launches.rows
    parts = [None] * len(rows) if rows.part is None else rows.part
    yield from zip(rows.device, rows.kernel, parts, rows.time_s.tolist(), strict=True)


def _work_notes(what: str, several: Sequence[Launches]) -> list[str]:
    """Whether the repetitions did the same work: launches by kernel, and counters in total."""
    notes = []
    totals = [int(one.rows.launches.sum()) for one in several]
    if len(set(totals)) > 1:
        notes.append(
            f"The program does other work each time: {min(totals):,} to {max(totals):,} launches in {len(several)} "
            f"{what} runs."
        )
    sums = [dict(zip(one.counters.names, np.nansum(one.counters.values, axis=0), strict=True)) for one in several]
    names = [name for name in sums[0] if all(name in one for one in sums)]
    worst = max(((spread([float(one[name]) for one in sums]), name) for name in names), default=(0.0, ""))
    if worst[0] > _SAME_LAUNCHES:
        values = [float(one[worst[1]]) for one in sums]
        notes.append(
            f"The program does other work each time: `{worst[1]}` was {min(values):,.0f} to {max(values):,.0f} in "
            f"{len(several)} {what} runs ({100 * worst[0]:.2g} %)."
        )
    return notes


def between(several: Sequence[Run], read: Reader) -> list[str]:
    """One sentence on the spread over run directories, such as those that MPI ranks made."""
    return _spread_notes("runs", [run.main_logs() for run in several], read)


def _spread_notes(what: str, groups: Sequence[Sequence[Path]], read: Reader) -> list[str]:
    """One sentence on the spread over processes or runs, each with its logs."""
    if len(groups) < 2:
        return []
    parts = []
    for paths in groups:
        try:
            parts.append(logs.combine([read(path) for path in paths]))
        except LogError:
            continue
    launches = [float(one.rows.launches.sum()) for one in parts]
    times = [float(np.nansum(one.rows.time_s)) for one in parts if not np.isnan(one.rows.time_s).all()]
    if not launches:
        return []
    words = f"{len(groups)} {what}: {min(launches):,.0f} to {max(launches):,.0f} launches each"
    if times:
        words += f", kernel time {min(times):.6g} to {max(times):.6g} s (spread {100 * spread(times):.2g} %)"
    return [words + "; their counts and times are added up."]


def clock_note(run: Run) -> str | None:
    """A sentence if the GPU's clock moved while energy was measured."""
    for one in (run.manifest or {}).get("measurements", []):
        moved = (one.get("energy") or {}).get("core_mhz_spread")
        if moved and moved > _NOTEWORTHY_SPREAD:
            return (
                f"The GPU's core clock moved by {100 * moved:.2g} % while energy was measured; lock it "
                "(nvidia-smi -lgc) to compare with one setting."
            )
    return None
