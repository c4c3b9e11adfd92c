"""Hosts in Redis: which are registered, what they are, and which job uses them."""

import contextlib
import functools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

import redis
from pydantic import ValidationError

from hostbench.host.inventory import merged_inventory
from hostbench.model.host import HostInventory
from hostbench.model.service import Registration, ServiceTable
from orchestrator.queue.connection import Scripts, flat, key
from orchestrator.queue.plans import PlannedHost
from orchestrator.queue.record import MICROSECONDS

RENEW_S = 15.0
_SERVICE = "service:"
HOSTS_CACHED = 64
KNOWN_S = 1.0


@dataclass(frozen=True)
class Service:
    """One service of a host, as it registered. `facts`: a mark that changes with its stored
    facts."""

    host: str
    subsystem: str
    instance: str
    url: str
    facts: str
    renewed_unix_s: float


@dataclass(frozen=True)
class HostFacts:
    """What the services of a host reported about it; tables by subsystem."""

    inventory: HostInventory
    tables: Mapping[str, ServiceTable]

    @functools.cached_property
    def planned(self) -> PlannedHost:
        """What plans are made from."""
        tables = {subsystem: answer.table for subsystem, answer in self.tables.items()}
        return PlannedHost(tables, self.inventory)


@dataclass(frozen=True)
class HostState:
    """The present state of a host. `alive`: the subsystems whose services renewed in time; `lease`:
    the job that holds the host."""

    name: str
    services: tuple[Service, ...]
    alive: tuple[str, ...]
    job: str | None

    @property
    def instances(self) -> tuple[tuple[str, str, str], ...]:
        """What its facts depend on, by subsystem."""
        return tuple(
            (one.subsystem, one.instance, one.facts)
            for one in self.services
            if one.subsystem in self.alive
        )


class HostTaken(Exception):
    """Another service of the same host and subsystem is alive at address `url`."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.url = url


class HostStore:
    """All methods raise RedisError when Redis cannot be used."""

    def __init__(self, client: redis.Redis) -> None:
        self._redis = client
        self._run = Scripts(client)
        self._cached_facts = lru_cache(HOSTS_CACHED)(self._read_facts)
        self._known: list[HostState] = []
        self._known_until_s = 0.0
        self._understood: dict[tuple[str, str], str] = {}

    def renew(self, registration: Registration) -> bool:
        """Renew a service that is already known; return False if it must `register`, because it is
        new or another version stored its facts. Raise HostTaken."""
        outcome, service = self._register(registration)
        if outcome != "known":
            return False
        # Checked once for each registration: services renew it during other jobs' trials, too.
        at = (registration.host, registration.subsystem)
        if self._understood.get(at) != service:
            if self.facts(self.states_of([registration.host])[0]) is None:
                return False
            self._understood[at] = service
        return True

    def register(
        self, registration: Registration, inventory: HostInventory, table: ServiceTable
    ) -> None:
        """Store a new service with its table and its host's inventory. Raise HostTaken.

        Only the disk service knows where disks are measured, so what it reported stays when another
        service registers.
        """
        answer = "changed"
        # Repeated each time that another service registered meanwhile; there are five services.
        while answer == "changed":
            text = self._inventory_text(registration.host)
            before = _understood(text)
            whole = merged_inventory([inventory, *([] if before is None else [before])])
            facts = {
                "inventory": whole.model_dump_json(),
                f"table:{registration.subsystem}": table.model_dump_json(),
            }
            answer, _ = self._register(registration, text or "", *flat(facts))

    def _register(self, registration: Registration, *facts: str) -> tuple[str, str]:
        answer = self._run(
            "register",
            registration.host,
            registration.subsystem,
            registration.url,
            registration.instance,
            registration.fence,
            registration.held_by or "",
            *facts,
        )
        outcome, _, which = cast(str, answer).partition(" ")
        if outcome == "taken":
            raise HostTaken(which)
        return outcome, which

    def unregister(self, service: Service) -> None:
        """Remove a service that could not be reached, until it registers again."""
        self._known_until_s = 0.0
        self._run("unregister", service.host, service.subsystem, service.instance)

    def states(self) -> list[HostState]:
        """Return every host that ever registered, by name."""
        names = cast(list[str], self._redis.zrange(key("hosts"), 0, -1))
        return self.states_of(sorted(names))

    def lately(self) -> list[HostState]:
        """Return `states`, at most a second old if any host was alive: every submission needs
        them."""
        known = self._known
        if time.monotonic() < self._known_until_s and any(state.alive for state in known):
            return known
        requested_s = time.monotonic()
        self._known = self.states()
        self._known_until_s = requested_s + KNOWN_S
        return self._known

    def states_of(self, names: Sequence[str]) -> list[HostState]:
        """Return these hosts; unknown ones have no services."""
        fields = self._service_fields(names)
        with self._redis.pipeline(transaction=False) as pipeline:
            for name, services in zip(names, fields, strict=True):
                pipeline.get(key("lease", name))
                for service in services:
                    pipeline.exists(key("alive", name, service.subsystem))
            answers = iter(pipeline.execute())
        states = []
        for name, services in zip(names, fields, strict=True):
            lease = cast(str | None, next(answers))
            alive = tuple(one.subsystem for one in services if next(answers))
            job = lease.partition(":")[0] if lease else None
            states.append(HostState(name, services, alive, job))
        return states

    def _service_fields(self, names: Sequence[str]) -> list[tuple[Service, ...]]:
        """Return the services of each host, without the large fields of its hash."""
        with self._redis.pipeline(transaction=False) as pipeline:
            for name in names:
                pipeline.hkeys(key("host", name))
            fields = pipeline.execute()
            subsystems = [
                sorted(one.removeprefix(_SERVICE) for one in some if one.startswith(_SERVICE))
                for some in fields
            ]
            for name, some in zip(names, subsystems, strict=True):
                for subsystem in some:
                    wanted = [f"{_SERVICE}{subsystem}", f"renewed:{subsystem}"]
                    pipeline.hmget(key("host", name), wanted)
            answers = iter(pipeline.execute())
        return [
            tuple(_service(name, subsystem, next(answers)) for subsystem in some)
            for name, some in zip(names, subsystems, strict=True)
        ]

    def facts(self, state: HostState) -> HostFacts | None:
        """Return what a host reported when its present services registered, or None.

        None: the host is gone, or another version stored its facts, and its services will register
        again.
        """
        try:
            return self._cached_facts(state.name, state.instances) if state.alive else None
        except (LookupError, ValidationError):
            return None

    def _read_facts(self, name: str, instances: tuple[tuple[str, str, str], ...]) -> HostFacts:
        subsystems = [subsystem for subsystem, _, _ in instances]
        wanted = ["inventory", *(f"table:{subsystem}" for subsystem in subsystems)]
        answers = cast(list[str | None], self._redis.hmget(key("host", name), wanted))
        inventory, *tables = [text for text in answers if text is not None]
        if len(tables) < len(subsystems):
            raise LookupError(name)  # it registered again meanwhile; do not cache
        return HostFacts(
            inventory=HostInventory.model_validate_json(inventory),
            tables={
                subsystem: ServiceTable.model_validate_json(table)
                for subsystem, table in zip(subsystems, tables, strict=True)
            },
        )

    def last_inventory(self, name: str) -> HostInventory | None:
        """Return the host's last registered inventory; None if there is none or another version
        wrote it."""
        return _understood(self._inventory_text(name))

    def _inventory_text(self, name: str) -> str | None:
        return cast(str | None, self._redis.hget(key("host", name), "inventory"))


def _understood(inventory: str | None) -> HostInventory | None:
    """Return the inventory, or None if there is none or another version wrote it."""
    with contextlib.suppress(ValidationError):
        return None if inventory is None else HostInventory.model_validate_json(inventory)
    return None


def _service(host: str, subsystem: str, fields: list[str | None]) -> Service:
    instance, url, facts = (fields[0] or "  ").split(" ")
    return Service(host, subsystem, instance, url, facts, int(fields[1] or 0) / MICROSECONDS)
