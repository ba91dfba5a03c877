"""What a user names as a variant, OLD or NEW: logs, run directories, repeats of them -> profiles, one a repeat."""

import glob
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from eprof.base.errors import LogError, MeterError
from eprof.logs import runs
from eprof.logs.runs import COUNTERS, TIME, Run
from eprof.profile.profile import Energy, Profile

Load = Callable[..., Profile]  # `api.load` with the options of a side


def energies(inputs: Sequence[Any], load: Load, price: partial[Energy]) -> list[Energy]:
    """The repeats of a variant (OLD or NEW), priced.

    A profile or a priced profile among `inputs` is a repeat as it is.

    price: `Profile.energy` with the options of the side.
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
    return [load(path)]


def _repeats(run: Run, load: Load) -> Iterator[Profile]:
    """Each repetition of a variant's run directory: its time with the counters, which may be collected once."""
    numbers = sorted({number for kind in (TIME, COUNTERS) for number in run.files.get(kind, {})})
    if len(numbers) < 2:
        yield from _repeats_by_clock(run, load(run.path))
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


def _repeats_by_clock(run: Run, profile: Profile) -> Iterator[Profile]:
    """Each repetition of a run that was counted once, and whose kernels share the time of the program alone."""
    usual_s = run.program_s
    if TIME in run.files or not usual_s or len(run.alone_s) < 2:
        yield profile
        return
    for alone_s in run.alone_s:
        yield profile.slowed(alone_s / usual_s)
