"""Counter definitions: the way to the one for a profiler and a GPU, by capability, by name, or by a log's counters.

`definition.py` has what a definition says, `loading.py` reads and checks the files `counters/**/*.toml`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eprof.base import cpus, gpus, resources
from eprof.base.errors import DefinitionError
from eprof.base.gpus import may_be_same
from eprof.base.text import did_you_mean
from eprof.base.toml import Document
from eprof.counts.definition import ANY, SM_COUNT, Definition
from eprof.counts.definition import SIMULATED as SIMULATED
from eprof.counts.loading import applies_to, load, numbered, read

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_DATA = "caches collect descriptions devices events labels libraries messages mnemonics numbers tables uprof"
_NOT_DEFINITIONS = ("cpu", "dcgm", "measurements", "meters", "programs", *(f"{name}.toml" for name in _DATA.split()))
_PROFILERS = ("nvprof", "ncu")


def definitions(extra: Path | None = None) -> list[Definition]:
    """All counter definitions: those in `extra` (a file or folder) first, then the built-in ones.

    Raises DefinitionError.
    """
    if extra is None:
        return [*_builtin()]
    if extra.is_dir():
        return [*map(load, sorted(extra.rglob("*.toml"))), *_builtin()]
    if not extra.exists():
        raise DefinitionError(f"{extra}: no such file or folder of counter definitions.")
    return [load(extra), *_builtin()]


@cache
def _builtin(profiler: str | None = None) -> tuple[Definition, ...]:
    loaded = tuple(_load_once(place) for place in definition_files(profiler))
    label_of: dict[tuple[str, str], str] = {}
    for definition in loaded:
        for capability in definition.capabilities:
            first = label_of.setdefault((definition.profiler, capability), definition.label)
            if first != definition.label:
                raise DefinitionError(
                    f"{definition.label}:1: {definition.profiler} {capability} is already defined in {first}."
                )
    return loaded


_LOADED: dict[str, Definition] = {}


def _load_once(place: Traversable) -> Definition:
    if str(place) not in _LOADED:
        _LOADED[str(place)] = load(place)
    return _LOADED[str(place)]


@cache
def _places(profiler: str) -> dict[str, Traversable]:
    """Capability -> the file of the profiler's definition for it, not yet loaded, as to check all takes a while."""
    places: dict[str, Traversable] = {}
    for place in definition_files(profiler):
        _, capabilities, _ = applies_to(read(place))
        places = dict.fromkeys(capabilities, place) | places
    return places


@cache
def names_in_use(profiler: str) -> frozenset[str]:
    """Every counter that a file for this profiler names: what a reader keeps of a log. Nothing is checked here."""
    home = resources.folder("counters")
    waiting = [place for place in resources.tree(home / profiler, ".toml") if place.name not in _NOT_DEFINITIONS]
    places = set(map(str, waiting))
    names: set[str] = set()
    while waiting:
        data = read(waiting.pop()).data
        for extended in _each(data.get("extends", [])):
            place = home.joinpath(*extended.split("/"))
            if str(place) not in places and place.is_file():
                places.add(str(place))
                waiting.append(place)
        for value in data.get("counter", {}).values():
            entry = value if isinstance(value, dict) else {"name": value}
            for name in (*_each(entry.get("name", [])), *_each(entry.get("slices", []))):
                names.update(numbered(name))
        if any(told.keys() & {"multiprocessors", "peak"} for told in data.get("told", {}).values()):
            names.add(SM_COUNT)
    return frozenset(names)


def _each(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else value


def definition_files(profiler: str | None = None) -> list[Traversable]:
    """The built-in definition files (of a profiler), without the parts that they extend and the lists beside them."""
    folders = [folder for folder in resources.folder("counters").iterdir() if folder.is_dir()]
    folders = [folder for folder in folders if profiler in (None, folder.name)]
    return [
        file
        # As profilers came: the first is meant by `eprof counters 7.0`.
        for folder in sorted(folders, key=lambda place: (*(place.name != first for first in _PROFILERS), place.name))
        if folder.name not in _NOT_DEFINITIONS
        for file in sorted(folder.iterdir(), key=str)
        if file.name.endswith(".toml") and file.name not in _NOT_DEFINITIONS
    ]


def find(profiler: str, capability: str, extra: Path | None = None) -> Definition:
    """Find the counter definition for a profiler and compute capability ("3.5"), `extra` files before built-in ones.

    Raises DefinitionError, naming the known ones.
    """
    if extra is None and capability in _places(profiler):
        return _load_once(_places(profiler)[capability])
    known = [definition for definition in definitions(extra) if definition.profiler == profiler]
    for definition in known:
        if capability in definition.capabilities:
            return definition
    reason = f"no definition is for `{profiler}`"
    if known:
        listed = [each for definition in known for each in definition.capabilities]
        reason = f"definitions exist for {', '.join(listed)}"
    raise DefinitionError(
        f"No counter definition for {profiler} on compute capability {capability or '(unknown)'}; {reason}. "
        "docs/counters.md tells how to write one."
    )


def everywhere(profiler: str) -> str | None:
    """The capability "simulated" or "any", where a definition of the profiler is for that; None: it has neither."""
    return next((word for word in (SIMULATED, ANY) if word in _places(profiler)), None)


def named(name: str, extra: Path | None = None) -> Definition:
    """The counter definition called `name` ("nvprof/kepler-3.5"), of a capability ("3.5") or of a GPU (its name).

    What ends in `.toml` is a file of yours. Raises DefinitionError, naming the known ones.
    """
    if name.endswith(".toml"):
        return load(Path(name))
    known = definitions(extra)
    for definition in known:
        short_name = definition.name.rpartition("/")[2]
        if name in (definition.name, short_name, *definition.capabilities):
            return definition
    capabilities = capability_of(name)
    if len(capabilities) == 1:
        return named(capabilities[0], extra)
    names = [definition.name for definition in known]
    meant = did_you_mean(name, [*names, *(full_name.rpartition("/")[2] for full_name in names)])
    raise DefinitionError(f"No counter definition `{name}`.{meant} Known: {', '.join(names)}.")


def capability_of(device_name: str) -> tuple[str, ...]:
    """The compute capabilities that a GPU of this name may have, as far as known; several where names were reused.

    Of a CPU, its microarchitecture.
    """
    return gpus.capabilities(device_name) or tuple(filter(None, [cpus.microarchitecture(device_name)]))


def capabilities_like(device_name: str) -> frozenset[str]:
    """The capabilities that a GPU may have by a name as people write it: "V100", "GTX 1080 Ti". Empty: not known."""
    exact = capability_of(device_name)
    if exact:
        return frozenset(exact)
    known = gpus.capabilities_by_name()
    return frozenset().union(*(known[name] for name in known if may_be_same(name, device_name)))


def guess_capability(counter_names: Iterable[str], profiler: str) -> tuple[str, ...]:
    """The capabilities whose definitions know most of these counters: several if equally many; () if none knows any."""
    present = set(counter_names)
    scores = {each: len(each.profiler_names & present) for each in _builtin(profiler)}
    best = max(scores.values(), default=0)
    if best == 0:
        return ()
    guesses = [each for definition in scores if scores[definition] == best for each in definition.capabilities]
    return tuple(sorted(guesses, key=lambda each: (len(each) * each[0].isdigit(), each)))


@cache
def descriptions() -> dict[str, str]:
    """Metric description -> metric name: old wide traces are headed by descriptions."""
    document = Document.read(resources.folder("counters") / "nvprof" / "descriptions.toml")
    return {str(text): str(name) for text, name in document.data["description"].items()}
