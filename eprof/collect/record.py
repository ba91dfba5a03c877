"""The form of `run.json`, as far as eprof uses it: a damaged or foreign one is an error before anything uses it."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

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
    """The record without what is null, which says as much as what is not there."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value if item is not None]
    return value


def misfit(value: Any, form: Any = FORM, where: str = "run.json") -> str | None:
    """What of the record is not as it should be, half a sentence; None if all is well. value: as `without_nulls`."""
    if isinstance(form, Mapping):
        if not isinstance(value, dict):
            return f"{where} is no table of keys and values"
        return _first(misfit(value[key], form[key], f"`{key}`") for key in form if key in value)
    if isinstance(form, list):
        if not isinstance(value, list):
            return f"{where} is no list"
        return _first(misfit(item, form[0], f"an entry of {where}") for item in value)
    if form in (float, int):
        is_number = isinstance(value, int | form) and not isinstance(value, bool)
        return None if is_number and 0 <= value < _LARGEST else f"{where} is no number for it"
    if isinstance(value, form):
        return None
    return f"{where} is no {_KINDS[form]}"


def _first(misfits: Iterable[str | None]) -> str | None:
    return next(filter(None, misfits), None)
