"""Tool calls from their announcement to their end.

A call is announced once, with its input and, for a change to a file, the change; it ends once, with its result or when
the turn is over. Whatever mentions a call that nobody announced announces it: a permission asked for a call that the
client does not know could not be shown.
"""

from __future__ import annotations

from typing import Any

from ...model.tools import acp_kind
from .diffs import Look, proposed
from .outbox import Outbox
from .reading import mapping, text
from .titles import locations_of, title_of

__all__ = ["AGENTS", "Call", "Calls"]

AGENTS = frozenset({"Agent", "Task"})
"""The tools that start a sub-agent."""

LONG_INPUT = 1000
"""Characters of input after which a call is announced before its input is complete: writing a large file takes the
model a minute, and nothing else would tell that it works."""

REMEMBERED = 2000
"""Calls that ended and are still known, so that what is said of them again is not taken for another call."""


class Call:
    """A call that has not ended. `parent` is the call of the sub-agent that makes it."""

    __slots__ = ("agent", "complete", "given", "id", "name", "parent", "running")

    def __init__(self, call_id: str, name: str, parent: str | None, agent: str | None = None) -> None:
        self.id = call_id
        self.name = name
        self.parent = parent
        self.agent = agent
        self.given: dict[str, Any] = {}
        self.complete = self.running = False

    def meta(self, **more: Any) -> dict[str, Any]:
        known = {"toolName": self.name, "parentToolUseId": self.parent, "agentId": self.agent, **more}
        return {key: value for key, value in known.items() if value is not None}

    def described(self, cwd: str | None, look: Look | None = None) -> dict[str, Any]:
        """What the input tells of the call, in the protocol's fields."""
        fields: dict[str, Any] = {"title": title_of(self.name, self.given, cwd), "kind": acp_kind(self.name)}
        content = proposed(self.name, self.given, look) or self._shown()
        where = locations_of(self.given)
        if content:
            fields["content"] = content
        if where:
            fields["locations"] = where
        return {**fields, "rawInput": self.given}

    def _shown(self) -> list[dict[str, Any]]:
        """Text that the user should read: the plan to approve, the task of a sub-agent."""
        key = "plan" if self.name == "ExitPlanMode" else "prompt" if self.name in AGENTS else ""
        words = text(self.given.get(key)) if key else ""
        return [{"type": "content", "content": {"type": "text", "text": words}}] if words else []


class Calls:
    """The calls of a session."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._open: dict[str, Call] = {}
        self._ended: dict[str, None] = {}
        self._growing: dict[tuple[str | None, Any], list[Any]] = {}
        self.cwd: str | None = None
        self.look: Look | None = None
        self.background: set[str] = set()
        """The calls whose sub-agent goes on after the call, and after the turn."""
        self.agents: dict[str, str] = {}
        """The call of each sub-agent that was told of by its id."""

    def get(self, call_id: str) -> Call | None:
        return self._open.get(call_id)

    def has_ended(self, call_id: str) -> bool:
        return call_id in self._ended

    # -- announcements --

    def streamed(self, event: dict[str, Any], parent: str | None) -> None:
        """An event of the API's stream: a call whose input is long is announced while it grows."""
        kind, index = event.get("type"), event.get("index")
        place = (parent, index if isinstance(index, (int, str)) else None)
        if kind == "content_block_start":
            block = mapping(event.get("content_block"))
            named = text(block.get("id")), text(block.get("name"))
            self._growing.pop(place, None)
            if block.get("type") == "tool_use" and all(named):
                self._growing[place] = [*named, 0]
        elif kind == "content_block_delta" and place in self._growing:
            growing = self._growing[place]
            growing[2] += len(text(mapping(event.get("delta")).get("partial_json")))
            if growing[2] > LONG_INPUT:
                del self._growing[place]
                self._announce(growing[0], growing[1], parent, None)
        elif kind in ("content_block_stop", "message_start"):
            self._growing.pop(place, None)

    def use(self, call_id: str, name: str, given: Any, parent: str | None, agent: str | None = None) -> Call | None:
        """The model calls a tool with this input. None for a call that has ended already."""
        if call_id in self._ended:
            return None
        call = self._open.get(call_id)
        if call is None:
            return self._announce(call_id, name, parent, given, agent)
        if not call.complete:
            call.complete, call.given = True, mapping(given)
            fields = call.described(self.cwd, self.look)
            self._outbox.update("tool_call_update", call.meta(), toolCallId=call.id, **fields)
        return call

    def _announce(self, call_id: str, name: str, parent: str | None, given: Any, agent: str | None = None) -> Call:
        call = self._open[call_id] = Call(call_id, name, parent, agent)
        call.complete, call.given = given is not None, mapping(given)
        fields = call.described(self.cwd, self.look)
        if not call.complete:
            del fields["rawInput"]
        self._outbox.update("tool_call", call.meta(), toolCallId=call_id, status="pending", **fields)
        return call

    # -- progress --

    def run(self, call_id: str, **meta: Any) -> bool:
        """The tool runs, or tells how far it is. False for a call that is not open."""
        call = self._open.get(call_id)
        if call is None:
            return False
        if meta or not call.running:
            call.running = True
            self._outbox.update("tool_call_update", call.meta(**meta), toolCallId=call_id, status="in_progress")
        return True

    # -- ends --

    def end(self, call_id: str, status: str, fields: dict[str, Any], meta: dict[str, Any]) -> None:
        """A call ended. One that was never announced is announced with its end; one that ended stays so."""
        call = self._open.pop(call_id, None)
        if call is None and call_id in self._ended:
            return
        self._ended[call_id] = None
        if len(self._ended) > REMEMBERED:
            del self._ended[next(iter(self._ended))]
        if call is None:
            told: dict[str, Any] = {"title": "Tool", "kind": "other", "status": status, **fields}
            self._outbox.update("tool_call", meta, toolCallId=call_id, **told)
            return
        self._outbox.update("tool_call_update", call.meta(**meta), toolCallId=call_id, status=status, **fields)

    def close(self, reason: str, *, everything: bool = False) -> None:
        """The turn is over: end what is open, except what runs in the background.

        The CLI tells the end of nearly every call; what it leaves open would stay so for ever.
        """
        if everything:
            self.background.clear()
            self.agents.clear()
        for call in list(self._open.values()):
            if not self.in_background(call):
                self._fail(call, reason)
        self._growing.clear()

    def close_children(self, parent: str, reason: str) -> None:
        """A sub-agent in the background has ended."""
        for call in list(self._open.values()):
            if call.parent == parent:
                self._fail(call, reason)

    def _fail(self, call: Call, reason: str) -> None:
        content = [{"type": "content", "content": {"type": "text", "text": reason}}]
        self.end(call.id, "failed", {"content": content}, {"unfinished": True})

    def in_background(self, call: Call | None) -> bool:
        """Whether a call is of a sub-agent that goes on, or of one that such a one has started."""
        seen: set[str] = set()
        while call is not None and call.parent is not None and call.parent not in seen:
            if call.parent in self.background:
                return True
            seen.add(call.parent)
            call = self._open.get(call.parent)
        return False
