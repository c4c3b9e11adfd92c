"""Whether values are one population or two.

The statistic is the largest distance of two groups' means over the deviation within them, of all
ways to cut the sorted values in two. Normal values of one population are as far apart as CRITICAL
says in one of 100,000 samples (simulated, with half a million to four million samples a size):
twelve figures of a baseline are looked at.
"""

import bisect
import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass

CRITICAL = (
    (6, 55.3),
    (7, 32.3),
    (8, 22.5),
    (10, 14.7),
    (12, 11.5),
    (15, 9.08),
    (20, 7.33),
    (30, 5.78),
    (40, 5.31),
    (60, 4.98),
    (100, 4.64),
)
# A smaller group are hosts that stray, and no population: real figures have long tails.
GROUP_LEAST = 2
GROUP_SHARE_LEAST = 0.2
# Of the deviation of one host's jobs: nearer groups may be what jobs differ by.
JOBS_APART = 4.0
# Groups nearer than this make no wide limit.
DISTANCE_LEAST = math.log1p(0.03)
# What no figure repeats better than.
DEVIATION_LEAST = 0.001


@dataclass(frozen=True)
class Split:
    """Which values, by name, are in the lower and in the upper group."""

    low: tuple[str, ...]
    high: tuple[str, ...]


def split_of(values: Mapping[str, float], within: float | None = None) -> Split | None:
    """The two populations of these logarithms; None: it is one, or they are too few to tell.
    `within`: the variance of one host's jobs."""
    n = len(values)
    if n < CRITICAL[0][0]:
        return None
    names = sorted(values, key=values.__getitem__)
    logs = [values[name] for name in names]
    best, at = 0.0, 0
    group = max(GROUP_LEAST, math.ceil(GROUP_SHARE_LEAST * n))
    apart = max(DISTANCE_LEAST, JOBS_APART * math.sqrt(within or 0.0))
    for cut in range(group, n - group + 1):
        low, high = statistics.fmean(logs[:cut]), statistics.fmean(logs[cut:])
        distance = high - low
        squares = math.fsum((v - low) ** 2 for v in logs[:cut])
        squares += math.fsum((v - high) ** 2 for v in logs[cut:])
        deviation = max(DEVIATION_LEAST, math.sqrt(squares / (n - 2)))
        if distance >= apart and distance / deviation > best:
            best, at = distance / deviation, cut
    if best <= _critical(n):
        return None
    return Split(low=tuple(names[:at]), high=tuple(names[at:]))


def _critical(n: int) -> float:
    """Of the largest size in the table that is not above `n`: that errs on the safe side."""
    at = bisect.bisect_right([size for size, _ in CRITICAL], n) - 1
    return CRITICAL[at][1]
