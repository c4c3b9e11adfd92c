"""Trials between two hosts: both are real services here, of a program whose ends can go wrong."""

import os
import signal
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from hostbench.base.errors import BusyError, ResourceError, UsageError
from hostbench.base.interrupt import Interrupt, Interrupted
from hostbench.model.events import ControlPlaneEvent, EndEvent, StartEvent
from hostbench.model.peer import TrialEvent
from hostbench.model.service import LEASE_S
from hostbench.model.trial import Trial, TrialFailed
from hostbench.programs.program import load_program
from hostbench.remote.client import RemoteService, RemoteWatch, ServiceLost
from hostbench.remote.far_host import BothWatch, FarHost, ThisHost, meet
from hostbench.remote.far_session import END_S_MOST, FarTransport
from hostbench.remote.transport import HttpTransport
from hostbench.run.local import LocalTransport
from tests.faults.command import scripted_net_programs
from tests.patience import SOON_S
from tests.service.conftest import StartService, behaving, check_and_stop, running_again
from tests.service.streams import lock_is_free
from tests.stack.service_process import SERVICE_KEY, ServiceProcess

NET: dict[str, Any] = {"subsystem": "net"}


@pytest.fixture
def interrupt() -> Iterator[Interrupt]:
    one = Interrupt()
    yield one
    one.close()


@pytest.fixture
def net_programs(tmp_path: Path) -> Path:
    return scripted_net_programs(tmp_path)


@pytest.fixture(scope="module")
def services(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[ServiceProcess, ServiceProcess]]:
    """A near and a far host, for all tests of this file; each has programs of its own."""
    both = []
    for host in ("near-1", "far-1"):
        root = tmp_path_factory.mktemp(host)
        both.append(ServiceProcess(root, host=host, programs=scripted_net_programs(root), **NET))
    near, far = both
    yield near, far
    for one in both:
        check_and_stop(one)


class Two:
    """A near and a far host, and what a transport between them says."""

    def __init__(
        self, services: tuple[ServiceProcess, ServiceProcess], interrupt: Interrupt
    ) -> None:
        self.near, self.far = map(running_again, services)
        self.interrupt = interrupt
        self.remotes = [self.near.remote(), self.far.remote()]
        self.far_host = meet(self.remotes[1], self.remotes[0], interrupt)
        self.waited: list[str] = []
        self.events: list[TrialEvent] = []

    def transport(self, **options: Any) -> FarTransport:
        near = self.remotes[0]
        served = near.table()
        programs, tables = {"net": served.program.sha256}, {"net": served.table}
        given = {"fence": None, "job": "job", "interrupt": self.interrupt} | options

        def inner(interrupt: Interrupt) -> HttpTransport:
            return HttpTransport(
                {"net": near}, programs, tables, **given | {"interrupt": interrupt}
            )

        return FarTransport(inner, self.far_host, on_waiting=self.waited.append, **given)

    def run(self, one: Trial, **options: Any) -> list[TrialEvent]:
        for event in self.transport(**options).run(one):
            self.events.append(event)
        return self.events

    def begun(self) -> Generator[TrialEvent, None, None]:
        """The rest of a long trial whose first event is there."""
        events = self.transport().run(trial(duration_s=60))
        assert isinstance(next(events), StartEvent)
        return events

    def nothing_is_left(self) -> bool:
        """Whether both hosts are free for the next."""
        both = (self.near, self.far)
        return all(one.programs_gone_within() and lock_is_free(one.lock) for one in both)


@pytest.fixture
def two(services: tuple[ServiceProcess, ServiceProcess], interrupt: Interrupt) -> Iterator[Two]:
    pair = Two(services, interrupt)
    yield pair
    for remote in pair.remotes:
        remote.close()
    assert pair.near.programs_gone_within() and pair.far.programs_gone_within()


def trial(duration_s: float = 0.2, **changes: Any) -> Trial:
    given: dict[str, Any] = {
        "tool": "hostbench",
        "subsystem": "net",
        "workload": "tcp_stream",
        "params": {"streams": 1, "duration_s": duration_s},
        "timeout_s": 60,
        "id": "0123456789abcdef-0",
    }
    return Trial(**given | changes)


def test_the_far_host_says_what_it_is(two: Two) -> None:
    record = two.far_host.record
    assert record.inventory.hostname == "far-1" and record.program.name == "net-bench"
    assert (record.address, record.near_address) == ("127.0.0.1", "127.0.0.1")


@pytest.mark.exhaustive
def test_each_trial_has_a_session_of_its_own(two: Two) -> None:
    for _ in range(3):
        started_s = time.monotonic()
        two.run(trial())
        assert time.monotonic() - started_s < END_S_MOST
    starts = [event for event in two.events if isinstance(event, StartEvent)]
    assert [start.params["target"] for start in starts] == ["far_host"] * 3
    assert sum(isinstance(event, EndEvent) for event in two.events) == 3
    assert isinstance(two.events[-1], ControlPlaneEvent)
    names = [usage.component for usage in two.events[-1].processes]
    assert names == ["service", "far_service"]
    assert two.waited == [] and two.nothing_is_left()


@pytest.mark.exhaustive
def test_a_trial_on_one_host_opens_none(two: Two) -> None:
    params = {"streams": 1, "duration_s": 0.1, "target": "loopback"}
    before = two.far.log.count("session")
    events = two.run(trial(params=params))
    assert isinstance(events[0], StartEvent) and events[0].params["target"] == "loopback"
    assert two.far.log.count("session") == before


def test_a_far_host_that_refuses_the_test(two: Two) -> None:
    with behaving(two.far, "refuses"), pytest.raises(TrialFailed) as caught:
        two.run(trial())
    text = "the far end refused the test; far host far-1: 5 streams are requested, 2 are allowed"
    assert (caught.value.code, caught.value.message) == ("refused", text)
    assert two.nothing_is_left()


@pytest.mark.exhaustive
def test_a_session_without_a_near_end_in_time(two: Two) -> None:
    """It may be that somebody else had the near host: it is tried again until that is hopeless."""
    before = two.far.log.count('"session_begins"')
    with (
        behaving(two.far, "expires"),
        pytest.raises(TrialFailed, match="no near end has proved the token in time"),
    ):
        two.run(trial(), busy_s=6.0)
    assert two.far.log.count('"session_begins"') > before + 1
    assert two.nothing_is_left()


def test_a_far_end_that_crashes(two: Two) -> None:
    started_s = time.monotonic()
    with (
        behaving(two.far, "crash"),
        pytest.raises(TrialFailed, match="the far end closed the connection"),
    ):
        two.run(trial(duration_s=60))
    assert time.monotonic() - started_s < SOON_S
    assert two.nothing_is_left()


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.sampled(2)
def test_a_far_service_that_ends_in_mid_trial(two: Two, signum: signal.Signals) -> None:
    """Its far end ends with it, and the job: no other trial would find the far host."""
    events = two.begun()
    ended_s = time.monotonic()
    os.kill(two.far.pid, signum)
    with pytest.raises(ServiceLost) as caught:
        list(events)
    assert time.monotonic() - ended_s < SOON_S
    two.far.stop()
    assert two.far.url in caught.value.message
    assert two.nothing_is_left()


def test_a_far_host_that_vanishes_ends_the_job(two: Two) -> None:
    """Its service is stopped and its program with it: nothing is closed, no process answers."""
    events = two.begun()
    stopped = [two.far.pid, *two.far.program_pids()]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    stopped_s = time.monotonic()
    with pytest.raises(ServiceLost) as caught:
        list(events)
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    assert time.monotonic() - stopped_s < LEASE_S + SOON_S
    assert two.far.url in caught.value.message
    assert "the measuring end reports: the far end has not been heard of" in caught.value.message
    assert two.nothing_is_left()


@pytest.mark.exhaustive
def test_an_interrupt_ends_both_ends(two: Two, interrupt: Interrupt) -> None:
    events = two.begun()
    interrupt.trip()
    with pytest.raises(Interrupted):
        list(events)
    assert two.nothing_is_left()


@pytest.mark.exhaustive
def test_a_far_host_that_somebody_else_uses_is_waited_for(two: Two) -> None:
    request = {"id": "by-hand", "allowed_address": "127.0.0.1", "duration_s": 60, "expiry_s": 60}
    with two.far.client.stream("POST", "/sessions", json=request) as answer:
        lines = answer.iter_lines()
        next(lines)
        with pytest.raises(BusyError, match="far host far-1: "):
            two.run(trial(), busy_s=0.5)
        assert not two.events
        assert not two.waited, "it may be the session before this one"
        # Until its lease is over.
        two.run(trial())
    assert two.waited
    assert isinstance(two.events[-1], ControlPlaneEvent)


def test_both_ends_at_one_host(
    two: Two, start_service: StartService, net_programs: Path, interrupt: Interrupt
) -> None:
    """Two services that take one lock: each end would wait for the other."""
    again = start_service("again", "again-1", programs=net_programs, lock=two.near.lock, **NET)
    remote = again.remote()
    two.far_host = meet(remote, two.remotes[0], interrupt)
    started_s = time.monotonic()
    with pytest.raises(ResourceError, match="on the same host as the other end"):
        two.run(trial())
    assert time.monotonic() - started_s < SOON_S
    assert two.nothing_is_left()
    remote.close()


@pytest.mark.exhaustive
def test_a_far_host_whose_program_was_built_anew(two: Two) -> None:
    """Its figures would stand under the name of the program before."""
    other = two.far_host.record.program.model_copy(update={"sha256": "0" * 64})
    record = two.far_host.record.model_copy(update={"program": other})
    two.far_host = FarHost(two.remotes[1], record)
    with pytest.raises(TrialFailed, match="another build than the one of the request") as caught:
        two.run(trial())
    assert caught.value.code == "program_changed"


@pytest.mark.exhaustive
def test_the_next_address_of_a_name(
    two: Two, interrupt: Interrupt, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first may be of a version of IP that this host has no way by."""
    places = [("127.255.255.255", 0), ("127.0.0.3", 0)]
    monkeypatch.setattr(
        "socket.getaddrinfo", lambda *_, **__: [(2, 1, 6, "", place) for place in places]
    )
    record = meet(two.remotes[1], ThisHost(), interrupt).record
    assert record.address == "127.0.0.3"


@pytest.mark.exhaustive
def test_a_run_by_hand_with_a_far_host(
    two: Two, net_programs: Path, interrupt: Interrupt, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = FarHost(two.remotes[1], two.far_host.record)
    monkeypatch.setenv("HOSTBENCH_PROGRAMS", str(net_programs))
    program = load_program("net")

    def local(trials: Interrupt) -> LocalTransport:
        return LocalTransport({"net": program}, trials, None)

    transport = FarTransport(local, far, None, "job", interrupt)
    events = list(transport.run(trial()))
    assert isinstance(events[0], StartEvent) and events[0].params["target"] == "far_host"
    assert isinstance(events[-2], EndEvent)
    assert two.nothing_is_left()


def test_both_hosts_are_looked_at(two: Two, interrupt: Interrupt) -> None:
    near, far = (RemoteWatch(remote, window_s=0.1) for remote in two.remotes)
    answer = BothWatch(near, far, "far-1").look(interrupt)
    assert answer.window.busy_ratio is not None


def test_another_service_is_no_far_host(start_service: StartService, interrupt: Interrupt) -> None:
    remote = start_service("cpu").remote()
    with pytest.raises(UsageError, match="is one of subsystem cpu; the far end"):
        meet(remote, ThisHost(), interrupt)
    remote.close()


def test_no_service_there(interrupt: Interrupt) -> None:
    remote = RemoteService("http://127.0.0.1:9", SERVICE_KEY)
    with pytest.raises(ServiceLost, match="cannot be reached"):
        meet(remote, ThisHost(), interrupt)
    remote.close()


@pytest.mark.exhaustive
def test_an_unknown_name(two: Two, interrupt: Interrupt) -> None:
    two.remotes[1].url = "https://no-such-host.invalid:8004"
    with pytest.raises(ResourceError, match=r"the address of no-such-host\.invalid, in"):
        meet(two.remotes[1], ThisHost(), interrupt)


@pytest.mark.exhaustive
def test_no_way_to_one_another(two: Two, interrupt: Interrupt) -> None:
    """For two sockets it is unknown by which address their hosts reach one another."""
    for remote in two.remotes:
        remote.url = "unix:/run/hostbench/net.sock"
    with pytest.raises(UsageError, match="set HOSTBENCH_NET_ADDRESS"):
        meet(two.remotes[1], two.remotes[0], interrupt)


@pytest.mark.exhaustive
def test_a_far_service_at_a_socket(two: Two, interrupt: Interrupt) -> None:
    """That of the orchestrator's own machine: the near host's address shows its own."""
    two.remotes[1].url = "unix:/run/hostbench/net.sock"
    record = meet(two.remotes[1], two.remotes[0], interrupt).record
    assert (record.address, record.near_address) == ("127.0.0.1", "127.0.0.1")


@pytest.mark.exhaustive
def test_an_address_for_data(
    start_service: StartService, net_programs: Path, interrupt: Interrupt
) -> None:
    far = start_service(
        "far", "far-1", programs=net_programs, HOSTBENCH_NET_ADDRESS="127.0.0.2", **NET
    )
    remote = far.remote()
    record = meet(remote, ThisHost(), interrupt).record
    assert (record.address, record.near_address) == ("127.0.0.2", "127.0.0.1")
    remote.close()
