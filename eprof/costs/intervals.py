"""How far a table's prices are known: its basis, its intervals, and the replicas of the prices that span them."""

from collections.abc import Mapping
from itertools import product

from msgspec import Struct, field
from msgspec.structs import replace

BASES: Mapping[str, str] = {
    "measured": "each price was measured by itself on this GPU",
    "fitted": "a regression of energy measured on this GPU or CPU",
    "published": "prices or measurements that others have published",
    "estimated": "nobody measured this GPU",
}
NEEDS_INTERVALS = ("published", "estimated")
CONSTANT_POWER = "constant_power"
REFIT_SHARE = 0.9
OF_REFITS = "90 % of the fits to programs drawn at random"
OF_DRAWS = "90 % of the prices that a GPU may have which nobody measured"
_STEPS = (-1.0, -0.5, 0.0, 0.5, 1.0)  # from all prices low to all high
_CONSTANT_STEPS = (-1.0, 0.0, 1.0)

Range = tuple[float, float]


class Intervals(Struct, frozen=True):
    """The range of each price and of constant power at one setting.

    prices_pj: price -> (low, high) in pJ. constant_w: in W. meaning: what spans them: "zero to random operands".
    core_v_fall: the least and the most that the core's voltage falls below the default setting's, as a factor on how
    much it does in the table.
    """

    prices_pj: Mapping[str, Range] = field(default_factory=dict)
    constant_w: Range | None = None
    meaning: str = ""
    core_v_fall: Range = (1.0, 1.0)

    @property
    def has_width(self) -> bool:
        """Whether any price can vary within its interval."""
        ranges = [*self.prices_pj.values(), self.core_v_fall, self.constant_w or (0.0, 0.0)]
        return any(high > low for low, high in ranges)

    def wider(self, factors: Mapping[str, float]) -> "Intervals":
        """The intervals with some ranges times and divided by a factor: by price, or `constant_power`."""
        prices = {name: _widened(range_, factors.get(name, 1.0)) for name, range_ in self.prices_pj.items()}
        constant = self.constant_w
        if constant is not None:
            constant = _widened(constant, factors.get(CONSTANT_POWER, 1.0))
        return replace(self, prices_pj=prices, constant_w=constant)

    def replicas(
        self, prices_pj: Mapping[str, float], constant_w: float
    ) -> list[tuple[dict[str, float], float, float]]:
        """Factors on the prices, on constant power and on the voltage's fall, that span the intervals.

        Operand data makes all prices low or high together, so they move as one, from low through the price to high;
        constant power moves on its own, and the voltage with it, for a chip that needs less of it leaks less. Counts
        times prices are piecewise linear in these moves, so the least and the greatest energy over the replicas are the
        ends of its interval; so it is for a difference of two energies at one setting.
        """
        if not self.has_width:
            return []
        constant = self.constant_w or (constant_w, constant_w)
        return [
            (
                {name: _factor(prices_pj[name], range_, step) for name, range_ in self.prices_pj.items()},
                _factor(constant_w, constant, constant_step),
                _factor(1.0, self.core_v_fall, -constant_step),
            )
            for step, constant_step in product(_STEPS, _CONSTANT_STEPS)
        ]


def _widened(range_: Range, factor: float) -> Range:
    low, high = range_
    return low / factor, high * factor


def _factor(value: float, range_: Range, step: float) -> float:
    """From an interval's low (step -1) through the value (0) to high (1), as a factor on the value."""
    if not value:
        return 1.0
    end = range_[0] if step < 0 else range_[1]
    return 1 + abs(step) * (end / value - 1)
