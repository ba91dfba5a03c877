"""`eprof history`: energy over a folder of results, by commit and time, and where it changed."""

import argparse
from functools import partial

from eprof.cli.options import SETTING, TABLE, Commands, Parser, command, matching
from eprof.cli.output import deliver, planned, result_by_words


def add(commands: Commands) -> Parser:
    """Add `eprof history` with its options to the commands; return its parser."""
    parser = command(
        commands,
        "history",
        "Read the reports in JSON and the run directories of a folder, put them in the order of their times, and tell "
        "which commits changed the energy by more than noise. Needs no GPU.",
        "eprof history nightly",
        "eprof history nightly -o history.html",
        "eprof history 'runs/*.eprof' --costs gtx680 --format json",
    )
    parser.add_inputs("of reports in JSON and run directories; or these themselves", metavar="FOLDER")
    parser.value("--costs", TABLE, "cost table of run directories (default: as `eprof report`)")
    parser.value("--setting", SETTING, "DVFS setting of run directories")
    parser.add_output()
    return parser


def history(options: argparse.Namespace) -> int:
    """Run `eprof history`."""
    from eprof.commands.history import document as history_document
    from eprof.profile.profile import Profile

    folders = matching(options.inputs)
    outputs = planned(options)
    price = partial(Profile.energy, costs=options.costs, setting=options.setting, estimate=False)
    read = history_document.read(folders, price)
    document = history_document.history(read, ", ".join(folders[:3]), options.command_line)
    deliver(result_by_words(document, __package__, options.verbose), outputs, options)
    return 0
