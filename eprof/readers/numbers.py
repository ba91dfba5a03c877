"""Numbers in the style of the user's locale (groups of digits, decimals), and units as Nsight Compute writes them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from eprof.base.arrays import Array
from eprof.base.errors import LogError
from eprof.base.text import pattern
from eprof.logs.log import BYTES_PER_S, COUNT, OTHER, PERCENT
from eprof.readers.cells import LARGEST, is_wrong
from eprof.readers.sections import Cells, chosen, made, numbers_of, texts_of

_SHOWN = 40  # characters of a cell
# Some locales write a blank (French, Finnish) or an apostrophe (Swiss) between groups of three digits.
_BLANKS = "[ \u00a0\u2009\u202f\ufffd'\u2019]"
# Groups are of three digits, in India of two but for the last.
_IN_GROUPS = pattern(rf"\s*[+-]?[0-9]{{1,3}}(?:{_BLANKS}[0-9]{{2,3}})*{_BLANKS}[0-9]{{3}}(?:[.,][0-9]+)?\s*")
_SIX = pattern(r"[+-]?[0-9]+\.[0-9]{6}")
_NUMBER = pattern(r"[+-]?([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_WITH_SIGNS = pattern(r"[+-]?[0-9][0-9.,]*([eE][+-]?[0-9]+)?")
_PREFIX = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
# In nanoseconds, ncu's base unit of time.
_TIME = {"ns": 1.0, "nsecond": 1.0, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9, "second": 1e9}
_PERCENT = {"%": 1.0, "‰": 0.1}
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
    """How numbers look that have the sign between groups of a style; in the `other` it stands before decimals.

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
    """Collects what the numbers of a file show of its style. The file is read in one style, or refused."""

    def __init__(self) -> None:
        self.proof: dict[Style, str] = {}
        self.open: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether the style of numbers is not certain: some can be read both ways, or were written in both."""
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
        """Take over what another has seen of the style of numbers."""
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
    """A cell without blanks or apostrophes between groups of three digits; `23 982 976` is `23982976`."""
    return re.sub(_BLANKS, "", cell) if _IN_GROUPS.fullmatch(cell) else cell


def value(cell: str, style: Style) -> float:
    """The number in a cell by the locale's style; NaN if it holds none."""
    plain = cell.strip()
    if style.point == ".":
        plain = plain.replace(",", "")
    elif not _SIX.fullmatch(plain):
        plain = plain.replace(".", "").replace(",", ".")
    return float(plain) if _NUMBER.fullmatch(plain) else np.nan


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
    """What a printed unit is: `value * factor` is in `base`; `kind` is eprof's unit of a counter."""

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
    """The unit in a cell of ncu's: `Mbyte` is 1e6 `byte`, `cycle/nsecond` 1e9 `cycle/second`, `usecond` 1e3 `ns`."""
    text = text.strip()
    above, slash, below = text.partition("/")
    if text in _PERCENT:
        return Unit(_PERCENT[text], "%", PERCENT)
    if slash:
        unit = unit_of(above)
        if below not in _TIME:
            return Unit(unit.factor, f"{unit.base}/{below}", OTHER)
        factor = unit.factor * _TIME["s"] / _TIME[below]
        return Unit(factor, f"{unit.base}/second", {"byte": BYTES_PER_S}.get(unit.base, OTHER))
    if text in _TIME:
        return Unit(_TIME[text], "ns", COUNT)
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
    """True where two known values of one metric of ncu differ by more than their rounding."""
    return np.asarray(np.abs(values - taken) > _ROUNDED * np.abs(taken))
