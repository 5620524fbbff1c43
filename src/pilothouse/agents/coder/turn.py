"""One prompt: what the model says and does, told to the client as updates.

`_converse` is the core of the agent. It gives the conversation to the model and tells each of its events; the tools it
calls tell of themselves (`work.py`). Whatever ends a turn, an answer, an error or the user, the conversation so far is
remembered, whole enough to go on from.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from pydantic_ai import (
    AgentRunResultEvent,
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessage,
    ModelRequest,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    UsageLimitExceeded,
    UserPromptPart,
)
from pydantic_ai.exceptions import AgentRunError, ContentFilterError, IncompleteToolCall, UserError
from pydantic_ai.messages import UserContent
from pydantic_ai.usage import RunUsage

from ...acp import ConnectionClosed, ContentBlock, RequestError, SessionInfoUpdate, StopReason, Usage, UsageUpdate
from ..commands import Failure
from . import compaction, memory
from . import compaction as prompts
from . import content as attachments
from .content import text_of, user_content
from .errors import explain, is_overflow, is_refusal, window_of
from .host import Host
from .session import Session
from .work import Call, Speech, Work
from .worker import context_window, limits, worker

TITLE = 80
STOPS: dict[str | None, StopReason] = {"length": "max_tokens", "content_filter": "refusal"}
"""How the model says that it did not end by itself."""
LIMITED: dict[type[Exception], StopReason] = {
    UsageLimitExceeded: "max_turn_requests",
    ContentFilterError: "refusal",
    IncompleteToolCall: "max_tokens",
}
"""The same, where there is nothing to show for it."""
logger = logging.getLogger(__name__)


class Turn:
    """A prompt from its arrival to its answer. `cancel` ends it, wherever it is."""

    def __init__(self, host: Host, session: Session, cancel: Callable[[], None]) -> None:
        self.cancel = cancel
        self._session = session
        self._host = host
        self._speech = Speech(host, session)
        self._work = Work(host, session, self._speech, self)
        self._messages: list[ModelMessage] = []
        self._kept: ModelMessage | None = None
        self._used = RunUsage()
        self._requests = 0

    # -- the core --

    async def run(self, blocks: Sequence[ContentBlock]) -> StopReason:
        """Answer a prompt. Raises RequestError, which says what went wrong."""
        await self._tell_problem()
        try:
            self._messages = [*memory.load(self._session.settings.messages), *self._unheard()]
            model = await self._host.model(self._session.settings.model or "")
            if text_of(blocks).strip() == "/compact":
                self._session.unheard.pop()  # it is no word to the model
                await self._compact(model)
                self._session.unheard.clear()
                await self._speech.say("The conversation so far is now a summary.")
                return "end_turn"
            content = user_content(blocks)
            await self._entitle(blocks)
            began = self._messages
            stop = await self._stopped(model, content)
            if stop == "refusal":  # by the protocol nothing of it is said to the model again
                self._rewrite(began)
            await self._tell_problem()
            return stop
        except (RequestError, ConnectionClosed):
            raise
        except Exception as exc:
            if not isinstance(exc, (AgentRunError, UserError, Failure)):
                logger.warning("the model's library failed: %r", exc)
            raise explain(exc) from exc

    async def _stopped(self, model: Any, content: list[UserContent]) -> StopReason:
        try:
            return await self._answer(model, content)
        except tuple(LIMITED) as exc:
            return next(stop for kind, stop in LIMITED.items() if isinstance(exc, kind))

    async def _answer(self, model: Any, content: list[UserContent]) -> StopReason:
        """Converse, and leave out what the model does not take: it would not take it the next time either."""
        prompt = [one for one in content if not isinstance(one, str) or one.strip()]
        answered = attachments.last_answer(self._messages)
        self._keep([*self._messages, ModelRequest(parts=[UserPromptPart(prompt)])])
        self._session.unheard.clear()
        try:
            return await self._fitted(model, prompt)
        except Exception as exc:
            if isinstance(exc, tuple(LIMITED)) or not is_refusal(exc):
                raise
            kept, new = attachments.replaced(self._messages, attachments.last_answer(self._messages))
            if new:
                self._rewrite(kept)
                raise explain(exc, [_name(one, content) for one in new]) from exc
            kept, old = attachments.replaced(self._messages)
            if not old or attachments.last_answer(self._messages) != answered:
                raise
        return await self._without_attachments(model, prompt, kept)

    async def _without_attachments(self, model: Any, prompt: list[UserContent], kept: list[ModelMessage]) -> StopReason:
        """Try again with words for what an earlier model took, and this one may not take."""
        refused, self._messages = self._messages, kept
        await self._speech.notice("The model's server refused the conversation; trying again without its attachments.")
        try:
            return await self._fitted(model, prompt, begun=True)
        except Exception:
            if attachments.last_answer(self._messages) == attachments.last_answer(kept):  # it was not for them
                self._rewrite(refused)
            raise

    async def _fitted(self, model: Any, prompt: list[UserContent], *, begun: bool = False) -> StopReason:
        """Converse, with a conversation that is made shorter as often as it has filled the model's context.

        With `begun` the prompt is in it already.
        """
        again = [prompts.CONTINUE, *prompt]
        given = None if begun else prompt
        if compaction.is_due(self._messages, context_window(model, self._work)) and await self._try_to_compact(model):
            given = again if begun else prompt
        while True:
            answers = attachments.last_answer(self._messages)
            try:
                return await self._converse(model, given)
            except compaction.Full:
                given = again if await self._try_to_compact(model) else None
            except AgentRunError as exc:
                # one that is too long although it was made shorter, and nothing was done since, will not get shorter
                if not is_overflow(exc) or (given is again and attachments.last_answer(self._messages) <= answers):
                    raise
                self._learn(exc)
                await self._compact(model)
                given = again

    async def _converse(self, model: Any, prompt: Sequence[UserContent] | None) -> StopReason:
        """Let the model work until it has answered, and tell what it says."""
        agent = await worker(model, self._work)
        running = agent.run_stream_events(
            prompt, message_history=self._messages, deps=self._work, usage_limits=limits(self._requests)
        )
        stop: StopReason = "end_turn"
        events: Any = None
        try:
            async with running as events:
                async for event in events:
                    match event:
                        case PartStartEvent(part=TextPart(content=text)):
                            await self._speech.say(text)
                        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                            await self._speech.say(text)
                        case PartStartEvent(part=ThinkingPart(content=text)):
                            await self._speech.think(text)
                        case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=thought)):
                            await self._speech.think(thought)
                        case PartStartEvent(part=ToolCallPart(tool_name=name, tool_call_id=of)):
                            await self._work.foresee(of, name)
                        case FunctionToolCallEvent():
                            await self._progress(model, events.all_messages())
                        case FunctionToolResultEvent(part=result):
                            await self._work.show_refused(result)
                        case AgentRunResultEvent(result=answer):
                            await self._progress(model, events.all_messages())
                            stop = STOPS.get(answer.response.finish_reason, "end_turn")
        finally:
            self._remember(events)
            await self._work.settle()
        return stop

    # -- remembering --

    def _remember(self, events: Any) -> None:
        """Keep what was said so far, and what it cost."""
        try:
            messages, used = events.all_messages(), events.usage
        except (AttributeError, UserError):
            return  # the run had not begun
        self._used += used
        self._requests += used.requests
        self._messages = memory.settled(messages)
        self._keep(self._messages)

    def _unheard(self) -> Iterator[ModelMessage]:
        """Prompts before this one that were cancelled before anything could be remembered."""
        for blocks in self._session.unheard[:-1]:
            with suppress(RequestError):  # one that is no prompt was told so
                yield ModelRequest(parts=[UserPromptPart(user_content(blocks))])

    def _keep(self, messages: Sequence[ModelMessage]) -> None:
        """Write down the conversation when it has grown, so that a killed process has lost little of it."""
        if messages and messages[-1] is not self._kept:
            self._kept = messages[-1]
            self._session.save(messages=memory.dump(messages))

    def _rewrite(self, messages: list[ModelMessage]) -> None:
        """Another conversation in the place of the one that was kept."""
        self._messages = messages
        self._kept = None
        self._session.save(messages=memory.dump(messages))

    async def _progress(self, model: Any, messages: Sequence[ModelMessage]) -> None:
        """The model has said something to its end: keep it, and tell how much of the context is used."""
        self._keep(messages)
        used = compaction.context_tokens(messages)
        if used != self._session.settings.used:
            self._session.settings.used = used
            await self._speech.send(UsageUpdate(used=used, size=max(context_window(model, self._work), used)))

    async def _compact(self, model: Any) -> None:
        before, window = compaction.context_tokens(self._messages), context_window(model, self._work)
        told = self._host.takes_compaction
        self._messages = await compaction.compacted(model, self._messages, window, self._speech, told=told)
        if not told:
            await self._speech.notice(f"The conversation was compacted: it had {before} tokens.")
        await self._progress(model, self._messages)

    async def _try_to_compact(self, model: Any) -> bool:
        """Compact what still fits: where that fails, the conversation goes on as it is."""
        try:
            await self._compact(model)
        except Exception as exc:
            if not isinstance(exc, Failure) and not is_refusal(exc):
                raise
            await self._speech.notice(f"The conversation could not be compacted. {explain(exc).message}")
            return False
        return True

    def _learn(self, exc: AgentRunError) -> None:
        """Remember how much the model takes in, if its server says so."""
        window = window_of(exc)
        if window is not None:
            self._host.windows[self._session.settings.model or ""] = window

    async def _tell_problem(self) -> None:
        journal = self._session.journal
        problem, journal.problem = journal.problem, None
        if problem is not None:
            await self._speech.notice(problem)

    async def _entitle(self, blocks: Sequence[ContentBlock]) -> None:
        """Name the session after what was first asked in it."""
        first = next((line.strip() for line in text_of(blocks).splitlines() if line.strip()), "")
        if self._session.settings.title is None and first:
            title = first if len(first) <= TITLE else f"{first[: TITLE - 1]}…"
            self._session.save(title=title)
            await self._speech.send(SessionInfoUpdate(title=title))

    # -- for tools, and for the answer --

    async def delegate(self, prompt: str, call: Call) -> str:
        """Let a sub-agent with a memory of its own do something on behalf of a call; the answer is its report."""
        work = Work(self._host, self._session, self._speech, self, parent=call)
        model = await self._host.model(self._session.settings.model or "")
        running = (await worker(model, work)).run_stream_events(prompt, deps=work, usage_limits=limits())
        used = RunUsage()
        try:
            async with running as events:
                async for event in events:
                    used = events.usage
                    match event:
                        case PartStartEvent(part=TextPart(content=text)) if text:
                            await call.stream(text)
                        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                            await call.stream(text)
                        case FunctionToolResultEvent(part=result):
                            await work.show_refused(result)
                        case AgentRunResultEvent(result=answer):
                            return str(answer.output)
        except (RequestError, ConnectionClosed, Failure):
            raise
        except Exception as exc:  # whatever the model's library raises
            raise Failure(f"The sub-agent failed. {explain(exc).message}") from exc
        finally:
            self._used += used
        raise Failure("The sub-agent ended without a report.")

    def usage(self) -> Usage:
        """What the turn cost."""
        used = self._used
        return Usage(
            total_tokens=used.input_tokens + used.output_tokens,
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            thought_tokens=used.details.get("reasoning_tokens"),
            cached_read_tokens=used.cache_read_tokens or None,
            cached_write_tokens=used.cache_write_tokens or None,
        )


def _name(attachment: Any, prompt: Sequence[UserContent]) -> str:
    """Which one it is: the block of the prompt, if it came with it."""
    places = [f"prompt[{number}], " for number, one in enumerate(prompt) if one == attachment]
    return f"{''.join(places[:1])}{attachments.about(attachment)}"
