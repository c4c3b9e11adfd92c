"""Each engine moves exactly the blocks it has to: what one has written, another one verifies,
and nothing else of the file has changed."""

import itertools
import json
import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from services.disk.tests.loop_disk import loop_disk
from services.disk.tests.program import call, measure, running
from tests.benchmark import MIB, UNSUPPORTED, USAGE, Trial, refused
from tests.seccomp import refusing

SHORT_SHIM, SLOW_SHIM = (Path(__file__).with_name(f"{name}_shim.c") for name in ("short", "slow"))
QUEUES = ("io_uring", "io_uring_fixed", "libaio")
ENGINES = (*QUEUES, "psync", "mmap")
FILE_BYTES = MIB
BLOCK_BYTES = (512, 4096, 24 * 1024, MIB // 4)
MOVES = [
    *itertools.product(ENGINES, (1,), BLOCK_BYTES),
    *itertools.product(QUEUES, (32,), BLOCK_BYTES),
]
# A commit of some milliseconds for each of 2048 blocks: 4096 bytes tell the same.
MOVES.remove(("mmap", 1, 512))
SLOW = ("--engine=psync", "--block-bytes=8192")  # what slow_shim.c applies to
AT_ONCE = ("--warmup-s=0", f"--file-bytes={FILE_BYTES}")


def mode_of(engine: str, workload: str) -> str:
    """A cache mode that both take: as near to the disk as can be."""
    synced = "buffered" if workload in ("seq_read", "rand_read") else "buffered+dsync"
    return "--cache-mode=" + (synced if engine == "mmap" else "direct")


@pytest.fixture
def scratch() -> Iterator[int]:
    """The unnamed file of a job."""
    directory = os.environ.get("HOSTBENCH_SCRATCH", "/var/tmp")
    descriptor = os.open(directory, os.O_TMPFILE | os.O_RDWR, 0o600)
    yield descriptor
    os.close(descriptor)


def on(scratch: int, workload: str, engine: str, *arguments: str) -> Trial:
    """A trial with this engine on this file."""
    return measure(
        workload,
        *(*AT_ONCE, f"--engine={engine}", mode_of(engine, workload)),
        *(f"--scratch-fd={scratch}", *arguments),
        pass_fds=(scratch,),
    )


def blocks(scratch: int, block_bytes: int) -> list[bytes]:
    """The file as it is now."""
    return [os.pread(scratch, block_bytes, at) for at in range(0, FILE_BYTES, block_bytes)]


def changed(before: list[bytes], after: list[bytes]) -> list[int]:
    """The numbers of the blocks that differ."""
    return [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]


@pytest.mark.parametrize(("engine", "depth", "block_bytes"), MOVES)
@pytest.mark.sampled(5)
def test_what_was_written_is_read(scratch: int, engine: str, depth: int, block_bytes: int) -> None:
    size = ("--verify=on", f"--block-bytes={block_bytes}", f"--queue-depth={depth}")
    work = (*size, f"--total-bytes={FILE_BYTES // block_bytes * block_bytes}")
    on(scratch, "seq_read", engine, *work)
    before = blocks(scratch, block_bytes)
    written = on(scratch, "rand_write", engine, *work)
    assert written.metrics["verified_blocks"] == FILE_BYTES // block_bytes
    after = blocks(scratch, block_bytes)
    # One pass of the order writes every whole block once.
    assert changed(before, after)[: FILE_BYTES // block_bytes] == list(
        range(FILE_BYTES // block_bytes)
    )
    read = on(scratch, "rand_read", engine, *work)
    assert read.metrics["verified_blocks"] == FILE_BYTES // block_bytes
    assert blocks(scratch, block_bytes) == after


@pytest.mark.parametrize("engine", ENGINES)
def test_sequential_writes_go_where_they_should(scratch: int, engine: str) -> None:
    """Two threads, each in its half, each with a quarter of the file to write."""
    on(scratch, "seq_read", engine, "--total-bytes=65536", "--block-bytes=65536")
    before = blocks(scratch, 65536)
    half = FILE_BYTES // 2
    work = ("--threads=2", f"--total-bytes={half}", "--block-bytes=65536")
    on(scratch, "seq_write", engine, *work)
    count = len(before)
    assert changed(before, blocks(scratch, 65536)) == [
        *range(count // 4),
        *range(count // 2, count // 4 * 3),
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_mixes_of_threads_stay_whole(scratch: int, engine: str) -> None:
    """Blocks that are written and read at the same time, by several, in passes and by zipf: no read
    finds half a write."""
    depth = 16 if engine in QUEUES else 1
    for distribution in ("uniform", "zipf"):
        trial = on(
            *(scratch, "rand_rw", engine, "--verify=on", "--threads=3", "--total-bytes=16777216"),
            *("--block-bytes=16384", f"--queue-depth={depth}", f"--distribution={distribution}"),
        )
        metrics = trial.metrics
        assert metrics["work_operations"] == 1024
        assert 0.35 < metrics["verified_blocks"] / 1024 < 0.65


def test_read_share_is_kept(scratch: int) -> None:
    trial = on(
        *(scratch, "seq_rw", "libaio", "--read-share=0.8", "--queue-depth=4"),
        *("--block-bytes=4096", "--total-bytes=16777216"),
    )
    reads = trial.metrics["read_operations_per_second"]
    writes = trial.metrics["write_operations_per_second"]
    assert 0.75 < reads / (reads + writes) < 0.85


@pytest.mark.parametrize("engine", ["psync", "mmap"])
def test_engines_without_a_queue_say_so(engine: str) -> None:
    result = call("rand_read", f"--engine={engine}", "--queue-depth=2", "--cache-mode=buffered")
    refused(result, USAGE, "--queue-depth 2", engine, "io_uring")


def test_mmap_is_the_page_cache() -> None:
    refused(call("rand_read", "--engine=mmap"), USAGE, "--engine mmap", "buffered")


# ---- what the host does not allow ---


def test_a_forbidden_engine_is_skipped_with_its_reason() -> None:
    refuse = refusing("io_uring_setup")
    result = call("rand_read", "--engine=io_uring", preexec_fn=refuse)
    refused(result, UNSUPPORTED, "engine io_uring", "seccomp")


def test_auto_takes_the_next_and_tells_why() -> None:
    arguments = (*AT_ONCE, "--total-bytes=409600")
    trial = measure("rand_read", *arguments)
    assert trial.params["engine"] == "io_uring"
    trial = measure("rand_read", *arguments, preexec_fn=refusing("io_uring_setup"))
    assert trial.params["engine"] == "libaio"
    assert "seccomp" in trial.warnings["engine_fallback"]
    refuse = refusing("io_uring_setup", "io_setup")
    trial = measure("rand_read", *arguments, preexec_fn=refuse)
    assert trial.params["engine"] == "psync"
    result = call("rand_read", *arguments, "--queue-depth=4", preexec_fn=refuse)
    refused(result, USAGE, "--queue-depth 4", "psync")


def test_registered_buffers_need_locked_memory() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to give a capability away")
    prefix = ("setpriv", "--bounding-set=-ipc_lock", "prlimit", "--memlock=1048576")
    large = ("--engine=io_uring_fixed", "--block-bytes=1048576", "--queue-depth=8")
    result = call("seq_read", *AT_ONCE, *large, prefix=prefix)
    refused(result, UNSUPPORTED, "8388608 bytes", "1048576 bytes", "ulimit -l")
    fits = ("--engine=io_uring_fixed", "--block-bytes=65536", "--queue-depth=8")
    measure("seq_read", *AT_ONCE, *fits, "--total-bytes=1048576", prefix=prefix)


# ---- open loops, transfers cut short, the end ---


@pytest.mark.parametrize("engine", ["io_uring", "psync"])
def test_an_open_loop_keeps_its_rate(engine: str) -> None:
    trial = measure(
        *("rand_read", *AT_ONCE, f"--engine={engine}", "--rate=200", "--threads=2"),
        "--duration-s=1.5",
    )
    # A disk that others use may stand still for a tenth of a second.
    assert 150 < trial.metrics["operations_per_second"] < 210
    assert "rate_not_reached" not in trial.warnings


def test_latency_of_an_open_loop_counts_from_when_it_was_due() -> None:
    """More than any disk does one by one: requests wait for one another, and that is latency. What
    was due in the one second is begun in the next, too."""
    trial = measure(
        *("rand_read", *AT_ONCE, "--engine=psync", "--rate=10000000", "--duration-s=1"),
    )
    metrics = trial.metrics
    assert metrics["operations_per_second"] < 5e6
    assert 0.5 < metrics["latency_p50_s"] < 1.5
    assert "that were due" in trial.warnings["rate_not_reached"]


def shimmed(directory: Path, source: Path) -> dict[str, str]:
    """The environment in which programs make the calls of this source."""
    library = directory / source.with_suffix(".so").name
    compiler = os.environ.get("CC", "gcc")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    return {**os.environ, "LD_PRELOAD": str(library)}


@pytest.fixture(scope="module")
def short_shim(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which pread and pwrite move half of what they should."""
    return shimmed(tmp_path_factory.mktemp("shim"), SHORT_SHIM)


@pytest.fixture(scope="module")
def slow_shim(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which SHIM_… say what pread, pwrite and fdatasync do (slow_shim.c)."""
    return shimmed(tmp_path_factory.mktemp("shim"), SLOW_SHIM)


def test_what_was_due_in_time_is_begun_late(slow_shim: dict[str, str]) -> None:
    """100 are due in the second, and 67 can be done in it."""
    environment = {**slow_shim, "SHIM_TRANSFER_MS": "15"}
    trial = measure(
        *("rand_read", *AT_ONCE, *SLOW, "--rate=100", "--duration-s=1"),
        env=environment,
    )
    assert trial.metrics["work_operations"] == 100
    assert "and 0 never begun" in trial.warnings["rate_not_reached"]


def test_what_was_due_and_never_begun_is_reported(slow_shim: dict[str, str]) -> None:
    """At most 50 of 100 are done in the second and the one behind it."""
    environment = {**slow_shim, "SHIM_TRANSFER_MS": "40"}
    trial = measure(
        *("rand_read", *AT_ONCE, *SLOW, "--rate=100", "--duration-s=1"),
        env=environment,
    )
    done = trial.metrics["work_operations"]
    assert 30 < done <= 51
    never_begun = re.search(r"and (\d+) never begun", trial.warnings["rate_not_reached"])
    assert never_begun and int(never_begun[1]) == 100 - done


def test_steadiness_leaves_out_the_flush_at_the_end(slow_shim: dict[str, str]) -> None:
    trial = measure(
        *("rand_write", *AT_ONCE, "--cache-mode=buffered+fsync_end", *SLOW),
        *("--rate=500", "--steady-state=on", "--duration-s=1.2"),
        env={**slow_shim, "SHIM_FDATASYNC_MS": "1500"},
    )
    assert trial.metrics["fsync_s"] > 1.4
    assert trial.metrics["steady_state_range_ratio"] < 0.2
    assert "not_steady" not in trial.warnings


def test_what_is_put_off_is_requested_again(slow_shim: dict[str, str]) -> None:
    common = ("rand_read", *AT_ONCE, *SLOW, "--total-bytes=81920")
    trial = measure(*common, env={**slow_shim, "SHIM_EAGAIN": "3"})
    assert trial.metrics["work_operations"] == 10


def test_reads_and_writes_of_a_mix_go_to_different_blocks(
    scratch: int, slow_shim: dict[str, str], tmp_path: Path
) -> None:
    """In one pass each block is read or written, and none is both."""
    trace = tmp_path / "trace"
    measure(
        *("rand_rw", *AT_ONCE, *SLOW, f"--scratch-fd={scratch}", f"--total-bytes={FILE_BYTES}"),
        pass_fds=(scratch,),
        env={**slow_shim, "SHIM_TRACE": str(trace)},
    )
    lines = [line.split() for line in trace.read_text().splitlines()]
    reads, writes = ([int(at) for op, at in lines if op == kind] for kind in "rw")
    assert min(len(reads), len(writes)) > FILE_BYTES // 8192 // 4
    assert sorted(reads + writes) == list(range(0, FILE_BYTES, 8192))


@pytest.mark.parametrize("engine", QUEUES)
def test_the_queue_is_as_deep_as_requested(engine: str) -> None:
    """Little's law: so many a second, each for so long, are so many at a time."""
    trial = measure(
        *("rand_read", "--file-bytes=16777216", "--warmup-s=0.1", f"--engine={engine}"),
        *("--queue-depth=32", "--duration-s=2"),
    )
    metrics = trial.metrics
    depth = metrics["operations_per_second"] * metrics["latency_mean_s"]
    assert 0.97 * 32 < depth < 1.01 * 32


def test_the_rest_of_a_short_transfer_is_requested(
    scratch: int, short_shim: dict[str, str]
) -> None:
    common = (*AT_ONCE, "--engine=psync", "--verify=on", "--block-bytes=65536")
    work = f"--total-bytes={FILE_BYTES}"
    options = {"pass_fds": (scratch,), "env": short_shim}
    measure("rand_write", *common, work, f"--scratch-fd={scratch}", **options)
    trial = measure("rand_read", *common, work, f"--scratch-fd={scratch}", **options)
    assert trial.metrics["work_operations"] == FILE_BYTES // 65536
    assert trial.metrics["verified_blocks"] == FILE_BYTES // 65536


@pytest.mark.parametrize("engine", ENGINES)
def test_a_file_that_was_made_shorter_is_an_error(scratch: int, engine: str) -> None:
    arguments = (
        *AT_ONCE,
        f"--engine={engine}",
        mode_of(engine, "rand_read"),
        f"--scratch-fd={scratch}",
    )
    with running("rand_read", *arguments, pass_fds=(scratch,)) as (process, _):
        os.ftruncate(scratch, MIB // 4)
        output, messages = process.communicate(timeout=20)
    assert process.returncode == 1, (output, messages)
    last = json.loads(output.splitlines()[-1])
    assert last["event"] == "error"
    assert "reading 4096 bytes at offset" in last["message"]


def open_flags(pid: int) -> set[int]:
    """Of all files that the process has open; it may close one meanwhile."""
    found = set()
    for entry in Path(f"/proc/{pid}/fdinfo").iterdir():
        with suppress(FileNotFoundError):
            (line,) = re.findall(r"^flags:\s+(\d+)$", entry.read_text(), re.MULTILINE)
            found.add(int(line, 8))
    return found


@pytest.mark.parametrize(
    ("mode", "flags"),
    [
        ("direct", os.O_DIRECT),
        ("direct+fsync_end", os.O_DIRECT),
        ("direct+dsync", os.O_DIRECT | os.O_DSYNC),
        ("direct+sync", os.O_DIRECT | os.O_SYNC),
        ("buffered+dsync", os.O_DSYNC),
        ("buffered+sync", os.O_SYNC),
    ],
)
def test_a_cache_mode_is_how_the_file_is_open(mode: str, flags: int) -> None:
    with running("rand_write", *AT_ONCE, f"--cache-mode={mode}") as (process, _):
        opened = {flags & (os.O_DIRECT | os.O_SYNC) for flags in open_flags(process.pid)}
    # What the scratch file is filled by waits for nothing, or goes past the page cache.
    assert flags in opened
    assert opened <= {0, os.O_DIRECT, flags}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("rate", [(), ("--rate=0.2",)])
@pytest.mark.sampled(5)
def test_ends_within_a_second_of_a_signal(engine: str, rate: tuple[str, ...]) -> None:
    arguments = (*AT_ONCE, f"--engine={engine}", mode_of(engine, "rand_read"), *rate)
    with running("rand_read", *arguments) as (process, _):
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        process.communicate(timeout=20)
        assert time.monotonic() - began < 1


@contextmanager
def frozen(directory: Path) -> Iterator[None]:
    """A disk that no longer answers: writes to this file system wait until it thaws."""
    subprocess.run(["fsfreeze", "--freeze", directory], check=True)
    try:
        yield
    finally:
        subprocess.run(["fsfreeze", "--unfreeze", directory], check=True)


@pytest.mark.parametrize("engine", [*QUEUES, "psync"])
def test_the_end_is_reported_while_the_disk_is_stuck(engine: str) -> None:
    with loop_disk(64 * MIB) as directory:
        environment = {
            **os.environ,
            "HOSTBENCH_SCRATCH": str(directory),
            "HOSTBENCH_DISK_RESERVE_BYTES": "0",
        }
        depth = "--queue-depth=4" if engine in QUEUES else "--queue-depth=1"
        arguments = (*AT_ONCE, f"--engine={engine}", depth, "--sample-interval-s=60")
        with running("rand_write", *arguments, env=environment) as (process, _):
            assert process.stdout is not None
            with frozen(directory):
                time.sleep(0.3)
                process.send_signal(signal.SIGTERM)
                ready, _, _ = select.select([process.stdout], [], [], 1)
                assert ready
                assert json.loads(process.stdout.readline())["code"] == "interrupted"
            process.communicate(timeout=20)
