"""Checks: relations that healthy counters obey, declared in the definitions, run where the log has the counters."""

import numpy as np

from eprof.base.arrays import Floats
from eprof.base.kernels import short
from eprof.base.toml import Formula
from eprof.counts.definition import Definition
from eprof.counts.sheet import Cells, Sheet
from eprof.logs.log import COUNT, PERCENT, Launches


def check(launches: Launches, definition: Definition) -> list[str]:
    """Run the definition's checks on every kernel whose counters are all known. One sentence for each that fails.

    Left and right side may differ by the check's tolerance, a fraction of the larger one, and by what rounding the
    averages of a summary can do. Sums that are known to be incomplete are not checked. A rate or percentage of several
    launches is their plain mean, which weighs a short launch as much as a long one: only what contradicts the sums
    however the launches are weighed is a contradiction.
    """
    sheet = Sheet(launches, definition)
    sentences = []
    for relation in definition.checks:
        left, right = sheet.evaluate(relation.left), sheet.evaluate(relation.right)
        if left is None or right is None:
            continue
        left_range, right_range = _range(sheet, relation.left, left), _range(sheet, relation.right, right)
        largest = np.fmax(np.abs(left.values), np.abs(right.values))
        rounding = _rounding(sheet, relation.left) + _rounding(sheet, relation.right)
        allowed = relation.tolerance * largest + np.where(launches.rows.launches > 1, rounding, 0.0)
        excess = left_range[0] - right_range[1]
        if relation.relation == "==":
            excess = np.maximum(excess, right_range[0] - left_range[1])
        failed = (excess > allowed) & ~(left.low | left.high | right.low | right.high)
        if not failed.any():
            continue
        with np.errstate(all="ignore"):
            apart = np.where(failed, np.abs(left.values - right.values) / largest, -1.0)
        worst = int(np.argmax(apart))
        where = f"in `{short(launches.rows.kernel[worst])}`"
        compared = int((~np.isnan(left.values + right.values)).sum())
        if compared > 1:
            where = f"for {failed.sum()} of {compared} {definition.nouns.kernels}; worst {where}"
        sentences.append(
            f"The counters contradict each other {where}: {relation.note}, but {definition.expand(relation.left)} = "
            f"{left.values[worst]:,.0f} and {definition.expand(relation.right)} = {right.values[worst]:,.0f} "
            f"({apart[worst]:.1%} apart)."
        )
    return sentences


def _range(sheet: Sheet, formula: Formula, cells: Cells) -> tuple[Floats, Floats]:
    """The least and the most of a check's formula over all weights of its averages over launches, each (n_kernels,).

    Of n values of mean m, none below 0, each weighted mean is at most n m; of percentages p it is at least
    100 - n (100 - p). A step that was made of averages may be anything: NaN.
    """
    launches = sheet.launches.rows.launches.astype(np.float64)
    least: dict[str, Floats] = {}
    most: dict[str, Floats] = {}
    for name in formula.names:
        part = sheet.look_up(name)
        assert part is not None, "its formula was evaluated"
        least[name], most[name] = part.values, part.values
        if part.averaged.any():
            counter = sheet.definition.counters.get(name)
            low, high = np.full(sheet.length, np.nan), np.full(sheet.length, np.nan)
            if counter is not None:
                low, high = np.zeros(sheet.length), launches * part.values
            if counter is not None and counter.unit == PERCENT:
                low, high = np.maximum(100 - launches * (100 - part.values), 0.0), np.minimum(high, 100.0)
            least[name] = np.where(part.averaged, low, part.values)
            most[name] = np.where(part.averaged, high, part.values)
    if not cells.averaged.any():
        return cells.values, cells.values
    with np.errstate(all="ignore"):
        ends = [np.asarray(formula(values), dtype=np.float64) for values in (least, most)]
    return np.minimum(*ends), np.maximum(*ends)


def _rounding(sheet: Sheet, formula: Formula) -> Floats:
    """The most that rounded averages move a check's formula: each half a count a launch, added up; (n_kernels,)."""
    parts = {name: cells.values for name in formula.names if (cells := sheet.look_up(name)) is not None}
    half = 0.5 * sheet.launches.rows.launches.astype(np.float64)
    change = np.zeros(sheet.length)
    with np.errstate(all="ignore"):
        value = formula(parts)
        for name, part in parts.items():
            counter = sheet.definition.counters.get(name)
            if counter is not None and counter.unit == COUNT:
                change += np.abs(formula({**parts, name: part + half * max(counter.expect, 1)}) - value)
    return np.nan_to_num(change)
