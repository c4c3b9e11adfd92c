"""Redis, an orchestrator and a service, all real, and the command line before them."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hostbench.model.jobs import TERMINAL
from tests.faults.command import Command
from tests.patience import wait_until
from tests.stack.orchestrator_process import API_KEY, OrchestratorProcess
from tests.stack.redis_server import RedisServer
from tests.stack.service_process import ServiceProcess

HOST = "node-a"
# No limit is known of the clock that a loaded host could seem to exceed.
SUITE = """
name: small
idle: {policy: force}
repeats: {min_trials: 2, max_trials: 2}
cases:
  - workload: cpu.clock
    params: {duration_s: 0.05, warmup_s: 0}
    grid: {threads: [1, 2]}
  - workload: cpu.fma
    params: {isa: LACKING}
"""
LACKING = "neon" if os.uname().machine == "x86_64" else "avx2"


class Stack:
    """One of each below a directory, and commands that know it by their environment."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.redis = RedisServer(root / "redis")
        self.orchestrator = OrchestratorProcess(
            root / "orchestrator", self.redis.url, root / "results"
        )
        self.service = ServiceProcess(
            root / "service", host=HOST, HOSTBENCH_ORCHESTRATOR_URL=self.orchestrator.url
        )
        self.key_file = root / "key"
        self.key_file.write_text(f"{API_KEY}\n")
        self.suite = root / "small.yaml"
        self.suite.write_text(SUITE.replace("LACKING", LACKING))
        self.command = Command(root)
        self.command.environment |= {
            "HOSTBENCH_URL": self.orchestrator.url,
            "HOSTBENCH_API_KEY_FILE": str(self.key_file),
        }

    @contextlib.contextmanager
    def running(self) -> Iterator["Stack"]:
        with self.redis, self.orchestrator, self.service:
            self.orchestrator.wait_for_host(HOST)
            yield self

    def submit(self, *, duration_s: float = 0.05, trials: int = 1, **more: Any) -> str:
        """Queue one case without asking whether the host is idle; its id."""
        params = {"threads": 1, "warmup_s": 0, "duration_s": duration_s}
        return self.orchestrator.submit(
            workload="cpu.clock", params=params, trials=trials, idle_policy="force", **more
        )

    def done(self) -> str:
        """A job that has succeeded; its id."""
        job = self.submit()
        self.orchestrator.wait_for(job)
        return job

    def cancel(self, job: str) -> None:
        """End a job, and return when it has ended."""
        assert self.orchestrator.client.delete(f"/jobs/{job}").status_code in (202, 409)
        self.orchestrator.wait_for(job)

    def end_all(self) -> None:
        """Cancel whatever has not ended."""
        jobs = self.orchestrator.client.get("/jobs", params={"limit": 500}).json()["jobs"]
        for job in jobs:
            if job["state"] not in TERMINAL:
                self.cancel(job["id"])

    def wait_until_measuring(self, job: str) -> None:
        """Wait until a case of the job is being measured."""
        wait_until(
            lambda: (self.orchestrator.job(job).get("progress") or {}).get("current"),
            lambda: self.orchestrator.log,
        )
