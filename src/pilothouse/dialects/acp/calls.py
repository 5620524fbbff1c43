"""Tool calls as agents report them, followed until they end.

Every message that names a tool call is an upsert: agents announce calls late or never, change titles, repeat
themselves, and leave calls open. What comes out is regular: `tool:start` once, `tool:executing` before any end,
and one of `tool:result` and `tool:error`. A call that was closed for its agent, because the turn ended without a word
about it, has a second end if the agent's own comes after all; that one counts. If a call shows other effects after its
own end, they are another call with the same id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from ...acp.model import to_wire
from ...model.acts import SHELLS, Effects
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
from ...model.risk import Risk, worst
from ...model.session import milliseconds_between
from ...model.tools import describe_tool_call, questions_of, todos_of
from . import outcomes
from .call import (
    ENDED,
    Call,
    asked_view,
    brings_other_effects,
    diffs_in,
    failure,
    is_new,
    known_input,
    locations,
    named_terminals,
    terminal_piece,
)
from .effects import commands_of, effects_of, has_only_title, level_by_title, risk_of
from .stream import Stream, Terminal, Terminals

_encode = msgspec.json.Encoder().encode

PIECE = 64 * 1024
"""Characters of output in one event."""

LANGUAGES = {
    "c": "c", "cc": "cpp", "cpp": "cpp", "cs": "csharp", "css": "css", "ex": "elixir", "go": "go", "h": "c",
    "hpp": "cpp", "hs": "haskell", "html": "html", "java": "java", "js": "javascript", "json": "json",
    "jsx": "javascript", "kt": "kotlin", "lua": "lua", "md": "markdown", "mjs": "javascript", "php": "php",
    "py": "python", "rb": "ruby", "rs": "rust", "scala": "scala", "sh": "shell", "sql": "sql", "swift": "swift",
    "toml": "toml", "ts": "typescript", "tsx": "typescript", "vue": "vue", "xml": "xml", "yaml": "yaml",
    "yml": "yaml", "zig": "zig",
}  # fmt: skip


MOST_ENDED = 2000
"""Ended calls whose effects are kept until `take_ended_effects`; a turn may end any number at once."""


class EndedEffects(NamedTuple):
    """A call as it was when it ended. Its last diffs may show text that a formatter has changed.

    `risk_level` takes a title for the command, if there is nothing else. `names` are those under which it was reported.
    `has_only_title`: its command is known by its title alone. `hides_command`: it is a shell call without a command.
    `has_begun` is false if it was closed before its agent reported that it runs. `is_continued`: it shows other effects
    than an ended call of this id did. `is_unfinished`: it was closed without a report of its agent. `is_late`: that
    report comes now.
    """

    effects: Effects
    kind: str
    input: dict[str, Any]
    risk_level: str
    names: tuple[str, ...]
    has_diffs: bool
    has_only_title: bool
    hides_command: bool
    has_begun: bool
    is_continued: bool
    is_unfinished: bool
    is_late: bool = False


class Calls:
    """The tool calls of a session; their events go to its stream."""

    def __init__(self, stream: Stream, workspace: str | None, shells: tuple[str, ...] = SHELLS) -> None:
        self._shells = shells
        self._stream = stream
        self._emit = stream.emit
        self._workspace = workspace
        self._calls: dict[str, Call] = {}
        self._terminals = Terminals()
        self.ended_effects: dict[str, EndedEffects] = {}
        self._closings = 0
        self._elicited: dict[str, None] = {}

    def get(self, call_id: str) -> Call | None:
        return self._calls.get(call_id)

    def is_open(self, call_id: str) -> bool:
        call = self._calls.get(call_id)
        return call is not None and not call.ended

    def open(self) -> list[Call]:
        return [call for call in self._calls.values() if not call.ended]

    @property
    def _turn(self) -> int:
        """The number of the current turn; between turns that of the last one, to which late updates belong."""
        return self._closings if self._stream.turn else self._closings - 1

    # -- updates --

    def update(self, update: Any, *, announced: bool) -> Call:
        """Take in a `tool_call` (`announced`) or a `tool_call_update`."""
        known = self._calls.get(update.tool_call_id)
        is_same_turn = known is not None and known.turn == self._turn
        fresh = known is None or (known.ended and is_new(known, update, announced=announced, is_same_turn=is_same_turn))
        is_changed = known is not None and known.ended and brings_other_effects(known, update)
        is_late_end = known is not None and known.unfinished and update.status in ENDED
        if known is not None and not fresh and is_changed and not known.unfinished:
            fresh = True  # other effects need a permission of their own
            call = self._add(update.tool_call_id, known)
        elif known is None or fresh:
            call = self._add(update.tool_call_id)
        else:
            call = known
        if call.ended:
            if not is_changed and not is_late_end:
                call.title = update.title or call.title
                self._progress(call, set())
                return call
            call.reopen()
        changed = call.merge(update)
        count = self._start(call) if fresh else 0
        count += self._arguments(call, changed)
        piece = terminal_piece(update)
        if piece is not None:
            call.printed.append(piece)
        named = self._named(call) if "content" in changed else []
        ends = call.status in ENDED
        grew = call.status == "in_progress" and not fresh and bool(changed & {"content", "raw_output"})
        # whatever the update itself says comes first, because its source rides there
        if not ends and (piece is not None or grew):
            self._progress(call, changed, piece)
        elif (not count and (named or not ends)) or (not fresh and "title" in changed):
            self._progress(call, changed)  # nothing else has a place for a title that comes later
        with self._stream.unsourced():
            for terminal in named:
                self._tell(call, terminal.shown)
        if ends:
            self._finish(call, update)
            if is_late_end and not fresh and not is_changed:  # these effects were reported when the call was closed
                self.ended_effects[call.id] = self.ended_effects[call.id]._replace(is_late=True)
        return call

    def _add(self, call_id: str, continued: Call | None = None) -> Call:
        """A new call. An id may be used again; the ids of questions are not."""
        call, earlier = Call(call_id, self._stream.now, continued), self._calls.get(call_id)
        call.question_count = earlier.question_count if earlier is not None else 0
        self._calls[call_id] = call
        return call

    # -- terminals of the client --

    def printed(self, terminal_id: str, text: str) -> None:
        """Something was printed in a terminal: told if an open call shows it, else kept for one that will."""
        terminal = self._terminals.get(terminal_id)
        terminal.print(text)
        call = self._calls.get(terminal.call_id) if terminal.call_id is not None else None
        if call is not None and not call.ended:
            self._tell(call, text)

    def terminated(self, terminal_id: str, *ending: Any) -> None:
        """The program in a terminal ended. Its call tells of that when it ends itself."""
        terminal = self._terminals.get(terminal_id)
        terminal.end(*ending)
        # between turns there is no call that could still name it
        self._terminals.sweep(*(() if self._stream.turn else (0,)))

    def _named(self, call: Call) -> list[Terminal]:
        """Note the terminals that a call shows; those that it did not show before and that have output."""
        new = [one for one in dict.fromkeys(named_terminals(call)) if one not in call.terminals]
        call.terminals += new
        for one in new:
            self._terminals.get(one).call_id = call.id
        return self._terminals.of(new)

    def _tell(self, call: Call, text: str) -> None:
        if not text:
            return
        if not call.executing:
            self.execute(call)  # some agents never say so
        for start in range(0, len(text), PIECE):
            self._progress(call, set(), text[start : start + PIECE])

    def _printed(self, call: Call) -> str:
        """What was printed while the call ran, by its agent's account or in the client's terminals."""
        return str(call.printed) or "\n".join(terminal.shown for terminal in self._terminals.of(call.terminals))

    def view_of_request(self, asked: Any) -> Call:
        """The call that a permission request is about, as the request shows it. Changes nothing."""
        call = self._calls.get(asked.tool_call_id)
        if call is None or call.ended:
            call = Call(asked.tool_call_id, self._stream.now)
            call.merge(asked)
            call.status = "pending"
            return call
        return asked_view(call, asked)

    def asked(self, asked: Any, *, is_act: bool = False) -> tuple[Call, Call]:
        """The call that a permission request is about, and that call as the request shows it.

        A call that nothing else announced is announced by the request. Its status says nothing: the agent waits.
        A request from the hub about an act (`is_act`) shows only that act, not the agent's own fields.
        """
        call = self._calls.get(asked.tool_call_id)
        if call is None or call.ended:
            call = self._add(asked.tool_call_id)
            call.merge(asked)
            call.status = "pending"
            self._start(call)
            return call, call
        if is_act:
            view = Call(asked.tool_call_id, self._stream.now)
            view.merge(asked)
            return call, view
        view = asked_view(call, asked)
        call.learn(asked)
        return call, view

    def _start(self, call: Call) -> int:
        parent = self._calls.get(call.parent) if call.parent else None
        if parent is not None and not parent.ended and not parent.executing:
            self.execute(parent)  # some agents never say so
        described = describe_tool_call(call.name, call.raw_input) if call.raw_input not in ({}, None) else None
        self._emit(
            ToolCallStartEvent,
            tool_call_id=call.id,
            name=call.name,
            category=call.category,
            description=described or call.title or None,
            title=call.title or None,
            kind=call.kind,
            locations=locations(call),
            parent_tool_call_id=call.parent,
        )
        if parent is not None and not parent.ended:
            message = described or call.title or call.name
            self._emit(SubAgentProgressEvent, sub_agent_id=parent.sub_agent, message=message)
        return 1

    def _arguments(self, call: Call, changed: set[str]) -> int:
        """Events of arguments that came or changed, and of the moment when the tool begins to run."""
        if "raw_input" in changed and not call.executing:
            call.since = self._stream.now
        runs = call.status != "pending" or "toolResponse" in _claude(call.meta)
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
        risk = self._risk_of(call)
        call.risk_level, call.level_by_title = risk.level, level_by_title(risk)
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

    def _risk_of(self, call: Call) -> Risk:
        """The risk of a call; what a call that ended shows is its output."""
        content = call.content
        if call.status in ENDED:
            call.content = diffs_in(content)
        risk = risk_of(call, self._workspace)
        call.content = content
        return risk

    def _spawn(self, call: Call) -> None:
        if call.category != "agent" or call.spawned or not call.input:
            return
        call.spawned = True
        task = call.input.get("description") or call.input.get("prompt") or call.title
        model = call.input.get("model")
        self._emit(
            SubAgentSpawnedEvent,
            sub_agent_id=call.sub_agent,
            parent_tool_call_id=call.id,
            task=task if isinstance(task, str) else call.title,
            model=model if isinstance(model, str) else None,
        )

    def _plan(self, call: Call) -> None:
        plan = call.input.get("plan")
        if call.kind == "switch_mode" and isinstance(plan, str):
            self._stream.plan_mode = True
            self._emit(PlanModeEvent, active=True, plan=plan)

    def _ask(self, call: Call) -> None:
        items = questions_of(call.name, call.raw_input)
        if call.id in self._elicited or items == call.question_items:
            return
        withdrawn, call.questions = call.questions, []
        for question_id in withdrawn:  # the agent asks something else now
            self._emit_answer(question_id, "cancelled", None)
        call.question_items = items
        for item in items:
            question_id = f"{call.id}:{call.question_count}"
            call.question_count += 1
            call.questions.append(question_id)
            self._stream.waiting[question_id] = "waiting_for_input"
            self._emit(
                UserQuestionEvent,
                question_id=question_id,
                question=item["question"],
                options=[option["label"] for option in item.get("options", [])] or None,
                multi_select=bool(item.get("multiSelect")),
                tool_call_id=call.id,
            )

    def elicited(self, call_id: str) -> None:
        """The agent asks for a call by an elicitation, so that the call itself asks no more."""
        self._elicited[call_id] = None

    def _progress(self, call: Call, changed: set[str], piece: str | None = None) -> None:
        output, replace = piece, False
        if piece is None and changed & {"content", "raw_output"} and call.status == "in_progress":
            output, replace = self._grown(call)
        self._emit(
            ProgressEvent,
            label=call.title or call.name,
            tool_call_id=call.id,
            output=output,
            replace=replace,
            locations=locations(call) if "locations" in changed else None,
        )

    def _grown(self, call: Call) -> tuple[str | None, bool]:
        """What the call shows more than the last time, for agents that send the whole of it each time."""
        whole, before = outcomes.output_text(call.content, call.raw_output), call.shown
        call.shown = whole
        if whole == before:
            return None, False
        return (whole[len(before) :], False) if whole.startswith(before) else (whole, True)

    # -- ends --

    def _finish(self, call: Call, update: Any) -> None:
        if not call.executing:
            since = call.since
            self.execute(call)
            call.since = since
        output = self._said(call, update)
        code, signal = self._exit(call)
        done = call.status == "completed" and not code
        changes = outcomes.file_changes(call, output, self._workspace)
        category = "terminal" if call.terminals else call.category
        structured = outcomes.structured_output(
            category, call.raw_input, call.raw_output, output, changes if done else [], code, signal
        )
        ending: dict[str, Any] = {
            "tool_call_id": call.id,
            "name": call.name,
            "output": output,
            "duration": milliseconds_between(call.since, self._stream.now),
            "structured": structured,
        }
        if done:
            self._emit(ToolCallResultEvent, **ending)
            self._effects(call, output, changes)
        else:
            self._emit(ToolCallErrorEvent, error=failure(call, output, code, signal), **ending)
        self._completed(call, output, "answered" if done else "declined")
        self._end(call)

    def _end(self, call: Call, *, unfinished: bool = False, has_begun: bool = True) -> None:
        """End a call: keep its last effects for `take_ended_effects`, drop everything else."""
        if not unfinished and len(self.ended_effects) >= MOST_ENDED:
            del self.ended_effects[next(iter(self.ended_effects))]
        call.content = diffs_in(call.content)  # no output
        found = commands_of(call)
        self.ended_effects[call.id] = EndedEffects(
            effects_of(call, self._workspace, self._shells),
            call.kind,
            known_input(call),
            self._level_of(call),
            call.names,
            has_diffs=bool(call.content),
            has_only_title=found is not None and found.source == "title",
            hides_command=found is not None and found.source == "none",
            has_begun=has_begun,
            is_continued=call.is_continued,
            is_unfinished=unfinished,
        )
        self._terminals.let_go(call.id, call.terminals)
        call.end(self._turn, unfinished=unfinished)

    def _level_of(self, call: Call) -> str:
        """The risk of a call that ended, if its titles show the command where nothing else does."""
        if not has_only_title(call):
            return call.risk_level
        return worst([call.level_by_title, level_by_title(self._risk_of(call))])

    def _exit(self, call: Call) -> tuple[int | None, str | None]:
        """Exit code and signal of what the call ran: as its agent tells it, else as its last terminal ended."""
        ended = [terminal for terminal in self._terminals.of(call.terminals) if terminal.ended]
        if call.category != "terminal" and not ended:
            return None, None
        code = outcomes.exit_code(call.raw_output, call.meta)
        signal = outcomes.signal_name(call.raw_output, call.meta)
        if code is None and signal is None and ended:
            return ended[-1].exit_code, ended[-1].signal
        return code, signal

    def _said(self, call: Call, update: Any) -> str:
        """The output of a call that ended. What was shown before it ran was about its input."""
        final = update.content if update.content is not None else []
        said = outcomes.output_text(final, call.raw_output)
        lent = self._terminals.of(call.terminals)
        if lent:
            told = all(terminal.text.strip() in said for terminal in lent)
            return said if told else "\n".join(filter(None, (self._printed(call), said)))
        if said or (update.content is not None and not call.printed):
            return said
        return str(call.printed) or call.shown

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
        self._elicited.pop(call.id, None)
        questions, call.questions = call.questions, []
        for question_id in questions:
            self._emit_answer(question_id, outcome, output or None)
        if call.spawned:
            self._emit(SubAgentCompletedEvent, sub_agent_id=call.sub_agent, parent_tool_call_id=call.id, result=output)

    def close(self, code: str, message: str) -> None:
        """End every call that its agent left open."""
        self.ended_effects.clear()  # of calls that were ended before; nothing takes them any more
        for call in self.open():
            self._close(call, code, message)
        self._closings += 1
        self._elicited.clear()
        self._terminals.sweep(0)

    def withdraw(self, call_id: str, message: str) -> None:
        """End a call that was asked for outside of any turn, and that nobody wants any more."""
        if self.is_open(call_id):
            self._close(self._calls[call_id], "cancelled", message)

    def _close(self, call: Call, code: str, message: str) -> None:
        has_begun = call.executing
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
            duration=milliseconds_between(call.since, self._stream.now),
            output=self._printed(call) or call.shown or None,
        )
        self._completed(call, message, "cancelled")
        self._end(call, unfinished=True, has_begun=has_begun)

    def answered(self, question_id: str, outcome: str, answer: Any) -> bool:
        """A question that a tool asked is answered before its call ends; whether there is one."""
        for call in self.open():
            if question_id in call.questions:
                call.questions.remove(question_id)
                self._emit_answer(question_id, outcome, answer)
                return True
        return False

    def _emit_answer(self, question_id: str, outcome: str, answer: Any) -> None:
        self._stream.waiting.pop(question_id, None)
        data = {"questionId": question_id, "outcome": outcome, "answer": answer}
        self._emit(CustomEvent, namespace="pilothouse", event_name="question_answered", data=data)


def _claude(meta: Mapping[str, Any]) -> Mapping[str, Any]:
    told = meta.get("claudeCode")
    return told if isinstance(told, Mapping) else {}
