"""`eprof roofline`: roofline, arch line and power line of cost tables, with kernels below them."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from eprof.base.errors import CostError, UsageError
from eprof.cli.config import asked
from eprof.cli.options import add_output
from eprof.cli.output import Result, deliver, planned

if TYPE_CHECKING:
    from eprof.costs import Costs
    from eprof.profile.profile import Energy
    from eprof.rooflines import Machine, Match


def add(commands: Any) -> argparse.ArgumentParser:
    """The options of `eprof roofline`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "roofline",
        help="roofline, arch line and power line of cost tables, kernels below them",
        description="What a GPU can do at best at each arithmetic intensity: in flop/s (roofline), in flop/J (arch "
        "line), and the power that takes (power line). With logs: how far below the lines their kernels are, and what "
        "would lift them.",
        epilog="Examples:\n  eprof roofline --costs gtx580 --costs i7-950 --precision fp64\n"
        "  eprof roofline metrics.csv trace.csv --costs jetson-tk1 -o roofline.html\n"
        "  eprof roofline --costs gtx680 --costs jetson-tk1@852/924 --equal-power\n"
        "  eprof roofline --costs gtx580 --power-cap 244",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("inputs", nargs="*", metavar="INPUT", help="logs or run directories, as for eprof report")
    parser.add_argument(
        "--costs",
        action="append",
        default=[],
        metavar="NAME|FILE[@CORE/MEMORY]",
        help="cost table, at one of its settings (repeatable; the first prices the kernels)",
    )
    parser.add_argument(
        "--setting",
        action="append",
        default=[],
        metavar="CORE/MEMORY",
        help="DVFS setting in MHz of every table that has several (repeatable)",
    )
    parser.add_argument(
        "--precision", choices=("fp32", "fp64", "all"), help="of the flops (default: the kernels', else FP32)"
    )
    parser.add_argument(
        "--power-cap",
        action="append",
        default=[],
        metavar="[NAME=]WATTS",
        help="power limit of the platform, constant power included (repeatable)",
    )
    parser.add_argument(
        "--equal-power", action="store_true", help="as many of each further table as draw the power of the first"
    )
    parser.add_argument("--efficiency", type=float, metavar="FRACTION", help="as for eprof report")
    parser.add_argument("--capability", metavar="X.Y", help="compute capability, where the device's name does not tell")
    add_output(parser, "write .html .json .csv .parquet .md or .txt", "output files")
    return parser


def add_questions(parser: argparse.ArgumentParser) -> None:
    """`--what-if` and `--group` of `eprof report`."""
    parser.add_argument(
        "--what-if",
        action="append",
        default=[],
        metavar="CHANGES",
        help="modelled answer to e.g. pi0=0.5, dram=-20%%, setting=612/924, costs=gtx680, cap=10W, integer=free, race; "
        "several joined by commas are one question (repeatable)",
    )
    parser.add_argument(
        "--group",
        action="append",
        default=[],
        metavar="REGEX=NAME",
        help="kernels whose name matches are one group, e.g. a phase (repeatable; the first match counts); or "
        "`device`, `rank`, `stream`, `nvtx`",
    )
    parser.add_argument(
        "--rank",
        metavar="REGEX",
        help=r"with --group rank: where logs' paths tell it, e.g. 'rank(\d+)' (default: the one number that differs)",
    )


def parts(groups: Sequence[str]) -> str | None:
    """What `--group` tells the rows of a kernel apart by: "rank", "stream" or "nvtx", else None."""
    return next((one for one in groups if one in ("rank", "stream", "nvtx")), None)


def roofline(options: argparse.Namespace) -> int:
    """Run the command."""
    outputs = planned(options)
    energy = _energy(options)
    machines, warnings = _machines(options, energy)
    matches = _matches(machines) if options.equal_power else []
    from eprof.profile.roofline_document import document

    drawn = [machines[0], *(one.machine for one in matches)] if matches else machines
    made = document(drawn, matches, energy, options.command_line, warnings)

    def show() -> None:
        from eprof.terminal import roofline as console_roofline

        console_roofline.show(made, verbose=options.verbose)

    deliver(Result(lambda kind: _render(kind, made, options.verbose), show), outputs, options)
    return 0


def _energy(options: argparse.Namespace) -> "Energy | None":
    """The kernels of the logs, priced with the first table at its first setting; None without logs."""
    if not options.inputs:
        if any(asked(options, one) for one in ("kernel_name", "efficiency", "capability")):
            raise UsageError("-k, --efficiency and --capability are about logs, and none is given.")
        return None
    from eprof import api

    profile = api.load(
        *options.inputs,
        capability=options.capability,
        kernels=options.kernel_name,
        command_line=options.command_line,
    )
    name, setting = _at(options.costs[0]) if options.costs else (None, None)
    if setting is None and options.setting and (name is None or _has_settings(name)):
        setting = options.setting[0]
    energy = profile.energy(name, setting=setting, efficiency=options.efficiency)
    if energy.costs is None:
        raise UsageError("No cost table is made for the GPU of these logs; choose one with --costs.")
    return energy


def _at(text: str) -> tuple[str, str | None]:
    """The table and the setting of "jetson-tk1@852/924"."""
    name, found, setting = text.rpartition("@")
    return (name, setting) if found and name else (text, None)


def _has_settings(name: str) -> bool:
    from eprof import costs

    return len(costs.load(name).settings) > 1


def _machines(options: argparse.Namespace, energy: "Energy | None") -> tuple[list["Machine"], list[str]]:
    """The machine of every table at every setting asked for, the kernels' first; and what is left out."""
    from eprof import costs as tables
    from eprof.rooflines import machine, main_precision

    if not options.costs and energy is None:
        raise UsageError("Name cost tables (--costs NAME, repeatable), or give logs; `eprof costs` lists the tables.")
    priced: list[Costs] = [energy.costs] if energy is not None and energy.costs is not None else []
    for text in options.costs:
        name, setting = _at(text)
        table = tables.load(name)
        several = options.setting if setting is None and len(table.settings) > 1 else []
        priced += [table.at(one) for one in ([setting] if setting else several or [None])]
    if energy is not None and options.setting and not options.costs and energy.table is not None:
        priced += [energy.table.at(one) for one in options.setting]
    if len(priced) > 1 and energy is not None:
        own = priced[0]
        priced[1:] = [one for one in priced[1:] if (one.name, one.setting) != (own.name, own.setting)]
    caps = _caps(options.power_cap, {one.name for one in priced})
    wanted = _precisions(options.precision, main_precision(energy.counts.amounts) if energy is not None else None)
    found: list[Machine] = []
    warnings: list[str] = []
    for one in priced:
        made = [made for precision in wanted if (made := _try(machine, one, precision, caps, warnings)) is not None]
        found += made if options.precision == "all" else made[:1]
    if not found:
        raise CostError(" ".join(dict.fromkeys(warnings)))
    return found, list(dict.fromkeys(warnings)) if options.precision else []


def _precisions(asked: str | None, main: str | None) -> list[str]:
    """The widths to try, the wanted one first; without a wish, the other one stands in where a table lacks it."""
    if asked not in (None, "all"):
        return [str(asked)]
    return ["fp64", "fp32"] if main == "fp64" else ["fp32", "fp64"]


def _try(make: Any, costs: "Costs", precision: str, caps: dict[str, float], warnings: list[str]) -> "Machine | None":
    cap = caps.get(costs.name, caps.get(""))
    if cap is not None and cap <= costs.constant_power_w:
        make(costs, precision, cap)  # says why
    try:
        found: Machine = make(costs, precision, cap)
    except CostError as err:
        warnings.append(str(err))
        return None
    return found


def _caps(texts: list[str], names: set[str]) -> dict[str, float]:
    """Table name (or "" for all) -> its power cap in W. Raises UsageError."""
    found = {}
    for text in texts:
        name, _, watts = text.rpartition("=")
        try:
            found[name] = float(watts.strip().removesuffix("W"))
        except ValueError:
            raise UsageError(f"--power-cap {text}: say watts, such as 244, or NAME=244.") from None
        if name and name not in names:
            raise UsageError(f"--power-cap {text}: no table {name} is drawn; there are {', '.join(sorted(names))}.")
        if not found[name] > 0:
            raise UsageError(f"--power-cap {text}: say more than 0 W.")
    return found


def _matches(machines: list["Machine"]) -> list["Match"]:
    from eprof.rooflines import equal_power

    if len(machines) < 2:
        raise UsageError("--equal-power compares two tables or more: name each with --costs, the largest first.")
    return [equal_power(machines[0], other) for other in machines[1:]]


def _render(kind: str, made: Any, verbose: bool) -> bytes:
    if kind == "html":
        from eprof.page.roofline import html

        return html(made).encode("utf-8", "backslashreplace")
    if kind == "txt":
        from eprof.terminal import roofline as console_roofline

        return console_roofline.text(made, verbose=verbose).encode("utf-8", "backslashreplace")
    from eprof.files import roofline as export_roofline

    return export_roofline.render(kind, made)
