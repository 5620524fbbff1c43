"""Settings with comments: read with places, edited in place, and put back as they were."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.app.editors.jsonc import JsoncError, Value, parse, pretty, put, table, take

ENTRY = {"type": "custom", "command": "/usr/bin/pilothouse", "args": ["acp"], "env": {"PILOTHOUSE_HOME": "/srv/ä"}}
PATH = ("agent_servers", "Pilothouse")

# -- reading ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[]",
        ' {"a": [1, -2.5e3, true, false, null, "x\\n\\u00e4"], "b": {"c": {}}} ',
        '"just a string"',
        "\ufeff{}",
    ],
)
def test_plain_json_is_read_as_json_has_it(text: str) -> None:
    assert parse(text).plain == json.loads(text.lstrip("\ufeff"))


def test_comments_and_trailing_commas_are_passed_over() -> None:
    text = '// head\n{ /* a */ "a": [1, 2,], // b\n "b": "// no comment", "c": "/* nor this */", }\n// end'
    assert parse(text).plain == {"a": [1, 2], "b": "// no comment", "c": "/* nor this */"}


@pytest.mark.parametrize("text", ["", "  \n", "// nothing yet", "/* nothing */\n"])
def test_a_file_without_a_value_has_no_settings(text: str) -> None:
    assert parse(text).plain == {}


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ('{\n  "a": 1\n  "b": 2\n}', 3, 3, "expected `,` or `}`, got '\"'"),
        ('{\n  "a": \n}', 3, 1, "expected a value, got '}'"),
        ("{a: 1}", 1, 2, "expected a key in quotes, got 'a'"),
        ('{"a" 1}', 1, 6, "expected `:`, got '1'"),
        ('{"a": "x\ny"}', 1, 7, "no end on its line"),
        ('{"a": "\\q"}', 1, 7, "an escape that JSON has not"),
        ('{"a": 01}', 1, 7, "expected a value"),
        ('{"a": 1', 1, 8, "got the end of the file"),
        ("{} {}", 1, 4, "behind the end"),
        ("{} /* x", 1, 4, "no end"),
        ("[1 2]", 1, 4, "expected `,` or `]`"),
        ("{,}", 1, 2, "expected a key"),
        ("[,]", 1, 2, "expected a value"),
        ("[" * 500 + "]" * 500, 1, 202, "too deeply"),
        ('{"a": ' + "9" * 5000 + "}", 1, 7, "too long"),
    ],
)
def test_what_is_broken_is_named_with_its_place(text: str, line: int, column: int, words: str) -> None:
    with pytest.raises(JsoncError, match=words.translate({ord(c): f"\\{c}" for c in "`{}[]?"})) as caught:
        parse(text)
    assert (caught.value.line, caught.value.column) == (line, column)


@settings(deadline=None)
@given(st.text(alphabet='{}[]",:/* \n\\tru1-e.a', max_size=40))
def test_any_text_is_read_or_refused_with_a_place(text: str) -> None:
    told = read(text)
    if isinstance(told, JsoncError):
        assert 1 <= told.line <= text.count("\n") + 1
        assert told.column >= 1
    else:
        assert 0 <= told.start <= told.end <= len(text)


def read(text: str) -> Value | JsoncError:
    try:
        return parse(text)
    except JsoncError as exc:
        return exc


# -- editing ------------------------------------------------------------------------------------------------------

SETTINGS = """// Zed settings
{
    "theme": "One Dark", // dark
    /* servers */
    "agent_servers": {
        // mine
        "Mine": {"command": "mine"},
    },
}
"""


def test_an_entry_goes_to_the_head_of_the_servers_in_the_indentation_of_the_file() -> None:
    new = put(SETTINGS, PATH, {"command": "/bin/p", "args": ["acp"]})
    added = '        "Pilothouse": {\n            "command": "/bin/p",\n            "args": ["acp"]\n        },\n'
    assert new == SETTINGS.replace('"agent_servers": {\n', '"agent_servers": {\n' + added)
    assert take(new, PATH) == SETTINGS


def test_the_servers_are_made_where_there_are_none_and_go_with_their_only_entry() -> None:
    text = '{\r\n\t"theme": "x" // no comma\r\n}'
    new = put(text, PATH, {"command": "p"})
    added = '\r\n\t"agent_servers": {\r\n\t\t"Pilothouse": {\r\n\t\t\t"command": "p"\r\n\t\t}\r\n\t},'
    assert new == "{" + added + text[1:]
    assert take(new, PATH) == text


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        '{ "a": 1 }',
        '{"agent_servers":{"x":{}}}',
        '{"default_mcp_settings": {}, "agent_servers": {}}',
        '{\n  "default_mcp_settings": {},\n  "agent_servers": {}\n}\n',
        '{ // settings\n  "a": 1\n}',
        '{ /* one */ // two\n  "a": 1}',
        '{ /* over\n lines */ "a": 1}',
        '{ /* over\n lines */\n "a": 1}',
        "{\n  // only a comment\n}",
        "{ // only a comment\n}",
        "{ /* only a comment */ }",
        "{   }",
        "{   \n}",
        '{"a": 1, "agent_servers": { // none\n}}',
        "\ufeff{}",
        '{\n"a": 1}',
    ],
)
def test_what_is_put_in_can_be_taken_out_again(text: str) -> None:
    new = put(text, PATH, ENTRY)
    assert parse(new).plain["agent_servers"]["Pilothouse"] == ENTRY
    assert take(new, PATH) == text


def test_a_file_that_is_empty_or_holds_comments_only_becomes_an_object() -> None:
    assert parse(put("", PATH, ENTRY)).plain == {"agent_servers": {"Pilothouse": ENTRY}}
    text = put("// nothing yet", PATH, ENTRY)
    assert text.startswith("// nothing yet\n{\n")
    assert take(text, PATH) == "// nothing yet\n{}\n"


def test_what_is_there_already_changes_nothing() -> None:
    text = '{"agent_servers": {"Pilothouse": {"args": ["acp"], /* mine */ "command": "p",},}}'
    assert put(text, PATH, {"command": "p", "args": ["acp"]}) == text


def test_a_value_is_replaced_where_it_stands() -> None:
    text = '{\n  "agent_servers": {\n    "A": 1, // a\n    "Pilothouse": {"command": "old"} // p\n  }\n}'
    new = put(text, PATH, {"command": "new"})
    assert new == text.replace('{"command": "old"}', '{\n      "command": "new"\n    }')


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('{"agent_servers": {"A": 1, "Pilothouse": 2}}', '{"agent_servers": {"A": 1}}'),
        ('{"agent_servers": {"A": 1, "Pilothouse": 2, "B": 3}}', '{"agent_servers": {"A": 1, "B": 3}}'),
        ('{"agent_servers": {\n "A": 1, // a\n "Pilothouse": 2 // p\n}}', '{"agent_servers": {\n "A": 1 // a // p\n}}'),
        ('{"agent_servers": {\n // c\n "Pilothouse": 2, "B": 3}}', '{"agent_servers": {\n // c\n  "B": 3}}'),
        ('{"agent_servers": {"A": 1, // c\n "Pilothouse": 2}}', '{"agent_servers": {"A": 1 // c\n }}'),
        ('{"x": 1, "agent_servers": {"Pilothouse": 2,},}', '{"x": 1, "agent_servers": {},}'),
        ('{"agent_servers": {"Pilothouse": 2, /* kept */}, "x": 1}', '{"agent_servers": {/* kept */}, "x": 1}'),
        ('{"agent_servers": {}}', '{"agent_servers": {}}'),
        ("{}", "{}"),
    ],
)
def test_an_entry_that_somebody_moved_is_taken_out_where_it_is(text: str, left: str) -> None:
    assert take(text, PATH) == left


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "the document should be an object"),
        ('{"agent_servers": []}', "`agent_servers` should be an object"),
        ('{"agent_servers": {}, "agent_servers": {}}', "`agent_servers` is there twice"),
        ('{"agent_servers": {"Pilothouse": 1, "Pilothouse": 2}}', "`Pilothouse` is there twice"),
    ],
)
def test_settings_of_another_shape_are_refused(text: str, words: str) -> None:
    for edit in (lambda: put(text, PATH, ENTRY), lambda: take(text, PATH)):
        with pytest.raises(JsoncError, match=words):
            edit()


def test_the_servers_of_a_file_are_told_empty_where_there_are_none() -> None:
    assert table('{"agent_servers": {"A": 1}}', ("agent_servers",)) == {"A": 1}
    assert table('{"a": 1}', ("agent_servers",)) == {}
    assert table("", ("agent_servers",)) == {}
    with pytest.raises(JsoncError, match="should be an object"):
        table('{"agent_servers": 1}', ("agent_servers",))


def test_pretty_json_is_json() -> None:
    assert json.loads(pretty(ENTRY)) == ENTRY
    assert pretty({}) == "{}"


# -- any settings -------------------------------------------------------------------------------------------------

BLANK = st.sampled_from(["", " ", "  ", "\t", "\n", "\n  ", "\n\n    ", "\r\n  "])
COMMENT = st.sampled_from(["", "", "// c\n", "/* c */", "/* over\nlines */", '// "}{,\n', "/* , */\n  ", "//\r\n\t"])
TRIVIA = st.builds(lambda *parts: "".join(parts), BLANK, COMMENT, BLANK)
KEYS = st.sampled_from(["a", "b", "Mine", "x y", 'q"', "\\", "ä", "//", "agent"])
SCALARS = st.one_of(st.integers(-9, 9), st.booleans(), st.none(), st.sampled_from(["", "{", "// no", "/*", ",}", "ü"]))


@st.composite
def objects(draw: st.DrawFn, depth: int = 2, servers: bool = False) -> str:
    keys = draw(st.lists(KEYS, unique=True, max_size=3))
    if servers and draw(st.booleans()):
        keys.insert(draw(st.integers(0, len(keys))), "agent_servers")
    parts: list[str] = []
    for key in keys:
        inner = objects(depth - 1) if depth else st.just("{}")
        value = draw(inner if key == "agent_servers" else st.one_of(SCALARS.map(json.dumps), inner, st.just("[1,\n2]")))
        gaps = [draw(TRIVIA) for _ in range(4)]
        parts.append(f"{gaps[0]}{json.dumps(key, ensure_ascii=False)}{gaps[1]}:{gaps[2]}{value}{gaps[3]}")
    trailing = "," if parts and draw(st.booleans()) else ""
    return "{" + ",".join(parts) + trailing + draw(TRIVIA) + "}"


@st.composite
def documents(draw: st.DrawFn) -> str:
    return draw(TRIVIA) + draw(objects(servers=True)) + draw(TRIVIA)


def is_subsequence(part: str, whole: str) -> bool:
    letters = iter(whole)
    return all(letter in letters for letter in part)


@settings(deadline=None, max_examples=400)
@given(documents(), st.lists(st.sampled_from(["Pilothouse", "Pilothouse (demo)", "Mine"]), min_size=1, unique=True))
def test_an_edit_adds_entries_and_touches_nothing_else(text: str, names: list[str]) -> None:
    before = parse(text).plain
    servers = before.get("agent_servers", {})
    names = [name for name in names if name not in servers]
    texts = [text]
    for name in names:
        texts.append(put(texts[-1], ("agent_servers", name), ENTRY))
    after = parse(texts[-1]).plain
    if names:
        assert after == {**before, "agent_servers": {**servers, **dict.fromkeys(names, ENTRY)}}
    assert is_subsequence(text, texts[-1]), "something that was there is gone"
    for name in reversed(names):
        back = take(texts.pop(), ("agent_servers", name))
        if servers or name != names[0]:
            assert back == texts[-1]
        elif "agent_servers" in before or not before:  # blanks in an empty object, or that object itself, may go
            left = parse(back).plain
            assert left in (before, {key: value for key, value in before.items() if key != "agent_servers"})
            assert [c for c in text if c not in ' \t\r\n:{},"_agentservers'] == [
                c for c in back if c not in ' \t\r\n:{},"_agentservers'
            ]
        else:
            assert back == text


@settings(deadline=None, max_examples=200)
@given(documents(), st.data())
def test_any_member_can_be_taken_out(text: str, data: st.DataObject) -> None:
    before = parse(text).plain
    if not before:
        return
    key = data.draw(st.sampled_from(sorted(before)))
    assert parse(take(text, (key,))).plain == {name: value for name, value in before.items() if name != key}
