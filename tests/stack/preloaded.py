"""Servers and commands that are forked from a process which has imported their modules: the imports
are two thirds of what a start costs, and a run of all tests starts some three hundred servers and
half as many commands.

What is forked runs `python -m PACKAGE` with the directory, environment and output that it was
given; its standard input is empty. /proc shows the command line and the environment of the process
that it was forked from. What else a process inherits, such as limits, is that of pytest when the
first one was forked.
"""

import atexit
import contextlib
import gc
import importlib
import io
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any, TextIO

CHECKOUT = Path(__file__).parents[2]
# What can be run, and what it imports, most of it once it has read its settings or arguments.
MODULES = {
    "hostbench": (
        "hostbench.cli.commands",
        "hostbench.cli.doctor",
        "hostbench.cli.listing",
        "hostbench.cli.plan_view",
        "hostbench.cli.render_jobs",
        "hostbench.cli.stack",
        "hostbench.cli.watching",
        "hostbench.doctor.examination",
        "hostbench.page.job",
        "hostbench.report.html",
        "hostbench.report.markdown",
    ),
    "hostbench.service": ("hostbench.service.app", "hostbench.web.server"),
    "orchestrator": ("orchestrator.app", "hostbench.web.server"),
}
REQUEST_BYTES = 1 << 20
PIECE_BYTES = 1 << 16
# Before a test changes it.
ENVIRONMENT = dict(os.environ)


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
        """End it as a crash does."""
        self.send_signal(signal.SIGKILL)


Server = Forked | subprocess.Popen[bytes]


def start(
    package: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    log: IO[bytes],
    prefix: Sequence[str] = (),
) -> Server:
    """Run a server of `MODULES` in the checkout; `log` gets what it says. One that has a command
    before it (`prefix`), or that `can_fork` refuses, is not forked."""
    if not prefix and can_fork(environment):
        return _fork(package, arguments, environment, CHECKOUT, *[log.fileno()] * 2)
    return subprocess.Popen(
        [*prefix, sys.executable, "-m", package, *arguments],
        cwd=CHECKOUT,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        env=environment,
    )


def run(
    package: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    directory: Path,
    timeout_s: float,
) -> tuple[int, str, str]:
    """Run a command of `MODULES`, where `can_fork` says so; its exit code, output and errors.
    Kill it and raise TimeoutExpired when it takes longer."""
    until_s = time.monotonic() + timeout_s
    # No files: the name /dev/stdout would open them anew.
    ends, its_ends = zip(os.pipe(), os.pipe(), strict=True)
    with contextlib.ExitStack() as files:
        pipes = [files.enter_context(os.fdopen(end, "rb", buffering=0)) for end in ends]
        try:
            process = _fork(package, arguments, environment, directory, *its_ends)
        finally:
            for end in its_ends:
                os.close(end)
        try:
            texts = _read_to_the_end(pipes, until_s)
            code = process.wait(max(0, until_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise subprocess.TimeoutExpired([package, *arguments], timeout_s) from None
    output, errors = (text.decode().replace("\r\n", "\n") for text in texts)
    return code, output, errors


def _read_to_the_end(pipes: Sequence[io.FileIO], until_s: float) -> list[bytes]:
    """Until every process that can write to them has ended."""
    output, left = dict.fromkeys(pipes, b""), set(pipes)
    while left:
        ready, _, _ = select.select(left, [], [], max(0, until_s - time.monotonic()))
        if not ready:
            raise subprocess.TimeoutExpired("its output", 0)
        for pipe in ready:
            output[pipe] += (piece := pipe.read(PIECE_BYTES))
            if not piece:
                left.remove(pipe)
    return list(output.values())


def can_fork(environment: Mapping[str, str]) -> bool:
    """Whether Python and the loader read nothing else from it when a process starts than from that
    of the tests."""
    return _read_at_start(environment) == _read_at_start(ENVIRONMENT)


def _read_at_start(environment: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    prefixes = ("PYTHON", "LANG", "LC_", "LD_")
    found = {name: value for name, value in environment.items() if name.startswith(prefixes)}
    path = found.pop("PYTHONPATH", "").split(os.pathsep)
    # The checkout is in the path of all.
    return found, [place for place in path if place not in ("", str(CHECKOUT))]


def _fork(
    package: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    directory: Path,
    *streams: int,
) -> Forked:
    """`streams`: its standard output and error."""
    request = {
        "run": package,
        "arguments": arguments,
        "environment": dict(environment),
        "directory": str(directory),
    }
    return Forked(int(_ask(request, *streams)))


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
            env=ENVIRONMENT,
        )

    def end() -> None:
        own.close()
        process.wait()

    atexit.register(end)
    return own


def _serve(connection: socket.socket) -> None:
    """Answer requests until the other end is closed; in what was forked, run it."""
    code: int | None = None

    def end() -> None:
        if code is not None:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    # After all else that is done at the end, but before the modules are taken apart, which takes
    # twice as long as a short command.
    atexit.register(end)
    while True:
        text, files, _, _ = socket.recv_fds(connection, REQUEST_BYTES, 2)
        if not text:
            return
        request = json.loads(text)
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            answer = os.waitstatus_to_exitcode(status)
        else:
            for module in MODULES[request["run"]]:
                importlib.import_module(module)
            gc.freeze()
            answer = os.fork()
            if answer == 0:
                connection.close()
                code = _run(request, files)
                return
            for file in files:
                os.close(file)
        connection.send(str(answer).encode())


def _run(request: dict[str, Any], files: Sequence[int]) -> int:
    """Its exit code; what it raises is left to the interpreter."""
    # Anew: those of the start remember what kind of file they had.
    sys.stdout = _writer(sys.stdout, files[0])
    sys.stderr = _writer(sys.stderr, files[1])
    sys.stderr.reconfigure(line_buffering=True)
    os.chdir(request["directory"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv[1:] = request["arguments"]
    try:
        runpy.run_module(request["run"], run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if not isinstance(ended.code, int):
            raise
        return ended.code
    return 0


def _writer(before: TextIO, file: int) -> io.TextIOWrapper:
    """To `file`, in place of what `before` writes to."""
    os.dup2(file, before.fileno())
    os.close(file)
    return os.fdopen(
        before.fileno(), "w", encoding=before.encoding, errors=before.errors, closefd=False
    )


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
