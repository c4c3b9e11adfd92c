"""Two orchestrators, many jobs on two hosts, and faults at random: kills, stops, a full Redis, a
full volume of results, cut connections, clocks that are set.

`make chaos` goes on for HOSTBENCH_CHAOS_S, which are 20 minutes there.
"""

import contextlib
import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import httpx
import pytest

from hostbench.model.jobs import TERMINAL
from hostbench.results.store import JOURNAL, ResultsStore
from orchestrator.influx.reindex import run as reindex
from tests.client.breaking_proxy import BreakingProxy
from tests.faults.small_volume import fill, small_volume
from tests.faults.stack import SHORT, StackParts, trials_begun
from tests.faults.stepped_clock import HOURS_S, SteppedClock
from tests.patience import wait_until
from tests.stack.orchestrator_process import OrchestratorProcess
from tests.stack.service_process import ServiceProcess
from tests.stack.stored_points import meant, stored

SECONDS = float(os.environ.get("HOSTBENCH_CHAOS_S", "45"))
JOBS = 50
JOBS_A_FAULT = 4
SEED = int(os.environ.get("HOSTBENCH_CHAOS_SEED", "20261121"))
HOSTS = ("bench-1", "bench-2")
EVERY_ONE_S = 150.0
STEPS_S = (60, -60, 8 * HOURS_S, -8 * HOURS_S, 0)
# So that there is room for an hour's jobs, and the rest is filled in a moment.
VOLUME_SIZE = "256m"
# Nothing; more than a journal's next record and less than a document; more than both.
LEFT_BYTES = (0, 12 << 10, 1 << 20)
# What a job that runs, or is about to, says then. Those that are queued wait.
NO_ROOM = ("No space left", "bytes left")
# Redis forgets ended jobs when it is pressed for memory.
FORGOTTEN = "forgotten"


class Chaos:
    """A stack with what can go wrong in it. Each fault returns when it is over."""

    def __init__(self, root: Path, stack: contextlib.ExitStack) -> None:
        self.chance = random.Random(SEED)
        self.volume = stack.enter_context(small_volume(root / "results", VOLUME_SIZE))
        self.clocks = [SteppedClock(root / f"clock-{name}") for name in ("redis", "one", "two")]
        self.parts = stack.enter_context(StackParts(root, **self.clocks[0].environment))
        self.influx = self.parts.influx()
        self.proxies = [
            stack.enter_context(BreakingProxy(self.parts.redis.port).running()) for _ in range(2)
        ]
        self.orchestrators = [
            self.parts.orchestrator(
                name,
                HOSTBENCH_REDIS_URL=f"redis://127.0.0.1:{proxy.port}/0",
                **self.influx.settings,
                **clock.environment,
            )
            for name, proxy, clock in zip(
                ("one", "two"), self.proxies, self.clocks[1:], strict=True
            )
        ]
        self.services = [
            self.parts.host(self.orchestrators[0], name, script="slow") for name in HOSTS
        ]
        self.faults: dict[str, Callable[[], None]] = {
            "killed": self.kill,
            "stopped": self.stop,
            "redis stopped": self.stop_redis,
            "redis killed": self.kill_redis,
            "redis full": self.fill_redis,
            "connections cut": self.cut,
            "clock set": self.set_clock,
            "influxdb killed": self.kill_influx,
        }
        if self.volume is not None:
            self.faults["results full"] = self.fill_results

    def pause(self, least_s: float, most_s: float) -> None:
        time.sleep(self.chance.uniform(least_s, most_s))

    def kill(self) -> None:
        victim = self.chance.choice(self.orchestrators)
        victim.kill()
        self.pause(0, 2)
        victim.start()

    def stop(self) -> None:
        victim = self.chance.choice(self.orchestrators)
        victim.pause()
        self.pause(0.5, 18)
        victim.resume()

    def stop_redis(self) -> None:
        self.parts.redis.pause()
        self.pause(0.5, 5)
        self.parts.redis.resume()

    def kill_redis(self) -> None:
        self.parts.redis.kill()
        self.pause(0, 3)
        self.parts.redis.start()

    def fill_redis(self) -> None:
        with self.parts.redis.client() as client:
            client.config_set("maxmemory", "500kb")
            self.pause(1, 5)
            client.config_set("maxmemory", "0")

    def fill_results(self) -> None:
        assert self.volume is not None
        filling = fill(self.volume, left_bytes=self.chance.choice(LEFT_BYTES))
        self.pause(1, 5)
        filling.unlink()

    def cut(self) -> None:
        self.chance.choice(self.proxies).cut()

    def set_clock(self) -> None:
        self.chance.choice(self.clocks).step(self.chance.choice(STEPS_S))

    def kill_influx(self) -> None:
        self.influx.stop()
        self.pause(0, 3)
        self.influx.start()

    def submit(self) -> tuple[str, list[str]] | None:
        """A job on one host or both; None: it was refused, or no orchestrator was there."""
        hosts = sorted(self.chance.sample(HOSTS, self.chance.choice((1, 1, 1, 2))))
        with contextlib.suppress(httpx.HTTPError):
            answer = self.chance.choice(self.orchestrators).client.post(
                "/jobs", json={**SHORT, "hosts": hosts}, timeout=10
            )
            if answer.status_code == httpx.codes.ACCEPTED:
                return answer.json()["id"], hosts
        return None


@pytest.fixture
def chaos(tmp_path: Path) -> Iterator[Chaos]:
    with contextlib.ExitStack() as stack:
        yield Chaos(tmp_path, stack)


@pytest.mark.exhaustive
@pytest.mark.timeout(SECONDS + EVERY_ONE_S + 240)
def test_random_faults(chaos: Chaos) -> None:
    jobs: dict[str, list[str]] = {}
    seen: Counter[str] = Counter()
    until = time.monotonic() + SECONDS
    while time.monotonic() < until or len(seen) < len(chaos.faults):
        # Each once before one comes again.
        for fault in chaos.chance.sample(sorted(chaos.faults), len(chaos.faults)):
            # There is always something to do.
            missing = max(JOBS - len(jobs), JOBS_A_FAULT)
            for found in filter(None, (chaos.submit() for _ in range(missing))):
                jobs[found[0]] = found[1]
            chaos.pause(1, 4)
            seen[fault] += 1
            chaos.faults[fault]()
            if time.monotonic() > until and len(seen) == len(chaos.faults):
                break
    ended = wait_for_all(chaos.orchestrators[0], list(jobs))
    print(f"seed {SEED}, {len(jobs)} jobs: {dict(Counter(ended.values()))}, {dict(seen)}")  # noqa: T201
    allowed = {"succeeded", "lost", FORGOTTEN} | ({"failed"} if chaos.volume else set())
    assert set(ended.values()) <= allowed, ended
    for job, state in ended.items():
        states = chaos.parts.states(job)
        if states and state != FORGOTTEN:
            assert sum(one in TERMINAL for one in states) == 1 and states[-1] == state, job
        if state == "failed":
            reason = chaos.orchestrators[0].job(job)["reason"]
            assert any(text in reason for text in NO_ROOM), (job, reason)
        begun = (chaos.parts.results / job / JOURNAL).exists()
        assert not begun or len(chaos.parts.sessions(job)) <= 1, "it began once"
    check_starts(chaos.services, jobs)
    check_overlaps(chaos.services, jobs)
    check_points(chaos, jobs)


def wait_for_all(orchestrator: OrchestratorProcess, jobs: list[str]) -> dict[str, str]:
    until = time.monotonic() + EVERY_ONE_S
    while True:
        states = {job: state_of(orchestrator, job) for job in jobs}
        if all(state == FORGOTTEN or state in TERMINAL for state in states.values()):
            return states
        assert time.monotonic() < until, Counter(states.values())
        time.sleep(1)


def state_of(orchestrator: OrchestratorProcess, job: str) -> str:
    answer = orchestrator.client.get(f"/jobs/{job}")
    if answer.status_code == httpx.codes.NOT_FOUND:
        return FORGOTTEN
    state: str = answer.json().get("state", "unknown yet")
    return state


def check_starts(services: list[ServiceProcess], jobs: dict[str, list[str]]) -> None:
    """By what the services had to run: each job once, under one fence, on its host."""
    begun = [
        (event["trial"], event["fence"], service.host)
        for service in services
        for event in trials_begun(service)
    ]
    assert len({fence for _, fence, _ in begun}) == len(begun), "a fence for each job"
    starts = Counter(job for job in jobs for trial, _, _ in begun if trial.startswith(f"{job}-"))
    # One whose submission was cut off may have been accepted all the same.
    assert max(starts.values()) == 1, starts
    for trial, _, host in begun:
        for job in jobs:
            assert not trial.startswith(f"{job}-") or jobs[job][0] == host, "on its first host"


def check_overlaps(services: list[ServiceProcess], jobs: dict[str, list[str]]) -> None:
    """By the services' logs: their clocks, unlike those of orchestrators, are never set."""
    spans: dict[str, list[tuple[str, str, str]]] = {host: [] for host in HOSTS}
    for service in services:
        lines = [json.loads(line) for line in service.log.splitlines() if line.startswith("{")]
        ends = {one["trial"]: one["timestamp"] for one in lines if one["event"] == "trial_ends"}
        for begun in trials_begun(service):
            for job in (one for one in jobs if begun["trial"].startswith(f"{one}-")):
                for host in jobs[job]:
                    spans[host].append((begun["timestamp"], ends[begun["trial"]], job))
    assert sum(map(len, spans.values())) >= JOBS
    for of_host in spans.values():
        for earlier, later in pairwise(sorted(of_host)):
            assert earlier[1] <= later[0], (earlier, later)


def check_points(chaos: Chaos, jobs: dict[str, list[str]]) -> None:
    """Documents and InfluxDB are equal once what found no room was written again."""
    client = chaos.orchestrators[0].client
    wait_until(
        lambda: client.get("/healthz").json()["parts"]["influxdb"]["detail"].startswith("0 entries")
    )
    results = ResultsStore(chaos.parts.results)
    with chaos.influx.client() as influx:
        reindex(chaos.parts.results, influx)
        documents = [results.job(job).load() for job in results.ids()]
        assert stored(influx) == sum(map(meant, documents), Counter())
