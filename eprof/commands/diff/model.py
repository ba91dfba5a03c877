"""The model's reading of two sides: their work and traffic, the machine they share, or what is missing for it."""

import math

import numpy as np
from msgspec.structs import replace

from eprof.base.arrays import Columns
from eprof.base.errors import CostError
from eprof.base.marks import Mark, names
from eprof.commands.diff import tradeoff
from eprof.commands.diff.schema import Model
from eprof.commands.diff.side import WORDS, Side
from eprof.profile.rooflines import flops_of, machine, main_precision, traffic_of

# If fewer of the flops than this are of one width, one balance cannot stand for all.
_ONE_WIDTH = 0.9
_SEVERAL_WIDTHS = "the flops are of several widths, and one balance does not stand for all"


class _MissingError(Exception):
    """What the model lacks, in words."""


def reading(old: Side, new: Side) -> Model:
    """The model's reading: the change of all kernels together, where work, traffic, peaks and prices are known."""
    try:
        return _reading(old, new)
    except _MissingError as err:
        return Model(case=None, missing=f"The model does not read this change: {err}.")


def _reading(old: Side, new: Side) -> Model:
    if old.costs is None or new.costs is None:
        raise _MissingError("no cost table says what a flop and a byte cost")
    if old.costs.name != new.costs.name or old.costs.setting != new.costs.setting:
        raise _MissingError("the two sides are priced differently, and the model compares two programs on one machine")
    tables = [Columns(tuple(WORDS), side.mean.number) for side in (old, new)]
    work = [float(flops_of(table).sum()) for table in tables]
    moved = [float(traffic_of(table).sum()) for table in tables]
    _require("flops", old, new, work)
    _require("DRAM bytes", old, new, moved)

    precision = main_precision(tables[0])
    if precision is None:
        raise _MissingError(_SEVERAL_WIDTHS)
    of_width = [float(np.nansum(flops_of(table, precision))) for table in tables]
    if any(part < _ONE_WIDTH * whole for part, whole in zip(of_width, work, strict=True)):
        raise _MissingError(_SEVERAL_WIDTHS)
    try:
        on = machine(old.costs, precision)
    except CostError as err:
        raise _MissingError(str(err).rstrip(".").partition(": no roofline")[0]) from err

    # All flops count as those of the one width; where there are others, that is an approximation.
    marks = on.marks | _marks(old) | _marks(new)
    if of_width != work:
        marks |= Mark.ESTIMATED
    model = tradeoff.assess((work[0], moved[0]), (work[1], moved[1]), on)
    return replace(model, marks=names(marks))


def _require(quantity: str, old: Side, new: Side, amounts: list[float]) -> None:
    """That both sides know an amount that the model reads, and that there is any."""
    for side, amount in zip((old, new), amounts, strict=True):
        if math.isnan(amount):
            raise _MissingError(f"the {quantity} of {side.label} are not known for every {side.nouns.kernel}")
        if amount == 0:
            raise _MissingError(f"{side.label} has no {quantity}")


def _marks(side: Side) -> Mark:
    """The marks of the counts of flops and DRAM bytes that the model reads."""
    marks = 0
    for column, word in enumerate(WORDS):
        if word.startswith(("fp32_", "fp64_", "fp16_", "dram_")) and (side.mean.number[:, column] != 0).any():
            marks |= int(np.bitwise_or.reduce(side.mean.counted[:, column]))
    return Mark(marks)
