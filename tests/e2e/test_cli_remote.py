"""Commands that talk to a hub in another process: real processes, a real agent, one home."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import PATIENCE, Cli, Typist
from tests.support.served import Served, eventually, pending, serving


@pytest.fixture
def served(cli: Cli) -> Iterator[Served]:
    with serving(cli) as hub:
        yield hub


def session_of(cli: Cli) -> str:
    """The session last active."""
    return str(json.loads(cli("ls", "--json").stdout)[0]["id"])


def new_session(cli: Cli) -> str:
    assert cli("run", "-a", "demo", "echo hello").returncode == 0
    return session_of(cli)


def stored(cli: Cli, session: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in cli("export", session).stdout.splitlines()]


def seqs(output: str) -> list[int]:
    return [json.loads(line)["seq"] for line in output.splitlines()]


# -- a run, seen and steered from another terminal ---------------------------------------------------------------


def test_a_run_is_attached_to_sent_to_and_cancelled_from_another_process(
    cli: Cli, at_terminal: Callable[..., Typist]
) -> None:
    run = at_terminal("run", "-a", "demo", "wait", terminal=False)
    run.sees("Waiting until you cancel")
    session = session_of(cli)
    watching = at_terminal("attach", session, terminal=False)
    watching.sees("› wait")
    watching.sees("Waiting until you cancel")
    sent = cli("send", session, "echo from elsewhere")
    assert sent.returncode == 0, sent.stderr
    assert sent.stdout.startswith("turn_")
    cancelled = cli("cancel", session)
    assert (cancelled.returncode, cancelled.stdout) == (0, "Cancelled.\n")
    watching.sees("from elsewhere")
    assert run.leaves() == 130
    # the hub was that of `run`; it stayed for the prompt of the other command, and then it was gone
    watching.sees("The hub has gone.")
    assert watching.leaves() == 0
    stops = [event["data"]["stopReason"] for event in stored(cli, session) if event.get("eventName") == "turn_ended"]
    assert stops == ["cancelled", "end_turn"]


def test_an_approval_of_a_run_is_decided_from_another_process(cli: Cli, at_terminal: Callable[..., Typist]) -> None:
    run = at_terminal("run", "-a", "demo", "edit a.txt hello")
    run.sees("[?]  ›")
    (approval,) = pending(cli)
    shown = cli("approvals").stdout
    for line in ("a.txt", "+hello", "medium risk", approval["id"], "allow-once"):
        assert line in shown
    done = cli("approve", approval["id"][4:12])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Allowed: ")
    run.sees("allowed by cli")  # the question at the terminal is withdrawn
    run.sees("Done")
    assert run.leaves() == 0
    assert (cli.project / "a.txt").read_text() == "hello\n"


def test_a_denial_from_another_process_reaches_the_agent_with_its_reason(
    cli: Cli, at_terminal: Callable[..., Typist]
) -> None:
    run = at_terminal("run", "-a", "demo", "edit a.txt hello")
    run.sees("[?]  ›")
    (approval,) = pending(cli)
    done = cli("deny", approval["id"], "--reason", "not in this house")
    assert done.returncode == 0
    run.sees("denied by cli: not in this house")
    assert run.leaves() == 0
    assert list(cli.project.iterdir()) == []
    again = cli("deny", approval["id"])
    assert again.returncode == 6
    assert "no hub is running" in again.stderr


# -- a hub that stays --------------------------------------------------------------------------------------------


def test_a_run_with_a_hub_running_is_a_session_of_that_hub(cli: Cli, served: Served) -> None:
    done = cli("run", "-a", "demo", "echo hello there")
    assert (done.returncode, done.stderr) == (0, "")
    assert "hello there" in done.stdout
    session = session_of(cli)
    assert cli("run", "-s", session, "echo once more").returncode == 0
    assert cli("run", "-a", "demo", "crash 3").returncode == 1
    assert cli("run", "-a", "demo", "edit a.txt x").returncode == 3
    assert cli("run", "-a", "demo", "--approve-all", "edit a.txt x").returncode == 0
    assert cli("run", "-a", "dmo", "hi").returncode == 2
    assert served.typist.process.poll() is None


def test_an_agent_that_does_not_start_in_the_hub_has_the_same_exit_code_as_here(cli: Cli) -> None:
    cli.home.mkdir(mode=0o700)
    code = "import sys; sys.exit('no key found')"
    (cli.home / "config.toml").write_text(f"[agents.odd]\ncommand = [{sys.executable!r}, '-c', {json.dumps(code)}]\n")
    assert cli("run", "-a", "odd", "hi").returncode == 4
    with serving(cli):
        done = cli("run", "-a", "odd", "hi")
        assert done.returncode == 4
        assert "no key found" in done.stdout


def test_json_of_a_run_is_the_same_with_a_hub_elsewhere(cli: Cli, served: Served) -> None:
    done = cli("run", "-a", "demo", "--json", "echo hello")
    assert (done.returncode, done.stderr) == (0, "")
    assert seqs(done.stdout) == list(range(1, len(done.stdout.splitlines()) + 1))
    (ended,) = (one for one in map(json.loads, done.stdout.splitlines()) if one.get("eventName") == "turn_ended")
    assert ended["data"]["stopReason"] == "end_turn"


def test_leaving_a_run_does_not_end_its_session(cli: Cli, served: Served, at_terminal: Callable[..., Typist]) -> None:
    run = at_terminal("run", "-a", "demo", "slow 40")
    run.sees("1")
    run.process.send_signal(signal.SIGHUP)
    run.sees("The session goes on in the hub: `pilothouse attach ses_")
    assert run.leaves() == 129
    (session,) = json.loads(cli("ls", "--json").stdout)
    assert session["status"] == "running"
    assert json.loads(cli("cancel", session["id"], "--json").stdout) == {"sessionId": session["id"], "cancelled": True}


def test_the_first_ctrl_c_of_a_run_cancels_its_turn_in_the_hub(
    cli: Cli, served: Served, at_terminal: Callable[..., Typist]
) -> None:
    run = at_terminal("run", "-a", "demo", "wait")
    run.sees("Waiting until you cancel")
    run.interrupts()
    run.sees("Cancelled")
    assert run.leaves() == 130
    (session,) = json.loads(cli("ls", "--json").stdout)
    assert session["status"] == "idle"


def test_ctrl_c_takes_back_a_prompt_that_waits_and_leaves_the_running_turn(
    cli: Cli, served: Served, at_terminal: Callable[..., Typist]
) -> None:
    session = new_session(cli)
    assert cli("send", session, "wait").returncode == 0
    run = at_terminal("run", "-s", session, "echo never")
    run.sees("this prompt waits for its end")
    run.interrupts()
    assert run.leaves() == 130
    assert json.loads(cli("ls", "--json").stdout)[0]["status"] == "running"
    cli("cancel", session)
    assert "never" not in cli("show", session).stdout.replace("echo never", "")


def test_attach_asks_and_leaving_it_stops_nothing(cli: Cli, served: Served, at_terminal: Callable[..., Typist]) -> None:
    session = new_session(cli)
    assert cli("send", session, "edit a.txt hello").returncode == 0
    pending(cli)
    watching = at_terminal("attach", session)
    watching.sees("? Edit")
    watching.sees("[?]  ›")
    watching.types("a\n")
    watching.sees("Done")
    watching.interrupts()
    watching.sees("Detached; the session goes on.")
    watching.sees(f"pilothouse attach {session} --since ")
    assert watching.leaves() == 0
    assert (cli.project / "a.txt").read_text() == "hello\n"
    (resolved,) = (event for event in stored(cli, session) if event["type"] == "approval:resolved")
    assert resolved["decidedBy"] == "cli"


def test_an_idle_session_is_prompted_where_it_is_watched(
    cli: Cli, served: Served, at_terminal: Callable[..., Typist]
) -> None:
    session = new_session(cli)
    watching = at_terminal("attach", session)
    watching.sees("The session is idle. Type a prompt")
    watching.types("echo typed here\n")
    watching.sees("typed here")
    watching.sees("Done")
    watching.sees("› ")
    watching.types("echo a dra")
    watching.sees("echo a dra")
    assert cli("send", session, "echo from elsewhere").returncode == 0
    watching.sees("from elsewhere")
    watching.sees("Done")
    watching.sees("› echo a dra")
    watching.types("ft\n")
    watching.sees("a draft")
    watching.sees("Done")
    watching.interrupts()
    watching.sees("Detached; the session goes on.")
    assert watching.leaves() == 0
    users = [one for one in stored(cli, session) if one["type"] == "message:complete" and one["role"] == "user"]
    said = [one["content"][0]["text"] for one in users]
    assert said[-3:] == ["echo typed here", "echo from elsewhere", "echo a draft"]


def test_coming_back_asks_again_what_still_waits(cli: Cli, served: Served, at_terminal: Callable[..., Typist]) -> None:
    session = new_session(cli)
    assert cli("send", session, "edit a.txt hello").returncode == 0
    pending(cli)
    last = stored(cli, session)[-1]["seq"]
    watching = at_terminal("attach", session, "--since", last)
    assert "hello" in watching.sees("[?]  ›")
    watching.types("d\n")
    watching.sees("denied by cli")
    watching.sees("Done")


def test_two_terminals_are_asked_and_the_first_answer_closes_both(
    cli: Cli, served: Served, at_terminal: Callable[..., Typist]
) -> None:
    session = new_session(cli)
    assert cli("send", session, "edit a.txt hello").returncode == 0
    first, second = at_terminal("attach", session), at_terminal("attach", session)
    first.sees("[?]  ›")
    second.sees("[?]  ›")
    second.types("d no\n")
    first.sees("denied by cli: no")
    first.sees("Done")
    second.sees("denied by cli: no")


def test_without_a_terminal_attach_leaves_decisions_to_others(
    cli: Cli, served: Served, at_terminal: Callable[..., Typist]
) -> None:
    session = new_session(cli)
    watching = at_terminal("attach", session, terminal=False)
    watching.sees("hello")
    assert cli("send", session, "edit a.txt hello").returncode == 0
    (approval,) = pending(cli)
    assert cli("approve", approval["id"]).returncode == 0
    watching.sees("allowed by cli")
    watching.sees("Done")


def test_attach_since_gives_exactly_what_came_after(cli: Cli, served: Served) -> None:
    session = new_session(cli)
    last = stored(cli, session)[-1]["seq"]
    for since in (0, 3, last):
        done = cli("attach", session, "--since", since, "--json", "--no-follow")
        assert (done.returncode, done.stderr) == (0, "")
        assert seqs(done.stdout) == list(range(since + 1, last + 1))
    beyond = cli("attach", session, "--since", last + 1)
    assert beyond.returncode == 2
    assert f"has {last} events" in beyond.stderr


def test_send_waits_when_it_is_told_to(cli: Cli, served: Served) -> None:
    session = new_session(cli)
    done = cli("send", session, "--wait", "echo with patience")
    assert done.returncode == 0
    assert "with patience" in done.stdout
    assert "hello" not in done.stdout


def test_the_same_request_is_sent_once(cli: Cli, served: Served) -> None:
    session = new_session(cli)
    first, second = (json.loads(cli("send", session, "--json", "--request-id", "r1", "echo x").stdout) for _ in "12")
    assert first["turnId"] == second["turnId"]
    ended = lambda: [e for e in stored(cli, session) if e.get("eventName") == "turn_ended"][1:]  # noqa: E731
    assert len(eventually(ended)) == 1


def test_always_makes_a_rule_that_answers_from_then_on(cli: Cli, served: Served) -> None:
    session = new_session(cli)
    cli("send", session, "edit a.txt one")
    (approval,) = pending(cli)
    assert cli("approve", approval["id"], "--always", "session").returncode == 0
    assert cli("send", session, "--wait", "edit a.txt two").returncode == 0
    assert (cli.project / "a.txt").read_text() == "two\n"


def test_the_option_of_an_agent_can_be_chosen(cli: Cli, served: Served) -> None:
    session = new_session(cli)
    cli("send", session, "edit a.txt one")
    (approval,) = pending(cli)
    wrong = cli("approve", approval["id"], "--option", "nonsense")
    assert wrong.returncode == 2
    assert "reject-once" in wrong.stderr
    done = json.loads(cli("approve", approval["id"], "--option", "reject-once", "--json").stdout)
    assert (done["decision"]["approved"], done["decidedBy"]) == (False, "cli")


def test_a_second_decision_is_told_who_was_first(cli: Cli, served: Served) -> None:
    session = new_session(cli)
    cli("send", session, "edit a.txt one")
    (approval,) = pending(cli)
    assert cli("approve", approval["id"]).returncode == 0
    assert cli("approve", approval["id"]).returncode == 0
    other = cli("deny", approval["id"])
    assert other.returncode == 1
    assert "was approved already, by cli" in other.stderr
    unknown = cli("approve", "apr_none")
    assert unknown.returncode == 2
    assert "Traceback" not in unknown.stderr


def test_a_program_uses_the_hub_as_the_guide_says(cli: Cli, served: Served) -> None:
    example = Path(__file__).parents[2] / "docs" / "examples" / "remote.py"

    def run(prompt: str) -> str:
        command = [sys.executable, "-W", "error", str(example), "demo", prompt]
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=PATIENCE, env=cli.environment, cwd=cli.project
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    assert run("echo hello there").startswith("hello there\n(end_turn, event ")
    assert "(end_turn, " in run("edit a.txt hello")
    assert not (cli.project / "a.txt").exists()
    (resolved,) = (event for event in stored(cli, session_of(cli)) if event["type"] == "approval:resolved")
    assert (resolved["decidedBy"], resolved["reason"]) == ("remote.py", "only what is harmless")


# -- no hub, and hubs that died ----------------------------------------------------------------------------------


def test_without_a_hub_send_runs_the_turn_itself(cli: Cli) -> None:
    session = new_session(cli)
    done = cli("send", session, "echo by myself")
    assert done.returncode == 0
    assert "by myself" in done.stdout
    assert cli("send", session, "edit a.txt x").returncode == 3  # nobody could be asked
    refused = cli("send", session, "--no-wait", "echo x")
    assert refused.returncode == 6
    assert "pilothouse serve" in refused.stderr


def test_without_a_hub_the_others_say_so(cli: Cli) -> None:
    session = new_session(cli)
    assert cli("cancel", session).stdout == "Nothing is under way in it.\n"
    assert cli("approve", "apr_x").returncode == 6
    assert cli("pair").returncode == 6
    watched = cli("attach", session)
    assert watched.returncode == 0
    assert "hello" in watched.stdout
    assert "No hub is running" in watched.stderr
    for command in (("attach", "ses_none"), ("send", "ses_none", "hi"), ("cancel", "ses_none")):
        done = cli(*command)
        assert done.returncode == 2
        assert "no session 'ses_none'" in done.stderr


def test_after_a_kill_attach_since_misses_nothing(cli: Cli, at_terminal: Callable[..., Typist]) -> None:
    with serving(cli) as first:
        session = new_session(cli)
        watching = at_terminal("attach", session, "--json", terminal=False)
        watching.sees('"turn_ended"')
        assert cli("send", session, "slow 400").returncode == 0
        watching.sees('"text":"slow 400"')
        watching.sees("message:delta")
        first.kill()
        assert watching.leaves() == 0
    seen = seqs(watching.seen.partition("The hub has gone.")[0].rsplit("\n", 1)[0])
    assert seen == list(range(1, len(seen) + 1))
    with serving(cli):
        rest = seqs(cli("attach", session, "--since", seen[-1], "--json", "--no-follow").stdout)
        assert rest == list(range(seen[-1] + 1, seen[-1] + 1 + len(rest)))
        everything = stored(cli, session)
        assert len(everything) == len(seen) + len(rest)
        ended = [event["data"]["stopReason"] for event in everything if event.get("eventName") == "turn_ended"]
        assert ended == ["end_turn", "interrupted"]


def test_an_attached_terminal_goes_on_when_the_hub_comes_back(cli: Cli, at_terminal: Callable[..., Typist]) -> None:
    with serving(cli) as first:
        session = new_session(cli)
        watching = at_terminal("attach", session, terminal=False)
        watching.sees("Done")
        first.kill()
        watching.sees("The hub does not answer; waiting for it to come back.")
        with serving(cli):
            assert cli("send", session, "echo after the crash").returncode == 0
            watching.sees("after the crash")


def test_what_a_dead_hub_left_in_the_home_is_no_obstacle(cli: Cli) -> None:
    with serving(cli) as hub:
        session = new_session(cli)
        hub.kill()
    assert (cli.home / "hub.sock").exists()
    assert (cli.home / "hub.json").exists()
    assert cli("attach", session).returncode == 0
    assert cli("run", "-s", session, "echo on my own").returncode == 0
    with serving(cli):
        assert "hello" in cli("run", "-a", "demo", "echo hello").stdout


def test_a_hub_that_does_not_answer_is_named(cli: Cli, served: Served) -> None:
    served.typist.process.send_signal(signal.SIGSTOP)
    try:
        done = cli("run", "-a", "demo", "echo hi")
    finally:
        served.typist.process.send_signal(signal.SIGCONT)
    assert done.returncode == 6
    assert f"process {served.pid} is running Pilothouse on {cli.home} and does not answer" in done.stderr


def test_a_home_with_a_long_path_has_its_socket_in_a_private_place(cli: Cli, tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    cli.home = deep
    cli.environment["PILOTHOUSE_HOME"] = str(deep)
    with serving(cli) as hub:
        place = Path(json.loads((deep / "hub.json").read_text())["socket"])
        assert deep not in place.parents
        assert (place.parent.stat().st_mode & 0o777, place.stat().st_mode & 0o777) == (0o700, 0o600)
        assert "hello" in cli("run", "-a", "demo", "echo hello").stdout
        hub.leave()
    assert not place.parent.exists()


# -- leaving, and hubs that leave --------------------------------------------------------------------------------


def test_send_wait_without_a_terminal_says_what_waits_and_leaves_it_to_others(
    cli: Cli, served: Served, at_terminal: Callable[..., Typist]
) -> None:
    session = new_session(cli)
    sending = at_terminal("send", session, "--wait", "edit a.txt hello", terminal=False)
    sending.sees("Waiting for a decision: ")
    (approval,) = pending(cli)
    sending.sees(f"Decide with: `pilothouse approve {approval['id']}` or `pilothouse deny {approval['id']}`")
    assert sending.process.poll() is None
    assert cli("approve", approval["id"]).returncode == 0
    assert sending.leaves() == 0
    assert (cli.project / "a.txt").read_text() == "hello\n"


def test_a_question_is_told_by_approvals_and_by_ls(cli: Cli, served: Served) -> None:
    session = cli("run", "-a", "demo", "--detach", "question").stdout.strip()
    (question,) = pending(cli)
    assert (question["kind"], question["sessionId"]) == ("question", session)
    assert question["question"]
    line = f"1 question waits in {session}: `pilothouse attach {session[:12]}`"
    assert line in cli("approvals").stdout
    assert line in cli("ls").stdout
    assert json.loads(cli("ls", "--json").stdout)[0]["questions"] == 1


def test_a_prompt_can_be_left_to_the_hub(cli: Cli, served: Served) -> None:
    done = cli("run", "-a", "demo", "--detach", "wait")
    session = done.stdout.strip()
    assert (done.returncode, session_of(cli)) == (0, session)
    assert f"`pilothouse attach {session}` comes back to it" in done.stderr
    more = json.loads(cli("run", "-s", session, "--detach", "--json", "echo later").stdout)
    assert (more["sessionId"], more["turnId"][:5]) == (session, "turn_")
    assert cli("cancel", session).stdout == "Cancelled.\n"
    assert cli("run", "-a", "demo", "--detach", "--approve-all", "wait").returncode == 2


@pytest.mark.parametrize(("prompt", "sign"), [("wait", "Waiting until you cancel"), ("edit a.txt x", "[?]  ›")])
def test_a_key_leaves_a_run_at_work(
    cli: Cli, served: Served, at_terminal: Callable[..., Typist], prompt: str, sign: str
) -> None:
    run = at_terminal("run", "-a", "demo", prompt)
    run.sees(sign)
    run.process.send_signal(signal.SIGQUIT)  # what Ctrl-\ sends
    run.sees("The session goes on in the hub: `pilothouse attach ses_")
    assert run.leaves() == 0
    assert "Ctrl-\\ detaches" in run.seen
    assert json.loads(cli("ls", "--json").stdout)[0]["status"] in ("running", "waiting_for_approval")


def test_a_run_whose_hub_goes_away_says_what_became_of_it(cli: Cli, at_terminal: Callable[..., Typist]) -> None:
    with serving(cli) as hub:
        killed = at_terminal("run", "-a", "demo", "wait")
        killed.sees("Waiting until you cancel")
        hub.kill()
        killed.sees("The hub has gone; the turn was interrupted. `pilothouse run -s ses_")
        assert killed.leaves() == 6
    with serving(cli) as hub:
        stopped = at_terminal("run", "-a", "demo", "wait", terminal=False)
        stopped.sees("Waiting until you cancel")
        assert hub.leave()[0] == 0
        assert stopped.leaves() in (1, 6)
        assert "nterrupted" in stopped.seen


# -- rules and tidying up, with a hub and without ----------------------------------------------------------------


def tidy(cli: Cli, session: str) -> None:
    """Rename, archive and take back, whoever does it."""
    assert "is now called A better name." in cli("rename", session[4:12], "A better", "name").stdout
    assert json.loads(cli("ls", "--json").stdout)[0]["title"] == "A better name"
    assert cli("rename", session, " ").returncode == 2
    assert "--undo` takes it back" in cli("archive", session).stdout
    assert session not in cli("ls").stdout
    assert session in cli("ls", "--all").stdout
    assert cli("archive", session, "--undo").returncode == 0
    assert session in cli("ls").stdout
    refused = cli("delete", session)
    assert (refused.returncode, "--yes" in refused.stderr) == (2, True)
    assert cli("delete", session, "--yes").stdout == f"{session} is deleted.\n"
    assert cli("show", session).returncode == 2


def test_sessions_are_put_in_order_with_a_hub_and_without(cli: Cli) -> None:
    tidy(cli, new_session(cli))
    with serving(cli):
        tidy(cli, new_session(cli))


def test_deleting_asks(cli: Cli, at_terminal: Callable[..., Typist]) -> None:
    session = new_session(cli)
    first = at_terminal("delete", session)
    first.sees("for good?")
    first.types("\n")
    assert first.leaves() == 130
    second = at_terminal("delete", session)
    second.sees("for good?")
    second.types("y\n")
    assert second.leaves() == 0
    assert json.loads(cli("ls", "--json").stdout) == []


def test_rules_are_listed_named_where_they_decide_and_revoked(cli: Cli, served: Served) -> None:
    assert json.loads(cli("policy", "rules", "--json").stdout) == []
    session = new_session(cli)
    for scope in ("session", "project"):
        cli("send", session, f"edit {scope}.txt one")
        (approval,) = pending(cli)
        assert cli("approve", approval["id"], "--always", scope).returncode == 0
        shown = cli("send", session, "--wait", f"edit {scope}.txt two").stdout
        assert f"(always, this {scope})" in shown
        assert "always:rule_" not in shown + cli("show", session).stdout
    of_session, of_project = json.loads(cli("policy", "rules", "--json").stdout)
    assert (of_session["scope"], of_session["hits"], of_session["active"]) == ("session", 1, True)
    listed = cli("policy", "rules").stdout
    assert of_project["id"] in listed
    assert "used 1×" in listed
    assert "by cli" in listed
    assert "for good" in listed
    assert cli("policy", "revoke", "rule_").returncode == 2
    assert cli("policy", "revoke", of_session["id"][5:]).stdout.startswith("Revoked: allow ")
    served.leave()
    assert cli("policy", "revoke", of_project["id"]).returncode == 0
    assert json.loads(cli("policy", "rules", "--json").stdout) == []
    assert "revoked now" in cli("policy", "rules", "--all").stdout


def test_a_run_whose_agent_cannot_be_started_ends_nobody_elses_turn(
    cli: Cli, at_terminal: Callable[..., Typist]
) -> None:
    cli.home.mkdir(mode=0o700)
    script = json.dumps(["sh", "-c", "while [ ! -e started ]; do sleep 0.05; done; exit 1"])
    (cli.home / "config.toml").write_text(f"[agents.bad]\ncommand = {script}\n")
    first = at_terminal("run", "-a", "bad", "hi", terminal=False)
    eventually(lambda: (cli.home / "hub.json").exists())
    second = at_terminal("run", "-a", "demo", "slow 3", terminal=False)
    eventually(lambda: "working" in cli("ls").stdout)
    (cli.project / "started").touch()
    assert second.leaves() == 0
    assert first.leaves() == 4
