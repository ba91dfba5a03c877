"""Metrics of Nsight Compute that have a value for each opcode: as counters of their own, `metric[OPCODE]`.

Cells of a metric with instances are `total (NAME: value; NAME: value; ...)` (`--print-metric-instances details`),
`total (value; value; ...)` (`values`), or, as in 2019, the bare values with `; ` between.
"""

import re
from collections.abc import Collection, Container, Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eprof.profilers.ncu.numbers import Array, Style, bytes_of, ungrouped, values

PER_OPCODE = re.compile(r"sass__(?:thread_)?inst_executed(?:_true)?_per_opcode")
_NAMED = re.compile(r"\(((?:[A-Za-z_][\w.]*: [^;()]*)(?:; [A-Za-z_][\w.]*: [^;()]*)*)\)$")
_WITH_TOTAL = r"^\s*([^;(]*[^;(\s])\s*\(.*\)\s*$"
_TOLERANCE = 1e-6  # of the total: instances are whole numbers, the total too


def totals(cells: pa.Array) -> pa.Array:
    """Cells with instances as their totals; empty where only the instances are told, whose sum may mean nothing."""
    cells = ungrouped(cells)
    if not len(cells) or not any((bytes_of(cells) == sign).any() for sign in b"(;"):
        return cells
    cells = pc.replace_substring_regex(cells, _WITH_TOTAL, r"\1")
    return pc.if_else(pc.match_substring(cells, ";"), "", cells)


def opcodes(metric: str, cells: Sequence[str | None], style: Style) -> list[Mapping[str, float] | None]:
    """The value of each opcode in each of these cells of a metric; None where a cell does not tell them."""
    found: list[Mapping[str, float] | None] = []
    for cell in cells if PER_OPCODE.fullmatch(metric) else ():
        named = _NAMED.search(cell or "")
        pairs = [one.partition(": ")[::2] for one in named[1].split("; ")] if named else []
        own = dict(zip((name for name, _ in pairs), _numbers([text for _, text in pairs], style), strict=True))
        found.append(own if pairs and all(value >= 0 for value in own.values()) else None)
    return found


def _numbers(texts: Sequence[str], style: Style) -> list[float]:
    return [float(one) for one in values(pa.array(texts, pa.string()), style)]


def columns(
    metric: str, told: Sequence[Mapping[str, float] | None], total: Array, keep: Container[str] | None
) -> dict[str, Array]:
    """A counter for each opcode, a value a launch: 0 for an opcode that a launch does not have.

    told: the opcodes of each launch; None, or opcodes that do not add up to the launch's `total`: NaN, not known.
    keep: the counters to make (opcodes that no launch has are 0 in all); None: the opcodes that occur.
    """
    good = [
        one if one is not None and _adds_up(one.values(), sum_) else None for one, sum_ in zip(told, total, strict=True)
    ]
    wanted = dict.fromkeys(opcode for one in good if one for opcode in one)
    if wanted and isinstance(keep, Collection):
        wanted = dict.fromkeys(sorted(n.partition("[")[2][:-1] for n in keep if n.startswith(f"{metric}[")))
    return {
        f"{metric}[{opcode}]": np.array([np.nan if one is None else one.get(opcode, 0.0) for one in good])
        for opcode in wanted
    }


def _adds_up(parts: Iterable[float], total: float) -> bool:
    return bool(np.isclose(sum(parts), total, rtol=_TOLERANCE, atol=0.5))
