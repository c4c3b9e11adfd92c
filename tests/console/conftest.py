"""One stack for all tests of this directory that stop nothing; those that break it make their
own."""

from collections.abc import Iterator

import pytest

from tests.console.real_console import ConsoleStack


@pytest.fixture(scope="session")
def shared_console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleStack]:
    with ConsoleStack(tmp_path_factory.mktemp("console")).running() as running:
        yield running


@pytest.fixture
def console(shared_console: ConsoleStack) -> Iterator[ConsoleStack]:
    """It, without jobs that have not ended, failed logins or other keys."""
    yield shared_console
    shared_console.close_browsers()
    shared_console.end_all()
    shared_console.write_keys("ann", "bob")
    with shared_console.redis.client() as client:
        for name in client.scan_iter("{hostbench}:failed_logins:*"):
            client.delete(name)
