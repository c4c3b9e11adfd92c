"""The volume of results has no room left in the middle of a job: the job ends with that reason and
nothing half-written, nothing new is accepted, and with room again it is resumed. Or that of Redis:
it ends, and comes back with all that it acknowledged."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from hostbench.base.exitcode import ExitCode
from hostbench.model.jobs import StackState
from orchestrator.queue.jobs import NO_ROOM
from tests.faults.command import Command
from tests.faults.small_volume import fill, small_volume
from tests.faults.stack import SHORT, StackParts
from tests.patience import wait_until
from tests.stack.orchestrator_process import API_KEY, OrchestratorProcess

SOME_SECONDS = {
    "workload": "cpu.clock",
    "params": {"threads": 1, "duration_s": 4, "warmup_s": 0},
    "trials": 1,
    "idle_policy": "force",
}
LONG = {"threads": 1, "duration_s": 600}
SIZE = "80m"
# Less than a document, more than what is still to come in the journal.
ROOM_OF_THE_JOURNAL_BYTES = 12 << 10
REMEDY = "free space there"


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[StackParts]:
    with small_volume(tmp_path / "results", SIZE) as results:
        if results is None:
            pytest.skip("mounting a tmpfs needs root and a kernel that lets it")
        with StackParts(tmp_path) as stack:
            yield stack


def health(orchestrator: OrchestratorProcess) -> dict[str, str]:
    """What /healthz says of the results."""
    found: dict[str, str] = orchestrator.client.get("/healthz").json()["parts"]["results"]
    return found


@pytest.mark.parametrize(
    ("left_bytes", "file"), [(0, "journal.ndjson"), (ROOM_OF_THE_JOURNAL_BYTES, "result.json")]
)
def test_a_full_volume_of_results(
    parts: StackParts, tmp_path: Path, left_bytes: int, file: str
) -> None:
    orchestrator = parts.orchestrator()
    parts.host(orchestrator)
    client = orchestrator.client
    job = orchestrator.submit(**SOME_SECONDS)
    parts.service("bench-1").wait_for_program()
    queued = orchestrator.submit(**SHORT)
    filling = fill(parts.results, left_bytes)

    # Nothing new is accepted, and the caller learns what to do.
    refused = client.post("/jobs", json=SOME_SECONDS)
    assert (refused.status_code, refused.json()["code"]) == (507, "results_full"), refused.text
    degraded = health(orchestrator)
    assert degraded["status"] == "degraded"
    key_file = tmp_path / "key"
    key_file.write_text(API_KEY)
    command = Command(
        tmp_path, HOSTBENCH_URL=orchestrator.url, HOSTBENCH_API_KEY_FILE=str(key_file)
    )
    submitted = command.run("submit", "--workload", "cpu.clock")
    assert submitted.code == ExitCode.UNREACHABLE
    for text in (refused.json()["detail"], degraded["detail"], submitted.last_line):
        assert REMEDY in text

    # The job ends with its reason, and nothing of it looks final.
    failed = orchestrator.wait_for(job)
    assert failed["state"] == "failed"
    assert f"{file}: No space left" in failed["reason"]
    left = {path.name for path in (parts.results / job).iterdir()}
    assert left <= {"journal.ndjson", "job.json"}
    resumed = client.post(f"/jobs/{job}/resume")
    assert (resumed.status_code, resumed.json()["code"]) == (507, "results_full")

    # What was accepted before waits, with the reason: a queue does not burn.
    waiting = wait_until(lambda: orchestrator.job(queued)["reason"] == NO_ROOM)
    assert waiting and orchestrator.job(queued)["state"] == "queued"

    # With room again it goes on, and measures what is not in its journal.
    if file == "result.json":
        assert len(parts.trials(job)) == 1
    filling.unlink()
    wait_until(lambda: health(orchestrator)["status"] == "ok")
    assert orchestrator.wait_for(queued)["state"] == "succeeded"
    assert client.post(f"/jobs/{job}/resume").status_code == 202
    assert orchestrator.wait_for(job)["state"] == "succeeded"
    assert orchestrator.result(job)["job"]["state"] == "succeeded"
    assert len(parts.trials(job)) == 1


def test_a_full_volume_of_redis(tmp_path: Path) -> None:
    with small_volume(tmp_path / "redis", SIZE) as volume:
        if volume is None:
            pytest.skip("mounting a tmpfs needs root and a kernel that lets it")
        with StackParts(tmp_path) as parts:
            orchestrator = parts.orchestrator()
            parts.host(orchestrator)
            client = orchestrator.client
            running = orchestrator.submit(**{**SOME_SECONDS, "params": LONG})
            parts.service("bench-1").wait_for_program()
            queued = orchestrator.submit(**SHORT)
            filling = fill(volume)

            # Redis ends rather than acknowledge what it cannot keep.
            with parts.redis.client() as writer, pytest.raises(redis.ConnectionError):
                writer.set("large", bytes(1 << 16))
            assert parts.redis.wait() == 1
            refused = client.post("/jobs", json=SHORT)
            assert (refused.status_code, refused.json()["code"]) == (503, "redis_away")
            assert client.get("/healthz").json()["status"] == "down"
            assert parts.service("bench-1").programs_gone_within()

            # With room again everything is there that was accepted.
            filling.unlink()
            parts.redis.start()
            assert orchestrator.wait_for(running)["state"] == StackState.LOST
            assert orchestrator.wait_for(queued)["state"] == StackState.SUCCEEDED
