"""The rules that "always" can store for a request, each with a text that states its exact reach.

A rule is offered only if it answers the same request again, to allow it and to deny it; both are tried with `decide`.
The first offer is the narrowest: this command, this file, this origin, this tool with exactly these arguments. The
rule a change must not break: a rule never covers more than its text says.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple, get_args

import msgspec

from ..previews import quote_code
from ..records import RuleOffer
from ..shell import parse
from .calls import MAX_ARGUMENTS, Call, are_same_arguments, canonical_arguments, read_call
from .decision import decide
from .globs import command_glob
from .matching import is_literal
from .places import place
from .rules import Effect, Rule
from .web import fetched_origin

MAX_COMMAND = 16_000
"""Characters of a command that a stored rule may hold."""
_BECAUSE = ", because "


class _Found(NamedTuple):
    """Offers that are not checked yet, or why there are none."""

    offers: list[RuleOffer]
    why: str = ""


def offer_rules(tool_name: str, tool_input: Any, workspace: str | None) -> tuple[list[RuleOffer], str | None]:
    """The rules that can be stored for a request, the narrowest first; if there are none, a sentence that says why."""
    call = read_call(tool_name, tool_input)
    found = _find_offers(call, workspace)
    why = found.why
    offers: list[RuleOffer] = []
    for offer in found.offers:
        refusal = _try_offer(offer, call, workspace)
        if refusal is None:
            offers.append(offer)
        elif not offers:
            # a wider rule is never offered in place of one that does not work
            why = refusal
            break
    if offers:
        return offers, None
    return [], f"No rule can cover this request{_BECAUSE}{why or 'it cannot be distinguished from others'}."


def rule_of_offer(offer: RuleOffer, effect: Effect, source: str = "") -> Rule:
    """The rule that an offer stores. Raises msgspec.ValidationError for an unknown subject."""
    given = {"effect": effect, "subject": offer.subject, "pattern": offer.pattern, "source": source}
    return msgspec.convert({**given, "arguments": offer.arguments}, Rule)


def _try_offer(offer: RuleOffer, call: Call, workspace: str | None) -> str | None:
    """Why a rule of this offer would not answer the same request; None if it would, with either effect."""
    try:
        msgspec.json.encode(offer)
    except UnicodeEncodeError:
        return "it has characters that cannot be stored"
    for effect in get_args(Effect):
        decision = decide([rule_of_offer(offer, effect)], call.name, call.raw, workspace)
        if decision.outcome != effect:
            return decision.reason.partition(_BECAUSE)[2].removesuffix(".")
    return None


def _find_offers(call: Call, workspace: str | None) -> _Found:
    if call.doubt is not None:
        return _Found([], call.doubt)
    if call.kind == "command":
        return _find_command(call.command) if call.is_shell else _find_tool(call)
    if call.kind in ("reads", "writes") and call.paths:
        found = _find_file(call, workspace)
        if found is not None:
            return found
    if call.kind == "fetch" and (origin := fetched_origin(call.raw)) is not None:
        return _Found([RuleOffer(offer_id="exact", text=_web_text(origin), subject="web", pattern=origin)])
    return _find_tool(call)


# Commands ------------------------------------------------------------------------------------------------------------


def _find_command(command: str) -> _Found:
    """A pattern that fits this one command and no other."""
    script = parse(command, unwrapped=False)
    if not script.trusted:
        return _Found([], f"its command cannot be read with certainty: {script.errors[0]}")
    words = [word for one in script.commands for word in one.words]
    if wild := next((word for word in words if word.glob), None):
        return _Found([], f"the shell replaces `{_short(wild.raw)}` with the names of files")
    if unknown := next((word for word in words if not word.static), None):
        return _Found([], f"`{_short(unknown.raw)}` is known only when the command runs")
    if len(script.commands) != 1:
        return _Found([], "it runs several commands" if script.commands else "it runs nothing")
    (only,) = script.commands
    if only.redirects:
        return _Found([], "it redirects input or output")
    if only.assignments:
        return _Found([], f"it sets the variable `{_short(only.assignments[0][0])}` for the command")
    pattern = " ".join(shlex.quote(word.text) for word in only.words)
    if len(pattern) > MAX_COMMAND:
        return _Found([], f"its command has more than {MAX_COMMAND:,} characters")
    return _Found([RuleOffer(offer_id="exact", text=_command_text(pattern), subject="commands", pattern=pattern)])


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:60] + "…"


def _command_text(pattern: str) -> str:
    return f"Run exactly {quote_code(pattern)}, in any directory of the workspace"


# Files ---------------------------------------------------------------------------------------------------------------


def _find_file(call: Call, workspace: str | None) -> _Found | None:
    """A pattern for the one file that a call names; None for the workspace itself, which has no name in a pattern."""
    if len(call.paths) > 1:
        return _Found([], "it names several files")
    where = place(call.paths[0], workspace)
    if not where.inside:
        return _Found([], f"`{_short(call.paths[0])}` is outside the workspace")
    if not where.parts:
        return None
    path = "/".join(where.parts)
    if re.search(r"\{[^{}]*,[^{}]*\}", path):
        return _Found([], "the name of its file has braces, which a pattern reads as a choice")
    # without a slash a denial would hold for every file of that name, and `!` cannot begin a pattern
    head = "./" if len(where.parts) == 1 or path.startswith("!") else ""
    pattern = head + "".join(f"[{one}]" if one in "*?[" else one for one in path)
    text = _file_text(call.kind, path)
    return _Found([RuleOffer(offer_id="exact", text=text, subject=call.kind, pattern=pattern)])


def _file_text(subject: str, path: str) -> str:
    name = quote_code(path)
    return f"Write {name}, with any content" if subject == "writes" else f"Read {name}"


# Web pages and other tools -------------------------------------------------------------------------------------------


def _web_text(origin: str) -> str:
    return f"Fetch pages of {origin}"


def _find_tool(call: Call) -> _Found:
    """The tool with exactly these arguments, and, if its name stands for no other tool, with any."""
    if not call.name:
        return _Found([], "its tool has no name")
    if not call.name.isascii() or not call.name.isprintable():
        return _Found([], "the name of its tool has unusual characters")
    if call.tool == "AskUserQuestion":
        return _Found([], "it asks you a question")
    arguments = canonical_arguments(call.raw)
    if arguments is None:
        return _Found([], "its arguments cannot be compared with those of other requests")
    if len(arguments) > MAX_ARGUMENTS:
        return _Found([], f"its arguments have more than {MAX_ARGUMENTS:,} characters")
    given = msgspec.json.decode(msgspec.json.encode(call.raw if call.raw is not None else {}))
    if not are_same_arguments(given, call.raw):
        return _Found([], "its arguments cannot be stored without a change")
    tool: dict[str, Any] = {"subject": "tools", "pattern": call.name}
    exact = RuleOffer(offer_id="exact", text=_tool_text(call.name, given), **tool, arguments=given)
    if call.kind in ("reads", "writes", "command") or any(one in call.name for one in "*?"):
        return _Found([exact])
    return _Found([exact, RuleOffer(offer_id="any_arguments", text=_tool_text(call.name, None), **tool)])


def _tool_text(name: str, arguments: Mapping[str, Any] | None) -> str:
    tool = quote_code(name)
    if arguments is None:
        return f"Call {tool} with any arguments"
    # an agent may hide the arguments of a tool
    return f"Call {tool} with exactly these arguments" if arguments else f"Call {tool} when it shows no arguments"


# Stored rules --------------------------------------------------------------------------------------------------------


def describe_rule(rule: Mapping[str, Any]) -> str:
    """Describe a stored rule: by the text that was shown when it was made, else by its subject and pattern."""
    text, subject, pattern = rule.get("text"), rule.get("subject"), rule.get("pattern")
    if isinstance(text, str) and text:
        return text
    if not isinstance(pattern, str):
        whole = {"commands": "Run any command", "reads": "Read any file", "writes": "Write any file"}
        whole |= {"searches": "Search files and the web", "web": "Fetch any page", "tools": "Call any tool"}
        return whole.get(str(subject), "Unknown rule")
    if subject == "commands":
        return _command_text(pattern) if _is_literal_command(pattern) else f"Run commands that match `{pattern}`"
    if subject in ("reads", "writes"):
        return _file_text(subject, re.sub(r"\[([*?\[])\]", r"\1", pattern).removeprefix("./"))
    if subject == "web":
        return _web_text(pattern)
    arguments = rule.get("arguments")
    if subject == "tools":
        return _tool_text(pattern, arguments if isinstance(arguments, Mapping) else None)
    return f"Unknown rule `{pattern}`"


def _is_literal_command(pattern: str) -> bool:
    try:
        return is_literal(command_glob(pattern))
    except ValueError:
        return False
