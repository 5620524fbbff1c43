"""Puts defects into the code that limits an approval to its acts, and checks that a test fails for each of them.

    python -m tests.support.binding_mutants [NUMBER…]

Not a test itself: it takes minutes.
"""

from __future__ import annotations

import sys

from tests.support.mutants import Mutant, run

AUTHORIZATION = "hub/approvals/authorization.py"
APPROVALS = "hub/approvals/approvals.py"
DENIALS = "hub/approvals/denials.py"
SERVING = "hub/agent/client_requests.py"
ACTS = "model/acts.py"
RACES = "tests/interaction/test_act_races.py"
RULES = "tests/interaction/test_act_rules.py"
WRITES = "tests/interaction/test_write_binding.py"
TESTS = ("tests/interaction/test_act_binding.py", "tests/interaction/test_hub_approvals.py")

MUTANTS = (
    Mutant(
        1,
        "an approved command can run any number of times",
        AUTHORIZATION,
        "return self.commands.count(act) > self.used_commands.count(act)",
        "return act in self.commands",
    ),
    Mutant(
        2,
        "an approved file can be written any number of times",
        AUTHORIZATION,
        "if path not in self.files or path in self.used_files:",
        "if path not in self.files:",
    ),
    Mutant(
        3,
        "the directory and the variables of a command are not compared",
        AUTHORIZATION,
        "return self.commands.count(act) > self.used_commands.count(act)",
        "return [one.line for one in self.commands].count(act.line) > len(self.used_commands)",
    ),
    Mutant(
        4,
        "variables are ignored",
        AUTHORIZATION,
        "return extra_variables(variables, base_environment())",
        "return ()",
    ),
    Mutant(
        5,
        "a harmless variable may have any value",
        ACTS,
        "pair not in HARMLESS_VARIABLES",
        "pair[0] not in dict(HARMLESS_VARIABLES)",
    ),
    Mutant(
        6,
        "an approval of a file covers any text",
        AUTHORIZATION,
        "return normalize_text(content) == self.results[path]",
        "return bool(content)",
    ),
    Mutant(
        7,
        "a part that is found several times is replaced anyway",
        ACTS,
        "if place < 0 or not (is_unique or edit.replace_all):",
        "if place < 0:",
    ),
    Mutant(
        8,
        "symbolic links in paths are not resolved",
        AUTHORIZATION,
        "        return os.path.realpath(path)\n",
        "        return path\n",
    ),
    Mutant(
        9,
        "an approval is not used up by a command",
        AUTHORIZATION,
        "grant.use(effects)",
        "pass",
    ),
    Mutant(
        10,
        "approvals outlive their turn",
        AUTHORIZATION,
        "self._period, self._grants, self._denials = period, [], Denials()",
        "self._period, self._grants, self._denials = period, getattr(self, '_grants', []), Denials()",
    ),
    Mutant(
        11,
        "a denied command is asked about again",
        AUTHORIZATION,
        "if self._denials.includes_command(act):",
        "if False:",
    ),
    Mutant(
        12,
        "another text may be written to a file whose change was denied",
        AUTHORIZATION,
        "if self._denials.includes_file(target, *allowing):",
        "if act.edits[0] in self._denials.effects.edits:",
    ),
    Mutant(
        13,
        "a cancelled turn is served",
        SERVING,
        "        self._authorization.stopped = reason\n",
        "",
    ),
    Mutant(
        14,
        "the programs of a cancelled turn keep running",
        SERVING,
        "        await asyncio.gather(*map(self._end_terminal, tuple(self._started_in_turn)))\n",
        "",
    ),
    Mutant(
        15,
        "the turn after a cancelled one is not served",
        SERVING,
        "        self._authorization.stopped = None\n",
        "",
    ),
    Mutant(
        16,
        "a call may change while its request is pending",
        "hub/agent/inbound.py",
        "                    self._approvals.withdraw_changed()\n",
        "                    pass\n",
    ),
    Mutant(
        17,
        "a changed edit is not noticed",
        ACTS,
        "return set(map(core_of_edit, self.edits)) == set(map(core_of_edit, after.edits))",
        "return True",
    ),
    Mutant(
        18,
        "a failed act uses up its approval",
        AUTHORIZATION,
        "                    permit.grant.give_back(act)\n",
        "                    pass\n",
    ),
    Mutant(
        19,
        "any option of a shell counts as -c",
        ACTS,
        "words[1] in _SHELL_FLAGS",
        'words[1].endswith("c")',
    ),
    Mutant(
        20,
        "further arguments of a shell are ignored",
        ACTS,
        "if len(words) == 3 and words[0] in shells",
        "if len(words) >= 3 and words[0] in shells",
    ),
    Mutant(
        21,
        "any program called bash is the hub's shell",
        ACTS,
        "words[0] in shells and",
        'words[0].rpartition("/")[2] in SHELLS and',
    ),
    Mutant(
        22,
        "line ends at the end of a text are not compared",
        ACTS,
        'return text.removeprefix("\\ufeff").replace("\\r\\n", "\\n")',
        'return text.removeprefix("\\ufeff").replace("\\r\\n", "\\n").strip()',
    ),
    Mutant(
        23,
        "a denial of the hub's own request is ignored",
        AUTHORIZATION,
        "if not answer.approved or is_over:",
        "if is_over:",
    ),
    Mutant(
        24,
        "an approval of the hub's own request can be used again",
        AUTHORIZATION,
        "        grant.use(act)\n        self._grants.append(grant)\n",
        "        self._grants.append(grant)\n",
    ),
    Mutant(
        25,
        "allowing one change lifts every denial",
        DENIALS,
        "edits = tuple(edit for edit in before.edits if edit not in effects.edits)",
        "edits = ()",
    ),
    Mutant(
        26,
        "an answer to a question approves the call",
        APPROVALS,
        "found = (key for key, pending in self._pending.items() if question_id in pending.event.question_ids)",
        'found = (key for key, p in self._pending.items() if p.event.tool_call_id == question_id.split(":")[0])',
    ),
    Mutant(
        27,
        "the act is carried out before its permission is stored",
        AUTHORIZATION,
        "        await self._recorder.commit()\n        try:\n",
        "        try:\n",
    ),
    Mutant(
        28,
        "a path is not resolved again after the request",
        AUTHORIZATION,
        "if str(await asyncio.to_thread(self._workspace.resolve, path)) != target:",
        "if False:",
    ),
    Mutant(
        29,
        "the text that a write replaces is not compared with the one that was shown",
        AUTHORIZATION,
        "if _is_same_text(self.base[path], current):",
        "if normalize_text(content) == self.results[path]:",
        (WRITES,),
    ),
    Mutant(
        30,
        "a file that changed after its comparison is replaced",
        AUTHORIZATION,
        "check = partial(_is_same_text, current) if permit.is_bound_to_base else None",
        "check = None",
        (WRITES,),
    ),
    Mutant(
        31,
        "approvals between turns are valid between later turns",
        "dialects/acp/translate.py",
        "        self.period += 1\n",
        "        self.period = int(turn_id is not None)\n",
        (WRITES,),
    ),
    Mutant(
        32,
        "only the edits of a denied request are refused, not the files that it names",
        DENIALS,
        "self._files |= dict.fromkeys([*(edit.path for edit in effects.edits), *named.paths])",
        "self._files |= dict.fromkeys(edit.path for edit in effects.edits)",
        (WRITES,),
    ),
    Mutant(
        33,
        "two names of one file are two changes",
        "dialects/acp/asking.py",
        "files_edited.setdefault(real_paths.get(edit.path, edit.path), [])",
        "files_edited.setdefault(edit.path, [])",
        (WRITES,),
    ),
    Mutant(
        34,
        "a write goes on after its turn was cancelled",
        SERVING,
        "before_effect=self._authorization.check_not_stopped,",
        "before_effect=lambda: None,",
        (WRITES,),
    ),
    Mutant(
        35,
        "a mode allows what a rule may deny",
        AUTHORIZATION,
        "if mode is not None and similar is None and not decision.may_be_denied:",
        "if mode is not None and similar is None:",
        (RULES,),
    ),
    Mutant(
        36,
        "words are compared as they are written, not as a shell reads them",
        DENIALS,
        "        words |= {part for word in command.words for part in split_words(word.text)}\n",
        "",
        (RULES,),
    ),
    Mutant(
        37,
        "a command that only a shell completes is not taken for a denied one",
        DENIALS,
        "if is_same or is_near or is_unclear or written & known:",
        "if is_same or is_near or written & known:",
        (RULES,),
    ),
    Mutant(
        38,
        "a request is opened although its turn is over",
        APPROVALS,
        "if turn not in (None, recorder.translator.turn):",
        "if False:",
        (RACES,),
    ),
    Mutant(
        39,
        "a tool that does more than ask is decided by an answer",
        APPROVALS,
        "if not _has_only_questions(pending.event.tool_input) or requested.content:",
        "if False:",
        (RULES,),
    ),
)

if __name__ == "__main__":
    sys.exit(run(MUTANTS, TESTS))
