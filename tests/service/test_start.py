"""How a service starts: its environment, and one clear line for what is wrong with it."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from hostbench.service.settings import read_settings
from tests.client.canned_server import certificate
from tests.service.conftest import StartService, check_and_stop
from tests.service.sessions import session
from tests.service.streams import LONG, SHORT, running
from tests.stack.service_process import CHECKOUT, PROGRAMS, SERVICE_KEY, ServiceProcess

# What service.txt has not: an image of a service must do without it.
NOT_IN_THE_IMAGE = {"typer", "rich", "jinja2", "redis", "numpy", "scipy"}
NOT_IN_THE_COMMAND = {"fastapi", "starlette", "uvicorn", "httpx", "structlog", "prometheus_client"}


def refused(tmp_path: Path, *arguments: str, **environment: str | None) -> tuple[int, str]:
    """Exit code and message of a service that does not start."""
    given = {
        **os.environ,
        "HOSTBENCH_SERVICE_KEY": SERVICE_KEY,
        "HOSTBENCH_LOCK": str(tmp_path / "lock"),
        "HOSTBENCH_PROGRAMS": str(PROGRAMS),
        "HOSTBENCH_LISTEN": "127.0.0.1:0",
        **environment,
    }
    ended = subprocess.run(
        [sys.executable, "-m", "hostbench.service", *(arguments or ("cpu",))],
        env={name: value for name, value in given.items() if value is not None},
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=100,
    )
    *before, last = ended.stderr.splitlines()
    assert not before, ended.stderr
    assert last.startswith("hostbench.service: ")
    return ended.returncode, last


@pytest.mark.parametrize(
    ("environment", "code", "parts"),
    [
        ({"HOSTBENCH_SERVICE_KEY": None}, 2, ("HOSTBENCH_SERVICE_KEY_FILE", "make env")),
        ({"HOSTBENCH_SERVICE_KEY": "short"}, 2, ("5 characters", "make env")),
        ({"HOSTBENCH_SERVICE_KEY_FILE": "/none/key"}, 3, ("/none/key", "make env")),
        ({"HOSTBENCH_LISTEN": "8001"}, 2, ("'8001'", "127.0.0.1:8000")),
        ({"HOSTBENCH_LISTEN": "127.0.0.1:99999"}, 2, ("99999", "unix:/")),
        ({"HOSTBENCH_LISTEN": "192.0.2.1:8001"}, 3, ("192.0.2.1:8001", "HOSTBENCH_LISTEN")),
        ({"HOSTBENCH_LISTEN": "unix:/none/cpu.sock"}, 3, ("unix:/none/cpu.sock",)),
        ({"HOSTBENCH_LISTEN": "no.such.host.invalid:80"}, 3, ("HOSTBENCH_LISTEN",)),
        ({"HOSTBENCH_HOST": "a b"}, 2, ("'a b'", "letters")),
        ({"HOSTBENCH_ORCHESTRATOR_URL": "ftp://x"}, 2, ("'ftp://x'", "http://")),
        (
            {"HOSTBENCH_ORCHESTRATOR_URL": "http://x", "HOSTBENCH_LISTEN": "0.0.0.0:8001"},
            2,
            ("HOSTBENCH_SERVICE_URL", "http://cpu:8001"),
        ),
        (
            {"HOSTBENCH_ORCHESTRATOR_URL": "http://x", "HOSTBENCH_SERVICE_URL": "cpu:8001"},
            2,
            ("'cpu:8001'", "http://cpu:8001"),
        ),
        ({"HOSTBENCH_CA_FILE": "/none/ca.pem"}, 3, ("/none/ca.pem",)),
        ({"HOSTBENCH_LOCK": "/none/lock"}, 3, ("/none/lock", "No such file", "HOSTBENCH_LOCK")),
        ({"HOSTBENCH_LOCK": "/dev/null"}, 3, ("/dev/null", "not a regular file")),
        ({"HOSTBENCH_MEMORY_BANDWIDTH": "300G"}, 2, ("'300G'", "byte/s above 0", "unset it")),
        ({"HOSTBENCH_NET_BANDWIDTH": "10G"}, 2, ("'10G'", "byte/s above 0", "unset it")),
        ({"HOSTBENCH_DISK_BANDWIDTH": "fast"}, 2, ("'fast'", "byte/s above 0", "unset it")),
        ({"HOSTBENCH_DISK_IOPS": "500k"}, 2, ("'500k'", "operation/s above 0", "unset it")),
        ({"HOSTBENCH_PROGRAMS": "/none"}, 3, ("/none/cpu-bench", "HOSTBENCH_PROGRAMS")),
    ],
)
@pytest.mark.sampled(4)
def test_a_bad_environment(
    tmp_path: Path, environment: dict[str, str | None], code: int, parts: tuple[str, ...]
) -> None:
    ended, message = refused(tmp_path, **environment)
    assert ended == code, message
    for part in parts:
        assert part in message


@pytest.mark.parametrize("arguments", [("cup",), ("npu",), ("cpu", "mem"), ("--help",)])
def test_bad_arguments(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    code, message = refused(tmp_path, *arguments)
    assert code == 2 and "cpu" in message


def test_a_certificate_file_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("hello")
    code, message = refused(tmp_path, HOSTBENCH_CA_FILE=str(tmp_path / "ca.pem"))
    assert code == 3 and "ca.pem" in message and "PEM" in message


@pytest.mark.parametrize(
    ("environment", "code", "parts"),
    [
        ({"HOSTBENCH_LISTEN": "0.0.0.0:0"}, 2, ("'0.0.0.0'", "in clear", "127.0.0.1")),
        ({"HOSTBENCH_LISTEN": "[::]:0"}, 2, ("'::'", "in clear")),
        ({"HOSTBENCH_LISTEN": "0.0.0.0:0", "HOSTBENCH_BIND": "127.0.0.1"}, 2, ("in clear",)),
        ({"HOSTBENCH_TLS_CERT_FILE": "/etc/hostname"}, 2, ("HOSTBENCH_TLS_KEY_FILE",)),
        ({"HOSTBENCH_TLS_KEY_FILE": "/none/key"}, 3, ("/none/key", "make env")),
        ({"HOSTBENCH_NET_ADDRESS": "224.0.0.1"}, 2, ("'224.0.0.1'", "192.0.2.7")),
        ({"HOSTBENCH_NET_ADDRESS": "bench-2"}, 2, ("'bench-2'", "192.0.2.7")),
        ({"HOSTBENCH_SERVICE_URL": "net"}, 2, ("'net'", "http://net:8004", "net.sock")),
    ],
)
@pytest.mark.sampled(4)
def test_a_bad_environment_of_the_net_service(
    tmp_path: Path, environment: dict[str, str | None], code: int, parts: tuple[str, ...]
) -> None:
    """Which other machines reach: never in clear."""
    ended, message = refused(tmp_path, "net", **environment)
    assert ended == code, message
    for part in parts:
        assert part in message


def test_tls(start_net: StartService, tmp_path: Path) -> None:
    service = start_net(certificate=certificate(tmp_path, "IP:127.0.0.1"))
    assert service.url.startswith("https://")
    with session(service, "s1") as one:
        one.connect()
        assert one.finish()[1]["outcome"] == "done"
    with contextlib.closing(service.remote()) as remote:
        assert remote.host().hostname == "bench-1"
    with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
        httpx.get(f"{service.url}/healthz")
    with pytest.raises(httpx.TransportError):
        httpx.get(f"http://{service.listen}/healthz")


def test_the_address_that_a_service_with_tls_registers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = certificate(tmp_path, "IP:127.0.0.1")
    monkeypatch.setenv("HOSTBENCH_SERVICE_KEY", SERVICE_KEY)
    monkeypatch.setenv("HOSTBENCH_ORCHESTRATOR_URL", "https://192.0.2.7:8000")
    monkeypatch.setenv("HOSTBENCH_LISTEN", "192.0.2.8:8004")
    for name, value in made.of_server.items():
        monkeypatch.setenv(name, value)
    assert read_settings("net").url == "https://192.0.2.8:8004"


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        at = f"127.0.0.1:{taken.getsockname()[1]}"
        code, message = refused(tmp_path, HOSTBENCH_LISTEN=at)
    assert code == 3 and at in message and "in use" in message


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service whose key stands in its environment and in a file."""
    root = tmp_path_factory.mktemp("service")
    (root / "key").write_text("another key, of a file\n")
    one = ServiceProcess(
        root, key="another key, of a file", HOSTBENCH_SERVICE_KEY_FILE=str(root / "key")
    )
    one.start()
    yield one
    check_and_stop(one)


def test_the_key_may_stand_in_a_file(service: ServiceProcess) -> None:
    assert service.client.get("/host").status_code == 200


def test_the_key_is_not_handed_to_programs(service: ServiceProcess) -> None:
    with running(service, "t1", **LONG):
        environment = (Path("/proc") / str(service.wait_for_program()) / "environ").read_bytes()
    assert b"HOSTBENCH_LOCK" in environment and service.key.encode() not in environment


def test_a_unix_socket(start_service: StartService, tmp_path: Path) -> None:
    path = tmp_path / "cpu.sock"
    service = start_service(listen=f"unix:{path}")
    assert service.post(id="t1", **SHORT).status_code == 200
    remote = service.remote()
    assert remote.host().hostname == "bench-1"
    remote.close()
    code, message = refused(tmp_path, HOSTBENCH_LISTEN=f"unix:{path}")
    assert code == 3 and "in use" in message, "the living one keeps it"
    service.kill()
    assert path.exists()
    service.start()
    assert service.post(id="t2", **SHORT).status_code == 200
    assert service.stop() == 0
    assert not path.exists()


def test_a_file_in_the_place_of_the_socket_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    code, message = refused(tmp_path, HOSTBENCH_LISTEN=f"unix:{tmp_path / 'notes'}")
    assert code == 3 and "in use" in message
    assert (tmp_path / "notes").read_text() == "mine"


def test_ipv6(start_service: StartService) -> None:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6) as probe:
            port = probe.getsockname()[1]
    except OSError:
        pytest.skip("no IPv6 here")
    service = start_service(listen=f"[::1]:{port}")
    assert service.client.get("/host").status_code == 200


# Makes every import of the modules named in its arguments fail.
WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in sys.argv[1:]:
            raise ModuleNotFoundError(f"{name} is absent", name=name)
sys.meta_path.insert(0, Absent())
"""


def run_without(modules: set[str], text: str) -> None:
    command = [sys.executable, "-c", WITHOUT + text, *sorted(modules)]
    ended = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def test_a_service_needs_no_more_than_its_requirements() -> None:
    run_without(NOT_IN_THE_IMAGE, "import hostbench.service.app, hostbench.web.server")


def test_the_command_line_needs_nothing_of_the_service() -> None:
    run_without(
        NOT_IN_THE_COMMAND, "import hostbench.cli.app, hostbench.cli.commands, hostbench.run.job"
    )


def test_the_application_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOSTBENCH_SERVICE_KEY", SERVICE_KEY)
    monkeypatch.setenv("HOSTBENCH_LOCK", str(tmp_path / "lock"))
    monkeypatch.setenv("HOSTBENCH_PROGRAMS", str(PROGRAMS))
    from services.cpu.app import app

    assert app.title == "hostbench cpu service"
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, "nothing of it is installed yet"
