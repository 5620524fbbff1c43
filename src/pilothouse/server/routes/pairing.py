"""Pairing: the owner asks for a ticket and a code; the device that has both gets a credential of its own.

The ticket travels by QR code or link, and could be seen by others on its way; the code is only ever shown on the
host, so a ticket alone is worth nothing. The ticket is in the part of the link behind `#`, which browsers do not send.
A ticket that a device asked for gives nothing that the device could not give any more when it is used.
"""

from __future__ import annotations

import secrets

from msgspec import Struct, field
from starlette.responses import Response

from ...acp.naming import camel
from ...log.records import Device
from ...model.errors import ValidationError
from ..auth import audit
from ..auth.callers import Scope, in_order
from ..auth.identity import address, as_caller, failed, refuse_shut
from ..auth.links import base_url, is_browser, set_cookie
from ..auth.secrets import Ticket, TicketRefused, Tickets, digest, new_secret
from ..errors import HttpError
from ..http.operations import Body, Call, Operation, json_response
from ..state import Server
from .devices import check_grant, checked_name, free_name

DEFAULT_SCOPES: tuple[Scope, ...] = ("read", "prompt", "approve")
LARGEST = 4096
"""Bytes that strangers may send."""


class PairingRequest(Body):
    """`name` goes before the one that the device gives itself. `expiresIn`: 10 s to an hour."""

    name: str | None = None
    scopes: list[Scope] = field(default_factory=lambda: list(DEFAULT_SCOPES))
    expires_in: int = 300


class NewPairing(Struct, kw_only=True, rename=camel):
    """Show `url` (as a QR code) to the device, and `code` only here. Neither is shown again.

    `qr` is that QR code: rows of 1 (dark) and 0, to be shown with a margin of four.
    """

    id: str
    ticket: str
    code: str
    url: str
    qr: list[str]
    scopes: list[Scope]
    expires_in: int


class PairingInfo(Struct, kw_only=True, rename=camel):
    """`state`: pending, used, withdrawn, locked (too many wrong codes) or expired; `deviceId` once it is used."""

    id: str
    state: str
    scopes: list[Scope]
    expires_in: int
    tries_left: int
    name: str | None = None
    device_id: str | None = None


class PairRequest(Body):
    """What the device presents. `name` is how it calls itself."""

    ticket: str
    code: str
    name: str = "device"


class Paired(Struct, kw_only=True, rename=camel):
    """`credential` is the device's own bearer token, shown this once."""

    device_id: str
    name: str
    scopes: list[Scope]
    credential: str


class _Grant(Struct, frozen=True):
    name: str | None
    scopes: list[Scope]


async def make_pairing(call: Call) -> NewPairing:
    wish = call.body
    check_grant(call.caller, wish.scopes)
    if not 10 <= wish.expires_in <= 3600:
        raise ValidationError("10 to 3600 seconds", "expiresIn")
    grant = _Grant(checked_name(wish.name) if wish.name is not None else None, in_order(wish.scopes))
    ticket, secret = call.server.tickets.issue(
        "pair", grant, issuer=call.caller.device_id, with_code=True, lifetime=wish.expires_in
    )
    audit.record("pairing", call.caller, ticketId=ticket.id, scopes=grant.scopes)
    url = f"{base_url(call.server, call.request)}/#pair={secret}"
    return NewPairing(
        id=ticket.id,
        ticket=secret,
        code=ticket.code or "",
        url=url,
        qr=qr_rows(url),
        scopes=grant.scopes,
        expires_in=wish.expires_in,
    )


def qr_rows(text: str) -> list[str]:
    """A QR code without its margin."""
    import segno  # rarely wanted, and large

    return ["".join("01"[dark & 1] for dark in row) for row in segno.make(text, error="m", micro=False).matrix]


async def show_pairing(call: Call) -> PairingInfo:
    return _info(call.server.tickets, _ticket(call))


async def withdraw_pairing(call: Call) -> PairingInfo:
    ticket = _ticket(call)
    call.server.tickets.withdraw(ticket)
    return _info(call.server.tickets, ticket)


def _ticket(call: Call) -> Ticket:
    ticket = call.server.tickets.get("pair", call.path["id"])
    if ticket is None:
        raise HttpError(404, "not_found", "there is no such pairing")
    return ticket


def _info(tickets: Tickets, ticket: Ticket) -> PairingInfo:
    grant: _Grant = ticket.grant
    return PairingInfo(
        id=ticket.id,
        state=ticket.state,
        scopes=grant.scopes,
        name=grant.name,
        expires_in=int(tickets.left(ticket)),
        tries_left=ticket.tries,
        device_id=ticket.result,
    )


async def pair(call: Call) -> Response:
    """The device's side. Its page, if it is one of ours, is logged in as well."""
    server, wish, client = call.server, call.body, address(call.request.scope)
    refuse_shut(server, client)
    called = checked_name(wish.name)  # before the ticket is used up
    try:
        ticket = server.tickets.redeem("pair", wish.ticket, wish.code.replace(" ", ""))
    except TicketRefused as refused:
        failed(server, client, "pairing ticket" if refused.left is None else "pairing code")
        code = "ticket_refused" if refused.left is None else "code_refused"
        raise HttpError(403, code, str(refused), triesLeft=refused.left or 0) from None
    grant: _Grant = ticket.grant
    secret = new_secret()
    async with server.naming:
        if not await _still_granted(server, ticket):
            ticket.state = "withdrawn"
            raise HttpError(403, "ticket_refused", "whoever asked for this ticket may not pair any more", triesLeft=0)
        device = Device(
            id=f"dev_{secrets.token_hex(8)}",
            name=await free_name(server, grant.name or called),
            credential=digest(secret),
            scopes=list(grant.scopes),
            created=server.hub.log.now(),
        )
        await server.hub.log.devices.add(device)
    ticket.result = device.id
    audit.record(
        "paired", ticketId=ticket.id, deviceId=device.id, name=device.name, scopes=device.scopes, address=client
    )
    paired = Paired(device_id=device.id, name=device.name, scopes=grant.scopes, credential=secret)
    headers = {}
    if is_browser(call.request):
        headers = set_cookie(server, call.request, await server.logins.add(device.id))
    return json_response(paired, 201, headers)


async def _still_granted(server: Server, ticket: Ticket) -> bool:
    """Whether the device that asked for a ticket may still give what it promises. Whoever calls holds `naming`."""
    if ticket.issuer is None:
        return True
    issuer = await server.hub.log.devices.get(ticket.issuer)
    caller = as_caller(issuer)
    return issuer.revoked is None and caller.may("admin") and caller.may_grant(ticket.grant.scopes)


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        method="POST",
        path="/pairings",
        handler=make_pairing,
        scope="admin",
        body=PairingRequest,
        optional_body=True,
        answer=NewPairing,
        status=201,
        summary="Begin to pair a device: a ticket for it, a code to be shown here",
        tag="access",
    ),
    Operation(
        method="GET",
        path="/pairings/{id}",
        handler=show_pairing,
        scope="admin",
        answer=PairingInfo,
        errors=(404,),
        summary="What became of a pairing",
        tag="access",
    ),
    Operation(
        method="DELETE",
        path="/pairings/{id}",
        handler=withdraw_pairing,
        scope="admin",
        answer=PairingInfo,
        errors=(404,),
        summary="Withdraw a pairing that is not used yet",
        tag="access",
    ),
    Operation(
        method="POST",
        path="/pair",
        handler=pair,
        scope=None,
        body=PairRequest,
        max_body=LARGEST,
        answer=Paired,
        status=201,
        errors=(403,),
        summary="Pair this device by ticket and code",
        tag="access",
    ),
)
