"""Metrics of Nsight Compute that have a value for each opcode: as counters of their own, `metric[OPCODE]`.

Cells of a metric with instances are `total (NAME: value; NAME: value; ...)` (`--print-metric-instances details`),
`total (value; value; ...)` (`values`), or, as in 2019, the bare values with `; ` between.
"""

from collections.abc import Collection, Container, Mapping, Sequence

import numpy as np

from eprof.base.arrays import Array
from eprof.base.text import pattern
from eprof.logs.rows.numbers import Style, ungrouped, value
from eprof.logs.rows.sections import Cells, texts_of
from eprof.profilers.ncu.matrix_opcodes import TYPES, WITH_MODIFIERS, flops_by_type

PER_OPCODE = pattern(r"sass__(?:thread_)?inst_executed(?:_true)?_per_opcode|" + WITH_MODIFIERS)
_NAMED = pattern(r"\(((?:[A-Za-z_][\w.]*: [^;()]*)(?:; [A-Za-z_][\w.]*: [^;()]*)*)\)$")
_WITH_TOTAL = pattern(r"\s*+([^;(]++)\(.*\)\s*")
_NO_NUMBER = r"[^0-9.,eE+-]"
_ODD = pattern(_NO_NUMBER)
_TOLERANCE = 1e-6  # of the total: instances are whole numbers, the total too
Opcodes = Mapping[str, float] | None


def totals(cells: Cells) -> Cells:
    """Cells of ncu's metrics with instances as their totals; empty where only instances are there."""
    if isinstance(cells, list) or cells.str.contains(_NO_NUMBER).any():
        return [_instances_total(cell) if _ODD.search(cell) else cell for cell in texts_of(cells)]
    return cells


def _instances_total(cell: str) -> str:
    cell = ungrouped(cell)
    match = _WITH_TOTAL.fullmatch(cell)
    total = match[1].rstrip() if match else cell
    return "" if ";" in total else total


def is_several(cell: str) -> bool:
    """Whether a cell holds the values of several instances of an ncu metric and no total."""
    return ";" in cell and not _instances_total(cell)


def opcodes(cells: Sequence[str], style: Style) -> list[Opcodes]:
    """The value of each opcode in each of these cells of an ncu metric; None where a cell does not have them."""
    found: list[Opcodes] = []
    for match in map(_NAMED.search, cells):
        pairs = [pair.partition(": ") for pair in match[1].split("; ")] if match else []
        counts = {name: value(text, style) for name, _, text in pairs}
        found.append(counts if counts and all(count >= 0 for count in counts.values()) else None)
    return found


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
        return _flops(known, keep)
    wanted = list(dict.fromkeys(opcode for counts in known if counts for opcode in counts))
    if wanted and isinstance(keep, Collection):
        wanted = sorted({name.partition("[")[2][:-1] for name in keep if name.startswith(f"{metric}[")})
    return {f"{metric}[{opcode}]": np.array([_opcode_count(counts, opcode) for counts in known]) for opcode in wanted}


def _flops(launches: Sequence[Opcodes], keep: Container[str] | None) -> dict[str, Array]:
    """The flops of matrix instructions by the type of operands, instead of each opcode instance with its modifiers."""
    flops = [None if counts is None else flops_by_type(counts) for counts in launches]
    if not any(flops):
        return {}
    names = {f"{WITH_MODIFIERS}[flops {kind}]": kind for kind in TYPES}
    return {
        name: np.array([_opcode_count(own, kind) for own in flops])
        for name, kind in names.items()
        if keep is None or name in keep
    }


def _opcode_count(counts: Opcodes, opcode: str) -> float:
    return np.nan if counts is None else counts.get(opcode, 0.0)
