"""LLVM's text, as llvmlite prints it and lowering.py needs it: types, operands, instructions, loops, and `Emit`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from eprof.base.optional import gathered

# ----------------------------------------------------------------------------------------------------------------------
# Loops of kernels, and keys of their iterations: lanes of a warp are at one place where these are equal.
#
# By occurrence alone, lanes whose inner loops end at different times would be matched wrongly.

NAME = r'(?:[-\w.$]+|"[^"]*")'

# Odd numbers of 64 bits: sums of a few multiples of them are all different, but for accidents.
_SITE, _LOOP = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03
_WORD = (1 << 64) - 1
# As caches.h has them.
_STORE, _ATOMIC, _MOST = 1 << 16, 1 << 17, 0xFFFF
# What a load or a store does to memory.
WAYS = {"load": "read", "store": "write"}
_BYTES = {"i8": 1, "i16": 2, "half": 2, "i32": 4, "float": 4, "i64": 8, "double": 8}


class Loop(NamedTuple):
    """A loop of a kernel's LLVM, by blocks: its first, those that jump back there, those that lead in, all in it."""

    header: str
    latches: tuple[str, ...]
    entries: tuple[str, ...]
    blocks: frozenset[str]


def loops(successors: Mapping[str, Sequence[str]]) -> list[Loop]:
    """The natural loops among basic blocks, inner ones first; the first block is the function's entry."""
    before: dict[str, list[str]] = {block: [] for block in successors}
    ways = [(block, target) for block, targets in successors.items() for target in dict.fromkeys(targets)]
    for block, target in ways:
        before[target].append(block)
    dominators = _dominators(successors, before)
    latches = gathered((target, block) for block, target in ways if target in dominators.get(block, ()))
    found = []
    for header, ends in latches.items():
        inside, waiting = {header}, list(ends)
        while waiting:
            block = waiting.pop()
            if block not in inside:
                inside.add(block)
                waiting += before[block]
        entries = tuple(block for block in before[header] if block not in ends)
        found.append(Loop(header, tuple(ends), entries, frozenset(inside)))
    return sorted(found, key=lambda loop: len(loop.blocks))


def _dominators(successors: Mapping[str, Sequence[str]], before: Mapping[str, list[str]]) -> dict[str, set[str]]:
    """By block that can be reached, its dominators: the blocks that each way from the entry to it leads through."""
    entry = next(iter(successors))
    # Blocks that can be reached, each before those that it leads to, but for ways back.
    order: list[str] = []
    seen, waiting = {entry}, [(entry, iter(successors[entry]))]
    while waiting:
        block, rest = waiting[-1]
        target = next((ahead for ahead in rest if ahead not in seen), None)
        if target is None:
            waiting.pop()
            order.insert(0, block)
        else:
            seen.add(target)
            waiting.append((target, iter(successors[target])))
    dominators = {block: set(order) for block in order} | {entry: {entry}}
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            through = set.intersection(*(dominators[ahead] for ahead in before[block] if ahead in dominators)) | {block}
            changed |= through != dominators[block]
            dominators[block] = through
    return dominators


class Keys:
    """Writes calls that tell the model of caches each access of a kernel: its key, its address, its bytes."""

    def __init__(self, blocks: Mapping[str, Sequence[str]]) -> None:
        self._blocks = blocks
        targets = {label: re.findall(rf"label %({NAME})", "".join(lines[-1:])) for label, lines in blocks.items()}
        self._loops = loops(targets)
        self._label = ""
        self._steps: list[str] = []
        self._spans: dict[tuple[str, str], tuple[int, int] | None] = {}
        self._sites = 0

    def begin(self, label: str, definitions: Mapping[str, str]) -> list[str]:
        """Go on to a block of code; returns the lines to put first: in a loop's first block, the loop's key."""
        self._label = label
        self._spans = _spans(self._blocks[label], definitions)
        for number, loop in enumerate(self._loops, 1):
            if loop.header == label:
                ways = [f"[ {self._of(label, self._loops[number:])}, %{block} ]" for block in loop.entries]
                ways += [f"[ {_name(label)}.next, %{block} ]" for block in loop.latches]
                self._steps = [f"  {_name(label)}.next = add i64 {_name(label)}, {number * _LOOP & _WORD}"]
                return [f"  {_name(label)} = phi i64 {', '.join(ways)}"]
        return []

    def step(self) -> list[str]:
        """Hand over the lines to put behind the block's phis: where a loop begins, the key of its next iteration."""
        steps, self._steps = self._steps, []
        return steps

    def record(self, emit: Emit, recorder: str, what: str, address: str, number: str, size: int | str) -> None:
        """Write the call that tells the model of caches of an access; of a vector's elements the first tells of all."""
        before = 0
        flags = {"write": _STORE, "read": 0}.get(what, _ATOMIC)
        if isinstance(size, int):
            span = self._spans.get((what, address), (0, size))
            if span is None:
                return
            before, size = span
            told = str(min(size, _MOST) | flags)
        else:  # a block of memory
            short = emit.call("i64", "llvm.umin.i64", ("i64", size), ("i64", str(_MOST)))
            told = emit.op(f"or i32 {emit.op(f'trunc i64 {short} to i32')}, {flags}")
        self._sites += 1
        key = emit.op(f"add i64 {self._of(self._label, self._loops)}, {self._sites * _SITE & _WORD}")
        if before:
            number = emit.op(f"sub i64 {number}, {before}")
        passed = ("i8*", recorder), ("i64", key), ("i64", number), ("i32", told)
        emit.call("void", "caches_access", *passed, pure=False)

    @staticmethod
    def _of(block: str, among: Sequence[Loop]) -> str:
        """The key of the innermost loop of `among` that a block is in; 0 outside of all."""
        return next((_name(loop.header) for loop in among if block in loop.blocks), "0")


def _name(label: str) -> str:
    return "%eprof.loop." + re.sub(r"[^-\w.$]", ".", label)


def _spans(lines: Sequence[str], definitions: Mapping[str, str]) -> dict[tuple[str, str], tuple[int, int] | None]:
    """By (way, address) of elements of vectors: (bytes before the element, bytes in all) at the first, None at others.

    Oclgrind's compiler takes vectors apart; those for GPUs access all elements of a vector at once. At the first one
    the whole is told, at the others (None) nothing. That is assumed.
    """
    elements: dict[tuple[str, str], list[tuple[str, int, int]]] = {}
    for line in lines:
        for opcode, address in re.findall(rf"^\s*(?:\S+ = )?(load|store) .*\* (%{NAME})(?:,|$)", line):
            vector = r"getelementptr (<\d+ x (\w+)>, .*), i\d+ (\d+)"
            element = re.fullmatch(vector, definitions.get(address, ""))
            if element and element[2] in _BYTES:
                part = address, int(element[3]), _BYTES[element[2]]
                elements.setdefault((WAYS[opcode], element[1]), []).append(part)
    spans: dict[tuple[str, str], tuple[int, int] | None] = {}
    for (what, _), parts in elements.items():
        size = parts[0][2]
        least, most = min(lane for _, lane, _ in parts), max(lane for _, lane, _ in parts)
        for address, _, _ in parts:
            spans.setdefault((what, address), None)
        spans[what, parts[0][0]] = (parts[0][1] - least) * size, (most - least + 1) * size
    return spans


class Uncovered(Exception):
    """Raised for what the native device does not run, so that the kernel is interpreted."""


_TYPE = re.compile(r"(i\d+|half|float|double|void|metadata|label|%[-\w.$]+|%\"[^\"]*\")")
_POINTER = re.compile(r"( addrspace\(\d+\))?\*")
_BRACKET = re.compile(r'"[^"]*"|[(\[<{)\]>}]')  # or a name in quotes, which may hold some
_WORDS = re.compile(
    r"(?:noundef|nonnull|nocapture|readonly|readnone|writeonly|signext|zeroext|noalias|returned|immarg|nofree|inreg|nest"
    r"|align \d+|dereferenceable(?:_or_null)?\(\d+\)|byval\([^()]*\)|sret\([^()]*\)) ?"
)
_FLAGS = re.compile(r"(?<![%@.\w\"])(?:nuw|nsw|exact|inbounds|fast|nnan|ninf|nsz|arcp|contract|afn|reassoc) ")
_METADATA = re.compile(r",? ![\w.]+ !(?:\w+|\{\})|(?<!\s)\s+#\d+(?=,|$)|(?<!\s)\s*;.*$")
_LABEL = re.compile(r"([-\w.$]+|\"[^\"]*\"):")
_INSTRUCTION = re.compile(r"\s*(?:(%[-\w.$]+|%\"[^\"]*\") = )?((\S*).*)", re.DOTALL)


def type_at(text: str) -> int:
    """The place behind the type that a text of LLVM begins with. Raises Uncovered: a type that is not known."""
    if text[0] in "([<{":
        end = closing(text, 0)
    elif match := _TYPE.match(text):
        end = match.end()
    else:
        raise Uncovered(f"a type that eprof does not read ({text[:40]})")
    while (match := _POINTER.match(text, end)) or text.startswith(" (", end):
        end = match.end() if match else closing(text, end + 1)
    return end


def closing(text: str, start: int) -> int:
    """The place behind the bracket of LLVM's text that closes the one at `start`. Raises Uncovered."""
    depth = 0
    for match in _BRACKET.finditer(text, start):
        depth += (match[0] in "([<{") - (match[0] in ")]>}")
        if not depth and match[0] in ")]>}":
            return match.end()
    raise Uncovered("brackets that do not close")


def split(text: str) -> list[str]:
    """The parts of a list of LLVM's operands, at the commas outside of brackets."""
    if not text.strip():
        return []
    parts = []
    begin = place = 0
    while place < len(text):
        if text[place] in "([<{":
            place = closing(text, place)
        elif text[place] == ",":
            parts.append(text[begin:place].strip())
            begin = place = place + 1
        else:
            place += 1
    return [*parts, text[begin:].strip()]


def typed(text: str) -> tuple[str, str]:
    """(type, value) of an operand such as `i32 noundef %x`, without attributes."""
    end = type_at(text)
    return text[:end], _WORDS.sub("", text[end:].strip())


def instruction(line: str) -> tuple[str | None, str, str]:
    """(name of the result or None, opcode, text from the opcode on) of an LLVM instruction."""
    match = _INSTRUCTION.match(line)
    assert match is not None
    return match[1], match[3], match[2]


def clean(line: str) -> str:
    """An LLVM instruction without metadata, and without flags (nsw, fast...) that leave some results undefined."""
    return _FLAGS.sub("", _METADATA.sub("", line).rstrip())


def space_of(pointer: str) -> int:
    """The address space in a pointer's type; 0 without one."""
    return next(map(int, re.findall(r" addrspace\((\d+)\)\*$", pointer)), 0)


def pointed(pointer: str) -> tuple[str, str]:
    """(type that a pointer points to, rest of the pointer's type): ("float", " addrspace(1)*")."""
    kind = pointer.split(" addrspace")[0].rstrip("*")
    return kind, pointer[len(kind) :]


def lanes_of(kind: str) -> tuple[int, str]:
    """(number of elements, their type) of a type: (1, "float") for a scalar."""
    match = re.fullmatch(r"<(\d+) x (.+)>", kind)
    return (int(match[1]), match[2]) if match else (1, kind)


# What makes a pointer that is made of no other.
ROOTS = ("load", "phi", "select", "inttoptr", "call", "extractvalue", "freeze")


def result_type(text: str) -> str:
    """The pointer type that an instruction of `ROOTS` gives; "" for other opcodes."""
    opcode, _, rest = text.partition(" ")
    if opcode == "inttoptr":
        return rest.rpartition(" to ")[2]
    if opcode == "select":
        return typed(split(rest)[1])[0]
    if opcode in ("load", "phi", "freeze"):
        rest = rest.removeprefix("volatile ")
        return rest[: type_at(rest)]
    return ""


class Sizes:
    """The sizes of LLVM's types, as on every 64-bit machine that Oclgrind and these kernels run on."""

    def __init__(self, named: Mapping[str, str]) -> None:
        self._named = named

    def of(self, kind: str) -> tuple[int, int]:
        """(bytes, alignment in bytes) of an LLVM type."""
        if kind.endswith("*"):
            return 8, 8
        if kind in ("half", "float", "double"):
            return _BYTES[kind], _BYTES[kind]
        if match := re.fullmatch(r"i(\d+)", kind):
            size = 1 << max(0, (int(match[1]) - 1).bit_length() - 3)
            return size, min(size, 8)
        if kind.startswith("%"):
            return self.of(self._named[kind])
        if kind.startswith("["):
            count, _, element = kind[1:-1].partition(" x ")
            size, align = self.of(element)
            return int(count) * size, align
        if kind.startswith(("<{", "{")):
            total, widest = 0, 1
            for member in split(kind.strip("<>")[1:-1].strip()):
                size, align = self.of(member)
                if kind.startswith("<"):
                    align = 1
                total = -(-total // align) * align + size
                widest = max(widest, align)
            return -(-total // widest) * widest, widest
        number, element = lanes_of(kind)
        size = 1 << (number * self.of(element)[0] - 1).bit_length()
        return size, size

    def touched(self, kind: str) -> int:
        """The bytes that a load or a store of a type touches: of a vector of three, three elements, not four."""
        number, element = lanes_of(kind)
        return number * self.of(element)[0]


class Emit:
    """Writes LLVM instructions, and names their results, `%eprof.rt.1`."""

    def __init__(self, prefix: str) -> None:
        self.lines: list[str] = []
        self.declared: dict[str, str] = {}
        self._prefix = prefix
        self._names = 0

    def line(self, text: str, result: str | None = None) -> None:
        """Add an LLVM instruction; `result` names its result, if it has one."""
        self.lines.append("  " + " = ".join(filter(None, (result, text))))

    def op(self, text: str) -> str:
        """Add an LLVM instruction under a new name for its result, which is returned."""
        self._names += 1
        name = f"%eprof.rt.{self._prefix}{self._names}"
        self.line(text, name)
        return name

    def cast(self, how: str, kind: str, value: str, to: str) -> str:
        """A value in type `to`, by the instruction `how`; the value itself if it has that type."""
        if kind == to:
            return value
        return self.op(f"{how} {kind} {value} to {to}")

    def call(self, kind: str, function: str, *operands: tuple[str, str], pure: bool = True) -> str:
        """Add a call of a function of C or LLVM, with its declaration; returns the result's name, "" for void."""
        types = ", ".join(operand for operand, _ in operands)
        attributes = "nounwind" + " readnone willreturn" * pure
        if function not in self.declared:
            self.declared[function] = f"declare {kind} @{function}({types}) {attributes}"
        passed = ", ".join(f"{operand} {value}" for operand, value in operands)
        text = f"call {kind} @{function}({passed})" + " nobuiltin" * (not function.startswith("llvm."))
        if kind == "void":
            self.line(text)
            return ""
        return self.op(text)

    def lane(self, kind: str, value: str, index: int) -> str:
        """Write the extraction of element `index` of a vector, and return its name; of a scalar, the scalar's."""
        if not kind.startswith("<"):
            return value
        return self.op(f"extractelement {kind} {value}, i32 {index}")

    def vector(self, kind: str, values: list[str], result: str | None = None) -> str:
        """Put elements together to a value of type `kind`, also as `result` if that is given; returns its name."""
        number, element = lanes_of(kind)
        whole = values[0]
        if kind.startswith("<"):
            whole = "zeroinitializer"
            for index, value in enumerate(values):
                whole = self.op(f"insertelement {kind} {whole}, {element} {value}, i32 {index}")
        if result:
            self.line(f"bitcast {kind} {whole} to {kind}", result)
        return whole


class Function:
    """A function as llvmlite prints it: blocks of lines without metadata; `%5` is `%n5`, so names can be added."""

    def __init__(self, header: str, body: list[str]) -> None:
        match = re.match(r"define (.*?)@([-\w.$]+|\"[^\"]*\")\(", header)
        if match is None:
            raise Uncovered("a function without a name")
        self.name = match[2].strip('"')
        self.is_kernel = "spir_kernel" in match[1]
        words = r"\b(dso_local|internal|private|spir_func|spir_kernel|hidden|linkonce_odr|weak)\b ?"
        self.result = typed(_WORDS.sub("", re.sub(words, "", match[1])).strip())[0]
        end = closing(header, match.end() - 1)
        parameters = split(header[match.end() : end - 1])
        self.parameters = [(*typed(parameter), "byval(" in parameter) for parameter in parameters]
        self.blocks: dict[str, list[str]] = {}
        # A first block without a label has the number that follows those of the parameters.
        label = f"n{sum(bool(re.fullmatch(r'%n[0-9]+', name)) for _, name, _ in self.parameters)}"
        for line in body:
            if match := _LABEL.match(line):
                label = match[1]
            elif line.strip():
                self.blocks.setdefault(label, []).append(line)


TAG_SHIFT = 48  # of addresses: above it stands which variable it is
VARIABLES = "eprof_vars"  # the section of the program's constants


class Module:
    """A program in LLVM's text: its types, functions and variables."""

    def __init__(self, text: str) -> None:
        # No name is a number: `%5` and the label `5:` become `%n5` and `n5:`.
        text = re.sub(r'("[^"\n]*")|%(\d+)\b', lambda match: match[1] or f"%n{match[2]}", text)
        text = re.sub(r"^(\d+):", r"n\1:", text, flags=re.MULTILINE)
        self.types = dict(re.findall(r"^(%\S+) = type (.*)$", text, re.MULTILINE))
        self.sizes = Sizes(self.types)
        self.functions: dict[str, Function] = {}
        lines = iter(text.split("\n"))
        for header in (line for line in lines if line.startswith("define ")):
            body = []
            for line in takewhile(lambda line: line != "}", lines):
                line = clean(line)
                while "switch " in line and line.count("[") != line.count("]"):
                    line += " " + clean(next(lines)).strip()
                body.append(line)
            function = Function(header, body)
            self.functions[function.name] = function
        self.locals: dict[str, str] = {}
        self.constants: dict[str, str] = {}  # their types
        self.variables: list[str] = []
        self.mutable: set[str] = set()
        named = r"(@[-\w.$]+|@\"[^\"]*\") = "
        known = named + r".*?(addrspace\((\d)\) )?(?:externally_initialized )?(global|constant) (.*)"
        for line in re.findall(r"^@.* (?:global|constant) .*$", text, re.MULTILINE):
            match = re.match(known, clean(line))
            if match is None or match[1].startswith("@llvm."):
                continue
            name, spaced, space, what, value = match.groups(default="")
            kind = value[: type_at(value)]
            if space == "3":
                self.locals[name] = kind
                continue
            if what == "global":
                self.mutable.add(name)
            self.constants[name] = kind
            self.variables.append(f'{name} = internal {spaced}{what} {value}, section "{VARIABLES}"')

    def tag(self, local: str) -> int:
        """The address at which kernels see a variable in local memory, a number of 64 bits that tells which it is."""
        return (list(self.locals).index(local) + 1) << TAG_SHIFT

    def local_bytes(self, text: str) -> str:
        """The bytes of each local variable, as a text of numbers; 0 of those that a kernel's `text` does not use."""
        used = {int(number) >> TAG_SHIFT for number in re.findall(r"\bi64 (\d{15,})", text)}
        kinds = enumerate(self.locals.values(), 1)
        return " ".join(str(self.sizes.of(kind)[0] * (index in used)) for index, kind in kinds)
