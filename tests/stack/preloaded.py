"""Servers that are forked from a process which has imported their modules: the imports are two
thirds of what a start costs, and a run of all tests starts some three hundred servers.

What is forked runs the module's own `main` with the directory, environment and output that it was
given, as `python -m MODULE` would. /proc shows the command line and the environment of the process
that it was forked from.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any

CHECKOUT = Path(__file__).parents[2]
# What can be run, and what these import once they have read their settings.
PACKAGES = ("hostbench.service", "orchestrator")
LATER = ("hostbench.service.app", "orchestrator.app", "hostbench.web.server")
REQUEST_BYTES = 1 << 20


class Forked:
    """One of them, with the part of subprocess.Popen that the tests use."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._ended = os.pidfd_open(pid)

    def poll(self) -> int | None:
        """Its exit code, -N if signal N ended it; None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, once it has ended."""
        if self.returncode is None:
            if not select.select([self._ended], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            self.returncode = int(_ask({"wait": self.pid}))
            os.close(self._ended)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Nothing happens where it has ended."""
        if self.poll() is None:
            signal.pidfd_send_signal(self._ended, number)

    def kill(self) -> None:
        """Ends it as a crash does."""
        self.send_signal(signal.SIGKILL)


Server = Forked | subprocess.Popen[bytes]


def start(
    package: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    log: IO[bytes],
    prefix: Sequence[str] = (),
) -> Server:
    """Runs `python -m PACKAGE` of `PACKAGES` in the checkout; `log` gets what it says. One that has
    a command before it (`prefix`), or other modules to find than the tests, is not forked."""
    if not prefix and environment.get("PYTHONPATH") == os.environ.get("PYTHONPATH"):
        request = {"run": package, "arguments": arguments, "environment": environment}
        return Forked(int(_ask(request, log.fileno())))
    return subprocess.Popen(
        [*prefix, sys.executable, "-m", package, *arguments],
        cwd=CHECKOUT,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        env=environment,
    )


def _ask(request: Mapping[str, Any], *files: int) -> str:
    connection = _server()
    socket.send_fds(connection, [json.dumps(request).encode()], files)
    return connection.recv(REQUEST_BYTES).decode()


@cache
def _server() -> socket.socket:
    """The connection to the process that forks, one for each process of pytest; it ends with the
    connection."""
    own, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, REQUEST_BYTES)
    with its:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.stack.preloaded", str(its.fileno())],
            cwd=CHECKOUT,
            stdin=subprocess.DEVNULL,
            pass_fds=[its.fileno()],
        )

    def end() -> None:
        own.close()
        process.wait()

    atexit.register(end)
    return own


def _serve(connection: socket.socket) -> int:
    """Answers requests until the other end is closed. Returns the exit code, in what was forked,
    too."""
    for module in (*map(_main_of, PACKAGES), *LATER):
        importlib.import_module(module)
    gc.freeze()
    while True:
        text, files, _, _ = socket.recv_fds(connection, REQUEST_BYTES, 1)
        if not text:
            return 0
        request = json.loads(text)
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            answer = os.waitstatus_to_exitcode(status)
        else:
            answer = os.fork()
            if answer == 0:
                connection.close()
                return _run(request, *files)
            os.close(files[0])
        connection.send(str(answer).encode())


def _run(request: dict[str, Any], log: int) -> int:
    for stream in (sys.stdout, sys.stderr):
        os.dup2(log, stream.fileno())
    os.close(log)
    os.environ.clear()
    os.environ.update(request["environment"])
    module, arguments = sys.modules[_main_of(request["run"])], request["arguments"]
    sys.argv = [str(module.__file__), *arguments]
    return int(module.main(arguments) if arguments else module.main())


def _main_of(package: str) -> str:
    return f"{package}.__main__"


if __name__ == "__main__":
    sys.exit(_serve(socket.socket(fileno=int(sys.argv[1]))))
