"""Jobs through the calls, on a real host with the real program."""

import csv
import io
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import TypeAdapter

from hostbench.base.interrupt import Interrupt
from hostbench.host.lock import HostLock
from hostbench.model.job_events import JobEvent
from hostbench.model.jobs import JobView, StackState
from hostbench.model.result import ResultDocument
from hostbench.results.ids import is_job_id
from orchestrator.api.events import WATCHERS_MOST
from tests.orchestrator.conftest import HOST, Stack
from tests.patience import PATIENCE_S, wait_until

EVENT: TypeAdapter[JobEvent] = TypeAdapter(JobEvent)
# Some tenths of a second; it has no limit that a busy machine's clock could seem to exceed.
QUICK: dict[str, Any] = {
    "workload": "cpu.clock",
    "params": {"threads": 1, "duration_s": 0.05, "warmup_s": 0},
    "trials": 2,
    "idle_policy": "force",
}
# Until somebody cancels it.
LONG = {**QUICK, "params": {**QUICK["params"], "duration_s": 600}}
TWO_CASES: dict[str, Any] = {
    "name": "two-cases",
    "description": "Given in full.",
    "idle": {"policy": "force"},
    "repeats": {"min_trials": 1, "max_trials": 1},
    "cases": [
        {
            "workload": "cpu.clock",
            "params": {"duration_s": 0.05},
            "grid": {"threads": [1, 2]},
        }
    ],
}


@contextmanager
def held_host(stack: Stack) -> Iterator[None]:
    """Somebody's own run holds the host's lock."""
    lock = HostLock(stack.service.lock)
    lock.take(PATIENCE_S, Interrupt())
    lock.name_holder("somebody's own run")
    try:
        yield
    finally:
        lock.close()


def wait_for_busy_host(stack: Stack, job: str) -> None:
    """Until the orchestrator has found the host taken."""
    wait_until(
        lambda: "somebody's own run" in (stack.orchestrator.job(job)["reason"] or ""),
        lambda: f"the reason does not name who holds the host: {stack.orchestrator.job(job)}",
    )


@pytest.fixture(autouse=True)
def nothing_runs_on(stack: Stack) -> Iterator[None]:
    """Each test ends its jobs, or they are ended for it."""
    yield
    for state in ("queued", "waiting", "running"):
        for job in stack.client.get("/jobs", params={"state": state}).json()["jobs"]:
            stack.client.delete(f"/jobs/{job['id']}")
    stack.orchestrator.wait_for_host(HOST)


@pytest.fixture
def finished(stack: Stack) -> str:
    """A job that has ended well."""
    job = stack.orchestrator.submit(**QUICK)
    stack.orchestrator.wait_for(job, StackState.SUCCEEDED)
    return job


# ---- a job from its submission to its result ----


def test_a_job_is_accepted_run_and_its_result_served(stack: Stack) -> None:
    answer = stack.client.post("/jobs", json={**QUICK, "hosts": [HOST], "priority": 3})
    assert answer.status_code == 202
    view = JobView.model_validate_json(answer.content)
    assert is_job_id(view.id) and answer.headers["location"] == f"/jobs/{view.id}"
    assert (view.suite, view.hosts, view.priority) == ("ad-hoc", [HOST], 3)
    assert view.spec is not None and view.spec.workload == "cpu.clock"
    ended = stack.orchestrator.wait_for(view.id)
    assert ended["state"] == "succeeded" and ended["reason"] is None, ended
    assert (ended["exit_code"], ended["sessions"], ended["position"]) == (0, 1, None)
    assert ended["submitted_unix_s"] < ended["started_unix_s"] < ended["ended_unix_s"]
    assert (ended["progress"]["cases"], ended["progress"]["done"]) == (1, 1)
    document = ResultDocument.model_validate_json(
        stack.client.get(f"/jobs/{view.id}/result").content
    )
    (case,) = document.cases
    assert document.job.id == view.id and document.job.hostname == HOST
    assert len(case.trials) == 2
    assert {case.verdict: 1} == ended["verdicts"]
    for trial in case.trials:
        assert trial.control_plane is not None
        used = {process.component for process in trial.control_plane.processes}
        assert used == {"service", "orchestrator", "redis"}


def test_the_result_is_served_as_a_table_too(stack: Stack, finished: str) -> None:
    answer = stack.client.get(f"/jobs/{finished}/result", params={"format": "csv"})
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert rows[0]["job"] == finished and float(rows[0]["median"]) > 0


def test_the_report_is_one_page_that_may_load_nothing(stack: Stack, finished: str) -> None:
    answer = stack.client.get(f"/jobs/{finished}/report")
    assert answer.status_code == 200 and answer.text.startswith("<!doctype html>")
    assert finished in answer.text
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert stack.client.get(f"/jobs/{finished}/report").text == answer.text, "it is kept"


def test_a_suite_by_name_is_changed_as_requested(stack: Stack) -> None:
    spec = {"suite": "cpu-600-samples", "trials": 2, "peers": "none"}
    answer = stack.client.post("/jobs", json=spec)
    job = answer.json()["id"]
    try:
        plan = next(
            event for _, event in stack.orchestrator.events(job) if event["event"] == "plan"
        )
        assert {case["repeats"]["max_trials"] for case in plan["cases"]} == {2}
        assert plan["suite"]["name"] == "cpu-600-samples"
    finally:
        stack.client.delete(f"/jobs/{job}")
        stack.orchestrator.wait_for(job)


def test_a_suite_in_full_is_measured_like_one_of_a_file(stack: Stack) -> None:
    job = stack.orchestrator.submit(suite=TWO_CASES)
    assert stack.orchestrator.wait_for(job)["state"] == "succeeded"
    document = stack.orchestrator.result(job)
    assert document["suite"]["description"] == "Given in full."
    assert [case["params"]["threads"] for case in document["cases"]] == [1, 2]


def test_every_choice_can_be_requested_in_a_workload(stack: Stack) -> None:
    params = {"dtype": "all", "isa": "scalar", "threads": "1", "duration_s": "0.05"}
    request = {**QUICK, "workload": "cpu.fma", "params": params, "trials": 1}
    job = stack.orchestrator.submit(**request)
    assert stack.orchestrator.wait_for(job)["progress"]["cases"] > 1


def test_a_job_that_fails_says_why(stack: Stack) -> None:
    suite = {**TWO_CASES, "cases": [{**TWO_CASES["cases"][0], "timeout_s": 0.001}]}
    job = stack.orchestrator.submit(suite=suite)
    view = stack.orchestrator.wait_for(job)
    assert (view["state"], view["exit_code"]) == ("failed", 1)
    assert view["reason"] == "a case failed"
    assert stack.orchestrator.result(job)["job"]["state"] == "failed"


# ---- idempotency ----


def test_the_same_key_and_body_is_the_same_job(stack: Stack) -> None:
    headers = {"Idempotency-Key": f"key {time.time_ns()}"}
    first = stack.client.post("/jobs", json=QUICK, headers=headers)
    again = stack.client.post("/jobs", json=QUICK, headers=headers)
    assert (first.status_code, again.status_code) == (202, 200)
    assert again.json()["id"] == first.json()["id"]
    assert again.headers["location"] == first.headers["location"]
    reordered = json.dumps(dict(reversed(QUICK.items())), indent=4).encode()
    same = stack.client.post("/jobs", content=reordered, headers=headers)
    assert same.json()["id"] == first.json()["id"], "the same things are requested"
    other = stack.client.post("/jobs", json={**QUICK, "trials": 3}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    assert first.json()["id"] in other.json()["detail"]


# ---- cancelling ----


def test_cancel_a_queued_a_waiting_and_a_running_job(stack: Stack) -> None:
    running = stack.orchestrator.submit(**LONG)
    queued = stack.orchestrator.submit(**LONG)
    stack.service.wait_for_program()
    assert stack.orchestrator.job(queued)["position"] == 1
    answer = stack.client.delete(f"/jobs/{queued}")
    assert (answer.status_code, answer.json()["state"]) == (202, "cancelled")
    assert not (stack.orchestrator.results / queued).exists()
    assert stack.client.delete(f"/jobs/{running}").status_code == 202
    view = stack.orchestrator.wait_for(running)
    assert view["state"] == "cancelled" and view["exit_code"] is None
    assert view["reason"].startswith("cancelled by request; 0 of 1 cases")
    assert stack.service.programs_gone_within()
    with held_host(stack):
        waiting = stack.orchestrator.submit(**LONG)
        wait_for_busy_host(stack, waiting)
        assert stack.client.delete(f"/jobs/{waiting}").status_code == 202
        assert stack.orchestrator.wait_for(waiting)["state"] == "cancelled"
    assert stack.orchestrator.wait_for_host(HOST)["job"] is None


def test_a_finished_job_cannot_be_cancelled(stack: Stack, finished: str) -> None:
    answer = stack.client.delete(f"/jobs/{finished}")
    assert answer.status_code == 409
    assert answer.json()["state"] == "succeeded"
    assert "succeeded already" in answer.json()["detail"]


def test_a_busy_host_is_waited_for(stack: Stack) -> None:
    with held_host(stack):
        job = stack.orchestrator.submit(**QUICK)
        wait_for_busy_host(stack, job)
    assert stack.orchestrator.wait_for(job)["state"] == "succeeded"


# ---- resuming ----


def test_a_resumed_job_keeps_what_it_had(stack: Stack) -> None:
    cases = [
        TWO_CASES["cases"][0],
        {"workload": "cpu.int_add", "params": {"duration_s": 600, "threads": 1}},
    ]
    job = stack.orchestrator.submit(suite={**TWO_CASES, "cases": cases})
    for _, event in stack.orchestrator.events(job):
        if event["event"] == "trial_begins":
            done = stack.orchestrator.job(job)["progress"]["done"]
            if done == 2:
                break
    stack.client.delete(f"/jobs/{job}")
    view = stack.orchestrator.wait_for(job)
    assert view["reason"] == "cancelled by request; 2 of 3 cases are measured and kept"
    partial = stack.orchestrator.result(job)
    assert partial["job"]["state"] == "interrupted"
    answer = stack.client.post(f"/jobs/{job}/resume")
    assert answer.status_code == 202 and answer.json()["state"] in ("queued", "waiting")
    stack.orchestrator.wait_for(job, StackState.RUNNING)
    assert stack.client.post(f"/jobs/{job}/resume").status_code == 409
    stack.client.delete(f"/jobs/{job}")
    again = stack.orchestrator.wait_for(job)
    assert again["sessions"] == 2 and again["submitted_unix_s"] == view["submitted_unix_s"]
    events = [event for _, event in stack.orchestrator.events(job)]
    assert events[0]["state"] == "queued", "the events are those of this session"
    plan = next(event for event in events if event["event"] == "plan")
    assert len(plan["kept"]) == 2
    kept = stack.orchestrator.result(job)["cases"][0]["trials"]
    assert kept == partial["cases"][0]["trials"]


def test_a_finished_job_is_not_resumed(stack: Stack, finished: str) -> None:
    answer = stack.client.post(f"/jobs/{finished}/resume")
    assert (answer.status_code, answer.json()["code"]) == (409, "not_resumable")
    assert answer.json()["state"] == "succeeded"


# ---- results of jobs without one ----


def test_a_job_that_has_measured_nothing_has_no_result(stack: Stack) -> None:
    running = stack.orchestrator.submit(**LONG)
    queued = stack.orchestrator.submit(**LONG)
    stack.service.wait_for_program()
    for path in ("result", "report"):
        answer = stack.client.get(f"/jobs/{queued}/{path}")
        assert (answer.status_code, answer.json()["code"]) == (409, "no_result")
    assert stack.orchestrator.result(running)["job"]["state"] == "running"
    for job in (queued, running):
        stack.client.delete(f"/jobs/{job}")
        stack.orchestrator.wait_for(job)


# ---- looking around ----


def test_hosts_show_what_they_are_and_do(stack: Stack) -> None:
    host = stack.orchestrator.wait_for_host(HOST)
    assert host["inventory"]["hostname"] == HOST
    (service,) = host["services"]
    assert service["subsystem"] == "cpu" and service["url"] == stack.service.url
    job = stack.orchestrator.submit(**LONG)
    assert stack.orchestrator.wait_for_host(HOST, "busy")["job"] == job
    stack.client.delete(f"/jobs/{job}")
    stack.orchestrator.wait_for_host(HOST)


def test_workloads_are_those_of_the_hosts(stack: Stack) -> None:
    tables = stack.client.get("/workloads").json()["hosts"][HOST]
    assert [table["subsystem"] for table in tables] == ["cpu"]
    assert "fma" in [workload["name"] for workload in tables[0]["workloads"]]


def test_suites_are_listed_and_shown(stack: Stack) -> None:
    suites = {suite["name"]: suite for suite in stack.client.get("/suites").json()["suites"]}
    assert suites["quick"]["problem"] is None and suites["quick"]["description"]
    assert stack.client.get("/suites/quick").json()["name"] == "quick"
    shown = stack.client.get("/suites/cpu-600-samples").json()
    assert shown["name"] == "cpu-600-samples" and shown["cases"]
    # What is shown can be submitted.
    stack.client.delete(f"/jobs/{stack.orchestrator.submit(suite=shown)}")
    for name in ("nothing", "..%2Fsuites%2Fquick", "quick.yaml", "/etc/passwd"):
        assert stack.client.get(f"/suites/{name}").status_code == 404


def test_metrics_tell_of_jobs_and_dispatch(stack: Stack, finished: str) -> None:
    text = stack.client.get("/metrics").text
    assert 'hostbench_jobs{state="queued"} 0.0' in text
    assert "hostbench_redis_up 1.0" in text
    assert "hostbench_dispatch_seconds_count" in text
    assert "hostbench_leases " in text
    assert "hostbench_redis_used_bytes " in text and "hostbench_redis_full 0.0" in text
    assert "hostbench_redis_oldest_ended_seconds " in text


def test_health_needs_no_key_and_names_each_part(stack: Stack) -> None:
    answer = wait_until(lambda: well(stack), lambda: stack.client.get("/healthz").json())
    assert {name: part["status"] for name, part in answer["parts"].items()} == {
        "redis": "ok",
        "scheduler": "ok",
        "keeper": "ok",
        "listener": "ok",
        "results": "ok",
        "influxdb": "off",
    }


def well(stack: Stack) -> Any:
    """What /healthz answers when all is well: a part that is late is down for as long."""
    answer = httpx.get(f"{stack.orchestrator.url}/healthz", timeout=PATIENCE_S)
    return answer.json() if (answer.status_code, answer.json()["status"]) == (200, "ok") else None


# ---- listing ----


def test_jobs_are_listed_page_by_page(stack: Stack) -> None:
    holder = stack.orchestrator.submit(**LONG)
    stack.service.wait_for_program()
    ids = [stack.orchestrator.submit(**QUICK) for _ in range(5)]
    try:
        listed, before = [], None
        while True:
            params: dict[str, Any] = {"limit": 2, "state": "queued"}
            page = stack.client.get("/jobs", params=params | ({"before": before} if before else {}))
            listed += [job["id"] for job in page.json()["jobs"]]
            if (before := page.json()["next"]) is None:
                break
        assert listed == ids[::-1]
        newest = stack.client.get("/jobs", params={"limit": 6, "host": HOST}).json()["jobs"]
        assert [job["id"] for job in newest] == [*ids[::-1], holder]
        assert [job["position"] for job in newest] == [5, 4, 3, 2, 1, None]
        elsewhere = stack.client.get("/jobs", params={"host": "elsewhere"}).json()
        assert (elsewhere["jobs"], elsewhere["next"]) == ([], None)
        assert elsewhere["memory"]["used_bytes"] > 0 and not elsewhere["memory"]["full"]
    finally:
        for job in (*ids, holder):
            stack.client.delete(f"/jobs/{job}")
        stack.orchestrator.wait_for(holder)


# ---- events ----


def test_the_events_of_a_job_tell_all_of_it(stack: Stack, finished: str) -> None:
    holder = stack.orchestrator.submit(**LONG)
    live = stack.orchestrator.submit(**{**QUICK, "params": {**QUICK["params"], "duration_s": 2.2}})
    telling = stack.orchestrator.events(live)
    events = [next(telling)]
    stack.client.delete(f"/jobs/{holder}")  # not before somebody listens
    events += telling
    for _, event in events:
        EVENT.validate_json(json.dumps(event))
    names = [event["event"] for _, event in events]
    assert names[:2] == ["state", "state"] and "plan" in names and "gate" in names
    # One sample a second, or one for several of them where the program was held up; a trial that
    # was held up may last for another second.
    assert 2 <= names.count("sample") <= 6
    assert names.count("trial") == 2 and names.count("case") == 1
    assert names.index("trial_begins") < names.index("sample") < names.index("trial")
    states = [event["state"] for _, event in events if event["event"] == "state"]
    assert states == ["queued", "waiting", "running", "succeeded"]
    for event_id, event in events:
        assert (event_id is None) == (event["event"] in ("sample", "trial_begins"))
    recorded = [(event_id, event) for event_id, event in events if event_id is not None]
    assert list(stack.orchestrator.events(live)) == recorded, "a late reader gets these"


def test_a_reader_that_comes_back_gets_what_it_missed(stack: Stack, finished: str) -> None:
    events = list(stack.orchestrator.events(finished))
    for position, (event_id, _) in enumerate(events):
        assert list(stack.orchestrator.events(finished, event_id)) == events[position + 1 :]
    for odd in ("nonsense", "1-2-3", "99999999999999999999-0", "-", ""):
        assert list(stack.orchestrator.events(finished, odd)) == events
    assert list(stack.orchestrator.events(finished, "999999999999999999-0")) == events, (
        "it is of a stream that is gone"
    )


def test_a_reader_can_go_away_at_any_time(stack: Stack) -> None:
    job = stack.orchestrator.submit(**LONG)
    for _ in range(3):
        for _ in stack.orchestrator.events(job):
            break
    stack.client.delete(f"/jobs/{job}")
    assert stack.orchestrator.wait_for(job)["state"] == "cancelled"
    assert "Traceback" not in stack.orchestrator.log


# ---- what only the results directory knows ----


def forget(stack: Stack, job: str) -> None:
    """As Redis does after a week."""
    with stack.redis.client() as client:
        state = client.hget(f"{{hostbench}}:job:{job}", "state")
        client.delete(f"{{hostbench}}:job:{job}", f"{{hostbench}}:events:{job}")
        for index in ("jobs", "ended", f"state:{state}"):
            client.zrem(f"{{hostbench}}:{index}", job)


def test_a_job_that_redis_forgot_is_answered_from_its_files(stack: Stack, finished: str) -> None:
    wait_for_file(stack.orchestrator.results / finished / "job.json", '"succeeded"')
    paths = (f"/jobs/{finished}", f"/jobs/{finished}/result")
    before = [stack.client.get(path).json() for path in paths]
    with stack.redis.client() as client:
        client.delete(f"{{hostbench}}:events:{finished}")
    expired = list(stack.orchestrator.events(finished))
    forget(stack, finished)
    assert [stack.client.get(path).json() for path in paths] == before
    assert list(stack.orchestrator.events(finished)) == expired
    ((_, event),) = expired
    assert (event["event"], event["state"]) == ("state", "succeeded")
    assert event["result"] == paths[1]
    for params in ({}, {"state": "succeeded"}, {"host": HOST}):
        listed = stack.client.get("/jobs", params={"limit": 500, **params}).json()["jobs"]
        assert [job for job in listed if job["id"] == finished] == before[:1]
    listed = stack.client.get("/jobs", params={"state": "failed", "limit": 500}).json()["jobs"]
    assert finished not in [job["id"] for job in listed]
    assert stack.client.delete(f"/jobs/{finished}").status_code == 409
    assert stack.client.post(f"/jobs/{finished}/resume").status_code == 409


def test_a_cancelled_job_that_redis_forgot_can_be_resumed(stack: Stack) -> None:
    job = stack.orchestrator.submit(**LONG)
    stack.service.wait_for_program()
    stack.client.delete(f"/jobs/{job}")
    before = stack.orchestrator.wait_for(job)
    wait_for_file(stack.orchestrator.results / job / "job.json", '"cancelled"')
    forget(stack, job)
    assert stack.orchestrator.job(job) == before
    answer = stack.client.post(f"/jobs/{job}/resume")
    assert answer.status_code == 202 and answer.json()["state"] in ("queued", "waiting")
    assert answer.json()["submitted_unix_s"] == pytest.approx(before["submitted_unix_s"], abs=1e-3)
    stack.orchestrator.wait_for(job, StackState.RUNNING)
    stack.client.delete(f"/jobs/{job}")
    assert stack.orchestrator.wait_for(job)["sessions"] == 2


def test_results_of_the_embedded_form_are_listed_too(stack: Stack, finished: str) -> None:
    source = stack.orchestrator.results / finished
    target = source.with_name("20250101T000000Z-embedded-0001")
    target.mkdir()
    for name in ("journal.ndjson", "result.json"):
        text = (source / name).read_text().replace(finished, target.name)
        (target / name).write_text(text)
    try:
        view = stack.orchestrator.job(target.name)
        assert (view["state"], view["spec"], view["hosts"]) == ("succeeded", None, [HOST])
        listed = stack.client.get("/jobs", params={"limit": 500}).json()["jobs"]
        assert listed[-1]["id"] == target.name
        answer = stack.client.post(f"/jobs/{target.name}/resume")
        assert answer.status_code == 409
    finally:
        for path in target.iterdir():
            path.unlink()
        target.rmdir()


def wait_for_file(path: Path, text: str) -> None:
    """job.json follows the job's state."""
    wait_until(lambda: path.exists() and text in path.read_text(), lambda: path)


def test_only_so_many_watch(stack: Stack) -> None:
    job = stack.orchestrator.submit(**LONG)
    limits = httpx.Limits(max_connections=None)
    key = stack.client.headers["Authorization"]
    url = f"{stack.orchestrator.url}/jobs/{job}/events"
    with (
        httpx.Client(headers={"Authorization": key}, limits=limits, timeout=60) as client,
        ExitStack() as watching,
    ):
        for _ in range(WATCHERS_MOST):
            answer = watching.enter_context(client.stream("GET", url))
            assert answer.status_code == 200
        refused = client.get(url)
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_watchers")
        wait_until(lambda: well(stack))
    # The server hears of a closed connection when it gets to it.
    wait_until(
        lambda: status_of_watching(stack, job) != 429, lambda: "those who went away still count"
    )
    assert status_of_watching(stack, job) == 200


def status_of_watching(stack: Stack, job: str) -> int:
    """What somebody who begins to watch, and goes away at once, is answered."""
    with stack.client.stream("GET", f"/jobs/{job}/events") as answer:
        return answer.status_code


def test_a_job_that_cannot_be_read_fails_and_holds_up_no_other(stack: Stack) -> None:
    """As another version of hostbench may have left it in the queue."""
    holder = stack.orchestrator.submit(**LONG)
    stack.service.wait_for_program()
    odd, behind = stack.orchestrator.submit(**QUICK), stack.orchestrator.submit(**QUICK)
    with stack.redis.client() as client:
        client.hset(f"{{hostbench}}:job:{odd}", mapping={"spec": "{}", "suite": "{}"})
    assert stack.orchestrator.job(odd)["spec"] is None
    stack.client.delete(f"/jobs/{holder}")
    view = stack.orchestrator.wait_for(odd)
    assert view["state"] == "failed" and "another version of hostbench" in view["reason"]
    assert stack.orchestrator.wait_for(behind)["state"] == "succeeded"
