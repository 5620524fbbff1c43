"""What a consumer may ask of a session: one struct per command, told apart by `command`.

Reading is strict, because a command acts: an unknown field, a wrong type, an empty id or an empty message is refused
with the name of the field (`attachments[0].url`), so that a slip is never taken for something else. Whether a
command can be carried out in the session's present state is not decided here.

Fields and commands marked `added` are Pilothouse's own; all else is as the unified stream defines it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, Union, cast, get_args, get_type_hints

import msgspec
from msgspec import Meta, Struct, StructMeta

from ..acp import lenient
from ..acp.jsonrpc import TOO_DEEP, is_deep
from ..acp.model import encode, to_wire
from ..acp.naming import camel
from ..acp.schema import ContentBlock, TextContentBlock
from .errors import ValidationError
from .policy import Policy, parse_policy

__all__ = [
    "COMMANDS",
    "ACPCommand",
    "AnswerQuestionCommand",
    "ApproveToolCallCommand",
    "CancelCommand",
    "CancelQueuedCommand",
    "Command",
    "DenyToolCallCommand",
    "EditQueuedCommand",
    "ImageAttachment",
    "MoveQueuedCommand",
    "PauseCommand",
    "PermissionPolicy",
    "Remember",
    "RenameCommand",
    "ResumeCommand",
    "SendMessageCommand",
    "SetConfigOptionCommand",
    "SetModeCommand",
    "SetModelCommand",
    "SetPermissionPolicyCommand",
    "TerminateCommand",
    "encode_command",
    "parse_command",
]

PermissionPolicy = Policy
Name: TypeAlias = Annotated[str, Meta(min_length=1)]
"""An id or another text that must say something."""
MOST_BLOCKS = 1000
"""Content blocks of one message. Each is checked, stored and told by itself, which holds up everybody for a moment."""
Message: TypeAlias = str | Annotated[list[ContentBlock], Meta(max_length=MOST_BLOCKS)]
"""Plain text, or (added) content blocks as ACP has them."""
Remember: TypeAlias = Literal["once", "session", "project", "everywhere"]
"""How far a decision reaches."""
OfferId: TypeAlias = Literal["exact", "any_arguments"]
"""Which of the offered rules a decision stores."""
Position: TypeAlias = Annotated[int, Meta(ge=0, le=1_000_000)]


class CommandMeta(StructMeta):
    """Makes the discriminator readable as `command`."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: Any) -> CommandMeta:
        cls = super().__new__(mcs, name, bases, namespace, **config)
        setattr(cls, "command", cls.__struct_config__.tag)  # noqa: B010  # declared by the base, not by this class
        return cls


class Command(
    Struct,
    metaclass=CommandMeta,
    kw_only=True,
    omit_defaults=True,
    rename=camel,
    tag_field="command",
    forbid_unknown_fields=True,
):
    """Base of all commands."""

    command: ClassVar[str]


class ImageAttachment(
    Struct, kw_only=True, omit_defaults=True, rename=camel, tag_field="type", tag="image", forbid_unknown_fields=True
):
    """A picture that goes with a message, by URL; one sent inline has a `data:` URL. `mime_type` is added."""

    url: Name
    mime_type: Name | None = None


# -- prompts ------------------------------------------------------------------------------------------------------


class SendMessageCommand(Command, tag="send_message"):
    """Prompt the agent, or queue the prompt while a turn runs.

    Added: `message` may be content blocks; the same `client_request_id` sent again starts nothing new.
    """

    message: Message
    attachments: list[ImageAttachment] = []
    client_request_id: Name | None = None


class EditQueuedCommand(Command, tag="edit_queued"):
    """Added: replace a prompt that still waits."""

    prompt_id: Name
    message: Message


class CancelQueuedCommand(Command, tag="cancel_queued"):
    """Added: drop a prompt that still waits."""

    prompt_id: Name


class MoveQueuedCommand(Command, tag="move_queued"):
    """Added: let a waiting prompt be the one at `position`, counted from 0; past the end means last."""

    prompt_id: Name
    position: Position


# -- decisions ----------------------------------------------------------------------------------------------------


class ApproveToolCallCommand(Command, tag="approve_tool_call"):
    """Let a tool call run.

    Added: which of the agent's options is meant, how far the decision reaches, which of the offered rules is stored,
    and `answers` by question id, for a tool that asks its user.
    """

    request_id: Name
    tool_call_id: Name
    option_id: Name | None = None
    remember: Remember | None = None
    rule: OfferId | None = None
    answers: dict[str, str | list[str]] | None = None


class DenyToolCallCommand(Command, tag="deny_tool_call"):
    """Deny one tool call; the agent gets the reason. Added: `option_id`, `remember`, `rule`, as for an approval."""

    request_id: Name
    tool_call_id: Name
    reason: str | None = None
    option_id: Name | None = None
    remember: Remember | None = None
    rule: OfferId | None = None


class AnswerQuestionCommand(Command, tag="answer_question"):
    """Answer a question of the agent.

    Added: a list answers a question that allows several answers, an object one that shows a form, and null declines.
    """

    question_id: Name
    answer: str | list[str] | dict[str, Any] | None


class SetPermissionPolicyCommand(Command, tag="set_permission_policy"):
    """From now on answer without asking what this policy covers, in place of the policy before it."""

    policy: Policy


# -- the session --------------------------------------------------------------------------------------------------


class CancelCommand(Command, tag="cancel"):
    """End the running turn; the session goes on. Added: `force` ends an agent at once that does not stop by itself."""

    force: bool = False


class PauseCommand(Command, tag="pause"):
    """Start no further prompt until `resume`."""


class ResumeCommand(Command, tag="resume"):
    """Go on after a pause or with a session of an earlier process, first with `prompt` if there is one."""

    prompt: Name | None = None


class TerminateCommand(Command, tag="terminate"):
    """End the session and its agent."""


class RenameCommand(Command, tag="rename"):
    """Added: give the session a title."""

    title: Name


class SetModeCommand(Command, tag="set_mode"):
    """Added: switch to a mode that the agent offers."""

    mode_id: Name


class SetModelCommand(Command, tag="set_model"):
    """Added: switch to a model that the agent offers."""

    model_id: Name


class SetConfigOptionCommand(Command, tag="set_config_option"):
    """Added: set an option that the agent offers."""

    option_id: Name
    value: str | bool


ACPCommand: TypeAlias = Union[  # noqa: UP007  # reads better one a line
    SendMessageCommand,
    ApproveToolCallCommand,
    DenyToolCallCommand,
    CancelCommand,
    PauseCommand,
    ResumeCommand,
    TerminateCommand,
    AnswerQuestionCommand,
    SetPermissionPolicyCommand,
    EditQueuedCommand,
    CancelQueuedCommand,
    MoveQueuedCommand,
    SetModeCommand,
    SetModelCommand,
    SetConfigOptionCommand,
    RenameCommand,
]
COMMANDS: Mapping[str, type[Command]] = {cls.command: cls for cls in get_args(ACPCommand)}
"""Every command by its wire name."""


# -- reading and writing ------------------------------------------------------------------------------------------


def encode_command(command: Command) -> bytes:
    """The command as JSON."""
    if isinstance(command, SetPermissionPolicyCommand):
        wire = to_wire(command)
        wire["policy"] = {name: side for name, side in wire["policy"].items() if side}
        return encode(wire)
    return encode(command)


def parse_command(obj: bytes | str | Mapping[str, Any]) -> ACPCommand:
    """Read a command from JSON, or from a mapping that stands for the same JSON.

    Raises ValidationError whose `path` names the field, with what was expected and what came.
    """
    fields = _plain(obj)
    name = fields.get("command")
    cls = COMMANDS.get(name) if isinstance(name, str) else None
    if cls is None:
        came = _shown(name) if "command" in fields else "nothing"
        raise ValidationError(f"Expected one of {', '.join(COMMANDS)}; got {came}", "command")
    _refuse_unknown(cls, fields)
    if cls is SetPermissionPolicyCommand:
        return SetPermissionPolicyCommand(policy=_policy(fields))
    try:
        command = msgspec.convert(fields, cls, dec_hook=_dec_hook)
    except msgspec.ValidationError as exc:
        raise _explained(exc, cls, fields) from None
    except RecursionError:
        raise ValidationError("Expected a command, got one that is nested too deeply") from None
    _refuse_untyped(fields)
    _refuse_empty(command)
    return cast(ACPCommand, command)


def _plain(obj: Any) -> dict[str, Any]:
    """The fields as JSON gives them. A mapping takes the same way, so that both are held to the same rules."""
    try:
        data = obj if isinstance(obj, (bytes, bytearray, memoryview, str)) else msgspec.json.encode(_mapping(obj))
        fields = msgspec.json.decode(data)
    except (ValueError, TypeError, OverflowError, RecursionError) as exc:
        raise ValidationError(f"Expected a command as JSON: {_printable(str(exc))}") from None
    if not isinstance(fields, dict):
        raise ValidationError(f"Expected an object with `command`, got {_shown(fields)}")
    if is_deep(fields):
        raise ValidationError(f"Expected a command, got one that is {TOO_DEEP}")
    return fields


def _mapping(obj: Any) -> Any:
    return dict(obj) if isinstance(obj, Mapping) else obj


def _dec_hook(tp: Any, obj: Any) -> Any:
    try:
        return lenient.dec_hook(tp, obj)
    except msgspec.ValidationError as exc:  # the decoder adds its path to any error but its own
        raise ValueError(str(exc)) from None


def _policy(fields: dict[str, Any]) -> Policy:
    value = fields.get("policy", _MISSING)
    if not isinstance(value, dict):  # a null that set the empty policy would be a slip taken for an order
        raise ValidationError(f"Expected an object, got {'nothing' if value is _MISSING else _shown(value)}", "policy")
    try:
        return parse_policy(value)
    except ValidationError as exc:
        raise ValidationError(_printable(exc.reason), _printable(f"policy.{exc.path}")) from None


def _refuse_unknown(cls: type[Command], fields: dict[str, Any]) -> None:
    known = cls.__struct_encode_fields__
    for key in fields:
        if key != "command" and key not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise ValidationError(f"`{cls.command}` has no such field; {has}", _printable(key))


def _refuse_untyped(fields: dict[str, Any]) -> None:
    """The decoder takes an object without its tag where only one kind is known; another kind may come later."""
    for index, item in enumerate(fields.get("attachments") or ()):
        if "type" not in item:
            raise ValidationError("Expected 'image', got nothing", f"attachments[{index}].type")


def _refuse_empty(command: Command) -> None:
    message = getattr(command, "message", None)
    if message is None or getattr(command, "attachments", None):
        return
    texts = [message] if isinstance(message, str) else [_text(block) for block in message]
    if not any(text is None or text.strip() for text in texts):
        raise ValidationError(f"Expected a message that is not empty, got {_shown(message)}", "message")


def _text(block: Any) -> str | None:
    """The text of a block, or None for a block that is no text and so never empty."""
    return block.text if isinstance(block, TextContentBlock) else None


# -- saying what is wrong -----------------------------------------------------------------------------------------

_AT = re.compile(r" - at `(?P<path>[^`]*)`$")
_NAMED = re.compile(r"^Object (?P<what>missing required|contains unknown) field `(?P<name>.*)`$", re.DOTALL)
_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
_INDEX = re.compile(r"\[\d+\]")
_MISSING = object()
_TYPES = {
    "attachments[].type": (ImageAttachment.__struct_config__.tag,),
    "message[].type": tuple(block.__struct_config__.tag for block in get_args(ContentBlock)),
}


def _explained(exc: msgspec.ValidationError, cls: type[Command], fields: dict[str, Any]) -> ValidationError:
    """The decoder's finding with the whole path and, where the decoder does not say it, what came."""
    text, path = str(exc), ""
    while match := _AT.search(text):  # the path within a part stands before the path of the part
        text, path = text[: match.start()], path + match["path"].removeprefix("$")
    path = path.removeprefix(".")
    if named := _NAMED.match(text):
        path = f"{path}.{named['name']}" if path else named["name"]
        missing = named["what"].startswith("missing")
        return ValidationError("Expected this field, got nothing" if missing else "There is no such field", path)
    came = _at(fields, path)
    if text.startswith("Invalid"):
        allowed = _allowed(cls, path)
        text = f"Expected {' or '.join(map(repr, allowed))}" if allowed else "Expected a known value"
    elif text.startswith("Expected `str` of length"):
        text = "Expected a text that is not empty"
    if ", got" not in text and came is not _MISSING:
        text = f"{text}, got {_shown(came)}"
    return ValidationError(_printable(text), path or "$")


def _at(value: Any, path: str) -> Any:
    for index, key in _STEP.findall(path):
        try:
            value = value[int(index)] if index else value[key]
        except (LookupError, TypeError, ValueError):
            return _MISSING
    return value


@cache
def _words(cls: type[Command]) -> dict[str, tuple[str, ...]]:
    """The fields of a command that take one of a few words."""
    words = {}
    for name, hint in get_type_hints(cls).items():
        found = [word for part in (hint, *get_args(hint)) for word in get_args(part) if isinstance(word, str)]
        words[camel(name)] = tuple(found)
    return words


def _allowed(cls: type[Command], path: str) -> tuple[str, ...]:
    return _TYPES.get(_INDEX.sub("[]", path)) or _words(cls).get(path, ())


def _shown(value: Any) -> str:
    """What came, short enough for a message and without anything that cannot be printed or encoded."""
    text = repr(value) if value is None or isinstance(value, (str, bool, int, float)) else _kind(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _kind(value: Any) -> str:
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return "an object" if isinstance(value, dict) else type(value).__name__


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
