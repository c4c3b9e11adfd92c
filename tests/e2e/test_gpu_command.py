"""Runs of GPU cases by the command: where there is no GPU, and over cards that are stand-ins."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from hostbench.base.exitcode import ExitCode
from services.gpu.tests import cuda_stub
from tests.faults.command import CHECKOUT, PROGRAMS, Command, WithReport

SKIP_S_MOST = 5.0
TWO_CARDS = """
name: cards
idle: {policy: force}
repeats: {min_trials: 1, max_trials: 1}
cases:
  - workload: gpu.fma
    params: {duration_s: 0.2, warmup_s: 0}
    grid: {device: all, dtype: [fp32]}
  - workload: gpu.copy
    params: {duration_s: 0.2, warmup_s: 0, size_bytes: 4194304, device: 1}
  - workload: gpu.pointer_chase
    params: {duration_s: 0.2, warmup_s: 0, size_bytes: l2}
"""


def document(command: Command) -> dict[str, Any]:
    """The last result."""
    found: dict[str, Any] = json.loads(command.run("show", "latest", "--json").output)
    return found


def test_the_gpu_part_of_quick_is_skipped_with_its_reason(tmp_path: Path) -> None:
    quick = yaml.safe_load((CHECKOUT / "suites/quick.yaml").read_text())
    quick["cases"] = [case for case in quick["cases"] if case["workload"].startswith("gpu.")]
    (tmp_path / "part.yaml").write_text(yaml.safe_dump(quick | {"name": "part"}))
    (tmp_path / "drivers").mkdir()
    command = WithReport(tmp_path, OCL_ICD_VENDORS=str(tmp_path / "drivers"))
    ended = command.run("run", str(tmp_path / "part.yaml"), "--idle-policy", "force")
    found = document(command)
    if found["host"]["gpus"]["devices"]:
        pytest.skip("this host has a GPU of NVIDIA's")
    # Nothing at all was measured in this part.
    assert ended.code == ExitCode.NOTHING_RAN, ended.errors
    assert {case["workload"] for case in found["cases"]} == {
        case["workload"] for case in quick["cases"]
    }
    for case in found["cases"]:
        assert case["verdict"] == "skipped" and len(case["trials"]) == 1
        assert case["trials"][0]["wall_s"] < SKIP_S_MOST
    text = " ".join(ended.output.split())
    assert text.count("skipped: no GPU: ") == 1, "one reason for all"
    assert "libcuda.so.1" in text
    page = Path(ended.errors.split("report: ")[1].strip()).read_text()
    assert "no GPU: libcuda.so.1" in page


@pytest.mark.exhaustive
def test_all_devices_are_measured_in_turn(tmp_path: Path) -> None:
    (tmp_path / "cards.yaml").write_text(TWO_CARDS)
    command = Command(tmp_path, PROGRAMS, **cuda_stub.environment(cards=2))
    ended = command.run("run", str(tmp_path / "cards.yaml"))
    assert ended.code in (ExitCode.OK, ExitCode.INVALID), ended.errors
    found = document(command)
    uuids = [device["uuid"] for device in found["host"]["gpus"]["devices"]]
    assert len(set(uuids)) == 2
    measured = [
        (case["workload"], case["trials"][0]["events"][0]["facts"]["device_uuid"])
        for case in found["cases"]
    ]
    assert measured == [
        ("gpu.fma", uuids[0]),
        ("gpu.fma", uuids[1]),
        ("gpu.copy", uuids[1]),
        ("gpu.pointer_chase", uuids[0]),
    ]
    assert not {case["verdict"] for case in found["cases"]} & {"skipped", "failed"}
    assert [case["label"].split(" ")[:2] for case in found["cases"][:2]] == [
        ["fp32", "device"],
        ["fp32", "device"],
    ]
