"""What the program tells of a trial and of its devices is what the limits are made of: with the
stand-in for CUDA's driver, and with any device of OpenCL."""

import json
import os
import subprocess
from typing import Any

import pytest

from hostbench.host.gpu import DeviceList
from hostbench.model.events import EndEvent, StartEvent
from hostbench.model.host import Gpu, Gpus
from hostbench.model.limit import Limit
from hostbench.programs.program import find_program
from services.gpu.limits import BYTES, OPERATIONS, PER_CYCLE, limits
from services.gpu.tests import cuda_stub
from tests.unit.records import host

STUB = cuda_stub.environment
UNITS = 2


def printed(environment: dict[str, str], *arguments: str) -> str:
    ran = subprocess.run(
        [find_program("gpu"), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def listed(environment: dict[str, str]) -> Gpus:
    found = DeviceList.model_validate_json(printed(environment, "--list-devices"))
    devices = tuple(Gpu(**one.model_dump(exclude={"opencl"})) for one in found.devices)
    return Gpus(devices=devices, looked=found.looked)


def found(environment: dict[str, str], *arguments: str) -> dict[str, Limit]:
    """The limits of a short trial."""
    gpus = listed(environment)
    events: dict[str, Any] = {}
    short = ("--duration-s", "0.05", "--warmup-s", "0")
    for line in printed(environment, *arguments, *short).splitlines():
        event = json.loads(line)
        events[event["event"]] = line
    start = StartEvent.model_validate_json(events["start"])
    return limits(host(gpus=gpus), start, EndEvent.model_validate_json(events["end"]))


@pytest.mark.parametrize(
    ("arguments", "per_clock"),
    [
        (("fma", "--dtype", "fp32"), 256),
        (("fma", "--dtype", "bf16"), 512),
        (("int_add", "--dtype", "int64"), 64),
        (("int_mul_add", "--dtype", "int32"), 128),
        (("dp4a",), 512),
        (("tensor", "--dtype", "fp8"), 8192),
    ],
)
def test_arithmetic(arguments: tuple[str, ...], per_clock: int) -> None:
    """The stand-in is of compute capability 9.0, with two multiprocessors at 1 GHz."""
    by_metric = found(STUB(), *arguments)
    assert by_metric[PER_CYCLE].value == UNITS * per_clock
    assert by_metric[OPERATIONS].value == pytest.approx(UNITS * per_clock * 1e9, rel=1e-2)


@pytest.mark.parametrize("workload", ["read", "write", "copy", "triad"])
def test_memory(workload: str) -> None:
    gpu = listed(STUB()).devices[0]
    assert gpu.memory_clock_hertz is not None and gpu.bus_width_bits is not None
    expected = 2 * gpu.memory_clock_hertz * gpu.bus_width_bits / 8
    assert found(STUB(), workload, "--size-bytes", "4194304")[BYTES].value == expected


def test_of_a_part_of_a_card_the_memory_has_none() -> None:
    limit = found(STUB(mig=1), "copy", "--size-bytes", "4194304")[BYTES]
    assert limit.value is None and "is a part of a card (MIG)" in (limit.reason or "")
    assert found(STUB(mig=1), "fma", "--dtype", "fp32")[PER_CYCLE].value is not None


@pytest.mark.parametrize("workload", ["host_to_device", "device_to_host", "bidirectional"])
def test_transfers_have_the_link_that_nvml_tells(workload: str) -> None:
    limit = found(STUB(), workload, "--size-bytes", "1048576")[BYTES]
    assert limit.value is not None
    assert limit.factors[0].source.startswith("NVML: generation")
    # Eight of sixteen lanes are in use.
    assert limit.factors[0].value == 8


def test_times_have_none() -> None:
    assert found(STUB(), "pointer_chase", "--size-bytes", "65536") == {}


def test_a_processor_has_none() -> None:
    devices = listed({}).devices
    processors = [one for one in devices if one.type == "cpu"]
    if not processors:
        pytest.skip("no processor by OpenCL: pocl-opencl-icd makes one of this")
    by_metric = found({}, "fma", "--dtype", "fp32", "--device", str(processors[0].index))
    assert {limit.value for limit in by_metric.values()} == {None}
    assert all("is not a GPU" in (limit.reason or "") for limit in by_metric.values())
