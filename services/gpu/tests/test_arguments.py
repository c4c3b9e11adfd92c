"""Bad input to gpu-bench: the exit code, and one line that names value, bound and remedy.

What every program answers alike is in tests/contract.
"""

import json

import pytest

from services.gpu.tests.program import call, devices, listed, on_pocl, table
from tests.benchmark import UNSUPPORTED, USAGE, refused

BAD = [
    ("fma", ["--threads=2"], ["--threads", "--device"]),
    ("fma", ["--dtype=fp8"], ['"fp8"', "fp64, fp32, fp16, bf16"]),
    ("fma", ["--dtype=int32"], ['"int32"', "fp64, fp32, fp16, bf16"]),
    ("int_add", ["--dtype=int8"], ['"int8"', "int32, int64"]),
    ("dp4a", ["--dtype=int8"], ["--dtype", "allowed:"]),
    ("fma", ["--backend=vulkan"], ['"vulkan"', "auto, cuda, opencl"]),
    ("fma", ["--device="], ['""', "a name of 1 to 128"]),
    ("fma", ["--device=a/b"], ['"a/b"', "a name of 1 to 128"]),
    ("fma", ["--warmup-s=61"], ['"61"', "0 to 60"]),
    ("fma", ["--slice-s=0.003"], ["--slice-s", "allowed:"]),
]


@pytest.mark.parametrize(("workload", "arguments", "parts"), BAD)
def test_bad_argument(workload: str, arguments: list[str], parts: list[str]) -> None:
    refused(call(workload, *arguments), USAGE, *parts)


@pytest.mark.parametrize("name", ["99", "1000000000000", "GPU-12345678", "0000:99:00.0"])
def test_a_device_that_does_not_exist(name: str) -> None:
    if devices():
        line = refused(call("fma", f"--device={name}"), USAGE, "--device", name, "allowed is auto")
        assert devices()[0]["name"][:40] in line
    else:
        refused(call("fma", f"--device={name}"), UNSUPPORTED, "no GPU")


def test_without_a_gpu_every_workload_says_what_was_looked_for() -> None:
    if any(device["type"] == "gpu" for device in devices()):
        pytest.skip("there is a GPU here")
    looked = listed()["looked"]
    for workload in table().values():
        for part in ("no GPU: ", *looked):
            assert part in workload["unsupported"]
    line = refused(call("fma"), UNSUPPORTED, "no GPU: ", *looked)
    assert len(line) < 1000


def test_without_a_driver_each_backend_is_reported() -> None:
    """Libraries that are found nowhere: the loader looks at a path that does not exist first, and
    what the system has may be there; so this only asks for what both answers have in common."""
    for backend, library in (("cuda", "libcuda.so.1"), ("opencl", "libOpenCL.so.1")):
        if any(device["type"] == "gpu" for device in devices()):
            pytest.skip("there is a GPU here")
        line = refused(call("fma", f"--backend={backend}"), UNSUPPORTED, "no GPU: ")
        other = {"libcuda.so.1", "libOpenCL.so.1"} - {library}
        assert not any(name in line for name in other)


def test_a_backend_that_does_not_know_the_device() -> None:
    (device, _) = on_pocl()
    refused(call("fma", device, "--backend=cuda"), UNSUPPORTED, "is not known to cuda")


def test_a_cpu_is_never_chosen_unasked() -> None:
    device = on_pocl()[0].removeprefix("--device=")
    if any(device["type"] == "gpu" for device in devices()):
        pytest.skip("there is a GPU here")
    refused(call("fma"), UNSUPPORTED, f"device {device} (", "runs only by name")


def test_the_list_of_devices() -> None:
    found = listed()
    assert found["schema"] == 1 and len(found["looked"]) == 2 and all(found["looked"])
    for index, device in enumerate(found["devices"]):
        assert device["index"] == index
        assert device["backend"] == device["backends"][0]
        assert device["type"] in ("gpu", "cpu", "other")
        assert device["name"] and device["memory_bytes"] > 0 and device["compute_units"] > 0
    types = [device["type"] for device in found["devices"]]
    assert types == sorted(types, key=["gpu", "other", "cpu"].index)


def test_a_list_takes_no_arguments() -> None:
    result = call("--list-devices", "--surplus")
    assert result.returncode == USAGE
    assert json.loads(result.stdout)["event"] == "error"
