"""`eprof costs`: list, show and check cost tables."""

import argparse
from pathlib import Path

from eprof.base.errors import UsageError
from eprof.cli import config
from eprof.cli.options import GPU, SETTING, TABLE, Commands, Parser, command, watts
from eprof.cli.output import listed, say, write


def add(commands: Commands) -> Parser:
    """Add `eprof costs` with its options to the commands; return its parser."""
    parser = command(
        commands, "costs", "Without a name: the tables at hand. With one: what every count pays at a setting, and why."
    )
    parser.add_argument("name", nargs="?", metavar=TABLE, help="a table, or a file of your own to check and show")
    parser.value("--setting", SETTING, "DVFS setting in MHz (default: the table's)")
    parser.value("--estimate", GPU, "make a table for a GPU that nobody measured: 'RTX 4090'")
    parser.value(
        "--idle-w",
        "WATTS",
        "with --estimate: power of the idle GPU at the clocks of a load, as nvidia-smi prints it right after one",
        type=watts,
    )
    parser.value("--tdp-w", "WATTS", "with --estimate: its power limit (default: of its data sheet)", type=watts)
    parser.repeatable("--output", "FILE", "with --estimate: the table's file (default: show it)", short="-o")
    parser.flag("--force", "overwrite FILE", short="-f")
    parser.add_listing()
    return parser


def costs(options: argparse.Namespace) -> int:
    """Run `eprof costs`. Exit code 1 if a table's mistakes leave nothing of it, else 0."""
    from eprof import costs as tables
    from eprof.commands.costs import terminal

    if options.estimate is not None:
        return _estimate(options)
    for option in ("idle_w", "tdp_w", "output"):
        if config.is_given(options, option):
            raise UsageError(f"--{option.replace('_', '-')} goes with --estimate GPU.")
    if options.name is None:
        if config.is_given(options, "setting"):
            raise UsageError("--setting is one of a table's: eprof costs NAME --setting CORE/MEMORY.")
        rows = [
            {
                "name": table.name,
                "device": table.device,
                "basis": table.basis,
                "settings": len(table.settings),
                "books": table.books,
                "source": table.source,
            }
            for table in map(tables.load, tables.tables())
        ]
        return listed(options, rows, terminal.show_tables, rows)
    mistakes: list[str] = []
    if tables.is_file(options.name):
        table, mistakes = tables.examine(options.name)
    else:
        table = tables.load(options.name)
        if table.processor == "cpu" and not table.serves(options.name) and options.name.lower() != table.name:
            say(f"{options.name} has no table of its own; this is the nearest that eprof has.")
    for mistake in mistakes:
        say(mistake)
    if table is None:
        return 1
    explained = table.explain(options.setting)
    return listed(options, explained, terminal.show_costs, explained)


def _estimate(options: argparse.Namespace) -> int:
    from eprof.commands.costs import terminal
    from eprof.costs import estimate

    if options.name is not None or config.is_given(options, "setting"):
        raise UsageError("--estimate makes a table by itself; name no other table and no setting.")
    text = estimate.table_text(options.estimate, options.idle_w, options.tdp_w)
    table = estimate.parsed(text)
    if config.is_given(options, "output"):
        for path in options.output:
            write(Path(path), text.encode(), options.force)
        for note in table.notes:
            say(note)
        return 0
    return listed(options, table.explain(), terminal.show_costs, table.explain())
