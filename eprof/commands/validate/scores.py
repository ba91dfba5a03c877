"""How far predictions are from what was measured."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from msgspec import Struct

from eprof.base.arrays import Floats
from eprof.lab.fitting.protocols import errors_percent


class Scores(Struct, frozen=True):
    """Errors over `n` rows; `missing` more could not be predicted and are in no number.

    mean, sd (of a sample), min, median, p90 and max are of the absolute relative error |predicted - measured| /
    measured, in per cent; bias is the mean of the signed one (above 0: predicted too much). above_constant is the mean
    |predicted - measured| in per cent of what was measured above constant power, in the mean: where most of the power
    is constant, a relative error is small whatever the counts say. None: not known.
    """

    n: int
    missing: int
    mean_percent: float | None = None
    sd_percent: float | None = None
    min_percent: float | None = None
    median_percent: float | None = None
    p90_percent: float | None = None
    max_percent: float | None = None
    bias_percent: float | None = None
    rmse_w: float | None = None
    above_constant_percent: float | None = None


def score(measured: Floats, predicted: Floats, constant: Floats | None = None) -> Scores:
    """Scores of predicted against measured power, and above the constant part of it, where known; all in W, (n,)."""
    signed = errors_percent(measured, predicted)
    scored = np.isfinite(signed)
    if not scored.any():
        return Scores(0, len(signed))

    sizes = np.abs(signed[scored])
    off_w = (predicted - measured)[scored]
    above_w = np.nan if constant is None else float((measured - constant)[scored].mean())
    above_percent = float(100 * np.abs(off_w).mean() / above_w) if above_w > 0 else None
    return Scores(
        n=int(sizes.size),
        missing=int((~scored).sum()),
        mean_percent=float(sizes.mean()),
        sd_percent=float(sizes.std(ddof=1)) if sizes.size > 1 else None,
        min_percent=float(sizes.min()),
        median_percent=float(np.median(sizes)),
        p90_percent=float(np.percentile(sizes, 90)),
        max_percent=float(sizes.max()),
        bias_percent=float(signed[scored].mean()),
        rmse_w=float(np.sqrt(np.mean(off_w**2))),
        above_constant_percent=above_percent,
    )


def grouped(
    rows: pd.DataFrame, by: Sequence[str], measured: str, predicted: Floats
) -> Iterator[tuple[tuple[Any, ...], Scores]]:
    """The scores of each group of rows that share the columns `by`, with the group's values, sorted by them."""
    power = rows[measured].to_numpy(dtype=float)
    places = rows.reset_index(drop=True).groupby(list(by), dropna=False).indices
    groups = {key if isinstance(key, tuple) else (key,): place for key, place in places.items()}
    # Texts last, because they do not compare with numbers.
    for key in sorted(groups, key=lambda key: [(isinstance(value, str), value) for value in key]):
        group = groups[key]
        yield key, score(power[group], predicted[group])


def histogram(errors: Floats, edges: Sequence[float]) -> list[int]:
    """How many signed errors (per cent) fall between neighbouring edges; what lies beyond is in the outermost."""
    finite = errors[np.isfinite(errors)]
    inside = np.clip(finite, edges[0], np.nextafter(edges[-1], edges[0]))
    return [int(count) for count in np.histogram(inside, bins=edges)[0]]
