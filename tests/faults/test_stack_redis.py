"""Redis is stopped, killed, paused and wiped in the middle of a trial."""

import time

import pytest

from hostbench.model.jobs import StackState
from orchestrator.queue.jobs import LEASE_S
from tests.faults.stack import SHORT, SHORT_THEN_LONG, StackParts, trials_begun
from tests.patience import wait_until
from tests.stack.orchestrator_process import OrchestratorProcess
from tests.stack.service_process import ServiceProcess

pytestmark = pytest.mark.usefixtures("idle_afterwards")


@pytest.fixture(scope="module")
def script() -> str:
    """A trial of the host lasts, and leaves the CPU to other tests."""
    return "sleeps"


def long_job(orchestrator: OrchestratorProcess, service: ServiceProcess) -> str:
    job = orchestrator.submit(**SHORT_THEN_LONG)
    wait_until(lambda: len(list(trials_begun(service, job))) >= 2, lambda: orchestrator.log)
    # The trial is announced before its program is started.
    service.wait_for_program()
    return job


@pytest.mark.parametrize("how", ["stop", "pause"])
@pytest.mark.sampled(2)
def test_away_for_longer_than_a_lease(
    stack: StackParts, orchestrator: OrchestratorProcess, service: ServiceProcess, how: str
) -> None:
    job = long_job(orchestrator, service)
    waiting = [orchestrator.submit(**SHORT) for _ in range(3)]
    redis = stack.redis
    leave, come_back = {"stop": (redis.stop, redis.start), "pause": (redis.pause, redis.resume)}[
        how
    ]
    begun_s = time.monotonic()
    leave()
    try:
        # The last renewal was some seconds before: the lease ends LEASE_S after it at the latest.
        assert service.programs_gone_within(LEASE_S), "the trial is over before its lease"
        after_s = time.monotonic() - begun_s
        assert after_s > 4, "it does not give up at once"
        time.sleep(max(0.0, LEASE_S + 1 - after_s))
    finally:
        come_back()
    assert orchestrator.wait_for(job)["state"] == "lost"
    for one in waiting:
        assert orchestrator.wait_for(one)["state"] == "succeeded", "accepted jobs are still there"
    assert stack.states(job).count("lost") == 1
    assert len(stack.trials(job)) == 1, "the finished trial is kept"


def test_away_for_a_moment(
    stack: StackParts, orchestrator: OrchestratorProcess, service: ServiceProcess
) -> None:
    """The trial goes on: nothing happened to its lease."""
    suite = {**SHORT_THEN_LONG["suite"], "cases": [SHORT_THEN_LONG["suite"]["cases"][0] | {}]}
    suite["cases"][0] = {"workload": "cpu.clock", "params": {"threads": 1, "duration_s": 8}}
    job = orchestrator.submit(suite=suite)
    service.wait_for_program()
    stack.redis.kill()
    time.sleep(2)
    stack.redis.start()
    assert orchestrator.wait_for(job)["state"] == "succeeded"
    assert len(list(trials_begun(service, job))) == 1


def test_wiped(
    stack: StackParts, orchestrator: OrchestratorProcess, service: ServiceProcess
) -> None:
    job = long_job(orchestrator, service)
    first = max(event["fence"] for event in trials_begun(service))
    stack.redis.wipe()
    assert service.programs_gone_within()
    view = orchestrator.wait_for(job)
    assert view["state"] == "lost" and "Redis no longer knows it" in view["reason"]
    assert orchestrator.result(job)["job"]["state"] == "interrupted"
    # Hosts register again by themselves and are not locked out.
    orchestrator.wait_for_host("bench-1")
    after = orchestrator.submit(**SHORT)
    assert orchestrator.wait_for(after)["state"] == "succeeded"
    assert max(event["fence"] for event in trials_begun(service)) > first
    answer = orchestrator.client.post(f"/jobs/{job}/resume")
    assert answer.status_code == 202
    orchestrator.wait_for(job, StackState.RUNNING)
    orchestrator.client.delete(f"/jobs/{job}")
    view = orchestrator.wait_for(job)
    assert view["sessions"] == 2 and view["progress"]["done"] == 1
