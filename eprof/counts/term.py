"""Parts of formulas of counters: values, their size, and on which side of the truth they may lie.

A count that lacks launches is a lower bound. What it is subtracted from is then an upper bound, and a difference of two
lower bounds is no bound at all. `Term` carries this through a formula, beside the values.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from eprof.base.arrays import Bools, Floats


class Term(Struct, frozen=True, eq=False):
    """A part of a formula for each kernel, all arrays (n_kernels,). Factors are taken to be 0 or more, as counters are.

    size: the value if every difference were a sum; how far a result of 0 may be from it tells rounding from
    contradiction. low: the truth may be larger. high: the truth may be smaller. Both: the value says nothing.
    """

    values: Floats
    size: Floats
    low: Bools
    high: Bools

    @classmethod
    def of(cls, values: Floats, low: Bools, high: Bools) -> Term:
        """A term of a formula: a counter, or another quantity that was worked out before."""
        return cls(values, np.abs(values), low, high)

    def __add__(self, other: Term | float) -> Term:
        """The sum: a lower bound if a part is one, an upper bound if a part is one."""
        other = self._same(other)
        return Term(self.values + other.values, self.size + other.size, self.low | other.low, self.high | other.high)

    def __sub__(self, other: Term | float) -> Term:
        """The difference: what is subtracted counts as a bound of the other side."""
        other = self._same(other)
        return Term(self.values - other.values, self.size + other.size, self.low | other.high, self.high | other.low)

    def __mul__(self, other: Term | float) -> Term:
        """The product of parts that are not negative: a bound of the side that a part is one of."""
        other = self._same(other)
        return Term(self.values * other.values, self.size * other.size, self.low | other.low, self.high | other.high)

    def __truediv__(self, other: Term | float) -> Term:
        """The quotient: the divisor counts as a bound of the other side."""
        other = self._same(other)
        size = self.size / np.abs(other.values)
        return Term(self.values / other.values, size, self.low | other.high, self.high | other.low)

    __radd__, __rmul__ = __add__, __mul__

    def __array_ufunc__(self, choose: np.ufunc, method: str, *terms: Term | float) -> Term:
        """The smaller or the larger of two parts (numpy's minimum and maximum): bounds of a side stay on it."""
        left, right = map(self._same, terms)
        size = np.maximum(left.size, right.size)
        return Term(choose(left.values, right.values), size, left.low | right.low, left.high | right.high)

    def __rsub__(self, number: float) -> Term:
        """A number less this part."""
        return self._same(number) - self

    def __rtruediv__(self, number: float) -> Term:
        """A number divided by this part."""
        return self._same(number) / self

    def _same(self, other: Term | float) -> Term:
        """A number of the formula as a term, which is exact; of one element, for all kernels."""
        if isinstance(other, Term):
            return other
        exact = np.zeros(1, dtype=np.bool_)
        return Term.of(np.full(1, float(other)), exact, exact)
