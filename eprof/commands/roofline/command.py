"""`eprof roofline`: roofline, arch line and power line of cost tables, with kernels below them."""

import argparse
from typing import TYPE_CHECKING

from eprof.base import units
from eprof.base.errors import CostError, UsageError
from eprof.base.optional import mapped
from eprof.cli.options import SETTING, TABLE, Commands, Parser, command, is_given
from eprof.cli.output import Result, deliver, loaded, planned

if TYPE_CHECKING:
    from eprof.costs import Costs
    from eprof.profile.profile import Energy
    from eprof.profile.rooflines import Machine
    from eprof.profile.schema import Roofline


def add(commands: Commands) -> Parser:
    """Add `eprof roofline` with its options to the commands; return its parser."""
    parser = command(
        commands,
        "roofline",
        "What a GPU can do at best at each arithmetic intensity: in flop/s (roofline), in flop/J (arch line), and the "
        "power that takes (power line). With logs: how far below the lines their kernels are, and what would lift "
        "them.",
        "eprof roofline --costs gtx580 --costs i7-950 --precision fp64",
        "eprof roofline metrics.csv trace.csv --costs jetson-tk1 -o roofline.html",
        "eprof roofline --costs gtx680 --costs jetson-tk1@852/924 --equal-power",
        "eprof roofline --costs gtx580 --power-cap 244",
        "eprof roofline --costs gtx580 --cap-sweep -o caps.html",
    )
    parser.add_inputs("logs or run directories, as for eprof report", nargs="*")
    first = "cost table, at one of its settings (repeatable; the first prices the kernels)"
    parser.repeatable("--costs", f"{TABLE}[@{SETTING}]", first)
    parser.repeatable("--setting", SETTING, "DVFS setting in MHz of every table that has several (repeatable)")
    parser.choice("--precision", ("fp32", "fp64", "all"), "of the flops (default: the kernels', else FP32)")
    limit = "power limit of the platform, constant power included (repeatable)"
    parser.repeatable("--power-cap", "[NAME=]WATTS", limit)
    caps = "the machine under ever lower power caps: a half, a third ... an eighth of its power above constant power"
    parser.flag("--cap-sweep", caps)
    parser.flag("--equal-power", "as many of each further table as draw the power of the first")
    parser.add_efficiency("as for eprof report")
    parser.add_capability()
    parser.add_kernels()
    parser.add_output()
    return parser


def roofline(options: argparse.Namespace) -> int:
    """Run `eprof roofline`."""
    outputs = planned(options)
    energy = _energy(options)
    machines, warnings = _machines(options, energy)
    from eprof.commands.roofline.document import document, equal_power, sweep, swept

    if options.equal_power and len(machines) < 2:
        raise UsageError("--equal-power compares two tables or more: name each with --costs, the largest first.")
    matches = []
    if options.equal_power:
        matches = [equal_power(machines[0], machine) for machine in machines[1:]]
        machines = [machines[0], *(machine for machine, _ in matches)]
    losses = None
    if options.cap_sweep:
        if len(machines) > 1:
            names = ", ".join(f"{machine.name} {machine.setting} {machine.precision}" for machine in machines)
            raise UsageError(f"--cap-sweep draws one machine, and there are {names}: name one table and one setting.")
        machines = swept(machines[0])
        losses = sweep(machines)
    asked = options.setting or any("@" in text for text in options.costs)
    of_cores = energy and energy.costs and energy.costs.cores_mhz
    if of_cores and energy and energy.costs:
        told = f"Speeds are at the {of_cores:.0f} MHz of the log's cores, prices those at the clock of their table."
        warnings.insert(0, told)
    elif energy and energy.profile.clocks is None and not asked and machines[0].setting != "fixed":
        warnings.insert(0, f"The logs tell no clocks: the lines are at {machines[0].setting} MHz, assumed.")
    made = document(machines, [equal for _, equal in matches], energy, options.command_line, warnings, losses)
    deliver(_result(made, options.verbose), outputs, options)
    return 0


def _result(made: "Roofline", verbose: bool) -> Result:
    """The document of `eprof roofline` as bytes of each kind of file, and as a terminal shows it."""

    def render(kind: str) -> bytes:
        from eprof.commands.roofline import words
        from eprof.commands.roofline.document import frame
        from eprof.show import export

        match kind:
            case "json":
                return export.dumped(made, indent=2) + b"\n"
            case "csv" | "parquet":
                return {"csv": export.to_csv, "parquet": export.to_parquet}[kind](frame(made))
            case "md":
                return words.to_markdown(made)
            case "txt":
                return words.text(made, verbose).encode("utf-8", "backslashreplace")
        from eprof.commands.roofline.page import html

        return html(made).encode("utf-8", "backslashreplace")

    def show() -> None:
        from eprof.commands.roofline import words
        from eprof.show import console

        console.show(words.on_terminal(made, verbose), verbose)

    return Result(render, show)


def _energy(options: argparse.Namespace) -> "Energy | None":
    """The logs' profile, priced with the first table at its first setting; None without logs. Raises UsageError."""
    if not options.inputs:
        if any(is_given(options, key) for key in ("kernel_name", "efficiency", "capability")):
            raise UsageError("-k, --efficiency and --capability are about logs, and none is given.")
        return None
    from eprof import costs

    name = setting = None
    if options.costs:
        name, setting = _table_and_setting(options.costs[0])
    profile = loaded(options, gpu=name)
    is_asked = setting is None and bool(options.setting)
    if is_asked and (name is None or (name != costs.ESTIMATED and len(costs.load(name).settings) > 1)):
        setting = options.setting[0]
    energy = profile.energy(name, setting=setting, efficiency=options.efficiency)
    energy.check_one_gpu("eprof roofline")
    if energy.costs is None:
        how = "name the GPU or a table, as in --costs 'RTX 4090'"
        raise UsageError(f"No cost table is made for what these logs are of; {how}.")
    return energy


def _table_and_setting(text: str) -> tuple[str, str | None]:
    """(table, setting) of an option such as "jetson-tk1@852/924"; the setting is None where none is named."""
    name, _, setting = text.rpartition("@")
    return (name, setting) if name else (text, None)


def _machines(options: argparse.Namespace, energy: "Energy | None") -> tuple[list["Machine"], list[str]]:
    """(machines to draw, each table at each setting asked for, the kernels' first; sentences on those that cannot be).

    Raises CostError if there are none.
    """
    from eprof.profile.rooflines import at_random, machine, main_precision

    if not options.costs and energy is None:
        raise UsageError("Name cost tables (--costs NAME, repeatable), or give logs; `eprof costs` lists the tables.")
    priced = _priced(options, energy)
    names = {costs.name for costs in priced}
    caps = {}  # table name, or "" for all -> W
    for text in options.power_cap:
        name, _, power = text.rpartition("=")
        caps[name] = units.amount(power, units.POWER)
        if name and name not in names:
            raise UsageError(f"--power-cap {text}: no table {name} is drawn; there are {', '.join(sorted(names))}.")
        if not caps[name] > 0:
            raise UsageError(f"--power-cap {text}: say a power above 0, such as 244W, or NAME=244W.")
    main = mapped(lambda energy: main_precision(energy.counts.amounts), energy)
    # Without a wish, the other width stands in where a table cannot say.
    precisions = sorted(("fp32", "fp64"), key=lambda precision: precision != main)
    if options.precision not in (None, "all"):
        precisions = [options.precision]
    machines: list[Machine] = []
    warnings: list[str] = []
    for costs in priced:
        cap, known = caps.get(costs.name, caps.get("")), []
        for precision in precisions:
            try:
                known.append(machine(costs, precision, cap))
            except CostError as err:
                if cap is not None and cap <= costs.constant_power_w:
                    raise
                warnings.append(str(err))
        drawn = known[: {"all": None}.get(options.precision, 1)]
        is_alone = options.equal_power or options.cap_sweep
        machines += [*drawn, *filter(None, (at_random(each, costs) for each in drawn if not is_alone))]
    if not machines:
        raise CostError(" ".join(dict.fromkeys(warnings)))
    if not options.precision:
        warnings.clear()
    return machines, list(dict.fromkeys(warnings))


def _priced(options: argparse.Namespace, energy: "Energy | None") -> list["Costs"]:
    """The cost tables to draw, each at each setting asked for; those that price the kernels come first, and once."""
    from eprof import costs as tables

    priced: list[Costs] = []
    own = mapped(lambda energy: energy.costs, energy)
    for text in options.costs:
        name, setting = _table_and_setting(text)
        table = energy.profile.estimated() if energy and name == tables.ESTIMATED else tables.load(name)
        if energy:
            table = energy.profile.cpu_use.in_use(table)
        settings = [setting]
        if setting is None and options.setting and len(table.settings) > 1:
            settings = options.setting
        # A table that is named without a setting is the kernels' own, at the clocks of their log.
        is_own = own is not None and settings == [None] and table.name == own.name
        priced += [table.at(chosen) for chosen in settings if not is_own]
    if energy is None or own is None:
        return priced
    if options.setting and not options.costs and energy.table is not None:
        priced += [energy.table.at(setting) for setting in options.setting]
    return [own, *(costs for costs in priced if (costs.name, costs.setting) != (own.name, own.setting))]
