"""Files that are no profiler's log (a meter's, of messages, of measured runs): the error that says what reads them."""

from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from eprof.base.errors import LogError, UnknownLogError
from eprof.base.optional import only
from eprof.base.text import pattern
from eprof.lab.measurements.mapping import choose, suggestion
from eprof.lab.measurements.reading import table
from eprof.lab.measurements.values import MeasurementError
from eprof.lab.power.logs import what_it_is

_POWER = pattern(r"(?i)power(?!.*limit)|watt|energy|joule")
_OF_RUNS = (
    "a table of runs with their power (`{}`) and without counts: beside a profiler's log of one of them give its "
    "joules, --energy J (mean watts times seconds; a largest value is no mean); `eprof tune` compares the runs "
    "(--mapping)"
)


def clearer_error(paths: Sequence[str], err: UnknownLogError, maps_columns: bool = False) -> LogError:
    """The error for files that no reader of profilers' logs knows: what a sole file is, and what reads it; else `err`.

    maps_columns: the command takes --mapping: on columns with unknown names, MeasurementError with one is raised.
    """
    path = only(paths)
    if path is None:
        return err
    if (what := what_it_is(path)) is not None:
        return LogError(f"{path}: this is {what}")
    try:
        frame = table(Path(path), 50)
    except MeasurementError:
        return err
    what = f"a table of measured runs; `eprof fit {quote(path)}` makes prices of them"
    try:
        choose(frame, path)
    except MeasurementError:
        what = f"a table of measured runs; `eprof tune {quote(path)}` says how to name its columns for it"
        if suggestion(frame) and maps_columns:
            raise
        if not suggestion(frame):
            power = next(filter(_POWER.search, frame.columns), None)
            if power is None:
                return err
            what = _OF_RUNS.format(power)
    return LogError(f"{path}: this is {what}")
