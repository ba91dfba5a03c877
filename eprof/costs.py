"""Cost tables: what an instruction or a byte costs on one GPU, and what each word of the vocabulary pays.

A table is a file of `costs/` (docs/costs.md). `load` reads and checks it, `CostTable.at` evaluates it once at a DVFS
setting: eps = c V^2 for each price, pi0 = c1_core V_core + c1_mem V_mem + P_misc ([FMM] eqs. 6-8; model.md 3).
"""

import difflib
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar

from eprof import marks as mark_words
from eprof.definition import Document, Formula
from eprof.errors import CostError, DefinitionError
from eprof.marks import NONE, Mark
from eprof.resources import folder, tree
from eprof.vocabulary import BOOKS, COUNTS, PARTS

SCHEMA = 1
CORE, MEMORY = "core", "memory"
# The last word of a price's name is what it is the price of; it says which counts may pay it.
_PRICED_THINGS = {"flop": "instruction", "instruction": "instruction", "byte": "byte"}
_DEFAULT_FROM = "the table's default"
_UNSTATED = "the table says nothing about it"

Made = TypeVar("Made")


@dataclass(frozen=True)
class Setting:
    """A DVFS setting: clocks in MHz, voltages in V. None: the table does not know it."""

    core_mhz: float | None = None
    core_v: float | None = None
    memory_mhz: float | None = None
    memory_v: float | None = None

    @property
    def label(self) -> str:
        """Core and memory clock in MHz, "852/924"; "fixed" for a table that does not know its clocks."""
        if self.core_mhz is None or self.memory_mhz is None:
            return "fixed"
        return f"{self.core_mhz:g}/{self.memory_mhz:g}"


@dataclass(frozen=True)
class Charge:
    """What one count pays: `pj` pJ an instruction or a byte, by `formula`; or nothing, and `why`."""

    pays: bool
    pj: float
    formula: str | None
    why: str
    marks: Mark


@dataclass(frozen=True)
class Price:
    """A named price at one setting, in pJ a flop, instruction or byte, with the arithmetic that gave it."""

    name: str
    pj: float
    formula: str
    marks: Mark


@dataclass(frozen=True)
class Peaks:
    """The highest throughputs at one setting: Gflop/s in single and double precision, GB/s of DRAM. None: not known."""

    sp_gflops: float | None = None
    dp_gflops: float | None = None
    dram_gb_per_s: float | None = None
    why: str = ""
    marks: Mark = NONE


@dataclass(frozen=True)
class Costs:
    """A cost table at one setting.

    charges: word of the vocabulary -> what it pays; a word that is not in it has no price, and `unpriced` may say why.
    prices: the table's own named prices, for rooflines and balances. marks: those of all charges and constant power.
    notes: sentences that belong beside every number made with this table.
    """

    name: str
    device: str
    source: str
    books: str
    setting: Setting
    setting_from: str
    charges: Mapping[str, Charge]
    constant_power_w: float
    constant_why: str
    constant_marks: Mark
    marks: Mark
    notes: tuple[str, ...] = ()
    peaks: Peaks = Peaks()
    prices: Mapping[str, Price] = field(default_factory=dict)
    unpriced: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Rate:
    """A price as the file gives it: pJ, or pJ/V^2 of the voltage of `domain`."""

    name: str
    number: float
    domain: str | None

    def at(self, point: "_Point") -> Price:
        """Evaluate eps = c V^2 ([FMM] eqs. 6, 7)."""
        if self.domain is None:
            return Price(self.name, self.number, f"{self.number:g}", NONE)
        volts = point.volts(self.domain)
        return Price(self.name, self.number * volts**2, f"{self.number:g} * {volts:.5g}^2", point.marks[self.domain])


@dataclass(frozen=True)
class _Point:
    """A setting that prices can be evaluated at: how it was found, and what its voltages rest on."""

    setting: Setting
    found: str
    marks: Mapping[str, Mark] = field(default_factory=lambda: {CORE: NONE, MEMORY: NONE})

    def volts(self, domain: str) -> float:
        """The voltage of `domain`; the checks see to it that a table that needs one has it."""
        volts = self.setting.core_v if domain == CORE else self.setting.memory_v
        assert volts is not None
        return volts

    def mhz(self, domain: str) -> float:
        """The clock of `domain`; the checks see to it that a table that needs one has it."""
        mhz = self.setting.core_mhz if domain == CORE else self.setting.memory_mhz
        assert mhz is not None
        return mhz


@dataclass(frozen=True)
class _Statement:
    """What a file says of one word: a formula of prices, or that it pays nothing, or that it has no price."""

    kind: str
    formula: Formula | None
    why: str
    marks: Mark

    def charge(self, prices: Mapping[str, Price]) -> Charge:
        if self.formula is None:
            return Charge(False, 0.0, None, self.why, NONE)
        marks = self.marks
        for name in self.formula.names:
            marks |= prices[name].marks
        pj = float(self.formula({name: price.pj for name, price in prices.items()}))
        return Charge(True, pj, self.formula.text, self.why, marks)


@dataclass(frozen=True)
class _Term:
    """A term of constant power or a peak: a number, times the voltage or the clock of `domain` if there is one."""

    number: float
    domain: str | None


@dataclass(frozen=True)
class _Constant:
    terms: tuple[_Term, ...]
    why: str
    marks: Mark

    def at(self, point: _Point) -> tuple[float, str, Mark]:
        """Evaluate pi0 in W ([FMM] eq. 8): the watts, the arithmetic, and the marks."""
        watts, words, marks = 0.0, [], self.marks
        for term in self.terms:
            if term.domain is None:
                watts += term.number
                words.append(f"{term.number:g}")
            else:
                watts += term.number * point.volts(term.domain)
                words.append(f"{term.number:g} * {point.volts(term.domain):.5g}")
                marks |= point.marks[term.domain]
        return watts, " + ".join(words), marks


@dataclass(frozen=True)
class _Peak:
    terms: Mapping[str, _Term]
    why: str
    marks: Mark

    def at(self, point: _Point) -> Peaks:
        """Throughputs; those given for a clock cycle grow with the clock of their domain."""
        found = {
            name: term.number if term.domain is None else term.number * point.mhz(term.domain) / 1e3
            for name, term in self.terms.items()
        }
        return Peaks(**found, why=self.why, marks=self.marks)


@dataclass(frozen=True, eq=False)
class CostTable:
    """A checked cost table. `at` gives the costs at a setting, `explain` the same with all reasons, as plain data."""

    name: str
    device: str
    devices: tuple[str, ...]
    source: str
    year: int | None
    books: str
    notes: tuple[str, ...]
    path: str
    settings: tuple[Setting, ...]
    default: Setting
    _rates: tuple[_Rate, ...] = field(repr=False)
    _statements: Mapping[str, _Statement] = field(repr=False)
    _constant: _Constant = field(repr=False)
    _peak: _Peak = field(repr=False)

    def at(self, setting: str | None = None) -> Costs:
        """The costs at `setting`, "CORE/MEMORY" in MHz; without one, at the table's default.

        A pair of clocks that the table does not list is computed: voltage belongs to the clock of its domain, so any
        listed core clock goes with any listed memory clock; between listed clocks the voltage is interpolated linearly
        in MHz, and all that rests on it is marked ESTIMATED. Raises CostError: no such setting.
        """
        point = self._point(setting)
        prices = {rate.name: rate.at(point) for rate in self._rates}
        charges = {word: one.charge(prices) for word, one in self._statements.items() if one.kind != "unpriced"}
        watts, _, constant_marks = self._constant.at(point)
        marks = constant_marks
        for charge in charges.values():
            marks |= charge.marks
        return Costs(
            name=self.name,
            device=self.device,
            source=self.source,
            books=self.books,
            setting=point.setting,
            setting_from=point.found,
            charges=charges,
            constant_power_w=watts,
            constant_why=self._constant.why,
            constant_marks=constant_marks,
            marks=marks,
            notes=self.notes,
            peaks=self._peak.at(point),
            prices=prices,
            unpriced={word: one.why for word, one in self._statements.items() if one.kind == "unpriced"},
        )

    def is_for(self, device_name: str) -> bool:
        """Whether the table was made for the device that a log calls `device_name` ("NVIDIA GeForce GTX 580 (0)")."""
        return _plain_device(device_name) in {_plain_device(one) for one in self.devices}

    def explain(self, setting: str | None = None) -> dict[str, Any]:
        """Everything that is known at `setting`, as plain data that JSON can hold (docs/costs.md). Raises CostError."""
        costs, point = self.at(setting), self._point(setting)
        watts, formula, _ = self._constant.at(point)
        peaks = costs.peaks
        return {
            "name": self.name,
            "device": self.device,
            "devices": list(self.devices),
            "source": self.source,
            "year": self.year,
            "books": self.books,
            "path": self.path,
            "setting": _setting_data(costs.setting),
            "setting_from": costs.setting_from,
            "settings": [{**_setting_data(one), "default": one == self.default} for one in self.settings],
            "prices": [_price_data(price) for price in costs.prices.values()],
            "charges": [self._charge_data(word, costs) for word in COUNTS],
            "constant": {
                "power_w": watts,
                "formula": formula,
                "why": self._constant.why,
                "marks": mark_words.names(costs.constant_marks),
            },
            "peaks": {
                "sp_gflops": peaks.sp_gflops,
                "dp_gflops": peaks.dp_gflops,
                "dram_gb_per_s": peaks.dram_gb_per_s,
                "why": peaks.why,
                "marks": mark_words.names(peaks.marks),
            },
            "marks": mark_words.names(costs.marks),
            "notes": list(self.notes),
        }

    def _charge_data(self, word: str, costs: Costs) -> dict[str, Any]:
        """A row of `explain`: what `word` pays; `numbers` is the formula with the prices put in."""
        statement = self._statements.get(word)
        charge = costs.charges.get(word)
        status = statement.kind if statement else "unpriced"
        formula = charge.formula if charge else None
        return {
            "word": word,
            "label": COUNTS[word].label,
            "unit": COUNTS[word].unit,
            "status": status,
            "pj": charge.pj if charge else None,
            "formula": formula,
            "numbers": _numbers(formula, costs.prices) if formula else None,
            "why": statement.why if statement else _UNSTATED,
            "marks": mark_words.names(charge.marks if charge else Mark.MISSING),
        }

    def _point(self, setting: str | None) -> _Point:
        if setting is None:
            return _Point(self.default, _DEFAULT_FROM)
        clocks = _clocks(setting)
        for one in self.settings:
            if (one.core_mhz, one.memory_mhz) == clocks:
                return _Point(one, "asked for; the table lists it")
        curves = {domain: _curve(self.settings, domain) for domain in (CORE, MEMORY)}
        core, memory = _level(curves[CORE], clocks[0]), _level(curves[MEMORY], clocks[1])
        if core is None or memory is None:
            raise self._no_setting(setting, curves)
        said = [f"{domain} voltage {one.between}" for domain, one in ((CORE, core), (MEMORY, memory)) if one.between]
        found = "; ".join(said) or "both voltages are the table's, though it does not list the pair"
        chosen = Setting(clocks[0], core.volts, clocks[1], memory.volts)
        return _Point(chosen, f"asked for; {found}", {CORE: core.marks, MEMORY: memory.marks})

    def _no_setting(self, setting: str, curves: Mapping[str, Mapping[float, float]]) -> CostError:
        asked = setting.strip()
        if not curves[CORE]:
            return CostError(
                f"{self.name} holds at one setting only ({self.default.label}), not at {asked}; name none."
            )
        ranges = " and ".join(f"{domain} {min(one):g} to {max(one):g} MHz" for domain, one in curves.items())
        listed = ", ".join(one.label for one in self.settings)
        return CostError(f"{self.name} has no setting {asked}: its voltages are known for {ranges}. It lists {listed}.")


@dataclass(frozen=True)
class _Level:
    """The voltage at a clock; `between` names the listed clocks that it was interpolated between."""

    volts: float
    marks: Mark = NONE
    between: str | None = None


def _curve(settings: Iterable[Setting], domain: str) -> dict[float, float]:
    """Clock (MHz) -> voltage (V) of `domain`, for the settings whose voltages are known, sorted by clock."""
    points = [(one.core_mhz, one.core_v) if domain == CORE else (one.memory_mhz, one.memory_v) for one in settings]
    return dict(sorted((mhz, volts) for mhz, volts in points if mhz is not None and volts is not None))


def _level(curve: Mapping[float, float], mhz: float) -> _Level | None:
    """The voltage at `mhz`: the listed one, or linear between its neighbours and ESTIMATED; None outside the range."""
    if mhz in curve:
        return _Level(curve[mhz])
    below = max((one for one in curve if one < mhz), default=None)
    above = min((one for one in curve if one > mhz), default=None)
    if below is None or above is None:
        return None
    volts = curve[below] + (curve[above] - curve[below]) * (mhz - below) / (above - below)
    return _Level(volts, Mark.ESTIMATED, f"interpolated between {below:g} and {above:g} MHz")


def _clocks(setting: str) -> tuple[float, float]:
    """Core and memory MHz of "852/924". Raises CostError."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*/\s*(\d+(?:\.\d+)?)\s*(?:MHz)?\s*", setting)
    if not found:
        raise CostError(f"`{setting}` is not a setting; write core and memory clock in MHz, such as 852/924.")
    return float(found[1]), float(found[2])


def _plain_device(name: str) -> str:
    """`name` without "NVIDIA", without a trailing "(0)", in lower case with single spaces."""
    words = re.sub(r"\s*\(\d+\)\s*$", "", name).lower().split()
    return " ".join(words[1:] if words[:1] == ["nvidia"] else words)


def _setting_data(setting: Setting) -> dict[str, Any]:
    return {
        "label": setting.label,
        "core_mhz": setting.core_mhz,
        "core_v": setting.core_v,
        "memory_mhz": setting.memory_mhz,
        "memory_v": setting.memory_v,
    }


def _price_data(price: Price) -> dict[str, Any]:
    unit = price.name.rpartition("_")[2]
    return {
        "name": price.name,
        "unit": unit,
        "pj": price.pj,
        "formula": price.formula,
        "marks": mark_words.names(price.marks),
    }


def _numbers(formula: str, prices: Mapping[str, Price]) -> str:
    """`formula` with the prices put in: "2 * dp_flop" -> "2 * 139.07"."""
    return re.sub(r"[A-Za-z_]\w*", lambda name: f"{prices[name[0]].pj:.5g}", formula)


# Finding tables


def tables() -> list[str]:
    """The names of the tables that come with eprof, sorted."""
    return sorted(_shipped())


def load(name_or_path: str) -> CostTable:
    """Load and check a table: one that comes with eprof by its name, or a file of yours by its path (`.toml`).

    Raises CostError: no table of that name. DefinitionError: the file cannot be read or is not right (with the line).
    """
    if name_or_path.endswith(".toml") or "/" in name_or_path or "\\" in name_or_path:
        return _parsed(Document.read(Path(name_or_path)))
    if name_or_path not in _shipped():
        known = ", ".join(tables())
        close = difflib.get_close_matches(name_or_path.lower(), tables(), n=1, cutoff=0.5)
        meant = f"Did you mean {close[0]}? " if close else ""
        raise CostError(
            f"There is no cost table `{name_or_path}`. {meant}There are {known}; "
            "a file of your own is given by its path, such as ./my-gpu.toml."
        )
    return _load_shipped(name_or_path)


def for_device(device_name: str) -> CostTable | None:
    """The table made for the device that a log calls `device_name`; None if there is none."""
    return next((table for table in map(_load_shipped, tables()) if table.is_for(device_name)), None)


def check(path: str) -> list[str]:
    """Everything that is wrong with the table at `path`, a sentence each with file and line; empty if it is right."""
    try:
        document = Document.read(Path(path))
    except DefinitionError as err:
        return [str(err)]
    return [str(err) for err in _read(document)[1]]


@lru_cache(maxsize=1)
def _shipped() -> Mapping[str, Traversable]:
    return {file.name.removesuffix(".toml"): file for file in tree(folder("costs"), ".toml")}


@lru_cache(maxsize=64)
def _load_shipped(name: str) -> CostTable:
    return _parsed(Document.read(_shipped()[name]))


def _parsed(document: Document) -> CostTable:
    table, errors = _read(document)
    if table is None:
        raise errors[0]
    return table


# Reading and checking a file. Each function raises DefinitionError with the line; `_Reader` collects them all.

_HEAD = ("schema", "name", "device", "devices", "source", "year", "books", "notes")
_KEYS = (*_HEAD, "setting", "pj", "pj_per_v2", "constant_power", "peak", "charge")
_CONSTANT_TERMS: Mapping[str, str | None] = {"core_w_per_v": CORE, "memory_w_per_v": MEMORY, "w": None}
_PEAK_TERMS: Mapping[str, tuple[str, str | None]] = {
    "sp_gflops": ("sp_gflops", None),
    "dp_gflops": ("dp_gflops", None),
    "dram_gb_per_s": ("dram_gb_per_s", None),
    "sp_flop_per_core_cycle": ("sp_gflops", CORE),
    "dp_flop_per_core_cycle": ("dp_gflops", CORE),
    "dram_byte_per_memory_cycle": ("dram_gb_per_s", MEMORY),
}
_STATEMENT_KINDS = {"formula": "pays", "nothing": "nothing", "unpriced": "unpriced"}
_MARKS = ("assumed", "estimated", "simulated")
_PLAUSIBLE_MV = (200.0, 3000.0)


@dataclass(frozen=True, eq=False)
class _Reader:
    """A document being read, and what was found wrong with it so far."""

    document: Document
    errors: list[DefinitionError] = field(default_factory=list)

    def attempt(self, read: Callable[..., Made], *arguments: Any) -> Made | None:
        """What `read(document, *arguments)` returns; None if it raises a DefinitionError, which is kept."""
        try:
            return read(self.document, *arguments)
        except DefinitionError as err:
            self.errors.append(err)
            return None


def _read(document: Document) -> tuple[CostTable | None, list[DefinitionError]]:
    """The table in `document`, or None, and everything that is wrong with it."""
    reader = _Reader(document)
    if reader.attempt(_schema) is None:
        return None, reader.errors
    reader.attempt(_known_keys)
    head = {key: reader.attempt(read, key) for key, read in _HEAD_READERS.items()}
    settings = reader.attempt(_settings)
    rates = reader.attempt(_rates)
    constant = reader.attempt(_constant)
    peak = reader.attempt(_peak)
    statements = _statements(reader, rates)
    if reader.errors or settings is None or rates is None or constant is None or peak is None:
        return None, reader.errors
    table = CostTable(
        **head,  # type: ignore[arg-type]
        path=document.label,
        settings=settings[0],
        default=settings[1],
        _rates=rates,
        _statements=statements,
        _constant=constant,
        _peak=peak,
    )
    for whole in (_voltages_suffice, _clocks_suffice, _all_prices_used, _charges_are_numbers, _totals_agree):
        if not reader.errors:
            reader.attempt(whole, table)
    return (None if reader.errors else table), reader.errors


def _schema(document: Document) -> bool:
    found = document.data.get("schema")
    if isinstance(found, bool) or found != SCHEMA:
        raise document.error(f"`schema` must be {SCHEMA}, the form that this eprof reads, not {found!r}.", "schema")
    return True


def _known_keys(document: Document) -> None:
    for key in document.data:
        if key not in _KEYS and re.fullmatch(r"[a-z]{0,2}j(_.*)?", key.lower()):
            raise document.error(f"unknown unit `{key}`; prices stand in [pj] or [pj_per_v2].", key)
    document.check_keys(document.data, _KEYS)


def _text(document: Document, key: str) -> str:
    return _sentence(document, document.data.get(key), key)


def _sentence(document: Document, value: Any, *path: str | int) -> str:
    if value is None:
        raise document.error(f"`{path[-1]}` is missing; every table states it.", *path)
    if not isinstance(value, str) or not value.strip():
        raise document.error(f"`{path[-1]}` must be a text, not {value!r}.", *path)
    return " ".join(value.split())


def _name(document: Document, key: str) -> str:
    name = _text(document, key)
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name):
        raise document.error(f"`name` may have small letters, digits, `-` and `.`, not `{name}`.", key)
    return name


def _texts(document: Document, key: str) -> tuple[str, ...]:
    found = document.data.get(key, [])
    if not isinstance(found, list):
        raise document.error(f"`{key}` must be a list of texts, not {found!r}.", key)
    return tuple(_sentence(document, one, key) for one in found)


def _year(document: Document, key: str) -> int | None:
    year = document.data.get(key)
    if year is not None and (isinstance(year, bool) or not isinstance(year, int)):
        raise document.error(f"`year` must be a whole number, not {year!r}.", key)
    return year


def _books(document: Document, key: str) -> str:
    books = _text(document, key)
    if books not in BOOKS:
        raise document.error(f"`books` is `{books}`; use one of: {', '.join(BOOKS)}.", key)
    return books


_HEAD_READERS: Mapping[str, Callable[[Document, str], Any]] = {
    "name": _name,
    "device": _text,
    "devices": _texts,
    "source": _text,
    "year": _year,
    "books": _books,
    "notes": _texts,
}


def _number(document: Document, value: Any, *path: str | int) -> float:
    """A number that is finite and not negative: clocks, voltages, prices, powers."""
    what = path[-1]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise document.error(f"`{what}` must be a number, not {value!r}.", *path)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise document.error(f"`{what}` must be finite, not {number}.", *path)
    if number < 0:
        raise document.error(f"`{what}` must not be negative, but it is {number:g}.", *path)
    return number


def _positive(document: Document, value: Any, *path: str | int) -> float:
    number = _number(document, value, *path)
    if number == 0:
        raise document.error(f"`{path[-1]}` must be more than 0.", *path)
    return number


def _table(document: Document, value: Any, *path: str | int) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise document.error(f"`{path[-1]}` must be a table of keys and values, not {value!r}.", *path)
    return value


def _mark(document: Document, entry: Mapping[str, Any], *path: str | int) -> Mark:
    """The mark of an entry; a marked entry gives its reason."""
    if "mark" not in entry:
        return NONE
    if entry["mark"] not in _MARKS:
        raise document.error(f"`mark` is {entry['mark']!r}; use one of: {', '.join(_MARKS)}.", *path, "mark")
    if "why" not in entry:
        raise document.error(f"what is marked {entry['mark']} needs a `why`.", *path)
    return mark_words.from_names([entry["mark"]])


def _why(document: Document, entry: Mapping[str, Any], *path: str | int) -> str:
    return _sentence(document, entry["why"], *path, "why") if "why" in entry else ""


def _settings(document: Document) -> tuple[tuple[Setting, ...], Setting]:
    """The settings and the default one. A table without any holds at one setting whose clocks it does not know."""
    listed = document.data.get("setting")
    if listed is None:
        return (Setting(),), Setting()
    if not isinstance(listed, list) or not listed:
        raise document.error(
            "`setting` must be a list of settings, each { core_mhz = ..., memory_mhz = ..., ... }.", "setting"
        )
    settings = tuple(_setting(document, entry, "setting", at) for at, entry in enumerate(listed))
    _no_contradictions(document, settings)
    chosen = [at for at, entry in enumerate(listed) if entry.get("default")]
    if len(chosen) > 1:
        labels = " and ".join(settings[at].label for at in chosen)
        raise document.error(f"{labels} are both the default; mark one setting only.", "setting", chosen[1])
    if not chosen and len(settings) > 1:
        raise document.error("no setting is the default; write `default = true` in one of them.", "setting")
    return settings, settings[chosen[0] if chosen else 0]


def _setting(document: Document, entry: Any, *path: str | int) -> Setting:
    if not isinstance(entry, dict):
        raise document.error(f"a setting must be {{ core_mhz = ..., memory_mhz = ..., ... }}, not {entry!r}.", path[0])
    document.check_keys(entry, ("core_mhz", "core_mv", "memory_mhz", "memory_mv", "default"), *path)
    if not isinstance(entry.get("default", True), bool):
        raise document.error(f"`default` must be true or false, not {entry['default']!r}.", *path, "default")
    for key in ("core_mhz", "memory_mhz"):
        if key not in entry:
            raise document.error(f"a setting needs `{key}`.", *path)
    return Setting(
        _positive(document, entry["core_mhz"], *path, "core_mhz"),
        _volts(document, entry, *path, "core_mv"),
        _positive(document, entry["memory_mhz"], *path, "memory_mhz"),
        _volts(document, entry, *path, "memory_mv"),
    )


def _volts(document: Document, entry: Mapping[str, Any], *path: str | int) -> float | None:
    key = str(path[-1])
    if key not in entry:
        return None
    millivolts = _positive(document, entry[key], *path)
    lowest, highest = _PLAUSIBLE_MV
    if not lowest <= millivolts <= highest:
        raise document.error(
            f"`{key}` is in millivolts: {millivolts:g} is not between {lowest:g} and {highest:g}.", *path
        )
    return millivolts / 1e3


def _no_contradictions(document: Document, settings: tuple[Setting, ...]) -> None:
    """Each pair of clocks once; one voltage for each clock of a domain."""
    seen: set[str] = set()
    volts: dict[tuple[str, float | None], float | None] = {}
    for at, one in enumerate(settings):
        if one.label in seen:
            raise document.error(f"setting {one.label} is listed twice.", "setting", at)
        seen.add(one.label)
        for domain, mhz, found in ((CORE, one.core_mhz, one.core_v), (MEMORY, one.memory_mhz, one.memory_v)):
            first = volts.setdefault((domain, mhz), found)
            if first != found:
                was, now = (f"{1e3 * v:g} mV" if v is not None else "no voltage" for v in (first, found))
                raise document.error(
                    f"{domain} {mhz:g} MHz has {now} here but {was} above; a clock has one voltage.", "setting", at
                )


def _rates(document: Document) -> tuple[_Rate, ...]:
    """The named prices: [pj] for a table that holds at one setting, [pj_per_v2] by domain for one with voltages."""
    given = [key for key in ("pj", "pj_per_v2") if key in document.data]
    if len(given) != 1:
        said = "both are here" if given else "neither is here"
        raise document.error(f"prices stand either in [pj] or in [pj_per_v2]; {said}.", *given[:1])
    unit = given[0]
    table = _table(document, document.data[unit], unit)
    if unit == "pj":
        return tuple(_rate(document, name, value, None, unit, name) for name, value in table.items())
    document.check_keys(table, (CORE, MEMORY), unit)
    found: dict[str, _Rate] = {}
    for domain, prices in table.items():
        for name, value in _table(document, prices, unit, domain).items():
            if name in found:
                raise document.error(f"price `{name}` stands in both domains.", unit, domain, name)
            found[name] = _rate(document, name, value, domain, unit, domain, name)
    return tuple(found.values())


def _rate(document: Document, name: str, value: Any, domain: str | None, *path: str) -> _Rate:
    thing = name.rpartition("_")[2]
    if thing not in _PRICED_THINGS or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        ends = ", ".join(f"_{one}" for one in _PRICED_THINGS)
        raise document.error(f"`{name}` does not say what it is the price of; end it with one of: {ends}.", *path)
    return _Rate(name, _number(document, value, *path), domain)


def _constant(document: Document) -> _Constant:
    key = "constant_power"
    if key not in document.data:
        raise document.error("[constant_power] is missing: the watts drawn whatever the GPU does, as `w = ...`.")
    table = _table(document, document.data[key], key)
    document.check_keys(table, (*_CONSTANT_TERMS, "why", "mark"), key)
    terms = tuple(
        _Term(_number(document, table[name], key, name), domain)
        for name, domain in _CONSTANT_TERMS.items()
        if name in table
    )
    if not terms:
        raise document.error(f"[{key}] gives no power; use some of: {', '.join(_CONSTANT_TERMS)}.", key)
    return _Constant(terms, _why(document, table, key), _mark(document, table, key))


def _peak(document: Document) -> _Peak:
    key = "peak"
    table = _table(document, document.data.get(key, {}), key)
    document.check_keys(table, (*_PEAK_TERMS, "why", "mark"), key)
    terms: dict[str, _Term] = {}
    for name, (quantity, domain) in _PEAK_TERMS.items():
        if name not in table:
            continue
        if quantity in terms:
            raise document.error(f"`{name}` says again what `{quantity}` says; keep one.", key, name)
        terms[quantity] = _Term(_positive(document, table[name], key, name), domain)
    return _Peak(terms, _why(document, table, key), _mark(document, table, key))


def _statements(reader: _Reader, rates: tuple[_Rate, ...] | None) -> dict[str, _Statement]:
    """What the file says of each word, in the order of the vocabulary; every faulty entry is reported."""
    table = reader.attempt(lambda document: _table(document, document.data.get("charge", {}), "charge")) or {}
    if not table:
        reader.attempt(_no_charges)
    known = {rate.name for rate in rates} if rates is not None else None
    found = {word: reader.attempt(_statement, word, entry, known) for word, entry in table.items()}
    return {word: one for word in COUNTS if (one := found.get(word)) is not None}


def _no_charges(document: Document) -> None:
    raise document.error("[charge] is missing or empty: it says what each count pays.", "charge")


def _statement(document: Document, word: str, entry: Any, known: Collection[str] | None) -> _Statement:
    path = ("charge", word)
    if word not in COUNTS:
        close = difflib.get_close_matches(word, COUNTS, n=1)
        meant = f"did you mean `{close[0]}`?" if close else f"use one of: {', '.join(COUNTS)}."
        raise document.error(f"`{word}` is not a word of the vocabulary; {meant}", *path)
    table = _table(document, entry, *path)
    document.check_keys(table, (*_STATEMENT_KINDS, "why", "mark"), *path)
    given = [key for key in _STATEMENT_KINDS if key in table]
    if len(given) != 1:
        raise document.error(f"`{word}` needs exactly one of: {', '.join(_STATEMENT_KINDS)}.", *path)
    if given[0] == "formula":
        formula = _formula(document, table["formula"], known, word)
        return _Statement("pays", formula, _why(document, table, *path), _mark(document, table, *path))
    for key in ("why", "mark"):
        if key in table:
            raise document.error(f"`{key}` goes with a formula; the reason stands in `{given[0]}` itself.", *path, key)
    return _Statement(_STATEMENT_KINDS[given[0]], None, _sentence(document, table[given[0]], *path, given[0]), NONE)


def _formula(document: Document, text: Any, known: Collection[str] | None, word: str) -> Formula:
    """A sum of prices times numbers, of things that `word` counts. `known` None: the prices could not be read."""
    path = ("charge", word, "formula")
    if known is None:
        known = set(re.findall(r"[A-Za-z_]\w*", str(text)))
    formula = document.formula(text, known, *path)
    unit = COUNTS[word].unit
    for name in sorted(formula.names):
        if _PRICED_THINGS.get(name.rpartition("_")[2], unit) != unit:
            raise document.error(f"`{word}` counts {unit}s, but `{name}` is no price of one.", *path)
    if not formula.names or not _is_linear(formula):
        raise document.error(f"`{formula.text}` must be a sum of prices, each times a number.", *path)
    return formula


def _is_linear(formula: Formula) -> bool:
    """Whether doubling all prices doubles the formula, as it must for energies to be what they are."""
    once = {name: 1.0 + 0.1 * at for at, name in enumerate(sorted(formula.names))}
    try:
        single, double = formula(once), formula({name: 2 * value for name, value in once.items()})
        return math.isclose(double, 2 * single, rel_tol=1e-9)
    except (ZeroDivisionError, OverflowError):
        return False


def _points(table: CostTable) -> Iterator[_Point]:
    return (_Point(one, "") for one in table.settings)


def _voltages_suffice(document: Document, table: CostTable) -> None:
    """What is given for a volt needs a voltage at every setting; what is not holds at one setting only."""
    if "pj" in document.data:
        if len(table.settings) > 1:
            raise document.error("prices in [pj] hold at one setting; give voltages and [pj_per_v2] for several.", "pj")
        domains = {term.domain for term in table._constant.terms} - {None}
    else:
        domains = {rate.domain for rate in table._rates} | {term.domain for term in table._constant.terms} - {None}
    for at, one in enumerate(table.settings):
        for domain, volts in ((CORE, one.core_v), (MEMORY, one.memory_v)):
            if domain in domains and volts is None:
                place: tuple[str | int, ...] = ("setting", at) if "setting" in document.data else ()
                raise document.error(
                    f"setting {one.label} needs `{domain}_mv`: there are prices or watts a volt.", *place
                )


def _clocks_suffice(document: Document, table: CostTable) -> None:
    """A peak in Gflop/s or GB/s holds at one setting; a peak a cycle needs the clock."""
    for key, (_, domain) in _PEAK_TERMS.items():
        if key not in document.data.get("peak", {}):
            continue
        if domain is None and len(table.settings) > 1:
            raise document.error(f"`{key}` holds at one setting; with several, give it a cycle.", "peak", key)
        if domain is not None and table.default.core_mhz is None:
            raise document.error(f"`{key}` needs a clock; list the setting.", "peak", key)


def _all_prices_used(document: Document, table: CostTable) -> None:
    used = {name for one in table._statements.values() if one.formula for name in one.formula.names}
    for rate in table._rates:
        if rate.name not in used:
            path = ("pj", rate.name) if rate.domain is None else ("pj_per_v2", rate.domain, rate.name)
            raise document.error(f"no charge uses the price `{rate.name}`; use it or take it out.", *path)


def _charges_are_numbers(document: Document, table: CostTable) -> None:
    """Every charge is finite and not negative at every setting."""
    for point in _points(table):
        prices = {rate.name: rate.at(point) for rate in table._rates}
        for word, one in table._statements.items():
            try:
                pj = one.charge(prices).pj
            except (ZeroDivisionError, OverflowError):
                pj = math.nan
            if not math.isfinite(pj) or pj < 0:
                raise document.error(f"`{word}` would pay {pj:g} pJ at {point.setting.label}.", "charge", word)


def _totals_agree(document: Document, table: CostTable) -> None:
    """A class total stands in for its parts: it is stated if they are, and its price lies between theirs."""
    charges = table.at().charges
    for total, parts in PARTS.items():
        priced = [charges[part].pj for part in parts if part in charges]
        pays = any(charges[part].pays for part in parts if part in charges)
        if pays and total not in table._statements:
            raise document.error(
                f"the parts of `{total}` pay, so say what `{total}` pays where a log tells no parts (or `unpriced`).",
                "charge",
            )
        if total in charges and charges[total].pays:
            if not pays:
                raise document.error(f"`{total}` pays but none of {', '.join(parts)} does.", "charge", total)
            low, high, pj = min(priced), max(priced), charges[total].pj
            if not (low * (1 - 1e-9) <= pj <= high * (1 + 1e-9)):
                raise document.error(
                    f"`{total}` would pay {pj:g} pJ, which is not between its parts' {low:g} and {high:g} pJ.",
                    "charge",
                    total,
                )
