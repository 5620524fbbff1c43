"""Approvals and questions of an agent as requests to an ACP client.

A request keeps the agent's own fields where they fit the schema; what the user reads before a decision is ours. Options
are named by their kind, hidden characters are shown by their code, and the hub's notes and its preview come before what
the agent shows. A question that cannot be put to a client is None, and stays open for other clients.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from ...acp import schema
from ...acp.lenient import dec_hook
from ...model.diffs import list_changed_lines, unified_diff
from ...model.events import ApprovalRequestedEvent, UserQuestionEvent
from ...model.previews import (
    DiffSection,
    find_root,
    label_option,
    list_unshown_members,
    list_unshown_of_questions,
    make_visible,
    quote_code,
    split_command,
    split_sections,
)
from ...model.records import CommandPreview, DiffPreview, Option
from ...model.tools.commands import find_commands, list_other_members
from ..texts import fenced, shorten_middle, title_of
from .content import mapping

_encode = msgspec.json.Encoder().encode
_permission = msgspec.json.Decoder(schema.RequestPermissionRequest, dec_hook=dec_hook).decode
_elicitation = msgspec.json.Decoder(schema.CreateElicitationRequest, dec_hook=dec_hook).decode
_KINDS = ("allow_once", "allow_always", "reject_once", "reject_always")
HIDDEN = "The agent's text contains hidden characters."
NO_RULE = "No rule can cover this request"
_LONGEST_LABEL = 100
"""Characters of an agent's own label for an option."""
_LONGEST_LINE = 200
"""Characters of a title that editors show as a whole."""
# what may be markup, or the beginning of a comment, a link or an entity
_MARKDOWN = re.compile(r"[`*_~<\[\]\\&$]")


def permission_request(event: ApprovalRequestedEvent, session_id: str) -> dict[str, Any] | None:
    """The params of `session/request_permission` for an approval; None if it has no option that may be offered."""
    for wire in (mapping(event.source) if event.source else {}, _permission_from_event(event)):
        params = {**wire, "sessionId": session_id}
        if not wire or not _fits(_permission, params):
            continue
        params["options"] = _name_options(wire["options"], event)
        params["toolCall"] = _add_facts(_show_call(wire["toolCall"], event), event)
        if params["options"] and _fits(_permission, params):
            return params
    return None


# -- options ------------------------------------------------------------------------------------------------------


def _name_options(options: list[dict[str, Any]], event: ApprovalRequestedEvent) -> list[dict[str, Any]]:
    """The agent's options under our names. A critical request lists denying first and has no "always allow"."""
    allowing = {option["optionId"] for option in options if _allows(option)}
    denying = {option["optionId"] for option in options if not _allows(option)}
    both = allowing & denying  # an answer with such an id would not say which is meant
    named = [{**option, "name": _name_option(option)} for option in options if option["optionId"] not in both]
    if event.risk_level != "critical":
        return named
    kept = [option for option in named if option.get("kind") == "allow_once" or not _allows(option)]
    return sorted(kept, key=_allows)


def _allows(wire: dict[str, Any]) -> bool:
    return str(wire.get("kind")).startswith("allow")


def _name_option(wire: dict[str, Any]) -> str:
    """Pilothouse's label for an option, then the agent's own label, marked as such."""
    option_id, name, kind = (str(wire.get(key) or "") for key in ("optionId", "name", "kind"))
    option = label_option(Option(option_id=option_id, name=name, kind=kind))
    own = shorten_middle(title_of(option.name), _LONGEST_LABEL).replace("“", '"').replace("”", '"')
    if option.is_misleading:
        return f"{option.label} (the agent calls this “{own}”)"
    return option.label if own.casefold() in ("", option.label.casefold()) else f"{option.label} (agent: “{own}”)"


# -- the tool call ------------------------------------------------------------------------------------------------


def _show_call(call: dict[str, Any], event: ApprovalRequestedEvent) -> dict[str, Any]:
    """The agent's tool call with a visible title, and with the hub's notes and preview before its own content."""
    shown = dict(call)
    if isinstance(call.get("title"), str):
        shown["title"] = make_visible(call["title"])
    given = call.get("content")
    own = given if isinstance(given, list) else []
    has_hidden = any(_is_hiding(text) for text in _agent_texts(call, own))
    notes = _notes(event)
    if has_hidden:
        notes.append(HIDDEN)
    # content in a request replaces the content that the client shows, so notes never come without a preview
    is_needed = (notes and not own) or has_hidden or not _has_preview(call, own, event)
    preview = _preview_text(event) if is_needed else ""
    texts = [text for text in ("\n\n".join(notes), preview) if text]
    if texts:
        shown["content"] = [*({"type": "content", "content": {"type": "text", "text": one}} for one in texts), *own]
    return shown


def _notes(event: ApprovalRequestedEvent) -> list[str]:
    """The hub's notes, the reasons of a high or critical risk, and the reach of "always"; a paragraph each.

    A note may quote the agent, so each is one line: a line of the agent cannot look like one of the hub.
    """
    notes = [title_of(note) for note in event.notes]
    if event.risk_level in ("high", "critical"):
        notes.append(_describe_risk(event))
    is_always_offered = any(option.kind.endswith("_always") for option in event.options)
    if event.risk_level != "critical" and is_always_offered and not event.chooses_mode:
        if event.rule_offers:
            notes.append(f"“Always” stores a rule for this session: {title_of(event.rule_offers[0].text)}")
        elif event.rule_refusal:
            why = title_of(event.rule_refusal)
            is_ours = why.startswith(NO_RULE)
            notes.append(f"“Always” stores no rule{why.removeprefix(NO_RULE) if is_ours else f': {why}'}")
    return notes


def _describe_risk(event: ApprovalRequestedEvent) -> str:
    """The risk and its reasons, each on a line of its own if there are several."""
    word = f"{event.risk_level.capitalize()} risk:"
    reasons = [title_of(reason) for reason in event.risk_reasons] or ["the reason is not known"]
    return f"{word} {reasons[0]}" if len(reasons) == 1 else "\n".join([word, *(f"- {one}" for one in reasons)])


def _has_preview(call: dict[str, Any], own: list[Any], event: ApprovalRequestedEvent) -> bool:
    """Whether a client that shows the agent's title and content certainly shows the same as the hub's preview."""
    preview = event.preview
    if _unshown_members(event):
        return False
    if isinstance(preview, DiffPreview):
        return _has_diff(own, preview)
    if any(command.cwd or command.env for command in find_commands(event.tool_input)):
        return False
    expected = preview.command if isinstance(preview, CommandPreview) else preview.text if preview is not None else ""
    expected, title = expected.strip(), str(call.get("title") or "")
    if not expected or _reads_as(title, expected):
        return True
    # among other text it could be hidden, for example in a comment
    return len(own) == 1 and any(
        _reads_as(text, expected) or text.strip() == fenced(expected, "sh") for text in _texts(own)
    )


def _reads_as(text: str, expected: str) -> bool:
    """Whether editors that read a text as Markdown, and shorten a title, show exactly `expected`."""
    if len(expected) > _LONGEST_LINE or "\n" in expected:
        return False
    line = text.strip()
    return line == quote_code(expected) or (line == expected and _MARKDOWN.search(expected) is None)


def _unshown_members(event: ApprovalRequestedEvent) -> dict[str, Any]:
    """The arguments that the preview does not show: all of them where neither a command nor a change is shown."""
    if event.question_ids:
        return list_unshown_of_questions(event.tool_input)
    if event.preview is None:
        return list_other_members(event.tool_input)
    return list_unshown_members(event.tool_input, event.preview)


def _has_diff(own: list[Any], preview: DiffPreview) -> bool:
    """Whether an agent's diffs change the same files in the same way as the hub's preview."""
    claimed: dict[str, list[str]] = {}
    for item in own:
        if isinstance(item, dict) and item.get("type") == "diff":
            claimed.setdefault(posixpath.normpath(str(item.get("path") or "")), []).extend(_diff_lines(item))
    sections = split_sections(preview.diff)
    if not claimed or len(claimed) != len(sections):
        return False
    for section in sections:
        names = _section_names(section.path, preview.path, sections)
        changed = sorted(list_changed_lines("\n".join(section.lines)))
        if not changed or not any(path in names and sorted(lines) == changed for path, lines in claimed.items()):
            return False
    return True


def _section_names(name: str | None, first: str, sections: list[DiffSection]) -> frozenset[str]:
    """The paths under which an agent may name a section of the hub's diff. `first` is the path of one of them."""
    root = find_root(first, sections)
    if len(sections) == 1 or name is None:
        return frozenset({posixpath.normpath(first), *([first.removeprefix(root)] if root else [])})
    return frozenset({name, posixpath.join(root, name)})


def _diff_lines(item: dict[str, Any]) -> list[str]:
    """The changed lines of an agent's diff."""
    old, new = item.get("oldText"), item.get("newText")
    diff = unified_diff(old if isinstance(old, str) else None, new if isinstance(new, str) else None, "file")
    return list_changed_lines(diff.text)


def _is_hiding(text: str) -> bool:
    text = text.replace("\r\n", "\n")
    return make_visible(text) != text


def _agent_texts(call: dict[str, Any], own: list[Any]) -> Iterator[str]:
    """What a client shows of an agent's tool call: its title, its content, and the changed lines of its diffs."""
    yield str(call.get("title") or "")
    for item in own:
        if isinstance(item, dict) and item.get("type") == "diff":
            yield str(item.get("path") or "")
            yield from (line.removesuffix("\r") for line in _diff_lines(item))  # of a file with CRLF
        else:
            yield from _strings(item)


def _strings(value: Any) -> Iterator[str]:
    """The texts in a block of content, without pictures and sounds."""
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            stack += [item for key, item in one.items() if key not in ("data", "blob", "_meta", "annotations")]
        elif isinstance(one, list):
            stack += one


def _texts(content: list[Any]) -> Iterator[str]:
    for item in content:
        block = item.get("content") if isinstance(item, dict) else None
        text = block.get("text") if isinstance(block, dict) else None
        if isinstance(text, str):
            yield text


def _preview_text(event: ApprovalRequestedEvent) -> str:
    preview = event.preview
    arguments = _arguments_text(_unshown_members(event))
    if isinstance(preview, DiffPreview):
        unknown = [section.path for section in split_sections(preview.diff) if not section.lines]
        notes = "".join(
            f"\n\nThe change of {quote_code(title_of(path or preview.path))} is not shown." for path in unknown
        )
        return fenced(_visible_lines(preview.diff), "diff") + notes + arguments
    if isinstance(preview, CommandPreview):
        place = f"\n\nDirectory: {make_visible(preview.working_dir)}" if preview.working_dir else ""
        command, _ = split_command(preview.command, event.tool_input)
        return (fenced(_visible_lines(command), "sh") if command else "") + place + arguments
    text = _visible_lines(preview.text) if preview is not None else ""
    is_said = event.risk_level in ("high", "critical") and text in map(make_visible, event.risk_reasons)
    return (("" if is_said else text) + arguments).strip("\n")


def _arguments_text(arguments: dict[str, Any]) -> str:
    if not arguments:
        return ""
    try:
        text = json.dumps(arguments, indent=2, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = str(arguments)
    return "\n\nArguments:\n" + fenced(_visible_lines(text), "json")


def _visible_lines(text: str) -> str:
    return make_visible(text.replace("\r\n", "\n"))


def _add_facts(call: dict[str, Any], event: ApprovalRequestedEvent) -> dict[str, Any]:
    """Add the hub's facts to the call: not every client passes on fields outside of it."""
    facts: dict[str, Any] = {
        "approvalId": event.request_id,
        "riskLevel": event.risk_level,
        "riskReasons": event.risk_reasons,
        "seq": event.seq,
    }
    facts |= {"notes": event.notes} if event.notes else {}
    facts |= {"origin": event.origin} if event.origin != "agent" else {}
    meta = call.get("_meta")
    return {**call, "_meta": {**(meta if isinstance(meta, dict) else {}), "pilothouse": facts}}


def _permission_from_event(event: ApprovalRequestedEvent) -> dict[str, Any]:
    offered = [option for option in event.options if option.kind in _KINDS]
    if not offered:
        return {}
    call: dict[str, Any] = {
        "toolCallId": event.tool_call_id,
        "title": event.description or event.tool_name,
        "status": "pending",
        "rawInput": event.tool_input,
    }
    options = [{"optionId": option.option_id, "name": option.name, "kind": option.kind} for option in offered]
    return {"toolCall": call, "options": options}


# -- questions ----------------------------------------------------------------------------------------------------


def elicitation_request(event: UserQuestionEvent, session_id: str) -> dict[str, Any] | None:
    """The params of `elicitation/create` for a question; None for one that is answered with a tool's approval."""
    if not event.source and (event.source is not None or event.tool_call_id is not None):
        return None
    for wire in (mapping(event.source) if event.source else {}, _made_elicitation(event)):
        own = {key: value for key, value in wire.items() if key != "requestId"}
        params = {**own, "sessionId": session_id}
        if wire and _fits(_elicitation, params):
            return params
    return None


def elicitation_mode(params: dict[str, Any]) -> str:
    return "url" if params.get("mode") == "url" else "form"


def _made_elicitation(event: UserQuestionEvent) -> dict[str, Any]:
    if event.url is not None:
        return {"mode": "url", "message": event.question, "url": event.url, "elicitationId": event.question_id}
    field: dict[str, Any] = {"type": "string", "title": event.question}
    if event.options:
        field = {**field, "enum": event.options}
        if event.multi_select:
            field = {"type": "array", "title": event.question, "items": {"type": "string", "enum": event.options}}
    form = event.form or {"type": "object", "properties": {"answer": field}, "required": ["answer"]}
    return {"mode": "form", "message": event.question, "requestedSchema": form}


def _fits(decode: Any, params: dict[str, Any]) -> bool:
    try:
        decode(_encode(params))
    except (msgspec.DecodeError, ValueError, TypeError, RecursionError):
        return False
    return True
