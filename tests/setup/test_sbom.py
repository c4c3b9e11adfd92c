"""scripts/sbom.py lists every pinned part of the images."""

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SBOM: dict[str, Any] = runpy.run_path(str(ROOT / "scripts/sbom.py"))


@pytest.mark.parametrize("name", SBOM["LISTS"])
def test_every_package_of_a_list_is_a_part(name: str) -> None:
    parts = list(SBOM["required"](name))
    pins = (ROOT / f"requirements/{name}.txt").read_text()
    assert len(parts) == len(re.findall(r"^[^ #]+==", pins, re.MULTILINE)) > 0
    for part in parts:
        assert f"{part['version']}" in pins and part["purl"].startswith("pkg:pypi/")
        assert part["hashes"], part


def test_every_image_of_others_is_a_part() -> None:
    parts = {part["name"]: part["purl"] for part in SBOM["pulled"]()}
    assert set(parts) == {"redis", "influxdb", "grafana/grafana"}
    assert "@sha256%3A" in parts["redis"] and "@sha256%3A" in parts["grafana/grafana"]


def test_every_script_of_others_is_a_part_with_its_licence() -> None:
    parts = {part["name"]: part for part in SBOM["vendored"]()}
    packages = json.loads(SBOM["VENDORED"].read_text())
    assert set(parts) == {one["package"] for one in packages} == {"htmx.org", "uplot"}
    for one in packages:
        part = parts[one["package"]]
        assert part["purl"] == f"pkg:npm/{one['package']}@{one['version']}"
        assert part["licenses"] == [{"license": {"id": one["licence"]}}]
        files = {file["name"]: file["hashes"][0]["content"] for file in part["components"]}
        assert files == one["sha256"]


def test_a_version_is_quoted_in_its_address() -> None:
    part = SBOM["component"]("deb/debian", "libc6", "1:2.41-12+deb13u1")
    assert part["purl"] == "pkg:deb/debian/libc6@1%3A2.41-12%2Bdeb13u1"
