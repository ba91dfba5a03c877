"""Phases and groups: kernels put together by rules, so that each group has an energy of its own.

Every kernel is in exactly one group, so the groups add up to the whole; or, where groups are ranks, streams or NVTX
ranges, every part of a kernel is.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from eprof.base.errors import UsageError
from eprof.base.marks import Mark
from eprof.counting.counts import Counts
from eprof.energy.attribution import Split
from eprof.logs.join.ranks import NVTX, PARTS, RANK, STREAM

OTHER = "other"
DEVICE = "device"
_WORDS = {DEVICE: "by device", RANK: "by rank", STREAM: "by stream", NVTX: "by the innermost NVTX push/pop range"}
_ALONE = ", ".join((DEVICE, RANK, STREAM)) + f" or {NVTX}"
_SHOWN = 200
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Rule:
    """Kernels whose name the pattern is found in are of the group `name`."""

    pattern: re.Pattern[str]
    name: str


@dataclass(frozen=True)
class Grouping:
    """How kernels are put together: by rules, the first that fits; or, with `by`, by their device or by their part."""

    rules: tuple[Rule, ...] = ()
    by: str | None = None

    @property
    def how(self) -> str:
        """In words, for people."""
        if self.by is not None:
            return _WORDS[self.by]
        return ", ".join(f"{rule.name}: names with {rule.pattern.pattern}" for rule in self.rules)

    def names(self, kernels: pd.DataFrame) -> list[str]:
        """The group of each kernel; `kernels` has the columns `device` and `kernel`."""
        if self.by == DEVICE:
            return ["GPU not named" if pd.isna(label) else str(label) for label in kernels["device"]]
        if self.by in PARTS:
            return [self._part(one) for one in kernels["part"]]
        known: dict[str, str] = {}
        for kernel in kernels["kernel"].astype(str).unique():
            known[kernel] = next((rule.name for rule in self.rules if rule.pattern.search(kernel)), OTHER)
        return [known[kernel] for kernel in kernels["kernel"].astype(str)]

    @property
    def untold(self) -> str:
        """The group of what no log tells the part of."""
        return f"{'NVTX range' if self.by == NVTX else self.by} not told"

    def _part(self, part: str | float | None) -> str:
        if not isinstance(part, str):
            return self.untold
        return part if self.by == NVTX else f"{self.by} {part}"

    def members(self, kernels: pd.DataFrame) -> dict[str, np.ndarray]:
        """The places of each group's kernels, groups in the order of the rules, what is left over last."""
        names = np.array(self.names(kernels), dtype=object)
        if self.by in PARTS:
            return self._parts(names)
        order = list(dict.fromkeys([*(rule.name for rule in self.rules), *names.tolist()]))
        if OTHER in order and OTHER not in {rule.name for rule in self.rules}:
            order.append(order.pop(order.index(OTHER)))
        return {name: np.flatnonzero(names == name) for name in order}

    def _parts(self, names: npt.NDArray[np.object_]) -> dict[str, np.ndarray]:
        """Ranks and streams by number, ranges as they come; what is not told comes last."""
        codes, found = pd.factorize(names)
        places = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes, minlength=len(found)))[:-1])
        order = [str(name) for name in found]
        if self.by != NVTX:
            order.sort(key=_by_number)
        order.sort(key=lambda name: name == self.untold)
        of = dict(zip(map(str, found), places, strict=True))
        return {name: of[name] for name in order}

    def unused(self, kernels: pd.DataFrame) -> list[str]:
        """The names of groups that no kernel is in: a pattern that was meant to match does not."""
        return [name for name, places in self.members(kernels).items() if not len(places)]


def parse(texts: Sequence[str]) -> Grouping | None:
    """A grouping from `--group` values: "REGEX=NAME" each, or "device", "rank", "stream", "nvtx" alone; None of none.

    The last `=` parts pattern and name; one name may have several rules. Raises UsageError.
    """
    if not texts:
        return None
    by = next((text for text in texts if text in (DEVICE, *PARTS)), None)
    if by is not None:
        if len(texts) > 1:
            raise UsageError(f"--group {by}: groups {_WORDS[by]} and goes with no other --group.")
        return Grouping(by=by)
    return Grouping(tuple(_rule(text) for text in texts))


def _rule(text: str) -> Rule:
    pattern, found, name = text.rpartition("=")
    if not found or not pattern or not name.strip():
        raise UsageError(f"--group {text}: write REGEX=NAME, such as 'u_.*=near field', or {_ALONE}.")
    try:
        return Rule(re.compile(pattern), name.strip())
    except re.error as err:
        raise UsageError(f"--group {text}: `{pattern}` is not a regular expression ({err}).") from err


def _by_number(name: str) -> tuple[bool, int, str]:
    """Numbers first, in their order."""
    last = name.rpartition(" ")[2]
    is_number = last.isascii() and last.isdigit()
    return (not is_number, int(last) if is_number else 0, name)


# ------------------------------------------------------------------------------------------------------------- parts


def merged(counts: Counts, split: Split | None) -> tuple[Counts, Split | None, Ints]:
    """Rows of a kernel's parts added up to one row a kernel, as they come; and the new place of each row.

    What is known adds up; where something is not known beside it the sum is a lower bound, marked MISSING. Rows that
    are not told apart by parts stay as they are.
    """
    kernels = counts.kernels
    if "part" not in kernels:
        return counts, split, np.arange(len(kernels))
    device, kernel = pd.factorize(kernels["device"])[0], pd.factorize(kernels["kernel"])[0]
    codes = pd.factorize((device + 1) * (len(kernels) + 1) + kernel)[0].astype(np.int64)
    size = int(codes.max(initial=-1)) + 1
    first = np.full(size, len(codes), dtype=np.int64)
    np.minimum.at(first, codes, np.arange(len(codes)))
    time_s = kernels["time_s"].to_numpy(dtype=np.float64)
    time_marks = kernels["time_marks"].to_numpy(dtype=np.int64) | int(Mark.MISSING) * np.isnan(time_s)
    joined = pd.DataFrame(
        {
            "device": kernels["device"].to_numpy(dtype=object)[first],
            "kernel": kernels["kernel"].to_numpy(dtype=object)[first],
            "launches": np.bincount(codes, kernels["launches"], size).astype(np.int64),
            "time_s": _sums(time_s[:, None], codes, size)[:, 0],
            "time_marks": _joined(time_marks.astype(np.int64)[:, None], codes, size)[:, 0],
        }
    )
    added = Counts(
        joined, _added(counts.table, codes, size), _marked(counts.marks, codes, size), counts.how, counts.books
    )
    whole = None
    if split is not None:
        whole = Split(_added(split.table, codes, size), _marked(split.marks, codes, size))
    return replace(added, warnings=counts.warnings), whole, codes


def _added(frame: pd.DataFrame, codes: Ints, size: int) -> pd.DataFrame:
    return pd.DataFrame(_sums(frame.to_numpy(dtype=np.float64), codes, size), columns=frame.columns)


def _marked(frame: pd.DataFrame, codes: Ints, size: int) -> pd.DataFrame:
    return pd.DataFrame(_joined(frame.to_numpy(dtype=np.int64), codes, size), columns=frame.columns)


def _sums(values: Floats, codes: Ints, size: int) -> Floats:
    """What is known of each group, column by column: (n_rows, n) -> (size, n); NaN where nothing is."""
    known = ~np.isnan(values)
    total = np.full((size, values.shape[1]), np.nan)
    for column in range(values.shape[1]):
        there = known[:, column]
        some = np.bincount(codes[there], minlength=size) > 0
        total[some, column] = np.bincount(codes[there], values[there, column], size)[some]
    return total


def _joined(marks: Ints, codes: Ints, size: int) -> Ints:
    total = np.zeros((size, marks.shape[1]), dtype=np.int64)
    np.bitwise_or.at(total, codes, marks)
    return total


@dataclass(frozen=True)
class Group:
    """A group to show: its rows. stands_for: how many groups that is, where many are shown as one."""

    name: str
    places: np.ndarray
    stands_for: int = 1


def shown(members: dict[str, np.ndarray], weight: Floats) -> list[Group]:
    """At most 200 groups: those of the largest weight (energy, or time) in their order, and the sum of all others."""
    if len(members) <= _SHOWN:
        return [Group(name, places) for name, places in members.items() if len(places)]
    names = list(members)
    total = np.array([np.nansum(weight[members[name]]) for name in names])
    largest = set(np.argsort(-total, kind="stable")[: _SHOWN - 1].tolist())
    rest = [members[name] for at, name in enumerate(names) if at not in largest]
    kept = [Group(name, members[name]) for at, name in enumerate(names) if at in largest]
    return [*kept, Group(f"{len(rest):,} others", np.concatenate(rest), len(rest))]


def spread_of_ranks(members: dict[str, np.ndarray], counts: Counts, split: Split | None) -> dict[str, Any]:
    """Smallest, median and largest rank in time, energy and launches, and how uneven their times are.

    Imbalance: the largest time over the mean, less 1; that is L = W_max - W_tot/p of Sakellariou and Gurd (Compile-Time
    Minimisation of Load Imbalance in Loop Nests, ICS 1997, equation 1) over the mean W_tot/p. 0: all took the same.
    None where the time of some rank is not known in full.
    """
    rank = np.empty(len(counts.kernels), dtype=np.int64)
    for number, places in enumerate(members.values()):
        rank[places] = number
    size, names = len(members), list(members)
    time_s = counts.kernels["time_s"].to_numpy(dtype=np.float64)
    times = _sums(time_s[:, None], rank, size)[:, 0]
    lacks = np.isnan(time_s) | ((counts.kernels["time_marks"].to_numpy(dtype=np.int64) & int(Mark.MISSING)) != 0)
    whole = not lacks.any()
    joules = np.full(size, np.nan)
    lost = 0
    if split is not None:
        joules = _sums(split.total_j.to_numpy(dtype=np.float64)[:, None], rank, size)[:, 0]
        lost = int(np.bitwise_or.reduce(split.row_marks.to_numpy(dtype=np.int64))) & int(Mark.MISSING)
    launches = np.bincount(rank, counts.kernels["launches"], size).astype(np.float64)
    mean = float(times.mean()) if whole else float("nan")
    return {
        "number": size,
        "time_s": _spread(times),
        "energy_j": _spread(joules),
        "launches": {key: None if value is None else _whole(value) for key, value in _spread(launches).items()},
        "imbalance": float(times.max()) / mean - 1 if mean > 0 else None,
        "slowest": names[int(np.nanargmax(times))] if not np.isnan(times).all() else None,
        "time_marks": [] if whole else ["missing"],
        "energy_marks": ["missing"] if lost or split is None else [],
    }


def _spread(values: Floats) -> dict[str, float | None]:
    known = values[~np.isnan(values)]
    if not known.size:
        return dict.fromkeys(("min", "median", "max"))
    return {"min": float(known.min()), "median": float(np.median(known)), "max": float(known.max())}


def _whole(value: float) -> float | int:
    return int(value) if value.is_integer() else value
