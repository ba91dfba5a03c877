"""What counter definitions say, in rows: how each count is made, where a counter is used, what another calls it."""

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from msgspec import Struct

from eprof.base import resources
from eprof.base.optional import gathered
from eprof.base.text import bracketed, pattern, when
from eprof.base.toml import Document
from eprof.base.vocabulary import BOOKS, COUNTS, mark_names
from eprof.counts.counters import definitions
from eprof.counts.definition import Definition, Entry


def summary(definition: Definition) -> dict[str, Any]:
    """Name, profiler, capabilities, source, and how many counters and words it has: for a listing."""
    return {
        "name": definition.name,
        "profiler": definition.profiler,
        "capabilities": list(definition.capabilities),
        "source": definition.source,
        "counters": len(definition.used() & set(definition.counters)),
        "absent": sorted(definition.absent),
        "uncountable": sorted(definition.uncountable),
    }


def explain(definition: Definition) -> list[dict[str, Any]]:
    """One row for each way to count each word, best first, then the steps (quantities) that formulas name.

    Keys: word, label, unit, books ("both", "served", "accessed", "step"), rank (1 = preferred; 0: no way), formula
    (our names), expanded (the profiler's names, preferred steps put in), counters, marks, note.
    """
    rows: list[dict[str, Any]] = []
    books_of = dict.fromkeys(definition.words, "both") | {books: books for books in BOOKS}
    for word, count in COUNTS.items():
        about = {"word": word, "label": count.label, "unit": count.unit}
        ways = [
            row
            for section, words in definition.words.items()
            for row in _rows(definition, {**about, "books": books_of[section]}, words.get(word, ()))
        ]
        rows += ways
        no_way = {**about, "books": when(ways, "other") or "both", "rank": 0}
        if word in definition.absent:
            zero = {"formula": "0", "expanded": "0", "counters": [], "marks": [], "note": definition.absent[word]}
            rows.append({**no_way, **zero})
        elif word in definition.uncountable:
            unknown = {"formula": None, "expanded": None, "counters": [], "marks": ["missing"]}
            rows.append({**no_way, **unknown, "note": definition.uncountable[word]})
    used = definition.used()
    steps = {name: entries for name, entries in definition.quantities.items() if name in used}
    for books, named in (("component", definition.components), ("step", steps)):
        for name, entries in named.items():
            about = {"word": name, "label": name.replace("_", " "), "unit": "", "books": books}
            rows += _rows(definition, about, entries)
    return rows


def _rows(definition: Definition, about: Mapping[str, Any], entries: tuple[Entry, ...]) -> list[dict[str, Any]]:
    return [
        {
            **about,
            "rank": rank,
            "formula": entry.formula.text,
            "expanded": definition.expand(entry.formula),
            "counters": definition.counters_of(entry.formula),
            "marks": mark_names(entry.mark),
            "note": entry.note,
        }
        for rank, entry in enumerate(entries, 1)
    ]


_METRIC = pattern(r"\b(?=[a-z]\w*?__\w)\w++(?:\.\w++)+")


class OtherName(Struct, frozen=True):
    """Names of a counter in nvprof (`*`: the number of a slice), and the formula of ncu's metrics that is the same."""

    nvprof: tuple[str, ...]
    ncu: str
    note: str

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics of ncu that a translation's formula holds."""
        return tuple(_METRIC.findall(self.ncu))


@cache
def other_names() -> tuple[OtherName, ...]:
    """The translations between nvprof and ncu in `counters/nvprof-ncu.toml`, in its order.

    Raises DefinitionError where it says it wrongly.
    """
    document = Document.read(resources.folder("counters") / "nvprof-ncu.toml")
    others = []
    for row in document.root.table(("schema", "row"))["row"].entries():
        row.table(("nvprof", "ncu", "note"))
        old_names = tuple(name.text() for name in row["nvprof"].each())
        others.append(OtherName(old_names, row["ncu"].text(""), row["note"].text("")))
        if not old_names or not others[-1].metrics:
            raise row.error("a row names counters of nvprof, and metrics of ncu with their suffix.")
    return tuple(others)


def search(text: str) -> list[dict[str, Any]]:
    """Where a profiler's counters are used: rows of definition, counter (full name), words that it helps to count.

    `also`: what the other of nvprof and ncu calls it, as far as `counters/nvprof-ncu.toml` has it. Names that only that
    file knows have no definition and no words.
    """
    text = text.lower()
    rows = []
    for definition in definitions():
        uses = ((counter, row["word"]) for row in explain(definition) for counter in row["counters"])
        words = gathered((counter, word) for counter, word in uses if text in counter.lower())
        rows += [_usage_row(definition.name, definition.profiler, counter, words[counter]) for counter in sorted(words)]
    used = {row["counter"] for row in rows}
    for name in dict.fromkeys(name for pair in other_names() for name in pair.nvprof):
        if text in name.lower() and not any(fnmatchcase(counter, name) for counter in used):
            rows.append(_usage_row("", "nvprof", name, ()))
    return rows


def _usage_row(definition: str, profiler: str, counter: str, words: Iterable[str]) -> dict[str, Any]:
    also = []
    for pair in other_names():
        note = bracketed(pair.note)
        if profiler == "nvprof" and any(fnmatchcase(counter, name) for name in pair.nvprof):
            also.append(f"ncu: {pair.ncu}{note}")
        # A metric of multiprocessors (`sm__`) is that of their partitions: the sums are the same.
        elif profiler == "ncu" and re.sub("^sm__", "smsp__", counter) == re.sub("^sm__", "smsp__", pair.ncu):
            also.append(f"nvprof: {', '.join(pair.nvprof)}{note}")
    return {"definition": definition, "counter": counter, "words": list(dict.fromkeys(words)), "also": also}
