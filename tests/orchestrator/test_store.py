"""The scripts in a real Redis: queues, leases, fences, ends."""

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from redis.exceptions import OutOfMemoryError

from hostbench.base.errors import UsageError
from hostbench.host.inventory import merged_inventory
from hostbench.model.host import HostInventory, ScratchPlace
from hostbench.model.jobs import JobSpec, StackState
from hostbench.plan.suite import built_in_suites, load_known_suite
from orchestrator.queue import hosts as store_hosts
from orchestrator.queue import jobs as limits
from orchestrator.queue.connection import key
from orchestrator.queue.hosts import HostStore, Service
from orchestrator.queue.jobs import JobStore
from orchestrator.queue.record import StartedJob
from orchestrator.queue.signs import SignWatch
from tests.orchestrator.jobs import (
    BODY,
    new_job,
    queue,
    register,
    registration,
    table,
    this_host,
)
from tests.stack.redis_server import RedisServer

MANY = 1000
# Of a job that has ended, in Redis.
BYTES_A_JOB_MOST = 2_500


def started(store: JobStore, owner: str = "one", most: int = MANY) -> list[str]:
    return [job.id for job in store.dispatch(owner, most)]


def one_started(store: JobStore) -> StartedJob:
    (job,) = store.dispatch("one", MANY)
    return job


def begin(store: JobStore, job: StartedJob) -> None:
    assert store.record(job, number=1, fields={"begun": "1", "sessions": "1"})


def reap(store: JobStore) -> list[tuple[str, str]]:
    """The jobs that end because their leases are gone."""
    return [(job_id, state.value) for job_id, state in store.reap({}).ended]


def expire_leases(server: RedisServer, *hosts: str) -> None:
    with server.client() as client:
        for host in hosts:
            client.delete(key("lease", host))


# ---- submission ----


def test_a_job_is_queued_with_all_that_was_requested(store: JobStore) -> None:
    job = new_job("a", priority=2)
    assert store.enqueue(job, None, BODY).outcome == "queued"
    view = store.view(job.id)
    assert view is not None
    assert (view.state, view.hosts, view.priority) == (StackState.QUEUED, ["a"], 2)
    assert view.spec == job.spec
    assert view.submitted_unix_s == pytest.approx(time.time(), abs=60)
    found = store.task(job.id)
    assert found is not None
    assert found[0].suite == job.suite and found[1] == 0


def test_one_key_is_one_job(store: JobStore) -> None:
    first = store.enqueue(new_job("a"), "key", BODY)
    again = store.enqueue(new_job("a"), "key", BODY)
    assert (again.outcome, again.id) == ("known", first.id)
    other = store.enqueue(new_job("a"), "key", b"another body")
    assert (other.outcome, other.id) == ("other", first.id)
    assert store.enqueue(new_job("a"), "another key", BODY).outcome == "queued"
    assert store.queued() == 2
    before = store.submitted("key", BODY)
    assert before is not None and before.id == first.id
    assert store.submitted("a new key", BODY) is None


def test_a_key_is_kept_for_a_day(store: JobStore, redis_server: RedisServer) -> None:
    store.enqueue(new_job("a"), "key", BODY)
    with redis_server.client() as client:
        (name,) = client.scan_iter(key("idempotency", "*"))
        assert 86000 < client.ttl(name) <= 86400


def test_an_id_is_given_once(store: JobStore) -> None:
    job = new_job("a")
    assert store.enqueue(job, None, BODY).outcome == "queued"
    assert store.enqueue(job, None, BODY).outcome == "taken"
    assert store.queued() == 1


def test_a_full_queue_takes_no_more(store: JobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "QUEUED_MOST", 2)
    queue(store, "a")
    queue(store, "a")
    assert store.enqueue(new_job("a"), None, BODY).outcome == "full"


# ---- order ----


def test_a_host_runs_one_job_at_a_time_in_order(store: JobStore, hosts: HostStore) -> None:
    register(hosts, "a")
    ids = [queue(store, "a") for _ in range(3)]
    for job_id in ids:
        job = one_started(store)
        assert job.id == job_id
        assert started(store) == []
        assert store.finish(job, StackState.SUCCEEDED, None, {})
    assert started(store) == []


def test_hosts_are_independent_of_one_another(store: JobStore, hosts: HostStore) -> None:
    register(hosts, "a", "b")
    ids = {queue(store, "a"), queue(store, "b")}
    queue(store, "a")
    assert set(started(store)) == ids


def test_no_more_start_than_there_is_room_for(store: JobStore, hosts: HostStore) -> None:
    register(hosts, "a", "b", "c")
    ids = [queue(store, name) for name in "abc"]
    assert started(store, most=2) == ids[:2]
    assert started(store) == ids[2:]


def test_priority_is_a_head_start_and_no_more(
    store: JobStore, hosts: HostStore, redis_server: RedisServer
) -> None:
    """Each step is worth ten minutes: half an hour later two steps no longer win."""
    register(hosts, "a")
    early, urgent = queue(store, "a"), queue(store, "a", priority=1)
    assert [view.position for view in store.views([early, urgent])] == [2, 1]
    assert one_started(store).id == urgent
    with redis_server.client() as client:
        client.zincrby(key("queue", "a|a:cpu"), -30 * 60e6, early)
        client.hincrbyfloat(key("job", early), "score", -30 * 60e6)
    late = queue(store, "a", priority=2)
    assert [view.position for view in store.views([early, late])] == [1, 2]


def test_a_job_for_a_host_that_is_not_there_waits_and_holds_up_no_other(
    store: JobStore, hosts: HostStore
) -> None:
    register(hosts, "a")
    waiting = queue(store, "gone")
    both = queue(store, "a", "gone")
    alone = queue(store, "a")
    assert started(store) == [alone]
    register(hosts, "gone")
    assert started(store) == [waiting]
    view = store.view(both)
    assert view is not None and view.state is StackState.QUEUED


# ---- two hosts ----


def test_a_job_gets_all_its_hosts_or_none(store: JobStore, hosts: HostStore) -> None:
    register(hosts, "a", "b")
    first = queue(store, "b")
    both = queue(store, "a", "b")
    (running,) = store.dispatch("one", MANY)
    assert running.id == first
    states = {state.name: state.job for state in hosts.states()}
    assert states == {"a": None, "b": first}
    store.finish(running, StackState.SUCCEEDED, None, {})
    assert started(store) == [both]
    states = {state.name: state.job for state in hosts.states()}
    assert states == {"a": both, "b": both}


def test_a_job_for_two_hosts_is_not_starved_by_a_stream_of_others(
    store: JobStore, hosts: HostStore
) -> None:
    """One-host jobs come without end, and there is always one running on either host."""
    register(hosts, "a", "b")
    before = [queue(store, "a"), queue(store, "b")]
    running = store.dispatch("one", MANY)
    earlier = {queue(store, "a")}
    both = queue(store, "b", "a")
    order = [job.id for job in running]
    for _ in range(12):
        queue(store, "a")
        queue(store, "b")
        ended = running.pop(0)
        assert store.finish(ended, StackState.SUCCEEDED, None, {})
        running += store.dispatch("one", MANY)
        order = order + [job.id for job in running if job.id not in order]
    allowed = set(before) | earlier
    assert set(order[: order.index(both)]) == allowed
    assert len(order) > order.index(both) + 3, "the stream goes on behind it"


def test_a_waiting_job_reserves_its_hosts_only_against_those_behind_it(
    store: JobStore, hosts: HostStore
) -> None:
    register(hosts, "a", "b")
    blocker = queue(store, "b")
    assert started(store) == [blocker]
    ahead = queue(store, "a")
    both = queue(store, "a", "b")
    behind = queue(store, "a")
    job = one_started(store)
    assert job.id == ahead
    store.finish(job, StackState.SUCCEEDED, None, {})
    assert started(store) == [], "a is reserved for the job that waits for b"
    store.cancel(both)
    assert started(store) == [behind]


# ---- leases and fences ----


def test_fences_grow_from_the_time(store: JobStore, hosts: HostStore) -> None:
    register(hosts, "a", "b")
    for _ in range(2):
        queue(store, "a")
        queue(store, "b")
    fences = []
    while jobs := store.dispatch("one", MANY):
        fences += [job.fence for job in jobs]
        for job in jobs:
            store.finish(job, StackState.SUCCEEDED, None, {})
    assert fences == sorted(set(fences)) and len(fences) == 4
    assert fences[0] == pytest.approx(time.time() * 1000, abs=60_000)


def test_a_wiped_redis_gives_higher_fences_all_the_same(
    store: JobStore, hosts: HostStore, redis_server: RedisServer
) -> None:
    register(hosts, "a")
    queue(store, "a")
    before = one_started(store)
    with redis_server.client() as client:
        client.flushall()
        client.script_flush()
    assert store.renew(before) == "gone"
    assert not store.finish(before, StackState.SUCCEEDED, None, {})
    register(hosts, "a")
    queue(store, "a")
    assert one_started(store).fence > before.fence


def test_every_change_of_a_state_is_to_be_noted_once(store: JobStore, hosts: HostStore) -> None:
    register(hosts, "a")
    first, second = queue(store, "a"), queue(store, "a")
    queued = store.reap({}).changed
    assert queued.keys() == {first, second}
    job = one_started(store)
    assert store.record(job, number=1, state=StackState.RUNNING)
    store.noted(queued)
    running = store.reap({}).changed
    assert running.keys() == {first}, "it changed after it was looked at"
    view = store.view(first)
    assert view is not None and view.since_unix_s == int(running[first]) / 1e6
    store.noted(running)
    assert store.reap({}).changed == {}
    assert store.cancel(second).outcome == "cancelled"
    assert store.finish(job, StackState.SUCCEEDED, None, {})
    assert store.reap({}).changed.keys() == {first, second}


def test_the_last_state_is_the_newest_whatever_the_clock_does(
    store: JobStore, hosts: HostStore, redis_server: RedisServer
) -> None:
    register(hosts, "a")
    job_id = queue(store, "a")
    ahead_us = time.time_ns() // 1000 + 3600 * 1_000_000
    with redis_server.client() as client:
        client.hset(key("job", job_id), "since_us", ahead_us)
    job = one_started(store)
    waiting = store.view(job_id)
    assert store.finish(job, StackState.SUCCEEDED, None, {})
    ended = store.view(job_id)
    assert waiting is not None and ended is not None
    assert waiting.since_unix_s is not None and ended.since_unix_s is not None
    assert ahead_us / 1e6 < waiting.since_unix_s < ended.since_unix_s


def test_no_two_jobs_are_submitted_in_one_millisecond(store: JobStore) -> None:
    """Their points in InfluxDB would be one."""
    views = store.views([queue(store, "a") for _ in range(200)])
    assert len({round(view.submitted_unix_s * 1000) for view in views}) == 200
    assert abs(views[-1].submitted_unix_s - time.time()) < 2


def test_leases_live_as_long_as_they_are_renewed(store: JobStore, hosts: HostStore) -> None:
    register(hosts, "a", "b")
    job_id = queue(store, "a", "b")
    job = one_started(store)
    needed = {f"lease:{job_id}", "alive:a", "alive:b", "alive:a:cpu"}
    before = store.reap({}).signs
    assert store.renew(job) == "held"
    found = store.reap(before)
    after = found.signs
    assert {name for name in after if after[name] != before[name]} == needed
    assert found.ended == [] and "alive:b:cpu" not in after, "the job does not need that service"
    assert store.renew(job) == "held"
    found = store.reap(store.reap({}).signs)
    assert found.ended == [(job_id, StackState.QUEUED)] and found.signs == {}
    assert store.renew(job) == "gone"
    assert [state.alive for state in hosts.states()] == [(), ()]


def test_a_wiped_redis_hears_of_fences_from_the_hosts(store: JobStore, hosts: HostStore) -> None:
    """Of a clock that was ahead, say: those of other hosts do not grow with them."""
    ahead = int(time.time() * 1000) + 8 * 3_600_000
    hosts.register(registration("a").model_copy(update={"fence": ahead}), this_host(), table())
    register(hosts, "b")
    for host, expected in (("a", ahead + 1), ("b", None), ("a", ahead + 2)):
        queue(store, host)
        job = one_started(store)
        assert (job.fence == expected) if expected else (job.fence < ahead)
        store.finish(job, StackState.SUCCEEDED, None, {})


def test_a_renewal_of_a_registration_is_one_call(
    hosts: HostStore, redis_server: RedisServer
) -> None:
    """Services that do not measure renew theirs beside a trial."""
    register(hosts, "a")
    assert hosts.renew(registration("a"))
    with redis_server.client() as client:

        def round_trips() -> int:
            found: Any = client.info("stats")
            return int(found["total_reads_processed"])

        before = round_trips()
        assert hosts.renew(registration("a"))
        assert round_trips() - before <= 2, "one of them is the question itself"
        # What another version stored is requested again.
        client.hset(key("host", "a"), "inventory", "{}")
        known = client.hget(key("host", "a"), "service:cpu")
        client.hset(key("host", "a"), "service:cpu", f"{known}1")
    assert not hosts.renew(registration("a"))


def test_only_what_was_seen_counts_as_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    watch = SignWatch()
    found = []
    # The machine sleeps after the 10th look: of that hour 3.5 s count.
    for look in range(60):
        now_s += 3600.0 if look == 10 else 1.0
        watch.look({"lease:x": "1", "alive:a": "2", "alive:b": str(look // 20)})
        found.append(set(watch.silent()))
    assert found[12] == set() and found[13] == {"lease:x"}
    assert found[42] == {"lease:x"} and found[43] == {"lease:x", "alive:a"}
    watch.look({"lease:x": "3"})
    assert watch.silent() == {}


def test_a_lease_that_is_gone_or_anothers_is_not_renewed(
    store: JobStore, hosts: HostStore, redis_server: RedisServer
) -> None:
    register(hosts, "a", "b")
    queue(store, "a", "b")
    job = one_started(store)
    expire_leases(redis_server, "b")
    assert store.renew(job) == "gone"
    with redis_server.client() as client:
        client.set(key("lease", "b"), "another:1:one")
        assert store.renew(job) == "gone"
        assert store.finish(job, StackState.SUCCEEDED, None, {})
        assert client.get(key("lease", "b")) == "another:1:one", "only its own are given back"
        assert client.get(key("lease", "a")) is None


def test_a_runner_that_lost_a_job_writes_nothing_of_it(
    store: JobStore, hosts: HostStore, redis_server: RedisServer
) -> None:
    register(hosts, "a")
    job_id = queue(store, "a")
    stale = one_started(store)
    begin(store, stale)
    expire_leases(redis_server, "a")
    assert reap(store) == [(job_id, "lost")]
    store.resume(job_id, 0, {})
    again = one_started(store)
    assert again.fence > stale.fence
    before = store.view(job_id)
    assert not store.record(stale, number=2, state=StackState.RUNNING, events=["{}"])
    assert not store.finish(stale, StackState.FAILED, "no", {"exit_code": "1"})
    assert store.put_back(stale, "no") == "gone"
    assert store.view(job_id) == before
    assert store.finish(again, StackState.SUCCEEDED, None, {"exit_code": "0"})


# ---- ends ----


@pytest.mark.parametrize("how", ["cancel", "finish", "reap"])
def test_a_job_ends_once(
    store: JobStore, hosts: HostStore, redis_server: RedisServer, how: str
) -> None:
    register(hosts, "a")
    job_id = queue(store, "a")
    if how == "cancel":
        assert store.cancel(job_id).outcome == "cancelled"
    else:
        job = one_started(store)
        begin(store, job)
        if how == "finish":
            assert store.finish(job, StackState.FAILED, "a reason", {"exit_code": "1"})
        else:
            expire_leases(redis_server, "a")
            assert reap(store) == [(job_id, "lost")]
    view = store.view(job_id)
    assert view is not None and view.ended_unix_s is not None
    assert store.cancel(job_id).outcome == "ended"
    assert reap(store) == []
    assert started(store) == []
    assert store.view(job_id) == view
    assert sum(store.counts().values()) == 1


def test_what_is_reported_again_because_the_answer_was_lost_counts_once(
    store: JobStore, hosts: HostStore, redis_server: RedisServer
) -> None:
    register(hosts, "a")
    job_id = queue(store, "a")
    job = one_started(store)
    for number in (1, 1, 2, 2):
        assert store.record(job, number=number, events=['{"event": "case"}'])
    with redis_server.client() as client:
        texts = [fields["event"] for _, fields in client.xrange(key("events", job_id))]
    assert texts.count('{"event": "case"}') == 2
    assert store.finish(job, StackState.SUCCEEDED, None, {})
    assert store.finish(job, StackState.SUCCEEDED, None, {}), "it has ended with that"
    assert not store.finish(job, StackState.FAILED, "no", {})
    view = store.view(job_id)
    assert view is not None and view.state == "succeeded"


def test_what_another_version_wrote_is_left_out_and_not_measured(
    store: JobStore, hosts: HostStore, redis_server: RedisServer
) -> None:
    register(hosts, "a")
    job_id = queue(store, "a")
    with redis_server.client() as client:
        odd = {"spec": '{"workload": "cpu.fma", "planet": 3}', "verdicts": '{"odd": 1}'}
        client.hset(key("job", job_id), mapping=odd)
        client.hset(key("host", "a"), mapping={"inventory": "{}"})
    view = store.view(job_id)
    assert view is not None and (view.spec, view.verdicts) == (None, {})
    with pytest.raises(UsageError, match=r"queued by another version of hostbench: planet"):
        store.task(job_id)
    hosts = HostStore(redis_server.client())
    assert hosts.last_inventory("a") is None
    assert hosts.facts(hosts.states()[0]) is None
    assert not hosts.renew(registration("a")), "it is called anew"
    register(hosts, "a")
    assert hosts.renew(registration("a"))


def test_a_job_whose_orchestrator_died_before_it_began_is_queued_again(
    store: JobStore, hosts: HostStore, redis_server: RedisServer
) -> None:
    register(hosts, "a")
    first, second = queue(store, "a"), queue(store, "a")
    assert one_started(store).id == first
    expire_leases(redis_server, "a")
    assert reap(store) == [(first, "queued")]
    assert started(store) == [first], "where it stood"
    assert store.view(second) is not None


def test_a_job_that_kills_its_orchestrators_is_not_tried_for_ever(
    store: JobStore, hosts: HostStore, redis_server: RedisServer
) -> None:
    register(hosts, "a")
    job_id = queue(store, "a")
    ends = []
    for _ in range(3):
        assert one_started(store).id == job_id
        expire_leases(redis_server, "a")
        ends += reap(store)
    assert [state for _, state in ends] == ["queued", "queued", "failed"]
    assert started(store) == []


def test_a_job_is_put_back_only_before_it_has_begun(store: JobStore, hosts: HostStore) -> None:
    register(hosts, "a")
    job_id = queue(store, "a")
    job = one_started(store)
    assert store.put_back(job, "a could not be reached") == "queued"
    view = store.view(job_id)
    assert view is not None
    assert (view.state, view.reason) == (StackState.QUEUED, "a could not be reached")
    again = one_started(store)
    begin(store, again)
    assert store.put_back(again, "no") == "gone"


def test_a_job_that_is_put_back_while_it_is_cancelled_is_cancelled(
    store: JobStore, hosts: HostStore
) -> None:
    register(hosts, "a")
    job_id = queue(store, "a")
    job = one_started(store)
    assert store.cancel(job_id).outcome == "stopping"
    assert store.renew(job) == "cancel"
    assert store.put_back(job, "no") == "cancelled"
    assert store.state(job_id) is StackState.CANCELLED


def test_a_lost_job_that_was_to_be_cancelled_is_cancelled(
    store: JobStore, hosts: HostStore, redis_server: RedisServer
) -> None:
    register(hosts, "a")
    job_id = queue(store, "a")
    begin(store, one_started(store))
    store.cancel(job_id)
    expire_leases(redis_server, "a")
    assert reap(store) == [(job_id, "cancelled")]


@pytest.mark.parametrize("state", [StackState.LOST, StackState.FAILED, StackState.CANCELLED])
def test_a_job_that_ended_badly_is_resumed(
    store: JobStore, hosts: HostStore, state: StackState
) -> None:
    register(hosts, "a")
    job_id, other = queue(store, "a"), queue(store, "a")
    job = one_started(store)
    begin(store, job)
    assert store.finish(job, state, "why", {"exit_code": "1"})
    assert store.resume(job_id, 0, {}).outcome == "queued"
    assert store.resume(job_id, 0, {}).outcome == "refused"
    view = store.view(job_id)
    assert view is not None
    assert (view.state, view.reason, view.exit_code, view.ended_unix_s, view.sessions) == (
        StackState.QUEUED,
        None,
        None,
        None,
        1,
    )
    assert one_started(store).id == other, "it stands at the end of the queue"


@pytest.mark.parametrize("state", ["queued", "waiting", "succeeded"])
def test_no_other_job_is_resumed(store: JobStore, hosts: HostStore, state: str) -> None:
    register(hosts, "a")
    job_id = queue(store, "a")
    if state != "queued":
        job = one_started(store)
        if state == "succeeded":
            store.finish(job, StackState.SUCCEEDED, None, {})
    answer = store.resume(job_id, 0, {})
    assert (answer.outcome, answer.before) == ("refused", state)


def test_ended_jobs_are_forgotten_at_last(
    store: JobStore, hosts: HostStore, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [queue(store, "a") for _ in range(5)]
    for job_id in ids[:4]:
        store.cancel(job_id)
    assert store.forget() == 0
    monkeypatch.setattr(limits, "ENDED_MOST", 3)
    assert store.forget() == 1
    assert store.view(ids[0]) is None, "the oldest goes first"
    monkeypatch.setattr(limits, "ENDED_KEPT_S", 0.0)
    assert store.forget() == 3
    with redis_server.client() as client:
        left = set(client.scan_iter(key("job:*"))) | set(client.scan_iter(key("events:*")))
    assert left == {key("job", ids[4]), key("events", ids[4])}
    assert [job_id for _, job_id in store.newest(None, None)] == [ids[4]]


def run_quick(store: JobStore, state: StackState = StackState.SUCCEEDED) -> str:
    """A job with the suite, and events of the sizes, of `hostbench submit quick`; its id."""
    suite = load_known_suite(built_in_suites()["quick"])
    job = replace(new_job("a"), suite=suite, spec=JobSpec(suite="quick"))
    assert store.enqueue(job, None, BODY).outcome == "queued"
    held = one_started(store)
    begin(store, held)
    for number, size in enumerate((130_000, *[3_000] * 30), start=2):
        assert store.record(held, number=number, events=[json.dumps({"event": "x" * size})])
    assert store.finish(held, state, None, {"exit_code": "0"})
    return job.id


def used_bytes(store: JobStore) -> int:
    return store.memory().used_bytes


def test_an_ended_job_is_a_summary_once_its_events_have_expired(
    store: JobStore, hosts: HostStore, redis_server: RedisServer
) -> None:
    register(hosts, "a")
    run_quick(store)
    with redis_server.client() as client:
        client.delete(*client.scan_iter(key("events:*")))
        before = used_bytes(store)
        ids = [run_quick(store) for _ in range(200)]
        for job_id in ids:
            assert 0 < client.ttl(key("events", job_id)) <= 600
            client.delete(key("events", job_id))  # as Redis does then
        store.noted(store.reap({}).changed)  # as every orchestrator does
    assert (used_bytes(store) - before) / len(ids) <= BYTES_A_JOB_MOST
    assert [view.state for view in store.views(ids)] == ["succeeded"] * len(ids)


def test_what_an_older_version_kept_of_ended_jobs_is_bounded(
    store: JobStore, hosts: HostStore, redis_server: RedisServer
) -> None:
    register(hosts, "a")
    ended, lost = run_quick(store), run_quick(store, StackState.LOST)
    queued = queue(store, "b")
    with redis_server.client() as client:
        client.hset(key("job", ended), "suite", "{}")
        for job_id in (ended, lost, queued):
            client.persist(key("events", job_id))
        store.bound_ended()
        assert 0 < client.ttl(key("events", ended)) <= 600
        assert client.ttl(key("events", queued)) == -1
        kept = [client.hexists(key("job", job_id), "suite") for job_id in (ended, lost, queued)]
    assert kept == [False, True, True]
    assert store.resume(lost, 0, {}).outcome == "queued"
    with redis_server.client() as client:
        assert client.ttl(key("events", lost)) == -1, "its events begin anew"


def test_a_full_redis_forgets_ended_jobs_before_it_refuses_new_ones(
    store: JobStore, hosts: HostStore, redis_server: RedisServer
) -> None:
    register(hosts, "a")
    old, recent = run_quick(store), run_quick(store)
    with redis_server.client() as client:
        old_us = int((time.time() - 3600) * 1e6)
        client.zadd(key("ended"), {old: old_us})
        try:
            client.config_set("maxmemory", used_bytes(store) * 6 // 5)
            queue(store, "b")
            assert [view.id for view in store.views([old, recent])] == [recent]
            assert not client.exists(key("events", recent)), "of a moment ago only the events go"
            running = queue(store, "a")
            held = one_started(store)
            client.config_set("maxmemory", "500kb")
            for refused in (lambda: queue(store, "a"), lambda: store.resume(old, 0, {})):
                with pytest.raises(OutOfMemoryError, match=r"cancel queued jobs, or .*maxmemory"):
                    refused()
            # What was accepted goes on; its events are published and not kept.
            before = client.xlen(key("events", running))
            assert store.record(held, number=1, fields={"begun": "1"}, events=['{"event": "case"}'])
            assert client.xlen(key("events", running)) == before
            assert store.renew(held) == "held"
            assert hosts.renew(registration("a"))
            assert store.finish(held, StackState.SUCCEEDED, None, {})
        finally:
            client.config_set("maxmemory", 0)


def test_many_jobs_of_a_moment_ago_do_not_fill_redis_with_their_events(
    store: JobStore, hosts: HostStore, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(hosts, "a")
    monkeypatch.setattr(limits, "FORGET_BATCH", 2)
    before = used_bytes(store)
    ids = [run_quick(store) for _ in range(7)]
    with redis_server.client() as client:
        try:
            # Half of this is the bound: the events of all but the last two or three go.
            each = (used_bytes(store) - before) // len(ids)
            client.config_set("maxmemory", 2 * (before + 3 * each))
            assert store.forget() == 0, "a client may still look at the jobs"
            left = [job_id for job_id in ids if client.exists(key("events", job_id))]
            assert left == ids[-len(left) :] and 0 < len(left) <= 3, left
            assert used_bytes(store) <= before + 3 * each
            assert len(store.views(ids)) == len(ids)
        finally:
            client.config_set("maxmemory", 0)


def test_hosts_that_are_gone_for_as_long_are_forgotten_too(
    store: JobStore, hosts: HostStore, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(hosts, "a", "b")
    store.forget()
    assert [state.name for state in hosts.states()] == ["a", "b"]
    with redis_server.client() as client:
        client.delete(key("alive", "a"), key("alive", "a", "cpu"))
        monkeypatch.setattr(limits, "ENDED_KEPT_S", 0.0)
        store.forget()
        assert [state.name for state in hosts.states()] == ["b"], "it is still there"
        assert not client.exists(key("host", "a"))


# ---- hosts ----


def test_a_service_is_new_until_its_facts_are_known(hosts: HostStore) -> None:
    assert not hosts.renew(registration("a"))
    register(hosts, "a")
    assert hosts.renew(registration("a"))
    assert not hosts.renew(registration("a", "fedcba9876543210")), "it was started anew"
    (state,) = hosts.states()
    assert (state.name, state.alive, state.job) == ("a", ("cpu",), None)
    facts = hosts.facts(state)
    assert facts is not None and list(facts.tables) == ["cpu"]


def test_what_the_disk_service_says_of_its_host_stays(hosts: HostStore) -> None:
    """The others see another directory, in containers of their own, and so tell none."""
    place = ScratchPlace(directory="/scratch")
    of_disk = this_host().model_copy(update={"scratch": place})
    of_cpu = this_host().model_copy(update={"scratch": None})
    hosts.register(registration("a"), of_disk, table())
    hosts.register(registration("a", "fedcba9876543210"), of_cpu, table())
    found = hosts.last_inventory("a")
    assert found is not None and found.scratch == place
    newer = of_disk.model_copy(update={"scratch": ScratchPlace(directory="/other")})
    hosts.register(registration("a"), newer, table())
    assert hosts.last_inventory("a") == newer


def test_services_that_register_at_once_lose_nothing_of_each_other(
    hosts: HostStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_disk = this_host().model_copy(update={"scratch": ScratchPlace(directory="/scratch")})
    of_cpu = this_host().model_copy(update={"scratch": None})
    at_once = [registration("a", "fedcba9876543210")]

    def merged(seen: Sequence[HostInventory]) -> HostInventory:
        """The cpu service has read what there is; the disk service comes before it writes."""
        while at_once:
            hosts.register(at_once.pop(), of_disk, table())
        return merged_inventory(seen)

    monkeypatch.setattr(store_hosts, "merged_inventory", merged)
    hosts.register(registration("a"), of_cpu, table())
    found = hosts.last_inventory("a")
    assert found is not None and found.scratch == of_disk.scratch
    assert hosts.renew(registration("a")), "it registered after the other one"


def test_a_host_that_does_not_renew_is_gone(hosts: HostStore, redis_server: RedisServer) -> None:
    register(hosts, "a")
    with redis_server.client() as client:
        client.delete(key("alive:a:cpu"))
    (state,) = hosts.states()
    assert state.alive == ()
    assert hosts.facts(state) is None
    assert hosts.last_inventory("a") is not None
    assert hosts.renew(registration("a")), "it was only late"


def test_a_service_that_was_not_reached_counts_again_when_it_registers(
    store: JobStore, hosts: HostStore
) -> None:
    register(hosts, "a")
    (state,) = hosts.states()
    stranger = Service("a", "cpu", "fedcba9876543210", "http://elsewhere", "0", 0.0)
    hosts.unregister(stranger)
    assert hosts.states()[0].alive == ("cpu",), "another one has registered meanwhile"
    hosts.unregister(state.services[0])
    assert hosts.states()[0].alive == ()
    queue(store, "a")
    assert started(store) == []
    assert not hosts.renew(registration("a")), "it is looked at again"
    register(hosts, "a")
    assert len(started(store)) == 1


# ---- listing ----


def test_jobs_are_listed_newest_first_by_state(store: JobStore, hosts: HostStore) -> None:
    register(hosts, "a")
    ids = [queue(store, "a") for _ in range(4)]
    job = one_started(store)
    assert job.id == ids[0]
    assert [job_id for _, job_id in store.newest(None, None)] == ids[::-1]
    assert [job_id for _, job_id in store.newest(StackState.QUEUED, None)] == ids[:0:-1]
    place = next(place for place in store.newest(None, None) if place[1] == ids[2])
    assert [job_id for _, job_id in store.newest(None, place[0])] == [ids[1], ids[0]]
    counts = store.counts()
    assert counts[StackState.QUEUED] == 3 and counts[StackState.WAITING] == 1


def test_positions_count_those_who_want_the_same_host(store: JobStore) -> None:
    first, elsewhere = queue(store, "a"), queue(store, "b")
    both, last = queue(store, "b", "a"), queue(store, "a")
    positions = {view.id: view.position for view in store.views([first, elsewhere, both, last])}
    assert positions == {first: 1, elsewhere: 1, both: 3, last: 3}
