"""Counting: launches with their counters, read by a definition, become instructions by class and bytes by level."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from eprof.arrays import Floats, Ints, framed
from eprof.counters import Counter, Definition, Entry, bracketed
from eprof.definition import Formula
from eprof.errors import UsageError
from eprof.logs.table import COUNT, Launches
from eprof.marks import Mark
from eprof.vocabulary import BOOKS, BYTES, COUNTS, PARTS

Bools = npt.NDArray[np.bool_]
_MISSING, _ESTIMATED = int(Mark.MISSING), int(Mark.ESTIMATED)
_COLUMNS = ("device", "kernel", "launches", "time_s", "time_marks", "part")
_AVERAGED = "an average over several launches, not weighted by their size"


@dataclass(frozen=True)
class Way:
    """How a count was made for some kernels: its formula in the profiler's names, what it rests on, for how many."""

    formula: str
    note: str
    mark: int
    kernels: int = 0


@dataclass(frozen=True, eq=False)
class Counts:
    """Instructions or bytes, (n_kernels, n_words): a row for each kernel, a column for each word of the vocabulary.

    kernels: device, kernel, launches, time_s (total, NaN = not known), time_marks (int, `Mark`), and `part` where that
    was asked for. table: float64, NaN is not counted. marks: int64, same shape; 0 is exact, MISSING where something was
    not counted. A class total (`fp32`) and its parts exclude each other: the one that does not apply is NaN without a
    mark. how: word -> the ways it was counted.
    """

    kernels: pd.DataFrame
    table: pd.DataFrame
    marks: pd.DataFrame
    how: Mapping[str, tuple[Way, ...]]
    books: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Cells:
    """Values for each kernel, their marks, and which of `ways` made each (-1: none, then the value is NaN).

    averaged: where an average over several launches takes part, which makes an estimate of all but a zero.
    """

    values: Floats
    marks: Ints
    choice: Ints
    ways: tuple[Way, ...]
    averaged: Bools


@dataclass(eq=False)
class Sheet:
    """The launches of one device under one definition: looks names up, evaluates formulas, remembers and warns."""

    launches: Launches
    definition: Definition
    warnings: list[str] = field(default_factory=list)
    _known: dict[str, Cells | None] = field(default_factory=dict, repr=False)
    _wrong_units: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def length(self) -> int:
        """The number of kernels."""
        return len(self.launches.kernels)

    @cached_property
    def _counted(self) -> tuple[dict[str, int], Floats]:
        """The places of the counters by name, and their values, (n_kernels, n_counters)."""
        counters = self.launches.counters
        return {name: at for at, name in enumerate(counters.columns)}, counters.to_numpy(dtype=np.float64)

    @cached_property
    def _marked(self) -> tuple[dict[str, int], Ints]:
        """As `_counted`, the marks that the log's counters have."""
        marks = self.launches.marks
        return {name: at for at, name in enumerate(marks.columns)}, marks.to_numpy(dtype=np.int64)

    def look_up(self, name: str) -> Cells | None:
        """The cells behind a name of the definition; None if the log has nothing for it."""
        if name not in self._known:
            self._known[name] = self._find(name)
        return self._known[name]

    def evaluate(self, formula: Formula) -> Cells | None:
        """A formula alone, without fallbacks: NaN where one of its names is not known. Not clamped."""
        known = self._parts(formula)
        if known is None:
            return None
        values = self._values(formula, known)
        ways = (Way(self.definition.expand(formula), "", 0),)
        return Cells(values, self._marks(known), np.where(np.isnan(values), -1, 0), ways, self._averaged(known))

    def _find(self, name: str) -> Cells | None:
        if name in self.definition.parameters:
            value = self.definition.parameters[name]
            return self._all(np.full(self.length, value), (Way(f"{value:g}", "", 0),))
        if name in self.definition.quantities:
            return self.first_known(name, self.definition.quantities[name], 32)
        counter = self.definition.counters[name]
        return self._slices(counter) if counter.slices else self._counter(counter)

    def _all(self, values: Floats, ways: tuple[Way, ...]) -> Cells:
        zeros = np.zeros(self.length, dtype=np.int64)
        return Cells(values, zeros, np.where(np.isnan(values), -1, zeros), ways, zeros.astype(np.bool_))

    # ------------------------------------------------------------------------------------------- from the log

    def _column(self, name: str, unit: str) -> tuple[Floats, Ints] | None:
        """A counter's values and marks as the log has them; None if it is not there or in another unit."""
        at, counted = self._counted
        if name not in at:
            return None
        values = counted[:, at[name]]
        found = self.launches.units.get(name, unit)
        if found != unit:
            if not np.isnan(values).all():
                self._wrong_units[name] = f"{name} ({found} instead of {unit})"
            return None
        place, marks = self._marked
        return values, marks[:, place[name]] if name in place else np.zeros(self.length, dtype=np.int64)

    def _counter(self, counter: Counter) -> Cells | None:
        """For each kernel the first of a counter's names that is known. An average over launches is an estimate."""
        columns = [(name, self._column(name, counter.unit)) for name in counter.names]
        found = [(name, column) for name, column in columns if column is not None]
        if not found:
            return None
        values, marks = np.full(self.length, np.nan), np.zeros(self.length, dtype=np.int64)
        choice = np.full(self.length, -1, dtype=np.int64)
        for number, (_, column) in enumerate(found):
            use = np.isnan(values) & ~np.isnan(column[0])
            values[use], marks[use], choice[use] = column[0][use], column[1][use], 2 * number
        averaged = (choice >= 0) & (self.launches.kernels["launches"].to_numpy() > 1) & (counter.unit != COUNT)
        choice[averaged] += 1
        ways = tuple(Way(name, note, 0) for name, _ in found for note in ("", _AVERAGED))
        return Cells(values, marks, choice, ways, averaged)

    def _slices(self, counter: Counter) -> Cells | None:
        """The sum over a counter's slices. A missing slice is no zero slice: known only where all expected ones are."""
        columns = [self._column(name, counter.unit) for name in counter.slices]
        found = [column for column in columns if column is not None]
        if not found:
            return None
        table = np.stack([np.full(self.length, np.nan) if one is None else one[0] for one in columns])
        known = ~np.isnan(table)
        marks = np.bitwise_or.reduce(np.stack([one[1] for one in found]), axis=0)
        number = known.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            total = np.where(known, table, 0.0).sum(axis=0)
            if counter.partial:
                values = np.where(number > 0, total / number * counter.expect, np.nan)
            else:
                values = np.where(self._complete(known, counter.expect), total, np.nan)
        return replace(self._all(values, (Way(counter.text, "", 0),)), marks=marks)

    @staticmethod
    def _complete(known: Bools, expect: int) -> Bools:
        """At least the expected slices, none left out below the last: (n_slices, n_kernels) -> (n_kernels,)."""
        number = known.sum(axis=0)
        last = np.where(known.any(axis=0), known.shape[0] - np.argmax(known[::-1], axis=0), 0)
        complete: Bools = (number >= expect) & (number == last)
        return complete

    def unit_warning(self) -> list[str]:
        """One sentence about the counters that were not used because of their unit, if there were any."""
        if not self._wrong_units:
            return []
        listed = ", ".join(sorted(self._wrong_units.values()))
        return [f"Not used, for the log gives them in a unit that the definition does not expect: {listed}."]

    # --------------------------------------------------------------------------------------------- formulas

    def first_known(self, word: str, entries: Sequence[Entry], rounding: float = 1) -> Cells | None:
        """For each kernel the first of `entries` whose names are all known; negative results are set to 0 and said.

        rounding: what one count more or less changes; profilers round averages, so a result that is negative by no more
        than two such counts a launch is no news.
        """
        values, marks = np.full(self.length, np.nan), np.zeros(self.length, dtype=np.int64)
        averaged = np.zeros(self.length, dtype=np.bool_)
        choice, ways = np.full(self.length, -1, dtype=np.int64), list[Way]()
        for entry in entries:
            missing = np.isnan(values)
            if not missing.any():
                break
            parts = self._parts(entry.formula)
            if parts is None:
                continue
            result = self._values(entry.formula, parts)
            use = missing & ~np.isnan(result)
            if use.any():
                quiet = self._quiet(entry)
                values[use] = result[use]
                marks[use] = (self._marks(parts) | np.where(quiet, 0, int(entry.mark)))[use]
                averaged[use] = (self._averaged(parts) & ~(quiet & (result == 0)))[use]
                codes, found = self._ways(entry, parts)
                choice[use] = codes[use] + len(ways)
                ways += found
        if not ways:
            return None
        values, marks = self._clamp(word, values, marks, choice, ways, rounding)
        return Cells(values, marks, choice, tuple(ways), averaged)

    def _parts(self, formula: Formula) -> dict[str, Cells] | None:
        """The cells behind a formula's names; None if the log has nothing for one of them."""
        parts = {name: self.look_up(name) for name in formula.names}
        known = {name: part for name, part in parts.items() if part is not None}
        return known if len(known) == len(parts) else None

    def _quiet(self, entry: Entry) -> Bools:
        """Where the entry's mark does not apply, because what it is about is 0."""
        cells = self.evaluate(entry.mark_if) if entry.mark_if else None
        zero: Bools = np.zeros(self.length, dtype=np.bool_) if cells is None else cells.values == 0
        return zero

    def _values(self, formula: Formula, parts: Mapping[str, Cells]) -> Floats:
        """The formula for each kernel; NaN where a part is not known or the result not finite (division by zero)."""
        with np.errstate(all="ignore"):
            result = np.asarray(formula({name: part.values for name, part in parts.items()}), dtype=np.float64)
        return np.where(np.isfinite(result), np.broadcast_to(result, (self.length,)), np.nan)

    def _marks(self, parts: Mapping[str, Cells]) -> Ints:
        marks = np.zeros(self.length, dtype=np.int64)
        for part in parts.values():
            marks |= part.marks
        return marks

    def _averaged(self, parts: Mapping[str, Cells]) -> Bools:
        found: Bools = np.zeros(self.length, dtype=np.bool_)
        for part in parts.values():
            found = found | part.averaged
        return found

    def _ways(self, entry: Entry, parts: Mapping[str, Cells]) -> tuple[Ints, list[Way]]:
        """Every combination of ways that occurs among the parts, and for each kernel the number of its own."""
        codes = np.zeros(self.length, dtype=np.int64)
        order = sorted(parts)
        for name in order:
            codes = codes * len(parts[name].ways) + np.maximum(parts[name].choice, 0)
        seen, inverse = np.unique(codes, return_inverse=True)
        return inverse.astype(np.int64), [self._way(entry, parts, order, int(code)) for code in seen]

    def _way(self, entry: Entry, parts: Mapping[str, Cells], order: Sequence[str], code: int) -> Way:
        chosen: dict[str, Way] = {}
        for name in reversed(order):
            code, number = divmod(code, len(parts[name].ways))
            chosen[name] = parts[name].ways[number]
        alone = entry.formula.text in chosen
        texts = {name: way.formula if alone else bracketed(way.formula) for name, way in chosen.items()}
        notes = [entry.note, *(way.note for way in chosen.values())]
        notes = list(dict.fromkeys(note for one in notes for note in one.split("; ") if note))
        return Way(self.definition.expand(entry.formula, texts), "; ".join(notes), 0)

    def _clamp(
        self, word: str, values: Floats, marks: Ints, choice: Ints, ways: Sequence[Way], rounding: float
    ) -> tuple[Floats, Ints]:
        negative = values < 0
        if not negative.any():
            return values, marks
        launches = self.launches.kernels["launches"].to_numpy(dtype=np.float64)
        news = values < np.where(launches > 1, -2 * rounding * launches, 0)
        if news.any():
            worst = int(np.nanargmin(values))
            kernel, formula = self.launches.kernels["kernel"].iloc[worst], ways[choice[worst]].formula
            self.warnings.append(
                f"{word.replace('_', ' ')}: {formula} came out negative for {_of(int(news.sum()), self.length)} "
                f"(most in {_short(str(kernel))}: {values[worst]:,.0f}); set to 0 and marked estimated."
            )
        return np.where(negative, 0.0, values), np.where(negative, marks | _ESTIMATED, marks)


def _of(number: int, total: int) -> str:
    return f"{number} of {total} kernels" if total > 1 else "the only kernel"


def _short(kernel: str) -> str:
    name = kernel.partition("(")[0] or kernel
    return f"`{name if len(name) <= 60 else name[:57] + '...'}`"


# ----------------------------------------------------------------------------------------------------- counting


def count(launches: Launches, definition: Definition, books: str = "served") -> Counts:
    """Count every word of the vocabulary for every kernel, after `definition`.

    books: "served" (a byte counts at the one level that served it) or "accessed" (at every level that it passed), the
    choice of the cost table ([FMM] IV-A; model.md 2). For each word and kernel the best entry whose counters are known
    is used; marks of the entry and of its counters are joined. Raises UsageError for other books.
    """
    if books not in BOOKS:
        raise UsageError(f"`{books}` are no books; use one of: {', '.join(BOOKS)}.")
    sheet = Sheet(launches, definition)
    cells = {word: _word(sheet, word, books) for word in COUNTS}
    for total, parts in PARTS.items():
        _choose(cells, total, parts)
    index = launches.kernels.index
    how = {word: found for word, one in cells.items() if (found := _how(one))}
    return Counts(
        kernels=launches.kernels[[name for name in _COLUMNS if name in launches.kernels]].copy(),
        table=framed([one.values for one in cells.values()], list(cells), index),
        marks=framed([one.marks for one in cells.values()], list(cells), index),
        how=how,
        books=books,
        warnings=tuple(dict.fromkeys([*sheet.warnings, *sheet.unit_warning()])),
    )


def _word(sheet: Sheet, word: str, books: str) -> Cells:
    entries = sheet.definition.entries(word, books)
    found = sheet.first_known(word, entries, 32 if word in BYTES else 1)
    if found is not None:
        marks = found.marks | np.where(found.averaged, _ESTIMATED, 0)
        return replace(found, marks=np.where(found.choice < 0, _MISSING, marks))
    zeros = np.zeros(sheet.length, dtype=np.int64)
    if not entries and word in sheet.definition.absent:
        ways = (Way("0", sheet.definition.absent[word], 0),)
        return Cells(zeros.astype(np.float64), zeros, zeros, ways, zeros.astype(np.bool_))
    reason = "" if entries else sheet.definition.uncountable.get(word, "")
    because = (Way("", reason, _MISSING),) if reason else ()
    unknown = np.full(sheet.length, np.nan)
    return Cells(unknown, zeros + _MISSING, zeros if reason else zeros - 1, because, zeros.astype(np.bool_))


def _choose(cells: dict[str, Cells], total: str, parts: Sequence[str]) -> None:
    """Let a class total stand only where its kinds are not told apart, and the kinds only where it does not stand."""
    kinds = np.stack([~np.isnan(cells[part].values) for part in parts if not part.endswith("_other")])
    use_total = ~kinds.all(axis=0) & ~np.isnan(cells[total].values)
    open_ = ~kinds.any(axis=0) & ~use_total
    cells[total] = _silence(cells[total], ~use_total & ~open_)
    for part in parts:
        cells[part] = _silence(cells[part], use_total)


def _silence(cells: Cells, where: Bools) -> Cells:
    return replace(
        cells,
        values=np.where(where, np.nan, cells.values),
        marks=np.where(where, 0, cells.marks),
        choice=np.where(where, -1, cells.choice),
    )


def _how(cells: Cells) -> tuple[Way, ...]:
    """The ways that were used, with the marks and the number of their kernels, most first."""
    found = []
    for number, way in enumerate(cells.ways):
        mine = cells.choice == number
        if mine.any():
            marks = int(np.bitwise_or.reduce(cells.marks[mine]))
            found.append(replace(way, mark=marks, kernels=int(mine.sum())))
    return tuple(sorted(found, key=lambda way: -way.kernels))


# ------------------------------------------------------------------------------------------- joining and grouping


def concat(parts: Sequence[Counts]) -> Counts:
    """The counts of several devices below each other. Raises UsageError if there are none or their books differ."""
    if not parts or len({one.books for one in parts}) > 1:
        raise UsageError("Counts of different books, or none at all, cannot be put together.")
    if len(parts) == 1:
        return parts[0]
    how: dict[str, dict[tuple[str, str, int], int]] = {}
    for one in parts:
        for word, ways in one.how.items():
            for way in ways:
                key = (way.formula, way.note, way.mark)
                seen = how.setdefault(word, {})
                seen[key] = seen.get(key, 0) + way.kernels
    return Counts(
        kernels=pd.concat([one.kernels for one in parts], ignore_index=True),
        table=pd.concat([one.table for one in parts], ignore_index=True),
        marks=pd.concat([one.marks for one in parts], ignore_index=True),
        how={word: tuple(Way(*key, kernels=number) for key, number in seen.items()) for word, seen in how.items()},
        books=parts[0].books,
        warnings=tuple(dict.fromkeys(warning for one in parts for warning in one.warnings)),
    )


def group(counts: Counts, labels: Sequence[object]) -> Counts:
    """Sum kernels into groups, one label a kernel: what is known of counts and times; with an unknown, marked MISSING.

    The groups are in order of first appearance; `kernel` holds the label, `device` the members' if they share one.
    """
    key = pd.Series(list(labels), index=counts.kernels.index, dtype=object)
    table = counts.table.groupby(key, sort=False).sum(min_count=1)
    marks = counts.marks.groupby(key, sort=False).agg(_join)
    by = counts.kernels.groupby(key, sort=False)
    unknown = counts.kernels["time_s"].isna().groupby(key, sort=False).any()
    times = by["time_marks"].agg(_join).astype("int64") | np.where(unknown, _MISSING, 0)
    kernels = pd.DataFrame(
        {
            "device": [one.iloc[0] if one.nunique(dropna=False) == 1 else None for _, one in by["device"]],
            "kernel": [str(label) for label in table.index],
            "launches": by["launches"].sum(),
            "time_s": by["time_s"].sum(min_count=1),
            "time_marks": times,
        }
    ).reset_index(drop=True)
    return replace(
        counts,
        kernels=kernels,
        table=table.reset_index(drop=True),
        marks=marks.reset_index(drop=True).astype("int64"),
    )


def _join(marks: pd.Series) -> int:
    return int(np.bitwise_or.reduce(marks.to_numpy(dtype=np.int64)))
