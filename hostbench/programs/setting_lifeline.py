"""Runs the commands of a setting, and restores what was before whatever becomes of hostbench.

A script of its own, because only a process can outlive us to clean up after us:

    python -I -S setting_lifeline.py REQUEST --lifeline-fd N

REQUEST is a JSON object: `commands` (name to a line for the shell), `restore` (another one) and
`timeout_s` (of each). A name on a line of the lifeline runs that command, `restore` the other one;
one JSON object a line on standard output says how it went. When the lifeline closes because the
parent process is gone, a command that runs is ended and the restore command is run, unless nothing
was changed or it was run before. Signals to end are not for this process.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from typing import Any

RESTORE = "restore"
# A failed command may succeed a moment later, for example when a device was busy.
RESTORE_TRIES = 2
RESTORE_PAUSE_S = 0.5
TERMINATE_GRACE_S = 1.0
POLL_S = 0.01
READ_BYTES = 1 << 16
# The end of the output is kept: its last line says what went wrong.
KEPT_BYTES = 1 << 12
SHOWN_CHARACTERS = 400


class Lifeline:
    """The commands of one setting."""

    def __init__(self, request: dict[str, Any], lifeline: int) -> None:
        self._commands: dict[str, str] = request["commands"]
        self._restore_command: str = request["restore"]
        self._timeout_s: float = request["timeout_s"]
        self._lifeline = lifeline
        self._is_changed = False

    def serve(self) -> None:
        """Serve requests until the lifeline closes."""
        # Unbuffered: a request in the pipe lets select() see that a running command must end.
        requests = os.fdopen(self._lifeline, "rb", buffering=0, closefd=False)
        while name := requests.readline().decode().strip():
            problem = self._restore() if name == RESTORE else self._set(name)
            # The parent may have ended by now.
            with contextlib.suppress(BrokenPipeError):
                os.write(1, json.dumps({"name": name, "problem": problem}).encode() + b"\n")
        problem = self._restore() if self._is_changed else None
        if problem is not None:
            with contextlib.suppress(OSError):
                os.write(2, f"hostbench: {problem}\n".encode())

    def _set(self, name: str) -> str | None:
        self._is_changed = True
        return self._problem(
            f"the command of side {name.upper()}", self._commands[name], for_parent=True
        )

    def _restore(self) -> str | None:
        problem: str | None = None
        for attempt in range(RESTORE_TRIES):
            time.sleep(RESTORE_PAUSE_S if attempt else 0.0)
            problem = self._problem("the restore command", self._restore_command, for_parent=False)
            if problem is None:
                break
        self._is_changed = False
        return None if problem is None else f"{problem}; undo the setting by hand"

    def _problem(self, title: str, command: str, *, for_parent: bool) -> str | None:
        """Run a command; return what went wrong, as a sentence, or None."""
        kept = bytearray()
        try:
            exit_code = self._exit_code(command, kept, for_parent=for_parent)
        except OSError as error:
            return f"{title} {command!r} cannot be started: {error.strerror}"
        if exit_code == 0:
            return None
        how = f"ended with exit code {exit_code}"
        remedy = "; run it by hand until it succeeds" if for_parent else ""
        if exit_code is None:
            how = f"did not end within {self._timeout_s:g} s"
            remedy = "; --command-timeout allows more" if for_parent else ""
        elif exit_code < 0:
            how = f"was killed by signal {-exit_code}"
        lines = kept.decode("utf-8", "replace").split("\n")
        output = " / ".join(line.strip() for line in lines if line.strip())[-SHOWN_CHARACTERS:]
        return f"{title} {command!r} {how}; its output: {output or 'none'}{remedy}"

    def _exit_code(self, command: str, kept: bytearray, *, for_parent: bool) -> int | None:
        """Run a command to its end; return its exit code, or None when its time was up. `kept` gets
        the end of its output.

        `for_parent`: end it as soon as the parent has another request, or has ended.
        """
        output, write_end = os.pipe()
        os.set_blocking(output, False)
        try:
            process = subprocess.Popen(
                ["/bin/sh", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=write_end,
                stderr=write_end,
                start_new_session=True,
            )
        except OSError:
            os.close(output)
            raise
        finally:
            os.close(write_end)
        deadline_s, timed_out = time.monotonic() + self._timeout_s, False
        while process.poll() is None:
            _take(output, kept)
            time.sleep(POLL_S)
            timed_out = time.monotonic() >= deadline_s
            if timed_out or (for_parent and self._has_request()):
                _end_group(process)
        # Processes that the command leaves running belong to the setting, and may keep the pipe
        # open.
        _take(output, kept)
        os.close(output)
        return None if timed_out else process.returncode

    def _has_request(self) -> bool:
        """Whether the parent has a request, or has ended."""
        return bool(select.select([self._lifeline], [], [], 0)[0])


def _take(output: int, kept: bytearray) -> None:
    """Read all that is available."""
    with contextlib.suppress(BlockingIOError):
        while piece := os.read(output, READ_BYTES):
            kept += piece
            del kept[:-KEPT_BYTES]


def _end_group(process: "subprocess.Popen[bytes]") -> None:
    """End a command and its whole process group: SIGTERM, a grace, SIGKILL."""
    _signal_group(process.pid, signal.SIGTERM)
    deadline_s = time.monotonic() + TERMINATE_GRACE_S
    # It is not reaped before the last signal, so until then its group id belongs to no other
    # process.
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    while os.waitid(os.P_PID, process.pid, flags) is None and time.monotonic() < deadline_s:
        time.sleep(POLL_S)
    _signal_group(process.pid, signal.SIGKILL)
    process.wait()


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def main() -> int:
    """Serve the request of the command line."""
    request, _flag, lifeline = sys.argv[1:]
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # A handler and not SIG_IGN, which the commands would inherit.
        signal.signal(number, lambda *_: None)
    Lifeline(json.loads(request), int(lifeline)).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
