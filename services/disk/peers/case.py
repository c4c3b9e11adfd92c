"""What a peer must know about our case."""

import os
from dataclasses import dataclass
from typing import Self

from hostbench.model.trial import Beside
from hostbench.programs.peer import Params
from hostbench.programs.tools.pages import HUGE, SMALL, Pages
from services.disk.params import BLOCK, DEPTH, ENGINE, FILE, MODE, SHARE, TOTAL
from services.disk.params import RATE as REQUESTED_RATE

GIB = 1 << 30
PAGE_BYTES, HUGE_PAGE_BYTES = 4096, 2 << 20
LARGE_BLOCK, SMALL_BLOCK = 1 << 20, 4096
# The program's defaults, for a plan; a trial reports what it ran with.
DIRECT, _FIRST_ENGINE = "direct", "io_uring"
# Commits are always written like this, so it is no parameter there.
PSYNC = "psync"
_COMMITTED = {ENGINE: PSYNC, MODE: "buffered"}
COMMIT = "fsync_latency"
RATE, OPERATIONS, COMMIT_TIME = "bytes_per_second", "operations_per_second", "commit_time_s"
MEAN_LATENCY = "latency_mean_s"
NO_FILE = "this host hands on no file of the case for it to measure in"


@dataclass(frozen=True)
class Case:
    """Sizes are bytes. `rate` is operations a second of all threads (None: closed loop).
    `zipf_theta` None: blocks are drawn uniformly. `total_bytes` None: only time ends a trial.
    `timed` False: only the total ends it."""

    workload: str
    engine: str
    cache_mode: str
    threads: int
    depth: int
    block_bytes: int
    file_bytes: int
    read_share: float
    compressible: float
    zipf_theta: float | None
    rate: float | None
    total_bytes: int | None
    timed: bool
    duration_s: float
    warmup_s: float
    verify: bool

    @classmethod
    def of(cls, workload: str, params: Params) -> Self:
        """Return the case with these parameters, as a trial resolved them or as a suite has
        them."""
        if workload == COMMIT:
            params = {**params, **_COMMITTED}
        zipf = params.get("distribution") == "zipf"
        engine = str(params.get(ENGINE) or "auto")
        large = workload.startswith("seq_")
        return cls(
            workload=workload,
            engine=_FIRST_ENGINE if engine == "auto" else engine,
            cache_mode=str(params.get(MODE) or DIRECT),
            threads=int(_number(params, "threads", 1)),
            depth=int(_number(params, DEPTH, 1)),
            block_bytes=int(_number(params, BLOCK, LARGE_BLOCK if large else SMALL_BLOCK)),
            file_bytes=int(_number(params, FILE, GIB)),
            read_share=_number(params, SHARE, 0.5),
            compressible=_number(params, "compressible", 0.0),
            zipf_theta=_number(params, "zipf_theta", 1.2) if zipf else None,
            rate=_number(params, REQUESTED_RATE, 0.0) or None,
            total_bytes=int(_number(params, TOTAL, 0)) or None,
            timed=_number(params, TOTAL, 0) == 0 or _number(params, "duration_s", 0) > 0,
            duration_s=_number(params, "duration_s", 1.0),
            warmup_s=_number(params, "warmup_s", 0.1),
            verify=params.get("verify") == "on",
        )

    @property
    def sequential(self) -> bool:
        """Whether each thread goes through a part of the file from one end to the other."""
        return self.workload.startswith("seq_") or self.commits

    @property
    def commits(self) -> bool:
        """Whether each operation is a write and the flush after it."""
        return self.workload == COMMIT

    @property
    def reads(self) -> bool:
        """Whether at least some operations read."""
        mixed = self.workload.endswith("_rw") and self.read_share > 0
        return mixed or self.workload.endswith("_read")

    @property
    def direct(self) -> bool:
        """Whether it bypasses the page cache."""
        return self.cache_mode.startswith("direct")

    @property
    def synced(self) -> bool:
        """Whether each write waits for the disk: O_DSYNC or O_SYNC."""
        return self.cache_mode.endswith("sync")

    @property
    def span_bytes(self) -> int:
        """The bytes that one thread covers: its part of the file, or the whole file, in whole
        blocks."""
        blocks = self.file_bytes // self.block_bytes
        if self.sequential:
            blocks //= self.threads
        return blocks * self.block_bytes

    @property
    def covered_bytes(self) -> int:
        """The bytes that all threads cover, from the beginning of the file."""
        return self.span_bytes * (self.threads if self.sequential else 1)

    @property
    def pages(self) -> Pages:
        """The pages of a thread's buffers: huge pages if the buffers fill at least half of one
        (engine.h)."""
        buffer_bytes = -(-self.block_bytes // PAGE_BYTES) * PAGE_BYTES * self.depth
        return Pages(SMALL if buffer_bytes < HUGE_PAGE_BYTES / 2 else HUGE)

    @property
    def one_at_a_time(self) -> bool:
        """Whether it has a single operation in flight, direct, in a closed loop, like small
        tools."""
        alone = self.threads == 1 and self.depth == 1
        return alone and self.cache_mode == DIRECT and self.rate is None and not self.verify


def beside_plain_reads(case: Case) -> tuple[str, ...]:
    """Return how a tool differs that uses read(2) or pread(2) with a small buffer of its own, to
    which the C library gives no huge page."""
    differs = []
    if case.engine != PSYNC:
        differs.append(f"reads by system calls; ours by {case.engine}")
    if case.pages.requested == HUGE:
        differs.append("a buffer in 4 KiB pages; ours in huge ones")
    return tuple(differs)


def lacks_file(case: Case, beside: Beside) -> str | None:
    """Return why a tool has nothing to measure in, or None: it has a file that a trial of ours has
    filled. In a shorter file it would read past the end, or extend it."""
    if beside.scratch_fd is None:
        return NO_FILE
    try:
        size_bytes = os.fstat(beside.scratch_fd).st_size
    except OSError:
        return NO_FILE
    return NO_FILE if size_bytes < case.covered_bytes else None


def scratch_file(beside: Beside) -> str:
    """Return the name under which a tool that inherits our unnamed file can open it."""
    assert beside.scratch_fd is not None, "the survey found a file"
    return f"/proc/self/fd/{beside.scratch_fd}"


def _number(params: Params, name: str, default: float) -> float:
    """Return a given number, or `default` if it is left to the program."""
    value = params.get(name)
    return value if isinstance(value, int | float) else default
