"""Commands in unusual places of an input: denials see every one of them, and no allowance covers any of them."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.model.policy import Rule, decide

DENY = Rule("deny", "commands", "rm *")
EVERYTHING = [
    Rule("allow", "commands"),
    Rule("allow", "commands", "rm *"),
    Rule("allow", "commands", "rm -rf build"),
    Rule("allow", "commands", "npm test"),
    Rule("allow", "tools", "*"),
    Rule("allow", "tools", "Bash"),
    Rule("allow", "tools", "mcp__shell__run"),
    Rule("allow", "reads"),
    Rule("allow", "writes"),
    Rule("allow", "searches"),
]
COMMAND = "rm -rf build"
NESTED: list[Any] = [
    {"arguments": {"command": COMMAND}},
    {"input": {"command": COMMAND}},
    {"params": {"cmd": COMMAND}},
    {"tool_input": {"script": COMMAND}},
    {"arguments": {"input": {"command": COMMAND}}},
    {"anything": {"command": COMMAND}},
    {"arguments": {"command": ["rm", "-rf", "build"]}},
    {"arguments": {"command": "rm", "args": ["-rf", "build"]}},
    {"command": "npm test", "commands": [COMMAND]},
    {"command": "npm test", "input": {"command": COMMAND}},
    {"commands": [COMMAND]},
    {"commands": COMMAND},
    {"commands": ["npm test", COMMAND]},
    {"commands": [{"command": COMMAND}]},
    {"commands": [["rm", "-rf", "build"]]},
    {"steps": [{"command": "npm test"}, {"command": COMMAND}]},
    {"arguments": '{"command": "rm -rf build"}'},
    {"input": '{"commands": ["rm -rf build"]}'},
    '{"command": "rm -rf build"}',
    ' {"input": {"command": "rm -rf build"}}',
    '[{"command": "rm -rf build"}]',
    [{"command": COMMAND}],
    {"command": "view", "path": "a", "input": {"command": COMMAND}},
    {"file_path": "a", "arguments": {"command": COMMAND}},
    {"pattern": "x", "arguments": {"command": COMMAND}},
    {"url": "https://example.com", "arguments": {"command": COMMAND}},
]
PLAIN: list[Any] = [
    {"command": COMMAND},
    {"command": ["rm", "-rf", "build"]},
    {"argv": ["rm", "-rf", "build"]},
    {"cmd": "rm", "args": ["-rf", "build"]},
    {"command": ["sudo", "rm", "-rf", "build"]},
    {"command": ["env", "A=1", "rm", "-rf", "build"]},
    {"command": ["bash", "-lc", "npm test; rm -rf build"]},
    {"command": ["timeout", "5", "/bin/rm", "-rf", "build"]},
    {"command": "sudo", "args": ["rm", "-rf", "build"]},
    {"command": "env", "arguments": ["A=1", "rm", "build"]},
    {"command": COMMAND, "env": {"PATH": "."}},
    {"command": ["rm", "build"], "environment": [{"name": "PATH", "value": "."}]},
    {"command": "npm test", "cmd": COMMAND},
]
NAMES = ["Bash", "shell", "mcp__shell__run", "Read", "Edit", "str_replace_based_edit_tool", "WebFetch", "Grep"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("raw", [*NESTED, *PLAIN], ids=str)
def test_a_denial_sees_a_command_in_every_place(name: str, raw: Any) -> None:
    assert decide([DENY], name, raw, "/work/app").outcome == "deny"
    assert decide([*EVERYTHING, DENY], name, raw, "/work/app").outcome == "deny"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("raw", NESTED, ids=str)
def test_no_allowance_covers_a_nested_command(name: str, raw: Any) -> None:
    decision = decide(EVERYTHING, name, raw, "/work/app")
    assert decision.outcome == "ask"
    for rule in EVERYTHING:
        assert decide([rule], name, raw, "/work/app").outcome == "ask"
    arguments = raw if isinstance(raw, dict) else {}
    assert decide([Rule("allow", "tools", name, "", arguments)], name, raw, "/work/app").outcome == "ask"


@pytest.mark.parametrize(
    "raw",
    [
        {"command": "npm test", "env": {"PATH": "."}},
        {"command": "npm test", "env_vars": {"PATH": "."}},
        {"command": "npm test", "variables": {"PATH": "."}},
        {"command": ["env", "PATH=.", "npm", "test"]},
        {"command": ["sudo", "npm", "test"]},
        {"command": ["bash", "-lc", "npm test"]},
        {"command": "sudo", "args": ["npm", "test"]},
    ],
    ids=str,
)
def test_an_allowance_does_not_cover_its_command_behind_a_wrapper_or_with_variables(raw: dict[str, Any]) -> None:
    assert decide([Rule("allow", "commands", "npm test")], "Bash", raw, "/work/app").outcome == "ask"


def test_the_reason_says_that_the_command_cannot_be_checked() -> None:
    decision = decide(EVERYTHING, "Bash", {"input": {"command": "npm test"}}, "/work/app")
    assert decision.reason.endswith("because its command is nested inside another argument.")


SETTINGS: list[dict[str, Any]] = [
    {"host": "prod"},
    {"run_as": "root"},
    {"container": "prod"},
    {"network": True},
    {"sandbox": False},
    {"disable_sandbox": 1},
    {"approval_policy": "never"},
    {"remote": {"a": "x"}},
]


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: next(iter(setting)))
def test_a_setting_that_changes_where_a_command_runs_is_asked_about(setting: dict[str, Any]) -> None:
    rules = [Rule("allow", "commands", "npm test")]
    assert decide(rules, "Bash", {"command": "npm test", "timeout": 5}, "/w").outcome == "allow"
    assert decide(rules, "Bash", {"command": "npm test", **setting}, "/w").outcome == "ask"
