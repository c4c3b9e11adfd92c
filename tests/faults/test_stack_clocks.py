"""The wall clocks of Redis, orchestrator and service are set; everything is suspended."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostbench.model.jobs import StackState
from orchestrator.queue.jobs import ALIVE_S, LEASE_S
from tests.faults.stack import SHORT, SHORT_THEN_LONG, StackParts
from tests.faults.stepped_clock import HOURS_S, SteppedClock
from tests.patience import PATIENCE_S
from tests.stack.orchestrator_process import OrchestratorProcess

PARTS = ("redis", "orchestrator", "service")
# Each is a step from the one before; the last one sets the clock right.
STEPS_S = (8 * HOURS_S, -8 * HOURS_S, 60, -60, 0)
SUSPENDED_S = 30.0


class SteppedStack:
    """One of each part, each with a clock of its own."""

    def __init__(self, root: Path) -> None:
        self.clocks = {part: SteppedClock(root / f"{part}-clock") for part in PARTS}
        self.parts = StackParts(root, **self.clocks["redis"].environment)

    def __enter__(self) -> "SteppedStack":
        environment = self.clocks["orchestrator"].environment
        self.orchestrator = self.parts.orchestrator(**environment)
        environment = self.clocks["service"].environment
        self.service = self.parts.host(self.orchestrator, certificate=None, **environment)
        return self

    def __exit__(self, *exception: object) -> None:
        self.parts.__exit__(*exception)


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[SteppedStack]:
    with SteppedStack(tmp_path) as stepped:
        yield stepped


def check_short_job(orchestrator: OrchestratorProcess) -> None:
    view = orchestrator.wait_for(orchestrator.submit(**SHORT))
    assert view["state"] == "succeeded", view


def running_job(stack: SteppedStack, seconds: float) -> str:
    """A job whose program runs for so long."""
    case = {"workload": "cpu.clock", "params": {"threads": 1, "duration_s": seconds}}
    suite = {**SHORT_THEN_LONG["suite"], "cases": [case]}
    job = stack.orchestrator.submit(suite=suite)
    stack.service.wait_for_program()
    return job


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.sampled(3)
@pytest.mark.timeout(180)
def test_a_clock_that_is_set_fails_no_job(stack: SteppedStack, part: str) -> None:
    """Before a job, in the middle of one, and after it."""
    for step_s in STEPS_S:
        job = running_job(stack, 3)
        stack.clocks[part].step(step_s)
        view = stack.orchestrator.wait_for(job)
        assert (view["state"], view["sessions"]) == ("succeeded", 1), (part, step_s, view)
        check_short_job(stack.orchestrator)


def test_fences_of_a_clock_that_was_ahead_lock_no_job_out(stack: SteppedStack) -> None:
    """Also when Redis, which knew the last one, was wiped meanwhile."""
    stack.clocks["redis"].step(8 * HOURS_S)
    check_short_job(stack.orchestrator)
    stack.clocks["redis"].step(0)
    check_short_job(stack.orchestrator)
    stack.parts.redis.wipe()
    stack.orchestrator.wait_for_host("bench-1")
    check_short_job(stack.orchestrator)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("what", ["lease", "registration"])
@pytest.mark.sampled(2)
def test_the_dead_are_missed_in_time_whatever_the_clock_says(
    stack: SteppedStack, what: str
) -> None:
    """A clock that is set back keeps neither a lease nor a registration alive."""
    job = running_job(stack, 600)
    other = stack.parts.orchestrator("other")
    stack.orchestrator.kill()
    stack.service.kill()
    stack.clocks["redis"].step(-8 * HOURS_S)
    if what == "lease":
        other.wait_for(job, StackState.LOST, seconds=LEASE_S + PATIENCE_S)
    else:
        other.wait_for_host("bench-1", "gone", seconds=ALIVE_S + PATIENCE_S)


@pytest.mark.timeout(180)
def test_a_job_survives_that_all_is_suspended(stack: SteppedStack) -> None:
    """As a virtual machine is; its clock stands still or jumps."""
    job = running_job(stack, 4)
    processes = processes_of(stack)
    for pid in processes:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(SUSPENDED_S)
    for clock in stack.clocks.values():
        clock.step(int(SUSPENDED_S))
    for pid in processes:
        os.kill(pid, signal.SIGCONT)
    view = stack.orchestrator.wait_for(job)
    assert (view["state"], view["sessions"]) == ("succeeded", 1), view
    check_short_job(stack.orchestrator)


def processes_of(stack: SteppedStack) -> list[int]:
    """The processes of a stack on one machine."""
    return [
        stack.orchestrator.pid,
        stack.service.pid,
        *stack.service.program_pids(),
        stack.parts.redis.pid,
    ]
