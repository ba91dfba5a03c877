"""Callgrind and cachegrind: how a CPU program is run under them, and their profiles recognised, decoded and read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from eprof.base.signs import Signs, reads

if TYPE_CHECKING:
    from eprof.base.arrays import Columns
    from eprof.logs.log import Launches

KIND = "callgrind-functions"
# Executions of instructions whose machine code is not at hand.
UNDECODED = "undecoded"
# Those of the linker's stubs, which are in no file.
STUBS = "stubs"
# Executions of masked moves whose lanes valgrind counts as executions of another instruction, nobody knows which.
ASTRAY = "astray"
# What a profile says of the machine that it was made on.
MACHINE = "Machine"
# Events that callgrind counts itself, decoded or not.
SIMULATED = ("Ir", "Dr", "Dw", "I1mr", "D1mr", "D1mw", "ILmr", "DLmr", "DLmw", UNDECODED)
_HEAD = re.compile(rb"^(creator: callgrind|# callgrind format|events: Ir\b|desc: I1 cache: )", re.MULTILINE)
# Sums whose process somebody cut off are known by what stands below them.
_BARE = rb"I +refs: +[0-9,]+\s*\n(?:.*\n){,5}?[> \t]*(?:D +refs|I1 +misses):"
_PRINTED = re.compile(rb"^[> \t]*(==[0-9]+== I +refs: |" + _BARE + rb"|([A-Z]\w+ +)+file:function\s*$)", re.MULTILINE)


def _lower_bounds(launches: Launches) -> Columns:
    """The marks of counters by class: MISSING with undecoded instructions in a function, ESTIMATED with ASTRAY ones."""
    from eprof.base.vocabulary import Mark  # late: it brings msgspec

    counters = launches.counters
    by_class = [name not in SIMULATED for name in counters.names]
    for name, mark in ((UNDECODED, Mark.MISSING), (ASTRAY, Mark.ESTIMATED)):
        if name in counters:
            launches = launches.marked(mark, (counters[name] > 0)[:, None] & by_class)
    return launches.marks


SIGNS = Signs(
    reader_of=reads("reader", lambda block: _HEAD.search(block[:4096]) or _PRINTED.search(block[: 1 << 16])),
    counts_repeat=True,
    runs_one_core=True,
    lower_bounds=_lower_bounds,
)
