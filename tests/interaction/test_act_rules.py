"""Rules, modes and denials: a rule allows only what it was matched with, and a denial holds in other spellings."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pilothouse.adapters.catalog import PermissionBehavior
from pilothouse.dialects.acp.requests import permission_request
from pilothouse.hub.errors import HubError
from pilothouse.hub.hub import Hub
from pilothouse.hub.session.session import HubSession
from pilothouse.model.policy import parse_policy
from tests.support.hubs import approval_asked, facts, history
from tests.support.rogue import REFUSED, Tally, Turn, ask, deny, do, rogue_hub, run_turn


@pytest.fixture
def behavior() -> PermissionBehavior:
    return PermissionBehavior({"yolo": "everything"}, question_tools=frozenset({"AskUserQuestion"}))


def diff(path: str, new: str, old: str | None = None) -> dict[str, Any]:
    return {"type": "diff", "path": path, "oldText": old, "newText": new}


async def who_decided(hub: Hub, turn: Turn) -> list[str]:
    records = [await hub.log.approvals.get(event.request_id) for event in turn.asked]
    return [str((record.decision or {}).get("resolvedBy")) for record in records]


WRITE = do("fs/write_text_file", path="Makefile", content="evil\n")
NEW = "x\nb\ny\n"

# -- rules --------------------------------------------------------------------------------------------------------

MCP = {"kind": "other", "name": "mcp__x__y", "title": "Work"}
SMUGGLED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a diff next to an allowed command": (
        {"commands": ["ls"]},
        {"kind": "execute", "title": "Bash", "rawInput": {"command": "ls"}},
    ),
    "a diff of another file": ({"writes": ["notes.txt"]}, {"kind": "edit", "rawInput": {"file_path": "notes.txt"}}),
    "a diff next to a read": ({"reads": True}, {"kind": "read", "title": "Read", "rawInput": {"file_path": "a"}}),
    "a diff next to an allowed tool": ({"tools": ["mcp__x__y"]}, {**MCP, "rawInput": {"q": "1"}}),
}


@pytest.mark.parametrize("what", SMUGGLED)
async def test_a_rule_does_not_allow_a_diff_that_it_was_not_matched_with(
    hub: Hub, session: HubSession, project: Path, what: str, tally: Tally
) -> None:
    policy, request = SMUGGLED[what]
    session.set_policy(parse_policy({"autoApprove": policy}))
    question = ask("c1", **{"title": "Work", **request, "content": [diff("Makefile", "evil\n")]})
    turn = await run_turn(
        hub, session, f"{question}\n{do('fs/write_text_file', path='Makefile', content='evil')}", deny
    )
    assert len(turn.asked) == 1
    assert not (project / "Makefile").exists()
    assert turn.asked[0].rule_offers == [] or request["kind"] == "edit"
    tally(REFUSED, 1)


async def test_always_does_not_allow_a_later_request_that_shows_more(
    hub: Hub, session: HubSession, project: Path, tally: Tally
) -> None:
    first = {"title": "Bash", "kind": "execute", "rawInput": {"command": "ls"}}
    prompt = await session.send(ask("c1", **first))
    asked = await approval_asked(session)
    await session.decide(asked.request_id, approved=True, remember="session")
    await prompt.done
    again = ask("c2", **first, content=[diff("Makefile", "evil\n")])
    turn = await run_turn(hub, session, f"{again}\n{WRITE}", deny)
    assert await who_decided(hub, turn) == ["user"]
    assert not (project / "Makefile").exists()
    tally(REFUSED, 1)


@pytest.mark.parametrize("member", ["env-vars", "environment-variables", "e-n-v", "Env_Vars"])
async def test_a_rule_does_not_allow_variables_under_another_name(
    hub: Hub, session: HubSession, project: Path, member: str, tally: Tally
) -> None:
    session.set_policy(parse_policy({"autoApprove": {"commands": ["bash -c ls", "ls"]}}))
    variables = {"BASH_ENV": "./evil.sh"}
    (project / "evil.sh").write_text("touch made\n")
    act = do("terminal/create", command="bash -c ls", env=[{"name": "BASH_ENV", "value": "./evil.sh"}])
    question = ask("c1", title="Bash", kind="execute", rawInput={"command": "bash -c ls", member: variables})
    turn = await run_turn(hub, session, f"{question}\n{act}", deny)
    assert await who_decided(hub, turn) == ["user"]
    assert not (project / "made").exists()
    tally(REFUSED, 1)


@pytest.mark.parametrize("path", [".env", "link"])
async def test_a_deny_rule_sees_the_diffs_of_a_request(
    hub: Hub, session: HubSession, project: Path, path: str, tally: Tally
) -> None:
    (project / ".env").write_text("secret")
    (project / "link").symlink_to(".env")
    session.set_policy(parse_policy({"deny": {"writes": [".env"]}}))
    question = ask("c1", title="Work", kind="edit", rawInput={"file_path": "a"}, content=[diff(path, "x")])
    turn = await run_turn(hub, session, question, lambda event: None)
    assert await who_decided(hub, turn) == ["policy"]
    tally(REFUSED, 1)


@pytest.mark.parametrize("what", ["write", "command"])
async def test_a_rule_for_a_tool_does_not_let_the_hub_act(
    hub: Hub, session: HubSession, project: Path, what: str, tally: Tally
) -> None:
    session.set_policy(parse_policy({"autoApprove": {"tools": ["mcp__x__y"]}}))
    raw = {"file_path": "Makefile", "content": "evil\n"} if what == "write" else {"command": "touch Makefile"}
    act = WRITE if what == "write" else do("terminal/create", command="touch Makefile")
    await run_turn(hub, session, f"{ask('c1', **{**MCP, 'kind': 'edit', 'rawInput': raw})}\n{act}", deny)
    assert not (project / "Makefile").exists()
    tally(REFUSED, 1)


async def test_always_stores_the_exact_arguments_of_a_tool_by_default(hub: Hub, session: HubSession) -> None:
    prompt = await session.send(ask("c1", title="Delete a", kind="delete", rawInput={"path": "a"}))
    asked = await approval_asked(session)
    assert [offer.offer_id for offer in asked.rule_offers] == ["exact", "any_arguments"]
    await session.decide(asked.request_id, approved=True, remember="session")
    await prompt.done
    turn = await run_turn(hub, session, ask("c2", title="Delete b", kind="delete", rawInput={"path": "b"}), deny)
    assert await who_decided(hub, turn) == ["user"]


async def test_reissued_request_shows_the_agents_original_command(hub: Hub, session: HubSession) -> None:
    change = "agent.update('tool_call_update', toolCallId='c1', rawInput={'command': 'ls -l'})"
    program = (
        "agent.tool('c1', kind='execute', status='pending', rawInput={'command': 'ls'})\n"
        f"import threading\nthreading.Timer(.2, lambda: {change}).start()\n"
        f"{ask('c1', kind='execute', rawInput={'command': 'rm -rf victim'})}"
    )
    prompt = await session.send(program)
    first = await approval_asked(session)
    second = await approval_asked(session, first.seq)
    assert any("rm -rf victim" in note for note in second.notes)
    await session.decide(second.request_id, approved=False)
    await prompt.done


# -- denials ------------------------------------------------------------------------------------------------------

SPELLINGS = ["touch ./made", "/usr/bin/touch made", "touch made; true", "touch 'made' # again"]


@pytest.mark.parametrize("command", SPELLINGS)
async def test_neither_rule_nor_mode_allows_a_denied_command_in_other_words(
    hub: Hub, session: HubSession, project: Path, command: str, tally: Tally
) -> None:
    await session.set_mode("yolo")
    session.set_policy(parse_policy({"autoApprove": {"commands": ["touch *", "true"]}}))
    # the command is only in the content, so that no rule answers the request
    content = [{"type": "content", "content": {"type": "text", "text": "```sh\ntouch made\n```"}}]
    question = ask("c1", title="Bash", kind="execute", content=content)
    turn = await run_turn(hub, session, f"{question}\n{do('terminal/create', command=command)}", deny)
    assert len(turn.acts) == 1
    assert any("You denied something similar" in note for note in turn.acts[0].notes)
    assert not (project / "made").exists()
    tally(REFUSED, 1)


@pytest.mark.parametrize("command", ["touch ./made", "/usr/bin/touch made", "touch mad?", "touch m\\ade"])
async def test_a_rule_does_not_answer_a_request_for_a_denied_command_in_other_words(
    hub: Hub, session: HubSession, project: Path, command: str, tally: Tally
) -> None:
    session.set_policy(parse_policy({"autoApprove": {"commands": ["touch *"]}}))
    content = [{"type": "content", "content": {"type": "text", "text": "```sh\ntouch made\n```"}}]
    first = ask("c1", title="Bash", kind="execute", content=content)
    second = ask("c2", title="Bash", kind="execute", rawInput={"command": command})
    program = f"{first}\n{second}\n{do('terminal/create', command=command)}"
    turn = await run_turn(hub, session, program, deny)
    assert await who_decided(hub, turn) == ["user", "user"]
    assert not (project / "made").exists()
    tally(REFUSED, 1)


async def test_other_commands_are_not_asked_about_after_a_denial(hub: Hub, session: HubSession) -> None:
    session.set_policy(parse_policy({"autoApprove": {"commands": ["git diff *", "ls *"]}}))
    denied = ask("c1", title="Bash", kind="execute", rawInput={"command": "git push origin main"})
    others = [do("terminal/create", command=command) for command in ("git diff main", "ls sub")]
    turn = await run_turn(hub, session, "\n".join([denied, *others]), deny)
    assert turn.acts == []


async def test_denial_revokes_a_similar_act_allowed_by_rule(
    hub: Hub, session: HubSession, project: Path, tally: Tally
) -> None:
    session.set_policy(parse_policy({"autoApprove": {"commands": ["touch ./made"]}}))
    by_rule = ask("c1", title="Bash", kind="execute", rawInput={"command": "touch ./made"})
    denied = ask("c2", title="Bash", kind="execute", rawInput={"command": "touch made"})
    turn = await run_turn(hub, session, f"{by_rule}\n{denied}\n{do('terminal/create', command='touch ./made')}", deny)
    assert await who_decided(hub, turn) == ["policy", "user"]
    assert not (project / "made").exists()
    tally(REFUSED, 1)


async def test_a_mode_does_not_allow_a_command_that_names_a_denied_file(
    hub: Hub, session: HubSession, project: Path, tally: Tally
) -> None:
    await session.set_mode("yolo")
    question = ask("c1", title="Work", kind="edit", rawInput={"file_path": "made", "content": "x"})
    turn = await run_turn(hub, session, f"{question}\n{do('terminal/create', command='echo x > made')}", deny)
    assert len(turn.acts) == 1
    assert not (project / "made").exists()
    tally(REFUSED, 1)


async def test_a_denial_withdraws_the_same_edit_with_other_context(
    hub: Hub, session: HubSession, project: Path, tally: Tally
) -> None:
    (project / "a.txt").write_text("x\na\ny\n")
    small = ask("c1", title="Work", kind="edit", content=[diff("a.txt", "b", "a")])
    large = ask("c2", title="Work", kind="edit", content=[diff("a.txt", "x\nb", "x\na")])
    decisions = [True, False]
    program = f"{small}\n{large}\n{do('fs/write_text_file', path='a.txt', content=NEW)}"
    await run_turn(hub, session, program, lambda event: decisions.pop(0))
    assert (project / "a.txt").read_text() == "x\na\ny\n"
    tally(REFUSED, 1)


async def test_latest_decision_about_an_act_wins(hub: Hub, session: HubSession, project: Path, tally: Tally) -> None:
    work = {"title": "Work", "kind": "execute", "rawInput": {"command": "touch made"}}
    both = "\n".join(
        f"t{number} = threading.Thread(target=lambda: {ask(f'c{number}', **work)}); t{number}.start()"
        for number in (1, 2)
    )
    prompt = await session.send(
        f"import threading\n{both}\nt1.join(); t2.join()\n{do('terminal/create', command='touch made')}"
    )
    one = await approval_asked(session)
    two = await approval_asked(session, one.seq)
    await asyncio.gather(session.decide(one.request_id, approved=True), session.decide(two.request_id, approved=False))
    await prompt.done
    assert not (project / "made").exists()
    tally(REFUSED, 1)


# -- requests that show more than one thing -------------------------------------------------------------------------


async def test_a_command_next_to_a_diff_is_shown_and_asked_about_on_its_own(
    hub: Hub, session: HubSession, project: Path, tally: Tally
) -> None:
    raw = {"file_path": "notes.txt", "command": "touch made"}
    question = ask("c1", title="Edit notes.txt", kind="edit", rawInput=raw, content=[diff("notes.txt", "x")])
    turn = await run_turn(hub, session, f"{question}\n{do('terminal/create', command='touch made')}")
    assert any("touch made" in note for note in turn.asked[0].notes)
    request = permission_request(turn.asked[0], "s")
    assert request is not None
    assert "touch made" in str(request["toolCall"]["content"])
    assert len(turn.acts) == 1
    assert not (project / "made").exists()
    tally(REFUSED, 1)


async def test_an_editor_shows_the_directory_of_a_command(hub: Hub, session: HubSession, project: Path) -> None:
    raw = {"command": "touch made", "cwd": "sub"}
    turn = await run_turn(hub, session, ask("c1", title="Work", kind="execute", rawInput=raw), deny)
    request = permission_request(turn.asked[0], "s")
    assert request is not None
    assert request["toolCall"]["content"][-1]["content"]["text"].endswith("Directory: sub")


async def test_one_shown_program_runs_once_however_it_is_spelled(
    hub: Hub, session: HubSession, project: Path, tally: Tally
) -> None:
    (project / "my tool").write_text("#!/bin/sh\necho x >> ran\n")
    (project / "my tool").chmod(0o755)
    question = ask("c1", title="Work", kind="execute", rawInput={"command": "'./my tool'", "argv": ["./my tool"]})
    acts = [do("terminal/create", command="'./my tool'"), do("terminal/create", command="./my tool")]
    turn = await run_turn(hub, session, "\n".join([question, *acts]))
    assert (project / "ran").read_text() == "x\n"
    assert len(turn.acts) == 1
    tally(REFUSED, 1)


async def test_a_program_that_looks_like_an_assignment_is_shown_quoted(
    hub: Hub, session: HubSession, project: Path
) -> None:
    turn = await run_turn(hub, session, do("terminal/create", command="A=./evil", args=["ls"]))
    assert "'A=./evil' ls" in str(turn.acts[0].preview)


# -- modes and questions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Dark", "Not yolo: ask each time"])
@pytest.mark.parametrize("is_renamed", [False, True])
async def test_a_mode_under_a_misleading_name_permits_nothing(
    hub: Hub, session: HubSession, project: Path, name: str, is_renamed: bool, tally: Tally
) -> None:
    options = [
        {
            "id": "theme",
            "name": "Colour theme",
            "category": "mode",
            "type": "select",
            "currentValue": "yolo",
            "options": [{"value": "ask", "name": "Light"}, {"value": "yolo", "name": name}],
        }
    ]
    after = [{**options[0], "options": [{"value": "yolo", "name": "Yolo"}]}] if is_renamed else options
    program = (
        f"agent.on_session_set_config_option = lambda params: {{'configOptions': {after!r}}}\n"
        f"agent.update('config_option_update', configOptions={[{**options[0], 'currentValue': 'ask'}]!r})"
    )
    await session.prompt(program)
    await session.set_config_option("theme", "yolo")
    turn = await run_turn(hub, session, do("terminal/create", command="touch made"))
    assert len(turn.acts) == 1
    assert not (project / "made").exists()
    assert all(fact["modeId"] is None for fact in facts(await history(hub.log, session.id), "mode_chosen"))
    tally(REFUSED, 1)


@pytest.mark.parametrize(("name", "expected"), [("Full access", 0), ("Half access", 1)])
async def test_a_mode_counts_under_the_name_that_its_agent_is_known_to_use(
    tmp_path: Path, project: Path, name: str, expected: int
) -> None:
    behavior = PermissionBehavior({"yolo": "everything"}, mode_names={"yolo": "Full access"})
    option = {"id": "mode", "name": "Mode", "category": "mode", "type": "select", "currentValue": "yolo"}
    options = [{**option, "options": [{"value": "ask", "name": "Ask"}, {"value": "yolo", "name": name}]}]
    program = (
        f"agent.on_session_set_config_option = lambda params: {{'configOptions': {options!r}}}\n"
        f"agent.update('config_option_update', configOptions={[{**options[0], 'currentValue': 'ask'}]!r})"
    )
    async with rogue_hub(tmp_path / "home", behavior=behavior) as hub:
        session = await hub.start_session("rogue", project)
        await session.prompt(program)
        await session.set_config_option("mode", "yolo")
        turn = await run_turn(hub, session, do("terminal/create", command="touch made"))
    assert len(turn.acts) == expected


async def test_an_answer_does_not_approve_a_replaced_question(hub: Hub, session: HubSession, tally: Tally) -> None:
    def asking(text: str) -> dict[str, Any]:
        return {"questions": [{"question": text, "options": [{"label": "Yes"}, {"label": "No"}]}]}

    start = {"title": "AskUserQuestion", "kind": "other", "rawInput": asking("Is tea nice?")}
    change = f"agent.update('tool_call_update', toolCallId='c1', rawInput={asking('Delete production?')!r})"
    program = (
        f"import threading\nthreading.Timer(.2, lambda: {change}).start()\nagent.say(json.dumps({ask('c1', **start)}))"
    )
    prompt = await session.send(program)
    first = await approval_asked(session)
    second = await approval_asked(session, first.seq)
    assert second.question_ids != first.question_ids
    shown = session.state.index.questions[second.question_ids[0]]
    assert shown.question == "Delete production?"
    with pytest.raises(HubError, match="cancelled already"):
        await session.answer(first.question_ids[0], "Yes")
    assert (await hub.log.approvals.get(second.request_id)).decision is None
    await session.decide(second.request_id, approved=False)
    await prompt.done
    tally(REFUSED, 1)


async def test_an_answer_does_not_count_for_a_later_call_of_the_same_id(
    hub: Hub, session: HubSession, project: Path, tally: Tally
) -> None:
    def asking(*texts: str) -> dict[str, Any]:
        questions = [{"question": text, "options": [{"label": "Yes"}, {"label": "No"}]} for text in texts]
        return {"title": "AskUserQuestion", "kind": "other", "rawInput": {"questions": questions}}

    first_ask = ask("c1", **asking("Is tea nice?", "Is coffee nice?"))
    program = (
        f"import threading\nthreading.Thread(target=lambda: {first_ask}).start()\n"
        "while not os.path.exists('go'): time.sleep(.01)\n"
        "agent.update('tool_call_update', toolCallId='c1', status='failed')\n"
        f"{ask('c1', **asking('Delete production?', 'Are you sure?'))}"
    )
    prompt = await session.send(program)
    first = await approval_asked(session)
    session.answer(first.question_ids[0], "Yes")
    (project / "go").touch()
    second = await approval_asked(session, first.seq)
    assert set(second.question_ids).isdisjoint(first.question_ids)
    session.answer(second.question_ids[1], "Yes")
    await session.committed()
    decisions = [(await hub.log.approvals.get(one.request_id)).decision for one in (first, second)]
    assert [(one or {}).get("resolvedBy") for one in decisions] == ["cancelled", None]  # the first call is another now
    while not prompt.done.done():
        for asked in session.state.pending_approvals:
            await session.decide(asked.request_id, approved=False)
        await asyncio.wait((prompt.done,), timeout=0.01)
    tally(REFUSED, 1)


# -- denied commands in other spellings -----------------------------------------------------------------------------

DENIED_SPELLINGS = {
    "brace": "./m{y,y}tool x",
    "pattern": "./mytoo? x",
    "variable": "a=mytool; ./$a x",
    "part in a variable": "m=./my; ${m}tool x",
    "empty substitution": "./my$()tool x",
    "shell": "sh ./mytool x",
    "wrapper": "choom -n 0 ./mytool x",
    "arguments of another program": "ls | grep mytool | xargs -I% sh -c ./%",
}


@pytest.mark.parametrize("spelling", DENIED_SPELLINGS)
async def test_a_mode_does_not_allow_what_a_rule_may_deny(
    hub: Hub, session: HubSession, project: Path, spelling: str, tally: Tally
) -> None:
    (project / "mytool").write_text("#!/bin/sh\ntouch made\n")
    (project / "mytool").chmod(0o755)
    await session.set_mode("yolo")
    session.set_policy(parse_policy({"deny": {"commands": ["mytool *", "mytool"]}}))
    turn = await run_turn(hub, session, do("terminal/create", command=DENIED_SPELLINGS[spelling]), deny)
    assert not (project / "made").exists()
    assert len(turn.acts) == 1
    tally(REFUSED, 1)


SAME_EFFECT = {
    "ansi quotes": "touch $'made'",
    "escape": "touch $'ma\\x64e'",
    "quoted part": "touch m$'a'de",
    "redirect": ": >made",
    "tee": "tee made </dev/null",
    "python": """python3 -c 'open("made","w")'""",
}
UNREADABLE = {
    "brace": "touch ma{d,d}e",
    "continued line": "touch ma\\\nde",
    "parameters": 'touch ma"$@"de',
    "default": "touch ${x:-made}",
    "substitution": "touch $(printf m; echo ade)",
    "decoded": "echo dG91Y2ggbWFkZQ== | base64 -d | sh",
    "copy": "cp /dev/null made",
}


@pytest.mark.parametrize("how", ["mode", "rule"])
@pytest.mark.parametrize("spelling", [*SAME_EFFECT, *UNREADABLE])
async def test_no_mode_or_rule_allows_a_denied_command_in_a_shell_spelling(
    hub: Hub, session: HubSession, project: Path, spelling: str, how: str, tally: Tally
) -> None:
    if how == "mode":
        await session.set_mode("yolo")
    else:
        session.set_policy(parse_policy({"autoApprove": {"commands": True, "writes": True}}))
    shown = [{"type": "content", "content": {"type": "text", "text": "```sh\ntouch made\n```"}}]
    asked = ask("c1", title="Bash", kind="execute", content=shown)
    command = {**SAME_EFFECT, **UNREADABLE}[spelling]
    turn = await run_turn(hub, session, f"{asked}\n{do('terminal/create', command=command)}", deny)
    assert not (project / "made").exists()
    assert len(turn.acts) == 1
    tally(REFUSED, 1)


CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "sandbox": ({"command": "ls", "sandbox": True}, {"command": "ls", "sandbox": False}),
    "dry run": ({"command": "ls", "dry_run": True}, {"command": "ls", "dry_run": False}),
    "dry run left out": ({"command": "ls", "dry_run": True}, {"command": "ls"}),
    "stdin": ({"command": "ls", "stdin": "a"}, {"command": "ls"}),
}


@pytest.mark.parametrize("member", CHANGES)
async def test_a_call_that_loses_a_member_is_requested_again(hub: Hub, session: HubSession, member: str) -> None:
    before, after = CHANGES[member]
    program = [
        f"agent.tool('c1', kind='execute', status='pending', rawInput={before!r})",
        "import threading",
        "asking = threading.Thread(target=lambda: agent.permission('c1'))",
        "asking.start(); time.sleep(0.3)",
        f"agent.update('tool_call_update', toolCallId='c1', rawInput={after!r})",
        "asking.join()",
    ]
    prompt = await session.send("\n".join(program))
    first = await approval_asked(session)
    second = await approval_asked(session, first.seq)
    await session.decide(second.request_id, approved=False)
    await prompt.done
    assert second.tool_input == after


# `X=1 ./t` and `./t` with X=1, and the like, are one line for the user
ONE_LINE: dict[str, tuple[dict[str, Any], list[str]]] = {
    "variable": (
        {"command": "X=1 ./t", "arguments": {"command": "./t", "env": {"X": "1"}}},
        [
            do("terminal/create", command="X=1 ./t"),
            do("terminal/create", command="./t", env=[{"name": "X", "value": "1"}]),
        ],
    ),
    "directory": (
        {"command": "cd sub && ../t", "arguments": {"command": "../t", "cwd": "sub"}},
        [do("terminal/create", command="cd sub && ../t"), do("terminal/create", command="../t", cwd="{project}/sub")],
    ),
}


@pytest.mark.parametrize("shape", ONE_LINE)
async def test_a_line_that_is_shown_once_runs_once(
    hub: Hub, session: HubSession, project: Path, shape: str, tally: Tally
) -> None:
    (project / "t").write_text(f"#!/bin/sh\necho x >> {project}/ran\n")
    (project / "t").chmod(0o755)
    raw, acts = ONE_LINE[shape]
    asked = ask("c1", title="Work", kind="execute", rawInput=raw)
    program = "\n".join([asked, *acts]).replace("{project}", str(project))
    turn = await run_turn(hub, session, program)
    assert (project / "ran").read_text() == "x\n"
    assert len(turn.acts) == 1
    tally(REFUSED, 1)


# -- stored rules ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["./post < private.txt", "./post <<< 'other data'", "cat private.txt | ./post"])
async def test_always_for_a_command_does_not_cover_it_with_other_input(
    hub: Hub, session: HubSession, project: Path, command: str, tally: Tally
) -> None:
    (project / "post").write_text("#!/bin/sh\ncat > posted\n")
    (project / "post").chmod(0o755)
    (project / "private.txt").write_text("private")
    session.set_policy(parse_policy({"autoApprove": {"commands": ["cat *"]}}))
    prompt = await session.send(ask("c1", title="Bash", kind="execute", rawInput={"command": "./post"}))
    event = await approval_asked(session)
    await session.decide(event.request_id, approved=True, remember="session")
    await prompt.done
    turn = await run_turn(hub, session, do("terminal/create", command="./post"))
    assert not turn.acts
    (project / "posted").unlink()
    turn = await run_turn(hub, session, do("terminal/create", command=command))
    assert len(turn.acts) == 1
    assert not (project / "posted").exists()
    tally(REFUSED, 1)


# -- options and questions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["allow_always", "allow_session"])
async def test_allowing_an_agent_that_only_offers_always_stores_no_rule(
    hub: Hub, session: HubSession, option: str
) -> None:
    options = [
        {"optionId": "al", "name": "Yes", "kind": option},
        {"optionId": "no", "name": "No", "kind": "reject_once"},
    ]
    prompt = await session.send(
        f"agent.permission('c1', title='Bash', kind='execute', rawInput={{'command': 'make x'}}, options={options!r})"
    )
    event = await approval_asked(session)
    assert any("only offers to always allow" in note for note in event.notes)
    # an option of an unknown kind is only chosen by its id
    chosen: dict[str, Any] = {"approved": True} if option == "allow_always" else {"option_id": "al"}
    await session.decide(event.request_id, **chosen)
    await prompt.done
    assert await hub.log.rules.active() == []


MORE_THAN_QUESTIONS: dict[str, dict[str, Any]] = {
    "member of a question": {"rawInput": {"questions": [{"question": "Which?", "then": "rm -rf victim"}]}},
    "member of a choice": {
        "rawInput": {"questions": [{"question": "Which?", "options": [{"label": "Red", "run": "rm -rf victim"}]}]}
    },
    "switch": {"rawInput": {"questions": [{"question": "Which?", "multiSelect": {"sql": "drop table users"}}]}},
    "annotations": {"rawInput": {"questions": [{"question": "Which?"}], "annotations": {"sql": "drop table users"}}},
    "content": {
        "rawInput": {"questions": [{"question": "Which?"}]},
        "content": [{"type": "content", "content": {"type": "text", "text": "```sh\nrm -rf victim\n```"}}],
    },
}


@pytest.mark.parametrize("shape", MORE_THAN_QUESTIONS)
async def test_a_tool_that_does_more_than_ask_needs_an_approval_of_its_own(
    hub: Hub, session: HubSession, shape: str
) -> None:
    asked = ask("c1", title="AskUserQuestion", name="AskUserQuestion", **MORE_THAN_QUESTIONS[shape])
    prompt = await session.send(asked)
    event = await approval_asked(session)
    assert event.question_ids == []
    await session.decide(event.request_id, approved=False)
    await prompt.done


async def test_a_second_decision_that_stores_a_rule_is_not_taken_for_the_first(hub: Hub, session: HubSession) -> None:
    prompt = await session.send(ask("c1", title="Bash", kind="execute", rawInput={"command": "make x"}))
    event = await approval_asked(session)
    first = await session.decide(event.request_id, approved=True, by="phone")
    assert await session.decide(event.request_id, approved=True, by="desk") == first
    with pytest.raises(HubError, match="already, by phone; no rule was stored"):
        await session.decide(event.request_id, approved=True, by="desk", remember="session")
    await prompt.done
    assert await hub.log.rules.active() == []
