"""Whether an agent keeps to what it was allowed: what it did by itself, and what it asks the hub to do for it.

What a tool did without the approval that it should have had, or although it was denied, is flagged afterwards; nobody
can do more about that. Files and programs that go through the hub are held against the rules before: what a rule
denies, and what was denied in this turn and never allowed, is not done. What nobody was asked about is done, because
agents may have their user's leave by ways of their own, and flagged.
"""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from ..model.events import (
    ACPEvent,
    ApprovalRequestedEvent,
    ToolCallErrorEvent,
    ToolCallExecutingEvent,
    ToolCallResultEvent,
)
from ..model.policy import Rule, decide
from ..model.records import DiffPreview
from ..model.risk import Level, assess_risk, worst
from ..model.session import Approval
from ..model.tools import command_text, file_paths
from .recorder import Recorder
from .refusals import Forbidden, shown
from .standing import StandingRules
from .workspace import Workspace

__all__ = ["Conduct"]

MOST_RUNNING = 1000
SHELLS = frozenset({"sh", "bash", "zsh", "dash"})
RISK: Level = "medium"
"""From this risk on somebody should have been asked."""


class Conduct:
    """Watches one session's agent."""

    def __init__(self, recorder: Recorder, standing: StandingRules, workspace: Workspace, cwd: str) -> None:
        self._recorder = recorder
        self._standing = standing
        self._workspace = workspace
        self._cwd = cwd
        self._running: dict[str, ToolCallExecutingEvent] = {}
        self._trusted: set[str] = set()
        self._allowed: set[str] = set()
        self._denied: set[str] = set()
        self._turn: str | None = None

    # -- what people said --

    def trust(self, tool_name: str) -> None:
        """The user told the agent itself to go on without asking about this tool."""
        self._trusted.add(tool_name)

    def decided(self, event: ApprovalRequestedEvent, *, approved: bool) -> None:
        """A person or a rule decided what the agent had asked for."""
        self._enter_turn()
        command = command_text(event.tool_input)
        paths = file_paths(event.tool_input)
        if isinstance(event.preview, DiffPreview):
            paths.append(event.preview.path)
        about = {place for path in paths for place in self._names(path)}
        about |= {command} if command is not None else set()
        # one that names nothing still tells that somebody was asked
        (self._allowed if approved else self._denied).update(about or {""})

    def _enter_turn(self) -> None:
        """What was decided counts for the turn in which it was asked."""
        turn = self._recorder.translator.turn
        if turn != self._turn:
            self._turn, self._allowed, self._denied = turn, set(), set()

    # -- what the agent did --

    def forget(self) -> None:
        """The agent is gone, and with it what it was doing."""
        self._running.clear()

    def watch(self, events: list[ACPEvent]) -> None:
        """Flag, among these events, what was done without the approval that should have been asked for."""
        for event in events:
            if type(event) is ToolCallExecutingEvent:
                if len(self._running) > MOST_RUNNING:  # what was never told to have ended, by an agent that forgets
                    self._running.clear()
                self._running[event.tool_call_id] = event
            elif type(event) is ToolCallErrorEvent:
                self._running.pop(event.tool_call_id, None)
            elif type(event) is ToolCallResultEvent:
                events += self._judge(event, self._running.pop(event.tool_call_id, None))
                return

    def _judge(self, done: ToolCallResultEvent, ran: ToolCallExecutingEvent | None) -> list[ACPEvent]:
        """What is to be said of a call that the agent says was done."""
        data: dict[str, Any] = {"toolCallId": done.tool_call_id, "name": done.name}
        asked = self._asked(done.tool_call_id)
        if asked and _is_denied(asked[-1]):
            data |= {"riskLevel": asked[-1].risk_level, "denied": True}
        elif ran is not None and not asked and not ran.requires_approval and self._should_have_asked(ran):
            data["riskLevel"] = ran.risk_level
        else:
            return []
        return self._recorder.translator.fact("acted_without_asking", data, self._recorder.now())

    def _asked(self, call_id: str) -> list[Approval]:
        """The approvals of a call; some say that a call runs, and ask only then."""
        index = self._recorder.session.index
        call = index.calls.get(call_id)
        if call is None or call.ended:  # an id may be used again: an earlier call does not count
            return []
        return [index.approvals[one] for one in call.approval_ids if one in index.approvals]

    def _should_have_asked(self, ran: ToolCallExecutingEvent) -> bool:
        if ran.name in self._trusted or not _is_risky(ran):
            return False
        return decide(self._standing.policy, ran.name, ran.input, self._cwd).outcome != "allow"

    # -- what the agent wants the hub to do --

    async def check_read(self, path: str) -> None:
        """Raises Forbidden."""
        for place in await self._places(path):
            self._refuse_denied(await self._standing.rules(), "Read", {"file_path": place})

    async def check_write(self, path: str) -> None:
        """Raises Forbidden."""
        places = await self._places(path)
        await self._check("Write", [{"file_path": place} for place in places], set(places), {"path": path})

    async def check_program(self, command: str, args: Sequence[str]) -> None:
        """Raises Forbidden."""
        line = shlex.join([command, *args]) if args else command
        inner = {args[-1]} if args and os.path.basename(command) in SHELLS else set()  # noqa: PTH119 - any text
        await self._check("Bash", [{"command": line}], {line, *inner}, {"command": line})

    async def _check(self, name: str, inputs: list[dict[str, Any]], about: set[str], told: dict[str, Any]) -> None:
        rules = await self._standing.rules()
        allowed = [self._refuse_denied(rules, name, one) for one in inputs]
        self._enter_turn()
        if about & self._denied and not about & self._allowed:
            self._refuse(name, "it was denied in this turn", told)
        if all(allowed) or self._allowed or self._trusted or any(map(_is_risky, self._running.values())):
            return  # allowed, or a tool call of the agent that is judged by itself
        risk = worst(assess_risk(name, one, self._cwd).level for one in inputs)
        if worst([risk, RISK]) == risk:
            self._recorder.note("acted_without_asking", {"toolCallId": None, "name": name, "riskLevel": risk, **told})

    def _refuse_denied(self, rules: list[Rule], name: str, tool_input: dict[str, Any]) -> bool:
        """Whether a rule allows it. Raises Forbidden if one denies it."""
        decision = self._standing.decide(rules, name, tool_input)
        if decision.outcome == "deny":
            self._refuse(name, decision.reason, tool_input)
        return decision.outcome == "allow"

    def _refuse(self, name: str, reason: str, told: dict[str, Any]) -> None:
        self._recorder.note("refused", {"name": name, "reason": reason, **told})
        raise Forbidden(f"{name} of {shown(next(iter(told.values())))} refused: {reason}")

    async def _places(self, path: str) -> list[str]:
        """A path as rules see it: as it was given, and where it leads. Raises WorkspaceError."""
        target = await asyncio.to_thread(self._workspace.resolve, path)
        return list(dict.fromkeys([self._normal(path), self._leads(target)]))

    def _names(self, path: str) -> list[str]:
        """The same for what somebody decided, be it inside or not: denied by one name, a file is by all of them."""
        normal = self._normal(path)
        try:
            return [normal, self._leads(Path(os.path.realpath(normal)))]
        except (OSError, ValueError):  # no path that the system knows
            return [normal]

    def _leads(self, target: Path) -> str:
        root = self._workspace.root
        return self._normal(str(target.relative_to(root)) if target.is_relative_to(root) else str(target))

    def _normal(self, path: str) -> str:
        return os.path.normpath(os.path.join(self._cwd, path))  # noqa: PTH118 - compared by its letters


def _is_risky(ran: ToolCallExecutingEvent | Approval) -> bool:
    return worst([cast(Level, ran.risk_level), RISK]) == ran.risk_level


def _is_denied(approval: Approval) -> bool:
    """Whether somebody said no to what has effects; who stops a turn, or a plan, has denied nothing that runs."""
    return approval.approved is False and approval.resolved_by != "cancelled" and _is_risky(approval)
