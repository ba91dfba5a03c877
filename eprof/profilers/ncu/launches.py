"""The rows of Nsight Compute's tables as sheets of launches.

`Long`: a row a metric, of launches (details page, `--metrics`) and summaries of kernels. `Wide`: the raw page, a row a
launch and a column a metric, a row of units below the names.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct

from eprof.base.arrays import Array, alike
from eprof.base.errors import LogError
from eprof.base.optional import gathered
from eprof.base.text import pattern, phrase, when
from eprof.logs.log import COUNT, NO_RANGE, Names
from eprof.profilers.ncu import LONG, RAW, SUMMARY, VALUE, derived
from eprof.profilers.ncu.sheet import GPU_NAME, Remarks, Sheet, labels_of_page, metric_of
from eprof.readers import sections
from eprof.readers.cells import NO_UNIT, Locale, Style, Unit, differ, is_whole, kind_of, unit_of, values
from eprof.readers.sections import Cells, CsvSection, Piece, names_of, texts_of

_LABEL_AND_NAME = pattern(r"^.* \(([a-z][a-z0-9]*__[\w.]+)\)$")
_SAMPLE = 4096
_SIZE = pattern(r"\((\d{1,10}), ?(\d{1,10}), ?(\d{1,10})\)")
_WHOLE = pattern("[0-9][0-9,]{0,15}")
_KEYS = {
    LONG: ("Process ID", "ID"),
    SUMMARY: ("Process ID", "Kernel Name", "Block Size", "Grid Size", "Device", "CC"),
}
_SHAPE = {"Grid Size": "launch__grid_size", "Block Size": "launch__block_size"}
_READ = ("Process ID", "Kernel Name", "Device", "CC", "Metric Name", "Metric Unit", "Invocations", *_SHAPE)
_NUMBERS = ("ID", "Process ID", "Invocations")
_FIXED = (
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context", "Stream", "Block Size",
    "Grid Size", "Device", "CC",
)  # fmt: skip
_INDEX = ("device__attribute_device_index", "launch__device_id")
_VERSION = ("device__attribute_compute_capability_major", "device__attribute_compute_capability_minor")
_OF_NUMBERS = frozenset("0123456789,.")
# With `--nvtx`, tables of launches have a column "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:
# Msg_Type:Msg". A cell holds the thread, then each open range in quotes, the outermost first:
# `1  "<default domain>:step:none:none:none:none:none:none"  "<default domain>:solve:none:none:..." `.
_RANGE = pattern(r'"([^"]+)"')
_AFTER = 6  # fields that follow the name of a range: type and value of its payload, of its colour, of its message


def columns_of(section: CsvSection, keep: Container[str] | None) -> list[int]:
    """Places of the columns of an ncu table that are read. keep: counters to hold, by name; None for all."""
    if section.kind != RAW:
        return list(_long_columns(section).values())
    about = (*_FIXED, *_INDEX, *_VERSION, GPU_NAME, section.part)
    return [
        place
        for place, name in enumerate(section.columns, section.prefix)
        if keep is None
        or name in about
        or derived.is_read(metric_of(name), keep)
        or derived.PER_OPCODE.fullmatch(metric_of(name))
    ]


def _long_columns(section: CsvSection) -> dict[str, int]:
    """Name -> place of the columns that are read of an ncu table with a row a metric; that of the values is last."""
    names = dict.fromkeys([*_KEYS[section.kind], *_READ, section.part or "", VALUE[section.kind]])
    places = {name: section.at(name) for name in names}
    return {name: place for name, place in places.items() if place is not None}


def places_of_names(section: CsvSection) -> list[int]:
    """The places of columns in which few different texts come again and again; [] on the raw page."""
    if section.kind != LONG:
        return []
    own = ("ID", VALUE[LONG])
    return [place for name, place in _long_columns(section).items() if name not in own]


def is_advice(section: CsvSection, fields: list[str]) -> bool:
    """Whether a row of ncu's details page has no metric: a rule's, which `Long` leaves out without a word."""
    metric, numbers = section.at("Metric Name"), section.places(_NUMBERS)
    return metric is not None and not fields[metric] and all(_WHOLE.fullmatch(fields[place]) for place in numbers)


class Long(Struct, dict=True):
    """The rows of an ncu table with a row a metric, without rows that have no metric.

    texts: the cells of the metrics as they are printed. cells: the same, without values of instances. stray: how many
    rows lack a number that every row has.
    """

    section: CsvSection
    columns: dict[str, Names]
    texts: Cells
    cells: Cells
    stray: int = 0

    @classmethod
    def of(cls, section: CsvSection, pieces: Sequence[Piece]) -> Long:
        """The held rows of an ncu table of a row a metric, without rows of rules, or lines that only look like rows."""
        places = _long_columns(section)
        table = sections.joined(pieces) or dict[int, Cells]((place, []) for place in places.values())
        texts = table[places.pop(VALUE[section.kind])]
        columns = {name: names_of(table[place]) for name, place in places.items()}
        # Metrics by name where the page has label and name, as `--print-metric-name label-name` does.
        labels = columns["Metric Name"]
        columns["Metric Name"] = labels.renamed(_LABEL_AND_NAME.sub(r"\1", label) for label in labels.names)

        has_numbers = np.ones(len(texts), dtype=bool)
        for name in _NUMBERS:
            if name in columns:
                has_numbers &= _where(columns[name], [bool(_WHOLE.fullmatch(word)) for word in columns[name].names])
        metric = columns["Metric Name"]
        good = has_numbers & _where(metric, [bool(word) for word in metric.names])
        if not good.all():
            columns = {name: column.chosen(good) for name, column in columns.items()}
            texts = sections.chosen(texts, good)
        return cls(section, columns, texts, derived.without_instances(texts), int((~has_numbers).sum()))

    @staticmethod
    def split_last(section: CsvSection, pieces: Sequence[Piece]) -> tuple[Piece, Piece]:
        """(rows of whole launches, rows of the last launch) of an ncu table; the last may go on in the next lines."""
        table = sections.joined(pieces)
        last = np.ones(sections.size(table), dtype=bool)
        for place in section.places(_KEYS[LONG]):
            last &= sections.are_last(table[place])
        cut = int((np.flatnonzero(~last) + 1).max(initial=0))
        # As lists, for a slice would keep the whole column in memory.
        rest: Piece = {place: texts_of(cells[cut:]) for place, cells in table.items()}
        return {place: cells[:cut] for place, cells in table.items()}, rest

    @property
    def is_empty(self) -> bool:
        """Whether no row has a metric of ncu: there may be rows of rules."""
        return not len(self.texts)

    @cached_property
    def launches(self) -> tuple[Array, Array]:
        """(the place of each launch's first row, the number of each row's launch) in an ncu table."""
        keys = [self.columns[name] for name in _KEYS[self.section.kind] if name in self.columns]
        changes = np.ones(len(self.texts), dtype=bool)
        changes[1:] = np.logical_or.reduce([key.codes[1:] != key.codes[:-1] for key in keys])
        starts = np.flatnonzero(changes)
        launch, first = alike(*(key.codes[starts] for key in keys))
        return starts[first], np.repeat(launch, np.diff(starts, append=len(changes)))

    def names(self, name: str) -> Names:
        """The cell of a column of an ncu table for each launch, as codes and texts."""
        first = self.launches[0]
        if name not in self.columns:
            return Names((), np.full(len(first), -1, dtype=np.int32))
        return self.columns[name].chosen(first)

    def look(self, locale: Locale) -> None:
        """Let `locale` see how ncu wrote numbers: some numbers of metrics, or all if some do not settle it."""
        own = Locale()
        for step in dict.fromkeys((max(1, len(self.cells) // _SAMPLE), 1)):
            if own.proof:
                break
            sample = np.arange(len(self.cells)) % step == 0
            names, units = (self.columns[column].chosen(sample) for column in ("Metric Name", "Metric Unit"))
            kinds, first = alike(names.codes, units.codes)
            pairs = zip(names.chosen(first).texts(), units.chosen(first).texts(), strict=True)
            # Averages of a summary may have decimals, whatever they are of.
            whole = [self.section.kind == LONG and is_whole(metric_of(name), unit) for name, unit in pairs]
            own.look(texts_of(sections.chosen(self.cells, sample)), [whole[kind] for kind in kinds.tolist()])
        locale.join(own)

    def sheet(self, style: Style, keep: Container[str] | None) -> Sheet:
        """The `Sheet` of ncu's rows: a row a launch (or kernel of a summary) instead of a row a metric."""
        units, matrix, remarks = self._numbers(style, keep)
        launches = np.ones(len(self.launches[0]), dtype=np.int64)
        if self.section.kind == SUMMARY:
            launches = values([word or "" for word in self.names("Invocations").texts()], style).astype(np.int64)
        named = dict(zip(*self._rows_of(GPU_NAME, self.cells), strict=True))
        by_opcode: dict[str, Array] = {}
        if self.section.kind == LONG:  # a summary has averages
            for name in filter(derived.PER_OPCODE.fullmatch, self.columns["Metric Name"].names):
                own, texts = self._rows_of(name, self.texts)
                for counter, numbers in derived.opcodes_of_cells(name, texts, style, keep).items():
                    by_opcode[counter] = np.full(len(self.launches[0]), np.nan)
                    by_opcode[counter][own] = numbers
        for column, metric in _SHAPE.items():
            if column in self.columns and metric not in units and keep is not None and metric in keep:
                units[metric] = NO_UNIT
                words = self.names(column)
                sizes = [_SIZE.fullmatch(word) for word in words.names]  # 4096 blocks or threads of "(64, 64, 1)"
                products = [math.prod(map(float, size.groups())) if size else np.nan for size in sizes]
                matrix = np.vstack([matrix, launches * np.array([*products, np.nan])[words.codes]])
        return Sheet(
            kind=self.section.kind,
            device=self.names("Device"),
            capability=self.names("CC"),
            gpu=Names.of(map(named.get, range(len(launches)))),
            kernel=self.names("Kernel Name"),
            process=self.names("Process ID"),
            part=_part_labels(self.section, self.names),
            launches=launches,
            units=units,
            values=matrix,
            by_opcode=by_opcode,
            remarks=remarks,
        )

    def _numbers(self, style: Style, keep: Container[str] | None) -> tuple[dict[str, Unit], Array, Remarks]:
        """(units by metric, values, remarks) of ncu's metrics that are read; values: (n_metrics, n_launches)."""
        metric, metrics = self._metrics()
        units = {name: unit for name, unit in metrics.items() if derived.is_read(name, keep)}
        is_read = np.array([name in units for name in metrics], dtype=bool)
        rows = is_read[metric]
        metric = (np.cumsum(is_read) - 1)[metric[rows]]
        launch = self.launches[1][rows]
        is_count = np.array([kind_of(name, unit) == COUNT for name, unit in units.items()], dtype=bool)[metric]
        printed = self.columns["Metric Unit"]
        factors = np.array([unit_of(text).factor for text in printed.names])[printed.codes[rows]]
        numbers = values(sections.chosen(self.cells, rows), style) * factors
        numbers[is_count & (numbers < 0)] = np.nan

        # A metric that two sections show: the first counts.
        matrix = np.full((len(units), len(self.launches[0])), np.nan)
        known = np.flatnonzero(~np.isnan(numbers))[::-1]
        matrix[metric[known], launch[known]] = numbers[known]
        taken = matrix[metric, launch]

        def counted(chosen: Array) -> dict[str, int]:
            number = np.bincount(metric[chosen], minlength=len(units)).tolist()
            return {name: times for name, times in zip(units, number, strict=True) if times}

        remarks = Remarks(
            metrics=list(metrics),
            missing=counted(np.isnan(taken)),
            scaled=[name for name in counted((factors != 1) & is_count) if units[name].is_scaled],
            twice=list(counted(differ(numbers, taken))),
        )
        return units, matrix, remarks

    def _metrics(self) -> tuple[Array, dict[str, Unit]]:
        """(each row's metric by number, metrics with their units) in an ncu table; one label in two units is two."""
        labels, texts = self.columns["Metric Name"], self.columns["Metric Unit"]
        printed = [unit_of(text) for text in texts.names]
        units = list({unit.base: unit for unit in reversed(printed)}.values())
        place = {unit.base: number for number, unit in enumerate(units)}
        unit = np.array([place[unit.base] for unit in printed], dtype=np.int64)[texts.codes]
        metric, first = alike(unit, labels.codes)
        metrics: dict[str, Unit] = {}
        for row in first.tolist():
            label = labels.names[labels.codes[row]]
            own = units[unit[row]]
            name = labels_of_page()["rate"].get(label, {}).get(own.base) or metric_of(label)
            while name in metrics:
                label = name = f"{label} ({own.base or 'without unit'})"
            metrics[name] = own
        return metric, metrics

    def _rows_of(self, metric: str, cells: Cells) -> tuple[list[int], list[str]]:
        """(launch, cell) of each row of one metric of ncu, as two lists; cells: of all rows."""
        names = self.columns["Metric Name"]
        rows = names.codes == [*names.names, metric].index(metric)
        return self.launches[1][rows].tolist(), texts_of(sections.chosen(cells, rows))


def _where(column: Names, is_good: Sequence[bool]) -> Array:
    return np.array([*is_good, False], dtype=bool)[column.codes]


def check_order(highest: dict[str, int], launches: Long | Wide, path: str) -> None:
    """Raises LogError if launches in rows of ncu's table may have been added up already: they would look like new ones.

    highest: the highest number of a launch of each process so far, which is brought up to date.
    """
    if isinstance(launches, Wide) or "ID" not in launches.columns or launches.is_empty:
        return
    texts = zip(launches.names("Process ID").texts(), launches.names("ID").texts(), strict=True)
    numbers = gathered((process or "", int((number or "").replace(",", ""))) for process, number in texts)
    for process, own in numbers.items():
        before = highest.get(process, -1)
        if min(own) <= before:
            raise LogError(
                f"{path}: launch {min(own)} of process {process} comes far behind launch {before}, and so long "
                "a log is added up launch by launch; write one log a process, with its launches in order of ID"
            )
        highest[process] = max(own)


def units_of(section: CsvSection, lines: Sequence[str], others: list[int]) -> dict[int, Unit] | None:
    """Place -> unit by the row of units of ncu's raw page, which is taken out of `others`; None if it is not there."""
    for index in others[:3]:
        fields = section.split(lines[index])
        if len(fields) == section.width and not fields[section.prefix]:
            others.remove(index)
            return {place: unit_of(text) for place, text in enumerate(fields)}
    return None


class Wide:
    """The launches in a table of ncu's raw page, a column a metric. stray: rows without a number that every row has.

    sample: rows in full, which show how the file writes numbers.
    """

    def __init__(
        self, section: CsvSection, units: Mapping[int, Unit], pieces: Sequence[Piece], sample: Sequence[list[str]]
    ) -> None:
        self.section = section
        self.units = units
        self.sample = sample
        self.metrics: list[tuple[int, str]] = []
        seen: Counter[str] = Counter()
        for place, name in enumerate(section.columns, section.prefix):
            if name not in _FIXED:
                seen[name] += 1
                again = when(seen[name] > 1, f" ({seen[name]})")
                self.metrics.append((place, f"{metric_of(name)}{again}"))
        self.table = sections.joined(pieces)
        self.size, self.stray = 0, 0
        if pieces:
            numbers = zip(*map(self._texts, _NUMBERS[:2]), strict=True)
            good = np.array([all(cell and _OF_NUMBERS.issuperset(cell) for cell in row) for row in numbers])
            self.size = int(good.sum())
            self.stray = len(good) - self.size
        if self.stray:
            self.table = {place: sections.chosen(cells, good) for place, cells in self.table.items()}

    @property
    def is_empty(self) -> bool:
        """Whether ncu's raw page has no launch."""
        return not self.size

    def _texts(self, name: str) -> list[str]:
        return texts_of(self.table[self.section.at(name) or 0])

    def _names(self, *names: str) -> Names:
        """The cells of the first of these columns that the raw page has; None: not told."""
        name = next((name for name in names if name in self.section.columns), None)
        return Names.of([None] * self.size if name is None else (cell or None for cell in self._texts(name)))

    def look(self, locale: Locale) -> None:
        """Let `locale` see how ncu's raw page writes numbers: its first rows, or all if these do not settle it."""
        own = Locale()
        unscaled = {place: unit.base for place, unit in self.units.items() if unit.factor == 1}
        whole = {place: place in unscaled and is_whole(name, unscaled[place]) for place, name in self.metrics}
        for row in self.sample:
            own.look(texts_of(derived.without_instances([row[place] for place in whole])), whole.values())
        for place in whole:
            if not own.proof and place in self.table:
                own.look(texts_of(derived.without_instances(self.table[place])), [whole[place]] * self.size)
        locale.join(own)

    def _numbers(self, place: int, style: Style) -> Array:
        """The numbers in a metric's column of ncu's raw page, in base units; NaN where a cell holds none."""
        return values(derived.without_instances(self.table[place]), style) * self.units.get(place, NO_UNIT).factor

    def sheet(self, style: Style, keep: Container[str] | None) -> Sheet:
        """The `Sheet` of ncu's raw page: a row a launch."""
        places = {name: place for place, name in self.metrics if derived.is_read(name, keep)}
        units = {name: self.units.get(place, NO_UNIT) for name, place in places.items()}
        matrix = np.empty((len(places), self.size))
        remarks = Remarks(metrics=[name for _, name in self.metrics])
        for row, (name, place) in zip(matrix, places.items(), strict=True):
            row[:] = self._numbers(place, style)
            if kind_of(name, units[name]) == COUNT:
                row[row < 0] = np.nan
                if units[name].is_scaled:
                    remarks.scaled.append(name)
            lost = int(np.isnan(row).sum())
            if derived.has_several_instances(self.table[place]):
                remarks.several.append(name)
            elif lost:
                remarks.missing[name] = lost
        by_opcode: dict[str, Array] = {}
        row_of = dict(zip(places, matrix, strict=True))
        for place, name in self.metrics:
            if derived.PER_OPCODE.fullmatch(name):
                by_opcode |= derived.opcodes_of_cells(name, self.table[place], style, keep)
            first = name.rpartition(" (")[0]  # of a metric that has two columns the first is read
            if first in row_of and place in self.table and differ(self._numbers(place, style), row_of[first]).any():
                remarks.twice.append(first)
        capability = self._names("CC")
        if "CC" not in self.section.columns:
            versions = zip(*(_whole(self._names(name)).texts() for name in _VERSION), strict=True)
            capability = Names.of(phrase("{}.{}", *version) or None for version in versions)
        return Sheet(
            kind=self.section.kind,
            device=_whole(self._names("Device", *_INDEX)),
            capability=capability,
            gpu=self._names(GPU_NAME),
            kernel=Names.of(self._texts("Kernel Name")),
            process=self._names("Process ID"),
            part=_part_labels(self.section, self._names),
            launches=np.ones(self.size, dtype=np.int64),
            units=units,
            values=matrix,
            by_opcode=by_opcode,
            remarks=remarks,
        )


def _whole(words: Names) -> Names:
    """Numbers without the decimals that old versions of ncu write on their raw page: "6.00" is "6"."""
    return words.renamed(word.replace(",", ".").partition(".")[0] for word in words.names)


def _part_labels(section: CsvSection, names: Callable[[str], Names]) -> Names | None:
    """The part of each launch of an ncu table, None if no parts are wanted. names: gives the cells of a column."""
    if section.part is None:
        return None
    cells = [cell or "" for cell in names(section.part).texts()]
    if section.part == "Stream":
        return Names.of(cell.strip() or None for cell in cells)
    ranges = {cell: innermost(cell) for cell in set(cells)}
    return Names.of(ranges[cell] for cell in cells)


def innermost(cell: str) -> str:
    """The name of the innermost NVTX push/pop range in a cell of ncu's; `NO_RANGE` if it has none."""
    ranges = _RANGE.findall(cell)
    if not ranges:
        return NO_RANGE
    fields = str(ranges[-1]).partition(":")[2].rsplit(":", _AFTER)
    return fields[0].strip() or str(ranges[-1])
