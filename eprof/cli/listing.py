"""`eprof costs` and `eprof counters`: list, show and check cost tables and counter definitions."""

import argparse
from pathlib import Path
from typing import Any

from eprof.base.errors import EprofError, UsageError
from eprof.cli import config
from eprof.cli.options import DEFINITION, GPU, SETTING, TABLE, Commands, add_listing, command, repeatable
from eprof.cli.output import say
from eprof.cli.writing import write


def add_costs(commands: Commands) -> argparse.ArgumentParser:
    """The options of `eprof costs`."""
    parser = command(
        commands,
        "costs",
        "list, show and check cost tables",
        "Without a name: the tables at hand. With one: what every count pays at a setting, and why.",
    )
    parser.add_argument("name", nargs="?", metavar=TABLE, help="a table, or a file of your own to check and show")
    parser.add_argument("--setting", metavar=SETTING, help="DVFS setting in MHz (default: the table's)")
    _add_estimate(parser)
    add_listing(parser)
    return parser


def _add_estimate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--estimate", metavar=GPU, help="make a table for a GPU that nobody measured: 'RTX 4090'")
    parser.add_argument(
        "--idle-w",
        type=float,
        metavar="WATTS",
        help="with --estimate: power of the idle GPU at the clocks of a load, as nvidia-smi prints it right after one",
    )
    parser.add_argument(
        "--tdp-w", type=float, metavar="WATTS", help="with --estimate: its power limit (default: of its data sheet)"
    )
    repeatable(parser, "-o", "--output", metavar="FILE", help="with --estimate: the table's file (default: show it)")
    parser.add_argument("-f", "--force", action="store_true", help="overwrite FILE")


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
        metavar=DEFINITION,
        help="a definition, a compute capability (3.5), a GPU's name, or a file",
    )
    parser.add_argument("--find", metavar="WORD", help="where a counter or a word of the vocabulary is used")
    add_listing(parser)
    return parser


def costs(options: argparse.Namespace) -> int:
    """Run `eprof costs`; 1 if a table has mistakes that leave nothing of it."""
    from eprof import costs as tables
    from eprof.terminal import listing

    if options.estimate is not None:
        return _estimate(options)
    for option in ("idle_w", "tdp_w", "output"):
        if config.is_given(options, option):
            raise UsageError(f"--{option.replace('_', '-')} goes with --estimate GPU.")
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


def _estimate(options: argparse.Namespace) -> int:
    """Write the table of a GPU that nobody measured, or show it."""
    from eprof.costs import estimate
    from eprof.terminal import listing

    if options.name is not None or config.is_given(options, "setting"):
        raise UsageError("--estimate makes a table by itself; name no other table and no setting.")
    text = estimate.table_text(options.estimate, options.idle_w, options.tdp_w)
    table = estimate.parsed(text)
    if config.is_given(options, "output"):
        for path in options.output:
            write(Path(path), text.encode(), options.force)
        for note in table.notes:
            say(note)
    elif not _printed(options, table.explain()):
        listing.show_costs(table.explain())
    return 0


def _list_costs(options: argparse.Namespace) -> int:
    """List the cost tables, for `eprof costs`."""
    from eprof import costs as tables
    from eprof.terminal import listing

    if config.is_given(options, "setting"):
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
    """Print the JSON of `eprof costs` and `eprof counters` with --format json; whether it was printed."""
    import json

    if options.format == "json":
        print(json.dumps(data, indent=1))
    return bool(options.format == "json")
