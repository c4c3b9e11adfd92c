"""Services for tests, and the certainty that they left nothing running."""

import contextlib
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


def running_again(service: ServiceProcess) -> ServiceProcess:
    """The service, started again where the test before has ended it."""
    if service.process is None:
        service.start()
    return service


@contextlib.contextmanager
def behaving(service: ServiceProcess, script: str) -> Iterator[None]:
    """Have the scripted program of a service do what `script` names."""
    file = Path(service.environment["HOSTBENCH_PROGRAMS"]) / "script"
    file.write_text(script)
    try:
        yield
    finally:
        file.unlink()


@pytest.fixture
def start_service(tmp_path: Path) -> Iterator[StartService]:
    """Start services; those of one `host` share its lock."""
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
def service_of_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service with the real program, one for all tests of a file."""
    one = ServiceProcess(tmp_path_factory.mktemp("service"))
    yield one
    check_and_stop(one)


@pytest.fixture
def service(service_of_file: ServiceProcess) -> ServiceProcess:
    """It, running. Tests may end it; a fence they use is higher than those of tests before."""
    return running_again(service_of_file)


@pytest.fixture(scope="module")
def scripted_of_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service whose program is the scripted one, one for all tests of a file."""
    root = tmp_path_factory.mktemp("scripted")
    one = ServiceProcess(root, programs=scripted_programs(root))
    yield one
    check_and_stop(one)


@pytest.fixture
def scripted(scripted_of_file: ServiceProcess) -> ServiceProcess:
    """It, running; what its program does is up to `behaving`."""
    return running_again(scripted_of_file)


@pytest.fixture
def start_net(start_service: StartService, tmp_path: Path) -> StartService:
    """Start net services with the program that stands in."""
    programs = net_programs(tmp_path)

    def start(**options: Any) -> ServiceProcess:
        return start_service("net", subsystem="net", programs=programs, **options)

    return start


@pytest.fixture(scope="module")
def net_of_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A net service with the program that stands in, one for all tests of a file."""
    root = tmp_path_factory.mktemp("net")
    one = ServiceProcess(root / "service", subsystem="net", programs=net_programs(root))
    yield one
    check_and_stop(one)


@pytest.fixture
def net(net_of_file: ServiceProcess) -> ServiceProcess:
    """It, running. Tests may end it; a fence they use is higher than those of tests before."""
    return running_again(net_of_file)
