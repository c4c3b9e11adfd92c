"""Doctor: what is known of a host from its last result, and how to find out the rest there."""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.concurrency import run_in_threadpool
from pydantic import Field

from hostbench.base.errors import HostbenchError, shown
from hostbench.decisions.listing import listed_names, newest_result
from hostbench.model.baseline import Receipt
from hostbench.model.decision import JobFigures, SubsystemStatus
from hostbench.web.problem import as_problem
from orchestrator.api.common import Core
from orchestrator.console.results import NAMES_MOST
from orchestrator.console.shell import View, add_page
from orchestrator.core import Orchestrator
from orchestrator.results.questions import ReceiptQuestion

router = APIRouter()


class DoctorView(View):
    """`job`: the host's last result, begun at `begun_unix_s`. `receipt`: whether the host was as it
    should be; `problem`: why there is no answer. `statuses`: what the host was like in the last job
    of each subsystem. `facts`: of host and programs in that result."""

    title: str = "Doctor"
    host: str
    hosts: tuple[str, ...]
    job: str | None = None
    begun_unix_s: float | None = None
    receipt: Receipt | None = None
    statuses: tuple[SubsystemStatus, ...] = ()
    facts: Mapping[str, str] = Field(default={})
    problem: str | None = None
    curl: str | None = None


@add_page(router, "/doctor", "doctor.html.j2")
async def doctor(core: Core, host: Annotated[str, Query(max_length=253)] = "") -> View:
    """GET /ui/doctor."""
    host = host.strip()
    await run_in_threadpool(core.monitored.look)
    hosts, head = await run_in_threadpool(_stored, core, host)
    view = DoctorView(host=host, hosts=tuple(hosts[:NAMES_MOST]))
    if not host:
        return view
    if head is None:
        none = (
            f"no result of a host {shown(host)} is stored: its state is known after its first "
            "measurement, or from hostbench doctor on that host"
        )
        return view.model_copy(update={"problem": none, "title": f"Doctor: {host}"})
    receipt, problem = None, None
    try:
        answer = await core.decider.answer(ReceiptQuestion(job=head.job))
        receipt = Receipt.model_validate_json(answer)
    except HostbenchError as error:
        problem = as_problem(error).details.detail
    statuses = await run_in_threadpool(core.monitored.statuses)
    return view.model_copy(
        update={
            "title": f"Doctor: {host}",
            "job": head.job,
            "begun_unix_s": head.created_unix_s,
            "receipt": receipt,
            "problem": problem,
            "statuses": tuple(one for one in statuses if one.host == host),
            "facts": head.facts,
            "curl": f"curl --header @secrets/authorization URL/jobs/{head.job}/result",
        }
    )


def _stored(core: Orchestrator, host: str) -> tuple[Sequence[str], JobFigures | None]:
    root = core.settings.results
    try:
        return listed_names(root)[0], newest_result(root, host) if host else None
    except sqlite3.Error:
        return [], None
