"""The Dockerfile and compose.yaml: what images are made of, and how containers are confined."""

import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from hostbench import __version__
from hostbench.model.registry import subsystems
from hostbench.service.__main__ import GRACE_S
from orchestrator.__main__ import GRACE_S as ANSWER_GRACE_S
from orchestrator.core import STOP_S
from tests.stand_ins import TOOLS, misfits

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
# What gives the gpu service a GPU, on top of compose.yaml.
GPUS = {
    name: yaml.safe_load((ROOT / f"compose.{name}.yaml").read_text()) for name in ("gpu", "amd")
}
# Only the net service, on a second machine.
FAR: dict[str, Any] = yaml.safe_load((ROOT / "compose.peer.yaml").read_text())
SUBSYSTEMS = subsystems()
BENCHMARKS = {path.parent.name for path in ROOT.glob("services/*/image.sh")}
SECCOMP = "compose/seccomp-disk.json"
# profiles/seccomp/default.json of github.com/moby/moby v27.5.1, as all from v25.0.0 on have it.
DOCKERS_SECCOMP_SHA256 = "9c1025c88ccaa517b648da571961838744ea2137f176bfe6a48b21294cae9c76"


def stages() -> dict[str, str]:
    """The stages of the Dockerfile by name; the text of each begins with its FROM."""
    texts = re.split(r"^(?=FROM )", DOCKERFILE, flags=re.MULTILINE)[1:]
    return {text.splitlines()[0].split()[-1]: text for text in texts}


def image_script(service: str) -> str:
    """What the image of one service has besides the programs of this project."""
    return (ROOT / f"services/{service}/image.sh").read_text()


def test_images_are_of_debian_alone() -> None:
    bases = set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE))
    assert bases - set(stages()) == {"debian:trixie-slim"}
    installing = DOCKERFILE.count("pip --python") - DOCKERFILE.count("uninstall --yes")
    assert installing == DOCKERFILE.count("--require-hashes")


def lineage(target: str) -> str:
    """The text of a stage and of those that it goes on from."""
    known = stages()
    text = ""
    while target in known:
        text = known[target] + text
        target = known[target].split()[1]
    return text


@pytest.mark.parametrize("target", ["service", "orchestrator", "hostbench"])
def test_an_image_is_not_of_root(target: str) -> None:
    assert re.findall(r"^USER (.*)", lineage(target), re.MULTILINE) == ["10001:10001"]


def test_the_image_of_campaigns_measures_as_the_services_do() -> None:
    """Programs, peers and code are of the same stage, which names no subsystem."""
    assert stages()["service"].split()[1] == stages()["hostbench"].split()[1] == "measuring"
    assert not re.search(rf"\b({'|'.join(BENCHMARKS)})-bench", DOCKERFILE)
    assert stages()["hostbench"].count('ENTRYPOINT ["hostbench"]') == 1


def test_compose_builds_every_image_of_the_dockerfile() -> None:
    built = {name: one["build"] for name, one in SERVICES.items() if "build" in one}
    shared = {"context": ".", "secrets": ["ca_bundle"]}
    assert built == {
        "orchestrator": {**shared, "target": "orchestrator"},
        **{
            name: {**shared, "target": "service", "args": {"SUBSYSTEM": name}}
            for name in BENCHMARKS
        },
    }


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
    # What a service with far ends measures is the host's network.
    in_host_network = name in SUBSYSTEMS and SUBSYSTEMS[name].has_far_ends
    assert service.get("network_mode") == ("host" if in_host_network else None)
    assert "docker.sock" not in str(service)


def test_the_net_service_alone_is_confined_the_same() -> None:
    """And has nothing of the stack but its own: it is on another machine."""
    assert set(FAR["services"]) == {"net"}
    far, ours = dict(FAR["services"]["net"]), dict(SERVICES["net"])
    assert far.pop("volumes") == ["/run/lock:/run/lock"]
    assert set(far.pop("secrets")) - set(ours["secrets"]) == {"server_certificate", "server_key"}
    environment, known = far.pop("environment"), ours["environment"]
    more = {"HOSTBENCH_TLS_CERT_FILE", "HOSTBENCH_TLS_KEY_FILE"}
    assert set(environment) - set(known) == more
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
    environment = FAR["services"]["net"]["environment"]
    for name in ("HOSTBENCH_TLS_CERT_FILE", "HOSTBENCH_TLS_KEY_FILE", "HOSTBENCH_CA_FILE"):
        assert environment[name].startswith("/run/secrets/")
    assert environment["HOSTBENCH_SERVICE_URL"].startswith("https://")
    assert environment["HOSTBENCH_LISTEN"].endswith(f":{SUBSYSTEMS['net'].port}")
    secrets = {name: one["file"] for name, one in FAR["secrets"].items()}
    assert secrets.items() <= {n: one["file"] for n, one in COMPOSE["secrets"].items()}.items()


def test_the_net_service_is_reached_by_a_socket_that_the_orchestrator_shares() -> None:
    net = SERVICES["net"]
    assert "ports" not in net and "networks" not in net
    assert net["environment"]["HOSTBENCH_SERVICE_URL"] == "unix:/run/hostbench/net.sock"
    assert "sockets:/run/hostbench" in net["volumes"] and "sockets" in COMPOSE["volumes"]
    assert "sockets:/run/hostbench:ro" in SERVICES["orchestrator"]["volumes"]
    # A new volume takes over the owner of what the image has there, whichever comes first.
    for text in (stages()["orchestrator"], image_script("net")):
        assert "/run/hostbench\n" in text
    assert net["environment"]["HOSTBENCH_LISTEN"] == "unix:/run/hostbench/net.sock"


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


def test_the_gpu_image_finds_drivers_and_has_none() -> None:
    """NVIDIA's comes with the host's, by the Container Toolkit; others where they are named."""
    environment = SERVICES["gpu"]["environment"]
    assert environment["NVIDIA_DRIVER_CAPABILITIES"] == "compute,utility"
    assert "NVIDIA_VISIBLE_DEVICES" not in environment, "compose.gpu.yaml asks for them"
    text = image_script("gpu")
    assert "echo libnvidia-opencl.so.1 >/etc/OpenCL/vendors/nvidia.icd" in text
    (installed,) = re.findall(r"apt-get install --yes --no-install-recommends (.*)", text)
    assert installed.split() == ["clpeak", "ocl-icd-libopencl1", "$OPENCL_DRIVERS"]
    assert "\nARG OPENCL_DRIVERS=\n" in stages()["measuring"]


def test_the_compiler_of_cuda_is_in_no_image() -> None:
    assert [name for name, text in stages().items() if "nvrtc" in text] == ["program"]
    assert re.findall(r"^COPY --from=program (.*)", DOCKERFILE, re.MULTILINE) == [
        "/src/build/release/*-bench /opt/hostbench/bin/",
        "/src/build/openbla[s] /opt/hostbench/openblas/",
        "/src/build/stand-ins /usr/lib/",
    ]


def test_the_pinned_blas_is_where_the_program_looks_for_it() -> None:
    """$ORIGIN is the folder of the program: build/release, and bin in the image."""
    source = (ROOT / "services/cpu/bench/blas_library.c").read_text()
    assert '"$ORIGIN/../openblas/scipy_openblas32/lib/libscipy_openblas.so"' in source
    makefile = (ROOT / "Makefile").read_text()
    assert "build/openblas/installed: requirements/openblas.txt" in makefile
    copied = re.findall(r"^COPY (?!--)(.*)", stages()["program"], re.MULTILINE)
    for needed in ("scripts/openblas.sh", "requirements/openblas.txt"):
        assert any(needed in line for line in copied), needed


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory with all stand-ins."""
    directory = tmp_path_factory.mktemp("made")
    subprocess.run([ROOT / "scripts/stand-ins.sh", directory], check=True)
    return directory


def linked(tool: str, directory: Path) -> str:
    """What `ldd -r` says of an installed tool, with the libraries of this directory first."""
    path = shutil.which(tool)
    if path is None:
        pytest.skip(f"{tool} is not installed: make peers")
    environment = {**os.environ, "LD_LIBRARY_PATH": str(directory)}
    done = subprocess.run(["ldd", "-r", path], env=environment, capture_output=True, text=True)
    return done.stdout + done.stderr


@pytest.mark.parametrize("tool", TOOLS)
def test_stand_ins_have_every_function_that_a_tool_calls(tool: str, made: Path) -> None:
    listed = linked(tool, made)
    if str(made) not in listed:
        pytest.skip(f"{tool} here links other libraries than that of the images' Debian")
    assert not misfits(tool, listed)


def test_a_function_that_is_missing_from_a_list_is_named(tmp_path: Path, made: Path) -> None:
    if f"{made}/librbd.so.1" not in linked("fio", made):
        pytest.skip("fio here does not link Ceph")
    empty = ["gcc", "-shared", "-Wl,-soname=librbd.so.1", "-o", f"{tmp_path}/librbd.so.1"]
    subprocess.run([*empty, "-x", "c", "/dev/null"], check=True)
    problem = misfits("fio", linked("fio", tmp_path))
    assert re.match(r"fio lacks .*\brbd_stat\b.*: add functions to the lists in ", problem)


def test_fio_starts_with_stand_ins_and_its_engine_refuses(tmp_path: Path, made: Path) -> None:
    if f"{made}/librbd.so.1" not in linked("fio", made):
        pytest.skip("fio here does not link Ceph")
    environment = {**os.environ, "LD_LIBRARY_PATH": str(made)}

    def fio(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["fio", *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True
        )

    started = fio("--version")
    assert started.returncode == 0, started.stderr
    refused = fio("--name=ceph", "--ioengine=rbd", "--size=1m", "--pool=p", "--rbdname=r")
    assert refused.returncode == 1
    assert re.search(r"^hostbench: lib\S+ is left out of this image: ", refused.stderr)


@pytest.mark.parametrize("name", SERVICES)
def test_only_the_control_plane_has_limits(name: str) -> None:
    limits = {"cpus", "mem_limit", "pids_limit"}
    assert limits & set(SERVICES[name]) == (set() if name in BENCHMARKS else limits)


@pytest.mark.parametrize("name", sorted(set(SERVICES) - BENCHMARKS - {"orchestrator"}))
def test_images_of_others_are_pinned(name: str) -> None:
    assert re.search(r":-\d+\.\d+\.\d+[\w-]*@sha256:[0-9a-f]{64}\}$", SERVICES[name]["image"])
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
    port = SUBSYSTEMS[name].port
    if name != "net":
        environment = SERVICES[name]["environment"]
        assert environment["HOSTBENCH_LISTEN"] == f"0.0.0.0:{port}"
        assert environment["HOSTBENCH_SERVICE_URL"] == f"http://{name}:{port}"


def test_each_subsystem_has_its_image_and_each_image_its_subsystem() -> None:
    """And the Makefile builds the program of each."""
    folders = {path.parent.name for path in ROOT.glob("services/*/bench")}
    assert set(SUBSYSTEMS) == BENCHMARKS == folders
    command = ["make", "--dry-run", "--question", "--print-data-base", "help"]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    (names,) = re.findall(r"^SUBSYSTEMS := (.*)$", made, re.MULTILINE)
    assert set(names.split()) == BENCHMARKS


def test_services_of_one_host_have_one_lock_and_ports_of_their_own() -> None:
    assert len({one.port for one in SUBSYSTEMS.values()}) == len(SUBSYSTEMS)
    of_services = [SERVICES[name] for name in BENCHMARKS]
    assert len({one["environment"]["HOSTBENCH_LOCK"] for one in of_services}) == 1
    for one in of_services:
        assert "/run/lock:/run/lock" in one["volumes"]


@pytest.mark.parametrize("name", sorted(BENCHMARKS))
def test_a_service_has_the_volumes_that_its_subsystem_needs(name: str) -> None:
    one, environment = SUBSYSTEMS[name], SERVICES[name]["environment"]
    sockets = ["sockets:/run/hostbench"] if one.has_far_ends else []
    scratch = ["${HOSTBENCH_SCRATCH_VOLUME:-scratch}:/scratch"] if one.has_scratch else []
    assert SERVICES[name]["volumes"] == ["/run/lock:/run/lock", *sockets, *scratch]
    assert environment.get("HOSTBENCH_SCRATCH") == ("/scratch" if one.has_scratch else None)
    variables = [rating.variable for rating in one.ratings()]
    assert [variable for variable in variables if variable not in environment] == []


def test_only_a_subsystem_with_devices_is_given_some() -> None:
    with_devices = {name for name, one in SUBSYSTEMS.items() if one.has_devices}
    assert all(set(GPUS[vendor]["services"]) == with_devices for vendor in GPUS)


def test_what_the_disk_has_to_write_in_is_its_own() -> None:
    assert "scratch" in COMPOSE["volumes"]
    # A new volume takes over owner and mode of what the image has there.
    made = "install --directory --owner=10001 --group=10001 --mode=700 /scratch\n"
    assert made in image_script("disk")


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


def test_the_orchestrator_has_the_time_to_end_its_jobs() -> None:
    given_s = int(SERVICES["orchestrator"]["stop_grace_period"].removesuffix("s"))
    assert given_s > STOP_S + ANSWER_GRACE_S


def test_redis_refuses_before_it_is_killed() -> None:
    (most,) = re.findall(r"^maxmemory (\d+)mb$", SERVICES["redis"]["entrypoint"][2], re.MULTILINE)
    assert int(most) < 0.8 * int(SERVICES["redis"]["mem_limit"].removesuffix("m"))


def test_code_is_readable_whatever_the_umask_of_the_checkout() -> None:
    assert "chmod -R a+rX ." in stages()["code"]


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


# ---- the images of a cluster ----


def made_images(directory: Path, *arguments: str) -> tuple[int, list[str], str]:
    """Exit code of scripts/images.sh, the commands of Docker that it gave, and its errors."""
    docker = directory / "docker"
    docker.write_text(f'#!/bin/sh\necho "$*" >>{directory}/given\n')
    docker.chmod(0o755)
    done = subprocess.run(
        [ROOT / "scripts/images.sh", *arguments],
        env={"PATH": f"{directory}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    given = directory / "given"
    lines = given.read_text().splitlines() if given.exists() else []
    return done.returncode, lines, done.stderr


def test_images_of_a_cluster_have_the_names_that_the_chart_takes(tmp_path: Path) -> None:
    code, given, errors = made_images(tmp_path, "registry.example/bench/", "1")
    names = [f"registry.example/bench/{one}:{__version__}" for one in ("hostbench", "orchestrator")]
    assert code == 0, errors
    for name in names:
        target = name.rpartition("/")[2].partition(":")[0]
        assert f"build --target {target} --tag {name} ." in given
        assert given.index(f"push {name}") > given.index(f"build --target {target} --tag {name} .")
    assert len(given) == 4


def test_images_of_a_cluster_need_a_registry(tmp_path: Path) -> None:
    code, given, errors = made_images(tmp_path, "")
    assert (code, given) == (2, [])
    assert "REGISTRY is missing; give the registry" in errors and errors.count("\n") == 1
