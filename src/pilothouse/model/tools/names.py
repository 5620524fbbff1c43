"""The table of known tools, the way from a name to a category, and the kinds of four vocabularies.

The vocabularies are the protocol's, the Build packets', the bridge's, and the event categories. A tool has one row; a
new agent's spelling goes into that row and nowhere else. Only namespaces of an agent's own tools are stripped:
`someserver__read` is a foreign tool, and must not pass for the harmless `Read`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Literal, get_args

import msgspec

from ..records import ToolCategory


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def first(mapping: Mapping[str, Any], keys: Iterable[str]) -> Any:
    """The first value that is there and not null."""
    return next((value for key in keys if (value := mapping.get(key)) is not None), None)


AcpKind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"]


class Tool(msgspec.Struct, frozen=True, gc=False):
    """One row of the table of known tools."""

    name: str
    category: ToolCategory
    kind: AcpKind


# name, category, kind, spellings. A spelling is lower case without separators: `str_replace` and `StrReplace` are one.
_TABLE: tuple[tuple[str, ToolCategory, AcpKind, str], ...] = (
    ("Read", "file_read", "read", "read readfile view viewfile openfile readtextfile readmanyfiles readfiles fsread "
     "notebookread viewimage readimage readfilerange"),
    ("Glob", "file_read", "search", "glob globfiles findfiles findfile filesearch findpath globsearch"),
    ("Grep", "file_read", "search", "grep grepfiles grepsearch searchfilecontent searchfiles searchtext ripgrep rg"),
    ("LS", "file_read", "read", "ls list listfiles listdir listdirectory listfolder readfolder readdirectory"),
    ("Write", "file_write", "edit", "write writefile createfile create newfile savefile fswrite writetextfile "
     "writetofile filewrite"),
    ("NotebookEdit", "file_write", "edit", "notebookedit editnotebook notebookeditcell"),
    ("Delete", "file_write", "delete", "delete deletefile removefile deletefiles deletepath"),
    ("Move", "file_write", "move", "move movefile renamefile rename movepath copypath"),
    ("Edit", "file_edit", "edit", "edit editfile fileedit strreplace stringreplace replace replaceinfile "
     "replacestringinfile searchreplace searchandreplace strreplaceeditor strreplacebasededittool texteditor fsedit"),
    ("MultiEdit", "file_edit", "edit", "multiedit multieditfile editfiles multireplacestringinfile"),
    ("apply_patch", "file_edit", "edit", "applypatch patch applydiff patchfile applyedits"),
    ("Bash", "terminal", "execute", "bash shell terminal runshellcommand exec execute execcommand execbash localshell "
     "shellcommand shellexec runterminalcmd runterminalcommand runinterminal runcommand runcommands runbash command "
     "executecommand executebash executeshell powershell cmd zsh sh unifiedexec containerexec writestdin"),
    ("BashOutput", "terminal", "read", "bashoutput terminaloutput getterminaloutput readterminal shelloutput"),
    ("KillShell", "terminal", "execute", "killshell killbash killterminal stopterminal"),
    ("WebFetch", "web", "fetch", "webfetch fetch fetchurl urlfetch fetchwebpage fetchweb readurl openurl browse "
     "httpget httprequest webpagefetch"),
    ("WebSearch", "web", "fetch", "websearch searchweb googlewebsearch googlesearch bravesearch internetsearch"),
    ("Task", "agent", "think", "task agent subagent invokeagent spawnagent runagent runsubagent delegate delegatetask "
     "delegatetoagent dispatchagent newtask launchagent createsubagent"),
    ("TodoWrite", "other", "other", "todowrite writetodos writetodo todolist settodolist managetodolist updatetodos "
     "updatetodo updateplan updatetodolist settodos todo todos taskcreate taskupdate"),
    ("TodoRead", "other", "other", "todoread readtodos gettodos tasklist taskget"),
    ("AskUserQuestion", "other", "other", "askuserquestion askuser askquestion askquestions askfollowupquestion "
     "question requestuserinput"),
    ("ExitPlanMode", "other", "switch_mode", "exitplanmode planexit exitplan"),
    ("EnterPlanMode", "other", "switch_mode", "enterplanmode planenter enterplan"),
    ("SwitchMode", "other", "switch_mode", "switchmode setmode"),
    ("Think", "other", "think", "think sequentialthinking thought"),
    ("Search", "search", "search", "search"),
    ("Git", "git", "execute", "git"),
)  # fmt: skip

_TOOLS: dict[str, Tool] = {
    spelling: Tool(name, category, kind) for name, category, kind, spellings in _TABLE for spelling in spellings.split()
}
SEPARATORS = re.compile(r"[\W_]+")
_NAMESPACE = re.compile(r"(?:developer|functions|default_api|builtin|container|fs|todo)(?:__|[./:])")
_MCP_PREFIX = re.compile(r"mcp[\W_]", re.IGNORECASE)
# English words that hold the letters "git" by accident
_NOT_GIT = re.compile(r"digit|legit|cogit|agitat|fugitiv|longitud|vegit|sagitt")
NAME_LIMIT = 256


def known(name: str) -> Tool | None:
    """The table's row for a tool's name in any spelling; `developer__shell` and `functions.shell` are `shell`."""
    return _lookup(name) if len(name) <= NAME_LIMIT else None


@lru_cache(maxsize=2048)
def _lookup(name: str) -> Tool | None:
    if _MCP_PREFIX.match(name):
        return None
    namespace = _NAMESPACE.match(name)
    if namespace is not None:
        name = name[namespace.end() :]
    return _TOOLS.get(spelling(name)) if "__" not in name else None


def spelling(name: str) -> str:
    """A name without case and separators, as the table has it."""
    return SEPARATORS.sub("", name).lower()


def canonical_name(name: object) -> str:
    """One name per tool (`read_file` is `Read`); a tool nobody knows keeps its own name."""
    text = text_of(name)
    tool = known(text)
    return tool.name if tool else text


def chooses_mode(name: object) -> bool:
    """Whether a tool asks for the mode to continue in, so that its options are modes and not answers to yes or no."""
    return canonical_name(name) in {"ExitPlanMode", "SwitchMode"}


def category_of(name: str) -> ToolCategory:
    """The category of a tool by its name; only the beginning of a very long one is looked at."""
    return _category(name[:NAME_LIMIT])


@lru_cache(maxsize=2048)
def _category(name: str) -> ToolCategory:
    tool = known(name)
    if tool is not None:
        return tool.category
    if _MCP_PREFIX.match(name):
        return "mcp"
    lower = name.lower()
    if "git" in _NOT_GIT.sub("", lower):
        return "git"
    if "mcp" in lower:
        return "mcp"
    return "search" if "search" in lower else "other"


def categorize_tool(name: object) -> ToolCategory:
    """The category a tool belongs to, by its name alone, in any agent's spelling."""
    return category_of(text_of(name))


PacketKind = Literal["search", "read", "edit", "execute", "task", "other"]
BridgeKind = Literal["read", "write", "edit", "command", "other"]

ACP_KINDS: frozenset[str] = frozenset(get_args(AcpKind))
PACKET_KINDS: frozenset[str] = frozenset(get_args(PacketKind))
BRIDGE_KINDS: frozenset[str] = frozenset(get_args(BridgeKind))

_TO_ACP: dict[str, AcpKind] = {"write": "edit", "command": "execute", "task": "think"}
_ACP_TO_PACKET: dict[str, PacketKind] = {
    "read": "read", "edit": "edit", "delete": "edit", "move": "edit", "search": "search", "execute": "execute",
}  # fmt: skip
_ACP_TO_BRIDGE: dict[str, BridgeKind] = {
    "read": "read", "search": "read", "edit": "edit", "delete": "edit", "move": "edit", "execute": "command",
}  # fmt: skip
_KIND_CATEGORY: dict[str, ToolCategory] = {
    "read": "file_read", "edit": "file_edit", "delete": "file_write", "move": "file_write", "search": "search",
    "execute": "terminal", "fetch": "web",
}  # fmt: skip
_CATEGORY_KIND: dict[str, AcpKind] = {
    "file_read": "read", "file_write": "edit", "file_edit": "edit", "terminal": "execute", "search": "search",
    "web": "fetch", "agent": "think", "git": "execute",
}  # fmt: skip


def acp_kind(kind_or_name: object) -> AcpKind:
    """The protocol's own kind for a kind of any vocabulary or for a tool's name; `other` when nothing is known."""
    text = text_of(kind_or_name)
    if text in ACP_KINDS:
        return text  # type: ignore[return-value]
    if text in _TO_ACP:
        return _TO_ACP[text]
    tool = known(text)
    return tool.kind if tool else kind_of_category(category_of(text))


def packet_kind(kind_or_name: object) -> PacketKind:
    """The Build packets' kind for a kind of any vocabulary or for a tool's name."""
    text = text_of(kind_or_name)
    if text in PACKET_KINDS:
        return text  # type: ignore[return-value]
    tool = known(text)
    if tool is not None and tool.name == "Task":
        return "task"
    return _ACP_TO_PACKET.get(acp_kind(text), "other")


def bridge_kind(kind: object, name: object = None) -> BridgeKind:
    """The bridge's kind; only the tool's name tells writing a file from editing one."""
    text = text_of(kind)
    tool = known(text_of(name)) if name is not None else None
    if (tool is not None and tool.name == "Write") or text == "write":
        return "write"
    if tool is not None and text in {"", "other"}:
        return _ACP_TO_BRIDGE.get(tool.kind, "other")
    return _ACP_TO_BRIDGE.get(acp_kind(text), "other")


def category_of_kind(kind: object) -> ToolCategory:
    """The category when a kind is all that is known."""
    return _KIND_CATEGORY.get(acp_kind(kind), "other")


def kind_of_category(category: object) -> AcpKind:
    """The protocol's kind when a category is all that is known."""
    return _CATEGORY_KIND.get(text_of(category), "other")
