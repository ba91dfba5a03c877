"""Measured kernels whose power is made up alike: of each other, and of the kernels of a profile (`--profile`)."""

import numpy as np
import pandas as pd
from msgspec import Struct

from eprof.base.arrays import Floats
from eprof.base.vocabulary import CONSTANT
from eprof.commands.validate.study import Study, score
from eprof.costs import CostTable
from eprof.energy.attribution import attribute, joules_by_price
from eprof.lab.fitting.table_power import CONSTANT_PART
from eprof.profile.profile import Profile


def mixes(parts: pd.DataFrame, benchmarks: pd.Series) -> pd.DataFrame:
    """What each benchmark's power goes to, by which benchmarks are compared: each term's share, (n_benchmarks, p).

    parts: W of each term and of constant power, (n, p), NaN: not known; benchmarks: of each row, (n,).
    """
    known = parts.notna().all(axis=1).to_numpy()
    watts = parts[known].groupby(benchmarks[known].to_numpy(), sort=False).mean()
    total = watts.sum(axis=1)
    return watts[total > 0].div(total[total > 0], axis=0)


def distances(mix: Floats, mixes: Floats) -> Floats:
    """The distance of a mix of power, (p,), from each of others, (m, p): 0 is the same, 1 has nothing in common."""
    return np.asarray(0.5 * np.abs(mixes - mix).sum(axis=1))


def nearest(shares: pd.DataFrame) -> pd.DataFrame:
    """For each benchmark the most similar other one: columns `nearest`, `distance`; empty if there is no other."""
    if len(shares) < 2:
        return pd.DataFrame({"nearest": pd.Series(dtype=object), "distance": pd.Series(dtype=float)})
    values = shares.to_numpy(dtype=float)
    apart = np.stack([distances(mix, values) for mix in values])
    np.fill_diagonal(apart, np.inf)
    closest = apart.argmin(axis=1)
    return pd.DataFrame({"nearest": shares.index[closest], "distance": apart.min(axis=1)}, index=shares.index)


class Neighbour(Struct, frozen=True):
    """A measured kernel that is similar to a candidate: their distance (0 to 1), and this kernel's mean error."""

    benchmark: str
    distance: float
    mean_percent: float | None


class Candidate(Struct, frozen=True):
    """A kernel of a profile, with the measured kernels whose joules are made up most alike.

    unlike: prices (classes, levels) that make up more of its energy than of any kernel's that was measured.
    """

    kernel: str
    neighbours: list[Neighbour]
    unlike: list[str]


# A price that takes this much more of the energy than of any measured kernel's is beyond what was measured.
_BEYOND = 0.05


def candidates_in(profile: Profile, table: CostTable, study: Study) -> list[Candidate]:
    """The kernels of a profile as candidates, each with the three measured ones whose joules are made up most alike."""
    costs = table.at()
    counts = profile.counts(costs.books)
    shares = mixes(study.parts, study.measurements.rows["benchmark"])
    joules = joules_by_price(table, attribute(counts, costs).table).rename(columns={CONSTANT: CONSTANT_PART})
    joules = joules.reindex(columns=shares.columns).fillna(0.0)
    predicted = study.outcomes[study.main].predicted
    rows = study.measurements.rows.assign(predicted=predicted).groupby("benchmark")
    errors = {name: score(mine["power_w"].to_numpy(), mine["predicted"].to_numpy()).mean_percent for name, mine in rows}
    candidates = []
    for place, kernel in enumerate(counts.kernels["kernel"]):
        near: list[Neighbour] = []
        unlike: list[str] = []
        total = float(joules.iloc[place].sum())
        if total > 0:
            mix = joules.iloc[place] / total
            far = distances(mix.to_numpy(dtype=float), shares.to_numpy(dtype=float))
            for row in np.argsort(far)[:3]:
                name = str(shares.index[row])
                near.append(Neighbour(name, float(far[row]), errors[name]))
            unlike = [str(term) for term in mix.index if mix[term] > shares[term].max() + _BEYOND]
        candidates.append(Candidate(str(kernel), near, unlike))
    return candidates
