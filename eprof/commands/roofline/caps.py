"""Power caps ([T] 4.4): what a machine loses as its usable power shrinks; whether a cap explains measured speeds."""

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from eprof.base.arrays import Floats
from eprof.base.errors import EprofError
from eprof.profile.rooflines.machine import Machine
from eprof.profile.schema import CapStep, CapSweep, CapTest

DIVISORS = range(1, 9)
# Far below the time balance bytes alone limit speed, far above it flops do.
_MEMORY_BOUND, _COMPUTE_BOUND = 1 / 16, 16
_LEAST_KERNELS = 4  # with fewer no two samples differ at p < 0.05


def swept(machine: Machine) -> list[Machine]:
    """The machine with Delta_pi/k of usable power for k = 1..8; without a cap, Delta_pi is what its peaks take."""
    whole_w = machine.usable_power_w or machine.flop_power_w + machine.mem_power_w
    return [replace(machine, usable_power_w=whole_w / divisor) for divisor in DIVISORS]


def sweep(machines: Sequence[Machine]) -> CapSweep:
    """What machines of `swept` lose: caps of pi0 + Delta_pi/k for k = 1..8 ([T] 4.4.4, figures 13 and 14)."""
    whole = machines[0]
    assert whole.usable_power_w is not None
    balance = whole.time_balance
    intensities = np.array([_MEMORY_BOUND * balance, balance, _COMPUTE_BOUND * balance])
    steps = []
    for divisor, machine in zip(DIVISORS, machines, strict=True):
        assert machine.power_cap_w is not None
        speed = machine.roofline(intensities) / whole.roofline(intensities)
        efficiency = machine.arch_line(intensities) / whole.arch_line(intensities)
        step = CapStep(
            divisor=divisor,
            power_cap_w=machine.power_cap_w,
            peak_power_w=machine.peak_power_w,
            peak_power_share=machine.peak_power_w / whole.peak_power_w,
            speed_shares=speed.tolist(),
            efficiency_shares=efficiency.tolist(),
        )
        steps.append(step)
    return CapSweep(whole.usable_power_w, intensities.tolist(), steps)


def compared(machine: Machine, time_s: Floats, roofline_s: Floats, drawn_j: Floats) -> CapTest | None:
    """Whether a power cap explains measured times ([T] 4.4.1, figure 11): T = max(W tau_flop, Q tau_mem), or that with
    E/Delta_pi.

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
        raise EprofError("Comparing a power cap with kernels needs scipy; install it with: pip install scipy.") from err
    result = ks_2samp(uncapped_percent, capped_percent)
    return CapTest(
        kernels=int(known.sum()),
        uncapped_percent=float(np.median(uncapped_percent)),
        capped_percent=float(np.median(capped_percent)),
        statistic=float(result.statistic),
        p=float(result.pvalue),
    )
