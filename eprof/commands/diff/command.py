"""`eprof diff`: two variants of a program, what changed and why; exit code 3 if a gate failed."""

import argparse

from eprof.base.errors import EprofError, UnknownLogError
from eprof.cli.options import SETTING, TABLE, Commands, Parser, command, joules
from eprof.cli.output import Progress, deliver, planned, result_by_modules, say

_TIME = "[KERNEL=]TIME"
_OF_SIDE = ("costs", "setting", "time", "energy")


def add(commands: Commands) -> Parser:
    """Add `eprof diff` with its options to the commands; return its parser."""
    parser = command(
        commands,
        "diff",
        "Compare two variants of a program from their logs or run directories; needs no GPU. The change in energy is "
        "split into changed counts, changed time and changed prices, and the parts add up.",
        "eprof diff old.eprof new.eprof -o diff.html",
        "eprof diff old.csv+trace-old.csv new.csv+trace-new.csv --costs gtx680",
        "eprof diff 'old-*.eprof' 'new-*.eprof'        repeats of each: intervals and a test",
        "eprof diff release.txt now.txt --costs jetson-tk1 --fail-above 2% --format md",
    )
    inputs = "a log, files of one run as A+B, a directory, a report's JSON, or a 'pattern' of repeats"
    parser.add_argument("old", metavar="OLD", help=inputs)
    parser.add_argument("new", metavar="NEW", help="the same, of the new variant")
    parser.add_pricing("the one made for the GPU of each log")
    parser.add_to_meter()
    for side in ("old", "new"):
        name = side.upper()
        parser.repeatable(f"--{side}", "INPUT", f"one more repeat of {name}", dest=f"more_{side}")
        parser.value(f"--{side}-costs", TABLE, f"cost table of {name} alone")
        parser.value(f"--{side}-setting", SETTING, f"DVFS setting of {name} alone")
        parser.value(
            f"--{side}-energy", "JOULES", f"what a meter saw of {name}'s run, such as 812J: --to-meter with it"
        )
        parser.repeatable(f"--{side}-time", _TIME, f"time for logs without, of {name} alone")
    parser.repeatable("--match", "OLD=NEW", "these two are the same kernel (repeatable)")
    parser.flag("--no-similar", "match kernels by their full names only")
    parser.repeatable(
        "--by",
        "REGEX=NAME",
        "compare groups instead of kernels, as `eprof report --group` makes them: `mark`, `nvtx`, `stream`, `device`, "
        "or rules (repeatable)",
    )
    parser.repeatable(
        "--fail-above",
        "[KERNEL:][WHAT=]P%",
        "exit code 3 if more energy is used: 2%%, dram_read=5%%, time=5%%, my_kernel:2%%, '*:10%%' (repeatable)",
    )
    parser.repeatable("--time", _TIME, "time for logs without, of both sides")
    parser.add_columns()
    parser.add_kernels()
    parser.add_output()
    return parser


def diff(options: argparse.Namespace) -> int:
    """Run `eprof diff`; 0 done, 3 a gate failed, 1 a gate could not be judged."""
    try:
        return _diff(options)
    except EprofError as err:
        if not options.by:
            raise
        # What makes groups calls the option as `eprof report` does.
        raise type(err)(str(err).replace("--group", "--by")) from err


def _diff(options: argparse.Namespace) -> int:
    """As `diff`: compare the variants of the options, write the outputs, say which gates did not pass."""
    options.inputs = [options.old, options.new, *options.more_old, *options.more_new]
    outputs = planned(options)
    from eprof.commands.diff.compare import compare, variant
    from eprof.commands.diff.words import gate_words

    sides = []
    for side in ("old", "new"):
        costs, setting, time, energy = (getattr(options, f"{side}_{option}") for option in _OF_SIDE)
        inputs = [getattr(options, side), *getattr(options, f"more_{side}")]
        try:
            made = variant(
                inputs,
                options.by,
                gpu=costs or options.costs,
                capability=options.capability,
                columns=options.columns,
                time=time or options.time,
                progress=Progress(options.quiet).reading,
                costs=costs or options.costs,
                setting=setting or options.setting,
                efficiency=options.efficiency,
                to_meter=options.to_meter,
                metered_j=joules(energy),
            )
        except UnknownLogError as err:
            from eprof.lab.inputs import clearer_error

            raise clearer_error(inputs, err) from err
        sides.append(made)
    difference = compare(
        *sides,
        match_by_hand=options.match,
        similar=not options.no_similar,
        kernels=options.kernel_name,
        fail_above=options.fail_above,
        by=options.by,
        command_line=options.command_line,
    )
    document = difference.typed
    not_passed = [gate for gate in document.gates if gate.failed is not False]
    try:
        deliver(result_by_modules(document, __package__, options.verbose, frame=difference.to_frame), outputs, options)
    finally:
        for gate in not_passed:
            say(gate_words(gate, document.nouns))
    if any(gate.failed for gate in not_passed):
        return 3
    return int(bool(not_passed))
