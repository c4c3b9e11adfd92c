"""What orchestrator and Redis do while a trial runs, which they must not disturb."""

import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import redis

from hostbench.model.jobs import StackState
from orchestrator.queue.scheduler import UNPROMPTED_S
from orchestrator.queue.signs import LOOK_S
from orchestrator.run.events import UNHEARD_S
from tests.faults.stack import SHORT_THEN_LONG, StackParts
from tests.patience import wait_until

WINDOW_S = 10.0
# Renewals of the lease, the test's own look, and a look more of each kind.
OTHERS_MOST = 7


def round_trips(client: redis.Redis) -> int:
    """How often Redis has read from a connection so far."""
    found: Any = client.info("stats")
    return int(found["total_reads_processed"])


@pytest.fixture
def stack(tmp_path: Path) -> Any:
    with StackParts(tmp_path) as parts:
        yield parts


def test_a_trial_is_not_disturbed_by_the_queue(stack: StackParts) -> None:
    orchestrator = stack.orchestrator()
    service = stack.host(orchestrator)
    job = orchestrator.submit(**SHORT_THEN_LONG)
    orchestrator.wait_for(job, StackState.RUNNING)
    wait_until(lambda: len(stack.trials(job)) == 1)
    service.wait_for_program()
    with stack.redis.client() as client:
        time.sleep(UNHEARD_S)  # what the first trial published was not heard
        before = round_trips(client)
        time.sleep(WINDOW_S)
        taken = round_trips(client) - before
    # Looks at the signs of life. Nothing has called for a look at the queue, and
    # no client listens to the sample of each second.
    looks = WINDOW_S / LOOK_S + WINDOW_S / UNPROMPTED_S + WINDOW_S / UNHEARD_S
    assert WINDOW_S / LOOK_S / 2 < taken <= looks + OTHERS_MOST, taken


def test_who_begins_to_listen_hears_every_sample_from_then_on(stack: StackParts) -> None:
    orchestrator = stack.orchestrator()
    service = stack.host(orchestrator)
    job = orchestrator.submit(**SHORT_THEN_LONG)
    orchestrator.wait_for(job, StackState.RUNNING)
    wait_until(lambda: len(stack.trials(job)) == 1)
    service.wait_for_program()
    heard: list[float] = []
    for _, event in orchestrator.events(job):
        if event["event"] == "sample" and event["sample"]["t_s"] > 1:
            heard.append(event["sample"]["t_s"])
        if len(heard) == 8:
            break
    gaps = [later - earlier for earlier, later in pairwise(heard)]
    assert max(gaps) < 1.5, heard
