"""Jobs with a far host, through a real orchestrator: two hosts of a small network, each with a net
service of its own. The first has it at a socket of the orchestrator's machine, the second at an
address with TLS, as compose.yaml and compose.peer.yaml have them."""

import json
import os
import shutil
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hostbench.decisions.pair_documents import measured_pairs
from hostbench.model.jobs import StackState
from hostbench.model.result import ResultDocument
from hostbench.model.service import LEASE_S
from tests.client.canned_server import Certificate, certificate
from tests.faults.command import PROGRAMS, Command, scripted_net_programs
from tests.patience import SOON_S, wait_until
from tests.service.streams import lock_is_free
from tests.stack.lan import Lan, LanHost, need_namespaces
from tests.stack.orchestrator_process import OrchestratorProcess
from tests.stack.redis_server import RedisServer
from tests.stack.service_process import ServiceProcess

PORT = 8004
ESTABLISHED = "01"
HOSTS = ["node-a", "node-b"]
BACK = HOSTS[::-1]


def job(duration_s: float = 0.2, **more: Any) -> dict[str, Any]:
    """One trial between two hosts, as short as that."""
    params = {"streams": 1, "duration_s": duration_s, "warmup_s": 0, **more.pop("params", {})}
    request: dict[str, Any] = {"workload": "net.tcp_stream", "params": params, "hosts": HOSTS}
    return {**request, "trials": 1, "idle_policy": "force", **more}


class TwoHosts:
    """An orchestrator and its Redis here, and two hosts in namespaces of their own."""

    def __init__(self, root: Path, lan: Lan, programs: Path) -> None:
        self.lan = lan
        self._programs = programs
        self._root = root
        self.near, self.far = lan.host(), lan.host()
        addresses = (lan.address, self.near.address, self.far.address)
        self.certificate = certificate(root, ",".join(f"IP:{one}" for one in addresses))
        self.redis = RedisServer(root / "redis")
        self.orchestrator = OrchestratorProcess(
            root / "orchestrator",
            self.redis.url,
            root / "results",
            address=lan.address,
            **self.certificate.of_server,
        )
        self.services = {
            "node-a": self._service("node-a", self.near, f"unix:{root}/net.sock", None),
            "node-b": self._service(
                "node-b", self.far, f"{self.far.address}:{PORT}", self.certificate
            ),
        }

    def _service(
        self, name: str, host: LanHost, listen: str, certificate: Certificate | None
    ) -> ServiceProcess:
        return ServiceProcess(
            self._root / name,
            host=name,
            subsystem="net",
            programs=self._programs,
            listen=listen,
            prefix=host.prefix,
            certificate=certificate,
            HOSTBENCH_ORCHESTRATOR_URL=self.orchestrator.url,
            HOSTBENCH_CA_FILE=str(self.certificate.certificate),
        )

    def __enter__(self) -> "TwoHosts":
        self.redis.start()
        self.orchestrator.start()
        for name, service in self.services.items():
            service.start()
            self.orchestrator.wait_for_host(name, subsystem="net")
        return self

    def __exit__(self, *_exception: object) -> None:
        for service in self.services.values():
            service.__exit__()
        self.orchestrator.__exit__()
        self.redis.__exit__()

    def begun(self, **spec: Any) -> str:
        """A job whose two ends are connected; its id."""
        job_id = self.orchestrator.submit(**spec)
        self.orchestrator.wait_for(job_id, StackState.RUNNING)
        self.services["node-a"].wait_for_program()
        pid = self.services["node-b"].wait_for_program()
        wait_until(lambda: self.is_connected(pid), lambda: "the two ends do not connect")
        return job_id

    def is_connected(self, pid: int) -> bool:
        """Whether the second host, where a process of it says so, has a connection to the first."""
        lines = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
        first = socket.inet_aton(self.near.address)[::-1].hex().upper()
        fields = [line.split() for line in lines]
        return any(
            remote.startswith(first) and state == ESTABLISHED for _, _, remote, state, *_ in fields
        )

    def nothing_is_left(self) -> bool:
        """Whether both hosts are free for the next job."""
        both = self.services.values()
        return all(one.programs_gone_within() and lock_is_free(one.lock) for one in both)

    def only_trial(self, job_id: str) -> dict[str, Any]:
        """The one trial of the one case of a job."""
        (case,) = self.orchestrator.result(job_id)["cases"]
        (trial,) = case["trials"]
        found: dict[str, Any] = trial
        return found


@pytest.fixture(scope="module")
def lan() -> Iterator[Lan]:
    need_namespaces()
    with Lan() as one:
        yield one


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory, lan: Lan) -> Iterator[TwoHosts]:
    """Hosts whose program does nothing but hold a connection."""
    root = tmp_path_factory.mktemp("scripted")
    with TwoHosts(root, lan, scripted_net_programs(root)) as hosts:
        yield hosts


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory, lan: Lan) -> Iterator[TwoHosts]:
    """Hosts with the real program."""
    if not (PROGRAMS / "net-bench").exists():
        pytest.skip("net-bench is not built")
    with TwoHosts(tmp_path_factory.mktemp("real"), lan, PROGRAMS) as hosts:
        yield hosts


# ---- what a job with two hosts is ----


def test_a_job_between_two_hosts(scripted: TwoHosts) -> None:
    """In either direction: the one at the socket has its address from the other one. Both documents
    are measurements of the pair."""
    documents = []
    for hosts in (HOSTS, BACK):
        job_id = scripted.orchestrator.submit(**job(hosts=hosts))
        view = scripted.orchestrator.wait_for(job_id)
        assert view["state"] == "succeeded", (view, scripted.orchestrator.log)
        document = scripted.orchestrator.result(job_id)
        # Other work on this host may have disturbed the trial.
        usable = [{**case, "verdict": "noisy"} for case in document["cases"]]
        text = json.dumps({**document, "cases": usable})
        documents.append(ResultDocument.model_validate_json(text))
        assert document["host"]["hostname"] == hosts[0]
        addresses = dict(zip(HOSTS, (scripted.near.address, scripted.far.address), strict=True))
        far = document["far_host"]
        assert far["inventory"]["hostname"] == hosts[1]
        assert (far["near_address"], far["address"]) == tuple(addresses[host] for host in hosts)
        assert far["program"]["name"] == "net-bench"
        trial = scripted.only_trial(job_id)
        assert trial["events"][0]["params"]["target"] == "far_host"
        components = [one["component"] for one in trial["events"][-1]["processes"]]
        assert components[:2] == ["service", "orchestrator"] and components[-1] == "far_service"
    found = measured_pairs(documents).measurements
    assert [[one.near, one.far] for one in found] == [HOSTS, BACK]
    assert all(one.alone for one in found)
    assert scripted.nothing_is_left()


def test_both_hosts_are_its_own(scripted: TwoHosts) -> None:
    job_id = scripted.begun(**job(duration_s=600))
    assert scripted.orchestrator.wait_for_host("node-b", "busy", subsystem="net")["job"] == job_id
    behind = scripted.orchestrator.submit(**job(hosts=["node-b"]))
    time.sleep(1.5)
    assert scripted.orchestrator.job(behind)["state"] == "queued"
    scripted.orchestrator.client.delete(f"/jobs/{job_id}")
    assert scripted.orchestrator.wait_for(job_id)["state"] == "cancelled"
    assert scripted.orchestrator.wait_for(behind)["state"] == "succeeded"
    assert scripted.only_trial(behind)["events"][0]["params"]["target"] == "loopback"
    assert scripted.nothing_is_left()


def test_the_far_host_must_be_idle_too(scripted: TwoHosts) -> None:
    """Of two namespaces of one machine both are busy or none."""
    job_id = scripted.orchestrator.submit(**job(idle_policy="flag"))
    assert scripted.orchestrator.wait_for(job_id)["state"] == "succeeded"
    (case,) = scripted.orchestrator.result(job_id)["cases"]
    assert case["idle"]["policy"] == "flag" and case["idle"]["window"]["busy_ratio"] is not None


# ---- what it must not be ----


def test_a_far_host_without_a_net_service(scripted: TwoHosts, tmp_path: Path) -> None:
    lonely = ServiceProcess(
        tmp_path / "node-c",
        host="node-c",
        HOSTBENCH_ORCHESTRATOR_URL=scripted.orchestrator.url,
        HOSTBENCH_CA_FILE=str(scripted.certificate.certificate),
    )
    with lonely:
        scripted.orchestrator.wait_for_host("node-c")
        answer = scripted.orchestrator.client.post("/jobs", json=job(hosts=["node-a", "node-c"]))
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["field"] == "body.hosts"
        assert "node-c has no service net, where net.tcp_stream" in answer.json()["detail"]
        # Nothing of it is between the hosts.
        on_one = job(hosts=["node-a", "node-c"], params={"target": "loopback"})
        job_id = scripted.orchestrator.submit(**on_one)
        assert scripted.orchestrator.wait_for(job_id)["state"] == "succeeded"
        assert scripted.orchestrator.result(job_id)["far_host"] is None


def test_a_far_end_on_a_second_host_that_is_not_named(scripted: TwoHosts) -> None:
    request = job(hosts=["node-a"], params={"target": "far_host"})
    answer = scripted.orchestrator.client.post("/jobs", json=request)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "body.hosts"
    assert "give hosts two names: node-a, which measures" in answer.json()["detail"]


def test_a_suite_that_can_do_without_a_second_host(scripted: TwoHosts) -> None:
    params = {"streams": 1, "duration_s": 0.2, "warmup_s": 0, "target": "far_host"}
    entry = {"workload": "net.tcp_stream", "params": params, "far_host": "optional"}
    once = {"min_trials": 1, "max_trials": 1}
    suite = {"name": "either", "repeats": once, "idle": {"policy": "force"}, "cases": [entry]}
    verdicts = {}
    for hosts in (["node-a"], HOSTS):
        job_id = scripted.orchestrator.submit(suite=suite, hosts=hosts)
        assert scripted.orchestrator.wait_for(job_id)["state"] == "succeeded"
        document = scripted.orchestrator.result(job_id)
        (case,) = document["cases"]
        verdicts[len(hosts)] = case["verdict"]
        assert (document["far_host"] is None) == (len(hosts) == 1)
    assert verdicts[1] == "skipped" and verdicts[2] != "skipped"
    assert scripted.nothing_is_left()


# ---- what goes wrong ----


@pytest.mark.parametrize("which", HOSTS)
def test_cancelled_in_mid_trial(scripted: TwoHosts, which: str) -> None:
    hosts = HOSTS if which == "node-a" else BACK
    job_id = scripted.begun(**job(duration_s=600, hosts=hosts))
    cancelled_s = time.monotonic()
    scripted.orchestrator.client.delete(f"/jobs/{job_id}")
    assert scripted.orchestrator.wait_for(job_id)["state"] == "cancelled"
    assert scripted.nothing_is_left()
    assert time.monotonic() - cancelled_s < SOON_S


@pytest.mark.exhaustive
def test_a_far_host_that_is_unplugged_in_mid_trial(scripted: TwoHosts) -> None:
    """No end says goodbye: both ends notice by silence, and the hosts are free again."""
    job_id = scripted.begun(**job(duration_s=600))
    scripted.far.unplug()
    unplugged_s = time.monotonic()
    view = scripted.orchestrator.wait_for(job_id)
    took_s = time.monotonic() - unplugged_s
    assert scripted.nothing_is_left()
    scripted.far.plug_in()
    assert view["state"] == "failed" and took_s < LEASE_S + SOON_S
    assert f"https://{scripted.far.address}:{PORT}" in view["reason"]
    scripted.orchestrator.wait_for_host("node-b", subsystem="net")
    again = scripted.orchestrator.submit(**job())
    assert scripted.orchestrator.wait_for(again)["state"] == "succeeded"


def test_a_far_program_that_is_killed_in_mid_trial(scripted: TwoHosts) -> None:
    """The trial has failed, the host is still there for others."""
    job_id = scripted.begun(**job(duration_s=600))
    os.kill(scripted.services["node-b"].wait_for_program(), signal.SIGKILL)
    view = scripted.orchestrator.wait_for(job_id)
    assert view["state"] == "failed"
    failure = scripted.only_trial(job_id)["failure"]
    assert failure["code"] == "far_end_lost"
    assert scripted.nothing_is_left()
    again = scripted.orchestrator.submit(**job())
    assert scripted.orchestrator.wait_for(again)["state"] == "succeeded"


@pytest.mark.exhaustive
def test_the_orchestrator_is_killed_in_mid_trial(scripted: TwoHosts) -> None:
    """Both hosts are free again at once; the job is lost, and may be taken up."""
    job_id = scripted.begun(**job(duration_s=600))
    scripted.orchestrator.kill()
    assert scripted.nothing_is_left()
    scripted.orchestrator.start()
    assert scripted.orchestrator.wait_for(job_id)["state"] == "lost"


# ---- the real program ----


def test_bytes_between_two_hosts(real: TwoHosts) -> None:
    job_id = real.orchestrator.submit(**job(duration_s=1))
    view = real.orchestrator.wait_for(job_id)
    assert view["state"] == "succeeded", (view, real.orchestrator.result(job_id))
    trial = real.only_trial(job_id)
    start = trial["events"][0]
    end = next(event for event in trial["events"] if event["event"] == "end")
    assert start["params"]["target"] == "far_host"
    assert start["facts"]["far_address"].startswith(real.far.address)
    assert start["facts"]["near_address"].startswith(real.near.address)
    assert end["metrics"]["bytes_per_second"] > 0
    assert end["metrics"]["receiver_bytes"] <= end["metrics"]["sender_bytes"]
    assert real.nothing_is_left()


@pytest.mark.parametrize("workload", ["udp_stream", "tcp_rr", "udp_rr", "tcp_crr", "naive_stream"])
@pytest.mark.sampled(5)
def test_every_workload_between_two_hosts(real: TwoHosts, workload: str) -> None:
    job_id = real.orchestrator.submit(**job(duration_s=0.5) | {"workload": f"net.{workload}"})
    view = real.orchestrator.wait_for(job_id)
    assert view["state"] == "succeeded", (view, real.orchestrator.result(job_id))
    assert real.nothing_is_left()


@pytest.mark.parametrize("workload", ["tcp_stream", "udp_stream", "tcp_rr", "udp_rr", "tcp_crr"])
@pytest.mark.sampled(5)
def test_the_real_ends_are_parted(real: TwoHosts, workload: str) -> None:
    """In mid-trial, and no end says goodbye: each end gives up by itself."""
    real.orchestrator.wait_for_host("node-b", subsystem="net")
    job_id = real.orchestrator.submit(**job(duration_s=600) | {"workload": f"net.{workload}"})
    real.orchestrator.wait_for(job_id, StackState.RUNNING)
    pid = real.services["node-b"].wait_for_program()
    wait_until(lambda: real.is_connected(pid), lambda: "the two ends do not connect")
    real.far.unplug()
    try:
        view = real.orchestrator.wait_for(job_id)
        free = real.nothing_is_left()
    finally:
        real.far.plug_in()
    assert free and view["state"] == "failed"
    # Where the measuring end is the first to give up, its trial says why. On a busy host its
    # service may be too slow for its lease before either gives up.
    given_up = ("the measuring end reports: ", "a case failed", "has not renewed the lease")
    assert any(words in view["reason"] for words in given_up), view
    real.orchestrator.wait_for_host("node-b", subsystem="net")
    again = real.orchestrator.submit(**job())
    assert real.orchestrator.wait_for(again)["state"] == "succeeded"


@pytest.mark.exhaustive
def test_a_run_by_hand_between_two_hosts(real: TwoHosts, tmp_path: Path) -> None:
    """hostbench run on the first host, with the second one over TLS."""
    key_file = tmp_path / "key"
    key_file.write_text(real.services["node-b"].key)
    command = Command(tmp_path)
    ended = command.run(
        *("run", "--workload", "net.tcp_stream", "--param", "duration_s=0.5"),
        *("--trials", "1", "--idle-policy", "force", "--json"),
        *("--far-host", real.services["node-b"].url),
        *("--far-key-file", str(key_file), "--far-ca", str(real.certificate.certificate)),
        prefix=real.near.prefix,
    )
    assert ended.code == 0, ended.errors
    far = ended.document["far_host"]
    assert (far["near_address"], far["address"]) == (real.near.address, real.far.address)
    (trial,) = ended.document["cases"][0]["trials"]
    assert trial["events"][0]["facts"]["far_address"].startswith(real.far.address)
    assert real.nothing_is_left() and command.is_gone_soon()


@pytest.mark.parametrize(
    ("workload", "tool"),
    [
        ("tcp_stream", "iperf3"),
        ("udp_stream", "iperf3"),
        ("tcp_rr", "sockperf"),
        ("udp_rr", "ping"),
    ],
)
@pytest.mark.exhaustive
def test_a_peer_between_two_hosts(real: TwoHosts, workload: str, tool: str) -> None:
    """Its server is a session too, and nothing of one is in the way of the next."""
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    request = job(duration_s=1, trials=2, peers=[tool]) | {"workload": f"net.{workload}"}
    job_id = real.orchestrator.submit(**request)
    view = real.orchestrator.wait_for(job_id)
    (case,) = real.orchestrator.result(job_id)["cases"]
    assert view["state"] == "succeeded", (view, case)
    (peer,) = case["peers"]
    assert peer["tool"] == tool and peer["statistics"]["n"] == 2, peer
    assert real.far.address in " ".join(peer["command"])
    assert real.nothing_is_left()
