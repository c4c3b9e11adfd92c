"""Two orchestrators, fifty jobs on two hosts, and kills at random."""

import random
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from hostbench.model.jobs import TERMINAL
from tests.faults.stack import SHORT, StackParts, trials_begun
from tests.stack.orchestrator_process import OrchestratorProcess
from tests.stack.service_process import ServiceProcess

JOBS = 50
KILLS = 5
SEED = 20261121
HOSTS = ("bench-1", "bench-2")
EVERY_ONE_S = 300.0


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[StackParts]:
    with StackParts(tmp_path) as parts:
        yield parts


@pytest.mark.exhaustive
@pytest.mark.timeout(420)
def test_random_kills(stack: StackParts) -> None:
    chance = random.Random(SEED)
    print(f"seed {SEED}")  # noqa: T201
    orchestrators = [stack.orchestrator("one"), stack.orchestrator("two")]
    services = [stack.host(orchestrators[0], name, script="slow") for name in HOSTS]
    asked = [sorted(chance.sample(HOSTS, chance.choice((1, 1, 1, 2)))) for _ in range(JOBS)]
    jobs = {
        orchestrators[index % 2].submit(**SHORT, hosts=hosts): hosts
        for index, hosts in enumerate(asked)
    }
    for _ in range(KILLS):
        time.sleep(chance.uniform(2, 6))
        victim = chance.choice(orchestrators)
        victim.kill()
        time.sleep(chance.uniform(0, 2))
        victim.start()
    ended = wait_for_all(orchestrators[0], list(jobs))
    assert set(ended.values()) <= {"succeeded", "lost"}
    assert "lost" in ended.values(), "no kill hit a running job"
    for job, state in ended.items():
        states = stack.states(job)
        assert sum(one in TERMINAL for one in states) == 1 and states[-1] == state
        begun = (stack.results / job).exists()
        assert not begun or len(stack.sessions(job)) == 1, "it began once"
    check_starts(services, jobs)
    check_overlaps(stack, jobs)


def wait_for_all(orchestrator: OrchestratorProcess, jobs: list[str]) -> dict[str, str]:
    until = time.monotonic() + EVERY_ONE_S
    while True:
        states = {job: orchestrator.job(job)["state"] for job in jobs}
        if all(state in TERMINAL for state in states.values()):
            return states
        assert time.monotonic() < until, Counter(states.values())
        time.sleep(1)


def check_starts(services: list[ServiceProcess], jobs: dict[str, list[str]]) -> None:
    """By what the services were asked to run: each job once, under one fence, on its host."""
    begun = [
        (said["trial"], said["fence"], service.host)
        for service in services
        for said in trials_begun(service)
    ]
    assert len({fence for _, fence, _ in begun}) == len(begun), "a fence for each job"
    starts = Counter(job for job in jobs for trial, _, _ in begun if trial.startswith(f"{job}-"))
    assert sum(starts.values()) == len(begun) and max(starts.values()) == 1, starts
    for trial, _, host in begun:
        (job,) = (job for job in jobs if trial.startswith(f"{job}-"))
        assert jobs[job][0] == host, "it measures on its first host"


def check_overlaps(stack: StackParts, jobs: dict[str, list[str]]) -> None:
    """By the time stamps of what was measured."""
    for host in HOSTS:
        spans = sorted(
            (trial.time_unix_s, trial.time_unix_s + trial.wall_s, job)
            for job, hosts in jobs.items()
            if host in hosts
            for trial in stack.trials(job)
        )
        for earlier, later in pairwise(spans):
            assert earlier[1] <= later[0], (earlier, later)
