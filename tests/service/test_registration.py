"""A service tells the orchestrator where it is."""

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from prometheus_client import Counter

from hostbench.model.service import Registered, Registration
from hostbench.programs.program import LIST_TIMEOUT_S
from hostbench.remote import client as remote
from hostbench.service import registration
from hostbench.service.__main__ import GRACE_S
from hostbench.service.registration import RENEW_S
from hostbench.web.keys import OwnKey
from tests.faults.command import scripted_programs
from tests.patience import SOON_S, wait_until
from tests.service.conftest import StartService, behaving, check_and_stop
from tests.service.streams import running
from tests.stack.ports import free_port
from tests.stack.service_process import SERVICE_KEY, ServiceProcess


class Registry:
    """Stands where the orchestrator would: it answers POST /hosts and nothing else."""

    def __init__(
        self, port: int, renew_s: float = 1.0, status: int = 200, answer_s: float = 0.0
    ) -> None:
        """`answer_s`: how long it takes to answer the first time."""
        self.registrations: list[tuple[float, Registration]] = []
        self.keys: set[str | None] = set()
        self.status = status
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                registry.keys.add(self.headers["authorization"])
                if self.path == "/hosts" and registry.status == 200:
                    one = Registration.model_validate_json(body)
                    registry.registrations.append((time.monotonic(), one))
                answer = Registered(renew_s=renew_s, expires_s=45).model_dump_json().encode()
                if registry.count() == 1:
                    time.sleep(answer_s)
                self.send_response(registry.status)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def count(self) -> int:
        return len(self.registrations)


@pytest.fixture
def registry() -> Iterator[Callable[..., Registry]]:
    made: list[Registry] = []

    def make(port: int, **options: Any) -> Registry:
        made.append(Registry(port, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def registering(start_service: StartService, port: int) -> ServiceProcess:
    return start_service(HOSTBENCH_ORCHESTRATOR_URL=f"http://127.0.0.1:{port}/")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServiceProcess, Registry]]:
    """A service and its registry for all tests to which it makes no difference what the service
    went through before."""
    root = tmp_path_factory.mktemp("service")
    port = free_port()
    one = Registry(port)
    service = ServiceProcess(
        root,
        programs=scripted_programs(root),
        HOSTBENCH_ORCHESTRATOR_URL=f"http://127.0.0.1:{port}/",
    )
    service.start()
    yield service, one
    check_and_stop(service)
    one.close()


def test_it_registers_and_renews(pair: tuple[ServiceProcess, Registry]) -> None:
    service, one = pair
    wait_until(lambda: one.count() >= 3)
    (first_s, first), (second_s, second) = one.registrations[:2]
    assert first == second
    assert first.host == "bench-1" and first.subsystem == "cpu" and first.url == service.url
    assert 0.3 < second_s - first_s < RENEW_S, "as soon as the orchestrator wants it"
    assert one.keys == {f"Bearer {SERVICE_KEY}"}
    service.stop()
    service.start()
    before = one.count()
    wait_until(lambda: one.count() > before)
    assert one.registrations[-1][1].instance != first.instance


def test_it_can_be_called_back_at_once(pair: tuple[ServiceProcess, Registry]) -> None:
    """The orchestrator asks for the table before it answers."""
    service, one = pair
    service.stop()
    before = one.count()
    service.start(wait=False)
    wait_until(lambda: one.count() > before)
    with contextlib.closing(service.remote()) as remote:
        assert remote.table().subsystem == "cpu"


def test_a_service_that_is_looked_at_for_long_registers(
    registry: Callable[..., Registry], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The drivers of many cards take longer than a renewal may."""
    monkeypatch.setattr(registration, "RENEWAL_S_MOST", 0.3)
    one = registry(free_port(), answer_s=1.0)
    settings = SimpleNamespace(
        orchestrator_url=f"http://127.0.0.1:{one._server.server_port}",
        url="http://127.0.0.1:1", ca_file=None, host="bench-1", subsystem="gpu",
        lock=tmp_path / "lock",
    )  # fmt: skip

    async def quiet() -> None:
        pass

    outcomes = Counter("tried", "", ("outcome",), registry=None)
    registrar = registration.Registrar(
        cast(Any, settings),
        OwnKey("k", None),
        cast(Any, SimpleNamespace(quiet=quiet)),
        cast(Any, SimpleNamespace(registrations=outcomes)),
    )

    async def registered() -> None:
        running = asyncio.create_task(registrar.run())
        async with asyncio.timeout(SOON_S):
            while not registrar.has_registered:
                await asyncio.sleep(0.01)
        running.cancel()

    asyncio.run(registered())
    assert one.count() == 1, "not given up and tried again"
    assert outcomes.labels(outcome="failed")._value.get() == 0


def test_each_wait_holds_what_lies_inside_of_it() -> None:
    assert remote.HOST_S_MOST > LIST_TIMEOUT_S
    assert registration.TAKE_UP_S_MOST > remote.ANSWER_S_MOST + remote.HOST_S_MOST


def test_it_comes_back_to_an_orchestrator_that_was_away(
    start_service: StartService, registry: Callable[..., Registry]
) -> None:
    port = free_port()
    service = registering(start_service, port)
    wait_until(lambda: "registration_fails" in service.log)
    time.sleep(1.5)
    answer = httpx.get(f"{service.url}/healthz")
    assert (answer.status_code, answer.json()["code"]) == (503, "not_registered")
    one = registry(port)
    wait_until(lambda: one.count() > 0)
    wait_until(lambda: httpx.get(f"{service.url}/healthz").status_code == 200)
    failures = [line for line in service.log.splitlines() if "registration_fails" in line]
    assert len(failures) == 1, "one line for the same trouble, however often"
    wait_until(lambda: '"registered"' in service.log)


def test_an_orchestrator_that_refuses(pair: tuple[ServiceProcess, Registry]) -> None:
    service, one = pair
    one.status = 401
    wait_until(lambda: "HTTP status 401" in service.log)
    before = one.count()
    one.status = 200
    wait_until(lambda: one.count() > before)


def test_not_while_a_trial_runs_and_at_once_afterwards(
    pair: tuple[ServiceProcess, Registry],
) -> None:
    service, one = pair
    params = {"threads": 1}
    with (
        behaving(service, "slower"),
        running(service, "t1", workload="clock", params=params) as trial,
    ):
        time.sleep(0.3)
        before = one.count()
        assert "end" in [line["event"] for line in trial.finish()]
        assert one.count() <= before + 1
    wait_until(lambda: one.count() > before)


def test_it_ends_at_once_and_says_nothing_more(
    start_service: StartService, registry: Callable[..., Registry]
) -> None:
    service = registering(start_service, free_port())
    wait_until(lambda: "registration_fails" in service.log)
    began_s = time.monotonic()
    assert service.stop() == 0
    assert time.monotonic() - began_s < GRACE_S, "nothing had to be waited for"
    assert {json.loads(line)["event"] for line in service.log.splitlines()} == {
        "listening",
        "registration_fails",
    }
