"""Profiles of Python programs: what Python called, and the library that did it, instead of functions of C.

`hook/sitecustomize.py` has callgrind write a part of its profile now and then, and say which line of Python ran then.
So counts are exact, and which line has them is as sure as a sampling profiler.
"""

import functools
import linecache
import re
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from eprof.base.resources import folder
from eprof.base.text import pattern
from eprof.base.toml import Document
from eprof.profilers.callgrind.file_format import Costs, Function, Spot

_FRAME = pattern(r"(?P<file>.*):(?P<line>\d+):(?P<begin>\d*):(?P<end>\d*) (?P<function>.*)")
_UNKNOWN = "line not told"  # of what ran behind the last part that the program told the place of


def in_python(costs: Costs) -> Costs:
    """A profile of a Python program with a function for what Python called and each library, at lines of Python.

    A profile of another program stays as it is.
    """
    if not any(spot.frame for spot in costs.spots):
        return costs
    called = [_called(spot.frame) for spot in costs.spots]
    libraries = [library(function.object) for function in costs.functions]
    spots: dict[Spot, int] = {}
    functions: dict[Function, int] = {}
    spot_of, places = [], []
    for place, spot in zip(costs.places.tolist(), costs.spot_of.tolist(), strict=True):
        name, where = called[spot]
        function = Function("", f"{name}, {libraries[place]}")
        places.append(functions.setdefault(function, len(functions)))
        spot_of.append(spots.setdefault(where, len(spots)))
    # Who called whom is told of functions of C, which are no rows any more.
    return replace(
        costs,
        functions=tuple(functions),
        spots=tuple(spots),
        places=np.array(places, dtype=np.int64),
        spot_of=np.array(spot_of, dtype=np.int64),
        calls=(),
    )


@functools.cache
def _called(frame: str) -> tuple[str, Spot]:
    """What a line of Python calls ("np.dot"), else the function that it is in; and the line."""
    parts = _FRAME.fullmatch(frame)
    if parts is None:
        return _UNKNOWN, Spot("", 0)
    file, line = parts["file"], int(parts["line"])
    name = parts["function"] if parts["function"] != "<module>" else Path(file).name
    if parts["begin"] and parts["end"]:
        # Columns are of bytes. What is called ends before the first bracket: "a.dot(b)".
        text = linecache.getline(file, line).encode()[int(parts["begin"]) : int(parts["end"])].decode(errors="replace")
        callee = re.match(r"([A-Za-z_][\w.]*)\(", text)
        name = callee[1] if callee else name
    return name, Spot(file, line)


@functools.cache
def library(path: str) -> str:
    """What the library of an object file is called: "OpenBLAS", "numpy", "C library"."""
    for known in Document.read(folder("counters") / "callgrind" / "libraries.toml").data["library"]:
        match = re.search(known["match"], path)
        if match:
            return str(known.get("name") or match["name"])
    return Path(path).name
