"""Marks that all numbers of a document share: they are said once, and beside numbers stands only what differs."""

from typing import Any, TypeVar

import msgspec

from eprof.compare import schema as compare
from eprof.profile import schema

Document = TypeVar("Document", schema.Profile, compare.Document)


def shared(document: schema.Profile) -> set[str]:
    """The marks that all numbers share: every known energy of the document has them, priced."""
    energies = [kernel.energy_marks.total for kernel in document.kernels if kernel.energy_j.total]
    energies += [count.marks for count in document.counts.values() if count.energy_j]
    if not energies:
        return set()
    of_counting = {mark for count in document.counts.values() for way in count.how for mark in way.marks}
    common = set.intersection(*map(set, energies))
    return common - (of_counting - {"simulated"}) - {"missing"}


def shared_by_changes(document: compare.Document) -> set[str]:
    """The marks that all numbers of a difference share: every part that changes the energy has them."""
    parts = [set(part.marks) for kernel in document.kernels for part in kernel.parts if part.change_j]
    return set.intersection(*parts) - {"missing"} if parts else set()


def without(document: Document, marks: set[str]) -> Document:
    """The document without the marks that all its numbers share.

    Times keep theirs, which say whether they come from a model.
    """
    if not marks:
        return document
    return msgspec.convert(_without(msgspec.to_builtins(document), marks), type(document))


def _without(value: Any, marks: set[str], key: str = "") -> Any:
    if isinstance(value, dict):
        inside = key if key.endswith("marks") else ""
        return {name: _without(item, marks, inside or name) for name, item in value.items()}
    if not isinstance(value, list):
        return value
    if key.endswith("marks") and key != "time_marks":
        return [mark for mark in value if mark not in marks]
    return [_without(item, marks) for item in value]
