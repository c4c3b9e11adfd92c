"""New measurement: choose what and where, see how long it takes, submit."""

import secrets
import shlex
from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ValidationError
from starlette.responses import RedirectResponse

from hostbench.base.errors import HostbenchError
from hostbench.base.units import duration
from hostbench.model.jobs import PRIORITY_MOST, JobSpec
from hostbench.model.result import PlannedCase
from hostbench.model.suite import ALL, TRIALS_MOST
from hostbench.model.table import Param, Workload
from hostbench.plan.estimate import Plan
from hostbench.plan.label import param_title
from hostbench.plan.suite import built_in_suites
from hostbench.plan.words import plan_sentence
from hostbench.plan.workloads import find_workload
from hostbench.programs.params import allowed
from hostbench.web.problem import Problem, refusal
from orchestrator.api.common import Core
from orchestrator.api.jobs import submitted
from orchestrator.api.suites import suites as all_suites
from orchestrator.console.shell import View, add_page, rendered
from orchestrator.console.visitor import ActingForm, LoggedIn
from orchestrator.core import Orchestrator
from orchestrator.queue.acceptance import named_suite
from orchestrator.queue.hosts import HostFacts

PARAM = "p."
ENTRIES_SHOWN = 60
SKIPS_SHOWN = 20
FIELD_CHARACTERS_MOST = 500
router = APIRouter()


class Choice(BaseModel):
    """One thing to choose. `note`: what it is, or why it cannot be used."""

    value: str
    title: str
    note: str = ""


class Field(BaseModel):
    """A parameter of the workload, as its program's table has it."""

    name: str
    title: str
    help: str
    allowed: str
    default: str
    value: str = ""
    choices: tuple[Choice, ...] = ()


class Entry(BaseModel):
    """What one entry of the suite expands to."""

    title: str
    cases: int
    trials: str
    time: str


class Skip(BaseModel):
    """Cases that will not be measured, and why."""

    reason: str
    cases: tuple[str, ...]
    count: int


class Preview(BaseModel):
    """What a submission would do. `curl`, `command`: the same as a call and as a command."""

    sentence: str
    low_s: float
    high_s: float
    entries: tuple[Entry, ...]
    entries_more: int
    skips: tuple[Skip, ...]
    before: int
    curl: str
    command: str


class NewView(View):
    """The form with what was chosen so far. `problem`: why there is no preview; `field` is the one
    that it is about."""

    title: str = "New measurement"
    chosen: dict[str, str]
    suites: tuple[Choice, ...]
    scales: tuple[Choice, ...] = ()
    workloads: tuple[Choice, ...] = ()
    hosts: tuple[Choice, ...] = ()
    fields: tuple[Field, ...] = ()
    about: str = ""
    preview: Preview | None = None
    problem: str | None = None
    field: str | None = None
    once: str = ""


def chosen_of(request: Request) -> dict[str, str]:
    """Return the fields of the form in the address."""
    return {
        name: value[:FIELD_CHARACTERS_MOST]
        for name, value in request.query_params.items()
        if value.strip()
    }


@add_page(router, "/new", "new.html.j2")
def new(core: Core, chosen: Annotated[dict[str, str], Depends(chosen_of)]) -> View:
    """GET /ui/new."""
    return _view(core, chosen)


@router.post("/new")
async def submit(request: Request, core: Core, visitor: LoggedIn, form: ActingForm) -> Response:
    """POST /ui/new."""
    chosen = {name: value for name, value in form.items() if value.strip()}
    once = chosen.pop("once", "")
    try:
        spec = _spec(chosen)
        answer, _ = await run_in_threadpool(
            submitted, core, spec, f"console:{once}" if once else None
        )
    except Problem as problem:
        if problem.details.status != 422:
            raise
        view = await run_in_threadpool(_view, core, chosen)
        field = problem.details.errors[0].field if problem.details.errors else None
        view = view.model_copy(update={"problem": problem.details.detail, "field": _field(field)})
        return await rendered(request, "new.html.j2", view, visitor, status=422)
    return RedirectResponse(f"/ui/jobs/{answer.id}", 303)


def _view(core: Orchestrator, chosen: Mapping[str, str]) -> NewView:
    hosts = _hosts(core)
    given = {**chosen}
    if "host" not in given and len(hosts) == 1:
        given["host"] = hosts[0].value
    facts = _facts(core, given.get("host"))
    view = NewView(
        chosen={name: value for name, value in given.items() if name != "csrf"},
        suites=tuple(_suites()),
        hosts=tuple(hosts),
        workloads=tuple(_workloads(facts)),
        once=secrets.token_hex(16),
    )
    if not hosts:
        return view.model_copy(update={"problem": _NO_HOST, "field": "host"})
    if "workload" in given and "suite" not in given:
        view = view.model_copy(update=_of_workload(facts, given))
    elif "suite" in given:
        view = view.model_copy(update=_of_suite(given["suite"]))
    else:
        return view
    if "host" not in given:
        return view
    try:
        spec = _spec(given)
        preview = _preview(core, spec)
    except Problem as problem:
        errors = problem.details.errors
        field = _field(errors[0].field if errors else None)
        return view.model_copy(update={"problem": problem.details.detail, "field": field})
    return view.model_copy(update={"preview": preview})


_NO_HOST = (
    "No host is registered. A service registers its host every 15 s: start one that knows this "
    "orchestrator (HOSTBENCH_ORCHESTRATOR_URL)."
)


def _suites() -> list[Choice]:
    return [
        Choice(value=one.name, title=one.name, note=one.problem or one.description or "")
        for one in all_suites().suites
    ]


def _hosts(core: Orchestrator) -> list[Choice]:
    return [
        Choice(
            value=state.name,
            title=state.name,
            note=f"busy with {state.job}" if state.job else "idle",
        )
        for state in core.hosts.lately()
        if state.alive
    ]


def _facts(core: Orchestrator, host: str | None) -> HostFacts | None:
    """Return the facts of the host, or of any one while none is chosen."""
    states = [state for state in core.hosts.lately() if state.alive]
    found = [state for state in states if state.name == host] or (states[:1] if not host else [])
    return core.hosts.facts(found[0]) if found else None


def _workloads(facts: HostFacts | None) -> list[Choice]:
    if facts is None:
        return []
    return [
        Choice(
            value=f"{subsystem}.{workload.name}",
            title=f"{subsystem}.{workload.name}",
            note=workload.unsupported or workload.description,
        )
        for subsystem, table in facts.planned.tables.items()
        for workload in table.workloads
    ]


def _of_suite(name: str) -> dict[str, Any]:
    if name not in built_in_suites():
        return {}
    try:
        suite = named_suite(name)
    except Problem:
        return {}
    scales = tuple(
        Choice(value=scale, title=scale, note=one.description)
        for scale, one in suite.scales.items()
    )
    return {"scales": scales, "about": suite.description}


def _of_workload(facts: HostFacts | None, given: Mapping[str, str]) -> dict[str, Any]:
    if facts is None:
        return {}
    try:
        workload = find_workload(facts.planned.tables, given["workload"])
    except (HostbenchError, KeyError):
        return {}
    fields = tuple(
        _param_field(param, given.get(PARAM + param.name, ""))
        for param in workload.params
        if param.scope == "request"
    )
    return {"fields": fields, "about": workload.description}


def _param_field(param: Param, value: str) -> Field:
    choices: tuple[Choice, ...] = ()
    if param.type == "choice":
        choices = (
            *(
                Choice(value=word, title=word, note=param.unsupported.get(word, ""))
                for word in param.words
            ),
            Choice(value=ALL, title="all of them, each a case"),
        )
    unit = f" {param.unit}" if param.unit and param.unit != "1" else ""
    return Field(
        name=param.name,
        title=_title(param),
        help=param.help,
        allowed=allowed(param),
        default="not set" if param.default is None else f"{param.default}{unit}",
        value=value,
        choices=choices,
    )


def _title(param: Param) -> str:
    """Return the name of a parameter in words, without its unit: `sample interval`."""
    words = param_title(param).replace("cpus", "CPUs")
    return words.removesuffix(f" {param.unit}") if param.unit else words


def _spec(given: Mapping[str, str]) -> JobSpec:
    """Return the submission. Raise Problem."""
    hosts = [given[name] for name in ("host", "far_host") if given.get(name)]
    by_workload = "workload" in given and "suite" not in given
    try:
        return JobSpec.model_validate(
            {
                "suite": None if by_workload else given.get("suite"),
                "scale": None if by_workload else given.get("scale"),
                "workload": given["workload"] if by_workload else None,
                "params": {
                    name.removeprefix(PARAM): value
                    for name, value in given.items()
                    if by_workload and name.startswith(PARAM)
                },
                "hosts": hosts or None,
                "priority": _whole(given, "priority", -PRIORITY_MOST, PRIORITY_MOST) or 0,
                "trials": _whole(given, "trials", 1, TRIALS_MOST),
                "idle_policy": given.get("idle_policy"),
                "peers": _peers(given.get("peers")),
            }
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = str(first["loc"][0]) if first["loc"] else "suite"
        raise Problem(422, "invalid", refusal([first]), field=f"body.{field}") from None


def _whole(given: Mapping[str, str], name: str, low: int, high: int) -> int | None:
    text = given.get(name, "").strip()
    if not text:
        return None
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) < 10 and low <= int(text) <= high:
        return int(text)
    raise Problem(
        422,
        "invalid",
        f"{name} {text!r} is not allowed: give a whole number from {low} to {high}",
        field=f"body.{name}",
    )


def _peers(text: str | None) -> Any:
    if text in (None, "auto", "none"):
        return text
    return [tool.strip() for tool in str(text).split(",") if tool.strip()]


def _field(place: str | None) -> str | None:
    """Return the name of the form's field that a refusal is about."""
    if place is None:
        return None
    name = place.removeprefix("body.")
    if name.startswith("params."):
        return PARAM + name.removeprefix("params.")
    return "host" if name == "hosts" else name


# ---- the preview ----


def _preview(core: Orchestrator, spec: JobSpec) -> Preview:
    accepted, plan, facts = core.acceptance.planned(spec)
    estimate = plan.estimate()
    entries = [_entry(plan, cases) for cases in plan.blocks]
    queued = core.jobs.queued_by_host()
    return Preview(
        sentence=plan_sentence(plan, ()),
        low_s=estimate.low_s,
        high_s=estimate.high_s,
        entries=tuple(entries[:ENTRIES_SHOWN]),
        entries_more=max(0, len(entries) - ENTRIES_SHOWN),
        skips=tuple(_skips(plan, facts)),
        before=max(queued.get(host, 0) for host in accepted.hosts),
        curl=curl_of(spec),
        command=command_of(spec) or "",
    )


def _entry(plan: Plan, cases: Sequence[PlannedCase]) -> Entry:
    first, last = cases[0], cases[-1]
    low = sum(case.repeats.min_trials for case in cases)
    high = sum(case.repeats.max_trials for case in cases)
    times = [plan.case_times(case) for case in cases]
    spans = dict.fromkeys(duration(sum(span)) for span in zip(*times, strict=True))
    more = any(plan.trial_time_s(case) is None for case in cases)
    return Entry(
        title=first.title if first is last else f"{first.title} … {last.label}",
        cases=len(cases),
        trials=str(low) if low == high else f"{low} to {high}",
        time=" to ".join(spans) + (" and more" if more else ""),
    )


def _skips(plan: Plan, facts: HostFacts) -> list[Skip]:
    """Return what cannot be measured on this host, by reason."""
    found: dict[str, list[str]] = {}
    for case in plan.cases:
        workload = find_workload(facts.planned.tables, case.workload)
        if (reason := case.skip or _unsupported(workload, case)) is not None:
            found.setdefault(reason, []).append(case.title)
    return [
        Skip(reason=reason, cases=tuple(titles[:SKIPS_SHOWN]), count=len(titles))
        for reason, titles in found.items()
    ]


def _unsupported(workload: Workload, case: PlannedCase) -> str | None:
    """Return why the program will skip a case here, as far as its table says."""
    if workload.unsupported is not None:
        return workload.unsupported
    for param in workload.params:
        value = case.params.get(param.name)
        if isinstance(value, str) and value in param.unsupported and value not in param.fallbacks:
            return f"{param.name} {value}: {param.unsupported[value]}"
    return None


def command_of(spec: JobSpec) -> str | None:
    """Return a submission as a command, or None for a suite that was sent in full."""
    if spec.workload is not None:
        words = ["--workload", spec.workload]
        for name, value in spec.params.items():
            words += ["--param", f"{name}={value}"]
    elif isinstance(spec.suite, str):
        words = [spec.suite]
    else:
        return None
    options: list[tuple[str, object]] = [("--scale", spec.scale)]
    options += [("--host", host) for host in spec.hosts or ()]
    options += [
        ("--trials", spec.trials),
        ("--idle-policy", spec.idle_policy),
        ("--peers", _tools(spec)),
        ("--priority", spec.priority or None),
    ]
    words += [word for name, value in options if value is not None for word in (name, str(value))]
    return shlex.join(["hostbench", "submit", *words])


def curl_of(spec: JobSpec) -> str:
    """Return a submission as a call."""
    body = spec.model_dump_json(exclude_defaults=True)
    return f"curl --header @secrets/authorization --json {shlex.quote(body)} URL/jobs"


def form_of_spec(spec: JobSpec, hosts: Sequence[str]) -> str | None:
    """Return the address of the form for the same submission on these hosts, or None for a suite
    that was sent in full."""
    if spec.suite is not None and not isinstance(spec.suite, str):
        return None
    given: dict[str, object] = {
        "suite": spec.suite,
        "scale": spec.scale,
        "workload": spec.workload,
        **{PARAM + name: value for name, value in spec.params.items()},
        "host": hosts[0],
        "far_host": hosts[1] if len(hosts) > 1 else None,
        "trials": spec.trials,
        "idle_policy": spec.idle_policy,
        "peers": _tools(spec),
        "priority": spec.priority or None,
    }
    return f"/ui/new?{urlencode({name: v for name, v in given.items() if v is not None})}"


def _tools(spec: JobSpec) -> str | None:
    return ",".join(spec.peers) if isinstance(spec.peers, list) else spec.peers
