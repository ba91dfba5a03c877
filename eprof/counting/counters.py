"""Counter definitions: what a profiler's counters mean on a GPU generation. Loads and checks `counters/**/*.toml`.

`docs/counters.md` explains the format. A file says once how every word of the vocabulary is counted; counting
(`counts.py`), the profiler's shopping list (`Definition.wanted`) and the explanation (`Definition.explain`) are all
made from that one text.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from eprof.base import resources
from eprof.base.errors import DefinitionError
from eprof.base.gpus import normal_name
from eprof.base.marks import NONE, Mark, names
from eprof.base.toml import Document, Formula
from eprof.base.vocabulary import BYTES, COUNTS, INSTRUCTIONS, LEVEL_PARTS, PARTS

SCHEMA = 1
SIMULATED = "simulated"  # the capability of a simulated device: its counts are marked so
UNITS = ("count", "percent", "byte_per_s", "other")
SECTIONS = {"instruction": INSTRUCTIONS, "bytes": BYTES, "served": BYTES, "accessed": BYTES}
WORDS_OF = {"served": ("instruction", "bytes", "served"), "accessed": ("instruction", "bytes", "accessed")}
_TABLES = ("counter", "parameter", "quantity", *SECTIONS, "absent", "uncountable")
_LISTS = ("check", "time_pair")
_TOP = ("schema", "name", "applies", "source", "extends", *_TABLES, *_LISTS)
_NOT_DEFINITIONS = ("devices.toml", "descriptions.toml", "numbers.toml", "measurements")
_PROFILERS = ("nvprof", "ncu")
_PARTS_FOLDER = "parts"
_MOST_ABOVE, _MOST_FILES = 16, 100  # files that a definition extends: one above the other, and in all
_DEEPEST, _LONGEST = 50, 20_000  # quantities inside quantities; characters of a formula with all of them put in
_MOST_NAMES = 2000
_LARGEST = 1e30  # of a number in a definition
_MOST_SLICES = 16  # slices looked for in a log, well above the 8 of any GPU that nvprof knows


@dataclass(frozen=True)
class Counter:
    """A short name for a profiler's counter: the first of `names` that is known, or the sum of `slices`.

    slices: names of the parts; complete only if at least the first `expect` are known. partial: the mean of those that
    are known, times `expect`. unit: what the log must say it is; only "count" adds up over launches.
    """

    name: str
    names: tuple[str, ...] = ()
    slices: tuple[str, ...] = ()
    expect: int = 0
    partial: bool = False
    unit: str = "count"
    text: str = ""

    @property
    def wanted(self) -> tuple[str, ...]:
        """Every name that it may have in a log."""
        return self.names or self.slices


@dataclass(frozen=True)
class Entry:
    """One way to count something, and what must be said of it. `mark_if`: the mark holds only where this is not 0."""

    formula: Formula
    mark: Mark
    note: str
    mark_if: Formula | None = None


@dataclass(frozen=True)
class Check:
    """A relation that healthy counters obey within a relative tolerance."""

    left: Formula
    right: Formula
    relation: str
    tolerance: float
    note: str


@dataclass(frozen=True)
class TimePair:
    """Bytes moved and the rate at which the profiler says they moved: their quotient is the kernel's time."""

    bytes: Formula
    rate: Formula
    note: str


@dataclass(frozen=True, eq=False)
class Definition:
    """What the counters of one profiler mean on some compute capabilities."""

    name: str
    profiler: str
    capabilities: tuple[str, ...]
    source: str
    counters: Mapping[str, Counter]
    parameters: Mapping[str, float]
    reasons: Mapping[str, str]
    quantities: Mapping[str, tuple[Entry, ...]]
    words: Mapping[str, Mapping[str, tuple[Entry, ...]]]
    absent: Mapping[str, str]
    uncountable: Mapping[str, str]
    checks: tuple[Check, ...] = ()
    time_pairs: tuple[TimePair, ...] = ()
    label: str = field(default="", repr=False)

    @property
    def wanted(self) -> frozenset[str]:
        """The profiler names that a log should have (slices: all that may exist); the rest of a log is not needed."""
        used = self._used()
        return frozenset(name for counter in self.counters.values() if counter.name in used for name in counter.wanted)

    def entries(self, word: str, books: str) -> tuple[Entry, ...]:
        """The ways to count `word` in these books, best first; empty where it is absent or uncountable."""
        return next((self.words[one][word] for one in WORDS_OF[books] if word in self.words[one]), ())

    def expand(self, formula: Formula, known: Mapping[str, str] | None = None) -> str:
        """The formula with the profiler's names for ours. `known`: texts for some of the names."""
        return re.sub(r"(?<![\w.])[A-Za-z_]\w*", lambda match: self._text(match[0], known or {}), formula.text)

    def _text(self, name: str, known: Mapping[str, str]) -> str:
        if name in known:
            return known[name]
        if name in self.counters:
            return self.counters[name].text
        if name in self.parameters:
            return f"{self.parameters[name]:g}"
        return bracketed(self.expand(self.quantities[name][0].formula)) if name in self.quantities else name

    def counters_of(self, formula: Formula) -> list[str]:
        """The profiler's names behind a formula, through all ways of its quantities, sorted."""
        found: set[str] = set()
        for name in self._closure(formula.names):
            if name in self.counters:
                counter = self.counters[name]
                found.update(counter.names or counter.slices[: counter.expect])
        return sorted(found)

    def _closure(self, start: Iterable[str]) -> set[str]:
        found: set[str] = set()
        waiting = list(start)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += [one for entry in self.quantities.get(name, ()) for one in entry.formula.names]
        return found

    def _formulas(self) -> Iterator[Formula]:
        for section in self.words.values():
            for entries in section.values():
                yield from (entry.formula for entry in entries)
        for check in self.checks:
            yield from (check.left, check.right)
        for pair in self.time_pairs:
            yield from (pair.bytes, pair.rate)

    def _used(self) -> set[str]:
        return self._closure(name for formula in self._formulas() for name in formula.names)

    def summary(self) -> dict[str, Any]:
        """Name, profiler, capabilities, source, and how many counters and words it has: for a listing."""
        return {
            "name": self.name,
            "profiler": self.profiler,
            "capabilities": list(self.capabilities),
            "source": self.source,
            "counters": len(self._used() & set(self.counters)),
            "absent": sorted(self.absent),
            "uncountable": sorted(self.uncountable),
        }

    def explain(self) -> list[dict[str, Any]]:
        """One row for each way to count each word, best first, then the steps (quantities) that formulas name.

        Keys: word, label, unit, books ("both", "served", "accessed", "step"), rank (1 = preferred; 0: no way), formula
        (our names), expanded (the profiler's names, preferred steps put in), counters, marks, note.
        """
        rows = [row for word in COUNTS for row in self._explain_word(word)]
        used = self._used()
        for name, entries in self.quantities.items():
            if name in used:
                rows += self._rows(name, name.replace("_", " "), "", "step", entries)
        return rows

    def _explain_word(self, word: str) -> list[dict[str, Any]]:
        about = COUNTS[word]
        rows: list[dict[str, Any]] = []
        for section, words in self.words.items():
            books = section if section in WORDS_OF else "both"
            rows += self._rows(word, about.label, about.unit, books, words.get(word, ()))
        reason = self.absent.get(word) or self.uncountable.get(word)
        if reason:
            missing = [] if word in self.absent else ["missing"]
            books = "both" if not rows else "other"
            blank: dict[str, Any] = {
                "rank": 0,
                "formula": None if missing else "0",
                "expanded": None if missing else "0",
                "counters": [],
            }
            rows.append(
                {
                    "word": word,
                    "label": about.label,
                    "unit": about.unit,
                    "books": books,
                    **blank,
                    "marks": missing,
                    "note": reason,
                }
            )
        return rows

    def _rows(self, word: str, label: str, unit: str, books: str, entries: tuple[Entry, ...]) -> list[dict[str, Any]]:
        return [
            {
                "word": word,
                "label": label,
                "unit": unit,
                "books": books,
                "rank": rank,
                "formula": entry.formula.text,
                "expanded": self.expand(entry.formula),
                "counters": self.counters_of(entry.formula),
                "marks": names(entry.mark),
                "note": entry.note,
            }
            for rank, entry in enumerate(entries, 1)
        ]


def bracketed(text: str) -> str:
    """`text` as an operand of a larger formula."""
    return text if re.fullmatch(r"[\w.]+(\([^()]*\)|\[[^][]*\])?", text) else f"({text})"


# ---------------------------------------------------------------------------------------------------- finding


def definitions(extra: Path | None = None) -> list[Definition]:
    """All definitions: those in `extra` (a file or folder) first, then the built-in ones. Raises DefinitionError."""
    return [*_extra(extra), *_builtin()]


def _extra(extra: Path | None) -> list[Definition]:
    if extra is None:
        return []
    if not extra.exists():
        raise DefinitionError(f"{extra}: no such file or folder of counter definitions.")
    return [load(path) for path in (sorted(extra.rglob("*.toml")) if extra.is_dir() else [extra])]


@cache
def _builtin() -> tuple[Definition, ...]:
    found = tuple(_loaded(path) for path in definition_files())
    seen: dict[tuple[str, str], str] = {}
    for definition in found:
        for capability in definition.capabilities:
            other = seen.setdefault((definition.profiler, capability), definition.label)
            if other != definition.label:
                raise DefinitionError(
                    f"{definition.label}:1: {definition.profiler} {capability} is already defined in {other}."
                )
    return found


_LOADED: dict[str, Definition] = {}


def _loaded(place: Traversable) -> Definition:
    """A built-in definition, read once."""
    if str(place) not in _LOADED:
        _LOADED[str(place)] = load(place)
    return _LOADED[str(place)]


@cache
def _places() -> dict[tuple[str, str], Traversable]:
    """Where the definition for a profiler and a capability stands. Loading and checking all of them takes a while."""
    found: dict[tuple[str, str], Traversable] = {}
    for place in definition_files():
        profiler, capabilities = _applies(_read_once(place))
        for capability in capabilities:
            found.setdefault((profiler, capability), place)
    return found


@cache
def names_in_use() -> frozenset[str]:
    """Every counter that some file names: what a reader should keep of a log. Nothing is checked here."""
    found: set[str] = set()
    for place in resources.tree(resources.folder("counters"), ".toml"):
        table = _read_once(place).data.get("counter", {})
        for about in table.values() if isinstance(table, dict) else ():
            entry = about if isinstance(about, dict) else {"name": about}
            names = entry.get("name", [])
            found.update([names] if isinstance(names, str) else names)
            patterns = entry.get("slices", [])
            for pattern in [patterns] if isinstance(patterns, str) else patterns:
                found.update(pattern.replace("{}", str(number)) for number in range(_MOST_SLICES))
    return frozenset(found)


def definition_files() -> list[Traversable]:
    """The built-in definition files, without the parts that they extend and without the lists beside them."""
    found: list[tuple[int, str, Traversable]] = []
    for folder in resources.folder("counters").iterdir():
        if folder.is_dir() and folder.name not in _NOT_DEFINITIONS:
            found += [
                (_rank(folder.name), str(one), one)
                for one in folder.iterdir()
                if one.name.endswith(".toml") and one.name not in _NOT_DEFINITIONS
            ]
    return [one for *_, one in sorted(found, key=lambda item: item[:2])]


def _rank(profiler: str) -> int:
    """Order of profilers, as they came: the first that knows a capability is meant by `eprof counters 7.0`."""
    return _PROFILERS.index(profiler) if profiler in _PROFILERS else len(_PROFILERS)


def find(profiler: str, capability: str, extra: Path | None = None) -> Definition:
    """The definition for a profiler and a compute capability ("3.5"). Raises DefinitionError, naming the known ones."""
    if extra is None and (place := _places().get((profiler, capability))) is not None:
        return _loaded(place)
    known = definitions(extra)
    for definition in known:
        if definition.profiler == profiler and capability in definition.capabilities:
            return definition
    listed = ", ".join(
        one for definition in known if definition.profiler == profiler for one in definition.capabilities
    )
    reason = f"definitions exist for {listed}" if listed else f"no definition is for `{profiler}`"
    raise DefinitionError(
        f"No counter definition for {profiler} on compute capability {capability or '(unknown)'}; {reason}. "
        "docs/counters.md tells how to write one."
    )


def named(name: str, extra: Path | None = None) -> Definition:
    """The definition called `name` ("nvprof/kepler-3.5", "kepler-3.5"), of a capability ("3.5") or of a GPU (its name).

    What ends in `.toml` is a file of yours. Raises DefinitionError, naming the known ones.
    """
    if name.endswith(".toml"):
        return load(Path(name))
    known = definitions(extra)
    for definition in known:
        if name in (definition.name, definition.name.rpartition("/")[2]) or name in definition.capabilities:
            return definition
    if len(capabilities := capability_of(name)) == 1:
        return named(capabilities[0], extra)
    raise DefinitionError(f"No counter definition `{name}`; known: {', '.join(one.name for one in known)}.")


def search(text: str, extra: Path | None = None) -> list[dict[str, Any]]:
    """Where a profiler's counters are used: rows of definition, counter (full name), words that it helps to count.

    `also`: what the other of nvprof and ncu calls it, as far as `counters/nvprof-ncu.toml` tells. Names that only that
    file knows have no definition and no words.
    """
    found = []
    for definition in definitions(extra):
        words: dict[str, list[str]] = {}
        for row in definition.explain():
            for counter in row["counters"]:
                if text.lower() in counter.lower():
                    words.setdefault(counter, []).append(row["word"])
        found += [
            {
                "definition": definition.name,
                "counter": counter,
                "words": list(dict.fromkeys(used)),
                "also": _also(definition.profiler, counter),
            }
            for counter, used in sorted(words.items())
        ]
    known = {str(row["counter"]) for row in found}
    for name in dict.fromkeys(name for pair in other_names() for name in pair.nvprof):
        if text.lower() in name.lower() and not any(fnmatchcase(one, name) for one in known):
            found.append({"definition": "", "counter": name, "words": [], "also": _also("nvprof", name)})
    return found


@dataclass(frozen=True)
class OtherName:
    """Names of a counter in nvprof (`*`: the number of a slice), and the formula of ncu's metrics that is the same."""

    nvprof: tuple[str, ...]
    ncu: str
    note: str

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics of ncu that stand in the formula."""
        return tuple(re.findall(r"[a-z]\w*__\w+(?:\.\w+)+", self.ncu))


@cache
def other_names() -> tuple[OtherName, ...]:
    """What `counters/nvprof-ncu.toml` says, in its order. Raises DefinitionError where it says it wrongly."""
    document = Document.read(resources.folder("counters") / "nvprof-ncu.toml")
    document.check_keys(document.data, ("schema", "row"))
    return tuple(_other_name(document, index, row) for index, row in enumerate(document.data["row"]))


def _other_name(document: Document, index: int, row: Mapping[str, Any]) -> OtherName:
    document.check_keys(row, ("nvprof", "ncu", "note"), "row", index)
    names = row.get("nvprof", [])
    names = [names] if isinstance(names, str) else names
    found = OtherName(tuple(names), str(row.get("ncu", "")), str(row.get("note", "")))
    if not found.nvprof or not found.metrics:
        raise document.error("a row names counters of nvprof, and metrics of ncu with their suffix.", "row", index)
    return found


def _also(profiler: str, counter: str) -> list[str]:
    """The names of a counter in the other profiler, each with whose it is and what to mind."""
    found = []
    for pair in other_names():
        note = f" ({pair.note})" if pair.note else ""
        if profiler == "nvprof" and any(fnmatchcase(counter, name) for name in pair.nvprof):
            found.append(f"ncu: {pair.ncu}{note}")
        elif profiler == "ncu" and re.sub("^sm__", "smsp__", counter) == re.sub("^sm__", "smsp__", pair.ncu):
            found.append(f"nvprof: {', '.join(pair.nvprof)}{note}")
    return found


def capability_of(device_name: str) -> tuple[str, ...]:
    """The compute capabilities that a GPU of this name may have, as far as known; several where names were reused."""
    known = _devices()
    name = normal_name(device_name)
    while name:
        if name in known:
            return known[name]
        shorter = re.sub(r"([ -]\d+ ?gb|[ -](max-q|with max-q design|laptop gpu|hbm\w*|pcie|sxm\d?|nvl))$", "", name)
        if shorter == name:
            return ()
        name = shorter
    return ()


@cache
def _devices() -> dict[str, tuple[str, ...]]:
    document = Document.read(resources.folder("counters") / "devices.toml")
    found: dict[str, tuple[str, ...]] = {}
    for capability, listed in document.data["device"].items():
        for name in listed:
            key = normal_name(name)
            found[key] = (*found.get(key, ()), capability)
    return found


def nothing() -> Definition:
    """The definition for logs that hold times and no counters, whatever the GPU: no word is countable."""
    reasons = dict.fromkeys(COUNTS, "the logs hold no counters")
    words: dict[str, dict[str, tuple[Entry, ...]]] = {
        section: {} for section in WORDS_OF["served"] + WORDS_OF["accessed"]
    }
    return Definition("none", "none", (), "the logs hold times only", {}, {}, {}, {}, words, {}, reasons)


def guess_capability(counter_names: Iterable[str]) -> tuple[str, ...]:
    """The capabilities whose definitions know most of these counters: several where that does not decide, or none.

    Only definitions of the counters' own profiler are asked.
    """
    present = set(counter_names)
    profiler = profiler_of(present)
    scores = {one: len(one.wanted & present) for one in _builtin() if one.profiler == profiler}
    best = max(scores.values(), default=0)
    return tuple(one for definition, score in scores.items() if score == best > 0 for one in definition.capabilities)


def profiler_of(counter_names: Iterable[str]) -> str:
    """Whose counters these are: "ncu" if most are named unit__what (`smsp__inst_executed.sum`), else "nvprof"."""
    names = list(counter_names)
    theirs = sum(re.match(r"[a-z][a-z0-9]*__\w", name) is not None for name in names)
    return "ncu" if 2 * theirs > len(names) else "nvprof"


@cache
def descriptions() -> dict[str, str]:
    """Metric description -> metric name: old wide traces are headed by descriptions."""
    document = Document.read(resources.folder("counters") / "nvprof" / "descriptions.toml")
    return {str(text): str(name) for text, name in document.data["description"].items()}


# ---------------------------------------------------------------------------------------------------- loading


def load(source: Traversable | str) -> Definition:
    """Load and check a definition: a file, or its text (several lines). Raises DefinitionError with file and line."""
    if isinstance(source, str) and "\n" in source:
        return _define(_Stack.of(Document.parse(source, "<text>"), None))
    place = Path(source) if isinstance(source, str) else source
    return _define(_Stack.of(_read(place), place))


@dataclass(frozen=True, eq=False)
class _Stack:
    """A document laid over those that it extends: tables joined key by key, each entry with its origin."""

    top: Document
    documents: tuple[Document, ...]
    tables: Mapping[str, dict[str, Any]]
    origin: Mapping[tuple[str, str], Document]

    @classmethod
    def of(cls, document: Document, place: Traversable | None) -> "_Stack":
        documents = _chain(document, place, ())
        tables: dict[str, dict[str, Any]] = {name: {} for name in _TABLES}
        origin: dict[tuple[str, str], Document] = {}
        for one in documents:
            for section in _TABLES:
                for key, value in _table(one, section).items():
                    for other in _silenced_by(section):
                        if origin.get((other, key), one) is not one:
                            tables[other].pop(key, None)
                    tables[section][key] = value
                    origin[section, key] = one
        return cls(document, documents, tables, origin)

    def error(self, message: str, section: str, key: str, *path: str | int) -> DefinitionError:
        return self.origin[section, key].error(message, section, key, *path)


def _silenced_by(section: str) -> tuple[str, ...]:
    """What a later document says of a count replaces the earlier ones: counted, absent or uncountable, never two."""
    if section in ("absent", "uncountable"):
        return (*SECTIONS, "absent", "uncountable")
    return ("absent", "uncountable") if section in SECTIONS else ()


def _table(document: Document, section: str) -> Mapping[str, Any]:
    table = document.data.get(section, {})
    if not isinstance(table, dict):
        raise document.error(f"`{section}` must be a table.", section)
    return table


def _chain(
    document: Document, place: Traversable | None, above: tuple[str, ...], found: dict[str, Document] | None = None
) -> tuple[Document, ...]:
    """The documents that `document` extends, deepest first, each once, and itself. found: by label, those so far."""
    found = {} if found is None else found
    document.check_keys(document.data, _TOP)
    if document.data.get("schema") != SCHEMA:
        raise document.error(f"`schema` must be {SCHEMA}, not {document.data.get('schema')!r}.", "schema")
    bases = document.data.get("extends", [])
    for base in bases if isinstance(bases, list) else [bases]:
        path = _base(document, place, base)
        if str(path) in above:
            raise document.error(f"`{base}` extends itself.", "extends")
        if len(above) >= _MOST_ABOVE or len(found) >= _MOST_FILES:
            raise document.error(f"more than {_MOST_ABOVE} files deep or {_MOST_FILES} files are extended.", "extends")
        if str(path) not in found:
            _chain(_read(path), path, (*above, str(path)), found)
    if not above:
        return (*found.values(), document)
    found[above[-1]] = document
    return ()


def _read(path: Traversable) -> Document:
    """A file; built-in ones are asked for more than once, extended by many, and read once."""
    if isinstance(path, Path) and str(path).startswith(str(resources.folder("counters"))):
        return _read_once(path)
    return Document.read(path)


_READ: dict[str, Document] = {}


def _read_once(place: Traversable) -> Document:
    if str(place) not in _READ:
        _READ[str(place)] = Document.read(place)
    return _READ[str(place)]


def _base(document: Document, place: Traversable | None, name: Any) -> Traversable:
    if not isinstance(name, str):
        raise document.error(f"`extends` names files, not {name!r}.", "extends")
    if len(name) > 200:
        raise document.error(f"`{name[:60]}...` is too long for the name of a file.", "extends")
    if "\0" in name or "\\" in name or name.startswith("/") or ".." in name.split("/"):
        raise document.error(f"`{name}` leads out of the folder; name a file beside this one or below.", "extends")
    beside = place.parent / name if isinstance(place, Path) else None
    path = (
        beside if beside is not None and beside.is_file() else resources.folder("counters").joinpath(*name.split("/"))
    )
    if not path.is_file():
        raise document.error(f"`{name}` is neither beside this file nor in the built-in counters folder.", "extends")
    if path is beside and not beside.resolve().is_relative_to(beside.parents[len(Path(name).parts) - 1].resolve()):
        raise document.error(f"`{name}` is a link that leads out of the folder.", "extends")
    return path


def _define(stack: _Stack) -> Definition:
    top = stack.top
    if any(len(table) > _MOST_NAMES for table in stack.tables.values()):
        raise top.error(f"there are more than {_MOST_NAMES} entries in one table.")
    profiler, capabilities = _applies(top)
    counters = {name: _counter(stack, name, value) for name, value in stack.tables["counter"].items()}
    parameters, reasons = _parameters(stack)
    _check_names(stack, counters)
    partial = {name for name, counter in counters.items() if counter.partial}
    read = _Entries(stack, (*counters, *parameters, *stack.tables["quantity"]), partial)
    quantities = {name: read.list("quantity", name) for name in stack.tables["quantity"]}
    words = {section: {word: read.list(section, word) for word in stack.tables[section]} for section in SECTIONS}
    definition = Definition(
        name=str(top.data.get("name", f"{profiler}/{Path(top.label).stem}")),
        profiler=profiler,
        capabilities=capabilities,
        source=_text(top, top.data.get("source"), "source"),
        counters=counters,
        parameters=parameters,
        reasons=reasons,
        quantities=quantities,
        words=words,
        absent=_reasons(stack, "absent"),
        uncountable=_reasons(stack, "uncountable"),
        checks=tuple(read.checks()),
        time_pairs=tuple(read.time_pairs()),
        label=top.label,
    )
    _check_cycles(stack, definition)
    _check_size(stack, definition)
    _check_unused(stack, definition)
    _check_complete(stack, definition)
    return definition


def _applies(document: Document) -> tuple[str, tuple[str, ...]]:
    applies = document.data.get("applies")
    if not isinstance(applies, dict):
        raise document.error(
            '`applies` is missing: say applies = { profiler = "nvprof", capability = ["3.5"] }.', "applies"
        )
    document.check_keys(applies, ("profiler", "capability"), "applies")
    profiler, capability = applies.get("profiler"), applies.get("capability")
    if not isinstance(profiler, str) or not profiler:
        raise document.error("`applies.profiler` must be a name.", "applies")
    if not isinstance(capability, list) or not capability or not all(_is_capability(one) for one in capability):
        raise document.error('`applies.capability` must be a list such as ["3.5", "3.7"].', "applies")
    return profiler, tuple(capability)


def _is_capability(value: Any) -> bool:
    return isinstance(value, str) and (value == SIMULATED or re.fullmatch(r"\d+\.\d+", value) is not None)


def _text(document: Document, value: Any, *path: str | int) -> str:
    if not isinstance(value, str) or not value.strip():
        raise document.error(f"`{path[-1]}` must say something in words.", *path)
    return value


def _counter(stack: _Stack, name: str, value: Any) -> Counter:
    about = {"name": value} if isinstance(value, str | list) else value
    document = stack.origin["counter", name]
    if not isinstance(about, dict) or ("name" in about) == ("slices" in about):
        raise stack.error("a counter is a name, a list of names, or { slices = ..., expect = ... }.", "counter", name)
    document.check_keys(about, ("name", "slices", "expect", "partial", "unit"), "counter", name)
    unit = about.get("unit", "count")
    if unit not in UNITS:
        raise stack.error(f"`{name}` has unit {unit!r}; use one of: {', '.join(UNITS)}.", "counter", name)
    if "slices" in about:
        return _sliced(stack, name, about, unit)
    listed = about["name"] if isinstance(about["name"], list) else [about["name"]]
    if not listed or not all(isinstance(one, str) and one for one in listed):
        raise stack.error("a counter's names must be strings.", "counter", name)
    return Counter(name, names=tuple(listed), unit=unit, text=listed[0])


def _sliced(stack: _Stack, name: str, about: Mapping[str, Any], unit: str) -> Counter:
    slices, partial = about["slices"], about.get("partial", False)
    if (
        isinstance(slices, str)
        and slices.count("{}") == 1
        and isinstance(about.get("expect"), int)
        and 0 < about["expect"] <= _MOST_SLICES
    ):
        expect = about["expect"]
        listed = tuple(slices.replace("{}", str(number)) for number in range(_MOST_SLICES))
        text = slices.replace("{}", f"{{0..{expect - 1}}}")
    elif isinstance(slices, list) and slices and all(isinstance(one, str) for one in slices) and "expect" not in about:
        listed, expect = tuple(slices), len(slices)
        if (opcodes := _opcodes(listed)) is not None:
            return Counter(name, slices=listed, expect=expect, unit=unit, text=opcodes)
        text = ", ".join(slices if expect <= 4 else [*slices[:2], "...", slices[-1]])
    else:
        raise stack.error(
            "`slices` is a name with one {} in it and `expect` the number of slices, or a list of names.",
            "counter",
            name,
        )
    text = f"{expect} * mean({text})" if partial else f"sum({text})"
    return Counter(name, slices=listed, expect=expect, partial=bool(partial), unit=unit, text=text)


def _opcodes(slices: Sequence[str]) -> str | None:
    """`metric[A + B + C]` for the slices `metric[A]`, `metric[B]`, `metric[C]`; None if they are of no one metric."""
    metrics = {one.partition("[")[0] for one in slices if one.endswith("]")}
    if len(metrics) != 1 or not all(one.endswith("]") for one in slices):
        return None
    return f"{metrics.pop()}[{' + '.join(one.partition('[')[2][:-1] for one in slices)}]"


def _parameters(stack: _Stack) -> tuple[dict[str, float], dict[str, str]]:
    values: dict[str, float] = {}
    reasons: dict[str, str] = {}
    for name, about in stack.tables["parameter"].items():
        if not isinstance(about, dict) or type(about.get("value")) not in (int, float):
            raise stack.error("a parameter is { value = NUMBER, why = REASON }.", "parameter", name)
        stack.origin["parameter", name].check_keys(about, ("value", "why"), "parameter", name)
        if not abs(about["value"]) < _LARGEST:
            raise stack.error("the value of a parameter must be finite.", "parameter", name)
        values[name] = float(about["value"])
        reasons[name] = _text(stack.origin["parameter", name], about.get("why"), "parameter", name, "why")
    return values, reasons


def _check_names(stack: _Stack, counters: Mapping[str, Counter]) -> None:
    """A short name means one thing, can stand in a formula, and has a counter of its own behind it."""
    seen: dict[str, str] = {}
    for section in ("counter", "parameter", "quantity"):
        for name in stack.tables[section]:
            if not re.fullmatch(r"[A-Za-z_]\w*", name):
                raise stack.error(f"`{name}` cannot be used in a formula; use letters, digits and _.", section, name)
            if name in seen:
                raise stack.error(f"`{name}` is already a {seen[name]}.", section, name)
            seen[name] = section
    for section, known in SECTIONS.items():
        for word in stack.tables[section]:
            if word not in known:
                raise stack.error(f"`{word}` is no word for {section}; use one of: {', '.join(known)}.", section, word)
    whole: dict[tuple[Any, ...], str] = {}
    for name, counter in counters.items():
        same = (stack.origin["counter", name].label, counter.names, counter.slices, counter.expect, counter.partial)
        other = whole.setdefault(same, name)
        if other != name:
            raise stack.error(f"`{name}` is the same counter as `{other}`.", "counter", name)


def _reasons(stack: _Stack, section: str) -> dict[str, str]:
    """The words of `absent` or `uncountable`; an absent class total stands for all its parts."""
    found: dict[str, str] = {}
    for word, reason in stack.tables[section].items():
        if word not in COUNTS:
            raise stack.error(f"`{word}` is no word of the vocabulary.", section, word)
        text = _text(stack.origin[section, word], reason, section, word)
        parts = () if word in LEVEL_PARTS else PARTS.get(word, ())
        for name in (word, *parts):
            found.setdefault(name, text)
    return found


class _Entries:
    """Reads the formulas of a stack: their names must be known, and whatever is not exact must say so."""

    def __init__(self, stack: _Stack, known: Collection[str], partial: Collection[str]) -> None:
        self.stack, self.known, self.partial = stack, known, partial

    def list(self, section: str, key: str) -> tuple[Entry, ...]:
        value = self.stack.tables[section][key]
        if not isinstance(value, list) or not value:
            raise self.stack.error("give a list of { formula = ..., mark = ..., note = ... }.", section, key)
        return tuple(self._entry(section, key, index, about) for index, about in enumerate(value))

    def _entry(self, section: str, key: str, index: int, about: Any) -> Entry:
        document, path = self.stack.origin[section, key], (section, key, index)
        if not isinstance(about, dict):
            raise document.error(
                f"an entry is {{ formula = ..., mark = ..., note = ... }}, not {about!r}.", section, key
            )
        document.check_keys(about, ("formula", "mark", "mark_if", "note"), *path)
        formula = document.formula(about.get("formula"), self.known, *path)
        mark = _mark(document, about.get("mark"), path)
        if mark or "note" in about:
            _text(document, about.get("note"), *path, "note")
        if not mark and formula.names & set(self.partial):
            raise document.error("a sum over some of the slices is not exact; give it a mark and a note.", *path)
        mark_if = document.formula(about["mark_if"], self.known, *path, "mark_if") if "mark_if" in about else None
        if mark_if and not (mark and mark_if.names):
            raise document.error("`mark_if` names the counters on which a `mark` depends.", *path)
        return Entry(formula, mark, about.get("note", ""), mark_if)

    def checks(self) -> Iterator[Check]:
        for document, index, about in self._tables("check", ("left", "right", "relation", "tolerance", "note")):
            if about.get("relation") not in ("==", "<="):
                raise document.error('`relation` must be "==" or "<=".', "check", index)
            tolerance = self._number(document, about, "tolerance", index)
            left, right = (
                document.formula(about.get(side), self.known, "check", index, side) for side in ("left", "right")
            )
            note = _text(document, about.get("note"), "check", index, "note")
            yield Check(left, right, about["relation"], tolerance, note)

    @staticmethod
    def _number(document: Document, about: Mapping[str, Any], key: str, index: int) -> float:
        value = about.get(key)
        if type(value) not in (int, float) or not 0 <= value < 1:  # type: ignore[operator]
            raise document.error(f"`{key}` must be a fraction from 0 to 1.", "check", index, key)
        return float(value)  # type: ignore[arg-type]

    def time_pairs(self) -> Iterator[TimePair]:
        for document, index, about in self._tables("time_pair", ("bytes", "rate", "note")):
            both = [
                document.formula(about.get(side), self.known, "time_pair", index, side) for side in ("bytes", "rate")
            ]
            yield TimePair(both[0], both[1], str(about.get("note", "")))

    def _tables(self, section: str, known: Collection[str]) -> Iterator[tuple[Document, int, Mapping[str, Any]]]:
        for document in self.stack.documents:
            listed = document.data.get(section, [])
            if not isinstance(listed, list):
                raise document.error(f"write [[{section}]], not [{section}].", section)
            for index, about in enumerate(listed):
                document.check_keys(about, known, section, index)
                yield document, index, about


def _mark(document: Document, given: Any, path: tuple[str | int, ...]) -> Mark:
    """One mark or a list of them; `missing` says that the formula leaves something out: a lower bound."""
    mark = NONE
    for word in given if isinstance(given, list) else [given]:
        if word is None:
            continue
        if word not in ("estimated", "assumed", "missing"):
            raise document.error(f"`mark` must be estimated, assumed or missing (a lower bound), not {word!r}.", *path)
        mark |= Mark[word.upper()]
    return mark


def _check_cycles(stack: _Stack, definition: Definition) -> None:
    for name, entries in definition.quantities.items():
        if name in definition._closure(one for entry in entries for one in entry.formula.names):
            raise stack.error(f"`{name}` is made of itself.", "quantity", name)


def _check_size(stack: _Stack, definition: Definition) -> None:
    """Formulas with all their quantities put in stay short: twenty steps that each double the last would not."""
    sizes: dict[str, int] = {}

    def size(formula: Formula, depth: int) -> int:
        return len(formula.text) + sum(
            of(name, depth) * formula.text.count(name) for name in formula.names if name in definition.quantities
        )

    def of(name: str, depth: int) -> int:
        if name not in sizes:
            if depth > _DEEPEST:
                raise stack.error(f"`{name}` is more than {_DEEPEST} steps deep.", "quantity", name)
            sizes[name] = 2 + max((size(one.formula, depth + 1) for one in definition.quantities[name]), default=0)
            if sizes[name] > _LONGEST:
                raise stack.error(f"`{name}` is longer than {_LONGEST} characters, all steps put in.", "quantity", name)
        return sizes[name]

    for name in definition.quantities:
        of(name, 0)


def _check_unused(stack: _Stack, definition: Definition) -> None:
    """Every declared name must stand in a formula of its own file or of one that is laid over it or under it."""
    said: set[str] = set()
    for document in stack.documents:
        for key in (*_LISTS, *_TABLES[2:]):
            said.update(re.findall(r"[A-Za-z_]\w*", " ".join(_formula_texts(document.data.get(key)))))
    for section in ("counter", "parameter", "quantity"):
        for name in stack.tables[section]:
            if name not in said:
                raise stack.error(f"`{name}` is declared but no formula uses it.", section, name)


def _formula_texts(value: Any) -> Iterator[str]:
    """Every formula somewhere in a table of a definition file."""
    if isinstance(value, dict):
        for key, one in value.items():
            if key in ("formula", "mark_if", "left", "right", "bytes", "rate") and isinstance(one, str):
                yield one
            else:
                yield from _formula_texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _formula_texts(one)


def _check_complete(stack: _Stack, definition: Definition) -> None:
    """Every word is counted, or absent, or uncountable, in both books: silence would read as a zero."""
    for section, other in (("bytes", "served"), ("bytes", "accessed")):
        for word in definition.words[section]:
            if word in definition.words[other]:
                raise stack.error(f"`{word}` stands in [{section}] and in [{other}].", other, word)
    for word in COUNTS:
        told = word in definition.absent or word in definition.uncountable or word in LEVEL_PARTS
        for books in WORDS_OF:
            if not told and not definition.entries(word, books):
                raise stack.top.error(
                    f"`{word}` is not counted ({books} bytes), nor said to be absent or uncountable."
                    if word in BYTES
                    else f"`{word}` is neither counted nor said to be absent or uncountable.",
                    "instruction" if word in INSTRUCTIONS else books,
                )
    for word in definition.absent:
        if any(definition.entries(word, books) for books in WORDS_OF):
            raise stack.top.error(f"`{word}` is both counted and absent.", "absent", word)
