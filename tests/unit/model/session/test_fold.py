"""The fold: what events amount to."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.model.errors import ACPError, ValidationError
from pilothouse.model.events import EVENT_TYPES, Event, decode_event, encode_event
from pilothouse.model.records import (
    CommandOutput,
    CommitMade,
    CostBreakdown,
    FileChange,
    ImageContent,
    TextContent,
    Todo,
    TokenUsage,
)
from pilothouse.model.session import Session, Text, ToolCall, dump, fold, load, summary

SECONDS = "2026-01-01T00:00:{:02d}.000Z"


class Script:
    """Writes events as a log would number them."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, kind: str, **fields: Any) -> Script:
        seq = len(self.events) + 1
        head = {"seq": seq, "session_id": "s1", "timestamp": SECONDS.format(min(seq, 59))}
        self.events.append(EVENT_TYPES[kind](**{**head, **fields}))
        return self

    def custom(self, namespace: str, name: str, **data: Any) -> Script:
        return self("custom", namespace=namespace, event_name=name, data=data)

    def begin(self, turn: str = "t1") -> Script:
        return self.custom("pilothouse", "turn_started", turnId=turn)

    def end(self, turn: str = "t1", reason: str = "end_turn", **data: Any) -> Script:
        return self.custom("pilothouse", "turn_ended", turnId=turn, stopReason=reason, **data)

    def tool(self, tool_call_id: str = "c1", name: str = "bash") -> Script:
        return self("tool:start", tool_call_id=tool_call_id, name=name, category="terminal")

    def result(self, tool_call_id: str = "c1", output: str = "done") -> Script:
        return self("tool:result", tool_call_id=tool_call_id, name="bash", output=output, duration=5)

    def ask(self, request_id: str = "a1", tool_call_id: str = "c1") -> Script:
        return self(
            "approval:requested",
            request_id=request_id,
            tool_call_id=tool_call_id,
            tool_name="bash",
            tool_input={"command": "ls"},
            description="Run ls",
            risk_level="medium",
            risk_reasons=["because"],
        )

    def fold(self) -> Session:
        return fold(self.events)


@pytest.fixture
def script() -> Script:
    return Script()


def say(script: Script, text: str, message_id: str = "m1", role: str = "assistant") -> Script:
    for piece in text:
        script("message:delta", message_id=message_id, role=role, delta=piece)
    return script


# -- messages and thoughts -------------------------------------------------------------------------------------------


def test_deltas_become_one_text_block(script: Script) -> None:
    script("message:start", message_id="m1", role="assistant")
    (message,) = say(script, "hello").fold().messages
    assert message.text == "hello"
    assert len(message.content) == 1
    assert not message.done


def test_a_block_that_is_not_text_stands_between_texts(script: Script) -> None:
    say(script, "ab")("message:delta", message_id="m1", role="assistant", delta="", content=ImageContent(url="u"))
    (message,) = say(script, "cd").fold().messages
    assert [getattr(block, "url", None) or str(block.text) for block in message.content] == ["ab", "u", "cd"]


def test_a_complete_message_replaces_what_was_streamed(script: Script) -> None:
    say(script, "hel")
    script("message:complete", message_id="m1", role="assistant", content=[TextContent(text="Hello")], model="x")
    (message,) = script.fold().messages
    assert (message.text, message.done, message.model) == ("Hello", True, "x")


@pytest.mark.parametrize("content", [[], [TextContent(text="")]])
def test_an_empty_complete_message_keeps_what_was_streamed(script: Script, content: list[Any]) -> None:
    say(script, "kept")("message:complete", message_id="m1", role="assistant", content=content)
    (message,) = script.fold().messages
    assert (message.text, message.done) == ("kept", True)


def test_a_message_id_used_again_begins_another_message(script: Script) -> None:
    say(script, "one")("message:complete", message_id="m1", role="assistant", content=[])
    assert [message.text for message in say(script, "two").fold().messages] == ["one", "two"]


def test_the_same_id_in_another_role_is_another_message(script: Script) -> None:
    say(script, "ask", role="user")
    folded = say(script, "answer").fold()
    assert [(message.role, message.text) for message in folded.messages] == [("user", "ask"), ("assistant", "answer")]


def test_a_message_completed_after_its_turn_is_corrected_not_repeated(script: Script) -> None:
    say(script.begin(), "par").end()
    script("message:complete", message_id="m1", role="assistant", content=[TextContent(text="partial no more")])
    assert [message.text for message in script.fold().messages] == ["partial no more"]


def test_messages_without_id_stay_apart_once_complete(script: Script) -> None:
    for text in ("one", "two"):
        script("message:complete", message_id="", role="assistant", content=[TextContent(text=text)])
    assert [message.text for message in script.fold().messages] == ["one", "two"]


def test_a_thought_may_share_its_id_with_a_message(script: Script) -> None:
    script("thinking:delta", message_id="m1", delta="hm")
    folded = say(script, "aha")("thinking:complete", message_id="m1", content="hmm", redacted=True).fold()
    (thought,) = folded.thoughts
    assert (str(thought.text), thought.done, thought.redacted) == ("hmm", True, True)
    assert folded.messages[0].text == "aha"


def test_an_unknown_role_is_kept(script: Script) -> None:
    assert say(script, "x", role="narrator").fold().messages[0].role == "narrator"


# -- tool calls ------------------------------------------------------------------------------------------------------


def test_a_call_goes_from_pending_to_completed(script: Script) -> None:
    script.begin().tool()
    assert script.fold().tool_calls[0].status == "pending"
    script("tool:args_delta", tool_call_id="c1", delta='{"comm')("tool:args_delta", tool_call_id="c1", delta='and":1}')
    executing = {"tool_call_id": "c1", "name": "bash", "risk_level": "low", "requires_approval": False}
    script("tool:executing", **executing, input={"command": "ls"})
    script("tool:executing", **executing, input={"command": "ls -l"})
    assert script.fold().tool_calls[0].status == "executing"
    script("progress:update", label="Listing", tool_call_id="c1", output="a\n", locations=[{"path": "/a"}])
    script("progress:update", label="", tool_call_id="c1", output="b\n", percentage=50.0)
    structured = CommandOutput(exit_code=0, stdout="a\nb\n", stderr="")
    script("tool:result", tool_call_id="c1", name="bash", output="", duration=7, structured=structured)
    (call,) = script.fold().tool_calls
    assert call.status == "completed"
    assert call.input == {"command": "ls -l"}
    assert str(call.args) == '{"command":1}'
    assert str(call.output) == "a\nb\n"
    assert (call.title, call.locations, call.structured) == ("Listing", [{"path": "/a"}], structured)
    assert (call.timestamp, call.executing_at, call.ended_at) == tuple(SECONDS.format(n) for n in (2, 5, 9))
    assert (call.duration, call.unfinished, call.turn_id) == (7, False, "t1")


def test_arguments_and_output_can_be_replaced(script: Script) -> None:
    script.tool()("tool:args_delta", tool_call_id="c1", delta="{}")
    script("tool:args_delta", tool_call_id="c1", delta='{"a":1}', replace=True)
    script("progress:update", label="", tool_call_id="c1", output="old")
    script("progress:update", label="", tool_call_id="c1", output="new", replace=True)
    (call,) = script.fold().tool_calls
    assert (str(call.args), str(call.output)) == ('{"a":1}', "new")


@pytest.mark.parametrize(
    ("kind", "fields", "status"),
    [
        ("tool:args_delta", {"delta": "{"}, "pending"),
        ("progress:update", {"label": "Title"}, "pending"),
        ("tool:executing", {"name": "n", "input": {}, "risk_level": "low", "requires_approval": False}, "executing"),
        ("tool:result", {"name": "n", "output": "o", "duration": 1}, "completed"),
        ("tool:error", {"name": "n", "error": ACPError(code="x", message="x", recoverable=True)}, "failed"),
    ],
)
def test_any_tool_event_makes_an_unknown_call(script: Script, kind: str, fields: dict[str, Any], status: str) -> None:
    (call,) = script(kind, tool_call_id="c9", **fields).fold().tool_calls
    assert (call.tool_call_id, call.status) == ("c9", status)


def test_a_start_after_updates_fills_in_the_same_call(script: Script) -> None:
    (call,) = script("progress:update", label="T", tool_call_id="c1", output="x").tool().fold().tool_calls
    assert (call.name, call.category, call.title, str(call.output)) == ("bash", "terminal", "T", "x")


def test_an_id_used_again_begins_another_call(script: Script) -> None:
    folded = script.tool().result(output="first").tool(name="grep").result(output="second").fold()
    assert [(call.name, str(call.output)) for call in folded.tool_calls] == [("bash", "first"), ("bash", "second")]
    call = folded.tool_call("c1")
    assert call is not None
    assert str(call.output) == "second"


def test_a_cancelled_call_is_not_a_failed_one(script: Script) -> None:
    for number, code in enumerate(["cancelled", "TOOL_CANCELLED", "interrupted"]):
        error = ACPError(code=code, message="x", recoverable=True)
        script("tool:error", tool_call_id=str(number), name="bash", error=error, output="so far")
    folded = script.fold()
    assert [call.status for call in folded.tool_calls] == ["cancelled", "cancelled", "failed"]
    assert {str(call.output) for call in folded.tool_calls} == {"so far"}
    assert summary(folded).error_count == 1


@pytest.mark.parametrize(
    ("reason", "status"), [("cancelled", "cancelled"), ("end_turn", "failed"), ("max_tokens", "failed")]
)
def test_the_end_of_a_turn_ends_its_open_calls(script: Script, reason: str, status: str) -> None:
    folded = script.begin().tool().tool("c2").result("c2").ask().end(reason=reason).fold()
    first, second = folded.tool_calls
    assert (first.status, first.unfinished, first.ended_at) == (status, True, SECONDS.format(6))
    assert (first.error is not None) == (status == "failed")
    assert (second.status, second.unfinished) == ("completed", False)
    assert folded.pending_approvals == []
    assert folded.status == "idle"


def test_a_dead_agent_ends_everything_that_was_open(script: Script) -> None:
    script.begin().tool().ask()("interaction:question", question_id="q", question="?")
    say(script, "half")("subagent:spawned", sub_agent_id="x", parent_tool_call_id="c1", task="look")
    script("session:error", error=ACPError(code="agent_died", message="exit 1", recoverable=False))
    folded = script.fold()
    assert folded.tool_calls[0].status == "failed"
    assert folded.pending_approvals == folded.pending_questions == []
    assert folded.messages[0].done
    assert folded.sub_agents["x"].status == "failed"
    assert folded.turn is not None
    assert not folded.turn.open
    assert folded.status == "error"
    assert script.end(reason="interrupted").fold().turn.stop_reason == "interrupted"  # type: ignore[union-attr]


def test_an_error_that_passes_ends_nothing(script: Script) -> None:
    error = ACPError(code="overloaded", message="again", recoverable=True)
    folded = script.begin().tool()("session:error", error=error)("session:error", error=error).fold()
    assert folded.tool_calls[0].status == "pending"
    assert folded.status == "running"
    assert [item.count for item in folded.items if item.__struct_config__.tag == "error"] == [2]  # type: ignore[union-attr]
    assert summary(folded).error_count == 2


def test_a_turn_that_begins_ends_the_one_whose_end_never_came(script: Script) -> None:
    folded = script.begin("t1").tool().begin("t2").fold()
    assert folded.tool_calls[0].status == "failed"
    assert folded.turn is not None
    assert (folded.turn.turn_id, folded.turns) == ("t2", 2)


def test_the_late_end_of_an_earlier_turn_changes_nothing(script: Script) -> None:
    folded = script.begin("t1").end("t1").begin("t2").tool().end("t1").fold()
    assert folded.status == "running"
    assert folded.tool_calls[0].status == "pending"


def test_a_result_after_the_turn_corrects_the_call(script: Script) -> None:
    (call,) = script.begin().tool().end().result(output="after all").fold().tool_calls
    assert (call.status, call.unfinished, call.error, str(call.output)) == ("completed", False, None, "after all")
    assert script.fold().status == "idle"


def test_other_late_events_do_not_reopen_a_call(script: Script) -> None:
    script.begin().tool().end()("progress:update", label="", tool_call_id="c1", output="late")
    script("tool:executing", tool_call_id="c1", name="", input={"a": 1}, risk_level="low", requires_approval=False)
    (call,) = script.fold().tool_calls
    assert (call.status, str(call.output), call.input) == ("failed", "late", {"a": 1})
    assert script.fold().status == "idle"


def test_an_id_of_an_unfinished_call_used_in_the_next_turn_is_another_call(script: Script) -> None:
    folded = script.begin().tool().end().begin("t2").tool().result().end("t2").fold()
    assert [(call.status, call.turn_id) for call in folded.tool_calls] == [("failed", "t1"), ("completed", "t2")]


def test_the_end_of_the_session_ends_its_calls(script: Script) -> None:
    folded = script.begin().tool()("session:completed", summary=summary(Session())).fold()
    assert (folded.tool_calls[0].status, folded.status) == ("failed", "completed")


# -- approvals and questions -----------------------------------------------------------------------------------------


def test_an_approval_waits_and_is_resolved_once(script: Script) -> None:
    script.begin().tool().ask().ask("a2")
    folded = script.fold()
    assert folded.status == "waiting_for_approval"
    assert [approval.request_id for approval in folded.pending_approvals] == ["a1", "a2"]
    call = folded.tool_calls[0]
    assert (call.approval_ids, call.risk_level, call.risk_reasons) == (["a1", "a2"], "medium", ["because"])
    script("approval:resolved", request_id="a1", tool_call_id="c1", approved=True, resolved_by="user", option_id="o")
    assert script.fold().status == "waiting_for_approval"
    script("approval:resolved", request_id="a1", tool_call_id="c1", approved=False, resolved_by="timeout")
    script("approval:resolved", request_id="a2", tool_call_id="c1", approved=False, resolved_by="policy", reason="no")
    folded = script.fold()
    outcomes = [(a.approved, a.resolved_by, a.option_id, a.reason) for a in folded.index.approvals.values()]
    assert outcomes == [(True, "user", "o", None), (False, "policy", None, "no")]
    assert folded.status == "running"


def test_a_call_announced_after_its_approval_is_linked_to_it(script: Script) -> None:
    assert script.begin().ask().tool().fold().tool_calls[0].approval_ids == ["a1"]


def test_a_decision_without_a_request_is_kept(script: Script) -> None:
    script("approval:resolved", request_id="a9", tool_call_id="c1", approved=True, resolved_by="policy")
    folded = script.fold()
    assert folded.index.approvals["a9"].approved is True
    assert folded.pending_approvals == []


def test_a_real_decision_replaces_the_one_that_the_end_of_the_turn_made(script: Script) -> None:
    script.begin().tool().ask().end()
    assert script.fold().index.approvals["a1"].resolved_by == "cancelled"
    script("approval:resolved", request_id="a1", tool_call_id="c1", approved=False, resolved_by="timeout")
    assert script.fold().index.approvals["a1"].resolved_by == "timeout"


def test_a_question_waits_for_its_answer(script: Script) -> None:
    script.begin()("interaction:question", question_id="q1", question="Which?", options=["a", "b"], multi_select=True)
    assert script.fold().status == "waiting_for_input"
    script.custom("pilothouse", "question_answered", questionId="q1", outcome="accepted", answer=["a"])
    script.custom("pilothouse", "question_answered", questionId="q1", outcome="declined")
    folded = script.fold()
    question = folded.index.questions["q1"]
    assert (question.outcome, question.answer, question.multi_select) == ("accepted", ["a"], True)
    assert folded.status == "running"


# -- files, plans, resources -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (["created"], "created"),
        (["created", "modified"], "created"),
        (["modified", "modified"], "modified"),
        (["modified", "created"], "modified"),
        (["modified", "deleted"], "deleted"),
        (["deleted", "created"], "modified"),
        (["created", "deleted"], None),
        (["created", "deleted", "created"], "created"),
    ],
)
def test_changes_of_a_file_are_merged(script: Script, changes: list[Any], expected: str | None) -> None:
    for change in changes:
        script("file:change", path="/a", change_type=change, lines_added=2, lines_removed=1)
    files = script.fold().files
    assert (files["/a"].change_type if "/a" in files else None) == expected


def test_lines_are_summed_and_counted_in_the_diff_where_nobody_told(script: Script) -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n kept\n--- gone\n-bye\n+++ come\n+hi\n"
    script.tool()("file:change", path="/x", change_type="modified", diff=diff, tool_call_id="c1")
    batch = [
        FileChange(path="/x", change_type="modified", lines_added=3, lines_removed=0),
        FileChange(path="/y", change_type="created", diff="+a\n+b\n", lines_removed=-4),
    ]
    folded = script("file:batch", changes=batch, tool_call_id="c1").fold()
    files = {file.path: (file.lines_added, file.lines_removed) for file in summary(folded).files_changed}
    assert files == {"/x": (5, 2), "/y": (2, 0)}
    assert [file.path for file in folded.tool_calls[0].files] == ["/x", "/x", "/y"]


def test_a_turn_has_one_plan_that_is_updated_in_place(script: Script) -> None:
    todo = Todo(content="a", status="pending")
    done = Todo(content="a", status="completed")
    script.begin()("progress:todo_update", todos=[todo])("progress:todo_update", todos=[done])
    script("progress:plan_mode", active=True, plan="# Plan", mode_id="plan").end()
    folded = script.begin("t2")("progress:todo_update", todos=[todo]).fold()
    plans = [item for item in folded.items if item.__struct_config__.tag == "plan"]
    assert [(plan.turn_id, plan.todos, plan.text) for plan in plans] == [  # type: ignore[union-attr]
        ("t1", [done], "# Plan"),
        ("t2", [todo], None),
    ]
    assert (folded.todos, folded.plan_mode, folded.mode) == ([todo], True, "plan")


def test_a_plan_told_again_in_another_turn_is_that_turns_plan_too(script: Script) -> None:
    todos = [Todo(content="a", status="pending", priority="medium")]
    script.begin("t1")("progress:todo_update", todos=todos).end("t1").begin("t2")
    script.custom("acp", "plan", entries=[{"content": "a", "status": "pending", "priority": "medium"}])
    folded = script.fold()
    assert [(item.turn_id, item.todos) for item in folded.items] == [("t1", todos), ("t2", todos)]  # type: ignore[union-attr]


def test_resources_are_the_last_ones_told(script: Script) -> None:
    for total in (10, 30):
        usage = TokenUsage(input_tokens=total, output_tokens=1)
        script("resource:token_usage", delta=usage, cumulative=usage)
        cost = CostBreakdown(total=total / 100, currency="USD")
        script("resource:cost", delta=cost, cumulative=cost)
    script("resource:context_window", used=5, limit=10, percentage=50.0)
    script("resource:rate_limit", retry_after=3.0, limit="hour")
    folded = script.begin().end(usage={"inputTokens": 1, "outputTokens": 2, "cachedReadTokens": 3}).fold()
    assert folded.usage == TokenUsage(input_tokens=30, output_tokens=1)
    assert folded.cost is not None
    assert folded.cost.total == 0.3
    assert folded.context_window is not None
    assert folded.context_window.used == 5
    assert folded.rate_limit is not None
    assert folded.rate_limit.limit == "hour"
    assert folded.turn is not None
    assert folded.turn.usage == TokenUsage(input_tokens=1, output_tokens=2, cache_read_tokens=3)


def test_a_sub_agent_is_linked_to_its_call(script: Script) -> None:
    script.begin().tool()("subagent:spawned", sub_agent_id="x", parent_tool_call_id="c1", task="look")
    script("subagent:progress", sub_agent_id="x", message="found", progress=40.0)
    assert script.fold().sub_agents["x"].status == "running"
    script("subagent:completed", sub_agent_id="x", parent_tool_call_id="c1", result="all of it")
    folded = script.fold()
    agent = folded.sub_agents["x"]
    assert (agent.status, agent.result, agent.message, agent.progress) == ("completed", "all of it", "found", 40.0)
    assert folded.tool_calls[0].sub_agent_id == "x"


def test_operations_belong_to_their_call_or_stand_alone(script: Script) -> None:
    commit = CommitMade(message="m", hash="h", files_changed=1)
    folded = script.tool()("git:operation", operation=commit, tool_call_id="c1")(
        "git:operation", operation=commit
    ).fold()
    assert folded.tool_calls[0].git == [commit]
    assert folded.items[-1].data == {"kind": "commit", "message": "m", "hash": "h", "filesChanged": 1}  # type: ignore[union-attr]


# -- the session itself ------------------------------------------------------------------------------------------------


def test_updates_of_acp_that_have_no_type_are_folded(script: Script) -> None:
    script("session:started", agent="demo", project_path="/p", working_directory="/p/w", model="m0")
    commands = [{"name": "plan", "description": ""}]
    options = [{"id": "model", "currentValue": "m1"}, {"id": "x", "category": "mode", "currentValue": "code"}, 7]
    script.custom("acp", "available_commands_update", availableCommands=commands)
    script.custom("acp", "config_option_update", configOptions=options)
    script.custom("acp", "session_info_update", title="A title")
    folded = script.fold()
    assert (folded.agent, folded.working_directory, folded.title) == ("demo", "/p/w", "A title")
    assert (folded.model, folded.mode) == ("m1", "code")
    assert (folded.available_commands, folded.config_options) == (commands, options)
    folded = script.custom("acp", "current_mode_update", currentModeId="ask").fold()
    assert folded.mode == "ask"
    assert folded.items == []
    assert script.custom("acp", "session_info_update", title=None).fold().title is None


def test_what_the_agent_offers_at_the_start_is_folded(script: Script) -> None:
    modes = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}]}
    models = {"currentModelId": "big", "availableModels": [{"modelId": "big", "name": "Big"}]}
    folded = script.custom("acp", "session_setup", modes=modes, models=models, configOptions=[]).fold()
    assert (folded.mode, folded.model) == ("ask", "big")
    assert (folded.modes, folded.models) == (modes["availableModes"], models["availableModels"])
    assert script.custom("acp", "session_setup", modes=[1], models={"availableModels": 3}).fold().mode == "ask"


def test_a_compaction_is_one_item(script: Script) -> None:
    script.custom("acp", "compaction_update", compactionId="k", status="in_progress")
    for text in ("short", "er"):
        script.custom("acp", "compaction_summary_chunk", compactionId="k", content={"type": "text", "text": text})
    script.custom("acp", "compaction_update", compactionId="k", status="completed")
    (item,) = script.fold().items
    assert (item.status, str(item.summary)) == ("completed", "shorter")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "data", [{}, {"availableCommands": 5, "configOptions": None, "currentModeId": [], "turnId": {}}]
)
@pytest.mark.parametrize(
    "name",
    ["available_commands_update", "config_option_update", "current_mode_update", "plan", "plan_update", "tomorrow"],
)
def test_a_custom_event_of_another_shape_is_kept_as_it_came(script: Script, name: str, data: dict[str, Any]) -> None:
    (item,) = script.custom("acp", name, **data).fold().items
    assert (item.event_name, item.data) == (name, data)  # type: ignore[union-attr]


def test_artifacts_are_items(script: Script) -> None:
    script.custom("pilothouse", "artifact_created", artifact={"name": "x.png"})
    assert [item.artifact for item in script.fold().artifacts] == [{"name": "x.png"}]


def test_notifications_are_bounded_and_what_is_dropped_is_counted(script: Script) -> None:
    script.tool()
    for number in range(1500):
        script("interaction:notification", level="info", title=str(number), message="")
    folded = script.fold()
    told = [item.title for item in folded.items if item.__struct_config__.tag == "notification"]  # type: ignore[union-attr]
    assert len(told) <= 1000
    assert told[-1] == "1499"
    assert len(told) + folded.chatter_dropped == 1500
    assert isinstance(folded.items[0], ToolCall)


def test_the_same_notification_again_is_counted_not_repeated(script: Script) -> None:
    for _ in range(3):
        script("interaction:notification", level="info", title="t", message="m")
    (item,) = script.fold().items
    assert item.count == 3  # type: ignore[union-attr]


def test_an_event_that_was_applied_is_passed_over(script: Script) -> None:
    say(script, "abc")
    folded = fold([*script.events, *script.events[1:]])
    assert (folded.messages[0].text, folded.seq) == ("abc", 3)


def test_events_without_a_number_always_count(script: Script) -> None:
    for _ in range(2):
        script("message:delta", seq=0, message_id="m", role="assistant", delta="x")
    folded = script.fold()
    assert (folded.messages[0].text, folded.seq) == ("xx", 0)


def test_the_summary_is_counted_from_what_happened(script: Script) -> None:
    say(script, "q", "u", role="user").begin().tool().result().tool("c2").end()
    say(script, "note", "x", role="system")
    counted = summary(say(script, "a").fold())
    assert (counted.messages_count, counted.tool_calls_count, counted.error_count) == (2, 2, 1)
    assert counted.duration == (len(script.events) - 1) * 1000


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01.5+00:00", 1500),
        ("2026-01-01T00:00:00", "2026-01-01T01:00:00+01:00", 0),
        ("2026-01-01T00:00:01Z", "2026-01-01T00:00:00Z", 0),
        ("yesterday", "2026-01-01T00:00:00Z", 0),
        ("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", 0),
    ],
)
def test_the_duration_survives_junk(script: Script, first: str, last: str, expected: int) -> None:
    for timestamp in (first, last):
        script("session:paused", timestamp=timestamp)
    duration = summary(script.fold()).duration
    assert duration == expected or (first.startswith("0001") and duration > 0)


def test_a_snapshot_has_wire_names_and_does_not_change_later(script: Script) -> None:
    session = say(script.begin().tool().ask(), "hi").fold()
    before = session.snapshot()
    assert (before["id"], before["seq"], before["status"]) == ("s1", 5, "waiting_for_approval")
    assert before["items"][0] == {
        "type": "tool_call", "seq": 2, "timestamp": SECONDS.format(2), "turnId": "t1", "toolCallId": "c1",
        "name": "bash", "category": "terminal", "status": "pending", "output": "", "riskLevel": "medium",
        "riskReasons": ["because"], "approvalIds": ["a1"],
    }  # fmt: skip
    assert [approval["requestId"] for approval in before["pendingApprovals"]] == ["a1"]
    assert before["summary"]["toolCallsCount"] == 1
    session.apply(script.result().events[-1])
    assert before["items"][0]["status"] == "pending"
    small = session.snapshot(items=False)
    assert "items" not in small
    assert small["itemsCount"] == 3


def test_text_half_a_surrogate_can_be_stored(script: Script) -> None:
    session = say(script, "a\ud83d").fold()
    assert load(dump(session)).messages[0].text == "a\ufffd"


@pytest.mark.parametrize(
    "data", [b"", b"[]", b'{"items":[{"type":"nothing"}]}', b"\xff", b'{"seq":"x"}', b"[" * 100_000]
)
def test_what_is_no_stored_session_is_refused(data: bytes) -> None:
    with pytest.raises(ValidationError):
        load(data)


def test_text_reads_like_its_pieces_joined() -> None:
    text = Text("a")
    text.append("b")
    text.append("")
    assert (str(text), bool(text), bool(Text())) == ("ab", True, False)
    assert text == Text("ab")
    assert text != Text("a")
    text.replace("c")
    assert str(text) == "c"


def test_events_read_from_the_wire_fold_the_same(script: Script) -> None:
    say(script.begin().tool().ask(), "hi").end()
    assert fold(decode_event(encode_event(event)) for event in script.events) == script.fold()
