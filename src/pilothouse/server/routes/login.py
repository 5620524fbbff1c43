"""Browsers log in by a link that works once: its ticket becomes a cookie, and the ticket leaves the address bar.

A login that an admin's device made is that device's own and ends when it is revoked; otherwise a device could keep
its rights by a cookie.
"""

from __future__ import annotations

from html import escape

from msgspec import Struct
from starlette.responses import Response

from ...acp.naming import camel
from ..auth import audit
from ..auth.browser_logins import Login, browser_name
from ..auth.callers import Scope, in_order
from ..auth.identity import address, failed, login_of, refuse_shut
from ..auth.links import base_url, set_cookie
from ..auth.secrets import TicketRefused
from ..errors import HttpError
from ..http.operations import Body, Call, Operation, Query, json_response
from ..page import stylesheet

SORRY = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Pilothouse</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="{style}">
</head>
<body class="notice">
<main class="card">
<img src="icon.svg" alt="" width="48" height="48">
<h1>This link does not work any more</h1>
<p>{reason}.</p>
<p class="muted">Each link logs in one browser, once, within five minutes. On the machine where the hub runs,
<code>pilothouse serve</code> prints another one, also while the hub runs.</p>
<p><a class="button" href=".">Open Pilothouse</a></p>
</main>
</body>
</html>
"""
"""For people who follow a link too late or twice. It is at `/login`, so links relative to that lead to the page's."""


class LoginLink(Struct, kw_only=True, rename=camel):
    """`url` logs one browser in, once, within `expiresIn` seconds. Over the home's socket it may lack the host."""

    url: str
    expires_in: int


class LoginQuery(Query):
    ticket: str


class Logout(Body):
    """`everywhere`: not only this browser, but all that are logged in as you are."""

    everywhere: bool = False


class Whoami(Struct, kw_only=True, rename=camel):
    name: str
    scopes: list[Scope]
    device_id: str | None = None


async def make_link(call: Call) -> LoginLink:
    ticket, secret = call.server.tickets.issue("login", issuer=call.caller.device_id)
    audit.record("login_link", call.caller, ticketId=ticket.id)
    url = f"{base_url(call.server, call.request)}/login?ticket={secret}"
    return LoginLink(url=url, expires_in=int(call.server.tickets.left(ticket)))


async def log_in(call: Call) -> Response:
    """Whoever is logged in already is just sent on: they came by the link a second time."""
    if call.request.method != "GET":
        raise HttpError(405, "method_not_allowed", "a link is followed by GET", headers={"Allow": "GET"})
    server, client = call.server, address(call.request.scope)
    refuse_shut(server, client)
    onward = {"Location": f"{server.root_path}/"}
    try:
        ticket = server.tickets.redeem("login", call.query.ticket)
    except TicketRefused as refused:
        if call.caller.scopes:
            return Response(status_code=303, headers=onward)
        failed(server, client, "login ticket")
        return _sorry(call, str(refused))
    name = browser_name(call.request.headers.get("user-agent", ""))
    secret = await server.logins.add(ticket.issuer, name)
    audit.record("login", ticketId=ticket.id, address=client, deviceId=ticket.issuer)
    return Response(status_code=303, headers=onward | set_cookie(server, call.request, secret))


def _sorry(call: Call, reason: str) -> Response:
    if "text/html" not in call.request.headers.get("accept", ""):
        raise HttpError(403, "ticket_refused", reason)
    return Response(SORRY.format(style=stylesheet(), reason=escape(reason)), 403, media_type="text/html")


class LoggedOut(Struct, kw_only=True):
    """How many browsers are logged in no more."""

    ended: int


async def log_out(call: Call) -> Response:
    login = await login_of(call.server, call.request.scope)
    ended: list[Login] = []
    if call.body.everywhere:
        ended = await call.server.logins.remove_all(call.caller.device_id)
    elif login is not None:
        await call.server.logins.remove(login)
        ended = [login]
    call.server.connections.cut_logins(one.key for one in ended)
    audit.record("logout", call.caller, logins=len(ended))
    return json_response(LoggedOut(ended=len(ended)), headers=set_cookie(call.server, call.request, None))


async def whoami(call: Call) -> Whoami:
    caller = call.caller
    return Whoami(name=caller.name, scopes=in_order(caller.scopes), device_id=caller.device_id)


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        method="POST",
        path="/login-links",
        handler=make_link,
        scope="admin",
        answer=LoginLink,
        status=201,
        summary="Make a link that logs in one browser, once",
        tag="access",
    ),
    Operation(
        method="GET",
        path="/login",
        handler=log_in,
        scope=None,
        query=LoginQuery,
        status=303,
        errors=(405,),
        summary="Follow such a link: sets the cookie and leads to the user interface",
        tag="access",
    ),
    Operation(
        method="POST",
        path="/logout",
        handler=log_out,
        scope="any",
        body=Logout,
        optional_body=True,
        answer=LoggedOut,
        summary="Log this browser out, or all of yours",
        tag="access",
    ),
    Operation(
        method="GET",
        path="/whoami",
        handler=whoami,
        scope="any",
        answer=Whoami,
        summary="Who you are to the hub, and what you may do",
        tag="access",
    ),
)
