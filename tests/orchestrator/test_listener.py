"""The thread that hears what orchestrators tell one another."""

import time
from pathlib import Path

import pytest

from orchestrator.queue import scheduler
from orchestrator.queue.connection import connect
from orchestrator.queue.scheduler import CANCEL, WAKE, Listener
from tests.patience import PATIENCE_S
from tests.stack.redis_server import RedisServer

SILENCE_S = 0.2
WATCHED_S = 2.0


def pings(server: RedisServer) -> int:
    statistics = connect(server.url).info("commandstats")
    return int(statistics.get("cmdstat_ping", {}).get("calls", 0))


def until(found: list[str], words: list[str]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while found != words and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert found == words


def test_it_hears_and_asks_only_in_silence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "SILENCE_S", SILENCE_S)
    heard: list[str] = []
    with RedisServer(tmp_path) as server:
        client = connect(server.url)
        one = Listener(client, lambda: heard.append("wake"), lambda job: heard.append(job))
        one.start()
        try:
            until(heard, ["wake"])
            client.publish(CANCEL, "some-job")
            client.publish(WAKE, "")
            until(heard, ["wake", "some-job", "wake"])
            before = pings(server)
            time.sleep(WATCHED_S)
            sent = pings(server) - before
        finally:
            one.close()
    assert 1 <= sent <= WATCHED_S / SILENCE_S + 1
