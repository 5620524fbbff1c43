"""Every tool: what is shown, what is asked, what it does when it is allowed and that it does nothing when it is not."""

from __future__ import annotations

import asyncio
import os
import resource
from pathlib import Path
from typing import Any

import pytest

from pilothouse.acp import FileEditToolCallContent, TerminalToolCallContent
from pilothouse.agents import commands, toolcall
from pilothouse.agents.coder.tools.texts import fenced
from tests.support.coders import Answer, Call, Client, Script, coder, results

PATCH = """\
*** Begin Patch
*** Update File: a.txt
@@
-one
+eins
*** Add File: sub/new.txt
+fresh
*** Delete File: old.txt
*** End Patch
"""
ACTIONS: dict[str, Call] = {
    "write": ("write", {"path": "made/new.txt", "content": "fresh\n"}),
    "edit": ("edit", {"path": "a.txt", "old_string": "one", "new_string": "eins"}),
    "patch": ("apply_patch", {"patch": PATCH}),
    "bash": ("bash", {"command": "echo ran > ran.txt; echo told"}),
}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    (directory / "a.txt").write_text("one\ntwo\n")
    (directory / "old.txt").write_text("old\n")
    return directory


def disk(work: Path) -> dict[str, str]:
    return {str(path.relative_to(work)): path.read_text() for path in sorted(work.rglob("*")) if path.is_file()}


BEFORE = {"a.txt": "one\ntwo\n", "old.txt": "old\n"}
AFTER = {
    "write": {**BEFORE, "made/new.txt": "fresh\n"},
    "edit": {**BEFORE, "a.txt": "eins\ntwo\n"},
    "patch": {"a.txt": "eins\ntwo\n", "sub/new.txt": "fresh\n"},
    "bash": {**BEFORE, "ran.txt": "ran\n"},
}


async def run(work: Path, *calls: Call, lends: bool = True, choose: str | None = "allow_once") -> tuple[Client, Script]:
    script = Script([list(calls), "Done."])
    async with coder(script, work, lends=lends) as client:
        client.choose(choose)
        answer = await client.say("go")
        assert answer.stop_reason == ("cancelled" if choose is None else "end_turn")
        assert client.is_settled()
    return client, script


# -- allowed or not --


@pytest.mark.parametrize("lends", [True, False], ids=["through the client", "by itself"])
@pytest.mark.parametrize("action", ACTIONS)
async def test_what_is_allowed_is_done(work: Path, action: str, lends: bool) -> None:
    client, _ = await run(work, ACTIONS[action], lends=lends)
    assert disk(work) == AFTER[action]
    call = client.call(ACTIONS[action][0])
    assert call["statuses"][0] == "pending"
    assert call["statuses"][-2:] == ["in_progress", "completed"]
    assert len(client.asked) == 1
    assert bool(client.served) is lends


@pytest.mark.parametrize("lends", [True, False], ids=["through the client", "by itself"])
@pytest.mark.parametrize("kind", ["reject_once", "reject_always", None])
@pytest.mark.parametrize("action", ACTIONS)
async def test_what_is_not_allowed_is_not_done(work: Path, action: str, kind: str | None, lends: bool) -> None:
    client, script = await run(work, ACTIONS[action], lends=lends, choose=kind)
    assert disk(work) == BEFORE
    assert client.call(ACTIONS[action][0])["status"] == "failed"
    assert "in_progress" not in client.call(ACTIONS[action][0])["statuses"]
    assert not {"write", "terminal"} & set(client.served)
    if kind is not None:
        assert "rejected" in results(script.heard[-1])[0]


@pytest.mark.parametrize("action", ACTIONS)
async def test_the_question_shows_all_that_would_be_done(work: Path, action: str) -> None:
    client, _ = await run(work, ACTIONS[action])
    name, given = ACTIONS[action]
    asked, options = client.asked[0]
    assert asked.tool_call_id == client.call(name)["tool_call_id"]
    assert given.items() <= asked.raw_input.items()
    assert {option.kind for option in options} == {"allow_once", "allow_always", "reject_once", "reject_always"}
    if name == "bash":
        assert asked.title == f"`{given['command']}`"
    else:
        assert all(isinstance(part, FileEditToolCallContent) for part in asked.content)
        assert asked.locations


async def test_an_answer_that_was_not_offered_allows_nothing(work: Path) -> None:
    from pilothouse.acp import AllowedOutcome, RequestPermissionResponse

    script = Script([[ACTIONS["write"]], "Done."])
    async with coder(script, work) as client:
        client.answer = lambda call, options: RequestPermissionResponse(outcome=AllowedOutcome(option_id="yes"))
        await client.say("go")
    assert disk(work) == BEFORE


async def test_a_client_that_cannot_ask_allows_nothing(work: Path) -> None:
    from pilothouse.acp import RequestError

    def fail(call: Any, options: Any) -> Any:
        raise RequestError.method_not_found("session/request_permission")

    script = Script([[ACTIONS["bash"]], "Done."])
    async with coder(script, work) as client:
        client.answer = fail
        await client.say("go")
    assert disk(work) == BEFORE
    assert "could not be asked" in results(script.heard[-1])[0]


async def test_why_something_was_rejected_reaches_the_model(work: Path) -> None:
    script = Script([[ACTIONS["write"]], "Done."])
    async with coder(script, work) as client:
        client.choose("reject_once")
        reject = client.answer

        def with_reason(call: Any, options: Any) -> Any:
            answer = reject(call, options)
            answer.field_meta = {"reason": "not in this directory"}
            return answer

        client.answer = with_reason
        await client.say("go")
    assert "not in this directory" in results(script.heard[-1])[0]


# -- always --


async def test_always_covers_the_same_again_and_nothing_else(work: Path) -> None:
    edits = [
        ("edit", {"path": "a.txt", "old_string": old, "new_string": new}) for old, new in (("one", "1"), ("two", "2"))
    ]
    script = Script([[edits[0]], [edits[1]], [ACTIONS["write"]], [ACTIONS["bash"]], "Done."])
    async with coder(script, work) as client:
        client.choose("allow_always")
        await client.say("go")
        assert [call.title for call, _ in client.asked] == [
            "Edit a.txt",
            "Write made/new.txt",
            "`echo ran > ran.txt; echo told`",
        ]
    assert (work / "a.txt").read_text() == "1\n2\n"


async def test_always_for_a_command_is_to_the_letter(work: Path) -> None:
    script = Script(
        [[("bash", {"command": "true"})], [("bash", {"command": "true"})], [("bash", {"command": "true "})], "Done."]
    )
    async with coder(script, work) as client:
        client.choose("allow_always")
        await client.say("go")
        assert len(client.asked) == 2
        assert client.asked[0][1][1].name == "Always allow `true` in this session"


async def test_leave_to_change_a_file_is_none_to_delete_it(work: Path) -> None:
    gone = "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch\n"
    script = Script([[ACTIONS["edit"]], [("apply_patch", {"patch": gone})], "Done."])
    async with coder(script, work) as client:
        kinds = iter(("allow_always", "reject_once"))
        chosen: list[str] = []

        def answer(call: Any, options: Any) -> Any:
            chosen.append(next(kinds))
            client.choose(chosen[-1])
            now, client.answer = client.answer, answer
            return now(call, options)

        client.answer = answer
        await client.say("go")
    assert chosen == ["allow_always", "reject_once"]
    assert (work / "a.txt").exists()


async def test_always_rejected_is_not_asked_again(work: Path) -> None:
    script = Script([[ACTIONS["bash"]], [ACTIONS["bash"]], "Done."])
    async with coder(script, work) as client:
        client.choose("reject_always")
        await client.say("go")
        assert len(client.asked) == 1
        assert [call["status"] for call in client.calls.values()] == ["failed", "failed"]
    assert disk(work) == BEFORE


# -- reading --


@pytest.mark.parametrize("lends", [True, False])
async def test_read_asks_nobody_and_tells_the_text(work: Path, lends: bool) -> None:
    client, script = await run(work, ("read", {"path": "a.txt"}), lends=lends)
    assert client.asked == []
    assert results(script.heard[-1]) == ["one\ntwo\n"]
    call = client.call("read")
    assert (call["title"], call["kind"], call["locations"][0].path) == ("Read a.txt", "read", str(work / "a.txt"))


async def test_a_file_may_be_named_as_editors_name_it(work: Path) -> None:
    (work / "a b.txt").write_text("found")
    client, script = await run(
        work, ("read", {"path": f"file://{work}/a%20b.txt"}), ("read", {"path": "file:///etc/x"})
    )
    found, outside = results(script.heard[-1])
    assert found == "found"
    assert "outside of the workspace" in outside
    assert [call["locations"][0].path for call in client.calls.values()] == [f"{work}/a b.txt", "/etc/x"]


async def test_read_gives_a_part_and_says_which(work: Path) -> None:
    (work / "long.txt").write_text("".join(f"{n}\n" for n in range(1, 101)))
    client, script = await run(work, ("read", {"path": "long.txt", "line": 10, "limit": 2}))
    assert results(script.heard[-1]) == ["10\n11\n[lines 10 to 11 of 100]"]
    assert client.call("read")["locations"][0].line == 10


async def test_what_is_not_saved_is_what_is_read(work: Path) -> None:
    script = Script([[("read", {"path": "a.txt"})], "Done."])
    async with coder(script, work) as client:
        client.buffers[str(work / "a.txt")] = "in the buffer"
        await client.say("go")
    assert results(script.heard[-1]) == ["in the buffer"]


@pytest.mark.parametrize("lends", [True, False])
@pytest.mark.parametrize(
    "call",
    [
        ("read", {"path": "../secret.txt"}),
        ("read", {"path": "link/secret.txt"}),
        ("write", {"path": "../secret.txt", "content": "x"}),
        ("write", {"path": "link/x.txt", "content": "x"}),
        ("edit", {"path": "../secret.txt", "old_string": "s", "new_string": "x"}),
        ("apply_patch", {"patch": "*** Begin Patch\n*** Add File: ../x.txt\n+x\n*** End Patch"}),
        ("bash", {"command": "cat secret.txt", "cwd": ".."}),
        ("glob", {"pattern": "*", "path": ".."}),
        ("grep", {"pattern": "s", "path": "/"}),
        ("read", {"path": "a\0b"}),
        ("write", {"path": "~/x.txt", "content": "x"}),
        ("bash", {"command": "ls", "cwd": "~"}),
    ],
    ids=lambda call: f"{call[0]} {next(iter(call[1].values()))[:12]!r}",
)
async def test_nothing_outside_of_the_workspace_is_touched(work: Path, call: Call, lends: bool) -> None:
    (work.parent / "secret.txt").write_text("secret")
    (work / "link").symlink_to(work.parent)
    client, script = await run(work, call, lends=lends)
    assert client.call(call[0])["status"] == "failed"
    assert client.asked == []
    assert client.served == []
    assert "secret" not in results(script.heard[-1])[0].replace("secret.txt", "")
    assert sorted(path.name for path in work.parent.iterdir()) == ["secret.txt", "work"]


async def test_directories_that_the_client_added_belong_to_the_workspace(work: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "b.txt").write_text("beside")
    script = Script([[("read", {"path": str(other / "b.txt")})], "Done."])
    async with coder(script, work, additional_directories=[str(other)]) as client:
        await client.say("go")
    assert results(script.heard[-1]) == ["beside"]


@pytest.mark.parametrize("lends", [True, False])
async def test_a_file_that_is_not_there_is_told_of(work: Path, lends: bool) -> None:
    client, script = await run(work, ("read", {"path": "no.txt"}), lends=lends)
    assert results(script.heard[-1]) == ["`no.txt` could not be read: there is no such file."]
    assert client.call("read")["status"] == "failed"


# -- changing --


async def test_edit_wants_the_passage_once_unless_told_otherwise(work: Path) -> None:
    (work / "a.txt").write_text("x = 1\nx = 1\n")
    again = {"path": "a.txt", "old_string": "x = 1", "new_string": "y"}
    _client, script = await run(work, ("edit", again))
    assert "2 times" in results(script.heard[-1])[0]
    await run(work, ("edit", {**again, "replace_all": True}))
    assert (work / "a.txt").read_text() == "y\ny\n"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"old_string": "nine", "new_string": "x"}, "is not in `a.txt`"),
        ({"old_string": "", "new_string": "x"}, "empty"),
        ({"old_string": "one", "new_string": "one"}, "stay as it is"),
    ],
)
async def test_an_edit_that_does_not_fit_is_not_asked_about(work: Path, given: dict[str, str], reason: str) -> None:
    client, script = await run(work, ("edit", {"path": "a.txt", **given}))
    assert client.asked == []
    assert reason in results(script.heard[-1])[0]


@pytest.mark.parametrize("lends", [True, False])
async def test_line_ends_stay_what_they_are(work: Path, lends: bool) -> None:
    (work / "dos.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    await run(work, ("edit", {"path": "dos.txt", "old_string": "one\ntwo", "new_string": "1\n2"}), lends=lends)
    assert (work / "dos.txt").read_bytes() == b"1\r\n2\r\nthree\r\n"
    await run(work, ("edit", {"path": "dos.txt", "old_string": "three", "new_string": "3\n4\r\n5"}), lends=lends)
    assert (work / "dos.txt").read_bytes() == b"1\r\n2\r\n3\r\n4\r\n5\r\n"


async def test_where_line_ends_differ_only_the_passage_is_changed(work: Path) -> None:
    (work / "both.txt").write_bytes(b"one\r\ntwo\nthree\n")
    await run(work, ("edit", {"path": "both.txt", "old_string": "two\nthree", "new_string": "2\n3"}))
    assert (work / "both.txt").read_bytes() == b"one\r\n2\n3\n"


async def test_a_byte_order_mark_is_in_nobodys_way_and_stays(work: Path) -> None:
    (work / "a.txt").write_bytes(b"\xef\xbb\xbfone\ntwo\n")
    await run(work, ACTIONS["patch"])
    assert (work / "a.txt").read_bytes() == b"\xef\xbb\xbfeins\ntwo\n"


@pytest.mark.parametrize(
    "call",
    [
        ("write", {"path": "a.txt", "content": "mine"}),
        ("edit", {"path": "a.txt", "old_string": "one", "new_string": "1", "replace_all": True}),
        ("apply_patch", {"patch": PATCH}),
    ],
    ids=["write", "edit", "patch"],
)
async def test_a_file_that_changed_while_it_was_asked_about_is_not_overwritten(work: Path, call: Call) -> None:
    script = Script([[call], "Done."])
    async with coder(script, work) as client:
        allow = client.answer

        def meanwhile(call: Any, options: Any) -> Any:
            (work / "a.txt").write_text("one\ntwo\nsomebody else's one\n")
            return allow(call, options)

        client.answer = meanwhile
        await client.say("go")
    assert (work / "a.txt").read_text() == "one\ntwo\nsomebody else's one\n"
    assert "has changed" in results(script.heard[-1])[0]


async def test_edits_of_one_file_in_one_answer_all_count(work: Path) -> None:
    calls: list[Call] = [
        ("edit", {"path": "a.txt", "old_string": "one", "new_string": "1"}),
        ("edit", {"path": "a.txt", "old_string": "two", "new_string": "2"}),
    ]
    await run(work, *calls)
    assert (work / "a.txt").read_text() == "1\n2\n"


async def test_a_patch_that_does_not_fit_changes_nothing(work: Path) -> None:
    patch = "*** Begin Patch\n*** Add File: new.txt\n+x\n*** Update File: a.txt\n@@\n-nine\n+9\n*** End Patch\n"
    client, script = await run(work, ("apply_patch", {"patch": patch}))
    assert disk(work) == BEFORE
    assert client.asked == []
    assert "does not fit" in results(script.heard[-1])[0]


async def test_a_patch_moves_a_file(work: Path) -> None:
    patch = "*** Begin Patch\n*** Update File: old.txt\n*** Move to: sub/moved.txt\n@@\n-old\n+new\n*** End Patch\n"
    await run(work, ("apply_patch", {"patch": patch}))
    assert disk(work) == {"a.txt": "one\ntwo\n", "sub/moved.txt": "new\n"}


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        ("nonsense", "The patch names no file; line 1: expected"),
        ("--- a/a.txt\n+++ b/a.txt\n@@ somewhere @@\n-one\n+1\n", "The patch changes nothing; line 3: a hunk without"),
        ("*** Begin Patch\n*** Update File: a.txt\n@@\n one\n*** End Patch", "The patch changes nothing; all files"),
        ("--- a/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n", "1 of its lines would stay"),
    ],
)
async def test_a_patch_that_does_nothing_or_too_much_says_why_and_nobody_is_asked(
    work: Path, patch: str, why: str
) -> None:
    client, script = await run(work, ("apply_patch", {"patch": patch}))
    assert why in results(script.heard[-1])[0]
    assert client.asked == []
    assert disk(work) == BEFORE


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="this system cannot reserve room for a file")
async def test_a_file_for_which_there_is_no_room_stays_what_it_was(work: Path) -> None:
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, limit[1]))
    try:
        _client, script = await run(work, ("write", {"path": "a.txt", "content": "x" * 2_000_000}), lends=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert results(script.heard[-1]) == ["`a.txt` could not be written: File too large"]
    assert disk(work) == BEFORE


# -- commands --


@pytest.mark.parametrize("lends", [True, False])
async def test_a_command_tells_its_output_and_how_it_ended(work: Path, lends: bool) -> None:
    client, script = await run(work, ("bash", {"command": "echo out; echo err >&2; exit 3"}), lends=lends)
    assert results(script.heard[-1]) == ["out\nerr\n[exit code 3]"]
    call = client.call("bash")
    assert call["status"] == "failed"
    assert call["raw_input"] == {"command": "echo out; echo err >&2; exit 3", "timeout": 120}
    assert call["raw_output"] == {"output": "out\nerr\n", "exitCode": 3, "signal": None}


@pytest.mark.parametrize("lends", [True, False])
async def test_output_of_which_the_beginning_is_lost_says_so(
    work: Path, monkeypatch: pytest.MonkeyPatch, lends: bool
) -> None:
    monkeypatch.setattr(commands, "OUTPUT_LIMIT", 7)
    _client, script = await run(work, ("bash", {"command": "echo first; echo second"}), lends=lends)
    assert results(script.heard[-1]) == ["[what it wrote first is left out]\nsecond\n[exit code 0]"]


def test_what_is_written_to_be_slow_to_fence_is_not() -> None:
    """One that tries every length of a fence would take minutes."""
    assert fenced("`" * 1_000_000) == "\n".join(["`" * 1_000_001, "`" * 1_000_000, "`" * 1_000_001])
    assert fenced("a `` b") == "```\na `` b\n```"


async def test_a_command_in_no_directory_is_not_asked_about(work: Path) -> None:
    client, script = await run(work, ("bash", {"command": "ls", "cwd": "nowhere"}))
    assert "There is no directory `nowhere`." in results(script.heard[-1])[0]
    assert client.asked == []


async def test_a_terminal_is_shown_before_it_is_released(work: Path) -> None:
    client, _ = await run(work, ACTIONS["bash"])
    (shown,) = [part for part in client.call("bash")["contents"] if isinstance(part, TerminalToolCallContent)]
    assert client.released == [shown.terminal_id]


@pytest.mark.parametrize("lends", [True, False])
async def test_a_command_that_takes_too_long_is_ended(work: Path, lends: bool) -> None:
    _client, script = await run(work, ("bash", {"command": "echo begun; sleep 600", "timeout": 1}), lends=lends)
    assert results(script.heard[-1]) == ["begun\n[ended after 1 seconds, as it was still running]"]


async def test_output_is_shown_as_it_comes_without_a_terminal_too(work: Path) -> None:
    script = Script([[("bash", {"command": "echo first; while [ ! -e go ]; do sleep 0.02; done; echo last"})], "Done."])
    async with coder(script, work, lends=False) as client:
        prompt = client.start("go")
        await client.until(
            lambda: any("first" in part.content.text for call in client.calls.values() for part in call["contents"])
        )
        (work / "go").touch()
        await prompt
    assert results(script.heard[-1]) == ["first\nlast\n[exit code 0]"]


async def test_what_is_streamed_is_told_now_and_then_and_remembered_once(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolcall, "PACE", 3600.0)
    report = " ".join(f"word{n}" for n in range(1500))
    script = Script([[("task", {"description": "long", "prompt": "report"})], report, "Done."])
    home = work.parent / "home"
    async with coder(script, work, home=home) as client:
        await client.say("go")
        call = client.call("task")
        assert len(call["contents"]) == 2  # the first of it and the whole
        assert call["content"][0].content.text.strip() == report
        assert sum(path.stat().st_size for path in home.glob("*.jsonl")) < 3 * len(report)


@pytest.mark.parametrize("lends", [True, False])
async def test_what_was_streamed_before_a_call_was_cancelled_is_shown_then_and_later(
    work: Path, monkeypatch: pytest.MonkeyPatch, lends: bool
) -> None:
    monkeypatch.setattr(toolcall, "PACE", 3600.0)
    rest = asyncio.Event()
    script = Script([[("task", {"description": "d", "prompt": "p"})], Answer("one two three", then=rest)])
    async with coder(script, work, lends=lends, home=work.parent / "home") as client:
        prompt = client.start("go")
        await client.until(lambda: "one" in str(client.calls))
        await client.cancel()
        await prompt
        assert (client.call("task")["status"], client.call("task")["content"][0].content.text) == ("failed", "one ")
        client.updates.clear()
        await client.agent.load_session(session_id=client.session, cwd=str(work), mcp_servers=[])
        assert (client.call("task")["status"], client.call("task")["content"][0].content.text) == ("failed", "one ")


async def test_what_is_streamed_is_told_a_moment_later_also_when_nothing_follows(work: Path) -> None:
    command = "printf first; printf ' second'; while [ ! -e go ]; do sleep 0.02; done"
    script = Script([[("bash", {"command": f"{command}; echo last"})], "Done."])
    async with coder(script, work, lends=False) as client:
        prompt = client.start("go")
        await client.until(lambda: "first second" in str(client.calls))
        (work / "go").touch()
        await prompt


# -- plan, delegation --


async def test_todo_becomes_the_plan(work: Path) -> None:
    entries = [
        {"content": "look", "status": "completed", "priority": "high"},
        {"content": "do", "status": "in_progress", "priority": "medium"},
    ]
    client, _ = await run(work, ("todo", {"entries": entries}))
    (plan,) = client.of("plan")
    assert [(entry.content, entry.status, entry.priority) for entry in plan.entries] == [
        ("look", "completed", "high"),
        ("do", "in_progress", "medium"),
    ]
    assert client.call("todo")["title"] == "Plan: 1 of 2 steps done"


async def test_a_sub_agent_has_a_memory_of_its_own_and_its_calls_name_their_parent(work: Path) -> None:
    script = Script(
        [
            [("task", {"description": "Look around", "prompt": "What is in a.txt?"})],
            [("read", {"path": "a.txt"})],
            "It has two lines.",
            "Done.",
        ]
    )
    async with coder(script, work) as client:
        answer = await client.say("go")
    parent, child = client.call("task"), client.call("read")
    assert child["field_meta"] == {"pilothouse": {"parentToolCallId": parent["tool_call_id"]}}
    assert parent["raw_output"] == {"report": "It has two lines. "}
    assert client.text == "Done. "
    assert "task" not in script.offered[1]
    assert len(script.heard[1]) == 1
    assert results(script.heard[-1]) == ["It has two lines. "]
    assert answer.usage is not None
    alone = sum(len(str(heard)) > 0 for heard in script.heard)
    assert alone == 4


async def test_what_a_sub_agent_wants_to_do_is_asked_about(work: Path) -> None:
    script = Script([[("task", {"description": "Write", "prompt": "Write it."})], [ACTIONS["write"]], "No.", "Done."])
    async with coder(script, work) as client:
        client.choose("reject_once")
        await client.say("go")
        assert len(client.asked) == 1
    assert disk(work) == BEFORE


async def test_a_sub_agent_that_fails_fails_its_call_only(work: Path) -> None:
    from pydantic_ai.exceptions import ModelHTTPError

    broken = Answer(error=ModelHTTPError(500, "lab", {"error": {"message": "broken"}}))
    script = Script([[("task", {"description": "Look", "prompt": "Look."})], broken, "I go on."])
    async with coder(script, work) as client:
        assert (await client.say("go")).stop_reason == "end_turn"
    assert client.call("task")["status"] == "failed"
    assert "broken" in results(script.heard[-1])[0]


# -- what does not fit --


async def test_a_call_of_no_tool_is_shown_as_failed(work: Path) -> None:
    client, _ = await run(work, ("fly", {"to": "the moon"}))
    assert client.call("fly")["status"] == "failed"
    assert client.call("fly")["content"][0].content.text.startswith("Unknown tool name: 'fly'")


async def test_arguments_that_do_not_fit_are_shown_and_can_be_given_again(work: Path) -> None:
    script = Script([[("read", {"file": "a.txt"})], [("read", {"path": "a.txt"})], "Done."])
    async with coder(script, work) as client:
        await client.say("go")
    assert [call["status"] for call in client.calls.values()] == ["failed", "completed"]
    refused = next(iter(client.calls.values()))["content"][0].content.text
    assert refused == "The arguments do not fit. path: Field required; file: Extra inputs are not permitted."
    assert results(script.heard[-1])[-1] == "one\ntwo\n"
