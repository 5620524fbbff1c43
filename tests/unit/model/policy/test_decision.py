"""Policies: what they may say, what they decide about tools and paths, and what must hold for every command.

The table of single commands is in `test_decision_table.py`.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from pilothouse.acp.errors import ValidationError
from pilothouse.model.policy import (
    AutoApprove,
    Decision,
    DenyRules,
    Policy,
    Rule,
    compile_policy,
    decide,
    parse_policy,
)
from pilothouse.model.policy.sharp import SHARP, sharp_part
from pilothouse.model.shell import parse

WORKSPACE = "/work/app"
EXAMPLE = {
    "autoApprove": {"reads": True, "writes": ["src/**/*.ts"], "commands": ["npm test"], "searches": True},
}


def outcome(policy: Any, name: Any, input: Any = None, workspace: str | None = WORKSPACE) -> str:
    return decide(policy, name, input, workspace).outcome


def run(policy: Any, command: str) -> str:
    return outcome(policy, "Bash", {"command": command})


def allowing(**members: Any) -> dict[str, Any]:
    return {"autoApprove": members}


# What a policy may say -----------------------------------------------------------------------------------------------


def test_the_documented_policy_is_read_into_typed_values() -> None:
    assert parse_policy(EXAMPLE) == Policy(
        auto_approve=AutoApprove(reads=True, writes=("src/**/*.ts",), commands=("npm test",), searches=True)
    )


def test_a_policy_goes_back_to_the_same_json() -> None:
    policy = parse_policy({**EXAMPLE, "deny": {"commands": ["rm *"], "tools": ["mcp__*"]}})
    assert msgspec.to_builtins(policy) == {
        "autoApprove": {"reads": True, "writes": ("src/**/*.ts",), "commands": ("npm test",), "searches": True},
        "deny": {"commands": ("rm *",), "tools": ("mcp__*",)},
    }
    assert parse_policy(msgspec.json.decode(msgspec.json.encode(policy))) == policy


@pytest.mark.parametrize("empty", [None, {}, {"autoApprove": {}}, {"autoApprove": None, "deny": None}])
def test_the_empty_policy_asks_about_everything(empty: Any) -> None:
    assert parse_policy(empty) == Policy()
    assert outcome(empty, "Read", {"file_path": "src/a.ts"}) == "ask"
    assert run(empty, "ls") == "ask"


@pytest.mark.parametrize("none", [[], ()])
def test_an_empty_list_of_rules_is_no_rules_and_no_broken_policy(none: Any) -> None:
    decision = decide(none, "Read", {"file_path": "src/a.ts"}, WORKSPACE)
    assert decision == decide(None, "Read", {"file_path": "src/a.ts"}, WORKSPACE)
    assert (decision.outcome, decision.reason) == ("ask", "Ask: `Read src/a.ts` is not covered by a rule.")


@pytest.mark.parametrize(
    ("policy", "path"),
    [
        (["ls"], "policy"),
        ("allow", "policy"),
        ({"autoApprove": []}, "autoApprove"),
        ({"autoApprove": {"reads": "yes"}}, "autoApprove.reads"),
        ({"autoApprove": {"reads": 1}}, "autoApprove.reads"),
        ({"autoApprove": {"searches": ["x"]}}, "autoApprove.searches"),
        ({"autoApprove": {"tools": True}}, "autoApprove.tools"),
        ({"autoApprove": {"web": True}}, "autoApprove.web"),
        ({"autoApprove": {"web": ["https://a.example", "a.example"]}}, "autoApprove.web[1]"),
        ({"autoApprove": {"commands": ["ls", "pwd", 3]}}, "autoApprove.commands[2]"),
        ({"autoApprove": {"commands": [""]}}, "autoApprove.commands[0]"),
        ({"autoApprove": {"commands": ["npm test && rm x"]}}, "autoApprove.commands[0]"),
        ({"autoApprove": {"commands": ["echo $HOME"]}}, "autoApprove.commands[0]"),
        ({"autoApprove": {"commands": ["echo 'x"]}}, "autoApprove.commands[0]"),
        ({"autoApprove": {"commands": ["A=1"]}}, "autoApprove.commands[0]"),
        ({"autoApprove": {"writes": ["!src/**"]}}, "autoApprove.writes[0]"),
        ({"autoApprove": {"writes": ["{a,b}" * 9]}}, "autoApprove.writes[0]"),
        ({"autoApprove": {"write": True}}, "autoApprove.write"),
        ({"autoapprove": {}}, "autoapprove"),
        ({"deny": {"commands": 1}}, "deny.commands"),
        ({"deny": ["Bash(rm:*)"]}, "deny[0]"),
        ({"deny": [None]}, "deny[0]"),
    ],
)
def test_a_broken_policy_is_refused_with_the_member_that_is_wrong(policy: Any, path: str) -> None:
    with pytest.raises(ValidationError) as caught:
        parse_policy(policy)
    assert caught.value.path == path
    decision = decide(policy, "Read", {"file_path": "a"}, WORKSPACE)
    assert decision.outcome == "ask"
    assert path in decision.reason


def test_a_policy_built_by_hand_with_a_bad_pattern_asks() -> None:
    policy = Policy(auto_approve=AutoApprove(commands=("ls | sh",)))
    assert run(policy, "ls") == "ask"


def test_rules_come_denials_first_and_say_where_they_were_written() -> None:
    rules = compile_policy(parse_policy({**EXAMPLE, "deny": {"commands": ["rm *"]}}))
    assert [rule.label for rule in rules] == [
        "deny.commands[0]: rm *",
        "autoApprove.commands[0]: npm test",
        "autoApprove.writes[0]: src/**/*.ts",
        "autoApprove.reads",
        "autoApprove.searches",
    ]


def test_a_list_of_rules_decides_like_the_policy_they_come_from() -> None:
    rules = [*compile_policy(parse_policy(EXAMPLE)), Rule("allow", "commands", "ls *", "always[3]")]
    assert run(rules, "npm test") == "allow"
    assert decide(rules, "Bash", {"command": "ls src"}, WORKSPACE).rule == "always[3]: ls *"
    assert run([Rule("allow", "commands", "ls | sh")], "ls") == "ask"
    assert run([Rule("allow", "commands", "ls", arguments={"command": "ls"})], "ls") == "ask"


def test_a_plain_list_denies_tools_and_commands_of_that_name() -> None:
    policy = {
        "autoApprove": {"commands": True, "tools": ["*"], "searches": True},
        "deny": ["rm", "WebSearch", "git push *"],
    }
    assert run(policy, "rm x") == "deny"
    assert run(policy, "git push origin") == "deny"
    assert outcome(policy, "WebSearch", {"query": "x"}) == "deny"
    assert run(policy, "ls") == "allow"


# What is said --------------------------------------------------------------------------------------------------------


def test_a_decision_is_explained_in_one_sentence_and_names_its_rule() -> None:
    assert decide(allowing(commands=["ls", "npm test"]), "Bash", {"command": "npm test"}) == Decision(
        "allow", "autoApprove.commands[1]: npm test", "Allowed: `npm test` matches the rule `npm test`."
    )
    assert decide(EXAMPLE, "Bash", {"command": "rm -rf x"}) == Decision(
        "ask", None, "Ask: `rm -rf x` is not covered by a rule."
    )
    assert decide({"deny": {"commands": ["rm *"]}}, "Bash", {"command": "rm x"}) == Decision(
        "deny", "deny.commands[0]: rm *", "Denied: `rm x` matches the rule `rm *`."
    )
    assert decide(allowing(commands=["sort *"]), "Bash", {"command": "sort -o a b"}).reason == (
        "Ask: `sort -o a b` is not covered by a rule, because no wildcard stands for `-o`."
    )


def test_a_sentence_stays_short_and_on_one_line() -> None:
    reason = decide(EXAMPLE, "Bash", {"command": "echo\n" + "x" * 5000}).reason
    assert len(reason) < 400
    assert "\n" not in reason


# Reading, writing, searching -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "input", "expected"),
    [
        ("Read", {"file_path": "/work/app/src/index.ts"}, "allow"),
        ("read", {"filePath": "src/index.ts"}, "allow"),
        ("read_file", {"path": "./src/../README.md"}, "allow"),
        ("LS", {"path": "/work/app"}, "allow"),
        ("LS", {}, "allow"),
        ("Read", {"file_path": "/work/app2/x"}, "ask"),
        ("Read", {"file_path": "/work/app/../x"}, "ask"),
        ("Read", {"file_path": "../x"}, "ask"),
        ("Read", {"file_path": "~/x"}, "ask"),
        ("Read", {"file_path": "$HOME/x"}, "ask"),
        ("Read", {"file_path": "/etc/passwd"}, "ask"),
        ("Read", {"file_path": "src/%2e%2e/%2e%2e/x"}, "ask"),
        ("Read", {"file_path": "src\\..\\..\\x"}, "ask"),
        ("Read", {"file_path": "src/a\x00b"}, "ask"),
        ("Read", {"file_path": ".env"}, "ask"),
        ("Read", {"file_path": "config/.ENV"}, "ask"),
        ("Read", {"file_path": ".e\u200bnv"}, "ask"),
        ("Read", {"file_path": ".env::$DATA"}, "ask"),
        ("Read", {"file_path": "deploy/id_rsa"}, "ask"),
        ("Read", {"file_path": ".env.example"}, "allow"),
        ("Read", {"file_path": "src/a.ts", "other_file": "/etc/passwd"}, "ask"),
        ("Read", {"paths": ["src/a.ts", "../b"]}, "ask"),
        ("ReadManyFiles", {"include": ["**/*"]}, "ask"),
        ("Read", {}, "ask"),
        ("Read", None, "ask"),
        ("Read", {"file_path": "src/a.ts", "command": "rm x"}, "ask"),
        ("Read", {"file_path": "src/a.ts", "shell_script": "rm x"}, "ask"),
        ("Re\u0430d", {"file_path": "src/a.ts"}, "ask"),
        ("Re\u200bad", {"file_path": "src/a.ts"}, "ask"),
        ("someserver__read", {"file_path": "src/a.ts"}, "ask"),
        ("mcp__fs__read", {"path": "src/a.ts"}, "ask"),
        ("Write", {"file_path": "src/deep/er/a.ts", "content": "/etc"}, "allow"),
        ("Edit", {"file_path": "/work/app/src/a.ts", "old_string": "a", "new_string": "~"}, "allow"),
        ("write_file", {"path": "src/a.ts", "content": ""}, "allow"),
        ("Write", {"file_path": "src/a.js"}, "ask"),
        ("Write", {"file_path": "a.ts"}, "ask"),
        ("Write", {"file_path": "src/../a.ts"}, "ask"),
        ("Write", {"file_path": "/src/a.ts"}, "ask"),
        ("Write", {"file_path": "SRC/a.ts"}, "ask"),
        ("Write", {"file_path": "src/.git/hooks/a.ts"}, "ask"),
        ("Write", {"file_path": "src/cafe\u0301.ts"}, "allow"),
        ("Delete", {"path": "src/a.ts"}, "ask"),
        ("Move", {"source": "src/a.ts", "destination": "src/b.ts"}, "ask"),
        ("apply_patch", {"patchText": "*** Begin Patch\n*** Update File: src/a.ts\n*** End Patch"}, "allow"),
        ("apply_patch", {"patchText": "*** Begin Patch\n*** Update File: src/a.ts\n*** Add File: b.ts\n"}, "ask"),
        ("apply_patch", {"patchText": "*** Begin Patch\n*** Update File: src/a.ts\n*** Move to: ../b.ts\n"}, "ask"),
        ("str_replace_based_edit_tool", {"command": "view", "path": "src/a.py"}, "allow"),
        ("str_replace_based_edit_tool", {"command": "create", "path": "src/a.ts", "file_text": "x"}, "allow"),
        ("str_replace_based_edit_tool", {"command": "create", "path": "b.ts", "file_text": "x"}, "ask"),
        ("str_replace_based_edit_tool", {"command": "rm -rf src", "path": "src/a.ts"}, "ask"),
        ("str_replace_based_edit_tool", {"command": "view", "cmd": "rm x", "path": "src/a.ts"}, "ask"),
        ("Grep", {"pattern": "/etc/passwd"}, "allow"),
        ("Grep", {"pattern": "x", "path": "src", "glob": "*.ts"}, "allow"),
        ("Grep", {"pattern": "x", "path": "/etc"}, "ask"),
        ("Grep", {"pattern": "x", "glob": ".env*"}, "ask"),
        ("Grep", {"pattern": "x", "path": ".env"}, "ask"),
        ("Glob", {"pattern": "src/**/*.ts"}, "allow"),
        ("Glob", {"pattern": "/etc/*"}, "ask"),
        ("Glob", {"pattern": "../**"}, "ask"),
        ("codebase_search", {"query": "login"}, "allow"),
        ("WebSearch", {"query": "x"}, "allow"),
        ("WebFetch", {"url": "https://x.example"}, "ask"),
        ("Task", {"prompt": "x"}, "ask"),
        ("research_and_delete", {}, "ask"),
        ("mcp__x__search", {}, "ask"),
        ("", {}, "ask"),
        (None, {"file_path": "src/a.ts"}, "ask"),
        (7, 7, "ask"),
    ],
)
def test_the_documented_policy_decides_about_tools(name: Any, input: Any, expected: str) -> None:
    assert outcome(EXAMPLE, name, input) == expected


def test_reads_and_searches_are_told_apart() -> None:
    assert outcome(allowing(reads=True), "Grep", {"pattern": "x"}) == "ask"
    assert outcome(allowing(searches=True), "Read", {"file_path": "a"}) == "ask"
    assert outcome(allowing(searches=True), "LS", {"path": "src"}) == "allow"


def test_without_a_workspace_reading_is_covered_unless_it_is_a_system_file_or_a_credential() -> None:
    policy = allowing(reads=True, writes=True)
    assert outcome(policy, "Read", {"file_path": "/src/index.ts"}, None) == "allow"
    assert outcome(policy, "Read", {"file_path": "src/index.ts"}, None) == "allow"
    for path in ("/etc/hosts", "/proc/self/environ", "../x", "~/x", "/home/u/.ssh/id_rsa", "/"):
        assert outcome(policy, "Read", {"file_path": path}, None) == "ask"
    assert outcome(policy, "Write", {"file_path": "src/index.ts"}, None) == "allow"
    assert outcome(policy, "Write", {"file_path": "/src/index.ts"}, None) == "ask"


def test_the_root_is_no_workspace() -> None:
    assert outcome(allowing(reads=True, writes=True), "Write", {"file_path": "/etc/hosts"}, "/") == "ask"


def test_a_windows_workspace_is_compared_by_segments_too() -> None:
    policy = allowing(writes=["src/**"])
    assert outcome(policy, "Write", {"file_path": "C:\\proj\\src\\a.ts"}, "C:\\proj") == "allow"
    assert outcome(policy, "Write", {"file_path": "src\\a.ts"}, "C:\\proj") == "allow"
    assert outcome(policy, "Write", {"file_path": "C:\\proj\\src\\..\\a.ts"}, "C:\\proj") == "ask"
    assert outcome(policy, "Write", {"file_path": "D:\\proj\\src\\a.ts"}, "C:\\proj") == "ask"


def test_what_is_outside_must_be_named_up_to_a_directory_and_a_credential_by_its_name() -> None:
    policy = allowing(writes=["**", "/data/out/**", "../shared/*.md", "/**", ".env.local", "keys/*.pem"])
    for path, expected in {
        "a/b": "allow",
        "/data/out/x/y": "allow",
        "/data/out/../x": "ask",
        "/data/outer/x": "ask",
        "/work/shared/x.md": "allow",
        "../shared/x.md": "allow",
        "/etc/passwd": "ask",
        ".env.local": "allow",
        ".env": "ask",
        "keys/a.pem": "ask",
        ".git/config": "ask",
        ".claude/settings.json": "ask",
    }.items():
        assert outcome(policy, "Write", {"file_path": path}) == expected, path


@pytest.mark.parametrize(
    ("name", "input"),
    [
        ("Bash", {"command": "npm test", "Command": "rm x"}),
        ("Bash", {"command": "npm test", "COMMAND": "rm x"}),
        ("Bash", {"command": "npm test", "commands": ["rm x"]}),
        ("Bash", {"command": "npm test", "pre_command": "rm x"}),
        ("Bash", {"command": "npm test", "setupScript": "rm x"}),
        ("Bash", {"command": "npm test", "code": "rm x"}),
        ("Bash", {"command": "npm test", "args": "; rm x"}),
        ("Bash", {"command": "npm test", "arguments": {"a": "rm x"}}),
        ("Bash", {"command": "npm test", "cwd": "node_modules/evil"}),
        ("Bash", {"command": "npm test", "cwd": ".cache/evil"}),
        ("Bash", {"command": ["bash", "-lc", "npm test; rm x"]}),
        ("Read", {"file_path": "src/a.ts", "content": "x"}),
        ("Read", {"file_path": "src/a.ts", "old_string": "a", "new_string": "b"}),
        ("Read", {"file_path": "src/a.ts", "output_path": "src/b.ts"}),
        ("Read", {"file_path": "src/a.ts", "save_to": "/etc/x"}),
        ("apply_patch", {"input": "*** Begin Patch\n*** Delete File: src/b.ts\n*** End Patch"}),
        ("MultiEdit", {"edits": [{"file_path": "src/a.ts"}, {"file_path": "b.ts"}]}),
        ("Write", {"file_path": ["src/a.ts", "/etc/b"]}),
        ("Write", {"file_path": "src/.env"}),
        ("Grep", {"pattern": "x", "glob": "{.env,x}"}),
        ("Glob", {"pattern": "{/etc,x}/*"}),
        ("Glob", {"pattern": "{../..,x}/*"}),
        ("Glob", {"pattern": "{a,b}" * 9}),
    ],
)
def test_an_input_with_more_than_it_should_have_is_asked_about(name: str, input: dict[str, Any]) -> None:
    assert outcome(EXAMPLE, name, input) == "ask"


def test_a_redirection_after_a_change_of_directory_must_be_covered_from_there() -> None:
    policy = allowing(commands=["cd *", "echo *"], writes=["src/**", "docs/*.md"])
    assert run(policy, "cd docs && echo x > src/a") == "ask"
    assert run(policy, "cd src && echo x > docs/a.md") == "allow"
    everything = allowing(commands=["cd *", "echo *"], writes=True)
    assert run(everything, "cd src && echo x > a.ts") == "allow"
    assert run(everything, "cd src && cd x && echo x > a.ts") == "ask"
    assert run(everything, "cd .git && echo x > config") == "ask"
    assert run(everything, "cd .github && echo x > workflows/a.yml") == "ask"
    assert run(everything, "echo x > .github/workflows/a.yml") == "ask"
    assert run(everything, "echo x > .env~") == "ask"


def test_what_does_nothing_needs_no_rule_of_its_own() -> None:
    for command in ("npm test || true", "npm test; exit 1", "cd src && npm test", "true", ": && npm test"):
        assert run(EXAMPLE, command) == "allow", command
    for command in (
        "true() { rm x; }; true; npm test",
        "cd() { npm test; }; cd src",
        "true > x",
        "true $(rm x)",
        "A=1 true",
        "cd .. && npm test",
        "cd node_modules/x && npm test",
        "cd .git && npm test",
        "exit $x",
        "sudo true",
    ):
        assert run(EXAMPLE, command) == "ask", command
    assert run({}, "true") == "ask"


def test_the_value_of_a_long_option_is_read_as_a_whole() -> None:
    reason = decide(allowing(commands=["sort *"]), "Bash", {"command": "sort --output=src/x y"}, WORKSPACE).reason
    assert reason.endswith("because no wildcard stands for `--output=`.")


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("src/*.ts", "src/a.ts", "allow"),
        ("src/*.ts", "src/a/b.ts", "ask"),
        ("src/**", "src/a/b.ts", "allow"),
        ("src/**", "src", "ask"),
        ("src/", "src/a/b.ts", "allow"),
        ("src/**/test/*.ts", "src/test/a.ts", "allow"),
        ("src/**/test/*.ts", "src/a/b/test/a.ts", "allow"),
        ("*.md", "README.md", "allow"),
        ("*.md", "docs/README.md", "ask"),
        ("**/*.md", "docs/README.md", "allow"),
        ("src/?.ts", "src/a.ts", "allow"),
        ("src/?.ts", "src/ab.ts", "ask"),
        ("src/[ab].ts", "src/a.ts", "allow"),
        ("src/[!ab].ts", "src/a.ts", "ask"),
        ("src/[z-a].ts", "src/b.ts", "ask"),
        ("src/*.{ts,tsx}", "src/a.tsx", "allow"),
        ("{src,docs}/**", "docs/a", "allow"),
        ("src/**/*.ts", "src/a.tsx", "ask"),
        ("src/a.ts", "src/a.tsx", "ask"),
        ("./src/*", "src/a", "allow"),
        ("/work/app/src/*", "src/a", "allow"),
        ("src/caf\u00e9.ts", "src/cafe\u0301.ts", "ask"),
        ("src/K.ts", "src/\u212a.ts", "ask"),
        ("src/a+b(1).ts", "src/a+b(1).ts", "allow"),
    ],
)
def test_path_patterns(pattern: str, path: str, expected: str) -> None:
    assert outcome(allowing(writes=[pattern]), "Write", {"file_path": path}) == expected


# Other tools ---------------------------------------------------------------------------------------------------------


def test_other_tools_are_allowed_by_name_in_any_case() -> None:
    policy = allowing(tools=["mcp__github__get_*", "WebFetch"])
    assert outcome(policy, "mcp__github__get_issue", {"number": 1}) == "allow"
    assert outcome(policy, "MCP__GitHub__Get_Issue", {}) == "allow"
    assert outcome(policy, "mcp__github__delete", {}) == "ask"
    assert outcome(policy, "webfetch", {"url": "x"}) == "allow"
    assert outcome(policy, "mcp__github__get_\u0131ssue\u200b", {}) == "ask"


def test_a_tool_pattern_never_covers_a_command_nor_by_wildcard_a_write() -> None:
    policy = allowing(tools=["*"])
    assert outcome(policy, "mcp__x__y", {}) == "allow"
    assert outcome(policy, "mcp__x__y", {"command": "rm x"}) == "ask"
    assert outcome(policy, "mcp__x__y", {"path": "/etc/passwd"}) == "ask"
    assert outcome(policy, "Bash", {"command": "ls"}) == "ask"
    assert outcome(policy, "Write", {"file_path": "a"}) == "ask"
    assert outcome(allowing(tools=["Write"]), "Write", {"file_path": "a"}) == "allow"
    assert outcome(allowing(tools=["Write"]), "Write", {"file_path": "../a"}) == "ask"
    assert outcome(allowing(tools=["Bash"]), "Bash", {"command": "ls"}) == "ask"


# Denials -------------------------------------------------------------------------------------------------------------


def test_denials_beat_allowances() -> None:
    policy = {
        "autoApprove": {"reads": True, "writes": True, "commands": True, "searches": True, "tools": ["*"]},
        "deny": {"reads": [".npmrc", "secrets"], "writes": ["*.lock"], "tools": ["mcp__bad__*", "Task"]},
    }
    assert outcome(policy, "Read", {"file_path": "deep/.npmrc"}) == "deny"
    assert outcome(policy, "Read", {"file_path": "secrets/a/b"}) == "deny"
    assert outcome(policy, "Read", {"file_path": "SECRETS/a"}) == "deny"
    assert outcome(policy, "Grep", {"pattern": "x", "path": "secrets"}) == "deny"
    assert outcome(policy, "Read", {"file_path": "src/../secrets/a"}) == "deny"
    assert outcome(policy, "Write", {"file_path": "deep/yarn.lock"}) == "deny"
    assert outcome(policy, "Read", {"file_path": "yarn.lock"}) == "allow"
    assert outcome(policy, "MCP__Bad__x", {}) == "deny"
    assert outcome(policy, "mcp__good__x", {}) == "allow"
    assert outcome(policy, "task", {}) == "deny"
    assert run(policy, "cat secrets/a") == "deny"
    assert run(policy, "ls > yarn.lock") == "deny"
    assert run(policy, "touch yarn.lock") == "ask"


def test_a_relative_denial_holds_without_a_workspace_too() -> None:
    policy = {"autoApprove": {"reads": True}, "deny": {"reads": ["secrets/**"]}}
    assert outcome(policy, "Read", {"file_path": "/w/secrets/a"}, None) == "deny"


def test_whole_subjects_can_be_denied() -> None:
    everything = {"reads": True, "writes": True, "commands": True, "searches": True}
    policy = {"autoApprove": everything, "deny": everything}
    for name, input in (
        ("Read", {"file_path": "a"}),
        ("Write", {"file_path": "a"}),
        ("Bash", {"command": "ls"}),
        ("Grep", {"pattern": "x"}),
        ("WebSearch", {"query": "x"}),
    ):
        assert outcome(policy, name, input) == "deny"


def test_denied_writes_are_denied_to_redirections() -> None:
    policy = {"autoApprove": {"commands": True, "writes": True}, "deny": {"writes": True}}
    assert run(policy, "ls > a") == "deny"
    assert run(policy, "ls > /dev/null") == "allow"
    assert run(policy, "ls") == "allow"


def test_a_deny_pattern_fits_options_in_any_order_and_place() -> None:
    policy = {"deny": {"commands": ["rm -rf", "git branch -D", "docker run --privileged"]}}
    for command in ("rm -rf x", "rm -fr x", "rm -r -f x", "rm x -rf", "git branch x -D", "git -C . branch -D x"):
        assert run(policy, command) == "deny", command
    for command in ("rm x", "git branch -d x", "docker run x"):
        assert run(policy, command) == "ask", command


def test_a_deny_pattern_does_not_fit_its_words_in_an_argument() -> None:
    policy = {"autoApprove": {"commands": ["git commit *", "echo *"]}, "deny": {"commands": ["git push", "rm"]}}
    assert run(policy, "git commit -m fix") == "allow"
    assert run(policy, "echo rm") == "allow"
    assert run(policy, "git commit -m push") == "ask", "nobody can tell an option's value from a subcommand"


# What comes with a command -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ({}, "allow"),
        ({"description": "Run the tests", "timeout": 1000, "run_in_background": False}, "allow"),
        ({"cwd": "/work/app/src"}, "allow"),
        ({"workdir": "/work/app"}, "allow"),
        ({"cwd": "/tmp/evil"}, "ask"),
        ({"workdir": ".."}, "ask"),
        ({"cwd": ["/tmp"]}, "ask"),
        ({"env": {"PATH": "."}}, "ask"),
        ({"env": {}}, "allow"),
        ({"environment": {"LD_PRELOAD": "x"}}, "ask"),
        ({"shell": "/tmp/evil"}, "ask"),
        ({"args": ["--", "x"]}, "ask"),
        ({"cmd": "rm -rf src"}, "ask"),
        ({"script": "rm -rf src"}, "ask"),
        ({"dangerouslyDisableSandbox": True}, "ask"),
        ({"stdin": "rm x"}, "ask"),
    ],
)
def test_what_comes_with_a_command_can_take_the_cover_away(extra: dict[str, Any], expected: str) -> None:
    assert outcome(EXAMPLE, "Bash", {"command": "npm test", **extra}) == expected


@pytest.mark.parametrize("name", ["Bash", "bash", "shell", "run_shell_command", "Read", "mcp__x__run", "anything"])
def test_a_denial_holds_for_the_command_of_any_tool_and_a_rule_for_that_of_a_shell(name: str) -> None:
    policy = {**EXAMPLE, "deny": {"commands": ["rm"]}}
    is_shell = name not in ("Read", "mcp__x__run", "anything")
    assert outcome(policy, name, {"command": "npm test"}) == ("allow" if is_shell else "ask")
    assert outcome(policy, name, {"command": "npm run x"}) == "ask"
    assert outcome(policy, name, {"command": "rm x"}) == "deny"


BESIDES: list[dict[str, Any]] = [
    {"async_next": ["rm", "-rf", "victim"]},
    {"timeout": "reboot"},
    {"max_wait": ["reboot"]},
    {"then": ["rm", "-rf", "victim"]},
    {"then": "reboot"},
    {"then": {"a": "rm", "b": "victim"}},
    {"thenid": "reboot"},
    {"description": ["rm", "victim"]},
    {"mode": "reboot"},
    {"node": "prod"},
    {"vm": "prod"},
    {"profile": "prod"},
    {"target": "production"},
    {"uid": 0},
    {"network": True},
    {"sandbox_permissions": "require_escalated"},
    {"shell": "/tmp/evil/bash"},
    {"shell": "evil"},
    {"cwd": "src", "workdir": "docs"},
]
USUAL: list[dict[str, Any]] = [
    {"mode": "sync", "shellId": "main", "initial_wait": 30},
    {"timeout": 120000, "run_in_background": False, "description": "Run it", "dangerouslyDisableSandbox": False},
    {"explanation": "Do it", "is_background": True},
    {"justification": "May I?", "sandbox_permissions": "use_default", "login": True, "tty": False, "shell": "/bin/zsh"},
    {"yield_time_ms": 1000, "max_output_tokens": 10, "workdir": "/work/app"},
    {"restart": True},
    {"Blocking": True, "SafeToAutoRun": True, "WaitMsBeforeAsync": 5, "Cwd": "/work/app"},
    {"requires_approval": True, "timeout": "30s"},
    {"type": "exec", "env": {}, "user": None},
]


@pytest.mark.parametrize("more", BESIDES, ids=str)
def test_no_rule_covers_a_command_with_an_unknown_member(more: dict[str, Any]) -> None:
    policy = allowing(commands=["echo *", "ls"])
    assert outcome(policy, "Bash", {"command": "ls", **more}) == "ask"
    assert outcome(policy, "Bash", {"command": "echo rm -rf victim reboot prod", **more}) == "ask"


@pytest.mark.parametrize("more", USUAL, ids=str)
def test_a_rule_covers_a_command_with_the_members_that_agents_send(more: dict[str, Any]) -> None:
    assert outcome(allowing(commands=["ls"]), "Bash", {"command": "ls", **more}) == "allow"


def test_an_argument_list_is_quoted_before_it_is_judged() -> None:
    policy = allowing(commands=["npm test", "echo *"])
    assert outcome(policy, "shell", {"command": ["npm", "test"]}) == "allow"
    assert outcome(policy, "shell", {"command": ["npm", "test; rm x"]}) == "ask"
    assert outcome(policy, "shell", {"command": ["echo", "$(rm x)"]}) == "allow"
    assert outcome(policy, "shell", {"command": ["bash", "-lc", "npm test"]}) == "ask"
    assert outcome(policy, "terminal", {"command": "npm", "args": ["test"]}) == "allow"


def test_shells_that_cannot_be_read_are_asked_about() -> None:
    assert outcome(EXAMPLE, "PowerShell", {"command": "npm test"}) == "ask"


def test_a_shell_tool_without_a_command_is_asked_about() -> None:
    assert outcome(allowing(commands=True, tools=["*"]), "Bash", {}) == "ask"
    assert outcome(allowing(commands=True), "Bash", {"command": ""}) == "ask"
    assert outcome(allowing(commands=True), "Bash", None) == "ask"


# Patterns of commands ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "command", "expected"),
    [
        ("npm run *", "npm run build", "allow"),
        ("npm run *", "npm run", "ask"),
        ("npm run *", "npm run build test", "allow"),
        ("npm run test:*", "npm run test:unit", "allow"),
        ("npm run test:*", "npm run test:unit x", "ask"),
        ("npm run test:*", "npm run test", "ask"),
        ("* test", "npm test", "allow"),
        ("foo ? x", "foo a x", "allow"),
        ("foo ? x", "foo ab x", "ask"),
        ("foo '*'", "foo '*'", "allow"),
        ("foo '*'", "foo bar", "ask"),
        ("foo \\*", "foo \\*", "allow"),
        ("foo 'a b'", "foo 'a b'", "allow"),
        ("foo 'a b'", "foo a b", "ask"),
        ("foo * --x", "foo a --x", "allow"),
        ("foo * --x", "foo a b --x", "ask"),
        ("sort -o *", "sort -o out.txt", "allow"),
        ("sort -o *", "sort -o ../out.txt", "ask"),
        ("sort -o *", "sort -o out.txt -T x", "ask"),
        ("sort --output=*", "sort --output=x", "allow"),
        ("sort --out*", "sort --output=x", "ask"),
        ("git push *", "git push origin main", "allow"),
        ("git push *", "git push -f", "ask"),
        ("git push -f *", "git push -f origin", "allow"),
        ("git -C sub *", "git -C sub status", "allow"),
        ("git -C sub *", "git -C sub push", "ask"),
        ("cat /tmp/out/*", "cat /tmp/out/a", "allow"),
        ("cat /tmp/out/*", "cat /tmp/out/../x", "ask"),
        ("cat /tmp/out/*", "cat /tmp/out/.env", "ask"),
        ("cat /*", "cat /etc/passwd", "ask"),
        ("cat /etc/hosts", "cat /etc/hosts", "allow"),
        ("cat .env", "cat .env", "allow"),
        ("cat *", "cat .env", "ask"),
        ("cat ../x", "cat ../x", "allow"),
        ('cat "~/x"', "cat ~/x", "ask"),
        ("NODE_ENV=* npm test", "NODE_ENV=test npm test", "allow"),
        ("NODE_ENV=* npm test", "npm test", "ask"),
        ("NODE_ENV=* npm test", "NODE_ENV=test PATH=. npm test", "ask"),
        ("NODE_ENV=* npm test", "NODE_ENV=$(x) npm test", "ask"),
        ("export A=b", "export A=b", "allow"),
        ("export *", "export A=b", "ask"),
        ("sudo apt install *", "sudo apt install foo", "allow"),
        ("sudo apt install *", "sudo -u x apt install foo", "ask"),
        ("sudo *", "sudo ls", "ask"),
        ("timeout *", "timeout 5 ls", "ask"),
        ("sh -c 'npm test'", "sh -c 'npm test'", "allow"),
        ("sh -c 'npm test'", "sh -c 'npm test; ls'", "ask"),
        ("find . -exec cat {} +", "find . -exec cat {} +", "allow"),
        ("find . -exec cat {} +", "find . -exec cat {} + ; find . -exec rm {} +", "ask"),
        ("find . -exec cat {} + -name *", "find . -exec cat {} + -name x -delete", "ask"),
        ("python", "echo 1 | python", "ask"),
        ("python", "python < src/a.py", "ask"),
        ("psql db", "psql db < src/a.sql", "ask"),
        ("./run.sh *", "./run.sh x", "allow"),
        ("./scripts/* x", "./scripts/a x", "allow"),
        ("./scripts/* x", "./scripts/../a x", "ask"),
        ("cat src/*", "cat src/a/../../b", "ask"),
        ("cat src/.*", "cat src/../b", "ask"),
        ("*", "ls", "allow"),
        ("*", "sudo ls", "ask"),
    ],
)
def test_command_patterns(pattern: str, command: str, expected: str) -> None:
    assert run(allowing(commands=[pattern, "echo *"]), command) == expected


def test_a_wrapper_and_its_command_may_be_named_apart() -> None:
    policy = allowing(commands=["timeout *", "npm test", "sh -c *"])
    assert run(policy, "timeout 5 npm test") == "allow"
    assert run(policy, "timeout 5 sudo npm test") == "ask"
    assert run(policy, "sh -c 'timeout 5 npm test'") == "ask", "a wrapper inside a text is named by no pattern"


def test_a_long_word_costs_no_more_than_its_length() -> None:
    policy = allowing(commands=["echo *a*a*a*a*a*a*b"], writes=["*a*a*a*a*a*b"])
    word = "a" * 20_000
    assert run(policy, f"echo {word}") == "ask"
    assert outcome(policy, "Write", {"file_path": word}) == "ask"
    assert run(allowing(commands=["sed *", "awk *"]), f"sed -n 's{word}'") == "ask"


def test_every_row_of_the_table_of_sharp_words_can_be_read() -> None:
    assert len(SHARP) > 200
    for name, entries in SHARP.items():
        assert entries.strip(), name
        words = (*name.split(" "), "x")
        sharp_part(words, len(words) - 1)
        for entry in entries.split():
            if entry.startswith("/"):
                re.compile(entry[1:])


# Properties ----------------------------------------------------------------------------------------------------------

BROAD = {
    "autoApprove": {
        "commands": ["npm test", "ls", "ls *", "echo *", "cat *", "git log *", "sort *", "cd *", "timeout *", "true"],
        "writes": ["src/**"],
    }
}
ALLOWED = ["npm test", "ls -la src", "echo hi", "cat README.md", "git log --oneline", "sort a.txt > src/b", "true"]
WORDS = """
    ls echo cat sort npm test rm -rf src src/x /etc/passwd .. ../x .env ~ x -o --output=x git log -c a=b PATH=. sudo
    timeout 5 sh -c 'ls' $X ; && || | & > >> < 2>&1 <<EOF EOF ( ) { } \\ # * *.py for do done if then fi ! true cd eval
    xargs = &> |& <( in while until case esac [ ] [[ ]] <<< $'x' function time coproc exec - -- {a,b} "$X" $(rm) `rm`
    ' " $((1))
"""
PIECES = [*WORDS.split(), "\n", "\t", "\\\n", "${x:-$(rm x)}", "$(rm x)", " "]
scripts = st.one_of(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map(" ".join),
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("".join),
    st.text(max_size=20),
    st.sampled_from(ALLOWED),
)
quick = settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


def runs_nothing(text: str) -> bool:
    """A separator without a command is an error to a shell, which runs nothing for it."""
    script = parse(text)
    return not text.strip(" \t\n\\;") or (script.trusted and not script.commands)


def is_whole(text: str) -> bool:
    """Whether a text runs something and ends by itself: `ls )` closes what another text opened."""
    script = parse(text)
    return script.trusted and bool(script.commands)


@quick
@given(st.sampled_from(ALLOWED), st.sampled_from([";", "&&", "||", "|", "&", "\n", "|&"]), scripts)
def test_what_is_joined_to_an_allowed_command_must_be_allowed_itself(command: str, operator: str, text: str) -> None:
    assert run(BROAD, command) == "allow"
    assume(is_whole(text))
    for joined in (f"{command} {operator} {text}", f"{text} {operator} {command}"):
        if run(BROAD, joined) == "allow":
            assert run(BROAD, text) == "allow", joined


@quick
@given(st.sampled_from(ALLOWED), scripts)
def test_what_is_substituted_grouped_or_wrapped_must_be_allowed_itself(command: str, text: str) -> None:
    assume(is_whole(text))
    for joined in (
        f"{command} $({text})",
        f"{command} `{text}`",
        f'{command} "$({text})"',
        f"{command} <({text})",
        f"{{ {command}; {text}\n}}",
        f"( {command}; {text}\n)",
        f"if {command}; then {text}\nfi",
        f"while {command}; do {text}\ndone",
        f"f() {{ {text}\n}}; {command}",
        f"{command} <<EOF\n$({text}\n)\nEOF",
        f"! {text}",
    ):
        if run(BROAD, joined) == "allow":
            assert run(BROAD, text) == "allow", joined


@quick
@given(scripts)
def test_a_comment_changes_nothing_and_hides_nothing(text: str) -> None:
    line = re.sub(r"[\n\r\v\f\x85\u2028\u2029]", " ", text)
    if run(BROAD, f"npm test # {text}") == "allow" and "\n" in text:
        after = text.partition("\n")[2]
        assert runs_nothing(after) or run(BROAD, after) == "allow"
    if parse(line).features.isdisjoint({"lookalike"}) and line.isascii() and line.isprintable():
        assert run(BROAD, f"npm test # {line}") == "allow"


@quick
@given(st.text(alphabet="abc/.~$*{}'\" ", min_size=1, max_size=12))
def test_a_redirection_is_allowed_only_inside_what_may_be_written(target: str) -> None:
    for operator in (">", ">>", "&>", ">|", "<>"):
        if (
            run({"autoApprove": {"commands": ["npm test"], "writes": ["a/**"]}}, f"npm test {operator} {target}")
            == "allow"
        ):
            script = parse(f"npm test {operator} {target}")
            texts = [one.target.text for one in script.commands[0].redirects if one.target]
            assert len(script.commands) == 1
            assert all(text.lstrip("./").startswith("a/") and ".." not in text.split("/")[1:1] for text in texts), texts
            assert not any(text.startswith(("/", "~", "..")) for text in texts)


@quick
@given(scripts, st.sampled_from(["rm *", "ls", "x", "*", "git log", "cat *", "npm test --x"]))
def test_a_further_denial_never_allows_more(text: str, pattern: str) -> None:
    before = run(BROAD, text)
    after = run({**BROAD, "deny": {"commands": [pattern]}}, text)
    if after == "allow":
        assert before == "allow"
    if before == "deny":
        assert after == "deny"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8) | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
member = st.one_of(json_values, st.booleans(), st.lists(st.text(min_size=1, max_size=6), max_size=3))
policies = st.one_of(
    json_values,
    st.dictionaries(
        st.sampled_from(["autoApprove", "deny", "auto_approve"]),
        st.one_of(
            json_values,
            st.dictionaries(
                st.sampled_from(["reads", "writes", "commands", "searches", "web", "tools", "x"]), member, max_size=4
            ),
        ),
        max_size=2,
    ),
)
inputs = st.one_of(
    json_values,
    st.dictionaries(
        st.sampled_from(["command", "cmd", "file_path", "path", "paths", "pattern", "cwd", "env", "edits", "content"]),
        st.one_of(json_values, scripts),
        max_size=4,
    ),
)
names = st.one_of(
    json_values, st.sampled_from(["Bash", "Read", "Write", "Edit", "Grep", "Glob", "LS", "mcp__a__b", "Task"])
)


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(policies, names, inputs, st.sampled_from([None, "/work/app", "", "relative", "C:\\x", "/", "\ud800"]))
def test_any_json_gives_a_decision(policy: Any, name: Any, input: Any, workspace: str | None) -> None:
    decision = decide(policy, name, input, workspace)
    assert decision.outcome in ("allow", "deny", "ask")
    assert (decision.rule is None) == (decision.outcome == "ask")
    problem = None
    try:
        parse_policy(policy)
    except ValidationError as error:
        problem = error
    if problem is not None:
        assert problem.path
        assert decision.outcome == "ask"


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab./\\~ *", max_size=14))
def test_no_wildcard_reaches_out_of_the_workspace(path: str) -> None:
    """Compared with an independent reading of the path: count the steps up."""
    if outcome(allowing(writes=["**"]), "Write", {"file_path": path}) != "allow":
        return
    depth = 0
    for segment in path.replace("\\", "/").split("/"):
        depth += {"..": -1, ".": 0, "": 0}.get(segment, 1)
        assert depth >= 0
    assert not path.startswith(("/", "~", "\\\\"))


def test_deny_rules_have_the_same_members_as_allowances() -> None:
    assert AutoApprove.__struct_fields__ == DenyRules.__struct_fields__
