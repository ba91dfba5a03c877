"""The vocabulary: every class of instruction and kind of byte that is counted (`Count`), marks of numbers, and `Nouns`.

An instruction is thread-level and predicated-on: one for each active thread. A fused multiply-add is one instruction
and two flops. Tensor cores do from 512 to many thousand flops an instruction, so their work is counted in flops, by the
type of the operands; integer operations count as flops there. An SM-active cycle is a cycle of one multiprocessor with
work on it, an active core cycle one of a core of a CPU that is not halted, at whatever clock it then runs. `retired`
has every instruction of a CPU once, vectors too. `fp64_narrow` are those FP64 operations that instructions of one or
two lanes do, `fp64_scalar` and `fp32_scalar` those of one lane, beside `fp64` and `fp32` or their kinds. A byte is
charged at a memory level; which one depends on the books that a cost table keeps (docs/model.md): *served*, at the one
level that served it, or *accessed*, at every level that it passed. `random` are accesses of DRAM in no order, beside
their bytes: each costs so much more than bytes that stream.
"""

from enum import IntFlag
from functools import reduce
from operator import or_

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

COMPUTATION, DATA, CONSTANT = "computation", "data", "constant"
RANDOM = "random"


class Count(Struct, frozen=True):
    """A class of instruction or kind of byte that is counted. group: what reports show it with, in one colour."""

    name: str
    unit: str
    group: str
    label: str
    flops: int = 0

    @property
    def family(self) -> str:
        """DATA for bytes and accesses, COMPUTATION for all other counts."""
        return {"byte": DATA, "access": DATA}.get(self.unit, COMPUTATION)

    @property
    def symbol(self) -> str:
        """The unit behind a number: "B", "flop", or "" for instructions, cycles and accesses."""
        return {"byte": "B", "flop": "flop"}.get(self.unit, "")


def _floats(bits: int) -> list[Count]:
    kind = f"fp{bits}"
    parts = [("fma", "multiply-add", 2), ("add", "add", 1), ("mul", "multiply", 1), ("other", "other", 0)]
    entries = [Count(f"{kind}_{part}", "instruction", kind, f"FP{bits} {words}", flops) for part, words, flops in parts]
    return [*entries, Count(kind, "instruction", kind, f"FP{bits} (kinds not told apart)")]


def _byte_counts(name: str, group: str, label: str) -> list[Count]:
    return [Count(f"{name}_{way}", "byte", group, f"{label} {way}") for way in ("read", "write")]


def _level(name: str, label: str) -> list[Count]:
    total = Count(name, "byte", name, f"{label} (reads and writes not told apart)")
    return [*_byte_counts(name, name, label), total]


_TENSOR_TYPES = ("fp64", "fp16", "fp8", "fp6", "fp4", "tf32", "bf16", "int8")
_TENSOR = [
    *(Count(f"tensor_{kind}", "flop", "tensor", f"Tensor {kind.upper()}") for kind in _TENSOR_TYPES),
    Count("tensor_other", "flop", "tensor", "Tensor other, or types not told apart"),
]
_ALL = [
    Count("tensor", "instruction", "tensor", "Tensor"),
    *_TENSOR,
    Count("fp64_narrow", "flop", "fp64", "Of these FP64 flops, in scalar or 128-bit instructions"),
    Count("fp64_scalar", "flop", "fp64", "Of these FP64 flops, in scalar instructions"),
    *_floats(64),
    Count("fp32_scalar", "flop", "fp32", "Of these FP32 flops, in scalar instructions"),
    *_floats(32),
    *_floats(16),
    Count("integer", "instruction", "int", "Integer"),
    Count("special", "instruction", "sfu", "Special functions"),
    Count("conversion", "instruction", "other", "Conversions"),
    Count("control", "instruction", "other", "Control"),
    Count("load_store", "instruction", "other", "Load and store"),
    Count("communication", "instruction", "other", "Shuffles and votes"),
    Count("misc", "instruction", "other", "Moves and barriers"),
    Count("warp_issue", "instruction", "other", "Warp instructions issued"),
    Count("sm_active_cycle", "cycle", "other", "SM active cycles"),
    Count("retired", "instruction", "other", "Instructions retired"),
    Count("core_active", "cycle", "other", "Active core cycles"),
    *_byte_counts("shared", "shared", "Shared memory"),
    *_level("l1", "L1"),
    *_level("l2", "L2"),
    *_level("l3", "L3"),
    Count(RANDOM, "access", "dram", "DRAM accesses at random"),
    *_level("dram", "DRAM"),
    *_byte_counts("system", "system", "Host memory"),
    *_byte_counts("global", "requested", "Global, requested"),
    *_byte_counts("local", "requested", "Local (spills)"),
]

COUNTS: dict[str, Count] = {count.name: count for count in _ALL}
# All that a cost table prices: constant power is paid by the second.
PRICED = (*COUNTS, CONSTANT)
GROUP_OF = {name: count.group for name, count in COUNTS.items()} | {CONSTANT: CONSTANT}
INSTRUCTIONS = tuple(name for name, count in COUNTS.items() if count.unit == "instruction")
COMPUTATION_WORDS = tuple(name for name, count in COUNTS.items() if count.family == COMPUTATION)
ISSUED = ("warp_issue", "retired")  # every instruction once: never added to those of classes
DATA_WORDS = tuple(name for name, count in COUNTS.items() if count.family == DATA)
BYTES = tuple(name for name, count in COUNTS.items() if count.unit == "byte")
BOOKS = ("served", "accessed")

# A total stands in for its parts where a profiler has only the total: never both priced.
FLOAT_PARTS: dict[str, tuple[str, ...]] = {
    total: tuple(f"{total}_{part}" for part in ("fma", "add", "mul", "other")) for total in ("fp64", "fp32", "fp16")
}
_LEVELS = ("l1", "l2", "l3", "dram")
LEVEL_PARTS: dict[str, tuple[str, ...]] = {level: (f"{level}_read", f"{level}_write") for level in _LEVELS}
# Instructions stand in for flops here: their sums and prices are of other units.
TENSOR_PARTS: dict[str, tuple[str, ...]] = {"tensor": tuple(count.name for count in _TENSOR)}
TENSOR_FLOPS = tuple(name for name in TENSOR_PARTS["tensor"] if name not in ("tensor_int8", "tensor_other"))
PARTS: dict[str, tuple[str, ...]] = {**FLOAT_PARTS, **LEVEL_PARTS, **TENSOR_PARTS}


def stand_ins(word: str) -> tuple[str, ...]:
    """Words that may stand in for one of the vocabulary: its parts, else the total that it is a part of, else ()."""
    if word in PARTS:
        return PARTS[word]
    return tuple(total for total, parts in PARTS.items() if word in parts)


CPU, GPU = "cpu", "gpu"  # the processors that a profiler counts on
# What one has and the other has not: of a GPU nobody needs to say that it has no L3.
SOME_FLOPS = ("fp64_narrow", "fp64_scalar", "fp32_scalar")  # which others count too
OF_CPUS = ("l3", *LEVEL_PARTS["l3"], *SOME_FLOPS, "retired", "core_active")
OF_GPUS = (
    *("tensor", *TENSOR_PARTS["tensor"]),
    *("communication", "warp_issue", "sm_active_cycle"),
    *(f"{memory}_{way}" for memory in ("shared", "system", "local") for way in ("read", "write")),
)
OF_OTHERS = {CPU: OF_GPUS, GPU: OF_CPUS}  # processor -> the words of the other

# What a cost table need not speak of: it pays where a price says so, and else is in the prices of what goes with it.
PAY_WHERE_PRICED = ("sm_active_cycle", *SOME_FLOPS, "retired", "core_active", RANDOM)

# The groups of the report in stacking order, with their labels.
GROUPS: dict[str, str] = {
    "constant": "Constant power",
    "tensor": "Tensor",
    "fp64": "FP64",
    "fp32": "FP32",
    "fp16": "FP16",
    "int": "Integer",
    "sfu": "Special functions",
    "other": "Other instructions",
    "shared": "Shared memory",
    "l1": "L1",
    "l2": "L2",
    "l3": "L3",
    "dram": "DRAM",
    "system": "Host memory",
    "requested": "Requested bytes",
}


class Nouns(Struct, frozen=True):
    """What runs, and on what, in the words of a kind of processor: a GPU launches kernels, a CPU calls functions.

    board: what holds the processor and has a power limit. simulated: what its simulators do not count exactly. nearer:
    memory levels nearer than DRAM, the farthest first. labels: for words that it calls otherwise. energy, joule:
    what is compared, and its unit; pace: what counts are of, " a second" where logs tell rates alone.
    """

    kernel: str
    kernels: str
    launch: str
    launches: str
    processor: str
    board: str
    capability: str
    simulated: str
    nearer: tuple[str, ...]
    labels: dict[str, str] = {}
    energy: str = "energy"
    joule: str = "J"
    pace: str = ""

    @property
    def is_of_cpu(self) -> bool:
        """Whether these are the words for a CPU."""
        return self.processor == "CPU"

    def of(self, number: float) -> str:
        """The noun behind a number: "kernel" or "kernels"."""
        return self.kernel if number == 1 else self.kernels

    def label(self, word: str) -> str:
        """The label of a word of the vocabulary on this kind of processor; else of the group with this name."""
        if word in COUNTS and word not in self.labels:
            return COUNTS[word].label
        return self.group(word)

    def group(self, name: str) -> str:
        """The label of a group of counts on this kind of processor."""
        return self.labels.get(name) or GROUPS[name]


_OF_GPUS = Nouns(
    *("kernel", "kernels", "launch", "launches", "GPU", "board", "compute capability", "counts"),
    nearer=("l2", "l1", "shared"),
)
_AMD_LABELS = {"tensor": "Matrix cores", "warp_issue": "Wave instructions issued"}
OF_AMD = replace(_OF_GPUS, labels={**_AMD_LABELS, "sm_active_cycle": "Running compute units"})
_OF_CPUS = Nouns(
    *("function", "functions", "call", "calls", "CPU", "socket", "architecture", "caches"),
    nearer=("l3", "l2", "l1"),
    labels={
        "special": "Divisions and roots",
        "sfu": "Divisions and roots",
        "misc": "Moves and others",
        "global_read": "Requested read",
        "global_write": "Requested write",
    },
)


def in_document(processor: str) -> str | UnsetType:
    """The processor, "cpu" or "gpu", as documents have it: UNSET for "gpu", which they leave out."""
    return {GPU: UNSET}.get(processor, processor)


def nouns_of(processor: str | UnsetType | None = None) -> Nouns:
    """The words for "cpu"; for anything else ("gpu", UNSET, None) those for GPUs."""
    return _OF_CPUS if processor == CPU else _OF_GPUS


# ----------------------------------------------------------------------------------------------------------------------
# What must be said beside a number. Marks join by `|`, so a result carries those of all it was made of.


class Mark(IntFlag):
    """Why a number is not simply exact.

    MISSING: something could not be counted or priced, so a total is a lower bound. ESTIMATED: derived by an approximate
    formula. SIMULATED: counted in a simulation, of the device or of its caches. ASSUMED: rests on a choice that its
    source leaves open.
    """

    MISSING = 1
    ESTIMATED = 2
    SIMULATED = 4
    ASSUMED = 8

    def __or__(self, other: int) -> "Mark":
        # As every report joins thousands: IntFlag's own way takes ten times as long.
        return _JOINED[int.__or__(self, other)] if isinstance(other, int) else NotImplemented

    __ror__ = __or__


NONE = Mark(0)
MISSING, ESTIMATED, SIMULATED, ASSUMED = (int(mark) for mark in Mark)  # for arrays of marks
_JOINED = tuple(Mark(joined) for joined in range(16))
_MARK_NAMES = tuple([str(flag.name).lower() for flag in Mark if joined & flag.value] for joined in range(16))


def marked(mark: Mark, holds: object) -> Mark:
    """Give `mark` if `holds` is true, else NONE."""
    return mark if holds else NONE


def mark_names(mark: int) -> list[str]:
    """The marks in `mark` as lower-case words, in a fixed order: `mark_names(Mark.MISSING | Mark.ASSUMED)`."""
    return list(_MARK_NAMES[mark])


def marks_of_names(words: list[str]) -> Mark:
    """The marks with these names, the inverse of `mark_names`. Raises KeyError for a word that is no mark."""
    return reduce(or_, (Mark[word.upper()] for word in words), NONE)
