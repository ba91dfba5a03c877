"""Marks that all numbers of a document share: they are said once, and beside numbers stands only what differs."""

from collections.abc import Callable
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from msgspec import Struct, UnsetType
from msgspec.structs import fields, replace

from eprof.profile import schema

Document = TypeVar("Document", bound=Struct)
_PLAIN = {str, int, float, bool, NoneType, UnsetType}


def shared(document: schema.Profile) -> set[str]:
    """The marks that all numbers share: every known energy of the document has them, priced."""
    energies = [kernel.energy_marks.total for kernel in document.kernels if kernel.energy_j.total]
    energies += [count.marks for count in document.counts.values() if count.energy_j]
    if not energies:
        return set()
    of_counting = {mark for count in document.counts.values() for way in count.how for mark in way.marks}
    common = set.intersection(*map(set, energies))
    return common - (of_counting - {"simulated"}) - {"missing"}


def without(document: Document, marks: set[str]) -> Document:
    """The document without some marks. Times keep theirs, which say whether they come from a model."""

    @cache
    def rest(words: tuple[str, ...]) -> list[str]:
        return [word for word in words if word not in marks]

    kept: Document = _with_marks(document, rest) if marks else document
    return kept


def _with_marks(value: Any, rest: Callable[[tuple[str, ...]], list[str]], are_marks: bool = False) -> Any:
    """The same with what `rest` leaves of each list of marks."""
    if type(value) is schema.Count:  # 5,000 kernels have 100,000
        return replace(value, marks=rest(tuple(value.marks)))
    if isinstance(value, Struct):
        changed = {
            name: _with_marks(getattr(value, name), rest, are_marks or holds_marks)
            for name, holds_marks in _containers(type(value))
        }
        return replace(value, **changed)
    if isinstance(value, dict):
        return {name: _with_marks(item, rest, are_marks) for name, item in value.items()}
    if not isinstance(value, list):
        return value
    return rest(tuple(value)) if are_marks else [_with_marks(item, rest) for item in value]


@cache
def _containers(kind: type[Struct]) -> list[tuple[str, bool]]:
    """The fields of a structure that are no plain values, and whether they hold marks."""
    return [
        (field.name, field.name.endswith("marks") and field.name != "time_marks")
        for field in fields(kind)
        if not _PLAIN.issuperset(_choices(field.type))
    ]


def _choices(kind: Any) -> tuple[Any, ...]:
    """The types of a union; else the type alone."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
