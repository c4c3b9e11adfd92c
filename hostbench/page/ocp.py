"""A verification as JSON lines of the Open Compute Project's "Test & Validation", version 2.0:
https://github.com/opencomputeproject/ocp-diag-core/tree/main/json_spec."""

import json
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from hostbench import __version__
from hostbench.base.exitcode import ExitCode
from hostbench.model.events import ParamValue
from hostbench.model.host import Gpu
from hostbench.model.verification import CONFIDENCE, Exposure, Finding, Verification

# The step of what the kernel and the sensors say of the whole host.
HOST = "host"
COMPLETE, ERROR, SKIP = "COMPLETE", "ERROR", "SKIP"
# Of a run: its status and its result. The format allows no other pairs than these and ERROR or SKIP
# with NOT_APPLICABLE.
_ENDS = {
    ExitCode.CORRUPT: (COMPLETE, "FAIL"),
    ExitCode.OK: (COMPLETE, "PASS"),
    ExitCode.CASE_FAILED: (ERROR, "NOT_APPLICABLE"),
}
_CUT_SHORT = (SKIP, "NOT_APPLICABLE")

Json = dict[str, object]


def ocp_lines(
    found: Verification, command: str, parameters: Mapping[str, object], code: ExitCode
) -> str:
    """Return the lines of a verification: `command` was called with `parameters` and ended with
    exit code `code`.

    The steps are its subsystems, which take turns, and the host. A line of a finding has its time;
    the others have those of the begin and of the end.
    """
    lines = _Lines(found)
    lines.add(found.began_unix_s, "schemaVersion", {"major": 2, "minor": 0})
    start = {
        "name": "hostbench verify",
        "version": __version__,
        "commandLine": command,
        "parameters": dict(parameters),
        "dutInfo": _device(found),
        "metadata": {"id": found.id, "seeds": found.seeds},
    }
    lines.add(found.began_unix_s, "testRunArtifact", {"testRunStart": start})
    for name in lines.steps:
        lines.step(found.began_unix_s, name, "testStepStart", {"name": name})
    for finding in found.findings:
        for kind, content in _finding(finding):
            lines.step(finding.time_unix_s, _subsystem(finding.workload), kind, content)
    now_unix_s = time.time()
    for name, kind, content in _ends_of_steps(found):
        lines.step(now_unix_s, name, kind, content)
    for name in lines.steps:
        lines.step(now_unix_s, name, "testStepEnd", {"status": _step_status(found, name)})
    status, result = _ENDS.get(code, _CUT_SHORT)
    end = {"status": status, "result": result}
    lines.add(now_unix_s, "testRunArtifact", {"testRunEnd": end})
    return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines.lines)


class _Lines:
    """The lines, in order, and the names of the steps."""

    def __init__(self, found: Verification) -> None:
        workloads = [*(one.workload for one in found.findings), *found.not_run, *found.failed]
        subsystems = [one.subsystem for one in found.exposures]
        subsystems += [_subsystem(one) for one in workloads]
        self.steps = (*dict.fromkeys(subsystems), HOST)
        self.lines: list[Json] = []

    def add(self, unix_s: float, artifact: str, content: Mapping[str, object]) -> None:
        at = datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="milliseconds")
        number = len(self.lines)
        self.lines.append({artifact: content, "sequenceNumber": number, "timestamp": at})

    def step(self, unix_s: float, name: str, kind: str, content: Mapping[str, object]) -> None:
        self.add(unix_s, "testStepArtifact", {kind: content, "testStepId": name})


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


def _measurement(name: str, value: float, unit: str, **more: object) -> tuple[str, Json]:
    return "measurement", {"name": name, "value": value, "unit": unit, **more}


def _finding(finding: Finding) -> Iterator[tuple[str, Json]]:
    where: Json = {}
    if finding.gpu is not None:
        where["hardwareInfoId"] = _gpu_id(finding.gpu)
    if finding.wrong is not None:
        # The CPU that found a wrong byte of memory is not the part that is faulty.
        if _subsystem(finding.workload) == "cpu":
            where["hardwareInfoId"] = _cpu_id(finding.wrong.cpu)
        where["subcomponent"] = {"name": finding.wrong.place}
    diagnosis = {"verdict": "corrupt", "type": "FAIL", "message": finding.message}
    yield "diagnosis", {**diagnosis, **where}
    content = finding.model_dump(mode="json")
    if finding.wrong is not None:
        content["bits"] = finding.wrong.bits
    yield "extension", {"name": "finding", "content": content}


def _ends_of_steps(found: Verification) -> Iterator[tuple[str, str, Json]]:
    for one in found.exposures:
        for kind, content in _exposure(one):
            yield one.subsystem, kind, content
    for workload, why in found.not_run.items():
        text = f"{workload} cannot run here: {why}"
        yield _subsystem(workload), "log", {"severity": "INFO", "message": text}
    for workload, why in found.failed.items():
        yield _subsystem(workload), "error", {"symptom": "failed", "message": f"{workload}: {why}"}
    for kind, content in _host(found):
        yield HOST, kind, content


def _exposure(one: Exposure) -> Iterator[tuple[str, Json]]:
    none_wrong = {"type": "EQUAL", "value": 0}
    yield _measurement("trials", one.trials, "trial")
    yield _measurement("wrong trials", one.errors, "trial", validators=[none_wrong])
    yield _measurement("checked", one.checks, one.unit)
    for cpu, checks in one.checks_of_cpu.items():
        yield _measurement("checked", checks, one.unit, hardwareInfoId=_cpu_id(cpu))
    for index, checks in one.checks_of_gpu.items():
        yield _measurement("checked", checks, one.unit, hardwareInfoId=_gpu_id(index))
    if one.rate_most is not None:
        unit = f"errors/{one.unit}"
        yield _measurement(
            "highest error rate", one.rate_most, unit, metadata={"confidence": CONFIDENCE}
        )


def _host(found: Verification) -> Iterator[tuple[str, Json]]:
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
