"""Questions of agents that wait for an answer, read from what is stored; that is right also while a hub runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ..app.archive import Archive
    from ..log.records import SessionRecord

__all__ = ["SHORT_ID", "WAITING", "all_questions", "hint_of", "questions_of"]

SHORT_ID = 12
"""Letters of an id that are enough for a command, so that a line fits into a terminal."""
WAITING = ("waiting_for_input", "waiting_for_approval")


async def all_questions(archive: Archive) -> list[dict[str, Any]]:
    """What waits for an answer, in all sessions."""
    from ..log.records import SessionRecord

    found: list[SessionRecord] = []
    for status in WAITING:
        found += await archive.find(SessionRecord, {"status": status, "deleted": None})
    return await questions_of(archive, found)


async def questions_of(archive: Archive, sessions: Iterable[SessionRecord]) -> list[dict[str, Any]]:
    """What waits for an answer in these sessions, as `approvals --json` tells it, oldest first."""
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
                "created": question.timestamp,
                "expires": question.expires_at,
            }
            for question in state.pending_questions
        ]
    return sorted(rows, key=lambda row: str(row["created"]))


def hint_of(questions: Iterable[dict[str, Any]]) -> list[str]:
    """Where questions wait, a line for each session."""
    counts: dict[str, int] = {}
    for question in questions:
        counts[question["sessionId"]] = counts.get(question["sessionId"], 0) + 1
    return [
        f"{count} question{'s wait' if count != 1 else ' waits'} in {session_id}: "
        + click.style(f"`pilothouse attach {session_id[:SHORT_ID]}`", bold=True)
        for session_id, count in counts.items()
    ]
