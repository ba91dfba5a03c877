"""The most that uncounted work can take: what a log lacks is bounded class by class, by what the hardware can do.

An SM issues so many instructions a cycle and moves so many bytes; the cycles are counted, or follow from the time and
the peak of FP32. A bound here is generous: the interval that it ends is to hold the truth, not to look good.
"""

import math

import numpy as np
from msgspec import Struct

from eprof.base.arrays import Floats, known_or_zero
from eprof.base.marks import Mark
from eprof.base.text import pattern
from eprof.base.vocabulary import (
    CONSTANT,
    COUNTS,
    FLOAT_PARTS,
    GROUPS,
    INSTRUCTIONS,
    ISSUED,
    LEVEL_PARTS,
    PRICED,
    TENSOR_FLOPS,
)
from eprof.costs import Costs
from eprof.counts.counts import Counts
from eprof.energy.attribution import Split
from eprof.energy.replicas import amounts_of

_FEWEST_LANES = 64  # of FP32 in an SM: its cycles are at most the FP32 instructions that the peak allows over this
_THREADS = 32  # of a warp
# What an SM can do in a cycle, on any GPU that tables are for, in thread instructions and bytes.
_ISSUED_A_CYCLE = 256.0  # 4 schedulers, two instructions at a time until Pascal
_TENSOR_A_CYCLE = 32768.0  # flops, of the narrowest type
_BYTES_A_CYCLE = {"shared": 128.0, "l1": 128.0, "l2": 128.0}
_OFF_CHIP = ("dram", "system")  # a link to the host is never faster than the GPU's own DRAM
# Of a product on tensor cores, the rest of its arithmetic is its epilogue, in FP32 or FP16: some instructions for each
# element of the result, which took 2 K flops on tensor cores, K being some hundreds or thousands.
_PRODUCT = pattern(r"(?i)gemm|nvjet|xmma|mma_|fprop|dgrad|wgrad|cutlass")
_HOST_BYTE = 10.0  # times a byte from the GPU's own DRAM, at most: that of the host's, and a link of some pJ a bit
_EPILOGUE = 1 / 128
_CLASSED = [name for name in INSTRUCTIONS if name not in ISSUED and COUNTS[name].group != "tensor"]
_MISSING = int(Mark.MISSING)


class Uncounted(Struct, frozen=True, eq=False):
    """The most energy in J that uncounted work can take: by group, group -> (n_kernels,), and in all, (n_kernels,).

    0 where nothing is missing, infinite where nothing bounds it. Groups of instructions share what was issued, so that
    they may add up to more than the total.
    """

    groups: dict[str, Floats]
    total: Floats


def uncounted(counts: Counts, costs: Costs, split: Split, prices: Floats) -> Uncounted:
    """Bound the energy of what was not counted, or has no price. prices: (n_priced,), J an instruction or byte, W."""
    amounts = amounts_of(counts)
    rates = _Rates(counts, costs)
    groups = {group: np.zeros(len(counts.rows)) for group in GROUPS}
    dearest = np.zeros(len(counts.rows))
    for place, word in enumerate(PRICED):
        if word not in split.joules:
            continue
        is_lost = (split.joule_marks[word] & _MISSING) != 0
        if not is_lost.any():
            continue
        known, price = known_or_zero(amounts[:, place]), prices[place]
        more = np.maximum(rates.most_of(word) - known, 0.0)
        group = CONSTANT if word == CONSTANT else COUNTS[word].group
        # What was counted and has no price may cost anything; what was not counted and has none is in other prices.
        lost = np.where(known > 0, np.inf, 0.0)
        if price:
            lost = more * price
        elif group == "system":
            lost = known * _HOST_BYTE * max(prices[PRICED.index(level)] for level in LEVEL_PARTS["dram"] + ("dram",))
        # Words of one group are alternatives ("l2", or "l2_read" and "l2_write"): the dearest of them bounds it.
        groups[group] = np.maximum(groups[group], np.where(is_lost, lost, 0.0))
        if word in _CLASSED:
            dearest = np.maximum(dearest, np.where(is_lost, price, 0.0))
    classed = {COUNTS[word].group for word in _CLASSED}
    together = np.fmin(sum(groups[group] for group in classed), _product(dearest, rates.left) + groups["other"])
    rest = sum(joules for group, joules in groups.items() if group not in classed)
    return Uncounted(groups, np.asarray(together + rest))


def _product(price: Floats, number: Floats) -> Floats:
    return np.where(price > 0, price * np.where(price > 0, number, 0.0), 0.0)


class _Rates:
    """The most of each word that each kernel can have done in its time, (n_kernels,)."""

    def __init__(self, counts: Counts, costs: Costs) -> None:
        self.counts = counts
        rows = counts.rows
        is_whole = ~np.isnan(rows.time_s) & ((rows.time_marks & _MISSING) == 0)
        giga_s = 1e9 * np.where(is_whole, rows.time_s, np.inf)
        single, double = ((peak or math.inf) / 2 * giga_s for peak in (costs.peaks.sp_gflops, costs.peaks.dp_gflops))
        self.cycles = self._counted("sm_active_cycle", single / _FEWEST_LANES)
        self.of_group = {
            "fp64": np.fmin(double, single),
            # No GPU has more integer lanes than FP32 ones, and special functions have a quarter of them at most.
            **{"fp32": single, "int": single, "sfu": single / 4},
            **dict.fromkeys(_OFF_CHIP, (costs.peaks.dram_gb_per_s or math.inf) * giga_s),
            **{level: self.cycles * byte for level, byte in _BYTES_A_CYCLE.items()},
        }
        issued = self._counted("warp_issue", self.cycles * _ISSUED_A_CYCLE / _THREADS)
        classed = known_or_zero(counts.amounts.only([word for word in _CLASSED if word in counts.amounts]))
        self.issued = issued
        self.left = np.maximum(_THREADS * issued - classed.sum(axis=1), 0.0)
        self.epilogue = self._of_epilogues()

    def _counted(self, word: str, allowed: Floats) -> Floats:
        """A count where it is whole, else the most that it can be."""
        if word not in self.counts.amounts:
            return allowed
        number = self.counts.amounts[word]
        is_whole = ~np.isnan(number) & ((self.counts.amount_marks[word] & _MISSING) == 0)
        return np.where(is_whole, number, allowed)

    def _of_epilogues(self) -> Floats:
        """The most arithmetic beside tensor cores, of products that these were counted for; else infinite."""
        words = [word for word in TENSOR_FLOPS if word in self.counts.amounts]
        tensor = known_or_zero(self.counts.amounts.only(words)).sum(axis=1)
        is_product = np.array([bool(_PRODUCT.search(name)) for name in self.counts.rows.kernel], dtype=bool)
        return np.where(is_product & (tensor > 0), tensor * _EPILOGUE, np.inf)

    def most_of(self, word: str) -> Floats:
        """The most of a word."""
        if word in ISSUED:
            return self.issued
        if word == CONSTANT:
            return np.full(len(self.counts.rows), np.inf)
        group = COUNTS[word].group
        if group == "tensor":
            # Beside the type that was counted of a product, there is next to none of another.
            return np.asarray(np.fmin(self.cycles * _TENSOR_A_CYCLE, self.epilogue))
        most = self.of_group.get(group, np.full(len(self.counts.rows), np.inf))
        if word not in _CLASSED:
            return most
        most = np.asarray(np.fmin(most, self.left))
        if group not in FLOAT_PARTS and group != "sfu":
            return most
        most = np.where(np.isinf(self.epilogue), most, np.fmin(most, np.where(group == "fp64", 0.0, self.epilogue)))
        if not word.endswith("_other"):
            return most
        # Comparisons, minima and the like go with arithmetic of their type: without any, there is nothing to compare.
        arithmetic = self.counts.amounts.only([f"{group}_{kind}" for kind in ("fma", "add", "mul")]).sum(axis=1)
        return np.where(np.isnan(arithmetic), most, np.fmin(most, arithmetic))
