"""The loops of a kernel, and keys of their iterations: lanes of a warp are at one place where these are equal.

By occurrence alone, lanes whose inner loops end at different times would be matched with the wrong iteration of the outer one.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

# Odd numbers of 64 bits: sums of a few multiples of them are all different, but for accidents.
_SITE, _LOOP = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03
_WORD = (1 << 64) - 1


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
    """Keys for the accesses of a function in LLVM's text: `phis` begin loops' blocks, `adds` follow all their phis."""

    def __init__(self, successors: Mapping[str, Sequence[str]]) -> None:
        self._inner = loops(successors)
        self.phis: dict[str, str] = {}
        self.adds: dict[str, str] = {}
        for number, loop in enumerate(self._inner, 1):
            outside = self._of(loop.header, self._inner[number:])
            name, step = f"%eprof.loop.{_clean(loop.header)}", number * _LOOP & _WORD
            ways = [f"[ {outside}, %{block} ]" for block in loop.entries]
            ways += [f"[ {name}.next, %{block} ]" for block in loop.latches]
            self.phis[loop.header] = f"  {name} = phi i64 {', '.join(ways)}"
            self.adds[loop.header] = f"  {name}.next = add i64 {name}, {step}"

    def key(self, block: str, site: int, result: str) -> str:
        """An instruction that sets `result` to the key of an access in `block`: of its site and its loops' iterations."""
        return f"  {result} = add i64 {self._of(block, self._inner)}, {(site + 1) * _SITE & _WORD}"

    @staticmethod
    def _of(block: str, among: Sequence[Loop]) -> str:
        """The key of the innermost loop of `among` that a block is in; 0 outside of all."""
        return next((f"%eprof.loop.{_clean(one.header)}" for one in among if block in one.blocks), "0")


def _clean(label: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "._-" else "." for letter in label)
