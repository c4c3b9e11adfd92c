"""Redis is not available when the orchestrator starts, and goes and comes; TLS; a Unix socket."""

import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.orchestrator.conftest import HOST
from tests.orchestrator.test_calls import QUICK
from tests.patience import wait_until
from tests.stack.orchestrator_process import API_KEY, OrchestratorProcess
from tests.stack.redis_server import RedisServer
from tests.stack.service_process import ServiceProcess

# It takes a second; other work may hold up one answer and the next, but hardly five.
ANSWER_S_MOST = 3.0
TRIES = 5


@pytest.fixture(scope="module")
def redis_of_file(tmp_path_factory: pytest.TempPathFactory) -> RedisServer:
    return RedisServer(tmp_path_factory.mktemp("redis"))


@pytest.fixture
def absent_redis(redis_of_file: RedisServer) -> Iterator[RedisServer]:
    """One that is not there until it is started."""
    yield redis_of_file
    redis_of_file.resume()
    redis_of_file.stop()


@pytest.fixture(scope="module")
def orchestrator(
    tmp_path_factory: pytest.TempPathFactory, redis_of_file: RedisServer
) -> Iterator[OrchestratorProcess]:
    """One for all tests whose Redis is not available at first; the last of them ends it."""
    root = tmp_path_factory.mktemp("orchestrator")
    with OrchestratorProcess(root, redis_of_file.url, root / "results") as one:
        yield one


def health(orchestrator: OrchestratorProcess) -> tuple[int, str, str]:
    """Status, what it says, what it says of Redis; it never hangs."""
    for _ in range(TRIES):
        answer = orchestrator.client.get("/healthz")
        if answer.elapsed.total_seconds() < ANSWER_S_MOST:
            body = answer.json()
            return answer.status_code, body["status"], body["parts"]["redis"]["status"]
    raise AssertionError(f"no answer within {ANSWER_S_MOST:g} s")


def wait_until_well(orchestrator: OrchestratorProcess) -> None:
    wait_until(lambda: health(orchestrator) == (200, "ok", "ok"), lambda: orchestrator.log)


def test_it_starts_without_redis_and_recovers_by_itself(
    tmp_path: Path, absent_redis: RedisServer, orchestrator: OrchestratorProcess
) -> None:
    assert health(orchestrator) == (503, "down", "down")
    for call in ("/jobs", "/hosts", "/workloads", "/jobs/20261120T174501Z-quick-3f2a"):
        answer = orchestrator.client.get(call)
        assert (answer.status_code, answer.json()["code"]) == (503, "redis_away")
        assert int(answer.headers["retry-after"]) > 0
    assert orchestrator.client.post("/jobs", json=QUICK).status_code == 503
    assert "hostbench_redis_up 0.0" in orchestrator.client.get("/metrics").text
    assert orchestrator.client.get("/suites").status_code == 200
    absent_redis.start()
    wait_until_well(orchestrator)
    with ServiceProcess(
        tmp_path / "service", host=HOST, HOSTBENCH_ORCHESTRATOR_URL=orchestrator.url
    ):
        orchestrator.wait_for_host(HOST)
        job = orchestrator.submit(**QUICK)
        assert orchestrator.wait_for(job)["state"] == "succeeded"
        absent_redis.stop()
        assert health(orchestrator) == (503, "down", "down")
        absent_redis.start()
        wait_until_well(orchestrator)
        assert orchestrator.job(job)["state"] == "succeeded"
        assert orchestrator.wait_for(orchestrator.submit(**QUICK))["state"] == "succeeded"
    away = [line for line in orchestrator.log.splitlines() if "redis_is_away" in line]
    assert 1 <= len(away) <= 4, "logged once for each time, if it was noticed"
    assert "Traceback" not in orchestrator.log


def test_a_redis_that_hangs_does_not_hang_the_health_check(
    absent_redis: RedisServer, orchestrator: OrchestratorProcess
) -> None:
    absent_redis.start()
    wait_until_well(orchestrator)
    absent_redis.pause()
    assert health(orchestrator) == (503, "down", "down")
    assert health(orchestrator) == (503, "down", "down")
    absent_redis.resume()
    wait_until_well(orchestrator)


def test_a_wrong_password_is_reported(tmp_path: Path) -> None:
    with (
        RedisServer(tmp_path / "redis", password="the password of redis") as server,
        OrchestratorProcess(
            tmp_path / "orchestrator",
            server.url,
            tmp_path / "results",
            HOSTBENCH_REDIS_PASSWORD="another password",
        ) as orchestrator,
    ):
        answer = orchestrator.client.get("/healthz")
        assert answer.status_code == 503
        assert "invalid username-password" in answer.json()["parts"]["redis"]["detail"]


def test_it_ends_as_requested(orchestrator: OrchestratorProcess) -> None:
    assert orchestrator.stop() == 0


def test_it_speaks_tls(tmp_path: Path) -> None:
    certificate, key = tmp_path / "server.pem", tmp_path / "server.key"
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost "
        f"-addext subjectAltName=IP:127.0.0.1 -keyout {key} -out {certificate}"
    )
    subprocess.run(command.split(), check=True, capture_output=True)
    with RedisServer(tmp_path / "redis") as server:
        one = OrchestratorProcess(
            tmp_path / "orchestrator",
            server.url,
            tmp_path / "results",
            HOSTBENCH_BIND="192.0.2.1",
            HOSTBENCH_TLS_CERT_FILE=str(certificate),
            HOSTBENCH_TLS_KEY_FILE=str(key),
        )
        one.client = httpx.Client(
            base_url=one.url.replace("http:", "https:"),
            headers={"Authorization": f"Bearer {API_KEY}"},
            verify=ssl.create_default_context(cafile=str(certificate)),
        )
        with one:
            assert one.client.get("/jobs").status_code == 200
            with pytest.raises(httpx.HTTPError):
                httpx.get(f"{one.url}/healthz")
