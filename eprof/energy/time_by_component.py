"""Time by component: loads, computation, shared memory and its conflicts, texture, stores, bandwidth.

It is Song's model ([S] 5.5), whose formulas were rebuilt from its prose (docs/time-components.md). On one
multiprocessor a group of active warps takes

    T_active = T_ld + sum of S + N_warps T_c + T_tex + T_st   cycles                                        (5.10)

and a kernel takes as many rounds of such groups as its blocks need (5.11). Bytes that DRAM cannot deliver by then are
waited for.
"""

from collections import Counter
from collections.abc import Mapping

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Array, Bools, Columns, Floats, known_or_zero, known_sum
from eprof.base.optional import gathered
from eprof.base.vocabulary import COUNTS, INSTRUCTIONS, ISSUED, MISSING, Mark
from eprof.costs import Costs
from eprof.costs.parts import Multiprocessors
from eprof.counts.counts import Counts
from eprof.counts.definition import COMPONENTS as OF_LAUNCH
from eprof.energy.modelled_time import Modelled

COMPONENTS = ("loads", "computation", "shared", "conflicts", "texture", "stores", "bandwidth")
_WARP = 32
_WORD_BYTE = 4
# The class of lanes that a group of the vocabulary is worked on by; words of other groups have lanes of their own name.
LANES = {"fp64": "fp64", "fp32": "fp32", "fp16": "fp16", "int": "integer", "sfu": "special"}
_NOT_COMPUTED = ("load_store", "tensor", *ISSUED)
_READ, _WRITTEN = ("l1_read", "l2_read", "dram_read"), ("l2_write", "dram_write")


class GpuAtSetting(Struct, frozen=True):
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


def gpu_at_setting(costs: Costs) -> GpuAtSetting | None:
    """The GPU's multiprocessors at the setting of `costs`; None if their table does not describe these."""
    units = costs.multiprocessors
    if units is None or costs.peaks.dram_gb_per_s is None:
        return None
    core_mhz = costs.setting.core_mhz or units.core_mhz
    if core_mhz is None:
        return None
    return GpuAtSetting(units, core_mhz * 1e6, costs.peaks.dram_gb_per_s * 1e9)


def components(work: Work, gpu: GpuAtSetting) -> Components:
    """The cycles of one launch of each kernel by component ([S] 5.2 to 5.12). Unknown inputs count as 0 and are named.

    Without a launch shape the warps are those of the occupancy, or the most that fit, in one round.
    """
    at_a_time = gpu.lanes("load_store") / _WARP
    # What one multiprocessor does for every warp of the launch, one after the other...
    computation = np.zeros(len(work.blocks))
    for kind, threads in work.instructions.items():
        computation += known_or_zero(threads) / gpu.lanes(kind)
    busy = {
        "computation": computation,
        "shared": known_or_zero(work.shared) / at_a_time,
        "conflicts": known_or_zero(work.conflicts) / at_a_time,
        "texture": known_or_zero(work.texture),
    }
    loads = known_or_zero(work.loads)
    is_load_bound = loads * gpu.departure_cycles > busy["computation"] + busy["shared"] + busy["conflicts"]
    number, most = gpu.units.number, gpu.units.warps
    block_warps = np.ceil(work.threads / _WARP)
    blocks = _active_blocks(work, gpu, block_warps, is_load_bound)
    resident = np.maximum(1.0, most * np.where(np.isnan(work.occupancy), 1.0, work.occupancy))
    has_shape = _has_shape(work)
    warps = np.where(has_shape, work.blocks * block_warps, resident * number)
    active_warps = np.where(has_shape, blocks * block_warps, resident)
    rounds = np.where(has_shape, np.ceil(work.blocks / (number * blocks)), 1.0)
    # ... and what it waits for once a round.
    waits = {
        "loads": _load_cycles(loads / warps, gpu),
        "texture": _load_cycles(known_or_zero(work.texture_misses) / warps, gpu),
        "stores": known_or_zero(work.stores) / warps * gpu.departure_cycles,
    }
    zero = np.zeros(len(loads))
    cycles = {
        name: rounds * (active_warps * busy.get(name, zero) / warps + waits.get(name, zero)) for name in COMPONENTS
    }
    moved = known_or_zero(work.dram_byte) / (gpu.byte_per_cycle * gpu.units.number)
    cycles["bandwidth"] = np.maximum(0.0, moved - sum(cycles.values(), zero))
    return Components(Columns.of(cycles, len(loads)), active_warps, rounds, _missing(work))


def _has_shape(work: Work) -> Bools:
    return np.asarray(work.blocks * work.threads > 0)


def _load_cycles(transactions: Floats, gpu: GpuAtSetting) -> Floats:
    """T_ld = L + (g - 1) D of a warp with g transactions (5.6); 0 where nothing is loaded."""
    cycles = gpu.units.latency_cycles + (transactions - 1) * gpu.departure_cycles
    return np.where(transactions > 0, np.maximum(cycles, 0.0), 0.0)


def _active_blocks(work: Work, gpu: GpuAtSetting, block_warps: Floats, is_load_bound: Bools) -> Floats:
    """N: the blocks that one multiprocessor holds at a time, at least 1 ([S] 5.5-E); what is unknown limits nothing."""
    units = gpu.units
    with np.errstate(divide="ignore", invalid="ignore"):
        limits = [
            np.full(len(block_warps), units.blocks),
            units.warps / block_warps,
            units.registers / (work.registers * work.threads),
            units.shared_byte / work.shared_byte,
            np.where(is_load_bound, gpu.hiding_warps / block_warps, np.inf),
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


def work_of(counts: Counts, gpu: GpuAtSetting) -> Work:
    """The `Work` of one launch of each kernel, the mean of all its launches, from what was counted.

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
    transaction_byte = gpu.units.transaction_byte
    sizes = {"loads": transaction_byte, "stores": transaction_byte, "shared": _WARP * _WORD_BYTE}
    told = {name: np.where(np.isnan(shape[name]), moved[name] / byte, shape[name]) for name, byte in sizes.items()}
    computed = (word for word in INSTRUCTIONS if word not in _NOT_COMPUTED)
    words = gathered((LANES.get(COUNTS[word].group, word), word) for word in computed)
    return Work(
        **{**shape, **told},
        instructions={kind: known_sum(amounts.only(of_kind)) for kind, of_kind in words.items()},
        dram_byte=known_sum(amounts.only(("dram_read", "dram_write", "dram"))),
    )


def seconds(of_launch: Components, gpu: GpuAtSetting, launches: Array) -> Floats:
    """The time of all launches of each kernel in s, T = cycles / f (5.13)."""
    return np.asarray(of_launch.total / gpu.core_hz * launches)


def time_by_component(counts: Counts, costs: Costs) -> tuple[Counts, Modelled | None, list[str]]:
    """Give kernels without a time the one modelled by component, marked ESTIMATED.

    Returns the counts, how times were modelled (None if none was), and notes on what the model had to do without.
    """
    gpu = gpu_at_setting(costs)
    if gpu is None:
        lacks = f"--time components: {costs.name} has no [time_components], which describes the GPU's multiprocessors"
        return counts, None, [f"{lacks}, so no time is taken apart; docs/time-components.md lists the tables that do."]
    of_launch = components(work_of(counts, gpu), gpu)
    missing = Counter(word for words in of_launch.missing for word in words)
    kernels = len(counts.rows)
    lacks = ", ".join(
        word if number == kernels else f"{word} ({number} of {kernels} {counts.nouns.kernels})"
        for word, number in missing.items()
    )
    notes = [f"Time by component is modelled without {lacks}."] if lacks else []
    modelled_s = seconds(of_launch, gpu, counts.rows.launches)
    need = np.isnan(counts.rows.time_s) & (modelled_s > 0)
    if not need.any():
        return counts, None, notes
    marks = (counts.rows.time_marks & ~MISSING) | int(Mark.ESTIMATED | gpu.units.marks)
    timed = replace(counts, rows=counts.rows.with_times(need, modelled_s, marks))
    return timed, Modelled("modelled by component", 1.0, given=False, shares_only=True), notes
