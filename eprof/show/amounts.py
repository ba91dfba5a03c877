"""`Amount`, a number with its marks (estimated, missing...): sums and ratios of amounts, marks as signs and as HTML.

What is said once for all of a document stands no more beside each number: `without` takes such marks out.
"""

from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from types import NoneType, UnionType
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin

from markupsafe import Markup, escape
from msgspec import Struct, UnsetType
from msgspec.structs import fields, replace

from eprof.base.optional import mapped
from eprof.base.vocabulary import Mark, mark_names, marks_of_names
from eprof.profile import schema
from eprof.show.numbers import NARROW, percent, quantity

# Plain numbers: 5,000 kernels join marks half a million times, and flags take ten times as long.
MISSING, ESTIMATED, SIMULATED, ASSUMED = (int(mark) for mark in Mark)
# A sum that lacks something has "≥" in front, as on a terminal; what else rests on it, a share of it say, has "!".
LETTERS = {MISSING: "!", ESTIMATED: "~", SIMULATED: "s", ASSUMED: "?"}
MEANINGS = {
    MISSING: "missing: something could not be counted or priced",
    ESTIMATED: "estimated: an approximate formula stands behind it",
    SIMULATED: "simulated: counted in a simulation, of the device or of its caches",
    ASSUMED: "assumed: rests on a choice that its source leaves open",
}
AT_LEAST = f"≥{NARROW}"
UNKNOWN = "–"


class Amount(NamedTuple):
    """A number with its marks. `value` is None where it is not known."""

    value: float | None
    marks: int = 0

    @property
    def or_zero(self) -> float:
        """The number, or 0 where it is not known."""
        return self.value or 0.0

    @property
    def lower(self) -> bool:
        """Whether the amount is known, but only as a lower bound."""
        return self.value is not None and bool(self.marks & MISSING)


@lru_cache
def _bits(words: tuple[str, ...]) -> int:
    return int(marks_of_names(list(words)))


def bits(words: Iterable[str]) -> int:
    """Marks in words as one integer of mark bits; remembered, because 5,000 kernels have 100,000 of them."""
    return _bits(tuple(words))


def total(amounts: Iterable[Amount]) -> Amount:
    """The sum of known amounts with the marks of all, MISSING among them if one is unknown; value None if all are."""
    marks = 0
    value = None
    for amount in amounts:
        marks |= amount.marks
        if amount.value is None:
            marks |= MISSING
        else:
            value = (value or 0.0) + amount.value
    return Amount(value, marks)


def ratio(above: Amount, below: Amount) -> Amount:
    """One amount over another, with the marks of both; None where either is not known or the lower one is 0."""
    marks = above.marks | below.marks
    if above.value is None or not below.value:
        return Amount(None, marks)
    return Amount(above.value / below.value, marks)


def signs(marks: int) -> str:
    """The signs of marks, one letter each: "~?"."""
    return "".join(letter for mark, letter in LETTERS.items() if marks & mark)


def letters(marks: int) -> Markup:
    """The signs of marks as raised HTML; empty without any."""
    if not marks:
        return Markup("")
    return Markup('<sup title="{}">{}</sup>').format(", ".join(mark_names(marks)), signs(marks))


def written(text: str | None, marks: int = 0, *, bound: bool = True) -> Markup:
    """HTML of a number as text (None: not known) with its marks. bound: a sum, which MISSING makes a lower bound."""
    if text is None:
        why = ", ".join(mark_names(marks)) or "not known"
        return Markup('<span class="unknown" title="{}">{}</span>').format(why, UNKNOWN)
    if bound and marks & MISSING:
        return Markup('<span title="at least">{}</span>{}{}').format(AT_LEAST, text, letters(marks & ~MISSING))
    return escape(text) + letters(marks)


def quantity_of(amount: Amount, unit: str) -> Markup:
    """An amount with its unit and its marks, as HTML."""
    return written(mapped(quantity, amount.value, unit), amount.marks)


def share_of(part: Amount, whole: Amount) -> Markup:
    """One amount as a share of another, in per cent with its marks, as HTML."""
    share = ratio(part, whole)
    return written(mapped(percent, share.value), share.marks, bound=False)


def pills(marks: int, *, leave_out: int = 0) -> Markup:
    """Marks as words in small frames, as HTML; those of `leave_out` are not shown."""
    return Markup(" ").join(
        Markup('<span class="pill" title="{}">{}</span>').format(MEANINGS[Mark[name.upper()]], name)
        for name in mark_names(marks & ~leave_out)
    )


def legend(marks: int) -> list[tuple[str, str]]:
    """(sign, meaning) of each mark, for the line that explains them."""
    lines = [(letter, MEANINGS[mark]) for mark, letter in LETTERS.items() if marks & mark & ~MISSING]
    if not marks & MISSING:
        return lines
    return [
        ("≥", "at least this much: something could not be counted or priced"),
        ("!", "a share of what is known, not of all"),
        *lines,
    ]


Document = TypeVar("Document", bound=Struct)
_PLAIN = {str, int, float, bool, NoneType, UnsetType}


def without(document: Document, marks: set[str]) -> Document:
    """The document without these marks on its numbers. Times keep theirs, which say whether a model made them."""

    @cache
    def rest(words: tuple[str, ...]) -> list[str]:
        return [word for word in words if word not in marks]

    kept: Document = with_marks(document, rest) if marks else document
    return kept


def with_marks(value: Any, rest: Callable[[tuple[str, ...]], list[str]], are_marks: bool = False) -> Any:
    """A document, or a part of one, with each list of marks in it replaced by what `rest` makes of it."""
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
    """(name, whether it holds marks) of each field of a document's structure that may hold lists or structures."""
    return [
        (field.name, field.name.endswith("marks") and field.name != "time_marks")
        for field in fields(kind)
        if not _PLAIN.issuperset(_choices(field.type))
    ]


def _choices(kind: Any) -> tuple[Any, ...]:
    """The types of a union; else the type alone."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
