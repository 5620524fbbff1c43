"""Lines of the CLI beside the conversation: plans, tasks, hooks, retries, limits, compaction, status.

What a user should know becomes a notice; what only a program can use becomes a note. None of it is part of the model's
words. TodoWrite replaces the plan as a whole, the Task tools change it item by item; only the main agent's list is the
plan of the session. A task in the foreground is progress of the call that started it. One in the background outlives
its call, and a command even the turn; so its progress is sent in notes and its end in a notice, because a call that has
ended must not be reopened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from ...model.loose_json import count, items, mapping, number, text
from .actions import META, Outbox
from .control import Setup
from .speech import Speech
from .tools import Call, Calls
from .turns import Usage, kind_of
from .wire import HookResponse, Init

_STATUSES = ("pending", "in_progress", "completed")


class Plans:
    """The plan of a session. It is told when a tool has changed it, not when it is about to."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._items: dict[str, dict[str, str]] = {}
        self._told: list[dict[str, Any]] = []

    def changed(self, call: Call, told: Any) -> None:
        """A call of the main agent ended well."""
        change = _CHANGES.get(call.name)
        if change is None or call.parent is not None:
            return
        change(self, call.given, mapping(told))
        self._tell()

    def clear(self) -> None:
        """The conversation begins again."""
        self._items = {}
        self._tell()

    def _tell(self) -> None:
        entries = [_entry(item) for item in self._items.values() if item["content"]]
        if entries != self._told:
            self._told = entries
            self._outbox.update("plan", entries=entries)

    def _write(self, given: dict[str, Any], told: dict[str, Any]) -> None:
        todos = items(told.get("newTodos")) or items(given.get("todos"))
        self._items = {str(place): _item(todo) for place, todo in enumerate(todos) if isinstance(todo, dict)}

    def _create(self, given: dict[str, Any], told: dict[str, Any]) -> None:
        task = mapping(told.get("task"))
        known = text(task.get("id")) or str(len(self._items) + 1)
        self._items[known] = _item({**given, **{key: value for key, value in task.items() if value}})

    def _update(self, given: dict[str, Any], told: dict[str, Any]) -> None:
        known = text(given.get("taskId"))
        item = self._items.get(known)
        if item is None:
            return
        if given.get("status") == "deleted":
            del self._items[known]
            return
        named = {"content": given.get("subject"), "status": given.get("status"), "active": given.get("activeForm")}
        item.update({key: text(value) for key, value in named.items() if text(value)})

    def _list(self, given: dict[str, Any], told: dict[str, Any]) -> None:
        tasks = [mapping(task) for task in items(told.get("tasks"))]
        found = {text(task.get("id")): task for task in tasks if text(task.get("id"))}
        if found:
            before = self._items
            self._items = {key: {**before.get(key, {}), **_item(task)} for key, task in found.items()}


_CHANGES: dict[str, Callable[[Plans, dict[str, Any], dict[str, Any]], None]] = {
    "TodoWrite": Plans._write,
    "TaskCreate": Plans._create,
    "TaskUpdate": Plans._update,
    "TaskList": Plans._list,
}


def _item(todo: dict[str, Any]) -> dict[str, str]:
    content = text(todo.get("content")) or text(todo.get("subject"))
    return {"content": content, "status": text(todo.get("status")), "active": text(todo.get("activeForm"))}


def _entry(item: dict[str, str]) -> dict[str, Any]:
    """An entry of a plan. The CLI knows no priorities, the protocol wants one."""
    status = item["status"] if item["status"] in _STATUSES else "pending"
    entry: dict[str, Any] = {"content": item["content"], "priority": "medium", "status": status}
    if item["active"] and item["active"] != item["content"]:
        entry["_meta"] = {META: {"activeForm": item["active"]}}
    return entry


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
        handler = _TASK_HANDLERS.get(subtype)
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


_TASK_HANDLERS: dict[str, Callable[[Tasks, Fields], None]] = {
    "task_started": Tasks._started,
    "task_progress": Tasks._progress,
    "task_updated": Tasks._updated,
    "task_notification": Tasks._ended,
    "background_tasks_changed": Tasks._changed,
}


def _kept(fields: Fields) -> Fields:
    return {key: fields[key] for key in _KEPT if fields.get(key) is not None}


_BESIDE = ("type", "subtype", "session_id", "uuid")
_HOOK = ("hook_id", "hook_name", "hook_event", "outcome", "exit_code", "stdout", "stderr")
LATEST = 4_102_444_800
"""The last second that is taken for a time of a reset: the end of 2099."""
_LEVELS = {"error": "error", "warning": "warning", "warn": "warning"}


class News:
    """The news of a session. `skipped` counts what is known and told nobody, because there is nothing in it to keep."""

    def __init__(self, outbox: Outbox, setup: Setup, usage: Usage, plans: Plans, calls: Calls) -> None:
        self._outbox = outbox
        self._setup = setup
        self._usage = usage
        self._plans = plans
        self._calls = calls
        self._compactions = 0
        self._compacting = False
        self._servers: dict[str, str] = {}
        self.summary_due = False
        """Whether the next synthetic message of the user is the summary of a compaction."""
        self.refused = False
        self.skipped: Counter[str] = Counter()

    def take(self, kind: str, fields: Fields) -> bool:
        """A line by its type, or a system line by its subtype; False for one that is not known."""
        handler = _HANDLERS.get(kind)
        if handler is not None:
            handler(self, fields)
        return handler is not None

    def begun(self, init: Init) -> None:
        """A turn begins."""
        self._calls.cwd = text(init.cwd) or self._calls.cwd
        self._setup.begun(init)
        for server in map(mapping, init.mcp_servers):
            name, status = text(server.get("name")), text(server.get("status"))
            if self._servers.get(name) != status and status in ("failed", "needs-auth"):
                self._outbox.notice("warning", f"MCP server {name}: {status}", **{META: {"mcpServer": server}})
            self._servers[name] = status

    # -- hooks --

    def _hook(self, fields: Fields) -> None:
        self._outbox.note("hook", _own(fields))

    def hooked(self, line: HookResponse) -> None:
        """A hook ran. Only one that failed is worth a word: the others speak to the model."""
        told = {name: getattr(line, name) for name in _HOOK}
        known = {key: value for key, value in told.items() if value is not None}
        if line.exit_code or line.outcome == "error":
            said = (line.stderr or line.output or line.stdout or "").strip()
            self._outbox.notice("warning", f"Hook {line.hook_name} failed", said, **{META: {"hook": known}})
        else:
            self._outbox.note("hook", known)

    # -- status, modes, compaction --

    def _status(self, fields: Fields) -> None:
        self._setup.entered(text(fields.get("permissionMode")))
        status, result = fields.get("status"), text(fields.get("compact_result"))
        if status == "compacting":
            self._compact("in_progress")
        elif self._compacting and result and result != "success":
            error = text(fields.get("compact_error")) or f"The conversation could not be shortened: {result}"
            self._compact("cancelled" if "abort" in result or "cancel" in result else "failed", error=error)
        elif isinstance(status, str):
            self._outbox.note("status", {"status": status})

    def _boundary(self, fields: Fields) -> None:
        metadata = mapping(fields.get("compact_metadata"))
        self._compact("completed", _meta={META: metadata} if metadata else None)
        self.summary_due = True
        self._usage.shrunk(count(metadata.get("post_tokens")) or 0)

    def _compact(self, status: str, **fields: Any) -> None:
        if not self._compacting:
            self._compactions += 1
        self._compacting = status == "in_progress"
        known = {key: value for key, value in fields.items() if value is not None}
        self._outbox.compaction(f"compaction-{self._compactions}", status, **known)

    def summarised(self, words: str) -> None:
        """The summary that stands for the conversation from now on."""
        self.summary_due = False
        summary = [{"type": "text", "text": words}]
        self._outbox.compaction(f"compaction-{self._compactions}", "completed", summary=summary)

    def turn_ended(self) -> None:
        """Nobody will tell any more how a compaction ended."""
        if self._compacting:
            self._compact("cancelled")
        self.summary_due = self.refused = False

    def _reset(self, fields: Fields) -> None:
        self._plans.clear()
        self._usage.shrunk()
        self._outbox.notice("info", "The conversation was cleared", **{META: _own(fields)})

    # -- trouble --

    def _retry(self, fields: Fields) -> None:
        status, error = count(fields.get("error_status")), text(fields.get("error"))
        attempt, most = count(fields.get("attempt")) or 1, count(fields.get("max_retries"))
        kind = kind_of(error, status, "") if status is not None or error not in ("", "unknown") else "connection"
        why = _TROUBLE.get(kind, "The call of the model failed")
        tries = f"attempt {attempt} of {most}" if most else f"attempt {attempt}"
        meta: Fields = {META: {"retry": _own(fields)}, "errorKind": kind}
        if number(fields.get("retry_delay_ms")) is not None:
            meta["retryAfterMs"] = fields["retry_delay_ms"]
        shown = f" ({status})" if status is not None else ""
        self._outbox.notice("warning", f"{why}{shown}", f"Trying again, {tries}.", **meta)

    def _rate_limit(self, fields: Fields) -> None:
        info = mapping(fields.get("rate_limit_info"))
        status, meta = text(info.get("status")), {META: {"rateLimit": info}}
        if status == "rejected":
            self._outbox.notice("error", "Usage limit reached", _reset(info), **meta, errorKind="rate_limit")
        elif status == "allowed_warning":
            self._outbox.notice("warning", "Most of the plan's allowance is used", _reset(info), **meta)
        else:
            self._outbox.note("rate_limit", info)

    def _informational(self, fields: Fields) -> None:
        words = text(fields.get("content"))
        severity = _LEVELS.get(text(fields.get("level")), "info")
        if words:
            self._outbox.notice(severity, words)

    def _denied(self, fields: Fields) -> None:
        name, call_id = text(fields.get("tool_name")) or "A tool", text(fields.get("tool_use_id"))
        meta = {META: {"toolName": name, "toolUseId": call_id}}
        self._outbox.notice("warning", f"{name} was not permitted", text(fields.get("message")), **meta)

    def _refusal(self, fields: Fields) -> None:
        self.refused = True
        self._outbox.note("refusal", _own(fields))

    def _auth(self, fields: Fields) -> None:
        error = text(fields.get("error"))
        if error:
            self._outbox.notice("error", "Signing in failed", error)
        else:
            self._outbox.note("auth_status", _own(fields))

    # -- the rest --

    def _tool_progress(self, fields: Fields) -> None:
        seconds = number(fields.get("elapsed_time_seconds"))
        self._calls.run(text(fields.get("tool_use_id")), elapsedSeconds=seconds or 0)

    def _commands(self, fields: Fields) -> None:
        self._setup.commands(fields.get("commands"))

    def _note(self, fields: Fields) -> None:
        self._outbox.note(text(fields.get("subtype")) or text(fields.get("type")) or "news", _own(fields))

    def _skip(self, fields: Fields) -> None:
        self.skipped[text(fields.get("subtype")) or text(fields.get("type"))] += 1


_TROUBLE = {
    "auth_required": "Signing in failed",
    "rate_limit": "Rate limit",
    "overloaded": "The model is overloaded",
    "connection": "The connection to the model broke",
    "server_error": "The model's server failed",
}
_HANDLERS: dict[str, Callable[[News, Fields], None]] = {
    "api_retry": News._retry,
    "auth_status": News._auth,
    "commands_changed": News._commands,
    "compact_boundary": News._boundary,
    "conversation_reset": News._reset,
    "files_persisted": News._note,
    "hook_progress": News._hook,
    "hook_started": News._hook,
    "informational": News._informational,
    "keep_alive": News._skip,
    "model_refusal_no_fallback": News._refusal,
    "permission_denied": News._denied,
    "rate_limit_event": News._rate_limit,
    "session_state_changed": News._note,
    "status": News._status,
    "thinking_tokens": News._skip,
    "tool_progress": News._tool_progress,
    "transcript_mirror": News._skip,
}


def _reset(info: Fields) -> str:
    """When a limit is lifted, in the time of the whole world."""
    at = count(info.get("resetsAt"))
    if at is None or at > LATEST:
        return ""
    return f"It is lifted on {datetime.fromtimestamp(at, UTC):%Y-%m-%d at %H:%M} UTC."


def _own(fields: Fields) -> Fields:
    """A line without what every line has."""
    return {key: value for key, value in fields.items() if key not in _BESIDE}
