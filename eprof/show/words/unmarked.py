"""Documents without marks: what is said once for all of a document stands no more beside each number."""

from collections.abc import Callable
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from msgspec import Struct, UnsetType
from msgspec.structs import fields, replace

from eprof.profile import schema

Document = TypeVar("Document", bound=Struct)
_PLAIN = {str, int, float, bool, NoneType, UnsetType}


def without(document: Document, marks: set[str]) -> Document:
    """The document without some marks. Times keep theirs, which say whether they come from a model."""

    @cache
    def rest(words: tuple[str, ...]) -> list[str]:
        return [word for word in words if word not in marks]

    kept: Document = with_marks(document, rest) if marks else document
    return kept


def with_marks(value: Any, rest: Callable[[tuple[str, ...]], list[str]], are_marks: bool = False) -> Any:
    """The value with each list of marks in it replaced by what `rest` makes of it."""
    if type(value) is schema.Count:  # 5,000 kernels have 100,000
        return replace(value, marks=rest(tuple(value.marks)))
    if isinstance(value, Struct):
        changed = {
            name: with_marks(getattr(value, name), rest, are_marks or holds_marks)
            for name, holds_marks in _containers(type(value))
        }
        return replace(value, **changed)
    if isinstance(value, dict):
        return {name: with_marks(item, rest, are_marks) for name, item in value.items()}
    if not isinstance(value, list):
        return value
    return rest(tuple(value)) if are_marks else [with_marks(item, rest) for item in value]


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
