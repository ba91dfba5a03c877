"""`eprof doctor`: what this machine can do, and how to mend what is missing."""

import argparse

from eprof.base.text import printable
from eprof.cli.options import Commands, Parser, command

_SIGNS = {True: "ok   ", False: "NO   ", None: "-    "}


def add(commands: Commands) -> Parser:
    """Add `eprof doctor` with its options to the commands; return its parser."""
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
    from eprof.commands.doctor.checks import examine

    checks = examine(profilers.collectors())
    if options.format == "json":
        import json

        from msgspec.structs import asdict

        print(json.dumps({"schema": "eprof.doctor/1", "checks": [asdict(check) for check in checks]}, indent=1))
    else:
        for check in checks:
            print(printable(f"{_SIGNS[check.ok]} {check.name}: {check.detail}"))
            if check.remedy:
                print(printable(f"      {check.remedy}"))
    return int(not any(check.name == "eprof run" and check.ok for check in checks))
