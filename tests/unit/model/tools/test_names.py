"""Names of tools in the spellings of many agents: categories and kinds."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.model import tools
from pilothouse.model.tools import (
    acp_kind,
    bridge_kind,
    canonical_name,
    categorize_tool,
    category_of_kind,
    kind_of_category,
    packet_kind,
    tool_kind,
)

# -- categories -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("category", "names"),
    [
        ("file_read", "Read Glob Grep LS list read_file ReadFile view list_directory search_file_content"),
        ("file_write", "Write NotebookEdit create_file write_file write_to_file delete_file"),
        ("file_edit", "Edit MultiEdit apply_patch str_replace replace str_replace_based_edit_tool ApplyPatch"),
        ("terminal", "Bash bash shell terminal run_shell_command exec exec_command developer__shell BashOutput"),
        ("web", "WebSearch WebFetch web_fetch websearch google_web_search"),
        ("agent", "Task Agent subagent invoke_agent spawn-agent"),
        ("mcp", "mcp__server__tool mcp__github__create_issue McpServer some_mcp_tool mcp_git_log"),
        ("git", "GitCommit mygithelper git git_push legitgit"),
        ("search", "CodeSearch fullsearchindex codebase_search ToolSearch"),
        ("other", "RandomTool FooBar TodoWrite AskUserQuestion digit_sum is_legitimate longitude"),
    ],
)
def test_a_tool_has_the_category_of_its_name(category: str, names: str) -> None:
    assert {name: categorize_tool(name) for name in names.split()} == dict.fromkeys(names.split(), category)


def test_no_name_is_no_category() -> None:
    assert [categorize_tool(value) for value in ("", None, 7, ["Read"])] == ["other"] * 4


def test_a_foreign_tool_does_not_pass_for_one_of_the_agents_own() -> None:
    assert canonical_name("someserver__read") == "someserver__read"
    assert canonical_name("mcp__fs__read_file") == "mcp__fs__read_file"
    assert canonical_name("read__file") == "read__file"
    assert categorize_tool("someserver__read") == "other"


def test_each_spelling_belongs_to_one_tool() -> None:
    from pilothouse.model.tools import names

    spellings = [word for _, _, _, words in names._TABLE for word in words.split()]
    assert len(spellings) == len(set(spellings))
    assert all(names.spelling(word) == word for word in spellings)


# -- kinds ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "packet", "acp", "bridge"),
    [
        ("glob", "search", "search", "read"),
        ("grep", "search", "search", "read"),
        ("read", "read", "read", "read"),
        ("write", "edit", "edit", "write"),
        ("edit", "edit", "edit", "edit"),
        ("bash", "execute", "execute", "command"),
        ("task", "task", "think", "other"),
        ("todowrite", "other", "other", "other"),
        ("webfetch", "other", "fetch", "other"),
        ("websearch", "other", "fetch", "other"),
        ("apply_patch", "edit", "edit", "edit"),
        ("delete", "edit", "delete", "edit"),
        ("nobody knows", "other", "other", "other"),
    ],
)
def test_a_tool_has_a_kind_in_each_vocabulary(name: str, packet: str, acp: str, bridge: str) -> None:
    assert (tool_kind(name), packet_kind(name), acp_kind(name)) == (packet, packet, acp)
    assert bridge_kind(acp_kind(name), name) == bridge


@pytest.mark.parametrize("kind", sorted(tools.ACP_KINDS))
def test_a_protocol_kind_is_its_own(kind: str) -> None:
    assert acp_kind(kind) == kind
    assert packet_kind(kind) in tools.PACKET_KINDS
    assert bridge_kind(kind) in tools.BRIDGE_KINDS


@pytest.mark.parametrize(
    ("kind", "acp"), [("write", "edit"), ("command", "execute"), ("task", "think"), (None, "other")]
)
def test_foreign_kinds_come_back_to_the_protocol(kind: str | None, acp: str) -> None:
    assert acp_kind(kind) == acp


@pytest.mark.parametrize("kind", ["read", "edit", "search", "execute", "fetch", "other"])
def test_kind_to_category_and_back_is_the_kind(kind: str) -> None:
    assert kind_of_category(category_of_kind(kind)) == kind


@pytest.mark.parametrize(
    ("packet", "kind"),
    [
        ({"kind": "edit", "title": "a/b.tsx"}, "edit"),
        (
            {"kind": "other", "title": "Success. Updated the following files:\nM a", "rawInput": {"patchText": "x"}},
            "edit",
        ),
        ({"kind": "think", "rawInput": {"subagent_type": "Plan"}}, "task"),
        ({"kind": "other", "title": "task"}, "task"),
        ({"kind": "fetch"}, "other"),
        ({"kind": ["odd"], "rawInput": 3, "title": None}, "other"),
    ],
)
def test_a_packet_shows_its_kind(packet: dict[str, Any], kind: str) -> None:
    assert tool_kind(packet) == kind
