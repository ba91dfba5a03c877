"""Groups of kernels, by rules (phases), device, rank, stream or range, each with its own energy; how ranks differ.

Every kernel is in exactly one group, so the groups add up to the whole; or, where groups are ranks, streams or NVTX
ranges, every part of a kernel is.
"""

import re
from collections.abc import Sequence
from statistics import median

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Columns, Floats, Ints, Texts, group_marks, group_sums, numbered, numbers_of
from eprof.base.errors import UsageError
from eprof.base.optional import growth
from eprof.base.text import listed
from eprof.base.vocabulary import MISSING, mark_names
from eprof.counts.counts import Counts
from eprof.energy.attribution import Split
from eprof.logs.log import MARK, NVTX, PARTS, RANGES, RANK, STREAM, KernelRows
from eprof.profile import schema

OTHER = "other"
DEVICE = "device"
_WORDS = {
    DEVICE: "by device",
    RANK: "by rank",
    STREAM: "by stream",
    NVTX: "by the innermost NVTX push/pop range",
    MARK: "by the innermost mark",
}
_SHOWN = 200


class Rule(Struct, frozen=True):
    """Kernels whose name the pattern is found in are of the group `name`."""

    pattern: re.Pattern[str]
    name: str


class Grouping(Struct, frozen=True):
    """How kernels are put together: by rules, the first that fits; or, with `by`, by their device or by their part."""

    rules: tuple[Rule, ...] = ()
    by: str | None = None

    @property
    def how(self) -> str:
        """How kernels were grouped, in words."""
        if self.by is not None:
            return _WORDS[self.by]
        return ", ".join(f"{rule.name}: names with {rule.pattern.pattern}" for rule in self.rules)

    def names(self, kernels: KernelRows) -> list[str]:
        """The name of each kernel's group, in the kernels' order."""
        if self.by == DEVICE:
            return [label or "GPU not named" for label in kernels.device]
        if self.by in PARTS and kernels.part is not None:
            before = "" if self.by in RANGES else f"{self.by} "
            return [self.untold if part is None else f"{before}{part}" for part in kernels.part]
        known = {
            kernel: next((rule.name for rule in self.rules if rule.pattern.search(kernel)), OTHER)
            for kernel in set(kernels.kernel)
        }
        return [known[kernel] for kernel in kernels.kernel]

    @property
    def untold(self) -> str:
        """The name of the group of kernels whose part (rank, stream, range) no log tells."""
        return f"{'NVTX range' if self.by == NVTX else self.by} not told"

    def members(self, kernels: KernelRows) -> dict[str, np.ndarray]:
        """Group -> the places of its kernels, in the order of the rules; "other", what no rule fits, is last."""
        names = np.array(self.names(kernels), dtype=object)
        if self.by in PARTS:
            return self._parts(names)
        order = list(dict.fromkeys([*(rule.name for rule in self.rules), *names.tolist()]))
        if OTHER in order and OTHER not in {rule.name for rule in self.rules}:
            order.append(order.pop(order.index(OTHER)))
        return {name: np.flatnonzero(names == name) for name in order}

    def _parts(self, names: Texts) -> dict[str, np.ndarray]:
        """Groups by part: ranks and streams by number, ranges as they come; what is not told comes last."""
        order = list(dict.fromkeys(names.tolist()))
        if self.by not in RANGES:
            order.sort(key=_by_number)
        order.sort(key=lambda name: name == self.untold)
        codes, first = numbered(numbers_of(names))
        places = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
        of_name = dict(zip(names[first].tolist(), places, strict=True))
        return {name: of_name[name] for name in order}

    def unused(self, kernels: KernelRows) -> list[str]:
        """The names of groups that no kernel is in: a pattern that was meant to match does not."""
        return [name for name, places in self.members(kernels).items() if not len(places)]


def parse(texts: Sequence[str]) -> Grouping | None:
    """A grouping from `--group` values: "REGEX=NAME" each, or a word of `_WORDS` alone; None if `texts` is empty.

    The last `=` parts pattern and name; one name may have several rules. Raises UsageError.
    """
    if not texts:
        return None
    by = next((text for text in texts if text in (DEVICE, *PARTS)), None)
    if by is not None:
        if len(texts) > 1:
            raise UsageError(f"--group {by}: groups {_WORDS[by]} and goes with no other --group.")
        return Grouping(by=by)
    rules = []
    for text in texts:
        pattern, sign, name = text.rpartition("=")
        if not sign or not pattern or not name.strip():
            ways = listed([*_WORDS], "or")
            raise UsageError(f"--group {text}: write REGEX=NAME, such as 'u_.*=near field', or {ways}.")
        try:
            rules.append(Rule(re.compile(pattern), name.strip()))
        except re.error as err:
            raise UsageError(f"--group {text}: `{pattern}` is not a regular expression ({err}).") from err
    return Grouping(tuple(rules))


def part_of(texts: Sequence[str]) -> str | None:
    """The `--group` value that needs rows split when logs are loaded: "rank", "stream"...; None: none does."""
    return next((text for text in texts if text in PARTS), None)


def _by_number(name: str) -> tuple[bool, int, str]:
    """A sort key for names of groups: those that end in a number first, by that number."""
    last = name.rpartition(" ")[2]
    if last.isascii() and last.isdigit():
        return False, int(last), name
    return True, 0, name


def merged(
    counts: Counts, split: Split | None, groups: Sequence[str] | None = None
) -> tuple[Counts, Split | None, Ints]:
    """(counts, split, places): a kernel's parts (ranks, streams) added up to one row, and each old row's new place.

    groups: the group of each row; rows are then added up by group, and have its name. What is known adds up; where
    something is not known beside it the sum is a lower bound, marked MISSING. Rows without parts stay as they are.
    """
    rows = counts.rows
    if rows.part is None and groups is None:
        return counts, split, np.arange(len(rows))
    names = rows.kernel if groups is None else np.array(groups, dtype=object)
    codes = numbers_of(zip(rows.device, names, strict=True))
    first = np.unique(codes, return_index=True)[1]
    time_marks = rows.time_marks | MISSING * np.isnan(rows.time_s)
    joined = KernelRows(
        device=rows.device[first],
        kernel=names[first],
        launches=np.bincount(codes, rows.launches).astype(np.int64),
        time_s=group_sums(rows.time_s[:, None], codes)[:, 0],
        time_marks=group_marks(time_marks[:, None], codes)[:, 0],
    )
    amounts, amount_marks = _summed(counts.amounts, counts.amount_marks, codes)
    whole = split and Split(
        *_summed(split.joules, split.joule_marks, codes), group_sums(split.over_j[:, None], codes)[:, 0]
    )
    shape = None
    if counts.shape is not None:
        shape = Columns(counts.shape.names, group_sums(counts.shape.values, codes))
    return replace(counts, rows=joined, amounts=amounts, amount_marks=amount_marks, shape=shape), whole, codes


def _summed(values: Columns, marks: Columns, codes: Ints) -> tuple[Columns, Columns]:
    return (
        Columns(values.names, group_sums(values.values, codes)),
        Columns(marks.names, group_marks(marks.values, codes)),
    )


class Group(Struct, frozen=True):
    """A group of kernels to show. places: of its kernels' rows; stands_for: of how many groups it is the sum."""

    name: str
    places: np.ndarray
    stands_for: int = 1


def shown(members: dict[str, np.ndarray], weight: Floats) -> list[Group]:
    """The groups that a document shows: 200 of largest weight (energy, or time) in their order, others as one sum."""
    if len(members) <= _SHOWN:
        return [Group(name, places) for name, places in members.items() if len(places)]
    names = list(members)
    total = np.array([np.nansum(weight[members[name]]) for name in names])
    largest = set(np.argsort(-total, kind="stable")[: _SHOWN - 1].tolist())
    rest = [members[name] for number, name in enumerate(names) if number not in largest]
    kept = [Group(name, members[name]) for number, name in enumerate(names) if number in largest]
    return [*kept, Group(f"{len(rest):,} others", np.concatenate(rest), len(rest))]


def spread_of_ranks(members: dict[str, np.ndarray], counts: Counts, split: Split | None) -> schema.Ranks:
    """Smallest, median and largest rank in time, energy and launches, and how uneven their times are.

    Imbalance: the largest time over the mean, less 1; that is L = W_max - W_tot/p of Sakellariou and Gurd (Compile-Time
    Minimisation of Load Imbalance in Loop Nests, ICS 1997, equation 1) over the mean W_tot/p. 0: all took the same.
    None where the time of some rank is not known in full.
    """
    rows = counts.rows
    rank = np.empty(len(rows), dtype=np.int64)
    for number, places in enumerate(members.values()):
        rank[places] = number
    size, names = len(members), list(members)
    times = group_sums(rows.time_s[:, None], rank)[:, 0]
    lacks_time = not rows.is_timed.all()

    joules = np.full(size, np.nan)
    lacks_energy = split is None
    if split is not None:
        joules = group_sums(split.total_j[:, None], rank)[:, 0]
        lacks_energy = bool(np.bitwise_or.reduce(split.row_marks) & MISSING)

    slowest = None
    if not np.isnan(times).all():
        slowest = names[int(np.nanargmax(times))]
    return schema.Ranks(
        number=size,
        time_s=_min_median_max(times),
        energy_j=_min_median_max(joules),
        launches=_min_median_max(np.bincount(rank, rows.launches, size).astype(np.float64)),
        imbalance=None if lacks_time else growth(float(times.max()), float(times.mean())),
        slowest=slowest,
        time_marks=mark_names(MISSING * lacks_time),
        energy_marks=mark_names(MISSING * lacks_energy),
    )


def _min_median_max(values: Floats) -> schema.Spread:
    known = values[~np.isnan(values)]
    if not known.size:
        return schema.Spread(None, None, None)
    return schema.Spread(float(known.min()), median(known.tolist()), float(known.max()))
