"""What a trial with a session on a far host does when that goes wrong."""

import asyncio
import time
from collections.abc import Callable, Generator, Iterator
from typing import Any, cast

import pytest

from hostbench.base.errors import ResourceError
from hostbench.base.interrupt import Breakable, Interrupt, Interrupted
from hostbench.model.peer import PeerStartEvent, TrialEvent
from hostbench.model.result import FarHostRecord, ProgramVersion
from hostbench.model.service import SessionEvent, SessionPlace, SessionRequest
from hostbench.model.trial import Beside, Trial, TrialFailed
from hostbench.remote.client import RemoteService, ServiceLost, ServiceRefused
from hostbench.remote.far_host import FarHost
from hostbench.remote.far_session import FarTransport
from hostbench.remote.wire import Following, Produce, Wire
from tests.patience import SOON_S
from tests.unit.records import host

TOKEN = "ab" * 16
PLACE: dict[str, Any] = {"address": "192.0.2.8", "port": 5201}
PROGRAM = ProgramVersion(name="net-bench", subsystem="net", version="0.1.0", sha256="ab" * 32)


class FarService:
    """Does with each session what `produce` does."""

    url = "https://192.0.2.8:8004"

    def __init__(self, produce: Produce[bytes]) -> None:
        self.requests: list[SessionRequest] = []
        self._produce = produce
        self._wire = Wire("far")

    def session(self, request: SessionRequest) -> Following[bytes]:
        self.requests.append(request)
        return self._wire.follow(self._produce)

    def close(self) -> None:
        self._wire.close()


async def opened_and_lost(put: Callable[[bytes], None]) -> None:
    put(SessionEvent(**PLACE, token=None).model_dump_json().encode())
    await asyncio.sleep(0.1)
    raise ServiceLost("service https://192.0.2.8:8004 is gone")


def refusing(status: int, code: str, **members: Any) -> Produce[bytes]:
    async def produce(_put: Callable[[bytes], None]) -> None:
        raise ServiceRefused(status, code, "it says no", members)

    return produce


@pytest.fixture
def interrupt() -> Iterator[Interrupt]:
    one = Interrupt()
    yield one
    one.close()


class Waiting:
    """A near end that waits for its interrupt alone."""

    def __init__(self, interrupt: Interrupt) -> None:
        self._interrupt = interrupt

    def run(self, _trial: Trial) -> Generator[TrialEvent, None, None]:
        self._interrupt.wait(60)
        yield from ()


def events(produce: Produce[bytes], trial: Trial, interrupt: Interrupt) -> Iterator[TrialEvent]:
    service = FarService(produce)
    record = FarHostRecord(
        inventory=host(), program=PROGRAM, address="192.0.2.8", near_address="192.0.2.7"
    )
    far = FarHost(cast(RemoteService, service), record)
    try:
        yield from FarTransport(Waiting, far, None, "job", interrupt).run(trial)
    finally:
        service.close()


def trial(tool: str = "sockperf", **params: Any) -> Trial:
    own = tool == "hostbench"
    between: dict[str, Any] = {"target": "far_host", "streams": 1}
    return Trial(
        tool=tool,
        subsystem="net",
        workload="tcp_rr",
        params=between | params,
        timeout_s=60,
        beside=None if own else Beside(cpus=(0,), rate=1.0, elapsed_s=1.0),
    )


def test_a_far_host_that_is_lost_ends_a_peer(interrupt: Interrupt) -> None:
    """A tool without heartbeats would wait for its own timeout."""
    began_s = time.monotonic()
    with pytest.raises(ServiceLost, match="is gone"):
        list(events(opened_and_lost, trial(), interrupt))
    assert time.monotonic() - began_s < SOON_S
    interrupt.wait(0)


def test_a_peer_without_a_session_is_in_the_record(interrupt: Interrupt) -> None:
    found = events(refusing(422, "invalid"), trial(), interrupt)
    start = next(found)
    with pytest.raises(TrialFailed, match="it says no"):
        next(found)
    assert isinstance(start, PeerStartEvent) and start.tool == "sockperf"


@pytest.mark.parametrize("tool", ["hostbench", "sockperf"])
def test_a_far_host_that_this_very_job_holds(tool: str, interrupt: Interrupt) -> None:
    began_s = time.monotonic()
    with pytest.raises(ResourceError, match="on the same host as the other end"):
        list(events(refusing(409, "busy", holder={"job": "job"}), trial(tool), interrupt))
    assert time.monotonic() - began_s < SOON_S


@pytest.mark.parametrize(
    ("params", "rate", "most"),
    [
        ({}, None, None),
        ({"rate": 1e6}, 1.1e6, None),
        ({"rate": 1e6, "direction": "both"}, 2.2e6, None),
        ({"total_bytes": 10**9}, None, None),
        ({"total_bytes": 10**9, "warmup_s": 0.5}, None, None),
        ({"total_bytes": 10**9, "warmup_s": 0}, None, 1_100_000_000 + (4 << 20)),
        ({"total_bytes": 10**9, "warmup_s": 1, "rate": 1e9}, 1.1e9, 2_200_000_000 + (4 << 20)),
    ],
)
def test_what_a_session_may_carry(
    params: dict[str, Any], rate: float | None, most: int | None, interrupt: Interrupt
) -> None:
    service = FarService(refusing(422, "invalid"))
    record = FarHostRecord(
        inventory=host(), program=PROGRAM, address="192.0.2.8", near_address="192.0.2.7"
    )
    far = FarHost(cast(RemoteService, service), record)
    with pytest.raises(TrialFailed):
        list(FarTransport(Waiting, far, None, "job", interrupt).run(trial("hostbench", **params)))
    service.close()
    (request,) = service.requests
    assert request.rate == (rate and pytest.approx(rate)) and request.bytes == (
        most and pytest.approx(most, abs=1)
    )
    assert request.sha256 == PROGRAM.sha256


def test_a_token_is_not_shown() -> None:
    assert TOKEN not in repr(SessionPlace(**PLACE, token=TOKEN))
    assert TOKEN not in repr(SessionEvent(**PLACE, token=TOKEN))


@pytest.mark.parametrize("text", ["::ffff:224.0.0.1", "::ffff:192.0.2.7"])
def test_an_address_that_is_another(text: str) -> None:
    with pytest.raises(ValueError, match="is an IPv4 address written as one of IPv6"):
        SessionPlace(address=text, port=1)


def test_what_breaks_in_counts_while_it_is_open(interrupt: Interrupt) -> None:
    one = Breakable(interrupt)
    one.break_in(ServiceLost("too early"))
    with one.open():
        one.wait(0)
        one.break_in(ServiceLost("now"))
        with pytest.raises(ServiceLost, match="now"):
            one.wait(60)
    one.wait(0)
    with one.open():
        one.wait(0)
        interrupt.trip()
        assert one.count == 1
        with pytest.raises(Interrupted):
            one.wait(60)
