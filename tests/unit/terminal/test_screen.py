"""A session drawn without a terminal: the output for each event in order, and the last line of a turn."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from pilothouse.dialects.acp import Translator
from pilothouse.model.events import Event, decode_event
from pilothouse.terminal.screen import Screen

# -- events -----------------------------------------------------------------------------------------------------------


def event(type_: str, **fields: Any) -> Event:
    return decode_event({"type": type_, "seq": 0, "sessionId": "s", "timestamp": "2026-01-01T00:00:00.000Z", **fields})


def custom(fact: str, **data: Any) -> Event:
    return event("custom", namespace="pilothouse", eventName=fact, data=data)


def drawn(*events: Event, echo: bool = False) -> str:
    out = io.StringIO()
    screen = Screen(Console(file=out, width=100), echo=echo)
    for one in events:
        screen.show(one)
    screen.rest()
    return out.getvalue()


def call(call_id: str, command: str) -> list[Event]:
    name = {"toolCallId": call_id, "name": "Bash"}
    return [
        event("tool:start", **name, category="terminal", kind="execute", title="Terminal"),
        event("tool:executing", **name, input={"command": command}, riskLevel="medium", requiresApproval=False),
    ]


def test_a_message_without_pieces_is_shown_once_and_one_with_pieces_too() -> None:
    whole = {"messageId": "m", "role": "assistant", "content": [{"type": "text", "text": "hello"}]}
    start = event("message:start", messageId="m", role="assistant")
    pieces = [event("message:delta", messageId="m", role="assistant", delta=part) for part in ("hel", "lo")]
    complete = event("message:complete", **whole)
    assert drawn(start, complete) == drawn(start, *pieces, complete) == "hello\n"


def test_the_user_is_only_heard_where_nobody_typed() -> None:
    said = event("message:complete", messageId="m", role="user", content=[{"type": "text", "text": "do it\nnow"}])
    assert drawn(said) == ""
    assert drawn(said, echo=True) == "› do it\n  now\n"


def test_the_end_of_a_call_waits_for_its_files_and_its_warning() -> None:
    result = event("tool:result", toolCallId="c", name="Bash", output="made\n", duration=1500)
    change = event(
        "file:change", path="/p/a", changeType="created", diff="--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+x\n",
        linesAdded=1, linesRemoved=0, toolCallId="c",
    )  # fmt: skip
    warned = custom("acted_without_asking", toolCallId="c", name="Bash", riskLevel="medium")
    assert drawn(*call("c", "touch a"), result, change, warned).splitlines() == [
        "✓ $ touch a  +1 −0 · 1.5 s  ⚠ ran without asking (medium risk)",
        "  a (new)",
        "  +x",
    ]


def test_a_call_that_ran_although_it_was_denied_is_not_said_to_have_asked_nobody() -> None:
    result = event("tool:result", toolCallId="c", name="Bash", output="", duration=0)
    warned = custom("acted_without_asking", toolCallId="c", name="Bash", riskLevel="medium", denied=True)
    assert drawn(*call("c", "make"), result, warned) == "✓ $ make  ⚠ ran although it was denied (medium risk)\n"


@pytest.mark.parametrize(("whole", "last"), [(True, "line 499"), (False, "… 470 lines left out …")])
def test_who_decides_sees_all_of_a_long_text(whole: bool, last: str) -> None:
    out = io.StringIO()
    screen = Screen(Console(file=out, width=100), live=False, clock=lambda: 0.0)
    text = "\n".join(f"line {number}" for number in range(500))
    preview = {"type": "description", "text": text}
    ask = {"toolCallId": "c", "toolName": "write", "toolInput": {}, "description": "write", "riskLevel": "medium"}
    screen.decisions.approval(event("approval:requested", requestId="r", **ask, preview=preview), whole=whole)
    lines = [line.strip(" │") for line in out.getvalue().splitlines()]
    assert last in lines
    assert "line 499" in lines


def test_what_a_command_prints_is_shown_while_it_runs() -> None:
    out = io.StringIO()
    console = Console(file=out, width=100)
    screen = Screen(console, live=False, clock=lambda: 0.0)
    for one in call("c", "make"):
        screen.show(one)
    seen = []
    for text in ("compiling a.c\n", "compiling b.c\n", "".join(f"line {number}\n" for number in range(20_000))):
        screen.show(event("progress:update", label="make", toolCallId="c", output=text))
        with console.capture() as captured:
            console.print(screen.region.drawn())
        seen.append([line.strip() for line in captured.get().splitlines()[1:]])
    assert seen[:2] == [["compiling a.c"], ["compiling a.c", "compiling b.c"]]
    assert seen[2][-5:] == [f"line {number}" for number in range(19_995, 20_000)]
    assert len(seen[2]) == 6  # and how many came before
    assert out.getvalue() == ""  # it is printed for good once it has ended


def test_how_a_command_failed_is_told_beside_what_it_printed() -> None:
    error = {"code": "tool_failed", "message": "exit code 2", "recoverable": True, "details": {"exitCode": 2}}
    ended = {"toolCallId": "c", "name": "Bash", "error": error}
    said = drawn(*call("c", "make"), event("tool:error", **ended, output="no rule\n"))
    assert said.splitlines() == ["✗ $ make  exit code 2", "  no rule"]
    silent = drawn(*call("c", "make"), event("tool:error", **ended, output=""))
    assert silent.splitlines() == ["✗ $ make", "  exit code 2"]


def test_a_call_that_never_ended_is_no_success() -> None:
    assert drawn(*call("c", "sleep 9"), custom("turn_ended", turnId="t", stopReason="end_turn")).startswith(
        "✗ $ sleep 9"
    )


def test_what_a_rule_allowed_is_told_in_a_word_and_what_waits_is_shown() -> None:
    ask = {"toolCallId": "c", "toolName": "Bash", "toolInput": {"command": "make"}, "description": "Run: make"}
    asked = event("approval:requested", requestId="r", **ask, riskLevel="high", riskReasons=["it is \x1b[8mhidden"])
    answer = {"requestId": "r", "toolCallId": "c", "resolvedBy": "policy", "decidedBy": "autoApprove.commands[0]"}
    allowed = event("approval:resolved", **answer, approved=True)
    result = event("tool:result", toolCallId="c", name="Bash", output="", duration=0)
    assert drawn(*call("c", "make"), asked, allowed, result) == "✓ $ make  allowed by autoApprove.commands[0]\n"
    waiting = drawn(*call("c", "make"), asked)
    assert "? $ make" in waiting
    assert "high risk: it is ⟨U+001B⟩[8mhidden" in waiting
    assert "waiting for an answer" in waiting
    denied = event("approval:resolved", **answer, approved=False, reason="never here")
    assert "denied by autoApprove.commands[0]: never here" in drawn(*call("c", "make"), asked, denied)


@pytest.mark.parametrize("data", [{}, {"toolCallId": 5}, {"questionId": None, "outcome": []}, {"turnId": {}}])
def test_odd_facts_break_nothing(data: dict[str, Any]) -> None:
    for name in ("turn_ended", "acted_without_asking", "question_answered", "agent_killed", "anything"):
        drawn(custom(name, **data))


def asked(call_id: str) -> Event:
    what = {"toolCallId": call_id, "toolName": "Bash", "toolInput": {"command": "make"}, "description": "make"}
    return event("approval:requested", requestId=f"r-{call_id}", riskLevel="low", **what)


def resolved(call_id: str, *, approved: bool, by: str, how: str) -> Event:
    who = {"resolvedBy": how, "decidedBy": by}
    return event("approval:resolved", requestId=f"r-{call_id}", toolCallId=call_id, approved=approved, **who)


@pytest.mark.parametrize("approved", [True, False])
def test_the_time_of_a_call_is_told_only_if_it_was_let_begin(approved: bool) -> None:
    how = "user" if approved else "cancelled"
    end = event("tool:result", toolCallId="c", name="Bash", output="", duration=6600)
    shown = drawn(*call("c", "make"), asked("c"), resolved("c", approved=approved, by="user", how=how), end)
    assert ("6.6 s" in shown) is approved


def test_a_rule_is_called_what_it_allows() -> None:
    end = event("tool:result", toolCallId="c", name="Bash", output="", duration=1)
    events = [*call("c", "make"), asked("c"), resolved("c", approved=True, by="always:rule_1", how="policy"), end]
    assert "allowed by a rule of yours (always)" in drawn(*events)
    out = io.StringIO()
    screen = Screen(Console(file=out, width=100))
    screen.decisions.rules = {"rule_1": "your rule `make` (always, this project)"}
    for one in events:
        screen.show(one)
    screen.rest()
    assert "allowed by your rule `make` (always, this project)" in out.getvalue()


# -- end of a turn ----------------------------------------------------------------------------------------------------

NOW = "2026-01-01T00:00:00.000Z"


def test_tokens_are_those_of_the_turn_and_not_of_the_session() -> None:
    printed = io.StringIO()
    screen = Screen(Console(file=printed, width=100), live=False)
    events = Translator("s", workspace="/work")
    found = events.started(NOW, agent="demo", result={})
    for number, (given, made) in enumerate(((1000, 200), (30, 4))):
        found += events.prompt("go", NOW, turn_id=str(number))
        usage = {"inputTokens": given, "outputTokens": made, "totalTokens": given + made}
        found += events.result({"stopReason": "end_turn", "usage": usage}, NOW)
    for seq, event in enumerate(found, 1):
        event.seq = seq
        screen.show(event)
    ends = [line.strip() for line in printed.getvalue().splitlines() if "Done" in line]
    assert [end.rpartition(" · ")[2] for end in ends] == ["1,200 tokens", "34 tokens"]
