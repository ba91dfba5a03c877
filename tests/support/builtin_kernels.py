"""A kernel a built-in function: cases for `opencl_cases.py`. `python builtin_kernels.py` tells of each how it compares."""

_TYPES = {
    "float": "float32", "double": "float64", "char": "int8", "uchar": "uint8", "short": "int16", "ushort": "uint16",
    "int": "int32", "uint": "uint32", "long": "int64", "ulong": "uint64",
}  # fmt: skip
_ITEMS = 64


def _words(text):
    return text.split()


_F1 = _words(
    "acos acosh acospi asin asinh asinpi atan atanh atanpi cbrt ceil cos cosh cospi erfc erf exp exp2 exp10 expm1 fabs "
    "floor lgamma log log2 log10 log1p logb rint round rsqrt sin sinh sinpi sqrt tan tanh tanpi tgamma trunc degrees "
    "radians sign normalize"
)
_NATIVE = _words("cos exp exp2 exp10 log log2 log10 recip rsqrt sin sqrt tan")
_F2 = _words("atan2 atan2pi copysign fdim fmax fmin fmod hypot maxmag minmag nextafter pow powr remainder max min step")
_F3 = _words("fma mad mix smoothstep clamp bitselect")
_RELATIONS = _words(
    "isequal isnotequal isgreater isgreaterequal isless islessequal islessgreater isordered isunordered"
)
_CLASSES = _words("isfinite isinf isnan isnormal signbit")
_I2 = _words("abs_diff add_sat hadd max min mul_hi rhadd rotate sub_sat")
_I3 = _words("mad_hi mad_sat clamp bitselect")
_OPERATORS = _words("+ - * / % << >> & ^")


def _case(name, result, operands, value):
    def base(kind):
        return kind.rstrip("0123456789")

    def lanes(kind):
        return kind[len(base(kind)) :]

    reads = "".join(
        f"{kind} x{place} = {f'vload{lanes(kind)}(i, a{place})' if lanes(kind) else f'a{place}[i]'}; "
        for place, kind in enumerate(operands)
    )
    write = f"vstore{lanes(result)}(r, i, o);" if lanes(result) else "o[i] = r;"
    parameters = "".join(f", __global const {base(kind)} *a{place}" for place, kind in enumerate(operands))
    source = (
        "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
        f"__kernel void k(__global {base(result)} *o{parameters}) {{ size_t i = get_global_id(0); {reads}"
        f"{result} r = {value}; {write} }}"
    )
    arguments = [
        {"is": "buffer", "type": _TYPES[base(kind)], "size": _ITEMS * int(lanes(kind) or 1), "seed": place + 1}
        for place, kind in enumerate([result, *operands])
    ]
    return {"name": name, "source": source, "kernel": "k", "global": [_ITEMS], "local": [16], "arguments": arguments}


def _floating(real, lanes):
    kind, whole = real + lanes, ("long" if real == "double" and lanes else "int") + lanes
    number = "int" + lanes
    yield from ((kind, [kind], f"{name}(x0)") for name in _F1)
    if real == "float":
        yield from ((kind, [kind], f"{prefix}_{name}(x0)") for name in _NATIVE for prefix in ("native", "half"))
        yield from ((kind, [kind, kind], f"native_{name}(x0, x1)") for name in ("divide", "powr"))
    yield from ((kind, [kind, kind], f"{name}(x0, x1)") for name in _F2)
    yield from ((kind, [kind, kind, kind], f"{name}(x0, x1, x2)") for name in _F3)
    yield from ((whole, [kind, kind], f"{name}(x0, x1)") for name in _RELATIONS)
    yield from ((whole, [kind], f"{name}(x0)") for name in _CLASSES)
    yield from ((kind, [kind, number], f"{name}(x0, x1)") for name in ("ldexp", "pown", "rootn"))
    yield number, [kind], "ilogb(x0)"
    yield kind, [kind, kind, ("int" if real == "float" else "long") + lanes], "select(x0, x1, x2)"
    for name, second in (("fract", kind), ("modf", kind), ("sincos", kind), ("frexp", number), ("lgamma_r", number)):
        yield kind, [kind], f"0; {second} q; r = {name}(x0, &q); r = r * 3 + convert_{kind}(q)"
    yield kind, [kind, kind], f"0; {number} q; r = remquo(x0, x1, &q); r = r * 3 + convert_{kind}(q)"
    yield from ((real, [kind, kind], f"{name}(x0, x1)") for name in ("dot", "distance"))
    yield real, [kind], "length(x0)"
    if lanes:
        yield kind, [kind, kind], "cross(x0, x1)"
        yield from ((kind, [kind, real], f"{name}(x0, x1)") for name in ("fmax", "fmin", "max", "min"))
        yield kind, [kind, real, real], "clamp(x0, x1, x2)"
        yield kind, [kind, kind, real], "mix(x0, x1, x2)"
        yield kind, [real, kind], "step(x0, x1)"
        yield kind, [real, real, kind], "smoothstep(x0, x1, x2)"
    for other in _TYPES:
        roundings = ("", "_rte", "_rtz") + (() if other in ("float", "double") else ("_sat", "_sat_rte", "_sat_rtp"))
        yield from ((other + lanes, [kind], f"convert_{other}{lanes}{rounding}(x0)") for rounding in roundings)


def _whole(kind, lanes):
    vector, unsigned = kind + lanes, ("" if kind[0] == "u" else "u") + kind + lanes
    yield unsigned, [vector], "abs(x0)"
    yield from ((vector, [vector], f"{name}(x0)") for name in ("clz", "popcount"))
    for name in _I2:
        if (name, kind, lanes) != ("add_sat", "long", "4"):
            yield unsigned if name == "abs_diff" else vector, [vector, vector], f"{name}(x0, x1)"
    yield from ((vector, [vector, vector, vector], f"{name}(x0, x1, x2)") for name in _I3)
    yield vector, [vector, vector, kind.lstrip("u") + lanes], "select(x0, x1, x2)"
    yield from ((vector, [vector, vector], f"x0 {operator} x1") for operator in _OPERATORS)
    if lanes:
        yield vector, [vector, "u" + kind.lstrip("u") + lanes], "shuffle(x0, x1)"
        yield vector, [vector, vector, "u" + kind.lstrip("u") + lanes], "shuffle2(x0, x1, x2)"
        if kind[0] != "u":
            yield "int", [vector], "any(x0) * 2 + all(x0)"
    if kind in ("int", "uint"):
        yield vector, [vector, vector], "mul24(x0, x1)"
        yield vector, [vector, vector, vector], "mad24(x0, x1, x2)"
    wider = {"char": "short", "short": "int", "int": "long"}.get(kind.lstrip("u"))
    if wider:
        yield (
            ("u" if kind[0] == "u" else "") + wider + lanes,
            [vector, "u" + kind.lstrip("u") + lanes],
            "upsample(x0, x1)",
        )
    for other in _TYPES:
        roundings = ("", "_rte", "_rtz", "_rtp", "_rtn") if other in ("float", "double") else ("", "_sat")
        yield from ((other + lanes, [vector], f"convert_{other}{lanes}{rounding}(x0)") for rounding in roundings)


def _halves():
    for lanes in ("", "2", "3", "4", "8", "16"):
        yield "float" + lanes, ["ushort" + lanes], f"vload_half{lanes}(i, (const __global half *)a0)"
        for rounding in ("", "_rte", "_rtz", "_rtp", "_rtn"):
            again = f"r = vload{lanes}(i, o)" if lanes else "r = o[i]"
            store = f"0; vstore_half{lanes}{rounding}(x0, i, (__global half *)o); {again}"
            yield from (("ushort" + lanes, [real + lanes], store) for real in ("float", "double"))


def cases():
    """Every built-in function that Oclgrind computes as OpenCL says, in all types, alone and in vectors."""
    found = []
    for lanes in ("", "3", "4"):
        for real in ("float", "double"):
            found += _floating(real, lanes)
    for lanes in ("", "4"):
        for kind in list(_TYPES)[2:]:
            found += _whole(kind, lanes)
    found += _halves()
    return [
        _case(f"{number}:{value.replace(' ', '')}:{'/'.join(operands)}", *one)
        for number, one in enumerate(found)
        for _, operands, value in (one,)
    ]
