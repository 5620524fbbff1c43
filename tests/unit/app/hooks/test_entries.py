"""The entry in Claude Code's settings: everything else there stays as it is, to the byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.app.editors.jsonc import JsoncError, add_item, parse, take_item
from pilothouse.app.hooks.entries import EVENT, added, entry, found, runs_hook, without

ENTRY = entry(["/opt/pilothouse", "hook"])
OTHER = '{"hooks": [{"type": "command", "command": "say done"}]}'

SETTINGS = [
    "",
    "\n",
    "{}",
    "{}\n",
    '{"model": "opus"}',
    '{\n  "model": "opus",\n  "hooks": {\n    "Stop": [' + OTHER + "]\n  }\n}\n",
    '{"hooks": {"PermissionRequest": [' + OTHER + "]}}",
    '{\n\t"hooks": {\n\t\t"PermissionRequest": [\n\t\t\t' + OTHER + "\n\t\t]\n\t}\n}\n",
    '{\r\n  "hooks": {\r\n    "PermissionRequest": [\r\n      ' + OTHER + "\r\n    ]\r\n  }\r\n}\r\n",
    '{"hooks": {"PermissionRequest": [ ' + OTHER + " /* mine, and mine */ , " + OTHER + " ]}}",
    '{"hooks": {"PermissionRequest": [ // first\n' + OTHER + ",\n]}}",
    '// of me\n{"hooks": {"PermissionRequest": [\n  // one, two\n  ' + OTHER + "\n]}} // end",
]


@pytest.mark.parametrize("text", SETTINGS)
def test_an_entry_that_is_added_and_taken_out_leaves_the_same_bytes(text: str) -> None:
    new = added(text, ENTRY)
    assert [(one.command, one.timeout) for one in found(new)] == [("/opt/pilothouse hook", 86400)]
    assert added(new, ENTRY) == new
    left = without(new)
    assert left == text or (not text.strip() and left == text + "{}\n") or (text == "{}" and left == "{}")
    before = parse(text).plain
    after = parse(new).plain
    assert {key: value for key, value in after.items() if key != "hooks"} == {
        key: value for key, value in before.items() if key != "hooks"
    }


@pytest.mark.parametrize("text", SETTINGS)
def test_an_entry_of_another_installation_or_time_is_replaced(text: str) -> None:
    older = added(text, entry(["/old/python", "-P", "-m", "pilothouse.cli", "hook"], 60))
    assert added(older, ENTRY) == added(text, ENTRY)
    assert len(found(added(older, ENTRY))) == 1


def test_an_entry_that_shares_its_group_goes_alone() -> None:
    mine = {"type": "command", "command": "beep"}
    ours = {"type": "command", "command": "PILOTHOUSE_HOME=/x /usr/bin/pilothouse hook"}
    for hooks in ([mine, ours], [ours, mine], [mine, ours, mine]):
        text = json.dumps({"hooks": {"PermissionRequest": [{"matcher": "Bash", "hooks": hooks}]}})
        left = parse(without(text)).plain["hooks"]["PermissionRequest"]
        assert left == [{"matcher": "Bash", "hooks": [one for one in hooks if one is mine]}]


def test_commands_are_recognised_by_what_they_run() -> None:
    assert runs_hook("/opt/bin/pilothouse hook")
    assert runs_hook("PILOTHOUSE_HOME='/a b' '/o p t/pilothouse' hook --url http://x")
    assert runs_hook("/venv/bin/python -P -m pilothouse.cli hook")
    assert runs_hook("python3 -m pilothouse.cli hook --home /h")
    assert runs_hook("env A=1 pilothouse hook | tee log")
    for other in (
        "pilothouse acp",
        "pilothouse",
        "hook",
        "hook pilothouse",
        "my-pilothouse hook",
        "logger -t pilothouse hook",
        "say pilothouse hook",
        "pilothouse hooks install",
        "python -m pilothouse.cli serve",
        "'open",
        "",
        None,
        7,
    ):
        assert not runs_hook(other)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('{"hooks": {\n"PermissionRequest": {}}}', 2, "should be an array"),
        ('{\n"hooks": []}', 2, "`hooks` should be an object"),
        ("[1]", 1, "the document should be an object"),
        ('{\n"hooks": {},\n"hooks": {}}', 3, "is there twice"),
        ('{"hooks": {"PermissionRequest": [],\n"PermissionRequest": []}}', 2, "is there twice"),
        (
            '{"hooks": {"PermissionRequest": [{"hooks": [],\n"hooks": [1, {"command": "pilothouse hook"}]}]}}',
            2,
            "is there twice",
        ),
        ('{"hooks": {\n"PermissionRequest": null}}', 2, "should be an array"),
        ('{\n"hooks": null}', 2, "should be an object"),
        ('{"a":\n' + "[" * 5000, 2, "nested too deeply"),
        ('{\n"model": opus}', 2, "expected a value"),
    ],
)
def test_settings_that_are_not_what_they_should_be_are_refused_by_line(text: str, line: int, words: str) -> None:
    with pytest.raises(JsoncError, match=words) as caught:
        added(text, ENTRY)
    assert caught.value.line == line


def test_groups_that_nobody_understands_are_left_alone() -> None:
    text = '{"hooks": {"PermissionRequest": [7, {"hooks": 1}, {"hooks": [null, {"command": 3}]}]}}'
    assert found(text) == []
    assert without(added(text, ENTRY)) == text


VALUES: Any = st.recursive(
    st.none() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3), max_leaves=5
)


@settings(max_examples=200)
@given(
    st.lists(VALUES, max_size=4),
    st.sampled_from(["", " ", "\n  ", "\r\n\t", " /* a, b */ ", " // c, d\n "]),
    st.sampled_from(["", " ", "\n"]),
    st.booleans(),
)
def test_items_of_any_array_come_and_go(items: list[Any], before: str, after: str, trailing: bool) -> None:
    body = ("," + before).join(json.dumps(item) + after for item in items)
    text = f'{{"a": [{before}{body}{"," if trailing and items else ""}{after}]}}'
    new = add_item(text, ("a",), {"b": 1})
    assert parse(new).plain == {"a": [{"b": 1}, *items]}
    assert take_item(new, ("a", 0)) == text
    for number in range(len(items)):
        left = parse(take_item(text, ("a", number))).plain
        assert left == {"a": items[:number] + items[number + 1 :]}


def test_large_settings_are_no_trouble() -> None:
    text = json.dumps({"a": "x" * 1_000_000, "b": ['y"' * 10] * 1000, "hooks": {"Stop": [json.loads(OTHER)]}}, indent=1)
    assert without(added(text, ENTRY)) == text
    commas = '{"hooks": {"PermissionRequest": [ /*' + "," * 100_000 + "*/ " + OTHER + " ]}}"
    assert without(added(commas, ENTRY)) == commas


BLANKS = st.sampled_from(["", " ", "\n", "\r\n", "\t", "\n    ", " /* a, } ] */ ", " // c, {\n", "//\r\n", "/**/"])
GROUPS = st.sampled_from([OTHER, "7", "null", "{}", "[]", '{"matcher": "Bash", "hooks": []}', '"\\ud800é"'])


@st.composite
def documents(draw: Any) -> str:
    """Settings as people and programs write them, with or without hooks; some are not what they should be."""

    def joined(parts: list[str], ends: str) -> str:
        whole = ("," + draw(BLANKS)).join(part + draw(BLANKS) for part in parts)
        comma = "," if parts and draw(st.booleans()) else ""
        return ends[0] + draw(BLANKS) + whole + comma + draw(BLANKS) + ends[1]

    def members(inner: list[tuple[str, str]]) -> str:
        drawn = draw(st.permutations(inner)) if inner else []
        return joined([f'"{key}"{draw(BLANKS)}:{draw(BLANKS)}{value}' for key, value in drawn], "{}")

    hooks = [("Stop", joined(draw(st.lists(GROUPS, max_size=2)), "[]"))] if draw(st.booleans()) else []
    if draw(st.booleans()):
        hooks.append(("PermissionRequest", joined(draw(st.lists(GROUPS, max_size=3)), "[]")))
    settings = [(key, draw(GROUPS)) for key in draw(st.sampled_from(["", "m", "mn"]))]
    if draw(st.booleans()):
        settings.append(
            ("hooks", draw(st.sampled_from(["[]", "null"])) if draw(st.integers(0, 9)) == 0 else members(hooks))
        )
    mark = draw(st.sampled_from(["", "\ufeff"]))
    return mark + draw(BLANKS) + members(settings) + draw(BLANKS)


@settings(max_examples=300, deadline=None)
@given(documents())
def test_any_settings_take_an_entry_once_and_are_given_back(text: str) -> None:
    try:
        new = added(text, ENTRY)
    except JsoncError:
        assert "hooks" in parse(text).plain
        return
    assert [one.command for one in found(new)] == ["/opt/pilothouse hook"]
    assert added(new, ENTRY) == new
    left = without(new)
    # except a line break in an empty object, and an empty `hooks` or array in it, which the file's record restores
    hooks = parse(text).plain.get("hooks")
    assert "".join(left.split()) == "".join(text.split()) or hooks == {} or (hooks or {}).get(EVENT) == []
