"""The stack is killed in the middle of a disk trial: the space is back, no file is left, the host
is free, and the job can go on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hostbench.model.jobs import StackState
from orchestrator.queue.jobs import LEASE_S
from services.disk.tests.loop_disk import free_bytes, loop_disk, names_in
from tests.benchmark import MIB
from tests.faults.stack import StackParts
from tests.patience import PATIENCE_S, comes_true, wait_until
from tests.service.streams import lock_is_free
from tests.stack.orchestrator_process import OrchestratorProcess
from tests.stack.service_process import ServiceProcess

FILE_BYTES = 32 * MIB
LOST_S = LEASE_S + PATIENCE_S
# A short case, then one that is long enough to be killed in, and then to be measured.
JOB: dict[str, Any] = {
    "suite": {
        "name": "short-then-long",
        "idle": {"policy": "force"},
        "repeats": {"min_trials": 1, "max_trials": 1},
        "peers": "none",
        "cases": [
            {
                "workload": workload,
                "params": {"duration_s": seconds, "warmup_s": 0, "file_bytes": FILE_BYTES},
            }
            for workload, seconds in (("disk.rand_read", 0.1), ("disk.rand_write", 2.5))
        ],
    }
}


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with loop_disk(96 * MIB) as directory:
        monkeypatch.setenv("HOSTBENCH_SCRATCH", str(directory))
        monkeypatch.setenv("HOSTBENCH_DISK_RESERVE_BYTES", "0")
        yield directory


@pytest.fixture
def stack(tmp_path: Path, disk: Path) -> Iterator[StackParts]:
    with StackParts(tmp_path) as parts:
        yield parts


def in_mid_trial(orchestrator: OrchestratorProcess, service: ServiceProcess) -> str:
    """A job whose first case is done and whose second one runs."""
    job = orchestrator.submit(**JOB)
    wait_until(
        lambda: (orchestrator.job(job)["progress"] or {}).get("done"), lambda: orchestrator.log
    )
    service.wait_for_program()
    return job


def nothing_is_left(disk: Path, before: int) -> bool:
    """Whether all space is back; no file ever has a name."""
    assert names_in(disk) == ["lost+found"]
    return comes_true(lambda: free_bytes(disk) == before)


def goes_on(stack: StackParts, orchestrator: OrchestratorProcess, job: str) -> None:
    """Resumed, it keeps its first case and measures the other."""
    (kept,) = stack.trials(job)
    assert orchestrator.client.post(f"/jobs/{job}/resume").status_code == 202
    assert orchestrator.wait_for(job)["state"] == "succeeded"
    first, second = orchestrator.result(job)["cases"]
    assert [trial["time_unix_s"] for trial in first["trials"]] == [kept.time_unix_s]
    assert len(second["trials"]) == 1


def test_the_service_is_killed(stack: StackParts, disk: Path) -> None:
    before = free_bytes(disk)
    orchestrator = stack.orchestrator()
    service = stack.host(orchestrator, subsystem="disk")
    job = in_mid_trial(orchestrator, service)
    assert free_bytes(disk) <= before - FILE_BYTES
    service.kill()
    assert service.programs_gone_within()
    assert nothing_is_left(disk, before)
    assert lock_is_free(service.lock)
    assert orchestrator.wait_for(job)["state"] == "failed"
    service.start()
    orchestrator.wait_for_host("bench-1", subsystem="disk")
    goes_on(stack, orchestrator, job)


@pytest.mark.exhaustive
def test_the_orchestrator_is_killed(stack: StackParts, disk: Path) -> None:
    """The service ends the trial by itself, and keeps the file for the next one of the job."""
    before = free_bytes(disk)
    orchestrator = stack.orchestrator()
    service = stack.host(orchestrator, subsystem="disk")
    job = in_mid_trial(orchestrator, service)
    orchestrator.kill()
    assert service.programs_gone_within()
    assert lock_is_free(service.lock)
    assert names_in(disk) == ["lost+found"]
    orchestrator.start()
    assert orchestrator.wait_for(job, seconds=LOST_S)["state"] == StackState.LOST
    goes_on(stack, orchestrator, job)
    assert service.stop() == 0
    assert nothing_is_left(disk, before)
