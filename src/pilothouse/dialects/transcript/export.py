"""A session to keep or to pass on: as Markdown for people, as JSON for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from ...model.records import ImageContent, ResourceContent
from ...model.session import Session, sound, summary
from ..texts import (
    Limits,
    code,
    duration,
    ending,
    fenced,
    is_told,
    plain,
    prose,
    quoted,
    shown,
    undescribed_command,
    unfenced,
)
from .entries import (
    ApprovalEntry,
    ArtifactEntry,
    CompactionEntry,
    CustomEntry,
    ErrorEntry,
    FileDiffView,
    NotificationEntry,
    QuestionEntry,
    TextEntry,
    ThinkingEntry,
    TodoListEntry,
    ToolCallEntry,
    TurnEndEntry,
)
from .view import transcript

_DEFAULT = Limits()


def to_json(session: Session, *, limits: Limits = _DEFAULT, beside: Mapping[str, Any] | None = None) -> bytes:
    """The session without its items, as its snapshot has it, its `transcript`, and what is known beside its events."""
    whole = {**session.snapshot(items=False), **(beside or {})}
    whole["transcript"] = msgspec.to_builtins(transcript(session, limits=limits))
    try:
        return msgspec.json.encode(whole)
    except UnicodeEncodeError:
        return msgspec.json.encode(sound(whole))


def to_markdown(session: Session, *, limits: Limits = _DEFAULT) -> str:
    """The transcript for reading. Nothing that an agent or a tool wrote can end the block that it stands in."""
    blocks = [*_title(session)]
    for entry in transcript(session, limits=limits):
        blocks += _WRITERS[type(entry)](entry)
    blocks += _files(session)
    text: str = sound("\n\n".join(block for block in blocks if block) + "\n")
    return text


def _title(session: Session) -> Iterator[str]:
    yield f"# {plain(session.title or '') or 'Session ' + plain(session.id)}"
    counted = summary(session)
    usage = counted.token_usage
    facts = [
        ("Agent", plain(session.agent)),
        ("Model", plain(session.model or "")),
        ("Directory", code(session.working_directory or session.project_path)),
        ("Started", plain(session.started_at)),
        ("Status", plain(session.status)),
        ("Messages", f"{counted.messages_count:,}"),
        ("Tool calls", f"{counted.tool_calls_count:,}"),
        ("Errors", f"{counted.error_count:,}" if counted.error_count else ""),
        ("Tokens", f"{usage.input_tokens:,} in, {usage.output_tokens:,} out" if session.usage else ""),
        ("Cost", f"{counted.cost.total:.4f} {plain(counted.cost.currency)}" if counted.cost else ""),
        ("Left out", f"{session.chatter_dropped:,} older notifications" if session.chatter_dropped else ""),
    ]
    yield "\n".join(f"- {name}: {value}" for name, value in facts if value)


def _files(session: Session) -> Iterator[str]:
    changed = summary(session).files_changed
    if changed:
        yield "## Files changed"
        yield "\n".join(
            f"- {file.change_type} {code(file.path)} (+{file.lines_added} −{file.lines_removed})" for file in changed
        )


_SPEAKERS = {"user": "You", "assistant": "Agent", "system": "System"}


def _text(entry: TextEntry) -> Iterator[str]:
    yield f"## {_SPEAKERS.get(entry.role) or plain(entry.role)}"
    if entry.text:
        # what the user wrote is shown as written, not as Markdown of this document
        yield prose(entry.text) if entry.role == "assistant" else quoted(entry.text)
    for block in entry.content or ():
        if isinstance(block, ImageContent):
            inline = block.url.startswith("data:")
            yield f"*Image* {code('inline, ' + format(len(block.url), ',') + ' characters' if inline else block.url)}"
        elif isinstance(block, ResourceContent):
            yield f"*Resource* {code(block.uri)}"
            yield fenced(block.text) if block.text else ""
        elif block.__struct_config__.tag != "text":
            yield f"*{plain(str(block.__struct_config__.tag))}*"


def _thinking(entry: ThinkingEntry) -> Iterator[str]:
    yield "*Thinking*" + (" (redacted)" if entry.redacted else "")
    yield quoted(entry.text) if entry.text else ""


_MARKS = {"completed": "✓", "failed": "✗", "cancelled": "⊘"}


def _tool(entry: ToolCallEntry) -> Iterator[str]:
    took = f" · {duration(entry.duration)}" if entry.duration else ""
    head = f"**{_MARKS.get(entry.status, '…')} {plain(entry.verb)}**"
    what = code(shown(entry.detail)) or plain(entry.name)
    yield " ".join(part for part in (head, what, f"({plain(entry.status)}{took})") if part)
    for diff in entry.diffs:
        yield from _diff(diff)
    if entry.output:
        yield fenced(*unfenced(entry.output))
    if entry.error is not None and not is_told(entry.error.message, entry.output):
        yield f"*Error* {plain(entry.error.code)}: {plain(entry.error.message)}"


def _diff(diff: FileDiffView) -> Iterator[str]:
    yield f"{diff.change_type} {code(diff.path)} (+{diff.lines_added} −{diff.lines_removed})"
    if diff.diff:
        yield fenced(diff.diff, "diff")
    if diff.omitted:
        yield f"*{diff.omitted:,} more lines of this diff are left out*"


_BOXES = {"completed": "[x]", "in_progress": "[ ] *(in progress)*"}


def _todos(entry: TodoListEntry) -> Iterator[str]:
    if entry.todos:
        yield f"**Todos** {entry.completed}/{entry.total} completed"
        yield "\n".join(f"- {_BOXES.get(todo.status, '[ ]')} {plain(todo.content)}" for todo in entry.todos)
    if entry.text:
        yield "**Plan**"
        yield quoted(entry.text)


def _question(entry: QuestionEntry) -> Iterator[str]:
    yield f"**Question** {plain(entry.question)}"
    if entry.options:
        yield "\n".join(f"- {plain(option)}" for option in entry.options)
    if entry.pending:
        yield "*Not answered yet*"
    else:
        answer = entry.answer if isinstance(entry.answer, str) else _json(entry.answer)
        yield f"*{plain(entry.outcome or '')}* {plain(answer)}".rstrip()


def _approval(entry: ApprovalEntry) -> Iterator[str]:
    if entry.pending:
        outcome = "waiting"
    elif entry.approved:
        outcome = "approved"
    else:
        outcome = "cancelled" if entry.resolved_by == "cancelled" else "denied"
    by = entry.decided_by or entry.resolved_by
    who = f" by {plain(by)}" if by and outcome not in ("waiting", by) else ""
    why = f": {plain(entry.reason)}" if entry.reason and outcome != "cancelled" else ""
    yield f"**Approval** {plain(shown(entry.description or entry.tool_name))} — {outcome}{who}{why}"
    if command := undescribed_command(entry.preview, entry.description):
        yield fenced(command, "sh")
    if entry.notes:
        yield "\n".join(f"- {plain(shown(note))}" for note in entry.notes)


def _notification(entry: NotificationEntry) -> Iterator[str]:
    times = f" (×{entry.count:,})" if entry.count > 1 else ""
    yield f"*{plain(entry.level)}* **{plain(entry.title)}** {plain(entry.message)}{times}"


def _error(entry: ErrorEntry) -> Iterator[str]:
    times = f" (×{entry.count:,})" if entry.count > 1 else ""
    yield f"**Error** {plain(entry.error.code)}: {plain(entry.error.message)}{times}"


def _compaction(entry: CompactionEntry) -> Iterator[str]:
    yield f"*Conversation compacted* ({plain(entry.status)})"
    yield quoted(entry.summary) if entry.summary else ""


def _artifact(entry: ArtifactEntry) -> Iterator[str]:
    about = entry.artifact if isinstance(entry.artifact, Mapping) else {}
    name = next((about[key] for key in ("name", "path", "id") if isinstance(about.get(key), str)), "")
    yield f"*Artifact* {code(name)}".rstrip()


def _custom(entry: CustomEntry) -> Iterator[str]:
    yield f"*{plain(entry.namespace)}/{plain(entry.event_name)}*"
    yield fenced(_json(entry.data), "json") if entry.data else ""


def _turn_end(entry: TurnEndEntry) -> Iterator[str]:
    yield f"*{plain(ending(entry.stop_reason, entry.duration))}*"


def _json(value: Any) -> str:
    return "" if value is None else msgspec.json.encode(sound(value)).decode()


_WRITERS: Mapping[type[Any], Callable[[Any], Iterator[str]]] = {
    TextEntry: _text,
    ThinkingEntry: _thinking,
    ToolCallEntry: _tool,
    TodoListEntry: _todos,
    QuestionEntry: _question,
    ApprovalEntry: _approval,
    NotificationEntry: _notification,
    ErrorEntry: _error,
    CompactionEntry: _compaction,
    ArtifactEntry: _artifact,
    CustomEntry: _custom,
    TurnEndEntry: _turn_end,
}
