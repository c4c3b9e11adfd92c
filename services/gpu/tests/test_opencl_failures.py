"""OpenCL: each call that can fail does, and is reported in one line, with its own exit code. What
was made before is released, unless the device has failed at work: then its driver is left alone."""

import signal
import time
from pathlib import Path

import pytest

from services.gpu.tests import opencl_shim
from services.gpu.tests.program import MOMENT, STOP_S, call, on_pocl, running, table
from services.gpu.tests.test_opencl import MIB, Shim
from tests.benchmark import FAILED, OK, RESOURCE, UNSUPPORTED, refused

__all__ = ["shim"]

SMALL = f"--size-bytes={32 * MIB}"
FMA = ["fma", "--dtype=fp32"]
UP = ["host_to_device", SMALL]
DOWN = ["device_to_host", SMALL]
COPY = ["copy", SMALL]

TAKEN = "too small or taken by others: use a smaller --size-bytes"
HOST_TAKEN = "the host does not have enough memory for it"
LOST = "was lost or taken away in mid-run"
BROKE_OFF = "broke off what it was doing"
REFUSED = "the driver refused it or the device failed"

# Call, the time it fails from, error code; the trial; exit code, and what the line says.
FAILURES = [
    ("clCreateContext", 1, -2, FMA, RESOURCE, "CL_DEVICE_NOT_AVAILABLE", "has the device for its"),
    ("clCreateContext", 1, -5, FMA, RESOURCE, "CL_OUT_OF_RESOURCES", "taken by others"),
    ("clCreateContext", 1, -6, FMA, RESOURCE, "CL_OUT_OF_HOST_MEMORY", HOST_TAKEN),
    ("clCreateContext", 1, -33, FMA, FAILED, "CL_INVALID_DEVICE", "install the driver anew"),
    (
        "clCreateCommandQueue",
        1,
        -35,
        FMA,
        UNSUPPORTED,
        "CL_INVALID_QUEUE_PROPERTIES",
        "cannot time",
    ),
    ("clCreateCommandQueue", 2, -5, FMA, RESOURCE, "CL_OUT_OF_RESOURCES", "taken by others"),
    ("clCreateProgramWithSource", 1, -6, FMA, RESOURCE, "CL_OUT_OF_HOST_MEMORY", HOST_TAKEN),
    ("clBuildProgram", 1, -3, FMA, UNSUPPORTED, "CL_COMPILER_NOT_AVAILABLE", "has no compiler"),
    ("clBuildProgram", 1, -5, FMA, RESOURCE, "CL_OUT_OF_RESOURCES", "for its compiler"),
    ("clBuildProgram", 1, -43, FMA, FAILED, "CL_INVALID_BUILD_OPTIONS", "cannot compile"),
    ("clCreateKernel", 1, -46, FMA, UNSUPPORTED, "fma_fp32", "choose another --dtype or device"),
    ("clCreateKernel", 1, -5, FMA, RESOURCE, "CL_OUT_OF_RESOURCES", "for its compiler"),
    ("clCreateBuffer", 1, -4, FMA, RESOURCE, "CL_MEM_OBJECT_ALLOCATION_FAILURE", TAKEN),
    ("clCreateBuffer", 2, -5, COPY, RESOURCE, "CL_OUT_OF_RESOURCES", TAKEN),
    ("clCreateBuffer", 2, -61, COPY, RESOURCE, "CL_INVALID_BUFFER_SIZE", TAKEN),
    ("clEnqueueMigrateMemObjects", 2, -4, COPY, RESOURCE, "ALLOCATION_FAILURE", TAKEN),
    ("clEnqueueMapBuffer", 1, -12, UP, RESOURCE, "CL_MAP_FAILURE", "--host-memory pageable"),
    ("clSetKernelArg", 3, -51, FMA, FAILED, "CL_INVALID_ARG_SIZE", REFUSED),
    ("clEnqueueNDRangeKernel", 1, -54, FMA, UNSUPPORTED, "WORK_GROUP_SIZE", "groups of this size"),
    ("clEnqueueNDRangeKernel", 9, -5, FMA, FAILED, "CL_OUT_OF_RESOURCES", BROKE_OFF),
    ("clEnqueueNDRangeKernel", 9, -4, FMA, RESOURCE, "CL_MEM_OBJECT_ALLOCATION_FAILURE", TAKEN),
    ("clEnqueueNDRangeKernel", 9, -2, FMA, FAILED, "CL_DEVICE_NOT_AVAILABLE", LOST),
    ("clEnqueueFillBuffer", 1, -4, FMA, RESOURCE, "CL_MEM_OBJECT_ALLOCATION_FAILURE", TAKEN),
    ("clEnqueueWriteBuffer", 1, -5, UP, FAILED, "CL_OUT_OF_RESOURCES", BROKE_OFF),
    ("clEnqueueWriteBuffer", 9, -2, UP, FAILED, "CL_DEVICE_NOT_AVAILABLE", LOST),
    ("clEnqueueReadBuffer", 1, -5, DOWN, FAILED, "CL_OUT_OF_RESOURCES", BROKE_OFF),
    ("clEnqueueCopyBuffer", 1, -5, [*COPY, "--path=driver"], FAILED, "OUT_OF_RES", BROKE_OFF),
    ("clEnqueueMarkerWithWaitList", 1, -5, COPY, FAILED, "CL_OUT_OF_RESOURCES", BROKE_OFF),
    ("clFlush", 9, -36, FMA, FAILED, "CL_INVALID_COMMAND_QUEUE", REFUSED),
    ("clFinish", 1, -5, FMA, RESOURCE, "CL_OUT_OF_RESOURCES", TAKEN),
    ("clFinish", 4, -14, FMA, FAILED, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST", BROKE_OFF),
    ("clGetEventInfo", 3, -58, FMA, FAILED, "CL_INVALID_EVENT", REFUSED),
    ("clGetEventInfo", 3, -7777, FMA, FAILED, "an error of the driver's own", REFUSED),
    ("clGetEventProfilingInfo", 1, -7, FMA, FAILED, "NOT_AVAILABLE", "does not report when"),
]
# Of the calls above, those that give the device work or ask for it.
AT_WORK = {
    "clSetKernelArg",
    "clEnqueueNDRangeKernel",
    "clEnqueueFillBuffer",
    "clEnqueueWriteBuffer",
    "clEnqueueReadBuffer",
    "clEnqueueCopyBuffer",
    "clEnqueueMarkerWithWaitList",
    "clFlush",
    "clGetEventInfo",
    "clGetEventProfilingInfo",
}


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Shim:
    """The environment of the stand-in for the loader."""
    on_pocl()
    return opencl_shim.shimmed(tmp_path_factory.mktemp("shim"))


def nothing_left(file: Path) -> None:
    """All that was made was released."""
    left = dict(line.split() for line in file.read_text().splitlines())
    assert set(left) == {"context", "queue", "buffer", "program", "kernel", "event"}
    assert not {kind: count for kind, count in left.items() if count != "0"}


@pytest.mark.parametrize(("name", "time_of", "error", "trial", "code", "says", "means"), FAILURES)
@pytest.mark.sampled(7)
def test_a_call_that_fails(
    shim: Shim,
    tmp_path: Path,
    name: str,
    time_of: int,
    error: int,
    trial: list[str],
    code: int,
    says: str,
    means: str,
) -> None:
    balance = tmp_path / "balance"
    environment = shim(fail=f"{name}:{time_of}:{error}", balance=balance)
    line = refused(call(*trial, *on_pocl(), *MOMENT, env=environment), code, says, means)
    assert error == -46 or f"{name}: {error} " in line
    if name not in AT_WORK and means != BROKE_OFF:
        nothing_left(balance)


@pytest.mark.parametrize(
    ("status", "means"), [(-5, BROKE_OFF), (-2, LOST), (-14, BROKE_OFF), (-9999, REFUSED)]
)
@pytest.mark.parametrize("trial", [FMA, UP])
def test_a_device_that_fails_in_mid_run(
    shim: Shim, trial: list[str], status: int, means: str
) -> None:
    result = call(*trial, *on_pocl(), *MOMENT, env=shim(status=f"40:{status}"))
    refused(result, FAILED, "a command's execution status", f"{status} (", means)


@pytest.mark.parametrize(
    ("log", "says"),
    [
        (
            "warning: a\nkernel.cl:7:3: error: unknown type\nerror: b",
            "kernel.cl:7:3: error: unknown",
        ),
        ("\n\n  it went\twrong\nmore", '"  it went wrong"'),
        ("", "it does not say why"),
    ],
)
def test_a_kernel_that_does_not_compile(shim: Shim, tmp_path: Path, log: str, says: str) -> None:
    balance = tmp_path / "balance"
    environment = shim(fail="clBuildProgram:1:-11", build_log=log, balance=balance)
    result = call(*FMA, *on_pocl(), *MOMENT, env=environment)
    refused(result, FAILED, "CL_BUILD_PROGRAM_FAILURE", "fma_fp32", says, "install a newer driver")
    nothing_left(balance)


def test_a_buffer_larger_than_the_device_gives(shim: Shim) -> None:
    environment = shim(allocation=16 * MIB)
    result = call(*COPY, *on_pocl(), *MOMENT, env=environment)
    refused(result, RESOURCE, str(32 * MIB), str(16 * MIB), "--size-bytes")


@pytest.mark.parametrize("workload", ["fma", "copy", "host_to_device"])
def test_nothing_is_left(shim: Shim, tmp_path: Path, workload: str) -> None:
    balance = tmp_path / "balance"
    size = [SMALL] if "size_bytes" in {one["name"] for one in table()[workload]["params"]} else []
    result = call(workload, *size, *on_pocl(), *MOMENT, env=shim(balance=balance))
    assert result.returncode == OK, result.stderr
    nothing_left(balance)


@pytest.mark.parametrize("trial", [FMA, UP, [*UP, "--host-memory=pageable"]])
def test_a_trial_on_a_device_that_hangs_ends_within_a_second(
    shim: Shim, tmp_path: Path, trial: list[str]
) -> None:
    hang = tmp_path / "hang"
    arguments = [*trial[1:], *on_pocl(), "--warmup-s=0"]
    with running(trial[0], *arguments, env=shim(hang=hang)) as (process, _):
        hang.touch()
        time.sleep(0.5)
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=20)
        assert time.monotonic() - begun < STOP_S
    assert process.returncode == FAILED and '"interrupted"' in output
