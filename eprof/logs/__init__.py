"""Profiler logs: one reader a format, and what several logs say together.

`read(path)` makes a `Log` of a file; `combine([log, ...])` joins logs to one `Launches`.
"""

from eprof.logs.join import combine
from eprof.logs.reading import read, read_columns

__all__ = ["combine", "read", "read_columns"]
