"""The agent's methods beside prompts: its sessions on disk, modes and models, what it is started with."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from pilothouse.acp import RequestError, schema
from pilothouse.agents.claude_bridge import process, records
from pilothouse.agents.claude_bridge import records as history
from pilothouse.agents.claude_bridge.actions import Outbox
from pilothouse.agents.claude_bridge.agent import Successors, own_place
from pilothouse.agents.claude_bridge.control import Setup
from pilothouse.agents.claude_bridge.process import (
    Options,
    arguments,
    environment,
    options_from,
    program,
    remedy,
    server_config,
)
from tests.support.fake_claude import MODELS
from tests.unit.agents.claude_bridge.driving import Talk, in_memory, on_stdio


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "cli-home"))


# -- the agent --


async def test_it_says_what_it_can(tmp_path: Path) -> None:
    async with in_memory(tmp_path, open_session=False) as (talk, _):
        told = await talk.agent.initialize(protocol_version=99)
        assert told.protocol_version == 1
        assert told.agent_info.title == "Claude Code"
        assert told.agent_capabilities.load_session
        sessions = told.agent_capabilities.session_capabilities
        assert None not in (sessions.list, sessions.resume, sessions.fork, sessions.close)
        assert [method.id for method in told.auth_methods] == ["claude-login"]


async def test_mode_and_model_change_in_place(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as (talk, agent):
        pid = agent._sessions[talk.session].pid
        await talk.agent.set_session_mode(session_id=talk.session, mode_id="acceptEdits")
        answer = await talk.agent.set_config_option(session_id=talk.session, config_id="model", value="large")
        assert [option.current_value for option in answer.config_options] == ["large"]
        assert "mode acceptEdits, model fake-large" in await talk.said("recall")
        assert talk.watcher.of("current_mode_update")[-1]["currentModeId"] == "acceptEdits"
        # the turn told the model by another of its names, which is no change
        assert [update["configOptions"][0]["currentValue"] for update in talk.watcher.of("config_option_update")] in (
            [],
            ["large"],
        )
        assert agent._sessions[talk.session].pid == pid


async def test_what_the_cli_refuses_is_refused_in_its_words(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as (talk, _):
        with pytest.raises(RequestError, match="Unsupported control request"):
            await talk.agent.set_session_mode(session_id=talk.session, mode_id="nonsense")
        with pytest.raises(RequestError, match=r"expected one of default, large, small, or .* got 'nonsense'"):
            await talk.agent.set_config_option(session_id=talk.session, config_id="model", value="nonsense")
        with pytest.raises(RequestError, match="no such model"):
            await talk.agent.set_config_option(session_id=talk.session, config_id="model", value="claude-of-old")
        with pytest.raises(RequestError, match="expected one of model, mode"):
            await talk.agent.set_config_option(session_id=talk.session, config_id="colour", value="red")


async def test_a_session_is_resumed_by_another_bridge(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as (talk, _):
        await talk.prompt("say one")
    async with in_memory(tmp_path, open_session=False) as (other, _):
        await other.agent.resume_session(session_id=talk.session, cwd=str(other.work), mcp_servers=[])
        other.session = talk.session
        assert (await other.said("recall")).startswith("2 prompts")


async def test_a_session_is_loaded_with_what_was_said(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as (talk, _):
        await talk.prompt("say one")
        await talk.prompt(f"write {tmp_path}/new.txt")
    async with in_memory(tmp_path, open_session=False) as (other, _):
        await other.agent.load_session(session_id=talk.session, cwd=str(other.work), mcp_servers=[])
        assert other.watcher.said("user_message_chunk") == f"say onewrite {tmp_path}/new.txt"
        assert other.watcher.said() == "oneWritten."
        assert other.watcher.statuses()[-1] == "completed"
        other.session = talk.session
        assert (await other.said("recall")).startswith("3 prompts")


async def test_a_session_is_loaded_with_what_its_sub_agents_did(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as (talk, _):
        await talk.prompt("delegate")
    async with in_memory(tmp_path, open_session=False) as (other, _):
        await other.agent.load_session(session_id=talk.session, cwd=str(other.work), mcp_servers=[])
        calls = other.watcher.of("tool_call")
        assert [call["title"] for call in calls] == ["Look around", "ls"]
        assert calls[1]["_meta"]["claudeCode"]["parentToolUseId"] == calls[0]["toolCallId"]
        assert other.watcher.statuses() == ["pending", "pending", "completed", "completed"]


async def test_a_fork_knows_what_was_said_and_leaves_its_origin_alone(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as (talk, _):
        await talk.prompt("say one")
        forked = await talk.agent.fork_session(session_id=talk.session, cwd=str(talk.work))
        branch = Talk(talk.agent, talk.watcher, talk.work)
        branch.session = forked.session_id
        assert branch.session != talk.session
        assert (await branch.said("recall")).startswith("2 prompts")
        assert (await talk.said("recall")).startswith("2 prompts")


async def test_a_fork_has_the_mode_and_the_model_of_its_parent(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as (talk, _):
        await talk.prompt("say one")
        await talk.agent.set_session_mode(session_id=talk.session, mode_id="acceptEdits")
        await talk.agent.set_config_option(session_id=talk.session, config_id="model", value="small")
        branch = Talk(talk.agent, talk.watcher, talk.work)
        for meta, mode in (({}, "acceptEdits"), ({"claudeCode": {"options": {"permissionMode": "plan"}}}, "plan")):
            forked = await talk.agent.fork_session(session_id=talk.session, cwd=str(talk.work), **meta)
            assert forked.modes.current_mode_id == mode
            assert forked.config_options[0].current_value == "small"
            branch.session = forked.session_id
            assert f"mode {mode}, model small" in await branch.said("recall")


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("default", True),
        ("fake-small", True),
        ("large[1m]", True),
        ("opusplan", True),
        ("us.anthropic.claude-opus-4-v1", True),
        ("of-a-gateway", False),
        ("", False),
    ],
)
def test_a_model_goes_by_any_name_that_the_cli_has_for_it(name: str, taken: bool) -> None:
    setup = Setup(Outbox("s"))
    assert setup.takes("anything")  # before it has said which there are
    setup.initialized({"models": MODELS})
    assert setup.takes(name) is taken
    setup.switched("of-a-gateway")
    assert setup.takes("of-a-gateway")


async def test_what_was_cleared_does_not_come_back(tmp_path: Path) -> None:
    """The CLI goes on under another id; the session, its history and its list go with it."""
    async with in_memory(tmp_path) as (talk, _):
        await talk.prompt("say before")
        assert await talk.prompt("clear") == "end_turn"
        assert (await talk.said("recall")).startswith("2 prompts")
    async with in_memory(tmp_path, open_session=False) as (other, _):
        listed = await other.agent.list_sessions(cwd=str(talk.work))
        assert [one.session_id for one in listed.sessions] == [talk.session]
        await other.agent.load_session(session_id=talk.session, cwd=str(talk.work), mcp_servers=[])
        other.session = talk.session
        assert other.watcher.said("user_message_chunk") == "/clearrecall"
        assert (await other.said("recall")).startswith("3 prompts")
        forked = await other.agent.fork_session(session_id=talk.session, cwd=str(talk.work), mcp_servers=[])
        other.session = forked.session_id
        assert (await other.said("recall")).startswith("4 prompts")


async def test_sessions_are_listed_by_their_workspace_in_pages(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as (talk, _):
        await talk.prompt("say a first prompt")
        found = (await talk.agent.list_sessions(cwd=str(talk.work))).sessions
        assert [(one.session_id, one.cwd, one.title) for one in found] == [
            (talk.session, str(talk.work), "say a first prompt")
        ]
        assert (await talk.agent.list_sessions(cwd="/elsewhere")).sessions == []
        with pytest.raises(RequestError, match="no cursor"):
            await talk.agent.list_sessions(cursor="soon")


@pytest.mark.parametrize("session", ["7d9b6f3e-0000-4000-8000-000000000000", "../../etc/passwd", ""])
async def test_a_session_that_is_not_there_is_not_found(tmp_path: Path, session: str) -> None:
    async with in_memory(tmp_path, open_session=False) as (talk, _):
        with pytest.raises(RequestError, match="knows no session"):
            await talk.agent.resume_session(session_id=session, cwd=str(talk.work), mcp_servers=[])


async def test_a_new_session_takes_up_nothing_that_ran_before_in_its_directory(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as (talk, _):
        await talk.prompt("say before")
        await talk.open()
        said = await talk.said("recall")
        assert said.startswith("1 prompts")
        assert f"'--session-id', '{talk.session}'" in said
        assert "--continue" not in said


@pytest.mark.parametrize("method", ["session/new", "session/load", "session/resume", "session/prompt"])
async def test_a_request_without_its_parameters_is_refused_and_starts_nothing(tmp_path: Path, method: str) -> None:
    async with in_memory(tmp_path, open_session=False) as (talk, agent):
        with pytest.raises(RequestError) as refused:
            await talk.agent.connection.send_request(method, {})
        assert refused.value.code == -32602
        assert agent._sessions == {}


async def test_bad_parameters_name_their_field(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as (talk, _):
        with pytest.raises(RequestError, match="absolute path"):
            await talk.agent.new_session(cwd="work", mcp_servers=[])
        with pytest.raises(RequestError, match="is open"):
            await talk.agent.set_session_mode(session_id="nobody", mode_id="plan")
        with pytest.raises(RequestError, match="claude-login"):
            await talk.agent.authenticate(method_id="magic")


async def test_logging_in_starts_the_next_turn_with_a_fresh_process(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as (talk, agent):
        before = agent._sessions[talk.session].pid
        await talk.agent.authenticate(method_id="claude-login")
        assert await talk.said("say back") == "back"
        assert agent._sessions[talk.session].pid != before


# -- the program --


async def test_the_bridge_speaks_only_the_protocol_and_takes_options(tmp_path: Path) -> None:
    async with on_stdio(tmp_path, "--model", "small", "--max-turns", "5", "--add-dir", "/srv") as (talk, _):
        said = await talk.said("recall")
        assert "'--model', 'small', '--max-turns', '5', '--add-dir', '/srv'" in said


async def test_a_client_can_ask_for_options(tmp_path: Path) -> None:
    async with in_memory(tmp_path, open_session=False) as (talk, _):
        await talk.open(claudeCode={"options": {"permissionMode": "plan", "maxBudgetUsd": 2.5}})
        assert talk.opened.modes.current_mode_id == "plan"
        assert "'--max-budget-usd', '2.5'" in await talk.said("recall")


async def test_files_of_the_workspace_are_not_taken_for_modules(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    for name in ("logging", "msgspec", "pilothouse"):
        (tmp_path / "work" / f"{name}.py").write_text("raise SystemExit('taken')\n")
    async with on_stdio(tmp_path) as (talk, _):
        assert await talk.said("say Hello") == "Hello"


async def test_a_long_list_comes_in_pages(tmp_path: Path) -> None:
    for number in range(53):
        kept(tmp_path / "cli-home", record("user", f"Prompt {number}"), name=str(UUID(int=number)))
    async with in_memory(tmp_path, open_session=False) as (talk, _):
        first = await talk.agent.list_sessions(cwd="/work")
        rest = await talk.agent.list_sessions(cwd="/work", cursor=first.next_cursor)
        assert (len(first.sessions), len(rest.sessions), rest.next_cursor) == (50, 3, None)
        assert len({one.session_id for one in (*first.sessions, *rest.sessions)}) == 53


def test_help_is_for_people() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "pilothouse.agents.claude_bridge", "--help"], capture_output=True, text=True, check=True
    )
    assert "PILOTHOUSE_CLAUDE" in told.stdout


async def test_secrets_of_servers_are_in_a_file_that_is_removed_when_it_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that nothing of them is left when everything is killed."""
    modes: list[int] = []
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    made = process._private_file
    monkeypatch.setattr(
        process, "_private_file", lambda content: (path := made(content), modes.append(path.stat().st_mode & 0o077))[0]
    )
    async with in_memory(tmp_path, open_session=False) as (talk, _):
        server = schema.McpServerStdio(
            name="db", command="db-mcp", args=["-v"], env=[schema.EnvVariable(name="KEY", value="hush")]
        )
        talk.opened = await talk.agent.new_session(cwd=str(talk.work), mcp_servers=[server])
        talk.session = talk.opened.session_id
        assert list(tmp_path.glob("pilothouse-mcp-*")) == []
        assert modes == [0]
        assert json.loads(await talk.said("servers"))["mcpServers"]["db"]["env"] == {"KEY": "hush"}
        assert "hush" not in await talk.said("recall")


async def test_secrets_of_servers_go_with_a_start_that_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("FAKE_CLAUDE", "crash")
    async with in_memory(tmp_path, open_session=False) as (talk, _):
        server = schema.McpServerStdio(name="db", command="db-mcp", args=[], env=[])
        with pytest.raises(RequestError, match="no licence"):
            await talk.agent.new_session(cwd=str(talk.work), mcp_servers=[server])
        assert list(tmp_path.glob("pilothouse-mcp-*")) == []


# -- its parts --


def test_a_program_that_cannot_be_started_is_told_by_who_named_it() -> None:
    assert remedy("/opt/claude", {"PILOTHOUSE_CLAUDE": "/opt/claude"}).startswith("PILOTHOUSE_CLAUDE names it.")
    assert remedy("claude", {}).startswith("Install Claude Code with `npm install")


def test_the_program_is_named_by_a_variable() -> None:
    assert program({"PILOTHOUSE_CLAUDE": "/opt/claude"}) == "/opt/claude"
    assert program({}) == program({"PILOTHOUSE_CLAUDE": ""}) == "claude"


def test_the_cli_does_not_know_that_another_one_runs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("PILOTHOUSE_TOKEN", "hush")
    assert not {"CLAUDECODE", "PILOTHOUSE_TOKEN"} & environment().keys()


def test_the_cli_is_started_to_stream_to_listen_and_to_ask() -> None:
    words = arguments(Options(), ())
    assert " ".join(words) == (
        "-p --verbose --input-format stream-json --output-format stream-json --include-partial-messages"
        " --permission-prompt-tool stdio"
    )


def test_only_what_is_wanted_is_among_the_arguments() -> None:
    assert "--model" not in arguments(Options(), ())
    words = arguments(Options(model="opus", directories=("/a", "/b")), ("--resume", "x"), "/tmp/servers")
    assert words[-10:] == [
        "--resume",
        "x",
        "--model",
        "opus",
        "--mcp-config",
        "/tmp/servers",
        *_directories("/a", "/b"),
    ]


def _directories(*names: str) -> list[str]:
    return [word for name in names for word in ("--add-dir", name)]


@pytest.mark.parametrize("wanted", [None, [], {"options": 3}, {"options": {"maxTurns": "many", "model": 4}}])
def test_nonsense_among_the_options_is_left_out(wanted: Any) -> None:
    defaults = Options(model="opus", max_turns=3)
    assert options_from(defaults, wanted) == defaults


def test_servers_get_the_shape_of_the_cli() -> None:
    header = schema.HttpHeader(name="X", value="1")
    http = schema.HttpMcpServer(name="web", url="http://localhost/", headers=[header])
    told = server_config([http, schema.SseMcpServer(name="old", url="http://localhost/sse")])
    assert json.loads(told or b"") == {
        "mcpServers": {
            "web": {"type": "http", "url": "http://localhost/", "headers": {"X": "1"}},
            "old": {"type": "sse", "url": "http://localhost/sse", "headers": {}},
        }
    }
    assert server_config([]) is None


# -- history --

ID = "11111111-1111-4111-8111-111111111111"


def record(kind: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "message": {"role": kind, "content": content}, "cwd": "/work", **fields}


def kept(home: Path, *records: Any, name: str = ID) -> Path:
    place = home / "projects" / "-work"
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"{name}.jsonl"
    path.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in records) + "\n")
    return path


def test_a_title_is_the_one_given_else_the_first_words(tmp_path: Path) -> None:
    kept(tmp_path / "a", {"type": "queue-operation"}, record("user", "Mend the pump\nplease"))
    kept(tmp_path / "b", record("user", "Mend it"), {"type": "ai-title", "aiTitle": "Pump"})
    assert [one["title"] for one in history.listing(tmp_path / "a")] == ["Mend the pump …"]
    assert [one["title"] for one in history.listing(tmp_path / "b")] == ["Pump"]


def test_a_record_with_half_a_character_is_told_without_it(tmp_path: Path) -> None:
    path = kept(tmp_path, record("user", "Mend \ud83d it"))
    told = [said for each in history.records(path) for said in records.told(each)]
    assert [one["content"]["text"] for one in told] == ["Mend \ufffd it"]


def test_what_the_cli_put_in_is_not_told_as_the_users_words(tmp_path: Path) -> None:
    path = kept(
        tmp_path,
        "{ broken",
        record("user", "Caveat", isMeta=True),
        record("user", "to a sub-agent", isSidechain=True),
        record("user", "<command-name>/review</command-name> <command-args>a.py</command-args>"),
        record("user", [{"type": "text", "text": "<system-reminder>x</system-reminder>"}]),
        record("user", "[Request interrupted by user]"),
        record("user", [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}]),
        [1, 2],
    )
    told = [said for each in history.records(path) for said in records.told(each)]
    assert [one["content"] for one in told] == [
        {"type": "text", "text": "/review a.py"},
        {"type": "image", "data": "AA==", "mimeType": "image/png"},
    ]


def test_a_home_that_is_not_there_has_no_sessions(tmp_path: Path) -> None:
    assert list(history.listing(tmp_path / "nowhere")) == []
    assert history.find(tmp_path / "nowhere", ID) is None


def test_a_file_without_a_turn_is_found_and_is_no_session(tmp_path: Path) -> None:
    path = kept(tmp_path, {"type": "queue-operation", "cwd": "/work"})
    assert history.find(tmp_path, ID) == path
    assert not history.has_turns(path)
    assert list(history.listing(tmp_path)) == []


def test_the_home_is_where_the_cli_has_it() -> None:
    assert history.cli_home({"CLAUDE_CONFIG_DIR": "/x"}) == Path("/x")
    assert history.cli_home({"HOME": "/home/me"}) == Path("/home/me/.claude")


def in_folder(home: Path, folder: str, cwd: str, *records: Any) -> None:
    place = home / "projects" / folder
    place.mkdir(parents=True)
    lines = (record("user", "Mend it") | {"cwd": cwd}, *records)
    (place / f"{ID}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_a_workspace_is_found_by_a_symbolic_link_to_it(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    in_folder(tmp_path / "home", re.sub(r"[^a-zA-Z0-9]", "-", str(real)), str(real))
    for cwd, count in ((real, 1), (link, 1), (tmp_path, 0)):
        assert len(list(history.listing(tmp_path / "home", str(cwd)))) == count


def test_a_workspace_with_a_long_path_is_found_though_its_folder_is_named_otherwise(tmp_path: Path) -> None:
    long = "/" + "d" * 300
    in_folder(tmp_path, f"-{'d' * 199}-1x2y3z", long)
    assert [one["cwd"] for one in history.listing(tmp_path, long)] == [long]
    assert list(history.listing(tmp_path, long + "d")) == []


def test_a_title_that_was_given_late_in_a_long_session_is_seen(tmp_path: Path) -> None:
    filler = [record("assistant", "x" * 1000) for _ in range(400)]
    in_folder(tmp_path, "-work", "/work", *filler, {"type": "custom-title", "customTitle": "Pumps"})
    assert [one["title"] for one in history.listing(tmp_path)] == ["Pumps"]


def test_a_session_that_begins_with_a_picture_is_listed(tmp_path: Path) -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 600_000}}
    asked = record("user", [picture, {"type": "text", "text": "What is this?"}])
    kept(tmp_path, asked, record("assistant", [{"type": "text", "text": "A boat."}]))
    assert [one["title"] for one in history.listing(tmp_path)] == ["What is this?"]


def test_no_session_is_called_by_the_command_that_cleared_it(tmp_path: Path) -> None:
    kept(tmp_path, record("user", "<command-name>/clear</command-name>"), record("user", "Mend it"))
    assert [one["title"] for one in history.listing(tmp_path)] == ["Mend it"]


# -- conversations that follow others --

OTHER = "22222222-2222-4222-8222-222222222222"


def test_a_session_goes_on_where_it_was_moved_to(tmp_path: Path) -> None:
    successors = Successors(tmp_path / "own")
    assert (successors.current(ID), successors.all()) == (ID, set())
    successors.moved(ID, OTHER)
    assert (Successors(tmp_path / "own").current(ID), successors.all()) == (OTHER, {OTHER})
    assert (tmp_path / "own").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("bad", ["../x", "", "x" * 5000, f"{OTHER}/.."])
def test_only_ids_are_written_down_and_read(tmp_path: Path, bad: str) -> None:
    successors = Successors(tmp_path)
    successors.moved(ID, bad)
    successors.moved(bad, ID)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / ID).write_text(bad)
    assert successors.current(ID) == ID


def test_a_place_that_cannot_be_written_to_fails_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    successors = Successors(tmp_path / "file" / "own")
    successors.moved(ID, OTHER)
    assert (successors.current(ID), successors.all()) == (ID, set())
    assert "cannot write down" in caplog.text


def test_what_is_written_down_is_in_the_directory_of_pilothouse() -> None:
    assert own_place({"PILOTHOUSE_HOME": "/x"}) == Path("/x/claude")
    assert own_place({}).name == "claude"
