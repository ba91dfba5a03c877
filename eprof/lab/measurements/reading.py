"""Reads files of measurements by a column mapping: CSV (also compressed) and Parquet.

A row that cannot be used is left out and named; what is wrong with most rows is an error (`values.py`).
"""

import io
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
from msgspec import Struct, field
from msgspec.structs import replace

from eprof.base.arrays import Bools, wraps
from eprof.base.errors import EprofError
from eprof.base.kernels import selector
from eprof.base.optional import either, mapped
from eprof.base.resources import opened
from eprof.base.text import brief, counted, few, pattern, phrase
from eprof.base.vocabulary import COUNTS
from eprof.lab.measurements import mapping as mappings
from eprof.lab.measurements import values
from eprof.lab.measurements.mapping import ENERGIES_ONLY, Cells, Columns
from eprof.lab.measurements.values import MeasurementError, Measurements, numbers
from eprof.logs import stream

_MOST_BYTES = 256 << 20
_PACKED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_FIELDS = pattern(r"Expected (\d+) fields in line (\d+), saw (\d+)")  # what pandas says of a row that is too long
_LOOK_BYTES = 1 << 16
_COMMA, _POINT = pattern(rb"[-+]?\d+,\d+(e[-+]?\d+)?", re.I), pattern(rb"[-+]?\d+\.\d+(e[-+]?\d+)?", re.I)


def table(path: Path, rows: int | None = None) -> pd.DataFrame:
    """A file of measurements as a table, a row each; of a CSV the first `rows` only. Raises MeasurementError."""
    suffix = path.suffix.lower()
    if suffix in (".zip", ".xz", ".tar", ".tgz"):
        as_they_are = f"{', '.join(_PACKED)} are read as they are"
        raise MeasurementError(f"{path}: is packed as {suffix}; unpack it first ({as_they_are}).")
    try:
        with opened(path) as file:
            if suffix == ".json":
                frame = _tuned(file)
            else:
                frame = _parquet(file) if suffix == ".parquet" else _csv(file, suffix, rows)
    except FileNotFoundError as err:
        raise MeasurementError(f"{path}: there is no such file.") from err
    except IsADirectoryError as err:
        raise MeasurementError(f"{path}: is a directory, but not a run directory of eprof.") from err
    except pd.errors.EmptyDataError as err:
        raise MeasurementError(f"{path}: is empty; measurements are a CSV or Parquet table with a header.") from err
    except (pd.errors.ParserError, UnicodeDecodeError, ValueError, OSError) as err:
        reason = " ".join(str(getattr(err, "strerror", None) or err).split())[:120]
        if fields := _FIELDS.search(reason):
            reason = f"line {fields[2]} has {fields[3]} columns, those before it {fields[1]}"
        raise MeasurementError(f"{path}: is not a CSV or Parquet table ({reason}).") from err
    frame.columns = pd.Index([str(name).strip() for name in frame.columns])
    if frame.columns.has_duplicates:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise MeasurementError(f"{path}: has two columns called `{twice}`; rename one.")
    if not len(frame):
        raise MeasurementError(f"{path}: has a header but no rows.")
    return frame


def _csv(file: BinaryIO, suffix: str, rows: int | None) -> pd.DataFrame:
    """A CSV file, unpacked by its suffix, as a table of its first `rows`, without names of rows. Raises ValueError."""
    unpacked: Any = file
    if suffix in _PACKED:
        import pyarrow as pa

        unpacked = pa.CompressedInputStream(pa.PythonFile(file, mode="r"), _PACKED[suffix])
    bounded = io.BufferedReader(_Bounded(unpacked, file), 1 << 18)
    separator, decimal = _written(bounded.peek(_LOOK_BYTES)[:_LOOK_BYTES])
    frame = pd.read_csv(bounded, skip_blank_lines=False, nrows=rows, sep=separator, decimal=decimal)
    if isinstance(frame.index, pd.RangeIndex):
        return frame
    # Pandas takes the first cells of rows that have more than the header for their names. If those at the end are all
    # empty, they come of a separator there; one more in front of every row is a name, as R writes them.
    more = frame.index.nlevels
    last = frame.iloc[:, -more:]
    if last.isna().all(axis=None):
        moved = frame.reset_index().iloc[:, : len(frame.columns)]
        return moved.set_axis(frame.columns, axis=1)
    if more == 1 and frame.index.is_unique and last.notna().all(axis=None):
        return frame.reset_index(drop=True)
    raise ValueError("its rows have more cells than its header")


def _written(start: bytes) -> tuple[str, str]:
    """The separator of cells in a file of measurements, and the decimal point, from its first bytes.

    Cells are parted by what the header has most of. The point is a comma if cells of the first rows are numbers with a
    comma, and none is a number with a point: then it is not known which of the two it is, and a point is a point.
    """
    header, _, rest = start.partition(b"\n")
    separator = max((",", ";", "\t"), key=lambda separator: header.count(separator.encode()))
    if separator == ",":
        return separator, "."
    whole = rest if len(start) < _LOOK_BYTES else rest.rpartition(b"\n")[0]
    cells = [cell.strip(b' \r"') for line in whole.split(b"\n") for cell in line.split(separator.encode())]
    with_comma = any(_COMMA.fullmatch(cell) for cell in cells)
    return separator, "," if with_comma and not any(_POINT.fullmatch(cell) for cell in cells) else "."


class _Bounded(io.RawIOBase):
    """A stream that ends with a ValueError where it gives more than any file of measurements holds."""

    def __init__(self, stream: Any, packed: BinaryIO) -> None:
        super().__init__()
        self._stream, self._packed, self._done = stream, packed, 0

    def readable(self) -> bool:
        """True, as pyarrow and io ask."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into `buffer`; 0 at the end."""
        chunk = self._stream.read(len(buffer))
        self._done += len(chunk)
        if self._done > _MOST_BYTES:
            raise ValueError(f"it holds more than {_MOST_BYTES >> 20} MB of text")
        if self._stream is not self._packed and stream.is_bomb(self._done, self._packed.tell()):
            raise ValueError("it unpacks to hundreds of times its size, which no measurements do")
        buffer[: len(chunk)] = chunk
        return len(chunk)


def _tuned(file: BinaryIO) -> pd.DataFrame:
    """The cache of Kernel Tuner as a table, a row each configuration. Raises ValueError: it is none."""
    cache = json.loads(file.read(_MOST_BYTES))
    if not isinstance(cache, dict) or not isinstance(cache.get("cache"), dict):
        raise ValueError("JSON is read of Kernel Tuner, which has a `cache`")
    cells = [{key: cell for key, cell in row.items() if not isinstance(cell, list)} for row in cache["cache"].values()]
    # Its times are in ms.
    return pd.DataFrame(cells).rename(columns={"time": "time_ms"}).assign(kernel=cache.get("kernel_name", "-"))


def _parquet(file: BinaryIO) -> pd.DataFrame:
    """A Parquet file as a table, a named index as columns. Raises ValueError: it has over 50 million cells."""
    from pyarrow import parquet

    about = parquet.ParquetFile(file).metadata
    if about.num_rows * max(1, about.num_columns) > 50_000_000:
        raise ValueError(f"it says that it holds {about.num_rows:,} rows of {about.num_columns:,} columns")
    file.seek(0)
    frame = pd.read_parquet(file)
    return frame.reset_index(drop=all(name is None for name in frame.index.names))


_TABLES = tuple(f".{kind}{packed}" for kind in ("csv", "tsv") for packed in ("", ".gz", ".bz2", ".zst"))
_AN_EPROF_REPORT = {"power_w", "computation_j", "constant_j"}


def is_measurements(path: Path) -> bool:
    """Whether a file holds measured power (a mapping knows its columns), and not what a profiler wrote."""
    if path.is_dir() or not path.exists():
        return False
    name = path.name.lower()
    if name.endswith(".parquet"):
        return True
    if not name.endswith(_TABLES):
        return False
    try:
        mappings.choose(table(path, 50), str(path))
    except (EprofError, ValueError):
        # A profiler's log is no table from its first line on; its reader says better what is wrong with it.
        return False
    return True


def read(
    paths: str | Path | Iterable[str | Path],
    mapping: str | Columns | None = None,
    reference: tuple[float, float] | None = None,
    without: Collection[str] = (),
    device: str | None = None,
    kernels: Sequence[str] = (),
    only: Mapping[str, str] | None = None,
) -> Measurements:
    """Read one file, or several with the same columns, as one. A file that is named again is read once.

    mapping: a name, a path or a mapping; without one, that which suits the columns, and `device`, the name of the GPU.
    reference: core and memory MHz at which relative voltages are 1; without one, the mapping's, or the highest clocks
    that were measured; of a CPU the one setting that all ran at. without: terms that are not read, so that no row is
    left out for them. kernels: what `-k` names, which are kept; none: all. only: column -> the cell that rows must have
    there to be read. Raises MeasurementError, DefinitionError; EprofError: no kernel is left.
    """
    listed = [paths] if isinstance(paths, str | Path) else list(paths)
    if not listed:
        raise MeasurementError("Name at least one file of measurements.")
    frames = [(table(Path(path)), path) for path in dict.fromkeys(map(str, listed))]
    parts = [_of_frame(frame, label, mapping, reference, without, device, only or {}) for frame, label in frames]
    measured = _noted(joined(parts, reference))
    if not kernels:
        return measured
    is_wanted = selector(kernels)
    rows = measured.rows
    kept = rows["kernel"].map(is_wanted) | rows["benchmark"].map(is_wanted)
    if not kept.any():
        raise EprofError(f"No kernel is left: -k {', '.join(kernels)} matches none of the measured ones.")
    return measured.take(kept.to_numpy(dtype=bool))


def from_frame(frame: pd.DataFrame, label: str, mapping: str, reference: tuple[float, float] | None) -> Measurements:
    """The measurements in a table, called `label` in messages."""
    return _noted(_of_frame(frame, label, mapping, reference))


def _only(frame: pd.DataFrame, cells: Mapping[str, str], label: str) -> pd.DataFrame:
    """The rows of a table that have `cells`, column -> cell; numbers compare as such. Raises MeasurementError: none."""
    for column, cell in cells.items():
        if column not in frame:
            raise MeasurementError(f"{label}: --only {column}={cell}: there is no such column.")
        there = frame[column]
        is_wanted = (there.astype(str) == cell) | (numbers(there) == numbers(pd.Series([cell]))[0])
        if not is_wanted.any():
            known = few([brief(str(value), 40) for value in there.dropna().unique()], 6)
            raise MeasurementError(f"{label}: --only {column}={cell}: no row has that there, but {known}.")
        frame = frame[is_wanted]
    return frame


def _noted(measurements: Measurements) -> Measurements:
    """The same measurements with notes added on all rows together, whatever file each is from."""
    return replace(measurements, notes=(*measurements.notes, *values.notes(measurements)))


def _of_frame(
    frame: pd.DataFrame,
    label: str,
    mapping: str | Columns | None,
    reference: tuple[float, float] | None,
    without: Collection[str] = (),
    device: str | None = None,
    only: Mapping[str, str] = {},
) -> Measurements:
    """The measurements in one table, by a mapping that `read` takes; unusable rows are left out, with notes."""
    if isinstance(mapping, Columns):
        columns = mapping
    elif mapping is None:
        columns = mappings.choose(frame, label, device)
    else:
        columns = mappings.load(mapping)
        if lacking := [name for name in columns.needs if name not in frame]:
            wants = f"wants the columns {', '.join(columns.needs)}; there is no {', '.join(lacking)}."
            raise MeasurementError(f"{label}: the mapping {columns.name} {wants}")
    # A row has the sum over threads, so no count is too high by itself; but the same program does about the same work,
    # and a counter that wrapped is above what all of its rows tell is usual, by a multiple of what it holds.
    is_wrapped = pd.Series(False, index=frame.index)
    program = [frame[name] for name in columns.wraps.get("same", ()) if name in frame]
    for name in columns.wraps.get("counts", ()):
        if program and name in frame:
            count = numbers(frame[name])
            is_wrapped |= wraps(count - count.groupby(program).transform("median")) > 0
    frame = _only(frame, only, label)
    sheet = _Sheet(frame, columns, label, is_wrapped.loc[frame.index])
    rows = sheet.rows(reference or values.NO_CLOCKS)
    rates, domains = sheet.rates(rows, without)
    kept = sheet.kept(rows, rates)
    rows, rates = rows[kept].reset_index(drop=True), rates[kept].reset_index(drop=True)
    if columns.kind == ENERGIES_ONLY:
        # A core and a memory energy for each benchmark: launches a second, where it runs.
        number, names = pd.factorize(rows["benchmark"])
        launches = 1e-9 / rows["time_s"].to_numpy(dtype=np.float64)
        each = np.where(number[:, None] == np.arange(len(names)), launches[:, None], 0.0)
        titles = [f"{domain} of {name}" for domain in values.DOMAINS for name in names]
        domains = {title: title.partition(" of ")[0] for title in titles}
        rates = pd.DataFrame(np.hstack([each, each]), columns=titles)
    highest = float(rows["core_mhz"].max()), float(rows["memory_mhz"].max())
    measurements = Measurements(
        rows=rows,
        rates=rates.astype(np.float64),
        domains=domains,
        kind={ENERGIES_ONLY: values.COUNTED}.get(columns.kind, columns.kind),
        reference=reference or columns.reference or highest,
        notes=(*columns.notes, *sheet.notes),
        sources=(label + phrase(" ({})", ", ".join(f"{column}={cell}" for column, cell in only.items())),),
        mapping=columns.name,
        own=columns.kind == ENERGIES_ONLY,
        processor=columns.processor,
        is_clocked=columns.clocks or reference is not None,
        per_socket="processors" in columns.columns,
        untaken=tuple(term.name for term in columns.present(set(frame.columns)) if term.name in without),
        work=sheet.work()[kept].reset_index(drop=True),
    )
    return replace(measurements, notes=(*measurements.notes, *values.strays(measurements)))


def joined(parts: list[Measurements], reference: tuple[float, float] | None = None) -> Measurements:
    """Several files of measurements as one. Raises MeasurementError if they do not measure the same things."""
    first = parts[0]
    for part in parts[1:]:
        if part.mapping != first.mapping or part.terms != first.terms:
            raise MeasurementError(
                f"{part.sources[0]} and {first.sources[0]} do not have the same columns; fit them one by one."
            )
        if first.own:
            raise MeasurementError("Files without counts are fitted one by one: their benchmarks share nothing.")
    if len(parts) == 1:
        return first
    highest = max(part.reference[0] for part in parts), max(part.reference[1] for part in parts)
    notes = [f"{Path(part.sources[0]).name}: {note}" for part in parts for note in part.notes]
    return replace(
        first,
        rows=pd.concat([part.rows for part in parts], ignore_index=True),
        rates=pd.concat([part.rates for part in parts], ignore_index=True),
        work=pd.concat([part.work for part in parts], ignore_index=True),
        reference=reference or highest,
        notes=tuple(notes),
        sources=tuple(source for part in parts for source in part.sources),
    )


def _words(cells: pd.Series) -> pd.Series:
    """Cells of a table of measurements as texts, an empty one as "-"."""
    return cells.astype(object).where(cells.notna(), "-").astype(str)


class _Sheet(Struct, eq=False):
    """A table of measurements being read by a mapping: where its counters wrapped, and notes for the user."""

    frame: pd.DataFrame
    columns: Columns
    label: str
    wrapped: pd.Series
    notes: list[str] = field(default_factory=list)

    def rows(self, unknown_mhz: tuple[float, float]) -> pd.DataFrame:
        """The rows with `ROW_COLUMNS`, in SI units but for clocks in MHz; NaN where a cell is no number.

        unknown_mhz: the one setting of a CPU, or of a GPU whose clocks nobody tells.
        """
        # The benchmark's name, its columns joined; with its id where one name has several ids.
        names = [name for name in np.atleast_1d(self.columns.columns["benchmark"]).tolist() if name in self.frame]
        ids = mapped(_words, self.frame.get(self.columns.columns.get("benchmark_id")))
        benchmark = ids
        if names:
            benchmark = _words(self.frame[names[0]])
            for name in names[1:]:
                benchmark = benchmark + "/" + _words(self.frame[name])
            if ids is not None and (ids.groupby(benchmark).nunique() > 1).any():
                benchmark = benchmark + "#" + ids
        if benchmark is None:
            raise MeasurementError(f"{self.label}: has no column that names the benchmark.")
        rows = pd.DataFrame({"benchmark": benchmark})
        kernel = self.frame.get(self.columns.columns.get("kernel"))
        rows["kernel"] = either(mapped(_words, kernel), rows["benchmark"])
        rows["threads"] = either(self._scaled({"threads": 1.0}), 0.0)
        for domain, mhz in zip(values.DOMAINS, unknown_mhz, strict=True):
            clocks = {key: unit for key, unit in values.CLOCKS.items() if key.startswith(domain)}
            volts = {key: unit for key, unit in values.VOLTS.items() if key.startswith(domain)}
            column_mhz = self._scaled(clocks)
            if column_mhz is None and self.columns.clocks:
                key, column = next((key, self.columns.columns[key]) for key in clocks if key in self.columns.columns)
                raise MeasurementError(f"{self.label}: has no column `{column}`, which the mapping takes for `{key}`.")
            rows[f"{domain}_mhz"] = column_mhz if self.columns.clocks else mhz
            rows[f"{domain}_v"] = either(self._scaled(volts), np.nan)
        time = self._scaled(values.TIMES)
        rows["time_s"] = either(time, np.nan)
        if time is None and self.columns.kind != values.USED:
            none = f"the mapping {self.columns.name} names none, such as time_s"
            named = ", ".join(self._named(values.TIMES)) or none
            raise MeasurementError(f"{self.label}: has no column of times ({named}).")
        rows["power_w"] = self._power(rows["time_s"]) / self._processors
        rows["line"] = self.frame.index + 2
        self.notes += values.devices(self.frame, self.columns.columns.get("device"), self.label, self.columns.processor)
        self.notes += values.contradicted(self.columns.columns, self.frame.columns)
        return rows[list(values.ROW_COLUMNS)]

    def rates(self, rows: pd.DataFrame, without: Collection[str] = ()) -> tuple[pd.DataFrame, dict[str, str]]:
        """The rates of all terms whose columns are there, but those of `without`, (n, n_terms), and term -> domain."""
        header = set(self.frame.columns)
        terms = [term for term in self.columns.present(header) if term.name not in without]
        if not terms and self.columns.kind != ENERGIES_ONLY:
            raise MeasurementError(f"{self.label}: has no column that the mapping {self.columns.name} makes a rate of.")
        rates: dict[str, pd.Series] = {}
        for term in terms:
            formula = term.formula(header)
            assert formula is not None
            number = formula({name: self._numbers(name) for name in formula.names})
            if len(terms) > 1 and np.isnan(number).all():
                self.notes.append(f"{term.name}: no row has a number ({formula.text}); it is left out.")
                continue
            if self.columns.kind == values.USED:
                values.shares(number, term.name, formula.text, self.label)
                rates[term.name] = number * (rows[f"{term.domain}_mhz"] / 1e3)
            else:
                rates[term.name] = number * (1e-9 / rows["time_s"]) / self._processors
        # Counts in eprof's vocabulary that no term is made of.
        formulas = [term.formula(header) for term in self.columns.present(header)]
        read = {name for formula in formulas if formula is not None for name in formula.names}
        unread = [name for name in self.frame.columns if name in COUNTS and name not in read]
        unread = [name for name in unread if (self._numbers(name) > 0).any()]
        if unread and self.columns.kind == values.COUNTED:
            nothing = f"the mapping {self.columns.name} makes nothing of them."
            self.notes.append(f"No price is fitted for {', '.join(unread)}: {nothing}")
        return pd.DataFrame(rates, index=rows.index), {term.name: term.domain for term in terms if term.name in rates}

    @property
    def _processors(self) -> pd.Series | float:
        """How many processors power and counts of each measured row are of; NaN where that is not known."""
        number = self._scaled({"processors": 1.0})
        return either(mapped(lambda number: number.where(number > 0), number), 1.0)

    def work(self) -> pd.DataFrame:
        """What the times of a launch's components are computed from, a column each; those that the table has."""
        columns = {
            name: formula({column: self._numbers(column) for column in formula.names})
            for name, formula in self.columns.work.items()
            if formula.names <= set(self.frame.columns)
        }
        return pd.DataFrame(columns, index=self.frame.index)

    def kept(self, rows: pd.DataFrame, rates: pd.DataFrame) -> Bools:
        """Which measured rows can be used; notes say what is left out, by line. Raises MeasurementError if none can."""
        kept = np.ones(len(rows), dtype=np.bool_)
        power = rows["power_w"]
        timed = (rows["time_s"] > 0) | (self.columns.kind == values.USED)
        # Which counts are lacking, and what to do if one costs many rows.
        lacking = "a count is missing or no number"
        gaps = (~np.isfinite(rates[np.asarray(timed, dtype=np.bool_)])).sum()
        gaps = gaps[gaps > 0].sort_values(ascending=False)
        if len(gaps):
            lacking += "; " + ", ".join(f"{term} in {number}" for term, number in gaps.items())
            if gaps.iloc[0] > 0.2 * len(rates) and len(rates.columns) > 1:  # of all rows
                lacking += f"; --without {gaps.index[0]} keeps the rows"
        for wrong, reason in (
            (power.isna(), "power is missing or no number"),
            (power <= 0, "power is not above 0"),
            (~((rows["core_mhz"] > 0) & (rows["memory_mhz"] > 0)), "a clock is missing or not above 0"),
            (~timed, "the time is missing or not above 0"),
            (self.wrapped, "a counter of some thread wrapped, so its count is too high by a multiple of 2^47"),
            (~np.isfinite(rates).all(axis=1), lacking),
            ((rates < 0).any(axis=1), "a count is negative"),
        ):
            kept &= self._without(np.asarray(wrong, dtype=np.bool_) & kept, reason)
        values.plausible(rows[kept], rates[kept], self.columns.kind, self.label)
        kept &= self._without(kept & ~power.between(*values.PLAUSIBLE_W).to_numpy(), values.IMPLAUSIBLE)
        whole = pd.concat([rows.drop(columns="line"), rates], axis=1)
        kept &= self._without(kept & whole.duplicated().to_numpy(), "the same row stands above")
        if not kept.any():
            raise MeasurementError(f"{self.label}: no row can be used. {' '.join(self.notes)}")
        return kept

    def _without(self, wrong: Bools, reason: str) -> Bools:
        """The mask of rows that are not wrong, (n,); adds a note with `reason` on those that are."""
        number = int(wrong.sum())
        if number:
            rows = counted(number, "row was", "rows were")
            self.notes.append(f"{rows} left out: {reason} ({values.lines(self.frame.index.to_numpy()[wrong] + 2)}).")
        return ~wrong

    def _named(self, units: Mapping[str, float]) -> list[str]:
        return [str(self.columns.columns[key]) for key in units if key in self.columns.columns]

    def _scaled(self, sizes: Mapping[str, float]) -> pd.Series | None:
        """The first column that the mapping has among the keys of `sizes`, in SI (clocks in MHz); None: there is none.

        It is a column, a formula of columns, or a number for all rows. A cell may say its own unit: "18.8 W".
        """
        for key, size in sizes.items():
            entry: Any = self.columns.columns.get(key)
            if entry is None:
                continue
            if not isinstance(entry, str):
                return pd.Series(float(entry) * size, index=self.frame.index)
            sizes = {word: own_size / size for word, own_size in values.spelled(key).items()}
            if entry in self.frame:
                return numbers(self.frame[entry], sizes) * size
            formula = None
            with suppress(ValueError):
                formula = Cells.parse(entry)
            if formula is not None and formula.names and formula.names <= set(self.frame.columns):
                amounts = formula({name: self._numbers(name, sizes) for name in formula.names})
                return pd.Series(amounts, index=self.frame.index).replace([np.inf, -np.inf], np.nan) * size
        return None

    def _power(self, time_s: pd.Series) -> pd.Series:
        """Each row's power in W, as a column has it, else energy over time. Raises MeasurementError: neither fits."""
        if set(self.frame) >= _AN_EPROF_REPORT and "power_w" in self._named(values.POWERS):
            raise MeasurementError(
                f"{self.label}: is a report of eprof, whose power_w is predicted; put what a meter saw into a column "
                "measured_power_w, and use --mapping eprof-counts."
            )
        power = self._scaled(values.POWERS)
        energy = self._scaled(values.ENERGIES)
        if power is not None and energy is not None and time_s.notna().any():
            values.agreement(power, energy, time_s, self.label, self._named(values.ENERGIES)[0])
        if power is not None:
            return power
        if energy is None:
            names = ", ".join(self._named({**values.POWERS, **values.ENERGIES}))
            raise MeasurementError(f"{self.label}: has neither power nor energy ({names}).")
        return energy / time_s.where(time_s > 0)

    def _numbers(self, name: str, sizes: Mapping[str, float] | None = None) -> pd.Series:
        return numbers(self.frame[name], {**(sizes or {}), "%": 1.0})
