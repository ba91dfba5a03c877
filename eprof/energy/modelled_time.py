"""Modelled time of kernels: the least by the roofline, the time by component, and the time at other clocks.

The roofline of a cost table, divided by an efficiency, is the time of kernels that ran on a simulated device.

By component (loads, computation, shared memory and its conflicts, texture, stores, bandwidth) it is Song's model
([S] 5.5), whose formulas were rebuilt from its prose (docs/time-components.md). On one multiprocessor a group of active
warps takes

    T_active = T_ld + sum of S + N_warps T_c + T_tex + T_st   cycles                                        (5.10)

and a kernel takes as many rounds of such groups as its blocks need (5.11). Bytes that DRAM cannot deliver by then are
waited for.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from operator import attrgetter

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Array, Bools, Columns, Floats, finite, known_or_zero, known_sum
from eprof.base.errors import UsageError
from eprof.base.optional import either, gathered, mapped
from eprof.base.text import phrase, when
from eprof.base.vocabulary import COMPUTATION_WORDS, COUNTS, ESTIMATED, INSTRUCTIONS, ISSUED, MISSING, SIMULATED, Mark
from eprof.costs import Costs, CostTable, Peaks
from eprof.costs.parts import Multiprocessors
from eprof.counts.counts import Counts
from eprof.counts.definition import COMPONENTS as OF_LAUNCH

# [FMM] IV-C: given its mix of instructions, the best that a tuned irregular kernel (the FMM's U list) can reach on a
# Jetson TK1 is slightly above a quarter of the peak; regular microbenchmarks come close to 1.
DEFAULT_EFFICIENCY = 0.25
_FLOPS = [name for name, count in COUNTS.items() if count.flops and count.group in ("fp32", "fp64")]
_DRAM = ("dram_read", "dram_write", "dram")  # the last where reads and writes are not told apart
UNDER_THE_ROOF = [*_FLOPS, *_DRAM]


class Modelled(Struct, frozen=True):
    """How times were modelled: in words, at which efficiency, and whether the user gave that one.

    shares_only: the user gave the time of all kernels together, and the model only shares it out.
    """

    how: str
    efficiency: float
    given: bool
    shares_only: bool = False


def checked_efficiency(share: float) -> float:
    """Check an efficiency: a share of the roofline above 0 and at most 1. Raises UsageError."""
    if not 0 < share <= 1:
        raise UsageError(f"--efficiency {share:g}: say a fraction of the peak, above 0 and at most 1.")
    return share


def has_modelled_time(counts: Counts) -> Bools:
    """Which kernels, (n_kernels,), have the time of `model_time`: they were simulated, and nobody gave a time."""
    return np.asarray((counts.rows.time_marks & SIMULATED) != 0)


def model_time(
    counts: Counts, costs: Costs, efficiency: float | None = None
) -> tuple[Counts, Modelled | None, list[str]]:
    """Give simulated kernels without a time the one of the roofline ([R] II; docs/model.md):

    T = max(W tau_flop, Q tau_mem) / efficiency, with W tau_flop summed over FP32 and FP64, and tau the reciprocals of
    the table's peaks at the setting. W in flops, Q in DRAM bytes, T in s; marked ESTIMATED and SIMULATED.
    Returns the counts, how their times were modelled (None if none was), and warnings. Raises UsageError if the
    efficiency is not above 0 and at most 1.
    """
    share = either(mapped(checked_efficiency, efficiency), DEFAULT_EFFICIENCY)
    is_simulated = np.asarray((counts.amount_marks.only(COMPUTATION_WORDS) & SIMULATED).any(axis=1))
    need = is_simulated & np.isnan(counts.rows.time_s)
    if not need.any():
        return counts, None, []
    seconds = roofline_s(counts.amounts, costs) / share
    modelled = need & ~np.isnan(seconds) & (seconds > 0)
    warnings = []
    if (need & ~modelled).any():
        warnings.append(
            f"The time of {(need & ~modelled).sum()} simulated {counts.nouns.kernels} is not modelled: they did no "
            f"floating-point work and moved no global memory, or {costs.name} does not tell the peak that it takes "
            "(its [peak] table)."
        )
    if not modelled.any():
        return counts, None, warnings
    # A roof over counts that are not whole is a roof too low: the time is a lower bound then.
    lost = (counts.amount_marks.only(UNDER_THE_ROOF) & MISSING).max(axis=1)
    marks = (counts.rows.time_marks & ~MISSING) | lost | ESTIMATED | SIMULATED
    given = efficiency is not None
    whose = when(given, "given") or "the default, what a tuned irregular kernel reaches on a Jetson TK1 ([FMM] IV-C)"
    roof = f"the roofline of {costs.name} at {costs.setting.label} MHz"
    how = f"modelled by {roof} and an efficiency of {share:g} ({whose})"
    rows = counts.rows.with_times(modelled, seconds, marks)
    return replace(counts, rows=rows), Modelled(how, share, given), warnings


def roofline_s(table: Columns, costs: Costs) -> Floats:
    """The least time at the peaks of `costs`, (n_kernels,) in s; NaN where a peak that is needed is not known."""
    return highest_s(roofs_s(table, costs))


def roofs_s(table: Columns, costs: Costs) -> dict[str, Floats]:
    """The time that each of "fp32", "fp64" and "dram" takes alone at its peak: name -> (n_kernels,) in s."""
    return at_peaks(under_the_roof(table), costs.peaks_as_run)


def under_the_roof(table: Columns, in_flops: Collection[str] = ()) -> dict[str, Floats]:
    """Flops ("fp32", "fp64") and DRAM bytes ("dram") of each kernel: name -> (n_kernels,); 0 where not known.

    Instructions whose kinds are not told are there as multiply-adds, whose place in the pipe they have. Totals that are
    `in_flops` are all of their width, as in `Counts.whole`.
    """
    work = {"fp32": np.zeros(len(table)), "fp64": np.zeros(len(table))}
    for name in _FLOPS:
        work[COUNTS[name].group] += known_or_zero(table[name]) * COUNTS[name].flops
    for total, of_kinds in work.items():
        told = known_or_zero(table.only([total])).sum(axis=1)
        work[total] = np.where(told > 0, told, of_kinds) if total in in_flops else of_kinds + 2 * told
    return {**work, "dram": known_or_zero(table.only(_DRAM)).sum(axis=1)}


def at_peaks(work: Mapping[str, Floats], peaks: Peaks) -> dict[str, Floats]:
    """The time that each part of `work` (`under_the_roof`) takes alone at its peak, s; NaN: its peak is not known."""
    giga_a_second = {"fp32": peaks.sp_gflops, "fp64": peaks.dp_gflops, "dram": peaks.dram_gb_per_s}
    taken_s = {}
    for group, peak in giga_a_second.items():
        taken_s[group] = np.where(work[group] == 0, 0.0, np.nan) if peak is None else work[group] / (peak * 1e9)
    return taken_s


def highest_s(roofs: Mapping[str, Floats]) -> Floats:
    """The roofline's time, (n_kernels,) in s, from the times of `roofs_s`: the longer of all flops and all bytes."""
    return np.maximum(roofs["fp32"] + roofs["fp64"], roofs["dram"])


COMPONENTS = ("loads", "computation", "shared", "conflicts", "texture", "stores", "bandwidth")
_WARP = 32
_WORD_BYTE = 4
# The class of lanes that a group of the vocabulary is worked on by; words of other groups have lanes of their own name.
_LANES = {"fp64": "fp64", "fp32": "fp32", "fp16": "fp16", "int": "integer", "sfu": "special"}
_NOT_COMPUTED = ("load_store", "tensor", *ISSUED)
_READ, _WRITTEN = ("l1_read", "l2_read", "dram_read"), ("l2_write", "dram_write")


class Machine(Struct, frozen=True):
    """The multiprocessors of a GPU at one setting. byte_per_s: of DRAM."""

    units: Multiprocessors
    core_hz: float
    byte_per_s: float

    @property
    def byte_per_cycle(self) -> float:
        """The part of one multiprocessor in the bandwidth, b = BW / (N_SM f)."""
        return self.byte_per_s / (self.units.number * self.core_hz)

    @property
    def departure_cycles(self) -> float:
        """Cycles between two transactions of a warp, D = 128 B / b."""
        return self.units.transaction_byte / self.byte_per_cycle

    @property
    def hiding_warps(self) -> float:
        """The warps that load at a time where the bandwidth is used in full, L b / 128 B (Little's law)."""
        return self.units.latency_cycles / self.departure_cycles

    def lanes(self, kind: str) -> float:
        """The functional units of one multiprocessor for a class of instructions; FP32's where the table says none."""
        return self.units.lanes.get(kind, self.units.lanes["fp32"])


class Work(Struct, frozen=True, eq=False):
    """What one launch of each kernel does; all arrays are (n_kernels,), NaN = not known.

    blocks: of the launch; threads, shared_byte: of a block; registers: of a thread. occupancy: the share of the most
    warps that were active. instructions: class of lanes -> thread-level instructions. loads, stores: transactions;
    shared: accesses of warps without conflicts; conflicts: those that these add; texture, texture_misses: addresses.
    """

    blocks: Floats
    threads: Floats
    registers: Floats
    shared_byte: Floats
    occupancy: Floats
    instructions: Mapping[str, Floats]
    loads: Floats
    stores: Floats
    shared: Floats
    conflicts: Floats
    texture: Floats
    texture_misses: Floats
    dram_byte: Floats


class Components(Struct, frozen=True, eq=False):
    """Cycles of one launch of each kernel by component, (n_kernels, n_components), and what they rest on.

    active_warps: at a time on one multiprocessor; rounds: of groups of active blocks. missing: for each kernel what was
    not known of it, in words.
    """

    cycles: Columns
    active_warps: Floats
    rounds: Floats
    missing: tuple[tuple[str, ...], ...] = ()

    @property
    def total(self) -> Floats:
        """All cycles of one launch, (n_kernels,)."""
        return np.asarray(self.cycles.values.sum(axis=1))


def machine_of(costs: Costs) -> Machine | None:
    """The multiprocessors at the setting of `costs`; None if their table does not describe them."""
    units = costs.multiprocessors
    if units is None or costs.peaks.dram_gb_per_s is None:
        return None
    core_mhz = costs.setting.core_mhz or units.core_mhz
    if core_mhz is None:
        return None
    return Machine(units, core_mhz * 1e6, costs.peaks.dram_gb_per_s * 1e9)


def components(work: Work, machine: Machine) -> Components:
    """Cycles by component ([S] 5.2 to 5.12). What is not known counts as 0 and is named.

    Without a launch shape the warps are those of the occupancy, or the most that fit, in one round.
    """
    at_a_time = machine.lanes("load_store") / _WARP
    # What one multiprocessor does for every warp of the launch, one after the other...
    computation = np.zeros(len(work.blocks))
    for kind, threads in work.instructions.items():
        computation += known_or_zero(threads) / machine.lanes(kind)
    busy = {
        "computation": computation,
        "shared": known_or_zero(work.shared) / at_a_time,
        "conflicts": known_or_zero(work.conflicts) / at_a_time,
        "texture": known_or_zero(work.texture),
    }
    loads = known_or_zero(work.loads)
    is_load_bound = loads * machine.departure_cycles > busy["computation"] + busy["shared"] + busy["conflicts"]
    number, most = machine.units.number, machine.units.warps
    block_warps = np.ceil(work.threads / _WARP)
    blocks = _active_blocks(work, machine, block_warps, is_load_bound)
    resident = np.maximum(1.0, most * np.where(np.isnan(work.occupancy), 1.0, work.occupancy))
    has_shape = _has_shape(work)
    warps = np.where(has_shape, work.blocks * block_warps, resident * number)
    active_warps = np.where(has_shape, blocks * block_warps, resident)
    rounds = np.where(has_shape, np.ceil(work.blocks / (number * blocks)), 1.0)
    # ... and what it waits for once a round.
    waits = {
        "loads": _load_cycles(loads / warps, machine),
        "texture": _load_cycles(known_or_zero(work.texture_misses) / warps, machine),
        "stores": known_or_zero(work.stores) / warps * machine.departure_cycles,
    }
    zero = np.zeros(len(loads))
    cycles = {
        name: rounds * (active_warps * busy.get(name, zero) / warps + waits.get(name, zero)) for name in COMPONENTS
    }
    moved = known_or_zero(work.dram_byte) / (machine.byte_per_cycle * machine.units.number)
    cycles["bandwidth"] = np.maximum(0.0, moved - sum(cycles.values(), zero))
    return Components(Columns.of(cycles, len(loads)), active_warps, rounds, _missing(work))


def _has_shape(work: Work) -> Bools:
    return np.asarray(work.blocks * work.threads > 0)


def _load_cycles(transactions: Floats, machine: Machine) -> Floats:
    """T_ld = L + (g - 1) D of a warp with g transactions (5.6); 0 where nothing is loaded."""
    cycles = machine.units.latency_cycles + (transactions - 1) * machine.departure_cycles
    return np.where(transactions > 0, np.maximum(cycles, 0.0), 0.0)


def _active_blocks(work: Work, machine: Machine, block_warps: Floats, is_load_bound: Bools) -> Floats:
    """N: the blocks that one multiprocessor holds at a time, at least 1 ([S] 5.5-E); the unknown limits nothing."""
    units = machine.units
    with np.errstate(divide="ignore", invalid="ignore"):
        limits = [
            np.full(len(block_warps), units.blocks),
            units.warps / block_warps,
            units.registers / (work.registers * work.threads),
            units.shared_byte / work.shared_byte,
            np.where(is_load_bound, machine.hiding_warps / block_warps, np.inf),
            np.ceil(work.blocks / units.number),
        ]
    return np.asarray(np.maximum(1.0, np.floor(np.fmin.reduce(limits))))


def _missing(work: Work) -> tuple[tuple[str, ...], ...]:
    """The inputs that time by component lacks of each kernel; without a launch shape, registers do not matter."""
    has_shape = _has_shape(work)
    unknown = {
        "launch shape": ~has_shape,
        "registers": has_shape & np.isnan(work.registers),
        "shared memory a block": has_shape & np.isnan(work.shared_byte),
        "instructions": np.all([np.isnan(threads) for threads in work.instructions.values()], axis=0),
        "loads": np.isnan(work.loads),
        "stores": np.isnan(work.stores),
        "shared accesses": np.isnan(work.shared),
        "bank conflicts": np.isnan(work.conflicts) & ~(work.shared == 0),
        "DRAM bytes": np.isnan(work.dram_byte),
    }
    words = np.array(list(unknown))
    return tuple(tuple(words[row].tolist()) for row in np.array(list(unknown.values())).T)


def work_of(counts: Counts, machine: Machine) -> Work:
    """One launch of each kernel, the mean of all its launches, from what was counted.

    Loads and stores that no counter tells are bytes over the size of a transaction; accesses of shared memory are bytes
    over those of a warp, a word of 4 B each.
    """
    launches = np.maximum(counts.rows.launches.astype(np.float64), 1.0)
    amounts = Columns(counts.amounts.names, counts.amounts.values / launches[:, None])
    known = counts.shape or Columns.of(dict.fromkeys(OF_LAUNCH, np.full(len(launches), np.nan)), len(launches))
    shape = {name: known[name] / launches for name in OF_LAUNCH}
    # Bytes that are booked where they are accessed are in the first level already.
    read, written = (("l1_read",), ("l2_write",)) if counts.books == "accessed" else (_READ, _WRITTEN)
    moved = {
        "loads": known_sum(amounts.only(read)),
        "stores": known_sum(amounts.only(written)),
        "shared": known_sum(amounts.only(("shared_read", "shared_write"))),
    }
    transaction_byte = machine.units.transaction_byte
    sizes = {"loads": transaction_byte, "stores": transaction_byte, "shared": _WARP * _WORD_BYTE}
    told = {name: np.where(np.isnan(shape[name]), moved[name] / byte, shape[name]) for name, byte in sizes.items()}
    computed = (word for word in INSTRUCTIONS if word not in _NOT_COMPUTED)
    words = gathered((_LANES.get(COUNTS[word].group, word), word) for word in computed)
    return Work(
        **{**shape, **told},
        instructions={kind: known_sum(amounts.only(of_kind)) for kind, of_kind in words.items()},
        dram_byte=known_sum(amounts.only(("dram_read", "dram_write", "dram"))),
    )


def seconds(of_launch: Components, machine: Machine, launches: Array) -> Floats:
    """The time of all launches of each kernel in s, T = cycles / f (5.13)."""
    return np.asarray(of_launch.total / machine.core_hz * launches)


def mix_peak_flop_per_s(instructions: Mapping[str, Floats], machine: Machine) -> Floats:
    """The highest flop/s of a kernel's own mix of instructions, (n_kernels,); NaN where it has no flops ([T] 3.4.4).

    instructions: word of the vocabulary -> thread-level instructions. Each takes its threads over its lanes; while it
    does, an FMA is two flops a lane, an add, a multiply or a special function one. Only one scheduler issues special
    functions at a time, and the others single flops beside it. The peak is the mean of these rates over the cycles.
    """
    units = machine.units
    beside = machine.lanes("fp32") * (1 - 1 / units.schedulers)
    flops, cycles = np.zeros(1), np.zeros(1)
    for word, threads in instructions.items():
        lanes = machine.lanes(_LANES.get(COUNTS[word].group, word))
        taken = known_or_zero(threads) / lanes
        rate = lanes + beside if word == "special" else lanes * COUNTS[word].flops
        cycles = cycles + taken
        flops = flops + taken * rate
    return np.asarray(flops / np.where(flops > 0, cycles, np.nan) * units.number * machine.core_hz)


def mix_peaks(counts: Counts, costs: Costs | None) -> list[float | None]:
    """The peak of each kernel's own mix of instructions in flop/s ([T] 3.4.4); [] where the costs cannot tell it.

    Floating-point instructions and special functions: integers and the like may be issued beside. None for a kernel
    without a flop.
    """
    machine = mapped(machine_of, costs)
    if machine is None:
        return []
    words = [word for word, count in COUNTS.items() if count.group in ("fp64", "fp32", "fp16", "sfu")]
    flops = known_or_zero(counts.amounts.only([word for word in words if COUNTS[word].flops])).sum(axis=1)
    mix = {word: np.where(flops > 0, counts.amounts[word], np.nan) for word in words}
    return [finite(peak) for peak in mix_peak_flop_per_s(mix, machine)]


# Of the pairs tried on GTX 980, GTX 1080 Ti and V100 the ones that predict unseen kernels best are near this
# (docs/studies/tuning); `fit` finds the pair for measurements at hand.
EXPONENT, SHARE = 3.0, 0.85
# A kernel cannot move its bytes faster than it ran: what would is bound by memory alone.
_MOST = 0.999

_Pair = tuple[Floats | float, Floats | float]  # of the core and the memory, in MHz


class TimeModel(Struct, frozen=True):
    """How kernels' time goes with the clocks: the roofline of docs/tune.md, "Time at other settings".

    A kernel's DRAM traffic would alone take T_m = bytes / (share of the peak * peak bandwidth), which goes with the
    memory clock; what else it does takes T_c, which goes with the core clock. The two overlap as a p-norm, T^p = T_c^p
    + T_m^p (p = 1: one after the other; p -> infinity: the roofline's max), so that with the measured T at one setting

        T(s)^p = (T^p - T_m^p) (f_core / f_core(s))^p + T_m^p (f_mem / f_mem(s))^p

    Bytes of DRAM also pass the core's clock domain. Where a table tells how many do in a cycle, low core clocks make
    that the narrower of the two, and T_m goes with it.

    exponent: p; share: of the peak bandwidth that DRAM reaches.
    byte_per_cycle: the peak, in bytes a memory cycle; None: not known, and half of the time is taken to go with each.
    path_byte_per_cycle: bytes of DRAM that pass in a core cycle at most; None: not known, as if as many as DRAM has.
    """

    byte_per_cycle: float | None
    exponent: float = EXPONENT
    share: float = SHARE
    path_byte_per_cycle: float | None = None

    def memory_time(
        self, time_s: Floats, dram_byte: Floats, memory_mhz: Floats | float, core_mhz: Floats | float = np.inf
    ) -> Floats:
        """The part of each time that goes with the memory clock: what DRAM traffic takes alone, T_m in s, (n,)."""
        time_s = np.asarray(time_s, dtype=float)
        if self.byte_per_cycle is None:
            return np.asarray(0.5 ** (1 / self.exponent) * time_s)
        at_peak = np.asarray(dram_byte, dtype=float) * self._s_per_byte((core_mhz, memory_mhz))
        return np.asarray(np.minimum(at_peak, _MOST * time_s))

    def _s_per_byte(self, clocks: _Pair) -> Floats:
        """Seconds a byte of DRAM at (core, memory) clocks in MHz, by the slower of DRAM and its way to the core."""
        core_mhz, memory_mhz = clocks
        per_cycle = self.share * (self.byte_per_cycle or 1.0)
        of_memory = 1 / (per_cycle * np.asarray(memory_mhz, dtype=float) * 1e6)
        if self.path_byte_per_cycle is None:
            return of_memory
        return np.maximum(of_memory, 1 / (self.path_byte_per_cycle * np.asarray(core_mhz, dtype=float) * 1e6))

    def at(self, time_s: Floats, dram_byte: Floats, measured_at: _Pair, wanted: _Pair) -> Floats:
        """Times in s at the clocks `wanted`, from the time at the clocks `measured_at` (core MHz, memory MHz).

        Arrays are broadcast against each other. Where the bytes are not known (NaN) so is the time.
        """
        p = self.exponent
        memory = self.memory_time(time_s, dram_byte, measured_at[1], measured_at[0]) ** p
        core = np.asarray(time_s, dtype=float) ** p - memory
        core_ratio = np.asarray(measured_at[0], dtype=float) / wanted[0]
        memory_ratio = self._s_per_byte(wanted) / self._s_per_byte(measured_at)
        return np.asarray((core * core_ratio**p + memory * memory_ratio**p) ** (1 / p))

    @property
    def words(self) -> str:
        """The model of times at other clocks, in a sentence."""
        if self.byte_per_cycle is None:
            return (
                "Times at other settings are guesses: the table gives no peak bandwidth, so half of the time is taken "
                "to go with the core clock and half with the memory clock."
            )
        narrow = phrase(" (the core clock lets {:.4g} B a cycle pass at most)", self.path_byte_per_cycle)
        return (
            f"Times at other settings are modelled: DRAM traffic at {100 * self.share:.0f} % of the peak goes with the "
            f"memory clock{narrow}, all else with the core clock, overlapping as a p-norm with p = {self.exponent:g}, "
            "held to the measured time."
        )


def time_model_of(table: CostTable) -> TimeModel:
    """The time model with the peak of DRAM that the table tells, or else the most that it was fitted to."""
    peak, mhz, seen = table.peaks().dram_gb_per_s, table.default.memory_mhz, table.fit.data.get("range", {})
    byte_per_cycle = None
    if peak is not None and mhz:
        byte_per_cycle = peak * 1e3 / mhz
    elif seen.get("dram_byte") and seen.get("memory_mhz") and seen["dram_byte"][1] > 0:
        # 1e9 bytes a second; reached, as far as is known, at the highest memory clock.
        byte_per_cycle = float(seen["dram_byte"][1]) * 1e3 / float(seen["memory_mhz"][1])
    path = mapped(attrgetter("number"), table.peak.terms.get("dram_path_gb_per_s"))
    return TimeModel(byte_per_cycle, path_byte_per_cycle=path)


def time_by_component(counts: Counts, costs: Costs) -> tuple[Counts, Modelled | None, list[str]]:
    """Give kernels without a time the one modelled by component, marked ESTIMATED, as `model_time` the roofline's.

    Returns the counts, how times were modelled (None if none was), and what the model had to do without.
    """
    machine = machine_of(costs)
    if machine is None:
        lacks = f"--time components: {costs.name} has no [time_components], which describes the GPU's multiprocessors"
        return counts, None, [f"{lacks}, so no time is taken apart; docs/time-components.md lists the tables that do."]
    of_launch = components(work_of(counts, machine), machine)
    missing = Counter(word for words in of_launch.missing for word in words)
    kernels = len(counts.rows)
    lacks = ", ".join(
        word if number == kernels else f"{word} ({number} of {kernels} {counts.nouns.kernels})"
        for word, number in missing.items()
    )
    notes = [f"Time by component is modelled without {lacks}."] if lacks else []
    modelled_s = seconds(of_launch, machine, counts.rows.launches)
    need = np.isnan(counts.rows.time_s) & (modelled_s > 0)
    if not need.any():
        return counts, None, notes
    marks = (counts.rows.time_marks & ~MISSING) | int(Mark.ESTIMATED | machine.units.marks)
    timed = replace(counts, rows=counts.rows.with_times(need, modelled_s, marks))
    return timed, Modelled("modelled by component", 1.0, given=False, shares_only=True), notes
