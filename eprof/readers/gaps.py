"""`Gaps` between the kernels of a trace that tells when each launch ran, the copies in them, what the CPU did then.

Gaps are those of each GPU, from its first work to its last. Copies often fill gaps: how many bytes which way, and which
of them came again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate

import numpy as np
from msgspec import Struct, field

from eprof.base.arrays import Bools, Floats, Ints, alike, codes_in
from eprof.base.optional import added, either
from eprof.base.text import pattern
from eprof.logs.log import BETWEEN, MOST, MOST_TOLD, Copies, During, Idle, Names

_LONGEST = 1000  # gaps of which a trace is asked what the CPU did meanwhile
# What loops put behind a name: "IO 190", "ProfilerStep#1".
_COUNTER = pattern(r"(?<=[^\s#:_=-])[\s#:_=-]+\d{1,18}$")
_START = 0.1  # of the launches, assumed: a kernel that begins among them, and comes again, is of the first iteration
_LOOP = 0.95  # of the launches, assumed: kernels that have so much of them, and come again, are all those of a loop
_LAUNCH_NS = 10_000  # about what a launch takes, assumed: shorter gaps need no other cause
_LONGEST_NS = 1 << 60
_WORTH = 0.01  # of the longest gap: a range that takes less of it is not looked at
_SHORT_NS = 100_000  # what the CPU's next launch takes at most, through a framework too, our choice: longer gaps wait
_WAY = pattern(r"\b(?:([HDAP])to([HDAP])|(H|D)(?:ost|evice)-to-(H|D)(?:ost|evice)|(P)eer-to-(P)eer)\b")
_MEMORY = pattern(r"\b(pageable|pinned|unified|managed)\b")
_DIGITS = 10  # of a start in ns, that may be rounded off: nvprof prints six
_BUFFERS = 8  # copies of unlike sizes, our choice: more than so many are not each of a buffer of its own
FAULTS = "GPU page faults"  # of managed memory: no copies, though traces have them among these


def again_of(number: float, is_unlike: bool) -> float | None:
    """`Copies.again_s` where a summary adds copies up: 0 if they are few and of unlike sizes; None: not told."""
    return 0.0 if is_unlike and number <= _BUFFERS else None


def kind_of_copy(name: str) -> tuple[str, str] | None:
    """(The way of a copy by its name in a log: "HtoD"; the host's memory: "pageable", "pinned", "unified" or "").

    Page faults of the GPU are a way of their own. None: it is no copy, but a memset or page faults of the CPU.
    """
    if FAULTS in name:
        return FAULTS, "unified"
    way, memories = _WAY.search(name), _MEMORY.findall(name.lower())
    if way is None:
        return None
    return "to".join(filter(None, way.groups())), "".join(memories[:1]).replace("managed", "unified")


def _rounded_ns(starts: Ints) -> Ints:
    """By how many ns each start may be rounded: the power of ten that its last digit has, (n_launches,)."""
    rounded = np.ones_like(starts)
    for power in 10 ** np.arange(1, _DIGITS):
        rounded[(starts % power == 0) & (starts > 0)] = power
    return rounded


class _Cover(Struct):
    """How long some kind of work ran on a GPU, in ns, of launches that come in order of start.

    first, end: of all of it. open_ns: how long, in between, none of it ran.
    """

    first: int = 0
    end: int | None = None
    open_ns: int = 0

    def add(self, starts: Ints, time_ns: Ints) -> tuple[Ints, Ints]:
        """Add launches by start; for each, in ns, (the end of earlier work, its start at most; the gap from there)."""
        if self.end is None and len(starts):
            self.first = self.end = int(starts[0])
        ends = np.maximum.accumulate(np.concatenate([[self.end or 0], starts + time_ns]))
        before = np.minimum(ends[:-1], starts)
        self.end = int(ends[-1]) if len(starts) else self.end
        self.open_ns += int((starts - before).sum())
        return before, starts - before

    @property
    def ns(self) -> int:
        """For how many ns something ran on the GPU; what overlaps counts once."""
        return (self.end or 0) - self.first - self.open_ns


class _Kernel(Struct, order=True):
    """A kernel's launches on a GPU: numbers of the first and the last among all kernels' launches, and how many.

    still_ns: how long nothing at all ran before the first, in sum; wait_ns: just before it.
    """

    first: int
    still_ns: int
    wait_ns: int
    last: int = 0
    launches: int = 0


class _Device(Struct):
    """A GPU as far as its trace was taken, in ns. latest: when its latest kernel started.

    still: how long nothing at all ran before its first kernel, and before its latest. seen: its kernels by name.
    launches: how many kernels; took_ns: how long in all; rounded_ns: by how much their starts may be rounded, in sum.
    copied: (name, bytes) of copies -> how many launches there were before the first.
    """

    kernels: _Cover = field(default_factory=_Cover)
    copies: _Cover = field(default_factory=_Cover)
    anything: _Cover = field(default_factory=_Cover)
    latest: int | None = None
    still: tuple[int, int] = 0, 0
    seen: dict[str, _Kernel] = field(default_factory=dict)
    launches: int = 0
    took_ns: int = 0
    rounded_ns: int = 0
    copied: dict[tuple[str, float], int] = field(default_factory=dict)

    @property
    def start_ns(self) -> int:
        """The ns in which nothing ran up to the first iteration's end, or just before a later kernel's first launch."""
        again = sorted(kernel for kernel in self.seen.values() if kernel.launches > 1)
        launches = list(accumulate(kernel.launches for kernel in again))
        most = _LOOP * sum(launches[-1:])
        loop = again[: bisect_left(launches, most) + 1]
        end = max((kernel.first for kernel in loop), default=0)
        comes_again = sum(kernel.launches for kernel in loop if kernel.last > end) >= _LOOP * most
        end = max(end * comes_again, int(_START * self.launches))  # else one phase follows another
        began = max((kernel.still_ns for kernel in again if kernel.first <= end), default=self.still[0])
        return began + sum(kernel.wait_ns for kernel in again if kernel.first > end)


class Gaps(Struct):
    """The gaps between the launches of a trace, which it takes in the order of their starts, piece by piece.

    devices: of each run and GPU. stretches: starts and ends in ns of the longest gaps, (n, 2); paths: what the CPU did
    in most of one, by its place, and for how many ns. short: how many gaps are short, and their ns. moved: copies:
    number, s, bytes, and the s of those that came again, by kind. within: ranges that the program names, by name: how
    many are in gaps, and for how many ns. began_ns: when the program, or its trace,
    began; None: not told. is_known: False once a launch has no time, or starts before one of an earlier piece.
    """

    devices: dict[tuple[int, str | None], _Device] = field(default_factory=dict)
    stretches: Ints = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    paths: dict[int, tuple[tuple[str, ...], int]] = field(default_factory=dict)
    short: Ints = field(default_factory=lambda: np.zeros(2, dtype=np.int64))
    moved: dict[tuple[str, str], Floats] = field(default_factory=dict)
    within: dict[str, Ints] = field(default_factory=dict)
    began_ns: int | None = None
    is_known: bool = True

    def add(
        self,
        devices: Names,
        kernels: Names,
        start_ns: Ints,
        time_ns: Ints,
        run: int = 0,
        is_kernel: Bools | None = None,
        size_b: Floats | None = None,
    ) -> None:
        """Take launches of a run; all columns (n_launches,). time_ns: below 0 where it is not known.

        is_kernel: False for copies and memsets, which no gap ends; None: all are kernels. size_b: the bytes of copies,
        NaN where not told.
        """
        is_kernel = either(is_kernel, np.ones(len(start_ns), dtype=bool))
        size_b = either(size_b, np.full(len(start_ns), np.nan))
        if not self.is_known or not len(start_ns):
            return
        if (time_ns < 0)[is_kernel].any():
            self.is_known = False
            return
        for code in codes_in(devices.codes):
            own = np.flatnonzero(devices.codes == code)
            own = own[np.argsort(start_ns[own], kind="stable")]
            name = (*devices.names, None)[code]  # the last is for -1
            device = self.devices.setdefault((run, name), _Device())
            took_ns, own_kernels = np.maximum(time_ns[own], 0), is_kernel[own]
            before = device.launches + np.cumsum(own_kernels)
            copies = own[~own_kernels]
            self._add_copies(device, kernels[copies], size_b[copies], took_ns[~own_kernels], before[~own_kernels])
            device.launches = int(before[-1])
            self._add_of(device, kernels[own], start_ns[own], took_ns, own_kernels)

    def _add_copies(self, device: _Device, names: Names, size_b: Floats, time_ns: Ints, before: Ints) -> None:
        """Take copies into `moved`. before: launches of kernels before each; more than before its first like: again."""
        sizes, _ = alike(np.nan_to_num(size_b, nan=-1.0).astype(np.int64))
        kind, first = alike(names.codes, sizes)
        texts = names[first].texts()
        firsts = zip(texts.tolist(), size_b[first].tolist(), before[first].tolist(), strict=True)
        seen = np.array([device.copied.setdefault((name, size), launches) for name, size, launches in firsts])
        for code in codes_in(names.codes):
            way = kind_of_copy((*names.names, "")[code])  # the last is for -1
            if way is not None:
                own = names.codes == code
                time_s = time_ns[own] * 1e-9
                again_s = time_s[(before > seen[kind])[own]].sum()
                sums = len(time_s), time_s.sum(), size_b[own].sum(), again_s
                added(self.moved, way, np.array(sums))

    @classmethod
    def of_runs(cls, runs: Iterable[Gaps]) -> Gaps:
        """The gaps of several runs together, whose launches were taken run by run."""
        whole = cls()
        for own in runs:
            whole.devices |= own.devices
            whole.stretches = np.vstack([whole.stretches, own.stretches])
            whole.short = whole.short + own.short
            for way, sums in own.moved.items():
                added(whole.moved, way, sums)
            whole.began_ns = either(whole.began_ns, own.began_ns)
            whole.is_known &= own.is_known
        return whole

    @property
    def copies(self) -> tuple[Copies, ...]:
        """The copies of a trace by their kinds; which came again is told only where their sizes are."""
        told = []
        for kind, sums in self.moved.items():
            number, time_s, size_b, again_s = sums.tolist()
            sizes = (0.0, None) if np.isnan(size_b) else (size_b, again_s)
            told.append(Copies(*kind, int(number), time_s, *sizes))
        return tuple(told)

    def _add_of(self, device: _Device, names: Names, starts: Ints, time_ns: Ints, is_kernel: Bools) -> None:
        """Take launches of one GPU by start: its covers, kernels, short waits, and the longest gaps before them."""
        still = device.anything.open_ns + np.cumsum(device.anything.add(starts, time_ns)[1])
        device.copies.add(starts[~is_kernel], time_ns[~is_kernel])
        if not is_kernel.any():
            return
        starts, still = starts[is_kernel], still[is_kernel]
        if device.latest is None:
            device.latest, device.still = int(starts[0]), (int(still[0]), int(still[0]))
        self.is_known = self.is_known and int(starts[0]) >= device.latest
        waits = np.diff(still, prepend=device.still[1])
        kernels = names[is_kernel]
        numbers = device.launches - len(starts) + np.arange(len(starts))
        for code in codes_in(kernels.codes):
            own = np.flatnonzero(kernels.codes == code)
            first = _Kernel(int(numbers[own[0]]), int(still[own[0]]), int(waits[own[0]]))
            kernel = device.seen.setdefault(kernels.names[code], first)
            kernel.last, kernel.launches = int(numbers[own[-1]]), kernel.launches + len(own)
        short = waits[(waits > 0) & (waits <= _SHORT_NS)]
        self.short += (len(short), int(short.sum()))
        device.latest, device.still = int(starts[-1]), (device.still[0], int(still[-1]))
        device.took_ns += int(time_ns[is_kernel].sum())
        device.rounded_ns += int(_rounded_ns(starts).sum())
        before, gaps = device.kernels.add(starts, time_ns[is_kernel])
        self.stretches = np.vstack([self.stretches, np.stack([before, starts], axis=1)[gaps > 0]])
        if len(self.stretches) > _LONGEST:
            lengths = self.stretches[:, 1] - self.stretches[:, 0]
            self.stretches = self.stretches[np.argsort(-lengths, kind="stable")[:_LONGEST]]

    @property
    def shortest_ns(self) -> int:
        """The least ns that something the CPU did must last to explain a gap."""
        lengths = self.stretches[:, 1] - self.stretches[:, 0]
        return max(int(MOST * lengths.min(initial=_LONGEST_NS)), _LAUNCH_NS)

    def explain(self, names: Names, start_ns: Ints, end_ns: Ints) -> None:
        """Explain gaps by one kind of what the CPU did, adding to `paths`; called for outer kinds first.

        All columns are (n_ranges,). The innermost range that covers most of a gap explains it, unless it lasts much
        longer, as a step of a program does.
        """
        # For each gap the place of the shortest range that covers most of it and is at most twice as long; -1: none.
        gaps = self.stretches
        innermost = np.full(len(gaps), -1)
        order = np.argsort(gaps.sum(axis=1), kind="stable")
        # What covers most of a gap is there in its middle. Times are doubled, so that a middle is whole.
        middles = gaps.sum(axis=1)[order]
        first, stop = np.searchsorted(middles, 2 * start_ns), np.searchsorted(middles, 2 * end_ns, "right")
        numbers = np.maximum(stop - first, 0)
        covers = np.repeat(np.arange(len(start_ns)), numbers)
        gap = order[np.arange(numbers.sum()) + np.repeat(first - np.cumsum(numbers) + numbers, numbers)]
        covered = np.minimum(end_ns[covers], gaps[gap, 1]) - np.maximum(start_ns[covers], gaps[gap, 0])
        is_most = (covered >= MOST * (gaps[gap, 1] - gaps[gap, 0])) & (2 * covered >= (end_ns - start_ns)[covers])
        covers, gap = covers[is_most], gap[is_most]
        shortest_last = np.argsort(start_ns[covers] - end_ns[covers], kind="stable")
        innermost[gap[shortest_last]] = covers[shortest_last]
        for place in np.flatnonzero(innermost >= 0).tolist():
            found = innermost[place]
            start, end = gaps[place].tolist()
            path, _ = self.paths.get(place, ((), 0))
            name = _COUNTER.sub("", names.names[names.codes[found]])
            self.paths[place] = (*path, name), min(end, int(end_ns[found])) - max(start, int(start_ns[found]))

    @property
    def least_ns(self) -> int:
        """The least ns that ranges last which are worth adding up over gaps."""
        lengths = self.stretches[:, 1] - self.stretches[:, 0]
        return max(int(_WORTH * lengths.max(initial=0)), _LAUNCH_NS)

    def add_up(self, names: Names, start_ns: Ints, end_ns: Ints) -> None:
        """Add up by name what ranges of the program take of a GPU's gaps, of which none need cover most of one."""
        if len(self.devices) > 1 or not len(self.stretches):
            return
        gaps = self.stretches[np.argsort(self.stretches[:, 0])]
        passed = np.cumsum(gaps[:, 1] - gaps[:, 0])
        edges, first = gaps.ravel() - gaps[0, 0], gaps[0, 0]
        at_edges = np.stack([np.concatenate([[0], passed[:-1]]), passed], axis=1).ravel()
        inside = np.interp(end_ns - first, edges, at_edges) - np.interp(start_ns - first, edges, at_edges)
        for code in codes_in(names.codes):
            own = inside[(names.codes == code) & (inside > 0)]
            name = (*names.names, "")[code]  # the last is for -1
            if len(own) and name:
                ns = min(own.sum(), passed[-1])  # threads may do the same beside each other
                added(self.within, _COUNTER.sub("", name), np.array([len(own), int(ns)]))

    @property
    def idle(self) -> Idle | None:
        """The gaps of all GPUs together; None: there is no launch, or some start or time is not known."""
        devices = [device for device in self.devices.values() if device.latest is not None]
        if not self.is_known or not devices:
            return None
        lengths = (self.stretches[:, 1] - self.stretches[:, 0]).tolist()
        between_ns = sum(device.kernels.open_ns for device in devices)
        copied_ns = between_ns - sum(device.still[1] - device.still[0] for device in devices)
        between_ns += sum(device.still[0] for device in devices)  # from the first copy to the first kernel
        during: dict[str, list[int]] = {}
        for path, covered_ns in self.paths.values():
            during.setdefault(BETWEEN.join(path), []).append(covered_ns)
        first_ns: dict[int, int] = {}
        for (run, _), device in self.devices.items():
            if device.latest is not None:
                first_ns[run] = min(first_ns.get(run, device.anything.first), device.anything.first)
        before_ns = 0
        if self.began_ns is not None:
            before_ns = sum(first - self.began_ns for first in first_ns.values())
        told = [During(doing, len(own), sum(own) * 1e-9) for doing, own in during.items()]
        told = told or [During(name, int(own[0]), float(own[1]) * 1e-9) for name, own in self.within.items()]
        return Idle(
            between_ns * 1e-9,
            max(lengths, default=0) * 1e-9,
            copied_ns * 1e-9,
            sum(device.copies.ns for device in self.devices.values()) * 1e-9,
            sum(device.anything.ns - device.kernels.ns for device in self.devices.values()) * 1e-9,
            sum(device.start_ns for device in devices) * 1e-9,
            tuple(sorted(told, key=lambda each: -each.time_s)[:MOST_TOLD]),
            int(self.short[0]),
            float(self.short[1]) * 1e-9,
            before_ns * 1e-9,
            runs=len(first_ns),
            kernels_s=tuple(
                (label, device.took_ns * 1e-9, min(device.took_ns, device.kernels.ns + device.rounded_ns) * 1e-9)
                for (_, label), device in self.devices.items()
                if device.latest is not None
            ),
        )
