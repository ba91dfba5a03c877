"""A machine at one setting: its balances, and its roofline, arch line and power line ([R] II-III, [T] 3.1-3.2, 4.2)."""

from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from eprof.base.arrays import Floats, finite
from eprof.base.errors import CostError
from eprof.base.optional import less
from eprof.base.text import when
from eprof.base.vocabulary import CPU, NONE, RANDOM, Mark, mark_names
from eprof.costs import Charge, Costs

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
    """What lines are drawn from: throughputs and prices of one precision, J and W. Symbols: docs/model.md.

    flop_j: eps_flop. byte_j: eps_mem, of a DRAM byte. usable_power_w: Delta_pi, the power above pi0 before the platform
    throttles; None: no cap. number: how many of them stand side by side. basis: what the prices rest on. access_b:
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
    """What the lines of one precision are drawn from. cap_w: the platform's power limit in W, constant power included.

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
        flop_j=flop[0],
        byte_j=byte[0],
        constant_power_w=costs.constant_power_w,
        usable_power_w=less(cap_w, costs.constant_power_w),
        levels=tuple(Level(name, price[0], price[0] / flop_j) for name, price in prices.items() if price is not None),
        marks=flop[1] | byte[1] | costs.constant_marks | costs.peaks.marks,
        basis=costs.basis,
    )
    limit = _limit_note(made, costs.peaks.power_limit_w)
    on_its_way = "a DRAM byte carries its way through L2 and L1, which this table prices one by one"
    notes = (flop_note, when(costs.books == "accessed", on_its_way), _random_note(costs, byte[0], flop_j), limit)
    return replace(made, notes=tuple(filter(None, notes)))


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


def _random_note(costs: Costs, byte_j: float, flop_j: float) -> str:
    """A note on what a DRAM access at random costs beside its bytes ([T] 4.4.2, eps_rand); "" where it has no price."""
    charge = _charge_of(costs, RANDOM)
    if charge is None:
        return ""
    surcharge_j = charge.pj * 1e-12
    return (
        f"an access of DRAM at random costs {charge.pj / 1e3:.3g} nJ beside its bytes: as much as "
        f"{surcharge_j / byte_j:.3g} bytes that stream, or {surcharge_j / flop_j:.3g} flops"
    )


def _limit_note(machine: Machine, limit_w: float | None) -> str:
    if limit_w is None or machine.peak_power_w <= limit_w:
        return ""
    return (
        f"the model needs up to {machine.peak_power_w:.4g} W, the platform throttles at {limit_w:g} W; "
        f"--power-cap {machine.name}={limit_w:g} draws that"
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


def described(machine: Machine) -> dict[str, Any]:
    """A machine with its balances as plain data: SI units, pJ for prices; infinite balances are None."""
    lower, upper = machine.balances_under_cap
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
        **_accesses(machine),
    }


def _accesses(machine: Machine) -> dict[str, Any]:
    """Of a machine whose accesses are at random: pJ of an access with its bytes, accesses a second, and for a joule."""
    if not machine.access_b:
        return {}
    access_j = machine.access_b * machine.byte_j
    byte_s = max(1 / machine.dram_byte_per_s, machine.byte_j / (machine.usable_power_w or np.inf))
    time_s = machine.access_b * byte_s
    return {
        "access_b": machine.access_b,
        "access_pj": access_j * 1e12,
        "access_per_s": machine.number / time_s,
        "access_per_j": 1 / (access_j + machine.constant_power_w * time_s),
    }
