"""The commands that change a setting of this host, run by a process that always restores it.

That process holds the read end of a pipe, and only this process has the other end. So it always
notices, even after kill -9, when it alone is left to restore the setting.
"""

import contextlib
import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hostbench.base.errors import HostbenchError, ResourceError
from hostbench.base.interrupt import Interrupt

LIFELINE = Path(__file__).with_name("setting_lifeline.py")
RESTORE = "restore"
# Beyond a command's time limit: the time to end it, and the pause before the restore command's
# second try.
GRACE_S = 10.0
RESTORE_TRIES = 2
READ_BYTES = 1 << 16


class SettingError(HostbenchError):
    """A command that changes a setting failed or did not end in time."""


class SettingCommands:
    """The commands of one test, as a context manager: after it, the process has ended and the
    setting is restored."""

    def __init__(
        self,
        commands: Mapping[str, str],
        restore: str,
        timeout_s: float,
        interrupt: Interrupt,
        inherited: Sequence[int] = (),
    ) -> None:
        """`commands` by side. `inherited`: descriptors that stay open until the setting is
        restored, such as the lock of the host."""
        self._request = {"commands": dict(commands), "restore": restore, "timeout_s": timeout_s}
        self._timeout_s = timeout_s
        self._interrupt = interrupt
        self._inherited = tuple(inherited)
        self._is_changed = False
        self._start()

    def __enter__(self) -> "SettingCommands":
        return self

    def __exit__(self, *_exception: object) -> None:
        self._close()

    def _start(self) -> None:
        lifeline_read, self._lifeline = os.pipe()
        arguments = ["-I", "-S", str(LIFELINE), json.dumps(self._request)]
        try:
            self._process = subprocess.Popen(
                [sys.executable, *arguments, "--lifeline-fd", str(lifeline_read)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                pass_fds=(lifeline_read, *self._inherited),
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            os.close(self._lifeline)
            raise ResourceError(
                f"cannot start {LIFELINE}: {error.strerror}; end other processes"
            ) from None
        finally:
            os.close(lifeline_read)
        self._pending = b""

    def set(self, side: str) -> None:
        """Run the command of a side. Raise SettingError, or Interrupted."""
        self._is_changed = True
        problem = self._ask(side, self._timeout_s + GRACE_S, self._interrupt)
        if problem is not None:
            raise SettingError(problem)

    def restore(self) -> str | None:
        """Restore the earlier setting, if it was changed; return why that failed, as a sentence.
        Signals do not shorten it."""
        if not self._is_changed:
            return None
        wait_s = RESTORE_TRIES * (self._timeout_s + GRACE_S)
        try:
            problem = self._ask(RESTORE, wait_s, None)
        except SettingError:
            # The process was killed before it could restore the setting, so another one does it.
            self._close()
            self._start()
            try:
                problem = self._ask(RESTORE, wait_s, None)
            except SettingError as error:
                problem = error.message
        self._is_changed = problem is not None
        return problem

    def _ask(self, name: str, timeout_s: float, interrupt: Interrupt | None) -> str | None:
        """Run a command; return what went wrong. Raise SettingError without an answer."""
        with contextlib.suppress(BrokenPipeError):  # its answers end, too
            os.write(self._lifeline, f"{name}\n".encode())
        for answer in self._answers(time.monotonic() + timeout_s, interrupt):
            # Even an interrupted command has an answer.
            if answer["name"] == name:
                problem: str | None = answer["problem"]
                return problem
        raise SettingError(
            f"the process that runs the setting commands ({LIFELINE.name}) was ended, or hangs"
        )

    def _answers(self, deadline_s: float, interrupt: Interrupt | None) -> Iterator[dict[str, Any]]:
        """Yield the process's answers until it ends or the time is up. Raise Interrupted."""
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if interrupt is not None:
                selector.register(interrupt, selectors.EVENT_READ)
            while (left_s := deadline_s - time.monotonic()) > 0:
                found = selector.select(left_s)
                if interrupt is not None:
                    interrupt.check()
                if not found:
                    continue
                piece = os.read(self._process.stdout.fileno(), READ_BYTES)
                if not piece:
                    return
                *lines, self._pending = (self._pending + piece).split(b"\n")
                yield from map(json.loads, lines)

    def _close(self) -> None:
        """Close the lifeline: the process restores what is still changed, and ends."""
        with contextlib.suppress(OSError):
            os.close(self._lifeline)
        try:
            self._process.wait(RESTORE_TRIES * (self._timeout_s + GRACE_S))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
