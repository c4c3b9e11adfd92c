"""Who has the host: fences in the lock file, across the services of a host and embedded runs."""

import itertools
import json
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hostbench.base.exitcode import ExitCode
from tests.faults.command import Command
from tests.patience import PATIENCE_S, wait_until
from tests.service.conftest import check_and_stop
from tests.service.streams import LONG, SHORT, lock_is_free, running
from tests.stack.service_process import ServiceProcess

EMBEDDED = (
    "run", "--workload", "cpu.clock", "--param", "threads=1", "--param", "duration_s=30",
    "--trials", "1", "--idle-policy", "force",
)  # fmt: skip


_LOWEST = itertools.count(1000, 1000)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServiceProcess, ...]]:
    """Two services of one host, for all tests of this file."""
    root = tmp_path_factory.mktemp("host")
    services = [ServiceProcess(root / name, lock=root / "lock") for name in ("one", "two")]
    for service in services:
        service.start(wait=False)
    for service in services:
        service.wait_until_it_answers()
    yield tuple(services)
    for service in services:
        check_and_stop(service)


@pytest.fixture
def one(host: tuple[ServiceProcess, ...]) -> ServiceProcess:
    return host[0]


@pytest.fixture
def two(host: tuple[ServiceProcess, ...]) -> ServiceProcess:
    return host[1]


@pytest.fixture
def fence() -> int:
    """Higher than all of other tests."""
    return next(_LOWEST)


def content(service: ServiceProcess) -> dict[str, object]:
    found: dict[str, object] = json.loads(service.lock.read_text())
    return found


def test_a_fence_is_remembered(one: ServiceProcess, two: ServiceProcess, fence: int) -> None:
    assert one.post(id="t1", fence=fence, **SHORT).status_code == 200
    assert content(one)["fence"] == fence
    assert one.post(id="t2", fence=fence, **SHORT).status_code == 200, "the job's next trial"
    for service in (one, two):
        answer = service.post(id="t3", fence=fence - 1, **SHORT)
        assert answer.status_code == 409
        assert answer.json()["code"] == "stale_fence" and answer.json()["highest"] == fence
    assert two.post(id="t4", **SHORT).status_code == 200, "by hand, with none"
    assert content(one)["fence"] == fence
    one.stop()
    one.start()
    assert one.post(id="t5", fence=fence - 1, **SHORT).status_code == 409


def test_the_holder_is_named(one: ServiceProcess, fence: int) -> None:
    with running(one, "t1", fence=fence, **LONG):
        holder = content(one)["holder"]
        assert isinstance(holder, dict)
        assert holder["job"] == "t1" and holder["service"] == "cpu" and holder["fence"] == fence
        assert holder["host"] == "bench-1" and holder["pid"] == one.pid


@pytest.mark.parametrize("with_one", [True, False])
@pytest.mark.parametrize("other", [False, True])
@pytest.mark.sampled(4)
def test_busy(
    one: ServiceProcess, two: ServiceProcess, fence: int, with_one: bool, other: bool
) -> None:
    """An equal fence, or none, in the same service or in another one of the host."""
    with running(one, "t1", fence=fence, **LONG) as trial:
        answer = (two if other else one).post(id="t2", fence=fence if with_one else None, **SHORT)
        assert answer.status_code == 409 and answer.json()["code"] == "busy"
        assert "'t1'" in answer.json()["detail"] and answer.json()["holder"]["job"] == "t1"
        left_s = answer.json()["retry_after_s"]
        if other:
            assert left_s is None
        else:
            assert 0 < left_s <= 5 and 1 <= int(answer.headers["retry-after"]) <= 5
        assert not trial.ended.is_set()


@pytest.mark.parametrize("other", [False, True])
def test_a_higher_fence_takes_the_host(
    one: ServiceProcess, two: ServiceProcess, other: bool, fence: int
) -> None:
    with running(one, "t1", fence=fence, **LONG) as trial:
        one.wait_for_program()
        answer = (two if other else one).post(id="t2", fence=fence + 1, **SHORT)
        assert answer.status_code == 200 and b'"end"' in answer.content
        assert trial.failure()["code"] == "preempted"
    assert content(one)["fence"] == fence + 1


def test_the_highest_of_several_takes_it(
    one: ServiceProcess, two: ServiceProcess, fence: int
) -> None:
    with (
        running(one, "t1", fence=fence, **LONG) as first,
        running(two, "t2", fence=fence + 1, **LONG) as second,
        running(one, "t3", fence=fence + 2, **LONG),
    ):
        assert first.failure()["code"] == "preempted"
        # Overtaken while it waited, or when it ran already.
        second.finish()
        refused = second.status == 409 and second.problem["code"] in (
            "stale_fence",
            "preempted",
        )
        assert refused or second.failure()["code"] == "preempted"
        assert one.program_pids()
    assert content(one)["fence"] == fence + 2


def test_a_trial_by_hand_is_not_preempted(one: ServiceProcess, fence: int) -> None:
    with running(one, "t1", **LONG) as trial:
        answer = one.post(id="t2", fence=fence + 1, **SHORT)
        assert answer.status_code == 409 and answer.json()["code"] == "busy"
        assert not trial.ended.is_set()


def test_an_embedded_run_is_not_preempted(one: ServiceProcess, tmp_path: Path, fence: int) -> None:
    command = Command(tmp_path, HOSTBENCH_LOCK=str(one.lock))
    command.lock = one.lock
    run = command.start(*EMBEDDED)
    try:
        command.wait_for_program()
        answer = one.post(id="t1", fence=fence + 1, **SHORT)
        assert answer.status_code == 409 and answer.json()["code"] == "busy"
        assert f"pid {run.pid}" in answer.json()["detail"]
        assert answer.json()["holder"]["pid"] == run.pid
        assert run.poll() is None and command.program_pids()
    finally:
        run.terminate()
        run.communicate(timeout=60)
    assert one.post(id="t1", fence=fence + 1, **SHORT).status_code == 200


def test_an_embedded_run_is_refused_while_a_trial_runs(
    one: ServiceProcess, tmp_path: Path, fence: int
) -> None:
    command = Command(tmp_path, HOSTBENCH_LOCK=str(one.lock))
    with running(one, "t1", fence=fence, **LONG):
        ended = command.run(*EMBEDDED)
        assert ended.code == ExitCode.BUSY
        assert "job 't1'" in ended.last_line and "service 'cpu' of 'bench-1'" in ended.last_line


def test_trials_of_two_services_never_overlap(
    one: ServiceProcess, two: ServiceProcess, fence: int
) -> None:
    """Each as fast as it can, with the same fence: what one has, the other is refused."""
    with ThreadPoolExecutor(2) as threads:
        spans = sorted(
            span for found in threads.map(_spans, (one, two), (fence, fence)) for span in found
        )
    assert len(spans) > 4
    for before, after in itertools.pairwise(spans):
        assert before[1] <= after[0]


def _spans(service: ServiceProcess, fence: int) -> list[tuple[float, float]]:
    """Begin and end of the trials that were let run within some seconds; of some at least."""
    spans: list[tuple[float, float]] = []
    begun_s = time.monotonic()
    with service.another_client() as client:
        for i in itertools.count():
            if time.monotonic() - begun_s > (4 if len(spans) > 2 else PATIENCE_S):
                return spans
            answer = service.post(client, id=f"{service.root.name}-{i}", fence=fence, **SHORT)
            if answer.status_code == 200:
                lines = [json.loads(line) for line in answer.content.splitlines()]
                begun = lines[0]["time_unix_s"]
                spans.append((begun, begun + lines[1]["elapsed_s"]))
    raise AssertionError


def test_an_outdated_holder_in_the_file_pre_empts_no_run(
    one: ServiceProcess, two: ServiceProcess, fence: int
) -> None:
    """The file may still name a holder with a lower fence while another one has the lock."""
    assert one.post(id="t1", fence=fence, **SHORT).status_code == 200
    stale = content(one)
    sleeper = subprocess.Popen(["flock", str(one.lock), "sleep", "4"])
    wait_until(lambda: not lock_is_free(one.lock, 0), lambda: "no process took the lock")
    assert content(one) == stale
    answer = two.post(id="t2", fence=fence + 1, **SHORT)
    # It waits for the named holder to end, and so long enough for the real one.
    assert answer.status_code == 200
    assert sleeper.wait(60) == 0
