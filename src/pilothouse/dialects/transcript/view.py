"""A session as a list of entries: the transcript. A function of the folded session and nothing else.

Every item of the session becomes one entry in its place, except calls that only update the to-do list: in each turn
they become one list, in the place of the first. The heading of a call is a verb and the one argument that tells it from
other calls; its diffs come from its events, or from its input while it still runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from ...model.changes import TEXT_LIMIT, content_of, diff_change, edit_changes, patch_changes
from ...model.previews import label_option
from ...model.records import FileChange, FileDiff, TextContent, Todo
from ...model.session import (
    Approval,
    Artifact,
    Block,
    Compaction,
    Custom,
    Failure,
    Message,
    Notification,
    Plan,
    Question,
    Session,
    SessionItem,
    TextRun,
    Thought,
    ToolCall,
    Turn,
    line_counts,
    milliseconds_between,
)
from ...model.tools import command_text, file_paths, identify, patch_text, relative_path, todos_of
from ..texts import Limits, clip, clip_lines, clip_values, shorten_middle
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
    TranscriptEntry,
    TurnEndEntry,
)

FALLBACK = "Running tool"
VERBS: Mapping[str, str] = {
    "Glob": "Searching files",
    "Grep": "Searching content",
    "Search": "Searching",
    "Read": "Reading",
    "LS": "Listing files",
    "Write": "Writing",
    "Edit": "Editing",
    "MultiEdit": "Editing",
    "NotebookEdit": "Editing",
    "Delete": "Deleting",
    "Move": "Moving",
    "apply_patch": "Applying patch",
    "Bash": "Running command",
    "BashOutput": "Reading output",
    "KillShell": "Stopping command",
    "Git": "Running command",
    "Task": "Running task",
    "TodoWrite": "Updating todos",
    "TodoRead": "Reading todos",
    "WebFetch": "Fetching web content",
    "WebSearch": "Searching web",
    "AskUserQuestion": "Asking",
    "Think": "Thinking",
    "SwitchMode": "Switching mode",
    "EnterPlanMode": "Switching mode",
    "ExitPlanMode": "Switching mode",
    "Skill": "Running skill",
}
"""By the tool's canonical name."""

_KIND_VERBS: Mapping[str, str] = {
    "read": "Reading",
    "edit": "Editing",
    "delete": "Deleting",
    "move": "Moving",
    "search": "Searching",
    "execute": "Running command",
    "fetch": "Fetching web content",
    "switch_mode": "Switching mode",
}
"""By kind, for tools that nobody knows."""

_WRITERS = frozenset({"Write", "Edit", "MultiEdit"})


def verb_of(tool: str, kind: str, *, new_file: bool | None) -> str:
    """What the call does. Whether a file is new, once that is known, decides between writing and editing."""
    if new_file is not None and (tool in _WRITERS or (tool not in VERBS and kind == "edit")):
        return "Writing" if new_file else "Editing"
    return VERBS.get(tool) or _KIND_VERBS.get(kind, FALLBACK)


_KEYS: Mapping[str, tuple[str, ...]] = {
    "Glob": ("pattern", "glob", "query"),
    "Grep": ("pattern", "query", "regex"),
    "Search": ("pattern", "query", "regex"),
    "WebSearch": ("query", "search_query", "search_term", "q"),
    "WebFetch": ("url", "uri"),
    "Task": ("description", "task", "prompt"),
    "Skill": ("skill", "name", "command"),
    "AskUserQuestion": ("question",),
}
_LENGTH = 200
_BLANKS = re.compile(r"(?:[ \t\n]|\r\n)+")


def detail_of(tool: str, call: ToolCall, arguments: Any, workspace: str) -> str:
    """The command, pattern, address or path; else the agent's own title. One line."""
    return _one_line(_detail(tool, call, arguments, workspace) or call.title or call.description or "")


def _detail(tool: str, call: ToolCall, arguments: Any, workspace: str) -> str | None:
    if tool in _KEYS:
        found = (arguments.get(key) for key in _KEYS[tool]) if isinstance(arguments, Mapping) else ()
        return next((value for value in found if isinstance(value, str) and value), None)
    if tool == "Bash" or call.category in ("terminal", "git"):
        return command_text(arguments)
    if tool == "TodoWrite":
        return ""
    paths = file_paths(arguments) or [change.path for change in call.files] or _located(call)
    if not paths:
        return None
    more = f" +{len(paths) - 1} more" if len(paths) > 1 else ""
    return relative_path(paths[0], workspace) + more


def _located(call: ToolCall) -> list[str]:
    places = call.locations if isinstance(call.locations, list) else []
    paths = [place.get("path") for place in places if isinstance(place, Mapping)]
    return [path for path in paths if isinstance(path, str) and path]


def _one_line(text: str) -> str:
    """A text on one line. Only spaces, tabs and line ends are joined: other white space is made visible later."""
    if len(text) <= 8 * _LENGTH:
        return shorten_middle(_BLANKS.sub(" ", text).strip(" "), _LENGTH)
    # of a long text, which may be drawn many times a second, only the ends are read
    ends = (_BLANKS.sub(" ", text[:_LENGTH]).lstrip(" "), _BLANKS.sub(" ", text[-_LENGTH:]).rstrip(" "))
    head, tail = ends[0][: _LENGTH // 2], ends[1][-_LENGTH // 2 :]
    return f"{head} … {len(text) - len(head) - len(tail):,} characters left out … {tail}"


def diffs_of(tool: str, call: ToolCall, arguments: Any, workspace: str, limits: Limits) -> list[FileDiffView]:
    """One view for each change. A call that failed changed nothing, so only what its events told is shown."""
    changes = list(call.files)
    if not changes and isinstance(call.structured, FileDiff):
        told = call.structured
        changes = [FileChange(path=told.path, change_type=told.change_type, diff=told.diff)]
    if not changes and call.status not in ("failed", "cancelled"):
        changes = _intended(tool, call, arguments, workspace)
    return [_view(change, workspace, limits) for change in changes]


def _view(change: FileChange, workspace: str, limits: Limits) -> FileDiffView:
    added, removed = line_counts(change)
    diff, omitted = clip_lines(change.diff or "", limits.diff)
    return FileDiffView(
        path=change.path,
        display_path=relative_path(change.path, workspace),
        change_type=change.change_type,
        diff=diff,
        lines_added=added,
        lines_removed=removed,
        omitted=omitted,
    )


def _intended(tool: str, call: ToolCall, arguments: Any, workspace: str) -> list[FileChange]:
    if call.category not in ("file_write", "file_edit") and call.kind != "edit":
        return []
    patch = patch_text(arguments)
    if patch is not None:
        return patch_changes(patch) if len(patch) <= TEXT_LIMIT else []
    edits = edit_changes(arguments, workspace)
    if edits:
        return edits
    paths, whole = file_paths(arguments), content_of(arguments)
    return [diff_change(paths[0], None, whole, workspace)] if tool == "Write" and paths and whole is not None else []


_DEFAULT = Limits()


def transcript(session: Session, *, limits: Limits = _DEFAULT) -> list[TranscriptEntry]:
    """All entries in the order in which they began, but a call after the approvals that it waited for."""
    planned = {item.turn_id for item in session.items if isinstance(item, Plan) and item.todos}
    lists: dict[str | None, TodoListEntry] = {}
    entries: list[TranscriptEntry] = []
    names = _Names()
    for item in session.items:
        entry = entry_of(item, session, limits=limits)
        if isinstance(entry, ToolCallEntry) and isinstance(item, ToolCall) and (todos := _listed(entry, item)):
            if item.turn_id in planned:
                continue
            if (known := lists.get(item.turn_id)) is not None:
                _set_todos(known, todos)
                continue
            entry = lists[item.turn_id] = _list_entry(item, f"todos:{item.turn_id or ''}", todos)
        entry.id = names.unique(entry.id)
        entries.append(entry)
    return _with_ends(_after_approvals(entries), session)


def _after_approvals(entries: list[TranscriptEntry]) -> list[TranscriptEntry]:
    """Each call behind its last approval: its card has the outcome, which came after that."""
    last: dict[str, int] = {}
    for index, entry in enumerate(entries):
        if isinstance(entry, ApprovalEntry):
            last[entry.request_id] = index
    places: list[tuple[int, int]] = []
    for index, entry in enumerate(entries):
        asked = entry.approval_ids if isinstance(entry, ToolCallEntry) else ()
        place = max((last[request_id] for request_id in asked if request_id in last), default=index)
        places.append((max(place, index), index))
    return [entries[index] for _, index in sorted(places, key=lambda pair: (pair[0], pair[0] != pair[1]))]


def _with_ends(entries: list[TranscriptEntry], session: Session) -> list[TranscriptEntry]:
    """How each turn ended, after the last that belongs to it."""
    ended = {turn.turn_id: turn for turn in session.turns_ended}
    last = {entry.turn_id: index for index, entry in enumerate(entries) if entry.turn_id in ended}
    whole: list[TranscriptEntry] = []
    for index, entry in enumerate(entries):
        whole.append(entry)
        if entry.turn_id is not None and last.get(entry.turn_id) == index:
            whole.append(_end(ended[entry.turn_id], entry.seq))
    return whole


def _end(turn: Turn, seq: int) -> TurnEndEntry:
    return TurnEndEntry(
        id=f"turn_end:{turn.turn_id}",
        seq=seq,
        timestamp=turn.ended_at or "",
        turn_id=turn.turn_id,
        stop_reason=turn.stop_reason,
        duration=milliseconds_between(turn.started_at, turn.ended_at) if turn.ended_at else None,
    )


class _Names:
    """Ids may be used again by an agent; entries are told apart all the same."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def unique(self, name: str) -> str:
        count = self._seen[name] = self._seen.get(name, 0) + 1
        return name if count == 1 else self.unique(f"{name}#{count}")


def entry_of(item: SessionItem, session: Session, *, limits: Limits = _DEFAULT) -> TranscriptEntry:
    """The entry of one item, for consumers that follow a session. Its id may be shared if its agent uses ids again."""
    return _MAKERS[type(item)](item, session, limits)


# -- text --------------------------------------------------------------------------------------------------------------


def _message(item: Message, session: Session, limits: Limits) -> TextEntry:
    text, omitted = clip(item.text, limits.message)
    blocks = None if all(isinstance(block, TextRun) for block in item.content) else item.content
    return TextEntry(
        **_head(item, f"message:{item.role}:{item.message_id}"),
        role=item.role,
        text=text,
        streaming=not item.done,
        text_omitted=omitted,
        content=[_content(block) for block in blocks] if blocks is not None else None,
        model=item.model,
    )


def _content(block: Block) -> Any:
    return TextContent(text=str(block.text)) if isinstance(block, TextRun) else block


def _thought(item: Thought, session: Session, limits: Limits) -> ThinkingEntry:
    text, omitted = clip(str(item.text), limits.message)
    return ThinkingEntry(
        **_head(item, f"thought:{item.message_id}"),
        text=text,
        streaming=not item.done,
        text_omitted=omitted,
        redacted=item.redacted,
        duration=milliseconds_between(item.timestamp, item.ended_at) if item.ended_at else None,
    )


# -- tool calls --------------------------------------------------------------------------------------------------------


def _call(item: ToolCall, session: Session, limits: Limits) -> ToolCallEntry:
    arguments = _arguments(item)
    identity = identify(name=item.name, raw_input=arguments, kind=item.kind, title=item.title)
    workspace = session.working_directory or session.project_path
    diffs = diffs_of(identity.name, item, arguments, workspace, limits)
    new_file = diffs[0].change_type == "created" if diffs else None
    output, omitted = clip(str(item.output), limits.output)
    structured = msgspec.to_builtins(item.structured) if item.structured is not None else None
    return ToolCallEntry(
        **_head(item, f"tool:{item.tool_call_id}"),
        tool_call_id=item.tool_call_id,
        tool=identity.name,
        name=item.name,
        category=item.category,
        kind=identity.kind,
        status=item.status,
        verb=verb_of(identity.name, identity.kind, new_file=new_file),
        detail=detail_of(identity.name, item, arguments, workspace),
        title=item.title,
        description=item.description,
        input=clip_values(arguments, limits),
        output=output,
        output_omitted=omitted,
        structured=clip_values(structured, limits),
        diffs=diffs,
        new_file=bool(new_file),
        error=item.error,
        locations=item.locations,
        risk_level=item.risk_level,
        risk_reasons=item.risk_reasons,
        approval_ids=item.approval_ids,
        percentage=item.percentage,
        duration=item.duration,
        parent_tool_call_id=item.parent_tool_call_id,
        sub_agent_id=item.sub_agent_id,
        unfinished=item.unfinished,
        attention=item.status == "failed",
    )


def _arguments(item: ToolCall) -> Any:
    """The input; while it is still being written, what of it can be read already."""
    if item.input or not item.args:
        return item.input
    text = str(item.args)
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text


# -- the list of things to do ------------------------------------------------------------------------------------------


def _listed(entry: ToolCallEntry, item: ToolCall) -> list[Todo]:
    """The list that a call writes; none for a call that does something else, or that failed."""
    if entry.tool != "TodoWrite" or item.status == "failed":
        return []
    return [msgspec.convert(todo, Todo) for todo in todos_of(_arguments(item))]


def _list_entry(item: ToolCall | Plan, name: str, todos: list[Todo], text: str | None = None) -> TodoListEntry:
    entry = TodoListEntry(**_head(item, name), todos=[], completed=0, total=0, text=text)
    _set_todos(entry, todos)
    return entry


def _set_todos(entry: TodoListEntry, todos: list[Todo]) -> None:
    entry.todos, entry.total = todos, len(todos)
    entry.completed = sum(todo.status == "completed" for todo in todos)


def _plan(item: Plan, session: Session, limits: Limits) -> TodoListEntry:
    name = f"todos:{item.turn_id or ''}" + (f":{item.plan_id}" if item.plan_id else "")
    return _list_entry(item, name, item.todos, item.text)


# -- the rest ----------------------------------------------------------------------------------------------------------


def _question(item: Question, session: Session, limits: Limits) -> QuestionEntry:
    return QuestionEntry(
        **_head(item, f"question:{item.question_id}"), pending=item.pending, **_same(item, QuestionEntry)
    )


def _approval(item: Approval, session: Session, limits: Limits) -> ApprovalEntry:
    entry = ApprovalEntry(
        **_head(item, f"approval:{item.request_id}"), pending=item.pending, **_same(item, ApprovalEntry)
    )
    entry.options = [label_option(option) for option in item.options]  # old logs have options without a label
    return entry


def _notification(item: Notification, session: Session, limits: Limits) -> NotificationEntry:
    return NotificationEntry(**_head(item, f"notification:{item.seq}"), **_same(item, NotificationEntry))


def _failure(item: Failure, session: Session, limits: Limits) -> ErrorEntry:
    return ErrorEntry(**_head(item, f"error:{item.seq}"), error=item.error, count=item.count)


def _compaction(item: Compaction, session: Session, limits: Limits) -> CompactionEntry:
    return CompactionEntry(
        **_head(item, f"compaction:{item.compaction_id}"),
        status=item.status,
        summary=clip(str(item.summary), limits.message).text,
        error=item.error,
    )


def _artifact(item: Artifact, session: Session, limits: Limits) -> ArtifactEntry:
    return ArtifactEntry(**_head(item, f"artifact:{item.seq}"), artifact=item.artifact)


def _custom(item: Custom, session: Session, limits: Limits) -> CustomEntry | NotificationEntry:
    text = item.data.get("text") if isinstance(item.data, dict) else None
    if (item.namespace, item.event_name) == ("pilothouse", "diagnostic") and isinstance(text, str):
        message = clip(text, limits.value).text
        return NotificationEntry(
            **_head(item, f"notification:{item.seq}"), level="warning", title="Diagnostic", message=message
        )
    return CustomEntry(
        **_head(item, f"custom:{item.seq}"),
        namespace=item.namespace,
        event_name=item.event_name,
        data=clip_values(item.data, limits),
    )


_HEAD = ("seq", "timestamp", "turn_id")


def _head(item: SessionItem, name: str) -> dict[str, Any]:
    return {"id": name, "seq": item.seq, "timestamp": item.timestamp, "turn_id": item.turn_id}


def _same(item: SessionItem, entry: type[msgspec.Struct]) -> dict[str, Any]:
    """The fields that an entry takes over from its item."""
    return dict(_shared(item, set(entry.__struct_fields__) - {*_HEAD, "id", "pending"}))


def _shared(item: SessionItem, names: set[str]) -> Iterator[tuple[str, Any]]:
    return ((name, getattr(item, name)) for name in item.__struct_fields__ if name in names)


_MAKERS: Mapping[type[Any], Callable[[Any, Session, Limits], TranscriptEntry]] = {
    Message: _message,
    Thought: _thought,
    ToolCall: _call,
    Plan: _plan,
    Approval: _approval,
    Question: _question,
    Notification: _notification,
    Failure: _failure,
    Compaction: _compaction,
    Artifact: _artifact,
    Custom: _custom,
}
