"""What a record tells, as the updates that a live agent would have sent: words, notices, and tool calls.

A tool call is announced once and ends once, however often its record speaks of it: that is the rule here, and the
translations of all formats that have no translator of their own lean on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...model.loose_json import mapping, shortened
from ...model.patches import FilePatch, parse_patch
from ...model.tools import acp_kind, canonical_name, command_text, describe_tool_call, file_paths, todos_of
from .store import Update

TITLE = 160
REMEMBERED = 20_000
"""Calls that ended and are still known: some records repeat all of a session's calls."""

_ENTRY = ("content", "priority", "status")

Json = dict[str, Any]


# -- words --------------------------------------------------------------------------------------------------------


def text_block(words: str) -> Json:
    return {"type": "text", "text": words}


def text_content(words: str) -> list[Json]:
    """The content of a call that is text; nothing for no text."""
    return [{"type": "content", "content": text_block(words)}] if words else []


def image(url: str) -> Json | None:
    """The block of a picture that is in its own address; None for an address that leads elsewhere."""
    head, _, data = url.partition(",")
    if not head.startswith("data:") or not head.endswith(";base64") or not data:
        return None
    return {"type": "image", "mimeType": head[5:-7] or "image/png", "data": data}


def said(who: str, block: Json | str, message_id: str = "") -> Update:
    """A piece of a message: `who` is `user`, or `agent`."""
    content = text_block(block) if isinstance(block, str) else block
    named = {"messageId": message_id} if message_id else {}
    return {"sessionUpdate": f"{who}_message_chunk", **named, "content": content}


def thought(words: str, message_id: str = "") -> Update:
    named = {"messageId": message_id} if message_id else {}
    return {"sessionUpdate": "agent_thought_chunk", **named, "content": text_block(words)}


def notice(severity: str, title: str, words: str = "") -> Update:
    more = {"description": words} if words else {}
    return {"sessionUpdate": "notice", "severity": severity, "title": title, **more}


def plan(given: Any) -> Update | None:
    """The plan in the input of a tool that keeps one; None when there is none in it."""
    todos = todos_of(given)
    if not todos:
        return None
    entries = [{"priority": "medium", **{key: todo[key] for key in _ENTRY if key in todo}} for todo in todos]
    return {"sessionUpdate": "plan", "entries": entries}


class Growing:
    """Texts that are written again when they have grown. Of each only its length and a mark are kept."""

    def __init__(self) -> None:
        self._told: dict[str, tuple[int, int]] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._told

    def more(self, key: str, words: str) -> tuple[str, bool]:
        """What a text has more than was told of it, and whether it goes on with that.

        One that became another is told anew; one that lost its end, which is white space, has nothing more.
        """
        length, mark = self._told.get(key, (0, hash("")))
        if len(words) <= length:
            return "", True
        self._told[key] = (len(words), hash(words))
        goes_on = hash(words[:length]) == mark
        return (words[length:] if goes_on else words), goes_on

    def know(self, key: str) -> None:
        """A text is not to be told as long as it stays as it is."""
        self._told.setdefault(key, (0, hash("")))


# -- changes ------------------------------------------------------------------------------------------------------


def diff(path: str, old: str | None, new: str, kind: str = "") -> Json:
    more = {"_meta": {"kind": kind}} if kind else {}
    return {"type": "diff", "path": path, "oldText": old, "newText": new, **more}


def patch_diffs(patch: str) -> list[Json]:
    """The changes in a patch, passage by passage: a patch does not have the whole of a file."""
    return [change for file in parse_patch(patch).files for change in _passages(file)]


def _passages(file: FilePatch) -> Iterator[Json]:
    if file.kind == "delete":
        yield diff(file.path, None, "", "delete")
    for hunk in file.hunks:
        old = [line for mark, line in hunk.lines if mark in " -"]
        new = [line for mark, line in hunk.lines if mark in " +"]
        before = "\n".join([*old, ""]) if old else None
        yield diff(file.move_to or file.path, before, "\n".join([*new, ""]), file.kind)


# -- calls --------------------------------------------------------------------------------------------------------


def described(name: str, given: Any) -> Json:
    """What the input of a call tells of it, in the protocol's fields."""
    is_command = canonical_name(name) == "Bash"
    title = (command_text(given) or "") if is_command else describe_tool_call(name, given)
    fields: Json = {"title": shortened(title, TITLE) or name, "kind": acp_kind(name)}
    where = [{"path": path} for path in file_paths(given)] if not is_command and given else []
    if where:
        fields["locations"] = where
    if given:
        fields["rawInput"] = given
    return fields


class Calls:
    """The calls of one session."""

    def __init__(self) -> None:
        self._open: dict[str, None] = {}
        self._ended: dict[str, None] = {}

    def is_open(self, call_id: str) -> bool:
        return call_id in self._open

    def is_known(self, call_id: str) -> bool:
        return call_id in self._open or call_id in self._ended

    def begin(self, call_id: str, name: str, given: Any, **fields: Any) -> Iterator[Update]:
        """A call, unless it is known."""
        if self.is_known(call_id):
            return
        self._open[call_id] = None
        yield _announced(call_id, name, {"status": "in_progress", **described(name, given), **fields})

    def go_on(self, call_id: str, **fields: Any) -> Iterator[Update]:
        """More of a call that has not ended."""
        if call_id in self._open:
            yield {"sessionUpdate": "tool_call_update", "toolCallId": call_id, **fields}

    def end(self, call_id: str, name: str, *, failed: bool = False, **fields: Any) -> Iterator[Update]:
        """The end of a call that has not ended. One that was not announced is announced by it."""
        if call_id in self._ended:
            return
        status = "failed" if failed else "completed"
        kept = {key: value for key, value in fields.items() if value not in (None, [], {}, "")}
        if call_id in self._open:
            del self._open[call_id]
            yield {"sessionUpdate": "tool_call_update", "toolCallId": call_id, "status": status, **kept}
        else:
            yield _announced(call_id, name or "tool", {**described(name or "tool", None), "status": status, **kept})
        self._ended[call_id] = None
        if len(self._ended) > REMEMBERED:
            del self._ended[next(iter(self._ended))]

    def close(self, words: str) -> Iterator[Update]:
        """Nobody will tell how the open calls end."""
        for call_id in [*self._open]:
            yield from self.end(call_id, "", failed=True, content=text_content(words))


def _announced(call_id: str, name: str, fields: Json) -> Update:
    return {"sessionUpdate": "tool_call", "toolCallId": call_id, "name": name, **fields}


def blocks_text(blocks: Sequence[Any]) -> str:
    """The text of blocks that have some."""
    words = (mapping(block).get("text") for block in blocks)
    return "\n".join(each for each in words if isinstance(each, str))
