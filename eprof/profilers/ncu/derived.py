"""What follows from the metrics of one launch of ncu: its time, totals behind rates, clocks; and counts by opcode.

A mean rate times summed cycles is wrong where launches differ. So a rate is made a total here, launch by launch, as a
counter of its own, `RATE[total]`, and totals are added up. So is the utilisation of a tensor pipe, of the busiest unit,
or of the peak of flops, in cycles of all multiprocessors, that of DRAM, in seconds at its peak, and a mean over
multiprocessors, in cycles of all of them, the share of lanes that blocks fill, in seconds, and the share of sectors
that L2 had, in the most bytes that passed it.

Where neither cycles nor a clock are told, `RATE[least]` is what it is at half of the GPU's highest clock; where no time
is, `RATE[a second]` what it is in a second.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence

import numpy as np

from eprof.base.arrays import Array
from eprof.base.optional import mapped, only
from eprof.base.signs import A_SECOND, LEAST, TOTAL
from eprof.base.text import pattern, when
from eprof.logs.log import Clock, Names
from eprof.profilers.ncu import tensor_ops
from eprof.readers.cells import Style, ungrouped, value, values
from eprof.readers.sections import Cells, bytes_of, texts_of

DURATIONS = ("gpu__time_duration.sum", "gpu__time_duration")
# Cycles and cycles a second, of one pass over the kernel: what lists of metrics for a roofline have instead of a time.
CLOCKS = tuple(
    (f"{unit}__cycles_elapsed.{rollup}", f"{unit}__cycles_elapsed.{rollup}.per_second")
    for rollup in ("avg", "max", "sum")
    for unit in ("sm", "gpc", "smsp")
)
_CORE = tuple(rate for _, rate in CLOCKS if ".sum" not in rate)
_MEMORY = ("dram__cycles_elapsed.avg.per_second", "dram__cycles_elapsed.max.per_second")
# A rate a cycle is a sum over the mean cycles of its unit. Of a list that has not these, the nearest: the longest clock
# is 0.06 to 0.24 % more in reports of a V100.
_CYCLES = tuple(f"{unit}__cycles_elapsed.{rollup}" for rollup in ("avg", "max") for unit in ("smsp", "sm", "gpc"))
_ALL_CYCLES = "smsp__cycles_elapsed.sum"
_SCHEDULERS = ("device__attribute_multiprocessor_count", "device__attribute_num_schedulers_per_multiprocessor")
_ACTIVE, _MEAN_ACTIVE = "sm__cycles_active.sum", "sm__cycles_active.avg"
SM_COUNT = "launch__sm_count"
FFMA_PEAK = "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained"  # a cycle: lanes of all multiprocessors
_HIGHEST_KHZ = "device__attribute_clock_rate"
_GRID, _WAVES = "launch__grid_size", "launch__waves_per_multiprocessor"
_FITTING = tuple(f"launch__occupancy_limit_{what}" for what in ("blocks", "registers", "shared_mem", "warps"))
_EXECUTED, _OF_A_SCHEDULER, _SCHEDULERS_OF_SM = "smsp__inst_executed.sum", "smsp__inst_executed.avg", 4
_COUNTING_SMS = (_GRID, _WAVES, *_FITTING, _EXECUTED, _OF_A_SCHEDULER)
_HALF_DIGIT = 0.005  # by which a number of two decimals may be off
# Of the highest clock: ncu locks clocks to their base, in logs 0.54 (A100 PCIe) to 0.88 (RTX 4080 Super) of it.
_LEAST_CLOCK = 0.5
_SIZES = tuple(f"launch__{of}_dim_{axis}" for of in ("block", "grid") for axis in "xyz")
_MULTIPROCESSORS = (SM_COUNT, _SCHEDULERS[0])
_IPC_ACTIVE, _IPC_ELAPSED = (f"sm__inst_executed.avg.per_cycle_{cycles}" for cycles in ("active", "elapsed"))
_DRAM_ACTIVE, _DRAM_ALL, _DRAM_MEAN = "dram__cycles_active.avg", "dram__cycles_elapsed.sum", "dram__cycles_elapsed.avg"
_DRAM_SHARE = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
_DRAM_BYTES = "dram__bytes.sum"
_L2_HITS = "lts__t_sector_hit_rate.pct"
_BLOCK, _LANES, _OF_A_WARP = "launch__block_size", "launch__lanes.seconds", 32
_PIPES = pattern("_pipe_t(?:ensor|c)_")
# Shares of the peak besides: of the busiest unit, of L1 and of L2, of instructions, of flops.
_BUSY = ("sm__throughput.", "l1tex__throughput.", "lts__throughput.", "sm__inst_executed.avg.pct_", "roofline__fp")
_OF_ACTIVE, _OF_ELAPSED = ".avg.pct_of_peak_sustained_active", ".avg.pct_of_peak_sustained_elapsed"
TIMES = frozenset(
    (*DURATIONS, *(name for pair in CLOCKS for name in pair), *_MEMORY, *_SCHEDULERS, *_MULTIPROCESSORS, *_SIZES)
) | {_ACTIVE, _MEAN_ACTIVE, _DRAM_ALL, _DRAM_MEAN, FFMA_PEAK, _HIGHEST_KHZ, *_COUNTING_SMS}
Shaped = tuple[str | None, tuple[int, ...], tuple[int, ...]]  # kernel, threads of a block and of a launch in x, y and z
_A_SECOND = ".per_second"
_PER_CYCLE, _PER_SECOND = ".sum.per_cycle_elapsed", ".sum" + _A_SECOND
_NEARLY_WHOLE = 0.25
_FEW = 512  # bytes: below, the rounding of their rate shows
_AT_FULL_S = 1e-5
_UNTIMED_S = 1e-12
_SHORT_S = 1e-4  # of shorter launches the time holds so much else that cycles a second are no clock


def is_read(name: str, keep: Container[str] | None) -> bool:
    """Whether a metric of ncu is wanted, or something that is derived from it."""
    if keep is None or name in keep or name in TIMES or name + TOTAL in keep or tensor_ops.is_read(name, keep):
        return True
    return name.endswith(_PER_SECOND) and name.removesuffix(_A_SECOND) in keep


def seconds(metrics: Mapping[str, Array], launches: Array) -> Array:
    """The time in s of each row of ncu: its duration, else cycles over their rate, else sums over rates, or NaN."""
    time = _first_known([metrics[name] / 1e9 for name in DURATIONS if name in metrics], len(launches))
    for cycles, rate in CLOCKS:
        if cycles in metrics and rate in metrics and np.isnan(time).any():
            with np.errstate(divide="ignore", invalid="ignore"):
                clocked = metrics[cycles] / metrics[rate]
            time = np.where(np.isnan(time) & (metrics[rate] > 0) & (clocked > 0), clocked, time)
    # Of single launches also from sums over their rates a second, of which the larger weigh more.
    sums: Array = np.zeros(len(launches))
    rates: Array = np.zeros(len(launches))
    for name, a_second in metrics.items():
        total = metrics.get(name.removesuffix(_A_SECOND))
        if name.endswith(_PER_SECOND) and total is not None:
            usable = (total >= _FEW) & (a_second > 0)
            sums = np.where(usable, sums + total, sums)
            rates = np.where(usable, rates + a_second, rates)
    of_sums = np.divide(sums, rates, out=np.full(len(launches), np.nan), where=rates > 0)
    return np.where(np.isnan(time) & (launches == 1), of_sums, time)


def totals(
    metrics: Mapping[str, Array], time_s: Array, launches: Array, keep: Container[str] | None
) -> dict[str, Array]:
    """`RATE[total]` -> what ncu's rate a cycle or a second makes in all of a launch; NaN for rows of several launches.

    Totals also of utilisations and active cycles, and tensor cores' flops by type. A mean over the channels of DRAM, or
    over multiprocessors, makes a total for several launches too, as their number is the same for all.
    """
    alone = launches == 1
    made = tensor_ops.totals(metrics, keep)
    if _DRAM_ACTIVE in metrics and (keep is None or _DRAM_ACTIVE + TOTAL in keep):
        # The number of DRAM's channels: elapsed cycles of all over those of one, rounded if near.
        unknown = np.full(len(time_s), np.nan)
        of_one = [metrics[name] * time_s for name in _MEMORY if name in metrics]
        mean = _first_known([metrics.get(_DRAM_MEAN, unknown), *of_one], len(time_s))
        channels = np.divide(metrics.get(_DRAM_ALL, unknown), mean, out=unknown.copy(), where=mean > 0)
        whole = np.round(channels)
        channels = np.where(np.abs(channels - whole) < _NEARLY_WHOLE, whole, channels)
        made[_DRAM_ACTIVE + TOTAL] = metrics[_DRAM_ACTIVE] * channels
    if _DRAM_SHARE in metrics and (keep is None or _DRAM_SHARE + TOTAL in keep):
        # DRAM has not its full clock in the shortest launches: 6 in 10 of it in those of 4 us of a V100.
        is_told = alone & (time_s >= _AT_FULL_S)
        made[_DRAM_SHARE + TOTAL] = np.where(is_told, metrics[_DRAM_SHARE] / 100 * time_s, np.nan)
    if _L2_HITS in metrics and (keep is None or _L2_HITS + TOTAL in keep):
        # Each sector that L2 missed is read from DRAM, which moves what is written, and filled, besides.
        unknown = np.full(len(time_s), np.nan)
        by_rate = metrics.get(_DRAM_BYTES + _A_SECOND, unknown) * time_s
        dram_b = _first_known([metrics.get(_DRAM_BYTES, unknown), by_rate], len(time_s))
        missed = 1 - (metrics[_L2_HITS] + _HALF_DIGIT) / 100
        passed_b = np.divide(dram_b, missed, where=missed > 0, out=unknown)
        made[_L2_HITS + TOTAL] = np.where(alone, passed_b, np.nan)
    if _BLOCK in metrics and (keep is None or _LANES + TOTAL in keep):
        warps = metrics[_BLOCK] / launches / _OF_A_WARP
        made[_LANES + TOTAL] = time_s * np.divide(warps, np.ceil(warps), out=warps.copy(), where=warps > 0)
    untimed = np.where(np.isnan(time_s), 1.0, np.nan)
    highest = metrics.get(_HIGHEST_KHZ, np.full(len(launches), np.nan)) * 1e3 * time_s
    elapsed, at_least = _cycles(metrics, time_s), _LEAST_CLOCK * highest
    at_least[~np.isnan(elapsed)] = np.nan
    # The cycles of a second are those of the clock.
    of_a_second = np.where(np.isnan(elapsed), _cycles(metrics, untimed), np.nan)
    for cycles, ending in ((elapsed, TOTAL), (at_least, LEAST), (of_a_second, A_SECOND)):
        for name, total in _cycles_of_all(metrics, cycles, launches, keep).items():
            made[name + ending] = np.where(alone | (name == _MEAN_ACTIVE), total, np.nan)
        for name, rate in metrics.items():
            if name.endswith(_PER_CYCLE) and (keep is None or name + TOTAL in keep):
                made[name + ending] = np.where(alone & (rate >= 0), rate * cycles, np.nan)
    for name, rate in metrics.items():
        if name.endswith(_PER_SECOND) and (keep is None or name + TOTAL in keep):
            for spans, ending in ((time_s, TOTAL), (untimed, A_SECOND)):
                made[name + ending] = np.where(alone & (rate >= 0), rate * spans, np.nan)
    return {name: total for name, total in made.items() if name.endswith(TOTAL) or not np.isnan(total).all()}


def _cycles_of_all(
    metrics: Mapping[str, Array], elapsed: Array, launches: Array, keep: Container[str] | None
) -> dict[str, Array]:
    """By metric, totals over all multiprocessors: active cycles, busy cycles, instructions. elapsed: cycles of one."""
    number = len(launches)
    multiprocessors = _first_known([metrics[name] / launches for name in _MULTIPROCESSORS if name in metrics], number)
    unknown = np.full(number, np.nan)
    mean_active = metrics.get(_MEAN_ACTIVE, unknown) * multiprocessors
    active = _first_known([metrics.get(_ACTIVE, mean_active), mean_active], number)
    elapsed = elapsed * multiprocessors
    cycles = {
        _MEAN_ACTIVE: mean_active,
        _IPC_ACTIVE: metrics.get(_IPC_ACTIVE, unknown) * active,
        _IPC_ELAPSED: metrics.get(_IPC_ELAPSED, unknown) * elapsed,
    }
    for name, share in metrics.items():
        if not (_PIPES.search(name) or name.startswith(_BUSY)):
            continue
        if name.endswith(_OF_ACTIVE):
            cycles[name] = share / 100 * active
        elif name.endswith(_OF_ELAPSED):
            cycles[name] = share / 100 * elapsed
    wanted = {name: total for name, total in cycles.items() if keep is None or name + TOTAL in keep}
    return {name: total for name, total in wanted.items() if not np.isnan(total).all()}


def multiprocessors(metrics: Mapping[str, Array], launches: Array, lanes: Array) -> float:
    """The multiprocessors of the one GPU of ncu's launches; NaN: nothing tells them, or launches differ in it.

    By the peak of FP32 over `lanes` of one, by its instructions and those of a scheduler, or by waves: blocks over
    those that fit into all multiprocessors at a time.
    """
    unknown = np.full(len(launches), np.nan)
    alone = np.where(launches == 1, 1.0, np.nan)
    fitting = np.min([metrics.get(name, unknown) for name in _FITTING], axis=0)
    schedulers = _whole(metrics.get(_EXECUTED, unknown) / _SCHEDULERS_OF_SM, metrics.get(_OF_A_SCHEDULER, unknown))
    told = [
        np.round(metrics.get(FFMA_PEAK, unknown) / lanes),
        alone * schedulers,
        alone * _whole(metrics.get(_GRID, unknown), metrics.get(_WAVES, unknown), fitting),
    ]
    numbers = _first_known(told, len(launches))
    return only(set(numbers[~np.isnan(numbers)].tolist())) or np.nan


def _whole(of_all: Array, rounded: Array, times: Array | float = 1.0) -> Array:
    """The only whole number that `of_all` over `rounded`, of two decimals, and over `times` may be; NaN: several."""
    with np.errstate(divide="ignore", invalid="ignore"):
        least, most = (of_all / times / (rounded + way * _HALF_DIGIT) for way in (1, -1))
        return np.asarray(np.where((np.ceil(least) == np.floor(most)) & (most > 0), np.floor(most), np.nan))


def _cycles(metrics: Mapping[str, Array], time_s: Array) -> Array:
    """The elapsed cycles of each ncu launch: the mean of its schedulers, else the nearest metric, else time and clock.

    Without either they are not known: the GPU's highest clock, which logs tell, is not the one that launches had.
    """
    number = len(time_s)
    columns = [metrics[name] for name in _CYCLES if name in metrics]
    if all(name in metrics for name in (_ALL_CYCLES, *_SCHEDULERS)):
        multiprocessors, schedulers = (metrics[name] for name in _SCHEDULERS)
        number_of = multiprocessors * schedulers
        mean = np.divide(metrics[_ALL_CYCLES], number_of, out=np.full(number, np.nan), where=number_of > 0)
        columns.insert(_CYCLES[0] in metrics, mean)
    return _first_known([*columns, *(metrics[rate] * time_s for rate in _CORE if rate in metrics)], number)


def _first_known(columns: Sequence[Array], number: int) -> Array:
    known = np.full(number, np.nan)
    for column in columns:
        known = np.where(np.isnan(known), column, known)
    return known


def clocks(metrics: Mapping[str, Array], devices: Array, time_s: Array, launches: Array) -> tuple[Clock, ...]:
    """The mean clocks of each device in MHz, weighted by time, from ncu's metrics; very short launches are left out.

    Launches without a time weigh as much as each other, and next to nothing beside others.
    """
    number = len(time_s)
    core = _first_known([metrics[name] for name in _CORE if name in metrics], number)
    memory = _first_known([metrics[name] for name in _MEMORY if name in metrics], number)
    with np.errstate(invalid="ignore"):
        weights = np.where(np.isnan(time_s), _UNTIMED_S * launches, time_s)
        long = np.isnan(time_s) | (time_s >= _SHORT_S * launches)
        known = long & ((core > 0) | (memory > 0))
    means = []
    for device in dict.fromkeys(devices[known].tolist()):
        own = known & (devices == device)
        told = (own & (hertz > 0) for hertz in (core, memory))
        core_mhz, memory_mhz = (
            float(np.average(hertz[rows], weights=weights[rows]) / 1e6) if rows.any() else None
            for hertz, rows in zip((core, memory), told, strict=True)
        )
        means.append(Clock(device, float(weights[own].sum()), core_mhz, memory_mhz))
    return tuple(means)


def shapes(
    metrics: Mapping[str, Array], kernels: Names, time_s: Array, launches: Array
) -> Iterable[tuple[Shaped, float]]:
    """(shape, time in s) of each launch that tells both; () if ncu's metrics do not tell shapes."""
    if not all(name in metrics for name in _SIZES):
        return ()
    sizes = np.stack([metrics[name] for name in _SIZES])
    told = np.flatnonzero((sizes > 0).all(axis=0) & (time_s > 0) & (launches == 1))
    block, blocks = np.split(sizes[:, told].astype(np.int64), 2)
    sizes_of = (map(tuple, size.T.tolist()) for size in (block, block * blocks))
    return zip(zip(kernels.chosen(told).texts(), *sizes_of, strict=True), time_s[told].tolist(), strict=True)


# ----------------------------------------------------------------------------------------------------------------------
# Metrics that have a value for each opcode: as counters of their own, `metric[OPCODE]`.
#
# Cells of a metric with instances are `total (NAME: value; NAME: value; ...)` (`--print-metric-instances details`),
# `total (value; value; ...)` (`values`), or, as in 2019, the bare values with `; ` between.
#
# Opcodes of matrix instructions with modifiers (`HMMA.16816.F32.BF16`) tell flops by the type of operands: the digits
# are the shape m n k of the product that a warp works out, 2 m n k flops. Those of Hopper (`HGMMA.64x128x16.F32`) are
# one product for the four warps of a group, each of which ncu counts. Not known are instructions of steps (HMMA.884 of
# Volta) and those of Blackwell's tc pipe (UTCHMMA), which do not tell their shape.

WITH_MODIFIERS = "sass__inst_executed_per_opcode_with_modifier_all"
PER_OPCODE = pattern(r"sass__(?:thread_)?inst_executed(?:_true)?_per_opcode|" + WITH_MODIFIERS)
_WITH_NAMES = pattern(r"\(((?:[A-Za-z_][\w.]*: [^;()]*)(?:; [A-Za-z_][\w.]*: [^;()]*)*)\)$")
_WITH_TOTAL = pattern(r"\s*+([^;(]++)\(.*\)\s*")
_IN_NUMBERS = "0123456789.,eE+-"
_TOLERANCE = 1e-6  # of the total: instances are whole numbers, the total too
Opcodes = Mapping[str, float] | None
TYPES = ("fp64", "tf32", "bf16", "fp16", "fp8", "fp6", "fp4", "int8", "other")
_WARP_SHAPE = pattern(r"(8|16)8(4|8|16|32|64|128|256)")
_GROUP_SHAPE = pattern(r"64x(\d+)x(\d+)")
_WARPS_IN_GROUP = 4
_FLOATS = {"TF32": "tf32", "BF16": "bf16"}
_INTEGERS = {"S8": "int8", "U8": "int8"}
_BY_MODIFIER = {
    "HMMA": _FLOATS,
    "HGMMA": _FLOATS,
    "IMMA": _INTEGERS,
    "IGMMA": _INTEGERS,
    "QMMA": {"E4M3": "fp8", "E5M2": "fp8"},
}
_TYPE = {
    "DMMA": "fp64", "HMMA": "fp16", "IMMA": "other", "BMMA": "other", "QMMA": "fp6", "OMMA": "fp4",
    "HGMMA": "fp16", "IGMMA": "other", "BGMMA": "other", "QGMMA": "fp8",
}  # fmt: skip


def without_instances(cells: Cells) -> Cells:
    """Reduce cells of ncu's metrics to their totals, without values of instances; "" where only these are there."""
    if not bytes_of(cells).translate(None, _IN_NUMBERS.encode()):
        return cells
    return [_instances_total(cell) if cell.strip(_IN_NUMBERS) else cell for cell in texts_of(cells)]


def _instances_total(cell: str) -> str:
    cell = ungrouped(cell)
    match = _WITH_TOTAL.fullmatch(cell)
    total = match[1].rstrip() if match else cell
    return when(";" not in total, total)


def has_several_instances(cells: Cells) -> bool:
    """Whether a cell holds the values of several instances of an ncu metric and no total."""
    return b";" in bytes_of(cells) and any(";" in cell and not _instances_total(cell) for cell in texts_of(cells))


def opcodes_of_cells(metric: str, cells: Cells, style: Style, keep: Container[str] | None) -> dict[str, Array]:
    """What `opcode_columns` makes of the printed cells, one a launch, of an ncu metric with a value for each opcode."""
    launches: list[Opcodes] = []
    for cell in texts_of(cells):
        pairs = [pair.partition(": ") for named in _WITH_NAMES.findall(cell) for pair in named.split("; ")]
        counts = {name: value(text, style) for name, _, text in pairs}
        launches.append(counts if counts and all(count >= 0 for count in counts.values()) else None)
    return opcode_columns(metric, launches, values(without_instances(cells), style), keep)


def opcode_columns(
    metric: str, launches: Sequence[Opcodes], total: Array, keep: Container[str] | None
) -> dict[str, Array]:
    """A counter for each opcode of an ncu metric, a value a launch: 0 for an opcode that a launch does not have.

    launches: the opcodes of each; None, or opcodes that do not add up to the launch's `total`: NaN, not known.
    keep: the counters to make (opcodes that no launch has are 0 in all); None: the opcodes that occur.
    """
    known = [
        None if counts is None or not np.isclose(sum(counts.values()), sum_, rtol=_TOLERANCE, atol=0.5) else counts
        for counts, sum_ in zip(launches, total, strict=True)
    ]
    if metric == WITH_MODIFIERS:
        # The flops of matrix instructions by the type of operands, instead of each opcode with its modifiers.
        flops = [mapped(flops_by_type, counts) for counts in known]
        kinds = [kind for kind in TYPES if any(flops) and (keep is None or f"{metric}[flops {kind}]" in keep)]
        return {f"{metric}[flops {kind}]": np.array([_opcode_count(own, kind) for own in flops]) for kind in kinds}
    wanted = list(dict.fromkeys(opcode for counts in known if counts for opcode in counts))
    if wanted and isinstance(keep, Collection):
        wanted = sorted({name.partition("[")[2][:-1] for name in keep if name.startswith(f"{metric}[")})
    return {f"{metric}[{opcode}]": np.array([_opcode_count(counts, opcode) for counts in known]) for opcode in wanted}


def _opcode_count(counts: Opcodes, opcode: str) -> float:
    return np.nan if counts is None else counts.get(opcode, 0.0)


def flops_by_type(instructions: Mapping[str, float]) -> dict[str, float] | None:
    """The flops of matrix opcodes by type of operand, of warp instructions; None where a matrix opcode is not known."""
    flops = dict.fromkeys(TYPES, 0.0)
    for opcode, number in instructions.items():
        name, *modifiers = opcode.split(".")
        if not name.endswith("MMA"):
            continue
        size = _multiply_adds(modifiers)
        if name not in _TYPE or size is None or any(modifier.startswith("STEP") for modifier in modifiers):
            return None
        kinds = _BY_MODIFIER.get(name, {})
        kind = next((kinds[modifier] for modifier in modifiers if modifier in kinds), _TYPE[name])
        flops[kind] += 2 * size * number
    return flops


def _multiply_adds(modifiers: Sequence[str]) -> float | None:
    """The multiply-adds of one warp in a matrix opcode; None if the modifiers do not tell its shape."""
    for modifier in modifiers:
        if shape := _WARP_SHAPE.fullmatch(modifier):
            return int(shape[1]) * 8 * int(shape[2])
        if shape := _GROUP_SHAPE.fullmatch(modifier):
            return 64 * int(shape[1]) * int(shape[2]) / _WARPS_IN_GROUP
    return None
