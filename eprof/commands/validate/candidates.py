"""Kernels of a profile held against the measured ones: which are similar, and what the measured ones never did."""

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
    predicted = study.outcomes[study.main].predicted
    rows = study.measurements.rows.assign(predicted=predicted).groupby("benchmark")
    errors = {name: score(mine["power_w"].to_numpy(), mine["predicted"].to_numpy()).mean_percent for name, mine in rows}
    found = []
    for place, kernel in enumerate(counts.kernels["kernel"]):
        near, unlike = [], []
        total = float(joules.iloc[place].sum())
        if total > 0:
            mix = joules.iloc[place] / total
            near = similarity.neighbours(mix.to_numpy(dtype=float), shares)
            unlike = [str(term) for term in mix.index if mix[term] > shares[term].max() + _BEYOND]
        alike = [Neighbour(name, distance, errors[name]) for name, distance in near]
        found.append(Candidate(str(kernel), alike, unlike))
    return found
