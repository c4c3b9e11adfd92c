"""Many jobs, one after another: nothing grows, nothing is lost or doubled.

`make soak` does HOSTBENCH_SOAK_JOBS, which are 5,000 there.
"""

import os
import statistics
import time
from collections import Counter
from pathlib import Path

import pytest

from hostbench.results.store import ResultsStore
from tests.faults.stack import SHORT, StackParts
from tests.patience import wait_until
from tests.stack.stored_points import meant, stored

JOBS = int(os.environ.get("HOSTBENCH_SOAK_JOBS", "40"))
FLAT = 0.05
# A short form ends before the ten minutes are over for which Redis keeps a job's events. It shows
# that a job costs little meanwhile; once it was 240 KB.
SHORT_JOBS = 3000
SHORT_FLAT, REDIS_BYTES_A_JOB = 0.15, 20_000
# So that what Redis keeps of ended jobs reaches its bound, half of this, in the long form.
REDIS_MEMORY = "16mb"
# A job has a summary for ten minutes at least. The long form goes on for longer than twice that, so
# that as many are forgotten as come.
JOB_S = 0.25
HOSTS = ("bench-1", "bench-2")
QUEUED = 8
LARGE = {
    "suite": {
        "name": "ten-thousand",
        "cases": [
            {
                "workload": "cpu.clock",
                "grid": {
                    "threads": [1],
                    "duration_s": [one / 1000 for one in range(100, 10_100)],
                },
            }
        ],
    }
}


def own_bytes(pid: int) -> int:
    """What a process has of memory, without pages of files, which the kernel takes back at will."""
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("RssAnon:")]
    return int(line.split()[1]) << 10


@pytest.mark.exhaustive
@pytest.mark.timeout(300 + 10 * JOBS)
def test_nothing_grows_over_many_jobs(tmp_path: Path) -> None:
    with StackParts(tmp_path) as stack:
        influx = stack.influx()
        orchestrator = stack.orchestrator(**influx.settings)
        for host in HOSTS:
            stack.host(orchestrator, host)
        client = stack.redis.client()
        client.config_set("maxmemory", REDIS_MEMORY)
        used: dict[str, list[int]] = {"orchestrator": [], "redis": [], "influxdb": []}
        jobs: list[str] = []
        began_s = time.monotonic()
        for number in range(JOBS):
            if JOBS >= SHORT_JOBS:
                time.sleep(max(0.0, began_s + number * JOB_S - time.monotonic()))
            jobs.append(orchestrator.submit(**SHORT, hosts=[HOSTS[number % len(HOSTS)]]))
            if number >= QUEUED:
                assert orchestrator.wait_for(jobs[number - QUEUED])["state"] == "succeeded"
            used["orchestrator"].append(own_bytes(orchestrator.pid))
            used["redis"].append(client.info("memory")["used_memory"])
            used["influxdb"].append(own_bytes(influx.pid))
        for job in jobs[-QUEUED:]:
            assert orchestrator.wait_for(job)["state"] == "succeeded"

        # A plan of 10,000 cases is accepted and cancelled in between.
        large = orchestrator.submit(**LARGE, hosts=[HOSTS[0]])
        orchestrator.client.delete(f"/jobs/{large}").raise_for_status()
        assert orchestrator.wait_for(large)["state"] == "cancelled"

        health = orchestrator.client.get
        wait_until(
            lambda: health("/healthz").json()["parts"]["influxdb"]["detail"].startswith("0 entries")
        )
        results = ResultsStore(stack.results)
        documents = [results.job(job).load() for job in jobs]
        with influx.client() as reader:
            assert stored(reader) == sum(map(meant, documents), Counter())

        growth = {}
        for part, seen in used.items():
            third, fourth = seen[JOBS // 2 : JOBS * 3 // 4], seen[JOBS * 3 // 4 :]
            growth[part] = statistics.median(fourth) / statistics.median(third) - 1
        quarters = {
            part: [seen[JOBS * n // 4] for n in range(4)] + [seen[-1]]
            for part, seen in used.items()
        }
        print(f"{JOBS} jobs in {time.monotonic() - began_s:.0f} s: {growth}, {quarters}")  # noqa: T201
        if JOBS >= SHORT_JOBS:
            assert max(growth.values()) < FLAT, growth
        assert growth["orchestrator"] < SHORT_FLAT, growth
        assert used["redis"][-1] - used["redis"][0] < REDIS_BYTES_A_JOB * JOBS
