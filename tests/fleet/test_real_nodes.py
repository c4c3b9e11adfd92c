"""Real nodes: two kubelets on this machine run pods at once, each on CPUs of its own."""

import json
from pathlib import Path

import pytest
from lightkube.resources.core_v1 import Pod

from tests.fleet.cluster import Cluster, name_of
from tests.fleet.jobs import end_of, is_running, job_on, pod_of, python_on, wait_for_jobs
from tests.fleet.real_node import CGROUPS, KERNEL_SETTINGS, RealNode
from tests.fleet.real_node import missing as missing_of_real_nodes

# What a program says at its end.
TELL = """
import json, os, socket
def tell(**words):
    open("/dev/termination-log", "w").write(json.dumps(words))
"""
WHERE = TELL + "tell(cpus=sorted(os.sched_getaffinity(0)), user=os.getuid())"
ECHO = (
    TELL
    + """
with socket.create_server(("", 7000)) as server:
    connection, (peer, _) = server.accept()
    tell(peer=peer, received=connection.recv(100).decode())
"""
)
SAY = (
    TELL
    + """
with socket.create_connection(("{address}", 7000)) as connection:
    tell(own=connection.getsockname()[0])
    connection.sendall(b"hello")
"""
)
ASK_API = (
    TELL
    + """
import ssl, urllib.request
account = "/var/run/secrets/kubernetes.io/serviceaccount/"
host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
request = urllib.request.Request(
    f"https://{host}:{port}/apis/batch/v1",
    headers={"Authorization": "Bearer " + open(account + "token").read()})
trusted = ssl.create_default_context(cafile=account + "ca.crt")
tell(kind=json.load(urllib.request.urlopen(request, context=trusted))["kind"])
"""
)


def message_of(cluster: Cluster, job: str) -> dict[str, object]:
    code, message = end_of(pod_of(cluster, job))
    assert code == 0 and message is not None
    words: dict[str, object] = json.loads(message)
    return words


def test_jobs_end_with_their_messages_each_on_its_cpu(
    real_cluster: Cluster, nodes: tuple[str, str]
) -> None:
    for node in nodes:
        real_cluster.client.create(python_on(node, f"where-{node}", WHERE))
    names = [f"where-{node}" for node in nodes]
    ended = wait_for_jobs(real_cluster, names)
    assert [ended[name] for name in names] == ["Complete", "Complete"]
    first, second = (message_of(real_cluster, name) for name in names)
    assert first["user"] == second["user"] == 65534
    assert first["cpus"] != second["cpus"]


def test_a_pod_of_one_node_reaches_a_pod_of_the_other(
    real_cluster: Cluster, nodes: tuple[str, str]
) -> None:
    real_cluster.client.create(python_on(nodes[0], "echo", ECHO))
    real_cluster.wait_for(Pod, is_running, labels={"job-name": "echo"})
    status = pod_of(real_cluster, "echo").status
    assert status is not None and status.podIP is not None
    real_cluster.client.create(python_on(nodes[1], "say", SAY.format(address=status.podIP)))
    wait_for_jobs(real_cluster, ["echo", "say"])
    echo, say = message_of(real_cluster, "echo"), message_of(real_cluster, "say")
    assert echo == {"peer": say["own"], "received": "hello"}


def test_a_pod_reaches_the_api_server_and_its_words_can_be_read(
    real_cluster: Cluster, nodes: tuple[str, str]
) -> None:
    real_cluster.client.create(python_on(nodes[0], "ask-api", ASK_API + "\nprint('it answers')"))
    wait_for_jobs(real_cluster, ["ask-api"])
    assert message_of(real_cluster, "ask-api") == {"kind": "APIResourceList"}
    pod = name_of(pod_of(real_cluster, "ask-api"))
    assert real_cluster.kubectl("logs", pod) == "it answers\n"


def test_a_node_leaves_nothing_behind(real_cluster: Cluster, nodes: tuple[str, str]) -> None:
    files = [Path("/proc/sys") / one for one in KERNEL_SETTINGS]
    settings = [file.read_text() for file in files]
    with RealNode(real_cluster, "real-2", 2, reserved_cpus="0"):
        real_cluster.client.create(job_on("real-2"))
        real_cluster.wait_for(Pod, is_running, labels={"job-name": "real-2"})
        assert list(CGROUPS.glob("**/hostbench-*-real-2"))
        pids = real_cluster.pids()
    assert not list(CGROUPS.glob("**/hostbench-*-real-2"))
    assert len(real_cluster.pids()) == len(pids) - 1
    assert [file.read_text() for file in files] == settings


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    missing = missing_of_real_nodes()
    assert missing is not None and "scripts/system-packages.sh cluster" in missing
