"""Arithmetic in loops that needs its own result of the turn before, by machine code: there no vectors help.

A value is carried from turn to turn in a register, or in memory that the next turn loads: y[i] = y[i - 1] * a + x[i].
What only adds to it, or only multiplies, is a sum or a product, which may be taken in another order; not where each
turn stores it, for what that stores is wanted in this order.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import count, takewhile
from typing import NamedTuple

from msgspec import Struct, field

from eprof.base.text import pattern

RECURRENCE, PRODUCT = "recurrence", "product"
_ADD, _MULTIPLY, _OTHER = "add", "multiply", "other"
_BACK = pattern(r"0x[0-9a-f]+")
_ARITHMETIC = pattern(r"v?(?P<what>add|sub|mul)[sp][sd]")
_FUSED = pattern(r"vfn?m(?:add|sub)(?P<order>132|213|231)[sp][sd]")
_SCALAR = pattern(r"v?(?:add|sub|mul|fn?m(?:add|sub)\d+)s[sd]")
_MOVE = pattern(r"v?mov(?:s[sd]|[aul]p[sd]|dq[au]\d*|ddup|[dq])")
_CLEAR = pattern(r"v?p?xor(?:p[sd]|[dq])?")
_CONVERT = pattern(r"v?(?:cvt|sqrt|round)\w+")  # what stands in their first operand does not matter
_READS = pattern(r"cmp|test|push|bt|nop|j\w+|prefetch\w*|v?u?comis[sd]|v?p?test\w*")  # and write no operand
_IMPLICIT = pattern(r"(?:i?mul|i?div|cdqe?|cqo|cwde?|rdtscp?|cpuid)")
_VECTOR_REGISTER = pattern(r"[xyz]mm(\d+)")
_REGISTER = pattern(r"r(\d+)[dwb]?|[re]?(ax|bx|cx|dx|si|di|bp|sp)|([abcd])[lh]|(si|di|bp|sp)l")
_TERM = pattern(r"(?P<sign>[+-]?) ?(?:(?P<number>0x[0-9a-f]+|\d+)|(?P<register>[a-z]\w*)(?:\*(?P<scale>\d))?)")
_CLOBBERED = ("rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11")  # by calls of functions
_ELSEWHERE, _NEAR = pattern(r"jmp|ret|call"), 24  # what stands in front of these is of other code; and how far away
_LANES = 4  # so many chains side by side fill a vector

Step = tuple[int, str]  # the address of an operation, and what it does
Place = tuple[frozenset[tuple[object, int]], int]  # of an access to memory: registers with their scales, and an offset
Taken = dict[
    object, frozenset[Step]
]  # what a value is made of: where that was as the turn began -> the steps on the way


class Coded(NamedTuple):
    """An instruction as a disassembler writes it: "mulsd", "xmm0, qword ptr [rdi + rax*8]"."""

    address: int
    size: int
    mnemonic: str
    operands: str


def chained(code: Sequence[Coded]) -> dict[int, str]:
    """The scalar arithmetic of innermost loops that needs its own result: address -> RECURRENCE, or PRODUCT.

    code: what ran of an object file, by address.
    """
    addresses = [each.address for each in code]
    kinds: dict[int, str] = {}
    latest = -1  # beginning of a loop so far
    for last, each in enumerate(code):
        if not _jumps_back(each):
            continue
        begins = int(each.operands, 16)
        turn = code[bisect_left(addresses, begins) : last + 1]
        if latest < begins and any(_SCALAR.fullmatch(step.mnemonic) for step in turn):
            kinds |= _of_loop(turn, _Turn.before(code[: last + 1 - len(turn)]))
        latest = max(latest, begins)
    return kinds


def _jumps_back(each: Coded) -> bool:
    is_jump = each.mnemonic.startswith("j") and _BACK.fullmatch(each.operands) is not None
    return is_jump and int(each.operands, 16) <= each.address


def _of_loop(code: Sequence[Coded], begins: dict[str, tuple[object, int]]) -> dict[int, str]:
    """What `chained` tells of one loop, whose instructions are taken to run in their order, once a turn.

    begins: what general registers hold before it.
    """
    turn = _Turn(begins=begins)
    for each in code:
        turn.take(each)
    chains = list(turn.chains())
    recurrent = {address for steps, kind in chains if kind == RECURRENCE for address, _ in steps}
    if sum(kind == RECURRENCE for _, kind in chains) >= _LANES:
        recurrent = set()
    multiplied = {address for steps, kind in chains if kind == PRODUCT for address, _ in steps}
    return dict.fromkeys(multiplied, PRODUCT) | dict.fromkeys(recurrent, RECURRENCE)


class _Turn(Struct):
    """A turn of a loop so far: what vector registers and memory hold, and general registers (as a start, an offset)."""

    vectors: dict[str, Taken] = field(default_factory=dict)
    stored: dict[Place, Taken] = field(default_factory=dict)
    loaded: set[Place] = field(default_factory=set)
    integers: dict[str, tuple[object, int]] = field(default_factory=dict)
    begins: dict[str, tuple[object, int]] = field(default_factory=dict)
    unknown: Iterator[int] = field(default_factory=count)

    @classmethod
    def before(cls, code: Sequence[Coded]) -> dict[str, tuple[object, int]]:
        """What general registers hold behind `code`: of two pointers one may be told by the other."""
        turn = cls()
        straight = takewhile(lambda each: _ELSEWHERE.fullmatch(each.mnemonic) is None, reversed(code[-_NEAR:]))
        for each in reversed(list(straight)):
            turn.take(each)
        return turn.integers

    def take(self, each: Coded) -> None:
        """Take one instruction of the loop."""
        operands = each.operands.split(", ") if each.operands else []
        if each.mnemonic == "call":
            self.vectors = {str(number): {} for number in range(32)}
            for register in _CLOBBERED:
                self._forget(register)
        elif _READS.fullmatch(each.mnemonic):
            return
        elif "mm" in each.operands:
            self._compute(each, operands)
        elif operands:
            self._count(each, operands)

    def _compute(self, each: Coded, operands: Sequence[str]) -> None:
        first, *sources = operands
        values = [self._value(source, each) for source in sources]
        fused = _FUSED.fullmatch(each.mnemonic)
        arithmetic = _ARITHMETIC.fullmatch(each.mnemonic)
        if _CLEAR.fullmatch(each.mnemonic) and len(set(operands[-2:])) == 1:
            made: Taken = {}
        elif _MOVE.fullmatch(each.mnemonic):
            made = values[-1]
        elif fused:
            own = self._value(first, each)
            added = {"132": values[0], "213": values[1], "231": own}[fused["order"]]
            factors = [value for value in (own, *values) if value is not added]
            made = _joined([_after(added, each, _ADD), *(_after(value, each, _MULTIPLY, _ADD) for value in factors)])
        else:
            if len(operands) == 2 and not _CONVERT.fullmatch(each.mnemonic):
                values.append(self._value(first, each))
            what = _OTHER
            if arithmetic:
                what = _MULTIPLY if arithmetic["what"] == "mul" else _ADD
            made = _joined([_after(value, each, what) for value in values])
        if register := _VECTOR_REGISTER.fullmatch(first):
            self.vectors[register[1]] = made
        elif "[" in first:
            self.stored[self._place(first, each)] = made
        else:
            self._forget(first)

    def _value(self, operand: str, each: Coded) -> Taken:
        """What an operand holds; of what nothing wrote in this turn, where it is."""
        if register := _VECTOR_REGISTER.fullmatch(operand):
            return self.vectors.get(register[1], {register[1]: frozenset()})
        if "[" not in operand:
            return {}
        place = self._place(operand, each)
        if place in self.stored:
            return self.stored[place]
        self.loaded.add(place)
        return {place: frozenset()}

    def _place(self, operand: str, each: Coded) -> Place:
        """The place in memory of an operand, by what registers held as the turn began."""
        registers: dict[object, int] = {}
        offset = 0
        for term in _TERM.finditer(operand.partition("[")[2].rstrip("]")):
            sign = -1 if term["sign"] == "-" else 1
            if term["number"]:
                offset += sign * int(term["number"], 0)
            elif term["register"] == "rip":
                offset += each.address + each.size
            else:
                scale = int(term["scale"] or 1)
                start, moved = self._integer(term["register"])
                registers[start] = registers.get(start, 0) + scale
                offset += scale * moved
        return frozenset(registers.items()), offset

    def _integer(self, register: str) -> tuple[object, int]:
        whole = _whole(register)
        return self.integers.get(whole, (whole, 0))

    def _forget(self, register: str) -> None:
        self.integers[_whole(register)] = next(self.unknown), 0

    def _count(self, each: Coded, operands: Sequence[str]) -> None:
        """Take an instruction on general registers: a pointer moves by a number, else what it has is new."""
        first, second = operands[0], operands[-1]
        if _IMPLICIT.fullmatch(each.mnemonic) and len(operands) == 1:
            self._forget("rax")
            self._forget("rdx")
        if _REGISTER.fullmatch(first) is None:
            return
        start, moved = self._integer(first)
        by = {"inc": "1", "dec": "-1", "add": second, "sub": f"-{second}"}.get(each.mnemonic, "")
        if re.fullmatch(r"-{0,2}(0x[0-9a-f]+|\d+)", by):
            self.integers[_whole(first)] = start, moved + int(by.removeprefix("--"), 0)
        elif each.mnemonic == "mov" and _REGISTER.fullmatch(second):
            self.integers[_whole(first)] = self._integer(second)
        elif each.mnemonic == "lea":
            registers, offset = self._place(second, each)
            ((start, scale),) = registers or {("", 1)} if len(registers) < 2 else {(next(self.unknown), 1)}
            self.integers[_whole(first)] = (start, offset) if scale == 1 else (next(self.unknown), 0)
        else:
            self._forget(first)

    def chains(self) -> Iterator[tuple[frozenset[Step], str]]:
        """Yields the steps from values as the turn began to the same as the next begins, and the kind of each chain."""
        kept = {start for value in self.stored.values() for start in value}
        ends = dict[object, Taken](self.vectors.items())
        ends |= {place: self._left(place) for place in self.loaded}
        reached = {start: _reached(start, ends) for start in ends}
        circles = {frozenset(end for end in own if start in reached.get(end, ())) for start, own in reached.items()}
        for circle in circles:
            steps = frozenset[Step]().union(*(ends[end].get(start, ()) for end in circle for start in circle))
            kinds = {what for _, what in steps}
            is_kept = any(start in kept for start in circle) or not circle.isdisjoint(self.loaded)
            if kinds and (is_kept or kinds not in ({_ADD}, {_MULTIPLY})):
                yield steps, RECURRENCE
            elif kinds == {_MULTIPLY}:
                yield steps, PRODUCT

    def _left(self, place: Place) -> Taken:
        """What a turn leaves where the next one loads from `place`; nothing where that is not known."""
        registers, offset = place
        for start, scale in registers:
            now, by = self.integers.get(str(start), (start, 0))
            if not isinstance(start, str) or now != start:
                return {}
            offset += scale * by
        left = self._as_begun((registers, offset))
        return next((value for there, value in self.stored.items() if self._as_begun(there) == left), {})

    def _as_begun(self, place: Place) -> Place:
        """A place by what registers held before the loop."""
        registers: dict[object, int] = {}
        offset = place[1]
        for start, scale in place[0]:
            before, by = self.begins.get(str(start), (start, 0))
            registers[before] = registers.get(before, 0) + scale
            offset += scale * by
        return frozenset(registers.items()), offset


def _reached(end: object, ends: Mapping[object, Taken]) -> set[object]:
    """What a value as a turn ends takes, and what that took in the turns before."""
    reached = set[object]()
    open_ = [end]
    while open_:
        new = ends.get(open_.pop(), {}).keys() - reached
        reached |= new
        open_ += new
    return reached


def _whole(register: str) -> str:
    """The whole of a general register: "eax" -> "rax", "r8d" -> "r8"; another name stays."""
    parts = _REGISTER.fullmatch(register)
    if parts is None:
        return register
    number, name, letter, low = parts.groups()
    return f"r{number or name or low or f'{letter}x'}"


def _after(value: Taken, each: Coded, *what: str) -> Taken:
    """What an operation makes of a value."""
    return {start: steps | {(each.address, kind) for kind in what} for start, steps in value.items()}


def _joined(values: Sequence[Taken]) -> Taken:
    joined: Taken = {}
    for value in values:
        for start, steps in value.items():
            joined[start] = joined.get(start, frozenset()) | steps
    return joined
