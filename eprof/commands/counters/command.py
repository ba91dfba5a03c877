"""`eprof counters`: list, show and check counter definitions."""

import argparse
from collections.abc import Sequence

from rich.text import Text

from eprof.base.errors import EprofError
from eprof.base.text import printable, when
from eprof.cli.options import DEFINITION, Commands, Parser, command
from eprof.cli.output import listed
from eprof.show.console import BOOKS, Row, listing_table, marks_of, show_list


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
    from eprof.commands.counters import explained
    from eprof.counts.counters import definitions, named

    if options.find is not None:
        uses = explained.search(options.find)
        if not uses:
            raise EprofError(f"No definition uses `{options.find}`; `eprof counters` lists the definitions.")
        return listed(options, uses, _show_found, options.find, uses)
    if options.name is None:
        rows = [*map(explained.summary, definitions())]
        return listed(options, rows, _show_definitions, rows)
    definition = named(options.name)
    summary, counts = explained.summary(definition), explained.explain(definition)
    return listed(options, {**summary, "counts": counts}, _show_definition, summary, counts)


def _show_definitions(definitions: Sequence[Row]) -> None:
    """`eprof counters` on the terminal: list the counter definitions."""
    table = listing_table("name", "profiler", "capability", "counters", "source")
    for definition in definitions:
        capabilities = ", ".join(definition["capabilities"])
        counters = str(definition["counters"])
        cells = (definition["name"], definition["profiler"], capabilities, counters, definition["source"])
        table.add_row(*map(printable, cells))
    show_list([table, Text("`eprof counters NAME` shows how every count is made.", style="dim")])


def _show_definition(summary: Row, counts: Sequence[Row]) -> None:
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
    show_list([Text(printable(head), style="bold"), f"Source: {summary['source']}", table])


def _show_found(text: str, matches: Sequence[Row]) -> None:
    """`eprof counters --find` on the terminal: where a counter is used."""
    table = listing_table("definition", "counter", "helps to count")
    for match in matches:
        table.add_row(match["definition"] or "(none)", printable(match["counter"]), ", ".join(match["words"]))
    also = dict.fromkeys((match["counter"], sibling) for match in matches for sibling in match["also"])
    show_list([f"Counters that match `{text}`:", table, *(f"{counter} is in {sibling}" for counter, sibling in also)])
