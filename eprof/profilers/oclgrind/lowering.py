"""Builds the kernels of an OpenCL program, as Oclgrind compiled it, to run natively and count themselves.

    python -I lowering.py PROGRAM.bc KERNELS.so

plugin.cpp starts it once for each program. First (`_Counted`) each basic block gets a counter and each built-in
function its instructions; LLVM puts functions into their callers; then (`_Checked`) each access finds its buffer, whose
bounds hold it. What the counters count, the opcodes of each block as Oclgrind prints them, is in the manifest.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from eprof.profilers.oclgrind import ir
from eprof.profilers.oclgrind.builtins import SLOTS, Builtins, Call
from eprof.profilers.oclgrind.ir import Emit, Function, Module, Uncovered, split, typed

_SPACES = ("private", "global", "constant", "local")
_DIVISIONS = ("sdiv", "udiv", "srem", "urem")
_SHIFTS = ("shl", "lshr", "ashr")
_FEATURES = ("sse4.1", "sse4.2", "popcnt", "avx", "avx2", "fma", "lzcnt", "bmi", "bmi2")
_MOST_PRIVATE = 1 << 20
_STACK = 1 << 17
_GUARD = 1 << 16
_ENTRY = "{ i64, i64, i64 }"  # of a table of buffers: address for kernels, address here, bytes


class _Counted:
    """An LLVM function with a counter a block, and built-ins replaced. histogram: block -> how often it does what."""

    def __init__(self, module: Module, function: Function, counters: int) -> None:
        self.calls: set[str] = set()
        self.histogram: dict[int, Counter[tuple[str, bool, int]]] = {}
        self._module = module
        self.emit = Emit("c")
        self._builtins = Builtins(self.emit, module.sizes)
        for number, (label, lines) in enumerate(function.blocks.items(), counters):
            self._block(number, label, lines)
        self.barriers = self._builtins.barriers
        parameters = ", ".join(["i64* %eprof.in.ctx"] + [f"{kind} {name}" for kind, name, _ in function.parameters])
        head = f'define internal {function.result} @"u.{function.name}"({parameters}) alwaysinline nounwind {{'
        self.text = "\n".join([head, *self.emit.lines, "}"])

    def _block(self, number: int, label: str, lines: list[str]) -> None:
        """Write a basic block, its counter first, and count its opcodes as Oclgrind prints them. Raises Uncovered."""
        counts = self.histogram.setdefault(number, Counter())
        self.emit.lines.append(f"{label}:")
        counted = False
        for line in lines:
            result, opcode, text = ir.instruction(line)
            if opcode != "phi" and not counted:
                value = self.emit.op(f"load i64, i64* @eprof.cnt.{number}")
                self.emit.line(f"store i64 {self.emit.op(f'add i64 {value}, 1')}, i64* @eprof.cnt.{number}")
                counted = True
            text = self._locals(text)
            if re.search(r"addrspace\(([4-9]|\d\d)\)", text):
                raise Uncovered("it uses generic pointers")
            if opcode in ("load", "store"):
                operands = text.removeprefix(opcode).strip().removeprefix("volatile ")
                if operands.startswith("atomic "):
                    raise Uncovered("it has atomic loads or stores")
                (kind, _), (pointer, _) = map(typed, split(operands)[:2])  # a load has its type first
                space = ir.space_of(pointer)
                if kind.endswith("*") and ir.space_of(kind) in (0, 3) and space:
                    raise Uncovered("it keeps addresses of private or local memory in memory")
                counts[f"{opcode} {_SPACES[space]}", True, self._module.sizes.of(kind)[0]] += 1
                self.emit.line(text, result)
            elif opcode in ("call", "tail", "musttail", "notail"):
                self._call(result, text[text.index("call ") + 5 :], counts)
            else:
                counts[opcode, False, 0] += 1
                self._other(opcode, result, text)

    def _locals(self, text: str) -> str:
        """Replace variables in local memory by addresses. Raises Uncovered if kernels may change a global variable."""

        def address(match: re.Match[str]) -> str:
            name = match[0]
            if name not in self._module.locals:
                return name
            return f"inttoptr (i64 {self._module.tag(name)} to {self._module.locals[name]} addrspace(3)*)"

        if any(name in text for name in self._module.mutable):
            raise Uncovered("it uses variables of the program that kernels may change")
        return re.sub(r'@[-\w.$]+|@"[^"]*"', address, text)

    def _call(self, result: str | None, text: str, counts: Counter[tuple[str, bool, int]]) -> None:
        """Write a call of a function of the program, of LLVM or a built-in one, and count it. Raises Uncovered."""
        text = re.sub(r"^(?:(?:spir_func|spir_kernel|fastcc|ccc|noundef|zeroext|signext|nonnull) )*", "", text)
        end = ir.type_at(text)
        match = re.match(r" @([-\w.$]+|\"[^\"]*\")\(", text[end:])
        if match is None:
            raise Uncovered("it calls a function by its address")
        kind = text[:end].split(" (")[0]
        name = match[1].strip('"')
        if name.startswith("llvm.dbg."):
            return
        opening = end + match.end() - 1
        arguments = split(text[opening + 1 : ir.closing(text, opening) - 1])
        operands = [typed(argument) for argument in arguments if "metadata" not in text]
        passed = [f"{operand} {value}" for operand, value in operands]
        counts[f"call {name}()", False, 0] += 1
        if name in self._module.functions:
            self.calls.add(name)
            self.emit.line(f'call {kind} @"u.{name}"({", ".join(["i64* %eprof.in.ctx", *passed])})', result)
        elif name.startswith("llvm.lifetime."):
            return
        elif name.startswith(("llvm.memcpy.", "llvm.memmove.", "llvm.memset.")):
            types = ", ".join(operand for operand, _ in operands)
            self.emit.declared[name] = f"declare void @{name}({types[:-2] + 'i1 immarg'})"
            self.emit.line(f"call void @{name}({', '.join(passed)})")
        elif name.startswith(("llvm.bswap.", "llvm.fabs.")) and not kind.startswith("<"):
            self.emit.vector(kind, [self.emit.call(kind, name, *operands)], result)
        elif name == "llvm.trap":
            self._end()
        else:
            plain, overload = name, ""
            if match := re.match(r"_Z(\d+)", name):
                plain = name[match.end() : match.end() + int(match[1])]
                overload = name[match.end() + int(match[1]) :]
            self._builtins.write(Call(plain, overload, result, kind, operands))

    def _end(self) -> None:
        """End the launch with an error: a trap, or an instruction that must not be reached."""
        self.emit.call("void", "eprof_end", ("i64*", "%eprof.in.ctx"), pure=False)

    def _other(self, opcode: str, result: str | None, text: str) -> None:
        """Write an instruction but call, load or store; where LLVM leaves a result open, with what Oclgrind answers."""
        e = self.emit
        operand = text[len(opcode) + 1 :]
        if re.search(r"(?<![%@\w.])half\b", text) and opcode not in ("bitcast", "phi", "select", "getelementptr"):
            raise Uncovered("it computes with numbers of 16 bits")
        if opcode in ("ptrtoint", "inttoptr"):
            kinds = typed(operand)[0], text.rpartition(" to ")[2]
            if any("*" in kind and ir.space_of(kind) in (0, 3) for kind in kinds):
                raise Uncovered("it takes addresses of private or local memory for numbers")
        if opcode in _DIVISIONS + _SHIFTS:
            kind = operand[: ir.type_at(operand)]
            first, second = split(operand[len(kind) :])
            write = (self._shift, self._divide)[opcode in _DIVISIONS]
            e.line(f"bitcast {kind} {write(opcode, kind, first, second)} to {kind}", result)
        elif opcode in ("fptosi", "fptoui", "sitofp"):
            self._number(opcode, result, text)
        elif opcode == "unreachable":
            self._end()
            e.line(text)
        elif opcode == "alloca":
            e.line(text, result)
            allocated = split(text.removeprefix("alloca "))[0]
            # Not a store: LLVM makes one of each element of it, and an array may have 300,000.
            start, size_b = e.op(f"bitcast {allocated}* {result} to i8*"), self._module.sizes.of(allocated)[0]
            e.call("void", "llvm.memset.p0i8.i64", ("i8*", start), ("i8", "0"), ("i64", str(size_b)), ("i1", "false"))
        elif opcode in ("addrspacecast", "indirectbr", "invoke", "va_arg", "fence", "atomicrmw", "cmpxchg"):
            raise Uncovered(f"it uses {opcode}")
        else:
            e.line(text, result)

    def _divide(self, opcode: str, kind: str, first: str, second: str) -> str:
        """Write a division that gives 0 for a division by zero, as Oclgrind does; returns the result's name."""
        e = self.emit
        if re.fullmatch(r"\d+", second) and second != "0":
            return e.op(f"{opcode} {kind} {first}, {second}")
        number, element = ir.lanes_of(kind)
        values = []
        for lane in range(number):
            above, below = e.lane(kind, first, lane), e.lane(kind, second, lane)
            is_zero = e.op(f"icmp eq {element} {below}, 0")
            odd = is_zero
            if opcode[0] == "s":
                is_minus = e.op(f"icmp eq {element} {below}, -1")
                odd = e.op(f"or i1 {is_zero}, {is_minus}")
            safe = e.op(f"select i1 {odd}, {element} 1, {element} {below}")
            value = e.op(f"{opcode} {element} {above}, {safe}")
            if opcode[0] == "s":
                of_minus = "0"  # the rest
                if opcode == "sdiv":
                    of_minus = e.op(f"sub {element} 0, {above}")
                    if element == "i64":
                        is_least = e.op(f"icmp eq i64 {above}, {-(1 << 63)}")
                        of_minus = e.op(f"select i1 {is_least}, i64 0, i64 {of_minus}")
                value = e.op(f"select i1 {is_minus}, {element} {of_minus}, {element} {value}")
            values.append(e.op(f"select i1 {is_zero}, {element} 0, {element} {value}"))
        return e.vector(kind, values)

    def _shift(self, opcode: str, kind: str, first: str, second: str) -> str:
        """Write a shift by the lower bits of the distance, as Oclgrind does, of scalars in 32 bits at least."""
        e = self.emit
        number, element = ir.lanes_of(kind)
        bits = int(element[1:])
        if re.fullmatch(r"\d+", second) and int(second) < bits:
            return e.op(f"{opcode} {kind} {first}, {second}")
        if number > 1:
            mask = ", ".join([f"{element} {bits - 1}"] * number)
            return e.op(f"{opcode} {kind} {first}, {e.op(f'and {kind} {second}, <{mask}>')}")
        if bits >= 32:
            return e.op(f"{opcode} {kind} {first}, {e.op(f'and {kind} {second}, {bits - 1}')}")
        wide = e.op(f"{('zext', 'sext')[opcode == 'ashr']} {kind} {first} to i32")
        distance = e.op(f"and i32 {e.op(f'zext {kind} {second} to i32')}, 31")
        return e.op(f"trunc i32 {e.op(f'{opcode} i32 {wide}, {distance}')} to {kind}")

    def _number(self, opcode: str, result: str | None, text: str) -> None:
        """Write a conversion between integers and fractions by way of 64 bits, or of double."""
        e = self.emit
        source, value = typed(text[len(opcode) + 1 :].rpartition(" to ")[0])
        kind = text.rpartition(" to ")[2]
        values = []
        element, (lanes, target) = ir.lanes_of(source)[1], ir.lanes_of(kind)
        for lane in range(lanes):
            number = e.lane(source, value, lane)
            if opcode == "sitofp":
                double = e.op(f"sitofp {element} {number} to double")
                values.append(e.cast("fptrunc", "double", double, target))
                continue
            double = e.cast("fpext", element, number, "double")
            whole = e.op(f"freeze i64 {e.op(f'{opcode} double {double} to i64')}")
            values.append(e.cast("trunc", "i64", whole, target))
        e.vector(kind, values, result)


def _wrapper(function: Function) -> str:
    """The text of the function that plugin.cpp calls: it loads a kernel's arguments, and calls the kernel."""
    lines = [f'define void @"eprof.run.{function.name}"(i64* %eprof.in.ctx, i8** %eprof.in.args) nounwind {{', "entry:"]
    passed = ["i64* %eprof.in.ctx"]
    for index, (kind, _, by_value) in enumerate(function.parameters):
        name = f"%eprof.in.a{index}"
        lines += [
            f"  {name}.p = getelementptr i8*, i8** %eprof.in.args, i64 {index}",
            f"  {name}.q = load i8*, i8** {name}.p",
            f"  {name}.r = bitcast i8* {name}.q to {kind}{'*' * (not by_value)}",
        ]
        if by_value:
            lines += [
                f"  {name} = alloca {kind[:-1]}, align 16",
                f"  {name}.v = load {kind[:-1]}, {kind} {name}.r, align 1",
                f"  store {kind[:-1]} {name}.v, {kind} {name}",
            ]
        else:
            lines.append(f"  {name} = load {kind}, {kind}* {name}.r, align 1")
        passed.append(f"{kind} {name}")
    call = f'call {function.result} @"u.{function.name}"({", ".join(passed)})'
    return "\n".join([*lines, f"  {call}", "  ret void", "}"])


class _Checked:
    """A kernel with all functions inlined, whose accesses are looked up in their buffers and kept inside of them."""

    def __init__(self, module: Module, function: Function) -> None:
        self._module = module
        self.sites: list[str] = []
        self.emit = Emit("b")
        self._roots: dict[tuple[str, int], tuple[str, str, str]] = {}
        self._tables: dict[int, tuple[str, str]] = {}
        self._keys: ir.Keys | None = None
        if os.environ.get("EPROF_CACHES"):
            self._keys = ir.Keys(function.blocks)
        self.private = 0
        lines = list(chain.from_iterable(function.blocks.values()))
        self._definitions = {result: text for result, _, text in map(ir.instruction, lines) if result}
        counted = re.findall(r"@eprof\.cnt\.(\d+)", "\n".join(lines))
        self._counters = used = sorted(set(map(int, counted)))
        self._write(function)
        head = f'define void @"{function.name}"(i64* noalias %eprof.in.ctx, i8** noalias %eprof.in.args) nounwind {{'
        first, _, rest = "\n".join(self.emit.lines).partition("\n")
        start = [f"  %eprof.cnt.{number} = alloca i64\n  store i64 0, i64* %eprof.cnt.{number}" for number in used]
        self.text = "\n".join([head, first, *start, rest.replace("@eprof.cnt.", "%eprof.cnt."), "}"])

    def _word(self, name: str) -> str:
        place = self.emit.op(f"getelementptr i64, i64* %eprof.in.ctx, i64 {SLOTS[name]}")
        return self.emit.op(f"load i64, i64* {place}, !invariant.load !0")

    def _write(self, function: Function) -> None:
        """Write the kernel's blocks with checked accesses, after loads of what its buffers are looked up in."""
        e = self.emit
        for label, lines in function.blocks.items():
            e.lines.append(f"{label}:")
            if len(e.lines) == 1:
                self._trap, self._low, self._size = (self._word(name) for name in ("trap", "stack_low", "stack_size"))
                for space, table, number in ((1, "globals", "n_globals"), (3, "locals", "n_locals")):
                    base = e.op(f"inttoptr i64 {self._word(table)} to {_ENTRY}*")
                    self._tables[space] = base, self._word(number)
                if self._keys:
                    self._recorder = e.op(f"inttoptr i64 {self._word('recorder')} to i8*")
                self._entry = len(e.lines)
            if self._keys:
                e.lines += self._keys.begin(label, self._definitions)
            pending: list[str] = []
            for line in lines:
                result, opcode, text = ir.instruction(line)
                if opcode != "phi":
                    for name in pending:
                        self._buffer(name)
                    pending = []
                    if self._keys:
                        e.lines += self._keys.step()
                self._line(opcode, result, text)
                if result and re.search(r" addrspace\([123]\)\*", text) and opcode in ir.ROOTS:
                    pending.append(result)
            for name in pending:
                self._buffer(name)

    def _line(self, opcode: str, result: str | None, text: str) -> None:
        """Write an instruction: an access checked, a return behind stores of all counters, any other as it is."""
        e = self.emit
        if match := re.match(r"(load|store) (volatile )?", text):
            value, pointer = split(text[match.end() :])[:2]
            kind = typed(value)[0]  # a load has its type there
            where = self._access(ir.WAYS[opcode], *typed(pointer), self._module.sizes.touched(kind), kind)
            e.line(f"{match[0]}{value}, {where}{', align 1' * (where != pointer)}", result)
        elif match := re.match(r"(atomicrmw (volatile )?\w+|cmpxchg( volatile)?) ", text):
            pointer, *operands = split(text[match.end() :])
            kind = typed(operands[0])[0]
            where = self._access("atomic access", *typed(pointer), self._module.sizes.of(kind)[0], kind)
            e.line(f"{match[0]}{where}, {', '.join(operands)}", result)
        elif re.search(r"call void @llvm\.mem(cpy|move|set)\.", text):
            self._block(text)
        elif opcode == "ret":
            for number in self._counters:
                counters = e.op(f"inttoptr i64 {self._word('counters')} to i64*")
                place = e.op(f"getelementptr i64, i64* {counters}, i64 {number}")
                before, new = (e.op(f"load i64, i64* {where}") for where in (place, f"@eprof.cnt.{number}"))
                e.line(f"store i64 {e.op(f'add i64 {before}, {new}')}, i64* {place}")
            e.line(text)
        else:
            if opcode == "alloca":
                self.private += self._module.sizes.of(split(text.removeprefix("alloca "))[0])[0]
            e.line(text, result)

    def _block(self, text: str) -> None:
        """Write a memcpy, memmove or memset, with checks that its memory lies in its buffers."""
        e = self.emit
        operands = split(text[text.index("(") + 1 : text.rindex(")")])
        to, source, (kind, length) = map(typed, operands[:3])
        length = e.cast("zext", kind, length, "i64")
        to = "i8*", self._access("write", *to, length, "i8").split()[-1]
        name = "llvm.memset.p0i8.i64"
        if "llvm.memset" not in text:
            source = "i8*", self._access("read", *source, length, "i8").split()[-1]
            name = "llvm.memmove.p0i8.p0i8.i64"
        e.call("void", name, to, source, ("i64", length), ("i1", "false"))

    def _access(self, what: str, pointer: str, address: str, size: int | str, kind: str) -> str:
        """Write an access's check; returns `TYPE* ADDRESS` here, which is the trap's if it is outside its buffer."""
        e = self.emit
        space = ir.space_of(pointer)
        root, fixed = self._origin(address)
        if space == 0:
            text = self._definitions.get(root, "")
            if root.startswith(("%eprof.in.", "@eprof.")) or (fixed and text.startswith("alloca ")):
                return f"{pointer} {address}"
            if text.startswith("alloca "):
                whole = split(text.removeprefix("alloca "))[0]
                tag = base = e.op(f"ptrtoint {whole}* {root} to i64")
                limit = str(self._module.sizes.of(whole)[0])
            else:
                tag, base, limit = self._low, self._low, self._size
        else:
            tag, base, limit = self._buffer(root, pointer)
        number = e.op(f"ptrtoint {pointer} {address} to i64")
        if self._keys and space == 1:
            self._keys.record(e, self._recorder, what, address, number, size)
        if isinstance(size, int):
            less, accessed = str(size - 1), f"{size} bytes"
        else:
            less, accessed = e.call("i64", "llvm.usub.sat.i64", ("i64", size), ("i64", "1")), "a block"
        most = e.call("i64", "llvm.usub.sat.i64", ("i64", limit), ("i64", less))
        offset = e.op(f"sub i64 {number}, {tag}")
        inside = e.op(f"icmp ult i64 {offset}, {most}")
        trap = e.op(f"add i64 {self._trap}, {len(self.sites) * 64 % (1 << 20)}")
        self.sites.append(f"{what} of {accessed} in {_SPACES[space]} memory")
        host = e.op(f"select i1 {inside}, i64 {e.op(f'add i64 {offset}, {base}')}, i64 {trap}")
        return f"{kind}* {e.op(f'inttoptr i64 {host} to {kind}*')}"

    def _origin(self, address: str) -> tuple[str, bool]:
        """Follow an address's casts and indexing back: (the pointer that it starts from, are all indices constants)."""
        fixed = True
        while match := re.match(r"(getelementptr|bitcast) (\()?", text := self._definitions.get(address, address)):
            inside = text[match.end() :].removesuffix(")" * bool(match[2]))
            if match[1] == "bitcast":
                kind, address = typed(inside.rpartition(" to ")[0])
                if not kind.endswith("*"):
                    break
            else:
                _, base, *indices = split(inside)
                fixed &= all(re.fullmatch(r"i\d+ -?\d+", index) for index in indices)
                address = typed(base)[1]
        return address, fixed

    def _buffer(self, root: str, pointer: str = "") -> tuple[str, str, str]:
        """Write the look-up of a pointer's buffer; returns its (address for kernels, address here, bytes); "": none."""
        e = self.emit
        if not pointer:
            pointer = ir.result_type(self._definitions[root])
            if not pointer.endswith("*") or not ir.space_of(pointer):
                return "", "", ""
        space = ir.space_of(pointer)
        key = root, space
        if key in self._roots:
            return self._roots[key]
        lines, e.lines = e.lines, []
        if root.startswith("@"):
            kind = self._module.constants[root]
            first = e.op(f"ptrtoint {kind} addrspace({space})* {root} to i64")
            found = first, first, str(self._module.sizes.of(kind)[0])
        else:
            number = "0"  # of "null", "undef"...
            if match := re.match(r"inttoptr \(i64 (\d+) to", root):
                number = match[1]
            elif root not in ("null", "undef", "poison", "zeroinitializer"):
                number = e.op(f"ptrtoint {ir.result_type(self._definitions[root])} {root} to i64")
            table, entries = self._tables.get(space, self._tables[1])
            index = e.op(f"lshr i64 {number}, {ir.TAG_SHIFT}")
            known = e.op(f"icmp ult i64 {index}, {entries}")
            index = e.op(f"select i1 {known}, i64 {index}, i64 0")
            words = []
            for word in range(3):
                place = e.op(f"getelementptr {_ENTRY}, {_ENTRY}* {table}, i64 {index}, i32 {word}")
                words.append(e.op(f"load i64, i64* {place}, !invariant.load !0"))
            found = words[0], words[1], words[2]
        new, e.lines = e.lines, lines
        start = len(lines) if root in self._definitions else self._entry
        e.lines[start:start] = new
        self._roots[key] = found
        return found


class _Program:
    """The kernels of a program that run natively, each with the functions that it reaches.

    `manifest` says why others do not, and what `plugin.cpp` needs to know of these.
    """

    def __init__(self, module: Module) -> None:
        self._module = module
        self._counted: dict[str, _Counted] = {}
        self._kernels: dict[str, list[str]] = {}
        self._n_counters = 0
        self._manifest: list[str] = []
        reasons: dict[str, str] = {}
        for name, function in module.functions.items():
            try:
                self._counted[name] = _Counted(module, function, self._n_counters)
                self._n_counters += len(self._counted[name].histogram)
            except Uncovered as why:
                reasons[name] = str(why)
        for name in (name for name, function in module.functions.items() if function.is_kernel):
            reached = self._reached(name)
            inside = [function for function in reached if function in self._counted]
            reason = next((reasons[function] for function in reached if function in reasons), None)
            calls = ((caller, called) for caller in inside for called in self._counted[caller].calls)
            if reason is None and any(caller in self._reached(called) for caller, called in calls):
                reason = "it calls itself"
            if reason:
                self._manifest.append(f"interpreted\t{name}\t{reason}")
            else:
                self._kernels[name] = reached

    def _reached(self, name: str) -> list[str]:
        """The names of a function and all program functions that it calls, directly or not."""
        reached = [name]
        for function in reached:
            if function in self._counted:
                reached += [called for called in sorted(self._counted[function].calls) if called not in reached]
        return reached

    def counting(self) -> Iterator[str]:
        """Yields the lines of an LLVM module with all functions that kernels call, with counters in them."""
        functions = [self._counted[name] for name in dict.fromkeys(chain.from_iterable(self._kernels.values()))]
        declared: dict[str, str] = {}
        for function in functions:
            declared |= function.emit.declared
        yield from self._module.variables
        yield from (f"@eprof.cnt.{number} = internal global i64 0" for number in range(self._n_counters))
        yield from declared.values()
        yield from (function.text for function in functions)
        yield from (_wrapper(self._module.functions[name]) for name in self._kernels)

    def checking(self, inlined: str) -> Iterator[str]:
        """Yields the lines of a module of kernels with checked accesses. inlined: what LLVM made of `counting`."""
        after = Module(inlined)
        variables = self._module.variables
        declared: dict[str, str] = {}
        for line in re.findall(r"^declare .*$", inlined, re.MULTILINE):
            declared[re.findall(r"@([-\w.$]+)\(", line)[0]] = re.sub(r"\s+#\d+$", "", line)
        for name, reached in self._kernels.items():
            checked = _Checked(self._module, after.functions[f"eprof.run.{name}"])
            if checked.private > _MOST_PRIVATE:
                why = f"it needs {checked.private} bytes of private memory a work-item"
                self._manifest.append(f"interpreted\t{name}\t{why}")
                continue
            declared |= checked.emit.declared
            yield checked.text
            inside = [self._counted[function] for function in reached]
            barriers = int(any(each.barriers for each in inside))
            stack = -(-(_GUARD + _STACK + 2 * checked.private) // _GUARD) * _GUARD
            local_bytes = self._module.local_bytes(checked.text)
            self._manifest.append(f"kernel\t{name}\t{self._n_counters} {stack} {barriers} {local_bytes}")
            self._manifest += [f"site\t{site}" for site in checked.sites]
            # What the kernel's counters stand for: `operation NAME BLOCK COUNT BYTES ...`.
            told: dict[tuple[str, bool], list[str]] = {}
            for block, counts in ((block, counts) for each in inside for block, counts in each.histogram.items()):
                for (operation, memory, size), number in counts.items():
                    told.setdefault((operation, memory), []).append(f"{block} {number} {number * size}")
            for (operation, memory), cells in told.items():
                self._manifest.append(f"{('operation', 'memory')[memory]}\t{operation}\t{' '.join(cells)}")
        data = "".join(f"\\{byte:02x}" for byte in ("\n".join(self._manifest) + "\n").encode() + b"\0")
        yield f'@eprof_manifest = constant [{len(data) // 3} x i8] c"{data}"'
        yield from variables
        if variables:
            yield f'@eprof_vars_anchor = constant i8 0, section "{ir.VARIABLES}"'
            yield f"@__start_{ir.VARIABLES} = external hidden global i8"
            yield f"@__stop_{ir.VARIABLES} = external hidden global i8"
            yield f"@eprof_vars_bounds = constant [2 x i8*] [i8* @__start_{ir.VARIABLES}, i8* @__stop_{ir.VARIABLES}]"
        yield from declared.values()
        yield "!0 = !{}"


def build(bitcode: bytes, object_file: Path, linker: str) -> None:
    """Compile a program's kernels from LLVM bitcode into a shared object, `object_file`."""
    import llvmlite.binding as llvm

    llvm.initialize()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # The processor that is here, without what would change results from one to another.
    host = llvm.get_host_cpu_features()
    features = ",".join(f"+{name}" for name in _FEATURES if host.get(name))
    target = llvm.Target.from_default_triple()
    cpu = {"x86_64": "x86-64"}.get(target.triple.partition("-")[0], "generic")
    machine = target.create_target_machine(cpu=cpu, features=features, opt=2, reloc="pic", codemodel="small")
    module = Module(str(llvm.parse_bitcode(bitcode, llvm.create_context())))
    types = [f"{name} = type {kind}" for name, kind in module.types.items()]
    head = [f'target datalayout = "{machine.target_data}"', f'target triple = "{llvm.get_default_triple()}"', *types]
    program = _Program(module)
    inlined = llvm.parse_assembly("\n".join([*head, *program.counting()]), llvm.create_context())
    # All functions go into their kernels: each has the attribute for that.
    passes = llvm.create_module_pass_manager()
    passes.add_function_inlining_pass(0)
    passes.add_sroa_pass()
    passes.run(inlined)
    final = llvm.parse_assembly("\n".join([*head, *program.checking(str(inlined))]), llvm.create_context())
    builder = llvm.create_pass_manager_builder()
    builder.opt_level = 2
    builder.disable_unroll_loops = False
    passes = llvm.create_module_pass_manager()
    machine.add_analysis_passes(passes)
    builder.populate(passes)
    passes.run(final)
    # Linked under another name, then renamed, so that other processes see the whole file or none.
    mine = object_file.with_name(f"{object_file.name}.{os.getpid()}")
    part = mine.with_suffix(".o")
    try:
        part.write_bytes(machine.emit_object(final))
        subprocess.run([linker, "-shared", "-o", str(mine), str(part), "-lm"], check=True, stdout=subprocess.DEVNULL)
        mine.replace(object_file)
    finally:
        for path in (mine, part):
            path.unlink(missing_ok=True)


if __name__ == "__main__":
    build(Path(sys.argv[1]).read_bytes(), Path(sys.argv[2]), os.environ.get("EPROF_NATIVE_LINKER", "cc"))
