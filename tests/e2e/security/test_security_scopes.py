"""What a caller may do who lacks a scope: nothing, and nothing can be handed on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from websockets.asyncio.client import connect

from pilothouse.server.auth.callers import SCOPES
from tests.support.attacks import SCOPED, Attempts, bearer, paired, state, target
from tests.support.http_client import Client
from tests.support.lanes import lane
from tests.support.servers import Served


@pytest.mark.parametrize("has", ["read", "prompt", "approve"])
async def test_a_device_without_the_scope_of_an_operation_can_do_nothing(
    served: Served, attempts: Attempts, project: Path, has: str
) -> None:
    session = await served.hub.start_session("demo", project)
    victim, _ = await paired(served.client, "read", name="victim")
    _, device = await paired(served.client, has)
    before = await state(served.hub)
    for operation in SCOPED:
        if operation.scope in (has, "any"):
            continue
        names = {"id": victim} if "devices" in operation.path else {}
        path = target(operation.path, session.id, **names)
        for body in (None, {}, {"agent": "demo", "cwd": str(project), "content": "tour", "scopes": ["admin"]}):
            answer = await device.request(operation.method, path, body)
            attempts.refused(answer, 403)
            assert answer.json()["error"]["details"]["scope"] == operation.scope
    assert await state(served.hub) == before
    assert list(project.iterdir()) == []


COMMANDS = {
    "send_message": {"content": "tour"},
    "cancel": {},
    "terminate": {},
    "set_permission_policy": {"policy": {"autoApprove": {"writes": True}}},
    "approve_tool_call": {"requestId": "r"},
    "deny_tool_call": {"requestId": "r"},
}


@pytest.mark.parametrize("has", ["read", "prompt", "approve"])
async def test_a_command_needs_its_own_scope(served: Served, attempts: Attempts, project: Path, has: str) -> None:
    session = await served.hub.start_session("demo", project)
    _, device = await paired(served.client, has)
    before = await state(served.hub)
    allowed = {"prompt": {"send_message", "cancel"}, "approve": {"approve_tool_call", "deny_tool_call"}, "read": set()}
    for name, fields in COMMANDS.items():
        if name not in allowed[has]:
            body = {"command": name, **fields}
            attempts.refused(await device.request("POST", f"/sessions/{session.id}/commands", body), 403, 422)
    assert await state(served.hub) == before


async def test_nobody_hands_on_more_than_they_have(served: Served, attempts: Attempts) -> None:
    for scopes in (["read"], ["prompt"], ["approve"], ["read", "prompt", "approve"]):
        device_id, device = await paired(served.client, *scopes)
        before = await state(served.hub)
        for granted in SCOPES:
            attempts.refused(await device.request("POST", "/pairings", {"scopes": [granted]}), 403)
            wish = {"scopes": [granted]}
            attempts.refused(await device.request("PATCH", f"/devices/{device_id}", wish), 403)
        attempts.refused(await device.request("POST", "/login-links"), 403)
        attempts.refused(await device.request("DELETE", f"/devices/{device_id}"), 403)
        assert await state(served.hub) == before
    for wrong in (["root"], [], "admin", [None], ["admin", "*"], {"admin": True}):
        attempts.refused(await served.client.request("POST", "/pairings", {"scopes": wrong}), 422)


async def test_scopes_cannot_be_claimed_by_who_pairs(served: Served, nobody: Client, attempts: Attempts) -> None:
    offer = (await served.client.request("POST", "/pairings", {"scopes": ["read"]})).json()
    wish = {"ticket": offer["ticket"], "code": offer["code"], "scopes": ["admin"]}
    attempts.refused(await nobody.request("POST", "/pair", wish), 422)


async def test_nobody_but_the_owner_has_a_session_in_the_hubs_own_directory(
    served: Served, attempts: Attempts, project: Path
) -> None:
    home = served.hub.home
    assert home is not None
    (project / "link").symlink_to(home)
    _, device = await paired(served.client, "read", "prompt", "approve")
    before = await state(served.hub)
    async with lane(served.port, device.token) as consumer:
        for number, cwd in enumerate((str(home), f"{home}/", f"{home}/../{home.name}", f"{project}/link")):
            attempts.refused(await device.request("POST", "/sessions", {"agent": "demo", "cwd": cwd}), 403)
            await consumer.say("start_session", agent="demo", cwd=cwd, commandId=str(number))
            refused = await consumer.until("command_result")
            assert refused["error"]["details"] == {"scope": "admin"}
            async with connect(f"ws://127.0.0.1:{served.port}/acp", additional_headers=bearer(device)) as client:
                params = {"cwd": cwd, "mcpServers": []}
                await client.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": params}))
                assert json.loads(await client.recv())["error"]["data"]["scope"] == "admin"
    assert await state(served.hub) == before
    assert (await served.client.request("POST", "/sessions", {"agent": "demo", "cwd": str(home)})).status == 201
    assert (await device.request("POST", "/sessions", {"agent": "demo", "cwd": str(project)})).status == 201
