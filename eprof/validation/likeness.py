"""Which measured kernel is most like another: by what its power goes to.

Two kernels are d apart if a share d of the power goes to different things: half the sum of the differences between
their shares. 0: the same mix; 1: nothing in common.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from eprof.validation.scores import Floats


@dataclass(frozen=True, eq=False)
class Mixes:
    """What the power of each benchmark goes to: shares, (n_benchmarks, n_terms + 1), each row adds up to 1."""

    shares: pd.DataFrame


def mixes(parts: pd.DataFrame, benchmarks: pd.Series) -> Mixes:
    """Mean shares of each benchmark over its rows; parts: W of each term and of constant power, (n, p)."""
    known = parts.notna().all(axis=1).to_numpy()
    watts = parts[known].groupby(benchmarks[known].to_numpy(), sort=False).mean()
    total = watts.sum(axis=1)
    return Mixes(watts[total > 0].div(total[total > 0], axis=0))


def apart(one: Floats, others: Floats) -> Floats:
    """The distances of one mix, (p,), from others, (m, p)."""
    return np.asarray(0.5 * np.abs(others - one).sum(axis=1))


def nearest(shares: pd.DataFrame) -> pd.DataFrame:
    """For each benchmark the most similar other one: columns `nearest`, `distance`; empty if there is no other."""
    if len(shares) < 2:
        return pd.DataFrame({"nearest": pd.Series(dtype=object), "distance": pd.Series(dtype=float)})
    values = shares.to_numpy(dtype=float)
    found = []
    for at in range(len(values)):
        distances = apart(values[at], values)
        distances[at] = np.inf
        best = int(np.argmin(distances))
        found.append((shares.index[best], float(distances[best])))
    return pd.DataFrame(found, index=shares.index, columns=["nearest", "distance"])


def neighbours(mix: Floats, shares: pd.DataFrame, several: int = 3) -> list[tuple[str, float]]:
    """The benchmarks most like a mix that was not measured, with their distances, nearest first."""
    distances = apart(mix, shares.to_numpy(dtype=float))
    return [(str(shares.index[at]), float(distances[at])) for at in np.argsort(distances)[:several]]
