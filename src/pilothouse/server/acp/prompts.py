"""The prompts of one client: each waits in the hub's queue, then for its turn, then until the client was told it all.

Rules a change must not break: what a client cancels is its own, but for `session/cancel`, which ends the turn that
runs, whoever prompted; a client that leaves cancels nothing. Prompts run in the order in which they came, and can be
cancelled from that moment on, also while their session is still being looked for.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Awaitable, Iterator, Mapping
from typing import Any

from ...acp import schema
from ...acp.errors import RequestError
from ...hub.agent.inputs import without_ours
from ...hub.errors import HubError
from ...hub.session.prompt_queue import Prompt
from ...hub.session.session import HubSession
from ...model.commands import MOST_BLOCKS
from .answers import prompt_answer, refusing
from .attachments import Attachments
from .entrance import ours


class Prompts:
    """`close` first, then let the connection go."""

    def __init__(self, attachments: Attachments) -> None:
        self._attachments = attachments
        self._sent: dict[str, list[Prompt]] = defaultdict(list)
        self._coming: dict[str, list[asyncio.Event]] = defaultdict(list)
        self._sending: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._aside: set[asyncio.Task[Any]] = set()
        self._is_closing = False

    def close(self) -> None:
        self._is_closing = True

    async def finish(self) -> None:
        """Wait for what is being cancelled."""
        if self._aside:
            await asyncio.wait(set(self._aside))

    @contextlib.contextmanager
    def coming(self, session_id: str) -> Iterator[asyncio.Event]:
        """A prompt has come; the event is set when it is cancelled before it is in the hub's queue."""
        cancelled = asyncio.Event()
        self._coming[session_id].append(cancelled)
        try:
            yield cancelled
        finally:
            self._coming[session_id].remove(cancelled)

    async def prompt(
        self, session: HubSession, content: list[Any], meta: Mapping[str, Any] | None, cancelled: asyncio.Event
    ) -> schema.PromptResponse:
        """Raises RequestError."""
        if not 0 < len(content) <= MOST_BLOCKS:
            raise RequestError.invalid_params(
                {"field": "prompt", "reason": f"expected 1 to {MOST_BLOCKS} content blocks"}
            )
        request_id = ours(meta).get("clientRequestId")
        async with self._sending[session.id]:  # a prompt may take longer to be sent than the one behind it
            await self._attachments.opened(session)
            if cancelled.is_set():
                return schema.PromptResponse(stop_reason="cancelled")
            sent = await refusing(
                session.send(
                    content,
                    client_request_id=request_id if isinstance(request_id, str) else None,
                    meta=without_ours(meta),
                    editor=self._attachments.editor,
                )
            )
        self._attachments.mine(session.id, sent.turn_id)
        own = self._sent[session.id]
        own.append(sent)
        if cancelled.is_set():  # while it was looked whether this is a prompt that came before
            self._spawn(self._cancel(session, [sent]))
        try:
            result = await refusing(asyncio.shield(sent.done))
            ending = await self._attachments.told(session.id, sent.turn_id, result.seq)
        except asyncio.CancelledError:
            if not self._is_closing and not sent.done.done():
                self._spawn(self._cancel(session, [sent]))  # `$/cancel_request`: it is wanted no longer
            raise
        finally:
            own.remove(sent)
        return prompt_answer(result, ending)

    def cancel_coming(self, session_id: str) -> None:
        """What has come for a session and is on its way shall not run."""
        for cancelled in self._coming[session_id]:
            cancelled.set()

    def cancel_all(self, session: HubSession) -> None:
        """End the running turn, and take back what this client has waiting.

        Not waited for: what else the client has to say about the session must not wait until the turn is over.
        """
        self._spawn(self._cancel_all(session))

    async def cancel_own(self, session: HubSession) -> None:
        """End what this client has prompted, and nothing else."""
        await self._cancel(session, list(self._sent[session.id]))

    async def _cancel_all(self, session: HubSession) -> None:
        for sent in list(self._sent[session.id]):
            _take_back(session, sent)
        await session.cancel()

    async def _cancel(self, session: HubSession, prompts: list[Prompt]) -> None:
        for sent in prompts:
            if not sent.done.done() and not _take_back(session, sent):
                await session.cancel()

    def _spawn(self, work: Awaitable[Any]) -> None:
        task = asyncio.ensure_future(work)
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)


def _take_back(session: HubSession, sent: Prompt) -> bool:
    """Take a prompt out of the queue, if it is still there: one whose turn is about to begin is not, and waits, too."""
    if sent.phase == "waiting":
        with contextlib.suppress(HubError):
            session.cancel_queued(sent.turn_id)
            return True
    return False
