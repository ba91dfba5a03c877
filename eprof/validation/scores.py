"""How far predictions are from measurements: relative errors in per cent, root mean square in W (model.md 8, 9)."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Scores:
    """Errors over `n` rows; `missing` more could not be predicted and are in no number.

    mean, sd (of a sample), min, median, p90 and max are of the absolute relative error |predicted - measured| /
    measured, in per cent; bias is the mean of the signed one (above 0: predicted too much). None: not known.
    """

    n: int
    missing: int
    mean_percent: float | None
    sd_percent: float | None
    min_percent: float | None
    median_percent: float | None
    p90_percent: float | None
    max_percent: float | None
    bias_percent: float | None
    rmse_w: float | None

    def data(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        return asdict(self)


def errors_percent(measured: Floats, predicted: Floats) -> Floats:
    """100 (predicted - measured) / measured, signed, (n,); NaN where either is not known or nothing was measured."""
    measured, predicted = np.asarray(measured, dtype=float), np.asarray(predicted, dtype=float)
    safe = np.where(measured > 0, measured, math.nan)
    return np.asarray(100.0 * (predicted - measured) / safe)


def score(measured: Floats, predicted: Floats) -> Scores:
    """Scores of predicted against measured power, both in W, (n,)."""
    signed = errors_percent(measured, predicted)
    known = np.isfinite(signed)
    sizes = np.abs(signed[known])
    if not sizes.size:
        return Scores(0, len(signed), *[None] * 8)
    off_w = (np.asarray(predicted, dtype=float) - np.asarray(measured, dtype=float))[known]
    return Scores(
        n=int(sizes.size),
        missing=int((~known).sum()),
        mean_percent=float(sizes.mean()),
        sd_percent=float(sizes.std(ddof=1)) if sizes.size > 1 else None,
        min_percent=float(sizes.min()),
        median_percent=float(np.median(sizes)),
        p90_percent=float(np.percentile(sizes, 90)),
        max_percent=float(sizes.max()),
        bias_percent=float(signed[known].mean()),
        rmse_w=float(np.sqrt(np.mean(off_w**2))),
    )


def grouped(
    rows: pd.DataFrame, by: Sequence[str], measured: str, predicted: Floats
) -> Iterator[tuple[tuple[Any, ...], Scores]]:
    """The scores of each group of rows that share the columns `by`, sorted by them."""
    places = rows.reset_index(drop=True).groupby(list(by), sort=True, dropna=False).indices
    power = rows[measured].to_numpy(dtype=float)
    for key in sorted(places, key=_sortable):
        at = places[key]
        yield (key if isinstance(key, tuple) else (key,)), score(power[at], predicted[at])


def _sortable(key: Any) -> tuple[Any, ...]:
    words = key if isinstance(key, tuple) else (key,)
    return tuple((isinstance(one, str), one) for one in words)


def histogram(errors: Floats, edges: Sequence[float]) -> list[int]:
    """How many signed errors (per cent) fall between neighbouring edges; what lies beyond is in the outermost bins."""
    known = errors[np.isfinite(errors)]
    inside = np.clip(known, edges[0], np.nextafter(edges[-1], edges[0]))
    return [int(one) for one in np.histogram(inside, bins=np.asarray(edges, dtype=float))[0]]
