"""Nsight Compute's raw page: a row a launch, a column a metric, a row of units below the names."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct, field

from eprof.base.arrays import Array
from eprof.logs.rows import sections
from eprof.logs.rows.log import COUNT
from eprof.logs.rows.numbers import (
    NO_UNIT,
    Locale,
    Style,
    Unit,
    differ,
    is_whole,
    kind_of,
    known_counts,
    unit_of,
    values,
)
from eprof.logs.rows.sections import Cells, Piece, Section, texts_of
from eprof.profilers.ncu import derived, headers, opcodes
from eprof.profilers.ncu.sheet import GPU_NAME, Remarks, Sheet, metric_of

FIXED = (
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context", "Stream", "Block Size",
    "Grid Size", "Device", "CC",
)  # fmt: skip
_NUMBERS = ("ID", "Process ID")
_INDEX = ("device__attribute_device_index", "launch__device_id")
_VERSION = ("device__attribute_compute_capability_major", "device__attribute_compute_capability_minor")
_SAMPLE = 64
_OF_NUMBERS = frozenset("0123456789,.")


class Sample(Struct):
    """The first rows of a section in full, which show how the file writes numbers."""

    rows: list[list[str]] = field(default_factory=list)

    def add(self, section: Section, lines: Sequence[str]) -> None:
        """Take rows of ncu's raw page until there are enough."""
        for line in lines:
            if len(self.rows) == _SAMPLE:
                break
            fields = section.split(line)
            if len(fields) == section.width and fields[section.prefix]:
                self.rows.append(fields)


def columns_of(section: Section, keep: Container[str] | None) -> list[int]:
    """Places of the columns of ncu's raw page that are read."""
    about = (*FIXED, *_INDEX, *_VERSION, GPU_NAME, section.part)
    return [
        place
        for place, name in enumerate(section.columns, section.prefix)
        if keep is None
        or name in about
        or derived.is_read(metric_of(name), keep)
        or opcodes.PER_OPCODE.fullmatch(metric_of(name))
    ]


def units_of(section: Section, lines: Sequence[str], others: list[int]) -> dict[int, Unit] | None:
    """The row of units of ncu's raw page: the first other line with an empty first field, as long as the header.

    It is taken out of `others`, the places of the lines that are no rows.
    """
    for index in others[:3]:
        fields = section.split(lines[index])
        if len(fields) == section.width and not fields[section.prefix]:
            others.remove(index)
            return {place: unit_of(text) for place, text in enumerate(fields)}
    return None


def _metrics(section: Section) -> Iterator[tuple[int, str]]:
    seen: dict[str, int] = {}
    for place, name in enumerate(section.columns, section.prefix):
        if name not in FIXED:
            seen[name] = seen.get(name, 0) + 1
            own = metric_of(name)
            yield place, own if seen[name] == 1 else f"{own} ({seen[name]})"


class Wide:
    """The launches of a section of a raw page. stray: how many rows lack a number that every row has."""

    def __init__(self, section: Section, units: Mapping[int, Unit], pieces: Sequence[Piece], sample: Sample) -> None:
        self.section = section
        self.units = units
        self.sample = sample
        self.metrics = list(_metrics(section))
        self.table: Piece = sections.together(pieces) if pieces else {}
        self.size, self.stray = 0, 0
        if pieces:
            numbers = zip(*map(self._texts, _NUMBERS), strict=True)
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

    def _words(self, *names: str) -> list[str | None]:
        for name in names:
            if name in self.section.columns:
                return [cell or None for cell in self._texts(name)]
        return [None] * self.size

    def look(self, locale: Locale) -> None:
        """Show how ncu's raw page writes numbers: its first rows, or all if need be."""
        own = Locale()
        units = {place: self.units.get(place) for place, _ in self.metrics}
        unscaled = {place: unit.base for place, unit in units.items() if unit is not None and unit.factor == 1}
        whole = {place: place in unscaled and is_whole(name, unscaled[place]) for place, name in self.metrics}
        for row in self.sample.rows:
            own.look(texts_of(opcodes.totals([row[place] for place in whole])), whole.values())
        for place in whole:
            if not own.proof and place in self.table:
                own.look(texts_of(opcodes.totals(self.table[place])), [whole[place]] * self.size)
        locale.join(own)

    def sheet(self, style: Style, keep: Container[str] | None) -> Sheet:
        """A row a launch of ncu's raw page, and its metrics."""
        places = {name: place for place, name in self.metrics if derived.is_read(name, keep)}
        units = {name: self.units.get(place, NO_UNIT) for name, place in places.items()}
        matrix = np.empty((len(places), self.size))
        for row, name in zip(matrix, places, strict=True):
            unit = units[name]
            is_count = np.array(kind_of(name, unit) == COUNT)
            row[:] = known_counts(values(self._cells(places[name]), style) * unit.factor, is_count)
        capability = self._words("CC")
        if "CC" not in self.section.columns:
            versions = zip(*(_whole(self._words(name)) for name in _VERSION), strict=True)
            capability = [f"{major}.{minor}" if major and minor else None for major, minor in versions]
        several = [name for name, place in places.items() if self._is_several(place)]
        lost = dict(zip(places, np.isnan(matrix).sum(axis=1).tolist(), strict=True))
        counts = [name for name, unit in units.items() if kind_of(name, unit) == COUNT]
        return Sheet(
            kind=self.section.kind,
            device=_whole(self._words("Device", *_INDEX)),
            capability=capability,
            gpu=self._words(GPU_NAME),
            kernel=self._texts("Kernel Name"),
            process=self._words("Process ID"),
            part=headers.part_labels(self.section, self._words),
            launches=np.ones(self.size, dtype=np.int64),
            units=units,
            values=matrix,
            by_opcode=self._by_opcode(style, keep),
            remarks=Remarks(
                metrics=[name for _, name in self.metrics],
                missing={name: number for name, number in lost.items() if number and name not in several},
                scaled=[name for name in counts if units[name].is_scaled],
                twice=self._twice(dict(zip(places, matrix, strict=True)), style),
                several=several,
            ),
        )

    def _cells(self, place: int) -> Cells:
        """The cells of a metric on ncu's raw page: with instances, the total before them; "1; 2; 3" is no number."""
        return opcodes.totals(self.table[place])

    def _is_several(self, place: int) -> bool:
        """Whether a cell of ncu's raw page holds the values of several instances, and no total."""
        cells = self.table[place]
        if not isinstance(cells, list) and not cells.str.contains(";", literal=True).any():
            return False
        return any(opcodes.is_several(cell) for cell in texts_of(cells))

    def _twice(self, numbers: Mapping[str, Array], style: Style) -> list[str]:
        """The metrics that have two columns with different values on ncu's raw page; the first is read."""
        twice = []
        for place, name in self.metrics:
            first = numbers.get(name.rpartition(" (")[0])
            if first is not None and place in self.table:
                again = values(self._cells(place), style) * self.units.get(place, NO_UNIT).factor
                if differ(again, first).any():
                    twice.append(name.rpartition(" (")[0])
        return twice

    def _by_opcode(self, style: Style, keep: Container[str] | None) -> dict[str, Array]:
        """Counters for each opcode, of the metrics on ncu's raw page that have a value for each."""
        counters: dict[str, Array] = {}
        for place, name in self.metrics:
            if opcodes.PER_OPCODE.fullmatch(name):
                by_opcode = opcodes.opcodes(texts_of(self.table[place]), style)
                counters |= opcodes.columns(name, by_opcode, values(self._cells(place), style), keep)
        return counters


def _whole(words: Sequence[str | None]) -> list[str | None]:
    """Numbers without the decimals that old versions of ncu write on their raw page: "6.00" is "6"."""
    return [word.replace(",", ".").partition(".")[0] if word else None for word in words]
