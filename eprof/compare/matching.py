"""Which kernel of OLD is which of NEW: by hand, by name, by what the names have in common, by similarity."""

import difflib
import os
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

from eprof.base.errors import UsageError
from eprof.base.kernels import bare, own_name
from eprof.base.text import cut, few, printable

BY_HAND, NAME, BARE, SIMILAR = "by hand", "name", "name without arguments", "similar name"
# Below the first, two names are unrelated; below the second, place and launches must both speak for the pair.
_ALIKE, _NEARLY_SAME = 0.55, 0.8
_NEAR = 0.25
_MOST_PAIRS = 40_000
_LONG_NAME = 300  # letters


@dataclass(frozen=True)
class Kernel:
    """A kernel as it is matched: full name, device, launches, and its place among the kernels of its log, 0 to 1."""

    name: str
    device: str | None = None
    launches: float = 1
    place: float = 0.0


@dataclass(frozen=True)
class Match:
    """A pair of positions; None on one side: the kernel vanished or appeared. how: None for those.

    score: how alike the two names are, 0 to 1; 1 if they are equal.
    """

    old: int | None
    new: int | None
    how: str | None = None
    score: float | None = None


@dataclass(frozen=True)
class Matching:
    """All kernels of both sides, each once: pairs in the order of OLD, then vanished, then appeared ones."""

    matches: tuple[Match, ...]
    notes: tuple[str, ...] = ()


def match(old: Sequence[Kernel], new: Sequence[Kernel], by_hand: Sequence[str] = (), similar: bool = True) -> Matching:
    """Match every kernel of `old` to at most one of `new`.

    In this order: by hand ("OLD=NEW"; "OLD=" and "=NEW" leave a kernel alone), the same device and full name, the same
    full name, the same name without return type, template arguments and parameters (mangled or not), similar names.
    The last needs a similarity (`difflib`'s ratio of bare names) of 0.8, or of 0.55 where the kernels also stand at a
    similar place in their logs and are launched as often. similar: False: full names and by hand only.
    Raises UsageError if something said by hand names no kernel, or several.
    """
    work = _Work(old, new)
    for text in by_hand:
        work.by_hand(text)
    work.by_key(NAME, lambda kernel: (kernel.device, kernel.name))
    work.by_key(NAME, lambda kernel: kernel.name)
    notes: list[str] = []
    if similar:
        work.by_key(BARE, lambda kernel: _normal(kernel.name))
        work.by_key(BARE, lambda kernel: bare(kernel.name))
        notes = work.by_similarity()
    return Matching(work.result(), tuple(notes))


class _Work:
    """The kernels that are still free, and the pairs that were found."""

    def __init__(self, old: Sequence[Kernel], new: Sequence[Kernel]) -> None:
        self.old, self.new = old, new
        self.free_old, self.free_new = dict.fromkeys(range(len(old))), dict.fromkeys(range(len(new)))
        self.alone_old: set[int] = set()
        self.alone_new: set[int] = set()
        self.pairs: list[Match] = []

    def pair(self, old: int, new: int, how: str, score: float) -> None:
        del self.free_old[old], self.free_new[new]
        self.pairs.append(Match(old, new, how, score))

    def by_hand(self, text: str) -> None:
        """Take one `--match`. A name may hold `=` itself, so every `=` is tried as the one between the two."""
        splits = [(text[:at], text[at + 1 :]) for at, letter in enumerate(text) if letter == "="]
        found = [
            (one, other)
            for left, right in splits
            if (one := _named(left.strip(), self.old, self.free_old)) is not None
            and (other := _named(right.strip(), self.new, self.free_new)) is not None
        ]
        if len(found) != 1:
            raise UsageError(self._no_such_pair(text, splits))
        one, other = found[0]
        if len(one) > 1 or len(other) > 1:
            several = _examples(self.old, one) if len(one) > 1 else _examples(self.new, other)
            raise UsageError(f"--match {text}: that is the name of several kernels ({several}); give a full name.")
        if one and other:
            self.pair(one[0], other[0], BY_HAND, ratio(self.old[one[0]].name, self.new[other[0]].name))
            return
        for place in one:
            del self.free_old[place]
            self.alone_old.add(place)
        for place in other:
            del self.free_new[place]
            self.alone_new.add(place)

    def _no_such_pair(self, text: str, splits: Sequence[tuple[str, str]]) -> str:
        if not splits:
            return f"--match {text}: write OLD=NEW, the names of two kernels."
        left, right = splits[0]
        for side, kernels, free, wanted in (
            ("OLD", self.old, self.free_old, left),
            ("NEW", self.new, self.free_new, right),
        ):
            if _named(wanted.strip(), kernels, free) is None:
                return (
                    f"--match {text}: {side} has no free kernel `{wanted.strip()}`; it has {_examples(kernels, free)}."
                )
        return f"--match {text}: can be read in more than one way; give full names."

    def by_key(self, how: str, key: Callable[[Kernel], Hashable]) -> None:
        """Pair the free kernels of equal `key`; of several, those whose full names and places are most alike."""
        groups_old, groups_new = _grouped(self.old, self.free_old, key), _grouped(self.new, self.free_new, key)
        for common, places in groups_old.items():
            others = groups_new.get(common, [])
            for one, other in self._best_of_group(places, others):
                self.pair(one, other, how, 1.0 if how == NAME else self._alike(one, other))

    def _best_of_group(self, old: list[int], new: list[int]) -> list[tuple[int, int]]:
        if len(old) * len(new) > _MOST_PAIRS:
            return list(zip(old, new, strict=False))
        scored = [(-self._full(one, other), at, one, other) for at, one in enumerate(old) for other in new]
        return _greedy((one, other) for _, _, one, other in sorted(scored))

    def _full(self, one: int, other: int) -> float:
        a, b = self.old[one], self.new[other]
        same_launches = 0.2 if a.launches == b.launches else 0.0
        same = 1.0 if a.name == b.name else ratio(a.name, b.name)
        return same + same_launches - 0.2 * abs(a.place - b.place)

    def _alike(self, one: int, other: int) -> float:
        return ratio(bare(self.old[one].name), bare(self.new[other].name))

    def by_similarity(self) -> list[str]:
        """Pair free kernels with similar names, the most similar first; returns a note if there are too many to try."""
        if not self.free_old or not self.free_new:
            return []
        if len(self.free_old) * len(self.free_new) > _MOST_PAIRS:
            return [
                f"{len(self.free_old)} kernels of OLD and {len(self.free_new)} of NEW have no namesake: too many to "
                "look for similar names; --match OLD=NEW matches kernels by hand."
            ]
        scored = []
        for other in self.free_new:
            matcher = difflib.SequenceMatcher(None, autojunk=False)
            matcher.set_seq2(bare(self.new[other].name)[:_LONG_NAME])
            for one in self.free_old:
                score = self._similar(matcher, one, other)
                if score is not None:
                    scored.append((-score, abs(self.old[one].place - self.new[other].place), one, other))
        scores = {(one, other): -score for score, _, one, other in scored}
        for one, other in _greedy((one, other) for _, _, one, other in sorted(scored)):
            self.pair(one, other, SIMILAR, scores[one, other])
        return []

    def _similar(self, matcher: "difflib.SequenceMatcher[str]", one: int, other: int) -> float | None:
        """How alike two kernels are, or None if they are not alike enough."""
        a, b = self.old[one], self.new[other]
        matcher.set_seq1(bare(a.name)[:_LONG_NAME])
        if matcher.real_quick_ratio() < _ALIKE or matcher.quick_ratio() < _ALIKE:
            return None
        score = matcher.ratio()
        guarded = a.launches == b.launches and abs(a.place - b.place) <= _NEAR
        return score if score >= (_ALIKE if guarded else _NEARLY_SAME) else None

    def result(self) -> tuple[Match, ...]:
        pairs = sorted(self.pairs, key=lambda one: (one.old is None, one.old))
        gone = sorted({*self.free_old, *self.alone_old})
        come = sorted({*self.free_new, *self.alone_new})
        return (*pairs, *(Match(one, None) for one in gone), *(Match(None, one) for one in come))


def _greedy(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The pairs in their order, without those whose kernel is taken already."""
    taken_old, taken_new, found = set[int](), set[int](), []
    for one, other in pairs:
        if one not in taken_old and other not in taken_new:
            taken_old.add(one)
            taken_new.add(other)
            found.append((one, other))
    return found


def _grouped(
    kernels: Sequence[Kernel], free: Iterable[int], key: Callable[[Kernel], Hashable]
) -> dict[Hashable, list[int]]:
    found: dict[Hashable, list[int]] = defaultdict(list)
    for place in free:
        found[key(kernels[place])].append(place)
    return found


def _named(wanted: str, kernels: Sequence[Kernel], free: Iterable[int]) -> list[int] | None:
    """The free kernels of a full name, else of a bare one; [] for the empty name, None if there is no such kernel."""
    if not wanted:
        return []
    for name in (lambda kernel: kernel.name, lambda kernel: bare(kernel.name), lambda kernel: own_name(kernel.name)):
        found = [place for place in free if name(kernels[place]) == wanted]
        if found:
            return found
    return None


def _examples(kernels: Sequence[Kernel], places: Iterable[int]) -> str:
    names = [f"`{cut(printable(kernels[place].name), 60)}`" for place in places]
    return few(names, 4) or "none that is not matched already"


def ratio(one: str, other: str) -> float:
    """How alike two names are: twice the letters in common over all letters, 0 to 1.

    Of long names what they share at both ends is taken off first, and of the rest the beginning is compared: the time
    that difflib takes grows as the square of the letters, or worse.
    """
    letters = len(one) + len(other)
    if letters <= 2 * _LONG_NAME:
        return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()
    start = len(os.path.commonprefix([one, other]))
    one, other = one[start:][::-1], other[start:][::-1]
    end = len(os.path.commonprefix([one, other]))
    middle = [name[end:][::-1][:_LONG_NAME] for name in (one, other)]
    blocks = difflib.SequenceMatcher(None, middle[0], middle[1], autojunk=False).get_matching_blocks()
    return 2 * (start + end + sum(int(block.size) for block in blocks)) / letters


def _normal(name: str) -> str:
    """A full name without what compilers and profilers write differently: `void `, spaces, `(anonymous namespace)`."""
    text = name.removeprefix("void ").replace("(anonymous namespace)::", "").replace("<unnamed>::", "")
    return re.sub(r"\s+", "", text)
