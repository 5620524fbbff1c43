"""The unified event stream: every fact about a session, typed, one struct per `type`.

The log stores these and nothing else; packets and ACP updates are projections of them. An event is born with
`seq` 0 and gets its number from the log. `source` travels beside an event, not in it: the JSON of the ACP update
the event came from, exactly as received. It is `None` for an event that no update gave, and empty (`b""`) for one
whose update already rides on an earlier event; so whoever turns events back into updates knows for each event
whether to repeat, to synthesise or to skip.

Fields marked `added` are Pilothouse's own and optional; all else is as the stream defines it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeVar, Union, cast, get_args

import msgspec
from msgspec import Struct, StructMeta, field

from ..acp.naming import camel
from .errors import ACPError, ValidationError
from .records import (
    ApprovalPreview,
    ChangeType,
    CostBreakdown,
    EnvironmentContext,
    FileChange,
    GitOperation,
    MessageContent,
    MessageRole,
    Option,
    RiskLevel,
    RuleOffer,
    SessionStatus,
    SessionSummary,
    Todo,
    TokenUsage,
    ToolCategory,
    ToolStructuredOutput,
    WebOperation,
)

EVENT_VERSION = ACP_VERSION = "1.0.0"
EVENT_MIN_VERSION = ACP_MIN_VERSION = "1.0.0"

DERIVED = b""
"""`source` of an event whose update rides on an earlier event."""


class EventMeta(StructMeta):
    """Makes the discriminator readable as `type`."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: Any) -> EventMeta:
        cls = super().__new__(mcs, name, bases, namespace, **config)
        setattr(cls, "type", cls.__struct_config__.tag)  # noqa: B010  # declared by each class, not by this one
        return cls


class Event(Struct, metaclass=EventMeta, kw_only=True, omit_defaults=True, rename=camel, tag_field="type", dict=True):
    """Base of all events."""

    seq: int
    session_id: str
    timestamp: str
    type: ClassVar[str]

    if TYPE_CHECKING:

        @property
        def source(self) -> bytes | None: ...

        @source.setter
        def source(self, value: bytes | None) -> None: ...


if not TYPE_CHECKING:
    Event.source = None  # an attribute of instances that is no field: it is stored and sent beside the event


# -- session ------------------------------------------------------------------------------------------------------


class SessionStartedEvent(Event, tag="session:started"):
    """A session exists: the agent answered `session/new`."""

    agent: str = ""
    project_path: str = ""
    project_name: str = ""
    working_directory: str = ""
    model: str | None = None
    environment: EnvironmentContext | None = None


class SessionResumedEvent(Event, tag="session:resumed"):
    """A session goes on in a new agent process, or after a pause."""

    previous_session_id: str | None = None


class SessionPausedEvent(Event, tag="session:paused"):
    """No further prompt is started until the session is resumed."""

    reason: str | None = None


class SessionCompletedEvent(Event, tag="session:completed"):
    """The session is over; nothing but a resume follows."""

    summary: SessionSummary


class SessionErrorEvent(Event, tag="session:error"):
    """Something failed that is not one tool call: a prompt, the agent's process, the session."""

    error: ACPError


class SessionStatusChangedEvent(Event, tag="session:status_changed"):
    """The status moved; never emitted when it stays the same."""

    from_: SessionStatus = field(name="from")
    to: SessionStatus
    reason: str | None = None


# -- messages and thoughts ----------------------------------------------------------------------------------------


class MessageStartEvent(Event, tag="message:start"):
    """A message begins; deltas and one `message:complete` with the same id follow."""

    message_id: str
    role: MessageRole


class MessageDeltaEvent(Event, tag="message:delta"):
    """A piece of a message. `content` (added) is the block when it is not text; `delta` is then empty."""

    message_id: str
    role: MessageRole
    delta: str
    content: MessageContent | None = None


class MessageCompleteEvent(Event, tag="message:complete"):
    """The whole message: something else follows, or the turn ended."""

    message_id: str
    role: MessageRole
    content: list[MessageContent]
    model: str | None = None
    stop_reason: str | None = None


class ThinkingStartEvent(Event, tag="thinking:start"):
    """A thought begins."""

    message_id: str


class ThinkingDeltaEvent(Event, tag="thinking:delta"):
    """A piece of a thought. `content` (added) is the block when it is not text."""

    message_id: str
    delta: str
    content: MessageContent | None = None


class ThinkingCompleteEvent(Event, tag="thinking:complete"):
    """The whole thought."""

    message_id: str
    content: str
    redacted: bool | None = None


# -- tools --------------------------------------------------------------------------------------------------------


class ToolCallStartEvent(Event, tag="tool:start"):
    """A tool call is known; `tool:result` or `tool:error` will end it.

    Added: the agent's own `title` and ACP `kind`, the files concerned (`locations`), the call that this one runs
    inside of (`parent_tool_call_id`).
    """

    tool_call_id: str
    name: str
    category: ToolCategory
    description: str | None = None
    title: str | None = None
    kind: str | None = None
    locations: list[dict[str, Any]] | None = None
    parent_tool_call_id: str | None = None


class ToolCallArgsDeltaEvent(Event, tag="tool:args_delta"):
    """Arguments arrive before the tool runs. The deltas joined are the JSON text of the arguments.

    An agent that sends its arguments anew instead of growing them gives `replace` (added): forget what came before.
    """

    tool_call_id: str
    delta: str
    replace: bool = False


class ToolCallExecutingEvent(Event, tag="tool:executing"):
    """The tool is about to run, or runs, with this input. `risk_reasons` (added) explain the level."""

    tool_call_id: str
    name: str
    input: dict[str, Any]
    risk_level: RiskLevel
    requires_approval: bool
    risk_reasons: list[str] = []


class ToolCallResultEvent(Event, tag="tool:result"):
    """The tool ended well; `duration` is in milliseconds since it started to execute."""

    tool_call_id: str
    name: str
    output: str
    duration: int
    structured: ToolStructuredOutput | None = None


class ToolCallErrorEvent(Event, tag="tool:error"):
    """The tool failed, was refused, or never came to an end. Added: what it had said (`output`, `structured`)."""

    tool_call_id: str
    name: str
    error: ACPError
    duration: int | None = None
    output: str | None = None
    structured: ToolStructuredOutput | None = None


# -- approvals ----------------------------------------------------------------------------------------------------


class ApprovalRequestedEvent(Event, tag="approval:requested"):
    """A decision is needed before the tool may run.

    Added: the agent's `options`, `risk_reasons` that explain the risk, and the fields that the hub sets: `notes` are
    written by the hub. `origin` is `hub` if the agent did not ask and the hub requests approval for an act itself.
    `rule_offers` are the rules that "always" can store, the narrowest first; without any, `rule_refusal` says why.
    `question_ids` are the questions that this tool asks its user: an approval carries their answers. `chooses_mode` is
    true if the options are modes to continue in, as at the end of a plan, so that an "always" among them names a mode.
    """

    request_id: str
    tool_call_id: str
    tool_name: str
    tool_input: dict[str, Any]
    description: str
    risk_level: RiskLevel
    expires_at: str | None = None
    preview: ApprovalPreview | None = None
    options: list[Option] = []
    risk_reasons: list[str] = []
    notes: list[str] = []
    origin: Literal["agent", "hub"] = "agent"
    rule_offers: list[RuleOffer] = []
    rule_refusal: str | None = None
    question_ids: list[str] = []
    chooses_mode: bool = False


class ApprovalResolvedEvent(Event, tag="approval:resolved"):
    """The decision. `cancelled` (added) is when the turn ended or the hub restarted before anyone decided.

    Added: the option that was chosen, and who or which rule decided; `deviceId` if that was a paired device.
    """

    request_id: str
    tool_call_id: str
    approved: bool
    resolved_by: Literal["user", "policy", "timeout", "cancelled"]
    reason: str | None = None
    option_id: str | None = None
    decided_by: str | None = None
    device_id: str | None = None


# -- files --------------------------------------------------------------------------------------------------------


class FileChangeEvent(Event, tag="file:change"):
    """A tool call that ended changed one file."""

    path: str
    change_type: ChangeType
    diff: str | None = None
    language: str | None = None
    lines_added: int | None = None
    lines_removed: int | None = None
    tool_call_id: str | None = None


class FileChangeBatchEvent(Event, tag="file:batch"):
    """A tool call that ended changed several files."""

    changes: list[FileChange]
    description: str | None = None
    tool_call_id: str | None = None


# -- sub-agents ---------------------------------------------------------------------------------------------------


class SubAgentSpawnedEvent(Event, tag="subagent:spawned"):
    """A tool call, or the agent by itself, set another agent to work."""

    sub_agent_id: str
    parent_tool_call_id: str
    task: str
    model: str | None = None


class SubAgentProgressEvent(Event, tag="subagent:progress"):
    """A sign of life of a sub-agent; `progress` goes from 0 to 100."""

    sub_agent_id: str
    message: str
    progress: float | None = None


class SubAgentCompletedEvent(Event, tag="subagent:completed"):
    """A sub-agent ended, well or not."""

    sub_agent_id: str
    parent_tool_call_id: str
    result: str
    token_usage: TokenUsage | None = None


# -- progress -----------------------------------------------------------------------------------------------------


class TodoUpdateEvent(Event, tag="progress:todo_update"):
    """The agent's list of things to do, whole."""

    todos: list[Todo]


class PlanModeEvent(Event, tag="progress:plan_mode"):
    """The session entered or left a mode in which the agent only plans. `mode_id` (added) is the mode it is in now."""

    active: bool
    plan: str | None = None
    mode_id: str | None = None


class ProgressEvent(Event, tag="progress:update"):
    """Something moved. With `tool_call_id` (added) it is about that call, and then `label` is the call's title.

    Added: `output` is text the call has printed so far, to be appended, or, with `replace`, to stand for all of it.
    """

    label: str
    current: float | None = None
    total: float | None = None
    percentage: float | None = None
    tool_call_id: str | None = None
    output: str | None = None
    replace: bool = False
    locations: list[dict[str, Any]] | None = None


# -- resources ----------------------------------------------------------------------------------------------------


class TokenUsageEvent(Event, tag="resource:token_usage"):
    """Tokens of one answer (`delta`) and of the session so far (`cumulative`)."""

    delta: TokenUsage
    cumulative: TokenUsage
    message_id: str | None = None


class CostUpdateEvent(Event, tag="resource:cost"):
    """Money since the last time (`delta`) and of the session so far (`cumulative`)."""

    delta: CostBreakdown
    cumulative: CostBreakdown


class ContextWindowEvent(Event, tag="resource:context_window"):
    """How full the model's context is."""

    used: int
    limit: int
    percentage: float


class RateLimitEvent(Event, tag="resource:rate_limit"):
    """The provider refuses for now; `retry_after` is in seconds, 0 when it did not say."""

    retry_after: float
    limit: str
    message: str | None = None


# -- the rest -----------------------------------------------------------------------------------------------------


class EnvironmentInfoEvent(Event, tag="environment:info"):
    """Who works where, as soon as it is known and again when it changes."""

    context: EnvironmentContext


class UserQuestionEvent(Event, tag="interaction:question"):
    """The agent asks the user. Added: a form's JSON schema, a URL to open, several answers allowed, the tool call."""

    question_id: str
    question: str
    options: list[str] | None = None
    default_value: str | None = None
    expires_at: str | None = None
    multi_select: bool = False
    form: dict[str, Any] | None = None
    url: str | None = None
    tool_call_id: str | None = None


class NotificationEvent(Event, tag="interaction:notification"):
    """Something to tell the user."""

    level: Literal["info", "warning", "error", "success"]
    title: str
    message: str
    action_url: str | None = None


class GitOperationEvent(Event, tag="git:operation"):
    """A tool call that ended well did this to the repository."""

    operation: GitOperation
    tool_call_id: str | None = None


class WebOperationEvent(Event, tag="web:operation"):
    """A tool call that ended well searched or fetched."""

    operation: WebOperation
    tool_call_id: str | None = None


class CustomEvent(Event, tag="custom"):
    """A fact outside the vocabulary: `acp` for updates without a type of their own, `pilothouse` for the hub's."""

    namespace: str
    event_name: str
    data: dict[str, Any]


ACPEventBase = Event
ACPEvent: TypeAlias = Union[  # noqa: UP007  # 37 types read better one a line
    SessionStartedEvent,
    SessionResumedEvent,
    SessionPausedEvent,
    SessionCompletedEvent,
    SessionErrorEvent,
    SessionStatusChangedEvent,
    MessageStartEvent,
    MessageDeltaEvent,
    MessageCompleteEvent,
    ThinkingStartEvent,
    ThinkingDeltaEvent,
    ThinkingCompleteEvent,
    ToolCallStartEvent,
    ToolCallArgsDeltaEvent,
    ToolCallExecutingEvent,
    ToolCallResultEvent,
    ToolCallErrorEvent,
    ApprovalRequestedEvent,
    ApprovalResolvedEvent,
    FileChangeEvent,
    FileChangeBatchEvent,
    SubAgentSpawnedEvent,
    SubAgentProgressEvent,
    SubAgentCompletedEvent,
    TodoUpdateEvent,
    PlanModeEvent,
    ProgressEvent,
    TokenUsageEvent,
    CostUpdateEvent,
    ContextWindowEvent,
    RateLimitEvent,
    EnvironmentInfoEvent,
    UserQuestionEvent,
    NotificationEvent,
    GitOperationEvent,
    WebOperationEvent,
    CustomEvent,
]
EVENT_TYPES: Mapping[str, type[Event]] = {cls.type: cls for cls in get_args(ACPEvent)}
"""Every event type by its wire name."""

# -- reading, writing, choosing -----------------------------------------------------------------------------------

_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(ACPEvent)
_encode = msgspec.json.Encoder().encode


def encode_event(event: Event, *, source: bool = False) -> bytes:
    """The event as JSON. With `source` its verbatim update goes along as a field of that name.

    The field is null when the update rides on an earlier event, and not there when there is none.
    """
    data = _encode(event)
    if source and event.source is not None:
        return data[:-1] + b',"source":' + (event.source or b"null") + b"}"
    return data


def decode_event(data: bytes | str | Mapping[str, Any]) -> ACPEvent:
    """Read an event, its source too if it comes along.

    A type from a later version is kept as a `custom` event of namespace `unified`. Raises ValidationError that names
    the field.
    """
    event = _decode_event(data)
    if b'"source"' in data if isinstance(data, bytes) else "source" in data:
        event.source = _source_in(data)
    return cast(ACPEvent, event)


class _Sourced(Struct):
    source: msgspec.Raw = msgspec.Raw()


def _source_in(data: bytes | str | Mapping[str, Any]) -> bytes | None:
    try:
        found = (
            _encode(data["source"]) if isinstance(data, Mapping) else msgspec.json.decode(data, type=_Sourced).source
        )
    except (msgspec.DecodeError, UnicodeError, RecursionError, TypeError, KeyError):
        return None
    return DERIVED if bytes(found) == b"null" else bytes(found) or None


def _decode_event(data: bytes | str | Mapping[str, Any]) -> Event:
    try:
        return cast(Event, _convert(data) if isinstance(data, Mapping) else _decoder.decode(data))
    except msgspec.ValidationError as exc:
        refusal = ValidationError(*_where(exc))
    except (msgspec.DecodeError, UnicodeError, RecursionError, TypeError) as exc:
        raise ValidationError(str(exc)) from None
    later = _later(data)
    if later is None:
        raise refusal
    return later


def events_by_prefix(prefix: str) -> tuple[type[Event], ...]:
    """The types of one group, such as `tool:`."""
    return tuple(cls for name, cls in EVENT_TYPES.items() if name.startswith(prefix))


EventT = TypeVar("EventT", bound=Event)


def filter_events(events: Iterable[EventT], *prefixes: str) -> Iterator[EventT]:
    """Those events whose type starts with one of the prefixes; all of them when none is given."""
    return (event for event in events if event.type.startswith(prefixes or ""))


def _convert(fields: Mapping[str, Any]) -> Any:
    return msgspec.convert(fields, ACPEvent)


def _later(data: bytes | str | Mapping[str, Any]) -> Event | None:
    """An event of a type that this version does not know; None for one that is merely wrong."""
    try:
        fields = dict(data) if isinstance(data, Mapping) else msgspec.json.decode(data)
        kind = fields.pop("type")
        if not isinstance(kind, str) or kind in EVENT_TYPES:
            return None
        head = {key: fields.pop(key, default) for key, default in (("seq", 0), ("sessionId", ""), ("timestamp", ""))}
        custom = {"type": "custom", "namespace": "unified", "eventName": kind, "data": fields}
        return cast(Event, _convert({**head, **custom}))
    except (msgspec.DecodeError, UnicodeError, RecursionError, TypeError, AttributeError, KeyError):
        return None


def _where(exc: msgspec.ValidationError) -> tuple[str, str]:
    """Message and path of what msgspec found, the path in wire names."""
    message, _, path = str(exc).partition(" - at `")
    return message, path.rstrip("`") or "$"


# -- making events by hand ----------------------------------------------------------------------------------------

_HEAD = {"seq", "sessionId", "timestamp"}
_sequences: dict[str, int] = {}


def utc_now() -> str:
    """The time as events carry it: ISO 8601 in UTC with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def create_event(
    session_id: str, event: Mapping[str, Any] | None = None, /, *, now: Callable[[], str] = utc_now, **fields: Any
) -> ACPEvent:
    """Make an event from its `type` and fields (wire names or snake_case), numbered 1, 2, 3 … within its session.

    For programs that produce events without a log; the numbers live in this process only. The clock is an
    argument. Raises ValidationError that names the field.
    """
    if event is not None and not isinstance(event, Mapping):
        raise ValidationError(f"Expected the type and fields of an event as a dict, got {event!r:.100}", "event")
    given = {_wire_name(key): value for key, value in {**(event or {}), **fields}.items()}
    kind = given.pop("type", None)
    cls = EVENT_TYPES.get(kind) if isinstance(kind, str) else None
    if cls is None:
        near = get_close_matches(str(kind), EVENT_TYPES, 1)
        hint = f"; did you mean {near[0]!r}?" if near else f", one of {', '.join(EVENT_TYPES)}"
        raise ValidationError(f"Expected the type of an event, got {kind!r}{hint}", "type")
    known = set(cls.__struct_encode_fields__) - _HEAD
    for key in given:
        if key in _HEAD:
            raise ValidationError("It is given by create_event itself", key)
        if key not in known:
            raise ValidationError(f"`{kind}` has no such field; it has {', '.join(sorted(known))}", key)
    seq = _sequences.get(session_id, 0) + 1
    head = {"type": kind, "seq": seq, "sessionId": session_id, "timestamp": now()}
    try:
        made = cast(ACPEvent, _convert({**head, **msgspec.to_builtins(given)}))
        _encode(made)
    except msgspec.ValidationError as exc:
        raise ValidationError(*_where(exc)) from None
    except (TypeError, UnicodeError, RecursionError) as exc:
        raise ValidationError(f"`{kind}` holds what JSON cannot: {exc}") from None
    _sequences[session_id] = seq
    return made


def reset_sequence(session_id: str) -> None:
    """Let `create_event` count this session from 1 again."""
    _sequences.pop(session_id, None)


def reset_all_sequences() -> None:
    """Let `create_event` count every session from 1 again."""
    _sequences.clear()


def _wire_name(key: str) -> str:
    return camel(key.rstrip("_")) if isinstance(key, str) else str(key)
