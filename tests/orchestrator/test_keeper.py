"""Leases are kept, and a job that may no longer go on is stopped in time."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import cast

import pytest
from redis.exceptions import ConnectionError as RedisAway

from orchestrator.queue import keeper as timing
from orchestrator.queue.connection import connect, key
from orchestrator.queue.hosts import HostStore
from orchestrator.queue.jobs import JobStore, Lease
from orchestrator.queue.keeper import HeldJob, JobStopped, Keeper, Stop, now_s
from orchestrator.queue.record import StartedJob
from tests.orchestrator.jobs import queue, register
from tests.patience import PATIENCE_S, SOON_S
from tests.stack.redis_server import RedisServer

JOB = StartedJob("20261121T000000Z-ad-hoc-0000", 1, "one", 0.0)


# The wide margin is for a loaded machine: no thread of ours is expected to run within it.
LEASE_S, MARGIN_S = 5.0, 2.5
HELD_S = LEASE_S - MARGIN_S
LONGER_S = HELD_S + 1.0


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lease that is soon over, renewed every 0.3 s."""
    for name, value in {
        "LEASE_S": LEASE_S,
        "RENEW_S": 0.3,
        "MARGIN_S": MARGIN_S,
        "RETRY_S": 0.05,
    }.items():
        monkeypatch.setattr(timing, name, value)


Keep = Callable[[Callable[[StartedJob], Lease]], Keeper]


@pytest.fixture
def keep(quick: None) -> Iterator[Keep]:
    made: list[Keeper] = []

    def make(renew: Callable[[StartedJob], Lease]) -> Keeper:
        made.append(Keeper(renew))
        made[-1].start()
        return made[-1]

    yield make
    for one in made:
        one.close()


def stopped(held: HeldJob, seconds: float) -> tuple[Stop | None, float]:
    """Why it is stopped within a time, and after how long."""
    begun_s = time.monotonic()
    try:
        held.wait(seconds)
    except JobStopped as error:
        return error.stop, time.monotonic() - begun_s
    return None, seconds


def test_a_job_goes_on_as_long_as_it_is_renewed(keep: Keep) -> None:
    calls: list[float] = []

    def renew(job: StartedJob) -> Lease:
        calls.append(time.monotonic())
        return "held"

    held = HeldJob(JOB, now_s())
    keep(renew).hold(held)
    assert stopped(held, LONGER_S) == (None, LONGER_S)
    assert 3 <= len(calls) <= LONGER_S / 0.3 + 1


def test_a_job_is_stopped_before_its_lease_ends_when_redis_is_away(keep: Keep) -> None:
    calls: list[float] = []

    def renew(job: StartedJob) -> Lease:
        calls.append(time.monotonic())
        raise RedisAway("no")

    held = HeldJob(JOB, now_s())
    keep(renew).hold(held)
    why, after_s = stopped(held, SOON_S)
    assert why is Stop.LEASE_LOST
    assert HELD_S - 0.1 <= after_s < LEASE_S
    assert 3 <= len(calls) <= HELD_S / 0.05 + 1, "it asks again, and does not hammer"
    assert held.lost


def test_an_attempt_that_hangs_does_not_make_another_job_late(keep: Keep) -> None:
    answer = threading.Event()

    def renew(job: StartedJob) -> Lease:
        answer.wait(PATIENCE_S)
        raise RedisAway("no")

    keeper = keep(renew)
    jobs = [
        HeldJob(StartedJob(f"{JOB.id}{age_s}", 1, "one", 0.0), now_s() - age_s)
        for age_s in (0.0, 0.1, 0.2)
    ]
    for held in jobs:
        keeper.hold(held)
    begun_s = time.monotonic()
    late_s = []
    for held, age_s in zip(reversed(jobs), (0.2, 0.1, 0.0), strict=True):
        why, _ = stopped(held, SOON_S)
        assert why is Stop.LEASE_LOST
        late_s.append(time.monotonic() - begun_s - (HELD_S - age_s))
    answer.set()
    assert max(late_s) < MARGIN_S, late_s


def test_a_job_stops_at_once_when_its_lease_is_anothers(keep: Keep) -> None:
    held = HeldJob(JOB, now_s())
    keep(lambda job: "gone").hold(held)
    why, after_s = stopped(held, SOON_S)
    assert why is Stop.LEASE_LOST and after_s < HELD_S, "it did not wait for its end"


def test_a_cancelled_job_keeps_its_lease_until_it_has_ended(keep: Keep) -> None:
    calls: list[float] = []

    def renew(job: StartedJob) -> Lease:
        calls.append(time.monotonic())
        return "cancel"

    held = HeldJob(JOB, now_s())
    keeper = keep(renew)
    keeper.hold(held)
    why, _ = stopped(held, SOON_S)
    assert why is Stop.CANCELLED
    time.sleep(LONGER_S)
    assert not held.lost and len(calls) >= 4
    keeper.let_go(held)
    time.sleep(0.5)  # one may have been on its way
    count = len(calls)
    time.sleep(1.0)
    assert len(calls) == count


def test_a_job_that_slept_through_its_lease_notices_by_itself(quick: None) -> None:
    """As after SIGCONT: the job's own thread may run before the keeper's."""
    held = HeldJob(JOB, now_s() - HELD_S - 0.1)
    with pytest.raises(JobStopped) as error:
        held.check()
    assert error.value.stop is Stop.LEASE_LOST


def test_a_job_that_slept_with_all_others_goes_on(keep: Keep) -> None:
    """Redis decides: no other keeper has its lease."""
    for answer, lost in (("held", False), ("gone", True)):
        held = HeldJob(JOB, now_s() - HELD_S - 60)
        renew = dict.fromkeys([held.job], cast(Lease, answer)).__getitem__
        keep(renew).hold(held)
        assert held.lost == lost


def test_the_first_reason_counts() -> None:
    held = HeldJob(JOB, now_s())
    held.stop(Stop.CANCELLED)
    held.stop(Stop.SHUTDOWN)
    with pytest.raises(JobStopped) as error:
        held.check()
    assert error.value.message == "cancelled by request"


def test_a_job_that_ends_while_its_lease_is_renewed_costs_the_others_nothing(keep: Keep) -> None:
    """Its renewal answers `gone` once it is over, its descriptors closed."""
    others: list[float] = []

    def renew(job: StartedJob) -> Lease:
        if job.id != JOB.id:
            others.append(time.monotonic())
            return "held"
        keeper.let_go(held)
        held.close()
        return "gone"

    keeper = keep(renew)
    held = HeldJob(JOB, now_s())
    other = HeldJob(StartedJob(f"{JOB.id}1", 1, "one", 0.0), now_s())
    keeper.hold(held)
    keeper.hold(other)
    assert stopped(other, LONGER_S) == (None, LONGER_S)
    assert len(others) >= 4 and keeper.alive


def test_an_unforeseen_error_does_not_end_the_keeper(keep: Keep) -> None:
    calls: list[float] = []

    def renew(job: StartedJob) -> Lease:
        calls.append(time.monotonic())
        if len(calls) == 1:
            raise RuntimeError("unforeseen")
        return "held"

    held = HeldJob(JOB, now_s())
    keeper = keep(renew)
    keeper.hold(held)
    assert stopped(held, LONGER_S) == (None, LONGER_S)
    assert keeper.alive


def test_a_job_that_comes_back_is_kept_when_its_first_run_ends(keep: Keep) -> None:
    first, again = HeldJob(JOB, now_s()), HeldJob(JOB, now_s())
    keeper = keep(lambda job: "held")
    keeper.hold(first)
    keeper.hold(again)
    assert first.lost, "its lease is the other's"
    keeper.let_go(first)
    assert stopped(again, LONGER_S) == (None, LONGER_S)


def test_a_real_redis_keeps_a_real_lease(
    quick: None, store: JobStore, hosts: HostStore, redis_server: RedisServer
) -> None:
    register(hosts, "a")
    queue(store, "a")
    (job,) = store.dispatch("one", 1)
    held = HeldJob(job, now_s())
    threads = threading.active_count()
    keeper = Keeper(JobStore(connect(redis_server.url)).renew)
    keeper.start()
    keeper.hold(held)
    try:
        with redis_server.client() as client:
            assert stopped(held, LONGER_S)[0] is None
            client.delete(key("lease", "a"))
        assert stopped(held, SOON_S)[0] is Stop.LEASE_LOST
    finally:
        keeper.close()
    assert threading.active_count() <= threads
