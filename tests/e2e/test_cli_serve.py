"""`pilothouse serve` and what goes with it: starts, second starts, ends, pairing, configuration."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from pilothouse.app.stored_sessions import find_hub
from pilothouse.cli.daemon import service
from pilothouse.cli.exits import Exit
from pilothouse.config import Config, load_config, server_settings
from pilothouse.remote.hub import RemoteHub
from tests.support.cli import PATIENCE, Cli, Typist
from tests.support.served import Served, eventually, serving


@pytest.fixture
def served(cli: Cli) -> Iterator[Served]:
    with serving(cli) as hub:
        yield hub


def call(url: str, *, method: str = "GET", body: Any = None, **headers: str) -> tuple[int, Any]:
    data = json.dumps(body).encode() if body is not None else None
    headers |= {"Content-Type": "application/json"} if data else {}
    request = urllib.request.Request(url, data, {k.replace("_", "-"): v for k, v in headers.items()}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as exc:
        with exc:
            return exc.code, json.loads(exc.read() or b"null")


def token(cli: Cli) -> str:
    return (cli.home / "token").read_text().strip()


# -- starts -------------------------------------------------------------------------------------------------------


def test_a_start_tells_where_it_is_and_what_it_found(cli: Cli, served: Served) -> None:
    assert served.url.startswith("http://127.0.0.1:")
    assert served.login.startswith(f"{served.url}login?ticket=")
    assert "demo" in served.greeting.partition("agents")[2].partition("\n")[0]
    assert str(cli.home) in served.greeting
    assert token(cli) not in served.greeting
    assert call(f"{served.url}healthz")[1]["status"] == "ok"
    assert call(f"{served.url}sessions")[0] == 401
    status, answer = call(f"{served.url}agents", Authorization=f"Bearer {token(cli)}")
    assert status == 200
    assert next(agent for agent in answer["agents"] if agent["name"] == "demo")["installed"] is True


def test_what_it_keeps_is_for_its_owner_only(cli: Cli, served: Served) -> None:
    assert stat.S_IMODE(cli.home.stat().st_mode) == 0o700
    for name in ("hub.sock", "hub.json", "token", "pilothouse.db"):
        assert stat.S_IMODE((cli.home / name).stat().st_mode) == 0o600, name


def test_a_second_start_finds_the_first(cli: Cli, served: Served) -> None:
    for command in (("serve",), ("serve", "--port", "1"), ()):
        second = cli(*command)
        said = "--port has no effect on it; stop it first to start it otherwise.\n" if "--port" in command else ""
        assert (second.returncode, second.stderr) == (0, said)
        assert f"runs on this home already (process {served.pid})" in second.stdout
        assert served.url in second.stdout
    link = second.stdout.partition("log in")[2].split()[0]
    answer = urllib.request.build_opener(urllib.request.HTTPCookieProcessor()).open(link, timeout=PATIENCE)
    with answer:
        assert answer.url == served.url  # logged in, and the ticket has left the address


def test_a_start_while_a_run_has_the_home_says_so(cli: Cli) -> None:
    run = Typist(cli, "run", "-a", "demo", "wait", terminal=False)
    try:
        run.sees("Waiting until you cancel")
        done = cli("serve")
        assert done.returncode == 6
        assert f"process {run.process.pid} runs a session" in done.stderr
    finally:
        run.stop()


def test_at_a_terminal_there_is_a_code_to_scan(cli: Cli) -> None:
    with serving(cli, "--public-url", "https://hub.example.org", terminal=True) as hub:
        facts, _, code = hub.greeting.partition("▄▄▄▄▄")
        assert "address  https://hub.example.org/" in facts
        assert "Pair a phone: scan this and type " in code


def test_where_no_phone_gets_to_there_is_no_code_but_a_way(cli: Cli) -> None:
    cli.environment["COLUMNS"] = "80"
    with serving(cli, terminal=True) as hub:
        assert "▄▄▄▄▄" not in hub.greeting
        assert "only this machine reaches the address" in hub.greeting
        assert "see `pilothouse serve --help`" in " ".join(hub.greeting.split())
        pairing = Typist(cli, "pair")
        try:
            pairing.sees("Warning: only this machine reaches")
            pairing.sees("minutes.")
            pairing.interrupts()
            pairing.sees("Withdrawn.\n")
            assert pairing.leaves() == 130
            assert pairing.rest == ""
        finally:
            pairing.stop()


def test_quiet_says_nothing(cli: Cli) -> None:
    hub = Typist(cli, "serve", "--port", "0", "--quiet", terminal=False)
    try:
        eventually((cli.home / "hub.json").exists)
        hub.process.send_signal(signal.SIGTERM)
        assert hub.leaves() == 0
        assert hub.seen == ""
    finally:
        hub.stop()


def test_the_browser_is_shown_the_link_and_other_users_are_not(cli: Cli) -> None:
    browser, shown = cli.project / "browser", cli.project / "shown"
    browser.write_text(f'#!/bin/sh\necho "$1" > {shown}.new && mv {shown}.new {shown}\n')
    browser.chmod(0o700)
    cli.environment["BROWSER"] = str(browser)
    with serving(cli, "--browser") as hub:
        eventually(shown.exists)
        page = cli.home / "open.html"
        assert shown.read_text().strip() == page.as_uri()
        assert hub.login in page.read_text()
        assert stat.S_IMODE(page.stat().st_mode) == 0o600


def test_no_agent_inherits_the_token(cli: Cli) -> None:
    cli.environment["PILOTHOUSE_TOKEN"] = "sesame-sesame-sesame"
    show = "bash printenv PILOTHOUSE_TOKEN; echo ended with $?"
    alone = cli("run", "-a", "demo", "--approve-all", show).stdout
    with serving(cli) as hub:
        within = cli("run", "-a", "demo", "--approve-all", show).stdout
        for shown in (alone, within):
            assert "ended with 1" in shown
            assert "sesame" not in shown
        assert call(f"{hub.url}sessions", Authorization="Bearer sesame-sesame-sesame")[0] == 200


# -- what is wrong ------------------------------------------------------------------------------------------------


def test_a_port_that_is_taken_is_said_with_what_to_do(cli: Cli) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = cli("serve", "--port", port)
    assert done.returncode == 2
    for words in (f"port {port} of 127.0.0.1 is taken by another program", "--port", "PILOTHOUSE_PORT", "config.toml"):
        assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not (cli.home / "pilothouse.db").exists()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--host", "0.0.0.0"), "--insecure-bind"),
        (("--host", "::"), "--insecure-bind"),
        (("--host", "203.0.113.9", "--insecure-bind"), "no address 203.0.113.9"),
        (("--tls-cert", "cert.pem"), "a certificate and its key"),
        (("--tls-cert", "no.pem", "--tls-key", "no.pem"), "no.pem: there is no such file"),
        (("--root-path", "x y"), "--root-path: expected a path"),
        (("--public-url", "example.com"), "--public-url: expected http"),
        (("--log-file", "/no/such/dir/log"), "/no/such/dir/log"),
    ],
)
def test_what_is_wrong_with_a_start_is_said(cli: Cli, args: tuple[str, ...], said: str) -> None:
    done = cli("serve", *args)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_files_that_are_no_certificate_are_named(cli: Cli) -> None:
    wrong = cli.project / "wrong.pem"
    wrong.write_text("nothing of the kind")
    done = cli("serve", "--tls-cert", wrong, "--tls-key", wrong)
    assert done.returncode == 2
    assert f"{wrong} and {wrong} can't be used for TLS" in done.stderr


def test_the_port_comes_from_the_option_the_environment_or_the_file(cli: Cli) -> None:
    cli.home.mkdir(mode=0o700)
    (cli.home / "config.toml").write_text("[server]\nport = 1\nallowed_hosts = ['hub.example']\n")
    shown = {one["key"]: one for one in json.loads(cli("config", "--json").stdout)["settings"]}
    assert (shown["server.port"]["value"], shown["server.port"]["origin"]) == (1, "config.toml")
    assert shown["server.allowed_hosts"]["value"] == ["hub.example"]
    assert shown["server.host"]["origin"] == "default"
    cli.environment["PILOTHOUSE_PORT"] = "2"
    shown = {one["key"]: one for one in json.loads(cli("config", "--json").stdout)["settings"]}
    assert (shown["server.port"]["value"], shown["server.port"]["origin"]) == (2, "PILOTHOUSE_PORT")
    cli.environment["PILOTHOUSE_PORT"] = "high"
    done = cli("serve")
    assert done.returncode == 2
    assert "PILOTHOUSE_PORT: expected a port, got 'high'" in done.stderr


def test_config_shows_the_model_of_the_built_in_agent_and_who_chose_it(cli: Cli) -> None:
    cli.home.mkdir(mode=0o700)
    (cli.home / "config.toml").write_text("[agent]\nmodel = 'ollama:qwen3'\nmode = 'ask'\n")
    cli.environment.pop("PILOTHOUSE_MODEL", None)
    shown = {one["key"]: one for one in json.loads(cli("config", "--json").stdout)["settings"]}
    assert (shown["agent.model"]["value"], shown["agent.model"]["origin"]) == ("ollama:qwen3", "config.toml")
    assert (shown["agent.mode"]["value"], shown["agent.models"]["origin"]) == ("ask", "default")
    cli.environment["PILOTHOUSE_MODEL"] = "openai:gpt-5"
    shown = {one["key"]: one for one in json.loads(cli("config", "--json").stdout)["settings"]}
    assert (shown["agent.model"]["value"], shown["agent.model"]["origin"]) == ("openai:gpt-5", "PILOTHOUSE_MODEL")


def test_config_hides_what_an_agent_is_given_and_says_where_the_file_is(cli: Cli) -> None:
    cli.home.mkdir(mode=0o700)
    (cli.home / "config.toml").write_text("[agents.x]\ncommand = ['x']\nenv = { KEY = 'sesame' }\n")
    assert cli("config", "--path").stdout.strip() == str(cli.home / "config.toml")
    shown = cli("config").stdout
    assert "agents.x.command" in shown
    assert "KEY" in shown
    assert "sesame" not in shown


# -- ends ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_is_orderly_and_says_its_steps(cli: Cli, number: int) -> None:
    with serving(cli) as hub:
        assert cli("run", "-a", "demo", "echo hi").returncode == 0
        session = json.loads(cli("ls", "--json").stdout)[0]["id"]
        cli("send", session, "wait")
        watching = Typist(cli, "attach", session, terminal=False)
        try:
            watching.sees("Waiting until you cancel")
            code, said = hub.leave(number)
            assert watching.leaves() == 0
            assert "The hub has gone." in watching.rest
            assert "Interrupted" in watching.rest or "nterrupted" in watching.rest
        finally:
            watching.stop()
    assert code == 0
    for step in ("Stopping. Ending 1 agent and 1 connection.", "Closing the log.", "Done."):
        assert step in said
    assert not (cli.home / "hub.json").exists()
    assert not (cli.home / "hub.sock").exists()
    assert json.loads(cli("ls", "--json").stdout)[0]["status"] == "idle"


def test_what_a_hub_says_at_its_end_fits_a_narrow_terminal(cli: Cli) -> None:
    cli.environment["COLUMNS"] = "40"
    hub = Typist(cli, "serve", "--port", "0")
    try:
        hub.sees("Ctrl-C stops it.")
        hub.interrupts()
        assert hub.leaves() == 0
        assert "Ending 0 agents and 0\nconnections. Ctrl-C again hurries.\n" in hub.seen
    finally:
        hub.stop()


STUBBORN = """
import json, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
answers = {"initialize": {"protocolVersion": 1}, "session/new": {"sessionId": "s"}}
for line in sys.stdin:
    ask = json.loads(line)
    result = answers.get(ask.get("method"), {"stopReason": "end_turn"})
    print(json.dumps({"jsonrpc": "2.0", "id": ask.get("id"), "result": result}), flush=True)
while True:
    time.sleep(1)
"""


def test_stop_ends_the_hub_that_runs_and_says_so_when_none_does(cli: Cli, served: Served) -> None:
    pid = json.loads((cli.home / "hub.json").read_text())["pid"]
    stopped = cli("stop")
    assert (stopped.returncode, f"process {pid}, has ended" in stopped.stdout) == (0, True)
    assert not (cli.home / "hub.json").exists()
    again = cli("stop")
    assert (again.returncode, again.stdout.startswith("No hub runs on ")) == (0, True)


def test_a_hub_whose_home_is_deleted_ends_and_says_why(cli: Cli) -> None:
    with serving(cli) as hub:
        assert cli("run", "-a", "demo", "echo hi").returncode == 0
        shutil.rmtree(cli.home)
        assert hub.typist.leaves() == Exit.HOME
        last = hub.typist.seen.strip().splitlines()[-1]
        assert last == f"Error: {cli.home} was deleted or replaced, and the sessions in it are gone; the hub ends"


def test_a_hub_whose_home_was_replaced_leaves_the_new_one_alone(cli: Cli) -> None:
    with serving(cli) as hub:
        cli.home.rename(cli.home.with_name("elsewhere"))
        with serving(cli) as other:
            assert hub.typist.leaves() == Exit.HOME
            assert cli("run", "-a", "demo", "echo hi").returncode == 0
            assert other.typist.process.poll() is None


def test_a_second_ctrl_c_hurries(cli: Cli) -> None:
    """The agent heeds neither the end of its input nor SIGTERM."""
    cli.home.mkdir(mode=0o700)
    command = json.dumps([sys.executable, "-S", "-E", "-c", STUBBORN])
    (cli.home / "config.toml").write_text(f"[agents.stubborn]\ncommand = {command}\n")
    with serving(cli) as hub:
        assert cli("run", "-a", "stubborn", "hello").returncode == 0
        hub.typist.process.send_signal(signal.SIGINT)
        hub.typist.sees("Ending 1 agent")
        hub.typist.process.send_signal(signal.SIGINT)
        hub.typist.sees("Hurrying: agents are killed.")
        assert hub.typist.leaves() == 0


def test_the_log_is_json_when_asked_for_and_has_no_secrets(cli: Cli) -> None:
    log = cli.project / "hub.log"
    with serving(cli, "--log-json", "--log-level", "info", "--log-file", log) as hub:
        call(f"{hub.url}sessions", Authorization="Bearer wrong-wrong-wrong")
        cli("run", "-a", "demo", "echo hi")
        hub.leave()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert {"time", "level", "logger", "message"} <= lines[0].keys()
    assert any(line.get("audit", {}).get("by") == "cli" for line in lines)
    assert token(cli) not in log.read_text()
    assert hub.login.partition("ticket=")[2] not in log.read_text()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


# -- under a path, with TLS ---------------------------------------------------------------------------------------


def test_under_a_path_both_kinds_of_proxy_work(cli: Cli) -> None:
    with serving(cli, "--root-path", "/hub") as hub:
        assert hub.url.endswith("/hub/")
        bare = hub.url.removesuffix("hub/")
        assert call(f"{hub.url}healthz")[1]["status"] == "ok"  # one that leaves the path in
        assert call(f"{bare}healthz")[1]["status"] == "ok"  # one that takes it away
        assert call(f"{bare}hubhealthz")[0] == 404
        assert cli("run", "-a", "demo", "echo hi").returncode == 0


def test_with_a_certificate_it_is_https_and_commands_go_on_as_before(cli: Cli) -> None:
    cert, key = cli.project / "cert.pem", cli.project / "key.pem"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    subprocess.run([*make, "-keyout", key, "-out", cert], check=True, capture_output=True, timeout=PATIENCE)
    with serving(cli, "--tls-cert", cert, "--tls-key", key, "--host", "0.0.0.0") as hub:
        assert hub.url.startswith("https://")
        assert "0.0.0.0" not in hub.url
        assert cli("run", "-a", "demo", "echo hi").returncode == 0


# -- devices ------------------------------------------------------------------------------------------------------


def test_a_device_is_paired_listed_and_revoked(cli: Cli, served: Served) -> None:
    waiting = Typist(cli, "pair", "--name", "my phone", "--scope", "read", terminal=False)
    try:
        waiting.sees("#pair=")
        ticket = waiting.sees(" and type ")
        code = waiting.sees(".").strip()
        body = {"ticket": ticket, "code": code, "name": "whatever it says"}
        status, paired = call(f"{served.url}pair", method="POST", body=body)
        assert status == 201
        waiting.sees(f"Paired: my phone ({paired['deviceId']}).")
        assert waiting.leaves() == 0
    finally:
        waiting.stop()
    bearer = {"Authorization": f"Bearer {paired['credential']}"}
    assert call(f"{served.url}sessions", **bearer)[0] == 200
    (device,) = json.loads(cli("devices", "--json").stdout)
    assert (device["name"], device["scopes"]) == ("my phone", ["read"])
    assert "my phone" in cli("devices").stdout
    assert cli("revoke", "my phone").stdout == f"Revoked: my phone ({paired['deviceId']}).\n"
    assert call(f"{served.url}sessions", **bearer)[0] == 401
    assert json.loads(cli("devices", "--json").stdout) == []
    assert cli("revoke", "my phone").returncode == 2


def test_a_pairing_given_up_is_withdrawn(cli: Cli, served: Served) -> None:
    waiting = Typist(cli, "pair", terminal=False)
    try:
        waiting.sees("#pair=")
        ticket = waiting.sees(" and type ")
        code = waiting.sees(".").strip()
        waiting.interrupts()
        assert waiting.leaves() == 130
    finally:
        waiting.stop()
    assert call(f"{served.url}pair", method="POST", body={"ticket": ticket, "code": code})[0] == 403


def test_devices_can_be_seen_and_sent_away_without_a_hub(cli: Cli) -> None:
    with serving(cli) as hub:
        pairing = json.loads(cli("pair", "--json").stdout)
        body = {"ticket": pairing["ticket"], "code": pairing["code"], "name": "tablet"}
        assert call(f"{hub.url}pair", method="POST", body=body)[0] == 201
    (device,) = json.loads(cli("devices", "--json").stdout)
    assert (device["name"], device["rules"], "credential" in device) == ("tablet", 0, False)
    with contextlib.closing(sqlite3.connect(cli.home / "pilothouse.db")) as db, db:
        db.execute(
            "INSERT INTO rules (id, scope, scope_key, rule, effect, created, hits, made_by, device_id) "
            "VALUES ('rule_1', 'everywhere', '', '{}', 'allow', '2026-01-01T00:00:00Z', 0, 'tablet', ?)",
            [device["id"]],
        )
    said = cli("revoke", device["id"][:8])
    assert said.returncode == 0
    assert "1 rule that it made still answers" in said.stdout
    assert "by tablet" in cli("policy", "rules").stdout
    (device,) = json.loads(cli("devices", "--all", "--json").stdout)
    assert device["revoked"]


@pytest.mark.parametrize("taken", ["the home", "the port"])
def test_a_start_that_was_beaten_by_another_finds_that_one(
    cli: Cli, served: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], taken: str
) -> None:
    """Both looked when neither was there."""
    monkeypatch.setenv("PILOTHOUSE_HOME", str(cli.home))
    looks: list[object] = []

    async def look(config: Config) -> RemoteHub | None:
        looks.append(config)
        return await find_hub(config) if len(looks) > 1 else None

    monkeypatch.setattr(service, "find_hub", look)
    port = int(served.url.rpartition(":")[2].rstrip("/")) if taken == "the port" else 0
    config = load_config()
    settings = replace(server_settings(config), port=port)
    assert asyncio.run(service._start(config, settings, service.ServeOptions())) == Exit.OK
    assert f"runs on this home already (process {served.pid})" in capsys.readouterr().out
