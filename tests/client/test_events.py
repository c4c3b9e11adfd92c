"""Following a job over connections that break."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hostbench.base.errors import HostbenchError, UnreachableError
from hostbench.client import api, events
from hostbench.client.api import Orchestrator
from hostbench.client.events import JobEvents
from hostbench.model.job_events import JobEvent, StateEvent, WaitingEvent
from tests.client.breaking_proxy import BreakingProxy
from tests.client.canned_server import (
    EVENTS,
    HTML,
    Canned,
    CannedServer,
    certificate,
    serving,
)
from tests.client.test_messages import JOB, VIEW

STREAM = f"/jobs/{JOB}/events"
WAITING: dict[str, Any] = {
    "event": "waiting",
    "window": {
        "seconds": 1.0,
        "busy_ratio": 0.5,
        "steal_ratio": 0.0,
        "busiest_cpu_ratio": 1.0,
        "psi_cpu_ratio": None,
        "reasons": [{"code": "busy", "text": "busy"}],
    },
}


@pytest.fixture
def server() -> Iterator[CannedServer]:
    with serving(CannedServer()) as running:
        yield running


@pytest.fixture(autouse=True)
def _in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "FIRST_PAUSE_S", 0.02)


def view(state: str) -> Canned:
    return Canned(200, json.dumps(VIEW | {"state": state}).encode())


def state(name: str, **more: Any) -> dict[str, Any]:
    return {"event": "state", "job": JOB, "state": name, "reason": None, "time_unix_s": 1.0} | more


def stream(*messages: tuple[str | None, dict[str, Any]], **answer: Any) -> Canned:
    """A stream of events with their ids."""
    text = ": nothing to see\n\n"
    for number, content in messages:
        text += f"id: {number}\n" if number else ""
        text += f"event: {content['event']}\ndata: {json.dumps(content)}\n\n"
    return Canned(200, text.encode(), EVENTS, **answer)


def followed(server: CannedServer) -> tuple[list[JobEvent], list[str]]:
    messages: list[str] = []
    with Orchestrator(server.connection()) as orchestrator:
        return list(JobEvents(orchestrator, JOB, messages.append)), messages


def states(found: list[JobEvent]) -> list[str]:
    return [event.state for event in found if isinstance(event, StateEvent)]


def last_ids(server: CannedServer) -> list[str | None]:
    return [
        request.headers.get("last-event-id")
        for request in server.requests
        if request.path == STREAM
    ]


def test_it_ends_with_the_job(server: CannedServer) -> None:
    server.answers[STREAM] = stream(
        ("1-0", state("running")), (None, WAITING), ("2-0", state("succeeded")), silent_s=6
    )
    server.answers[f"/jobs/{JOB}"] = view("succeeded")
    began_s = time.monotonic()
    found, messages = followed(server)
    assert states(found) == ["running", "succeeded"] and isinstance(found[1], WaitingEvent)
    assert messages == [] and time.monotonic() - began_s < 5


def test_a_broken_connection_is_taken_up_after_the_last_event(server: CannedServer) -> None:
    server.answers[STREAM] = [
        stream(("1-0", state("queued")), ("2-0", state("running")), (None, WAITING), cut=True),
        Canned.problem(503, "lacking", "Redis is not available"),
        stream(("3-0", state("failed"))),
    ]
    server.answers[f"/jobs/{JOB}"] = view("failed")
    found, messages = followed(server)
    assert states(found) == ["queued", "running", "failed"]
    assert last_ids(server) == [None, "2-0", "2-0"]
    assert len(messages) == 2 and "trying again, the job continues" in messages[0]
    assert messages[1] == f"connected to {server.url} again"


def test_a_broken_connection_over_tls(tmp_path: Path) -> None:
    """Also while whatever stands before the orchestrator takes connections and drops them."""
    made = certificate(tmp_path, "IP:127.0.0.1")
    tls = {"ssl_certfile": str(made.certificate), "ssl_keyfile": str(made.key)}
    with serving(CannedServer(), **tls) as server:
        server.answers[STREAM] = [
            stream(("1-0", state("running")), cut=True),
            stream(("2-0", state("succeeded"))),
        ]
        server.answers[f"/jobs/{JOB}"] = view("succeeded")
        with BreakingProxy(int(server.url.rpartition(":")[2])).running() as proxy:
            server.url = f"https://127.0.0.1:{proxy.port}"
            messages: list[str] = []
            connection = server.connection(ca_file=made.certificate)
            with Orchestrator(connection) as orchestrator:
                found: list[JobEvent] = []
                for event in JobEvents(orchestrator, JOB, messages.append):
                    proxy.turned_away = 2 if not found else 0
                    found.append(event)
    assert states(found) == ["running", "succeeded"]
    assert len(messages) == 2 and "trying again" in messages[0]


def test_half_an_event_is_none(server: CannedServer) -> None:
    whole = stream(("1-0", state("running"))).body
    half = b"id: 2-0\ndata: " + json.dumps(state("succeeded")).encode() + b"\n"
    server.answers[STREAM] = [
        Canned(200, whole + half, EVENTS, cut=True),
        stream(("2-0", state("succeeded"))),
    ]
    server.answers[f"/jobs/{JOB}"] = view("succeeded")
    assert states(followed(server)[0]) == ["running", "succeeded"]
    assert last_ids(server) == [None, "1-0"]


def test_a_stream_that_ends_before_the_job_is_requested_again(server: CannedServer) -> None:
    server.answers[STREAM] = [
        stream(("1-0", state("running"))),
        stream(("2-0", state("lost"))),
        stream(("3-0", state("succeeded"))),
    ]
    server.answers[f"/jobs/{JOB}"] = [view("running"), view("queued"), view("succeeded")]
    found, messages = followed(server)
    assert states(found) == ["running", "lost", "succeeded"] and messages == []
    assert last_ids(server) == [None, "1-0", "2-0"]


def test_silence_is_a_broken_connection(
    server: CannedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "SILENCE_S", 1.5)
    server.answers[STREAM] = [
        stream(("1-0", state("running")), silent_s=4),
        stream(("2-0", state("succeeded"))),
    ]
    server.answers[f"/jobs/{JOB}"] = view("succeeded")
    found, messages = followed(server)
    assert states(found) == ["running", "succeeded"] and len(messages) == 2


def test_what_this_version_does_not_know_is_passed_over(server: CannedServer) -> None:
    server.answers[STREAM] = stream(
        ("1-0", {"event": "fireworks"}),
        ("2-0", {"event": "state", "state": "dancing"}),
        ("3-0", state("running", more={"a": 1})),
        ("4-0", state("succeeded")),
    )
    server.answers[f"/jobs/{JOB}"] = view("succeeded")
    assert states(followed(server)[0]) == ["running", "succeeded"]


def test_it_gives_up(server: CannedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "GIVE_UP_S", 1.0)
    server.answers[STREAM] = Canned.problem(503, "lacking", "Redis is not available")
    with pytest.raises(UnreachableError) as caught:
        followed(server)
    assert caught.value.message.endswith(
        f"Redis is not available; stopped trying; the job continues: hostbench watch {JOB}"
    )
    assert len(last_ids(server)) > 2


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Canned.problem(401, "unauthorized", "no"), "refuses the key"),
        (Canned.problem(404, "unknown_job", "there is no job"), "there is no job"),
        (Canned(200, b"<html>", HTML), "does not answer as an orchestrator"),
    ],
)
def test_what_no_patience_helps_against(server: CannedServer, answer: Canned, says: str) -> None:
    server.answers[STREAM] = answer
    with pytest.raises(HostbenchError, match=says):
        followed(server)
    assert len(last_ids(server)) == 1
