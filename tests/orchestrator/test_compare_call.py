"""GET /compare over the results of an orchestrator."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hostbench.model.decision import Comparison, Word
from tests.each import each
from tests.stack.orchestrator_process import OrchestratorProcess
from tests.stack.redis_server import RedisServer
from tests.unit.decided import stored_job

FACTORS = (1.0, 1.0005, 0.9995, 1.0001, 0.95, 0.951, 0.9505, 0.9496)
BEFORE, AFTER = "*-000[0-3]", "*-000[4-7]"


@pytest.fixture(scope="module")
def orchestrator(
    shared_redis: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OrchestratorProcess]:
    """One over eight jobs, the last four slower."""
    root: Path = tmp_path_factory.mktemp("compare")
    for number, factor in enumerate(FACTORS):
        stored_job(root / "results", number, factor)
    with OrchestratorProcess(root, shared_redis.url, root / "results") as orchestrator:
        yield orchestrator


def test_a_comparison_is_that_of_the_command(orchestrator: OrchestratorProcess) -> None:
    asked = {"a": BEFORE, "b": AFTER}
    answer = orchestrator.client.get("/compare", params=asked)
    assert answer.headers["content-type"] == "application/json"
    found = Comparison.model_validate_json(answer.content)
    assert found.word is Word.WORSE and len(found.a.jobs) == len(found.b.jobs) == 4
    margin = {**asked, "margin": "0.1"}
    assert orchestrator.client.get("/compare", params=margin).json()["word"] == "same"


@each(
    ("asked", "why"),
    [
        ({"a": "latest"}, "b"),
        ({"a": "latest", "b": "nothing"}, "there is no job 'nothing'"),
        ({"a": "latest", "b": "latest"}, "is on both sides"),
        ({"a": "latest", "b": "/etc/passwd"}, "there is no job '/etc/passwd'"),
        ({"a": "latest", "b": "../x/result.json"}, "there is no job '../x/result.json'"),
        ({"a": "latest-1", "b": "latest", "since": "soon"}, "since 'soon' is no time"),
        ({"a": "latest-1", "b": "latest", "margin": "0"}, "margin"),
        ({"a": "latest-1", "b": "latest", "host": "z"}, "they are of the hosts a"),
    ],
)
def test_what_is_no_question_is_refused(
    orchestrator: OrchestratorProcess, asked: dict[str, str], why: str
) -> None:
    """With the reason; and no path leads out of the results."""
    answer = orchestrator.client.get("/compare", params=asked)
    assert answer.status_code == 422
    assert why in answer.text
