"""A report can be opened by a link of a board: the browser asks for the key."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.influx.jobs import SUITE, measured
from tests.stack.orchestrator_process import API_KEY, OrchestratorProcess
from tests.stack.redis_server import RedisServer


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a report, and of the same job beside it."""
    root = tmp_path_factory.mktemp("report")
    suite = SUITE.model_copy(update={"cases": SUITE.cases[-2:]})
    job, _ = measured(root / "results", suite=suite)
    with (
        RedisServer(root / "redis") as redis_server,
        OrchestratorProcess(root, redis_server.url, Path(job.path.parent)) as orchestrator,
    ):
        yield f"{orchestrator.url}/jobs/{job.id}/report"


def test_a_browser_has_to_log_in_and_gets_in_with_the_key(address: str) -> None:
    refused = httpx.get(address)
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"].startswith("Basic ")
    for name in ("", "anybody", "naïve"):
        page = httpx.get(address, auth=httpx.BasicAuth(name, API_KEY), timeout=120)
        assert page.status_code == 200
        assert page.headers["content-type"].startswith("text/html")
    assert httpx.get(address, headers={"Authorization": f"Bearer {API_KEY}"}).status_code == 200


@pytest.mark.parametrize(
    "authorization", ["Basic", "Basic !!", "Basic YWJj", "Basic YTp3cm9uZw==", "Bearer wrong", "x"]
)
def test_other_keys_do_not(address: str, authorization: str) -> None:
    assert httpx.get(address, headers={"Authorization": authorization}).status_code == 401


def test_a_browsers_password_opens_nothing_that_changes_something(address: str) -> None:
    """Otherwise any page on the net could make it post jobs."""
    job = address.removesuffix("/report")
    auth = httpx.BasicAuth("anybody", API_KEY)
    root = job.rpartition("/jobs/")[0]
    for answer in (
        httpx.post(f"{root}/jobs", auth=auth, json={"suite": "quick"}),
        httpx.delete(job, auth=auth),
        httpx.post(f"{job}/resume", auth=auth),
    ):
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
