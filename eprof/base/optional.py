"""Arithmetic with numbers that may not be known: None in, None out; and values by their keys."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

T = TypeVar("T")
U = TypeVar("U")
P = ParamSpec("P")


def mapped(function: Callable[Concatenate[T, P], U], value: T | None, *args: P.args, **others: P.kwargs) -> U | None:
    """`function(value, *args, **others)`; None where `value` is None."""
    return None if value is None else function(value, *args, **others)


def either(value: T | None, otherwise: U) -> T | U:
    """`value`, or `otherwise` where it is None."""
    return otherwise if value is None else value


def ratio(above: float | None, below: float | None) -> float | None:
    """`above / below`; None where one of them is None, or `below` is 0."""
    return above / below if above is not None and below else None


def less(number: float | None, subtracted: float | None) -> float | None:
    """`number - subtracted`; None where one of them is None."""
    return number - subtracted if number is not None and subtracted is not None else None


def growth(now: float | None, before: float | None) -> float | None:
    """`now / before - 1`, growth as a share; None where one of them is None, or `before` is 0."""
    return less(ratio(now, before), 1)


def only(values: Collection[T]) -> T | None:
    """The value of a collection that has exactly one, else None."""
    return next(iter(values)) if len(values) == 1 else None


def added(sums: dict[T, Any], key: T, more: Any) -> None:
    """Add `more` to `sums[key]`, in place; a new key gets `more` as its sum."""
    sums[key] = more + sums[key] if key in sums else more


def gathered(pairs: Iterable[tuple[T, U]]) -> dict[T, list[U]]:
    """The values of (key, value) pairs as a list for each key; keys in the order in which they first come."""
    values: dict[T, list[U]] = {}
    for key, value in pairs:
        values.setdefault(key, []).append(value)
    return values


def summed(pairs: Iterable[tuple[T, float]]) -> dict[T, float]:
    """The sum of the values of (key, value) pairs for each key; keys in the order in which they first come."""
    return {key: sum(values) for key, values in gathered(pairs).items()}


def median_of_known(values: Sequence[float | None]) -> float | None:
    """The median of values that are not None; None where there are none."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return None
    half = len(known) // 2
    return (known[half] + known[-half - 1]) / 2


def relative_range(values: Sequence[float | None]) -> float | None:
    """(largest - smallest) / median of values that are not None; None where there are none."""
    known = [value for value in values if value is not None]
    return ratio(max(known, default=0.0) - min(known, default=0.0), median_of_known(known))
