"""One child process in a session of its own: its lines, its end, and nothing left of it afterwards.

The child always ends with this process. `stop()` ends its whole process group. The lifeline pipe,
whose other end only this process holds, closes even when this process is killed.
"""

import contextlib
import errno
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from hostbench.base.errors import ResourceError, shown
from hostbench.base.interrupt import Interrupt
from hostbench.base.place import REBUILD
from hostbench.model.trial import TrialFailed

# docs/kernel-protocol.md promises an end within a second of SIGTERM.
TERMINATE_GRACE_S = 2.0
# A supervisor ends others first: the most time that takes (programs/supervisor.py), and a little
# more.
SUPERVISOR_GRACE_S = 8.0
# From the last event to the end of its output, and from there to its exit.
ENDING_GRACE_S = 5.0
POLL_S = 0.01
# If a wait ends this much later than planned, this process was stopped, and its child with it, for
# example by a hypervisor that suspended its guest.
LOOK_S, STOPPED_LEAST_S = 5.0, 1.0
READ_BYTES = 1 << 16
SHORTAGES = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE})
# An end event of 4096 threads has about 1 MiB.
LINE_BYTES_MOST = 16 << 20
STDERR_BYTES_KEPT = 4096
STDERR_CHARACTERS_SHOWN = 400


class Child:
    """A running child process. Use it as a context manager: leaving it stops the child."""

    def __init__(
        self,
        program: Path,
        arguments: Sequence[str],
        interrupt: Interrupt,
        inherited: Sequence[int] = (),
        *,
        hurry: bool = True,
    ) -> None:
        """Start the child. Raise ResourceError when it cannot start.

        `inherited` descriptors stay open in it; `--lifeline-fd N` is added to the arguments.
        `hurry`: a second signal shortens its time to end; not for a child that must end others
        first.
        """
        self._interrupt = interrupt
        self._hurry = hurry
        self._stderr = bytearray()
        self._deadline_s = 0.0
        self._overdue = ""
        lifeline_read, self._lifeline = os.pipe()
        try:
            self._process = subprocess.Popen(
                [program, *arguments, "--lifeline-fd", str(lifeline_read)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(lifeline_read, *inherited),
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            os.close(self._lifeline)
            short = error.errno in SHORTAGES
            remedy = "end other processes" if short else REBUILD
            raise ResourceError(f"cannot start {program}: {error.strerror}; {remedy}") from None
        finally:
            os.close(lifeline_read)
        assert self._process.stdout is not None and self._process.stderr is not None
        self._stdout: IO[bytes] = self._process.stdout
        self._errors: IO[bytes] = self._process.stderr

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    def lines(self, timeout_s: float) -> Iterator[bytes]:
        """Yield the lines of its standard output, without newline, until it closes that.

        Raise TrialFailed after `timeout_s`, on a line that is too long, or on a last line cut
        short; Interrupted when a signal to end this process came.
        """
        self._deadline_s = time.monotonic() + timeout_s
        self._overdue = (
            f"no end after {timeout_s:.0f} s; "
            "set timeout_s of the case higher if it really takes longer"
        )
        pending = bytearray()
        for piece in self._read():
            pending += piece
            if b"\n" in piece:
                *complete, rest = pending.split(b"\n")
                pending = rest
                yield from (bytes(line) for line in complete)
            if len(pending) > LINE_BYTES_MOST:
                raise TrialFailed(
                    "malformed_output", f"a line of more than {LINE_BYTES_MOST} bytes"
                )
        if pending:
            text = pending.decode("utf-8", "replace")
            raise TrialFailed("malformed_output", f"the output ends inside a line: {shown(text)}")

    def expect_end(self) -> None:
        """Leave the child only a short time to end, because its last event was read."""
        self._deadline_s = min(self._deadline_s, time.monotonic() + ENDING_GRACE_S)
        self._overdue = f"no end {ENDING_GRACE_S:.0f} s after its last event"

    def _read(self) -> Iterator[bytes]:
        with selectors.DefaultSelector() as selector:
            selector.register(self._interrupt, selectors.EVENT_READ)
            selector.register(self._stdout, selectors.EVENT_READ)
            selector.register(self._errors, selectors.EVENT_READ)
            while self._stdout in {key.fileobj for key in selector.get_map().values()}:
                left_s = self._deadline_s - time.monotonic()
                if left_s <= 0:
                    raise TrialFailed("timeout", self._overdue)
                for key, _ in self._select(selector, min(left_s, LOOK_S)):
                    self._interrupt.check()
                    piece = os.read(key.fd, READ_BYTES)
                    if not piece:
                        selector.unregister(key.fileobj)
                    elif key.fileobj is self._errors:
                        self._keep_errors(piece)
                    else:
                        yield piece

    def _select(
        self, selector: selectors.BaseSelector, most_s: float
    ) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what can be read within `most_s`. Time in which nothing ran does not count towards
        the deadline."""
        due_s = time.monotonic() + most_s
        found = selector.select(most_s)
        late_s = time.monotonic() - due_s
        if late_s > STOPPED_LEAST_S:
            self._deadline_s += late_s
        return found

    def _keep_errors(self, piece: bytes) -> None:
        self._stderr += piece
        del self._stderr[:-STDERR_BYTES_KEPT]

    def last_errors(self) -> str:
        """Return the last lines of its standard error, as one line."""
        lines = self._stderr.decode("utf-8", "replace").split("\n")
        return " / ".join(line.strip() for line in lines if line.strip())[-STDERR_CHARACTERS_SHOWN:]

    def wait(self) -> int:
        """Return its exit code after its output has ended. Raise TrialFailed when it does not
        exit."""
        if not self._exited_within(ENDING_GRACE_S):
            self._interrupt.check()
            raise TrialFailed("hang", f"no exit {ENDING_GRACE_S:.0f} s after the end of its output")
        self._drain_errors()
        self.stop()
        return self._process.returncode

    def _drain_errors(self) -> None:
        os.set_blocking(self._errors.fileno(), False)
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(self._errors.fileno(), READ_BYTES):
                self._keep_errors(piece)

    def _exited_within(self, seconds: float) -> bool:
        """Return whether it exits in time. It is not reaped, so its id stays in use until
        `stop()`."""
        deadline_s = time.monotonic() + seconds
        interrupts = self._interrupt.count
        while not self.has_exited:
            # After a second signal, there is no more grace.
            hurry = self._hurry and self._interrupt.count > max(1, interrupts)
            if hurry or time.monotonic() >= deadline_s:
                return False
            time.sleep(POLL_S)
        return True

    @property
    def has_exited(self) -> bool:
        """Whether it has exited."""
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._process.pid, flags) is not None

    def stop(self) -> None:
        """End the child's process group, SIGTERM first, and reap the child. Safe to repeat."""
        if self._process.returncode is not None:
            return
        if not self.has_exited:
            self._signal_group(signal.SIGTERM)
            self._exited_within(TERMINATE_GRACE_S if self._hurry else SUPERVISOR_GRACE_S)
        # Also when it exited by itself: nothing that it left may run on. It is not reaped yet, so
        # its group id cannot belong to another process.
        self._signal_group(signal.SIGKILL)
        self._process.wait()
        os.close(self._lifeline)
        self._stdout.close()
        self._errors.close()

    def _signal_group(self, signum: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signum)
