"""What the Helm chart starts, started here as its pod would: real Redis and orchestrator with the
configuration, secrets and certificate of the chart.
"""

import base64
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from hostbench.base.tls import trusting
from tests.fleet.helm import ROOT, Helm, find, need
from tests.patience import wait_until
from tests.stack.orchestrator_process import OrchestratorProcess
from tests.stack.redis_server import library_path, program


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    need()
    return Helm(tmp_path_factory.mktemp("helm")).rendered("influxdb.enabled=false")


@pytest.fixture(scope="module")
def mounted(objects: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory that stands for the root of the pod: its volumes, with what is in them."""
    root = tmp_path_factory.mktemp("pod")
    spec = find(objects, "StatefulSet", "hostbench")["spec"]["template"]["spec"]
    volumes = {one["name"]: one for one in spec["volumes"]}
    for container in spec["containers"]:
        for mount in container["volumeMounts"]:
            directory = root / mount["mountPath"].lstrip("/")
            directory.mkdir(parents=True, exist_ok=True)
            volume = volumes[mount["name"]]
            if "secret" in volume:
                data = find(objects, "Secret", volume["secret"]["secretName"])["data"]
                for key in [one["key"] for one in volume["secret"].get("items", ())] or data:
                    (directory / key).write_bytes(base64.b64decode(data[key]))
            elif "configMap" in volume:
                data = find(objects, "ConfigMap", volume["configMap"]["name"])["data"]
                for key, text in data.items():
                    (directory / key).write_text(text.replace(" /", f" {root}/"))
    return root


def of_container(objects: list[dict[str, Any]], name: str) -> dict[str, Any]:
    spec = find(objects, "StatefulSet", "hostbench")["spec"]["template"]["spec"]
    (found,) = [one for one in spec["containers"] if one["name"] == name]
    return dict(found)


def there(root: Path, text: str) -> str:
    """A command or a value, with the paths of the pod below `root`."""
    for folder in ("/run/", "/etc/redis", "/data"):
        text = text.replace(folder, f"{root}{folder}")
    return text


@pytest.fixture(scope="module")
def redis(objects: list[dict[str, Any]], mounted: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Redis, by the command of its container."""
    server = program()
    programs = mounted / "programs"
    programs.mkdir()
    (programs / "redis-server").symlink_to(server)
    environment = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "LD_LIBRARY_PATH": library_path(),
    }
    command = [there(mounted, word) for word in of_container(objects, "redis")["command"]]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    yield process
    process.terminate()
    # It is the process of the container, which gets the signal.
    assert process.wait(20) == 0


@pytest.mark.usefixtures("redis")
def test_the_pod_of_helm_test_finds_it_well(
    objects: list[dict[str, Any]], mounted: Path, tmp_path: Path
) -> None:
    socket = mounted / "run/redis/redis.sock"
    wait_until(socket.exists)
    assert socket.stat().st_mode & 0o077 == 0
    environment = {
        one["name"]: there(mounted, one["value"])
        for one in of_container(objects, "orchestrator")["env"]
    }
    redis_url = environment.pop("HOSTBENCH_REDIS_URL")
    pod = find(objects, "Pod", "hostbench-test")["spec"]["containers"][0]
    probe = {one["name"]: there(mounted, one["value"]) for one in pod["env"]}
    script = ROOT / Path(pod["command"][-1]).relative_to("/opt/hostbench/app")
    command = [sys.executable, *pod["command"][1:-1], script]
    process = OrchestratorProcess(tmp_path, redis_url, tmp_path / "results", **environment)
    try:
        process.start(wait=False)
        probe["HOSTBENCH_LISTEN"] = f"127.0.0.1:{process.port}"

        def printed() -> str:
            return subprocess.run(command, env=probe, capture_output=True, text=True).stdout

        wait_until(lambda: printed() == "HTTP/1.1 200 OK\n", lambda: printed() + process.log)
        # As NOTES.txt says: through a port of this machine, with the authority and the key.
        key = base64.b64decode(find(objects, "Secret", "hostbench-keys")["data"]["api_key"])
        with httpx.Client(
            base_url=f"https://localhost:{process.port}",
            verify=trusting(mounted / "run/tls/ca.crt"),
            headers={"Authorization": f"Bearer {key.decode()}"},
        ) as client:
            assert client.get("/healthz").json()["status"] == "ok"
            assert client.get("/hosts").json()["hosts"] == []
    finally:
        process.stop()
        process.client.close()
