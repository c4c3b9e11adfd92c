"""A verification as JSON lines of the Open Compute Project's "Test & Validation", version 2.0:
https://github.com/opencomputeproject/ocp-diag-core/tree/main/json_spec."""

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from hostbench import __version__
from hostbench.base.exitcode import ExitCode
from hostbench.model.events import ParamValue
from hostbench.model.host import Gpu
from hostbench.model.verification import CONFIDENCE, Exposure, Finding, Verification

# The step of what the kernel and the sensors say of the whole host.
HOST = "host"
# What was checked so far: a month of it is some 40,000 lines a unit.
SERIES_EVERY_S = 60.0
COMPLETE, ERROR, SKIP = "COMPLETE", "ERROR", "SKIP"
# Of a run: its status and its result. The format allows no other pairs than these and ERROR or SKIP
# with NOT_APPLICABLE.
_ENDS = {
    ExitCode.CORRUPT: (COMPLETE, "FAIL"),
    ExitCode.OK: (COMPLETE, "PASS"),
    ExitCode.CASE_FAILED: (ERROR, "NOT_APPLICABLE"),
}
_CUT_SHORT = (SKIP, "NOT_APPLICABLE")

Json = dict[str, Any]


@dataclass
class _Series:
    """What has been written of a series of measurements."""

    elements: int = 0
    checks: int = 0
    added_s: float = -math.inf


class OcpStream:
    """The lines of one verification, each written as soon as it is known: a verification that is
    killed leaves those before.

    The steps are its subsystems, which take turns, and the host.
    """

    def __init__(
        self, write: Callable[[str], object], command: str, parameters: Mapping[str, object]
    ) -> None:
        """`write` takes a line with its end. `command` was called with `parameters`."""
        self._write = write
        self._command = command
        self._parameters = dict(parameters)
        self._number = 0
        self._hardware: frozenset[str] = frozenset()
        self._steps: list[str] = []
        # What has been written: how many seeds, how many retests of each finding, and the reasons
        # of workloads.
        self._seeds = 0
        self._retests: list[int] = []
        self._reasons: set[tuple[str, str]] = set()
        # By subsystem and unit.
        self._series: dict[tuple[str, str], _Series] = {}

    def keep(self, found: Verification) -> None:
        """Write what is new in a verification that goes on. Raise what `write` raises."""
        if self._number == 0:
            self._begin(found)
        for seed in found.seeds[self._seeds :]:
            message = {"severity": "INFO", "message": f"seed {seed}"}
            self._add("testRunArtifact", {"log": message})
        self._seeds = len(found.seeds)
        for position, finding in enumerate(found.findings):
            self._keep_finding(position, finding)
        for workload, why in found.not_run.items():
            text = f"{workload} cannot run here: {why}"
            self._once(workload, why, "log", {"severity": "INFO", "message": text})
        for workload, why in found.failed.items():
            content = {"symptom": "failed", "message": f"{workload}: {why}"}
            self._once(workload, why, "error", content)
        for one in found.exposures:
            self._keep_exposure(one, SERIES_EVERY_S)

    def end(self, found: Verification, code: ExitCode) -> None:
        """Write what is new, the measurements and the ends: the verification ended with exit code
        `code`. Raise what `write` raises."""
        self.keep(found)
        for one in found.exposures:
            self._keep_exposure(one, 0)
            count = self._series[one.subsystem, one.unit].elements
            content = {"measurementSeriesId": _series_id(one), "totalCount": count}
            self._add_to_step(one.subsystem, "measurementSeriesEnd", content)
            for content in self._exposure(one):
                self._add_to_step(one.subsystem, "measurement", content)
        for content in _host(found):
            self._add_to_step(HOST, "measurement", content)
        for name in self._steps:
            self._add_to_step(name, "testStepEnd", {"status": _step_status(found, name)})
        status, result = _ENDS.get(code, _CUT_SHORT)
        self._add("testRunArtifact", {"testRunEnd": {"status": status, "result": result}})

    def _begin(self, found: Verification) -> None:
        device = _device(found)
        self._hardware = frozenset(one["hardwareInfoId"] for one in device["hardwareInfos"])
        self._add("schemaVersion", {"major": 2, "minor": 0})
        start = {
            "name": "hostbench verify",
            "version": __version__,
            "commandLine": self._command,
            "parameters": self._parameters,
            "dutInfo": device,
            "metadata": {"id": found.id},
        }
        self._add("testRunArtifact", {"testRunStart": start})

    def _add(self, artifact: str, content: Mapping[str, object]) -> None:
        line = {artifact: content, "sequenceNumber": self._number, "timestamp": _now()}
        self._number += 1
        self._write(f"{json.dumps(line, ensure_ascii=False)}\n")

    def _add_to_step(self, name: str, kind: str, content: Mapping[str, object]) -> None:
        if name not in self._steps:
            self._steps.append(name)
            self._add_to_step(name, "testStepStart", {"name": name})
        self._add("testStepArtifact", {kind: content, "testStepId": name})

    def _once(self, workload: str, why: str, kind: str, content: Json) -> None:
        if (workload, why) not in self._reasons:
            self._reasons.add((workload, why))
            self._add_to_step(_subsystem(workload), kind, content)

    def _keep_finding(self, position: int, finding: Finding) -> None:
        """Write a finding before its retests, in which it may be killed, then these."""
        name = _subsystem(finding.workload)
        if position == len(self._retests):
            self._retests.append(0)
            for kind, content in self._finding(finding):
                self._add_to_step(name, kind, content)
        for retest in finding.retests[self._retests[position] :]:
            content = {"workload": finding.workload, "seed": finding.seed}
            content |= retest.model_dump(mode="json")
            self._add_to_step(name, "extension", {"name": "retest", "content": content})
        self._retests[position] = len(finding.retests)

    def _finding(self, finding: Finding) -> Iterator[tuple[str, Json]]:
        where: Json = {}
        if finding.gpu is not None:
            where |= self._part(_gpu_id(finding.gpu))
        if finding.wrong is not None:
            # The CPU that found a wrong byte of memory is not the part that is faulty.
            if _subsystem(finding.workload) == "cpu":
                where |= self._part(_cpu_id(finding.wrong.cpu))
            where["subcomponent"] = {"name": finding.wrong.place}
        diagnosis = {"verdict": "corrupt", "type": "FAIL", "message": finding.message}
        yield "diagnosis", {**diagnosis, **where}
        content = finding.model_dump(mode="json", exclude={"retests"})
        if finding.wrong is not None:
            content["bits"] = finding.wrong.bits
        yield "extension", {"name": "finding", "content": content}

    def _part(self, hardware: str) -> Json:
        """Return the reference to a CPU or GPU. One that came after the begin is not among the
        hardware of the first lines: it is named alone."""
        if hardware in self._hardware:
            return {"hardwareInfoId": hardware}
        return {"subcomponent": {"name": hardware}}

    def _keep_exposure(self, one: Exposure, every_s: float) -> None:
        """Add what was checked so far to its series, if there is more and the last element is so
        old."""
        own = {"measurementSeriesId": _series_id(one)}
        series = self._series.get((one.subsystem, one.unit))
        if series is None:
            series = self._series[one.subsystem, one.unit] = _Series()
            start = {"name": "checked so far", "unit": one.unit, **own}
            self._add_to_step(one.subsystem, "measurementSeriesStart", start)
        if one.checks == series.checks or time.monotonic() < series.added_s + every_s:
            return
        element = {"index": series.elements, "value": one.checks, "timestamp": _now(), **own}
        self._add_to_step(one.subsystem, "measurementSeriesElement", element)
        series.elements += 1
        series.checks, series.added_s = one.checks, time.monotonic()

    def _exposure(self, one: Exposure) -> Iterator[Json]:
        none_wrong = {"type": "EQUAL", "value": 0}
        yield _measurement("trials", one.trials, "trial")
        yield _measurement("wrong trials", one.errors, "trial", validators=[none_wrong])
        yield _measurement("checked", one.checks, one.unit)
        for cpu, checks in one.checks_of_cpu.items():
            yield _measurement("checked", checks, one.unit, **self._part(_cpu_id(cpu)))
        for index, checks in one.checks_of_gpu.items():
            yield _measurement("checked", checks, one.unit, **self._part(_gpu_id(index)))
        if one.rate_most is not None:
            unit = f"errors/{one.unit}"
            metadata = {"confidence": CONFIDENCE}
            yield _measurement("highest error rate", one.rate_most, unit, metadata=metadata)


def _subsystem(workload: str) -> str:
    """Return the step of a workload, such as `cpu` of `cpu.fma fp64`. What is none is of the
    host."""
    name, dot, _ = workload.partition(".")
    return name if dot else HOST


def _cpu_id(cpu: int | str) -> str:
    return f"cpu{cpu}"


def _gpu_id(index: ParamValue) -> str:
    return f"gpu{index}"


def _device(found: Verification) -> Json:
    # Some may have gone since, others have come.
    numbers = {*found.cpus, *(int(cpu) for one in found.exposures for cpu in one.checks_of_cpu)}
    numbers |= {one.wrong.cpu for one in found.findings if one.wrong is not None}
    cpus = [
        {"hardwareInfoId": _cpu_id(cpu), "name": found.cpu or "CPU", "location": f"CPU {cpu}"}
        for cpu in sorted(numbers)
    ]
    device = {"dutInfoId": found.machine or found.hostname, "name": found.hostname}
    return {**device, "hardwareInfos": [*cpus, *map(_gpu, found.gpus)]}


def _gpu(gpu: Gpu) -> Json:
    location = None if gpu.pci is None else f"PCI {gpu.pci}"
    known = {"location": location, "manufacturer": gpu.vendor}
    named = {"hardwareInfoId": _gpu_id(gpu.index), "name": gpu.name}
    return {**named, **{name: word for name, word in known.items() if word is not None}}


def _measurement(name: str, value: float, unit: str, **more: object) -> Json:
    return {"name": name, "value": value, "unit": unit, **more}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _series_id(one: Exposure) -> str:
    return f"{one.subsystem} {one.unit}"


def _host(found: Verification) -> Iterator[Json]:
    yield _measurement("elapsed", found.elapsed_s, "s")
    for source, count in found.hardware_errors.items():
        yield _measurement(f"hardware errors: {source}", count, "error")
    for name, hertz in zip(
        ("lowest clock", "highest clock"), found.clock_hertz or (), strict=False
    ):
        yield _measurement(name, hertz, "Hz")
    if found.celsius_most is not None:
        yield _measurement("highest temperature", found.celsius_most, "°C")


def _step_status(found: Verification, name: str) -> str:
    if any(_subsystem(workload) == name for workload in found.failed):
        return ERROR
    ran = {one.subsystem for one in found.exposures if one.trials}
    return COMPLETE if name == HOST or name in ran else SKIP
