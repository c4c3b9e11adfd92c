"""disk-bench as the tests call it, and what its events say."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.benchmark import MIB, Benchmark

NAME = "disk-bench"
BENCHMARK = Benchmark(NAME)
PROGRAM = BENCHMARK.path
call, measure, running = BENCHMARK.call, BENCHMARK.measure, BENCHMARK.running
table = BENCHMARK.table
# What keeps a trial short: a small file, and little time.
FILE_BYTES = 16 * MIB
MOMENT = (f"--file-bytes={FILE_BYTES}", "--duration-s=0.1", "--warmup-s=0")
WORKLOADS = (
    "seq_read",
    "seq_write",
    "seq_rw",
    "rand_read",
    "rand_write",
    "rand_rw",
    "fsync_latency",
)
NAIVE = ("naive_read", "naive_write", "naive_rw")
READING = ("seq_read", "seq_rw", "rand_read", "rand_rw")


@contextmanager
def program_for_all() -> Iterator[Path]:
    """A copy of the program that every user can start, wherever the checkout lies."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        directory = Path(name)
        directory.chmod(0o755)
        yield Path(shutil.copy(PROGRAM, directory))


def scratch_file(directory: Path) -> int:
    """The unnamed file of a job, as a descriptor."""
    return os.open(directory, os.O_TMPFILE | os.O_RDWR, 0o600)


def on_disk() -> Path:
    """A directory that is not in memory, as the scratch directory has to be."""
    return Path(os.environ.get("HOSTBENCH_SCRATCH", "/var/tmp"))
