"""The messages of OpenCode and their parts as updates, whichever storage they are in.

OpenCode writes a part again whenever it changes: a text that grew, a tool that runs now, one that ended. So everything
here compares with what was told of a part before and tells the difference; to be given a part again is no harm, and
storages need not know exactly what is new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...model.discovery import DiscoveredStatus
from ...model.loose_json import count, mapping, number, text
from ...model.tools import canonical_name
from .calls import Calls, Growing, described, diff, image, notice, patch_diffs, plan, said, text_content, thought
from .store import Update

Json = dict[str, Any]

REJECTED = "The user rejected permission"
_ASKING = {"question", "plan_exit"}
"""Tools that are done when the user has answered."""
_ABORTED = "MessageAbortedError"
_CLOSED = "The message ended before the record told how the tool call ended."


def model_of(data: Json) -> str:
    """The model of a message, or of a session, as its provider calls it."""
    told = mapping(data.get("model")) or data
    provider = text(told.get("providerID"))
    name = text(told.get("modelID")) or (text(told.get("id")) if provider else "")  # else it is that of a message
    return f"{provider}/{name}" if provider and name else name


def shown_text(part: Json) -> str:
    """The words of a text that is somebody's own."""
    is_shown = part.get("type") == "text" and not part.get("synthetic") and not part.get("ignored")
    return text(part.get("text")) if is_shown else ""


def status_of(message: Json, parts: list[Json]) -> DiscoveredStatus:
    """What the agent does, by the last message of a session and its parts."""
    if message.get("role") != "assistant":
        return "running"
    states = [(text(part.get("tool")), mapping(part.get("state"))) for part in parts if part.get("type") == "tool"]
    if mapping(message.get("time")).get("completed") is None and not message.get("error"):
        return "waiting" if any(_is_asked(tool, state) for tool, state in states) else "running"
    if message.get("finish") != "tool-calls" or message.get("error"):
        return "idle"
    # after its calls the agent goes on at once, unless the user has said no to one of them
    return "idle" if any(text(state.get("error")).startswith(REJECTED) for _, state in states) else "running"


def _is_asked(tool: str, state: Json) -> bool:
    """Whether the user is asked: a command has a place for its output as soon as it may run."""
    if state.get("status") != "running":
        return False
    return tool in _ASKING or (tool == "bash" and "metadata" not in state)


class Conversation:
    """What was told of one session."""

    def __init__(self, window: Callable[[str], int] = lambda model: 0) -> None:
        self._window = window
        self._cost = 0.0
        self._calls = Calls()
        self._texts = Growing()
        self._outputs: dict[str, int] = {}
        self._tools: dict[str, int] = {}
        self._done: set[str] = set()
        self._last = self._answer = ("", "")
        self._last_message: Json = {}
        self._last_parts: dict[str, Json] = {}

    @property
    def status(self) -> DiscoveredStatus:
        return status_of(self._last_message, [*self._last_parts.values()]) if self._last_message else "idle"

    def take(self, message_id: str, message: Json, parts: list[tuple[str, Json]]) -> Iterator[Update]:
        """A message, new or changed, and those of its parts that are new or may have changed, in order."""
        if message.get("role") not in ("user", "assistant"):
            return  # one that could not be read: whose words these are is not known
        order = (str(count(mapping(message.get("time")).get("created")) or 0).zfill(16), message_id)
        if order >= self._last:
            if order != self._last:
                self._last_parts = {}
            self._last, self._last_message = order, message
            self._last_parts.update(parts)
        tell = self._answered if message.get("role") == "assistant" else self._asked
        if tell == self._answered and order > self._answer:
            # one answer begins when the one before it is over
            self._answer = order
            yield from self._calls.close(_CLOSED)
        for part_id, part in parts:
            yield from tell(message_id, part_id, part)
        if message.get("role") == "assistant":
            yield from self._ended(message_id, message)

    # -- the user --

    def _asked(self, message_id: str, part_id: str, part: Json) -> Iterator[Update]:
        kind, words = text(part.get("type")), shown_text(part)
        if words:
            yield from self._more("user", message_id, part_id, words)
        elif part_id not in self._done and kind in _GIVEN:
            self._done.add(part_id)
            yield from _GIVEN[kind](message_id, part_id, part)

    # -- the agent --

    def _answered(self, message_id: str, part_id: str, part: Json) -> Iterator[Update]:
        kind = text(part.get("type"))
        if kind == "text":
            yield from self._more("agent", message_id, part_id, shown_text(part))
        elif kind == "reasoning":
            yield from self._more("thought", message_id, part_id, text(part.get("text")))
        elif kind == "tool":
            yield from self._tool(part)
        elif kind == "step-finish" and part_id not in self._done:
            self._done.add(part_id)
            yield from self._used(part)
        elif kind in _TOLD and part_id not in self._done:
            self._done.add(part_id)
            yield from _TOLD[kind](message_id, part_id, part)

    def _more(self, who: str, message_id: str, part_id: str, words: str) -> Iterator[Update]:
        """What a text has more than was told of it. One that became another is told as a message of its own."""
        rest, goes_on = self._texts.more(part_id, words)
        if rest:
            name = message_id if goes_on else part_id
            yield thought(rest, name) if who == "thought" else said(who, rest, name)

    # -- tools --

    def _tool(self, part: Json) -> Iterator[Update]:
        call_id, name = text(part.get("callID")) or text(part.get("id")), text(part.get("tool")) or "tool"
        state = mapping(part.get("state"))
        given = mapping(state.get("input"))
        step = {"pending": 1, "running": 2}.get(text(state.get("status")), 3)
        before = self._tools.get(call_id, 0)
        if canonical_name(name) == "TodoWrite" and given and before < 2 <= step:
            todos = plan(given)
            yield from [todos] if todos is not None else []
        self._tools[call_id] = max(step, before)
        if not before:
            status = "pending" if step == 1 else "in_progress"
            yield from self._calls.begin(call_id, name, given, status=status, **self._changes(name, given, state))
        elif before == 1 and step > 1:
            fields = {**described(name, given), **self._changes(name, given, state)}
            yield from self._calls.go_on(call_id, status="in_progress", **fields)
        if step == 2:
            yield from self._printed(call_id, text(mapping(state.get("metadata")).get("output")))
        elif step == 3:
            yield from self._finished(call_id, name, given, state)

    def _printed(self, call_id: str, output: str) -> Iterator[Update]:
        """The output of a command that runs."""
        if output and self._outputs.get(call_id) != hash(output):
            self._outputs[call_id] = hash(output)
            yield from self._calls.go_on(call_id, content=text_content(output))

    def _finished(self, call_id: str, name: str, given: Json, state: Json) -> Iterator[Update]:
        self._outputs.pop(call_id, None)
        failed = state.get("status") == "error"
        words = text(state.get("error" if failed else "output"))
        raw: Json = {"error": words}
        content = text_content(words)
        if not failed:
            metadata = mapping(state.get("metadata"))
            raw = {"output": words, "metadata": metadata}
            content = self._changes(name, given, state).get("content") or text_content(_shown(words, metadata))
        title = text(state.get("title"))
        yield from self._calls.end(call_id, name, failed=failed, title=title, content=content, rawOutput=raw)

    def _changes(self, name: str, given: Json, state: Json) -> Json:
        make = _CHANGES.get(canonical_name(name))
        found = make(given, mapping(state.get("metadata"))) if make is not None else []
        return {"content": found} if found else {}

    # -- ends --

    def _used(self, part: Json) -> Iterator[Update]:
        """What the model was sent, where it is known how much it could have been, and what all steps have cost."""
        self._cost += number(part.get("cost")) or 0.0
        tokens = mapping(part.get("tokens"))
        cache = mapping(tokens.get("cache"))
        used = sum(count(each) or 0 for each in (tokens.get("input"), cache.get("read"), cache.get("write")))
        size = self._window(model_of(self._last_message))
        if size and used:
            cost = {"cost": {"amount": round(self._cost, 10), "currency": "USD"}} if self._cost else {}
            yield {"sessionUpdate": "usage_update", "used": used, "size": size, **cost}

    def _ended(self, message_id: str, message: Json) -> Iterator[Update]:
        is_over = mapping(message.get("time")).get("completed") is not None or bool(message.get("error"))
        if not is_over or message_id in self._done:
            return
        self._done.add(message_id)
        error = mapping(message.get("error"))
        if error and message_id == self._answer[1]:
            yield from self._calls.close(_CLOSED)
        if error and error.get("name") != _ABORTED:
            words = text(mapping(error.get("data")).get("message")) or text(error.get("name"))
            yield notice("error", "The turn failed", words)


def _shown(words: str, metadata: Json) -> str:
    """The output for people: of a file the text, without what tells the model where it is from."""
    return text(metadata.get("preview")) or text(metadata.get("output")) or words


def _written(given: Json, metadata: Json) -> list[Json]:
    path, new = text(given.get("filePath")), given.get("content")
    return [diff(path, None, new)] if path and isinstance(new, str) else []


def _edited(given: Json, metadata: Json) -> list[Json]:
    path, old, new = text(given.get("filePath")), given.get("oldString"), given.get("newString")
    patch = text(mapping(metadata.get("filediff")).get("patch")) or text(metadata.get("diff"))
    found = patch_diffs(patch) if patch else []
    if found:
        return [{**change, "path": path or change["path"]} for change in found]
    return [diff(path, old or None, new)] if path and isinstance(old, str) and isinstance(new, str) else []


def _patched(given: Json, metadata: Json) -> list[Json]:
    return patch_diffs(text(given.get("patchText")))


_CHANGES: dict[str, Callable[[Json, Json], list[Json]]] = {
    "Write": _written,
    "Edit": _edited,
    "MultiEdit": _edited,
    "apply_patch": _patched,
}


# -- parts that are told once --


def _file(message_id: str, part_id: str, part: Json) -> Iterator[Update]:
    url, name = text(part.get("url")), text(part.get("filename"))
    picture = image(url) if text(part.get("mime")).startswith("image/") else None
    if picture is not None:
        yield said("user", picture, message_id)
    elif url and not url.startswith("data:"):
        yield said("user", {"type": "resource_link", "name": name or url, "uri": url}, message_id)
    elif name:
        yield said("user", name, message_id)


def _subtask(message_id: str, part_id: str, part: Json) -> Iterator[Update]:
    words = text(part.get("prompt")) or text(part.get("description"))
    if words:
        yield said("user", words, message_id)


def _compaction(message_id: str, part_id: str, part: Json) -> Iterator[Update]:
    yield {"sessionUpdate": "compaction_update", "compactionId": part_id, "status": "completed"}


def _retry(message_id: str, part_id: str, part: Json) -> Iterator[Update]:
    error = mapping(part.get("error"))
    words = text(mapping(error.get("data")).get("message")) or text(error.get("name"))
    yield notice("warning", "The model is asked again", words)


Told = Callable[[str, str, Json], Iterator[Update]]
_GIVEN: dict[str, Told] = {"file": _file, "subtask": _subtask, "compaction": _compaction}
_TOLD: dict[str, Told] = {"retry": _retry, "compaction": _compaction}
