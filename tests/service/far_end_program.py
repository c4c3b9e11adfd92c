"""Stands in for net-bench where a test needs what the real one cannot be made to do.

A file `script` beside this one names the behaviour. As a far end it repeats its settings in the
reason of its end, serves one connection from the allowed address that shows the token, and ends
with the lifeline.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

FOREVER_S = 600


def say(event: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def param(name: str, kind: str, scope: str, choices: list[str] | None = None) -> dict[str, Any]:
    numeric = kind == "count"
    return {
        "name": name, "type": kind, "unit": "1" if numeric else None,
        "default": choices[0] if choices else None, "min": 0 if numeric else None,
        "max": 1 << 20 if numeric else None, "choices": choices, "unsupported": {}, "scope": scope,
        "help": "",
    }  # fmt: skip


def workload(name: str, params: list[dict[str, Any]]) -> dict[str, Any]:
    metric = {"name": "bytes_per_second", "unit": "byte/s", "direction": "higher", "primary": True}
    return {
        "name": name, "description": "", "kind": "loop", "unsupported": None,
        "params": params, "metrics": [metric | {"description": ""}],
    }  # fmt: skip


def table() -> dict[str, Any]:
    target = param("target", "choice", "request", ["auto", "loopback", "far_host"])
    far = [param("session_fd", "count", "host"), target]
    return {
        "schema": 1, "program": "net-bench", "subsystem": "net", "version": "0.1.0",
        "workloads": [workload("tcp_stream", far), workload("alone", [])],
    }  # fmt: skip


def handed(option: str) -> str:
    """What stands in the file of the descriptor that `option` names."""
    (given,) = [word.split("=", 1)[1] for word in sys.argv if word.startswith(f"{option}=")]
    with os.fdopen(os.dup(int(given))) as file:
        return file.read()


def lifeline() -> int:
    return int(sys.argv[sys.argv.index("--lifeline-fd") + 1])


def end(outcome: str, reason: str | None = None, strangers: int = 0) -> int:
    event = {"event": "session_end", "outcome": outcome, "reason": reason}
    say({**event, "strangers": strangers, "cpu_s": 0.25})
    return 0 if outcome == "done" else 1


def serve(caps: dict[str, str], listener: socket.socket) -> int:
    """Until a caller has shown the token, or none has in time."""
    watched: list[Any] = [listener, lifeline()]
    until_s, strangers = time.monotonic() + float(caps["expiry_s"]), 0
    while (left_s := until_s - time.monotonic()) > 0:
        ready = select.select(watched, [], [], left_s)[0]
        if lifeline() in ready:
            return end("ended")
        if listener in ready:
            connection, (address, *_) = listener.accept()
            with connection:
                if address == caps["allowed"] and connection.recv(100).decode() == caps["token"]:
                    return end("done", " ".join(sorted(caps.keys())), strangers)
            strangers += 1
    return end("expired", "no near end has proved the token in time", strangers)


def far_end(script: str) -> int:
    caps = dict(line.split("=", 1) for line in handed("--session-fd").splitlines())
    if script == "cannot_listen":
        return end("failed", f"cannot listen at {caps['bind']}")
    if script == "garbage":
        sys.stdout.write("hello\n")
        return 0
    if script == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    family = socket.AF_INET6 if ":" in caps["bind"] else socket.AF_INET
    with socket.create_server((caps["bind"], 0), family=family) as listener:
        address, port, *_ = listener.getsockname()
        say({"event": "listening", "address": address, "port": port})
        if script == "hang":
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            subprocess.Popen(["sleep", str(FOREVER_S)], stdout=subprocess.DEVNULL)
            time.sleep(FOREVER_S)
        if script == "cut":
            return 0
        return serve(caps, listener)


def main() -> int:
    if sys.argv[1] == "--list":
        sys.stdout.write(json.dumps(table()))
        return 0
    if sys.argv[1] == "far-end":
        script = Path(__file__).with_name("script")
        return far_end(script.read_text() if script.exists() else "")
    say({"event": "error", "code": "handed", "message": handed("--session-fd")})
    return 1


if __name__ == "__main__":
    sys.exit(main())
