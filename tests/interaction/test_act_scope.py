"""What an approval does not cover, although its request mentions it, and what a mode or a denial covers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pilothouse.adapters.catalog import PermissionBehavior
from pilothouse.hub.approvals.authorization import Authorization
from pilothouse.hub.client.refusals import CannotStart
from pilothouse.hub.client.terminals import Terminals
from pilothouse.hub.hub import Hub
from pilothouse.hub.session.session import HubSession
from pilothouse.model.events import ApprovalRequestedEvent, CustomEvent
from pilothouse.model.policy import parse_policy
from tests.support.hubs import approval_asked, check, history, until
from tests.support.rogue import REFUSED, Tally, ask, deny, do, rogue_hub, run_turn


def write(path: str, content: str) -> str:
    return do("fs/write_text_file", path=path, content=content)


def text(value: str) -> list[dict[str, Any]]:
    return [{"type": "content", "content": {"type": "text", "text": value}}]


# -- commands that are shown with something else ----------------------------------------------------------------------

RUN = {"command": "touch made"}
MENTIONED: dict[str, dict[str, Any]] = {
    "directory of a script": {"rawInput": {"commands": ["cd sub", "touch made"]}},
    "end of a script": {"rawInput": {"commands": ["exit 0", "touch made"]}},
    "document of a script": {"rawInput": {"commands": ["cat <<EOF", "touch made", "EOF"]}},
    "continued line": {"rawInput": {"commands": ["echo \\", "touch made"]}},
    "blocks": {"content": text("First\n```sh\ncd sub\n```\nthen\n```sh\ntouch made\n```")},
    "prompt lines": {"content": text("$ ssh staging\n$ touch made")},
    "dry run": {"rawInput": {**RUN, "dry_run": True}},
    "sandbox": {"rawInput": {**RUN, "sandbox": True}},
    "host": {"rawInput": {**RUN, "host": "staging"}},
    "directory of another object": {"rawInput": {"cwd": "sub", "arguments": RUN}},
    "directory under another name": {"rawInput": {**RUN, "chdir": "sub"}},
    "tool of a server": {"name": "mcp__staging__exec", "rawInput": RUN},
}


@pytest.mark.parametrize("shape", MENTIONED)
async def test_a_command_that_is_only_part_of_a_request_is_asked_about(
    hub: Hub, session: HubSession, project: Path, shape: str, tally: Tally
) -> None:
    asked = ask("c1", **{"title": "Bash", "kind": "execute", **MENTIONED[shape]})
    turn = await run_turn(hub, session, f"{asked}\n{do('terminal/create', **RUN)}")
    assert not (project / "made").exists()
    (act,) = turn.acts
    assert act.notes == ["You allowed this command only together with everything else in its request."]
    tally(REFUSED, 1)


@pytest.mark.parametrize("streamed", ['{"command": "tou', '{"command": "touch made"', '{"command": "touch made"}'])
async def test_arguments_that_were_streamed_as_text_are_not_another_command(
    hub: Hub, session: HubSession, project: Path, streamed: str
) -> None:
    program = [
        f"agent.tool('c1', kind='execute', status='in_progress', content={text(streamed)!r})",
        ask("c1", title="Bash", kind="execute", rawInput=RUN),
        do("terminal/create", **RUN),
    ]
    turn = await run_turn(hub, session, "\n".join(program))
    assert turn.acts == []
    assert (project / "made").exists()


async def test_a_write_by_the_tool_of_a_server_does_not_cover_a_write_by_the_hub(
    hub: Hub, session: HubSession, project: Path, tally: Tally
) -> None:
    raw = {"file_path": "made", "content": "x\n"}
    asked = ask("c1", title="Write", kind="edit", name="mcp__staging__write", rawInput=raw)
    turn = await run_turn(hub, session, f"{asked}\n{write('made', raw['content'])}")
    assert len(turn.acts) == 1
    assert not (project / "made").exists()
    tally(REFUSED, 1)


async def test_a_title_with_underscores_is_not_the_tool_of_a_server(
    hub: Hub, session: HubSession, project: Path
) -> None:
    diff = {"type": "diff", "path": "__init__.py", "oldText": None, "newText": "x\n"}
    asked = ask("c1", title="Change __init__.py", kind="other", content=[diff])
    turn = await run_turn(hub, session, f"{asked}\n{write('__init__.py', 'x' + chr(10))}")
    assert turn.acts == []
    assert (project / "__init__.py").exists()


# -- modes ------------------------------------------------------------------------------------------------------------

ANSWERS = {
    "stays": "agent.update('current_mode_update', currentModeId='yolo')\n    return {}",
    "refuses": "return {'error': {'code': -32603, 'message': 'no'}}",
    "is silent": "return None",
}


@pytest.mark.parametrize("how", ANSWERS)
async def test_a_mode_that_the_agent_does_not_leave_permits_nothing(
    hub: Hub, session: HubSession, project: Path, how: str, tally: Tally
) -> None:
    await session.set_mode("yolo")
    await session.prompt(f"def answer(params):\n    {ANSWERS[how]}\nagent.on_session_set_mode = answer")
    leaving = asyncio.ensure_future(session.set_mode("ask"))
    await until(session, lambda event: isinstance(event, CustomEvent) and event.data == {"modeId": None})
    turn = await run_turn(hub, session, do("terminal/create", **RUN))
    leaving.cancel()
    await asyncio.wait((leaving,))
    assert len(turn.acts) == 1
    assert not (project / "made").exists()
    tally(REFUSED, 1)


async def test_a_mode_option_that_the_agent_does_not_change_permits_nothing(
    tmp_path: Path, project: Path, behavior: PermissionBehavior, tally: Tally
) -> None:
    async with rogue_hub(tmp_path / "home", "options", behavior=behavior) as hub:
        session = await hub.start_session("rogue", project)
        await session.set_config_option("mode", "yolo")
        ignoring = "agent.on_session_set_config_option = lambda params: {'configOptions': agent.config_options()}"
        first = await run_turn(hub, session, f"{ignoring}\n{do('terminal/create', command='true')}")
        await session.set_config_option("mode", "ask")
        turn = await run_turn(hub, session, do("terminal/create", **RUN))
    assert (len(first.acts), len(turn.acts)) == (0, 1)
    assert not (project / "made").exists()
    tally(REFUSED, 1)


# -- denials ----------------------------------------------------------------------------------------------------------

NAMED_LINKS: dict[str, dict[str, Any]] = {
    "argument": {"kind": "other", "rawInput": {"path": "link", "text": "x\n"}},
    "location": {"locations": [{"path": "link"}]},
    "path next to a diff": {"rawInput": {"file_path": "link"}},
}


@pytest.mark.parametrize("shape", NAMED_LINKS)
async def test_no_mode_writes_the_file_of_a_link_that_a_denied_request_names(
    hub: Hub, session: HubSession, project: Path, shape: str, tally: Tally
) -> None:
    (project / "real").write_text("old\n")
    (project / "link").symlink_to("real")
    await session.set_mode("yolo")
    diff = {"type": "diff", "path": "other", "oldText": None, "newText": "x\n"}
    asked = ask("c1", **{"title": "Work", "kind": "edit", "content": [diff], **NAMED_LINKS[shape]})
    turn = await run_turn(hub, session, f"{asked}\n{write('real', 'x' + chr(10))}", deny)
    assert (project / "real").read_text() == "old\n"
    assert turn.acts == []
    tally(REFUSED, 1)


async def test_a_second_denied_request_of_the_same_title_keeps_the_words_of_the_first(
    hub: Hub, session: HubSession, project: Path, tally: Tally
) -> None:
    await session.set_mode("yolo")
    asked = [ask(name, title="Work", kind="edit", content=text(f"I will write {name}.txt")) for name in "ab"]
    turn = await run_turn(hub, session, "\n".join([*asked, write("a.txt", "x\n")]), deny)
    assert len(turn.acts) == 1
    assert not (project / "a.txt").exists()
    tally(REFUSED, 1)


async def test_a_denied_act_that_was_in_progress_and_failed_is_not_covered_again(
    hub: Hub, session: HubSession, project: Path, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    start, denied = Terminals.start, asyncio.Event()

    async def fail_after_denial(self: Terminals, *args: Any) -> str:
        if denied.is_set():
            return await start(self, *args)
        (project / "starting").touch()
        await denied.wait()
        raise CannotStart("not now")

    deny_effects = Authorization.deny

    def deny_and_set(self: Authorization, *args: Any) -> None:
        deny_effects(self, *args)
        denied.set()

    monkeypatch.setattr(Terminals, "start", fail_after_denial)
    monkeypatch.setattr(Authorization, "deny", deny_and_set)
    asked = [ask(name, title="Work", kind="execute", rawInput=RUN) for name in ("c1", "c2")]
    program = (
        f"{asked[0]}\nimport threading\n"
        f"act = threading.Thread(target=agent.request, args=('terminal/create',), kwargs={RUN!r}); act.start()\n"
        f"while not os.path.exists('starting'): time.sleep(0.01)\n{asked[1]}\nact.join()\n"
    )
    decisions = [True, False]
    turn = await run_turn(hub, session, program + do("terminal/create", **RUN), decide=lambda event: decisions.pop(0))
    assert "error" in turn.answers[-1]
    assert turn.acts == []
    assert not (project / "made").exists()
    tally(REFUSED, 1)


@pytest.mark.parametrize("command", ["mv sub2 sub", "rm -rf ./sub", "cp -r sub2/. sub", "tar -xf sub2.tar -C sub"])
async def test_no_mode_replaces_the_directory_of_a_denied_file(
    hub: Hub, session: HubSession, project: Path, command: str, tally: Tally
) -> None:
    (project / "sub" / "a.txt").write_text("old\n")
    (project / "sub2").mkdir()
    (project / "sub2" / "a.txt").write_text("new\n")
    await session.set_mode("yolo")
    asked = ask("c1", title="Edit", kind="edit", rawInput={"file_path": "sub/a.txt", "content": "new\n"})
    acts = [do("terminal/create", command="ls sub"), do("terminal/create", command=command)]
    turn = await run_turn(hub, session, "\n".join([asked, *acts]), deny)
    (act,) = turn.acts
    assert act.notes[-1] == "You denied something similar in this turn: `sub/a.txt`."
    assert (project / "sub" / "a.txt").read_text() == "old\n"
    tally(REFUSED, 1)


FLOODS = {
    "files": ask("c1", title="Work", kind="other", rawInput={"paths": [*(f"{n:0200}" for n in range(1100)), "made"]}),
    "requests": "\n".join(ask(f"c{n}", title=f"Work {n}", kind="edit", content=text(f"{n}")) for n in range(100))
    + "\n"
    + ask("c", title="Work", kind="edit", content=text("I will write made")),
}


@pytest.mark.parametrize("flood", FLOODS)
async def test_no_mode_allows_what_too_many_denials_leave_unknown(
    hub: Hub, session: HubSession, project: Path, flood: str, tally: Tally
) -> None:
    await session.set_mode("yolo")
    turn = await run_turn(hub, session, f"{FLOODS[flood]}\n{write('made', 'x' + chr(10))}", deny)
    assert len(turn.acts) == 1
    assert not (project / "made").exists()
    tally(REFUSED, 1)


# -- while the user is asked ------------------------------------------------------------------------------------------


async def test_a_second_request_that_changes_the_call_withdraws_the_first(hub: Hub, session: HubSession) -> None:
    first = ask("c1", title="List files", kind="execute")
    second = ask("c1", title="List files", kind="execute", rawInput={"command": "rm -rf victim"})
    program = [
        "import threading",
        "agent.tool('c1', kind='execute', status='pending')",
        f"one = threading.Thread(target=lambda: {first}); one.start()",
        "while not os.path.exists('asked'): time.sleep(0.01)",
        f"two = threading.Thread(target=lambda: {second}); two.start()",
        "one.join(); two.join()",
    ]
    prompt = await session.send("\n".join(program))
    asked = [await approval_asked(session)]
    (Path(session.cwd) / "asked").touch()
    for _ in range(2):
        asked.append(await approval_asked(session, asked[-1].seq))
    assert ["rm -rf victim" in str(event.preview) for event in asked] == [False, True, True]
    record = await hub.log.approvals.get(asked[0].request_id)
    assert record.decision is not None
    assert record.decision["resolvedBy"] == "cancelled"
    for event in asked[1:]:
        await session.decide(event.request_id, approved=False)
    await prompt.done


ACTS = {"write": write("made", "x\n"), "command": do("terminal/create", **RUN)}


@pytest.mark.parametrize("kind", ACTS)
async def test_a_rule_that_is_set_while_the_user_is_asked_denies_the_act(
    hub: Hub, session: HubSession, project: Path, kind: str, tally: Tally
) -> None:
    def allow_under_rule(event: ApprovalRequestedEvent) -> bool:
        session.set_policy(parse_policy({"deny": {"writes": ["made"], "commands": ["touch *"]}}))
        return True

    turn = await run_turn(hub, session, ACTS[kind], decide_acts=allow_under_rule)
    assert "error" in turn.answers[-1]
    assert not (project / "made").exists()
    check(await history(hub.log, session.id))
    tally(REFUSED, 1)


NO_OBJECTS = [
    ("params", None),
    ("params", []),
    ("params", "x"),
    ("params.toolCall", {}),
    ("params.toolCall", {"toolCall": []}),
]


@pytest.mark.parametrize(("field", "params"), NO_OBJECTS)
async def test_a_request_that_shows_nothing_is_an_error(hub: Hub, session: HubSession, field: str, params: Any) -> None:
    message = {"id": 900, "method": "session/request_permission", "params": params}
    turn = await run_turn(hub, session, f"agent.send({message!r}); agent.say(json.dumps(agent.wait(900)))")
    assert turn.asked == []
    error = turn.answers[0]["error"]
    assert (error["code"], error["data"]["field"]) == (-32602, field)
