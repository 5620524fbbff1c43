"""Permission for each act that an agent asks the hub to carry out: writing a file, running a command.

Every act needs a permission of its own: a rule, a mode that the user chose, or an approval that showed exactly this
act. Without one, the hub asks the user and explains how the act differs from those that were allowed. Rules a change
must not break:

- An approval covers the acts that it showed, each of them once. Acts are compared by effect (`model.acts`), never by
  order, title or id.
- The use of an approval is committed before its act; if the act fails, the approval can be used again. Approvals and
  denials end with their turn.
- A denied act is refused for the rest of its turn, and so is any write to the same file without an approval of its own.
- After a turn is cancelled, nothing more is done for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

from ...acp.errors import RequestError
from ...adapters.catalog import PermissionBehavior
from ...dialects.acp import NamedFiles
from ...model.acts import (
    CommandAct,
    Effects,
    FileEdit,
    apply_edits,
    extra_variables,
    format_act,
    merge_effects,
    normalize_text,
)
from ...model.diffs import unified_diff
from ...model.policy import Decision, Rule
from ...model.previews import quote_code
from ...model.risk import Reason, assess_risk
from ...model.tools import categorize_tool, exact_path, file_paths
from ...model.tools.commands import find_commands
from ..client.editors import PEEK, Editors, EditorSilent
from ..client.refusals import Changed, Forbidden, NoSuchFile, Refusal, shown
from ..client.terminals import base_environment
from ..client.workspace import Workspace
from ..recording.recorder import Recorder
from ..recording.rules import StandingRules
from .denials import NO_FILES, Denials, find_similar

DIFFERENCE_LINES = 20
"""Lines to show of the difference between the allowed change and the requested one."""

READ_AT_ONCE = 16
"""Files that are read at the same time."""
LONGEST_KEPT = 65_536
"""Characters of a written text that are kept to recognise a report of the write; of a longer one only its path is."""


class ActDecision(NamedTuple):
    """The user's decision about an act."""

    approved: bool
    request_id: str
    reason: str | None = None


Ask = Callable[[dict[str, Any], Effects, list[str], Mapping[str, str | None]], Awaitable[ActDecision]]
"""Ask the user about an act: the tool call as ACP has it, its effects, notes, and the current texts of the files that
it changes."""


class ActGrant:
    """The acts that one approval covers. Each command and each file is used up separately.

    `base` are the texts of the files that the acts were shown against, `results` those after them. `mentioned` are
    commands that were shown but are not covered.
    """

    def __init__(
        self, request_id: str, effects: Effects, base: Mapping[str, str | None], mentioned: Sequence[CommandAct] = ()
    ) -> None:
        self.request_id = request_id
        self.effects = effects
        self.is_by_rule = False
        commands = list(dict.fromkeys(effects.commands))
        # next to a change of files a command is only mentioned; several commands read as one script (`cd a`, `rm b`)
        is_covered = not effects.edits and len(commands) < 2
        self.commands = commands if is_covered else []
        self.mentioned = [*mentioned, *([] if is_covered else commands)]
        self.used_commands: list[CommandAct] = []
        self.files = effects.group_edits()
        self.base = base
        self.results = effects.apply_to(base)
        self.used_files: set[str] = set()

    def covers_command(self, act: CommandAct) -> bool:
        """Whether this command is covered and not used up yet."""
        return self.commands.count(act) > self.used_commands.count(act)

    def covers_write(self, path: str, content: str, current: str | None) -> bool:
        """Whether a text is the result that was shown, and replaces the text that was shown.

        If the file has another text by now, the shown edits must fit it, each in exactly one place.
        """
        if path not in self.files or path in self.used_files:
            return False
        if self.results.get(path) is None:  # how the file would change was not shown
            return False
        if _is_same_text(self.base[path], current):
            return normalize_text(content) == self.results[path]
        edits = self.files[path]
        if not all(edit.old and not edit.replace_all for edit in edits):
            return False
        return apply_edits(current, edits) == normalize_text(content)

    def use(self, act: Effects) -> None:
        """Mark these acts as used up; the approval does not cover them again."""
        self.used_commands += act.commands
        self.used_files |= {edit.path for edit in act.edits}

    def revoke(self, denied: Effects) -> None:
        """Cover nothing any more that was denied since: equal commands, and edits that may have the same result.

        This holds for an act in progress as well: if it fails, it is not covered again.
        """
        self.commands = [act for act in self.commands if act not in denied.commands]
        results = denied.apply_to(self.base)
        for path in denied.group_edits():
            if _may_be_same(results.get(path), self.results.get(path)):
                self.files.pop(path, None)

    def give_back(self, act: Effects) -> None:
        """Undo `use` for acts that were not carried out."""
        for command in act.commands:
            self.used_commands.remove(command)
        self.used_files -= {edit.path for edit in act.edits}


class TurnDecisions(NamedTuple):
    """The decisions and the acts of one turn."""

    grants: Sequence[ActGrant]
    denials: tuple[Denials, ...]
    done: Effects
    refused: Effects


NO_EFFECTS = Effects()
NO_DECISIONS = TurnDecisions((), (), NO_EFFECTS, NO_EFFECTS)


class PermittedRead(NamedTuple):
    """A read that no rule denies, of `target` and of no other path; `editor_path` is its name in an editor."""

    target: str
    editor_path: str


class PermittedWrite(NamedTuple):
    """A write that may be carried out now, to `target` and to no other path; `editor_path` is its name in an editor.

    `check` must hold for the text that it replaces, if there is one. `is_needed` is false if the file has this text
    already: then nothing is written.
    """

    target: str
    editor_path: str
    check: Callable[[str | None], bool] | None = None
    is_needed: bool = True


class Permit(NamedTuple):
    """The permission for one act. `reason` names exactly one of an approval, a rule and a mode."""

    act_id: str
    reason: dict[str, str]
    grant: ActGrant | None = None
    call_id: str | None = None
    """The transcript entry that the hub created for this act."""
    is_bound_to_base: bool = False
    """Whether a write is permitted only for the text that was just read, so the file must not change before it."""


class Authorization:
    """Permits or refuses the acts of one session.

    `ask` asks the user about an act. `behavior` returns how the agent asks for permission.
    """

    def __init__(
        self,
        recorder: Recorder,
        standing: StandingRules,
        workspace: Workspace,
        editors: Editors,
        cwd: str,
        behavior: Callable[[], PermissionBehavior] = PermissionBehavior,
        chosen_mode: str | None = None,
    ) -> None:
        self._recorder = recorder
        self._standing = standing
        self._workspace = workspace
        self._editors = editors
        self._cwd = cwd
        self._behavior = behavior
        self._chosen_mode = chosen_mode
        self._period = -1  # before the first turn; an idle session keeps no lists
        self._grants: list[ActGrant]
        self._denials: Denials
        self._done = self._refused = NO_EFFECTS
        self._last = NO_DECISIONS
        self._writing: dict[str, asyncio.Lock] = {}
        self.ask: Ask
        self.stopped: str | None = None
        """Why every act is refused: the turn was cancelled and the next one has not started. None otherwise."""

    # -- modes --

    def choose_mode(self, mode_id: str) -> None:
        """Record that the user chose this mode and that the agent is in it."""
        if mode_id != self._chosen_mode:
            self._chosen_mode = mode_id
            self._recorder.note("mode_chosen", {"modeId": mode_id})

    def leave_mode(self, mode_id: str) -> None:
        """Record that the session enters another mode than the chosen one: the agent reports it, or the user wants it.

        A mode that the agent enters by itself is not the user's choice, nor is one that it refuses to leave.
        """
        if self._chosen_mode is not None and mode_id != self._chosen_mode:
            self._chosen_mode = None
            self._recorder.note("mode_chosen", {"modeId": None})

    def _find_mode_without_approval(self, acts: Literal["writes", "commands"]) -> str | None:
        """The mode, chosen by the user, in which the agent does not ask about such acts; None if it is in none."""
        chosen = self._mode_of_user()
        return chosen if self._behavior().modes_without_approval.get(chosen or "") in ("everything", acts) else None

    def _mode_of_user(self) -> str | None:
        """The mode of the session, if the user chose it."""
        return self._chosen_mode if self._recorder.session.mode in (None, self._chosen_mode) else None

    # -- decisions --

    async def read_files(self, effects: Effects) -> dict[str, str | None]:
        """The current texts of the files that these effects change, by path; None for a file that does not exist.

        The paths must be resolved. Files that are not text, too large or outside the workspace are left out, and so
        are those whose path leads elsewhere by now.
        """
        found: dict[str, str | None] = {}
        paths = iter(dict.fromkeys(edit.path for edit in effects.edits))
        peeking = asyncio.get_running_loop().time() + PEEK  # a silent editor delays all files only once

        async def read(path: str) -> None:
            with contextlib.suppress(Refusal, RequestError):
                found[path] = await self.read_current(path, peeking)

        while several := list(islice(paths, READ_AT_ONCE)):
            await asyncio.gather(*map(read, several))
        return found

    def describe_links(self, shown: Effects, resolved: Effects) -> tuple[list[str], list[Reason]]:
        """Notes on links in the request's paths, and risk reasons from the resolved paths."""
        notes: dict[str, None] = {}
        reasons: list[Reason] = []
        places = [(given.path, real.path, "Write") for given, real in zip(shown.edits, resolved.edits, strict=True)]
        places += [(given.cwd, real.cwd, "") for given, real in zip(shown.commands, resolved.commands, strict=True)]
        root = str(self._workspace.root)
        for given, real, tool in places:
            if os.path.normpath(given) in (real, os.path.normpath(self._editor_path(Path(real)))):
                continue
            how = "changes" if tool else "runs in"
            names = (quote_code(exact_path(given, self._cwd)), quote_code(exact_path(real, root)))
            notes[f"{names[0]} is a link: this {how} {names[1]}."] = None
            if tool:
                reasons += assess_risk(tool, {"file_path": real}, root).reasons
            elif not Path(real).is_relative_to(root):
                reasons.append(Reason("moves-out", f"{real} is outside the workspace"))
        return list(notes), reasons

    def allow(
        self,
        request_id: str,
        effects: Effects,
        files: Mapping[str, str | None],
        *,
        mentioned: Sequence[CommandAct] = (),
        is_by_rule: bool = False,
    ) -> None:
        """Record that the user or a rule approved these effects. `files` are the texts that they were shown against.

        The request shows the `mentioned` commands, too, but they are not covered. The decision may still be on its way
        to the log: an act is recorded after it, and waits for that.
        """
        self._enter_turn()
        grant = ActGrant(request_id, effects, files, mentioned)
        grant.is_by_rule = is_by_rule
        self._grants.append(grant)
        self._denials.lift(effects)

    def deny(self, effects: Effects, named: NamedFiles = NO_FILES) -> None:
        """Record that these effects were denied, by the user, by a rule or by a timeout.

        `named` are the files that the request names; no unasked write changes them for the rest of the turn.
        """
        self._enter_turn()
        self._denials.add(effects, named)
        for grant in self._grants:
            grant.revoke(effects)
            if grant.is_by_rule and find_similar(grant.effects, effects, named.paths, self._cwd) is not None:
                grant.commands, grant.files = [], {}

    def was_denied(self, effects: Effects) -> bool:
        """Whether one of these acts, or any change to one of these files, was denied earlier in this turn."""
        return any(denials.includes(effects) for denials in self.current_decisions().denials)

    def find_similar_denial(self, act: Effects) -> str | None:
        """A denied act that this one may repeat in another spelling; None if there is none.

        Rules and modes do not apply to such an act: the user is asked.
        """
        self._enter_turn()
        return self._denials.find_similar(act, self._cwd)

    def is_covered_by_mode(self, effects: Effects) -> bool:
        """Whether the user chose a mode in which the agent may not ask about such acts inside the workspace.

        This is for calls of the agent, not for acts of the hub.
        """
        mode, behavior = self._mode_of_user(), self._behavior()
        places = [*(edit.path for edit in effects.edits), *(act.cwd for act in effects.commands)]
        if behavior.modes_without_approval.get(mode or "") == "writes":
            places += (os.path.join(act.cwd, word) for act in effects.commands for word in act.line.words[1:])  # noqa: PTH118
        roots = (self._workspace.root, *self._workspace.additional)
        if not all(any(Path(os.path.normpath(place)).is_relative_to(root) for root in roots) for place in places):
            return False
        programs = [" ".join(act.line.words[:1]) for act in effects.commands]
        return behavior.may_act_unasked(mode, programs, writes=bool(effects.edits))

    def _enter_turn(self) -> None:
        """Forget approvals and denials of an earlier turn."""
        period = self._recorder.translator.period
        if period != self._period:
            is_next = self._period >= 0 and period == self._period + 1
            self._last = self._decisions() if is_next else NO_DECISIONS
            self._period, self._grants, self._denials = period, [], Denials()
            self._writing = {path: lock for path, lock in self._writing.items() if lock.locked()}
            self._done = self._refused = NO_EFFECTS

    def _decisions(self) -> TurnDecisions:
        return TurnDecisions(self._grants, (self._denials,), self._done, self._refused)

    def current_decisions(self) -> TurnDecisions:
        """The decisions to which a call that ended belongs. After the end of a turn they are those of that turn."""
        self._enter_turn()
        current, last = self._decisions(), self._last
        if self._recorder.translator.turn is not None:
            return current
        return TurnDecisions(
            [*last.grants, *current.grants],
            (*last.denials, *current.denials),
            merge_effects(last.done, current.done),
            merge_effects(last.refused, current.refused),
        )

    def rules_allow(self, rules: list[Rule], tool_input: Any, effects: Effects, real: Effects) -> bool:
        """Whether rules that allow an input also allow the other commands and files that its call shows.

        Files are judged by the path that was shown and by the real one.
        """
        given = {os.path.join(self._cwd, path) for path in file_paths(tool_input)}  # noqa: PTH118 - any text
        lines = {one.line() for one in find_commands(tool_input)}
        commands = tuple(act for act in effects.commands if act.line not in lines or environment_of(act.env))
        pairs = [
            (edit, resolved)
            for edit, resolved in zip(effects.edits, real.edits, strict=True)
            if not given.issuperset(self._paths_for_rules(edit.path, Path(resolved.path)))
        ]
        others = Effects(commands, tuple(edit for edit, _ in pairs))
        return self.rules_grant(rules, "", others, Effects(commands, tuple(edit for _, edit in pairs)))

    def rules_grant(self, rules: list[Rule], tool_name: str, effects: Effects, real: Effects) -> bool:
        """Whether rules allow these effects as acts of the hub. A rule for another tool does not."""
        category = categorize_tool(tool_name)
        runs = tool_name if category == "terminal" else "Bash"
        writes = tool_name if category in ("file_write", "file_edit") else "Write"
        calls = self._list_calls(effects, real, runs, writes)
        return all(self._standing.allows(rules, name, tool_input) for name, tool_input in calls)

    def find_denial(self, rules: list[Rule], effects: Effects, resolved: Effects) -> Decision | None:
        """The decision of a rule that denies one of these effects; None if no rule does."""
        calls = self._list_calls(effects, resolved)
        decisions = (self._standing.decide(rules, name, tool_input) for name, tool_input in calls)
        return next((decision for decision in decisions if decision.outcome == "deny"), None)

    def _list_calls(
        self, effects: Effects, resolved: Effects, runs: str = "Bash", writes: str = "Write"
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """The acts as tool calls that rules can judge: the tool's name and its input. A file counts by each name."""
        for act in effects.commands:
            yield runs, _command_input(act._replace(env=environment_of(act.env)))
        for given, real in zip(effects.edits, resolved.edits, strict=True):
            yield from ((writes, {"file_path": name}) for name in self._paths_for_rules(given.path, Path(real.path)))

    # -- files --

    async def permit_read(self, path: str) -> PermittedRead:
        """Check a read against the deny rules. Raises Forbidden, WorkspaceError."""
        target = await asyncio.to_thread(self._workspace.resolve, path)
        rules = await self._standing.rules()
        for place in self._paths_for_rules(path, target):
            self._apply_rules(rules, "Read", {"file_path": place})
        return PermittedRead(str(target), self._editor_path(target))

    @asynccontextmanager
    async def permit_write(self, path: str, content: str) -> AsyncIterator[PermittedWrite]:
        """Permit one write inside this block. Raises Forbidden, WorkspaceError."""
        target = str(await asyncio.to_thread(self._workspace.resolve, path))
        lock = self._writing.setdefault(target, asyncio.Lock())
        async with lock:
            await self._check_target(path, target)
            self._refuse_if_stopped("Write", path)
            names = self._paths_for_rules(path, Path(target))
            await self._find_write_rules(names)  # a denied file is not even read
            files = await self.read_files(Effects(edits=(FileEdit(target, None, None),)))
            current = files.get(target)
            is_unchanged = current is not None and await self._is_unchanged(target, content, current)
            # read again: a rule that was deleted meanwhile allows nothing
            allowing = await self._find_write_rules(names)
            editor_path = self._editor_path(Path(target))
            if is_unchanged:
                yield PermittedWrite(target, editor_path, is_needed=False)
                return
            permit = await self._find_write_permit(
                path, target, content, files, dict(zip(names, allowing, strict=True))
            )
            act = Effects(edits=(FileEdit(target, None, content),))
            async with self._carry_out(permit, act, {"act": "write", "path": target}):
                await self._check_target(path, target)
                check = partial(_is_same_text, current) if permit.is_bound_to_base else None
                yield PermittedWrite(target, editor_path, check)

    async def _find_write_rules(self, names: Iterable[str]) -> list[str | None]:
        """The rule that allows a write, for each name of its file, or None. Raises Forbidden if one denies it."""
        rules = await self._standing.rules()
        return [self._apply_rules(rules, "Write", {"file_path": name}) for name in names]

    async def _check_target(self, path: str, target: str) -> None:
        """Raises Forbidden if a path leads to another file than before."""
        if str(await asyncio.to_thread(self._workspace.resolve, path)) != target:
            reason = "its path now leads to another file; read the file and try again"
            raise Forbidden(f"Write of {shown(path)} refused: {reason}")

    def check_not_stopped(self) -> None:
        """Raises Forbidden if the turn was cancelled. Called right before an act has its effect, from any thread."""
        if self.stopped is not None:
            raise Forbidden(f"this act was refused: {self.stopped}")

    def _editor_path(self, target: Path) -> str:
        """The name under which an editor knows a file: below the session's directory as the session was started."""
        root = self._workspace.root
        return str(Path(self._cwd) / target.relative_to(root)) if target.is_relative_to(root) else str(target)

    async def _is_unchanged(self, path: str, content: str, current: str) -> bool:
        """Whether a file has this text already, in the editor and on the disk; line ends and a mark do not count."""
        if normalize_text(current) != normalize_text(content):
            return False
        try:
            return normalize_text(await self._workspace.read_text(path)) == normalize_text(content)
        except Refusal:
            return False

    async def _find_write_permit(
        self,
        path: str,
        target: str,
        content: str,
        files: Mapping[str, str | None],
        allowing: Mapping[str, str | None],
    ) -> Permit:
        """Find the permission for a write, or ask the user. Raises Forbidden.

        `files` has the current text of the file, unless it cannot be read as text. `allowing` has, for each name of
        the file, the rule that allows it or None.
        """
        current = files.get(target)
        self._refuse_if_stopped("Write", path)
        self._enter_turn()
        act = Effects(edits=(FileEdit(target, None, content),))
        for grant in self._grants:
            if grant.covers_write(target, content, current):
                grant.use(act)
                return Permit(_new_id(), {"approvalId": grant.request_id}, grant, is_bound_to_base=True)
        if self._denials.includes_file(target, *allowing):
            self._refuse("Write", "a change to this file was denied in this turn", {"path": path}, act)
        similar = self.find_similar_denial(act)
        rules = list(allowing.values())
        if all(rules) and similar is None:
            return Permit(_new_id(), {"rule": str(rules[0])})
        mode = self._find_mode_without_approval("writes")
        if mode is not None and similar is None:
            return Permit(_new_id(), {"mode": mode})
        name = exact_path(target, self._cwd)
        call = {
            "title": f"Write {name}",
            "kind": "edit",
            "rawInput": {"file_path": target, "content": content},
            "content": [{"type": "diff", "path": target, "oldText": current, "newText": content}],
            "locations": [{"path": one} for one in dict.fromkeys((target, *allowing))],
        }
        notes = [*self._explain_write(target, content), *explain_similar(similar)]
        return await self._ask_user(call, act, notes, files, {"path": path}, partial(self._find_write_rules, allowing))

    def _explain_write(self, target: str, content: str) -> list[str]:
        """Explain how a write differs from the changes that were allowed in this turn."""
        notes = []
        for grant in self._grants:
            if target in grant.used_files and normalize_text(content) == grant.results.get(target):
                notes.append("You allowed this change once, and it was made. The agent wants to make it again.")
            elif target in grant.files:
                allowed = grant.results.get(target)
                if allowed is None:
                    notes.append("This change cannot be compared with the one that you allowed for this file.")
                elif normalize_text(content) == allowed:
                    notes.append("You allowed this change, but the file was changed after it was shown to you.")
                else:
                    notes.append("This is not the change that you allowed for this file.")
                    diff = unified_diff(allowed, normalize_text(content), "allowed").text.split("\n")
                    rest = [f"… {len(diff) - DIFFERENCE_LINES:,} more lines"] * (len(diff) > DIFFERENCE_LINES)
                    notes.append("\n".join(["Difference from the allowed change:", *diff[:DIFFERENCE_LINES], *rest]))
        if not notes:
            others = sorted({exact_path(path, self._cwd) for grant in self._grants for path in grant.files})
            allowed_files = f" In this turn you allowed changes to: {', '.join(others[:5])}." if others else ""
            notes = [f"The agent did not ask for this change.{allowed_files}"]
        return notes

    async def read_current(self, path: str, peeking: float | None = None) -> str | None:
        """The text that the agent would read: the editor's, else the disk's; None if there is no such file.

        `path` must be resolved. The editor may answer until the loop's time `peeking`, by default for `PEEK` seconds.
        Raises WorkspaceError, Changed if it leads elsewhere by now.
        """
        if str(await asyncio.to_thread(self._workspace.resolve, path)) != path:
            raise Changed(f"{shown(path)} leads to another file by now", path=path)
        if peeking is None:
            peeking = asyncio.get_running_loop().time() + PEEK
        found = await self._editors.peek(self._editor_path(Path(path)), peeking)
        if found is not None:
            return found
        try:
            return await self._workspace.read_text(path, is_resolved=True)
        except NoSuchFile:
            return None

    # -- commands --

    @asynccontextmanager
    async def permit_command(self, act: CommandAct) -> AsyncIterator[str | None]:
        """Permit the start of one command inside this block. Raises Forbidden.

        Yields the id of the transcript entry that the hub created for it, or None.
        """
        command = format_act(act)
        permit = await self._find_command_permit(act, command)
        facts: dict[str, Any] = {"act": "command", "command": command, "cwd": act.cwd}
        facts |= {"env": dict(act.env)} if act.env else {}
        async with self._carry_out(permit, Effects(commands=(act,)), facts):
            yield permit.call_id

    async def _find_command_permit(self, act: CommandAct, command: str) -> Permit:
        """Find the permission for a command, or ask the user. Raises Forbidden."""
        self._refuse_if_stopped("Bash", command)
        rules = await self._standing.rules()
        tool_input = _command_input(act)
        decision = self._standing.decide(rules, "Bash", tool_input)
        rule = self._check_decision(decision, "Bash", tool_input)
        self._enter_turn()
        effects = Effects(commands=(act,))
        for grant in self._grants:
            if grant.covers_command(act):
                grant.use(effects)
                return Permit(_new_id(), {"approvalId": grant.request_id}, grant)
        if self._denials.includes_command(act):
            self._refuse("Bash", "it was denied in this turn", {"command": command}, effects)
        similar = self.find_similar_denial(effects)
        if rule and similar is None:
            return Permit(_new_id(), {"rule": rule})
        mode = self._find_mode_without_approval("commands")
        if mode is not None and similar is None and not decision.may_be_denied:
            return Permit(_new_id(), {"mode": mode})
        call = {"title": command, "kind": "execute", "rawInput": tool_input}
        notes = [*self._explain_command(act), *explain_similar(similar)]

        async def check_rules() -> None:
            self._apply_rules(await self._standing.rules(), "Bash", tool_input)

        return await self._ask_user(call, effects, notes, {}, {"command": command}, check_rules)

    def _explain_command(self, act: CommandAct) -> list[str]:
        """Explain how a command differs from those that were allowed in this turn."""
        allowed = [known for grant in self._grants for known in grant.commands]
        if any(act in grant.used_commands for grant in self._grants):
            return ["You allowed this command once, and it was run. The agent wants to run it again."]
        if any(act in grant.mentioned for grant in self._grants):
            return ["You allowed this command only together with everything else in its request."]
        alike = [known for known in allowed if known.line == act.line]
        if alike:
            differs = []
            if all(known.cwd != act.cwd for known in alike):
                differs.append(f"in the directory {act.cwd}, not in {alike[0].cwd}")
            if all(known.env != act.env for known in alike):
                names = ", ".join(f"{name}={value}" for name, value in act.env) or "none"
                differs.append(f"with other environment variables ({names})")
            return [f"You allowed this command, but now it would run {' and '.join(differs) or 'differently'}."]
        lines = list(dict.fromkeys(format_act(known) for known in allowed))
        known_lines = f" In this turn you allowed: {'; '.join(map(quote_code, lines[:5]))}." if lines else ""
        return [f"The agent did not ask for this command.{known_lines}"]

    # -- files and commands --

    def _refuse_if_stopped(self, name: str, target: str) -> None:
        """Raises Forbidden if the turn was cancelled."""
        if self.stopped is not None:
            self._refuse(name, self.stopped, {"path" if name == "Write" else "command": target}, Effects())

    async def _ask_user(
        self,
        call: dict[str, Any],
        act: Effects,
        notes: list[str],
        files: Mapping[str, str | None],
        facts: dict[str, Any],
        check_rules: Callable[[], Awaitable[object]],
    ) -> Permit:
        """Ask about an act that has no permission yet. Raises Forbidden if it is denied, or if its turn ends.

        `check_rules` raises Forbidden if a rule denies it, which may have been set in the meantime.
        """
        translator = self._recorder.translator
        own, turn = translator.find_call(act), translator.turn
        call_id = own or _new_id()
        entry = None if own else call_id
        name = "Write" if act.edits else "Bash"
        try:
            answer = await self.ask({"toolCallId": call_id, "status": "pending", **call}, act, notes, files)
            if answer.approved:
                await check_rules()
        except (Forbidden, asyncio.CancelledError):
            # a rule denies it now, or the agent withdrew its request, even if the answer was on its way
            self._refused = merge_effects(self._refused, act)
            if entry is not None:
                self.end_entry(entry, "failed")
            raise
        is_over = turn != self._recorder.translator.turn or self.stopped is not None
        if not answer.approved or is_over:
            if entry is not None:
                self.end_entry(entry, "failed")
            self._refuse(name, "its turn is over" if is_over else answer.reason or "it was denied", facts, act)
        # the approval is for this act alone, so it is used up at once
        self._enter_turn()
        self._denials.lift(act)
        grant = ActGrant(answer.request_id, act, files)
        grant.use(act)
        self._grants.append(grant)
        is_bound = any(edit.path in files for edit in act.edits)
        return Permit(_new_id(), {"approvalId": answer.request_id}, grant, entry, is_bound_to_base=is_bound)

    @asynccontextmanager
    async def _carry_out(self, permit: Permit, act: Effects, facts: dict[str, Any]) -> AsyncIterator[None]:
        """Commit the permission for an act before the act, and take it back if the act fails."""
        self._recorder.note("act_allowed", {"actId": permit.act_id, **facts, **permit.reason})
        await self._recorder.commit()
        try:
            self.check_not_stopped()  # cancelled while it was being stored
            yield
        except (Refusal, RequestError) as exc:
            # an editor that answers with an error, or not at all, may have done it
            if not isinstance(exc, EditorSilent | RequestError):
                if permit.grant is not None:
                    permit.grant.give_back(act)
                self._recorder.note("act_undone", {"actId": permit.act_id, "reason": str(exc)})
            if permit.call_id is not None:
                self.end_entry(permit.call_id, "failed")
            raise
        edits = (edit._replace(new=None) if len(edit.new or "") > LONGEST_KEPT else edit for edit in act.edits)
        self._done = merge_effects(self._done, act._replace(edits=tuple(edits)))
        if permit.call_id is not None and act.edits:
            self.end_entry(permit.call_id, "completed")

    def show_terminal(self, call_id: str, terminal_id: str) -> None:
        """Show the terminal of a command in the entry that the hub created for it."""
        content = [{"type": "terminal", "terminalId": terminal_id}]
        self._update_entry({"toolCallId": call_id, "status": "in_progress", "content": content})

    def end_entry(self, call_id: str, status: str) -> None:
        """Close the transcript entry that the hub created for an act."""
        self._update_entry({"toolCallId": call_id, "status": status})

    def _update_entry(self, fields: dict[str, Any]) -> None:
        self._recorder.record(self._recorder.translator.update_act(fields, self._recorder.now()))

    def _apply_rules(self, rules: list[Rule], name: str, tool_input: dict[str, Any]) -> str | None:
        """The rule that allows an act, if one does. Raises Forbidden if one denies it."""
        return self._check_decision(self._standing.decide(rules, name, tool_input), name, tool_input)

    def _check_decision(self, decision: Decision, name: str, tool_input: dict[str, Any]) -> str | None:
        if decision.outcome == "deny":
            self._refuse(name, decision.reason, tool_input, Effects())
        return (decision.rule or "rule") if decision.outcome == "allow" else None

    def _refuse(self, name: str, reason: str, facts: dict[str, Any], act: Effects) -> NoReturn:
        self._refused = merge_effects(self._refused, act)
        self._recorder.note("refused", {"name": name, "reason": reason, **facts})
        raise Forbidden(f"{name} of {shown(str(next(iter(facts.values()))))} refused: {reason}")

    def _paths_for_rules(self, path: str, target: Path) -> list[str]:
        """The names under which rules match a path: as it was given, and with symbolic links resolved."""
        root = self._workspace.root
        leads = str(target.relative_to(root)) if target.is_relative_to(root) else str(target)
        places = (os.path.join(self._cwd, one) for one in (path, leads))  # noqa: PTH118 - compared as text
        return list(dict.fromkeys(map(os.path.normpath, places)))


def resolve_effects(effects: Effects) -> Effects:
    """The same effects with symbolic links in their paths resolved, and only the variables that make a difference."""
    commands = tuple(act._replace(cwd=_resolve_path(act.cwd), env=environment_of(act.env)) for act in effects.commands)
    edits = tuple(edit._replace(path=_resolve_path(edit.path)) for edit in effects.edits)
    return effects._replace(commands=commands, edits=edits)


def resolve_paths(paths: Iterable[str]) -> list[str]:
    """The same paths with symbolic links resolved."""
    return list(map(_resolve_path, paths))


def _resolve_path(path: str) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):  # not a valid path
        return path


def _may_be_same(one: str | None, other: str | None) -> bool:
    """Whether two results may be the same; one is not known if an agent shows too little of its edit."""
    return one is None or other is None or one == other


def explain_similar(denied: str | None) -> list[str]:
    """A note about a denied act that an act may repeat."""
    return [] if denied is None else [f"You denied something similar in this turn: {quote_code(denied)}."]


def _is_same_text(expected: str | None, found: str | None) -> bool:
    one, other = (None if text is None else normalize_text(text) for text in (expected, found))
    return one == other


def _new_id() -> str:
    return f"act_{secrets.token_hex(6)}"


def _command_input(act: CommandAct) -> dict[str, Any]:
    """A command as the input of a tool call, for rules and for an approval request."""
    given: dict[str, Any] = {"command": format_act(act), "cwd": act.cwd}
    return {**given, "env": dict(act.env)} if act.env else given


def environment_of(variables: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The variables of a command that differ from the hub's environment and are not known to be harmless."""
    return extra_variables(variables, base_environment())
