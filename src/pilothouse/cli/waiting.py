"""Pending questions of agents, read from the log; the log is right even while a hub runs.

Questions and approvals are listed separately, except for questions that a pending approval lists as its own: these
belong to the approval's entry (`split_questions`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ..app.stored_sessions import Archive
    from ..log.records import SessionRecord

__all__ = ["SHORT_ID", "WAITING", "all_questions", "hint_of", "questions_of", "split_questions"]

SHORT_ID = 12
"""Letters of an id that are enough for a command, so that a line fits into a terminal."""
WAITING = ("waiting_for_input", "waiting_for_approval")


async def all_questions(archive: Archive) -> list[dict[str, Any]]:
    """Pending questions of all sessions, oldest first."""
    from ..log.records import SessionRecord

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
