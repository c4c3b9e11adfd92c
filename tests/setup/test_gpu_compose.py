"""The Compose files that give the gpu service a GPU, as Compose itself reads them. It takes no
engine, and no GPU."""

import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.stack import ROOT, engine_environment

BASE = "compose.yaml"


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    """One in which there is a Compose."""
    found = engine_environment() or dict(os.environ)
    version_call = subprocess.run(["docker", "compose", "version"], env=found, capture_output=True)
    if version_call.returncode != 0:
        reason = "there is no Docker Compose here; make e2e brings one"
        if os.environ.get("HOSTBENCH_DOCKER") == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


def compose(
    environment: Mapping[str, str], directory: Path, *files: str, **settings: str
) -> subprocess.CompletedProcess[str]:
    """`docker compose config` of these files with the .env that make env makes in `directory`."""
    subprocess.run([ROOT / "scripts/make-env.sh", directory], check=True, stdout=subprocess.DEVNULL)
    options = [option for name in files for option in ("--file", name)]
    command = ["docker", "compose", f"--env-file={directory / '.env'}", *options]
    return subprocess.run(
        [*command, "config", "--format", "json"],
        cwd=ROOT,
        env={**environment, **settings},
        capture_output=True,
        text=True,
    )


def configured(
    environment: Mapping[str, str], directory: Path, *files: str, **settings: str
) -> dict[str, Any]:
    """The services, as Compose would start them."""
    ended = compose(environment, directory, *files, **settings)
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)["services"]
    return found


def test_the_stack_asks_for_no_gpu(environment: dict[str, str], tmp_path: Path) -> None:
    for service in configured(environment, tmp_path, BASE).values():
        assert not {"devices", "gpus", "runtime", "group_add"} & set(service)
        reserved = service.get("deploy", {}).get("resources", {}).get("reservations", {})
        assert "devices" not in reserved


def test_nvidias_gpus(environment: dict[str, str], tmp_path: Path) -> None:
    base = configured(environment, tmp_path, BASE)
    found = configured(environment, tmp_path, BASE, "compose.gpu.yaml")
    reserved = found["gpu"].pop("deploy")["resources"]["reservations"]["devices"]
    # -1 means all cards.
    assert reserved == [{"capabilities": ["gpu"], "driver": "nvidia", "count": -1}]
    base["gpu"].pop("deploy", None)
    assert found == base


def test_some_of_nvidias_gpus(environment: dict[str, str], tmp_path: Path) -> None:
    """As docs/operations.md says."""
    page = (ROOT / "docs/operations.md").read_text().split("\n## GPUs in a container\n")[1]
    (override,) = re.findall(r"```\n(services:\n.*?)```", page.split("\n## ")[0], re.DOTALL)
    (tmp_path / "mine.yaml").write_text(override)
    files = (BASE, "compose.gpu.yaml", str(tmp_path / "mine.yaml"))
    found = configured(environment, tmp_path, *files)
    (reserved,) = found["gpu"]["deploy"]["resources"]["reservations"]["devices"]
    assert reserved["device_ids"] == ["GPU-8a2f0b1c-…"] and "count" not in reserved


def test_amds_gpus(environment: dict[str, str], tmp_path: Path) -> None:
    groups = {"HOSTBENCH_VIDEO_GROUP": "44", "HOSTBENCH_RENDER_GROUP": "992"}
    base = configured(environment, tmp_path, BASE)
    found = configured(environment, tmp_path, BASE, "compose.amd.yaml", **groups)
    gpu = found.pop("gpu")
    paths = [device.get("source", device) for device in gpu["devices"]]
    assert paths == ["/dev/kfd", "/dev/dri"] and gpu["group_add"] == ["44", "992"]
    assert gpu["build"]["args"] == {"OPENCL_DRIVERS": "rocm-opencl-icd", "SUBSYSTEM": "gpu"}
    assert gpu["environment"].items() >= base["gpu"]["environment"].items()
    assert gpu["image"] == f"{base['gpu']['image']}-amd"
    del base["gpu"]
    assert found == base


def test_amds_groups_have_to_be_known(environment: dict[str, str], tmp_path: Path) -> None:
    ended = compose(environment, tmp_path, BASE, "compose.amd.yaml")
    assert ended.returncode != 0 and "make env GPU=amd" in ended.stderr


def test_make_env_has_compose_read_them(environment: dict[str, str], tmp_path: Path) -> None:
    made = {**os.environ, "GPU": "nvidia"}
    subprocess.run(
        [ROOT / "scripts/make-env.sh", tmp_path], check=True, stdout=subprocess.DEVNULL, env=made
    )
    found = configured(environment, tmp_path)
    assert found["gpu"]["deploy"]["resources"]["reservations"]["devices"]
