"""A cluster for all tests, where it can be had."""

import os
from collections.abc import Iterator

import pytest

from tests.fleet import cluster as control_plane
from tests.fleet import real_node
from tests.fleet.cluster import Cluster
from tests.fleet.simulated import simulate

ENGINES = {"cluster", "real_cluster", "slurm"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave tests of engines to `make test-clusters`, which starts each engine once: one in each
    lane would keep the others waiting."""
    for item in items:
        if ENGINES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.exhaustive)
            item.add_marker(pytest.mark.engine)


def lack(reason: str) -> None:
    """Skip what needs an engine that is not there, or fail where there must be one."""
    if os.environ.get("HOSTBENCH_CLUSTER") == "required":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One for tests whose objects have names of their own."""
    if (reason := control_plane.missing()) is not None:
        lack(reason)
    with Cluster(tmp_path_factory.mktemp("cluster")) as one:
        yield one


@pytest.fixture(scope="session")
def real_cluster(request: pytest.FixtureRequest) -> Cluster:
    """It, where real nodes can be added."""
    if (reason := real_node.unable()) is not None:
        pytest.skip(reason)
    if (reason := real_node.missing()) is not None:
        lack(reason)
    one: Cluster = request.getfixturevalue("cluster")
    return one


@pytest.fixture(scope="session")
def nodes(real_cluster: Cluster) -> Iterator[tuple[str, str]]:
    with real_node.two_nodes(real_cluster) as names:
        yield names


@pytest.fixture
def simulated(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """The cluster, as the one that this process finds."""
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    simulate(cluster)
    return cluster
