"""The terminals that an agent has in an editor: the programs are the editor's, and the hub follows what they print.

An editor's terminal has no stream, so its output is looked at now and then; what is new goes where the output of the
hub's own terminals goes. Rules a change must not break: whatever the editor does or fails to do, each call of the agent
is answered, and each terminal ends once; nothing is started twice. A terminal whose editor is gone has ended: with the
last output that is known, and by a signal called `unknown`, because nobody can say how.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Callable
from typing import Any

from ...acp.errors import RequestError
from .editors import Editor, EditorSilent, Unable
from .programs import PIECE, ExitStatus, Pieces
from .refusals import TerminalsClosed, TooManyTerminals, UnknownTerminal, shown
from .terminals import MOST, OUTPUT_LIMIT, OUTPUT_MOST, Ending, Output

logger = logging.getLogger(__name__)

CREATE = 60.0
"""Seconds to start a program; an editor may ask its user first."""
CALL = 10.0
"""Seconds for any other call; then what is known is the answer."""
SOON, SELDOM = 0.5, 3.0
"""Seconds between two looks: after something new, and after a while of nothing."""
AT_ONCE = 512 * 1024
"""Characters of output that are worth another second: each look brings all of it again."""
PARTING = 2.0
"""Seconds that an editor gets to end a program when nobody waits for that."""
UNKNOWN = ExitStatus(None, "unknown")
LOST = "\n… the editor that ran this is gone; how it went on is not known …\n"
LONGEST_ID = 256
OVERLAP = 4096
"""Characters of the end of a known output by which its place in a later one is found."""

OnOutput = Callable[[str, str], None]
OnEnd = Callable[[str, Ending], None]


class EditorTerminal:
    """One terminal. `name` is what the agent calls it, `own` the editor."""

    def __init__(
        self,
        editor: Editor,
        session_id: str,
        own: str,
        name: str,
        limit: int,
        on_output: OnOutput | None,
        on_end: OnEnd | None,
    ) -> None:
        self.editor = editor
        self._params = {"sessionId": session_id, "terminalId": own}
        self._name = name
        self._limit = limit
        self._on_output = on_output
        self._on_end = on_end
        self._text = ""
        self._truncated = False
        self._total = 0
        self._pieces = Pieces()
        self._status: ExitStatus | None = None
        self._found: ExitStatus | None = None
        self._ended = asyncio.Event()
        self._looking = asyncio.Lock()
        self._is_over = asyncio.Event()
        self._is_released = False
        self._watching = asyncio.get_running_loop().create_task(self._watch(), name=f"editor's terminal {name}")

    @property
    def is_running(self) -> bool:
        return self._status is None

    # -- what an agent calls --

    async def output(self) -> Output:
        """What it printed, as the editor says now, or as it was last known."""
        if self.is_running:
            with contextlib.suppress(Unable, TimeoutError):
                await self._look()
        if self.is_running and self._found is not None:
            self._is_over.set()
            await asyncio.wait((self._watching,))
        return Output(self._text, self._truncated, self._status)

    async def wait(self) -> ExitStatus:
        await self._ended.wait()
        assert self._status is not None
        return self._status

    async def kill(self) -> None:
        """Raises RequestError."""
        if self.is_running:
            with contextlib.suppress(Unable, TimeoutError):
                await self.editor.ask("terminal/kill", self._params, CALL)

    async def release(self) -> None:
        """End it, if it runs, and let the editor forget it. Never fails: to the agent it is gone.

        Once: afterwards the editor may call another one so.
        """
        if self._is_released:
            return
        self._is_released = True
        with contextlib.suppress(Unable, RequestError, TimeoutError):
            async with asyncio.timeout(PARTING):
                if self.is_running:
                    await self.editor.ask("terminal/kill", self._params)
                    await self._ended.wait()
        self.lose()
        await asyncio.wait((self._watching,))
        with contextlib.suppress(Unable, RequestError, TimeoutError):
            await self.editor.ask("terminal/release", self._params, PARTING)

    def lose(self) -> None:
        """The editor is of no more use here; does nothing to a terminal that has ended."""
        self._is_over.set()

    # -- its life --

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        ending = loop.create_task(self._await_end())
        over = loop.create_task(self._is_over.wait())
        status = UNKNOWN
        try:
            status = await self._follow(ending, over)
        except (Unable, RequestError) as exc:
            logger.info("terminal %s is lost: %s", self._name, exc)
            status = self._found or UNKNOWN
        except Exception:  # a defect must not leave anybody waiting
            logger.exception("terminal %s could not be followed", self._name)
        finally:
            await _drop(ending, over)
            self._end(status)

    async def _follow(self, ending: asyncio.Task[ExitStatus | None], over: asyncio.Task[Any]) -> ExitStatus:
        """Until it has ended. Raises Unable, RequestError when the editor does not know it any more."""
        pause = SOON
        waiting: set[asyncio.Task[Any]] = {ending, over}
        while self._found is None:
            await asyncio.wait(waiting, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
            if over.done():
                break
            if ending in waiting and ending.done():
                waiting.discard(ending)
                self._found = ending.result()
            is_new = await self._news(over)
            pause = min(SOON + len(self._text) / AT_ONCE if is_new else pause * 1.5, SELDOM)
        return self._found or UNKNOWN

    async def _news(self, over: asyncio.Task[Any]) -> bool:
        """Whether there was something new. Does not wait when it is over."""
        before = self._total
        looking = asyncio.get_running_loop().create_task(self._look())
        try:
            await asyncio.wait((looking, over), return_when=asyncio.FIRST_COMPLETED)
            if looking.done():
                looking.result()
        except TimeoutError:
            pass  # it is slow, and may answer the next time
        finally:
            await _drop(looking)
        return self._total != before

    async def _await_end(self) -> ExitStatus | None:
        """Its end; None when the editor does not tell of that, and it must be looked for."""
        try:
            return _status(await self.editor.ask("terminal/wait_for_exit", self._params)) or UNKNOWN
        except Unable as exc:
            if exc.is_gone:
                raise
            return None

    async def _look(self) -> None:
        """Take in what is new. Raises Unable, TimeoutError, RequestError."""
        async with self._looking:
            answer = await self.editor.ask("terminal/output", self._params, CALL)
            if not isinstance(answer, dict) or not isinstance(answer.get("output"), str):
                raise Unable("its answer has no `output`")
            if self.is_running:
                self._take(answer["output"], truncated=answer.get("truncated") is True)
                self._found = _status(answer.get("exitStatus")) or self._found

    def _take(self, text: str, *, truncated: bool) -> None:
        if len(text) > self._limit:
            text, truncated = text[len(text) - self._limit :], True
        new = _new_part(self._text, text)
        self._text, self._truncated = text, truncated
        data = new.encode(errors="replace")
        self._total += len(data)
        for start in range(0, len(data), PIECE):
            self._pieces.add(data[start : start + PIECE])
            if self._pieces.is_full:
                self._emit()
        self._emit()

    def _emit(self, *, final: bool = False) -> None:
        while self._on_output is not None:
            if text := self._pieces.take(asyncio.get_running_loop().time(), final=final):
                self._on_output(self._name, text)
            if not final or self._pieces.is_empty:
                return

    def _end(self, status: ExitStatus) -> None:
        try:
            if status is UNKNOWN:
                self._take(self._text + LOST, truncated=self._truncated)
            self._emit(final=True)
            left_out = max(0, self._total - len(self._text.encode(errors="replace")))
            if self._on_end is not None:
                self._on_end(self._name, Ending(status, self._text, left_out))
        except Exception:
            logger.exception("a follower of a terminal failed")
        self._status = status
        self._ended.set()


class EditorTerminals:
    """Those of one session. `close` ends them all."""

    def __init__(
        self,
        session_id: str,
        *,
        is_taken: Callable[[str], bool] = lambda name: False,
        on_output: OnOutput | None = None,
        on_end: OnEnd | None = None,
        most: int = MOST,
    ) -> None:
        """`is_taken` tells the ids that other terminals of the session have."""
        self._session_id = session_id
        self._is_taken = is_taken
        self._on_output = on_output
        self._on_end = on_end
        self._most = most
        self._terminals: dict[str, EditorTerminal] = {}
        self._parting: list[asyncio.Task[None]] = []
        self._late: list[asyncio.Task[None]] = []
        self._starting = 0
        self._closed = False

    def __contains__(self, terminal_id: object) -> bool:
        return terminal_id in self._terminals

    @property
    def are_busy(self) -> bool:
        return self._starting > 0 or any(terminal.is_running for terminal in self._terminals.values())

    async def create(self, editor: Editor, params: dict[str, Any]) -> str:
        """Start a program there; the id of its terminal. Raises Unable, RequestError, TerminalError, EditorSilent.

        An editor that goes away, or says nothing, may have started it: then the agent is told so, and it is not
        started once more by somebody else.
        """
        if len(self._terminals) + self._starting >= self._most:
            raise TooManyTerminals(f"no new terminal: there are {self._most} already, the most allowed; release some")
        command = shown(str(params.get("command")))
        self._starting += 1
        try:
            answer = await self._ask_for(editor, {**params, "sessionId": self._session_id})
        except TimeoutError as exc:
            message = f"{editor.name} did not say within {CREATE:g} s whether it started {command}, and may still do so"
            raise EditorSilent(message) from exc
        except Unable as exc:
            if not exc.is_gone and not exc.is_unclear:
                raise
            why = "went away" if exc.is_gone else "gave no readable answer"
            message = f"{editor.name} {why} while it was to start {command}; it may have run, so look before"
            raise EditorSilent(f"{message} you run it again") from exc
        finally:
            self._starting -= 1
        own = answer.get("terminalId") if isinstance(answer, dict) else None
        if not isinstance(own, str) or not 0 < len(own) <= LONGEST_ID:
            raise EditorSilent(f"{editor.name} answered terminal/create without a terminalId; {command} may have run")
        return self._made(editor, own, params.get("outputByteLimit"))

    async def _ask_for(self, editor: Editor, params: dict[str, Any]) -> Any:
        """What the editor answers. If nobody waits for that any more, what it starts all the same is ended."""
        asking = asyncio.get_running_loop().create_task(editor.ask("terminal/create", params), name="asking an editor")
        try:
            async with asyncio.timeout(CREATE):
                return await asyncio.shield(asking)
        finally:
            if not asking.done():
                late = asyncio.get_running_loop().create_task(self._end_late(editor, asking), name="a late terminal")
                self._late.append(late)
                late.add_done_callback(self._late.remove)

    async def _end_late(self, editor: Editor, asking: asyncio.Task[Any]) -> None:
        try:
            await asyncio.wait((asking,))
        finally:
            await _drop(asking)
        answer = asking.result() if asking.exception() is None else None
        own = answer.get("terminalId") if isinstance(answer, dict) else None
        if isinstance(own, str) and own not in self._terminals:
            params = {"sessionId": self._session_id, "terminalId": own}
            for method in ("terminal/kill", "terminal/release"):
                with contextlib.suppress(Unable, RequestError, TimeoutError):
                    await editor.ask(method, params, PARTING)

    def _made(self, editor: Editor, own: str, limit: Any) -> str:
        # its own id, by which it shows the terminal where a call names it; unless somebody has that already
        is_free = own not in self._terminals and not self._is_taken(own)
        name = own if is_free else f"term_{secrets.token_hex(8)}"
        limit = OUTPUT_LIMIT if not isinstance(limit, int) else min(max(limit, 0), OUTPUT_MOST)
        terminal = EditorTerminal(editor, self._session_id, own, name, limit, self._on_output, self._on_end)
        if self._closed:
            self._part(terminal)
            raise TerminalsClosed("no new terminal: the session is ending")
        self._terminals[name] = terminal
        if name == own:
            editor.terminals_made.add((self._session_id, name))
        return name

    async def output(self, terminal_id: str) -> Output:
        return await self._terminal(terminal_id).output()

    async def wait(self, terminal_id: str) -> ExitStatus:
        return await self._terminal(terminal_id).wait()

    async def kill(self, terminal_id: str) -> None:
        await self._terminal(terminal_id).kill()

    async def release(self, terminal_id: str) -> None:
        terminal = self._terminal(terminal_id)
        del self._terminals[terminal_id]
        await asyncio.shield(self._part(terminal))

    def lose(self, editor: Editor) -> None:
        """An editor leaves the session: its terminals here have ended, and it may forget them."""
        editor.terminals_made -= {made for made in editor.terminals_made if made[0] == self._session_id}
        for terminal in self._terminals.values():
            if terminal.editor is editor:
                terminal.lose()
                self._part(terminal)

    async def close(self) -> None:
        """Release all, and take no more."""
        self._closed = True
        for terminal in self._terminals.values():
            self._part(terminal)
        self._terminals.clear()
        if self._parting:
            await asyncio.wait(tuple(self._parting))
        if self._late:
            await asyncio.wait(tuple(self._late), timeout=PARTING)
            await _drop(*self._late)

    def _terminal(self, terminal_id: str) -> EditorTerminal:
        try:
            return self._terminals[terminal_id]
        except KeyError:
            raise UnknownTerminal(terminal_id) from None

    def _part(self, terminal: EditorTerminal) -> asyncio.Task[None]:
        """Release it whoever is cancelled meanwhile."""
        task = asyncio.get_running_loop().create_task(terminal.release(), name="releasing an editor's terminal")
        self._parting.append(task)
        task.add_done_callback(self._parting.remove)
        return task


async def _drop(*tasks: asyncio.Task[Any]) -> None:
    """End tasks whose outcome nobody wants any more."""
    if not tasks:
        return
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.exception()


def _status(value: Any) -> ExitStatus | None:
    """How it ended, as an editor says it; None when it does not."""
    if not isinstance(value, dict):
        return None
    code, signal = value.get("exitCode"), value.get("signal")
    is_code = isinstance(code, int) and not isinstance(code, bool)
    return ExitStatus(code if is_code else None, signal[:100] if isinstance(signal, str) else None)


def _new_part(known: str, text: str) -> str:
    """What an output has beyond what is known of it, also when its beginning has been cut off since."""
    if text.startswith(known):
        return text[len(known) :]
    end = known[-OVERLAP:]
    place = text.rfind(end)
    return text[place + len(end) :] if place >= 0 else f"\n… some output left out …\n{text}"
