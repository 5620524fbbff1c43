"""Tool calls from their announcement to their end, with their titles and locations.

A call is announced once, with its input and, for a change to a file, the change; it ends once, with its result or with
the turn. Any line about an unknown call announces it: a permission request for a call that the client does not know
could not be shown. Some gateways reuse the ids of calls from one message to the next; to the client each is a call of
its own, under an id of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from zlib import crc32

import msgspec

from ...model.loose_json import count, items, mapping, shortened, text
from ...model.tools import acp_kind
from .actions import Outbox
from .diffs import Look, proposed

TITLE = 160
"""Characters of a title; the input has everything."""

_PATHS = ("file_path", "notebook_path", "path")


def title_of(name: str, given: dict[str, Any], cwd: str | None = None) -> str:
    """One line for people. A tool that is not known is called by its name."""
    make = _TITLES.get(name)
    said = make(given, cwd or "") if make is not None else _other(name)
    return shortened(said, TITLE) or name


def locations_of(given: dict[str, Any], line: int | None = None) -> list[dict[str, Any]] | None:
    """The file that the tool works on, and the line if one is known."""
    path = next((text(given.get(key)) for key in _PATHS if text(given.get(key))), "")
    if not path:
        return None
    if line is None:
        line = count(given.get("offset"))
    return [{"path": path} if line is None else {"path": path, "line": line}]


def _near(path: str, cwd: str) -> str:
    """A path as people know it who know where they are."""
    root = cwd.rstrip("/") + "/"
    return path[len(root) :] if cwd and path.startswith(root) and len(path) > len(root) else path


def _file(verb: str, key: str = "file_path") -> Callable[[dict[str, Any], str], str]:
    return lambda given, cwd: f"{verb} {_near(text(given.get(key)), cwd)}".strip()


def _read(given: dict[str, Any], cwd: str) -> str:
    first, limit = count(given.get("offset")), count(given.get("limit"))
    said = _file("Read")(given, cwd)
    if first is None and limit is None:
        return said
    first = first or 1
    return f"{said} ({first}–{first + limit - 1})" if limit else f"{said} (from line {first})"


def _command(given: dict[str, Any], cwd: str) -> str:
    return text(given.get("command")) or "Run a command"


def _glob(given: dict[str, Any], cwd: str) -> str:
    return _within(f"Find {text(given.get('pattern'))}", given, cwd)


def _grep(given: dict[str, Any], cwd: str) -> str:
    return _within(f"Search for {text(given.get('pattern'))}", given, cwd)


def _within(said: str, given: dict[str, Any], cwd: str) -> str:
    path = text(given.get("path"))
    return f"{said} in {_near(path, cwd)}" if path and path != cwd else said


def _task(given: dict[str, Any], cwd: str) -> str:
    return text(given.get("description")) or "Sub-agent"


def _question(given: dict[str, Any], cwd: str) -> str:
    asked = [text(mapping(item).get("question")) for item in items(given.get("questions"))]
    asked = [one for one in asked if one]
    more = f" (and {len(asked) - 1} more)" if len(asked) > 1 else ""
    return f"{asked[0]}{more}" if asked else "A question"


def _todo(given: dict[str, Any], cwd: str) -> str:
    subject = text(given.get("subject"))
    return f"Add to the plan: {subject}" if subject else "Update the plan"


def _other(name: str) -> str:
    """A tool of an MCP server says whose it is: `mcp__calc__add` is `add (calc)`."""
    prefix, _, rest = name.partition("__")
    server, _, tool = rest.partition("__")
    return f"{tool} ({server})" if prefix == "mcp" and tool else name


_TITLES: dict[str, Callable[[dict[str, Any], str], str]] = {
    "AskUserQuestion": _question,
    "Agent": _task,
    "Bash": _command,
    "BashOutput": lambda given, cwd: "Read the output of a command",
    "Edit": _file("Edit"),
    "EnterPlanMode": lambda given, cwd: "Start planning",
    "ExitPlanMode": lambda given, cwd: "Approve the plan",
    "Glob": _glob,
    "Grep": _grep,
    "KillShell": lambda given, cwd: "Stop a command",
    "LS": _file("List", "path"),
    "MultiEdit": _file("Edit"),
    "NotebookEdit": _file("Edit", "notebook_path"),
    "NotebookRead": _file("Read", "notebook_path"),
    "Read": _read,
    "Skill": lambda given, cwd: f"Skill {text(given.get('skill')) or text(given.get('command'))}".strip(),
    "Task": _task,
    "TaskCreate": _todo,
    "TaskGet": lambda given, cwd: "Read the plan",
    "TaskList": lambda given, cwd: "Read the plan",
    "TaskUpdate": _todo,
    "TodoWrite": _todo,
    "ToolSearch": lambda given, cwd: f"Look for tools: {text(given.get('query'))}".rstrip(": "),
    "WebFetch": lambda given, cwd: f"Fetch {text(given.get('url'))}".strip(),
    "WebSearch": lambda given, cwd: f"Search the web for {text(given.get('query'))}".strip(),
    "Write": _file("Write"),
}


AGENTS = frozenset({"Agent", "Task"})
"""The tools that start a sub-agent."""

PLANNING = frozenset({"TodoWrite", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet"})
"""The tools that keep the agent's list of things to do: they do nothing else, so they count as thinking."""

LONG_INPUT = 1000
"""Characters of input after which a call is announced before its input is complete: writing a large file takes the
model a minute, and nothing else would tell that it works."""

_encode = msgspec.json.Encoder().encode

REMEMBERED = 2000
"""Calls that ended and are still known, so that what is said of them again is not taken for another call."""


class Origin(NamedTuple):
    """Where a call was made: the message of the model, and a checksum of the input. The same again is the same call."""

    message: str | None
    input: int


def origin_of(message_id: str | None, given: Any) -> Origin:
    return Origin(message_id, crc32(_encode(given)))


class Call:
    """A call that has not ended. `parent` is the call of the sub-agent that makes it.

    `id` is what the CLI calls it, `shown` what the client does; `origin` is where the model made it.
    """

    __slots__ = ("agent", "complete", "given", "id", "name", "origin", "parent", "running", "shown", "uses")

    def __init__(self, call_id: str, name: str, parent: str | None, agent: str | None = None, uses: int = 1) -> None:
        self.id = call_id
        self.uses = uses
        self.shown = call_id if uses == 1 else f"{call_id}#{uses}"
        self.origin: Origin | None = None
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
        kind = "think" if self.name in PLANNING else acp_kind(self.name)
        fields: dict[str, Any] = {"title": title_of(self.name, self.given, cwd), "kind": kind}
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


class Past(NamedTuple):
    """A call that ended: where it was made, how often its id was used, whether it was told before its end."""

    origin: Origin | None
    uses: int
    is_announced: bool


class Calls:
    """The calls of a session."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._open: dict[str, Call] = {}
        self._ended: dict[str, Past] = {}
        self._growing: dict[tuple[str | None, Any], list[Any]] = {}
        self.cwd: str | None = None
        self.look: Look | None = None
        self.background: set[str] = set()
        """The calls whose sub-agent goes on after the call, and after the turn."""
        self.agents: dict[str, str] = {}
        """The call of each sub-agent that was told of by its id."""

    @property
    def any_open(self) -> bool:
        return bool(self._open)

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
                if growing[0] not in self._open:  # as it is when a call of the API broke off and is made again
                    self._announce(growing[0], growing[1], parent, None)
        elif kind in ("content_block_stop", "message_start"):
            self._growing.pop(place, None)

    def use(
        self,
        call_id: str,
        name: str,
        given: Any,
        parent: str | None,
        agent: str | None = None,
        origin: Origin | None = None,
    ) -> Call | None:
        """A tool is called with this input; by the model, if it is known where. None for a call that has ended."""
        past = self._ended.get(call_id)
        if past is not None and not past.is_announced:
            self._describe(Call(call_id, name, parent, agent, past.uses), given, origin)
            return None
        if past is not None and (origin is None or past.origin in (None, origin)):
            self._ended[call_id] = past._replace(origin=past.origin or origin)
            return None
        call = self._open.get(call_id)
        if call is None:
            call = self._announce(call_id, name, parent, given, agent)
        elif not call.complete:
            call.complete, call.given = True, mapping(given)
            fields = call.described(self.cwd, self.look)
            self._outbox.update("tool_call_update", call.meta(), toolCallId=call.shown, **fields)
        call.origin = call.origin or origin
        return call

    def _announce(self, call_id: str, name: str, parent: str | None, given: Any, agent: str | None = None) -> Call:
        past = self._ended.pop(call_id, None)
        call = self._open[call_id] = Call(call_id, name, parent, agent, past.uses + 1 if past is not None else 1)
        call.complete, call.given = given is not None, mapping(given)
        fields = call.described(self.cwd, self.look)
        if not call.complete:
            del fields["rawInput"]
        self._outbox.update("tool_call", call.meta(), toolCallId=call.shown, status="pending", **fields)
        return call

    def _describe(self, call: Call, given: Any, origin: Origin | None) -> None:
        """A call whose result came before it: what it was can still be told, what came of it stays."""
        call.given = mapping(given)
        fields = {key: told for key, told in call.described(self.cwd).items() if key != "content"}
        self._ended[call.id] = Past(origin, call.uses, is_announced=True)
        self._outbox.update("tool_call_update", call.meta(), toolCallId=call.shown, **fields)

    # -- progress --

    def run(self, call_id: str, **meta: Any) -> bool:
        """The tool runs, or tells how far it is. False for a call that is not open."""
        call = self._open.get(call_id)
        if call is None:
            return False
        if meta or not call.running:
            call.running = True
            self._outbox.update("tool_call_update", call.meta(**meta), toolCallId=call.shown, status="in_progress")
        return True

    # -- ends --

    def end(self, call_id: str, status: str, fields: dict[str, Any], meta: dict[str, Any]) -> None:
        """A call ended. One that was never announced is announced with its end; one that ended stays so."""
        call = self._open.pop(call_id, None)
        if call is None and call_id in self._ended:
            return
        self._ended[call_id] = (
            Past(call.origin, call.uses, is_announced=True) if call else Past(None, 1, is_announced=False)
        )
        if len(self._ended) > REMEMBERED:
            del self._ended[next(iter(self._ended))]
        if call is None:
            told: dict[str, Any] = {"title": "Tool", "kind": "other", "status": status, **fields}
            self._outbox.update("tool_call", meta, toolCallId=call_id, **told)
            return
        self._outbox.update("tool_call_update", call.meta(**meta), toolCallId=call.shown, status=status, **fields)

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
        """A sub-agent has ended, and with it those that it has started."""
        for call in list(self._open.values()):
            if call.parent == parent and call.id in self._open:
                self._fail(call, reason)
                self.close_children(call.id, reason)

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
