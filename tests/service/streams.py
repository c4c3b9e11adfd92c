"""Trials that run while a test does something else."""

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import httpx

from hostbench.base.errors import BusyError
from hostbench.base.interrupt import Interrupt
from hostbench.host.lock import HostLock
from tests.patience import PATIENCE_S, SOON_S, wait_until
from tests.stack.service_process import ServiceProcess

LONG: dict[str, Any] = {"workload": "clock", "params": {"threads": 1, "duration_s": 60}}
SHORT: dict[str, Any] = {
    "workload": "clock",
    "params": {"threads": 1, "duration_s": 0.05, "warmup_s": 0},
}
RENEW_S = 1.0


class RunningTrial:
    """A trial whose stream is read in a thread; `renewed` until that is switched off."""

    path = "/trials"

    def __init__(self, service: ServiceProcess, trial_id: str, **request: Any) -> None:
        self.id = trial_id
        self.lines: list[dict[str, Any]] = []
        self.raw: list[str] = []
        self.status: int | None = None
        self.problem: dict[str, Any] = {}
        self.cut = False
        self._socket: socket.socket | None = None
        self._service = service
        self._request = {"id": trial_id, **(request or LONG)}
        self._renewing = threading.Event()
        self._started = threading.Event()
        self._renewed = threading.Event()
        self.ended = threading.Event()
        self._threads = [threading.Thread(target=self._read), threading.Thread(target=self._renew)]
        for thread in self._threads:
            thread.start()

    def _read(self) -> None:
        try:
            with (
                self._service.another_client() as client,
                client.stream("POST", self.path, json=self._request) as answer,
            ):
                self._socket = answer.extensions["network_stream"].get_extra_info("socket")
                self.status = answer.status_code
                if answer.status_code != 200:
                    self.problem = json.loads(answer.read())
                    return
                for line in answer.iter_lines():
                    self.raw.append(line)
                    self.lines.append(json.loads(line))
                    self._started.set()
        except httpx.HTTPError:
            self.cut = True
        finally:
            self._started.set()
            self.ended.set()
            self._renewing.set()

    def _renew(self) -> None:
        with self._service.another_client() as client:
            while not self._renewing.wait(RENEW_S):
                with contextlib.suppress(httpx.HTTPError):
                    if client.put(f"/trials/{self.id}/lease").is_success:
                        self._renewed.set()

    def forget_the_lease(self) -> None:
        """No renewal from now on."""
        self._renewing.set()

    def begun(self) -> Self:
        """Wait until the first line is there, or there will be none."""
        assert self._started.wait(PATIENCE_S)
        self._service.make_programs_yield()
        return self

    def renewed(self) -> Self:
        """Wait until a renewal has succeeded, so that its caller is one whom the service knows:
        an orchestrator is, by what it requested before the trial."""
        assert self._renewed.wait(PATIENCE_S)
        return self

    def finish(self, seconds: float = PATIENCE_S) -> list[dict[str, Any]]:
        """The lines, once the stream has ended."""
        assert self.ended.wait(seconds), "the stream goes on"
        for thread in self._threads:
            thread.join(10)
        return self.lines

    def hang_up(self) -> None:
        """Close the connection, so that the service ends the trial, and wait for that end."""
        if self._socket is not None and not self.ended.is_set():
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        self.forget_the_lease()
        self.finish()
        assert self._service.programs_gone_within() and lock_is_free(self._service.lock)

    def failure(self) -> dict[str, Any]:
        """The line in place of a figure."""
        (failure,) = [line for line in self.finish() if line["event"] == "failure"]
        assert self.lines[-1]["event"] == "control_plane"
        return failure


@contextlib.contextmanager
def running(service: ServiceProcess, trial_id: str, **request: Any) -> Iterator[RunningTrial]:
    """A trial that has begun, and has ended when this is left."""
    trial = RunningTrial(service, trial_id, **request).begun()
    try:
        yield trial
    finally:
        trial.hang_up()


def outcome(service: ServiceProcess, trial: str) -> str:
    """How the last trial with this in its name has ended, by the service's log, once it has."""

    def logged(event: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in service.log.splitlines() if event in line]
        return [line for line in lines if trial in line["trial"]]

    wait_until(lambda: 0 < len(logged("_begins")) == len(logged("_ends")), lambda: service.log)
    found: str = logged("_ends")[-1]["outcome"]
    return found


def lock_is_free(path: Path, within_s: float = SOON_S) -> bool:
    """Whether somebody else can take the lock soon, as an embedded run would."""
    interrupt = Interrupt()
    with contextlib.closing(interrupt), contextlib.closing(HostLock(path)) as lock:
        try:
            lock.take(within_s, interrupt)
        except BusyError:
            return False
        return True
