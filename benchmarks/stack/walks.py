"""The number of Python files of hostbench that a job passes through from POST to figure: the table
of docs/architecture.md, "What a change touches".

    python -m benchmarks.stack.walks [CHECKOUT]

Starts an orchestrator and a service of this or another checkout, whose programs have to be built,
with the Redis and InfluxDB of the tests (`make test` unpacks them). Measures the second of two
one-thread `cpu.clock` jobs, three times.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from benchmarks.stack.jobs import submit
from tests.stack.influx_server import InfluxServer
from tests.stack.ports import free_port
from tests.stack.redis_server import RedisServer

RUNS = 3
KEY, SERVICE_KEY = "the key of users, of a benchmark", "the key of services, of a benchmark"
PARAMS = {"threads": 1, "duration_s": 1}
SPEC = {"workload": "cpu.clock", "params": PARAMS, "trials": 1, "idle_policy": "force"}
WAIT_S, POINTS_S = 60.0, 3.0
SERVERS = {"orchestrator", "hostbench.service"}
# The module of the process that makes a page, in this and in earlier checkouts.
REPORTING = {
    "orchestrator.results.forms",
    "orchestrator.results.page",
    "orchestrator.results.reporting",
    "orchestrator.reporting",
}
WALKS = ("POST /jobs to the start", "end event to a point", "end event to a row of the report")


@dataclass(frozen=True)
class Noted:
    """The records of all processes: calls as (time, file, thread), and marks with their times."""

    command: list[str]
    calls: list[tuple[float, str, str]]
    marks: list[tuple[float, str]]

    def first(self, name: str, since: float) -> float:
        """Return the time of the first mark that begins with `name`."""
        found = [at for at, mark in self.marks if mark.startswith(name) and at >= since]
        if not found:
            raise SystemExit(f"no {name} was noted; of these: {sorted(self.marks)}")
        return min(found)

    def files(self, since: float, until: float, without: str = "-") -> set[str]:
        """Return the files in which a function ran in this time, leaving out threads whose name
        begins with `without`."""
        return {
            file
            for at, file, thread in self.calls
            if since <= at <= until and not thread.startswith(without)
        }


def start(checkout: Path, module: str, directory: Path, *arguments: str, **environment: str) -> Any:
    """Start a process that records its calls."""
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        env={
            **os.environ,
            "PYTHONPATH": f"{Path(__file__).with_name('traced')}:{checkout}",
            "HOSTBENCH_WALKS": str(directory),
            "HOSTBENCH_WALKED": str(checkout),
            "HOSTBENCH_SERVICE_KEY": SERVICE_KEY,
            "HOSTBENCH_LOCK": str(directory / "lock"),
            **environment,
        },
        cwd=checkout,
        stderr=subprocess.DEVNULL,
    )


def wait_for_service(api: httpx.Client) -> None:
    """Wait until the orchestrator answers and has a host."""
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        try:
            if api.get("/hosts").json()["hosts"]:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise SystemExit(f"no service registered within {WAIT_S:g} s")


def wait_for(directory: Path, job: str) -> None:
    """Wait until the document of the job and its points are written.

    This asks the files and not the API: the code that answers a request would be recorded, too.
    """
    until = time.monotonic() + WAIT_S
    while not (directory / "results" / job / "result.json").exists():
        if time.monotonic() > until:
            raise SystemExit(f"job {job} has no result after {WAIT_S:g} s")
        time.sleep(0.1)
    time.sleep(POINTS_S)


def measured(checkout: Path, directory: Path) -> tuple[int, int, int]:
    """Return the number of files in each walk."""
    url, service = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    with RedisServer(directory / "redis") as redis, InfluxServer(directory / "influx") as influx:
        influx.set_up()
        servers = [
            start(
                checkout,
                "orchestrator",
                directory,
                HOSTBENCH_LISTEN=url,
                HOSTBENCH_API_KEY=KEY,
                HOSTBENCH_REDIS_URL=redis.url,
                HOSTBENCH_RESULTS=str(directory / "results"),
                **influx.settings,
            ),
            start(
                checkout,
                "hostbench.service",
                directory,
                "cpu",
                HOSTBENCH_LISTEN=service,
                HOSTBENCH_ORCHESTRATOR_URL=f"http://{url}",
            ),
        ]
        headers = {"Authorization": f"Bearer {KEY}"}
        with httpx.Client(base_url=f"http://{url}", headers=headers, timeout=WAIT_S) as api:
            wait_for_service(api)
            wait_for(directory, submit(api, SPEC))
            posted = time.monotonic()
            job = submit(api, SPEC)
            wait_for(directory, job)
            api.get(f"/jobs/{job}/report").raise_for_status()
        for server in servers:
            server.terminate()
            server.wait(WAIT_S)
    noted = [Noted(**json.loads(path.read_text())) for path in directory.glob("*.json")]
    report = next(one for one in noted if REPORTING.intersection(one.command))
    stack = [one for one in noted if SERVERS.intersection(one.command)]
    marks = [mark for one in stack for mark in one.marks]
    both = Noted([], [call for one in stack for call in one.calls], marks)
    started, end = both.first("start ", posted), both.first("end", posted)
    written, stored = both.first("InfluxClient.write trial", end), both.first("JobDirectory", end)
    row = report.files(0, report.first("case_row", 0))
    return (
        len(both.files(posted, started)),
        len(both.files(end, written)),
        len(both.files(end, stored, without="outbox-writer") | row),
    )


def main() -> None:
    """Print the median of each walk."""
    checkout = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve()
    found = []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as directory:
            found.append(measured(checkout, Path(directory)))
    for name, values in zip(WALKS, zip(*found, strict=True), strict=True):
        print(f"{name}: {statistics.median(values):g} files {sorted(values)}")


if __name__ == "__main__":
    main()
