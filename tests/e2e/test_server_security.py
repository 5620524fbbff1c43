"""Attempts to get in, over real sockets. Each must be refused, and nothing may have happened."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from uvicorn.protocols.http.flow_control import FlowControl
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from pilothouse.hub.hub import Hub
from pilothouse.server.application import OPERATIONS, application
from pilothouse.server.callers import SCOPES
from pilothouse.server.context import Server
from pilothouse.server.limits import Limits
from pilothouse.server.listener import Listener, tcp_socket
from pilothouse.server.tickets import TRIES
from tests.support import servers
from tests.support.attacks import Attempts, paired, raw, status_of
from tests.support.http_client import PATIENCE, Client
from tests.support.servers import TOKEN, Served, serving

ATTEMPTS = Attempts()
SOCKETS = ("/ws", "/acp")
AUDIT = "pilothouse.audit"


@pytest.fixture(autouse=True)
def attempts(request: pytest.FixtureRequest, tell: Callable[[str], None]) -> Iterator[Attempts]:
    ATTEMPTS.what = request.node.originalname
    yield ATTEMPTS
    if request.node is [item for item in request.session.items if item.path == request.node.path][-1]:
        counts = ATTEMPTS.count
        tell(f"attempts to get in: {counts.total()} in {len(counts)} ways, all refused")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def served(tmp_path: Path, clock: Clock) -> AsyncIterator[Served]:
    limits = Limits(headers=0.5, body=20_000, frame=20_000)
    async with serving(tmp_path, limits=limits, clock=clock) as served:
        yield served


@pytest.fixture
def nobody(served: Served) -> Client:
    return Client(served.port)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    place = tmp_path / "project"
    place.mkdir()
    return place


async def state(hub: Hub) -> tuple[Any, ...]:
    """All that a request could have changed."""
    log = hub.log
    sessions = (await log.sessions.list(archived=None)).sessions
    settings = await log.settings.all()
    devices = [(device.id, device.name, device.scopes, device.revoked) for device in await log.devices.list()]
    return sessions, settings, devices, await log.rules.list(), await log.approvals.list()


def target(path: str, session_id: str = "s", **names: str) -> str:
    names = {"id": session_id, "path": "notes.txt", "artifactId": "a", "promptId": "p", **names}
    return re.sub(r"\{(\w+)(:path)?\}", lambda found: names[found[1]], path)


SCOPED = [operation for operation in OPERATIONS if operation.scope is not None]


# -- who comes -----------------------------------------------------------------------------------------------------


async def test_nobody_gets_in_without_a_token(served: Served, nobody: Client, attempts: Attempts) -> None:
    before = await state(served.hub)
    for operation in SCOPED:
        answer = await nobody.request(operation.method, target(operation.path))
        attempts.refused(answer, 401)
        assert answer.json()["error"]["code"] == "unauthorized"
        assert answer.json()["error"]["message"] == "a token is needed"
    assert await state(served.hub) == before


async def test_nobody_gets_in_by_a_wrong_token(served: Served, nobody: Client, attempts: Attempts) -> None:
    wrong = [
        *("Bearer wrong", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN.upper()}", "Bearer", "Bearer "),
        *(f"Basic {TOKEN}", TOKEN, f"Token {TOKEN}", f'Bearer "{TOKEN}"', f"Bearer {TOKEN}, Bearer {TOKEN}"),
        *(f"Bearer {TOKEN}\x00", "Bearer \xff\xfe", f"Bearer  x {TOKEN}", "Bearer " + "x" * 5000),
    ]
    for value in wrong:
        attempts.refused(await nobody.request("GET", "/sessions", headers={"Authorization": value}), 400, 401, 429)
    assert (await served.client.request("GET", "/sessions")).status == 200


async def test_a_wrong_token_is_called_so(served: Served, nobody: Client) -> None:
    answer = await nobody.request("GET", "/sessions", headers={"Authorization": "Bearer wrong"})
    assert (answer.status, answer.json()["error"]["message"]) == (401, "the token is not valid")


async def test_two_tokens_at_once_are_none(served: Served, attempts: Attempts) -> None:
    head = f"GET /sessions HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nAuthorization: Bearer {TOKEN}\r\n"
    attempts.refused(status_of(await raw(served.port, f"{head}Authorization: Bearer x\r\n\r\n".encode())), 401)


async def test_a_token_in_the_url_is_no_token(served: Served, nobody: Client, attempts: Attempts) -> None:
    for query in (f"token={TOKEN}", f"access_token={TOKEN}", f"key={TOKEN}", f"ticket={TOKEN}"):
        attempts.refused(await nobody.request("GET", f"/agents?{query}"), 401)
        attempts.refused(await nobody.request("GET", f"/events?{query}"), 401, 422)
        attempts.refused(await nobody.request("GET", f"/login?{query}"), 403, 422)
    attempts.refused(
        await nobody.request("GET", "/agents", headers={"Cookie": f"pilothouse-{served.port}={TOKEN}"}), 401
    )


async def test_many_failures_are_told_to_wait_but_do_not_lock_the_owner_out(
    served: Served, attempts: Attempts, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "pilothouse.audit")
    guesser = Client(served.port, token="guess")
    answers = [await guesser.request("GET", "/agents") for _ in range(30)]
    for answer in answers:
        attempts.refused(answer, 401, 429)
    assert answers[0].status == 401
    assert answers[-1].status == 429
    assert int(answers[-1].headers["retry-after"]) > 0
    assert (await served.client.request("GET", "/agents")).status == 200
    assert (await Client(served.port).request("GET", "/healthz")).status == 200
    told = [json.loads(line.message)["audit"] for line in caplog.records if line.name == "pilothouse.audit"]
    assert told.count("failures") == 1
    assert TOKEN not in caplog.text
    assert "guess" not in caplog.text


# -- from where ----------------------------------------------------------------------------------------------------

FOREIGN = ("https://evil.example", "null", "http://localhost:3000", "file://", "http://127.0.0.1", "")


@pytest.mark.parametrize("origin", FOREIGN)
async def test_a_foreign_page_is_refused_even_with_the_token(served: Served, attempts: Attempts, origin: str) -> None:
    before = await state(served.hub)
    for method, path in (("GET", "/sessions"), ("POST", "/login-links"), ("OPTIONS", "/sessions"), ("GET", "/healthz")):
        answer = await served.client.request(method, path, headers={"Origin": origin})
        attempts.refused(answer, 403)
        assert "access-control-allow-origin" not in answer.headers
    assert await state(served.hub) == before


async def test_our_own_page_is_let_in(served: Served) -> None:
    own = {"Origin": f"http://127.0.0.1:{served.port}"}
    assert (await served.client.request("GET", "/sessions", headers=own)).status == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:7717", "localhost.evil.example", "", "0.0.0.0", "a b"])
async def test_a_name_that_was_made_to_point_here_is_refused(served: Served, attempts: Attempts, host: str) -> None:
    for method, path in (("GET", "/sessions"), ("GET", "/healthz"), ("POST", "/pairings"), ("GET", "/login?ticket=x")):
        attempts.refused(await served.client.request(method, path, headers={"Host": host}), 421)


async def test_no_host_or_two_are_refused(served: Served, attempts: Attempts) -> None:
    for lines in ("", "Host: 127.0.0.1\r\nHost: evil.example\r\n", "Host: 127.0.0.1\r\nHost: 127.0.0.1\r\n"):
        head = f"GET /agents HTTP/1.1\r\n{lines}Authorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n"
        attempts.refused(status_of(await raw(served.port, head.encode())), 400, 421)
    head = f"GET /agents HTTP/1.0\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    attempts.refused(status_of(await raw(served.port, head.encode())), 421)


async def test_a_form_of_another_site_is_refused(served: Served, attempts: Attempts) -> None:
    before = await state(served.hub)
    body = json.dumps({"agent": "demo", "cwd": "/"}).encode()
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "json"):
        answer = await served.client.request("POST", "/sessions", body=body, headers={"Content-Type": kind})
        attempts.refused(answer, 415)
    assert await state(served.hub) == before


async def test_no_page_comes_by_the_socket_of_the_home(served: Served, attempts: Attempts) -> None:
    for origin in ("http://localhost", "null", "https://evil.example"):
        attempts.refused(await served.local.request("GET", "/agents", headers={"Origin": origin}), 403)
    assert (await served.local.request("GET", "/whoami")).json()["name"] == "local"


async def test_a_configured_page_may_call_with_a_token_and_only_so(tmp_path: Path, attempts: Attempts) -> None:
    page = {"Origin": "https://app.example"}
    async with serving(tmp_path, allowed_origins=frozenset({"https://app.example"})) as served:
        asked = {**page, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
        answer = await Client(served.port).request("OPTIONS", "/sessions", headers=asked)
        assert answer.status == 204
        assert answer.headers["access-control-allow-origin"] == "https://app.example"
        assert "access-control-allow-credentials" not in answer.headers
        assert (await served.client.request("GET", "/sessions", headers=page)).status == 200
        cookie = await log_in(served)
        attempts.refused(await Client(served.port).request("GET", "/sessions", headers={**page, **cookie}), 401)
        other = {**asked, "Origin": "https://other.example"}
        attempts.refused(await Client(served.port).request("OPTIONS", "/sessions", headers=other), 403)


# -- browsers ------------------------------------------------------------------------------------------------------


async def login_link(served: Served) -> str:
    url = (await served.client.request("POST", "/login-links")).json()["url"]
    return str(url.partition(f":{served.port}")[2])


async def log_in(served: Served) -> dict[str, str]:
    """The cookie of a browser that followed a link."""
    answer = await Client(served.port).request("GET", await login_link(served))
    assert answer.status == 303, answer
    return {"Cookie": answer.headers["set-cookie"].partition(";")[0]}


async def test_a_link_logs_a_browser_in_and_leaves_the_address_bar(served: Served, nobody: Client) -> None:
    answer = await nobody.request("GET", await login_link(served))
    assert (answer.status, answer.headers["location"]) == (303, "/")
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["set-cookie"].startswith(f"pilothouse-{served.port}=")
    assert answer.headers["set-cookie"].endswith("; Path=/; Max-Age=2592000; HttpOnly; SameSite=Strict")
    cookie = {"Cookie": answer.headers["set-cookie"].partition(";")[0]}
    assert (await nobody.request("GET", "/whoami", headers=cookie)).json()["name"] == "browser"
    stored = json.dumps(await served.hub.log.settings.all())
    assert cookie["Cookie"].partition("=")[2] not in stored


async def test_a_link_works_once_and_not_for_long(
    served: Served, nobody: Client, attempts: Attempts, clock: Clock
) -> None:
    used = await login_link(served)
    assert (await nobody.request("GET", used)).status == 303
    attempts.refused(await nobody.request("GET", used), 403)
    old = await login_link(served)
    clock.now += 301
    attempts.refused(await nobody.request("GET", old), 403)
    page = await nobody.request("GET", old, headers={"Accept": "text/html"})
    attempts.refused(page, 403)
    assert "script-src 'self'" in page.headers["content-security-policy"]
    for guess in ("/login?ticket=", "/login?ticket=x", f"/login?ticket={TOKEN}", "/login"):
        attempts.refused(await nobody.request("GET", guess), 403, 422)


async def test_looking_at_a_link_without_following_it_does_not_use_it_up(
    served: Served, nobody: Client, attempts: Attempts
) -> None:
    link = await login_link(served)
    for method in ("HEAD", "OPTIONS", "POST", "PUT"):
        async with nobody.stream(method, link) as answer:
            attempts.refused(answer.status, 405)
    assert (await nobody.request("GET", link)).status == 303


async def test_many_follow_one_link_at_the_same_time_and_one_gets_in(
    served: Served, nobody: Client, attempts: Attempts
) -> None:
    link = await login_link(served)
    answers = await asyncio.gather(*(nobody.request("GET", link) for _ in range(8)))
    assert [answer.status for answer in answers].count(303) == 1
    for answer in answers:
        if answer.status != 303:
            attempts.refused(answer, 403, 429)


async def test_a_cookie_is_worth_nothing_to_a_foreign_page(served: Served, nobody: Client, attempts: Attempts) -> None:
    cookie = await log_in(served)
    before = await state(served.hub)
    wish = {"agent": "demo", "cwd": "/"}
    for origin in (*FOREIGN, "http://localhost:3000"):
        headers = {**cookie, "Origin": origin}
        attempts.refused(await nobody.request("POST", "/sessions", wish, headers=headers), 403)
    for site, mode in (("cross-site", "no-cors"), ("same-site", "cors"), ("cross-site", "websocket")):
        headers = {**cookie, "Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode}
        answer = await nobody.request("GET", "/sessions", headers=headers)
        attempts.refused(answer, 401)
        assert "set-cookie" not in answer.headers  # nor can it log the browser out
    assert await state(served.hub) == before
    assert (await nobody.request("GET", "/sessions", headers=cookie)).status == 200


async def test_a_browser_that_is_logged_out_is_out(served: Served, nobody: Client, attempts: Attempts) -> None:
    one, other, third = [await log_in(served) for _ in range(3)]
    answer = await nobody.request("POST", "/logout", {}, headers=one)
    assert "Max-Age=0" in answer.headers["set-cookie"]
    attempts.refused(await nobody.request("GET", "/sessions", headers=one), 401)
    assert (await nobody.request("GET", "/sessions", headers=other)).status == 200
    assert (await nobody.request("POST", "/logout", {"everywhere": True}, headers=other)).json() == {"ended": 2}
    for cookie in (other, third):
        answer = await nobody.request("GET", "/sessions", headers=cookie)
        attempts.refused(answer, 401)
        assert "Max-Age=0" in answer.headers["set-cookie"]


async def test_a_login_ends_after_a_month(served: Served, nobody: Client, attempts: Attempts) -> None:
    cookie = await log_in(served)
    log = served.hub.log
    now = log.now
    log.now = lambda: now().replace("20", "21", 1)  # a century later
    try:
        attempts.refused(await nobody.request("GET", "/sessions", headers=cookie), 401)
    finally:
        log.now = now


async def test_a_login_outlives_the_server_and_a_ticket_does_not(tmp_path: Path, attempts: Attempts) -> None:
    async with serving(tmp_path) as first:
        cookie, link = await log_in(first), await login_link(first)
        port = first.port
    async with serving(tmp_path, port=port) as second:
        assert (await Client(port).request("GET", "/whoami", headers=cookie)).status == 200
        attempts.refused(await Client(second.port).request("GET", link), 403)


async def test_a_new_token_ends_the_logins_of_the_old_one(tmp_path: Path, attempts: Attempts) -> None:
    async with serving(tmp_path) as first:
        cookie, port = await log_in(first), first.port
        device_id, device = await paired(first.client, "read")
    async with serving(tmp_path, port=port, token="another-token-for-tests"):
        attempts.refused(await Client(port).request("GET", "/whoami", headers=cookie), 401)
        attempts.refused(await Client(port, token=TOKEN).request("GET", "/whoami"), 401)
        assert (await device.request("GET", "/whoami")).json()["deviceId"] == device_id


async def test_below_a_path_and_behind_a_proxy_with_tls_the_cookie_is_kept_to_both(
    tmp_path: Path, attempts: Attempts
) -> None:
    url = "https://hub.example/sub"
    options: dict[str, Any] = {"root_path": "/sub", "url": url, "allowed_hosts": frozenset({"hub.example"})}
    async with serving(tmp_path, **options) as served:
        made = (await served.local.request("POST", "/login-links")).json()["url"]
        assert made.startswith(f"{url}/login?ticket=")
        proxied = {"Host": "hub.example"}
        answer = await Client(served.port).request("GET", made.removeprefix(url), headers=proxied)
        assert answer.headers["location"] == "/sub/"
        assert answer.headers["set-cookie"].endswith("; Path=/sub; Max-Age=2592000; HttpOnly; SameSite=Strict; Secure")
        cookie = {"Cookie": answer.headers["set-cookie"].partition(";")[0], **proxied}
        for origin, status in (
            ("https://hub.example", 200),
            ("http://hub.example", 403),
            ("https://evil.example", 403),
        ):
            answer = await Client(served.port).request("GET", "/whoami", headers={**cookie, "Origin": origin})
            assert answer.status == status
            if status == 403:
                attempts.refused(answer)


# -- devices -------------------------------------------------------------------------------------------------------


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


async def test_a_device_cannot_take_the_owners_name_nor_anothers(
    served: Served, nobody: Client, attempts: Attempts
) -> None:
    wide = "ｃｌｉ"  # looks like one that is reserved
    for name in ("local", "Token", " browser ", "policy", wide, "", "a\nb", "x" * 65, "evil\u202eenohp", "\x00"):
        offer = (await served.client.request("POST", "/pairings")).json()
        wish = {"ticket": offer["ticket"], "code": offer["code"], "name": name}
        if name == "a\nb":
            assert (await nobody.request("POST", "/pair", wish)).json()["name"] == "a b"
        else:
            attempts.refused(await nobody.request("POST", "/pair", wish), 422)
    first, second = await paired(served.client, "read"), await paired(served.client, "read")
    assert (await first[1].request("GET", "/whoami")).json()["name"] == "phone"
    assert (await second[1].request("GET", "/whoami")).json()["name"] == "phone 2"


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
    assert actions == ["login_link", "login", "pairing", "paired", "device_revoked", "failure"]
    (decision,) = (line for line in lines if line.get("path") == f"/approvals/{waiting[0]['id']}")
    assert (decision["by"], decision["deviceId"], decision["status"]) == ('ph"o\\ne', made["deviceId"], 200)
    assert (await served.hub.log.approvals.get(waiting[0]["id"])).decided_by == 'ph"o\\ne'
    told = "\n".join(record.getMessage() for record in caplog.records)
    for secret in (TOKEN, cookie, link.partition("=")[2], offer["ticket"], offer["code"], made["credential"]):
        assert secret not in told


# -- scopes --------------------------------------------------------------------------------------------------------


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


# -- websockets ----------------------------------------------------------------------------------------------------


def routes() -> list[str]:
    from pilothouse.server import acp, websocket

    return [route.path for route in (*websocket.ROUTES, *acp.ROUTES)]  # type: ignore[attr-defined]


def bearer(client: Client) -> dict[str, str]:
    return {"Authorization": f"Bearer {client.token}"}


async def until(holds: Any) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.005)


async def test_a_websocket_from_a_foreign_page_or_to_a_foreign_name_is_not_opened(
    served: Served, attempts: Attempts
) -> None:
    cookie = await log_in(served)
    for path in (*routes(), "/nothing"):
        url = f"ws://127.0.0.1:{served.port}{path}"
        for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": "http://localhost:3000"}):
            for proof in (cookie, bearer(served.client)):
                with attempts.refusing(InvalidStatus):
                    async with connect(url, additional_headers={**headers, **proof}):
                        pass
        handshake = (
            f"GET {path} HTTP/1.1\r\nHost: evil.example\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
            f"Authorization: Bearer {TOKEN}\r\n\r\n"
        )
        attempts.refused(status_of(await raw(served.port, handshake.encode())), 421)


FIRST = [
    '{"type":"list_sessions"}',
    '{"type":"subscribe"}',
    '{"type":"authenticate","token":"wrong"}',
    '{"type":"authenticate","token":""}',
    '{"type":"authenticate","token":null}',
    '{"type":"authenticate"}',
    '{"jsonrpc":"2.0","id":1,"method":"session/list","params":{}}',
    '{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}',
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}',
    '{"jsonrpc":"2.0","id":1,"method":"authenticate","params":{"methodId":"token"}}',
    '{"jsonrpc":"2.0","id":1,"method":"authenticate","params":{"methodId":"token","_meta":{"token":"wrong"}}}',
    "\x00",
    "",
    "[]",
]


async def test_a_websocket_that_does_not_say_who_it_is_is_told_nothing(
    served: Served, attempts: Attempts, project: Path
) -> None:
    session = await served.hub.start_session("demo", project)
    before = await state(served.hub)
    for text in FIRST:
        said = ""
        async with asyncio.timeout(PATIENCE), connect(f"ws://127.0.0.1:{served.port}/ws") as lane:
            await lane.send(text)
            with attempts.refusing(ConnectionClosed):
                while True:
                    said += str(await lane.recv())
        assert session.id not in said
        assert "authenticated" not in said
    assert await state(served.hub) == before
    assert len(served.server.connections) == 0


@pytest.mark.parametrize("text", FIRST)
async def test_a_remote_acp_client_that_has_not_authenticated_is_served_nothing(
    served: Served, attempts: Attempts, project: Path, text: str
) -> None:
    session = await served.hub.start_session("demo", project)
    before = await state(served.hub)
    follow_up = {"jsonrpc": "2.0", "id": 99, "method": "session/list", "params": {}}
    said = ""
    async with asyncio.timeout(PATIENCE), connect(f"ws://127.0.0.1:{served.port}/acp") as lane:
        try:
            await lane.send(text)
            await lane.send(json.dumps(follow_up))
            while '"id":99' not in said:
                said = str(await lane.recv())
                assert session.id not in said
            attempts.refused(401 if "error" in json.loads(said) else 200, 401)
        except ConnectionClosed:
            attempts.refused(401)
    assert await state(served.hub) == before


async def test_a_stranger_can_neither_fill_the_log_nor_get_a_secret_into_it(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with asyncio.timeout(PATIENCE), connect(f"ws://127.0.0.1:{served.port}/acp") as lane:
        for _ in range(100):
            await lane.send(json.dumps({"type": "authenticate", "token": TOKEN}))
            await lane.send("nonsense")
        await lane.send(
            json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}})
        )
        while '"id":1' not in str(await lane.recv()):
            pass
    told = [record for record in caplog.records if record.name.startswith("pilothouse") and record.name != AUDIT]
    assert 0 < len(told) <= 10
    assert all(record.levelno <= logging.INFO for record in told)
    assert TOKEN not in caplog.text


async def test_a_frame_that_is_too_large_ends_the_connection(served: Served, attempts: Attempts) -> None:
    # what is still being sent when the connection ends can take the reason with it
    expected = {bearer(served.client)["Authorization"]: {1009}, "": {1009, 4401}}
    for path in routes():
        for payload in ("x" * 20_001, b"x" * 5_000_000, ["x" * 15_000] * 20):
            for proof, codes in expected.items():
                if not proof and len(payload) == 20_001:
                    continue  # strangers have a limit of their own
                headers = {"Authorization": proof} if proof else {}
                url = f"ws://127.0.0.1:{served.port}{path}"
                async with asyncio.timeout(PATIENCE), connect(url, max_size=None, additional_headers=headers) as lane:
                    with attempts.refusing(ConnectionClosed):
                        await lane.send(payload)
                        while True:
                            await lane.recv()
                    assert lane.close_code in codes | ({1006} if len(payload) != 20_001 else set())


# -- files and artifacts -------------------------------------------------------------------------------------------


async def test_no_path_leads_out_of_the_sessions_directory(served: Served, attempts: Attempts, project: Path) -> None:
    secret = project.parent / "secret.txt"
    secret.write_text("SECRET")
    (project / "inside.txt").write_text("fine")
    (project / "link").symlink_to(secret)
    (project / "up").symlink_to("..")
    session = await served.hub.start_session("demo", project)
    base = f"/sessions/{session.id}"
    ways = [
        *("../secret.txt", "..%2fsecret.txt", "%2e%2e/secret.txt", "%2e%2e%2fsecret.txt", "..%5csecret.txt"),
        *("x/../../secret.txt", "/etc/passwd", "//etc/passwd", "%2fetc%2fpasswd", "link", "up/secret.txt", "%00"),
        *("....//secret.txt", "..;/secret.txt", "%252e%252e%252fsecret.txt", "inside.txt%00.png", "..%c0%afsecret.txt"),
        *("file:///etc/passwd", "~/secret.txt", "up/project/../secret.txt", ".", "", "%ff", "a" * 5000),
        *("../pilothouse.db", "up/pilothouse.db", "up/token", "/proc/self/environ", "up/hub.sock"),
    ]
    for way in ways:
        answer = await served.client.request("GET", f"{base}/files/{way}")
        attempts.refused(answer, 400, 403, 404, 409, 422)
        assert b"SECRET" not in answer.body
        assert b"root:" not in answer.body
        answer = await served.client.request("PUT", f"{base}/files/{way}?overwrite=true", body=b"EVIL")
        if answer.status in (200, 201):  # an odd name may be a name, as long as it is inside
            path = answer.json()["path"]
            assert (project / path).resolve().is_relative_to(project)
            assert (project / path).read_bytes() == b"EVIL"
            (project / path).unlink()
        else:
            attempts.refused(answer, 400, 403, 404, 405, 409, 422)
        answer = await served.client.request("GET", f"{base}/files?path={way}")
        assert answer.status != 200 or b"secret.txt" not in answer.body, way
        attempts.refused(await served.client.request("GET", f"{base}/artifacts/{way}/preview"), 404, 422)
        attempts.refused(await served.client.request("GET", f"/sessions/{way}/events"), 404, 422)
    assert secret.read_text() == "SECRET"
    assert sorted(path.name for path in project.parent.iterdir() if path.suffix == ".txt") == ["secret.txt"]


SCRIPTS = {
    "evil.svg": '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>fetch("/sessions")</script></svg>',
    "evil.html": '<html><script>fetch("/sessions")</script><img src=x onerror=alert(1)></html>',
    "evil.xhtml": '<html xmlns="http://www.w3.org/1999/xhtml"><script>alert(1)</script></html>',
    "evil.png": "<html><script>alert(1)</script></html>",
}


@pytest.mark.parametrize("name", SCRIPTS)
async def test_a_script_in_an_artifact_never_runs_in_our_origin(
    served: Served, attempts: Attempts, project: Path, name: str
) -> None:
    session = await served.hub.start_session("demo", project, policy={"autoApprove": {"writes": True}})
    await session.prompt(f"edit {name} {SCRIPTS[name]}")
    made = (await served.client.request("GET", f"/sessions/{session.id}/artifacts")).json()["artifacts"]
    assert [row["name"] for row in made] == [name]
    places = [made[0]["contentUrl"], made[0]["previewUrl"], f"/sessions/{session.id}/files/{name}"]
    for place in filter(None, places):
        answer = await served.client.request("GET", place)
        if answer.status != 200:
            attempts.refused(answer, 422)
            continue
        policy = answer.headers["content-security-policy"]
        rules = {rule.split()[0]: rule.split()[1:] for rule in policy.split(";")}
        attempts.refused(403 if "sandbox" in rules and rules["sandbox"] == [] else 200, 403)
        assert rules["default-src"] == ["'none'"]
        assert "script-src" not in rules
        assert answer.headers["x-content-type-options"] == "nosniff"
        is_shown = "inline" in answer.headers.get("content-disposition", "")
        kind = answer.headers["content-type"].partition(";")[0]
        assert is_shown or kind not in ("text/html", "image/svg+xml", "application/xhtml+xml", "text/xml")
        assert rules["frame-ancestors"] == (["'self'"] if is_shown else ["'none'"])


async def test_a_title_or_name_cannot_add_a_header_or_a_line_to_a_stream(
    served: Served, attempts: Attempts, project: Path
) -> None:
    evil = "x\r\nSet-Cookie: pwned=1\r\n\r\n<script>\nid: 99\ndata: {}\n\n\u2028\x00"
    wish = {"agent": "demo", "cwd": str(project), "title": evil}
    answer = await served.client.request("POST", "/sessions", wish)
    if answer.status == 201:
        session_id = answer.json()["id"]
    else:
        attempts.refused(answer, 422)
        session_id = (await served.hub.start_session("demo", project)).id
    await served.client.request("PATCH", f"/sessions/{session_id}", {"title": evil})
    (project / "a\r\nSet-Cookie: pwned=1\r\n.txt").write_text("x")
    name = "a%0d%0aSet-Cookie:%20pwned=1%0d%0a.txt"
    for path in (
        *("/sessions", f"/sessions/{session_id}", f"/sessions/{session_id}/files", "/nothing%0d%0aSet-Cookie:pwned=1"),
        *(f"/sessions/{session_id}/files/{name}", "/sessions/%0d%0aSet-Cookie:pwned=1/events", f"/search?q={name}"),
    ):
        answer = await served.client.request("GET", path)
        assert "set-cookie" not in answer.headers, path
        attempts.refused(403)
    async with served.client.stream("GET", f"/sessions/{session_id}/events") as stream:
        await served.client.request("PATCH", f"/sessions/{session_id}", {"title": "another"})
        async for frame in stream.frames():
            assert frame.id != "99"
            if frame.data and "another" in frame.data:
                break


# -- the wire ------------------------------------------------------------------------------------------------------

AUTHORIZED = f"Host: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"


async def test_a_body_that_is_too_large_is_refused(served: Served, attempts: Attempts) -> None:
    answer = await served.client.request("POST", "/sessions", {"agent": "x" * 20_001, "cwd": "/"})
    attempts.refused(answer, 413)
    announced = (
        f"POST /sessions HTTP/1.1\r\n{AUTHORIZED}Content-Type: application/json\r\nContent-Length: {1 << 40}\r\n\r\n"
    )
    attempts.refused(status_of(await raw(served.port, announced.encode())), 413)
    chunked = (
        f"POST /sessions HTTP/1.1\r\n{AUTHORIZED}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    pieces = (b"1000\r\n" + b"x" * 0x1000 + b"\r\n") * 8
    attempts.refused(status_of(await raw(served.port, chunked.encode() + pieces)), 413)
    strangers = await Client(served.port).request("POST", "/pair", {"ticket": "x" * 5000, "code": "1"})
    attempts.refused(strangers, 413)


async def test_a_deep_or_odd_body_is_refused(served: Served, attempts: Attempts) -> None:
    for body in (
        b"[" * 10_000,
        b'{"a":' * 3000,
        b"\xff\xfe",
        b'{"agent":"\\ud800"}',
        b"NaN",
        b'{"__proto__":1}',
        b"1e999",
    ):
        answer = await served.client.request(
            "POST", "/sessions", body=body, headers={"Content-Type": "application/json"}
        )
        attempts.refused(answer, 400, 422)


async def test_headers_that_do_not_arrive_in_time_end_the_connection(served: Served, attempts: Attempts) -> None:
    for start in (b"", b"G", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "):
        answer = await raw(served.port, start)
        attempts.refused(status_of(answer) if answer else 408, 408)


async def test_headers_that_trickle_do_not_buy_time(served: Served, attempts: Attempts) -> None:
    async def trickle() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        try:
            writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
            reading = asyncio.ensure_future(reader.read())
            with contextlib.suppress(ConnectionError):
                while not reading.done():
                    writer.write(b"X-A: b\r\n")
                    await asyncio.sleep(0.02)
            try:
                attempts.refused(status_of(await reading), 408)
            except ConnectionError:  # closed while this was still sending, which can take the answer with it
                attempts.refused(408)
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*(trickle() for _ in range(20)))
        assert (await served.client.request("GET", "/agents")).status == 200


async def test_a_second_request_must_arrive_in_time_as_well(served: Served, attempts: Attempts) -> None:
    whole = f"GET /agents HTTP/1.1\r\n{AUTHORIZED}\r\n".encode()
    answer = await raw(served.port, whole + b"GET /agents HTTP/1.1\r\nHost: ")
    assert answer.startswith(b"HTTP/1.1 200")
    attempts.refused(408 if b"HTTP/1.1 408" in answer or answer.count(b"HTTP/1.1") == 1 else 200, 408)


async def test_a_body_that_nobody_waits_for_does_not_keep_a_connection(served: Served, attempts: Attempts) -> None:
    head = f"GET /agents HTTP/1.1\r\n{AUTHORIZED}Content-Length: 1000\r\n\r\n"
    answer = await raw(served.port, head.encode() + b"x")
    assert answer.startswith(b"HTTP/1.1 200")
    attempts.refused(408)


async def test_connections_that_ask_nothing_make_room_for_those_that_do(tmp_path: Path, attempts: Attempts) -> None:
    async with serving(tmp_path, limits=Limits(headers=60, sockets=10)) as served:
        idle = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(30)]
        try:
            assert (await served.client.request("GET", "/agents")).status == 200
            async with asyncio.timeout(PATIENCE):
                for reader, _ in idle[:20]:
                    with contextlib.suppress(ConnectionError):
                        assert await reader.read() == b""
                    attempts.refused(408)
        finally:
            for _, writer in idle:
                writer.close()
                with contextlib.suppress(ConnectionError):
                    await writer.wait_closed()


async def test_connections_of_every_kind_are_counted_while_they_last(tmp_path: Path) -> None:
    async with Hub(home=tmp_path) as hub:
        server = Server(hub, token=TOKEN)
        bound = tcp_socket("127.0.0.1", 0)
        port = bound.getsockname()[1]
        async with Listener(application(server), [bound], server.limits) as listener:
            client = Client(port, token=TOKEN)
            async with client.stream("GET", "/events"), connect(f"ws://127.0.0.1:{port}/ws"):
                assert listener.crowd.count == 2
            await raw(port, b"nonsense\r\n\r\n")
            handshake = b"GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
            assert status_of(await raw(port, handshake)) >= 400
            await until(lambda: listener.crowd.count == 0)


async def test_an_idle_connection_may_be_used_again_but_half_a_request_has_its_time(tmp_path: Path) -> None:
    async with Hub(home=tmp_path) as hub:
        server = Server(hub, token=TOKEN)
        bound = tcp_socket("127.0.0.1", 0)
        async with Listener(application(server), [bound], server.limits) as listener:
            reader, writer = await asyncio.open_connection(*bound.getsockname())
            (connection,) = await connections_of(listener)
            assert connection.transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert connection._deadline is not None
            for rest, has_deadline in ((b"", False), (b"", False), (b"GET /hea", True)):
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" + rest)
                await reader.readuntil(b"}")
                await until(lambda: not connection._is_answering())
                assert (connection._deadline is not None) is has_deadline
            writer.write(b"lthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await reader.readuntil(b"}")
            await until(lambda: connection._deadline is None)
            writer.write(f"GET /events HTTP/1.1\r\n{AUTHORIZED}\r\nGET /hea".encode())
            await until(lambda: len(server.connections) == 1)
            connection._too_late()  # a stream goes on, whatever follows it
            assert not connection.transport.is_closing()
            writer.close()


@contextlib.contextmanager
def unread(port: int) -> Iterator[socket.socket]:
    """A connection with hardly any room for answers, which nobody reads."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        connection.connect(("127.0.0.1", port))
        connection.setblocking(False)
        yield connection


async def test_who_asks_much_and_reads_nothing_of_it_does_not_keep_a_connection(
    tmp_path: Path, attempts: Attempts
) -> None:
    async with Hub(home=tmp_path) as hub:
        server = Server(hub, token=TOKEN, limits=Limits(stall=0.3))
        bound = tcp_socket("127.0.0.1", 0)
        async with Listener(application(server), [bound], server.limits) as listener:
            with unread(bound.getsockname()[1]) as connection:
                asking = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100_000
                with contextlib.suppress(ConnectionError):
                    await asyncio.get_running_loop().sock_sendall(connection, asking)
                await until(lambda: listener.crowd.count == 0)
            attempts.refused(408)


async def test_pings_and_pieces_of_nothing_do_not_add_up(tmp_path: Path, attempts: Attempts) -> None:
    loop = asyncio.get_running_loop()
    head = "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
    key = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    ping = b"\x89\xfd\0\0\0\0" + b"x" * 125
    first, nothing, piece = b"\x01\x80\0\0\0\0", b"\x00\x80\0\0\0\0", b"\x00\x81\0\0\0\0!"
    async with Hub(home=tmp_path) as hub:
        server = Server(hub, token=TOKEN)
        bound = tcp_socket("127.0.0.1", 0)
        async with Listener(application(server), [bound], server.limits) as listener:
            with unread(bound.getsockname()[1]) as connection:
                await loop.sock_sendall(connection, (head + key).encode())
                assert b"101" in await loop.sock_recv(connection, 100)
                (one,) = current(listener)
                await loop.sock_sendall(connection, ping * 50_000 + first + nothing * 50_000 + piece)
                await until(lambda: [bytes(part) for part in one.frames] == [b"!"])
                assert not one.writable.is_set()
                assert one.transport.get_write_buffer_size() < 1 << 20
            attempts.refused(429)


async def test_a_message_may_come_in_pieces(served: Served) -> None:
    async with connect(f"ws://127.0.0.1:{served.port}/ws") as lane:
        await lane.send(iter(json.dumps({"type": "authenticate", "token": TOKEN})))
        assert json.loads(await lane.recv())["type"] == "authenticated"
        await lane.send(iter([b'{"type"', b':"ping"}']))
        while (answer := json.loads(await lane.recv()))["type"] != "error":
            pass
        assert "binary" in answer["error"]["message"]


def current(listener: Listener) -> list[Any]:
    return list(listener._server.server_state.connections)


async def connections_of(listener: Listener) -> list[Any]:
    await until(lambda: listener.crowd.count > 0)
    return current(listener)


async def test_one_address_beyond_this_machine_has_only_so_many_connections(attempts: Attempts) -> None:
    from pilothouse.server.protocols import Crowd, HttpProtocol

    crowd = Crowd(Limits(per_address=3, sockets=100))
    connection: Any = HttpProtocol.__new__(HttpProtocol)
    assert [crowd.enter(connection, "203.0.113.9") for _ in range(3)] == [True] * 3
    assert not crowd.enter(connection, "203.0.113.9")
    attempts.refused(429)
    assert crowd.enter(connection, "198.51.100.7")
    assert all(crowd.enter(connection, "127.0.0.1") for _ in range(10))
    assert all(crowd.enter(connection, None) for _ in range(10))
    crowd.leave("203.0.113.9")
    assert crowd.enter(connection, "203.0.113.9")


@pytest.mark.parametrize(
    "head",
    [
        "GET /agents HTTP/1.1\r\n{auth}X: " + "a" * 70_000,
        "GET /agents HTTP/1.1\r\n{auth}" + "\r\n".join(f"X-{number}: a" for number in range(2500)),
        "GET /" + "a" * 70_000 + " HTTP/1.1\r\n{auth}X: y",
        "GET /agents HTTP/1.1\r\n{auth}" + "a" * 70_000 + ": x",
    ],
)
async def test_a_head_that_is_too_large_is_refused(served: Served, attempts: Attempts, head: str) -> None:
    data = head.replace("{auth}", AUTHORIZED).encode() + b"\r\nConnection: close\r\n\r\n"
    attempts.refused(status_of(await raw(served.port, data)), 400, 431)


async def test_a_head_that_never_ends_is_cut_off(served: Served, attempts: Attempts) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    sent = 0
    try:
        writer.write(b"GET /agents HTTP/1.1\r\nX: ")
        async with asyncio.timeout(PATIENCE):
            with contextlib.suppress(ConnectionError):
                while not reader.at_eof():
                    writer.write(b"a" * 8192)
                    sent += 8192
                    await writer.drain()
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(reader.read(1000), 0.001)
        assert sent < 50_000_000
        attempts.refused(431)
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


BODY = '{"agent":"demo","cwd":"/"}'
SMUGGLED = "GET /agents HTTP/1.1\r\n" + AUTHORIZED + "\r\n"


@pytest.mark.parametrize(
    "lines",
    [
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5\r\nContent-Length: 5",
        "Content-Length: 5, 5",
        "Content-Length: +5",
        "Content-Length: 0x5",
        "Content-Length: -5",
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: identity, chunked, chunked\r\nContent-Length: 5",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding: chunked\r\n folded: yes",
        "Content-Length : 5",
        "X: a\nContent-Length: 5",
        "X: a\rb",
        "X: a\0b",
        "X y: z",
        ": no name",
    ],
)
async def test_a_request_that_two_servers_could_read_in_two_ways_is_refused(
    served: Served, attempts: Attempts, lines: str
) -> None:
    before = await state(served.hub)
    head = f"POST /sessions HTTP/1.1\r\n{AUTHORIZED}Content-Type: application/json\r\n{lines}\r\n\r\n"
    answer = await raw(served.port, (head + f"0\r\n\r\n{SMUGGLED}").encode())
    attempts.refused(status_of(answer), 400)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert await state(served.hub) == before


async def test_what_comes_behind_a_body_is_no_header(served: Served, attempts: Attempts) -> None:
    head = "POST /login-links HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    trailer = f"0\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    attempts.refused(status_of(await raw(served.port, (head + trailer).encode())), 401)


async def test_bytes_that_are_no_http_are_refused(served: Served, attempts: Attempts) -> None:
    hello = bytes.fromhex("16030100a5010000a10303") + b"x" * 160
    for data in (hello, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x00" * 100, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"):
        attempts.refused(status_of(await raw(served.port, data)), 400, 408, 421)


async def test_an_upgrade_to_something_else_is_no_way_around(served: Served, attempts: Attempts) -> None:
    for kind in ("h2c", "TLS/1.0", "websocket2", "foo, websocket"):
        head = f"GET /agents HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: {kind}\r\n\r\n"
        answer = await raw(served.port, (head + head).encode(), until_closed=False)
        attempts.refused(status_of(answer), 400, 401)


async def test_no_header_changes_the_method_the_path_or_where_one_comes_from(
    served: Served, attempts: Attempts, project: Path
) -> None:
    session = await served.hub.start_session("demo", project)
    before = await state(served.hub)
    path = f"/sessions/{session.id}"
    for name in ("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"):
        assert (await served.client.request("GET", path, headers={name: "DELETE"})).status == 200
        _, device = await paired(served.client, "prompt", name=name)
        attempts.refused(await device.request("POST", f"{path}?_method=DELETE", {}, headers={name: "DELETE"}), 405)
        before = await state(served.hub)
    for name, value in (
        *(("X-Original-URL", "/healthz"), ("X-Rewrite-URL", "/healthz"), ("X-Forwarded-For", "127.0.0.1")),
        *(("Forwarded", "for=127.0.0.1;host=localhost"), ("X-Forwarded-Host", "localhost"), ("X-Real-IP", "::1")),
        *(("X-Forwarded-User", "local"), ("Remote-User", "local"), ("X-Forwarded-Prefix", "/healthz")),
    ):
        attempts.refused(await Client(served.port).request("GET", "/sessions", headers={name: value}), 401)
    assert await state(served.hub) == before


async def test_head_and_options_tell_a_stranger_nothing_and_start_nothing(
    served: Served, nobody: Client, attempts: Attempts
) -> None:
    for operation in SCOPED:
        path = target(operation.path)
        attempts.refused(await nobody.request("OPTIONS", path), 405)
        for method in ("TRACE", "PROPFIND", "SEARCH"):
            attempts.refused(await nobody.request(method, path), 400, 405)
        if operation.method == "GET":
            async with nobody.stream("HEAD", path) as answer:
                attempts.refused(answer.status, 401)
    async with served.client.stream("HEAD", "/events") as answer:
        assert answer.status == 200
        await until(lambda: len(served.server.connections) == 0)


async def test_every_answer_has_the_headers_that_keep_it_harmless(served: Served, nobody: Client) -> None:
    answers = [
        await nobody.request("GET", "/healthz"),
        await nobody.request("GET", "/sessions"),
        await nobody.request("GET", "/nothing"),
        await nobody.request("GET", "/healthz", headers={"Host": "evil.example"}),
        await served.client.request("GET", "/sessions"),
        await served.client.request("POST", "/sessions", {}),
        await served.client.request("GET", "/openapi.json"),
        await nobody.request("GET", "/"),
    ]
    for answer in answers:
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert "server" not in answer.headers
    assert b"x-content-type-options: nosniff" in await raw(served.port, b"nonsense\r\n\r\n")


# -- TLS -----------------------------------------------------------------------------------------------------------


def certificate(place: Path) -> tuple[Path, Path]:
    key, cert = place / "key.pem", place / "cert.pem"
    line = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    command = [*line.split(), "-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    return cert, key


async def test_under_tls_the_cookie_never_travels_in_the_clear(tmp_path: Path, attempts: Attempts) -> None:
    cert, key = certificate(tmp_path)
    trust = ssl.create_default_context(cafile=str(cert))
    async with Hub(home=tmp_path / "home") as hub:
        server = Server(hub, token=TOKEN)
        bound = tcp_socket("127.0.0.1", 0)
        port = bound.getsockname()[1]
        async with Listener(application(server), [bound], server.limits, certificate=cert, key=key):

            async def ask(text: str) -> bytes:
                reader, writer = await asyncio.open_connection("localhost", port, ssl=trust)
                try:
                    head = f"{text}\r\nHost: localhost:{port}\r\nConnection: close\r\nContent-Length: 0\r\n"
                    writer.write(f"{head}Authorization: Bearer {TOKEN}\r\n\r\n".encode())
                    async with asyncio.timeout(PATIENCE):
                        return await reader.read()
                finally:
                    writer.close()

            made = await ask("POST /login-links HTTP/1.1")
            url = json.loads(made.partition(b"\r\n\r\n")[2])["url"]
            assert url.startswith(f"https://localhost:{port}/login?ticket=")
            answer = await ask(f"GET {url.partition(str(port))[2]} HTTP/1.1")
            found = re.search(rb"set-cookie: (.*)\r\n", answer)
            assert found is not None
            assert found[1].endswith(b"HttpOnly; SameSite=Strict; Secure")
            foreign = await ask(f"GET /agents HTTP/1.1\r\nOrigin: http://localhost:{port}")
            attempts.refused(status_of(foreign), 403)  # the same page, loaded without TLS
            own = await ask(f"GET /agents HTTP/1.1\r\nOrigin: https://localhost:{port}")
            assert status_of(own) == 200
            plain = await raw(port, f"GET /agents HTTP/1.1\r\n{AUTHORIZED}\r\n".encode())
            attempts.refused(status_of(plain) or 400, 400)


# -- the end -------------------------------------------------------------------------------------------------------


async def test_the_server_ends_at_once_whoever_is_connected_and_without_noise(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with contextlib.AsyncExitStack() as clients:
        async with serving(tmp_path, limits=Limits(headers=60)) as served:
            session = await served.hub.start_session("demo", tmp_path)
            streams = [
                await clients.enter_async_context(served.client.stream("GET", path))
                for path in (f"/sessions/{session.id}/events", "/events", f"/sessions/{session.id}/packets")
            ]
            sockets = [
                await clients.enter_async_context(
                    connect(f"ws://127.0.0.1:{served.port}{path}", additional_headers=bearer(served.client))
                )
                for path in routes()
            ]
            _, idle = await asyncio.open_connection("127.0.0.1", served.port)
            await until(lambda: len(served.server.connections) >= len(streams) + len(sockets))
            loop = asyncio.get_running_loop()
            begun = loop.time()
        assert loop.time() - begun < 5
        for stream in streams:
            await stream.body()
        for lane in sockets:
            await lane.wait_closed()
            assert lane.close_code in (1001, 1012)
        idle.close()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@contextlib.contextmanager
def stalled(port: int, client: Client, path: str) -> Iterator[socket.socket]:
    """A consumer that asks and then takes nothing."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", port))
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {client.token}\r\n\r\n"
        connection.sendall(head.encode())
        yield connection


def rest(connection: socket.socket) -> bytes:
    """What had been sent when the connection was cut off."""
    connection.settimeout(PATIENCE)
    taken = b""
    with contextlib.suppress(ConnectionError):
        while data := connection.recv(1 << 20):
            taken += data
    return taken


@pytest.fixture
def is_stalled(monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """Whether a connection takes nothing for long enough that it is not just slow.

    Ask for it before the server: its sockets then hold little.
    """
    paused: set[FlowControl] = set()
    looked = 0

    def small(host: str, port: int) -> socket.socket:
        bound = tcp_socket(host, port)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16384)
        return bound

    def pause(flow: FlowControl) -> None:
        paused.add(flow)
        pause_writing(flow)

    def resume(flow: FlowControl) -> None:
        paused.discard(flow)
        resume_writing(flow)

    def is_stalled() -> bool:
        nonlocal looked
        looked = looked + 1 if paused else 0
        return looked > 50

    pause_writing, resume_writing = FlowControl.pause_writing, FlowControl.resume_writing
    monkeypatch.setattr(servers, "tcp_socket", small)
    monkeypatch.setattr(FlowControl, "pause_writing", pause)
    monkeypatch.setattr(FlowControl, "resume_writing", resume)
    return is_stalled


async def flooded(served: Served, project: Path) -> str:
    """The path of more events than any buffer holds."""
    session = await served.hub.start_session("demo", project)
    for _ in range(4):
        await session.prompt("big 2000000")
    return f"/sessions/{session.id}/events"


async def test_a_device_that_takes_nothing_is_cut_off_as_well(
    is_stalled: Callable[[], bool], served: Served, attempts: Attempts, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    path = await flooded(served, project)
    device_id, device = await paired(served.client, "read")
    with stalled(served.port, device, path) as connection:
        await until(is_stalled)
        assert (await served.client.request("DELETE", f"/devices/{device_id}")).json()["connections"] == 1
        await until(lambda: len(served.server.connections) == 0)
        attempts.refused(await device.request("GET", "/agents"), 401)
        assert not (await asyncio.to_thread(rest, connection)).endswith(b"0\r\n\r\n")
    assert caplog.records == []


async def test_the_server_ends_though_somebody_takes_nothing(
    is_stalled: Callable[[], bool], tmp_path: Path, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    with contextlib.ExitStack() as clients:
        async with asyncio.timeout(PATIENCE), serving(tmp_path) as served:
            path = await flooded(served, project)
            connection = clients.enter_context(stalled(served.port, served.client, path))
            await until(is_stalled)
        assert not (await asyncio.to_thread(rest, connection)).endswith(b"0\r\n\r\n")
    assert caplog.records == []
