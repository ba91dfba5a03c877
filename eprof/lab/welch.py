"""Is a difference of means more than noise? Welch's test, for two samples of unequal variance.

B. L. Welch, The generalization of "Student's" problem when several different population variances are involved,
Biometrika 34 (1947). Chosen over a permutation test, which with three repeats a side can never fall below p = 0.1.
"""

import math
import statistics
from collections.abc import Sequence

from msgspec import Struct

CONFIDENCE = 0.95


class Sample(Struct, frozen=True):
    """Mean, standard deviation and number of repeated measurements of one thing."""

    mean: float
    sd: float
    n: int


class Test(Struct, frozen=True):
    """The difference of two means (new - old), its interval at `CONFIDENCE`, and whether a difference is shown.

    p, two-sided: how often repeats as noisy as these would differ by so much if there were no difference.
    """

    change: float
    low: float
    high: float
    p: float
    shown: bool
    old: Sample
    new: Sample


def welch(old: Sequence[float], new: Sequence[float]) -> Test | None:
    """Welch's test of the means of two samples, OLD and NEW; None unless both have two values at least.

    Samples that do not vary at all leave no doubt: the interval has no width, and p is 0 or, for equal means, 1.
    """
    if len(old) < 2 or len(new) < 2:
        return None
    samples, shares = [], []
    for values in (old, new):
        variance = statistics.variance(values)  # exactly 0 for values that are all the same
        samples.append(Sample(statistics.mean(values), math.sqrt(variance), len(values)))
        shares.append(variance / len(values))
    change = samples[1].mean - samples[0].mean
    error = math.sqrt(sum(shares))
    half, p = 0.0, float(change == 0)
    if error:
        squares = (share**2 / (sample.n - 1) for share, sample in zip(shares, samples, strict=True))
        freedom = sum(shares) ** 2 / sum(squares)
        half, p = t_quantile(CONFIDENCE, freedom) * error, t_outside(abs(change) / error, freedom)
    return Test(change, change - half, change + half, p, p < 1 - CONFIDENCE, *samples)


def t_outside(t: float, freedom: float) -> float:
    """The probability that |Student's t| with `freedom` degrees of freedom is above `t`."""
    return beta_share(freedom / 2, 0.5, freedom / (freedom + t * t))


def t_quantile(inside: float, freedom: float) -> float:
    """The t with probability `inside` between -t and t, by bisection."""
    low, high = 0.0, 1.0
    while t_outside(high, freedom) > 1 - inside:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if t_outside(middle, freedom) > 1 - inside else (low, middle)
    return (low + high) / 2


def beta_share(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b), by its continued fraction (DLMF 8.17.22)."""
    if x <= 0 or x >= 1:
        return min(max(x, 0.0), 1.0)
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_share(b, a, 1 - x)
    # 1/(1 + d1/(1 + d2/(1 + ...))), evaluated from the front (Lentz's method).
    above = fraction = 1.0
    below = 0.0
    for number in range(1, 1000):
        half, is_odd = divmod(number, 2)
        top = half * (b - half) * x
        if is_odd:
            top = -(a + half) * (a + b + half) * x
        d = top / ((a + number - 1) * (a + number))
        below = 1 / (1 + d * below)
        above = 1 + d / above
        fraction *= above * below
        if abs(above * below - 1) < 1e-15:
            break
    front = math.exp(a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b))
    return front * (1 / fraction) / a
