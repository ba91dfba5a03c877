"""`eprof counters`: list, show and check counter definitions."""

import argparse

from eprof.base.errors import EprofError
from eprof.cli.options import DEFINITION, Commands, Parser, command
from eprof.cli.output import listed


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
    from eprof.commands.counters import terminal
    from eprof.counts import counters
    from eprof.counts import counters as definitions

    if options.find is not None:
        uses = counters.search(options.find)
        if not uses:
            raise EprofError(f"No definition uses `{options.find}`; `eprof counters` lists the definitions.")
        return listed(options, uses, terminal.show_found, options.find, uses)
    if options.name is None:
        rows = [definition.summary() for definition in definitions.definitions()]
        return listed(options, rows, terminal.show_definitions, rows)
    definition = definitions.named(options.name)
    summary, counts = definition.summary(), definition.explain()
    return listed(options, {**summary, "counts": counts}, terminal.show_definition, summary, counts)
