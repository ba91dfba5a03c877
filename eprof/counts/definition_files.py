"""Finds, loads and checks counter definitions (`counters/**/*.toml`): by profiler and GPU, by name, or by counters.

A file is laid over those that it extends, and checked by the rules of docs/counters.md. `definition.py` has the types.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from eprof.base import cpus, gpus, resources
from eprof.base.errors import DefinitionError
from eprof.base.gpus import PEAKS, may_be_same
from eprof.base.signs import A_SECOND, LEAST, TOTAL
from eprof.base.text import did_you_mean, when
from eprof.base.toml import CHOOSING, Document, Formula, Node
from eprof.base.vocabulary import (
    COUNTS,
    CPU,
    FLOAT_PARTS,
    GPU,
    INSTRUCTIONS,
    LEVEL_PARTS,
    NONE,
    OF_OTHERS,
    PAY_WHERE_PRICED,
    Mark,
)
from eprof.counts.definition import (
    ANY,
    BESIDE,
    CORE_CLOCK,
    SECTIONS,
    SM_COUNT,
    WORDS_OF,
    Check,
    Counter,
    Definition,
    Entry,
    TimePair,
    Told,
)
from eprof.counts.definition import SIMULATED as SIMULATED

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_DATA = "caches collect descriptions devices events labels libraries messages mnemonics numbers tables uprof"
_NOT_DEFINITIONS = ("cpu", "dcgm", "measurements", "meters", "programs", *(f"{name}.toml" for name in _DATA.split()))
_PROFILERS = ("nvprof", "ncu")


def definitions(extra: Path | None = None) -> list[Definition]:
    """All counter definitions: those in `extra` (a file or folder) first, then the built-in ones.

    Raises DefinitionError.
    """
    if extra is None:
        return [*_builtin()]
    if extra.is_dir():
        return [*map(load, sorted(extra.rglob("*.toml"))), *_builtin()]
    if not extra.exists():
        raise DefinitionError(f"{extra}: no such file or folder of counter definitions.")
    return [load(extra), *_builtin()]


@cache
def _builtin(profiler: str | None = None) -> tuple[Definition, ...]:
    """The built-in definitions (of one profiler). Raises DefinitionError: two are for one capability."""
    loaded = tuple(_load_once(place) for place in definition_files(profiler))
    label_of: dict[tuple[str, str], str] = {}
    for definition in loaded:
        for capability in definition.capabilities:
            first = label_of.setdefault((definition.profiler, capability), definition.label)
            if first != definition.label:
                raise DefinitionError(
                    f"{definition.label}:1: {definition.profiler} {capability} is already defined in {first}."
                )
    return loaded


_LOADED: dict[str, Definition] = {}


def _load_once(place: Traversable) -> Definition:
    if str(place) not in _LOADED:
        _LOADED[str(place)] = load(place)
    return _LOADED[str(place)]


@cache
def _places(profiler: str) -> dict[str, Traversable]:
    """Capability -> the file of the profiler's definition for it, not yet loaded, as to check all takes a while."""
    places: dict[str, Traversable] = {}
    for place in definition_files(profiler):
        _, capabilities, _ = applies_to(read(place))
        places = dict.fromkeys(capabilities, place) | places
    return places


@cache
def names_in_use(profiler: str) -> frozenset[str]:
    """The counters that any definition file of a profiler names: those that its reader keeps of a log. Not checked."""
    home = resources.folder("counters")
    waiting = [place for place in resources.tree(home / profiler, ".toml") if place.name not in _NOT_DEFINITIONS]
    places = set(map(str, waiting))
    names: set[str] = set()
    while waiting:
        data = read(waiting.pop()).data
        for extended in _each(data.get("extends", [])):
            place = home.joinpath(*extended.split("/"))
            if str(place) not in places and place.is_file():
                places.add(str(place))
                waiting.append(place)
        for value in data.get("counter", {}).values():
            entry = value if isinstance(value, dict) else {"name": value}
            for name in (*_each(entry.get("name", [])), *_each(entry.get("slices", []))):
                names.update(slice_names(name))
        if any(told.keys() & {"multiprocessors", "peak"} for told in data.get("told", {}).values()):
            names.add(SM_COUNT)
    return frozenset(names)


def _each(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else value


def definition_files(profiler: str | None = None) -> list[Traversable]:
    """The built-in definition files (of one profiler), without files that only others extend and files of lists."""
    folders = [folder for folder in resources.folder("counters").iterdir() if folder.is_dir()]
    folders = [folder for folder in folders if profiler in (None, folder.name)]
    return [
        file
        # As profilers came: the first is meant by `eprof counters 7.0`.
        for folder in sorted(folders, key=lambda place: (*(place.name != first for first in _PROFILERS), place.name))
        if folder.name not in _NOT_DEFINITIONS
        for file in sorted(folder.iterdir(), key=str)
        if file.name.endswith(".toml") and file.name not in _NOT_DEFINITIONS
    ]


def find(profiler: str, capability: str, extra: Path | None = None) -> Definition:
    """Find the counter definition for a profiler and compute capability ("3.5"), `extra` files before built-in ones.

    Raises DefinitionError, naming the known ones.
    """
    if extra is None and capability in _places(profiler):
        return _load_once(_places(profiler)[capability])
    known = [definition for definition in definitions(extra) if definition.profiler == profiler]
    for definition in known:
        if capability in definition.capabilities:
            return definition
    reason = f"no definition is for `{profiler}`"
    if known:
        listed = [each for definition in known for each in definition.capabilities]
        reason = f"definitions exist for {', '.join(listed)}"
    raise DefinitionError(
        f"No counter definition for {profiler} on compute capability {capability or '(unknown)'}; {reason}. "
        "docs/counters.md tells how to write one."
    )


def any_device_capability(profiler: str) -> str | None:
    """The capability "simulated" or "any", where a definition of the profiler is for that; None: it has neither."""
    return next((word for word in (SIMULATED, ANY) if word in _places(profiler)), None)


def named(name: str, extra: Path | None = None) -> Definition:
    """The counter definition that a user calls `name`: its name ("nvprof/kepler-3.5"), a capability ("3.5"), a GPU.

    A name that ends in `.toml` is a file of the user's. Raises DefinitionError, naming the known ones.
    """
    if name.endswith(".toml"):
        return load(Path(name))
    known = definitions(extra)
    for definition in known:
        short_name = definition.name.rpartition("/")[2]
        if name in (definition.name, short_name, *definition.capabilities):
            return definition
    capabilities = capability_of(name)
    if len(capabilities) == 1:
        return named(capabilities[0], extra)
    names = [definition.name for definition in known]
    meant = did_you_mean(name, [*names, *(full_name.rpartition("/")[2] for full_name in names)])
    raise DefinitionError(f"No counter definition `{name}`.{meant} Known: {', '.join(names)}.")


def capability_of(device_name: str) -> tuple[str, ...]:
    """The compute capabilities of the GPU that a log calls `device_name`; several where names were reused; (): unknown.

    Of a CPU, its microarchitecture.
    """
    return gpus.capabilities(device_name) or tuple(filter(None, [cpus.microarchitecture(device_name)]))


def capabilities_like(device_name: str) -> frozenset[str]:
    """The capabilities that a GPU may have by a name that people write for short ("V100"); empty: not known."""
    exact = capability_of(device_name)
    if exact:
        return frozenset(exact)
    known = gpus.capabilities_by_name()
    return frozenset().union(*(known[name] for name in known if may_be_same(name, device_name)))


def guess_capability(counter_names: Iterable[str], profiler: str) -> tuple[str, ...]:
    """The capabilities whose definitions of a profiler name most of these counters, sorted; () if none names any."""
    present = set(counter_names)
    scores = {each: len(each.profiler_names & present) for each in _builtin(profiler)}
    best = max(scores.values(), default=0)
    if best == 0:
        return ()
    guesses = [each for definition in scores if scores[definition] == best for each in definition.capabilities]
    return tuple(sorted(guesses, key=lambda each: (len(each) * each[0].isdigit(), each)))


@cache
def descriptions() -> dict[str, str]:
    """Description of a metric of nvprof -> its name: old wide traces are headed by descriptions."""
    document = Document.read(resources.folder("counters") / "nvprof" / "descriptions.toml")
    return {str(text): str(name) for text, name in document.data["description"].items()}


# ----------------------------------------------------------------------------------------------------------------------
# Reads and checks one definition.

SCHEMA = 1
UNITS = ("count", "percent", "byte_per_s", "level", "other")
MOST_SLICES = 16  # slices looked for in a log, well above the 8 of any GPU that nvprof knows
_DECLARED = ("counter", "parameter", "quantity", "told")
_REASONS = ("absent", "uncountable")
# What a later document says of a count replaces the earlier ones: counted, absent or uncountable, never two.
_REPLACED_BY = dict.fromkeys(SECTIONS, _REASONS) | dict.fromkeys(_REASONS, (*SECTIONS, *_REASONS))
_TABLES = (*_DECLARED, *SECTIONS, *_REASONS, "component")
_LISTS = ("check", "time_pair")
_TOP = ("schema", "name", "applies", "source", "extends", "time_share", *_TABLES, *_LISTS)
_FORMULAS = ("formula", "mark_if", "left", "right", "bytes", "rate")
_MARKS = ("estimated", "assumed", "missing", "simulated")
_MOST_ABOVE, _MOST_FILES = 16, 100  # files that a definition extends: one above the other, and in all
_DEEPEST, _LONGEST = 50, 20_000  # quantities inside quantities; characters of a formula with all of them put in
_MOST_NAMES = 2000
# Words that a definition may leave out.
_NEED_NOT_BE = {*LEVEL_PARTS, *PAY_WHERE_PRICED, *SECTIONS["flop"], *SECTIONS["cycle"]} - FLOAT_PARTS.keys()
_LARGEST = 1e30  # of a number in a definition
_NAME = r"[A-Za-z_]\w*"
# A compute capability ("8.0"), or a word: "simulated", a CPU's microarchitecture.
_CAPABILITY = r"\d+\.\d+|[a-z][a-z0-9]*(-[a-z0-9]+)*"


def load(source: Traversable | str) -> Definition:
    """Load and check a counter definition: a file, or its text (several lines).

    Raises DefinitionError with file and line.
    """
    if isinstance(source, str) and "\n" in source:
        return definition_in(Document.parse(source, "<text>"), None)
    if isinstance(source, str):
        source = Path(source)
    return definition_in(read(source), source)


_READ: dict[str, Document] = {}


def read(place: Traversable) -> Document:
    """The TOML document in a counter definition's file; a built-in one, which many others extend, is read once."""
    if isinstance(place, Path) and not str(place).startswith(str(resources.folder("counters"))):
        return Document.read(place)
    if str(place) not in _READ:
        _READ[str(place)] = Document.read(place)
    return _READ[str(place)]


def applies_to(document: Document) -> tuple[str, tuple[str, ...], str]:
    """(Profiler, capabilities, kind of processor) that a definition is for, by `applies`. Raises DefinitionError."""
    applies = document.root["applies"]
    if not isinstance(applies.value, dict):
        raise applies.error('`applies` is missing: say applies = { profiler = "nvprof", capability = ["3.5"] }.')
    applies.table(("profiler", "capability", "processor"))
    capabilities = applies["capability"]
    listed = tuple(entry.value for entry in capabilities.entries())
    if not listed or not all(isinstance(value, str) and re.fullmatch(_CAPABILITY, value) for value in listed):
        raise capabilities.error('`applies.capability` must be a list such as ["3.5", "3.7"].')
    return applies["profiler"].text(), listed, applies["processor"].choice((CPU, GPU), GPU)


class _Stack(Struct, frozen=True, eq=False):
    """A document laid over those that it extends (deepest first, each once), their tables joined key by key."""

    documents: tuple[Document, ...]
    tables: Mapping[str, dict[str, Node]]

    @property
    def top(self) -> Node:
        return self.documents[-1].root

    @classmethod
    def of(cls, document: Document, place: Traversable | None) -> _Stack:
        """The document in the file `place`, laid over what it extends; a later entry replaces an earlier one."""
        layers: dict[str, Document] = {}
        _read_extended(document, place, (), layers)
        documents = (*layers.values(), document)
        tables: dict[str, dict[str, Node]] = {section: {} for section in _TABLES}
        for layer in documents:
            for section in _TABLES:
                for key, entry in _one_by_one(layer.root[section], section):
                    for replaced in _REPLACED_BY.get(section, ()):
                        if key in tables[replaced] and tables[replaced][key].document is not layer:
                            del tables[replaced][key]
                    tables[section][key] = entry
        return cls(documents, tables)


def _one_by_one(table: Node, section: str) -> Iterator[tuple[str, Node]]:
    """(Key, entry) of a definition's table; a key of several words, as those of reasons may be, once for each word."""
    seen = set()
    for key, entry in table.items():
        words = [key]
        if section in _REASONS:
            words = key.split() or [key]
        for word in words:
            if word in seen:
                raise entry.error(f"`{word}` has another reason above.")
            seen.add(word)
            yield word, entry


def _read_extended(
    document: Document, place: Traversable | None, above: tuple[str, ...], layers: dict[str, Document]
) -> None:
    """Add to `layers` (path -> document) the files that a document extends, deepest first. above: what extends it."""
    top = document.root.table(_TOP)
    top.schema(SCHEMA)
    for base in top["extends"].each():
        path = _extended_file(base, place)
        if str(path) in above:
            raise base.error(f"`{base.value}` extends itself.")
        if len(above) >= _MOST_ABOVE or len(layers) >= _MOST_FILES:
            raise base.error(f"more than {_MOST_ABOVE} files deep or {_MOST_FILES} files are extended.")
        if str(path) not in layers:
            below = read(path)
            _read_extended(below, path, (*above, str(path)), layers)
            layers[str(path)] = below


def _extended_file(base: Node, place: Traversable | None) -> Traversable:
    """The file that `base`, of `extends` in the file `place`, names: beside that file, else below `counters/`."""
    name = base.value
    if not isinstance(name, str):
        raise base.error(f"`extends` names files, not {name!r}.")
    if len(name) > 200:
        raise base.error(f"`{name[:60]}...` is too long for the name of a file.")
    if "\0" in name or "\\" in name or name.startswith("/") or ".." in name.split("/"):
        raise base.error(f"`{name}` leads out of the folder; name a file beside this one or below.")
    if isinstance(place, Path) and (beside := place.parent / name).is_file():
        if not beside.resolve().is_relative_to(place.parent.resolve()):
            raise base.error(f"`{name}` is a link that leads out of the folder.")
        return beside
    path = resources.folder("counters").joinpath(*name.split("/"))
    if not path.is_file():
        raise base.error(f"`{name}` is neither beside this file nor in the built-in counters folder.")
    return path


def definition_in(document: Document, place: Traversable | None) -> Definition:
    """The checked counter definition of a TOML document in the file `place`, laid over the files that it extends."""
    stack = _Stack.of(document, place)
    if any(len(table) > _MOST_NAMES for table in stack.tables.values()):
        raise stack.top.error(f"there are more than {_MOST_NAMES} entries in one table.")
    profiler, capabilities, processor = applies_to(document)
    counters = {name: _counter(name, entry) for name, entry in stack.tables["counter"].items()}
    parameters = {}
    for name, entry in stack.tables["parameter"].items():
        entry.table(("value", "why"))
        entry["why"].text()
        parameters[name] = entry["value"].number(-_LARGEST, _LARGEST)
    told = {name: _told(entry) for name, entry in stack.tables["told"].items()}
    _check_names(stack, counters)
    partial = {name for name, counter in counters.items() if counter.partial}
    formulas = _Formulas({*counters, *parameters, *told, *stack.tables["quantity"]}, partial)
    stated = {word for section in (*SECTIONS, *_REASONS) for word in stack.tables[section]}
    definition = Definition(
        name=stack.top["name"].text(f"{profiler}/{Path(document.label).stem}"),
        profiler=profiler,
        capabilities=capabilities,
        source=stack.top["source"].text(),
        counters=counters,
        parameters=parameters,
        quantities=formulas.all_ways(stack.tables["quantity"]),
        words={section: formulas.all_ways(stack.tables[section]) for section in SECTIONS},
        absent=_reasons(stack.tables["absent"]),
        uncountable=_reasons(stack.tables["uncountable"]),
        checks=tuple(formulas.check(entry) for entry in _listed(stack, "check")),
        time_pairs=tuple(formulas.time_pair(entry) for entry in _listed(stack, "time_pair")),
        label=document.label,
        time_share=formulas.ways(stack.top["time_share"]) if "time_share" in stack.top else (),
        processor=processor,
        not_here=frozenset(OF_OTHERS[processor]) - stated,
        components=formulas.all_ways(stack.tables["component"]),
        told=told,
    )
    for name, entries in definition.quantities.items():
        if name in definition.closure(part for entry in entries for part in entry.formula.names):
            raise stack.tables["quantity"][name].error(f"`{name}` is made of itself.")
    _check_size(stack, definition)
    _check_unused(stack)
    _check_complete(stack, definition)
    return definition


def _counter(name: str, entry: Node) -> Counter:
    """Read an entry of [counter]: a name, a list of names, or a table with `slices`, maybe `expect` and `partial`."""
    if isinstance(entry.value, str | list):
        return _counter_of_names(name, entry, "count")
    if not isinstance(entry.value, dict) or ("name" in entry) == ("slices" in entry):
        raise entry.error("a counter is a name, a list of names, or { slices = ..., expect = ... }.")
    entry.table(("name", "slices", "expect", "partial", "unit"))
    unit = entry["unit"].choice(UNITS, "count")
    if "name" in entry:
        return _counter_of_names(name, entry["name"], unit)
    slices, expect = entry["slices"].value, entry["expect"].value
    is_partial = entry["partial"].truth(False)
    is_pattern = isinstance(slices, str) and slices.count("{}") == 1
    if is_pattern and isinstance(expect, int) and 0 < expect <= MOST_SLICES:
        names = slice_names(slices)
        text = slices.replace("{}", f"{{0..{expect - 1}}}")
    elif isinstance(slices, list) and slices and expect is None:
        names = entry["slices"].texts()
        expect = len(names)
        if (opcodes := _opcodes(names)) is not None:
            return Counter(name, slices=names, expect=expect, unit=unit, text=opcodes)
        shown = names
        if expect > 4:
            shown = (*names[:2], "...", names[-1])
        text = ", ".join(shown)
    else:
        raise entry.error("`slices` is a name with one {} in it and `expect` the number of slices, or a list of names.")
    text = when(is_partial, f"{expect} * mean({text})") or f"sum({text})"
    return Counter(name, slices=names, expect=expect, partial=is_partial, unit=unit, text=text)


def _counter_of_names(name: str, entry: Node, unit: str) -> Counter:
    names = [each.text() for each in entry.each()]
    if not names:
        raise entry.error("a counter needs a name.")
    return Counter(name, names=tuple(chain.from_iterable(map(slice_names, names))), unit=unit, text=names[0])


def slice_names(pattern: str) -> tuple[str, ...]:
    """The names that a log may have for a counter of a definition: `l2_subp{}_hits` with each number of a slice.

    A name without {} is itself; that of a rate's total also those of its stand-ins (`profilers/ncu/derived.py`).
    """
    if "{}" not in pattern:
        return tuple(dict.fromkeys(pattern.replace(TOTAL, ending) for ending in (TOTAL, LEAST, A_SECOND)))
    return tuple(pattern.replace("{}", str(number)) for number in range(MOST_SLICES))


def _opcodes(slices: Sequence[str]) -> str | None:
    """`metric[A + B + C]` for the slices `metric[A]`, `metric[B]`, `metric[C]`; None if they are of no one metric."""
    parts = [re.fullmatch(r"([^[]*)\[(.*)\]", name) for name in slices]
    metrics = {part and part[1] for part in parts}
    if len(metrics) != 1 or None in metrics:
        return None
    return f"{metrics.pop()}[{' + '.join(part[2] for part in parts if part)}]"


def _told(entry: Node) -> Told:
    """Read { kernel = pattern, group = word }, { device = pattern, multiprocessors = [numbers] } or { peak = name }."""
    entry.table(("kernel", "group", "device", "multiprocessors", "peak", "why"))
    entry["why"].text("")
    if sum(name in entry for name in ("kernel", "device", "peak")) != 1:
        raise entry.error("a name that tells something is of a `kernel`, of a `device`, or a `peak` of its data sheet.")
    if "kernel" in entry:
        return Told(kernel=_pattern(entry["kernel"]), group=entry["group"].text())
    if "peak" in entry:
        return Told(peak=entry["peak"].choice(PEAKS))
    numbers = [number.number(1, 1000) for number in entry["multiprocessors"].each()]
    return Told(device=_pattern(entry["device"]), multiprocessors=frozenset(numbers))


def _pattern(node: Node) -> re.Pattern[str]:
    try:
        return re.compile(node.text(), re.IGNORECASE)
    except re.error as err:
        raise node.error(f"`{node.value}` is no pattern: {err}.") from None


def _reasons(table: Mapping[str, Node]) -> dict[str, str]:
    """Word -> reason, of [absent] or [uncountable]; that of a class total (FP64, FP32, FP16) is also its parts'."""
    reasons: dict[str, str] = {}
    for word, entry in table.items():
        if word not in COUNTS:
            raise entry.error(f"`{word}` is not a word of the vocabulary.")
        for name in (word, *FLOAT_PARTS.get(word, ())):
            reasons.setdefault(name, entry.text())
    return reasons


def _listed(stack: _Stack, section: str) -> Iterator[Node]:
    """The entries of `[[check]]` or `[[time_pair]]` of all documents of a definition."""
    for document in stack.documents:
        listed = document.root[section]
        if not isinstance(listed.value, list | None):
            raise listed.error(f"write [[{section}]], not [{section}].")
        yield from listed.entries()


class _Formulas(NamedTuple):
    """Reads the formulas of a definition. known: the names that they may use. partial: counters that need a mark."""

    known: Collection[str]
    partial: set[str]

    def all_ways(self, table: Mapping[str, Node]) -> dict[str, tuple[Entry, ...]]:
        return {key: self.ways(entry) for key, entry in table.items()}

    def ways(self, entry: Node) -> tuple[Entry, ...]:
        kind = "a list of { formula = ..., mark = ..., note = ... }"
        ways = tuple(self._way(way) for way in entry.entries(kind))
        if not ways:
            raise entry.wrong(kind)
        return ways

    def _way(self, way: Node) -> Entry:
        way.table(("formula", "mark", "mark_if", "note", "at_least"))
        formula = self._formula(way["formula"])
        mark = NONE
        for word in way["mark"].each():
            mark |= Mark[word.choice(_MARKS).upper()]
        note = way["note"].text(None if mark else "")
        if not mark and formula.names & self.partial:
            raise way.error("a sum over some of the slices is not exact; give it a mark and a note.")
        mark_if = None
        if "mark_if" in way:
            mark_if = self._formula(way["mark_if"])
            if not mark or not mark_if.names:
                raise way.error("`mark_if` names the counters on which a `mark` depends.")
        return Entry(formula, mark, note, mark_if, way["at_least"].truth(False))

    def _formula(self, node: Node) -> Formula:
        return node.formula(self.known, CHOOSING)

    def check(self, entry: Node) -> Check:
        entry.table(Check.__struct_fields__)
        left, right = self._formula(entry["left"]), self._formula(entry["right"])
        relation = entry["relation"].choice(("==", "<="))
        return Check(left, right, relation, entry["tolerance"].number(0, 1), entry["note"].text())

    def time_pair(self, entry: Node) -> TimePair:
        entry.table(TimePair.__struct_fields__)
        return TimePair(self._formula(entry["bytes"]), self._formula(entry["rate"]), entry["note"].text(""))


def _check_names(stack: _Stack, counters: Mapping[str, Counter]) -> None:
    """Check a definition: a short name means one thing, can stand in a formula, and has a counter behind it."""
    section_of: dict[str, str] = {}
    for section in _DECLARED:
        for name, entry in stack.tables[section].items():
            if not re.fullmatch(_NAME, name):
                raise entry.error(f"`{name}` cannot be used in a formula; use letters, digits and _.")
            if name in section_of:
                raise entry.error(f"`{name}` is already a {section_of[name]}.")
            section_of[name] = section
    for section, words in {**SECTIONS, "component": BESIDE}.items():
        for word, entry in stack.tables[section].items():
            if word not in words:
                raise entry.error(f"`{word}` is not a word for {section}; use one of: {', '.join(words)}.")
    first_name: dict[tuple[Any, ...], str] = {}
    for name, counter in counters.items():
        entry = stack.tables["counter"][name]
        same = (entry.document.label, counter.names, counter.slices, counter.expect, counter.partial)
        if first_name.setdefault(same, name) != name:
            raise entry.error(f"`{name}` is the same counter as `{first_name[same]}`.")


def _check_size(stack: _Stack, definition: Definition) -> None:
    """Check a definition: formulas with all quantities put in stay short."""
    sizes: dict[str, int] = {}

    def size_of(name: str, depth: int) -> int:
        if name not in sizes:
            entry = stack.tables["quantity"][name]
            if depth > _DEEPEST:
                raise entry.error(f"`{name}` is more than {_DEEPEST} steps deep.")
            sizes[name] = 2 + max(expanded(way.formula, depth + 1) for way in definition.quantities[name])
            if sizes[name] > _LONGEST:
                raise entry.error(f"`{name}` is longer than {_LONGEST} characters, all steps put in.")
        return sizes[name]

    def expanded(formula: Formula, depth: int) -> int:
        steps = formula.names & definition.quantities.keys()
        return len(formula.text) + sum(size_of(name, depth) * formula.text.count(name) for name in steps)

    for name in definition.quantities:
        size_of(name, 0)


def _check_unused(stack: _Stack) -> None:
    """Check a definition: every declared name stands in a formula of its file or of one laid over or under it."""
    used = frozenset().union(*map(_names_used, stack.documents))
    for section in _DECLARED:
        for name, entry in stack.tables[section].items():
            # What a name tells rules out the others of its group, whether a formula has it or not; a clock the board.
            if name not in used and section != "told" and name != CORE_CLOCK:
                raise entry.error(f"`{name}` is declared but no formula uses it.")


@lru_cache(maxsize=256)  # many extend the same files
def _names_used(document: Document) -> frozenset[str]:
    tables = (document.data.get(key) for key in ("quantity", "time_share", "component", *SECTIONS, *_LISTS))
    return frozenset(name for table in tables for text in _formula_texts(table) for name in re.findall(_NAME, text))


def _formula_texts(value: Any) -> Iterator[str]:
    """The texts of all formulas in a definition's TOML data, at any depth."""
    if isinstance(value, list):
        for entry in value:
            yield from _formula_texts(entry)
    elif isinstance(value, dict):
        for key, entry in value.items():
            if key in _FORMULAS and isinstance(entry, str):
                yield entry
            else:
                yield from _formula_texts(entry)


def _check_complete(stack: _Stack, definition: Definition) -> None:
    """Check a definition: every word is counted, or absent, or uncountable, in both books: silence would read as 0.

    A level has its reads and writes, tensor work its instructions, and cycles are no work.
    """
    for books in WORDS_OF:
        for word in stack.tables["bytes"].keys() & stack.tables[books].keys():
            raise stack.tables[books][word].error(f"`{word}` stands in [bytes] and in [{books}].")
    for word in COUNTS.keys() - definition.not_here:
        has_reason = word in definition.absent or word in definition.uncountable or word in _NEED_NOT_BE
        for books in WORDS_OF:
            is_counted = bool(definition.entries(word, books))
            if is_counted and word in definition.absent:
                raise stack.top.document.error(f"`{word}` is both counted and absent.", "absent", word)
            if is_counted or has_reason:
                continue
            if word in INSTRUCTIONS:
                raise stack.top["instruction"].error(
                    f"`{word}` is neither counted nor said to be absent or uncountable."
                )
            raise stack.top[books].error(
                f"`{word}` is not counted ({books} bytes), nor said to be absent or uncountable."
            )
