"""The form of `run.json`, as far as eprof uses it: a damaged or foreign one is told before anything is made of it."""

import json
from collections.abc import Mapping
from typing import Any

_LARGEST = 1e15  # J, s, MHz, or processes
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
    "warnings": [str],
    "profiler": {"name": str},
    "device": {"name": str, "capability": str},
    "meter": {"name": str, "covers": str, "devices": list},
    "pricing": {"costs": str, "setting": str, "efficiency": float},
    "measurements": [{"what": str, "number": int, "command": [str], "energy": _ENERGY}],
}


def parse(text: str) -> Any:
    """The JSON in `text`. Raises ValueError with the reason, also for one nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError as err:
        raise ValueError("it is nested too deeply") from err


def told(value: Any) -> Any:
    """The same without what is nothing (null), which says as much as what is not there."""
    if isinstance(value, dict):
        return {key: told(one) for key, one in value.items() if one is not None}
    return [told(one) for one in value if one is not None] if isinstance(value, list) else value


def misfit(value: Any, form: Any = FORM, where: str = "run.json") -> str | None:
    """What is not as it should be, half a sentence; None if all is well. value: as `told`."""
    if isinstance(form, Mapping):
        if not isinstance(value, dict):
            return f"{where} is no table of keys and values"
        parts = [misfit(value[key], form[key], f"`{key}`") for key in form if key in value]
    elif isinstance(form, list):
        if not isinstance(value, list):
            return f"{where} is no list"
        parts = [misfit(one, form[0], f"an entry of {where}") for one in value]
    elif form in (float, int):
        number = isinstance(value, int | form) and not isinstance(value, bool)
        parts = [None if number and 0 <= value < _LARGEST else f"{where} is no number for it"]
    else:
        parts = [None if isinstance(value, form) else f"{where} is no {'text' if form is str else 'list'}"]
    return next((one for one in parts if one), None)
