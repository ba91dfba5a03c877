"""Checks: relations that healthy counters obey, declared in the definitions, run where the log has the counters."""

import numpy as np

from eprof.base.arrays import Bools, Floats
from eprof.base.kernels import short
from eprof.base.toml import Formula
from eprof.counts.counts import Cells, Sheet
from eprof.counts.definition import Check, Definition
from eprof.logs.rows.log import COUNT, PERCENT, Launches


def check(launches: Launches, definition: Definition) -> list[str]:
    """Run the definition's checks on every kernel whose counters are all known. One sentence for each that fails.

    Left and right side may differ by the check's tolerance, a fraction of the larger one, and by what rounding the
    averages of a summary can do. Sums that are known to be incomplete are not checked. A rate or percentage of several
    launches is their plain mean, which weighs a short launch as much as a long one: only what contradicts the sums
    however the launches are weighed is a contradiction.
    """
    sheet = Sheet(launches, definition)
    return [sentence for relation in definition.checks for sentence in _run_check(sheet, relation)]


def _run_check(sheet: Sheet, check: Check) -> list[str]:
    left, right = sheet.evaluate(check.left), sheet.evaluate(check.right)
    if left is None or right is None:
        return []
    several = sheet.launches.rows.launches > 1
    left_range, right_range = _range(sheet, check.left, left), _range(sheet, check.right, right)
    allowed = check.tolerance * np.fmax(np.abs(left.values), np.abs(right.values))
    allowed = allowed + np.where(several, _rounding(sheet, check.left) + _rounding(sheet, check.right), 0.0)
    excess = left_range[0] - right_range[1]
    if check.relation == "==":
        excess = np.maximum(excess, right_range[0] - left_range[1])
    bounds = left.low | left.high | right.low | right.high
    failed = (excess > allowed) & ~bounds
    return [_sentence(sheet, check, left.values, right.values, failed)] if failed.any() else []


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
        counter = sheet.definition.counters.get(name)
        least[name], most[name] = part.values, part.values
        if part.averaged.any():
            low, high = _weighted(part.values, launches, counter.unit if counter else None)
            least[name] = np.where(part.averaged, low, part.values)
            most[name] = np.where(part.averaged, high, part.values)
    if not cells.averaged.any():
        return cells.values, cells.values
    with np.errstate(all="ignore"):
        ends = [np.asarray(formula(values), dtype=np.float64) for values in (least, most)]
    return np.minimum(*ends), np.maximum(*ends)


def _weighted(mean: Floats, launches: Floats, unit: str | None) -> tuple[Floats, Floats]:
    """The least and the most that a weighted mean in a check can be, of the plain mean."""
    if unit is None:
        return np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    if unit == PERCENT:
        return np.maximum(100 - launches * (100 - mean), 0.0), np.minimum(launches * mean, 100.0)
    return np.zeros_like(mean), launches * mean


def _rounding(sheet: Sheet, formula: Formula) -> Floats:
    """How much a check's formula changes if every average is off by half a count a launch, shape (n_kernels,)."""
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


def _sentence(sheet: Sheet, check: Check, left: Floats, right: Floats, failed: Bools) -> str:
    with np.errstate(all="ignore"):
        off = np.where(failed, np.abs(left - right) / np.fmax(np.abs(left), np.abs(right)), -1.0)
    worst = int(np.argmax(off))
    kernel = sheet.launches.rows.kernel[worst]
    number = int(failed.sum())
    compared = int((~np.isnan(left + right)).sum())
    where = f"in `{short(kernel)}`"
    if compared > 1:
        where = f"for {number} of {compared} {sheet.definition.nouns.kernels}; worst {where}"
    return (
        f"The counters contradict each other {where}: {check.note}, but {sheet.definition.expand(check.left)} = "
        f"{left[worst]:,.0f} and {sheet.definition.expand(check.right)} = {right[worst]:,.0f} ({off[worst]:.1%} apart)."
    )
