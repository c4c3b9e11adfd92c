"""The hostbench command as a child process, and what it leaves behind."""

import contextlib
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hostbench.model.registry import subsystem_names
from tests.patience import comes_true, wait_until
from tests.stack import preloaded

CHECKOUT = Path(__file__).parents[2]
PROGRAMS = CHECKOUT / "build" / "release"
SCRIPTED = Path(__file__).with_name("scripted_program.py")
SCRIPTED_NET = Path(__file__).with_name("scripted_net.py")


@dataclass(frozen=True)
class Ended:
    """What a finished command printed."""

    code: int
    output: str
    errors: str

    @property
    def document(self) -> Any:
        """The one JSON document on standard output."""
        return json.loads(self.output)

    @property
    def last_line(self) -> str:
        """The message of an error: one line on standard error, after any progress."""
        return self.errors.splitlines()[-1]


class Command:
    """Runs hostbench with its own results, lock and programs below one directory; its runs write no
    page, which takes a second of CPU time."""

    run_options: tuple[str, ...] = ("--no-report",)

    def __init__(self, directory: Path, programs: Path = PROGRAMS, **environment: str) -> None:
        self.results = directory / "results"
        self.lock = directory / "hostbench.lock"
        self.environment = os.environ | {
            "HOSTBENCH_RESULTS": str(self.results),
            "HOSTBENCH_LOCK": str(self.lock),
            "HOSTBENCH_PROGRAMS": str(programs),
            "PYTHONPATH": os.pathsep.join([str(CHECKOUT), os.environ.get("PYTHONPATH", "")]),
            "COLUMNS": "80",
            **environment,
        }

    def start(
        self, *arguments: str, prefix: Sequence[str] = (), **options: Any
    ) -> subprocess.Popen[str]:
        """`prefix` stands before the command."""
        return subprocess.Popen(
            [*prefix, sys.executable, "-m", "hostbench", *self._completed(arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
            cwd=self.results.parent,
            **options,
        )

    def run(self, *arguments: str, timeout_s: float = 60, **options: Any) -> Ended:
        """Forked from a process that has imported its modules, unless there are options of `start`,
        or variables for Python itself."""
        if options or not preloaded.can_fork(self.environment):
            return end_of(self.start(*arguments, **options), timeout_s)
        completed, directory = self._completed(arguments), self.results.parent
        return Ended(*preloaded.run("hostbench", completed, self.environment, directory, timeout_s))

    def _completed(self, arguments: Sequence[str]) -> Sequence[str]:
        return (*arguments, *self.run_options) if arguments[0] == "run" else arguments

    def jobs(self) -> list[Path]:
        return sorted(self.results.glob("*-*-*")) if self.results.is_dir() else []

    def documents(self) -> list[Path]:
        """Whatever looks like a finished result."""
        return sorted(self.results.rglob("result.*")) if self.results.is_dir() else []

    def processes(self) -> list[int]:
        """Everything alive that was started by this command: they carry its lock in their
        environment."""
        return list(_carrying(f"HOSTBENCH_LOCK={self.lock}".encode()))

    def program_pids(self) -> list[int]:
        """The benchmark programs among them."""
        return [pid for pid in self.processes() if b"--lifeline-fd" in _read(pid, "cmdline")]

    def wait_for_program(self) -> int:
        """The process id of the program once it runs."""
        return wait_until(self.program_pids, lambda: "no program was started")[0]

    def wait_for_hanging_program(self) -> int:
        """The process id of the scripted program once it hears no signal any more."""
        pid = self.wait_for_program()
        wait_until(lambda: ignores_signals(pid), lambda: "it does not hang")
        return pid

    def is_gone_soon(self) -> bool:
        """Whether nothing of the command lives on."""
        return comes_true(lambda: not self.processes())


class WithReport(Command):
    """The command, and its runs write their page."""

    run_options = ()


def end_of(process: subprocess.Popen[str], timeout_s: float = 60) -> Ended:
    try:
        output, errors = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.communicate()
        raise
    return Ended(process.returncode, output, errors)


def ignores_signals(pid: int) -> bool:
    """Whether a process ignores the signals that could end it, as one that hangs does."""
    ignored = re.search(rb"^SigIgn:\s*(\w+)$", _read(pid, "status"), re.MULTILINE)
    wanted = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    return ignored is not None and all(int(ignored[1], 16) >> (one - 1) & 1 for one in wanted)


def _carrying(mark: bytes) -> Iterator[int]:
    for entry in Path("/proc").glob("[0-9]*"):
        pid = int(entry.name)
        if mark in _read(pid, "environ").split(b"\0") and _read(pid, "cmdline"):
            yield pid


def _read(pid: int, name: str) -> bytes:
    try:
        return (Path("/proc") / str(pid) / name).read_bytes()
    except OSError:
        return b""


def write_program(path: Path, code: str) -> None:
    """Make an executable of Python code that needs no package.

    It names the interpreter: the `python3` that `env` finds may be a shell script, which takes
    several times as long to start."""
    path.write_text(f"#!{sys.executable} -IS\n{code}")
    path.chmod(0o755)


def scripted_programs(directory: Path) -> Path:
    """A directory of programs that are all the scripted one, with the tables of the real ones."""
    programs = directory / "programs"
    programs.mkdir()
    for name in (f"{subsystem}-bench" for subsystem in subsystem_names()):
        write_program(programs / name, SCRIPTED.read_text())
        (programs / f"{name}.json").write_bytes(table_of(name))
    return programs


@functools.cache
def table_of(name: str) -> bytes:
    """The table of a real program."""
    return subprocess.run([PROGRAMS / name, "--list"], capture_output=True, check=True).stdout


def scripted_net_programs(directory: Path) -> Path:
    """A directory whose net-bench is a scripted one whose both ends can go wrong."""
    programs = directory / "net-programs"
    programs.mkdir()
    write_program(programs / "net-bench", SCRIPTED_NET.read_text())
    shutil.copy(SCRIPTED, programs / SCRIPTED.name)
    return programs


def read_terminal(descriptor: int) -> bytes:
    """All that comes from a terminal until no process has its other end; closes this one."""
    found = b""
    # The kernel answers EIO when the last other end is closed.
    with contextlib.suppress(OSError):
        while piece := os.read(descriptor, 65536):
            found += piece
    os.close(descriptor)
    return found
