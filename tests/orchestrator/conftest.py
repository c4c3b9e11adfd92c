"""A real Redis for the whole session, empty for every test; a stack for those of the calls."""

from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from orchestrator.queue.connection import connect
from orchestrator.queue.hosts import HostStore
from orchestrator.queue.jobs import JobStore
from tests.stack.orchestrator_process import OrchestratorProcess
from tests.stack.redis_server import RedisServer
from tests.stack.service_process import ServiceProcess


@pytest.fixture(scope="session")
def shared_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """One for tests that do not stop it."""
    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def redis_server(shared_redis: RedisServer) -> RedisServer:
    """It, empty."""
    with shared_redis.client() as client:
        client.flushall()
    return shared_redis


@pytest.fixture
def store(redis_server: RedisServer) -> Iterator[JobStore]:
    client = connect(redis_server.url)
    yield JobStore(client)
    client.close()


@pytest.fixture
def hosts(redis_server: RedisServer) -> Iterator[HostStore]:
    client = connect(redis_server.url)
    yield HostStore(client)
    client.close()


@dataclass(frozen=True)
class Stack:
    """One orchestrator with its Redis, and one host with a cpu service."""

    redis: RedisServer
    orchestrator: OrchestratorProcess
    service: ServiceProcess

    @property
    def client(self) -> httpx.Client:
        """Call with the users' key."""
        return self.orchestrator.client


HOST = "bench-1"


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One for all tests that stop nothing and leave no job behind that goes on."""
    root = tmp_path_factory.mktemp("stack")
    with (
        RedisServer(root / "redis", password="the password of redis") as redis_server,
        OrchestratorProcess(
            root / "orchestrator",
            redis_server.url,
            root / "results",
            HOSTBENCH_REDIS_PASSWORD="the password of redis",
        ) as orchestrator,
        ServiceProcess(
            root / "service", host=HOST, HOSTBENCH_ORCHESTRATOR_URL=orchestrator.url
        ) as service,
    ):
        orchestrator.wait_for_host(HOST)
        yield Stack(redis_server, orchestrator, service)
