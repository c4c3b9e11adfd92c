"""Runs disk-bench, and fio beside it, in one unnamed file for the benchmarks of this directory."""

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
    """The file that both tools work in, in HOSTBENCH_SCRATCH; gone with this process."""

    def __init__(self) -> None:
        self.descriptor = Scratch().descriptor()

    @property
    def on_loop_device(self) -> bool:
        """Whether it lies in memory after all, where only programs take time."""
        return os.major(os.fstat(self.descriptor).st_dev) == LOOP_MAJOR

    def disk_bench(self, command: str) -> Events:
        """One trial, e.g. of "seq_read --queue-depth 32": {"start": …, "end": …, "warnings": …}."""
        return trial("disk", f"{command} --scratch-fd {self.descriptor}", self.descriptor)

    def huge_bytes(self, command: str, theirs: tuple[str, ...]) -> dict[str, int]:
        """What disk-bench and fio have in huge pages while they run so."""
        ours = [str(program("disk")), *shlex.split(command), "--scratch-fd", str(self.descriptor)]
        return {
            "ours_huge_bytes": huge_bytes(ours, self.descriptor),
            "fio_huge_bytes": huge_bytes(theirs, self.descriptor),
        }

    def fio(self, command: tuple[str, ...]) -> Report:
        """What it says of one run."""
        run = subprocess.run(command, capture_output=True, text=True, pass_fds=[self.descriptor])
        if run.returncode:
            said = (run.stderr or run.stdout).strip()
            raise SystemExit(f"{shlex.join(command)}: exit {run.returncode}: {said}")
        return read_report(run.stdout)

    def fio_command(self, ours: Events, elapsed_s: float) -> tuple[str, ...]:
        """fio for the same measurement as a trial of ours, on the same CPUs."""
        start = ours["start"]
        cpus = tuple(start["placement"]["cpus"])
        beside = Beside(cpus=cpus, rate=1.0, elapsed_s=elapsed_s, scratch_fd=self.descriptor)
        return fio.Fio(Case.of(start["workload"], start["params"])).command(beside).arguments


@dataclass(frozen=True)
class Figures:
    """Of one run of either tool. None: too few operations for the percentile."""

    operations_per_second: float
    latency_p50_s: float | None
    latency_p99_s: float | None
    cpu_seconds_per_million_operations: float

    @classmethod
    def of_ours(cls, events: Events) -> Self:
        """A trial's."""
        metrics: Mapping[str, Any] = events["end"]["metrics"]
        return cls(**{name: metrics[name] for name in cls.__dataclass_fields__})

    @classmethod
    def of_fio(cls, report: Report) -> Self:
        """Of reads, or of writes: whichever it did."""
        done = report.read if report.read.operations else report.write
        return cls(
            operations_per_second=done.operations_per_second,
            latency_p50_s=done.latency_p50_s,
            latency_p99_s=done.latency_p99_s,
            cpu_seconds_per_million_operations=report.cpu_s / report.operations * MILLION,
        )
