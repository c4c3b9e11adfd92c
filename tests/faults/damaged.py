"""JSON bodies of every kind of damage, and a service whose answers are such."""

import asyncio
import contextlib
import copy
import json
import random
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.types import Receive, Scope, Send

BODY_BYTES_MOST = 1 << 20
ODD: list[Any] = [
    None, True, -1, 0, 10**400, 1e308, "", "\0", "\ud800", "é" * 5000, "../../etc/passwd", [], {},
    [[[[]]]], {"": ""}, "http://[", "unix:/", "9" * 5000, -0.0, 2**63, {"workload": "cpu.fma"},
]  # fmt: skip
Place = tuple[Any, Any]


def places(value: Any) -> list[Place]:
    """Every container with an index in it."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    found: list[Place] = []
    for index, one in inner:
        found.append((value, index))
        if isinstance(one, dict | list):
            found += places(one)
    return found


def damaged(chance: random.Random, whole: dict[str, Any]) -> bytes:
    """A body with some values replaced, removed, repeated or nested, then some bytes changed."""
    body = json.loads(json.dumps(whole))
    for _ in range(chance.randint(0, 3)):
        if not (spots := places(body)):
            break
        container, index = chance.choice(spots)
        how = chance.randrange(5)
        if how == 0:
            del container[index]
        elif how == 1:
            container[index] = [container[index]] * chance.choice((2, 50, 2000))
        elif how == 2 and isinstance(container, dict):
            container[chance.choice(("x" * 300, "", "__class__", "name"))] = copy.deepcopy(
                chance.choice(ODD)
            )
        elif how == 3:
            container[index] = {str(one): container[index] for one in range(chance.randint(1, 200))}
        else:
            container[index] = copy.deepcopy(chance.choice(ODD))
    text = bytearray(json.dumps(body).encode()[:BODY_BYTES_MOST])
    for _ in range(chance.choice((0, 0, 0, 1, 5))):
        text[chance.randrange(len(text))] = chance.randrange(256)
    if chance.random() < 0.05:
        del text[chance.randrange(len(text)) :]
    return bytes(text)


def damaged_lines(chance: random.Random, lines: list[dict[str, Any]]) -> bytes:
    """A stream of events, one damaged, missing, repeated or in another place, or which
    is cut."""
    bodies = [json.dumps(line).encode() for line in lines]
    at = chance.randrange(len(bodies))
    how = chance.randrange(6)
    if how == 0:
        del bodies[at]
    elif how == 1:
        bodies.insert(at, bodies[at])
    elif how == 2:
        chance.shuffle(bodies)
    else:
        # Without newlines: those would make it several.
        bodies[at] = damaged(chance, lines[at]).replace(b"\n", b" ")
    stream = b"".join(body + b"\n" for body in bodies)
    return stream[: chance.randrange(len(stream))] if how == 5 else stream


@dataclass
class DamagedService:
    """Answers as a real service did, and those of `broken` paths with damage. `answers`: the body
    of each GET by path; `trial`: the lines of a trial."""

    chance: random.Random
    answers: dict[str, dict[str, Any]]
    trial: list[dict[str, Any]]
    broken: frozenset[str] = frozenset()
    url: str = field(default="", init=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        while scope["type"] == "http" and (await receive()).get("more_body"):
            pass
        status, body = self._answer(scope["method"], scope["path"])
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _answer(self, method: str, path: str) -> tuple[int, bytes]:
        if method == "PUT":
            return 204, b""
        is_broken = path in self.broken
        status = self.chance.choice((200, 200, 200, 200, 404, 409, 422, 500)) if is_broken else 200
        if path == "/trials":
            if is_broken:
                return status, damaged_lines(self.chance, self.trial)
            return 200, b"".join(json.dumps(line).encode() + b"\n" for line in self.trial)
        whole = self.answers.get(path)
        if whole is None:
            return 404, b"{}"
        return status, damaged(self.chance, whole) if is_broken else json.dumps(whole).encode()

    @contextlib.contextmanager
    def serving(self) -> Iterator["DamagedService"]:
        """Serve on a free port of this machine."""
        listener = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(self, log_level="critical", lifespan="off")
        running = uvicorn.Server(config)
        thread = threading.Thread(target=lambda: asyncio.run(running.serve([listener])))
        thread.start()
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        while not running.started:
            time.sleep(0.01)
        try:
            yield self
        finally:
            running.should_exit = True
            thread.join(10)
            listener.close()
