"""What to try of a CPU's functions: vectors for its loops, blocks that stay in its caches, less work for a library."""

import math
from collections.abc import Iterator
from typing import NamedTuple

from eprof.base.text import pattern, phrase
from eprof.base.vocabulary import CPU
from eprof.profile import schema
from eprof.show.report.first_screen import MOSTLY_INTEGER
from eprof.show.report.view import View
from eprof.show.words.badges import SIMULATED
from eprof.show.words.numbers import percent, plain

_WAIT = 100 / 64  # instructions that callgrind takes to last as long as a byte from DRAM: 100 cycles for a line of 64 B
# Instructions for each flop, a vector's once a lane: a[i] = s b[i] + c[i] takes 4 if scalar, 2.5 or less if in vectors.
_SCALAR = 3.0
_PYTHON_LINE = pattern(r"\.pyw?:[0-9]+$")
_INTERPRETER = "Python"  # its name in `counters/callgrind/libraries.toml`
_VECTOR_BITS = 256
_NARROW_BITS = 128
_MOSTLY_NARROW = 0.5  # of a line's arithmetic that is scalar, or in narrow vectors
_LEAST_FLOPS = 1 / 30  # of a line's instructions that are arithmetic
# Counts of a loop that runs once for all lanes of a vector. Bytes stay, and so does what is counted once a lane.
_ONCE = ("retired", "core_active", "integer", "control", "load_store", "misc")


def of_loops(view: View) -> str:
    """What to try by the counts of a CPU's largest function: its loops wait for DRAM, or are not vectorised.

    Of a library that a Python program calls only how much it is given can change.
    """
    if not view.nouns.is_of_cpu or not view.kernels:
        return ""
    kernel = max(view.kernels, key=lambda kernel: view.ranked(kernel).or_zero)
    executed, flops = view.instructions(kernel).or_zero, view.flops(kernel).or_zero
    missed = view.summed(kernel, ("dram_read", "dram"))
    name = view.label(kernel)
    if is_of_library(kernel):
        share = percent(view.ranked(kernel).or_zero / (view.ranked(view.document).value or math.inf))
        return f"give {name} less to do ({share}): fewer elements, or narrower ones (float32)"
    if missed.marks & SIMULATED and _WAIT * missed.or_zero > executed:
        return f"{name} mostly waits for DRAM: work on blocks that stay in the last-level cache"
    if not flops or not _SCALAR <= executed / flops < MOSTLY_INTEGER or "fp64_scalar" in view.words:
        return ""
    return f"{name} takes {plain(executed / flops)} instructions for each flop: vectorise its loops (-O3 -march=native)"


class Vectorised(NamedTuple):
    """What to vectorise, and J that it saves: at least, with arithmetic alone in vectors, and at most, with all."""

    act: str
    least_j: float
    most_j: float


def scalar_loops(view: View) -> Iterator[Vectorised]:
    """The functions whose arithmetic is mostly scalar or narrow, with the line that has most, and what vectors save."""
    if view.document.device.processor != CPU:
        return
    for kernel in view.kernels:
        if _is_called_by_python(kernel):
            continue  # what a library does there, who calls it cannot compile otherwise
        for kind in ("fp64", "fp32"):
            lines = [line for line in kernel.lines or () if _number(line, f"{kind}_narrow")]
            hottest = max(lines, key=lambda line: _number(line, f"{kind}_narrow"), default=None)
            place = phrase(" at {}", hottest and hottest.place)
            yield from _vectorised(view.label(kernel) + place, kernel.counts, kind)


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
    return (count and count.value) or 0.0


def _vectorised(name: str, counts: dict[str, schema.Count], kind: str) -> Iterator[Vectorised]:
    numbers = {word: count.value or 0.0 for word, count in counts.items()}
    joules = {word: count.energy_j or 0.0 for word, count in counts.items()}
    scalar, narrow, executed = (numbers.get(word, 0.0) for word in (f"{kind}_scalar", f"{kind}_narrow", "retired"))
    parts = {part: numbers.get(f"{kind}_{part}", 0.0) for part in ("add", "mul", "fma")}
    operations = sum(parts.values()) + parts["fma"] or numbers.get(kind, 0.0)
    least = _MOSTLY_NARROW * operations
    if not executed or not operations or max(scalar, narrow) < least or operations < _LEAST_FLOPS * executed:
        return
    bits = int(kind[2:])
    lanes, now, flops = _VECTOR_BITS // bits, _NARROW_BITS // bits, narrow
    if scalar >= least:
        now, flops = 1, scalar
    share = min(flops / operations, 1.0)
    fewer = (1 - now / lanes) * share
    # Where a loop waits for DRAM its cycles stay.
    waits = _WAIT * (numbers.get("dram_read", 0.0) or numbers.get("dram", 0.0)) > executed
    once_j = sum(joules.get(word, 0.0) for word in _ONCE if not (waits and word == "core_active"))
    arithmetic = min((sum(parts.values()) or operations) / now / executed, 1.0)
    narrow_j = joules.get(f"{kind}_narrow", 0.0)
    widened_j = joules.get(f"{kind}_scalar", 0.0) + narrow_j * flops / (narrow or math.inf)
    how = f"vectorise {name} (-O3 -march=native, unit strides)"
    what = f"{percent(share)} of its {kind.upper()} arithmetic is scalar, {lanes} fit a vector"
    if now > 1:
        how = f"widen the vectors of {name} (-O3 -march=native)"
        widths = f"{_NARROW_BITS} bits, not {_VECTOR_BITS}"
        what = f"{percent(share)} of its {kind.upper()} arithmetic is in vectors of {widths}"
    yield Vectorised(f"{how}: {what}", fewer * arithmetic * once_j, fewer * once_j + widened_j)
