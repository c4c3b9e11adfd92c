"""The far ends that a net service opens: one at a time, for as long as somebody wants them."""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hostbench.model.service import LEASE_S, SESSION_STREAM_EVENT
from tests.service.conftest import StartService, behaving, check_and_stop
from tests.service.sessions import OPEN, session
from tests.service.streams import lock_is_free, outcome
from tests.stack.service_process import ServiceProcess, events


@pytest.fixture(scope="module")
def cpu(
    tmp_path_factory: pytest.TempPathFactory, net_of_file: ServiceProcess
) -> Iterator[ServiceProcess]:
    """Another service of the net service's host."""
    one = ServiceProcess(tmp_path_factory.mktemp("cpu"), lock=net_of_file.lock)
    one.start()
    yield one
    check_and_stop(one)


def test_a_session_from_its_place_to_its_end(net: ServiceProcess) -> None:
    before = sessions_done(net)
    with session(net, "s1", streams=4, rate=1e6) as one:
        assert one.place.address == "127.0.0.1" and re.fullmatch(
            r"[0-9a-f]{32}", one.place.token or ""
        )
        one.connect()
        lines = one.finish()
    assert [line["event"] for line in lines] == ["session", "session_end", "control_plane"]
    for line in one.raw:
        SESSION_STREAM_EVENT.validate_json(line)
    assert lines[1]["outcome"] == "done" and lines[1]["cpu_s"] == 0.25
    assert lines[1]["reason"] == "allowed bind duration_s expiry_s rate streams token"
    assert outcome(net, "s1") == "done"
    assert one.is_closed() and not net.program_pids() and lock_is_free(net.lock)
    assert sessions_done(net) == before + 1


def sessions_done(net: ServiceProcess) -> float:
    """How many sessions ended well, by the service's metrics."""
    name = 'hostbench_service_sessions_total{outcome="done",tool="hostbench"}'
    lines = net.client.get("/metrics").text.splitlines()
    return sum(float(line.removeprefix(name)) for line in lines if line.startswith(name))


@pytest.mark.exhaustive
def test_each_session_has_a_token_of_its_own(net: ServiceProcess) -> None:
    tokens = set()
    for n in range(3):
        with session(net, f"s{n}") as one:
            tokens.add(one.place.token)
    assert len(tokens) == 3


def test_the_token_stands_nowhere_that_others_can_read(net: ServiceProcess) -> None:
    with session(net, "s1") as one:
        (pid,) = net.program_pids()
        command = (Path("/proc") / str(pid) / "cmdline").read_bytes()
        token = one.place.token or ""
        assert b"far-end" in command and token.encode() not in command
    assert token not in net.log and token not in net.lock.read_text()


def test_no_near_end(net: ServiceProcess) -> None:
    with session(net, "s1", expiry_s=0.3) as one:
        end = one.finish()[1]
    assert end["outcome"] == "expired" and "in time" in end["reason"]
    assert outcome(net, "s1") == "expired"


def test_strangers_are_counted(net: ServiceProcess) -> None:
    with session(net, "s1") as one:
        one.connect("0" * 32)
        one.connect()
        end = one.finish()[1]
    assert end["outcome"] == "done" and end["strangers"] == 1


# ---- it lives as long as its caller ----


@pytest.mark.exhaustive
def test_a_session_that_is_renewed_goes_on(net: ServiceProcess) -> None:
    with session(net, "s1") as one:
        time.sleep(LEASE_S + 2)
        assert not one.ended.is_set() and not one.is_closed()
        one.forget_the_lease()
        assert one.failure()["code"] == "lease_lost"
    assert one.is_closed() and lock_is_free(net.lock)


def test_the_connection_closes(net: ServiceProcess) -> None:
    with net.another_client() as client:
        with client.stream("POST", "/sessions", json={"id": "s1", **OPEN}) as answer:
            next(answer.iter_lines())
        assert outcome(net, "s1") == "caller_gone"
    assert net.programs_gone_within() and lock_is_free(net.lock)


def test_a_far_end_that_ignores_signals_is_gone_in_time(net: ServiceProcess) -> None:
    with behaving(net, "hang"), session(net, "s1") as one:
        one.forget_the_lease()
        assert one.failure()["code"] == "lease_lost"
    assert net.programs_gone_within() and lock_is_free(net.lock)


def test_a_service_that_is_killed(net: ServiceProcess) -> None:
    with session(net, "killed") as one:
        net.kill()
        assert net.programs_gone_within(), "the lifeline was not enough"
        one.finish()
        assert one.is_closed() and lock_is_free(net.lock)
    net.start()
    with session(net, "s2") as two:
        two.connect()
        assert two.finish()[1]["outcome"] == "done"


def test_a_service_that_has_to_end(net: ServiceProcess) -> None:
    with session(net, "handed") as one:
        assert net.stop() == 0
        assert one.failure()["code"] == "service_ends"
    assert one.is_closed()


# ---- one at a time ----


def test_a_second_session_waits_its_turn(net: ServiceProcess) -> None:
    with session(net, "s1", fence=5):
        answer = net.client.post("/sessions", json={"id": "s2", "fence": 5, **OPEN})
        assert answer.status_code == 409 and answer.json()["code"] == "busy"
        assert 0 < answer.json()["retry_after_s"] <= LEASE_S
        assert 1 <= int(answer.headers["retry-after"]) <= LEASE_S
        assert answer.json()["holder"]["job"] == "s1"
        again = net.client.post("/sessions", json={"id": "s1", "fence": 5, **OPEN})
        assert again.status_code == 409 and "s1" in again.json()["detail"]


def test_a_higher_fence_ends_it_and_a_lower_one_is_late(net: ServiceProcess) -> None:
    with session(net, "s1", fence=6) as one:
        with session(net, "s2", fence=7) as two:
            assert one.failure()["code"] == "preempted"
            assert two.place.port
        late = net.client.post("/sessions", json={"id": "s3", "fence": 6, **OPEN})
        assert late.status_code == 409 and late.json()["code"] == "stale_fence"


def test_a_trial_of_another_service_of_the_host_and_a_session_exclude_one_another(
    net: ServiceProcess, cpu: ServiceProcess
) -> None:
    with session(net, "s1"):
        answer = cpu.post(id="t1", workload="clock", params={"duration_s": 0.1})
        assert answer.status_code == 409 and answer.json()["holder"]["service"] == "net"
    assert cpu.post(id="t1", workload="clock", params={"duration_s": 0.1}).status_code == 200


# ---- what cannot be ----


@pytest.mark.parametrize(
    ("request_", "field", "part"),
    [
        ({"allowed_address": "224.0.0.1"}, "body.allowed_address", "address of one host"),
        ({"allowed_address": "ff02::1"}, "body.allowed_address", "address of one host"),
        ({"allowed_address": "255.255.255.255"}, "body.allowed_address", "address of one host"),
        ({"allowed_address": "127.255.255.255"}, "body.allowed_address", "no route"),
        ({"allowed_address": "0.0.0.0"}, "body.allowed_address", "address of one host"),
        ({"allowed_address": "fe80::1%lo"}, "body.allowed_address", "address of one host"),
        ({"allowed_address": "bench-2"}, "body.allowed_address", "not an IP address"),
        ({"allowed_address": None}, "body.allowed_address", "not allowed"),
        ({"duration_s": 0}, "body.duration_s", "not allowed"),
        ({"duration_s": 1e9}, "body.duration_s", "not allowed"),
        ({"streams": 0}, "body.streams", "not allowed"),
        ({"streams": 10**6}, "body.streams", "not allowed"),
        ({"bytes": -1}, "body.bytes", "not allowed"),
        ({"rate": 0}, "body.rate", "not allowed"),
        ({"expiry_s": 3600}, "body.expiry_s", "not allowed"),
        ({"fence": 2**62}, "body.fence", "9007199254740991"),
        ({"tool": "nc"}, "body.tool", "there is no tool"),
        ({"tool": "iperf3"}, "body.workload", "is missing"),
        ({"tool": "iperf3", "workload": "tcp"}, "body.workload", "there is no workload"),
        (
            {"tool": "iperf3", "workload": "tcp_stream", "params": {"colour": 3}},
            "body.params.colour",
            "colour",
        ),
        ({"tool": "sockperf", "workload": "tcp_stream"}, "body.tool", "does not stand beside"),
        ({"allowed_address": "::ffff:127.0.0.1"}, "body.allowed_address", "give 127.0.0.1"),
        ({"token": "0" * 32}, "body.token", "not known here"),
    ],
)
def test_the_field_is_named(
    net: ServiceProcess, request_: dict[str, Any], field: str, part: str
) -> None:
    answer = net.client.post("/sessions", json={"id": "s1"} | OPEN | request_)
    content = answer.json()
    assert answer.status_code == 422 and content["code"] == "invalid", content
    assert [one["field"] for one in content["errors"]] == [field]
    assert part in content["errors"][0]["detail"], content
    assert not net.program_pids()


@pytest.mark.parametrize("path", ["/sessions", "/route"])
def test_it_takes_a_key(net: ServiceProcess, path: str) -> None:
    with net.another_client(key="a key of somebody else") as client:
        answer = client.post(path) if path == "/sessions" else client.get(path)
    assert answer.status_code == 401


def test_other_services_open_none(cpu: ServiceProcess) -> None:
    assert cpu.client.post("/sessions", json={"id": "s1", **OPEN}).status_code == 404


@pytest.mark.parametrize(
    ("script", "code", "part"),
    [
        ("cannot_listen", "far_end", "cannot listen at 127.0.0.1"),
        ("garbage", "malformed_output", "hello"),
        ("crash", "killed", "signal 11"),
        ("cut", "no_last_event", "without an end"),
    ],
)
@pytest.mark.sampled(2)
def test_a_faulty_far_end(net: ServiceProcess, script: str, code: str, part: str) -> None:
    with behaving(net, script):
        answer = net.client.post("/sessions", json={"id": "s1", **OPEN})
    *_, failure, last = events(answer)
    assert failure["code"] == code and part in failure["message"]
    assert last["event"] == "control_plane"
    assert not net.program_pids() and lock_is_free(net.lock)


# ---- where it is ----


def test_the_way_to_another_host(net: ServiceProcess) -> None:
    answer = net.client.get("/route", params={"to": "127.0.0.1"})
    assert answer.json() == {"source": "127.0.0.1", "interface": "lo", "address": None}
    assert net.client.get("/route").json() == {"source": None, "interface": None, "address": None}


@pytest.mark.parametrize("to", ["224.0.0.1", "x", "127.255.255.255", ""])
def test_no_way_there(net: ServiceProcess, to: str) -> None:
    answer = net.client.get("/route", params={"to": to})
    assert answer.status_code == 422 and answer.json()["code"] == "invalid"


def test_data_goes_to_the_address_that_the_operator_gave(start_net: StartService) -> None:
    """127.0.0.9 is this host's, too."""
    service = start_net(
        HOSTBENCH_NET_ADDRESS="127.0.0.9",
    )
    assert service.client.get("/route").json()["address"] == "127.0.0.9"
    with session(service, "s1") as one:
        assert one.place.address == "127.0.0.9"
    answer = service.client.post("/sessions", json={"id": "s2"} | OPEN | {"allowed_address": "::1"})
    assert answer.status_code == 422 and "versions of IP" in answer.json()["detail"]


def test_an_address_for_data_that_this_host_has_not(start_net: StartService) -> None:
    service = start_net(
        HOSTBENCH_NET_ADDRESS="192.0.2.77",
    )
    answer = service.client.post("/sessions", json={"id": "s1", **OPEN})
    assert answer.status_code == 503 and "192.0.2.77" in answer.json()["detail"]


# ---- the near end's trial ----


def test_another_build_of_the_far_end(net: ServiceProcess) -> None:
    body = {"id": "s1", **OPEN, "sha256": "0" * 64}
    answer = net.client.post("/sessions", json=body)
    assert answer.status_code == 409 and answer.json()["code"] == "program_changed"
    known = net.client.get("/workloads").json()["program"]["sha256"]
    with session(net, "s2", sha256=known) as one:
        assert one.status == 200


BESIDE = {"cpus": [min(os.sched_getaffinity(0))], "rate": 1.0, "elapsed_s": 1.0}
PEER = {"tool": "ping", "beside": BESIDE}


@pytest.mark.parametrize(
    ("request_", "field", "part"),
    [
        ({"address": "169.254.169.254"}, "body.session.address", "one link alone"),
        ({"beside": BESIDE | {"elapsed_s": 1e5}}, "body.beside.elapsed_s", "86400"),
    ],
)
def test_a_peer_is_not_aimed_at_anybody(
    net: ServiceProcess, request_: dict[str, Any], field: str, part: str
) -> None:
    place = {"address": request_.pop("address", "192.0.2.8"), "port": 9}
    body = {"id": "t1", "workload": "tcp_stream", "session": place} | PEER | request_
    content = net.client.post("/trials", json=body).json()
    assert [one["field"] for one in content["errors"]] == [field], content
    assert part in content["errors"][0]["detail"]


PLACE = {"address": "192.0.2.8", "port": 4711, "token": "ab" * 16}


def test_the_program_is_handed_the_session(net: ServiceProcess) -> None:
    """By a file: the program that stands in reads it, and says what it found."""
    failure = events(net.post(id="t1", workload="tcp_stream", session=PLACE))[0]
    expected = "".join(f"{name}={value}\n" for name, value in PLACE.items())
    assert failure["code"] == "handed" and failure["message"].split() == expected.split()
    assert str(PLACE["token"]) not in net.log


@pytest.mark.parametrize(
    ("request_", "field", "part"),
    [
        ({"workload": "alone"}, "body.session", "has no far end"),
        ({"params": {"target": "loopback"}}, "body.session", "loopback"),
        ({"session": PLACE | {"token": None}}, "body.session.token", "is missing"),
        ({"session": PLACE | {"token": "x"}}, "body.session.token", "not allowed"),
        ({"session": PLACE | {"port": 0}}, "body.session.port", "not allowed"),
        ({"session": PLACE | {"address": "239.1.1.1"}}, "body.session.address", "one host"),
        ({"params": {"session_fd": 3}}, "body.params.session_fd", "operator"),
    ],
)
@pytest.mark.sampled(3)
def test_a_session_that_cannot_be_handed_over(
    net: ServiceProcess, request_: dict[str, Any], field: str, part: str
) -> None:
    answer = net.client.post(
        "/trials", json={"id": "t1", "workload": "tcp_stream", "session": PLACE} | request_
    )
    content = answer.json()
    assert answer.status_code == 422, content
    assert [one["field"] for one in content["errors"]] == [field]
    assert part in content["errors"][0]["detail"], content
