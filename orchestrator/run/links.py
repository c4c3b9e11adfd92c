"""The services of the registered hosts: registration, connections, and the two ends of a job."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx
import structlog
from redis.exceptions import RedisError

from hostbench.base.interrupt import Interrupt, Interrupted
from hostbench.base.listen import is_loopback
from hostbench.host.inventory import merged_inventory
from hostbench.model.host import HostInventory
from hostbench.model.registry import find_subsystem
from hostbench.model.result import ProgramVersion
from hostbench.model.service import Registered, Registration
from hostbench.model.suite import Suite
from hostbench.model.table import Table
from hostbench.plan.estimate import Plan
from hostbench.plan.workloads import first_between_hosts, subsystems_of
from hostbench.remote.client import RemoteService, ServiceLost
from hostbench.remote.far_host import FarHost, meet
from hostbench.run.session import Setup
from hostbench.web.keys import Caller, HostKeys, Role
from hostbench.web.problem import Problem
from orchestrator.queue.hosts import RENEW_S, HostState, HostStore, HostTaken, Service
from orchestrator.queue.jobs import ALIVE_S
from orchestrator.queue.plans import PlannedHost, Plans

_log = structlog.get_logger()


class Links:
    """Opens connections to services, each with the key of its host."""

    def __init__(self, keys: HostKeys, ca: Path | None) -> None:
        """`ca`: the authority that signed the services' certificates; None: those that the system
        trusts."""
        self._keys = keys
        self._ca = ca

    @contextlib.contextmanager
    def open(self, host: str, url: str) -> Iterator[RemoteService]:
        """Open a service of a host by the URL it registered with. Raise ServiceLost."""

        # Read at each call, so that a job goes on after its key was changed.
        def key() -> str:
            found = self._keys.of(host)
            if found is None:
                raise ServiceLost(
                    f"{host} has no key any more; make key NAME={host} ROLE=host makes one"
                )
            return found

        try:
            service = RemoteService(url, key, self._ca)
        except httpx.InvalidURL as error:
            raise ServiceLost(_no_address(url, error)) from None
        with contextlib.closing(service):
            yield service


def _no_address(url: str, error: httpx.InvalidURL) -> str:
    return f"service {url} has no address that can be used: {error}"


class Registrar:
    """Accepts registrations. Raises Problem, or RedisError."""

    def __init__(self, hosts: HostStore, links: Links, ending: Interrupt) -> None:
        """`ending` comes when this orchestrator must end: a service that does not answer would
        delay that by 50 s."""
        self._hosts = hosts
        self._links = links
        self._ending = ending

    def register(self, registration: Registration, caller: Caller) -> Registered:
        """Renew a service, or add a new one."""
        if caller.host not in (None, registration.host):
            raise _other_host(registration, caller)
        try:
            if not _is_safe(registration.url):
                raise _in_clear(registration)
            if not self._hosts.renew(registration):
                self._take_up(registration, caller)
        except HostTaken as taken:
            raise _taken(registration, taken.url) from None
        except httpx.InvalidURL as error:
            raise _unreachable(registration, _no_address(registration.url, error)) from None
        return Registered(renew_s=RENEW_S, expires_s=ALIVE_S)

    def _take_up(self, registration: Registration, caller: Caller) -> None:
        try:
            with self._links.open(registration.host, registration.url) as service:
                table, inventory = service.table(self._ending), service.host(self._ending)
        except ServiceLost as lost:
            raise _unreachable(registration, lost.message) from None
        except Interrupted:
            raise Problem(503, "ending", "this orchestrator ends; register again later") from None
        if table.subsystem != registration.subsystem:
            raise Problem(
                422,
                "other_subsystem",
                f"the service at {registration.url} is for {table.subsystem}, not "
                f"{registration.subsystem}; give its own HOSTBENCH_SERVICE_URL",
                field="body.subsystem",
            )
        self._hosts.register(registration, inventory, table)
        _log.info(
            "audit",
            key=caller.name,
            role=Role.SERVICE.value,
            call="register",
            made=f"{registration.host} {registration.subsystem}",
            at=registration.url,
        )


def _is_safe(url: str) -> bool:
    """Whether a key may be sent to this URL. Raise httpx.InvalidURL.

    It may be sent over TLS or a Unix socket, and otherwise only within this machine and the
    containers' networks, where names have no dots.
    """
    parsed = httpx.URL(url)
    far = "." in parsed.host or ":" in parsed.host
    return parsed.scheme != "http" or is_loopback(parsed.host) or not far


def _in_clear(registration: Registration) -> Problem:
    return Problem(
        422,
        "in_clear",
        f"HOSTBENCH_SERVICE_URL {registration.url} is outside the stack's own network, where its "
        "key would travel in clear; let the service speak TLS (HOSTBENCH_TLS_CERT_FILE and "
        "HOSTBENCH_TLS_KEY_FILE) and give its https:// address",
        field="body.url",
    )


def _other_host(registration: Registration, caller: Caller) -> Problem:
    return Problem(
        403,
        "other_host",
        f"this key is for {caller.host} alone and does not register {registration.host}; set "
        f"HOSTBENCH_HOST={caller.host}, or give the service the key of {registration.host} (make "
        f"farhost NAME={registration.host} ADDRESS=... for a far host)",
        field="body.host",
    )


def _taken(registration: Registration, url: str) -> Problem:
    return Problem(
        409,
        "host_taken",
        f"a {registration.subsystem} service of {registration.host} is alive at {url}, so the one "
        f"at {registration.url} is not taken up; give it a name of its own (HOSTBENCH_HOST; of a "
        f"far host, make farhost NAME=...), or stop the other and wait {ALIVE_S:g} s",
        field="body.host",
    )


def _unreachable(registration: Registration, why: str) -> Problem:
    return Problem(
        422,
        "unreachable",
        f"{why}; HOSTBENCH_SERVICE_URL must be an address this orchestrator reaches, and both must "
        "have the same key of the host",
        field="body.url",
    )


class Unreachable(Exception):
    """The job cannot begin here and now: `service`, where one is named, does not answer."""

    def __init__(self, service: Service | None, reason: str) -> None:
        super().__init__(reason)
        self.service = service
        self.reason = reason


class Held(Exception):
    """A run outside the queue holds a host of the job, so the job waits in the queue."""

    def __init__(self, host: str, held_by: str) -> None:
        super().__init__(f"{host} is held outside the queue by {held_by}")
        self.host = host
        self.held_by = held_by


@dataclass(frozen=True)
class ConnectedService:
    """One service as it registered, and the connection to it."""

    registered: Service
    remote: RemoteService


@dataclass(frozen=True)
class HostLinks:
    """The services of the first host that the job needs, and those of the second with far ends for
    them, by subsystem. `far_name`: the second host; None: the job has none, or no subsystem with
    far ends."""

    near: Mapping[str, ConnectedService]
    far: Mapping[str, ConnectedService]
    far_name: str | None

    @property
    def services(self) -> Mapping[str, RemoteService]:
        """The connections to the first host."""
        return {subsystem: connected.remote for subsystem, connected in self.near.items()}

    def setup(
        self, suite: Suite, interrupt: Interrupt, plans: Plans
    ) -> tuple[Setup, FarHost | None]:
        """Return what is measured, from the services' present tables and inventories, and the far
        host; None: no case needs one.

        Raise Unreachable, or UsageError for hosts that have no route to each other.
        """
        tables: dict[str, Table] = {}
        versions: list[ProgramVersion] = []
        seen: list[HostInventory] = []
        for subsystem, connected in self.near.items():
            with _reaching(connected):
                answer = connected.remote.table(interrupt)
                seen.append(connected.remote.host(interrupt))
            tables[subsystem] = answer.table
            versions.append(answer.program)
        assert seen, "a suite has cases, and each has a subsystem"
        inventory = merged_inventory(seen)
        host = PlannedHost(tables, inventory)
        plan = plans.plan(suite, host, far_host=self.far_name is not None)
        far = self._far_host(plan, interrupt)
        record = None if far is None else far.record
        return Setup(plan, tables, tuple(versions), inventory, record), far

    def check_held(self, interrupt: Interrupt) -> None:
        """Raise Held if a run outside the queue holds a host of the job, or Unreachable."""
        for services in (self.near, self.far):
            for connected in list(services.values())[:1]:
                with _reaching(connected):
                    held_by = connected.remote.lock(interrupt).held_by
                if held_by is not None:
                    raise Held(connected.registered.host, held_by)

    def _far_host(self, plan: Plan, interrupt: Interrupt) -> FarHost | None:
        between = first_between_hosts(plan.cases)
        if self.far_name is None or between is None:
            return None
        subsystem = between.subsystem
        if subsystem not in self.far:
            raise Unreachable(
                None, f"{self.far_name} has no service {subsystem} any more; start it there"
            )
        far = self.far[subsystem]
        # A service that is lost here is the far one, because the near one answered a moment ago.
        with _reaching(far):
            return meet(far.remote, self.near[subsystem].remote, interrupt)

    def unregister_lost(self, hosts: HostStore, interrupt: Interrupt) -> None:
        """Unregister the services that do not answer, so that no further job starts on them until
        they register again."""
        for connected in (*self.near.values(), *self.far.values()):
            try:
                connected.remote.table(interrupt)
            except Interrupted:
                return
            except ServiceLost:
                with contextlib.suppress(RedisError):
                    hosts.unregister(connected.registered)


@contextlib.contextmanager
def _reaching(connected: ConnectedService) -> Iterator[None]:
    try:
        yield
    except ServiceLost as lost:
        raise Unreachable(connected.registered, lost.message) from None


@contextlib.contextmanager
def connected_hosts(links: Links, states: list[HostState], suite: Suite) -> Iterator[HostLinks]:
    """Yield connections to the hosts of a job, the measuring host first. Raise Unreachable."""
    first, *others = states
    registered = {service.subsystem: service for service in first.services}
    with contextlib.ExitStack() as stack:

        def connect(service: Service) -> ConnectedService:
            return ConnectedService(
                service, stack.enter_context(links.open(service.host, service.url))
            )

        near = {}
        for subsystem in subsystems_of(suite):
            if subsystem not in registered:
                raise Unreachable(
                    None, f"{first.name} has no service {subsystem} any more; start it there"
                )
            near[subsystem] = connect(registered[subsystem])
        with_far_ends = [name for name in near if find_subsystem(name).has_far_ends]
        if not others or not with_far_ends:
            yield HostLinks(near, {}, None)
            return
        second = others[0]
        far = {
            one.subsystem: connect(one) for one in second.services if one.subsystem in with_far_ends
        }
        yield HostLinks(near, far, second.name)
