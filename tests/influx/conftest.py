"""Real servers and a real job for the tests of points and outbox."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.influx.real_job import RealJob, real_job
from tests.stack.influx_server import DATABASE, EITHER, SHIPPED_PROGRAM, InfluxServer, ShippedInflux
from tests.stack.redis_server import RedisServer


@pytest.fixture(scope="session", params=EITHER)
def influx_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[InfluxServer]:
    """A server with its users, for tests that do not stop it."""
    if request.param is ShippedInflux and not SHIPPED_PROGRAM.exists():
        pytest.skip("the InfluxDB of compose.yaml is not built here; scripts/influxdb.sh says why")
    with request.param(tmp_path_factory.mktemp("influx")) as server:
        server.set_up()
        yield server


@pytest.fixture
def first_generation(influx_server: InfluxServer) -> InfluxServer:
    """It, for what 1.x alone does, or says in these words."""
    if isinstance(influx_server, ShippedInflux):
        pytest.skip("of 1.x alone")
    return influx_server


_databases = itertools.count()


@pytest.fixture
def database(influx_server: InfluxServer) -> str:
    """An empty database of that server."""
    name = f"{DATABASE}_{next(_databases)}"
    influx_server.make_database(name)
    return name


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis of its own."""
    with RedisServer(tmp_path / "redis") as server:
        yield server


@pytest.fixture
def redis_client(redis_server: RedisServer) -> Iterator[redis.Redis]:
    """A client of it."""
    with redis_server.client() as client:
        yield client


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> RealJob:
    """A real job, for tests that leave it as it is."""
    return real_job(tmp_path_factory)
