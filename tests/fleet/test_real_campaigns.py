"""Campaigns on two real nodes of one host: real kubelets run `hostbench fleet measure`."""

import json
import math
import os
import subprocess
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from lightkube.models.coordination_v1 import LeaseSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.batch_v1 import Job
from lightkube.resources.coordination_v1 import Lease
from lightkube.resources.core_v1 import Pod

from hostbench.fleet.kubernetes.objects import CONTAINER, RESULT_ANNOTATION, node_hash
from hostbench.fleet.kubernetes.rights import roles
from hostbench.fleet.node import DIGEST
from hostbench.host.lock import LOCK_NAME
from hostbench.model.result import ResultDocument
from hostbench.model.suite import Repeats, SuiteCase
from hostbench.model.summary import Verdict
from hostbench.results.sealed import read_document
from tests.faults.command import Command, end_of
from tests.fleet.campaigns import MOMENT, small_suite
from tests.fleet.cluster import Cluster, name_of
from tests.fleet.image import CHECKOUT_PATHS
from tests.fleet.image import NAME as IMAGE
from tests.fleet.jobs import is_running, left
from tests.fleet.policy import change_pods
from tests.fleet.real_node import lock_directory
from tests.fleet.simulated import add_namespace

NAMESPACE = "measured"
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
LIMIT_S = 120
ACCOUNT = "hostbench-node"
NOT_WORSE = {"better", "same", "undecided"}
USABLE = {Verdict.CLEAN, Verdict.NOISY, Verdict.DISTURBED}


def mount_checkout(cluster: Cluster) -> None:
    """Let the pods of campaigns see the host's programs and this checkout, read-only: an image that
    has all of it would take minutes."""
    volumes, mounts = [], []
    for number, path in enumerate(("/usr", *CHECKOUT_PATHS)):
        name = f"'host-{number}'"
        host_path = f"Object.spec.volumes.hostPath{{path: '{path}'}}"
        volumes.append(f"Object.spec.volumes{{name: {name}, hostPath: {host_path}}}")
        mounts.append(
            "Object.spec.containers.volumeMounts"
            f"{{name: {name}, mountPath: '{path}', readOnly: true}}"
        )
    container = (
        f"Object.spec.containers{{name: '{CONTAINER}', volumeMounts: [{', '.join(mounts)}]}}"
    )
    spec = f"Object.spec{{volumes: [{', '.join(volumes)}], containers: [{container}]}}"
    change_pods(
        cluster,
        "checkout-of-campaigns",
        f"Object{{spec: {spec}}}",
        lambda pod: bool(pod.spec and pod.spec.volumes),
        namespace=NAMESPACE,
        condition=f"request.namespace == '{NAMESPACE}'",
    )


class Fleet:
    """Clients of campaigns, and runs by hand under the same lock."""

    def __init__(self, cluster: Cluster, nodes: tuple[str, str], directory: Path) -> None:
        self.cluster, self.nodes = cluster, nodes
        self.suite = directory / "small.yaml"
        self.suite.write_text(json.dumps(SUITE.model_dump(mode="json", exclude_defaults=True)))
        self.command = Command(
            directory,
            HOSTBENCH_LOCK=str(lock_directory(cluster) / LOCK_NAME),
            HOSTBENCH_IMAGE=IMAGE,
            KUBECONFIG=str(cluster.kubeconfig),
            NO_PROXY="127.0.0.1",
        )

    def client(self, command: str, *arguments: str) -> str:
        """What a client prints that has found everything in order."""
        ended = self.command.run(
            "fleet", command, *arguments, f"--namespace={NAMESPACE}", timeout_s=LIMIT_S
        )
        assert ended.code == 0, ended.errors
        return ended.output

    def start(self, name: str, *arguments: str) -> "subprocess.Popen[str]":
        """Start a client that runs a campaign on both nodes."""
        return self.command.start(
            "fleet", "run", str(self.suite), f"--name={name}", f"--namespace={NAMESPACE}",
            f"--nodes={','.join(self.nodes)}", f"--time-limit={LIMIT_S}", *arguments,
        )  # fmt: skip

    def start_by_hand(self, results: Path, cpu: int) -> "subprocess.Popen[str]":
        """Start to measure the suite on one CPU, as soon as the host is free."""
        return self.command.start(
            "run", str(self.suite), f"--results={results}", f"--wait={LIMIT_S}",
            prefix=("taskset", "-c", str(cpu)),
        )  # fmt: skip

    def wait_for_ends(self, started: Iterable["subprocess.Popen[str]"]) -> None:
        """Wait for the ends of commands that find everything in order."""
        for process in started:
            ended = end_of(process, LIMIT_S)
            assert ended.code == 0, f"{ended.errors}\n{self.last_lines()}"

    def last_lines(self) -> str:
        """What each pod wrote last."""
        names = [name_of(pod) for pod in self.cluster.client.list(Pod, namespace=NAMESPACE)]
        return "\n".join(f"{name}:\n{self.kubectl('logs', '--tail=40', name)}" for name in names)

    def kubectl(self, *arguments: str, given: str | None = None) -> str:
        return self.cluster.kubectl(*arguments, f"--namespace={NAMESPACE}", given=given)

    def path(self, name: str, node: str) -> Path:
        """Of the only document that a campaign has of a node."""
        (path,) = (self.command.results / name / node).glob("*/result.json")
        return path

    def documents(self, *names: str) -> dict[tuple[str, str], ResultDocument]:
        """Those of campaigns, by campaign and node."""
        return {(name, node): load(self.path(name, node)) for name in names for node in self.nodes}

    def digests(self) -> list[str]:
        """What the Jobs of all campaigns keep of their documents."""
        jobs: Any = self.cluster.client.list(Job, namespace=NAMESPACE)
        kept = [job.metadata.annotations[RESULT_ANNOTATION] for job in jobs]
        return [DIGEST.validate_json(one).digest for one in kept]


def load(path: Path) -> ResultDocument:
    """The document in a file, which nobody has changed."""
    return read_document(path.read_bytes(), str(path), "")


@pytest.fixture
def fleet(real_cluster: Cluster, nodes: tuple[str, str], tmp_path: Path) -> Fleet:
    add_namespace(real_cluster, NAMESPACE)
    mount_checkout(real_cluster)
    return Fleet(real_cluster, nodes, tmp_path)


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
    started += [fleet.start_by_hand(by_hand, cpu) for cpu in cpus_by_hand]
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

    # What is measured stays so, whoever goes on with it, and its document can be had again.
    path = fleet.path(CAMPAIGNS[0], fleet.nodes[0])
    content = path.read_bytes()
    path.unlink()
    fleet.client("run", f"--name={CAMPAIGNS[0]}")
    assert path.read_bytes() == content
    assert sorted(fleet.digests()) == sorted(one.digest or "" for one in documents.values())

    for name in CAMPAIGNS:
        fleet.client("clean", name)
    assert left(fleet.cluster, NAMESPACE) == []


@pytest.mark.timeout(240)
def test_pods_of_two_campaigns_on_a_node_wait_for_its_lease(fleet: Fleet) -> None:
    for role in roles(ACCOUNT, "pod"):
        fleet.kubectl("apply", "-f", "-", given=json.dumps(role))
    fleet.kubectl("create", "serviceaccount", ACCOUNT)
    fleet.kubectl(
        "create", "rolebinding", ACCOUNT, f"--role={ACCOUNT}",
        f"--serviceaccount={NAMESPACE}:{ACCOUNT}",
    )  # fmt: skip
    # Somebody else has the nodes until all pods run, which no request keeps from running at once.
    held = [f"hostbench-{node_hash(node)}" for node in fleet.nodes]
    for lease in held:
        made = Lease(metadata=ObjectMeta(name=lease), spec=LeaseSpec(holderIdentity="somebody"))
        fleet.cluster.client.create(made, namespace=NAMESPACE)
    names = ("left", "right")
    options = ("--lock=lease", f"--service-account={ACCOUNT}", "--exclusive=none")
    clients = [fleet.start(name, *options) for name in names]
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
    assert list(fleet.cluster.client.list(Lease, namespace=NAMESPACE)) == []
    for name in names:
        fleet.client("clean", name)
    assert left(fleet.cluster, NAMESPACE) == []
