"""SIGINT, SIGTERM and SIGHUP as a flag and a readable descriptor.

Nothing is raised inside a signal handler: an exception between a fork and the line that remembers
the child, or during a clean-up, leaves processes behind. Instead, every long wait of a run also
waits for this descriptor and calls `check()` afterwards. So a second signal, at any moment, does
not disturb the clean-up after the first one.
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
    """Records whether a signal to end this process came."""

    def __init__(self) -> None:
        self.signum: signal.Signals | None = None
        self._count = 0
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)

    def install(self) -> None:
        """Take over the signals for the rest of the process's life."""
        # The parent process may ignore SIGCHLD, and then the kernel drops how a child ended.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for signum in EXIT_CODES:
            # nohup ignores SIGHUP on purpose. A shell script ignores SIGINT for what it starts with
            # `&`, but a user who sends SIGINT means it. So only SIGHUP stays ignored.
            if signum == signal.SIGHUP and signal.getsignal(signum) == signal.SIG_IGN:
                continue
            signal.signal(signum, self._handle)

    def _handle(self, signum: int, _frame: FrameType | None) -> None:
        self.trip(signal.Signals(signum))

    def trip(self, signum: signal.Signals = signal.SIGTERM) -> None:
        """Act as if `signum` had come; callable from any thread."""
        self._count += 1
        if self.signum is None:
            self.signum = signum
            os.write(self._write_end, b"!")

    @property
    def count(self) -> int:
        """How many signals came."""
        return self._count

    def fileno(self) -> int:
        """Return the descriptor for select(), readable from the first signal on."""
        return self._read_end

    def check(self) -> None:
        """Raise Interrupted when a signal came."""
        if self.signum is not None:
            raise Interrupted(self.signum)

    def wait(self, seconds: float) -> None:
        """Sleep for `seconds`. Raise Interrupted as soon as a signal came."""
        # poll(), because select() accepts no descriptor above 1023; both round up.
        poll = select.poll()
        poll.register(self, select.POLLIN)
        poll.poll(math.ceil(max(0.0, seconds) * 1e3))
        self.check()

    def close(self) -> None:
        """Close the descriptors; only for an Interrupt that was never installed."""
        os.close(self._read_end)
        os.close(self._write_end)


class Breakable(Interrupt):
    """An Interrupt like `outer` that another thread can also interrupt with an error, by
    `break_in`."""

    def __init__(self, outer: Interrupt) -> None:
        # Without the base's initialisation: the descriptors are open only while `break_in` may be
        # called.
        self._outer = outer
        self._both: select.epoll | None = None
        self._wake = -1
        self._error: Exception | None = None
        self._mutex = threading.Lock()

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """Accept errors from `break_in` until the context ends."""
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
        """Make `check` and `wait` raise this error from now on; callable from any thread."""
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
        """Raise what `outer` raises, or the error given to `break_in`."""
        self._outer.check()
        if self._error is not None:
            raise self._error
