"""Nouns and rules of sessions, without any I/O: events, commands, capabilities, the fold, tools, risk, policy.

The names below are imported when they are first used, so that a program which only writes events does not load the
shell parser that risk and policy need. A test holds this table against the modules.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .capabilities import *  # noqa: F403
    from .commands import *  # noqa: F403
    from .discovery import *  # noqa: F403
    from .errors import *  # noqa: F403
    from .events import *  # noqa: F403
    from .policy import decide as decide
    from .records import *  # noqa: F403
    from .risk import assess_risk as assess_risk
    from .tools import categorize_tool as categorize_tool
    from .tools import describe_tool_call as describe_tool_call

_NAMES = {
    "capabilities": """
        ACPCapabilities AgentDescription ApprovalFeatures Features FileOperationFeatures IntegrationMethod
        PlanningFeatures ResourceFeatures SessionControlFeatures StreamingFeatures UserInteractionFeatures
        capabilities_from_acp negotiate observe
    """,
    "commands": """
        ACPCommand AnswerQuestionCommand ApproveToolCallCommand COMMANDS CancelCommand CancelQueuedCommand Command
        DenyToolCallCommand EditQueuedCommand ImageAttachment MoveQueuedCommand PauseCommand PermissionPolicy Remember
        RenameCommand ResumeCommand SendMessageCommand SetConfigOptionCommand SetModeCommand SetModelCommand
        SetPermissionPolicyCommand TerminateCommand encode_command parse_command
    """,
    "discovery": "AgentDataPaths DiscoveredSession DiscoveredStatus SessionDiscoveryEvent StartSessionOptions",
    "errors": "ACPError ValidationError",
    "events": """
        ACPEvent ACPEventBase ACP_MIN_VERSION ACP_VERSION ApprovalRequestedEvent ApprovalResolvedEvent
        ContextWindowEvent CostUpdateEvent CustomEvent DERIVED EVENT_MIN_VERSION EVENT_TYPES EVENT_VERSION
        EnvironmentInfoEvent Event FileChangeBatchEvent FileChangeEvent GitOperationEvent MessageCompleteEvent
        MessageDeltaEvent MessageStartEvent NotificationEvent PlanModeEvent ProgressEvent RateLimitEvent
        SessionCompletedEvent SessionErrorEvent SessionPausedEvent SessionResumedEvent SessionStartedEvent
        SessionStatusChangedEvent SubAgentCompletedEvent SubAgentProgressEvent SubAgentSpawnedEvent
        ThinkingCompleteEvent ThinkingDeltaEvent ThinkingStartEvent TodoUpdateEvent TokenUsageEvent
        ToolCallArgsDeltaEvent ToolCallErrorEvent ToolCallExecutingEvent ToolCallResultEvent ToolCallStartEvent
        UserQuestionEvent WebOperationEvent create_event decode_event encode_event events_by_prefix filter_events
        reset_all_sequences reset_sequence utc_now
    """,
    "policy": "decide",
    "records": """
        ApprovalPreview AudioContent BranchCreated BranchSwitched ChangeType CommandOutput CommandPreview CommitMade
        CostBreakdown DescriptionPreview DiffPreview EnvironmentAgent EnvironmentContext EnvironmentModel
        EnvironmentProject EnvironmentRuntime FileChange FileChangeSummary FileDiff GitOperation ImageContent
        MessageContent MessageRole Option OtherContent PullRequestCreated Pushed Record ResourceContent RiskLevel
        RuleOffer SearchMatch SearchResults SessionStatus SessionSummary Stashed TextContent Todo TokenUsage
        ToolCategory ToolResultContent ToolStructuredOutput ToolUseContent WebContent WebFetched WebOperation
        WebResult WebSearched
    """,
    "risk": "assess_risk",
    "tools": "categorize_tool describe_tool_call",
}
_LATER = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_LATER)  # noqa: PLE0605


if not TYPE_CHECKING:  # a checker sees the imports above, and so notices a name that is not there

    def __getattr__(name: str) -> object:
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f".{_LATER[name]}", __name__), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
