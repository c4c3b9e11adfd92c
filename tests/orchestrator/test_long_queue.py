"""Ten thousand queued jobs cost the orchestrator nothing: they are Redis' alone."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from hostbench.model.jobs import JobSpec, StackState
from hostbench.model.suite import Suite, SuiteCase
from orchestrator.queue.hosts import HostStore
from orchestrator.queue.jobs import JobStore
from orchestrator.results.catalogue import ANSWER_BYTES_MOST
from tests.orchestrator.jobs import BODY, new_job, queue, register
from tests.patience import SOON_S
from tests.stack.orchestrator_process import OrchestratorProcess
from tests.stack.redis_server import RedisServer

JOBS = 10_000
DISPATCHES = 50
DISPATCH_S_MOST = 0.05
MEBIBYTE = 1 << 20
# Reading all of them at once took an orchestrator to 360 MB.
LARGE_JOBS, LARGE_ENTRIES, LARGE_PAGES = 60, 4000, 3


@pytest.mark.exhaustive
def test_a_long_queue(
    store: JobStore, hosts: HostStore, redis_server: RedisServer, tmp_path: Path
) -> None:
    register(hosts, "a", "b")
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda number: queue(store, *["a", "b"][: 1 + number % 2]), range(JOBS)))
    assert store.queued() == JOBS
    seconds = []
    for _ in range(DISPATCHES):
        begun_s = time.monotonic()
        started = store.dispatch("one", 64)
        seconds.append(time.monotonic() - begun_s)
        for job in started:
            assert store.finish(job, StackState.SUCCEEDED, None, {})
    # What the length of the queue costs, every one pays; what other work on the host costs, some.
    assert min(seconds) < DISPATCH_S_MOST, seconds
    # No service answers on these hosts: they are gone as soon as the orchestrator finds out.
    with OrchestratorProcess(tmp_path, redis_server.url, tmp_path / "results") as orchestrator:
        for query in ("", "?state=queued&host=b&limit=500"):
            answer = orchestrator.client.get(f"/jobs{query}", timeout=SOON_S)
            assert answer.status_code == 200 and answer.json()["jobs"]
        assert memory_bytes(orchestrator.pid, "VmRSS") < 200 * MEBIBYTE
        assert orchestrator.wait_for_host("a", "gone")


@pytest.mark.exhaustive
def test_a_queue_of_large_suites_is_listed_in_small_pages(
    store: JobStore, hosts: HostStore, redis_server: RedisServer, tmp_path: Path
) -> None:
    register(hosts, "a")
    entries = tuple(
        SuiteCase(workload="cpu.fma", params={"duration_s": 1 + number / 1000})
        for number in range(LARGE_ENTRIES)
    )
    suite = Suite(name="large", cases=entries)
    ids: list[str] = []
    for _ in range(LARGE_JOBS):
        plain = new_job("a")
        job = replace(plain, spec=JobSpec(suite=suite, hosts=["a"]), suite=suite)
        assert store.enqueue(job, None, BODY).outcome == "queued"
        ids.insert(0, job.id)
    with OrchestratorProcess(tmp_path, redis_server.url, tmp_path / "results") as orchestrator:
        listed: list[str] = []
        for _ in range(LARGE_PAGES):
            before = {"before": listed[-1]} if listed else {}
            answer = orchestrator.client.get("/jobs", params={"limit": "500", **before})
            assert len(answer.content) < ANSWER_BYTES_MOST + MEBIBYTE
            page = answer.json()
            listed += [job["id"] for job in page["jobs"]]
            assert page["next"] == listed[-1]
        assert listed == ids[: len(listed)]
        assert memory_bytes(orchestrator.pid, "VmHWM") < 256 * MEBIBYTE


def memory_bytes(pid: int, which: str) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith(f"{which}:"))
    return int(line.split()[1]) * 1024
