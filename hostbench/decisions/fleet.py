"""Which hosts of a campaign are bad, from their result documents alone (docs/fleet.md).

Every host is compared with the others of its population. A host is low if any figure is below the
tolerance limit of the others, and so far below that all figures together would show such a one in
at most 1 of 100 sound hosts. Half of that error rate belongs to the headline figures, half to all
others. Hosts that are low leave the reference, and the others are judged again, until no more are
found: bad hosts must not hide each other.

As between jobs of a guest, figures of memory, disks and networks vary too much for a single job to
make a host low there (hostcheck.py).
"""

import bisect
import itertools
import math
import os
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hostbench.base.units import percent
from hostbench.decisions.baseline import (
    POPULATION_ERROR,
    headline_cases,
    measured_figures,
    strays,
    subsystem_of,
    variances,
)
from hostbench.decisions.baseline_files import found_for
from hostbench.decisions.fleet_groups import (
    FactTable,
    chance_apart,
    common_facts,
    families,
    populations,
    separating_facts,
)
from hostbench.decisions.fleet_hosts import Host, hosts_of
from hostbench.decisions.hostcheck import (
    DEVIATION_LEAST,
    TESTED_ERROR,
    check_host,
    expectation,
)
from hostbench.decisions.population import error_shares
from hostbench.decisions.reference import Reference, check_fields, deciding_log
from hostbench.decisions.tolerance import (
    benjamini_hochberg,
    holm,
    limit_rank,
    tolerance_factor,
)
from hostbench.model.baseline import HOSTS_LEAST, Baseline, HostWord
from hostbench.model.decision import CaseFigure, JobFigures
from hostbench.model.fleet import (
    SURE_ERROR,
    CaseLevel,
    CaseRatio,
    FleetCase,
    FleetCheck,
    FleetFigure,
    FleetHost,
    LostFigure,
    Population,
)

# The headline figures have this part of the error rate, all others the rest.
HEADLINES_PART = 0.5
# The tested share of sound hosts among those that are surely low. With the tails of real jobs it
# becomes larger, and SURE_ERROR holds then: benchmarks/fleet.
TESTED_SURE = 0.4 * SURE_ERROR
# Low hosts leave the reference at most so often.
ROUNDS_MOST = 8
DIFFERENCES_NAMED = 5


def checked_fleet(
    jobs: Sequence[JobFigures],
    now_s: float,
    nodes: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> FleetCheck:
    """Return the answer for the jobs of a campaign. `nodes`: those that should have a document.

    Baselines are looked for with `environment`; None: with that of the process. Raise UsageError
    for jobs that cannot be judged together.
    """
    environment = os.environ if environment is None else environment
    hosts, notes = hosts_of(jobs, now_s)
    figures = {case: one for host in hosts for job in host.jobs for case, one in job.cases.items()}
    cases = {case: one for case, one in figures.items() if not one.naive}
    measured = {case for host in hosts for case in host.logs}
    headlines = headline_cases({case: one for case, one in cases.items() if case in measured})
    judged: list[FleetHost] = []
    found: list[Population] = []
    for family in families(hosts):
        first = len(found)
        parts = populations(family)
        for part in parts:
            own = _Judge(part, len(found), cases, headlines, environment, notes)
            judged += own.hosts()
            found.append(own.population(parts[0], first))
    judged = _with_the_sure(judged)
    names_low = {one.host for one in judged if one.word is HostWord.LOW}
    low = [host for host in hosts if host.name in names_low]
    rest = [host for host in hosts if host.name not in names_low]
    words = [one.word for one in judged]
    members = [job.member for job in jobs if job.member is not None]
    known = {host.name for host in hosts}
    return FleetCheck(
        word=_worst(words),
        suite=hosts[0].newest.suite,
        clusters=tuple(sorted({one.cluster for one in members})),
        campaigns=tuple(sorted({one.campaign for one in members})),
        jobs=sum(len(host.jobs) for host in hosts),
        first_unix_s=min(host.jobs[0].created_unix_s for host in hosts),
        last_unix_s=max(host.newest.created_unix_s for host in hosts),
        hosts=tuple(sorted(judged, key=_rank)),
        populations=tuple(found),
        cases={
            case: FleetCase(
                title=one.title,
                workload=one.workload,
                unit=one.unit,
                direction=one.direction,
                is_headline=case in headlines,
            )
            for case, one in cases.items()
        },
        common=common_facts(low, rest) if len(low) > 1 else (),
        missing=tuple(node for node in dict.fromkeys(nodes) if node not in known),
        notes=tuple(dict.fromkeys(notes)),
    )


def _worst(words: Sequence[HostWord]) -> HostWord:
    """Return the word of all hosts together: hosts without a reference count only where there are
    no others."""
    order = (HostWord.LOW, HostWord.SUSPECT, HostWord.AS_EXPECTED)
    return next((word for word in order if word in words), HostWord.NO_REFERENCE)


def _rank(host: FleetHost) -> tuple[int, float, float, str]:
    lost = max((one.lost_ratio or 0.0 for one in host.off), default=0.0)
    p = 1.0 if host.p is None else host.p
    return (list(HostWord).index(host.word), p, -lost, host.host)


def _with_the_sure(hosts: list[FleetHost]) -> list[FleetHost]:
    """Mark the low hosts that are so far off that chance explains few of them (Benjamini and
    Hochberg's procedure over the hosts)."""
    known = [at for at, host in enumerate(hosts) if host.p is not None]
    sure = benjamini_hochberg([hosts[at].p or 0.0 for at in known], TESTED_SURE)
    for at, is_sure in zip(known, sure, strict=True):
        if is_sure and hosts[at].word is HostWord.LOW:
            hosts[at] = hosts[at].model_copy(update={"is_sure": True})
    return hosts


@dataclass
class _Level:
    """A case in a population: the logarithms of its hosts and the number of their jobs. Those in
    `left_out` are compared with the others, and the others not with them."""

    direction: str
    logs: dict[str, float]
    jobs: dict[str, int]
    within: float | None
    left_out: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.fit()

    def fit(self) -> None:
        """Take the sums of those that count, so that each host can be left out in no time."""
        counted = [name for name in self.logs if name not in self.left_out]
        self._sorted = sorted(self.logs[name] for name in counted)
        self._middle = self._sorted[len(self._sorted) // 2]
        self._sum = math.fsum(log - self._middle for log in self._sorted)
        self._squares = math.fsum((log - self._middle) ** 2 for log in self._sorted)
        self._shares = math.fsum(1 / self.jobs[name] for name in counted)

    def others(self, host: str | None) -> Reference | None:
        """Return the hosts without one, or None if they are too few."""
        counts = host is not None and host in self.logs and host not in self.left_out
        n = len(self._sorted) - counts
        if n < HOSTS_LEAST:
            return None
        own = self.logs[host] - self._middle if counts and host is not None else 0.0
        total, squares = self._sum - own, self._squares - own * own
        jobs = self.jobs.get(host, 1) if host is not None else 1
        shares = self._shares - (1 / jobs if counts else 0.0)
        variance = max(0.0, squares - total * total / n) / (n - 1)
        if self.within is not None:
            variance += max(0.0, self.within * (1 / jobs - shares / n))
        at = bisect.bisect_left(self._sorted, own + self._middle) if counts else len(self._sorted)

        def ordered(rank: int) -> float:
            return self._sorted[rank if rank < at else rank + 1]

        mean = self._middle + total / n
        deviation = max(DEVIATION_LEAST, math.sqrt(variance))
        rank = limit_rank(n)
        return Reference(
            n=n,
            mean=mean,
            deviation=deviation,
            usual=(ordered((n - 1) // 2) + ordered(n // 2)) / 2,
            least=ordered(rank - 1) if rank else mean - tolerance_factor(n) * deviation,
            is_free=rank > 0,
        )


@dataclass(frozen=True)
class _Compared:
    """A figure of a host and what `other` hosts do; None: they are too few."""

    case: str
    log: float
    needs_another: bool
    other: Reference | None

    @property
    def chance(self) -> float:
        """How often a sound host is so far below the limit. What is above it takes no time."""
        if self.other is None or self.log >= self.other.least:
            return 1.0
        return self.other.chance(self.log)


class _Judge:
    """The hosts of one population, compared with each other, or with a baseline that has at least
    as many hosts."""

    def __init__(
        self,
        hosts: Sequence[Host],
        number: int,
        cases: Mapping[str, CaseFigure],
        headlines: Sequence[str],
        environment: Mapping[str, str],
        notes: list[str],
    ) -> None:
        self._hosts, self._number = hosts, number
        self._cases, self._headlines = cases, set(headlines)
        self._notes = notes
        self._key = Counter(host.key for host in hosts).most_common(1)[0][0]
        self._levels = dict(self._fitted())
        self._shares = self._error_shares()
        files, self._baseline, problems = found_for(self._key, environment)
        notes += problems
        self._files = tuple(str(path) for path in files)
        self._facts = FactTable(hosts)

    def _fitted(self) -> Iterator[tuple[str, _Level]]:
        for case in self._cases:
            own = {host.name: host.logs[case] for host in self._hosts if case in host.logs}
            if not own:
                continue
            several = [logs for logs in own.values() if len(logs) > 1]
            within = variances(tuple(map(math.exp, logs)) for logs in several)[0]
            yield (
                case,
                _Level(
                    direction=self._cases[case].direction,
                    logs={name: statistics.median(logs) for name, logs in own.items()},
                    jobs={name: len(logs) for name, logs in own.items()},
                    within=within,
                ),
            )

    def _error_shares(self) -> dict[str, float]:
        """Return each case's share of the error rate: half for the headlines, half for the
        rest."""
        known = {
            case: list(level.logs.values())
            for case, level in self._levels.items()
            if len(level.logs) > HOSTS_LEAST
        }
        kinds = {case: subsystem_of(self._cases[case].workload) for case in known}
        found: dict[str, float] = {}
        for part, of_headlines in ((HEADLINES_PART, True), (1 - HEADLINES_PART, False)):
            own = {
                case: v for case, v in known.items() if (case in self._headlines) is of_headlines
            }
            if own:
                found |= {case: part * one for case, one in error_shares(own, kinds).items()}
        return found

    def hosts(self) -> list[FleetHost]:
        """Return the hosts with their words."""
        if (baseline := self._larger_baseline()) is not None:
            return [self._beside_baseline(host, baseline) for host in self._hosts]
        for _ in range(ROUNDS_MOST):
            low = [(host.name, case) for host in self._hosts for case in self._low_cases(host)]
            if all(name in self._levels[case].left_out for name, case in low):
                break
            for name, case in low:
                self._levels[case].left_out.add(name)
            for case in {case for _, case in low}:
                self._levels[case].fit()
        self._compare_with_baseline()
        return [self._among_themselves(host) for host in self._hosts]

    def _larger_baseline(self) -> Baseline | None:
        found = self._baseline
        alike = all(host.key == self._key for host in self._hosts)
        return (
            found if found is not None and alike and len(found.hosts) >= len(self._hosts) else None
        )

    def _compare_with_baseline(self) -> None:
        """Say where all hosts together are worse than a baseline of fewer hosts expects."""
        for case in self._headlines & self._levels.keys():
            one = self._baseline.cases.get(case) if self._baseline is not None else None
            expected = expectation(one) if one is not None else None
            if one is None or expected is None or one.unit != self._cases[case].unit:
                continue
            sign = 1.0 if one.direction == "higher" else -1.0
            usual = statistics.median(self._levels[case].logs.values())
            if usual < sign * math.log(expected):
                lost = -math.expm1(usual - sign * math.log(expected))
                self._notes.append(
                    f"Half of the hosts are more than {percent(lost)} below what "
                    f"{' and '.join(self._files)} expects in {one.title}: all of them may be low."
                )

    def _compared(self, host: Host) -> Iterator[_Compared]:
        """Yield the figures of a host beside those hosts that still count."""
        for case, logs in host.logs.items():
            is_stray = strays(host.key, self._cases[case].workload)
            log, needs_another = deciding_log(logs, is_stray=is_stray)
            yield _Compared(case, log, needs_another, self._levels[case].others(host.name))

    def _off(self, figures: Iterable[_Compared]) -> list[_Compared]:
        """Return the figures of a host that are further below the limit than chance explains."""
        known = [one for one in figures if one.other is not None and one.case in self._shares]
        chances = [one.chance for one in known]
        off = holm(chances, TESTED_ERROR, [self._shares[one.case] for one in known])
        return [
            one
            for one, chance, is_off in zip(known, chances, off, strict=True)
            if is_off and chance < 1.0
        ]

    def _low_cases(self, host: Host) -> list[str]:
        """Return the cases in which a host is low."""
        return [one.case for one in self._off(self._compared(host)) if not one.needs_another]

    def _among_themselves(self, host: Host) -> FleetHost:
        compared = list(self._compared(host))
        words = {
            one.case: HostWord.SUSPECT if one.needs_another else HostWord.LOW
            for one in self._off(compared)
        }
        figures = [self._figure(host, one, words.get(one.case)) for one in compared]
        known = [one for one in figures if one.p is not None and one.case in self._shares]
        whole = math.fsum(self._shares[one.case] for one in known)
        alone = [
            (one.p or 0.0) * whole / self._shares[one.case]
            for one in known
            if not one.needs_another
        ]
        p = min([1.0, *alone]) if known else None
        return self._host(host, _worst([one.word for one in figures]), figures, p)

    def _figure(self, host: Host, one: _Compared, word: HostWord | None) -> FleetFigure:
        """Return a figure. `word`: what it is beyond chance, or None."""
        newest = host.case(one.case)
        sound = HostWord.NO_REFERENCE if one.other is None else HostWord.AS_EXPECTED
        return FleetFigure(
            case=one.case,
            word=word or sound,
            low=newest.low,
            high=newest.high,
            is_headline=one.case in self._headlines,
            **check_fields(newest, one.log, one.other, needs_another=one.needs_another),
        )

    def _beside_baseline(self, host: Host, baseline: Baseline) -> FleetHost:
        """Judge a host as `hostbench baseline check` does."""
        check = check_host([measured_figures(job) for job in host.jobs], baseline)
        self._notes += check.notes
        figures = []
        for one in check.figures:
            newest = host.case(one.case)
            figures.append(
                FleetFigure.model_validate(
                    {
                        **one.model_dump(),
                        "low": newest.low,
                        "high": newest.high,
                        "is_headline": one.case in self._headlines,
                    }
                )
            )
        known = [one.p for one in check.headlines if one.p is not None and not one.needs_another]
        p = min(1.0, min(known) * len(known)) if known else None
        return self._host(host, check.word, figures, p)

    def _host(
        self,
        host: Host,
        word: HostWord,
        figures: Iterable[FleetFigure],
        p: float | None,
    ) -> FleetHost:
        is_off = word in (HostWord.LOW, HostWord.SUSPECT)
        return FleetHost(
            host=host.name,
            word=word,
            population=self._number,
            jobs=tuple(job.job for job in host.jobs),
            locks=host.locks,
            p=p,
            figures=tuple(figures),
            facts=tuple(self._facts.differing(host)) if is_off else (),
            lost=tuple(self._lost(host)),
        )

    def _lost(self, host: Host) -> Iterator[LostFigure]:
        """Yield the cases without a figure; those that most others have and this host has not, come
        last."""
        job = host.newest
        for case, one in self._cases.items():
            if case in host.logs:
                continue
            own = [of.cases[case] for of in host.jobs if case in of.cases]
            if own:
                yield LostFigure(
                    case=case,
                    title=one.title,
                    job=job.job,
                    verdict=own[-1].verdict,
                    reason=own[-1].reason,
                    culprit=own[-1].culprit,
                )
            elif 2 * len(self._levels[case].logs if case in self._levels else ()) > len(
                self._hosts
            ):
                yield LostFigure(case=case, title=one.title, job=job.job, verdict=None)

    def population(self, largest: Sequence[Host], first: int) -> Population:
        """Return the population; `largest` is the largest one of its family, at the place
        `first`."""
        is_first = self._hosts is largest
        used = self._larger_baseline() is not None
        return Population(
            key=self._key,
            hosts=len(self._hosts),
            facts=() if is_first else separating_facts(self._hosts, largest),
            beside=None if is_first else first,
            differs=() if is_first else tuple(self._differs(largest)),
            baseline=self._files if used else (),
            cases={case: self._case_level(case) for case in self._levels},
        )

    def _case_level(self, case: str) -> CaseLevel:
        level = self._levels[case]
        sign = 1.0 if level.direction == "higher" else -1.0
        other = level.others(None)
        baseline = self._larger_baseline()
        expected = math.exp(sign * other.least) if other is not None else None
        if baseline is not None:
            expected = expectation(baseline.cases[case]) if case in baseline.cases else None
        limits = [
            limit for host in self._hosts if case in host.logs and (limit := host.case(case).limit)
        ]
        return CaseLevel(
            usual=math.exp(sign * statistics.median(level.logs.values())),
            expected=expected,
            limit=statistics.median_low(limits) if limits else None,
            hosts=len(level.logs),
        )

    def _differs(self, largest: Sequence[Host]) -> Iterator[CaseRatio]:
        """Yield the cases in which the population differs most from the largest one, headlines
        first."""
        found = []
        for case, level in self._levels.items():
            theirs = [host.middle(case) for host in largest if case in host.logs]
            if len(theirs) < HOSTS_LEAST:
                continue
            own = list(level.logs.values())
            chance = chance_apart(own, theirs) if len(own) >= HOSTS_LEAST else None
            if chance is None or chance > math.log(POPULATION_ERROR / len(self._levels)):
                continue
            better = statistics.median(own) - statistics.median(theirs)
            ratio = math.exp(better if level.direction == "higher" else -better)
            one = CaseRatio(
                case=case, title=self._cases[case].title, ratio=ratio, is_worse=better < 0
            )
            found.append((case not in self._headlines, -abs(better), one))
        found.sort(key=lambda row: row[:2])
        yield from (one for _, _, one in itertools.islice(found, DIFFERENCES_NAMED))
