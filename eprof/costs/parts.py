"""The types that a cost table is made of: `Setting`, `Price`, `Charge`, `Constant`, `Peak`, `Board`, `Intervals`, ...

Each is evaluated at a `Point`: eps = c V^2 for each price, pi0 = c1_core V_core + c1_mem V_mem + P_misc ([FMM] eqs.
6-8; docs/model.md).
"""

from collections.abc import Mapping
from itertools import product
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from eprof.base.optional import mapped
from eprof.base.text import ShortRepr, when
from eprof.base.toml import Formula
from eprof.base.units import clock_label
from eprof.base.vocabulary import GPU, NONE, Mark

CORE, MEMORY = DOMAINS = ("core", "memory")
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


class Setting(Struct, frozen=True):
    """A DVFS setting: clocks in MHz, voltages in V. None: the table does not know it."""

    core_mhz: float | None = None
    core_v: float | None = None
    memory_mhz: float | None = None
    memory_v: float | None = None

    @property
    def clocks(self) -> str | None:
        """Core and memory clock in MHz as users name a setting, "852/924"; None for a table that does not know both."""
        if not self.core_mhz or not self.memory_mhz:
            return None
        return clock_label(self.core_mhz, self.memory_mhz)

    @property
    def label(self) -> str:
        """Core and memory clock in MHz, "852/924"; "fixed" for a table that does not know its clocks."""
        return self.clocks or "fixed"

    def mhz(self, domain: str) -> float | None:
        """The clock of `domain` (core, memory) at this DVFS setting in MHz; None: not known."""
        return {CORE: self.core_mhz, MEMORY: self.memory_mhz}[domain]

    def volts(self, domain: str) -> float | None:
        """The voltage of `domain` (core, memory) at this setting, in V or relative to a reference; None: not known."""
        return {CORE: self.core_v, MEMORY: self.memory_v}[domain]


class Charge(Struct, frozen=True):
    """What one count of a word pays at a setting: `pj` pJ, by a formula of prices; or nothing, and why."""

    pays: bool
    pj: float
    formula: str | None
    why: str
    marks: Mark


class Price(Struct, frozen=True):
    """A named price at one setting, in pJ a flop, instruction or byte, with the arithmetic that gave it."""

    name: str
    pj: float
    formula: str
    marks: Mark


class Peaks(Struct, frozen=True):
    """The peaks of a processor at one setting: Gflop/s in single and double precision, GB/s of DRAM. None: not known.

    dram_path_gb_per_s: of DRAM's way through the core's clock domain, which low clocks make narrower than DRAM itself.
    power_limit_w: the power in W at which the platform throttles, constant power included. random_gaccess_per_s:
    accesses of DRAM in no order, in 1e9 a second.
    """

    sp_gflops: float | None = None
    dp_gflops: float | None = None
    dram_gb_per_s: float | None = None
    why: str = ""
    marks: Mark = NONE
    power_limit_w: float | None = None
    dram_path_gb_per_s: float | None = None
    random_gaccess_per_s: float | None = None


class Multiprocessors(Struct, frozen=True):
    """A GPU's units, for a kernel's time by component ([S] 5.5, [T] 3.4.4): section [time_components] of a table.

    number: N_SM. lanes: class of instructions -> functional units of one multiprocessor, U; `load_store` also serves
    shared memory. latency_cycles: L_mem, of a load from DRAM. transaction_byte: of a load. blocks, warps, registers,
    shared_byte: the most that one multiprocessor holds at a time. core_mhz: of tables without settings.
    """

    number: float
    lanes: Mapping[str, float]
    schedulers: float
    latency_cycles: float
    transaction_byte: float
    blocks: float
    warps: float
    registers: float
    shared_byte: float
    source: str
    core_mhz: float | None = None
    why: str = ""
    marks: Mark = NONE


class Described(ShortRepr, Struct, frozen=True, kw_only=True):
    """What a cost table says of itself and of its GPU or CPU at every setting.

    books: "served" or "accessed". notes: sentences that belong beside every number made with it. relative: voltages are
    relative to those of a reference setting, and prices hold there. basis: what the prices rest on (`BASES`); None: the
    table does not say. processor: CPU or GPU. sm_count: multiprocessors of the GPU; busy_mhz: their clock at full load,
    where the setting does not say it; None: not said.
    """

    name: str
    device: str
    source: str
    books: str
    notes: tuple[str, ...] = ()
    relative: bool = False
    basis: str | None = None
    processor: str = GPU
    multiprocessors: Multiprocessors | None = None
    sm_count: float | None = None
    busy_mhz: float | None = None


DEFAULT = "the table's default"  # where nothing tells the clocks of a run, and nobody asks for some: no fact of it


class Costs(Described, frozen=True, kw_only=True):
    """A cost table evaluated at one setting: what every count pays, and constant power in W.

    charges: word of the vocabulary -> what it pays; a word that is not in it has no price, and `unpriced` may say why.
    prices: the table's own named prices, for rooflines and balances. marks: those of all charges and constant power.
    factor: what a meter scaled the table by. constant_held: what the board's limit took constant power times, where
    that alone is above it. at_once: how many kernels, which ran at a time, share constant power.
    cores: of a CPU, that its peaks and constant power are of; cores_mhz: the clock that a log tells of them, which may
    be another than that of the setting. None: not told.
    """

    setting: Setting
    setting_from: str
    charges: Mapping[str, Charge]
    constant_power_w: float
    constant_why: str
    constant_marks: Mark
    marks: Mark
    peaks: Peaks = Peaks()
    prices: Mapping[str, Price] = field(default_factory=dict)
    unpriced: Mapping[str, str] = field(default_factory=dict)
    factor: float = 1.0
    constant_held: float = 1.0
    at_once: float = 1.0
    cores: float | None = None
    cores_mhz: float | None = None

    def shared_by(self, at_once: float) -> "Costs":
        """The costs with the share of constant power that a kernel has of which `at_once` run at a time, on average."""
        if at_once == self.at_once:
            return self
        share = self.at_once / at_once
        note = f"{at_once:.3g} kernels ran at a time on average, and share the {self.constant_power_w:.4g} W."
        return replace(
            self,
            constant_power_w=share * self.constant_power_w,
            constant_marks=self.constant_marks | Mark.ESTIMATED,
            constant_held=share * self.constant_held,
            at_once=at_once,
            notes=(*self.notes, note),
        )

    def marked(self, marks: Mark) -> "Costs":
        """The costs with more marks on constant power and on every charge that pays."""
        paying = {word: charge for word, charge in self.charges.items() if charge.pays}
        charges = {word: replace(charge, marks=charge.marks | marks) for word, charge in paying.items()}
        charges = {**self.charges, **charges}
        return replace(self, charges=charges, constant_marks=self.constant_marks | marks, marks=self.marks | marks)

    def scaled(self, factor: float) -> "Costs":
        """The costs with all prices and constant power times a factor that a meter gave; all become ESTIMATED."""
        marked = self.marked(Mark.ESTIMATED)
        return replace(
            marked,
            charges={word: replace(charge, pj=charge.pj * factor) for word, charge in marked.charges.items()},
            prices={name: replace(price, pj=price.pj * factor) for name, price in self.prices.items()},
            constant_power_w=self.constant_power_w * factor,
            factor=self.factor * factor,
        )

    @property
    def peaks_as_run(self) -> Peaks:
        """The peaks at the clock that the cores had in the log; of DRAM no more than its path to the cores carries."""
        faster = 1.0
        if self.cores_mhz and self.setting.core_mhz:
            faster = self.cores_mhz / self.setting.core_mhz
        of_clock = {name: getattr(self.peaks, name) for name in ("sp_gflops", "dp_gflops", "dram_path_gb_per_s")}
        moved = replace(self.peaks, **{name: peak * faster for name, peak in of_clock.items() if peak is not None})
        if moved.dram_gb_per_s is None or moved.dram_path_gb_per_s is None:
            return moved
        return replace(moved, dram_gb_per_s=min(moved.dram_gb_per_s, moved.dram_path_gb_per_s))

    @property
    def setting_data(self) -> dict[str, float | None]:
        """Clocks in MHz and voltages as documents hold them: `core_v` in V, or `core_v_rel` of a reference's."""
        setting = self.setting
        clocks = {"core_mhz": setting.core_mhz, "memory_mhz": setting.memory_mhz}
        if not self.relative:
            return {**clocks, "core_v": setting.core_v, "memory_v": setting.memory_v}
        relative = {"core_v_rel": setting.core_v, "memory_v_rel": setting.memory_v}
        return {**clocks, "core_v": None, "memory_v": None, **relative}


class Point(Struct, frozen=True):
    """A setting at which prices are evaluated. found: how it was chosen, in words. marks: of each domain's voltage."""

    setting: Setting
    found: str
    marks: Mapping[str, Mark] = field(default_factory=lambda: {CORE: NONE, MEMORY: NONE})


class Term(Struct, frozen=True):
    """A price, term of constant power or peak as a cost table's file has it: number times powers of clock and voltage.

    domain: whose clock and voltage these are. mhz, volts: the powers. A price in pJ/V^2 has a square of volts ([FMM]
    eqs. 6, 7), a term of constant power a volt (eq. 8), or a clock and a square: a clock tree's; a peak a clock, for
    each cycle.
    """

    name: str
    number: float
    domain: str | None
    mhz: int = 0
    volts: int = 0

    def at(self, point: Point) -> tuple[float, str, Mark]:
        """The term's value at a setting: (value in the term's unit, the arithmetic as text, the marks)."""
        if self.domain is None:
            return self.number, f"{self.number:g}", NONE
        value, factors = self.number, [f"{self.number:g}"]
        mhz, volts = point.setting.mhz(self.domain), point.setting.volts(self.domain)
        if self.mhz:
            assert mhz is not None, "a checked table has the clocks that it needs"
            value *= mhz
            factors.append(f"{mhz:g}")
        if self.volts:
            assert volts is not None, "and the voltages"
            value *= volts**self.volts
            factors.append(f"{volts:.5g}" + when(self.volts == 2, "^2"))
        return value, " * ".join(factors), point.marks[self.domain]


class Voltages(Struct, frozen=True):
    """A cost table's core voltages that nobody read: what they are ("carried over from ..."), and marks for them."""

    are: str = ""
    marks: Mark = NONE


class Statement(Struct, frozen=True):
    """What a cost table says of one word. kind: "pays" (a formula of prices), "nothing", or "unpriced"."""

    kind: str
    formula: Formula | None
    why: str
    marks: Mark

    def charge(self, prices: Mapping[str, Price]) -> Charge:
        """The charge of one count of the word at these prices, with the marks of both."""
        if self.formula is None:
            return Charge(False, 0.0, None, self.why, NONE)
        marks = self.marks
        for name in self.formula.names:
            marks |= prices[name].marks
        pj = float(self.formula({name: prices[name].pj for name in self.formula.names}))
        return Charge(True, pj, self.formula.text, self.why, marks)


class Constant(Struct, frozen=True):
    """Constant power as a cost table's file gives it: a sum of terms, times the sockets in use.

    is_per_socket: of a CPU, the terms are those of one socket. sockets: below 1 if only some of its cores are in use.
    cores: of a socket; None: not told.
    """

    terms: tuple[Term, ...]
    why: str
    marks: Mark
    is_per_socket: bool = False
    sockets: float = 1
    cores: int | None = None

    def at(self, point: Point) -> tuple[float, str, Mark]:
        """Constant power pi0 at a setting ([FMM] eq. 8): (W, the arithmetic as text, the marks)."""
        watts, formulas, marks = 0.0, [], self.marks
        for term in self.terms:
            power_w, formula, of_term = term.at(point)
            watts += power_w
            formulas.append(formula)
            marks |= of_term
        if self.sockets == 1:
            return watts, " + ".join(formulas), marks
        return watts * self.sockets, f"{self.sockets:.4g} * ({' + '.join(formulas)})", marks


class Peak(Struct, frozen=True):
    """The highest throughputs as a cost table's file gives them, by their names in `Peaks`."""

    terms: Mapping[str, Term]
    why: str
    marks: Mark

    def at(self, point: Point) -> Peaks:
        """The cost table's peaks at a setting, in Gflop/s, GB/s and so on."""
        # What is for each cycle, at so many MHz: in 1e9 a second.
        throughputs = {name: term.at(point)[0] / 1e3**term.mhz for name, term in self.terms.items()}
        return Peaks(**throughputs, why=self.why, marks=self.marks)


class FitRecord(ShortRepr, Struct, frozen=True, eq=False):
    """How a fitted table was made, and how far to trust it: the section [fit] of its file (docs/costs.md).

    data: plain values as they stand there. replicas: name of a price or of a term of constant power -> its value in
    each fit to benchmarks drawn at random, at the reference setting.
    """

    data: Mapping[str, Any]
    replicas: Mapping[str, tuple[float, ...]]

    @property
    def number(self) -> int:
        """The number of replicas of the cost table."""
        return len(next(iter(self.replicas.values()), ()))


class Board(Struct, frozen=True):
    """Other devices that a cost table serves, and what is different there.

    devices: as logs name them; "CC 9.0" is any GPU of that compute capability that its log does not name.
    assumed: nobody measured them, so every energy is. settings: beside those of the table. core_mhz: the highest clock,
    and the default, where it is lower. constant, interval_constant_w, peak, memory_mhz, sm_count: replace those of the
    table. wider: price, or "constant_power" -> the factor by which its interval is wider at both ends.
    """

    devices: tuple[str, ...]
    why: str
    assumed: bool = False
    constant: Constant | None = None
    interval_constant_w: Range | None = None
    peak: Peak | None = None
    memory_mhz: float | None = None
    sm_count: float | None = None
    wider: Mapping[str, float] = field(default_factory=dict)
    settings: tuple[Setting, ...] = ()
    core_mhz: float | None = None


class Scale(Struct, frozen=True):
    """The factor on all prices and constant power by which a table was scaled to a meter, and each replica's factor."""

    factor: float
    replicas: tuple[float, ...] = ()


class Intervals(Struct, frozen=True):
    """The interval of each price of a cost table, and of its constant power, at one setting.

    prices_pj: price -> (low, high) in pJ. constant_w: in W. meaning: what spans them: "zero to random operands".
    core_v_fall: the least and the most that the core's voltage falls below the default setting's, as a factor on how
    much it does in the table.
    """

    prices_pj: Mapping[str, Range] = field(default_factory=dict)
    constant_w: Range | None = None
    meaning: str = ""
    core_v_fall: Range = (1.0, 1.0)

    def wider(self, factors: Mapping[str, float]) -> "Intervals":
        """The intervals with lows divided and highs multiplied by the factor of each price or "constant_power"."""
        prices = {name: _widened(range_, factors.get(name, 1.0)) for name, range_ in self.prices_pj.items()}
        constant = mapped(_widened, self.constant_w, factors.get(CONSTANT_POWER, 1.0))
        return replace(self, prices_pj=prices, constant_w=constant)

    def replicas(
        self, prices_pj: Mapping[str, float], constant_w: float
    ) -> list[tuple[dict[str, float], float, float]]:
        """For each replica (factors on prices by name, on constant power, on the voltage's fall), spanning intervals.

        Operand data makes all prices low or high together, so they move as one, from low through the price to high;
        constant power moves on its own, and the voltage with it, for a chip that needs less of it leaks less. Counts
        times prices are piecewise linear in these moves, so the least and the greatest energy over the replicas are the
        ends of its interval; so it is for a difference of two energies at one setting.
        """
        constant = self.constant_w or (constant_w, constant_w)
        if not any(high > low for low, high in [*self.prices_pj.values(), self.core_v_fall, constant]):
            return []
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
    """The factor on `value` that moves it to its interval's low end (step -1), to the high one (1), or not (0)."""
    if not value:
        return 1.0
    end = range_[0] if step < 0 else range_[1]
    return 1 + abs(step) * (end / value - 1)
