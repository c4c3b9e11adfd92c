"""Somebody outside the queue has a host: its jobs wait as long as it takes, and say for whom."""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostbench.host.lock import HostLock
from hostbench.model.jobs import StackState
from tests.faults.command import PROGRAMS, Command
from tests.faults.stack import SHORT, SHORT_THEN_LONG, StackParts
from tests.patience import SOON_S, wait_until
from tests.stack.orchestrator_process import OrchestratorProcess
from tests.stack.service_process import ServiceProcess

BY_HAND = (
    "run", "--workload", "cpu.clock", "--param", "threads=1", "--param", "duration_s=600",
    "--trials", "1", "--idle-policy", "force",
)  # fmt: skip


@pytest.fixture(scope="module")
def other(stack: StackParts, orchestrator: OrchestratorProcess) -> ServiceProcess:
    """A host that no run holds."""
    return stack.host(orchestrator, "bench-2")


@pytest.fixture
def holder(service: ServiceProcess) -> Iterator[int]:
    """A descriptor of the lock file, as any process may open it; the lock goes with it."""
    descriptor = os.open(service.lock, os.O_RDWR)
    yield descriptor
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def check_waiting(orchestrator: OrchestratorProcess, jobs: list[str], words: str) -> None:
    """The first in the queue has the reason; none has the host."""
    wait_until(
        lambda: words in (orchestrator.job(jobs[0])["reason"] or ""), lambda: orchestrator.log
    )
    reason = orchestrator.job(jobs[0])["reason"]
    assert "bench-1 is held outside the queue by" in reason and "fuser" in reason
    assert {orchestrator.job(job)["state"] for job in jobs} == {"queued"}
    assert orchestrator.wait_for_host("bench-1")["job"] is None


@pytest.mark.usefixtures("idle_afterwards")
def test_a_run_by_hand_fails_no_job(
    orchestrator: OrchestratorProcess,
    service: ServiceProcess,
    other: ServiceProcess,
    tmp_path: Path,
) -> None:
    command = Command(tmp_path, PROGRAMS, HOSTBENCH_LOCK=str(service.lock))
    run = command.start(*BY_HAND)
    wait_until(lambda: b"ad-hoc" in service.lock.read_bytes())
    both = orchestrator.submit(**SHORT, hosts=["bench-1", other.host])
    jobs = [both, *(orchestrator.submit(**SHORT, hosts=["bench-1"]) for _ in range(2))]
    free = orchestrator.submit(**SHORT, hosts=[other.host])
    assert orchestrator.wait_for(free)["state"] == "succeeded", "its host is not reserved"
    check_waiting(orchestrator, jobs, f"pid {run.pid}")
    run.terminate()
    run.communicate(timeout=SOON_S)
    ended_s = time.monotonic()
    assert [orchestrator.wait_for(job)["state"] for job in jobs] == ["succeeded"] * 3
    assert time.monotonic() - ended_s < SOON_S


@pytest.mark.usefixtures("idle_afterwards")
def test_a_process_that_gives_no_name_is_reported(
    orchestrator: OrchestratorProcess, service: ServiceProcess, holder: int
) -> None:
    assert orchestrator.wait_for(orchestrator.submit(**SHORT, hosts=["bench-1"]))
    fcntl.flock(holder, fcntl.LOCK_EX)
    job = orchestrator.submit(**SHORT, hosts=["bench-1"])
    check_waiting(orchestrator, [job], "a process that the lock file does not name")
    fcntl.flock(holder, fcntl.LOCK_UN)
    assert orchestrator.wait_for(job)["state"] == "succeeded"


@pytest.mark.usefixtures("idle_afterwards")
def test_a_job_that_has_begun_waits_with_its_reason(
    orchestrator: OrchestratorProcess, service: ServiceProcess, holder: int
) -> None:
    case = {"workload": "cpu.clock", "params": {"threads": 1, "duration_s": 1.5}}
    cases = [case, {**case, "params": {"threads": 1, "duration_s": 0.1}}]
    suite = {**SHORT_THEN_LONG["suite"], "cases": cases}
    job = orchestrator.submit(suite=suite, hosts=["bench-1"])
    service.wait_for_program()
    # Granted between the two trials.
    fcntl.flock(holder, fcntl.LOCK_EX)
    with contextlib.closing(HostLock(service.lock)) as lock:
        lock.name_holder("a long run")
    waiting = orchestrator.wait_for(job, StackState.WAITING)
    wait_until(lambda: "a long run" in (orchestrator.job(job)["reason"] or ""))
    assert waiting["progress"]["done"] == 1
    fcntl.flock(holder, fcntl.LOCK_UN)
    view = orchestrator.wait_for(job)
    assert (view["state"], view["reason"], view["sessions"]) == ("succeeded", None, 1)
