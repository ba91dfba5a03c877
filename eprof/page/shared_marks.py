"""Marks that all numbers of a document share: a page says them once, and beside numbers only what differs."""

from typing import Any

import msgspec

from eprof.profile import schema


def shared(document: schema.Profile) -> set[str]:
    """The marks that every known energy of the document has; not those that some counts have before they are priced."""
    energies = [kernel.energy_marks.total for kernel in document.kernels if kernel.energy_j.total]
    energies += [count.marks for count in document.counts.values() if count.energy_j]
    if not energies:
        return set()
    of_counting = {mark for count in document.counts.values() for way in count.how for mark in way.marks}
    common = set.intersection(*map(set, energies))
    return common - (of_counting - {"simulated"}) - {"missing"}


def without(document: schema.Profile, marks: set[str]) -> schema.Profile:
    """The document without some marks. Times keep theirs, which say whether they come from a model."""
    return msgspec.convert(_without(msgspec.to_builtins(document), marks), schema.Profile) if marks else document


def _without(value: Any, marks: set[str], key: str = "") -> Any:
    if isinstance(value, dict):
        inside = key if key.endswith("marks") else ""
        return {name: _without(item, marks, inside or name) for name, item in value.items()}
    if not isinstance(value, list):
        return value
    if key.endswith("marks") and key != "time_marks":
        return [mark for mark in value if mark not in marks]
    return [_without(item, marks) for item in value]
