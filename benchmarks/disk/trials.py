"""Run disk-bench, and fio for comparison, in one unnamed file for the benchmarks of this
directory."""

import os
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from benchmarks.pages import huge_bytes
from benchmarks.programs import Events, program, trial
from hostbench.host.scratch import Scratch
from hostbench.model.trial import Beside
from services.disk.peers import fio
from services.disk.peers.case import Case
from services.disk.peers.fio_output import Report, read_report

MILLION = 1e6
LOOP_MAJOR = 7


class ScratchFile:
    """The file in HOSTBENCH_SCRATCH that both tools work in. It disappears with this process."""

    def __init__(self) -> None:
        self.descriptor = Scratch().descriptor()

    @property
    def on_loop_device(self) -> bool:
        """Return whether the file is on a loop device and thus in memory, where only the programs
        take time."""
        return os.major(os.fstat(self.descriptor).st_dev) == LOOP_MAJOR

    def disk_bench(self, command: str) -> Events:
        """Run one trial, such as "seq_read --queue-depth 32", and return its events: {"start": …,
        "end": …, "warnings": …}."""
        return trial("disk", f"{command} --scratch-fd {self.descriptor}", self.descriptor)

    def huge_bytes(self, command: str, theirs: tuple[str, ...]) -> dict[str, int]:
        """Return the bytes that disk-bench and fio have in huge pages while they run these
        commands."""
        ours = [str(program("disk")), *shlex.split(command), "--scratch-fd", str(self.descriptor)]
        return {
            "ours_huge_bytes": huge_bytes(ours, self.descriptor),
            "fio_huge_bytes": huge_bytes(theirs, self.descriptor),
        }

    def fio(self, command: tuple[str, ...]) -> Report:
        """Run fio and return its report."""
        run = subprocess.run(command, capture_output=True, text=True, pass_fds=[self.descriptor])
        if run.returncode:
            output = (run.stderr or run.stdout).strip()
            raise SystemExit(f"{shlex.join(command)}: exit {run.returncode}: {output}")
        return read_report(run.stdout)

    def fio_command(self, ours: Events, elapsed_s: float) -> tuple[str, ...]:
        """Return the fio command for the measurement of one of our trials, on the same CPUs.

        fio writes the same bytes again and again: it would otherwise change some of every 512,
        where ours changes one word of every 4 KiB.
        """
        start = ours["start"]
        cpus = tuple(start["placement"]["cpus"])
        beside = Beside(cpus=cpus, rate=1.0, elapsed_s=elapsed_s, scratch_fd=self.descriptor)
        command = fio.Fio(Case.of(start["workload"], start["params"])).command(beside)
        return (*command.arguments, "--scramble_buffers=0")


@dataclass(frozen=True)
class Figures:
    """The figures of one run of either tool. A percentile is None when there were too few
    operations for it."""

    operations_per_second: float
    latency_p50_s: float | None
    latency_p99_s: float | None
    cpu_seconds_per_million_operations: float

    @classmethod
    def of_ours(cls, events: Events) -> Self:
        """Return the figures of a trial."""
        metrics: Mapping[str, Any] = events["end"]["metrics"]
        return cls(**{name: metrics[name] for name in cls.__dataclass_fields__})

    @classmethod
    def of_fio(cls, report: Report) -> Self:
        """Return the figures of fio's reads or of its writes, whichever it did."""
        done = report.read if report.read.operations else report.write
        return cls(
            operations_per_second=done.operations_per_second,
            latency_p50_s=done.latency_p50_s,
            latency_p99_s=done.latency_p99_s,
            cpu_seconds_per_million_operations=report.cpu_s / report.operations * MILLION,
        )
