"""`eprof validate`: predicted against measured power and energy."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eprof.base.errors import EprofError, UsageError
from eprof.base.kernels import selector
from eprof.base.text import printable
from eprof.cli.config import asked
from eprof.cli.options import add_output, matching, positive
from eprof.cli.output import deliver, of_document, planned

if TYPE_CHECKING:
    from eprof.costs import CostTable
    from eprof.measurements import Measurements
    from eprof.validation.document import WholeRun
    from eprof.validation.study import Plan, Report, Validation

GATE_FAILED = 3
_PROTOCOLS = (
    "fit",
    "holdout",
    "leave-one-setting-out",
    "leave-one-benchmark-out",
    "k-fold",
    "k-fold-benchmarks",
)


def add_validate(commands: Any) -> argparse.ArgumentParser:
    """The options of `eprof validate`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "validate",
        help="predicted against measured power: errors, cross-validation, plots",
        description="How far to trust a cost table, or the fit that makes one: predictions are held against measured "
        "power. With --costs a table is scored as it is; without, the fit is made anew in every fold of a protocol, "
        "from the training rows alone.",
        epilog="Examples:\n  eprof validate measured.csv --costs gtx980.toml -o validation.html\n"
        "  eprof validate measured.csv --protocol leave-one-benchmark-out --baselines\n"
        "  eprof validate apps.csv --train microbenchmarks.csv --scale\n"
        "  eprof validate fmm.eprof --costs jetson-tk1 --max-error 10%",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "inputs",
        nargs="+",
        metavar="INPUT",
        help="measurements (CSV, Parquet), or run directories with measured energy",
    )
    parser.add_argument("--costs", metavar="NAME|FILE", help="score this cost table as it is")
    parser.add_argument("--setting", metavar="CORE/MEMORY", help="of run directories, in MHz (default: the run's)")
    parser.add_argument(
        "--protocol",
        action="append",
        default=[],
        choices=_PROTOCOLS,
        help="refit in every fold of this protocol (repeatable; default without --costs and --train: fit, "
        "leave-one-setting-out and leave-one-benchmark-out)",
    )
    parser.add_argument("--train", action="append", default=[], metavar="FILE", help="train on FILE, test on INPUT")
    parser.add_argument(
        "--holdout",
        metavar="CORE/MEMORY,...",
        help="settings to test on (default: every other one, as on a chess board)",
    )
    parser.add_argument("--folds", type=int, default=10, metavar="K", help="parts of k-fold (default 10)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of what is dealt at random (default 0)")
    parser.add_argument(
        "--scale",
        action="store_true",
        help="also with one measured scale factor for each kernel that is new to the model",
    )
    parser.add_argument(
        "--baselines", action="store_true", help="also constant power, V = 1, regressions, a neural network"
    )
    parser.add_argument(
        "--device",
        metavar="NAME",
        help="the measured GPU: fits are drawn to energies of other GPUs, as those of `eprof fit` (default: to none)",
    )
    parser.add_argument("--mapping", metavar="NAME|FILE", help="what the columns mean (default: told by their names)")
    parser.add_argument(
        "--profile",
        action="append",
        default=[],
        metavar="INPUT",
        help="logs of your kernels: which measured ones are like them",
    )
    parser.add_argument("--max-error", metavar="PERCENT", help="exit with 3 if a mean error is above this, e.g. 10%%")
    parser.add_argument("--jobs", type=positive, metavar="N", help="processes at most (default: as many as cores)")
    add_output(parser, "write .html .json .csv .parquet .md or .txt", "output files")
    return parser


def validate(options: argparse.Namespace) -> int:
    """Run `eprof validate`; 3 if the gate fails."""
    from dataclasses import asdict

    from eprof.validation import document as documents

    options.inputs = matching(options.inputs)
    outputs, limit = planned(options), _percent(options.max_error)
    if options.profile and options.costs is None:
        raise UsageError("--profile needs --costs, which says what a count pays.")
    files, runs = _sorted_inputs(options.inputs)
    table = _table(options.costs)
    if asked(options, "setting") and not runs:
        raise UsageError("--setting is about run directories; measurements tell their settings by themselves.")
    checked, notes = _validation(files, table, options) if files else (None, [])
    whole, more = _whole_runs(runs, options) if runs else ([], [])
    found = documents.document(
        checked,
        whole_runs=whole,
        candidates=_candidates(options.profile, table, checked),
        command_line=options.command_line,
        notes=[*notes, *more],
    )
    gate = None if limit is None else documents.gate(found, limit)
    if gate is not None:
        found["gate"] = {**asdict(gate), "passed": gate.passed}
    deliver(of_document(found, _room, options.verbose), outputs, options)
    if gate is None or gate.passed:
        return 0
    print(f"eprof: {printable(_room('console').gate_words(found['gate']))}", file=sys.stderr)
    return GATE_FAILED


def _room(what: str) -> Any:
    """What makes a form of the result."""
    match what:
        case "page":
            from eprof.page import validation

            return validation
        case "console":
            from eprof.terminal import validation as console_validation

            return console_validation
        case _:
            from eprof.validation import tables

            return tables


def _percent(text: str | None) -> float | None:
    """A limit in per cent: "10%", "10". Raises UsageError."""
    if text is None:
        return None
    try:
        found = float(text.strip().removesuffix("%"))
    except ValueError:
        found = -1.0
    if not 0 <= found < float("inf"):
        raise UsageError(f"--max-error {text}: is no percentage; write one such as 10%.")
    return found


def _sorted_inputs(inputs: list[str]) -> tuple[list[Path], list[Path]]:
    """Files of measurements, and run directories. Raises EprofError for what is not there."""
    from eprof.logs import runs

    files: list[Path] = []
    directories: list[Path] = []
    for name in inputs:
        path = Path(name)
        if not path.exists():
            raise EprofError(f"{name}: there is no such file or directory.")
        if path.is_dir() and not runs.is_run(path):
            raise EprofError(f"{name}: is a directory, but no run directory of `eprof run`.")
        (directories if path.is_dir() else files).append(path)
    return files, directories


def _table(name: str | None) -> "CostTable | None":
    from eprof import costs

    return None if name is None else costs.load(name)


def read_measurements(paths: list[Path], options: argparse.Namespace) -> "Measurements":
    """The measurements of all files, and of the kernels that -k names. Raises EprofError: no kernel is left."""
    from eprof import measurements

    found = measurements.read(paths, options.mapping)
    if not options.kernel_name:
        return found
    is_wanted = selector(options.kernel_name)
    rows = found.rows
    names = zip(rows["kernel"], rows["benchmark"], strict=True)
    kept = [at for at, both in enumerate(names) if any(is_wanted(str(name)) for name in both)]
    if not kept:
        raise EprofError(f"No kernel is left: -k {', '.join(options.kernel_name)} matches none of the measured ones.")
    return found.take(kept)


def _validation(
    files: list[Path], table: "CostTable | None", options: argparse.Namespace
) -> "tuple[Validation, list[str]]":
    from eprof.validation import study

    measured = read_measurements(files, options)
    train = read_measurements([Path(one) for one in options.train], options) if options.train else None
    plan, notes = _plan(options, measured, refit=table is None and train is None)
    with Progress(options.quiet) as report:
        return study.validate(measured, plan, table=table, train=train, report=report), notes


def _plan(options: argparse.Namespace, measured: "Measurements", refit: bool) -> "tuple[Plan, list[str]]":
    """What to run; the default protocols only where the rows can be split by them, with a note where not."""
    from eprof.fitting.defaults import form_for, form_without_prior
    from eprof.validation import protocols, study

    notes: list[str] = []
    names = [one.replace("-", "_") for one in dict.fromkeys(options.protocol)]
    if options.holdout and protocols.HOLDOUT not in names:
        names.append(protocols.HOLDOUT)
    if not names and refit:
        names = [protocols.FIT]
        if len(measured.settings) > 1:
            names.append(protocols.LEAVE_ONE_SETTING_OUT)
        else:
            notes.append("One setting only: nothing is known of other clocks, and no setting can be left out.")
        if measured.own:
            notes.append("No counts: each kernel has unknowns of its own, and none can be predicted from the others.")
        elif measured.rows["benchmark"].nunique() > 1:
            names.append(protocols.LEAVE_ONE_BENCHMARK_OUT)
        else:
            notes.append("One kernel only: nothing is known of other kernels.")
    validation = [protocols.parse(one) for one in options.holdout.split(",")] if options.holdout else []
    plan = study.Plan(
        protocols=names,
        validation=validation,
        folds=options.folds,
        seed=options.seed,
        form=form_for(measured, options.device) if options.device else form_without_prior(measured),
        baselines=options.baselines,
        scale=options.scale,
        processes=options.jobs,
    )
    return plan, notes


def _whole_runs(paths: list[Path], options: argparse.Namespace) -> "tuple[list[WholeRun], list[str]]":
    """Predicted against measured energy of run directories; those without a meter are named in a note."""
    from eprof import api
    from eprof.base.marks import names
    from eprof.validation.document import WholeRun

    found, notes = [], []
    for path in paths:
        energy = api.load(path, kernels=options.kernel_name).energy(options.costs, options.setting)
        measured = energy.measured
        if energy.costs is None:
            raise EprofError(f"{path}: no cost table is made for this GPU; name one with --costs.")
        if measured is None:
            notes.append(f"{path}: no meter was read in this run, so there is nothing to hold a prediction against.")
            continue
        split = energy.split
        assert split is not None
        total = float(split.total_j.sum(min_count=1))
        marks = 0
        for one in split.row_marks:
            marks |= int(one)
        found.append(
            WholeRun(
                str(path),
                total if total == total else None,
                measured.joules,
                measured.method,
                measured.reasons(),
                tuple(names(marks)),
            )
        )
    if not found and len(paths) == len(options.inputs):
        raise EprofError(f"{notes[0]} Run it again where `eprof doctor` finds a meter.")
    return found, notes


def _candidates(inputs: list[str], table: "CostTable | None", checked: "Validation | None") -> list[dict[str, Any]]:
    """Kernels of a profile with the measured ones that are most like them."""
    if not inputs:
        return []
    if table is None or checked is None:
        raise UsageError("--profile needs measurements to look among; the inputs are run directories alone.")
    from eprof import api
    from eprof.validation import candidates

    return candidates.find(api.load(*inputs), table, checked)


class Progress:
    """A bar on a terminal, nothing elsewhere. `with Progress(quiet) as report`."""

    def __init__(self, quiet: bool) -> None:
        self._wanted = not quiet and sys.stderr.isatty()

    def __enter__(self) -> "Report | None":
        if not self._wanted:
            return None
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._bar.start()
        self._tasks: dict[str, Any] = {}
        return self._report

    def _report(self, words: str, done: int, of: int) -> None:
        if words not in self._tasks:
            for task in self._tasks.values():
                self._bar.update(task, visible=False)
            self._tasks[words] = self._bar.add_task(printable(words), total=of)
        self._bar.update(self._tasks[words], completed=done)

    def __exit__(self, *exc: object) -> None:
        if self._wanted:
            self._bar.stop()
