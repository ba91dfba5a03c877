"""The table of `eprof calibrate --quick`: the prices that other GPUs share, scaled to a few runs on this one.

Two factors, for what goes with the core and with memory, make the shared prices agree with the runs; tensor cores have
their own run. Each run was made twice: with zeros, which cost the least energy, and with random operands, which cost
about the most. Prices lie in the middle, and their intervals reach from one to the other (docs/calibrate.md).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from eprof.base.errors import EprofError
from eprof.commands.calibrate.manifest import Capability
from eprof.commands.calibrate.results import Row, accessed
from eprof.commands.calibrate.schedule import ZEROS
from eprof.costs.datasheets import DataSheet, data_sheet
from eprof.costs.estimate import SM_CYCLE, TENSOR_FLOP, Prices, shape_prices

SCALED = ("fp32_fma", "shared_read", "copy")
_IDLE = ("sleep", "light_warp")
_TENSOR = "tensor"
_DRAM = "dram_byte"
_VECTOR_BYTES = 16
_WARP = 32
_TERMS: Mapping[str, tuple[str, ...]] = {
    "fp32_instruction": ("fp32_fma", "fp32_add", "fp32_mul"),
    "integer_instruction": ("integer",),
    "shared_byte": ("shared_read", "shared_write"),
    "l1_byte": ("l1_read", "l1_write"),
    "l2_byte": ("l2_read", "l2_write"),
    _DRAM: ("dram_read", "dram_write"),
}


class Factors(NamedTuple):
    """Factors on the shared prices: of what goes with the core, and with memory."""

    core: float
    memory: float


class Scaled(NamedTuple):
    """Prices in pJ of this GPU, the factors with zeros and with random operands, and idle power in W."""

    prices: Prices
    zeros: Factors
    random: Factors
    idle_w: float


def scaled(rows: Sequence[Row], capability: Capability, device_name: str) -> Scaled:
    """Prices in pJ of `--quick`, scaled to the GPU, and the factors that made them.

    Raises EprofError where a run that it takes is missing.

    For each replica of the shared prices c and each kind of operands, the two factors are those with the least squares
    of (idle + f_core sum_core c r + f_memory c_dram r_dram) / measured power - 1, neither below 0.
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

    def factors(prices: Mapping[str, float], place: float) -> Factors:
        low, high = (_factors(run, prices, capability, idle_w) for run in (zeros, random))
        return Factors(low.core + place * (high.core - low.core), low.memory + place * (high.memory - low.memory))

    pj = _times_factors(shared.pj, factors(shared.pj, 0.5))
    drawn = [{name: shared.replicas[name][replica] for name in shared.pj} for replica in range(number)]
    scaled_draws = [_times_factors(prices, factors(prices, place)) for prices, place in zip(drawn, places, strict=True)]
    replicas = {name: [prices[name] for prices in scaled_draws] for name in pj}
    if _TENSOR in used and _TENSOR + ZEROS in used:
        low_pj, high_pj = (_tensor_pj(used[name], idle_w) for name in (_TENSOR + ZEROS, _TENSOR))
        pj[TENSOR_FLOP] = (low_pj + high_pj) / 2
        replicas[TENSOR_FLOP] = [low_pj + place * (high_pj - low_pj) for place in places]
    return Scaled(Prices(pj, replicas), factors(shared.pj, 0.0), factors(shared.pj, 1.0), idle_w)


def _quick_run(used: Mapping[str, Row], name: str) -> Row:
    if name not in used:
        raise EprofError(f"--quick needs the benchmark {name}, which gave no row; rows.csv says why.")
    return used[name]


def _rates(row: Row, capability: Capability) -> dict[str, float]:
    """Counts of one launch of a quick run by price, in 1e12 a second, so that pJ times them are watts."""
    counts = accessed(row.counts, capability)
    totals = {price: sum(counts.get(word, 0.0) for word in words) for price, words in _TERMS.items()}
    instructions = sum(row.counts.get(word, 0.0) for word in (*_TERMS["fp32_instruction"], "integer", "control"))
    moved = sum(count for word, count in row.counts.items() if word.endswith(("_read", "_write")))
    # Each access of memory is a vector.
    totals["warp_issue_instruction"] = (instructions + moved / _VECTOR_BYTES) / _WARP
    return {price: total / row.time_s / 1e12 for price, total in totals.items()}


def _factors(run: Sequence[Row], prices: Mapping[str, float], capability: Capability, idle_w: float) -> Factors:
    """The factors that the quick runs ask for, by least squares of relative errors."""
    from scipy.optimize import nnls

    watts = []
    for row in run:
        by_price = {name: prices[name] * rate for name, rate in _rates(row, capability).items()}
        memory_w = by_price.pop(_DRAM)
        watts.append((sum(by_price.values()), memory_w))
    power_w = np.array([row.power_w for row in run], dtype=np.float64)
    core, memory = nnls(np.array(watts) / power_w[:, None], 1.0 - idle_w / power_w)[0]
    return Factors(float(core), float(memory))


def _times_factors(prices: Mapping[str, float], factors: Factors) -> dict[str, float]:
    scaled = {name: price * factors.core for name, price in prices.items()}
    return {**scaled, _DRAM: prices[_DRAM] * factors.memory}


def _tensor_pj(row: Row, idle_w: float) -> float:
    """The quick price of a flop of the tensor cores: all power above idle, so issue and registers are in it."""
    assert row.power_w is not None
    return max(row.power_w - idle_w, 0.0) * row.time_s / row.counts["tensor_fp16"] * 1e12
