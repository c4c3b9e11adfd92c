"""Bodies of every kind of damage: registrations, jobs, and what services answer. None costs an
orchestrator an error, its memory or its answer.

`make fuzz-api` goes on for HOSTBENCH_API_FUZZ_S, which are ten minutes there.
"""

import os
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from hostbench.model.jobs import TERMINAL
from tests.faults.damaged import DamagedService, damaged
from tests.faults.stack import SHORT, StackParts
from tests.stack.orchestrator_process import API_KEY, SERVICE_KEY, OrchestratorProcess
from tests.stack.service_process import ServiceProcess, events

SECONDS = float(os.environ.get("HOSTBENCH_API_FUZZ_S", "8"))
SEED = int(os.environ.get("HOSTBENCH_API_FUZZ_SEED", "20261125"))
MEMORY_MOST_KIB = 256 << 10
# A job whose host gave a damaged answer may be queued again; then it is cancelled.
WAIT_S = 5.0
ANSWERS = ("/workloads", "/host", "/lock", "/idle")
REGISTRATION: dict[str, Any] = {
    "host": "bench-9", "subsystem": "cpu", "url": "http://127.0.0.1:9",
    "instance": "5d41402abc4b2a76", "fence": 7, "held_by": None,
}  # fmt: skip
JOB: dict[str, Any] = {
    "suite": {
        "name": "fuzzed",
        "idle": {"policy": "force"},
        "repeats": {"min_trials": 1, "max_trials": 1},
        "cases": [{"workload": "cpu.fma", "grid": {"threads": [1, 2], "dtype": ["fp64"]}}],
        "published": {"tables": [{"rows": [[1, "a"]]}]},
    },
    "hosts": ["nowhere"],
    "priority": 3,
}


def peak_kib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


class Fuzzer:
    """Sends damaged bodies to an orchestrator, and has it read damaged answers."""

    def __init__(self, orchestrator: OrchestratorProcess, service: DamagedService) -> None:
        self.chance = service.chance
        self.statuses: Counter[str] = Counter()
        self._orchestrator = orchestrator
        self._service = service
        self.kinds: dict[str, Callable[[], None]] = {
            "registration": lambda: self._send("/hosts", REGISTRATION, SERVICE_KEY),
            "job": lambda: self._send("/jobs", JOB, API_KEY),
            "service": self._take_up,
            "trial": self._measure,
        }

    def _send(self, path: str, whole: dict[str, Any], key: str) -> None:
        self._note(path, self._post(path, damaged(self.chance, whole), key))

    def _post(self, path: str, body: bytes, key: str) -> httpx.Response:
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        return self._orchestrator.client.post(path, content=body, headers=headers)

    def _note(self, what: str, answer: httpx.Response) -> None:
        request = answer.request.content[:2000]
        assert answer.status_code < 500, (SEED, what, answer.text[:2000], request)
        self.statuses[f"{what} {answer.status_code}"] += 1

    def _register(self, broken: frozenset[str]) -> None:
        """Register the service anew, so that the orchestrator asks what it is."""
        self._service.broken = broken
        instance = f"{self.chance.getrandbits(64):016x}"
        given = {**REGISTRATION, "url": self._service.url, "instance": instance}
        answer = self._orchestrator.client.post(
            "/hosts", json=given, headers={"Authorization": f"Bearer {SERVICE_KEY}"}
        )
        self._note("service", answer)

    def _take_up(self) -> None:
        self._register(frozenset(self.chance.sample(ANSWERS, self.chance.randint(1, 2))))

    def _measure(self) -> None:
        """A job on a service that answers with damage from then on."""
        self._register(frozenset())
        self._service.broken = frozenset(
            self.chance.choice((["/trials"], ["/trials"], ["/trials", "/idle"], ANSWERS))
        )
        client = self._orchestrator.client
        made = client.post("/jobs", json={**SHORT, "hosts": [REGISTRATION["host"]]})
        if made.status_code != httpx.codes.ACCEPTED:  # a table from before is in use
            self._note("trial", made)
            return
        job = made.json()["id"]
        until = time.monotonic() + WAIT_S
        while self._orchestrator.job(job)["state"] not in TERMINAL and time.monotonic() < until:
            time.sleep(0.02)
        client.delete(f"/jobs/{job}")
        self.statuses[f"trial {self._orchestrator.wait_for(job)['state']}"] += 1
        for path in ("result", "result?format=csv", "report"):
            self._note(path, client.get(f"/jobs/{job}/{path}"))


def real_answers(service: ServiceProcess) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What a service of this host answers, and the lines of one of its trials."""
    answers = {path: service.client.get(path).raise_for_status().json() for path in ANSWERS}
    workload = SHORT["workload"].partition(".")[2]
    lines = events(service.post(id="t1", workload=workload, params=SHORT["params"]))
    return answers, lines


@pytest.mark.timeout(SECONDS + 150)
def test_fuzzed_bodies(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    with StackParts(tmp_path) as stack:
        orchestrator = stack.orchestrator()
        with ServiceProcess(tmp_path / "service", host=REGISTRATION["host"]) as real:
            answers, lines = real_answers(real)
        with DamagedService(chance, answers, lines).serving() as service:
            fuzzer = Fuzzer(orchestrator, service)
            kinds = sorted(fuzzer.kinds)
            until = time.monotonic() + SECONDS
            while time.monotonic() < until:
                # A job takes as long as many bodies.
                fuzzer.kinds[chance.choices(kinds, [30, 30, 20, 2])[0]]()
        peak = peak_kib(orchestrator.pid)
        print(f"seed {SEED}: {dict(fuzzer.statuses)}, at most {peak >> 10} MiB")  # noqa: T201
        assert peak < MEMORY_MOST_KIB
        assert "Traceback" not in orchestrator.log and "thread_goes_on" not in orchestrator.log
