"""Campaigns on a real API server with real controllers and a real scheduler, on simulated nodes."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lightkube import ApiError
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.batch_v1 import Job
from lightkube.resources.coordination_v1 import Lease
from lightkube.resources.core_v1 import Node, Pod, PodStatus, ResourceQuota

from hostbench.base.errors import HostbenchError, UsageError
from hostbench.base.exitcode import ExitCode
from hostbench.base.interrupt import Interrupt, Interrupted
from hostbench.cli.app import invoke
from hostbench.fleet.campaign import Campaign, Digest, Exclusive, NodeState, NodeStatus
from hostbench.fleet.kubernetes import lease
from hostbench.fleet.kubernetes.api import delete_seen
from hostbench.fleet.kubernetes.engine import KubernetesEngine
from hostbench.fleet.kubernetes.objects import CAMPAIGN_LABEL, NODE_ANNOTATION, PodOptions
from hostbench.fleet.kubernetes.progress import Progress
from hostbench.fleet.kubernetes.rights import roles
from hostbench.fleet.node import DIGEST
from hostbench.model.result import CampaignMember
from hostbench.model.summary import Verdict
from tests.fleet.campaigns import small_suite
from tests.fleet.cluster import EXIT_CODE, MESSAGE, REPOSITORY, Cluster, name_of
from tests.fleet.decoded import decoded
from tests.fleet.jobs import is_running, left
from tests.fleet.simulated import REASON, add_namespace

KILLS = 20
PODS = PodOptions(image="hostbench:test")


def campaign(engine: KubernetesEngine, name: str, **changes: Any) -> Campaign:
    """A campaign on all nodes of its test that take pods."""
    plain: dict[str, Any] = {
        "name": name,
        "cluster": engine.cluster(),
        "suite": small_suite(),
        "exclusive": Exclusive.REQUESTS,
        "time_limit_s": 300.0,
    }
    if "nodes" not in changes:
        changes["nodes"] = engine.nodes(f"test={engine.namespace}")
    return Campaign(**(plain | changes))


def run(engine: KubernetesEngine, made: Campaign) -> dict[str, NodeStatus]:
    """Start a campaign and follow it to its end."""
    engine.start(made)
    return {status.node: status for status in engine.watch(made.name)}


def until(
    engine: KubernetesEngine, name: str, hold: Callable[[dict[str, NodeStatus]], bool]
) -> dict[str, NodeStatus]:
    """Follow a campaign until something holds of its nodes."""
    found: dict[str, NodeStatus] = {}
    for status in engine.watch(name):
        found[status.node] = status
        if hold(found):
            break
    return found


def states(found: dict[str, NodeStatus]) -> dict[str, NodeState]:
    return {node: status.state for node, status in found.items()}


def client(
    cluster: Cluster, tmp_path: Path, *arguments: str, kubeconfig: Path | None = None
) -> "subprocess.Popen[str]":
    """Start a real command line."""
    return subprocess.Popen(
        [sys.executable, "-m", "hostbench", "fleet", *arguments],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "PYTHONPATH": str(REPOSITORY),
            "KUBECONFIG": str(kubeconfig or cluster.kubeconfig),
            "HOSTBENCH_IMAGE": "hostbench:test",
        },
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.timeout(240)
def test_a_campaign_survives_what_happens_to_its_client_and_cluster(
    simulated: Cluster, tmp_path: Path
) -> None:
    namespace = add_namespace(simulated, "chaos")
    nodes = [f"chaos-{i:02}" for i in range(25)] + ["chaos-fails-1", "chaos-fails-2"]
    nodes += ["chaos-runs-evicted", "chaos-runs-gone", "chaos-runs-later"]
    simulated.add_nodes(nodes, labels={"test": "chaos"})
    suite = tmp_path / "small.yaml"
    suite.write_text("name: small\ncases: [{workload: cpu.clock}]\n")
    start = (
        "run",
        str(suite),
        "--name=chaos",
        f"--namespace={namespace}",
        "--nodes=test=chaos",
        "--at-most=8",
        "--exclusive=taint",
        "--no-documents",
        "--json",
    )
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    later_is_gone = False
    for kill in range(KILLS):
        process = client(simulated, tmp_path, *start)
        time.sleep(chance.uniform(0.2, 2.5))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if kill in {6, 13}:
            simulated.restart_apiserver()
        # Before its turn, which is the last one. On a busy machine the clients until then may have
        # been killed before they made the campaign, which then would not know of it.
        if (
            kill >= 10
            and not later_is_gone
            and list(simulated.client.list(Job, namespace=namespace))
        ):
            simulated.delete_node("chaos-runs-later")
            later_is_gone = True
    # Nodes that never end by themselves: one pod is evicted, the node of the other is deleted.
    process = client(simulated, tmp_path, *start)
    simulated.wait_for(
        Pod,
        lambda pods: {"chaos-runs-evicted", "chaos-runs-gone"} <= running_nodes(pods),
        labels={CAMPAIGN_LABEL: "chaos"},
        namespace=namespace,
    )
    for pod in simulated.client.list(Pod, namespace=namespace):
        if pod.spec is not None and pod.spec.nodeName == "chaos-runs-evicted":
            evicted = {"phase": "Failed", "reason": "Evicted", "message": "low on memory"}
            simulated.client.patch(
                PodStatus, name_of(pod), {"status": evicted}, namespace=namespace
            )
    simulated.delete_node("chaos-runs-gone")
    if not later_is_gone:
        simulated.delete_node("chaos-runs-later")
    simulated.restart_apiserver()
    out, err = process.communicate()
    assert process.returncode == 1, (seed, err)
    found = {one["node"]: one for one in json.loads(out)["nodes"]}
    assert sorted(found) == sorted(nodes), seed
    counts = Counter(one["state"] for one in found.values())
    assert counts == {"measured": 25, "failed": 3, "missing": 2}, (seed, out)
    for node in ("chaos-fails-1", "chaos-fails-2"):
        assert found[node]["reason"] == f"{REASON}, exit code 7"
    assert found["chaos-runs-evicted"]["reason"] == "Evicted: low on memory"
    for node in ("chaos-runs-gone", "chaos-runs-later"):
        assert found[node]["reason"] == "the cluster has no such node any more"
    assert {one["result"]["member"]["node"] for one in found.values() if one["result"]} == {
        node for node in nodes if "fails" not in node and "runs" not in node
    }
    jobs = Counter(
        (job.metadata.annotations or {})[NODE_ANNOTATION]
        for job in simulated.client.list(Job, namespace=namespace)
        if job.metadata is not None
    )
    assert set(jobs.values()) == {1}, seed
    done = client(simulated, tmp_path, "clean", "chaos", f"--namespace={namespace}")
    assert done.communicate()[1] == ""
    assert left(simulated, namespace) == []


def running_nodes(pods: Any) -> set[str]:
    return {
        pod.spec.nodeName
        for pod in pods.values()
        if pod.spec is not None and pod.status is not None and pod.status.phase == "Running"
    }


def test_each_refusal_of_the_cluster_is_a_reason(simulated: Cluster) -> None:
    simulated.add_nodes(["why-cordoned", "why-tainted", "why-busy"])
    simulated.cordon("why-cordoned")
    simulated.taint("why-tainted", "somebody.else/owns")
    namespace = add_namespace(simulated, "why")
    busy = {
        "metadata": {"name": "busy", "namespace": namespace},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": "why-busy"},
            "containers": [{"name": "one", "image": "x", "resources": {"requests": {"cpu": "1"}}}],
        },
    }
    simulated.client.create(decoded(Pod, busy))
    simulated.wait_for(Pod, lambda pods: "why-busy" in running_nodes(pods), namespace=namespace)
    engine = KubernetesEngine(namespace, PODS)
    nodes = ("why-cordoned", "why-tainted", "why-busy")
    found = run(engine, campaign(engine, "why", nodes=nodes, time_limit_s=6.0))
    assert set(states(found).values()) == {NodeState.FAILED}
    for node, reason in {
        "why-cordoned": "the node was unschedulable",
        "why-tainted": "untolerated taint",
        "why-busy": "no room: Insufficient cpu",
    }.items():
        text = found[node].reason or ""
        assert text.startswith("not measured within the time limit of 6 s: "), text
        assert reason in text
    engine.clean("why")

    quota = {"metadata": {"name": "q", "namespace": namespace}, "spec": {"hard": {"pods": "0"}}}
    simulated.client.create(decoded(ResourceQuota, quota))
    strict = add_namespace(
        simulated, "strict", {"pod-security.kubernetes.io/enforce": "restricted"}
    )
    by_host = PodOptions(image="hostbench:test", lock="host")
    for space, options, words, remedy in (
        (namespace, PODS, "exceeded quota: q, requested: pods=1", "use --exclusive none, which"),
        (strict, by_host, 'violates PodSecurity "restricted:latest"', "or use --lock lease"),
    ):
        engine = KubernetesEngine(space, options)
        made = campaign(engine, "refused", nodes=("why-busy",))
        engine.start(made)
        assert remedy in next(
            reason for reason in (str(one.reason) for one in engine.watch("refused"))
            if words in reason
        )  # fmt: skip
        engine.cancel("refused")
        assert run_states(engine, "refused") == {"why-busy": NodeState.FAILED}
        engine.clean("refused")
        assert left(simulated, space) == []
    # A pod without a hostPath passes the strictest profile.
    simulated.client.delete(Pod, "busy", namespace=namespace)
    engine = KubernetesEngine(strict, PODS)
    made = campaign(engine, "passes", nodes=("why-busy",))
    assert states(run(engine, made)) == {"why-busy": NodeState.MEASURED}
    engine.clean("passes")


def run_states(engine: KubernetesEngine, name: str) -> dict[str, NodeState]:
    return {status.node: status.state for status in engine.status(name)}


def test_a_node_that_is_drained_while_it_measures_has_failed(simulated: Cluster) -> None:
    namespace = add_namespace(simulated, "drain")
    simulated.add_nodes(["drain-runs"], labels={"test": "drain"})
    engine = KubernetesEngine(namespace, PODS)
    engine.start(campaign(engine, "drain"))
    until(engine, "drain", lambda all_: NodeState.RUNNING in states(all_).values())
    simulated.kubectl("drain", "drain-runs", "--delete-emptydir-data", "--ignore-daemonsets")
    (*_, last) = engine.watch("drain")
    assert last.state is NodeState.FAILED
    assert last.reason is not None
    assert last.reason.endswith("its pod was deleted, as kubectl drain does: the node is cordoned")
    # Back in service it is measured again.
    simulated.cordon("drain-runs", on=False)
    assert engine.retry("drain") == ("drain-runs",)
    until(engine, "drain", lambda all_: NodeState.RUNNING in states(all_).values())
    engine.clean("drain")
    assert left(simulated, namespace) == []


def test_of_a_job_that_was_started_twice_the_first_document_counts(simulated: Cluster) -> None:
    namespace = add_namespace(simulated, "twice")
    simulated.add_nodes(["twice-runs"], labels={"test": "twice"})
    engine = KubernetesEngine(namespace, PODS)
    engine.start(campaign(engine, "twice"))
    # No client sees the first pod before there are two.
    pods = simulated.wait_for(Pod, is_running, namespace=namespace)
    (first,) = pods.values()
    ends = {"annotations": {EXIT_CODE: "0", MESSAGE: digest_of("twice", "twice-runs", "first")}}
    simulated.client.patch(Pod, name_of(first), {"metadata": ends}, namespace=namespace)
    simulated.wait_for(Job, lambda jobs: all(map(is_complete, jobs.values())), namespace=namespace)
    time.sleep(1.1)  # Kubernetes counts the age of objects in seconds.
    made = first.to_dict()
    metadata = made["metadata"]
    second = {
        "name": f"{name_of(first).rpartition('-')[0]}-00000",
        "namespace": namespace,
        "labels": metadata["labels"],
        "ownerReferences": metadata["ownerReferences"],
        "annotations": metadata["annotations"]
        | {EXIT_CODE: "0", MESSAGE: digest_of("twice", "twice-runs", "second")},
    }
    simulated.client.create(decoded(Pod, {"metadata": second, "spec": made["spec"]}))
    simulated.wait_for(
        Pod,
        lambda pods: len(pods) == 2 and all(map(has_succeeded, pods.values())),
        namespace=namespace,
    )
    for one in (*engine.watch("twice"), *KubernetesEngine(namespace, PODS).status("twice")):
        assert one.state is NodeState.MEASURED
        assert one.result is not None and one.result.digest == "sha256:first"
    engine.clean("twice")
    assert left(simulated, namespace) == []


def digest_of(campaign: str, node: str, digest: str) -> str:
    """What a pod of a campaign says that has measured its node."""
    member = CampaignMember(
        campaign=campaign, engine="kubernetes", cluster="uid", node=node, lock="lease"
    )
    made = Digest(
        "20261126T120000Z-small-0001", f"sha256:{digest}", ExitCode.OK, {Verdict.CLEAN: 1}, member
    )
    return DIGEST.dump_json(made).decode()


def has_succeeded(pod: Pod) -> bool:
    return pod.status is not None and pod.status.phase == "Succeeded"


def is_complete(job: Job) -> bool:
    conditions = (job.status and job.status.conditions) or ()
    return any((one.type, one.status) == ("Complete", "True") for one in conditions)


def test_at_most_so_many_nodes_at_once_or_when_a_queue_lets_them(simulated: Cluster) -> None:
    namespace = add_namespace(simulated, "turns")
    simulated.add_nodes(["turn-runs-1", "turn-runs-2", "turn-runs-3"], labels={"test": "turns"})
    engine = KubernetesEngine(namespace, PODS)
    engine.start(campaign(engine, "turns", at_most=2))
    found = until(
        engine,
        "turns",
        lambda all_: Counter(states(all_).values()) == {NodeState.RUNNING: 2, NodeState.WAITING: 1},
    )
    (waiting,) = [one for one in found.values() if one.state is NodeState.WAITING]
    assert waiting.reason == "its turn comes: at most 2 nodes at once"
    engine.clean("turns")

    queued = KubernetesEngine(namespace, PodOptions(image="hostbench:test", queue="shared"))
    queued.start(campaign(queued, "queued"))
    found = until(queued, "queued", lambda all_: len(all_) == 3)
    assert {one.reason for one in found.values()} == {"queued by Kueue in shared"}
    (job, *_) = simulated.client.list(Job, namespace=namespace, labels={CAMPAIGN_LABEL: "queued"})
    simulated.client.patch(Job, name_of(job), {"spec": {"suspend": False}}, namespace=namespace)
    until(queued, "queued", lambda all_: NodeState.RUNNING in states(all_).values())
    assert Counter(run_states(queued, "queued").values())[NodeState.WAITING] == 2
    queued.clean("queued")
    assert left(simulated, namespace) == []


def test_failed_nodes_are_measured_again_and_a_cancelled_campaign_goes_on(
    simulated: Cluster,
) -> None:
    namespace = add_namespace(simulated, "again")
    simulated.add_nodes(["again-1", "again-fails", "again-runs"], labels={"test": "again"})
    engine = KubernetesEngine(namespace, PODS)
    made = campaign(engine, "again")
    engine.start(made)
    ends = {"again-1": NodeState.MEASURED, "again-fails": NodeState.FAILED}
    running = ends | {"again-runs": NodeState.RUNNING}
    until(engine, "again", lambda all_: states(all_) == running)
    # Another client follows the campaign meanwhile.
    seen: list[tuple[str, NodeState]] = []
    follows = threading.Event()

    def follow() -> None:
        for status in KubernetesEngine(namespace, PODS).watch("again"):
            seen.append((status.node, status.state))
            if len(seen) == len(ends) + 1:
                follows.set()

    other = threading.Thread(target=follow)
    other.start()
    assert follows.wait(60)
    assert engine.retry("again") == ("again-fails",)
    until(engine, "again", lambda all_: states(all_) == running)
    attempts = [
        (job.metadata.labels or {})["hostbench.dev/attempt"]
        for job in simulated.client.list(Job, namespace=namespace)
        if job.metadata is not None
    ]
    assert sorted(attempts) == ["1", "1", "1", "2"]

    engine.cancel("again")
    assert run_states(engine, "again") == ends | {"again-runs": NodeState.FAILED}
    other.join()
    retried = [state for node, state in seen if node == "again-fails"]
    assert retried[0] is retried[-1] is NodeState.FAILED
    assert {NodeState.WAITING, NodeState.RUNNING}.intersection(retried), retried
    with pytest.raises(UsageError, match="was cancelled; hostbench fleet retry again"):
        engine.start(made)
    assert engine.retry("again") == ("again-fails", "again-runs")
    until(engine, "again", lambda all_: states(all_) == running)
    # The document of a measured node outlives the node and its pod.
    simulated.delete_node("again-1")
    simulated.wait_for(Node, lambda nodes: "again-1" not in nodes)
    assert run_states(engine, "again")["again-1"] is NodeState.MEASURED
    with pytest.raises(UsageError, match="begun with other options"):
        engine.start(campaign(engine, "again", nodes=("again-runs",)))
    with pytest.raises(UsageError, match="did you mean 'again'"):
        engine.campaign("agan")
    begun_with = KubernetesEngine(namespace, None).begun_with("again")
    assert (begun_with["image"], begun_with["queue"]) == ("hostbench:test", None)
    engine.clean("again")
    assert left(simulated, namespace) == []


def test_a_follower_takes_back_what_it_began_while_another_client_cancelled(
    simulated: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace = add_namespace(simulated, "meanwhile")
    simulated.add_nodes(["meanwhile-runs"], labels={"test": "meanwhile"})
    engine, advance = KubernetesEngine(namespace, PODS), Progress.advance
    with monkeypatch.context() as without_jobs:
        without_jobs.setattr(Progress, "advance", lambda *_: None)
        engine.start(campaign(engine, "meanwhile"))

    def too_late(progress: Progress, *arguments: Any) -> None:
        KubernetesEngine(namespace, PODS).cancel("meanwhile")
        advance(progress, *arguments)

    monkeypatch.setattr(Progress, "advance", too_late)
    (*_, last) = engine.watch("meanwhile")
    assert (last.state, last.reason) == (NodeState.FAILED, "cancelled")
    engine.clean("meanwhile")
    assert left(simulated, namespace) == []


def test_the_listed_rights_are_enough_and_the_first_missing_one_is_named(
    simulated: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace = add_namespace(simulated, "least")
    simulated.add_nodes(["least-1", "least-fails"], labels={"test": "least"})
    kubeconfig = tmp_path / "kubeconfig"
    simulated.make_kubeconfig(kubeconfig, "ann", group="users")
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    engine = KubernetesEngine(namespace, PODS)
    with pytest.raises(HostbenchError, match="ann may not list nodes") as refusal:
        engine.nodes(None)
    assert "hostbench fleet rights" in refusal.value.message
    for role in roles("fleet"):
        simulated.kubectl("apply", f"--namespace={namespace}", "-f", "-", given=json.dumps(role))
    simulated.kubectl("create", "clusterrolebinding", "fleet", "--clusterrole=fleet", "--user=ann")
    simulated.kubectl(
        "create", "rolebinding", "fleet", "--role=fleet", "--user=ann", f"--namespace={namespace}"
    )
    while True:  # The API server learns of its roles a moment later.
        with contextlib.suppress(HostbenchError):
            assert engine.campaigns() == ()
            break
    # Taints of others stay as they are.
    simulated.taint("least-1", "somebody.else/prefers", effect="PreferNoSchedule")
    made = campaign(engine, "least", exclusive=Exclusive.TAINT, at_most=1)
    expected = {"least-1": NodeState.MEASURED, "least-fails": NodeState.FAILED}
    assert states(run(engine, made)) == expected
    assert engine.retry("least") == ("least-fails",)
    engine.cancel("least")
    assert engine.campaigns() == ("least",)
    engine.clean("least")
    simulated.untaint("least-1", "somebody.else/prefers")
    assert left(simulated, namespace) == []


def test_a_cluster_that_is_not_there_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with pytest.raises(HostbenchError, match="no cluster is configured"):
        invoke(["fleet", "list"])
    kubeconfig.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\n"
        "contexts: [{name: a, context: {cluster: a, user: a}}]\nusers: [{name: a, user: {}}]\n"
        "clusters: [{name: a, cluster: {server: 'http://127.0.0.1:9'}}]\n"
    )
    with pytest.raises(HostbenchError, match=r"127\.0\.0\.1:9 does not answer"):
        invoke(["fleet", "list"])


def test_a_lease_has_one_holder_and_a_dead_one_loses_it(
    simulated: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"LEASE_S": 2.0, "RENEW_S": 0.3, "LOOK_S": 0.1}.items():
        monkeypatch.setattr(lease, name, value)
    interrupt = Interrupt()
    held: list[str] = []
    overlaps: list[list[str]] = []
    lines: list[str] = []

    def hold(campaign: str) -> None:
        for _ in range(3):
            with lease.held_lease(campaign, "n1", interrupt, lines.append):
                held.append(campaign)
                overlaps.extend([list(held)] if len(held) > 1 else [])
                time.sleep(0.1)
                held.remove(campaign)

    threads = [threading.Thread(target=hold, args=(f"c{i}",)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert overlaps == []
    assert lines and all("which has the node" in text for text in lines)
    assert list(simulated.client.list(Lease, namespace="default")) == []

    # One whose pod was killed is taken when it was not renewed for its time.
    killed = lease._NodeLease("killed", "n1")
    killed.take(interrupt, lambda _text: None)
    since_s = time.monotonic()
    with lease.held_lease("next", "n1", interrupt, lines.append):
        assert time.monotonic() - since_s >= 2.0
        # The killed one was only held up: it has lost the lease, and must end.
        theirs = Interrupt()
        killed.renew_until(threading.Event(), theirs)
        assert theirs.signum is not None
        killed.release()
        (there,) = simulated.client.list(Lease, namespace="default")
        assert there.spec is not None and there.metadata is not None and there.metadata.name
        assert (there.spec.holderIdentity or "").startswith("next/")

    # Who cannot renew it ends with the reason, not as if a user had stopped it.
    theirs, name = Interrupt(), there.metadata.name

    def measure() -> None:
        with lease.held_lease("next", "n1", theirs, lines.append):
            simulated.client.delete(Lease, name)
            theirs.wait(20)

    with pytest.raises(HostbenchError, match="Lease of node n1 could not be renewed"):
        measure()
    theirs.close()
    interrupt.close()


class Silence:
    """An API server that takes connections and calls, and answers nothing for some seconds."""

    def __init__(self, cluster: Cluster) -> None:
        self._pid = cluster.pid("apiserver")
        self._ends: list[threading.Timer] = []

    def begin(self, seconds: float) -> None:
        os.kill(self._pid, signal.SIGSTOP)
        self._ends.append(threading.Timer(seconds, os.kill, (self._pid, signal.SIGCONT)))
        self._ends[-1].start()

    def wait(self) -> None:
        """Wait for its end."""
        for one in self._ends:
            one.join()


def leases(cluster: Cluster) -> list[Lease]:
    return list(cluster.client.list(Lease, namespace="default"))


def test_an_interrupt_leaves_no_lease_while_the_api_server_is_slow(
    simulated: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"LEASE_S": 4.0, "RENEW_S": 0.3, "LOOK_S": 0.1, "ANSWER_S": 0.5}.items():
        monkeypatch.setattr(lease, name, value)
    silence, interrupt = Silence(simulated), Interrupt()

    # While the call that makes the lease is on its way.
    waiting = lease._NodeLease("slow", "n1")
    waiting._api.call(lambda client: client.list(Lease))  # The connection is there.
    silence.begin(2.0)
    threading.Timer(0.2, interrupt.trip).start()
    since_s = time.monotonic()
    with pytest.raises(Interrupted):
        waiting.take(interrupt, print)
    assert time.monotonic() - since_s < 1.5, "the API server was waited for"
    waiting.release()
    silence.wait()
    assert leases(simulated) == []
    interrupt.close()

    def measure(seconds: float) -> float:
        """Hold the lease, and be interrupted while the API server is silent; return how long that
        took."""
        interrupt = Interrupt()
        with pytest.raises(Interrupted):  # noqa: PT012, SIM117
            with lease.held_lease("slow", "n1", interrupt, print):
                silence.begin(seconds)
                since_s = time.monotonic()
                interrupt.trip()
                interrupt.check()
        interrupt.close()
        return time.monotonic() - since_s

    measure(2.0)
    silence.wait()
    assert leases(simulated) == []

    # An API server that stays silent is given up: the lease runs out, and the next one has it.
    monkeypatch.setattr(lease, "RELEASE_S", 1.0)
    assert measure(5.0) < 3.0
    silence.wait()
    (left_over,) = leases(simulated)
    interrupt = Interrupt()
    with lease.held_lease("next", "n1", interrupt, print):
        (there,) = leases(simulated)
        assert there.spec is not None and (there.spec.holderIdentity or "").startswith("next/")
        # What has changed since it was seen is not deleted.
        with pytest.raises(ApiError, match="ResourceVersion in the precondition"):
            delete_seen(simulated.client, left_over)
        assert len(leases(simulated)) == 1
    # Nor is another one of its name.
    assert there.metadata is not None
    metadata = ObjectMeta(name=there.metadata.name, namespace="default")
    simulated.client.create(Lease(metadata=metadata, spec=there.spec))
    with pytest.raises(ApiError, match="UID in the precondition"):
        delete_seen(simulated.client, there)
    (other,) = leases(simulated)
    delete_seen(simulated.client, other)
    assert leases(simulated) == []
    interrupt.close()
