"""The lines for OCP's Test & Validation, against the schema of its specification."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from hostbench.base.exitcode import ExitCode
from hostbench.model.events import WrongValue
from hostbench.model.host import Gpu
from hostbench.model.verification import Exposure, Finding, Retest, Verification
from hostbench.page.ocp import OcpStream

ROOT = "https://github.com/opencomputeproject/ocp-diag-core/output"
SPECIFICATION = json.loads((Path(__file__).parent / "fixtures" / "ocp_2_0.json").read_text())
VERIFICATION = Verification(
    id="20261127T000000Z-verify-0001",
    hostname="n1",
    machine="0123456789abcdef",
    cpu="A CPU",
    cpus=(0, 1),
    began_unix_s=1.7e9,
    elapsed_s=600.0,
    seeds=(5, 6),
    exposures=(
        Exposure(
            subsystem="cpu",
            unit="operation",
            trials=9,
            checks=3 * 10**12,
            checks_of_cpu={"0": 2 * 10**12, "1": 10**12},
        ),
    ),
    not_run={"cpu.dot": "this CPU lacks avx_vnni"},
    hardware_errors={"/proc/interrupts MCE": 0},
    clock_hertz=(2.6e9, 3.3e9),
    celsius_most=61.5,
    ended="time",
)
FINDING = Finding(
    time_unix_s=1.7e9 + 60,
    workload="cpu.fma",
    params={"dtype": "fp64", "cpus": "0,1"},
    seed=5,
    cpus="0,1",
    wrong=WrongValue(cpu=1, place="lane 2 of accumulator 3", expected="0x10", value="0x18"),
    message="fp64 avx2: the accumulators are wrong",
    command="cpu-bench fma --seed=5",
    retests=(Retest(cpus="1", wrong=5, trials=5),),
)


def validator() -> Draft202012Validator:
    resources = [Resource.from_contents(one) for one in SPECIFICATION["schemas"]]
    registry: Registry[Any] = Registry().with_resources((str(one.id()), one) for one in resources)
    return Draft202012Validator(registry.contents(ROOT), registry=registry)


def lines_of(
    found: Verification, code: ExitCode, *, before: Sequence[Verification] = ()
) -> list[Any]:
    """The lines of a verification that was kept in these states before it ended."""
    written: list[str] = []
    stream = OcpStream(written.append, "hostbench verify --for 10m", {"for": "10m"})
    for state in before:
        stream.keep(state)
    stream.end(found, code)
    assert all(line.endswith("\n") and line.count("\n") == 1 for line in written)
    lines = [json.loads(line) for line in written]
    for line in lines:
        validator().validate(line)
    assert [line["sequenceNumber"] for line in lines] == list(range(len(lines)))
    times = [line["timestamp"] for line in lines]
    assert times == sorted(times) and all(one.endswith("+00:00") for one in times)
    return lines


def artifacts(lines: list[Any], kind: str) -> list[Any]:
    """The contents of one kind, each with its step if it has one."""
    bodies = [line.get("testStepArtifact") or line.get("testRunArtifact", {}) for line in lines]
    return [(body.get("testStepId"), body[kind]) for body in bodies if kind in body]


def test_the_schema_refuses_what_it_does_not_know() -> None:
    (first, *_) = lines_of(VERIFICATION, ExitCode.OK)
    assert not validator().is_valid({**first, "other": 1})
    assert not validator().is_valid({**first, "schemaVersion": {"major": 1, "minor": 0}})


def test_a_sound_host_has_its_exposure() -> None:
    lines = lines_of(VERIFICATION, ExitCode.OK)
    ((_, start),) = artifacts(lines, "testRunStart")
    assert start["parameters"] == {"for": "10m"}
    cpus = [one["hardwareInfoId"] for one in start["dutInfo"]["hardwareInfos"]]
    assert cpus == ["cpu0", "cpu1"]
    measured = artifacts(lines, "measurement")
    checked = [one for step, one in measured if step == "cpu" and one["name"] == "checked"]
    assert [(one["value"], one.get("hardwareInfoId")) for one in checked] == [
        (3 * 10**12, None),
        (2 * 10**12, "cpu0"),
        (10**12, "cpu1"),
    ]
    (rate,) = (one for _, one in measured if one["name"] == "highest error rate")
    assert rate["value"] == 1e-12 and rate["metadata"] == {"confidence": 0.95}
    host = {one["name"]: one["value"] for step, one in measured if step == "host"}
    assert host["hardware errors: /proc/interrupts MCE"] == 0
    assert host["highest temperature"] == 61.5
    assert artifacts(lines, "diagnosis") == []
    logs = [(step, log["message"]) for step, log in artifacts(lines, "log")]
    assert logs[:2] == [(None, "seed 5"), (None, "seed 6")]
    assert [step for step, _ in logs[2:]] == ["cpu"]
    assert artifacts(lines, "testStepEnd") == [
        ("cpu", {"status": "COMPLETE"}),
        ("host", {"status": "COMPLETE"}),
    ]


def test_a_finding_is_a_diagnosis_of_its_cpu() -> None:
    lines = lines_of(VERIFICATION.model_copy(update={"findings": (FINDING,)}), ExitCode.CORRUPT)
    ((step, diagnosis),) = artifacts(lines, "diagnosis")
    assert step == "cpu" and (diagnosis["verdict"], diagnosis["type"]) == ("corrupt", "FAIL")
    assert diagnosis["hardwareInfoId"] == "cpu1"
    assert diagnosis["subcomponent"]["name"] == "lane 2 of accumulator 3"
    whole, again = (extension["content"] for _, extension in artifacts(lines, "extension"))
    assert (whole["seed"], whole["bits"]) == (5, [3])
    assert again == {"workload": "cpu.fma", "seed": 5, "cpus": "1", "wrong": 5, "trials": 5}


def test_each_line_comes_as_soon_as_it_is_known_and_once() -> None:
    """A finding before its retests, and what was checked until then."""
    whole = VERIFICATION.model_copy(update={"findings": (FINDING,)})
    nothing: dict[str, Any] = {"seeds": (), "exposures": (), "findings": (), "not_run": {}}
    cpu = whole.exposures[0].model_copy(update={"checks": 10**12})
    found = FINDING.model_copy(update={"retests": ()})
    states = [
        whole.model_copy(update=one)
        for one in (
            nothing,
            nothing | {"seeds": (5,), "exposures": (cpu,)},
            nothing | {"seeds": (5,), "exposures": (cpu,), "findings": (found,)},
        )
    ]
    lines = lines_of(whole, ExitCode.CORRUPT, before=states)
    bodies = [line.get("testStepArtifact") or line.get("testRunArtifact", {}) for line in lines]
    kinds = [next(iter(body)) for body in bodies[1:]]
    assert kinds[:8] == [
        "testRunStart",
        "log",
        "testStepStart",
        "measurementSeriesStart",
        "measurementSeriesElement",
        "diagnosis",
        "extension",
        "log",
    ]
    series = [one for _, one in artifacts(lines, "measurementSeriesElement")]
    assert [(one["index"], one["value"]) for one in series] == [(0, 10**12), (1, 3 * 10**12)]
    ((_, end),) = artifacts(lines, "measurementSeriesEnd")
    assert end == {"measurementSeriesId": "cpu operation", "totalCount": 2}
    assert len(artifacts(lines, "extension")) == 2 and len(artifacts(lines, "diagnosis")) == 1


def test_a_cpu_that_came_later_is_named_but_is_no_hardware_of_the_start() -> None:
    one = VERIFICATION.exposures[0].model_copy(update={"checks_of_cpu": {"0": 1, "7": 2}})
    later = VERIFICATION.model_copy(update={"exposures": (one,)})
    start = VERIFICATION.model_copy(update={"exposures": ()})
    measured = artifacts(lines_of(later, ExitCode.OK, before=[start]), "measurement")
    (came,) = (one for _, one in measured if one.get("subcomponent") == {"name": "cpu7"})
    assert came["value"] == 2 and "hardwareInfoId" not in came


def test_a_wrong_byte_of_memory_is_no_fault_of_the_cpu_that_found_it() -> None:
    wrong = WrongValue(cpu=1, place="address 0x7f0000001000", expected="0x10", value="0x18")
    finding = FINDING.model_copy(update={"workload": "mem.patterns", "wrong": wrong})
    lines = lines_of(VERIFICATION.model_copy(update={"findings": (finding,)}), ExitCode.CORRUPT)
    ((step, diagnosis),) = artifacts(lines, "diagnosis")
    assert step == "mem" and "hardwareInfoId" not in diagnosis
    assert diagnosis["subcomponent"]["name"] == "address 0x7f0000001000"
    (_, extension), _ = artifacts(lines, "extension")
    assert extension["content"]["wrong"]["cpu"] == 1


def test_a_gpu_is_hardware_with_what_was_checked_on_it() -> None:
    cards = (
        Gpu(index=0, backend="cuda", name="A card", pci="0000:3b:00.0", vendor="A maker"),
        Gpu(index=1, backend="opencl", name="Another card"),
    )
    on_gpus = Exposure(
        subsystem="gpu",
        unit="operation",
        trials=4,
        checks=5 * 10**9,
        checks_of_gpu={"0": 3 * 10**9, "1": 2 * 10**9},
        errors=1,
    )
    update = {"workload": "gpu.tensor", "params": {"device": "1"}, "cpus": "", "wrong": None}
    finding = FINDING.model_copy(update=update)
    exposures = (*VERIFICATION.exposures, on_gpus)
    lines = lines_of(
        VERIFICATION.model_copy(
            update={"gpus": cards, "exposures": exposures, "findings": (finding,)}
        ),
        ExitCode.CORRUPT,
    )
    ((_, start),) = artifacts(lines, "testRunStart")
    assert start["dutInfo"]["hardwareInfos"][2:] == [
        {
            "hardwareInfoId": "gpu0",
            "name": "A card",
            "location": "PCI 0000:3b:00.0",
            "manufacturer": "A maker",
        },
        {"hardwareInfoId": "gpu1", "name": "Another card"},
    ]
    ((step, diagnosis),) = artifacts(lines, "diagnosis")
    assert (step, diagnosis["hardwareInfoId"]) == ("gpu", "gpu1")
    checked = {
        one["hardwareInfoId"]: one["value"]
        for step, one in artifacts(lines, "measurement")
        if step == "gpu" and "hardwareInfoId" in one
    }
    assert checked == {"gpu0": 3 * 10**9, "gpu1": 2 * 10**9}


@pytest.mark.parametrize(
    ("code", "status", "result"),
    [
        (ExitCode.CORRUPT, "COMPLETE", "FAIL"),
        (ExitCode.OK, "COMPLETE", "PASS"),
        (ExitCode.CASE_FAILED, "ERROR", "NOT_APPLICABLE"),
        (ExitCode.TERMINATED, "SKIP", "NOT_APPLICABLE"),
        (ExitCode.NOTHING_RAN, "SKIP", "NOT_APPLICABLE"),
    ],
)
def test_the_exit_code_is_the_end_of_the_run(code: ExitCode, status: str, result: str) -> None:
    ends = artifacts(lines_of(VERIFICATION, code), "testRunEnd")
    assert ends == [(None, {"status": status, "result": result})]


def test_a_program_that_fails_is_an_error_of_its_step() -> None:
    failed = {"mem.patterns": "no memory", "hostbench": "no space"}
    found = VERIFICATION.model_copy(update={"failed": failed})
    lines = lines_of(found, ExitCode.CASE_FAILED)
    assert [step for step, _ in artifacts(lines, "error")] == ["mem", "host"]
    ends = {step: end["status"] for step, end in artifacts(lines, "testStepEnd")}
    assert ends == {"cpu": "COMPLETE", "mem": "ERROR", "host": "ERROR"}
