"""The parts that events are made of: content blocks, tool outputs, previews, usage, cost, summaries.

Wire names and shapes are those of the unified event stream. What Pilothouse adds is optional and marked `added` in
the docstring, so that a consumer written for the plain stream can read everything.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct, field

from ..acp.naming import camel

__all__ = [
    "ApprovalPreview",
    "AudioContent",
    "BranchCreated",
    "BranchSwitched",
    "ChangeType",
    "CommandOutput",
    "CommandPreview",
    "CommitMade",
    "CostBreakdown",
    "DescriptionPreview",
    "DiffPreview",
    "EnvironmentAgent",
    "EnvironmentContext",
    "EnvironmentModel",
    "EnvironmentProject",
    "EnvironmentRuntime",
    "FileChange",
    "FileChangeSummary",
    "FileDiff",
    "GitOperation",
    "ImageContent",
    "MessageContent",
    "MessageRole",
    "Option",
    "OtherContent",
    "PullRequestCreated",
    "Pushed",
    "Record",
    "ResourceContent",
    "RiskLevel",
    "RuleOffer",
    "SearchMatch",
    "SearchResults",
    "SessionStatus",
    "SessionSummary",
    "Stashed",
    "TextContent",
    "Todo",
    "TokenUsage",
    "ToolCategory",
    "ToolResultContent",
    "ToolStructuredOutput",
    "ToolUseContent",
    "WebContent",
    "WebFetched",
    "WebOperation",
    "WebResult",
    "WebSearched",
]

SessionStatus: TypeAlias = Literal[
    "starting",
    "running",
    "thinking",
    "waiting_for_input",
    "waiting_for_approval",
    "paused",
    "idle",
    "completed",
    "error",
]
MessageRole: TypeAlias = Literal["user", "assistant", "system"]
ToolCategory: TypeAlias = Literal[
    "file_read", "file_write", "file_edit", "terminal", "search", "web", "git", "mcp", "agent", "other"
]
RiskLevel: TypeAlias = Literal["low", "medium", "high", "critical"]
ChangeType: TypeAlias = Literal["created", "modified", "deleted"]


class Record(Struct, kw_only=True, omit_defaults=True, rename=camel):
    """Base of the parts: snake_case here, camelCase on the wire, optional fields left out when unknown."""


# -- message content ----------------------------------------------------------------------------------------------


class TextContent(Record, tag_field="type", tag="text"):
    text: str


class ImageContent(Record, tag_field="type", tag="image"):
    """A picture by URL; one sent inline has a `data:` URL."""

    url: str
    mime_type: str | None = None


class ToolUseContent(Record, tag_field="type", tag="tool_use"):
    tool_call_id: str
    name: str
    input: Any


class ToolResultContent(Record, tag_field="type", tag="tool_result"):
    tool_call_id: str
    content: str
    is_error: bool | None = None


class AudioContent(Record, tag_field="type", tag="audio"):
    """Added: a sound by URL."""

    url: str
    mime_type: str | None = None


class ResourceContent(Record, tag_field="type", tag="resource"):
    """Added: a file or other resource, linked, or with its text or its bytes in base64."""

    uri: str
    name: str | None = None
    mime_type: str | None = None
    text: str | None = None
    blob: str | None = None


class OtherContent(Record, tag_field="type", tag="other"):
    """Added: a block of a kind that is not known here, kept whole."""

    block: Any


MessageContent: TypeAlias = (
    TextContent | ImageContent | ToolUseContent | ToolResultContent | AudioContent | ResourceContent | OtherContent
)

# -- tool output --------------------------------------------------------------------------------------------------


class FileDiff(Record, tag_field="type", tag="file_diff"):
    path: str
    diff: str
    change_type: ChangeType


class SearchMatch(Record):
    """One hit. `line` is 0 when the tool names files only."""

    file: str
    line: int
    content: str


class SearchResults(Record, tag_field="type", tag="search_results"):
    results: list[SearchMatch]


class CommandOutput(Record, tag_field="type", tag="command_output"):
    """Added: the `signal` that ended the command; its exit code is then -1, unless the agent told another."""

    exit_code: int
    stdout: str
    stderr: str
    signal: str | None = None


class WebContent(Record, tag_field="type", tag="web_content"):
    url: str
    title: str | None = None
    summary: str | None = None


ToolStructuredOutput: TypeAlias = FileDiff | SearchResults | CommandOutput | WebContent

# -- approvals ----------------------------------------------------------------------------------------------------


class DiffPreview(Record, tag_field="type", tag="diff"):
    path: str
    diff: str


class CommandPreview(Record, tag_field="type", tag="command"):
    command: str
    working_dir: str


class DescriptionPreview(Record, tag_field="type", tag="description"):
    text: str


ApprovalPreview: TypeAlias = DiffPreview | CommandPreview | DescriptionPreview


class Option(Record):
    """Added: an answer as the agent offered it. `name` is the agent's own label.

    `label` is the hub's label for what it does; `is_misleading` is true if the agent's label says the opposite.
    """

    option_id: str
    name: str
    kind: str
    label: str = ""
    is_misleading: bool = False


class RuleOffer(Record):
    """Added: a rule that "always" can store. `text` states its exact reach; exactly that is stored.

    `arguments` are those that a rule about a tool is limited to.
    """

    offer_id: Literal["exact", "any_arguments"]
    text: str
    subject: str
    pattern: str
    arguments: dict[str, Any] | None = None


# -- files --------------------------------------------------------------------------------------------------------


class FileChange(Record):
    """One file of a batch."""

    path: str
    change_type: ChangeType
    diff: str | None = None
    lines_added: int | None = None
    lines_removed: int | None = None


class FileChangeSummary(Record):
    path: str
    change_type: ChangeType
    lines_added: int
    lines_removed: int


# -- planning -----------------------------------------------------------------------------------------------------


class Todo(Record):
    """One item of the agent's list. `priority` and `active_form` are added."""

    content: str
    status: Literal["pending", "in_progress", "completed"]
    priority: Literal["high", "medium", "low"] | None = None
    active_form: str | None = None


# -- resources ----------------------------------------------------------------------------------------------------


class TokenUsage(Record):
    """Counts of tokens. `thought_tokens` is added."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    thought_tokens: int | None = None


class CostBreakdown(Record):
    """Money. Agents tell a total; the parts are left out where they are not known."""

    total: float
    currency: str
    input: float | None = None
    output: float | None = None


class SessionSummary(Record):
    """What a session did; `duration` is in milliseconds."""

    files_changed: list[FileChangeSummary]
    token_usage: TokenUsage
    duration: int
    tool_calls_count: int
    messages_count: int
    error_count: int
    cost: CostBreakdown | None = None


# -- environment --------------------------------------------------------------------------------------------------


class EnvironmentAgent(Record):
    name: str
    version: str
    display_name: str


class EnvironmentModel(Record):
    id: str
    display_name: str | None = None
    provider: str | None = None


class EnvironmentProject(Record):
    path: str
    name: str
    language: str | None = None
    framework: str | None = None


class EnvironmentRuntime(Record):
    os: str
    arch: str
    node_version: str | None = None
    python_version: str | None = None


class EnvironmentContext(Record):
    """Who works where. The model is left out while the agent has not named it."""

    agent: EnvironmentAgent
    project: EnvironmentProject
    runtime: EnvironmentRuntime | None = None
    model: EnvironmentModel | None = None


# -- git and the web ----------------------------------------------------------------------------------------------


class CommitMade(Record, tag_field="kind", tag="commit"):
    """A commit; `hash` and `files_changed` are read from git's answer and are "" and 0 where it did not say."""

    message: str
    hash: str
    files_changed: int


class BranchCreated(Record, tag_field="kind", tag="branch_create"):
    name: str
    from_: str = field(name="from", default="HEAD")


class BranchSwitched(Record, tag_field="kind", tag="branch_switch"):
    name: str


class PullRequestCreated(Record, tag_field="kind", tag="pr_create"):
    number: int
    title: str
    url: str


class Pushed(Record, tag_field="kind", tag="push"):
    remote: str
    branch: str


class Stashed(Record, tag_field="kind", tag="stash"):
    action: Literal["push", "pop"]


GitOperation: TypeAlias = CommitMade | BranchCreated | BranchSwitched | PullRequestCreated | Pushed | Stashed


class WebResult(Record):
    title: str
    url: str
    snippet: str


class WebSearched(Record, tag_field="kind", tag="search"):
    query: str
    results: list[WebResult] | None = None


class WebFetched(Record, tag_field="kind", tag="fetch"):
    url: str
    title: str | None = None
    status_code: int | None = None


WebOperation: TypeAlias = WebSearched | WebFetched
