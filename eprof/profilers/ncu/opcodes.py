"""Metrics of Nsight Compute that have a value for each opcode: as counters of their own, `metric[OPCODE]`.

Cells of a metric with instances are `total (NAME: value; NAME: value; ...)` (`--print-metric-instances details`),
`total (value; value; ...)` (`values`), or, as in 2019, the bare values with `; ` between.

Opcodes of matrix instructions with modifiers (`HMMA.16816.F32.BF16`) tell flops by the type of operands: the digits are
the shape m n k of the product that a warp works out, 2 m n k flops. Those of Hopper (`HGMMA.64x128x16.F32`) are one
product for the four warps of a group, each of which ncu counts. Not known are instructions of steps (HMMA.884 of Volta)
and those of Blackwell's tc pipe (UTCHMMA), which do not tell their shape.
"""

from collections.abc import Collection, Container, Mapping, Sequence

import numpy as np

from eprof.base.arrays import Array
from eprof.base.optional import mapped
from eprof.base.text import pattern, when
from eprof.readers.cells import Style, ungrouped, value, values
from eprof.readers.sections import Cells, has, texts_of

WITH_MODIFIERS = "sass__inst_executed_per_opcode_with_modifier_all"
PER_OPCODE = pattern(r"sass__(?:thread_)?inst_executed(?:_true)?_per_opcode|" + WITH_MODIFIERS)
_NAMED = pattern(r"\(((?:[A-Za-z_][\w.]*: [^;()]*)(?:; [A-Za-z_][\w.]*: [^;()]*)*)\)$")
_WITH_TOTAL = pattern(r"\s*+([^;(]++)\(.*\)\s*")
_NO_NUMBER = r"[^0-9.,eE+-]"
_ODD = pattern(_NO_NUMBER)
_TOLERANCE = 1e-6  # of the total: instances are whole numbers, the total too
Opcodes = Mapping[str, float] | None
TYPES = ("fp64", "tf32", "bf16", "fp16", "fp8", "fp6", "fp4", "int8", "other")
_OF_A_WARP = pattern(r"(8|16)8(4|8|16|32|64|128|256)")
_OF_A_GROUP = pattern(r"64x(\d+)x(\d+)")
_WARPS_OF_A_GROUP = 4
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


def totals(cells: Cells) -> Cells:
    """Reduce cells of ncu's metrics to their totals, without values of instances; "" where only these are there."""
    if has(cells, _NO_NUMBER):
        return [_instances_total(cell) if _ODD.search(cell) else cell for cell in texts_of(cells)]
    return cells


def _instances_total(cell: str) -> str:
    cell = ungrouped(cell)
    match = _WITH_TOTAL.fullmatch(cell)
    total = match[1].rstrip() if match else cell
    return when(";" not in total, total)


def has_several(cells: Cells) -> bool:
    """Whether a cell holds the values of several instances of an ncu metric and no total."""
    return has(cells, ";") and any(";" in cell and not _instances_total(cell) for cell in texts_of(cells))


def of_cells(metric: str, cells: Cells, style: Style, keep: Container[str] | None) -> dict[str, Array]:
    """What `columns` makes of the printed cells, one a launch, of an ncu metric with a value for each opcode."""
    launches: list[Opcodes] = []
    for cell in texts_of(cells):
        pairs = [pair.partition(": ") for named in _NAMED.findall(cell) for pair in named.split("; ")]
        counts = {name: value(text, style) for name, _, text in pairs}
        launches.append(counts if counts and all(count >= 0 for count in counts.values()) else None)
    return columns(metric, launches, values(totals(cells), style), keep)


def columns(metric: str, launches: Sequence[Opcodes], total: Array, keep: Container[str] | None) -> dict[str, Array]:
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
        if shape := _OF_A_WARP.fullmatch(modifier):
            return int(shape[1]) * 8 * int(shape[2])
        if shape := _OF_A_GROUP.fullmatch(modifier):
            return 64 * int(shape[1]) * int(shape[2]) / _WARPS_OF_A_GROUP
    return None
