"""A cache of plans: a job runs by the plan that accepted its submission."""

import functools
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from hostbench.model.host import HostInventory
from hostbench.model.suite import Suite
from hostbench.model.table import Table
from hostbench.plan.estimate import Plan
from hostbench.plan.grid import make_plan
from hostbench.plan.workloads import subsystems_of

# The most cases of all cached plans together; a case takes some kilobytes. The garbage collector of
# cycles, which stops all threads, takes about 3 ms for a thousand of them.
CASES_MOST = 10_000


@dataclass(frozen=True)
class PlannedHost:
    """What a plan needs of a host; tables by subsystem."""

    tables: Mapping[str, Table]
    inventory: HostInventory

    @functools.cached_property
    def digests(self) -> dict[str, str]:
        """The digests of the tables, by subsystem: another build of a program may have another
        table."""
        return {
            subsystem: _sha256(table.model_dump_json()) for subsystem, table in self.tables.items()
        }


class Plans:
    """The most recent plans. Threads may share it."""

    def __init__(self) -> None:
        self._plans: OrderedDict[object, Plan] = OrderedDict()
        self._lock = threading.Lock()

    def plan(self, suite: Suite, host: PlannedHost, *, far_host: bool) -> Plan:
        """Return the plan of a suite, made only if there is none for the same input. Raise
        UsageError as `make_plan` does."""
        basis = _basis(suite, host, far_host=far_host)
        with self._lock:
            found = self._plans.get(basis)
            if found is not None:
                self._plans.move_to_end(basis)
        if found is None:
            found = make_plan(suite, host.tables, host.inventory, far_host=far_host)
            self._remember(basis, found)
        return found

    def _remember(self, basis: object, plan: Plan) -> None:
        with self._lock:
            self._plans[basis] = plan
            while sum(len(one.cases) for one in self._plans.values()) > CASES_MOST:
                self._plans.popitem(last=False)


def _basis(suite: Suite, host: PlannedHost, *, far_host: bool) -> object:
    """Return all that `make_plan` reads: equal values give equal plans."""
    needed = [name for name in subsystems_of(suite) if name in host.tables]
    gpus = host.inventory.gpus
    devices = gpus and (gpus.reason, tuple((one.index, one.type) for one in gpus.devices))
    return (
        _sha256(suite.model_dump_json(exclude_defaults=True)),
        tuple((name, host.digests[name]) for name in needed),
        tuple(host.inventory.allowed_cpus),
        devices,
        far_host,
    )


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
