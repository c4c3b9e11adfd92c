"""A server that gives the answers of a test: for what no good orchestrator says."""

import asyncio
import contextlib
import json
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import Receive, Scope, Send

from hostbench.client.address import Address
from hostbench.client.connection import Connection

KEY = "key-of-the-tests-0123"
JSON, HTML = "application/json", "text/html; charset=utf-8"
PROBLEM, EVENTS = "application/problem+json", "text/event-stream; charset=utf-8"


@dataclass(frozen=True)
class Canned:
    """An answer. After its body it is silent for a while, then ends, or is cut off."""

    status: int = 200
    body: bytes = b"{}"
    media_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    silent_s: float = 0.0

    @classmethod
    def problem(cls, status: int, code: str, detail: str, **members: Any) -> "Canned":
        content = {"title": "t", "status": status, "code": code, "detail": detail, **members}
        return cls(status, json.dumps(content).encode(), PROBLEM)


@dataclass(frozen=True)
class ReceivedRequest:
    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes


class CannedServer:
    """`answers` by path; a list is answered from its front, the last one stays."""

    def __init__(self) -> None:
        self.answers: dict[str, Canned | list[Canned]] = {}
        self.requests: list[ReceivedRequest] = []
        self.url = ""

    def connection(self, **changes: Any) -> Connection:
        known = {
            "address": Address.parsed(self.url, "--url"),
            "named_by": "--url",
            "key": KEY,
            "key_from": "key (--key-file)",
            "ca_file": None,
        }
        return Connection(**{**known, **changes})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        query = scope["query_string"].decode()
        self.requests.append(ReceivedRequest(scope["method"], scope["path"], query, headers, body))
        answer = self._answer(scope["path"])
        given = {"content-type": answer.media_type, **answer.headers}
        if answer.cut:
            given["content-length"] = str(len(answer.body) + 1)
        encoded = [(name.encode(), value.encode()) for name, value in given.items()]
        await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
        await send({"type": "http.response.body", "body": answer.body, "more_body": True})
        await asyncio.sleep(answer.silent_s)
        await send({"type": "http.response.body", "body": b""})

    def _answer(self, path: str) -> Canned:
        answer = self.answers.get(path, Canned.problem(404, "not_found", "Not Found"))
        if isinstance(answer, list):
            return answer.pop(0) if len(answer) > 1 else answer[0]
        return answer


@contextlib.contextmanager
def serving(server: CannedServer, **tls: str) -> Iterator[CannedServer]:
    """Serve on a free port of this machine. `tls`: ssl_certfile and ssl_keyfile."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(server, log_level="critical", lifespan="off", **tls)  # type: ignore[arg-type]
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, args=([listener],))
    thread.start()
    scheme = "https" if tls else "http"
    server.url = f"{scheme}://127.0.0.1:{listener.getsockname()[1]}"
    while not running.started:
        time.sleep(0.01)
    try:
        yield server
    finally:
        running.should_exit = True
        thread.join(10)
        listener.close()


@dataclass(frozen=True)
class Certificate:
    """Files of a certificate that signs itself."""

    certificate: Path
    key: Path

    @property
    def of_server(self) -> dict[str, str]:
        """The environment of a server that has it, and that trusts those who have it too."""
        return {
            "HOSTBENCH_TLS_CERT_FILE": str(self.certificate),
            "HOSTBENCH_TLS_KEY_FILE": str(self.key),
            "HOSTBENCH_CA_FILE": str(self.certificate),
        }


def certificate(directory: Path, names: str) -> Certificate:
    """One for `names`, such as `IP:127.0.0.1`."""
    made = Certificate(directory / "server.pem", directory / "server.key")
    _openssl("req", "-x509", *_request(made.key, names), "-out", str(made.certificate))
    return made


EXPIRED = """
[ca]
default_ca = once
[once]
database = index.txt
new_certs_dir = .
rand_serial = yes
default_md = sha256
policy = any
copy_extensions = copy
[any]
commonName = supplied
"""


def expired_certificate(directory: Path, names: str) -> Certificate:
    """One that was valid for a month of 2020."""
    made = Certificate(directory / "server.pem", directory / "server.key")
    (directory / "index.txt").touch()
    (directory / "once.cnf").write_text(EXPIRED)
    _openssl("req", *_request(made.key, names), "-out", str(directory / "request.pem"))
    _openssl(
        "ca", "-batch", "-selfsign", "-config", "once.cnf", "-keyfile", made.key.name,
        "-in", "request.pem", "-out", made.certificate.name, "-notext",
        "-startdate", "20200101000000Z", "-enddate", "20200201000000Z", cwd=directory,
    )  # fmt: skip
    return made


def _request(key: Path, names: str) -> list[str]:
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    return [
        *curve, "-keyout", str(key), "-subj", "/CN=hostbench", "-addext", f"subjectAltName={names}",
    ]  # fmt: skip


def _openssl(*arguments: str, cwd: Path | None = None) -> None:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, done.stderr
