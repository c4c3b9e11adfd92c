"""Whatever a server does, it answers others meanwhile: what takes long is off its event loop."""

import contextlib
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from hostbench.model.result import JobState, StateRecord
from hostbench.results.document import assemble, summarise
from hostbench.results.journal import JournalWriter
from hostbench.results.store import JOURNAL, JobDirectory
from tests.faults.stack import StackParts
from tests.meanwhile import meanwhile
from tests.service.streams import SHORT
from tests.stack.answering import took_s
from tests.unit.records import bare_trial, done, end, planned, sampled, session, start

# A call that is handled on the event loop alone. It takes some milliseconds; beside a thread that
# computes, each of its steps waits up to 5 ms for Python's global lock.
CHEAP = "/nothing"
# On a Zen 4 with two CPUs others waited 0.04 to 0.11 s while a suite of 5,000 entries was
# submitted, listed, cancelled or measured beside one that runs, mostly for Python's collector of
# cycles, which looks through what such jobs hold; else below 0.05 s.
BLOCKED_MOST_S = 0.25
PAUSE_S = 0.005
HOST = "bench-1"
TRIALS, SAMPLES = 3, 300
# The cases of a stored job, and the entries of a suite.
SIZES = [(12, 500), (60, 5000)]
# As large as what is validated at once may be.
ERRORS = b'{"suite":{"name":"a","cases":[%s{}]}}' % (b"{}," * 4900)


def large_job(results: Path, number: int, count: int) -> str:
    """A job of so many cases, each with some tens of kilobytes, as it is stored; its id."""
    job = f"20261120T{number:06d}Z-quick-3f2a"
    cases = tuple(planned(f"{one:012x}", label=f"case {one}") for one in range(count))
    directory = JobDirectory(results / job)
    directory.path.mkdir(parents=True)
    began_s = time.time() - 1e6 + 1000 * number
    with JournalWriter(results / job / JOURNAL, create=True) as journal:
        journal.append(session(cases, job=job, time_unix_s=began_s))
        for case, index in itertools.product(cases, range(TRIALS)):
            events = (start(time_unix_s=began_s), *sampled(SAMPLES), end(elapsed_s=SAMPLES))
            trial = bare_trial(index, case.case, time_unix_s=began_s, events=events, value=100.0)
            journal.append(trial)
            if index == TRIALS - 1:
                journal.append(done(case.case))
        progress, state = directory.progress(), JobState.SUCCEEDED
        progress.ended = StateRecord(
            time_unix_s=began_s + 900,
            state=state,
            summary=summarise(progress, state, began_s + 900),
        )
        directory.store(assemble(progress))
        journal.append(progress.ended)
    return job


def many_entries(entries: int, seconds: float) -> bytes:
    """A suite of so many entries; each would take so long."""
    params = {"threads": 1, "sample_interval_s": 60}
    cases = [
        {"workload": "cpu.clock", "params": {**params, "duration_s": seconds + number / 1000}}
        for number in range(entries)
    ]
    repeats = {"min_trials": 1, "max_trials": 1}
    suite = {"name": "many", "idle": {"policy": "force"}, "repeats": repeats, "cases": cases}
    return json.dumps({"suite": suite, "hosts": [HOST]}).encode()


@contextlib.contextmanager
def asking(client: httpx.Client, pid: int) -> Iterator[list[float]]:
    """Another caller, who asks again and again; how long each answer took."""
    answered: list[float] = []

    def ask(over: threading.Event) -> None:
        while not answered or not over.is_set():
            answered.append(took_s(lambda: client.get(CHEAP), pid))
            over.wait(PAUSE_S)

    with meanwhile(ask):
        yield answered


def check_others_are_answered(
    url: str, pid: int, calls: dict[str, Callable[[], httpx.Response]], status: dict[str, int]
) -> None:
    """Make each call while another caller asks. `status`: of calls that are not answered by 2xx."""
    longest_s = {}
    with httpx.Client(base_url=url, timeout=60) as other:
        assert other.get(CHEAP).status_code == httpx.codes.NOT_FOUND
        for name, call in calls.items():
            with asking(other, pid) as answered:
                answer = call()
            assert answer.status_code == status.get(name) or answer.is_success, (name, answer.text)
            longest_s[name] = max(answered)
    print(longest_s)  # noqa: T201
    assert max(longest_s.values()) < BLOCKED_MOST_S, longest_s


@pytest.mark.exhaustive
@pytest.mark.parametrize(("cases", "entries"), SIZES)
@pytest.mark.timeout(300)  # pages and comparisons are made at low priority, beside other tests
def test_an_orchestrator_at_work_answers_others(tmp_path: Path, cases: int, entries: int) -> None:
    with StackParts(tmp_path) as stack:
        one, other = (large_job(stack.results, number, cases) for number in (1, 2))
        orchestrator = stack.orchestrator()
        stack.host(orchestrator, HOST)
        client = orchestrator.client
        submitted = client.post("/jobs", content=many_entries(entries, 60))
        assert submitted.status_code == httpx.codes.ACCEPTED, submitted.text
        running = submitted.headers["location"]
        stack.service(HOST).wait_for_program()

        def plan_of_the_running_job() -> httpx.Response:
            with client.stream("GET", f"{running}/events") as answer:
                assert any('"event":"plan"' in line for line in answer.iter_lines())
                return answer

        calls: dict[str, Callable[[], httpx.Response]] = {
            "result": lambda: client.get(f"/jobs/{one}/result"),
            "table": lambda: client.get(f"/jobs/{one}/result", params={"format": "csv"}),
            "result so far": lambda: client.get(f"{running}/result"),
            "report": lambda: client.get(f"/jobs/{one}/report"),
            "report again": lambda: client.get(f"/jobs/{one}/report"),
            "compare": lambda: client.get("/compare", params={"a": one, "b": other}),
            "history": lambda: client.get("/hosts/alpha/history"),
            "baseline": lambda: client.get(f"/jobs/{one}/baseline"),
            "plan": plan_of_the_running_job,
            "submit": lambda: client.post("/jobs", content=many_entries(entries, 120)),
            "submit with errors": lambda: client.post("/jobs", content=ERRORS),
            "jobs": lambda: client.get("/jobs", params={"limit": 500}),
            "job": lambda: client.get(running),
            "hosts": lambda: client.get("/hosts"),
            "workloads": lambda: client.get("/workloads"),
            "suites": lambda: client.get("/suites"),
            "description": lambda: client.get("/openapi.json"),
            "metrics": lambda: client.get("/metrics"),
            "health": lambda: client.get("/healthz"),
            "cancel": lambda: client.delete(running),
        }
        check_others_are_answered(
            orchestrator.url, orchestrator.pid, calls, {"submit with errors": 422}
        )
        assert "Traceback" not in orchestrator.log


def test_a_service_at_work_answers_others(tmp_path: Path) -> None:
    with StackParts(tmp_path) as stack:
        service = stack.host(stack.orchestrator(), HOST)
        client = service.client
        calls: dict[str, Callable[[], httpx.Response]] = {
            "workloads": lambda: client.get("/workloads"),
            "host": lambda: client.get("/host"),
            "idle": lambda: client.get("/idle", params={"seconds": 0.2}),
            "trial": lambda: service.post(id="t1", **SHORT),
            "trial with errors": lambda: client.post("/trials", content=ERRORS),
            "description": lambda: client.get("/openapi.json"),
            "metrics": lambda: client.get("/metrics"),
        }
        check_others_are_answered(service.url, service.pid, calls, {"trial with errors": 422})
        assert "Traceback" not in service.log
