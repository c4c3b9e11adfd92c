"""How far each node or pair of a campaign is, from the facts of its Jobs, pods and nodes alone."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from hostbench.fleet.campaign import (
    Campaign,
    Digest,
    Exclusive,
    NodeState,
    NodeStatus,
    Pair,
)
from hostbench.fleet.kubernetes.facts import Facts, JobFacts, NodeFacts, PodFacts
from hostbench.fleet.kubernetes.objects import CAMPAIGN_LABEL, PodOptions, toleration
from hostbench.results.ids import is_job_id

CANCELLED = "cancelled"
TURN = "its turn comes: a node is in one pair at a time"
# Why a Job failed that took longer than it may.
DEADLINE = "DeadlineExceeded"
# How a pod, and after its end an event, begin to say that an image cannot be pulled.
_PULL = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
_PULL_EVENTS = ("Failed: Failed to pull image", "InspectFailed: ")


def statuses(
    campaign: Campaign, options: PodOptions, facts: Facts, *, cancelled: bool
) -> tuple[NodeStatus, ...]:
    """Return the status of each unit, in the campaign's order."""
    found = _States(campaign, options, facts, cancelled=cancelled)
    if campaign.pairs:
        return tuple(found.pair_status(pair) for pair in campaign.pairs)
    return tuple(found.status(node) for node in campaign.nodes)


def jobs_by_unit(jobs: Iterable[JobFacts]) -> dict[str, list[JobFacts]]:
    """Return the Jobs that measure a node or a pair, the last attempt first."""
    found: dict[str, list[JobFacts]] = {}
    for job in sorted(jobs, key=lambda job: -job.attempt):
        if not job.is_far:
            found.setdefault(job.unit, []).append(job)
    return found


@dataclass
class EndJobs:
    """The Jobs of a pair's last attempt, by node."""

    attempt: int
    jobs: dict[str, JobFacts]


def ends_by_pair(jobs: Iterable[JobFacts]) -> dict[str, EndJobs]:
    """Return the Jobs of each pair's last attempt."""
    found: dict[str, EndJobs] = {}
    for job in jobs:
        last = found.get(job.unit)
        if last is None or last.attempt < job.attempt:
            last = found[job.unit] = EndJobs(job.attempt, {})
        if last.attempt == job.attempt:
            last.jobs[job.node] = job
    return found


def pods_by_job(pods: Iterable[PodFacts]) -> dict[str, list[PodFacts]]:
    """Return the pods of each Job: those with a result first, then the newest."""
    found: dict[str, list[PodFacts]] = {}
    for pod in pods:
        found.setdefault(pod.job, []).append(pod)
    for several in found.values():
        # An engine may start a Job's pod twice. The first document counts, for every client.
        several.sort(key=lambda pod: (*_document_first(pod), pod.name))
    return found


def _document_first(pod: PodFacts) -> tuple[bool, float]:
    has_document = isinstance(pod.result, Digest)
    return not has_document, pod.begun if has_document else -pod.begun


class _States:
    def __init__(
        self, campaign: Campaign, options: PodOptions, facts: Facts, *, cancelled: bool
    ) -> None:
        self._campaign, self._options, self._facts = campaign, options, facts
        self._cancelled = cancelled
        self._jobs: Mapping[str, list[JobFacts]] = jobs_by_unit(facts.jobs.values())
        self._ends = ends_by_pair(facts.jobs.values()) if campaign.pairs else {}
        self._pods: Mapping[str, list[PodFacts]] = pods_by_job(facts.pods.values())

    def status(self, node: str) -> NodeStatus:
        """Return how far a node is. A document of any attempt makes it measured."""
        attempts = self._jobs.get(node, [])
        for job in attempts:
            if (digest := self._digest(job)) is not None:
                return NodeStatus(node, NodeState.MEASURED, None, digest)
        if node not in self._facts.nodes:
            return NodeStatus(node, NodeState.MISSING, "the cluster has no such node any more")
        if not attempts:
            if self._cancelled:
                return NodeStatus(node, NodeState.FAILED, CANCELLED)
            return NodeStatus(node, NodeState.WAITING, "its Job is not made yet")
        state, reason = self._of(attempts[0])
        return NodeStatus(node, state, reason)

    def pair_status(self, pair: Pair) -> NodeStatus:
        """Return how far a pair is. It needs both ends, and fails with one of them."""
        unit = pair.name
        for job in self._jobs.get(unit, []):
            if (digest := self._digest(job)) is not None:
                return NodeStatus(unit, NodeState.MEASURED, None, digest)
        for node in pair.nodes:
            if node not in self._facts.nodes:
                words = f"the cluster has no node {node} any more"
                return NodeStatus(unit, NodeState.MISSING, words)
        last = self._ends.get(unit)
        if last is not None and (why := self._pair_failure(pair, last.jobs)) is not None:
            return NodeStatus(unit, NodeState.FAILED, why)
        if self._cancelled:
            return NodeStatus(unit, NodeState.FAILED, CANCELLED)
        if last is None:
            return NodeStatus(unit, NodeState.WAITING, TURN)
        return self._open_pair(pair, last.jobs)

    def _pair_failure(self, pair: Pair, jobs: Mapping[str, JobFacts]) -> str | None:
        """Return why a pair will not be measured; None: it may be."""
        near, far = jobs.get(pair.near), jobs.get(pair.far)
        if (kept := next((job.reason for job in jobs.values() if job.reason), None)) is not None:
            return kept
        second = jobs.get(pair.nodes[1])
        if second is not None and any(
            job.failed is not None and job.failed[0] == DEADLINE for job in jobs.values()
        ):
            # The first end runs, and waited for the second.
            state, why = self._of(second)
            if state is NodeState.WAITING:
                why = f"{self._limit_words}: {why}"
            if state is not NodeState.RUNNING:
                return f"{second.node}: {why}"
        # Where the far end fails, it is the cause of what the near end says.
        if far is not None and far.failed is not None:
            return f"the far end on {pair.far}: {self._of(far)[1]}"
        if near is not None and near.ended:
            return self._of(near)[1]
        if far is not None and far.complete and near is None:
            return f"the far end on {pair.far} ended before the near end began"
        if pair.nodes[0] not in jobs:
            return f"the Job of its end on {pair.nodes[0]} was deleted"
        return None

    def _open_pair(self, pair: Pair, jobs: Mapping[str, JobFacts]) -> NodeStatus:
        reasons = []
        for node, job in jobs.items():
            state, reason = self._of(job)
            if state is NodeState.WAITING:
                reasons.append(f"{node}: {reason}" if reason else f"{node} has not begun")
        if len(jobs) == len(pair.nodes) and not reasons:
            return NodeStatus(pair.name, NodeState.RUNNING)
        return NodeStatus(pair.name, NodeState.WAITING, "; ".join(reasons) or None)

    def _digest(self, job: JobFacts) -> Digest | None:
        results = (job.result, *(pod.result for pod in self._pods.get(job.name, ())))
        for result in results:
            if isinstance(result, Digest) and self._is_of(result, job.unit):
                return result
        return None

    def _is_of(self, result: Digest, unit: str) -> bool:
        """Whether a pod reports for its own unit: what it writes is not trusted, and names files of
        the client."""
        member = result.member
        return (member.campaign, member.unit) == (self._campaign.name, unit) and is_job_id(
            result.job
        )

    def _of(self, job: JobFacts) -> tuple[NodeState, str | None]:
        pod = next(iter(self._pods.get(job.name, ())), None)
        if job.failed is not None:
            return NodeState.FAILED, self._failure(job, *job.failed, pod)
        if job.complete:
            return NodeState.FAILED, (
                "its pod is gone and with it the document"
                if pod is None
                else "its pod ended without a document: see kubectl logs " + pod.name
            )
        if self._cancelled:
            return NodeState.FAILED, CANCELLED
        if pod is not None and pod.phase != "Pending":
            return NodeState.RUNNING, None
        return NodeState.WAITING, "; ".join(self._hindrances(job, pod)) or None

    @property
    def _limit_words(self) -> str:
        return f"not measured within the time limit of {self._campaign.time_limit_s:.0f} s"

    def _failure(self, job: JobFacts, reason: str, text: str, pod: PodFacts | None) -> str:
        warning = self._facts.warnings.get(job.name)
        if reason == DEADLINE:
            texts = (None if pod is None else pod.why, None if warning is None else warning.text)
            why = next((words for text in texts if (words := self._words(text))), None)
            return f"{self._limit_words}: {why}" if why else self._limit_words
        if pod is None:
            # Its garbage collector takes a pod from a node that is gone or was drained.
            node = self._facts.nodes.get(job.node)
            is_cordoned = node is not None and node.cordoned
            drain = ", as kubectl drain does: the node is cordoned" if is_cordoned else ""
            return f"{reason}: {warning.text if warning else text}; its pod was deleted{drain}"
        parts = [pod.why] if pod.why else []
        if isinstance(pod.result, str):
            parts.append(pod.result)
        if pod.exit_code:
            parts.append(f"exit code {pod.exit_code}")
        return ", ".join(parts) or f"{reason}: {text}"

    def _hindrances(self, job: JobFacts, pod: PodFacts | None) -> Iterator[str]:
        if job.suspended:
            if self._options.queue:
                yield f"queued by Kueue in {self._options.queue}"
            elif job.pair is not None:
                yield TURN
            else:
                yield f"its turn comes: at most {self._campaign.at_most} nodes at once"
            return
        node = self._facts.nodes[job.node]
        yield from (
            f"campaign {taint.value} has the node"
            for taint in node.taints
            if taint.key == CAMPAIGN_LABEL and taint.value != self._campaign.name
        )
        hindrances = list(node_hindrances(node, self._options))
        yield from hindrances
        if hindrances:
            return  # The scheduler says the same in other words.
        if pod is None:
            warning = self._facts.warnings.get(job.name)
            why = self._words(None if warning is None else warning.text)
        else:
            why = self._words(pod.why)
        if why is not None:
            yield why

    def _words(self, text: str | None) -> str | None:
        """Return what a pod or an event says, with the remedy where the campaign's options are
        one."""
        if text is None:
            return None
        if text.startswith((*_PULL, *_PULL_EVENTS)):
            return (
                f"the image {self._options.image} cannot be pulled: {text}; check --image and the "
                "pull secrets of --service-account"
            )
        if "violates PodSecurity" in text and self._options.lock == "host":
            return f"{text}; allow hostPath in the namespace, or use --lock lease"
        if "exceeded quota" in text and self._campaign.exclusive is not Exclusive.NONE:
            return f"{text}; raise the quota, or use --exclusive none, which requests less"
        return text


def node_hindrances(node: NodeFacts, options: PodOptions) -> Iterator[str]:
    """Yield what keeps campaigns' pods off a node, other campaigns apart: they take turns."""
    if not node.ready:
        yield "the node is not ready"
    if node.cordoned:
        yield f"the node is cordoned: kubectl uncordon {node.name} admits pods"
    for taint in node.repelling:
        own = taint.key == CAMPAIGN_LABEL
        if not own and not _tolerated(taint.key, taint.value, taint.effect, options):
            yield f"the node has the taint {taint}: --tolerate {taint.key} passes it"


def _tolerated(key: str, value: str, effect: str, options: PodOptions) -> bool:
    return any(
        one.key == key
        and (one.operator == "Exists" or (one.value or "") == value)
        and one.effect in {None, effect}
        for one in map(toleration, options.tolerate)
    )
