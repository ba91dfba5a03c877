"""Reader of Oclgrind's instruction counts, wherever they stand in a program's output.

A launch leaves a block: `Instructions executed for kernel 'NAME':`, lines `COUNT - OPCODE`, an empty line. Counters are
named as there ("fadd", "load global", "load global bytes"); a call goes by its plain name and type, and a vector call
counts once for each lane ("call sin", "call fma f64"). What a block does not list did not happen: it is 0.

`fadd fsub fmul fdiv frem fneg fcmp` are printed without a type. It is taken from the typed calls and the bytes per
access of the same kernel where these agree ("fadd f64"); else it is a guess, under another name ("fadd f64 assumed").
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from itertools import chain

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from eprof.base.arrays import Columns
from eprof.base.errors import LogError
from eprof.base.text import pattern, when
from eprof.logs.rows.log import COUNT, Log, Names, Table, TableRows
from eprof.logs.rows.stream import Source
from eprof.profilers.oclgrind.builtins import Called, called
from eprof.profilers.oclgrind.caches import CACHE, LOST, cache_notes, models_of
from eprof.profilers.oclgrind.signs import DEVICE, KIND, MARK, VECTORS

UNTYPED = ("fadd", "fsub", "fmul", "fdiv", "frem", "fneg", "fcmp")
TYPES = ("f16", "f32", "f64")
_BYTES = {"f16": 2, "f32": 4, "f64": 8}
_COUNT = pattern(r"\s*(\d[\d.,'\u00a0\u202f]{0,39}) - (.+)")
_ENDLESS = pattern(r"\s*\d[\d.,'\u00a0\u202f]{40}")  # no count: the block is damaged
_MEMORY = pattern(r"(load|store) (\S+) \((\d[\d.,'\u00a0\u202f]{0,39}) bytes\)")
_OWN = pattern(r"(load|store|vload|vstore|atomic|call|cache) .+|[a-z]+( f(16|32|64)( assumed)?)?")
_GUESS = "f32"


class Kernel(Struct):
    """What was counted of one kernel: launches, counters, and what its type is guessed from."""

    launches: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    typed: set[str] = field(default_factory=set)
    has_vectors: bool = False
    unknown_bytes: set[str] = field(default_factory=set)


class _Walk(Struct):
    kernels: dict[str, Kernel] = field(default_factory=dict)
    block: dict[str, int] | None = None
    name: str = ""
    lines: int = 0
    others: int = 0
    broken: Counter[str] = field(default_factory=Counter)
    stray: int = 0

    def feed(self, line: str) -> None:
        """Take one line of Oclgrind's counts, without its end."""
        self.lines += 1
        before, mark, after = line.partition(MARK)
        if mark and after.endswith("':"):
            if self.block is not None:
                self.broken[self.name] += 1
            self.block = {}
            self.name = after[:-2]
            return
        count = _COUNT.fullmatch(line)
        if self.block is None:
            self.stray += bool(count)
            self.others += not count
        elif _ENDLESS.match(line):
            self.broken[self.name] += 1
            self.block = None
        elif count:
            self.block[count[2]] = self.block.get(count[2], 0) + _whole(count[1])
        elif not line.strip():
            kernel = self.kernels.setdefault(self.name, Kernel())
            kernel.launches += 1
            for text, number in self.block.items():
                _count(kernel, text, number)
            self.block = None
        else:
            self.others += 1

    def finish(self) -> None:
        """The file is at its end: a block of Oclgrind's counts that is still open was cut off."""
        if self.block is not None:
            self.broken[self.name] += 1


def _whole(text: str) -> int:
    """A number with any thousands separator: Oclgrind writes as the user's locale says."""
    return int(re.sub(r"\D", "", text))


def _count(kernel: Kernel, text: str, number: int) -> None:
    memory = _MEMORY.fullmatch(text)
    if memory:
        kernel.counts[f"{memory[1]} {memory[2]}"] += number
        kernel.counts[f"{memory[1]} {memory[2]} bytes"] += _whole(memory[3])
    elif text.startswith("call "):
        _count_call(kernel, called(text.removeprefix("call ").removesuffix("()")), number)
    else:
        kernel.counts[text] += number
        kernel.has_vectors |= text in VECTORS


def _count_call(kernel: Kernel, call: Called, number: int) -> None:
    kernel.calls[call.name] += number
    kernel.counts[f"call {call.name}"] += number * call.lanes
    if call.type is not None:
        kernel.counts[f"call {call.name} {call.type}"] += number * call.lanes
        if call.is_math:
            kernel.typed.add(call.type)
    kernel.has_vectors |= call.lanes > 1
    for access in call.accesses:
        if access.bytes is None:
            kernel.unknown_bytes.add(f"{access.operation} {access.space} bytes")
        else:
            kernel.counts[f"{access.kind} {access.space} bytes"] += number * access.bytes


def decide_type(kernel: Kernel) -> tuple[str, bool]:
    """The floating-point type of a kernel's untyped Oclgrind instructions, and whether it is certain enough.

    Certain: all typed calls have one type, no instruction converts between widths, no vectors (which count once), and
    the bytes per access of global, local and constant memory can be of that type.
    """
    # Bytes per access, for each kind of access to memory that a program's arrays are in.
    spaces = [f"{operation} {space}" for operation in ("load", "store") for space in ("global", "local", "constant")]
    sizes = [kernel.counts[f"{space} bytes"] / kernel.counts[space] for space in spaces if kernel.counts[space]]
    converts = kernel.counts["fpext"] + kernel.counts["fptrunc"]
    if len(kernel.typed) == 1:
        (kind,) = kernel.typed
        fits = not sizes or any(_may_hold(size, _BYTES[kind]) for size in sizes)
        return kind, fits and not converts and not kernel.has_vectors
    if kernel.typed:
        calls = {
            kind: sum(kernel.counts[text] for text in kernel.counts if text.endswith(f" {kind}")) for kind in TYPES
        }
        return max(sorted(kernel.typed), key=lambda kind: calls[kind]), False
    for kind in ("f64", "f32", "f16"):
        if sizes and all(size == _BYTES[kind] for size in sizes):
            return kind, False
    if sizes and max(sizes) > _BYTES["f32"] and not kernel.has_vectors:
        return "f64", False
    return _GUESS, False


def _may_hold(mean: float, size: int) -> bool:
    """Whether Oclgrind's accesses of `mean` bytes may be of values of `size` bytes, mixed with indices of 4."""
    return min(size, 4) <= mean <= max(size, 4) and (size <= 4 or mean > 4) and (size >= 4 or mean < 4)


def read(source: Source, pieces: Iterator[bytes], keep: Container[str] | None, *_: object) -> Log:
    """Read all of Oclgrind's counts in a log. `keep`: names to have a column, also where they are 0 throughout.

    Raises LogError if there is no whole block.
    """
    walk = _Walk()
    rest = ""
    for piece in pieces:
        lines = (rest + piece.decode("utf-8", "replace")).split("\n")
        rest = lines.pop()
        for line in lines:
            walk.feed(line.removesuffix("\r"))
    if rest.strip():  # blanks are the beginning of a line of counts, and no end of a block
        walk.feed(rest)
    walk.finish()
    if not walk.kernels:
        raise LogError(
            f"{source.path}: the only block of Oclgrind's counts is cut off; run the program to the end of a kernel."
        )
    table, notes = _table(walk.kernels, keep)
    table = replace(table, lacks_rows=bool(walk.broken or walk.stray))
    skipped = walk.others + walk.stray
    return source.log([table], [*_line_notes(walk), *notes], lines=walk.lines, skipped_lines=skipped)


def _table(kernels: Mapping[str, Kernel], keep: Container[str] | None) -> tuple[Table, list[str]]:
    notes: list[str] = []
    columns = [_columns(name, kernel, notes) for name, kernel in kernels.items()]
    names = list(dict.fromkeys(chain.from_iterable(columns)))
    if keep is not None:
        calls = {name for name in names if name.startswith("call ") and name.count(" ") == 1}
        known = {call for call in calls if call in keep or any(f"{call} {kind}" in keep for kind in TYPES)}
        # Functions of the program itself, or new built-in ones.
        unknown = [name.removeprefix("call ") for name in sorted(calls - known)]
        for counts, kernel in zip(columns, kernels.values(), strict=True):
            counts["call other"] = sum(kernel.calls[name] for name in unknown)
        if unknown:
            shown = ", ".join(unknown[:5]) + when(len(unknown) > 5, " ...")
            notes.append(f"calls that no definition names are counted as control, one each: {shown}")
        listed = keep if isinstance(keep, (set, frozenset)) else frozenset(names)
        names = sorted(name for name in {*listed, *names, "call other"} if _OWN.fullmatch(name) and name in keep)
    notes += cache_notes(kernels)
    # Without a model of caches their counts are not 0 but unknown.
    absent = {name: np.nan if name.startswith(CACHE) else 0.0 for name in names}
    values = np.array([[counts.get(name, absent[name]) for counts in columns] for name in names], dtype=np.float64)
    launches = [kernel.launches for kernel in kernels.values()]
    rows = TableRows.of(Names.of([DEVICE] * len(columns)), Names.of(kernels), launches)
    counters = Columns(tuple(names), values.reshape(len(names), -1).T)
    return Table(KIND, rows, counters, dict.fromkeys(names, COUNT)), notes


def _columns(name: str, kernel: Kernel, notes: list[str]) -> dict[str, float]:
    counters: dict[str, float] = dict(kernel.counts)
    kernel_type, certain = decide_type(kernel)
    for opcode in UNTYPED:
        number = kernel.counts[opcode]
        for kind in TYPES:
            value = number * (kind == kernel_type)
            counters[f"{opcode} {kind}"] = value if certain or not number else np.nan
            counters[f"{opcode} {kind} assumed"] = value
    if not certain and any(kernel.counts[opcode] for opcode in UNTYPED):
        notes.append(
            f"`{name}`: the type of its fadd, fmul and the like is not printed; taken for {kernel_type} (assumed)"
        )
    if kernel.has_vectors:
        notes.append(
            f"`{name}` uses vectors: Oclgrind counts a vector instruction once, so its arithmetic is a lower bound"
        )
    if models_of(kernel) and (sum(models_of(kernel).values()) < kernel.launches or kernel.counts[LOST]):
        counters |= {counter: np.nan for counter in counters if counter.startswith(CACHE)}
        notes.append(f"`{name}`: caches were not modelled in all of its launches, so all its bytes are charged to DRAM")
    for counter in sorted(kernel.unknown_bytes):
        counters[counter] = np.nan
        notes.append(f"`{name}`: copies or images moved data that Oclgrind does not count, so `{counter}` is not known")
    return counters


def _line_notes(walk: _Walk) -> Iterator[str]:
    for name, number in walk.broken.items():
        yield f"`{name}`: {number} launch{when(number > 1, 'es')} cut off in the middle of the counts and left out"
    if walk.stray:
        yield (
            f"{walk.stray} lines of counts stand outside any block, so counts are lost: did several processes write "
            "through one pipe (mpirun, tee)? Give each an eprof of its own (mpirun -n 4 eprof run PROGRAM), and report "
            "on all run directories together"
        )
