"""Reads a cost table from its file and checks it, closely: every mistake gets a sentence with file and line.

Each function here raises DefinitionError for the first mistake that it sees; `read` collects those of all of them.
"""

import difflib
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from eprof.base import marks as mark_words
from eprof.base.errors import DefinitionError
from eprof.base.marks import NONE, Mark
from eprof.base.toml import Document, Formula
from eprof.base.vocabulary import BOOKS, COUNTS, LEVEL_PARTS, PARTS
from eprof.costs.table import CORE, MEMORY, Constant, CostTable, FitRecord, Peak, Point, Rate, Setting, Statement, Term

_SMALLEST, _LARGEST = 1e-30, 1e15  # of any clock, voltage, price, power or rate, in the units of a table
SCHEMA = 1
_HEAD = ("schema", "name", "device", "devices", "source", "year", "books", "notes")
_PRICES = ("pj", "pj_per_v2", "pj_at_reference")
_KEYS = (*_HEAD, "setting", *_PRICES, "constant_power", "peak", "charge", "fit")
_CONSTANT_TERMS: Mapping[str, str | None] = {
    "core_w_per_v": CORE,
    "memory_w_per_v": MEMORY,
    "w": None,
    "core_w_per_mhz_v2": CORE,
    "memory_w_per_mhz_v2": MEMORY,
}
_FIT_KEYS: Mapping[str, type | tuple[type, ...]] = {
    "data": list,
    "mapping": str,
    "form": str,
    "rows": int,
    "benchmarks": int,
    "settings": int,
    "reference": list,
    "error_percent": dict,
    "condition": (int, float),
    "collinear": list,
    "interval_pj": dict,
    "interval_constant_w": list,
    "told": dict,
    "range": dict,
    "notes": list,
    "replicas": dict,
}
_LIMIT = "power_limit_w"  # of the board: it holds at every setting
_PEAK_TERMS: Mapping[str, tuple[str, str | None]] = {
    "sp_gflops": ("sp_gflops", None),
    "dp_gflops": ("dp_gflops", None),
    "dram_gb_per_s": ("dram_gb_per_s", None),
    "sp_flop_per_core_cycle": ("sp_gflops", CORE),
    "dp_flop_per_core_cycle": ("dp_gflops", CORE),
    "dram_byte_per_memory_cycle": ("dram_gb_per_s", MEMORY),
    _LIMIT: (_LIMIT, None),
}
_STATEMENT_KINDS = {"formula": "pays", "nothing": "nothing", "unpriced": "unpriced"}
# The last word of a price's name is what it is the price of; it says which counts may pay it.
_PRICED_THINGS = {"flop": "instruction", "instruction": "instruction", "byte": "byte"}
_SETTING_KEYS = ("core_mhz", "core_mv", "core_v_rel", "memory_mhz", "memory_mv", "memory_v_rel", "default")
_MARKS = ("assumed", "estimated", "simulated")
_PLAUSIBLE_MV = (200.0, 3000.0)
_PLAUSIBLE_RELATIVE = (0.2, 3.0)

Made = TypeVar("Made")


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


def read(document: Document) -> tuple[CostTable | None, list[DefinitionError]]:
    """The table in `document`, or None, and everything that is wrong with it."""
    reader = _Reader(document)
    if reader.attempt(_schema) is None:
        return None, reader.errors
    reader.attempt(_known_keys)
    head = {key: reader.attempt(how, key) for key, how in _HEAD_READERS.items()}
    settings = reader.attempt(_settings)
    rates = reader.attempt(_rates)
    constant = reader.attempt(_constant)
    peak = reader.attempt(_peak)
    fit = reader.attempt(_fit) if "fit" in document.data else None
    statements = _statements(reader, rates)
    if reader.errors or settings is None or rates is None or constant is None or peak is None:
        return None, reader.errors
    table = CostTable(
        **head,  # type: ignore[arg-type]
        path=document.label,
        settings=settings[0],
        default=settings[1],
        rates=rates,
        statements=statements,
        constant=constant,
        peak=peak,
        relative="pj_at_reference" in document.data,
        fit=fit,
    )
    for whole in (
        _voltages_suffice,
        _one_kind_of_voltage,
        _clocks_suffice,
        _all_prices_used,
        _replicas_known,
        _charges_are_numbers,
        _totals_agree,
    ):
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
    if number and not _SMALLEST < number < _LARGEST:
        raise document.error(f"`{what}` is {number:g}, which no GPU has; see the units in docs/costs.md.", *path)
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
    document.check_keys(entry, _SETTING_KEYS, *path)
    if not isinstance(entry.get("default", True), bool):
        raise document.error(f"`default` must be true or false, not {entry['default']!r}.", *path, "default")
    for key in ("core_mhz", "memory_mhz"):
        if key not in entry:
            raise document.error(f"a setting needs `{key}`.", *path)
    return Setting(
        _positive(document, entry["core_mhz"], *path, "core_mhz"),
        _volts(document, entry, *path, CORE),
        _positive(document, entry["memory_mhz"], *path, "memory_mhz"),
        _volts(document, entry, *path, MEMORY),
    )


def _volts(document: Document, entry: Mapping[str, Any], *path: str | int) -> float | None:
    """The voltage of the domain that ends `path`: V, or relative to a reference setting; None if it is not given."""
    *place, domain = path
    volts, relative = f"{domain}_mv", f"{domain}_v_rel"
    if volts in entry and relative in entry:
        raise document.error(f"`{relative}` says again what `{volts}` says; keep one.", *place, relative)
    if relative in entry:
        return _within(
            document, _positive(document, entry[relative], *place, relative), _PLAUSIBLE_RELATIVE, *place, relative
        )
    if volts in entry:
        return _within(document, _positive(document, entry[volts], *place, volts), _PLAUSIBLE_MV, *place, volts) / 1e3
    return None


def _within(document: Document, value: float, bounds: tuple[float, float], *path: str | int) -> float:
    lowest, highest = bounds
    if not lowest <= value <= highest:
        unit = "in millivolts" if bounds is _PLAUSIBLE_MV else "relative to the reference"
        raise document.error(f"`{path[-1]}` is {unit}: {value:g} is not between {lowest:g} and {highest:g}.", *path)
    return value


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
                unit = (1.0, "") if "pj_at_reference" in document.data else (1e3, " mV")
                was, now = (f"{unit[0] * v:g}{unit[1]}" if v is not None else "no voltage" for v in (first, found))
                raise document.error(
                    f"{domain} {mhz:g} MHz has {now} here but {was} above; a clock has one voltage.", "setting", at
                )


def _rates(document: Document) -> tuple[Rate, ...]:
    """The named prices: [pj] for a table of one setting; [pj_per_v2], [pj_at_reference] by domain."""
    given = [key for key in _PRICES if key in document.data]
    if len(given) != 1:
        said = "both are here" if given else "neither is here"
        raise document.error(f"prices stand either in [pj] or in [pj_per_v2]; {said}.", *given[:1])
    unit = given[0]
    table = _table(document, document.data[unit], unit)
    if unit == "pj":
        return tuple(_rate(document, name, value, None, unit, name) for name, value in table.items())
    document.check_keys(table, (CORE, MEMORY), unit)
    found: dict[str, Rate] = {}
    for domain, prices in table.items():
        for name, value in _table(document, prices, unit, domain).items():
            if name in found:
                raise document.error(f"price `{name}` stands in both domains.", unit, domain, name)
            found[name] = _rate(document, name, value, domain, unit, domain, name)
    return tuple(found.values())


def _rate(document: Document, name: str, value: Any, domain: str | None, *path: str) -> Rate:
    thing = name.rpartition("_")[2]
    if thing not in _PRICED_THINGS or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        ends = ", ".join(f"_{one}" for one in _PRICED_THINGS)
        raise document.error(f"`{name}` does not say what it is the price of; end it with one of: {ends}.", *path)
    return Rate(name, _number(document, value, *path), domain)


def _constant(document: Document) -> Constant:
    key = "constant_power"
    if key not in document.data:
        raise document.error("[constant_power] is missing: the watts drawn whatever the GPU does, as `w = ...`.")
    table = _table(document, document.data[key], key)
    document.check_keys(table, (*_CONSTANT_TERMS, "why", "mark"), key)
    terms = tuple(
        Term(_number(document, table[name], key, name), domain, name, "mhz" in name)
        for name, domain in _CONSTANT_TERMS.items()
        if name in table
    )
    if not terms:
        raise document.error(f"[{key}] gives no power; use some of: {', '.join(_CONSTANT_TERMS)}.", key)
    return Constant(terms, _why(document, table, key), _mark(document, table, key))


def _peak(document: Document) -> Peak:
    key = "peak"
    table = _table(document, document.data.get(key, {}), key)
    document.check_keys(table, (*_PEAK_TERMS, "why", "mark"), key)
    terms: dict[str, Term] = {}
    for name, (quantity, domain) in _PEAK_TERMS.items():
        if name not in table:
            continue
        if quantity in terms:
            raise document.error(f"`{name}` says again what `{quantity}` says; keep one.", key, name)
        terms[quantity] = Term(_positive(document, table[name], key, name), domain)
    return Peak(terms, _why(document, table, key), _mark(document, table, key))


def _statements(reader: _Reader, rates: tuple[Rate, ...] | None) -> dict[str, Statement]:
    """What the file says of each word, in the order of the vocabulary; every faulty entry is reported."""
    table = reader.attempt(lambda document: _table(document, document.data.get("charge", {}), "charge")) or {}
    if not table:
        reader.attempt(_no_charges)
    known = {rate.name for rate in rates} if rates is not None else None
    found = {word: reader.attempt(_statement, word, entry, known) for word, entry in table.items()}
    stated = {word: statement for word, statement in found.items() if statement is not None}
    for level, (read, write) in LEVEL_PARTS.items():
        if level not in table and read in stated and write in stated:
            stated[level] = _of_either(stated[read], stated[write])
    return {word: stated[word] for word in COUNTS if word in stated}


def _of_either(read: Statement, write: Statement) -> Statement:
    """What bytes of a level pay where a log does not tell reads from writes: the mean, where the two differ."""
    if read.kind == write.kind and read.formula == write.formula:
        return replace(read, why=f"{read.why}; reads and writes cost the same", marks=read.marks | write.marks)
    if "unpriced" in (read.kind, write.kind):
        return read if read.kind == "unpriced" else write
    texts = [statement.formula.text if statement.formula else "0" for statement in (read, write)]
    formula = Formula.parse(f"(({texts[0]}) + ({texts[1]})) / 2")
    why = "reads and writes are not told apart: half of the bytes taken for each"
    return Statement("pays", formula, why, read.marks | write.marks | Mark.ASSUMED)


def _no_charges(document: Document) -> None:
    raise document.error("[charge] is missing or empty: it says what each count pays.", "charge")


def _statement(document: Document, word: str, entry: Any, known: Collection[str] | None) -> Statement:
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
        return Statement("pays", formula, _why(document, table, *path), _mark(document, table, *path))
    for key in ("why", "mark"):
        if key in table:
            raise document.error(f"`{key}` goes with a formula; the reason stands in `{given[0]}` itself.", *path, key)
    return Statement(_STATEMENT_KINDS[given[0]], None, _sentence(document, table[given[0]], *path, given[0]), NONE)


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


def _points(table: CostTable) -> Iterator[Point]:
    return (Point(one, "") for one in table.settings)


def _voltages_suffice(document: Document, table: CostTable) -> None:
    """What is given for a volt needs a voltage at every setting; what is not holds at one setting only."""
    if "pj" in document.data:
        if len(table.settings) > 1:
            raise document.error("prices in [pj] hold at one setting; give voltages and [pj_per_v2] for several.", "pj")
        domains = {term.domain for term in table.constant.terms} - {None}
    else:
        domains = {rate.domain for rate in table.rates} | {term.domain for term in table.constant.terms} - {None}
    for at, one in enumerate(table.settings):
        for domain, volts in ((CORE, one.core_v), (MEMORY, one.memory_v)):
            if domain in domains and volts is None:
                place: tuple[str | int, ...] = ("setting", at) if "setting" in document.data else ()
                key = f"{domain}_v_rel" if table.relative else f"{domain}_mv"
                raise document.error(f"setting {one.label} needs `{key}`: there are prices or watts a volt.", *place)


def _one_kind_of_voltage(document: Document, table: CostTable) -> None:
    """Prices at a reference setting go with relative voltages, prices a square volt with millivolts."""
    wrong = "mv" if table.relative else "v_rel"
    for at, entry in enumerate(document.data.get("setting", [])):
        for key in (f"core_{wrong}", f"memory_{wrong}"):
            if key in entry:
                home = "pj_at_reference" if table.relative else "pj_per_v2 or pj"
                raise document.error(f"`{key}` does not go with prices in [{home}].", "setting", at, key)


def _fit(document: Document) -> FitRecord:
    """The section [fit]: how the table was made. Its values are shown; of the replicas, costs are made."""
    table = _table(document, document.data["fit"], "fit")
    document.check_keys(table, _FIT_KEYS, "fit")
    for key, value in table.items():
        if not isinstance(value, _FIT_KEYS[key]) or isinstance(value, bool):
            raise document.error(f"`{key}` is {value!r}, which it cannot be.", "fit", key)
        if not _is_plain(value):
            raise document.error(f"`{key}` holds something that is neither text nor a finite number.", "fit", key)
    found: dict[str, tuple[float, ...]] = {}
    for name, values in table.get("replicas", {}).items():
        if not isinstance(values, list):
            raise document.error(f"`{name}` must be a list of numbers.", "fit", "replicas", name)
        found[name] = tuple(_number(document, one, "fit", "replicas", name) for one in values)
    if len({len(values) for values in found.values()}) > 1:
        raise document.error("the lists of [fit.replicas] must be of one length.", "fit", "replicas")
    return FitRecord({key: value for key, value in table.items() if key != "replicas"}, found)


def _is_plain(value: Any) -> bool:
    """Whether a value, and all in it, can be written as JSON."""
    if isinstance(value, dict | list):
        return all(map(_is_plain, value.values() if isinstance(value, dict) else value))
    return isinstance(value, str | bool) or (isinstance(value, int | float) and abs(value) < 1e300)


def _clocks_suffice(document: Document, table: CostTable) -> None:
    """A peak in Gflop/s or GB/s holds at one setting; a peak a cycle needs the clock."""
    for key, (_, domain) in _PEAK_TERMS.items():
        if key not in document.data.get("peak", {}):
            continue
        if domain is None and key != _LIMIT and len(table.settings) > 1:
            raise document.error(f"`{key}` holds at one setting; with several, give it a cycle.", "peak", key)
        if domain is not None and table.default.core_mhz is None:
            raise document.error(f"`{key}` needs a clock; list the setting.", "peak", key)


def _all_prices_used(document: Document, table: CostTable) -> None:
    used = {name for one in table.statements.values() if one.formula for name in one.formula.names}
    for rate in table.rates:
        if rate.name not in used:
            home = "pj_at_reference" if table.relative else "pj_per_v2"
            path = ("pj", rate.name) if rate.domain is None else (home, rate.domain, rate.name)
            raise document.error(f"no charge uses the price `{rate.name}`; use it or take it out.", *path)


def _replicas_known(document: Document, table: CostTable) -> None:
    """Replicas are of the table's prices and terms of constant power."""
    known = {rate.name for rate in table.rates} | {term.name for term in table.constant.terms}
    for name in table.fit.replicas if table.fit else ():
        if name not in known:
            raise document.error(f"`{name}` is no price and no term of this table.", "fit", "replicas", name)


def _charges_are_numbers(document: Document, table: CostTable) -> None:
    """Every charge is finite and not negative at every setting."""
    for point in _points(table):
        prices = {rate.name: rate.at(point) for rate in table.rates}
        for word, one in table.statements.items():
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
        if pays and total not in table.statements and total not in LEVEL_PARTS:
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
