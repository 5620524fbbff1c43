"""The agents of the guide "build an agent": every step is started as a process and talked to.

Starting one takes seconds, so what does not concern the process is tried with the same file in this one.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import acp
import pytest
import pytest_asyncio
from acp import schema as sdk

from pilothouse.acp import (
    AgentSideConnection,
    AllowedOutcome,
    ClientCapabilities,
    ClientSideConnection,
    DeniedOutcome,
    FileSystemCapabilities,
    RequestError,
    RequestPermissionResponse,
    memory_pair,
    text_block,
)
from tests.lab.model.server import model_server
from tests.support.deckhands import PATIENCE, STEPS, Fleet, Talk, aboard, command, deckhand, environment

pytestmark = pytest.mark.asyncio(loop_scope="module")


def both(first: int) -> Any:
    """The step that brings something, and the last one, which still has it."""
    return pytest.mark.parametrize("step", sorted({first, len(STEPS)}))


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Where the scripted model has the interface of OpenAI."""
    with model_server() as server:
        yield f"{server.url}/v1"
    assert server.problems == []
    assert server.refused == []


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fleet(tmp_path_factory: pytest.TempPathFactory, url: str) -> AsyncIterator[Fleet]:
    made = Fleet(tmp_path_factory.mktemp("fleet"), url)
    yield made
    await made.close()


def script(*steps: Any) -> str:
    """A prompt that says what the scripted model answers."""
    return f"@@fake {json.dumps(steps)}"


async def test_every_step_is_a_program_that_answers_and_remembers_from_the_third_on(tmp_path: Path) -> None:
    """All at once: it is mostly waiting for them to start."""

    async def talked(step: int) -> list[str]:
        async with deckhand(step, tmp_path / str(step)) as talk:
            assert talk.offer.agent_info is not None
            assert talk.offer.agent_info.name == "deckhand"
            await talk.begin(tmp_path)
            said = []
            for prompt in ("one", "two", "what did I say?"):
                assert await talk.prompt(prompt) == "end_turn"
                said.append(talk.said)
            return said

    steps = range(1, len(STEPS) + 1)
    said = dict(zip(steps, await asyncio.gather(*map(talked, steps)), strict=True))
    assert len(said) == 7
    assert said.pop(1) == ["Aye: one", "Aye: two", "Aye: what did I say?"]
    assert said.pop(2) == ["You say: one", "You say: two", "You said: nothing."]
    assert all(told == ["You say: one", "You say: two", "You said: one; two."] for told in said.values())


@both(2)
async def test_text_comes_in_pieces(fleet: Fleet, tmp_path: Path, step: int) -> None:
    talk = await fleet.get(step, tmp_path)
    await talk.prompt("count to 5")
    assert talk.chunks == ["1 ", "2 ", "3 ", "4 ", "5"]


async def test_a_model_behind_a_server_is_named_in_the_environment(url: str, tmp_path: Path) -> None:
    variables = {"PILOTHOUSE_MODEL": "openai-chat:fake", "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none"}
    async with deckhand(7, tmp_path, **variables) as talk:
        await talk.begin(tmp_path)
        assert await talk.prompt("hello") == "end_turn"
        assert talk.said == "You said: hello"
        assert len(talk.chunks) >= 2


async def test_a_model_without_tools_is_spoken_to(fleet: Fleet, tmp_path: Path) -> None:
    talk = await fleet.get(2, tmp_path, wire=True)
    assert await talk.prompt("hello") == "end_turn"
    # the scripted model has nothing else to say to whoever offers none
    assert talk.said == "A short title"
    assert len(talk.chunks) >= 2


@pytest.mark.parametrize(
    ("step", "name", "told"), [(2, "openai:gpt-5", "OPENAI_API_KEY"), (7, "nonsense", "Unknown model: nonsense")]
)
async def test_a_model_that_cannot_be_used_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, name: str, told: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    async with aboard(step, tmp_path, model=name) as talk:
        await talk.begin(tmp_path)
        with pytest.raises(RequestError, match=told):
            await talk.prompt("hello")


@both(4)
async def test_an_error_of_the_model_ends_the_turn_and_not_the_agent(fleet: Fleet, tmp_path: Path, step: int) -> None:
    talk = await fleet.get(step, tmp_path, wire=True)
    with pytest.raises(RequestError, match="no such key"):
        await talk.prompt(script({"error": {"status": 401, "message": "no such key"}}))
    assert await talk.prompt(script("and on")) == "end_turn"
    assert talk.said == "and on"


@both(3)
async def test_sessions_know_nothing_of_each_other(fleet: Fleet, tmp_path: Path, step: int) -> None:
    talk = await fleet.get(step, tmp_path)
    await talk.prompt("one")
    await talk.begin(tmp_path)
    await talk.prompt("what did I say?")
    assert talk.said == "You said: nothing."
    talk.session = "nowhere"
    with pytest.raises(RequestError, match="not found"):
        await talk.prompt("hello")


@both(4)
async def test_a_file_is_read_through_the_client(fleet: Fleet, tmp_path: Path, step: int) -> None:
    talk = await fleet.get(step, tmp_path, wire=True)
    (tmp_path / "notes.txt").write_text("one line\n")
    await talk.prompt(script({"op": "read", "path": "notes.txt"}, "seen {scripts}"))
    (call,) = talk.calls
    assert (call.title, call.kind, call.status) == ("Read notes.txt", "read", "completed")
    assert [place.path for place in call.locations] == [str(tmp_path / "notes.txt")]
    await talk.prompt(script("seen {scripts}"))
    assert talk.said == "seen 2"
    talk = await fleet.get(step, tmp_path)
    await talk.prompt("read notes.txt")
    assert talk.said == "I read notes.txt. It says: one line\n"


@both(4)
@pytest.mark.parametrize("path", ["missing.txt", "../secret.txt", "/etc/passwd", "link.txt", "a\0b"])
async def test_what_cannot_or_may_not_be_read_is_a_call_that_failed(
    fleet: Fleet, tmp_path: Path, step: int, path: str
) -> None:
    talk = await fleet.get(step, tmp_path / "work", wire=True)
    (tmp_path / "secret.txt").write_text("treasure")
    (talk.cwd / "link.txt").symlink_to(tmp_path / "secret.txt")
    assert await talk.prompt(script({"op": "read", "path": path}, "and on")) == "end_turn"
    (call,) = talk.calls
    assert call.status == "failed"
    assert call.raw_output
    assert talk.served == []
    assert talk.said == "and on"


@both(4)
async def test_tools_of_a_client_without_files_are_not_offered(fleet: Fleet, tmp_path: Path, step: int) -> None:
    talk = await fleet.get(step, tmp_path, files=False)
    for tool in ("read", "write"):
        await talk.prompt(f"{tool} notes.txt")
        assert talk.said == f"I have no tool to {tool} files."
    assert talk.calls == []


@both(5)
async def test_an_allowed_write_is_shown_as_a_diff_and_done(fleet: Fleet, tmp_path: Path, step: int) -> None:
    talk = await fleet.get(step, tmp_path)
    await talk.prompt("write notes.txt hello")
    assert (tmp_path / "notes.txt").read_text() == "hello\n"
    await talk.prompt("write notes.txt goodbye")
    assert (tmp_path / "notes.txt").read_text() == "goodbye\n"
    diffs = [asked.content[0] for asked in talk.asked]
    assert [(diff.old_text, diff.new_text) for diff in diffs] == [(None, "hello\n"), ("hello\n", "goodbye\n")]
    assert [call.content[0].new_text for call in talk.calls] == ["hello\n", "goodbye\n"]
    assert {call.status for call in talk.calls} == {"completed"}


async def stranger() -> RequestPermissionResponse:
    return RequestPermissionResponse(outcome=AllowedOutcome(option_id="never offered"))


async def nobody() -> RequestPermissionResponse:
    return RequestPermissionResponse(outcome=DeniedOutcome())


async def failure() -> RequestPermissionResponse:
    raise RequestError.internal_error({"details": "nobody can be asked"})


@both(5)
@pytest.mark.parametrize("allow", ["reject_once", stranger, nobody, failure])
async def test_a_write_that_was_not_allowed_leaves_the_disk_as_it_was(
    fleet: Fleet, tmp_path: Path, step: int, allow: str | Callable[[], Any]
) -> None:
    talk = await fleet.get(step, tmp_path)
    talk.allow = allow
    (tmp_path / "notes.txt").write_text("mine\n")
    for path in ("notes.txt", "new.txt"):
        assert await talk.prompt(f"write {path} yours") == "end_turn"
    assert len(talk.asked) == 2
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"notes.txt": "mine\n"}
    assert {call.status for call in talk.calls} == {"failed"}


@both(5)
async def test_a_file_that_is_there_and_cannot_be_read_is_not_written(fleet: Fleet, tmp_path: Path, step: int) -> None:
    talk = await fleet.get(step, tmp_path)
    (tmp_path / "notes.txt").write_bytes(b"\xff")
    await talk.prompt("write notes.txt hello")
    assert talk.asked == []
    assert [call.status for call in talk.calls] == ["failed"]
    assert (tmp_path / "notes.txt").read_bytes() == b"\xff"


@both(5)
async def test_leave_to_write_is_for_the_diff_that_was_shown(fleet: Fleet, tmp_path: Path, step: int) -> None:
    talk = await fleet.get(step, tmp_path)

    async def edit_and_allow() -> RequestPermissionResponse:
        (tmp_path / "notes.txt").write_text("mine\n")
        return RequestPermissionResponse(outcome=AllowedOutcome(option_id="yes"))

    talk.allow = edit_and_allow
    await talk.prompt("write notes.txt yours")
    assert (tmp_path / "notes.txt").read_text() == "mine\n"
    assert [call.status for call in talk.calls] == ["failed"]
    assert talk.said.endswith("notes.txt was changed meanwhile. Read it again.")


# -- cancel --


@both(6)
async def test_cancel_in_the_middle_of_a_text(fleet: Fleet, tmp_path: Path, step: int) -> None:
    talk = await fleet.get(step, tmp_path)
    turn = await talk.start("count to 100000")
    await talk.until(lambda: len(talk.chunks) > 3)
    with pytest.raises(RequestError, match="under way"):
        await talk.agent.prompt(talk.session, [text_block("me too")])
    await talk.agent.cancel(talk.session)
    assert await turn == "cancelled"
    await talk.prompt("what did I say?")
    assert talk.said == "You said: count to 100000."


@both(6)
async def test_cancel_before_the_model_says_a_word_and_in_the_middle_of_one(
    fleet: Fleet, tmp_path: Path, step: int
) -> None:
    talk = await fleet.get(step, tmp_path, wire=True)
    (tmp_path / "notes.txt").write_text("one line\n")
    read, late = {"op": "read", "path": "notes.txt"}, {"text": "late", "delay": 60, "chunk": 2}
    for steps, reached in (
        ([{"text": "late", "hang": 60}], lambda: True),
        ([read, {"text": "late", "hang": 60}], lambda: [call.status for call in talk.calls] == ["completed"]),
        ([late], lambda: talk.said == "la"),
    ):
        turn = await talk.start(script(*steps))
        await talk.until(reached)
        await talk.agent.cancel(talk.session)
        assert await turn == "cancelled"
    assert await talk.prompt(script("and on")) == "end_turn"
    assert talk.said == "and on"


@both(6)
async def test_cancel_while_the_user_is_asked(fleet: Fleet, tmp_path: Path, step: int) -> None:
    talk = await fleet.get(step, tmp_path)
    forever = asyncio.Event()
    talk.allow = forever.wait
    turn = await talk.start("write notes.txt hello")
    await talk.until(lambda: talk.asked)
    await talk.agent.cancel(talk.session)
    assert await turn == "cancelled"
    assert [call.status for call in talk.calls] == ["failed"]
    assert list(tmp_path.iterdir()) == []
    await talk.prompt("what did I say?")
    assert talk.said == "You said: write notes.txt hello."


@both(6)
async def test_cancel_while_a_file_is_read(fleet: Fleet, tmp_path: Path, step: int) -> None:
    talk = await fleet.get(step, tmp_path, wire=True)
    talk.reads = asyncio.Event()
    turn = await talk.start(script({"op": "read", "path": "notes.txt"}, "read"))
    await talk.until(lambda: talk.served)
    await talk.agent.cancel(talk.session)
    assert await turn == "cancelled"
    assert [call.status for call in talk.calls] == ["failed"]
    # a call without a result is no trouble to the model
    assert await talk.prompt(script("{scripts} prompts")) == "end_turn"
    assert talk.said == "2 prompts"


@both(6)
async def test_cancel_without_a_turn_is_nothing(fleet: Fleet, tmp_path: Path, step: int) -> None:
    talk = await fleet.get(step, tmp_path)
    await talk.agent.cancel(talk.session)
    await talk.agent.cancel("nowhere")
    assert await talk.prompt("hello") == "end_turn"


async def test_after_a_cancel_at_any_event_of_a_turn_the_conversation_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In this process, because only the agent itself knows its events."""
    monkeypatch.syspath_prepend(str(STEPS[5].parent))
    monkeypatch.delenv("PILOTHOUSE_MODEL", raising=False)
    program = importlib.import_module(STEPS[5].stem)
    monkeypatch.setattr(sys.modules["stand_in"], "PAUSE", 0)

    class Hasty(program.Deckhand):
        """Cancelled when it has shown so many events."""

        patience = 0

        async def show(self, session_id: str, event: Any) -> None:
            await super().show(session_id, event)
            self.patience -= 1
            if self.patience == 0:
                await self.cancel(session_id)

    (tmp_path / "notes.txt").write_text("one line\n")
    hasty, talk = Hasty(), Talk()
    left, right = memory_pair()
    served = AgentSideConnection(hasty, left)
    talk.agent = ClientSideConnection(talk, right)
    offered = FileSystemCapabilities(read_text_file=True)
    await talk.agent.initialize(client_capabilities=ClientCapabilities(fs=offered))
    ends = []
    while "end_turn" not in ends:
        await talk.begin(tmp_path)
        hasty.patience = len(ends) + 1
        ends.append(await talk.prompt("read notes.txt"))
        assert {call.status for call in talk.calls} <= {"completed", "failed"}
        hasty.patience = 0
        assert await talk.prompt("what did I say?") == "end_turn"
        assert talk.said == "You said: read notes.txt."
    assert len(ends) > 10
    await talk.agent.close()
    await served.close()


# -- sessions --


async def test_a_session_outlives_the_process(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    async with deckhand(7, tmp_path / "home", DECKHAND_HOME=str(kept)) as talk:
        await talk.begin(tmp_path)
        await talk.prompt("one")
        await talk.prompt("write notes.txt hello")
        talk.allow = asyncio.Event().wait
        for prompt, reached in (
            ("count to 100000", lambda: len(talk.chunks) > 3),
            ("write more.txt hello", lambda: len(talk.asked) == 2),
        ):
            turn = await talk.start(prompt)
            await talk.until(reached)
            await talk.agent.cancel(talk.session)
            assert await turn == "cancelled"
    async with aboard(7, kept) as later:
        assert later.offer.agent_capabilities is not None
        assert later.offer.agent_capabilities.load_session
        await later.load(talk.session, tmp_path)
        assert later.users == ["one", "write notes.txt hello", "count to 100000", "write more.txt hello"]
        assert later.said.startswith("You say: oneI write notes.txt. It says: notes.txt is written.1 2 3 ")
        assert [(call.title, call.status) for call in later.calls] == [("write", "completed"), ("write", "failed")]
        await later.prompt("what did I say?")
        assert later.said == "You said: one; write notes.txt hello; count to 100000; write more.txt hello."


async def test_sessions_are_private_and_their_names_lead_nowhere_else(tmp_path: Path) -> None:
    async with aboard(7, tmp_path / "kept") as talk:
        await talk.begin(tmp_path)
        await talk.prompt("one")
        assert (tmp_path / "kept").stat().st_mode & 0o077 == 0
        (stored,) = (tmp_path / "kept").iterdir()
        (tmp_path / "other.json").write_bytes(stored.read_bytes())
        for name in ("../other", "0" * 32, ""):
            with pytest.raises(RequestError, match="not found"):
                await talk.load(name, tmp_path)
        stored.with_name(f"{'0' * 32}.json").write_text("{")
        with pytest.raises(RequestError, match=r"0\.json cannot be read"):
            await talk.load("0" * 32, tmp_path)


# -- by others --


class OfficialClient(acp.Client):
    """A client on the official SDK that allows everything."""

    def __init__(self) -> None:
        self.updates: list[Any] = []

    def on_connect(self, conn: Any) -> None:
        """It calls nothing by itself."""

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        self.updates.append(update)

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **kwargs: Any) -> Any:
        (chosen,) = (option.option_id for option in options if option.kind == "allow_once")
        return acp.RequestPermissionResponse(outcome=sdk.AllowedOutcome(option_id=chosen, outcome="selected"))

    async def read_text_file(self, session_id: str, path: str, **kwargs: Any) -> Any:
        if not Path(path).exists():
            raise acp.RequestError.resource_not_found(path)
        return acp.ReadTextFileResponse(content=Path(path).read_text())

    async def write_text_file(self, session_id: str, path: str, content: str, **kwargs: Any) -> Any:
        Path(path).write_text(content)
        return acp.WriteTextFileResponse()

    def kinds(self) -> set[str]:
        return {update.session_update for update in self.updates}


async def test_the_last_step_works_with_the_official_client(tmp_path: Path) -> None:
    offered = sdk.ClientCapabilities(fs=sdk.FileSystemCapabilities(read_text_file=True, write_text_file=True))
    client = OfficialClient()
    shown = {"agent_message_chunk", "tool_call", "tool_call_update"}
    async with (
        asyncio.timeout(PATIENCE),
        acp.spawn_agent_process(client, *command(7), env=environment(tmp_path)) as (agent, _),
    ):
        await agent.initialize(protocol_version=1, client_capabilities=offered)
        session = (await agent.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
        answer = await agent.prompt(session_id=session, prompt=[acp.text_block("write notes.txt hello")])
        assert answer.stop_reason == "end_turn"
        while not shown <= client.kinds():
            await asyncio.sleep(0.01)
        assert (tmp_path / "notes.txt").read_text() == "hello\n"
        client.updates.clear()
        await agent.load_session(cwd=str(tmp_path), session_id=session, mcp_servers=[])
        answer = await agent.prompt(session_id=session, prompt=[acp.text_block("what did I say?")])
        assert answer.stop_reason == "end_turn"
        while not shown | {"user_message_chunk"} <= client.kinds():
            await asyncio.sleep(0.01)
