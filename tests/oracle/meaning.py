"""What counters mean: instructions by class and bytes by level of one kernel. After docs/counters.md.

An instruction is one of a thread that was not predicated off, a multiply-add is one. A sector is 32 B. *Served*: a byte counts
at the one level that had it. *Accessed*: it counts at every level that it passed. A word is left out where this page has no
way to count it; that says nothing about eprof.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress

from .amounts import Amount, amount, at_least
from .readers import NCU, Row
from .totals import Kernel

SECTOR = 32
LINE = 128
Words = dict[str, Amount]
KEPLER, UNIFIED, VOLTA = ("3.0", "3.5", "3.7"), ("5.0", "5.2", "6.0", "6.1"), ("7.0",)
SASS = "{}__sass_thread_inst_executed_op_{}_pred_on.sum"


class Unknown(Exception):
    """A counter that this kernel has not."""


class Look:
    """The counters of a kernel by name; the first of several names that is there. Raises Unknown."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def __call__(self, *names: str) -> Amount:
        for name in names:
            if name in self.kernel.counters:
                return self.kernel.counters[name]
        raise Unknown(names[0])

    def share(self, *names: str) -> Amount:
        """A percentage as a fraction: an average over launches, so an estimate where there are several."""
        for name in names:
            if name in self.kernel.shares:
                value = amount(self.kernel.shares[name] / 100)
                return value.roughly() if self.kernel.launches > 1 else value
        raise Unknown(names[0])

    def slices(self, pattern: str, number: int) -> Amount:
        """The sum over all slices that the log has: these must be the first, and not fewer than the chip has."""
        there = [name for part in range(16) if (name := pattern.format(part)) in self.kernel.counters]
        if len(there) < number or there != [pattern.format(part) for part in range(len(there))]:
            raise Unknown(pattern)
        return sum((self.kernel.counters[name] for name in there), amount(0.0))


def first(*ways: Callable[[], Amount]) -> Amount:
    """The first way whose counters are all there. Raises Unknown."""
    for way in ways:
        with suppress(Unknown):
            return way()
    raise Unknown("all ways")


def words(kernel: Kernel, capability: str, books: str, profiler: str) -> Words:
    """The words that can be counted. books: "served" or "accessed"; profiler: "nvprof" or "ncu"."""
    look = Look(kernel)
    pairs = _ncu(look, capability, books) if profiler == "ncu" else _nvprof(look, capability, books)
    found: Words = {}
    for word, way in pairs:
        with suppress(Unknown):
            found[word] = way().floor()
    return _either(found)


def _either(found: Words) -> Words:
    """A class as a whole, or by its kinds; never both."""
    for kind in ("fp64", "fp32", "fp16"):
        parts = [f"{kind}_{part}" for part in ("fma", "add", "mul")]
        if all(part in found for part in parts):
            found.pop(kind, None)
        elif kind in found:
            for part in (*parts, f"{kind}_other"):
                found.pop(part, None)
    return found


Pairs = Iterator[tuple[str, Callable[[], Amount]]]

# ------------------------------------------------------------------------------------------------------------ nvprof

PLAIN = {
    "special": ("flop_count_sp_special", "flops_sp_special"),
    "integer": ("inst_integer",),
    "conversion": ("inst_bit_convert",),
    "control": ("inst_control",),
    "load_store": ("inst_compute_ld_st",),
    "communication": ("inst_inter_thread_communication",),
    "misc": ("inst_misc",),
    "warp_issue": ("inst_executed",),
}


def _nvprof(look: Look, capability: str, books: str) -> Pairs:
    for word, names in PLAIN.items():
        yield word, lambda names=names: look(*names)
    yield from _floats(look, "fp64", "dp", "inst_fp_64")
    yield from _floats(look, "fp32", "sp", "inst_fp_32")
    yield from _nvprof_memory(look, capability, books)


def _floats(look: Look, word: str, short: str, total: str) -> Pairs:
    """Flops are adds, multiplies and twice the multiply-adds: of the four any three tell the fourth."""

    def own(kind: str) -> Amount:
        return look(f"flop_count_{short}{kind}", f"flops_{short}{kind}")

    def part(kind: str) -> Amount:
        if kind == "_fma":
            return first(lambda: own("_fma"), lambda: ((own("") - own("_add") - own("_mul")) / 2).floor())
        other = "_mul" if kind == "_add" else "_add"
        return first(lambda: own(kind), lambda: (own("") - 2 * own("_fma") - own(other)).floor())

    def special() -> Amount:
        return look(*PLAIN["special"]) if short == "sp" else amount(0.0)

    def special_or_none() -> Amount:
        return first(special, lambda: amount(0.0))

    def kinds() -> Amount:
        return part("_fma") + part("_add") + part("_mul")

    for kind in ("_fma", "_add", "_mul"):
        yield f"{word}{kind}", lambda kind=kind: part(kind)
    yield f"{word}_other", lambda: look(total) - kinds() - special_or_none()

    def bounds() -> Amount:
        """Of so many flops: every one an add, or every two a multiply-add."""
        flops = own("")
        least = first(lambda: flops - own("_fma"), lambda: flops / 2)
        return Amount(least.low, least.guess, max(flops.high, least.low), least.estimated)

    yield word, lambda: first(lambda: look(total) - special_or_none(), bounds)


class Memory:
    """The memory of a GPU generation: how its levels are counted."""

    def __init__(self, look: Look, capability: str) -> None:
        self.look = look
        self.kepler, self.volta = capability in KEPLER, capability in VOLTA
        self.slices = 2 if self.volta else 4

    def sectors(self, metric: str, events: str) -> Amount:
        return SECTOR * first(lambda: self.look(metric), lambda: self.look.slices(events, self.slices))

    def requests(self, way: str) -> Amount:
        return self.sectors(f"l2_{way}_transactions", f"l2_subp{{}}_total_{way}_sector_queries")

    def fetched(self) -> Amount:
        return self.sectors("l2_tex_read_transactions", "l2_subp{}_read_tex_sector_queries")

    def dram(self, way: str) -> Amount:
        return first(
            lambda: self.look("" if self.kepler else f"dram_{way}_bytes"),
            lambda: SECTOR * self.look(f"dram_{way}_transactions"),
            lambda: SECTOR * self.look.slices("" if self.volta else f"fb_subp{{}}_{way}_sectors", 2),
            lambda: _if(SECTOR * self.look.slices(f"l2_subp{{}}_{way}_sector_misses", self.slices), not self.volta),
        )

    def dram_data(self) -> Amount:
        """DRAM reads without the fetches of check bits, which nobody in L2 asked for."""
        ecc = "" if self.volta else "ecc_transactions"
        return first(lambda: (self.dram("read") - SECTOR * self.look(ecc)).floor(), lambda: self.dram("read"))

    def system(self, way: str) -> Amount:
        return first(
            lambda: self.look("" if self.kepler else f"sysmem_{way}_bytes"),
            lambda: self.sectors(f"sysmem_{way}_transactions", f"l2_subp{{}}_{way}_sysmem_sector_queries"),
        )

    def system_or_none(self, way: str) -> Amount:
        return first(lambda: self.system(way), lambda: amount(0.0).roughly())

    def shared(self, way: str) -> Amount:
        """A transaction is a full warp's 4-byte data; with its efficiency, a share of what it could move."""
        name, event = f"shared_{way}_transactions", f"l1_shared_{way}_transactions"
        moved = self.look(name, event) if self.kepler else self.look(name)
        full = 2 * LINE if self.kepler else LINE
        return first(lambda: self.look.share("shared_efficiency") * full * moved, lambda: LINE * moved)

    def hits(self) -> Amount:
        """Reads that L2 served: counted, by their hit rate, or all less those of DRAM and the host."""

        def rest() -> Amount:
            return self.requests("read") - self.dram_data() - self.system_or_none("read")

        counted, by_rate = (self._kepler_hits if self.kepler else self._unified_hits)()
        return first(counted, rest, by_rate) if self.volta else first(counted, by_rate, rest)

    def _kepler_hits(self) -> tuple[Callable[[], Amount], Callable[[], Amount]]:
        def counted() -> Amount:
            l1 = self.look.slices("l2_subp{}_read_l1_hit_sectors", 4)
            return SECTOR * (l1 + self.look.slices("l2_subp{}_read_tex_hit_sectors", 4))

        def by_rates() -> Amount:
            l1 = self.sectors("l2_l1_read_transactions", "l2_subp{}_read_l1_sector_queries")
            texture = self.look.share("l2_texture_read_hit_rate", "l2_tex_read_hit_rate")
            return l1 * self.look.share("l2_l1_read_hit_rate") + self.fetched() * texture

        return counted, by_rates

    def _unified_hits(self) -> tuple[Callable[[], Amount], Callable[[], Amount]]:
        def counted() -> Amount:
            return SECTOR * self.look.slices("l2_subp{}_read_tex_hit_sectors", self.slices)

        return counted, lambda: _if(self.fetched() * self.look.share("l2_tex_read_hit_rate"), self.volta)


def _nvprof_memory(look: Look, capability: str, books: str) -> Pairs:
    if capability not in (*KEPLER, *UNIFIED, *VOLTA):
        return
    memory, accessed = Memory(look, capability), books == "accessed"
    for way, verb in (("read", "load"), ("write", "store")):
        yield f"dram_{way}", lambda way=way: memory.dram(way)
        yield f"system_{way}", lambda way=way: memory.system(way)
        yield f"shared_{way}", lambda verb=verb: memory.shared(verb)
        if accessed:
            yield f"l2_{way}", lambda way=way: memory.requests(way)
    if not accessed:
        yield "l2_read", memory.hits
        yield "l2_write", lambda: memory.requests("write") - memory.dram("write") - memory.system_or_none("write")
    if capability in UNIFIED:
        loads = "tex_cache_transactions"
        yield "l1_read", lambda: SECTOR * look(loads) if accessed else SECTOR * look(loads) - memory.fetched()
        if accessed:
            yield "l1_write", lambda: SECTOR * look("l2_tex_write_transactions")


def _if(value: Amount, estimated: bool) -> Amount:
    return value.roughly() if estimated else value


# --------------------------------------------------------------------------------------------------------------- ncu

CLASSES = {
    "control": "control",
    "load_store": "memory",
    "communication": "inter_thread_communication",
    "misc": "misc",
    "conversion": "conversion",
}
HALVES = {"d": "fp64", "f": "fp32", "h": "fp16"}


def _ncu(look: Look, capability: str, books: str) -> Pairs:
    def op(name: str) -> Amount:
        names = [SASS.format(unit, name) for unit in ("smsp", "sm")]
        return first(lambda: look(*names), lambda: _rate(look.kernel, names[0]))

    for letter, kind in HALVES.items():
        for part in ("fma", "add", "mul"):
            yield f"{kind}_{part}", lambda name=letter + part: op(name)
        if kind != "fp32":  # whether special functions are among those is not documented
            yield kind, lambda kind=kind: look(*(SASS.format(unit, kind) for unit in ("smsp", "sm")))
            yield (
                f"{kind}_other",
                lambda letter=letter, kind=kind: (
                    look(*(SASS.format(unit, kind) for unit in ("smsp", "sm")))
                    - (op(f"{letter}fma") + op(f"{letter}add") + op(f"{letter}mul"))
                ),
            )
    for word, name in CLASSES.items():
        yield word, lambda name=name: look(*(SASS.format(unit, name) for unit in ("smsp", "sm")))

    def integer() -> Amount:
        whole, bits = ([SASS.format(unit, name) for unit in ("smsp", "sm")] for name in ("integer", "bit"))
        return first(lambda: look(*whole) + look(*bits), lambda: at_least(look(*whole).low))

    yield "integer", integer
    yield "warp_issue", lambda: look("smsp__inst_executed.sum", "sm__inst_executed.sum")
    yield from _ncu_memory(look, books)
    yield from _ncu_tensor(look, capability)


# Tensor flops by the type of operands: the metrics of GV100, GA100 and GA10x, whose sum a type is.
OPERATIONS = {
    "fp16": ("fp16_dst_fp16", "fp16_dst_fp32"),
    "bf16": ("bf16_dst_fp32",),
    "tf32": ("tf32_dst_fp32",),
    "fp64": ("fp64",),
    "int8": ("int8",),
    "other": ("int4", "int1"),
}
MODIFIERS = {
    "HMMA": {"BF16": "bf16", "TF32": "tf32", "": "fp16"},
    "HGMMA": {"BF16": "bf16", "TF32": "tf32", "": "fp16"},
    "DMMA": {"": "fp64"},
    "IMMA": {"S8": "int8", "U8": "int8", "": "other"},
    "BMMA": {"": "other"},
}


def _ncu_tensor(look: Look, capability: str) -> Pairs:
    if capability not in ("7.0", "8.0", "8.6", "9.0"):
        return
    for kind, parts in OPERATIONS.items():
        if capability == "7.0" and kind != "fp16":
            continue
        ways = [lambda kind=kind: _operations(look, kind), lambda parts=parts: _all_of(look, parts)]
        ways.append(lambda kind=kind: _by_shape(look.kernel, kind))
        if capability == "7.0":
            ways.append(lambda: (512 * look("sm__inst_executed_pipe_tensor.sum")).roughly())
        ways.append(lambda parts=parts: _some_of(look, parts))
        yield f"tensor_{kind}", lambda ways=ways: first(*ways)


def _operations(look: Look, kind: str) -> Amount:
    name = f"sm__ops_path_tensor_src_{kind}"
    halves = [f"{name}_sparsity_{half}.sum" for half in ("on", "off")]
    return first(lambda: look(f"{name}.sum"), lambda: look(halves[0]) + look(halves[1]))


def _all_of(look: Look, kinds: tuple[str, ...]) -> Amount:
    return sum((_operations(look, kind) for kind in kinds), amount(0.0))


def _some_of(look: Look, kinds: tuple[str, ...]) -> Amount:
    return at_least(first(*(lambda kind=kind: _operations(look, kind) for kind in kinds)).low)


def _by_shape(kernel: Kernel, kind: str) -> Amount:
    """Matrix instructions of all launches, each of 2 m n k flops."""
    if any(row.opcodes is None for row in kernel.rows):
        raise Unknown("opcodes")
    numbers = [pair for row in kernel.rows for pair in row.opcodes.items()]
    matrices = [(opcode, number) for opcode, number in numbers if opcode.partition(".")[0].endswith("MMA")]
    flops = [(*_matrix(opcode), number) for opcode, number in matrices]
    return amount(math.fsum(number * size for own, size, number in flops if own == kind))


def _matrix(opcode: str) -> tuple[str, float]:
    """The type of the operands, and the flops for a warp: "16816" is 16 x 8 x 16, "64x128x16" is for four warps."""
    name, *modifiers = opcode.split(".")
    shapes = [modifier for modifier in modifiers if modifier[0].isdigit()]
    kinds = MODIFIERS.get(name)
    if kinds is None or len(shapes) != 1 or any("STEP" in modifier for modifier in modifiers):
        raise Unknown(opcode)
    kind = next((kinds[modifier] for modifier in modifiers if modifier in kinds), kinds[""])
    if "x" in shapes[0]:
        return kind, 2 * math.prod(map(int, shapes[0].split("x"))) / 4
    rows = 16 if shapes[0].startswith("16") else 8
    depth = shapes[0].removeprefix(f"{rows}8")
    return kind, 2.0 * rows * 8 * int(depth)


def _rate(kernel: Kernel, name: str) -> Amount:
    """A rate a cycle times the cycles of the same launch, then the sum: rounded, so an estimate."""
    total, holes, known = 0.0, False, False
    for row in kernel.rows:
        if row.kind != NCU:
            continue
        rate, cycles = row.values.get(f"{name}.per_cycle_elapsed"), _cycles(row)
        if rate is None or cycles is None:
            holes = True
        else:
            total, known = total + rate * cycles, True
    if not known:
        raise Unknown(name)
    return Amount(0.0, total, math.inf, not holes)


def _cycles(row: Row) -> float | None:
    """The mean of the cycles of all sub-partitions, of which the rate is; else the longest."""
    mean, total = row.values.get("smsp__cycles_elapsed.avg"), row.values.get("smsp__cycles_elapsed.sum")
    units = [
        row.values.get(f"device__attribute_{name}")
        for name in ("multiprocessor_count", "num_schedulers_per_multiprocessor")
    ]
    if mean is None and total is not None and None not in units:
        mean = total / (units[0] * units[1])
    for unit in ("gpc", "smsp", "sm"):
        mean = row.values.get(f"{unit}__cycles_elapsed.max") if mean is None else mean
    return mean


def _ncu_memory(look: Look, books: str) -> Pairs:
    def dram(way: str) -> Amount:
        other = "write" if way == "read" else "read"
        return first(
            lambda: look(f"dram__bytes_{way}.sum", f"dram__bytes_op_{way}.sum"),
            lambda: SECTOR * look(f"dram__sectors_{way}.sum", f"dram__sectors_op_{way}.sum"),
            lambda: look("dram__bytes.sum") - look(f"dram__bytes_{other}.sum"),
            lambda: together(way),
        )

    def together(way: str) -> Amount:
        """Reads and writes that are not told apart: at most all of them, taken for reads; of writes nothing is known."""
        most = look("dram__bytes.sum").high
        return Amount(0.0, most, most, True) if way == "read" else Amount(0.0, math.nan, most)

    def atomics() -> Amount:
        counted = [
            f"lts__t_sectors_{middle}op_{kind}.sum" for middle in ("", "srcunit_tex_") for kind in ("atom", "red")
        ]
        return look(counted[0], counted[2]) + look(counted[1], counted[3])

    def asked(way: str) -> Amount:
        return look(f"lts__t_sectors_srcunit_tex_op_{way}.sum")

    def l1(way: str) -> Amount:
        both = [look(f"l1tex__t_sectors_pipe_lsu_mem_{space}_op_{way}.sum") for space in ("global", "local")]
        return both[0] + both[1] + (look("l1tex__t_sectors_pipe_tex_mem_texture.sum") if way == "ld" else 0.0)

    yield "dram_read", lambda: dram("read")
    yield "dram_write", lambda: dram("write")
    if books == "accessed":
        yield "l2_read", lambda: SECTOR * (asked("read") + atomics())
        yield "l2_write", lambda: SECTOR * (asked("write") + atomics())
        yield "l1_read", lambda: SECTOR * l1("ld")
        yield "l1_write", lambda: SECTOR * l1("st")
    else:
        hit = "lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum"
        yield "l2_read", lambda: SECTOR * (look(hit) + atomics())
        yield "l1_read", lambda: SECTOR * (l1("ld") - asked("read"))
        yield "l1_write", lambda: SECTOR * (l1("st") - asked("write"))
