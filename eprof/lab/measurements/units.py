"""Units: what a mapping's keys are in, what a cell may say of itself ("18.8 W"), names that contradict their key."""

from collections.abc import Collection, Mapping
from typing import Any

from eprof.base.text import pattern
from eprof.lab.measurements.values import DOMAINS

# Words to SI units, clocks to MHz. Micro is u, or either of the two characters that look like it.
_POWER = {"W": 1.0, "mW": 1e-3, "uW": 1e-6, "kW": 1e3}
_ENERGY = {"J": 1.0, "mJ": 1e-3, "uJ": 1e-6, "kJ": 1e3, "Wh": 3600.0, "kWh": 3.6e6}
_TIME = {"s": 1.0, "sec": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0}
_CLOCK = {"MHz": 1.0, "GHz": 1e3, "kHz": 1e-3, "Hz": 1e-6, "mhz": 1.0, "Mhz": 1.0}
_VOLT = {"V": 1.0, "mV": 1e-3, "uV": 1e-6}


def _keys(words: Mapping[str, float], *names: str) -> dict[str, float]:
    return {f"{name}_{word.lower()}": size for name in names for word, size in words.items()}


# What columns may hold, by key, in SI units; clocks in MHz, as all clocks of measurements are.
POWERS, ENERGIES, TIMES = _keys(_POWER, "power"), _keys(_ENERGY, "energy"), _keys(_TIME, "time")
CLOCKS, VOLTS = _keys(_CLOCK, *DOMAINS), _keys(_VOLT, *DOMAINS)
_KINDS = ((POWERS, _POWER), (ENERGIES, _ENERGY), (TIMES, _TIME), (CLOCKS, _CLOCK), (VOLTS, _VOLT))
_BEHIND = pattern(r"(?:[\s_./-]|[(\[])([a-zA-Z\u00b5\u03bc]+)[)\]]?$")


def spelled(key: str) -> Mapping[str, float]:
    """The units that a cell of `key` may be written in, each in SI units (clocks: MHz)."""
    words = next((words for keys, words in _KINDS if key in keys), {})
    micro = {f"{sign}{word[1:]}": size for word, size in words.items() if word[0] == "u" for sign in "\u00b5\u03bc"}
    return {**words, **micro}


def contradicted(columns: Mapping[str, Any], header: Collection[str]) -> list[str]:
    """A sentence for each column whose name ends in another unit than the mapping takes it for."""
    sentences = []
    for key, name in columns.items():
        sizes = next((keys for keys, _ in _KINDS if key in keys), None)
        if sizes is None or not isinstance(name, str) or name not in header:
            continue
        ending = _BEHIND.search(name)
        known = {word.lower(): size for word, size in spelled(key).items()}
        if not ending or ending[1].lower() not in known:
            continue
        if abs(known[ending[1].lower()] / sizes[key] - 1) > 1e-9:
            sentences.append(
                f"`{name}` ends in the unit {ending[1]}, but the mapping takes it for `{key}`: is one wrong?"
            )
    return sentences
