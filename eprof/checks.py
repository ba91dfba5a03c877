"""Checks: relations that healthy counters obey, declared in the definitions, run where the log has the counters."""

import numpy as np
import numpy.typing as npt

from eprof.counters import Check, Definition
from eprof.counts import Sheet
from eprof.definition import Formula
from eprof.logs.table import COUNT, Launches
from eprof.marks import Mark


def check(launches: Launches, definition: Definition) -> list[str]:
    """Run the definition's checks on every kernel whose counters are all known. One sentence for each that fails.

    Left and right side may differ by the check's tolerance, a fraction of the larger one, and by what rounding the
    averages of a summary can do. Sums that are known to be incomplete (marked MISSING) are not checked.
    """
    sheet = Sheet(launches, definition)
    return [sentence for one in definition.checks for sentence in _run(sheet, one)]


def _run(sheet: Sheet, check: Check) -> list[str]:
    left, right = sheet.evaluate(check.left), sheet.evaluate(check.right)
    if left is None or right is None:
        return []
    several = sheet.launches.kernels["launches"].to_numpy() > 1
    allowed = check.tolerance * np.fmax(np.abs(left.values), np.abs(right.values))
    allowed = allowed + np.where(several, _rounding(sheet, check.left) + _rounding(sheet, check.right), 0.0)
    excess = left.values - right.values
    if check.relation == "==":
        excess = np.abs(excess)
    failed = (excess > allowed) & ((left.marks | right.marks) & int(Mark.MISSING) == 0)
    return [_sentence(sheet, check, left.values, right.values, failed)] if failed.any() else []


def _rounding(sheet: Sheet, formula: Formula) -> npt.NDArray[np.float64]:
    """How much a formula changes if every counter's average is off by half a count a launch, shape (n_kernels,)."""
    parts = {name: cells.values for name in formula.names if (cells := sheet.look_up(name)) is not None}
    half = 0.5 * sheet.launches.kernels["launches"].to_numpy(dtype=np.float64)
    change = np.zeros(sheet.length)
    with np.errstate(all="ignore"):
        value = formula(parts)
        for name, part in parts.items():
            counter = sheet.definition.counters.get(name)
            if counter is not None and counter.unit == COUNT:
                change += np.abs(formula({**parts, name: part + half * max(counter.expect, 1)}) - value)
    return np.nan_to_num(change)


def _sentence(
    sheet: Sheet,
    check: Check,
    left: npt.NDArray[np.float64],
    right: npt.NDArray[np.float64],
    failed: npt.NDArray[np.bool_],
) -> str:
    with np.errstate(all="ignore"):
        off = np.where(failed, np.abs(left - right) / np.fmax(np.abs(left), np.abs(right)), -1.0)
    worst = int(np.argmax(off))
    kernel = str(sheet.launches.kernels["kernel"].iloc[worst])
    number, all_ = int(failed.sum()), int((~np.isnan(left + right)).sum())
    which = (
        f"for {number} of {all_} kernels; worst in `{short_name(kernel)}`" if all_ > 1 else f"in `{short_name(kernel)}`"
    )
    return (
        f"The counters contradict each other {which}: {check.note}, but {sheet.definition.expand(check.left)} = "
        f"{left[worst]:,.0f} and {sheet.definition.expand(check.right)} = {right[worst]:,.0f} ({off[worst]:.1%} apart)."
    )


def short_name(kernel: str) -> str:
    """A kernel's name without its arguments, cut at 60 characters."""
    name = kernel.partition("(")[0].strip() or kernel
    return name if len(name) <= 60 else name[:57] + "..."
