"""`eprof tune`: which clocks use least energy, or least energy and time, and what the fastest ones cost."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from eprof.base.errors import EprofError, UnknownLogError, UsageError
from eprof.cli.options import SETTING, TABLE, Commands, Parser, command, matching, only, watts
from eprof.cli.output import Progress, deliver, loaded, planned, result_by_words

if TYPE_CHECKING:
    from eprof.commands.tune.grids import Tuning


def add(commands: Commands) -> Parser:
    """Add `eprof tune` with its options to the commands; return its parser."""
    parser = command(
        commands,
        "tune",
        "For each kernel and for the program: the clocks with the least energy, or energy x time, within "
        "a slowdown or a power limit; against the clocks that ran, or of measurements against the fastest.",
        "eprof tune fmm.eprof --costs jetson-tk1",
        "eprof tune metrics.csv trace.csv --costs my-gpu.toml --setting 852/924 --objective edp",
        "eprof tune fmm.eprof --max-slowdown 5% -o clocks.html",
        "eprof tune measured.csv --costs gtx980.toml",
    )
    parser.add_inputs("logs or a run directory of one program, or measurements (CSV, Parquet)")
    default = "the one made for this GPU; for measurements: refitted without the kernel it is for"
    parser.value("--costs", TABLE, f"cost table (default: {default})")
    parser.value("--setting", SETTING, "where the program runs, in MHz (default: as the log tells)")
    parser.value("--settings", "CORE/MEMORY,...", "choose from these (default: those of the table)")
    parser.value("--objective", "NAME", "energy (default), edp, ed2p, ed3p, or time", default="energy")
    slower = "at most this much more time than now (of measurements: than the fastest), e.g. 5%%"
    parser.value("--max-slowdown", "PERCENT", slower)
    parser.value("--power-limit", "W", "mean power at most; with --objective time: a cap", type=watts)
    parser.choice("--times", ("measured", "modelled"), "of measurements (default: measured)", default="measured")
    parser.mapping()
    parser.add_efficiency("of its peak, on a simulated device")
    parser.add_capability()
    parser.repeatable("--time", "[KERNEL=]TIME", "for logs without times")
    parser.add_jobs()
    parser.add_kernels()
    parser.add_output()
    return parser


def tune(options: argparse.Namespace) -> int:
    """Run `eprof tune`."""
    from eprof.commands.tune import document
    from eprof.lab import objective
    from eprof.lab.inputs import clearer_error
    from eprof.lab.measurements.reading import is_measurements

    goal = objective.parse(options.objective, options.max_slowdown, options.power_limit)
    options.inputs = matching(options.inputs)
    outputs = planned(options)
    kinds = {options.mapping is not None or is_measurements(Path(name)) for name in options.inputs}
    if len(kinds) > 1:
        raise UsageError("Some inputs are measurements, others are logs; tune one kind at a time.")
    try:
        tuning = _measured(options) if kinds.pop() else _profiled(options)
    except UnknownLogError as err:
        raise clearer_error(options.inputs, err, maps_columns=True) from err
    result = document.document(tuning, goal, options.command_line)
    deliver(result_by_words(result, __package__, options.verbose), outputs, options)
    return 0


def _measured(options: argparse.Namespace) -> "Tuning":
    """The grids of measurements, their power predicted by --costs or by fits. Raises UsageError, EprofError."""
    from eprof import costs
    from eprof.base.optional import mapped
    from eprof.commands.tune import grids
    from eprof.lab import measurements

    if options.settings or options.setting:
        raise UsageError("--setting and --settings are for profiles; measurements are at the settings of their rows.")
    measured = measurements.read(options.inputs, options.mapping, kernels=options.kernel_name, only=only(options))
    grids.refuse_untunable(measured)
    table = mapped(costs.load, options.costs)
    checked = grids.time_check(measured)
    modelled = grids.modelled(measured, checked) if options.times == "modelled" else None
    watts, model, notes = grids.predicted(measured, table, options.jobs, Progress(options.quiet).count, modelled)
    notes = [*measured.notes, *notes]
    return grids.from_measurements(measured, watts, model, modelled_rows=modelled, checked=checked, notes=notes)


def _profiled(options: argparse.Namespace) -> "Tuning":
    """The grids of a profile of logs, at every setting of its cost table. Raises EprofError: there is no table."""
    from eprof.commands.tune import grids
    from eprof.commands.tune.setting_in_force import setting_in_force

    profile = loaded(options, gpu=options.costs, time=options.time)
    energy = profile.energy(options.costs, None, options.efficiency, to_meter=False, estimate=False)
    energy.check_one_gpu("eprof tune")
    table = energy.table
    if table is None:
        raise EprofError(
            "No cost table is made for this GPU, so nothing tells what other clocks would take; name one with --costs "
            "(`eprof costs` lists them), or make one: eprof calibrate."
        )
    now = setting_in_force(energy, table, options.setting)
    settings = [name.strip() for name in (options.settings or "").split(",") if options.settings]
    return grids.from_profile(energy, table, settings, now)
