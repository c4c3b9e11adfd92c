"""A disk that dies, is read-only, is no disk, and runs on it that are killed: no figure comes of
it, the error is reported in one line, and nothing is left there."""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hostbench.base.exitcode import ExitCode
from services.disk.tests.loop_disk import free_bytes, loop_disk, names_in
from services.disk.tests.program import MOMENT, measure, on_disk, running
from tests.benchmark import FAILED, MIB, refused
from tests.faults.command import Command, end_of
from tests.faults.disks import failing_disk, overlay
from tests.patience import SOON_S, comes_true, wait_until

FILE_BYTES = 32 * MIB
ON_FILE = ("run", "--idle-policy", "force", "--param", f"file_bytes={FILE_BYTES}", "--trials", "1")
LONG = ("--param", "duration_s=60")


def environment(directory: Path) -> dict[str, str]:
    """With the scratch file there, and no byte of it kept free."""
    return {"HOSTBENCH_SCRATCH": str(directory), "HOSTBENCH_DISK_RESERVE_BYTES": "0"}


def command_on(tmp_path: Path, directory: Path) -> Command:
    """A command with its scratch file there."""
    (tmp_path / "run").mkdir()
    command = Command(tmp_path / "run")
    command.environment |= environment(directory)
    return command


# ---- a disk that dies ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("workload", "arguments", "doing"),
    [
        ("rand_read", ["--engine=io_uring", "--queue-depth=8"], "reading 4096 bytes at offset "),
        (
            "rand_write",
            ["--engine=io_uring_fixed", "--queue-depth=8"],
            "writing 4096 bytes at offs",
        ),
        (
            "rand_rw",
            ["--engine=libaio", "--queue-depth=8", "--threads=2"],
            "ing 4096 bytes at offs",
        ),
        ("seq_read", ["--engine=psync"], f"reading {MIB} bytes at offset "),
        ("seq_write", ["--engine=psync", "--cache-mode=direct+dsync"], f"writing {MIB} bytes at o"),
        ("rand_write", ["--cache-mode=buffered+dsync"], "writing 4096 bytes at offset "),
        ("fsync_latency", [], "EIO"),
        ("naive_write", ["--sync=each"], "writing 8192 bytes at offset "),
        ("naive_rw", ["--sync=each", "--calls=syscalls"], "writing 8192 bytes at offset "),
    ],
)
def test_a_disk_that_dies_in_mid_trial(workload: str, arguments: list[str], doing: str) -> None:
    with failing_disk() as disk:
        options: dict[str, Any] = {"env": os.environ | environment(disk.directory)}
        call = (workload, f"--file-bytes={FILE_BYTES}", "--sample-interval-s=0.1", *arguments)
        with running(*call, **options) as (process, _):
            assert process.stdout is not None
            next(line for line in process.stdout if json.loads(line)["event"] == "sample")
            disk.fail()
            output, messages = process.communicate(timeout=SOON_S)
        result = subprocess.CompletedProcess(call, process.returncode, output, messages)
        refused(result, FAILED, doing, "EIO", "the device failed", "dmesg", "smartctl")


def test_a_disk_that_dies_is_a_failed_case(tmp_path: Path) -> None:
    """What was measured before it died is no figure."""
    with failing_disk() as disk:
        command = command_on(tmp_path, disk.directory)
        before = free_bytes(disk.directory)
        process = command.start(*ON_FILE, "--workload", "disk.rand_read", "--json", *LONG)
        wait_until(lambda: free_bytes(disk.directory) <= before - FILE_BYTES)
        time.sleep(0.5)
        disk.fail()
        ended = end_of(process)
        assert command.is_gone_soon()
    assert ended.code == ExitCode.CASE_FAILED, ended.errors
    (case,) = ended.document["cases"]
    assert case["verdict"] == "failed"
    assert "EIO" in case["reasons"][0]["text"] and "smartctl" in case["reasons"][0]["text"]
    assert not any(metric["statistics"] for metric in case["metrics"].values())


# ---- what is no place for a scratch file -----------------------------------------------------


@pytest.fixture
def read_only() -> Iterator[Path]:
    with loop_disk(32 * MIB) as directory:
        subprocess.run(["mount", "-o", "remount,ro", directory], check=True)
        yield directory


@pytest.fixture
def missing(tmp_path: Path) -> Path:
    return tmp_path / "none"


@pytest.fixture
def memory() -> Path:
    return Path("/dev/shm")


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("read_only", "is on a file system that may only be read"),
        ("missing", "does not exist"),
        ("memory", "is in memory (tmpfs), not on a disk"),
    ],
)
def test_a_place_that_takes_no_file(
    tmp_path: Path, request: pytest.FixtureRequest, place: str, says: str
) -> None:
    directory: Path = request.getfixturevalue(place)
    ended = command_on(tmp_path, directory).run(
        *ON_FILE, "--workload", "disk.seq_write", "--param", "duration_s=0.1", "--json"
    )
    assert ended.code == ExitCode.RESOURCE
    (case,) = ended.document["cases"]
    (reason,) = case["reasons"]
    assert (case["verdict"], case["metrics"]) == ("failed", {})
    assert f"{directory} {says}" in reason["text"] and "set HOSTBENCH_SCRATCH" in reason["text"]
    assert "\n" not in reason["text"]


# ---- an overlay, as in a container without a volume ------------------------------------------


def test_an_overlay_on_a_disk_is_measured() -> None:
    with tempfile.TemporaryDirectory(dir=on_disk()) as upper, overlay(Path(upper)) as directory:
        options: dict[str, Any] = {"env": os.environ | environment(directory)}
        for arguments in ((), ("--cache-mode=buffered",)):
            trial = measure("rand_read", *MOMENT, *arguments, **options)
            assert trial.metrics["device_read_ratio"] == pytest.approx(1, abs=0.05)
            assert trial.metrics["cached_ratio_before"] < 0.01
            assert "cache_contaminated" not in trial.warnings
        assert measure("rand_rw", *MOMENT, "--verify=on", **options).metrics["verified_blocks"] > 0
        assert names_in(directory) == []


def test_an_overlay_in_memory_never_passes_for_a_disk() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as upper, overlay(Path(upper)) as directory:
        trial = measure("rand_read", *MOMENT, env=os.environ | environment(directory))
        assert "cache_contaminated" in trial.warnings


# ---- killed ----------------------------------------------------------------------------------

SHORT_THEN_LONG = f"""
name: mine
idle: {{policy: force}}
repeats: {{min_trials: 1, max_trials: 1}}
peers: none
cases:
  - workload: disk.rand_read
    params: {{duration_s: 0.1, warmup_s: 0, file_bytes: {FILE_BYTES}}}
  - workload: disk.rand_write
    params: {{duration_s: 3, warmup_s: 0, file_bytes: {FILE_BYTES}}}
"""


@pytest.fixture
def small_disk() -> Iterator[Path]:
    with loop_disk(96 * MIB) as directory:
        yield directory


@pytest.mark.parametrize("into_the_second_s", [0, 0.1, 1])
@pytest.mark.sampled(3)
def test_kill_9_in_mid_trial_leaves_nothing_and_the_job_can_go_on(
    tmp_path: Path, small_disk: Path, into_the_second_s: float
) -> None:
    command = command_on(tmp_path, small_disk)
    before = free_bytes(small_disk)
    suite = command.results.parent / "mine.yaml"
    suite.write_text(SHORT_THEN_LONG)
    process = command.start("run", str(suite))
    assert process.stderr is not None
    next(line for line in process.stderr if line.startswith("[1/2 cases]"))
    command.wait_for_program()
    time.sleep(into_the_second_s)
    assert free_bytes(small_disk) <= before - FILE_BYTES
    process.kill()
    end_of(process)
    assert command.is_gone_soon()
    assert comes_true(lambda: free_bytes(small_disk) == before)
    assert names_in(small_disk) == ["lost+found"]
    assert command.documents() == []

    ended = command.run("run", "--resume", "latest", "--json")
    assert "1 of 2 cases kept; 1 measured again" in ended.errors
    assert [len(case["trials"]) for case in ended.document["cases"]] == [1, 1]
    assert ended.document["job"]["state"] == "succeeded"
    assert comes_true(lambda: free_bytes(small_disk) == before)
