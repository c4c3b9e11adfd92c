"""The scratch file of the job whose trials run here: kept between them, to be filled once."""

import contextlib
import threading
import time
from collections.abc import Iterator

from hostbench.scratch import Scratch

# Nobody tells a service that a job is over: then its space comes back so long after its last trial.
KEPT_S = 60.0


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

    @contextlib.contextmanager
    def lent(self, fence: int | None) -> Iterator[Scratch]:
        """The file of the job with this fence; None: a trial by hand, whose file ends with it."""
        if fence is None:
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
            if fence != self._fence:
                self._scratch.close()
            self._fence, self._lent = fence, True

    def _give_back(self) -> None:
        with self._mutex:
            self._lent = False
            self._until_s = time.monotonic() + self._kept_s
        timer = threading.Timer(self._kept_s, self._expire)
        timer.daemon = True
        timer.start()

    def _expire(self) -> None:
        """Closes the file, unless a trial has come meanwhile."""
        with self._mutex:
            if not self._lent and time.monotonic() >= self._until_s:
                self._scratch.close()
