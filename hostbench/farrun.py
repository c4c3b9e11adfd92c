"""What `hostbench run` needs of a far host. Of its own, since it takes time to import."""

from collections.abc import Callable

import httpx

from hostbench.errors import UsageError, shown
from hostbench.farhost import BothWatch, FarHost, ThisHost, meet
from hostbench.faroptions import FarOptions
from hostbench.farsession import FarTransport
from hostbench.idle import LocalWatch
from hostbench.interrupt import Interrupt
from hostbench.measuring import Apparatus
from hostbench.remote import BUSY_S_MOST, RemoteService, RemoteWatch
from hostbench.trial import Transport


def met(options: FarOptions, interrupt: Interrupt) -> FarHost:
    """The far host. Raises what `meet` does; its connections last as long as this process."""
    try:
        service = RemoteService(options.url, options.key, options.ca_file)
    except httpx.InvalidURL as error:
        raise UsageError(f"{shown(options.url)} has no usable address: {error}") from None
    return meet(service, ThisHost(), interrupt)


def apparatus_with(
    far: FarHost,
    local: Callable[[Interrupt], Transport],
    job: str,
    interrupt: Interrupt,
    say: Callable[[str], None],
    wait_s: float,
) -> Apparatus:
    """That of a job with a far host; `local` is told what can interrupt its trials. `say` hears
    once who else holds it, for `wait_s` at most, but no shorter than a job of the stack waits."""
    said: set[str] = set()

    def waits(detail: str) -> None:
        if detail not in said:
            said.add(detail)
            say(f"waiting for far host {far.name}: {detail}")

    # Without a fence: a run by hand takes a host from nobody.
    transport = FarTransport(
        local,
        far,
        fence=None,
        job=job,
        interrupt=interrupt,
        on_waiting=waits,
        busy_s=max(wait_s, BUSY_S_MOST),
    )
    watch = BothWatch(LocalWatch(), RemoteWatch(far.service), far.name)
    return Apparatus(transport, watch, interrupt)
