"""Quotas and cpusets of real control groups are seen, respected and named."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "build" / "release" / "cpu-bench"
CGROUPS = Path("/sys/fs/cgroup")
V2 = (CGROUPS / "cgroup.controllers").exists()
MEMBERS = "cgroup.procs"


@contextmanager
def group(controller: str, settings: dict[str, str]) -> Iterator[Path]:
    """A control group of our own, gone afterwards."""
    directory = CGROUPS / f"hostbench-{os.getpid()}"
    if not V2:
        directory = CGROUPS / controller / directory.name
    try:
        directory.mkdir()
        for name, value in settings.items():
            (directory / name).write_text(value)
    except OSError as refused:
        if directory.exists():
            directory.rmdir()
        pytest.skip(f"no control group of our own can be made here: {refused}")
    try:
        yield directory
    finally:
        directory.rmdir()


def run_inside(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    join = f'echo $$ > "{directory}/{MEMBERS}" && exec "$@"'
    return subprocess.run(
        ["sh", "-c", join, "sh", PROGRAM, *arguments], capture_output=True, text=True, timeout=100
    )


def events_by_name(result: subprocess.CompletedProcess[str]) -> dict[str, dict]:  # type: ignore[type-arg]
    assert result.returncode == 0, result.stderr
    return {event["event"]: event for event in map(json.loads, result.stdout.splitlines())}


def test_quota_is_seen_and_its_throttling_reported() -> None:
    settings = (
        {"cpu.max": "10000 100000"}
        if V2
        else {"cpu.cfs_quota_us": "10000", "cpu.cfs_period_us": "100000"}
    )
    # So little that it is the quota that holds the program up, whatever else the host does.
    with group("cpu", settings) as tenth_of_a_cpu:
        events = events_by_name(run_inside(tenth_of_a_cpu, "fma", "--duration-s", "0.6"))
    assert events["start"]["placement"]["quota_cpus"] == 0.1
    assert events["warning"]["code"] == "quota"
    disturbance = events["end"]["disturbance"]
    assert disturbance["throttled_s"] > 0.1
    assert disturbance["cpu_ratio"] < 0.7


def test_cpuset_that_does_not_start_at_zero() -> None:
    last = max(os.sched_getaffinity(0))
    if last == 0:
        pytest.skip("this host has one CPU only")
    with group("cpuset", {"cpuset.mems": "0", "cpuset.cpus": str(last)}) as one_cpu:
        events = events_by_name(run_inside(one_cpu, "fma", "--duration-s", "0.05"))
        refused = run_inside(one_cpu, "fma", "--cpus", "0")
    placement = events["start"]["placement"]
    assert (placement["cpus"], placement["affinity"]) == ([last], [last])
    assert placement["cpuset"] == str(last)
    assert refused.returncode == 2
    assert f"out of {last} " in refused.stderr


@pytest.mark.parametrize(
    ("workload", "too_large"), [("linpack", ("--n", "8000")), ("gemm", ("--n", "4000"))]
)
@pytest.mark.sampled(2)
def test_memory_limit_is_kept_and_named(workload: str, too_large: tuple[str, str]) -> None:
    limit = "memory.max" if V2 else "memory.limit_in_bytes"
    with group("memory", {limit: str(128 << 20)}) as small:
        refused = run_inside(small, workload, *too_large)
        largest = re.search(r"the largest n that fits is (\d+)$", refused.stderr.strip())
        assert largest, refused.stderr
        # What is left changes by some pages from one process to the next.
        nearly = str(int(largest[1]) - 50)
        fitting = run_inside(small, workload, "--n", nearly, "--duration-s", "0.05")
    assert refused.returncode == 3
    assert f"--n {too_large[1]} needs" in refused.stderr
    assert f"{small}/{limit}" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert int(largest[1]) > 2000
    assert events_by_name(fitting)["end"]["verified"] is True
