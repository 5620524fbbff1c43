"""The question before a call acts: what is offered, what the answer means, and what an "always" covers.

Only an answer that chose an option of an allowing kind allows. An "always" is narrow: one command to the letter, one
file, one site, one tool of one server; and it ends with the process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...acp import AllowedOutcome, DeniedOutcome, PermissionOption, RequestPermissionResponse, is_allowed

__all__ = ["Decision", "Grant", "decide", "options_for"]

SHOWN = 60


@dataclass(frozen=True)
class Grant:
    """What a call needs leave for. `about` completes "Always allow …"; `changes` is false for what only looks."""

    key: tuple[str, ...]
    about: str
    changes: bool = True


@dataclass(frozen=True)
class Decision:
    """What the user decided; `always` when it is to hold for the session, `cancelled` when nobody decided."""

    allowed: bool
    always: bool = False
    cancelled: bool = False
    reason: str | None = None


def options_for(grant: Grant) -> list[PermissionOption]:
    about = grant.about if len(grant.about) <= SHOWN else f"{grant.about[: SHOWN - 1]}…"
    return [
        PermissionOption(option_id="allow-once", name="Allow", kind="allow_once"),
        PermissionOption(option_id="allow-always", name=f"Always allow {about} in this session", kind="allow_always"),
        PermissionOption(option_id="reject-once", name="Reject", kind="reject_once"),
        PermissionOption(
            option_id="reject-always", name=f"Always reject {about} in this session", kind="reject_always"
        ),
    ]


def decide(response: RequestPermissionResponse, options: Sequence[PermissionOption]) -> Decision:
    """What an answer means, by the kind of the option it chose."""
    outcome = response.outcome
    if isinstance(outcome, DeniedOutcome):
        return Decision(False, cancelled=True)
    chosen = outcome.option_id if isinstance(outcome, AllowedOutcome) else None
    kinds = {option.kind for option in options if option.option_id == chosen}
    always = bool(kinds) and kinds <= {"allow_always", "reject_always"}
    return Decision(is_allowed(response, options), always=always, reason=_reason(response.field_meta))


def _reason(meta: dict[str, Any] | None) -> str | None:
    """Why it was rejected, if the client tells: the protocol has no field for it."""
    reason = (meta or {}).get("reason")
    return reason if isinstance(reason, str) and reason.strip() else None
