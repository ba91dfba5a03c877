"""What sampled shares of time mean (`counters/dcgm/activity.toml`), and where a field was not read in its turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
from msgspec import Struct, convert

from eprof.base.arrays import Bools, Floats
from eprof.base.resources import folder
from eprof.base.toml import Document


class Field(Struct, frozen=True):
    """A share of time that is sampled. count: the word of what is done; of: its peak, `flop` of which are one count.

    passed: levels of memory that its bytes have passed, which pay where a table prices bytes at every level.
    """

    field: str
    count: str
    of: str
    flop: float = 1.0
    passed: Sequence[str] = ()
    sp_factor: Mapping[str, float] = {}


class Meaning(Struct, frozen=True):
    """What sampled shares mean: `counters/dcgm/activity.toml`."""

    busy: str
    least: float
    turns: str
    activity: Sequence[Field]


@cache
def meaning() -> Meaning:
    """What sampled shares of time mean. Raises DefinitionError."""
    document = Document.read(folder("counters") / "dcgm" / "activity.toml")
    return convert({name: value for name, value in document.data.items() if name != "schema"}, Meaning)


def is_busy(shares: Mapping[str, Floats]) -> Bools:
    """Whether anything ran in each sample, (n,); True where that was not sampled."""
    rule = meaning()
    if rule.busy not in shares:
        return np.ones(len(next(iter(shares.values()))), bool)
    return ~(shares[rule.busy] <= rule.least)


def not_read(shares: Mapping[str, Floats]) -> dict[str, Bools]:
    """Field -> the samples, (n,), in which it was not read, as fields took turns; empty where none did."""
    rule = meaning()
    if rule.busy not in shares or rule.turns not in shares:
        return {}
    busy = shares[rule.busy] > rule.least
    skipped = busy & (shares[rule.turns] == 0)
    if not skipped.any():
        return {}
    names = [name for name, share in shares.items() if name != rule.busy and not (share[skipped] > 0).any()]
    # A field that is 0 in the other busy moments, too, has nothing to stand in for.
    return {name: skipped for name in names if (shares[name][busy & ~skipped] > 0).any()}
