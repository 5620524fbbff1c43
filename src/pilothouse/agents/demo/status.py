"""Commands about the session (title, mode, settings, usage, compaction) and commands that ask the client."""

from __future__ import annotations

import asyncio
import datetime as dt

from ...acp import (
    NULL,
    AcceptElicitationResponse,
    AllowedOutcome,
    CompactionSummaryChunk,
    CompactionUpdate,
    ConfigOptionUpdate,
    Cost,
    CreateElicitationResponse,
    CurrentModeUpdate,
    ElicitationBooleanPropertySchema,
    ElicitationFormSessionMode,
    ElicitationIntegerPropertySchema,
    ElicitationMode,
    ElicitationMultiSelectPropertySchema,
    ElicitationNumberPropertySchema,
    ElicitationSchema,
    ElicitationStringPropertySchema,
    ElicitationUrlSessionMode,
    EnumOption,
    Notice,
    PermissionOption,
    RequestError,
    SessionConfigOption,
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionInfoUpdate,
    SessionMode,
    SessionModeState,
    TitledMultiSelectItems,
    UsageUpdate,
    is_allowed,
    text_block,
)
from ..commands import Failure
from .store import Session
from .turn import Host, Turn, words

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


OPTIONS = (
    PermissionOption(option_id="yes", name="Yes, this once", kind="allow_once"),
    PermissionOption(option_id="yes-always", name="Yes, always", kind="allow_always"),
    PermissionOption(option_id="no", name="No, not now", kind="reject_once"),
    PermissionOption(option_id="no-always", name="No, never", kind="reject_always"),
)
FORM = ElicitationSchema(
    title="A few questions",
    description="One field of every kind.",
    properties={
        "name": ElicitationStringPropertySchema(title="Name", description="What to call you.", default="friend"),
        "size": ElicitationIntegerPropertySchema(title="Size", minimum=1, maximum=10, default=3),
        "ratio": ElicitationNumberPropertySchema(title="Ratio", minimum=0, maximum=1, default=0.5),
        "sure": ElicitationBooleanPropertySchema(title="Are you sure?", default=True),
        "colour": ElicitationStringPropertySchema(
            title="Colour",
            one_of=[EnumOption(const=name, title=name.capitalize()) for name in ("red", "green", "blue")],
            default="green",
        ),
        "fruits": ElicitationMultiSelectPropertySchema(
            title="Fruits",
            items=TitledMultiSelectItems(
                any_of=[EnumOption(const=name, title=name.capitalize()) for name in ("apple", "pear", "plum")]
            ),
            default=["apple"],
        ),
    },
    required=["name", "colour"],
)
URL = "https://example.com/pilothouse-demo"


async def permission(turn: Turn, args: str) -> None:
    chosen = ""
    async with turn.tool("Do something that needs permission", "other", name="permission") as call:
        response = await turn.ask(call, OPTIONS)
        allowed = is_allowed(response, OPTIONS)
        assert isinstance(response.outcome, AllowedOutcome)
        chosen = f"The answer was `{response.outcome.option_id}`, so it is {'allowed' if allowed else 'not allowed'}."
        if not allowed:
            raise Failure(chosen)
    await turn.say(chosen or str(call.reason))


async def question(turn: Turn, args: str) -> None:
    offered = turn.capabilities.elicitation
    if offered is None or (offered.form is None and offered.url is None):
        await turn.say("This client cannot be asked questions.")
        return
    session_id = turn.session.id
    if offered.form is not None:
        answer = await _ask(
            turn, "Tell me about yourself.", ElicitationFormSessionMode(session_id=session_id, requested_schema=FORM)
        )
        if isinstance(answer, AcceptElicitationResponse):
            lines = [f"- `{name}`: {value!r}" for name, value in sorted((answer.content or {}).items())]
            await turn.say("\n".join(["You said:", "", *lines, ""]))
        else:
            await turn.say(f"No answer: {answer.action}.\n")
    if offered.url is not None:
        elicitation = turn.session.next_id("elicitation")
        mode = ElicitationUrlSessionMode(session_id=session_id, elicitation_id=elicitation, url=URL)
        answer = await _ask(turn, "Please look at this page.", mode)
        if isinstance(answer, AcceptElicitationResponse):
            # There is nothing to wait for behind that address, so it counts as done.
            await turn.client.complete_elicitation(elicitation_id=elicitation)
        await turn.say(f"The page: {answer.action}.\n")


async def _ask(turn: Turn, message: str, mode: ElicitationMode) -> CreateElicitationResponse:
    try:
        return await turn.client.create_elicitation(message=message, mode=mode)
    except RequestError as exc:
        raise Failure(f"The client could not ask: {exc}") from exc


async def ext(turn: Turn, args: str) -> None:
    """A method and a notification of our own; a client that does not know them is free to say so."""
    params = {"sessionId": turn.session.id, "text": args or "ping"}
    await turn.client.ext_notification("pilothouse.dev/noted", params)
    try:
        answer = await turn.client.ext_method("pilothouse.dev/ping", params)
    except RequestError as exc:
        if exc.code != -32601:
            raise Failure(f"The extension method failed: {exc}") from exc
        await turn.say("The client does not know the extension method.")
    else:
        await turn.say(f"The client answered the extension method with `{answer}`.")
