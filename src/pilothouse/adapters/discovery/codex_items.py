"""The items of a Codex rollout: prompts without what was put in, outputs of calls, changes to files, command lines.

Outputs are written for the model, in a shape that changes from version to version: with lines about the command before
them, as JSON in a string, as a list of blocks. Of all of them the same is read: the words, the exit code, and whether
it went wrong.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

from ..claude.reading import items, mapping, text
from .calls import diff, image, patch_diffs, text_block, text_content
from .texts import without_insertions

__all__ = ["Output", "arguments_of", "file_changes", "output_of", "prompt_blocks", "script_of"]

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
