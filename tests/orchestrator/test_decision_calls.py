"""The calls that decide, over the results of an orchestrator."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostbench.decisions.baseline import made_of, measured_job
from hostbench.decisions.baseline_files import content_of
from hostbench.model.baseline import HEADLINES_MOST, BaselineList, HostCheck, HostWord
from hostbench.model.decision import Comparison, HostHistory, Word
from hostbench.results.store import JobDirectory
from tests.each import each
from tests.stack.orchestrator_process import OrchestratorProcess
from tests.stack.redis_server import RedisServer
from tests.unit.baseline_documents import of_host, of_hosts
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
    query = {"a": BEFORE, "b": AFTER}
    answer = orchestrator.client.get("/compare", params=query)
    assert answer.headers["content-type"] == "application/json"
    found = Comparison.model_validate_json(answer.content)
    assert found.word is Word.WORSE and len(found.a.jobs) == len(found.b.jobs) == 4
    margin = {**query, "margin": "0.1"}
    assert orchestrator.client.get("/compare", params=margin).json()["word"] == "same"


@each(
    ("query", "why"),
    [
        ({"a": "latest"}, "b"),
        ({"a": "latest", "b": "nothing"}, "there is no job 'nothing'"),
        ({"a": "latest", "b": "latest"}, "is on both sides"),
        ({"a": "latest", "b": "/etc/passwd"}, "there is no job '/etc/passwd'"),
        ({"a": "latest", "b": "../x/result.json"}, "there is no job '../x/result.json'"),
        ({"a": "latest-1", "b": "latest", "since": "soon"}, "since 'soon' is not a time"),
        ({"a": "latest-1", "b": "latest", "margin": "0"}, "margin"),
        ({"a": "latest-1", "b": "latest", "host": "z"}, "they are of the hosts a"),
    ],
)
def test_what_is_no_question_is_refused(
    orchestrator: OrchestratorProcess, query: dict[str, str], why: str
) -> None:
    """With the reason; and no path leads out of the results."""
    answer = orchestrator.client.get("/compare", params=query)
    assert answer.status_code == 422
    assert why in answer.text


# ---- GET /hosts/{host}/history ----

CASE = "cpu.fma fp64 avx2 1 thread"
BEFORE_JOBS, AFTER_JOBS = 12, 8


@pytest.fixture(scope="module")
def fleet(
    shared_redis: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OrchestratorProcess]:
    """One over the jobs of a host that became slower by 7 %, of one with a single job, and of eight
    hosts of a model, the last one slow; it has a baseline of the others, and a file that is none.
    """
    root = tmp_path_factory.mktemp("fleet")
    rng = random.Random(3)
    for number in range(BEFORE_JOBS + AFTER_JOBS):
        factor = (1.0 if number < BEFORE_JOBS else 0.93) * (1 + rng.gauss(0, 0.003))
        stored_job(root / "results", number, factor, host="old")
    stored_job(root / "results", 400, host="new", suite="other")
    sound = of_hosts((0.99, 1.0, 1.005, 0.995, 1.01, 1.002, 0.998))
    for document in (*sound, of_host(50, 0.9)):
        job = JobDirectory(root / "results" / document.job.id)
        job.path.mkdir()
        job.store(document)
    folder = root / "data/hostbench/baselines"
    folder.mkdir(parents=True)
    (folder / "model.json").write_bytes(content_of(made_of([measured_job(one) for one in sound])))
    (folder / "none.json").write_text("{")
    with OrchestratorProcess(
        root,
        shared_redis.url,
        root / "results",
        XDG_DATA_HOME=str(root / "data"),
        XDG_CONFIG_HOME=str(root / "config"),
    ) as orchestrator:
        yield orchestrator


def test_a_history_of_one_case_has_its_change(fleet: OrchestratorProcess) -> None:
    answer = fleet.client.get("/hosts/old/history", params={"case": CASE})
    found = HostHistory.model_validate_json(answer.content)
    (one,) = found.histories
    assert (found.host, one.title, len(one.points)) == ("old", CASE, BEFORE_JOBS + AFTER_JOBS)
    (change,) = one.changes
    assert (one.word, change.word) == (Word.WORSE, Word.WORSE)
    assert abs(change.jobs_before - BEFORE_JOBS) <= 1 and change.low < 0.93 < change.high < 1
    since = {"case": CASE, "since": "2026-01-13", "figure": "delivered"}
    later = fleet.client.get("/hosts/old/history", params=since).json()["histories"][0]
    assert (later["kind"], len(later["points"]), later["changes"]) == ("delivered", AFTER_JOBS, [])


def test_without_a_case_all_headline_cases_share_the_error_rate(fleet: OrchestratorProcess) -> None:
    found = HostHistory.model_validate_json(fleet.client.get("/hosts/old/history").content)
    assert len(found.histories) == HEADLINES_MOST
    assert len({one.case for one in found.histories}) == HEADLINES_MOST
    for one in found.histories:
        assert one.title.startswith("cpu.fma ") and one.word is Word.WORSE, one.title
        assert one.confidence == pytest.approx(1 - 0.05 / HEADLINES_MOST)
    few = fleet.client.get("/hosts/old/history", params={"until": "2026-01-12"}).json()
    # Eleven jobs would do for one case, and do not for twelve together.
    assert {one["word"] for one in few["histories"]} == {"undecided"}
    alone = {"until": "2026-01-12", "case": CASE}
    (one,) = fleet.client.get("/hosts/old/history", params=alone).json()["histories"]
    assert one["word"] == "same"
    assert len(fleet.client.get("/hosts/new/history").json()["histories"][0]["points"]) == 1


@each(
    ("host", "query", "status", "why"),
    [
        ("absent", {}, 404, "no stored job is of a host 'absent'"),
        ("../results", {}, 404, ""),
        ("old", {"case": "cpu.fma"}, 422, "may be any of 17 cases"),
        ("old", {"case": "cpu.fam"}, 422, "did you mean 'cpu.fma'?"),
        ("old", {"suite": "quick"}, 422, "leave no stored job"),
        ("old", {"case": CASE, "suite": "other"}, 422, "leave none of them"),
        ("old", {"since": "soon"}, 422, "since 'soon' is not a time"),
        ("old", {"figure": "best"}, 422, "undisturbed"),
        ("old", {"case": ""}, 422, "case"),
        ("x" * 65, {}, 422, "host"),
    ],
)
def test_what_is_no_history_is_refused(
    fleet: OrchestratorProcess, host: str, query: dict[str, str], status: int, why: str
) -> None:
    answer = fleet.client.get(f"/hosts/{host}/history", params=query)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert why in answer.json()["detail"]


# ---- GET /baselines, GET /jobs/{id}/baseline ----


def test_baselines_are_those_that_are_found(fleet: OrchestratorProcess) -> None:
    found = BaselineList.model_validate_json(fleet.client.get("/baselines").content)
    model, none = sorted(found.baselines, key=lambda one: one.file)
    assert model.key is not None and model.key.cpu.startswith("Intel")
    assert (model.hosts, model.jobs, model.error) == (7, 7, None)
    assert none.key is None and "is cut short or damaged" in (none.error or "")
    assert any(folder.endswith("data/hostbench/baselines") for folder in found.folders)


def test_a_job_is_held_against_the_baseline_of_its_model(fleet: OrchestratorProcess) -> None:
    jobs = fleet.client.get("/jobs", params={"host": "node50"}).json()["jobs"]
    answer = fleet.client.get(f"/jobs/{jobs[0]['id']}/baseline")
    found = HostCheck.model_validate_json(answer.content)
    assert (found.word, found.hosts) == (HostWord.LOW, 7)
    assert any("none.json is cut short" in note for note in found.notes)
    # What a host gave to the baseline itself is left out.
    for host, others in (("node3", 6), ("new", 7)):
        (job,) = fleet.client.get("/jobs", params={"host": host}).json()["jobs"]
        check = fleet.client.get(f"/jobs/{job['id']}/baseline").json()
        assert (check["word"], check["hosts"]) == ("as expected", others), host
    unknown = fleet.client.get("/jobs/20260101T000000Z-none-0000/baseline")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "unknown_job")
