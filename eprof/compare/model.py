"""The model's reading of two sides: their work and traffic, the machine they share, or what is missing for it."""

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd

from eprof.base.errors import CostError
from eprof.base.marks import NONE, Mark, names
from eprof.compare.side import WORDS, Side
from eprof.compare.tradeoff import Bounds, Reading, read
from eprof.rooflines import Machine, flops, machine, main_precision, traffic

# If fewer of the flops than this are of one width, one balance cannot stand for all.
_ONE_WIDTH = 0.9


@dataclass(frozen=True)
class Read:
    """The reading with what it rests on; or None, and the sentence that says what is missing."""

    reading: Reading | None
    machine: Machine | None
    missing: str
    marks: Mark = NONE

    def document(self) -> dict[str, Any]:
        """As plain data; "missing" is null where there is a reading."""
        if self.reading is None or self.machine is None:
            return {"case": None, "missing": self.missing}
        one = self.reading
        return {
            "case": one.case,
            "missing": None,
            "precision": self.machine.precision,
            "work_factor": one.f,
            "traffic_factor": one.m,
            "old_intensity_flop_per_byte": one.intensity,
            "new_intensity_flop_per_byte": one.new_intensity,
            "time_balance": one.time_balance,
            "energy_balance": one.energy_balance,
            "is_tradeoff": one.trades,
            "speedup": one.speedup,
            "without_constant_power": _bounds(one.without_constant),
            "with_constant_power": _bounds(one.with_constant),
            "marks": names(self.marks),
        }


def _bounds(one: Bounds) -> dict[str, float | None]:
    return {"greenup": one.greenup, "low": one.low, "high": one.high, "break_even_work_factor": one.break_even_f}


def reading(old: Side, new: Side) -> Read:
    """Read the change of all kernels together, where work, traffic, peaks and prices are known."""
    if old.costs is None or new.costs is None:
        return _no("no cost table says what a flop and a byte cost")
    if old.costs.name != new.costs.name or old.costs.setting != new.costs.setting:
        return _no("the two sides are priced differently, and the model compares two programs on one machine")
    tables = [pd.DataFrame(side.mean.number, columns=list(WORDS)) for side in (old, new)]
    work = [float(flops(table).sum(skipna=False)) for table in tables]
    moved = [float(traffic(table).sum(skipna=False)) for table in tables]
    for what, amounts in (("flops", work), ("DRAM bytes", moved)):
        for side, amount in zip((old, new), amounts, strict=True):
            if math.isnan(amount):
                return _no(f"the {what} of {side.label} are not known for every kernel")
            if amount == 0:
                return _no(f"{side.label} has no {what}")
    precision = main_precision(tables[0])
    if precision is None or any(
        float(flops(table, precision).sum()) < _ONE_WIDTH * all_of_it
        for table, all_of_it in zip(tables, work, strict=True)
    ):
        return _no("the flops are of several widths, and one balance does not stand for all")
    try:
        on = machine(old.costs, precision)
    except CostError as err:
        return _no(str(err).rstrip(".").partition(": no roofline")[0])
    # All flops count as those of the one width; where there are others, that is an approximation.
    others = any(float(flops(table, precision).sum()) != whole for table, whole in zip(tables, work, strict=True))
    marks = on.marks | _marks(old) | _marks(new) | (Mark.ESTIMATED if others else NONE)
    return Read(read((work[0], moved[0]), (work[1], moved[1]), on), on, "", marks)


def _no(why: str) -> Read:
    return Read(None, None, f"The model does not read this change: {why}.")


def _marks(side: Side) -> Mark:
    """The marks of the counts of flops and DRAM bytes."""
    columns = [at for at, word in enumerate(WORDS) if word.startswith(("fp32_", "fp64_", "fp16_", "dram_"))]
    found = NONE
    for at in columns:
        if (side.mean.number[:, at] != 0).any():
            for mark in set(side.mean.counted[:, at].tolist()):
                found |= Mark(int(mark))
    return found
