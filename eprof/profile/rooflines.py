"""Rooflines, arch lines and power lines of a `Machine`, its balances, and how far kernels (`Dots`) are below them.

[R] II-III, [T] 3.1-3.2, 4.2. Work W and traffic Q of kernels are from their counts.
"""

from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from eprof.base.arrays import Bools, Columns, Floats, finite, finite_all, known_or_zero, known_sum
from eprof.base.errors import CostError
from eprof.base.optional import less, mapped
from eprof.base.text import when
from eprof.base.vocabulary import (
    BYTES,
    COMPUTATION_WORDS,
    COUNTS,
    CPU,
    FLOAT_PARTS,
    MISSING,
    NONE,
    RANDOM,
    TENSOR_FLOPS,
    Mark,
    mark_names,
)
from eprof.costs import Charge, Costs
from eprof.counts.counts import Counts
from eprof.energy.attribution import Split
from eprof.energy.modelled_time import UNDER_THE_ROOF, at_peaks, has_modelled_time, highest_s, under_the_roof
from eprof.energy.time_by_component import LANES, GpuAtSetting, gpu_at_setting

_TENSOR = [name for name, count in COUNTS.items() if count.group == "tensor"]


def flops_of(counts: Columns, precision: str | None = None) -> Floats:
    """Useful floating-point operations: add + mul + 2 fma, of all widths or one ("fp32"); NaN where unknown.

    Of all widths, they are not known where tensor cores worked, whose peaks no roofline has; `all_flops_of` has their
    flops as well.
    """
    total = np.zeros(len(counts))
    for name, count in COUNTS.items():
        if count.flops and precision in (None, count.group):
            total += counts[name] * count.flops
    if precision is None:
        total = np.where(has_tensor_work(counts), np.nan, total)
    return total


def has_tensor_work(counts: Columns) -> Bools:
    """Which kernels tensor cores worked for, as far as is known, (n_kernels,)."""
    worked: Bools = np.asarray((counts.only(_TENSOR) > 0).any(axis=1))
    return worked


def all_flops_of(counts: Columns) -> Floats:
    """Useful flops, with those of tensor cores on floating-point types; NaN where some are not known."""
    vector: Floats = np.stack([flops_of(counts, group) for group in FLOAT_PARTS]).sum(axis=0)
    types = counts.only(TENSOR_FLOPS)
    have_types = ~np.isnan(types).all(axis=1)
    instructions = known_or_zero(counts.only(["tensor"])).sum(axis=1)
    without_types = np.where(instructions > 0, np.nan, 0.0)
    tensor: Floats = np.where(have_types, types.sum(axis=1), without_types)
    return vector + tensor


def traffic_of(counts: Columns, level: str = "dram") -> Floats:
    """Bytes from and to a memory level; NaN where neither both directions nor their sum are known."""
    both: Floats = counts[f"{level}_read"] + counts[f"{level}_write"]
    if level not in counts:
        return both
    return np.where(np.isnan(both), counts[level], both)


def intensity_of(counts: Columns) -> Floats:
    """Arithmetic intensity I = W/Q, flop per DRAM byte ([R] II); NaN where W or Q is unknown or Q is 0."""
    moved = traffic_of(counts)
    return all_flops_of(counts) / np.where(moved > 0, moved, np.nan)


def main_precision(counts: Columns) -> str | None:
    """The width that most flops are of, "fp64" or "fp32"; None if there are none of either."""
    sums = {precision: float(np.nansum(flops_of(counts, precision))) for precision in ("fp64", "fp32")}
    most = max(sums, key=lambda precision: sums[precision])
    return most if sums[most] > 0 else None


def mix_peak_flop_per_s(instructions: Mapping[str, Floats], gpu: GpuAtSetting) -> Floats:
    """The highest flop/s of a kernel's own mix of instructions, (n_kernels,); NaN where it has no flops ([T] 3.4.4).

    instructions: word of the vocabulary -> thread-level instructions. Each takes its threads over its lanes; while it
    does, an FMA is two flops a lane, an add, a multiply or a special function one. Only one scheduler issues special
    functions at a time, and the others single flops beside it. The peak is the mean of these rates over the cycles.
    """
    units = gpu.units
    beside = gpu.lanes("fp32") * (1 - 1 / units.schedulers)
    flops, cycles = np.zeros(1), np.zeros(1)
    for word, threads in instructions.items():
        lanes = gpu.lanes(LANES.get(COUNTS[word].group, word))
        taken = known_or_zero(threads) / lanes
        rate = lanes + beside if word == "special" else lanes * COUNTS[word].flops
        cycles = cycles + taken
        flops = flops + taken * rate
    return np.asarray(flops / np.where(flops > 0, cycles, np.nan) * units.number * gpu.core_hz)


def mix_peaks(counts: Counts, costs: Costs | None) -> list[float | None]:
    """The peak of each kernel's own mix of instructions in flop/s ([T] 3.4.4); [] where the costs cannot tell it.

    Floating-point instructions and special functions: integers and the like may be issued beside. None for a kernel
    without a flop.
    """
    gpu = mapped(gpu_at_setting, costs)
    if gpu is None:
        return []
    words = [word for word, count in COUNTS.items() if count.group in ("fp64", "fp32", "fp16", "sfu")]
    flops = known_or_zero(counts.amounts.only([word for word in words if COUNTS[word].flops])).sum(axis=1)
    mix = {word: np.where(flops > 0, counts.amounts[word], np.nan) for word in words}
    return [finite(peak) for peak in mix_peak_flop_per_s(mix, gpu)]


# Width of arithmetic -> its peak in `Peaks`, and the name that tables give the price of one flop.
PRECISIONS: dict[str, tuple[str, str]] = {"fp32": ("sp_gflops", "sp_flop"), "fp64": ("dp_gflops", "dp_flop")}
_LEVELS = ("shared", "l1", "l2", "l3", "dram")
_WARP = 32
_SECTOR_B, _LINE_B = 32, 64  # what DRAM moves for one access: of a GPU, of a CPU
# What a document says of machines: of one, and of all together.
_AS_THEY_ARE = (
    *("name", "device", "basis", "setting", "precision", "number", "time_balance", "energy_balance", "balance_gap"),
    *("flop_efficiency", "race_to_halt", "power_cap_w", "peak_power_w", "peak_flop_per_j"),
)
_OF_ALL = ("peak_flop_per_s", "dram_byte_per_s", "constant_power_w")


class Level(Struct, frozen=True):
    """A memory level: J per byte that it serves, and the flop/B at which flops cost as much as the bytes."""

    name: str
    byte_j: float
    energy_balance: float


class Machine(Struct, frozen=True, dict=True):
    """A GPU or CPU as its lines are drawn: throughputs and prices of one precision, J and W. Symbols: docs/model.md.

    flop_j: eps_flop. byte_j: eps_mem, of a DRAM byte. usable_power_w: Delta_pi, the power above pi0 before the platform
    throttles; None: no cap. number: how many machines stand side by side. basis: what the prices rest on. access_b:
    bytes of an access of DRAM, where all are in no order; 0: they stream.
    """

    name: str
    device: str
    setting: str
    precision: str
    peak_flop_per_s: float
    dram_byte_per_s: float
    flop_j: float
    byte_j: float
    constant_power_w: float
    usable_power_w: float | None = None
    number: float = 1.0
    levels: tuple[Level, ...] = ()
    marks: Mark = NONE
    notes: tuple[str, ...] = field(default_factory=tuple)
    basis: str | None = None
    access_b: float = 0.0

    @property
    def time_balance(self) -> float:
        """B_tau = tau_mem / tau_flop, flop/B."""
        return self.peak_flop_per_s / self.dram_byte_per_s

    @property
    def energy_balance(self) -> float:
        """B_eps = eps_mem / eps_flop, flop/B."""
        return self.byte_j / self.flop_j

    @property
    def balance_gap(self) -> float:
        """B_eps / B_tau."""
        return self.energy_balance / self.time_balance

    @property
    def flop_efficiency(self) -> float:
        """The part of a flop's energy that is no constant power: eta = eps_flop / (eps_flop + pi0 tau_flop)."""
        return self.flop_j / (self.flop_j + self.constant_power_w / self.peak_flop_per_s)

    @property
    def flop_power_w(self) -> float:
        """pi_flop = eps_flop / tau_flop."""
        return self.flop_j * self.peak_flop_per_s

    @property
    def mem_power_w(self) -> float:
        """pi_mem = eps_mem / tau_mem."""
        return self.byte_j * self.dram_byte_per_s

    @property
    def balances_under_cap(self) -> tuple[float, float]:
        """B- and B+, flop/B: between them the cap limits speed ([T] 4.2). Both are B_tau where nothing is capped.

        B+ is infinite if the flops alone exceed the cap, B- is 0 if the bytes alone do.
        """
        cap = self.usable_power_w
        if cap is None or cap >= self.flop_power_w + self.mem_power_w:
            return self.time_balance, self.time_balance
        upper = np.inf
        if cap > self.flop_power_w:
            upper = max(self.mem_power_w / (cap - self.flop_power_w), 1.0)
        lower = max(cap - self.mem_power_w, 0.0) / self.flop_power_w
        return self.time_balance * min(1.0, lower), self.time_balance * upper

    def time_per_flop_s(self, intensity: float | Floats) -> Floats:
        """T/W = max(tau_flop, tau_mem/I, (eps_flop + eps_mem/I)/Delta_pi), s/flop, of one machine ([T] 4.2)."""
        intensities = np.asarray(intensity, dtype=np.float64)
        time = np.maximum(1 / self.peak_flop_per_s, 1 / (self.dram_byte_per_s * intensities))
        if self.usable_power_w is None:
            return time
        return np.maximum(time, (self.flop_j + self.byte_j / intensities) / self.usable_power_w)

    def energy_per_flop_j(self, intensity: float | Floats) -> Floats:
        """E/W = eps_flop + eps_mem/I + pi0 T/W, J/flop; without a cap eps_hat (1 + Bhat(I)/I)."""
        intensities = np.asarray(intensity, dtype=np.float64)
        return self.flop_j + self.byte_j / intensities + self.constant_power_w * self.time_per_flop_s(intensities)

    def roofline(self, intensity: float | Floats) -> Floats:
        """Highest speed, flop/s, of all machines together; relative to the peak it is min(1, I/B_tau)."""
        return self.number / self.time_per_flop_s(intensity)

    def arch_line(self, intensity: float | Floats) -> Floats:
        """Highest energy efficiency, flop/J; relative to 1/eps_hat it is 1/(1 + Bhat(I)/I)."""
        return 1 / self.energy_per_flop_j(intensity)

    def power_line(self, intensity: float | Floats) -> Floats:
        """Mean power at the roofline, W, of all machines together."""
        return self.number * self.energy_per_flop_j(intensity) / self.time_per_flop_s(intensity)

    @property
    def power_cap_w(self) -> float | None:
        """The highest power of all machines together, W, constant power included; None: no cap."""
        if self.usable_power_w is None:
            return None
        return self.number * (self.constant_power_w + self.usable_power_w)

    @property
    def peak_power_w(self) -> float:
        """The highest point of the power line, W: at I = B_tau, where arithmetic and memory are both busy."""
        return float(self.power_line(self.time_balance))

    @property
    def peak_flop_per_j(self) -> float:
        """The arch line's ceiling, flop/J: at infinite intensity."""
        time = 1 / self.peak_flop_per_s
        if self.usable_power_w is not None:
            time = max(time, self.flop_j / self.usable_power_w)
        return 1 / (self.flop_j + self.constant_power_w * time)

    @cached_property
    def half_efficiency_intensity(self) -> float:
        """The flop/B at which the arch line reaches half of its ceiling: where I = Bhat(I), if nothing is capped.

        The arch line rises with I, so bisection finds it, with a power cap too.
        """
        low, high, half = 1e-9, 1e9, self.peak_flop_per_j / 2
        while low < (middle := (low * high) ** 0.5) < high:
            if float(self.arch_line(middle)) < half:
                low = middle
            else:
                high = middle
        return high

    @property
    def race_to_halt(self) -> bool:
        """Whether the fastest is, to first order, also of least energy: B_tau >= I of half efficiency ([R] V-B)."""
        return self.time_balance >= self.half_efficiency_intensity

    def lines(self, intensities: Floats) -> list[dict[str, float]]:
        """Roofline, arch line and power line at these intensities in flop/B, as plain data, a dict each."""
        columns = (intensities, self.roofline(intensities), self.arch_line(intensities), self.power_line(intensities))
        keys = ("intensity_flop_per_byte", "flop_per_s", "flop_per_j", "power_w")
        return [dict(zip(keys, map(float, row), strict=True)) for row in zip(*columns, strict=True)]


def machines(costs: Costs) -> list[Machine]:
    """The machine of every precision whose peak and price the costs know."""
    drawable = []
    for precision in PRECISIONS:
        with suppress(CostError):
            drawable.append(machine(costs, precision))
    return drawable


def machine(costs: Costs, precision: str, cap_w: float | None = None) -> Machine:
    """The `Machine` of one precision by these costs. cap_w: the platform's limit in W, constant power included.

    Raises CostError if the costs lack a peak or a price that it takes, or if the limit leaves nothing above pi0.
    """
    peak_name, price_name = PRECISIONS[precision]
    peaks, setting = costs.peaks_as_run, costs.setting
    peak, bandwidth = float(getattr(peaks, peak_name) or 0), float(peaks.dram_gb_per_s or 0)
    if costs.cores_mhz and setting.core_mhz:
        setting = replace(setting, core_mhz=round(costs.cores_mhz))
    flop, flop_note = _flop(costs, precision, price_name)
    byte = _byte(costs, "dram")
    wanted = {
        f"the peak of {precision.upper()}": peak,
        "the peak of DRAM": bandwidth,
        f"a price of an {precision.upper()} flop": flop,
        "a price of a DRAM byte": byte,
    }
    lost = [name for name, known in wanted.items() if not known]
    if lost or flop is None or byte is None:
        raise CostError(
            f"{costs.name} does not tell {', '.join(lost)}: no roofline of {precision.upper()} can be drawn."
        )
    if cap_w is not None and cap_w <= costs.constant_power_w:
        at = when("/" in costs.setting.label, f" at {costs.setting.label} MHz")
        raise CostError(
            f"A power cap of {cap_w:g} W leaves nothing to compute with: {costs.name}{at} draws "
            f"{costs.constant_power_w:.4g} W of constant power alone."
        )
    flop_j = flop[0]
    prices = {name: _byte(costs, name) for name in _LEVELS}
    made = Machine(
        name=costs.name,
        device=costs.device,
        setting=setting.label,
        precision=precision,
        peak_flop_per_s=peak * 1e9,
        dram_byte_per_s=bandwidth * 1e9,
        flop_j=flop_j,
        byte_j=byte[0],
        constant_power_w=costs.constant_power_w,
        usable_power_w=less(cap_w, costs.constant_power_w),
        levels=tuple(Level(name, price[0], price[0] / flop_j) for name, price in prices.items() if price is not None),
        marks=flop[1] | byte[1] | costs.constant_marks | costs.peaks.marks,
        basis=costs.basis,
    )
    notes = [flop_note] if flop_note else []
    if costs.books == "accessed":
        notes.append("a DRAM byte carries its way through L2 and L1, which this table prices one by one")
    if (charge := _charge_of(costs, RANDOM)) is not None:  # [T] 4.4.2, eps_rand
        surcharge_j = charge.pj * 1e-12
        notes.append(
            f"an access of DRAM at random costs {charge.pj / 1e3:.3g} nJ beside its bytes: as much as "
            f"{surcharge_j / byte[0]:.3g} bytes that stream, or {surcharge_j / flop_j:.3g} flops"
        )
    limit_w = costs.peaks.power_limit_w
    if limit_w is not None and made.peak_power_w > limit_w:
        notes.append(
            f"the model needs up to {made.peak_power_w:.4g} W, the platform throttles at {limit_w:g} W; "
            f"--power-cap {made.name}={limit_w:g} draws that"
        )
    return replace(made, notes=tuple(notes))


def at_random(streaming: Machine, costs: Costs) -> Machine | None:
    """The machine where every access of DRAM is at random ([T] 4.3, 4.4.2); None where its price or rate is not known.

    eps_rand = access_b eps_mem + the price beside the bytes, and tau_rand: what a byte then costs, and how many come.
    """
    charge, giga = _charge_of(costs, RANDOM), costs.peaks.random_gaccess_per_s
    if charge is None or giga is None:
        return None
    access_b = _LINE_B if costs.processor == CPU else _SECTOR_B
    return replace(
        streaming,
        access_b=access_b,
        byte_j=streaming.byte_j + charge.pj * 1e-12 / access_b,
        dram_byte_per_s=giga * 1e9 * access_b,
        marks=streaming.marks | charge.marks,
    )


_Priced = tuple[float, Mark]


def _charge_of(costs: Costs, word: str) -> Charge | None:
    charge = costs.charges.get(word)
    if charge is None or not charge.pays or charge.pj <= 0:
        return None
    return charge


def _flop(costs: Costs, precision: str, price_name: str) -> tuple[_Priced, str] | tuple[None, str]:
    """Joules of a flop and their marks (None: no price), and a note: its own price, else half an FMA, else an add.

    An instruction's issue is in it, where the table prices that.
    """
    price = costs.prices.get(price_name)
    issue = _charge_of(costs, "warp_issue")
    shared, marks, note = 0.0, NONE, ""
    if issue is not None:
        shared, marks = issue.pj / _WARP, issue.marks
        note = f"a flop carries its share of a full warp's issue, {shared:.3g} pJ an instruction"
    if price is not None and price.pj > 0:
        return ((price.pj + shared / 2) * 1e-12, price.marks | marks), note
    for word, each in ((f"{precision}_fma", 2), (f"{precision}_add", 1), (precision, 2)):
        charge = _charge_of(costs, word)
        if charge is not None:
            return ((charge.pj + shared) / each * 1e-12, charge.marks | marks), note
    return None, ""


def _byte(costs: Costs, level: str) -> _Priced | None:
    """Price in J of a byte served by `level`, half reads and half writes, with its marks; with levels on the way to it.

    None where `level` has no price; a level on the way that has none adds nothing.
    """
    path = _LEVELS[_LEVELS.index(level) : 0 : -1] if costs.books == "accessed" else (level,)
    total = 0.0
    marks = NONE
    for step in path:
        known = [charge for way in ("read", "write") if (charge := _charge_of(costs, f"{step}_{way}")) is not None]
        if not known:
            if step == level:
                return None
            continue
        total += sum(charge.pj for charge in known) / len(known)
        for charge in known:
            marks |= charge.marks
    return total * 1e-12, marks


def machine_data(machine: Machine) -> dict[str, Any]:
    """A machine with its balances as plain data: SI units, pJ for prices; infinite balances are None."""
    lower, upper = machine.balances_under_cap
    at_random: dict[str, float] = {}
    if machine.access_b:  # pJ of an access with its bytes, accesses a second, and for a joule
        access_j = machine.access_b * machine.byte_j
        byte_s = max(1 / machine.dram_byte_per_s, machine.byte_j / (machine.usable_power_w or np.inf))
        time_s = machine.access_b * byte_s
        at_random = {
            "access_b": machine.access_b,
            "access_pj": access_j * 1e12,
            "access_per_s": machine.number / time_s,
            "access_per_j": 1 / (access_j + machine.constant_power_w * time_s),
        }
    return {
        **{name: getattr(machine, name) for name in _AS_THEY_ARE},
        **{name: machine.number * getattr(machine, name) for name in _OF_ALL},
        "flop_pj": machine.flop_j * 1e12,
        "dram_pj_per_byte": machine.byte_j * 1e12,
        "effective_energy_balance": machine.half_efficiency_intensity,
        "capped_from": lower,
        "capped_to": finite(upper),
        "best_flop_per_s": float(machine.roofline(np.inf)),
        "levels": [
            {"name": level.name, "pj_per_byte": level.byte_j * 1e12, "energy_balance": level.energy_balance}
            for level in machine.levels
        ],
        "marks": mark_names(machine.marks),
        "notes": list(machine.notes),
        **at_random,
    }


# What the energy of a kernel is made of, as seen from its limits; the six add up to it. The first three are what the
# arch line holds against it: they would be left at the roofline's time, with no other instruction and no other byte.
PARTS = ("flops", "dram", "constant", "waiting", "instructions", "nearer")
# What is at most so much where the energy, or the time, is a lower bound.
_AT_MOST = {
    "flop_per_s": "time_is_bound",
    "speed_share": "time_is_bound",
    "flop_per_j": "energy_is_bound",
    "energy_share": "energy_is_bound",
}
_NUMBERS = ("work_flop", "flop_per_s", "flop_per_j", "roofline_time_s", "speed_share", "energy_share")
LEVELS = ("shared", "l1", "l2", "dram")
_L3 = "l3"  # of CPUs, beside those
_FLOPS = [name for name, count in COUNTS.items() if count.flops or name in FLOAT_PARTS or count.group == "tensor"]


class Dots(Struct, frozen=True, eq=False):
    """Kernels as dots below a machine's lines, rows as in the counts; NaN = not known.

    values: `work_flop`, `intensity_X` (flop per byte at level X), `flop_per_s`, `flop_per_j`, `roofline_time_s`,
    `speed_share` (roofline's time over the kernel's), `energy_share` (energy at the arch line over the kernel's), and
    `X_j` for each of `PARTS`, `energy_is_bound`, `time_is_bound` (what is divided by a lower bound is at most that).
    lever: the part of `PARTS` that takes most, or None. by_dram: whether DRAM bytes take as long as flops, or longer.
    """

    values: Columns
    lever: tuple[str | None, ...]
    by_dram: Bools

    def rows(self) -> list[dict[str, Any]]:
        """A dict a kernel, as plain data."""
        column = {name: finite_all(self.values[name]) for name in self.values.names}
        kernels = _records({name: column[name] for name in _NUMBERS})
        intensities = _records({level: column[f"intensity_{level}"] for level in LEVELS})
        parts = _records({part: column[f"{part}_j"] for part in PARTS})
        for row, (kernel, at_l3, lever) in enumerate(zip(kernels, column[f"intensity_{_L3}"], self.lever, strict=True)):
            kernel |= {"intensity_flop_per_byte": intensities[row], "parts_j": parts[row], "lever": lever}
            if kernel["roofline_time_s"] is not None:
                kernel["limited_by"] = when(self.by_dram[row], "dram") or "flops"
            if at_l3 is not None:
                intensities[row][_L3] = at_l3
            at_most = [name for name, bound in _AT_MOST.items() if column[bound][row] and kernel[name] is not None]
            if at_most:
                kernel["at_most"] = at_most
        return kernels


def _records(columns: Mapping[str, list[float | None]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def dots_of(counts: Counts, costs: Costs, split: Split) -> Dots:
    """Place kernels below lines: T_roof = max(W tau_flop, Q tau_mem) ([R] II), W tau_flop summed over FP32 and FP64.

    Instructions whose kinds are not told take as long as multiply-adds, whose place in the pipe they have.
    E = flops + DRAM bytes + pi0 T_roof   (what the arch line allows)
      + pi0 (T - T_roof)                  ("waiting": constant power while below the roofline)
      + other instructions + bytes from nearer levels.
    A kernel that is faster than the roofline of these costs waits 0 s; its speed_share is above 1. One whose flops or
    DRAM bytes were not all counted has no roofline, and none that tensor cores worked for, whose peaks no table has.
    A kernel whose time was modelled is placed at the roofline's time; how far it is from there is not known.
    """
    table = counts.whole
    roofs = at_peaks(under_the_roof(counts.amounts, counts.in_flops), costs.peaks_as_run)
    roof = highest_s(roofs)
    lacks = (counts.amount_marks.only(UNDER_THE_ROOF) & MISSING).any(axis=1)
    lacks |= has_tensor_work(counts.amounts)
    roof = np.where((roof > 0) & ~lacks, roof, np.nan)
    work = flops_of(table)
    # A modelled time is the roofline's over an efficiency that somebody chose: such a kernel stands on the roofline.
    is_modelled = has_modelled_time(counts)
    time = np.where(is_modelled, roof, counts.rows.time_s)
    constant = np.where(is_modelled, costs.constant_power_w * roof, split.constant_j)
    energy = split.total_j - np.nan_to_num(split.constant_j) + np.nan_to_num(constant)
    at_roof = np.fmin(constant, costs.constant_power_w * roof)
    parts = {
        "flops": known_sum(split.joules.only(_FLOPS)),
        "dram": known_sum(split.joules.only(["dram_read", "dram_write", "dram", RANDOM])),
        "constant": np.where(np.isnan(roof), constant, np.where(np.isnan(constant), np.nan, at_roof)),
        "waiting": np.where(np.isnan(roof), 0.0, constant - at_roof),
        "instructions": known_sum(split.joules.only([name for name in COMPUTATION_WORDS if name not in _FLOPS])),
        "nearer": known_sum(split.joules.only([name for name in BYTES if not name.startswith("dram")])),
    }
    best = np.nan_to_num(parts["flops"]) + np.nan_to_num(parts["dram"]) + costs.constant_power_w * roof
    with np.errstate(all="ignore"):
        columns = {
            "work_flop": work,
            **{f"intensity_{level}": _over(work, traffic_of(table, level)) for level in (*LEVELS, _L3)},
            "flop_per_s": _over(work, time),
            "flop_per_j": _over(work, np.where(np.isnan(time), np.nan, energy)),
            "roofline_time_s": roof,
            "speed_share": np.where(is_modelled, np.nan, _over(roof, time)),
            "energy_share": np.where(is_modelled | np.isnan(time), np.nan, _over(best, energy)),
            **{f"{name}_j": values for name, values in parts.items()},
            "energy_is_bound": (split.row_marks & MISSING) != 0,
            "time_is_bound": (counts.rows.time_marks & MISSING) != 0,
        }
    # The largest part; None where the time is not known, or nothing is.
    stacked = np.nan_to_num(np.stack([parts[name] for name in PARTS]))
    is_known = (stacked.max(axis=0) > 0) & ~np.isnan(time)
    largest = zip(stacked.argmax(axis=0).tolist(), is_known.tolist(), strict=True)
    levers = tuple(PARTS[part] if known else None for part, known in largest)
    return Dots(Columns.of(columns, len(table)), levers, roofs["dram"] >= roof)


def _over(above: Floats, below: Floats) -> Floats:
    """Divide `above` by `below`, element by element; NaN where the divisor is not above 0."""
    return above / np.where(below > 0, below, np.nan)
