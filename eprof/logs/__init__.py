"""Profiler logs: what readers make of a file, and several logs joined.

`read(path)` makes a `Log` of a file; `combine([log, ...])` joins logs to one `Launches`;
`told_apart` has functions of one name in several programs go by several names.
"""

from eprof.logs.join import combine, told_apart
from eprof.logs.reading import read, read_columns

__all__ = ["combine", "read", "read_columns", "told_apart"]
