"""Puts each defect of a bridge of this kind back into a copy of the source, and looks whether a test notices.

    python -m tests.support.bridge_mutants [BUG…]

Not a test itself: it takes minutes. A mutant that no longer applies is told as such, and is no success.
"""

from __future__ import annotations

import sys

from tests.support.mutants import Mutant, run

CLAUDE = "agents/claude_bridge"
UNIT = "tests/unit/agents/claude_bridge"
PURE = tuple(
    f"{UNIT}/test_{name}.py"
    for name in ("translate_defects", "tools", "permissions", "speech", "turns", "translate_recordings")
)
PROCESS = (f"{UNIT}/test_session.py", f"{UNIT}/test_agent.py")


MUTANTS = (
    Mutant(
        1,
        "an edit is written when it is announced",
        f"{CLAUDE}/tools.py",
        '        self._outbox.update("tool_call", call.meta(), toolCallId=call.shown, status="pending", **fields)\n',
        '        self._outbox.update("tool_call", call.meta(), toolCallId=call.shown, status="pending", **fields)\n'
        '        if name == "Write":\n'
        '            self._outbox.ask(call_id, "fs/write_text_file", path="/work/a", content="x")\n',
    ),
    Mutant(1, "a denied call runs", f"{CLAUDE}/permissions.py", "elif not chosen.allows:", "elif False:"),
    Mutant(2, "no partial messages", f"{CLAUDE}/process.py", '"--include-partial-messages", ', "", PROCESS),
    Mutant(
        2,
        "events are read one level too deep",
        f"{CLAUDE}/speech.py",
        'delta = mapping(event.get("delta"))',
        'delta = mapping(mapping(event.get("event")).get("delta"))',
    ),
    Mutant(
        2,
        "thinking is not shown",
        f"{CLAUDE}/translate.py",
        'if kind in ("text", "thinking"):',
        'if kind == "thinking":\n            return\n        if kind == "text":',
    ),
    Mutant(3, "only the first result counts", f"{CLAUDE}/translate.py", "in results:", "in results[:1]:"),
    Mutant(
        3,
        "a message has one result",
        f"{CLAUDE}/translate.py",
        'if text(block.get("tool_use_id"))]',
        'if text(block.get("tool_use_id")) and block is blocks[0]]',
    ),
    Mutant(
        4,
        "an unreadable line ends the reader",
        f"{CLAUDE}/translate.py",
        "            reason = exc.reason\n",
        "            raise\n",
        (*PURE, f"{UNIT}/test_notices.py", f"{UNIT}/test_control.py", f"{UNIT}/test_translate_fuzz.py"),
    ),
    Mutant(
        4,
        "a string as content is fatal",
        f"{CLAUDE}/translate.py",
        '        return [{"type": "text", "text": message.content}]\n',
        '        raise TypeError("content")\n',
    ),
    Mutant(
        5,
        "some tools are quiet",
        f"{CLAUDE}/tools.py",
        "        past = self._ended.get(call_id)\n        if past is not None and not past.is_announced:\n",
        '        if name in ("Read", "TodoWrite"):\n            return None\n'
        "        past = self._ended.get(call_id)\n        if past is not None and not past.is_announced:\n",
    ),
    Mutant(5, "no plans", f"{CLAUDE}/translate.py", "self._plans.changed(call, told)", "pass"),
    Mutant(
        5,
        "no diffs",
        f"{CLAUDE}/tools.py",
        "proposed(self.name, self.given, look) or self._shown()",
        "self._shown()",
    ),
    Mutant(
        6,
        "a permission has an id of its own",
        f"{CLAUDE}/permissions.py",
        'asked = {"toolCallId": call.shown,',
        'asked = {"toolCallId": f"hook_{call.shown}",',
    ),
    Mutant(
        7,
        "a mode is only remembered",
        f"{CLAUDE}/session.py",
        '        await self._set("set_permission_mode", "mode", mode)\n',
        "",
        PROCESS,
    ),
    Mutant(7, "dontAsk is not offered", f"{CLAUDE}/control.py", '    "dontAsk": (', '    "dontAskAtAll": ('),
    Mutant(
        8,
        "a model is always passed",
        f"{CLAUDE}/process.py",
        '"--model": options.model,',
        '"--model": options.model or "sonnet",',
        PROCESS,
    ),
    Mutant(
        9,
        "a cancel answers one prompt",
        f"{CLAUDE}/turns.py",
        "ended, self._open = len(self._open), []",
        "ended, self._open = min(1, len(self._open)), []",
    ),
    Mutant(
        9,
        "an interrupt is not told to the CLI",
        f"{CLAUDE}/translate.py",
        'actions = self.control("interrupt")',
        "actions: list[Action] = []",
        (*PURE, *PROCESS),
    ),
    Mutant(
        9,
        "a restart takes whatever ran last",
        f"{CLAUDE}/agent.py",
        'return ("--resume", path.stem)',
        'return ("--continue",)',
        PROCESS,
    ),
    Mutant(
        10,
        "what settings deny is not shown",
        f"{CLAUDE}/notices.py",
        '"permission_denied": News._denied',
        '"permission_denied": News._note',
    ),
    Mutant(
        10,
        "an answer that means nothing allows",
        f"{CLAUDE}/permissions.py",
        "            self._deny(request_id, reason or STOPPED, stop=True)\n",
        "            self._allow(request_id, pending, pending.given, pending.choices[0])\n",
    ),
    Mutant(
        11,
        "the first question only",
        f"{CLAUDE}/permissions.py",
        "enumerate(questions_in(given), 1):\n        title",
        "enumerate(questions_in(given)[:1], 1):\n        title",
    ),
    Mutant(
        11,
        "no several answers",
        f"{CLAUDE}/permissions.py",
        'if question.get("multiSelect") is True:',
        "if False:",
    ),
    Mutant(
        11,
        "four options at most",
        f"{CLAUDE}/permissions.py",
        "        options = _options(question)\n",
        "        options = _options(question)[:4]\n",
    ),
    Mutant(
        11,
        "the questions are dropped from the answer",
        f"{CLAUDE}/permissions.py",
        '"updatedInput": {**pending.given, "answers": answers}',
        '"updatedInput": {"answers": answers}',
    ),
    Mutant(
        12,
        "changed files are invisible",
        "dialects/acp/calls.py",
        "        self._emit(FileChangeEvent, **fields, language=LANGUAGES.get(suffix), tool_call_id=call.id)\n",
        "        pass\n",
    ),
    Mutant(
        13,
        "another protocol version is refused",
        f"{CLAUDE}/agent.py",
        "        self._capabilities = to_wire(client_capabilities)",
        '        if protocol_version != PROTOCOL_VERSION:\n            raise RequestError(-32602, "version")\n'
        "        self._capabilities = to_wire(client_capabilities)",
        PROCESS,
    ),
    Mutant(
        13,
        "the first start resumes what ran last",
        f"{CLAUDE}/agent.py",
        'return (*fork, "--session-id", session_id)',
        'return (*fork, "--continue", "--session-id", session_id)',
        PROCESS,
    ),
)


if __name__ == "__main__":
    sys.exit(run(MUTANTS, PURE))
