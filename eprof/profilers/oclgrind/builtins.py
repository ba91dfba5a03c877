"""OpenCL's built-in functions as LLVM instructions, each computed as Oclgrind computes it: in double, then rounded."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec import Struct

from eprof.base.text import pattern
from eprof.profilers.oclgrind.ir import Emit, Sizes, Uncovered, lanes_of, pointed, space_of

# ----------------------------------------------------------------------------------------------------------------------
# What is in an OpenCL built-in's mangled name: its plain name, its type, its lanes, and the memory that it touches.

_MATH = """
    fma mad fmuladd sin cos tan asin acos atan atan2 sinh cosh tanh sinpi cospi exp exp2 exp10 expm1 log log2 log10
    log1p pow pown powr rootn sqrt rsqrt cbrt hypot fabs fmin fmax fmod floor ceil round rint trunc minnum maxnum
    copysign ldexp fract native_sin native_cos native_exp native_exp2 native_log native_log2 native_sqrt
    native_rsqrt native_recip native_divide half_sqrt half_rsqrt half_recip half_divide erf erfc clamp mix step
    smoothstep dot length distance normalize
"""
_MATH_NAMES = frozenset(_MATH.split())
_SCALAR = {"f": "f32", "d": "f64", "Dh": "f16"}
_SIZES = {"c": 1, "h": 1, "s": 2, "t": 2, "Dh": 2, "i": 4, "j": 4, "f": 4, "l": 8, "m": 8, "d": 8}
_SPACES = {"1": "global", "2": "constant", "3": "local"}
_TYPE = pattern(r"(?:Dv(\d{1,4})_)?(Dh|[chstijlmfd])")
_POINTER = pattern(r"P(?:U3AS(\d))?[VKr]*(?:U7_Atomic)?(?:Dv\d+_)?(Dh|[chstijlmfd])?")
_INTRINSIC = pattern(r"llvm\.([a-z]+(?:\.[a-z]+)*?)(?:\.(?:v(\d{1,4}))?(f16|f32|f64|i\d+|p\d.*))?")


class Access(Struct, frozen=True):
    """Memory that one call touches. kind: "vload", "vstore", "atomic"...; bytes: None = not known."""

    kind: str
    operation: str
    space: str
    bytes: int | None


class Called(Struct, frozen=True):
    """A call: plain name, floating-point type if it has one, lanes, and the memory that it touches."""

    name: str
    type: str | None = None
    lanes: int = 1
    accesses: tuple[Access, ...] = ()

    @property
    def is_math(self) -> bool:
        """Whether a called OpenCL built-in's type is that of the arithmetic around it."""
        return self.name in _MATH_NAMES


def called(symbol: str) -> Called:
    """What the mangled `symbol` ("_Z3fmaDv4_fS_S_", "llvm.fmuladd.f64", "my_function") calls."""
    intrinsic = _INTRINSIC.fullmatch(symbol)
    if intrinsic:
        name, width, types = intrinsic.groups(default="")
        return Called(name, types if types in _SCALAR.values() else None, int(width or 1), _copied(name, types))
    mangled = re.match(r"_Z(\d{1,6})", symbol)
    if not mangled:
        return Called(symbol)
    end = mangled.end() + int(mangled[1])
    name = symbol[mangled.end() : end]
    arguments = symbol[end:]
    # The first argument's type, pointers' targets included.
    first = _TYPE.match(re.sub(r"U\d(AS\d)?|[PVKr]", "", arguments))
    lanes, letter = (int(first[1] or 1), first[2]) if first else (1, "")
    if name.startswith(("get_", "barrier", "vload", "vstore", "atom")):
        lanes = 1
    return Called(name, _SCALAR.get(letter), lanes, _accesses(name, arguments))


def _copied(name: str, types: str) -> tuple[Access, ...]:
    """The memory in llvm.memcpy.p0i8.p1i8.i64: an unknown number of bytes from the second space to the first."""
    return _copies(re.findall(r"p(\d)", types)) if name.startswith(("memcpy", "memmove", "memset")) else ()


def _copies(spaces: Sequence[str]) -> tuple[Access, ...]:
    """A copy of an unknown number of bytes in an OpenCL name: to the first space, from the second."""
    ways = zip(("store", "load"), spaces, strict=False)
    return tuple(Access("copy", operation, _SPACES.get(space, "private"), None) for operation, space in ways)


def _accesses(name: str, arguments: str) -> tuple[Access, ...]:
    """The memory that a built-in touches beside the loads and stores that are counted."""
    if name.startswith("async_work_group"):
        return _copies(re.findall(r"PU3AS(\d)", arguments))
    if name.startswith(("read_image", "write_image")):
        return (Access("image", {"r": "load", "w": "store"}[name[0]], "global", None),)
    pointer = _POINTER.search(arguments)
    if pointer is None or not name.startswith(("vload", "vstore", "atom")):
        return ()
    space = _SPACES.get(pointer[1] or "0", "private")
    size = _SIZES.get(pointer[2] or "")
    if name.startswith("atom"):
        return (Access("atomic", "load", space, size),)
    kind = next(each for each in ("vload", "vstore") if name.startswith(each))
    width = re.search(r"(\d{1,4})$", name.partition("_half")[2] or name)
    if size is not None and width:
        size *= int(width[1])
    return (Access(kind, kind[1:], space, size),)


# Slots of the context, as in plugin.h.
SLOTS = {
    "recorder": 0,
    "globals": 1,
    "n_globals": 2,
    "locals": 3,
    "n_locals": 4,
    "counters": 5,
    "trap": 6,
    "stack_low": 7,
    "stack_size": 8,
    "get_work_dim": 9,
    "local_linear": 11,
    "get_global_id": 12,
    "get_local_id": 16,
    "get_group_id": 20,
    "get_global_size": 24,
    "get_global_offset": 28,
    "get_local_size": 32,
    "get_enqueued_local_size": 36,
    "get_num_groups": 40,
}


# Functions of doubles, with what computes them and of how many: LLVM, C, or builtins.cpp ("eprof_").
_DOUBLES = {
    name: (form.format(name), count)
    for form, count, names in (
        ("llvm.{}.f64", 1, "ceil fabs floor rint sqrt trunc"),
        ("{}", 1, "acos acosh asin asinh atan atanh cbrt cos cosh erf erfc exp exp2 expm1 lgamma log log10 log1p log2"),
        ("{}", 1, "logb round sin sinh tan tanh tgamma"),
        ("eprof_{}", 1, "acospi asinpi atanpi cospi degrees exp10 radians recip rsqrt sign sinpi tanpi"),
        ("{}", 2, "atan2 copysign fdim fmod hypot pow remainder"),
        ("eprof_{}", 2, "atan2pi divide maxmag minmag powr step"),
        ("eprof_{}", 3, "mix smoothstep"),
    )
    for name in names.split()
}
_RELATIONS = {
    "isequal": "oeq",
    "isnotequal": "une",
    "isgreater": "ogt",
    "isgreaterequal": "oge",
    "isless": "olt",
    "islessequal": "ole",
    "islessgreater": "one",
    "isordered": "ord",
    "isunordered": "uno",
}
_CLASSES = ("isfinite", "isinf", "isnan", "isnormal", "signbit")
_INTEGERS = ("abs", "abs_diff", "add_sat", "clz", "hadd", "mad_hi", "mad_sat", "mul_hi", "rhadd", "rotate", "sub_sat")
# The second result goes through a pointer: its type in C.
_POINTED = {"fract": "", "frexp": "i32", "lgamma_r": "i32", "modf": "", "remquo": "i32", "sincos": ""}
_ATOMICS = {"inc": "add", "dec": "sub", "cmpxchg": "", "max": "max", "min": "min"} | {
    name: name for name in ("add", "and", "or", "sub", "xchg", "xor")
}
_REDUCTIONS = {"all": "and", "any": "or"}
# Of a type with a fraction: its bits, and the end of C's names for functions of it.
_FRACTIONS = {"float": (32, "f"), "double": (64, "")}
_NOTHING = ("mem_fence", "read_mem_fence", "write_mem_fence", "prefetch")


class Call(NamedTuple):
    """A call of a built-in function: its name and overload as Oclgrind takes them apart, and its operands."""

    name: str
    overload: str
    result: str | None
    kind: str
    operands: list[tuple[str, str]]

    @property
    def signed(self) -> bool:
        """Whether the first operand is of a signed type."""
        letter = re.sub(r"^Dv\d+_", "", self.overload)[:1]
        return letter in "csil"

    @property
    def sign(self) -> str:
        """As instructions and builtins.cpp write it: "s" or "u"."""
        return "us"[self.signed]

    @property
    def truth(self) -> str:
        """The instruction by which a relation is a number: all bits of a vector's elements are set where it holds."""
        return ("zext", "sext")[self.kind.startswith("<")]

    @property
    def memory_kind(self) -> str:
        """The type that a vloadN or vstoreN moves."""
        return self.operands[0][0] if self.name.startswith("vstore") else self.kind

    @property
    def floating(self) -> bool:
        """Whether the first operand is a number with a fraction."""
        return lanes_of(self.operands[0][0])[1] in ("float", "double")

    @property
    def rounding(self) -> int:
        """How the name asks to round, as builtins.cpp numbers it; 0: it does not."""
        match = re.search(r"_rt([ezpn])", self.name)
        return " ezpn".index(match[1]) if match else 0


def _fraction(kind: str) -> tuple[int, str]:
    """What `_FRACTIONS` has of a type. Raises Uncovered."""
    if kind not in _FRACTIONS:
        raise Uncovered(f"numbers of type {kind}")
    return _FRACTIONS[kind]


class Builtins:
    """Writes what stands in place of calls; `sites` numbers barriers."""

    def __init__(self, emit: Emit, sizes: Sizes) -> None:
        self.e = emit
        self._sizes = sizes
        self.barriers = 0

    def write(self, call: Call) -> None:
        """Write a call's instructions. Raises Uncovered."""
        name = re.sub(r"^(half|native|fast)_", "", call.name)
        writer = self._special(name, call)
        if writer is not None:
            writer(call)
            return
        number, element = lanes_of(call.kind)
        self.e.vector(call.kind, [self._element(name, call, lane, element) for lane in range(number)], call.result)

    def _special(self, name: str, call: Call) -> Callable[[Call], None] | None:
        """What writes a call that is not computed element by element."""
        if name in SLOTS or name in ("get_global_linear_id", "get_local_linear_id"):
            return self._work_item
        if name in ("barrier", "work_group_barrier", "wait_group_events"):
            return self._barrier
        if name in _NOTHING:
            return lambda call: None
        if name.startswith(("atomic_", "atom_")) and name.partition("_")[2] in _ATOMICS:
            return self._atomic
        if re.fullmatch(r"v(load|store)\d+", name):
            return self._vector_memory
        if re.fullmatch(r"v(load|store)a?_half\d*(_rt.)?", name):
            return self._half_memory
        if name.startswith("async_work_group_"):
            return self._copy
        if name in _REDUCTIONS:
            return self._reduction
        if name in ("dot", "cross", "length", "distance", "normalize"):
            return self._geometry
        return self._printf if name == "printf" else None

    # Values as Oclgrind takes them.

    def _operand(self, call: Call, index: int, lane: int) -> tuple[str, str]:
        kind, value = call.operands[index]
        return lanes_of(kind)[1], self.e.lane(kind, value, lane)

    def _double(self, call: Call, index: int, lane: int) -> str:
        kind, value = self._operand(call, index, lane)
        if kind not in ("float", "double"):
            raise Uncovered(f"{call.name} of {kind}")
        return self.e.cast("fpext", kind, value, "double")

    def _integer(self, call: Call, index: int, lane: int, signed: bool) -> str:
        kind, value = self._operand(call, index, lane)
        return self.e.cast(("zext", "sext")[signed], kind, value, "i64")

    def _rounded(self, value: str, kind: str) -> str:
        _fraction(kind)
        return self.e.cast("fptrunc", "double", value, kind)

    def _cut(self, value: str, kind: str) -> str:
        return self.e.cast("trunc", "i64", value, kind)

    def _doubles(self, function: str, call: Call, lane: int, kind: str, count: int) -> str:
        operands = [("double", self._double(call, index, lane)) for index in range(count)]
        return self._rounded(self.e.call("double", function, *operands), kind)

    def _element(self, name: str, call: Call, lane: int, kind: str) -> str:
        value = self._mathematical(name, call, lane, kind)
        if value is not None:
            return value
        if name in ("max", "min", "clamp"):
            return self._limits(name, call, lane, kind)
        if name in _POINTED:
            return self._two_results(name, call, lane, kind)
        if name in _RELATIONS or name in _CLASSES:
            return self._relation(name, call, lane, kind)
        if name.startswith("convert_"):
            return self._convert(call, lane, kind)
        return self._whole(name, call, lane, kind) if kind.startswith("i") else self._chosen(name, call, lane, kind)

    def _mathematical(self, name: str, call: Call, lane: int, kind: str) -> str | None:
        """Functions of numbers with a fraction; None: it is none of them."""
        e = self.e
        if name in _DOUBLES or (name == "bitselect" and call.floating):
            function, count = _DOUBLES.get(name, ("eprof_bitselect", 3))
            return self._doubles(function, call, lane, kind, count)
        if name in ("fma", "mad") or name.startswith("llvm.fmuladd"):
            operands = [(kind, self._operand(call, index, lane)[1]) for index in range(3)]
            return e.call(kind, f"llvm.fma.f{_fraction(kind)[0]}", *operands)
        if name in ("fmax", "fmin", "nextafter"):
            operands = [(kind, self._operand(call, index, lane)[1]) for index in range(2)]
            return e.call(kind, name + _fraction(kind)[1], *operands)
        if name in ("ldexp", "pown", "rootn"):
            operands = [("double", self._double(call, 0, lane)), ("i64", self._integer(call, 1, lane, True))]
            return self._rounded(e.call("double", f"eprof_{name}", *operands), kind)
        if name == "ilogb":
            return self._cut(e.call("i64", "eprof_ilogb", ("double", self._double(call, 0, lane))), kind)
        if name in ("nan", "nanf"):
            return self._rounded(e.op("fadd double 0x7FF8000000000000, 0.0"), kind)
        return None

    def _whole(self, name: str, call: Call, lane: int, kind: str) -> str:
        e = self.e
        bits = int(kind[1:])
        if name in ("mad24", "mul24"):
            value = e.op(f"mul {kind} {self._operand(call, 0, lane)[1]}, {self._operand(call, 1, lane)[1]}")
            if name == "mad24":
                value = e.op(f"add {kind} {value}, {self._operand(call, 2, lane)[1]}")
            return value
        if name == "popcount":
            return e.call(kind, f"llvm.ctpop.{kind}", self._operand(call, 0, lane))
        if name == "upsample":
            high = e.op(f"shl i64 {self._integer(call, 0, lane, False)}, {bits // 2}")
            return self._cut(e.op(f"or i64 {high}, {self._integer(call, 1, lane, False)}"), kind)
        if name == "bitselect":
            a, b, c = (self._operand(call, index, lane)[1] for index in range(3))
            kept = e.op(f"and {kind} {a}, {e.op(f'xor {kind} {c}, -1')}")
            return e.op(f"or {kind} {kept}, {e.op(f'and {kind} {b}, {c}')}")
        if name in _INTEGERS:
            operands = [self._integer(call, index, lane, call.signed) for index in range(len(call.operands))]
            operands += ["0"] * (3 - len(operands)) + [str(bits)]
            function = f"eprof_{call.sign}_{name}"
            return self._cut(e.call("i64", function, *(("i64", operand) for operand in operands)), kind)
        return self._chosen(name, call, lane, kind)

    def _chosen(self, name: str, call: Call, lane: int, kind: str) -> str:
        e = self.e
        if name == "select":
            condition, value = self._operand(call, 2, lane)
            test = ("ne", "slt")[call.kind.startswith("<")]
            chosen = e.op(f"icmp {test} {condition} {value}, 0")
            other, this = self._operand(call, 0, lane)[1], self._operand(call, 1, lane)[1]
            return e.op(f"select i1 {chosen}, {kind} {this}, {kind} {other}")
        if name in ("shuffle", "shuffle2"):
            source, value = call.operands[0]
            number = lanes_of(source)[0]
            if name == "shuffle2":
                order = ", ".join(f"i32 {index}" for index in range(2 * number))
                second = call.operands[1][1]
                value = e.op(f"shufflevector {source} {value}, {source} {second}, <{2 * number} x i32> <{order}>")
                source, number = f"<{2 * number} x {kind}>", 2 * number
            index_kind, index = self._operand(call, len(call.operands) - 1, lane)
            index = e.op(f"urem {index_kind} {index}, {number}")
            return e.op(f"extractelement {source} {value}, {index_kind} {index}")
        raise Uncovered(f"it calls {call.name}")

    def _limits(self, name: str, call: Call, lane: int, kind: str) -> str:
        """max, min, clamp: fmax and fmin of vectors, comparisons of all others."""
        e = self.e
        vectors = call.operands[1][0].startswith("<")
        if call.floating and name != "clamp" and vectors:
            return self._doubles(f"f{name}", call, lane, kind, 2)
        test = "fcmp o" if call.floating else f"icmp {call.sign}"
        value = self._operand(call, 0, lane)[1]
        for index, sign in {"clamp": ((1, "gt"), (2, "lt")), "max": ((1, "gt"),), "min": ((1, "lt"),)}[name]:
            limit = self._operand(call, index, lane)[1]
            inside = e.op(f"{test}{sign} {kind} {value}, {limit}")
            value = e.op(f"select i1 {inside}, {kind} {value}, {kind} {limit}")
        return value

    def _relation(self, name: str, call: Call, lane: int, kind: str) -> str:
        e = self.e
        first = self._double(call, 0, lane)
        if name in _RELATIONS:
            holds = e.op(f"fcmp {_RELATIONS[name]} double {first}, {self._double(call, 1, lane)}")
        else:
            holds = e.op(f"icmp ne i64 {e.call('i64', f'eprof_{name}', ('double', first))}, 0")
        return e.op(f"{call.truth} i1 {holds} to {kind}")

    def _two_results(self, name: str, call: Call, lane: int, kind: str) -> str:
        e = self.e
        pointer, address = call.operands[-1]
        second = _POINTED[name] or kind
        slot = e.op("alloca double")
        count = len(call.operands) - 1
        operands = [("double", self._double(call, index, lane)) for index in range(count)]
        function = f"eprof_{name}"
        if name == "fract":
            function += _fraction(kind)[1]
        first = e.call("double", function, *operands, ("double*", slot), pure=False)
        value = e.op(f"load double, double* {slot}")
        value = e.op(f"fptosi double {value} to i32") if second == "i32" else self._rounded(value, kind)
        space = pointed(pointer)[1]
        cast = e.op(f"bitcast {pointer} {address} to {second}{space}")
        place = e.op(f"getelementptr {second}, {second}{space} {cast}, i64 {lane}")
        e.line(f"store {second} {value}, {second}{space} {place}, align 1")
        return self._rounded(first, kind)

    def _convert(self, call: Call, lane: int, kind: str) -> str:
        """convert_TYPE[_sat][_rtX]: by C where rounding or saturation is asked for."""
        e = self.e
        mode = call.rounding
        source = self._operand(call, 0, lane)[0]
        if source == "half" or kind == "half":
            raise Uncovered(f"it calls {call.name}")
        if kind in ("float", "double"):
            if not source.startswith("i"):
                value = self._double(call, 0, lane)
                if mode > 1 and kind == "float":
                    value = e.call("double", "eprof_round_f", ("double", value), ("i64", str(mode)))
                return self._rounded(value, kind)
            value = self._integer(call, 0, lane, call.signed)
            if mode > 1:
                function = f"eprof_round_{call.sign}"
                size = "i64", str(_fraction(kind)[0] // 8)
                return self._rounded(e.call("double", function, ("i64", value), ("i64", str(mode)), size), kind)
            if call.signed:
                return self._rounded(e.op(f"sitofp i64 {value} to double"), kind)
            return e.op(f"uitofp i64 {value} to {kind}")
        sign = "u" if call.name.startswith("convert_u") else "s"
        bits = kind[1:]
        if source.startswith("i"):
            value = self._integer(call, 0, lane, call.signed)
            if "_sat" in call.name:
                function = f"eprof_{sign}_sat_{call.sign}"
                value = e.call("i64", function, ("i64", value), ("i64", bits))
            return self._cut(value, kind)
        saturated = str(int("_sat" in call.name))
        operands = (("double", self._double(call, 0, lane)), ("i64", str(mode)), ("i64", saturated), ("i64", bits))
        return self._cut(e.call("i64", f"eprof_{sign}_of_f", *operands), kind)

    def _reduction(self, call: Call) -> None:
        e = self.e
        number, element = lanes_of(call.operands[0][0])
        signs = [e.op(f"icmp slt {element} {self._operand(call, 0, lane)[1]}, 0") for lane in range(number)]
        value = signs[0]
        for sign in signs[1:]:
            value = e.op(f"{_REDUCTIONS[call.name]} i1 {value}, {sign}")
        e.vector(call.kind, [e.op(f"zext i1 {value} to {call.kind}")], call.result)

    def _geometry(self, call: Call) -> None:
        e = self.e
        name = call.name.removeprefix("fast_")
        number = lanes_of(call.operands[0][0])[0]
        element = lanes_of(call.kind)[1]
        first = [self._double(call, 0, lane) for lane in range(number)]
        second = [self._double(call, 1, lane) for lane in range(number)] if len(call.operands) > 1 else []
        if name == "dot":
            total = "0.0"
            for one, other in zip(first, second, strict=True):
                total = e.op(f"fadd double {total}, {e.op(f'fmul double {one}, {other}')}")
            e.vector(call.kind, [self._rounded(total, element)], call.result)
            return
        if name == "cross":
            values = []
            for i, j in ((1, 2), (2, 0), (0, 1)):
                plus, minus = (e.op(f"fmul double {first[a]}, {second[b]}") for a, b in ((i, j), (j, i)))
                values.append(self._rounded(e.op(f"fsub double {plus}, {minus}"), element))
            e.vector(call.kind, values + ["0.0"] * (lanes_of(call.kind)[0] - 3), call.result)
            return
        if name == "distance":
            first = [e.op(f"fsub double {one}, {other}") for one, other in zip(first, second, strict=True)]
        operands = [("double", value) for value in [*first, *["0.0"] * (4 - number)]] + [("i64", str(number))]
        if name == "normalize":
            values = [e.call("double", "eprof_normalize", *operands, ("i64", str(lane))) for lane in range(number)]
        else:
            values = [e.call("double", "eprof_length", *operands)]
        e.vector(call.kind, [self._rounded(value, element) for value in values], call.result)

    # Memory, work-items, groups.

    def slot(self, index: int | str) -> str:
        """A word of the context."""
        place = self.e.op(f"getelementptr i64, i64* %eprof.in.ctx, i64 {index}")
        return self.e.op(f"load i64, i64* {place}")

    def _work_item(self, call: Call) -> None:
        e = self.e
        if call.name == "get_work_dim":
            e.vector(call.kind, [self._cut(self.slot(SLOTS[call.name]), call.kind)], call.result)
            return
        if call.name == "get_local_linear_id":
            value = self.slot(SLOTS["local_linear"])
        elif call.name == "get_global_linear_id":
            places = [
                e.op(f"sub i64 {self.slot(SLOTS['get_global_id'] + d)}, {self.slot(SLOTS['get_global_offset'] + d)}")
                for d in range(3)
            ]
            value = places[2]
            for d in (1, 0):
                row = e.op(f"mul i64 {value}, {self.slot(SLOTS['get_global_size'] + d)}")
                value = e.op(f"add i64 {row}, {places[d]}")
        else:
            kind, dimension = call.operands[0]
            other = e.op(f"icmp ult {kind} {dimension}, 3")
            place = e.op(f"select i1 {other}, {kind} {dimension}, {kind} 3")
            place = e.cast("zext", kind, place, "i64")
            value = self.slot(e.op(f"add i64 {place}, {SLOTS[call.name]}"))
        e.vector(call.kind, [value], call.result)

    def _barrier(self, call: Call) -> None:
        self.barriers += 1
        self.e.call("void", "eprof_barrier", ("i64*", "%eprof.in.ctx"), ("i64", str(self.barriers)), pure=False)

    def _atomic(self, call: Call) -> None:
        e = self.e
        operation = call.name.partition("_")[2]
        pointer, address = call.operands[0]
        kind = pointed(pointer)[0]
        value = call.operands[1][1] if len(call.operands) > 1 else "1"
        if operation == "cmpxchg":
            new = call.operands[2][1]
            both = e.op(f"cmpxchg {pointer} {address}, {kind} {value}, {kind} {new} monotonic monotonic")
            old = e.op(f"extractvalue {{ {kind}, i1 }} {both}, 0")
        else:
            unsigned = operation in ("max", "min") and call.overload[-1] not in "casilxn"
            instruction = ("u" if unsigned else "") + _ATOMICS[operation]
            old = e.op(f"atomicrmw {instruction} {pointer} {address}, {kind} {value} monotonic")
        e.vector(kind, [old], call.result)

    def _vector_memory(self, call: Call) -> None:
        """vloadN, vstoreN: elements that stand side by side, three of them in the space of three."""
        e = self.e
        store, kind = call.name.startswith("vstore"), call.memory_kind
        (offset_kind, offset), (pointer, base) = call.operands[-2:]
        element, suffix = pointed(pointer)
        first = e.op(f"mul {offset_kind} {offset}, {lanes_of(kind)[0]}")
        place = e.op(f"getelementptr {element}, {pointer} {base}, {offset_kind} {first}")
        place = e.op(f"bitcast {pointer} {place} to {kind}{suffix}")
        if store:
            e.line(f"store {kind} {call.operands[0][1]}, {kind}{suffix} {place}, align 1")
        else:
            e.line(f"load {kind}, {kind}{suffix} {place}, align 1", call.result)

    def _half_memory(self, call: Call) -> None:
        e = self.e
        store = call.name.startswith("vstore")
        number, element = lanes_of(call.memory_kind)
        (offset_kind, offset), (pointer, base) = call.operands[-2:]
        suffix = pointed(pointer)[1]
        wide = 4 if number == 3 and call.name.startswith(("vloada", "vstorea")) else number
        cast = e.op(f"bitcast {pointer} {base} to i16{suffix}")
        distance = e.op(f"mul {offset_kind} {offset}, {wide}")
        first = e.op(f"getelementptr i16, i16{suffix} {cast}, {offset_kind} {distance}")
        values = []
        for lane in range(number):
            place = e.op(f"getelementptr i16, i16{suffix} {first}, i64 {lane}")
            if store:
                value = "double", self._double(call, 0, lane)
                half = e.call("i64", "eprof_half_of", value, ("i64", str(call.rounding or 1)))
                e.line(f"store i16 {self._cut(half, 'i16')}, i16{suffix} {place}, align 1")
            else:
                half = e.op(f"zext i16 {e.op(f'load i16, i16{suffix} {place}, align 1')} to i64")
                values.append(self._rounded(e.call("double", "eprof_of_half", ("i64", half)), element))
        if not store:
            e.vector(call.kind, values, call.result)

    def _copy(self, call: Call) -> None:
        """async_work_group_copy: the first work-item copies, and all wait for it at wait_group_events."""
        e = self.e
        (to, target), (since, source), (_, count) = call.operands[:3]
        stride = call.operands[3][1] if "strided" in call.name else "1"
        operands = [("i64*", "%eprof.in.ctx")]
        for pointer, address in ((to, target), (since, source)):
            operands += [("i64", e.op(f"ptrtoint {pointer} {address} to i64")), ("i64", str(space_of(pointer)))]
        operands += [("i64", str(self._sizes.of(pointed(to)[0])[0])), ("i64", count), ("i64", stride)]
        e.call("void", "eprof_copy", *operands, pure=False)
        if call.result:
            e.line(f"bitcast {call.kind} {call.operands[-1][1]} to {call.kind}", call.result)

    def _printf(self, call: Call) -> None:
        """printf: of each operand a word that says how many elements of how many bytes follow, then these."""
        e = self.e
        words = []
        for index, (kind, _) in enumerate(call.operands[1:], 1):
            number, element = lanes_of(kind)
            words.append(str(number + 32 * (8 if element.endswith("*") else self._sizes.of(element)[0])))
            for lane in range(number):
                value = self._operand(call, index, lane)[1]
                if element in ("float", "double"):
                    words.append(e.op(f"bitcast double {self._double(call, index, lane)} to i64"))
                elif element.endswith("*"):
                    words.append(e.op(f"ptrtoint {element} {value} to i64"))
                else:
                    words.append(self._integer(call, index, lane, False))
        pointer, text = call.operands[0]
        array = f"[{len(words) + 1} x i64]"
        place = e.op(f"alloca {array}")
        first = e.op(f"bitcast {array}* {place} to i64*")
        for index, word in enumerate(words):
            e.line(f"store i64 {word}, i64* {e.op(f'getelementptr i64, i64* {first}, i64 {index}')}")
        address = e.op(f"ptrtoint {pointer} {text} to i64")
        operands = (("i64*", "%eprof.in.ctx"), ("i64", address), ("i64*", first))
        e.call("void", "eprof_printf", *operands, pure=False)
        if call.result:
            e.line("bitcast i32 0 to i32", call.result)
