"""Services register here. A new one is asked what it is before it counts."""

from hostbench.models.service import Registered, Registration
from hostbench.remote import ServiceLost
from hostbench.web.problem import Problem
from orchestrator.links import Links
from orchestrator.store.hosts import RENEW_S, HostStore
from orchestrator.store.jobs import ALIVE_S


class Registrar:
    """Takes registrations. Raises Problem, or RedisError."""

    def __init__(self, hosts: HostStore, links: Links) -> None:
        self._hosts = hosts
        self._links = links

    def register(self, registration: Registration) -> Registered:
        """Renews a service, or takes up a new one."""
        if not self._hosts.renew(registration):
            self._take_up(registration)
        return Registered(renew_s=RENEW_S, expires_s=ALIVE_S)

    def _take_up(self, registration: Registration) -> None:
        try:
            with self._links.open(registration.url) as service:
                table, inventory = service.table(), service.host()
        except ServiceLost as lost:
            raise _unreachable(registration, lost.message) from None
        if table.subsystem != registration.subsystem:
            raise Problem(
                422,
                "other_subsystem",
                f"the service at {registration.url} is for {table.subsystem}, not "
                f"{registration.subsystem}; give its own HOSTBENCH_SERVICE_URL",
                field="body.subsystem",
            )
        self._hosts.register(registration, inventory, table)


def _unreachable(registration: Registration, why: str) -> Problem:
    return Problem(
        422,
        "unreachable",
        f"{why}; HOSTBENCH_SERVICE_URL must be an address this orchestrator reaches, and both must "
        "have the same service key",
        field="body.url",
    )
