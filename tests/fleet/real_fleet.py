"""Campaigns on real nodes of this host: their clients, and runs by hand under the same lock."""

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Pod

from hostbench.fleet.kubernetes.objects import CONTAINER, RESULT_ANNOTATION
from hostbench.fleet.node import DIGEST
from hostbench.host.lock import LOCK_NAME
from hostbench.model.result import ResultDocument
from hostbench.results.sealed import read_document
from tests.faults.command import Command, end_of
from tests.fleet.cluster import Cluster, name_of
from tests.fleet.image import CHECKOUT_PATHS
from tests.fleet.image import NAME as IMAGE
from tests.fleet.policy import change_pods
from tests.fleet.real_node import lock_directory
from tests.fleet.simulated import add_namespace

NAMESPACE = "measured"


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
    """Clients of campaigns that measure `suite` on nodes, and runs by hand under the same lock.
    `limit_s`: for a campaign or a run, with all that it waits for."""

    def __init__(
        self, cluster: Cluster, nodes: tuple[str, ...], directory: Path, suite: str, limit_s: int
    ) -> None:
        add_namespace(cluster, NAMESPACE)
        mount_checkout(cluster)
        self.cluster, self.nodes, self.suite, self.limit_s = cluster, nodes, suite, limit_s
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
            "fleet", command, *arguments, f"--namespace={NAMESPACE}", timeout_s=self.limit_s
        )
        assert ended.code == 0, ended.errors
        return ended.output

    def start(self, name: str, *arguments: str) -> "subprocess.Popen[str]":
        """Start a client that runs a campaign on all nodes."""
        return self.command.start(
            "fleet", "run", self.suite, f"--name={name}", f"--namespace={NAMESPACE}",
            f"--nodes={','.join(self.nodes)}", f"--time-limit={self.limit_s}", *arguments,
        )  # fmt: skip

    def start_by_hand(
        self, results: Path, cpus: Iterable[int], *arguments: str
    ) -> "subprocess.Popen[str]":
        """Start to measure the suite on these CPUs, as soon as the host is free."""
        return self.command.start(
            "run", self.suite, f"--results={results}", f"--wait={self.limit_s}", *arguments,
            prefix=("taskset", "-c", ",".join(map(str, cpus))),
        )  # fmt: skip

    def wait_for_ends(self, started: Iterable["subprocess.Popen[str]"]) -> None:
        """Wait for the ends of commands that find everything in order."""
        for process in started:
            ended = end_of(process, self.limit_s)
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

    def clean(self) -> None:
        """Remove what is left of campaigns."""
        for name in json.loads(self.client("list", "--json"))["campaigns"]:
            self.client("clean", name)


def load(path: Path) -> ResultDocument:
    """Return the document in a file. Raise UsageError if somebody changed it."""
    return read_document(path.read_bytes(), str(path), "")
