"""Editors and their terminals against an editor that is a function: who is asked, and what becomes of odd answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from pilothouse.acp.errors import ConnectionClosed, RequestError
from pilothouse.hub.agent.inputs import Provisions, fitted, without_ours
from pilothouse.hub.client import editor_terminals
from pilothouse.hub.client.editor_terminals import EditorTerminals, _new_part
from pilothouse.hub.client.editors import Editor, Editors, EditorSilent, Unable
from pilothouse.hub.client.programs import ExitStatus
from pilothouse.hub.client.refusals import TerminalsClosed, TooManyTerminals, UnknownTerminal
from pilothouse.hub.client.terminals import Ending
from pilothouse.hub.errors import UnfitContent

Answer = Callable[[dict[str, Any]], Awaitable[Any]]


def editor(name: str = "zed", answers: dict[str, Any] | None = None, **offers: bool) -> Editor:
    """One that answers with these: a value, an exception, or a coroutine function of the params."""

    async def request(method: str, params: Any) -> Raw | None:
        answer = (answers or {}).get(method, RequestError.method_not_found(method))
        if isinstance(answer, Exception):
            raise answer
        value = await answer(params) if callable(answer) else answer
        return None if value is None else Raw(msgspec.json.encode(value))

    return Editor(name, request, **offers)


async def forever(params: Any) -> Any:
    await asyncio.Event().wait()


# -- who is asked --


def test_the_prompter_is_asked_first_then_who_came_last() -> None:
    one, two, three = (editor(name, reads=True) for name in ("one", "two", "three"))
    prompter: list[Editor | None] = [None]
    told: list[Any] = []
    editors = Editors("s", [], lambda: prompter[0], lambda *fact: told.append(fact))
    assert editors.first("reads") is None
    for each in (one, two, three):
        editors.attach(each)
    assert editors.in_order() == [three, two, one]
    prompter[0] = one
    assert editors.in_order() == [one, three, two]
    editors.detach(one)  # it prompted, and left
    assert editors.in_order() == [three, two]
    editors.attach(two)  # it opened the session once more
    assert editors.in_order() == [two, three]
    assert editors.first("writes") is None
    for who in (two, two, None, None, three):
        editors.serving(who)
    assert [fact["editor"] for _, fact in told] == ["two", None, "three"]


@pytest.mark.parametrize(
    "answer", [ConnectionClosed(), RequestError.method_not_found("x"), {"content": 1}, {}, [], None, "text"]
)
async def test_what_is_no_answer_to_a_read_leaves_it_to_the_hub(answer: Any) -> None:
    editors = Editors("s", [editor(answers={"fs/read_text_file": answer}, reads=True)], lambda: None, lambda *_: None)
    with pytest.raises(Unable):
        await editors.read({"path": "/a"})


async def test_a_refusal_keeps_its_code_and_words() -> None:
    refusal = RequestError(-32002, "no such file", {"path": "/a"})
    editors = Editors("s", [editor(answers={"fs/read_text_file": refusal}, reads=True)], lambda: None, lambda *_: None)
    with pytest.raises(RequestError) as caught:
        await editors.read({"path": "/a"})
    assert caught.value is refusal


# -- terminals --


class Screen:
    """The answers of an editor with one terminal that says what it is told to."""

    def __init__(self, terminal_id: Any = "t1") -> None:
        self.output: Any = {"output": "", "truncated": False}
        self.ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.calls: list[str] = []
        self.answers: dict[str, Any] = {
            "terminal/create": {"terminalId": terminal_id},
            "terminal/output": self._output,
            "terminal/wait_for_exit": lambda params: asyncio.shield(self.ended),
            "terminal/kill": self._kill,
            "terminal/release": {},
        }
        self.printed = ""
        self.endings: list[Ending] = []

    async def _output(self, params: Any) -> Any:
        return self.output

    async def _kill(self, params: Any) -> Any:
        self.calls.append("kill")
        if not self.ended.done():
            self.ended.set_result({"signal": "SIGTERM"})
        return {}

    def terminals(self, **options: Any) -> EditorTerminals:
        def printed(_: str, text: str) -> None:
            self.printed += text

        return EditorTerminals("s", on_output=printed, on_end=lambda _, ending: self.endings.append(ending), **options)

    @property
    def editor(self) -> Editor:
        return editor(answers=self.answers, terminals=True)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(editor_terminals, "SOON", 0.01)
    monkeypatch.setattr(editor_terminals, "SELDOM", 0.02)
    monkeypatch.setattr(editor_terminals, "PARTING", 0.2)


async def test_a_terminal_that_ends_tells_all_once() -> None:
    screen = Screen()
    terminals = screen.terminals()
    name = await terminals.create(screen.editor, {"command": "x"})
    assert (name, terminals.are_busy) == ("t1", True)
    screen.output = {"output": "one\ntwo\n", "truncated": False}
    screen.ended.set_result({"exitCode": 3})
    async with asyncio.timeout(30):
        assert await terminals.wait(name) == ExitStatus(3, None)
    assert screen.printed == "one\ntwo\n"
    assert screen.endings == [Ending(ExitStatus(3, None), "one\ntwo\n", 0)]
    assert (await terminals.output(name)).exit_status == ExitStatus(3, None)
    await terminals.release(name)
    assert screen.calls == []  # what has ended is not killed
    with pytest.raises(UnknownTerminal):
        await terminals.output(name)
    await terminals.close()
    assert len(screen.endings) == 1


async def test_an_end_is_found_by_looking_where_it_cannot_be_waited_for() -> None:
    screen = Screen()
    del screen.answers["terminal/wait_for_exit"]
    terminals = screen.terminals()
    name = await terminals.create(screen.editor, {"command": "x"})
    screen.output = {"output": "over", "exitStatus": {"exitCode": 0, "signal": None}}
    async with asyncio.timeout(30):
        output = await terminals.output(name)
        assert (output.text, output.exit_status) == ("over", ExitStatus(0, None))
        assert await terminals.wait(name) == ExitStatus(0, None)
    await terminals.close()


@pytest.mark.parametrize(
    "trouble", [RequestError(-32002, "no such terminal"), ConnectionClosed(), {"no": "output"}, None, 7]
)
async def test_a_terminal_that_the_editor_lost_has_ended(trouble: Any) -> None:
    screen = Screen()
    terminals = screen.terminals()
    name = await terminals.create(screen.editor, {"command": "x"})
    screen.output = {"output": "so far"}
    assert (await terminals.output(name)).text == "so far"
    screen.answers["terminal/output"] = trouble
    async with asyncio.timeout(30):
        assert await terminals.wait(name) == ExitStatus(None, "unknown")
    assert screen.endings[0].output.startswith("so far\n… the editor that ran this is gone")
    assert (await terminals.output(name)).exit_status == ExitStatus(None, "unknown")
    await terminals.kill(name)
    await terminals.close()


async def test_an_editor_that_leaves_loses_its_terminals_and_no_others() -> None:
    mine, other = Screen("mine"), Screen("other")
    terminals = mine.terminals()
    one, two = mine.editor, other.editor
    first, second = await terminals.create(one, {"command": "x"}), await terminals.create(two, {"command": "x"})
    terminals.lose(one)
    async with asyncio.timeout(30):
        assert (await terminals.wait(first)).signal in ("unknown", "SIGTERM")
    assert terminals.are_busy
    assert (await terminals.output(second)).exit_status is None
    await terminals.close()
    assert not terminals.are_busy


async def test_a_silent_editor_does_not_hold_up_the_end() -> None:
    screen = Screen()
    terminals = screen.terminals()
    await terminals.create(screen.editor, {"command": "x"})
    screen.answers.update(dict.fromkeys(screen.answers, forever))
    async with asyncio.timeout(30):
        await terminals.close()
    assert [ending.status for ending in screen.endings] == [ExitStatus(None, "unknown")]


@pytest.mark.parametrize("answer", [{}, None, {"terminalId": 7}, {"terminalId": ""}, {"terminalId": "x" * 1000}, []])
async def test_a_terminal_without_a_name_is_none(answer: Any) -> None:
    terminals = EditorTerminals("s")
    with pytest.raises(EditorSilent) as caught:
        await terminals.create(editor(answers={"terminal/create": answer}), {"command": "x"})
    assert "may have run" in str(caught.value)
    with pytest.raises(Unable):  # and one that knows no terminals has started nothing
        await terminals.create(editor(), {"command": "x"})
    assert not terminals.are_busy


async def test_names_are_not_given_twice() -> None:
    screen = Screen("same")
    terminals = screen.terminals(is_taken=lambda name: name == "taken", most=3)
    taken = Screen("taken")
    one = screen.editor
    names = [await terminals.create(one, {"command": "x"}) for _ in range(2)]
    names.append(await terminals.create(taken.editor, {"command": "x"}))
    assert names[0] == "same"
    assert len(set(names)) == 3
    assert "taken" not in names
    assert one.terminals_made == {("s", "same")}
    with pytest.raises(TooManyTerminals):
        await terminals.create(one, {"command": "x"})
    await terminals.close()


async def test_a_program_that_starts_while_the_session_ends_is_ended() -> None:
    screen = Screen()
    began = asyncio.Event()

    async def slow(params: Any) -> Any:
        began.set()
        await asyncio.sleep(0.02)
        return {"terminalId": "late"}

    screen.answers["terminal/create"] = slow
    terminals = screen.terminals()
    creating = asyncio.ensure_future(terminals.create(screen.editor, {"command": "x"}))
    await began.wait()
    await terminals.close()
    with pytest.raises(TerminalsClosed):
        await creating
    await terminals.close()
    assert screen.calls == ["kill"]


async def test_no_more_is_kept_than_was_asked_for() -> None:
    for limit, kept in ((0, ""), (3, "789"), (None, "123456789")):
        screen = Screen()
        terminals = screen.terminals()
        name = await terminals.create(screen.editor, {"command": "x", "outputByteLimit": limit})
        screen.output = {"output": "123456789", "truncated": False}
        output = await terminals.output(name)
        assert (output.text, output.truncated) == (kept, len(kept) < 9)
        await terminals.close()


@given(st.text("ab\n", max_size=60), st.text("ab\nc", max_size=60))
def test_what_is_new_is_what_was_added(known: str, added: str) -> None:
    assert _new_part(known, known + added) == added


def test_what_is_new_is_found_when_the_beginning_is_gone() -> None:
    assert _new_part("one two three ", "three four") == "\n… some output left out …\nthree four"
    long = "".join(f"line {number}\n" for number in range(3000))
    assert _new_part(long, long[5000:] + "more") == "more"


# -- what an agent can take --


def test_blocks_are_fitted_to_what_an_agent_offers() -> None:
    image = {"type": "image", "data": "", "mimeType": "image/png"}
    words = {"type": "resource", "resource": {"uri": "file:///a", "text": "x"}}
    odd: list[Any] = [{"type": "text", "text": "x"}, {"type": "_new"}, "no block"]
    assert fitted(odd, {}, "odd") == odd
    every = {"promptCapabilities": {"image": True, "audio": True, "embeddedContext": True}}
    assert fitted([image, words], every, "odd") == [image, words]
    for capabilities in ({}, {"promptCapabilities": None}, {"promptCapabilities": {"image": "yes"}}):
        assert fitted([words], capabilities, "odd") == [{"type": "text", "text": "file:///a:\nx"}]
        with pytest.raises(UnfitContent, match="odd takes no images") as caught:
            fitted([*odd, image], capabilities, "odd")
        assert caught.value.details == {"field": "prompt[3]"}


def test_provisions_are_joined_and_told_without_secrets() -> None:
    first = Provisions(({"name": "a", "command": "x"},), ("/more",), {"v": 1, "w": 1})
    assert first.joined(Provisions()) == first
    joined = first.joined(Provisions(({"type": "sse", "name": "b", "url": "u", "headers": ["secret"]},), (), {"v": 2}))
    assert (joined.directories, joined.meta) == (("/more",), {"v": 2, "w": 1})
    assert "secret" not in repr(joined.ignored({}))
    assert joined.params({}) == {"mcpServers": [], "_meta": {"v": 2, "w": 1}}
    acp = Provisions(({"type": "acp", "name": "c"},))
    assert acp.params({"mcpCapabilities": {"acp": True}}) == {"mcpServers": []}
    assert without_ours({"pilothouse": {}, "x": 1}) == {"x": 1}
    assert without_ours(None) == {}


def test_secrets_are_taken_out_of_whatever_an_agent_says() -> None:
    servers = (
        {"name": "a", "command": "x", "env": [{"name": "K", "value": "hidden"}, {"name": "N", "value": "1"}, "odd"]},
        {"type": "http", "name": "b", "url": "https://k@h", "headers": [{"name": "A", "value": "hidden too"}]},
        {"name": "c", "env": {"K": "odd"}, "headers": None, "url": 7},
    )
    given = Provisions(servers)
    assert given.scrubbed("1: hidden too, hidden; https://k@h!") == "1: …, …; …!"
    assert given.scrubbed({"hidden": ["hidden", 1, None, {"x": "a hidden b"}]}) == {"…": ["…", 1, None, {"x": "a … b"}]}
    assert Provisions().scrubbed("hidden") == "hidden"
