"""Claude Code's stream in, the Agent Client Protocol out, and back: one session.

The translator is told every line that the CLI writes and everything that the client wants or answers, in order, and
returns what is to be done about it. It reads nothing, waits for nothing and knows no time. No line makes it fail: what
it does not know it keeps as a note and counts, and whatever the CLI asks is answered.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from ...acp.errors import INTERNAL_ERROR, ValidationError, how_it_ended
from ...model.loose_json import items, mapping, text
from . import wire
from .actions import META, Action, Ended, Failure, Outbox
from .control import Control, Setup
from .diffs import Look
from .notices import News, Plans, Tasks
from .permissions import Asking
from .results import decision_of, ending
from .speech import Repeats, Speech
from .tools import AGENTS, Calls, origin_of
from .turns import Fault, Turns, Usage, failure_of, limit_of, prompt_content, reason_of, response_of

UNREADABLE = 4000
"""Characters of a line that is no message which are kept."""
LAST_LINE = 300
"""Characters of a dead CLI's last line that its error repeats; more of it is in the error's data."""
KINDS = 200
"""Types of unknown lines that are counted one by one."""

SILENT = "No response requested."
"""What the CLI says in the model's place when there is nothing to say."""

_COMMAND_OUTPUT = re.compile(r"\A\s*<local-command-(stdout|stderr)>(.*)</local-command-\1>\s*\Z", re.DOTALL)
_REQUEST = re.compile(r'\s*\{\s*"type"\s*:\s*"control_request"\s*,\s*"request_id"\s*:\s*"([^"\\]+)"')
_RESULT = re.compile(r'\s*\{\s*"type"\s*:\s*"result"')
_INTERRUPTED = "[Request interrupted by user"
_CALLS = {"tool_use", "server_tool_use", "mcp_tool_use"}


class Translator:
    """One session. `capabilities` are the client's; without them it is taken to know everything. `look`, if there is
    one, says what is in a file that would be overwritten.

    `unknown` counts lines by a type that is not known, `late` the results that nobody waited for any more.
    """

    def __init__(
        self,
        session_id: str,
        *,
        capabilities: Mapping[str, Any] | None = None,
        cwd: str | None = None,
        bypass: bool = False,
        look: Look | None = None,
    ) -> None:
        self.unknown: Counter[str] = Counter()
        self.cli_session_id: str | None = None
        self._outbox = Outbox(session_id, capabilities)
        self._control = Control(self._outbox)
        self._calls = Calls(self._outbox)
        self._calls.cwd, self._calls.look = cwd, look
        self._speech = Speech(self._outbox)
        self._plans = Plans(self._outbox)
        self._setup = Setup(self._outbox, bypass=bypass)
        self._usage = Usage(self._outbox)
        self._tasks = Tasks(self._outbox, self._calls, self._speech)
        self._news = News(self._outbox, self._setup, self._usage, self._plans, self._calls)
        self._asking = Asking(self._outbox, self._control, self._calls)
        self._turns = Turns()
        self._held: Ended | None = None
        self._repeats = Repeats()
        self._unreadable = ""  # the last line, if it was no message: the last words of one that has nothing on stderr
        self._fault: Fault | None = None

    @property
    def late(self) -> int:
        return self._turns.late

    @property
    def waiting(self) -> int:
        """Prompts whose end has not come."""
        return self._turns.waiting

    @property
    def is_held_for_nothing(self) -> bool:
        """Whether a prompt waits for sub-agents that have ended, and the main agent says nothing about it."""
        return self._held is not None and not self._tasks.working and not self._turns.is_running

    @property
    def has_open_calls(self) -> bool:
        """Whether a tool call was told whose end was not."""
        return self._calls.any_open

    @property
    def skipped(self) -> Counter[str]:
        """Lines that are known and hold nothing to tell, by their type."""
        return self._news.skipped

    def setup(self) -> dict[str, Any]:
        """The `modes` and `configOptions` for the answer to `session/new`; later changes come as updates."""
        return {"modes": self._setup.modes(), "configOptions": self._setup.options()}

    @property
    def chosen_model(self) -> str:
        """The name by which a model was chosen in this session; "" when none was."""
        return self._setup.chosen

    def takes_model(self, name: str) -> bool:
        """Whether the CLI has a model of this name, as far as it is known."""
        return self._setup.takes(name)

    # -- from the client --

    def prompt(self, prompt: Any, *, uuid: str | None = None) -> list[Action]:
        """Send a prompt: text, or content blocks. An `Ended` follows, when the turn that takes it in is over.

        That is when the sub-agents are done, too, that it left in the background: what comes outside of a turn is lost
        on most clients, and a cancel would not reach it. A command in the background may run for days, and keeps
        nobody waiting.

        With a `uuid` the CLI tells when it takes the prompt in; without one that has to be guessed when turns overlap.
        """
        self._turns.sent(uuid)
        message = wire.Message(role="user", content=prompt_content(prompt))
        self._outbox.send(wire.User(message=message, uuid=uuid))
        return self._outbox.take()

    def answer(self, request_id: str, result: Any) -> list[Action]:
        """The client answered an `Ask`."""
        self._asking.answer(request_id, result)
        return self._outbox.take()

    def refuse(self, request_id: str, reason: str) -> list[Action]:
        """The client could not answer an `Ask`."""
        self._asking.refuse(request_id, reason)
        return self._outbox.take()

    def control(self, subtype: str, **fields: Any) -> list[Action]:
        """Ask the CLI for something: `initialize`, `set_permission_mode` with `mode`, `set_model` with `model`, …"""
        self._control.request(subtype, **fields)
        return self._outbox.take()

    def settings(self, asked_for: str = "") -> list[Action]:
        """Ask the CLI which model it uses; with a name, whether it took the one that a command asked for."""
        self._setup.asked_for(asked_for)
        return self.control("get_settings")

    def interrupt(self) -> list[Action]:
        """Ask the CLI to end the turn and its sub-agents; its result ends the prompt as cancelled."""
        self._turns.cancelling = self._turns.waiting > 0 or self._held is not None
        actions = self.control("interrupt")
        for task_id in sorted(self._tasks.working):
            actions += self.control("stop_task", task_id=task_id)
        if self._held is not None and not self._turns.is_running:
            actions += self.abandon()  # there is no turn that could have a result
        return actions

    def release(self) -> list[Action]:
        """Answer what is held without waiting for more."""
        held, self._held = self._held, None
        if held is not None:
            self._outbox.add(held)
        return self._outbox.take()

    def abandon(self) -> list[Action]:
        """The CLI does not end a turn that was interrupted: end the prompt without it. Its result may still come."""
        ended = self._given_up()
        if ended:
            self._asking.withdraw_all()
            self._close(_UNFINISHED["cancelled"], everything=True)
            self._outbox.add(Ended({"stopReason": "cancelled"}, prompts=ended))
        return self._outbox.take()

    def _given_up(self) -> int:
        held, self._held = self._held, None
        return self._turns.given_up() + (held.prompts if held is not None else 0)

    def died(self, exit_code: int | None = None, stderr_tail: str = "") -> list[Action]:
        """The CLI is gone. What is told next is of another process."""
        how = "ended unexpectedly" if exit_code is None else how_it_ended(exit_code)
        words, self._unreadable = stderr_tail.strip() or self._unreadable, ""
        message = _with_words(f"Claude Code {how}.", words.rpartition("\n")[2].strip()[:LAST_LINE])
        ended = self._given_up()
        self._turns = Turns()
        self._asking.withdraw_all()
        self._close(message, everything=True)
        self._control.died(_with_words(f"Claude Code {how}.", words))
        if ended:
            data = {"errorKind": "agent_died", "exitCode": exit_code, "stderrTail": stderr_tail}
            failure = Failure("agent_died", INTERNAL_ERROR, message, data)
            self._outbox.add(Ended(None, failure, ended))
        return self._outbox.take()

    # -- from the CLI --

    def read(self, line: bytes | str) -> list[Action]:
        """One line of the CLI's standard output, as it is."""
        try:
            return self.line(wire.read_line(line))
        except ValidationError as exc:
            reason = exc.reason
        except RecursionError:
            reason = "it is nested too deeply"
        shown = line if isinstance(line, str) else line.decode(errors="replace")
        self._unreadable = shown.strip()[:LAST_LINE] or self._unreadable
        self._count("unreadable")
        self._outbox.note("unreadable", {"text": shown[:UNREADABLE], "length": len(shown), "reason": reason})
        return self._outbox.take()

    def oversize(self, head: bytes, length: int) -> list[Action]:
        """A line longer than any may be, of which only the beginning is kept. A request is refused all the same, and a
        result ends its turn."""
        shown = head.decode(errors="replace")
        self._count("unreadable")
        reason = "it is longer than any line may be"
        self._outbox.note("unreadable", {"text": shown[:UNREADABLE], "length": length, "reason": reason})
        asked = _REQUEST.match(shown)
        if asked is not None:
            self._control.refuse(asked[1], f"The request could not be read: {reason}")
        elif _RESULT.match(shown):
            self._unreadable_result(reason)
        return self._outbox.take()

    def line(self, line: wire.Line | wire.Unknown) -> list[Action]:
        """One line, decoded."""
        handler = _HANDLERS.get(type(line))
        self._unreadable = ""
        is_repeated = isinstance(line, (wire.Assistant, wire.User)) and self._repeats.take(line.uuid)
        if handler is not None and not is_repeated:
            handler(self, line)
        return self._outbox.take()

    def _begun(self, init: wire.Init) -> None:
        self.cli_session_id = init.session_id or self.cli_session_id
        self._turns.begun()
        self._speech.begin_turn()
        self._fault = None
        self._news.begun(init)

    def _hooked(self, line: wire.HookResponse) -> None:
        self._news.hooked(line)

    def _system(self, line: wire.System) -> None:
        if line.subtype == "local_command_output":
            self._speech.tell(text(line.fields.get("content")))
            return
        if line.subtype == "compact_boundary":
            self._repeats.kept(mapping(line.fields.get("compact_metadata")))
        known = self._tasks.take(line.subtype, line.fields) or self._news.take(line.subtype, line.fields)
        if not known:
            self._keep(f"system/{line.subtype}", line.fields, "its subtype is not known")

    def _unknown(self, line: wire.Unknown) -> None:
        kind = text(line.raw.get("type"))
        if kind == "result":
            self._unreadable_result(line.reason)
        elif kind == "control_request" and text(line.raw.get("request_id")):
            self._control.refuse(line.raw["request_id"], f"The request could not be read: {line.reason}")
        elif kind == "command_lifecycle":
            self._moved(line.raw)
            return
        elif kind and self._news.take(kind, line.raw):
            return
        self._keep(kind or "no type", line.raw, line.reason)

    def _unreadable_result(self, reason: str) -> None:
        said = f"The result of the turn could not be read: {reason}"
        self._result(wire.Result(subtype="unreadable", is_error=True, errors=[said]))

    def _moved(self, raw: dict[str, Any]) -> None:
        """The CLI says what it does with a prompt that has an id."""
        ended = self._turns.told(text(raw.get("command_uuid")), text(raw.get("state")))
        if ended:
            self._outbox.add(Ended({"stopReason": "cancelled"}, prompts=ended))

    def _keep(self, kind: str, raw: dict[str, Any], reason: str) -> None:
        self._count(kind)
        self._outbox.note("unknown", {"line": raw, "reason": reason})

    def _count(self, kind: str) -> None:
        known = kind[:100] if len(self.unknown) < KINDS or kind[:100] in self.unknown else "other"
        self.unknown[known] += 1

    # -- the conversation --

    def _streamed(self, line: wire.StreamEvent) -> None:
        event, parent = line.event, line.parent_tool_use_id
        self._speech.streamed(event, parent)
        self._calls.streamed(event, parent)
        if event.get("type") == "message_delta" and parent is None:
            self._news.refused = mapping(event.get("delta")).get("stop_reason") == "refusal"
            self._usage.message(event.get("usage"))
            self._usage.tell()

    def _assistant(self, line: wire.Assistant) -> None:
        parent, message = line.parent_tool_use_id, line.message
        if parent is None and (line.error or line.is_api_error_message):
            words = "\n".join(text(block.get("text")) for block in _blocks(message))
            self._fault = Fault(line.error or "", line.api_error_status, words.strip())
            return
        for block in _blocks(message):
            self._block(block, line)
        if parent is None:
            self._usage.message(message.usage)

    def _block(self, block: dict[str, Any], line: wire.Assistant) -> None:
        kind, parent, message_id = text(block.get("type")), line.parent_tool_use_id, line.message.id
        if kind in ("text", "thinking"):
            words = text(block.get(kind))
            if words.strip() != SILENT or line.message.model != "<synthetic>":
                self._speech.whole(kind, words, message_id, parent)
        elif kind == "redacted_thinking":
            self._speech.withheld(message_id, parent)
        elif kind in _CALLS and text(block.get("id")) and text(block.get("name")):
            given = block.get("input") or {}
            self._calls.use(block["id"], block["name"], given, parent, line.agent_id, origin_of(message_id, given))
        elif kind.endswith("tool_result") and text(block.get("tool_use_id")):
            self._returned(block, None, [])
        else:
            self._keep(f"assistant/{kind}", block, "a block of a kind that is not known")

    def _user(self, line: wire.User) -> None:
        blocks = _blocks(line.message)
        results = [block for block in blocks if text(block.get("tool_use_id"))]
        for block in results:
            # the structured result does not say whose it is
            told = line.tool_use_result if len(results) == 1 else None
            self._returned(block, told, line.tool_result_meta)
        if results:
            return
        if line.parent_tool_use_id is None:  # a sub-agent's prompt is in its call
            self._said(line, "\n".join(text(block.get("text")) for block in blocks))

    def _returned(self, block: dict[str, Any], told: Any, meta: list[Any]) -> None:
        """A tool returned."""
        call_id = block["tool_use_id"]
        call = self._calls.get(call_id)
        status, fields = ending(call, block, told)
        self._calls.end(call_id, status, fields, decision_of(meta, call_id))
        if call is None:
            return
        self._tasks.launched(call_id, told)
        if call.name in AGENTS and call_id not in self._calls.background:
            self._calls.close_children(call_id, "The sub-agent ended before this tool call did.")
            self._speech.forget(call_id)
        if status == "completed":
            self._plans.changed(call, told)

    def _said(self, line: wire.User, words: str) -> None:
        """Words in the user's name: repeated by the CLI, put in by it, or typed somewhere else."""
        output = _COMMAND_OUTPUT.match(words)
        if output is not None and self._turns.waiting:
            self._speech.tell(output[2].strip())
        elif output is not None:  # what a request of ours made the CLI say; its answer tells the client
            self._outbox.note("command_output", {"text": output[2].strip()})
        elif line.isReplay:
            self._turns.repeated(line.uuid)
        elif self._news.summary_due and line.isSynthetic:
            self._news.summarised(words)
        elif line.isSynthetic or words.startswith(_INTERRUPTED):
            self._outbox.note("synthetic_prompt", {"text": words})
        elif words:
            self._outbox.update("user_message_chunk", content={"type": "text", "text": words})

    # -- the end of a turn --

    def _result(self, result: wire.Result) -> None:
        late, cancelling = self._turns.late, self._turns.cancelling
        prompts = self._turns.result(result)
        if self._turns.late > late:
            self._outbox.note("late_result", {"subtype": result.subtype, "terminalReason": result.terminal_reason})
            if self._turns.waiting:
                return  # another turn is under way, and what is open may be its own
        fault, refused = self._fault, self._news.refused
        reason = reason_of(result, fault, refused=refused, cancelled=cancelling)
        if not self._speech.said and not result.is_error:
            self._speech.tell(text(result.result))
        if reason == "cancelled":
            self._asking.withdraw_all()
        else:
            self._asking.turn_ended()
        unfinished = _UNFINISHED.get(reason or "", "The turn ended before this tool call did.")
        self._close(unfinished, everything=reason == "cancelled")
        self._usage.result(result, self._setup.model)
        self._limited(result, reason, fault)
        held, self._held = self._held or Ended(None, prompts=0), None
        prompts += held.prompts
        if reason is None:
            self._failed(failure_of(result, fault), prompts)
        elif prompts:
            ended = Ended(response_of(result, reason, held.response), prompts=prompts)
            if reason == "end_turn" and self._tasks.working:
                self._held = ended
            else:
                self._outbox.add(ended)

    def _limited(self, result: wire.Result, reason: str | None, fault: Fault | None) -> None:
        limit = limit_of(result, reason)
        said = [error for error in items(result.errors) if isinstance(error, str)]
        words = fault.message if fault is not None else "\n".join(said)
        if limit is not None:
            severity, title, kind = limit
            self._outbox.notice(severity, title, words, **{META: {"limit": kind}})
        elif fault is not None and reason is not None:
            self._outbox.notice("warning", fault.message or "The call of the model failed")

    def _failed(self, failure: Failure, prompts: int) -> None:
        if prompts:
            self._outbox.add(Ended(None, failure, prompts))
        else:
            self._outbox.notice("error", failure.message, **{META: failure.data})

    def _close(self, reason: str, *, everything: bool = False) -> None:
        """A turn is over: nothing of it stays open, and `everything` is also what runs in the background."""
        self._calls.close(reason, everything=everything)
        if everything:
            self._tasks.working.clear()
        self._speech.end_turn()
        self._news.turn_ended()
        self._fault = None
        self._turns.cancelling = False

    # -- the control protocol --

    def _requested(self, line: wire.ControlRequest) -> None:
        subtype = text(line.request.get("subtype"))
        handler = _REQUESTS.get(subtype)
        if handler is not None:
            handler(self, line.request_id, line.request)
        else:
            self._count(f"control_request/{subtype}")
            self._control.refuse(line.request_id, f"Unsupported control request subtype: {subtype}")

    def _withdrawn(self, line: wire.ControlCancel) -> None:
        self._asking.withdraw(line.request_id)

    def _answered(self, line: wire.ControlResponse) -> None:
        answered = self._control.answered(line.response)
        if answered is None:
            return
        request, answer = answered
        subtype = request["subtype"]
        if subtype == "initialize":
            self._setup.initialized(answer)
        elif subtype == "set_permission_mode":
            self._setup.entered(text(answer.get("mode")) or text(request.get("mode")))
        elif subtype == "set_model":
            self._setup.chose(text(request.get("model")), text(answer.get("model")))
        elif subtype == "get_settings":
            self._setup.switched(text(mapping(answer.get("applied")).get("model")))


_UNFINISHED = {"cancelled": "The turn was cancelled before this tool call ended."}
_HANDLERS: dict[type, Callable[[Translator, Any], None]] = {
    wire.Init: Translator._begun,
    wire.HookResponse: Translator._hooked,
    wire.System: Translator._system,
    wire.StreamEvent: Translator._streamed,
    wire.Assistant: Translator._assistant,
    wire.User: Translator._user,
    wire.Result: Translator._result,
    wire.ControlRequest: Translator._requested,
    wire.ControlResponse: Translator._answered,
    wire.ControlCancel: Translator._withdrawn,
    wire.Unknown: Translator._unknown,
}
_REQUESTS: dict[str, Callable[[Translator, str, dict[str, Any]], None]] = {
    "can_use_tool": lambda self, request_id, request: self._asking.tool(request_id, request),
    "elicitation": lambda self, request_id, request: self._asking.server(request_id, request),
    "hook_callback": lambda self, request_id, request: self._control.hook(request_id, request),
    "mcp_message": lambda self, request_id, request: self._control.mcp(request_id, request),
}


def _with_words(message: str, words: str) -> str:
    return f"{message} It said: {words}" if words else message


def _blocks(message: wire.Message) -> list[dict[str, Any]]:
    """The content of a message as blocks in the API's shape."""
    if isinstance(message.content, str):
        return [{"type": "text", "text": message.content}]
    return [block for block in items(message.content) if isinstance(block, dict)]
