"""OpenCL: what PoCL does not have, and which devices are found where something is missing."""

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from services.gpu.tests import cuda_stub, opencl_shim
from services.gpu.tests.compiler import compiler
from services.gpu.tests.program import MOMENT, PROGRAM, call, listed, measure, on_pocl, table
from tests.benchmark import OK, RESOURCE, UNSUPPORTED, refused

Shim = Callable[..., Mapping[str, str]]

MIB = 1 << 20
# What test_compute, test_memory, test_transfers and test_launches measure on PoCL.
MEASURED = {
    *("fma", "int_add", "int_mul_add", "dp4a"),
    *("read", "write", "copy", "triad", "pointer_chase"),
    *("host_to_device", "device_to_host", "bidirectional", "launch_latency"),
}
# CUDA's alone.
ELSEWHERE = {"tensor", "gemm", "peer_to_peer"}


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Shim:
    """The environment of the stand-in for the loader."""
    on_pocl()
    return opencl_shim.shimmed(tmp_path_factory.mktemp("shim"))


def looked(**options: object) -> str:
    """What the search through OpenCL says."""
    found: str = listed(**options)["looked"][1]
    return found


# ---- workloads -------------------------------------------------------------------------------


def test_no_workload_is_left_out() -> None:
    assert set(table()) == MEASURED | ELSEWHERE


@pytest.mark.parametrize("workload", sorted(ELSEWHERE))
def test_what_is_cudas_alone_is_skipped(workload: str) -> None:
    line = refused(call(workload, *on_pocl(), *MOMENT), UNSUPPORTED)
    assert "cuda" in line.lower() and "opencl" in line.lower()


def test_a_kernel_that_the_device_has_no_type_for(shim: Shim) -> None:
    """It says that it has; its compiler does not."""
    result = call("fma", *on_pocl(), "--dtype=fp16", *MOMENT, env=shim(extensions="cl_khr_fp16"))
    refused(result, UNSUPPORTED, "fma_fp16", "cl_khr_fp16", "--dtype")


@pytest.mark.parametrize("word", ["fp64", "fp16"])
def test_a_device_without_a_type(shim: Shim, word: str) -> None:
    result = call("fma", *on_pocl(), f"--dtype={word}", *MOMENT, env=shim(extensions="cl_khr_icd"))
    refused(result, UNSUPPORTED, word, f"cl_khr_{word}")


# ---- what is found ---------------------------------------------------------------------------


def test_what_is_listed() -> None:
    on_pocl()
    found = listed()
    (device, *_) = (one for one in found["devices"] if one["type"] == "cpu")
    assert device["name"] and device["compute_units"] >= 1 and device["memory_bytes"] > MIB
    assert device["opencl"]["platform"] >= 0 and device["opencl"]["device"] == 0
    assert device["backend"] == "opencl" and device["uuid"]
    assert "platform Portable Computing Language: 1 device" in found["looked"][1]


def test_a_device_of_type_cpu_is_never_chosen_by_itself() -> None:
    arguments = on_pocl()
    if any(device["type"] == "gpu" for device in listed()["devices"]):
        pytest.skip("there is a GPU here")
    refused(call("fma", *MOMENT), UNSUPPORTED, "no GPU", "is not a GPU and runs only by name")
    assert "not_a_gpu" in measure("fma", *arguments, *MOMENT).warnings


@pytest.mark.parametrize("vendor", ["Advanced Micro Devices, Inc.", "Intel(R) Corporation"])
def test_an_untried_gpu_is_marked(shim: Shim, vendor: str) -> None:
    trial = measure("fma", *MOMENT, env=shim(type=4, vendor=vendor))
    assert trial.facts["device_type"] == "gpu" and trial.facts["vendor"] == vendor
    assert "not_run_on_hardware" in trial.warnings and "not_a_gpu" not in trial.warnings


def test_a_card_that_cuda_knows_too_is_marked_by_its_capability(shim: Shim) -> None:
    """OpenCL tells none itself."""
    opencl = shim(type=4, bus=0x5A)
    for capability, marked in (("9.0", False), ("8.9", True)):
        cuda = cuda_stub.environment(cc=capability)
        libraries = ":".join(both["LD_LIBRARY_PATH"] for both in (opencl, cuda))
        env = {**opencl, "STUB_CC": capability, "LD_LIBRARY_PATH": libraries}
        trial = measure("fma", "--backend=opencl", *MOMENT, env=env)
        assert trial.facts["pci"] == "0000:5a:00.0" and "compute_capability" not in trial.facts
        assert trial.facts["kernel"].endswith("OpenCL C by the driver")
        assert ("not_run_on_hardware" in trial.warnings) == marked


@pytest.mark.parametrize(("unified", "share"), [(0, 0.5), (1, 0.9)])
def test_auto_takes_less_where_what_is_free_is_not_reported(
    shim: Shim, unified: int, share: float
) -> None:
    """Of memory that is the host's it is known; something stands beside the two arrays."""
    memory = 256 * MIB
    env = shim(type=4, memory=memory, unified=unified)
    size = measure("copy", *MOMENT, env=env).params["size_bytes"]
    assert (share - 0.1) * memory < 2 * size <= share * memory
    given = f"--size-bytes={int(0.45 * memory) // 32768 * 32768}"
    assert measure("copy", given, *MOMENT, env=env).metrics["bytes_per_second"] > 0


@pytest.mark.parametrize(("unified", "arrays"), [(0, 1), (1, 2)])
def test_memory_that_is_the_hosts_holds_both_ends(shim: Shim, unified: int, arrays: int) -> None:
    env = shim(type=4, memory=256 * MIB, unified=unified)
    result = call("host_to_device", f"--size-bytes={300 * MIB}", env=env)
    refused(result, RESOURCE, f"needs {arrays} array")


def test_two_platforms(shim: Shim) -> None:
    environment = shim(second="Another Driver")
    found = listed(env=environment)
    ours = [device for device in found["devices"] if device["type"] == "cpu"]
    assert len(ours) == 2
    assert {device["uuid"] for device in ours} == {
        "portable-computing-language-0",
        "another-driver-0",
    }
    text = found["looked"][1]
    assert "platform Portable Computing Language: 1 device" in text
    assert "platform Another Driver: 1 device" in text
    trial = measure("fma", "--device=another-driver-0", *MOMENT, env=environment)
    assert trial.facts["device_uuid"] == "another-driver-0"
    assert "(Another Driver)" in trial.facts["driver"]


def test_no_loader(tmp_path: Path) -> None:
    """Hidden by a dlopen() that looks for another name."""
    source = tmp_path / "hide.c"
    source.write_text(
        "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <string.h>\n"
        "void *dlopen(const char *name, int flags)\n{\n"
        '    void *(*real)(const char *, int) = dlsym(RTLD_NEXT, "dlopen");\n'
        '    return real(name && !strcmp(name, "libOpenCL.so.1") ? "lib-hidden.so.1" : name, '
        "flags);\n}\n"
    )
    library = tmp_path / "hide.so"
    subprocess.run([compiler(), "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    environment = {"LD_PRELOAD": str(library)}
    assert looked(env=environment) == "libOpenCL.so.1 is not installed"
    result = call("fma", "--backend=opencl", env=environment)
    refused(result, UNSUPPORTED, "no GPU: libOpenCL.so.1 is not installed")


def test_a_loader_that_is_broken(tmp_path: Path) -> None:
    (tmp_path / opencl_shim.LOADER).write_bytes(b"\x7fELF")
    text = looked(env={"LD_LIBRARY_PATH": str(tmp_path)})
    assert "libOpenCL.so.1 cannot be loaded" in text and "file too short" in text


def test_a_loader_older_than_opencl_1_2(tmp_path: Path) -> None:
    source = tmp_path / "old.c"
    source.write_text("int clGetPlatformIDs(void)\n{\n    return -1001;\n}\n")
    opencl_shim.build(tmp_path, source)
    text = looked(env={"LD_LIBRARY_PATH": str(tmp_path)})
    assert "libOpenCL.so.1 has no clGetPlatformInfo" in text


def vendors(directory: Path, **files: str) -> dict[str, str]:
    """A loader that knows these drivers alone."""
    opencl_shim.real_loader()
    for name, library in files.items():
        (directory / f"{name}.icd").write_text(f"{library}\n")
    return {"OCL_ICD_VENDORS": str(directory), "OPENCL_VENDOR_PATH": str(directory)}


def test_a_loader_without_drivers(tmp_path: Path) -> None:
    text = looked(env=vendors(tmp_path))
    assert "clGetPlatformIDs: CL_PLATFORM_NOT_FOUND_KHR, -1001" in text
    assert f"{tmp_path} has no .icd file" in text


def test_a_driver_that_is_not_there(tmp_path: Path) -> None:
    environment = vendors(tmp_path, nvidia="libnvidia-opencl-that-is-not-here.so.1")
    text = looked(env=environment)
    assert "-1001" in text
    assert "nvidia.icd names a driver that cannot be loaded" in text
    assert "libnvidia-opencl-that-is-not-here.so.1: cannot open shared object file" in text
    refused(call("fma", "--backend=opencl", env=environment), UNSUPPORTED, "nvidia.icd", "-1001")


def test_a_driver_that_is_none(tmp_path: Path) -> None:
    text = looked(env=vendors(tmp_path, wrong="libm.so.6"))
    assert "-1001" in text and "wrong.icd names libm.so.6, which is not an OpenCL driver" in text


def test_a_driver_without_a_device(tmp_path: Path) -> None:
    """As Nvidia's in a container that was given no GPU."""
    source = tmp_path / "empty.c"
    source.write_text(
        "int clIcdGetPlatformIDsKHR(unsigned most, void *platforms, unsigned *count)\n"
        "{\n    (void)most, (void)platforms, (void)count;\n    return -1001;\n}\n"
        "void *clGetExtensionFunctionAddress(const char *name)\n"
        "{\n    return name[5] == 'G' ? (void *)clIcdGetPlatformIDsKHR : (void *)0;\n}\n"
        "int clGetPlatformInfo(void)\n{\n    return -32;\n}\n"
    )
    opencl_shim.build(tmp_path, source)
    driver = (tmp_path / opencl_shim.LOADER).rename(tmp_path / "libempty-opencl.so.1")
    text = looked(env=vendors(tmp_path, empty=str(driver)))
    assert "-1001" in text and f"empty.icd names {driver}, which finds no device" in text


def test_a_driver_that_is_not_there_beside_one_that_is(tmp_path: Path) -> None:
    on_pocl()
    installed = Path("/etc/OpenCL/vendors/pocl.icd")
    if not installed.exists():
        pytest.skip("PoCL has no file in /etc/OpenCL/vendors")
    environment = vendors(tmp_path, pocl=installed.read_text().strip(), amdocl64="libamd-none.so")
    text = looked(env=environment)
    assert "platform Portable Computing Language: 1 device" in text
    assert "amdocl64.icd names a driver that cannot be loaded" in text
    measure("fma", "--device=portable-computing-language-0", *MOMENT, env=environment)


@pytest.mark.parametrize(
    ("variable", "says"),
    [
        ("unavailable", "device 0 is not available (CL_DEVICE_AVAILABLE"),
        ("no_compiler", "device 0 has no compiler (CL_DEVICE_COMPILER_AVAILABLE)"),
    ],
)
def test_a_device_that_cannot_be_used_is_not_listed(shim: Shim, variable: str, says: str) -> None:
    environment = shim(**{variable: 1})
    found = listed(env=environment)
    assert not found["devices"] and says in found["looked"][1]
    refused(call("fma", "--backend=opencl", env=environment), UNSUPPORTED, "no GPU", says)


@pytest.mark.parametrize(
    ("fail", "says"),
    [
        ("clGetPlatformIDs:1:-6", "clGetPlatformIDs: CL_OUT_OF_HOST_MEMORY, -6"),
        ("clGetDeviceIDs:1:-1", "no device (clGetDeviceIDs: CL_DEVICE_NOT_FOUND, -1)"),
        ("clGetDeviceIDs:1:-7777", "clGetDeviceIDs: an error of the driver's own, -7777"),
    ],
)
def test_a_search_that_fails(shim: Shim, fail: str, says: str) -> None:
    environment = shim(fail=fail)
    found = listed(env=environment)
    assert not found["devices"] and says in found["looked"][1]
    refused(call("fma", "--backend=opencl", env=environment), UNSUPPORTED, "no GPU", says)


# ---- the directory in which PoCL compiles ----------------------------------------------------

CACHES = ("HOME", "XDG_CACHE_HOME", "POCL_CACHE_DIR", "TMPDIR")


def without_home(**variables: str) -> list[str]:
    """What stands before the program, so that it has these variables and no others of theirs."""
    unset = [part for name in CACHES for part in ("-u", name)]
    return ["env", *unset, *(f"{name}={value}" for name, value in variables.items())]


def chosen_beneath(directory: Path) -> Path:
    """The directory that was made for what PoCL compiles: of its own."""
    cache = directory / f"hostbench-pocl-{os.geteuid()}"
    assert cache.stat().st_mode & 0o777 == 0o700
    return cache


def test_without_a_home_it_compiles_elsewhere(tmp_path: Path) -> None:
    prefix = without_home(TMPDIR=str(tmp_path))
    trial = measure("fma", *on_pocl(), *MOMENT, prefix=prefix)
    assert trial.facts["device_type"] == "cpu"
    assert any(chosen_beneath(tmp_path).iterdir())


@pytest.mark.parametrize(
    "variables",
    [
        {"HOME": ""},
        {"HOME": "relative"},
        {"HOME": "/proc/nothing"},
        {"HOME": "/dev/null"},
        {"POCL_CACHE_DIR": "/proc/nothing"},
        {"XDG_CACHE_HOME": "/proc/nothing"},
    ],
)
def test_where_its_own_is_of_no_use(tmp_path: Path, variables: dict[str, str]) -> None:
    """The directory is chosen before the driver gets a call."""
    on_pocl()
    prefix = without_home(**variables, TMPDIR=str(tmp_path))
    assert [one for one in listed(prefix=prefix)["devices"] if one["type"] == "cpu"]
    chosen_beneath(tmp_path)


def test_a_directory_of_somebody_else_is_not_used(tmp_path: Path) -> None:
    arguments = on_pocl()
    trap = tmp_path / "elsewhere"
    trap.mkdir()
    (tmp_path / f"hostbench-pocl-{os.geteuid()}").symlink_to(trap)
    measure("fma", *arguments, *MOMENT, prefix=without_home(TMPDIR=str(tmp_path)))
    assert not any(trap.iterdir())


def test_a_home_that_can_be_used_is_used(tmp_path: Path) -> None:
    arguments = on_pocl()
    measure("fma", *arguments, *MOMENT, prefix=without_home(HOME=str(tmp_path)))
    assert (tmp_path / ".cache" / "pocl").is_dir()


NOEXEC = """
for directory in /tmp /var/tmp /dev/shm; do
    mount -t tmpfs -o noexec tmpfs "$directory" || exit 99
done
exec "$@"
"""


def test_where_nothing_may_be_executed(tmp_path: Path) -> None:
    """PoCL would end the process when it loads what it has compiled."""
    on_pocl()
    mounts = ["unshare", "--mount", "--map-root-user", "sh", "-c", NOEXEC, "sh"]
    prefix = [*mounts, *without_home()]
    if str(PROGRAM).startswith(("/tmp/", "/var/tmp/")):
        pytest.skip("the program itself lies where it would be hidden")
    if subprocess.run([*mounts, "true"], capture_output=True, check=False).returncode != OK:
        pytest.skip("no mount namespace can be made here")
    text = looked(prefix=prefix)
    assert "PoCL has no directory to compile in: set POCL_CACHE_DIR" in text and "noexec" in text
    refused(call("fma", "--backend=opencl", prefix=prefix), UNSUPPORTED, "no GPU", "POCL_CACHE_DIR")
