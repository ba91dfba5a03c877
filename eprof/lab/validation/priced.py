"""Predictions of a cost table as it is: the same evaluation of prices at a setting that reports use."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from msgspec import Struct

from eprof.base.arrays import Floats
from eprof.base.errors import CostError
from eprof.base.vocabulary import CPU
from eprof.costs import Costs, CostTable
from eprof.lab.measurements import Measurements
from eprof.lab.validation.protocols import label, setting_of

CONSTANT = "constant power"
_ACTIVE = "active multiprocessors"
# 1e9 events a second at 1 pJ each are 1 mW.
_W_PER_PJ = 1e-3
_NAMED = 4


class Priced(Struct, frozen=True, eq=False):
    """Watts of each term and of constant power, (n, n_terms + 1), NaN rows where the table has no such setting."""

    parts: pd.DataFrame
    notes: tuple[str, ...]

    @property
    def power_w(self) -> Floats:
        """Power predicted by the prices of a table, (n,), W."""
        return self.parts.sum(axis=1, skipna=False).to_numpy(dtype=float)


def price(table: CostTable, measurements: Measurements, setting: str | None = None) -> Priced:
    """Power by the prices of a table, P = sum_i rate_i eps_i(s) + pi0(s): what reports attribute, over the time.

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
    rates = measurements.rates.to_numpy(dtype=float)
    # A CPU's rows are at clocks of its own choice, and priced at the table's.
    is_clocked = table.default.core_mhz is not None and measurements.processor != CPU
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
        watts[rows, : len(terms)], watts[rows, -1] = rates[rows] * pj * _W_PER_PJ, costs.constant_power_w
        watts[rows, -2] = _active_w(costs, terms)
    if np.isnan(watts).all():
        raise CostError(refused[0] if refused else f"{table.name} predicts none of these rows.")
    parts = pd.DataFrame(watts, columns=[*terms, _ACTIVE, CONSTANT])
    if not parts[_ACTIVE].any():
        del parts[_ACTIVE]
    return Priced(parts, tuple(_notes(table, measurements, refused, interpolated)))


def _word(costs: Costs, term: str) -> str | None:
    """The word that a term of measurements counts, `fp64` of `fp64_instruction`, where its price is the term's.

    A price may be one of several that a word pays. Terms are of bytes by each level that they pass: without a price of
    their name, they pay as their word only in a table that keeps these books.
    """
    stem = term.rpartition("_")[0]
    words = [word for word in (stem, f"{stem}_fma", f"{stem}_read") if word in costs.charges]
    if term in costs.prices:
        return next((word for word in words if term in (costs.charges[word].formula or "")), None)
    return words[0] if words and costs.books == "accessed" else None


def _pj(costs: Costs, term: str) -> float | None:
    """What a term pays: what its word does, else the price of its name; None: neither is known."""
    word = _word(costs, term)
    if word is not None:
        return costs.charges[word].pj
    return costs.prices[term].pj if term in costs.prices else None


def _active_w(costs: Costs, terms: list[str]) -> float:
    """Watts of multiprocessors that are active all the time, where these pay and are no term of the measurements."""
    charge, mhz = costs.charges.get("sm_active_cycle"), costs.setting.core_mhz
    if charge is None or costs.sm_count is None or mhz is None or any("sm_active" in term for term in terms):
        return 0.0
    return charge.pj * costs.sm_count * mhz * 1e-6


def rows_by_setting(measurements: Measurements) -> dict[str, list[int]]:
    """The places of the rows at each setting, by its label."""
    places: dict[str, list[int]] = {}
    for place, key in enumerate(setting_of(measurements.rows)):
        places.setdefault(label(key), []).append(place)
    return places


def _notes(table: CostTable, measurements: Measurements, refused: list[str], interpolated: list[str]) -> Iterator[str]:
    if refused:
        yield f"{len(refused)} settings are not predicted: {refused[0]}"
    if interpolated:
        more = " ..." if len(interpolated) > _NAMED else ""
        names = ", ".join(interpolated[:_NAMED])
        yield f"{table.name} does not list {names}{more}: voltages there are interpolated."
    costs = table.at()
    words = [*(_word(costs, term) for term in measurements.terms), "sm_active_cycle"]
    formulas = [table.statements[word].formula for word in words if word is not None and word in table.statements]
    paid = set(measurements.terms).union(*(formula.names for formula in formulas if formula))
    uncounted = [name for name, price in costs.prices.items() if name not in paid and price.pj > 0]
    if uncounted:
        names = ", ".join(uncounted)
        yield f"{table.name} prices {names}, which these measurements do not count: predictions are lower bounds."
    if table.default.core_mhz is None and len(measurements.settings) > 1:
        yield f"{table.name} holds at one setting only; it is applied to {len(measurements.settings)}."


def by_price(table: CostTable, split: pd.DataFrame) -> pd.DataFrame:
    """Joules of each word of the vocabulary dealt out to the prices in its formula, and constant power.

    A formula is linear in the prices, so a price's part is the formula with all others at zero.
    """
    prices = {name: price.pj for name, price in table.at().prices.items()}
    joules = {name: np.zeros(len(split)) for name in prices}
    for word in split.columns:
        statement = table.statements.get(str(word))
        if statement is None or statement.formula is None:
            continue
        whole = float(statement.formula(prices))
        if whole <= 0:
            continue
        spent = split[word].fillna(0.0).to_numpy(dtype=float)
        for name in statement.formula.names:
            alone = {**dict.fromkeys(prices, 0.0), name: prices[name]}
            joules[name] += spent * (float(statement.formula(alone)) / whole)
    return pd.DataFrame({**joules, CONSTANT: split["constant"].fillna(0.0).to_numpy(dtype=float)})
