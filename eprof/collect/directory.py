"""What a run directory holds: its names, and `run.json`, of one form. `eprof run` makes them (commands/run)."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eprof.base.errors import CollectError
from eprof.base.resources import content

# ----------------------------------------------------------------------------------------------------------------------
# The form of `run.json`, as far as eprof uses it: a damaged or foreign one is an error before anything uses it.

_LARGEST = 1e15  # J, s, MHz, or processes
_KINDS: Mapping[Any, str] = {str: "text", list: "list", bool: "truth value"}
_ENERGY = {
    "joules": float,
    "window_s": float,
    "runs": int,
    "method": str,
    "core_mhz": float,
    "memory_mhz": float,
    "core_mhz_spread": float,
    "slowed_by": [str],
}
FORM: Mapping[str, Any] = {
    "status": str,
    "program": [str],
    "command": str,
    "commit": str,
    "started_utc": str,
    "whole": bool,
    "warnings": [str],
    "profiler": {"name": str},
    "device": {"name": str, "capability": str},
    "meter": {"name": str, "covers": str, "devices": list},
    "host": {"name": str},
    "environment": {},
    "pricing": {"costs": str, "setting": str, "efficiency": float},
    "cluster": {"name": str, "program": str, "processes": int, "nodes": int, "size": float, "marks": [str]},
    "measurements": [
        {
            "what": str,
            "number": int,
            "command": [str],
            "seconds": float,
            "cpu_seconds": float,
            "system_seconds": float,
            "page_faults": int,
            "io": {
                "asked_read_bytes": int,
                "asked_written_bytes": int,
                "read_bytes": int,
                "written_bytes": int,
                "device_s": float,
            },
            "left_out_s": {"Python's start and end": float, "imports": float},
            "energy": _ENERGY,
            "started_utc": str,
            "runs": int,
        }
    ],
}


def parse(text: str) -> Any:
    """The record in the JSON of `run.json`. Raises ValueError with the reason, also for one nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError as err:
        raise ValueError("it is nested too deeply") from err


def without_nulls(value: Any) -> Any:
    """A value of JSON without its nulls, at any depth: null means the same as a key that is not there."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value if item is not None]
    return value


def misfit(value: Any, form: Any = FORM, where: str = "run.json") -> str | None:
    """Half a sentence on what in `value` is not of `form`; None if all is. value: as `without_nulls` gives it."""
    if isinstance(form, Mapping):
        if not isinstance(value, dict):
            return f"{where} is no table of keys and values"
        return next(filter(None, (misfit(value[key], form[key], f"`{key}`") for key in form if key in value)), None)
    if isinstance(form, list):
        if not isinstance(value, list):
            return f"{where} is no list"
        return next(filter(None, (misfit(item, form[0], f"an entry of {where}") for item in value)), None)
    if form in (float, int):
        is_number = isinstance(value, int | form) and not isinstance(value, bool)
        return None if is_number and 0 <= value < _LARGEST else f"{where} is no number for it"
    if isinstance(value, form):
        return None
    return f"{where} is no {_KINDS[form]}"


SCHEMA = "eprof.run/1"
MANIFEST = "run.json"
COMPONENTS, MARKS = "components.csv", "marks.csv"  # power by component, and what ran when, on one clock
COMPLETE, PARTIAL = "complete", "partial"
# What is left out of the time of a program alone, beside the parts of it that nothing is counted of.
OTHER_CODE = "Valgrind's processor has no "  # begins a message: libraries may have run other code than without it
QUEUED, SLEPT = "waits for a processor that others had", "what it slept or waited"
_MOST_BYTES = 64 << 20  # of run.json


def is_run_directory(path: Path) -> bool:
    """Whether `path` looks like what a run leaves: a `run.json` or, if it was killed early, a `logs` folder."""
    # Unlike Path.is_dir these do not raise where a folder may not be looked into.
    return os.path.isfile(path / MANIFEST) or os.path.isdir(path / "logs")  # noqa: PTH112, PTH113


def manifest(path: Path) -> dict[str, Any] | None:
    """The content of `run.json`, checked against `FORM`; None if there is none. Raises CollectError."""
    file, mend = path / MANIFEST, "move it away to report on the logs alone."
    if file.exists() and not file.is_file():
        raise CollectError(f"{file}: is not a plain file; {mend}")
    try:
        data = without_nulls(parse(content(file, _MOST_BYTES).decode()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as err:
        why = getattr(err, "strerror", None) or err
        raise CollectError(f"{file}: cannot be read ({why}); {mend}") from err
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise CollectError(f"{file}: is not a run of {SCHEMA}; made by another version of eprof?")
    if wrong := misfit(data):
        raise CollectError(f"{file}: is damaged ({wrong}); {mend}")
    return data
