"""Whether the server of this container answers GET /healthz with 200: its health check.

    python3 -I -S healthy.py

A script of the standard library alone, and of little of it: the check shares the host with the
trials. It finds the server as that finds its own address: HOSTBENCH_LISTEN, with TLS where
HOSTBENCH_TLS_CERT_FILE is set.
"""

import os
import socket
import sys

TIMEOUT_S = 4.0


def connect(listen: str) -> socket.socket:
    """Connect to HOST:PORT or unix:/PATH; for a server on every address, use this host's own."""
    if listen.startswith("unix:"):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(TIMEOUT_S)
        connection.connect(listen.removeprefix("unix:"))
        return connection
    host, _, port = listen.rpartition(":")
    host = {"0.0.0.0": "127.0.0.1", "[::]": "::1"}.get(host, host.strip("[]"))  # noqa: S104
    return socket.create_connection((host, int(port)), TIMEOUT_S)


def status_line(connection: socket.socket) -> str:
    """Return the first line of the answer."""
    connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    with connection.makefile("rb") as answer:
        return answer.readline(200).decode("latin-1").strip()


def secured(connection: socket.socket, certificate: str) -> socket.socket:
    """Return the connection with TLS, to the server with exactly this certificate, whatever its
    name."""
    import ssl

    context = ssl.create_default_context(cafile=certificate)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context.wrap_socket(connection)


def main() -> int:
    """Return 0: healthy; 1: not, with a line on standard output, which `docker inspect` shows."""
    certificate = os.environ.get("HOSTBENCH_TLS_CERT_FILE")
    try:
        with connect(os.environ["HOSTBENCH_LISTEN"]) as connection:
            line = status_line(secured(connection, certificate) if certificate else connection)
    except OSError as error:
        line = str(error)
    sys.stdout.write(f"{line}\n")
    return 0 if line.split()[1:2] == ["200"] else 1


if __name__ == "__main__":
    sys.exit(main())
