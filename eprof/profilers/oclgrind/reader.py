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
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from eprof.base.arrays import Columns
from eprof.base.errors import LogError
from eprof.base.text import few, pattern, when
from eprof.logs.log import COUNT, Log, Names, Table, TableRows
from eprof.logs.stream import Source
from eprof.profilers.oclgrind import DEVICE, KIND, MARK, VECTORS
from eprof.readers.sections import fed

UNTYPED = ("fadd", "fsub", "fmul", "fdiv", "frem", "fneg", "fcmp")
TYPES = ("f16", "f32", "f64")
_BYTES = {"f16": 2, "f32": 4, "f64": 8}
_COUNT = pattern(r"\s*(\d[\d.,'\u00a0\u202f]{0,39}) - (.+)")
_ENDLESS = pattern(r"\s*\d[\d.,'\u00a0\u202f]{40}")  # no count: the block is damaged
_MEMORY = pattern(r"(load|store) (\S+) \((\d[\d.,'\u00a0\u202f]{0,39}) bytes\)")
_CACHE, _LOST, _MODEL = "cache ", "cache accesses lost", "cache model "
_MOST_NOTES = 8
_SECTOR_MB = 32e-6
_FEW = 16  # work-items a warp
_OWN = pattern(r"(load|store|vload|vstore|atomic|call|cache) .+|[a-z]+( f(16|32|64)( assumed)?)?")


# ----------------------------------------------------------------------------------------------------------------------
# Calls: what an OpenCL built-in's mangled name tells of its type, its lanes, and the memory that it touches.

# Their type is that of the arithmetic around them.
_MATH = """
    fma mad fmuladd sin cos tan asin acos atan atan2 sinh cosh tanh sinpi cospi exp exp2 exp10 expm1 log log2 log10
    log1p pow pown powr rootn sqrt rsqrt cbrt hypot fabs fmin fmax fmod floor ceil round rint trunc minnum maxnum
    copysign ldexp fract native_sin native_cos native_exp native_exp2 native_log native_log2 native_sqrt
    native_rsqrt native_recip native_divide half_sqrt half_rsqrt half_recip half_divide erf erfc clamp mix step
    smoothstep dot length distance normalize
"""
_MATH_NAMES = frozenset(_MATH.split())
# By the letter in a mangled name, and as LLVM writes it.
_SCALAR = {"f": "f32", "d": "f64", "Dh": "f16", "f16": "f16", "f32": "f32", "f64": "f64"}
_SIZES = {"c": 1, "h": 1, "s": 2, "t": 2, "Dh": 2, "i": 4, "j": 4, "f": 4, "l": 8, "m": 8, "d": 8}
_SPACES = {"1": "global", "2": "constant", "3": "local"}
_TYPE = pattern(r"(?:(?:Dv(\d{1,4})_)?(Dh|[chstijlmfd]))?")
_POINTER = pattern(r"P(?:U3AS(\d))?[VKr]*(?:U7_Atomic)?(?:Dv\d+_)?(Dh|[chstijlmfd])?")
_INTRINSIC = pattern(r"llvm\.([a-z]+(?:\.[a-z]+)*?)(?:\.(?:v(\d{1,4}))?(f16|f32|f64|i\d+|p\d.*))?")


class _Access(Struct, frozen=True):
    """Memory that an OpenCL call touches. kind: "vload", "vstore", "atomic"...; bytes: None = not known."""

    kind: str
    operation: str
    space: str
    bytes: int | None


class Called(Struct, frozen=True):
    """A call: plain name, floating-point type if it has one, lanes, and the memory that it touches."""

    name: str
    type: str | None = None
    lanes: int = 1
    accesses: tuple[_Access, ...] = ()


def called(symbol: str) -> Called:
    """The `Called` of a symbol in Oclgrind's counts, such as "_Z3fmaDv4_fS_S_", "llvm.fmuladd.f64", "my_function"."""
    intrinsic = _INTRINSIC.fullmatch(symbol)
    if intrinsic:
        name, width, types = intrinsic.groups(default="")
        accesses: tuple[_Access, ...] = ()
        if name.startswith(("memcpy", "memmove", "memset")):
            accesses = _copies(re.findall(r"p(\d)", types))
        return Called(name, _SCALAR.get(types), int(width or 1), accesses)
    mangled = re.match(r"_Z(\d{1,6})", symbol)
    if not mangled:
        return Called(symbol)
    end = mangled.end() + int(mangled[1])
    name = symbol[mangled.end() : end]
    arguments = symbol[end:]
    # The first argument's type, pointers' targets included; of none that is known here it is empty.
    first = _TYPE.match(re.sub(r"U\d(AS\d)?|[PVKr]", "", arguments))
    assert first is not None
    is_of_lanes = not name.startswith(("get_", "barrier", "vload", "vstore", "atom"))
    lanes = int(is_of_lanes and first[1] or 1)
    return Called(name, _SCALAR.get(first[2]), lanes, _accesses(name, arguments))


def _copies(spaces: Sequence[str]) -> tuple[_Access, ...]:
    """The accesses of a copy of unknown size: a store to the first of two memory `spaces`, a load from the second."""
    ways = zip(("store", "load"), spaces, strict=False)
    return tuple(_Access("copy", operation, _SPACES.get(space, "private"), None) for operation, space in ways)


def _accesses(name: str, arguments: str) -> tuple[_Access, ...]:
    """The accesses of a built-in function to memory, beside the loads and stores that Oclgrind counts itself."""
    if name.startswith("async_work_group"):
        return _copies(re.findall(r"PU3AS(\d)", arguments))
    if name.startswith(("read_image", "write_image")):
        return (_Access("image", {"r": "load", "w": "store"}[name[0]], "global", None),)
    pointer = _POINTER.search(arguments)
    if pointer is None or not name.startswith(("vload", "vstore", "atom")):
        return ()
    space = _SPACES.get(pointer[1] or "0", "private")
    size = _SIZES.get(pointer[2] or "")
    if name.startswith("atom"):
        return (_Access("atomic", "load", space, size),)
    kind = next(each for each in ("vload", "vstore") if name.startswith(each))
    width = re.search(r"(\d{1,4})$", name.partition("_half")[2] or name)
    if size is not None and width:
        size *= int(width[1])
    return (_Access(kind, kind[1:], space, size),)


# ----------------------------------------------------------------------------------------------------------------------
# Blocks of counts, kernel by kernel.


class Kernel(Struct):
    """The counts of one kernel: its launches, its counters, and what its floating-point type is guessed from."""

    launches: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    typed: set[str] = field(default_factory=set)
    has_vectors: bool = False
    unknown_bytes: set[str] = field(default_factory=set)

    @property
    def models(self) -> dict[str, int]:
        """By model of caches, in how many launches of a kernel it was simulated."""
        named = self.counts.items()
        return {name.removeprefix(_MODEL): number for name, number in named if name.startswith(_MODEL)}

    def count(self, text: str, number: int) -> None:
        """Add a line of Oclgrind's counts to the kernel's counters: `text`, what was executed, `number` times."""
        memory = _MEMORY.fullmatch(text)
        if memory:
            self.counts[f"{memory[1]} {memory[2]}"] += number
            self.counts[f"{memory[1]} {memory[2]} bytes"] += _whole(memory[3])
            return
        if not text.startswith("call "):
            self.counts[text] += number
            self.has_vectors |= text in VECTORS
            return
        call = called(text.removeprefix("call ").removesuffix("()"))
        self.calls[call.name] += number
        self.counts[f"call {call.name}"] += number * call.lanes
        if call.type is not None:
            self.counts[f"call {call.name} {call.type}"] += number * call.lanes
            if call.name in _MATH_NAMES:
                self.typed.add(call.type)
        self.has_vectors |= call.lanes > 1
        for access in call.accesses:
            if access.bytes is None:
                self.unknown_bytes.add(f"{access.operation} {access.space} bytes")
            else:
                self.counts[f"{access.kind} {access.space} bytes"] += number * access.bytes


class _OclgrindLines(Struct):
    """Takes the lines of a program's output, and adds up Oclgrind's blocks of counts in it by kernel.

    block: the counts of the open block. others: lines of the program's own. broken: kernel -> blocks that were cut off.
    stray: lines of counts outside any block.
    """

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
                kernel.count(text, number)
            self.block = None
        else:
            self.others += 1


def _whole(text: str) -> int:
    """A number with any thousands separators, which Oclgrind writes as the user's locale has them."""
    return int(re.sub(r"\D", "", text))


def decide_type(kernel: Kernel) -> tuple[str, bool]:
    """(type, is it certain) of a kernel's untyped instructions in Oclgrind's counts; type: "f64", "f32" or "f16".

    Certain: all typed calls have one type, no instruction converts between widths, no vectors (which count once), and
    the bytes per access of global, local and constant memory can be of that type.
    """
    # Bytes per access, for each kind of access to memory that a program's arrays are in.
    spaces = [f"{operation} {space}" for operation in ("load", "store") for space in ("global", "local", "constant")]
    sizes = [kernel.counts[f"{space} bytes"] / kernel.counts[space] for space in spaces if kernel.counts[space]]
    converts = kernel.counts["fpext"] + kernel.counts["fptrunc"]
    if len(kernel.typed) == 1:
        (kind,) = kernel.typed
        # Values of a size may be mixed with indices of 4 bytes.
        least, most = sorted((_BYTES[kind], 4))
        fits = not sizes or any(least <= mean <= most and (least == most or mean != 4) for mean in sizes)
        return kind, fits and not converts and not kernel.has_vectors
    if kernel.typed:
        calls = Counter[str]()
        for text, number in kernel.counts.items():
            calls[text.rpartition(" ")[2]] += number
        return max(sorted(kernel.typed), key=calls.__getitem__), False
    for kind in ("f64", "f32", "f16"):
        if sizes and all(size == _BYTES[kind] for size in sizes):
            return kind, False
    if sizes and max(sizes) > _BYTES["f32"] and not kernel.has_vectors:
        return "f64", False
    return "f32", False


def read(source: Source, pieces: Iterator[bytes], keep: Container[str] | None, *_: object) -> Log:
    """Read all of Oclgrind's counts in a log. `keep`: names to have a column, also where they are 0 throughout.

    Raises LogError if there is no whole block.
    """
    walk = _OclgrindLines()
    rest = fed(pieces, walk.feed)
    if rest.strip():  # blanks are the beginning of a line of counts, and no end of a block
        walk.feed(rest)
    if walk.block is not None:
        walk.broken[walk.name] += 1
    if not walk.kernels:
        raise LogError(
            f"{source.path}: the only block of Oclgrind's counts is cut off; run the program to the end of a kernel."
        )
    table, notes = _table(walk.kernels, keep)
    table = replace(table, lacks_rows=bool(walk.broken or walk.stray))
    cut_off = [
        f"`{name}`: {number} launch{when(number > 1, 'es')} cut off in the middle of the counts and left out"
        for name, number in walk.broken.items()
    ]
    if walk.stray:
        cut_off.append(
            f"{walk.stray} lines of counts stand outside any block, so counts are lost: did several processes write "
            "through one pipe (mpirun, tee)? Give each an eprof of its own (mpirun -n 4 eprof run PROGRAM), and report "
            "on all run directories together"
        )
    models = sorted({model for kernel in walk.kernels.values() for model in kernel.models})
    return source.log(
        [table],
        [*cut_off, *notes],
        lines=walk.lines,
        skipped_lines=walk.others + walk.stray,
        caches=" and ".join(models) or "none",
    )


def _table(kernels: Mapping[str, Kernel], keep: Container[str] | None) -> tuple[Table, list[str]]:
    """(`Table`, notes) of what Oclgrind counted, a row a kernel. keep: counters to have a column; None: all."""
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
        listed = {*names, "call other"}
        if isinstance(keep, (set, frozenset)):
            listed |= keep
        names = sorted(name for name in listed if _OWN.fullmatch(name) and name in keep)
    notes += _cache_notes(kernels)
    # Without a model of caches their counts are not 0 but unknown.
    absent = {name: (0.0, np.nan)[name.startswith(_CACHE)] for name in names}
    values = np.array([[counts.get(name, absent[name]) for counts in columns] for name in names], dtype=np.float64)
    launches = [kernel.launches for kernel in kernels.values()]
    rows = TableRows.of(Names.of([DEVICE] * len(columns)), Names.of(kernels), launches)
    counters = Columns(tuple(names), values.reshape(len(names), -1).T)
    return Table(KIND, rows, counters, dict.fromkeys(names, COUNT)), notes


def _columns(name: str, kernel: Kernel, notes: list[str]) -> dict[str, float]:
    """The counters of a kernel in Oclgrind's counts, untyped arithmetic by its type; NaN: unknown. notes: added to."""
    counters: dict[str, float] = dict(kernel.counts)
    kernel_type, certain = decide_type(kernel)
    for opcode in UNTYPED:
        number = kernel.counts[opcode]
        for kind in TYPES:
            counters[f"{opcode} {kind}"] = counters[f"{opcode} {kind} assumed"] = number * (kind == kernel_type)
        if number and not certain:
            counters |= {f"{opcode} {kind}": np.nan for kind in TYPES}
    if not certain and any(kernel.counts[opcode] for opcode in UNTYPED):
        notes.append(
            f"`{name}`: the type of its fadd, fmul and the like is not printed; taken for {kernel_type} (assumed)"
        )
    if kernel.has_vectors:
        notes.append(
            f"`{name}` uses vectors: Oclgrind counts a vector instruction once, so its arithmetic is a lower bound"
        )
    if kernel.models and (sum(kernel.models.values()) < kernel.launches or kernel.counts[_LOST]):
        counters |= {counter: np.nan for counter in counters if counter.startswith(_CACHE)}
        notes.append(f"`{name}`: caches were not modelled in all of its launches, so all its bytes are charged to DRAM")
    for counter in sorted(kernel.unknown_bytes):
        counters[counter] = np.nan
        notes.append(f"`{name}`: copies or images moved data that Oclgrind does not count, so `{counter}` is not known")
    return counters


def _cache_notes(kernels: Mapping[str, Kernel]) -> Iterator[str]:
    """Yields notes on what modelled caches serve of Oclgrind's kernels, most DRAM first, and on half-empty warps."""
    modelled = [(name, kernel) for name, kernel in kernels.items() if kernel.models and not kernel.counts[_LOST]]
    modelled.sort(key=lambda entry: -_dram(entry[1].counts))
    # One warp a launch may well be half empty.
    several = [(name, kernel.counts) for name, kernel in modelled if kernel.counts["cache warps"] > kernel.launches]
    sparse = [f"`{name}`" for name, counts in several if counts["cache work-items"] < _FEW * counts["cache warps"]]
    if sparse:
        yield (
            f"work-groups of {few(sparse, 4)} fill less than half of their warps, so few accesses coalesce, and bytes "
            "of L1, L2 and DRAM are many: where a program names no size of work-groups, they have 1 work-item here, "
            "and more on a GPU"
        )
    for name, kernel in modelled[:_MOST_NOTES]:
        counts = {name.removeprefix(_CACHE): number for name, number in kernel.counts.items()}
        requests, sectors = counts["load requests"], counts["load sectors"]
        parts = []
        if requests:
            parts.append(f"{sectors / requests:.3g} sectors a load")
        if counts["l1 load hits"]:
            parts.append(f"L1 serves {counts['l1 load hits'] / sectors:.0%} of them")
        if counts["l2 reads"]:
            parts.append(f"L2 {counts['l2 read hits'] / counts['l2 reads']:.0%} of what comes to it")
        ends = [_dram(kernel.counts, end) * _SECTOR_MB for end in ("", " least", " most")]
        parts.append("DRAM {:.3g} MB, {:.3g} to {:.3g} by how many work-groups are in flight".format(*ends))
        yield f"caches of {' and '.join(kernel.models)}, modelled: `{name}`: {', '.join(parts)}"


def _dram(counts: Counter[str], end: str = "") -> int:
    """The sectors from and to DRAM in the model of caches; end: "" as modelled, " least" or " most" for its bounds."""
    return sum(counts[f"cache dram {what}{end}"] for what in ("reads", "writes", "left dirty"))
