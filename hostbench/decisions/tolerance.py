"""How far off a sound host may be: tolerance limits, and the probability of a value further off.

All of it assumes normal values with an unknown mean and deviation: the logarithms of the hosts'
figures.
"""

import functools
import math
from collections.abc import Sequence

from hostbench.judge.statistics import NORMAL, student_below
from hostbench.model.baseline import TOLERANCE_CONFIDENCE, TOLERANCE_COVERAGE

# From this many hosts on, the lowest of them is such a limit for any distribution: 1 - 0.95 ** 59
# is above 0.95.
DISTRIBUTION_FREE_FROM = math.ceil(
    math.log(1 - TOLERANCE_CONFIDENCE) / math.log(TOLERANCE_COVERAGE)
)
_STEPS = 400
# Beyond this many deviations of the estimated deviation, the integrand is negligible.
_WIDTHS = 9.0


@functools.cache
def tolerance_factor(n: int) -> float:
    """Return k: with 95 % confidence, 95 % of all values are above the mean minus k deviations of
    `n` values.

    It is a quantile of the noncentral t distribution, divided by the root of n (Hahn and Meeker,
    Statistical Intervals, 4.6.3).
    """
    shift = NORMAL.inv_cdf(TOLERANCE_COVERAGE) * math.sqrt(n)
    low, high = 0.0, 1.0
    while noncentral_t_below(high, n - 1, shift) < TOLERANCE_CONFIDENCE:
        low, high = high, high * 2
    for _ in range(60):
        middle = (low + high) / 2
        below = noncentral_t_below(middle, n - 1, shift) < TOLERANCE_CONFIDENCE
        low, high = (middle, high) if below else (low, middle)
    return high / math.sqrt(n)


def noncentral_t_below(t: float, degrees: int, shift: float) -> float:
    """Return the probability that (Z + shift) / U is below t, where Z is normal and U is the root
    of chi square over its `degrees`. It uses Simpson's rule over U."""
    width = _WIDTHS / math.sqrt(2 * degrees)
    low, high = max(0.0, 1 - width), 1 + width
    step = (high - low) / _STEPS
    scale = math.log(2) + degrees / 2 * math.log(degrees / 2) - math.lgamma(degrees / 2)
    total = 0.0
    for number in range(_STEPS + 1):
        u = low + number * step
        if u <= 0:
            continue
        weight = 1 if number in (0, _STEPS) else 4 if number % 2 else 2
        density = math.exp(scale + (degrees - 1) * math.log(u) - degrees * u * u / 2)
        total += weight * density * NORMAL.cdf(t * u - shift)
    return total * step / 3


@functools.cache
def limit_rank(n: int) -> int:
    """Return r: with 95 % confidence, 95 % of all values of any distribution are above the r-th
    lowest of `n` values; 0: `n` is too small (Hahn and Meeker, Statistical Intervals, 5.3.1)."""
    below, rank = 0.0, 0
    share = 1 - TOLERANCE_COVERAGE
    while rank <= n:
        ways = math.lgamma(n + 1) - math.lgamma(rank + 1) - math.lgamma(n - rank + 1)
        below += math.exp(ways + rank * math.log(share) + (n - rank) * math.log1p(-share))
        if below > 1 - TOLERANCE_CONFIDENCE:
            break
        rank += 1
    return rank


def chance_below(distance: float, deviation: float, n: int) -> float:
    """Return the probability that a further value is at least `distance` below the mean of `n`
    values. `deviation` is that of the difference between the two."""
    t = distance / deviation
    below = student_below(abs(t), n - 1)
    return 1 - below if t > 0 else below


def holm(chances: Sequence[float], level: float, shares: Sequence[float]) -> list[bool]:
    """Return which chances are too small to be chance, all of them together, each with its share of
    the error rate (Holm, "A Simple Sequentially Rejective Multiple Test Procedure", 1979)."""
    found = [False] * len(chances)
    order = sorted(range(len(chances)), key=lambda at: chances[at] / shares[at])
    for number, at in enumerate(order):
        if chances[at] > level * shares[at] / math.fsum(shares[left] for left in order[number:]):
            break
        found[at] = True
    return found


def benjamini_hochberg(chances: Sequence[float], level: float) -> list[bool]:
    """Return which chances are too small to be chance, except for a share `level` of those
    found."""
    order = sorted(range(len(chances)), key=chances.__getitem__)
    last = 0
    for number, at in enumerate(order, start=1):
        if chances[at] <= level * number / len(chances):
            last = number
    found = [False] * len(chances)
    for at in order[:last]:
        found[at] = True
    return found
