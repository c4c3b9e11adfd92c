"""A real service as a process of its own, and calls to it."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import httpx

from hostbench.base.tls import trusting
from hostbench.remote.client import RemoteService
from tests.client.canned_server import Certificate
from tests.patience import SOON_S, comes_true, wait_until
from tests.stack import preloaded
from tests.stack.ports import free_port

CHECKOUT = Path(__file__).parents[2]
PROGRAMS = CHECKOUT / "build" / "release"
SERVICE_KEY = "the key of the services of tests"
START_S = 60.0
STOP_S = 30.0
# What a test service and all it starts carry in their environment.
MARK = "HOSTBENCH_TEST_SERVICE"


class ServiceProcess:
    """One service of one host. Several share a host where they are given the same lock."""

    def __init__(
        self,
        root: Path,
        *,
        host: str = "bench-1",
        subsystem: str = "cpu",
        programs: Path = PROGRAMS,
        lock: Path | None = None,
        key: str = SERVICE_KEY,
        listen: str | None = None,
        prefix: Sequence[str] = (),
        certificate: Certificate | None = None,
        **environment: str,
    ) -> None:
        """`root` is for its log and, unless given, its lock. `prefix` stands before its command;
        with a `certificate` it speaks TLS. `environment` adds variables, such as
        HOSTBENCH_ORCHESTRATOR_URL."""
        self.root = root
        self.host = host
        self.subsystem = subsystem
        self.lock = lock or root / "hostbench.lock"
        self.key = key
        self.listen = listen or f"127.0.0.1:{free_port()}"
        self.certificate = certificate
        scheme = "http" if certificate is None else "https"
        self.url = self.listen if self.listen.startswith("unix:") else f"{scheme}://{self.listen}"
        self._prefix = tuple(prefix)
        self.environment = {
            **os.environ,
            "HOSTBENCH_SERVICE_KEY": key,
            "HOSTBENCH_HOST": host,
            "HOSTBENCH_LOCK": str(self.lock),
            "HOSTBENCH_PROGRAMS": str(programs),
            "HOSTBENCH_LISTEN": self.listen,
            MARK: str(root),
            **({} if certificate is None else certificate.of_server),
            **environment,
        }
        self.process: preloaded.Server | None = None
        self.client = self.another_client()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.client.close()
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            self.stop()

    # ---- the process ----

    def start(self, *, wait: bool = True) -> None:
        """Start it; `wait`: until it answers."""
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / "log").open("ab") as log:
            self.process = preloaded.start(
                "hostbench.service", [self.subsystem], self.environment, log, self._prefix
            )
        if wait:
            self.wait_until_it_answers()

    def wait_until_it_answers(self) -> None:
        """After `start(wait=False)`."""
        assert self.process is not None
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            assert self.process.poll() is None, self.log
            if self._is_listening():
                self.client.get("/healthz")
                return
            time.sleep(0.02)
        raise TimeoutError(f"no service at {self.url}: {self.log}")

    def _is_listening(self) -> bool:
        unix = self.listen.startswith("unix:")
        host, _, port = self.listen.rpartition(":")
        address = self.listen.removeprefix("unix:") if unix else (host.strip("[]"), int(port))
        family = socket.AF_UNIX if unix else socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family) as probe:
            return probe.connect_ex(address) == 0

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self.process is not None
        return self.process.pid

    @property
    def log(self) -> str:
        """Everything it has printed."""
        return (self.root / "log").read_text()

    def stop(self) -> int | None:
        """End it as an operator does; its exit code."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a crash does."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> int | None:
        if self.process is None:
            return None
        self.process.send_signal(how)
        try:
            code = self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        self.process = None
        return code

    def program_pids(self) -> list[int]:
        """The programs and peers it has started that are still alive."""
        own = self.process.pid if self.process is not None else 0
        return [pid for pid in _carrying(f"{MARK}={self.root}".encode()) if pid != own]

    def wait_for_program(self) -> int:
        """The process id of a program once one runs, which then gives way to other tests."""
        found = wait_until(self.program_pids, lambda: "no program was started")
        self.make_programs_yield()
        return found[0]

    def make_programs_yield(self) -> None:
        """Give the running programs the lowest priority: their figures are not needed, and other
        tests need the CPU.

        A program is a session of its own, which a kernel with autogroups schedules as one beside
        all of the tests, whatever the priority of its processes."""
        for pid in self.program_pids():
            with contextlib.suppress(ProcessLookupError):
                os.setpriority(os.PRIO_PGRP, os.getpgid(pid), 19)
            with contextlib.suppress(OSError):
                Path(f"/proc/{pid}/autogroup").write_text("19")

    def programs_gone_within(self, seconds: float = SOON_S) -> bool:
        """Whether none of its programs is alive any more before the time is over."""
        return comes_true(lambda: not self.program_pids(), seconds)

    # ---- calls ----

    def another_client(self, key: str | None = None, **options: Any) -> httpx.Client:
        """A client of its own connections."""
        unix = self.url.removeprefix("unix:") if self.url.startswith("unix:") else None
        return httpx.Client(
            base_url="http://service" if unix else self.url,
            headers={"Authorization": f"Bearer {key or self.key}"},
            transport=httpx.HTTPTransport(uds=unix, verify=trusting(self.ca_file)),
            timeout=30,
            **options,
        )

    @property
    def ca_file(self) -> Path | None:
        """Who signed its certificate."""
        return None if self.certificate is None else self.certificate.certificate

    def remote(self) -> RemoteService:
        """The client that the orchestrator uses."""
        return RemoteService(self.url, self.key, self.ca_file)

    def post(self, client: httpx.Client | None = None, **request: Any) -> httpx.Response:
        """POST /trials, read to its end; needs no renewal when it takes less than 5 s."""
        return (client or self.client).post("/trials", json=request)


def events(answer: httpx.Response) -> list[dict[str, Any]]:
    """The lines of a stream."""
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.content.splitlines()]


def _carrying(mark: bytes) -> Iterator[int]:
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            environment = (entry / "environ").read_bytes().split(b"\0")
            # A zombie has no command line.
            if mark in environment and (entry / "cmdline").read_bytes():
                yield int(entry.name)
