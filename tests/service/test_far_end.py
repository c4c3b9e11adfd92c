"""Sessions with the real program: a far end of this service, a near end that another one runs."""

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from hostbench.model.service import SESSION_STREAM_EVENT
from tests.patience import SOON_S
from tests.service.conftest import check_and_stop, running_again
from tests.service.sessions import session
from tests.service.streams import RunningTrial, lock_is_free
from tests.stack.service_process import ServiceProcess, events

NEAR, FAR = "127.0.0.1", "127.0.0.1"
PARAMS: dict[str, Any] = {"duration_s": 0.3, "warmup_s": 0.1, "target": "far_host"}


@pytest.fixture(scope="module")
def two_of_file(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[ServiceProcess, ServiceProcess]]:
    """The services of two hosts, which are this machine twice."""
    root = tmp_path_factory.mktemp("two")
    near = ServiceProcess(root / "near", host="near-1", subsystem="net")
    far = ServiceProcess(root / "far", host="far-1", subsystem="net")
    yield near, far
    for one in (near, far):
        check_and_stop(one)


@pytest.fixture
def two(
    two_of_file: tuple[ServiceProcess, ServiceProcess],
) -> Iterator[tuple[ServiceProcess, ServiceProcess]]:
    """They, running; no test leaves a program behind."""
    near, far = map(running_again, two_of_file)
    yield near, far
    for one in (near, far):
        assert one.programs_gone_within(), "a program was left running"


@pytest.mark.parametrize(
    "workload", ["tcp_stream", "udp_stream", "tcp_rr", "udp_rr", "tcp_crr", "naive_stream"]
)
@pytest.mark.sampled(2)
def test_a_trial_between_two_services(
    two: tuple[ServiceProcess, ServiceProcess], workload: str
) -> None:
    near, far = two
    with session(far, "s1", duration_s=30) as one:
        place = one.place.place.model_dump()
        lines = events(near.post(id="t1", workload=workload, params=PARAMS, session=place))
        assert [line["event"] for line in lines if line["event"] not in ("warning", "sample")] == [
            "start",
            "end",
            "others",
            "control_plane",
        ], lines
        assert lines[0]["params"]["target"] == "far_host"
        _, end, last = one.finish()
    assert end["outcome"] == "done" and end["cpu_s"] > 0, end
    assert last["event"] == "control_plane"
    for line in one.raw:
        SESSION_STREAM_EVENT.validate_json(line)
    assert one.is_closed() and not far.program_pids() and lock_is_free(far.lock)


@pytest.mark.exhaustive
def test_a_session_is_for_one_trial(two: tuple[ServiceProcess, ServiceProcess]) -> None:
    near, far = two
    with session(far, "s1", duration_s=30) as one:
        place = one.place.place.model_dump()
        trial: dict[str, Any] = {"workload": "tcp_stream", "params": PARAMS, "session": place}
        assert [line["event"] for line in events(near.post(id="t1", **trial))][-3] == "end"
        one.finish()
        again = events(near.post(id="t2", **trial))
    assert again[-2]["event"] == "failure"


def test_a_wrong_token(two: tuple[ServiceProcess, ServiceProcess]) -> None:
    near, far = two
    with session(far, "s1", duration_s=30) as one:
        place = one.place.place.model_dump() | {"token": "0" * 32}
        trial: dict[str, Any] = {"workload": "tcp_stream", "params": PARAMS, "session": place}
        failure = events(near.post(id="t1", **trial))[-2]
        assert failure["event"] == "failure", failure
        good = trial | {"session": one.place.place.model_dump()}
        assert events(near.post(id="t2", **good))[-3]["event"] == "end", "one may be mistaken"


def test_no_near_end(two: tuple[ServiceProcess, ServiceProcess]) -> None:
    _, far = two
    with session(far, "s1", expiry_s=0.3) as one:
        end = one.finish()[1]
    assert end["outcome"] == "expired" and end["reason"]


def test_more_than_the_caps(two: tuple[ServiceProcess, ServiceProcess]) -> None:
    near, far = two
    with session(far, "s1", duration_s=30, streams=2) as one:
        place = one.place.place.model_dump()
        params = PARAMS | {"streams": 3}
        trial: dict[str, Any] = {"workload": "tcp_stream", "params": params, "session": place}
        failure = events(near.post(id="t1", **trial))[-2]
        end = one.finish()[1]
    assert failure["event"] == "failure" and "2" in failure["message"]
    assert end["outcome"] == "refused" and "2" in end["reason"]


def test_the_near_end_is_killed(two: tuple[ServiceProcess, ServiceProcess]) -> None:
    near, far = two
    with session(far, "s1", duration_s=600) as one:
        params = PARAMS | {"duration_s": 60}
        place = one.place.place.model_dump()
        request: dict[str, Any] = {"workload": "tcp_stream", "params": params, "session": place}
        trial = RunningTrial(near, "t1", **request).begun()
        assert trial.lines[0]["event"] == "start", trial.lines
        near.kill()
        trial.forget_the_lease()
        trial.finish()
        end = one.finish(SOON_S)[1]
    # Killed with unread data, it closes its connections with a reset.
    assert end["outcome"] in ("lost", "failed") and one.is_closed(), end


def test_the_far_service_is_killed(two: tuple[ServiceProcess, ServiceProcess]) -> None:
    near, far = two
    with session(far, "s1", duration_s=600) as one:
        params = PARAMS | {"duration_s": 60}
        place = one.place.place.model_dump()
        request: dict[str, Any] = {"workload": "tcp_stream", "params": params, "session": place}
        trial = RunningTrial(near, "t1", **request).begun()
        assert trial.lines[0]["event"] == "start", trial.lines
        far.kill()
        assert trial.finish(SOON_S)[-2]["event"] == "failure"
        trial.forget_the_lease()
        one.finish()
    assert far.programs_gone_within() and one.is_closed()


@pytest.mark.exhaustive
def test_a_far_end_that_is_not_there(two: tuple[ServiceProcess, ServiceProcess]) -> None:
    near, _ = two
    with socket.create_server((NEAR, 0)) as taken:
        port = taken.getsockname()[1]
    place = {"address": FAR, "port": port, "token": "0" * 32}
    failure = events(near.post(id="t1", workload="tcp_stream", params=PARAMS, session=place))[-2]
    assert failure["event"] == "failure" and str(port) in failure["message"]


@pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed")
@pytest.mark.exhaustive
def test_the_server_of_a_tool(two: tuple[ServiceProcess, ServiceProcess]) -> None:
    """iperf3's, as the peers of the subsystem start it; it serves one test and is gone."""
    _, far = two
    params = {"streams": 1, "direction": "send"}
    request = {"tool": "iperf3", "workload": "tcp_stream", "params": params}
    with session(far, "s1", duration_s=30, **request) as one:
        assert one.status == 200, one.problem
        place = one.place
        assert place.token is None
        client = ["iperf3", "-c", place.address, "-p", str(place.port), "-t", "1", "-J"]
        ended = subprocess.run(client, capture_output=True, text=True, timeout=30)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert json.loads(ended.stdout)["end"]["sum_received"]["bits_per_second"] > 1e8
        end = one.finish()[1]
    assert end["outcome"] == "done" and end["cpu_s"] > 0
    assert one.is_closed() and not far.program_pids()
