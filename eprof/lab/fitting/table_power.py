"""Power of measured rows by a cost table as it is, as reports predict it: its prices times their rates."""

import numpy as np
import pandas as pd
from msgspec import Struct

from eprof.base.arrays import Floats
from eprof.base.errors import CostError
from eprof.base.optional import mapped
from eprof.base.text import when
from eprof.base.vocabulary import CPU
from eprof.costs import Costs, CostTable
from eprof.lab.fitting.solve import WATTS_PER_PJ
from eprof.lab.measurements import Measurements
from eprof.lab.measurements.settings import rows_by_setting

CONSTANT_PART = "constant power"  # of the predicted watts: their last column
_ACTIVE = "active multiprocessors"
_NAMED = 4


class Priced(Struct, frozen=True, eq=False):
    """Predicted watts by term and constant power, (n, n_terms + 1); NaN rows where the table has no such setting."""

    parts: pd.DataFrame
    notes: tuple[str, ...]

    @property
    def power_w(self) -> Floats:
        """The predicted power of each row in W, (n,)."""
        return self.parts.sum(axis=1, skipna=False).to_numpy(dtype=float)


def power_by_table(table: CostTable, measurements: Measurements, setting: str | None = None) -> Priced:
    """Predict each row's power in W by a cost table's prices, as reports do: P = sum_i rate_i eps_i(s) + pi0(s).

    setting: at which all rows are priced; None: each at its own. Multiprocessors that pay and were not counted are
    taken to be active all the time. Memory at a clock that the table has for one of its boards alone is that board's.
    Raises CostError: the table does not price what was counted, or has none of the settings.
    """
    table = table.with_memory_at(measurements.rows["memory_mhz"].unique().tolist())
    at_default = table.at()
    happened = measurements.rates.columns[(measurements.rates.fillna(0) != 0).any()]
    unpriced = [str(term) for term in happened if _pj(at_default, str(term)) is None]
    if unpriced:
        raise CostError(
            f"{table.name} has no price for {', '.join(unpriced)}, which these measurements count; it prices "
            f"{', '.join(at_default.prices)}. Give a table that was fitted to measurements of this kind (`eprof fit`)."
        )
    terms = list(measurements.terms)
    counts_active = any("sm_active" in term for term in terms)
    rates = measurements.rates.to_numpy(dtype=float)
    # A CPU's rows are at clocks of its own choice, and priced at the table's.
    is_clocked = table.default.core_mhz is not None and measurements.is_clocked and measurements.processor != CPU
    watts = np.full((len(rates), len(terms) + 2), np.nan)
    refused: list[str] = []
    interpolated: list[str] = []
    for own, rows in rows_by_setting(measurements).items():
        try:
            costs = table.at(setting or (own if is_clocked else None))
        except CostError as err:
            refused.append(str(err))
            continue
        if "interpolated" in costs.setting_from:
            interpolated.append(costs.setting.label)
        pj = np.array([_pj(costs, term) or 0.0 for term in terms])
        watts[rows, : len(terms)], watts[rows, -2] = rates[rows] * pj * WATTS_PER_PJ, 0.0
        watts[rows, -1] = costs.constant_power_w
        active, mhz = costs.charges.get("sm_active_cycle"), costs.setting.core_mhz
        if active is not None and costs.sm_count is not None and mhz is not None and not counts_active:
            watts[rows, -2] = active.pj * costs.sm_count * mhz * 1e-6
    if np.isnan(watts).all():
        raise CostError(next(iter(refused), f"{table.name} predicts none of these rows."))
    parts = pd.DataFrame(watts, columns=[*terms, _ACTIVE, CONSTANT_PART])
    if not parts[_ACTIVE].any():
        del parts[_ACTIVE]
    notes = []
    if refused:
        notes.append(f"{len(refused)} settings are not predicted: {refused[0]}")
    if interpolated:
        names = ", ".join(interpolated[:_NAMED]) + when(len(interpolated) > _NAMED, " ...")
        notes.append(f"{table.name} does not list {names}: voltages there are interpolated.")
    words = [*(_word(at_default, term) for term in terms), "sm_active_cycle"]
    formulas = [table.statements[word].formula for word in words if word is not None and word in table.statements]
    paid = set(terms).union(*(formula.names for formula in formulas if formula))
    uncounted = ", ".join(name for name, price in at_default.prices.items() if name not in paid and price.pj > 0)
    if uncounted:
        lower = "which these measurements do not count: predictions are lower bounds."
        notes.append(f"{table.name} prices {uncounted}, {lower}")
    if table.default.core_mhz is None and len(measurements.settings) > 1:
        notes.append(f"{table.name} holds at one setting only; it is applied to {len(measurements.settings)}.")
    return Priced(parts, tuple(notes))


def _word(costs: Costs, term: str) -> str | None:
    """The word of the vocabulary that a term of measurements pays as (`fp64` for `fp64_instruction`); None: no word.

    A price may be one of several that a word pays. Terms are of bytes by each level that they pass: without a price of
    their name, they pay as their word only in a table that keeps these books.
    """
    stem = term.rpartition("_")[0]
    words = [word for word in (stem, f"{stem}_fma", f"{stem}_read") if word in costs.charges]
    if term in costs.prices:
        return next((word for word in words if term in (costs.charges[word].formula or "")), None)
    return words[0] if words and costs.books == "accessed" else None


def _pj(costs: Costs, term: str) -> float | None:
    """The price in pJ of a term of measurements: that of its word, or else of its own name; None: neither is known."""
    word = _word(costs, term)
    if word is not None:
        return costs.charges[word].pj
    return mapped(lambda price: price.pj, costs.prices.get(term))
