"""The CUDA backend on a stand-in for the driver: every call that a trial makes fails once, and each
failure is reported in one line with its own exit code, without a figure."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.gpu.tests import cuda_stub, opencl_shim
from services.gpu.tests.cuda_stub import CUDA, NVML, Report, environment
from services.gpu.tests.program import STOP_S, call, listed, measure, running
from tests.benchmark import (
    FAILED,
    OK,
    RESOURCE,
    UNSUPPORTED,
    USAGE,
    WRONG,
    Trial,
    refused,
    trial_of,
)
from tests.builds import builds
from tests.machine_code import ROOT

MIB = 1 << 20
SHORT = ("--backend=cuda", "--duration-s=0.06", "--warmup-s=0")
LONGER = ("--backend=cuda", "--duration-s=0.4", "--warmup-s=0")
# Together they make every call that the backend can make.
TRIALS: dict[str, tuple[str, ...]] = {
    "fma": ("--dtype=fp32",),
    "copy": (f"--size-bytes={4 * MIB}",),
    "copy by the driver": (f"--size-bytes={4 * MIB}", "--path=driver"),
    "pointer_chase": (f"--size-bytes={MIB}",),
    "host_to_device": (f"--size-bytes={4 * MIB}", "--host-memory=pinned"),
    "peer_to_peer": (f"--size-bytes={4 * MIB}",),
    "launch_latency": (),
    "tensor": ("--dtype=bf16",),
}
CARDS = {"peer_to_peer": 2}
UNKNOWN = 999  # CUDA_ERROR_UNKNOWN, and NVML_ERROR_UNKNOWN
NO_MEMORY = 2

# What is read before there is a trial: without an answer there is no device.
LISTING = {
    "cuInit",
    "cuDriverGetVersion",
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuDeviceGetUuid",
    "cuDeviceGetUuid_v2",
    "cuDeviceGetPCIBusId",
    "cuDeviceTotalMem_v2",
    "cuDeviceGetAttribute",
}
# What is released when the figures are known.
RELEASING = {
    "cuMemFree_v2",
    "cuMemFreeHost",
    "cuEventDestroy_v2",
    "cuStreamDestroy_v2",
    "cuModuleUnload",
    "cuDevicePrimaryCtxRelease_v2",
}
ALLOCATING = ("cuDevicePrimaryCtxRetain", "cuMemAlloc_v2", "cuMemHostAlloc", "cuModuleLoadDataEx")


def arguments(workload: str) -> tuple[str, ...]:
    return (workload.split()[0], *TRIALS[workload], *SHORT)


def settings(workload: str, **more: str | int) -> dict[str, str]:
    return environment(None, cards=CARDS.get(workload, 1), **more)


def short(workload: str, **more: str | int) -> subprocess.CompletedProcess[str]:
    return call(*arguments(workload), env=settings(workload, **more))


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    """What each trial calls."""
    directory = tmp_path_factory.mktemp("reports")
    found = {}
    for workload in TRIALS:
        file = directory / workload
        result = short(workload, report=str(file))
        assert result.returncode == OK, (workload, result.stdout, result.stderr)
        found[workload] = cuda_stub.read_report(file)
    return found


def entry_points(header: str, table: str) -> Iterator[str]:
    """The names in one of the tables of entry points of a header."""
    text = (cuda_stub.GPU / "bench" / header).read_text()
    body = text.split(f"#define {table}(ENTRY)", 1)[1].split("\n\n", 1)[0]
    for part in body.split("ENTRY(")[1:]:
        yield part.split(",", 1)[0]


CUDA_CALLS = [
    name
    for table in ("CUDA_ENTRY_POINTS", "CUDA_OPTIONAL_ENTRY_POINTS")
    for name in entry_points("cuda_api.h", table)
    if name != "cuGetErrorName"  # called when something else has failed
]
NVML_CALLS = [
    name
    for table in ("NVML_ENTRY_POINTS", "NVML_OPTIONAL_ENTRY_POINTS")
    for name in entry_points("nvml.h", table)
]


def which_calls(reports: dict[str, Report], name: str) -> str:
    """The first trial that makes this call; skips where none does."""
    for workload, report in reports.items():
        if name in report.calls:
            return workload
    pytest.skip(f"no workload of this build calls {name}")


def figures(output: str) -> list[str]:
    """The events that hold figures."""
    events = [json.loads(line) for line in output.splitlines()]
    return [one["event"] for one in events if one["event"] in ("end", "sample")]


# ---- a trial that ends well ------------------------------------------------------------------


@pytest.mark.parametrize("workload", list(TRIALS))
def test_a_trial_leaves_nothing(reports: dict[str, Report], workload: str) -> None:
    left = reports[workload].left
    assert left and not any(left.values()), left


def test_what_no_card_like_this_one_has_confirmed_is_marked() -> None:
    for capability, workload, marked in (
        ("9.0", "fma", ""),
        ("9.0", "copy by the driver", ""),
        ("9.0", "peer_to_peer", "copies between two cards never ran"),
        ("8.9", "fma", "confirmed on an H100 and an H200 (compute capability 9.0) alone"),
        (
            "12.0",
            "launch_latency",
            "confirmed on an H100 and an H200 (compute capability 9.0) alone",
        ),
        ("12.0", "peer_to_peer", "copies between two cards never ran"),
    ):
        trial = measure(*arguments(workload), env=settings(workload, cc=capability))
        warned = trial.warnings.get("not_run_on_hardware", "")
        assert warned.startswith(marked) and bool(warned) == bool(marked), (capability, workload)


def test_what_a_trial_reports_of_the_card() -> None:
    """In so long a time that it is as good as nothing how late the sensors are read."""
    arguments = ("--dtype=fp32", "--backend=cuda", "--duration-s=2", "--warmup-s=0")
    trial = measure("fma", *arguments, env=environment(cards=3))
    assert trial.facts["device_name"] == "Stand-in 0"
    assert trial.facts["pci"] == "0000:5a:00.0"
    assert trial.facts["driver"] == "550.54.14"
    assert trial.facts["pcie"] == "generation 4 x8 when idle, at most 5 x16"
    assert trial.facts["kernel"] == "fma_fp32, CUBIN sm_90"
    assert sensors_of(trial) == (1001e6, 2000e6, 300, 40)
    assert trial.metrics["nvml_clock_hertz_min"] == 1000e6
    elapsed_s = trial.end["elapsed_s"]
    assert trial.metrics["energy_joules"] == pytest.approx(300 * elapsed_s, rel=0.1)
    assert trial.metrics["throttled_ratio"] == 0
    assert (trial.metrics["pcie_generation"], trial.metrics["pcie_lanes"]) == (4, 8)


def sensors_of(trial: Trial) -> tuple[float, ...]:
    names = ("nvml_clock_hertz", "memory_clock_hertz", "power_watts", "temperature_celsius")
    return tuple(trial.metrics[name] for name in names)


@pytest.mark.parametrize(
    ("workload", "options", "groups"),
    [
        ("fma", ("--dtype=fp32",), 4),
        ("int_mul_add", ("--dtype=int64",), 4),
        ("tensor", ("--dtype=bf16", "--instruction=mma"), 2),
        ("tensor", ("--dtype=fp64",), 1),
        ("tensor", ("--dtype=bf16",), 2),
    ],
)
def test_so_many_groups_fit_and_no_more(
    tmp_path: Path, workload: str, options: tuple[str, ...], groups: int
) -> None:
    """By their shared memory: a multiprocessor of compute capability 9.0 has 228 KiB of it, and a
    group takes one more than it asks for."""
    report = tmp_path / "report"
    measure(workload, *options, *SHORT, env=environment(report=str(report)))
    most = cuda_stub.read_report(report).most
    (shared,) = (size for name, size in most.items() if name.startswith(workload))
    assert groups * (shared + 1024) <= 228 * 1024 < (groups + 1) * (shared + 1024)


@pytest.mark.parametrize("code", [1, 801])
def test_a_driver_that_does_not_know_the_carveout(code: int) -> None:
    """It is a wish: requested after the size of the shared memory, which is none."""
    assert short("fma", fail=f"cuFuncSetAttribute:2:{code}").returncode == OK
    refused(short("fma", fail="cuFuncSetAttribute:1:1"), FAILED, "cuFuncSetAttribute: 1")


# ---- every call fails ------------------------------------------------------------------------


@pytest.mark.parametrize("variant", builds("release", "asan"))
@pytest.mark.parametrize("name", CUDA_CALLS)
def test_a_call_that_fails(reports: dict[str, Report], name: str, variant: str) -> None:
    """At its first time, and at a later one."""
    program = ROOT / "build" / variant / "gpu-bench"
    if not program.exists():
        pytest.skip(f"there is no {program}: make programs-{variant}")
    workload = which_calls(reports, name)
    later = min(reports[workload].calls[name], 1 if name == "cuCtxSetCurrent" else 3)
    for nth in {1, later} if variant == "release" else {later}:
        env = settings(workload, fail=f"{name}:{nth}:{UNKNOWN}")
        result = call(*arguments(workload), program=program, env=env)
        if name in RELEASING:
            assert result.returncode == OK, result.stderr
            assert figures(result.stdout)[-1] == "end" and not result.stderr
            continue
        code = UNSUPPORTED if name in LISTING and nth_is_listing(name, nth) else FAILED
        refused(result, code, f"{name}:", "CUDA_ERROR_UNKNOWN", str(UNKNOWN), "dmesg")
        assert not figures(result.stdout)


def nth_is_listing(name: str, nth: int) -> bool:
    """cuDeviceGet is also the first call of a trial, behind that of the one card."""
    return name != "cuDeviceGet" or nth == 1


def test_an_error_without_a_name() -> None:
    failing = f"cuLaunchKernel:2:{UNKNOWN},cuGetErrorName:1+:1"
    line = refused(short("fma", fail=failing), FAILED, "cuLaunchKernel: 999")
    assert "CUDA_ERROR" not in line


@pytest.mark.parametrize("name", ALLOCATING)
def test_memory_that_is_taken(reports: dict[str, Report], name: str) -> None:
    workload = which_calls(reports, name)
    result = short(workload, fail=f"{name}:1:{NO_MEMORY}")
    refused(result, RESOURCE, name, "CUDA_ERROR_OUT_OF_MEMORY", "nvidia-smi")
    assert not figures(result.stdout)


def test_memory_that_is_too_small() -> None:
    refused(short("copy", memory=MIB), RESOURCE, "free", "nvidia-smi")


def test_a_card_that_another_has_for_itself() -> None:
    result = short("fma", fail="cuDevicePrimaryCtxRetain:1:46")
    refused(result, RESOURCE, "CUDA_ERROR_DEVICE_UNAVAILABLE", "compute mode")


@pytest.mark.parametrize("name", NVML_CALLS)
@pytest.mark.parametrize("times", ["1", "1+"])
@pytest.mark.sampled(7)
def test_a_sensor_that_fails(name: str, times: str) -> None:
    """The trial goes on, and what is not known is null with the reason."""
    result = short("fma", fail=f"{name}:{times}:{UNKNOWN}")
    assert result.returncode == OK and not result.stderr, result.stderr
    trial = trial_of(result.stdout.splitlines())
    assert trial.metrics["operations_per_second"] > 0
    for metric, value in trial.metrics.items():
        assert value is not None or trial.end["reasons"][f"metrics.{metric}"], metric
        assert metric not in ("power_watts", "nvml_clock_hertz") or value != 0


# ---- no device -------------------------------------------------------------------------------


def skipped(*parts: str, **options: Any) -> str:
    result = call("fma", "--dtype=fp32", "--backend=cuda", **options)
    return refused(result, UNSUPPORTED, "no GPU", *parts)


def test_no_driver(tmp_path: Path) -> None:
    skipped("libcuda.so.1 is not installed", env=environment(tmp_path))


def test_a_file_that_is_no_library(tmp_path: Path) -> None:
    (tmp_path / CUDA).write_text("nothing\n")
    skipped("libcuda.so.1 cannot be loaded", env=environment(tmp_path))


@pytest.mark.parametrize("name", ["cuMemFree_v2", "cuEventElapsedTime"])
def test_a_library_that_lacks_a_call(tmp_path: Path, name: str) -> None:
    cuda_stub.build(tmp_path, CUDA, f"{name}=another")
    skipped(f"libcuda.so.1 has no {name}", env=environment(tmp_path))


@pytest.mark.parametrize("name", ["cuDeviceGetUuid", "cuDeviceGetUuid_v2"])
def test_a_library_with_one_call_for_the_uuid(tmp_path: Path, name: str) -> None:
    cuda_stub.build(tmp_path, CUDA, f"{name}=another")
    (device,) = listed(env=environment(tmp_path, mig=0))["devices"]
    assert device["uuid"] == "GPU-00000000-0000-0000-0000-00000000000c"


def test_a_driver_that_is_too_old() -> None:
    skipped("CUDA 11.4", "525", "12.0", env=environment(cuda=11040))


@pytest.mark.parametrize(
    ("code", "parts"),
    [
        (100, ["CUDA_ERROR_NO_DEVICE", "lspci", "--gpus"]),
        (34, ["(34)", "stubs"]),
        (803, ["(803)", "restart"]),
        (802, ["(802)", "fabric"]),
    ],
)
def test_a_driver_that_does_not_start(code: int, parts: list[str]) -> None:
    skipped("cuInit", *parts, env=environment(fail=f"cuInit:1:{code}"))


def test_cards_that_are_hidden() -> None:
    skipped('CUDA_VISIBLE_DEVICES=""', env=environment() | {"CUDA_VISIBLE_DEVICES": ""})


def test_a_device_that_does_not_exist() -> None:
    result = call("fma", "--dtype=fp32", "--device=7", env=environment())
    refused(result, USAGE, "7", "Stand-in 0", "--list-devices")


def test_one_of_two_cards_that_fails() -> None:
    """The other one is there, and the search says what became of the first."""
    found = listed(env=environment(cards=2, fail="cuDeviceGetName:1:1"))
    assert [device["name"] for device in found["devices"]] == ["Stand-in 1"]
    assert "device 0 is left out: cuDeviceGetName" in found["looked"][0]


def test_a_card_without_kernels() -> None:
    result = call(*arguments("fma"), env=environment(cc="5.0"))
    refused(result, UNSUPPORTED, "fma_fp32", "compute capability 5.0")


# ---- which card ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("visible", "device", "card"),
    [("2,0", "0", 2), ("2,0", "1", 0), ("GPU-00000001,2", "0", 1), ("1", "auto", 1)],
)
def test_the_sensors_are_those_of_the_card(visible: str, device: str, card: int) -> None:
    """CUDA's numbers are its own: the card is found by its place on the bus."""
    env = environment(cards=3) | {"CUDA_VISIBLE_DEVICES": visible}
    trial = measure("fma", "--dtype=fp32", *SHORT, f"--device={device}", env=env)
    assert trial.facts["device_name"] == f"Stand-in {card}"
    assert trial.metrics["temperature_celsius"] == 40 + card
    assert trial.metrics["power_watts"] == 300 + card


@pytest.mark.parametrize("device", ["auto", "0", "0000:5a:00.0"])
def test_a_broken_opencl_driver_is_not_called(tmp_path: Path, device: str) -> None:
    """Its loader ends the process that loads it."""
    for library in (CUDA, NVML):
        cuda_stub.build(tmp_path, library)
    opencl_shim.build(tmp_path)
    env = {**environment(tmp_path), "SHIM_REAL": "/nowhere/libOpenCL.so.1"}
    for backend in ("auto", "cuda"):
        arguments = (f"--device={device}", f"--backend={backend}", *SHORT[1:])
        assert measure("fma", *arguments, env=env).params["backend"] == "cuda"
    assert call("--list-devices", env=env).returncode == -signal.SIGABRT


def test_a_device_by_its_uuid() -> None:
    found = listed(env=environment(cards=2))["devices"]
    trial = measure(
        "fma", "--dtype=fp32", *SHORT, f"--device={found[1]['uuid']}", env=environment(cards=2)
    )
    assert trial.facts["device_name"] == "Stand-in 1"


def test_the_sensors_by_uuid_when_the_bus_is_hidden() -> None:
    env = environment(cards=2, fail="nvmlDeviceGetHandleByPciBusId_v2:1+:6")
    trial = measure("fma", "--dtype=fp32", *SHORT, "--device=1", env=env)
    assert trial.metrics["temperature_celsius"] == 41


def test_a_part_of_a_card() -> None:
    (device,) = listed(env=environment(mig=1))["devices"]
    assert device["uuid"].startswith("MIG-")
    trial = measure("fma", "--dtype=fp32", *SHORT, env=environment(mig=1))
    assert trial.facts["sensors"] == "NVML, of the whole card"
    assert trial.metrics["temperature_celsius"] == 40


def test_cards_that_do_not_reach_each_other() -> None:
    result = short("peer_to_peer", no_peers=1)
    refused(result, UNSUPPORTED, "cannot reach")


# ---- machine code ----------------------------------------------------------------------------


def test_machine_code_that_the_driver_refuses() -> None:
    trial = measure(*arguments("fma"), env=environment(refuse="cubin"))
    assert "PTX" in trial.facts["kernel"] and "by the driver" in trial.facts["kernel"]
    assert "ptx" in trial.warnings


def test_neither_machine_code_nor_ptx() -> None:
    result = short("fma", refuse="cubin,ptx")
    line = refused(result, UNSUPPORTED, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "driver 550.54.14")
    assert "it says: ptxas fatal : Unsupported .version" in line and "more of it" not in line


# ---- in mid-run ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "parts"),
    [
        (214, ["CUDA_ERROR_ECC_UNCORRECTABLE", "ECC", "nvidia-smi -q -d ECC"]),
        (700, ["CUDA_ERROR_ILLEGAL_ADDRESS", "Xid 31"]),
        (719, ["CUDA_ERROR_LAUNCH_FAILED", "lost", "dmesg"]),
        (999, ["CUDA_ERROR_UNKNOWN", "lost"]),
    ],
)
@pytest.mark.parametrize("workload", ["fma", "copy"])
def test_a_device_that_fails(workload: str, code: int, parts: list[str]) -> None:
    result = short(workload, device_fail=f"9:{code}")
    refused(result, FAILED, *parts)
    assert not figures(result.stdout)


def test_an_xid_explains_the_failure() -> None:
    arguments = ("fma", "--dtype=fp32", "--backend=cuda", "--duration-s=5", "--warmup-s=0")
    result = call(*arguments, env=environment(xid="3:79", fail="cuEventQuery:900:719"))
    refused(result, FAILED, "719", "Xid 79", "fallen off the bus")


def test_an_xid_is_a_warning() -> None:
    trial = measure("fma", "--dtype=fp32", *LONGER, env=environment(xid="2:94"))
    assert "Xid 94" in trial.warnings["xid"]
    assert "a contained ECC error" in trial.warnings["xid"]


def test_ecc_errors_are_a_warning() -> None:
    trial = measure(*arguments("fma"), env=environment(ecc=3))
    assert trial.warnings["ecc"].startswith("3 ECC errors")


def test_a_card_that_nvml_has_lost() -> None:
    env = environment(fail="nvmlDeviceGetClockInfo:5+:15")
    trial = measure("fma", "--dtype=fp32", *LONGER, env=env)
    assert "lost" in trial.warnings["xid"]


def test_throttling_is_a_warning() -> None:
    trial = measure(*arguments("fma"), env=environment(reasons=0x4 | 0x40 | 0x2))
    assert trial.metrics["throttled_ratio"] == 1
    warning = trial.warnings["clock_throttled"]
    assert "power limit" in warning and "temperature (by the hardware)" in warning
    trial = measure(*arguments("fma"), env=environment(reasons=0x1 | 0x2))
    assert trial.metrics["throttled_ratio"] == 0 and "clock_throttled" not in trial.warnings


@pytest.mark.parametrize(
    ("workload", "spoilt"),
    [
        ("fma", {"wrong": "fma_fp32:1:4"}),
        ("fma", {"lazy": "fma_fp32:1"}),
        ("fma", {"lazy": "fma_fp32:5"}),
        ("copy", {"wrong": "copy:1:2"}),
        ("copy", {"lazy": "copy:2"}),
    ],
)
def test_a_wrong_result(workload: str, spoilt: dict[str, str]) -> None:
    result = short(workload, **spoilt)
    refused(result, WRONG)
    assert not figures(result.stdout)


@pytest.mark.parametrize("nth", [1, 3, 30])
def test_a_device_that_hangs(nth: int) -> None:
    """It gets SIGTERM, and ends, whatever it waits for."""
    process = subprocess.Popen(
        [ROOT / "build" / "release" / "gpu-bench", "fma", "--dtype=fp32", "--duration-s=60"],
        env={"PATH": "/usr/bin", **environment(hang=nth)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        time.sleep(1)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        signalled_s = time.monotonic()
        output, messages = process.communicate(timeout=20)
        assert time.monotonic() - signalled_s < STOP_S
    assert process.returncode == FAILED and "ended by SIGTERM" in messages
    assert '"end"' not in output


def test_a_signal_ends_it() -> None:
    with running("fma", "--dtype=fp32", "--backend=cuda", env=environment()) as (process, _):
        process.send_signal(signal.SIGTERM)
        signalled_s = time.monotonic()
        output, messages = process.communicate(timeout=20)
        assert time.monotonic() - signalled_s < STOP_S
    assert process.returncode == FAILED and "ended by SIGTERM" in messages
    assert '"interrupted"' in output


# ---- without NVML ----------------------------------------------------------------------------

SENSORS = (
    "nvml_clock_hertz",
    "nvml_clock_hertz_min",
    "memory_clock_hertz",
    "power_watts",
    "energy_joules",
    "temperature_celsius",
    "throttled_ratio",
    "pcie_generation",
    "pcie_lanes",
)


def without_sensors(trial: Trial, reason: str) -> None:
    for name in SENSORS:
        assert trial.metrics[name] is None
        assert reason in trial.end["reasons"][f"metrics.{name}"], name
    assert trial.metrics["operations_per_second"] > 0


@pytest.fixture
def cuda_alone(tmp_path: Path) -> Path:
    (tmp_path / CUDA).symlink_to(cuda_stub.both() / CUDA)
    return tmp_path


def test_without_nvml(cuda_alone: Path) -> None:
    trial = measure(*arguments("fma"), env=environment(cuda_alone))
    without_sensors(trial, "libnvidia-ml.so.1 is not installed")
    assert trial.facts["driver"] == "CUDA 12.4"
    assert trial.facts["sensors"] == "no sensors: libnvidia-ml.so.1 is not installed"


def test_an_nvml_that_is_none(cuda_alone: Path) -> None:
    (cuda_alone / NVML).write_text("nothing\n")
    without_sensors(
        measure(*arguments("fma"), env=environment(cuda_alone)), "libnvidia-ml.so.1 cannot be"
    )


def test_an_old_nvml(cuda_alone: Path) -> None:
    """Neither fields nor energy nor the newer name of the reasons: older calls stand in."""
    lacking = (
        "nvmlDeviceGetFieldValues",
        "nvmlDeviceGetTotalEnergyConsumption",
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlEventSetCreate",
    )
    cuda_stub.build(cuda_alone, NVML, *(f"{name}=no_{name}" for name in lacking))
    trial = measure("fma", "--dtype=fp32", *LONGER, env=environment(cuda_alone, reasons=4))
    assert trial.metrics["power_watts"] == 50
    assert trial.metrics["energy_joules"] == pytest.approx(50 * trial.end["elapsed_s"], rel=0.2)
    assert trial.metrics["throttled_ratio"] == 1


def test_a_card_without_sensors() -> None:
    without_sensors(measure(*arguments("fma"), env=environment(silent=1)), "Not Supported")


def test_a_card_that_nvml_does_not_know() -> None:
    missing = "nvmlDeviceGetHandleByPciBusId_v2:1+:6,nvmlDeviceGetHandleByUUID:1+:6"
    trial = measure(*arguments("fma"), env=environment(fail=missing))
    without_sensors(trial, "no card at PCI 0000:5a:00.0 nor with the UUID GPU-00000000")
