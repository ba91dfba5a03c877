"""Loops of kernels, and keys of their iterations: lanes of a warp are at one place where these are equal.

By occurrence alone, lanes whose inner loops end at different times would be matched wrongly.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from eprof.profilers.oclgrind.ir import Emit

NAME = r'(?:[-\w.$]+|"[^"]*")'

# Odd numbers of 64 bits: sums of a few multiples of them are all different, but for accidents.
_SITE, _LOOP = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03
_WORD = (1 << 64) - 1
# As caches.h has them.
_STORE, _ATOMIC, _MOST = 1 << 16, 1 << 17, 0xFFFF
_BYTES = {"i8": 1, "i16": 2, "half": 2, "i32": 4, "float": 4, "i64": 8, "double": 8}


class Loop(NamedTuple):
    """A loop: the block where it begins, the blocks that lead back there, those that lead in, all of its blocks."""

    header: str
    latches: tuple[str, ...]
    entries: tuple[str, ...]
    blocks: frozenset[str]


def loops(successors: Mapping[str, Sequence[str]]) -> list[Loop]:
    """The natural loops among basic blocks, inner ones first; the first block is the function's entry."""
    before: dict[str, list[str]] = {block: [] for block in successors}
    for block, targets in successors.items():
        for target in dict.fromkeys(targets):
            before[target].append(block)
    dominators = _dominators(successors, before)
    latches: dict[str, list[str]] = {}
    for block, targets in successors.items():
        for target in dict.fromkeys(targets):
            if target in dominators.get(block, ()):
                latches.setdefault(target, []).append(block)
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
    """The blocks that every way from the entry to a block leads through, of the blocks that can be reached."""
    entry = next(iter(successors))
    order = list(reversed(list(_depth_first(successors, entry))))
    dominators = {block: set(order) for block in order} | {entry: {entry}}
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            through = set.intersection(*(dominators[one] for one in before[block] if one in dominators)) | {block}
            changed |= through != dominators[block]
            dominators[block] = through
    return dominators


def _depth_first(successors: Mapping[str, Sequence[str]], entry: str) -> Iterator[str]:
    """Blocks that can be reached, each after those that it leads to, but for ways back."""
    seen = {entry}
    waiting = [(entry, iter(successors[entry]))]
    while waiting:
        block, rest = waiting[-1]
        target = next((one for one in rest if one not in seen), None)
        if target is None:
            waiting.pop()
            yield block
        else:
            seen.add(target)
            waiting.append((target, iter(successors[target])))


class Keys:
    """Tells the model of caches of each access of a kernel, in LLVM's text: its key, its address, its bytes."""

    def __init__(self, blocks: Mapping[str, Sequence[str]]) -> None:
        self._blocks = blocks
        targets = {
            label: re.findall(rf"label %({NAME})", lines[-1] if lines else "") for label, lines in blocks.items()
        }
        self._loops = loops(targets)
        self._label = ""
        self._steps: list[str] = []
        self._spans: dict[tuple[str, str], tuple[int, int] | None] = {}
        self._sites = 0

    def begin(self, label: str, definitions: Mapping[str, str]) -> list[str]:
        """What stands first in a block: a loop's key, which is that of the loop around it plus a step an iteration."""
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
        """What stands behind the phis of a block: the key of the next iteration."""
        steps, self._steps = self._steps, []
        return steps

    def record(self, emit: Emit, recorder: str, what: str, address: str, number: str, size: int | str) -> None:
        """Call the model of an access, or of the whole vector at its first element; nothing at the others."""
        span = self._spans.get((what, address), (0, size if isinstance(size, int) else 0))
        if span is None:
            return
        self._sites += 1
        before, bytes_ = span
        flags = {"write": _STORE, "read": 0}.get(what, _ATOMIC)
        told = str(min(bytes_, _MOST) | flags)
        if not isinstance(size, int):  # a block of memory
            short = emit.call("i64", "llvm.umin.i64", ("i64", size), ("i64", str(_MOST)))
            told = emit.op(f"or i32 {emit.op(f'trunc i64 {short} to i32')}, {flags}")
        key = emit.op(f"add i64 {self._of(self._label, self._loops)}, {self._sites * _SITE & _WORD}")
        first = emit.op(f"sub i64 {number}, {before}") if before else number
        passed = ("i8*", recorder), ("i64", key), ("i64", first), ("i32", told)
        emit.call("void", "caches_access", *passed, pure=False)

    @staticmethod
    def _of(block: str, among: Sequence[Loop]) -> str:
        """The key of the innermost loop of `among` that a block is in; 0 outside of all."""
        return next((_name(one.header) for one in among if block in one.blocks), "0")


def _name(label: str) -> str:
    return "%eprof.loop." + re.sub(r"[^-\w.$]", ".", label)


def _spans(lines: Sequence[str], definitions: Mapping[str, str]) -> dict[tuple[str, str], tuple[int, int] | None]:
    """Of a block's accesses to elements of vectors, what is accessed at once: bytes before the element, bytes in all.

    Oclgrind's compiler takes vectors apart; those for GPUs access all elements of a vector at once. At the first one
    the whole is told, at the others (None) nothing. That is assumed.
    """
    elements: dict[tuple[str, str], list[tuple[str, int, int]]] = {}
    for line in lines:
        match = re.match(rf"\s*(?:\S+ = )?(load|store) .*\* (%{NAME})(?:,|$)", line)
        text = definitions.get(match[2], "") if match else ""
        element = re.fullmatch(r"getelementptr (<\d+ x (\w+)>, .*), i\d+ (\d+)", text)
        if match and element and element[2] in _BYTES:
            what = "read" if match[1] == "load" else "write"
            elements.setdefault((what, element[1]), []).append((match[2], int(element[3]), _BYTES[element[2]]))
    spans: dict[tuple[str, str], tuple[int, int] | None] = {}
    for (what, _), parts in elements.items():
        size = parts[0][2]
        least, most = min(lane for _, lane, _ in parts), max(lane for _, lane, _ in parts)
        for address, _, _ in parts:
            spans.setdefault((what, address), None)
        spans[what, parts[0][0]] = (parts[0][1] - least) * size, (most - least + 1) * size
    return spans
