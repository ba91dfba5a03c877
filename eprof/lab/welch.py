"""Is a difference of means more than noise? Welch's test, for two samples of unequal variance.

B. L. Welch, The generalization of "Student's" problem when several different population variances are involved,
Biometrika 34 (1947). Chosen over a permutation test, which with three repeats a side can never fall below p = 0.1.
"""

import math
from collections.abc import Sequence

from msgspec import Struct

CONFIDENCE = 0.95


class Test(Struct, frozen=True):
    """The difference of two means (new - old) with its interval at `CONFIDENCE`, and the two-sided p value.

    p: how often repeats as noisy as these would differ by so much if there were no difference.
    """

    old_mean: float
    new_mean: float
    old_sd: float
    new_sd: float
    old_n: int
    new_n: int
    low: float
    high: float
    p: float

    @property
    def change(self) -> float:
        """The difference of the means in Welch's test."""
        return self.new_mean - self.old_mean

    @property
    def shown(self) -> bool:
        """Whether Welch's test shows a difference: the interval leaves out 0."""
        return self.p < 1 - CONFIDENCE


def welch(old: Sequence[float], new: Sequence[float]) -> Test | None:
    """Welch's test of the means of two samples; None unless both have two values at least.

    Samples that do not vary at all leave no doubt: the interval has no width, and p is 0 or, for equal means, 1.
    """
    if len(old) < 2 or len(new) < 2:
        return None
    (mean0, var0), (mean1, var1) = _moments(old), _moments(new)
    share0, share1 = var0 / len(old), var1 / len(new)
    error = math.sqrt(share0 + share1)
    change = mean1 - mean0
    if error == 0:
        half, p = 0.0, 1.0 if change == 0 else 0.0
    else:
        freedom = (share0 + share1) ** 2 / (share0**2 / (len(old) - 1) + share1**2 / (len(new) - 1))
        half, p = t_quantile(CONFIDENCE, freedom) * error, t_outside(abs(change) / error, freedom)
    return Test(mean0, mean1, math.sqrt(var0), math.sqrt(var1), len(old), len(new), change - half, change + half, p)


def _moments(values: Sequence[float]) -> tuple[float, float]:
    """Mean and unbiased variance of a sample; exactly 0 for values that are all the same."""
    if all(value == values[0] for value in values):
        return values[0], 0.0
    mean = math.fsum(values) / len(values)
    return mean, math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


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
    front = math.exp(a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b))
    return front * _fraction(a, b, x) / a


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction 1/(1 + d1/(1 + d2/(1 + ...))), evaluated from the front (Lentz's method)."""
    above = 1.0
    below = 0.0
    result = 1.0
    for number in range(1, 1000):
        half, odd = divmod(number, 2)
        top = -(a + half) * (a + b + half) if odd else half * (b - half)
        d = top * x / ((a + number - 1) * (a + number))
        below = 1 / (1 + d * below)
        above = 1 + d / above
        result *= above * below
        if abs(above * below - 1) < 1e-15:
            break
    return 1 / result
