"""The document `eprof.roofline/1`: machines with their lines, kernels below them, equal power (docs/roofline.md).

And machines made of one: under lower power caps ([T] 4.4), and so many that they draw another's power ([T] 5.2.3).
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import UNSET, convert, structs
from msgspec.structs import replace

from eprof.base.arrays import Floats
from eprof.base.errors import CostError, EprofError
from eprof.base.optional import ratio
from eprof.base.text import when
from eprof.cli import dispatch
from eprof.profile import schema
from eprof.profile.document import document as profile_document
from eprof.profile.rooflines import Machine, machine_data, mix_peaks

if TYPE_CHECKING:
    import pandas as pd

    from eprof.profile.profile import Energy


def document(
    machines: Sequence[Machine],
    equal_power: Sequence[schema.EqualPower] = (),
    energy: "Energy | None" = None,
    command_line: Sequence[str] = (),
    warnings: Sequence[str] = (),
    sweep: schema.CapSweep | None = None,
) -> schema.Roofline:
    """The document `eprof.roofline/1` of machines and their lines, with the kernels of `energy` below the first's.

    equal_power: of machines compared with the first. sweep: what the machines lose, if they are one under ever lower
    power caps.
    """
    profile, dots = None, list[schema.Dot]()
    if energy is not None:
        profile = profile_document(energy)
        dots = _dots(profile, energy)
    # An octave or more around every balance and kernel, in whole powers of two.
    told = [dot.intensity_flop_per_byte.dram for dot in dots if dot.intensity_flop_per_byte.dram]
    for machine in machines:
        told += [machine.time_balance, machine.energy_balance, machine.half_efficiency_intensity]
    low, high = np.floor(np.log2(min([0.5, *told])) - 1), np.ceil(np.log2(max([64.0, *told])) + 1)
    intensities = np.geomspace(2**low, 2**high, 193)
    drawn = [{**machine_data(machine), "lines": machine.lines(intensities)} for machine in machines]
    warnings = list(warnings)
    # Of a kernel's energy, that of flops and DRAM bytes, as the capped line has it.
    times = [
        (dot.time_s, dot.roofline_time_s, (dot.parts_j.get("flops") or 0.0) + (dot.parts_j.get("dram") or 0.0))
        for dot in dots
        if dot.speed_share and not dot.at_most
    ]
    cap_test = None
    if sweep is None and times:
        try:
            cap_test = compared(machines[0], *np.array(times, dtype=float).T)
        except EprofError as err:
            warnings.append(str(err))
    made = schema.Roofline(
        title=None,
        command_line=list(command_line),
        machines=convert(drawn, list[schema.Machine]),
        equal_power=list(equal_power),
        cap_sweep=sweep or UNSET,
        cap_test=cap_test or UNSET,
        inputs=[],
        kernels=dots,
        warnings=warnings,
    )
    if profile is None:
        return made
    to_count = ""
    if not any(dot.speed_share for dot in dots) and "report" in dispatch.names():
        to_count = dispatch.module("report").to_count(profile)
    return structs.replace(
        made,
        title=profile.title,
        inputs=profile.inputs,
        processor=profile.device.processor,
        to_count=to_count or UNSET,
        warnings=[*warnings, *profile.warnings],
    )


def _dots(profile: schema.Profile, energy: "Energy") -> list[schema.Dot]:
    """A dot for each kernel of a profile: where it stands below the rooflines; [] where the profile has no limits."""
    if not profile.limits:
        return []
    whole, _ = energy.whole()
    for limit, peak in zip(profile.limits.kernels, mix_peaks(whole.counts, whole.costs), strict=False):
        limit.mix_peak_flop_per_s = peak or UNSET
    return [
        schema.Dot(
            name=kernel.name,
            device=kernel.device,
            launches=kernel.launches,
            time_s=kernel.time_s,
            energy_j=kernel.energy_j.total,
            power_w=ratio(limit.flop_per_s, limit.flop_per_j),
            marks=kernel.marks,
            **structs.asdict(limit),
        )
        for kernel, limit in zip(profile.kernels, profile.limits.kernels, strict=True)
    ]


DIVISORS = range(1, 9)
# Far below the time balance bytes alone limit speed, far above it flops do.
_MEMORY_BOUND, _COMPUTE_BOUND = 1 / 16, 16
_LEAST_KERNELS = 4  # with fewer no two samples differ at p < 0.05


def swept(machine: Machine) -> list[Machine]:
    """The machine once for each k = 1..8, with Delta_pi/k of usable power (without a cap: of what its peaks take)."""
    whole_w = machine.usable_power_w or machine.flop_power_w + machine.mem_power_w
    return [replace(machine, usable_power_w=whole_w / divisor) for divisor in DIVISORS]


def sweep(machines: Sequence[Machine]) -> schema.CapSweep:
    """What machines of `swept` keep of the first one's power, speed and flop/J, as shares ([T] 4.4.4, figures 13, 14).

    The caps are pi0 + Delta_pi/k for k = 1..8; speed and flop/J are at 1/16, 1 and 16 times the time balance.
    """
    whole = machines[0]
    assert whole.usable_power_w is not None
    balance = whole.time_balance
    intensities = np.array([_MEMORY_BOUND * balance, balance, _COMPUTE_BOUND * balance])
    steps = []
    for divisor, machine in zip(DIVISORS, machines, strict=True):
        assert machine.power_cap_w is not None
        speed = machine.roofline(intensities) / whole.roofline(intensities)
        efficiency = machine.arch_line(intensities) / whole.arch_line(intensities)
        cap_w, peak_w = machine.power_cap_w, machine.peak_power_w
        shares = peak_w / whole.peak_power_w, speed.tolist(), efficiency.tolist()
        steps.append(schema.CapStep(divisor, cap_w, peak_w, *shares))
    return schema.CapSweep(whole.usable_power_w, intensities.tolist(), steps)


def compared(machine: Machine, time_s: Floats, roofline_s: Floats, drawn_j: Floats) -> schema.CapTest | None:
    """Whether a power cap explains measured times better: errors of the roofline's time and of capped time ([T] 4.4.1).

    The roofline's: T = max(W tau_flop, Q tau_mem); capped: the maximum of that and E/Delta_pi (figure 11). All (n,),
    NaN where not known; drawn_j: E, of flops and DRAM bytes. None: no cap, or fewer than four kernels are known. Raises
    EprofError where scipy is not installed.
    """
    known = np.isfinite(time_s) & np.isfinite(roofline_s) & np.isfinite(drawn_j) & (roofline_s > 0)
    if machine.usable_power_w is None or known.sum() < _LEAST_KERNELS:
        return None
    models_s = roofline_s, np.maximum(roofline_s, drawn_j / machine.usable_power_w)
    # Speeds go with 1/T.
    uncapped_percent, capped_percent = (100 * (time_s[known] / model_s[known] - 1) for model_s in models_s)
    try:
        from scipy.stats import ks_2samp
    except ImportError as err:
        raise EprofError("Comparing a power cap with kernels needs scipy; install it with: pip install scipy.") from err
    result = ks_2samp(uncapped_percent, capped_percent)
    uncapped, capped = (float(np.median(percents)) for percents in (uncapped_percent, capped_percent))
    return schema.CapTest(int(known.sum()), uncapped, capped, float(result.statistic), float(result.pvalue))


def label(machine: Machine) -> str:
    """A machine's cost table, and its setting where that has a name: "jetson-tk1 852/924"."""
    return machine.name + when(machine.setting != "fixed", f" {machine.setting}")


def equal_power(reference: Machine, other: Machine) -> tuple[Machine, schema.EqualPower]:
    """Scale `other` to the whole number that draws about `reference`'s highest power; and which is better where.

    Highest power: the power line's peak, pi0 + pi_flop + pi_mem or the cap. Networks between them are left out, so the
    many are seen at their best ([T] 4.1, 5.2.3). Raises CostError if `other` is the larger one.
    """
    exact = reference.peak_power_w / other.peak_power_w
    if exact < 0.5:
        raise CostError(
            f"{label(other)} alone draws up to {other.peak_power_w:.4g} W, over twice as much as {label(reference)} "
            f"({reference.peak_power_w:.4g} W); name the larger one first."
        )
    many = replace(other, number=float(max(1, round(exact))))
    equal = schema.EqualPower(
        name=many.name,
        setting=many.setting,
        reference=reference.name,
        reference_setting=reference.setting,
        number=many.number,
        number_exact=exact,
        peak_power_w=many.peak_power_w,
        reference_peak_power_w=reference.peak_power_w,
        faster=_regions(reference, many, Machine.roofline),
        more_efficient=_regions(reference, many, Machine.arch_line),
    )
    return many, equal


def _regions(first: Machine, second: Machine, read: Callable[[Machine, Floats], Floats]) -> list[schema.Region]:
    """The ranges of flop per byte where the line that `read` gives is higher for one machine, and by which factor."""
    grid = np.geomspace(1e-3, 1e5, 1601)

    def excess(intensity: Floats) -> Floats:
        return np.asarray(np.log(read(second, intensity) / read(first, intensity)))

    values = excess(grid)
    # Two lines that are the same differ by rounding alone.
    signs = np.where(np.abs(values) < 1e-9, 0, np.sign(values)).astype(int)
    edges = [0, *(np.flatnonzero(np.diff(signs)) + 1).tolist(), len(grid)]
    regions = []
    crossings = [None, *(_crossing(excess, grid[edge - 1], grid[edge]) for edge in edges[1:-1]), None]
    for place, (start, end) in enumerate(pairwise(edges)):
        low, high = crossings[place : place + 2]
        sizes = np.exp(np.abs(values[start:end]))
        winner = {0: "", 1: label(second), -1: label(first)}[int(signs[start])]
        regions.append(schema.Region(low, high, winner, float(sizes.min()), float(sizes.max())))
    return regions


def _crossing(excess: Callable[[Floats], Floats], low: float, high: float) -> float:
    """The flop per byte between `low` and `high` at which `excess` changes its sign, by bisection of its logarithm."""
    rising = float(excess(np.array(low))) < float(excess(np.array(high)))
    for _ in range(60):
        middle = (low * high) ** 0.5
        if (float(excess(np.array(middle))) < 0) == rising:
            low = middle
        else:
            high = middle
    return float((low * high) ** 0.5)


_NAMES, _LEVER = ("kind", "name", "setting", "precision"), "lever"
_NUMBERS = ("intensity_flop_per_byte", "flop_per_s", "flop_per_j", "power_w", "speed_share", "energy_share")
_COLUMNS = (*_NAMES, *_NUMBERS, _LEVER)


def frame(document: schema.Roofline) -> "pd.DataFrame":
    """The points of a roofline document's lines ("line") and its kernels ("kernel") as one long table, a row each.

    Texts, and float64 with NaN for what is unknown.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for machine in document.machines:
        named = {"kind": "line", "name": machine.name, "setting": machine.setting, "precision": machine.precision}
        rows += [{**named, **structs.asdict(point)} for point in machine.lines or []]
    for dot in document.kernels:
        intensity = {"intensity_flop_per_byte": dot.intensity_flop_per_byte.dram}
        rows.append({**structs.asdict(dot), "kind": "kernel", **intensity})
    table = pd.DataFrame([[row.get(name) for name in _COLUMNS] for row in rows], columns=list(_COLUMNS))
    return table.astype(dict.fromkeys(_COLUMNS, "object") | dict.fromkeys(_NUMBERS, "float64"))
