"""The built-in agent's turns: what the model says is told, remembered and can be ended at any point."""

from __future__ import annotations

import asyncio
import base64
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import BinaryContent, ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart
from pydantic_ai.exceptions import (
    ContentFilterError,
    IncompleteToolCall,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelOverloadedError,
    ModelRateLimitError,
    UsageLimitExceeded,
)

from pilothouse.acp import (
    ClientCapabilities,
    ClientSessionCapabilities,
    CompactionCapabilities,
    NoticeCapabilities,
    RequestError,
    embedded_blob_resource,
    embedded_text_resource,
    image_block,
    resource_block,
    resource_link_block,
)
from pilothouse.agents.coder import worker as patience
from pilothouse.agents.coder.host import Options
from tests.support.coders import MODEL, PATIENCE, Answer, Call, Client, Script, coder, prompts, results

TELLING = ClientCapabilities(
    session=ClientSessionCapabilities(notices=NoticeCapabilities(), compaction=CompactionCapabilities())
)


def http_error(
    category: Any, status: int, model: str = "lab", body: Any = None, headers: dict[str, str] | None = None
) -> ModelHTTPError:
    return ModelHTTPError.for_category(category, status_code=status, model_name=model, body=body, headers=headers)


def is_whole(messages: list[Any]) -> bool:
    """Whether every call has its result right behind it, as providers demand."""
    for at, message in enumerate(messages):
        calls = {part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)}
        if isinstance(message, ModelResponse) and calls:
            following = messages[at + 1] if at + 1 < len(messages) else None
            parts = following.parts if isinstance(following, ModelRequest) else ()
            if calls != {part.tool_call_id for part in parts if isinstance(part, ToolReturnPart)}:
                return False
    return True


# -- telling --


async def test_text_and_thinking_are_streamed(tmp_path: Path) -> None:
    script = Script([Answer("This comes in pieces", thinking="Let me see.")])
    async with coder(script, tmp_path) as client:
        answer = await client.say("Hello")
    assert (answer.stop_reason, client.text, client.thoughts) == ("end_turn", "This comes in pieces ", "Let me see.")
    pieces = client.of("agent_message_chunk")
    assert len(pieces) == 4
    assert len({piece.message_id for piece in pieces}) == 1
    assert {thought.message_id for thought in client.of("agent_thought_chunk")} != {pieces[0].message_id}


async def test_the_first_piece_is_told_before_the_last_one_is_there(tmp_path: Path) -> None:
    rest = asyncio.Event()
    async with coder(Script([Answer("first last", then=rest)]), tmp_path) as client:
        prompt = client.start("Hello")
        await client.until(lambda: client.text == "first ")
        rest.set()
        await prompt
    assert client.text == "first last "


async def test_usage_is_told_after_each_answer_and_with_the_last(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("some words")
    async with coder(Script([[("read", {"path": "a.txt"})], "Done."], context_window=9000), tmp_path) as client:
        answer = await client.say("Read it")
    told = client.of("usage_update")
    assert [(0 < update.used < 9000, update.size) for update in told] == [(True, 9000)] * 2
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens
    assert answer.usage.total_tokens == sum(update.used for update in told)


async def test_the_session_is_named_after_the_first_prompt(tmp_path: Path) -> None:
    async with coder(Script(["Yes.", "Yes."]), tmp_path) as client:
        await client.say("\n  Fix the build \nplease")
        await client.say("And now this")
        (told,) = client.of("session_info_update")
        listed = await client.agent.list_sessions()
    assert told.title == "Fix the build"
    assert [session.title for session in listed.sessions] == ["Fix the build"]


async def test_images_files_and_links_reach_the_model(tmp_path: Path) -> None:
    script = Script(["I see."])
    data = base64.b64encode(b"\x89PNG").decode()
    async with coder(script, tmp_path) as client:
        await client.say(
            "Look: ",
            image_block(data, "image/png"),
            resource_block(embedded_text_resource("file:///a.py", "x = 1")),
            resource_block(embedded_blob_resource("file:///a.pdf", data, mime_type="application/pdf")),
            resource_link_block("notes", "file:///notes.md", description="what we know"),
        )
    (said,) = prompts(script.heard[0])
    assert said == [
        "Look: ",
        BinaryContent(b"\x89PNG", media_type="image/png"),
        '<file uri="file:///a.py">\nx = 1\n</file>',
        BinaryContent(b"\x89PNG", media_type="application/pdf"),
        "[notes](file:///notes.md) (what we know)",
    ]


async def test_data_that_is_no_base64_is_refused_by_its_place(tmp_path: Path) -> None:
    async with coder(Script(["Yes."]), tmp_path) as client:
        with pytest.raises(RequestError) as caught:
            await client.say("Look: ", image_block("$$$", "image/png"))
        assert caught.value.data["field"] == "prompt[1].data"
        assert (await client.say("Again")).stop_reason == "end_turn"


async def test_what_was_said_is_remembered(tmp_path: Path) -> None:
    script = Script(["I am the agent.", "As I said."])
    async with coder(script, tmp_path) as client:
        await client.say("Who are you?")
        await client.say("Say it again")
    assert prompts(script.heard[-1]) == [["Who are you?"], ["Say it again"]]
    assert "I am the agent." in str(script.heard[-1])


async def test_prompts_that_come_at_once_are_answered_one_after_the_other(tmp_path: Path) -> None:
    script = Script(["one", "two", "three"])
    async with coder(script, tmp_path) as client:
        await asyncio.gather(*(client.say(str(n)) for n in range(3)))
    assert client.text == "one two three "
    assert len(prompts(script.heard[-1])) == 3


async def test_a_call_is_shown_while_the_model_still_writes_it(tmp_path: Path) -> None:
    rest = asyncio.Event()
    script = Script([Answer(calls=[("write", {"path": "a.txt", "content": "x"})], then=rest), "Done."])
    async with coder(script, tmp_path) as client:
        prompt = client.start("go")
        await client.until(lambda: client.calls)
        call = client.call("write")
        assert (call["title"], call["kind"], call["statuses"]) == ("write", "edit", ["pending"])
        assert "raw_input" not in call
        rest.set()
        await prompt
    assert len(client.calls) == 1
    assert (client.call("write")["title"], client.call("write")["status"]) == ("Write a.txt", "completed")
    assert [asked.title for asked, _ in client.asked] == ["Write a.txt"]


async def test_the_projects_own_notes_reach_the_model(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Use tabs.")
    script = Script(["Yes."])
    async with coder(script, tmp_path, options=Options(model=MODEL, instructions="Be brief.")) as client:
        await client.say("go")
    assert "Use tabs." in script.instructions[0]
    assert "Be brief." in script.instructions[0]


@pytest.mark.parametrize(("value", "given"), [("off", False), ("high", "high"), ("default", None)])
async def test_how_hard_the_model_thinks_is_an_option(tmp_path: Path, value: str, given: object) -> None:
    script = Script(["Yes."])
    async with coder(script, tmp_path) as client:
        await client.agent.set_config_option("thinking", client.session, value)
        await client.say("go")
    assert script.thinking == [given]


# -- parallel --


async def test_questions_and_outcomes_of_calls_side_by_side_do_not_mix(tmp_path: Path) -> None:
    names = [f"f{n}.txt" for n in range(6)]
    tasks: list[Call] = [("task", {"description": name, "prompt": name}) for name in names]
    writes: list[Any] = [[("write", {"path": name, "content": name})] for name in names]
    script = Script([tasks, *writes, *["Reported."] * 6, "Done."])
    allowed = set(names[::2])
    pending: dict[str, asyncio.Event] = {name: asyncio.Event() for name in names}

    async with coder(script, tmp_path) as client:

        async def answer(call: Any, options: Any) -> Any:
            name = call.raw_input["path"]
            await pending[name].wait()
            client.choose("allow_once" if name in allowed else "reject_once")
            chosen, client.answer = client.answer(call, options), answer
            return chosen

        client.answer = answer
        prompt = client.start("go")
        await client.until(lambda: len(client.asked) == 6)
        for name in reversed(names):
            pending[name].set()
        await prompt
    assert {path.name for path in tmp_path.iterdir()} == allowed
    outcomes = {call["raw_input"]["path"]: call["status"] for call in client.calls.values() if call["name"] == "write"}
    assert outcomes == {name: "completed" if name in allowed else "failed" for name in names}
    assert len(client.calls) == 12
    told = [text for heard in script.heard[7:13] for text in results(heard)]
    assert len(told) == 6
    assert {text for text in told if "rejected" not in text} == {f"{name} is written." for name in allowed}


async def test_calls_that_change_something_are_made_in_their_order(tmp_path: Path) -> None:
    calls: list[Call] = [
        ("write", {"path": "t.sh", "content": "echo first\n"}),
        ("bash", {"command": "sh t.sh"}),
        ("edit", {"path": "t.sh", "old_string": "first", "new_string": "second"}),
        ("read", {"path": "t.sh"}),
        ("bash", {"command": "sh t.sh"}),
    ]
    script = Script([calls, "Done."])
    async with coder(script, tmp_path) as client:
        answered = asyncio.Event()
        allow = client.answer

        async def hesitating(call: Any, options: Any) -> Any:
            await answered.wait()
            return allow(call, options)

        client.answer = hesitating
        prompt = client.start("go")
        await client.until(lambda: client.asked)
        # all are announced, one is asked about, and what comes after it has not begun
        assert [call["status"] for call in client.calls.values()] == ["pending"] * 5
        assert [asked.title for asked, _ in client.asked] == ["Write t.sh"]
        answered.set()
        await prompt
        assert client.is_settled()
    edited = ["first\n[exit code 0]", "t.sh is written.", "echo second\n", "second\n[exit code 0]"]
    assert results(script.heard[-1]) == ["t.sh is written.", *edited]


async def test_reads_of_one_answer_are_made_side_by_side(tmp_path: Path) -> None:
    names = ["a.txt", "b.txt", "c.txt"]
    for name in names:
        (tmp_path / name).write_text(name)
    script = Script([[("read", {"path": name}) for name in names], "Done."])
    async with coder(script, tmp_path) as client:
        all_of_them = asyncio.Barrier(3)
        at_once = client.read_text_file

        async def together(*args: Any, **kwargs: Any) -> Any:
            await all_of_them.wait()
            return await at_once(*args, **kwargs)

        client.read_text_file = together  # type: ignore[method-assign]
        await client.say("go")
    assert results(script.heard[-1]) == names


# -- cancelling --


async def cancelled(client: Client, prompt: asyncio.Task[Any], script: Script) -> None:
    """The turn ends as cancelled, nothing is left open, and the next prompt works."""
    await client.cancel()
    answer = await prompt
    assert answer.stop_reason == "cancelled"
    assert client.is_settled()
    script.answers = ["Next."]
    assert (await client.say("And now?")).stop_reason == "end_turn"
    assert client.text.endswith("Next. ")
    assert is_whole(script.heard[-1])
    assert prompts(script.heard[-1])[-1] == ["And now?"]


async def test_cancel_as_soon_as_the_prompt_is_sent(tmp_path: Path) -> None:
    script = Script([Answer("never", until=asyncio.Event())])
    async with coder(script, tmp_path) as client:
        prompt = client.start("go")
        await asyncio.sleep(0)  # it is on its way, and nothing has been made of it yet
        await cancelled(client, prompt, script)


async def test_cancel_while_the_model_writes_a_call(tmp_path: Path) -> None:
    call: Call = ("write", {"path": "a.txt", "content": "x"})
    script = Script([Answer(calls=[call], then=asyncio.Event())])
    async with coder(script, tmp_path) as client:
        prompt = client.start("go")
        await client.until(lambda: client.calls)
        await cancelled(client, prompt, script)
    assert client.call("write")["statuses"] == ["pending", "failed"]
    assert list(tmp_path.iterdir()) == []


async def test_cancel_while_the_model_has_not_answered_yet(tmp_path: Path) -> None:
    script = Script([Answer("never", until=asyncio.Event())])
    async with coder(script, tmp_path) as client:
        prompt = client.start("go")
        await asyncio.wait_for(script.asked.wait(), 10)
        await cancelled(client, prompt, script)


async def test_cancel_while_the_model_speaks_keeps_what_it_said(tmp_path: Path) -> None:
    script = Script([Answer("begun never", then=asyncio.Event())])
    async with coder(script, tmp_path) as client:
        prompt = client.start("go")
        await client.until(lambda: client.text == "begun ")
        await cancelled(client, prompt, script)
    assert "begun" in str(script.heard[-1])
    assert "never" not in client.text


@pytest.mark.parametrize("lends", [True, False], ids=["in a terminal", "by itself"])
async def test_cancel_while_a_command_runs_ends_it(tmp_path: Path, lends: bool) -> None:
    script = Script([[("bash", {"command": "echo $$ > pid; exec sleep 600"})]])
    async with coder(script, tmp_path, lends=lends) as client:
        prompt = client.start("go")
        async with asyncio.timeout(10):
            while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
                await asyncio.sleep(0.02)
        await cancelled(client, prompt, script)
        pid = (tmp_path / "pid").read_text().strip()
        assert not Path(f"/proc/{pid}").exists()
        assert len(client.released) == lends


async def test_cancel_while_a_question_is_open(tmp_path: Path) -> None:
    script = Script([[("write", {"path": "a.txt", "content": "x"})]])
    async with coder(script, tmp_path) as client:
        client.answer = lambda call, options: asyncio.Event().wait()
        prompt = client.start("go")
        await client.until(lambda: client.asked)
        await cancelled(client, prompt, script)
    assert list(tmp_path.iterdir()) == []


async def test_an_answer_of_cancelled_ends_the_turn(tmp_path: Path) -> None:
    script = Script([[("write", {"path": "a.txt", "content": "x"})], "never"])
    async with coder(script, tmp_path) as client:
        client.choose(None)
        assert (await client.say("go")).stop_reason == "cancelled"
        assert client.is_settled()
    assert list(tmp_path.iterdir()) == []
    assert client.text == ""


async def test_cancel_while_some_of_several_calls_are_done(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    calls: list[Call] = [
        ("read", {"path": "a.txt"}),
        ("bash", {"command": "sleep 600"}),
        ("write", {"path": "b.txt", "content": "x"}),
    ]
    script = Script([calls])
    async with coder(script, tmp_path) as client:
        prompt = client.start("go")
        await client.until(lambda: "terminal" in client.served)
        await client.until(lambda: [c["status"] for c in client.calls.values() if c["name"] == "read"] == ["completed"])
        await cancelled(client, prompt, script)
        assert [call["status"] for call in client.calls.values()] == ["completed", "failed", "failed"]
    assert len(results(script.heard[-1])) == 3
    assert not (tmp_path / "b.txt").exists()


async def test_cancel_while_a_sub_agent_works(tmp_path: Path) -> None:
    script = Script([[("task", {"description": "Look", "prompt": "Look."})], [("bash", {"command": "sleep 600"})]])
    async with coder(script, tmp_path) as client:
        prompt = client.start("go")
        await client.until(lambda: "terminal" in client.served)
        await cancelled(client, prompt, script)
        assert [call["status"] for call in client.calls.values()] == ["failed", "failed"]


async def test_cancel_while_it_waits_to_try_again(tmp_path: Path) -> None:
    busy = http_error(ModelRateLimitError, 429, "lab", headers={"retry-after": "30"})
    script = Script([Answer(error=busy)])
    async with coder(script, tmp_path) as client:
        prompt = client.start("go")
        await client.until(lambda: "rate limit" in client.thoughts)
        await cancelled(client, prompt, script)


async def test_cancel_ends_the_prompts_that_wait_as_well(tmp_path: Path) -> None:
    script = Script([Answer("never", until=asyncio.Event())])
    async with coder(script, tmp_path) as client:
        tasks = [client.start(str(n)) for n in range(3)]
        await asyncio.wait_for(script.asked.wait(), 10)
        await client.agent.list_sessions()  # by then all prompts have come
        await client.cancel()
        assert [(await task).stop_reason for task in tasks] == ["cancelled"] * 3


@pytest.mark.parametrize("number", range(24))
async def test_cancelled_at_any_update_nothing_is_left_open_and_the_next_prompt_works(
    tmp_path: Path, number: int
) -> None:
    chance = random.Random(number)
    (tmp_path / "a.txt").write_text("one two three")
    pool: list[Call] = [
        ("read", {"path": "a.txt"}),
        ("read", {"path": "gone.txt"}),
        ("write", {"path": f"new-{number}.txt", "content": "x"}),
        ("edit", {"path": "a.txt", "old_string": "two", "new_string": "2"}),
        ("bash", {"command": "echo a; sleep 0.05; echo b"}),
        ("grep", {"pattern": "one"}),
        ("todo", {"entries": []}),
        ("fly", {}),
        ("task", {"description": "d", "prompt": "p"}),
    ]
    answers: list[Any] = [
        Answer("Some words here", "Hm.", chance.choices(pool, k=chance.randint(1, 4))) for _ in range(4)
    ]
    answers.append(Answer("never", until=asyncio.Event()))  # it does not end by itself
    script = Script(answers)
    async with coder(script, tmp_path, lends=chance.random() < 0.5) as client:
        client.choose(chance.choice(["allow_once", "allow_always", "reject_once"]))
        prompt = client.start("go")
        after = chance.randint(0, 60)
        await client.until(lambda: len(client.updates) >= after or not script.answers)
        await cancelled(client, prompt, script)
        assert all(is_whole(heard) for heard in script.heard)


async def test_cancel_with_nothing_under_way_does_nothing(tmp_path: Path) -> None:
    async with coder(Script(["Yes."]), tmp_path) as client:
        await client.cancel()
        assert (await client.say("go")).stop_reason == "end_turn"


# -- what goes wrong --


@pytest.mark.parametrize(
    ("error", "code", "kind"),
    [
        (
            http_error(ModelAuthenticationError, 401, "lab", {"error": "bad key"}),
            -32000,
            "auth_required",
        ),
        (ModelHTTPError(401, "lab", {"error": {"message": "bad key"}}), -32000, "auth_required"),
        (ModelHTTPError(404, "lab", None), -32603, "not_found"),
        (ModelHTTPError(402, "lab", None), -32603, "billing"),
        (ModelHTTPError(400, "lab", None), -32603, "invalid_request"),
        (ModelHTTPError(500, "lab", None), -32603, "server_error"),
        (ModelConnectionError("lab", "refused"), -32603, "connection"),
    ],
    ids=lambda value: str(value)[:20],
)
async def test_each_kind_of_error_is_told_apart(tmp_path: Path, error: Exception, code: int, kind: str) -> None:
    script = Script([Answer(error=error), "Better."])
    async with coder(script, tmp_path) as client:
        with pytest.raises(RequestError) as caught:
            await client.say("go")
        assert (caught.value.code, caught.value.data["errorKind"]) == (code, kind)
        assert (await client.say("again")).stop_reason == "end_turn"
    assert prompts(script.heard[-1]) == [["go"], ["again"]]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ContentFilterError("filtered"), "refusal"),
        (IncompleteToolCall("cut off"), "max_tokens"),
        (UsageLimitExceeded("too many"), "max_turn_requests"),
    ],
    ids=["refusal", "max_tokens", "max_turn_requests"],
)
async def test_a_turn_that_ends_at_a_limit_says_which(tmp_path: Path, error: Exception, reason: str) -> None:
    script = Script([Answer(error=error), "Again."])
    async with coder(script, tmp_path) as client:
        assert (await client.say("go")).stop_reason == reason
        assert (await client.say("again")).stop_reason == "end_turn"


async def test_an_error_after_a_tool_keeps_what_the_tool_did(tmp_path: Path) -> None:
    call: Call = ("write", {"path": "a.txt", "content": "x"})
    script = Script([[call], Answer(error=ModelHTTPError(500, "lab", None)), "Better."])
    async with coder(script, tmp_path) as client:
        with pytest.raises(RequestError):
            await client.say("go")
        await client.say("again")
    assert results(script.heard[-1]) == ["a.txt is written."]
    assert is_whole(script.heard[-1])


@pytest.mark.parametrize(
    "error",
    [
        http_error(ModelRateLimitError, 429, "lab"),
        http_error(ModelOverloadedError, 529, "lab"),
        ModelHTTPError(429, "lab"),
    ],
    ids=["rate limit", "overloaded", "only a status"],
)
async def test_a_busy_server_is_asked_again_and_that_is_said(
    tmp_path: Path, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "FIRST", 0.0)
    script = Script([Answer(error=error), Answer(error=error), "At last."])
    async with coder(script, tmp_path, capabilities=TELLING) as client:
        assert (await client.say("go")).stop_reason == "end_turn"
    assert client.text == "At last. "
    assert [("trying again" in notice.title, notice.severity) for notice in client.of("notice")] == [
        (True, "warning")
    ] * 2
    assert prompts(script.heard[-1]) == [["go"]]


async def test_a_server_that_stays_busy_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "FIRST", 0.0)
    error = http_error(ModelRateLimitError, 429, "lab")
    script = Script([Answer(error=error) for _ in range(patience.ATTEMPTS + 1)])
    async with coder(script, tmp_path) as client:
        with pytest.raises(RequestError) as caught:
            await client.say("go")
    assert caught.value.data["errorKind"] == "rate_limit"
    assert len(script.heard) == patience.ATTEMPTS


async def test_a_defect_in_a_tool_ends_its_call_and_not_the_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pilothouse.agents.coder import work as documents

    async def broken(*_: Any) -> str:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(documents, "read", broken)
    script = Script([[("read", {"path": "a.txt"})], "I go on."])
    async with coder(script, tmp_path) as client:
        assert (await client.say("go")).stop_reason == "end_turn"
        assert client.is_settled()
    assert "ZeroDivisionError" in results(script.heard[-1])[0]


async def test_a_package_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(name: str) -> Any:
        raise ModuleNotFoundError("No module named 'pydantic_ai'")

    async with coder(Script(["Yes."]), tmp_path) as client:
        with monkeypatch.context() as patched:
            patched.setattr("pilothouse.agents.coder.agent.import_module", gone)
            with pytest.raises(RequestError, match=r"pydantic_ai.*pilothouse\[agent\]"):
                await client.say("go")
        assert (await client.say("go")).stop_reason == "end_turn"


async def test_without_a_model_it_says_how_to_get_one(tmp_path: Path) -> None:
    async with coder(Script([]), tmp_path, options=Options()) as client:
        for _ in range(2):
            with pytest.raises(RequestError) as caught:
                await client.say("go")
            assert caught.value.code == -32000
        assert "PILOTHOUSE_MODEL" in client.text
        assert "`demo` needs no model" in client.text
        with pytest.raises(RequestError, match="PILOTHOUSE_MODEL"):
            await client.agent.authenticate(method_id="model")
        assert [option.id for option in client.opened.config_options] == ["mode", "thinking"]


# -- modes and options --


@pytest.mark.parametrize(
    ("mode", "tools"),
    [
        ("ask", {"read", "glob", "grep", "web_fetch", "task"}),
        ("plan", {"read", "glob", "grep", "web_fetch", "task", "todo"}),
        ("code", {"read", "glob", "grep", "web_fetch", "task", "todo", "write", "edit", "apply_patch", "bash"}),
    ],
)
async def test_a_mode_has_its_tools_and_no_others(tmp_path: Path, mode: str, tools: set[str]) -> None:
    script = Script([[("write", {"path": "a.txt", "content": "x"})], "Done."])
    async with coder(script, tmp_path) as client:
        await client.agent.set_session_mode(session_id=client.session, mode_id=mode)
        await client.say("go")
        assert client.is_settled()
    assert set(script.offered[0]) == tools
    assert f"{mode} mode" in script.instructions[0]
    assert (tmp_path / "a.txt").exists() == (mode == "code")
    assert bool(client.asked) == (mode == "code")


async def test_a_mode_that_is_set_while_a_question_is_open_counts(tmp_path: Path) -> None:
    script = Script([[("write", {"path": "a.txt", "content": "x"})], "Done."])
    async with coder(script, tmp_path) as client:
        allow = client.answer

        async def after_the_mode(call: Any, options: Any) -> Any:
            await client.agent.set_session_mode(session_id=client.session, mode_id="plan")
            return allow(call, options)

        client.answer = after_the_mode
        await client.say("go")
    assert list(tmp_path.iterdir()) == []
    assert "plan mode" in results(script.heard[-1])[0]


async def test_the_model_is_switched_by_an_option(tmp_path: Path) -> None:
    options = Options(model=MODEL, models=("lab:other",))
    async with coder(Script(["Yes."]), tmp_path, options=options) as client:
        shown = {option.id: option for option in client.opened.config_options}
        assert [one.value for one in shown["model"].options] == [MODEL, "lab:other"]
        answer = await client.agent.set_config_option("model", client.session, "lab:other")
        assert {option.id: option.current_value for option in answer.config_options}["model"] == "lab:other"
        await client.say("go")
        for wrong in ("nonsense", ""):
            with pytest.raises(RequestError):
                await client.agent.set_config_option("model", client.session, wrong)
        with pytest.raises(RequestError):
            await client.agent.set_session_mode(session_id=client.session, mode_id="fly")


# -- compaction --


async def test_compact_replaces_the_conversation_by_a_summary(tmp_path: Path) -> None:
    script = Script(["One.", "Two.", "Three."], summary="We counted to two.")
    async with coder(script, tmp_path, capabilities=TELLING) as client:
        (offered,) = await client.until(lambda: client.of("available_commands_update"))
        assert [command.name for command in offered.available_commands] == ["compact"]
        await client.say("Count")
        await client.say("Go on")
        assert (await client.say("/compact")).stop_reason == "end_turn"
        assert [update.status for update in client.of("compaction_update")] == ["in_progress", "completed"]
        assert "USER: Count" in str(prompts(script.heard[2])[0])
        await client.say("And now?")
    said = prompts(script.heard[-1])
    assert "We counted to two." in said[0]
    assert said[1:] == [["And now?"]]


async def test_a_long_conversation_is_compacted_by_itself(tmp_path: Path) -> None:
    script = Script(["word " * 1500, "Short."], summary="Many words were said.", context_window=1500)
    async with coder(script, tmp_path) as client:
        await client.say("Talk")
        await client.say("And now?")
    assert "compacted" in client.thoughts
    assert "Many words were said." in prompts(script.heard[-1])[0]
    assert client.text.endswith("Short. ")


async def test_a_conversation_that_the_model_refuses_as_too_long_is_compacted_and_goes_on(tmp_path: Path) -> None:
    too_long = http_error(ModelContextWindowExceededError, 400, "lab")
    (tmp_path / "a.txt").write_text("x")
    script = Script([[("read", {"path": "a.txt"})], Answer(error=too_long), "Done."], summary="a.txt was read.")
    async with coder(script, tmp_path) as client:
        assert (await client.say("Read a.txt")).stop_reason == "end_turn"
    said = prompts(script.heard[-1])
    assert "a.txt was read." in said[0]
    assert said[1][-1] == "Read a.txt"


async def test_one_that_is_still_too_long_is_told_of(tmp_path: Path) -> None:
    too_long = http_error(ModelContextWindowExceededError, 400, "lab")
    script = Script([Answer(error=too_long), Answer(error=too_long)])
    async with coder(script, tmp_path) as client:
        with pytest.raises(RequestError) as caught:
            await client.say("go")
    assert caught.value.data["errorKind"] == "context_overflow"


@dataclass
class Small(Script):
    """A server that takes so many characters, and says so or not."""

    most: int = 12_000
    says: str = "the request exceeds the available context size"
    refused: int = 0

    def _check(self, messages: Any) -> None:
        if len(str([part.content for message in messages for part in message.parts if hasattr(part, "content")])) > (
            self.most
        ):
            self.refused += 1
            raise ModelHTTPError(400, "lab", {"error": {"message": self.says}})

    async def _stream(self, messages: Any, info: Any) -> Any:
        self._check(messages)
        async for piece in super()._stream(messages, info):
            yield piece

    async def _whole(self, messages: Any, info: Any) -> ModelResponse:
        self._check(messages)
        return await super()._whole(messages, info)


@pytest.mark.parametrize("prompt", ["/compact", "And now?"])
async def test_a_session_that_is_too_long_for_a_small_model_is_not_lost(tmp_path: Path, prompt: str) -> None:
    script = Small(["word " * 3000, "Short."], summary="Many words were said.", most=100_000)
    async with coder(script, tmp_path) as client:
        await client.say("Talk")
        script.most = 3000  # as it is when another model is chosen
        assert (await client.say(prompt)).stop_reason == "end_turn"
        assert (await client.say("And on")).stop_reason == "end_turn"
    assert script.refused > 1
    assert "Many words were said." in prompts(script.heard[-1])[0]


async def test_the_context_of_a_model_is_learnt_from_what_its_server_says(tmp_path: Path) -> None:
    script = Small(["word " * 3000, "Short."], most=100_000)
    async with coder(script, tmp_path) as client:
        await client.say("Talk")
        script.most, script.says = 3000, "request (4000 tokens) exceeds the available context size (750 tokens)"
        await client.say("And now?")
    assert {update.size for update in client.of("usage_update")[-1:]} == {750}


async def test_a_turn_goes_on_however_often_the_model_is_full(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("words " * 1000)
    answers: list[Any] = [[("read", {"path": "a.txt"})] for _ in range(6)]
    script = Small([*answers, "Done at last."], summary="Read some of it.", most=12_000)
    async with coder(script, tmp_path) as client:
        assert (await client.say("Read it six times")).stop_reason == "end_turn"
    assert client.text == "Done at last. "
    assert script.refused > 1
    assert prompts(script.heard[-1])[-1][-1] == "Read it six times"


async def test_a_turn_makes_room_before_the_model_refuses(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("words " * 1000)
    answers: list[Any] = [[("read", {"path": "a.txt"})] for _ in range(6)]
    script = Small([*answers, "Done."], summary="Read some of it.", most=6000, context_window=1800)
    async with coder(script, tmp_path) as client:
        assert (await client.say("Read it six times")).stop_reason == "end_turn"
    assert (client.text, script.refused) == ("Done. ", 0)
    assert client.thoughts.count("compacted") > 1
    assert all(is_whole(heard) for heard in script.heard)


async def test_a_turn_has_so_many_requests_however_often_it_is_compacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pilothouse.agents.coder.worker.REQUESTS", 8)
    (tmp_path / "a.txt").write_text("words " * 1000)
    script = Small([[("read", {"path": "a.txt"})] for _ in range(50)], most=12_000)
    async with coder(script, tmp_path) as client:
        assert (await client.say("Never stop")).stop_reason == "max_turn_requests"
    assert len(client.calls) <= 8


@pytest.mark.parametrize(
    ("model", "known", "configured", "window"),
    [
        ("lab:x", 5000, 9000, 5000),
        ("lab:x", None, 9000, 9000),
        ("lab:x", None, None, 128_000),
        ("lab:x@http://127.0.0.1:1/v1", 5000, 9000, 9000),
        ("lab:x@http://127.0.0.1:1/v1", 5000, None, 5000),
    ],
)
async def test_what_is_configured_is_for_models_of_which_it_is_not_known(
    tmp_path: Path, model: str, known: int | None, configured: int | None, window: int
) -> None:
    options = Options(model=model, context_window=configured)
    async with coder(Script(["Yes."], context_window=known), tmp_path, options=options) as client:
        await client.say("go")
    assert [update.size for update in client.of("usage_update")] == [window]


@dataclass
class Summarising(Script):
    """A model whose summaries are waited for, or go wrong."""

    gate: asyncio.Event | None = None
    failure: Exception | None = None

    async def _whole(self, messages: Any, info: Any) -> ModelResponse:
        self.asked.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        return await super()._whole(messages, info)


@pytest.mark.parametrize("prompt", ["/compact", "And now?"])
async def test_cancel_while_the_conversation_is_summarised_leaves_it_as_it_was(tmp_path: Path, prompt: str) -> None:
    script = Summarising(["word " * 1500, "Short."], context_window=1500, gate=asyncio.Event())
    async with coder(script, tmp_path, capabilities=TELLING) as client:
        await client.say("Talk")
        script.asked.clear()
        turn = client.start(prompt)
        async with asyncio.timeout(PATIENCE):
            await script.asked.wait()
        await client.cancel()
        assert (await turn).stop_reason == "cancelled"
        assert [update.status for update in client.of("compaction_update")] == ["in_progress", "cancelled"]
        script.gate = None
        assert (await client.say("again")).stop_reason == "end_turn"
    assert "USER: Talk" in str(prompts(script.heard[-2])[0])


@pytest.mark.parametrize("error", [ModelHTTPError(400, "lab", "no"), RuntimeError("no")], ids=["server", "library"])
async def test_a_conversation_that_cannot_be_summarised_goes_on_while_it_fits(tmp_path: Path, error: Exception) -> None:
    script = Summarising(["word " * 1500, "Short."], context_window=1500, failure=error)
    async with coder(script, tmp_path) as client:
        await client.say("Talk")
        assert (await client.say("And now?")).stop_reason == "end_turn"
        assert "could not be compacted" in client.thoughts
        with pytest.raises(RequestError, match=": no"):
            await client.say("/compact")
    assert prompts(script.heard[-1]) == [["Talk"], ["And now?"]]


async def test_a_sub_agent_whose_model_fails_in_any_way_is_told_of(tmp_path: Path) -> None:
    script = Script([[("task", {"description": "d", "prompt": "p"})], Answer(error=KeyError("odd")), "Done."])
    async with coder(script, tmp_path) as client:
        assert (await client.say("go")).stop_reason == "end_turn"
        assert client.call("task")["status"] == "failed"
    assert results(script.heard[-1]) == ["The sub-agent failed. The agent failed: 'odd'"]


async def test_there_must_be_something_to_compact(tmp_path: Path) -> None:
    async with coder(Script([]), tmp_path) as client:
        with pytest.raises(RequestError, match="nothing to compact"):
            await client.say("/compact")
