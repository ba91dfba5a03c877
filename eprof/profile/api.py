"""The Python API: `eprof.load`, and the profiles of what a user names as a variant (logs, run directories, repeats)."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof import logs, profilers
from eprof.base.errors import LogError, MeterError, UsageError
from eprof.base.gpus import capabilities, data_sheet, sheets_with
from eprof.base.labels import no_such_kernel, selection
from eprof.base.optional import mapped, only
from eprof.base.resources import cache_folder
from eprof.base.text import capital
from eprof.base.vocabulary import CPU
from eprof.costs import ESTIMATED, NONE, gpu_meant
from eprof.counts import definition_files
from eprof.logs import runs
from eprof.logs.log import LAUNCH, MARK, NVTX, ON_TOTALS, OUTSIDE, PARTS, RANGES, RANK, STREAM, Launches, Log
from eprof.logs.many import Progress, Reading, Stamp, attempt, is_pipe, read_all
from eprof.logs.passes import added_runs
from eprof.logs.runs import COUNTERS, TIME, Run, labelled, ranks
from eprof.profile.device import capabilities_of
from eprof.profile.profile import Energy, Profile, build
from eprof.profile.schema import kind_of
from eprof.profilers import advice

if TYPE_CHECKING:
    import pandas as pd


_PRICING = ("costs", "setting", "efficiency")  # as which runs are priced where all of them were priced alike
_TELLING = {STREAM: ("streams", advice.STREAMS), NVTX: ("NVTX ranges", advice.NVTX), MARK: ("marks", advice.NVTX)}


def load(
    *inputs: str | Path | pd.DataFrame,
    capability: str | None = None,
    columns: str | Path | None = None,
    time: Sequence[str] = (),
    kernels: Sequence[str] = (),
    command_line: Sequence[str] = (),
    strict: bool = False,
    scheduler: str | None = None,
    cache: bool = True,
    workers: int = 1,
    progress: Progress | None = None,
    parts: str | None = None,
    rank: str | None = None,
    timeline: bool = False,
    gpu: str | None = None,
) -> Profile:
    """Read saved profiler logs, of one run or of several, and count what their kernels did.

    inputs: files or glob patterns, or data frames of nsight-python (`to_dataframe()`). capability: of the GPU, "3.5",
    if its name does not show it. columns: a file with the column names of headerless rows. time: "TIME" or
    "KERNEL=TIME" for logs without times. kernels: names or "regex:..." to keep. strict: a log that cannot be read
    is an error; else it is left out, with a warning, if others can. scheduler: a Dask cluster that reads the logs,
    "tcp://HOST:PORT". cache: large logs are kept as they were read, and not read again. workers: processes
    that may read; more than one needs a script with a guard (`if __name__ == "__main__"`), as multiprocessing does.
    progress: called with the bytes read so far, and all bytes. parts: "rank", "stream", "nvtx" or "mark": splits the
    rows of a kernel, for `Energy.grouped`. rank: a regular expression whose first group is the rank in a log's path,
    where no one number in the names gives it. timeline: hold the launches of traces one by one, with their starts, as
    `Profile.timeline`. gpu: that of logs that do not name theirs, by its name ("V100") or that of its cost table.
    Raises LogError, DefinitionError, UsageError with one sentence each.
    """
    if not inputs:
        raise UsageError("Nothing to report on: name at least one log.")
    if documents := [given for given in inputs if isinstance(given, str | Path) and kind_of(Path(given)) is not None]:
        if len(inputs) > 1 or parts or timeline or time:
            raise UsageError(
                f"{documents[0]}: is a document of eprof: name it alone, without --time and --group, or name its logs."
            )
        from eprof.profile import from_json

        return from_json.load(Path(documents[0]), kernels, command_line or ["eprof", "report", str(documents[0])])

    sources = _sources(inputs, parts, rank)
    names = None if columns is None else tuple(logs.read_columns(columns))
    split_by = parts
    if timeline:
        if parts in (STREAM, *RANGES):
            raise UsageError(
                f"A trace shows single launches on their streams, so it cannot be used with --group {parts}."
            )
        split_by = LAUNCH
    elif parts == RANK:  # ranks come from the names of the logs, not from their rows
        split_by = None
    reading = Reading(
        names,
        definition_files.descriptions(),
        definition_files.names_in_use,
        cache_folder() if cache else None,
        split_by,
        gather=not sources.owner and not sources.rank_of,
    )
    results = read_all(sources.paths, reading, scheduler=scheduler, workers=workers, progress=progress)

    def read_one(path: Path) -> Log:
        return sources.labelled(path, results.get(path) or attempt(path, reading))

    read, left_out = _read_all(sources, read_one, strict, parts)
    read = logs.told_apart(read)
    of_logs = []
    if reading.refused is not None and any(map(Stamp.of, sources.paths)):  # one is large enough for the cache
        of_logs.append(f"{capital(reading.refused)}.")
    of_logs += left_out
    for log in read:
        if (number := added_runs(log)) > 1:
            added = f"{number} runs or processes are added up; give the parts of each to tell them apart"
            of_logs.append(f"{Path(log.path).name}: {ON_TOTALS}{added}")
    of_logs += [f"{Path(log.path).name}: {note}" for log in read for note in log.notes]

    def counted(named: str | None) -> Profile:
        joined = logs.combine(read, definition_files.capability_of, named)
        everything, run_notes = _settle(sources.directories, joined, read_one)
        _check(everything, parts, timeline)
        launches, notes = _select(everything, kernels)
        # A -k that leaves out none looks at all of them.
        whole = len(launches.rows) == len(everything.rows)
        run = None
        if sources.directories and len(sources.given) == 1 and not sources.frames:
            run = replace(sources.directories[0], whole=sources.directories[0].whole and whole)
        return build(
            read,
            launches,
            capability=capability,
            time=time,
            warnings=[*run_notes, *sources.empty, *of_logs, *notes],
            command_line=command_line or ["eprof", "report", *map(str, sources.given)],
            run=run,
            whole=whole,
            parts=parts,
            priced_as=only({tuple(map(run.pricing, _PRICING)): run for run in sources.directories}.values()),
            program_s=sources.program_s,
            everything=everything,
        )

    named = _named(gpu, read)
    profile = counted(named)
    # What a log tells of its board, its multiprocessors and the peak of its DRAM, may rule out the one that the user
    # names: the prices are another GPU's then.
    sheet = mapped(data_sheet, named)
    own = [part.device for part in profile.counted if part.device.name == named and part.device.capability]
    if sheet is not None and not all(sheet in sheets_with(device.capability or "", device.told) for device in own):
        return counted(None)
    return profile


class _Sources(Struct, frozen=True):
    """The inputs of `load`: `given` as named, `missing` those that do not exist, `paths` the logs behind them.

    frames: inputs that are no names. directories: run directories; empty: what is wrong with those that cannot be read.
    owner: the run directory of a log, if it is in one. rank_of: its rank, if rows are split by rank.
    program_s: how long the programs ran without a profiler; None unless the run directory of every log tells.
    """

    given: Sequence[Path]
    missing: Collection[Path]
    directories: Sequence[Run]
    empty: Sequence[str]
    owner: Mapping[Path, Run]
    paths: Sequence[Path]
    rank_of: Mapping[Path, str]
    frames: Sequence[object]
    program_s: float | None

    def labelled(self, path: Path, log: Log | LogError) -> Log:
        """The log read from `path` with its run directory's title and its rank. Raises `log`, if that is an error."""
        if isinstance(log, LogError):
            raise log
        if path in self.owner:
            log = runs.titled(self.owner[path], log)
        if path in self.rank_of:
            log = labelled(log, self.rank_of[path])
        return log


def _named(gpu: str | None, read: Sequence[Log]) -> str | None:
    """The GPU that the user names by `gpu`, if the profilers of the logs can profile it; else None."""
    meant = None if gpu in (None, NONE, ESTIMATED) else gpu_meant(gpu)
    if meant is None:
        return None
    numbers = [float(capability) for capability in capabilities(meant)]
    ranges = [profilers.signs_of(log.format.partition("-")[0]).capabilities for log in read]
    may_be = [number for number in numbers if all(lowest <= number <= highest for lowest, highest in ranges)]
    if numbers and not may_be:
        return None
    return meant


def _sources(inputs: Sequence[object], parts: str | None, rank: str | None) -> _Sources:
    """Find the logs behind the inputs of `load`, the run directories that they are in, and their ranks (`parts`)."""
    given, missing = _expand([name for name in inputs if isinstance(name, str | Path)])
    homes = [path for path in given if runs.is_run(path)]
    directories, empty = runs.open_all(homes, alone=len(homes) == len(given))
    owner = {path: run for run in directories for path in run.main_logs()}
    paths = [*(path for path in given if path not in homes), *owner]
    rank_of = _ranks(paths, {path: run.path for path, run in owner.items()}, parts, rank)
    frames = [frame for frame in inputs if not isinstance(frame, str | Path)]
    known_s = [run.program_s for run in directories if run.program_s is not None]
    program_s = None
    if known_s and len(known_s) == len(directories) and len(owner) == len(paths):
        program_s = sum(known_s)
    return _Sources(given, missing, directories, empty, owner, paths, rank_of, frames, program_s)


def _check(launches: Launches, parts: str | None, timeline: bool) -> None:
    """Raise LogError if no log tells kernels' `parts` (streams, ranges) or, for a timeline, when launches ran."""
    of_rows = launches.rows.part
    if parts == MARK and _is_of_cpu(launches) and (of_rows is None or set(of_rows) == {OUTSIDE}):
        raise LogError(
            f"--group {parts}: no marks are told. perf counts a program as a whole; eprof run --profiler callgrind "
            "tells its marks apart, if it sets some (eprof_mark.h, eprof.mark), eprof timeline those of perf stat -I."
        )
    if parts is not None and of_rows is None:
        noun, ways = _TELLING[parts]
        raise LogError(f"--group {parts}: none of these logs tells {noun}; logs of {_commands_for(ways, launches)} do.")
    if timeline and launches.timeline is None:
        if _is_of_cpu(launches):
            raise LogError(
                "A trace shows when a GPU's kernels ran; these logs are of a CPU, and do not tell when its functions "
                "ran."
            )
        ways = _commands_for(advice.LAUNCHES, launches)
        raise LogError(
            f"A trace needs to know when each launch ran, and none of these logs tells; {ways}, or PyTorch's profiler "
            "do."
        )


def _is_of_cpu(launches: Launches) -> bool:
    known = set(launches.profilers.values())
    return {each.processor for each in definition_files.definitions() if each.profiler in known} == {CPU}


def _commands_for(purpose: str, launches: Launches) -> str:
    """The profilers' commands that tell `purpose` (of `advice`) on the GPUs of these launches, joined by "or"."""
    labels = [label for label in dict.fromkeys(launches.rows.device) if label is not None]
    return advice.commands(purpose, [capability for label in labels for capability in capabilities_of(label)])


def _ranks(paths: Sequence[Path], homes: Mapping[Path, Path], parts: str | None, rank: str | None) -> dict[Path, str]:
    """Log -> its MPI rank, or {} where rows are not split by rank; logs of a run directory have the directory's."""
    if parts is not None and parts not in PARTS:
        raise UsageError(f"Rows can be split by {', '.join(PARTS)}, not by {parts}.")
    if parts != RANK:
        if rank is not None:
            raise UsageError("--rank says where ranks are in the names of logs, and goes with --group rank.")
        return {}
    named = {path: homes.get(path, path) for path in paths}
    rank_of = ranks(list(dict.fromkeys(named.values())), rank, each=all(path in homes for path in paths))
    return {path: rank_of[name] for path, name in named.items()}


def _settle(directories: Sequence[Run], launches: Launches, read: runs.Reader) -> tuple[Launches, list[str]]:
    """The launches, with medians over the repetitions if of a single run directory; and notes of all directories."""
    notes = [note for run in directories for note in run.notes()]
    if len(directories) != 1:
        return launches, [*notes, *runs.between(directories, read)]
    launches, more = runs.settle(directories[0], launches, read)
    return launches, [*notes, *more, *filter(None, [runs.clock_note(directories[0])])]


def _expand(inputs: Sequence[str | Path]) -> tuple[list[Path], set[Path]]:
    """The files to load behind names and patterns, each once, in order; and those that were named and do not exist.

    Raises UsageError, LogError if there is nothing to read.
    """
    paths: list[Path] = []
    missing: set[Path] = set()
    for name in inputs:
        if str(name) == "":
            raise UsageError("One of the inputs has an empty name; say which log, or leave it out.")
        path = Path("/dev/stdin" if str(name) == "-" else name)
        exists = os.path.exists(path)  # noqa: PTH110 - Path.exists raises where a folder may not be looked into
        if not exists and glob.has_magic(str(name)):
            matches = sorted(Path(match) for match in glob.glob(str(name), recursive=True))
            if not matches:
                raise LogError(f"{name}: no file matches this pattern.")
            # A pipe that a pattern happens on may wait for ever; whoever means it names it.
            matches = [match for match in matches if not is_pipe(match)]
            paths += [match for match in matches if not os.path.isdir(match) or runs.is_run(match)]  # noqa: PTH112
        else:
            paths.append(path)
            if not exists:
                missing.add(path)
    # The resolved name of a pipe, or of a link to nothing, means nothing, and two may look alike.
    real = [os.path.exists(path) and not is_pipe(path) for path in paths]  # noqa: PTH110
    once = {Path(os.path.realpath(path)) if known else path: path for path, known in zip(paths, real, strict=True)}
    return list(once.values()), missing


def _read_all(
    sources: _Sources, read: Callable[[Path], Log], strict: bool, parts: str | None
) -> tuple[list[Log], list[str]]:
    """The logs that can be read, those of data frames too, and a warning for each that is left out.

    A log that is alone raises its error instead, and so does one that did not exist when it was named: a slip.
    """
    readable: list[Log] = []
    left_out: list[str] = []
    for path in sources.paths:
        try:
            readable.append(read(path))
        except LogError as err:
            if strict or len(sources.paths) == 1 or path in sources.missing:
                raise
            left_out.append(f"Left out: {err}")
    if sources.paths and not readable:
        first = left_out[0].removeprefix("Left out: ")
        raise LogError(f"None of the {len(sources.paths)} logs can be reported on. The first: {first}")
    if sources.frames:
        reader = profilers.module_of(lambda signs: signs.frames)
        if reader is None:
            raise UsageError("This eprof has no profiler that makes data frames; name the files of logs.")
        readable += [reader.of_frame(frame, parts) for frame in sources.frames]
    return readable, left_out


def _select(launches: Launches, wanted: Sequence[str]) -> tuple[Launches, list[str]]:
    """The launches that `wanted` selects, each a name or "regex:...", and a note on it. Raises LogError: none left."""
    if not wanted:
        return launches, []
    names = list(dict.fromkeys(launches.rows.kernel))
    chosen_by = selection(wanted, names)
    selected = np.array([chosen_by(name) for name in launches.rows.kernel], dtype=bool)
    if not selected.any():
        raise LogError(no_such_kernel(wanted, names))
    number = int(selected.sum())
    note = f"{number} of {len(selected)} kernels are selected by -k/--kernel-name; totals are of these only."
    return launches.chosen(selected), [note]


Load = Callable[..., Profile]  # `api.load` with the options of OLD or of NEW


def energies(inputs: Sequence[Any], load: Load, price: partial[Energy]) -> list[Energy]:
    """The priced profile of each repeat of a variant (OLD or NEW). inputs: names as `profiles` takes them, or profiles.

    price: `Profile.energy` with the variant's options. Raises MeterError: one metered energy for several repeats.
    """
    repeats: list[Energy] = []
    for given in inputs:
        if isinstance(given, Energy):
            repeats.append(given)
        elif isinstance(given, Profile):
            repeats.append(price(given))
        else:
            repeats += [price(profile) for profile in profiles(given, load)]
    if price.keywords.get("metered_j") is not None and len(repeats) > 1:
        raise MeterError(f"An energy was given for one run, and there are {len(repeats)} repeats, each with its own.")
    return repeats


def profiles(name: str | Path, load: Load) -> list[Profile]:
    """The repeats behind the name of a variant, a profile each.

    A file is one repeat. `A+B` are files of one run, joined (counters and a trace); so are all files of a directory. A
    pattern names repeats, one a match. A run directory holds as many repeats as `--repeat` made.
    Raises LogError if there is nothing to read.
    """
    path = Path(name)
    if not path.exists() and glob.has_magic(str(name)):
        matches = sorted(Path(match) for match in glob.glob(str(name), recursive=True))
        if not matches:
            raise LogError(f"{name}: no file matches this pattern.")
        return [profile for match in matches for profile in profiles(match, load)]
    if runs.is_run(path):
        return list(_repeats(runs.open_run(path), load))
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
        if not files:
            raise LogError(f"{name}: is a directory without logs.")
        return [load(*files)]
    parts = [Path(part) for part in str(name).split("+")]
    if not path.exists() and len(parts) > 1 and all(part.is_file() for part in parts):
        return [load(*parts)]
    profile = load(path)
    if profile.saved is not None:
        return list(_repeats_by_time(profile.saved, profile))
    return [profile]


def _repeats(run: Run, load: Load) -> Iterator[Profile]:
    """Yields a profile for each repetition in a run directory: its times, and counters that may be collected once."""
    numbers = sorted({number for kind in (TIME, COUNTERS) for number in run.files.get(kind, {})})
    if len(numbers) < 2:
        yield from _repeats_by_time(run, load(run.path))
        return
    for number in numbers:
        files = {
            kind: {number: repeats.get(number, repeats[min(repeats)])} for kind, repeats in run.files.items() if repeats
        }
        measurements = run.manifest.get("measurements", [])
        own = [measurement for measurement in measurements if measurement.get("number", number) == number]
        manifest = {**run.manifest, "measurements": own} if run.manifest else {}
        repeat = Run(run.path, manifest, files, run.whole)
        profile = load(*repeat.main_logs())
        yield replace(profile, run=repeat, priced_as=repeat, title=run.command or profile.title)


def _repeats_by_time(run: Run, profile: Profile) -> Iterator[Profile]:
    """Yields a profile for each repetition of a run that was counted once, its times scaled to the repetition's.

    With fewer than two repetitions whose times are known, the profile as it is.
    """
    repeats_s = run.repeats_s
    if len(repeats_s) < 2:
        yield profile
        return
    for repeat_s in repeats_s:
        yield profile.slowed(repeat_s / runs.median(repeats_s))
