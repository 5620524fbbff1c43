"""Commands to a session: carried out in the caller's name, answered when what they changed is stored.

A decision needs the scope `approve`; the policy and the end of a session need `admin`; all else needs `prompt`. A
`commandId` sent again is answered as before, and nothing is done.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from ...acp.naming import camel
from ...hub.errors import IdReused
from ...hub.session.commands import execute
from ...hub.session.session import HubSession
from ...model.commands import ACPCommand, RenameCommand, SendMessageCommand, parse_command
from ...model.errors import ValidationError
from ..auth import audit
from ..auth.callers import Caller, Scope
from ..http.idempotency import id_reused
from ..http.operations import Call, Operation, need
from ..session_options import checked_title
from ..state import Server

ID_LENGTH = 200
_SCOPES: dict[str, Scope] = {
    "approve_tool_call": "approve",
    "deny_tool_call": "approve",
    "answer_question": "approve",
    "set_permission_policy": "admin",
    "terminate": "admin",
}


_NOTED = ("request_id", "question_id", "prompt_id", "option_id", "remember", "mode_id", "model_id")
"""What of a command is written down; never what was said."""


class CommandDone(Struct, kw_only=True, omit_defaults=True, rename=camel):
    """The command has taken effect, and the session's events up to `seq` say so. `result` has what it answers."""

    command: str
    result: dict[str, Any]
    seq: int
    command_id: str | None = None


def needed_scope(command: ACPCommand) -> Scope:
    """What a caller must be allowed for a command."""
    return _SCOPES.get(command.command, "prompt")


async def carry_out(server: Server, caller: Caller, session_id: str, fields: dict[str, Any]) -> CommandDone:
    """Carry out a command as it came, with its `commandId` if it has one.

    Raises ValidationError, HttpError 403 and 409, UnknownSession, HubError.
    """
    given = dict(fields)
    command_id = checked_id(given.pop("commandId", None))
    command = parse_command(given)
    need(caller, needed_scope(command))
    if isinstance(command, RenameCommand):
        checked_title(command.title)
    session = await server.hub.session(session_id)
    if command_id is None:
        return await _execute(session, command, caller, None)
    who = caller.device_id or caller.name
    is_named = isinstance(command, SendMessageCommand) and command.client_request_id is not None
    if isinstance(command, SendMessageCommand) and not is_named:
        # so that the log knows the prompt again, also after a restart
        command = msgspec.structs.replace(command, client_request_id=f"command:{who}:{command_id}")
    key = ("command", session_id, who, command_id)
    act = partial(_execute, session, command, caller, command_id)
    try:
        return await server.repeats.once(key, given, act, field="commandId")
    except IdReused:
        if is_named:
            raise
        raise id_reused("commandId") from None  # the id of the prompt was made of it


async def _execute(session: HubSession, command: ACPCommand, caller: Caller, command_id: str | None) -> CommandDone:
    result = await execute(session, command, by=caller.name, device_id=caller.device_id)
    noted: dict[str, Any] = {camel(name): getattr(command, name, None) for name in _NOTED}
    audit.record(command.command, caller, sessionId=session.id, commandId=command_id, **noted)
    return CommandDone(command=command.command, result=result, seq=await session.committed(), command_id=command_id)


def checked_id(value: Any) -> str | None:
    """A `commandId`, if there is one. Raises ValidationError."""
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= ID_LENGTH:
        raise ValidationError(f"expected a text of 1 to {ID_LENGTH} characters", "commandId")
    return value


async def command(call: Call) -> CommandDone:
    if not isinstance(call.body, dict):
        raise ValidationError("expected an object with `command`", "body")
    return await carry_out(call.server, call.caller, call.path["id"], call.body)


OPERATIONS = (
    Operation(
        method="POST",
        path="/sessions/{id}/commands",
        handler=command,
        scope="any",
        body=Any,
        schema=ACPCommand,
        answer=CommandDone,
        errors=(409, 502, 507),
        summary="Carry out a command",
    ),
)
