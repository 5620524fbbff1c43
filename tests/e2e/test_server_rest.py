"""The REST operations over a real socket: sessions, commands, approvals, rules, queue, search, metrics, the page."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pilothouse.hub.errors import QueueFull
from tests.support.http_client import Answer, Client
from tests.support.hubs import PATIENCE, facts, history
from tests.support.servers import Served, serving
from tests.support.world import pair, pending, world


def error(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.json()["error"]["code"]


def names(answer: Answer) -> list[str]:
    return [row["id"] for row in answer.json()["sessions"]]


async def started(served: Served, place: Path, **body: Any) -> str:
    answer = await served.client.request("POST", "/sessions", {"agent": "demo", "cwd": str(place), **body})
    assert answer.status == 201, answer.body
    return str(answer.json()["id"])


async def send(served: Served, session_id: str, text: str) -> str:
    body = {"command": "send_message", "message": text}
    answer = await served.client.request("POST", f"/sessions/{session_id}/commands", body)
    assert answer.status == 200, answer.body
    return str(answer.json()["result"]["turnId"])


async def idle(served: Served, session_id: str) -> None:
    session = await served.hub.session(session_id)
    async with asyncio.timeout(PATIENCE):
        while not session.is_idle:
            await asyncio.sleep(0.01)


# -- sessions -------------------------------------------------------------------------------------------------------


async def test_a_new_session_is_where_the_location_says(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        body = {"agent": "demo", "cwd": str(tmp_path), "title": "Fix it", "policy": {"autoApprove": {"reads": True}}}
        answer = await served.client.request("POST", "/sessions", body)
        shown = await served.client.request("GET", answer.headers["location"])
        assert answer.status == 201
        assert shown.json()["id"] == answer.json()["id"]
        assert {key: shown.json()[key] for key in ("agent", "cwd", "title", "status", "seq", "queue")} == {
            "agent": "demo",
            "cwd": str(tmp_path),
            "title": "Fix it",
            "status": "idle",
            "seq": 0,
            "queue": [],
        }
        assert shown.json()["policy"]["autoApprove"] == {"reads": True}


@pytest.mark.parametrize(
    ("change", "expected", "field"),
    [
        ({"agent": "nobody"}, (404, "unknown_agent"), None),
        ({"agent": ""}, (422, "invalid"), "agent"),
        ({"agent": 7}, (422, "invalid"), "agent"),
        ({"cwd": "relative"}, (422, "hub_error"), "cwd"),
        ({"cwd": "/no/such/place"}, (422, "hub_error"), "cwd"),
        ({"cwd": "/" + "x" * 300}, (422, "hub_error"), "cwd"),
        ({"cwd": "/a\0b"}, (422, "hub_error"), "cwd"),
        ({"title": "one\r\nX-Evil: 1"}, (422, "invalid"), "title"),
        ({"title": "one\u2028two"}, (422, "invalid"), "title"),
        ({"title": "\u202egnp.exe"}, (422, "invalid"), "title"),
        ({"title": "\u2066a\u2069"}, (422, "invalid"), "title"),
        ({"title": "x" * 501}, (422, "invalid"), "title"),
        ({"policy": {"autoApprov": {}}}, (422, "invalid"), "policy.autoApprov"),
        ({"policy": {"autoApprove": {"reads": 7}}}, (422, "invalid"), "policy.autoApprove.reads"),
        ({"polcy": {}}, (422, "invalid"), "polcy"),
    ],
)
async def test_a_session_that_cannot_be_is_refused_by_name(
    tmp_path: Path, change: dict[str, Any], expected: tuple[int, str], field: str | None
) -> None:
    async with serving(tmp_path) as served:
        body = {"agent": "demo", "cwd": str(tmp_path), **change}
        answer = await served.client.request("POST", "/sessions", body)
        assert error(answer) == expected
        if field is not None:
            assert answer.json()["error"]["details"]["field"] == field
        assert names(await served.client.request("GET", "/sessions")) == []


async def test_nobody_is_sent_elsewhere(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        for method, target in (("GET", "/sessions/"), ("POST", "/sessions/"), ("GET", "/healthz/")):
            assert error(await served.client.request(method, target)) == (404, "not_found")
        answer = await served.client.request("GET", "/login")
        assert answer.json()["error"]["details"] == {"field": "ticket"}


@pytest.mark.parametrize(
    ("body", "kind", "expected"),
    [
        (b"{", "application/json", (400, "malformed")),
        (b"\xff", "application/json", (400, "malformed")),
        (b"[]", "application/json", (422, "invalid")),
        (b"", "application/json", (422, "invalid")),
        (b'{"agent":"demo","cwd":"/"}', "text/plain", (415, "unsupported_media_type")),
        (b"agent=demo&cwd=/", "application/x-www-form-urlencoded", (415, "unsupported_media_type")),
        (b"[" * 100_000, "application/json", (422, "invalid")),  # nested too deeply is seen first
    ],
)
async def test_a_body_that_is_no_json_object_is_refused(
    tmp_path: Path, body: bytes, kind: str, expected: tuple[int, str]
) -> None:
    async with serving(tmp_path) as served:
        answer = await served.client.request("POST", "/sessions", body=body, headers={"Content-Type": kind})
        assert error(answer) == expected


async def test_the_same_client_request_id_starts_one_session(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        body = {"agent": "demo", "cwd": str(tmp_path), "client_request_id": "one"}
        first, second = await asyncio.gather(*(served.client.request("POST", "/sessions", body) for _ in range(2)))
        other = await served.client.request("POST", "/sessions", {**body, "title": "Other"})
        assert other.json()["error"]["details"] == {"field": "client_request_id"}
        assert first.json()["id"] == second.json()["id"]
        assert error(other) == (409, "id_reused")
        assert len(names(await served.client.request("GET", "/sessions"))) == 1


async def test_sessions_are_listed_by_what_is_asked_for_and_in_pages(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    async with serving(tmp_path) as served:
        made = [await started(served, tmp_path, title=f"number {index}") for index in range(5)]
        elsewhere = await started(served, tmp_path / "other")
        await served.client.request("PATCH", f"/sessions/{made[0]}", {"archived": True})

        async def found(query: str) -> list[str]:
            return names(await served.client.request("GET", f"/sessions?{query}"))

        assert await found("archived=true") == [made[0]]
        assert set(await found("archived=all")) == {*made, elsewhere}
        assert await found(f"cwd={tmp_path / 'other'}") == [elsewhere]
        assert await found("title=NUMBER%203") == [made[3]]
        assert await found("status=completed") == []
        assert await found("agent=odd") == []
        pages, before = [], ""
        while True:
            page = (await served.client.request("GET", f"/sessions?limit=2{before}")).json()
            pages.append([row["id"] for row in page["sessions"]])
            if page["next"] is None:
                break
            before = f"&before={page['next']}"
        assert [len(page) for page in pages] == [2, 2, 1]
        assert {one for page in pages for one in page} == {*made[1:], elsewhere}


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=201", "limit=x", "before=x", "before=a~99999999999999999999", "status=no", "colour=1"]
)
async def test_a_list_with_a_wrong_parameter_is_refused(tmp_path: Path, query: str) -> None:
    async with serving(tmp_path) as served:
        assert error(await served.client.request("GET", f"/sessions?{query}")) == (422, "invalid")


async def test_a_row_tells_of_approvals_and_of_the_queue(tmp_path: Path) -> None:
    async with world(tmp_path) as (served, ids):
        rows = {row["id"]: row for row in (await served.client.request("GET", "/sessions")).json()["sessions"]}
        assert (rows[ids.session]["pendingApprovals"], rows[ids.session]["queueLength"]) == (1, 1)
        assert (rows[ids.spare]["pendingApprovals"], rows[ids.spare]["queueLength"]) == (0, 0)
        assert rows[ids.session]["status"] == "waiting_for_approval"
        assert rows[ids.session]["seq"] == await served.hub.log.last_seq(ids.session)


async def test_the_snapshot_goes_as_far_as_its_seq_and_is_small_without_items(tmp_path: Path) -> None:
    async with world(tmp_path) as (served, ids):
        whole = (await served.client.request("GET", f"/sessions/{ids.session}")).json()
        small = (await served.client.request("GET", f"/sessions/{ids.session}?items=false")).json()
        assert whole["seq"] == await served.hub.log.last_seq(ids.session)
        assert len(whole.pop("items")) == small["itemsCount"] > 3
        assert whole.pop("turnsEnded")
        assert whole == small
        assert [one["requestId"] for one in whole["pendingApprovals"]] == [ids.approval]
        assert [one["promptId"] for one in whole["queue"]] == [ids.prompt]


async def test_a_session_is_renamed_archived_and_given_a_policy_by_events(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session_id = await started(served, tmp_path, title="Before")
        policy = {"autoApprove": {"commands": ["npm test"]}}
        body = {"title": "After", "archived": True, "policy": policy}
        shown = (await served.client.request("PATCH", f"/sessions/{session_id}", body)).json()
        assert (shown["title"], shown["archived"] is not None) == ("After", True)
        assert shown["policy"]["autoApprove"]["commands"] == ["npm test"]
        body = {"title": None, "archived": False, "policy": None}
        shown = (await served.client.request("PATCH", f"/sessions/{session_id}", body)).json()
        assert (shown["title"], shown["archived"], shown["policy"]) == (None, None, None)
        events = await history(served.hub.log, session_id)
        assert [data["title"] for data in facts(events, "session_info_update")] == ["After", None]
        assert len(facts(events, "policy_set")) == 2


async def test_what_is_wrong_in_a_change_changes_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session_id = await started(served, tmp_path, title="Before")
        answer = await served.client.request("PATCH", f"/sessions/{session_id}", {"title": "After", "policy": {"x": 1}})
        shown = (await served.client.request("GET", f"/sessions/{session_id}")).json()
        assert (answer.status, shown["title"], shown["seq"]) == (422, "Before", 0)


async def test_a_policy_needs_more_than_the_right_to_prompt(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        client = Client(served.port, token=(await pair(served, "read", "prompt"))["credential"])
        (tmp_path / "work").mkdir()
        body = {"agent": "demo", "cwd": str(tmp_path / "work")}
        own = await client.request("POST", "/sessions", body)
        assert own.status == 201
        policy = {"policy": {"autoApprove": {"commands": True}}}
        assert error(await client.request("POST", "/sessions", {**body, **policy})) == (403, "forbidden")
        place = own.headers["location"]
        assert error(await client.request("PATCH", place, policy)) == (403, "forbidden")
        assert error(await client.request("DELETE", place)) == (403, "forbidden")
        assert (await client.request("PATCH", place, {"title": "Mine"})).status == 200


async def test_a_deleted_session_is_gone_with_its_agent_and_its_approvals(tmp_path: Path) -> None:
    async with world(tmp_path) as (served, ids):
        session = await served.hub.session(ids.session)
        assert session.agent_pid is not None
        assert (await served.client.request("DELETE", f"/sessions/{ids.session}")).status == 204
        assert session.agent_pid is None
        assert error(await served.client.request("GET", f"/sessions/{ids.session}")) == (404, "unknown_session")
        assert error(await served.client.request("DELETE", f"/sessions/{ids.session}")) == (404, "unknown_session")
        assert error(await served.client.request("GET", f"/approvals/{ids.approval}")) == (404, "unknown_approval")


async def test_cancel_ends_the_turn_and_says_whether_there_was_one(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session_id = await started(served, tmp_path)
        await send(served, session_id, "wait")
        place = f"/sessions/{session_id}/cancel"
        assert (await served.client.request("POST", place)).json() == {"cancelled": True}
        assert (await served.client.request("POST", place)).json() == {"cancelled": False}
        events = await history(served.hub.log, session_id)
        assert [data["stopReason"] for data in facts(events, "turn_ended")] == ["cancelled"]


# -- commands -------------------------------------------------------------------------------------------------------


async def test_a_command_is_answered_when_the_log_has_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session_id = await started(served, tmp_path)
        body = {"command": "send_message", "message": "echo hello", "commandId": "one"}
        answer = (await served.client.request("POST", f"/sessions/{session_id}/commands", body)).json()
        stored = facts(await history(served.hub.log, session_id), "turn_started")
        assert [data["turnId"] for data in stored] == [answer["result"]["turnId"]]
        assert (answer["command"], answer["commandId"]) == ("send_message", "one")
        assert answer["seq"] > 0


async def test_a_command_sent_again_does_nothing_and_is_answered_the_same_also_after_a_restart(tmp_path: Path) -> None:
    body = {"command": "send_message", "message": "echo hello", "commandId": "one"}
    async with serving(tmp_path) as served:
        session_id = await started(served, tmp_path)
        place = f"/sessions/{session_id}/commands"
        answers = await asyncio.gather(*(served.client.request("POST", place, body) for _ in range(5)))
        assert len({answer.body for answer in answers}) == 1
        other = await served.client.request("POST", place, {**body, "message": "echo other"})
        assert error(other) == (409, "id_reused")
        await idle(served, session_id)
    async with serving(tmp_path) as served:
        again = (await served.client.request("POST", place, body)).json()
        assert again["result"] == answers[0].json()["result"]
        other = await served.client.request("POST", place, {**body, "message": "echo other"})
        assert (error(other), other.json()["error"]["details"]) == ((409, "id_reused"), {"field": "commandId"})
        assert len(facts(await history(served.hub.log, session_id), "turn_started")) == 1


async def test_a_command_that_failed_may_be_tried_again_under_its_id(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session_id = await started(served, tmp_path)
        place, body = f"/sessions/{session_id}/commands", {"command": "set_mode", "modeId": "none", "commandId": "one"}
        assert error(await served.client.request("POST", place, body)) == (502, "agent_failed")
        body = {"command": "set_mode", "modeId": "plan", "commandId": "one"}
        assert (await served.client.request("POST", place, body)).status == 200


@pytest.mark.parametrize(
    ("body", "expected", "field"),
    [
        ({}, (422, "invalid"), "command"),
        ([], (422, "invalid"), "body"),
        ({"command": "fly"}, (422, "invalid"), "command"),
        ({"command": "send_message"}, (422, "invalid"), "message"),
        ({"command": "send_message", "message": " "}, (422, "invalid"), "message"),
        ({"command": "rename", "title": "one\r\ntwo"}, (422, "invalid"), "title"),
        ({"command": "rename", "title": "x" * 501}, (422, "invalid"), "title"),
        ({"command": "pause", "colour": 1}, (422, "invalid"), "colour"),
        ({"command": "pause", "commandId": 1}, (422, "invalid"), "commandId"),
        ({"command": "pause", "commandId": ""}, (422, "invalid"), "commandId"),
        ({"command": "cancel_queued", "promptId": "none"}, (409, "illegal_command"), None),
        ({"command": "answer_question", "questionId": "none", "answer": "x"}, (404, "unknown_approval"), None),
    ],
)
async def test_a_command_that_cannot_be_is_refused_by_name(
    tmp_path: Path, body: Any, expected: tuple[int, str], field: str | None
) -> None:
    async with serving(tmp_path) as served:
        session_id = await started(served, tmp_path)
        answer = await served.client.request("POST", f"/sessions/{session_id}/commands", body)
        assert error(answer) == expected
        if field is not None:
            assert answer.json()["error"]["details"] == {"field": field}


async def test_no_title_reaches_a_header(tmp_path: Path) -> None:
    title = "a\r\nSet-Cookie: evil=1\r\n\r\n<script>"
    async with world(tmp_path) as (served, ids):
        place = f"/sessions/{ids.session}"
        session = await served.hub.session(ids.session)
        session.rename(title)  # as an agent may
        await session.committed()
        for target in ("", "/files", "/files/notes.txt", "/artifacts", f"/artifacts/{ids.artifact}", "/queue"):
            answer = await served.client.request("GET", place + target)
            assert answer.status == 200
            assert "evil" not in str(answer.headers)
        assert (await served.client.request("GET", place)).json()["title"] == title


# -- the queue ------------------------------------------------------------------------------------------------------


async def test_prompts_that_wait_are_changed_moved_and_taken_back(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session_id = await started(served, tmp_path)
        place = f"/sessions/{session_id}/queue"
        await send(served, session_id, "wait")
        one, two, three = [await send(served, session_id, f"echo {word}") for word in ("one", "two", "three")]
        assert [item["promptId"] for item in (await served.client.request("GET", place)).json()["queue"]] == [
            *(one, two, three)
        ]
        moved = (await served.client.request("PATCH", f"{place}/{three}", {"place": 0, "content": "echo 3"})).json()
        assert [item["promptId"] for item in moved["queue"]] == [three, one, two]
        assert moved["queue"][0]["content"][0]["text"] == "echo 3"
        left = (await served.client.request("DELETE", f"{place}/{one}")).json()
        assert [item["promptId"] for item in left["queue"]] == [three, two]
        assert error(await served.client.request("DELETE", f"{place}/{one}")) == (409, "illegal_command")
        assert error(await served.client.request("PATCH", f"{place}/{two}", {})) == (422, "invalid")
        wrong = await served.client.request("PATCH", f"{place}/{two}", {"content": [{"type": "none"}]})
        assert wrong.json()["error"]["details"] == {"field": "content[0].type"}
        await served.client.request("POST", f"/sessions/{session_id}/cancel")
        await idle(served, session_id)
        ended = facts(await history(served.hub.log, session_id), "turn_ended")
        assert [data["turnId"] for data in ended][1:] == [three, two]


# -- approvals and rules --------------------------------------------------------------------------------------------


async def test_the_first_decision_wins_and_names_who_made_it(tmp_path: Path) -> None:
    async with world(tmp_path) as (served, ids):
        place = f"/approvals/{ids.approval}"
        phone = await pair(served, "read", "approve")
        client = Client(served.port, token=phone["credential"])
        first = await client.request("POST", place, {"decision": "deny", "reason": "not now"})
        again = await served.client.request("POST", place, {"decision": "deny"})
        other = await served.client.request("POST", place, {"decision": "allow"})
        assert (first.status, again.status) == (200, 200)
        assert first.json() == again.json()
        assert error(other) == (409, "conflict")
        assert other.json()["error"]["details"]["decidedBy"] == phone["name"] == first.json()["decidedBy"]
        events = await history(served.hub.log, ids.session)
        decided = [event for event in events if event.type == "approval:resolved"]
        assert [getattr(event, "decided_by", None) for event in decided][-1] == phone["name"]


async def test_an_approval_is_decided_by_an_option_of_the_agent(tmp_path: Path) -> None:
    async with world(tmp_path) as (served, ids):
        place = f"/approvals/{ids.approval}"
        shown = (await served.client.request("GET", place)).json()
        assert (shown["state"], shown["sessionId"], shown["decision"]) == ("pending", ids.session, None)
        assert shown["request"]["riskLevel"]
        assert error(await served.client.request("POST", place, {})) == (422, "invalid")
        wrong = await served.client.request("POST", place, {"optionId": "none"})
        assert (error(wrong), wrong.json()["error"]["details"]) == ((422, "invalid"), {"field": "optionId"})
        option = next(one["optionId"] for one in shown["options"] if one["kind"] == "allow_once")
        clash = await served.client.request("POST", place, {"optionId": option, "decision": "deny"})
        assert error(clash) == (409, "illegal_command")
        decided = (await served.client.request("POST", place, {"optionId": option})).json()
        assert decided["decision"]["approved"] is True
        assert decided["decision"]["optionId"] == option


async def test_approvals_are_listed_by_state_and_session(tmp_path: Path) -> None:
    async with world(tmp_path) as (served, ids):

        async def found(query: str) -> list[str]:
            answer = await served.client.request("GET", f"/approvals?{query}")
            return [one["id"] for one in answer.json()["approvals"]]

        assert await found("") == [ids.approval]
        assert await found(f"sessionId={ids.session}") == [ids.approval]
        assert await found(f"sessionId={ids.spare}") == []
        assert len(await found("state=all")) == 2
        assert error(await served.client.request("GET", "/approvals?state=open")) == (422, "invalid")
        assert error(await served.client.request("GET", "/approvals/none")) == (404, "unknown_approval")
        assert error(await served.client.request("POST", "/approvals/none", {"decision": "allow"})) == (
            *(404, "unknown_approval"),
        )


async def test_what_is_remembered_is_not_asked_again_until_the_rule_is_revoked(tmp_path: Path) -> None:
    async with serving(tmp_path / "home") as served:
        session_id = await started(served, tmp_path)
        await send(served, session_id, "edit notes.txt one")
        body = {"decision": "allow", "remember": "project", "rememberFor": 3600}
        await served.client.request("POST", f"/approvals/{await pending(served)}", body)
        await idle(served, session_id)
        await send(served, session_id, "edit notes.txt two")
        await idle(served, session_id)
        assert (tmp_path / "notes.txt").read_text() == "two\n"
        (rule,) = (await served.client.request("GET", "/rules")).json()["rules"]
        assert (rule["scope"], rule["scopeKey"], rule["hits"], rule["active"]) == ("project", str(tmp_path), 1, True)
        assert rule["expires"] is not None
        revoked = (await served.client.request("DELETE", f"/rules/{rule['id']}")).json()
        assert (revoked["active"], revoked["revoked"] is not None) == (False, True)
        assert (await served.client.request("DELETE", f"/rules/{rule['id']}")).json() == revoked
        assert (await served.client.request("GET", "/rules")).json()["rules"] == []
        assert (await served.client.request("GET", "/rules?state=all")).json()["rules"] == [revoked]
        assert error(await served.client.request("DELETE", "/rules/none")) == (404, "not_found")
        await send(served, session_id, "edit notes.txt three")
        assert (await pending(served)) != ""


# -- the hub --------------------------------------------------------------------------------------------------------


async def test_search_finds_what_was_said(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session_id = await started(served, tmp_path)
        await send(served, session_id, "echo a zebra crosses")
        await idle(served, session_id)
        hits = (await served.client.request("GET", "/search?q=zebra%20cross")).json()["hits"]
        assert {hit["sessionId"] for hit in hits} == {session_id}
        assert "zebra" in hits[0]["snippet"]
        assert (await served.client.request("GET", "/search?q=zebra&sessionId=none")).json() == {"hits": []}
        for query in ("", "q=", "q=x&limit=0", "q=x&q=y"):
            assert error(await served.client.request("GET", f"/search?{query}")) == (422, "invalid")


async def test_metrics_count_what_there_is(tmp_path: Path) -> None:
    async with world(tmp_path) as (served, _):
        answer = await served.client.request("GET", "/metrics")
        assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        lines = [line for line in answer.body.decode().splitlines() if not line.startswith("#")]
        values = {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}
        assert values['pilothouse_sessions{status="waiting_for_approval"}'] == 1
        assert values['pilothouse_sessions{status="idle"}'] == 1
        assert values["pilothouse_approvals_pending"] == 1
        assert values["pilothouse_agents_running"] == 1
        assert values["pilothouse_prompts_queued"] == 1
        assert values["pilothouse_events_appended_total"] > 20
        assert values["process_cpu_seconds_total"] > 0
        assert values["process_resident_memory_bytes"] > 1 << 20
        assert values["process_open_fds"] > 3


async def test_the_page_is_for_everybody_and_has_nothing_inline(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        answer = await Client(served.port).request("GET", "/")
        assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert answer.body.count(b"<script") == answer.body.count(b'<script type="module" src="') == 1
        assert b"<style" not in answer.body
        assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("method", "target", "expected"), [("GET", "/none", (404, "not_found")), ("PUT", "/sessions", (405, None))]
)
async def test_what_is_not_there_is_said_in_the_same_shape(
    tmp_path: Path, method: str, target: str, expected: tuple[int, str | None]
) -> None:
    async with serving(tmp_path) as served:
        answer = await served.client.request(method, target)
        assert answer.status == expected[0]
        assert answer.json()["error"]["code"] == (expected[1] or "method_not_allowed")


async def test_below_a_path_the_links_have_it(tmp_path: Path) -> None:
    async with serving(tmp_path, root_path="/hub") as served:
        body = {"agent": "demo", "cwd": str(tmp_path)}
        made = await served.client.request("POST", "/sessions", body)
        assert made.headers["location"] == f"/hub/sessions/{made.json()['id']}"
        told = (await served.client.request("GET", "/openapi.json")).json()
        assert told["servers"] == [{"url": "/hub"}]


async def test_who_changed_a_policy_or_ended_a_session_is_written_down(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with world(tmp_path) as (served, ids):
        place = f"/sessions/{ids.spare}"
        with caplog.at_level("INFO", logger="pilothouse.audit"):
            await served.client.request("PATCH", place, {"policy": None})
            await served.client.request("POST", f"{place}/commands", {"command": "set_permission_policy", "policy": {}})
            await served.client.request("POST", f"{place}/commands", {"command": "terminate"})
            await served.client.request("DELETE", place)
        told = [record.__dict__["audit"] for record in caplog.records if "audit" in record.__dict__]
    own = [(one["audit"], one["by"], one["sessionId"]) for one in told if one["audit"] != "request"]
    assert own == [(name, "token", ids.spare) for name in ("policy_set", "set_permission_policy", "terminate")]
    assert ("DELETE", place, "token") in [(one.get("method"), one.get("path"), one["by"]) for one in told]


async def test_a_parameter_that_nobody_knows_is_named_also_where_there_are_none(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        for target in ("/agents?zzz=1", "/devices?zzz=1", "/whoami?zzz=1", "/sessions?zzz=1"):
            answer = await served.client.request("GET", target)
            assert (error(answer), answer.json()["error"]["details"]) == ((422, "invalid"), {"field": "zzz"})
        assert (await served.client.request("GET", "/?utm=1")).status == 200  # people open this one


async def test_a_refusal_has_always_details(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        for target in ("/nothing", "/pairings/nothing", "/artifacts"):
            assert (await served.client.request("GET", target)).json()["error"]["details"] == {}


async def test_who_finds_the_queue_full_is_told_when_to_come_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as served:
        session = await served.hub.start_session("demo", tmp_path)

        async def full(*args: Any, **kwargs: Any) -> None:
            raise QueueFull("64 prompts wait already")

        monkeypatch.setattr(type(session), "send", full)
        answer = await served.client.request("POST", f"/sessions/{session.id}/send-message", {"content": "echo hi"})
        assert error(answer) == (429, "queue_full")
        assert int(answer.headers["retry-after"]) > 0


async def test_an_archived_session_that_is_prompted_is_in_the_list_again(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session = await served.hub.start_session("demo", tmp_path)
        await served.client.request("PATCH", f"/sessions/{session.id}", {"archived": True})
        assert names(await served.client.request("GET", "/sessions")) == []
        await session.prompt("echo hi")
        assert names(await served.client.request("GET", "/sessions")) == [session.id]
