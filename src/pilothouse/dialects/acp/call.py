"""One tool call: what its agent has said of it so far, and what can be read from that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...acp import schema
from ...acp.model import encode, to_wire
from ...model.errors import ACPError
from ...model.tools import command_text, identify

__all__ = [
    "ENDED",
    "OWN",
    "Call",
    "as_input",
    "failure",
    "is_new",
    "judged_input",
    "known_input",
    "locations",
    "parent_of",
    "sub_agent",
    "terminal_piece",
]

ENDED = {"completed", "failed"}
OWN = ("raw_input", "title", "content", "status", "name", "category", "kind")
"""What a call knows of itself better than a question about it does."""


class Call:
    """What is known of one tool call."""

    __slots__ = (
        "approval", "args", "category", "content", "ended", "executing", "id", "input", "kind", "locations", "mark",
        "meta", "name", "output", "parent", "questions", "raw_input", "raw_output", "rejected", "since", "spawned",
        "status", "title",
    )  # fmt: skip

    def __init__(self, call_id: str, now: str) -> None:
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
        self.output = ""
        self.parent: str | None = None
        self.since = now
        self.executing = self.ended = self.rejected = self.spawned = self.approval = False
        self.questions: list[str] = []
        self.mark = 0

    def end(self) -> None:
        """Keep only what tells this call from another with the same id: sessions are long and outputs are large."""
        self.ended = True
        self.mark = _mark(self.raw_input)
        self.raw_input = self.raw_output = None
        self.input, self.content, self.args, self.output = {}, [], "", ""

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
        if said or identity.how in ("meta", "name", "input") or not self.name:
            self.name, self.category = identity.name, identity.category
        if self.kind == "other":
            self.kind = identity.kind
        self.parent = parent_of(self.meta) or self.parent
        if "raw_input" in changed:
            self.input = as_input(self.raw_input)
        return changed


def parent_of(meta: Mapping[str, Any]) -> str | None:
    """The call that a sub-agent's call runs inside of."""
    claude = meta.get("claudeCode")
    parent = claude.get("parentToolUseId") if isinstance(claude, Mapping) else meta.get("parentToolCallId")
    return parent if isinstance(parent, str) else None


def as_input(raw: Any) -> dict[str, Any]:
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


def judged_input(call: Call, known: dict[str, Any]) -> dict[str, Any]:
    """The input as far as its risk goes: a command that is told only by the title is judged by the title.

    A title may be shortened or dressed up, so it is never taken for the input itself, which rules are matched on.
    """
    if call.category == "terminal" and command_text(known) is None and call.title:
        return {**known, "command": call.title}
    return known


def is_new(call: Call, update: Any) -> bool:
    """Whether a `tool_call` with the id of a call that ended is another call, and not the same one told again."""
    if update.status not in ENDED:
        return True
    return (update.title, _mark(update.raw_input)) != (call.title, call.mark)


def _mark(raw_input: Any) -> int:
    return hash(encode(raw_input))


def sub_agent(call: Call) -> str:
    session = call.meta.get("subagentSessionId")
    return session if isinstance(session, str) else call.id


def locations(call: Call) -> list[dict[str, Any]] | None:
    return to_wire(call.locations) if call.locations else None


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


def failure(call: Call, output: str, code: int | None) -> ACPError:
    if call.status == "failed":
        name = "rejected" if call.rejected else "tool_failed"
        details = {"exitCode": code} if code is not None else None
        return ACPError(code=name, message=output or "The tool failed.", recoverable=True, details=details)
    # the agent calls it completed, yet the command says otherwise
    message = f"The command ended with exit code {code}."
    return ACPError(code="exit_code", message=message, recoverable=True, details={"exitCode": code})
