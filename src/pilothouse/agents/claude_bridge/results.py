"""The results of tools: text or blocks, images, errors, and what the CLI tells of them in structured form.

The structured form wins where it says more: the file without line numbers, the change that was really made, the output
of a command apart from its errors. What is written for the model only, reminders and wrappers, is not shown.
"""

from __future__ import annotations

import re
from typing import Any

from ...model.loose_json import items, mapping, text
from .diffs import changed_line, made, proposed
from .tools import AGENTS, Call, locations_of

_STOPPED = "The user doesn't want to proceed with this tool use."
NOT_RUN = "The user rejected this tool call; it did not run."
RAN = "The user stopped this tool call while it ran; it may have had effects."
_REMINDER = ("<system-reminder>", "</system-reminder>")
_ERROR = re.compile(r"\A\s*<tool_use_error>(.*)</tool_use_error>\s*\Z", re.DOTALL)
_EXIT = re.compile(r"\A(?:Error: )?Exit code (\d{1,3})\b")
_SHOWN = ("originalFile", "originalFileContents", "original_file", "updated_file", "content", "oldString", "newString",
          "structuredPatch", "edits", "file", "prompt")  # fmt: skip
"""Parts of a structured result that the content of the call shows already, and that may be large."""

Fields = dict[str, Any]


def ending(call: Call | None, block: dict[str, Any], told: Any) -> tuple[str, Fields]:
    """The status and the fields with which a call ends. `told` is the structured result."""
    structured = mapping(told)
    failed = block.get("is_error") is True or structured.get("interrupted") is True
    name = call.name if call is not None else ""
    shown = [] if failed else _structured(name, structured)
    fields: Fields = {"rawOutput": _output(name, structured, block, failed=failed)}
    if shown or failed or call is None or not proposed(name, call.given):
        # a change whose result tells nothing of it stays as it was announced
        fields["content"] = shown or [_wrapped(one) for one in content_blocks(block.get("content"))]
    if call is not None and not failed and "structuredPatch" in structured:
        fields["locations"] = locations_of(call.given, changed_line(structured))
    return "failed" if failed else "completed", {key: value for key, value in fields.items() if value}


def _structured(name: str, told: Fields) -> list[Fields]:
    changes = made(told)
    if changes:
        return changes
    if name in AGENTS and told.get("status") == "async_launched":
        return [_wrapped(_text(f"Runs in the background: {text(told.get('description')) or 'sub-agent'}"))]
    if name in AGENTS and isinstance(told.get("content"), list):
        return [_wrapped(one) for one in content_blocks(told["content"])]
    read = mapping(told.get("file"))
    if told.get("type") == "text" and isinstance(read.get("content"), str):
        return [_wrapped(_text(read["content"]))] if read["content"] else []
    return []


def _output(name: str, told: Fields, block: Fields, *, failed: bool) -> Fields:
    """The structured result, without what the content shows; of a command also how it ended, if that is known."""
    output = {key: value for key, value in told.items() if key not in _SHOWN}
    read = {key: value for key, value in mapping(told.get("file")).items() if key not in ("content", "base64")}
    if read:
        output["file"] = read
    said = plain_text(block.get("content"))
    if not failed and made(told):
        output["message"] = said
    if name != "Bash":
        return output
    code = _EXIT.match(said)
    if failed and code is not None:
        output["exitCode"] = int(code[1])
    elif not failed and "stdout" in told and not _is_unsure(told):
        output["exitCode"] = 0
    return output


def _is_unsure(told: Fields) -> bool:
    """A command that goes on in the background, or whose exit code the CLI found not worth calling an error."""
    return bool(told.get("backgroundTaskId") or told.get("returnCodeInterpretation"))


# -- blocks -------------------------------------------------------------------------------------------------------


def content_blocks(content: Any) -> list[Fields]:
    """Content in the API's shape as the protocol's blocks; what is empty or only for the model is left out."""
    if isinstance(content, str):
        said = _readable(content)
        return [_text(said)] if said else []
    found = (_block(item) for item in (content if isinstance(content, list) else [content]))
    return [block for block in found if block is not None]


def plain_text(content: Any) -> str:
    """The text of content in the API's shape."""
    return "\n".join(text(block.get("text")) for block in content_blocks(content) if block["type"] == "text")


def _block(item: Any) -> Fields | None:
    if isinstance(item, str):
        return _text(_readable(item)) if _readable(item) else None
    block = mapping(item)
    make = _BLOCKS.get(text(block.get("type")))
    if make is not None:
        return make(block)
    words = text(block.get("text")) or text(block.get("error_code"))
    return _text(words) if words else None


def _text(words: str) -> Fields:
    return {"type": "text", "text": words}


def _wrapped(block: Fields) -> Fields:
    return {"type": "content", "content": block}


def _words(block: Fields) -> Fields | None:
    said = _readable(text(block.get("text")))
    return _text(said) if said else None


def _image(block: Fields) -> Fields | None:
    source = mapping(block.get("source"))
    data, kind, url = (text(source.get(key)) for key in ("data", "media_type", "url"))
    if data and kind:
        return {"type": "image", "data": data, "mimeType": kind}
    return {"type": "resource_link", "name": "image", "uri": url} if url else None


def _document(block: Fields) -> Fields | None:
    source = mapping(block.get("source"))
    data, kind = text(source.get("data")), text(source.get("media_type"))
    if source.get("type") == "text" and data:
        return _text(data)
    if not data or not kind:
        return None
    title = text(block.get("title")) or "document"
    return {"type": "resource", "resource": {"uri": f"document:{title}", "mimeType": kind, "blob": data}}


def _found(block: Fields) -> Fields | None:
    url = text(block.get("url"))
    title = text(block.get("title"))
    if not url:
        return None
    return {"type": "resource_link", "name": title or url, "uri": url, **({"title": title} if title else {})}


def _reference(block: Fields) -> Fields | None:
    name = text(block.get("tool_name"))
    return _text(name) if name else None


_BLOCKS = {
    "text": _words,
    "image": _image,
    "document": _document,
    "web_search_result": _found,
    "tool_reference": _reference,
}


def _readable(words: str) -> str:
    """Text without what is addressed to the model."""
    if words.startswith(_STOPPED):
        return RAN if "while running" in words else NOT_RUN
    if "<" not in words:
        return words
    error = _ERROR.match(words)
    words = error[1] if error else words
    begin, end = _REMINDER
    while words.rstrip().endswith(end) and begin in words:
        words = words[: words.rindex(begin)].rstrip("\n")
    return words


_DECISIONS = {"permission_decision": "permissionDecision", "non_execution_kind": "nonExecutionKind"}


def decision_of(meta: list[Any], call_id: str) -> Fields:
    """How the CLI came to run the tool, or not to: part of what it tells beside a result."""
    for item in map(mapping, items(meta)):
        if item.get("id") == call_id:
            return {name: item[key] for key, name in _DECISIONS.items() if key in item}
    return {}
