"""The actions that the translator asks its driver to carry out, and the client's end of a session.

The driver carries actions out in order and knows nothing else of the CLI's dialect, so every effect of a line or an
answer has to be one of them. Notices, compactions and questions are only for clients that declared support for them;
other clients get the same facts as notes, so that nothing is lost and no client gets a message it cannot read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

import msgspec
from msgspec import Struct

from ...acp.errors import ConnectionClosed, RequestError
from ...model.loose_json import mapping
from .wire import Line, encode_line


class Update(Struct, frozen=True):
    """Tell the client: the `update` object of a `session/update`."""

    update: dict[str, Any]


class Ask(Struct, frozen=True):
    """Ask the client. What it answers goes to `Translator.answer` with the same `request_id`."""

    request_id: str
    method: str
    params: dict[str, Any]


class Withdraw(Struct, frozen=True):
    """The CLI does not wait for this answer any more: cancel the request; an answer that still comes is ignored."""

    request_id: str


class Send(Struct, frozen=True):
    """Write a line, without its newline, to the CLI.

    With a `request_id` it is a request of ours; an `Answered` of that id follows, unless the CLI dies.
    """

    line: bytes
    request_id: str | None = None


class Answered(Struct, frozen=True):
    """The CLI answered a request of ours; `error` is its own text when it refused."""

    request_id: str
    response: dict[str, Any]
    error: str | None = None


class Failure(Struct, frozen=True):
    """Why a prompt failed: a JSON-RPC error, and in one word (`kind`) what to do about it."""

    kind: str
    code: int
    message: str
    data: dict[str, Any]


class Ended(Struct, frozen=True):
    """The turn is over: answer the prompt with `response`, or with `failure` if there is one.

    Prompts that were sent while the turn ran were taken into it; `prompts` says how many this answers, oldest first.
    """

    response: dict[str, Any] | None
    failure: Failure | None = None
    prompts: int = 1


class Note(Struct, frozen=True):
    """Something that the protocol has no word for: tell the client by a notification of this extension method."""

    method: str
    params: dict[str, Any]


Action: TypeAlias = Update | Ask | Withdraw | Send | Answered | Ended | Note


META = "claudeCode"
"""The key in `_meta` under which everything goes that is the CLI's own."""

_encode = msgspec.json.Encoder().encode


class Outbox:
    """Collects the actions of what is being translated; `take` gives and forgets them."""

    def __init__(self, session_id: str, capabilities: Mapping[str, Any] | None = None) -> None:
        self.session_id = session_id
        offered = mapping(capabilities) if capabilities is not None else _EVERYTHING
        session = mapping(offered.get("session"))
        self.notices = session.get("notices") is not None
        self.compactions = session.get("compaction") is not None
        self.forms = mapping(offered.get("elicitation")).get("form") is not None
        self.links = mapping(offered.get("elicitation")).get("url") is not None
        self._actions: list[Action] = []

    def take(self) -> list[Action]:
        actions, self._actions = self._actions, []
        return actions

    def add(self, action: Action) -> None:
        self._actions.append(action)

    def update(self, kind: str, meta: Mapping[str, Any] | None = None, /, **fields: Any) -> None:
        """A `session/update`; fields that are None are left out."""
        update = {"sessionUpdate": kind, **{key: value for key, value in fields.items() if value is not None}}
        if meta:
            update["_meta"] = {META: dict(meta)}
        self._actions.append(Update(update))

    def notice(self, severity: str, title: str, description: str = "", /, **meta: Any) -> None:
        """Something that the user should be told, which is nobody's words."""
        fields: dict[str, Any] = {"severity": severity, "title": title}
        if description:
            fields["description"] = description
        if meta:
            fields["_meta"] = meta
        if self.notices:
            self._actions.append(Update({"sessionUpdate": "notice", **fields}))
        else:
            self.note("notice", fields)

    def compaction(self, compaction_id: str, status: str, **fields: Any) -> None:
        """The conversation is being shortened, or was."""
        known = {"compactionId": compaction_id, "status": status, **fields}
        if self.compactions:
            self._actions.append(Update({"sessionUpdate": "compaction_update", **known}))
        else:
            self.note("compaction", known)

    def note(self, name: str, params: Mapping[str, Any]) -> None:
        self._actions.append(Note(f"_claude/{name}", dict(params)))

    def ask(self, request_id: str, method: str, **params: Any) -> None:
        self._actions.append(Ask(request_id, method, {"sessionId": self.session_id, **params}))

    def withdraw(self, request_id: str) -> None:
        self._actions.append(Withdraw(request_id))

    def send(self, line: Line | dict[str, Any], request_id: str | None = None) -> None:
        encoded = encode_line(line) if isinstance(line, Line) else _encode(line)
        self._actions.append(Send(encoded, request_id))


_EVERYTHING: dict[str, Any] = {
    "session": {"notices": {}, "compaction": {}},
    "elicitation": {"form": {}, "url": {}},
}


class Client(Protocol):
    """A connection to an ACP client."""

    async def send_request(self, method: str, params: Any = None) -> Any: ...

    async def send_notification(self, method: str, params: Any = None) -> None: ...


class ClientEnd:
    """Speaks of one session. `answered` is told what a question was answered, `refused` why it was not."""

    def __init__(
        self,
        session_id: str,
        client: Client,
        *,
        answered: Callable[[str, Any], None],
        refused: Callable[[str, str], None],
    ) -> None:
        self._session_id = session_id
        self._client = client
        self._answered = answered
        self._refused = refused
        self._asking: dict[str, asyncio.Task[None]] = {}

    async def update(self, action: Update) -> None:
        params = {"sessionId": self._session_id, "update": action.update}
        await self._client.send_notification("session/update", params)

    async def note(self, action: Note) -> None:
        await self._client.send_notification(action.method, {"sessionId": self._session_id, **action.params})

    async def ask(self, action: Ask) -> None:
        """Send a question; its answer comes when it comes."""
        task = asyncio.get_running_loop().create_task(self._ask(action), name="asking the client")
        self._asking[action.request_id] = task
        await asyncio.sleep(0)  # the question is on its way before whatever follows it

    async def _ask(self, action: Ask) -> None:
        try:
            result = await self._client.send_request(action.method, action.params)
        except (RequestError, ConnectionClosed) as exc:
            self._refused(action.request_id, str(exc))
        else:
            self._answered(action.request_id, result)
        finally:
            self._asking.pop(action.request_id, None)

    async def withdraw(self, action: Withdraw) -> None:
        """Nobody waits for the answer any more; cancelling the request tells the client."""
        task = self._asking.get(action.request_id)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """End what is still being asked."""
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
