"""Profiler logs: what readers make of a file, and several logs joined.

`read(path)` makes a `Log` of a file; `combine([log, ...])` joins logs to one `Launches`.
"""

from eprof.logs.join import combine
from eprof.logs.reading import read, read_columns

__all__ = ["combine", "read", "read_columns"]
