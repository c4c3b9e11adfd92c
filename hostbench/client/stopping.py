"""Ctrl-C while we only look on."""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

from hostbench.interrupt import EXIT_CODES, Interrupted


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP end what is done in it with Interrupted.

    Raised from the handler, unlike in a run: nothing was started that could be left behind, and a
    read from the network waits for nothing else.
    """
    before = {signum: signal.getsignal(signum) for signum in EXIT_CODES}

    def stop(signum: int, _frame: FrameType | None) -> None:
        for one in before:  # A second one must not break into the end of the first.
            signal.signal(one, signal.SIG_IGN)
        raise Interrupted(signal.Signals(signum))

    for signum, handler in before.items():
        if handler != signal.SIG_IGN or signum != signal.SIGHUP:  # nohup
            signal.signal(signum, stop)
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
