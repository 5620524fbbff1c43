"""The pump between an editor and a hub, both played in this process: slow ones, silent ones, ones that come back."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pilothouse.acp.transport import MemoryLink, memory_pair
from pilothouse.editor import hub_connection as reaching_module
from pilothouse.editor import pump as pumping
from pilothouse.editor.bridge import Bridge
from pilothouse.editor.hub_connection import NoHub, Reaching
from pilothouse.editor.pump import Pump
from pilothouse.editor.requests import request_ids
from pilothouse.remote.place import Place, write_place
from pilothouse.server.acp.lines import LineListener
from pilothouse.server.limits import Limits
from pilothouse.server.listener import local_socket
from tests.support.servers import Served, serving

PATIENCE = 60


class Client:
    """An editor in memory."""

    def __init__(self, link: MemoryLink) -> None:
        self.link = link
        self.messages: list[Any] = []
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        link.start(self._take, lambda error: None)

    def _take(self, lines: Sequence[Any]) -> None:
        for frame in lines:
            self.messages += [json.loads(line) for line in bytes(frame).splitlines()]
        task = asyncio.get_running_loop().create_task(self._tell())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def say(self, **message: Any) -> None:
        self.link.send(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def until(self, condition: Callable[[], Any]) -> Any:
        async with asyncio.timeout(PATIENCE), self._changed:
            await self._changed.wait_for(condition)
            return condition()

    async def answer(self, number: int) -> Any:
        found = await self.until(lambda: [one for one in self.messages if one.get("id") == number])
        return found[0]

    async def ask(self, number: int, method: str, **params: Any) -> Any:
        self.say(id=number, method=method, params=params)
        return await self.answer(number)

    def texts(self) -> list[str]:
        updates = [one["params"]["update"] for one in self.messages if one.get("method") == "session/update"]
        return [one["content"]["text"] for one in updates if one["sessionUpdate"] == "agent_message_chunk"]


class NeverStarting(Reaching):
    """Finds hubs and starts none."""

    starts = 0

    async def get(self, protocol: Any) -> Any:
        found = await self.find(protocol)
        if found is None:
            self.starts += 1
            raise NoHub("none is to be started here", Path("hub.log"), "its\nlast words")
        return found


@contextlib.asynccontextmanager
async def pumped(home: Path, reaching: Reaching | None = None) -> AsyncIterator[Client]:
    near, far = memory_pair()
    client = Client(near)
    pump = Pump(Bridge(version="0", new_id=request_ids(), agent="demo"), far, reaching or NeverStarting(home))
    running = asyncio.create_task(pump.run())
    try:
        yield client
    finally:
        client.link.resume()
        await near.close()
        async with asyncio.timeout(PATIENCE):
            await running


@contextlib.asynccontextmanager
async def editors_welcome(home: Path, limits: Limits | None = None) -> AsyncIterator[Served]:
    path = home / "acp.sock"
    async with serving(home, limits=limits) as served, LineListener(served.server, local_socket(path)):
        write_place(home, Place(pid=os.getpid(), acp=str(path)))
        yield served


@contextlib.asynccontextmanager
async def listening(path: Path) -> AsyncIterator[None]:
    """Somebody who takes connections, and says nothing."""
    async with await asyncio.start_unix_server(lambda reader, writer: writer.close(), path):
        yield


async def open_session(client: Client, cwd: Path) -> str:
    assert "result" in await client.ask(0, "initialize", protocolVersion=1, clientCapabilities={})
    return str((await client.ask(1, "session/new", cwd=str(cwd), mcpServers=[]))["result"]["sessionId"])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    path.mkdir(mode=0o700)
    return path


async def test_an_editor_that_was_let_go_for_taking_nothing_gets_everything_once_it_does(
    home: Path, tmp_path: Path
) -> None:
    async with editors_welcome(home, Limits(stall=0.2)) as served, pumped(home) as client:
        session = await open_session(client, tmp_path)
        client.link.pause()
        prompt = [{"type": "text", "text": "flood 30000"}]
        client.say(id=2, method="session/prompt", params={"sessionId": session, "prompt": prompt})
        async with asyncio.timeout(PATIENCE):
            while not served.server.connections.served or len(served.server.connections):
                await asyncio.sleep(0.01)  # until the hub has let it go
        client.link.resume()
        answer = await client.answer(2)
        assert answer["result"]["stopReason"] == "end_turn"
        numbers = [int(word) for text in client.texts() for word in text.split() if word.isdigit()]
        assert numbers[:30000] == sorted(set(numbers[:30000]))
        assert len(client.texts()) == len(set(client.texts())) >= 30000
        assert served.server.connections.served >= 2


async def test_without_a_hub_each_request_is_refused_and_the_next_one_tries_again(home: Path) -> None:
    reaching = NeverStarting(home)
    async with pumped(home, reaching) as client:
        await client.ask(0, "initialize", protocolVersion=1)
        for number in (1, 2):
            refused = (await client.ask(number, "session/list"))["error"]
            assert refused["code"] == -32603
            assert refused["message"].startswith("none is to be started here: last words. `pilothouse doctor`")
            assert refused["data"]["log"] == "its\nlast words"
        assert reaching.starts >= 2
        async with editors_welcome(home):
            assert "result" in await client.ask(3, "session/list")


async def test_a_hub_that_says_nothing_is_given_up(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pumping, "SILENCE", 0.1)

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_unix_server(silent, home / "acp.sock"):
        write_place(home, Place(pid=4711, acp=str(home / "acp.sock")))
        async with pumped(home) as client:
            await client.ask(0, "initialize", protocolVersion=1)
            refused = (await client.ask(1, "session/list"))["error"]
            assert "process 4711" in refused["message"]
            assert "does not answer" in refused["message"]


async def test_a_hub_that_hangs_after_it_has_taken_up_its_editor_is_given_up(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pumping, "SILENCE", 0.1)
    async with played_hub(home, {"initialize"}) as asked, pumped(home) as client:
        await client.ask(0, "initialize", protocolVersion=1)
        refused = (await client.ask(1, "session/prompt", sessionId="s", prompt=[]))["error"]
        assert "process 4711) does not answer" in refused["message"]
        assert asked[:3] == ["initialize", "session/prompt", "_pilothouse/ping"]


async def test_a_hub_that_takes_its_time_is_waited_for_while_it_says_that_it_lives(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pumping, "SILENCE", 0.1)
    async with played_hub(home, {"initialize", "_pilothouse/ping"}, until=3) as asked, pumped(home) as client:
        await client.ask(0, "initialize", protocolVersion=1)
        assert (await client.ask(1, "session/prompt", sessionId="s", prompt=[]))["result"] == {}
        assert asked == ["initialize", "session/prompt", *["_pilothouse/ping"] * 3]


@contextlib.asynccontextmanager
async def played_hub(home: Path, answered: set[str], until: int = 0) -> AsyncIterator[list[str]]:
    """A hub that answers some methods, and the rest once it was asked for a word so many times. What it was asked."""
    asked: list[str] = []

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        waiting: list[int] = []
        while line := await reader.readline():
            message = json.loads(line)
            asked.append(message["method"])
            if message["method"] in answered:
                writer.write(b'{"jsonrpc":"2.0","id":%d,"result":{}}\n' % message["id"])
            else:
                waiting.append(message["id"])
            if until and asked.count("_pilothouse/ping") >= until:
                writer.writelines(b'{"jsonrpc":"2.0","id":%d,"result":{}}\n' % number for number in waiting)
                waiting.clear()
        writer.close()

    async with await asyncio.start_unix_server(play, home / "acp.sock"):
        write_place(home, Place(pid=4711, acp=str(home / "acp.sock")))
        yield asked


async def test_a_hub_that_hangs_up_at_once_is_not_asked_without_end(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pumping, "PAUSE", 0.001)
    calls = 0

    async def rude(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal calls
        calls += 1
        async with asyncio.timeout(PATIENCE):
            line = await reader.readline()
        while line and b"session/list" not in line:
            number = json.loads(line)["id"]
            writer.write(b'{"jsonrpc":"2.0","id":%d,"result":{}}\n' % number)
            line = await reader.readline()
        writer.close()

    async with await asyncio.start_unix_server(rude, home / "acp.sock"):
        write_place(home, Place(pid=4711, acp=str(home / "acp.sock")))
        async with pumped(home) as client:
            await client.ask(0, "initialize", protocolVersion=1)
            refused = (await client.ask(1, "session/list"))["error"]
            assert "each time" in refused["message"]
            assert calls >= 5


def write_old_place(home: Path) -> None:
    write_place(home, Place(pid=4711, socket=str(home / "hub.sock")))


async def test_a_hub_of_an_older_version_is_told(home: Path) -> None:
    async with listening(home / "hub.sock"):
        write_old_place(home)
        async with pumped(home) as client:
            await client.ask(0, "initialize", protocolVersion=1)
            refused = (await client.ask(1, "session/list"))["error"]
            assert "older version" in refused["message"]
            assert "4711" in refused["message"]


async def test_what_a_dead_hub_of_an_older_version_has_left_keeps_nobody_from_starting_one(home: Path) -> None:
    write_old_place(home)
    reaching = NeverStarting(home)
    async with pumped(home, reaching) as client:
        await client.ask(0, "initialize", protocolVersion=1)
        await client.ask(1, "session/list")
    assert reaching.starts > 0


async def test_a_hub_whose_socket_for_editors_was_taken_away_is_named_and_started_no_second_time(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launches: list[Path] = []

    class Found:
        """A start that finds a hub."""

        code = 0
        was_killed = True
        journal = home / "hub.log"

        def __init__(self, home: Path) -> None:
            launches.append(home)

        def words(self) -> str:
            return ""

        def settle(self, reached: int | None = None) -> None:
            assert reached is None

    monkeypatch.setattr(reaching_module, "Launch", Found)
    monkeypatch.setattr(reaching_module, "GRACE", 0.05)
    async with listening(home / "hub.sock"):
        write_place(home, Place(pid=4711, socket=str(home / "hub.sock"), acp=str(home / "acp.sock")))
        with pytest.raises(NoHub, match=r"process 4711\) does not answer on .*acp\.sock; stop it"):
            await Reaching(home).get(asyncio.Protocol)
    assert len(launches) == 1


async def test_a_cancel_of_nothing_starts_no_hub(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pumping, "LOOK", 0.01)
    reaching = NeverStarting(home)
    async with pumped(home, reaching) as client:
        async with editors_welcome(home):
            session = await open_session(client, home)
        begun = reaching.starts
        client.say(method="session/cancel", params={"sessionId": session})
        async with editors_welcome(home):  # found by those who only look
            assert "result" in await client.ask(2, "session/list")
        assert reaching.starts == begun


async def test_half_a_line_of_a_hub_that_dies_is_never_passed_on(home: Path) -> None:
    whole = b'{"jsonrpc":"2.0","method":"_x/told","params":{}}\n'

    async def dying(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(whole + whole[:30])
        writer.close()

    async with await asyncio.start_unix_server(dying, home / "acp.sock"):
        write_place(home, Place(pid=4711, acp=str(home / "acp.sock")))
        async with pumped(home) as client:
            await client.ask(0, "initialize", protocolVersion=1)
            await client.until(lambda: sum(one.get("method") == "_x/told" for one in client.messages) >= 2)


async def test_one_editor_too_many_is_told_so(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pumping, "PAUSE", 0.0)
    async with editors_welcome(home, Limits(per_caller=1)), pumped(home) as one:
        await open_session(one, home)
        async with pumped(home) as two:
            await two.ask(0, "initialize", protocolVersion=1)
            refused = (await two.ask(1, "session/list"))["error"]
            assert "too many open streams" in refused["message"]
        assert "result" in await one.ask(2, "session/list")
