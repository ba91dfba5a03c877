"""The files of `costs/clusters/` and `counters/programs/`, found by name."""

from importlib.resources.abc import Traversable
from pathlib import Path

from eprof.base.errors import DefinitionError
from eprof.base.resources import tree
from eprof.base.text import did_you_mean
from eprof.base.toml import Document


def names(shelf: Traversable) -> list[str]:
    """The names of the definitions (clusters, programs) in a folder, sorted."""
    return [file.name.removesuffix(".toml") for file in tree(shelf, ".toml")]


def find(name_or_path: str, shelf: Traversable, noun: str) -> Document:
    """The definition (cluster, program) of a folder by its name, or one of yours (`.toml`).

    Raises DefinitionError. noun: what the files are.
    """
    if name_or_path.endswith(".toml"):
        return Document.read(Path(name_or_path))
    known = names(shelf)
    if name_or_path not in known:
        meant = did_you_mean(name_or_path, known)
        raise DefinitionError(f"There is no {noun} `{name_or_path[:100]}`.{meant} There are {', '.join(known)}.")
    return Document.read(shelf / f"{name_or_path}.toml")
