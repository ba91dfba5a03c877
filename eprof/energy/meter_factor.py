"""The metered total, split by counts: one factor on all prices and on constant power makes the model equal the meter.

    f (sum_k E_k + pi0 T_idle) = E_meter          T_idle = T_metered - sum_k T_k, 0 at least (docs/metered.md)

A cost table then gives only the shape of the split: how much one kernel takes beside another. The total is measured.
A kernel that would draw more than its board may stays at that limit, and the factor gives the others the rest.
"""

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base import units
from eprof.base.arrays import Floats, known_or_zero
from eprof.base.errors import MeterError, UsageError
from eprof.base.optional import less, mapped
from eprof.base.text import when
from eprof.base.vocabulary import Mark
from eprof.costs import Costs
from eprof.counts.counts import Counts
from eprof.energy.attribution import Limits, attribute, limits
from eprof.energy.uncertainty import amounts_of, prices_of

# Four GPUs, each priced with the shape of the other three, need 0.84 to 1.38 (docs/studies/power).
LEAST, MOST = 0.4, 2.5
# The only table of another CPU that comes with eprof is of one of 2009, measured with its board.
LEAST_OF_CPUS = 0.02
# Nine kernels of ten that a table has not seen are this factor off at most; a table that was fitted to their GPU says
# its own. It is the split, and not the level, that is hard to know (docs/metered.md).
WITHIN = 1.33
# The same of a split by time alone: the widest of four GPUs (docs/studies/power); and at a board's limit, where the
# clock gives way until every kernel draws the same, so that energy goes with time within the error of a sensor.
WITHIN_BY_TIME, WITHIN_AT_LIMIT = 1.57, 1.1
_AT_LIMIT = 0.97
ESTIMATED = "estimated"
_MOST_J = 1e15
# What is assumed of a table that was made for another GPU, before and after a meter gave the factor.
SAME, PROPORTIONAL = "the two cost the same", "the two cost the same but for one factor, which the meter gives"
_SENSOR = 0.1  # how far a sensor, or a board of the same kind, may be off


class Meter(Struct, frozen=True):
    """What a power meter saw of one run of the program. source: where the joules are from, in words.

    duration_s: from the program's start to its end; None: not known.
    """

    joules: float
    source: str
    duration_s: float | None = None


class Metered(Struct, frozen=True):
    """How a table was scaled to a meter. All energies in J; modelled_j: of kernels and idle, before the factor.

    idle_s: what the meter saw outside of kernels; None: not known, and taken for 0. idle_j: its constant energy, after
    the factor. within: nine kernels of ten are this factor from their true share at most. limit_w: of the board, where
    the meter saw it reached: kernels then have their shares of time. mean_w: what the meter saw on average.
    """

    meter: Meter
    factor: float
    modelled_j: float
    idle_s: float | None
    idle_j: float
    within: float = WITHIN
    limit_w: float | None = None
    mean_w: float = 0.0

    @property
    def kernels_j(self) -> float:
        """The kernels' part of the metered energy, in J."""
        return self.meter.joules - self.idle_j

    def by_time_j(self, time_s: Floats) -> Floats:
        """The J of each kernel if energy went with time alone, (n_kernels,)."""
        return np.asarray(self.kernels_j * time_s / time_s.sum())


def joules(text: str) -> float:
    """Read joules that a user gives: "812J", "812 mJ", "0.8kJ", "2Wh" or "812". Raises UsageError."""
    number = units.amount(text, units.ENERGY)
    if math.isnan(number):
        raise UsageError(f"--energy {text}: write a number above 0 with J, mJ, kJ or Wh, such as 812J.")
    return checked(number)


def checked(number: float) -> float:
    """The joules as they are, if a run can have taken so many. Raises UsageError."""
    if not 0 < number < _MOST_J:
        raise UsageError(
            f"--energy: {number:g} J cannot be the energy of a run; give more than 0 and less than {_MOST_J:g} J."
        )
    return number


def metered(
    counts: Counts,
    costs: Costs,
    meter: Meter,
    is_own: bool = False,
    limit_w: float | None = None,
    least: float = LEAST,
    most: float = MOST,
    most_w: float | None = None,
) -> Metered:
    """Find the factor on prices and constant power with which kernels and idle time add up to what a meter saw.

    is_own: the costs were made for the profiled GPU. limit_w: the power limit of its board in W, if it is known. least,
    most: the factors between which one is plausible. most_w: what the board may draw where partners or owners set a
    higher limit; None: no more than limit_w.
    Raises MeterError: times are not known, or the joules cannot be those of these kernels.
    """
    rows = counts.rows
    if not rows.is_timed.all():
        unknown = f"{rows.chosen(~rows.is_timed).n_kernels} of {rows.n_kernels} {counts.nouns.kernels}"
        raise MeterError(
            f"Metered energy cannot be split: the time of {unknown} is not known; give a trace along with the log, or "
            "--time KERNEL=TIME."
        )
    if not rows.time_s.sum() > 0:
        raise MeterError(f"Metered energy cannot be split: the {counts.nouns.kernels} take no time.")
    kernels_s = float(rows.time_s.sum())
    idle_s = mapped(max, less(meter.duration_s, kernels_s), 0.0)
    whole_s = kernels_s + (idle_s or 0.0)
    mean_w = meter.joules / whole_s
    if is_own and limit_w is None:
        limit_w = costs.peaks.power_limit_w
    most_w = most_w or limit_w
    if most_w is not None and mean_w > most_w * (1 + _SENSOR):
        raise _no_power(f"more than the {most_w:.4g} W that this board may draw", mean_w, meter, whole_s)
    if is_own:
        knows_constant = costs.basis != ESTIMATED and not costs.constant_marks & Mark.ASSUMED
        if knows_constant and mean_w < costs.constant_power_w * (1 - _SENSOR):
            bound = f"less than the {costs.constant_power_w:.4g} W that {costs.device} draws whatever it does"
            raise _no_power(bound, mean_w, meter, whole_s)

    kernels_j = known_or_zero(attribute(counts, costs).total_j)
    idle_j = costs.constant_power_w * (idle_s or 0.0)
    modelled_j = float(kernels_j.sum()) + idle_j
    if not least <= meter.joules / modelled_j <= most:
        raise MeterError(
            f"{_seen(meter)} are {meter.joules / modelled_j:.3g} times the {modelled_j:.4g} J that {costs.name} makes "
            f"of these {whole_s:.4g} s ({mean_w:.4g} W on average); plausible are {least:g} to {most:g}. "
            f"{what_to_check(meter)}"
        )
    factor = _factor(meter.joules, kernels_j, idle_j, limits(rows, np.full(len(rows), max(most_w or math.inf, mean_w))))
    scaling = Metered(meter, factor, modelled_j, idle_s, factor * idle_j, mean_w=mean_w)
    if limit_w is not None and mean_w >= _AT_LIMIT * limit_w:
        return replace(scaling, within=WITHIN_AT_LIMIT, limit_w=limit_w)
    return scaling


def factors(counts: Counts, replicas: Sequence[Costs], scaling: Metered, most: Limits) -> tuple[float, ...]:
    """For each replica of a table's prices the factor that scales it to the meter, so that all have the same total."""
    amounts = known_or_zero(amounts_of(counts))
    idle_s = scaling.idle_s or 0.0
    return tuple(
        _factor(scaling.meter.joules, amounts @ prices_of(costs), costs.constant_power_w * idle_s, most)
        for costs in replicas
    )


def _factor(metered_j: float, kernels_j: Floats, idle_j: float, most: Limits) -> float:
    """The factor f with which min(f E_k, most_k) of all kernels and f E_idle add up to what the meter saw."""
    is_held = np.zeros(len(kernels_j), dtype=bool)
    while True:
        left_j, rest_j = metered_j - float(most.kernel_j[is_held].sum()), float(kernels_j[~is_held].sum()) + idle_j
        factor = left_j / rest_j
        more = ~is_held & (factor * kernels_j > most.kernel_j)
        # The last one takes what is left: the meter saw it.
        if not more.any() or (is_held | more).all() and not idle_j:
            break
        is_held |= more
    if idle_j and np.minimum(factor * kernels_j, most.kernel_j).sum() > most.total_j:
        factor = (metered_j - most.total_j) / idle_j
    return factor


def _no_power(bound: str, mean_w: float, meter: Meter, whole_s: float) -> MeterError:
    return MeterError(f"{_seen(meter)} over {whole_s:.4g} s are {mean_w:.4g} W, {bound}. {what_to_check(meter)}")


def _seen(meter: Meter) -> str:
    return f"The {meter.joules:.4g} J of {meter.source}"


def what_to_check(meter: Meter) -> str:
    """A sentence on what to check where metered joules cannot be those of the kernels: their unit, other GPUs..."""
    idle = when(meter.duration_s is None, ", or idle time that no log tells")
    return (
        f"Check the unit of the energy, whether the meter saw other programs or GPUs{idle}, and whether the "
        "logs, the times and the cost table are of this GPU."
    )
