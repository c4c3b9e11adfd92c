"""A cluster for the tests of a lane, where it can be had."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.fleet import cluster as control_plane
from tests.fleet import real_node
from tests.fleet.cluster import Cluster
from tests.fleet.simulated import simulate

ENGINES = {"cluster", "real_cluster", "slurm"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave tests of engines to `make test-clusters`, which starts each engine once: one in each
    lane of all other tests would keep the others waiting."""
    for item in items:
        if ENGINES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.exhaustive)
            item.add_marker(pytest.mark.engine)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """Give each engine a lane: its tests follow each other, and it is started once."""
    if config.getoption("dist") != "loadscope":
        return None
    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = _engine_of
    return scheduler


def _engine_of(nodeid: str) -> str:
    """The engine of a test, by the name of its file. Real nodes have a cluster of their own beside
    that of simulated ones: they measure, and so take turns with each other only."""
    file = nodeid.partition("::")[0]
    return next((kind for kind in ("slurm", "real") if f"test_{kind}" in file), "simulated")


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
