"""Bad input to disk-bench: the exit code, and one line that names value, bound and remedy.

What every program answers alike is in tests/contract.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.disk.tests.program import (
    MOMENT,
    WORKLOADS,
    call,
    measure,
    on_disk,
    program_for_all,
    table,
)
from tests.benchmark import MIB, RESOURCE, USAGE, refused

SMALL = f"--file-bytes={MIB}"
OTHER_USER = 65534
BAD = [
    # One value by itself.
    ("seq_read", ["--block-bytes=0"], ['"0"', "1 to 268435456"]),
    ("seq_read", ["--block-bytes=268435457"], ['"268435457"', "1 to 268435456"]),
    ("seq_read", ["--block-bytes=4K"], ['"4K"', "1 to 268435456"]),
    ("seq_read", ["--file-bytes=4095"], ['"4095"', "4096 to 1000000000000000"]),
    ("seq_read", ["--threads=513"], ['"513"', "1 to 512", "all"]),
    ("seq_read", ["--threads=0"], ['"0"', "1 to 512"]),
    ("seq_read", ["--queue-depth=1025"], ['"1025"', "1 to 1024"]),
    ("seq_read", ["--queue-depth=0"], ['"0"', "1 to 1024"]),
    ("seq_read", ["--engine=sync"], ['"sync"', "auto, io_uring_fixed, io_uring, libaio, psync"]),
    ("seq_read", ["--cache-mode=odirect"], ['"odirect"', "direct, buffered"]),
    ("seq_read", ["--cache-mode=buffered+dsync"], ['"buffered+dsync"', "direct, buffered"]),
    ("seq_write", ["--cache-mode=sync"], ['"sync"', "direct+dsync, direct+sync, buffered, "]),
    ("rand_read", ["--rate=0"], ['"0"', "0.001"]),
    ("rand_read", ["--rate=fast"], ['"fast"', "operation/s"]),
    ("rand_read", ["--distribution=pareto"], ['"pareto"', "uniform, zipf"]),
    ("rand_read", ["--zipf-theta=0"], ['"0"', "0.01 to 5"]),
    ("seq_read", ["--distribution=zipf"], ["--distribution", "allowed:"]),
    ("rand_read", ["--read-share=0.5"], ["--read-share", "allowed:"]),
    ("rand_rw", ["--read-share=1.5"], ['"1.5"', "0 to 1"]),
    ("seq_write", ["--compressible=2"], ['"2"', "0 to 1"]),
    ("seq_write", ["--verify=yes"], ['"yes"', "off, on"]),
    ("seq_write", ["--steady-state=1"], ['"1"', "off, on"]),
    ("seq_write", ["--work=100"], ["--work", "--total-bytes"]),
    ("seq_write", ["--total-bytes=0"], ['"0"', "1 to"]),
    ("fsync_latency", ["--cache-mode=direct"], ["--cache-mode", "--block-bytes"]),
    ("fsync_latency", ["--queue-depth=2"], ["--queue-depth", "--block-bytes"]),
    ("seq_read", ["--scratch-fd=2"], ['"2"', "3 to"]),
    # Several together.
    ("seq_read", [SMALL, f"--block-bytes={2 * MIB}"], [f"{2 * MIB}", f"{MIB}", "smaller blocks"]),
    (
        "seq_read",
        [SMALL, "--threads=2"],
        [f"{MIB}", "2 threads", f"at least --file-bytes {2 * MIB}"],
    ),
    ("rand_read", ["--verify=on", "--block-bytes=39"], ["39", "--verify", "40"]),
    ("rand_read", ["--total-bytes=4095"], ["--total-bytes 4095", "4096"]),
    (
        "rand_read",
        [SMALL, "--block-bytes=1"],
        ["--block-bytes 1", "direct", "multiple of", "buffered"],
    ),
    ("rand_read", [SMALL, "--block-bytes=5000"], ["--block-bytes 5000", "multiple of"]),
    (
        "rand_read",
        [SMALL, "--engine=psync", "--queue-depth=2"],
        ["--queue-depth 2", "psync", "libaio"],
    ),
    (
        "rand_read",
        [SMALL, "--engine=mmap", "--cache-mode=buffered", "--queue-depth=2"],
        ["--queue-depth 2", "mmap", "io_uring"],
    ),
    ("rand_read", [SMALL, "--engine=mmap"], ["mmap", "--cache-mode buffered"]),
]


@pytest.mark.parametrize(("workload", "arguments", "parts"), BAD)
def test_bad_argument(workload: str, arguments: list[str], parts: list[str]) -> None:
    refused(call(workload, *arguments), USAGE, *parts)


def test_what_is_more_than_the_memory() -> None:
    result = call(
        "rand_read",
        "--threads=512",
        "--queue-depth=1024",
        "--block-bytes=268435456",
        "--file-bytes=1000000000000",
    )
    refused(result, RESOURCE, "--threads 512 x --queue-depth 1024", "268435456", "TiB of memory")


def test_odd_blocks_are_taken_where_the_page_cache_is_between() -> None:
    trial = measure("rand_read", *MOMENT, "--block-bytes=1", "--cache-mode=buffered")
    assert trial.params["block_bytes"] == 1
    assert "page_cache_measured" in trial.warnings


@pytest.mark.parametrize("workload", WORKLOADS)
def test_defaults(workload: str) -> None:
    params = {param["name"]: param["default"] for param in table()[workload]["params"]}
    sequential = workload.startswith("seq_")
    assert params["block_bytes"] == (MIB if sequential else 4096)
    assert params["file_bytes"] == 1024 * MIB and params["threads"] == 1
    if workload != "fsync_latency":
        assert params["cache_mode"] == "direct" and params["queue_depth"] == 1


# ---- where the file lies -------------------------------------------------------------------------


def with_scratch(directory: Path | str, **options: Any) -> subprocess.CompletedProcess[str]:
    """A trial with its file there."""
    environment = os.environ | {"HOSTBENCH_SCRATCH": str(directory)}
    return call("seq_read", *MOMENT, env=environment, **options)


@pytest.fixture
def directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=on_disk()) as name:
        yield Path(name)


def test_scratch_that_is_missing(directory: Path) -> None:
    refused(with_scratch(directory / "no"), RESOURCE, f"{directory}/no", "does not exist", "create")


def test_scratch_that_is_a_link(directory: Path) -> None:
    (directory / "real").mkdir()
    (directory / "link").symlink_to(directory / "real")
    refused(with_scratch(directory / "link"), RESOURCE, f"{directory}/link", "symbolic link")


def test_scratch_that_is_a_file(directory: Path) -> None:
    (directory / "file").write_text("mine")
    refused(with_scratch(directory / "file"), RESOURCE, f"{directory}/file", "not a directory")
    assert (directory / "file").read_text() == "mine"


def test_scratch_with_a_name_that_is_too_long(directory: Path) -> None:
    name = str(directory / ("x" * 250) / ("y" * 250))
    refused(with_scratch(name), RESOURCE, "HOSTBENCH_SCRATCH", f"{len(name)} bytes", "511")


def test_scratch_in_memory() -> None:
    refused(
        with_scratch("/dev/shm"), RESOURCE, "/dev/shm", "in memory (tmpfs)", "HOSTBENCH_SCRATCH"
    )


def test_scratch_of_somebody_else_that_all_may_write_to(directory: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory to somebody else")
    os.chown(directory, OTHER_USER, OTHER_USER)
    directory.chmod(0o777)
    refused(with_scratch(directory), RESOURCE, f"{OTHER_USER}", "every user can write", "0700")
    directory.chmod(0o1777)
    measure("seq_read", *MOMENT, env=os.environ | {"HOSTBENCH_SCRATCH": str(directory)})


def test_scratch_that_this_user_may_not_write_to(directory: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    directory.chmod(0o755)
    with program_for_all() as program:
        result = with_scratch(directory, program=program, user=OTHER_USER, group=OTHER_USER)
    refused(result, RESOURCE, str(directory), f"not writable by user {OTHER_USER}")


@pytest.mark.parametrize(
    "variable", ["HOSTBENCH_DISK_RESERVE_BYTES", "HOSTBENCH_DISK_WRITE_BUDGET_BYTES"]
)
def test_bytes_of_the_environment(variable: str) -> None:
    result = call("seq_read", *MOMENT, env=os.environ | {variable: "5G"})
    refused(result, USAGE, variable, '"5G"', "whole number of bytes")


# ---- the write budget ----------------------------------------------------------------------------


def test_more_work_than_the_write_budget() -> None:
    environment = os.environ | {"HOSTBENCH_DISK_WRITE_BUDGET_BYTES": str(32 * MIB)}
    arguments = ("seq_write", f"--file-bytes={16 * MIB}", "--warmup-s=0")
    measure(*arguments, f"--total-bytes={16 * MIB}", env=environment)
    result = call(*arguments, f"--total-bytes={17 * MIB}", env=environment)
    refused(result, RESOURCE, f"{33 * MIB} bytes", f"{32 * MIB}", "WRITE_BUDGET")


def test_a_total_in_a_time_ends_with_the_write_budget_too() -> None:
    environment = os.environ | {"HOSTBENCH_DISK_WRITE_BUDGET_BYTES": str(24 * MIB)}
    arguments = (f"--file-bytes={16 * MIB}", f"--total-bytes={1 << 50}", "--duration-s=30")
    result = call("seq_write", *arguments, "--warmup-s=0", env=environment)
    refused(result, RESOURCE, "8 writes", "WRITE_BUDGET")


def test_work_within_the_write_budget_is_not_refused_for_its_warm_up() -> None:
    environment = os.environ | {"HOSTBENCH_DISK_WRITE_BUDGET_BYTES": str(32 * MIB)}
    arguments = (f"--file-bytes={16 * MIB}", f"--total-bytes={16 * MIB}", "--warmup-s=0.5")
    trial = measure("seq_write", *arguments, "--block-bytes=4096", env=environment)
    assert trial.metrics["planned_write_bytes"] == 32 * MIB


def test_a_fixed_time_ends_with_the_write_budget() -> None:
    environment = os.environ | {"HOSTBENCH_DISK_WRITE_BUDGET_BYTES": str(24 * MIB)}
    result = call("seq_write", f"--file-bytes={16 * MIB}", "--duration-s=30", env=environment)
    refused(result, RESOURCE, "8 writes", "WRITE_BUDGET")


def test_a_total_that_takes_longer_than_the_time_is_sampled() -> None:
    arguments = (f"--file-bytes={MIB}", "--block-bytes=1", "--warmup-s=0", "--duration-s=0.3")
    synced = ("--cache-mode=buffered+dsync", f"--total-bytes={10 << 30}")
    trial = measure("seq_write", *arguments, *synced)
    moved = int(trial.metrics["work_bytes"])
    assert 0 < moved < 10 << 30
    assert trial.warnings["sampled"].startswith(f"{moved} of {10 << 30} bytes")
    assert trial.metrics["planned_write_bytes"] == MIB + (10 << 30) * 4096


def test_a_total_that_fits_into_the_time_ends_the_trial() -> None:
    arguments = (f"--file-bytes={MIB}", "--warmup-s=0", "--duration-s=60", "--threads=2")
    began_s = time.monotonic()
    trial = measure("rand_write", *arguments, f"--total-bytes={5 * 4096 + 1}")
    assert time.monotonic() - began_s < 30
    assert trial.metrics["work_operations"] == 5 and "sampled" not in trial.warnings
    assert trial.metrics["planned_write_bytes"] == MIB + 5 * 4096


def test_small_synced_writes_are_planned_as_pages() -> None:
    trial = measure(
        "rand_write",
        f"--file-bytes={MIB}",
        "--total-bytes=51200",
        "--block-bytes=512",
        "--cache-mode=buffered+dsync",
    )
    assert trial.metrics["planned_write_bytes"] == MIB + 100 * 4096
    # Each of the 100 made a page of 4096 bytes dirty again.
    assert trial.metrics["device_write_ratio"] == pytest.approx(8, rel=0.1)
