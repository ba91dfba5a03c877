"""Cells: numbers with the units that nvprof glues to them, levels, and the many ways to say that there is no value."""

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from eprof.base.arrays import HOLDS, Array, Floats
from eprof.base.text import few, pattern
from eprof.logs.log import BYTES_PER_S, COUNT, LEVEL, OTHER, PERCENT, UNUSED

# What a cell is: an index into UNITS, or a negative reason for there being no value.
UNITS = (COUNT, PERCENT, BYTES_PER_S, LEVEL, OTHER)
_COUNT, _PERCENT, _BYTES_PER_S, _LEVEL, _OTHER = range(5)
EMPTY, OVERFLOW, INVALID, UNREADABLE, MISFIT, WRONG, ABSENT = -1, -2, -3, -4, -5, -6, -7
LARGEST = 1e30  # no counter and no time is; such numbers are damage, and their sums would be endless
# All 64 bits set, also as it is printed with six digits: a counter that went wrong. Nothing can be counted so often.
LEAST_WRONG = 1.84467e19
_MOST_WRONG = 2.0**64
# Counters of floating-point events that ran over read 2^47 too much, and a sum over threads so much for each of them.
_NEAR = 1e-3  # of what a counter holds
# Instructions count twice at most, where events are instructions; as operations, 32 times (two of 16 lanes).
_MOST_TIMES = {"fp_arith": 2, "": 32}
_NAMED = 3
# What notes say of cells without a value; where there is no cell (ABSENT), nothing is said.
REASONS = {
    EMPTY: "empty or not a number",
    OVERFLOW: "<OVERFLOW>",
    INVALID: "<INVALID>",
    UNREADABLE: "not readable",
    MISFIT: "of another unit than the rest of the column",
    WRONG: "2^64-1, which is no count (the counter went wrong)",
}
# Digits can be matched in one way only: else the many of a damaged cell would be tried in all.
_NUMBER = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_SIGNED, _UNSIGNED = pattern(f"[+-]?{_NUMBER}"), pattern(rf"\+?{_NUMBER}")
_WITH_UNIT = pattern(rf"(\+?{_NUMBER})(%|[KMGT]?B/s)?")
_LEVEL_TEXT = pattern(r"[A-Za-z]+ \((\d{1,9})\)")
# nvprof 11.8 prints 2**30 B/s as 1 GB/s, and logs of CUDA 8 hold "976.562500KB/s" for 10**6 B/s. Up to CUDA 6.5 it was
# 10**9: a K20c log holds "2.753000KB/s", and 10**9 gives the fixed 705 MHz clock there.
RATES = {"B/s": 1.0, "KB/s": 2.0**10, "MB/s": 2.0**20, "GB/s": 2.0**30, "TB/s": 2.0**40}
OLD_RATES = {"B/s": 1.0, "KB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12}
Rates = Mapping[str, float]
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_TIME = pattern(rf"({_NUMBER})(ns|us|ms|s)?")
_MISSING = dict.fromkeys(("", "-", "n/a", "nan", "-nan", "inf"), EMPTY) | {"<OVERFLOW>": OVERFLOW, "<INVALID>": INVALID}


def is_wrapped(event: str, count: float, instructions: float = math.nan) -> bool:
    """Whether a CPU's count of floating-point events overflowed: it is near a multiple of 2^47, or impossibly large.

    count: of a thread or a sum of threads, as is the number of their `instructions` (NaN: not known).
    """
    name = event.lower()
    if count < HOLDS * (1 - _NEAR) or not ("fp_" in name or "flops" in name):
        return False
    most = next(times for part, times in _MOST_TIMES.items() if part in name) * instructions
    return abs(count / HOLDS - round(count / HOLDS)) < _NEAR or count > most


def unused_notes(events: Iterable[str], keep: Container[str] | None) -> list[str]:
    """A note on events that were counted, and of which eprof makes no count, where there are such; None: of all."""
    unused = [f"`{event}`" for event in events if keep is not None and event not in keep]
    return [f"{few(unused, _NAMED, 'events')}: {UNUSED}, for eprof knows no use of such"] * bool(unused)


def no_kernels(others: Iterable[tuple[str, int, float]]) -> str:
    """A note on GPU work that is no kernel. others: (what it is called, how often it ran, for how many seconds)."""
    return "not kernels, so left out: " + ", ".join(f"{number} {noun} ({s * 1e3:.6g} ms)" for noun, number, s in others)


def cells(texts: Sequence[str], rates: Rates = RATES) -> tuple[Floats, Array]:
    """Values (float64; NaN = none; rates in B/s) and kinds (int8: index in UNITS, or why there is none) of texts."""
    known = {text: _cell(text.strip(), rates) for text in set(texts)}
    values, kinds = ([known[text][place] for text in texts] for place in (0, 1))
    return np.array(values, dtype=np.float64), np.array(kinds, dtype=np.int8)


def is_wrong(numbers: Any) -> Any:
    """Whether a number, or each of an array, is 2^64-1 (also rounded): a counter that went wrong, and no count."""
    return (numbers >= LEAST_WRONG) & (numbers <= _MOST_WRONG)


def shows_wrong(text: str) -> bool:
    """Whether a cell's text is such a number of a counter that went wrong."""
    return "84467" in text and is_number(text) and bool(is_wrong(float(text)))  # looking for digits is quick


def _cell(text: str, rates: Rates) -> tuple[float, int]:
    if match := _WITH_UNIT.fullmatch(text):
        number, suffix = float(match[1]), match[2]
        if not number < LARGEST:
            return np.nan, UNREADABLE
        if suffix is None and is_wrong(number):
            return np.nan, WRONG
        return number * rates.get(suffix, 1.0), {None: _COUNT, "%": _PERCENT}.get(suffix, _BYTES_PER_S)
    if level := _LEVEL_TEXT.fullmatch(text):
        return float(level[1]), _LEVEL
    if _SIGNED.fullmatch(text) and abs(float(text)) < LARGEST:
        return float(text), _OTHER
    return np.nan, _MISSING.get(text, _MISSING.get(text.lower(), UNREADABLE))


def is_number(text: str) -> bool:
    """Whether a cell is a plain number: finite, not negative, without unit."""
    return _UNSIGNED.fullmatch(text.strip()) is not None and float(text) < LARGEST


def seconds(text: str, unit: float | None = None) -> float:
    """A time in a cell, with its unit glued to it ("5.5060us") or else in `unit` (in s). NaN if it is none."""
    match = _TIME.fullmatch(text.strip())
    scale = match and SECONDS.get(match[2], unit)
    if not match or scale is None or float(match[1]) >= LARGEST:
        return math.nan
    return float(match[1]) * scale


def as_cell(kind: str) -> int:
    """The code of a unit in arrays of kinds of cells: its index in UNITS."""
    return UNITS.index(kind)
