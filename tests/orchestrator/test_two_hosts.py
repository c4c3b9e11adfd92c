"""Two hosts with real services, one orchestrator."""

import time
from collections.abc import Iterator
from itertools import pairwise

import pytest

from hostbench.model.jobs import StackState
from orchestrator.queue.scheduler import UNPROMPTED_S
from tests.faults.stack import SHORT, StackParts, trials_begun
from tests.patience import PATIENCE_S
from tests.stack.orchestrator_process import OrchestratorProcess

LONG = {**SHORT, "params": {**SHORT["params"], "duration_s": 600}}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StackParts]:
    with StackParts(tmp_path_factory.mktemp("stack")) as parts:
        yield parts


@pytest.fixture(scope="module")
def orchestrator(stack: StackParts) -> OrchestratorProcess:
    one = stack.orchestrator()
    answer = one.client.post("/jobs", json=SHORT)
    assert answer.status_code == 422
    assert "no host is registered; start a service" in answer.json()["detail"]
    stack.host(one, "bench-1")
    stack.host(one, "bench-2")
    return one


def test_a_job_must_say_which_of_several_hosts_it_is_for(
    orchestrator: OrchestratorProcess,
) -> None:
    answer = orchestrator.client.post("/jobs", json=SHORT)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "body.hosts"
    assert "give hosts: bench-1 or bench-2" in answer.json()["detail"]


def test_hosts_measure_at_the_same_time(orchestrator: OrchestratorProcess) -> None:
    jobs = [orchestrator.submit(**LONG, hosts=[host]) for host in ("bench-1", "bench-2")]
    for job in jobs:
        orchestrator.wait_for(job, StackState.RUNNING)
    listed = orchestrator.client.get("/jobs", params={"state": "running", "host": "bench-2"})
    assert [job["id"] for job in listed.json()["jobs"]] == jobs[1:]
    for job in jobs:
        orchestrator.client.delete(f"/jobs/{job}")
        orchestrator.wait_for(job)


def test_a_job_for_two_hosts_measures_on_the_first_and_keeps_the_second_idle(
    stack: StackParts, orchestrator: OrchestratorProcess
) -> None:
    both = orchestrator.submit(**LONG, hosts=["bench-2", "bench-1"])
    orchestrator.wait_for(both, StackState.RUNNING)
    assert orchestrator.wait_for_host("bench-1", "busy")["job"] == both
    behind = orchestrator.submit(**SHORT, hosts=["bench-1"])
    time.sleep(1.5)
    assert orchestrator.job(behind)["state"] == "queued"
    orchestrator.client.delete(f"/jobs/{both}")
    assert orchestrator.wait_for(behind)["state"] == "succeeded"
    view = orchestrator.job(both)
    assert (view["state"], view["hosts"]) == ("cancelled", ["bench-2", "bench-1"])


def test_a_job_for_two_hosts_starts_before_what_was_posted_after_it(
    stack: StackParts, orchestrator: OrchestratorProcess
) -> None:
    """Beside an endless stream of jobs for either host."""
    stream = [orchestrator.submit(**SHORT, hosts=[host]) for host in ("bench-1", "bench-2") * 3]
    both = orchestrator.submit(**SHORT, hosts=["bench-1", "bench-2"])
    behind: list[str] = []
    until = time.monotonic() + PATIENCE_S
    while orchestrator.job(both)["state"] not in ("succeeded", "failed"):
        assert time.monotonic() < until
        behind += [orchestrator.submit(**SHORT, hosts=[host]) for host in ("bench-1", "bench-2")]
        # Shorter than a job, so that one for either host always waits.
        time.sleep(0.1)
    for job in (*stream, *behind):
        orchestrator.wait_for(job)
    started_s = orchestrator.job(both)["started_unix_s"]
    assert all(orchestrator.job(job)["started_unix_s"] > started_s for job in behind)
    assert len(behind) > 2


def test_dispatch_is_quick_beside_a_long_queue(
    stack: StackParts, orchestrator: OrchestratorProcess
) -> None:
    """From the end of a job to the start of the next one."""
    jobs = [orchestrator.submit(**SHORT, hosts=["bench-1"]) for _ in range(11)]
    views = [orchestrator.wait_for(job) for job in jobs]
    waits_s = sorted(
        later["started_unix_s"] - earlier["ended_unix_s"] for earlier, later in pairwise(views)
    )
    # Without a notice it would look every five seconds only.
    assert waits_s[0] >= 0 and waits_s[len(waits_s) // 2] < UNPROMPTED_S / 20, waits_s


def test_each_host_ran_its_own_trials(stack: StackParts, orchestrator: OrchestratorProcess) -> None:
    page = orchestrator.client.get("/jobs", params={"limit": 500, "state": "succeeded"}).json()
    first = {job["id"]: job["hosts"][0] for job in page["jobs"]}
    assert first
    for host in ("bench-1", "bench-2"):
        service = stack.service(host)
        for event in trials_begun(service):
            job = next((job for job in first if event["trial"].startswith(job)), None)
            assert job is None or first[job] == host
