"""What an agent can do, as consumers are told it: flags that are computed, never claimed.

Every flag starts as false. `capabilities_from_acp` turns on what the agent's own answers state, `observe` what its
events have shown; nothing turns a flag off again. A flag that no code here can reach would be a promise: add it to
one of the two tables together with the struct's field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import replace

from ..acp.model import to_wire
from ..acp.naming import camel
from .errors import ValidationError
from .events import EVENT_MIN_VERSION, EVENT_VERSION, Event
from .records import AudioContent, FileDiff, ImageContent
from .tools import is_plan_mode

__all__ = [
    "ACPCapabilities",
    "AgentDescription",
    "ApprovalFeatures",
    "Features",
    "FileOperationFeatures",
    "IntegrationMethod",
    "PlanningFeatures",
    "ResourceFeatures",
    "SessionControlFeatures",
    "StreamingFeatures",
    "UserInteractionFeatures",
    "capabilities_from_acp",
    "negotiate",
    "observe",
]

IntegrationMethod: TypeAlias = Literal["sdk", "http", "pty", "file-watch", "mcp", "acp"]
"""How an agent is reached; `acp` is added."""


class Described(Struct, kw_only=True, frozen=True, rename=camel):
    """Base of the parts. Flags that are off are sent too: a consumer should not have to know the defaults."""


class AgentDescription(Described, frozen=True):
    """Which agent it is."""

    name: str
    display_name: str
    icon: str
    version: str
    integration_method: IntegrationMethod


class StreamingFeatures(Described, frozen=True):
    """What arrives in pieces."""

    messages: bool = False
    tool_args: bool = False
    thinking: bool = False


class ApprovalFeatures(Described, frozen=True):
    """Whether the agent asks before it acts, and shows what it would do."""

    tool_calls: bool = False
    preview: bool = False


class SessionControlFeatures(Described, frozen=True):
    """What can be done with a session from outside."""

    pause: bool = False
    resume: bool = False
    cancel: bool = False


class PlanningFeatures(Described, frozen=True):
    """Lists of things to do, and a mode that only plans."""

    todos: bool = False
    plan_mode: bool = False


class ResourceFeatures(Described, frozen=True):
    """What the agent tells of its consumption."""

    token_usage: bool = False
    cost_tracking: bool = False
    context_window: bool = False


class FileOperationFeatures(Described, frozen=True):
    """What the agent tells of the files it changes."""

    diffs: bool = False
    batched_changes: bool = False


class UserInteractionFeatures(Described, frozen=True):
    """Whether the agent turns to the user by itself."""

    questions: bool = False
    notifications: bool = False


class Features(Described, frozen=True):
    """All flags; `custom_events` are the namespaces of custom events."""

    streaming: StreamingFeatures = StreamingFeatures()
    approval: ApprovalFeatures = ApprovalFeatures()
    session_control: SessionControlFeatures = SessionControlFeatures()
    sub_agents: bool = False
    planning: PlanningFeatures = PlanningFeatures()
    resources: ResourceFeatures = ResourceFeatures()
    file_operations: FileOperationFeatures = FileOperationFeatures()
    git: bool = False
    web_search: bool = False
    multimodal: bool = False
    user_interaction: UserInteractionFeatures = UserInteractionFeatures()
    thinking: bool = False
    custom_events: tuple[str, ...] = ()


class ACPCapabilities(Described, frozen=True, kw_only=True):
    """What a consumer may expect of an agent. `protocol_version` is that of the unified stream."""

    protocol_version: str = EVENT_VERSION
    agent: AgentDescription
    features: Features = Features()


# -- from the agent's own answers ---------------------------------------------------------------------------------


def capabilities_from_acp(
    initialize_result: Any, session_result: Any = None, *, icon: str = "", name: str = ""
) -> ACPCapabilities:
    """Read the answers to `initialize` and to `session/new` (as JSON or as schema types).

    What is missing or has the wrong type counts as not said. `name` stands in for an agent that does not name itself.
    """
    answer, session = _plain(initialize_result), _plain(session_result)
    info = _plain(answer.get("agentInfo"))
    own_name = _text(info.get("name")) or name or "agent"
    agent = AgentDescription(
        name=own_name,
        display_name=_text(info.get("title")) or own_name,
        icon=icon,
        version=_text(info.get("version")),
        integration_method="acp",
    )
    features = Features()
    for flag, stated in _stated(_plain(answer.get("agentCapabilities")), session).items():
        if stated:
            features = _with(features, flag)
    return ACPCapabilities(agent=agent, features=features)


def _stated(capabilities: Mapping[str, Any], session: Mapping[str, Any]) -> dict[str, bool]:
    prompt = _plain(capabilities.get("promptCapabilities"))
    resume = _plain(capabilities.get("sessionCapabilities")).get("resume")
    return {
        "multimodal": prompt.get("image") is True or prompt.get("audio") is True,
        "session_control.resume": capabilities.get("loadSession") is True or isinstance(resume, dict),
        "session_control.cancel": True,  # the protocol makes every agent stop on `session/cancel`
        "planning.plan_mode": any(map(is_plan_mode, _mode_words(session))),
    }


def _mode_words(session: Mapping[str, Any]) -> Iterator[str]:
    """Ids and names of the modes a session can be in, also where modes are an option among others."""
    modes = _items(_plain(session.get("modes")).get("availableModes"))
    for option in _items(session.get("configOptions")):
        if option.get("category") == "mode":
            modes = [*modes, *_items(option.get("options"))]
    for mode in modes:
        yield from filter(None, (_text(mode.get(key)) for key in ("id", "value", "name")))


def _plain(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Struct):
        value = to_wire(value)
    return value if isinstance(value, Mapping) else {}


def _items(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    """A text that can be sent on: a lone surrogate could not be encoded."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


# -- from what was seen -------------------------------------------------------------------------------------------

Test: TypeAlias = Callable[[Any], bool]


def _always(event: Any) -> bool:
    return True


def _has_preview(event: Any) -> bool:
    return event.preview is not None


def _has_diff(event: Any) -> bool:
    return bool(event.diff)


def _a_change_has_diff(event: Any) -> bool:
    return any(change.diff for change in event.changes)


def _gives_diff(event: Any) -> bool:
    return isinstance(event.structured, FileDiff)


def _has_media(event: Any) -> bool:
    blocks = event.content if isinstance(event.content, list) else (event.content,)
    return any(isinstance(block, (ImageContent, AudioContent)) for block in blocks)


_SHOWN: Mapping[str, tuple[tuple[str, Test], ...]] = {
    "message:delta": (("streaming.messages", _always), ("multimodal", _has_media)),
    "message:complete": (("multimodal", _has_media),),
    "thinking:start": (("thinking", _always),),
    "thinking:delta": (("thinking", _always), ("streaming.thinking", _always)),
    "thinking:complete": (("thinking", _always),),
    "tool:args_delta": (("streaming.tool_args", _always),),
    "tool:result": (("file_operations.diffs", _gives_diff),),
    "approval:requested": (("approval.tool_calls", _always), ("approval.preview", _has_preview)),
    "session:paused": (("session_control.pause", _always),),
    "session:resumed": (("session_control.resume", _always),),
    "file:change": (("file_operations.diffs", _has_diff),),
    "file:batch": (("file_operations.batched_changes", _always), ("file_operations.diffs", _a_change_has_diff)),
    "subagent:spawned": (("sub_agents", _always),),
    "subagent:progress": (("sub_agents", _always),),
    "subagent:completed": (("sub_agents", _always),),
    "progress:todo_update": (("planning.todos", _always),),
    "progress:plan_mode": (("planning.plan_mode", _always),),
    "resource:token_usage": (("resources.token_usage", _always),),
    "resource:cost": (("resources.cost_tracking", _always),),
    "resource:context_window": (("resources.context_window", _always),),
    "interaction:question": (("user_interaction.questions", _always),),
    "interaction:notification": (("user_interaction.notifications", _always),),
    "git:operation": (("git", _always),),
    "web:operation": (("web_search", _always),),
}
"""What an event of a type shows, and whether this one does."""


def observe(capabilities: ACPCapabilities, event: Event) -> ACPCapabilities:
    """The capabilities with what this event shows; the same object when it shows nothing new."""
    features = capabilities.features
    for flag, shows in _SHOWN.get(event.type, ()):
        if not _is_on(features, flag) and shows(event):
            features = _with(features, flag)
    if event.type == "custom":
        namespace = cast(Any, event).namespace
        if namespace not in features.custom_events:
            features = replace(features, custom_events=tuple(sorted({*features.custom_events, namespace})))
    return capabilities if features is capabilities.features else replace(capabilities, features=features)


def _is_on(features: Features, flag: str) -> bool:
    group, _, name = flag.rpartition(".")
    return bool(getattr(getattr(features, group) if group else features, name))


def _with(features: Features, flag: str) -> Features:
    group, _, name = flag.rpartition(".")
    if not group:
        return replace(features, **{name: True})
    return replace(features, **{group: replace(getattr(features, group), **{name: True})})


# -- versions -----------------------------------------------------------------------------------------------------

_VERSION = re.compile(r"v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?(?:[-+].*)?", re.DOTALL)


def negotiate(version: str, *, minimum: str | None = None) -> str:
    """The version of the unified stream to speak with a peer that speaks `version`: the older of the two.

    A peer reads everything down to `minimum`, or, when it does not say, down to the first of its major version.
    Raises ValidationError when there is no version that both read.
    """
    theirs = _version(version, "protocolVersion")
    lowest = _version(minimum, "minVersion") if minimum is not None else (theirs[0], 0, 0)
    if theirs < _version(EVENT_MIN_VERSION, ""):
        raise ValidationError(f"Expected version {EVENT_MIN_VERSION} or later, got {version!r}", "protocolVersion")
    if lowest > _version(EVENT_VERSION, ""):
        asked = minimum if minimum is not None else version
        raise ValidationError(
            f"Expected a peer that reads version {EVENT_VERSION}, got one that needs {asked!r}",
            "protocolVersion" if minimum is None else "minVersion",
        )
    return EVENT_VERSION if theirs > _version(EVENT_VERSION, "") else ".".join(map(str, theirs))


def _version(text: Any, path: str) -> tuple[int, int, int]:
    match = _VERSION.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValidationError(f"Expected a version such as '{EVENT_VERSION}', got {str(text)!r:.80}", path)
    major, minor, patch = (int(part or 0) for part in match.groups())
    return major, minor, patch
