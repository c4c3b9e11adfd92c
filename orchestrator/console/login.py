"""Log in with a key or a link, and log out."""

import contextlib
import hmac
import secrets
from typing import Annotated

import structlog
from fastapi import APIRouter, Depends, Query, Request, Response
from redis.exceptions import RedisError
from starlette.background import BackgroundTask
from starlette.responses import RedirectResponse

from hostbench.web.keys import digest_of
from orchestrator.api.common import Core
from orchestrator.api.suites import suites
from orchestrator.console.shell import View, rendered
from orchestrator.console.visitor import (
    LOGIN,
    USERS,
    OwnForm,
    cookie_name,
    form_of,
    is_secure,
    local_path,
    ring_of,
    set_session,
)

# The form of the login belongs to no session: the browser sends the same text by cookie.
FORM_COOKIE = "hostbench_login"
FORM_BYTES = 16
FORM_S = 3600
Next = Annotated[str, Query(alias="next", max_length=2000)]
router = APIRouter()
log = structlog.get_logger()


class LoginView(View):
    """`link`: the token of a link, and `name` its owner; None: the page asks for a key. `next`: the
    page to go to. `problem`: why the last attempt failed."""

    title: str = "Log in"
    next: str
    form: str
    link: str | None = None
    name: str | None = None
    problem: str | None = None


@router.get("/login")
async def login_page(
    request: Request,
    core: Core,
    next_path: Next = "",
    link: Annotated[str | None, Query(max_length=200)] = None,
) -> Response:
    """GET /ui/login: the form; with a link, a button."""
    view = LoginView(next=local_path(next_path), form=secrets.token_urlsafe(FORM_BYTES), link=link)
    if link is not None:
        # A link is used by the button, since some programs open each link that they see.
        owner = ring_of(request).owner(await core.sessions.linked(link) or b"")
        if owner is None or owner.role not in USERS:
            return await _again(request, view, _BAD_LINK, 401)
        view = view.model_copy(update={"name": owner.name})
    answer = await _form(request, view)
    # The form of a new measurement, often opened next, reads all suites once.
    answer.background = BackgroundTask(suites)
    return answer


_BAD_LINK = (
    "This link was already used or is older than five minutes: create another one with "
    "hostbench console, or enter your key."
)


async def _form(request: Request, view: LoginView, status: int = 200) -> Response:
    answer = await rendered(request, "login.html.j2", view, status=status)
    answer.set_cookie(
        FORM_COOKIE,
        view.form,
        max_age=FORM_S,
        path=LOGIN,
        secure=is_secure(request),
        httponly=True,
        samesite="strict",
    )
    return answer


async def _again(request: Request, view: LoginView, problem: str, status: int) -> Response:
    return await _form(request, view.model_copy(update={"problem": problem, "link": None}), status)


@router.post("/login")
async def log_in(
    request: Request, core: Core, form: Annotated[dict[str, str], Depends(form_of)]
) -> Response:
    """POST /ui/login."""
    view = LoginView(next=local_path(form.get("next", "")), form=secrets.token_urlsafe(FORM_BYTES))
    sent, kept = form.get("form", ""), request.cookies.get(FORM_COOKIE, "")
    if not kept or not hmac.compare_digest(sent.encode(), kept.encode()):
        return await _again(request, view, "The form has expired: send it again.", 403)
    address = request.client.host if request.client else "local"
    link, key = form.get("link"), form.get("key", "").strip()
    # A link cannot be guessed. Its owner may share an address with who guesses keys.
    if not link and (wait_s := await core.sessions.refused_s(address)):
        answer = await _again(request, view, f"Too many wrong keys: wait {wait_s} s.", 429)
        answer.headers["Retry-After"] = str(wait_s)
        return answer
    digest = await core.sessions.use_link(link) if link else digest_of(key)
    owner = ring_of(request).owner(digest) if digest else None
    if digest is None or owner is None or owner.role not in USERS:
        if not link:
            await core.sessions.count_failure(address)
        log.warning("login_failed", address=address, by="link" if link else "key")
        why = _BAD_LINK if link else "This is not the key of a user. See docs/keys.md."
        return await _again(request, view, why, 401)
    # A new session: no other program can know its id, whatever session the browser had.
    await core.sessions.end(request.cookies.get(cookie_name(request), ""))
    session_id, _ = await core.sessions.begin(digest)
    request.state.caller = owner
    answer = RedirectResponse(view.next, 303)
    set_session(request, answer, session_id)
    answer.delete_cookie(FORM_COOKIE, path=LOGIN)
    return answer


@router.post("/logout")
async def log_out(request: Request, core: Core, _form: OwnForm) -> Response:
    """POST /ui/logout."""
    # Without Redis the session ends here, and in Redis by itself.
    with contextlib.suppress(RedisError):
        await core.sessions.end(request.cookies.get(cookie_name(request), ""))
    answer = RedirectResponse(LOGIN, 303)
    answer.delete_cookie(cookie_name(request), path="/", secure=is_secure(request), httponly=True)
    return answer
