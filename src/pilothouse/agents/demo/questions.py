"""Commands that ask the client: for permission, for input, for things only some clients know."""

from __future__ import annotations

from ...acp import (
    AcceptElicitationResponse,
    AllowedOutcome,
    CreateElicitationResponse,
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
    PermissionOption,
    RequestError,
    TitledMultiSelectItems,
    is_allowed,
)
from .turn import Failure, Turn

__all__ = ["ext", "permission", "question"]

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
