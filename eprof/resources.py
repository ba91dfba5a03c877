"""Where the cellar is: the data folders `counters`, `costs` and `reports`."""

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path


def folder(name: str) -> Traversable:
    """The data folder `name`: inside the package in a wheel, beside it in a checkout."""
    packed = files("eprof") / "data" / name
    return packed if packed.is_dir() else Path(__file__).parents[1] / name


def tree(start: Traversable, suffix: str) -> list[Traversable]:
    """All files below `start` whose names end in `suffix`, sorted by path."""
    found: list[Traversable] = []
    for entry in sorted(start.iterdir(), key=lambda one: one.name):
        if entry.is_dir():
            found += tree(entry, suffix)
        elif entry.name.endswith(suffix):
            found.append(entry)
    return found
