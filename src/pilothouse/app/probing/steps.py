"""The steps of a probe: each tries one thing, and says what was seen.

A step asks for nothing that the user did not agree to: those that ask the model are marked in `STEPS`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

from ...acp.errors import AUTH_REQUIRED, ConnectionClosed, RequestError
from ...model.capabilities import ACPCapabilities, capabilities_from_acp
from .client import COMMAND, NOTE, WORD, Ask
from .report import Outcome
from .talk import Talk, Untried, mapping, objects, short

STIR = 10.0
"""Seconds for an agent to begin what is then cancelled; one that thinks silently is cancelled all the same."""

LINGER = 0.3
"""Seconds for which an agent that said it had stopped is listened to."""
SOON = 1.0
"""Seconds after a cancel in which a turn may have come to its end by itself: the answer was on its way."""
NATURAL = ("end_turn", "max_tokens", "refusal")
"""How turns end that nobody has cancelled."""
LATE = "its first prompt was not answered in time"
PERMISSION = "session/request_permission"

Step = Callable[[Talk], Awaitable[Outcome]]

# -- steps that cost nothing --


async def initialize(talk: Talk) -> Outcome:
    talk.sent = "initialize"
    talk.agent = await talk.start()
    talk.initialized = answer = talk.agent.initialized
    stated = capabilities_from_acp(answer, name=talk.spec.name)
    talk.stated, about = stated.features, stated.agent
    talk.client.card = ACPCapabilities(agent=about)
    version = answer.get("protocolVersion")
    name = " ".join(filter(None, (about.display_name, about.version)))
    if version != 1 or isinstance(version, bool):
        return Outcome("no", f"{name} speaks version {version!r} of the protocol, expected 1", json.dumps(answer))
    return Outcome("yes", f"{name}, protocol version 1", json.dumps(answer))


async def new(talk: Talk) -> Outcome:
    assert talk.agent is not None
    try:
        talk.opened = await talk.open(talk.agent)
    except RequestError as exc:
        if exc.code == AUTH_REQUIRED:
            talk.login = exc
        raise
    talk.stated = capabilities_from_acp(talk.initialized, talk.opened).features
    await _choose_model(talk)
    return Outcome("yes", f"session {talk.session}", json.dumps(talk.opened))


async def _choose_model(talk: Talk) -> None:
    """Raises RequestError when the agent does not take the model that was asked for."""
    if talk.model is None:
        return
    for option in objects(talk.opened.get("configOptions")):
        if option.get("category") == "model":
            params = {"sessionId": talk.session, "configId": option.get("id"), "value": talk.model}
            await talk.call("session/set_config_option", params)
            return
    await talk.call("session/set_model", {"sessionId": talk.session, "modelId": talk.model})


async def auth(talk: Talk) -> Outcome:
    methods = talk.initialized.get("authMethods")
    names = [str(one.get("name") or one.get("id")) for one in objects(methods)]
    offered = f"; it offers: {', '.join(names)}" if names else ""
    refusal = talk.login or talk.turned_away
    if refusal is not None:
        hint = f". To log in: {talk.spec.login}" if talk.spec.login else ""
        return Outcome("no", f"it has to be logged in{offered}{hint}", refusal.message)
    if not talk.made:
        raise Untried("no session was opened")
    if talk.turns:
        return Outcome("yes", f"it works without a login{offered}", json.dumps(methods or []))
    return Outcome("yes", f"a session was opened without a login{offered}", json.dumps(methods or []))


async def modes(talk: Talk) -> Outcome:
    await talk.live()
    offered = mapping(talk.opened.get("modes"))
    current = offered.get("currentModeId")
    options = objects(talk.opened.get("configOptions"))
    if not current and not options:
        return Outcome("none", "it offers neither modes nor options")
    names = {"modes": objects(offered.get("availableModes")), "options": options}
    text = "; ".join(
        f"{kind} {', '.join(str(one.get('id')) for one in found)}" for kind, found in names.items() if found
    )
    if current:  # to what it is already: this changes nothing, and shows whether it can be set
        await talk.call("session/set_mode", {"sessionId": talk.session, "modeId": current})
    else:
        value = {"configId": options[0].get("id"), "value": options[0].get("currentValue")}
        await talk.call("session/set_config_option", {"sessionId": talk.session, **value})
    what = "mode" if current else f"option {options[0].get('id')}"
    return Outcome("yes", text, f"{what} was set to what it is: {current or options[0].get('currentValue')}")


async def list_(talk: Talk) -> Outcome:
    await talk.live()
    if "list" not in talk.sessions:
        return Outcome("none", "it does not offer to list sessions")
    answer = await talk.call("session/list", {"cwd": str(talk.directory)})
    found = answer.get("sessions")
    if not isinstance(found, list):
        return Outcome("no", "its answer has no list of sessions", json.dumps(answer))
    ids = [one["sessionId"] for one in objects(found) if isinstance(one.get("sessionId"), str)]
    count = f"{len(ids)} session{'s' * (len(ids) != 1)}"
    seen = json.dumps(ids[:20])
    if talk.kept in ids or talk.session in ids:
        return Outcome("yes", f"{count}, with the one of this probe", seen)
    if not talk.kept:
        raise Untried(f"{count}, but none was prompted, and only such a one may be listed")
    if answer.get("nextCursor"):
        return Outcome("untried", f"{count} on the first page, without the one of this probe", seen)
    return Outcome("no", f"{count}, without the one of this probe", seen)


# -- steps that ask the model --


async def prompt(talk: Talk) -> Outcome:
    try:
        result = await talk.prompt(talk.script.say)
    except RequestError as exc:
        if exc.code == AUTH_REQUIRED:
            talk.turned_away = exc
        talk.mute = "its first prompt was refused"
        raise
    except asyncio.CancelledError:  # its time is over
        talk.mute = LATE
        raise
    seen = talk.evidence(result)
    heard = talk.client.heard.strip()
    if result.get("stopReason") != "end_turn":
        return Outcome("no", f"the turn ended with {result.get('stopReason')!r}", seen)
    if not heard:
        return Outcome("no", "it said nothing", seen)
    if WORD not in heard:  # many say in words that they are not logged in, or that their model failed
        return Outcome("no", f"it answered something else: {heard[:80]!r}", seen)
    return Outcome("yes", f"answered {heard[:60]!r}", seen)


async def usage(talk: Talk) -> Outcome:
    if not talk.turns:
        raise Untried("no turn ended")
    used = talk.client.used
    if not used:
        return Outcome("none", "it tells nothing of tokens")
    return Outcome("yes", f"it tells {', '.join(used)}", "; ".join(f"{name}: {value}" for name, value in used.items()))


async def fs(talk: Talk) -> Outcome:
    seen = talk.evidence(await talk.prompt(talk.script.read))
    reads = talk.client.asked("fs/read_text_file")
    if any(ask.is_told and ask.granted for ask in reads):
        return Outcome("yes", "it reads through the client, so an editor's unsaved text counts", seen)
    if talk.client.knows:
        return Outcome("none", "it reads the disk by itself", seen)
    if reads:
        return Outcome("untried", f"it did not read {NOTE}, but asked for {reads[0].about}", seen)
    if talk.client.asked(PERMISSION):
        return Outcome("untried", "it asked for permission to read, and was rejected", seen)
    return Outcome("untried", "nothing of the file was seen", seen)


async def permission(talk: Talk) -> Outcome:
    """What the disk says stands above what the agent says."""
    result = await talk.prompt(talk.script.write)
    seen = f"{_asked(talk.client.asks)}{talk.evidence(result)}"
    strays = [path for ask in talk.client.asks for path in ask.strays]
    if strays:
        return Outcome("no", f"it asked for {short(strays[0])}, outside of the directory it works in", seen)
    if talk.has_written:
        return _written(talk, seen)
    permissions = [ask for ask in talk.client.asked(PERMISSION) if ask.is_told]
    writes = talk.client.asked("fs/write_text_file")
    rejected = [ask for ask in permissions if not ask.granted]
    if rejected and any(talk.client.asks.index(rejected[0]) < talk.client.asks.index(ask) for ask in writes):
        return Outcome("no", "it asked, was rejected, and would have written through the client all the same", seen)
    if any(ask.granted for ask in permissions):
        return Outcome("no", "it asked, was allowed to write, and wrote nothing", seen)
    if permissions:
        return Outcome("yes", "it asked before it wrote, was rejected, and wrote nothing", seen)
    if writes:
        return Outcome("none", "it asked for no permission, but writes through the client, which can refuse", seen)
    if others := talk.client.asked(PERMISSION):
        return Outcome("untried", f"it asked for something else: {short(others[0].about)}", seen)
    return Outcome("untried", "it did not try to write", seen)


def _written(talk: Talk, seen: str) -> Outcome:
    permissions, writes = (talk.client.asked(method) for method in (PERMISSION, "fs/write_text_file"))
    if not permissions and not writes:
        return Outcome("no", f"it wrote a file and asked nobody{_in_mode(talk)}", seen)
    if not any(ask.granted for ask in (*permissions, *writes)):
        return Outcome("no", "it asked, was rejected, and wrote the file all the same", seen)
    if not permissions:
        return Outcome("none", "it asked for no permission, and wrote through the client, which can refuse", seen)
    return Outcome("yes", "it asked before it wrote, and wrote the file when it was allowed to", seen)


def _asked(asks: list[Ask]) -> str:
    """What was asked for, as evidence; nothing when nothing was."""
    acts = [ask for ask in asks if not ask.method.startswith("fs/read")]
    told = "; ".join(f"{'granted' if ask.granted else 'refused'} {ask.about!r}" for ask in acts[:3])
    return f"{told}; " if told else ""


async def terminal(talk: Talk) -> Outcome:
    result = await talk.prompt(talk.script.run)
    seen = f"{_asked(talk.client.asks)}{talk.evidence(result)}"
    wanted = talk.client.asked("terminal/create")
    if any(ask.granted for ask in wanted):
        return Outcome("yes", "it ran the command in the client's terminal", seen)
    if any(ask.is_told for ask in wanted):
        return Outcome("yes", "it asked for the client's terminal to run it in, which was refused", seen)
    if wanted:
        return Outcome("no", f"it was told to run `{COMMAND}`, and asked for {wanted[0].about!r}", seen)
    permissions = talk.client.asked(PERMISSION)
    if permissions and not any(ask.granted for ask in permissions):
        hint = "was rejected" if talk.allows else "was rejected; --allow finds out how it would run it"
        return Outcome("untried", f"it asked, and {hint}", seen)
    if talk.client.completed:
        unasked = "" if permissions else " and asks nobody"
        return Outcome("none", f"it runs programs by itself{unasked}{_in_mode(talk)}", seen)
    return Outcome("untried", "nothing shows that it ran the command", seen)


def _in_mode(talk: Talk) -> str:
    mode = mapping(talk.opened.get("modes")).get("currentModeId")
    return f", in its mode {mode!r}" if mode else ""


async def cancel(talk: Talk) -> Outcome:
    if talk.mute == LATE:
        talk.mute = ""  # a turn without end is what this is about
    agent = await talk.live()
    turn = asyncio.ensure_future(talk.prompt(talk.script.long))
    try:
        stir = asyncio.ensure_future(talk.client.stirred.wait())
        await asyncio.wait((turn, stir), timeout=min(STIR, talk.timeout / 2), return_when=asyncio.FIRST_COMPLETED)
        stir.cancel()
        if turn.done():
            return Outcome("untried", "the turn was over before it could be cancelled", talk.evidence(turn.result()))
        began = time.monotonic()
        await agent.notify("session/cancel", {"sessionId": talk.session})
        talk.sent += ", then session/cancel"
        result = await turn
    finally:
        turn.cancel()
        with contextlib.suppress(asyncio.CancelledError, RequestError, ConnectionClosed, Untried):
            await turn
    seconds = time.monotonic() - began
    took, reason = round(seconds * 1000), result.get("stopReason")
    if reason in NATURAL and seconds < SOON:
        text = f"the turn ended with {reason!r} {took} ms after it was cancelled, which may have been its own end"
        return Outcome("untried", text, talk.evidence(result))
    if reason != "cancelled":
        return Outcome("no", f"the turn ended with {reason!r}, {took} ms after it was cancelled", talk.evidence(result))
    if more := await _more(talk):
        return Outcome("no", f"it said that the turn was cancelled, and went on: {more} more", talk.evidence(result))
    return Outcome("yes", f"the turn ended {took} ms after it was cancelled", talk.evidence(result))


async def _more(talk: Talk) -> int:
    """How often an agent spoke or acted in a while after it had stopped."""

    def count() -> int:
        kinds = ("agent_message_chunk", "agent_thought_chunk", "tool_call")
        return sum(talk.client.updates[kind] for kind in kinds) + talk.client.requests.total()

    before = count()
    await asyncio.sleep(LINGER)
    return count() - before


# -- taking up a session --


async def load(talk: Talk) -> Outcome:
    return await _taken_up(talk, "load", offered=talk.capabilities.get("loadSession") is True)


async def resume(talk: Talk) -> Outcome:
    return await _taken_up(talk, "resume", offered="resume" in talk.sessions)


async def _taken_up(talk: Talk, verb: str, *, offered: bool) -> Outcome:
    if not offered:
        return Outcome("none", f"it does not offer to {verb} sessions")
    agent = await talk.another()
    await talk.call(f"session/{verb}", _session(talk, talk.kept), agent)
    updates = talk.client.updates
    seen = ", ".join(f"{count}× {kind}" for kind, count in updates.items()) or "no updates"
    if verb == "load":
        if not updates["user_message_chunk"]:
            return Outcome("no", "it answered, but did not tell what it was asked before", seen)
        return Outcome("yes", f"another process took it up, and told {updates.total()} updates of it", seen)
    sent = talk.sent
    if await _takes_anything(talk):
        return Outcome("untried", "it takes up any session, also one that never was, so nothing is shown by it", seen)
    talk.sent = sent
    return Outcome("yes", "another process took it up, and refused one that never was", seen)


async def _takes_anything(talk: Talk) -> bool:
    try:
        await talk.call("session/resume", _session(talk, str(uuid.uuid4())), talk.agent)
    except RequestError:
        return False
    return True


def _session(talk: Talk, session_id: str) -> dict[str, Any]:
    return {"sessionId": session_id, "cwd": str(talk.directory), "mcpServers": []}


async def fork(talk: Talk) -> Outcome:
    await talk.live()
    if "fork" not in talk.sessions:
        return Outcome("none", "it does not offer to fork sessions")
    if talk.session != talk.kept:
        raise Untried("a session that was never prompted may have nothing to fork")
    answer = await talk.call("session/fork", _session(talk, talk.kept))
    forked = answer.get("sessionId")
    if not isinstance(forked, str) or forked in talk.made:
        return Outcome("no", "its answer names no new session", json.dumps(answer))
    talk.made.append(forked)
    return Outcome("yes", f"forked as {forked}", json.dumps(answer))


STEPS: tuple[tuple[str, bool, Step], ...] = (
    ("initialize", False, initialize),
    ("new", False, new),
    ("auth", False, auth),
    ("modes", False, modes),
    ("prompt", True, prompt),
    ("fs", True, fs),
    ("permission", True, permission),
    ("terminal", True, terminal),
    ("cancel", True, cancel),
    ("usage", True, usage),
    ("list", False, list_),
    ("fork", False, fork),
    ("load", False, load),
    ("resume", False, resume),
)
"""Name, whether it asks the model, and the work."""
