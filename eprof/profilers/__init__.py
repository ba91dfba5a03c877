"""The profilers, a folder each: how it is started (`collector.py`), its logs' signs (`signs.py`), its readers.

They are found by their folders: a new profiler is a new folder here, and its files in `counters/`.
"""

import contextlib
import importlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from eprof.base.errors import CollectError
from eprof.base.text import pattern
from eprof.collect.tools import ask

_GPU_LIBRARY = pattern(
    rb"[oO]pen(CL|cl)|clGetPlatformIDs|libcuda|cudart|nvrtc|libamdhip|cupy|pycuda|numba\.cuda|"
    rb"(import|from) (torch|tensorflow|jax)\b"
)
_LINKED = pattern(r"(\S+) => ")  # what `ldd` prints
_GPU_FILE = pattern(
    r"lib(OpenCL|cu(da|dart|blas|fft|sparse|rand|solver|dnn)|nv(rtc|ToolsExt|idia)|amdhip|roc|ze_loader)"
)
_MOST_BYTES = 64 << 20  # of a program

if TYPE_CHECKING:
    from eprof.base.signs import Signs
    from eprof.collect.collector import Collector, Tool


def names() -> list[str]:
    """The profilers that `eprof run` can use."""
    return sorted(file.parent.name for file in Path(__path__[0]).glob("*/collector.py"))


@cache
def signs() -> "dict[str, Signs]":
    """What each profiler's `signs.py` says of its logs, by the profiler's name."""
    folders = sorted(file.parent.name for file in Path(__path__[0]).glob("*/signs.py"))
    return {folder: importlib.import_module(f"{__name__}.{folder}.signs").SIGNS for folder in folders}


def signs_of(profiler: str) -> "Signs":
    """The signs of a profiler's logs; of one without `signs.py`, those of any."""
    from eprof.base.signs import Signs

    return signs().get(profiler) or Signs()


def collectors() -> "list[Collector]":
    """Every collector that comes with eprof, the preferred ones first."""
    return sorted(map(collector, names()), key=lambda collector: collector.rank)


@cache
def unions() -> frozenset[str]:
    """The kinds of tables that have the columns of all their runs, of all profilers."""
    return frozenset().union(*(known.unions for known in signs().values()))


@cache
def timed() -> frozenset[str]:
    """The kinds of tables that have times only, of all profilers."""
    return frozenset().union(*(known.timed for known in signs().values()))


@cache
def aside() -> frozenset[str]:
    """The counters that are times and clocks, in no list of what was counted, of all profilers."""
    return frozenset().union(*(known.aside() for known in signs().values()))


def module_of(field: Callable[["Signs"], str | None]) -> ModuleType | None:
    """The module of the profiler whose signs name one, imported; None if no profiler's do."""
    for folder, known in signs().items():
        if (name := field(known)) is not None:
            return importlib.import_module(f"{__name__}.{folder}.{name}")
    return None


def collector(name: str) -> "Collector":
    """The collector of a profiler. Raises CollectError: this eprof has none of this name."""
    if name not in names():
        raise CollectError(f"This eprof has no profiler {name}.")
    known: Collector = importlib.import_module(f"{__name__}.{name}.collector").COLLECTOR
    return known


def choose(wanted: str, program: str = "", arguments: Sequence[str] = ()) -> "tuple[Collector, Tool, list[Tool]]":
    """The profiler's collector to use, what was found of it, and all that was looked at.

    `auto`: the first that is usable here, by what the program is (`uses_gpu`). One that uses a GPU goes to profilers
    of GPUs, the simulated one last, and one that does not to those of CPUs. Where that is not known, to a GPU's where
    there is one, else to those of CPUs.
    Raises CollectError, saying why each one cannot be used and what mends it.
    """
    tools: list[Tool] = []
    known = [collector for collector in collectors() if wanted == collector.name]
    if wanted == "auto":
        known = [collector for collector in collectors() if collector.processor in ("cpu", "gpu")]
        on_gpu = uses_gpu(program, arguments)
        known.sort(key=lambda collector: collector.processor == "cpu" if on_gpu else collector.simulated)
        if on_gpu is False:
            known = [collector for collector in known if collector.processor == "cpu"]
    for collector in known:
        tools.append(collector.find(program))
        if tools[-1].usable:
            return collector, tools[-1], tools
    refusal = "No profiler can be used here." if wanted == "auto" else f"{wanted} cannot be used here."
    reasons: dict[str, list[str]] = {}
    for tool in tools:
        remedy = f" ({tool.remedy})" if tool.remedy else ""
        reasons.setdefault(f"{tool.why}{remedy}.", []).append(tool.name)
    raise CollectError(" ".join([refusal, *(f"{', '.join(same)}: {reason}" for reason, same in reasons.items())]))


def uses_gpu(program: str, arguments: Sequence[str] = ()) -> bool | None:
    """Whether a program to profile uses a GPU: it, or the script that is its first argument, names a library of GPUs.

    A program in machine code that links none, nor anything that does, uses none. None: not known.
    """
    if _names_gpu_library(Path(program)) or any(_names_gpu_library(Path(word)) for word in arguments[:1]):
        return True
    if not _is_machine_code(Path(program)) or any(Path(word).is_file() for word in arguments[:1]):
        return None  # a script, or an interpreter of one, may load what it likes
    return any(map(_GPU_FILE.match, _LINKED.findall(ask(["ldd", program]))))


def _is_machine_code(path: Path) -> bool:
    with contextlib.suppress(OSError), path.open("rb") as file:
        return file.read(4) == b"\x7fELF"
    return False


def _names_gpu_library(path: Path) -> bool:
    """Whether a program to profile, or the script that it is to run, links or loads a library of GPUs."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return _GPU_LIBRARY.search(file.read(_MOST_BYTES)) is not None
    except (OSError, ValueError):
        return False
