"""`eprof doctor`: what this machine can do, and how to mend what is missing."""

import argparse

from eprof.base.text import printable
from eprof.cli.options import Commands, Parser, command


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
    from eprof.commands.doctor.checks import can_run, examine

    checks = examine(profilers.collectors())
    if options.format == "json":
        import json

        from msgspec.structs import asdict

        print(json.dumps({"schema": "eprof.doctor/1", "checks": [asdict(check) for check in checks]}, indent=1))
    else:
        for check in checks:
            print(printable(check.line()))
            if check.remedy:
                print(printable(f"      {check.remedy}"))
    return int(not can_run(checks))
