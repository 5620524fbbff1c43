"""Browsers: login links, cookies, and what a foreign page could do with either."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from tests.support.attacks import FOREIGN, Attempts, Clock, log_in, login_link, paired, state, until
from tests.support.http_client import PATIENCE, Client
from tests.support.servers import TOKEN, Served, serving


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


async def test_browsers_of_the_owner_have_names_that_tell_them_apart(served: Served, nobody: Client) -> None:
    agent = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36"}
    names = []
    for _ in range(2):
        answer = await nobody.request("GET", await login_link(served), headers=agent)
        cookie = {"Cookie": answer.headers["set-cookie"].partition(";")[0]}
        names.append((await nobody.request("GET", "/whoami", headers=cookie)).json()["name"])
    assert names[0] == "Chrome on Linux"
    assert names[1].startswith("Chrome on Linux ")
    assert len(names[1]) > len(names[0])


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
    followed = {**cookie, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert (await nobody.request("GET", "/sessions", headers=followed)).status == 200
    attempts.refused(await nobody.request("POST", "/login-links", headers=followed), 401)
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


async def test_the_streams_of_a_browser_end_when_it_is_logged_out_and_no_others_do(
    served: Served, nobody: Client, attempts: Attempts
) -> None:
    one, other = await log_in(served), await log_in(served)
    url = f"ws://127.0.0.1:{served.port}/ws"
    async with (
        nobody.stream("GET", "/events", headers=one) as stream,
        nobody.stream("GET", "/events", headers=other) as kept,
        connect(url, additional_headers=one) as lane,
        asyncio.timeout(PATIENCE),
    ):
        assert (stream.status, kept.status) == (200, 200)
        await lane.recv()
        await nobody.request("POST", "/logout", {}, headers=one)
        await stream.body()  # it ends
        with attempts.refusing(ConnectionClosed):
            while True:
                await lane.recv()
        assert lane.close_code == 1008
        await until(lambda: len(served.server.connections) == 1)
        attempts.refused(await nobody.request("GET", "/events", headers=one), 401)


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
