"""Flops of tensor cores by the type of operands: `sm__ops_path_tensor_src_TYPE*.sum`, the sum of what a log has of it.

ncu counts the operations of a type as a whole (`..._src_fp16.sum`) or by what they add up in (`..._dst_fp32`), and may
split both by instruction (`..._op_hgmma_src_fp16`) and by sparsity (`..._sparsity_on`). What a log has of these depends
on the chip and on the set of metrics. Of a type that adds up in FP16 and in FP32 a log may have one of the two alone,
which is a sum with a name of its own.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from eprof.base.arrays import Array  # no numpy for `eprof run`, which asks for metrics and reads none

_NAME = re.compile(
    r"sm__ops_path_tensor(?:_op_(?P<op>[a-z]+))?_src_(?P<types>[a-z]+\d+(?:_[a-z]+\d+)*?)"
    r"(?:_dst_(?P<dst>[a-z]+\d+))?(?:_sparsity_(?P<sparsity>on|off))?\.sum"
)
_ADDS_UP_IN_TWO = ("fp16", "fp8", "fp4_fp6", "fp4_fp6_fp8")


class _TensorMetric(NamedTuple):
    """A metric of tensor operations, and which part of those of its types it counts; None: all of them."""

    name: str
    types: str
    op: str | None
    dst: str | None
    sparsity: str | None

    def contains(self, other: _TensorMetric) -> bool:
        """Whether all operations of tensor cores that the other metric counts are counted here as well."""
        pairs = ((self.op, other.op), (self.dst, other.dst), (self.sparsity, other.sparsity))
        return self != other and all(own in (None, part) for own, part in pairs)


def _tensor_metric(name: str) -> _TensorMetric | None:
    match = _NAME.fullmatch(name)
    return match and _TensorMetric(name, **match.groupdict())


def whole_name(types: str) -> str:
    """The name of the sum over all tensor core metrics of some types."""
    return f"sm__ops_path_tensor_src_{types}*.sum"


def by_op_name(types: str) -> str:
    """The name of the sum where the log has the types of tensor operations split by instruction."""
    return f"sm__ops_path_tensor_op_*_src_{types}*.sum"


def is_read(name: str, keep: Container[str]) -> bool:
    """Whether a tensor core metric is part of a wanted sum."""
    metric = _tensor_metric(name)
    return metric is not None and (whole_name(metric.types) in keep or by_op_name(metric.types) in keep)


def parts(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Name of a sum -> the tensor core metrics among `names` that it adds up, each operation once.

    A type that is split by sparsity has no sum where one half is not there.
    """
    by_types: dict[str, list[_TensorMetric]] = {}
    for metric in filter(None, map(_tensor_metric, names)):
        by_types.setdefault(metric.types, []).append(metric)

    sums = {}
    for types, metrics in by_types.items():
        whole = _outermost([metric for metric in metrics if metric.op is None])
        chosen = whole or _outermost(metrics)
        if chosen:
            name = whole_name(types) if whole else by_op_name(types)
            results = {metric.dst for metric in chosen}
            if types in _ADDS_UP_IN_TWO and None not in results and len(results) == 1:
                name = f"{whole_name(types)}[part]"  # only what adds up in one of FP16 and FP32
            sums[name] = tuple(metric.name for metric in chosen)
    return sums


def _outermost(metrics: Sequence[_TensorMetric]) -> list[_TensorMetric]:
    """The tensor core metrics that no other contains; none where the other half of a split by sparsity is not there."""
    outer = [metric for metric in metrics if not any(other.contains(metric) for other in metrics)]
    halves = [(metric.op, metric.dst) for metric in outer if metric.sparsity]
    is_half = any(halves.count(half) == 1 for half in halves)
    return [] if is_half else outer


def totals(metrics: Mapping[str, Array], keep: Container[str] | None) -> dict[str, Array]:
    """The sums over the tensor core metrics of a log, those that are wanted; NaN where a part is not known."""
    made = {}
    for name, names in parts(metrics).items():
        if keep is None or name in keep:
            made[name] = sum((metrics[part] for part in names[1:]), start=metrics[names[0]])
    return made
