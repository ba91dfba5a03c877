"""Kernels of a profile held against the measured ones: which are like them, and what the measured ones never did."""

from typing import Any

import numpy as np
import pandas as pd

from eprof.costs import CostTable
from eprof.energy.attribution import attribute
from eprof.profile.profile import Profile
from eprof.validation import likeness
from eprof.validation.priced import CONSTANT
from eprof.validation.scores import score
from eprof.validation.study import Validation

_SEVERAL = 3


def find(profile: Profile, table: CostTable, validation: Validation) -> list[dict[str, Any]]:
    """For each kernel of a profile the measured kernels whose power goes to the same things, nearest first.

    `unlike`: prices that take more of the kernel's energy than of any measured kernel's.
    """
    costs = table.at()
    counts = profile.counts(costs.books)
    shares = likeness.mixes(validation.parts, validation.measurements.rows["benchmark"]).shares
    joules = by_price(table, attribute(counts, costs).table)
    power, predicted = validation.measurements.power_w, validation.outcomes[validation.main].predicted
    names = validation.measurements.rows["benchmark"].to_numpy()
    found = []
    for at, kernel in enumerate(counts.kernels["kernel"]):
        mix = joules.iloc[at].reindex(shares.columns).fillna(0.0)
        total = float(mix.sum())
        near = likeness.neighbours((mix / total).to_numpy(dtype=float), shares, _SEVERAL) if total > 0 else []
        found.append(
            {
                "kernel": str(kernel),
                "neighbours": [
                    {
                        "benchmark": name,
                        "distance": distance,
                        "mean_percent": score(power[names == name], predicted[names == name]).mean_percent,
                    }
                    for name, distance in near
                ],
                "unlike": [
                    str(term) for term in mix.index if total > 0 and mix[term] / total > shares[term].max() + 0.05
                ],
            }
        )
    return found


def by_price(table: CostTable, split: pd.DataFrame) -> pd.DataFrame:
    """Joules of each word of the vocabulary dealt out to the prices in its formula, and constant power.

    A formula is linear in the prices, so a price's part is the formula with all others at zero.
    """
    prices = {name: price.pj for name, price in table.at().prices.items()}
    found = {name: np.zeros(len(split)) for name in prices}
    for word in split.columns:
        statement = table.statements.get(str(word))
        if statement is None or statement.formula is None:
            continue
        formula = statement.formula
        whole = float(formula(prices))
        if whole <= 0:
            continue
        for name in formula.names:
            alone = float(formula({other: pj if other == name else 0.0 for other, pj in prices.items()}))
            found[name] = found[name] + split[word].fillna(0.0).to_numpy(dtype=float) * (alone / whole)
    return pd.DataFrame({**found, CONSTANT: split["constant"].fillna(0.0).to_numpy(dtype=float)})
