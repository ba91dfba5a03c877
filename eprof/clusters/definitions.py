"""The files of `costs/clusters/` and `counters/programs/`, found by name."""

from pathlib import Path

from eprof.base.errors import DefinitionError
from eprof.base.resources import folder, tree
from eprof.base.text import did_you_mean
from eprof.base.toml import Document

SHELVES = {"cluster": folder("costs") / "clusters", "program": folder("counters") / "programs"}


def find(name_or_path: str, noun: str) -> Document:
    """The definition of a cluster or a program (`noun`) by its name, or your file. Raises DefinitionError."""
    if name_or_path.endswith(".toml"):
        return Document.read(Path(name_or_path))
    known = [file.name.removesuffix(".toml") for file in tree(SHELVES[noun], ".toml")]
    if name_or_path not in known:
        meant = did_you_mean(name_or_path, known)
        raise DefinitionError(f"There is no {noun} `{name_or_path[:100]}`.{meant} There are {', '.join(known)}.")
    return Document.read(SHELVES[noun] / f"{name_or_path}.toml")
