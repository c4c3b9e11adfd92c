"""Campaigns on Kubernetes without a cluster: the objects made, and states from sample objects."""

import dataclasses
import itertools
import json
import re
import shlex
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
from lightkube import ApiError
from lightkube.config.kubeconfig import SingleConfig
from lightkube.config.models import Cluster, Context
from lightkube.models.meta_v1 import Status
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Event, Node, Pod
from pydantic import TypeAdapter

from hostbench.base.errors import HostbenchError, ResourceError, UnreachableError, UsageError
from hostbench.base.exitcode import ExitCode
from hostbench.fleet.campaign import (
    Campaign,
    Digest,
    Exclusive,
    MeasuredSystem,
    NodeState,
    NodeStatus,
    PostTo,
)
from hostbench.fleet.kubernetes import api, watches
from hostbench.fleet.kubernetes.api import Api, Patience, described
from hostbench.fleet.kubernetes.engine import KubernetesEngine
from hostbench.fleet.kubernetes.facts import (
    Facts,
    event_facts,
    job_facts,
    node_facts,
    pod_facts,
    scheduler_words,
)
from hostbench.fleet.kubernetes.gate import (
    GateNode,
    Qualification,
    _condition,
    _read_system,
    outdated,
    qualification,
)
from hostbench.fleet.kubernetes.nodes import chosen_nodes, label_selector, pod_requests
from hostbench.fleet.kubernetes.objects import (
    OPTIONS,
    PodOptions,
    config_map,
    job_name,
    node_job,
)
from hostbench.fleet.kubernetes.progress import Progress
from hostbench.fleet.kubernetes.rights import ROLE, For, roles
from hostbench.fleet.kubernetes.states import statuses
from hostbench.fleet.node import CAMPAIGN
from hostbench.fleet.slurm.scripts import SlurmOptions, script
from hostbench.host.inventory import machine_hash
from hostbench.model.suite import Suite, SuiteCase
from hostbench.results.ids import submitted_unix_s
from tests.fleet.decoded import decoded

OPTION = PodOptions(image="hostbench:1")
CAMPAIGN_1 = Campaign(
    name="c1",
    cluster="uid",
    suite=Suite(name="quick", cases=(SuiteCase(workload="cpu.fma"),)),
    nodes=("n1",),
    at_most=3,
)
NAME = job_name("c1", "n1", 1)
DIGEST: dict[str, Any] = {
    "job": "20261126T120000Z-quick-0001",
    "digest": "sha256:0",
    "exit_code": 0,
    "verdicts": {"clean": 1},
    "member": {
        "campaign": "c1",
        "engine": "kubernetes",
        "cluster": "uid",
        "node": "n1",
        "lock": "lease",
    },
    "system": {"kernel": "6.1"},
}
NOW = "2026-11-26T12:00:00Z"
LATER = "2026-11-26T12:00:09Z"
MEASURED_S = submitted_unix_s(DIGEST["job"])
NOW_S = MEASURED_S + 60


def a_job(attempt: int = 1, **fields: Any) -> Job:
    made = node_job(CAMPAIGN_1, OPTION, "n1", attempt, {}, suspended=False).to_dict()
    condition = fields.pop("condition", None)
    annotations = fields.pop("annotations", {})
    made["metadata"]["annotations"].update(annotations)
    made["spec"].update(fields)
    if condition:
        kind, reason, message = condition
        made["status"] = {
            "conditions": [{"type": kind, "status": "True", "reason": reason, "message": message}]
        }
    return decoded(Job, made)


def a_pod(status: Mapping[str, Any], name: str = f"{NAME}-abcde", made: str = NOW) -> Pod:
    return decoded(
        Pod,
        {
            "metadata": {"name": name, "creationTimestamp": made},
            "spec": {"containers": []},
            "status": status,
        },
    )


def ended(code: int, message: str, reason: str = "Completed") -> dict[str, Any]:
    state = {"terminated": {"exitCode": code, "message": message, "reason": reason}}
    return {"phase": "Failed" if code else "Succeeded", "containerStatuses": [container(state)]}


def container(state: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": "hostbench",
        "image": "i",
        "imageID": "i",
        "ready": False,
        "restartCount": 0,
        "state": state,
    }


UNKNOWN = dict.fromkeys(
    (
        "architecture", "bootID", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion",
        "kubeletVersion", "machineID", "operatingSystem", "osImage", "systemUUID",
    ),
    "",
)  # fmt: skip


def a_node(**spec: Any) -> Node:
    ready = spec.pop("ready", "True")
    return decoded(
        Node,
        {
            "metadata": {"name": "n1"},
            "spec": spec,
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        },
    )


def a_warning(reason: str, message: str, kind: str = "Job", name: str = NAME) -> Event:
    return decoded(
        Event,
        {
            "metadata": {"name": "e"},
            "involvedObject": {"kind": kind, "name": name},
            "reason": reason,
            "message": message,
            "type": "Warning",
        },
    )


def status_of(*objects: Any, cancelled: bool = False, options: PodOptions = OPTION) -> NodeStatus:
    facts = Facts()
    for one in objects:
        if isinstance(one, Node):
            facts.nodes["n1"] = node_facts(one)
        elif isinstance(one, Job):
            job = job_facts(one)
            facts.jobs[job.name] = job
        elif isinstance(one, Pod):
            pod = pod_facts(one)
            facts.pods[pod.name] = pod
        elif (warning := event_facts(one, "c1")) is not None:
            facts.warnings[warning.job] = warning
    (status,) = statuses(CAMPAIGN_1, options, facts, cancelled=cancelled)
    return status


FORBIDDEN = 'pods "c1-x" is forbidden: violates PodSecurity "restricted:latest": hostPath volumes'
QUOTA = (
    'pods "c1-x" is forbidden: exceeded quota: small, requested: cpu=64, used: cpu=0, limited: '
    "cpu=8"
)
BACKOFF = ("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
DEADLINE = ("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")
NO_CPU = {
    "phase": "Pending",
    "conditions": [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/9 nodes are available: 1 Insufficient cpu, 8 node(s) didn't match Pod's "
            "node affinity/selector. preemption: 0/9 nodes are available: 9 Preemption is not "
            "helpful for scheduling.",
        }
    ],
}
PULL = {
    "phase": "Pending",
    "containerStatuses": [
        container({"waiting": {"reason": "ErrImagePull", "message": "not found: hostbench:1"}})
    ],
}
BACK_OFF = {
    "phase": "Pending",
    "containerStatuses": [
        container(
            {
                "waiting": {
                    "reason": "ImagePullBackOff",
                    "message": "Back-off pulling image:\n  no such host",
                }
            }
        )
    ],
}
EVICTED = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory."}
STATES: dict[str, tuple[tuple[Any, ...], NodeState, str | None]] = {
    "no Job": ((a_node(),), NodeState.WAITING, "its Job is not made yet"),
    "no node": ((), NodeState.MISSING, "the cluster has no such node any more"),
    "Job failed, no node": ((a_job(condition=BACKOFF),), NodeState.MISSING, "no such node"),
    "a turn": ((a_node(), a_job(suspend=True)), NodeState.WAITING, "at most 3 nodes at once"),
    "PodSecurity": (
        (a_node(), a_job(), a_warning("FailedCreate", f"Error creating: {FORBIDDEN}")),
        NodeState.WAITING,
        FORBIDDEN,
    ),
    "quota": (
        (a_node(), a_job(), a_warning("FailedCreate", f"Error creating: {QUOTA}")),
        NodeState.WAITING,
        QUOTA,
    ),
    "cordoned": (
        (a_node(unschedulable=True), a_job(), a_pod({"phase": "Pending"})),
        NodeState.WAITING,
        "the node is cordoned: kubectl uncordon n1",
    ),
    "tainted by others": (
        (a_node(taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}]), a_job()),
        NodeState.WAITING,
        "the node has the taint k=v:NoSchedule",
    ),
    "another campaign": (
        (
            a_node(
                taints=[{"key": "hostbench.dev/campaign", "value": "c0", "effect": "NoSchedule"}]
            ),
            a_job(),
        ),
        NodeState.WAITING,
        "campaign c0 has the node",
    ),
    "no room": ((a_node(), a_job(), a_pod(NO_CPU)), NodeState.WAITING, "no room: Insufficient cpu"),
    "not idle in time": (
        (
            a_node(),
            a_job(condition=DEADLINE),
            a_warning(
                "FailedScheduling",
                "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node "
                "affinity/selector.",
                "Pod",
                f"{NAME}-abcde",
            ),
        ),
        NodeState.FAILED,
        "not measured within the time limit of 3600 s: no room: Insufficient cpu",
    ),
    "image": (
        (a_node(), a_job(), a_pod(PULL)),
        NodeState.WAITING,
        "the image hostbench:1 cannot be pulled: ErrImagePull: not found: hostbench:1",
    ),
    "running": ((a_node(), a_job(), a_pod({"phase": "Running"})), NodeState.RUNNING, None),
    "evicted": (
        (a_node(), a_job(condition=BACKOFF), a_pod(EVICTED)),
        NodeState.FAILED,
        "Evicted: The node was low on memory.",
    ),
    "failed": (
        (a_node(), a_job(condition=BACKOFF), a_pod(ended(7, "another run holds it", "Error"))),
        NodeState.FAILED,
        "another run holds it, exit code 7",
    ),
    "killed": (
        (a_node(), a_job(condition=BACKOFF), a_pod(ended(137, "", "OOMKilled"))),
        NodeState.FAILED,
        "OOMKilled: the pod needed more memory than its limit, exit code 137",
    ),
    "image until the time limit": (
        (a_node(), a_job(condition=DEADLINE), a_pod(BACK_OFF)),
        NodeState.FAILED,
        "not measured within the time limit of 3600 s: the image hostbench:1 cannot be pulled: "
        "ImagePullBackOff: Back-off pulling image: no such host",
    ),
    "image, as an event alone": (
        (
            a_node(),
            a_job(condition=DEADLINE),
            a_warning("Failed", "Failed to pull image: denied", "Pod", f"{NAME}-abcde"),
            a_warning("DNSConfigForming", "three of them are used", "Pod", f"{NAME}-abcde"),
        ),
        NodeState.FAILED,
        "not measured within the time limit of 3600 s: the image hostbench:1 cannot be pulled: "
        "Failed: Failed to pull image: denied",
    ),
    "pod deleted": (
        (a_node(), a_job(condition=BACKOFF)),
        NodeState.FAILED,
        "BackoffLimitExceeded: Job has reached the specified backoff limit; its pod was deleted",
    ),
    "drained": (
        (a_node(unschedulable=True), a_job(condition=BACKOFF)),
        NodeState.FAILED,
        "; its pod was deleted, as kubectl drain does: the node is cordoned",
    ),
    "no document": (
        (a_node(), a_job(condition=("Complete", "", "")), a_pod(ended(0, "{"))),
        NodeState.FAILED,
        f"see kubectl logs {NAME}-abcde",
    ),
    "measured": (
        (a_node(), a_job(), a_pod(ended(0, json.dumps(DIGEST)))),
        NodeState.MEASURED,
        None,
    ),
    "measured, then the node went": (
        (a_job(annotations={"hostbench.dev/result": json.dumps(DIGEST)}),),
        NodeState.MEASURED,
        None,
    ),
    "second attempt": (
        (
            a_node(),
            a_job(condition=BACKOFF),
            a_job(2),
            a_pod(NO_CPU, job_name("c1", "n1", 2) + "-a"),
        ),
        NodeState.WAITING,
        "no room: Insufficient cpu",
    ),
}


@pytest.mark.parametrize("case", STATES)
def test_the_state_of_a_node_and_its_reason(case: str) -> None:
    objects, state, reason = STATES[case]
    for order in itertools.islice(itertools.permutations(objects), 24):
        status = status_of(*order)
        assert status.state is state
        if reason is None:
            assert status.reason is None
        else:
            assert status.reason is not None
            assert reason in status.reason
            assert "\n" not in status.reason
        assert (status.result is not None) == (state is NodeState.MEASURED)


def test_a_refusal_names_the_option_that_avoids_it() -> None:
    def reason(words: str, pod: Pod | None = None, **options: Any) -> str:
        objects = (a_node(), a_job()) + (() if pod is None else (pod,))
        warning = a_warning("FailedCreate", f"Error creating: {words}")
        status = status_of(*objects, warning, options=dataclasses.replace(OPTION, **options))
        return status.reason or ""

    assert reason(QUOTA).endswith(
        "limited: cpu=8; raise the quota, or use --exclusive none, which requests less"
    )
    assert reason(FORBIDDEN, lock="host").endswith(
        "hostPath volumes; allow hostPath in the namespace, or use --lock lease"
    )
    # A campaign without a hostPath has no option against it.
    assert reason(FORBIDDEN).endswith("hostPath volumes")
    assert reason("", a_pod(PULL)).endswith(
        "; check --image and the pull secrets of --service-account"
    )


def test_what_was_cancelled_has_failed_and_what_was_measured_stays() -> None:
    for objects in ((a_node(),), (a_node(), a_job(suspend=True)), (a_node(), a_job())):
        status = status_of(*objects, cancelled=True)
        assert (status.state, status.reason) == (NodeState.FAILED, "cancelled")
    measured = status_of(a_node(), a_job(), a_pod(ended(0, json.dumps(DIGEST))), cancelled=True)
    assert measured.state is NodeState.MEASURED


def test_of_two_pods_of_a_job_the_first_document_counts() -> None:
    # Not even Kubernetes promises that a Job starts one pod only.
    first = a_pod(ended(0, json.dumps(DIGEST)), f"{NAME}-zzzzz", NOW)
    second = a_pod(ended(0, json.dumps({**DIGEST, "digest": "sha256:1"})), f"{NAME}-aaaaa", LATER)
    failed = a_pod(ended(1, "no", "Error"), f"{NAME}-bbbbb", LATER)
    for order in itertools.permutations((first, second, failed)):
        status = status_of(a_node(), a_job(), *order)
        assert status.result is not None
        assert status.result.digest == "sha256:0"


@pytest.mark.parametrize(
    "change",
    [
        {"member": {**DIGEST["member"], "node": "../../n2"}},
        {"member": {**DIGEST["member"], "campaign": "c2"}},
        {"job": "../../n2"},
    ],
)
def test_a_pod_reports_for_its_own_node_alone(change: dict[str, object]) -> None:
    pod = a_pod(ended(0, json.dumps({**DIGEST, **change})))
    complete = a_job(condition=("Complete", "", ""))
    assert status_of(a_node(), complete, pod).state is NodeState.FAILED


class RememberedApi:
    """Remembers the Jobs that were made and begun."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def all(self, _what: object) -> list[object]:
        return []

    def each(self, given: Iterable[str], what: Callable[[Any, str], object]) -> None:
        for one in given:
            what(self, one)

    def create(self, job: Job) -> None:
        assert job.metadata is not None
        self.calls.append(("create", job.metadata.name or ""))

    def patch(self, _resource: object, name: str, *_patch: object, **_how: object) -> None:
        self.calls.append(("begin", name))


def test_a_job_that_somebody_deleted_is_made_and_begun_again() -> None:
    remembered = RememberedApi()
    progress = Progress(cast("Api", remembered), CAMPAIGN_1, OPTION)
    facts = Facts(nodes={"n1": node_facts(a_node())})
    suspended = job_facts(a_job(suspend=True))
    for _ in range(2):
        progress.advance(facts)
        facts.jobs[NAME] = suspended
        # Of somebody who uses the label: none of the campaign's nodes.
        facts.jobs["other"] = dataclasses.replace(suspended, name="other", node="")
        progress.advance(facts)
        progress.advance(facts)
        facts.jobs.clear()
    assert remembered.calls == 2 * [("create", NAME), ("begin", NAME)]


def test_a_node_that_takes_no_pods_holds_no_turn_of_the_others() -> None:
    remembered = RememberedApi()
    campaign = dataclasses.replace(CAMPAIGN_1, nodes=("n1", "n2"), at_most=1)
    progress = Progress(cast("Api", remembered), campaign, OPTION)
    cordoned = node_facts(a_node(unschedulable=True))
    one = job_facts(a_job(suspend=True))
    other = dataclasses.replace(one, name="c1-n2-1", node="n2")
    facts = Facts(
        nodes={"n1": cordoned, "n2": dataclasses.replace(cordoned, name="n2", cordoned=False)},
        jobs={one.name: one, other.name: other},
    )
    progress.advance(facts)
    assert remembered.calls == [("begin", "c1-n2-1")]
    facts.jobs[other.name] = dataclasses.replace(other, suspended=False, failed=("Failed", "no"))
    progress.advance(facts)
    assert remembered.calls == [("begin", "c1-n2-1"), ("begin", NAME)]


class RemovedApi:
    """A cluster whose campaigns another client has just removed."""

    namespace = "default"

    def call(self, _what: object) -> object:
        raise ApiError(status=Status(code=404, message='configmaps "c1" not found'))

    def all(self, _what: object) -> list[object]:
        return []


def test_a_campaign_that_another_client_removes_meanwhile_is_one_line() -> None:
    engine = object.__new__(KubernetesEngine)
    engine._api = cast("Api", RemovedApi())
    with pytest.raises(UsageError, match="there is no campaign 'c1' in namespace default"):
        engine._mark_cancelled("c1", "true")


class _SilentCluster(BaseHTTPRequestHandler):
    """Lists a node more each time, and says nothing to a watch, as a lost connection."""

    def do_GET(self) -> None:
        server = cast("_SilentServer", self.server)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        if "watch=" in self.path:
            server.ended.wait()
            return
        items: list[object] = []
        if "/nodes" in self.path:
            items = [{"metadata": {"name": f"n{at}"}} for at in range(next(server.lists))]
        answer = {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": items}
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_arguments: object) -> None:
        pass


class _SilentServer(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _SilentCluster)
        self.lists = itertools.count()
        self.ended = threading.Event()


def test_a_watch_that_lost_its_connection_begins_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _SilentServer() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        (tmp_path / "config").write_text(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\n"
            "contexts: [{name: a, context: {cluster: a, user: a}}]\nusers: [{name: a, user: {}}]\n"
            f"clusters: [{{name: a, cluster: {{server: 'http://127.0.0.1:{server.server_port}'}}}}]\n"
        )
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
        monkeypatch.setattr(watches, "QUIET_S", 0.3)
        try:
            with watches.Watches(Api("default"), "c1") as following:
                seen = itertools.islice(following.facts(0.1), 200)
                assert any(len(facts.nodes) >= 2 for facts in seen)
        finally:
            server.ended.set()
            server.shutdown()
            thread.join()


def test_what_others_wrote_at_a_node_is_no_system_of_the_gate() -> None:
    for text in ("[1]", "3", "no JSON", '"kernel"'):
        assert _read_system(text) == {}
    assert _read_system('{"kernel": 6}') == {"kernel": "6"}


def test_a_tolerated_taint_is_no_hindrance() -> None:
    tainted = a_node(taints=[{"key": "nvidia.com/gpu", "effect": "NoSchedule"}])
    for text in ("nvidia.com/gpu", "nvidia.com/gpu:NoSchedule", "nvidia.com/gpu="):
        options = dataclasses.replace(OPTION, tolerate=(text,))
        assert status_of(tainted, a_job(), options=options).reason is None
    other = dataclasses.replace(OPTION, tolerate=("nvidia.com/gpu=v100",))
    assert status_of(tainted, a_job(), options=other).reason is not None


def test_a_job_goes_to_one_node_and_passes_the_restricted_profile() -> None:
    resources = {"cpu": "63500m", "memory": "1000"}
    made = node_job(CAMPAIGN_1, OPTION, "n1", 1, resources, suspended=True).to_dict()
    assert made["spec"]["suspend"] is True
    assert (made["spec"]["backoffLimit"], made["spec"]["activeDeadlineSeconds"]) == (0, 3600)
    pod = made["spec"]["template"]["spec"]
    assert "nodeName" not in pod
    (term,) = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert term["matchFields"] == [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]
    (one,) = pod["containers"]
    assert one["resources"] == {"requests": resources, "limits": resources}
    assert one["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not any("hostPath" in volume for volume in pod["volumes"])
    assert pod["tolerations"] == [
        {
            "key": "hostbench.dev/campaign",
            "operator": "Equal",
            "value": "c1",
            "effect": "NoSchedule",
        }
    ]


def test_a_node_that_posts_has_the_key_in_a_file() -> None:
    options = dataclasses.replace(OPTION, post=PostTo("https://bench.example:8000", "poster"))
    made = node_job(CAMPAIGN_1, options, "n1", 1, {}, suspended=False, machine=None).to_dict()
    pod = made["spec"]["template"]["spec"]
    (one,) = pod["containers"]
    directory = "/run/secrets/hostbench"
    given = ["--post=https://bench.example:8000", f"--post-keys={directory}"]
    assert one["args"][-2:] == given
    (volume,) = [volume for volume in pod["volumes"] if "secret" in volume]
    assert volume["secret"] == {"secretName": "poster", "optional": True}
    mounts = [mount for mount in one["volumeMounts"] if mount["name"] == volume["name"]]
    assert mounts == [{"name": volume["name"], "mountPath": directory, "readOnly": True}]
    # Slurm's jobs get the directory.
    jobs = SlurmOptions(post=PostTo("https://bench.example:8000", "/shared/my keys"))
    words = shlex.split(script(CAMPAIGN_1, Path("/shared/c1"), jobs, "n1").partition("\nexec ")[2])
    assert words[-4:] == ["--post", "https://bench.example:8000", "--post-keys", "/shared/my keys"]
    assert "--post" not in script(CAMPAIGN_1, Path("/shared/c1"), SlurmOptions(), "n1")


def test_a_pod_knows_the_machine_of_its_node() -> None:
    """So that its document is of the same machine as one measured by hand there."""

    def machine(info: Mapping[str, str] | None, node: str = "n1", **changes: Any) -> str:
        status = {} if info is None else {"nodeInfo": {**UNKNOWN, **info}}
        facts = node_facts(decoded(Node, {"metadata": {"name": node}, "status": status}))
        campaign = dataclasses.replace(CAMPAIGN_1, **changes)
        made = node_job(campaign, OPTION, node, 1, {}, suspended=False, machine=facts.machine)
        (one,) = made.to_dict()["spec"]["template"]["spec"]["containers"]
        return str({each["name"]: each["value"] for each in one["env"]}["HOSTBENCH_MACHINE"])

    both = {"machineID": "3d1219c7", "systemUUID": "ec2a"}
    assert machine(both) == machine_hash("3d1219c7") == machine(both, "n2", name="c2")
    assert machine({"systemUUID": "ec2a"}) == machine_hash("ec2a")
    # Else by its name in its cluster.
    assert machine(None) == machine({}) == machine(None, name="c2")
    assert len({machine(None), machine(None, "n2"), machine(None, cluster="other")}) == 3


def test_the_options_of_a_campaign_reach_its_pods() -> None:
    options = PodOptions(
        image="i",
        queue="q",
        priority="low",
        lock="host",
        tolerate=("k=v:NoExecute",),
        annotations={"sidecar.istio.io/inject": "false"},
    )
    campaign = dataclasses.replace(CAMPAIGN_1, exclusive=Exclusive.NONE)
    made = node_job(campaign, options, "n1", 2, {"nvidia.com/gpu": "8"}, suspended=True).to_dict()
    assert made["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "q"
    assert made["metadata"]["name"] == job_name("c1", "n1", 2)
    template = made["spec"]["template"]
    assert template["metadata"]["annotations"]["sidecar.istio.io/inject"] == "false"
    pod = template["spec"]
    assert pod["priorityClassName"] == "low"
    assert pod["tolerations"][1] == {
        "key": "k",
        "operator": "Equal",
        "value": "v",
        "effect": "NoExecute",
    }
    assert {"path": "/run/lock", "type": "Directory"} in [
        one.get("hostPath") for one in pod["volumes"]
    ]
    # Other work may use what this leaves, so it is not limited; devices cannot be shared.
    assert pod["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "8"}
    kept = config_map(campaign, options).data
    assert kept is not None
    assert CAMPAIGN.validate_json(kept["campaign.json"]) == campaign
    assert OPTIONS.validate_json(kept["kubernetes.json"]) == options


def test_names_fit_into_a_label_and_differ_by_node() -> None:
    names = {job_name("c" * 30, f"node-{i}.{'x' * 200}", 1) for i in range(1000)}
    assert len(names) == 1000
    assert max(map(len, names)) <= 57  # and six more for a pod's suffix


@pytest.mark.parametrize(
    ("expression", "selector"),
    [
        ("n1", None),
        ("n1, n2.example.com", None),
        ("rack=r1", "rack=r1"),
        ("rack==r1,gpu!=no", "rack=r1,gpu!=no"),
        ("rack in (r1,r2), !gpu", "rack in (r1,r2),!gpu"),
        ("rack notin (r1),node-role.kubernetes.io/x", "rack notin (r1),node-role.kubernetes.io/x"),
    ],
)
def test_nodes_are_names_or_a_selector(expression: str, selector: str | None) -> None:
    from lightkube.core.selector import build_selector

    found = label_selector(expression)
    text = None if found is None else build_selector(found)
    assert text == selector


@pytest.mark.parametrize("expression", ["rack=r1,rack!=r2", "n1;n2", "rack in r1", "=", "", "a,,b"])
def test_what_is_neither_is_refused(expression: str) -> None:
    with pytest.raises(UsageError, match="--nodes"):
        label_selector(expression)


class ListedNodes:
    """A cluster that has these nodes, whatever their labels."""

    def __init__(self, *nodes: Node) -> None:
        self._nodes = nodes

    def all(self, what: Callable[[Any], Iterable[Any]]) -> list[Any]:
        return list(what(self))

    def list(self, *_kind: object, **_how: object) -> Iterable[Node]:
        return self._nodes


CORDONED = a_node(unschedulable=True)
TAINTED = a_node(taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])


@pytest.mark.parametrize(
    ("nodes", "expression", "kind", "words"),
    [
        ([CORDONED], "n2", UsageError, "--nodes 'n2' is no node of the cluster; kubectl get nodes"),
        ([], "rack=r9", UsageError, "--nodes 'rack=r9' matches no node; kubectl get nodes --show"),
        ([], None, UsageError, "the cluster has no node; kubectl get nodes --show-labels"),
        (
            [CORDONED],
            None,
            ResourceError,
            "the cluster has no node that takes pods: n1: the node is cordoned: kubectl uncordon "
            "n1 admits pods",
        ),
        (
            [TAINTED],
            "rack=r1",
            ResourceError,
            "--nodes 'rack=r1' matches no node that takes pods: n1: the node has the taint "
            "k=v:NoSchedule: --tolerate k passes it",
        ),
    ],
)
def test_a_campaign_without_a_node_says_why(
    nodes: Sequence[Node], expression: str | None, kind: type[HostbenchError], words: str
) -> None:
    with pytest.raises(kind) as refusal:
        chosen_nodes(cast("Api", ListedNodes(*nodes)), expression, OPTION)
    assert refusal.value.message.startswith(words)


def test_a_node_given_by_name_is_one_of_a_campaign_though_it_has_to_wait() -> None:
    assert chosen_nodes(cast("Api", ListedNodes(CORDONED)), "n1, n1", OPTION) == ("n1",)


def test_what_the_scheduler_counts_for_a_pod() -> None:
    def one(cpu: str, **more: str) -> dict[str, Any]:
        return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **more}

    pod = decoded(
        Pod,
        {
            "metadata": {"name": "p"},
            "spec": {
                "initContainers": [one("3"), one("500m", restartPolicy="Always")],
                "containers": [one("1"), one("250m")],
                "overhead": {"cpu": "10m"},
            },
        },
    )
    assert float(pod_requests(pod)["cpu"]) == 3.01


def test_the_scheduler_in_few_words() -> None:
    text = "0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) didn't match " \
        "Pod's node affinity/selector. no new claims to deallocate"  # fmt: skip
    assert scheduler_words(text).startswith("the node had untolerated taint")
    assert scheduler_words("something else") == "something else"


def test_each_right_is_one_rule_with_its_reason() -> None:
    assert all(rule.why for rule in ROLE)
    recipients: tuple[For, ...] = ("client", "pod")
    for to in recipients:
        objects = roles("r", to)
        assert len(re.findall(r'"verbs"', json.dumps(objects))) == len(
            [rule for rule in ROLE if rule.to == to]
        )
        text = json.dumps(objects)
        assert "*" not in text
        # The client makes those of its own campaigns, and reads none.
        assert not re.search(r'"secrets"\], "verbs": \[[^]]*"(get|list|watch)"', text)


CLUSTER = SingleConfig("here", Context("a"), Cluster(server="https://k8s:6443"))
ERRORS = {
    'nodes is forbidden: User "ann" cannot list resource "nodes" in API group "" at the cluster '
    "scope": (403, ResourceError, "ann may not list nodes: nodes is forbidden; hostbench fleet"),
    # Only pods make Leases.
    'leases.coordination.k8s.io is forbidden: User "system:serviceaccount:f:default" cannot create '
    'resource "leases" in API group "coordination.k8s.io" in the namespace "f"': (
        403,
        ResourceError,
        "system:serviceaccount:f:default may not create leases: leases.coordination.k8s.io is "
        "forbidden; hostbench fleet rights --pods prints the role that the account of "
        "--service-account needs",
    ),
    'jobs.batch "c1" is forbidden: exceeded quota: q': (
        403,
        ResourceError,
        'refuses: jobs.batch "c1" is forbidden: exceeded quota: q',
    ),
    "Unauthorized": (401, UnreachableError, "does not accept the credentials of context here"),
    'namespaces "fleet" not found': (404, UsageError, "kubectl create namespace"),
}


@pytest.mark.parametrize("message", ERRORS)
def test_what_a_cluster_answers_is_one_line(message: str) -> None:
    code, kind, words = ERRORS[message]
    error = ApiError(status=Status(code=code, message=message))
    found = described(error, CLUSTER)
    assert isinstance(found, kind)
    assert words in found.message
    with pytest.raises(kind):
        Patience(answered=True).pause_s(error, CLUSTER)


def test_a_cluster_that_answered_before_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = httpx2.ConnectError("refused")
    with pytest.raises(UnreachableError, match="https://k8s:6443 does not answer: refused"):
        Patience().pause_s(lost, CLUSTER)
    patience = Patience(answered=True)
    pauses = [patience.pause_s(lost, CLUSTER) for _ in range(8)]
    assert pauses == sorted(pauses)
    assert max(pauses) <= 5
    monkeypatch.setattr(api, "PATIENCE_S", -1.0)
    with pytest.raises(UnreachableError):
        patience.pause_s(lost, CLUSTER)


def test_a_node_that_computes_wrong_has_the_condition_corrupt() -> None:
    measured = DIGEST | {"exit_code": int(ExitCode.CORRUPT)}
    digest = TypeAdapter(Digest).validate_json(json.dumps(measured))
    found = qualification(NodeStatus("n1", NodeState.MEASURED, None, digest), None, NOW_S, None)
    assert (found.answer, found.reason) == ("False", "Corrupt")
    condition = _condition(found, GateNode("n1", {}, tainted=False))
    assert (condition["status"], condition["reason"]) == ("False", "Corrupt")
    assert "trust nothing this host computes" in condition["message"]
    assert digest.job in condition["message"]


def test_a_node_that_the_report_does_not_have_is_not_qualified() -> None:
    digest = TypeAdapter(Digest).validate_json(json.dumps(DIGEST))
    status = NodeStatus("n1", NodeState.MEASURED, None, digest)
    assert qualification(status, None, NOW_S, None).answer == "True"
    found = qualification(status, {}, NOW_S, None)
    assert (found.answer, found.reason) == ("Unknown", "NotJudged")


def test_a_node_whose_clock_is_ahead_does_not_stay_qualified_for_longer() -> None:
    digest = TypeAdapter(Digest).validate_json(json.dumps(DIGEST))
    status = NodeStatus("n1", NodeState.MEASURED, None, digest)
    assert qualification(status, None, NOW_S, None).measured_s == MEASURED_S
    ahead = qualification(status, None, MEASURED_S - 3600, None)
    assert ahead.measured_s == MEASURED_S - 3600
    # Later calls do not move it on.
    node = GateNode("n1", {}, tainted=False, qualified=ahead)
    assert qualification(status, None, MEASURED_S - 60, node).measured_s == MEASURED_S - 3600


@pytest.mark.parametrize(
    ("measured", "reason", "words"),
    [
        ({"kernel": "6.1", "machine": "m", "boot": "b"}, "Measured", "campaign c1"),
        ({"kernel": "6.0", "machine": "m", "boot": "b"}, "SystemChanged", "was 6.0 when it was"),
        ({"kernel": "6.1", "machine": "other", "boot": "b"}, "SystemChanged", "another machine"),
        (None, "SystemUnknown", "did not note its kernel"),
    ],
)
def test_what_was_measured_is_qualified_and_not_what_the_node_is_now(
    measured: dict[str, str] | None, reason: str, words: str
) -> None:
    digest = TypeAdapter(Digest).validate_python({**DIGEST, "system": measured})
    node = GateNode("n1", {"kernel": "6.1"}, False, MeasuredSystem("6.1", "m", "b"))
    found = qualification(NodeStatus("n1", NodeState.MEASURED, None, digest), None, NOW_S, node)
    assert (found.reason, found.answer == "True") == (reason, reason == "Measured")
    assert words in found.message


@pytest.mark.parametrize(
    ("measured", "reason"), [("b", None), ("a", "Rebooted"), (None, "BootUnknown")]
)
def test_a_boot_between_measurement_and_qualification_is_seen(
    measured: str | None, reason: str | None
) -> None:
    digest = TypeAdapter(Digest).validate_python(
        {**DIGEST, "system": {"kernel": "6.1", "boot": measured}}
    )
    now = {"kernel": "6.1", "boot": "of-node"}
    node = GateNode("n1", now, False, MeasuredSystem("6.1", None, "b"))
    found = qualification(NodeStatus("n1", NodeState.MEASURED, None, digest), None, NOW_S, node)
    later = dataclasses.replace(node, qualified=found, qualified_system=found.system)
    assert found.answer == "True" and outdated(later, NOW_S, None) is None
    due = outdated(later, NOW_S, None, reboots=True)
    assert (due and due.reason) == reason


@pytest.mark.parametrize(
    ("recorded", "reason", "words"),
    [
        (
            {"kernel": "6.1"},
            "BootUnknown",
            "when it was qualified (campaign c1, job j), so",
        ),
        ({"kernel": "6.1", "boot": "a"}, "Rebooted", "the node has booted since"),
        ({"kernel": "6.1", "boot": "b"}, None, ""),
    ],
)
def test_a_node_without_a_recorded_boot_may_have_booted(
    recorded: dict[str, str], reason: str | None, words: str
) -> None:
    found = Qualification("True", "Measured", "campaign c1, job j", MEASURED_S)
    now = {"kernel": "6.1", "boot": "b"}
    node = GateNode("n1", now, tainted=False, qualified=found, qualified_system=recorded)
    assert outdated(node, NOW_S, None) is None
    due = outdated(node, NOW_S, None, reboots=True)
    assert (due and due.reason) == reason
    assert due is None or (words in due.message and due.answer == "Unknown")
