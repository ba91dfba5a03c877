"""What was measured, as values: one row a kernel at one setting."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from msgspec import Struct, field
from msgspec.structs import replace

from eprof.base.arrays import Floats
from eprof.base.errors import EprofError
from eprof.base.text import few, pattern
from eprof.base.vocabulary import GPU

# Words to SI units, clocks to MHz. Micro is u, or either of the two characters that look like it.
CORE, MEMORY = "core", "memory"
DOMAINS = (CORE, MEMORY)
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


COUNTED, USED = "counts", "utilisation"
_LARGEST, _LONGEST = 1e30, 300
_GROUPED = r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?"
_WITH_UNIT = r"^\s*([-+0-9.eE]+)\s*([a-zA-Z\u00b5\u03bc%]+)\s*$"
NO_CLOCKS = (1000.0, 1000.0)  # stands for those of a processor, whatever they were
SAME = ("benchmark", "threads", "core_mhz", "memory_mhz")  # rows that agree in these measure the same thing again
ROW_COLUMNS = ("kernel", *SAME, "time_s", "power_w", "core_v", "memory_v", "line")


class MeasurementError(EprofError):
    """Measurements cannot be read or are not enough for the fit; the message names file and line."""


class Measurements(Struct, frozen=True, eq=False):
    """Measured rows, (n,), and their rates, (n, n_terms).

    rows: `ROW_COLUMNS`; `benchmark` is one kernel with one input, on so many `threads` (0 where nobody says), clocks in
    MHz, NaN = not known, `line` of its file. per_socket: power and rates are of one of the processors in use.
    rates: 1e9 events a second, named as prices of a cost table. domains: term -> "core" or "memory", whose voltage its
    energy goes with. kind: "counts", or "utilisation" (use of a unit times its clock in GHz: 1e9 cycles of full use a
    second). reference: core and memory MHz at which relative voltages are 1. own: whether the terms belong to single
    benchmarks (no counts: an unknown core and memory energy each), so that other benchmarks cannot be predicted.
    untaken: terms that the file has and that are left out on purpose. processor: "gpu", or "cpu", whose clocks are
    its own affair: all rows are then at one setting, the reference, which says nothing if it is `NO_CLOCKS`. work: what
    times by component need beside the rates (`energy.components.Work`), of one launch, (n, n_columns).
    """

    rows: pd.DataFrame
    rates: pd.DataFrame
    domains: Mapping[str, str]
    kind: str
    reference: tuple[float, float]
    notes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    mapping: str = ""
    own: bool = False
    untaken: tuple[str, ...] = ()
    processor: str = GPU
    work: pd.DataFrame = field(default_factory=pd.DataFrame)
    per_socket: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def terms(self) -> tuple[str, ...]:
        """The names of the measured rates."""
        return tuple(self.rates.columns)

    @property
    def power_w(self) -> Floats:
        """Measured power, (n,), W."""
        return self.rows["power_w"].to_numpy(dtype=np.float64)

    @property
    def settings(self) -> pd.DataFrame:
        """The settings that were measured: core_mhz, memory_mhz, sorted."""
        pairs = self.rows[["core_mhz", "memory_mhz"]].drop_duplicates()
        return pairs.sort_values(["memory_mhz", "core_mhz"]).reset_index(drop=True)

    def counts(self) -> pd.DataFrame:
        """Events of each measured row, rate times time; NaN where the time is not known."""
        return self.rates.mul(self.rows["time_s"].to_numpy(dtype=np.float64) * 1e9, axis=0)

    def take(self, index: Sequence[int] | npt.NDArray[Any]) -> "Measurements":
        """The measured rows at these positions (or where a mask is true), with the same columns."""
        positions = np.asarray(index)
        if positions.dtype == np.bool_:
            positions = np.flatnonzero(positions)
        return replace(
            self,
            rows=self.rows.iloc[positions].reset_index(drop=True),
            rates=self.rates.iloc[positions].reset_index(drop=True),
            work=self.work.iloc[positions].reset_index(drop=True) if len(self.work) else self.work,
        )

    def only(self, terms: Sequence[str]) -> "Measurements":
        """The same measured rows with these terms alone."""
        kept = [term for term in self.terms if term in set(terms)]
        return replace(self, rates=self.rates[kept], domains={term: self.domains[term] for term in kept})


def numbers(column: pd.Series, units: Mapping[str, float] | None = None) -> pd.Series:
    """A column of measured values as numbers, float64; NaN where a cell is none, or larger than any count or clock.

    units: words that may stand behind a number ("18.8 W"), each with what the number is then multiplied with.
    """
    values = _plain(column)
    is_text = values.isna() & column.notna()
    if not is_text.any():
        return values
    words = column[is_text].astype(str).str.slice(0, _LONGEST)
    if units:
        parts = words.str.extract(_WITH_UNIT)
        values = values.where(~is_text, _plain(parts[0]) * parts[1].map(dict(units)))
    grouped = words.str.fullmatch(_GROUPED)
    # One comma alone may be a decimal one; with two in a number of the column, commas are known to be of thousands.
    if words[grouped].str.count(",").max() > 1:
        values = values.where(~is_text, values.fillna(_plain(words[grouped].str.replace(",", ""))))
    return values


def _plain(column: pd.Series) -> pd.Series:
    try:
        values = pd.to_numeric(column, errors="coerce")
    except OverflowError:  # pandas, for whole numbers of hundreds of digits
        values = pd.to_numeric(column.astype(str).str.slice(0, _LONGEST), errors="coerce")
    values = values.astype(np.float64)
    return values.where(values.abs() < _LARGEST)


def lines(numbers: Sequence[int] | npt.NDArray[Any]) -> str:
    """Line numbers of measured rows as words, the first few of many: "lines 3, 8, 9 and 12 more"."""
    listed = [str(int(number)) for number in numbers]
    return f"line{'s' if len(listed) > 1 else ''} {few(listed, 6)}"
