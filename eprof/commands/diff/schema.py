"""The document `eprof.diff/1` (docs/diff.md), typed: its structures are the JSON, field by field, in this order.

What is not known is None. `marks` are words (`eprof.base.vocabulary.mark_names`), energies joules.
"""

from typing import Any

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from eprof.base.optional import only
from eprof.base.vocabulary import Nouns, nouns_of
from eprof.lab.welch import Test
from eprof.profile.schema import RunJoules

SCHEMA = "eprof.diff/1"
Range = list[float]
# A field that is not there at all; whoever reads it has looked first whether it is.
_ABSENT: Any = UNSET


class KernelPart(Struct, frozen=True, kw_only=True):
    """A part of the change of one kernel: of one word ("dram_read"), by changed counts, time or price.

    old, new: the counts, bytes or seconds; None: that side did not count it.
    """

    what: str
    kind: str
    because: str
    old: float | None
    new: float | None
    change_j: float
    marks: list[str]


class Part(KernelPart, frozen=True, kw_only=True):
    """A part of the change of OLD to NEW. kernel: None for all matched kernels, else the one that came or went.

    interval_j: how far `change_j` is known; None: not known.
    """

    unit: str
    old_j: float
    new_j: float
    kernel: str | None
    kernels: str
    interval_j: Range | None = None


class Step(Struct, frozen=True):
    """Parts of one group of counts ("dram") and reason, added up; group, because: None of kernels of one side alone."""

    group: str | None
    because: str | None
    kernels: str
    words: list[str]
    names: int
    change_j: float
    marks: list[str]
    interval_j: Range | None = None


class Cause(Struct, frozen=True):
    """What made energy change, joules, with the constant energy of the time that it explains.

    what: a group of counts ("dram"), one of the "other" instructions ("warp_issue"), "launches", "time" (that no count
    explains), "model" (the modelled time rests on another efficiency), "setting", "cost", "meter", "limit" (the board's
    power limit), "appeared", "vanished". old, new: what it counts. time_s: the change of time that it explains, and
    constant_j the part of `change_j` that this is. share: of the whole change. is_told: whether its prices tell how
    large it is. instead: the precision that took over its work. through: why DRAM bytes changed, where as many are
    asked for.
    counters: "other" where OLD and NEW count it from other counters, so that the change may be their method.
    """

    what: str
    old: float
    new: float
    unit: str
    change_j: float
    share: float | None
    constant_j: float
    time_s: float
    is_told: bool
    instead: str | None = None
    through: str | UnsetType = UNSET
    counters: str | UnsetType = UNSET


class Unlike(Struct, frozen=True):
    """A fact that is not the same on both sides: arguments, GPU, clocks, prices, environment, launches."""

    what: str
    old: str
    new: str


class Log(Struct, frozen=True):
    """A log of OLD, or NEW, and the command that it is of."""

    path: str
    format: str
    sha256: str
    command: str | None


class Device(Struct, frozen=True):
    """A GPU or CPU of the logs. processor: "cpu"; absent of a GPU."""

    name: str | None
    index: int | None
    capability: str | None
    processor: str | UnsetType = UNSET


class TableOfSide(Struct, frozen=True):
    """The cost table of OLD, or NEW, at its setting. serves: whether it is for the logs' GPU, if they name one."""

    name: str
    device: str
    source: str
    books: str
    setting: dict[str, float | None]
    setting_from: str | None
    constant_power_w: float
    marks: list[str]
    basis: str | None = None
    serves: bool = True


class ToMeter(Struct, frozen=True):
    """The joules that a meter saw of OLD, or NEW, and the factor on its prices; means over the repeats."""

    metered_j: float
    factor: float


class Side(Struct, frozen=True):
    """OLD or NEW; numbers are means over its repeats. compared_j: the energy that the change is of.

    interval_j: by family, and of the total. costs_of_others: of several GPUs, each with prices of its own; `costs` has
    those of the one that takes most. copies_s: how long copies took, beside the kernels; absent where the log tells
    none. still_s, still_j: how long no kernel ran after a GPU's first work, and the constant energy of that time; none
    of it is in the change. own_clocks: those of the log, where prices were asked for at others.
    """

    title: str
    name: str
    inputs: list[Log]
    devices: list[Device]
    definition: str
    costs: TableOfSide | None
    repeats: int
    launches: float | None
    time_s: float | None
    time_marks: list[str]
    time_from: str | None
    power_w: float | None
    energy_j: RunJoules
    energy_marks: dict[str, list[str]]
    compared_j: float | None
    marks: list[str]
    interval_j: dict[str, Range | None] | None = None
    to_meter: ToMeter | UnsetType = UNSET
    costs_of_others: list[TableOfSide] | UnsetType = UNSET
    copies_s: float | UnsetType = UNSET
    still_s: float | UnsetType = UNSET
    still_j: float | UnsetType = UNSET
    own_clocks: str | UnsetType = UNSET

    @property
    def prices(self) -> list[TableOfSide]:
        """The cost tables of the GPUs of OLD, or NEW; none where nothing is priced."""
        return [*filter(None, [self.costs]), *(self.costs_of_others or ())]


class LeftOut(Struct, frozen=True):
    """A word ("l2_read") that is left out of the change, in how many kernels, why, and the joules each side knows."""

    what: str
    kernels: int
    old_j: float | None
    new_j: float | None
    why: str


class Count(Struct, frozen=True):
    """The totals of a word over all kernels of OLD and of NEW. change: None where a side lacks a part of it.

    simpler: how a simulated device counts simpler than a GPU, "no caches".
    """

    old: float | None
    new: float | None
    change: float | None
    unit: str
    marks: list[str]
    simpler: str | UnsetType = UNSET


class Model(Struct, frozen=True):
    """The change by flops and DRAM bytes alone (`causes.assess`). missing: why not; all other fields are absent then.

    break_even_work_factor: at so many times the work nothing is saved any more.
    """

    missing: str | None
    precision: str = _ABSENT
    work_factor: float = _ABSENT
    traffic_factor: float = _ABSENT
    intensity_flop_per_byte: float = _ABSENT
    time_balance: float = _ABSENT
    energy_balance: float = _ABSENT
    speedup: float = _ABSENT
    greenup: float = _ABSENT
    break_even_work_factor: float = _ABSENT


class Tests(Struct, frozen=True):
    """Welch's tests of NEW against OLD over repeats, of J, s and metered J; None without repeats.

    dated: whether all runs tell when they began, so that those of one side alone were not all the first.
    """

    confidence: float
    method: str
    energy: Test | None
    time: Test | None
    measured: Test | None
    dated: bool


class Gate(Struct, frozen=True):
    """The outcome of one `--fail-above`. failed: None if it cannot be judged; why_not says why.

    is_noise: repeats do not show a change, and it does not fail. share: of an energy above constant power, in all of
    NEW's that is compared, where times were measured.
    """

    gate: str
    what: str
    kernel: str | None
    limit: float
    old: float | None = None
    new: float | None = None
    unit: str = ""
    growth: float | None = None
    failed: bool | None = None
    why_not: str | None = None
    is_noise: bool = False
    share: float | None = None


class Match(Struct, frozen=True):
    """How two kernels were matched, and how alike their names are: 0 to 1; 1 if they are equal."""

    how: str
    score: float


class KernelSide(Struct, frozen=True):
    """A kernel as OLD, or NEW, ran it. energy_j: predicted; compared_j: as far as the other side knows it, too."""

    name: str
    device: str | None
    launches: float
    time_s: float | None
    energy_j: float | None
    compared_j: float | None
    marks: list[str]


class Intervals(Struct, frozen=True):
    """How intervals are made. share: as much of what the replicas of the prices make of the change lies inside.

    paired: each replica prices both sides; else the two sides have tables of their own. within: in the intervals of the
    sides, the factor that nine of ten kernels which the fits have not seen are off at most; null: not measured of both.
    """

    share: float
    replicas: int
    paired: bool
    within: float | None = None


class Kernel(Struct, frozen=True):
    """A kernel, or group, of both sides or of one, and its change. match: None where only one side has it."""

    name: str
    status: str
    match: Match | None
    old: KernelSide | None
    new: KernelSide | None
    change_j: float | None
    speedup: float | None
    greenup: float | None
    partial: bool
    marks: list[str]
    test: Test | None
    parts: list[KernelPart]
    interval_j: Range | None = None
    causes: list[Cause] = []


class AboveConstant(Struct, frozen=True):
    """The difference above constant power, where time is a model: fields as in `Document`, of what was counted.

    constant_old_j, constant_new_j: constant energy at the roofline's own speed, and at the efficiency in force.
    """

    old_j: float
    new_j: float
    change_j: float
    interval_j: Range | None
    change_share: float | None
    interval_share: Range | None
    greenup: float | None
    steps: list[Step]
    causes: list[Cause]
    test: Test | None
    marks: list[str]
    kernels: list[Kernel]
    constant_old_j: Range
    constant_new_j: Range
    efficiency_old: float | None
    efficiency_new: float | None


class WithStill(Struct, frozen=True):
    """The compared energy and constant power while no kernel ran, together: fields as in `Document`."""

    old_j: float
    new_j: float
    change_share: float | None
    interval_share: Range | None


class PerLaunch(Struct, frozen=True):
    """What would change if NEW launched each kernel of both sides as often as OLD: fields as in `Document`."""

    change_j: float
    interval_j: Range | None
    change_share: float | None
    interval_share: Range | None
    steps: list[Step]
    causes: list[Cause]


class Document(Struct, frozen=True, kw_only=True):
    """The difference of NEW from OLD. above_constant: only where the time of OLD or NEW is a model.

    a_second: only where these sides ("OLD") tell nothing but rates, and so all is of one second: joules are W.
    per_launch: only of GPUs' kernels that both sides have, in other numbers of launches. with_still: where both sides
    tell when no kernel ran.
    """

    schema: str = SCHEMA
    eprof: str
    created_utc: str
    command_line: list[str]
    old: Side
    new: Side
    change_j: float | None
    interval_j: Range | None = None
    change_share: float | None
    interval_share: Range | None = None
    intervals: Intervals | None = None
    change_time_s: float | None
    speedup: float | None
    greenup: float | None
    powerup: float | None
    is_zero: bool
    rests_on_time: bool
    same_inputs: bool
    partial: bool
    parts: list[Part]
    steps: list[Step]
    causes: list[Cause]
    unlike: list[Unlike]
    uncompared: list[LeftOut]
    unknown: list[LeftOut]
    counts: dict[str, Count]
    model: Model
    tests: Tests
    gates: list[Gate]
    marks: list[str]
    warnings: list[str]
    above_constant: AboveConstant | UnsetType = UNSET
    per_launch: PerLaunch | UnsetType = UNSET
    with_still: WithStill | UnsetType = UNSET
    a_second: list[str] | UnsetType = UNSET
    by: list[str] | UnsetType = UNSET  # `--by`: groups are compared in the place of kernels
    kernels: list[Kernel]

    @property
    def has_energy(self) -> bool:
        """Whether any energy is known on both sides."""
        return self.change_j is not None

    @property
    def is_metered(self) -> bool:
        """Whether both sides are scaled to what their meters saw."""
        return bool(self.old.to_meter and self.new.to_meter)

    @property
    def unit(self) -> str:
        """The unit in which kernels are compared: J (W: `a_second`), or s if no energy is."""
        return self.nouns.joule if self.has_energy else "s"

    def amount(self, kernel: KernelSide) -> float | None:
        """What a kernel of OLD, or NEW, takes of what is compared, in `unit`; None: not known."""
        return kernel.compared_j if self.has_energy else kernel.time_s

    @property
    def nouns(self) -> Nouns:
        """The words for what is compared: "kernels", "functions" of CPUs, "groups" by `--by`; "energy", "power"."""
        processors = {device.processor for side in (self.old, self.new) for device in side.devices}
        nouns = nouns_of(only(processors))
        if self.a_second is not UNSET:
            nouns = replace(nouns, energy="power", joule="W", pace=" a second")
        return nouns if self.by is UNSET else replace(nouns, kernel="group", kernels="groups")
