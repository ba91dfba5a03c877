"""`eprof counters`: list and show counter definitions, how each count is made, and where a counter is used."""

import argparse
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from msgspec import Struct
from rich.console import RenderableType
from rich.text import Text

from eprof.base import resources
from eprof.base.errors import EprofError
from eprof.base.optional import gathered
from eprof.base.text import bracketed, pattern, printable, when
from eprof.base.toml import Document
from eprof.base.vocabulary import COUNTS, mark_names
from eprof.cli.options import DEFINITION, Commands, Parser, command
from eprof.cli.output import print_listing
from eprof.counts.definition import WORDS_OF, Definition, Entry
from eprof.counts.definition_files import definitions, named
from eprof.show.console import BOOKS, Row, listing_table, marks_of


def add(commands: Commands) -> Parser:
    """Add `eprof counters` with its options to the commands; return its parser."""
    parser = command(
        commands,
        "counters",
        "Without a name: the definitions at hand. With one: how each count is made from the counters.",
    )
    parser.add_argument(
        "name", nargs="?", metavar=DEFINITION, help="a definition, a compute capability (3.5), a GPU's name, or a file"
    )
    parser.value("--find", "WORD", "where a counter or a word of the vocabulary is used")
    parser.add_listing()
    return parser


def counters(options: argparse.Namespace) -> int:
    """Run `eprof counters`."""
    if options.find is not None:
        uses = search(options.find)
        if not uses:
            raise EprofError(f"No definition uses `{options.find}`; `eprof counters` lists the definitions.")
        return print_listing(options, uses, _found(options.find, uses))
    if options.name is None:
        rows = [*map(summary, definitions())]
        return print_listing(options, rows, _definitions(rows))
    definition = named(options.name)
    about, counts = summary(definition), explain(definition)
    return print_listing(options, {**about, "counts": counts}, _definition(about, counts))


def _definitions(rows: Sequence[Row]) -> list[RenderableType]:
    """`eprof counters` on the terminal: list the counter definitions."""
    table = listing_table("name", "profiler", "capability", "counters", "source")
    for definition in rows:
        capabilities = ", ".join(definition["capabilities"])
        counters = str(definition["counters"])
        cells = (definition["name"], definition["profiler"], capabilities, counters, definition["source"])
        table.add_row(*map(printable, cells))
    return [table, Text("`eprof counters NAME` shows how every count is made.", style="dim")]


def _definition(summary: Row, counts: Sequence[Row]) -> list[RenderableType]:
    """`eprof counters NAME` on the terminal: how one definition makes every count, ways in order of preference."""
    table = listing_table("count", "books", "way", "formula of counters", "note")
    last = None
    for row in counts:
        label = when(row["word"] != last, printable(row["label"]))
        last = row["word"]
        note = printable(row["note"] or "") + marks_of(row["marks"])
        way = str(row["rank"] or "")
        table.add_row(label, BOOKS[row["books"]], way, printable(row["expanded"] or "not countable"), note)
    head = f"{summary['name']}: {summary['profiler']}, compute capability {', '.join(summary['capabilities'])}"
    return [Text(printable(head), style="bold"), f"Source: {summary['source']}", table]


def _found(text: str, matches: Sequence[Row]) -> list[RenderableType]:
    """`eprof counters --find` on the terminal: where a counter is used."""
    table = listing_table("definition", "counter", "helps to count")
    for match in matches:
        table.add_row(match["definition"] or "(none)", printable(match["counter"]), ", ".join(match["words"]))
    also = dict.fromkeys((match["counter"], sibling) for match in matches for sibling in match["also"])
    return [f"Counters that match `{text}`:", table, *(f"{counter} is in {sibling}" for counter, sibling in also)]


# ----------------------------------------------------------------------------------------------------------------------
# What counter definitions say, in rows: how each count is made, where a counter is used, what another calls it.


def summary(definition: Definition) -> dict[str, Any]:
    """The row by which `eprof counters` lists a definition: name, profiler, capabilities, source, its counters."""
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
    """A counter definition as rows: one for each way to count each word, best first, then the steps in formulas.

    Keys: word, label, unit, books ("both", "served", "accessed", "step"), rank (1 = preferred; 0: no way), formula
    (our names), expanded (the profiler's names, preferred steps put in), counters, marks, note.
    """
    rows: list[dict[str, Any]] = []
    books_of = dict.fromkeys(definition.words, "both") | {books: books for books in WORDS_OF}
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
    for books, made in (("component", definition.components), ("step", steps)):
        for name, entries in made.items():
            about = {"word": name, "label": name.replace("_", " "), "unit": "", "books": books}
            rows += _rows(definition, about, entries)
    return rows


def _rows(definition: Definition, about: Mapping[str, Any], entries: tuple[Entry, ...]) -> list[dict[str, Any]]:
    """A row of `explain` for each way (entry) to make one count, the preferred first. about: what all rows share."""
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
    """A row of `search`; its `also` is what the other of nvprof and ncu calls the counter."""
    also = []
    for pair in other_names():
        note = bracketed(pair.note)
        if profiler == "nvprof" and any(fnmatchcase(counter, name) for name in pair.nvprof):
            also.append(f"ncu: {pair.ncu}{note}")
        # A metric of multiprocessors (`sm__`) is that of their partitions: the sums are the same.
        elif profiler == "ncu" and re.sub("^sm__", "smsp__", counter) == re.sub("^sm__", "smsp__", pair.ncu):
            also.append(f"nvprof: {', '.join(pair.nvprof)}{note}")
    return {"definition": definition, "counter": counter, "words": list(dict.fromkeys(words)), "also": also}
