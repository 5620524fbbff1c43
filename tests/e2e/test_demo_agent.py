"""The scripted agent as a real process, driven by our client: every command, and what sessions promise."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pilothouse.acp import (
    RequestError,
    StreamDirection,
    StreamEvent,
    image_block,
    resource_link_block,
    spawn_agent_process,
    text_block,
)
from pilothouse.acp.methods import CLIENT
from pilothouse.agents.demo import talk as media
from pilothouse.agents.demo.script import COMMANDS
from tests.support.demo_talk import (
    COMMAND,
    MinimalClient,
    Talk,
    talk,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

SCHEMA = json.loads(Path(__file__).parents[2].joinpath("schema/acp-v1.unstable.schema.json").read_text())
STABLE_SCHEMA = json.loads(Path(__file__).parents[2].joinpath("schema/acp-v1.schema.json").read_text())


# -- the connection ---------------------------------------------------------------------------------------------------


async def test_initialize_answers_version_1_and_what_is_really_there(tmp_path: Path) -> None:
    client: Any = MinimalClient(tmp_path)
    async with spawn_agent_process(client, *COMMAND) as (agent, _):
        answer = await agent.initialize(protocol_version=7)
        assert answer.protocol_version == 1
        assert answer.auth_methods == []
        assert answer.agent_info is not None
        assert answer.agent_info.name == "pilothouse-demo"
        capabilities = answer.agent_capabilities
        assert capabilities.load_session
        assert capabilities.prompt_capabilities.image
        assert capabilities.prompt_capabilities.embedded_context
        for name in ("list", "resume", "close", "delete", "fork"):
            assert getattr(capabilities.session_capabilities, name) is not None
        assert await agent.authenticate(method_id="none") is not None
        with pytest.raises(RequestError) as refused:
            await agent.authenticate(method_id="password")
        assert refused.value.code == -32602
        assert await agent.logout() is not None


async def test_everything_stable_occurs_and_fits_the_schema(tmp_path: Path) -> None:
    """All 14 stable updates, every client method, and nothing that the schema would not allow."""
    seen: list[dict[str, Any]] = []

    def observe(event: StreamEvent) -> None:
        if event.direction is StreamDirection.INCOMING:
            seen.append(event.message)

    async with talk(tmp_path, observers=[observe]) as it:
        for command in ("markdown", "think", "tools", "plan", "image", "edit", "read", "bash", "kill", "subagent"):
            await it.prompt(command)
        for command in (
            "permission",
            "question",
            "ext",
            "commands",
            "mode plan",
            "config",
            "usage",
            "title A",
            "title",
        ):
            await it.prompt(command)
        for command in ("notice", "compact", "mode code", "help", "tour"):
            await it.prompt(command)
        await it.agent.load_session(cwd=str(tmp_path), session_id=it.session)
    updates = {m["params"]["update"]["sessionUpdate"] for m in seen if m.get("method") == "session/update"}
    assert updates == stable_updates()
    called = {message["method"] for message in seen if "method" in message}
    assert called - {"_pilothouse.dev/ping", "_pilothouse.dev/noted"} == {m.wire for m in CLIENT if m.stable}
    definitions = {
        d["x-method"]: d for d in SCHEMA["$defs"].values() if d.get("x-side") == "client" and "x-method" in d
    }
    checks = {}
    for message in seen:
        name = message.get("method", "")
        if name in definitions:
            check = checks.setdefault(name, _params_check(name))
            check.validate(message["params"])


def stable_updates() -> set[str]:
    return {
        variant["properties"]["sessionUpdate"]["const"] for variant in STABLE_SCHEMA["$defs"]["SessionUpdate"]["oneOf"]
    }


def _params_check(method: str) -> Any:
    (name,) = [
        name
        for name, d in SCHEMA["$defs"].items()
        if d.get("x-method") == method and d.get("x-side") == "client" and not name.endswith("Response")
    ]
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]})


async def test_every_command_is_listed_by_help_and_offered_to_the_client(full: Talk) -> None:
    table = await full.says("help")
    for command in COMMANDS:
        assert f"| `{command.usage}` |" in table
    await full.prompt("commands")
    (update,) = full.client.of("available_commands_update")
    assert [command.name for command in update.available_commands] == [command.name for command in COMMANDS]


# -- talking ----------------------------------------------------------------------------------------------------------


async def test_echo_says_exactly_its_text(full: Talk) -> None:
    assert await full.says("echo  two  spaces\nand a line \n") == " two  spaces\nand a line \n"
    assert await full.says("/echo as a slash command") == "as a slash command"
    assert await full.says("ECHO x") == "x"
    assert await full.says("echo") == ""


async def test_unknown_words_get_an_answer_that_names_help(full: Talk) -> None:
    assert "`help`" in await full.says("do something clever")
    assert "`help`" in await full.says("")
    blocks = [image_block(media.png(), "image/png"), resource_link_block("a", "file:///a")]
    await full.agent.prompt(session_id=full.session, prompt=blocks)
    assert "`image/png`" in full.client.text
    assert "`file:///a`" in full.client.text


async def test_a_prompt_reports_its_usage(full: Talk) -> None:
    usage = (await full.prompt("echo 12345678")).usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (4, 2, 6)


async def test_markdown_comes_in_chunks_of_one_message(full: Talk) -> None:
    text = await full.says("markdown")
    chunks = full.client.of("agent_message_chunk")
    assert len(chunks) > 20
    assert len({chunk.message_id for chunk in chunks}) == 1
    for part in ("# A heading", "- [x] written", "| apple |", "```python", "](https://"):
        assert part in text


async def test_think_thinks_before_it_answers_unless_told_not_to(full: Talk) -> None:
    await full.prompt("think")
    kinds = [update.session_update for update in full.client.updates]
    assert kinds[0] == "agent_thought_chunk"
    assert kinds[-1] == "agent_message_chunk"
    await full.agent.set_config_option(config_id="thoughts", session_id=full.session, value=False)
    full.client.updates.clear()
    await full.prompt("think")
    assert not full.client.of("agent_thought_chunk")


async def test_plan_steps_through_every_status(full: Talk) -> None:
    await full.prompt("plan")
    plans = [[entry.status for entry in update.entries] for update in full.client.of("plan")]
    assert plans[0] == ["pending"] * 3
    assert plans[1] == ["in_progress", "pending", "pending"]
    assert plans[-1] == ["completed"] * 3


async def test_image_sends_a_valid_picture_a_valid_sound_and_resources(full: Talk) -> None:
    await full.prompt("image")
    blocks = [update.content for update in full.client.of("agent_message_chunk")]
    assert [block.type for block in blocks] == ["text", "image", "audio", "resource_link", "resource", "resource"]
    picture = base64.b64decode(blocks[1].data)
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", picture[16:24])
    data_at = picture.index(b"IDAT") + 4
    (size,) = struct.unpack(">I", picture[data_at - 8 : data_at - 4])
    assert len(zlib.decompress(picture[data_at : data_at + size])) == height * (1 + 3 * width)
    sound = base64.b64decode(blocks[2].data)
    assert sound[:4] + sound[8:12] == b"RIFFWAVE"
    assert struct.unpack("<I", sound[4:8])[0] == len(sound) - 8
    assert blocks[4].resource.text == "A note.\n"
    assert base64.b64decode(blocks[5].resource.blob).startswith(b"\x89PNG")


async def test_big_is_one_chunk_of_that_many_bytes(full: Talk) -> None:
    assert len(await full.says("big 3000000")) == 3_000_000
    assert len(full.client.of("agent_message_chunk")) == 1
    assert len(await full.says("big")) == 1024 * 1024
    assert "from 0 to" in await full.says("big 99999999999")
    assert "whole number" in await full.says("big much")


async def test_flood_arrives_complete_and_in_order(full: Talk) -> None:
    assert await full.says("flood 5000") == "".join(f"{i}\n" for i in range(5000))
    assert len(full.client.of("agent_message_chunk")) == 5000


async def test_slow_streams_and_can_be_cancelled_at_once(full: Talk) -> None:
    turn = full.start("slow 60")
    await full.client.until(lambda: len(full.client.of("agent_message_chunk")) >= 2)
    await full.cancelled(turn)
    assert full.client.text.startswith("0.1 s\n0.2 s\n")
    assert await full.says("echo next") == "next"


# -- tools ------------------------------------------------------------------------------------------------------------


async def test_tools_shows_one_call_of_every_kind(full: Talk) -> None:
    await full.prompt("tools")
    calls = full.client.calls
    kinds = ["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"]
    assert [call["kind"] for call in calls.values()] == kinds
    for call in calls.values():
        last = "failed" if call["kind"] == "fetch" else "completed"
        assert call["statuses"] == ["pending", "in_progress", last]
        assert call["locations"][0].path == str(full.cwd / "main.py")
        assert call["locations"][0].line is not None


async def test_read_goes_through_the_client_or_to_the_disk(full: Talk, minimal: Talk, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    assert "one\ntwo" in await full.says("read a.txt")
    assert full.client.used == ["read"]
    call = full.client.only_call()
    assert call["statuses"] == ["pending", "in_progress", "completed"]
    assert call["locations"][0].path == str(tmp_path / "a.txt")
    assert "one\ntwo" in await minimal.says("read")


async def test_read_of_a_missing_file_is_a_failed_call(full: Talk, minimal: Talk) -> None:
    for it in (full, minimal):
        assert "there is no such file" in await it.says("read missing.txt")
        assert it.client.only_call()["statuses"][-1] == "failed"
        assert "nothing to read" in await it.says("read")


async def test_paths_outside_of_the_session_are_refused(full: Talk, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret").write_text("secret")
    (full.cwd / "link").symlink_to(outside)
    for name in ("../x", "/etc/passwd", "link/secret", "."):
        assert "is not a file inside of" in await full.says(f"read {name}")
        assert "is not a file inside of" in await full.says(f"edit {name} text")
    assert full.client.used == []
    assert full.client.asked == []
    assert (outside / "secret").read_text() == "secret"


async def test_edit_asks_writes_and_reports_the_diff(either: Talk, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old\n")
    await either.prompt("edit a.txt new text")
    ((asked, options),) = either.client.asked
    assert {option.kind for option in options} == {"allow_once", "allow_always", "reject_once"}
    assert (asked.kind, asked.content[0].old_text, asked.content[0].new_text) == ("edit", "old\n", "new text\n")
    assert (tmp_path / "a.txt").read_text() == "new text\n"
    call = either.client.only_call()
    assert call["statuses"] == ["pending", "in_progress", "completed"]
    assert call["content"][0].new_text == "new text\n"
    assert call["content"][0].path == str(tmp_path / "a.txt")
    assert "write" in getattr(either.client, "used", ["write"])


async def test_edit_of_a_new_file_has_no_old_text(full: Talk) -> None:
    await full.prompt("edit")
    assert full.client.only_call()["content"][0].old_text is None
    assert (full.cwd / "demo.txt").read_text() == "The scripted agent was here.\n"


async def test_a_rejected_edit_is_not_written(either: Talk, tmp_path: Path) -> None:
    either.client.choice = "reject_once"
    assert "It was rejected" in await either.says("edit a.txt new text")
    assert either.client.only_call()["statuses"] == ["pending", "failed"]
    assert list(tmp_path.iterdir()) == []
    assert "write" not in getattr(either.client, "used", [])


async def test_always_is_remembered_for_the_session_and_the_kind(full: Talk) -> None:
    full.client.choice = "allow_always"
    await full.prompt("edit a.txt 1")
    full.client.choice = "reject_once"
    await full.prompt("edit a.txt 2")
    assert (full.cwd / "a.txt").read_text() == "2\n"
    assert "It was rejected" in await full.says("bash echo no")
    await full.prompt("mode ask")
    assert "It was rejected" in await full.says("edit a.txt 3")
    session = (await full.agent.new_session(cwd=str(full.cwd))).session_id
    await full.agent.prompt(session_id=session, prompt=[text_block("edit a.txt 4")])
    assert (full.cwd / "a.txt").read_text() == "2\n"


async def test_in_plan_mode_nothing_is_written_or_run(full: Talk) -> None:
    await full.agent.set_session_mode(session_id=full.session, mode_id="plan")
    assert "plan mode" in await full.says("edit a.txt text")
    assert "plan mode" in await full.says("bash touch b.txt")
    assert full.client.asked == []
    assert list(full.cwd.iterdir()) == []


async def test_a_client_that_cannot_ask_counts_as_a_no(tmp_path: Path) -> None:
    class Mute:
        def __init__(self) -> None:
            self.text = ""

        async def session_update(self, session_id: str, update: Any) -> None:
            self.text += getattr(getattr(update, "content", None), "text", "")

    client: Any = Mute()
    async with spawn_agent_process(client, *COMMAND, on_diagnostic=lambda _: None) as (agent, _):
        session = (await agent.new_session(cwd=str(tmp_path))).session_id
        for command in ("edit a.txt text", "bash touch b.txt", "permission", "ext"):
            response = await agent.prompt(session_id=session, prompt=[text_block(command)])
            assert response.stop_reason == "end_turn"
    assert "could not be asked for permission" in client.text
    assert list(tmp_path.iterdir()) == []


async def test_bash_runs_in_a_terminal_of_the_client(full: Talk) -> None:
    assert "hello from the terminal" in await full.says("bash")
    assert full.client.used == ["create", "wait", "output", "release"]
    call = full.client.only_call()
    assert call["statuses"] == ["pending", "in_progress", "completed"]
    assert call["content"][0].type == "terminal"
    assert call["raw_output"]["exitCode"] == 0
    assert "exit code 3" in await full.says("bash pwd; exit 3")
    failed = list(full.client.calls.values())[1]
    assert failed["statuses"][-1] == "failed"
    assert failed["raw_output"]["output"].strip() == str(full.cwd.resolve())


async def test_bash_without_terminals_streams_the_output_itself(minimal: Talk) -> None:
    assert "exit code 3" in await minimal.says("bash pwd; echo to stderr >&2; exit 3")
    call = minimal.client.only_call()
    assert call["statuses"][-1] == "failed"
    assert call["content"][0].content.text == f"{minimal.cwd.resolve()}\nto stderr\n"


async def test_bash_does_not_wait_for_what_it_leaves_in_the_background(full: Talk, minimal: Talk) -> None:
    for it in (full, minimal):
        assert "exit code 0" in await it.says("bash sleep 30 & echo started")


async def test_a_rejected_command_is_not_run(full: Talk) -> None:
    full.client.choice = "reject_once"
    assert "It was rejected" in await full.says("bash touch x")
    assert list(full.cwd.iterdir()) == []
    assert full.client.used == []


async def test_kill_ends_a_long_command(full: Talk, minimal: Talk) -> None:
    assert "killed by SIGKILL" in await full.says("kill")
    assert full.client.used == ["create", "kill", "wait", "output", "release"]
    assert "killed by SIGKILL" in await minimal.says("kill")
    assert minimal.client.only_call()["statuses"] == ["pending", "in_progress", "completed"]


async def test_subagent_links_its_calls_to_their_parent(full: Talk) -> None:
    await full.prompt("subagent")
    (parent, *nested) = full.client.calls
    assert len(nested) == 2
    for call in nested:
        assert full.client.calls[call]["field_meta"] == {"pilothouse": {"parentToolCallId": parent}}
    assert "field_meta" not in full.client.calls[parent]
    assert all(call["statuses"][-1] == "completed" for call in full.client.calls.values())


# -- questions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "word"),
    [("allow_once", "allowed"), ("allow_always", "allowed"), ("reject_once", "not"), ("reject_always", "not")],
)
async def test_permission_reports_what_was_chosen(full: Talk, kind: str, word: str) -> None:
    full.client.choice = kind
    assert f"so it is {word}" in await full.says("permission")
    assert full.client.only_call()["statuses"][-1] == ("completed" if word == "allowed" else "failed")
    assert len(full.client.asked[0][1]) == 4


async def test_question_asks_by_form_and_by_page(full: Talk) -> None:
    said = await full.says("question")
    types = [schema.type for schema in full.client.schema.properties.values()]
    assert types == ["string", "integer", "number", "boolean", "string", "array"]
    assert "- `name`: 'Ann'" in said
    assert "- `fruits`: ['plum']" in said
    assert full.client.completed == ["elicitation-1"]
    full.client.form = None
    assert "No answer: decline" in await full.says("question")


async def test_question_to_a_client_that_cannot_ask(minimal: Talk) -> None:
    assert "cannot be asked" in await minimal.says("question")


async def test_ext_calls_the_client_and_serves_it(full: Talk, minimal: Talk) -> None:
    assert "{'pong': 'hi'}" in await full.says("ext hi")
    assert full.client.noted == [("pilothouse.dev/noted", "hi")]
    assert "does not know" in await minimal.says("ext")
    assert await full.agent.ext_method("pilothouse.dev/echo", {"a": 1}) == {"a": 1}
    with pytest.raises(RequestError) as unknown:
        await full.agent.ext_method("pilothouse.dev/nothing", {})
    assert unknown.value.code == -32601


# -- the session's own state ------------------------------------------------------------------------------------------


async def test_modes_are_offered_set_and_reported(full: Talk) -> None:
    opened = await full.agent.resume_session(session_id=full.session, cwd=str(full.cwd))
    assert opened.modes is not None
    assert [mode.id for mode in opened.modes.available_modes] == ["ask", "code", "plan"]
    await full.prompt("mode plan")
    assert full.client.of("current_mode_update")[-1].current_mode_id == "plan"
    await full.agent.set_session_mode(session_id=full.session, mode_id="ask")
    assert "`ask`" in await full.says("mode")
    assert "There is no `mode`" in await full.says("mode nonsense")
    with pytest.raises(RequestError) as unknown:
        await full.agent.set_session_mode(session_id=full.session, mode_id="nonsense")
    assert unknown.value.code == -32602


async def test_options_are_offered_set_and_reported(full: Talk) -> None:
    answer = await full.agent.set_config_option(config_id="model", session_id=full.session, value="scripted-large")
    assert {option.id: option.current_value for option in answer.config_options} == {
        "mode": "code",
        "model": "scripted-large",
        "thoughts": True,
    }
    await full.agent.set_config_option(config_id="mode", session_id=full.session, value="plan")
    await full.client.until(lambda: full.client.of("current_mode_update"))
    await full.prompt("config thoughts false")
    values = {option.id: option.current_value for option in full.client.of("config_option_update")[-1].config_options}
    assert values == {"mode": "plan", "model": "scripted-large", "thoughts": False}
    await full.agent.set_session_model(session_id=full.session, model_id="scripted-small")
    assert "`scripted-small`" in await full.says("config")
    with pytest.raises(RequestError) as unknown:
        await full.agent.set_config_option(config_id="model", session_id=full.session, value="gpt")
    assert unknown.value.code == -32602


async def test_boolean_options_only_for_clients_that_know_them(minimal: Talk) -> None:
    await minimal.prompt("config")
    assert [option.id for option in minimal.client.of("config_option_update")[-1].config_options] == ["mode", "model"]


async def test_usage_counts_and_costs(full: Talk) -> None:
    await full.prompt("echo " + "x" * 4000)
    await full.prompt("usage")
    (update,) = full.client.of("usage_update")
    assert update.used > 2000
    assert update.size == 32_000
    assert update.cost.currency == "USD"
    assert update.cost.amount > 0


async def test_title_is_set_and_cleared_by_an_explicit_null(tmp_path: Path) -> None:
    raw: list[dict[str, Any]] = []

    def observe(event: StreamEvent) -> None:
        if event.message.get("method") == "session/update":
            raw.append(event.message["params"]["update"])

    async with talk(tmp_path, observers=[observe]) as it:
        await it.prompt("title A fine day")
        await it.prompt("title")
        titles = [u["title"] for u in raw if u["sessionUpdate"] == "session_info_update"]
        assert titles == ["A fine day", None]
        raw.clear()
        await it.agent.load_session(cwd=str(tmp_path), session_id=it.session)
        assert [u["title"] for u in raw if u["sessionUpdate"] == "session_info_update"] == titles


async def test_notice_and_compaction_only_for_clients_that_asked_for_them(full: Talk, minimal: Talk) -> None:
    await full.prompt("notice error Something broke")
    (notice,) = full.client.of("notice")
    assert (notice.severity, notice.title) == ("error", "Something broke")
    await full.prompt("compact")
    assert [update.status for update in full.client.of("compaction_update")] == ["in_progress", "completed"]
    assert full.client.of("compaction_summary_chunk")
    assert "only a notice" in await minimal.says("notice")
    assert "did not ask" in await minimal.says("compact")
    kinds = {update.session_update for update in minimal.client.updates}
    assert kinds == {"agent_message_chunk"}


# -- the tour ---------------------------------------------------------------------------------------------------------


async def test_tour_fixes_a_real_bug(either: Talk, tmp_path: Path) -> None:
    assert (await either.prompt("tour")).stop_reason == "end_turn"
    calls = list(either.client.calls.values())
    assert [call["kind"] for call in calls] == ["edit", "read", "read", "execute", "edit", "execute"]
    assert [call["statuses"][-1] for call in calls] == [
        "completed",
        "completed",
        "completed",
        "failed",
        "completed",
        "completed",
    ]
    assert "FAILED (failures=1)" in calls[3]["raw_output"]["output"]
    assert calls[5]["raw_output"]["output"].rstrip().endswith("OK")
    assert "(100 - discount)" in (tmp_path / "pilothouse-demo" / "cart.py").read_text()
    assert len(either.client.asked) == 4
    assert {entry.status for entry in either.client.of("plan")[-1].entries} == {"completed"}
    assert "## What happened" in either.client.text
    files = {path.name for path in (tmp_path / "pilothouse-demo").iterdir()}
    assert files == {"cart.py", "test_cart.py"}


async def test_tour_touches_nothing_when_rejected(full: Talk) -> None:
    full.client.choice = "reject_once"
    assert "That is as far as I can go" in await full.says("tour")
    assert list(full.cwd.iterdir()) == []
    assert full.client.used == ["read", "read"]
    assert "in_progress" not in {entry.status for entry in full.client.of("plan")[-1].entries}
