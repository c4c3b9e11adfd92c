"""Jobs and hosts as the store takes them."""

import secrets
import subprocess
from functools import cache

from hostbench.host.inventory import inventory
from hostbench.model.host import HostInventory
from hostbench.model.jobs import JobSpec
from hostbench.model.result import ProgramVersion
from hostbench.model.service import Registration, ServiceTable
from hostbench.model.table import Table
from hostbench.plan.suite import ad_hoc_suite
from hostbench.results.ids import new_job_id
from orchestrator.queue.hosts import HostStore
from orchestrator.queue.jobs import JobStore
from orchestrator.queue.record import NewJob
from tests.stack.redis_server import REPOSITORY

BODY = b"the body of a request"


def new_job(*hosts: str, priority: int = 0) -> NewJob:
    spec = JobSpec(workload="cpu.fma", hosts=list(hosts), priority=priority)
    job_id = f"{new_job_id('ad-hoc')[:-4]}{secrets.token_hex(2)}"
    return NewJob(job_id, spec, ad_hoc_suite("cpu.fma", {}), hosts, ("cpu",))


def queue(store: JobStore, *hosts: str, priority: int = 0) -> str:
    """Queue a job; its id."""
    while True:
        answer = store.enqueue(new_job(*hosts, priority=priority), None, BODY)
        if answer.outcome == "queued":
            return answer.id
        assert answer.outcome == "taken"


@cache
def table() -> ServiceTable:
    """What a cpu service says it has."""
    program = REPOSITORY / "build/release/cpu-bench"
    listed = subprocess.run([program, "--list"], capture_output=True, check=True).stdout
    version = ProgramVersion(name="cpu-bench", subsystem="cpu", version="0.1.0", sha256="0" * 64)
    return ServiceTable(
        subsystem="cpu",
        program=version,
        table=Table.model_validate_json(listed),
        peers=(),
    )


@cache
def this_host() -> HostInventory:
    return inventory()


def registration(host: str, instance: str = "0123456789abcdef") -> Registration:
    return Registration(host=host, subsystem="cpu", url="http://127.0.0.1:1", instance=instance)


def register(hosts: HostStore, *names: str) -> None:
    """Hosts with a cpu service that gets no calls."""
    for name in names:
        hosts.register(registration(name), this_host(), table())
