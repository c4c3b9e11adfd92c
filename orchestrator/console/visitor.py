"""Who looks at a page: the owner of a key, by the session of a browser or by the key itself."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import parse_qs, quote

from fastapi import Depends, Request
from starlette.responses import Response

from hostbench.web.audit import LOOKS
from hostbench.web.keys import Caller, KeyRing, Role
from hostbench.web.problem import Problem
from orchestrator.api.common import Core
from orchestrator.sessions import SESSION_S, Session

LOGIN = "/ui/login"
HOME = "/ui/hosts"
FIELDS_MOST = 200
_FORM = "application/x-www-form-urlencoded"
_BEARER = "bearer"
# The roles that may look; only operators change something.
USERS = (Role.VIEWER, Role.OPERATOR)


class NotLoggedIn(Exception):
    """The request has neither a session nor a key."""


@dataclass(frozen=True)
class Visitor:
    """`key`: the SHA-256 of the key. `session` None: the request has the key itself, as programs
    send it."""

    caller: Caller
    key: bytes
    session: Session | None = None

    @property
    def may_act(self) -> bool:
        """Whether the visitor may submit, cancel and resume."""
        return self.caller.role is Role.OPERATOR

    @property
    def csrf(self) -> str:
        """What the visitor's forms must send."""
        return self.session.csrf if self.session else ""


def ring_of(request: Request) -> KeyRing:
    """Return the keys of the users."""
    ring = request.app.state.ring
    assert isinstance(ring, KeyRing)
    return ring


def cookie_name(request: Request) -> str:
    """Return the name of the session's cookie. With TLS, browsers take a cookie of this name from
    the host itself alone."""
    return "__Host-hostbench" if is_secure(request) else "hostbench"


def is_secure(request: Request) -> bool:
    """Whether the request came with TLS."""
    return request.url.scheme == "https"


async def visitor_of(request: Request, core: Core) -> Visitor:
    """Return who asks. Raise NotLoggedIn or Problem."""
    ring = ring_of(request)
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == _BEARER and request.method in LOOKS:
        offered = given.strip().encode("latin-1")
        found = Visitor(_user(ring.caller(offered)), hashlib.sha256(offered).digest())
    else:
        session = await core.sessions.find(request.cookies.get(cookie_name(request), ""))
        if session is None:
            raise NotLoggedIn
        found = Visitor(_user(ring.owner(session.key)), session.key, session)
    request.state.caller = found.caller
    return found


def _user(caller: Caller | None) -> Caller:
    if caller is None or caller.role not in USERS:
        raise NotLoggedIn
    return caller


LoggedIn = Annotated[Visitor, Depends(visitor_of)]
Form = Mapping[str, str]


async def form_of(request: Request) -> dict[str, str]:
    """Return the fields of a form; of one that is given several times, the values with commas
    between. Raise Problem."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        raise Problem(415, "not_a_form", f"the body is not a form; send it as {_FORM}")
    # A browser says where the form was that it sends.
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Problem(403, "other_site", "the form was sent by another site; open this one instead")
    try:
        text = (await request.body()).decode()
        fields = parse_qs(text, keep_blank_values=True, max_num_fields=FIELDS_MOST)
    except ValueError:
        raise Problem(422, "invalid", "the form cannot be read; open the page again") from None
    return {name: ",".join(filter(None, values)) for name, values in fields.items()}


async def own_form(visitor: LoggedIn, fields: Annotated[dict[str, str], Depends(form_of)]) -> Form:
    """Return the fields of a form of the visitor's own. Raise Problem for any other."""
    if not hmac.compare_digest(fields.get("csrf", "").encode(), visitor.csrf.encode() or b"-"):
        raise Problem(
            403,
            "stale_form",
            "the form belongs to another login, or to one that has ended; open its page again",
        )
    return fields


OwnForm = Annotated[Form, Depends(own_form)]


async def acting_form(visitor: LoggedIn, fields: OwnForm) -> Form:
    """Return the fields of a form that changes jobs. Raise Problem for a viewer's."""
    if not visitor.may_act:
        raise Problem(
            403,
            "forbidden",
            f"the key of {visitor.caller.name} has the role {visitor.caller.role}, and this takes "
            f"{Role.OPERATOR}; ask for a key that has it",
        )
    return fields


ActingForm = Annotated[Form, Depends(acting_form)]


def local_path(path: str) -> str:
    """Return where to go after the login: a page of the console, and never another site."""
    inside = path.startswith("/ui/") and path.isascii() and path.isprintable()
    return path if inside and "\\" not in path and not path.startswith(LOGIN) else HOME


def login_path(request: Request) -> str:
    """Return the login page, which leads back to the requested page."""
    wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    if request.method not in LOOKS or local_path(wanted) == HOME:
        return LOGIN
    return f"{LOGIN}?next={quote(wanted, safe='')}"


def set_session(request: Request, answer: Response, session_id: str) -> None:
    """Give the browser its session."""
    answer.set_cookie(
        cookie_name(request),
        session_id,
        max_age=SESSION_S,
        path="/",
        secure=is_secure(request),
        httponly=True,
        samesite="strict",
    )
