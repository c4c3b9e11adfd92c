"""Whether hosts are one population, or some of them differ from the others.

Every way to cut the sorted values of a figure in two is judged by the t statistic of its sides. The
`g` lowest or highest of `n` values are further off than any other `g` of them. So chance produces
such a t at most as often as for one set of hosts, times the number of such sets; with one host on a
side, that is Grubbs' test. Larger sets have smaller parts of the error rate.

All figures share one error rate, but unevenly: a host that is off widens its figure, so a figure
gets the more of the rate the wider its values spread, compared with others of its subsystem. For
normal values, the spread does not show which value lies where, however the figures depend on each
other, so the rate holds (Westfall, Kropf and Finos, "Weighted FWE-controlling methods in
high-dimensional situations", 2004).
"""

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# Groups that are closer than this do not widen a limit much.
DISTANCE_LEAST = math.log1p(0.03)
# No figure repeats better than this.
DEVIATION_LEAST = 0.001
# This part of the error rate is shared evenly: a figure may have a good reason to spread.
EVEN_PART = 0.25
# A figure that spreads twice as far as another one gets 64 times as much of the rest.
SPREAD_POWER = 6
# The share of jobs whose figures are off by chance: one of 92 was off by half or more
# (benchmarks/trust).
STRAY_JOBS = 0.02


@dataclass(frozen=True)
class Split:
    """The hosts, by name, of the lower and the upper group."""

    low: tuple[str, ...]
    high: tuple[str, ...]

    @property
    def odd(self) -> tuple[str, ...]:
        """The smaller group."""
        return min(self.low, self.high, key=len)


def error_shares(
    values: Mapping[str, Sequence[float]], kinds: Mapping[str, str]
) -> dict[str, float]:
    """Return the share of the error rate for each figure.

    `values` has one logarithm for each host, by figure. `kinds` has the subsystem of each figure;
    the mean share is the same in all subsystems.
    """
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
    """Return the two groups of hosts, or None if chance may explain the distance between them.

    `hosts` has the logarithms of each host's jobs. Chance makes groups so far apart in at most a
    part `level` of such samples. Every job of the smaller group must be at least `apart` from the
    mean of the other group. `strays`: single jobs may be off by chance.
    """
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
        chance = sets + log_above(t, n - 2)
        if strays:
            chance = max(chance, sets + of_odd * math.log(STRAY_JOBS))
        if chance <= best:
            best, at = chance, cut
    return Split(low=tuple(names[:at]), high=tuple(names[at:])) if at else None


def _log_sets(odd: int, n: int) -> float:
    """Return the logarithm of the number of sets of `odd` hosts, on either side, divided by their
    part of the error rate: 3/4 for one host, 3/16 for two and so on."""
    sets = math.lgamma(n + 1) - math.lgamma(odd + 1) - math.lgamma(n - odd + 1)
    return math.log(2) + sets + odd * math.log(4) - math.log(3)


def log_above(t: float, degrees: int) -> float:
    """Return the logarithm of an upper bound on the probability that Student's t is above `t`,
    which must be positive.

    It is the integral of the density times u / t: too large by half with 3 degrees of freedom, by a
    fifth with 6, and by less with more.
    """
    density = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)
    density -= math.log(degrees * math.pi) / 2
    above = math.log(degrees / (degrees - 1) / t)
    return density + above - (degrees - 1) / 2 * math.log1p(t * t / degrees)
