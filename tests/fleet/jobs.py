"""Jobs for one node each, as those of campaigns are, and what becomes of them."""

from collections.abc import Iterable, Mapping
from typing import Any

from lightkube.resources.batch_v1 import Job
from lightkube.resources.coordination_v1 import Lease
from lightkube.resources.core_v1 import ConfigMap, Node, Pod, Secret

from hostbench.fleet.kubernetes.objects import CAMPAIGN_LABEL
from tests.fleet.cluster import Cluster, name_of
from tests.fleet.image import HOST_PROGRAMS, NAME

# What the strictest of Kubernetes' profiles asks for.
RESTRICTED = {
    "runAsNonRoot": True,
    "runAsUser": 65534,
    "readOnlyRootFilesystem": True,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def job_on(
    node: str, name: str | None = None, annotations: Mapping[str, str] | None = None, **pod: Any
) -> Job:
    """A Job for a node, named like it; its pod has annotations, and fields of `pod`."""
    here = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [here]}]}
    default = {
        "restartPolicy": "Never",
        "containers": [{"name": "one", "image": NAME}],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
    }
    template = {"metadata": {"annotations": dict(annotations or {})}, "spec": {**default, **pod}}
    made = Job.from_dict(
        {
            "metadata": {"name": name or node, "namespace": "default"},
            "spec": {"backoffLimit": 0, "template": template},
        }
    )
    assert isinstance(made, Job)
    return made


def python_on(node: str, name: str, program: str) -> Job:
    """A Job that runs a Python program on a whole CPU of a real node."""
    resources = {"cpu": "1", "memory": "128Mi"}
    container = {
        "name": "one",
        "image": NAME,
        "command": ["/usr/bin/python3", "-c", program],
        "volumeMounts": HOST_PROGRAMS["volumeMounts"],
        "securityContext": RESTRICTED,
        "resources": {"requests": resources, "limits": resources},
    }
    return job_on(node, name, containers=[container], volumes=HOST_PROGRAMS["volumes"])


def wait_for_jobs(cluster: Cluster, names: Iterable[str]) -> dict[str, str]:
    """The condition in which each Job has ended."""
    awaited, ended = set(names), dict[str, str]()
    for _, job in cluster.watched(Job):
        for one in (job.status and job.status.conditions) or []:
            if one.status == "True" and one.type in {"Complete", "Failed"}:
                ended[name_of(job)] = one.type
        if awaited <= ended.keys():
            break
    return ended


def pod_of(cluster: Cluster, job: str) -> Pod:
    """The only pod of a Job."""
    (pod,) = cluster.client.list(Pod, labels={"job-name": job})
    return pod


def end_of(pod: Pod) -> tuple[int, str | None]:
    """Exit code and termination message of a pod."""
    assert pod.status is not None and pod.status.containerStatuses is not None
    state = pod.status.containerStatuses[0].state
    assert state is not None and state.terminated is not None
    return state.terminated.exitCode, state.terminated.message


def is_running(pods: Mapping[str, Pod]) -> bool:
    """Whether one of these pods runs."""
    return any(pod.status is not None and pod.status.phase == "Running" for pod in pods.values())


def left(cluster: Cluster, namespace: str) -> list[str]:
    """What is in a namespace of a campaign, and which nodes have a taint of one."""
    there: Any = cluster.client.list
    found = [
        f"{kind.__name__} {one.metadata.name}"
        for kind in (ConfigMap, Job, Pod, Lease, Secret)
        for one in there(kind, namespace=namespace, labels={CAMPAIGN_LABEL: None})
    ]
    for node in cluster.client.list(Node):
        taints = (node.spec and node.spec.taints) or []
        found += [f"taint of {name_of(node)}" for taint in taints if taint.key == CAMPAIGN_LABEL]
    return found
