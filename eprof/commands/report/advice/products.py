"""Kernels that do one and the same product of matrices, of which one is the cheapest. From `eprof.profile/1`."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from eprof.base.gpus import Traits, sheets_of
from eprof.base.kernels import is_plain_product
from eprof.base.optional import gathered
from eprof.base.optional import ratio as divided
from eprof.base.text import pattern, when
from eprof.base.vocabulary import TENSOR_FLOPS
from eprof.commands.report.change import Try
from eprof.commands.report.view import FLOPS, View
from eprof.counts.counters import find
from eprof.profile import schema
from eprof.show.words.numbers import percent_span

_LAYOUT = pattern(r"_([nt]{2})(?![a-z0-9])")  # of a product's operands, in names of cuBLAS and CUTLASS
_NO_DENSE_PRODUCT = pattern(r"(?i)(?<![a-z])[cz]gemm|complex|sp(?:arse|gemm)|implicit")  # or of other elements
_BITS = pattern(r"\d+")  # of an element, in a type's name ("tensor_fp16"); TF32 lies in memory as 32
_ALIKE = 0.03  # of flops, and of bytes written: products that differ by less are one
_THREADS = 32  # of a warp
_MATRIX_FLOPS = 512  # of the smallest instruction of tensor cores, m8n8k4
_LITTLE = 0.03  # of a launch's energy: what takes less more is no dearer


def cheaper_kernels(view: View) -> Iterator[Try]:
    """Use the cheapest of kernels that do the same product of matrices in place of the others.

    The same: as many flops and writes, and a grid for the same result.
    """
    if view.is_above:
        return
    made = (Product.of(view, kernel) for kernel in view.kernels if is_plain_product(kernel.name))
    for alike in _alike([product for product in made if product is not None]):
        best, *rest = sorted(alike, key=lambda product: product.each_j)
        dearer = [product for product in rest if product.each_j > (1 + _LITTLE) * best.each_j]
        if not dearer:
            continue
        saved_j = [(product.each_j - best.each_j) * product.kernel.launches for product in dearer]
        worst = dearer[max(range(len(dearer)), key=saved_j.__getitem__)]
        more = when(len(dearer) > 1, f" and {len(dearer) - 1} more")
        less = [1 - best.each_j / product.each_j for product in dearer]
        told = f"the same product, {percent_span(min(less), max(less))} less a launch"
        yield Try(f"use {view.label(best.kernel)} for {view.label(worst.kernel)}{more} ({told})", sum(saved_j))


def least_bytes(view: View, kernel: schema.Kernel) -> float:
    """The fewest bytes that a kernel's product of matrices can move, whatever its shape; 0 where it is not known.

    L x M x N multiplications take LM + MN + LN >= 3 (LMN)^(2/3) elements (Loomis and Whitney, 1949); and so many at
    least where they are of several launches.
    """
    work = flops_of(view, kernel)
    most = max(work, key=work.__getitem__, default="")
    width = next((int(bits) / 8 for bits in _BITS.findall(most)), 0.0)
    if not is_plain_product(kernel.name) or _NO_DENSE_PRODUCT.search(kernel.name):
        return 0.0
    return width * 3 * math.pow(work.get(most, 0.0) / 2, 2 / 3)


def flops_of(view: View, kernel: schema.Kernel) -> dict[str, float]:
    """Flops of a kernel by the count that tells them; of those that are known."""
    flops_each = {**FLOPS, **dict.fromkeys(TENSOR_FLOPS, 1.0)}
    counts = {name: view.amount(kernel, name).value for name in flops_each}
    return {name: flops_each[name] * number for name, number in counts.items() if number is not None}


def issued_for(kernel: schema.Kernel) -> float:
    """The J of issuing a product's FP32 multiply-adds that matrix instructions would save."""
    issued = kernel.counts.get("warp_issue")
    if not issued or not issued.value:
        return 0.0
    share = _multiplied(kernel) / _THREADS / issued.value
    return min(share, 1.0) * (1 - 2 * _THREADS / _MATRIX_FLOPS) * (issued.energy_j or 0.0)


def cycles_on_tensor_cores(view: View, kernel: schema.Kernel, word: str) -> tuple[float, float]:
    """(most, least) share of a kernel's cycles that its FP32 product would take on tensor cores at their peak.

    word: the type there. GeForce boards have half the rate. (1, 1): nothing tells it.
    """
    signs, cycles = kernel.signs or {}, kernel.counts.get("sm_active_cycle")
    definition = find("ncu", view.document.device.capability or "")
    rate, half = definition.parameters.get("fp16_rate", 0.0), definition.told.get("told_half")
    if not cycles or not cycles.value or not rate or not half or not half.device:
        return 1.0, 1.0
    if word == "tensor_tf32":
        rate /= 2
    traits = Traits(int(signs.get("multiprocessors", 0)) or None)
    are_half = {half.device.search(sheet.name) is not None for sheet in sheets_of(kernel.device, traits)}
    share = 2 * _multiplied(kernel) / rate / cycles.value
    ends = [min(share * (1 + is_half), 1.0) for is_half in sorted(are_half or {False, True})]
    return ends[-1], ends[0]


def _multiplied(kernel: schema.Kernel) -> float:
    """FP32 multiply-adds; where kinds are not told, all instructions."""
    counted = (kernel.counts.get(name) for name in ("fp32_fma", "fp32"))
    return next((count.value for count in counted if count and count.value), 0.0)


def _alike(products: Iterable["Product"]) -> list[list["Product"]]:
    """Groups of products that do the same, of one device, type and number of flops.

    Where names tell that operands are laid out otherwise ("nn", "nt"), those of one layout are a group.
    """
    groups: list[list[Product]] = []
    for product in sorted(products, key=lambda product: product.order):
        near = takewhile(product.is_near, reversed(groups))
        home = next((group for group in near if product.does_as(group[0])), None)
        if home is None:
            groups.append([product])
        else:
            home.append(product)
    of_one_layout = []
    for group in groups:
        by_layout = gathered(("".join(_LAYOUT.findall(each.kernel.name)[:1]), each) for each in group)
        same_layouts = [same for layout, same in by_layout.items() if layout]
        if len(same_layouts) < 2:
            same_layouts = [group]
        of_one_layout += same_layouts
    return of_one_layout


class Product(NamedTuple):
    """One launch of a product of matrices: J, type, flops, grid. written: bytes to DRAM, None if not known."""

    kernel: schema.Kernel
    each_j: float
    type: str
    flops: float
    written: float | None
    blocks: float
    threads: float

    @classmethod
    def of(cls, view: View, kernel: schema.Kernel) -> "Product | None":
        """The product that a kernel does; None where its work, energy or shape is not known."""
        works, signs = flops_of(view, kernel), kernel.signs or {}
        type_ = max(works, key=works.__getitem__, default="")
        blocks, threads = signs.get("blocks"), signs.get("threads")
        if not works.get(type_) or not kernel.energy_j.total or not blocks or not threads:
            return None
        each_j, flops = kernel.energy_j.total / kernel.launches, sum(works.values()) / kernel.launches
        written = divided(view.amount(kernel, "dram_write").value, kernel.launches)
        return cls(kernel, each_j, type_, flops, written, blocks, blocks * threads)

    @property
    def order(self) -> tuple[str, str, float]:
        """The key to sort products by, so that those that may do the same are neighbours."""
        return self.kernel.device or "", self.type, self.flops

    def is_near(self, group: Sequence["Product"]) -> bool:
        """Whether a group's products have as many flops of the same type, on the same device."""
        first = group[0]
        return self.order[:2] == first.order[:2] and abs(self.flops / first.flops - 1) <= _ALIKE

    def does_as(self, other: "Product") -> bool:
        """Whether a product writes as many bytes as another with as many flops, with a grid for the same result.

        Tiles of powers of two make numbers of threads that are apart by powers of two; where writes are not known, the
        blocks must be as many.
        """
        if self.written and other.written:
            steps = math.log2(self.threads / other.threads)
            return abs(self.written / other.written - 1) <= _ALIKE and abs(steps - round(steps)) < _ALIKE
        return self.written is other.written is None and self.blocks == other.blocks
