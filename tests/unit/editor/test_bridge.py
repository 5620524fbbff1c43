"""The bridge without I/O: who is answered what, over the life of several hubs."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

from pilothouse.acp.errors import RequestError
from pilothouse.editor.bridge import DEATHS, Bridge
from pilothouse.offer import offer

SESSION = "ses_1"


def line(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode()


def update(seq: int, text: str = "", *, session: str = SESSION, more: bool = False) -> bytes:
    """As a hub writes it."""
    ours = {"seq": seq, "more": True} if more else {"seq": seq}
    content = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text or str(seq)}}
    params = {"sessionId": session, "update": {**content, "_meta": {"pilothouse": ours}}}
    message = {"jsonrpc": "2.0", "method": "session/update", "params": params}
    return json.dumps(message, separators=(",", ":")).encode()


class Stage:
    """A bridge between an editor and hubs that the test plays."""

    def __init__(self, agent: str | None = "demo") -> None:
        numbers = count(1)
        self.bridge = Bridge(version="0", new_id=lambda: f"own-{next(numbers)}", agent=agent)
        self.ids = count(100)

    def take(self) -> tuple[list[Any], list[Any]]:
        return tuple([json.loads(one) for one in data.splitlines()] for data in self.bridge.take())  # type: ignore[return-value]

    def says(self, *lines: bytes) -> tuple[list[Any], list[Any]]:
        self.bridge.from_editor(lines)
        return self.take()

    def hears(self, *lines: bytes) -> tuple[list[Any], list[Any]]:
        self.bridge.from_hub(lines)
        return self.take()

    def asks(self, method: str, **params: Any) -> int:
        """A request of the editor that goes to the hub."""
        number = next(self.ids)
        self.bridge.from_editor([line(id=number, method=method, params=params)])
        return number

    def prompts(self, text: str = "go") -> int:
        return self.asks("session/prompt", sessionId=SESSION, prompt=[{"type": "text", "text": text}])

    def joins(self, status: str = "idle", seq: int = 0) -> list[Any]:
        """A hub is there and takes up the sessions; what it is asked by the bridge, and then by the editor."""
        self.bridge.attach()
        _, up = self.take()
        later: list[Any] = []
        for one in up:
            facts = {"pilothouse": {"seq": seq, "status": status}}
            _, more = self.hears(line(id=one["id"], result={"_meta": facts}))
            later += more
        return [up, later]

    def opens(self) -> None:
        """The editor has a session, and has seen its first update."""
        self.says(line(id=0, method="initialize", params={"protocolVersion": 1, "clientCapabilities": {"x": 1}}))
        self.joins()
        self.asks("session/new", cwd="/", mcpServers=[])
        _, up = self.take()
        self.hears(line(id=up[0]["id"], result={"sessionId": SESSION, "_meta": {"pilothouse": {"seq": 9}}}))
        self.hears(update(3))


def ours(message: Any) -> Any:
    return message["params"]["_meta"]["pilothouse"]


# -- the beginning ------------------------------------------------------------------------------------------------


def test_initialize_is_answered_at_once_and_told_to_the_hub_later() -> None:
    stage = Stage()
    params = {"protocolVersion": 1, "clientCapabilities": {"terminal": True}}
    out, up = stage.says(line(id="a", method="initialize", params=params))
    assert out == [{"jsonrpc": "2.0", "id": "a", "result": offer(version="0", meta={"agent": "demo"})}]
    assert up == []
    assert not stage.bridge.wants_hub
    joining, later = stage.joins()
    assert [(one["method"], one["params"]) for one in joining] == [("initialize", params)]
    assert later == []


def test_what_is_asked_before_there_is_a_hub_waits_and_is_sent_in_order() -> None:
    stage = Stage()
    stage.asks("session/list")
    stage.bridge.from_editor([line(method="_x/y", params={"a": 1})])
    stage.asks("session/new", cwd="/")
    assert stage.take() == ([], [])
    assert stage.bridge.wants_hub
    assert stage.bridge.held_bytes > 0
    joining, later = stage.joins()
    assert [one["method"] for one in joining] == ["initialize"]
    assert [one["method"] for one in later] == ["session/list", "_x/y", "session/new"]
    assert ours(later[2]) == {"agent": "demo"}
    assert stage.bridge.held_bytes == 0


def test_an_agent_that_the_editor_names_is_left_and_other_facts_are_kept() -> None:
    stage = Stage()
    stage.joins()
    meta = {"other": 1, "pilothouse": {"agent": "mine", "more": 2}}
    stage.asks("session/new", cwd="/", _meta=meta)
    assert stage.take()[1][0]["params"]["_meta"] == meta
    stage.asks("session/new", cwd="/", _meta=None)
    assert ours(stage.take()[1][0]) == {"agent": "demo"}


def test_ids_of_the_editor_come_back_as_they_were_whatever_they_are() -> None:
    stage = Stage()
    stage.joins()
    for given in (7, "seven", "7", None, 2**70):
        _, up = stage.says(line(id=given, method="session/list", params={}))
        out, _ = stage.hears(line(id=up[0]["id"], result={"sessions": []}))
        assert out == [{"jsonrpc": "2.0", "id": given, "result": {"sessions": []}}]


def test_lines_that_are_no_messages_are_answered_here() -> None:
    stage = Stage()
    out, up = stage.says(b"{", b"42", b'{"id":{},"method":"x"}', b'{"id":5,"params":1}')
    assert [one["error"]["code"] for one in out] == [-32700, -32600, -32600]
    assert up == []
    assert not stage.bridge.wants_hub


# -- questions ----------------------------------------------------------------------------------------------------


def test_questions_get_ids_of_their_own_and_their_answers_find_back() -> None:
    stage = Stage()
    stage.joins()
    out, _ = stage.hears(line(id=1, method="session/request_permission", params={"a": 1}))
    assert out[0]["params"] == {"a": 1}
    _, up = stage.says(line(id=out[0]["id"], result={"outcome": {}}))
    assert up == [{"jsonrpc": "2.0", "id": 1, "result": {"outcome": {}}}]
    out, _ = stage.hears(line(id="two", method="fs/read_text_file", params={}))
    _, up = stage.says(line(id=out[0]["id"], error={"code": -1, "message": "no", "data": {"b": 2}}))
    assert up == [{"jsonrpc": "2.0", "id": "two", "error": {"code": -1, "message": "no", "data": {"b": 2}}}]


def test_a_question_withdrawn_by_the_hub_is_withdrawn_under_the_id_that_the_editor_knows() -> None:
    stage = Stage()
    stage.joins()
    stage.hears(line(id=8, method="session/request_permission", params={}))
    out, _ = stage.hears(line(id=9, method="session/request_permission", params={}))
    known = out[0]["id"]
    out, _ = stage.hears(line(method="$/cancel_request", params={"requestId": 9}))
    assert [one["params"]["requestId"] for one in out] == [known]
    assert stage.says(line(id=known, result={})) == ([], []), "nobody waits for this any more"


def test_questions_of_a_dead_hub_are_withdrawn_and_never_answered_to_the_next() -> None:
    stage = Stage()
    stage.joins()
    out, _ = stage.hears(line(id=1, method="session/request_permission", params={}))
    old = out[0]["id"]
    stage.bridge.detach()
    out, _ = stage.take()
    assert [(one["method"], one["params"]) for one in out] == [("$/cancel_request", {"requestId": old})]
    stage.joins()
    out, _ = stage.hears(line(id=1, method="session/request_permission", params={}))
    assert out[0]["id"] != old
    assert stage.says(line(id=old, result={"late": True})) == ([], [])


# -- the hub dies -------------------------------------------------------------------------------------------------


def test_sessions_are_taken_up_after_the_last_update_that_was_passed_on() -> None:
    stage = Stage()
    stage.opens()
    stage.hears(update(10), update(11))
    prompt = stage.prompts()
    sent = stage.take()[1][0]
    stage.hears(update(14))
    stage.bridge.detach()
    assert stage.take() == ([], [])
    (first, resume), again = stage.joins(seq=20)
    assert first["params"]["clientCapabilities"] == {"x": 1}
    assert resume["method"] == "session/resume"
    assert ours(resume) == {"after": 14, "own": ["own-1"]}
    assert [(one["method"], one["params"]) for one in again] == [(sent["method"], sent["params"])]
    assert ours(again[0]) == {"clientRequestId": "own-1"}
    out, _ = stage.hears(line(id=again[0]["id"], error={"code": -32603, "message": "interrupted"}))
    assert [(one["id"], one["error"]["message"]) for one in out] == [(prompt, "interrupted")]
    assert not stage.bridge.wants_hub


def test_a_session_whose_first_updates_were_not_passed_on_is_taken_up_from_its_beginning() -> None:
    stage = Stage()
    stage.joins()
    stage.asks("session/new", cwd="/")
    stage.hears(line(id=stage.take()[1][0]["id"], result={"sessionId": SESSION, "_meta": {"pilothouse": {"seq": 9}}}))
    stage.bridge.detach()
    assert ours(stage.joins()[0][1]) == {"after": 0, "own": []}


def test_a_session_is_taken_up_with_what_it_was_opened_with() -> None:
    stage = Stage()
    stage.joins()
    given = {"cwd": "/x", "mcpServers": [{"name": "s"}], "additionalDirectories": ["/y"]}
    stage.asks("session/new", **given, _meta={"other": 1})
    stage.hears(line(id=stage.take()[1][0]["id"], result={"sessionId": SESSION}))
    stage.asks("session/load", sessionId="ses_2", cwd="/z", mcpServers=[{"name": "t"}])
    stage.hears(line(id=stage.take()[1][0]["id"], result={}))
    stage.bridge.detach()
    one, two = stage.joins()[0][1:]
    ours = {"after": 0, "own": []}
    assert one["params"] == {**given, "sessionId": SESSION, "_meta": {"other": 1, "pilothouse": ours}}
    assert two["params"] == {
        "cwd": "/z",
        "mcpServers": [{"name": "t"}],
        "sessionId": "ses_2",
        "_meta": {"pilothouse": ours},
    }


def test_a_fork_is_followed_like_any_other_session_and_made_only_once() -> None:
    stage = Stage()
    stage.joins()
    stage.asks("session/fork", sessionId="ses_0", cwd="/")
    stage.hears(line(id=stage.take()[1][0]["id"], result={"sessionId": SESSION}))
    number = stage.asks("session/fork", sessionId="ses_0", cwd="/")
    stage.take()
    stage.bridge.detach()
    out, _ = stage.take()
    assert [(one["id"], one["error"]["code"]) for one in out] == [(number, -32603)]
    joining, again = stage.joins()
    assert [one["params"].get("sessionId") for one in joining] == [None, SESSION]
    assert again == []


def test_what_the_answer_to_a_prompt_says_was_sent_counts_as_seen() -> None:
    stage = Stage()
    stage.opens()
    stage.prompts()
    facts = {"_meta": {"pilothouse": {"seq": 30}}}
    stage.hears(line(id=stage.take()[1][0]["id"], result={"stopReason": "end_turn", **facts}))
    stage.prompts()
    stage.hears(line(id=stage.take()[1][0]["id"], error={"code": 1, "message": "", "data": {"seq": 35}}))
    stage.bridge.detach()
    assert ours(stage.joins()[0][1]) == {"after": 35, "own": []}


def test_requests_of_the_protocol_are_sent_again_and_those_of_others_answered_with_the_truth() -> None:
    stage = Stage()
    stage.joins()
    stage.asks("session/list")
    extension = stage.asks("_vendor/do", sessionId=SESSION)
    stage.take()
    stage.bridge.detach()
    out, _ = stage.take()
    assert [(one["id"], one["error"]["code"]) for one in out] == [(extension, -32603)]
    assert "not known" in out[0]["error"]["message"]
    assert [one["method"] for one in stage.joins()[1]] == ["session/list"]


def test_a_session_deleted_by_the_hub_that_died_over_it_is_deleted() -> None:
    stage = Stage()
    stage.opens()
    number = stage.asks("session/delete", sessionId=SESSION)
    stage.take()
    stage.bridge.detach()
    _, again = stage.joins()
    out, _ = stage.hears(line(id=again[0]["id"], error={"code": -32002, "message": "Resource not found"}))
    assert out == [{"jsonrpc": "2.0", "id": number, "result": {}}]
    stage.bridge.detach()
    assert len(stage.joins()[0]) == 1


def test_a_load_that_was_cut_goes_on_where_it_was_cut() -> None:
    stage = Stage()
    stage.joins()
    number = stage.asks("session/load", sessionId=SESSION, cwd="/", mcpServers=[])
    stage.take()
    stage.hears(update(1), update(2))
    stage.bridge.detach()
    joining, again = stage.joins()
    assert [one["method"] for one in joining] == ["initialize"]
    assert again[0]["method"] == "session/resume"
    assert ours(again[0])["after"] == 2
    out, _ = stage.hears(update(3), line(id=again[0]["id"], result={"_meta": {"pilothouse": {"seq": 3}}}))
    assert out[-1]["id"] == number
    stage.bridge.detach()
    assert ours(stage.joins()[0][1])["after"] == 3


def test_a_load_of_an_open_session_that_was_cut_before_it_went_back_begins_again() -> None:
    stage = Stage()
    stage.opens()
    stage.asks("session/load", sessionId=SESSION, cwd="/", mcpServers=[])
    stage.take()
    stage.hears(update(10))  # still of the time before
    stage.bridge.detach()
    assert ours(stage.joins()[1][0])["after"] == 0
    stage.hears(update(1), update(2))
    stage.bridge.detach()
    assert ours(stage.joins()[1][0])["after"] == 2


def test_a_session_resumed_from_now_on_is_not_told_from_its_beginning_after_a_loss() -> None:
    stage = Stage()
    stage.joins()
    stage.asks("session/resume", sessionId=SESSION, cwd="/")
    stage.take()
    stage.bridge.detach()
    assert "after" not in ours(stage.joins()[1][0])


def test_a_session_that_is_gone_when_it_is_to_be_taken_up_is_let_go() -> None:
    stage = Stage()
    stage.opens()
    stage.bridge.detach()
    stage.bridge.attach()
    first, resume = stage.take()[1]
    stage.hears(line(id=first["id"], result={}))
    stage.hears(line(id=resume["id"], error={"code": -32002, "message": "Resource not found"}))
    stage.bridge.detach()
    assert len(stage.joins()[0]) == 1


def test_a_log_that_ends_before_what_was_seen_is_followed_from_where_it_ends() -> None:
    stage = Stage()
    stage.opens()
    stage.bridge.detach()
    stage.bridge.attach()
    first, resume = stage.take()[1]
    stage.hears(line(id=first["id"], result={}))
    _, up = stage.hears(line(id=resume["id"], error={"code": -32602, "message": "Invalid params"}))
    assert up[0]["method"] == "session/resume"
    assert ours(up[0]) == {"own": []}


def test_nothing_new_is_sent_before_all_sessions_are_taken_up() -> None:
    stage = Stage()
    stage.opens()
    stage.bridge.detach()
    stage.bridge.attach()
    first, resume = stage.take()[1]
    stage.prompts()
    assert stage.take() == ([], [])
    assert stage.hears(line(id=first["id"], result={})) == ([], [])
    out, up = stage.hears(update(12), line(id=resume["id"], result={"_meta": {"pilothouse": {"seq": 12}}}))
    assert len(out) == 1
    assert [one["method"] for one in up] == ["session/prompt"]


def test_a_request_over_which_hubs_die_is_not_asked_for_ever() -> None:
    stage = Stage()
    number = stage.asks("session/list")
    for _ in range(DEATHS):
        assert [one["method"] for one in stage.joins()[1]] == ["session/list"]
        stage.bridge.detach(early=True)
    out, _ = stage.take()
    assert [(one["id"], one["error"]["code"]) for one in out] == [(number, -32603)]
    assert not stage.bridge.wants_hub


def test_when_no_hub_can_be_had_everybody_is_told_and_own_words_stay_own() -> None:
    stage = Stage()
    stage.opens()
    running = stage.prompts()
    stage.take()
    stage.bridge.detach()
    waiting = stage.asks("session/list")
    stage.bridge.fail(RequestError(-32603, "no hub", {"log": "because"}))
    out, up = stage.take()
    assert [(one["id"], one["error"]["message"], one["error"]["data"]) for one in out] == [
        (running, "no hub", {"log": "because"}),
        (waiting, "no hub", {"log": "because"}),
    ]
    assert up == []
    assert not stage.bridge.wants_hub
    assert ours(stage.joins()[0][1]) == {"after": 3, "own": ["own-1"]}
    stage.bridge.detach()
    assert ours(stage.joins()[0][1]) == {"after": 3, "own": []}


# -- updates ------------------------------------------------------------------------------------------------------


def test_updates_pass_byte_for_byte_and_in_order_with_the_rest() -> None:
    stage = Stage()
    stage.opens()
    odd = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"unheard_of","update":{"x":"\xff"}}}'
    notification = b'{"jsonrpc":"2.0", "method":"_vendor/told","params":{}}'
    lines = [update(4), odd, notification, update(5)]
    stage.bridge.from_hub(lines)
    assert stage.bridge.take() == (b"\n".join(lines) + b"\n", b"")


def test_an_event_cut_between_its_updates_is_gone_on_with_in_the_middle() -> None:
    stage = Stage()
    stage.opens()
    stage.hears(update(4), update(5, "a", more=True), update(5, "b", more=True))
    stage.bridge.detach()
    stage.bridge.attach()
    first, resume = stage.take()[1]
    assert ours(resume)["after"] == 4
    stage.hears(line(id=first["id"], result={}))
    again = [update(5, "a", more=True), update(5, "b", more=True), update(5, "c", more=True)]
    out, _ = stage.hears(*again)
    assert [one["params"]["update"]["content"]["text"] for one in out] == ["c"]
    stage.bridge.detach()  # and once more, a little further on
    stage.bridge.attach()
    first, resume = stage.take()[1]
    assert ours(resume)["after"] == 4
    out, _ = stage.hears(*again, update(5, "d"), update(6))
    assert [one["params"]["update"]["content"]["text"] for one in out] == ["d", "6"]
    stage.bridge.detach()
    assert ours(stage.joins()[0][1])["after"] == 6


def test_the_seq_of_an_update_with_an_agents_own_meta_is_found() -> None:
    stage = Stage()
    stage.opens()
    message = json.loads(update(8))
    message["params"]["update"]["_meta"]["mine"] = {"seq": 99}
    message["params"]["update"]["rawOutput"] = {"_meta": {"pilothouse": {"seq": 77}}}
    stage.hears(json.dumps(message, separators=(",", ":")).encode())
    stage.bridge.detach()
    assert ours(stage.joins()[0][1])["after"] == 8


def test_what_an_agent_announces_by_a_name_of_its_own_counts_as_seen() -> None:
    stage = Stage()
    stage.opens()
    params = {"sessionId": SESSION, "_meta": {"pilothouse": {"seq": 12}}}
    out, _ = stage.hears(line(method="_vendor/told", params=params))
    assert [one["params"] for one in out] == [params]
    stage.bridge.detach()
    assert ours(stage.joins()[0][1])["after"] == 12


def test_of_a_very_long_last_update_only_its_seq_is_kept() -> None:
    stage = Stage()
    stage.opens()
    stage.hears(update(8, "x" * 1_000_000))
    stage.bridge.detach()
    assert ours(stage.joins()[0][1])["after"] == 8


# -- cancelling ---------------------------------------------------------------------------------------------------


def test_cancelling_a_request_names_it_as_the_hub_knows_it() -> None:
    stage = Stage()
    stage.joins()
    number = stage.asks("session/list")
    known = stage.take()[1][0]["id"]
    assert known != number
    _, up = stage.says(line(method="$/cancel_request", params={"requestId": number}))
    assert [one["params"]["requestId"] for one in up] == [known]


def test_a_request_cancelled_before_it_left_never_leaves() -> None:
    stage = Stage()
    number = stage.asks("session/list")
    out, _ = stage.says(line(method="$/cancel_request", params={"requestId": number}))
    assert [(one["id"], one["error"]["code"]) for one in out] == [(number, -32800)]
    assert stage.joins()[1] == []


def test_a_prompt_cancelled_before_it_left_never_runs() -> None:
    stage = Stage()
    number = stage.prompts()
    out, _ = stage.says(line(method="session/cancel", params={"sessionId": SESSION}))
    assert out == [{"jsonrpc": "2.0", "id": number, "result": {"stopReason": "cancelled"}}]
    assert stage.joins()[1] == []


def test_a_prompt_whose_cancel_died_with_the_hub_does_not_run_again() -> None:
    stage = Stage()
    stage.opens()
    number = stage.prompts()
    stage.says(line(method="session/cancel", params={"sessionId": SESSION}))
    stage.bridge.detach()
    stage.bridge.attach()
    first, resume = stage.take()[1]
    stage.hears(line(id=first["id"], result={}))
    facts = {"pilothouse": {"seq": 12, "status": "idle"}}
    out, up = stage.hears(update(12), line(id=resume["id"], result={"_meta": facts}))
    assert out[-1] == {"jsonrpc": "2.0", "id": number, "result": {"stopReason": "cancelled"}}
    assert up == []


def test_a_cancel_reaches_a_hub_that_only_let_go_of_the_connection() -> None:
    stage = Stage()
    stage.opens()
    stage.prompts()
    stage.take()
    stage.bridge.detach()
    stage.says(line(method="session/cancel", params={"sessionId": SESSION}))
    assert [one["method"] for one in stage.joins(status="running")[1]] == ["session/prompt", "session/cancel"]


def test_a_cancel_of_nothing_is_no_reason_for_a_hub_and_is_not_kept_for_the_next() -> None:
    stage = Stage()
    stage.opens()
    stage.bridge.detach()
    stage.says(line(method="session/cancel", params={"sessionId": SESSION}))
    assert not stage.bridge.wants_hub
    assert stage.bridge.held_bytes > 0
    stage.bridge.nobody()
    assert stage.bridge.held_bytes == 0
    stage.prompts()
    assert [one["method"] for one in stage.joins()[1]] == ["session/prompt"]


def test_a_cancel_of_somebody_elses_turn_waits_for_a_hub_that_is_still_there() -> None:
    stage = Stage()
    stage.opens()
    stage.bridge.detach()
    stage.says(line(method="session/cancel", params={"sessionId": SESSION}))
    assert [one["method"] for one in stage.joins(status="running")[1]] == ["session/cancel"]
    assert stage.bridge.held_bytes == 0


def test_what_was_cancelled_while_it_waited_makes_room_again() -> None:
    stage = Stage()
    number = stage.asks("session/list", filler="x" * 1000)
    stage.prompts("y" * 1000)
    assert stage.bridge.held_bytes > 2000
    stage.says(line(method="$/cancel_request", params={"requestId": number}))
    stage.says(line(method="session/cancel", params={"sessionId": SESSION}))
    assert stage.bridge.held_bytes == 0


def test_terminals_of_a_dead_hub_end_and_the_next_one_hears_nothing_of_it() -> None:
    stage = Stage()
    stage.opens()
    create = {"sessionId": SESSION, "command": "make"}
    asked = stage.hears(line(id=5, method="terminal/create", params=create))[0][0]
    stage.says(line(id=asked["id"], result={"terminalId": "t1"}))
    stage.bridge.detach()
    out, up = stage.take()
    assert [(one["method"], one["params"]["terminalId"]) for one in out] == [("terminal/release", "t1")]
    assert up == []
    stage.joins()
    assert stage.says(line(id=out[0]["id"], result={})) == ([], [])


def test_an_editor_that_hubs_turn_away_is_told_why() -> None:
    stage = Stage()
    number = stage.asks("session/list")
    told: list[Any] = []
    for _ in range(DEATHS):
        stage.bridge.attach()
        stage.hears(line(id=None, error={"code": -32603, "message": "too many open streams"}))
        stage.bridge.detach(early=True)
        told += stage.take()[0]
    assert [one["id"] for one in told] == [number]
    assert "too many open streams" in told[0]["error"]["message"]


# -- a hub that ends in order -------------------------------------------------------------------------------------

CLOSING = {"code": -32603, "message": "Try again: the hub is closing", "data": {"closing": True}}


def test_what_a_closing_hub_refuses_is_asked_of_the_next_one() -> None:
    stage = Stage()
    stage.opens()
    for method, params in (("session/prompt", {"sessionId": SESSION, "prompt": []}), ("session/new", {"cwd": "/"})):
        number = stage.asks(method, **params)
        _, up = stage.take()
        out, _ = stage.hears(line(id=up[-1]["id"], error=CLOSING))
        assert out == []
        stage.bridge.detach()
        assert stage.bridge.wants_hub
        _, later = stage.joins()
        assert [one["method"] for one in later] == [method]
        out, _ = stage.hears(line(id=later[0]["id"], result={"stopReason": "end_turn", "sessionId": "ses_2"}))
        assert [one["id"] for one in out] == [number]
        assert not stage.bridge.wants_hub


def test_what_waits_for_the_next_hub_once_more_is_counted_once_more() -> None:
    stage = Stage()
    number = stage.asks("session/list", cursor="x" * 1000)
    held = stage.bridge.held_bytes
    _, later = stage.joins()
    stage.hears(line(id=later[0]["id"], error=CLOSING))
    assert stage.bridge.held_bytes == held > 1000
    stage.says(line(method="$/cancel_request", params={"requestId": number}))
    assert stage.bridge.held_bytes == 0


def test_a_session_that_a_closing_hub_would_not_take_up_is_taken_up_by_the_next_one() -> None:
    stage = Stage()
    stage.opens()
    stage.bridge.detach()
    stage.bridge.attach()
    _, up = stage.take()
    for one in up:
        stage.hears(line(id=one["id"], error=CLOSING))
    stage.bridge.detach()
    up, _ = stage.joins()
    assert [one["method"] for one in up] == ["initialize", "session/resume"]


def test_a_prompt_that_is_cancelled_while_its_hub_closes_does_not_run_later() -> None:
    stage = Stage()
    stage.opens()
    number = stage.prompts()
    _, up = stage.take()
    stage.says(line(method="session/cancel", params={"sessionId": SESSION}))
    out, _ = stage.hears(line(id=up[-1]["id"], error=CLOSING))
    assert out == [{"jsonrpc": "2.0", "id": number, "result": {"stopReason": "cancelled"}}]
    stage.bridge.detach()
    assert not stage.bridge.wants_hub
