"""Arithmetic with numbers that may not be known: None in, None out; and values by their keys."""

from collections.abc import Callable, Collection, Iterable
from typing import Any, Concatenate, ParamSpec, TypeVar

T = TypeVar("T")
U = TypeVar("U")
P = ParamSpec("P")


def mapped(function: Callable[Concatenate[T, P], U], value: T | None, *args: P.args, **others: P.kwargs) -> U | None:
    """What a function makes of a value that may not be known, before its other arguments; None where it is not."""
    return None if value is None else function(value, *args, **others)


def either(value: T | None, otherwise: U) -> T | U:
    """A value that may not be known, or what stands for it where it is not."""
    return otherwise if value is None else value


def ratio(above: float | None, below: float | None) -> float | None:
    """A quotient of numbers that may not be known; None where it is not, or its divisor is 0."""
    return above / below if above is not None and below else None


def less(number: float | None, subtracted: float | None) -> float | None:
    """A difference of numbers that may not be known; None where it is not."""
    return number - subtracted if number is not None and subtracted is not None else None


def growth(now: float | None, before: float | None) -> float | None:
    """By how much a known number is larger, as a share of what it was; None where that is not known."""
    return None if now is None or not before else now / before - 1


def only(values: Collection[T]) -> T | None:
    """The only one of some values; None if there are several, or none."""
    return next(iter(values)) if len(values) == 1 else None


def added(sums: dict[T, Any], key: T, more: Any) -> None:
    """Add to the sum of a key, which may have none yet."""
    sums[key] = more + sums[key] if key in sums else more


def gathered(pairs: Iterable[tuple[T, U]]) -> dict[T, list[U]]:
    """The values of each key together; keys in the order in which they first come."""
    values: dict[T, list[U]] = {}
    for key, value in pairs:
        values.setdefault(key, []).append(value)
    return values
