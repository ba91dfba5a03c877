"""`count`: the counters of launches become instructions by class and bytes by level (`Counts`), and are checked."""

from collections import Counter as Tally
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Bools, Columns, Floats, Ints
from eprof.base.errors import UsageError
from eprof.base.kernels import short
from eprof.base.optional import mapped
from eprof.base.text import ShortRepr
from eprof.base.toml import Formula
from eprof.base.vocabulary import (
    BOOKS,
    BYTES,
    COUNTS,
    ESTIMATED,
    FLOAT_PARTS,
    LEVEL_PARTS,
    MISSING,
    PARTS,
    TENSOR_PARTS,
    Nouns,
    nouns_of,
)
from eprof.counts.definition import BESIDE, ROOMS, SHARES, Definition
from eprof.counts.evaluation import Cells, CounterSheet, Way
from eprof.logs.log import COUNT, PERCENT, KernelRows, Launches, Log

if TYPE_CHECKING:
    import pandas as pd


class Counts(ShortRepr, Struct, frozen=True, eq=False, dict=True):
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
        """`rows` as a table of pandas: device, kernel, launches, time_s, time_marks, `part` where rows are split."""
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
        """The amounts to make ratios of: NaN where something was not counted, as a ratio of lower bounds is no bound.

        A class total known in flops alone stands as additions, which are one flop each.
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
        """The counts of some kernels, by their row numbers."""
        return replace(
            self,
            rows=self.rows.chosen(rows),
            amounts=self.amounts.chosen(rows),
            amount_marks=self.amount_marks.chosen(rows),
            shape=mapped(Columns.chosen, self.shape, rows),
        )


def count(launches: Launches, definition: Definition, books: str = "served") -> Counts:
    """Count every word of the vocabulary for every kernel, after `definition`.

    books: "served" (a byte counts at the one level that served it) or "accessed" (at every level that it passed), the
    choice of the cost table ([FMM] IV-A; docs/model.md). For each word and kernel the best entry whose counters are
    known is used; marks of the entry and of its counters are joined. Raises UsageError for other books.
    """
    if books not in BOOKS:
        raise UsageError(f"`{books}` are not books; use one of: {', '.join(BOOKS)}.")
    sheet = CounterSheet(launches, definition)
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
        shape=_shape(CounterSheet(launches, definition)),
    )


def _shape(sheet: CounterSheet) -> Columns:
    """`Counts.shape`: launch shapes and signs (`BESIDE`) as far as counters tell, totals over launches, or NaN."""
    columns = dict.fromkeys(BESIDE, np.full(sheet.length, np.nan))
    for name, entries in sheet.definition.components.items():
        cells = sheet.first_known(name, entries)
        if cells is not None:
            is_mean = cells.averaged | (name in SHARES)
            columns[name] = cells.values * np.where(is_mean, sheet.launches.rows.launches, 1)
            if name in ROOMS:
                columns[name][(cells.marks & MISSING) > 0] = np.nan  # of some launches it is no bound of all
    return Columns.of(columns, sheet.length)


def _counted_word(sheet: CounterSheet, word: str, books: str) -> Cells:
    """The count of a word for each kernel: by the best of its entries; 0 where absent; else NaN, with the reason."""
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
    """The cells with NaN, no mark and no way where `where` is true, (n_kernels,)."""
    return replace(
        cells,
        values=np.where(where, np.nan, cells.values),
        marks=np.where(where, 0, cells.marks),
        choice=np.where(where, -1, cells.choice),
    )


def _used_ways(cells: Cells) -> tuple[Way, ...]:
    """The ways by which some kernel was counted, with marks and number of these kernels; the most used way first."""
    ways = []
    for number, way in enumerate(cells.ways):
        chosen = cells.choice == number
        if chosen.any():
            marks = int(np.bitwise_or.reduce(cells.marks[chosen]))
            ways.append(replace(way, mark=marks, kernels=int(chosen.sum())))
    return tuple(sorted(ways, key=lambda way: -way.kernels))


def concat(parts: Sequence[Counts]) -> Counts:
    """The counts of several devices, their rows below each other. Raises UsageError: there are none, or other books."""
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
    """The served counts, with the accessed bytes of memory levels whose served bytes are known of no kernel.

    To show, not to price. served, accessed: the same kernels in the two books. What L1 served, for one, is not known
    without L2's counters.
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
    """The counts with launch shapes (blocks, threads, ...) from the traces in `logs` where counters tell none.

    It is the mean over a kernel's launches there, times its launches.
    """
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


# ----------------------------------------------------------------------------------------------------------------------
# Relations that healthy counters obey: declared in the definitions, checked where the log has the counters.


def check(launches: Launches, definition: Definition) -> list[str]:
    """Run the definition's checks on every kernel whose counters are all known; returns a sentence for each that fails.

    The two sides of a check may differ by its tolerance, a fraction of the larger side, and by what rounding the
    averages of a summary can do. Sums that are known to be incomplete are not checked. A rate or percentage of several
    launches is their plain mean, which weighs a short launch as much as a long one: only what contradicts the sums
    however the launches are weighed is a contradiction.
    """
    sheet = CounterSheet(launches, definition)
    sentences = []
    for relation in definition.checks:
        left, right = sheet.evaluate(relation.left), sheet.evaluate(relation.right)
        if left is None or right is None:
            continue
        left_range, right_range = _range(sheet, relation.left, left), _range(sheet, relation.right, right)
        largest = np.fmax(np.abs(left.values), np.abs(right.values))
        rounding = _rounding(sheet, relation.left) + _rounding(sheet, relation.right)
        allowed = relation.tolerance * largest + np.where(launches.rows.launches > 1, rounding, 0.0)
        excess = left_range[0] - right_range[1]
        if relation.relation == "==":
            excess = np.maximum(excess, right_range[0] - left_range[1])
        failed = (excess > allowed) & ~(left.low | left.high | right.low | right.high)
        if not failed.any():
            continue
        with np.errstate(all="ignore"):
            apart = np.where(failed, np.abs(left.values - right.values) / largest, -1.0)
        worst = int(np.argmax(apart))
        where = f"in `{short(launches.rows.kernel[worst])}`"
        compared = int((~np.isnan(left.values + right.values)).sum())
        if compared > 1:
            where = f"for {failed.sum()} of {compared} {definition.nouns.kernels}; worst {where}"
        sentences.append(
            f"The counters contradict each other {where}: {relation.note}, but {definition.expand(relation.left)} = "
            f"{left.values[worst]:,.0f} and {definition.expand(relation.right)} = {right.values[worst]:,.0f} "
            f"({apart[worst]:.1%} apart)."
        )
    return sentences


def _range(sheet: CounterSheet, formula: Formula, cells: Cells) -> tuple[Floats, Floats]:
    """(Least, most) value of one side of a check, (n_kernels,) each, however the launches of its averages are weighed.

    cells: the side's formula, evaluated. Of n values of mean m, none below 0, each weighted mean is at most n m; of
    percentages p it is at least 100 - n (100 - p). A step that was made of averages may be anything: NaN.
    """
    launches = sheet.launches.rows.launches.astype(np.float64)
    least: dict[str, Floats] = {}
    most: dict[str, Floats] = {}
    for name in formula.names:
        part = sheet.look_up(name)
        assert part is not None, "its formula was evaluated"
        least[name], most[name] = part.values, part.values
        if part.averaged.any():
            counter = sheet.definition.counters.get(name)
            low, high = np.full(sheet.length, np.nan), np.full(sheet.length, np.nan)
            if counter is not None:
                low, high = np.zeros(sheet.length), launches * part.values
            if counter is not None and counter.unit == PERCENT:
                low, high = np.maximum(100 - launches * (100 - part.values), 0.0), np.minimum(high, 100.0)
            least[name] = np.where(part.averaged, low, part.values)
            most[name] = np.where(part.averaged, high, part.values)
    if not cells.averaged.any():
        return cells.values, cells.values
    with np.errstate(all="ignore"):
        ends = [np.asarray(formula(values), dtype=np.float64) for values in (least, most)]
    return np.minimum(*ends), np.maximum(*ends)


def _rounding(sheet: CounterSheet, formula: Formula) -> Floats:
    """The most by which rounding moves one side of a check, (n_kernels,): half a count a launch of each counter."""
    parts = {name: cells.values for name in formula.names if (cells := sheet.look_up(name)) is not None}
    half = 0.5 * sheet.launches.rows.launches.astype(np.float64)
    change = np.zeros(sheet.length)
    with np.errstate(all="ignore"):
        value = formula(parts)
        for name, part in parts.items():
            counter = sheet.definition.counters.get(name)
            if counter is not None and counter.unit == COUNT:
                change += np.abs(formula({**parts, name: part + half * max(counter.expect, 1)}) - value)
    return np.nan_to_num(change)
