"""The orchestrator's side of a trial: what it says of whatever becomes of the other side."""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hostbench.base.errors import BusyError, ResourceError
from hostbench.base.exitcode import ExitCode
from hostbench.base.interrupt import Interrupt, Interrupted
from hostbench.model.events import (
    ControlPlaneEvent,
    EndEvent,
    OthersEvent,
    ProcessUsage,
    SampleEvent,
    SkipEvent,
    StartEvent,
)
from hostbench.model.peer import PeerEndEvent, PeerStartEvent, TrialEvent
from hostbench.model.service import LEASE_S
from hostbench.model.table import Table
from hostbench.model.trial import Beside, Trial, TrialFailed
from hostbench.programs.program import load_program
from hostbench.remote import client
from hostbench.remote.client import OVERTIME_S, RemoteService, RemoteWatch, ServiceLost
from hostbench.remote.transport import HttpTransport
from tests.patience import SOON_S
from tests.service.conftest import StartService, behaving, check_and_stop
from tests.service.streams import LONG, lock_is_free, outcome, running
from tests.stack.ports import free_port
from tests.stack.service_process import SERVICE_KEY, ServiceProcess

SCRIPTED_PEER = Path(__file__).parents[1] / "faults" / "scripted_peer.py"


@pytest.fixture
def interrupt() -> Iterator[Interrupt]:
    one = Interrupt()
    yield one
    one.close()


def trial(**changes: Any) -> Trial:
    given: dict[str, Any] = {
        "tool": "hostbench",
        "subsystem": "cpu",
        "workload": "clock",
        "params": {"threads": 1, "duration_s": 0.05, "warmup_s": 0},
        "timeout_s": 60,
        "id": "0123456789abcdef-0",
    }
    return Trial(**given | changes)


LONG_TRIAL = trial(params={"threads": 1, "duration_s": 60})


def with_primary(table: Table, name: str) -> Table:
    """The table with another primary metric than the service's program has."""
    workloads = tuple(
        workload.model_copy(
            update={"metrics": (workload.primary.model_copy(update={"name": name}),)}
        )
        for workload in table.workloads
    )
    return table.model_copy(update={"workloads": workloads})


class Carried:
    """A transport to one service."""

    def __init__(
        self,
        service: ServiceProcess,
        interrupt: Interrupt,
        primary: str | None = None,
        **options: Any,
    ) -> None:
        """`primary`: what the caller takes for the primary metric of every workload."""
        self.service = service
        self.remote = service.remote()
        self.waited: list[str] = []
        self.events: list[TrialEvent] = []
        options = {"fence": None, "job": "job", "on_waiting": self.waited.append} | options
        served = self.remote.table()
        table = served.table
        if primary is not None:
            table = with_primary(table, primary)
        programs = {"cpu": options.pop("sha256", None) or served.program.sha256}
        self.transport = HttpTransport(
            {"cpu": self.remote}, programs, {"cpu": table}, interrupt=interrupt, **options
        )

    def run(self, one: Trial) -> list[TrialEvent]:
        try:
            # One by one: those before a failure count.
            for event in self.transport.run(one):
                self.events.append(event)
                if isinstance(event, StartEvent):
                    self.service.make_programs_yield()
            return self.events
        finally:
            self.remote.close()

    def begun(self, one: Trial) -> Iterator[TrialEvent]:
        """The rest of a trial whose first event is there."""
        events = self.transport.run(one)
        assert isinstance(next(events), StartEvent)
        self.service.make_programs_yield()
        return events


def test_a_trial_comes_as_if_it_were_local(service: ServiceProcess, interrupt: Interrupt) -> None:
    params = {"threads": 1, "duration_s": 0.5, "sample_interval_s": 0.1}
    events = Carried(service, interrupt).run(trial(params=params))
    assert isinstance(events[0], StartEvent) and events[0].params["duration_s"] == 0.5
    assert isinstance(events[-3], EndEvent) and events[-3].metrics["clock_hertz"]
    assert isinstance(events[-1], ControlPlaneEvent)
    # Five, or more where the program was held up.
    samples = events[1:-3]
    assert len(samples) >= 5 and {type(one) for one in samples} == {SampleEvent}


def test_what_else_was_used_is_added(service: ServiceProcess, interrupt: Interrupt) -> None:
    begun: list[str] = []
    redis = ProcessUsage(component="redis", cpu_s=0.5, elapsed_s=1.0, written_bytes=None)

    def meter() -> Any:
        begun.append("")
        return lambda: (redis,)

    carried = Carried(service, interrupt, meter=meter)
    for events in (list(carried.transport.run(trial())), carried.run(trial())):
        assert isinstance(events[-1], ControlPlaneEvent)
        assert [one.component for one in events[-1].processes] == ["service", "redis"]
    assert len(begun) == 2


def test_many_trials_over_one_connection(service: ServiceProcess, interrupt: Interrupt) -> None:
    carried = Carried(service, interrupt)
    sockets = _sockets()
    for _ in range(10):
        list(carried.transport.run(trial()))
        assert _sockets() <= sockets + 1
    carried.remote.close()
    assert _sockets() < sockets


def _sockets() -> int:
    links = []
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            links.append(str(entry.readlink()))
    return sum(link.startswith("socket:") for link in links)


def test_a_skip(service: ServiceProcess, interrupt: Interrupt) -> None:
    one = trial(workload="fma", params={"isa": "neon"})
    events = Carried(service, interrupt).run(one)
    assert isinstance(events[0], SkipEvent) and isinstance(events[-1], ControlPlaneEvent)


def test_a_failure_has_the_program_s_own_words(
    scripted: ServiceProcess, interrupt: Interrupt
) -> None:
    carried = Carried(scripted, interrupt)
    with behaving(scripted, "wrong"), pytest.raises(TrialFailed) as caught:
        carried.run(trial(workload="fma", params={"threads": 1}))
    assert caught.value.code == "wrong_result" and caught.value.exit_code == ExitCode.CORRUPT
    assert caught.value.message == "lane 3 is 1.5, not 1.25"
    assert [one.event for one in carried.events] == ["start", "error", "control_plane"]


def test_another_workload_than_requested(scripted: ServiceProcess, interrupt: Interrupt) -> None:
    """The figures of a program that measures something else are no figures here either."""
    carried = Carried(scripted, interrupt, primary="clock_hertz_x")
    with pytest.raises(TrialFailed, match="no clock_hertz_x") as caught:
        carried.run(trial(workload="fma", params={"threads": 1}))
    assert caught.value.code == "no_figure"


def test_a_parameter_that_is_refused(service: ServiceProcess, interrupt: Interrupt) -> None:
    with pytest.raises(TrialFailed, match="1 to 4096") as caught:
        Carried(service, interrupt).run(trial(params={"threads": 0}))
    assert caught.value.code == "refused" and caught.value.exit_code == 2


def test_another_program_than_planned_with(service: ServiceProcess, interrupt: Interrupt) -> None:
    with pytest.raises(TrialFailed, match="another build") as caught:
        Carried(service, interrupt, sha256="0" * 64).run(trial())
    assert caught.value.code == "program_changed"


def test_a_program_that_is_gone(scripted: ServiceProcess, interrupt: Interrupt) -> None:
    carried = Carried(scripted, interrupt)
    program = Path(scripted.environment["HOSTBENCH_PROGRAMS"]) / "cpu-bench"
    away = program.rename(program.with_name("away"))
    try:
        with pytest.raises(ResourceError, match="make programs"):
            carried.run(trial())
    finally:
        away.rename(program)


def test_a_busy_host_is_waited_for(service: ServiceProcess, interrupt: Interrupt) -> None:
    carried = Carried(service, interrupt, fence=5)
    with running(service, "by-hand", **LONG) as other:
        threading.Timer(2.0, other.forget_the_lease).start()
        kinds = [type(one) for one in carried.run(trial()) if not isinstance(one, SampleEvent)]
    assert kinds == [StartEvent, EndEvent, OthersEvent, ControlPlaneEvent]
    assert carried.waited and "by-hand" in carried.waited[0]


@pytest.mark.exhaustive
def test_a_busy_host_is_not_waited_for_for_ever(
    service: ServiceProcess, interrupt: Interrupt
) -> None:
    carried = Carried(service, interrupt, busy_s=1.5)
    with running(service, "by-hand", **LONG), pytest.raises(BusyError, match="by-hand"):
        carried.run(trial())
    assert 1 <= len(carried.waited) <= 2


def test_waiting_ends_with_the_interrupt(service: ServiceProcess, interrupt: Interrupt) -> None:
    carried = Carried(service, interrupt)
    threading.Timer(1.5, interrupt.trip).start()
    with running(service, "by-hand", **LONG), pytest.raises(Interrupted):
        carried.run(trial())


def test_a_stale_fence(service: ServiceProcess, interrupt: Interrupt) -> None:
    Carried(service, interrupt, fence=9).run(trial())
    with pytest.raises(ServiceLost, match="fence 8 is too old"):
        Carried(service, interrupt, fence=8).run(trial())


def test_being_preempted(service: ServiceProcess, interrupt: Interrupt) -> None:
    threading.Timer(1.5, service.post, kwargs={"id": "x", "fence": 11, **LONG}).start()
    with pytest.raises(ServiceLost, match="a higher fence took this host"):
        Carried(service, interrupt, fence=10).run(LONG_TRIAL)
    assert service.programs_gone_within()


def test_the_lease_is_renewed(scripted: ServiceProcess, interrupt: Interrupt) -> None:
    one = trial(params={"threads": 1, "duration_s": LEASE_S + 2})
    with behaving(scripted, "sleeps"):
        assert isinstance(Carried(scripted, interrupt).run(one)[-3], EndEvent)


def test_the_interrupt_ends_it_at_once(service: ServiceProcess, interrupt: Interrupt) -> None:
    carried = Carried(service, interrupt)
    threading.Timer(1.0, interrupt.trip).start()
    with pytest.raises(Interrupted):
        carried.run(LONG_TRIAL)
    assert outcome(service, LONG_TRIAL.id) == "caller_gone", "its lease has not run out"
    assert service.programs_gone_within() and lock_is_free(service.lock)


def test_leaving_it_early_ends_it(service: ServiceProcess, interrupt: Interrupt) -> None:
    carried = Carried(service, interrupt)
    stream = carried.transport.run(LONG_TRIAL)
    assert isinstance(next(stream), StartEvent)
    stream.close()
    carried.remote.close()
    assert outcome(service, LONG_TRIAL.id) == "caller_gone", "its lease has not run out"
    assert service.programs_gone_within()


def test_a_service_that_is_stopped(scripted: ServiceProcess, interrupt: Interrupt) -> None:
    carried = Carried(scripted, interrupt)
    pid = scripted.pid
    began_s = time.monotonic()
    with behaving(scripted, "sleeps"):
        events = carried.begun(LONG_TRIAL)
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(ServiceLost, match="has not renewed the lease"):
        list(events)
    carried.remote.close()
    assert LEASE_S < time.monotonic() - began_s < LEASE_S + SOON_S
    os.kill(pid, signal.SIGCONT)
    assert scripted.programs_gone_within(), "it goes on where its lease has run out"


def test_the_interrupt_while_the_service_is_stopped(
    service: ServiceProcess, interrupt: Interrupt
) -> None:
    carried = Carried(service, interrupt)
    os.kill(service.pid, signal.SIGSTOP)
    threading.Timer(0.5, interrupt.trip).start()
    with pytest.raises(Interrupted):
        carried.run(trial())
    os.kill(service.pid, signal.SIGCONT)


def test_a_service_that_is_killed(service: ServiceProcess, interrupt: Interrupt) -> None:
    carried = Carried(service, interrupt)
    events = carried.begun(LONG_TRIAL)
    service.kill()
    with pytest.raises(ServiceLost, match="closed the connection during its answer"):
        list(events)
    carried.remote.close()


def test_a_service_that_ends(service: ServiceProcess, interrupt: Interrupt) -> None:
    carried = Carried(service, interrupt)
    events = carried.begun(LONG_TRIAL)
    stopping = threading.Thread(target=service.stop)
    stopping.start()
    with pytest.raises(ServiceLost, match="the service is stopping"):
        list(events)
    stopping.join()
    carried.remote.close()


class LeapingClock:
    """The clock that no process can set, in this process: it leaps, as where a hypervisor stops its
    guest and lets the clock run on."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.ahead_s = 0.0
        real = time.monotonic
        patch.setattr(time, "monotonic", lambda: real() + self.ahead_s)


def test_a_suspended_machine_ends_no_trial(
    service: ServiceProcess, interrupt: Interrupt, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was away for longer than the trial may take."""
    clock = LeapingClock(monkeypatch)
    carried = Carried(service, interrupt)
    one = trial(params={"threads": 1, "duration_s": 4})
    events = carried.begun(one)
    clock.ahead_s = one.timeout_s + OVERTIME_S + 3600
    rest = list(events)
    carried.remote.close()
    assert isinstance(rest[-1], ControlPlaneEvent)
    assert any(isinstance(event, EndEvent) for event in rest)


def test_a_suspended_machine_ends_no_question(
    service: ServiceProcess, interrupt: Interrupt, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = LeapingClock(monkeypatch)
    remote = service.remote()

    def leap() -> None:
        clock.ahead_s = 3600

    timer = threading.Timer(0.5, leap)
    timer.start()
    assert remote.idle(1.5, interrupt).window.seconds > 1
    timer.join()
    remote.close()


def test_a_trial_that_the_service_does_not_end(
    scripted: ServiceProcess, interrupt: Interrupt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "OVERTIME_S", 1 - LONG_TRIAL.timeout_s)
    carried = Carried(scripted, interrupt)
    with behaving(scripted, "sleeps"), pytest.raises(ServiceLost, match="does not come to the end"):
        carried.run(LONG_TRIAL)
    assert scripted.programs_gone_within()


def test_no_service_there(interrupt: Interrupt) -> None:
    remote = RemoteService(f"http://127.0.0.1:{free_port()}", SERVICE_KEY)
    transport = HttpTransport(
        {"cpu": remote},
        {"cpu": "0" * 64},
        {"cpu": load_program("cpu").table},
        None,
        "job",
        interrupt,
    )
    with pytest.raises(ServiceLost, match="cannot be reached"):
        list(transport.run(trial()))
    with pytest.raises(ServiceLost, match="cannot be reached"):
        remote.table()
    with pytest.raises(ServiceLost, match="cannot be reached"):
        RemoteWatch(remote).look(interrupt)
    remote.close()


def test_the_wrong_key(service: ServiceProcess, interrupt: Interrupt) -> None:
    remote = RemoteService(service.url, "a key of somebody else")
    with pytest.raises(ServiceLost, match="the key is not the one of this server"):
        remote.host()
    remote.close()


def test_the_watch(service: ServiceProcess, interrupt: Interrupt) -> None:
    remote = service.remote()
    answer = RemoteWatch(remote, 0.3).look(interrupt)
    assert 0.3 <= answer.window.seconds < 10 and answer.window.busy_ratio is not None
    threading.Timer(0.5, interrupt.trip).start()
    with pytest.raises(Interrupted):
        RemoteWatch(remote, 10).look(interrupt)
    remote.close()


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the service with a peer looks first."""
    return tmp_path_factory.mktemp("tools")


@pytest.fixture(scope="module")
def with_peer(tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service that finds the peer which `install` puts there."""
    root = tmp_path_factory.mktemp("with_peer")
    install(tools, "")
    one = ServiceProcess(root, PATH=f"{tools}:{os.environ['PATH']}")
    one.start()
    yield one
    check_and_stop(one)


def install(tools: Path, script: str) -> None:
    """The scripted peer with this behaviour."""
    command = f'PEER={script} exec {sys.executable} {SCRIPTED_PEER} "$@"'
    (tools / "likwid-bench").write_text(f"#!/bin/sh\n{command}\n")
    (tools / "likwid-bench").chmod(0o755)


def test_a_peer_is_a_trial(with_peer: ServiceProcess, tools: Path, interrupt: Interrupt) -> None:
    install(tools, "")
    peer = trial(
        tool="likwid-bench",
        workload="fma",
        # As a trial resolves them on a shared CPU: shorter slices than may be requested.
        params={"dtype": "fp64", "isa": "avx2", "threads": 1, "slice_s": 0.0005},
        beside=Beside(cpus=(0,), rate=1e9, elapsed_s=0.1),
    )
    started, ended, control_plane = Carried(with_peer, interrupt).run(peer)
    assert isinstance(started, PeerStartEvent) and started.version == "9.9.9"
    assert isinstance(ended, PeerEndEvent) and "MFlops/s" in ended.output
    assert isinstance(control_plane, ControlPlaneEvent)


def test_a_peer_that_is_not_installed(
    start_service: StartService, tmp_path: Path, interrupt: Interrupt
) -> None:
    (tmp_path / "tools").mkdir()
    service = start_service(PATH=str(tmp_path / "tools"))
    peer = trial(
        tool="likwid-bench",
        workload="fma",
        params={"dtype": "fp64", "isa": "avx2", "threads": 1},
        beside=Beside(cpus=(0,), rate=1e9, elapsed_s=0.1),
    )
    started, skipped, _ = Carried(service, interrupt).run(peer)
    assert isinstance(started, PeerStartEvent) and isinstance(skipped, SkipEvent)
    assert "apt install" in skipped.reason


def test_a_peer_ends_with_its_caller(
    with_peer: ServiceProcess, tools: Path, interrupt: Interrupt
) -> None:
    install(tools, "hanging_grandchild")
    peer = trial(
        tool="likwid-bench",
        workload="fma",
        params={"dtype": "fp64", "isa": "avx2", "threads": 1},
        beside=Beside(cpus=(0,), rate=1e9, elapsed_s=0.1),
    )
    threading.Timer(1.5, interrupt.trip).start()
    with pytest.raises(Interrupted):
        Carried(with_peer, interrupt).run(peer)
    assert with_peer.programs_gone_within() and lock_is_free(with_peer.lock)
