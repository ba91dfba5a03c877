"""`eprof doctor`: what this machine can do, and how to mend what is missing."""

import argparse
from typing import TYPE_CHECKING

from eprof.base.text import printable
from eprof.cli.options import Commands, Parser, command

if TYPE_CHECKING:
    from eprof.collect.doctor import Check


def add(commands: Commands) -> Parser:
    """The options of `eprof doctor`."""
    parser = command(
        commands,
        "doctor",
        "Look for profilers, driver, GPU, counter permission, power meter, clocks, the simulated device and a cost "
        "table, and say for each problem what mends it. Exit code 0 if `eprof run` can work here, else 1.",
    )
    parser.add_listing()
    return parser


def doctor(options: argparse.Namespace) -> int:
    """Run `eprof doctor`. Exit code 0 if `eprof run` can work here, else 1."""
    from eprof import profilers
    from eprof.collect import doctor as examination

    checks = examination.examine(profilers.collectors())
    checks.insert(-1, _cost_table())
    if options.format == "json":
        import json

        from msgspec.structs import asdict

        print(json.dumps({"schema": "eprof.doctor/1", "checks": [asdict(check) for check in checks]}, indent=1))
    else:
        for check in checks:
            print(printable(check.line()))
            if check.remedy:
                print(printable(f"      {check.remedy}"))
    return 0 if examination.can_run(checks) else 1


def _cost_table() -> "Check":
    from eprof import costs, profilers
    from eprof.base.text import listed
    from eprof.collect.doctor import Check
    from eprof.collect.tools import gpu

    device, _ = gpu()
    tables = ", ".join(costs.tables())
    if device is None:
        defaults = listed([f"{known.name} takes {known.costs}" for known in profilers.collectors() if known.costs])
        detail = f"no GPU to price; {defaults}; there are {tables}"
        return Check("cost table", None, detail)
    table = costs.for_device(device)
    if table is not None:
        return Check("cost table", True, f"{table.name} is made for {device}")
    return Check(
        "cost table",
        False,
        f"none is made for {device}; there are {tables}",
        "eprof run --costs NAME PROGRAM prices it as that board; a table of your own is one file (docs/costs.md)",
    )
