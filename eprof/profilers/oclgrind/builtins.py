"""OpenCL's built-in functions as LLVM instructions, each computed as Oclgrind computes it: in double, then rounded."""

from __future__ import annotations

import re
from typing import NamedTuple

from eprof.profilers.oclgrind.ir import Emit, Sizes, Uncovered, lanes_of, pointed, space_of

# Slots of the context, as in plugin.h.
SLOTS = {
    "recorder": 0, "globals": 1, "n_globals": 2, "locals": 3, "n_locals": 4, "counters": 5, "trap": 6,
    "stack_low": 7, "stack_size": 8, "get_work_dim": 9, "local_linear": 11, "get_global_id": 12, "get_local_id": 16,
    "get_group_id": 20, "get_global_size": 24, "get_global_offset": 28, "get_local_size": 32,
    "get_enqueued_local_size": 36, "get_num_groups": 40,
}  # fmt: skip

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
    "isequal": "oeq", "isnotequal": "une", "isgreater": "ogt", "isgreaterequal": "oge", "isless": "olt",
    "islessequal": "ole", "islessgreater": "one", "isordered": "ord", "isunordered": "uno",
}  # fmt: skip
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
_CONTEXT = "i64*", "%eprof.in.ctx"


class Call(NamedTuple):
    """A call of a built-in function: its name and overload, result and type, and (type, value) of its operands."""

    name: str
    overload: str
    result: str | None
    kind: str
    operands: list[tuple[str, str]]

    @property
    def plain(self) -> str:
        """The built-in function's name without half_, native_ or fast_: all are computed in double."""
        return re.sub(r"^(half|native|fast)_", "", self.name)

    @property
    def signed(self) -> bool:
        """Whether the first operand is of a signed type."""
        return re.sub(r"^Dv\d+_", "", self.overload)[:1] in "csil"

    @property
    def sign(self) -> str:
        """The letter of `signed` as instructions and builtins.cpp write it: "s" or "u"."""
        return "us"[self.signed]

    @property
    def rounding(self) -> int:
        """The rounding mode that a built-in function's name asks for, as builtins.cpp numbers it; 0: none."""
        return next((" ezpn".index(letter) for letter in re.findall(r"_rt([ezpn])", self.name)), 0)

    @property
    def stored(self) -> list[tuple[str, str]]:
        """(type, value) of what a vstoreN moves; none for a vloadN."""
        return self.operands[: self.name.startswith("vstore")]

    @property
    def memory_kind(self) -> str:
        """The type that a vloadN or vstoreN moves."""
        return [*(kind for kind, _ in self.stored), self.kind][0]


def _fraction(kind: str) -> tuple[int, str]:
    """(bits, ending of C's functions) of a type: (32, "f") for float, (64, "") for double. Raises Uncovered."""
    if kind not in _FRACTIONS:
        raise Uncovered(f"numbers of type {kind}")
    return _FRACTIONS[kind]


class _Element(NamedTuple):
    """Writes LLVM for one element of the result of an OpenCL built-in, of type `kind`; of a scalar, for the result."""

    e: Emit
    call: Call
    lane: int
    kind: str

    def operand(self, index: int) -> tuple[str, str]:
        """Write the extraction of this element of operand `index`; returns its type and the name of its value."""
        kind, value = self.call.operands[index]
        return lanes_of(kind)[1], self.e.lane(kind, value, self.lane)

    def double(self, index: int) -> str:
        """Write the element of operand `index` as a double; returns its name. Raises Uncovered: of another type."""
        kind, value = self.operand(index)
        if kind not in ("float", "double"):
            raise Uncovered(f"{self.call.name} of {kind}")
        return self.e.cast("fpext", kind, value, "double")

    def integer(self, index: int, signed: bool) -> str:
        """Write the element of operand `index` as an i64; returns its name."""
        kind, value = self.operand(index)
        return self.e.cast(("zext", "sext")[signed], kind, value, "i64")

    def rounded(self, value: str) -> str:
        _fraction(self.kind)
        return self.e.cast("fptrunc", "double", value, self.kind)

    def cut(self, value: str) -> str:
        return self.e.cast("trunc", "i64", value, self.kind)

    def of_doubles(self, function: str, count: int) -> str:
        """Write a call of a C `function` of the first `count` operands as doubles; returns the name of its result."""
        operands = [("double", self.double(index)) for index in range(count)]
        return self.rounded(self.e.call("double", function, *operands))

    def write(self) -> str:
        """Write the instructions for the element; returns the name of its value. Raises Uncovered."""
        e, kind, name = self.e, self.kind, self.call.plain
        if name in _DOUBLES:
            return self.of_doubles(*_DOUBLES[name])
        if name == "bitselect" and kind in _FRACTIONS:
            return self.of_doubles("eprof_bitselect", 3)
        if name in ("fma", "mad") or name.startswith("llvm.fmuladd"):
            operands = [(kind, self.operand(index)[1]) for index in range(3)]
            return e.call(kind, f"llvm.fma.f{_fraction(kind)[0]}", *operands)
        if name in ("fmax", "fmin", "nextafter"):
            operands = [(kind, self.operand(index)[1]) for index in range(2)]
            return e.call(kind, name + _fraction(kind)[1], *operands)
        if name in ("ldexp", "pown", "rootn"):
            operands = [("double", self.double(0)), ("i64", self.integer(1, True))]
            return self.rounded(e.call("double", f"eprof_{name}", *operands))
        if name == "ilogb":
            return self.cut(e.call("i64", "eprof_ilogb", ("double", self.double(0))))
        if name in ("nan", "nanf"):
            return self.rounded(e.op("fadd double 0x7FF8000000000000, 0.0"))
        if name in ("max", "min", "clamp"):
            return self._limited(name)
        if name in _POINTED:
            return self._two_results(name)
        if name in _RELATIONS or name in _CLASSES:
            first = self.double(0)
            if name in _RELATIONS:
                holds = e.op(f"fcmp {_RELATIONS[name]} double {first}, {self.double(1)}")
            else:
                holds = e.op(f"icmp ne i64 {e.call('i64', f'eprof_{name}', ('double', first))}, 0")
            # If true 1 for a scalar, all bits for an element of a vector.
            extended = ("zext", "sext")[self.call.kind.startswith("<")]
            return e.op(f"{extended} i1 {holds} to {kind}")
        if name.startswith("convert_"):
            return self._converted()
        if name in ("select", "shuffle", "shuffle2"):
            return self._chosen(name)
        if kind.startswith("i"):
            return self._whole(name)
        raise Uncovered(f"it calls {self.call.name}")

    def _limited(self, name: str) -> str:
        """Write max, min or clamp: as C's fmax and fmin for vectors of fractions, by comparisons for all others."""
        e, kind = self.e, self.kind
        test = f"icmp {self.call.sign}"
        if kind in _FRACTIONS:
            if name != "clamp" and self.call.operands[1][0].startswith("<"):
                return self.of_doubles(f"f{name}", 2)
            test = "fcmp o"
        value = self.operand(0)[1]
        for index, sign in {"clamp": ((1, "gt"), (2, "lt")), "max": ((1, "gt"),), "min": ((1, "lt"),)}[name]:
            limit = self.operand(index)[1]
            inside = e.op(f"{test}{sign} {kind} {value}, {limit}")
            value = e.op(f"select i1 {inside}, {kind} {value}, {kind} {limit}")
        return value

    def _two_results(self, name: str) -> str:
        """Write a function with a second result, such as fract or sincos, stored through the last operand's pointer."""
        e = self.e
        pointer, address = self.call.operands[-1]
        slot = e.op("alloca double")
        operands = [("double", self.double(index)) for index in range(len(self.call.operands) - 1)]
        function = f"eprof_{name}"
        if name == "fract":
            function += _fraction(self.kind)[1]
        first = e.call("double", function, *operands, ("double*", slot), pure=False)
        kind, second = _POINTED[name], e.op(f"load double, double* {slot}")
        if kind:
            second = e.op(f"fptosi double {second} to {kind}")
        else:
            kind, second = self.kind, self.rounded(second)
        space = pointed(pointer)[1]
        cast = e.op(f"bitcast {pointer} {address} to {kind}{space}")
        place = e.op(f"getelementptr {kind}, {kind}{space} {cast}, i64 {self.lane}")
        e.line(f"store {kind} {second}, {kind}{space} {place}, align 1")
        return self.rounded(first)

    def _converted(self) -> str:
        """Write convert_TYPE[_sat][_rtX]: by a C function where rounding or saturation is asked for."""
        e, call, kind, mode = self.e, self.call, self.kind, self.call.rounding
        source = self.operand(0)[0]
        if source == "half" or kind == "half":
            raise Uncovered(f"it calls {call.name}")
        if kind in ("float", "double"):
            if not source.startswith("i"):
                value = self.double(0)
                if mode > 1 and kind == "float":
                    value = e.call("double", "eprof_round_f", ("double", value), ("i64", str(mode)))
                return self.rounded(value)
            value = self.integer(0, call.signed)
            if mode > 1:
                size = "i64", str(_fraction(kind)[0] // 8)
                function = f"eprof_round_{call.sign}"
                return self.rounded(e.call("double", function, ("i64", value), ("i64", str(mode)), size))
            if call.signed:
                return self.rounded(e.op(f"sitofp i64 {value} to double"))
            return e.op(f"uitofp i64 {value} to {kind}")
        sign = "su"[call.name.startswith("convert_u")]
        bits = kind[1:]
        if source.startswith("i"):
            value = self.integer(0, call.signed)
            if "_sat" in call.name:
                value = e.call("i64", f"eprof_{sign}_sat_{call.sign}", ("i64", value), ("i64", bits))
            return self.cut(value)
        saturated = str(int("_sat" in call.name))
        operands = (("double", self.double(0)), ("i64", str(mode)), ("i64", saturated), ("i64", bits))
        return self.cut(e.call("i64", f"eprof_{sign}_of_f", *operands))

    def _chosen(self, name: str) -> str:
        """Write select, shuffle or shuffle2: an element of one operand, chosen by another."""
        e, kind, operands = self.e, self.kind, self.call.operands
        if name == "select":
            condition, value = self.operand(2)
            test = ("ne", "slt")[self.call.kind.startswith("<")]
            chosen = e.op(f"icmp {test} {condition} {value}, 0")
            other, this = self.operand(0)[1], self.operand(1)[1]
            return e.op(f"select i1 {chosen}, {kind} {this}, {kind} {other}")
        source, value = operands[0]
        number = lanes_of(source)[0]
        if name == "shuffle2":
            number *= 2
            order = ", ".join(f"i32 {index}" for index in range(number))
            value = e.op(f"shufflevector {source} {value}, {source} {operands[1][1]}, <{number} x i32> <{order}>")
            source = f"<{number} x {kind}>"
        index_kind, index = self.operand(len(operands) - 1)
        index = e.op(f"urem {index_kind} {index}, {number}")
        return e.op(f"extractelement {source} {value}, {index_kind} {index}")

    def _whole(self, name: str) -> str:
        """Write a built-in function that is of integers alone. Raises Uncovered for others."""
        e, kind = self.e, self.kind
        bits = int(kind[1:])
        if name in ("mad24", "mul24"):
            value = e.op(f"mul {kind} {self.operand(0)[1]}, {self.operand(1)[1]}")
            if name == "mad24":
                value = e.op(f"add {kind} {value}, {self.operand(2)[1]}")
            return value
        if name == "popcount":
            return e.call(kind, f"llvm.ctpop.{kind}", self.operand(0))
        if name == "upsample":
            high = e.op(f"shl i64 {self.integer(0, False)}, {bits // 2}")
            return self.cut(e.op(f"or i64 {high}, {self.integer(1, False)}"))
        if name == "bitselect":
            a, b, c = (self.operand(index)[1] for index in range(3))
            kept = e.op(f"and {kind} {a}, {e.op(f'xor {kind} {c}, -1')}")
            return e.op(f"or {kind} {kept}, {e.op(f'and {kind} {b}, {c}')}")
        if name in _INTEGERS:
            operands = [self.integer(index, self.call.signed) for index in range(len(self.call.operands))]
            operands += ["0"] * (3 - len(operands)) + [str(bits)]
            function = f"eprof_{self.call.sign}_{name}"
            return self.cut(e.call("i64", function, *(("i64", operand) for operand in operands)))
        raise Uncovered(f"it calls {self.call.name}")


class Builtins:
    """Writes LLVM that replaces calls of OpenCL's built-in functions. barriers: how many the function has so far."""

    def __init__(self, emit: Emit, sizes: Sizes) -> None:
        self.e = emit
        self._sizes = sizes
        self.barriers = 0

    def write(self, call: Call) -> None:
        """Write the LLVM instructions that replace a call of an OpenCL built-in. Raises Uncovered: none are known."""
        name = call.plain
        if name in SLOTS or name in ("get_global_linear_id", "get_local_linear_id"):
            self._work_item(call)
        elif name in ("barrier", "work_group_barrier", "wait_group_events"):
            self.barriers += 1
            self.e.call("void", "eprof_barrier", _CONTEXT, ("i64", str(self.barriers)), pure=False)
        elif name in _NOTHING:
            pass
        elif name.startswith(("atomic_", "atom_")) and name.partition("_")[2] in _ATOMICS:
            self._atomic(call)
        elif re.fullmatch(r"v(load|store)\d+", name):
            self._vector_memory(call)
        elif re.fullmatch(r"v(load|store)a?_half\d*(_rt.)?", name):
            self._half_memory(call)
        elif name.startswith("async_work_group_"):
            self._copy(call)
        elif name in _REDUCTIONS:
            signs = [self.e.op("icmp slt {} {}, 0".format(*at.operand(0))) for at in self._elements(call, 0)]
            value = signs[0]
            for sign in signs[1:]:
                value = self.e.op(f"{_REDUCTIONS[name]} i1 {value}, {sign}")
            self.e.vector(call.kind, [self.e.op(f"zext i1 {value} to {call.kind}")], call.result)
        elif name in ("dot", "cross", "length", "distance", "normalize"):
            self._geometry(call, name)
        elif name == "printf":
            self._printf(call)
        else:
            number, element = lanes_of(call.kind)
            self.e.vector(
                call.kind, [_Element(self.e, call, lane, element).write() for lane in range(number)], call.result
            )

    def _elements(self, call: Call, index: int) -> list[_Element]:
        """An `_Element` for each element of an operand."""
        number = lanes_of(call.operands[index][0])[0]
        return [_Element(self.e, call, lane, lanes_of(call.kind)[1]) for lane in range(number)]

    def _geometry(self, call: Call, name: str) -> None:
        """Write dot, cross, length, distance or normalize: computed in double, each value rounded at the end."""
        e = self.e
        elements = self._elements(call, 0)
        first, *others = ([at.double(index) for at in elements] for index in range(len(call.operands)))
        if name == "dot":
            total = "0.0"
            for a, b in zip(first, *others, strict=True):
                total = e.op(f"fadd double {total}, {e.op(f'fmul double {a}, {b}')}")
            values = [elements[0].rounded(total)]
        elif name == "cross":
            values = []
            for i, j in ((1, 2), (2, 0), (0, 1)):
                plus, minus = (e.op(f"fmul double {first[a]}, {others[0][b]}") for a, b in ((i, j), (j, i)))
                values.append(elements[0].rounded(e.op(f"fsub double {plus}, {minus}")))
            values += ["0.0"] * (len(first) - 3)
        else:
            if name == "distance":
                first = [e.op(f"fsub double {a}, {b}") for a, b in zip(first, *others, strict=True)]
            filled = [*first, *["0.0"] * (4 - len(first))]
            operands = [*(("double", value) for value in filled), ("i64", str(len(first)))]
            if name == "normalize":
                values = [e.call("double", "eprof_normalize", *operands, ("i64", str(at.lane))) for at in elements]
            else:
                values = [e.call("double", "eprof_length", *operands)]
            values = list(map(elements[0].rounded, values))
        self.e.vector(call.kind, values, call.result)

    # Memory, work-items, groups.

    def _slot(self, index: int | str) -> str:
        """Write a load of word `index` of the context (`%eprof.in.ctx`); returns the name of its value."""
        place = self.e.op(f"getelementptr i64, i64* %eprof.in.ctx, i64 {index}")
        return self.e.op(f"load i64, i64* {place}")

    def _work_item(self, call: Call) -> None:
        """Write get_global_id and the like: loads from the context; a dimension above 2 loads its fourth word."""
        e = self.e
        if call.name == "get_work_dim":
            value = e.cast("trunc", "i64", self._slot(SLOTS[call.name]), call.kind)
        elif call.name == "get_local_linear_id":
            value = self._slot(SLOTS["local_linear"])
        elif call.name == "get_global_linear_id":
            places = [
                e.op(f"sub i64 {self._slot(SLOTS['get_global_id'] + d)}, {self._slot(SLOTS['get_global_offset'] + d)}")
                for d in range(3)
            ]
            value = places[2]
            for d in (1, 0):
                row = e.op(f"mul i64 {value}, {self._slot(SLOTS['get_global_size'] + d)}")
                value = e.op(f"add i64 {row}, {places[d]}")
        else:
            kind, dimension = call.operands[0]
            other = e.op(f"icmp ult {kind} {dimension}, 3")
            place = e.op(f"select i1 {other}, {kind} {dimension}, {kind} 3")
            place = e.cast("zext", kind, place, "i64")
            value = self._slot(e.op(f"add i64 {place}, {SLOTS[call.name]}"))
        self.e.vector(call.kind, [value], call.result)

    def _atomic(self, call: Call) -> None:
        """Write an atomic function as atomicrmw or cmpxchg of LLVM, with the value before as its result."""
        e = self.e
        operation = call.name.partition("_")[2]
        pointer, address = call.operands[0]
        kind = pointed(pointer)[0]
        values = [value for _, value in call.operands[1:]] or ["1"]
        if operation == "cmpxchg":
            expected, new = values
            both = e.op(f"cmpxchg {pointer} {address}, {kind} {expected}, {kind} {new} monotonic monotonic")
            old = e.op(f"extractvalue {{ {kind}, i1 }} {both}, 0")
        else:
            instruction = _ATOMICS[operation]
            if operation in ("max", "min") and call.overload[-1] not in "casilxn":
                instruction = f"u{instruction}"
            old = e.op(f"atomicrmw {instruction} {pointer} {address}, {kind} {values[0]} monotonic")
        e.vector(kind, [old], call.result)

    def _vector_memory(self, call: Call) -> None:
        """Write vloadN or vstoreN of elements side by side; three elements take the space of three."""
        e, kind = self.e, call.memory_kind
        (offset_kind, offset), (pointer, base) = call.operands[-2:]
        element, suffix = pointed(pointer)
        first = e.op(f"mul {offset_kind} {offset}, {lanes_of(kind)[0]}")
        place = e.op(f"getelementptr {element}, {pointer} {base}, {offset_kind} {first}")
        place = e.op(f"bitcast {pointer} {place} to {kind}{suffix}")
        if call.stored:
            e.line(f"store {kind} {call.operands[0][1]}, {kind}{suffix} {place}, align 1")
        else:
            e.line(f"load {kind}, {kind}{suffix} {place}, align 1", call.result)

    def _half_memory(self, call: Call) -> None:
        """Write vload_halfN or vstore_halfN; aligned, three elements ("vloada_half3") take the space of four."""
        e = self.e
        number, element = lanes_of(call.memory_kind)
        (offset_kind, offset), (pointer, base) = call.operands[-2:]
        suffix = pointed(pointer)[1]
        wide = number + (number == 3 and call.name.startswith(("vloada", "vstorea")))
        cast = e.op(f"bitcast {pointer} {base} to i16{suffix}")
        distance = e.op(f"mul {offset_kind} {offset}, {wide}")
        first = e.op(f"getelementptr i16, i16{suffix} {cast}, {offset_kind} {distance}")
        values = []
        for lane in range(number):
            at = _Element(e, call, lane, element)
            place = e.op(f"getelementptr i16, i16{suffix} {first}, i64 {lane}")
            if call.stored:
                half = e.call("i64", "eprof_half_of", ("double", at.double(0)), ("i64", str(call.rounding or 1)))
                e.line(f"store i16 {e.cast('trunc', 'i64', half, 'i16')}, i16{suffix} {place}, align 1")
            else:
                half = e.op(f"zext i16 {e.op(f'load i16, i16{suffix} {place}, align 1')} to i64")
                values.append(at.rounded(e.call("double", "eprof_of_half", ("i64", half))))
        if values:
            self.e.vector(call.kind, values, call.result)

    def _copy(self, call: Call) -> None:
        """Write async_work_group_copy: the first work-item copies, and all wait for it at wait_group_events."""
        e = self.e
        (to, target), (since, source), count, *strides = call.operands[:-1]
        operands: list[tuple[str, str]] = [_CONTEXT]
        for pointer, address in ((to, target), (since, source)):
            operands += [("i64", e.op(f"ptrtoint {pointer} {address} to i64")), ("i64", str(space_of(pointer)))]
        stride = [*(value for _, value in strides), "1"][0]
        operands += [("i64", str(self._sizes.of(pointed(to)[0])[0])), ("i64", count[1]), ("i64", stride)]
        e.call("void", "eprof_copy", *operands, pure=False)
        if call.result:
            e.line(f"bitcast {call.kind} {call.operands[-1][1]} to {call.kind}", call.result)

    def _printf(self, call: Call) -> None:
        """Write printf: for each operand a word that says how many elements of how many bytes follow, then these."""
        e = self.e
        words = []
        for index, (kind, _) in enumerate(call.operands[1:], 1):
            number, element = lanes_of(kind)
            words.append(str(number + 32 * self._sizes.of(element)[0]))
            for at in self._elements(call, index):
                value = at.operand(index)[1]
                if element in ("float", "double"):
                    words.append(e.op(f"bitcast double {at.double(index)} to i64"))
                elif element.endswith("*"):
                    words.append(e.op(f"ptrtoint {element} {value} to i64"))
                else:
                    words.append(at.integer(index, False))
        pointer, text = call.operands[0]
        array = f"[{len(words) + 1} x i64]"
        place = e.op(f"alloca {array}")
        first = e.op(f"bitcast {array}* {place} to i64*")
        for index, word in enumerate(words):
            e.line(f"store i64 {word}, i64* {e.op(f'getelementptr i64, i64* {first}, i64 {index}')}")
        address = e.op(f"ptrtoint {pointer} {text} to i64")
        e.call("void", "eprof_printf", _CONTEXT, ("i64", address), ("i64*", first), pure=False)
        if call.result:
            e.line("bitcast i32 0 to i32", call.result)
