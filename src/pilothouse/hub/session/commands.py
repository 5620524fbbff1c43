"""Commands carried out: each one has its effect on a session, or raises an error that says why not. None is ignored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from ...acp.model import to_wire
from ...dialects.acp import to_block
from ...model.commands import (
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
from ...model.records import ImageContent
from ..errors import Unsupported
from .prompt_queue import Prompt
from .session import HubSession

Effect = dict[str, Any]


class Who(NamedTuple):
    """In whose name: what decisions are signed with, and the paired device, if it is one."""

    by: str
    device_id: str | None


async def execute(
    session: HubSession, command: ACPCommand, *, by: str = "user", device_id: str | None = None
) -> Effect:
    """Carry out a command in the name of `by`, by a paired device or not; what came of it, such as the id of a turn.

    Returns when the command has taken effect and its events are committed; a prompt's turn goes on meanwhile.
    Raises HubError.
    """
    effect = await _EFFECTS[type(command)](session, command, Who(by, device_id))
    await session.committed()
    return effect


async def _send(session: HubSession, command: SendMessageCommand, who: Who) -> Effect:
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


async def _edit(session: HubSession, command: EditQueuedCommand, who: Who) -> Effect:
    session.edit_queued(command.prompt_id, _blocks(command.message))
    return {}


async def _drop(session: HubSession, command: CancelQueuedCommand, who: Who) -> Effect:
    session.cancel_queued(command.prompt_id)
    return {}


async def _move(session: HubSession, command: MoveQueuedCommand, who: Who) -> Effect:
    session.move_queued(command.prompt_id, command.position)
    return {}


async def _approve(session: HubSession, command: ApproveToolCallCommand, who: Who) -> Effect:
    record = await session.decide(
        command.request_id,
        tool_call_id=command.tool_call_id,
        approved=True,
        option_id=command.option_id,
        remember=command.remember or "once",
        rule=command.rule,
        answers=command.answers,
        by=who.by,
        device_id=who.device_id,
    )
    return {"decision": record.decision}


async def _deny(session: HubSession, command: DenyToolCallCommand, who: Who) -> Effect:
    record = await session.decide(
        command.request_id,
        tool_call_id=command.tool_call_id,
        approved=False,
        option_id=command.option_id,
        remember=command.remember or "once",
        rule=command.rule,
        reason=command.reason,
        by=who.by,
        device_id=who.device_id,
    )
    return {"decision": record.decision}


async def _answer(session: HubSession, command: AnswerQuestionCommand, who: Who) -> Effect:
    session.answer(command.question_id, command.answer, by=who.by, device_id=who.device_id)
    return {}


async def _policy(session: HubSession, command: SetPermissionPolicyCommand, who: Who) -> Effect:
    session.set_policy(command.policy)
    return {}


async def _cancel(session: HubSession, command: CancelCommand, who: Who) -> Effect:
    return {"cancelled": await session.cancel(force=command.force)}


async def _pause(session: HubSession, command: PauseCommand, who: Who) -> Effect:
    session.pause(f"paused by {who.by}")
    return {}


async def _resume(session: HubSession, command: ResumeCommand, who: Who) -> Effect:
    session.resume()
    if command.prompt is None:
        return {}
    return await _accepted(await session.send(command.prompt))


async def _terminate(session: HubSession, command: TerminateCommand, who: Who) -> Effect:
    await session.terminate()
    return {}


async def _rename(session: HubSession, command: RenameCommand, who: Who) -> Effect:
    session.rename(command.title)
    return {}


async def _mode(session: HubSession, command: SetModeCommand, who: Who) -> Effect:
    await session.set_mode(command.mode_id)
    return {}


async def _model(session: HubSession, command: SetModelCommand, who: Who) -> Effect:
    """By the option that holds the model; agents that have none are asked by the method they had before options."""
    for option in session.state.config_options or []:
        if isinstance(option, dict) and option.get("category") == "model" and isinstance(option.get("id"), str):
            await session.set_config_option(option["id"], command.model_id)
            return {}
    if not session.state.models:
        raise Unsupported(f"{session.agent_name} offers no choice of models", modelId=command.model_id)
    await session.call("session/set_model", {"modelId": command.model_id})
    return {}


async def _option(session: HubSession, command: SetConfigOptionCommand, who: Who) -> Effect:
    await session.set_config_option(command.option_id, command.value)
    return {}


_EFFECTS: dict[type, Callable[[HubSession, Any, Who], Awaitable[Effect]]] = {
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
