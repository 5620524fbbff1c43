"""Who comes without a token, with a wrong one, or from a foreign page. Each is refused; nothing changes."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from pilothouse.server.app import OPERATIONS
from tests.support.attacks import FOREIGN, SCOPED, Attempts, log_in, raw, state, status_of, target
from tests.support.http_client import Client
from tests.support.servers import TOKEN, Served, serving


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
    session = await served.hub.start_session("demo", "/")
    for path in (f"/sessions/{session.id}/cancel", "/pairings", "/login-links", "/logout"):
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
            answer = await served.client.request("POST", path, headers={"Content-Type": kind})
            attempts.refused(answer, 415)  # also of nothing
        assert (await served.client.request("POST", path)).status in (200, 201)
    await served.hub.delete_session(session.id)
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
        allowed = answer.headers["access-control-allow-headers"].lower().split(", ")
        named = {name.lower() for operation in OPERATIONS for name in operation.headers}
        assert named <= set(allowed)
        assert "if-range" in allowed
        exposed = answer.headers["access-control-expose-headers"].lower().split(", ")
        assert {"x-turn-id", "content-range", "preference-applied", "etag", "location"} <= set(exposed)
        assert (await served.client.request("GET", "/sessions", headers=page)).status == 200
        cookie = await log_in(served)
        attempts.refused(await Client(served.port).request("GET", "/sessions", headers={**page, **cookie}), 401)
        other = {**asked, "Origin": "https://other.example"}
        attempts.refused(await Client(served.port).request("OPTIONS", "/sessions", headers=other), 403)
