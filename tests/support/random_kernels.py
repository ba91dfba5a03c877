"""Random OpenCL kernels that are right whatever the order of their work-items: cases for `opencl_cases.py`.

Loops that depend on data, divergence, barriers, local and private arrays, atomics, vectors, structures, calls, switches,
two or three dimensions, offsets; in single and double precision.
"""

import random

_INTEGER = ("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>")
_MATHS = ("sin", "cos", "fabs", "floor", "sqrt", "exp2", "tanh", "cbrt", "rint")
_SIZE = 256


class _Writer:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.real = self.random.choice(("float", "double"))
        self.width = self.random.choice((2, 3, 4, 8))
        self.lines = []
        self.depth = 1
        self.loops = 0

    def pick(self, *options):
        return self.random.choice(options)

    def line(self, text):
        self.lines.append("  " * self.depth + text)

    def integer(self, depth=0):
        if depth > 2 or self.random.random() < 0.3:
            return self.pick(
                "i0",
                "i1",
                "i2",
                "gid",
                "lid",
                "n",
                str(self.random.randint(-9, 99)),
                f"ints[(gid + {self.random.randint(0, 99)}) & 255]",
            )
        a, b = self.integer(depth + 1), self.integer(depth + 1)
        return self.pick(
            f"({a} {self.pick(*_INTEGER)} {b})",
            f"({self.condition(depth + 1)} ? {a} : {b})",
            f"{self.pick('min', 'max', 'mul24', 'hadd', 'rotate', 'add_sat', 'mul_hi')}({a}, {b})",
            f"clamp({a}, -100, 100)",
            f"(int)(short)({a})",
            f"(int)((uchar)({a}) {self.pick('<<', '>>', '/')} ({b} & 3 | 1))",
            f"bits[({a}) & 7]",
            f"convert_int_sat({self.number(depth + 1)})",
            f"(int)(((long){a} {self.pick('*', '+', '/', '%')} {b}) >> 3)",
            f"popcount({a})",
        )

    def number(self, depth=0):
        if depth > 2 or self.random.random() < 0.3:
            return self.pick(
                "x",
                "y",
                "z",
                "scale",
                f"({self.real}){self.random.uniform(-3, 3):.3f}",
                f"reals[({self.integer(3)}) & 255]",
                f"table[({self.integer(3)}) & 7]",
            )
        a, b = self.number(depth + 1), self.number(depth + 1)
        return self.pick(
            f"({a} {self.pick('+', '-', '*', '/')} {b})",
            f"{self.pick(*_MATHS)}({a})",
            f"fma({a}, {b}, x)",
            f"mad(x, {a}, {b})",
            f"{self.pick('fmax', 'fmin', 'pow', 'fmod', 'atan2', 'hypot')}({a}, {b})",
            f"({self.condition(depth + 1)} ? {a} : {b})",
            f"({self.real})({self.integer(depth + 1)})",
            f"v.s{self.random.randrange(min(self.width, 8))}",
            f"local_array[({self.integer(3)}) & 7]",
            f"-({a})",
            f"s.{self.pick('b', 'd[(i0 & 3)]')}",
            f"dot(v.s01, ({self.real}2)({a}, {b}))",
        )

    def condition(self, depth=0):
        a, b = (
            (self.integer(depth + 1), self.integer(depth + 1))
            if self.random.random() < 0.5
            else (self.number(depth + 1), self.number(depth + 1))
        )
        return f"({a} {self.pick('<', '>', '==', '!=', '<=')} {b})"

    def statement(self, may_wait):
        kind = self.random.randrange(15)
        if kind < 9 or (kind == 13 and not may_wait) or (kind in (9, 10, 11, 14) and self.depth > 3):
            self.assignment(kind)
        elif kind == 9:
            self.block(f"if ({self.condition()})")
            if self.random.random() < 0.5:
                self.block("else")
        elif kind in (10, 11):
            self.loops += 1
            name = f"k{self.loops}"
            most = self.pick(3, 7)
            self.block(f"for (int {name} = 0; {name} < (({self.integer(1)}) & {most}); {name}++)", leaves=True)
        elif kind == 12:
            self.line(f"atomic_add(&sums[({self.integer(2)}) & 15], {self.integer()});")
        elif kind == 13:
            self.line(f"shared[lid] = {self.number()};")
            self.line("barrier(CLK_LOCAL_MEM_FENCE);")
            self.line(f"x += shared[(uint)({self.integer()}) % group];")
            self.line("barrier(CLK_LOCAL_MEM_FENCE);")
        else:
            self.line(f"switch (abs({self.integer()}) % 5) {{")
            for case in self.random.sample(range(5), 3):
                self.line(f"case {case}: y = {self.number()}; {self.pick('break;', '')}")
            self.line("default: i1++; }")

    def assignment(self, kind):
        if kind < 3:
            self.line(f"{self.pick('i0', 'i1', 'i2')} {self.pick('=', '+=', '^=')} {self.integer()};")
        elif kind < 6:
            self.line(f"{self.pick('x', 'y', 'z')} {self.pick('=', '+=', '*=')} {self.number()};")
        elif kind == 6:
            whole = f"({self.real}{self.width})({self.number()}) {self.pick('+', '*')} v"
            self.line(f"v {self.pick('=', '+=', '*=')} {whole};")
        elif kind == 7:
            self.line(f"local_array[({self.integer(2)}) & 7] = {self.number()};")
        elif kind == 8:
            self.line(f"s.{self.pick('a', 'c')} = {self.integer()}; s.b = {self.number()};")
            self.line(f"s.d[{self.integer(3)} & 3] = y;")
        else:
            self.line(f"z = helper({self.number()}, {self.integer()});")

    def block(self, head, leaves=False):
        self.line(head + " {")
        self.depth += 1
        for _ in range(self.random.randint(1, 3)):
            self.statement(may_wait=False)
        if leaves and self.random.random() < 0.4:
            self.line(f"if ({self.condition()}) {self.pick('break', 'continue')};")
        self.depth -= 1
        self.line("}")


def _every_call(writer):
    """All functions once: Oclgrind loses calls of those that the first group to end did not call."""
    maths = " + ".join(f"{name}(x)" for name in _MATHS)
    others = " + ".join(f"{name}(x, y)" for name in ("fmax", "fmin", "pow", "fmod", "atan2", "hypot"))
    whole = " + ".join(f"{name}(i0, i1)" for name in ("min", "max", "mul24", "hadd", "rotate", "add_sat", "mul_hi"))
    rest = "popcount(i0) + clamp(i0, 0, 9) + convert_int_sat(x) + abs(i0) + atomic_add(&sums[31], 0)"
    return (
        f"{maths} + {others} + {whole} + {rest} + fma(x, y, x) + mad(x, y, x) + helper(x, i0) + (x * y + scale) +"
        " (v * v + v).s0 + dot(v.s01, v.s10)"
    )


def case(seed):
    """One case: a program of one kernel, its range and its arguments."""
    w = _Writer(seed)
    real, width = w.real, w.width
    waits = w.random.random() < 0.6
    for _ in range(w.random.randint(4, 10)):
        w.statement(may_wait=waits)
        if waits and w.random.random() < 0.15:
            w.line(
                f"for (int t = 0; t < {w.random.randint(1, 3)}; t++) {{ group_array[lid] = x + t; barrier(CLK_LOCAL_MEM_FENCE);"
            )
            w.line(
                f"  if (t & 1) y += group_array[(lid + {w.random.randint(0, 9)}) % group]; barrier(CLK_LOCAL_MEM_FENCE); }}"
            )
    body = "\n".join(w.lines)
    dimensions = w.random.choice((1, 1, 2, 3))
    shape = {1: (w.random.choice((1, 8, 48)),), 2: (8, 4), 3: (4, 2, 3)}[dimensions]
    groups = {1: (3,), 2: (2, 2), 3: (1, 2, 1)}[dimensions]
    items = 1
    for a, b in zip(shape, groups, strict=True):
        items *= a * b
    source = f"""
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef struct {{ int a; {real} b; short c; {real} d[4]; }} S;
__constant {real} table[8] = {{1, -2, 0.5, 4, 3, 7, -0.25, 9}};
__constant int bits[8] = {{1, 2, 4, 8, -1, 0x7fffffff, 77, -5}};
{real} helper({real} x, int n) {{
  {real} total = 0;
  for (int j = 0; j < (n & 7); j++) {{ total = fma(total, x, table[j]); if (total > 1000) return total; }}
  return total;
}}
__kernel void k(__global int *out, __global {real} *results, __global S *structures, __global const int *ints,
                __global const {real} *reals, __global int *sums, __local {real} *shared, int n, {real} scale) {{
  __local {real} group_array[64];
  int sx = get_local_size(0), sy = get_work_dim() > 1 ? get_local_size(1) : 1, sz = get_work_dim() > 2 ? get_local_size(2) : 1;
  int group = sx * sy * sz, lid = (get_local_id(2) * sy + get_local_id(1)) * sx + get_local_id(0);
  int gid = ((get_group_id(2) * get_num_groups(1) + get_group_id(1)) * get_num_groups(0) + get_group_id(0)) * group + lid;
  int i0 = ints[gid & 255], i1 = gid, i2 = (int)get_global_id(0);
  {real} x = reals[gid & 255], y = scale, z = 0, local_array[8];
  for (int j = 0; j < 8; j++) local_array[j] = j * scale;
  {real}{width} v = vload{width}(gid & 7, reals);
  S s = structures[gid]; s.b = 1; for (int j = 0; j < 4; j++) s.d[j] = j;
  group_array[lid & 63] = 0; shared[lid] = 0;
  {real} w = {_every_call(w)};
{body}
  out[gid] = i0 + i1 * 3 + i2 + s.a + s.c;
  s.b = isnan(s.b) ? 0 : s.b; for (int j = 0; j < 4; j++) s.d[j] = isnan(s.d[j]) ? 0 : s.d[j];
  structures[gid] = s;
  vstore{width}(v, gid, results + {items});
  results[gid] = x + y + z + w + shared[lid];
}}
"""
    size = 8 if real == "double" else 4

    def buffer(kind, number, start):
        return {"is": "buffer", "type": kind, "size": number, "seed": seed + start}

    group = 1
    for length in shape:
        group *= length
    numbers = f"float{8 * size}"
    return {
        "name": f"random-{seed}",
        "source": source,
        "kernel": "k",
        "global": [a * b for a, b in zip(shape, groups, strict=True)],
        "local": list(shape),
        "offset": [w.random.choice((0, 5)) for _ in shape] if w.random.random() < 0.3 else None,
        "launches": 1,
        "arguments": [
            buffer("int32", items, 1),
            buffer(numbers, items * (1 + width), 2),
            buffer("uint8", items * 64, 3),
            buffer("int32", _SIZE, 4),
            buffer(numbers, _SIZE, 5),
            buffer("int32", 32, 6),
            {"is": "local", "size": group * size},
            {"is": "scalar", "type": "int32", "value": 17},
            {"is": "scalar", "type": numbers, "value": 1.25},
        ],
    }
