"""The advice to vectorise: how much of a function's arithmetic is scalar, in which line, what vectors would save."""

from collections.abc import Iterator
from typing import NamedTuple

from eprof.base.text import pattern, when
from eprof.base.vocabulary import CPU
from eprof.profile import schema
from eprof.show.report.view import View
from eprof.show.words.numbers import percent

_PYTHON_LINE = pattern(r"\.pyw?:[0-9]+$")
_INTERPRETER = "Python"  # its name in `counters/callgrind/libraries.toml`
_VECTOR_BITS = 256
_MOSTLY, _LEAST_FLOPS = 0.5, 1 / 30  # of a line's arithmetic that is scalar; of its instructions that are arithmetic
# Counts of a loop that runs once for all lanes of a vector. Bytes stay, and so does what is counted once a lane.
_ONCE = ("retired", "core_active", "integer", "control", "load_store", "misc")


class Vectorised(NamedTuple):
    """What to vectorise, and J that it saves: at least, with arithmetic alone in vectors, and at most, with all."""

    act: str
    least_j: float
    most_j: float


def scalar_loops(view: View) -> Iterator[Vectorised]:
    """The functions whose arithmetic is mostly scalar, with the line that has most, and what vectors would save."""
    if view.document.device.processor != CPU:
        return
    for kernel in view.kernels:
        if _is_called_by_python(kernel):
            continue  # what a library does there, who calls it cannot compile otherwise
        for kind in ("fp64", "fp32"):
            lines = [line for line in kernel.lines or () if _number(line, f"{kind}_scalar")]
            place = max(lines, key=lambda line: _number(line, f"{kind}_scalar")).place if lines else ""
            yield from _vectorised(view.label(kernel) + when(place, f" at {place}"), kernel.counts, kind)


def is_of_library(kernel: schema.Kernel) -> bool:
    """Whether a kernel of a CPU is what a Python program has a known library do, which comes compiled.

    Such a kernel is called "a.dot, OpenBLAS". The interpreter's own work is the program's, and a library that goes by
    the name of its file may be the user's.
    """
    library = kernel.name.rpartition(", ")[2]
    return _is_called_by_python(kernel) and library != _INTERPRETER and ".so" not in library


def _is_called_by_python(kernel: schema.Kernel) -> bool:
    return any(_PYTHON_LINE.search(line.place) for line in kernel.lines or ())


def _number(line: schema.Line, word: str) -> float:
    count = line.counts.get(word)
    return count.value or 0.0 if count else 0.0


def _vectorised(name: str, counts: dict[str, schema.Count], kind: str) -> Iterator[Vectorised]:
    numbers = {word: count.value or 0.0 for word, count in counts.items()}
    joules = {word: count.energy_j or 0.0 for word, count in counts.items()}
    scalar, executed = numbers.get(f"{kind}_scalar", 0.0), numbers.get("retired", 0.0)
    parts = {part: numbers.get(f"{kind}_{part}", 0.0) for part in ("add", "mul", "fma")}
    operations = sum(parts.values()) + parts["fma"] or numbers.get(kind, 0.0)
    if not executed or not operations or scalar < _MOSTLY * operations or operations < _LEAST_FLOPS * executed:
        return
    share = min(scalar / operations, 1.0)
    lanes = _VECTOR_BITS // int(kind[2:])
    fewer = (1 - 1 / lanes) * share
    once_j = sum(joules.get(word, 0.0) for word in _ONCE)
    arithmetic = min((sum(parts.values()) or operations) / executed, 1.0)
    narrow, narrow_j = numbers.get(f"{kind}_narrow", 0.0), joules.get(f"{kind}_narrow", 0.0)
    widened_j = joules.get(f"{kind}_scalar", 0.0) + (narrow_j * scalar / narrow if narrow else 0.0)
    act = (
        f"vectorise {name} (-O3 -march=native, unit strides): {percent(share)} of its {kind.upper()} operations are "
        f"scalar, {lanes} fit a vector"
    )
    yield Vectorised(act, fewer * arithmetic * once_j, fewer * once_j + widened_j)
