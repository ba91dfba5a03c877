"""The kernels as compact JSON columns for the script: four significant digits, more only where the rounding would show.

JSON text is built here and placed in a `<script type="application/json">`, which is never executed; `<` is escaped.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

_LINE_ENDS = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def text(value: Any) -> str:
    """A plain value as JSON that is safe between script tags: ASCII only, no `<`. Raises ValueError for NaN."""
    found = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for letter, escape in _LINE_ENDS.items():
        found = found.replace(letter, escape)
    return found


def joined(entries: dict[str, str]) -> str:
    """An object of texts that are JSON already."""
    return "{" + ",".join(f"{text(key)}:{entry}" for key, entry in entries.items()) + "}"


def column(values: Iterable[float | None], factor: float = 0.0) -> str:
    """A column of numbers. factor: a price that the script multiplies them by; that product must read the same too."""
    return "[" + ",".join([_number(value, factor) for value in values]) + "]"


def _number(value: float | None, factor: float) -> str:
    if value is None:
        return "null"
    if value == 0:
        return "0"
    for precision in (3, 5):
        written = f"{value:.{precision}e}"
        near = float(written)
        if f"{near:.2e}" == f"{value:.2e}" and (not factor or f"{near * factor:.2e}" == f"{value * factor:.2e}"):
            return _compact(written)
    return repr(float(value))


def _compact(written: str) -> str:
    """The shortest JSON for a number in scientific notation: "1.234e+09" -> "1234e6"."""
    mantissa, _, exponent = written.partition("e")
    figures = mantissa.replace(".", "").rstrip("0")
    sign = "-" if figures.startswith("-") else ""
    figures = figures.removeprefix("-")
    power = int(exponent) - len(figures) + 1
    if 0 <= power <= 2:
        return sign + figures + "0" * power
    if -len(figures) < power < 0:
        return f"{sign}{figures[:power]}.{figures[power:]}"
    return f"{sign}{figures}e{power}"


def flags(values: Sequence[int], matters: Sequence[bool] | None = None) -> str:
    """A column of marks; one number where all that matter are the same."""
    seen = {value for at, value in enumerate(values) if matters is None or matters[at]}
    if len(seen) <= 1:
        return str(int(next(iter(seen), 0)))
    return "[" + ",".join([str(int(value)) for value in values]) + "]"


def strings(values: Sequence[str]) -> str:
    """A column of strings."""
    return text(list(values))


def spans(names: Sequence[str], cores: Sequence[tuple[int, int]]) -> tuple[str, str]:
    """Where each short name starts and ends, counted as JavaScript counts; -1: at the end of the name."""
    starts = [start for start, _ in cores]
    ends = [-1 if end == len(name) else _units(name[:end]) for name, (_, end) in zip(names, cores, strict=True)]
    return flags(starts), flags(ends)


def _units(part: str) -> int:
    return len(part) if part.isascii() else len(part.encode("utf-16-le", "surrogatepass")) // 2
