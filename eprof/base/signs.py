"""What eprof knows about a profiler before it reads its logs. Each profiler's folder says it as `SIGNS = Signs(...)`.

`eprof run` imports it before the program starts, so it needs neither numpy nor msgspec, which take longer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from eprof.base.arrays import Columns

T = TypeVar("T")


def reads(module: str, is_in: Callable[[T], object]) -> Callable[[T], str | None]:
    """A `reader_of` for a profiler with one reader: gives `module` for a block that `is_in` accepts, else None."""
    return lambda block: module if is_in(block) else None


# Behind the name of a rate: what it makes in all, what at least, and what in a second of each launch.
TOTAL, LEAST, A_SECOND = "[total]", "[least]", "[a second]"


class Signs(NamedTuple):
    """How the logs of a profiler are recognised, and what its tables are worth.

    The kinds of its tables begin with the name of its folder ("ncu-long"), and its definitions name that folder.

    reader_of: the module that reads a log with this first block (unpacked; the program's own output may stand
    first in it), by its name in the folder; None if that is no log of this profiler. refusal: why a file of this
    profiler (its path, its first bytes) is no log, and what to give.

    slowed: the kinds of tables whose times are of launches that the profiler slowed down. slowed_note: the log's note
    on that. counts_repeat: runs count the same each time, so equal tables are no sign of a copy.
    first_device: how its tables name the first GPU where they give its number only.
    runs_one_core: whatever the program starts, one core at a time is simulated.
    of_programs: its rows are whole programs, on a device that no log names.
    lower_bounds: the marks of `Launches` of which some counters are known to lack something.

    unions: the kinds of tables that have the columns of all their runs, and whose spelling of kernels others take.
    complete: the kinds that have all that was counted.
    timed: the kinds that have times only. aside: counters that are times and clocks, in no list of what was counted.
    takes_unsigned: the module that reads what has no sign of any profiler. strays: the one that reads its tables where
    they stand among lines of another's. frames: the one that takes data frames.

    capabilities: the first and the last GPU that it profiles. generations: the same in words, "up to Volta".
    commands: what makes a log with "times", "streams", "nvtx", or "launches" with their starts.
    """

    reader_of: Callable[[bytes], str | None] = lambda block: None
    refusal: Callable[[str, bytes], str | None] = lambda path, head: None
    slowed: frozenset[str] = frozenset()
    slowed_note: str | None = None
    counts_repeat: bool = False
    first_device: re.Pattern[str] | None = None
    runs_one_core: bool = False
    of_programs: bool = False
    lower_bounds: Callable[[Any], Columns] | None = None
    unions: frozenset[str] = frozenset()
    complete: frozenset[str] = frozenset()
    timed: frozenset[str] = frozenset()
    aside: Callable[[], frozenset[str]] = frozenset
    takes_unsigned: str | None = None
    strays: str | None = None
    frames: str | None = None
    capabilities: tuple[float, float] = (0.0, float("inf"))
    generations: str = "any GPU"
    commands: Mapping[str, str] = MappingProxyType({})
