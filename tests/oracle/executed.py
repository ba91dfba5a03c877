"""What a program for x86-64 executed: objdump's text, times how often valgrind ran each address.

Written from the manuals of objdump, callgrind and the architecture. The profile is one without simulated caches: valgrind
counts executions alone then, and nothing of memory, which follows from the instructions' operands here. Lanes that a mask
selects, and how far an instruction on strings comes, are in no code: functions with such have no bytes.
"""

import re
import subprocess
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

SIZES = {"BYTE": 1, "WORD": 2, "DWORD": 4, "QWORD": 8, "TBYTE": 10, "OWORD": 16, "XMMWORD": 16, "YMMWORD": 32}
LINE = re.compile(r"\s+([0-9a-f]+):\t(?:(?:lock|bnd|notrack|rep|repz|repnz|cs|data16) )*(\S+)\s*([^#<]*)(.*)")
NAME = re.compile(r"(c?)(ob|fn|fl|fi|fe|file)=(?:\((\d+)\) ?)?(.*)")
FLOAT = re.compile(r"v?(fn?m(?:add|sub)\d+|add|sub|mul|div|sqrt|max|min|u?comi|cmp\w*?)([ps])([sd])")
KINDS = {"add": "add", "sub": "add", "mul": "mul", "div": "special", "sqrt": "special"}
# With an operand in memory as their first, these only write there, and these only read.
WRITES = re.compile(r"v?p?mov\w*|set\w+|pop|stos|v?extract\w+|v?pextr\w|fi?st\w*|fn?st\w+|vcvtps2ph|stmxcsr")
READS = re.compile(r"cmp|test|bt|i?mul|i?div|push|jmp|call|fi?ld\w*|f(add|mul|sub|div)\w*|ldmxcsr")
NEITHER = re.compile(r"lea|nop\w*|prefetch\w+|clflush")
STACK = {"push": (0, 8), "call": (0, 8), "pop": (8, 0), "ret": (8, 0), "leave": (8, 0)}
HIDDEN = re.compile(r"vp?maskmov\w+|vp?gather\w+|(movs|stos|cmps|scas|lods)[bwdq]?|f?xsave\w*|fxrstor")


@dataclass
class Function:
    """What a function executed: operations by type and kind, bytes; `is_open`: the code does not tell its bytes."""

    operations: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    read_b: int = 0
    written_b: int = 0
    is_open: bool = False

    def add(self, times: int, mnemonic: str, operands: str, by_stub: bool) -> None:
        """Add an instruction that ran so often; callgrind adds the linker's stub to a call that goes through one."""
        self.is_open |= by_stub
        known = FLOAT.fullmatch(mnemonic)
        if known:
            kind, form, width = known.groups()
            lanes = 1 if form == "s" else (32 if "ymm" in operands else 16) // (4 if width == "s" else 8)
            of = "fma" if kind.startswith("f") else KINDS.get(kind, "other")
            type_ = "fp32" if width == "s" else "fp64"
            self.operations[of if of == "special" else f"{type_}_{of}"] += times * lanes
        if HIDDEN.fullmatch(mnemonic) and "xmm" not in operands.partition(",")[0].replace("xmmword", ""):
            self.is_open = True
        read, written = STACK.get(mnemonic, (0, 0))
        memory = re.search(r"(\w+) PTR", operands)
        if memory and not NEITHER.fullmatch(mnemonic):
            size, is_first = SIZES[memory[1]], operands.startswith(memory[0])
            read += size * (not is_first or not WRITES.fullmatch(mnemonic))
            written += size * (is_first and not READS.fullmatch(mnemonic))
            # The other operand of these is a register that is read: memory is written in either place.
            written += size * (not is_first and mnemonic in ("xchg", "xadd"))
        self.read_b += times * read
        self.written_b += times * written


def functions(program: Path, profile: Path) -> dict[str, Function]:
    """What each function of a program executed."""
    text = subprocess.run(
        ["objdump", "-d", "-Mintel", "--no-show-raw-insn", str(program)], capture_output=True, text=True
    )
    code = {
        int(line[1], 16): (line[2], line[3].strip(), "@plt" in line[4])
        for line in map(LINE.match, text.stdout.splitlines())
        if line
    }
    found: dict[str, Function] = defaultdict(Function)
    for home, function, address, times in executions(profile):
        if Path(home).name == program.name:
            found[function].add(times, *code[address])
    return found


def executions(profile: Path) -> list[tuple[str, str, int, int]]:
    """The rows of a callgrind profile by instruction: object, function, address, and how often it ran."""
    names: dict[tuple[str, str], str] = {}
    now: dict[str, str] = {}
    address, is_call, rows = 0, False, []
    for line in profile.read_text().splitlines():
        name = NAME.fullmatch(line)
        if name:
            called, kind, number, text = name.groups()
            if text:
                names[kind, number] = text
            if not called:
                now[kind] = names.get((kind, number), text)
        elif line.startswith("calls="):
            is_call = True
        elif line[:1] in tuple("0123456789+-*"):
            where, *costs = line.split()
            if where != "*":
                address = int(where, 16) if where[0] not in "+-" else address + int(where)
            if not is_call:
                rows.append((now["ob"], re.sub(r"'\d+$", "", now["fn"]), address, int(costs[0])))
            is_call = False
    return rows
