"""The measurements between hosts in result documents, and the racks that hosts are in."""

import bisect
import fnmatch
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hostbench.base.errors import UsageError, did_you_mean, listing, shown
from hostbench.base.units import plural, some_of
from hostbench.decisions.documents import REMEDY
from hostbench.decisions.members import refuse_clusters
from hostbench.decisions.pairs import Measurement, pair_matrix
from hostbench.model.campaign import LockName
from hostbench.model.decision import JobFigures
from hostbench.model.pairs import PairMatrix
from hostbench.model.result import USABLE, CaseResult, ResultDocument
from hostbench.model.table import Direction
from hostbench.plan.workloads import FAR_HOST, TARGET
from hostbench.results.sealed import read_document

# A pair counts as alone if others were measured during less of its time than this.
ALONE_MOST = 0.05
WILDCARDS = frozenset("*?[")
CASES_NAMED = 5
OF_ONE_HOST = "of one host alone"


@dataclass(frozen=True)
class MeasuredPairs:
    """The measurements of one case; the locks that were held on each host and the racks of hosts,
    as the documents of these measurements name them; and what was left out and why, as sentences.
    """

    title: str
    unit: str
    direction: Direction
    measurements: tuple[Measurement, ...]
    locks: Mapping[str, tuple[LockName, ...]]
    racks: Mapping[str, str]
    left_out: tuple[str, ...]

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that were measured, in order."""
        return tuple(sorted({host for one in self.measurements for host in (one.near, one.far)}))


def documents_between_hosts(jobs: Iterable[JobFigures]) -> list[ResultDocument]:
    """Return the documents of the jobs of two hosts, each document once. Raise UsageError."""
    own = {job.digest or f"{job.host} {job.job}": job for job in jobs if job.is_of_two_hosts}
    paths = [job.document for job in own.values() if job.document is not None]
    return [read_document(path.read_bytes(), str(path), REMEDY) for path in paths]


def matrix_of(
    jobs: Sequence[JobFigures],
    racks: Iterable[str] = (),
    case: str | None = None,
    refused: Iterable[str] = (),
) -> PairMatrix:
    """Judge the network between the hosts of these jobs; see measured_pairs and racks_of.
    `refused`: the documents that could not be read, as sentences."""
    refuse_clusters(jobs)
    documents = documents_between_hosts(jobs)
    if not documents:
        raise _no_pairs(len(jobs))
    others = sum(not job.is_of_two_hosts for job in jobs)
    matrix = judged(measured_pairs(documents, case), racks)
    alone = (f"{plural(others, 'document')} {OF_ONE_HOST}",) if others else ()
    return matrix.model_copy(update={"left_out": (*alone, *matrix.left_out, *refused)})


def judged(found: MeasuredPairs, racks: Iterable[str]) -> PairMatrix:
    """Judge the network by measurements. `racks`: see racks_of; without any, those of the documents
    count. Raise UsageError for a wrong rack."""
    given = racks_of(racks, found.hosts, missing=True)
    matrix = pair_matrix(
        found.measurements,
        given or found.racks,
        title=found.title,
        unit=found.unit,
        direction=found.direction,
        left_out=found.left_out,
    )
    hosts = (
        one.model_copy(update={"locks": found.locks.get(one.host, ())}) for one in matrix.hosts
    )
    return matrix.model_copy(update={"hosts": tuple(hosts)})


def measured_pairs(documents: Sequence[ResultDocument], case: str | None = None) -> MeasuredPairs:
    """Return the measurements of the case with this title; None: of the case of a bandwidth that
    most documents have.

    A document counts once. Two jobs of the same two hosts are two measurements of their link.
    Raise UsageError if no document is of two hosts, or if they are of two clusters.
    """
    refuse_clusters(documents)
    pairs = [one for one in documents if one.far_host is not None]
    if not pairs:
        raise _no_pairs(len(documents))
    chosen = _chosen_case(pairs, case)
    names = _node_names(pairs)
    alone = _alone(pairs, chosen.case)
    measurements: list[Measurement] = []
    locks: defaultdict[str, set[LockName]] = defaultdict(set)
    reasons: Counter[str] = Counter()
    if len(pairs) < len(documents):
        reasons[OF_ONE_HOST] = len(documents) - len(pairs)
    for number, document in enumerate(pairs):
        near, far = _ends(document, names)
        found = next((one for one in document.cases if one.case == chosen.case), None)
        if near == far:
            reasons[f"of {near} with itself"] += 1
        elif found is None:
            reasons[f"without {chosen.title}"] += 1
        elif (value := _value(found)) is None:
            reasons[f"with a figure that may not be used ({found.verdict or 'unfinished'})"] += 1
        else:
            measurements.append(Measurement(near, far, value, number in alone))
            if (member := document.member) is not None:
                # A campaign locks both nodes of a pair; a job by hand names its own host alone.
                own = (near,) if member.far_node is None else (near, far)
                for host in own:
                    locks[host].add(member.lock)
    if not measurements:
        why = "; ".join(_left_out(reasons))
        raise UsageError(f"no pair has a figure of {chosen.title} that may be used: {why}")
    metric = chosen.metrics[chosen.primary]
    return MeasuredPairs(
        title=chosen.title,
        unit=metric.unit,
        direction=metric.direction,
        measurements=tuple(measurements),
        locks={host: tuple(sorted(names)) for host, names in locks.items()},
        racks=_racks(pairs),
        left_out=tuple(_left_out(reasons)),
    )


def _racks(pairs: Sequence[ResultDocument]) -> dict[str, str]:
    """Return the racks that documents of campaigns name; of a host that moved, its last one."""
    ordered = sorted(pairs, key=lambda one: one.job.created_unix_s)
    members = [one.member for one in ordered if one.member is not None]
    ends = (end for one in members for end in ((one.node, one.rack), (one.far_node, one.far_rack)))
    return {host: rack for host, rack in ends if host is not None and rack is not None}


def _no_pairs(documents: int) -> UsageError:
    return UsageError(
        f"{plural(documents, 'document')}, and none of a job between two hosts; measure pairs with "
        "hostbench run --far-host, or with jobs of two hosts"
    )


def racks_of(
    given: Iterable[str], nodes: Sequence[str], *, missing: bool = False
) -> dict[str, str]:
    """Return the rack of each node, from texts such as `r1=node1,node2` or `r1=node-a*`.

    `missing`: nodes that are not there are left out, as long as a rack has one. Raise UsageError.
    """
    racks: dict[str, str] = {}
    for text in given:
        label, equals, names = text.partition("=")
        label = label.strip()
        wanted = [name.strip() for name in names.split(",")]
        if not equals or not label or not all(wanted):
            raise UsageError(
                f"--rack {shown(text)} is no rack; write its label and its nodes, such as "
                "r1=node1,node2 or r1=node-a*"
            )
        own = [node for name in wanted for node in _nodes_like(name, nodes, label, missing)]
        if not own:
            raise UsageError(
                f"--rack {label} is unknown: none of its nodes is among the {len(nodes):,} given "
                f"ones, such as {listing(nodes[:3])}"
            )
        for node in own:
            if racks.setdefault(node, label) != label:
                raise UsageError(
                    f"{node} is in two racks, {racks[node]} and {label}; name it in one of them"
                )
    return racks


def _nodes_like(name: str, nodes: Sequence[str], label: str, missing: bool) -> Iterator[str]:
    if WILDCARDS.intersection(name):
        found = fnmatch.filter(nodes, name)
        if not found and not missing:
            raise UsageError(f"--rack {label}: no node is like {shown(name)}")
        yield from found
    elif name in nodes:
        yield name
    elif not missing:
        raise UsageError(
            f"--rack {label}: {shown(name)} is none of the nodes; {did_you_mean(name, nodes)}give "
            "it as a node, too, or leave it out of the rack"
        )


def _chosen_case(pairs: Sequence[ResultDocument], title: str | None) -> CaseResult:
    """Return a case of the documents: the one of this title, or the one to judge by default."""
    known: dict[str, CaseResult] = {}
    counts: Counter[str] = Counter()
    for document in pairs:
        for one in document.cases:
            # A case with both ends on the near host says nothing of the pair.
            if one.params.get(TARGET) == FAR_HOST and _value(one) is not None:
                known.setdefault(one.case, one)
                counts[one.case] += 1
    if title is not None:
        found = [one for one in known.values() if title in (one.title, one.workload)]
        if len(found) == 1:
            return found[0]
        titles = sorted({one.title for one in (found or known.values())})
        several = "is several cases" if found else "is no case of these documents"
        raise UsageError(
            f"--case {shown(title)} {several}; there are {some_of(titles, CASES_NAMED)}"
        )
    if not known:
        raise UsageError(
            f"{plural(len(pairs), 'document')} of two hosts have no figure between the hosts that "
            "may be used; measure a case such as net.tcp_stream"
        )
    return known[max(known, key=lambda case: (_is_bandwidth(known[case]), counts[case]))]


def _is_bandwidth(case: CaseResult) -> bool:
    return case.metrics[case.primary].unit == "byte/s"


def _value(case: CaseResult) -> float | None:
    """Return the figure of a case if it may be compared."""
    if case.verdict not in USABLE or case.figure is None or case.primary not in case.metrics:
        return None
    return case.figure.value if case.figure.value > 0 else None


def _node_names(pairs: Sequence[ResultDocument]) -> dict[str, str]:
    """Return the node's name by machine, as campaigns name it: a far host knows its host name
    alone, which in a container need not be the node's. Copied machines, which share an id, are
    named by their host names."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for one in pairs:
        if one.member is not None and one.host.machine is not None:
            found[one.host.machine].add(one.member.node)
    return {machine: min(names) for machine, names in found.items() if len(names) == 1}


def _ends(document: ResultDocument, names: Mapping[str, str]) -> tuple[str, str]:
    assert document.far_host is not None
    near, far = document.host, document.far_host.inventory
    node = document.member.node if document.member else near.hostname
    if document.member is not None and document.member.far_node is not None:
        return node, document.member.far_node
    copied = near.machine == far.machine and near.hostname != far.hostname
    return node, far.hostname if copied else names.get(far.machine or "", far.hostname)


def _alone(pairs: Sequence[ResultDocument], case: str) -> set[int]:
    """Return the documents, by their places, whose case was measured while no other pair was, by
    the hosts' clocks. Jobs of many hosts may have one id."""
    spans = [span for one in pairs if (span := _span(one.cases)) is not None]
    changes = sorted([(start, 1) for start, _ in spans] + [(stop, -1) for _, stop in spans])
    # How long two or more were measured, up to each change.
    times, shared = [float("-inf")], [0.0]
    active = 0
    for at, change in changes:
        shared.append(shared[-1] + (at - times[-1] if active > 1 else 0.0))
        times.append(at)
        active += change
    found = set()
    for number, one in enumerate(pairs):
        span = _span([own for own in one.cases if own.case == case])
        if span is not None:
            start, stop = span
            together = _up_to(stop, times, shared) - _up_to(start, times, shared)
            if together <= ALONE_MOST * (stop - start):
                found.add(number)
    return found


def _up_to(at: float, times: Sequence[float], shared: Sequence[float]) -> float:
    """Return how long two or more pairs were measured up to this time."""
    after = bisect.bisect_left(times, at)
    if after >= len(times):
        return shared[-1]
    if times[after] == at or after == 0:
        return shared[after]
    step = shared[after] - shared[after - 1]
    return shared[after - 1] + (at - times[after - 1] if step else 0.0)


def _span(cases: Iterable[CaseResult]) -> tuple[float, float] | None:
    """Return when the first trial of these cases began and the last one ended."""
    trials = [trial for case in cases for trial in case.trials]
    if not trials:
        return None
    return (
        min(trial.time_unix_s for trial in trials),
        max(trial.time_unix_s + trial.wall_s for trial in trials),
    )


def _left_out(reasons: Mapping[str, int]) -> Iterator[str]:
    for reason, count in reasons.items():
        yield f"{plural(count, 'document')} {reason}"
