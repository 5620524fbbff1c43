"""Commands carried out: each one has its effect on a session, or raises an error that says why not. None is ignored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ..acp.model import to_wire
from ..dialects.acp import to_block
from ..model.commands import (
    ACPCommand,
    AnswerQuestionCommand,
    ApproveToolCallCommand,
    CancelCommand,
    CancelQueuedCommand,
    DenyToolCallCommand,
    EditQueuedCommand,
    MoveQueuedCommand,
    PauseCommand,
    RenameCommand,
    ResumeCommand,
    SendMessageCommand,
    SetConfigOptionCommand,
    SetModeCommand,
    SetModelCommand,
    SetPermissionPolicyCommand,
    TerminateCommand,
)
from ..model.records import ImageContent
from .errors import Unsupported
from .session import HubSession
from .turns import Prompt

__all__ = ["execute"]

Effect = dict[str, Any]


async def execute(session: HubSession, command: ACPCommand, *, by: str = "user") -> Effect:
    """Carry out a command in the name of `by`; what came of it, such as the id of a prompt's turn.

    Returns when the command has taken effect and its events are committed; a prompt's turn goes on meanwhile.
    Raises HubError.
    """
    effect = await _EFFECTS[type(command)](session, command, by)
    await session.committed()
    return effect


async def _send(session: HubSession, command: SendMessageCommand, by: str) -> Effect:
    blocks = _blocks(command.message)
    blocks += [to_block(ImageContent(url=item.url, mime_type=item.mime_type)) for item in command.attachments]
    return await _accepted(await session.send(blocks, client_request_id=command.client_request_id))


async def _accepted(prompt: Prompt) -> Effect:
    """What is answered must not be lost: wait until the log has the prompt, or says why not."""
    if prompt.queued is None:  # one that waits is stored already, or `committed` will raise
        await prompt.stored.wait()
        if prompt.done.done():
            prompt.done.result()
    return {"turnId": prompt.turn_id}


def _blocks(message: Any) -> list[Any]:
    if isinstance(message, str):
        return [{"type": "text", "text": message}] if message else []
    blocks: list[Any] = to_wire(message)
    return blocks


async def _edit(session: HubSession, command: EditQueuedCommand, by: str) -> Effect:
    session.edit_queued(command.prompt_id, _blocks(command.message))
    return {}


async def _drop(session: HubSession, command: CancelQueuedCommand, by: str) -> Effect:
    session.cancel_queued(command.prompt_id)
    return {}


async def _move(session: HubSession, command: MoveQueuedCommand, by: str) -> Effect:
    session.move_queued(command.prompt_id, command.position)
    return {}


async def _approve(session: HubSession, command: ApproveToolCallCommand, by: str) -> Effect:
    record = await session.decide(
        command.request_id,
        approved=None if command.option_id else True,
        option_id=command.option_id,
        remember=command.remember or "once",
        by=by,
    )
    return {"decision": record.decision}


async def _deny(session: HubSession, command: DenyToolCallCommand, by: str) -> Effect:
    record = await session.decide(
        command.request_id,
        approved=None if command.option_id else False,
        option_id=command.option_id,
        remember=command.remember or "once",
        reason=command.reason,
        by=by,
    )
    return {"decision": record.decision}


async def _answer(session: HubSession, command: AnswerQuestionCommand, by: str) -> Effect:
    session.answer(command.question_id, command.answer, by=by)
    return {}


async def _policy(session: HubSession, command: SetPermissionPolicyCommand, by: str) -> Effect:
    session.set_policy(command.policy)
    return {}


async def _cancel(session: HubSession, command: CancelCommand, by: str) -> Effect:
    return {"cancelled": await session.cancel(force=command.force)}


async def _pause(session: HubSession, command: PauseCommand, by: str) -> Effect:
    session.pause(f"paused by {by}")
    return {}


async def _resume(session: HubSession, command: ResumeCommand, by: str) -> Effect:
    session.resume()
    if command.prompt is None:
        return {}
    return await _accepted(await session.send(command.prompt))


async def _terminate(session: HubSession, command: TerminateCommand, by: str) -> Effect:
    await session.terminate()
    return {}


async def _rename(session: HubSession, command: RenameCommand, by: str) -> Effect:
    session.rename(command.title)
    return {}


async def _mode(session: HubSession, command: SetModeCommand, by: str) -> Effect:
    await session.set_mode(command.mode_id)
    return {}


async def _model(session: HubSession, command: SetModelCommand, by: str) -> Effect:
    """By the option that holds the model; agents that have none are asked by the method they had before options."""
    for option in session.state.config_options or []:
        if isinstance(option, dict) and option.get("category") == "model" and isinstance(option.get("id"), str):
            await session.set_config_option(option["id"], command.model_id)
            return {}
    if not session.state.models:
        raise Unsupported(f"{session.agent_name} offers no choice of models", modelId=command.model_id)
    await session.call("session/set_model", {"modelId": command.model_id})
    return {}


async def _option(session: HubSession, command: SetConfigOptionCommand, by: str) -> Effect:
    await session.set_config_option(command.option_id, command.value)
    return {}


_EFFECTS: dict[type, Callable[[HubSession, Any, str], Awaitable[Effect]]] = {
    SendMessageCommand: _send,
    EditQueuedCommand: _edit,
    CancelQueuedCommand: _drop,
    MoveQueuedCommand: _move,
    ApproveToolCallCommand: _approve,
    DenyToolCallCommand: _deny,
    AnswerQuestionCommand: _answer,
    SetPermissionPolicyCommand: _policy,
    CancelCommand: _cancel,
    PauseCommand: _pause,
    ResumeCommand: _resume,
    TerminateCommand: _terminate,
    RenameCommand: _rename,
    SetModeCommand: _mode,
    SetModelCommand: _model,
    SetConfigOptionCommand: _option,
}
