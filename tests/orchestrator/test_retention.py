"""What is kept of results: beyond a limit the oldest ended jobs are removed, and no others."""

import json
import time
from pathlib import Path

from orchestrator.influx.outbox import COUNTS, DEAD, Outbox
from orchestrator.queue.connection import connect
from orchestrator.results.retention import DAY_S
from tests.faults.stack import SHORT, SHORT_THEN_LONG, StackParts
from tests.patience import wait_until
from tests.stack.orchestrator_process import OrchestratorProcess
from tests.stack.redis_server import RedisServer

A_SECOND = f"{1 / DAY_S:.9f}"


def kept(stack: StackParts) -> list[str]:
    return sorted(path.name for path in stack.results.iterdir() if path.is_dir())


def again(orchestrator: OrchestratorProcess, **limits: str) -> None:
    """Started with these limits; it looks at once."""
    orchestrator.stop()
    orchestrator.environment |= limits
    orchestrator.start()


def test_results_are_kept_as_the_operator_says(tmp_path: Path) -> None:
    with StackParts(tmp_path) as stack:
        orchestrator = stack.orchestrator()
        stack.host(orchestrator)
        jobs, ended_unix_s = [], 0.0
        for _ in range(3):
            jobs.append(orchestrator.submit(**SHORT))
            ended_unix_s = orchestrator.wait_for(jobs[-1])["ended_unix_s"]
        # Of one second, ids do not tell which came first.
        jobs.sort()
        assert orchestrator.client.get("/healthz").json()["parts"]["results"] == {
            "status": "ok", "detail": "kept without limit",
        }  # fmt: skip
        used = {
            job: sum(file.stat().st_blocks * 512 for file in (stack.results / job).iterdir())
            for job in jobs
        }

        # By bytes: the oldest, as few as that takes. Half of one: a file system may allocate
        # blocks only when it writes them out, so sizes still change a little.
        most = sum(used.values()) - min(used.values()) // 2
        again(orchestrator, HOSTBENCH_KEEP_RESULTS_BYTES=str(most))
        wait_until(lambda: len(kept(stack)) < len(jobs))
        assert kept(stack) == jobs[1:]
        gone = orchestrator.client.get(f"/jobs/{jobs[0]}/result")
        assert gone.status_code == 409 and "is no longer kept" in gone.json()["detail"]
        assert orchestrator.result(jobs[1])["job"]["state"] == "succeeded"

        # By age: what has not ended stays, however old it is.
        waits = orchestrator.submit(**SHORT_THEN_LONG)
        stack.service("bench-1").wait_for_program()
        # A second, and what Redis' clock and this one's tell differently.
        wait_until(lambda: time.time() > ended_unix_s + 2)
        other = stack.orchestrator("other", HOSTBENCH_KEEP_RESULTS_DAYS=A_SECOND)
        wait_until(lambda: kept(stack) == [waits])
        assert other.job(waits)["state"] == "running"
        assert "kept for 1.1574e-05 days" in str(other.client.get("/healthz").json())
        other.client.delete(f"/jobs/{waits}")
        other.wait_for(waits)
        assert kept(stack) == [waits], "until it looks again"
        assert '"results_removed"' in other.log and "Traceback" not in other.log


def test_points_that_were_refused_are_forgotten_by_age(redis_server: RedisServer) -> None:
    with connect(redis_server.url) as client:
        outbox = Outbox(client)
        for time_unix_s in (1.0, 2.0, 3.0):
            letter = {
                "line": "m v=1",
                "retention": None,
                "reason": "no",
                "time_unix_s": time_unix_s,
            }
            client.lpush(DEAD, json.dumps(letter))
            client.hincrby(COUNTS, "dead", 1)
        for before, left in ((1.0, [3, 2, 1]), (2.5, [3]), (9.0, [])):
            outbox.forget_dead_letters_before(before)
            assert [one["time_unix_s"] for one in outbox.dead_letters()] == left
            assert outbox.status().dead_letters == len(left)
