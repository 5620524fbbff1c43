"""The rules that "always" can store: what is offered, in which words, and that each covers exactly what it says."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilothouse.model.policy import Rule, decide, describe_rule, offer_rules
from pilothouse.model.policy.calls import MAX_ARGUMENTS
from pilothouse.model.policy.offers import MAX_COMMAND, rule_of_offer
from pilothouse.model.records import RuleOffer

WORKSPACE = "/work/app"
TRANSFER = {"to": "Ann", "amount": 5, "express": False}


def offers(name: Any, raw: Any, workspace: str | None = WORKSPACE) -> list[RuleOffer]:
    found, refusal = offer_rules(name, raw, workspace)
    assert (refusal is None) == bool(found)
    return found


def refusal(name: Any, raw: Any, workspace: str | None = WORKSPACE) -> str:
    found, why = offer_rules(name, raw, workspace)
    assert found == []
    assert why is not None
    assert why.startswith("No rule can cover this request, because ")
    assert why.endswith(".")
    assert "\n" not in why
    return why.removeprefix("No rule can cover this request, because ").removesuffix(".")


def outcome(rule: Rule, name: Any, raw: Any, workspace: str | None = WORKSPACE) -> str:
    return decide([rule], name, raw, workspace).outcome


def exact(name: Any, raw: Any, effect: Any = "allow") -> Rule:
    return rule_of_offer(offers(name, raw)[0], effect)


# Commands ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "pattern"),
    [
        ({"command": "npm test"}, "npm test"),
        ({"command": "  npm   test  "}, "npm test"),
        ({"command": "npm test", "description": "Run the tests", "timeout": 9}, "npm test"),
        ({"command": ["npm", "test"]}, "npm test"),
        ({"command": "npm", "args": ["test"]}, "npm test"),
        ({"command": "echo 'a*b'"}, "echo 'a*b'"),
        ({"command": "git commit -m 'two words'"}, "git commit -m 'two words'"),
        ({"command": "sudo make"}, "sudo make"),
        ({"command": "npm test", "cwd": "/work/app/packages"}, "npm test"),
    ],
)
def test_a_command_is_offered_as_it_is_written(raw: dict[str, Any], pattern: str) -> None:
    assert offers("Bash", raw) == [
        RuleOffer(
            offer_id="exact",
            text=f"Run exactly `{pattern}`, in any directory of the workspace",
            subject="commands",
            pattern=pattern,
        )
    ]


@pytest.mark.parametrize(
    ("command", "others"),
    [
        (
            "make test",
            ["make", "make test x", "make t", "make Test", "sudo make test", "make test; rm x", "A=1 make test"],
        ),
        ("sudo make", ["make", "sudo rm", "sudo make x", "sudo -u root make"]),
        ("echo 'a*b'", ["echo axb", "echo a*b", "echo a b"]),
        ("echo 'a?b'", ["echo axb", "echo a?b"]),
        ("npm run 'x y'", ["npm run x y", "npm run x"]),
    ],
)
def test_a_command_rule_covers_no_other_command(command: str, others: list[str]) -> None:
    rule = exact("Bash", {"command": command})
    assert outcome(rule, "Bash", {"command": command}) == "allow"
    for other in others:
        assert outcome(rule, "Bash", {"command": other}) == "ask", other


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("a && b", "it runs several commands"),
        ("a; b", "it runs several commands"),
        ("a | b", "it runs several commands"),
        ("a\nb", "it runs several commands"),
        ("echo $(id)", "`$(id)` is known only when the command runs"),
        ("echo `id`", "``id`` is known only when the command runs"),
        ('echo "$HOME"', '`"$HOME"` is known only when the command runs'),
        ("cat ~/x", "`~/x` is known only when the command runs"),
        ("echo {a,b}", "`{a,b}` is known only when the command runs"),
        ("rm *.pyc", "the shell replaces `*.pyc` with the names of files"),
        ("make > x", "it redirects input or output"),
        ("cat < x", "it redirects input or output"),
        ("X=1 make", "it sets the variable `X` for the command"),
        ("# nothing", "it runs nothing"),
        ("'", "its command cannot be read with certainty: the shell text has a syntax error"),
        (f"echo {'x' * MAX_COMMAND}", f"its command has more than {MAX_COMMAND:,} characters"),
    ],
)
def test_a_command_that_no_rule_can_name_is_refused_with_the_reason(command: str, why: str) -> None:
    assert refusal("Bash", {"command": command}) == why


def test_a_command_with_look_alike_characters_is_refused() -> None:
    assert "look like" in refusal("Bash", {"command": "ls \u2013la"})


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ({}, "it names no command"),
        ({"command": ""}, "it names no command"),
        ({"command": "make", "env": {"PATH": "."}}, "it sets environment variables"),
        ({"command": "make", "variables": {"PATH": "."}}, "it sets environment variables"),
        ({"command": "make", "shell": "/tmp/x"}, "its `shell` may change how the command runs"),
        ({"command": "make", "cwd": "/tmp"}, "it starts outside the workspace"),
        ({"command": "make", "commands": ["make"]}, "its command is nested inside another argument"),
        ({"commands": ["make"]}, "its command is nested inside another argument"),
        ({"input": {"command": "make"}}, "its command is nested inside another argument"),
    ],
)
def test_a_command_with_more_around_it_is_refused_with_the_reason(raw: dict[str, Any], why: str) -> None:
    assert refusal("Bash", raw) == why


OTHERS: list[tuple[str, dict[str, Any]]] = [
    ("mcp__production__exec", {"command": "rm -rf build", "target": "staging"}),
    ("mcp__staging__exec", {"command": "rm -rf build", "target": "production"}),
    ("mcp__staging__exec", {"command": "rm -rf build", "target": "staging", "then": ["reboot"]}),
    ("mcp__staging__exec", {"command": "rm -rf build"}),
    ("mcp__staging__exec", {"command": "rm -rf build", "target": "staging", "node": "b"}),
    ("Bash", {"command": "rm -rf build"}),
]


def test_a_command_of_a_tool_that_is_not_a_shell_is_offered_only_with_all_of_its_arguments() -> None:
    raw = {"command": "rm -rf build", "target": "staging"}
    (offer,) = offers("mcp__staging__exec", raw)
    assert (offer.subject, offer.arguments) == ("tools", raw)
    assert offer.text == "Call `mcp__staging__exec` with exactly these arguments"
    rule = rule_of_offer(offer, "allow")
    assert outcome(rule, "mcp__staging__exec", raw) == "allow"
    for name, other in OTHERS:
        assert outcome(rule, name, other) == "ask"


def test_a_stored_rule_for_a_command_covers_only_shells() -> None:
    rule = exact("Bash", {"command": "rm -rf build"})
    assert outcome(rule, "shell", {"command": "rm -rf build"}) == "allow"
    for name in ("mcp__production__exec", "remote_exec", "Read"):
        assert outcome(rule, name, {"command": "rm -rf build"}) == "ask"


# Files ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "raw", "subject", "pattern", "text"),
    [
        (
            "Write",
            {"file_path": "docs/a.md", "content": "x"},
            "writes",
            "docs/a.md",
            "Write `docs/a.md`, with any content",
        ),
        ("Write", {"file_path": "/work/app/docs/a.md"}, "writes", "docs/a.md", "Write `docs/a.md`, with any content"),
        ("Edit", {"file_path": "src/../docs/a.md"}, "writes", "docs/a.md", "Write `docs/a.md`, with any content"),
        ("Write", {"file_path": "a.md"}, "writes", "./a.md", "Write `a.md`, with any content"),
        ("Write", {"file_path": "docs/[a].md"}, "writes", "docs/[[]a].md", "Write `docs/[a].md`, with any content"),
        ("Write", {"file_path": "docs/*.md"}, "writes", "docs/[*].md", "Write `docs/*.md`, with any content"),
        ("Write", {"file_path": "docs/**"}, "writes", "docs/[*][*]", "Write `docs/**`, with any content"),
        ("Write", {"file_path": "!a/b"}, "writes", "./!a/b", "Write `!a/b`, with any content"),
        ("Read", {"file_path": "docs/a.md", "offset": 3}, "reads", "docs/a.md", "Read `docs/a.md`"),
        ("LS", {"path": "src/"}, "reads", "./src", "Read `src`"),
        ("str_replace_based_edit_tool", {"command": "view", "path": "a/b"}, "reads", "a/b", "Read `a/b`"),
        (
            "apply_patch",
            {"patchText": "*** Begin Patch\n*** Update File: src/a.ts\n*** End Patch"},
            "writes",
            "src/a.ts",
            "Write `src/a.ts`, with any content",
        ),
    ],
)
def test_a_file_is_offered_by_its_path(name: str, raw: dict[str, Any], subject: str, pattern: str, text: str) -> None:
    assert offers(name, raw) == [RuleOffer(offer_id="exact", text=text, subject=subject, pattern=pattern)]


@pytest.mark.parametrize(
    ("path", "others"),
    [
        ("docs/a.md", ["docs/b.md", "docs/a.mdx", "docs/a.md/x", "a.md", "/docs/a.md", "x/docs/a.md", "DOCS/a.md"]),
        ("a.md", ["docs/a.md", "A.md", "../a.md", "/a.md"]),
        ("app/[id].txt", ["app/i.txt", "app/d.txt", "app/id.txt"]),
        ("a*.txt", ["ab.txt", "a.txt"]),
        ("src", ["src/a.ts", "srcs"]),
        ("docs/**", ["docs/a", "docs/a/b"]),
    ],
)
def test_a_file_rule_covers_no_other_file(path: str, others: list[str]) -> None:
    rule = exact("Write", {"file_path": path, "content": "x"})
    assert outcome(rule, "Write", {"file_path": path, "content": "y"}) == "allow"
    assert outcome(rule, "Read", {"file_path": path}) == "ask"
    for other in others:
        assert outcome(rule, "Write", {"file_path": other}) == "ask", other


def test_a_denial_of_a_file_at_the_top_leaves_files_of_that_name_below_alone() -> None:
    rule = exact("Write", {"file_path": "a.md"}, "deny")
    assert outcome(rule, "Write", {"file_path": "/work/app/a.md"}) == "deny"
    assert outcome(rule, "Write", {"file_path": "docs/a.md"}) == "ask"


@pytest.mark.parametrize(
    ("name", "raw", "why"),
    [
        ("Write", {"file_path": "/etc/hosts"}, "`/etc/hosts` is outside the workspace"),
        ("Read", {"file_path": "../x"}, "`../x` is outside the workspace"),
        ("Read", {"file_path": "~/x"}, "`~/x` is outside the workspace"),
        ("Write", {"file_path": "a\nb"}, "`a b` is outside the workspace"),
        ("MultiEdit", {"edits": [{"file_path": "a"}, {"file_path": "b"}]}, "it names several files"),
        ("Read", {"paths": ["a", "b"]}, "it names several files"),
        ("Write", {"file_path": "a", "output_path": "b"}, "it names several files"),
        ("Write", {"file_path": "\ud800"}, "it has characters that cannot be stored"),
        ("Write", {"file_path": "{a,b}"}, "the name of its file has braces, which a pattern reads as a choice"),
        ("Read", {"file_path": "a", "content": "x"}, "it carries something to write"),
        ("apply_patch", {"input": "*** Begin Patch\n*** Delete File: a\n*** End Patch"}, "it deletes a file"),
    ],
)
def test_a_file_that_no_rule_can_name_is_refused_with_the_reason(name: str, raw: dict[str, Any], why: str) -> None:
    assert refusal(name, raw) == why


def test_the_workspace_itself_is_offered_as_a_call() -> None:
    (offer,) = offers("LS", {"path": "/work/app"})
    assert (offer.text, offer.arguments) == ("Call `LS` with exactly these arguments", {"path": "/work/app"})


# Web pages -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://example.com", "https://example.com"),
        ("https://example.com/a/b?c=d#e", "https://example.com"),
        ("HTTPS://Example.COM:443/", "https://example.com"),
        ("http://localhost:8080/x", "http://localhost:8080"),
        ("http://127.0.0.1:80", "http://127.0.0.1"),
        ("http://[::1]:3000/", "http://[::1]:3000"),
        ("https://example.com/@ann", "https://example.com"),
    ],
)
@pytest.mark.parametrize("name", ["WebFetch", "web_fetch", "fetch_url"])
def test_a_page_is_offered_by_its_origin(name: str, url: str, origin: str) -> None:
    assert offers(name, {"url": url, "prompt": "What is new?"}) == [
        RuleOffer(offer_id="exact", text=f"Fetch pages of {origin}", subject="web", pattern=origin)
    ]


@pytest.mark.parametrize(
    "raw",
    [
        {"url": "https://example.com@evil.example/"},
        {"url": "https://example.com", "method": "POST"},
        {"url": "https://example.com", "headers": {"Cookie": "x"}},
        {"prompt": "Summarise https://example.com"},
        {"url": ["https://example.com"]},
    ],
)
def test_a_fetch_with_more_than_a_plain_address_is_offered_with_its_arguments(raw: dict[str, Any]) -> None:
    narrow, wide = offers("WebFetch", raw)
    assert (narrow.text, narrow.arguments) == ("Call `WebFetch` with exactly these arguments", raw)
    assert (wide.text, wide.arguments) == ("Call `WebFetch` with any arguments", None)
    assert outcome(rule_of_offer(narrow, "allow"), "WebFetch", {**raw, "prompt": "x"}) == "ask"


def test_a_fetch_of_two_addresses_is_offered_only_exactly() -> None:
    (offer,) = offers("WebFetch", {"url": "https://example.com", "uri": "https://example.com"})
    assert offer.text == "Call `WebFetch` with exactly these arguments"


# Other tools ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("mcp__bank__transfer", TRANSFER),
        ("Task", {"description": "x", "prompt": "Find it", "subagent_type": "general"}),
        ("WebSearch", {"query": "x"}),
        ("Grep", {"pattern": "x", "path": "src"}),
        ("Glob", {"pattern": "**/*.py"}),
        ("Delete", {"path": "src/a.ts"}),
        ("shout (echo MCP Server)", {"text": "hi"}),
    ],
)
def test_another_tool_is_offered_with_these_arguments_first_and_then_with_any(name: str, raw: dict[str, Any]) -> None:
    assert offers(name, raw) == [
        RuleOffer(
            offer_id="exact",
            text=f"Call `{name}` with exactly these arguments",
            subject="tools",
            pattern=name,
            arguments=raw,
        ),
        RuleOffer(offer_id="any_arguments", text=f"Call `{name}` with any arguments", subject="tools", pattern=name),
    ]


def test_a_call_without_arguments_says_so() -> None:
    for raw in ({}, None):
        narrow, wide = offers("mcp__bank__balance", raw)
        assert (narrow.text, narrow.arguments) == ("Call `mcp__bank__balance` when it shows no arguments", {})
        assert wide.offer_id == "any_arguments"
        rule = rule_of_offer(narrow, "allow")
        assert outcome(rule, "mcp__bank__balance", {}) == "allow"
        assert outcome(rule, "mcp__bank__balance", {"account": 1}) == "ask"


@pytest.mark.parametrize(
    "other",
    [
        {**TRANSFER, "to": "Bob"},
        {**TRANSFER, "amount": 50},
        {**TRANSFER, "amount": 5.0},
        {**TRANSFER, "amount": "5"},
        {**TRANSFER, "express": 0},
        {**TRANSFER, "express": None},
        {**TRANSFER, "express": True},
        {**TRANSFER, "to": "ann"},
        {**TRANSFER, "to": "Ann "},
        {**TRANSFER, "to": "\u0410nn"},
        {**TRANSFER, "to": "Ann\u200b"},
        {**TRANSFER, "note": ""},
        {**TRANSFER, "note": None},
        {"to": "Ann", "amount": 5},
        {"to": ["Ann"], "amount": 5, "express": False},
        {"To": "Ann", "amount": 5, "express": False},
        {"arguments": TRANSFER},
        {},
        None,
        [TRANSFER],
        "x",
    ],
)
def test_exact_arguments_cover_no_other_call(other: Any) -> None:
    name = "mcp__bank__transfer"
    for effect in ("allow", "deny"):
        rule = exact(name, TRANSFER, effect)
        assert outcome(rule, name, TRANSFER) == effect
        assert outcome(rule, name, other) == "ask"


def test_the_order_of_arguments_does_not_count() -> None:
    turned = dict(reversed(TRANSFER.items()))
    assert list(turned) != list(TRANSFER)
    assert outcome(exact("mcp__bank__transfer", TRANSFER), "mcp__bank__transfer", turned) == "allow"


@pytest.mark.parametrize(
    "name", ["mcp__bank__refund", "MCP__Bank__Transfer", "mcp__bank__transfer2", "bank_transfer", ""]
)
def test_exact_arguments_cover_no_other_tool(name: str) -> None:
    assert outcome(exact("mcp__bank__transfer", TRANSFER), name, TRANSFER) == "ask"


def test_a_denial_of_exact_arguments_sees_other_spellings_of_the_tool() -> None:
    rule = exact("mcp__bank__transfer", TRANSFER, "deny")
    assert outcome(rule, "MCP__Bank__Transfer", TRANSFER) == "deny"
    assert decide([rule], "mcp__bank__transfer", TRANSFER, WORKSPACE).reason == (
        "Denied: `mcp__bank__transfer` matches the rule `mcp__bank__transfer` with exactly these arguments."
    )


def test_any_arguments_cover_any_arguments_of_this_tool_only() -> None:
    _, wide = offers("mcp__bank__transfer", TRANSFER)
    rule = rule_of_offer(wide, "allow")
    assert outcome(rule, "mcp__bank__transfer", {"to": "Bob"}) == "allow"
    assert outcome(rule, "mcp__bank__transfers", {"to": "Bob"}) == "ask"


def test_a_name_that_a_pattern_would_read_as_a_wildcard_is_offered_only_exactly() -> None:
    (offer,) = offers("Delete all *", {"really": True})
    rule = rule_of_offer(offer, "allow")
    assert outcome(rule, "Delete all *", {"really": True}) == "allow"
    assert outcome(rule, "Delete all x", {"really": True}) == "ask"


@pytest.mark.parametrize(
    ("name", "raw", "why"),
    [
        ("", {}, "its tool has no name"),
        (None, {}, "its tool has no name"),
        ("mcp__b\u0430nk", {}, "the name of its tool has unusual characters"),
        ("mcp__bank\n", {}, "the name of its tool has unusual characters"),
        ("AskUserQuestion", {"questions": [{"question": "?"}]}, "it asks you a question"),
        ("mcp__x", {"n": float("nan")}, "its arguments cannot be compared with those of other requests"),
        ("mcp__x", {"n": "\ud800"}, "its arguments cannot be compared with those of other requests"),
        ("mcp__x", [1], "its arguments cannot be compared with those of other requests"),
        ("mcp__x", {"n": "x" * MAX_ARGUMENTS}, f"its arguments have more than {MAX_ARGUMENTS:,} characters"),
        ("mcp__x", {"path": "/etc/passwd"}, "the path is outside the workspace"),
        ("Delete", {"path": "/etc/passwd"}, "the path is outside the workspace"),
        ("Delete", {"path": ".env"}, "`.env` may hold credentials"),
        ("mcp__x", {"arguments": {"command": "rm x"}}, "its command is nested inside another argument"),
        ("mcp__x", {"cmd": 7}, "it carries something like a command"),
    ],
)
def test_a_call_that_no_rule_can_name_is_refused_with_the_reason(name: Any, raw: Any, why: str) -> None:
    assert refusal(name, raw) == why


def test_an_address_that_only_sounds_like_a_path_does_not_prevent_exact_arguments() -> None:
    (narrow,) = offers("mcp__auth__login", {"redirect_url": "https://example.com"})
    assert narrow.offer_id == "exact"


def test_input_that_is_too_deep_is_refused() -> None:
    deep: Any = {}
    for _ in range(100):
        deep = {"x": deep}
    assert refusal("mcp__x", deep) == "its input is too deep to be read"


# Words of stored rules -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ({"subject": "commands", "pattern": "npm test"}, "Run exactly `npm test`, in any directory of the workspace"),
        ({"subject": "commands", "pattern": "npm *"}, "Run commands that match `npm *`"),
        ({"subject": "commands", "pattern": "'"}, "Run commands that match `'`"),
        ({"subject": "commands", "pattern": None}, "Run any command"),
        ({"subject": "writes", "pattern": "./a[*].md"}, "Write `a*.md`, with any content"),
        ({"subject": "reads", "pattern": "/w/a.md"}, "Read `/w/a.md`"),
        ({"subject": "web", "pattern": "https://example.com"}, "Fetch pages of https://example.com"),
        ({"subject": "tools", "pattern": "mcp__x"}, "Call `mcp__x` with any arguments"),
        (
            {"subject": "tools", "pattern": "mcp__x", "arguments": {"a": 1}},
            "Call `mcp__x` with exactly these arguments",
        ),
        ({"subject": "tools", "pattern": "mcp__x", "arguments": {}}, "Call `mcp__x` when it shows no arguments"),
        ({"subject": "tools", "pattern": "mcp__x", "text": "As shown"}, "As shown"),
        ({"subject": "later", "pattern": "x"}, "Unknown rule `x`"),
        ({}, "Unknown rule"),
    ],
)
def test_describe_stored_rule(rule: dict[str, Any], text: str) -> None:
    assert describe_rule(rule) == text


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("Bash", {"command": "npm test"}),
        ("Write", {"file_path": "docs/[a].md"}),
        ("Read", {"file_path": "a.md"}),
        ("WebFetch", {"url": "https://example.com"}),
        ("mcp__bank__transfer", TRANSFER),
        ("mcp__bank__balance", {}),
    ],
)
def test_stored_rule_keeps_the_text_of_its_offer(name: str, raw: dict[str, Any]) -> None:
    for offer in offers(name, raw):
        assert describe_rule({**msgspec.to_builtins(offer), "text": None}) == offer.text


# Properties ----------------------------------------------------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
keys = st.sampled_from(["command", "cmd", "commands", "file_path", "path", "url", "uri", "prompt", "cwd", "input", "x"])
texts = st.sampled_from(
    ["ls", "a/b", "a.md", "../x", "https://example.com/a", "https://a@b.example", "a && b", "x y", ""]
)
inputs = st.one_of(json_values, st.dictionaries(keys, st.one_of(json_values, texts), max_size=4))
names = st.one_of(
    json_values,
    st.sampled_from(
        ["Bash", "Read", "Write", "Edit", "LS", "Grep", "WebFetch", "WebSearch", "Task", "mcp__a__b", "a*"]
    ),
)
thorough = settings(max_examples=800, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@thorough
@given(names, inputs, st.sampled_from([None, WORKSPACE, "", "/", "C:\\x"]))
def test_an_offered_rule_answers_the_same_request_again(name: Any, raw: Any, workspace: str | None) -> None:
    found, why = offer_rules(name, raw, workspace)
    assert (why is None) == bool(found)
    assert [offer.offer_id for offer in found] in ([], ["exact"], ["exact", "any_arguments"])
    for offer in found:
        stored = msgspec.json.decode(msgspec.json.encode(offer), type=RuleOffer)
        for effect in ("allow", "deny"):
            assert outcome(rule_of_offer(stored, effect), name, raw, workspace) == effect


@thorough
@given(inputs, inputs)
def test_an_exact_rule_of_a_tool_covers_only_equal_json(one: Any, other: Any) -> None:
    found, _ = offer_rules("mcp__a__b", one, WORKSPACE)
    if found and found[0].subject == "tools" and other is not None:
        same = msgspec.json.encode(one or {}, order="sorted") == _encoded(other)
        assert (outcome(rule_of_offer(found[0], "allow"), "mcp__a__b", other) == "allow") <= same


def _encoded(value: Any) -> bytes | None:
    try:
        return msgspec.json.encode(value, order="sorted")
    except UnicodeEncodeError:
        return None
