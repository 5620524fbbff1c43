"""One tool call: what its agent has said of it so far, and what can be read from that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...acp import schema
from ...acp.model import encode, to_wire
from ...model.acts import command_from_text
from ...model.errors import ACPError
from ...model.session import Text
from ...model.tools import canonical_name, command_text, identify
from ...model.tools.commands import parse_json_input

ENDED = {"completed", "failed"}
OPEN = {"pending", "in_progress"}
MOST_NAMES = 4
"""Names of a call that are kept besides its last one; some agents name a tool by titles that they change."""
_OWN = ("raw_input", "title", "content", "status")
_UNKNOWN: tuple[Any, ...] = (None, {}, "", [])
_FILES = {"file_write", "file_edit"}
_ACTING = {"edit", "delete", "move", "execute"}


class Call:
    """The known state of one tool call. It may continue an ended call of the same id that showed other effects."""

    __slots__ = (
        "approval", "args", "category", "content", "diff_mark", "ended", "executing", "id", "input", "is_continued",
        "kind", "level_by_title", "locations", "mark", "meta", "name", "names", "parent", "printed", "question_count",
        "question_items", "questions", "raw_input", "raw_output", "rejected", "risk_level", "shown", "since", "spawned",
        "status", "sub_agent", "terminals", "title", "turn", "unfinished",
    )  # fmt: skip

    def __init__(self, call_id: str, now: str, continued: Call | None = None) -> None:
        self.id = call_id
        self.name = self.title = ""
        self.category = self.kind = "other"
        self.status = "pending"
        self.raw_input: Any = None
        self.raw_output: Any = None
        self.content: list[Any] = []
        self.locations: list[Any] | None = None
        self.meta: dict[str, Any] = {}
        self.input: dict[str, Any] = {}
        self.args = ""
        self.printed = Text()
        self.shown = ""
        self.sub_agent = call_id
        self.parent: str | None = None
        self.since = now
        self.executing = self.ended = self.rejected = self.spawned = self.approval = self.unfinished = False
        self.questions: list[str] = []
        self.question_items: list[Any] = []
        self.question_count = 0
        self.terminals: list[str] = []
        self.mark = self.diff_mark = self.turn = 0
        self.risk_level = self.level_by_title = "low"
        self.names: tuple[str, ...] = ()
        self.is_continued = continued is not None
        if continued is not None:
            for name in ("title", "name", "category", "kind", "status", "parent"):
                setattr(self, name, getattr(continued, name))

    def end(self, turn: int, *, unfinished: bool = False) -> None:
        """Keep only what distinguishes this call from another with the same id: sessions are long, outputs are large.

        A call that its agent left open (`unfinished`) keeps its input: the result may still come.
        """
        self.ended, self.unfinished, self.turn = True, unfinished, turn
        self.mark, self.diff_mark = _mark(self.raw_input), _mark(diffs_in(self.content))
        if not unfinished:
            self.raw_input, self.input = None, {}
        self.raw_output, self.locations, self.meta = None, None, {}
        self.content, self.args, self.shown, self.printed, self.terminals = [], "", "", Text(), []

    def reopen(self) -> None:
        """Its end comes after all."""
        self.ended = self.unfinished = False

    def learn(self, asked: Any) -> None:
        """Take over from a question about the call what it does not know of itself."""
        known = {name: getattr(self, name) for name in _OWN}
        named = (self.name, self.category, self.kind) if self.category != "other" else None
        self.merge(asked)
        for name, value in known.items():
            if value not in _UNKNOWN:
                setattr(self, name, value)
        if named is not None:
            self.name, self.category, self.kind = named
        self.input = as_input(self.raw_input)

    def merge(self, update: Any) -> set[str]:
        """Take over what an update says; the names of what it changed."""
        changed = set()
        for name in ("title", "kind", "status", "content", "locations", "raw_input", "raw_output"):
            value = getattr(update, name, None)
            if value is not None and value != getattr(self, name):
                setattr(self, name, value)
                changed.add(name)
        meta = getattr(update, "field_meta", None)
        if isinstance(meta, dict) and meta:
            # agents that tell of several things in `_meta` send one at a time
            self.meta = {**self.meta, **meta}
        said = getattr(update, "name", None)
        identity = identify(
            meta=self.meta,
            name=said or (self.name if not changed & {"raw_input", "kind", "title"} else None),
            raw_input=self.raw_input,
            kind=self.kind,
            title=self.title,
            tool_call_id=self.id,
        )
        if said or identity.how in ("meta", "name", "input") or self.category == "other":
            self.name, self.category = identity.name, identity.category
        if self.name not in self.names:
            self.names = (*self.names[:MOST_NAMES], self.name)
        if self.kind == "other":
            self.kind = identity.kind
        self.parent = parent_of(self.meta) or self.parent
        session = self.meta.get("subagentSessionId")
        self.sub_agent = session if isinstance(session, str) else self.id
        if "raw_input" in changed:
            self.input = as_input(self.raw_input)
        return changed


def parent_of(meta: Mapping[str, Any]) -> str | None:
    """The call that a sub-agent's call runs inside of: as Claude Code, as the built-in agents, or as others say it."""
    claude, ours = (
        told if isinstance(told := meta.get(name), Mapping) else {} for name in ("claudeCode", "pilothouse")
    )
    parent = claude.get("parentToolUseId") or ours.get("parentToolCallId") or meta.get("parentToolCallId")
    return parent if isinstance(parent, str) else None


def as_input(raw: Any) -> dict[str, Any]:
    """The input as an object; some agents send it as JSON in a string."""
    parsed = parse_json_input(raw)
    raw = raw if parsed is None else parsed
    if isinstance(raw, dict):
        return raw
    return {} if raw is None else {"value": raw}


def known_input(call: Call) -> dict[str, Any]:
    """The input, or, for agents that send none, what the diffs and locations say of it."""
    if call.input:
        return call.input
    paths = [item.path for item in call.content if isinstance(item, schema.FileEditToolCallContent)]
    paths = list(dict.fromkeys(paths or [item.path for item in call.locations or []]))
    if not paths or call.category not in ("file_read", "file_write", "file_edit"):
        return {}
    return {"file_path": paths[0]} if len(paths) == 1 else {"paths": paths}


def asked_view(call: Call, asked: Any) -> Call:
    """The call as a question shows it: what the question says counts, and the call fills in the rest."""
    view = Call(call.id, call.since)
    for name in ("title", "kind", "content", "locations", "raw_input", "meta", "name", "category"):
        setattr(view, name, getattr(call, name))
    view.merge(asked)
    view.status = "pending"
    if view.category == "other" or {view.category, call.category} <= _FILES:
        view.name, view.category = call.name, call.category
    view.input = _both(call.input, as_input(view.raw_input))
    return view


def _both(announced: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
    """The input of a call and of a question about it; two commands that differ are both in it, one after the other."""
    one, other = command_text(announced), command_text(asked)
    if one is not None and other is not None and command_from_text(one) != command_from_text(other):
        return {**announced, **asked, "command": f"{one}\n{other}"}
    return {**announced, **asked}


def is_new(call: Call, update: Any, *, announced: bool, is_same_turn: bool) -> bool:
    """Whether an update with the id of a call that ended is about another call, not about the same one again.

    In a later turn an id stands for another call, unless the first one was left open and this is its late end.
    """
    if update.status in OPEN:
        return True
    if not is_same_turn and not call.unfinished:
        describes = (update.title, update.kind, update.raw_input, update.content)
        return announced or (update.status in ENDED and any(value not in _UNKNOWN for value in describes))
    if not announced:
        return False
    if update.status is None:
        return True
    return (update.title, _mark(update.raw_input)) != (call.title, call.mark)


def brings_other_effects(call: Call, update: Any) -> bool:
    """Whether an update of a call that ended shows an input, a diff, a kind or a tool that the call did not have."""
    raw_input, diffs, kind = update.raw_input, diffs_in(update.content or []), update.kind
    name = getattr(update, "name", None)
    return (
        (raw_input not in _UNKNOWN and _mark(raw_input) != call.mark)
        or (bool(diffs) and _mark(diffs) != call.diff_mark)
        or (kind in _ACTING and kind != call.kind)
        or (isinstance(name, str) and "__" in name and canonical_name(name) != call.name)
    )


def diffs_in(content: list[Any]) -> list[Any]:
    """The diffs in the content of a call."""
    return [item for item in content if isinstance(item, schema.FileEditToolCallContent)]


def _mark(value: Any) -> int:
    return hash(encode(value))


def locations(call: Call) -> list[dict[str, Any]] | None:
    return to_wire(call.locations) if call.locations else None


def named_terminals(call: Call) -> list[str]:
    """The terminals that the content of a call shows."""
    return [item.terminal_id for item in call.content if isinstance(item, schema.TerminalToolCallContent)]


def terminal_piece(update: Any) -> str | None:
    """Terminal output that some agents send in `_meta`, a piece at a time."""
    meta = getattr(update, "field_meta", None)
    if not isinstance(meta, dict):
        return None
    for key in ("terminal_output_delta", "terminal_output"):
        value = meta.get(key)
        data = value.get("data") if isinstance(value, dict) else None
        if isinstance(data, str):
            return data
    return None


def failure(call: Call, output: str, code: int | None, signal: str | None = None) -> ACPError:
    if call.status == "failed":
        name = "rejected" if call.rejected else "tool_failed"
        told = {"exitCode": code, "signal": signal}
        details = {key: value for key, value in told.items() if value is not None} or None
        silent = f"The command was ended by {signal}." if signal is not None else "The tool failed."
        return ACPError(code=name, message=output or silent, recoverable=True, details=details)
    # the agent calls it completed, yet the command says otherwise
    message = f"The command ended with exit code {code}."
    return ACPError(code="exit_code", message=message, recoverable=True, details={"exitCode": code})
