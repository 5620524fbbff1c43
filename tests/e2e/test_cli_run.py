"""`pilothouse run` as people and programs use it: real processes, a real agent, a real terminal."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from typing import Any

import pytest

from pilothouse.cli.exits import Exit
from pilothouse.model.events import decode_event
from tests.support.cli import Cli, Typist

NOTHING_BESIDE = " \n"
"""What follows a question that got no answer: in a narrow terminal what is drawn beside it would stay."""


def events_of(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


def agent(cli: Cli, code: str) -> str:
    """Configure an agent that is this program; the answer is its name."""
    cli.home.mkdir(exist_ok=True)
    (cli.home / "config.toml").write_text(f"[agents.odd]\ncommand = [{sys.executable!r}, '-c', '''{code}''']\n")
    return "odd"


# -- without a terminal -------------------------------------------------------------------------------------------


def test_without_a_terminal_what_is_asked_for_is_denied_and_the_exit_code_says_so(cli: Cli) -> None:
    done = cli("run", "-a", "demo", "tour")
    assert done.returncode == 3
    assert done.stderr == ""
    assert "? Set up a small project" in done.stdout
    assert "denied by pilothouse run: There is no terminal to ask on" in done.stdout
    assert "\x1b" not in done.stdout
    assert list(cli.project.iterdir()) == []


def test_approve_all_lets_the_tour_happen(cli: Cli) -> None:
    done = cli("run", "-a", "demo", "--approve-all", "tour")
    assert (done.returncode, done.stderr) == (0, "")
    for line in (
        "☑ Run the tests again",
        "FAILED (failures=1)",
        "+    return sum(prices) * (100 -",
        "medium risk",
        "Done",
    ):
        assert line in done.stdout
    assert "(100 - discount)" in (cli.project / "pilothouse-demo" / "cart.py").read_text()


def test_approve_reads_allows_no_write(cli: Cli) -> None:
    done = cli("run", "-a", "demo", "--approve-reads", "edit a.txt hello")
    assert done.returncode == 3
    assert list(cli.project.iterdir()) == []


def test_the_policy_of_the_configuration_answers_without_asking(cli: Cli) -> None:
    cli.home.mkdir()
    (cli.home / "config.toml").write_text("default_agent = 'demo'\n[policy.autoApprove]\nwrites = ['*.txt']\n")
    allowed = cli("run", "edit a.txt hello")
    assert allowed.returncode == 0
    assert "allowed by autoApprove.writes[0]" in allowed.stdout
    assert (cli.project / "a.txt").read_text() == "hello\n"
    assert cli("run", "edit b.sh hello").returncode == 3
    assert not (cli.project / "b.sh").exists()


def test_json_is_one_event_a_line_and_nothing_else(cli: Cli) -> None:
    done = cli("run", "-a", "demo", "--json", "--approve-all", "edit a.txt hello")
    assert (done.returncode, done.stderr) == (0, "")
    events = events_of(done.stdout)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    for line in done.stdout.splitlines():
        decode_event(line)
    types = {event["type"] for event in events}
    assert {"session:started", "message:delta", "approval:resolved", "tool:result", "file:change"} <= types
    assert events[-1]["to"] == "idle"


def test_with_json_nobody_is_asked_either(cli: Cli) -> None:
    done = cli("run", "-a", "demo", "--json", "edit a.txt hello")
    assert done.returncode == 3
    (resolved,) = (event for event in events_of(done.stdout) if event["type"] == "approval:resolved")
    assert (resolved["approved"], resolved["decidedBy"]) == (False, "pilothouse run")


def test_a_question_that_nobody_can_answer_is_declined(cli: Cli) -> None:
    done = cli("run", "-a", "demo", "question")
    assert done.returncode == 0
    assert "No answer: decline." in done.stdout


def test_the_prompt_can_be_piped_in(cli: Cli) -> None:
    assert "through the pipe" in cli("run", "-a", "demo", given="echo through the pipe\n").stdout
    assert "with a dash" in cli("run", "-a", "demo", "-", given="echo with a dash").stdout


def test_text_of_an_agent_cannot_steer_the_terminal(cli: Cli) -> None:
    done = cli("run", "-a", "demo", "echo \x1b]0;owned\x07\x1b[31mred\x1b[2J plain")
    assert done.returncode == 0
    assert "red plain" in done.stdout
    assert "\x1b" not in done.stdout
    assert "owned" not in done.stdout


# -- ends ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "code", "said"),
    [
        ("echo fine", 0, "Done"),
        ("crash 3", 1, "was told to crash"),
        ("error -32050", 1, "was told to fail"),
        ("refuse", 3, "The agent refused"),
        ("limit", 5, "limit of tokens"),
    ],
)
def test_the_exit_code_says_how_the_turn_ended(cli: Cli, prompt: str, code: int, said: str) -> None:
    done = cli("run", "-a", "demo", prompt)
    assert done.returncode == code, done.stdout
    assert said in done.stdout


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("-a", "dmo", "hi"), 2, "did you mean 'demo'?"),
        (("hi",), 2, "name an agent with -a; ready on this machine: demo"),
        (("-a", "demo", "--cwd", "/no/such/dir", "hi"), 2, "does not exist"),
        (("-a", "demo"), 2, "there is no prompt"),
        (("-s", "ses_none", "hi"), 2, "no session 'ses_none'"),
        (("-s", "x", "--cwd", ".", "hi"), 2, "has its directory already"),
    ],
)
def test_what_is_wrong_with_a_command_is_said(cli: Cli, args: tuple[str, ...], code: int, said: str) -> None:
    done = cli("run", *args)
    assert done.returncode == code
    assert said in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_an_error_in_the_configuration_is_said_with_its_line(cli: Cli) -> None:
    cli.home.mkdir()
    (cli.home / "config.toml").write_text("\n[agents.x]\ncomand = 1\n")
    done = cli("run", "-a", "demo", "hi")
    assert done.returncode == 2
    assert f"{cli.home}/config.toml:3: agents.x.comand: unknown key; did you mean `command`?" in done.stderr


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import sys; sys.exit('no key found')", "no key found"),
        ("print('hello, I am no agent')", "odd could not be started"),
    ],
)
def test_an_agent_that_does_not_start_is_told_with_its_last_words(cli: Cli, code: str, said: str) -> None:
    done = cli("run", "-a", agent(cli, code), "hi")
    assert done.returncode == 4
    assert said in done.stderr
    assert json.loads(cli("ls", "--json").stdout) == []


def test_a_run_that_failed_to_start_names_no_session(cli: Cli, at_terminal: Callable[..., Typist]) -> None:
    cli.home.mkdir(mode=0o700)
    command = json.dumps([sys.executable, "-c", "raise SystemExit(9)"])
    (cli.home / "config.toml").write_text(f"[agents.broken]\ncommand = {command}\n")
    run = at_terminal("run", "-a", "broken", "hello")
    assert run.leaves() == Exit.NO_AGENT
    assert "ses_" not in run.seen
    assert json.loads(cli("ls", "--json").stdout) == []


def test_an_agent_that_wants_a_login_is_told_with_the_way_to_it(cli: Cli) -> None:
    code = (
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    ask = json.loads(line)\n"
        '    answer = {"error": {"code": -32000, "message": "Authentication required"}}\n'
        '    if ask["method"] == "initialize": answer = {"result": {"protocolVersion": 1}}\n'
        '    print(json.dumps({"jsonrpc": "2.0", "id": ask["id"], **answer}), flush=True)\n'
    )
    agent(cli, code)
    path = cli.home / "config.toml"
    path.write_text(path.read_text().replace("[agents.odd]", "[agents.opencode]"))
    done = cli("run", "-a", "opencode", "hi")
    assert done.returncode == 4
    assert "Authentication required" in done.stderr
    assert "opencode auth login" in done.stderr


def test_an_agent_that_is_not_installed_is_told_with_how_to_get_it(cli: Cli) -> None:
    cli.environment["PATH"] = str(cli.project)
    done = cli("run", "-a", "gemini", "hi")
    assert done.returncode == 4
    assert "npm install -g @google/gemini-cli" in done.stderr


def test_a_program_of_the_configuration_that_is_not_there_is_named_with_its_place(cli: Cli) -> None:
    cli.home.mkdir(mode=0o700)
    (cli.home / "config.toml").write_text("[agents.bad]\ncommand = ['nosuchprog']\n")
    done = cli("run", "-a", "bad", "hi")
    assert done.returncode == 4
    assert "bad can't be started: its program 'nosuchprog' is not found; see `command` of [agents.bad]" in done.stderr


def test_sigterm_ends_the_run_and_its_agent(cli: Cli, at_terminal: Callable[..., Typist]) -> None:
    typist = at_terminal("run", "-a", "demo", "wait", terminal=False)
    typist.sees("Waiting until you cancel")
    typist.process.send_signal(signal.SIGTERM)
    assert typist.leaves() == 143
    (session,) = json.loads(cli("ls", "--json").stdout)
    assert session["status"] == "idle"


# -- with a terminal ----------------------------------------------------------------------------------------------


def test_the_tour_asks_at_the_terminal_and_writes_what_is_allowed(cli: Cli, at_terminal: Callable[..., Typist]) -> None:
    typist = at_terminal("run", "-a", "demo", "tour")
    typist.sees("? Set up a small project")
    shown = typist.sees("[?]  ›")
    assert '+"""A shopping cart. Prices are in cents."""' in shown
    assert "medium risk" in shown
    typist.types("?\n")
    explained = typist.sees("[?]  ›")
    assert "Always allow. Agent's option: Always allow in this session" in explained
    typist.types("what\n")
    typist.sees("a: allow once   d REASON: deny")
    typist.sees("[?]  ›")
    typist.types("a\n")
    typist.sees("✓ Set up a small project")
    typist.sees("$ python3 -B -m unittest")
    typist.sees("[?]  ›")
    typist.types("A\n")
    typist.sees("Always allow, in this session:")
    typist.sees("Run exactly `python3 -B -m unittest")
    typist.sees("[n]o, go back  ›")
    typist.types("y\n")
    typist.sees("Rule stored: Run exactly `python3 -B -m unittest")
    typist.sees("✗ $ python3 -B -m unittest")
    typist.sees("-    return sum(prices) - discount")
    typist.sees("[?]  ›")
    typist.types("1\n")
    typist.sees("✓ $ python3 -B -m unittest")
    assert "allowed by your rule" in typist.sees("What happened")
    typist.sees("Done")
    assert typist.leaves() == 0
    assert "(100 - discount)" in (cli.project / "pilothouse-demo" / "cart.py").read_text()
    # another process, after this one is gone, gives it all back
    (session,) = json.loads(cli("ls", "--json").stdout)
    stored = cli("show", session["id"][4:10]).stdout
    for line in ("› tour", "✓ Set up a small project", "+    return sum(prices) * (100 - discount) // 100", "Done"):
        assert line in stored


def test_a_rejected_edit_writes_nothing_and_the_agent_hears_why(cli: Cli, at_terminal: Callable[..., Typist]) -> None:
    typist = at_terminal("run", "-a", "demo", "edit a.txt hello")
    typist.sees("[?]  ›")
    typist.types("d not in this house\n")
    typist.sees("denied: not in this house")
    typist.sees("✗ Edit a.txt")
    assert typist.leaves() == 0
    assert list(cli.project.iterdir()) == []


def test_the_end_of_input_allows_nothing(cli: Cli, at_terminal: Callable[..., Typist]) -> None:
    typist = at_terminal("run", "-a", "demo", "edit a.txt hello")
    typist.sees("[?]  ›")
    typist.types("\x04")
    assert typist.sees("denied").startswith(NOTHING_BESIDE)
    assert typist.leaves() == 0
    assert list(cli.project.iterdir()) == []


def test_what_was_typed_before_the_question_is_no_answer_to_it(cli: Cli, at_terminal: Callable[..., Typist]) -> None:
    typist = at_terminal("run", "-a", "demo", "edit a.txt hello")
    typist.types("a\na\na\n")
    typist.sees("[?]  ›")
    typist.types("d\n")
    typist.sees("denied")
    assert typist.leaves() == 0
    assert list(cli.project.iterdir()) == []


@pytest.mark.parametrize(("prompt", "sign"), [("wait", "Waiting until you cancel"), ("permission", "[?]  ›")])
def test_the_first_ctrl_c_cancels_the_turn(
    cli: Cli, at_terminal: Callable[..., Typist], prompt: str, sign: str
) -> None:
    typist = at_terminal("run", "-a", "demo", prompt)
    typist.sees(sign)
    typist.interrupts()
    before = typist.sees("stopping · ")
    assert prompt == "wait" or before.startswith(NOTHING_BESIDE)
    typist.sees("Cancelled")
    assert typist.leaves() == 130
    (session,) = json.loads(cli("ls", "--json").stdout)
    assert session["status"] == "idle"


def test_the_second_ctrl_c_leaves_an_agent_that_does_not_listen(cli: Cli, at_terminal: Callable[..., Typist]) -> None:
    typist = at_terminal("run", "-a", "demo", "stubborn 60")
    typist.sees("do not listen")
    typist.interrupts()
    typist.sees("Ctrl-C leaves")
    typist.interrupts()
    assert typist.leaves() == 130
    assert "Cancelled" in cli("show", json.loads(cli("ls", "--json").stdout)[0]["id"]).stdout


def test_a_closed_terminal_ends_the_run_and_decides_nothing(cli: Cli, at_terminal: Callable[..., Typist]) -> None:
    typist = at_terminal("run", "-a", "demo", "edit a.txt hello")
    typist.sees("[?]  ›")
    assert "waiting for an answer" in cli("show", json.loads(cli("ls", "--json").stdout)[0]["id"]).stdout
    (pending,) = json.loads(cli("approvals", "--json").stdout)
    assert pending["request"]["toolName"] in cli("approvals").stdout
    typist.process.send_signal(signal.SIGHUP)
    assert typist.leaves() == 129
    assert list(cli.project.iterdir()) == []
    assert json.loads(cli("approvals", "--json").stdout) == []


def test_without_a_prompt_there_is_a_conversation_and_another_run_goes_on_with_it(
    cli: Cli, at_terminal: Callable[..., Typist]
) -> None:
    typist = at_terminal("run", "-a", "demo")
    typist.sees("Ctrl-D leaves.")
    typist.sees("›")
    typist.types("wait\n")
    typist.sees("Waiting until you cancel")
    typist.interrupts()
    typist.sees("Cancelled")
    typist.sees("›")
    typist.types("question\n")
    for field, answer in (
        ("Name", "Ann"),
        ("Size", "99"),
        ("Size", "4"),
        ("Ratio", ""),
        ("sure?", "n"),
        ("Colour", "b"),
    ):
        typist.sees(field)
        typist.sees("›")
        typist.types(f"{answer}\n")
    typist.sees("Fruits")
    typist.sees("›")
    typist.types("apple plum\n")
    said = typist.sees("? Please look at this page.")
    for line in ("colour: 'blue'", "fruits: ['apple', 'plum']", "name: 'Ann'", "ratio: 0.5", "size: 4", "sure: False"):
        assert line in said
    typist.sees("n declines ›")
    typist.types("\n")
    typist.sees("Done")
    typist.sees("›")
    typist.types("quit\n")
    assert typist.leaves() == 0
    (session,) = json.loads(cli("ls", "--json").stdout)
    assert session["title"] == "wait"
    again = cli("run", "-s", session["id"][:12], "--json", "echo once more")
    assert again.returncode == 0
    events = events_of(again.stdout)
    assert events[0]["seq"] == session["seq"] + 1
    assert "session:resumed" in {event["type"] for event in events}
    assert cli("run", "-s", session["id"], "-a", "claude", "hi").returncode == 2


def test_a_paste_of_several_lines_is_one_prompt(cli: Cli, at_terminal: Callable[..., Typist]) -> None:
    typist = at_terminal("run", "-a", "demo")
    typist.sees("›")
    typist.types("\x1b[200~echo first\rsecond\rthird\x1b[201~\r")
    typist.sees("Done")
    typist.sees("›")
    typist.types("\x04")
    typist.sees("goes on with it.")
    assert typist.leaves() == 0
    (session,) = json.loads(cli("ls", "--json").stdout)
    said = events_of(cli("export", session["id"]).stdout)
    assert [one["data"]["stopReason"] for one in said if one.get("eventName") == "turn_ended"] == ["end_turn"]
    assert any("echo first\nsecond\nthird" in json.dumps(one).replace("\\n", "\n") for one in said)


def test_ctrl_c_at_the_prompt_clears_it_then_warns_and_then_leaves(
    cli: Cli, at_terminal: Callable[..., Typist]
) -> None:
    typist = at_terminal("run", "-a", "demo")
    typist.sees("Ctrl-D leaves.")
    typist.sees("›")
    typist.types("crash")
    typist.sees("crash")
    typist.interrupts_typing()
    typist.types("echo fine\n")
    typist.sees("Done")  # nothing of the first line was left
    typist.sees("›")
    typist.interrupts()
    typist.sees("Ctrl-C again or Ctrl-D leaves.")
    typist.sees("›")
    typist.interrupts()
    typist.sees("`pilothouse run -s ses_")
    assert typist.leaves() == 0
    assert typist.seen.endswith("goes on with it.\n")
    assert "^C" not in typist.seen


def test_what_runs_in_this_terminal_cannot_be_detached_from(cli: Cli, at_terminal: Callable[..., Typist]) -> None:
    typist = at_terminal("run", "-a", "demo", "wait")
    typist.sees("Waiting until you cancel")
    typist.process.send_signal(signal.SIGQUIT)
    typist.sees("there is nothing to detach from")
    typist.interrupts()
    assert typist.leaves() == 130
    refused = cli("run", "-a", "demo", "--detach", "wait")
    assert refused.returncode == 6
    assert "pilothouse serve" in refused.stderr


def test_a_call_that_was_never_allowed_shows_no_time_of_its_own(cli: Cli, at_terminal: Callable[..., Typist]) -> None:
    typist = at_terminal("run", "-a", "demo", "permission")
    typist.sees("[?]  ›")
    typist.types("?\n")
    typist.sees("always allow in this project, in all its sessions")
    typist.sees("[?]  ›")
    typist.interrupts()
    assert typist.leaves() == 130
    (session,) = json.loads(cli("ls", "--json").stdout)
    shown = cli("show", session["id"]).stdout
    assert "✗ Do something that needs permission\n" in shown.replace("⊘", "✗")
