"""Numbers and units as Nsight Compute writes them: scaled row by row, and in the style of the user's locale."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eprof.base.errors import LogError
from eprof.rows.cells import LARGEST, is_wrong
from eprof.rows.log import BYTES_PER_S, COUNT, OTHER, PERCENT

Array = np.ndarray[Any, Any]
_PREFIX = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
# In nanoseconds, ncu's base unit of time.
_TIME = {"ns": 1.0, "nsecond": 1.0, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9, "second": 1e9}
_SCALED = re.compile(
    r"([KMGTP]?)(byte|hz|inst|cycle|sector|warp|block|thread|request|wavefront|branches|op|register|bit)s?"
)
_NEVER_COUNTS = re.compile(r"device__attribute_|.*\.(ratio|pct|max_rate)$|.*\.(per_|pct_of_|peak_)")
_WHOLE_UNITS = ("", "inst", "sector", "warp", "block", "thread", "request", "byte", "cycle", "ns", "nsecond")
_SHOWN = 40  # characters of a cell
NO_VALUE = ("", "n/a", "nan", "-nan", "inf", "-inf", "(!) n/a", "(!) nan", "(!) inf", "no data")
_OF_NUMBERS = frozenset(b"0123456789.,+-eE")
# Some locales write a blank (French, Finnish) or an apostrophe (Swiss) between groups of three digits.
_BLANKS = "[ \u00a0\u2009\u202f\ufffd'\u2019]"
# Groups are of three digits, in India of two but for the last.
_IN_GROUPS = rf"^\s*[+-]?[0-9]{{1,3}}(?:{_BLANKS}[0-9]{{2,3}})*{_BLANKS}[0-9]{{3}}(?:[.,][0-9]+)?\s*$"
_IN_TWOS = {sign: rf"^[+-]?[0-9]{{1,2}}(?:[{sign}][0-9]{{2}})+[{sign}][0-9]{{3}}(?:[.,][0-9]+)?$" for sign in ",."}
_FIXED = 7  # bytes of a point and six decimals
_SIX = r"^[+-]?[0-9]+\.[0-9]{6}$"
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


@dataclass(frozen=True)
class Unit:
    """What a printed unit is: `value * factor` is in `base`; `kind` is the house's unit of a counter."""

    factor: float
    base: str
    kind: str

    @property
    def is_time(self) -> bool:
        """Whether it is one of time."""
        return self.base == "ns"


@lru_cache(maxsize=256)
def unit_of(text: str) -> Unit:
    """The unit that a cell names: `Mbyte` is 1e6 `byte`, `cycle/nsecond` is 1e9 `cycle/second`, `usecond` 1e3 `ns`."""
    text = text.strip()
    above, slash, below = text.partition("/")
    if text == "%":
        return Unit(1.0, "%", PERCENT)
    if not slash:
        return _simple(text)
    unit = _simple(above)
    if below not in _TIME:
        return Unit(unit.factor, f"{unit.base}/{below}", OTHER)
    factor = unit.factor * _TIME["s"] / _TIME[below]
    return Unit(factor, f"{unit.base}/second", BYTES_PER_S if unit.base == "byte" else OTHER)


def _simple(text: str) -> Unit:
    if text in _TIME:
        return Unit(_TIME[text], "ns", COUNT)
    found = _SCALED.fullmatch(text)
    if found:
        return Unit(_PREFIX[found[1]], found[2], OTHER if found[2] == "hz" else COUNT)
    return Unit(1.0, text, COUNT)


def kind_of(metric: str, unit: Unit) -> str:
    """The house's unit of a metric: ratios and attributes without a printed unit are no counts."""
    return OTHER if unit.kind == COUNT and _NEVER_COUNTS.match(metric) else unit.kind


@dataclass(frozen=True)
class Style:
    """How a file writes numbers: the sign between groups of three digits, and the one before decimals."""

    group: str
    point: str


ENGLISH, CONTINENTAL = Style(",", "."), Style(".", ",")


class Locale:
    """Collects what the numbers of a file tell of its style. The file is read in one style, or refused."""

    def __init__(self) -> None:
        self.proof: dict[Style, str] = {}
        self.open: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether numbers were seen that may be read both ways, or in two ways, and nothing tells."""
        return len(self.proof) > 1 or (not self.proof and self.open is not None)

    def look(self, texts: pa.Array, whole: Array) -> None:
        """Look at cells; `whole` tells which are counts in an unscaled unit, so that they can have no decimals."""
        if len(texts) and (set(np.flatnonzero(np.bincount(bytes_of(texts))).tolist()) - _OF_NUMBERS):
            numbers = pc.match_substring_regex(texts, "^[+-]?[0-9][0-9.,]*([eE][+-]?[0-9]+)?$")
            texts, whole = texts.filter(numbers), whole[numbers.to_numpy(zero_copy_only=False)]
        if len(texts):
            cells = _Cells(texts)
            self._look(cells, ENGLISH, CONTINENTAL, whole)
            self._look(cells, CONTINENTAL, ENGLISH, whole)

    def join(self, other: "Locale") -> None:
        """Take over what another has seen."""
        self.proof = {**other.proof, **self.proof}
        self.open = self.open or other.open

    def _look(self, cells: "_Cells", style: Style, other: Style, whole: Array) -> None:
        """Find the sign that `style` puts between groups: does it stand there, or before decimals?"""
        place = np.flatnonzero(cells.data == ord(style.group))
        if not len(place):
            return
        row = np.searchsorted(cells.ends, place, side="right")
        number = np.bincount(row, minlength=len(cells.ends))[row]
        in_twos = pc.match_substring_regex(cells.texts, _IN_TWOS[style.group]).to_numpy(zero_copy_only=False)
        self._prove(style, in_twos[row], row, cells)
        group, after = cells.groups(place, row)
        alone = (number == 1) & (cells.signs(row) == 1)
        open_ = group & alone & (after == 0)
        self._prove(
            style, (group & ~open_ & ((number > 1) | (after == ord(style.point)))) | (open_ & whole[row]), row, cells
        )
        # Scaled numbers have six decimals and a point in every locale (seen in 2024.1): they tell nothing.
        fixed = (cells.ends[row] - place == _FIXED) & (cells.signs(row) == 1) & (style.group == ".")
        self._prove(other, ~group & (number == 1) & ~fixed, row, cells)
        if self.open is None and open_.any():
            self.open = cells.text(int(row[open_.argmax()]))[:_SHOWN]

    def _prove(self, style: Style, found: Array, row: Array, cells: "_Cells") -> None:
        if style not in self.proof and found.any():
            self.proof[style] = cells.text(int(row[found.argmax()]))[:_SHOWN]

    def style(self, path: str) -> Style:
        """The one style of the file. Raises LogError if the numbers contradict each other or may be read both ways."""
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


class _Cells:
    """The bytes of cells that hold numbers, and where each cell starts and ends."""

    def __init__(self, texts: pa.Array) -> None:
        self.texts = texts
        places = np.frombuffer(texts.buffers()[1], dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
        self.data = np.frombuffer(texts.buffers()[2], dtype=np.uint8)[places[0] : places[-1]]
        self.starts, self.ends = places[:-1] - places[0], places[1:] - places[0]

    def text(self, row: int) -> str:
        """One cell."""
        return str(self.texts[row].as_py())

    def signs(self, row: Array) -> Array:
        """How many commas and points there are in the cells of these rows."""
        sums = np.concatenate([[0], np.cumsum((self.data == ord(",")) | (self.data == ord(".")))])
        return np.asarray((sums[self.ends] - sums[self.starts])[row])

    def groups(self, place: Array, row: Array) -> tuple[Array, Array]:
        """Whether three digits follow, as after the sign of a group, with one to three before; and what comes then."""
        padded = np.concatenate([self.data, np.zeros(5, np.uint8)])
        left, before = self.ends[row] - place - 1, place - self.starts[row]
        digits = np.ones(len(place), dtype=bool)
        for step in (1, 2, 3):
            digits &= (padded[place + step] >= ord("0")) & (padded[place + step] <= ord("9"))
        after = np.where(left > 3, padded[place + 4], 0)
        first = self.data[self.starts[row]]
        signed = (first == ord("-")) | (first == ord("+"))
        short = (before - signed <= 3) | (padded[np.maximum(place - 4, 0)] == self.data[place])
        zero = self.data[self.starts[row] + signed] == ord("0")
        ends = (after == 0) | (after == ord(",")) | (after == ord("."))
        return np.asarray((left >= 3) & digits & ends & short & ~zero & (before > signed)), after


def bytes_of(texts: pa.Array) -> Array:
    """The bytes of all cells, one after the other."""
    places = np.frombuffer(texts.buffers()[1], dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return np.frombuffer(texts.buffers()[2] or b"", dtype=np.uint8)[places[0] : places[-1]]


def ungrouped(texts: pa.Array) -> pa.Array:
    """Cells without the blanks or apostrophes between groups of three digits; `23 982 976` is `23982976`."""
    bytes_ = bytes_of(texts)
    if not len(bytes_) or not ((bytes_ >= 0x80) | (bytes_ == ord(" ")) | (bytes_ == ord("'"))).any():
        return texts
    found = pc.match_substring_regex(texts, _IN_GROUPS)
    if not pc.any(found).as_py():
        return texts
    return pc.if_else(found, pc.replace_substring_regex(texts, _BLANKS, ""), texts)


def is_whole(metric: str, unit: str) -> bool:
    """Whether a value can have no decimals: a sum of things that are counted, in a unit without prefix."""
    return unit in _WHOLE_UNITS and "__" in metric and metric.endswith((".sum", ".max", ".min"))


def values(texts: pa.Array, style: Style) -> Array:
    """Cells as float64; NaN where a cell holds no number."""
    plain = pc.replace_substring(texts, style.group, "")
    if style.point != ".":
        plain = pc.replace_substring(plain, style.point, ".")
        plain = pc.if_else(pc.match_substring_regex(texts, _SIX), texts, plain)
    try:
        return _bounded(np.array(pc.cast(plain, pa.float64()).to_numpy(zero_copy_only=False)))
    except pa.ArrowInvalid:
        return _careful(plain)


def _careful(texts: pa.Array) -> Array:
    texts = pc.utf8_trim_whitespace(texts)
    is_number = pc.match_substring_regex(texts, _NUMBER)
    found = np.full(len(texts), np.nan)
    numbers = pc.cast(texts.filter(is_number), pa.float64()).to_numpy(zero_copy_only=False)
    found[is_number.to_numpy(zero_copy_only=False)] = numbers
    return _bounded(found)


def _bounded(numbers: Array) -> Array:
    """Numbers that are too large for any metric are none, and so is 2^64-1, which a counter that went wrong shows."""
    numbers[~(np.abs(numbers) < LARGEST) | is_wrong(numbers)] = np.nan
    return numbers


def counted(numbers: Array, is_count: Array | bool) -> Array:
    """Values of metrics; of a count, those below zero are not known."""
    wrong = (numbers < 0) & is_count
    return np.where(wrong, np.nan, numbers) if wrong.any() else numbers
