"""Reads a cost table from its file and checks it, closely: every mistake gets a sentence with file and line.

Each function here raises DefinitionError for the first mistake that it sees; `read` collects those of all of them.
"""

import math
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from msgspec.structs import replace

from eprof.base.errors import DefinitionError
from eprof.base.marks import NONE, Mark
from eprof.base.text import did_you_mean, listed
from eprof.base.toml import Document, Formula, Node
from eprof.base.vocabulary import BOOKS, COUNTS, CPU, GPU, LEVEL_PARTS, PARTS, PAY_WHERE_PRICED, RANDOM, TENSOR_PARTS
from eprof.costs.intervals import BASES, CONSTANT_POWER, NEEDS_INTERVALS, Intervals, Range
from eprof.costs.table import (
    CORE,
    DOMAINS,
    MEMORY,
    Board,
    Charge,
    Constant,
    CostTable,
    FitRecord,
    Multiprocessors,
    Peak,
    Point,
    Rate,
    Setting,
    Statement,
    Term,
    Voltages,
)

SCHEMA = 1
_SMALLEST, _LARGEST = 1e-30, 1e15  # of any clock, voltage, price, power or rate, in the units of a table
_PRICES = ("pj", "pj_per_v2", "pj_at_reference")
_KEYS = (
    *("schema", "name", "device", "devices", "source", "basis", "year", "books", "notes", "board", "processor"),
    *("setting", *_PRICES, "constant_power", "peak", "cache", "charge", "fit", "time_components"),
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
_LIMIT = "power_limit_w"  # of the board: it holds at every setting
_PEAK_TERMS: Mapping[str, tuple[str, str | None]] = {
    "sp_gflops": ("sp_gflops", None),
    "dp_gflops": ("dp_gflops", None),
    "dram_gb_per_s": ("dram_gb_per_s", None),
    "sp_flop_per_core_cycle": ("sp_gflops", CORE),
    "dp_flop_per_core_cycle": ("dp_gflops", CORE),
    "dram_byte_per_memory_cycle": ("dram_gb_per_s", MEMORY),
    "dram_path_byte_per_core_cycle": ("dram_path_gb_per_s", CORE),
    "random_gaccess_per_s": ("random_gaccess_per_s", None),
    "random_access_per_memory_cycle": ("random_gaccess_per_s", MEMORY),
    _LIMIT: (_LIMIT, None),
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
    *("setting", "wider", "why"),
)
_SETTING_KEYS = ("core_mhz", "core_mv", "core_v_rel", "memory_mhz", "memory_mv", "memory_v_rel", "default")
_MARKS = ("assumed", "estimated", "simulated")

Made = TypeVar("Made")


class _Attempts:
    """Calls parsers and keeps the DefinitionErrors that they raise, so that one reading finds all of them."""

    def __init__(self) -> None:
        self.errors: list[DefinitionError] = []

    def __call__(self, parse: Callable[..., Made], *arguments: Any) -> Made | None:
        """Return what `parse` returns; None where it raises a DefinitionError."""
        try:
            return parse(*arguments)
        except DefinitionError as err:
            self.errors.append(err)
            return None


def read(document: Document) -> tuple[CostTable | None, list[DefinitionError]]:
    """The cost table in `document`, or None, and everything that is wrong with its file."""
    attempt = _Attempts()
    root = document.root
    attempt(root.schema, SCHEMA)
    if attempt.errors:
        return None, attempt.errors
    attempt(_check_keys, root)
    made: dict[str, Any] = {
        field: attempt(parse, root[key] if key else root) for field, (key, parse) in _parts().items()
    }
    rates = made["rates"]
    known = None if rates is None else {rate.name for rate in rates}
    entries = attempt(_charges, root["charge"]) or {}
    statements = {word: attempt(_statement, word, entry, known) for word, entry in entries.items()}
    if attempt.errors:
        return None, attempt.errors
    settings, default = made.pop("settings")
    stated = _with_implied({word: statement for word, statement in statements.items() if statement is not None})
    is_relative = "pj_at_reference" in root
    table = CostTable(
        **made, path=document.label, settings=settings, default=default, statements=stated, relative=is_relative
    )
    for rule in _RULES:
        attempt(rule, root, table)
        if attempt.errors:
            return None, attempt.errors
    return table, []


def _parts() -> Mapping[str, tuple[str, Callable[[Node], Any]]]:
    """Where each field of a cost table stands in its file ("" for the whole file), and what reads it."""
    return {
        "name": ("name", _table_name),
        "device": ("device", _text),
        "devices": ("devices", _texts),
        "source": ("source", _text),
        "year": ("year", _year),
        "books": ("books", lambda node: node.choice(BOOKS)),
        "processor": ("processor", lambda node: node.choice((GPU, CPU), default=GPU)),
        "notes": ("notes", _texts),
        "basis": ("", _basis),
        "settings": ("setting", _settings),
        "rates": ("", _rates),
        "constant": ("constant_power", _constant),
        "peak": ("peak", _peak),
        "caches": ("cache", _caches),
        "multiprocessors": ("time_components", _multiprocessors),
        "sm_count": ("", lambda root: _optional(_positive, root, "multiprocessors")),
        "busy_mhz": ("", lambda root: _optional(_positive, root, "busy_mhz")),
        "fit": ("fit", _fit),
        "intervals": ("", _intervals),
        "voltages": ("core_voltage", _voltages),
        "sources": ("sources", lambda node: {name: _text(entry) for name, entry in node.items()}),
        "boards": ("board", _boards),
    }


def _check_keys(root: Node) -> None:
    for key in root.value:
        if key not in _KEYS and re.fullmatch(r"[a-z]{0,2}j(_.*)?", key.lower()):
            raise root[key].error(f"unknown unit `{key}`; prices stand in [pj] or [pj_per_v2].")
    root.table(_KEYS)


# ---- values


def _text(node: Node) -> str:
    return " ".join(node.text().split())


def _texts(node: Node) -> tuple[str, ...]:
    return tuple(" ".join(text.split()) for text in node.texts())


def _table_name(node: Node) -> str:
    name = _text(node)
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name):
        raise node.error(f"`name` may have small letters, digits, `-` and `.`, not `{name}`.")
    return name


def _year(node: Node) -> int | None:
    if node.value is not None and type(node.value) is not int:
        raise node.wrong("a whole number")
    return node.value


def _basis(root: Node) -> str | None:
    """What the prices in a cost table's file rest on.

    A table that does not say is fitted if it has a fit, and else nobody knows.
    """
    if "basis" in root:
        return root["basis"].choice(BASES)
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
    """The mark of an entry of a cost table's file; a marked entry gives its reason."""
    if "mark" not in entry:
        return NONE
    word = entry["mark"].choice(_MARKS)
    if "why" not in entry:
        raise entry.error(f"what is marked {word} needs a `why`.")
    return Mark[word.upper()]


def _why(entry: Node) -> str:
    return _optional(_text, entry, "why") or ""


# ---- sections


def _settings(node: Node) -> tuple[tuple[Setting, ...], Setting]:
    """The settings in a cost table's file and the default one.

    A table without any holds at one setting whose clocks it does not know.
    """
    if node.value is None:
        return (Setting(),), Setting()
    kind = "a list of settings, each { core_mhz = ..., memory_mhz = ..., ... }"
    entries = node.entries(kind)
    if not entries:
        raise node.wrong(kind)
    settings = tuple(_setting(entry) for entry in entries)
    defaults = [number for number, entry in enumerate(entries) if entry["default"].value]
    if len(defaults) > 1:
        labels = listed([settings[number].label for number in defaults])
        raise entries[defaults[1]].error(f"{labels} are both the default; mark one setting only.")
    if not defaults and len(settings) > 1:
        raise node.error("no setting is the default; write `default = true` in one of them.")
    return settings, settings[defaults[0] if defaults else 0]


def _setting(entry: Node) -> Setting:
    if not isinstance(entry.value, dict):
        raise entry.error(f"a setting must be {{ core_mhz = ..., memory_mhz = ..., ... }}, not {entry.value!r}.")
    entry.table(_SETTING_KEYS)
    entry["default"].truth(False)
    for key in ("core_mhz", "memory_mhz"):
        if key not in entry:
            raise entry.error(f"a setting needs `{key}`.")
    return Setting(
        core_mhz=_positive(entry["core_mhz"]),
        core_v=_volts(entry, CORE),
        memory_mhz=_positive(entry["memory_mhz"]),
        memory_v=_volts(entry, MEMORY),
    )


def _volts(entry: Node, domain: str) -> float | None:
    """The voltage of a domain in a cost table's file: V, or relative to a reference setting; None if not given."""
    millivolts, relative = entry[f"{domain}_mv"], entry[f"{domain}_v_rel"]
    if millivolts.name in entry and relative.name in entry:
        raise relative.error(f"`{relative.name}` says again what `{millivolts.name}` says; keep one.")
    if relative.name in entry:
        return _within(relative, 0.2, 3.0, "relative to the reference")
    if millivolts.name in entry:
        return _within(millivolts, 200, 3000, "in millivolts") / 1e3
    return None


def _within(node: Node, lowest: float, highest: float, unit: str) -> float:
    value = _positive(node)
    if not lowest <= value <= highest:
        raise node.error(f"`{node.name}` is {unit}: {value:g} is not between {lowest:g} and {highest:g}.")
    return value


def _voltage(volts: float | None, entry: Node, domain: str) -> str:
    if volts is None:
        return "no voltage"
    return f"{volts:g}" if f"{domain}_v_rel" in entry else f"{1e3 * volts:g} mV"


def _rates(root: Node) -> tuple[Rate, ...]:
    """The named prices: [pj] for a table of one setting; [pj_per_v2], [pj_at_reference] by domain."""
    units = [unit for unit in _PRICES if unit in root]
    if len(units) != 1:
        place = root[units[0]] if units else root
        number = "both are" if units else "neither is"
        raise place.error(f"prices stand either in [pj] or in [pj_per_v2]; {number} here.")
    prices = root[units[0]].table()
    if units == ["pj"]:
        return tuple(_rate(price, None) for _, price in prices.items())
    rates: dict[str, Rate] = {}
    for domain, of_domain in prices.table(DOMAINS).items():
        for name, price in of_domain.items():
            if name in rates:
                raise price.error(f"price `{name}` stands in both domains.")
            rates[name] = _rate(price, domain)
    return tuple(rates.values())


def _rate(price: Node, domain: str | None) -> Rate:
    name = price.name
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or name.rpartition("_")[2] not in _PRICED_THINGS:
        ends = ", ".join(f"_{ending}" for ending in _PRICED_THINGS)
        raise price.error(f"`{name}` does not say what it is the price of; end it with one of: {ends}.")
    return Rate(name, _number(price), domain)


def _constant(node: Node) -> Constant:
    if node.value is None:
        raise node.error("[constant_power] is missing: the watts drawn whatever the GPU does, as `w = ...`.")
    node.table((*_CONSTANT_TERMS, "per", "cores", "why", "mark"))
    terms = tuple(
        Term(_number(node[name]), domain, name, clocked="mhz" in name)
        for name, domain in _CONSTANT_TERMS.items()
        if name in node
    )
    if not terms:
        raise node.error(f"[constant_power] gives no power; use some of: {', '.join(_CONSTANT_TERMS)}.")
    is_per_socket = "per" in node and node["per"].choice(("socket",)) == "socket"
    cores = int(_positive(node["cores"])) if "cores" in node else None
    return Constant(terms, _why(node), _mark(node), is_per_socket, cores=cores)


def _peak(node: Node) -> Peak:
    if node.value is None:
        return Peak({}, "", NONE)
    node.table((*_PEAK_TERMS, "why", "mark"))
    terms: dict[str, Term] = {}
    for name, (quantity, domain) in _PEAK_TERMS.items():
        if name not in node:
            continue
        if quantity in terms:
            raise node[name].error(f"`{name}` says again what `{quantity}` says; keep one.")
        terms[quantity] = Term(_positive(node[name]), domain)
    return Peak(terms, _why(node), _mark(node))


def _caches(node: Node) -> dict[str, str]:
    if node.value is None:
        return {}
    node.table(("d1", "ll", "why"))
    node["why"].text()
    for key in ("d1", "ll"):
        numbers = re.fullmatch(r"(\d{1,12}),(\d{1,4}),64", node[key].text())
        sets, rest = divmod(int(numbers[1]), 64 * int(numbers[2]) or 1) if numbers else (0, 1)
        if rest or sets < 1 or sets & (sets - 1):
            raise node[key].error(f"`{key}` must be bytes, ways and a line of 64 bytes, with 2^n sets: 32768,8,64.")
    return {"D1": node["d1"].text(), "LL": node["ll"].text()}


def _multiprocessors(node: Node) -> Multiprocessors | None:
    """The multiprocessors in a cost table's file, for time by component; None where it says nothing of them."""
    if node.value is None:
        return None
    node.table((*_UNITS, "lanes", "core_mhz", "source", "why", "mark"))
    lanes = {name: _positive(entry) for name, entry in node["lanes"].table(_LANES).items()}
    for name in ("fp32", "load_store"):
        if name not in lanes:
            raise node.error(f"`lanes` must say how many units of one multiprocessor work on {name}.")
    return Multiprocessors(
        **{name: _positive(node[name]) for name in _UNITS},
        lanes=lanes,
        core_mhz=_optional(_positive, node, "core_mhz"),
        source=_text(node["source"]),
        why=_why(node),
        marks=_mark(node),
    )


def _fit(node: Node) -> FitRecord | None:
    """The section [fit] of a cost table's file: how the table was made.

    Its values are shown; of the replicas, costs are made.
    """
    if node.value is None:
        return None
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
    return FitRecord({key: value for key, value in node.value.items() if key != "replicas"}, replicas)


def _intervals(root: Node) -> Intervals:
    prices = {name: _range(entry) for name, entry in root["interval_pj"].items()}
    fall = root["core_voltage"]["interval_fall"]
    core_v_fall = (1.0, 1.0) if fall.value is None else _range(fall)
    made = Intervals(prices, _optional(_range, root, "interval_constant_w"), core_v_fall=core_v_fall)
    if made == Intervals():
        return made
    if root["fit"]["replicas"].value is not None:
        raise root.error("the intervals of a table with [fit.replicas] are made of them; take the others out.")
    return replace(made, meaning=_text(root["interval_is"]))


def _voltages(node: Node) -> Voltages:
    """What the core's voltages in a cost table's file are, where nobody read them; their interval is `_intervals`'."""
    if node.value is None:
        return Voltages()
    node.table(("are", "interval_fall", "mark"))
    low, high = _range(node["interval_fall"])
    if not low <= 1 <= high <= _MOST_FALL:
        raise node["interval_fall"].error(
            f"`interval_fall` is what the fall of the voltages is multiplied by: it must hold 1, and {_MOST_FALL:g} is "
            "the most."
        )
    return Voltages(_text(node["are"]), Mark[node["mark"].choice(_MARKS).upper()])


def _range(node: Node) -> Range:
    kind = "two ascending numbers, such as [2.5, 4.0]"
    if not isinstance(node.value, list) or len(node.value) != 2:
        raise node.wrong(kind)
    low, high = (_number(replace(node, value=value)) for value in node.value)
    if low > high:
        raise node.wrong(kind)
    return low, high


def _boards(node: Node) -> tuple[Board, ...]:
    return tuple(_board(entry.table(_BOARD_KEYS)) for entry in node.entries("a list of [[board]]"))


def _board(entry: Node) -> Board:
    devices = _texts(entry["devices"])
    if not devices:
        raise entry.error("a board needs `devices`, as logs name them.")
    if "mark" in entry:
        entry["mark"].choice(("assumed",))
    return Board(
        devices=devices,
        why=_text(entry["why"]),
        assumed="mark" in entry,
        constant=_optional(_constant, entry, "constant_power"),
        interval_constant_w=_optional(_range, entry, "interval_constant_w"),
        peak=_optional(_peak, entry, "peak"),
        memory_mhz=_optional(_positive, entry, "memory_mhz"),
        sm_count=_optional(_positive, entry, "multiprocessors"),
        settings=tuple(map(_setting, entry["setting"].entries())),
        wider={name: factor.number(1, 100) for name, factor in entry["wider"].items()},
    )


def _optional(parse: Callable[[Node], Made], entry: Node, key: str) -> Made | None:
    return parse(entry[key]) if key in entry else None


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return isinstance(value, str | bool) or (isinstance(value, int | float) and abs(value) < 1e300)


# ---- what each count pays


def _charges(node: Node) -> dict[str, Node]:
    entries = dict(node.items())
    if not entries:
        raise node.error("[charge] is missing or empty: it says what each count pays.")
    return entries


def _statement(word: str, entry: Node, known: Collection[str] | None) -> Statement:
    """What a cost table's file says of one word. known: the prices; None if these could not be read."""
    if word not in COUNTS:
        meant = did_you_mean(word, COUNTS) or f" Use one of: {', '.join(COUNTS)}."
        raise entry.error(f"`{word}` is not a word of the vocabulary.{meant}")
    entry.table((*_STATEMENT_KINDS, "why", "mark"))
    kinds = [kind for kind in _STATEMENT_KINDS if kind in entry]
    if len(kinds) != 1:
        raise entry.error(f"`{word}` needs exactly one of: {', '.join(_STATEMENT_KINDS)}.")
    kind = kinds[0]
    if kind == "formula":
        return Statement("pays", _formula(word, entry["formula"], known), _why(entry), _mark(entry))
    for key in ("why", "mark"):
        if key in entry:
            raise entry[key].error(f"`{key}` goes with a formula; the reason stands in `{kind}` itself.")
    return Statement(_STATEMENT_KINDS[kind], None, _text(entry[kind]), NONE)


def _formula(word: str, node: Node, known: Collection[str] | None) -> Formula:
    """A formula of a cost table's file: a sum of prices times numbers, of things that `word` counts."""
    if known is None:
        known = re.findall(r"[A-Za-z_]\w*", str(node.value))
    formula = node.formula(known)
    unit = COUNTS[word].unit
    for name in sorted(formula.names):
        if unit not in _PRICED_THINGS.get(name.rpartition("_")[2], (unit,)):
            raise node.error(f"`{word}` counts {unit}s, but `{name}` is not a price of one.")
    if not formula.names or not _is_linear(formula):
        raise node.error(f"`{formula.text}` must be a sum of prices, each times a number.")
    return formula


def _is_linear(formula: Formula) -> bool:
    """Whether doubling all prices doubles a cost table's formula, as it must for energies to be what they are."""
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
    """What bytes of a level pay in a cost table if a log does not tell reads from writes: the mean, if they differ."""
    marks = read_.marks | write.marks
    if read_.kind == write.kind and read_.formula == write.formula:
        return replace(read_, why=f"{read_.why}; reads and writes cost the same", marks=marks)
    for statement in (read_, write):
        if statement.kind == "unpriced":
            return statement
    texts = [statement.formula.text if statement.formula else "0" for statement in (read_, write)]
    formula = Formula.parse(f"(({texts[0]}) + ({texts[1]})) / 2")
    why = "reads and writes are not told apart: half of the bytes taken for each"
    return Statement("pays", formula, why, marks | Mark.ASSUMED)


# ---- rules on the whole


def _clocks_once(root: Node, table: CostTable) -> None:
    """Check a cost table's settings, those of its boards beside them: each pair of clocks once, a clock one voltage."""
    own = list(zip(root["setting"].entries(), table.settings, strict=False))
    boards = [
        zip(place["setting"].entries(), board.settings, strict=True)
        for place, board in zip(root["board"].entries(), table.boards, strict=True)
    ]
    for settings in ([], *boards):
        labels: set[str] = set()
        volts_at: dict[tuple[str, float | None], float | None] = {}
        for entry, setting in (*own, *settings):
            if setting.label in labels:
                raise entry.error(f"setting {setting.label} is listed twice.")
            labels.add(setting.label)
            for domain in DOMAINS:
                mhz, volts = setting.mhz(domain), setting.volts(domain)
                first = volts_at.setdefault((domain, mhz), volts)
                if first != volts:
                    was, now = _voltage(first, entry, domain), _voltage(volts, entry, domain)
                    raise entry.error(f"{domain} {mhz:g} MHz has {now} here but {was} above; a clock has one voltage.")


def _voltages_suffice(root: Node, table: CostTable) -> None:
    """Check a cost table: what is given for a volt needs a voltage at every setting, else it holds at one only."""
    settings = [*table.settings, *(setting for board in table.boards for setting in board.settings)]
    if "pj" in root and len(settings) > 1:
        raise root["pj"].error("prices in [pj] hold at one setting; give voltages and [pj_per_v2] for several.")
    domains = {rate.domain for rate in table.rates} | {term.domain for term in table.constant.terms}
    kind = "v_rel" if table.relative else "mv"
    entries = _setting_entries(root)
    for place, setting in zip(entries if "setting" in root else [root, *entries], settings, strict=True):
        for domain in DOMAINS:
            if domain in domains and setting.volts(domain) is None:
                raise place.error(f"setting {setting.label} needs `{domain}_{kind}`: there are prices or watts a volt.")


def _setting_entries(root: Node) -> list[Node]:
    """The settings in a cost table's file, then those of its boards."""
    return [entry for place in (root, *root["board"].entries()) for entry in place["setting"].entries()]


def _one_kind_of_voltage(root: Node, table: CostTable) -> None:
    """Check a cost table: prices at a reference go with relative voltages, prices a square volt with millivolts."""
    wrong, unit = ("mv", "pj_at_reference") if table.relative else ("v_rel", "pj_per_v2 or pj")
    for entry in _setting_entries(root):
        for domain in DOMAINS:
            key = f"{domain}_{wrong}"
            if key in entry:
                raise entry[key].error(f"`{key}` does not go with prices in [{unit}].")


def _clocks_suffice(root: Node, table: CostTable) -> None:
    """Check a cost table: a peak in Gflop/s or GB/s holds at one setting; a peak a cycle needs the clock."""
    for key, (_, domain) in _PEAK_TERMS.items():
        term = root["peak"][key]
        if term.value is None:
            continue
        if domain is None and key != _LIMIT and len(table.settings) > 1:
            raise term.error(f"`{key}` holds at one setting; with several, give it a cycle.")
        if domain is not None and table.default.core_mhz is None:
            raise term.error(f"`{key}` needs a clock; list the setting.")


def _components_have_a_clock(root: Node, table: CostTable) -> None:
    """Check a cost table: cycles become seconds by a core clock, and bytes cycles by the peak of DRAM."""
    units = root["time_components"]
    if units.value is None:
        return
    if (table.default.core_mhz is None) == ("core_mhz" not in units):
        raise units.error("say `core_mhz` here where the table lists no setting, and only there.")
    if "dram_gb_per_s" not in table.peak.terms:
        raise units.error("time by component needs the peak of DRAM; say it in [peak].")


def _all_prices_used(root: Node, table: CostTable) -> None:
    used = {name for stated in table.statements.values() if stated.formula for name in stated.formula.names}
    unit = next(root[unit] for unit in _PRICES if unit in root)
    for rate in table.rates:
        if rate.name not in used:
            place = unit if rate.domain is None else unit[rate.domain]
            raise place[rate.name].error(f"no charge uses the price `{rate.name}`; use it or take it out.")


def _replicas_known(root: Node, table: CostTable) -> None:
    """Check a cost table: replicas are of its prices and terms of constant power."""
    known = {rate.name for rate in table.rates} | {term.name for term in table.constant.terms}
    for name, values in root["fit"]["replicas"].items():
        if name not in known:
            raise values.error(f"`{name}` is neither a price nor a term of this table.")


def _intervals_hold_prices(root: Node, table: CostTable) -> None:
    """Check a cost table: a price's interval holds it, at the default setting; so does that of constant power."""
    costs = table.at()
    for name, range_ in table.intervals.prices_pj.items():
        place = root["interval_pj"][name]
        if name not in costs.prices:
            raise place.error(f"`{name}` is not a price of this table.")
        _check_holds(place, name, range_, costs.prices[name].pj, "pJ")
    on_boards = [table.on(board.devices[0]) for board in table.boards]
    places = [root["interval_constant_w"], *root["board"].entries()]
    for place, made in zip(places, [table, *on_boards], strict=True):
        if made.intervals.constant_w is not None:
            _check_holds(place, "constant power", made.intervals.constant_w, made.at().constant_power_w, "W")


def _check_holds(place: Node, name: str, range_: Range, value: float, unit: str) -> None:
    low, high = range_
    if not low * (1 - 1e-9) <= value <= high * (1 + 1e-9):
        raise place.error(
            f"the interval of {name}, {low:g} to {high:g} {unit}, does not hold it: it is {value:g} {unit}."
        )
    if value == 0 and high > 0:
        raise place.error(f"{name} is 0 {unit}, so its interval can only be [0, 0]; give it a price.")


def _names_are_prices(root: Node, table: CostTable) -> None:
    """Check a cost table: sources and wider intervals are of its prices, or of its constant power."""
    known = {rate.name for rate in table.rates} | {CONSTANT_POWER}
    boards = root["board"].entries()
    for node in (root["sources"], *(board["wider"] for board in boards)):
        for name, entry in node.items():
            if name not in known:
                raise entry.error(f"`{name}` is not a price of this table; use one of: {', '.join(sorted(known))}.")


def _certainty_stated(root: Node, table: CostTable) -> None:
    """Check a cost table not measured by its user: each price says where it is from and how far it is known."""
    if table.basis not in NEEDS_INTERVALS:
        return
    prices = [rate.name for rate in table.rates]
    known = set(table.intervals.prices_pj)
    if table.intervals.constant_w is not None:
        known.add(CONSTANT_POWER)
    if table.fit is not None and table.fit.number:
        known |= set(table.fit.replicas) | {CONSTANT_POWER}
    no_interval = [name for name in (*prices, CONSTANT_POWER) if name not in known]
    no_source = [name for name in (*prices, CONSTANT_POWER) if name not in table.sources]
    lacks = [
        f"{lack}: {', '.join(names)}"
        for lack, names in (("no interval", no_interval), ("no source", no_source))
        if names
    ]
    if lacks:
        raise root["basis"].error(
            f"a table whose basis is {table.basis} needs [interval_pj], interval_constant_w and [sources] for all that "
            f"it charges ({'; '.join(lacks)})."
        )


def _charges_are_numbers(root: Node, table: CostTable) -> None:
    """Check a cost table: every charge is finite and not negative at every setting."""
    for setting in table.settings:
        point = Point(setting, "")
        prices = {rate.name: rate.at(point) for rate in table.rates}
        for word, statement in table.statements.items():
            try:
                pj = statement.charge(prices).pj
            except (ZeroDivisionError, OverflowError):
                pj = math.nan
            if not math.isfinite(pj) or pj < 0:
                raise root["charge"][word].error(f"`{word}` would pay {pj:g} pJ at {setting.label}.")


def _totals_agree(root: Node, table: CostTable) -> None:
    """Check a cost table: a class total stands in for its parts, is stated if they are, and lies between theirs."""
    charges = table.at().charges
    for total, parts in PARTS.items():
        of_parts = [charges[part] for part in parts if part in charges]
        do_parts_pay = any(charge.pays for charge in of_parts)
        if do_parts_pay and total not in table.statements and total not in LEVEL_PARTS:
            raise root["charge"].error(
                f"the parts of `{total}` pay, so say what `{total}` pays where a log tells no parts (or `unpriced`)."
            )
        if total in charges and charges[total].pays and total not in TENSOR_PARTS:
            _check_total(root["charge"][total], charges[total].pj, parts, of_parts if do_parts_pay else [])


def _check_total(entry: Node, pj: float, parts: tuple[str, ...], of_parts: list[Charge]) -> None:
    total = entry.name
    if not of_parts:
        raise entry.error(f"`{total}` pays but none of {', '.join(parts)} does.")
    low, high = min(charge.pj for charge in of_parts), max(charge.pj for charge in of_parts)
    if not low * (1 - 1e-9) <= pj <= high * (1 + 1e-9):
        raise entry.error(f"`{total}` would pay {pj:g} pJ, which is not between its parts' {low:g} and {high:g} pJ.")


_RULES = (
    _clocks_once,
    _voltages_suffice,
    _one_kind_of_voltage,
    _clocks_suffice,
    _components_have_a_clock,
    _all_prices_used,
    _replicas_known,
    _names_are_prices,
    _certainty_stated,
    _intervals_hold_prices,
    _charges_are_numbers,
    _totals_agree,
)
