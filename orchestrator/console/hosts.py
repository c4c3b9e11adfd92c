"""Hosts: what each is, how its last jobs went, and what it does now."""

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from redis.exceptions import RedisError

from hostbench.decisions.baseline import headline_workloads
from hostbench.decisions.listing import headline_figures
from hostbench.judge.overview import worst_verdict
from hostbench.model.baseline import HostWord
from hostbench.model.decision import CaseFigure, SubsystemStatus
from hostbench.model.jobs import JobView, StackState
from hostbench.model.registry import subsystems
from hostbench.model.result import USABLE, Verdict
from hostbench.report.summary import host_line
from orchestrator.api.common import Core
from orchestrator.console.paging import Pages, paged
from orchestrator.console.shell import View, add_page
from orchestrator.core import Orchestrator
from orchestrator.queue.hosts import HostState

# With every headline case of each, a page and its files are below 150 KB.
CARDS = 10
JOBS_SHOWN = 8
_UNDER_WAY = (StackState.RUNNING, StackState.WAITING, StackState.QUEUED)
# The states of a host besides those of GET /hosts: it has results and never registered here; Redis,
# which would know, is away.
Presence = Literal["idle", "busy", "gone", "not registered", "unknown"]
Chosen = Literal["all", "attention", "busy", "idle", "gone"]

router = APIRouter()


class Cell(BaseModel):
    """A cell of the matrix: the cases of a headline workload in the last job of a host that
    measured the subsystem.

    `case`: its title, `figure`, `unit`, `share_of_limit`: of the best one that may be used;
    `verdict`: the worst. None: unknown.
    """

    job: str
    case: str | None
    figure: float | None
    unit: str | None
    share_of_limit: float | None
    verdict: Verdict | None


class HostCard(BaseModel):
    """A host.

    - `what`: its hardware in one line; None: unknown. `services`: the subsystems it can measure.
    - `job` holds it now; `queued` counts the jobs that wait for it.
    - `statuses`: a line for each subsystem that was measured; empty: none ever was.
    - `word`: how it compares with others of its model; `verdict`: the worst of its last cases.
    - `cells`: its row of the matrix, by column.
    """

    name: str
    presence: Presence
    what: str | None = None
    services: tuple[str, ...] = ()
    job: str | None = None
    queued: int = 0
    statuses: tuple[SubsystemStatus, ...] = ()
    word: HostWord | None = None
    verdict: Verdict | None = None
    cells: dict[str, Cell] = Field(default={})

    @property
    def needs_attention(self) -> bool:
        """Whether a person should look at it."""
        off = self.word in (HostWord.LOW, HostWord.SUSPECT)
        bad = self.verdict not in (None, Verdict.SKIPPED, *USABLE)
        return off or bad or self.presence == "gone"

    @property
    def last_job(self) -> SubsystemStatus | None:
        """The status of the job that ended last."""
        return max(self.statuses, key=lambda one: one.ended_unix_s or 0.0, default=None)


class HostsView(View):
    """`counts`: how many hosts there are of each choice; `under_way`: the jobs that have not ended,
    the newest of each state. `columns` of the matrix: the headline workloads of the hosts on this
    page; a subsystem stands for the best case of hosts where no headline workload was measured.
    `reading`: documents are being read, whose figures are missing until then."""

    title: str = "Hosts"
    chosen: Chosen
    search: str
    counts: dict[str, int]
    hosts: tuple[HostCard, ...]
    columns: tuple[str, ...]
    pages: Pages
    under_way: tuple[JobView, ...] = ()
    jobs: int = 0
    redis_away: bool = False
    reading: bool = False


@add_page(router, "/hosts", "hosts.html.j2")
def hosts(
    core: Core,
    show: Chosen = "all",
    search: Annotated[str, Query(alias="q", max_length=64)] = "",
    page: Annotated[int, Query(ge=1, le=10_000)] = 1,
) -> View:
    """GET /ui/hosts."""
    measured = _measured(core.monitored.statuses())
    try:
        registered = {state.name: state for state in core.hosts.lately()}
        under_way, jobs = _under_way(core)
        queued = core.jobs.queued_by_host()
        redis_away = False
    except RedisError:
        registered, under_way, jobs, queued, redis_away = {}, (), 0, {}, True
    names = sorted({*registered, *measured})
    cards = [
        _card(name, registered.get(name), measured.get(name, ()), queued, redis_away=redis_away)
        for name in names
    ]
    wanted = [
        card for card in cards if _is_chosen(card, show) and search.lower() in card.name.lower()
    ]
    shown, pages = paged(wanted, page, CARDS)
    shown = _with_cells(
        core, [_with_hardware(core, card, registered.get(card.name)) for card in shown]
    )
    return HostsView(
        chosen=show,
        search=search,
        counts=_counts(cards),
        hosts=tuple(shown),
        columns=_columns(shown),
        pages=pages,
        under_way=under_way,
        jobs=jobs,
        redis_away=redis_away,
        reading=core.monitored.reading,
    )


def _measured(statuses: Sequence[SubsystemStatus]) -> dict[str, tuple[SubsystemStatus, ...]]:
    return {
        name: tuple(theirs) for name, theirs in groupby(statuses, key=lambda status: status.host)
    }


def _under_way(core: Orchestrator) -> tuple[tuple[JobView, ...], int]:
    """Return the jobs that have not ended, as many as are shown, and the number of all."""
    counts = core.jobs.counts()
    ids: list[str] = []
    for state in _UNDER_WAY:
        for _, job_id in core.jobs.newest(state, None):
            if len(ids) == JOBS_SHOWN:
                break
            ids.append(job_id)
    return tuple(core.jobs.views(ids)), sum(counts[state] for state in _UNDER_WAY)


def _card(
    name: str,
    state: HostState | None,
    statuses: tuple[SubsystemStatus, ...],
    queued: dict[str, int],
    *,
    redis_away: bool,
) -> HostCard:
    words = {one.word for one in statuses}
    verdicts = {one.verdict for one in statuses}
    return HostCard(
        name=name,
        presence="unknown" if redis_away else _presence(state),
        services=state.alive if state else (),
        job=state.job if state else None,
        queued=queued.get(name, 0),
        statuses=statuses,
        word=next((word for word in HostWord if word in words), None),
        verdict=worst_verdict(filter(None, verdicts)),
    )


def _presence(state: HostState | None) -> Presence:
    if state is None:
        return "not registered"
    if not state.alive:
        return "gone"
    return "busy" if state.job else "idle"


def _with_hardware(core: Orchestrator, card: HostCard, state: HostState | None) -> HostCard:
    """Return the card with the host's hardware, which is read for those on the page alone."""
    if state is None:
        return card
    try:
        inventory = core.hosts.last_inventory(state.name)
    except RedisError:
        return card
    return card.model_copy(update={"what": None if inventory is None else host_line(inventory)})


def _is_chosen(card: HostCard, chosen: Chosen) -> bool:
    if chosen == "all":
        return True
    return card.needs_attention if chosen == "attention" else card.presence == chosen


def _counts(cards: Sequence[HostCard]) -> dict[str, int]:
    presences = Counter(card.presence for card in cards)
    return {
        "all": len(cards),
        "attention": sum(card.needs_attention for card in cards),
        "busy": presences["busy"],
        "idle": presences["idle"],
        "gone": presences["gone"],
    }


def _with_cells(core: Orchestrator, cards: Sequence[HostCard]) -> list[HostCard]:
    """Return the cards with their rows of the matrix, which are read for those on the page
    alone."""
    jobs = {status.job for card in cards for status in card.statuses}
    try:
        figures: Mapping[str, Sequence[CaseFigure]] = headline_figures(core.settings.results, jobs)
    except sqlite3.Error:
        figures = {}
    return [card.model_copy(update={"cells": _cells(card.statuses, figures)}) for card in cards]


def _cells(
    statuses: Sequence[SubsystemStatus], figures: Mapping[str, Sequence[CaseFigure]]
) -> dict[str, Cell]:
    cells = {}
    for status in statuses:
        own = [one for one in figures.get(status.job, ()) if one.subsystem == status.subsystem]
        for workload in {one.workload for one in own}:
            theirs = [one for one in own if one.workload == workload]
            cells[workload] = _cell(status.job, theirs)
        if not own:
            cells[status.subsystem] = Cell(
                job=status.job,
                case=status.title,
                figure=status.figure,
                unit=status.unit,
                share_of_limit=status.share_of_limit,
                verdict=status.verdict,
            )
    return cells


def _cell(job: str, cases: Sequence[CaseFigure]) -> Cell:
    """Return the cell of one workload."""

    def merit(case: CaseFigure) -> float:
        figure = case.headline or 0.0
        return figure if case.direction == "higher" else -figure

    usable = [case for case in cases if case.headline is not None]
    best = max(usable, key=merit, default=cases[0])
    verdicts = [case.verdict for case in cases]
    return Cell(
        job=job,
        case=best.title,
        figure=best.headline,
        unit=best.unit,
        share_of_limit=best.share_of_limit,
        verdict=None if None in verdicts else worst_verdict(filter(None, verdicts)),
    )


def _columns(cards: Sequence[HostCard]) -> tuple[str, ...]:
    """Return the columns that any of these hosts has a cell of, in the order of the registry."""
    found = {column for card in cards for column in card.cells}
    headlines = headline_workloads()
    known = [
        column
        for name in subsystems()
        for column in (*(one for one in headlines if one.startswith(f"{name}.")), name)
    ]
    return tuple(column for column in known if column in found) + tuple(sorted(found - {*known}))
