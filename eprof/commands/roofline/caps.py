"""Power caps ([T] 4.4): what a machine loses as its usable power shrinks; whether a cap explains measured speeds."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Floats
from eprof.base.errors import EprofError
from eprof.profile.rooflines.machine import Machine

DIVISORS = range(1, 9)
# Far below the time balance bytes alone limit speed, far above it flops do.
_MEMORY_BOUND, _COMPUTE_BOUND = 1 / 16, 16
_LEAST_KERNELS = 4  # with fewer no two samples differ at p < 0.05


class Step(Struct, frozen=True):
    """A machine with 1/`divisor` of its usable power, beside the whole: shares of highest power, speed and flop/J.

    speed and efficiency, (n,): at each of the sweep's intensities.
    """

    divisor: int
    power_cap_w: float
    peak_power_w: float
    peak_power_share: float
    speed_shares: tuple[float, ...]
    efficiency_shares: tuple[float, ...]


class Sweep(Struct, frozen=True):
    """Caps of pi0 + Delta_pi/k for k = 1..8 ([T] 4.4.4, figures 13 and 14). intensities: flop/B, (n,)."""

    usable_power_w: float
    intensities: tuple[float, ...]
    steps: tuple[Step, ...]


def swept(machine: Machine) -> list[Machine]:
    """The machine with Delta_pi/k of usable power for k = 1..8; without a cap, Delta_pi is what its peaks take."""
    whole_w = machine.usable_power_w or machine.flop_power_w + machine.mem_power_w
    return [replace(machine, usable_power_w=whole_w / divisor) for divisor in DIVISORS]


def sweep(machines: Sequence[Machine]) -> Sweep:
    """What machines of `swept` lose."""
    whole = machines[0]
    assert whole.usable_power_w is not None
    balance = whole.time_balance
    intensities = np.array([_MEMORY_BOUND * balance, balance, _COMPUTE_BOUND * balance])
    steps = []
    for divisor, machine in zip(DIVISORS, machines, strict=True):
        assert machine.power_cap_w is not None
        speed = machine.roofline(intensities) / whole.roofline(intensities)
        efficiency = machine.arch_line(intensities) / whole.arch_line(intensities)
        step = Step(
            divisor=divisor,
            power_cap_w=machine.power_cap_w,
            peak_power_w=machine.peak_power_w,
            peak_power_share=machine.peak_power_w / whole.peak_power_w,
            speed_shares=tuple(speed.tolist()),
            efficiency_shares=tuple(efficiency.tolist()),
        )
        steps.append(step)
    return Sweep(whole.usable_power_w, tuple(intensities.tolist()), tuple(steps))


class CapTest(Struct, frozen=True):
    """Errors of speeds by the roofline without a cap and with it, and whether the two are alike ([T] 4.4.1, figure 11).

    Percentages are medians of (model - measured) / measured. statistic, p: of the two-sample Kolmogorov-Smirnov test.
    """

    kernels: int
    uncapped_percent: float
    capped_percent: float
    statistic: float
    p: float


def compared(machine: Machine, time_s: Floats, roofline_s: Floats, drawn_j: Floats) -> CapTest | None:
    """Whether a power cap explains measured times: T = max(W tau_flop, Q tau_mem), or that with E/Delta_pi.

    All (n,), NaN where not known; drawn_j: E, of flops and DRAM bytes. None: no cap, or fewer than four kernels
    are known. Raises EprofError where scipy is not installed.
    """
    known = np.isfinite(time_s) & np.isfinite(roofline_s) & np.isfinite(drawn_j) & (roofline_s > 0)
    if machine.usable_power_w is None or known.sum() < _LEAST_KERNELS:
        return None
    capped_s = np.maximum(roofline_s, drawn_j / machine.usable_power_w)
    # Speeds go with 1/T.
    uncapped_percent, capped_percent = (
        100 * (time_s[known] / model_s[known] - 1) for model_s in (roofline_s, capped_s)
    )
    try:
        from scipy.stats import ks_2samp
    except ImportError as err:
        raise EprofError(
            "Comparing a power cap with kernels needs scipy; install it with: pip install 'eprof[fit]'."
        ) from err
    result = ks_2samp(uncapped_percent, capped_percent)
    return CapTest(
        kernels=int(known.sum()),
        uncapped_percent=float(np.median(uncapped_percent)),
        capped_percent=float(np.median(capped_percent)),
        statistic=float(result.statistic),
        p=float(result.pvalue),
    )
