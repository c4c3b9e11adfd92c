"""The file that the trials of one job share: who gets it, and when its space comes back."""

import contextlib
import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hostbench.base.interrupt import Interrupt
from hostbench.host.scratch import VARIABLE, Scratch
from hostbench.model.events import WarningEvent
from hostbench.model.host import HostInventory
from hostbench.model.peer import PeerEndEvent
from hostbench.model.trial import Beside, Trial
from hostbench.programs.program import load_program
from hostbench.run.local import LocalTransport
from tests.faults.command import scripted_programs
from tests.service.conftest import StartService, behaving, check_and_stop
from tests.service.streams import outcome, running
from tests.stack.service_process import ServiceProcess, events

TRIAL: dict[str, Any] = {"workload": "fma", "params": {"threads": 1}}
PARAM: dict[str, Any] = {
    "name": "scratch_fd", "type": "count", "unit": None, "default": None, "min": 0, "max": 1 << 20,
    "choices": [], "unsupported": {}, "scope": "host", "help": "",
}  # fmt: skip
# Which descriptors a peer has open, in place of a figure.
PEER = """#!/bin/sh
[ "$1" = -v ] && { echo "likwid-bench -- Version 9.9.9"; exit; }
[ "$1" = -a ] && { echo "peakflops_avx_fma - x"; exit; }
ls -l /proc/self/fd
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scripted programs; one works on a file."""
    path = scripted_programs(tmp_path_factory.mktemp("scripted"))
    table = json.loads((path / "cpu-bench.json").read_text())
    for workload in table["workloads"]:
        workload["params"].append(PARAM)
    (path / "cpu-bench.json").write_text(json.dumps(table))
    return path


@pytest.fixture(scope="module")
def service_of_file(
    tmp_path_factory: pytest.TempPathFactory, programs: Path, directory: Path
) -> Iterator[ServiceProcess]:
    root = tmp_path_factory.mktemp("service")
    scratch: dict[str, Any] = {VARIABLE: str(directory)}
    one = ServiceProcess(root, programs=programs, SCRIPT="scratch", **scratch)
    yield one
    check_and_stop(one)


_fences = itertools.count(10, 10)


@pytest.fixture
def fence() -> int:
    """That of a job which no test before had, and which has no file yet."""
    return next(_fences)


def used(lines: list[dict[str, Any]]) -> tuple[int, int]:
    """Inode and size of the file that a trial found; it has no name."""
    (message,) = [line["message"] for line in lines if line["event"] == "warning"]
    inode, size, names = map(int, message.split())
    assert names == 0
    return inode, size


def kept(service: ServiceProcess, directory: Path) -> list[int]:
    """The files there that the service holds."""
    found = []
    for entry in Path(f"/proc/{service.pid}/fd").iterdir():
        # The service may close a descriptor meanwhile, such as that of a connection.
        with contextlib.suppress(FileNotFoundError):
            if str(entry.readlink()).startswith(f"{directory}/"):
                found.append(entry.stat().st_ino)
    return found


def test_trials_of_a_job_share_a_file(service: ServiceProcess, directory: Path, fence: int) -> None:
    found = [used(events(service.post(id=f"t{n}", fence=fence, **TRIAL))) for n in range(3)]
    inode, _ = found[0]
    assert found == [(inode, 0), (inode, 4096), (inode, 8192)]
    assert kept(service, directory) == [inode]
    assert list(directory.iterdir()) == []


def test_another_job_begins_with_an_empty_one(
    service: ServiceProcess, directory: Path, fence: int
) -> None:
    used(events(service.post(id="t1", fence=fence, **TRIAL)))
    inode, size = used(events(service.post(id="t2", fence=fence + 1, **TRIAL)))
    assert size == 0
    assert kept(service, directory) == [inode], "the space of the first one's is free"


def test_a_trial_by_hand_leaves_nothing(
    service: ServiceProcess, directory: Path, fence: int
) -> None:
    used(events(service.post(id="t1", fence=fence, **TRIAL)))
    _, size = used(events(service.post(id="t2", **TRIAL)))
    assert size == 0
    assert kept(service, directory) == [], "it had the room of the file that was kept"
    assert used(events(service.post(id="t3", fence=fence, **TRIAL)))[1] == 0


def test_a_trial_that_is_ended_keeps_the_file_for_the_next(
    service: ServiceProcess, directory: Path, fence: int
) -> None:
    with behaving(service, "hang"), running(service, "ended", fence=fence, **TRIAL) as trial:
        trial.forget_the_lease()
        assert trial.failure()["code"] == "lease_lost"
    assert len(kept(service, directory)) == 1
    assert service.stop() == 0
    assert list(directory.iterdir()) == []


def test_a_service_that_is_killed_leaves_nothing(
    service: ServiceProcess, directory: Path, fence: int
) -> None:
    with behaving(service, "slow"), running(service, "killed", fence=fence, **TRIAL) as trial:
        service.wait_for_program()
        service.kill()
        trial.finish()
    assert service.programs_gone_within()
    assert list(directory.iterdir()) == []
    service.start()
    assert kept(service, directory) == []


def test_a_directory_that_cannot_be_used_ends_the_service_at_its_start(
    start_service: StartService, programs: Path, directory: Path
) -> None:
    with pytest.raises(AssertionError) as raised:
        start_service(programs=programs, **{VARIABLE: str(directory / "none")})
    (line,) = str(raised.value).splitlines()[0:1]
    assert "does not exist" in line and VARIABLE in line


def test_a_directory_that_cannot_be_used_any_more_fails_the_trial(
    service: ServiceProcess, directory: Path, fence: int
) -> None:
    directory.rmdir()
    failure, control_plane = events(service.post(id="gone", fence=fence, **TRIAL))
    assert (failure["event"], failure["code"], failure["exit_code"]) == ("failure", "scratch", 3)
    assert "does not exist" in failure["message"] and VARIABLE in failure["message"]
    assert control_plane["event"] == "control_plane"
    assert outcome(service, "gone") == "failed"
    directory.mkdir()
    assert used(events(service.post(id="t2", fence=fence, **TRIAL)))[1] == 0


def test_the_inventory_has_it_where_a_program_needs_it(
    service: ServiceProcess, start_service: StartService, directory: Path
) -> None:
    found = HostInventory.model_validate_json(service.client.get("/host").content)
    assert found.scratch is not None and found.scratch.directory == str(directory)
    other = start_service("other", **{VARIABLE: "/none"})
    assert other.client.get("/host").json()["scratch"] is None


# ---- the embedded run has the same transport ----


def trial(tool: str = "hostbench", **changes: Any) -> Trial:
    given: dict[str, Any] = {
        "subsystem": "cpu",
        "workload": "fma",
        "params": {"threads": 1},
        "timeout_s": 60,
    }
    return Trial(tool=tool, **given | changes)


@pytest.fixture
def transport(
    programs: Path, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[LocalTransport, Scratch]]:
    for name, value in (
        ("HOSTBENCH_PROGRAMS", str(programs)),
        ("SCRIPT", "scratch"),
        (VARIABLE, str(directory)),
    ):
        monkeypatch.setenv(name, value)
    interrupt, scratch = Interrupt(), Scratch()
    yield LocalTransport({"cpu": load_program("cpu")}, interrupt, None, scratch), scratch
    interrupt.close()
    scratch.close()


def test_trials_of_an_embedded_run_share_a_file(
    transport: tuple[LocalTransport, Scratch], directory: Path
) -> None:
    local, scratch = transport
    messages = [
        event.message
        for _ in range(2)
        for event in local.run(trial())
        if isinstance(event, WarningEvent)
    ]
    inode = os.fstat(scratch.descriptor()).st_ino
    assert messages == [f"{inode} 0 0", f"{inode} 4096 0"]
    scratch.close()
    assert list(directory.iterdir()) == []


def peers_descriptors(
    local: LocalTransport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> str:
    """What a peer has open."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "likwid-bench").write_text(PEER)
    (tools / "likwid-bench").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    beside = Beside(cpus=(min(os.sched_getaffinity(0)),), rate=1e9, elapsed_s=0.1)
    params = {"dtype": "fp64", "isa": "avx2", "threads": 1}
    *_, ended = local.run(trial("likwid-bench", params=params, beside=beside))
    assert isinstance(ended, PeerEndEvent)
    return ended.output


def test_a_peer_inherits_it(
    transport: tuple[LocalTransport, Scratch],
    directory: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    local, scratch = transport
    descriptor = scratch.descriptor()
    seen = peers_descriptors(local, tmp_path, monkeypatch)
    assert f" {descriptor} -> {directory}/#" in seen


def test_a_peer_makes_none(
    transport: tuple[LocalTransport, Scratch],
    directory: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No trial has written into a new one: it would measure holes."""
    local, scratch = transport
    assert str(directory) not in peers_descriptors(local, tmp_path, monkeypatch)
    assert scratch.opened is None
