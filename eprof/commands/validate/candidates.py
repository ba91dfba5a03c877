"""Kernels of a profile held against the measured ones: which are similar, and what the measured ones never did."""

import numpy as np
import pandas as pd

from eprof.base.arrays import Floats
from eprof.commands.validate.schema import Candidate, Neighbour
from eprof.commands.validate.study import Study
from eprof.costs import CostTable
from eprof.energy.attribution import attribute
from eprof.lab.validation.priced import by_price
from eprof.lab.validation.protocols import score
from eprof.profile.profile import Profile

_NEIGHBOURS = 3


def mixes(parts: pd.DataFrame, benchmarks: pd.Series) -> pd.DataFrame:
    """What is compared for similarity: what the power of each benchmark goes to, mean shares over its rows.

    parts: W of each term and of constant power, (n, p), NaN: not known.
    """
    known = parts.notna().all(axis=1).to_numpy()
    watts = parts[known].groupby(benchmarks[known].to_numpy(), sort=False).mean()
    total = watts.sum(axis=1)
    return watts[total > 0].div(total[total > 0], axis=0)


def distances(mix: Floats, mixes: Floats) -> Floats:
    """How similar mixes of power are: distances of one, (p,), from others, (m, p)."""
    return np.asarray(0.5 * np.abs(mixes - mix).sum(axis=1))


def nearest(shares: pd.DataFrame) -> pd.DataFrame:
    """For each benchmark the most similar other one: columns `nearest`, `distance`; empty if there is no other."""
    if len(shares) < 2:
        return pd.DataFrame({"nearest": pd.Series(dtype=object), "distance": pd.Series(dtype=float)})
    values = shares.to_numpy(dtype=float)
    rows = []
    for place, mix in enumerate(values):
        far = distances(mix, values)
        far[place] = np.inf
        closest = int(np.argmin(far))
        rows.append((shares.index[closest], float(far[closest])))
    return pd.DataFrame(rows, index=shares.index, columns=["nearest", "distance"])


def neighbours(mix: Floats, shares: pd.DataFrame) -> list[tuple[str, float]]:
    """The benchmarks most similar to a mix of power that was not measured, with their distances, nearest first."""
    far = distances(mix, shares.to_numpy(dtype=float))
    return [(str(shares.index[place]), float(far[place])) for place in np.argsort(far)[:_NEIGHBOURS]]


# A price that takes this much more of the energy than of any measured kernel's is beyond what was measured.
_BEYOND = 0.05


def find(profile: Profile, table: CostTable, study: Study) -> list[Candidate]:
    """Candidates: for each kernel of a profile the measured ones whose power goes to the same things, nearest first."""
    costs = table.at()
    counts = profile.counts(costs.books)
    shares = mixes(study.parts, study.measurements.rows["benchmark"])
    joules = by_price(table, attribute(counts, costs).table)
    joules = joules.reindex(columns=shares.columns).fillna(0.0)
    predicted = study.outcomes[study.main].predicted
    rows = study.measurements.rows.assign(predicted=predicted).groupby("benchmark")
    errors = {name: score(mine["power_w"].to_numpy(), mine["predicted"].to_numpy()).mean_percent for name, mine in rows}
    found = []
    for place, kernel in enumerate(counts.kernels["kernel"]):
        near, unlike = [], []
        total = float(joules.iloc[place].sum())
        if total > 0:
            mix = joules.iloc[place] / total
            near = neighbours(mix.to_numpy(dtype=float), shares)
            unlike = [str(term) for term in mix.index if mix[term] > shares[term].max() + _BEYOND]
        alike = [Neighbour(name, distance, errors[name]) for name, distance in near]
        found.append(Candidate(str(kernel), alike, unlike))
    return found
