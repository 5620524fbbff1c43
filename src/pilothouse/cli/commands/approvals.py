"""`pilothouse approvals`, `approve` and `deny`: pending approvals and questions, and decisions from any terminal.

Pending requests are read from the log, which is right even while a hub runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from ..exits import Exit, Failure, reported
from ..output import ago, complete, console, print_json, say

if TYPE_CHECKING:
    from ...app.stored_sessions import Archive
    from ...log.records import SessionRecord


SHORT_ID = 12
"""Letters of an id that are enough for a command, so that a line fits into a terminal."""
WAITING = ("waiting_for_input", "waiting_for_approval")


async def all_questions(archive: Archive) -> list[dict[str, Any]]:
    """Pending questions of all sessions, oldest first."""
    from ...log.records import SessionRecord

    found: list[SessionRecord] = []
    for status in WAITING:
        found += await archive.find(SessionRecord, {"status": status, "deleted": None})
    return await questions_of(archive, found)


async def questions_of(archive: Archive, sessions: Iterable[SessionRecord]) -> list[dict[str, Any]]:
    """Pending questions of these sessions as `approvals --json` has them, oldest first."""
    rows: list[dict[str, Any]] = []
    for record in sessions:
        if record.status not in WAITING:
            continue
        state = await archive.fold(record.id)
        rows += [
            {
                "kind": "question",
                "id": question.question_id,
                "sessionId": record.id,
                "state": "pending",
                "question": question.question,
                "options": question.options or [],
                "multiSelect": question.multi_select,
                "toolCallId": question.tool_call_id,
                "created": question.timestamp,
                "expires": question.expires_at,
            }
            for question in state.pending_questions
        ]
    return sorted(rows, key=lambda row: str(row["created"]))


def split_questions(
    approvals: Iterable[dict[str, Any]], questions: Iterable[dict[str, Any]]
) -> tuple[dict[str, list[dict[str, Any]]], list[dict[str, Any]]]:
    """The questions of each approval by the approval's id, in the approval's order; and those of no approval."""
    rows = {(str(question["sessionId"]), str(question["id"])): question for question in questions}
    owned: dict[str, list[dict[str, Any]]] = {}
    for approval in approvals:
        keys = [(str(approval["sessionId"]), str(one)) for one in approval["request"].get("questionIds") or ()]
        owned[str(approval["id"])] = [rows.pop(key) for key in keys if key in rows]
    return owned, list(rows.values())


def hint_of(questions: Iterable[dict[str, Any]]) -> list[str]:
    """How many questions are pending, a line for each session."""
    counts: dict[str, int] = {}
    for question in questions:
        counts[question["sessionId"]] = counts.get(question["sessionId"], 0) + 1
    return [
        f"{count} question{'s wait' if count != 1 else ' waits'} in {session_id}: "
        + click.style(f"`pilothouse attach {session_id[:SHORT_ID]}`", bold=True)
        for session_id, count in counts.items()
    ]


if TYPE_CHECKING:
    from ...terminal.screen import Screen


OPTIONS = 10
"""Options of an approval in the list: more of them would push its command out of sight."""


@click.command()
@click.argument("approval", metavar="[ID]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
@reported
def approvals(approval: str | None, as_json: bool) -> None:
    """List pending approvals with risk and preview, and pending questions.

    With an ID, show that approval in full; the list shortens long commands and changes.

    An approval of a tool that asks you something is one entry with its questions: approve it with --answer. With
    --json, `kind` is `approval` or `question`, and an approval has its `questions`. Answer other questions with
    `pilothouse attach`.
    """
    pending, questions, is_live = complete(_pending())
    owned, others = split_questions(pending, questions)
    if approval is not None:
        found = _match_approval([str(one["id"]) for one in pending], approval)
        pending, others = [one for one in pending if one["id"] == found], []
        if not pending:
            raise Failure(f"no pending approval {approval!r}. List them with: pilothouse approvals", Exit.USAGE)
    if as_json:
        rows = [{"kind": "approval", **one, "questions": owned[str(one["id"])]} for one in pending]
        print_json([*rows, *others])
        return
    if not pending and not questions:
        click.echo("No pending approvals", err=True)
        return
    for one in pending:
        _print(one, owned[str(one["id"])], whole=approval is not None)
    if pending and is_live:
        say("\nDecide: `pilothouse approve ID` or `pilothouse deny ID`. Show one in full: `pilothouse approvals ID`.")
    if pending and others:
        click.echo()
    _print_questions(others)
    for line in hint_of(others):
        say(line)
    if not is_live:
        say("\nNo hub is running: these requests are from one that stopped, and the next one cancels them.", err=True)


async def _pending() -> tuple[list[dict[str, Any]], list[dict[str, Any]], bool]:
    """Pending approvals and questions, and whether a running hub can take a decision."""
    from ...app.stored_sessions import find_hub, open_archive
    from ...config import load_config

    config = load_config()
    hub = await find_hub(config)
    async with open_archive(config) as archive:
        questions = await all_questions(archive)
        if hub is not None:
            return await hub.approvals(), questions, True
        return [_row(record) for record in await archive.approvals.pending()], questions, False


def _row(record: Any) -> dict[str, Any]:
    """An approval of the archive in the shape that the hub sends."""
    return {
        "id": record.id,
        "sessionId": record.session_id,
        "state": record.state,
        "request": record.request,
        "options": record.options,
        "created": record.created,
        "expires": record.expires,
        "resolved": record.resolved,
        "decision": record.decision,
        "decidedBy": record.decided_by,
    }


def _print(approval: dict[str, Any], questions: Sequence[dict[str, Any]], *, whole: bool) -> None:
    import msgspec
    from rich.text import Text

    from ...dialects.texts import shown, title_of
    from ...model.errors import ValidationError
    from ...model.events import ApprovalRequestedEvent, decode_event
    from ...terminal.asking import describe_refusal
    from ...terminal.screen import Screen

    screen = Screen(console(), live=False)
    try:
        event = decode_event(msgspec.json.encode({**approval["request"], "options": approval["options"], "seq": 1}))
    except ValidationError as exc:
        screen.say(f"{approval['id']} cannot be shown: {title_of(str(exc))}", "red")
        return
    if isinstance(event, ApprovalRequestedEvent):
        screen.decisions.approval(event, whole=whole)
        for question in questions:
            screen.indented(Text(_question_line(question), overflow="fold"))
        for offer in event.rule_offers:
            name = offer.offer_id.replace("_", "-")
            screen.indented(Text(f"--always … --rule {name}: {shown(offer.text)}", style="dim", overflow="fold"))
        if event.rule_refusal and not event.rule_offers:
            screen.indented(Text(describe_refusal(event.rule_refusal), style="dim", overflow="fold"))
        _print_options(screen, event, None if whole else OPTIONS)
    about = f"{approval['id']} · {approval['sessionId']} · {ago(approval['created'])}"
    screen.indented(Text(about, style="dim", overflow="fold"))


def _print_options(screen: Screen, event: Any, limit: int | None) -> None:
    """The agent's options by id, with Pilothouse's label for each. With a `limit` only so many of them."""
    from rich.text import Text

    from ...dialects.texts import title_of
    from ...terminal.asking import describe_option

    shown = event.options[:limit]
    lines = [f"--option {title_of(option.option_id)}: {describe_option(option)}" for option in shown]
    if len(event.options) > len(shown):
        lines.append(f"… {len(event.options) - len(shown):,} more options; `pilothouse approvals ID` shows them")
    for line in lines:
        screen.indented(Text(line, style="dim", overflow="fold"))


def _print_questions(questions: Sequence[dict[str, Any]]) -> None:
    from ...dialects.texts import title_of

    for question in questions:
        say(f"? {title_of(str(question['question']))}")


def _question_line(question: dict[str, Any]) -> str:
    """A question of an approval: its id, its text, and its options."""
    from ...dialects.texts import title_of

    options = " / ".join(title_of(str(option)) for option in question["options"])
    asked = f"{title_of(str(question['id']))}: {title_of(str(question['question']))}"
    return f"{asked} ({options})" if options else asked


@click.command()
@click.argument("approval", metavar="ID")
@click.option("--option", metavar="OPTION", help="Choose one of the agent's own options by its id")
@click.option(
    "--always",
    type=click.Choice(["session", "project", "everywhere"]),
    help="Store a rule for this session, its directory, or everywhere; `approvals` shows the rule's exact reach",
)
@click.option(
    "--rule",
    type=click.Choice(["exact", "any-arguments"]),
    help="Rule for --always to store; the narrowest by default",
)
@click.option(
    "--answer",
    "answers",
    multiple=True,
    metavar="[ID=]TEXT",
    help="Answer a question of the request; the question's id may be left out if there is only one",
)
@click.option("--json", "as_json", is_flag=True, help="Print the approval after the decision")
@reported
def approve(
    approval: str, option: str | None, always: str | None, rule: str | None, answers: tuple[str, ...], as_json: bool
) -> None:
    """Allow a request of an agent. The first decision wins; the same one again changes nothing.

    A request that has questions needs an answer to each of them: --answer ID=TEXT, once for each question, or more
    than once where several options may be chosen.
    """
    if rule is not None and always is None:
        raise click.UsageError("--rule needs --always: it names the rule that is stored")
    decision: dict[str, Any] = {
        "approved": None if option is not None else True,
        "option_id": option,
        "remember": always or "once",
        "rule": rule.replace("-", "_") if rule is not None else None,
    }
    _print_decision(complete(_decide(approval, decision, answers)), as_json)


@click.command()
@click.argument("approval", metavar="ID")
@click.option("--reason", metavar="TEXT", help="Reason to send to the agent")
@click.option("--json", "as_json", is_flag=True, help="Print the approval after the decision")
@reported
def deny(approval: str, reason: str | None, as_json: bool) -> None:
    """Deny a request. The agent continues without it; use `pilothouse cancel` to stop the turn."""
    _print_decision(complete(_decide(approval, {"approved": False, "reason": reason})), as_json)


def _print_decision(decided: dict[str, Any], as_json: bool) -> None:
    """The decision, and the rule that it stored or why it stored none."""
    if as_json:
        print_json(decided)
        return
    from ...dialects.texts import title_of
    from ..chat.requests import describe_stored_rule

    request, decision = decided["request"], decided.get("decision") or {}
    word = "Allowed" if decision.get("approved") else "Denied"
    click.echo(f"{word}: {title_of(str(request.get('description') or request.get('toolName') or decided['id']))}")
    if line := describe_stored_rule(decision):
        click.echo(title_of(line))


async def _decide(beginning: str, decision: dict[str, Any], given: Sequence[str] | None = None) -> dict[str, Any]:
    """Send a decision to the running hub. `given` are the answers of an approval, None for a denial."""
    from ...app.stored_sessions import find_hub
    from ...config import load_config

    hub = await find_hub(load_config())
    if hub is None:
        raise Failure("no hub is running, so no approval is pending. Start one with: pilothouse serve", Exit.HOME)
    pending = await hub.approvals()
    approval_id = _match_approval([str(approval["id"]) for approval in pending], beginning)
    if given is not None:
        found = next((approval for approval in pending if approval["id"] == approval_id), None)
        decision = {**decision, "answers": await _collect_answers(found, given, decision.get("option_id"))}
    return await hub.decide(approval_id, **decision)


def _match_approval(pending: Sequence[str], beginning: str) -> str:
    """The pending approval whose id starts with `beginning`; else `beginning`, for which the hub reports an error."""
    found = [one for one in pending if beginning and one.startswith((beginning, f"apr_{beginning}"))]
    if len(found) > 1 and beginning not in found:
        some = ", ".join(found[:4])
        raise Failure(f"{beginning!r} matches {len(found)} approvals; add characters: {some}", Exit.USAGE)
    return found[0] if len(found) == 1 else beginning


async def _collect_answers(
    approval: dict[str, Any] | None, given: Sequence[str], option_id: str | None
) -> dict[str, str | list[str]] | None:
    """The answers that an approval needs; None for one without questions. Raises Failure."""
    ids = [str(one) for one in (approval["request"].get("questionIds") or ())] if approval is not None else []
    if approval is None or not ids:
        if given:
            raise Failure("--answer is only for a pending request that has questions; this one has none", Exit.USAGE)
        return None
    kinds = [str(one["kind"]) for one in approval["options"] if one["optionId"] == option_id]
    if option_id is not None and not given and not any(kind.startswith("allow") for kind in kinds):
        return None  # a denial needs no answers
    questions = await _questions_of(approval, ids)
    return read_answers(str(approval["id"]), questions, given)


async def _questions_of(approval: dict[str, Any], ids: Sequence[str]) -> list[dict[str, Any]]:
    """The questions of an approval in its order; of one that is not in the log only the id is known."""
    from ...app.stored_sessions import open_archive
    from ...config import load_config

    async with open_archive(load_config()) as archive:
        owned, _ = split_questions([approval], await all_questions(archive))
    known = {str(row["id"]): row for row in owned[str(approval["id"])]}
    return [known.get(one) or {"id": one, "question": "", "options": [], "multiSelect": False} for one in ids]


def read_answers(
    approval_id: str, questions: Sequence[dict[str, Any]], given: Sequence[str]
) -> dict[str, str | list[str]]:
    """Answers by question id, from `ID=TEXT`, or from `TEXT` if there is one question. Raises Failure."""
    found: dict[str, list[str]] = {str(question["id"]): [] for question in questions}
    for text in given:
        # the longest id first: one id may be the beginning of another
        named = next((one for one in sorted(found, key=len, reverse=True) if text.startswith(f"{one}=")), None)
        if named is not None:
            found[named].append(text[len(named) + 1 :])
        elif len(found) == 1:
            next(iter(found.values())).append(text)
        else:
            needed = _explain_needed_answers(approval_id, questions)
            raise Failure(f"--answer {text!r} names none of the questions.\n{needed}", Exit.USAGE)
    if not all(found.values()):
        raise Failure(_explain_needed_answers(approval_id, questions), Exit.USAGE)
    answers: dict[str, str | list[str]] = {}
    for question in questions:
        several = found[str(question["id"])]
        if len(several) > 1 and not question["multiSelect"]:
            raise Failure(f"question {question['id']} takes one answer, got {len(several)}", Exit.USAGE)
        answers[str(question["id"])] = several if question["multiSelect"] else several[0]
    return answers


def _explain_needed_answers(approval_id: str, questions: Sequence[dict[str, Any]]) -> str:
    """Which answers an approval needs, and the command that gives them."""
    options = ["--answer TEXT"] if len(questions) == 1 else [f"--answer '{one['id']}=TEXT'" for one in questions]
    lines = [f"{approval_id} needs an answer to each of its questions:"]
    lines += [f"  {_question_line(question)}" for question in questions]
    return "\n".join([*lines, f"Answer with: pilothouse approve {approval_id} {' '.join(options)}"])
