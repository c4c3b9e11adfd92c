"""SIGINT, SIGTERM and SIGHUP as a flag and a readable descriptor.

Nothing is raised from inside a signal handler: an exception between a fork and the line that
remembers the child, or in the middle of a clean-up, is how processes are left behind. Instead
every long wait of a run also waits for this descriptor, and asks `check()` afterwards. So a second
signal, at any moment, finds the clean-up of the first one undisturbed.
"""

import contextlib
import math
import os
import select
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from hostbench.base.errors import HostbenchError
from hostbench.base.exitcode import ExitCode

EXIT_CODES = {
    signal.SIGHUP: ExitCode.HANGUP,
    signal.SIGINT: ExitCode.INTERRUPTED,
    signal.SIGTERM: ExitCode.TERMINATED,
}


class Interrupted(HostbenchError):
    """A signal ended the run."""

    def __init__(self, signum: signal.Signals) -> None:
        super().__init__(f"interrupted by {signum.name}")
        self.signum = signum
        self.exit_code = EXIT_CODES[signum]


class Interrupt:
    """Whether a signal to end this process came."""

    def __init__(self) -> None:
        self.signum: signal.Signals | None = None
        self._count = 0
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)

    def install(self) -> None:
        """Take over the signals, for the rest of the process's life."""
        # The parent process may ignore SIGCHLD, and then the kernel forgets how a child ended.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for signum in EXIT_CODES:
            # nohup ignores SIGHUP on purpose. A shell script ignores SIGINT for what it starts
            # with `&`, yet a user who sends it means it: only SIGHUP stays ignored.
            if signum == signal.SIGHUP and signal.getsignal(signum) == signal.SIG_IGN:
                continue
            signal.signal(signum, self._handle)

    def _handle(self, signum: int, _frame: FrameType | None) -> None:
        self.trip(signal.Signals(signum))

    def trip(self, signum: signal.Signals = signal.SIGTERM) -> None:
        """As if `signum` had come; from any thread."""
        self._count += 1
        if self.signum is None:
            self.signum = signum
            os.write(self._write_end, b"!")

    @property
    def count(self) -> int:
        """How many signals came."""
        return self._count

    def fileno(self) -> int:
        """Readable from the first signal on, for select()."""
        return self._read_end

    def check(self) -> None:
        """Raise Interrupted when a signal came."""
        if self.signum is not None:
            raise Interrupted(self.signum)

    def wait(self, seconds: float) -> None:
        """Sleep `seconds`; raise Interrupted as soon as a signal came."""
        # poll(), for select() knows no descriptor above 1023; both round up.
        poll = select.poll()
        poll.register(self, select.POLLIN)
        poll.poll(math.ceil(max(0.0, seconds) * 1e3))
        self.check()

    def close(self) -> None:
        """Close the descriptors; only for an Interrupt that was never installed."""
        os.close(self._read_end)
        os.close(self._write_end)


class Breakable(Interrupt):
    """As `outer`, and another thread may interrupt it with an error, by `break_in`."""

    def __init__(self, outer: Interrupt) -> None:
        # Not the base's: its descriptors are open only while `break_in` may be called.
        self._outer = outer
        self._both: select.epoll | None = None
        self._wake = -1
        self._error: Exception | None = None
        self._mutex = threading.Lock()

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """Errors given to `break_in` count until this is left."""
        wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        both = select.epoll()
        both.register(self._outer, select.EPOLLIN)
        both.register(wake, select.EPOLLIN)
        with self._mutex:
            self._both, self._wake, self._error = both, wake, None
        try:
            yield
        finally:
            with self._mutex:
                self._both, self._error = None, None
                both.close()
                os.close(wake)

    def break_in(self, error: Exception) -> None:
        """`check` and `wait` raise it from now on; from any thread."""
        with self._mutex:
            if self._both is not None and self._error is None:
                self._error = error
                os.eventfd_write(self._wake, 1)

    @property
    def count(self) -> int:
        """See Interrupt."""
        return self._outer.count

    def fileno(self) -> int:
        """See Interrupt."""
        return self._outer.fileno() if self._both is None else self._both.fileno()

    def check(self) -> None:
        """Raise what `outer` does, or what it was broken in on with."""
        self._outer.check()
        if self._error is not None:
            raise self._error
