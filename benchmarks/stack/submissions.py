"""POST /jobs at a fixed rate, then a long queue: latency, dispatch, memory.

    python -m benchmarks.stack.submissions [QUEUED]

Needs a running stack with nothing else to do, and `docker compose` for it. The loop is open: a
request is sent when it is due, whether or not earlier ones were answered, and its latency counts
from then.
"""

import asyncio
import itertools
import json
import math
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx

from benchmarks.arguments import given_number
from benchmarks.figures import Entry, save, spread
from benchmarks.stack.jobs import URL, client, ended, submit

RATE_PER_S = 100
QUEUED = 10_000
DISPATCHES = 20
HOLD = {
    "workload": "cpu.clock",
    "params": {"duration_s": 3600.0},
    "trials": 1,
    "idle_policy": "force",
}
SHORT = {
    "workload": "cpu.clock",
    "params": {"duration_s": 0.05, "warmup_s": 0.0},
    "trials": 1,
    "idle_policy": "force",
}


async def submissions(headers: httpx.Headers, count: int) -> list[float]:
    """Send `count` requests and return the latency of each in seconds."""
    limits = httpx.Limits(max_connections=200, max_keepalive_connections=200)
    async with httpx.AsyncClient(base_url=URL, headers=headers, limits=limits, timeout=60) as api:
        started_s = time.perf_counter()

        async def one(index: int) -> float:
            due_s = started_s + index / RATE_PER_S
            await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
            answer = await api.post("/jobs", json=SHORT)
            answer.raise_for_status()
            return time.perf_counter() - due_s

        return list(await asyncio.gather(*map(one, range(count))))


def percentile(values: list[float], share: float) -> float:
    """Return the smallest value that at least this share of all values does not exceed."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


def orchestrator_bytes() -> int:
    """Return the resident memory of the orchestrator's processes as this host's kernel counts
    it."""
    command = ["docker", "compose", "top", "orchestrator"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    header = next(index for index, line in enumerate(lines) if "PID" in line.split())
    column = lines[header].split().index("PID")
    return sum(_resident_bytes(line.split()[column]) for line in lines[header + 1 :] if line)


def _resident_bytes(pid: str) -> int:
    status = Path("/proc", pid, "status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def dispatches(api: httpx.Client, count: int) -> list[float]:
    """Return `count` times from the end of a job to the start of the next one, in seconds."""
    found: list[float] = []
    while len(found) < count:
        time.sleep(1.0)
        jobs = api.get("/jobs", params={"state": "succeeded", "limit": 200}).json()["jobs"]
        short = [job for job in jobs if job["spec"]["params"] == SHORT["params"]]
        ordered = sorted(short, key=lambda job: job["started_unix_s"])
        found = [
            after["started_unix_s"] - before["ended_unix_s"]
            for before, after in itertools.pairwise(ordered)
        ]
    return found[:count]


def cancel_queued(api: httpx.Client) -> None:
    """Cancel all queued jobs."""
    while jobs := api.get("/jobs", params={"state": "queued", "limit": 200}).json()["jobs"]:
        for job in jobs:
            api.delete(f"/jobs/{job['id']}")


def main() -> None:
    """Print the figures and save them."""
    queued = given_number(QUEUED)
    with client() as api:
        holder = submit(api, HOLD)
        latencies = asyncio.run(submissions(api.headers, queued))
        resident = orchestrator_bytes()
        api.delete(f"/jobs/{holder}").raise_for_status()
        ended(api, holder)
        found = dispatches(api, DISPATCHES)
        cancel_queued(api)
    figures: dict[str, Any] = {
        "requests": queued,
        "rate_per_s": RATE_PER_S,
        "latency_s_p50": statistics.median(latencies),
        "latency_s_p99": percentile(latencies, 0.99),
        "latency_s_max": max(latencies),
        "orchestrator_resident_bytes": resident,
    }
    print(json.dumps({**figures, "dispatch_s": spread(found)}, indent=1))
    save("stack/submissions", [Entry(figures, {"dispatch_s": found})])


if __name__ == "__main__":
    main()
