"""A conversation with a real agent, told the same whichever way it is had: by the hub's events, or in an editor.

A case is written once, against `Talk`, and runs both ways. `Turn` is what a person would have seen of a turn.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pilothouse.hub.agent.process import AgentSpec
from pilothouse.hub.hub import Hub
from pilothouse.hub.session.session import HubSession
from pilothouse.model.events import Event
from pilothouse.model.records import DiffPreview
from tests.support.editors import Editor, Home, Refused
from tests.support.hubs import check, gone, history, processes_with, said

PATIENCE = 90
OPEN = ""
"""Chosen for a question that is left open."""


@dataclass
class Call:
    """A tool call. `changes` are the files that it was said to change before it ended."""

    name: str
    kind: str
    parent: str | None = None
    status: str = ""
    changes: list[str] = field(default_factory=list)


@dataclass
class Turn:
    """What was seen of a turn; of one that failed, `kind` and `error` say why."""

    stop: str = ""
    kind: str = ""
    error: str = ""
    said: str = ""
    thought: str = ""
    calls: dict[str, Call] = field(default_factory=dict)
    plan: list[tuple[str, str]] = field(default_factory=list)

    def ends(self) -> list[tuple[str, str]]:
        return [(call.name, call.status) for call in self.calls.values()]


class Talk(ABC):
    """One session. `choose` gives the option for each question; `asked` are the names of the tools asked about."""

    def __init__(self, agent: AgentSpec, home: Path, work: Path) -> None:
        self.agent = agent
        self.home = home
        self.work = work
        self.choose: Callable[[str], str] = lambda name: "allow"
        self.asked: list[str] = []

    @abstractmethod
    async def open(self) -> None:
        """Begin the session, or go on with it."""

    @abstractmethod
    async def close(self) -> None:
        """End everything that runs."""

    @abstractmethod
    async def turn(self, prompt: str, *, cancel: Callable[[], bool] | None = None) -> Turn:
        """Prompt; the turn, when it is over. With `cancel` it is cancelled as soon as that is true."""

    @abstractmethod
    def heard(self) -> str:
        """What has been said in the running turn."""

    @abstractmethod
    async def set_mode(self, mode: str) -> None: ...

    @abstractmethod
    async def set_model(self, model: str) -> None: ...

    @property
    @abstractmethod
    def mode(self) -> str: ...

    @property
    @abstractmethod
    def model(self) -> str:
        """As the session's option names it."""

    async def restart(self) -> None:
        """Everything ends and begins again, but for the session."""
        await self.close()
        await self.open()

    def processes(self) -> set[int]:
        """The processes of the agent's own program."""
        return {pid for pid in processes_with(f"TMPDIR={self._agent_home}/") if b"--input-format" in _words_of(pid)}

    @property
    def _agent_home(self) -> str:
        word = next(word for word in self.agent.command if word.startswith("HOME="))
        return word.removeprefix("HOME=")


def _words_of(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


async def waited(holds: Callable[[], bool], task: asyncio.Future[Any]) -> None:
    """Wait for something that happens while a turn runs."""
    while not holds():
        assert not task.done(), f"the turn is over: {task.result()}"
        await asyncio.sleep(0.02)


class HubTalk(Talk):
    """Under a hub in this process."""

    def __init__(self, agent: AgentSpec, home: Path, work: Path) -> None:
        super().__init__(agent, home, work)
        self._session_id = ""
        self._before = 0
        self._hub: Hub
        self._session: HubSession
        self._deciding: asyncio.Task[None]

    async def open(self) -> None:
        self._hub = await Hub(home=self.home, agents={self.agent.name: self.agent}).__aenter__()
        if self._session_id:
            self._session = await self._hub.session(self._session_id)
        else:
            self._session = await self._hub.start_session(self.agent.name, self.work)
            self._session_id = self._session.id
        self._events: list[Event] = []
        self._deciding = asyncio.create_task(self._decide())

    async def close(self) -> None:
        self._deciding.cancel()
        await asyncio.wait((self._deciding,))
        mark = f"PILOTHOUSE_HUB={self._hub._hub_id}"
        check(await history(self._hub.log, self._session_id))
        await self._hub.__aexit__(None, None, None)
        await gone(lambda: processes_with(mark))

    async def _decide(self) -> None:
        async for event in self._session.events(self._session.state.seq):
            self._events.append(event)
            if event.type == "approval:requested":
                name = event.tool_name  # type: ignore[attr-defined]
                await self._session.committed()
                record = await self._hub.log.approvals.get(event.request_id)  # type: ignore[attr-defined]
                if record.state != "pending":
                    continue  # a rule has decided it
                self.asked.append(name)
                chosen = self.choose(name)
                if chosen != OPEN:
                    await self._session.decide(event.request_id, option_id=chosen)  # type: ignore[attr-defined]

    async def turn(self, prompt: str, *, cancel: Callable[[], bool] | None = None) -> Turn:
        before, self._events[:] = self._session.state.seq, []
        sent = await self._session.send(prompt)
        if cancel is not None:
            await waited(cancel, sent.done)
            async with asyncio.timeout(15):
                assert await self._session.cancel() is True
        result = await sent.done
        events = (await history(self._hub.log, self._session_id))[before:]
        return _told(events, Turn(stop=result.stop_reason if result.error is None else "", error=result.error or ""))

    def heard(self) -> str:
        return said(self._events)

    async def set_mode(self, mode: str) -> None:
        await self._session.set_mode(mode)

    async def set_model(self, model: str) -> None:
        await self._session.set_config_option("model", model)

    @property
    def mode(self) -> str:
        return self._session.state.mode or ""

    @property
    def model(self) -> str:
        return _model(self._session.state.config_options)


def _told(events: Iterable[Event], turn: Turn) -> Turn:
    for event in events:
        told: Any = event
        match event.type:
            case "message:delta":
                turn.said += told.delta
            case "thinking:delta":
                turn.thought += told.delta
            case "tool:start":
                turn.calls[told.tool_call_id] = Call(told.name, told.kind or "", told.parent_tool_call_id)
            case "tool:result" | "tool:error":
                turn.calls[told.tool_call_id].status = "completed" if event.type == "tool:result" else "failed"
            case "approval:requested" if isinstance(told.preview, DiffPreview):
                turn.calls[told.tool_call_id].changes.append(told.preview.path)
            case "progress:todo_update":
                turn.plan = [(todo.content, todo.status) for todo in told.todos]
            case "session:error":
                turn.kind = (told.error.details or {}).get("errorKind", told.error.code)
    return turn


class EditorTalk(Talk):
    """In an editor: `pilothouse acp`, and the hub that it starts."""

    def __init__(self, agent: AgentSpec, home: Path, work: Path) -> None:
        super().__init__(agent, home, work)
        home.mkdir(mode=0o700)
        command = json.dumps(list(agent.command))
        (home / "config.toml").write_text(f"[agents.{agent.name}]\ncommand = {command}\n")
        self._home = Home(home)
        self._session = ""
        self._mode = self._model = ""
        self._before = 0
        self._running: AsyncExitStack
        self._editor: Editor

    async def open(self) -> None:
        self._running = AsyncExitStack()
        self._editor = await self._running.enter_async_context(self._home.editor("-a", self.agent.name))
        where = {"cwd": str(self.work), "mcpServers": []}
        if self._session:
            opened = await self._editor.request("session/load", {"sessionId": self._session, **where})
        else:
            opened = await self._editor.request("session/new", where)
            self._session = opened["sessionId"]
        self._mode, self._model = opened["modes"]["currentModeId"], _model(opened["configOptions"])
        deciding = asyncio.create_task(self._decide(self._editor))
        self._running.push_async_callback(asyncio.wait, (deciding,))
        self._running.callback(deciding.cancel)

    async def close(self) -> None:
        """The editor goes, and the hub, which would go on without it."""
        await self._running.aclose()
        await self._home.end_hub()

    async def _decide(self, editor: Editor) -> None:
        questions: list[Any] = []
        while True:
            async with editor._changed:
                await editor._changed.wait_for(lambda: len(editor.asked) > len(questions))
            asked = editor.asked[len(questions)]
            questions.append(asked)
            name = asked["params"]["toolCall"]["_meta"]["claudeCode"]["toolName"]
            self.asked.append(name)
            chosen = self.choose(name)
            if chosen != OPEN:
                editor.say(id=asked["id"], result={"outcome": {"outcome": "selected", "optionId": chosen}})

    async def turn(self, prompt: str, *, cancel: Callable[[], bool] | None = None) -> Turn:
        editor = self._editor
        self._before = len(editor.updates(self._session))
        sent = editor.start_prompt(self._session, prompt)
        turn = Turn()
        if cancel is not None:
            await waited(cancel, sent)
            editor.say(method="session/cancel", params={"sessionId": self._session})
        try:
            turn.stop = (await sent)["stopReason"]
        except Refused as exc:
            turn.error, turn.kind = str(exc), exc.data["details"].get("errorKind", exc.data["code"])
        for update in self._updates():
            _shown(update, turn)
        return turn

    def _updates(self) -> list[dict[str, Any]]:
        return self._editor.updates(self._session)[self._before :]

    def heard(self) -> str:
        turn = Turn()
        for update in self._updates():
            _shown(update, turn)
        return turn.said

    async def set_mode(self, mode: str) -> None:
        await self._editor.request("session/set_mode", {"sessionId": self._session, "modeId": mode})

    async def set_model(self, model: str) -> None:
        given = {"sessionId": self._session, "configId": "model", "value": model}
        await self._editor.request("session/set_config_option", given)

    @property
    def mode(self) -> str:
        updates = self._editor.updates(self._session)
        told = [one["currentModeId"] for one in updates if one["sessionUpdate"] == "current_mode_update"]
        return told[-1] if told else self._mode

    @property
    def model(self) -> str:
        updates = self._editor.updates(self._session)
        told = [one["configOptions"] for one in updates if one["sessionUpdate"] == "config_option_update"]
        return _model(told[-1]) if told else self._model


def _model(options: Iterable[dict[str, Any]]) -> str:
    return next(str(option["currentValue"]) for option in options if option["id"] == "model")


def _shown(update: dict[str, Any], turn: Turn) -> None:
    meta = update.get("_meta", {}).get("claudeCode", {})
    match update["sessionUpdate"]:
        case "agent_message_chunk" if "parentToolUseId" not in meta:
            turn.said += update["content"]["text"]
        case "agent_thought_chunk" if "parentToolUseId" not in meta:
            turn.thought += update["content"]["text"]
        case "tool_call" | "tool_call_update":
            name = meta.get("toolName", "")
            call = turn.calls.setdefault(update["toolCallId"], Call(name, update.get("kind", "")))
            call.parent = meta.get("parentToolUseId", call.parent)
            call.status = update.get("status", call.status)
            if update["sessionUpdate"] == "tool_call":
                call.changes += [item["path"] for item in update.get("content", ()) if item["type"] == "diff"]
        case "plan":
            turn.plan = [(entry["content"], entry["status"]) for entry in update["entries"]]


WAYS: dict[str, type[Talk]] = {"hub": HubTalk, "editor": EditorTalk}
