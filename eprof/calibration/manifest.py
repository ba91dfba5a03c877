"""`calibration/benchmarks.toml`: the benchmarks, what one launch of each does, and how fast a GPU should be at it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources.abc import Traversable
from typing import Any, TypeVar

from eprof.base.resources import folder
from eprof.base.toml import Document, Formula
from eprof.base.vocabulary import BOOKS, COUNTS

SCHEMA = 1
REGIONS = ("none", "near", "l2", "dram")
_KEYS = ("schema", "books", "constant", "rate", "benchmark")
_LAUNCH = ("threads", "iterations")
_GRID = ("sms", "resident")
_LEAST = 0.6
_BLOCK = 256
Table = TypeVar("Table")
Capability = tuple[int, int]


@dataclass(frozen=True)
class Rate:
    """What a multiprocessor does a cycle, by capability. ceiling: nothing can be faster, so that what is, is wrong."""

    ceiling: bool
    at: Mapping[Capability, float]


@dataclass(frozen=True, eq=False)
class Benchmark:
    """One kernel with one kind of launch.

    count, overhead: word of the vocabulary -> formula of `threads`, `iterations` and the manifest's constants, for one
    launch. least: the fraction of the hardware's rate that it must reach. needs_counters: why its counts are to be
    trusted only where a profiler confirms them; "" if they need no confirmation.
    """

    name: str
    source: str
    kernel: str
    title: str
    first: Capability
    but_not: tuple[Capability, ...]
    blocks: Formula
    block: int
    region: str
    spread: int
    least: float
    needs_counters: str
    count: Mapping[str, Formula]
    overhead: Mapping[str, Formula]

    def runs_on(self, capability: Capability) -> bool:
        """Whether a GPU of this capability has what the benchmark needs."""
        return capability >= self.first and capability not in self.but_not


@dataclass(frozen=True, eq=False)
class Manifest:
    """The benchmarks in the order in which they are run, with what depends on the GPU's capability."""

    books: str
    constants: Mapping[str, Mapping[Capability, float]]
    rates: Mapping[str, Rate]
    benchmarks: tuple[Benchmark, ...]

    def named(self, name: str) -> Benchmark:
        """The benchmark `name`; KeyError if there is none."""
        return {one.name: one for one in self.benchmarks}[name]

    def values(self, capability: Capability) -> dict[str, float]:
        """The constants for a capability. One that begins later is left out: nothing that runs there uses it."""
        found = {name: at(table, capability) for name, table in self.constants.items()}
        return {name: value for name, value in found.items() if value is not None}

    def counts(
        self, benchmark: Benchmark, capability: Capability, threads: float, iterations: float, overhead: bool = True
    ) -> dict[str, float]:
        """Instructions and bytes of one launch, by word; with the loop's own instructions, or without."""
        values = {**self.values(capability), "threads": threads, "iterations": iterations}
        found = {word: float(formula(values)) for word, formula in benchmark.count.items()}
        if overhead:
            for word, formula in benchmark.overhead.items():
                found[word] = found.get(word, 0.0) + float(formula(values))
        return found


def at(table: Mapping[Capability, float], capability: Capability) -> float | None:
    """The entry of the highest capability that is not above `capability`; None if all are."""
    known = [one for one in table if one <= capability]
    return table[max(known)] if known else None


def home() -> Traversable:
    """The folder with the manifest and the kernels."""
    return folder("calibration")


@lru_cache(maxsize=1)
def load() -> Manifest:
    """The manifest that comes with eprof."""
    return parse(Document.read(home() / "benchmarks.toml"))


def source_text(name: str, block: int = _BLOCK) -> str:
    """The whole text of a source file to compile: the block's size, what makes it portable, the kernels."""
    parts = [(home() / one).read_text(encoding="utf-8") for one in ("portable.h", name)]
    return "\n".join([f"#define BLOCK {block}", *parts])


def capability_of(text: str) -> Capability:
    """The pair behind "8.6". Raises ValueError."""
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def parse(document: Document) -> Manifest:
    """The manifest in `document`. Raises DefinitionError with the line of the first mistake."""
    data = document.data
    if data.get("schema") != SCHEMA:
        raise document.error(f"`schema` must be {SCHEMA}.", "schema")
    document.check_keys(data, _KEYS)
    if data.get("books") not in BOOKS:
        raise document.error(f"`books` must be one of: {', '.join(BOOKS)}.", "books")
    constants = {name: _levels(document, table, "constant", name) for name, table in data.get("constant", {}).items()}
    rates = {name: _rate(document, name, table) for name, table in data.get("rate", {}).items()}
    entries = data.get("benchmark", [])
    benchmarks = tuple(_benchmark(document, index, entry, constants) for index, entry in enumerate(entries))
    names = [one.name for one in benchmarks]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise document.error(f"there are two benchmarks `{name}`.", "benchmark", index, "name")
    return Manifest(str(data["books"]), constants, rates, benchmarks)


def _levels(document: Document, table: Any, *path: str) -> dict[Capability, float]:
    if not isinstance(table, dict) or not table:
        raise document.error('a table of capabilities is wanted: { "7.0" = 1 }.', *path)
    found = {}
    for key, value in table.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise document.error(f"`{key}` must be a number of 0 or more, not {value!r}.", *path)
        found[_capability(document, key, *path)] = float(value)
    return found


def _capability(document: Document, text: Any, *path: str | int) -> Capability:
    try:
        return capability_of(text)
    except (ValueError, AttributeError) as err:
        raise document.error(f'`{text}` is no compute capability such as "8.6".', *path) from err


def _rate(document: Document, name: str, table: Any) -> Rate:
    document.check_keys(table, ("ceiling", "at"), "rate", name)
    if not isinstance(table.get("ceiling"), bool):
        raise document.error("`ceiling` must be true or false.", "rate", name)
    return Rate(table["ceiling"], _levels(document, table.get("at"), "rate", name))


def _benchmark(document: Document, index: int, entry: Any, constants: Mapping[str, Any]) -> Benchmark:
    path = ("benchmark", index)
    document.check_keys(entry, (*_READERS, "count", "overhead"), *path)
    found = {field: how(document, entry.get(key), *path, key) for key, (field, how) in _READERS.items()}
    known = {*_LAUNCH, *constants}
    for key in ("count", "overhead"):
        table = entry.get(key, {})
        for word, text in table.items():
            if word not in COUNTS:
                raise document.error(f"`{word}` is no word of the vocabulary.", *path, key)
            document.formula(text, known, *path, key)
        found[key] = {word: Formula.parse(text) for word, text in table.items()}
    return Benchmark(**found)


def _word(document: Document, value: Any, *path: str | int) -> str:
    if not isinstance(value, str) or not value.strip():
        raise document.error(f"`{path[-1]}` must be a text.", *path)
    return value


def _optional(read: Callable[..., Table], default: Table) -> Callable[..., Table]:
    return lambda document, value, *path: default if value is None else read(document, value, *path)


def _number(least: float, most: float) -> Callable[..., Any]:
    def read(document: Document, value: Any, *path: str | int) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise document.error(f"`{path[-1]}` must be a number from {least:g} to {most:g}, not {value!r}.", *path)
        return value

    return read


def _region(document: Document, value: Any, *path: str | int) -> str:
    if value not in REGIONS:
        raise document.error(f"`region` is {value!r}; use one of: {', '.join(REGIONS)}.", *path)
    return str(value)


def _capabilities(document: Document, value: Any, *path: str | int) -> tuple[Capability, ...]:
    if not isinstance(value, list):
        raise document.error(f"`{path[-1]}` must be a list of capabilities.", *path)
    return tuple(_capability(document, one, *path) for one in value)


def _grid(document: Document, value: Any, *path: str | int) -> Formula:
    return document.formula(value, _GRID, *path)


_READERS: Mapping[str, tuple[str, Callable[..., Any]]] = {
    "name": ("name", _word),
    "source": ("source", _word),
    "kernel": ("kernel", _word),
    "title": ("title", _word),
    "from": ("first", _optional(_capability, (2, 0))),
    "but_not": ("but_not", _optional(_capabilities, ())),
    "blocks": ("blocks", _optional(_grid, Formula.parse("sms * resident"))),
    "block": ("block", _optional(_number(32, _BLOCK), _BLOCK)),
    "region": ("region", _optional(_region, "none")),
    "spread": ("spread", _optional(_number(1, 8), 1)),
    "least": ("least", _optional(_number(0, 1), _LEAST)),
    "needs_counters": ("needs_counters", _optional(_word, "")),
}
