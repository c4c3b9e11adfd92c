"""The service of a host is killed, and is away."""

import time

import pytest

from hostbench.model.jobs import StackState
from tests.faults.stack import SHORT, SHORT_THEN_LONG, StackParts, go_on, pause
from tests.patience import SOON_S, wait_until
from tests.stack.orchestrator_process import OrchestratorProcess
from tests.stack.service_process import ServiceProcess

pytestmark = pytest.mark.usefixtures("idle_afterwards")


def test_killed_in_mid_trial(orchestrator: OrchestratorProcess, service: ServiceProcess) -> None:
    job = orchestrator.submit(**SHORT_THEN_LONG)
    orchestrator.wait_for(job, StackState.RUNNING)
    service.wait_for_program()
    behind = [orchestrator.submit(**SHORT) for _ in range(3)]
    service.kill()
    assert service.programs_gone_within()
    view = orchestrator.wait_for(job)
    assert view["state"] == "failed" and service.url in view["reason"], view
    assert "cases are measured and kept" in view["reason"]
    orchestrator.wait_for_host("bench-1", "gone")
    time.sleep(2)
    wait_until(
        lambda: {orchestrator.job(one)["state"] for one in behind} == {"queued"},
        lambda: "what waits does not fail with it",
    )
    service.start()
    for one in behind:
        assert orchestrator.wait_for(one)["state"] == "succeeded"


@pytest.mark.exhaustive
def test_killed_when_nothing_runs(
    stack: StackParts, orchestrator: OrchestratorProcess, service: ServiceProcess
) -> None:
    """It still counts as registered: the job that finds out waits, and does not fail."""
    service.kill()
    try:
        # One alone: as soon as it has found out, no other is accepted.
        job = orchestrator.submit(**SHORT)
        wait_until(lambda: orchestrator.job(job)["reason"])
        view = orchestrator.job(job)
        assert view["state"] == "queued" and "cannot be reached" in view["reason"]
        refused = orchestrator.client.post("/jobs", json=SHORT)
        assert refused.status_code == 422 and "no host is registered" in refused.json()["detail"]
        named = orchestrator.client.post("/jobs", json={**SHORT, "hosts": ["bench-1"]})
        assert named.status_code == 422 and "'bench-1' is gone" in named.json()["detail"]
    finally:
        service.start()
    assert orchestrator.wait_for(job)["state"] == "succeeded"
    assert len(stack.sessions(job)) == 1


def test_an_answer_that_never_comes(
    orchestrator: OrchestratorProcess, service: ServiceProcess
) -> None:
    """A service that hangs before the job began: the job waits; cancelling it works."""
    pause(service)
    job = orchestrator.submit(**SHORT)
    orchestrator.wait_for(job, StackState.WAITING)
    assert orchestrator.client.delete(f"/jobs/{job}").status_code == 202
    assert orchestrator.wait_for(job, seconds=SOON_S)["state"] == "cancelled"
    go_on(service)
    orchestrator.wait_for_host("bench-1")
    assert orchestrator.wait_for(orchestrator.submit(**SHORT))["state"] == "succeeded"
