"""Cells: numbers with the units that nvprof glues to them, levels, and the many ways to say that there is no value."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eprof.rows.columns import Column
from eprof.rows.log import BYTES_PER_S, COUNT, LEVEL, OTHER, PERCENT

Array = np.ndarray[Any, Any]
# What a cell is: an index into UNITS, or a negative reason for there being no value.
UNITS = (COUNT, PERCENT, BYTES_PER_S, LEVEL, OTHER)
_COUNT, _PERCENT, _BYTES_PER_S, _LEVEL, _OTHER = range(5)
EMPTY, OVERFLOW, INVALID, UNREADABLE, MISFIT, WRONG = -1, -2, -3, -4, -5, -6
LARGEST = 1e30  # no counter and no time is; such numbers are damage, and their sums would be endless
# All 64 bits set, also as it is printed with six digits: a counter that went wrong. Nothing can be counted so often.
LEAST_WRONG = 1.84467e19
_MOST_WRONG = 2.0**64
REASONS = {
    EMPTY: "empty or not a number",
    OVERFLOW: "<OVERFLOW>",
    INVALID: "<INVALID>",
    UNREADABLE: "not readable",
    MISFIT: "of another unit than the rest of the column",
    WRONG: "2^64-1, which is no count (the counter went wrong)",
}
_ZERO, _NINE, _PERCENT_SIGN, _S = b"09%s"
# Digits can be matched in one way only: else the many of a damaged cell would be tried in all.
_NUMBER = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_PLAIN = rf"^\+?{_NUMBER}$"  # pyarrow reads a plus sign too, so all ways of reading agree
_SUFFIXED = rf"^(?P<number>\+?{_NUMBER})(?P<suffix>%|[KMGT]?B/s)$"
_SIGNED, _UNSIGNED = re.compile(f"[+-]?{_NUMBER}"), re.compile(rf"\+?{_NUMBER}")
_WITH_UNIT = re.compile(rf"(\+?{_NUMBER})(%|[KMGT]?B/s)?")
_LEVEL_TEXT = re.compile(r"[A-Za-z]+ \((\d{1,9})\)")
# nvprof 11.8 prints 2**30 B/s as 1 GB/s, and logs of CUDA 8 hold "976.562500KB/s" for 10**6 B/s. Up to CUDA 6.5 it was
# 10**9: a K20c log holds "2.753000KB/s", and 10**9 gives the fixed 705 MHz clock there.
RATES = {"B/s": 1.0, "KB/s": 2.0**10, "MB/s": 2.0**20, "GB/s": 2.0**30, "TB/s": 2.0**40}
OLD_RATES = {"B/s": 1.0, "KB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12}
Rates = Mapping[str, float]
_Converter = Callable[[pa.Array], tuple[Array, Array] | None]
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_TIME = re.compile(rf"({_NUMBER})(ns|us|ms|s)?")
_MISSING = {
    "": EMPTY,
    "-": EMPTY,
    "n/a": EMPTY,
    "nan": EMPTY,
    "-nan": EMPTY,
    "inf": EMPTY,
    "<OVERFLOW>": OVERFLOW,
    "<INVALID>": INVALID,
}


def cells(texts: Column, rates: Rates = RATES) -> tuple[Array, Array]:
    """Values (float64; NaN = none; rates in B/s) and what each cell is (int8, see UNITS), for a column of text."""
    if not isinstance(texts, list):
        return _many_cells(texts, rates)
    read = [_cell(text.strip(), rates) for text in texts]
    return np.array([value for value, _ in read], dtype=np.float64), np.array([kind for _, kind in read], dtype=np.int8)


def is_wrong(numbers: Any) -> Any:
    """Whether counts are none: a counter that went wrong shows all bits set."""
    return (numbers >= LEAST_WRONG) & (numbers <= _MOST_WRONG)


def shows_wrong(text: str) -> bool:
    """Whether a cell shows such a count."""
    return "84467" in text and is_number(text) and bool(is_wrong(float(text)))  # looking for digits is quick


def _cell(text: str, rates: Rates) -> tuple[float, int]:
    """The value of one cell, and what it is."""
    found = _WITH_UNIT.fullmatch(text)
    if not found:
        return _other(text)
    number, suffix = float(found[1]), found[2]
    if not number < LARGEST:
        return np.nan, UNREADABLE
    if suffix is None:
        return (np.nan, WRONG) if is_wrong(number) else (number, _COUNT)
    return (number, _PERCENT) if suffix == "%" else (number * rates[suffix], _BYTES_PER_S)


def _many_cells(texts: pa.Array, rates: Rates) -> tuple[Array, Array]:
    """As `cells`, for an array of strings.

    The last byte tells which cells are most likely plain numbers, percentages or rates; these are converted together.
    Where one of them is something else after all, they are looked at with regular expressions.
    """
    last = _last_bytes(texts)
    groups = ((last >= _ZERO) & (last <= _NINE), last == _PERCENT_SIGN, last == _S)
    converters: tuple[_Converter, ...] = (_plain, _percentages, partial(_rates, rates=rates))
    values, kinds = np.full(len(texts), np.nan), np.full(len(texts), EMPTY, dtype=np.int8)
    rest = np.ones(len(texts), dtype=bool)
    for chosen, convert in zip(groups, converters, strict=True):
        if chosen.any():
            some = texts if chosen.all() else texts.filter(pa.array(chosen))
            values[chosen], kinds[chosen] = convert(some) or careful_cells(some, rates)
            rest &= ~chosen
    if rest.any():
        values[rest], kinds[rest] = careful_cells(texts.filter(pa.array(rest)), rates)
    return values, kinds


def _ends(texts: pa.Array) -> tuple[Array, Array]:
    """The bytes that an array of strings refers to, and the places where its strings start and end."""
    _, places, data = texts.buffers()
    ends = np.frombuffer(places, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return np.frombuffer(data or b"", dtype=np.uint8), ends


def _last_bytes(texts: pa.Array) -> Array:
    """The last byte of each string, 0 for empty ones."""
    if not len(texts):
        return np.zeros(0, dtype=np.uint8)
    data, ends = _ends(texts)
    filled = ends[1:] > ends[:-1]
    last = np.zeros(len(texts), dtype=np.uint8)
    last[filled] = data[ends[1:][filled] - 1]
    return last


def _numbers(texts: pa.Array) -> Array | None:
    """The values of unsigned numbers; None if not all are."""
    try:
        values = np.asarray(pc.cast(texts, pa.float64()).to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid:
        return None
    return None if np.signbit(values).any() or not (values < LARGEST).all() else values


def _plain(texts: pa.Array) -> tuple[Array, Array] | None:
    values = _numbers(texts)
    if values is None or not (values < LEAST_WRONG).all():
        return None
    return values, np.full(len(texts), _COUNT, dtype=np.int8)


def _percentages(texts: pa.Array) -> tuple[Array, Array] | None:
    number = pc.ascii_rtrim(texts, characters="%")
    values = _numbers(number)
    if values is None or (_lengths(texts) - _lengths(number) != 1).any():
        return None
    return values, np.full(len(texts), _PERCENT, dtype=np.int8)


def _rates(texts: pa.Array, rates: Rates) -> tuple[Array, Array] | None:
    number = pc.ascii_rtrim(texts, characters="KMGTB/s")
    values = _numbers(number)
    if values is None:
        return None
    known = pc.binary_slice(texts.view(pa.binary()), -4).dictionary_encode()
    names = [name.decode().lstrip("0123456789.") for name in known.dictionary.to_pylist()]
    place = known.indices.to_numpy(zero_copy_only=False)
    if (
        not set(names) <= set(RATES)
        or (_lengths(texts) - _lengths(number) != np.array(list(map(len, names)))[place]).any()
    ):
        return None
    return values * np.array([rates[name] for name in names])[place], np.full(len(texts), _BYTES_PER_S, dtype=np.int8)


def _lengths(texts: pa.Array) -> Array:
    return np.diff(_ends(texts)[1])


def careful_cells(texts: pa.Array, rates: Rates = RATES) -> tuple[Array, Array]:
    """As `cells`, by regular expressions: what `cells` must agree with."""
    texts = pc.utf8_trim_whitespace(texts)
    plain = pc.match_substring_regex(texts, _PLAIN)
    is_plain = plain.to_numpy(zero_copy_only=False)
    values, kinds = np.full(len(texts), np.nan), np.full(len(texts), EMPTY, dtype=np.int8)
    values[is_plain], kinds[is_plain] = _finite(
        pc.cast(texts.filter(plain), pa.float64()).to_numpy(zero_copy_only=False), _COUNT
    )
    rest = np.flatnonzero(~is_plain)
    values[rest], kinds[rest] = _with_units(texts.take(pa.array(rest)), rates)
    return values, kinds


def _finite(values: Array, kind: int) -> tuple[Array, Array]:
    """Numbers too large for a counter are no values."""
    kinds = np.full(len(values), kind, dtype=np.int8)
    endless, wrong = ~(values < LARGEST), is_wrong(values)
    if endless.any() or wrong.any():
        kinds[endless], kinds[wrong] = UNREADABLE, WRONG
        values = np.where(endless | wrong, np.nan, values)
    return values, kinds


def _with_units(texts: pa.Array, rates: Rates) -> tuple[Array, Array]:
    parts = pc.extract_regex(texts, _SUFFIXED)
    suffixed = parts.is_valid().to_numpy(zero_copy_only=False)
    values, kinds = np.empty(len(texts)), np.empty(len(texts), dtype=np.int8)
    if suffixed.any():
        number = pc.struct_field(parts, 0).filter(parts.is_valid()).cast(pa.float64()).to_numpy(zero_copy_only=False)
        suffix = pc.struct_field(parts, 1).filter(parts.is_valid()).dictionary_encode()
        names, codes = suffix.dictionary.to_pylist(), suffix.indices.to_numpy(zero_copy_only=False)
        scale = np.array([rates.get(name, 1.0) for name in names])
        kind = np.array([_PERCENT if name == "%" else _BYTES_PER_S for name in names], dtype=np.int8)
        good = number < LARGEST
        values[suffixed] = np.where(good, number, np.nan) * scale[codes]
        kinds[suffixed] = np.where(good, kind[codes], np.int8(UNREADABLE))
    others = texts.filter(pc.invert(parts.is_valid())).dictionary_encode()
    if len(others):
        read = [_other(text) for text in others.dictionary.to_pylist()]
        codes = others.indices.to_numpy(zero_copy_only=False)
        values[~suffixed] = np.array([value for value, _ in read])[codes]
        kinds[~suffixed] = np.array([kind for _, kind in read], dtype=np.int8)[codes]
    return values, kinds


def _other(text: str) -> tuple[float, int]:
    """A cell that is neither a plain nor a suffixed number."""
    level = _LEVEL_TEXT.fullmatch(text)
    if level:
        return float(level[1]), _LEVEL
    if _SIGNED.fullmatch(text) and abs(float(text)) < LARGEST:
        return float(text), _OTHER
    return np.nan, _MISSING.get(text, _MISSING.get(text.lower(), UNREADABLE))


def settle(kinds: Array) -> tuple[int, Array]:
    """The unit that most cells of a column have, and the cells with those of another unit turned to MISFIT."""
    if len(kinds) and kinds[0] >= 0 and (kinds == kinds[0]).all():
        return int(kinds[0]), kinds
    votes = np.bincount(kinds[kinds >= 0], minlength=len(UNITS))
    kind = int(votes.argmax()) if votes.any() else _OTHER
    return kind, np.where((kinds >= 0) & (kinds != kind), np.int8(MISFIT), kinds)


def unit_of(text: str, rates: Rates = RATES) -> tuple[float, str] | None:
    """Multiplier and unit for a unit as a units row writes it; None where it writes nothing."""
    text = text.strip()
    if not text:
        return None
    if text in RATES:
        return rates[text], BYTES_PER_S
    return 1.0, PERCENT if text == "%" else OTHER


def is_number(text: str) -> bool:
    """Whether a cell is a plain number: finite, not negative, without unit."""
    return _UNSIGNED.fullmatch(text.strip()) is not None and float(text) < LARGEST


def seconds(text: str, unit: float | None = None) -> float:
    """A time as printed, with its unit glued to it ("5.5060us") or else in `unit` (in s). NaN if it is none."""
    found = _TIME.fullmatch(text.strip())
    if not found:
        return float("nan")
    scale = SECONDS[found[2]] if found[2] else unit
    return float("nan") if scale is None or float(found[1]) >= LARGEST else float(found[1]) * scale


def as_cell(kind: str) -> int:
    """The code of a unit in arrays of cells."""
    return UNITS.index(kind)
