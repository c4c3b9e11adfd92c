"""Several processes take jobs from one Redis at once."""

import json
import random
import subprocess
import sys
from itertools import pairwise
from typing import Any

from hostbench.model.jobs import StackState
from orchestrator.queue.hosts import HostStore
from orchestrator.queue.jobs import JobStore
from tests.orchestrator.jobs import queue, register
from tests.stack.redis_server import REPOSITORY, RedisServer

PROCESSES = 4
JOBS = 300
NAMES = ("a", "b", "c", "d")


def test_no_host_has_two_jobs_and_no_job_starts_twice(
    store: JobStore, hosts: HostStore, redis_server: RedisServer
) -> None:
    register(hosts, *NAMES)
    chance = random.Random(20261121)
    ids = [queue(store, *chance.sample(NAMES, chance.choice((1, 1, 2)))) for _ in range(JOBS)]
    held = contended(redis_server.url)
    assert sorted(job["id"] for job in held) == sorted(ids), "each started exactly once"
    assert len({job["fence"] for job in held}) == JOBS
    for name in NAMES:
        mine = sorted((job for job in held if name in job["hosts"]), key=lambda job: job["fence"])
        for earlier, later in pairwise(mine):
            assert earlier["ended_s"] <= later["begun_s"], (earlier, later)
    assert store.counts()[StackState.SUCCEEDED] == JOBS
    assert [state.job for state in hosts.states()] == [None] * len(NAMES)


def contended(url: str) -> list[dict[str, Any]]:
    """What each job held, as the processes tell it."""
    command = [sys.executable, "-m", "tests.orchestrator.contender", url]
    processes = [
        subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
        for _ in range(PROCESSES)
    ]
    lines: list[str] = []
    for process in processes:
        output, _ = process.communicate(timeout=110)
        assert process.returncode == 0
        lines += output.splitlines()
    return [json.loads(line) for line in lines]
