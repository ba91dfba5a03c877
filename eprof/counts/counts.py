"""Counting: launches with their counters, read by a definition, become instructions by class and bytes by level."""

from collections import Counter as Tally
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from eprof.base.arrays import Bools, Columns, Floats, Ints
from eprof.base.boards import Traits, sheets_of
from eprof.base.brief import Brief
from eprof.base.errors import UsageError
from eprof.base.gpus import capabilities, normal_name
from eprof.base.kernels import short
from eprof.base.known import mapped
from eprof.base.marks import ESTIMATED, MISSING
from eprof.base.nouns import Nouns, nouns_of
from eprof.base.signs import A_SECOND
from eprof.base.toml import Formula
from eprof.base.vocabulary import BOOKS, BYTES, COUNTS, FLOAT_PARTS, LEVEL_PARTS, PARTS, TENSOR_PARTS
from eprof.counts.definition import (
    BESIDE,
    DRAM_CLOCK,
    ROOMS,
    SHARES,
    SM_COUNT,
    Counter,
    Definition,
    Entry,
    Told,
    bracketed,
)
from eprof.counts.term import Term
from eprof.logs.log import COUNT, OTHER, KernelRows, Launches, Log

if TYPE_CHECKING:
    import pandas as pd

SECONDS = "seconds"  # as a counter: the time of a row
_AVERAGED = "an average over several launches, not weighted by their size"
# A difference of nearly equal counters may come out negative by this share of them: they are of different passes, and
# ECC lets DRAM read up to a quarter more than the program read. Further below 0, the formula does not hold.
_TOLERANCE = 0.125
_ALIKE = 1.1  # times the least: peaks of boards that a GPU may be, which are one for an estimate


class Way(Struct, frozen=True):
    """How a count was made: formula in the profiler's names, a note on what it rests on, and for how many kernels."""

    formula: str
    note: str
    mark: int
    kernels: int = 0


class Counts(Brief, Struct, frozen=True, eq=False, dict=True):
    """Instructions or bytes, (n_kernels, n_words): a row for each kernel, a column for each word of the vocabulary.

    amounts: float64, NaN is not counted. amount_marks: int64, same shape; 0 is exact, MISSING where something was not
    counted. A class total (`fp32`) and its parts exclude each other: the one that does not apply is NaN without a mark.
    in_flops: the totals that are counted in flops, not in instructions. how: word -> the ways it was counted. shape:
    what the time by component needs beside them, totals over launches (`definition.COMPONENTS`); NaN is not known.
    `kernels`, `table` and `marks` are the same as tables of pandas.
    """

    rows: KernelRows
    amounts: Columns
    amount_marks: Columns
    how: Mapping[str, tuple[Way, ...]]
    books: str
    warnings: tuple[str, ...] = ()
    in_flops: frozenset[str] = frozenset()
    nouns: Nouns = nouns_of()
    shape: Columns | None = None

    @cached_property
    def kernels(self) -> "pd.DataFrame":
        """The rows of the counts: device, kernel, launches, time_s, time_marks, and `part` where rows are split."""
        return self.rows.frame()

    @cached_property
    def table(self) -> "pd.DataFrame":
        """The amounts as a table of pandas."""
        return self.amounts.frame()

    @cached_property
    def marks(self) -> "pd.DataFrame":
        """The marks of the amounts as a table of pandas."""
        return self.amount_marks.frame()

    @cached_property
    def whole(self) -> Columns:
        """The amounts for ratios: NaN where not all was counted, as a ratio of lower bounds is no bound.

        What is known in flops only stands there as additions, which are one flop each.
        """
        lacks = (self.amount_marks.values & MISSING) != 0
        columns = Columns(self.amounts.names, np.where(lacks, np.nan, self.amounts.values))
        for total in self.in_flops:
            flops = columns[total]
            for part in FLOAT_PARTS[total]:
                instead = flops * part.endswith("_add")
                columns.values[:, columns.names.index(part)] = np.where(np.isnan(flops), columns[part], instead)
        return columns

    def chosen(self, rows: Ints) -> "Counts":
        """The counts of some kernels, by their places."""
        return replace(
            self,
            rows=self.rows.chosen(rows),
            amounts=self.amounts.chosen(rows),
            amount_marks=self.amount_marks.chosen(rows),
            shape=mapped(Columns.chosen, self.shape, rows),
        )


class Cells(Struct, frozen=True, eq=False):
    """Values for each kernel, their marks, and which of `ways` made each (-1: none, then the value is NaN).

    A value marked MISSING is a lower bound. averaged: where an average over several launches takes part, which makes an
    estimate of all but a zero. high: where the value is an upper bound, which no count may be, but a step on the way to
    one may: what an upper bound is subtracted from is a lower bound again.
    """

    values: Floats
    marks: Ints
    choice: Ints
    ways: tuple[Way, ...]
    averaged: Bools
    high: Bools

    @property
    def low(self) -> Bools:
        """True where the value is a lower bound, (n_kernels,)."""
        return np.asarray(((self.marks & MISSING) != 0) & ~np.isnan(self.values))

    def term(self) -> Term:
        """A counter's cells as a part of a formula."""
        return Term.of(self.values, self.low, self.high)


class _Result(Struct, frozen=True, eq=False):
    """A formula worked out for each kernel: a term, its marks, where averages take part, the cells of its names."""

    formula: Formula
    term: Term
    marks: Ints
    averaged: Bools
    parts: Mapping[str, Cells]


class Sheet(Struct, eq=False):
    """The launches of one device under one definition: looks names up, evaluates formulas, remembers and warns.

    wrong_units: what is said of counters that are not used because of their unit, by counter.
    """

    launches: Launches
    definition: Definition
    warnings: list[str] = field(default_factory=list)
    wrong_units: dict[str, str] = field(default_factory=dict)
    _known: dict[str, Cells | None] = field(default_factory=dict)

    @property
    def length(self) -> int:
        """The number of kernels whose counters are on the sheet."""
        return len(self.launches.rows)

    @property
    def never(self) -> Bools:
        """False for each kernel, (n_kernels,)."""
        return np.zeros(self.length, dtype=np.bool_)

    def look_up(self, name: str) -> Cells | None:
        """The cells behind a name; None if the definition does not have it, or the log has nothing for it."""
        if name not in self._known:
            self._known[name] = self._find(name)
        return self._known[name]

    def _find(self, name: str) -> Cells | None:
        if name in self.definition.parameters:
            value = self.definition.parameters[name]
            return self.made_one_way(np.full(self.length, value), Way(f"{value:g}", "", 0))
        if name in self.definition.told:
            told = self.definition.told[name]
            return self.made_one_way(self._told(told), Way(told.text, "", 0))
        if name in self.definition.quantities:
            return self.first_known(name, self.definition.quantities[name], 32, is_step=True)
        counter = self.definition.counters.get(name)
        if counter is None:
            return None
        return self._slices(counter) if counter.slices else self._counter(counter)

    def made_one_way(self, values: Floats, *way: Way) -> Cells:
        """Cells of these values, without marks, all made in the one `way` that is given, if any; NaN in none."""
        zeros = np.zeros(self.length, dtype=np.int64)
        return Cells(values, zeros, np.where(np.isnan(values), -1, zeros), way, self.never, self.never)

    def _told(self, told: Told) -> Floats:
        """The number of `told` for each kernel, (n_kernels,): 1 yes, 0 no, NaN not told; or the peak of its GPU."""
        if told.peak:
            return self._peak(told.peak)
        if told.device is None:
            alike = [each for each in self.definition.told.values() if each.kernel and each.group == told.group]
            fits = (
                (each for each in alike if each.kernel and each.kernel.search(name))
                for name in self.launches.rows.kernel
            )
            firsts = (next(fitting, None) for fitting in fits)
            return np.array([first and first == told for first in firsts], dtype=np.float64)  # None becomes NaN
        sms = self.multiprocessors() if told.multiprocessors else np.full(self.length, np.nan)
        values = np.where(np.isnan(sms), np.nan, np.isin(sms, [*told.multiprocessors]))
        for row, device in enumerate(self.launches.rows.device):
            if device is not None and capabilities(device):
                values[row] = told.device.search(normal_name(device)) is not None
        return values

    def _peak(self, name: str) -> Floats:
        """A peak of each kernel's GPU by its data sheet; NaN where it may be one of several whose peaks are apart."""

        @cache
        def of_boards(device: str | None, sms: float, dram_hz: float) -> float:
            number = None if np.isnan(sms) else round(sms)
            may_be = sheets_of(device, Traits(number, dram_ghz=dram_hz / 1e9 if dram_hz > 0 else None))
            peaks = [sheet.peaks.get(name, np.nan) for sheet in may_be]
            is_one = bool(peaks) and max(peaks) <= _ALIKE * min(peaks)
            return float(np.mean(peaks)) if is_one else np.nan

        clock = self.look_up(DRAM_CLOCK)
        clocks = np.full(self.length, np.nan) if clock is None else clock.values
        columns = self.launches.rows.device, self.multiprocessors().tolist(), clocks.tolist()
        return np.array([*map(of_boards, *columns)])

    def multiprocessors(self) -> Floats:
        """The multiprocessors of each kernel's GPU, (n_kernels,), as the log tells them; NaN where it does not."""
        if SM_COUNT not in self.launches.counters:
            return np.full(self.length, np.nan)
        return self.launches.counters[SM_COUNT] / self.launches.rows.launches

    def _column(self, name: str, unit: str) -> tuple[Floats, Ints] | None:
        """A counter's values and marks as the log has them; None if it is not there or in another unit."""
        counters, marks, rows = self.launches.counters, self.launches.marks, self.launches.rows
        if name == SECONDS:
            return rows.time_s, rows.time_marks.astype(np.int64)
        if name not in counters:
            return None
        values = counters[name]
        if name.endswith(A_SECOND):
            values = values / rows.launches * rows.time_s
        found_unit = self.launches.units.get(name, unit)
        if (unit, found_unit) == (OTHER, COUNT):
            # nvprof prints ratios without a unit, and what has none is added up over launches.
            values, found_unit = values / rows.launches, unit
        if found_unit != unit:
            if not np.isnan(values).all():
                self.wrong_units[name] = f"{name} ({found_unit} instead of {unit})"
            return None
        return values, marks[name].astype(np.int64)

    def _counter(self, counter: Counter) -> Cells | None:
        """For each kernel the first of a counter's names that is known; None if the log has none of them."""
        columns = [(name, self._column(name, counter.unit)) for name in counter.names]
        known = [(name, column) for name, column in columns if column is not None]
        if not known:
            return None
        values = np.full(self.length, np.nan)
        marks = np.zeros(self.length, dtype=np.int64)
        choice = np.full(self.length, -1, dtype=np.int64)
        for number, (_, column) in enumerate(known):
            use = np.isnan(values) & ~np.isnan(column[0])
            values[use] = column[0][use]
            marks[use] = column[1][use]
            choice[use] = 2 * number
        averaged = (choice >= 0) & (self.launches.rows.launches > 1) & (counter.unit != COUNT)
        choice[averaged] += 1
        ways = tuple(Way(name, note, 0) for name, _ in known for note in ("", _AVERAGED))
        return Cells(values, marks, choice, ways, averaged, self.never)

    def _slices(self, counter: Counter) -> Cells | None:
        """The sum of a counter's slices, known only where all expected ones are; None if the log has none of them."""
        columns = [self._column(name, counter.unit) for name in counter.slices]
        known_columns = [column for column in columns if column is not None]
        if not known_columns:
            return None
        table = np.stack([np.full(self.length, np.nan) if column is None else column[0] for column in columns])
        known = ~np.isnan(table)
        marks = np.bitwise_or.reduce(np.stack([column[1] for column in known_columns]), axis=0)
        number = known.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            total = np.where(known, table, 0.0).sum(axis=0)
            if counter.partial:
                values = np.where(number > 0, total / number * counter.expect, np.nan)
            else:
                # None is left out below the last.
                last = np.where(known.any(axis=0), known.shape[0] - np.argmax(known[::-1], axis=0), 0)
                complete: Bools = (number >= counter.expect) & (number == last)
                values = np.where(complete, total, np.nan)
        return replace(self.made_one_way(values, Way(counter.text, "", 0)), marks=marks)

    def evaluate(self, formula: Formula) -> Cells | None:
        """A formula's values, maybe negative; NaN where a name is not known. None: the log has nothing for a name."""
        result = self._result(formula)
        if result is None:
            return None
        values, way = result.term.values, Way(self.definition.expand(formula), "", 0)
        return Cells(values, result.marks, np.where(np.isnan(values), -1, 0), (way,), result.averaged, result.term.high)

    def first_known(
        self, word: str, entries: Sequence[Entry], rounding: float = 1, *, is_step: bool = False
    ) -> Cells | None:
        """For each kernel the first of `entries` whose names are all known, and whose result can be true; None: none.

        A count is never an upper bound; a step on the way to one is where nothing better is known. A result that is
        negative by rounding is 0, and an estimate; one that is negative by more is not used, and said. rounding: what
        one count more or less changes; profilers round averages, so a result that is negative by no more than two such
        counts a launch is no news.
        """
        worked_out = [(entry, self._result(entry.formula)) for entry in entries]
        known = [(entry, result) for entry, result in worked_out if result is not None]
        results = [result for _, result in known]
        held = [self._holds(result, rounding) for result in results]
        choice = np.full(self.length, -1, dtype=np.int64)
        contradicted = self.never
        for number, result in enumerate(results):
            open_ = (choice < 0) & ~np.isnan(result.term.values)
            holds = held[number]
            # Where a better entry cannot be true, what only leaves out some of its counters is no truer.
            leaves_out = self.never
            for better, better_holds in zip(results[:number], held, strict=False):
                if result.formula.names < better.formula.names:
                    leaves_out |= better.term.high | ~better_holds
            choice[open_ & holds & ~result.term.high & ~leaves_out] = number
            refused = open_ & ~holds
            if (refused & ~contradicted).any():
                self._warn_negative(word, result, refused, "not used")
            contradicted |= refused
        if is_step:
            for number, result in enumerate(results):
                above = result.term.high & ~result.term.low & ~np.isnan(result.term.values)
                choice[(choice < 0) & above & held[number]] = number
        if (choice < 0).all():
            return None
        return self._chosen(word, known, choice, rounding)

    def _chosen(self, word: str, known: Sequence[tuple[Entry, _Result]], choice: Ints, rounding: float) -> Cells:
        """Cells of each kernel's chosen result. choice: its place in `known`, (n_kernels,); -1: none, NaN."""
        values = np.full(self.length, np.nan)
        marks = np.zeros(self.length, dtype=np.int64)
        way_numbers = np.full(self.length, -1, dtype=np.int64)
        averaged, high = self.never, self.never
        ways: list[Way] = []
        for number, (entry, result) in enumerate(known):
            use = choice == number
            if not use.any():
                continue
            # The entry's mark does not apply where what it is about is 0.
            condition = mapped(self.evaluate, entry.mark_if)
            quiet = self.never if condition is None else condition.values == 0
            below = use & (result.term.values < -self._rounded(rounding))
            if below.any():
                self._warn_negative(word, result, below, "set to 0 and marked estimated")
            values[use] = np.maximum(result.term.values, 0.0)[use]
            marks[use] = (result.marks | np.where(quiet, 0, int(entry.mark)))[use]
            marks[use & (result.term.values < 0)] |= ESTIMATED
            averaged[use] = (result.averaged & ~(quiet & (result.term.values == 0)))[use]
            high[use] = result.term.high[use]
            codes, used_ways = self._ways(entry, result.parts)
            way_numbers[use] = codes[use] + len(ways)
            ways += used_ways
        return Cells(values, marks, way_numbers, tuple(ways), averaged, high)

    def _result(self, formula: Formula) -> _Result | None:
        """Work out a formula for each kernel; None if the log has nothing for one of its names.

        NaN where it says nothing: a part is not known, the result is not finite (division by zero), or may lie on
        either side of the truth.
        """
        cells = {name: self.look_up(name) for name in formula.names}
        parts = {name: part for name, part in cells.items() if part is not None}
        if len(parts) < len(cells):
            return None
        with np.errstate(all="ignore"):
            term = formula({name: part.term() for name, part in parts.items()})
        if not isinstance(term, Term):  # a formula of numbers alone
            term = Term.of(np.full(self.length, float(term)), self.never, self.never)
        says = np.isfinite(term.values) & ~(term.low & term.high)
        term = replace(term, values=np.where(says, term.values, np.nan))
        marks = np.bitwise_or.reduce([self.never.astype(np.int64), *(part.marks for part in parts.values())])
        # MISSING only where the result is a lower bound, too.
        marks = np.where(term.low, marks | MISSING, marks & ~MISSING)
        averaged = np.logical_or.reduce([self.never, *(part.averaged for part in parts.values())])
        return _Result(formula, term, marks, averaged, parts)

    def _rounded(self, rounding: float) -> Floats:
        """How far below 0 rounded averages alone may bring a difference, (n_kernels,); 0 for a single launch."""
        launches = self.launches.rows.launches.astype(np.float64)
        return np.where(launches > 1, 2 * rounding * launches, 0.0)

    def _holds(self, result: _Result, rounding: float) -> Bools:
        """True where a result is not below 0 by more than counters of different passes differ, (n_kernels,)."""
        allowed = np.maximum(self._rounded(rounding), _TOLERANCE * np.nan_to_num(result.term.size))
        return np.asarray(~(result.term.values < -allowed))

    def _ways(self, entry: Entry, parts: Mapping[str, Cells]) -> tuple[Ints, list[Way]]:
        """For each kernel the number of its way, and these ways: every combination of the parts' that occurs."""
        codes = np.zeros(self.length, dtype=np.int64)
        order = sorted(parts)
        for name in order:
            codes = codes * len(parts[name].ways) + np.maximum(parts[name].choice, 0)
        seen, inverse = np.unique(codes, return_inverse=True)
        ways = []
        for code in seen.tolist():
            chosen: dict[str, Way] = {}
            for name in reversed(order):
                code, number = divmod(code, len(parts[name].ways))
                chosen[name] = parts[name].ways[number]
            texts = {name: way.formula for name, way in chosen.items()}
            if entry.formula.text not in chosen:
                texts = {name: bracketed(text) for name, text in texts.items()}
            notes = [entry.note, *(way.note for way in chosen.values())]
            notes = list(dict.fromkeys(note for joined in notes for note in joined.split("; ") if note))
            ways.append(Way(self.definition.expand(entry.formula, texts), "; ".join(notes), 0))
        return inverse.astype(np.int64), ways

    def _warn_negative(self, word: str, result: _Result, where: Bools, done: str) -> None:
        values = np.where(where, result.term.values, np.inf)
        worst = int(np.argmin(values))
        texts = {}
        for name, part in result.parts.items():
            texts[name] = part.ways[part.choice[worst]].formula
            if result.formula.text != name:
                texts[name] = bracketed(texts[name])
        kernels = f"the only {self.definition.nouns.kernel}"
        if self.length > 1:
            kernels = f"{where.sum()} of {self.length} {self.definition.nouns.kernels}"
        self.warnings.append(
            f"{word.replace('_', ' ')}: {self.definition.expand(result.formula, texts)} came out negative for "
            f"{kernels} (most in `{short(self.launches.rows.kernel[worst])}`: {values[worst]:,.0f}); {done}."
        )


def count(launches: Launches, definition: Definition, books: str = "served") -> Counts:
    """Count every word of the vocabulary for every kernel, after `definition`.

    books: "served" (a byte counts at the one level that served it) or "accessed" (at every level that it passed), the
    choice of the cost table ([FMM] IV-A; docs/model.md). For each word and kernel the best entry whose counters are
    known is used; marks of the entry and of its counters are joined. Raises UsageError for other books.
    """
    if books not in BOOKS:
        raise UsageError(f"`{books}` are not books; use one of: {', '.join(BOOKS)}.")
    sheet = Sheet(launches, definition)
    cells = {word: _counted_word(sheet, word, books) for word in COUNTS}
    # A total stands only where its parts are not known, and the parts only where it does not stand.
    for total, parts in PARTS.items():
        if total in TENSOR_PARTS:
            kinds = np.stack([~np.isnan(cells[part].values) for part in parts if part not in definition.absent])
            told_apart = kinds.any(axis=0) & (cells[total].values != 0)
            for part in set(parts) & set(definition.absent):
                cells[part] = _emptied(cells[part], ~told_apart)
        else:
            kinds = np.stack([~np.isnan(cells[part].values) for part in parts if not part.endswith("_other")])
            told_apart = kinds.all(axis=0)
        if total in LEVEL_PARTS:
            # All bytes of a level, counted, are better than their two halves, guessed.
            marks = cells[total].marks
            fewer_marks = [((marks & ~cells[part].marks) == 0) & (marks != cells[part].marks) for part in parts]
            told_apart &= ~np.logical_and.reduce(fewer_marks)
        use_total = ~told_apart & ~np.isnan(cells[total].values)
        open_ = ~kinds.any(axis=0) & ~use_total & (total not in LEVEL_PARTS)
        cells[total] = _emptied(cells[total], ~use_total & ~open_)
        for part in parts:
            cells[part] = _emptied(cells[part], use_total)
    if launches.lacks_rows:
        # Launches are missing, of all counters alike, so what is known is a lower bound.
        for word in cells.keys() - definition.absent.keys():
            values, marks = cells[word].values, cells[word].marks
            cells[word] = replace(cells[word], marks=np.where(np.isnan(values), marks, marks | MISSING))
    if sheet.wrong_units:
        listed = ", ".join(sorted(sheet.wrong_units.values()))
        sheet.warnings.append(
            f"Not used, for the log gives them in a unit that the definition does not expect: {listed}."
        )
    return Counts(
        rows=launches.rows,
        amounts=Columns.of({word: counted.values for word, counted in cells.items()}, sheet.length),
        amount_marks=Columns.of({word: counted.marks for word, counted in cells.items()}, sheet.length),
        how={word: ways for word, counted in cells.items() if (ways := _used_ways(counted))},
        books=books,
        warnings=tuple(dict.fromkeys(sheet.warnings)),
        in_flops=definition.in_flops,
        nouns=definition.nouns,
        shape=_shape(Sheet(launches, definition)),
    )


def _shape(sheet: Sheet) -> Columns:
    """The launch shapes and signs (`BESIDE`), as far as counters tell: totals over launches, (n_kernels, n)."""
    columns = dict.fromkeys(BESIDE, np.full(sheet.length, np.nan))
    for name, entries in sheet.definition.components.items():
        cells = sheet.first_known(name, entries)
        if cells is not None:
            is_mean = cells.averaged | (name in SHARES)
            columns[name] = cells.values * np.where(is_mean, sheet.launches.rows.launches, 1)
            if name in ROOMS:
                columns[name][(cells.marks & MISSING) > 0] = np.nan  # of some launches it is no bound of all
    return Columns.of(columns, sheet.length)


def _counted_word(sheet: Sheet, word: str, books: str) -> Cells:
    entries = sheet.definition.entries(word, books)
    known = sheet.first_known(word, entries, 32 if word in BYTES else 1)
    if known is not None:
        marks = known.marks | np.where(known.averaged, ESTIMATED, 0)
        return replace(known, marks=np.where(known.choice < 0, MISSING, marks))
    unknown = np.full(sheet.length, np.nan)
    if not entries and word in sheet.definition.absent:
        return sheet.made_one_way(np.zeros(sheet.length), Way("0", sheet.definition.absent[word], 0))
    if word in sheet.definition.not_here:
        return sheet.made_one_way(unknown)
    missing = np.full(sheet.length, MISSING, dtype=np.int64)
    if not entries and (reason := sheet.definition.uncountable.get(word)):
        way = Way("", reason, MISSING)
        return replace(sheet.made_one_way(unknown, way), marks=missing, choice=np.zeros_like(missing))
    return replace(sheet.made_one_way(unknown), marks=missing)


def _emptied(cells: Cells, where: Bools) -> Cells:
    return replace(
        cells,
        values=np.where(where, np.nan, cells.values),
        marks=np.where(where, 0, cells.marks),
        choice=np.where(where, -1, cells.choice),
    )


def _used_ways(cells: Cells) -> tuple[Way, ...]:
    """The ways that were used, with the marks and the number of their kernels, most first."""
    ways = []
    for number, way in enumerate(cells.ways):
        chosen = cells.choice == number
        if chosen.any():
            marks = int(np.bitwise_or.reduce(cells.marks[chosen]))
            ways.append(replace(way, mark=marks, kernels=int(chosen.sum())))
    return tuple(sorted(ways, key=lambda way: -way.kernels))


def concat(parts: Sequence[Counts]) -> Counts:
    """The counts of several devices below each other. Raises UsageError if there are none or their books differ."""
    if not parts or len({part.books for part in parts}) > 1:
        raise UsageError("Counts of different books, or none at all, cannot be put together.")
    if len(parts) == 1:
        return parts[0]
    how: dict[str, Tally[tuple[str, str, int]]] = {}
    for part in parts:
        for word, ways in part.how.items():
            for way in ways:
                how.setdefault(word, Tally())[way.formula, way.note, way.mark] += way.kernels
    shapes = [part.shape for part in parts if part.shape is not None]
    return Counts(
        rows=KernelRows.below([part.rows for part in parts]),
        amounts=Columns.below([part.amounts for part in parts]),
        amount_marks=Columns.below([part.amount_marks for part in parts]),
        how={word: tuple(Way(*key, kernels=number) for key, number in seen.items()) for word, seen in how.items()},
        books=parts[0].books,
        warnings=tuple(dict.fromkeys(warning for part in parts for warning in part.warnings)),
        in_flops=frozenset.intersection(*(part.in_flops for part in parts)),
        nouns=parts[0].nouns,
        shape=Columns.below(shapes) if len(shapes) == len(parts) else None,
    )


def with_accessed(served: Counts, accessed: Counts) -> Counts:
    """The served counts, with accessed bytes of levels whose served bytes no kernel has; for showing, not pricing.

    served, accessed: the same kernels in the two books. What L1 served, for one, is not known without L2's counters.
    """
    unknown: list[str] = []
    for level, parts in LEVEL_PARTS.items():
        words = [level, *parts]
        if np.isnan(served.amounts.only(words)).all():
            unknown += [word for word in words if not np.isnan(accessed.amounts[word]).all()]
    if not unknown:
        return served
    note = "all that passed the level; what of it the level served is not known without the counters of the next"
    how = {
        word: tuple(replace(way, note="; ".join(filter(None, (way.note, note)))) for way in accessed.how.get(word, ()))
        for word in unknown
    }
    return replace(
        served,
        amounts=served.amounts.replaced({word: accessed.amounts[word] for word in unknown}),
        amount_marks=served.amount_marks.replaced({word: accessed.amount_marks[word] for word in unknown}),
        how={**served.how, **how},
    )


def with_traces(counts: Counts, logs: Iterable[Log]) -> Counts:
    """The counts with the launch shapes of traces where counters tell none: the mean of each kernel."""
    shapes = [shape for log in logs for shape in log.shapes]
    if counts.shape is None or not shapes:
        return counts
    columns = {}
    for name in ("blocks", "threads", "registers", "shared_byte"):
        sums: dict[str, tuple[float, int]] = {}
        for shape in shapes:
            total, launches = sums.get(shape.kernel, (0.0, 0))
            sums[shape.kernel] = total + getattr(shape, name), launches + shape.launches
        mean = {kernel: total / launches for kernel, (total, launches) in sums.items()}
        traced = np.array([mean.get(kernel, np.nan) for kernel in counts.rows.kernel], dtype=np.float64)
        told = counts.shape[name]
        columns[name] = np.where(np.isnan(told), traced * counts.rows.launches, told)
    return replace(counts, shape=counts.shape.replaced(columns))
