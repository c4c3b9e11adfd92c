"""Every point arrives once, whatever happens to InfluxDB, to Redis or to a writer."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from orchestrator.influx import outbox as outbox_module
from orchestrator.influx.client import InfluxClient, InfluxError
from orchestrator.influx.outbox import DEAD, STREAM, Outbox
from orchestrator.influx.points import SAMPLES, Point
from orchestrator.influx.writer import GROUP, OutboxWriter
from tests.patience import wait_until
from tests.stack.influx_server import DATABASE, InfluxServer
from tests.stack.redis_server import RedisServer

NOW_MS = int(time.time() * 1000)


def points(count: int, start: int = 0, retention: str | None = None) -> list[Point]:
    return [
        Point("result", {"host": "alpha"}, {"value": float(i)}, NOW_MS - i, retention)
        for i in range(start, start + count)
    ]


def stored(client: InfluxClient, retention: str | None = None) -> list[float]:
    found = client.query('SELECT "value" FROM "result"', retention)
    return sorted(row["value"] for series in found for row in series.rows())


@contextmanager
def writing(
    redis_server: RedisServer, client: InfluxClient, **options: float
) -> Iterator[OutboxWriter]:
    writer = OutboxWriter(redis_server.client(), client, **options)
    writer.start()
    try:
        yield writer
    finally:
        writer.stop()


@pytest.fixture
def influx(influx_server: InfluxServer, database: str) -> Iterator[InfluxClient]:
    with influx_server.client(database=database) as client:
        yield client


def test_points_of_both_retentions_arrive(
    redis_server: RedisServer, redis_client: redis.Redis, influx: InfluxClient
) -> None:
    outbox = Outbox(redis_client)
    outbox.put(points(2500) + points(10, retention=SAMPLES))
    assert outbox.status().entries == 4
    with writing(redis_server, influx):
        wait_until(lambda: outbox.status().entries == 0)
        outbox.put(points(1, start=2500))
        wait_until(lambda: outbox.status().entries == 0)
    assert stored(influx) == list(range(2501))
    assert stored(influx, SAMPLES) == list(range(10))
    assert outbox.status().healthy
    assert redis_client.xpending(STREAM, GROUP)["pending"] == 0


def test_writing_twice_changes_nothing(
    redis_server: RedisServer, redis_client: redis.Redis, influx: InfluxClient
) -> None:
    outbox = Outbox(redis_client)
    with writing(redis_server, influx):
        for _ in range(3):
            outbox.put(points(100))
        wait_until(lambda: outbox.status().entries == 0)
    assert stored(influx) == list(range(100))


def test_an_outage_of_influxdb_delays_points_and_loses_none(
    redis_server: RedisServer, redis_client: redis.Redis, tmp_path: Path
) -> None:
    outbox = Outbox(redis_client)
    with InfluxServer(tmp_path / "influx") as server:
        server.set_up()
        with server.client() as influx, writing(redis_server, influx) as writer:
            outbox.put(points(10))
            wait_until(lambda: outbox.status().entries == 0)
            server.stop(signal.SIGKILL)
            outbox.put(points(10, start=10))
            wait_until(lambda: writer.error is not None)
            status = outbox.status(writer.error)
            assert status.error is not None and "does not answer" in status.error
            assert not status.healthy
            outbox.put(points(10, start=20))
            assert outbox.status().entries == 2
            server.start()
            wait_until(lambda: outbox.status().entries == 0)
            wait_until(lambda: writer.error is None)
            assert stored(influx) == list(range(30))


def test_influxdb_that_was_never_there(
    redis_server: RedisServer, redis_client: redis.Redis, tmp_path: Path
) -> None:
    """1.x comes up empty: the writer makes database and retention policy."""
    outbox = Outbox(redis_client)
    server = InfluxServer(tmp_path / "influx")
    client = InfluxClient(server.url, DATABASE)
    with client, writing(redis_server, client) as writer:
        outbox.put(points(5) + points(5, retention=SAMPLES))
        wait_until(lambda: writer.error is not None)
        with server:
            server.set_up(make_database=False)
            with server.admin() as admin, writing(redis_server, admin, abandoned_s=0.2):
                wait_until(lambda: outbox.status().entries == 0)
                assert stored(admin) == list(range(5))
                assert stored(admin, SAMPLES) == list(range(5))


@pytest.mark.parametrize(
    ("user", "password", "why"),
    [("hostbench", "wrong", "does not allow it"), ("grafana", "reader-password", "write")],
)
def test_the_wrong_password_delays_points_and_says_so(
    redis_server: RedisServer,
    redis_client: redis.Redis,
    influx_server: InfluxServer,
    influx: InfluxClient,
    user: str,
    password: str,
    why: str,
) -> None:
    outbox = Outbox(redis_client)
    outbox.put(points(5))
    wrong = influx_server.client(user, password, influx.database)
    with wrong, writing(redis_server, wrong) as writer:
        wait_until(lambda: writer.error is not None)
        assert writer.error is not None and why in writer.error
        assert outbox.status().dead_letters == 0
    with writing(redis_server, influx, abandoned_s=0.2):
        wait_until(lambda: outbox.status().entries == 0)
    assert stored(influx) == list(range(5))


def test_rejected_points_become_dead_letters_and_the_others_arrive(
    redis_server: RedisServer, redis_client: redis.Redis, influx: InfluxClient
) -> None:
    outbox = Outbox(redis_client)
    good = points(1000)
    bad = [
        Point("result", {"host": "alpha"}, {"value": "a string"}, NOW_MS - 5000 - i)
        for i in range(3)
    ]
    outbox.put(good[:1])
    with writing(redis_server, influx):
        wait_until(lambda: outbox.status().entries == 0)
        outbox.put([*good[1:300], bad[0], *good[300:700], *bad[1:], *good[700:]])
        wait_until(lambda: outbox.status().entries == 0)
    assert stored(influx) == list(range(1000))
    status = outbox.status()
    assert status.dead_letters == 3
    assert not status.healthy
    letters = outbox.dead_letters()
    assert {letter["line"] for letter in letters} == {
        f'result,host=alpha value="a string" {one.time_ms}' for one in bad
    }
    assert all("field type conflict" in letter["reason"] for letter in letters)
    outbox.forget_dead_letters()
    assert outbox.status().healthy and not outbox.dead_letters()


def test_points_beyond_their_retention_are_counted_and_no_dead_letters(
    redis_server: RedisServer, redis_client: redis.Redis, influx: InfluxClient
) -> None:
    outbox = Outbox(redis_client)
    old = Point("result", {"host": "alpha"}, {"value": -1.0}, NOW_MS - 40 * 86_400_000, SAMPLES)
    with writing(redis_server, influx):
        outbox.put([*points(50, retention=SAMPLES), old])
        wait_until(lambda: outbox.status().entries == 0)
    status = outbox.status()
    assert (status.expired, status.dead_letters) == (1, 0)
    assert status.healthy
    assert stored(influx, SAMPLES) == list(range(50))


def test_dead_letters_are_bounded(
    redis_server: RedisServer,
    redis_client: redis.Redis,
    influx: InfluxClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("orchestrator.influx.writer.DEAD_LETTERS_KEPT", 4)
    outbox = Outbox(redis_client)
    influx.write([f"result,host=alpha value=1 {NOW_MS}"])
    outbox.put([Point("result", {"host": "b"}, {"value": "x"}, NOW_MS + i) for i in range(10)])
    with writing(redis_server, influx):
        wait_until(lambda: outbox.status().entries == 0)
    assert outbox.status().dead_letters == 10
    assert redis_client.llen(DEAD) == 4


def test_a_full_redis_takes_no_points_and_is_emptied(
    redis_server: RedisServer, redis_client: redis.Redis, influx: InfluxClient
) -> None:
    """Also of rejected points, and by a writer that comes later."""
    outbox = Outbox(redis_client)
    influx.write([f"result,host=alpha value=0 {NOW_MS}"])
    bad = Point("result", {"host": "alpha"}, {"value": "a string"}, NOW_MS - 5000)
    outbox.put([*points(10), bad])
    redis_client.config_set("maxmemory", "500kb")
    with pytest.raises(redis.exceptions.OutOfMemoryError):
        outbox.put(points(1))
    with writing(redis_server, influx):
        wait_until(lambda: outbox.status().entries == 0)
    assert stored(influx) == list(range(10))
    assert outbox.status().dead_letters == 1


def test_a_dead_writers_entries_are_taken_over(
    redis_server: RedisServer, redis_client: redis.Redis, influx: InfluxClient
) -> None:
    outbox = Outbox(redis_client)
    outbox.put(points(10))
    redis_client.xgroup_create(STREAM, GROUP, id="0")
    redis_client.xreadgroup(GROUP, "dead", {STREAM: ">"})
    assert redis_client.xpending(STREAM, GROUP)["pending"] == 1
    with writing(redis_server, influx, abandoned_s=0.3):
        wait_until(lambda: outbox.status().entries == 0)
        assert stored(influx) == list(range(10))
        wait_until(lambda: len(redis_client.xinfo_consumers(STREAM, GROUP)) == 1)


def put_in_turns(redis_server: RedisServer, begin: int) -> None:
    outbox = Outbox(redis_server.client())
    for i in range(20):
        outbox.put(points(20, start=begin + 20 * i))


def test_two_writers_share_the_work_and_every_point_arrives(
    redis_server: RedisServer, redis_client: redis.Redis, influx: InfluxClient
) -> None:
    outbox = Outbox(redis_client)
    with writing(redis_server, influx), writing(redis_server, influx):
        threads = [
            threading.Thread(target=put_in_turns, args=(redis_server, begin))
            for begin in (0, 400, 800)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wait_until(lambda: outbox.status().entries == 0)
    assert stored(influx) == list(range(1200))
    assert outbox.status().healthy


def test_redis_that_was_wiped_and_came_back(
    redis_server: RedisServer, influx: InfluxClient
) -> None:
    with writing(redis_server, influx) as writer:
        outbox = Outbox(redis_server.client())
        outbox.put(points(1))
        wait_until(lambda: stored(influx) == [0])
        redis_server.stop()
        wait_until(lambda: writer.error is not None)
        assert writer.error is not None and "Redis" in writer.error
        redis_server.wipe()
        wait_until(lambda: writer.error is None)
        Outbox(redis_server.client()).put(points(1, start=1))
        wait_until(lambda: stored(influx) == [0, 1])


def test_a_crash_of_redis_loses_no_point(
    redis_server: RedisServer, redis_client: redis.Redis, influx: InfluxClient
) -> None:
    outbox = Outbox(redis_client)
    outbox.put(points(20))
    redis_server.kill()
    redis_server.start()
    with writing(redis_server, influx):
        wait_until(lambda: outbox.status().entries == 0)
    assert stored(influx) == list(range(20))


def test_a_full_outbox_leaves_points_out_and_says_so(
    redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_module, "ENTRIES_MOST", 2)
    outbox = Outbox(redis_client)
    for i in range(4):
        outbox.put(points(5, start=5 * i))
    status = outbox.status()
    assert (status.entries, status.left_out) == (2, 10)
    assert not status.healthy


def test_points_given_up_while_redis_is_away_are_counted_when_it_is_back(
    redis_server: RedisServer,
) -> None:
    outbox = Outbox(redis_server.client())
    redis_server.stop()
    outbox.leave_out(3)
    redis_server.start()
    assert outbox.status().left_out == 3
    assert outbox.status().left_out == 3
    outbox.made_up_for(3)
    assert outbox.status().healthy


def test_the_age_of_the_oldest_entry(redis_client: redis.Redis) -> None:
    outbox = Outbox(redis_client)
    assert outbox.status().oldest_s is None
    outbox.put(points(1))
    time.sleep(0.2)
    oldest_s = outbox.status().oldest_s
    assert oldest_s is not None and 0.15 < oldest_s < 60


@pytest.mark.usefixtures("first_generation")
def test_errors_of_the_client_are_distinguished(influx_server: InfluxServer) -> None:
    from orchestrator.influx.client import NoDatabase, Rejected, Unauthorized, Unreachable

    now = f"result value=1 {NOW_MS}"
    cases: list[tuple[InfluxClient, str, type[InfluxError], str]] = [
        (InfluxClient("http://127.0.0.1:1", "x"), now, Unreachable, "does not answer"),
        (InfluxClient("localhost:8086", "x"), now, Unreachable, "begins with http://"),
        (influx_server.client(password="no"), now, Unauthorized, "does not allow"),
        (influx_server.admin("nowhere"), now, NoDatabase, "not found"),
        (influx_server.client(), "nonsense", Rejected, "unable to parse"),
    ]
    for client, line, error, text in cases:
        with client, pytest.raises(error, match=text):
            client.write([line])
    with influx_server.client() as client, pytest.raises(NoDatabase, match="nosuch"):
        client.write([now], "nosuch")
