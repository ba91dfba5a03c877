"""Kernels of a profile held against the measured ones: which are similar, and what the measured ones never did."""

import pandas as pd

from eprof.commands.validate import similarity
from eprof.commands.validate.schema import Candidate, Neighbour
from eprof.commands.validate.study import Study
from eprof.costs import CostTable
from eprof.energy.attribution import attribute
from eprof.lab.validation.priced import by_price
from eprof.lab.validation.scores import score
from eprof.profile.profile import Profile

# A price that takes this much more of the energy than of any measured kernel's is beyond what was measured.
_BEYOND = 0.05


def find(profile: Profile, table: CostTable, study: Study) -> list[Candidate]:
    """Candidates: for each kernel of a profile the measured ones whose power goes to the same things, nearest first."""
    costs = table.at()
    counts = profile.counts(costs.books)
    shares = similarity.mixes(study.parts, study.measurements.rows["benchmark"])
    joules = by_price(table, attribute(counts, costs).table)
    joules = joules.reindex(columns=shares.columns).fillna(0.0)
    kernels = [str(kernel) for kernel in counts.kernels["kernel"]]
    return [_candidate(kernel, joules.iloc[place], shares, study) for place, kernel in enumerate(kernels)]


def _candidate(kernel: str, joules: pd.Series, shares: pd.DataFrame, study: Study) -> Candidate:
    """A kernel of a profile with the measured ones that are similar."""
    total = float(joules.sum())
    if total <= 0:
        return Candidate(kernel, [], [])
    mix = joules / total
    near = similarity.neighbours(mix.to_numpy(dtype=float), shares)
    unlike = [str(term) for term in mix.index if mix[term] > shares[term].max() + _BEYOND]
    predicted = study.outcomes[study.main].predicted
    rows = study.measurements.rows.assign(predicted=predicted).groupby("benchmark")
    errors = {name: score(mine["power_w"].to_numpy(), mine["predicted"].to_numpy()).mean_percent for name, mine in rows}
    return Candidate(kernel, [Neighbour(name, distance, errors[name]) for name, distance in near], unlike)
