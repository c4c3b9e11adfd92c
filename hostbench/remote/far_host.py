"""The second host of a job: its net service, the route there and back, and whether it is idle."""

import contextlib
import ipaddress
import socket
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from hostbench.base.errors import ResourceError, UsageError, listing
from hostbench.base.interrupt import Interrupt
from hostbench.host.idle import HostWatch
from hostbench.host.route import interface_towards, source_address
from hostbench.model.host import HostInventory
from hostbench.model.registry import subsystems
from hostbench.model.result import FarHostRecord, IdleWindow
from hostbench.model.service import IdleAnswer, RouteAnswer
from hostbench.remote.client import RemoteService
from hostbench.remote.far_options import UNIX


class NearHost(Protocol):
    """The measuring host, as far as its route to others matters. `url`: its address for others."""

    url: str

    def route(self, to: str | None, interrupt: Interrupt | None = None) -> RouteAnswer:
        """See RemoteService.route."""
        ...


class ThisHost:
    """The measuring host if it is the one that this process runs on."""

    url = UNIX

    def route(self, to: str | None, interrupt: Interrupt | None = None) -> RouteAnswer:
        """See NearHost.route. Raise UsageError without a route to that address."""
        if to is None:
            return RouteAnswer(source=None, interface=None, address=None)
        return RouteAnswer(source=source_address(to), interface=interface_towards(to), address=None)


@dataclass(frozen=True)
class FarHost:
    """A host that sessions can be opened on, and its record in the result."""

    service: RemoteService
    record: FarHostRecord

    @property
    def name(self) -> str:
        """Its name for people."""
        return self.record.inventory.hostname


def meet(far: RemoteService, near: NearHost, interrupt: Interrupt | None = None) -> FarHost:
    """Return the far host behind a service, with the addresses that both hosts use.

    Raise UsageError for a service of another subsystem or hosts without a route to each other,
    ResourceError for a name that cannot be resolved, ServiceLost or Interrupted.
    """
    table = far.table(interrupt)
    known = subsystems()
    if table.subsystem not in known or not known[table.subsystem].has_far_ends:
        needed = listing(name for name, one in known.items() if one.has_far_ends)
        raise UsageError(
            f"service {far.url} is one of subsystem {table.subsystem}; the far end of a network "
            f"test needs the {needed} service of the far host"
        )
    inventory = far.host(interrupt)
    address, near_address = _addresses(far, near, inventory, interrupt)
    return FarHost(
        far,
        FarHostRecord(
            inventory=inventory,
            program=table.program,
            address=address,
            near_address=near_address,
        ),
    )


def _addresses(
    far: RemoteService, near: NearHost, inventory: HostInventory, interrupt: Interrupt | None
) -> tuple[str, str]:
    """Return the address that data goes to, and the near host's source address for it."""
    addresses = _known(far, near.url, interrupt)
    if not addresses:
        # From the near host, the far one has no address yet; in the other direction it may have
        # one.
        known = _known(near, far.url, interrupt)
        if not known:
            raise UsageError(
                f"it is unknown at which address {inventory.hostname} and the host that measures "
                "reach one another: both have their net service at a socket of this machine; set "
                "HOSTBENCH_NET_ADDRESS of the net services"
            )
        addresses = [_way(far, known, interrupt)[1]]
    return _way(near, addresses, interrupt)


def _known(host: NearHost, other_url: str, interrupt: Interrupt | None) -> list[str]:
    """Return the addresses at which the host at `other_url` may reach `host`."""
    named = host.route(None, interrupt).address
    return [named] if named else _reached_at(host.url, other_url)


def _way(start: NearHost, goals: list[str], interrupt: Interrupt | None) -> tuple[str, str]:
    """Return the first of `goals` to which `start` has a route, and the source address of that
    route. A name may have addresses of an IP version that one of the hosts lacks."""
    for goal in goals[:-1]:
        with contextlib.suppress(UsageError):
            return goal, _source(start.route(goal, interrupt), start.url, goal)
    return goals[-1], _source(start.route(goals[-1], interrupt), start.url, goals[-1])


def _source(route: RouteAnswer, url: str, to: str) -> str:
    if route.source is None:
        raise ResourceError(f"service {url} does not say how it reaches {to}; update hostbench")
    return route.source


def _reached_at(url: str, other_url: str) -> list[str]:
    """Return the addresses in a service's URL that the other host could use, the preferred one
    first."""
    if url.startswith(UNIX):
        return []
    name = urlsplit(url).hostname or ""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ResourceError(
            f"the address of {name}, in {url}, is unknown: {error.strerror}; give the address "
            "itself, or set HOSTBENCH_NET_ADDRESS of that net service"
        ) from None
    # Each address once; link-local addresses are valid on their link only.
    addresses = dict.fromkeys(str(place[0]) for *_, place in found if "%" not in str(place[0]))
    return [one for one in addresses if not _is_loopback(one) or _is_local(other_url)]


def _is_local(url: str) -> bool:
    """Whether a service is on this machine, as far as its URL shows."""
    name = urlsplit(url).hostname or ""
    return url.startswith(UNIX) or name == "localhost" or _is_loopback(name)


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


class BothWatch:
    """Watches both hosts of a job, one after the other: a busy far end spoils a figure as well."""

    def __init__(self, near: HostWatch, far: HostWatch, far_name: str) -> None:
        self._near = near
        self._far = far
        self._far_name = far_name

    def look(self, interrupt: Interrupt) -> IdleAnswer:
        """See HostWatch.look. Return the near host's answer, unless only the far host is busy."""
        near = self._near.look(interrupt)
        far = self._far.look(interrupt)
        if near.window.reasons or not far.window.reasons:
            return near
        return IdleAnswer(
            window=self._named(far.window),
            busiest=tuple(
                one.model_copy(update={"command": f"{one.command} on {self._far_name}"})
                for one in far.busiest
            ),
        )

    def _named(self, window: IdleWindow) -> IdleWindow:
        reasons = tuple(
            reason.model_copy(update={"text": f"far host {self._far_name}: {reason.text}"})
            for reason in window.reasons
        )
        return window.model_copy(update={"reasons": reasons})
