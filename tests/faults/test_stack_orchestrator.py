"""The orchestrator is killed, stopped and told to end in the middle of a trial."""

import time
from pathlib import Path

import pytest

from hostbench.model.jobs import JobView, StackState
from orchestrator.queue.connection import key
from orchestrator.queue.jobs import LEASE_S
from tests.faults.stack import SHORT, SHORT_THEN_LONG, StackParts, go_on, pause
from tests.patience import PATIENCE_S, wait_until
from tests.stack.orchestrator_process import OrchestratorProcess
from tests.stack.service_process import ServiceProcess

# A lease runs out, and the next look for such jobs.
LOST_S = LEASE_S + PATIENCE_S

pytestmark = pytest.mark.usefixtures("idle_afterwards")


@pytest.fixture(scope="module")
def script() -> str:
    """A trial of the host lasts, and leaves the CPU to other tests."""
    return "sleeps"


def in_mid_trial(orchestrator: OrchestratorProcess, service: ServiceProcess) -> str:
    """A job whose first case is done and whose second one runs."""
    job = orchestrator.submit(**SHORT_THEN_LONG)
    wait_until(
        lambda: (orchestrator.job(job)["progress"] or {}).get("done"), lambda: orchestrator.log
    )
    service.wait_for_program()
    return job


def kept_as(stack: StackParts, job: str, state: str) -> JobView:
    """What the results directory says of a job, once that is its state."""

    def kept() -> JobView:
        return JobView.model_validate_json((stack.results / job / "job.json").read_bytes())

    wait_until(lambda: kept().state == state, kept)
    return kept()


def wait_for_fresh_lease(stack: StackParts, job: str) -> None:
    """Until the job's lease was just renewed, so that a pause costs the job as little as it can."""
    with stack.redis.client() as client:
        before = client.hget(key("signs"), f"lease:{job}")
        wait_until(lambda: client.hget(key("signs"), f"lease:{job}") != before)


def test_killed_in_mid_trial(
    stack: StackParts, orchestrator: OrchestratorProcess, service: ServiceProcess
) -> None:
    job = in_mid_trial(orchestrator, service)
    waiting = orchestrator.submit(**SHORT)
    orchestrator.kill()
    assert service.programs_gone_within()
    orchestrator.start()
    lost = orchestrator.wait_for(job, seconds=LOST_S)
    assert lost["state"] == "lost" and "resume the job" in lost["reason"]
    assert kept_as(stack, job, "lost").reason == lost["reason"], "also once Redis forgets it"
    assert (lost["exit_code"], lost["progress"]["done"]) == (None, 1)
    assert orchestrator.wait_for(waiting)["state"] == "succeeded", "the next job runs"
    assert [trial.value is not None for trial in stack.trials(job)] == [True], "kept"
    partial = orchestrator.result(job)
    assert partial["job"]["state"] == "interrupted"
    assert [len(case["trials"]) for case in partial["cases"]] == [1, 0]
    assert orchestrator.client.post(f"/jobs/{job}/resume").status_code == 202
    orchestrator.wait_for(job, StackState.RUNNING)
    assert [session.kept for session in stack.sessions(job)] == [
        (),
        (partial["cases"][0]["case"],),
    ]


@pytest.mark.exhaustive
def test_stopped_in_mid_trial_while_another_orchestrator_goes_on(tmp_path: Path) -> None:
    with StackParts(tmp_path) as stack:
        stop_one_of_two(stack)


def stop_one_of_two(stack: StackParts) -> None:
    stopped, other = stack.orchestrator("stopped"), stack.orchestrator("other")
    other.pause()  # so that the first one gets the job
    service = stack.host(stopped)
    job = in_mid_trial(stopped, service)
    other.resume()
    waiting = stopped.submit(**SHORT)
    stopped.pause()
    assert service.programs_gone_within()
    assert other.wait_for(job, seconds=LOST_S)["state"] == "lost"
    assert other.wait_for(waiting)["state"] == "succeeded"
    before = other.job(job)
    journal = (stack.results / job / "journal.ndjson").read_bytes()
    stopped.resume()
    time.sleep(3)
    assert stopped.job(job) == other.job(job) == before, "it writes nothing of its state"
    assert stack.states(job)[-1] == "lost" and stack.states(job).count("lost") == 1
    records = (stack.results / job / "journal.ndjson").read_bytes().removeprefix(journal)
    assert b'"record":"trial"' not in records
    again = stopped.submit(**SHORT)
    assert stopped.wait_for(again)["state"] == "succeeded", "both go on"


def test_stopped_for_a_moment(
    stack: StackParts, orchestrator: OrchestratorProcess, service: ServiceProcess
) -> None:
    """The service ends the trial that nobody renewed; the job says so."""
    job = in_mid_trial(orchestrator, service)
    wait_for_fresh_lease(stack, job)
    orchestrator.pause()
    assert service.programs_gone_within()
    orchestrator.resume()
    view = orchestrator.wait_for(job)
    assert view["state"] == "failed" and "1 of 2 cases are measured and kept" in view["reason"]
    assert orchestrator.wait_for(orchestrator.submit(**SHORT))["state"] == "succeeded"


def test_told_to_end_in_mid_trial(
    orchestrator: OrchestratorProcess, service: ServiceProcess
) -> None:
    job = in_mid_trial(orchestrator, service)
    waiting = orchestrator.submit(**SHORT)
    assert orchestrator.stop() == 0
    assert service.programs_gone_within()
    orchestrator.start()
    view = orchestrator.job(job)
    assert view["state"] == "lost", "at once: it gave its hosts back"
    assert "its orchestrator was stopped" in view["reason"]
    assert orchestrator.wait_for(waiting)["state"] == "succeeded"


@pytest.mark.exhaustive
def test_told_to_end_between_taking_a_job_and_beginning_it(
    stack: StackParts, orchestrator: OrchestratorProcess, service: ServiceProcess
) -> None:
    pause(service)
    job = orchestrator.submit(**SHORT)
    orchestrator.wait_for(job, StackState.WAITING)
    assert orchestrator.stop() == 0
    assert stack.states(job)[-1] == "queued", "it is not lost with us"
    go_on(service)
    orchestrator.start()
    assert orchestrator.wait_for(job)["state"] == "succeeded"
    assert len(stack.sessions(job)) == 1


@pytest.mark.exhaustive
def test_killed_between_taking_a_job_and_beginning_it(
    stack: StackParts, orchestrator: OrchestratorProcess, service: ServiceProcess
) -> None:
    """The job cannot have measured anything: it is queued again by itself."""
    pause(service)  # so it does not say what it has
    job = orchestrator.submit(**SHORT)
    orchestrator.wait_for(job, StackState.WAITING)
    orchestrator.kill()
    go_on(service)
    orchestrator.start()
    assert orchestrator.wait_for(job, seconds=LOST_S)["state"] == "succeeded"
    assert len(stack.sessions(job)) == 1
    assert stack.states(job)[:4] == ["queued", "waiting", "queued", "waiting"]


@pytest.mark.exhaustive
def test_told_to_end_before_a_job_has_begun(
    stack: StackParts, orchestrator: OrchestratorProcess, service: ServiceProcess
) -> None:
    pause(service)
    job = orchestrator.submit(**SHORT)
    orchestrator.wait_for(job, StackState.WAITING)
    assert orchestrator.stop() == 0
    go_on(service)
    orchestrator.start()
    assert orchestrator.wait_for(job)["state"] == "succeeded"
    assert stack.states(job)[:3] == ["queued", "waiting", "queued"]
