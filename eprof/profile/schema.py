"""The types of `eprof.profile/1` and `eprof.roofline/1`: what is saved, and what every report reads.

Each structure is its JSON (docs/profile-json.md): a field is always written, unless it may be UNSET and is. SI units,
prices in pJ; None is a number that is not known. `marks` are words, in the order of `base/vocabulary.py`.
"""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from msgspec import UNSET, Struct, UnsetType, convert, field, to_builtins

from eprof import __version__
from eprof.base.gpus import Traits
from eprof.base.optional import only
from eprof.base.text import pattern
from eprof.logs.log import Copies, During, HostCalls, OfShape

PROFILE, ROOFLINE = "eprof.profile/1", "eprof.roofline/1"
Marks = list[str]
Range = list[float | None]
T = TypeVar("T", bound=Struct)
WORTH_IT = 0.01  # of the kernels' time: gaps between them, or copies, that take so much
_SIGN = pattern(rb'"schema"\s*:\s*"(eprof\.[a-z]+/\d+)"')
_HEAD = 400  # bytes in which a document says what it is


def kind_of(path: Path) -> str | None:
    """The kind of eprof's document in a JSON file, such as "eprof.profile/1"; None if it is no document of eprof."""
    if path.suffix != ".json" or not path.is_file():
        return None
    with path.open("rb") as file:
        found = _SIGN.search(file.read(_HEAD))
    return found[1].decode() if found else None


def typed(document: Mapping[str, Any] | Struct, kind: type[T]) -> T:
    """A document as a structure of this kind; it may be one already, or plain data (JSON, `Energy.document()`)."""
    return document if isinstance(document, kind) else convert(document, kind)


def now() -> str:
    """The UTC time now, as documents have it: "2025-01-31T12:00:00Z"."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Document(Struct, frozen=True, kw_only=True):
    """The fields that the documents of all commands begin with, in this order."""

    schema: str
    eprof: str = __version__
    title: str
    created_utc: str = field(default_factory=now)
    command_line: list[str]

    def plain(self) -> dict[str, Any]:
        """The document as plain data, in the order of its JSON."""
        return dict(to_builtins(self))


class Device(Struct):
    """A profiled GPU or CPU, and how its compute capability, or microarchitecture, is known. processor: "cpu".

    told: what the log tells of the board of a GPU that it does not name.
    """

    name: str | None
    index: int | None
    capability: str | None
    capability_from: str
    processor: str | UnsetType = UNSET
    told: Traits | UnsetType = UNSET


class Input(Struct):
    """A log as it was read."""

    path: str
    format: str
    lines: int
    skipped_lines: int
    sha256: str | None
    size_bytes: int | None
    command: str | None
    notes: list[str]


class Definition(Struct):
    """The file of `counters/` that says what the counters mean: its name, and where its rules come from."""

    name: str
    source: str


class Charge(Struct):
    """What one instruction or byte of a count pays."""

    pays: bool
    pj: float
    formula: str | None
    why: str | None
    marks: Marks


class Cores(Struct):
    """How many cores of a CPU a program kept busy, and how many a socket of the cost table's CPU has."""

    busy: float
    of: int


class TableInForce(Struct, kw_only=True):
    """The cost table in force at one setting. fit: what a fitted table says of its fit (docs/costs.md).

    basis: what its prices rest on; None: not stated. interval_is: what the intervals of its energies span. gpu_match:
    whether it was made for the profiled GPU ("own"), serves it beside another ("similar"), or is another's ("other").
    held: the factor on the prices of all but constant power where power limits of boards bind, of all kernels together.
    cores: the cores whose share of a socket's constant power this is. of: the devices whose kernels these price, where
    other devices have other costs (`Profile.costs_of_others`).
    """

    name: str
    device: str
    source: str
    basis: str | None = None
    interval_is: str | None = None
    books: str
    setting: dict[str, float | None]
    setting_from: str
    constant_power_w: float
    constant_why: str | None
    charges: dict[str, Charge]
    marks: Marks
    notes: list[str]
    gpu_match: str = "own"
    held: float = 1.0
    cores: Cores | UnsetType = UNSET
    fit: dict[str, Any] | UnsetType = UNSET
    of: list[str | None] | UnsetType = UNSET


class Joules(Struct):
    """Energy in J by family: of instructions, of data movement, of constant power; and the total."""

    computation: float | None
    data: float | None
    constant: float | None
    total: float | None


class RunJoules(Joules):
    """Energy by family of what ran. measured: J that a meter saw, of the whole run only."""

    measured: float | None = None


class JouleMarks(Struct):
    """The marks of `Joules`."""

    computation: Marks
    data: Marks
    constant: Marks
    total: Marks


class Count(Struct, kw_only=True, gc=False):
    """A count of a kernel or of a group: instructions or bytes. lower_bound: known, but not all of it."""

    value: float | None
    unit: str
    energy_j: float | None
    marks: Marks
    lower_bound: bool | UnsetType = UNSET


class Derivation(Struct):
    """The formula of counters that a count was made with, and for how many kernels."""

    formula: str | None
    note: str | None
    marks: Marks
    kernels: int


class TotalCount(Count, kw_only=True):
    """A count of the whole program, and how it was made."""

    how: list[Derivation]


class Line(Struct):
    """A line of a function's source, "mm.c:12", with its energy above constant power and its counts."""

    place: str
    above_constant_j: float | None
    counts: dict[str, Count]


class Caller(Struct):
    """A function of the program beneath which a share of a library's function ran, most at a line ("mm.c:12")."""

    name: str
    place: str | None
    share: float


class Cause(Struct):
    """A part of the energy: groups of counts together, their share of what was counted, and its interval."""

    groups: list[str]
    share: float
    interval: Range | None = None


class Causes(Struct):
    """What takes the energy of a kernel, a group or the whole, largest first (`profile/causes.py`).

    largest: "sure", where no other part can be larger, as far as the prices are known; "probable", where none is
    larger in two thirds of the replicas; else "open".
    """

    largest: str
    parts: list[Cause]


class Kernel(Struct, kw_only=True):
    """One kernel on one device. interval_j: of its total energy; by_time_j: what metered energy, by time, would be.

    inclusive_j: with all that it calls, where the log tells who calls whom; an estimate (docs/running.md);
    inclusive_above_j: of that, what is above constant power. lines: those that take most, where the log tells lines.
    callers: of a library's function, the program's own. held: as `costs.held`, where its board's limit binds it. signs:
    what tells why it waits, in shares: "occupancy", and what `counts.definition.SHARES` names. And the "blocks" of a
    launch, the "threads" of a block, in the mean, and the GPU's "multiprocessors". launch_s: the shortest launch and
    the longest where a log tells them, else the mean of a launch in the run in which that is shortest, and longest;
    where they differ much. by_shape: its launches by the shape of their blocks, where that differs for as many threads.
    """

    name: str
    device: str | None
    launches: int
    time_s: float | None
    time_marks: Marks
    power_w: float | None
    counts: dict[str, Count]
    energy_j: RunJoules
    energy_marks: JouleMarks
    interval_j: Range | None = None
    intensity_flop_per_byte: float | None
    marks: Marks
    held: float | UnsetType = UNSET
    by_time_j: float | None | UnsetType = UNSET
    inclusive_j: float | None | UnsetType = UNSET
    inclusive_above_j: float | None | UnsetType = UNSET
    inclusive_marks: Marks | UnsetType = UNSET
    lines: list[Line] | UnsetType = UNSET
    callers: list[Caller] | UnsetType = UNSET
    causes: Causes | UnsetType = UNSET
    signs: dict[str, float] | UnsetType = UNSET
    launch_s: list[float] | UnsetType = UNSET
    by_shape: tuple[OfShape, ...] | UnsetType = UNSET


class Group(Struct, kw_only=True):
    """Kernels that belong together, by their places in the document. stands_for: how many small groups these are.

    interval_j: of their total energy.
    """

    name: str
    kernels: list[int]
    launches: int
    time_s: float | None
    time_marks: Marks
    power_w: float | None
    counts: dict[str, Count]
    energy_j: RunJoules
    energy_marks: JouleMarks
    interval_j: Range | None = None
    intensity_flop_per_byte: float | None
    marks: Marks
    stands_for: int | UnsetType = UNSET
    causes: Causes | UnsetType = UNSET


class Operator(Struct, kw_only=True):
    """An operator of a framework, as one module called it. module: the path of modules and annotations around it.

    kernels: the place in the document of each kernel that it launched, and its share of the kernel's energy.
    """

    name: str
    module: str | None
    launches: int
    time_s: float | None
    time_marks: Marks
    energy_j: Joules
    energy_marks: JouleMarks
    kernels: list[tuple[int, float]]
    marks: Marks


class Spread(Struct):
    """Smallest, median and largest of some MPI ranks in time, energy or launches."""

    min: float | None
    median: float | None
    max: float | None


class Ranks(Struct):
    """How MPI ranks differ. imbalance: the largest time over the mean, less 1."""

    number: int
    time_s: Spread
    energy_j: Spread
    launches: Spread
    imbalance: float | None
    slowest: str | None
    time_marks: Marks
    energy_marks: Marks


class Level(Struct):
    """A memory level of a machine."""

    name: str
    pj_per_byte: float
    energy_balance: float


class Point(Struct):
    """Roofline, arch line and power line at one intensity."""

    intensity_flop_per_byte: float
    flop_per_s: float
    flop_per_j: float
    power_w: float


class Machine(Struct, kw_only=True):
    """A GPU or CPU at one setting and precision, as its lines are drawn (`profile/rooflines.py`).

    access_b, access_pj, access_per_s, access_per_j: where all accesses of DRAM are at random, of such an access.
    of: as `TableInForce.of`.
    """

    name: str
    device: str
    setting: str
    precision: str
    number: float
    peak_flop_per_s: float
    dram_byte_per_s: float
    flop_pj: float
    dram_pj_per_byte: float
    constant_power_w: float
    power_cap_w: float | None
    time_balance: float
    energy_balance: float
    balance_gap: float
    flop_efficiency: float
    effective_energy_balance: float
    race_to_halt: bool
    capped_from: float | None
    capped_to: float | None
    best_flop_per_s: float
    peak_power_w: float
    peak_flop_per_j: float
    levels: list[Level]
    marks: Marks
    notes: list[str]
    basis: str | None = None
    lines: list[Point] | UnsetType = UNSET
    access_b: float | UnsetType = UNSET
    access_pj: float | UnsetType = UNSET
    access_per_s: float | UnsetType = UNSET
    access_per_j: float | UnsetType = UNSET
    of: list[str | None] | UnsetType = UNSET


class Intensities(Struct):
    """Flop per byte of each memory level."""

    shared: float | None
    l1: float | None
    l2: float | None
    dram: float | None
    l3: float | None | UnsetType = UNSET


class Limit(Struct, kw_only=True):
    """How far a kernel is from its limits. at_most: of which numbers only an upper bound is known.

    limited_by: "dram" or "flops", whichever takes all of roofline_time_s; UNSET where that is not known.

    mix_peak_flop_per_s: the peak of the kernel's own mix of instructions, in roofline documents.
    """

    work_flop: float | None
    flop_per_s: float | None
    flop_per_j: float | None
    roofline_time_s: float | None
    speed_share: float | None
    energy_share: float | None
    intensity_flop_per_byte: Intensities
    parts_j: dict[str, float | None]
    lever: str | None
    limited_by: str | UnsetType = UNSET
    at_most: list[str] | UnsetType = UNSET
    mix_peak_flop_per_s: float | UnsetType = UNSET


class Limits(Struct):
    """The machines of the precisions that the costs know, and the limits of each kernel, in the kernels' order."""

    machines: list[Machine]
    kernels: list[Limit]


class KernelCycles(Struct):
    """Modelled cycles of all launches of a kernel by component, and their time. active_warps: of one multiprocessor.

    rounds: of groups of active blocks, of one launch. missing: what was not known of the kernel. Nothing was counted
    where time_s is null.
    """

    time_s: float | None
    cycles: dict[str, float]
    active_warps: float
    rounds: float
    missing: list[str]


class TimeComponents(Struct):
    """Time of each kernel by component on a device, in the kernels' order. source, assumes: of its numbers."""

    device: str
    core_mhz: float
    source: str
    assumes: str
    marks: Marks
    kernels: list[KernelCycles]


class Interval(Struct):
    """The range that holds `share` of what the replicas of the prices make of the counts, in J.

    groups: by group of counts ("fp64", "dram"), those that cost something. within: the interval of a kernel is at least
    its energy times and divided by this factor; null: nobody measured how far off kernels are. uncounted: the most in J
    that what was not counted can take, by group of counts, and "total"; null: nothing bounds it. limit_w: the board's
    power limit in W, where that is what ends `total`; of so many `sockets` of a CPU, if not of one. apart: the prices
    are another CPU's, and so many times as much or as little may be right.
    """

    share: float
    replicas: int
    within: float | None = None
    computation: Range | None = None
    data: Range | None = None
    constant: Range | None = None
    total: Range | None = None
    groups: dict[str, Range | None] = {}
    uncounted: dict[str, float | None] = {}
    limit_w: float | UnsetType = UNSET
    sockets: int | UnsetType = UNSET
    apart: float | UnsetType = UNSET


class AtClocks(Struct, kw_only=True):
    """Modelled energy and time at one pair of clocks. this: whether the run was priced at these.

    offered: whether it may be recommended, as the table lists it and was fitted to its core clock.
    """

    core_mhz: float
    memory_mhz: float
    energy_j: float | None
    time_s: float | None
    this: bool
    offered: bool = True
    energy_range_j: Range | UnsetType = UNSET


class Clocks(Struct):
    """Energy and time at every pair of clocks that the table knows.

    voltages: what the core's are, where nobody read them: "carried over from ..."; None: read on such a GPU.
    """

    modelled: bool
    assumes: str
    marks: Marks
    settings: list[AtClocks]
    lowest: AtClocks
    fastest: AtClocks
    voltages: str | None = None


class Answer(Struct):
    """A what-if answer. asked: by the user, and not one of those that every report has."""

    question: str
    says: str
    assumes: str
    modelled: bool
    energy_j: Joules
    time_s: float | None
    change_j: float | None
    change_share: float | None
    time_share: float | None
    marks: Marks
    asked: bool


class ToMeter(Struct, kw_only=True):
    """How the costs were scaled so that kernels and idle time take what a meter saw (docs/metered.md).

    shape: the cost table; own: whether it was made for this GPU; basis: what it rests on. modelled_j: of kernels and
    idle time before the factor. idle_s: None: not known, taken for 0. within: nine kernels of ten are this factor from
    their true energy at most.
    """

    metered_j: float
    source: str
    shape: str
    own: bool
    basis: str | None
    factor: float
    modelled_j: float
    idle_s: float | None
    idle_j: float
    within: float


class ModelledTime(Struct):
    """That the time of simulated kernels is the roofline's over `efficiency`, and whether the user gave that."""

    efficiency: float
    given: bool


class Gaps(Struct):
    """How long no kernel of a trace ran from the GPU's first work to its last kernel, the constant energy of that time,
    and how long copies took. None of it is in the totals; None: not told. longest_s: of the longest gap; copied_s: of
    the gaps, what copies took; alone_s: how long copies ran while no kernel did, in gaps or not; first_s: of the gaps,
    what came before first launches of kernels that came again; during: what the CPU did in the longest gaps;
    short_gaps, short_s: those no longer than the CPU's next launch takes, and their time; before_s: what passed before
    the first work of all `runs`; copies: of which kinds they are. calls: of CUDA, where a summary tells these: time_s
    is then what they took beside kernels, if no two ran at a time; surely_s: what passed in any case. at_once: how many
    kernels ran at a time while any did, on average, which share constant power.
    """

    time_s: float | None
    energy_j: float | None = None
    copies_s: float = 0.0
    longest_s: float = 0.0
    copied_s: float = 0.0
    alone_s: float | None = None
    first_s: float = 0.0
    during: list[During] = []
    short_gaps: int = 0
    short_s: float = 0.0
    before_s: float = 0.0
    copies: list[Copies] = []
    surely_s: float | None = None
    calls: list[HostCalls] = []
    runs: int = 1
    at_once: float = 1.0

    @property
    def lasting_s(self) -> float:
        """How long copies ran while no kernel did; all their time, where the log does not tell when they ran."""
        return self.copies_s if self.alone_s is None else self.alone_s

    @property
    def still_s(self) -> float:
        """How long no kernel of the trace ran, in gaps and while copies did before and after."""
        return (self.time_s or 0.0) + max(self.lasting_s - self.copied_s, 0.0)


class RunTimes(Struct):
    """When `eprof run` began, how often it repeated the program, and what each repetition took without a profiler.

    alone_s: empty where logs time the kernels of each repetition. used_s: processor times; empty: not measured.
    """

    started_utc: str | None
    repeats: int
    alone_s: list[float]
    used_s: list[float]


class Profile(Struct, kw_only=True):
    """A priced profile: `eprof.profile/1`. commit: of the folder that it ran in, where the run recorded it.

    costs_of_others: of several GPUs, each with prices of its own; `costs` has those of the one that takes most.
    left_out_s: what a run of the program alone took beside `time_s`, by what it was. busy_cores: of a CPU whose
    constant power is a whole socket's. in_use: how many "cores", "sockets" and "cpus" a CPU's logs tell of.
    """

    schema: str = PROFILE
    eprof: str
    title: str
    created_utc: str
    command_line: list[str]
    inputs: list[Input]
    device: Device
    devices: list[Device]
    definition: Definition
    costs: TableInForce | None
    costs_of_others: list[TableInForce] | UnsetType = UNSET
    time_s: float | None
    time_marks: Marks
    time_from: str | None
    left_out_s: dict[str, float] | UnsetType = UNSET
    busy_cores: float | UnsetType = UNSET
    in_use: dict[str, float] | UnsetType = UNSET
    modelled_time: ModelledTime | UnsetType = UNSET
    power_w: float | None
    launches: int
    energy_j: RunJoules
    energy_marks: JouleMarks
    counts: dict[str, TotalCount]
    intensity_flop_per_byte: float | None
    marks: Marks
    commit: str | UnsetType = UNSET
    run: RunTimes | UnsetType = UNSET
    causes: Causes | UnsetType = UNSET
    to_meter: ToMeter | UnsetType = UNSET
    gaps: Gaps | UnsetType = UNSET
    grouped: str | UnsetType = UNSET
    groups: list[Group] | UnsetType = UNSET
    ranks: Ranks | UnsetType = UNSET
    operators: list[Operator] | UnsetType = UNSET
    limits: Limits | UnsetType = UNSET
    time_components: TimeComponents | UnsetType = UNSET
    interval_j: Interval | UnsetType = UNSET
    clocks: Clocks | UnsetType = UNSET
    what_if: list[Answer] | UnsetType = UNSET
    warnings: list[str]
    kernels: list[Kernel]

    @property
    def prices(self) -> list[TableInForce]:
        """The cost tables of all GPUs, that of the one that takes most first; none where nothing is priced."""
        return [*filter(None, [self.costs]), *(self.costs_of_others or ())]

    @property
    def constant_w(self) -> float | None:
        """The constant power of all prices in W; None without prices, or where GPUs have their own."""
        return only({costs.constant_power_w for costs in self.prices})

    @property
    def has_open_rest(self) -> bool:
        """Whether a meter gave the total, and does not tell what of it passed while no kernel ran."""
        return self.to_meter is not UNSET and self.to_meter.idle_s is None

    @property
    def resting_w(self) -> float:
        """The power while no kernel runs, W; 0 where it is not known."""
        at_once = self.gaps.at_once if self.gaps else 1.0
        return 0.0 if self.has_open_rest else at_once * (self.constant_w or 0.0)

    @property
    def still_s(self) -> float:
        """How long no kernel ran, s, in gaps and while copies did before and after; 0 if below 1 % of kernels' time.

        And 0 where a meter gave the total, which has it already.
        """
        if not self.gaps or self.to_meter:
            return 0.0
        return self.gaps.still_s * (self.gaps.still_s >= WORTH_IT * (self.time_s or math.inf))

    @property
    def idle_j(self) -> float:
        """The energy of the GPU in `still_s`, J; 0 if not known. No total of the profile has it."""
        power = self.resting_w
        if self.gaps and self.gaps.time_s:
            power = (self.gaps.energy_j or 0.0) / self.gaps.time_s
        return self.still_s * power


class Dot(Limit, kw_only=True):
    """A kernel below the lines of a roofline."""

    name: str
    device: str | None
    launches: int
    time_s: float | None
    energy_j: float | None
    power_w: float | None
    marks: Marks


class Region(Struct):
    """A stretch of flop/B (None: open) where one of two machines is better, least to most times; winner "": neither."""

    low: float | None = field(name="from")
    high: float | None = field(name="to")
    winner: str
    least: float
    most: float


class EqualPower(Struct):
    """How many of a machine draw as much power as the reference machine, and where in flop/B which is better."""

    name: str
    setting: str
    reference: str
    reference_setting: str
    number: float
    number_exact: float
    peak_power_w: float
    reference_peak_power_w: float
    faster: list[Region]
    more_efficient: list[Region]


class CapStep(Struct):
    """A machine with 1/`divisor` of its usable power: highest power in W, shares of it, of speeds and of flop/J."""

    divisor: int
    power_cap_w: float
    peak_power_w: float
    peak_power_share: float
    speed_shares: list[float]
    efficiency_shares: list[float]


class CapSweep(Struct):
    """A machine under lower and lower power caps. usable_power_w: above constant power, without a cap.

    intensities: the flop/B at which the steps have their shares.
    """

    usable_power_w: float
    intensities: list[float]
    steps: list[CapStep]


class CapTest(Struct):
    """Median errors of modelled speeds without a cap and with it, and the Kolmogorov-Smirnov test of the two."""

    kernels: int
    uncapped_percent: float
    capped_percent: float
    statistic: float
    p: float


class Roofline(Struct, kw_only=True):
    """Machines with their lines, and kernels below those of the first: `eprof.roofline/1`. processor: "cpu".

    to_count: advice, where no kernel can be held against the lines.
    """

    schema: str = ROOFLINE
    eprof: str = __version__
    title: str | None
    created_utc: str = field(default_factory=now)
    command_line: list[str]
    machines: list[Machine]
    equal_power: list[EqualPower]
    cap_sweep: CapSweep | UnsetType = UNSET
    cap_test: CapTest | UnsetType = UNSET
    inputs: list[Input]
    processor: str | UnsetType = UNSET
    to_count: str | UnsetType = UNSET
    kernels: list[Dot]
    warnings: list[str]
