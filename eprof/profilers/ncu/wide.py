"""Nsight Compute's raw page: a row a launch, a column a metric, a row of units below the names."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eprof.profilers.ncu import derived, instances, parts
from eprof.profilers.ncu.csv import Lines, Rows, Section
from eprof.profilers.ncu.long import LABELS, NAME, Part, are_unlike, labels
from eprof.profilers.ncu.numbers import Array, Locale, Style, Unit, counted, is_whole, kind_of, unit_of, values
from eprof.rows.log import COUNT

FIXED = (
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context", "Stream", "Block Size",
    "Grid Size", "Device", "CC",
)  # fmt: skip
_INDEX = ("device__attribute_device_index", "launch__device_id")
_VERSION = ("device__attribute_compute_capability_major", "device__attribute_compute_capability_minor")
_SAMPLE = 64
_CELLS = 1 << 16  # that are read at once: of a few rows, a column alone takes as long as a hundred
_NO_UNIT = Unit(1.0, "", COUNT)


@dataclass
class Sample:
    """The first rows of a section in full, which show how the file writes numbers."""

    rows: list[list[str]] = field(default_factory=list)

    def add(self, section: Section, lines: Lines) -> None:
        """Take rows until there are enough."""
        for index in range(len(lines.starts)) if len(self.rows) < _SAMPLE else ():
            fields = section.split(lines.text(index))
            if len(fields) == section.prefix + len(section.columns) and fields[section.prefix]:
                self.rows.append(fields)
            if len(self.rows) == _SAMPLE:
                break


def columns_of(section: Section, keep: Container[str] | None) -> list[int] | None:
    """Places of the columns that are read; None for all."""
    if keep is None:
        return None
    told = (*FIXED, *_INDEX, *_VERSION, NAME, section.part)
    return [
        place
        for place, name in enumerate(section.columns, section.prefix)
        if name in told or _is_kept(LABELS.get(name, name), keep)
    ]


def _is_kept(name: str, keep: Container[str] | None) -> bool:
    return derived.is_read(name, keep) or instances.PER_OPCODE.fullmatch(name) is not None


def units_of(section: Section, lines: Lines, found: Rows) -> dict[int, Unit] | None:
    """The row of units: the first other line that begins with an empty field and is as long as the header."""
    for index in found.others[:3]:
        fields = section.split(lines.text(index))
        if len(fields) == section.prefix + len(section.columns) and not fields[section.prefix]:
            found.others.remove(index)
            return {place: unit_of(text) for place, text in enumerate(fields)}
    return None


def _metrics(section: Section) -> Iterator[tuple[int, str]]:
    """Place and name of the columns that are metrics; a name met again is told apart by a number."""
    seen: dict[str, int] = {}
    for place, name in enumerate(section.columns, section.prefix):
        if name not in FIXED:
            seen[name] = seen.get(name, 0) + 1
            own = LABELS.get(name, name)
            yield place, own if seen[name] == 1 else f"{own} ({seen[name]})"


class Wide:
    """One section of a raw page."""

    def __init__(self, section: Section, units: dict[int, Unit], found: Rows, sample: Sample) -> None:
        self.section, self.units, self.sample, self.stray = section, units, sample, 0
        self.metrics = list(_metrics(section))
        self.table = pa.concat_tables(found.tables) if found.tables else None
        if self.table is not None:
            good = pc.and_(*(pc.match_substring_regex(self._text(name), "^[0-9,.]+$") for name in ("ID", "Process ID")))
            self.stray = len(self.table) - (pc.sum(good).as_py() or 0)
            self.table = self.table.filter(good) if self.stray else self.table

    @property
    def rules(self) -> bool:
        """Whether there is no launch."""
        return self.table is None or not len(self.table)

    def _text(self, name: str) -> pa.Array:
        assert self.table is not None
        place = self.section.at(name)
        column = self.table[str(place)]
        return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column

    def look(self, locale: Locale) -> None:
        """Show numbers to the one who decides how the file writes them: of the first rows, or of all if need be."""
        own, places = Locale(), [place for place, _ in self.metrics]
        whole = np.array([self._is_whole(place, name) for place, name in self.metrics], dtype=bool)
        cells = [row[place] for row in self.sample.rows for place in places]
        own.look(instances.totals(pa.array(cells, pa.string())), np.tile(whole, len(self.sample.rows)))
        table = self.table
        there = set(table.column_names) if table is not None else set()
        for place, is_whole_ in zip(places, whole, strict=True) if not own.proof else ():
            if table is not None and str(place) in there:
                column = instances.totals(table[str(place)].combine_chunks())
                own.look(column, np.full(len(column), is_whole_))
        locale.join(own)

    def _is_whole(self, place: int, name: str) -> bool:
        """Whether the values of a column can have no decimals."""
        unit = self.units.get(place)
        return unit is not None and unit.factor == 1 and is_whole(name, unit.base)

    def _is_scaled(self, place: int) -> bool:
        unit = self.units.get(place, _NO_UNIT)
        return unit.factor != 1 and not unit.is_time

    def _cells(self, place: int) -> pa.Array:
        """The cells of a metric: with instances, the total before them; alone ("1; 2; 3") they are no number."""
        assert self.table is not None
        return instances.totals(self.table[str(place)].combine_chunks())

    def pivot(self, style: Style, keep: Container[str] | None) -> tuple[Part, list[str]]:
        """A row a launch; and the metrics that have several instances in a cell."""
        assert self.table is not None
        kept = {name: place for place, name in self.metrics if derived.is_read(name, keep)}
        kinds = {name: kind_of(name, self.units.get(place, _NO_UNIT)) for name, place in kept.items()}
        matrix, is_several = self._numbers(list(kept.values()), [kind == COUNT for kind in kinds.values()], style)
        numbers = dict(zip(kept, matrix, strict=True))
        data: dict[str, Array] = {}
        units: dict[str, str] = {}
        for place, name in self.metrics:
            own = self._by_opcode(place, name, style, keep)
            data |= own
            units |= dict.fromkeys(own, COUNT)
            if name in numbers:
                data[name], units[name] = numbers[name], kinds[name]
        rows = self._rows()
        rows["time_s"] = derived.seconds(numbers, rows["launches"])
        made = derived.totals(numbers, rows["time_s"], rows["launches"], keep)
        data |= made
        units |= dict.fromkeys(made, COUNT)
        units = {name: unit for name, unit in units.items() if keep is None or name in keep}
        lost = zip(kinds, np.isnan(matrix).sum(axis=1).tolist(), is_several.tolist(), strict=True)
        missing = {name: number for name, number, several in lost if number and not several}
        names = [name for _, name in self.metrics]
        scaled = [name for name, place in kept.items() if kinds[name] == COUNT and self._is_scaled(place)]
        twice = self._twice(numbers, style)
        clocks = derived.clocks(numbers, rows["device"], rows["time_s"], rows["launches"])
        part = Part(
            self.section.kind, rows, {name: data[name] for name in units}, units, names, missing, scaled, clocks, twice
        )
        return part, [name for name, several in zip(kinds, is_several, strict=True) if several]

    def _twice(self, numbers: Mapping[str, Array], style: Style) -> list[str]:
        """The metrics that have two columns with different values; the first is read."""
        assert self.table is not None
        found = []
        for place, name in self.metrics:
            first = numbers.get(name.rpartition(" (")[0])
            if first is not None and str(place) in self.table.column_names:
                factor = self.units.get(place, _NO_UNIT).factor
                if are_unlike(values(self._cells(place), style) * factor, first).any():
                    found.append(name.rpartition(" (")[0])
        return found

    def _numbers(self, columns: Sequence[int], is_count: Sequence[bool], style: Style) -> tuple[Array, Array]:
        """The values of the metrics in these columns, a row a metric; and which have several instances in a cell."""
        assert self.table is not None
        numbers, several = np.full((len(columns), len(self.table)), np.nan), np.zeros(len(columns), dtype=bool)
        step = max(1, _CELLS // len(self.table))
        for some in (slice(first, first + step) for first in range(0, len(columns), step)):
            places = columns[some]
            whole = pa.concat_arrays([chunk for place in places for chunk in self.table[str(place)].chunks])
            cells = instances.totals(whole)
            shape = (len(places), len(self.table))
            factors = np.array([self.units.get(place, _NO_UNIT).factor for place in places])[:, None]
            numbers[some] = counted(values(cells, style).reshape(shape) * factors, np.array(is_count[some])[:, None])
            if cells is not whole:
                lost = pc.and_(pc.match_substring(whole, ";"), pc.equal(cells, ""))
                several[some] = lost.to_numpy(zero_copy_only=False).reshape(shape).any(axis=1)
        return numbers, several

    def _by_opcode(self, place: int, name: str, style: Style, keep: Container[str] | None) -> dict[str, Array]:
        """Counters for each opcode, if the metric has a value for each."""
        if self.table is None or not instances.PER_OPCODE.fullmatch(name):
            return {}
        told = instances.opcodes(name, self.table[str(place)].to_pylist(), style)
        return instances.columns(name, told, values(self._cells(place), style), keep)

    def _words(self, *names: str) -> list[str | None]:
        """The texts of the first of these columns that there is."""
        assert self.table is not None
        for name in names:
            if self.section.at(name) is not None:
                return [str(one) if one else None for one in self._text(name).to_pylist()]
        return [None] * len(self.table)

    def _rows(self) -> dict[str, Array]:
        kernel, process, part = self._words("Kernel Name"), self._words("Process ID"), self.section.part
        told = {} if part is None else {"part": parts.labels(self.section, self._words(part))}
        return {
            **{name: np.array(cells, dtype=object) for name, cells in told.items()},
            "device": labels(_whole(self._words("Device", *_INDEX)), self._capabilities(), self._words(NAME)),
            "kernel": np.array([one or "" for one in kernel], dtype=object),
            "process": np.array(process, dtype=object),
            "launches": np.ones(len(kernel), dtype=np.int64),
        }

    def _capabilities(self) -> list[str | None]:
        if self.section.at("CC") is not None:
            return self._words("CC")
        major, minor = (_whole(self._words(name)) for name in _VERSION)
        return [f"{a}.{b}" if a and b else None for a, b in zip(major, minor, strict=True)]


def _whole(words: Sequence[str | None]) -> list[str | None]:
    """Numbers without the decimals that old versions write: "6.00" is "6"."""
    return [word.replace(",", ".").partition(".")[0] if word else None for word in words]
