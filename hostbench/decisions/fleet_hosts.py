"""The jobs of a campaign as hosts, and their figures as logarithms; what cannot be judged together
is refused."""

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hostbench.base.errors import UsageError
from hostbench.base.units import duration, plural, some_of
from hostbench.decisions.members import refuse_clusters, refuse_several
from hostbench.decisions.method import method_change
from hostbench.model.baseline import HostKey
from hostbench.model.campaign import LockName
from hostbench.model.decision import CaseFigure, JobFigures

# Names that differ on every host and mean nothing.
NAMES = frozenset({"host", "far host"})
NAMED = 3
# A clock may be ahead by this much: nodes are seldom closer without PTP.
AHEAD_S = 60.0


@dataclass
class Host:
    """A host and its jobs, oldest first. `logs` has the logarithms of each case's figures, one for
    each job that has one: higher is better."""

    name: str
    jobs: list[JobFigures] = field(default_factory=list)
    logs: dict[str, list[float]] = field(default_factory=dict)

    @property
    def newest(self) -> JobFigures:
        """The job that counts for facts."""
        return self.jobs[-1]

    @property
    def key(self) -> HostKey:
        """The hardware model."""
        assert self.newest.key is not None
        return self.newest.key

    @property
    def locks(self) -> tuple[LockName, ...]:
        """The locks that its jobs held, as their documents name them."""
        return tuple(sorted({job.member.lock for job in self.jobs if job.member is not None}))

    @property
    def facts(self) -> dict[str, str]:
        """The facts that may explain a difference."""
        return {name: value for name, value in self.newest.facts.items() if name not in NAMES}

    def middle(self, case: str) -> float:
        """Return the median of a case's logarithms."""
        return statistics.median(self.logs[case])

    def case(self, case: str) -> CaseFigure:
        """Return the newest figure of a case."""
        found = [job.cases[case] for job in self.jobs if case in job.cases]
        return next((one for one in reversed(found) if one.headline is not None), found[-1])


def hosts_of(jobs: Sequence[JobFigures], now_s: float) -> tuple[list[Host], list[str]]:
    """Return the hosts of a campaign, and what is odd about their jobs, as sentences. Raise
    UsageError for jobs that cannot be judged together."""
    own = {job.digest or f"{job.host} {job.job}": job for job in jobs}
    ordered = sorted(own.values(), key=lambda job: (job.created_unix_s, job.job))
    refuse_clusters(ordered)
    refuse_several("suites", "--suite", [job.suite for job in ordered])
    machines: dict[str, set[str]] = {}
    for job in ordered:
        machines.setdefault(job.machine, set()).add(job.host)
    nodes: dict[str, set[str]] = {}
    of_node: dict[str, set[str]] = {}
    for job in ordered:
        if job.member is not None:
            nodes.setdefault(job.machine, set()).add(job.member.node)
            if job.machine != job.host:  # Else it has no machine id.
                of_node.setdefault(job.member.node, set()).add(job.machine)
    hosts: dict[str, Host] = {}
    for job in ordered:
        identity = f"{job.machine} {job.host}" if len(machines[job.machine]) > 1 else job.machine
        name = job.host
        # A run by hand on a node of the campaign is another job of that node.
        of = {job.member.node} if job.member is not None else nodes.get(job.machine, set())
        if len(of) == 1:
            (name,) = of
            # A node may have got another machine: that is another host.
            several = len(of_node.get(name, ())) > 1
            identity = f"node {name} {job.machine}" if several else f"node {name}"
        hosts.setdefault(identity, Host(name)).jobs.append(job)
    if len(hosts) == 1:
        (only,) = hosts.values()
        raise UsageError(
            f"{'the document is' if len(own) == 1 else f'all {len(own):,} documents are'} of one "
            f"host, {only.name}, and a fleet has several; compare one host with a baseline: "
            "hostbench baseline check"
        )
    _refuse_copies(hosts.values())
    found = _with_own_names(list(hosts.values()))
    notes = [
        *_of_several_machines(of_node),
        *_cloned(machines, ordered),
        *_from_the_future(found, now_s),
        *_take_logs(found),
    ]
    return sorted(found, key=lambda one: one.name), notes


def _refuse_copies(hosts: Iterable[Host]) -> None:
    """Raise UsageError for machines that nothing distinguishes, such as copies of one image: one
    was up while another booted, which one machine cannot be."""
    for host in hosts:
        boots: dict[str, tuple[float, float]] = {}
        for job in host.jobs:
            if job.boot is not None:
                began, last = job.created_unix_s - job.boot.since_s, job.created_unix_s
                before = boots.get(job.boot.id, (began, last))
                boots[job.boot.id] = (min(before[0], began), max(before[1], last))
        ordered = sorted(boots.values())
        if any(later[0] < earlier[1] - AHEAD_S for earlier, later in itertools.pairwise(ordered)):
            raise UsageError(
                f"the documents of {host.name} are of two machines with one name and one machine "
                "id: one was up while the other booted; give the documents of one of them, and set "
                "another host name there (or its clock, if it was set back)"
            )


def _of_several_machines(of_node: Mapping[str, set[str]]) -> Iterator[str]:
    several = sorted(node for node, machines in of_node.items() if len(machines) > 1)
    if several:
        yield (
            f"{plural(len(several), 'node')} had more than one machine: "
            f"{some_of(several, NAMED)}. Each machine is judged as a host of its own."
        )


def _with_own_names(hosts: list[Host]) -> list[Host]:
    """Add the beginning of the machine's hash to names that several hosts have."""
    counts = Counter(host.name for host in hosts)
    for host in hosts:
        if counts[host.name] > 1:
            host.name = f"{host.name} ({host.newest.machine[:6]})"
    return hosts


def _cloned(machines: Mapping[str, set[str]], jobs: Sequence[JobFigures]) -> Iterator[str]:
    nodes = {job.machine for job in jobs if job.member is not None}
    for machine, names in machines.items():
        if len(names) > 1 and machine not in nodes:
            yield (
                f"{len(names):,} hosts have one machine id ({some_of(sorted(names), NAMED)}), as "
                "copies of one image do. The report distinguishes them by their names."
            )


def _from_the_future(hosts: Sequence[Host], now_s: float) -> Iterator[str]:
    ahead = {
        host.name: by
        for host in hosts
        if (by := max(job.created_unix_s for job in host.jobs) - now_s) > AHEAD_S
    }
    if ahead:
        yield (
            f"{plural(len(ahead), 'host')} began in the future by this clock, by up to "
            f"{duration(max(ahead.values()))}: {some_of(list(ahead), NAMED)}. Their figures count; "
            "set their clocks (or this one)."
        )


def _take_logs(hosts: Sequence[Host]) -> Iterator[str]:
    """Take the logarithms of all figures, by the method of the most frequent versions; yield what
    was left out."""
    counts = Counter(_versions(job) for host in hosts for job in host.jobs)
    usual = counts.most_common(1)[0][0]
    target = next(job for host in hosts for job in host.jobs if _versions(job) == usual)
    if len(counts) > 1:
        others = sum(counts.values()) - counts[usual]
        yield f"{plural(others, 'job')} of {sum(counts.values()):,} are of other program versions."
    methods: dict[tuple[object, ...], tuple[float, str | None]] = {}
    left_out: Counter[str] = Counter()
    for host in hosts:
        for job in host.jobs:
            versions = _versions(job)
            for case, one in job.cases.items():
                if one.headline is None or one.naive:
                    continue
                factor = 1.0
                if versions != usual:
                    known = (versions, one.workload)
                    if known not in methods:
                        methods[known] = method_change(one, [job], [target])
                    factor, why_not = methods[known]
                    if why_not is not None:
                        left_out[f"{one.workload} are left out: {why_not}"] += 1
                        continue
                sign = 1.0 if one.direction == "higher" else -1.0
                host.logs.setdefault(case, []).append(sign * math.log(one.headline * factor))
    for why, number in left_out.items():
        yield f"{plural(number, 'figure')} of {why}."


def _versions(job: JobFigures) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(job.versions.items()))
