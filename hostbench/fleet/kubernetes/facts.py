"""What a campaign needs to know of a cluster's objects, a few words each: a thousand whole objects
would take a gigabyte."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Event, Node, Pod

from hostbench.fleet.campaign import Digest
from hostbench.fleet.kubernetes.objects import (
    ATTEMPT_LABEL,
    NODE_ANNOTATION,
    PAIR_ANNOTATION,
    REASON_ANNOTATION,
    RESULT_ANNOTATION,
    Taint,
)
from hostbench.fleet.node import read_message

# Effects that keep a new pod off a node.
REPELLING = frozenset({"NoSchedule", "NoExecute"})
# Events that only repeat what another one, or the Job's condition, says in full.
_ECHO = re.compile(r"Error: |Back-off ")
# The kubelet's reasons that say too little by themselves.
_REASONS = {"OOMKilled": "OOMKilled: the pod needed more memory than its limit"}
_CONDITIONS = frozenset({"BackoffLimitExceeded", "DeadlineExceeded"})
# Warnings of the kubelet that keep no pod from starting, and come again and again.
_HARMLESS = frozenset({"DNSConfigForming", "FailedToRetrieveImagePullSecret", "MissingClusterDNS"})


@dataclass(frozen=True)
class NodeFacts:
    """A node. `allocatable`: what pods can get, by resource. `machine`: its machine id, else its
    system's UUID; None: its kubelet reports neither."""

    name: str
    ready: bool
    cordoned: bool
    taints: tuple[Taint, ...]
    allocatable: Mapping[str, str]
    machine: str | None = None

    @property
    def repelling(self) -> tuple[Taint, ...]:
        """The taints that keep pods off, apart from those that repeat the other fields."""
        return tuple(
            taint
            for taint in self.taints
            if taint.effect in REPELLING and not taint.key.startswith("node.kubernetes.io/")
        )


@dataclass(frozen=True)
class JobFacts:
    """A Job of a campaign. `failed`: reason and text of its failure; `result`: the Digest that a
    client put there; `pair`: the name of its pair, if it is an end of one; `reason`: why that pair
    failed, from before the Job of the other end was deleted."""

    name: str
    node: str
    attempt: int
    suspended: bool
    complete: bool
    failed: tuple[str, str] | None
    result: Digest | None
    pair: str | None = None
    reason: str | None = None

    @property
    def unit(self) -> str:
        """What it measures: a node, or a pair by its name."""
        return self.pair or self.node

    @property
    def is_far(self) -> bool:
        """Whether it is the far end of a pair, which has no document."""
        return self.pair is not None and self.pair.endswith(f"+{self.node}")

    @property
    def ended(self) -> bool:
        """Whether it starts no pod any more."""
        return self.complete or self.failed is not None


@dataclass(frozen=True)
class PodFacts:
    """A pod of a campaign.

    `begun`: when it was made, for two of one Job. `result`: the Digest, or the line that the node
    wrote instead. `why`: in the engine's words, why it does not start or was ended. `address`: its
    own.
    """

    name: str
    job: str
    begun: float
    phase: str
    result: Digest | str | None
    exit_code: int | None
    why: str | None
    address: str | None = None


@dataclass(frozen=True)
class EventFacts:
    """A warning about a Job or one of its pods."""

    job: str
    text: str


@dataclass
class Facts:
    """What is known of a campaign's objects, by their names; warnings by Job, the last one."""

    nodes: dict[str, NodeFacts] = field(default_factory=dict)
    jobs: dict[str, JobFacts] = field(default_factory=dict)
    pods: dict[str, PodFacts] = field(default_factory=dict)
    warnings: dict[str, EventFacts] = field(default_factory=dict)


def node_facts(node: Node) -> NodeFacts:
    """Return what a campaign needs to know of a node."""
    spec, status = node.spec, node.status
    info = status and status.nodeInfo
    conditions = (status and status.conditions) or ()
    return NodeFacts(
        name=_name(node),
        ready=any(one.type == "Ready" and one.status == "True" for one in conditions),
        cordoned=bool(spec and spec.unschedulable),
        taints=tuple(
            Taint(one.key, one.value or "", one.effect) for one in (spec and spec.taints) or ()
        ),
        allocatable=dict((status and status.allocatable) or {}),
        machine=(info and (info.machineID or info.systemUUID)) or None,
    )


def job_facts(job: Job) -> JobFacts:
    """Return what a campaign needs to know of a Job of its own."""
    metadata, status = job.metadata, job.status
    assert metadata is not None
    assert job.spec is not None
    notes, marks = metadata.annotations or {}, metadata.labels or {}
    true = {one.type: one for one in (status and status.conditions) or () if one.status == "True"}
    # FailureTarget comes first; the Job is Failed when its pods have ended.
    failed = true.get("Failed")
    result = read_message(notes.get(RESULT_ANNOTATION, ""))
    return JobFacts(
        name=_name(job),
        node=notes.get(NODE_ANNOTATION, ""),
        attempt=int(marks.get(ATTEMPT_LABEL, "1")),
        suspended=bool(job.spec.suspend),
        complete="Complete" in true,
        failed=None if failed is None else (failed.reason or "", failed.message or ""),
        result=result if isinstance(result, Digest) else None,
        pair=notes.get(PAIR_ANNOTATION),
        reason=notes.get(REASON_ANNOTATION),
    )


def pod_facts(pod: Pod) -> PodFacts:
    """Return what a campaign needs to know of a pod of its own."""
    metadata, status = pod.metadata, pod.status
    assert metadata is not None
    assert metadata.name is not None
    container = next(iter((status and status.containerStatuses) or ()), None)
    ended = container.state.terminated if container and container.state else None
    return PodFacts(
        name=metadata.name,
        job=metadata.name.rpartition("-")[0],
        begun=metadata.creationTimestamp.timestamp() if metadata.creationTimestamp else 0.0,
        phase=(status and status.phase) or "Pending",
        result=read_message(ended.message or "") if ended else None,
        exit_code=ended.exitCode if ended else None,
        why=None if (why := _why(pod)) is None else " ".join(why.split()),
        address=status.podIP if status else None,
    )


def _why(pod: Pod) -> str | None:
    """Return why a pod does not start or was ended, from the most to the least exact."""
    status = pod.status
    if status is None:
        return None
    true = {one.type: one for one in status.conditions or ()}
    disrupted = true.get("DisruptionTarget")
    if status.reason:  # Evicted, NodeLost, OutOfcpu …
        return f"{status.reason}: {status.message}" if status.message else status.reason
    if disrupted is not None and disrupted.status == "True":
        return f"{disrupted.reason}: {disrupted.message}"
    for container in status.containerStatuses or ():
        state = container.state
        if (
            state
            and state.terminated
            and state.terminated.reason not in {None, "Completed", "Error"}
        ):
            reason = state.terminated.reason  # OOMKilled, ContainerCannotRun …
            return _REASONS.get(reason or "", reason)
        if state and state.waiting and state.waiting.reason not in {None, "ContainerCreating"}:
            text = f": {state.waiting.message}" if state.waiting.message else ""
            return f"{state.waiting.reason}{text}"
    scheduled = true.get("PodScheduled")
    if scheduled is not None and scheduled.status == "False" and scheduled.message:
        return scheduler_words(scheduled.message)
    return None


def scheduler_words(message: str) -> str:
    """Return what the scheduler says of the one node that a pod may go to.

    Its message counts all nodes: `0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't
    match Pod's node affinity/selector. preemption: …`.
    """
    _, _, reasons = message.partition("nodes are available: ")
    reasons = reasons.partition(" preemption: ")[0]
    own = [
        reason
        for reason in reasons.rstrip(". ").split(", ")
        if reason and "affinity/selector" not in reason and "NodeAffinity" not in reason
    ]
    return ", ".join(map(_of_one_node, own)) or message


def _of_one_node(reason: str) -> str:
    """Return `the node was unschedulable` for `1 node(s) were unschedulable`, and `no room:
    Insufficient cpu` for `1 Insufficient cpu`."""
    text = re.sub(r"^\d+ ", "", reason)
    if text.startswith("node(s) "):
        return f"the node {text.removeprefix('node(s) ').replace('were ', 'was ', 1)}"
    return f"no room: {text}"


def event_facts(event: Event, campaign: str) -> EventFacts | None:
    """Return what a warning says about a Job of the campaign; None: it is about something else."""
    about, text = event.involvedObject, " ".join((event.message or "").split())
    name = about.name or ""
    job = name.rpartition("-")[0] if about.kind == "Pod" else name
    if not name.startswith(f"{campaign}-") or about.kind not in {"Pod", "Job"} or not text:
        return None
    if _ECHO.match(text) or event.reason in _CONDITIONS | _HARMLESS:
        return None
    if event.reason == "FailedScheduling":
        return EventFacts(job=job, text=scheduler_words(text))
    return EventFacts(job=job, text=f"{event.reason}: {text}" if event.reason else text)


def _name(thing: Node | Job) -> str:
    assert thing.metadata is not None
    assert thing.metadata.name is not None
    return thing.metadata.name
