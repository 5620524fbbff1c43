"""Devices: who is paired, what each may do, and how one is sent away.

Taking rights away is done at once: open streams are cut, tickets that the device asked for are withdrawn, and what the
device connects with next is what it then has.
"""

from __future__ import annotations

import unicodedata
from collections import Counter

from msgspec import UNSET, Struct, UnsetType

from ...acp.naming import camel
from ...log.errors import UnknownRecord
from ...log.records import Device
from ...model.errors import ValidationError
from ..auth import audit
from ..auth.browser_logins import BROWSER
from ..auth.callers import Caller, Scope, in_order
from ..auth.identity import CLI, LOCAL, TOKEN
from ..errors import HttpError
from ..http.operations import Body, Call, Operation
from ..state import Server

LONGEST_NAME = 64
RESERVED = frozenset(
    {LOCAL, CLI, TOKEN, BROWSER, "nobody", "user", "policy", "timeout", "cancelled", "recovery"}
    | {"no rule needed", "pilothouse run"}
)
"""Names that decisions of the owner, and those that no person made, are signed with."""
RULES = ("always:", "autoapprove.", "deny.")
"""How the names of rules begin, which sign what they decided."""


class DeviceInfo(Struct, kw_only=True, rename=camel):
    """A paired device. Times are ISO 8601; `revoked` is when it was sent away.

    `rules` is how many rules that it made still answer; they outlive it until they are revoked as well.
    """

    id: str
    name: str
    scopes: list[Scope]
    created: str
    last_seen: str | None = None
    revoked: str | None = None
    connections: int = 0
    rules: int = 0


class DeviceList(Struct, kw_only=True):
    devices: list[DeviceInfo]


class DevicePatch(Body):
    name: str | UnsetType = UNSET
    scopes: list[Scope] | UnsetType = UNSET


async def list_devices(call: Call) -> DeviceList:
    rules = await _rules(call.server)
    found = await call.server.hub.log.devices.list()
    return DeviceList(devices=[_info(call.server, device, rules) for device in found])


async def change_device(call: Call) -> DeviceInfo:
    server, patch = call.server, call.body
    if patch.scopes is not UNSET:
        check_grant(call.caller, patch.scopes)
    async with server.naming:  # one that is being revoked gets nothing back
        device = await _active(server, call.path["id"])
        values: dict[str, object] = {}
        if patch.name is not UNSET and patch.name != device.name:
            values["name"] = await free_name(server, checked_name(patch.name))
        if patch.scopes is not UNSET:
            values["scopes"] = in_order(patch.scopes)
        if not values:
            return _info(server, device, await _rules(server))
        changed = await server.hub.log.devices.change(device.id, **values)
        if changed.scopes != device.scopes:
            server.tickets.withdraw_all(device.id)
    server.connections.cut(device.id, scopes=frozenset(changed.scopes), reason="changed")
    audit.record("device_changed", call.caller, target=device.id, name=changed.name, scopes=changed.scopes)
    return _info(server, changed, await _rules(server))


async def revoke_device(call: Call) -> DeviceInfo:
    """Revoking twice is fine."""
    server = call.server
    async with server.naming:  # no pairing of its own is half done
        device = await server.hub.log.devices.revoke(call.path["id"])
        server.tickets.withdraw_all(device.id)
    cut = server.connections.cut(device.id, reason="revoked")
    audit.record("device_revoked", call.caller, target=device.id, name=device.name, cut=cut)
    await server.logins.remove_all(device.id)
    server.seen.pop(device.id, None)
    info = _info(server, device, await _rules(server))
    info.connections = cut
    return info


async def _active(server: Server, device_id: str) -> Device:
    device = await server.hub.log.devices.get(device_id)
    if device.revoked is not None:
        raise UnknownRecord(Device.table, (device_id,))
    return device


async def _rules(server: Server) -> Counter[str | None]:
    """How many rules that still answer were made by each device."""
    return Counter(rule.device_id for rule in await server.hub.log.rules.active())


def _info(server: Server, device: Device, rules: Counter[str | None]) -> DeviceInfo:
    return DeviceInfo(
        id=device.id,
        name=device.name,
        scopes=in_order(device.scopes),
        created=device.created,
        last_seen=device.last_seen,
        revoked=device.revoked,
        connections=server.connections.of(device.id),
        rules=rules[device.id],
    )


# -- what holds for each ------------------------------------------------------------------------------------------


def check_grant(caller: Caller, scopes: list[Scope]) -> None:
    """Raises ValidationError for no scopes, HttpError 403 for more than the caller has."""
    if not scopes:
        raise ValidationError("a device needs at least one; to send it away, revoke it", "scopes")
    if not caller.may_grant(scopes):
        raise HttpError(403, "forbidden", f"{caller.name} cannot give what it does not have")


def checked_name(name: str) -> str:
    """A name that decisions can be signed with. Raises ValidationError."""
    name = " ".join(name.split())
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise ValidationError(f"1 to {LONGEST_NAME} printable characters are needed", "name")
    if _folded(name) in RESERVED or _folded(name).startswith(RULES):
        raise ValidationError(f"{name!r} is what the hub's or the owner's own decisions are signed with", "name")
    return name


async def free_name(server: Server, name: str) -> str:
    """The name, with a number if another device or a browser of the owner has it: who decided must be plain. Whoever
    calls holds `naming`."""
    devices = [device.name for device in await server.hub.log.devices.list() if device.revoked is None]
    taken = {_folded(other) for other in (*devices, *await server.logins.names())}
    number, free = 1, name
    while _folded(free) in taken:
        number += 1
        free = f"{name} {number}"
    return free


def _folded(name: str) -> str:
    """What names that look alike have in common: case, width, ligatures."""
    return unicodedata.normalize("NFKC", name).casefold()


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        method="GET",
        path="/devices",
        handler=list_devices,
        scope="admin",
        answer=DeviceList,
        summary="Which devices are or were paired",
        tag="access",
    ),
    Operation(
        method="PATCH",
        path="/devices/{id}",
        handler=change_device,
        scope="admin",
        body=DevicePatch,
        answer=DeviceInfo,
        errors=(404,),
        summary="Change a device's name or scopes; it has to connect again",
        tag="access",
    ),
    Operation(
        method="DELETE",
        path="/devices/{id}",
        handler=revoke_device,
        scope="admin",
        answer=DeviceInfo,
        errors=(404,),
        summary="Send a device away; its connections end at once, and `connections` says how many those were",
        tag="access",
    ),
)
