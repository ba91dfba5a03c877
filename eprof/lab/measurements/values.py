"""`Measurements`: power and rates, one row a kernel at one setting; and checks of their units, rows and settings."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from msgspec import Struct, field
from msgspec.structs import replace

from eprof.base.arrays import Array, Bools, Floats, Ints
from eprof.base.errors import EprofError
from eprof.base.optional import mapped
from eprof.base.text import brief, by_sign, counted, few, pattern, when
from eprof.base.units import CLOCK, ENERGY, POWER, TIME, VOLT, with_micro
from eprof.base.vocabulary import CPU, GPU

CORE, MEMORY = "core", "memory"
DOMAINS = (CORE, MEMORY)


def _keys(words: Mapping[str, float], *names: str) -> dict[str, float]:
    return {f"{name}_{word.lower()}": size for name in names for word, size in words.items()}


# What columns may hold, by key, in SI units; clocks in MHz, as all clocks of measurements are.
POWERS, ENERGIES, TIMES = _keys(POWER, "power"), _keys(ENERGY, "energy"), _keys(TIME, "time")
CLOCKS, VOLTS = _keys(CLOCK, *DOMAINS), _keys(VOLT, *DOMAINS)
_KINDS = ((POWERS, POWER), (ENERGIES, ENERGY), (TIMES, TIME), (CLOCKS, CLOCK), (VOLTS, VOLT))
BEHIND = pattern(r"(?:[\s_./-]|[(\[])([a-zA-Z\u00b5\u03bc]+)[)\]]?$")


def spelled(key: str) -> Mapping[str, float]:
    """Unit that a cell of the column `key` may be written in -> its size in SI units (clocks: MHz)."""
    return with_micro(next((words for keys, words in _KINDS if key in keys), {}))


def contradicted(columns: Mapping[str, Any], header: Collection[str]) -> list[str]:
    """A sentence for each column whose name ends in a unit other than the one that the mapping takes it for."""
    sentences = []
    for key, name in columns.items():
        sizes = next((keys for keys, _ in _KINDS if key in keys), None)
        if sizes is None or not isinstance(name, str) or name not in header:
            continue
        ending = BEHIND.search(name)
        known = {word.lower(): size for word, size in spelled(key).items()}
        if not ending or ending[1].lower() not in known:
            continue
        if abs(known[ending[1].lower()] / sizes[key] - 1) > 1e-9:
            taken = f"but the mapping takes it for `{key}`: is one wrong?"
            sentences.append(f"`{name}` ends in the unit {ending[1]}, {taken}")
    return sentences


COUNTED, USED = "counts", "utilisation"
_LARGEST, _LONGEST = 1e30, 300
_GROUPED = r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?"
_WITH_UNIT = r"^\s*([-+0-9.eE]+)\s*([a-zA-Z\u00b5\u03bc%]+)\s*$"
NO_CLOCKS = (1000.0, 1000.0)  # stands for those of a processor, whatever they were
SAME = ("benchmark", "threads", "core_mhz", "memory_mhz")  # rows that agree in these measure the same thing again
ROW_COLUMNS = ("kernel", *SAME, "time_s", "power_w", "core_v", "memory_v", "line")


class MeasurementError(EprofError):
    """Measurements cannot be read or are not enough for the fit; messages on files name the file."""


class Measurements(Struct, frozen=True, eq=False):
    """Measured rows, (n,), and their rates, (n, n_terms).

    rows: `ROW_COLUMNS`; `benchmark` is one kernel with one input, on so many `threads` (0 where nobody says), clocks in
    MHz, NaN = not known, `line` of its file. per_socket: power and rates are of one of the processors in use.
    rates: 1e9 events a second, named as prices of a cost table. domains: term -> "core" or "memory", whose voltage its
    energy goes with. kind: "counts", or "utilisation" (use of a unit times its clock in GHz: 1e9 cycles of full use a
    second). reference: core and memory MHz at which relative voltages are 1. own: whether the terms belong to single
    benchmarks (no counts: an unknown core and memory energy each), so that other benchmarks cannot be predicted.
    untaken: terms that the file has and that are left out on purpose. processor: "gpu" or "cpu". is_clocked: else
    nobody tells the clocks (a CPU's are its own affair), and all rows are at one setting, `NO_CLOCKS`. work: what
    times by component need beside the rates (`energy.time_by_component.Work`), of one launch, (n, n_columns).
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
    is_clocked: bool = True
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

    def take(self, index: list[int] | Ints | Bools) -> "Measurements":
        """The measured rows at these positions (or where a mask is true), with the same columns."""
        return replace(
            self,
            rows=self.rows.iloc[index].reset_index(drop=True),
            rates=self.rates.iloc[index].reset_index(drop=True),
            work=self.work.iloc[index].reset_index(drop=True) if len(self.work) else self.work,
        )

    def only(self, terms: Sequence[str]) -> "Measurements":
        """The same measured rows with these terms alone."""
        kept = [term for term in self.terms if term in set(terms)]
        return replace(self, rates=self.rates[kept], domains={term: self.domains[term] for term in kept})


def numbers(column: pd.Series, units: Mapping[str, float] | None = None) -> pd.Series:
    """A column of measured values as numbers, float64; NaN where a cell is none, or larger than any count or clock.

    units: words that may stand behind a number ("18.8 W"), each with what the number is then multiplied with.
    """
    values = _as_numbers(column)
    is_text = values.isna() & column.notna()
    if not is_text.any():
        return values
    words = column[is_text].astype(str).str.slice(0, _LONGEST)
    if units:
        parts = words.str.extract(_WITH_UNIT)
        values = values.where(~is_text, _as_numbers(parts[0]) * parts[1].map(dict(units)))
    grouped = words.str.fullmatch(_GROUPED)
    # One comma alone may be a decimal one; with two in a number of the column, commas are known to be of thousands.
    if words[grouped].str.count(",").max() > 1:
        values = values.where(~is_text, values.fillna(_as_numbers(words[grouped].str.replace(",", ""))))
    return values


def _as_numbers(column: pd.Series) -> pd.Series:
    """A column as float64; NaN where a cell is no plain number, or is 1e30 or more in size."""
    try:
        values = pd.to_numeric(column, errors="coerce")
    except OverflowError:  # pandas, for whole numbers of hundreds of digits
        values = pd.to_numeric(column.astype(str).str.slice(0, _LONGEST), errors="coerce")
    values = values.astype(np.float64)
    return values.where(values.abs() < _LARGEST)


def lines(numbers: Sequence[int] | Array) -> str:
    """Line numbers of measured rows as words, the first few of many: "lines 3, 8, 9 and 12 more"."""
    listed = [str(int(number)) for number in numbers]
    return f"line{when(len(listed) > 1, 's')} {few(listed, 6)}"


PLAUSIBLE_W = (1.0, 3000.0)
IMPLAUSIBLE = f"the power is not between {PLAUSIBLE_W[0]:g} and {PLAUSIBLE_W[1]:g} W"
PLAUSIBLE_MHZ = (10.0, 60_000.0)  # a TK1 idles at 72/68; 28 Gb/s of a GDDR7 pin are at times called 28,000 MHz
_WILD = 1.5
_NEIGHBOURS = 7
_LEVELS = 3
_FULL = 1.5  # utilisations are at most 1, give or take what meters do
_GPU_COLUMNS = {"gpu", "gpu_name", "gpu_id", "gpu_index", "gpu_model", "device", "device_name", "device_id", "card"}
_NUMBERED = pattern(r"(?:gpu|device|card|cuda)?[ :_-]*\d+(?:\.0)?", re.IGNORECASE)
# 1e9 a second, ten times and more what the fastest GPUs of 2025 do: 8 TB/s of DRAM, some 1e14 instructions a second.
_FASTEST = {"dram_byte": 1e5, "_byte": 1e7, "_instruction": 1e6}


def plausible(rows: pd.DataFrame, rates: pd.DataFrame, kind: str, label: str) -> None:
    """Raise MeasurementError if the median power, clock or rate cannot be a GPU's: a unit, or a count, is wrong."""
    if not len(rows):
        return
    middle = float(rows["power_w"].median())
    if not PLAUSIBLE_W[0] <= middle <= PLAUSIBLE_W[1]:
        raise MeasurementError(
            f"{label}: half of the rows draw {by_sign(middle - 1, 'less', 'more')} than {middle:.3g} W, which no GPU "
            "does; look at the units of power, energy and time in the mapping (mJ against J, ms against s)."
        )
    for name in ("core_mhz", "memory_mhz"):
        clock = float(rows[name].median())
        if not PLAUSIBLE_MHZ[0] <= clock <= PLAUSIBLE_MHZ[1]:
            domain = name.removesuffix("_mhz")
            raise MeasurementError(
                f"{label}: the {domain} clock is {clock:.4g} MHz in the middle row, which no GPU runs at; say the unit "
                f"in the mapping ({domain}_ghz, {domain}_khz, {domain}_hz)."
            )

    for term in rates if kind == COUNTED else ():
        middle = float(rates[term].median())
        most = next((most for ending, most in _FASTEST.items() if str(term).endswith(ending)), np.inf)
        if middle > most:
            raise MeasurementError(
                f"{label}: half of the rows do more than {middle * 1e9:.3g} a second of {term}, which no GPU does; "
                "look at the unit of time (ms against s), and whether counts and time are both of one launch."
            )


def shares(use: pd.Series, term: str, formula: str, label: str) -> None:
    """Raise MeasurementError if a utilisation is above 1.5 in some row: it is probably in per cent."""
    most = float(use.max())
    if most > _FULL:
        raise MeasurementError(
            f"{label}: {term} ({formula}) goes up to {most:g}, and full use is 1; if these are per cent, write "
            f"({formula}) / 100 in the mapping."
        )


def devices(frame: pd.DataFrame, named: str | None, label: str, processor: str = GPU) -> list[str]:
    """A sentence if rows are of several GPUs by their numbers. Raises MeasurementError: several by their names.

    named: the column that the mapping takes for the GPU; without one, a column that is called so is looked at.
    """
    if named is not None and named not in frame:
        raise MeasurementError(f"{label}: has no column `{named}`, which the mapping takes for `device`.")
    candidates = [name for name in frame.columns if name.strip().lower() in _GPU_COLUMNS]
    for name in mapped(lambda column: [column], named) or candidates:
        values = sorted(frame[name].dropna().astype(str).unique())
        if len(values) < 2:
            continue
        shown = few([brief(value, 40) for value in values], 4)
        if all(_NUMBERED.fullmatch(value.strip()) for value in values):
            return [
                f"Rows are of {len(values)} GPUs by column `{name}` ({shown}) and are fitted as one: that is right for "
                "GPUs of one model alone, and what differs between them counts as error."
            ]
        raise MeasurementError(
            f"{label}: rows are of several {processor.upper()}s by column `{name}` ({shown}), and a fit is to one; "
            f"choose with --only '{name}={brief(values[0], 40)}'."
        )
    return []


def agreement(power_w: pd.Series, energy_j: pd.Series, time_s: pd.Series, label: str, energy: str) -> None:
    """Raise MeasurementError if energy, in the median row, is over 2 % off power times time. energy: its column."""
    ratio = (energy_j / (power_w * time_s)).replace([np.inf, -np.inf], np.nan).dropna()
    middle = float(ratio.median())
    if abs(middle - 1) > 0.02:  # not where no row tells
        raise MeasurementError(
            f"{label}: `{energy}` is {middle:.4g} times power times time in the middle row; one of the units is wrong "
            "(mJ against J, ms against s), or they are not of the same run."
        )


def notes(measurements: Measurements) -> Iterator[str]:
    """Notes on usable measurements, beside `strays`: rows that repeat, few settings, terms that are the same in all."""
    again = measurements.rows.duplicated([*SAME])
    if again.any():
        sentence = f"{int(again.sum())} rows measure a benchmark again at the same setting; all are used."
        powers = measurements.rows.groupby([*SAME])["power_w"]
        spread = float((powers.max() / powers.min())[powers.size() > 1].median())
        if spread > 1.15:
            sentence += (
                f" Half of them differ by {100 * (spread - 1):.0f} % and more: are several GPUs, inputs or parts of "
                "runs under one name? No fit follows both."
            )
        yield sentence
    yield from _settings(measurements)
    # Of terms that are the same in all rows the energy cannot be told.
    if not measurements.own:
        rates = measurements.rates
        zero = [term for term in measurements.terms if not (rates[term] != 0).any()]
        others = [term for term in measurements.terms if term not in zero and len(rates) > 1]
        same = [term for term in others if rates[term].nunique() == 1]
        if zero:
            yield f"{', '.join(zero)}: 0 in every row, so nothing can be said of the energy."
        if same:
            yield f"{', '.join(same)}: the same in every row, so the energy cannot be told from constant power."


def wild(measurements: Measurements) -> Bools:
    """Which rows, (n,), are off in power by half and more from the same benchmark at neighbouring clocks, or the same.

    The middle of a window of clocks is compared, so that no model is needed; the ends of the range are not judged. Of
    three and more measurements at one setting, their middle is.
    """
    rows = measurements.rows
    # Off by half and more from the middle of three and more measurements of the same.
    again = rows.groupby([*SAME], sort=False)["power_w"]
    off = np.abs(np.log(rows["power_w"] / again.transform("median"))) > np.log(_WILD)
    is_wild = (again.transform("size") >= 3) & off
    by_clock = rows.sort_values("core_mhz", kind="stable")
    but_clock = [name for name in SAME if name != "core_mhz"]
    windows = by_clock.groupby(but_clock, sort=False)["power_w"].rolling(_NEIGHBOURS, center=True)
    middles = windows.median().droplevel([*but_clock])
    is_far = np.abs(np.log(rows["power_w"] / middles.reindex(rows.index))) > np.log(_WILD)
    return np.asarray(is_wild | is_far, dtype=np.bool_)


def strays(measurements: Measurements) -> list[str]:
    """A sentence on rows that are `wild`, with their lines; an empty list where none is."""
    is_wild = wild(measurements)
    if not is_wild.any():
        return []
    rows = measurements.rows[is_wild]
    worst = rows["benchmark"].value_counts().head(4)
    named = ", ".join(f"{name} ({number})" for name, number in worst.items())
    return [
        f"{counted(len(rows), 'row is', 'rows are')} wild: power is off by half and more from the same "
        f"benchmark at the same or neighbouring clocks ({lines(rows['line'].to_numpy())}), most in {named}. They are "
        "used; absolute residuals (--loss l1) keep them from deciding."
    ]


def _settings(measurements: Measurements) -> Iterator[str]:
    """Sentences on measurements at too few settings, and on clocks and benchmarks with a single row or setting."""
    if measurements.processor == CPU:
        return
    if len(measurements.settings) == 1:
        yield (
            "All rows are at one setting: voltages and how energies change with clocks cannot be told, and the table "
            "will hold at that setting only."
        )
    elif measurements.rows["memory_mhz"].nunique() == 1:
        yield "There is one memory clock: what goes with it cannot be told from constant power."
    for domain, reference in zip(DOMAINS, measurements.reference, strict=True):
        often = measurements.rows[f"{domain}_mhz"].value_counts()
        if len(often) > 1 and often.get(reference) == 1 and often.max() > _LEVELS:
            yield (
                f"The {domain} clock of the reference, {reference:g} MHz, was measured in one row alone, and all "
                "prices are those at it; --reference names another."
            )
        single = int((often == 1).sum())
        if len(often) >= _LEVELS and 2 * single >= len(often):
            yield (
                f"{single} of {len(often)} {domain} clocks were measured in one row alone, and their voltages follow "
                "that row whatever its power. If clocks are means of what a meter saw, round them to what was set."
            )
    if not measurements.own:
        return
    pairs = measurements.rows[["benchmark", "core_mhz", "memory_mhz"]].drop_duplicates()["benchmark"].value_counts()
    once = sorted(str(name) for name in pairs.index[pairs == 1])
    if once:
        yield (
            f"Kernels that were measured at one setting only: {len(once)} of {len(pairs)} "
            f"({few([brief(name, 40) for name in once], 4)}). Without counts nothing is known of them at another."
        )
