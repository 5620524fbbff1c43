"""The client's end of a session: what it is told, in order, and the questions that wait for its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from ...acp.errors import ConnectionClosed, RequestError
from .actions import Ask, Note, Update, Withdraw

__all__ = ["Client", "ClientEnd"]


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
