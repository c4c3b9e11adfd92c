"""Baselines: made from jobs, merged, computed again, and refused where their hosts are not one
population."""

import dataclasses
import hashlib
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hostbench.base.errors import UsageError, shown
from hostbench.base.units import human, plural
from hostbench.decisions.figures import job_figures
from hostbench.decisions.population import Split, error_shares, split_of
from hostbench.model.baseline import (
    HEADLINES_MOST,
    HOSTS_LEAST,
    Baseline,
    BaselineCase,
    BaselineFile,
    BaselineHost,
    BaselineJob,
    HostFigures,
    HostKey,
    MeasuredFigure,
    MeasuredJob,
)
from hostbench.model.decision import CaseFigure, JobFigures
from hostbench.model.events import PROTOCOL_SCHEMA
from hostbench.model.registry import subsystems
from hostbench.model.result import USABLE, CaseResult, ResultDocument

# Facts that may split the hosts of one model into two populations. Names of hosts and disks are
# left out.
FACTS = (
    "microcode",
    "firmware",
    "kernel",
    "memory",
    "hypervisor",
    "container",
    "CPU quota",
    "memory limit",
    "SMT",
    "clock driver",
    "governor",
    "turbo",
    "highest clock",
    "transparent huge pages",
)
MITIGATION = "mitigation of "
# Recomputed figures may differ by this much: adding floats in another order changes the last
# digits.
EQUAL = 1e-9
MACHINE_SHOWN = 16
FACTS_NAMED = 3
FAULTS_NAMED = 3
HOSTS_NAMED = 3
# At most this share of baselines whose hosts are one population is refused.
POPULATION_ERROR = 0.01
# In standard deviations of one host's jobs: groups that are closer may differ only as jobs do.
JOBS_APART = 4.0
# In a subsystem with more drift than this between the jobs of a guest, a single job decides
# nothing.
STEADY_DRIFT = 0.02


def measured_job(document: ResultDocument) -> MeasuredJob:
    """Return what a baseline takes from a job: clean and noisy figures, but none of a naive
    workload."""
    host, cases = document.host, document.cases
    slim = document.model_dump(
        mode="json", exclude={"cases": {"__all__": {"trials", "peers"}}, "far_host": True}
    )
    found = job_figures(slim)
    assert found.key is not None
    facts = found.facts
    protocols = (trial.start.protocol for case in cases for trial in case.trials if trial.start)
    return MeasuredJob(
        job=document.job.id,
        machine=host.machine or _hash(host.hostname),
        digest=document.digest,
        created_unix_s=document.job.created_unix_s,
        versions={one.subsystem: one.version for one in document.programs},
        key=found.key.model_copy(update={"protocol": next(protocols, PROTOCOL_SCHEMA)}),
        facts={
            name: value
            for name, value in facts.items()
            if name in FACTS or name.startswith(MITIGATION)
        },
        figures={case.case: one for case in cases if (one := _measured(case)) is not None},
    )


def measured_figures(job: JobFigures) -> MeasuredJob:
    """Return the same from a job's figures in the index."""
    assert job.key is not None
    return MeasuredJob(
        job=job.job,
        machine=job.machine,
        digest=job.digest,
        created_unix_s=job.created_unix_s,
        versions=job.versions,
        key=job.key,
        facts={},
        figures={
            case: MeasuredFigure(
                title=one.title,
                workload=one.workload,
                unit=one.unit,
                direction=one.direction,
                value=one.headline,
                limit=one.limit,
            )
            for case, one in job.cases.items()
            if one.headline is not None and not one.naive
        },
    )


def _measured(case: CaseResult) -> MeasuredFigure | None:
    metric = case.metrics.get(case.primary)
    if case.naive or metric is None or case.figure is None or case.verdict not in USABLE:
        return None
    if case.figure.value <= 0:
        return None
    limit = metric.limit
    return MeasuredFigure(
        title=case.title,
        workload=case.workload,
        unit=metric.unit,
        direction=metric.direction,
        value=case.figure.value,
        limit=limit.value if limit is not None and limit.value else None,
        **({} if limit is None else {"tolerance": limit.tolerance}),
    )


# ---- make and merge ----


@dataclasses.dataclass
class _Rows:
    """A baseline as rows: the jobs of each host by digest, each with its figures by case."""

    key: HostKey
    hosts: dict[str, dict[str, tuple[BaselineJob, dict[str, MeasuredFigure]]]]
    facts: dict[str, dict[str, str]]

    def add(
        self, host: str, job: BaselineJob, figures: dict[str, MeasuredFigure], facts: dict[str, str]
    ) -> None:
        """Add a job. A job that is already there, under any name of its host, is not added
        again."""
        names = (name for name, jobs in self.hosts.items() if job.digest in jobs)
        name = next(names, host)
        self.hosts.setdefault(name, {}).setdefault(job.digest, (job, figures))
        self.facts[name] = facts


def made_of(jobs: Sequence[MeasuredJob]) -> Baseline:
    """Return the baseline of these jobs. Raise UsageError if they are not of one model, cannot be
    verified, or are not one population."""
    ordered = sorted(jobs, key=lambda job: (job.created_unix_s, job.job))
    rows = _Rows(key=ordered[0].key, hosts={}, facts={})
    for job in ordered:
        _refuse_other_model(rows.key, job.key, f"job {ordered[0].job}", f"job {job.job}")
        if job.digest is None:
            raise UsageError(
                f"job {job.job} has no digest, because an earlier hostbench wrote it, so a change "
                "of its figures would not be found; leave it out, or measure again"
            )
        if not job.figures:
            raise UsageError(
                f"job {job.job} has no clean or noisy figure; leave it out, or measure again"
            )
        known = BaselineJob(digest=job.digest, versions=job.versions)
        rows.add(job.machine, known, job.figures, job.facts)
    return _one_population(_summed(rows), jobs=ordered)


def merged(baselines: Sequence[tuple[str, Baseline]]) -> Baseline:
    """Return all hosts and jobs of these named baselines, without duplicates. Raise UsageError if
    they are not of one model, or not one population."""
    first_name, first = baselines[0]
    rows = _Rows(key=first.key, hosts={}, facts={})
    for name, one in baselines:
        _refuse_other_model(first.key, one.key, first_name, name)
        for host, known in one.hosts.items():
            for at, job in enumerate(known.jobs):
                rows.add(host, job, _figures_of(one, host, at), known.facts)
    return _one_population(_summed(rows))


def differing(a: HostKey, b: HostKey) -> list[str]:
    """Return the differences between two models, such as `stepping 7 and 8`."""
    return [
        f"{name} {_fact(getattr(a, name))} and {_fact(getattr(b, name))}"
        for name in HostKey.model_fields
        if getattr(a, name) != getattr(b, name)
    ]


def _fact(value: object) -> str:
    return "unknown" if value is None else str(value)


def headline_workloads() -> list[str]:
    """Return the full names of the workloads that describe a host best."""
    return [
        f"{name}.{workload}"
        for name, subsystem in subsystems().items()
        for workload in subsystem.headlines
    ]


def headline_cases(figures: Mapping[str, MeasuredFigure | BaselineCase | CaseFigure]) -> list[str]:
    """Return the cases that decide about a host, at most HEADLINES_MOST.

    They come from the headline workloads of each subsystem in turn, in the order of the job. The
    figures play no part in the choice, so that the error rate holds.
    """
    queues = [
        [case for case, one in figures.items() if one.workload == workload]
        for workload in headline_workloads()
    ]
    found: list[str] = []
    while any(queues) and len(found) < HEADLINES_MOST:
        for queue in queues:
            if queue and len(found) < HEADLINES_MOST:
                found.append(queue.pop(0))
    return found


def _refuse_other_model(a: HostKey, b: HostKey, name_a: str, name_b: str) -> None:
    if a != b:
        raise UsageError(
            f"{name_a} and {name_b} are of two models: {'; '.join(differing(a, b))}; make one "
            "baseline of each"
        )


def _figures_of(baseline: Baseline, host: str, at: int) -> dict[str, MeasuredFigure]:
    """Return the figures of one job of a host."""
    found = {}
    for case, one in baseline.cases.items():
        if host in one.hosts and (value := one.hosts[host].figures[at]) is not None:
            found[case] = MeasuredFigure(
                title=one.title,
                workload=one.workload,
                unit=one.unit,
                direction=one.direction,
                value=value,
                limit=one.hosts[host].limits[at],
                tolerance=one.tolerance,
            )
    return found


def _summed(rows: _Rows) -> Baseline:
    """Return the baseline with all its computed values."""
    hosts = {
        name: BaselineHost(
            jobs=tuple(job for job, _ in rows.hosts[name].values()), facts=rows.facts[name]
        )
        for name in sorted(rows.hosts)
    }
    known: dict[str, MeasuredFigure] = {}
    for name in hosts:
        for _, figures in rows.hosts[name].values():
            for case, one in figures.items():
                first = known.setdefault(case, one)
                if (first.unit, first.direction) != (one.unit, one.direction):
                    raise UsageError(
                        f"{one.title} is in {first.unit} in one job and in {one.unit} in another; "
                        "leave out those of one version"
                    )
    cases = {}
    for case, one in known.items():
        of_hosts = {
            name: found
            for name in hosts
            if (found := _host_figures(case, list(rows.hosts[name].values()))) is not None
        }
        within, between = variances([of.figures for of in of_hosts.values()])
        cases[case] = BaselineCase(
            title=one.title,
            workload=one.workload,
            unit=one.unit,
            direction=one.direction,
            tolerance=one.tolerance,
            hosts=of_hosts,
            within=within,
            between=between,
        )
    return Baseline(key=rows.key, hosts=hosts, cases=cases)


def _host_figures(
    case: str, jobs: Sequence[tuple[BaselineJob, dict[str, MeasuredFigure]]]
) -> HostFigures | None:
    found = [figures.get(case) for _, figures in jobs]
    values = [one.value for one in found if one is not None]
    if not values:
        return None
    return HostFigures(
        figures=tuple(one and one.value for one in found),
        limits=tuple(one and one.limit for one in found),
        median=statistics.median(values),
    )


def variances(hosts: Iterable[Sequence[float | None]]) -> tuple[float | None, float | None]:
    """Return the variance of the logarithms of one host's jobs, and the variance of hosts beyond
    that; None where unknown."""
    logs = [[math.log(value) for value in one if value is not None] for one in hosts if any(one)]
    degrees = sum(len(one) - 1 for one in logs)
    within = None
    if degrees:
        squares = sum((len(one) - 1) * statistics.variance(one) for one in logs if len(one) > 1)
        within = squares / degrees
    if len(logs) < 2:
        return within, None
    of_medians = statistics.variance(statistics.median(one) for one in logs)
    of_jobs = (within or 0.0) * statistics.fmean(1 / len(one) for one in logs)
    return within, max(0.0, of_medians - of_jobs)


# ---- what is wrong with one ----


def faults(baseline: Baseline) -> Iterator[str]:
    """Yield what is wrong in a file, as parts of sentences; everything is computed again."""
    for name, case in baseline.cases.items():
        of = f"{case.title} ({name})"
        for host, one in case.hosts.items():
            if host not in baseline.hosts:
                yield f"{of} has figures of the host {host}, which is not among its hosts"
                continue
            jobs = len(baseline.hosts[host].jobs)
            if len(one.figures) != jobs or len(one.limits) != jobs:
                yield f"{of} has {len(one.figures)} figures of {host}, which has {jobs} jobs"
                continue
            yield from _wrong_figures(of, host, case, one)
        within, between = variances([one.figures for one in case.hosts.values()])
        for what, stated, found in (
            ("within", case.within, within),
            ("between", case.between, between),
        ):
            if not _equal(stated, found):
                yield (
                    f"the variance {what} hosts of {of} is {_exact(found)}, and the file says "
                    f"{_exact(stated)}"
                )
    digests = [job.digest for host in baseline.hosts.values() for job in host.jobs]
    if len(digests) != len(set(digests)):
        yield "a document stands in it twice"


def _wrong_figures(of: str, host: str, case: BaselineCase, one: HostFigures) -> Iterator[str]:
    values = [value for value in one.figures if value is not None]
    if not values:
        yield f"{of} has no figure of {host}"
        return
    if not _equal(one.median, statistics.median(values)):
        yield (
            f"the median of {of} on {host} is {_exact(statistics.median(values))}, and the file "
            f"says {_exact(one.median)}"
        )
    for value, limit in zip(one.figures, one.limits, strict=True):
        if value is None or limit is None:
            continue
        share = value / limit if case.direction == "higher" else limit / value
        if share > 1 + case.tolerance:
            yield (
                f"{human(value, case.unit)} of {of} on {host} is better than its limit of "
                f"{human(limit, case.unit)}"
            )


def _exact(value: float | None) -> str:
    """Return a text with enough digits for any difference that `_equal` sees."""
    return "unknown" if value is None else f"{value:.10g}"


def _equal(a: float | None, b: float | None) -> bool:
    if a is None or b is None:
        return a is b
    return math.isclose(a, b, rel_tol=EQUAL, abs_tol=EQUAL**2)


def strays(key: HostKey, workload: str) -> bool:
    """Whether figures of this workload vary strongly between jobs on such a host."""
    subsystem = subsystems().get(subsystem_of(workload))
    return (
        key.is_guest and subsystem is not None and subsystem.guest_spread.drift_ratio > STEADY_DRIFT
    )


def subsystem_of(workload: str) -> str:
    """Return the subsystem of a workload's full name."""
    return workload.partition(".")[0]


def populations(baseline: Baseline, jobs: Sequence[MeasuredJob] = ()) -> str | None:
    """Return which hosts differ from the others and what to do, as part of a sentence; None: they
    are one population, or there are too few to decide.

    `jobs` are the jobs behind the baseline, for their names.
    """
    cases = {name: one for name, one in baseline.cases.items() if len(one.hosts) >= HOSTS_LEAST}
    shares = error_shares(
        {name: [math.log(of.median) for of in one.hosts.values()] for name, one in cases.items()},
        {name: subsystem_of(one.workload) for name, one in cases.items()},
    )
    for name in dict.fromkeys([*headline_cases(cases), *cases]):
        case = cases[name]
        split = split_of(
            {
                host: [math.log(value) for value in of.figures if value is not None]
                for host, of in case.hosts.items()
            },
            POPULATION_ERROR * shares[name],
            apart=JOBS_APART * math.sqrt(_job_variance(baseline.key, case)),
            strays=strays(baseline.key, case.workload),
        )
        if split is not None:
            return _split_words(baseline, case, split, jobs)
    return None


def _job_variance(key: HostKey, case: BaselineCase) -> float:
    """Return the variance of one host's jobs: that of the baseline, and on a guest at least the
    usual one."""
    subsystem = subsystems().get(subsystem_of(case.workload))
    drift = 0.0
    if subsystem is not None and key.is_guest:
        drift = subsystem.guest_spread.drift_of(case.direction)
    return max(case.within or 0.0, drift**2)


def _split_words(
    baseline: Baseline, case: BaselineCase, split: Split, jobs: Sequence[MeasuredJob]
) -> str:
    facts = list(_splitting_facts(baseline, split))
    differ = f"differ in {', '.join(facts[:FACTS_NAMED])}"
    why = f"they {differ}" if facts else "their facts do not explain it"
    odd = [_host_words(host, jobs) for host in split.odd]
    if len(odd) == 1:
        others = split.high if split.odd == split.low else split.low
        return (
            f"its host {odd[0]} is not like the {len(others)} others in {case.title}, "
            f"{_span(case, split.odd)} beside {_span(case, others)}; {why}; leave this host out, "
            "or measure it again"
        )
    named = f" ({', '.join(odd)})" if len(odd) <= HOSTS_NAMED else ""
    groups = " and ".join(
        f"{_span(case, side)} on {len(side)}{named if side == split.odd else ''}"
        for side in (split.low, split.high)
    )
    return (
        f"its {plural(len(case.hosts), 'host')} are two populations in {case.title}, {groups}; "
        f"{why}; make one baseline of each"
    )


def _host_words(host: str, jobs: Sequence[MeasuredJob]) -> str:
    own = [job.job for job in jobs if job.machine == host]
    more = f" and {len(own) - HOSTS_NAMED} more" if len(own) > HOSTS_NAMED else ""
    named = f" (job{'s' * (len(own) > 1)} {', '.join(own[:HOSTS_NAMED])}{more})" if own else ""
    return f"{host}{named}"


def _span(case: BaselineCase, hosts: Iterable[str]) -> str:
    values = [case.hosts[host].median for host in hosts]
    ends = dict.fromkeys((human(min(values), case.unit), human(max(values), case.unit)))
    return " to ".join(ends)


def _splitting_facts(baseline: Baseline, split: Split) -> Iterator[str]:
    names = dict.fromkeys(name for host in baseline.hosts.values() for name in host.facts)
    for name in names:
        low, high = (
            {baseline.hosts[host].facts.get(name, "unknown") for host in side}
            for side in (split.low, split.high)
        )
        if not low & high:
            yield f"{name} ({' or '.join(sorted(low))} and {' or '.join(sorted(high))})"


def _one_population(baseline: Baseline, jobs: Sequence[MeasuredJob] = ()) -> Baseline:
    if (found := populations(baseline, jobs)) is not None:
        raise UsageError(f"this is no baseline: {found}")
    return baseline


def refuse_faults(baseline: Baseline, source: str) -> Baseline:
    """Return the baseline if it is sound. Raise UsageError, which names its faults, if it is
    not."""
    found = list(faults(baseline))
    if found:
        more = f", and {len(found) - FAULTS_NAMED} more" if len(found) > FAULTS_NAMED else ""
        raise UsageError(
            f"{source} is not a sound baseline: {'; '.join(found[:FAULTS_NAMED])}{more}; make it "
            "again with: hostbench baseline make"
        )
    if (apart := populations(baseline)) is not None:
        raise UsageError(f"{source} is not a sound baseline: {apart}")
    return baseline


# ---- for others to read ----


def described(baseline: Baseline, name: str) -> BaselineFile:
    """Return a baseline in short: its model, and its numbers of hosts and jobs."""
    return BaselineFile(
        file=name,
        key=baseline.key,
        hosts=len(baseline.hosts),
        jobs=sum(len(host.jobs) for host in baseline.hosts.values()),
        cases=len(baseline.cases),
    )


def anonymous(baseline: Baseline, salt: bytes) -> Baseline:
    """Return the baseline without what could identify a host: machines are hashed again with a
    secret.

    Digests stay. They are hashes of whole documents, so anyone who has a document can see that it
    is part of the baseline.
    """
    names = {host: _hash(host, salt) for host in baseline.hosts}
    return baseline.model_copy(
        update={
            "hosts": {names[host]: one for host, one in baseline.hosts.items()},
            "cases": {
                case: one.model_copy(
                    update={"hosts": {names[host]: of for host, of in one.hosts.items()}}
                )
                for case, one in baseline.cases.items()
            },
        }
    )


def _hash(text: str, salt: bytes = b"") -> str:
    return hashlib.sha256(salt + text.encode()).hexdigest()[:MACHINE_SHOWN]


def not_this_model(key: HostKey, baseline: HostKey, source: str) -> UsageError:
    """Return the error for a baseline of another model."""
    return UsageError(
        f"{source} is of another model, {shown(baseline.words)}, than this host: "
        f"{'; '.join(differing(baseline, key))}; give one of {key.words}"
    )
