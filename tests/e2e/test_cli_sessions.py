"""Commands that only read: they give back what was stored, also while a hub is running on the same home."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from pilothouse.acp import (
    AllowedOutcome,
    Client,
    RequestPermissionResponse,
    spawn_agent_process,
    text_block,
)
from pilothouse.acp.dispatch import Diagnostic
from pilothouse.cli.commands import sessions
from pilothouse.model.events import decode_event
from pilothouse.model.session import Session
from tests.support.cli import PATIENCE, Cli, Typist

EVIL = "<script>alert(1)</script> <img src=x onerror=alert(1)> ![x](http://evil/x.png) [l](javascript:alert(1)) \"'>"


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    """A home with two sessions."""
    made = Cli(tmp_path_factory.mktemp("stored"))
    assert made("run", "-a", "demo", "--approve-all", "tour").returncode == 0
    assert made("run", "-a", "demo", f"echo {EVIL}").returncode == 0
    return made


@pytest.fixture(scope="module")
def tour(cli: Cli) -> str:
    return next(session["id"] for session in json.loads(cli("ls", "--json").stdout) if session["title"] == "tour")


def test_ls_lists_sessions_for_people_and_for_programs(cli: Cli, tour: str) -> None:
    sessions = json.loads(cli("ls", "--json").stdout)
    assert [session["agent"] for session in sessions] == ["demo", "demo"]
    assert sessions[1]["id"] == tour
    known = {"id", "agent", "cwd", "title", "status", "created", "updated", "seq", "archived", "questions"}
    assert set(sessions[0]) == known
    table = cli("ls").stdout
    assert tour in table
    assert "idle" in table
    assert len(json.loads(cli("ls", "--json", "-n", "1").stdout)) == 1


def test_a_home_without_sessions_is_no_error(tmp_path: Path) -> None:
    empty = Cli(tmp_path)
    done = empty("ls")
    assert (done.returncode, done.stdout) == (0, "")
    assert "No sessions yet" in done.stderr
    assert json.loads(empty("ls", "--json").stdout) == []
    assert json.loads(empty("approvals", "--json").stdout) == []
    assert not empty.home.exists()


def test_show_takes_the_beginning_of_an_id(cli: Cli, tour: str) -> None:
    whole = cli("show", tour).stdout
    assert whole == cli("show", tour[:10]).stdout == cli("show", tour[4:10]).stdout
    for line in (
        "tour",
        "› tour",
        "? Set up a small project",
        "allowed by --approve-all",
        "☑ Run the tests again",
        "Done",
    ):
        assert line in whole
    assert "\x1b" not in whole


@pytest.mark.parametrize(("beginning", "said"), [("nope", "no session 'nope'"), ("ses_", "2 sessions begin with")])
def test_an_id_that_is_unknown_or_ambiguous_is_said(cli: Cli, beginning: str, said: str) -> None:
    for command in ("show", "export", "replay"):
        done = cli(command, beginning)
        assert done.returncode == 2
        assert said in done.stderr


def test_show_as_json_is_the_folded_session(cli: Cli, tour: str) -> None:
    session = json.loads(cli("show", tour, "--json").stdout)
    assert session["id"] == tour
    kinds = {entry["type"] for entry in session["transcript"]}
    assert {"text", "thinking", "tool_call", "approval", "todo_list"} <= kinds


def test_show_says_by_which_id_the_agent_has_the_session(cli: Cli, tour: str) -> None:
    known = json.loads(cli("show", tour, "--json").stdout)["agentSessionId"]
    assert known != tour
    assert f"demo calls it {known}" in " ".join(cli("show", tour).stdout.split())


def test_an_export_has_every_event_and_can_be_replayed(cli: Cli, tour: str, tmp_path: Path) -> None:
    file = tmp_path / "tour.ndjson"
    done = cli("export", tour, "-o", file)
    assert (done.returncode, done.stdout) == (0, "")
    lines = file.read_text().splitlines()
    assert [decode_event(line).seq for line in lines] == list(range(1, len(lines) + 1))
    assert any("source" in json.loads(line) for line in lines)
    assert cli("export", tour).stdout == file.read_text()
    played = cli("replay", file, "--speed", "1000")
    assert played.returncode == 0
    assert "✓ Set up a small project" in played.stdout
    assert played.stdout == cli("replay", tour, "--speed", "1000").stdout
    file.write_text("no event\n")
    assert cli("replay", file).returncode == 2


async def test_a_session_is_served_as_an_agent_for_clients_to_be_tested_against(cli: Cli, tour: str) -> None:
    asked: list[str] = []
    updates: list[str] = []

    class Person(Client):
        async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
            updates.append(type(update).__name__)

        async def request_permission(self, session_id: str, tool_call: Any, options: Any, **kwargs: Any) -> Any:
            asked.append(options[0].option_id)
            return RequestPermissionResponse(outcome=AllowedOutcome(option_id=options[0].option_id))

    noise: list[Diagnostic] = []
    command = cli.command("replay", tour, "--serve", "--pause", "0")
    async with (
        asyncio.timeout(PATIENCE),
        spawn_agent_process(Person(), *command, env=cli.environment, on_diagnostic=noise.append) as (agent, process),
    ):
        await agent.initialize(1)
        session = await agent.new_session(cwd=str(cli.project), mcp_servers=[])
        assert session.modes is not None
        response = await agent.prompt(session.session_id, [text_block("whatever")])
        assert response.stop_reason == "end_turn"
        assert asked
        live = list(updates)
        assert {"AgentMessageChunk", "ToolCallStart", "ToolCallProgress", "AgentPlanUpdate"} <= set(live)
        updates.clear()
        await agent.load_session(cwd=str(cli.project), session_id=tour, mcp_servers=[])
        assert [name for name in updates if name != "UserMessageChunk"] == live
    assert noise == []
    assert process.returncode == 0


def test_an_export_as_html_stands_alone_and_runs_nothing_but_its_own_script(cli: Cli, tmp_path: Path) -> None:
    evil = next(session["id"] for session in json.loads(cli("ls", "--json").stdout) if session["title"] != "tour")
    file = tmp_path / "page.html"
    assert cli("export", evil, "-o", file).returncode == 0
    page = file.read_text()
    assert "default-src 'none'" in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    tags = Tags()
    tags.feed(page)
    plain = {"html", "head", "meta", "title", "style", "body", "main", "h1", "p", "div", "span", "a", "script"}
    assert tags.seen <= plain
    policy = next(content for content in tags.contents if content and content.startswith("default-src 'none'"))
    assert len(tags.scripts) == 1
    digest = b64encode(sha256(tags.scripts[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy
    assert json.loads(tags.data)["events"][-1]["sessionId"] == evil
    assert tags.addresses == {"http://evil/x.png"}  # a link that a reader may follow, not a picture that loads
    allowed = {"lang", "charset", "name", "content", "http-equiv", "class", "href", "id", "media", "type"}
    assert tags.attributes <= allowed


class Tags(HTMLParser):
    """What a browser would find in a page."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.attributes: set[str] = set()
        self.addresses: set[str | None] = set()
        self.contents: list[str | None] = []
        self.scripts: list[str] = []
        self.data = ""
        self.within: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.addresses |= {value for name, value in attrs if name in ("href", "src")}
        self.contents += [value for name, value in attrs if name == "content"]
        if tag == "script":
            self.within = dict(attrs).get("type") or "code"
            self.scripts += [""] if self.within == "code" else []

    def handle_data(self, data: str) -> None:
        if self.within == "code":
            self.scripts[-1] += data
        elif self.within is not None:
            self.data += data

    def handle_endtag(self, tag: str) -> None:
        self.within = None


def test_an_export_as_html_shows_tools_and_diffs(cli: Cli, tour: str) -> None:
    page = cli("export", tour, "--format", "html").stdout
    assert '<span class="add">+    return sum(prices) * (100 - discount) // 100</span>' in page
    assert "<h2>What happened</h2>" in page
    assert "<table>" in page


def test_an_export_where_the_web_ui_was_not_built_is_a_page_without_scripts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sessions, "_template", lambda: None)
    page = sessions._as_html(Session(id="x"), [])
    assert "<h1>Session x</h1>" in page
    assert "<script" not in page
    assert "cannot be played; `make web` builds it" in capsys.readouterr().err


def test_an_export_as_markdown_is_for_reading(cli: Cli, tour: str, tmp_path: Path) -> None:
    file = tmp_path / "tour.md"
    assert cli("export", tour, "-o", file).returncode == 0
    assert file.read_text().startswith("# tour\n")
    missing = cli("export", tour, "-o", tmp_path / "no" / "such" / "dir.md")
    assert missing.returncode == 1
    assert "cannot be written" in missing.stderr


# -- while a hub runs ---------------------------------------------------------------------------------------------


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[tuple[Cli, Typist]]:
    """A home on which a run is under way."""
    cli = Cli(tmp_path)
    running = Typist(cli, "run", "-a", "demo", "wait", terminal=False)
    try:
        running.sees("Waiting until you cancel")
        yield cli, running
    finally:
        running.stop()


def test_readers_work_while_a_hub_runs_and_a_second_run_uses_it(busy: tuple[Cli, Typist]) -> None:
    cli, running = busy
    pid = running.process.pid
    (session,) = json.loads(cli("ls", "--json").stdout)
    assert "working" in cli("ls").stdout
    assert "Waiting until you cancel" in cli("show", session["id"]).stdout
    assert len(cli("export", session["id"]).stdout.splitlines()) == session["seq"]
    assert cli("approvals").returncode == 0
    assert f"process {pid} is running" in cli("doctor").stdout
    second = cli("run", "-a", "demo", "echo hi")
    assert (second.returncode, second.stderr) == (0, "")
    assert "hi" in second.stdout
    assert running.process.poll() is None


def test_what_a_killed_hub_left_is_shown_as_interrupted_and_goes_on(busy: tuple[Cli, Typist]) -> None:
    cli, running = busy
    running.process.kill()
    running.process.wait()
    (session,) = json.loads(cli("ls", "--json").stdout)
    assert "interrupted" in cli("ls").stdout
    assert cli("run", "-s", session["id"], "echo back again").returncode == 0
    shown = cli("show", session["id"]).stdout
    assert shown.index("Interrupted") < shown.index("back again")


@pytest.mark.parametrize("damage", [b"no database at all", b"SQLite format 3\0" + b"\xff" * 200])
def test_a_damaged_database_is_said_and_left_as_it_is(tmp_path: Path, damage: bytes) -> None:
    cli = Cli(tmp_path)
    cli.home.mkdir()
    file = cli.home / "pilothouse.db"
    file.write_bytes(damage)
    for command in (("ls",), ("run", "-a", "demo", "hi")):
        done = cli(*command)
        assert done.returncode == 6
        assert str(file) in done.stderr
        assert "Traceback" not in done.stderr
    assert file.read_bytes() == damage


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_ls_fits_the_terminal_and_breaks_no_word(cli: Cli, columns: int) -> None:
    session = json.loads(cli("ls", "--json").stdout)[0]["id"]
    cli.environment["COLUMNS"] = str(columns)
    typist = Typist(cli, "ls")
    try:
        assert typist.leaves() == 0
        head, *rows = typist.seen.rstrip("\n").split("\n")
        assert head.split()[:5] == ["session", "agent", "status", "age", "title"]
        assert len(rows) == len(json.loads(cli("ls", "--json").stdout))
        assert rows[0].startswith(session[:12])
        assert all(len(line) <= columns for line in (head, *rows))
    finally:
        typist.stop()
        cli.environment["COLUMNS"] = "100"
