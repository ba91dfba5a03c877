"""The profilers, a folder each: signs of its logs (`__init__.py`), how it is started (`collector.py`), its `reader.py`.

They are found by their folders: a new profiler is a new folder here, and its files in `counters/`. A profiler that
leaves no logs to recognise is its `__init__.py` alone.
"""

import importlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from eprof.base.errors import CollectError

if TYPE_CHECKING:
    from eprof.base.signs import Signs
    from eprof.collect.collector import Collector


def names() -> list[str]:
    """The names of the profilers that `eprof run` can start, sorted: folders with a collector, or without a reader."""
    folders = (file.parent for file in Path(__path__[0]).glob("*/__init__.py"))
    return sorted(folder.name for folder in folders if _has(folder, "collector") or not _has(folder, "reader"))


@cache
def signs() -> "dict[str, Signs]":
    """Profiler -> the `Signs` by which its logs are recognised; without profilers that write no logs."""
    folders = sorted(file.parent.name for file in Path(__path__[0]).glob("*/reader.py"))
    return {folder: importlib.import_module(f"{__name__}.{folder}").SIGNS for folder in folders}


def _has(folder: Path, module: str) -> bool:
    return (folder / f"{module}.py").is_file()


def signs_of(profiler: str) -> "Signs":
    """The `Signs` of a profiler's logs, by its folder's name; empty ones for a profiler without a reader."""
    from eprof.base.signs import Signs

    return signs().get(profiler) or Signs()


def collectors() -> "list[Collector]":
    """Every collector that comes with eprof, the preferred ones first."""
    return sorted(map(collector, names()), key=lambda collector: collector.rank)


@cache
def unions() -> frozenset[str]:
    """The kinds of tables that have the counters of all their runs (`Signs.unions`), of all profilers."""
    return frozenset().union(*(known.unions for known in signs().values()))


@cache
def timed() -> frozenset[str]:
    """The kinds of tables that have times only, of all profilers."""
    return frozenset().union(*(known.timed for known in signs().values()))


@cache
def aside() -> frozenset[str]:
    """The counters of all profilers that are times and clocks, and so in no list of what was counted."""
    return frozenset().union(*(known.aside() for known in signs().values()))


def module_of(field: Callable[["Signs"], str | None]) -> ModuleType | None:
    """The module that `field` of some profiler's signs names, imported from its folder; None if no signs name one."""
    for folder, known in signs().items():
        if (name := field(known)) is not None:
            return importlib.import_module(f"{__name__}.{folder}.{name}")
    return None


def collector(name: str) -> "Collector":
    """The collector of a profiler. Raises CollectError: this eprof has none of this name."""
    if name not in names():
        raise CollectError(f"This eprof has no profiler {name}.")
    place = f"{__name__}.{name}" + ".collector" * _has(Path(__path__[0], name), "collector")
    known: Collector = importlib.import_module(place).COLLECTOR
    return known
