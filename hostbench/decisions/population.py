"""Whether hosts are one population, or some of them are not like the others.

Of all ways to cut the sorted values of a figure in two, each is judged by the t statistic of its
sides. The `g` lowest or highest of `n` values lie further off than any other `g` of them, so chance
makes a t as large at most as often as for one set of hosts, times the number of such sets; with one
host on a side that is Grubbs' test. Larger sets have smaller parts of the error rate.

All figures share one error rate, and not evenly: a host that is off widens its figure, so a figure
has the more of it the further its values spread, beside others of its subsystem. Of normal values
the spread does not tell which of them lies where, however the figures hang together, so the rate
holds (Westfall, Kropf and Finos, "Weighted FWE-controlling methods in high-dimensional situations",
2004).
"""

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# Groups nearer than this make no wide limit.
DISTANCE_LEAST = math.log1p(0.03)
# What no figure repeats better than.
DEVIATION_LEAST = 0.001
# This part of the error rate is shared evenly: a figure may have a reason to spread.
EVEN_PART = 0.25
# A figure that spreads twice as far as another one has 64 times as much of the rest.
SPREAD_POWER = 6
# Of jobs whose figures stray: one of 92 was off by half and more (benchmarks/trust).
STRAY_JOBS = 0.02


@dataclass(frozen=True)
class Split:
    """Which hosts, by name, are in the lower and in the upper group."""

    low: tuple[str, ...]
    high: tuple[str, ...]

    @property
    def odd(self) -> tuple[str, ...]:
        """The smaller group."""
        return min(self.low, self.high, key=len)


def error_shares(
    values: Mapping[str, Sequence[float]], kinds: Mapping[str, str]
) -> dict[str, float]:
    """The share of the error rate that each figure has: `values` has a logarithm of each host by
    figure, `kinds` the subsystem of each, whose figures have an equal share in the mean."""
    weights = {
        name: max(DEVIATION_LEAST, statistics.stdev(own)) ** SPREAD_POWER
        for name, own in values.items()
    }
    of_kind: dict[str, list[float]] = {}
    for name, weight in weights.items():
        of_kind.setdefault(kinds[name], []).append(weight)
    return {
        name: (EVEN_PART + (1 - EVEN_PART) * weight / statistics.fmean(of_kind[kinds[name]]))
        / len(weights)
        for name, weight in weights.items()
    }


def split_of(
    hosts: Mapping[str, Sequence[float]], level: float, *, apart: float = 0.0, strays: bool = False
) -> Split | None:
    """The two groups of hosts, each with the logarithms of its jobs; None: in all but a part
    `level` of such samples chance makes none as far apart. `apart`: so far every job of the smaller
    group lies off the mean of the other one. `strays`: single jobs are off by chance."""
    n = len(hosts)
    middles = {name: statistics.median(own) for name, own in hosts.items()}
    names = sorted(middles, key=middles.__getitem__)
    mean = statistics.fmean(middles.values())
    logs = [middles[name] - mean for name in names]
    sums = list(itertools.accumulate(logs))
    squares = math.fsum(log * log for log in logs)
    highest = list(itertools.accumulate((max(hosts[name]) - mean for name in names), max))
    lowest = list(itertools.accumulate((min(hosts[name]) - mean for name in reversed(names)), min))
    counts = list(itertools.accumulate(len(hosts[name]) for name in names))
    best, at = math.log(level), 0
    for cut in range(1, n):
        low, high = sums[cut - 1] / cut, (sums[-1] - sums[cut - 1]) / (n - cut)
        odd_are_low = cut <= n - cut
        nearest = high - highest[cut - 1] if odd_are_low else lowest[n - cut - 1] - low
        of_odd = counts[cut - 1] if odd_are_low else counts[-1] - counts[cut - 1]
        if nearest < max(DISTANCE_LEAST, apart):
            continue
        rest = max(0.0, squares - cut * low * low - (n - cut) * high * high)
        deviation = max(DEVIATION_LEAST, math.sqrt(rest / (n - 2)))
        t = (high - low) / deviation / math.sqrt(1 / cut + 1 / (n - cut))
        sets = _log_sets(min(cut, n - cut), n)
        chance = sets + _log_above(t, n - 2)
        if strays:
            chance = max(chance, sets + of_odd * math.log(STRAY_JOBS))
        if chance <= best:
            best, at = chance, cut
    return Split(low=tuple(names[:at]), high=tuple(names[at:])) if at else None


def _log_sets(odd: int, n: int) -> float:
    """The logarithm of how many sets of so many hosts there are, on either side, over the part of
    the error rate that they have together: 3/4 for one host, 3/16 for two and so on."""
    sets = math.lgamma(n + 1) - math.lgamma(odd + 1) - math.lgamma(n - odd + 1)
    return math.log(2) + sets + odd * math.log(4) - math.log(3)


def _log_above(t: float, degrees: int) -> float:
    """The logarithm of how often Student's t is above `t`, which is positive, at most: the integral
    of its density times u / t, which is too much by half with 3 degrees of freedom, by a fifth with
    6, and by less with more."""
    density = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)
    density -= math.log(degrees * math.pi) / 2
    above = math.log(degrees / (degrees - 1) / t)
    return density + above - (degrees - 1) / 2 * math.log1p(t * t / degrees)
