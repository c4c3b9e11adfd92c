"""The near end of a pair: what measures."""

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

from hostbench.base.errors import HostbenchError
from hostbench.base.interrupt import Breakable, Interrupt
from hostbench.fleet.pair.end import End
from hostbench.fleet.pair.meeting import error_text
from hostbench.host.lock import HostLock
from hostbench.remote.far_options import FarOptions

# The far end may wait for its host as long, and then says why.
REASON_S = 15.0


@dataclass(frozen=True)
class Held:
    """A node that is ready to measure, with the far host. `interrupt` also breaks when the far end
    ends."""

    lock: HostLock
    far: FarOptions
    interrupt: Interrupt


@contextlib.contextmanager
def near_end(end: End, interrupt: Interrupt) -> Iterator[Held]:
    """Hold the node while the far end holds its own and answers. Raise HostbenchError."""
    breakable = Breakable(interrupt)
    with end.connected(interrupt) as (meeting, lock), breakable.open():
        until_s = time.monotonic() + end.wait_s + REASON_S
        url = meeting.heard(interrupt, until_s).get("url")
        far = FarOptions(
            str(url), end.secret.key(), end.secret.certificate, required=True, pinned=True
        )

        def watch() -> None:
            # The next line is an error, or the connection ends.
            try:
                meeting.heard(interrupt)
            except HostbenchError as error:
                breakable.break_in(error)

        watcher = threading.Thread(target=watch, name="far end", daemon=True)
        watcher.start()
        try:
            yield Held(lock, far, breakable)
            meeting.say(done=True)
        except HostbenchError as error:
            # Before the connection ends.
            meeting.say(error=error_text(error))
            raise
        finally:
            meeting.hang_up()
            watcher.join()
