"""The editors of a session: attached clients whose files and terminals its agent uses, and who know its extensions.

Which one is asked: the one that prompted the running turn, else the one that came last. Rules a change must not break:
nothing goes to an editor that was not checked as it would be for the hub itself, what goes there names the session by
the hub's id, and no agent waits for ever because an editor is silent.

- An editor that is gone, or does not know the method, is `Unable`: the hub does it itself, and nobody notices. What an
  editor really answers, a refusal too, is what the agent gets.
- What an editor is asked for by an extension has no limit in time, but it is asked only while it has the session open.
- A read that is not answered in time is done by the hub. A write that is not answered in time is not: the editor may
  still do it, later than anything that the agent writes since, so the agent is told that nobody knows. A write to an
  editor that is gone is done by the hub: it is the same text, and nothing comes after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec
from msgspec import Raw

from ...acp.errors import METHOD_NOT_FOUND, ConnectionClosed, RequestError
from .refusals import Refusal, shown

READ = 30.0
"""Seconds for a file; a large one over a slow line takes some."""
PEEK = 5.0
"""Seconds to read a file for a comparison; after that it is read from the disk."""
WRITE = 120.0
"""Seconds for a write; an editor may ask its user what to do about changes of their own."""

Offer = Literal["reads", "writes", "terminals"]
Request = Callable[[str, Any], Awaitable[Raw | None]]
"""Calls a client; cancelling the call withdraws it. Raises RequestError, ConnectionClosed."""
Tell = Callable[[str, dict[str, Any]], object]


class Unable(Exception):
    """The editor cannot do it. `is_gone`: it will never answer, whether or not it got the request. `is_unclear`: its
    answer cannot be read."""

    def __init__(self, reason: str, *, is_gone: bool = False, is_unclear: bool = False) -> None:
        super().__init__(reason)
        self.is_gone = is_gone
        self.is_unclear = is_unclear


class EditorSilent(Refusal):
    """An editor did not report whether it carried out an act: the act may have happened, or may still happen."""


class Editor:
    """One client, of any number of sessions. `is_closed` tells that its connection is; `terminals_made` are those that
    it has shown, by session and id."""

    def __init__(
        self,
        name: str,
        request: Request,
        *,
        is_closed: Callable[[], bool] = lambda: False,
        reads: bool = False,
        writes: bool = False,
        terminals: bool = False,
    ) -> None:
        self.name = name
        self.is_closed = is_closed
        self.reads = reads
        self.writes = writes
        self.terminals = terminals
        self.terminals_made: set[tuple[str, str]] = set()
        self._request = request

    async def ask(self, method: str, params: Any, timeout: float | None = None) -> Any:
        """What it answers. Raises Unable, TimeoutError, and RequestError with the editor's own words."""
        try:
            async with asyncio.timeout(timeout):
                raw = await self._request(method, params)
            return None if raw is None else msgspec.json.decode(raw)
        except ConnectionClosed as exc:
            raise Unable(str(exc), is_gone=True) from exc
        except (msgspec.DecodeError, UnicodeError, RecursionError) as exc:
            raise Unable(f"its answer cannot be read: {exc}", is_unclear=True) from exc
        except RequestError as exc:
            if exc.code == METHOD_NOT_FOUND:
                raise Unable(str(exc)) from exc
            raise


class Editors:
    """Those attached to one session. `prompter` is who prompted the running turn; `tell` records a fact."""

    def __init__(
        self, session_id: str, attached: list[Editor], prompter: Callable[[], Editor | None], tell: Tell
    ) -> None:
        self.session_id = session_id
        self._attached = attached
        self._prompter = prompter
        self._tell = tell
        self._last: Editor | None = None
        self._asking: dict[asyncio.Task[Any], Editor] = {}

    def attach(self, editor: Editor) -> None:
        """From now on it is asked. One that is attached already becomes the last that came."""
        if editor in self._attached:
            self._attached.remove(editor)
        self._attached.append(editor)

    def detach(self, editor: Editor) -> None:
        """It is asked no more, and not waited for where somebody else can be asked instead."""
        if editor in self._attached:
            self._attached.remove(editor)
        for task, asked in self._asking.items():
            if asked is editor:
                task.cancel()

    def in_order(self) -> list[Editor]:
        """All of them, the one to be asked first at the head."""
        prompter, latest = self._prompter(), self._attached[::-1]
        return sorted(latest, key=lambda editor: editor is not prompter)

    def first(self, offer: Offer) -> Editor | None:
        """The one to be asked for something that not all offer."""
        return next((one for one in self.in_order() if getattr(one, offer) and not one.is_closed()), None)

    def serving(self, editor: Editor | None) -> None:
        """Record who does what the agent asks for, whenever that changes: an editor, or the hub itself."""
        if editor is not self._last:
            self._last = editor
            self._tell("served_by", {"editor": editor.name if editor is not None else None})

    # -- files --

    async def read(self, params: dict[str, Any]) -> Any:
        """The answer to `fs/read_text_file`. Raises Unable, RequestError."""
        editor = self.first("reads")
        if editor is None:
            raise Unable("no editor is there")
        try:
            answer = await editor.ask("fs/read_text_file", {**params, "sessionId": self.session_id}, READ)
        except TimeoutError as exc:
            raise Unable("it did not answer") from exc
        if not isinstance(answer, dict) or not isinstance(answer.get("content"), str):
            raise Unable("its answer has no `content`")
        self.serving(editor)
        return answer

    async def peek(self, path: str, until: float) -> str | None:
        """The text of a file that a write would replace in an editor; None if no editor returns it in time.

        `until` is a time of the event loop.
        """
        writer = self.first("writes")
        editor = writer if writer is not None and writer.reads else self.first("reads")
        seconds = until - asyncio.get_running_loop().time()
        if editor is None or seconds <= 0:
            return None
        try:
            params = {"path": path, "sessionId": self.session_id}
            answer = await editor.ask("fs/read_text_file", params, seconds)
        except (TimeoutError, Unable, RequestError):
            return None
        content = answer.get("content") if isinstance(answer, dict) else None
        return content if isinstance(content, str) else None

    async def write(self, params: dict[str, Any]) -> Any:
        """The answer to `fs/write_text_file`. Raises Unable, RequestError, EditorSilent."""
        editor = self.first("writes")
        if editor is None:
            raise Unable("no editor is there")
        try:
            answer = await editor.ask("fs/write_text_file", {**params, "sessionId": self.session_id}, WRITE)
        except TimeoutError as exc:
            path = str(params.get("path"))
            raise EditorSilent(
                f"{editor.name} did not say within {WRITE:g} s whether it wrote {shown(path)}, and may still do so; "
                "read the file before you write it again"
            ) from exc
        self.serving(editor)
        return answer if isinstance(answer, dict) else {}

    # -- extensions --

    async def extension(self, method: str, params: Any) -> Any:
        """The answer to a request that only clients know. Raises RequestError.

        It may take as long as its user does; an editor that leaves the session meanwhile is one that cannot.
        """
        for editor in self.in_order():
            try:
                return await self._ask_while_here(editor, method, params)
            except Unable:
                continue
        raise RequestError.method_not_found(method)

    async def _ask_while_here(self, editor: Editor, method: str, params: Any) -> Any:
        """Raises Unable, RequestError."""
        if editor not in self._attached:
            raise Unable("it has left")
        task = asyncio.get_running_loop().create_task(editor.ask(method, params), name=f"asking an editor {method}")
        self._asking[task] = editor
        try:
            await asyncio.wait((task,))
        finally:
            del self._asking[task]
            task.cancel()  # whoever gave up withdraws the question
            task.add_done_callback(lambda task: task.cancelled() or task.exception())
        if task.cancelled():
            raise Unable("it has left", is_gone=True)
        return task.result()
