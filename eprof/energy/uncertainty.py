"""How far energies are known: by `Replicas` of the prices, the error of the model, and bounds on what was not counted.

Energy is linear in prices ([FMM] section II; docs/model.md), so that counts times the prices of all replicas is one
product of matrices. The model's own error was measured on kernels that the fit had not seen.

What a log lacks is bounded class by class, by what the hardware can do: an SM issues so many instructions a cycle and
moves so many bytes; the cycles are counted, or follow from the time and the peak of FP32, at the highest clock that
such a board may reach. A bound is generous: the interval that it ends is to hold the truth, not to look good.
"""

import math
from collections.abc import Sequence
from functools import cached_property, lru_cache

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Floats, known_or_zero, middle_share
from eprof.base.gpus import capabilities_of_label, capability_of_label, data_sheet, sheets_of
from eprof.base.kernels import is_plain_product
from eprof.base.optional import either, mapped
from eprof.base.vocabulary import (
    ASSUMED,
    CONSTANT,
    COUNTS,
    CPU,
    FLOAT_PARTS,
    GROUP_OF,
    GROUPS,
    INSTRUCTIONS,
    ISSUED,
    LEVEL_PARTS,
    MISSING,
    PRICED,
    TENSOR_FLOPS,
)
from eprof.costs import Costs, CostTable
from eprof.counts.counts import Counts
from eprof.counts.definition import ROOMS
from eprof.energy.attribution import Split
from eprof.energy.clocks import RETIRED_A_CYCLE

_FEWEST = 10  # replicas that percentiles can be taken of


class Replicas(Struct, frozen=True, eq=False, dict=True):
    """The prices of a cost table in each of its replicas (refits): how far these differ is how well they are known.

    prices: (n_priced, n_replicas), in the order of `PRICED`: J an instruction or byte, W of constant power.
    share: the share of the replicas that an interval holds. within: nine of ten kernels that the fit has not seen are
    this factor off at most; 1 where nobody measured that. apart: how many times as much, or as little, the cores of
    another CPU may take; 1: the CPU is the table's. fits: how many replicas, the first, are the table's own; 0: all.
    """

    prices: Floats
    share: float
    within: float = 1.0
    apart: float = 1.0
    fits: int = 0

    @property
    def number(self) -> int:
        """The number of replicas of the prices."""
        return len(self.prices.T)

    def joules(self, amounts: Floats) -> Floats:
        """Energy in J by each replica: (..., n_priced) counts and seconds -> (..., n_replicas). NaN adds nothing."""
        # einsum, as a product by BLAS ends the process where memory is short.
        return np.asarray(np.einsum("...w,wd->...d", known_or_zero(amounts), self.prices))

    def interval(self, joules: Floats, value_j: Floats | float, spread_j: Floats | float = 0.0) -> Floats:
        """The middle `share` of the replicas, stretched to hold the value: (..., n_replicas) -> (..., 2).

        spread_j: the energy that has the error of the model, as `independent` adds it up; the interval is at least as
        wide as `within` makes it.
        """
        low, high = np.moveaxis(middle(joules, value_j, self.share), -1, 0)
        below, above = spread_j * (1 - 1 / self.within), spread_j * (self.within - 1)
        return np.stack([np.minimum(low, value_j - below), np.maximum(high, value_j + above)], axis=-1)

    @cached_property
    def price_intervals(self) -> Floats:
        """The interval of each price over the table's own replicas, (n_priced, 2)."""
        own = self.prices[:, : self.fits or None]
        return middle_share(own, self.share).T

    def for_another(self, apart: float, constant_w: Sequence[float]) -> "Replicas":
        """These replicas, and more for another CPU: all prices times and over `apart`, at each constant power.

        constant_w: the power in W that the CPU may draw without work at least and at most.
        """
        made = []
        for power_w in (None, *constant_w):
            for factor in (1.0, 1 / apart, apart):
                prices = factor * self.prices
                prices[-1] = either(power_w, self.prices[-1])
                made.append(prices)
        return replace(self, prices=np.concatenate(made, axis=1), apart=apart, fits=self.number)


def replicas_of(table: CostTable, costs: Costs) -> Replicas | None:
    """The replicas of a table at the setting of `costs`; None where it has too few to tell."""
    replicas = table.replicas(costs.setting.clocks)
    if len(replicas) < _FEWEST:
        return None
    prices = np.stack([prices_of(costs) for costs in replicas], axis=-1)
    return Replicas(prices, table.interval_share, table.within)


def prices_of(costs: Costs) -> Floats:
    """The price of each of `PRICED` in J or W by one replica or table, (n_priced,); 0 without one."""
    pj = {word: charge.pj for word, charge in costs.charges.items()}
    return np.array([*(pj.get(word, 0.0) * 1e-12 for word in COUNTS), costs.constant_power_w])


def amounts_of(counts: Counts) -> Floats:
    """Counts and times as `Replicas.joules` takes them, (n_kernels, n_priced); NaN = not known."""
    amounts = counts.amounts.columns_or(PRICED)
    amounts[:, PRICED.index(CONSTANT)] = counts.rows.time_s
    return amounts


def places(words: Sequence[str]) -> list[int]:
    """The places of these counts in `PRICED`, and so among the prices of `Replicas`."""
    return [PRICED.index(word) for word in words]


def independent(parts_j: Floats) -> float:
    """The J of a sum over kernels to which the model's own error applies. parts_j: of each kernel, (n_kernels,).

    The errors of kernels are independent, so that they partly cancel: the root of the sum of squares (docs/model.md).
    """
    return float(np.linalg.norm(known_or_zero(parts_j)))


def middle(numbers: Floats, value: Floats | float, share: float) -> Floats:
    """[low, high] that holds the middle `share` of the replicas' numbers, and the value: (..., n) -> (..., 2).

    The value by a fit to all data may lie outside of what replicas make of it: the interval is widened to hold it.
    """
    low, high = middle_share(numbers, share)
    return np.stack([np.minimum(low, value), np.maximum(high, value)], axis=-1)


_FEWEST_LANES = 64  # of FP32 in an SM: its cycles are at most the FP32 instructions that the peak allows over this
_THREADS = 32  # of a warp
# What an SM can do in a cycle, on any GPU that tables are for, in thread instructions and bytes.
_ISSUED_A_CYCLE = 256.0  # 4 schedulers, two instructions at a time until Pascal
_TENSOR_A_CYCLE = 65536.0  # flops, of the narrowest type: a B300's dense FP4 is about 49,000
_BYTES_A_CYCLE = 128.0  # from the L1 and L2 caches, and from shared memory
_SHARED_OF_KEPLER = 256.0  # 32 banks of 8 bytes
_ROUNDED = 1.01  # a share in per cent is printed with two decimals, and its cycles are those of one pass
_HOST_BYTE = 10.0  # times a byte from the GPU's own DRAM, at most: that of the host's, and a link of some pJ a bit
# Of a plain product on tensor cores, the rest of its arithmetic is its epilogue, in FP32 or FP16: some instructions for
# each element of the result, which took 2 K flops on tensor cores, K being some hundreds or thousands.
_EPILOGUE = 1 / 128
_VECTORS = 2.0  # multiply-adds in a cycle of a CPU's core, of vectors as wide as the flops a cycle of its table tell
_NARROW_FLOPS = 4.0  # of a vector of 128 bits: two numbers, multiplied and added
_CLASSED = [name for name in INSTRUCTIONS if name not in ISSUED and COUNTS[name].group != "tensor"]
_NARROW = "fp64_narrow"


class Uncounted(Struct, frozen=True, eq=False):
    """The most energy in J that uncounted work can take: by group, group -> (n_kernels,), and in all, (n_kernels,).

    0 where nothing is missing, infinite where nothing bounds it. Groups of instructions share what was issued, so that
    they may add up to more than the total.
    """

    groups: dict[str, Floats]
    total: Floats


def uncounted(counts: Counts, costs: Costs, split: Split, prices: Floats) -> Uncounted:
    """Bound each kernel's energy of what was not counted or has no price, by what hardware can do in the kernel's time.

    prices: (n_priced,), in J an instruction or byte, and W.
    """
    amounts = amounts_of(counts)
    rates = _Rates(counts, costs)
    groups = {group: np.zeros(len(counts.rows)) for group in GROUPS}
    dearest, unpriced = np.zeros(len(counts.rows)), np.zeros(len(counts.rows))
    for place, word in enumerate(PRICED):
        if word not in split.joules:
            continue
        is_lost = (split.joule_marks[word] & MISSING) != 0
        if not is_lost.any():
            continue
        known, price = known_or_zero(amounts[:, place]), prices[place]
        if word == _NARROW:  # what a flop costs more than one of wide vectors
            price += prices[PRICED.index("fp64")]
        more = np.maximum(rates.most_of(word) - known, 0.0)
        group = GROUP_OF[word]
        # What was counted and has no price may cost anything; what was not counted and has none is in other prices.
        lost = np.where(known > 0, np.inf, 0.0)
        wider = prices[PRICED.index(word.replace("fp32", "fp64"))] if word.startswith("fp32") else 0.0
        if price:
            lost = more * price
        elif wider:  # in FP32 it costs no more than in FP64
            unpriced += np.where(is_lost, known * wider, 0.0)
            lost = unpriced
        elif group == "system":
            lost = known * _HOST_BYTE * max(prices[PRICED.index(level)] for level in LEVEL_PARTS["dram"] + ("dram",))
        # Words of one group are alternatives ("l2", or "l2_read" and "l2_write"): the dearest of them bounds it.
        groups[group] = np.maximum(groups[group], np.where(is_lost, lost, 0.0))
        if word in _CLASSED:
            dearest = np.maximum(dearest, np.where(is_lost, price, 0.0))
    classed = {COUNTS[word].group for word in _CLASSED}
    left_j = np.where(dearest > 0, dearest * np.where(dearest > 0, rates.left, 0.0), 0.0)  # 0 times infinite is 0
    together = np.fmin(sum(groups[group] for group in classed), left_j + groups["other"] + unpriced)
    rest = sum(joules for group, joules in groups.items() if group not in classed)
    return Uncounted(groups, np.asarray(together + rest))


@lru_cache(maxsize=64)
def _board(device_label: str | None) -> tuple[float, float, float]:
    """(most factor on its clock, most GB/s of DRAM or 0: as prices tell, shared-memory bytes a cycle) of a board."""
    may_be = sheets_of(device_label)
    known = mapped(capabilities_of_label, device_label) or ()
    is_kepler = any(capability.startswith("3.") for capability in known)
    return (
        max((sheet.beyond_clock for sheet in may_be), default=1.0),
        max((sheet.peaks.get("dram_gb_per_s", 0.0) for sheet in may_be if len(may_be) > 1), default=0.0),
        _SHARED_OF_KEPLER if is_kepler else _BYTES_A_CYCLE,
    )


class _Rates:
    """What hardware can do: the most instructions or bytes of each class that a kernel can have done, (n_kernels,)."""

    def __init__(self, counts: Counts, costs: Costs) -> None:
        self.counts = counts
        rows = counts.rows
        giga_s = 1e9 * np.where(rows.is_timed, rows.time_s, np.inf)
        # Where the log names no GPU, its multiprocessors or the user may have told the board that the prices are of.
        of_costs = costs.device if data_sheet(costs.device) is not None else None
        labels = [of_costs if of_costs and capability_of_label(label or "") else label for label in rows.device]
        self.beyond, dram, shared = np.array([_board(label) for label in labels]).reshape(-1, 3).T
        path = costs.peaks.dram_path_gb_per_s or math.inf
        single, double = (
            (peak or math.inf) / 2 * giga_s * self.beyond for peak in (costs.peaks.sp_gflops, costs.peaks.dp_gflops)
        )
        # Every unit worked in at most as many cycles as the busiest, the schedulers too.
        room = {name: np.full(len(rows), np.inf) for name in ROOMS}
        if counts.shape is not None:
            room = {name: _ROUNDED * counts.shape[name] for name in room}
        busiest = room["fp32_room"]
        double = np.fmin(double, room["fp64_most"])
        single = np.fmin(single, busiest)
        self.cycles = self._counted("sm_active_cycle", single / _FEWEST_LANES)
        self.narrow: Floats = np.fmin(double, single)
        self.tensor = np.fmin(self.cycles, busiest / _FEWEST_LANES) * _TENSOR_A_CYCLE
        # A link to the host is never faster than the GPU's own DRAM.
        of_table = costs.peaks.dram_gb_per_s
        dram_gb_per_s = np.where(dram > 0, np.maximum(of_table or 0.0, dram), of_table or math.inf)
        off_chip = np.fmin(dram_gb_per_s, path) * giga_s
        self.of_group = {
            "fp64": self.narrow,
            # No GPU has more integer lanes than FP32 ones; special functions have a quarter of them at most, and packed
            # FP16 twice as many (an A100).
            **{"fp32": single, "int": single, "sfu": single / 4, "fp16": 2 * single},
            "system": off_chip,
            "dram": np.fmin(off_chip, 1e9 * dram_gb_per_s * room["dram_room"]),
            "shared": np.fmin(self.cycles * shared, room["l1_room"]),
            "l1": np.fmin(self.cycles * _BYTES_A_CYCLE, room["l1_room"]),
            "l2": np.fmin(self.cycles * _BYTES_A_CYCLE, room["l2_room"]),
        }
        self.issued = self._counted("warp_issue", np.fmin(self.cycles * _ISSUED_A_CYCLE, 2 * busiest) / _THREADS)
        if costs.processor == CPU and costs.cores and costs.setting.core_mhz and costs.peaks.dp_gflops:
            # Its cores' own cycles and instructions bound its arithmetic, whatever clock they ran at.
            cores_ghz = costs.cores * costs.setting.core_mhz / 1e3
            cycles = self._counted("core_active", cores_ghz * giga_s)
            self.issued = self._counted("retired", RETIRED_A_CYCLE * cycles)
            vectors = np.fmin(_VECTORS * cycles, self.issued)
            most = vectors * costs.peaks.dp_gflops / cores_ghz / _VECTORS / 2
            self.of_group["fp64"] = np.fmin(most, room["fp64_most"])
            self.narrow = np.fmin(vectors * _NARROW_FLOPS, room["fp64_most"])
        classed = known_or_zero(counts.amounts.only(_CLASSED))
        self.left = np.maximum(_THREADS * self.issued - classed.sum(axis=1), 0.0)
        # The most arithmetic beside tensor cores, of products that these were counted for; else infinite.
        tensor = counts.amounts.only([word for word in TENSOR_FLOPS if word in counts.amounts])
        tensor_flops = known_or_zero(tensor).sum(axis=1)
        is_product = np.array([is_plain_product(name) for name in rows.kernel], dtype=bool)
        self.epilogue = np.where(is_product & (tensor_flops > 0), tensor_flops * _EPILOGUE, np.inf)
        self.is_double = known_or_zero(counts.amounts.only(["tensor_fp64"])).sum(axis=1) > 0

    def _counted(self, word: str, allowed: Floats) -> Floats:
        """The count of `word` for each kernel where it is whole, else `allowed`; (n_kernels,)."""
        if word not in self.counts.amounts:
            return allowed
        number, marks = self.counts.amounts[word], self.counts.amount_marks[word]
        is_whole = ~np.isnan(number) & ((marks & MISSING) == 0)
        # Of cycles at a clock that is assumed, the board may have had more.
        return np.where(is_whole, number * np.where(marks & ASSUMED, self.beyond, 1.0), allowed)

    def most_of(self, word: str) -> Floats:
        """The most instructions or bytes of the class `word` in each kernel, (n_kernels,); infinite: no bound."""
        if word in ISSUED:
            return self.issued
        if word == _NARROW:
            return self.narrow
        if word == CONSTANT:
            return np.full(len(self.counts.rows), np.inf)
        group = COUNTS[word].group
        if group == "tensor":
            # Beside the type that was counted of a product, there is next to none of another.
            return np.asarray(np.fmin(self.tensor, self.epilogue))
        most: Floats = self.of_group.get(group, np.full(len(self.counts.rows), np.inf))
        if word not in _CLASSED:
            return most
        most = np.asarray(np.fmin(most, self.left))
        if group not in FLOAT_PARTS and group != "sfu":
            return most
        # The epilogue of a product is in FP64 if the product is.
        has_epilogue = (group != "fp64") | self.is_double
        beside = np.where(has_epilogue | np.isinf(self.epilogue), self.epilogue, 0.0)
        return np.asarray(np.fmin(most, beside))
