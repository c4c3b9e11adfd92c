"""One stack for all tests of this directory; those that break it, or whose answers depend on its
other jobs, make their own."""

from collections.abc import Iterator

import pytest

from tests.client.real_stack import Stack


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with Stack(tmp_path_factory.mktemp("stack")).running() as running:
        yield running
