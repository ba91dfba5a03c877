"""Opens a file of measurements as a table: CSV, plain or packed, and Parquet, in bounded memory.

Cells stand between commas, semicolons or tabs; numbers may have decimal commas where it is not commas that part cells.
A file that unpacks without end, a Parquet file that promises more rows than there can be, a pipe and a device are
refused with a sentence.
"""

import io
import re
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd

from eprof.base.resources import opened
from eprof.base.text import pattern
from eprof.lab.measurements.values import MeasurementError
from eprof.logs.rows import packing

_MOST_BYTES = 256 << 20
_MOST_CELLS = 50_000_000
_PACKED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_FIELDS = pattern(r"Expected (\d+) fields in line (\d+), saw (\d+)")  # what pandas says of a row that is too long
_UNREAD = (".zip", ".xz", ".tar", ".tgz")
_LOOK_BYTES = 1 << 16
_SEPARATORS = (",", ";", "\t")
_COMMA, _POINT = pattern(rb"[-+]?\d+,\d+(e[-+]?\d+)?", re.I), pattern(rb"[-+]?\d+\.\d+(e[-+]?\d+)?", re.I)


def table(path: Path, rows: int | None = None) -> pd.DataFrame:
    """A file of measurements as a table, a row each; `rows`: the first ones only. Raises MeasurementError."""
    suffix = path.suffix.lower()
    if suffix in _UNREAD:
        raise MeasurementError(
            f"{path}: is packed as {suffix}; unpack it first ({', '.join(_PACKED)} are read as they are)."
        )
    try:
        with opened(path) as file:
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
    unpacked: Any = file
    if suffix in _PACKED:
        import pyarrow as pa

        unpacked = pa.CompressedInputStream(pa.PythonFile(file, mode="r"), _PACKED[suffix])
    bounded = io.BufferedReader(_Bounded(unpacked, file), 1 << 18)
    separator, decimal = _written(bounded.peek(_LOOK_BYTES)[:_LOOK_BYTES])
    return _aligned(pd.read_csv(bounded, skip_blank_lines=False, nrows=rows, sep=separator, decimal=decimal))


def _aligned(frame: pd.DataFrame) -> pd.DataFrame:
    """Measurements whose rows have more cells than the header, which pandas then takes for names of rows.

    Cells too many that are all empty come of a separator at the end of lines; one more in front of every row is a name,
    as R writes them. Raises ValueError: it is neither, and nothing says which cell is what.
    """
    if isinstance(frame.index, pd.RangeIndex):
        return frame
    more = frame.index.nlevels
    last = frame.iloc[:, -more:]
    if last.isna().all(axis=None):
        moved = frame.reset_index().iloc[:, : len(frame.columns)]
        return moved.set_axis(frame.columns, axis=1)
    if more == 1 and frame.index.is_unique and last.notna().all(axis=None):
        return frame.reset_index(drop=True)
    raise ValueError("its rows have more cells than its header")


def _written(start: bytes) -> tuple[str, str]:
    """What parts cells in a file of measurements, and the decimal point, from its first bytes.

    Cells are parted by what the header has most of. The point is a comma if cells of the first rows are numbers with a
    comma, and none is a number with a point: then it is not known which of the two it is, and a point is a point.
    """
    header, _, rest = start.partition(b"\n")
    separator = max(_SEPARATORS, key=lambda separator: header.count(separator.encode()))
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
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into `buffer`; 0 at the end."""
        chunk = self._stream.read(len(buffer))
        self._done += len(chunk)
        if self._done > _MOST_BYTES:
            raise ValueError(f"it holds more than {_MOST_BYTES >> 20} MB of text")
        if self._stream is not self._packed and packing.is_bomb(self._done, self._packed.tell()):
            raise ValueError("it unpacks to hundreds of times its size, which no measurements do")
        buffer[: len(chunk)] = chunk
        return len(chunk)


def _parquet(file: BinaryIO) -> pd.DataFrame:
    from pyarrow import parquet

    about = parquet.ParquetFile(file).metadata
    if about.num_rows * max(1, about.num_columns) > _MOST_CELLS:
        raise ValueError(f"it says that it holds {about.num_rows:,} rows of {about.num_columns:,} columns")
    file.seek(0)
    frame = pd.read_parquet(file)
    return frame.reset_index(drop=all(name is None for name in frame.index.names))
