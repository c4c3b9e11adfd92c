"""The objects that a campaign makes in a cluster: one ConfigMap, and one Job a node; for pairs of
nodes one Job for each end, and a Secret.

Their names follow from the campaign and the node alone. So making one twice is a conflict that
means nothing, and a client that was killed is continued by any other.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from lightkube.models.batch_v1 import JobSpec
from lightkube.models.core_v1 import (
    Affinity,
    Capabilities,
    ConfigMapVolumeSource,
    Container,
    EmptyDirVolumeSource,
    EnvVar,
    HostPathVolumeSource,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodSecurityContext,
    PodSpec,
    PodTemplateSpec,
    ResourceRequirements,
    SeccompProfile,
    SecretVolumeSource,
    SecurityContext,
    Toleration,
    Volume,
    VolumeMount,
)
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import ConfigMap, Secret
from pydantic import TypeAdapter

from hostbench.fleet.campaign import Campaign, Exclusive, Pair, PostTo
from hostbench.fleet.node import CAMPAIGN
from hostbench.host.inventory import MACHINE_VARIABLE, machine_hash
from hostbench.model.campaign import LockName

PREFIX = "hostbench.dev"
# On every object of a campaign; also the taint of a node that it has for itself.
CAMPAIGN_LABEL = f"{PREFIX}/campaign"
ATTEMPT_LABEL = f"{PREFIX}/attempt"
# A node's name may be longer than a label's value.
NODE_ANNOTATION = f"{PREFIX}/node"
# On a Job that is an end of a pair: the pair's name.
PAIR_ANNOTATION = f"{PREFIX}/pair"
# On the Job of an end whose pair failed: why.
REASON_ANNOTATION = f"{PREFIX}/reason"
# On a Job whose node was measured: the Digest, which then outlives the pod.
RESULT_ANNOTATION = f"{PREFIX}/result"
# On the ConfigMap of a campaign that was cancelled.
CANCELLED_ANNOTATION = f"{PREFIX}/cancelled"
MANAGED_BY = {"app.kubernetes.io/managed-by": "hostbench"}
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
CAMPAIGN_KEY, OPTIONS_KEY = "campaign.json", "kubernetes.json"
CONTAINER = "hostbench"
CAMPAIGN_DIRECTORY, RESULTS_DIRECTORY = "/etc/hostbench", "/results"
SECRET_DIRECTORY = "/etc/hostbench-pair"  # noqa: S105 # where it is
# Where the end of a pair that begins first listens for the other one.
MEETING_PORT = 8010
HOST_LOCK_DIRECTORY, POST_KEYS_DIRECTORY = "/run/lock", "/run/secrets/hostbench"
LABEL_CHARACTERS_MOST = 63
TERMINATION_MESSAGE = "/dev/termination-log"
# A document of many cases, twice: as it grows and as it is stored.
RESULTS_SIZE = "1Gi"

# CPU and memory that other work on a node leaves unused are ours anyway: no limit, and a request so
# small that every node has it.
LITTLE = {"cpu": "100m", "memory": "256Mi"}


@dataclass(frozen=True)
class PodOptions:
    """How a campaign's pods are made. Stored with the campaign, so that every client makes the same
    ones.

    `queue`: Kueue's LocalQueue, which then decides when a node is measured. `tolerate`: further
    taints that the pods accept, each `key`, `key=value` or with `:effect`. `annotations`: further
    ones of the pods, such as those that keep sidecars out. `post`: where documents are posted.
    """

    image: str
    queue: str | None = None
    priority: str | None = None
    lock: LockName = "lease"
    service_account: str | None = None
    tolerate: tuple[str, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    post: PostTo | None = None


OPTIONS: TypeAdapter[PodOptions] = TypeAdapter(PodOptions)


@dataclass(frozen=True)
class Taint:
    """What keeps pods off a node."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        value = f"={self.value}" if self.value else ""
        return f"{self.key}{value}:{self.effect}"


@dataclass(frozen=True)
class PairEnd:
    """The end of a pair that a Job is. `first`: the address of the end that began first; None: this
    one does."""

    pair: Pair
    node: str
    first: str | None = None

    @property
    def is_far(self) -> bool:
        """Whether it is the far end."""
        return self.node == self.pair.far

    @property
    def key(self) -> str:
        """Return what its Job is named by: the pair has another one for the other end."""
        return f"{self.pair.name} far" if self.is_far else self.pair.name

    @property
    def arguments(self) -> list[str]:
        """Return the arguments of its command."""
        address = self.first or ""
        meet = f"[{address}]" if ":" in address else address
        return [
            f"--pair={self.pair.name}",
            f"--meet={meet}:{MEETING_PORT}",
            f"--secret={SECRET_DIRECTORY}",
        ]


def campaign_taint(campaign: str) -> Taint:
    """Return the taint of a node that a campaign has for itself."""
    return Taint(CAMPAIGN_LABEL, campaign, "NoSchedule")


def job_name(campaign: str, key: str, attempt: int) -> str:
    """Return the name of the Job that measures a node, or is an end of a pair, for the n-th time.
    `key`: the node, or that of the end."""
    return f"{campaign}-{node_hash(key)}-{attempt}"


def node_hash(node: str) -> str:
    """Return a node's name in ten hexadecimal digits."""
    return hashlib.sha256(node.encode()).hexdigest()[:10]


def host_name(node: str) -> str:
    """Return a node's name as one label: the host name of the pods that measure it. By a pod's own
    name, each campaign would measure another host."""
    return node.replace(".", "-")[:LABEL_CHARACTERS_MOST].rstrip("-")


def labels(campaign: str) -> dict[str, str]:
    """Return the labels of every object of a campaign."""
    return {CAMPAIGN_LABEL: campaign, **MANAGED_BY}


def config_map(campaign: Campaign, options: PodOptions) -> ConfigMap:
    """Return the ConfigMap that keeps a campaign and its options."""
    return ConfigMap(
        metadata=ObjectMeta(name=campaign.name, labels=labels(campaign.name)),
        data={
            CAMPAIGN_KEY: CAMPAIGN.dump_json(campaign).decode(),
            OPTIONS_KEY: OPTIONS.dump_json(options).decode(),
        },
        immutable=True,
    )


def secret_name(campaign: str) -> str:
    """Return the name of the Secret of a campaign of pairs: one that no user gives his own."""
    return f"hostbench-pairs-{campaign}"


def secret_object(campaign: str, contents: Mapping[str, str]) -> Secret:
    """Return the Secret by which the ends of a campaign's pairs know one another."""
    return Secret(
        metadata=ObjectMeta(name=secret_name(campaign), labels=labels(campaign)),
        stringData=dict(contents),
        immutable=True,
    )


def node_job(
    campaign: Campaign,
    options: PodOptions,
    node: str,
    attempt: int,
    resources: Mapping[str, str],
    *,
    suspended: bool,
    machine: str | None = None,
    end: PairEnd | None = None,
) -> Job:
    """Return the Job that measures one node, or is an end of a pair on it. `resources`: all that
    the node has for it; unused where other work may run beside it. `machine`: the node's machine
    id; None: unknown."""
    marks = {**labels(campaign.name), ATTEMPT_LABEL: str(attempt)}
    queue = {QUEUE_LABEL: options.queue} if options.queue else {}
    notes = {NODE_ANNOTATION: node} | ({} if end is None else {PAIR_ANNOTATION: end.pair.name})
    return Job(
        metadata=ObjectMeta(
            name=job_name(campaign.name, node if end is None else end.key, attempt),
            labels={**marks, **queue},
            annotations=notes,
        ),
        spec=JobSpec(
            parallelism=1,
            completions=1,
            # A node that failed says why, and is measured again when the user wants it.
            backoffLimit=0,
            # No second pod while the first one still ends.
            podReplacementPolicy="Failed",
            activeDeadlineSeconds=max(1, int(campaign.time_limit_s)),
            suspend=suspended,
            template=PodTemplateSpec(
                metadata=ObjectMeta(labels=marks, annotations={**options.annotations, **notes}),
                spec=_pod(campaign, options, node, resources, machine, end),
            ),
        ),
    )


def _pod(
    campaign: Campaign,
    options: PodOptions,
    node: str,
    resources: Mapping[str, str],
    machine: str | None,
    end: PairEnd | None,
) -> PodSpec:
    # Pods see no machine id, and the documents of a machine must show that they are of one.
    identity = machine_hash(machine or f"{campaign.cluster} {node}")
    volumes, mounts = _volumes(campaign.name, options, secret=end is not None)
    shared = campaign.exclusive is Exclusive.NONE
    wanted = {**resources, **LITTLE} if shared else dict(resources)
    # Devices have no request without a limit.
    limits = {name: value for name, value in wanted.items() if not shared or "/" in name}
    return PodSpec(
        restartPolicy="Never",
        hostname=host_name(node),
        affinity=_only(node),
        tolerations=_tolerations(campaign, options),
        priorityClassName=options.priority,
        serviceAccountName=options.service_account,
        automountServiceAccountToken=options.lock == "lease",
        enableServiceLinks=False,
        securityContext=PodSecurityContext(
            runAsNonRoot=True, seccompProfile=SeccompProfile(type="RuntimeDefault")
        ),
        volumes=volumes,
        containers=[
            Container(
                name=CONTAINER,
                image=options.image,
                command=["hostbench", "fleet", _command(end)],
                args=[
                    f"--campaign-file={CAMPAIGN_DIRECTORY}/{CAMPAIGN_KEY}",
                    f"--node={node}",
                    f"--lock={options.lock}",
                    f"--termination-message={TERMINATION_MESSAGE}",
                    *([] if end is None else end.arguments),
                    *([] if _is_far(end) else _near_arguments(options.post)),
                ],
                env=[
                    EnvVar(name="HOSTBENCH_RESULTS", value=RESULTS_DIRECTORY),
                    EnvVar(name=MACHINE_VARIABLE, value=identity),
                ],
                resources=ResourceRequirements(requests=wanted, limits=limits),
                securityContext=SecurityContext(
                    allowPrivilegeEscalation=False,
                    readOnlyRootFilesystem=True,
                    capabilities=Capabilities(drop=["ALL"]),
                ),
                terminationMessagePath=TERMINATION_MESSAGE,
                terminationMessagePolicy="File",
                volumeMounts=mounts,
            )
        ],
    )


def _is_far(end: PairEnd | None) -> bool:
    return end is not None and end.is_far


def _command(end: PairEnd | None) -> str:
    return "far-end" if _is_far(end) else "measure"


def _only(node: str) -> Affinity:
    """Return the affinity to one node. spec.nodeName would pass by the scheduler, and with it by
    taints and by what else is on the node."""
    this = NodeSelectorRequirement(key="metadata.name", operator="In", values=[node])
    return Affinity(
        nodeAffinity=NodeAffinity(
            requiredDuringSchedulingIgnoredDuringExecution=NodeSelector(
                nodeSelectorTerms=[NodeSelectorTerm(matchFields=[this])]
            )
        )
    )


def _tolerations(campaign: Campaign, options: PodOptions) -> list[Toleration]:
    taint = campaign_taint(campaign.name)
    own = Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
    return [own, *(toleration(text) for text in options.tolerate)]


def toleration(text: str) -> Toleration:
    """Return the toleration that `--tolerate` names: `key`, `key=value`, `key:effect` and so on."""
    name, _, effect = text.partition(":")
    key, equals, value = name.partition("=")
    return Toleration(
        key=key,
        operator="Equal" if equals else "Exists",
        value=value if equals else None,
        effect=effect or None,
    )


def _near_arguments(post: PostTo | None) -> list[str]:
    """Return the arguments of what measures; the far end of a pair has no document."""
    posting = [f"--post={post.url}", f"--post-keys={POST_KEYS_DIRECTORY}"] if post else []
    return ["--engine=kubernetes", "--document-to-log", *posting]


def _volumes(
    campaign: str, options: PodOptions, *, secret: bool
) -> tuple[list[Volume], list[VolumeMount]]:
    volumes = [
        Volume(
            name="campaign",
            configMap=ConfigMapVolumeSource(name=campaign),
        ),
        Volume(name="results", emptyDir=EmptyDirVolumeSource(sizeLimit=RESULTS_SIZE)),
        Volume(name="tmp", emptyDir=EmptyDirVolumeSource()),
        # On a disk of the node: what disk workloads measure.
        Volume(name="scratch", emptyDir=EmptyDirVolumeSource()),
    ]
    mounts = [
        VolumeMount(name="campaign", mountPath=CAMPAIGN_DIRECTORY, readOnly=True),
        VolumeMount(name="results", mountPath=RESULTS_DIRECTORY),
        VolumeMount(name="tmp", mountPath="/tmp"),  # noqa: S108 # the pod's own
        VolumeMount(name="scratch", mountPath="/var/tmp"),  # noqa: S108 # the pod's own
    ]
    if options.post is not None:
        # Without the Secret the node measures all the same, and reports why it did not post.
        keys = SecretVolumeSource(secretName=options.post.keys, optional=True)
        volumes.append(Volume(name="post-keys", secret=keys))
        mounts.append(VolumeMount(name="post-keys", mountPath=POST_KEYS_DIRECTORY, readOnly=True))
    if secret:
        source = SecretVolumeSource(secretName=secret_name(campaign))
        volumes.append(Volume(name="pair", secret=source))
        mounts.append(VolumeMount(name="pair", mountPath=SECRET_DIRECTORY, readOnly=True))
    if options.lock == "host":
        path = HostPathVolumeSource(path=HOST_LOCK_DIRECTORY, type="Directory")
        volumes.append(Volume(name="lock", hostPath=path))
        mounts.append(VolumeMount(name="lock", mountPath=HOST_LOCK_DIRECTORY))
    return volumes, mounts


def reason_patch(reason: str) -> dict[str, object]:
    """Return the patch that keeps at a Job why its pair failed."""
    return {"metadata": {"annotations": {REASON_ANNOTATION: reason}}}


def result_patch(digest_json: str) -> dict[str, object]:
    """Return the patch that keeps a node's Digest at its Job."""
    return {"metadata": {"annotations": {RESULT_ANNOTATION: digest_json}}}
