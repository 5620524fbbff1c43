"""Tool calls as agents report them, followed until they end.

Every message that names a tool call is an upsert: agents announce calls late or never, change titles, repeat
themselves, and leave calls open. What comes out is regular: `tool:start` once, `tool:executing` before any end,
and exactly one of `tool:result` and `tool:error`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from ...acp.model import to_wire
from ...model.errors import ACPError
from ...model.events import (
    CustomEvent,
    FileChangeBatchEvent,
    FileChangeEvent,
    GitOperationEvent,
    PlanModeEvent,
    ProgressEvent,
    SubAgentCompletedEvent,
    SubAgentProgressEvent,
    SubAgentSpawnedEvent,
    ToolCallArgsDeltaEvent,
    ToolCallErrorEvent,
    ToolCallExecutingEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    UserQuestionEvent,
    WebOperationEvent,
)
from ...model.records import FileChange
from ...model.risk import assess_risk
from ...model.tools import describe_tool_call, questions_of, todos_of
from . import outcomes
from .call import (
    ENDED,
    OWN,
    Call,
    as_input,
    failure,
    is_new,
    judged_input,
    known_input,
    locations,
    sub_agent,
    terminal_piece,
)
from .stream import Stream

__all__ = ["Calls"]

TITLE = 200
"""Characters of a title that stand for a message."""

_encode = msgspec.json.Encoder().encode

LANGUAGES = {
    "c": "c", "cc": "cpp", "cpp": "cpp", "cs": "csharp", "css": "css", "ex": "elixir", "go": "go", "h": "c",
    "hpp": "cpp", "hs": "haskell", "html": "html", "java": "java", "js": "javascript", "json": "json",
    "jsx": "javascript", "kt": "kotlin", "lua": "lua", "md": "markdown", "mjs": "javascript", "php": "php",
    "py": "python", "rb": "ruby", "rs": "rust", "scala": "scala", "sh": "shell", "sql": "sql", "swift": "swift",
    "toml": "toml", "ts": "typescript", "tsx": "typescript", "vue": "vue", "xml": "xml", "yaml": "yaml",
    "yml": "yaml", "zig": "zig",
}  # fmt: skip


class Calls:
    """The tool calls of a session; their events go to its stream."""

    def __init__(self, stream: Stream, workspace: str | None) -> None:
        self._stream = stream
        self._emit = stream.emit
        self._workspace = workspace
        self._calls: dict[str, Call] = {}

    def get(self, call_id: str) -> Call | None:
        return self._calls.get(call_id)

    def is_open(self, call_id: str) -> bool:
        call = self._calls.get(call_id)
        return call is not None and not call.ended

    def open(self) -> list[Call]:
        return [call for call in self._calls.values() if not call.ended]

    # -- updates --

    def update(self, update: Any, *, announced: bool) -> Call:
        """Take in a `tool_call` (`announced`) or a `tool_call_update`."""
        now = self._stream.now
        call = self._calls.get(update.tool_call_id)
        fresh = call is None or (call.ended and announced and is_new(call, update))
        if call is None or fresh:
            call = self._calls[update.tool_call_id] = Call(update.tool_call_id, now)
        if call.ended:
            call.title = update.title or call.title
            self._progress(call, set())
            return call
        changed = call.merge(update)
        said = len(call.output)
        count = self._start(call) if fresh else 0
        count += self._arguments(call, changed)
        if call.status in ENDED:
            self._finish(call)
        elif "content" in changed or "raw_output" in changed or terminal_piece(update):
            self._progress(call, changed, update)
        elif not count and said == len(call.output):
            self._progress(call, changed)
        return call

    def asked(self, asked: Any) -> Call:
        """The call that a permission request is about, announced by it when nothing else did.

        Its status says nothing: the agent waits. Its input is taken over only when none is known, because some
        agents ask about another shape of it than the call has.
        """
        call = self._calls.get(asked.tool_call_id)
        if call is None or call.ended:
            call = self._calls[asked.tool_call_id] = Call(asked.tool_call_id, self._stream.now)
            call.merge(asked)
            call.status = "pending"
            self._start(call)
            return call
        known = {name: getattr(call, name) for name in OWN}
        call.merge(asked)
        for name, value in known.items():
            if value not in (None, {}, "", []):
                setattr(call, name, value)
        call.input = as_input(call.raw_input)
        return call

    def _start(self, call: Call) -> int:
        self._emit(
            ToolCallStartEvent,
            tool_call_id=call.id,
            name=call.name,
            category=call.category,
            description=describe_tool_call(call.name, call.raw_input),
            title=call.title or None,
            kind=call.kind,
            locations=locations(call),
            parent_tool_call_id=call.parent,
        )
        parent = self._calls.get(call.parent) if call.parent else None
        if parent is not None and not parent.ended:
            message = describe_tool_call(call.name, call.raw_input)
            self._emit(SubAgentProgressEvent, sub_agent_id=sub_agent(parent), message=message)
        return 1

    def _arguments(self, call: Call, changed: set[str]) -> int:
        """Events of arguments that came or changed, and of the moment when the tool begins to run."""
        runs = call.status != "pending"
        if runs and (not call.executing or "raw_input" in changed):
            self.execute(call)
            return 1
        if not runs and "raw_input" in changed and call.raw_input not in ({}, None):
            if call.executing:
                self.execute(call)
            else:
                self._arguments_delta(call)
            return 1
        return 0

    def _arguments_delta(self, call: Call) -> None:
        text = _encode(to_wire(call.raw_input)).decode()
        self._emit(ToolCallArgsDeltaEvent, tool_call_id=call.id, delta=text, replace=bool(call.args))
        call.args = text

    def execute(self, call: Call, *, requires_approval: bool = False) -> None:
        """The tool is about to run: its input, its risk, and what the input alone tells."""
        if not call.executing:
            call.executing, call.since = True, self._stream.now
        call.approval = call.approval or requires_approval
        risk = assess_risk(call.name, judged_input(call, known_input(call)), self._workspace)
        self._emit(
            ToolCallExecutingEvent,
            tool_call_id=call.id,
            name=call.name,
            input=known_input(call),
            risk_level=risk.level,
            requires_approval=call.approval,
            risk_reasons=[str(reason) for reason in risk.reasons],
        )
        self._spawn(call)
        self._plan(call)
        self._ask(call)
        todos = todos_of(call.raw_input)
        if todos:
            self._stream.todos(todos)

    def _spawn(self, call: Call) -> None:
        if call.category != "agent" or call.spawned or not call.input:
            return
        call.spawned = True
        task = call.input.get("description") or call.input.get("prompt") or call.title
        model = call.input.get("model")
        self._emit(
            SubAgentSpawnedEvent,
            sub_agent_id=sub_agent(call),
            parent_tool_call_id=call.id,
            task=task if isinstance(task, str) else call.title,
            model=model if isinstance(model, str) else None,
        )

    def _plan(self, call: Call) -> None:
        plan = call.input.get("plan")
        if call.kind == "switch_mode" and isinstance(plan, str):
            self._emit(PlanModeEvent, active=True, plan=plan)

    def _ask(self, call: Call) -> None:
        if call.questions:
            return
        for index, item in enumerate(questions_of(call.name, call.raw_input)):
            question_id = f"{call.id}:{index}"
            call.questions.append(question_id)
            self._stream.waiting.add(question_id)
            self._emit(
                UserQuestionEvent,
                question_id=question_id,
                question=item["question"],
                options=[option["label"] for option in item.get("options", [])] or None,
                multi_select=bool(item.get("multiSelect")),
                tool_call_id=call.id,
            )

    def _progress(self, call: Call, changed: set[str], update: Any = None) -> None:
        output, replace = self._output(call, update) if update is not None else (None, False)
        self._emit(
            ProgressEvent,
            label=call.title or call.name,
            tool_call_id=call.id,
            output=output,
            replace=replace,
            locations=locations(call) if "locations" in changed else None,
        )

    def _output(self, call: Call, update: Any) -> tuple[str | None, bool]:
        """What the call printed since the last time; agents send it whole, or piece by piece in `_meta`."""
        piece = terminal_piece(update)
        if piece is not None:
            call.output += piece
            return piece, False
        whole = outcomes.output_text(call.content, call.raw_output)
        if whole == call.output:
            return None, False
        grown = whole.startswith(call.output)
        piece = whole[len(call.output) :] if grown else whole
        call.output = whole
        return piece, not grown

    # -- ends --

    def _finish(self, call: Call) -> None:
        if not call.executing:
            self.execute(call)
        output = outcomes.output_text(call.content, call.raw_output) or call.output
        code = outcomes.exit_code(call.raw_output, call.meta)
        done = call.status == "completed" and not code
        changes = outcomes.file_changes(call.name, call.kind, call.content, call.raw_input, call.raw_output)
        structured = outcomes.structured_output(
            call.category, call.raw_input, call.raw_output, output, changes if done else [], code
        )
        ending: dict[str, Any] = {
            "tool_call_id": call.id,
            "name": call.name,
            "output": output,
            "duration": _milliseconds(call.since, self._stream.now),
            "structured": structured,
        }
        if done:
            self._emit(ToolCallResultEvent, **ending)
            self._effects(call, output, changes)
        else:
            self._emit(ToolCallErrorEvent, error=failure(call, output, code), **ending)
        self._completed(call, output, "answered" if done else "declined")
        call.end()

    def _effects(self, call: Call, output: str, changes: list[FileChange]) -> None:
        if len(changes) == 1:
            self._changed(call, changes[0])
        elif changes:
            self._emit(FileChangeBatchEvent, changes=changes, description=call.title or None, tool_call_id=call.id)
        if call.category == "terminal":
            for operation in outcomes.git_operations(call.raw_input, output):
                self._emit(GitOperationEvent, operation=operation, tool_call_id=call.id)
        if call.category == "web":
            web = outcomes.web_operation(call.raw_input, call.raw_output)
            if web is not None:
                self._emit(WebOperationEvent, operation=web, tool_call_id=call.id)

    def _changed(self, call: Call, change: FileChange) -> None:
        suffix = change.path.rpartition(".")[2].lower()
        fields = {name: getattr(change, name) for name in change.__struct_fields__}
        self._emit(FileChangeEvent, **fields, language=LANGUAGES.get(suffix), tool_call_id=call.id)

    def _completed(self, call: Call, output: str, outcome: str = "answered") -> None:
        """What a call began beside itself ends with it."""
        questions, call.questions = call.questions, []
        for question_id in questions:
            self._stream.waiting.discard(question_id)
            data = {"questionId": question_id, "outcome": outcome, "answer": output or None}
            self._emit(CustomEvent, namespace="pilothouse", event_name="question_answered", data=data)
        if call.spawned:
            self._emit(SubAgentCompletedEvent, sub_agent_id=sub_agent(call), parent_tool_call_id=call.id, result=output)

    def close(self, code: str, message: str) -> None:
        """End every call that its agent left open."""
        for call in self.open():
            if not call.executing:
                self.execute(call)
            refused = call.rejected and code in ("cancelled", "unfinished")
            self._emit(
                ToolCallErrorEvent,
                tool_call_id=call.id,
                name=call.name,
                error=ACPError(
                    code="rejected" if refused else code,
                    message="The request was rejected." if refused else message,
                    recoverable=True,
                ),
                duration=_milliseconds(call.since, self._stream.now),
                output=call.output or None,
            )
            self._completed(call, message, "cancelled")
            call.end()


def _milliseconds(since: str, now: str) -> int:
    try:
        elapsed = datetime.fromisoformat(now) - datetime.fromisoformat(since)
    except (ValueError, TypeError):
        return 0
    return max(0, round(elapsed.total_seconds() * 1000))
