"""Stands in for net-bench at both ends, where a test needs them to do what the real ones cannot be
made to do.

SCRIPT, or a file `script` beside this one, names the behaviour. One connection carries all: the
near end shows the token, then a byte every so often, then a word of farewell.
"""

import contextlib
import json
import os
import select
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from scripted_program import behaviour, end, say, start  # type: ignore[import-not-found]

SCRIPT = behaviour()
BEAT_S = 0.05
SILENCE_S_MOST = 3.0
ACCEPTED, BEAT, BYE = b"+", b".", b"!"


def param(
    name: str, kind: str, default: Any = None, choices: Sequence[str] | None = None
) -> dict[str, Any]:
    numeric = kind != "choice"
    return {
        "name": name, "type": kind, "unit": "s" if kind == "number" else "1" if numeric else None,
        "default": default, "min": 0 if numeric else None, "max": 4096 if numeric else None,
        "choices": choices, "unsupported": {}, "help": "",
        "scope": "host" if name == "session_fd" else "request",
    }  # fmt: skip


def table() -> dict[str, Any]:
    params = [
        param("streams", "count", 1),
        param("duration_s", "number", 10.0),
        param("warmup_s", "number", 0.0),
        param("target", "choice", "auto", ["auto", "loopback", "far_host"]),
        param("session_fd", "count"),
    ]
    metric = {"name": "bytes_per_second", "unit": "byte/s", "direction": "higher", "primary": True}
    workload = {
        "name": "tcp_stream", "description": "", "kind": "loop", "unsupported": None,
        "params": params, "metrics": [metric | {"description": ""}],
    }  # fmt: skip
    return {
        "schema": 1, "program": "net-bench", "subsystem": "net", "version": "0.1.0",
        "workloads": [workload],
    }  # fmt: skip


def options() -> dict[str, str]:
    return dict(word[2:].split("=", 1) for word in sys.argv[1:] if "=" in word)


def session_terms() -> dict[str, str]:
    """What stands in the file that was handed over; nothing when none was."""
    given = options().get("session-fd")
    if given is None:
        return {}
    with os.fdopen(os.dup(int(given))) as file:
        return dict(line.split("=", 1) for line in file.read().splitlines())


# ---- the far end ----


def ended(outcome: str, reason: str | None = None) -> int:
    say(
        {
            "event": "session_end",
            "outcome": outcome,
            "reason": reason,
            "strangers": 0,
            "cpu_s": 0.25,
        }
    )
    return 0 if outcome == "done" else 1


def far_end() -> int:
    grant = session_terms()
    lifeline = int(sys.argv[sys.argv.index("--lifeline-fd") + 1])
    with socket.create_server((grant["bind"], 0)) as listener:
        address, port = listener.getsockname()
        say({"event": "listening", "address": address, "port": port})
        expiry_s = 0.001 if SCRIPT == "expires" else float(grant["expiry_s"])
        watched: list[Any] = [listener, lifeline]
        ready = select.select(watched, [], [], expiry_s)[0]
        if lifeline in ready:
            return ended("ended")
        if not ready:
            return ended("expired", "no near end has proved the token in time")
        connection, (peer, *_) = listener.accept()
    with connection:
        return serve(connection, lifeline, grant, peer)


def serve(connection: socket.socket, lifeline: int, grant: dict[str, str], peer: str) -> int:
    if peer != grant["allowed"] or connection.recv(100).decode() != grant["token"]:
        return ended("refused", "a wrong token")
    if SCRIPT == "refuses":
        return ended("refused", "5 streams are requested, 2 are allowed")
    connection.sendall(ACCEPTED)
    watched: list[Any] = [connection, lifeline]
    while True:
        ready = select.select(watched, [], [], SILENCE_S_MOST)[0]
        if lifeline in ready:
            return ended("ended")
        heard = connection.recv(100) if ready else b""
        if BYE in heard:
            return ended("done")
        if not heard:
            return ended("lost", "the near end is gone")
        if SCRIPT == "crash":
            os.abort()
        connection.sendall(BEAT)


# ---- the near end ----


def failed(code: str, message: str) -> int:
    say({"event": "error", "code": code, "message": message})
    return 1


def near_end(workload: str) -> int:
    place, given = session_terms(), options()
    params: dict[str, Any] = {
        "streams": int(given.get("streams", 1)),
        "duration_s": float(given.get("duration-s", 10)),
        "warmup_s": float(given.get("warmup-s", 0)),
        "target": "far_host" if place else "loopback",
    }
    begun = start(workload, params) | {"program": "net-bench"}
    done = end(table(), workload, 1e9)
    if not place:
        say(begun)
        time.sleep(params["duration_s"])
        say(done)
        return 0
    try:
        far = socket.create_connection((place["address"], int(place["port"])), timeout=2)
    except OSError as error:
        return failed("far_end", f"cannot connect to {place['address']}: {error.strerror}")
    with far:
        return talk(far, place["token"], begun, done)


def talk(far: socket.socket, token: str, begun: dict[str, Any], done: dict[str, Any]) -> int:
    far.settimeout(SILENCE_S_MOST)
    far.sendall(token.encode())
    with contextlib.suppress(OSError):
        if far.recv(1) == ACCEPTED:
            say(begun)
            until_s = time.monotonic() + begun["params"]["duration_s"]
            while time.monotonic() < until_s:
                far.sendall(BEAT)
                if not far.recv(100):
                    return failed("far_end_lost", "the far end closed the connection")
                time.sleep(BEAT_S)
            far.sendall(BYE)
            say(done)
            return 0
        return failed("refused", "the far end refused the test")
    return failed("far_end_lost", f"the far end has not been heard of for {SILENCE_S_MOST:g} s")


def main() -> int:
    if sys.argv[1] == "--list":
        sys.stdout.write(json.dumps(table()))
        return 0
    return far_end() if sys.argv[1] == "far-end" else near_end(sys.argv[1])


if __name__ == "__main__":
    sys.exit(main())
