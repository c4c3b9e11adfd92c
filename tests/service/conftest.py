"""Services for tests, and the certainty that they left nothing running."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.command import scripted_programs
from tests.service.sessions import net_programs
from tests.stack.service_process import ServiceProcess

StartService = Callable[..., ServiceProcess]


def check_and_stop(service: ServiceProcess) -> None:
    """No program lives on, and nothing unexpected was logged."""
    service.__exit__()
    assert service.programs_gone_within(), "a program was left running"
    assert "exc_type" not in service.log and "Traceback" not in service.log, service.log


@pytest.fixture
def start_service(tmp_path: Path) -> Iterator[StartService]:
    """Starts services; those of one `host` share its lock."""
    started: list[ServiceProcess] = []

    def start(name: str = "one", host: str = "bench-1", **options: Any) -> ServiceProcess:
        options.setdefault("lock", tmp_path / f"{host}.lock")
        service = ServiceProcess(tmp_path / name, host=host, **options)
        started.append(service)
        service.start()
        return service

    yield start
    for service in started:
        check_and_stop(service)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service with the real program, one for all tests of a file; they leave no fence."""
    one = ServiceProcess(tmp_path_factory.mktemp("service"))
    one.start()
    yield one
    check_and_stop(one)


@pytest.fixture
def scripted(tmp_path: Path) -> Path:
    """A directory of programs whose cpu-bench does what SCRIPT says."""
    return scripted_programs(tmp_path)


@pytest.fixture
def start_net(start_service: StartService, tmp_path: Path) -> StartService:
    """Starts net services with the program that stands in."""
    programs = net_programs(tmp_path)

    def start(**options: Any) -> ServiceProcess:
        return start_service("net", subsystem="net", programs=programs, **options)

    return start


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A net service with the program that stands in, one for all tests of a file; they leave no
    fence."""
    root = tmp_path_factory.mktemp("net")
    one = ServiceProcess(root / "service", subsystem="net", programs=net_programs(root))
    one.start()
    yield one
    check_and_stop(one)
