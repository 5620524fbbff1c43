"""Commands about the session itself: its title, mode, settings, usage, notices and compaction."""

from __future__ import annotations

import asyncio
import datetime as dt

from ...acp import (
    NULL,
    CompactionSummaryChunk,
    CompactionUpdate,
    ConfigOptionUpdate,
    Cost,
    CurrentModeUpdate,
    Notice,
    RequestError,
    SessionConfigOption,
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionInfoUpdate,
    SessionMode,
    SessionModeState,
    UsageUpdate,
    text_block,
)
from .arguments import words
from .store import Session
from .turn import Failure, Host, Turn

__all__ = ["compact", "config", "config_options", "mode", "mode_state", "notice", "set_option", "title", "usage"]

MODES = (
    SessionMode(id="ask", name="Ask", description="Asks before every edit and command, whatever was allowed before."),
    SessionMode(
        id="code", name="Code", description="Asks before it edits or runs, and remembers what is always allowed."
    ),
    SessionMode(id="plan", name="Plan", description="Writes nothing and runs nothing."),
)
MODELS = {"scripted-small": ("Scripted Small", 32_000), "scripted-large": ("Scripted Large", 200_000)}
"""Names and context sizes."""
PRICE = 0.000_002
"""Dollars per token, so that a session's cost grows."""


def mode_state(session: Session) -> SessionModeState:
    return SessionModeState(current_mode_id=session.settings.mode, available_modes=list(MODES))


def config_options(session: Session, host: Host) -> list[SessionConfigOption]:
    """The session's options with their values; booleans only for clients that know them."""
    settings = session.settings
    options: list[SessionConfigOption] = [
        SessionConfigOptionSelect(
            id="mode",
            name="Mode",
            category="mode",
            current_value=settings.mode,
            options=[SessionConfigSelectOption(value=m.id, name=m.name, description=m.description) for m in MODES],
        ),
        SessionConfigOptionSelect(
            id="model",
            name="Model",
            category="model",
            description="Changes nothing but the size of the context.",
            current_value=settings.model,
            options=[SessionConfigSelectOption(value=key, name=name) for key, (name, _) in MODELS.items()],
        ),
    ]
    offered = host.capabilities.session and host.capabilities.session.config_options
    if offered and offered.boolean:
        thoughts = SessionConfigOptionBoolean(
            id="thoughts", name="Show thoughts", category="thought_level", current_value=settings.thoughts
        )
        options.append(thoughts)
    return options


def set_option(session: Session, option: str, value: str | bool) -> None:
    """Change one option. Raises RequestError when there is none of that name or value."""
    settings = session.settings
    if option == "mode" and value in {mode.id for mode in MODES}:
        settings.mode = str(value)
    elif option == "model" and value in MODELS:
        settings.model = str(value)
    elif option == "thoughts" and isinstance(value, bool):
        settings.thoughts = value
    else:
        raise RequestError.invalid_params({"configId": option, "value": value, "details": "no such option or value"})
    session.save()


async def mode(turn: Turn, args: str) -> None:
    wanted = args.strip()
    if wanted:
        _set(turn.session, "mode", wanted)
    await turn.send(CurrentModeUpdate(current_mode_id=turn.session.settings.mode))
    if wanted:
        await turn.send(ConfigOptionUpdate(config_options=config_options(turn.session, turn.host)))
    await turn.say(f"The mode is `{turn.session.settings.mode}`; there are `ask`, `code` and `plan`.")


async def config(turn: Turn, args: str) -> None:
    option, value = words(args, 2)
    before = turn.session.settings.mode
    if option:
        _set(turn.session, option, {"true": True, "false": False}.get(value, value))
    await turn.send(ConfigOptionUpdate(config_options=config_options(turn.session, turn.host)))
    settings = turn.session.settings
    if settings.mode != before:
        await turn.send(CurrentModeUpdate(current_mode_id=settings.mode))
    thoughts = "true" if settings.thoughts else "false"
    await turn.say(f"- `mode` is `{settings.mode}`\n- `model` is `{settings.model}`\n- `thoughts` is `{thoughts}`\n")


async def usage(turn: Turn, args: str) -> None:
    used = turn.session.settings.used + turn.usage().total_tokens
    size = MODELS[turn.session.settings.model][1]
    cost = Cost(amount=round(used * PRICE, 6), currency="USD")
    await turn.send(UsageUpdate(used=used, size=size, cost=cost))
    await turn.say(f"{used} of {size} tokens used, which would be ${cost.amount:.6f}.")


async def title(turn: Turn, args: str) -> None:
    text = args.strip() or None
    turn.session.settings.title = text
    turn.session.save()
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    await turn.send(SessionInfoUpdate(title=text or NULL, updated_at=now))
    await turn.say(f"This session is now called “{text}”." if text else "This session has no title any more.")


async def notice(turn: Turn, args: str) -> None:
    severity, text = words(args, 2)
    update = Notice(
        severity=severity or "warning", title=text or "This is only a notice", description="Nothing needs to be done."
    )
    session = turn.capabilities.session
    if session is not None and session.notices is not None:
        await turn.send(update)
    else:
        await turn.say(f"{update.title}. (This client did not ask for notices.)")


async def compact(turn: Turn, args: str) -> None:
    session = turn.capabilities.session
    if session is None or session.compaction is None:
        await turn.say("This client did not ask for news about compaction.")
        return
    compaction = turn.session.next_id("compaction")
    await turn.send(CompactionUpdate(compaction_id=compaction, status="in_progress"))
    try:
        for text in ("The user tried the scripted agent. ", "It did what it was told."):
            await turn.send(CompactionSummaryChunk(compaction_id=compaction, content=text_block(text)))
            await turn.pause()
    except asyncio.CancelledError:
        await turn.send(CompactionUpdate(compaction_id=compaction, status="cancelled"))
        raise
    await turn.send(CompactionUpdate(compaction_id=compaction, status="completed"))
    turn.session.settings.used = 0
    turn.session.save()


def _set(session: Session, option: str, value: str | bool) -> None:
    try:
        set_option(session, option, value)
    except RequestError:
        raise Failure(f"There is no `{option}` with the value `{value}`.") from None
