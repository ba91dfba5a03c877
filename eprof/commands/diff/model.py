"""What the two-level model says of a change that trades work for traffic: the case, bounds of the greenup, and more.

The old variant does work W (flop) and moves traffic Q (B), the new one f W and Q/m. [T] 3.5; all intensities and
balances are in flop/B.

eta is the flop efficiency eps_flop/(eps_flop + pi0 tau_flop) ([R] II): with eta = 1 every equation here is the one for
pi0 = 0. [T] 3.5.10 prints a greenup's upper bound for case 1 that the model itself exceeds (it lowers m in one place
and raises it in another); the one here follows from [T] eq. 26 with f > 1 and f m I < B_tau, and docs/diff.md shows it.
"""

import math

import numpy as np
from msgspec.structs import replace

from eprof.base.arrays import Columns
from eprof.base.errors import CostError
from eprof.base.marks import Mark, names
from eprof.commands.diff.changes import WORDS, Side, combined
from eprof.commands.diff.schema import Bounds, Model
from eprof.profile.rooflines import Machine, flops_of, machine, main_precision, traffic_of

# If fewer of the flops than this are of one width, one balance cannot stand for all.
_ONE_WIDTH = 0.9
# Below this, a factor is 1: the bounds are those of a trade-off, f >= 1 and m >= 1.
_SAME = 1e-9
_SEVERAL_WIDTHS = "the flops are of several widths, and one balance does not stand for all"


class _MissingError(Exception):
    """What the model lacks, in words."""


def reading(old: Side, new: Side) -> Model:
    """The model's reading: the change of all kernels together, where work, traffic, peaks and prices are known."""
    try:
        return _reading(old, new)
    except _MissingError as err:
        return Model(case=None, missing=f"The model does not read this change: {err}.")


def _reading(old: Side, new: Side) -> Model:
    if old.costs is None or new.costs is None:
        raise _MissingError("no cost table says what a flop and a byte cost")
    if old.costs.name != new.costs.name or old.costs.setting != new.costs.setting:
        raise _MissingError("the two sides are priced differently, and the model compares two programs on one machine")
    tables = [Columns(tuple(WORDS), side.mean.number) for side in (old, new)]
    work = [float(flops_of(table).sum()) for table in tables]
    moved = [float(traffic_of(table).sum()) for table in tables]
    _require("flops", old, new, work)
    _require("DRAM bytes", old, new, moved)

    precision = main_precision(tables[0])
    if precision is None:
        raise _MissingError(_SEVERAL_WIDTHS)
    of_width = [float(np.nansum(flops_of(table, precision))) for table in tables]
    if any(part < _ONE_WIDTH * whole for part, whole in zip(of_width, work, strict=True)):
        raise _MissingError(_SEVERAL_WIDTHS)
    try:
        on = machine(old.costs, precision)
    except CostError as err:
        raise _MissingError(str(err).rstrip(".").partition(": no roofline")[0]) from err

    # All flops count as those of the one width; where there are others, that is an approximation.
    marks = on.marks | _marks(old) | _marks(new)
    if of_width != work:
        marks |= Mark.ESTIMATED
    model = assess((work[0], moved[0]), (work[1], moved[1]), on)
    return replace(model, marks=names(marks))


def _require(quantity: str, old: Side, new: Side, amounts: list[float]) -> None:
    """That both sides know an amount that the model reads, and that there is any."""
    for side, amount in zip((old, new), amounts, strict=True):
        if math.isnan(amount):
            raise _MissingError(f"the {quantity} of {side.label} are not known for every {side.nouns.kernel}")
        if amount == 0:
            raise _MissingError(f"{side.label} has no {quantity}")


def _marks(side: Side) -> Mark:
    """The marks of the counts of flops and DRAM bytes that the model reads."""
    columns = [column for column, word in enumerate(WORDS) if word.startswith(("fp32_", "fp64_", "fp16_", "dram_"))]
    read = [column for column in columns if (side.mean.number[:, column] != 0).any()]
    return Mark(combined(side.mean.counted[:, read]))


def assess(old: tuple[float, float], new: tuple[float, float], machine: Machine) -> Model:
    """Assess a change from one (work in flop, traffic in B) to another; all four are above 0."""
    f = new[0] / old[0]
    m = old[1] / new[1]
    intensity = old[0] / old[1]
    balance = machine.time_balance
    cases = {(True, True): 1, (True, False): 2, (False, False): 3}
    case = cases.get((intensity < balance, f * m * intensity < balance))
    is_tradeoff = f >= 1 - _SAME and m >= 1 - _SAME
    free, constant = (
        _bounds(f, m, intensity, balance, machine.energy_balance, eta, case if is_tradeoff else None)
        for eta in (1.0, machine.flop_efficiency)
    )
    return Model(
        case=case,
        missing=None,
        precision=machine.precision,
        work_factor=f,
        traffic_factor=m,
        old_intensity_flop_per_byte=intensity,
        new_intensity_flop_per_byte=f * m * intensity,
        time_balance=balance,
        energy_balance=machine.energy_balance,
        is_tradeoff=is_tradeoff,
        speedup=max(1.0, balance / intensity) / max(f, balance / (m * intensity)),
        without_constant_power=free,
        with_constant_power=constant,
        marks=names(machine.marks),
    )


def effective_balance(intensity: float, balance: float, energy_balance: float, eta: float) -> float:
    """Bhat(I) = eta B_eps + (1 - eta) max(0, B_tau - I) ([R] II)."""
    return eta * energy_balance + (1 - eta) * max(0.0, balance - intensity)


def _bounds(
    f: float, m: float, intensity: float, balance: float, energy_balance: float, eta: float, case: int | None
) -> Bounds:
    """The greenup ([T] eqs. 16, 26), its bounds in the case ([T] 3.5.4, 3.5.10 to 3.5.12), and the break-even f."""
    before = 1 + effective_balance(intensity, balance, energy_balance, eta) / intensity
    after = f + effective_balance(f * m * intensity, balance, energy_balance, eta) / (m * intensity)
    scaled = eta * energy_balance
    # Cases 1 and 2: I (1 + Bhat(I)/I) over B_tau + eta B_eps.
    edge = intensity * before / (balance + scaled)
    low, high = {
        1: (edge, before / (1 + scaled / balance)),
        2: (balance / (f * intensity) * edge, m * edge),
        3: (before / (f + scaled / intensity), before / (1 + scaled / (m * intensity))),
        None: (None, None),
    }[case]
    return Bounds(before / after, low, high, _break_even(m, intensity, balance, scaled, eta, before))


def _break_even(m: float, intensity: float, balance: float, scaled: float, eta: float, before: float) -> float:
    """The f with f + Bhat(f m I)/(m I) = 1 + Bhat(I)/I: below it the change saves energy ([T] eqs. 17, 27).

    The left side rises with f, at slope 1 where the new variant is compute bound and eta where it is memory bound.
    """
    compute_bound = before - scaled / (m * intensity)
    if compute_bound * m * intensity >= balance:
        return compute_bound
    return (before - (scaled + (1 - eta) * balance) / (m * intensity)) / eta
