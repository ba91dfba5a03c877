"""Cells of logs: numbers with units as nvprof and ncu write them, in the style of a `Locale`, or without a value.

First the units that nvprof glues to numbers, levels, and the many ways to say that there is no value; then numbers in
the style of the user's locale (groups of digits, decimals), and units as Nsight Compute writes them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct

from eprof.base.arrays import HOLDS, Array, Floats
from eprof.base.errors import LogError
from eprof.base.text import few, pattern
from eprof.logs.log import BYTES_PER_S, COUNT, LEVEL, OTHER, PERCENT, UNUSED
from eprof.readers.sections import Cells, chosen, made, numbers_of, texts_of

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

    count: of a thread or a sum of threads, as is the number of their `instructions` (NaN: not known, of both).
    """
    name = event.lower()
    if not count >= HOLDS * (1 - _NEAR) or not ("fp_" in name or "flops" in name):
        return False
    most = next(times for part, times in _MOST_TIMES.items() if part in name) * instructions
    return abs(count / HOLDS - round(count / HOLDS)) < _NEAR or count > most


def unused_notes(events: Iterable[str], keep: Container[str] | None, noun: str = "events") -> list[str]:
    """A list of one note on counted events that are not in `keep`, so that nothing is made of them; [] if all are."""
    unused = [f"`{event}`" for event in events if keep is not None and event not in keep]
    return [f"{few(unused, _NAMED, noun)}: {UNUSED}, for eprof knows no use of such"] * bool(unused)


def no_kernels(others: Iterable[tuple[str, int, float]]) -> str:
    """A note on GPU work that is no kernel. others: (what it is called, how often it ran, for how many seconds)."""
    return "not kernels, so left out: " + ", ".join(f"{number} {noun} ({s * 1e3:.6g} ms)" for noun, number, s in others)


def cells(texts: Sequence[str], rates: Rates = RATES) -> tuple[Floats, Array]:
    """(Values of nvprof's cells, float64, NaN: none, rates in B/s; their kinds, int8: index in UNITS, or why none).

    rates: the size in B/s of each unit of rates, which differs between versions.
    """
    known = {text: _cell(text.strip(), rates) for text in set(texts)}
    values, kinds = ([known[text][place] for text in texts] for place in (0, 1))
    return np.array(values, dtype=np.float64), np.array(kinds, dtype=np.int8)


def is_wrong(numbers: Any) -> Any:
    """Whether a number, or each of an array, is 2^64-1 (also rounded): a counter that went wrong, and no count."""
    return (numbers >= LEAST_WRONG) & (numbers <= _MOST_WRONG)


def shows_wrong(text: str) -> bool:
    """Whether a cell's text is 2^64-1 (also rounded), as of a counter that went wrong."""
    return "84467" in text and is_number(text) and bool(is_wrong(float(text)))  # looking for digits is quick


def _cell(text: str, rates: Rates) -> tuple[float, int]:
    """The value and kind of one cell, as `cells` gives them."""
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
    """A cell's time in s, with its unit glued to it ("5.5060us") or else in `unit` (its size in s); NaN: it is none."""
    match = _TIME.fullmatch(text.strip())
    scale = match and SECONDS.get(match[2], unit)
    if not match or scale is None or float(match[1]) >= LARGEST:
        return math.nan
    return float(match[1]) * scale


def as_cell(kind: str) -> int:
    """The number that stands for a unit among the kinds that `cells` gives: its index in UNITS."""
    return UNITS.index(kind)


# ----------------------------------------------------------------------------------------------------------------------
# Numbers of any locale, and units.

_SHOWN = 40  # characters of a cell
# Some locales write a blank (French, Finnish) or an apostrophe (Swiss) between groups of three digits.
_BLANKS = "[ \u00a0\u2009\u202f\ufffd'\u2019]"
# Groups are of three digits, in India of two but for the last.
_IN_GROUPS = pattern(rf"\s*[+-]?[0-9]{{1,3}}(?:{_BLANKS}[0-9]{{2,3}})*{_BLANKS}[0-9]{{3}}(?:[.,][0-9]+)?\s*")
_SIX = pattern(r"[+-]?[0-9]+\.[0-9]{6}")
_PLAIN_NUMBER = pattern(r"[+-]?([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_WITH_SIGNS = pattern(r"[+-]?[0-9][0-9.,]*([eE][+-]?[0-9]+)?")
_PREFIX = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
# In nanoseconds, ncu's base unit of time.
_TIME_NS = {"ns": 1.0, "nsecond": 1.0, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9, "second": 1e9}
_PER_CENT = {"%": 1.0, "‰": 0.1}
_SCALED = pattern(
    r"([KMGTP]?)(byte|hz|inst|cycle|sector|warp|block|thread|request|wavefront|branches|op|register|bit)s?"
)
_NEVER_COUNTS = pattern(r"device__attribute_|.*\.(ratio|pct|max_rate)$|.*\.(per_|pct_of_|peak_)")
_WHOLE_UNITS = ("", "inst", "sector", "warp", "block", "thread", "request", "byte", "cycle", "ns", "nsecond")
_ROUNDED = 0.01  # 1.00 of a scaled unit may be 0.995


class Style(NamedTuple):
    """How a file writes numbers: the sign between groups of three digits, and the one before decimals."""

    group: str
    point: str


ENGLISH, CONTINENTAL = Style(",", "."), Style(".", ",")
_START = r"[+-]?[1-9][0-9]{0,2}"


class _Forms:
    """Patterns of numbers that have the sign between groups of a style; in the `other` it stands before decimals.

    unclear: one group, which may be decimals as well. grouped: groups for certain, of two digits as in India too.
    """

    def __init__(self, style: Style, other: Style) -> None:
        self.style, self.other = style, other
        sign = f"[{style.group}]"
        in_twos = rf"[+-]?[0-9]{{1,2}}(?:{sign}[0-9]{{2}})+{sign}[0-9]{{3}}(?:[.,][0-9]+)?"
        self.unclear = re.compile(rf"{_START}{sign}[0-9]{{3}}")
        self.grouped = re.compile(rf"{_START}(?:{sign}[0-9]{{3}})+(?:[.,].*)?|{in_twos}")


_FORMS = (_Forms(ENGLISH, CONTINENTAL), _Forms(CONTINENTAL, ENGLISH))


class Locale:
    """Collects what the numbers of a file show of its `Style`. The file is read in one style, or refused.

    proof: style -> a cell that can be read in it alone. open: a cell that can be read in both.
    """

    def __init__(self) -> None:
        self.proof: dict[Style, str] = {}
        self.open: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether the style is not certain: numbers prove both styles, or none does and some fit both."""
        return len(self.proof) > 1 or (not self.proof and self.open is not None)

    def look(self, cells: Iterable[str], wholes: Iterable[bool]) -> None:
        """Look at cells for the style of their numbers. wholes: whether each is a count, which has no decimals."""
        for cell, is_whole in zip(cells, wholes, strict=True):
            if not ("," in cell or "." in cell) or not _WITH_SIGNS.fullmatch(cell):
                continue
            for forms in _FORMS:
                if forms.style.group not in cell:
                    continue
                if forms.unclear.fullmatch(cell) and not is_whole:
                    self.open = self.open or cell[:_SHOWN]
                elif forms.grouped.fullmatch(cell):
                    self.proof.setdefault(forms.style, cell[:_SHOWN])
                elif cell.count(forms.style.group) == 1 and not _SIX.fullmatch(cell):
                    # ncu writes scaled numbers with six decimals and a point in every locale: they show nothing.
                    self.proof.setdefault(forms.other, cell[:_SHOWN])

    def join(self, locale: Locale) -> None:
        """Take over what another `Locale` has seen of the style of numbers."""
        self.proof = {**locale.proof, **self.proof}
        self.open = self.open or locale.open

    def style(self, path: str) -> Style:
        """The style of the file's numbers. Raises LogError if they contradict each other or can be read both ways."""
        if len(self.proof) > 1:
            raise LogError(
                f"{path}: numbers are written in two ways (`{self.proof[ENGLISH]}` and `{self.proof[CONTINENTAL]}`), "
                "so their size is not certain; write the log again with LC_ALL=C and --print-units base"
            )
        if self.proof:
            return next(iter(self.proof))
        if self.open is not None:
            raise LogError(
                f"{path}: a number such as `{self.open}` may have decimals or groups of three digits, and no other "
                "number of the file tells which; write the log again with LC_ALL=C and --print-units base"
            )
        return ENGLISH


def ungrouped(cell: str) -> str:
    """A cell without blanks or apostrophes between groups of digits: `23 982 976` -> `23982976`."""
    return re.sub(_BLANKS, "", cell) if _IN_GROUPS.fullmatch(cell) else cell


def value(cell: str, style: Style) -> float:
    """The number in a cell by the locale's style; NaN if it holds none."""
    plain = cell.strip()
    if style.point == ".":
        plain = plain.replace(",", "")
    elif not _SIX.fullmatch(plain):
        plain = plain.replace(".", "").replace(",", ".")
    return float(plain) if _PLAIN_NUMBER.fullmatch(plain) else np.nan


def values(cells: Cells, style: Style) -> Array:
    """The numbers in cells by the locale's style, NaN where a cell holds none.

    Numbers that are too large for any metric are none, and so is 2^64-1, which a counter that went wrong shows.
    """
    if isinstance(cells, list) or style != ENGLISH:
        numbers = np.array([value(cell, style) for cell in texts_of(cells)], dtype=np.float64)
    else:
        numbers = np.array(numbers_of(made("replace_substring", cells, pattern=style.group, replacement="")))
        rest = np.isnan(numbers)  # what pyarrow cannot read
        numbers[rest] = [value(cell, style) for cell in texts_of(chosen(cells, rest))]
    numbers[~(np.abs(numbers) < LARGEST) | is_wrong(numbers)] = np.nan
    return numbers


class Unit(Struct, frozen=True):
    """A printed unit: `value * factor` is in `base`; `kind` is eprof's unit of a counter."""

    factor: float
    base: str
    kind: str

    @property
    def is_scaled(self) -> bool:
        """Whether ncu prints counts in thousands, millions...; times, which are measured, are not meant."""
        return self.factor != 1 and self.base != "ns"


NO_UNIT = Unit(1.0, "", COUNT)


@lru_cache(maxsize=256)
def unit_of(text: str) -> Unit:
    """The unit that ncu prints as `text`: `Mbyte` is 1e6 `byte`, `cycle/nsecond` 1e9 `cycle/second`, `us` 1e3 `ns`."""
    text = text.strip()
    above, slash, below = text.partition("/")
    if text in _PER_CENT:
        return Unit(_PER_CENT[text], "%", PERCENT)
    if slash:
        unit = unit_of(above)
        if below not in _TIME_NS:
            return Unit(unit.factor, f"{unit.base}/{below}", OTHER)
        factor = unit.factor * _TIME_NS["s"] / _TIME_NS[below]
        return Unit(factor, f"{unit.base}/second", {"byte": BYTES_PER_S}.get(unit.base, OTHER))
    if text in _TIME_NS:
        return Unit(_TIME_NS[text], "ns", COUNT)
    match = _SCALED.fullmatch(text)
    if match is None:
        return Unit(1.0, text, COUNT)
    return Unit(_PREFIX[match[1]], match[2], {"hz": OTHER}.get(match[2], COUNT))


def kind_of(metric: str, unit: Unit) -> str:
    """The unit (see `log`) of the values of an ncu metric; ratios and attributes without a printed unit are OTHER."""
    if unit.kind == COUNT and _NEVER_COUNTS.match(metric):
        return OTHER
    return unit.kind


def is_whole(metric: str, unit: str) -> bool:
    """Whether a value of an ncu metric can have no decimals: a sum of counted things, in a unit without prefix."""
    return unit in _WHOLE_UNITS and "__" in metric and metric.endswith((".sum", ".max", ".min"))


def differ(values: Array, taken: Array) -> Array:
    """True where `values` of an ncu metric differ from those `taken` before by more than their rounding (1 %)."""
    return np.asarray(np.abs(values - taken) > _ROUNDED * np.abs(taken))


_ALL_PERCENT = 99.99


class Shared(NamedTuple):
    """Rows of a summary by their percentages, which are rounded, by `slack` at most; and what they took."""

    percent: float = 0.0
    slack: float = 0.0
    time_s: float = 0.0

    def with_row(self, percent: float, decimals: int, time_s: float) -> Shared:
        """These rows and one more, whose percentage has so many decimals."""
        return Shared(self.percent + percent, self.slack + 0.5 * 10.0**-decimals, self.time_s + time_s)

    @property
    def lacks_rows(self) -> bool:
        """Whether the percentages of a summary's rows are less than all, however they were rounded."""
        return self.percent + self.slack < _ALL_PERCENT

    @property
    def rest_s(self) -> float:
        """What the rows took that a summary lacks; NaN where percentages do not tell it."""
        if not self.lacks_rows:
            return 0.0
        return self.time_s * (100 / (self.percent or math.nan) - 1)
