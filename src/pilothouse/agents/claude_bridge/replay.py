"""A session told again from its records, by the translator that would have told it while it ran.

The CLI does not always record where a turn ends. So whatever is open is closed by the next prompt, by a record that
says so, and by whoever knows that nothing follows.

What a sub-agent did is told where its end is: its records are elsewhere, and only then they are all there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...model.loose_json import items, mapping, text
from .actions import Update
from .records import Activity, told, told_by_subagent
from .tools import AGENTS
from .translate import Translator
from .wire import line_of

Json = dict[str, Any]
Subagents = Callable[[str, str], Iterable[Json]]
"""Gives the records of the sub-agent that a call has started, by the id of the call and, where it is known, its own."""
_END = {"type": "result", "subtype": "success", "is_error": False, "result": ""}


class Replay:
    """The records of one session, in order, as the updates that tell it."""

    def __init__(self, translator: Translator, subagents: Subagents | None = None) -> None:
        self.activity = Activity()
        self._translator = translator
        self._subagents = subagents
        self._started: set[str] = set()
        """The calls whose sub-agent has not been told of."""

    def take(self, record: Json) -> Iterator[Json]:
        """The updates of one more record."""
        is_new = True
        for each in told(record):
            if "sessionUpdate" not in each:
                is_new = is_new and each.get("type") != "user"  # words beside results end nothing
                yield from self._line(each)
                continue
            if is_new and record.get("type") == "user":
                yield from self.end()
            is_new = False
            yield each
        self.activity.take(record)
        if self.activity.turn_ended:
            yield from self.end()

    def end(self) -> Iterator[Json]:
        """Nothing follows that belongs to what was told: what is open stays unfinished."""
        return self._line(_END) if self._translator.has_open_calls else iter(())

    def _line(self, line: Json) -> Iterator[Json]:
        for call_id, agent_id in _ended(line):
            if call_id in self._started:
                self._started.discard(call_id)
                yield from self._subagent(call_id, agent_id)
        self._started.update(_started(line) if self._subagents is not None else ())
        for action in self._translator.line(line_of(line)):
            if isinstance(action, Update):
                yield action.update

    def _subagent(self, call_id: str, agent_id: str) -> Iterator[Json]:
        for record in self._subagents(call_id, agent_id) if self._subagents is not None else ():
            for line in told_by_subagent(record, call_id):
                yield from self._line(line)


def _started(line: Json) -> Iterator[str]:
    """The calls in a line that start sub-agents."""
    if line.get("type") == "assistant":
        for block in map(mapping, items(mapping(line.get("message")).get("content"))):
            if block.get("name") in AGENTS and text(block.get("id")):
                yield block["id"]


def _ended(line: Json) -> Iterator[tuple[str, str]]:
    """The calls whose sub-agent, if they have started one, has ended by this line, and its id, if it is told."""
    if line.get("subtype") == "task_notification":
        yield text(line.get("tool_use_id")), text(line.get("task_id"))
    if line.get("type") != "user":
        return
    result = mapping(line.get("tool_use_result"))
    if result.get("status") == "async_launched":
        return  # it goes on in the background
    for block in map(mapping, items(mapping(line.get("message")).get("content"))):
        if text(block.get("tool_use_id")):
            yield block["tool_use_id"], text(result.get("agentId"))
