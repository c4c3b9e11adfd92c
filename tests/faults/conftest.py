"""A command of its own for every test, and the certainty that it left nothing running; one stack
for all tests of a module, idle again after each of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.command import Command
from tests.faults.stack import StackParts, end_all_jobs
from tests.stack.orchestrator_process import OrchestratorProcess
from tests.stack.service_process import ServiceProcess


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    one = Command(tmp_path)
    yield one
    assert one.is_gone_soon(), "a process was left running"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StackParts]:
    with StackParts(tmp_path_factory.mktemp("stack")) as parts:
        yield parts


@pytest.fixture(scope="module")
def orchestrator(stack: StackParts) -> OrchestratorProcess:
    return stack.orchestrator()


@pytest.fixture(scope="module")
def script() -> str | None:
    """What the programs of the host do; None: they are the real ones."""
    return None


@pytest.fixture(scope="module")
def service(
    stack: StackParts, orchestrator: OrchestratorProcess, script: str | None
) -> ServiceProcess:
    return stack.host(orchestrator, script=script)


@pytest.fixture
def idle_afterwards(orchestrator: OrchestratorProcess, service: ServiceProcess) -> Iterator[None]:
    yield
    end_all_jobs(orchestrator)
    orchestrator.wait_for_host(service.host)
