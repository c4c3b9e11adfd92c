"""The output of fio 3 with --output-format=json, for one group of jobs."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from hostbench.programs.peer import BadOutput
from hostbench.programs.tools.reading import expect, expect_about

NS = 1e-9
MEDIAN, P99 = "50.000000", "99.000000"


@dataclass(frozen=True)
class Direction:
    """Reads, writes or flushes that were completed after the ramp: the bytes they moved, and
    latencies in seconds from before the submission to the completion; None without an operation.

    fio's own `iops` and `total_ios` count what was submitted after the ramp. With a deep queue of
    large blocks, that is a tenth less than what was completed in that time.
    """

    operations: int
    bytes: int
    bytes_per_second: float
    latency_p50_s: float | None
    latency_p99_s: float | None

    @classmethod
    def of(cls, printed: Mapping[str, Any]) -> Self:
        """Return the direction from fio's JSON. Raise KeyError, TypeError or ValueError if
        `printed` is not that."""
        latency = printed["lat_ns"]
        percentiles = latency.get("percentile", {})
        return cls(
            operations=int(latency["N"]),
            # Flushes have neither of these.
            bytes=int(printed.get("io_bytes", 0)),
            bytes_per_second=float(printed.get("bw_bytes", 0.0)),
            latency_p50_s=_seconds(percentiles.get(MEDIAN)),
            latency_p99_s=_seconds(percentiles.get(P99)),
        )

    @property
    def operations_per_second(self) -> float:
        """The rate of operations of one size."""
        return self.bytes_per_second * self.operations / self.bytes if self.bytes else 0.0


@dataclass(frozen=True)
class Report:
    """One run. `cpu_s` is the CPU time of its jobs since the ramp; `options` are the job's own."""

    read: Direction
    write: Direction
    sync: Direction
    cpu_s: float
    options: Mapping[str, str]

    @property
    def operations(self) -> int:
        """Reads and writes."""
        return self.read.operations + self.write.operations

    @property
    def operations_per_second(self) -> float:
        """Reads and writes."""
        return self.read.operations_per_second + self.write.operations_per_second

    @property
    def bytes_per_second(self) -> float:
        """Read and written."""
        return self.read.bytes_per_second + self.write.bytes_per_second

    def check(self, requested: Mapping[str, str]) -> None:
        """Raise BadOutput unless fio used these options and moved blocks of that size."""
        for name, value in requested.items():
            expect(name, self.options.get(name), value)
        if self.operations == 0:
            raise BadOutput("it did no operation")
        block = (self.read.bytes + self.write.bytes) / self.operations
        expect_about("blocks in bytes of", block, float(requested["bs"]))


def read_report(output: str) -> Report:
    """Return the report in what fio printed on standard output and standard error. Raise
    BadOutput."""
    begin = output.find("\n{") + 1 if not output.startswith("{") else 0
    if not output.startswith("{", begin):
        raise BadOutput("no JSON in its output")
    try:
        printed, _ = json.JSONDecoder().raw_decode(output, begin)
        (job,) = printed["jobs"]
        if job["error"] != 0:
            raise BadOutput(f"it ended with error {job['error']}")
        busy_ratio = (float(job["usr_cpu"]) + float(job["sys_cpu"])) / 100
        return Report(
            read=Direction.of(job["read"]),
            write=Direction.of(job["write"]),
            sync=Direction.of(job["sync"]),
            # In percent of the sum of the jobs' run times, which are in milliseconds.
            cpu_s=busy_ratio * float(job["job_runtime"]) * 1e-3,
            options={**printed.get("global options", {}), **job["job options"]},
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BadOutput(f"its JSON is not fio's: {type(error).__name__} {error}") from None


def _seconds(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else nanoseconds * NS
