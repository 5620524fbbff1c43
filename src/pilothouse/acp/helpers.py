"""Builders for what agents and clients send most, and the one question about a permission that matters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    AllowedOutcome,
    AudioContentBlock,
    AvailableCommand,
    AvailableCommandsUpdate,
    BlobResourceContents,
    ContentBlock,
    ContentToolCallContent,
    CurrentModeUpdate,
    EmbeddedResourceContentBlock,
    FileEditToolCallContent,
    ImageContentBlock,
    PermissionOption,
    PlanEntry,
    PlanEntryPriority,
    PlanEntryStatus,
    RequestPermissionResponse,
    ResourceContentBlock,
    SessionNotification,
    SessionUpdate,
    TerminalToolCallContent,
    TextContentBlock,
    TextResourceContents,
    ToolCallLocation,
    ToolCallProgress,
    ToolCallStart,
    ToolCallStatus,
    ToolKind,
    UserMessageChunk,
)

__all__ = [
    "ContentBlock",
    "SessionUpdate",
    "ToolCallContentVariant",
    "audio_block",
    "embedded_blob_resource",
    "embedded_text_resource",
    "image_block",
    "is_allowed",
    "plan_entry",
    "resource_block",
    "resource_link_block",
    "session_notification",
    "start_edit_tool_call",
    "start_read_tool_call",
    "start_tool_call",
    "text_block",
    "tool_content",
    "tool_diff_content",
    "tool_terminal_ref",
    "update_agent_message",
    "update_agent_message_text",
    "update_agent_thought",
    "update_agent_thought_text",
    "update_available_commands",
    "update_current_mode",
    "update_plan",
    "update_tool_call",
    "update_user_message",
    "update_user_message_text",
]

ToolCallContentVariant = ContentToolCallContent | FileEditToolCallContent | TerminalToolCallContent


def is_allowed(response: RequestPermissionResponse, options: Iterable[PermissionOption]) -> bool:
    """Whether the user allowed it: an option was chosen and its kind is `allow_once` or `allow_always`.

    The class of the outcome does not tell: choosing "Reject" is an `AllowedOutcome` too. Anything unclear, such as an
    option that was never offered, is a no.
    """
    outcome = response.outcome
    if not isinstance(outcome, AllowedOutcome):
        return False
    kinds = {option.kind for option in options if option.option_id == outcome.option_id}
    return bool(kinds) and kinds <= {"allow_once", "allow_always"}


# -- content --


def text_block(text: str) -> TextContentBlock:
    return TextContentBlock(text=text)


def image_block(data: str, mime_type: str, *, uri: str | None = None) -> ImageContentBlock:
    """`data` is base64."""
    return ImageContentBlock(data=data, mime_type=mime_type, uri=uri)


def audio_block(data: str, mime_type: str) -> AudioContentBlock:
    """`data` is base64."""
    return AudioContentBlock(data=data, mime_type=mime_type)


def resource_link_block(
    name: str,
    uri: str,
    *,
    mime_type: str | None = None,
    size: int | None = None,
    description: str | None = None,
    title: str | None = None,
) -> ResourceContentBlock:
    return ResourceContentBlock(
        name=name, uri=uri, mime_type=mime_type, size=size, description=description, title=title
    )


def embedded_text_resource(uri: str, text: str, *, mime_type: str | None = None) -> TextResourceContents:
    return TextResourceContents(uri=uri, text=text, mime_type=mime_type)


def embedded_blob_resource(uri: str, blob: str, *, mime_type: str | None = None) -> BlobResourceContents:
    return BlobResourceContents(uri=uri, blob=blob, mime_type=mime_type)


def resource_block(resource: TextResourceContents | BlobResourceContents) -> EmbeddedResourceContentBlock:
    return EmbeddedResourceContentBlock(resource=resource)


def tool_content(block: ContentBlock) -> ContentToolCallContent:
    return ContentToolCallContent(content=block)


def tool_diff_content(path: str, new_text: str, old_text: str | None = None) -> FileEditToolCallContent:
    """`old_text` is None for a new file."""
    return FileEditToolCallContent(path=path, new_text=new_text, old_text=old_text)


def tool_terminal_ref(terminal_id: str) -> TerminalToolCallContent:
    return TerminalToolCallContent(terminal_id=terminal_id)


# -- updates --


def session_notification(session_id: str, update: SessionUpdate) -> SessionNotification:
    return SessionNotification(session_id=session_id, update=update)


def update_user_message(content: ContentBlock) -> UserMessageChunk:
    return UserMessageChunk(content=content)


def update_user_message_text(text: str) -> UserMessageChunk:
    return UserMessageChunk(content=text_block(text))


def update_agent_message(content: ContentBlock) -> AgentMessageChunk:
    return AgentMessageChunk(content=content)


def update_agent_message_text(text: str) -> AgentMessageChunk:
    return AgentMessageChunk(content=text_block(text))


def update_agent_thought(content: ContentBlock) -> AgentThoughtChunk:
    return AgentThoughtChunk(content=content)


def update_agent_thought_text(text: str) -> AgentThoughtChunk:
    return AgentThoughtChunk(content=text_block(text))


def plan_entry(
    content: str, *, priority: PlanEntryPriority = "medium", status: PlanEntryStatus = "pending"
) -> PlanEntry:
    return PlanEntry(content=content, priority=priority, status=status)


def update_plan(entries: Iterable[PlanEntry]) -> AgentPlanUpdate:
    return AgentPlanUpdate(entries=list(entries))


def update_available_commands(commands: Iterable[AvailableCommand]) -> AvailableCommandsUpdate:
    return AvailableCommandsUpdate(available_commands=list(commands))


def update_current_mode(current_mode_id: str) -> CurrentModeUpdate:
    return CurrentModeUpdate(current_mode_id=current_mode_id)


# -- tool calls --


def start_tool_call(
    tool_call_id: str,
    title: str,
    *,
    kind: ToolKind | None = None,
    status: ToolCallStatus | None = None,
    content: Sequence[ToolCallContentVariant] | None = None,
    locations: Sequence[ToolCallLocation] | None = None,
    raw_input: Any | None = None,
    raw_output: Any | None = None,
) -> ToolCallStart:
    return ToolCallStart(
        tool_call_id=tool_call_id,
        title=title,
        kind=kind,
        status=status,
        content=None if content is None else list(content),
        locations=None if locations is None else list(locations),
        raw_input=raw_input,
        raw_output=raw_output,
    )


def start_read_tool_call(
    tool_call_id: str, title: str, path: str, *, extra_options: Sequence[ToolCallContentVariant] | None = None
) -> ToolCallStart:
    return start_tool_call(
        tool_call_id,
        title,
        kind="read",
        status="pending",
        content=extra_options,
        locations=[ToolCallLocation(path=path)],
        raw_input={"path": path},
    )


def start_edit_tool_call(
    tool_call_id: str,
    title: str,
    path: str,
    content: Any,
    *,
    extra_options: Sequence[ToolCallContentVariant] | None = None,
) -> ToolCallStart:
    return start_tool_call(
        tool_call_id,
        title,
        kind="edit",
        status="pending",
        content=extra_options,
        locations=[ToolCallLocation(path=path)],
        raw_input={"path": path, "content": content},
    )


def update_tool_call(
    tool_call_id: str,
    *,
    title: str | None = None,
    kind: ToolKind | None = None,
    status: ToolCallStatus | None = None,
    content: Sequence[ToolCallContentVariant] | None = None,
    locations: Sequence[ToolCallLocation] | None = None,
    raw_input: Any | None = None,
    raw_output: Any | None = None,
) -> ToolCallProgress:
    """Fields left out stay as they are; those given replace the earlier value."""
    return ToolCallProgress(
        tool_call_id=tool_call_id,
        title=title,
        kind=kind,
        status=status,
        content=None if content is None else list(content),
        locations=None if locations is None else list(locations),
        raw_input=raw_input,
        raw_output=raw_output,
    )
