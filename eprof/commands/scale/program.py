"""What a parallel program counts, growing with its size n and its processors p: `counters/programs/*.toml`."""

from collections.abc import Mapping

from msgspec import Struct

from eprof.base.errors import UsageError
from eprof.base.toml import Document, Formula
from eprof.clusters.cluster import definition

SCHEMA = 1
# On-chip work and accesses beyond the caches of the program on one processor; what p processors do more of each, which
# may be negative; messages and their bytes, over all processors, a message once.
WORDS = ("on_chip", "off_chip", "on_chip_extra", "off_chip_extra", "messages", "network_bytes")
_MAY_BE_NEGATIVE = ("on_chip_extra", "off_chip_extra")
_KEYS = ("schema", "name", "about", "source", "size", "alpha", "memory_bytes", "count")
_NAMES = ("n", "p")


class Work(Struct, frozen=True):
    """What a program of size n counts on p processors ([S] 4.4, the application's vector).

    alpha: measured time over the sum of its parts (4.19): what overlaps. memory_bytes: of all processors, if known.
    """

    alpha: float
    on_chip: float
    off_chip: float
    on_chip_extra: float = 0.0
    off_chip_extra: float = 0.0
    messages: float = 0.0
    network_bytes: float = 0.0
    memory_bytes: float | None = None


class Program(Struct, frozen=True):
    """A program's counts as formulas of n and p. factors: what a fit multiplies counts with."""

    name: str
    about: str
    source: str
    size: str
    alpha: float
    formulas: Mapping[str, Formula]
    memory: Formula | None = None
    factors: Mapping[str, float] = {}

    def work(self, size: float, processors: int) -> Work:
        """What a parallel program counts at a size on so many processors.

        Raises UsageError: they are no numbers there.
        """
        counts = {word: self._value(formula, word, size, processors) for word, formula in self.formulas.items()}
        for word in ("on_chip", "off_chip"):
            if counts[word] + counts.get(f"{word}_extra", 0.0) < 0:
                raise UsageError(
                    f"{self.name}: `{word}` and `{word}_extra` are less than nothing at n = {size:g}, p = {processors}."
                )
        memory = None if self.memory is None else self._value(self.memory, "memory_bytes", size, processors)
        return Work(self.alpha, **counts, memory_bytes=memory)

    def _value(self, formula: Formula, word: str, size: float, processors: int) -> float:
        try:
            value = float(formula({"n": float(size), "p": float(processors)}))
        except (OverflowError, ValueError, ZeroDivisionError) as err:
            raise UsageError(f"{self.name}: `{word}` has no value at n = {size:g}, p = {processors} ({err}).") from err
        if value < 0 and word not in _MAY_BE_NEGATIVE:
            raise UsageError(f"{self.name}: `{word}` is negative at n = {size:g}, p = {processors}.")
        return value * self.factors.get(word, 1.0)


def load(name_or_path: str) -> Program:
    """A parallel program by its name, or a file of yours (`.toml`). Raises DefinitionError with file and line."""
    return read(definition(name_or_path, "program"))


def read(document: Document) -> Program:
    """The parallel program in a document. Raises DefinitionError."""
    root = document.root.table(_KEYS)
    root.schema(SCHEMA)
    counts = root["count"].table(WORDS)
    memory = root["memory_bytes"]
    for word in ("on_chip", "off_chip"):
        if word not in counts:
            raise counts[word].wrong("a formula of n, written as a text")
    return Program(
        name=root["name"].text(),
        about=root["about"].text(""),
        source=root["source"].text(),
        size=root["size"].text("size"),
        alpha=root["alpha"].number(1e-3, 1e3),
        formulas={word: formula.formula(_NAMES, growing=True) for word, formula in counts.items()},
        memory=None if memory.value is None else memory.formula(_NAMES, growing=True),
    )
