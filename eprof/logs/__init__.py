"""Profiler logs: one reader a format, and what several logs say together.

`read(path)` makes a `Log` of a file; `combine([log, ...])` joins logs to one `Launches`. Importing this package is
cheap: readers are imported when something is read.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eprof.logs.reading import Keep
    from eprof.rows.log import Launches, Log

__all__ = ["combine", "read", "read_columns"]


def read(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    names: Mapping[str, str] | None = None,
    keep: "Keep" = None,
    progress: Callable[[int], None] | None = None,
    parts: str | None = None,
) -> "Log":
    """Read one log, whatever kind of nvprof log it is.

    columns: the column names of rows that have no header (see `read_columns`). names: metric description -> metric
    name, for tables headed by descriptions. keep: the counters to hold, by name, or what gives those of a profiler;
    None for all. progress: called with the number of new bytes. parts: "stream" or "nvtx", which splits the rows of a
    kernel.
    Raises LogError, one sentence, if the file cannot be read or holds no kernels.
    """
    from eprof.logs.reading import read as read_now

    return read_now(path, columns=columns, names=names, keep=keep, progress=progress, parts=parts)


def read_columns(path: str | Path) -> list[str]:
    """The column names in a file of one CSV line, for rows without header. Raises LogError if there is no such line."""
    from eprof.logs.reading import read_columns as read_now

    return read_now(path)


def combine(logs: Sequence["Log"], capability_of: Callable[[str], tuple[str, ...]] | None = None) -> "Launches":
    """Join logs to one row for each device and kernel. See `eprof.logs.join.combining.combine` for the rules.

    capability_of: the compute capabilities that a GPU of some name may have.
    """
    from eprof.logs.join.combining import combine as combine_now

    return combine_now(logs, capability_of)
