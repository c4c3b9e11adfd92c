"""The GPU service with the real program: where there is no GPU, and with a driver of OpenCL that
has the CPU do what a GPU would (PoCL)."""

import contextlib
import json
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hostbench.model.host import HostInventory
from hostbench.model.service import ServiceTable
from hostbench.remote import client as remote
from services.gpu.tests import cuda_stub
from tests.service.conftest import StartService, check_and_stop
from tests.service.streams import RunningTrial, outcome
from tests.stack.service_process import PROGRAMS, ServiceProcess, events

pytestmark = pytest.mark.timeout(300)

PROGRAM = PROGRAMS / "gpu-bench"
# OCL_ICD_VENDORS in the environment is where the loader of OpenCL looks instead of here.
POCL = Path("/etc/OpenCL/vendors/pocl.icd")
SHORT = {"duration_s": 0.2, "warmup_s": 0.05}
SMALL_BYTES = 8 << 20
WORKLOADS = (
    *("fma", "int_add", "int_mul_add", "dp4a"),
    *("read", "write", "copy", "triad", "pointer_chase"),
    *("host_to_device", "device_to_host", "bidirectional", "launch_latency"),
)
# What has no meaning without a GPU of NVIDIA's, or without two GPUs.
NOT_OF_OPENCL = {"tensor", "gemm", "peer_to_peer"}


def devices(**environment: str) -> list[dict[str, Any]]:
    """What the program finds."""
    printed = subprocess.check_output([PROGRAM, "--list-devices"], env=environment)
    found: list[dict[str, Any]] = json.loads(printed)["devices"]
    return found


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """One that finds no driver."""
    root = tmp_path_factory.mktemp("bare")
    (root / "drivers").mkdir()
    where = str(root / "drivers")
    if devices(OCL_ICD_VENDORS=where):
        pytest.skip("this host has a GPU of NVIDIA's")
    one = ServiceProcess(root, subsystem="gpu", OCL_ICD_VENDORS=where)
    one.start()
    yield one
    check_and_stop(one)


def test_without_a_gpu_it_says_what_it_looked_for(bare: ServiceProcess) -> None:
    assert bare.client.get("/healthz").json() == {"status": "ok"}
    seen = HostInventory.model_validate_json(bare.client.get("/host").content).gpus
    assert seen is not None and seen.devices == () and seen.reason is None
    cuda, opencl = seen.looked
    assert "libcuda.so.1" in cuda and "OpenCL" in opencl
    served = ServiceTable.model_validate_json(bare.client.get("/workloads").content).table
    for workload in served.workloads:
        assert workload.unsupported is not None and workload.unsupported.startswith("no GPU: ")
    logged = [json.loads(line) for line in bare.log.splitlines()]
    (event,) = [line for line in logged if line["event"] == "nothing_runs_here"]
    assert cuda in event["reason"] and opencl in event["reason"]


def test_without_a_gpu_a_trial_is_skipped_at_once(bare: ServiceProcess) -> None:
    lines = events(bare.post(id="t1", workload="copy", params={"duration_s": 60}))
    assert [line["event"] for line in lines] == ["skip", "control_plane"]
    assert lines[0]["reason"].startswith("no GPU: ") and "libcuda.so.1" in lines[0]["reason"]
    assert lines[1]["processes"][0]["elapsed_s"] < 5
    assert outcome(bare, "t1") == "skipped"


def test_drivers_may_take_longer_than_other_answers(
    start_service: StartService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "programs" / PROGRAM.name
    slow.parent.mkdir()
    slow.write_text(f'#!/bin/sh\n[ "$1" != --list-devices ] || sleep 1.5\nexec {PROGRAM} "$@"\n')
    slow.chmod(0o755)
    service = start_service("gpu", subsystem="gpu", programs=slow.parent)
    monkeypatch.setattr(remote, "ANSWER_S_MOST", 1.0)
    with contextlib.closing(service.remote()) as far:
        gpus = far.host().gpus
    assert gpus is not None and gpus.reason is None and gpus.looked


def test_a_driver_that_came_later_is_found(start_service: StartService, tmp_path: Path) -> None:
    """Every trial looks anew; what was looked at for the table is as old as the service."""
    cpu_with_opencl()
    (tmp_path / "drivers").mkdir()
    service = start_service("gpu", subsystem="gpu", OCL_ICD_VENDORS=str(tmp_path / "drivers"))
    (tmp_path / "drivers" / POCL.name).write_text(POCL.read_text())
    lines = measured(service, "copy", on_the_cpu("copy", 0))
    assert [line["event"] for line in lines][-3:] == ["end", "others", "control_plane"]


def measured(
    service: ServiceProcess, workload: str, params: dict[str, Any]
) -> list[dict[str, Any]]:
    """The lines of a trial; the lease is renewed while the driver compiles."""
    return RunningTrial(service, f"t-{workload}", workload=workload, params=params).finish()


def cpu_with_opencl() -> int:
    """The number of the device that PoCL makes of the CPU."""
    if not POCL.exists():
        pytest.skip(f"PoCL is not installed: there is no {POCL}")
    found = [one["index"] for one in devices() if one["type"] == "cpu"]
    assert found, "PoCL is installed, and no CPU is found"
    index: int = found[0]
    return index


@pytest.fixture(scope="module")
def pocl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """One whose OpenCL has a CPU."""
    cpu_with_opencl()
    one = ServiceProcess(tmp_path_factory.mktemp("pocl"), subsystem="gpu")
    one.start()
    yield one
    check_and_stop(one)


@cache
def table() -> dict[str, Any]:
    """The workloads of --list by name."""
    workloads = json.loads(subprocess.check_output([PROGRAM, "--list"]))["workloads"]
    return {one["name"]: one for one in workloads}


def on_the_cpu(workload: str, device: int) -> dict[str, Any]:
    """Parameters of a short trial."""
    sized = any(param["name"] == "size_bytes" for param in table()[workload]["params"])
    size = {"size_bytes": SMALL_BYTES} if sized else {}
    return {"device": str(device), "backend": "opencl", **SHORT, **size}


def test_no_workload_is_left_out() -> None:
    assert {*WORKLOADS} | NOT_OF_OPENCL == set(table())
    assert len(set(WORKLOADS)) == len(WORKLOADS) and NOT_OF_OPENCL.isdisjoint(WORKLOADS)


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.sampled(5)
def test_every_workload_of_opencl_through_the_service(pocl: ServiceProcess, workload: str) -> None:
    params = on_the_cpu(workload, cpu_with_opencl())
    lines = measured(pocl, workload, params)
    names = [line["event"] for line in lines]
    assert names[0] == "start" and names[-3:] == ["end", "others", "control_plane"], lines
    assert lines[0]["params"]["device"] == params["device"]
    assert "not_a_gpu" in [line["code"] for line in lines if line["event"] == "warning"]
    served = ServiceTable.model_validate_json(pocl.client.get("/workloads").content).table
    row = served.workload(workload)
    assert row is not None and lines[-3]["metrics"][row.primary.name] > 0


def test_a_device_that_is_not_there(pocl: ServiceProcess) -> None:
    lines = events(pocl.post(id="t1", workload="copy", params={"device": "63"}))
    assert [line["event"] for line in lines] == ["error", "failure", "control_plane"]
    message = lines[1]["message"]
    assert "63" in message and re.search(r"allowed is auto, .*--list-devices", message)


@pytest.mark.parametrize("device", ["a/b", "", "x" * 129, "all"])
def test_no_device_is_called_so(pocl: ServiceProcess, device: str) -> None:
    answer = pocl.post(id="t1", workload="copy", params={"device": device})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "body.params.device"


def test_the_device_is_in_the_inventory(pocl: ServiceProcess) -> None:
    seen = HostInventory.model_validate_json(pocl.client.get("/host").content).gpus
    assert seen is not None
    one = seen.device(None, cpu_with_opencl())
    assert one is not None and (one.type, one.backend) == ("cpu", "opencl") and one.uuid


# ---- a card of NVIDIA's, which a stand-in for its driver makes up ----


def test_a_card_of_nvidias(start_service: StartService) -> None:
    service = start_service("gpu", subsystem="gpu", **cuda_stub.environment(cards=2))
    seen = HostInventory.model_validate_json(service.client.get("/host").content).gpus
    assert seen is not None and [one.backend for one in seen.devices] == ["cuda", "cuda"]
    params = {"dtype": "fp32", "device": seen.devices[1].uuid, **SHORT}
    lines = measured(service, "fma", params)
    assert lines[-3]["event"] == "end", lines
    assert lines[0]["facts"]["device_uuid"] == seen.devices[1].uuid
    assert "nothing_runs_here" not in service.log


def test_a_card_that_is_lost_ends_its_trial_alone(start_service: StartService) -> None:
    lost = cuda_stub.environment(fail="cuEventQuery:20:719")
    service = start_service("gpu", subsystem="gpu", **lost)
    for name in ("t1", "t2"):
        params = {"dtype": "fp32", **SHORT, "duration_s": 60}
        lines = RunningTrial(service, name, workload="fma", params=params).finish()
        assert [line["event"] for line in lines][-2:] == ["failure", "control_plane"]
        assert "CUDA_ERROR_LAUNCH_FAILED" in lines[-2]["message"]
        assert outcome(service, name) == "failed"
    assert service.client.get("/healthz").status_code == 200
