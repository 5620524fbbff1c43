"""Entries of agents in editors' settings, and code snippets for editors configured by code."""

from __future__ import annotations

import re

import pytest

from pilothouse.app.editors import entries as snippets
from pilothouse.app.editors.entries import (
    Entry,
    difference,
    is_own_name,
    make_entries,
    merged,
    name_for,
    own_servers,
    standing,
    without,
)
from pilothouse.config import runs_pilothouse

# -- entries ----------------------------------------------------------------------------------------------------------


def test_names_are_known_again() -> None:
    assert all(is_own_name(name_for(agent)) for agent in (None, "claude", "my.agent-2"))
    assert not any(map(is_own_name, ("Pilothouse 2", "My Pilothouse", "pilothouse", "Pilothouse ()")))


def test_entries_of_ours_are_known_by_what_they_run() -> None:
    assert runs_pilothouse(["/usr/bin/pilothouse", "acp", "-a", "x"])
    assert runs_pilothouse(["python", "-P", "-m", "pilothouse.cli", "acp"])
    assert not runs_pilothouse(["pilothouse", "demo-agent"])
    assert not runs_pilothouse(["python", "-P", "-m", "pilothouse.agents.claude_bridge"])
    text = '{"agent_servers": {"Mine": {"command": "pilothouse", "args": ["acp"]}, "Pilothouse (x)": 1, "A": {}}}'
    assert own_servers(text).keys() == {"Mine", "Pilothouse (x)"}


def test_entries_stand_in_order_before_the_others() -> None:
    wanted = {entry.name: entry.server(is_typed=False) for entry in make_entries(["p"], ["b", "a"], {"X": "y"})}
    text = merged('{"agent_servers": {"Z": {}}}', wanted)
    assert list(own_servers(text)) == ["Pilothouse", "Pilothouse (b)", "Pilothouse (a)"]
    assert {one.state for one in standing(text, wanted)} == {"same"}
    assert without(text, wanted) == '{"agent_servers": {"Z": {}}}'
    assert wanted["Pilothouse (b)"] == {"command": "p", "args": ["acp", "-a", "b"], "env": {"X": "y"}}


def test_a_difference_shows_no_secrets_of_others() -> None:
    wanted = {"Pilothouse": {"command": "p", "args": [], "env": {"PILOTHOUSE_HOME": "/new"}}}
    there = '{"agent_servers": {"Pilothouse": {"command": "p", "env": {"PILOTHOUSE_HOME": "/old", "KEY": "s3cret"}}}}'
    (entry,) = standing(there, wanted)
    shown = difference(entry)
    assert '-      "PILOTHOUSE_HOME": "/old"' in shown
    assert '-      "KEY": "(hidden)"' in shown
    assert "s3cret" not in shown
    (entry,) = standing('{"agent_servers": {"Pilothouse": null}}', wanted)
    assert '-  "Pilothouse": null' in difference(entry)


# -- code -------------------------------------------------------------------------------------------------------------


AWKWARD = 'a "quoted" \\ path'


@pytest.mark.parametrize("snippet", [*snippets.neovim(make_entries([AWKWARD], ["x.y"], {"PILOTHOUSE_HOME": AWKWARD}))])
def test_lua_is_balanced_and_quotes_what_needs_it(snippet: snippets.Snippet) -> None:
    assert r'"a \"quoted\" \\ path"' in snippet.text
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", snippet.text)
    assert '"' not in bare
    for left, right in ("{}", "()", "[]"):
        assert bare.count(left) == bare.count(right)
    assert bare.count("function()") == len(re.findall(r"\bend\b", bare))
    assert ("vim.fn.environ()" in bare) == (snippet.plugin != "CodeCompanion")


def test_elisp_is_balanced_and_quotes_what_needs_it() -> None:
    (snippet,) = snippets.emacs(make_entries([AWKWARD], ["x.y"], {"PILOTHOUSE_HOME": AWKWARD}))
    assert r'"a \"quoted\" \\ path"' in snippet.text
    assert r'"PILOTHOUSE_HOME=a \"quoted\" \\ path"' in snippet.text
    assert r':shell-prompt-regexp "Pilothouse (x\\.y)> "' in snippet.text
    assert ":identifier 'pilothouse-x-y" in snippet.text
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", snippet.text)
    assert bare.count("(") == bare.count(")")


def test_control_characters_are_escaped_for_lua() -> None:
    (first, *_) = snippets.neovim([Entry("Pilothouse", None, ("a\nb", "acp"))])
    assert r'"a\010b"' in first.text
