"""What boards may draw: no kernel, and no device, takes more in its time than its power limit lets through.

Times and clocks are measured, so that prices give way: a kernel above its limit has all but its constant energy taken
by one factor, and so has a device, whose kernels then take what it may draw together. What a limit makes of a split is
asked here by whoever prices: reports, intervals in each replica, meters, what-if questions, `eprof tune`.
"""

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Bools, Columns, Floats, Ints, known_or_zero, numbers_of
from eprof.base.marks import ESTIMATED, Mark
from eprof.base.vocabulary import CONSTANT
from eprof.costs import Costs
from eprof.counts.counts import Counts
from eprof.energy.attribution import Split, attribute
from eprof.logs.log import KernelRows

_ACTS_IN_S = 0.01  # a power limit acts on launches of this length
# Times its limit that a board may draw for 100 us (PCI Express CEM 5.0; Intel, ATX 3.0 design guide).
_FOR_A_MOMENT = 3.0
_ROUNDING = 1e-9
_SCALED = 1e-7  # by how much a factor to a meter may be off where idle time takes next to nothing


class Limits(Struct, frozen=True, eq=False):
    """What the boards of some kernels may draw, and the times that this holds for; infinite where it is not known.

    time_s: of each kernel, (n_kernels,), NaN where it is not known in full. kernel_w: what its board may draw in
    launches as long as its own. device: the number of its device; is_in: whether its work falls into the time of that.
    device_w, device_s: (n_devices,), what each may draw for long, and how long its kernels took.
    """

    time_s: Floats
    kernel_w: Floats
    device: Ints
    is_in: Bools
    device_w: Floats
    device_s: Floats

    @property
    def kernel_j(self) -> Floats:
        """The most that each kernel can take, (n_kernels,), in J; no more than all of its device; NaN: not known."""
        return np.where(self.is_in, np.fmin(self.kernel_w * self.time_s, self._device_j[self.device]), np.nan)

    @property
    def total_j(self) -> float:
        """The most that all kernels together can take in J; NaN where some time is not known."""
        return float(self._device_j.sum()) if self.is_in.all() else np.nan

    @property
    def _device_j(self) -> Floats:
        return np.where(self.device_s > 0, self.device_w * np.where(self.device_s > 0, self.device_s, 1.0), np.inf)

    def factors(self, work_j: Floats, constant_w: Floats | float) -> Floats:
        """The factor, at most 1, on all but the constant energy of each kernel that keeps it within the limits.

        work_j: that energy by the prices, (n_kernels, ...), as is what is returned. constant_w: constant power, (...,).
        """
        work_j = known_or_zero(work_j)
        along = (-1, *(1,) * (work_j.ndim - 1))
        most_j = (self.kernel_w.reshape(along) - constant_w) * self.time_s.reshape(along)
        factors = _share(most_j, work_j)
        for number, (watts, seconds) in enumerate(zip(self.device_w, self.device_s, strict=True)):
            if not seconds > 0:
                continue
            own = self.is_in & (self.device == number)
            factors[own] *= _share((watts - constant_w) * seconds, (factors[own] * work_j[own]).sum(axis=0))
        return factors

    def slowed_s(self, work_j: Floats, constant_w: float, time_s: Floats) -> Floats:
        """Modelled times in s, (n_kernels,), long enough for this work below the limits; NaN stays."""
        work_j = known_or_zero(work_j)

        def needed(watts: Floats, joules: Floats, seconds: Floats) -> Floats:
            most_w = np.maximum(watts - constant_w, 0.0)
            with np.errstate(invalid="ignore"):
                is_short = (seconds > 0) & (joules > most_w * seconds * (1 + _ROUNDING))
            return np.where(is_short & (most_w > 0), joules / np.where(most_w > 0, most_w, 1.0), seconds)

        slowed_s = needed(self.kernel_w, work_j, time_s)
        for number, watts in enumerate(self.device_w):
            own = self.is_in & (self.device == number) & (time_s > 0)
            whole_s = slowed_s[own].sum()
            slowed_s[own] *= needed(watts, work_j[own].sum(), whole_s) / (whole_s or 1.0)
        return slowed_s

    def with_one_more(self, is_in: Bools) -> "Limits":
        """The limits of one device, with a row more for all kernels whose time is known only together."""
        kernel_w, device = np.append(self.kernel_w, np.inf), np.append(self.device, 0)
        return replace(self, kernel_w=kernel_w, device=device, is_in=is_in)


def limits(rows: KernelRows, board_w: Floats, total_s: float | None = None) -> Limits:
    """The limits of kernels whose boards may draw `board_w`, (n_kernels,), for long.

    total_s: the time of all of them, where it is known of them together only.
    """
    is_whole = rows.is_timed
    time_s = np.where(is_whole & (rows.time_s > 0), rows.time_s, np.nan)
    device = numbers_of(rows.device)
    number = int(device.max(initial=-1)) + 1
    device_w, device_s = np.full(number, np.inf), np.zeros(number)
    np.minimum.at(device_w, device, board_w)
    np.add.at(device_s, device, known_or_zero(time_s))
    if total_s is not None:
        is_whole, device_s = np.ones_like(is_whole), np.array([total_s])
    return Limits(time_s, board_w * times_limit(rows), device, is_whole, device_w, device_s)


def times_limit(rows: KernelRows) -> Floats:
    """How many times its limit a board may draw in launches as long as each kernel's in the mean, (n_kernels,)."""
    return np.where(rows.time_s / rows.launches >= _ACTS_IN_S, 1.0, _FOR_A_MOMENT)


def priced(counts: Counts, costs: Costs, limits: Limits) -> tuple[Split, Costs]:
    """Price counts as `attribute` does, within the power limits; and the costs. What a limit lowers becomes ESTIMATED.

    Constant power above a limit is of another board: it then has the share of the limit that the prices give it.
    """
    split, limit_w = attribute(counts, costs), float(limits.device_w.min(initial=np.inf))
    if costs.constant_power_w > limit_w * (1 + _SCALED):
        constant_j, work_j = (float(known_or_zero(joules).sum()) for joules in (split.constant_j, split.work_j))
        watts = limit_w * constant_j / (constant_j + work_j or 1.0)
        what = f"Constant power of {costs.constant_power_w:.4g} W is more than the {limit_w:.4g} W"
        notes = (*costs.notes, f"{what} that the board may draw: the costs are of another board.")
        marks = costs.constant_marks | Mark.ESTIMATED
        held = watts / costs.constant_power_w
        costs = replace(costs, constant_power_w=watts, constant_marks=marks, notes=notes, constant_held=held)
        split = attribute(counts, costs)
    factors = limits.factors(split.work_j, costs.constant_power_w)
    return split if (factors == 1).all() else given_way(split, factors), costs


def given_way(split: Split, factors: Floats) -> Split:
    """Multiply all but constant energy with `factors`, (n_kernels,), at most 1; what goes is added to `over_j`."""
    gives = np.where(factors < 1, ESTIMATED, 0)
    is_work = np.array([name != CONSTANT for name in split.joules.names])
    joules = split.joules.values * np.where(is_work, factors[:, np.newaxis], 1.0)
    marks = split.joule_marks.values | is_work * gives[:, np.newaxis]
    names = split.joules.names
    over_j = split.over_j + known_or_zero(split.work_j) * (1 - factors)
    return replace(split, joules=Columns(names, joules), joule_marks=Columns(names, marks), over_j=over_j)


def _share(most_j: Floats, work_j: Floats) -> Floats:
    """The factor, at most 1, that brings `work_j` below `most_j`; 1 where one of them is not known."""
    is_over = work_j > np.maximum(most_j, 0.0) * (1 + _ROUNDING)
    return np.where(is_over, np.maximum(most_j, 0.0) / np.where(is_over, work_j, 1.0), 1.0)
