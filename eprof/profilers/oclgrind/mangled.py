"""What is in an OpenCL built-in's mangled name: its plain name, its type, its lanes, and the memory that it touches."""

import re
from collections.abc import Sequence

from msgspec import Struct

# Built-ins whose arithmetic is done in the type of their arguments; their types tell that of the untyped instructions.
from eprof.base.text import pattern

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
        return (Access("image", "load" if name.startswith("read") else "store", "global", None),)
    pointer = _POINTER.search(arguments)
    if pointer is None or not name.startswith(("vload", "vstore", "atom")):
        return ()
    space = _SPACES.get(pointer[1] or "0", "private")
    size = _SIZES.get(pointer[2] or "")
    if name.startswith("atom"):
        return (Access("atomic", "load", space, size),)
    kind = "vload" if name.startswith("vload") else "vstore"
    width = re.search(r"(\d{1,4})$", name.partition("_half")[2] or name)
    if size is not None and width:
        size *= int(width[1])
    return (Access(kind, kind[1:], space, size),)
