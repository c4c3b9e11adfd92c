"""hostbench/web/healthy.py, the health check of our containers, against real servers."""

import os
import socketserver
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import hostbench.web

CHECK = Path(hostbench.web.__file__).parent / "healthy.py"


class Answer(BaseHTTPRequestHandler):
    """Answers GET /healthz with the status it is given, everything else with 404."""

    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status if self.path == "/healthz" else 404)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


class UnixServer(socketserver.UnixStreamServer):
    def get_request(self) -> tuple[object, tuple[str, int]]:  # type: ignore[override]
        return super().get_request()[0], ("", 0)


@contextmanager
def serving(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def check(listen: str, certificate: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {"HOSTBENCH_LISTEN": listen, "HOSTBENCH_TLS_CERT_FILE": str(certificate or "")}
    return subprocess.run(
        [sys.executable, "-I", "-S", CHECK], env=environment, capture_output=True, text=True
    )


def certificate(directory: Path, name: str) -> Path:
    """A certificate with its key in one file."""
    path = directory / f"{name}.pem"
    request = (
        f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN={name}"
    )
    made = subprocess.run(
        [*request.split(), "-keyout", "-", "-out", "-"], check=True, capture_output=True
    )
    path.write_bytes(made.stdout)
    return path


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1)])
def test_the_status_decides(monkeypatch: pytest.MonkeyPatch, status: int, code: int) -> None:
    monkeypatch.setattr(Answer, "status", status)
    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server, serving(server):
        ended = check(f"0.0.0.0:{server.server_port}")
    assert ended.returncode == code
    assert str(status) in ended.stdout


def test_no_server_is_unhealthy_and_says_why() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        port = server.server_port
    ended = check(f"127.0.0.1:{port}")
    assert ended.returncode == 1
    assert "refused" in ended.stdout and not ended.stderr


def test_a_unix_socket(tmp_path: Path) -> None:
    os.chdir(tmp_path)
    with serving(UnixServer("socket", Answer)):
        assert check(f"unix:{tmp_path}/socket").returncode == 0


def test_tls_with_just_that_certificate(tmp_path: Path) -> None:
    own, other = certificate(tmp_path, "own"), certificate(tmp_path, "other")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own)
    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        with serving(server):
            listen = f"127.0.0.1:{server.server_port}"
            assert check(listen, own).returncode == 0
            assert "certificate verify failed" in check(listen, other).stdout
            assert check(listen).returncode == 1
