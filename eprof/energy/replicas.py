"""How far energies are known: what the replicas of a cost table make of the same counts, and the error of the model.

Energy is linear in prices ([FMM] section II; docs/model.md), so that counts times the prices of all replicas is one
product of matrices. The model's own error was measured on kernels that the fit had not seen.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Floats, known_or_zero, middle_share
from eprof.base.optional import either
from eprof.base.vocabulary import CONSTANT, COUNTS, PRICED
from eprof.costs import Costs, CostTable
from eprof.counts.counts import Counts

_FEWEST = 10  # replicas that percentiles can be taken of


class Replicas(Struct, frozen=True, eq=False, dict=True):
    """The prices of a cost table by each of its replicas.

    prices: (n_priced, n_replicas), in the order of `PRICED`: J an instruction or byte, W of constant power.
    share: the share of the replicas that lies in an interval. within: nine of ten kernels that the fit has not seen are
    this factor off at most; 1 where nobody measured that. apart: of the prices of another CPU, whose cores take so many
    times as much or as little. fits: how many replicas are the table's own, the first ones; 0: all.
    """

    prices: Floats
    share: float
    within: float = 1.0
    apart: float = 1.0
    fits: int = 0

    @property
    def number(self) -> int:
        """The number of replicas of the prices."""
        return len(self.prices.T)

    def joules(self, amounts: Floats) -> Floats:
        """Energy in J by each replica: (..., n_priced) counts and seconds -> (..., n_replicas).

        What is not known (NaN) adds nothing.
        """
        # einsum, as a product by BLAS ends the process where memory is short.
        return np.asarray(np.einsum("...w,wd->...d", known_or_zero(amounts), self.prices))

    def interval(self, joules: Floats, value_j: Floats | float, spread_j: Floats | float = 0.0) -> Floats:
        """The middle `share` of the replicas, stretched to hold the value: (..., n_replicas) -> (..., 2).

        spread_j: the energy that has the error of the model, as `independent` adds it up; the interval is at least as
        wide as `within` makes it.
        """
        low, high = np.moveaxis(middle(joules, value_j, self.share), -1, 0)
        below, above = spread_j * (1 - 1 / self.within), spread_j * (self.within - 1)
        return np.stack([np.minimum(low, value_j - below), np.maximum(high, value_j + above)], axis=-1)

    @cached_property
    def price_intervals(self) -> Floats:
        """The interval of each price over the table's own replicas, (n_priced, 2)."""
        own = self.prices[:, : self.fits or None]
        return middle_share(own, self.share).T

    def for_another(self, apart: float, constant_w: Sequence[float]) -> "Replicas":
        """More replicas, as for another CPU: prices of all, and divided and multiplied by `apart`, at each constant W.

        constant_w: what it may draw without work at least and at most.
        """
        made = []
        for power_w in (None, *constant_w):
            for factor in (1.0, 1 / apart, apart):
                prices = factor * self.prices
                prices[-1] = either(power_w, self.prices[-1])
                made.append(prices)
        return replace(self, prices=np.concatenate(made, axis=1), apart=apart, fits=self.number)


def replicas_of(table: CostTable, costs: Costs) -> Replicas | None:
    """The replicas of a table at the setting of `costs`; None where it has too few to tell."""
    replicas = table.replicas(costs.setting.clocks)
    if len(replicas) < _FEWEST:
        return None
    prices = np.stack([prices_of(costs) for costs in replicas], axis=-1)
    return Replicas(prices, table.interval_share, table.within)


def prices_of(costs: Costs) -> Floats:
    """The price of each of `PRICED` in J or W by one replica or table, (n_priced,); 0 without one."""
    pj = {word: charge.pj for word, charge in costs.charges.items()}
    return np.array([*(pj.get(word, 0.0) * 1e-12 for word in COUNTS), costs.constant_power_w])


def amounts_of(counts: Counts) -> Floats:
    """Counts and times as `Replicas.joules` takes them, (n_kernels, n_priced); NaN = not known."""
    amounts = counts.amounts.spread(PRICED)
    amounts[:, PRICED.index(CONSTANT)] = counts.rows.time_s
    return amounts


def places(words: Sequence[str]) -> list[int]:
    """The places of these words in `PRICED`, and so in the prices of `Replicas`."""
    return [PRICED.index(word) for word in words]


def independent(parts_j: Floats) -> float:
    """The J of a sum over kernels that the model's own error is a share of. parts_j: of each kernel, (n_kernels,).

    The errors of kernels are independent, so that they partly cancel: the root of the sum of squares (docs/model.md).
    """
    return float(np.linalg.norm(known_or_zero(parts_j)))


def middle(numbers: Floats, value: Floats | float, share: float) -> Floats:
    """[low, high] that holds the middle `share` of the replicas' numbers, and the value: (..., n) -> (..., 2).

    The value of a fit to all data may lie outside of what replicas make of it; an interval leaves it no room to.
    """
    low, high = middle_share(numbers, share)
    return np.stack([np.minimum(low, value), np.maximum(high, value)], axis=-1)
