"""scripts/make-far-host.sh makes what a second machine needs, and nothing more."""

import ssl
import subprocess
import tarfile
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
NAME, ADDRESS, BIND = "bench-2", "192.0.2.8", "192.0.2.7"


def set_up(directory: Path, **settings: str) -> Path:
    """A directory with .env and secrets/ of a stack that other machines reach."""
    subprocess.run([SCRIPTS / "make-env.sh", directory], check=True, stdout=subprocess.DEVNULL)
    given = {"HOSTBENCH_BIND": BIND, "HOSTBENCH_TLS": "1"} | settings
    path = directory / ".env"
    lines = [line for line in path.read_text().splitlines() if line.partition("=")[0] not in given]
    lines += [f"{name}={value}" for name, value in given.items()]
    path.write_text("\n".join(lines) + "\n")
    return directory


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return set_up(tmp_path_factory.mktemp("stack"))


def run(
    directory: Path, name: str = NAME, address: str = ADDRESS
) -> subprocess.CompletedProcess[str]:
    command = [str(SCRIPTS / "make-far-host.sh"), name, address, str(directory)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture(scope="module")
def far(stack: Path) -> Path:
    """What the second machine has once it has unpacked it."""
    ended = run(stack)
    assert ended.returncode == 0, ended.stderr
    assert "compose.peer.yaml up" in ended.stdout
    directory = stack / "far"
    directory.mkdir()
    (command,) = [line.split() for line in ended.stdout.splitlines() if line.startswith("  tar ")]
    assert command.pop() == f"{NAME}.tar"
    subprocess.run([*command, stack / f"{NAME}.tar"], cwd=directory, check=True)
    return directory


def test_what_it_holds(far: Path) -> None:
    """Nothing with which one could submit jobs or make certificates."""
    files = sorted(str(path.relative_to(far)) for path in far.rglob("*") if path.is_file())
    secrets = ["ca.pem", "server.key", "server.pem", "service_key"]
    assert files == [".env", *(f"secrets/{name}" for name in secrets)]


def test_only_its_owner_reads_it(far: Path, stack: Path) -> None:
    assert (stack / f"{NAME}.tar").stat().st_mode & 0o077 == 0
    assert (far / "secrets").stat().st_mode & 0o077 == 0
    assert (far / "secrets/server.key").stat().st_mode & 0o777 == 0o444, "for containers' users"


def test_its_settings(far: Path) -> None:
    text = (far / ".env").read_text()
    settings = dict(line.split("=", 1) for line in text.splitlines() if not line.startswith("#"))
    assert settings["HOSTBENCH_HOST"] == NAME and settings["HOSTBENCH_ADDRESS"] == ADDRESS
    assert settings["HOSTBENCH_ORCHESTRATOR_URL"] == f"https://{BIND}:8000"
    compose = (SCRIPTS.parent / "compose.peer.yaml").read_text()
    assert all(f"${{{name}" in compose for name in settings)


def test_its_certificate_is_for_its_address(far: Path, stack: Path) -> None:
    ca = (far / "secrets/ca.pem").read_bytes()
    assert ca == (stack / "secrets/ca.pem").read_bytes()
    assert (far / "secrets/server.key").read_bytes() != (stack / "secrets/server.key").read_bytes()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(far / "secrets/server.pem", far / "secrets/server.key")
    checked = subprocess.run(
        ["openssl", "verify", "-CAfile", "ca.pem", "-verify_ip", ADDRESS, "server.pem"],
        cwd=far / "secrets",
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stderr


def test_its_key_is_its_own(far: Path, stack: Path) -> None:
    def keys() -> dict[str, str]:
        lines = (stack / "secrets/host_keys").read_text().splitlines()
        return dict(line.split() for line in lines if not line.startswith("#"))

    before = keys()
    here = (stack / "secrets/service_key").read_text().strip()
    assert before[NAME] == (far / "secrets/service_key").read_text().strip() != here
    assert here in before.values() and len(before) == 2
    # Made again it is the same, and `make env` leaves it.
    run(stack)
    subprocess.run([SCRIPTS / "make-env.sh", stack], check=True, stdout=subprocess.DEVNULL)
    assert keys() == before
    own = run(stack, name=next(name for name in before if name != NAME))
    assert own.returncode == 2 and "is this machine's own" in own.stderr


def test_ipv6(tmp_path: Path) -> None:
    set_up(tmp_path, HOSTBENCH_BIND="[2001:db8::7]", HOSTBENCH_PORT="8443")
    assert run(tmp_path, address="2001:db8::8").returncode == 0
    with tarfile.open(tmp_path / f"{NAME}.tar") as tar:
        file = tar.extractfile(".env")
        assert file is not None
        text = file.read().decode()
    assert "HOSTBENCH_ADDRESS=[2001:db8::8]\n" in text
    assert "HOSTBENCH_ORCHESTRATOR_URL=https://[2001:db8::7]:8443\n" in text


@pytest.mark.parametrize(
    ("name", "address", "part"),
    [
        ("", ADDRESS, "make farhost NAME="),
        ("a b", ADDRESS, "'a b'"),
        (NAME, "", "make farhost NAME="),
        (NAME, "bench-2.example.org", "not an IP address"),
    ],
)
def test_bad_arguments(stack: Path, name: str, address: str, part: str) -> None:
    ended = run(stack, name, address)
    assert ended.returncode == 2 and len(ended.stderr.splitlines()) == 1
    assert part in ended.stderr


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"HOSTBENCH_TLS": ""}, "HOSTBENCH_TLS is not set"),
        ({"HOSTBENCH_BIND": "127.0.0.1"}, "HOSTBENCH_BIND is '127.0.0.1'"),
        ({"HOSTBENCH_BIND": ""}, "HOSTBENCH_BIND is ''"),
    ],
)
def test_an_orchestrator_that_the_second_machine_cannot_reach(
    tmp_path: Path, settings: dict[str, str], part: str
) -> None:
    set_up(tmp_path, **settings)
    ended = run(tmp_path)
    assert ended.returncode == 3 and part in ended.stderr
    assert not (tmp_path / f"{NAME}.tar").exists()


def test_without_a_stack(tmp_path: Path) -> None:
    ended = run(tmp_path)
    assert ended.returncode == 3 and "make env" in ended.stderr


def test_with_somebody_elses_authority(tmp_path: Path) -> None:
    set_up(tmp_path)
    (tmp_path / "secrets/ca.key").unlink()
    ended = run(tmp_path)
    assert ended.returncode == 3 and "secrets/ca.key is missing" in ended.stderr
