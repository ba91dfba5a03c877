"""What eprof knows about a profiler before it reads its logs. Each profiler's `signs.py` ends in `SIGNS = Signs(...)`.

`eprof run` imports it before the program starts, so it needs neither numpy nor msgspec, which take longer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from eprof.base.arrays import Columns
    from eprof.logs.rows.log import Launches


class Signs(NamedTuple):
    """How the logs of a profiler are recognised, and what its tables are worth.

    The kinds of its tables begin with the name of its folder ("ncu-long"), and its definitions name that folder.

    reader_of: the module that reads a log that begins with such a block (unpacked; the program's own output may stand
    first in it), by its name in the folder; None if that is no log of this profiler. reader_of_file: the same for a
    path, where much of the program's own output may stand before the log. refusal: why a file of this profiler (its
    path, its first bytes) is no log, and what to give.

    slowed: the kinds of tables whose times are of launches that the profiler slowed down. slowed_note: the log's note
    on that. counts_repeat: runs count the same each time, so equal tables are no sign of a copy.
    first_device: how its tables name the first GPU where they give its number only.
    of_programs: its rows are whole programs, on a device that no log names.
    lower_bounds: the marks of launches of which some counters are known to lack something.

    capabilities: the first and the last GPU that it profiles. generations: the same in words, "up to Volta".
    commands: what makes a log with "times", "streams", "nvtx", or "launches" with their starts.
    """

    reader_of: Callable[[bytes], str | None] = lambda block: None
    reader_of_file: Callable[[str], str | None] = lambda path: None
    refusal: Callable[[str, bytes], str | None] = lambda path, head: None
    slowed: frozenset[str] = frozenset()
    slowed_note: str | None = None
    counts_repeat: bool = False
    first_device: re.Pattern[str] | None = None
    of_programs: bool = False
    lower_bounds: Callable[[Launches], Columns] | None = None
    capabilities: tuple[float, float] = (0.0, float("inf"))
    generations: str = "any GPU"
    commands: Mapping[str, str] = MappingProxyType({})
