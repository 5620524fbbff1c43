"""Standing rules: the "always" answers that the hub holds, and how one is made from a decision.

A rule made here is the narrowest that answers the same question again: exactly this command, this file, this tool.
It is tried on that very question before it is kept. What no rule can answer safely (a chain, a substitution, a
wildcard, a redirection) is never remembered; it is asked about each time.
"""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import msgspec

from ..log.base import EventLog
from ..log.records import Rule as RuleRecord
from ..model.events import ApprovalRequestedEvent
from ..model.policy import Decision, Rule, compile_policy, decide
from ..model.policy.globs import command_glob, path_glob
from ..model.policy.rules import Policy
from ..model.shell import parse
from ..model.tools import command_text, file_paths

__all__ = ["Remember", "StandingRules", "later", "rule_for"]

Remember = Literal["once", "session", "project", "everywhere"]
SOURCE = "always:"
Effect = Literal["allow", "deny"]


class StandingRules:
    """What is answered without asking in one session: its policy, and the rules that hold there."""

    def __init__(self, log: EventLog, session_id: str, workspace: str) -> None:
        self._log = log
        self._session_id = session_id
        self._workspace = workspace
        self.policy: Policy | None = None

    async def rules(self) -> list[Rule]:
        """Those in force now; read each time, so that a revoked rule never answers."""
        found = list(compile_policy(self.policy)) if self.policy is not None else []
        keys: Mapping[str, str] = {"session": self._session_id, "project": self._workspace, "everywhere": ""}
        for record in await self._log.rules.active():
            if keys.get(record.scope) == record.scope_key and (rule := _as_rule(record)) is not None:
                found.append(rule)
        return found

    def decide(self, rules: list[Rule], name: str, tool_input: Any) -> Decision:
        return decide(rules or None, name, tool_input, self._workspace)

    def hits(self, decision: Decision, rules: list[Rule]) -> list[Any]:
        """The changes that count the rules which made a decision."""
        sources = {rule.source for rule in rules if rule.source.startswith(SOURCE)}
        used = [source.removeprefix(SOURCE) for source in sorted(sources) if source in (decision.rule or "")]
        return [self._log.rules.hitting(rule_id) for rule_id in used]

    def remembering(
        self,
        event: ApprovalRequestedEvent,
        allowed: bool,
        scope: Remember,
        now: str,
        seconds: float | None = None,
        *,
        by: str | None = None,
        device_id: str | None = None,
    ) -> RuleRecord | None:
        """The rule that will answer the same question, for so many seconds or for good; None when none safely can."""
        if scope == "once":
            return None
        effect: Effect = "allow" if allowed else "deny"
        rule = rule_for(event.tool_name, event.tool_input, effect, self._workspace)
        if rule is None:
            return None
        return RuleRecord(
            id=f"rule_{secrets.token_hex(6)}",
            scope=scope,
            scope_key={"session": self._session_id, "project": self._workspace}.get(scope, ""),
            rule={"subject": rule.subject, "pattern": rule.pattern, "toolName": event.tool_name},
            effect=effect,
            created=now,
            expires=later(seconds) if seconds is not None else None,
            made_by=by,
            device_id=device_id,
            approval_id=event.request_id,
        )


def rule_for(name: str, tool_input: Any, effect: Effect, workspace: str | None) -> Rule | None:
    """The narrowest rule that answers the same question again; None when there is none."""
    for rule in _candidates(name, tool_input, effect):
        if decide([rule], name, tool_input, workspace).outcome == effect:
            return rule
    return None


def _candidates(name: str, tool_input: Any, effect: Effect) -> Iterable[Rule]:
    command = command_text(tool_input)
    if command is not None:
        pattern = _literal_command(command)
        if pattern is not None:
            yield Rule(effect, "commands", pattern)
        return
    paths = file_paths(tool_input)
    if len(paths) == 1:
        yield Rule(effect, "writes", _literal_path(paths[0]))
        yield Rule(effect, "reads", _literal_path(paths[0]))
    if not paths:
        yield Rule(effect, "tools", name)


def _literal_command(command: str) -> str | None:
    """A pattern that fits this one command and no other."""
    script = parse(command, unwrapped=False)
    if not script.trusted or len(script.commands) != 1:
        return None
    (only,) = script.commands
    if (
        only.redirects
        or only.assignments
        or only.piped
        or not all(word.static and not word.glob for word in only.words)
    ):
        return None
    return " ".join(shlex.quote(word.text) for word in only.words)


def _literal_path(path: str) -> str:
    return "".join(f"[{one}]" if one in "*?[" else one for one in path)


def _as_rule(record: RuleRecord) -> Rule | None:
    """The rule of a record, as far as it can be read: one written by a later version answers nothing."""
    given = {"effect": record.effect, "subject": record.rule.get("subject"), "pattern": record.rule.get("pattern")}
    try:
        rule = msgspec.convert({**given, "source": f"{SOURCE}{record.id}"}, Rule)
        if rule.pattern is not None:
            _READERS.get(rule.subject, str)(rule.pattern)
    except ValueError:  # ValidationError is one
        return None
    return rule


_READERS: Mapping[str, Callable[[str], object]] = {
    "commands": command_glob,
    "reads": path_glob,
    "writes": path_glob,
}


def later(seconds: float) -> str:
    moment = datetime.now(UTC) + timedelta(seconds=seconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
