"""The Dockerfiles and compose.yaml: what the images share, and how containers are confined."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from hostbench.service.__main__ import GRACE_S
from hostbench.service.settings import PORTS
from hostbench.services import Subsystem

ROOT = Path(__file__).parents[2]
DOCKERFILES = [ROOT / "orchestrator/Dockerfile", *sorted(ROOT.glob("services/*/Dockerfile"))]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
# What gives the gpu service a GPU, on top of compose.yaml.
GPUS = {
    name: yaml.safe_load((ROOT / f"compose.{name}.yaml").read_text()) for name in ("gpu", "amd")
}
# Only the net service, on a second machine.
FAR: dict[str, Any] = yaml.safe_load((ROOT / "compose.peer.yaml").read_text())
BENCHMARKS = {path.parent.name for path in ROOT.glob("services/*/Dockerfile")}
SECCOMP = "compose/seccomp-disk.json"
# profiles/seccomp/default.json of github.com/moby/moby v27.5.1, as all from v25.0.0 on have it.
DOCKERS_SECCOMP_SHA256 = "9c1025c88ccaa517b648da571961838744ea2137f176bfe6a48b21294cae9c76"


def shared(dockerfile: Path) -> str:
    """What stands above the line of dashes."""
    above, line, _ = dockerfile.read_text().partition("\n# ------")
    assert line, dockerfile
    return above


@pytest.mark.parametrize("dockerfile", DOCKERFILES[1:])
def test_the_first_stages_are_the_same_everywhere(dockerfile: Path) -> None:
    assert shared(dockerfile) == shared(DOCKERFILES[0])


@pytest.mark.parametrize("dockerfile", DOCKERFILES)
def test_an_image_is_of_debian_alone_and_not_root(dockerfile: Path) -> None:
    text = dockerfile.read_text()
    stages = set(re.findall(r"^FROM .* AS (\w+)$", text, re.MULTILINE))
    bases = set(re.findall(r"^FROM (\S+)", text, re.MULTILINE))
    assert bases - stages == {"debian:trixie-slim"}
    assert re.findall(r"^USER (.*)", text, re.MULTILINE)[-1:] == ["10001:10001"]
    assert "--require-hashes" in text


@pytest.mark.parametrize("name", SERVICES)
def test_containers_are_confined(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] and service["cap_drop"] == ["ALL"]
    profile = [f"seccomp=./{SECCOMP}"] if name == "disk" else []
    assert service["security_opt"] == ["no-new-privileges:true", *profile]
    forbidden = {"cap_add", "devices", "group_add", "ipc", "pid", "privileged"}
    # Each of these stops a start where there is no GPU.
    forbidden |= {"deploy", "gpus", "runtime"}
    assert not forbidden & set(service)
    # What the net service measures is the host's network.
    assert service.get("network_mode") == ("host" if name == "net" else None)
    assert "docker.sock" not in str(service)


def test_the_net_service_alone_is_confined_the_same() -> None:
    """And has nothing of the stack but its own: it is on another machine."""
    assert set(FAR["services"]) == {"net"}
    far, ours = dict(FAR["services"]["net"]), dict(SERVICES["net"])
    assert far.pop("volumes") == ["/run/lock:/run/lock"]
    assert set(far.pop("secrets")) - set(ours["secrets"]) == {"server_certificate", "server_key"}
    told, known = far.pop("environment"), ours["environment"]
    more = {"HOSTBENCH_LISTEN", "HOSTBENCH_TLS_CERT_FILE", "HOSTBENCH_TLS_KEY_FILE"}
    assert set(told) - set(known) == more
    left_out = set(ours) - set(far)
    assert left_out == {
        "volumes",
        "secrets",
        "environment",
        "depends_on",
        "extra_hosts",
        "shm_size",
    }
    assert far == {name: value for name, value in ours.items() if name not in left_out}
    assert far["image"] == ours["image"] and far["build"] == ours["build"]


def test_the_net_service_alone_speaks_tls_alone() -> None:
    told = FAR["services"]["net"]["environment"]
    for name in ("HOSTBENCH_TLS_CERT_FILE", "HOSTBENCH_TLS_KEY_FILE", "HOSTBENCH_CA_FILE"):
        assert told[name].startswith("/run/secrets/")
    assert told["HOSTBENCH_SERVICE_URL"].startswith("https://")
    assert told["HOSTBENCH_LISTEN"].endswith(f":{PORTS[Subsystem.NET]}")
    secrets = {name: one["file"] for name, one in FAR["secrets"].items()}
    assert secrets.items() <= {n: one["file"] for n, one in COMPOSE["secrets"].items()}.items()


def test_the_net_service_is_reached_by_a_socket_that_the_orchestrator_shares() -> None:
    net = SERVICES["net"]
    assert "ports" not in net and "networks" not in net
    assert net["environment"]["HOSTBENCH_SERVICE_URL"] == "unix:/run/hostbench/net.sock"
    assert "sockets:/run/hostbench" in net["volumes"] and "sockets" in COMPOSE["volumes"]
    assert "sockets:/run/hostbench:ro" in SERVICES["orchestrator"]["volumes"]
    # A new volume takes over the owner of what the image has there, whichever comes first.
    for name in ("orchestrator", "services/net"):
        assert "/run/hostbench" in (ROOT / name / "Dockerfile").read_text()
    text = (ROOT / "services/net/Dockerfile").read_text()
    assert "HOSTBENCH_LISTEN=unix:/run/hostbench/net.sock\n" in text


def test_the_net_service_finds_the_orchestrator_where_it_is_published() -> None:
    published_at = "${HOSTBENCH_BIND:-127.0.0.1}:${HOSTBENCH_PORT:-8000}:8000"
    assert SERVICES["orchestrator"]["ports"] == [published_at]
    url = SERVICES["net"]["environment"]["HOSTBENCH_ORCHESTRATOR_URL"]
    assert url.endswith("://${HOSTBENCH_TLS_NAME:-orchestrator}:${HOSTBENCH_PORT:-8000}")
    assert SERVICES["net"]["extra_hosts"] == [
        "${HOSTBENCH_TLS_NAME:-orchestrator}=${HOSTBENCH_BIND:-127.0.0.1}"
    ]


@pytest.mark.parametrize("vendor", GPUS)
def test_what_gives_a_gpu_changes_nothing_else(vendor: str) -> None:
    changes = {"gpu": {"deploy"}, "amd": {"image", "build", "devices", "group_add"}}
    assert set(GPUS[vendor]) == {"services"} and set(GPUS[vendor]["services"]) == {"gpu"}
    assert set(GPUS[vendor]["services"]["gpu"]) == changes[vendor]


def last_stage(service: str) -> str:
    """What the image itself is made of."""
    text = (ROOT / f"services/{service}/Dockerfile").read_text()
    return re.split(r"^FROM ", text, flags=re.MULTILINE)[-1]


def test_the_gpu_image_finds_drivers_and_has_none() -> None:
    """NVIDIA's comes with the host's, by the Container Toolkit; others where they are named."""
    text = last_stage("gpu")
    assert "ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility " in text
    assert "echo libnvidia-opencl.so.1 >/etc/OpenCL/vendors/nvidia.icd" in text
    (installed,) = re.findall(r"apt-get install --yes --no-install-recommends (.*) && ", text)
    assert installed.split() == ["clpeak", "ocl-icd-libopencl1", "$OPENCL_DRIVERS"]
    assert "\nARG OPENCL_DRIVERS=\n" in text
    assert "NVIDIA_VISIBLE_DEVICES" not in text, "compose.gpu.yaml asks for them, and no image does"


def test_the_compiler_of_cuda_is_in_no_image() -> None:
    text = (ROOT / "services/gpu/Dockerfile").read_text()
    assert "scripts/nvrtc.sh build/gpu/nvrtc" in text
    assert "nvrtc" not in last_stage("gpu")
    others = [path.read_text() for path in DOCKERFILES if path.parent.name != "gpu"]
    assert not any("nvrtc" in other for other in others)


@pytest.mark.parametrize("name", SERVICES)
def test_only_the_control_plane_has_limits(name: str) -> None:
    limits = {"cpus", "mem_limit", "pids_limit"}
    assert limits & set(SERVICES[name]) == (set() if name in BENCHMARKS else limits)


@pytest.mark.parametrize("name", sorted(set(SERVICES) - BENCHMARKS - {"orchestrator"}))
def test_images_of_others_are_pinned(name: str) -> None:
    assert re.search(r":-\d+\.\d+\.\d+[\w-]*\}$", SERVICES[name]["image"])
    assert SERVICES[name]["user"].partition(":")[0] not in ("", "0", "root")


def published() -> set[str]:
    return {name for name, service in SERVICES.items() if "ports" in service}


def test_only_the_api_and_the_boards_are_published() -> None:
    assert published() == {"orchestrator", "grafana"}
    for name in published():
        assert all(
            port.startswith("${HOSTBENCH_BIND:-127.0.0.1}:") for port in SERVICES[name]["ports"]
        )


def test_a_benchmark_reaches_the_orchestrator_alone() -> None:
    internal = {name for name, network in COMPOSE["networks"].items() if network.get("internal")}
    assert internal == {"queue", "control", "services"}
    bridged = BENCHMARKS - {"net"}
    for name in bridged:
        assert SERVICES[name]["networks"] == ["services"]
    assert members("services") == bridged | {"orchestrator"}


def test_the_orchestrator_alone_reaches_redis() -> None:
    assert SERVICES["redis"]["networks"] == ["queue"]
    assert members("queue") == {"redis", "orchestrator"}


@pytest.mark.parametrize("name", sorted(BENCHMARKS))
def test_a_service_is_where_it_says(name: str) -> None:
    """At the port that is its own outside of containers too."""
    port = PORTS[Subsystem(name)]
    text = (ROOT / f"services/{name}/Dockerfile").read_text()
    assert f"\nEXPOSE {port}\n" in text
    if name != "net":
        assert f"HOSTBENCH_LISTEN=0.0.0.0:{port}\n" in text
        url = SERVICES[name]["environment"]["HOSTBENCH_SERVICE_URL"]
        assert url == f"http://{name}:{port}"
    assert f'CMD ["python3", "-m", "hostbench.service", "{name}"]' in text
    assert f"SUBSYSTEMS={name}\n" in text and f"release/{name}-bench " in text


def test_services_of_one_host_have_one_lock_and_ports_of_their_own() -> None:
    assert len(set(PORTS.values())) == len(Subsystem)
    of_services = [SERVICES[name] for name in BENCHMARKS]
    assert len({one["environment"]["HOSTBENCH_LOCK"] for one in of_services}) == 1
    for one in of_services:
        assert "/run/lock:/run/lock" in one["volumes"]


def test_the_disk_alone_has_a_place_to_write() -> None:
    more = {
        name: [volume for volume in SERVICES[name]["volumes"] if "lock" not in volume]
        for name in BENCHMARKS
    }
    assert more.pop("net") == ["sockets:/run/hostbench"]
    assert more.pop("disk") == ["${HOSTBENCH_SCRATCH_VOLUME:-scratch}:/scratch"]
    assert not any(more.values())
    assert "scratch" in COMPOSE["volumes"]
    assert SERVICES["disk"]["environment"]["HOSTBENCH_SCRATCH"] == "/scratch"
    text = (ROOT / "services/disk/Dockerfile").read_text()
    # A new volume takes over owner and mode of what the image has there.
    assert "install --directory --owner=10001 --group=10001 --mode=700 /scratch" in text


def test_the_system_calls_of_the_disk_are_dockers_and_io_uring() -> None:
    """What Docker forbids by default stays forbidden, byte by byte, but for three calls."""
    text = (ROOT / SECCOMP).read_text()
    rules = json.loads(text)["syscalls"]
    ours = rules[-1]
    assert ours.pop("comment")
    assert ours == {
        "names": ["io_uring_enter", "io_uring_register", "io_uring_setup"],
        "action": "SCMP_ACT_ALLOW",
    }
    before, comma, added = text.rpartition(",\n\t\t{\n")
    assert comma and json.loads("{" + added.removesuffix("\t]\n}\n"))["names"] == ours["names"]
    original = f"{before}\n\t]\n}}"
    assert hashlib.sha256(original.encode()).hexdigest() == DOCKERS_SECCOMP_SHA256


def members(network: str) -> set[str]:
    return {name for name, service in SERVICES.items() if network in service.get("networks", [])}


def test_nothing_is_published_where_the_orchestrator_refuses_to_be() -> None:
    healthy = {"orchestrator": {"condition": "service_healthy"}}
    for name in published() - {"orchestrator"}:
        assert SERVICES[name]["depends_on"] == healthy


@pytest.mark.parametrize("name", sorted(BENCHMARKS))
def test_a_trial_has_the_time_to_end(name: str) -> None:
    assert int(SERVICES[name]["stop_grace_period"].removesuffix("s")) > GRACE_S


def test_redis_refuses_before_it_is_killed() -> None:
    (most,) = re.findall(r"^maxmemory (\d+)mb$", SERVICES["redis"]["entrypoint"][2], re.MULTILINE)
    assert int(most) < 0.8 * int(SERVICES["redis"]["mem_limit"].removesuffix("m"))


@pytest.mark.parametrize("dockerfile", DOCKERFILES)
def test_code_is_readable_whatever_the_umask_of_the_checkout(dockerfile: Path) -> None:
    (code,) = re.findall(
        r"^FROM base AS code$.*?(?=^FROM|^# ---)", dockerfile.read_text(), re.M | re.S
    )
    assert "chmod -R a+rX ." in code


def test_every_secret_is_made_by_make_env() -> None:
    made = (ROOT / "scripts/make-env.sh").read_text()
    files = [secret["file"] for name, secret in COMPOSE["secrets"].items() if name != "ca_bundle"]
    assert files
    for file in files:
        assert re.search(rf"\b{Path(file).name}\b", made), file
    used = {name for service in SERVICES.values() for name in service.get("secrets", [])}
    assert used == set(COMPOSE["secrets"]) - {"ca_bundle"}


def test_the_key_of_the_ca_goes_nowhere() -> None:
    for name in ("compose.yaml", "compose.peer.yaml"):
        assert "ca.key" not in (ROOT / name).read_text()


def test_the_example_explains_every_variable() -> None:
    files = [ROOT / name for name in ("compose.yaml", "compose.gpu.yaml", "compose.amd.yaml")]
    text = "".join(path.read_text() for path in files)
    used = set(re.findall(r"\$\{(HOSTBENCH_\w+)", text))
    explained = dict(
        re.findall(r"^(HOSTBENCH_\w+)=(.*)$", (ROOT / ".env.example").read_text(), re.MULTILINE)
    )
    assert used | {"HOSTBENCH_CERTIFICATE_NAMES"} == set(explained) | {"HOSTBENCH_SECRETS"}
    defaults = re.findall(r"\$\{(HOSTBENCH_\w+):-([^}]+)\}", (ROOT / "compose.yaml").read_text())
    for name, default in defaults:
        assert explained.get(name, default) in (default, ""), name


# ---- what docs/operations.md tells to put into an override file ----


class _Reset:
    """Compose's tag !reset: the value of the file below goes, and the tag's own does not count."""


class _Override(yaml.SafeLoader):
    """Reads override files."""


_Override.add_constructor("!reset", lambda loader, node: _Reset())


def documented_override(part: str) -> dict[str, Any]:
    """The one override file of this part of the page."""
    page = (ROOT / "docs/operations.md").read_text()
    (_, below) = page.split(f"\n## {part}\n")
    (block,) = re.findall(r"```\n(services:\n.*?)```", below.split("\n## ")[0], re.DOTALL)
    found: dict[str, Any] = yaml.load(block, _Override)
    return found


def merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """As Compose merges mappings: key by key, and what is reset is not there."""
    found = dict(below)
    for name, value in above.items():
        if isinstance(value, _Reset):
            found.pop(name, None)
        elif isinstance(value, dict) and isinstance(found.get(name), dict):
            found[name] = merged(found[name], value)
        else:
            found[name] = value
    return found


def test_the_net_service_in_a_bridge_reaches_the_orchestrator() -> None:
    """By its name in their network: nothing else may give it that name."""
    override = documented_override("The network in a container")
    net = merged(SERVICES, override["services"])["net"]
    assert "network_mode" not in net, "Compose refuses it beside networks"
    assert "extra_hosts" not in net, "it would find the orchestrator at its own loopback"
    assert set(net["networks"]) <= set(SERVICES["orchestrator"]["networks"])
    assert net["environment"]["HOSTBENCH_ORCHESTRATOR_URL"] == "http://orchestrator:8000"
    assert {"HOSTBENCH_SERVICE_URL", "HOSTBENCH_LOCK"} <= set(net["environment"])


def test_without_the_override_it_needs_the_name() -> None:
    assert SERVICES["net"]["extra_hosts"], "the host's network knows no names of containers"
