"""`eprof report` on a log, for tests of what every command has."""

import json

K20C = "k20c-metrics-summary.csv"


def report(eprof_command, *arguments):
    done = eprof_command("report", *arguments)
    assert done.returncode == 0, done.stderr
    return done


def as_json(eprof_command, *arguments):
    return json.loads(report(eprof_command, *arguments, "--format", "json").stdout)
