"""A job: why it waits, how it goes, and what it found."""

import sqlite3
import time
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel
from redis.exceptions import RedisError
from starlette.responses import RedirectResponse, StreamingResponse

from hostbench.base.errors import shown
from hostbench.base.units import duration, human, plus_minus
from hostbench.decisions.index import UNFINISHED, indexed_figures, indexed_statuses
from hostbench.judge.condition import OUTSIDE_HOST
from hostbench.judge.verdict import not_idle_sentence
from hostbench.model.decision import CaseFigure, SubsystemStatus
from hostbench.model.jobs import ENDED, TERMINAL, JobView, StackState
from hostbench.model.result import PlannedCase, TrialRecord, Verdict
from hostbench.plan.words import waiting_sentence
from hostbench.results.ids import is_job_id
from hostbench.web.problem import Problem
from orchestrator.api import results
from orchestrator.api.common import Core, JobId
from orchestrator.api.events import Watchers
from orchestrator.api.jobs import cancelled, resumed
from orchestrator.console.live import Feed, JobState, Sample
from orchestrator.console.new import command_of, form_of_spec
from orchestrator.console.paging import Pages, paged
from orchestrator.console.repeat import Repeat, repeat_of
from orchestrator.console.results import Tally, tallies_of
from orchestrator.console.shell import View, add_page, rendered
from orchestrator.console.visitor import ActingForm, LoggedIn, Visitor, ring_of
from orchestrator.core import Orchestrator

ROWS = 50
SAMPLES_SHOWN = 60
RESUMABLE = (StackState.LOST, StackState.FAILED, StackState.CANCELLED)
router = APIRouter()
Page = Annotated[int, Query(ge=1, le=10_000)]
CaseTitle = Annotated[str, Query(max_length=300)]


class CaseRow(BaseModel):
    """A case. `state`: its verdict, or `to do`, `measuring`; `unfinished` once the job has ended.
    `figure`: in words, with its interval where one is known; of a case that is not done, the figure
    of its last trial. `reason`: why the case of an ended job has its verdict, or none; `note`: who
    took what was taken from it. `repeat` None: no job can be submitted for a host of this name."""

    title: str
    state: str
    trials: int | None = None
    figure: str | None = None
    of_limit: float | None = None
    note: str | None = None
    reason: str | None = None
    repeat: Repeat | None = None


class LiveView(BaseModel):
    """How a job goes that has not ended.

    `why`: what it waits for; None: it measures. `left`: how long it still takes, in words.
    `samples`: (seconds since 1970, figure, disturbed share) of the newest, in `unit`.
    """

    why: str | None
    gate: str | None
    cases: int
    cases_done: int
    trials: int
    trials_done: int
    left: str | None
    current: str | None
    newest: str | None
    unit: str
    samples: tuple[Sample, ...]


class JobPage(View):
    """A job. `rows` are its cases; `has_result`: a report can be made of it. `statuses`: of the
    subsystems that it measured, once it has ended. `indexed` False: the figures are still being
    read. `again`: the form for the same once more, and `command` does it; None: its suite was sent
    in full, or only its result is left. `chosen`: the title of the case that the address names;
    if the job has it, it is on this page."""

    job: JobView
    what: str
    under_way: bool
    may_resume: bool
    has_result: bool
    redis_away: bool = False
    live: LiveView | None = None
    statuses: tuple[SubsystemStatus, ...] = ()
    indexed: bool = True
    rows: tuple[CaseRow, ...] = ()
    pages: Pages
    again: str | None = None
    command: str | None = None
    chosen: str | None = None
    notice: str | None = None

    @property
    def tallies(self) -> tuple[Tally, ...]:
        """How many cases have each verdict, the worst first."""
        return tallies_of({str(word): count for word, count in self.job.verdicts.items()})


@add_page(router, "/jobs/{job_id}", "job.html.j2")
async def job_page(
    request: Request, job_id: JobId, core: Core, page: Page = 1, case: CaseTitle = ""
) -> View:
    """GET /ui/jobs/{job_id}."""
    return await _view(request, core, job_id, page, case.strip())


async def _view(
    request: Request, core: Orchestrator, job_id: str, page: int = 1, case: str = ""
) -> JobPage:
    job, redis_away = await run_in_threadpool(found_job, core, job_id)
    under_way = job.state not in TERMINAL
    feed = None if redis_away else await _feed(request, job)
    live = _live(job, feed.state) if feed and under_way else None
    figures: Sequence[CaseFigure] | None = ()
    statuses: Sequence[SubsystemStatus] = ()
    if not under_way:
        figures, statuses = await run_in_threadpool(_stored, core, job)
    rows = _figure_rows(figures, job) if figures else _live_rows(feed.state, job) if feed else []
    place = next((number for number, row in enumerate(rows) if row.title == case), None)
    on_page, pages = paged(rows, page if place is None else place // ROWS + 1, ROWS)
    return JobPage(
        title=f"{job.what} on {' and '.join(job.hosts)}",
        job=job,
        what=job.what,
        under_way=under_way,
        may_resume=job.state in RESUMABLE,
        has_result=await run_in_threadpool(core.archive.has, job.id),
        redis_away=redis_away,
        live=live,
        statuses=tuple(statuses),
        indexed=under_way or figures is not None,
        rows=tuple(on_page),
        pages=pages,
        again=form_of_spec(job.spec, job.hosts) if job.spec else None,
        command=command_of(job.spec) if job.spec else None,
        chosen=case or None,
        notice=f"this job has no case {shown(case)}" if case and rows and place is None else None,
    )


def found_job(core: Orchestrator, job_id: str) -> tuple[JobView, bool]:
    """Return a job, and whether Redis is not available: then the results directory answers. Raise
    Problem."""
    try:
        return core.catalogue.view(job_id), False
    except RedisError:
        view = core.archive.view(job_id) if is_job_id(job_id) else None
        if view is None:
            raise
        return view, True


async def _feed(request: Request, job: JobView) -> Feed | None:
    """Return the feed of a job that may have events."""
    if job.state in TERMINAL and job.started_unix_s is None:
        return None
    feed: Feed = await request.app.state.feeds.of(job.id)
    return feed


# ---- what changes while it runs ----


def _live(job: JobView, state: JobState) -> LiveView:
    current = state.current
    metric = None if current is None else state.primary(current.case)
    measures = job.state is StackState.RUNNING
    progress = job.progress
    return LiveView(
        why=None if measures else _why(job, state),
        gate=not_idle_sentence(state.gate) if state.gate and state.gate.idle is False else None,
        cases=progress.cases if progress else len(state.cases),
        cases_done=progress.done if progress else 0,
        trials=state.trials_least,
        trials_done=state.trials_done,
        left=_left(job, state),
        current=progress.current if progress and measures else None,
        newest=state.trial_text(state.newest) if state.newest else None,
        unit=metric.unit if metric else "1",
        samples=tuple(state.samples)[-SAMPLES_SHOWN:],
    )


def _why(job: JobView, state: JobState) -> str:
    if job.state is StackState.QUEUED:
        return f"{job.reason}; {job.place}" if job.reason else job.place
    if state.window is not None and state.window.reasons:
        return waiting_sentence(state.window)
    return job.reason or "until its host is idle"


def _left(job: JobView, state: JobState) -> str | None:
    """Return how long the job still takes: its estimate less the time that it has measured."""
    if job.started_unix_s is None or state.estimate is None:
        return None
    passed_s = max(0.0, time.time() - job.started_unix_s - state.waited_s)
    low_s, high_s = (max(0.0, s - passed_s) for s in (state.estimate.low_s, state.estimate.high_s))
    if high_s == 0:
        return f"longer than estimated ({duration(state.estimate.high_s)} at most)"
    low, high = duration(low_s), duration(high_s)
    more = (
        ""
        if state.estimate.complete
        else ", plus the time of the trials with a fixed amount of work"
    )
    if low == high or low_s < 1:
        return f"{high if low == high else f'up to {high}'} left{more}"
    return f"{low} to {high} left{more}"


# ---- cases ----


def _live_rows(state: JobState, job: JobView) -> list[CaseRow]:
    rows = []
    runs = job.state is StackState.RUNNING
    measured_now = job.progress.current if runs and job.progress else None
    for case in state.cases.values():
        trials = state.own_trials(case.case)
        measured = [trial for trial in trials if trial.value is not None]
        metric = state.primary(case.case)
        word = _row_state(job, state, case, measured_now)
        rows.append(
            CaseRow(
                title=case.title,
                state=word,
                trials=len(trials),
                figure=human(measured[-1].value, metric.unit) if measured and metric else None,
                of_limit=measured[-1].efficiency if measured else None,
                note=case.skip or _note(trials),
                reason=_why_open(job) if word == UNFINISHED else None,
                repeat=repeat_of(
                    case.workload, {name: case.params[name] for name in case.given}, job.hosts
                ),
            )
        )
    return rows


def _row_state(job: JobView, state: JobState, case: PlannedCase, measured_now: str | None) -> str:
    if (verdict := state.verdicts.get(case.case)) is not None:
        return verdict
    if case.case in state.kept:
        return "kept"
    if case.title == measured_now:
        return "measuring"
    if job.state in TERMINAL:
        return UNFINISHED
    return "begun" if state.own_trials(case.case) else "to do"


def _why_open(job: JobView) -> str | None:
    """Return why a case of an ended job has no verdict."""
    if job.state not in RESUMABLE:
        return None
    return f"the job {ENDED[job.state]} before the case was measured"


def _note(trials: Sequence[TrialRecord]) -> str | None:
    """Return why the last trial of a case is not clean."""
    if not trials or trials[-1].verdict is Verdict.CLEAN:
        return None
    return "; ".join(reason.text for reason in trials[-1].reasons) or None


def _stored(
    core: Orchestrator, job: JobView
) -> tuple[list[CaseFigure] | None, list[SubsystemStatus]]:
    """Return the figures of an ended job as the index has them, or None if it has not read them."""
    core.monitored.look()
    root = core.settings.results
    try:
        figures = indexed_figures(root, job.id)
        return figures, [] if figures is None else indexed_statuses(root, job.id)
    except sqlite3.Error:
        return None, []


def _figure_rows(figures: Sequence[CaseFigure], job: JobView) -> list[CaseRow]:
    rows = []
    for one in sorted(figures, key=lambda figure: figure.title):
        figure = None if one.headline is None else human(one.headline, one.unit)
        if figure and one.low is not None and one.high is not None and one.headline:
            figure += f" {plus_minus((one.high - one.low) / 2 / one.headline)}"
        why_open = None if one.verdict else _why_open(job)
        rows.append(
            CaseRow(
                title=one.title,
                state=one.verdict or UNFINISHED,
                figure=figure,
                of_limit=one.share_of_limit,
                note=_taken_by(one.culprit),
                reason=one.reason_text or why_open or one.why_not,
                repeat=repeat_of(one.workload, one.given, job.hosts),
            )
        )
    return rows


def _taken_by(culprit: str | None) -> str | None:
    by = "something outside this host" if culprit == OUTSIDE_HOST else culprit
    return f"taken by {by}" if by else None


# ---- what a person does ----


@router.post("/jobs/{job_id}/cancel")
async def cancel(
    request: Request, job_id: JobId, core: Core, visitor: LoggedIn, _form: ActingForm
) -> Response:
    """POST /ui/jobs/{job_id}/cancel."""
    return await _changed(request, core, job_id, visitor, "cancel")


@router.post("/jobs/{job_id}/resume")
async def resume(
    request: Request, job_id: JobId, core: Core, visitor: LoggedIn, _form: ActingForm
) -> Response:
    """POST /ui/jobs/{job_id}/resume."""
    return await _changed(request, core, job_id, visitor, "resume")


async def _changed(
    request: Request,
    core: Orchestrator,
    job_id: str,
    visitor: Visitor,
    what: Literal["cancel", "resume"],
) -> Response:
    job = await run_in_threadpool(core.catalogue.view, job_id)
    try:
        await run_in_threadpool(cancelled if what == "cancel" else resumed, core, job)
    except Problem as problem:
        if problem.details.status != 409:
            raise
        # Another user or window was first: the page shows the state of the job.
        view = await _view(request, core, job_id)
        view = view.model_copy(update={"notice": problem.details.detail})
        return await rendered(request, "job.html.j2", view, visitor, status=409)
    return RedirectResponse(f"/ui/jobs/{job_id}", 303)


# ---- live, and results ----


@router.get("/jobs/{job_id}/live", dependencies=[Depends(Watchers())])
async def live(request: Request, job_id: JobId, core: Core, visitor: LoggedIn) -> Response:
    """GET /ui/jobs/{job_id}/live: samples and changes, as server-sent events."""
    job, _ = await run_in_threadpool(found_job, core, job_id)
    feed: Feed = await request.app.state.feeds.of(job.id)
    ring = ring_of(request)

    async def messages() -> AsyncIterator[str]:
        yield "retry: 3000\n\n"
        async for message in feed.messages():
            # A key that was revoked meanwhile sees nothing more.
            if ring.owner(visitor.key) is None:
                return
            yield message

    return StreamingResponse(messages(), media_type="text/event-stream")


@router.get("/jobs/{job_id}/report")
async def report(job_id: JobId, core: Core, _visitor: LoggedIn) -> Response:
    """GET /ui/jobs/{job_id}/report: the result as a page."""
    job, _ = await run_in_threadpool(found_job, core, job_id)
    return await results.report(job, core)


@router.get("/jobs/{job_id}/result")
async def result(
    job_id: JobId,
    core: Core,
    _visitor: LoggedIn,
    form: Annotated[Literal["json", "csv"], Query(alias="format")] = "json",
) -> Response:
    """GET /ui/jobs/{job_id}/result: the document."""
    job, _ = await run_in_threadpool(found_job, core, job_id)
    return await results.result(job, core, form)
