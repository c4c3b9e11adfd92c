"""What all pages share: the layout around them, their JSON twins, the state of the stack.

A page is a function that returns a View, registered with `add_page`. Its template shows the view,
and the page's address with `.json` behind it answers the same view as JSON.
"""

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import jinja2
from fastapi import APIRouter, Depends, Request, Response
from markupsafe import Markup
from pydantic import BaseModel, BeforeValidator, ConfigDict
from starlette.responses import HTMLResponse

import hostbench
from hostbench.base.units import duration, human, percent, plural
from hostbench.model.jobs import Health, PartHealth
from hostbench.report.html import BLOCKS, add_blocks
from hostbench.report.plaintext import one_line
from orchestrator.api.common import as_json
from orchestrator.console import static_files
from orchestrator.console.documents import prose
from orchestrator.console.visitor import LoggedIn, Visitor
from orchestrator.console.words import explained, mark, term, with_code
from orchestrator.core import Orchestrator
from orchestrator.observe import health

TEMPLATES = Path(__file__).with_name("templates")
TWIN = ".json"
# As long as this, the state of the stack is shown as it was.
HEALTH_S = 2.0
DAY_S = 86400
# Not that of a format such as %d.
_PERCENT = re.compile(r" %(?!\w)")
# What is wrong with the stack, in words of a page; the check has the details.
_AWAY = {
    "redis": "Redis is not available. No job can be submitted. Running jobs continue, and stored "
    "results can be read.",
    "influxdb": "InfluxDB does not accept points. Jobs continue, and the boards show the waiting "
    "points later.",
    "results": "Results of new jobs cannot be stored.",
}


@dataclass(frozen=True)
class Section:
    """An entry of the navigation."""

    path: str
    title: str


# A further page that the navigation leads to is added here.
NAVIGATION = (
    Section("/ui/hosts", "Hosts"),
    Section("/ui/new", "New measurement"),
    Section("/ui/results", "Results"),
    Section("/ui/compare", "Compare"),
    Section("/ui/history", "History"),
    Section("/ui/doctor", "Doctor"),
    Section("/ui/help", "Help"),
)


def _or_none(value: object) -> object:
    return value or None


# Of a parameter that a form without scripts sends empty where nothing was chosen.
EMPTY_IS_NONE = BeforeValidator(_or_none)


class View(BaseModel):
    """What a page shows: `title` stands in the window's title and as the heading."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    title: str


class StackHealth:
    """The state of the stack's parts, at most HEALTH_S old."""

    def __init__(self, core: Orchestrator) -> None:
        self._core = core
        self._known: Health | None = None
        self._until_s = 0.0
        self._lock = asyncio.Lock()

    async def problems(self) -> list[tuple[str, PartHealth]]:
        """Return the parts that are not as they should be: what that means, and the check."""
        async with self._lock:
            if self._known is None or time.monotonic() >= self._until_s:
                self._known = await health(self._core.checks())
                self._until_s = time.monotonic() + HEALTH_S
            parts = self._known.parts
        return [
            (_AWAY.get(name, f"The {name} of the orchestrator does not run."), part)
            for name, part in parts.items()
            if part.status in ("degraded", "down")
        ]


def add_page(
    router: APIRouter, path: str, template: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator for a function that returns the view of a page. Its parameters are those
    of the request, as in every call of FastAPI; it must require a login itself or by its router."""

    def decorate(make: Callable[..., Any]) -> Callable[..., Any]:
        async def page(
            request: Request, visitor: LoggedIn, view: Annotated[View, Depends(make)]
        ) -> Response:
            return await rendered(request, template, view, visitor)

        def twin(_visitor: LoggedIn, view: Annotated[View, Depends(make)]) -> Response:
            return as_json(view)

        # The twin first: a name in a path would take the suffix for a part of it.
        router.add_api_route(path + TWIN, twin, methods=["GET"])
        router.add_api_route(path, page, methods=["GET"])
        return make

    return decorate


async def rendered(
    request: Request,
    template: str,
    view: View,
    visitor: Visitor | None = None,
    status: int = 200,
    **more: Any,
) -> Response:
    """Return a page in the layout. `more` are further variables of the template."""
    state = request.app.state
    content = state.templates.get_template(template).render(
        view=view,
        visitor=visitor,
        here=request.url.path,
        query=request.url.query,
        problems=await state.health.problems(),
        **more,
    )
    return HTMLResponse(_unbroken(content), status)


def _unbroken(page: str) -> str:
    """Return a page in which no line ends between a number and its percent sign. Attributes stay as
    they are: links and forms send them."""

    def together(found: re.Match[str]) -> str:
        at = found.start()
        in_tag = page.rfind("<", 0, at) > page.rfind(">", 0, at)
        return found[0] if in_tag or not page[at - 1].isdigit() else "\N{NO-BREAK SPACE}%"

    return _PERCENT.sub(together, page)


def wants_json(request: Request) -> bool:
    """Whether the request is for the twin of a page."""
    return request.url.path.endswith(TWIN)


def environment(boards: str | None = None) -> jinja2.Environment:
    """Return the templates. Every text is escaped: names, labels and reasons cannot be trusted.
    `boards`: where browsers reach Grafana; None: unknown."""
    made = jinja2.Environment(
        # Also what the pages of the command line are made of.
        loader=jinja2.FileSystemLoader([TEMPLATES, BLOCKS.parent]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
    )
    add_blocks(made, mark=mark, term=term, job_address="/ui/jobs/")
    made.filters |= {
        "ago": ago,
        "clock": clock,
        "code": with_code,
        "duration": duration,
        "human": human,
        "moment": moment,
        "percent": percent,
        "plural": plural,
        "prose": prose,
    }
    made.globals |= {
        "boards": boards.rstrip("/") if boards else None,
        "explained": explained,
        "navigation": NAVIGATION,
        "static": static_files.address,
        "version": hostbench.__version__,
    }
    return made


def _printable(value: object) -> object:
    """Return a value for the template: plain text is cleaned here and escaped afterwards."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return one_line(value)
    return value


def ago(unix_s: float | None) -> str:
    """Return a text such as `12 s ago` or `9 days ago`."""
    if unix_s is None:
        return "–"
    seconds = max(0.0, time.time() - unix_s)
    return f"{duration(seconds) if seconds < 2 * DAY_S else f'{seconds // DAY_S:.0f} days'} ago"


def moment(unix_s: float | None) -> str:
    """Return a time such as `2026-11-20 20:17:44 UTC`."""
    return "–" if unix_s is None else f"{_utc(unix_s):%Y-%m-%d %H:%M:%S} UTC"


def clock(unix_s: float) -> str:
    """Return the time of a day, such as `20:17:44`."""
    return f"{_utc(unix_s):%H:%M:%S}"


def _utc(unix_s: float) -> datetime:
    """Return a time of a document; 1970 for one that no calendar has."""
    try:
        return datetime.fromtimestamp(unix_s, UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)
