"""Devices: pairing, tickets and codes, and what is left of one that was revoked."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from pilothouse.server.auth.secrets import TRIES
from tests.support.attacks import Attempts, Clock, bearer, login_link, paired, routes, status_of, until
from tests.support.http_client import PATIENCE, Client
from tests.support.lanes import lane
from tests.support.servers import TOKEN, Served


async def test_a_device_is_paired_by_ticket_and_code_and_has_a_credential_of_its_own(
    served: Served, nobody: Client
) -> None:
    offer = (await served.client.request("POST", "/pairings", {"scopes": ["read", "approve"]})).json()
    assert offer["url"] == f"http://127.0.0.1:{served.port}/#pair={offer['ticket']}"
    assert offer["code"] not in offer["url"]
    wish = {"ticket": offer["ticket"], "code": f"{offer['code'][:3]} {offer['code'][3:]}", "name": "My phone"}
    answer = await nobody.request("POST", "/pair", wish)
    assert answer.status == 201
    assert "set-cookie" not in answer.headers
    device = Client(served.port, token=answer.json()["credential"])
    told = (await device.request("GET", "/whoami")).json()
    assert told == {"name": "My phone", "scopes": ["read", "approve"], "deviceId": answer.json()["deviceId"]}
    listed = (await served.client.request("GET", "/devices")).json()["devices"]
    assert [(row["name"], row["scopes"], row["revoked"]) for row in listed] == [("My phone", ["read", "approve"], None)]
    assert listed[0]["lastSeen"]
    assert answer.json()["credential"] not in json.dumps(listed)
    assert (await served.client.request("GET", f"/pairings/{offer['id']}")).json()["state"] == "used"
    stored = (await served.hub.log.devices.list())[0]
    assert stored.credential != answer.json()["credential"]


async def test_a_page_of_ours_that_pairs_is_logged_in_as_that_device(
    served: Served, nobody: Client, attempts: Attempts
) -> None:
    offer = (await served.client.request("POST", "/pairings", {"scopes": ["read"]})).json()
    wish = {"ticket": offer["ticket"], "code": offer["code"], "name": "tablet"}
    answer = await nobody.request("POST", "/pair", wish, headers={"Origin": f"http://127.0.0.1:{served.port}"})
    cookie = {"Cookie": answer.headers["set-cookie"].partition(";")[0]}
    told = (await nobody.request("GET", "/whoami", headers=cookie)).json()
    assert (told["name"], told["scopes"]) == ("tablet", ["read"])
    attempts.refused(await nobody.request("POST", "/login-links", headers=cookie), 403)
    await served.client.request("DELETE", f"/devices/{told['deviceId']}")
    attempts.refused(await nobody.request("GET", "/sessions", headers=cookie), 401)


async def test_a_ticket_that_is_used_expired_or_withdrawn_pairs_nobody(
    served: Served, nobody: Client, attempts: Attempts, clock: Clock
) -> None:
    async def offered(**wish: Any) -> dict[str, Any]:
        offer: dict[str, Any] = (await served.client.request("POST", "/pairings", wish)).json()
        return offer

    async def present(offer: dict[str, Any]) -> Any:
        return await nobody.request("POST", "/pair", {"ticket": offer["ticket"], "code": offer["code"]})

    used, withdrawn, short = await offered(), await offered(), await offered(expiresIn=10)
    assert (await present(used)).status == 201
    attempts.refused(await present(used), 403)
    await served.client.request("DELETE", f"/pairings/{withdrawn['id']}")
    attempts.refused(await present(withdrawn), 403)
    clock.now += 11
    attempts.refused(await present(short), 403)
    link = (await login_link(served)).partition("=")[2]
    attempts.refused(await present({"ticket": link, "code": ""}), 403)
    assert len(await served.hub.log.devices.list()) == 1


async def test_twenty_wrong_codes_end_the_ticket_long_before(
    served: Served, nobody: Client, attempts: Attempts
) -> None:
    offer = (await served.client.request("POST", "/pairings")).json()
    codes = [f"{(int(offer['code']) + number) % 10**6:06}" for number in range(1, 21)]
    answers = [await nobody.request("POST", "/pair", {"ticket": offer["ticket"], "code": code}) for code in codes]
    for answer in answers:
        attempts.refused(answer, 403, 429)
    assert [answer.json()["error"]["code"] for answer in answers[:6]] == ["code_refused"] * TRIES + ["ticket_refused"]
    right = await nobody.request("POST", "/pair", {"ticket": offer["ticket"], "code": offer["code"]})
    attempts.refused(right, 403, 429)
    assert await served.hub.log.devices.list() == []
    assert (await served.client.request("GET", f"/pairings/{offer['id']}")).json()["state"] == "locked"


async def test_wrong_codes_sent_all_at_once_are_counted_all(served: Served, nobody: Client, attempts: Attempts) -> None:
    offer = (await served.client.request("POST", "/pairings")).json()
    wrong = [{"ticket": offer["ticket"], "code": f"{(int(offer['code']) + 1 + n) % 10**6:06}"} for n in range(20)]
    right = {"ticket": offer["ticket"], "code": offer["code"]}
    for answer in await asyncio.gather(*(nobody.request("POST", "/pair", wish) for wish in [*wrong, right])):
        attempts.refused(answer, 403, 429)
    assert await served.hub.log.devices.list() == []


RULES = ("always:rule_0a1b2c: permission", "autoApprove.reads", "Deny.commands[0]: rm", "no rule needed")


async def test_a_device_cannot_take_the_owners_name_nor_anothers(
    served: Served, nobody: Client, attempts: Attempts
) -> None:
    wide = "ｃｌｉ"  # looks like one that is reserved
    for name in (
        "local",
        "Token",
        " browser ",
        "policy",
        "Pilothouse Run",
        *RULES,
        wide,
        "",
        "a\nb",
        "x" * 65,
        "evil\u202eenohp",
        "\x00",
    ):
        offer = (await served.client.request("POST", "/pairings")).json()
        wish = {"ticket": offer["ticket"], "code": offer["code"], "name": name}
        if name == "a\nb":
            assert (await nobody.request("POST", "/pair", wish)).json()["name"] == "a b"
        else:
            attempts.refused(await nobody.request("POST", "/pair", wish), 422)
    first, second = await paired(served.client, "read"), await paired(served.client, "read")
    assert (await first[1].request("GET", "/whoami")).json()["name"] == "phone"
    assert (await second[1].request("GET", "/whoami")).json()["name"] == "phone 2"
    agent = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36"}
    await nobody.request("GET", await login_link(served), headers=agent)
    _, third = await paired(served.client, "approve", name="chrome on linux")
    assert (await third.request("GET", "/whoami")).json()["name"] == "chrome on linux 2"


async def test_a_revoked_device_is_cut_off_in_the_middle_of_its_stream(
    served: Served, attempts: Attempts, project: Path
) -> None:
    session = await served.hub.start_session("demo", project)
    device_id, device = await paired(served.client, "read")
    _, other = await paired(served.client, "read", name="other")
    streams = [f"/sessions/{session.id}/events", f"/sessions/{session.id}/packets", "/events"]
    async with contextlib.AsyncExitStack() as stack:
        open_ = [await stack.enter_async_context(device.stream("GET", path)) for path in streams]
        kept = await stack.enter_async_context(other.stream("GET", "/events"))
        assert all(stream.status == 200 for stream in [*open_, kept])
        answer = await served.client.request("DELETE", f"/devices/{device_id}")
        assert answer.json()["connections"] == len(streams)
        for stream in open_:
            await stream.body()  # it ends
            attempts.refused(await device.request("GET", "/events"), 401, 429)
        assert len(served.server.connections) == 1
    for path in streams:
        attempts.refused(await device.request("GET", path), 401, 429)
    attempts.refused(await device.request("GET", "/agents"), 401, 429)


async def test_a_revoked_device_is_cut_off_its_download(served: Served, attempts: Attempts, project: Path) -> None:
    session = await served.hub.start_session("demo", project)
    with (project / "huge.bin").open("wb") as file:
        file.truncate(32 << 20)
    device_id, device = await paired(served.client, "read")
    async with device.stream("GET", f"/sessions/{session.id}/files/huge.bin") as stream:
        assert (await served.client.request("DELETE", f"/devices/{device_id}")).json()["connections"] == 1
        with attempts.refusing(ConnectionError, asyncio.IncompleteReadError):
            await stream.body()


async def test_a_revoked_device_is_cut_off_its_websocket(served: Served, attempts: Attempts) -> None:
    device_id, device = await paired(served.client, "read")
    for path in routes():
        async with connect(f"ws://127.0.0.1:{served.port}{path}", additional_headers=bearer(device)) as lane:
            if path == "/ws":
                await lane.recv()
            await until(lambda: len(served.server.connections) == 1)
            await served.client.request("DELETE", f"/devices/{device_id}")
            async with asyncio.timeout(PATIENCE):
                with attempts.refusing(ConnectionClosed):
                    while True:
                        await lane.recv()
            assert lane.close_code == 1008
        device_id, device = await paired(served.client, "read")


async def test_a_device_that_is_revoked_while_it_sends_has_nothing_done(
    served: Served, attempts: Attempts, project: Path
) -> None:
    session = await served.hub.start_session("demo", project)
    prompt = b'{"content": "say hello"}'
    for target, kind, body in (
        (f"PUT /sessions/{session.id}/files/late.txt", "text/plain", b"written all the same"),
        (f"POST /sessions/{session.id}/send-message", "application/json", prompt),
        (f"POST /sessions/{session.id}/cancel", "application/json", b"{}"),
    ):
        device_id, device = await paired(served.client, "read", "prompt")
        head = [f"{target} HTTP/1.1", "Host: localhost", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
        head += [f"Authorization: {bearer(device)['Authorization']}", "Connection: close", "", ""]
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        try:
            writer.write("\r\n".join(head).encode() + body[:1])
            await until(lambda device_id=device_id: device_id in served.server.seen)
            await served.client.request("DELETE", f"/devices/{device_id}")
            writer.write(body[1:])
            async with asyncio.timeout(PATIENCE):
                attempts.refused(status_of(await reader.read()), 401)
        finally:
            writer.close()
            await writer.wait_closed()
    assert list(project.iterdir()) == []
    assert await served.hub.log.last_seq(session.id) == 0


async def test_a_device_that_lost_a_scope_must_connect_again_and_then_lacks_it(
    served: Served, attempts: Attempts
) -> None:
    device_id, device = await paired(served.client, "read", "approve")
    async with device.stream("GET", "/events") as stream:
        await served.client.request("PATCH", f"/devices/{device_id}", {"scopes": ["approve"], "name": "watch"})
        await stream.body()
    attempts.refused(await device.request("GET", "/events"), 403)
    assert (await device.request("GET", "/whoami")).json()["name"] == "watch"


async def test_the_login_of_a_devices_own_link_ends_with_the_device(
    served: Served, nobody: Client, attempts: Attempts
) -> None:
    device_id, device = await paired(served.client, "admin")
    url = (await device.request("POST", "/login-links")).json()["url"]
    answer = await nobody.request("GET", url.partition(f":{served.port}")[2])
    cookie = {"Cookie": answer.headers["set-cookie"].partition(";")[0]}
    assert (await nobody.request("GET", "/whoami", headers=cookie)).json()["deviceId"] == device_id
    await served.client.request("DELETE", f"/devices/{device_id}")
    attempts.refused(await nobody.request("GET", "/whoami", headers=cookie), 401)


async def test_a_visit_is_written_down_once_a_minute(
    served: Served, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    device_id, device = await paired(served.client, "read")
    noted: list[str] = []
    seen = served.hub.log.devices.seen

    async def counted(device_id: str) -> Any:
        noted.append(device_id)
        return await seen(device_id)

    monkeypatch.setattr(served.hub.log.devices, "seen", counted)
    for passed in (0, 1, 58, 1, 1, 59):
        clock.now += passed
        assert (await device.request("GET", "/whoami")).status == 200
    assert noted == [device_id] * 3


async def test_who_came_in_and_who_decided_is_written_down_without_any_secret(
    served: Served, nobody: Client, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    link = await login_link(served)
    cookie = (await nobody.request("GET", link)).headers["set-cookie"].partition(";")[0].partition("=")[2]
    offer = (await served.client.request("POST", "/pairings", {"scopes": ["approve", "read"]})).json()
    wish = {"ticket": offer["ticket"], "code": offer["code"], "name": 'ph"o\\ne'}
    made = (await nobody.request("POST", "/pair", wish)).json()
    device = Client(served.port, token=made["credential"])
    session = await served.hub.start_session("demo", project)
    turn = asyncio.create_task(session.prompt("edit notes.txt hello"))
    while not (waiting := (await device.request("GET", "/approvals")).json()["approvals"]):
        await asyncio.sleep(0.01)
    await device.request("POST", f"/approvals/{waiting[0]['id']}", {"decision": "deny"})
    await turn
    await served.client.request("DELETE", f"/devices/{made['deviceId']}")
    await device.request("GET", "/agents")
    lines = [json.loads(record.message) for record in caplog.records if record.name == "pilothouse.audit"]
    actions = [line["audit"] for line in lines if line["audit"] != "request"]
    assert actions == ["login_link", "login", "pairing", "paired", "approval_decided", "device_revoked", "failure"]
    (told_of,) = (line for line in lines if line["audit"] == "approval_decided")
    assert (told_of["by"], told_of["deviceId"]) == ('ph"o\\ne', made["deviceId"])
    assert (told_of["sessionId"], told_of["approved"], told_of["remember"]) == (session.id, False, "once")
    (decision,) = (line for line in lines if line.get("path") == f"/approvals/{waiting[0]['id']}")
    assert (decision["by"], decision["deviceId"], decision["status"]) == ('ph"o\\ne', made["deviceId"], 200)
    assert (await served.hub.log.approvals.get(waiting[0]["id"])).decided_by == 'ph"o\\ne'
    told = "\n".join(record.getMessage() for record in caplog.records)
    for secret in (TOKEN, cookie, link.partition("=")[2], offer["ticket"], offer["code"], made["credential"]):
        assert secret not in told


@pytest.mark.parametrize("loss", ["revoked", "lowered"])
async def test_tickets_that_a_device_asked_for_end_with_what_it_may_give(
    served: Served, nobody: Client, attempts: Attempts, loss: str
) -> None:
    device_id, device = await paired(served.client, "admin")
    offer = (await device.request("POST", "/pairings", {"scopes": ["read"]})).json()
    link = (await device.request("POST", "/login-links")).json()["url"].partition(f":{served.port}")[2]
    own = (await served.client.request("POST", "/pairings", {"scopes": ["read"]})).json()
    if loss == "revoked":
        await served.client.request("DELETE", f"/devices/{device_id}")
    else:
        await served.client.request("PATCH", f"/devices/{device_id}", {"scopes": ["read"]})
    wish = {"ticket": offer["ticket"], "code": offer["code"], "name": "ghost"}
    attempts.refused(await nobody.request("POST", "/pair", wish), 403)
    attempts.refused(await nobody.request("GET", link), 403)
    assert (await served.client.request("GET", f"/pairings/{offer['id']}")).json()["state"] == "withdrawn"
    assert len(await served.hub.log.devices.list()) == 1
    assert (
        await nobody.request("POST", "/pair", {"ticket": own["ticket"], "code": own["code"]})
    ).status == 201  # the owner's


async def test_a_pairing_that_is_under_way_when_its_issuer_is_revoked_gives_nothing(
    served: Served, nobody: Client, attempts: Attempts
) -> None:
    device_id, device = await paired(served.client, "admin")
    offer = (await device.request("POST", "/pairings", {"scopes": ["admin"]})).json()
    wish = {"ticket": offer["ticket"], "code": offer["code"], "name": "ghost"}
    async with served.server.naming:  # the ticket is taken, and the device not yet written
        pairing = asyncio.create_task(nobody.request("POST", "/pair", wish))
        ticket = served.server.tickets.get("pair", offer["id"])
        await until(lambda: ticket is not None and ticket.state == "used")
        await served.hub.log.devices.revoke(device_id)
    attempts.refused(await pairing, 403)
    assert [one.name for one in await served.hub.log.devices.list()] == ["phone"]


async def test_what_a_device_does_over_a_websocket_is_written_down_with_its_name(
    served: Served, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "pilothouse.audit")
    device_id, device = await paired(served.client, "read", "prompt", "approve")
    async with lane(served.port, token=device.token) as consumer:
        await consumer.say("start_session", agent="demo", cwd=str(project), commandId="new", prompt="edit a.txt hello")
        session_id = (await consumer.until("command_result"))["sessionId"]
        asked = (await consumer.until("approval_requested"))["approval"]
        about = {"requestId": asked["id"], "toolCallId": asked["request"]["toolCallId"]}
        done = await consumer.command(session_id, "yes", command="approve_tool_call", **about, remember="everywhere")
        assert done["ok"]
    await until(lambda: len(served.server.connections) == 0)
    lines = [json.loads(record.message) for record in caplog.records if record.name == "pilothouse.audit"]
    mine = [line for line in lines if line.get("deviceId") == device_id and line["audit"] != "paired"]
    assert [line["audit"] for line in mine] == ["session_started", "send_message", "approve_tool_call", "request"]
    assert {line["by"] for line in mine} == {"phone"}
    assert [line["sessionId"] for line in mine[:3]] == [session_id] * 3
    assert (mine[2]["requestId"], mine[2]["remember"]) == (asked["id"], "everywhere")
    assert (mine[3]["method"], mine[3]["path"]) == ("WEBSOCKET", "/ws")
    assert "hello" not in caplog.text


async def test_a_rule_says_which_device_made_it_and_is_counted_when_that_is_revoked(
    served: Served, project: Path
) -> None:
    device_id, device = await paired(served.client, "read", "approve")
    session = await served.hub.start_session("demo", project)
    turn = asyncio.create_task(session.prompt("edit notes.txt hello"))
    while not (waiting := (await device.request("GET", "/approvals")).json()["approvals"]):
        await asyncio.sleep(0.01)
    wish = {"decision": "allow", "remember": "everywhere"}
    decided = (await device.request("POST", f"/approvals/{waiting[0]['id']}", wish)).json()
    assert decided["decision"]["deviceId"] == device_id
    await turn
    path = f"/sessions/{session.id}/events?types=approval:resolved"
    events = (await served.client.request("GET", path, headers={"Accept": "application/json"})).json()
    assert [(event["decidedBy"], event["deviceId"]) for event in events["events"]] == [("phone", device_id)]
    answer = (await served.client.request("DELETE", f"/devices/{device_id}")).json()
    assert answer["rules"] == 1
    (rule,) = (await served.client.request("GET", "/rules")).json()["rules"]
    assert (rule["madeBy"], rule["deviceId"], rule["approvalId"]) == ("phone", device_id, waiting[0]["id"])
    await served.client.request("DELETE", f"/rules/{rule['id']}")
    (row,) = (await served.client.request("GET", "/devices")).json()["devices"]
    assert row["rules"] == 0
