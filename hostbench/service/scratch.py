"""The scratch file of the job whose trials run here: kept between them, to be filled once."""

import contextlib
import threading
import time
from collections.abc import Iterator

from hostbench.scratch import Scratch

# Nobody tells a service that a job is over: its space comes back when another one begins, else so
# long after its last trial. Between two trials a job may wait for an idle host, or measure cases of
# another subsystem.
KEPT_S = 600.0


class KeptScratch:
    """Lends the file to one trial at a time: the one that holds the host's lock. A job is known by
    its fence. With the process the file goes by itself."""

    def __init__(self, kept_s: float = KEPT_S) -> None:
        """`kept_s`: how long it is kept without a trial."""
        self._kept_s = kept_s
        self._mutex = threading.Lock()
        self._scratch = Scratch()
        self._fence: int | None = None
        self._lent = False
        self._until_s = 0.0
        self._timer: threading.Timer | None = None

    @contextlib.contextmanager
    def lent(self, fence: int | None) -> Iterator[Scratch]:
        """The file of the job with this fence; None: a trial by hand, whose file ends with it, and
        which needs the room of the one that is kept."""
        if fence is None:
            self._let_go()
            with contextlib.closing(Scratch()) as own:
                yield own
            return
        self._take(fence)
        try:
            yield self._scratch
        finally:
            self._give_back()

    def _take(self, fence: int) -> None:
        with self._mutex:
            assert not self._lent, "the host's lock lets one trial through at a time"
            self._cancel()
            if fence != self._fence:
                self._scratch.close()
            self._fence, self._lent = fence, True

    def _let_go(self) -> None:
        with self._mutex:
            if not self._lent:
                self._cancel()
                self._scratch.close()

    def _give_back(self) -> None:
        with self._mutex:
            self._lent = False
            self._until_s = time.monotonic() + self._kept_s
            self._timer = threading.Timer(self._kept_s, self._expire)
            self._timer.daemon = True
            self._timer.start()

    def _cancel(self) -> None:
        """Ends the timer's thread, which would sleep on for each trial of a job."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _expire(self) -> None:
        """Closes the file, unless a trial has come meanwhile."""
        with self._mutex:
            if not self._lent and time.monotonic() >= self._until_s:
                self._scratch.close()
