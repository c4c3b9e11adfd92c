"""Campaigns on two real nodes of one host: real kubelets run `hostbench fleet measure`."""

import json
import math
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from lightkube.models.coordination_v1 import LeaseSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.coordination_v1 import Lease
from lightkube.resources.core_v1 import Pod, Secret

from hostbench.client.connection import CA_OF_POSTS, KEY_OF_POSTS
from hostbench.fleet.kubernetes.objects import (
    CAMPAIGN_LABEL,
    NODE_ANNOTATION,
    PAIR_ANNOTATION,
    node_hash,
)
from hostbench.fleet.kubernetes.rights import roles
from hostbench.model.result import ResultDocument
from hostbench.model.suite import Repeats, Suite, SuiteCase
from hostbench.model.summary import Verdict
from tests.client.canned_server import certificate
from tests.faults.command import end_of
from tests.fleet.campaigns import (
    LONG_BETWEEN,
    MOMENT,
    brief_quick,
    check_answer,
    net_suite,
    small_suite,
)
from tests.fleet.cluster import Cluster, name_of
from tests.fleet.jobs import is_running, left
from tests.fleet.real_fleet import NAMESPACE, Fleet, load
from tests.stack.orchestrator_process import API_KEY, OrchestratorProcess
from tests.stack.redis_server import RedisServer

# On two nodes: six jobs, and as many by hand. compare needs four with each figure.
CAMPAIGNS = ("one", "two", "three")
SUITE = small_suite(
    cases=(
        SuiteCase(workload="cpu.clock", params=dict(MOMENT)),
        SuiteCase(workload="cpu.fma", params=dict(MOMENT)),
        SuiteCase(workload="mem.read", params=MOMENT | {"size_bytes": 2**21}),
    ),
    # More where other work on this host disturbs some.
    repeats=Repeats(min_trials=4, max_trials=10),
)
LIMIT_S = 180
ACCOUNT, POST_KEYS = "hostbench-node", "hostbench-post"
NOT_WORSE = {"better", "same", "undecided"}
USABLE = {Verdict.CLEAN, Verdict.NOISY, Verdict.DISTURBED}


@pytest.fixture
def fleet(real_cluster: Cluster, nodes: tuple[str, str], tmp_path: Path) -> Iterator[Fleet]:
    suite = tmp_path / "small.yaml"
    suite.write_text(json.dumps(SUITE.model_dump(mode="json", exclude_defaults=True)))
    made = Fleet(real_cluster, nodes, tmp_path, str(suite), LIMIT_S)
    yield made
    made.clean()  # of a test that failed


@pytest.fixture
def orchestrator(real_cluster: Cluster, tmp_path: Path) -> Iterator[OrchestratorProcess]:
    """One that pods reach at the address of the machine in their network, by TLS."""
    address = real_cluster.address("1")
    with (
        RedisServer(tmp_path) as redis,
        OrchestratorProcess(
            tmp_path / "orchestrator",
            redis.url,
            tmp_path / "stored",
            address,
            **certificate(tmp_path, f"IP:{address}").of_server,
        ) as one,
    ):
        yield one


def check(documents: Mapping[tuple[str, str], ResultDocument], lock: str) -> None:
    """Documents are of the campaigns and nodes that they are there for, with usable figures."""
    for (name, node), document in documents.items():
        member = document.member
        assert member is not None
        assert (member.campaign, member.node) == (name, node)
        assert (member.engine, member.lock) == ("kubernetes", lock)
        assert document.host.hostname == node
        check_verdicts(document)


def check_verdicts(document: ResultDocument) -> None:
    verdicts = [case.verdict for case in document.cases]
    assert len(verdicts) == len(SUITE.cases) and USABLE.issuperset(verdicts), verdicts


def check_one_after_another(documents: Iterable[ResultDocument]) -> None:
    spans = sorted(
        (one.job.created_unix_s, one.job.finished_unix_s or math.inf) for one in documents
    )
    assert all(ended <= begun for (_, ended), (begun, _) in pairwise(spans)), spans


@pytest.mark.timeout(240)
def test_campaigns_measure_one_node_after_another_and_as_well_as_runs_by_hand(
    fleet: Fleet, tmp_path: Path
) -> None:
    by_hand = tmp_path / "by-hand"
    started = [fleet.start(name, "--lock=host") for name in CAMPAIGNS]
    # So that both take turns.
    fleet.cluster.wait_for(Pod, is_running, namespace=NAMESPACE)
    cpus_by_hand = sorted(os.sched_getaffinity(0))[:2] * len(CAMPAIGNS)
    started += [fleet.start_by_hand(by_hand, [cpu]) for cpu in cpus_by_hand]
    fleet.wait_for_ends(started)
    documents = fleet.documents(*CAMPAIGNS)
    check(documents, "host")
    references = [load(path) for path in by_hand.glob("*/result.json")]
    for document in references:
        check_verdicts(document)
    # Each node has a CPU of its own, on which as much was measured by hand.
    cpus = [documents[CAMPAIGNS[0], node].host.allowed_cpus for node in fleet.nodes]
    expected = sorted(cpus * len(CAMPAIGNS))
    assert [len(one) for one in cpus] == [1, 1] and cpus[0] != cpus[1]
    assert sorted(one.host.allowed_cpus for one in documents.values()) == expected
    assert sorted(one.host.allowed_cpus for one in references) == expected

    # Yet both nodes are one host, as its machine id says: kubelets report it, pods have none.
    assert {one.host.machine for one in documents.values()} == {references[0].host.machine}
    check_one_after_another([*documents.values(), *references])
    sides = [str(by_hand), ",".join(str(fleet.command.results / name) for name in CAMPAIGNS)]
    compared = fleet.command.run("compare", *sides, "--require=not-worse", "--json")
    assert compared.code == 0, compared.output + compared.errors
    (comparison,) = compared.document["comparisons"]
    *cpu_words, mem_word = (case["word"] for case in comparison["cases"])
    assert len(cpu_words) == len(SUITE.cases) - 1 and NOT_WORSE.issuperset(cpu_words), cpu_words
    # Beside other work, one of memory has no figure at all; one of the CPU has a delivered one.
    assert mem_word in NOT_WORSE or mem_word == "not comparable"

    # What is measured stays so, whichever client goes on with it; its document can be had again.
    path = fleet.path(CAMPAIGNS[0], fleet.nodes[0])
    content = path.read_bytes()
    path.unlink()
    fleet.client("run", f"--name={CAMPAIGNS[0]}")
    assert path.read_bytes() == content
    assert sorted(fleet.digests()) == sorted(one.digest or "" for one in documents.values())

    for name in CAMPAIGNS:
        fleet.client("clean", name)
    assert left(fleet.cluster, NAMESPACE) == []


@pytest.mark.timeout(120)
def test_a_pod_measures_every_case_of_quick(fleet: Fleet, tmp_path: Path) -> None:
    quick = tmp_path / "brief.yaml"
    quick.write_text(json.dumps(brief_quick().model_dump(mode="json", exclude_defaults=True)))
    one = Fleet(fleet.cluster, fleet.nodes[:1], tmp_path, str(quick), LIMIT_S)
    one.wait_for_ends([one.start("brief", "--lock=host")])
    cases = load(one.path("brief", one.nodes[0])).cases
    ended = {case.title: case.verdict for case in cases}
    assert not {Verdict.FAILED, Verdict.CORRUPT, None}.intersection(ended.values()), ended
    ran = {case.workload for case in cases if case.verdict is not Verdict.SKIPPED}
    # A host may lack an instruction set or a library, and so a workload of the CPU.
    expected = {case.workload for case in brief_quick().cases}
    assert {name for name in expected - ran if not name.startswith("cpu.")} == set(), ended
    one.client("clean", "brief")


def allow_leases(fleet: Fleet) -> None:
    """Let pods of an account hold the Leases of their nodes."""
    for role in roles(ACCOUNT, "pod"):
        fleet.kubectl("apply", "-f", "-", given=json.dumps(role))
    account = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": ACCOUNT},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": ACCOUNT},
        "subjects": [account],
    }
    made = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}}
    for one in (made, binding):
        fleet.kubectl("apply", "-f", "-", given=json.dumps(one))


@pytest.mark.timeout(240)
def test_pods_of_two_campaigns_on_a_node_wait_for_its_lease_and_one_posts(
    fleet: Fleet, orchestrator: OrchestratorProcess, tmp_path: Path
) -> None:
    allow_leases(fleet)
    # What an earlier try has left.
    fleet.kubectl("delete", "secret", POST_KEYS, "--ignore-not-found")
    fleet.kubectl(
        "create", "secret", "generic", POST_KEYS, f"--from-literal={KEY_OF_POSTS}={API_KEY}",
        f"--from-file={CA_OF_POSTS}={tmp_path / 'server.pem'}",
    )  # fmt: skip
    # Somebody else has the nodes until all pods run, which no request keeps from running at once.
    held = [f"hostbench-{node_hash(node)}" for node in fleet.nodes]
    for lease in held:
        made = Lease(metadata=ObjectMeta(name=lease), spec=LeaseSpec(holderIdentity="somebody"))
        fleet.cluster.client.create(made, namespace=NAMESPACE)
    names = ("left", "right")
    options = ("--lock=lease", f"--service-account={ACCOUNT}", "--exclusive=none")
    posts = (f"--post={orchestrator.url}", f"--post-keys={POST_KEYS}")
    clients = [fleet.start("left", *options, *posts), fleet.start("right", *options)]
    fleet.cluster.wait_for(
        Pod,
        lambda pods: sum(map(is_running, ({name: pod} for name, pod in pods.items()))) == 4,
        namespace=NAMESPACE,
    )
    for lease in held:
        fleet.cluster.client.delete(Lease, lease, namespace=NAMESPACE)
    fleet.wait_for_ends(clients)
    documents = fleet.documents(*names)
    check(documents, "lease")
    for node in fleet.nodes:
        check_one_after_another(documents[name, node] for name in names)
    # Each pod of the one has posted the document that its client collected.
    for node in fleet.nodes:
        document = documents["left", node]
        assert orchestrator.result(document.job.id)["digest"] == document.digest
    listed = orchestrator.client.get("/jobs").json()["jobs"]
    assert sorted(job["hosts"] for job in listed) == [[node] for node in fleet.nodes]
    # What a kubelet says of its kernel, machine and boot is what the documents have.
    printed = fleet.client("qualify", names[0])
    assert printed.count(": True: Measured: ") == len(fleet.nodes), printed
    assert "Rebooted" not in fleet.client("qualify", "--reboots")
    assert list(fleet.cluster.client.list(Lease, namespace=NAMESPACE)) == []
    for name in names:
        fleet.client("clean", name)
    assert left(fleet.cluster, NAMESPACE) == []


@pytest.mark.timeout(120)
def test_an_image_that_cannot_be_pulled_is_the_reason(fleet: Fleet) -> None:
    image = "hostbench.invalid/hostbench:1"  # RFC 6761: no such host, ever.
    (node, _) = fleet.nodes
    client = fleet.command.start(
        "fleet", "run", fleet.suite, "--name=pull", f"--namespace={NAMESPACE}", "--json",
        f"--nodes={node}", f"--image={image}", "--exclusive=none", "--time-limit=15",
    )  # fmt: skip
    ended = end_of(client, LIMIT_S)
    assert ended.code == 1, ended.errors
    why = f"the image {image} cannot be pulled: "
    assert f"{node}: waiting: {why}" in ended.errors
    (status,) = ended.document["nodes"]
    assert status["state"] == "failed"
    assert status["reason"].startswith(f"not measured within the time limit of 15 s: {why}")
    # In the words of the kubelet's event, which name the cause.
    assert (
        "hostbench.invalid" in status["reason"].removeprefix(why) and "lookup" in status["reason"]
    )
    assert status["reason"].endswith("check --image and the pull secrets of --service-account")
    fleet.client("clean", "pull")
    assert left(fleet.cluster, NAMESPACE) == []


@pytest.mark.timeout(240)
def test_two_nodes_measure_the_network_between_them(fleet: Fleet, tmp_path: Path) -> None:
    allow_leases(fleet)
    options = (
        f"--nodes={','.join(fleet.nodes)}", "--pairs=matchings", "--rounds=1", "--lock=lease",
        f"--service-account={ACCOUNT}", f"--namespace={NAMESPACE}", f"--time-limit={LIMIT_S}",
    )  # fmt: skip

    def start(name: str, suite: Suite) -> "subprocess.Popen[str]":
        path = tmp_path / f"{name}.yaml"
        path.write_text(json.dumps(suite.model_dump(mode="json", exclude_defaults=True)))
        return fleet.command.start("fleet", "run", str(path), f"--name={name}", *options)

    fleet.wait_for_ends([start("between", net_suite())])
    (path,) = (fleet.command.results / "between").glob("*/*/result.json")
    document = load(path)
    member = document.member
    assert member is not None and member.unit == path.parents[1].name
    assert sorted((member.node, member.far_node or "")) == sorted(fleet.nodes)
    # Each end saw the other one by the address of its pod.
    far = document.far_host
    assert far is not None and document.host.hostname == member.node
    assert far.inventory.hostname == member.far_node
    assert far.address != far.near_address and far.address.startswith("198.18.")
    (case,) = document.cases
    assert case.figure is not None and case.figure.value > 0, case
    key: Any = fleet.cluster.client.get(Secret, "hostbench-pairs-between", namespace=NAMESPACE)
    assert key.data["key"] not in fleet.kubectl("get", "jobs,pods", "-o", "yaml")
    check_answer(fleet.command, "results/between", case, fleet.nodes)

    # The far end of a pair dies in the middle of a trial: the pair says so, and is measured again.
    client = start("dies", LONG_BETWEEN)
    pods = fleet.cluster.wait_for(
        Pod, lambda pods: count_running(pods) == 2, {CAMPAIGN_LABEL: "dies"}, NAMESPACE
    )
    victim: Any = next(pod for pod in pods.values() if is_far(pod))
    fleet.cluster.client.delete(Pod, name_of(victim), namespace=NAMESPACE, grace_period=0)
    ended = end_of(client, LIMIT_S)
    # Its service or its connection is the first to end.
    assert ended.code == 1 and "failed: " in ended.errors, ended.errors
    assert "the far end " in ended.errors, ended.errors
    (status,) = json.loads(fleet.client("status", "dies", "--json"))["pairs"]
    assert fleet.client("retry", "dies").split() == [status["node"]]
    again = fleet.command.start("fleet", "status", "dies", "--follow", f"--namespace={NAMESPACE}")
    fleet.cluster.wait_for(
        Pod,
        lambda pods: count_running(pods) == 2 and victim.metadata.name not in pods,
        {CAMPAIGN_LABEL: "dies"},
        NAMESPACE,
    )
    fleet.client("cancel", "dies")
    assert end_of(again, LIMIT_S).code == 1
    for name in ("between", "dies"):
        fleet.client("clean", name)
    assert left(fleet.cluster, NAMESPACE) == []


def count_running(pods: Mapping[str, Pod]) -> int:
    return sum(is_running({name: pod}) for name, pod in pods.items())


def is_far(pod: Any) -> bool:
    notes = pod.metadata.annotations
    return bool(notes[PAIR_ANNOTATION].endswith(f"+{notes[NODE_ANNOTATION]}"))
