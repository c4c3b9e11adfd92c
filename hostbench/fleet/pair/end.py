"""One end of a pair: it has its node for itself, and a connection with the other end.

The nodes of a pair are taken in one order, that of their names: the end of the first takes its lock
and then listens, and the other one calls it and then takes its own. So two pairs, also of two
campaigns, never wait for one another.
"""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from hostbench.base.errors import HostbenchError
from hostbench.base.interrupt import Interrupt
from hostbench.fleet.campaign import Pair
from hostbench.fleet.pair.meeting import Meeting, Place, called, error_text, listened
from hostbench.fleet.pair.secret import SecretFiles
from hostbench.host.lock import HostLock, host_lock


def no_lease(_interrupt: Interrupt) -> AbstractContextManager[object]:
    """Hold nothing, where the host's lock file is enough."""
    return nullcontext()


@dataclass(frozen=True)
class End:
    """What an end is started with.

    `lease` returns a context that holds the Lease object of a node. `wait_s`: how long to wait for
    the host and for the other end. `address`: how the other end reaches this host, where they meet
    by a file.
    """

    campaign: str
    pair: Pair
    is_near: bool
    place: Place
    secret: SecretFiles
    lease: Callable[[Interrupt], AbstractContextManager[object]]
    wait_s: float
    address: str | None = None

    @property
    def node(self) -> str:
        """Return the node of this end."""
        return self.pair.near if self.is_near else self.pair.far

    @property
    def is_first(self) -> bool:
        """Whether this end takes its node first."""
        return self.node == self.pair.nodes[0]

    @property
    def other(self) -> str:
        """Return the other end, for people."""
        return (
            f"the far end on {self.pair.far}"
            if self.is_near
            else f"the near end on {self.pair.near}"
        )

    @contextlib.contextmanager
    def connected(self, interrupt: Interrupt) -> Iterator[tuple[Meeting, HostLock]]:
        """Hold the node and a connection with the other end; send it an error of the body. Raise
        HostbenchError."""
        with contextlib.ExitStack() as stack:
            if self.is_first:
                lock = stack.enter_context(self._held(interrupt))
                meeting = stack.enter_context(
                    listened(
                        self.place, self.address, self.secret, self.pair.name, self.other,
                        interrupt, self.wait_s,
                    )
                )  # fmt: skip
            else:
                meeting = stack.enter_context(
                    called(
                        self.place, self.secret, self.pair.name, self.other, interrupt, self.wait_s
                    )
                )
                with _errors_sent(meeting):
                    lock = stack.enter_context(self._held(interrupt))
            with _errors_sent(meeting):
                yield meeting, lock

    @contextlib.contextmanager
    def _held(self, interrupt: Interrupt) -> Iterator[HostLock]:
        with self.lease(interrupt), host_lock(self.wait_s, interrupt) as lock:
            lock.name_holder(f"{self.campaign}/{self.pair.name}")
            yield lock


@contextlib.contextmanager
def _errors_sent(meeting: Meeting) -> Iterator[None]:
    """Send an error to the other end, too."""
    try:
        yield
    except HostbenchError as error:
        meeting.say(error=error_text(error))
        raise
