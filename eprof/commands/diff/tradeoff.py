"""What the two-level model says of a trade of work for traffic: the case, bounds of the greenup, how much work pays.

The old variant does work W (flop) and moves traffic Q (B), the new one f W and Q/m. [T] 3.5; all intensities and
balances are in flop/B.

eta is the flop efficiency eps_flop/(eps_flop + pi0 tau_flop) ([R] II): with eta = 1 every equation here is the one for
pi0 = 0. [T] 3.5.10 prints a greenup's upper bound for case 1 that the model itself exceeds (it lowers m in one place
and raises it in another); the one here follows from [T] eq. 26 with f > 1 and f m I < B_tau, and docs/diff.md shows it.
"""

from eprof.base.marks import names
from eprof.commands.diff.schema import Bounds, Model
from eprof.profile.rooflines import Machine

# Below this, a factor is 1: the bounds are those of a trade-off, f >= 1 and m >= 1.
_SAME = 1e-9


def assess(old: tuple[float, float], new: tuple[float, float], machine: Machine) -> Model:
    """Assess a change from one (work in flop, traffic in B) to another; all four are above 0."""
    f = new[0] / old[0]
    m = old[1] / new[1]
    intensity = old[0] / old[1]
    balance = machine.time_balance
    is_compute_bound = f * m * intensity >= balance
    case = 3 if is_compute_bound else None
    if intensity < balance:
        case = 2 if is_compute_bound else 1
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
