"""Reads a cost table from its TOML file and checks it closely: every mistake gets a sentence with file and line.

Each function here raises DefinitionError for the first mistake that it sees; `read` collects those of all of them.
"""

import math
import re
from collections.abc import Callable, Collection, Mapping
from operator import attrgetter
from typing import Any, TypeVar

from msgspec.structs import replace

from eprof.base.errors import DefinitionError
from eprof.base.optional import mapped
from eprof.base.text import did_you_mean, listed
from eprof.base.toml import Document, Formula, Node
from eprof.base.vocabulary import BOOKS, COUNTS, CPU, GPU, LEVEL_PARTS, NONE, PAY_WHERE_PRICED, RANDOM, Mark
from eprof.costs import parts
from eprof.costs.parts import CORE, DOMAINS, MEMORY, Constant, Intervals, Peak, Range, Setting, Statement, Term
from eprof.costs.rules import PEAK_TERMS, PRICES, RULES
from eprof.costs.table import CostTable

SCHEMA = 1
_SMALLEST, _LARGEST = 1e-30, 1e15  # of any clock, voltage, price, power or rate, in the units of a table
_KEYS = (
    *("schema", "name", "device", "devices", "source", "basis", "year", "books", "notes", "board", "processor"),
    *("setting", *PRICES, "constant_power", "peak", "cache", "charge", "fit", "time_components"),
    *("multiprocessors", "busy_mhz", "core_voltage"),
    *("interval_pj", "interval_constant_w", "interval_is", "sources"),
)
_CONSTANT_TERMS: Mapping[str, str | None] = {
    "core_w_per_v": CORE,
    "memory_w_per_v": MEMORY,
    "w": None,
    "core_w_per_mhz_v2": CORE,
    "memory_w_per_mhz_v2": MEMORY,
}
# Of [time_components]: what a multiprocessor holds, and the classes of instructions that its lanes work on.
_HELD = ("blocks", "warps", "registers", "shared_byte")
_UNITS = ("number", "schedulers", "latency_cycles", "transaction_byte", *_HELD)
_LANES = ("fp64", "fp32", "fp16", "integer", "special", "conversion", "control", "communication", "misc", "load_store")
_FIT_KEYS: Mapping[str, type | tuple[type, ...]] = {
    "data": list,
    "mapping": str,
    "form": str,
    "rows": int,
    "benchmarks": int,
    "settings": int,
    "reference": list,
    "error_percent": dict,
    "within": (int, float),
    "condition": (int, float),
    "collinear": list,
    "interval_pj": dict,
    "interval_constant_w": list,
    "told": dict,
    "range": dict,
    "notes": list,
    "replicas": dict,
}
# A table must say these; without settings it holds at one whose clocks it does not know.
_REQUIRED = ("name", "device", "source", "books", "constant_power")
_WORST_FIT = 1e6  # a factor
_MOST_FALL = 2.0  # how much more a voltage may fall than a table says; then 0.6 is 0.2, which no file may say
_STATEMENT_KINDS = {"formula": "pays", "nothing": "nothing", "unpriced": "unpriced"}
# The last word of a price's name is what it is the price of; it says which counts may pay it.
_PRICED_THINGS = {
    "flop": ("flop", "instruction"),
    "instruction": ("instruction",),
    "cycle": ("cycle",),
    "byte": ("byte",),
    "access": ("access",),
}
_IN_OTHER_PRICES = Statement("nothing", None, "in the prices of what is done in them, and in constant power", NONE)
_AS_STREAMED = Statement("nothing", None, "at random or in order, a byte pays the price of one that streams", NONE)
_BOARD_KEYS = (
    *("devices", "mark", "constant_power", "interval_constant_w", "peak", "memory_mhz", "multiprocessors"),
    *("core_mhz", "setting", "wider", "why"),
)
_SETTINGS = "a list of settings, each { core_mhz = ..., memory_mhz = ..., ... }"
_SETTING_KEYS = ("core_mhz", "core_mv", "core_v_rel", "memory_mhz", "memory_mv", "memory_v_rel", "default")
_MARKS = ("assumed", "estimated", "simulated")

Made = TypeVar("Made")


def read(document: Document) -> tuple[CostTable | None, list[DefinitionError]]:
    """(The cost table in `document`, []), or (None, everything that is wrong with its file)."""
    root = document.root
    errors: list[DefinitionError] = []

    def attempt(parse: Callable[..., Made], *arguments: Any) -> Made | None:
        """Call `parse`; None where it raises an error, which is kept: one reading finds all of them."""
        try:
            return parse(*arguments)
        except DefinitionError as err:
            errors.append(err)
            return None

    attempt(root.schema, SCHEMA)
    if errors:
        return None, errors
    attempt(_check_keys, root)
    made: dict[str, Any] = {}
    for field, (key, parse) in _parts().items():
        if not key:
            made[field] = attempt(parse, root)
        elif key in root or key in _REQUIRED:
            made[field] = attempt(parse, root[key])
    known = made["rates"] and {rate.name for rate in made["rates"]}
    entries = attempt(_charges, root["charge"]) or {}
    statements = {word: attempt(_statement, word, entry, known) for word, entry in entries.items()}
    if errors:
        return None, errors
    if "settings" in made:
        made["settings"], made["default"] = made["settings"]
    stated = _with_implied({word: statement for word, statement in statements.items() if statement is not None})
    table = CostTable(**made, path=document.label, statements=stated, relative="pj_at_reference" in root)
    for rule in RULES:
        attempt(rule, root, table)
        if errors:
            return None, errors
    return table, []


def checked(document: Document) -> CostTable:
    """The cost table in `document`. Raises DefinitionError: the first thing that is wrong with its file."""
    table, errors = read(document)
    if table is None:
        raise errors[0]
    return table


def _parts() -> Mapping[str, tuple[str, Callable[[Node], Any]]]:
    """Field of `CostTable` -> (its key in the file, or "" for the whole file; the function that reads it)."""
    return {
        "name": ("name", _table_name),
        "device": ("device", _text),
        "devices": ("devices", _texts),
        "source": ("source", _text),
        "year": ("year", _year),
        "books": ("books", lambda node: node.choice(BOOKS)),
        "processor": ("processor", lambda node: node.choice((GPU, CPU))),
        "notes": ("notes", _texts),
        "basis": ("", _basis),
        "settings": ("setting", _settings),
        "rates": ("", _rates),
        "constant": ("constant_power", _constant),
        "peak": ("peak", _peak),
        "caches": ("cache", _caches),
        "multiprocessors": ("time_components", _multiprocessors),
        "sm_count": ("multiprocessors", _positive),
        "busy_mhz": ("busy_mhz", _positive),
        "fit": ("fit", _fit),
        "intervals": ("", _intervals),
        "voltages": ("core_voltage", _voltages),
        "sources": ("sources", lambda node: {name: _text(entry) for name, entry in node.items()}),
        "boards": ("board", lambda node: tuple(map(_board, node.entries("a list of [[board]]")))),
    }


def _check_keys(root: Node) -> None:
    for key in root.value:
        if key not in _KEYS and re.fullmatch(r"[a-z]{0,2}j(_.*)?", key.lower()):
            raise root[key].error(f"unknown unit `{key}`; prices stand in [pj] or [pj_per_v2].")
    root.table(_KEYS)


def _text(node: Node) -> str:
    return " ".join(node.text().split())


def _texts(node: Node) -> tuple[str, ...]:
    return tuple(" ".join(text.split()) for text in node.texts())


def _table_name(node: Node) -> str:
    name = _text(node)
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name):
        raise node.error(f"`name` may have small letters, digits, `-` and `.`, not `{name}`.")
    return name


def _year(node: Node) -> int:
    if type(node.value) is not int:
        raise node.wrong("a whole number")
    return node.value


def _basis(root: Node) -> str | None:
    """The basis of a cost table's prices, as its file says; if it does not, "fitted" where it has a fit, else None."""
    if "basis" in root:
        return root["basis"].choice(parts.BASES)
    return "fitted" if "fit" in root else None


def _number(node: Node) -> float:
    """A finite number that is not negative in a cost table's file: clocks, voltages, prices, powers."""
    number = node.number()
    if not math.isfinite(number):
        raise node.error(f"`{node.name}` must be finite, not {number}.")
    if number < 0:
        raise node.error(f"`{node.name}` must not be negative, but it is {number:g}.")
    if number and not _SMALLEST < number < _LARGEST:
        raise node.error(f"`{node.name}` is {number:g}, which no GPU has; see the units in docs/costs.md.")
    return number


def _positive(node: Node) -> float:
    number = _number(node)
    if number == 0:
        raise node.error(f"`{node.name}` must be more than 0.")
    return number


def _mark(entry: Node) -> Mark:
    """The mark of an entry of a cost table's file. Raises DefinitionError: it is marked and gives no reason (`why`)."""
    if "mark" not in entry:
        return NONE
    word = entry["mark"].choice(_MARKS)
    if "why" not in entry:
        raise entry.error(f"what is marked {word} needs a `why`.")
    return Mark[word.upper()]


def _why(entry: Node) -> str:
    return _optional(_text, entry, "why") or ""


def _settings(node: Node) -> tuple[tuple[Setting, ...], Setting]:
    """(All DVFS settings in a cost table's file, the default one)."""
    entries = node.entries(_SETTINGS)
    if not entries:
        raise node.wrong(_SETTINGS)
    settings = tuple(_setting(entry) for entry in entries)
    defaults = [number for number, entry in enumerate(entries) if entry["default"].value]
    if len(defaults) > 1:
        labels = listed([settings[number].label for number in defaults])
        raise entries[defaults[1]].error(f"{labels} are both the default; mark one setting only.")
    if not defaults and len(settings) > 1:
        raise node.error("no setting is the default; write `default = true` in one of them.")
    return settings, settings[(*defaults, 0)[0]]


def _setting(entry: Node) -> Setting:
    if not isinstance(entry.value, dict):
        raise entry.error(f"a setting must be {{ core_mhz = ..., memory_mhz = ..., ... }}, not {entry.value!r}.")
    entry.table(_SETTING_KEYS)
    entry["default"].truth(False)
    for key in ("core_mhz", "memory_mhz"):
        if key not in entry:
            raise entry.error(f"a setting needs `{key}`.")
    core_mhz, core_v = _positive(entry["core_mhz"]), _volts(entry, CORE)
    return Setting(core_mhz, core_v, _positive(entry["memory_mhz"]), _volts(entry, MEMORY))


def _volts(entry: Node, domain: str) -> float | None:
    """The voltage of a domain in a cost table's file: V, or relative to a reference setting; None if not given."""
    millivolts, relative = entry[f"{domain}_mv"], entry[f"{domain}_v_rel"]
    if millivolts.name in entry and relative.name in entry:
        raise relative.error(f"`{relative.name}` says again what `{millivolts.name}` says; keep one.")
    for node, unit, size in ((relative, "relative to the reference", 1), (millivolts, "in millivolts", 1000)):
        if node.name in entry:
            value, lowest, highest = _positive(node), size / 5, 3 * size
            if not lowest <= value <= highest:
                raise node.error(f"`{node.name}` is {unit}: {value:g} is not between {lowest:g} and {highest:g}.")
            return value / size
    return None


def _rates(root: Node) -> tuple[Term, ...]:
    """The prices in a cost table's file: of [pj] at one setting, or by domain of [pj_per_v2] or [pj_at_reference]."""
    units = [unit for unit in PRICES if unit in root]
    if not units:
        raise root.error("prices stand either in [pj] or in [pj_per_v2]; neither is here.")
    if len(units) > 1:
        raise root[units[0]].error("prices stand either in [pj] or in [pj_per_v2]; both are here.")
    prices = root[units[0]].table()
    if units == ["pj"]:
        return tuple(_rate(price, None) for _, price in prices.items())
    rates: dict[str, Term] = {}
    for domain, of_domain in prices.table(DOMAINS).items():
        for name, price in of_domain.items():
            if name in rates:
                raise price.error(f"price `{name}` stands in both domains.")
            rates[name] = _rate(price, domain)
    return tuple(rates.values())


def _rate(price: Node, domain: str | None) -> Term:
    """A price in a cost table's file; its name must end in what it is the price of ("l2_byte")."""
    name = price.name
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or name.rpartition("_")[2] not in _PRICED_THINGS:
        ends = ", ".join(f"_{ending}" for ending in _PRICED_THINGS)
        raise price.error(f"`{name}` does not say what it is the price of; end it with one of: {ends}.")
    return Term(name, _number(price), domain, volts=2)


def _constant(node: Node) -> Constant:
    if node.value is None:
        raise node.error("[constant_power] is missing: the watts drawn whatever the GPU does, as `w = ...`.")
    node.table((*_CONSTANT_TERMS, "per", "cores", "why", "mark"))
    terms = tuple(
        Term(name, _number(node[name]), domain, mhz="mhz" in name, volts=1 + ("v2" in name))
        for name, domain in _CONSTANT_TERMS.items()
        if name in node
    )
    if not terms:
        raise node.error(f"[constant_power] gives no power; use some of: {', '.join(_CONSTANT_TERMS)}.")
    is_per_socket = "per" in node and node["per"].choice(("socket",)) == "socket"
    cores = mapped(int, _optional(_positive, node, "cores"))
    return Constant(terms, _why(node), _mark(node), is_per_socket, cores=cores)


def _peak(node: Node) -> Peak:
    node.table((*PEAK_TERMS, "why", "mark"))
    terms: dict[str, Term] = {}
    for name, (quantity, domain) in PEAK_TERMS.items():
        if name not in node:
            continue
        if quantity in terms:
            raise node[name].error(f"`{name}` says again what `{quantity}` says; keep one.")
        terms[quantity] = Term(quantity, _positive(node[name]), domain, mhz=domain is not None)
    return Peak(terms, _why(node), _mark(node))


def _caches(node: Node) -> dict[str, str]:
    """A CPU's caches to simulate, of [cache]: "D1" and "LL" -> "bytes,ways,line"."""
    node.table(("d1", "ll", "why"))
    node["why"].text()
    for key in ("d1", "ll"):
        sets, rest = 0, 0
        if numbers := re.fullmatch(r"(\d{1,12}),(\d{1,4}),64", node[key].text()):
            sets, rest = divmod(int(numbers[1]), 64 * int(numbers[2]) or 1)
        if rest or sets < 1 or sets & (sets - 1):
            raise node[key].error(f"`{key}` must be bytes, ways and a line of 64 bytes, with 2^n sets: 32768,8,64.")
    return {"D1": node["d1"].text(), "LL": node["ll"].text()}


def _multiprocessors(node: Node) -> parts.Multiprocessors:
    node.table((*_UNITS, "lanes", "core_mhz", "source", "why", "mark"))
    lanes = {name: _positive(entry) for name, entry in node["lanes"].table(_LANES).items()}
    for name in ("fp32", "load_store"):
        if name not in lanes:
            raise node.error(f"`lanes` must say how many units of one multiprocessor work on {name}.")
    units = {name: _positive(node[name]) for name in _UNITS}
    core_mhz, source = _optional(_positive, node, "core_mhz"), _text(node["source"])
    return parts.Multiprocessors(
        **units, lanes=lanes, core_mhz=core_mhz, source=source, why=_why(node), marks=_mark(node)
    )


def _fit(node: Node) -> parts.FitRecord:
    """The section [fit] of a cost table's file: values that are only shown, and replicas, which intervals come of."""
    node.table(_FIT_KEYS)
    for key, entry in node.items():
        if not isinstance(entry.value, _FIT_KEYS[key]) or isinstance(entry.value, bool):
            raise entry.error(f"`{key}` is {entry.value!r}, which it cannot be.")
        if not _is_plain(entry.value):
            raise entry.error(f"`{key}` holds something that is neither text nor a finite number.")
    if "within" in node:
        node["within"].number(1, _WORST_FIT)
    replicas = {}
    for name, values in node["replicas"].items():
        replicas[name] = tuple(_number(value) for value in values.entries("a list of numbers"))
    if len({len(values) for values in replicas.values()}) > 1:
        raise node["replicas"].error("the lists of [fit.replicas] must be of one length.")
    return parts.FitRecord({key: value for key, value in node.value.items() if key != "replicas"}, replicas)


def _intervals(root: Node) -> Intervals:
    """The intervals that a cost table's file gives itself; none where it has replicas to make them of."""
    prices = {name: _range(entry) for name, entry in root["interval_pj"].items()}
    made = Intervals(prices, _optional(_range, root, "interval_constant_w"))
    if "core_voltage" in root:
        made = replace(made, core_v_fall=_range(root["core_voltage"]["interval_fall"]))
    if made == Intervals():
        return made
    if root["fit"]["replicas"].value is not None:
        raise root.error("the intervals of a table with [fit.replicas] are made of them; take the others out.")
    return replace(made, meaning=_text(root["interval_is"]))


def _voltages(node: Node) -> parts.Voltages:
    """The section [core_voltage], of voltages that nobody read; its `interval_fall` is kept by `_intervals`."""
    node.table(("are", "interval_fall", "mark"))
    low, high = _range(node["interval_fall"])
    if not low <= 1 <= high <= _MOST_FALL:
        raise node["interval_fall"].error(
            f"`interval_fall` is what the fall of the voltages is multiplied by: it must hold 1, and {_MOST_FALL:g} is "
            "the most."
        )
    return parts.Voltages(_text(node["are"]), Mark[node["mark"].choice(_MARKS).upper()])


def _range(node: Node) -> Range:
    """An interval in a cost table's file: [low, high]."""
    kind = "two ascending numbers, such as [2.5, 4.0]"
    if not isinstance(node.value, list) or len(node.value) != 2:
        raise node.wrong(kind)
    low, high = (_number(replace(node, value=value)) for value in node.value)
    if low > high:
        raise node.wrong(kind)
    return low, high


def _board(entry: Node) -> parts.Board:
    entry.table(_BOARD_KEYS)
    devices = _texts(entry["devices"])
    if not devices:
        raise entry.error("a board needs `devices`, as logs name them.")
    if "mark" in entry:
        entry["mark"].choice(("assumed",))
    return parts.Board(
        devices=devices,
        why=_text(entry["why"]),
        assumed="mark" in entry,
        constant=_optional(_constant, entry, "constant_power"),
        interval_constant_w=_optional(_range, entry, "interval_constant_w"),
        peak=_optional(_peak, entry, "peak"),
        memory_mhz=_optional(_positive, entry, "memory_mhz"),
        sm_count=_optional(_positive, entry, "multiprocessors"),
        settings=tuple(map(_setting, entry["setting"].entries())),
        core_mhz=_optional(_positive, entry, "core_mhz"),
        wider={name: factor.number(1, 100) for name, factor in entry["wider"].items()},
    )


def _optional(parse: Callable[[Node], Made], entry: Node, key: str) -> Made | None:
    return parse(entry[key]) if key in entry else None


def _is_plain(value: Any) -> bool:
    """Whether a value of [fit] holds texts, truth values and finite numbers alone."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return isinstance(value, str | bool) or (isinstance(value, int | float) and abs(value) < 1e300)


def _charges(node: Node) -> dict[str, Node]:
    entries = dict(node.items())
    if not entries:
        raise node.error("[charge] is missing or empty: it says what each count pays.")
    return entries


def _statement(word: str, entry: Node, known: Collection[str] | None) -> Statement:
    """What a cost table's file says that `word` pays. known: names of its prices; None if these could not be read."""
    if word not in COUNTS:
        meant = did_you_mean(word, COUNTS) or f" Use one of: {', '.join(COUNTS)}."
        raise entry.error(f"`{word}` is not a word of the vocabulary.{meant}")
    entry.table((*_STATEMENT_KINDS, "why", "mark"))
    kinds = [kind for kind in _STATEMENT_KINDS if kind in entry]
    if len(kinds) != 1:
        raise entry.error(f"`{word}` needs exactly one of: {', '.join(_STATEMENT_KINDS)}.")
    kind = kinds[0]
    if kind == "formula":
        node = entry["formula"]
        if known is None:
            known = re.findall(r"[A-Za-z_]\w*", str(node.value))
        formula = node.formula(known)
        unit = COUNTS[word].unit
        for name in sorted(formula.names):
            if unit not in _PRICED_THINGS.get(name.rpartition("_")[2], (unit,)):
                raise node.error(f"`{word}` counts {unit}s, but `{name}` is not a price of one.")
        if not formula.names or not _is_linear(formula):
            raise node.error(f"`{formula.text}` must be a sum of prices, each times a number.")
        return Statement("pays", formula, _why(entry), _mark(entry))
    for key in ("why", "mark"):
        if key in entry:
            raise entry[key].error(f"`{key}` goes with a formula; the reason stands in `{kind}` itself.")
    return Statement(_STATEMENT_KINDS[kind], None, _text(entry[kind]), NONE)


def _is_linear(formula: Formula) -> bool:
    """Whether doubling all prices doubles a charge's formula: it must be a sum of prices, each times a number."""
    prices = {name: 1.0 + 0.1 * number for number, name in enumerate(sorted(formula.names))}
    doubled = {name: 2 * price for name, price in prices.items()}
    try:
        return math.isclose(formula(doubled), 2 * formula(prices), rel_tol=1e-9)
    except (ZeroDivisionError, OverflowError):
        return False


def _with_implied(stated: Mapping[str, Statement]) -> dict[str, Statement]:
    """A cost table's statements in the order of the vocabulary, with those that go without saying.

    A memory level whose reads and writes have a statement needs none; cycles pay only where a table prices them.
    """
    statements = dict(stated)
    for level, (read_, write) in LEVEL_PARTS.items():
        if level not in stated and read_ in stated and write in stated:
            statements[level] = _of_either(stated[read_], stated[write])
    statements = dict.fromkeys(PAY_WHERE_PRICED, _IN_OTHER_PRICES) | {RANDOM: _AS_STREAMED} | statements
    return {word: statements[word] for word in COUNTS if word in statements}


def _of_either(read_: Statement, write: Statement) -> Statement:
    """What bytes of a level pay where a log does not tell reads from writes: the mean, if the two pay differently."""
    marks = read_.marks | write.marks
    if read_.kind == write.kind and read_.formula == write.formula:
        return replace(read_, why=f"{read_.why}; reads and writes cost the same", marks=marks)
    for statement in (read_, write):
        if statement.kind == "unpriced":
            return statement
    texts = [mapped(attrgetter("text"), statement.formula) or "0" for statement in (read_, write)]
    formula = Formula.parse(f"(({texts[0]}) + ({texts[1]})) / 2")
    why = "reads and writes are not told apart: half of the bytes taken for each"
    return Statement("pays", formula, why, marks | Mark.ASSUMED)
