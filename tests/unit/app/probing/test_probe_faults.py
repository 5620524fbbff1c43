"""Probes of agents that lie, ignore what they are told, or never end: nothing is on the card that was not seen."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from pilothouse.app.probing.client import COMMAND, FILE, NOTE, WORD, Script
from pilothouse.app.probing.probe import Probe
from pilothouse.app.probing.report import Report, Row, flags
from pilothouse.app.probing.steps import STEPS
from pilothouse.hub.agent.process import AgentSpec

SHORT = 5.0
"""Seconds for an agent that never answers; enough for the start of one that does, on a busy machine."""
SUPPORT = Path(__file__).parents[3] / "support"


def now() -> str:
    return "2026-11-16T12:00:00.000Z"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A directory for a probe; afterwards no process may be left that has its path in its command."""
    directory = tmp_path / "probe"
    directory.mkdir()
    yield directory
    running = [" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])]
    assert [words for words in running if str(tmp_path) in words] == []


def programs(**prompts: str) -> Script:
    """Prompts that the agent runs as Python."""
    long = "agent.say('x'); agent.cancelled.wait(); result = CANCELLED"
    quiet = {"read": "pass", "write": "pass", "run": "pass", "long": long}
    told = {"say": f"agent.say({WORD!r})", **quiet, **prompts}
    return Script(**{name: f"CANCELLED = {{'stopReason': 'cancelled'}}\n{code}" for name, code in told.items()})


def script_agent(place: Path, *how: str) -> AgentSpec:
    command = (sys.executable, "-S", "-E", str(SUPPORT / "script_agent.py"), *how, str(place.parent))
    return AgentSpec(name="scripted", command=command)


async def probed(spec: AgentSpec, place: Path, script: Script | None = None, **options: Any) -> Report:
    options = {"prompts": True, "timeout": 20.0, **options}
    async with asyncio.timeout(120):
        report = await Probe(spec, place, now, script=script or programs(), **options).run()
    assert [row.step for row in report.rows] == [step for step, _, _ in STEPS]
    return report


def row(report: Report, step: str) -> Row:
    return next(row for row in report.rows if row.step == step)


def seen(report: Report) -> list[str]:
    assert report.card is not None
    return flags(report.card.features)


LIES = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if 'id' not in message: continue
    offers = {name: {} for name in ('list', 'fork', 'resume', 'delete', 'close')}
    prompts = {'image': True, 'audio': True, 'embeddedContext': True}
    capabilities = {'loadSession': True, 'sessionCapabilities': offers, 'promptCapabilities': prompts}
    mode = {'currentModeId': 'plan', 'availableModes': [{'id': 'plan', 'name': 'Plan'}]}
    answer = {'result': %s}
    if message['method'] == 'initialize':
        answer = {'result': {'protocolVersion': 1, 'agentCapabilities': capabilities}}
    if message['method'] == 'session/new':
        answer = {'result': {'sessionId': 's', 'modes': mode}}
    if message['method'] in %s:
        answer = {'error': {'code': -32603, 'message': 'no'}}
    print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], **answer}), flush=True)
"""


def liar(place: Path, *, answers: str, refuses: tuple[str, ...] = ()) -> AgentSpec:
    """An agent that claims everything, and answers whatever is asked of it with the same."""
    path = place.parent / "liar.py"
    path.write_text(LIES % (answers, refuses))
    return AgentSpec(name="liar", command=(sys.executable, "-S", "-E", str(path)))


async def test_an_agent_that_claims_everything_and_fails_at_each_has_an_empty_card(place: Path) -> None:
    refused = ("session/list", "session/fork", "session/load", "session/resume", "session/set_mode", "session/prompt")
    report = await probed(liar(place, answers="{}", refuses=refused), place)
    assert {one.state for one in report.rows if one.step not in ("initialize", "new", "auth")} == {"no", "untried"}
    assert seen(report) == []
    assert "sessionControl.cancel" not in report.said


async def test_an_agent_that_answers_everything_with_nothing_is_not_believed(place: Path) -> None:
    report = await probed(liar(place, answers="{'stopReason': 'end_turn', 'sessions': []}"), place)
    assert row(report, "prompt").text == "it said nothing"
    assert row(report, "list").state == "no"
    assert row(report, "fork").state == "no"
    assert "did not tell what it was asked before" in row(report, "load").text
    assert "also one that never was" in row(report, "resume").text
    assert seen(report) == []
    assert "multimodal" in report.said
    assert "sessionControl.resume" in report.said  # nobody could find out


async def test_what_an_agent_says_in_place_of_an_answer_is_no_answer(place: Path) -> None:
    report = await probed(script_agent(place), place, programs(say="agent.say('Please run /login')"))
    assert row(report, "prompt").state == "no"
    assert "Please run /login" in row(report, "prompt").text


async def test_an_agent_that_repeats_the_prompt_has_not_read_the_file(place: Path) -> None:
    report = await probed(script_agent(place), place, programs(read=f"agent.say('I cannot read {NOTE} {WORD}')"))
    assert row(report, "fs").state == "untried"
    report = await probed(script_agent(place), place, programs(read=f"agent.say(open({NOTE!r}).read())"))
    assert row(report, "fs").state == "none"
    elsewhere = "agent.request('fs/read_text_file', path='/etc/hostname')"
    report = await probed(script_agent(place), place, programs(read=elsewhere))
    assert row(report, "fs").state == "untried"
    assert "/etc/hostname" in row(report, "fs").text


ASK = "answer = agent.permission('w', title='Write', kind='edit', rawInput={'file_path': %r})\n"
WRITE = "open(%r, 'w').write('x')\n"


async def test_a_file_that_is_written_although_that_was_rejected_is_a_failure_with_evidence(place: Path) -> None:
    path = str(place / FILE)
    report = await probed(script_agent(place), place, programs(write=ASK % path + WRITE % path))
    found = row(report, "permission")
    assert (found.state, found.text) == ("no", "it asked, was rejected, and wrote the file all the same")
    assert "refused 'Write'" in found.seen
    assert not [flag for flag in seen(report) if flag.startswith("approval")]


async def test_a_file_that_is_written_when_nobody_looks_is_found_at_the_end(place: Path) -> None:
    path = str(place / FILE)
    report = await probed(script_agent(place), place, programs(write=ASK % path, run=WRITE % path))
    assert row(report, "permission").state == "no"
    assert "but later it wrote" in row(report, "permission").text
    (place / FILE).unlink()
    report = await probed(script_agent(place), place, programs(write=ASK % path, run=WRITE % str(place / NOTE)))
    assert f"but it changed {NOTE}" in row(report, "permission").text


async def test_an_agent_that_turns_to_the_client_after_a_no_is_a_failure(place: Path) -> None:
    path = str(place / FILE)
    again = f"agent.request('fs/write_text_file', path={path!r}, content='x')"
    report = await probed(script_agent(place), place, programs(write=ASK % path + again))
    assert row(report, "permission").state == "no"
    assert "was rejected, and would have written through the client" in row(report, "permission").text


@pytest.mark.parametrize("allows", [False, True])
async def test_what_is_outside_of_the_directory_is_never_granted(place: Path, allows: bool) -> None:
    outside = str(place.parent / FILE)
    say = "agent.say(json.dumps(answer))"
    report = await probed(script_agent(place), place, programs(write=ASK % outside + say), allows=allows)
    found = row(report, "permission")
    assert found.state == "no"
    assert "outside of the directory it works in" in found.text
    assert '"no"' in found.seen  # the option that was chosen
    write = f"answer = agent.request('fs/write_text_file', path={outside!r}, content='x')"
    report = await probed(script_agent(place), place, programs(write=write), allows=allows)
    assert row(report, "permission").state == "no"
    link = f"os.symlink({outside!r}, {FILE!r}); " + write.replace(outside, str(place / FILE))
    await probed(script_agent(place), place, programs(write=link), allows=allows)
    assert not Path(outside).exists()


async def test_only_the_one_command_is_run_and_no_terminal_outlives_the_probe(place: Path) -> None:
    evil = place.parent / "evil"
    forever = f"echo {WORD}; touch {evil}; sleep 3600; true {place.parent}"
    run = f"agent.request('terminal/create', command='sh', args=['-c', {forever!r}])"
    report = await probed(script_agent(place), place, programs(run=run), allows=True)
    assert not evil.exists()
    assert "which was refused" in row(report, "terminal").text
    other = "agent.request('terminal/create', command='sleep', args=['3600'])"
    report = await probed(script_agent(place), place, programs(run=other), allows=True)
    assert row(report, "terminal").state == "no"
    assert "'sleep 3600'" in row(report, "terminal").text
    told = f"agent.request('terminal/create', command='sh', args=['-c', {COMMAND!r}])"
    report = await probed(script_agent(place), place, programs(run=told), allows=True)
    assert (row(report, "terminal").state, row(report, "terminal").text) == (
        "yes",
        "it ran the command in the client's terminal",
    )


async def test_a_tool_call_that_was_never_done_is_no_sign_that_a_program_ran(place: Path) -> None:
    report = await probed(script_agent(place), place, programs(run="agent.tool('r', kind='execute')"))
    assert row(report, "terminal").state == "untried"
    other = "agent.tool('r', kind='think', status='completed')"
    report = await probed(script_agent(place), place, programs(run=other))
    assert row(report, "terminal").state == "untried"
    ran = "agent.tool('r', kind='execute'); agent.update('tool_call_update', toolCallId='r', status='completed')"
    report = await probed(script_agent(place), place, programs(run=ran))
    assert "and asks nobody" in row(report, "terminal").text


async def test_a_turn_without_end_can_still_be_cancelled(place: Path) -> None:
    script = programs(say="time.sleep(3600)", read="open('read', 'w')")
    report = await probed(script_agent(place), place, script, timeout=SHORT)
    assert f"no answer within {SHORT:g} s" in row(report, "prompt").text
    assert row(report, "fs").text == row(report, "terminal").text == "its first prompt was not answered in time"
    assert not (place / "read").exists()
    assert row(report, "cancel").state == "yes"


async def test_an_agent_that_ignores_a_cancel_or_only_says_that_it_stopped_cannot_be_cancelled(place: Path) -> None:
    deaf = "agent.say('x'); time.sleep(3600)"
    report = await probed(script_agent(place), place, programs(long=deaf), timeout=SHORT)
    assert row(report, "cancel").state == "no"
    talk = "after = \"for _ in range(500): agent.say('x'); time.sleep(0.01)\""
    goes_on = f"agent.say('x'); agent.cancelled.wait(); result = CANCELLED; {talk}"
    report = await probed(script_agent(place), place, programs(long=goes_on))
    assert row(report, "cancel").state == "no"
    assert "went on" in row(report, "cancel").text
    assert "sessionControl.cancel" not in seen(report)


async def test_an_answer_that_was_done_when_it_was_cancelled_shows_nothing_of_cancelling(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pilothouse.app.probing.steps.SOON", 60.0)  # however slow this machine is
    quick = "agent.say('x'); agent.cancelled.wait()"
    report = await probed(script_agent(place), place, programs(long=quick))
    assert row(report, "cancel").state == "untried"
    assert "'end_turn'" in row(report, "cancel").text
    assert report.is_sound
    assert "sessionControl.cancel" not in seen(report)
    monkeypatch.setattr("pilothouse.app.probing.steps.SOON", 0.0)
    report = await probed(script_agent(place), place, programs(long=quick))
    assert row(report, "cancel").state == "no"
    unknown = f"{quick}; result = {{'stopReason': 'whatever'}}"
    monkeypatch.setattr("pilothouse.app.probing.steps.SOON", 60.0)
    report = await probed(script_agent(place), place, programs(long=unknown))
    assert row(report, "cancel").state == "no"


async def test_an_agent_that_talks_without_end_has_a_card_too(place: Path) -> None:
    words = "for _ in range(30): agent.say('x' * 1_000_000)\nagent.write(b'y' * 30_000_000 + b'\\n')"
    report = await probed(script_agent(place), place, programs(say=f"agent.say({WORD!r})\n{words}"), timeout=60.0)
    assert row(report, "prompt").state == "yes"
    assert max(len(text) for one in report.rows for text in (one.text, one.seen, one.sent)) < 1000


async def test_secrets_that_an_agent_says_are_not_on_its_card(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "quite-unguessable")
    secret = "sk-ant-REDACTED"
    words = f"key quite-unguessable and {secret} and Authorization: Bearer abcdef123456"
    code = f"os.write(2, {words.encode()!r}); agent.say({words!r}); time.sleep(0.2); os._exit(7)"
    report = await probed(script_agent(place), place, programs(say=code))
    told = repr(report)
    assert "exit code 7" in row(report, "prompt").text
    assert "key … and … and Authorization: Bearer …" in row(report, "prompt").seen
    assert not [word for word in ("quite-unguessable", secret, "abcdef123456") if word in told]


@pytest.mark.parametrize(
    "result",
    ["json.loads('[' * 900 + ']' * 900)", "'\\ud800'", "{'stopReason': ['x'] * 100_000}", "{'stopReason': '\\x1b[2J'}"],
)
async def test_answers_that_cannot_be_read_are_no_crash(place: Path, result: str) -> None:
    report = await probed(script_agent(place), place, programs(say=f"result = {result}"))
    assert row(report, "prompt").state == "no"
    assert all(letter.isprintable() for one in report.rows for letter in one.text + one.seen + one.sent)


async def test_an_agent_that_wants_a_login_only_for_a_prompt_is_said_to_want_one(place: Path) -> None:
    path = place.parent / "liar.py"
    path.write_text((LIES % ("{}", ("session/prompt",))).replace("-32603", "-32000"))
    told: list[Row] = []
    report = await probed(
        AgentSpec(name="liar", command=(sys.executable, "-S", "-E", str(path))), place, done=told.append
    )
    assert "it has to be logged in" in row(report, "auth").text
    assert [one.state for one in told if one.step == "auth"] == ["yes", "no"]


@pytest.mark.parametrize("more", ["", ", env={}"], ids=["marked", "unmarked"])
async def test_what_an_agent_leaves_behind_is_ended(place: Path, more: str) -> None:
    """The fixture looks for it: it has the path in its command."""
    command = ["sh", "-c", f"echo up > {place}/up; sleep 3600; : {place.parent}"]
    code = f"import subprocess\nsubprocess.Popen({command!r}, start_new_session=True{more})\n"
    wait = f"while not os.path.exists('{place}/up'): time.sleep(0.01)\n"
    report = await probed(script_agent(place), place, programs(run=code + wait))
    assert (place / "up").exists()
    assert row(report, "cancel").state == "yes"
