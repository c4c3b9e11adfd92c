"""Which hosts of a campaign are one population, and what low hosts have in common."""

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from hostbench.decisions.baseline import POPULATION_ERROR
from hostbench.decisions.fleet_hosts import Host
from hostbench.decisions.population import log_above
from hostbench.model.baseline import HOSTS_LEAST
from hostbench.model.fleet import CommonFact, HostFact

# With fewer hosts, each host would have too few others.
GROUP_LEAST = HOSTS_LEAST + 1
# Populations that are nearer than this, or than the deviation within them, widen a limit little.
APART_LEAST = math.log1p(0.01)
# Of a fact that differs on most hosts, such as a serial number, only the frequent values count.
VALUES_MOST = 8


def families(hosts: Sequence[Host]) -> list[list[Host]]:
    """Return the hosts by processor and kind of machine, the largest group first. Steppings and
    memory are facts that may explain a difference within a family."""
    found: dict[object, list[Host]] = {}
    for host in hosts:
        key = host.key
        alike = key.model_copy(update={"stepping": None, "memory": None})
        found.setdefault(alike, []).append(host)
    return sorted(found.values(), key=len, reverse=True)


def populations(hosts: list[Host]) -> list[list[Host]]:
    """Return a family cut by the facts that explain a difference of figures, the largest part
    first."""
    best = _best_cut(hosts)
    if best is None:
        return [hosts]
    return sorted((part for side in best for part in populations(side)), key=len, reverse=True)


def _best_cut(hosts: list[Host]) -> tuple[list[Host], list[Host]] | None:
    """Return the two groups that a fact separates most clearly, or None if chance may explain all
    differences between such groups."""
    cases = dict.fromkeys(case for host in hosts for case in host.logs)
    values = {
        case: [(at, host.middle(case)) for at, host in enumerate(hosts) if case in host.logs]
        for case in cases
    }
    cuts = list(_cuts(hosts))
    best, found = math.log(POPULATION_ERROR / max(1, len(cuts) * len(cases))), None
    for inside in cuts:
        for of_case in values.values():
            a = [value for at, value in of_case if at in inside]
            b = [value for at, value in of_case if at not in inside]
            if min(len(a), len(b)) < GROUP_LEAST:
                continue
            chance = chance_apart(a, b)
            if chance is not None and chance < best:
                best, found = chance, inside
    if found is None:
        return None
    inside_hosts = [host for at, host in enumerate(hosts) if at in found]
    return inside_hosts, [host for at, host in enumerate(hosts) if at not in found]


def _cuts(hosts: Sequence[Host]) -> Iterator[frozenset[int]]:
    """Yield the hosts, by their places, that have a fact in common which enough others do not
    have; each such group once."""
    facts = [host.facts for host in hosts]
    seen: set[frozenset[int]] = set()
    for name in dict.fromkeys(name for one in facts for name in one):
        by_value: dict[str | None, set[int]] = {}
        for at, one in enumerate(facts):
            by_value.setdefault(one.get(name), set()).add(at)
        groups = sorted(by_value.values(), key=len, reverse=True)[:VALUES_MOST]
        for group in map(frozenset, groups):
            rest = frozenset(range(len(hosts))) - group
            if min(len(group), len(rest)) >= GROUP_LEAST and not {group, rest} & seen:
                seen.add(group)
                yield group


def chance_apart(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Return the logarithm of the probability that the means of one population are so far apart
    (Welch's test); None: they are near each other."""
    apart = abs(statistics.median(a) - statistics.median(b))
    squares = [_variance(side) for side in (a, b)]
    within = math.sqrt(statistics.fmean(squares))
    if apart < max(APART_LEAST, within):
        return None
    parts = [one / len(side) for one, side in zip(squares, (a, b), strict=True)]
    error = math.sqrt(sum(parts))
    if not error:
        return -math.inf
    t = abs(statistics.fmean(a) - statistics.fmean(b)) / error
    shares = (part**2 / (len(side) - 1) for part, side in zip(parts, (a, b), strict=True))
    degrees = max(2, int(sum(parts) ** 2 / sum(shares)))
    return math.log(2) + log_above(t, degrees) if t > 0 else None


def _variance(values: Sequence[float]) -> float:
    mean = statistics.fmean(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def separating_facts(hosts: Sequence[Host], others: Sequence[Host]) -> tuple[tuple[str, str], ...]:
    """Return the facts that all of these hosts and none of the others have."""
    first = hosts[0].facts
    return tuple(
        (name, value)
        for name, value in first.items()
        if all(host.facts.get(name) == value for host in hosts)
        and not any(host.facts.get(name) == value for host in others)
    )


class FactTable:
    """How often each value of each fact occurs among some hosts."""

    def __init__(self, hosts: Iterable[Host]) -> None:
        self._hosts = list(hosts)
        self._counts: dict[str, Counter[str]] = {}
        for host in self._hosts:
            for name, value in host.facts.items():
                self._counts.setdefault(name, Counter())[value] += 1

    def differing(self, host: Host) -> Iterator[HostFact]:
        """Yield the facts in which one of these hosts differs from most of them, the rarest
        first."""
        found = []
        for name, value in host.facts.items():
            usual, often = self._counts[name].most_common(1)[0]
            others = len(self._hosts) - 1
            if value != usual and often > others / 2:
                alike = self._counts[name][value] - 1
                found.append(HostFact(fact=name, value=value, usual=usual, alike=alike, of=others))
        yield from sorted(found, key=lambda one: one.alike)


def common_facts(low: Sequence[Host], others: Sequence[Host]) -> tuple[CommonFact, ...]:
    """Return the facts that low hosts have more often than chance explains, the clearest first:
    Fisher's exact test, one-sided, for all facts together."""
    rare = [
        (name, value, count)
        for (name, value), count in Counter(
            item for host in low for item in host.facts.items()
        ).items()
        if count > 1
    ]
    found = []
    for name, value, count in rare:
        elsewhere = sum(host.facts.get(name) == value for host in others)
        p = _fisher(count, len(low), elsewhere, len(others))
        if p * len(rare) <= POPULATION_ERROR:
            found.append(
                CommonFact(
                    fact=name,
                    value=value,
                    low=count,
                    lows=len(low),
                    others=elsewhere,
                    of_others=len(others),
                    p=p,
                )
            )
    return tuple(sorted(found, key=lambda one: one.p))


def _fisher(a: int, a_of: int, b: int, b_of: int) -> float:
    """Return the probability that at least `a` of `a_of` hosts are among the a + b of all that have
    a value."""
    have, everyone = a + b, a_of + b_of
    ways = _log_choose(everyone, a_of)
    return math.fsum(
        math.exp(_log_choose(have, k) + _log_choose(everyone - have, a_of - k) - ways)
        for k in range(a, min(a_of, have) + 1)
        if a_of - k <= everyone - have
    )


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
