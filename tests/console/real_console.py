"""A stack with its console, and people who log in to it."""

import contextlib
import hashlib
import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from hostbench.model.jobs import TERMINAL
from tests.stack.influx_server import InfluxServer, newest_influx
from tests.stack.orchestrator_process import API_KEY, OrchestratorProcess
from tests.stack.redis_server import RedisServer
from tests.stack.service_process import ServiceProcess

HOST = "bench-1"
BOARDS = "http://127.0.0.1:3000"
KEYS = {
    "ann": ("viewer", "the-key-of-ann-who-looks"),
    "bob": ("operator", "the-key-of-bob-who-measures"),
}
# Two trials of a second and a half, with samples to watch.
WATCHED: dict[str, Any] = {
    "workload": "cpu.clock",
    "params": {"threads": 1, "duration_s": 1.5, "warmup_s": 0, "sample_interval_s": 0.5},
    "trials": 2,
    "idle_policy": "force",
    "hosts": [HOST],
}
SHORT: dict[str, Any] = {
    "workload": "cpu.clock",
    "params": {"threads": 1, "duration_s": 0.05, "warmup_s": 0},
    "trials": 1,
    "idle_policy": "force",
    "hosts": [HOST],
}
# It goes on until somebody cancels it.
LONG: dict[str, Any] = {
    "workload": "cpu.clock",
    "params": {"threads": 1, "duration_s": 600, "warmup_s": 0},
    "trials": 1,
    "idle_policy": "force",
    "hosts": [HOST],
}


class ConsoleStack:
    """Redis, InfluxDB, an orchestrator and a service, all real."""

    def __init__(self, root: Path, **environment: str) -> None:
        """`environment` adds to that of the orchestrator."""
        self.root = root
        self._browsers: list[Browser] = []
        root.mkdir(parents=True, exist_ok=True)
        self.keys = root / "keys"
        self.write_keys(*KEYS)
        self.redis = RedisServer(root / "redis")
        self.influx: InfluxServer = newest_influx(root / "influx")
        self.orchestrator = OrchestratorProcess(
            root / "orchestrator",
            self.redis.url,
            root / "results",
            HOSTBENCH_KEYS_FILE=str(self.keys),
            HOSTBENCH_GRAFANA_URL=BOARDS,
            **self.influx.settings,
            **environment,
        )
        self.service = ServiceProcess(
            root / "service", host=HOST, HOSTBENCH_ORCHESTRATOR_URL=self.orchestrator.url
        )

    @contextlib.contextmanager
    def running(self) -> Iterator["ConsoleStack"]:
        with self.redis, self.influx:
            self.influx.set_up()
            with self.orchestrator, self.service:
                self.orchestrator.wait_for_host(HOST)
                yield self
                self.close_browsers()

    @property
    def url(self) -> str:
        return self.orchestrator.url

    def write_keys(self, *names: str) -> None:
        """Have these people, and no others, have keys."""
        lines = (
            f"{name} {KEYS[name][0]} {hashlib.sha256(KEYS[name][1].encode()).hexdigest()}"
            for name in names
        )
        self.keys.write_text("".join(f"{line}\n" for line in lines))

    def browser(self) -> "Browser":
        """A browser without a login."""
        one = Browser(self.url)
        self._browsers.append(one)
        return one

    def close_browsers(self) -> None:
        """End the connections of all of them."""
        while self._browsers:
            self._browsers.pop().client.close()

    def logged_in(self, name: str = "bob") -> "Browser":
        """A browser with the session of one of KEYS."""
        one = self.browser()
        one.log_in(KEYS[name][1] if name in KEYS else API_KEY).raise_for_status()
        return one

    def end_all(self) -> None:
        """Cancel whatever has not ended."""
        jobs = self.orchestrator.client.get("/jobs", params={"limit": 500}).json()["jobs"]
        for job in jobs:
            if job["state"] not in TERMINAL:
                self.orchestrator.client.delete(f"/jobs/{job['id']}")
                self.orchestrator.wait_for(job["id"])


class Browser:
    """What a browser without scripts does: it keeps cookies, and sends forms as they stand."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client = httpx.Client(base_url=url, timeout=60)

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.client.get(path, **options)

    def page(self, path: str) -> str:
        """The page, which there must be."""
        answer = self.get(path, follow_redirects=True)
        assert answer.status_code == 200, answer.text
        return answer.text

    def send(self, path: str, fields: dict[str, str], **options: Any) -> httpx.Response:
        return self.client.post(path, data=fields, **options)

    def log_in(self, key: str, path: str = "/ui/login", **more: str) -> httpx.Response:
        """Send the form of the login page; the answer to it."""
        fields = hidden(self.get(path).text) | {"key": key} | more
        answer = self.send("/ui/login", fields)
        return answer if answer.status_code != 303 else _as_success(answer)

    @property
    def csrf(self) -> str:
        """What the forms of this login send."""
        return hidden(self.page("/ui/hosts"))["csrf"]

    @property
    def session(self) -> str | None:
        return self.client.cookies.get("hostbench")


def _as_success(answer: httpx.Response) -> httpx.Response:
    """httpx takes a redirection for an error."""
    answer.raise_for_status = lambda: answer  # type: ignore[method-assign]
    return answer


def hidden(page: str) -> dict[str, str]:
    """The hidden fields of a page's forms."""
    found = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', page)
    return {name: html.unescape(value) for name, value in found}
