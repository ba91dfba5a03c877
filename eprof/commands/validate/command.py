"""`eprof validate`: predicted against measured power and energy."""

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from eprof.base.errors import UsageError
from eprof.base.optional import mapped
from eprof.cli.options import SETTING, TABLE, Commands, Parser, command, is_given, matching, only
from eprof.cli.output import Progress, deliver, planned, result_by_words, say

if TYPE_CHECKING:
    from eprof.commands.validate.similar_kernels import Candidate
    from eprof.commands.validate.study import Study
    from eprof.costs import CostTable
    from eprof.logs.runs import Measured, Run

GATE_FAILED = 3
_PROTOCOLS = ("fit", "holdout", "leave-one-setting-out", "leave-one-benchmark-out", "k-fold", "k-fold-benchmarks")


def add(commands: Commands) -> Parser:
    """Add `eprof validate` with its options to the commands; return its parser."""
    parser = command(
        commands,
        "validate",
        "How far to trust a cost table, or the fit that makes one: predictions are held against measured "
        "power. With --costs a table is scored as it is; without, the fit is made anew in every fold of a protocol, "
        "from the training rows alone.",
        "eprof validate measured.csv --costs gtx980.toml -o validation.html",
        "eprof validate measured.csv --protocol leave-one-benchmark-out --baselines",
        "eprof validate apps.csv --train microbenchmarks.csv --scale",
        "eprof validate fmm.eprof --costs jetson-tk1 --max-error 10%",
        "eprof validate fmm.eprof --power powermon.csv --component gpu",
        "eprof validate bfs-1.dcgm lbm-1.dcgm --device A100 --protocol leave-one-benchmark-out --baselines",
    )
    inputs = "measurements (CSV, Parquet), run directories with measured energy, or logs of DCGM, one a program"
    parser.add_inputs(inputs)
    parser.value("--costs", TABLE, "score this cost table as it is")
    parser.value("--setting", SETTING, "of the table, for run directories and rows alike (default: their own)")
    refit = (
        "refit in every fold of this protocol (repeatable; default without --costs and --train: fit, "
        "leave-one-setting-out and leave-one-benchmark-out)"
    )
    parser.choice("--protocol", _PROTOCOLS, refit, action="append", default=[])
    parser.repeatable("--marks", "FILE", "programs of sampled logs by what ran when, as eprof timeline takes it")
    parser.repeatable("--train", "FILE", "train on FILE, test on INPUT")
    parser.value("--holdout", "CORE/MEMORY,...", "settings to test on (default: every other one, as on a chess board)")
    parser.value("--folds", "K", "parts of k-fold (default 10)", type=int, default=10)
    scaled = (
        "also with measured scale factors for kernels that are new to the model: one for each kernel (default), or "
        "that of one metered kernel for all others"
    )
    parser.choice("--scale", ("kernel", "card"), scaled, nargs="?", const="kernel")
    parser.flag("--baselines", "also constant power, V = 1, regressions, a neural network")
    drawn = "the measured GPU: fits are drawn to energies of other GPUs, as those of `eprof fit` (default: to none)"
    parser.value("--device", "NAME", drawn)
    logged = "what an external meter logged while the run directories were made, as for eprof timeline (repeatable)"
    parser.repeatable("--power", "FILE", logged)
    parser.repeatable("--component", "NAME", "of the logs of --power: what the program ran on")
    parser.mapping()
    parser.repeatable("--profile", "INPUT", "logs of your kernels: which measured ones are like them")
    parser.flag("--time", "also modelled against measured times: by component, and the roofline's")
    parser.value("--max-error", "PERCENT", "exit with 3 if a mean error is above this, e.g. 10%%")
    parser.add_jobs()
    parser.add_kernels()
    parser.add_output()
    return parser


def validate(options: argparse.Namespace) -> int:
    """Run `eprof validate`; exit code 3 if a mean error is above --max-error."""
    from eprof import costs
    from eprof.commands.validate.document import document as document_of
    from eprof.commands.validate.similar_kernels import candidates_in
    from eprof.commands.validate.study import times
    from eprof.commands.validate.whole_runs import held_against_meter, sorted_inputs
    from eprof.lab.objective import percentage
    from eprof.profile import api

    options.inputs = matching(options.inputs)
    outputs = planned(options)
    limit = mapped(percentage, options.max_error, "--max-error")
    if options.profile and options.costs is None:
        raise UsageError("--profile needs --costs, which says what a count pays.")
    files, runs = sorted_inputs(options.inputs)
    if is_given(options, "setting") and not runs and options.costs is None:
        raise UsageError("--setting is one of a cost table; name it with --costs.")

    table = mapped(costs.load, options.costs)
    if table is not None and options.device:
        table = table.on(options.device)
    study = _study(files, table, options) if files else None
    notes: list[str] = []
    meter = _meter(options, runs, notes)
    whole_runs, unmetered = held_against_meter(runs, options.costs, options.setting, options.kernel_name, meter)
    notes += unmetered
    candidates: list[Candidate] = []
    if options.profile:
        if table is None or study is None:
            raise UsageError("--profile needs measurements to look among; the inputs are run directories alone.")
        candidates = candidates_in(api.load(*options.profile), table, study)
    modelled_times = None
    if options.time:
        if table is None or study is None:
            raise UsageError("--time needs measurements, and --costs, which describes the GPU's multiprocessors.")
        modelled_times = times(table, study.measurements)
    document = document_of(
        study, whole_runs, candidates, options.command_line, notes, max_error_percent=limit, times=modelled_times
    )
    deliver(result_by_words(document, __package__, options.verbose), outputs, options)
    if document.gate is None or document.gate.passed:
        return 0
    from eprof.commands.validate.words import verdicts

    for verdict in verdicts(document):
        say(verdict.text)
    return GATE_FAILED


def _meter(options: argparse.Namespace, runs: list[Path], notes: list[str]) -> "Callable[[Run], Measured] | None":
    """A function that gives what the logs of `--power` saw of a run; None without logs. notes: gets their notes."""
    if not options.power:
        if options.component:
            raise UsageError("--component is one of a power log; name the log with --power.")
        return None
    if not runs:
        raise UsageError("--power is what a meter saw of run directories, and none is given.")
    if options.kernel_name:
        raise UsageError("--power is of whole programs, so -k cannot choose some of their kernels.")
    from eprof.commands.validate.whole_runs import chosen, measured
    from eprof.lab.power import logs as power

    paths = dict.fromkeys(matching(options.power))
    series = chosen([each for path in paths for each in power.read(path, notes)], options.component, notes)
    return lambda run: measured(run, series, notes)


def _study(files: list[Path], table: "CostTable | None", options: argparse.Namespace) -> "Study":
    """The study that options ask for: files of measurements read, and validated by table or protocols."""
    from eprof.commands.validate import study
    from eprof.lab import measurements, programs
    from eprof.lab.fitting.solve import form_for
    from eprof.lab.measurements.settings import parse_setting

    named, naming = options.costs or options.device, "name a table or the GPU with --costs or --device"
    sampled = programs.reader(list(map(str, files)), named, naming, options.marks, levels=table is not None)
    of_rows = partial(measurements.read, kernels=options.kernel_name, only=only(options))
    read = sampled or partial(of_rows, mapping=options.mapping, device=options.device)
    measured = read(files)
    train = mapped(read, options.train or None)
    holdout = options.holdout.split(",") if options.holdout else []
    plan = study.Plan(
        protocols=[name.replace("-", "_") for name in dict.fromkeys(options.protocol)],
        form=mapped(lambda device: form_for(measured, device), options.device or None),
        holdout=[parse_setting(setting) for setting in holdout],
        folds=options.folds,
        baselines=options.baselines,
        scale=options.scale,
        processes=options.jobs,
    )
    with Progress(options.quiet).begin("validating") as progress:
        return study.validate(measured, plan, table=table, setting=options.setting, train=train, report=progress.count)
