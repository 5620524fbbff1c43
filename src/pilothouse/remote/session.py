"""One session of a hub in another process: prompts, decisions, and its events from any cursor on.

What a call changes comes back as events. A stream that breaks reconnects from its cursor, so each event is seen once
and none is missed. A step of a stream can be cancelled and repeated without losing an event.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, NamedTuple

from ..model.commands import OfferId, Remember
from ..model.events import CustomEvent, Event, SessionErrorEvent, decode_event
from .errors import ConnectionLost, NoHub, Refused
from .http import Client, Reply, segment
from .http_parser import Events

PATIENCE = 10.0
"""Seconds that a stream waits for a hub that went away to come back."""
FIRST_WAIT, LONGEST_WAIT = 0.05, 1.0
CLOSING = 503


class Stored(NamedTuple):
    """An event as the hub's log has it: `data` is its JSON."""

    seq: int
    data: bytes


class Stream:
    """Events beyond `cursor`, which moves with what is handed out. `close` it."""

    def __init__(
        self, client: Client, path: str, after: int, patience: float, lost: Callable[[], None] | None = None
    ) -> None:
        self.cursor = after
        self._lost = lost
        self._client = client
        self._path = path
        self._patience = patience
        self._reply: Reply | None = None
        self._events = Events()
        self._wait = FIRST_WAIT
        self._deadline: float | None = None

    async def next(self) -> list[Stored]:
        """The next events, never none. Raises ConnectionLost with the cursor, Refused."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                if batch := await self._part():
                    self.cursor = batch[-1].seq
                    return batch
            except (NoHub, ConnectionLost, Refused) as exc:
                await self.close()
                if isinstance(exc, Refused) and exc.status != CLOSING:
                    raise
                if self._deadline is None:
                    self._deadline = loop.time() + self._patience
                    if self._lost is not None:
                        self._lost()
                if loop.time() >= self._deadline:
                    raise ConnectionLost(f"the hub is gone; event {self.cursor} was the last", self.cursor) from exc
            if self._reply is None:
                await asyncio.sleep(self._wait)
                self._wait = min(self._wait * 2, LONGEST_WAIT)

    async def close(self) -> None:
        reply, self._reply = self._reply, None
        if reply is not None:
            await reply.close()

    async def _part(self) -> list[Stored]:
        """What the next bytes hold; the connection is made if there is none, and let go at its end."""
        if self._reply is None:
            headers, query = {"Accept": "text/event-stream"}, {"after": self.cursor}
            self._reply = await self._client.open("GET", self._path, query=query, headers=headers)
            self._events, self._wait, self._deadline = Events(), FIRST_WAIT, None
        part = await self._reply.part()
        if not part:
            await self.close()
            self._deadline = asyncio.get_running_loop().time()  # it said goodbye: if nobody is there now, that was all
        found = [Stored(int(frame.id), frame.data) for frame in self._events.feed(part) if frame.id.isdecimal()]
        return [stored for stored in found if stored.seq > self.cursor]


CLIENT = "Pilothouse-Client"


class TurnEnd(NamedTuple):
    """How a turn ended; `seq` is that of the event that says so."""

    turn_id: str
    stop_reason: str
    seq: int
    error: str | None = None


class RemoteTurn(NamedTuple):
    """A prompt that the hub has accepted. Its events lie beyond `seq`."""

    turn_id: str
    seq: int


def end_of(event: Event, turn_id: str) -> TurnEnd | None:
    """How the turn ended, if this event says so."""
    if not isinstance(event, CustomEvent) or event.namespace != "pilothouse":
        return None
    if event.event_name == "turn_ended" and event.data.get("turnId") == turn_id:
        return TurnEnd(turn_id, str(event.data.get("stopReason")), event.seq)
    if event.event_name == "prompt_cancelled" and event.data.get("promptId") == turn_id:
        return TurnEnd(turn_id, "cancelled", event.seq)
    return None


class RemoteSession:
    """A session by its id; nothing is asked of the hub until something is wanted."""

    def __init__(self, client: Client, session_id: str, *, agent_name: str = "", cwd: str = "") -> None:
        self.id = session_id
        self.agent_name = agent_name
        self.cwd = cwd
        self._client = client
        self._path = f"/sessions/{segment(session_id)}"

    async def snapshot(self, *, items: bool = True) -> dict[str, Any]:
        """The session as its events tell it, with the `seq` to go on from; without `items` short. Raises NotFound."""
        answer: dict[str, Any] = await self._client.request("GET", self._path, query={"items": items})
        return answer

    # -- events --

    async def follow(
        self, after: int = 0, *, patience: float = PATIENCE, lost: Callable[[], None] | None = None
    ) -> AsyncGenerator[list[Stored], None]:
        """Batches of stored events beyond a seq: history, then live, also across a restart of the hub.

        Raises ConnectionLost with the cursor when the hub went away and is not back in time; Refused when it is
        there and says no. A hub that ended the stream in order, and is gone, is not waited for. `lost` is called
        when the wait for a hub begins.
        """
        stream = Stream(self._client, f"{self._path}/events", after, patience, lost)
        try:
            while True:
                yield await stream.next()
        finally:
            await stream.close()

    async def events(self, after: int = 0, *, patience: float = PATIENCE) -> AsyncGenerator[Event, None]:
        """Events beyond a seq: history, then live, until the hub is gone. Raises Refused."""
        stream = Stream(self._client, f"{self._path}/events", after, patience)
        try:
            while True:
                try:
                    batch = await stream.next()
                except ConnectionLost:
                    return
                for stored in batch:
                    yield decode_event(stored.data)
        finally:
            await stream.close()

    # -- prompts --

    async def send(self, content: Any, *, client_request_id: str | None = None) -> RemoteTurn:
        """Give the session a prompt: text, or content blocks. It runs when those before it are done.

        The same `client_request_id` again is the same prompt. Raises Refused.
        """
        body = {"content": content}
        if client_request_id is not None:
            body["client_request_id"] = client_request_id
        headers = {"Prefer": "respond-async"}
        answer = await self._client.request("POST", f"{self._path}/send-message", body, headers=headers)
        return RemoteTurn(str(answer["turn_id"]), int(answer.get("seq") or 0))

    async def prompt(self, content: Any, *, client_request_id: str | None = None) -> TurnEnd:
        """`send`, and wait for the end of the turn. Who is cancelled here leaves the turn running.

        Raises Refused, ConnectionLost.
        """
        turn = await self.send(content, client_request_id=client_request_id)
        error: str | None = None
        stream = Stream(self._client, f"{self._path}/events", turn.seq, PATIENCE)
        try:
            while True:
                for stored in await stream.next():
                    event = decode_event(stored.data)
                    if isinstance(event, SessionErrorEvent):
                        error = event.error.message
                    elif isinstance(event, CustomEvent) and event.event_name == "turn_started":
                        error = None
                    if (end := end_of(event, turn.turn_id)) is not None:
                        return end._replace(error=error)
        finally:
            await stream.close()

    async def cancel(self) -> bool:
        """End the running turn; returns when it has ended, and whether there was one."""
        answer = await self._client.request("POST", f"{self._path}/cancel")
        return bool((answer or {}).get("cancelled"))

    # -- decisions --

    async def decide(
        self,
        request_id: str,
        *,
        approved: bool | None = None,
        option_id: str | None = None,
        reason: str | None = None,
        by: str | None = None,
        remember: Remember = "once",
        rule: OfferId | None = None,
        answers: Mapping[str, str | list[str]] | None = None,
    ) -> dict[str, Any]:
        """Decide an approval, by yes or no or by an option of the agent. Raises NotFound, Conflict, Refused.

        `rule` is the offered rule that `remember` stores; `answers` are those to the questions of the approval.
        """
        return await decide(
            self._client,
            request_id,
            approved=approved,
            option_id=option_id,
            reason=reason,
            by=by,
            remember=remember,
            rule=rule,
            answers=answers,
        )

    async def answer(self, question_id: str, answer: Any = None) -> None:
        """Answer a question; None declines. Raises NotFound, Conflict, Refused."""
        await self.command({"command": "answer_question", "questionId": question_id, "answer": answer})

    async def command(self, command: dict[str, Any]) -> dict[str, Any]:
        """Any command of the commands' reference; what came of it. Raises Refused."""
        answer = await self._client.request("POST", f"{self._path}/commands", command)
        return answer if isinstance(answer, dict) else {}

    async def rename(self, title: str | None) -> None:
        await self._client.request("PATCH", self._path, {"title": title})

    async def archive(self, *, undo: bool = False) -> None:
        """Put it out of the way of lists, or back. It stays as it is."""
        await self._client.request("PATCH", self._path, {"archived": not undo})

    async def delete(self) -> None:
        """End the session and delete it with all its events."""
        await self._client.request("DELETE", self._path)


async def decide(
    client: Client,
    request_id: str,
    *,
    approved: bool | None,
    option_id: str | None,
    reason: str | None,
    by: str | None,
    remember: Remember,
    rule: OfferId | None,
    answers: Mapping[str, str | list[str]] | None,
) -> dict[str, Any]:
    """Send a decision. Returns the approval as it then is; its `decision` has the stored `rule` or `ruleRefusal`."""
    given = {
        "optionId": option_id,
        "decision": None if approved is None else "allow" if approved else "deny",
        "reason": reason,
        "remember": remember if remember != "once" else None,
        "rule": rule,
        "answers": dict(answers) if answers is not None else None,
    }
    body = {name: value for name, value in given.items() if value is not None}
    headers = {CLIENT: by} if by else None
    answer: dict[str, Any] = await client.request("POST", f"/approvals/{segment(request_id)}", body, headers=headers)
    return answer
