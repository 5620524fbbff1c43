"""The lines of a Codex rollout as updates.

Messages and calls are in the `response_item`s, in every version of the format; the events beside them show when a turn
runs, and how a command or a patch ended, in more detail than the output for the model. A call ends with the first of
them. Lines of unknown kinds are ignored. Outputs are written for the model, in a shape that changes from version to
version: with lines about the command before them, as JSON in a string, as a list of blocks. Text, exit code and failure
are read from all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from ...model.discovery import DiscoveredStatus
from ...model.loose_json import count, items, mapping, text
from ...model.titles import without_insertions
from .calls import Calls, diff, image, notice, patch_diffs, plan, said, text_block, text_content, thought
from .files import Translation
from .store import Update, moment

Json = dict[str, Any]

_PUT_IN = re.compile(
    r"<(INSTRUCTIONS|user_shell_command|subagent_notification|subagents|skill|image)\b.*?</\1>", re.DOTALL
)
_FOR_THE_MODEL = ("# AGENTS.md instructions", "<permissions instructions>", "<user_instructions>")
_REQUEST = "## My request for Codex:"
"""What an editor's extension puts between what it tells of itself and the user's own words."""
_SHELLS = re.compile(r"(?:.*/)?(?:ba|z|da|k|fi)?sh")
_EXIT = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d{1,9})$", re.MULTILINE)
_RUNNING = re.compile(r"^Process running with session ID \S+$", re.MULTILINE)
_HEADED = re.compile(
    r"\A(?:(?:Chunk ID|Wall time|Exit code|Original token count|Total output lines): .*\n|Process .*\n)+Output:\n"
)
_FAILED = re.compile(
    r"\A(?:unsupported call|failed to |execution error|exec_command failed|apply_patch verification failed|"
    r"rejected|exec command rejected|err: )|aborted by user\s*\Z",
    re.IGNORECASE,
)


# -- prompts ------------------------------------------------------------------------------------------------------


def prompt_blocks(payload: Json) -> list[Json]:
    """What the user said in a message in the user's name; nothing in one that Codex wrote for the model."""
    told = mapping(payload.get("internal_chat_message_metadata_passthrough"))
    sources = [
        text(mapping(mapping(each).get("provenance")).get("type")) for each in items(told.get("content_item_metadata"))
    ]
    content = [mapping(each) for each in items(payload.get("content"))]
    if len(sources) != len(content):
        sources = [""] * len(content)
    found = (_prompt_block(item, source) for item, source in zip(content, sources, strict=True))
    return [block for block in found if block is not None]


def _prompt_block(item: Json, source: str) -> Json | None:
    if source not in ("", "user"):
        return None
    if item.get("type") == "input_image":
        url = text(item.get("image_url"))
        return image(url) or ({"type": "resource_link", "name": "image", "uri": url} if url else None)
    words = text(item.get("text"))
    if not source and (
        words.lstrip().startswith(_FOR_THE_MODEL) or not without_insertions(_PUT_IN.sub("", words)).strip()
    ):
        return None
    _, is_request, request = words.partition(_REQUEST)
    words = request.strip() if is_request else words
    return text_block(words) if words.strip() else None


# -- outputs ------------------------------------------------------------------------------------------------------


class Output(NamedTuple):
    """The output of a call as the model was given it."""

    words: str
    content: list[Json]
    code: int | None = None
    failed: bool = False
    running: bool = False
    """Whether the command goes on in the background."""


def output_of(value: Any) -> Output:
    if isinstance(value, dict):
        inner = output_of(value.get("content", value.get("output")))
        return inner._replace(failed=inner.failed or value.get("success") is False)
    if isinstance(value, list):
        return _listed(value)
    words = text(value)
    nested = _decoded(words) if words.startswith("{") else None
    if isinstance(nested, dict) and "output" in nested:
        code = mapping(nested.get("metadata")).get("exit_code")
        return _ended(text(nested["output"]), code if isinstance(code, int) else None)
    return _headed(words)


def _listed(value: list[Any]) -> Output:
    blocks = [mapping(each) for each in value]
    pictures = [image(text(block.get("image_url"))) for block in blocks]
    words = "\n".join(text(block.get("text")) for block in blocks if block.get("text"))
    shown = [{"type": "content", "content": picture} for picture in pictures if picture is not None]
    inner = _headed(words)
    return inner._replace(content=[*inner.content, *shown])


def _headed(words: str) -> Output:
    """An output with lines about it before it."""
    head = _HEADED.match(words)
    found = _EXIT.search(head[0] if head else words[:400])
    is_running = _RUNNING.search(words[:400]) is not None
    rest = words[head.end() :] if head else words
    told = _ended(rest, int(found[1]) if found else None)
    return told._replace(running=is_running)


def _ended(words: str, code: int | None) -> Output:
    failed = bool(code) if code is not None else _FAILED.search(words[:400]) is not None
    return Output(words, text_content(words), code, failed)


def _decoded(words: str) -> Any:
    try:
        return msgspec.json.decode(words.encode(errors="replace"))
    except (msgspec.DecodeError, RecursionError):
        return None


def file_changes(changes: Any) -> list[Json]:
    """The changes that a patch made, by path."""
    return [change for path, each in mapping(changes).items() for change in _file_change(path, mapping(each))]


def _file_change(path: str, change: Json) -> list[Json]:
    kind, content = text(change.get("type")), text(change.get("content"))
    if kind == "add":
        return [diff(path, None, content, kind)]
    if kind == "delete":
        return [diff(path, content or None, "", kind)]
    target = text(change.get("move_path")) or path
    patch = text(change.get("unified_diff"))
    return [{**each, "path": target} for each in patch_diffs(f"--- {path}\n+++ {target}\n{patch}")]


# -- calls ---------------------------------------------------------------------------------------------------------


def arguments_of(arguments: Any) -> Json:
    """The arguments of a call, which are JSON in a string."""
    given = _decoded(arguments) if isinstance(arguments, str) else arguments
    return given if isinstance(given, dict) else {"arguments": arguments} if arguments else {}


def script_of(given: Json) -> str:
    """The script of a command that is given as the words of a shell's own command line."""
    words = [text(word) for word in items(given.get("command"))]
    is_shell = len(words) == 3 and words[1] in ("-c", "-lc") and _SHELLS.fullmatch(words[0])
    return words[2] if is_shell else ""


INTERRUPTED = "The turn was interrupted before the tool call ended."
UNTOLD = "The turn ended before the record told how the tool call ended."
_TURN_STATUS: dict[str, DiscoveredStatus] = {
    "task_started": "running",
    "turn_started": "running",
    "task_complete": "idle",
    "turn_complete": "idle",
    "turn_aborted": "idle",
}


def unwrapped(record: Json) -> tuple[str, Json]:
    """The kind of a line and what it holds; the oldest files have the items themselves as lines."""
    payload = record.get("payload")
    if isinstance(payload, dict):
        return text(record.get("type")), payload
    return "response_item", record


def status_of(records: Sequence[Json]) -> DiscoveredStatus:
    """What the agent does, by the last records of a file. In the middle of a long turn there is no word of turns."""
    for record in reversed(records):
        kind, payload = unwrapped(record)
        told = _TURN_STATUS.get(text(payload.get("type"))) if kind == "event_msg" else None
        if told is not None:
            return told
    for record in reversed(records):
        kind, payload = unwrapped(record)
        if kind == "response_item" and payload.get("type") is not None:
            return "idle" if payload.get("role") == "assistant" else "running"
    return "idle"


# -- lines --------------------------------------------------------------------------------------------------------


class Rollout(Translation):
    """The updates of one file."""

    def __init__(self) -> None:
        self._calls = Calls()
        self._names: dict[str, str] = {}
        self._silent: set[str] = set()
        self._background: dict[str, Output] = {}
        self._questions: set[str] = set()
        self._usage: tuple[int, int] | None = None
        self._numbered = 0
        self.status: DiscoveredStatus | None = None

    def when(self, record: Json) -> str:
        return moment(record.get("timestamp"))

    def take(self, record: Json) -> Iterable[Update]:
        kind, payload = unwrapped(record)
        if kind == "response_item":
            handler = _ITEMS.get(text(payload.get("type")))
        elif kind == "event_msg":
            handler = _EVENTS.get(text(payload.get("type")))
        else:
            handler = _LINES.get(kind)
        return handler(self, payload) if handler is not None else ()

    # -- words --

    def _message(self, payload: Json) -> Iterator[Update]:
        message_id, role = text(payload.get("id")), payload.get("role")
        if role == "user":
            blocks = prompt_blocks(payload)
            if blocks and self.status is None:
                self.status = "running"
            yield from (said("user", block, message_id) for block in blocks)
        elif role == "assistant":
            words = "".join(text(mapping(item).get("text")) for item in items(payload.get("content")))
            if words:
                yield said("agent", words, message_id)

    def _reasoning(self, payload: Json) -> Iterator[Update]:
        parts = [*items(payload.get("summary")), *items(payload.get("content"))]
        words = "\n\n".join(text(mapping(part).get("text")) for part in parts if mapping(part).get("text"))
        if words:
            yield thought(words, text(payload.get("id")))

    # -- calls --

    def _function_call(self, payload: Json) -> Iterator[Update]:
        name = text(payload.get("name")) or "tool"
        space = text(payload.get("namespace")).removesuffix("__")
        given = arguments_of(payload.get("arguments"))
        yield from self._begun(payload, f"{space}__{name}" if space.startswith("mcp") else name, given)

    def _custom_call(self, payload: Json) -> Iterator[Update]:
        name, given = text(payload.get("name")) or "tool", text(payload.get("input"))
        changes = patch_diffs(given) if name == "apply_patch" else []
        yield from self._begun(payload, name, {"input": given}, **({"content": changes} if changes else {}))

    def _shell_call(self, payload: Json) -> Iterator[Update]:
        yield from self._begun(payload, "shell", mapping(payload.get("action")))

    def _search_call(self, payload: Json) -> Iterator[Update]:
        """A tool of the model's own service: it has ended when it is told."""
        name = text(payload.get("type")).removesuffix("_call")
        given = mapping(payload.get("action")) or {key: payload[key] for key in ("revised_prompt",) if payload.get(key)}
        call_id = self._id(payload)
        yield from self._begun({**payload, "call_id": call_id}, name, given)
        if payload.get("status") != "in_progress":
            yield from self._calls.end(call_id, name, failed=payload.get("status") == "failed")

    def _begun(self, payload: Json, name: str, given: Json, **fields: Any) -> Iterator[Update]:
        call_id = self._id(payload)
        if name == "update_plan":
            self._silent.add(call_id)
            told = plan(given)
            yield from [told] if told is not None else []
            return
        self._names[call_id] = name
        if name == "request_user_input":
            self._questions.add(call_id)
            self.status = "waiting"
        script = script_of(given)
        more = {"title": script, "rawInput": {**given, "command": script}} if script else {}
        yield from self._calls.begin(call_id, name, given, **more, **fields)

    def _id(self, payload: Json) -> str:
        told = text(payload.get("call_id")) or text(payload.get("id"))
        if told:
            return told
        self._numbered += 1
        return f"call-{self._numbered}"

    def _call_output(self, payload: Json) -> Iterator[Update]:
        call_id = text(payload.get("call_id"))
        if not call_id or call_id in self._silent:
            return
        if call_id in self._questions:
            self._questions.discard(call_id)
            self.status = "running"
        output = output_of(payload.get("output", payload.get("tools")))
        if output.running and self._calls.is_open(call_id):
            self._background[call_id] = output
            yield from self._calls.go_on(call_id, content=output.content)
            return
        name = self._names.get(call_id, "")
        is_patch = name == "apply_patch" and not output.failed
        fields: Json = {} if is_patch else {"content": output.content}
        yield from self._ended(call_id, output.code, failed=output.failed, **fields)

    def _ended(self, call_id: str, code: Any, *, failed: bool, **fields: Any) -> Iterator[Update]:
        raw = {"exit_code": code} if isinstance(code, int) else None
        self._background.pop(call_id, None)
        yield from self._calls.end(call_id, self._names.pop(call_id, ""), failed=failed, rawOutput=raw, **fields)

    # -- events --

    def _item_completed(self, payload: Json) -> Iterator[Update]:
        item = mapping(payload.get("item"))
        make = _COMPLETED.get(text(item.get("type")))
        if make is not None and self._calls.is_open(text(item.get("id"))):
            yield from make(self, {**item, "call_id": text(item.get("id"))})

    def _command_ended(self, payload: Json) -> Iterator[Update]:
        call_id, code = text(payload.get("call_id")), payload.get("exit_code")
        if not self._calls.is_open(call_id):
            return
        words = text(payload.get("aggregated_output")) or text(payload.get("stdout")) + text(payload.get("stderr"))
        failed = payload.get("status") in ("failed", "declined") or (isinstance(code, int) and code != 0)
        yield from self._ended(call_id, code, failed=failed, content=text_content(words))

    def _patch_ended(self, payload: Json) -> Iterator[Update]:
        call_id = text(payload.get("call_id"))
        if not self._calls.is_open(call_id):
            return
        failed = payload.get("success") is False or payload.get("status") in ("failed", "declined")
        changes = file_changes(payload.get("changes"))
        words = text(payload.get("stderr")) or text(payload.get("stdout"))
        fields: Json = {"content": text_content(words)} if failed else {"content": changes}
        if changes and not failed:
            fields["locations"] = [{"path": path} for path in dict.fromkeys(each["path"] for each in changes)]
        yield from self._ended(call_id, None, failed=failed, **fields)

    def _begins(self, payload: Json) -> Iterator[Update]:
        """A turn begins. What is open was left so by one that was killed."""
        yield from self._close(UNTOLD)
        self.status = "running"

    def _ends(self, payload: Json) -> Iterator[Update]:
        error = mapping(payload.get("error"))
        yield from self._close(UNTOLD)
        if error:
            yield notice("error", "The turn failed", text(error.get("message")))

    def _aborted(self, payload: Json) -> Iterator[Update]:
        yield from self._close(INTERRUPTED)

    def _close(self, words: str) -> Iterator[Update]:
        """A turn is over. A command that goes on in the background has done what the turn wanted of it."""
        self.status = "idle"
        self._questions.clear()
        for call_id, output in [*self._background.items()]:
            yield from self._ended(call_id, None, failed=False, content=output.content)
        yield from self._calls.close(words)
        self._names.clear()
        self._silent.clear()

    def _error(self, payload: Json) -> Iterator[Update]:
        severity = "error" if payload.get("type") == "error" else "warning"
        yield notice(severity, text(payload.get("message")) or "Something went wrong")

    def _tokens(self, payload: Json) -> Iterator[Update]:
        info = mapping(payload.get("info"))
        used = count(mapping(info.get("last_token_usage")).get("total_tokens"))
        size = count(info.get("model_context_window"))
        if used is not None and size and (used, size) != self._usage:
            self._usage = (used, size)
            yield {"sessionUpdate": "usage_update", "used": used, "size": size}

    def _named(self, payload: Json) -> Iterator[Update]:
        name = text(payload.get("thread_name"))
        if name:
            yield {"sessionUpdate": "session_info_update", "title": name}

    def _rolled_back(self, payload: Json) -> Iterator[Update]:
        turns = count(payload.get("num_turns")) or 1
        yield notice("info", "The user went back", f"The last {turns} turns no longer count." if turns > 1 else "")

    def _compacted(self, payload: Json) -> Iterator[Update]:
        self._numbered += 1
        words = text(payload.get("message"))
        summary = {"summary": [text_block(words)]} if words else {}
        made = {"compactionId": f"compaction-{self._numbered}", "status": "completed"}
        yield {"sessionUpdate": "compaction_update", **made, **summary}


Handler = Callable[[Rollout, Json], Iterator[Update]]
_ITEMS: dict[str, Handler] = {
    "message": Rollout._message,
    "reasoning": Rollout._reasoning,
    "function_call": Rollout._function_call,
    "custom_tool_call": Rollout._custom_call,
    "local_shell_call": Rollout._shell_call,
    "tool_search_call": Rollout._function_call,
    "web_search_call": Rollout._search_call,
    "image_generation_call": Rollout._search_call,
    "function_call_output": Rollout._call_output,
    "custom_tool_call_output": Rollout._call_output,
    "local_shell_call_output": Rollout._call_output,
    "tool_search_output": Rollout._call_output,
}
_EVENTS: dict[str, Handler] = {
    "item_completed": Rollout._item_completed,
    "exec_command_end": Rollout._command_ended,
    "patch_apply_end": Rollout._patch_ended,
    "task_started": Rollout._begins,
    "turn_started": Rollout._begins,
    "task_complete": Rollout._ends,
    "turn_complete": Rollout._ends,
    "turn_aborted": Rollout._aborted,
    "error": Rollout._error,
    "warning": Rollout._error,
    "token_count": Rollout._tokens,
    "thread_name_updated": Rollout._named,
    "thread_rolled_back": Rollout._rolled_back,
}
_LINES: dict[str, Handler] = {"compacted": Rollout._compacted}
_COMPLETED: dict[str, Handler] = {"CommandExecution": Rollout._command_ended, "FileChange": Rollout._patch_ended}
