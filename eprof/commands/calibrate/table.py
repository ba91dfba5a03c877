"""From the rows of a calibration to the text of a cost table, by the same fit that `eprof fit` makes."""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from eprof import __version__
from eprof.base.arrays import Floats
from eprof.base.errors import EprofError
from eprof.base.gpus import DataSheet, data_sheet
from eprof.base.text import listed, phrase, when
from eprof.base.vocabulary import RANDOM
from eprof.commands.calibrate import results
from eprof.commands.calibrate.manifest import ZEROS, Capability, capability_of
from eprof.commands.calibrate.results import Row, accessed
from eprof.commands.calibrate.session import Session, kind_of
from eprof.costs.estimate import SM_CYCLE, TENSOR_FLOP, Origin, Prices, scaled_text, shape_prices
from eprof.lab import measurements
from eprof.lab.fitting import Form, fit, quality, table_text

SCALED = ("fp32_fma", "shared_read", "copy")
_IDLE = ("sleep", "light_warp")
_TENSOR = "tensor"
_DRAM = "dram_byte"
_VECTOR_BYTES = 16
_WARP = 32
_REPLICAS = 40
_TERMS: Mapping[str, tuple[str, ...]] = {
    "fp32_instruction": ("fp32_fma", "fp32_add", "fp32_mul"),
    "integer_instruction": ("integer",),
    "shared_byte": ("shared_read", "shared_write"),
    "l1_byte": ("l1_read", "l1_write"),
    "l2_byte": ("l2_read", "l2_write"),
    _DRAM: ("dram_read", "dram_write"),
}


class Scaled(NamedTuple):
    """Prices in pJ of this GPU, the factors with zeros and with random operands, and idle power in W.

    Factors, (2,), scale the shared prices to a GPU: those that go with the core's clock, and those with memory's.
    """

    prices: Prices
    zeros: Floats
    random: Floats
    idle_w: float


def scaled(rows: Sequence[Row], capability: Capability, device_name: str) -> Scaled:
    """Scale the shared prices, in pJ, to the GPU by the runs of `--quick`; with the factors and the idle power.

    Raises EprofError where a run that it takes is missing. For each replica of the shared prices c and each kind of
    operands, the two factors are those with the least squares of (idle + f_core sum_core c r + f_memory c_dram r_dram)
    / measured power - 1, neither below 0.
    """
    used = {row.benchmark: row for row in rows if row.used}
    idle_watts = [power for name in _IDLE if name in used and (power := used[name].power_w) is not None]
    if not idle_watts:
        raise EprofError(f"--quick has no idle power: {' and '.join(_IDLE)} gave no row; see rows.csv.")
    idle_w = min(idle_watts)
    zeros = [_quick_run(used, name + ZEROS) for name in SCALED]
    random = [_quick_run(used, name) for name in SCALED]
    # All multiprocessors are busy in every quick run, so what that takes is in the factors.
    board = data_sheet(device_name) or DataSheet("ncu device 0 (CC {}.{})".format(*capability))
    shared = shape_prices(board, idle_w).without(SM_CYCLE)
    number = len(shared.replicas[_DRAM])
    # A program's operands lie anywhere between zeros and random ones: each replica takes another place.
    places = np.linspace(0.0, 1.0, number).tolist()

    def factors(prices: Mapping[str, float], place: float) -> Floats:
        low, high = (_factors(run, prices, capability, idle_w) for run in (zeros, random))
        return low + place * (high - low)

    pj = _times_factors(shared.pj, factors(shared.pj, 0.5))
    drawn = [{name: shared.replicas[name][replica] for name in shared.pj} for replica in range(number)]
    scaled_draws = [_times_factors(prices, factors(prices, place)) for prices, place in zip(drawn, places, strict=True)]
    replicas = {name: [prices[name] for prices in scaled_draws] for name in pj}
    if _TENSOR in used and _TENSOR + ZEROS in used:
        # All power above idle: issue and registers are in the price of a flop.
        runs = [used[name] for name in (_TENSOR + ZEROS, _TENSOR)]
        low_pj, high_pj = (
            max((run.power_w or 0.0) - idle_w, 0.0) * run.time_s / run.counts["tensor_fp16"] * 1e12 for run in runs
        )
        pj[TENSOR_FLOP] = (low_pj + high_pj) / 2
        replicas[TENSOR_FLOP] = [low_pj + place * (high_pj - low_pj) for place in places]
    return Scaled(Prices(pj, replicas), factors(shared.pj, 0.0), factors(shared.pj, 1.0), idle_w)


def _quick_run(used: Mapping[str, Row], name: str) -> Row:
    if name not in used:
        raise EprofError(f"--quick needs the benchmark {name}, which gave no row; rows.csv says why.")
    return used[name]


def _factors(run: Sequence[Row], prices: Mapping[str, float], capability: Capability, idle_w: float) -> Floats:
    """The factors on `prices` that explain the power of the quick runs best: least squares of relative errors."""
    from scipy.optimize import nnls

    watts = []
    for row in run:
        counts = accessed(row.counts, capability)
        totals = {price: sum(counts.get(word, 0.0) for word in words) for price, words in _TERMS.items()}
        instructions = sum(row.counts.get(word, 0.0) for word in (*_TERMS["fp32_instruction"], "integer", "control"))
        moved = sum(count for word, count in row.counts.items() if word.endswith(("_read", "_write")))
        # Each access of memory is a vector.
        totals["warp_issue_instruction"] = (instructions + moved / _VECTOR_BYTES) / _WARP
        by_price = {price: prices[price] * total * 1e-12 / row.time_s for price, total in totals.items()}
        memory_w = by_price.pop(_DRAM)
        watts.append((sum(by_price.values()), memory_w))
    power_w = np.array([row.power_w for row in run], dtype=np.float64)
    return np.asarray(nnls(np.array(watts) / power_w[:, None], 1.0 - idle_w / power_w)[0])


def _times_factors(prices: Mapping[str, float], factors: Floats) -> dict[str, float]:
    core, memory = factors.tolist()
    return {name: price * core for name, price in prices.items()} | {_DRAM: prices[_DRAM] * memory}


class Made(NamedTuple):
    """The text of a calibrated cost table, and notes for the user."""

    text: str
    notes: tuple[str, ...]


def make(session: Session, path: Path, rows: Sequence[Row], name: str) -> Made:
    """Fit a calibration's `path` (measurements.csv): the text of the cost table `name`, and notes for the user.

    Raises MeasurementError if it cannot be fitted. With one setting there are no voltages to estimate, and the clock
    tree is part of constant power. A quick one is not fitted: it scales the shared prices.
    """
    if session.request.quick:
        return make_quick(session, rows, name)
    measured = measurements.read(path, mapping=results.mapping(rows, session.device))
    alone = len(measured.settings) == 1
    form = Form()
    if alone:
        form = Form(voltages="one", clock_tree=False, starts=1)
    fitted = fit(measured, form)
    known = quality.examine(measured, fitted, _REPLICAS)
    text = table_text.text(measured, fitted, known, _head(session, rows, name))
    watts, low, high = known.constant_w
    error = f"{known.errors['fit']:.1f} %"
    notes = [f"The fit is {error} off on average; constant power is {watts:.1f} W ({low:.1f} to {high:.1f} W)."]
    if session.request.log is not None and known.errors["fit"] > 10.0:
        notes.append("That is far: is the log's clock this machine's, and does its meter see this device alone?")
    if alone and session.device["processor"] != "cpu":
        more = when(session.device["processor"] == "cuda", " (--settings measures more)")
        notes.append(
            "One setting was measured: the table holds there alone, and how constant power splits into leakage, "
            f"clocks and the rest is not known{more}."
        )
    notes += _untold(session, rows)
    for row in rows:
        if row.used and RANDOM in row.counts:
            notes.append(
                f"{row.benchmark}: {row.counts[RANDOM] / row.time_s / 1e9:.3g} billion accesses of memory a second at "
                f"random, {fitted.prices_pj['random_access'] / 1e3:.3g} nJ each beside their bytes."
            )
    unclear = [str(term) for term, status in known.status.items() if status == quality.UNTOLD]
    if unclear:
        notes.append(f"The data cannot tell these prices well: {', '.join(unclear)}.")
    for group in known.collinear:
        together = [term for term in group if known.status.get(term, quality.TOLD) != quality.TOLD]
        if len(together) > 1:
            notes.append(f"Not told apart, as one group: {listed(together)}; their sum is known better than each.")
    return Made(text, tuple(notes))


def _untold(session: Session, rows: Sequence[Row]) -> Iterator[str]:
    """Yield sentences on what a calibrated table lacks: prices of some levels and words, and clocks."""
    for level, farther in results.untold(rows, session.device).items():
        yield f"Bytes of {level} were not told apart from those of {farther}, whose price has both."
    counted, absent = (
        {word for benchmark in benchmarks for word in benchmark.count}
        for benchmarks in (session.benchmarks, session.absent)
    )
    if absent - counted:
        yield f"Not measured, as the device or its driver does not have them: {listed(sorted(absent - counted))}."
    if results.mapping(rows, session.device) == "eprof-no-clocks":
        limit = phrase("; the driver says that it runs at up to {:g} MHz", session.device.get("most_mhz"))
        yield f"No meter tells the clocks at which this was measured{limit}. The table holds at those."


def make_quick(session: Session, rows: Sequence[Row], name: str) -> Made:
    """The cost table `name` of `--quick`: shared prices scaled to the rows. Raises EprofError: a row lacks."""
    device = session.device
    gpu = str(device["name"])
    factors = scaled(rows, capability_of(str(device["capability"])), gpu)
    (core_zeros, memory_zeros), (core_random, memory_random) = factors.zeros, factors.random
    source = (
        f"eprof {__version__} calibrate --quick: two factors measured on this GPU, on the prices that 16 other GPUs "
        "share (docs/studies/power/transfer.py)"
    )
    note = (
        f"The prices of {gpu} are those that 16 other GPUs share, times factors that were measured on it: "
        f"{core_zeros:.2f} (zeros) to {core_random:.2f} (random operands) for the core, {memory_zeros:.2f} to "
        f"{memory_random:.2f} for memory; idle power is {factors.idle_w:.1f} W."
    )
    origin = Origin(_table_name(name), source, "the shared price, times the factor of this GPU", note)
    return Made(scaled_text(gpu, factors.idle_w, factors.prices, origin), (note,))


def _head(session: Session, rows: Sequence[Row], name: str) -> table_text.Head:
    """What a calibrated cost table says of itself: device, source, notes, peaks, levels that were not told apart."""
    device = session.device
    gpu = str(device["name"])
    warm = [row.temperature_c for row in rows if row.temperature_c is not None]
    notes = [f"{row.benchmark} was left out: {'; '.join(row.reasons)}." for row in rows if not row.used]
    if device.get("simulated"):
        notes.insert(0, f"{gpu} is a simulated device: the times of these measurements are no hardware's.")
    heat = phrase(", at {:.0f} to {:.0f} degrees C", min(warm, default=None), max(warm, default=None))
    # Peaks in flop, bytes or accesses a cycle of its clock (at one cycle a second), where all are known. Accesses at
    # random are as many as were measured, the most of any setting.
    known = results.peaks(session.manifest, device, 1e-6, 1e-6)
    peaks: dict[str, float] = {}
    if {"fp32", "fp64", "dram"} <= set(known):
        peaks["sp_flop_per_core_cycle"] = 2 * known["fp32"]
        peaks["dp_flop_per_core_cycle"] = 2 * known["fp64"]
        peaks["dram_byte_per_memory_cycle"] = known["dram"]
        used = [row for row in rows if row.used and RANDOM in row.counts and row.memory_mhz > 0]
        if chased := [row.counts[RANDOM] / row.time_s / row.memory_mhz / 1e6 for row in used]:
            peaks["random_access_per_memory_cycle"] = max(chased)
    log = phrase(", power by the log {}", session.request.log and session.request.log.path.name)
    return table_text.Head(
        name=_table_name(name),
        device=f"{gpu} ({kind_of(device)})",
        devices=tuple(dict.fromkeys([gpu, gpu.removeprefix("NVIDIA ")])),
        source=f"measured by eprof {__version__} calibrate on this machine{heat}{log}; "
        f"{sum(row.used for row in rows)} rows",
        year=time.gmtime().tm_year,
        notes=(*notes, *_untold(session, rows)),
        peaks=peaks,
        untold=results.untold(rows, session.device),
        command="eprof calibrate",
    )


def _table_name(name: str) -> str:
    """The name of a calibrated cost table in small letters, digits, `-` and `.`."""
    return re.sub(r"[^a-z0-9.]", "-", name.lower()).strip("-.") or "calibrated"
