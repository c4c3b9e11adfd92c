"""The services that a job works with, on one host or two."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from redis.exceptions import RedisError

from hostbench.betweenhosts import first_between_hosts
from hostbench.farhost import FarHost, meet
from hostbench.host import merged_inventory
from hostbench.interrupt import Interrupt
from hostbench.measuring import Setup
from hostbench.models.host import HostInventory
from hostbench.models.result import ProgramVersion
from hostbench.models.suite import Suite
from hostbench.models.table import Table
from hostbench.plan import Plan, make_plan, subsystems_of
from hostbench.remote import RemoteService, ServiceLost
from hostbench.services import Subsystem
from orchestrator.links import Links
from orchestrator.store.hosts import HostState, HostStore, Service


class Unreachable(Exception):
    """The job cannot begin here and now: `service`, where one is named, does not answer."""

    def __init__(self, service: Service | None, reason: str) -> None:
        super().__init__(reason)
        self.service = service
        self.reason = reason


@dataclass(frozen=True)
class Linked:
    """One service as it registered, and the connection to it."""

    registered: Service
    remote: RemoteService


@dataclass(frozen=True)
class HostLinks:
    """The services of the first host that the job needs, by subsystem, and the net service of the
    second; None: there is no second host, or it has none."""

    near: Mapping[str, Linked]
    far: Linked | None = None
    far_name: str | None = None

    @property
    def services(self) -> Mapping[str, RemoteService]:
        """The connections to the first host."""
        return {subsystem: linked.remote for subsystem, linked in self.near.items()}

    def setup(self, suite: Suite, interrupt: Interrupt) -> tuple[Setup, FarHost | None]:
        """What is measured, by what the services say now, and the far host where there is to be
        one. Raises Unreachable, or UsageError for hosts with no way to one another."""
        tables: dict[str, Table] = {}
        versions: list[ProgramVersion] = []
        seen: list[HostInventory] = []
        for subsystem, linked in self.near.items():
            with _reaching(linked):
                answer = linked.remote.table(interrupt)
                seen.append(linked.remote.host(interrupt))
            tables[subsystem] = answer.table
            versions.append(answer.program)
        assert seen, "a suite has cases, and each has a subsystem"
        inventory = merged_inventory(seen)
        plan = make_plan(suite, tables, inventory, far_host=self.far_name is not None)
        far = self._far_host(plan, interrupt)
        record = None if far is None else far.record
        return Setup(plan, tables, tuple(versions), inventory, record), far

    def _far_host(self, plan: Plan, interrupt: Interrupt) -> FarHost | None:
        if self.far_name is None or first_between_hosts(plan.cases) is None:
            return None
        if self.far is None:
            raise Unreachable(None, f"{self.far_name} has no service {Subsystem.NET} any more")
        # Of two that may be lost the far one is; the near one has answered a moment ago.
        with _reaching(self.far):
            return meet(self.far.remote, self.near[Subsystem.NET].remote, interrupt)

    def unregister_lost(self, hosts: HostStore) -> None:
        """No further job starts on a service that does not answer, until it registers again."""
        for linked in (*self.near.values(), *([] if self.far is None else [self.far])):
            try:
                linked.remote.table()
            except ServiceLost:
                with contextlib.suppress(RedisError):
                    hosts.unregister(linked.registered)


@contextlib.contextmanager
def _reaching(linked: Linked) -> Iterator[None]:
    try:
        yield
    except ServiceLost as lost:
        raise Unreachable(linked.registered, lost.message) from None


@contextlib.contextmanager
def linked_hosts(links: Links, states: list[HostState], suite: Suite) -> Iterator[HostLinks]:
    """Connections to the hosts of a job, the one that measures first. Raises Unreachable."""
    first, *others = states
    registered = {service.subsystem: service for service in first.services}
    with contextlib.ExitStack() as stack:
        near = {}
        for subsystem in subsystems_of(suite):
            if subsystem not in registered:
                raise Unreachable(None, f"{first.name} has no service {subsystem} any more")
            service = registered[subsystem]
            near[subsystem] = Linked(service, stack.enter_context(links.open(service.url)))
        far, far_name = None, None
        if others and Subsystem.NET in near:
            far_name = others[0].name
            theirs = [one for one in others[0].services if one.subsystem == Subsystem.NET]
            for service in theirs:
                far = Linked(service, stack.enter_context(links.open(service.url)))
        yield HostLinks(near, far, far_name)
