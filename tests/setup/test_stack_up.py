"""scripts/stack-up.sh names what is missing before it starts anything."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
# What docker must do for the script to get as far as Compose itself.
STUB = """#!/bin/bash
echo "docker $*" >>calls
case "$*" in
    "compose version") exit {plugin} ;;
    version) exit {engine} ;;
    "compose config orchestrator") cat configuration ;;
    "compose up"*) exit {up} ;;
    "compose port orchestrator 8000") echo 127.0.0.1:8000 ;;
    "compose port grafana 3000") exit 1 ;;
esac
"""
# What `docker compose config orchestrator` says, as far as it counts.
CONFIGURATION = """\
services:
  orchestrator:
    environment:
      HOSTBENCH_BIND: {bind}
      HOSTBENCH_TLS_CERT_FILE: {certificate}
secrets:
  api_key:
    name: hostbench_api_key
    file: {secrets}/api_key
"""


def start(
    directory: Path,
    *,
    plugin: int = 0,
    engine: int = 0,
    up: int = 0,
    files: str = "",
    env: bool = True,
    bind: str = "127.0.0.1",
    tls: bool = False,
    secrets: str = "secrets",
) -> subprocess.CompletedProcess[str]:
    """Run it in a checkout of its own, with a docker that only notes its calls."""
    (directory / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/stack-up.sh", directory / "scripts")
    docker = directory / "docker"
    docker.write_text(STUB.format(plugin=plugin, engine=engine, up=up))
    docker.chmod(0o755)
    certificate = "/run/secrets/server_certificate" if tls else '""'
    (directory / "configuration").write_text(
        CONFIGURATION.format(bind=bind, certificate=certificate, secrets=directory / secrets)
    )
    if env:
        (directory / ".env").write_text(files and f"COMPOSE_FILE={files}\n")
        (directory / secrets).mkdir()
        (directory / secrets / "authorization").touch()
        (directory / secrets / "keys").touch()
        (directory / secrets / "host_keys").touch()
    return subprocess.run(
        [directory / "scripts/stack-up.sh"],
        env={"PATH": f"{directory}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("lacking", "message"),
    [
        ({"plugin": 1}, "install Docker Engine 25"),
        ({"engine": 1}, "no Docker Engine answers"),
        ({"env": False}, "run: make env"),
        ({"bind": "192.0.2.7"}, "HOSTBENCH_BIND is 192.0.2.7"),
        ({"bind": "0.0.0.0"}, "set HOSTBENCH_TLS=1"),
        ({"bind": "'::'"}, "HOSTBENCH_BIND is ::,"),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, lacking: dict[str, Any], message: str) -> None:
    ended = start(tmp_path, **lacking)
    assert ended.returncode == 3
    assert message in ended.stderr and len(ended.stderr.splitlines()) == 1
    assert "compose up" not in (tmp_path / "calls").read_text()


@pytest.mark.parametrize(
    ("files", "remedy"),
    [
        ("", False),
        ("compose.yaml:mine.yaml", False),
        ("compose.yaml:compose.gpu.yaml", True),
        ("compose.yaml:compose.amd.yaml:mine.yaml", True),
    ],
)
def test_a_stack_that_asks_for_a_gpu_may_be_asking_too_much(
    tmp_path: Path, files: str, remedy: bool
) -> None:
    ended = start(tmp_path, up=1, files=files)
    assert ended.returncode == 1 and "docker compose logs" in ended.stderr
    assert ("make env GPU=none" in ended.stderr) == remedy


@pytest.mark.parametrize(
    ("given", "scheme"),
    [
        ({}, "http"),
        ({"bind": "localhost"}, "http"),
        ({"bind": "'::1'"}, "http"),
        ({"tls": True}, "https"),
        ({"tls": True, "bind": "0.0.0.0", "secrets": "keys"}, "https"),
    ],
)
def test_it_says_where_the_stack_is(tmp_path: Path, given: dict[str, Any], scheme: str) -> None:
    ended = start(tmp_path, **given)
    assert ended.returncode == 0, ended.stderr
    assert "docker compose up --detach --build --wait" in (tmp_path / "calls").read_text()
    assert f" {scheme}://127.0.0.1:8000/jobs\n" in ended.stdout
    secrets = given.get("secrets", "secrets")
    assert (f"--cacert {secrets}/ca.pem" in ended.stdout) == (scheme == "https")
    assert f"-H @{secrets}/authorization " in ended.stdout
    assert "make venv; .venv/bin/hostbench submit quick --wait" in ended.stdout
