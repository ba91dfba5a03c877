"""An amount that is known exactly, or to lie between two bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Amount:
    """low <= the truth <= high, and the best that can be said of it. `estimated`: that is more than the lower bound.

    Exact if low equals high. A sum over launches of which some have no value is Amount(sum, sum, inf).
    """

    low: float
    guess: float
    high: float
    estimated: bool = False

    @property
    def is_exact(self) -> bool:
        return self.low == self.high and not self.estimated

    def __add__(self, other: Amount | float) -> Amount:
        other = amount(other)
        either = self.estimated or other.estimated
        return Amount(self.low + other.low, self.guess + other.guess, self.high + other.high, either)

    def __sub__(self, other: Amount | float) -> Amount:
        other = amount(other)
        either = self.estimated or other.estimated
        return Amount(self.low - other.high, self.guess - other.guess, self.high - other.low, either)

    def __mul__(self, other: Amount | float) -> Amount:
        """For amounts that are not negative."""
        other = amount(other)
        either = self.estimated or other.estimated
        ends = [0.0 if 0 in pair else math.prod(pair) for pair in ((self.low, other.low), (self.high, other.high))]
        return Amount(ends[0], self.guess * other.guess, ends[1], either)

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other: float) -> Amount:
        return amount(other) - self

    def __truediv__(self, other: float) -> Amount:
        return Amount(self.low / other, self.guess / other, self.high / other, self.estimated)

    def floor(self) -> Amount:
        """What cannot be negative: a difference of rounded or separately measured numbers may be a little below 0."""
        clamped = self.guess < 0
        return Amount(max(self.low, 0), max(self.guess, 0), max(self.high, 0), self.estimated or clamped)

    def roughly(self) -> Amount:
        """The same as an estimate: what it rests on may not hold."""
        return Amount(self.low, self.guess, self.high, True)


def amount(value: Amount | float) -> Amount:
    return value if isinstance(value, Amount) else Amount(value, value, value)


def at_least(value: float) -> Amount:
    return Amount(value, value, math.inf)
