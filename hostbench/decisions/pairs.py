"""Which hosts, uplinks and links of a fleet are slow, from measurements between pairs of hosts.

The model is of logarithms, so that effects multiply. A measurement is the level of its kind, plus
one effect for each of its two hosts, plus noise. Hosts are compared with the middle host of their
rack. Between racks, the level has one effect for each of the two racks: what all hosts of a rack
share when they leave it. Within a rack, the level is the rack's own. So hosts and uplinks cannot be
taken for each other, and pairs within a rack tell a slow uplink from a rack of slow hosts.

The fit is Huber's: by medians first, then by weighted means, one effect after the other until none
changes. Single measurements that are far off have little weight.

Words have error rates. A host or an uplink is slow if chance does not explain its effect, all
hosts and uplinks together (Holm's procedure). Sound hosts differ, too: their spread is part of what
chance explains. Suspects are measured again, a fixed number of times, and all their measurements
count: so a suspect that was unlucky comes back to the others, and the rate holds. Links are judged
by their residuals. The rank of a residual among all of them shows how unusual it is, whatever the
noise is like; Fisher's method combines the ranks of repeated measurements.
"""

import bisect
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hostbench.base.units import plural
from hostbench.decisions.pair_rounds import Pair, Suspects, link, pairs_of, retests
from hostbench.decisions.population import DEVIATION_LEAST
from hostbench.decisions.tolerance import holm
from hostbench.judge.statistics import NORMAL, student_below
from hostbench.model.pairs import (
    AtOnce,
    HostNetwork,
    Link,
    NextRound,
    PairMatrix,
    PairWord,
    Uplink,
)
from hostbench.model.table import Direction

# Of campaigns in which all is sound, at most this share calls any host or uplink slow.
ERROR_RATE = 0.05
# A campaign is judged after its matchings, and again after each of two series of retests.
LOOKS = 3
# A host, an uplink or a link is suspect if so many sound ones look so bad, each by itself.
SUSPECT = 0.05
RETESTS = 12
# A host that was measured less often is at most suspect: real noise has long tails.
MEASURED_LEAST = 12
LINK_RETESTS = 2
# Measured so often, a host that is still only suspect is left alone; an uplink, if all hosts of its
# rack were measured half as often.
HOST_MEASURED_MOST = 32
# Measured so often, a link that is still only suspect is left alone.
LINK_MEASURED_MOST = 10
# Below this many hosts of a rack, a slow host and a slow uplink look alike.
RACK_LEAST = 3
# No hosts are taken to be more alike than this (a standard deviation of logarithms).
HOST_SPREAD_LEAST = 0.01
# Degrees of freedom that a median absolute deviation is worth, for each value.
MAD_EFFICIENCY = 0.37
MAD_SCALE = 1.4826
# A median is so much less certain than a mean: its variance over that of the mean.
MEDIAN_VARIANCE = math.pi / 2
# Huber's constant: 95 % as good as the mean for normal noise.
HUBER = 1.345
MEDIAN_SWEEPS, SWEEPS_MOST = 6, 60
CONVERGED = 1e-6
# With fewer, nothing is known of the noise.
DEGREES_LEAST = 8
DEGREES_MOST = 200


@dataclass(frozen=True)
class Measurement:
    """A measurement between two hosts: its figure, and whether no other pair was measured
    meanwhile."""

    near: str
    far: str
    value: float
    alone: bool = False


@dataclass
class _Effect:
    """One number of the model, and the measurements that it is a part of."""

    value: float = 0.0
    at: list[int] = field(default_factory=list)


class PairFit:
    """The model fitted to measurements: effects as logarithms, and their uncertainty."""

    def __init__(
        self, measurements: Sequence[Measurement], logs: Sequence[float], racks: Mapping[str, str]
    ) -> None:
        self._measurements = measurements
        self.racks = racks
        self.hosts: defaultdict[str, _Effect] = defaultdict(_Effect)
        self.out: defaultdict[str, _Effect] = defaultdict(_Effect)
        self.inside: defaultdict[str, _Effect] = defaultdict(_Effect)
        self.alone: defaultdict[bool, _Effect] = defaultdict(_Effect)
        self._level = _Effect()
        self.residuals = list(logs)
        for number, one in enumerate(measurements):
            for effect in self._parts(one):
                effect.at.append(number)
        # An effect of all measurements is the level.
        for across in [key for key, effect in self.alone.items() if self._is_all(effect, key)]:
            del self.alone[across]
        self._effects = [
            self._level, *self.inside.values(), *self.out.values(), *self.alone.values(),
            *self.hosts.values(),
        ]  # fmt: skip
        effects = len(self._effects) - 1 if self.out else len(self._effects)
        # The middle host of each group is the group's level.
        groups = {racks.get(host) for host in self.hosts}
        self.degrees = len(measurements) - effects + len(groups)
        self._fit()
        self.noise, self._error = self._noise()

    def across(self, one: Measurement) -> bool:
        """Whether the hosts are in two racks."""
        return self.racks.get(one.near) != self.racks.get(one.far)

    def _parts(self, one: Measurement) -> Iterator[_Effect]:
        near, far = self.racks.get(one.near), self.racks.get(one.far)
        yield from (self.hosts[one.near], self.hosts[one.far])
        if near is not None and near == far:
            yield self.inside[near]
        else:
            yield self._level
            for rack in (near, far):
                if rack is not None:
                    yield self.out[rack]
        if one.alone:
            yield self.alone[near != far]

    def _is_all(self, alone: _Effect, across: bool) -> bool:
        return len(alone.at) == sum(self.across(one) == across for one in self._measurements)

    def _fit(self) -> None:
        if self._level.at:
            self._move(self._level, statistics.median(self.residuals[at] for at in self._level.at))
        for _ in range(MEDIAN_SWEEPS):
            for effect in self._effects:
                if effect.at:
                    middle = statistics.median(self.residuals[at] for at in effect.at)
                    self._move(effect, middle)
            self._centre()
        for _ in range(SWEEPS_MOST):
            weights = self._weights()
            moved = 0.0
            for effect in self._effects:
                weight = math.fsum(weights[at] for at in effect.at)
                if weight:
                    sums = math.fsum(weights[at] * self.residuals[at] for at in effect.at)
                    self._move(effect, sums / weight)
                    moved = max(moved, abs(sums / weight))
            self._centre()
            if moved < CONVERGED:
                break

    def _move(self, effect: _Effect, by: float) -> None:
        effect.value += by
        for at in effect.at:
            self.residuals[at] -= by

    def _centre(self) -> None:
        """Make the middle host of each rack the rack's level. No measurement is expected to be
        different by that."""
        groups: defaultdict[str | None, list[_Effect]] = defaultdict(list)
        for host, effect in self.hosts.items():
            groups[self.racks.get(host)].append(effect)
        for rack, own in groups.items():
            middle = statistics.median(effect.value for effect in own)
            for effect in own:
                effect.value -= middle
            if rack is not None:
                self.out[rack].value += middle
                self.inside[rack].value += 2 * middle
            else:
                self._level.value += 2 * middle
                for effect in self.out.values():
                    effect.value -= middle

    def _weights(self) -> list[float]:
        most = HUBER * self._scale()
        return [1.0 if abs(one) <= most else most / abs(one) for one in self.residuals]

    def _scale(self) -> float:
        middle = statistics.median(map(abs, self.residuals))
        scale = MAD_SCALE * middle * math.sqrt(len(self.residuals) / max(1, self.degrees))
        return max(DEVIATION_LEAST, scale)

    def _noise(self) -> tuple[float, float]:
        """Return the standard deviation of the noise, and that of a measurement as the fit weighs
        it (Huber, Robust Statistics, 7.6)."""
        scale = self._scale()
        most = HUBER * scale
        clipped = math.fsum(min(abs(one), most) ** 2 for one in self.residuals)
        kept = sum(abs(one) <= most for one in self.residuals) / len(self.residuals)
        error = math.sqrt(clipped / max(1, self.degrees)) / max(kept, 0.5)
        return scale, error

    # ---- how sure ----

    def host_variance(self, host: str) -> float:
        """Return the variance of a host's effect: of its own measurements, and of what is known of
        its partners."""
        own = self.hosts[host].at
        partners = Counter(self._partner(host, at) for at in own)
        shared = math.fsum(
            times * times / len(self.hosts[other].at) for other, times in partners.items()
        )
        return self._error**2 * (1 / len(own) + shared / len(own) ** 2)

    def _partner(self, host: str, at: int) -> str:
        one = self._measurements[at]
        return one.far if one.near == host else one.near

    def host_spread(self) -> float:
        """Return the variance of sound hosts, beyond what the noise explains."""
        values = [effect.value for effect in self.hosts.values()]
        spread = MAD_SCALE * statistics.median(map(abs, values))
        known = statistics.fmean(self.host_variance(host) for host in self.hosts)
        return max(HOST_SPREAD_LEAST**2, spread * spread - known)

    def host_chances(self) -> dict[str, float]:
        """Return how often chance alone makes a sound host look so bad, by host."""
        spread, middles = self.host_spread(), self._middles()
        return {
            host: self._chance(
                effect.value, spread, self.host_variance(host) + middles[self.racks.get(host)]
            )
            for host, effect in self.hosts.items()
        }

    def _middles(self) -> dict[str | None, float]:
        """Return the variance of the middle host of each rack."""
        spread = self.host_spread()
        own: defaultdict[str | None, list[float]] = defaultdict(list)
        for host in self.hosts:
            own[self.racks.get(host)].append(spread + self.host_variance(host))
        return {
            rack: MEDIAN_VARIANCE * statistics.fmean(some) / len(some) for rack, some in own.items()
        }

    def uplink_chances(self) -> dict[str, float]:
        """Return the same for the uplinks of the racks. Sound racks are taken to differ as sound
        hosts do."""
        spread, middles = self.host_spread(), self._middles()
        effects = self.uplinks()
        if not effects:
            return {}
        of_middle = MEDIAN_VARIANCE * statistics.fmean(middles[r] for r in effects) / len(effects)
        return {
            rack: self._chance(effect, spread, middles[rack] + of_middle)
            for rack, effect in effects.items()
        }

    def uplinks(self) -> dict[str, float]:
        """Return the effect of each rack's uplink, beside the middle of all; of two racks none can
        be called the slow one."""
        measured = {rack: effect.value for rack, effect in self.out.items() if effect.at}
        if len(measured) < RACK_LEAST:
            return {}
        middle = statistics.median(measured.values())
        return {rack: value - middle for rack, value in measured.items()}

    def insides(self) -> dict[str, float]:
        """Return how pairs within each rack differ from the middle of all racks."""
        measured = {rack: effect.value for rack, effect in self.inside.items() if effect.at}
        middle = statistics.median(measured.values()) if measured else 0.0
        return {rack: value - middle for rack, value in measured.items()}

    def _chance(self, effect: float, spread: float, variance: float) -> float:
        t = effect / math.sqrt(spread + variance)
        # After Satterthwaite: both variances are estimates, unless the spread is the least one.
        of_spread = MAD_EFFICIENCY * (len(self.hosts) - 1)
        if spread <= HOST_SPREAD_LEAST**2:
            of_spread = DEGREES_MOST
        degrees = (spread + variance) ** 2 / (
            spread**2 / of_spread + variance**2 / max(1, self.degrees)
        )
        below = student_below(abs(t), max(1, min(DEGREES_MOST, int(degrees))))
        return min(1.0, max(0.0, 1 - below if t <= 0 else below))

    def link_chances(self) -> dict[Pair, float]:
        """Return how often chance alone makes the measurements of a sound link look so bad."""
        ordered = sorted(self.residuals)
        unusual: defaultdict[Pair, list[float]] = defaultdict(list)
        for one, residual in zip(self._measurements, self.residuals, strict=True):
            rank = bisect.bisect_right(ordered, residual)
            unusual[link((one.near, one.far))].append(-math.log(rank / (len(ordered) + 1)))
        return {pair: _gamma_above(math.fsum(own), len(own)) for pair, own in unusual.items()}

    def link_residuals(self) -> dict[Pair, float]:
        """Return the median residual of each link."""
        own: defaultdict[Pair, list[float]] = defaultdict(list)
        for one, residual in zip(self._measurements, self.residuals, strict=True):
            own[link((one.near, one.far))].append(residual)
        return {pair: statistics.median(some) for pair, some in own.items()}

    def at_once(self) -> Iterator[AtOnce]:
        """Yield what measuring at the same time costs, within racks and across them."""
        for across, effect in sorted(self.alone.items()):
            alone = len(effect.at)
            alike = sum(self.across(one) == across for one in self._measurements)
            error = self._error * math.sqrt(1 / alone + 1 / (alike - alone))
            width = NORMAL.inv_cdf(0.975) * error
            yield AtOnce(
                across=across,
                alone=alone,
                together=alike - alone,
                ratio=math.exp(-effect.value),
                low=math.exp(-effect.value - width),
                high=math.exp(-effect.value + width),
            )


def _gamma_above(total: float, n: int) -> float:
    """Return the probability that the sum of n exponential values is above `total`."""
    term = chance = math.exp(-total)
    for k in range(1, n):
        term *= total / k
        chance += term
    return min(1.0, chance)


def pair_matrix(
    measurements: Sequence[Measurement],
    racks: Mapping[str, str] | None = None,
    *,
    title: str = "",
    unit: str = "byte/s",
    direction: Direction = "higher",
    left_out: Iterable[str] = (),
    seed: int = 0,
) -> PairMatrix:
    """Judge the hosts, the uplinks and the links of at least one measurement, whose figures are
    above 0. `racks` has the rack of each host; hosts without one are compared with each other."""
    nodes = sorted({host for one in measurements for host in (one.near, one.far)})
    judged_racks = _racks_of_size(nodes, racks or {})
    sign = 1.0 if direction == "higher" else -1.0
    fit = PairFit(measurements, [sign * math.log(one.value) for one in measurements], judged_racks)
    undecided = _why_undecided(measurements, len(nodes), fit.degrees)
    hosts = tuple(_hosts(fit, racks or {}, known=undecided is None))
    uplinks = tuple(_uplinks(fit, known=undecided is None))
    links = tuple(_links(fit, measurements, known=undecided is None))
    hosts, uplinks = _decided(hosts, uplinks)
    times = Counter(link((one.near, one.far)) for one in measurements)
    return PairMatrix(
        title=title,
        unit=unit,
        direction=direction,
        value=statistics.median(one.value for one in measurements),
        noise_ratio=fit.noise if fit.degrees >= DEGREES_LEAST else None,
        measurements=len(measurements),
        links_share=len(links) / pairs_of(len(nodes)),
        error_rate=ERROR_RATE,
        undecided=undecided,
        hosts=hosts,
        uplinks=uplinks,
        links=links,
        at_once=tuple(fit.at_once()) if undecided is None else (),
        next_rounds=tuple(
            NextRound(pairs=one)
            for one in _next_rounds(hosts, uplinks, links, racks or {}, times, seed)
        ),
        left_out=tuple(left_out),
    )


def _racks_of_size(nodes: Sequence[str], racks: Mapping[str, str]) -> dict[str, str]:
    """Return the racks of hosts whose rack has enough hosts to be judged."""
    sizes = Counter(racks[node] for node in nodes if node in racks)
    return {node: racks[node] for node in nodes if sizes[racks.get(node, "")] >= RACK_LEAST}


def _why_undecided(measurements: Sequence[Measurement], hosts: int, degrees: int) -> str | None:
    if degrees < DEGREES_LEAST:
        return (
            f"{plural(len(measurements), 'measurement')} between {plural(hosts, 'host')} are too "
            "few to tell the hosts from one another; measure four rounds or more of hostbench "
            "fleet schedule"
        )
    sides: dict[str, int] = {}
    partners: defaultdict[str, set[str]] = defaultdict(set)
    for one in measurements:
        partners[one.near].add(one.far)
        partners[one.far].add(one.near)
    sides[measurements[0].near] = 0
    waiting, odd = [measurements[0].near], False
    while waiting:
        host = waiting.pop()
        for other in partners[host]:
            if other not in sides:
                sides[other] = 1 - sides[host]
                waiting.append(other)
            odd = odd or sides[other] == sides[host]
    if len(sides) < hosts:
        return (
            f"{len(sides):,} of {hosts:,} hosts were measured with each other alone; measure pairs "
            "of both parts, as hostbench fleet schedule gives them"
        )
    if not odd:
        return (
            "the hosts are of two kinds, and each measured pair has one host of either kind. So a "
            "slow host looks like one with fast partners; also measure pairs within a kind"
        )
    return None


def _hosts(fit: PairFit, racks: Mapping[str, str], *, known: bool) -> Iterator[HostNetwork]:
    chances = fit.host_chances() if known else {}
    for host, effect in sorted(fit.hosts.items()):
        yield HostNetwork(
            host=host,
            rack=racks.get(host),
            ratio=math.exp(effect.value),
            measured=len(effect.at),
            chance=chances.get(host),
            word=_word(chances.get(host)),
        )


def _uplinks(fit: PairFit, *, known: bool) -> Iterator[Uplink]:
    chances, inside = fit.uplink_chances() if known else {}, fit.insides()
    for rack, effect in sorted(fit.uplinks().items()):
        yield Uplink(
            rack=rack,
            ratio=math.exp(effect),
            measured=len(fit.out[rack].at),
            chance=chances.get(rack),
            word=(word := _word(chances.get(rack))),
            inside_ratio=math.exp(inside[rack]) if rack in inside else None,
            # A slow uplink leaves pairs within as they are; slow hosts are slow twice there.
            whole_rack=word is PairWord.SUSPECT and inside.get(rack, 0.0) < effect,
        )


def _links(fit: PairFit, measurements: Sequence[Measurement], *, known: bool) -> Iterator[Link]:
    chances, residuals = fit.link_chances() if known else {}, fit.link_residuals()
    values: defaultdict[Pair, list[float]] = defaultdict(list)
    for one in measurements:
        values[link((one.near, one.far))].append(one.value)
    order = sorted(values)
    slow = holm([chances.get(p, 1.0) for p in order], ERROR_RATE / LOOKS, _even(len(order)))
    for pair, is_slow in zip(order, slow, strict=True):
        yield Link(
            a=pair[0],
            b=pair[1],
            value=statistics.median(values[pair]),
            ratio=math.exp(residuals[pair]),
            measured=len(values[pair]),
            chance=chances.get(pair),
            word=PairWord.SLOW if is_slow and known else _word(chances.get(pair)),
        )


def _word(chance: float | None) -> PairWord:
    if chance is None:
        return PairWord.UNKNOWN
    return PairWord.SUSPECT if chance <= SUSPECT else PairWord.AS_EXPECTED


def _decided(
    hosts: Sequence[HostNetwork], uplinks: Sequence[Uplink]
) -> tuple[tuple[HostNetwork, ...], tuple[Uplink, ...]]:
    """Return them with those called slow that chance does not explain, all of them together."""
    chances = [1.0 if one.chance is None else one.chance for one in (*hosts, *uplinks)]
    slow = holm(chances, ERROR_RATE / LOOKS, _even(len(chances)))
    word = {"word": PairWord.SLOW}
    return (
        tuple(
            one.model_copy(update=word) if bad and one.measured >= MEASURED_LEAST else one
            for one, bad in zip(hosts, slow, strict=False)
        ),
        tuple(
            one.model_copy(update=word) if bad else one
            for one, bad in zip(uplinks, slow[len(hosts) :], strict=True)
        ),
    )


def _even(n: int) -> list[float]:
    return [1 / n] * n


def _next_rounds(
    hosts: Sequence[HostNetwork],
    uplinks: Sequence[Uplink],
    links: Sequence[Link],
    racks: Mapping[str, str],
    times: Counter[Pair],
    seed: int,
) -> list[tuple[Pair, ...]]:
    """Return the rounds that would decide the suspect hosts and uplinks; if there are none, the
    suspect links."""
    sound = {one.host for one in hosts if one.word is PairWord.AS_EXPECTED}
    doubtful = {one.rack for one in uplinks if one.word is not PairWord.AS_EXPECTED}
    good = {host for host in sound if racks.get(host) not in doubtful} or sound
    sizes = Counter(one.rack for one in hosts)
    suspects = Suspects(
        hosts=tuple(
            one.host
            for one in hosts
            if one.word is PairWord.SUSPECT and one.measured < HOST_MEASURED_MOST
        ),
        uplinks=tuple(
            one.rack
            for one in uplinks
            if one.word is PairWord.SUSPECT
            and one.measured < HOST_MEASURED_MOST * sizes[one.rack] / 2
        ),
    )
    if suspects:
        own = {host for host in sound if racks.get(host) in suspects.uplinks}
        return retests(suspects, good | own, racks, times, RETESTS, seed)
    again = tuple(
        (one.a, one.b)
        for one in links
        if one.word is PairWord.SUSPECT and one.measured < LINK_MEASURED_MOST
    )
    return retests(Suspects(links=again), good, racks, times, LINK_RETESTS, seed)
