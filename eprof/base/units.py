"""Units of quantities (SI units, clocks in MHz), and quantities as people write them: "7ms", "0.8 kJ", "852/924"."""

import math
from collections.abc import Mapping

from eprof.base.text import pattern

POWER = {"W": 1.0, "mW": 1e-3, "uW": 1e-6, "kW": 1e3}
ENERGY = {"J": 1.0, "mJ": 1e-3, "uJ": 1e-6, "kJ": 1e3, "Wh": 3600.0, "kWh": 3.6e6}
TIME = {"s": 1.0, "sec": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0}
CLOCK = {"MHz": 1.0, "GHz": 1e3, "kHz": 1e-3, "Hz": 1e-6, "mhz": 1.0, "Mhz": 1.0}
VOLT = {"V": 1.0, "mV": 1e-3, "uV": 1e-6}
_CLOCKS = pattern(r"\s*(\d+(?:\.\d+)?)\s*/\s*(\d+(?:\.\d+)?)\s*+(?:MHz\s*)?")
_QUANTITY = pattern(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*([a-zA-Z\u00b5\u03bc]*)")


def with_micro(units: Mapping[str, float]) -> dict[str, float]:
    """Units with micro as u and as either of the two characters that look like it."""
    micro = {f"{sign}{word[1:]}": size for word, size in units.items() if word[0] == "u" for sign in "\u00b5\u03bc"}
    return {**units, **micro}


def amount(text: str, units: Mapping[str, float]) -> float:
    """A quantity written as text, in the unit of size 1 of `units`: "7ms" -> 0.007, "7" -> 7.0; NaN: it is none."""
    written = _QUANTITY.fullmatch(text.strip())
    if written is None:
        return math.nan
    number, unit = written.groups()
    sizes = {"": 1.0, **with_micro(units)}
    if unit not in sizes and not unit.startswith("M"):  # mega is no milli
        sizes, unit = {word.lower(): size for word, size in sizes.items()}, unit.lower()
    return float(number) * sizes.get(unit, math.nan)


def in_joules(joules: float) -> str:
    """Joules as text of four digits, in kJ or MJ where that is 10 or more: "18.34 kJ"."""
    size, unit = next(((size, unit) for size, unit in ((1e6, "MJ"), (1e3, "kJ")) if joules >= 10 * size), (1.0, "J"))
    return f"{joules / size:.4g} {unit}"


def clock_pair(text: str) -> tuple[float, float] | None:
    """Core and memory clock in MHz of a text such as "852/924"; None if it is no pair of clocks."""
    clocks = _CLOCKS.fullmatch(text)
    return clocks and (float(clocks[1]), float(clocks[2]))


def no_clock_pair(text: str) -> str:
    """The sentence that refuses a text that is no pair of clocks."""
    return f"`{text}` is not a setting; write core and memory clock in MHz, such as 852/924."


def clock_label(core_mhz: float, memory_mhz: float) -> str:
    """A pair of clocks as users write it, the inverse of `clock_pair`."""
    return f"{core_mhz:g}/{memory_mhz:g}"
