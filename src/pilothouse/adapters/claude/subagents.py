"""Tasks: sub-agents and long commands, in the foreground and in the background.

A task in the foreground is progress of the call that started it. One in the background outlives its call, and a command
outlives the turn as well; so what it does later is told by notes, and its end by a notice; a call that has ended must
not be opened again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .outbox import Outbox
from .reading import items, mapping, text
from .speech import Speech
from .tools import Calls

__all__ = ["Tasks"]

Fields = dict[str, Any]
AGENT = "local_agent"
"""The type of a task that is a sub-agent."""
_KEPT = ("task_id", "task_type", "subagent_type", "description", "status", "last_tool_name", "usage", "is_backgrounded")


class Tasks:
    """The tasks of a session, by the lines that tell of them."""

    def __init__(self, outbox: Outbox, calls: Calls, speech: Speech) -> None:
        self._outbox = outbox
        self._calls = calls
        self._speech = speech
        self.working: set[str] = set()
        """The sub-agents in the background that have not ended."""

    def take(self, subtype: str, fields: Fields) -> bool:
        """A system line; False for one that is about something else."""
        handler = _HANDLERS.get(subtype)
        if handler is not None:
            handler(self, fields)
        return handler is not None

    def _started(self, fields: Fields) -> None:
        call_id, task_id = text(fields.get("tool_use_id")), text(fields.get("task_id"))
        if call_id and task_id:
            self._calls.agents[task_id] = call_id
        if fields.get("is_backgrounded") is True and call_id:
            self._calls.background.add(call_id)
            if task_id and fields.get("task_type") == AGENT:
                self.working.add(task_id)
        self._progress(fields)

    def _progress(self, fields: Fields) -> None:
        if not self._calls.run(text(fields.get("tool_use_id")), task=_kept(fields)):
            self._outbox.note("task", _kept(fields))

    def _updated(self, fields: Fields) -> None:
        patch = mapping(fields.get("patch"))
        self._outbox.note("task", {**_kept(fields), **_kept(patch)})

    def _ended(self, fields: Fields) -> None:
        call_id, task_id = text(fields.get("tool_use_id")), text(fields.get("task_id"))
        self._calls.agents.pop(task_id, None)
        self.working.discard(task_id)
        self._outbox.note("task", _kept(fields))
        if call_id not in self._calls.background:
            return
        self._calls.background.discard(call_id)
        self._calls.close_children(call_id, "The sub-agent ended before this tool call did.")
        self._speech.forget(call_id)
        status = text(fields.get("status"))
        severity = "info" if status == "completed" else "warning"
        self._outbox.notice(severity, f"Background task {status or 'ended'}", text(fields.get("summary")))

    def launched(self, call_id: str, told: Any) -> None:
        """The result of a call says that its work goes on in the background."""
        if mapping(told).get("status") == "async_launched":
            self._calls.background.add(call_id)

    def _changed(self, fields: Fields) -> None:
        """All tasks that are in the background now: one that is not among them has ended, whether told or not."""
        self.working &= {text(mapping(task).get("task_id")) for task in items(fields.get("tasks"))}
        self._outbox.note("background_tasks", {"tasks": fields.get("tasks")})


_HANDLERS: dict[str, Callable[[Tasks, Fields], None]] = {
    "task_started": Tasks._started,
    "task_progress": Tasks._progress,
    "task_updated": Tasks._updated,
    "task_notification": Tasks._ended,
    "background_tasks_changed": Tasks._changed,
}


def _kept(fields: Fields) -> Fields:
    return {key: fields[key] for key in _KEPT if fields.get(key) is not None}
