"""One session with the CLI: runs the translator between a process and a client, and carries out what it says.

Everything goes through one task: it takes the process's lines and does what the translator makes of them, in that
order, and the next line is not looked at before the last one's actions are done. Others only ever add actions. So the
client sees the session as it happened, and a prompt is answered after all that belongs to it.

The process may come and go: one that died, was too slow to be interrupted, or ended at a limit is started again by the
next prompt, with the same conversation and in the mode and with the model that the session had.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from uuid import uuid4

import msgspec

from ...acp.errors import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, ConnectionClosed, RequestError, SpawnError
from ...acp.framing import Oversize
from .actions import Action, Answered, Ask, Client, ClientEnd, Ended, Note, Send, Update, Withdraw
from .diffs import Originals
from .process import CliProcess, Options, arguments, remedy, start_cli
from .translate import Translator
from .turns import model_asked_for

logger = logging.getLogger("pilothouse.agents.claude_bridge")

INITIALIZE_TIMEOUT = 50.0
"""Seconds for the handshake; less than a hub waits for a session to open, so that ours is the error it tells."""
CONTROL_TIMEOUT = 20.0
SETTINGS_TIMEOUT = 5.0
INTERRUPT_DEADLINE = 6.0
"""Seconds until an interrupted turn is ended without the CLI; less than a hub waits before it kills the agent."""
FOLLOW_UP = 5.0
"""Seconds in which the main agent takes up what a sub-agent in the background has done, as it nearly always does."""
CLOSE_TIMEOUT = 5.0
LAST_WORDS = 2000

Origin = Callable[[str], Awaitable[Sequence[str]]]
"""Gives the arguments that take up the conversation with this id, or begin it."""


class ClaudeSession:
    """One session. `start` begins it, `release` lets it speak, `close` ends it for good.

    `moved` is told when the CLI goes on with the session in another conversation than before.
    """

    def __init__(
        self,
        session_id: str,
        client: Client,
        *,
        program: str,
        cwd: str,
        origin: Origin,
        options: Options | None = None,
        servers: bytes | None = None,
        capabilities: Mapping[str, Any] | None = None,
        moved: Callable[[str, str], None] | None = None,
        interrupt_deadline: float = INTERRUPT_DEADLINE,
        initialize_timeout: float = INITIALIZE_TIMEOUT,
    ) -> None:
        self.session_id = session_id
        self._client = ClientEnd(
            session_id,
            client,
            answered=lambda request_id, result: self._take(self._translator.answer(request_id, result)),
            refused=lambda request_id, reason: self._take(self._translator.refuse(request_id, reason)),
        )
        self._program = program
        self._cwd = cwd
        self._origin = origin
        self._options = options or Options()
        self._servers = servers
        self._moved = moved
        self._conversation = session_id
        self._interrupt_deadline = interrupt_deadline
        self._initialize_timeout = initialize_timeout
        bypass = self._options.permission_mode == "bypassPermissions"
        self._translator = Translator(
            session_id, capabilities=capabilities, cwd=cwd, bypass=bypass, look=Originals(cwd)
        )
        self._cli: CliProcess | None = None
        self._opening = asyncio.Lock()
        self._actions: deque[Action] = deque()
        self._held: list[Action] | None = []
        self._work = asyncio.Event()
        self._prompts: deque[asyncio.Future[Ended]] = deque()
        self._controls: dict[str, asyncio.Future[Answered]] = {}
        self._cancels = 0
        self._starting = 0
        self._insisting: asyncio.Task[None] | None = None
        self._releasing: asyncio.TimerHandle | None = None
        self._unanswered: set[str] = set()
        self._unheard: set[bytes] = set()
        self._closed = False
        self._do_it: Mapping[type, Callable[[Any], Awaitable[None]]] = {
            Update: self._client.update,
            Note: self._client.note,
            Ask: self._client.ask,
            Withdraw: self._client.withdraw,
            Send: self._send,
            Answered: self._answered,
            Ended: self._end,
        }
        self._task = asyncio.get_running_loop().create_task(self._run(), name="a session of Claude Code")

    @property
    def pid(self) -> int | None:
        """The process, while one runs."""
        return self._cli.pid if self._cli is not None and not self._cli.is_over else None

    @property
    def is_busy(self) -> bool:
        return bool(self._prompts)

    @property
    def options(self) -> Options:
        """How it is run, in the mode that it is in now: neither a restart nor a fork raises or lowers it.

        Nor do they change the model, whether that was chosen by a client or by a command of the CLI.
        """
        options = msgspec.structs.replace(self._options, model=self._translator.chosen_model or self._options.model)
        if self._translator.cli_session_id is None:
            return options
        mode = self.setup()["modes"]["currentModeId"]
        return msgspec.structs.replace(options, permission_mode=mode)

    def setup(self) -> dict[str, Any]:
        """The modes and config options, as an answer that opens a session has them."""
        return self._translator.setup()

    # -- what a client may ask for --

    async def start(self) -> None:
        """Have a process that has answered the handshake. Raises RequestError."""
        async with self._opening:
            while self._cli is not None and self._cli.is_over:
                await self._cli.settled.wait()
            if self._closed:
                raise RequestError(INVALID_REQUEST, "the session is closed")
            if self._cli is None:
                await self._open()

    def release(self) -> None:
        """The client knows of the session: tell it what was held back, and from now on everything at once."""
        held, self._held = self._held or [], None
        self._actions.extendleft(reversed(held))
        self._work.set()

    async def prompt(self, content: Any) -> dict[str, Any]:
        """Send a prompt and wait for the end of its turn. Raises RequestError when the turn fails."""
        ended, unheard = await self._prompted(content)
        if unheard:  # it went to a process that was about to end, as one does at a limit
            ended, _ = await self._prompted(content)
        model = model_asked_for(content)
        if model and self.pid is not None:
            await self._look_at_settings(model)
        if ended.failure is not None:
            raise RequestError(ended.failure.code, ended.failure.message, ended.failure.data)
        return ended.response or {"stopReason": "end_turn"}

    async def _prompted(self, content: Any) -> tuple[Ended, bool]:
        """The end of a turn, and whether its process died without having taken notice of the prompt."""
        cancels = self._cancels
        self._starting += 1
        try:
            await self.start()
        except RequestError:
            if cancels == self._cancels:
                raise
        finally:
            self._starting -= 1
        if cancels != self._cancels:
            return Ended({"stopReason": "cancelled"}), False
        uuid = str(uuid4())
        mark = uuid.encode()
        future: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self._prompts.append(future)
        self._unheard.add(mark)
        self._take(self._translator.prompt(content, uuid=uuid))
        try:
            ended = await asyncio.shield(future)
            died = ended.failure is not None and ended.failure.kind == "agent_died"
            return ended, died and mark in self._unheard and cancels == self._cancels
        except asyncio.CancelledError:
            self.cancel()
            raise
        finally:
            self._unheard.discard(mark)

    def cancel(self) -> None:
        """End the running turn; its prompt is answered within the deadline, whatever the CLI does."""
        self._cancels += 1
        waiting = [future for future in self._prompts if not future.done()]
        if waiting:
            self._interrupt()
            if self._insisting is None or self._insisting.done():
                self._insisting = asyncio.get_running_loop().create_task(self._insist(waiting), name="interrupting")
        elif self._starting and self._opening.locked() and self._cli is not None:
            # its prompt waits for a process that may be long in coming
            self._insisting = asyncio.get_running_loop().create_task(self._cli.stop(), name="breaking off a start")

    async def set_mode(self, mode: str) -> None:
        """Raises RequestError with the CLI's own words when it refuses."""
        await self._set("set_permission_mode", "mode", mode)
        self._options = msgspec.structs.replace(self._options, permission_mode=mode)

    async def set_model(self, model: str) -> None:
        """Raises RequestError for a model that is none of the CLI's."""
        await self.start()  # it says which there are
        if not self._translator.takes_model(model):
            (option,) = self.setup()["configOptions"]
            names = ", ".join(choice["value"] for choice in option["options"])
            message = f"expected one of {names}, or another name of a Claude model; got {model!r}"
            raise RequestError(INVALID_PARAMS, message, {"field": "model"})
        await self._set("set_model", "model", model)

    async def _set(self, subtype: str, field: str, value: str) -> None:
        await self.start()
        try:
            answered = await self._asked(self._translator.control(subtype, **{field: value}), CONTROL_TIMEOUT)
        except TimeoutError:
            message = f"Claude Code did not answer {subtype} within {CONTROL_TIMEOUT:g} s"
            raise RequestError(INTERNAL_ERROR, message) from None
        if answered.error is not None:
            raise RequestError(INVALID_PARAMS, answered.error, {"field": field})

    async def stop(self) -> None:
        """End the process; the next prompt starts another."""
        cli = self._cli
        if cli is not None:
            await cli.stop()
            await cli.settled.wait()

    async def close(self) -> None:
        """End everything. Prompts that wait are answered as cancelled."""
        self._closed = True
        self._take(self._translator.abandon())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT):  # a client that reads nothing must not keep the process alive
                await self.stop()
        await self._client.close()
        if self._releasing is not None:
            self._releasing.cancel()
        tasks = [self._task, *([self._insisting] if self._insisting is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        self._fail_all("the session was closed")

    # -- the process --

    async def _open(self) -> None:
        known = self._translator.cli_session_id or self.session_id
        origin = await self._origin(known)
        options = self.options
        try:
            self._cli = await start_cli(
                self._program,
                lambda servers: arguments(options, origin, servers),
                cwd=self._cwd,
                wake=self._work.set,
                servers=self._servers,
            )
        except SpawnError as exc:
            raise RequestError(
                INTERNAL_ERROR, f"{exc}. {remedy(self._program)}", {"errorKind": "not_started"}
            ) from None
        cli = self._cli
        try:
            if self._closed:  # meanwhile
                raise RequestError(INVALID_REQUEST, "the session is closed")
            await self._shake_hands(cli)
        except BaseException:
            await cli.stop()
            raise

    async def _shake_hands(self, cli: CliProcess) -> None:
        try:
            answered = await self._asked(self._translator.control("initialize"), self._initialize_timeout)
        except TimeoutError:
            problem = f"Claude Code did not answer within {self._initialize_timeout:g} s."
        else:
            if answered.error is None:
                cli.remove_config()
                await self._look_at_settings()
                return
            problem = answered.error
        tail = cli.stderr_tail
        words = tail[-LAST_WORDS:].strip()
        message = f"{problem} It said: {words}" if words not in problem else problem
        raise RequestError(INTERNAL_ERROR, message, {"errorKind": "start_failed", "stderrTail": tail})

    async def _look_at_settings(self, asked_for: str = "") -> None:
        """Learn which model the CLI uses, which only a turn tells otherwise. A CLI may not know this."""
        with contextlib.suppress(TimeoutError):
            await self._asked(self._translator.settings(asked_for), SETTINGS_TIMEOUT)

    async def _asked(self, actions: list[Action], timeout: float) -> Answered:
        """The answer to a request that the translator has made. Raises TimeoutError."""
        request_id = _request_of(actions)
        future: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        self._controls[request_id] = future
        self._take(actions)
        try:
            async with asyncio.timeout(timeout):
                return await future
        finally:
            self._controls.pop(request_id, None)

    def _interrupt(self) -> None:
        actions = self._translator.interrupt()
        self._unanswered.add(_request_of(actions))
        self._take(actions)

    async def _insist(self, waiting: list[asyncio.Future[Ended]]) -> None:
        """Have an interrupted turn end in time."""
        # an interrupt that came before the turn had begun was lost on the CLI, so it gets a second one
        for step in (self._interrupt, self._give_up):
            await asyncio.wait(waiting, timeout=self._interrupt_deadline / 2)
            if all(future.done() for future in waiting):
                return
            step()
        if self._unanswered and self._cli is not None:
            # it listens to nothing any more, and whatever it does it does against the user's wish
            await self._cli.stop()

    def _give_up(self) -> None:
        self._take(self._translator.abandon())

    # -- the one task --

    def _take(self, actions: list[Action]) -> None:
        self._actions.extend(actions)
        self._work.set()

    async def _run(self) -> None:
        try:
            while True:
                self._work.clear()
                await self._work_off()
                if self._translator.is_held_for_nothing and self._releasing is None:
                    self._releasing = asyncio.get_running_loop().call_later(FOLLOW_UP, self._release_held)
                await self._work.wait()
        except ConnectionClosed:
            await self._broken("the client is gone")
        except Exception as exc:
            logger.exception("a session of Claude Code failed")
            await self._broken(f"{type(exc).__name__}: {exc}")
        finally:
            if self._cli is not None:
                self._cli.settled.set()

    def _release_held(self) -> None:
        self._releasing = None
        if self._translator.is_held_for_nothing:
            self._take(self._translator.release())

    async def _broken(self, reason: str) -> None:
        """Nobody carries out anything any more, so there must be no process either."""
        self._closed = True
        self._fail_all(reason)
        if self._cli is not None:
            await self._cli.stop()

    async def _work_off(self) -> None:
        while True:
            if self._actions:
                await self._do(self._actions.popleft())
            elif self._cli is None:
                return
            elif (line := self._cli.take()) is not None:
                self._actions.extend(self._read(line))
            elif self._cli.is_over:
                await self._bury(self._cli)
            else:
                return

    def _read(self, line: bytes | Oversize) -> list[Action]:
        if isinstance(line, Oversize):
            return self._translator.oversize(line.head, line.size)
        if self._unheard and not (b'"command_lifecycle"' in line and b'"queued"' in line):
            # the CLI names a prompt when it takes it in; where it does not, a turn that begins is its answer
            self._unheard = {mark for mark in self._unheard if mark not in line and b'"init"' not in line}
        actions = self._translator.read(line)
        if self._translator.cli_session_id not in (None, self._conversation):
            self._conversation = str(self._translator.cli_session_id)
            if self._moved is not None:
                self._moved(self.session_id, self._conversation)
        return actions

    async def _bury(self, cli: CliProcess) -> None:
        """The process is gone, or says nothing any more."""
        end = await cli.describe_end()
        await cli.stop()
        self._cli = None
        self._unanswered.clear()
        self._actions.extend(self._translator.died(end.exit_code, cli.stderr_tail[-LAST_WORDS:]))
        while self._actions:
            await self._do(self._actions.popleft())
        cli.settled.set()

    async def _do(self, action: Action) -> None:
        if self._held is not None and isinstance(action, (Update, Note)):
            self._held.append(action)
        else:
            await self._do_it[type(action)](action)

    async def _send(self, action: Send) -> None:
        if self._cli is not None:
            self._cli.send(action.line)

    async def _answered(self, action: Answered) -> None:
        self._unanswered.discard(action.request_id)
        future = self._controls.get(action.request_id)
        if future is not None and not future.done():
            future.set_result(action)

    async def _end(self, action: Ended) -> None:
        for _ in range(min(action.prompts, len(self._prompts))):
            future = self._prompts.popleft()
            if not future.done():
                future.set_result(action)

    def _fail_all(self, reason: str) -> None:
        error = RequestError(INTERNAL_ERROR, reason)
        waiting: list[asyncio.Future[Any]] = [*self._prompts, *self._controls.values()]
        for future in waiting:
            if not future.done():
                future.set_exception(error)
                future.exception()  # whoever waited may be gone
        self._prompts.clear()


def _request_of(actions: list[Action]) -> str:
    return next(action.request_id for action in actions if isinstance(action, Send) and action.request_id)
