"""The only door: parses arguments, prints, exits. Everything it calls is a function of values.

Only the standard library is imported here; each command imports its rooms when it runs: `eprof --help` is quick.
"""

import argparse
import errno
import gc
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from eprof import __version__
from eprof.base.errors import EprofError, UsageError, shortage
from eprof.base.text import printable
from eprof.cli import calibrate, config, diff, fit, roofline, run, tune, validate
from eprof.cli.options import add_output, add_pricing, add_reading
from eprof.cli.output import (
    Output,
    Result,
    deliver,
    end_by_signals,
    end_now,
    ended_by,
    give_up_output,
    open_closed_streams,
    planned,
)

if TYPE_CHECKING:
    from eprof.profile.profile import Energy

_TOLD = 3  # of logs that were left out, on standard error
_NOT_WRITTEN = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO, errno.EBADF)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit: 0 done, 1 bad input, 2 wrong usage, 130 interrupted. Our bugs keep their traceback."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    open_closed_streams()
    try:
        end_by_signals()
        code = _run(words)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as err:
        if isinstance(err, KeyboardInterrupt):
            end_now()
        code = _failed(err)
    sys.exit(code)


def _failed(err: Exception | KeyboardInterrupt) -> int:
    """Say what ended a command, in one sentence; returns the exit code. What is not the user's to mend is raised."""
    match err:
        case UsageError():
            return _complain(f"eprof: {err}", 2)
        case EprofError():
            return _complain(f"eprof: {err}", 1)
        case BrokenPipeError():
            # The reader of our output went away (`eprof report ... | head`): nothing is left to say. 128 + SIGPIPE.
            give_up_output()
            return 141
        case OSError(filename=None, errno=number) if number in _NOT_WRITTEN:
            give_up_output()
            return _complain(
                f"eprof: standard output cannot be written ({err.strerror}); make room, or name a file with -o.", 1
            )
        case KeyboardInterrupt():
            number = ended_by(err)
            said = "interrupted; nothing was written" if number == signal.SIGINT else f"ended by {number.name}"
            return _complain(f"eprof: {said}.", 128 + number)
    short = shortage(err)
    if short is None and isinstance(err, OSError) and err.filename is not None:
        return _complain(f"eprof: {os.fsdecode(err.filename)}: {err.strerror}.", 1)
    if short is None and isinstance(err, FileNotFoundError):
        return _complain("eprof: the working directory does not exist any more; change into another one.", 1)
    if short is None:
        raise err
    return _complain(f"eprof: {short}.", 1)


def _complain(message: str, code: int) -> int:
    print(printable(message), file=sys.stderr)
    return code


def _run(words: list[str]) -> int:
    ours, program = run.split(words) if words[:1] == ["run"] else (words, [])
    only = words[0] if words else None
    options = _parser(only)[0].parse_args(ours)
    if options.config is not None:
        _configure(options, ours)
    if options.no_color:
        os.environ["NO_COLOR"] = "1"
    options.command_line, options.program = ["eprof", *words], program
    return _HANDLERS[options.command](options)


class _Parser(argparse.ArgumentParser):
    """One that quotes words of the command line, which may be names of files, as `_complain` does."""

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))


def _configure(options: argparse.Namespace, words: list[str]) -> None:
    """Take what the command line does not give from `--config`."""
    commands = _parser()[1]
    every = {key: option for one in commands.values() for key, option in config.options_of(one).items()}
    own = config.options_of(commands[options.command])
    parser, bare = _parser(options.command)
    for option in bare[options.command]._actions:
        option.default = argparse.SUPPRESS
    config.fill(options, vars(parser.parse_args(words)), own, every)


_Parsers = dict[str, argparse.ArgumentParser]


def _parser(only: str | None = None) -> tuple[argparse.ArgumentParser, _Parsers]:
    """The parser, and those of the commands: all, or `only` if it is one (all take as long as a short run)."""
    parser = _Parser(
        prog="eprof",
        description="Where do this kernel's joules go, and what can I change?",
        epilog="Example: eprof report metrics.csv trace.csv --costs jetson-tk1 -o report.html",
        allow_abbrev=False,
    )
    _add_version(parser)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    added = {name: _ADDERS[name](commands) for name in ([only] if only in _ADDERS else _ADDERS)}
    for one in added.values():
        _add_common(one)
    return parser, added


def _add_common(parser: argparse.ArgumentParser) -> None:
    common = parser.add_argument_group("options of every command")
    common.add_argument("-q", "--quiet", action="store_true", help="print no summary, only errors")
    common.add_argument(
        "-v", "--verbose", action="store_true", help="print every note about the input, and all kernels"
    )
    common.add_argument("--no-color", action="store_true", help="no colours (also NO_COLOR; FORCE_COLOR forces them)")
    common.add_argument(
        "--config", metavar="FILE", help='TOML file with values for options not given, e.g. costs = "gtx680"'
    )
    _add_version(common)


def _add_version(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--version", action="version", version=f"eprof {__version__}")


_Commands = Any  # argparse does not name the type of its subparsers in public


def _add_report(commands: _Commands) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        "report",
        help="energy report from saved profiler logs; needs no GPU",
        description="Read what nvprof wrote, count instructions by class and bytes by memory level, price them with a "
        "cost table, and show where the energy went. Logs of one run are joined by device and kernel.",
        epilog="Examples:\n  eprof report metrics.csv --costs gtx680 -o report.html\n"
        "  eprof report metrics.csv trace.csv.gz --costs jetson-tk1 --setting 852/924\n"
        "  eprof report 'logs/*.csv' --costs my-gpu.toml --format json > energy.json",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "inputs",
        nargs="+",
        metavar="INPUT",
        help="logs of nvprof (CSV, text, .nvvp), ncu (CSV, text, .ncu-rep) or nsys (CSV, text, JSON, .sqlite), packed "
        "with gzip or zstd or not; run directories of `eprof run`, or 'patterns'; several are joined",
    )
    add_pricing(parser, "the one made for this GPU; see `eprof costs`")
    parser.add_argument(
        "--time",
        action="append",
        default=[],
        metavar="[KERNEL=]SECONDS",
        help="time without counters, for logs that have none; total, or of one kernel (repeatable)",
    )
    parser.add_argument("--columns", metavar="FILE", help="column names (one CSV line) of headerless rows")
    roofline.add_questions(parser)
    add_reading(parser)
    add_output(parser, "write .html .json .csv .parquet .md or .txt", "output files")
    return parser


def _add_costs(commands: _Commands) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        "costs",
        help="list, show and check cost tables",
        description="Without a name: the tables at hand. With one: what every count pays at a setting, and why.",
        allow_abbrev=False,
    )
    parser.add_argument("name", nargs="?", metavar="NAME|FILE", help="a table, or a file of your own to check and show")
    parser.add_argument("--setting", metavar="CORE/MEMORY", help="DVFS setting in MHz (default: the table's)")
    parser.add_argument("--format", choices=("txt", "json"), default="txt", help="of standard output")
    return parser


def _add_counters(commands: _Commands) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        "counters",
        help="list, show and check counter definitions",
        description="Without a name: the definitions at hand. With one: how each count is made from the counters.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "name",
        nargs="?",
        metavar="NAME|CAPABILITY|FILE",
        help="a definition, a compute capability (3.5), a GPU's name, or a file",
    )
    parser.add_argument("--find", metavar="WORD", help="where a counter or a word of the vocabulary is used")
    parser.add_argument("--format", choices=("txt", "json"), default="txt", help="of standard output")
    return parser


def _run_program(options: argparse.Namespace) -> int:
    return run.run(options, planned, _deliver)


def _report(options: argparse.Namespace) -> int:
    outputs = planned(options)
    # One report makes hundreds of thousands of objects and no garbage worth collecting before it ends.
    gc.disable()
    from eprof import api
    from eprof.cli import progress
    from eprof.rows.threads import cores

    profile = api.load(
        *options.inputs,
        capability=options.capability,
        columns=options.columns,
        time=options.time,
        kernels=options.kernel_name,
        command_line=options.command_line,
        strict=options.strict,
        scheduler=options.scheduler,
        cache=not options.no_cache,
        workers=cores(),
        progress=progress.reading(options.quiet),
        parts=roofline.parts(options.group),
        rank=options.rank,
    )
    energy = profile.energy(options.costs, setting=options.setting, efficiency=options.efficiency)
    return _deliver(energy.asking(*options.what_if).grouped(*options.group), outputs, options)


def _deliver(energy: "Energy", outputs: list[Output], options: argparse.Namespace, page: Path | None = None) -> int:
    """Write the files and the result on standard output; `page`: an HTML report to write in any case."""
    document = energy.document()

    def render(kind: str) -> bytes:
        return _render(kind, energy, document, options.verbose)

    def show() -> None:
        from eprof.terminal import report as console

        console.show(document, verbose=options.verbose)

    deliver(Result(render, show), outputs, options, page)
    if options.quiet or options.format and not outputs:
        _tell_left_out(document["warnings"])
    return 0


def _tell_left_out(warnings: Sequence[str]) -> None:
    """That logs are missing from the result, where no summary says so."""
    left = [one for one in warnings if one.startswith("Left out: ")]
    for one in left[:_TOLD]:
        _complain(f"eprof: {one}", 0)
    if len(left) > _TOLD:
        _complain(f"eprof: {len(left) - _TOLD} more logs are left out; the warnings in the document name them.", 0)


def _render(kind: str, energy: "Energy", document: dict[str, Any], verbose: bool) -> bytes:
    """The result in one format; the rooms that make the others are not even loaded."""
    if kind == "html":
        from eprof import page as report

        return report.html(document).encode("utf-8", "backslashreplace")
    if kind == "txt":
        from eprof.terminal import report as console

        return console.text(document, verbose=verbose).encode("utf-8", "backslashreplace")
    from eprof.files import export

    match kind:
        case "json":
            return export.to_json(document)
        case "md":
            return export.to_markdown(document)
        case "csv":
            return export.to_csv(energy.to_frame())
    return export.to_parquet(energy.to_frame())


def _costs(options: argparse.Namespace) -> int:
    import json

    from eprof import costs
    from eprof.terminal import listing

    if options.name is None and config.asked(options, "setting"):
        raise UsageError("--setting is one of a table's: eprof costs NAME --setting CORE/MEMORY.")
    if options.name is None:
        tables = [costs.load(name) for name in costs.tables()]
        rows = [
            {
                "name": one.name,
                "device": one.device,
                "settings": len(one.settings),
                "books": one.books,
                "source": one.source,
            }
            for one in tables
        ]
        print(json.dumps(rows, indent=1)) if options.format == "json" else listing.show_tables(rows)
        return 0
    if costs.is_file(options.name):
        table, mistakes = costs.examine(options.name)
    else:
        table, mistakes = costs.load(options.name), []
    for mistake in mistakes:
        _complain(f"eprof: {mistake}", 1)
    if table is None:
        return 1
    explained = table.explain(options.setting)
    print(json.dumps(explained, indent=1)) if options.format == "json" else listing.show_costs(explained)
    return 0


def _counters(options: argparse.Namespace) -> int:
    import json

    from eprof.counting import counters, translation
    from eprof.terminal import listing

    if options.find is not None:
        found = translation.search(options.find)
        if not found:
            raise EprofError(f"No definition uses `{options.find}`; `eprof counters` lists the definitions.")
        print(json.dumps(found, indent=1)) if options.format == "json" else listing.show_found(options.find, found)
        return 0
    if options.name is None:
        rows = [one.summary() for one in counters.definitions()]
        print(json.dumps(rows, indent=1)) if options.format == "json" else listing.show_definitions(rows)
        return 0
    definition = counters.named(options.name)
    if options.format == "json":
        print(json.dumps({**definition.summary(), "counts": definition.explain()}, indent=1))
    else:
        listing.show_definition(definition.summary(), definition.explain())
    return 0


_ADDERS = {
    "run": run.add_run,
    "report": _add_report,
    "diff": diff.add_diff,
    "roofline": roofline.add,
    "fit": fit.add_fit,
    "validate": validate.add_validate,
    "tune": tune.add_tune,
    "calibrate": calibrate.add_calibrate,
    "costs": _add_costs,
    "counters": _add_counters,
    "doctor": run.add_doctor,
}
_HANDLERS = {
    "run": _run_program,
    "report": _report,
    "diff": diff.diff,
    "roofline": roofline.roofline,
    "fit": fit.fit,
    "validate": validate.validate,
    "tune": tune.tune,
    "calibrate": calibrate.calibrate,
    "costs": _costs,
    "counters": _counters,
    "doctor": run.doctor,
}
