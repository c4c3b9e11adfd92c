"""A real orchestrator as a process of its own, and calls to it."""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import httpx

from hostbench.base.tls import trusting
from hostbench.model.jobs import TERMINAL, StackState
from tests.stack import preloaded
from tests.stack.ports import free_port

API_KEY = "the-key-of-the-users-of-tests"
SERVICE_KEY = "the key of the services of tests"
START_S = 60.0
STOP_S = 30.0


class OrchestratorProcess:
    """One orchestrator; several may share a Redis and a results directory."""

    def __init__(
        self,
        root: Path,
        redis_url: str,
        results: Path,
        address: str = "127.0.0.1",
        prefix: Sequence[str] = (),
        **environment: str,
    ) -> None:
        """`root` is for its log. `prefix` stands before its command. `environment` adds to what it
        gets, such as a certificate."""
        self.root = root
        self.results = results
        self._prefix = tuple(prefix)
        self.port = free_port()
        certificate = environment.get("HOSTBENCH_TLS_CERT_FILE")
        scheme = "http" if certificate is None else "https"
        self.url = f"{scheme}://{address}:{self.port}"
        self.environment = {
            **os.environ,
            "HOSTBENCH_API_KEY": API_KEY,
            "HOSTBENCH_SERVICE_KEY": SERVICE_KEY,
            "HOSTBENCH_REDIS_URL": redis_url,
            "HOSTBENCH_RESULTS": str(results),
            "HOSTBENCH_LISTEN": f"{address}:{self.port}",
            **environment,
        }
        self.client = httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {API_KEY}"},
            timeout=120,
            verify=trusting(None if certificate is None else Path(certificate)),
        )
        self._process: preloaded.Server | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.resume()
        self.stop()
        self.client.close()

    # ---- the process ----

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        """Everything it has printed."""
        return (self.root / "log").read_text()

    def start(self, *, wait: bool = True) -> None:
        """Start it; `wait`: until it answers."""
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / "log").open("ab") as log:
            self._process = preloaded.start("orchestrator", [], self.environment, log, self._prefix)
        if wait:
            self._wait_until_it_answers()

    def _wait_until_it_answers(self) -> None:
        assert self._process is not None
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            assert self._process.poll() is None, self.log
            with contextlib.suppress(httpx.HTTPError):
                self.client.get("/healthz")
                return
            time.sleep(0.05)
        raise TimeoutError(f"no orchestrator at {self.url}: {self.log}")

    def stop(self) -> int | None:
        """End it as an operator does; its exit code."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a crash does."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """It does nothing until `resume`."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """It goes on where it was paused."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    def wait(self) -> int:
        """Its exit code, once it has ended by itself."""
        assert self._process is not None
        return self._process.wait(STOP_S)

    def _end(self, how: signal.Signals) -> int | None:
        if self._process is None:
            return None
        self._process.send_signal(how)
        try:
            code = self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise
        self._process = None
        return code

    # ---- calls ----

    def submit(self, **spec: Any) -> str:
        """Queue a job; its id."""
        answer = self.client.post("/jobs", json=spec)
        assert answer.status_code == 202, answer.text
        job_id: str = answer.json()["id"]
        return job_id

    def job(self, job_id: str) -> dict[str, Any]:
        """The job as it stands."""
        answer = self.client.get(f"/jobs/{job_id}")
        assert answer.status_code == 200, answer.text
        view: dict[str, Any] = answer.json()
        return view

    def wait_for(self, job_id: str, *states: StackState, seconds: float = 60) -> dict[str, Any]:
        """The job once it is in one of these states; without any: once it has ended."""
        wanted = states or tuple(TERMINAL)
        until = time.monotonic() + seconds
        while (view := self.job(job_id))["state"] not in wanted:
            assert time.monotonic() < until, f"{view}\n{self.log}"
            # A job stays as it ended: only what passes has to be looked for often.
            time.sleep(0.05 if states else 0.1)
        return view

    def wait_for_host(
        self, name: str, state: str = "idle", seconds: float = 60, subsystem: str = "cpu"
    ) -> dict[str, Any]:
        """The host once it is in this state and, unless it is gone, has this service."""
        until = time.monotonic() + seconds
        while True:
            answer = self.client.get("/hosts").json()
            for host in answer["hosts"]:
                services = [one["subsystem"] for one in host["services"]]
                there = state == "gone" or subsystem in services
                if host["name"] == name and host["state"] == state and there:
                    found: dict[str, Any] = host
                    return found
            assert time.monotonic() < until, f"{name} is not {state}: {answer}\n{self.log}"
            time.sleep(0.05)

    def result(self, job_id: str) -> dict[str, Any]:
        """The result document."""
        answer = self.client.get(f"/jobs/{job_id}/result")
        assert answer.status_code == 200, answer.text
        document: dict[str, Any] = answer.json()
        return document

    def events(self, job_id: str, last: str | None = None) -> Iterator[tuple[str | None, Any]]:
        """(id, event) until the stream ends."""
        headers = {} if last is None else {"Last-Event-ID": last}
        with self.client.stream("GET", f"/jobs/{job_id}/events", headers=headers) as answer:
            assert answer.status_code == 200, answer.read()
            event_id, data = None, None
            for line in answer.iter_lines():
                name, _, value = line.partition(": ")
                if name == "id":
                    event_id = value
                elif name == "data":
                    data = json.loads(value)
                elif not line and data is not None:
                    yield event_id, data
                    event_id, data = None, None
