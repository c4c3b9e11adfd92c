"""What `hostbench run` needs for a far host. A module of its own, because it takes time to
import."""

from collections.abc import Callable

import httpx

from hostbench.base.errors import UsageError, shown
from hostbench.base.interrupt import Interrupt
from hostbench.host.idle import LocalWatch
from hostbench.model.trial import Transport
from hostbench.remote.client import RemoteService, RemoteWatch
from hostbench.remote.far_host import BothWatch, FarHost, ThisHost, meet
from hostbench.remote.far_options import FarOptions
from hostbench.remote.far_session import FarTransport
from hostbench.run.session import Apparatus

# Between two of our trials, a job of the stack or another run may hold the far host for this long.
BUSY_S_LEAST = 600.0


def connect_far_host(options: FarOptions, interrupt: Interrupt) -> FarHost:
    """Return the far host. Raise what `meet` raises; its connections last as long as this
    process."""
    try:
        service = RemoteService(options.url, options.key, options.ca_file, pinned=options.pinned)
    except httpx.InvalidURL as error:
        raise UsageError(
            f"--far-host {shown(options.url)} is not an address: {error}; give one such as "
            "https://192.0.2.8:8004"
        ) from None
    return meet(service, ThisHost(), interrupt)


def apparatus_with(
    far: FarHost,
    local: Callable[[Interrupt], Transport],
    job: str,
    interrupt: Interrupt,
    say: Callable[[str], None],
    wait_s: float,
) -> Apparatus:
    """Return the apparatus of a job with a far host.

    `local` makes the transport from what can interrupt its trials. `say` reports each other holder
    of the far host once. A trial waits for `wait_s` or BUSY_S_LEAST, whichever is longer.
    """
    shown_details: set[str] = set()

    def waits(detail: str) -> None:
        if detail not in shown_details:
            shown_details.add(detail)
            say(f"waiting for far host {far.name}: {detail}")

    # Without a fence: a run by hand takes the host from no other job.
    transport = FarTransport(
        local,
        far,
        fence=None,
        job=job,
        interrupt=interrupt,
        on_waiting=waits,
        busy_s=max(wait_s, BUSY_S_LEAST),
    )
    watch = BothWatch(LocalWatch(), RemoteWatch(far.service), far.name)
    return Apparatus(transport, watch, interrupt)
