"""What the CLI tells beside the conversation: hooks, retries, limits, compaction, status. Each is shown as what it is.

What a person should know is a notice; what only a program can use is a note. None of it is part of the model's words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from .outbox import META, Outbox
from .outcomes import kind_of
from .plans import Plans
from .reading import count, mapping, number, text
from .setup import Setup
from .tools import Calls
from .usage import Usage
from .wire import HookResponse, Init

__all__ = ["News"]

Fields = dict[str, Any]
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
