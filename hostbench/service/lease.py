"""The two clocks of a running trial: its caller must renew it, and no higher fence may come."""

import threading
import time
from collections.abc import Callable

from hostbench.host.lock import FENCE_LOOK_S, HostLock
from hostbench.model.service import LEASE_S, Ending

# What still lives so long after its end was asked for is killed: a second after its lease ran
# out nothing may be left of a trial, and whoever has the higher fence waits.
HURRY_S = 0.5


class Lease:
    """Runs out unless it is renewed."""

    def __init__(self, seconds: float = LEASE_S) -> None:
        self._seconds = seconds
        self._until_s = 0.0
        self.renew()

    def renew(self) -> None:
        """Begins anew; from any thread."""
        self._until_s = time.monotonic() + self._seconds

    @property
    def left_s(self) -> float:
        """0 when it has run out."""
        return max(0.0, self._until_s - time.monotonic())


class Guard:
    """Ends a trial whose lease runs out or whose fence was overtaken, from a thread of its own:
    neither the trial, which waits for its program, nor the event loop must be prompt for that."""

    def __init__(
        self, lease: Lease, fence: int | None, lock: HostLock, end: Callable[[Ending], None]
    ) -> None:
        """`end` may be called more than once: the second time it is urgent."""
        self._lease = lease
        self._fence = fence
        self._lock = lock
        self._end = end
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="guard", daemon=True)

    def __enter__(self) -> "Guard":
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(min(FENCE_LOOK_S, self._lease.left_s)):
            ending = self._ending()
            if ending is not None:
                self._end(ending)
                if not self._done.wait(HURRY_S):
                    self._end(ending)
                return

    def _ending(self) -> Ending | None:
        if self._lease.left_s == 0:
            return Ending.LEASE_LOST
        if self._fence is not None and self._lock.fence() > self._fence:
            return Ending.PREEMPTED
        return None
