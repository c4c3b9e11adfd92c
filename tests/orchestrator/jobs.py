"""Jobs and hosts as the store takes them."""

import secrets
import subprocess
from functools import cache

from hostbench.adhoc import ad_hoc_suite
from hostbench.host import inventory
from hostbench.models.host import HostInventory
from hostbench.models.jobs import JobSpec
from hostbench.models.result import ProgramVersion
from hostbench.models.service import Registration, ServiceTable
from hostbench.models.table import Table
from hostbench.results import new_job_id
from hostbench.services import Subsystem
from orchestrator.store.hosts import HostStore
from orchestrator.store.jobs import JobStore
from orchestrator.store.record import NewJob
from tests.stack.redis_server import REPOSITORY

BODY = b"the body of a request"


def new_job(*hosts: str, priority: int = 0) -> NewJob:
    spec = JobSpec(workload="cpu.fma", hosts=list(hosts), priority=priority)
    job_id = f"{new_job_id('ad-hoc')[:-4]}{secrets.token_hex(2)}"
    return NewJob(job_id, spec, ad_hoc_suite("cpu.fma", {}), hosts, ("cpu",))


def queue(store: JobStore, *hosts: str, priority: int = 0) -> str:
    """Queues a job; its id."""
    while True:
        answer = store.enqueue(new_job(*hosts, priority=priority), None, BODY)
        if answer.word == "queued":
            return answer.id
        assert answer.word == "taken"


@cache
def table() -> ServiceTable:
    """What a cpu service says it has."""
    program = REPOSITORY / "build/release/cpu-bench"
    listed = subprocess.run([program, "--list"], capture_output=True, check=True).stdout
    version = ProgramVersion(name="cpu-bench", subsystem="cpu", version="0.1.0", sha256="0" * 64)
    return ServiceTable(
        subsystem=Subsystem.CPU,
        program=version,
        table=Table.model_validate_json(listed),
        peers=(),
    )


@cache
def this_host() -> HostInventory:
    return inventory()


def registration(host: str, instance: str = "0123456789abcdef") -> Registration:
    return Registration(
        host=host, subsystem=Subsystem.CPU, url="http://127.0.0.1:1", instance=instance
    )


def register(hosts: HostStore, *names: str) -> None:
    """Hosts with a cpu service that nobody ever calls."""
    for name in names:
        hosts.register(registration(name), this_host(), table())
