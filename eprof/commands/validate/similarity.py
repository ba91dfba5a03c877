"""Which measured kernel is most similar to another: by what its power goes to.

Two kernels are d apart if a share d of the power goes to different things: half the sum of the differences between
their shares. 0: the same mix; 1: nothing in common.
"""

import numpy as np
import pandas as pd

from eprof.base.arrays import Floats

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
