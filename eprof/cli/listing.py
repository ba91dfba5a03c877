"""`eprof costs` and `eprof counters`: list, show and check cost tables and counter definitions."""

import argparse
from typing import Any

from eprof.base.errors import EprofError, UsageError
from eprof.cli import config
from eprof.cli.options import SETTING, Commands, add_listing, command
from eprof.cli.output import say


def add_costs(commands: Commands) -> argparse.ArgumentParser:
    """The options of `eprof costs`."""
    parser = command(
        commands,
        "costs",
        "list, show and check cost tables",
        "Without a name: the tables at hand. With one: what every count pays at a setting, and why.",
    )
    parser.add_argument("name", nargs="?", metavar="NAME|FILE", help="a table, or a file of your own to check and show")
    parser.add_argument("--setting", metavar=SETTING, help="DVFS setting in MHz (default: the table's)")
    add_listing(parser)
    return parser


def add_counters(commands: Commands) -> argparse.ArgumentParser:
    """The options of `eprof counters`."""
    parser = command(
        commands,
        "counters",
        "list, show and check counter definitions",
        "Without a name: the definitions at hand. With one: how each count is made from the counters.",
    )
    parser.add_argument(
        "name",
        nargs="?",
        metavar="NAME|CAPABILITY|FILE",
        help="a definition, a compute capability (3.5), a GPU's name, or a file",
    )
    parser.add_argument("--find", metavar="WORD", help="where a counter or a word of the vocabulary is used")
    add_listing(parser)
    return parser


def costs(options: argparse.Namespace) -> int:
    """Run `eprof costs`; 1 if a table has mistakes that leave nothing of it."""
    from eprof import costs as tables
    from eprof.terminal import listing

    if options.name is None:
        return _list_costs(options)
    mistakes: list[str] = []
    if tables.is_file(options.name):
        table, mistakes = tables.examine(options.name)
    else:
        table = tables.load(options.name)
    for mistake in mistakes:
        say(mistake)
    if table is None:
        return 1
    explained = table.explain(options.setting)
    if not _printed(options, explained):
        listing.show_costs(explained)
    return 0


def _list_costs(options: argparse.Namespace) -> int:
    from eprof import costs as tables
    from eprof.terminal import listing

    if config.asked(options, "setting"):
        raise UsageError("--setting is one of a table's: eprof costs NAME --setting CORE/MEMORY.")
    rows = []
    for name in tables.tables():
        table = tables.load(name)
        rows.append(
            {
                "name": table.name,
                "device": table.device,
                "basis": table.basis,
                "settings": len(table.settings),
                "books": table.books,
                "source": table.source,
            }
        )
    if not _printed(options, rows):
        listing.show_tables(rows)
    return 0


def counters(options: argparse.Namespace) -> int:
    """Run `eprof counters`."""
    from eprof.counting import counters as definitions
    from eprof.counting import translation
    from eprof.terminal import listing

    if options.find is not None:
        uses = translation.search(options.find)
        if not uses:
            raise EprofError(f"No definition uses `{options.find}`; `eprof counters` lists the definitions.")
        if not _printed(options, uses):
            listing.show_found(options.find, uses)
    elif options.name is None:
        rows = [definition.summary() for definition in definitions.definitions()]
        if not _printed(options, rows):
            listing.show_definitions(rows)
    else:
        definition = definitions.named(options.name)
        summary, counts = definition.summary(), definition.explain()
        if not _printed(options, {**summary, "counts": counts}):
            listing.show_definition(summary, counts)
    return 0


def _printed(options: argparse.Namespace, data: Any) -> bool:
    """Print JSON if that is asked for."""
    import json

    if options.format == "json":
        print(json.dumps(data, indent=1))
    return bool(options.format == "json")
