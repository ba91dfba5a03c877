"""Which kernel of OLD is which of NEW: by hand, by name, by what the names have in common, by similarity."""

import difflib
import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import product

from msgspec import Struct

from eprof.base.errors import UsageError
from eprof.base.kernels import bare, closed, normal_spelling, own_name, without_parameters
from eprof.base.labels import labels, library_label, named_by, without_tile, without_types
from eprof.base.optional import gathered
from eprof.base.text import ShortRepr, few, printable, when

BY_HAND, NAME, BARE, SIMILAR = "by hand", "name", "name without arguments", "similar name"
ALONE, EQUAL = "the only one on both sides", "equal counts"
# Below the first, two names are unrelated; below the second, place and launches must both speak for the pair.
_ALIKE, _NEARLY_SAME = 0.55, 0.8
_NEAR = 0.25
_MOST_PAIRS = 40_000
_LONG_NAME = 300  # letters


class Kernel(Struct, frozen=True):
    """A kernel as it is matched: full name, device, launches, and its place among the kernels of its log, 0 to 1.

    counts: what tells it from others under another name; () if too little was counted.
    """

    name: str
    device: str | None = None
    launches: float = 1
    place: float = 0.0
    counts: tuple[float, ...] = ()


class Match(Struct, frozen=True):
    """The places of a kernel in OLD and in NEW; None: that side has none, and `how` is None too.

    score: how alike the two names are, 0 to 1; 1 if they are equal.
    """

    old: int | None
    new: int | None
    how: str | None = None
    score: float | None = None


class Matching(ShortRepr, Struct, frozen=True):
    """All kernels of both sides, each once: pairs in the order of OLD, then vanished, then appeared ones."""

    matches: tuple[Match, ...]
    notes: tuple[str, ...] = ()

    def without(self, *hows: str) -> "Matching":
        """The matching without its pairs of the ways `hows` (SIMILAR, EQUAL, ...), whose kernels are alone then."""
        undone = [match for match in self.matches if match.how in hows]
        kept = [match for match in self.matches if match.how not in hows]
        alone = [Match(match.old, None) for match in undone] + [Match(None, match.new) for match in undone]
        matches = sorted((*kept, *alone), key=lambda match: (match.how is None, match.old is None))
        return Matching(tuple(matches), self.notes)


def match(old: Sequence[Kernel], new: Sequence[Kernel], by_hand: Sequence[str] = (), similar: bool = True) -> Matching:
    """Match every kernel of `old` to at most one of `new`.

    In this order: by hand ("OLD=NEW"; "OLD=" and "=NEW" leave a kernel alone), the same device and full name, the same
    full name, the same name but for its spelling, its parameters, what a profiler cut off, then its template arguments
    (mangled or not; of a library's kernel what it does, and its tile), similar names. The last needs a similarity
    (`difflib`'s ratio of bare names) of 0.8, or of 0.55 where the kernels also stand at a similar place in their logs
    and are launched as often; a library's kernels may differ in their tiles alone. The one kernel of OLD is that of
    NEW, whatever their names are, if both are launched as often. Last, free kernels with counts that are equal, and no
    other's. similar: False: full names and by hand only.
    Raises UsageError if a match by hand names no kernel, or several.
    """
    pairing = _Pairing(old, new)
    for text in by_hand:
        pairing.by_hand(text)
    pairing.by_key(NAME, lambda kernel: (kernel.device, kernel.name))
    pairing.by_key(NAME, lambda kernel: kernel.name)
    notes: list[str] = []
    if similar:
        pairing.by_key(BARE, lambda kernel: normal_spelling(kernel.name.removeprefix("void ")))
        pairing.by_key(BARE, lambda kernel: without_parameters(kernel.name))
        pairing.by_beginning()
        pairing.by_key(BARE, lambda kernel: called(kernel.name))
        notes = pairing.by_similarity()
        if (
            len(old) == len(new) == len(pairing.old.free) == len(pairing.new.free) == 1
            and old[0].launches == new[0].launches
        ):
            pairing.pair(0, 0, ALONE, ratio(old[0].name, new[0].name))
        pairing.by_counts()
    pairs = sorted(pairing.pairs)
    paired_old, paired_new = {pair[0] for pair in pairs}, {pair[1] for pair in pairs}
    vanished = [Match(place, None) for place in range(len(old)) if place not in paired_old]
    appeared = [Match(None, place) for place in range(len(new)) if place not in paired_new]
    return Matching((*(Match(*pair) for pair in pairs), *vanished, *appeared), tuple(notes))


class _Side:
    """The kernels of one side, and which of them are still free. shown_together: names that screens tell apart."""

    def __init__(self, label: str, kernels: Sequence[Kernel], others: Sequence[Kernel]) -> None:
        self.label, self.kernels = label, kernels
        self.free = dict.fromkeys(range(len(kernels)))
        own = [kernel.name for kernel in kernels]
        self.shown_together = own, [*own, *(kernel.name for kernel in others)]

    def named(self, name: str) -> list[int] | None:
        """The places of free kernels called `name`: in full, bare, by the last word, as a screen has it; None: none.

        [] for "".
        """
        if not name:
            return []
        for form in (str, bare, own_name):
            places = [place for place in self.free if form(self.kernels[place].name) == name]
            if places:
                return places
        labelled = {full for names in self.shown_together for full in named_by(name, names)}
        return [place for place in self.free if self.kernels[place].name in labelled] or None

    def examples(self, places: Iterable[int]) -> str:
        """Some names of kernels to match, for an error message."""
        names = labels([printable(self.kernels[place].name) for place in places], 60)
        return few([f"`{name}`" for name in names], 4) or "none that is not matched already"


class _Pairing:
    """The kernels that are still free, and the pairs that were found: (old, new, how, score) each."""

    def __init__(self, old: Sequence[Kernel], new: Sequence[Kernel]) -> None:
        self.old, self.new = _Side("OLD", old, new), _Side("NEW", new, old)
        self.pairs: list[tuple[int, int, str, float]] = []

    def pair(self, old: int, new: int, how: str, score: float) -> None:
        del self.old.free[old], self.new.free[new]
        self.pairs.append((old, new, how, score))

    def by_hand(self, text: str) -> None:
        """Pair two kernels, or leave one alone, as `--match OLD=NEW` says; each `=` is tried, as names may hold one."""
        splits = [(text[:place].strip(), text[place + 1 :].strip()) for place, sign in enumerate(text) if sign == "="]
        named = [(self.old.named(left), self.new.named(right)) for left, right in splits]
        readings = [(olds, news) for olds, news in named if olds is not None and news is not None]
        if len(readings) != 1:
            if not splits:
                raise UsageError(f"--match {text}: write OLD=NEW, the names of two kernels.")
            for side, name in zip((self.old, self.new), splits[0], strict=True):
                if side.named(name) is None:
                    has = side.examples(side.free)
                    raise UsageError(f"--match {text}: {side.label} has no free kernel `{name}`; it has {has}.")
            raise UsageError(f"--match {text}: can be read in more than one way; give full names.")
        [(olds, news)] = readings
        for side, places in ((self.old, olds), (self.new, news)):
            if len(places) > 1:
                several = side.examples(places)
                raise UsageError(f"--match {text}: that is the name of several kernels ({several}); give a full name.")
        if olds and news:
            score = ratio(self.old.kernels[olds[0]].name, self.new.kernels[news[0]].name)
            self.pair(olds[0], news[0], BY_HAND, score)
            return
        # A name against none: that kernel is to stay without a partner.
        for side, places in ((self.old, olds), (self.new, news)):
            for place in places:
                del side.free[place]

    def by_key(self, how: str, key: Callable[[Kernel], Hashable]) -> None:
        """Match the free kernels of equal `key`; of several, those whose names, launches and places fit best."""
        of_old, of_new = (
            gathered((key(side.kernels[place]), place) for place in side.free) for side in (self.old, self.new)
        )
        for common, olds in of_old.items():
            news = of_new.get(common, [])
            pairs: Iterable[tuple[int, int]] = product(olds, news)
            if len(olds) * len(news) > _MOST_PAIRS:
                pairs = zip(olds, news, strict=False)
            self._pair_best(how, pairs)

    def by_counts(self) -> None:
        """Match each free kernel with the free one that counts the same and is launched as often, if there is one."""
        olds, news = (
            gathered(
                ((kernel.launches, kernel.counts), place)
                for place in side.free
                if (kernel := side.kernels[place]).counts
            )
            for side in (self.old, self.new)
        )
        for counts, places in olds.items():
            if len(places) == len(news.get(counts, [])) == 1:
                old, new = places[0], news[counts][0]
                self.pair(old, new, EQUAL, ratio(self.old.kernels[old].name, self.new.kernels[new].name))

    def by_beginning(self) -> None:
        """Match each free name that a profiler cut off with one that begins as it does, the one that fits best."""
        olds, news = (
            {place: _beginning(side.kernels[place].name) for place in side.free} for side in (self.old, self.new)
        )
        if len(olds) * len(news) > _MOST_PAIRS:
            return
        pairs = product(olds, news)
        self._pair_best(BARE, (pair for pair in pairs if _are_one(olds[pair[0]], news[pair[1]])))

    def _pair_best(self, how: str, pairs: Iterable[tuple[int, int]]) -> None:
        """Match kernels as these pairs propose, each once: first those whose names, launches and places fit best."""

        def affinity(pair: tuple[int, int]) -> float:
            before, after = self.old.kernels[pair[0]], self.new.kernels[pair[1]]
            is_as_often, away = before.launches == after.launches, abs(before.place - after.place)
            return ratio(before.name, after.name) + 0.2 * is_as_often - 0.2 * away

        for old, new in _greedy(sorted(pairs, key=affinity, reverse=True)):
            names = called(self.old.kernels[old].name), called(self.new.kernels[new].name)
            self.pair(old, new, how, ratio(*names))

    def by_similarity(self) -> list[str]:
        """Match free kernels with similar names, the most similar first; returns a note if there are too many."""
        olds, news = len(self.old.free), len(self.new.free)
        if olds * news > _MOST_PAIRS:
            return [
                f"{olds} names of OLD and {news} of NEW have no namesake: too many to look for similar ones; "
                "--match OLD=NEW matches them by hand."
            ]
        ranked = []
        names = {kernel.name for side in (self.old, self.new) for kernel in side.kernels}
        does = {name: when(library_label(name), without_tile(called(name))) for name in names}
        for new in self.new.free:
            after = self.new.kernels[new]
            # A function of a CPU is named with its library, which tells nothing of how alike two functions are.
            name, _, library = called(after.name).partition(", ")
            matcher = difflib.SequenceMatcher(None, autojunk=False)
            matcher.set_seq2(name[:_LONG_NAME])
            for old in self.old.free:
                before = self.old.kernels[old]
                name, _, its_library = called(before.name).partition(", ")
                matcher.set_seq1(name[:_LONG_NAME])
                is_other = library != its_library or does[before.name] != does[after.name]
                if is_other or matcher.real_quick_ratio() < _ALIKE or matcher.quick_ratio() < _ALIKE:
                    continue
                score = matcher.ratio()
                away = abs(before.place - after.place)
                is_near = before.launches == after.launches and away <= _NEAR
                if score >= _NEARLY_SAME or (is_near and score >= _ALIKE):
                    ranked.append((-score, away, old, new))
        scores = {(old, new): -negative for negative, _, old, new in ranked}
        for old, new in _greedy((old, new) for _, _, old, new in sorted(ranked)):
            self.pair(old, new, SIMILAR, scores[old, new])
        return []


def _greedy(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The pairs in their order, without those of which an earlier pair has the OLD or the NEW kernel."""
    new_of: dict[int, int] = {}
    taken: set[int] = set()
    for old, new in pairs:
        if old not in new_of and new not in taken:
            new_of[old] = new
            taken.add(new)
    return list(new_of.items())


def ratio(first: str, second: str) -> float:
    """How alike two names of kernels are: twice the letters in common over all letters, 0 to 1.

    Of long names what they share at both ends is taken off first, and of the rest the beginning is compared: the time
    that difflib takes grows as the square of the letters, or worse.
    """
    if first == second:
        return 1.0
    letters = len(first) + len(second)
    if letters <= 2 * _LONG_NAME:
        return difflib.SequenceMatcher(None, first, second, autojunk=False).ratio()
    start = len(os.path.commonprefix([first, second]))
    first, second = first[start:], second[start:]
    end = len(os.path.commonprefix([first[::-1], second[::-1]]))
    middle = [text[: len(text) - end][:_LONG_NAME] for text in (first, second)]
    blocks = difflib.SequenceMatcher(None, middle[0], middle[1], autojunk=False).get_matching_blocks()
    return 2 * (start + end + sum(int(block.size) for block in blocks)) / letters


def called(name: str) -> str:
    """What a kernel is called: of a library's what it does, with its tile ("cutlass sgemm 128x64 nn"); else bare."""
    return without_types(library_label(name)) or bare(name)


def _beginning(name: str) -> str:
    """The name of a kernel before its parameters, in one spelling; of one that was cut off its whole words and "…"."""
    text = without_parameters(name)
    is_cut = closed(text) != text
    return f"{text.rpartition(',')[0]}…" if is_cut else text


def _are_one(name: str, other: str) -> bool:
    """Whether one of two names is cut off, and the other begins as it does; both as `_beginning` makes them."""
    cuts = ((one[:-1], whole) for one, whole in ((name, other), (other, name)) if one.endswith("…"))
    return any(whole.startswith(one) for one, whole in cuts)
