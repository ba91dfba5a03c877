"""The door to `eprof diff`: its options, its output, its exit code 3. `commands` calls it."""

import argparse
import sys
from typing import TYPE_CHECKING, Any

from eprof.base.text import printable
from eprof.cli.options import add_output, add_pricing
from eprof.cli.output import Result, deliver, planned

if TYPE_CHECKING:
    from eprof.compare import Difference
    from eprof.compare.schema import Document

_Commands = Any  # argparse does not name the type of its subparsers in public


def add_diff(commands: _Commands) -> argparse.ArgumentParser:
    """The options of `eprof diff`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "diff",
        help="two variants: what changed in energy, time and counts, and why",
        description="Compare two variants of a program from their logs or run directories; needs no GPU. The change in "
        "energy is split into changed counts, changed time and changed prices, and the parts add up.",
        epilog="Examples:\n  eprof diff old.eprof new.eprof -o diff.html\n"
        "  eprof diff old.csv+trace-old.csv new.csv+trace-new.csv --costs gtx680\n"
        "  eprof diff 'old-*.eprof' 'new-*.eprof'        repeats of each: intervals and a test\n"
        "  eprof diff release.txt now.txt --costs jetson-tk1 --fail-above 2% --format md",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    what = "a log, files of one run as A+B, a directory, or a 'pattern' of repeats"
    parser.add_argument("old", metavar="OLD", help=what)
    parser.add_argument("new", metavar="NEW", help="the same, of the new variant")
    for side in ("old", "new"):
        parser.add_argument(
            f"--{side}",
            dest=f"more_{side}",
            action="append",
            default=[],
            metavar="INPUT",
            help=f"one more repeat of {side.upper()}",
        )
    add_pricing(parser, "the one made for the GPU of each log")
    for side in ("old", "new"):
        parser.add_argument(f"--{side}-costs", metavar="NAME|FILE", help=f"cost table of {side.upper()} alone")
        parser.add_argument(f"--{side}-setting", metavar="CORE/MEMORY", help=f"DVFS setting of {side.upper()} alone")
    _add_comparing(parser)
    add_output(parser, "write .html .json .csv .parquet .md or .txt", "output files")
    return parser


def _add_comparing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--match", action="append", default=[], metavar="OLD=NEW", help="these two are the same kernel (repeatable)"
    )
    parser.add_argument("--no-similar", action="store_true", help="match kernels by their full names only")
    parser.add_argument(
        "--fail-above",
        action="append",
        default=[],
        metavar="[KERNEL:][WHAT=]P%",
        help="exit code 3 if more energy is used: 2%%, dram_read=5%%, time=5%%, my_kernel:2%%, '*:10%%' (repeatable)",
    )
    parser.add_argument(
        "--time", action="append", default=[], metavar="[KERNEL=]SECONDS", help="time for logs without, of both sides"
    )
    for side in ("old", "new"):
        parser.add_argument(
            f"--{side}-time",
            action="append",
            default=[],
            metavar="[KERNEL=]SECONDS",
            help=f"the same, of {side.upper()} alone",
        )
    parser.add_argument("--columns", metavar="FILE", help="column names (one CSV line) of headerless rows")


def diff(options: argparse.Namespace) -> int:
    """Run the command; 0 done, 3 a gate failed, 1 a gate could not be judged."""
    options.inputs = [options.old, options.new, *options.more_old, *options.more_new]
    outputs = planned(options)
    difference = _compare(options)
    document = difference.typed

    def render(kind: str) -> bytes:
        return _render(kind, difference, document, options.verbose)

    def show() -> None:
        from eprof.terminal import diff as console_diff

        console_diff.show(document, verbose=options.verbose)

    deliver(Result(render, show), outputs, options)
    return _verdict(document)


def _compare(options: argparse.Namespace) -> "Difference":
    from eprof.api.variants import PriceAs, ReadAs, energies, keeps
    from eprof.compare import compare

    sides = []
    for inputs, costs, setting, time in (
        ([options.old, *options.more_old], options.old_costs, options.old_setting, options.old_time),
        ([options.new, *options.more_new], options.new_costs, options.new_setting, options.new_time),
    ):
        reading = ReadAs(options.capability, options.columns, time or options.time)
        pricing = PriceAs(costs or options.costs, setting or options.setting, options.efficiency)
        sides.append(energies(inputs, reading, pricing))
    return compare(
        *sides,
        match_by_hand=options.match,
        similar=not options.no_similar,
        keep=keeps(options.kernel_name),
        fail_above=options.fail_above,
        command_line=options.command_line,
    )


def _render(kind: str, difference: "Difference", document: "Document", verbose: bool) -> bytes:
    """The result in one format; the rooms that make the others are not even loaded."""
    if kind == "html":
        from eprof.page.diff import html

        return html(document).encode("utf-8", "backslashreplace")
    if kind == "txt":
        from eprof.terminal import diff as console_diff

        return console_diff.text(document, verbose=verbose).encode("utf-8", "backslashreplace")
    from eprof.files import diff as diff_tables
    from eprof.files import export

    match kind:
        case "json":
            return diff_tables.to_json(document)
        case "md":
            return diff_tables.to_markdown(document)
        case "csv":
            return export.to_csv(difference.to_frame())
    return export.to_parquet(difference.to_frame())


def _verdict(document: "Document") -> int:
    """One sentence on standard error for each gate that did not pass."""
    from eprof.words import diff as diff_words

    not_passed = [gate for gate in document.gates if gate.failed is not False]
    for gate in not_passed:
        print(f"eprof: {printable(diff_words.gate_words(gate))}", file=sys.stderr)
    if any(gate.failed for gate in not_passed):
        return 3
    return 1 if not_passed else 0
