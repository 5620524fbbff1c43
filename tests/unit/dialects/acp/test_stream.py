"""Terminals of the client in the translator: their output belongs to the call that shows them."""

from __future__ import annotations

import json
from typing import Any

from pilothouse.dialects.acp import Projector, Translator
from pilothouse.dialects.acp.calls import PIECE
from pilothouse.dialects.acp.stream import KEPT, MOST, Terminals
from pilothouse.dialects.packets import Projector as Packets
from pilothouse.model.events import Event
from pilothouse.model.session import fold
from tests.support.scenario import Drive, text, types

SHOWN = [{"type": "terminal", "terminalId": "t"}]


def started(**fields: Any) -> Drive:
    drive = Drive()
    drive.prompt()
    drive.call("c", kind="execute", rawInput={"command": "make"}, **{"status": "in_progress", **fields})
    return drive


def prints(drive: Drive, words: str, terminal: str = "t") -> list[Event]:
    return drive.keep(drive.translator.terminal_output(terminal, words, drive.now()))


def outputs(events: list[Event]) -> list[str]:
    found = (getattr(event, "output", None) for event in events if event.type == "progress:update")
    return [output for output in found if output is not None]


def last(drive: Drive, kind: str) -> Any:
    return [event for event in drive.events if event.type == kind][-1]


def known(translator: Translator) -> Terminals:
    return translator._calls._terminals


# -- while it runs ------------------------------------------------------------------------------------------------


def test_output_is_progress_of_the_call_that_shows_the_terminal() -> None:
    drive = started(content=SHOWN)
    events = prints(drive, "compiling a.c\n") + prints(drive, "compiling b.c\n")
    assert types(events) == ["progress:update", "progress:update"]
    assert [(event.tool_call_id, event.replace, event.source) for event in events] == [("c", False, None)] * 2  # type: ignore[attr-defined]
    call = fold(drive.events).tool_call("c")
    assert call is not None
    assert (call.status, str(call.output)) == ("executing", "compiling a.c\ncompiling b.c\n")


def test_what_was_printed_before_a_call_named_the_terminal_is_told_then() -> None:
    drive = started()
    assert prints(drive, "one\n") == []
    assert prints(drive, "two\n") == []
    events = drive.progress("c", content=SHOWN)
    assert outputs(events) == ["one\ntwo\n"]
    assert events[0].source == drive.updates[-1]
    assert outputs(prints(drive, "three\n")) == ["three\n"]
    assert outputs(drive.progress("c", content=[*SHOWN, *text("note")])) == ["note"]  # not a second time


def test_two_terminals_of_one_call_and_those_of_another_keep_apart() -> None:
    drive = started(content=[*SHOWN, {"type": "terminal", "terminalId": "u"}])
    drive.call("d", status="in_progress", content=[{"type": "terminal", "terminalId": "v"}])
    for terminal in "tuv":
        prints(drive, f"of {terminal}\n", terminal)
    assert [(event.tool_call_id, event.output) for event in drive.events if outputs([event])] == [  # type: ignore[attr-defined]
        ("c", "of t\n"),
        ("c", "of u\n"),
        ("d", "of v\n"),
    ]
    drive.progress("c", status="completed")
    assert last(drive, "tool:result").output == "of t\n\nof u\n"


def test_a_call_that_never_said_that_it_runs_runs_when_its_terminal_prints() -> None:
    drive = started(status="pending", content=SHOWN)
    assert "tool:executing" not in drive.types
    assert types(prints(drive, "x")) == ["tool:executing", "progress:update"]


def test_one_event_has_a_bounded_piece_of_the_output() -> None:
    drive = started()
    prints(drive, "x" * (PIECE + 10))
    assert [len(one) for one in outputs(drive.progress("c", content=SHOWN))] == [PIECE, 10]


def test_a_terminal_that_is_not_the_clients_changes_nothing() -> None:
    """Some agents show a terminal of their own and send its output themselves."""
    drive = started(content=SHOWN)
    drive.progress("c", _meta={"terminal_output": {"data": "own words", "terminal_id": "t"}})
    drive.progress("c", status="completed", _meta={"terminal_exit": {"exit_code": 0, "terminal_id": "t"}})
    assert last(drive, "tool:result").output == "own words"
    assert last(drive, "tool:result").structured.exit_code == 0
    assert len(known(drive.translator)) == 0


# -- ends ---------------------------------------------------------------------------------------------------------


def test_the_result_has_the_true_end_of_the_output_and_the_exit_code() -> None:
    drive = started(content=SHOWN)
    prints(drive, "a glimpse")
    drive.translator.terminal_ended("t", output="the end\n", left_out=12345, exit_code=0)
    drive.progress("c", status="completed")
    result = last(drive, "tool:result")
    assert result.output == "… 12,345 bytes left out …\nthe end\n"
    assert (result.structured.exit_code, result.structured.signal) == (0, None)
    assert result.structured.stdout == result.output


def test_an_exit_code_that_is_not_zero_is_an_error_whatever_the_agent_says() -> None:
    drive = started(content=SHOWN)
    drive.translator.terminal_ended("t", output="no rule to make target\n", exit_code=2)
    drive.progress("c", status="completed")
    error = last(drive, "tool:error")
    assert (error.error.code, error.error.details) == ("exit_code", {"exitCode": 2})
    assert error.output == "no rule to make target\n"


def test_a_signal_is_told_and_the_agents_word_on_it_counts() -> None:
    for status, kind in (("completed", "tool:result"), ("failed", "tool:error")):
        drive = started(content=SHOWN)
        drive.translator.terminal_ended("t", output="", signal="SIGKILL")
        drive.progress("c", status=status)
        end = last(drive, kind)
        assert (end.structured.exit_code, end.structured.signal) == (-1, "SIGKILL")
    assert end.error.message == "The command was ended by SIGKILL."
    assert end.error.details == {"signal": "SIGKILL"}


def test_what_the_agent_says_besides_follows_the_output_and_what_it_repeats_does_not() -> None:
    for said, expected in (
        ("All tests pass.", "3 passed\n\nAll tests pass."),
        ("```\n3 passed\n```\nexit code 0", "```\n3 passed\n```\nexit code 0"),
    ):
        drive = started(content=SHOWN)
        drive.translator.terminal_ended("t", output="3 passed\n", exit_code=0)
        drive.progress("c", status="completed", content=[*SHOWN, *text(said)])
        assert last(drive, "tool:result").output == expected


def test_a_terminal_that_only_the_end_of_its_call_names_is_in_the_result() -> None:
    drive = started()
    prints(drive, "done\n")
    drive.translator.terminal_ended("t", output="done\n", exit_code=0)
    events = drive.progress("c", status="completed", content=SHOWN)
    assert last(drive, "tool:result").output == "done\n"
    assert events[0].source == drive.updates[-1]
    drive.end()
    assert len(known(drive.translator)) == 0


def test_a_second_call_shows_the_output_of_a_terminal_whose_first_call_has_ended() -> None:
    drive = started(content=SHOWN)
    prints(drive, "is 42\n")
    drive.translator.terminal_ended("t", output="is 42\n", exit_code=0)
    drive.progress("c", status="completed")
    drive.call("d", kind="execute", status="in_progress", content=SHOWN)
    drive.progress("d", status="completed")
    assert [event.output for event in drive.events if event.type == "tool:result"] == ["is 42\n"] * 2  # type: ignore[attr-defined]
    drive.end()
    assert len(known(drive.translator)) == 0


def test_a_turn_that_ends_while_the_terminal_runs_keeps_what_was_printed_and_nothing_follows() -> None:
    drive = started(content=SHOWN)
    prints(drive, "listening on port 80\n")
    drive.end()
    assert last(drive, "tool:error").output == "listening on port 80\n"
    assert prints(drive, "a request\n") == []
    drive.prompt(turn_id="t2")
    assert prints(drive, "another\n") == []
    # a later call can still show it
    events = drive.call("d", kind="execute", status="in_progress", content=SHOWN)
    assert outputs(events) == ["listening on port 80\na request\nanother\n"]
    drive.translator.terminal_ended("t", exit_code=0)
    drive.end("cancelled")
    assert "".join(outputs(drive.events)).count("another") == 1
    assert len(known(drive.translator)) == 0


def test_memory_is_bounded_however_much_is_printed_and_nobody_asks() -> None:
    drive = started()
    terminals = known(drive.translator)
    for _ in range(100):
        prints(drive, "ü" * (KEPT // 8))
    terminal = terminals.get("t")
    assert len(terminal.text.encode()) <= KEPT
    assert terminal.left_out + len(terminal.text.encode()) == 100 * 2 * (KEPT // 8)
    prints(drive, "ü" * KEPT)
    assert len(terminal.text.encode()) == KEPT
    for number in range(3 * MOST):
        prints(drive, "x", f"t{number}")
        drive.translator.terminal_ended(f"t{number}", exit_code=0)
    assert len(terminals) == MOST + 1
    drive.end()
    drive.translator.terminal_ended("t", exit_code=0)
    assert len(terminals) == 0


# -- consumers ----------------------------------------------------------------------------------------------------


def test_consumers_of_updates_get_the_output_as_it_comes_and_whole_at_the_end() -> None:
    drive = started(content=SHOWN)
    prints(drive, "one\n")
    drive.translator.terminal_ended("t", output="one\ntwo\n", exit_code=0)
    drive.progress("c", status="completed")
    projector = Projector()
    updates = [json.loads(update) for event in drive.events for update in projector.project(event)]
    assert [json.dumps(update).encode() for update in updates if json.dumps(update).encode() in drive.updates] == (
        drive.updates
    )
    deltas = [one["_meta"]["terminal_output_delta"]["data"] for one in updates if "_meta" in one]
    assert deltas == ["one\n"]
    assert updates[-2]["status"] == "completed"
    assert updates[-1]["content"] == [{"type": "content", "content": {"type": "text", "text": "one\ntwo\n"}}]


def test_consumers_of_packets_get_the_output_as_it_comes_and_whole_at_the_end() -> None:
    drive = started(content=SHOWN)
    prints(drive, "one\n")
    drive.translator.terminal_ended("t", output="one\ntwo\n", signal="SIGTERM")
    drive.progress("c", status="completed")
    drive.end()
    projector = Packets()
    packets = [packet for event in drive.events for packet in projector.project(event)]
    assert [packet["type"] for packet in packets] == [
        "tool_call_start",
        "tool_call_progress",
        "tool_call_progress",
        "tool_call_progress",
        "prompt_response",
    ]
    assert packets[1]["_meta"]["terminal_output_delta"]["data"] == "one\n"
    assert packets[3]["rawOutput"]["output"] == "one\ntwo\n"
    assert packets[3]["rawOutput"]["metadata"]["signal"] == "SIGTERM"


def test_a_call_without_such_a_terminal_is_projected_verbatim_and_no_more() -> None:
    drive = started(content=text("x"))
    drive.progress("c", status="completed", content=text("y"))
    projector = Projector()
    assert [update for event in drive.events for update in projector.project(event) if b"tool" in update] == (
        drive.updates
    )
