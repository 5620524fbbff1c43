"""The entries that make an editor run `pilothouse acp`: as values, as a change of its settings, and as code.

An entry is found again by its name, so names must not change. Neovim's plugins and Emacs are configured by code that
the user inserts. Two of the plugins start agents with PATH and nothing else of the environment; a hub that is started
so would start agents without HOME, hence their entries pass all of it on.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ...config import runs_pilothouse
from .jsonc import pretty, put, table, take

NAME = "Pilothouse"


@dataclass(frozen=True, slots=True)
class Entry:
    """One agent of an editor: the name it is listed by, and how it is started."""

    name: str
    agent: str | None
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """A name for where only letters, digits and `-` may be."""
        return "-".join(["pilothouse", *([re.sub(r"\W+", "-", self.agent)] if self.agent else [])])

    def server(self, *, is_typed: bool) -> dict[str, Any]:
        """As a member of `agent_servers`; Zed tells kinds of them apart by `type`, JetBrains has only one."""
        about: dict[str, Any] = {"type": "custom"} if is_typed else {}
        about |= {"command": self.command[0], "args": list(self.command[1:])}
        return about | ({"env": dict(self.env)} if self.env else {})


def make_entries(program: Iterable[str], agents: Iterable[str], env: Mapping[str, str]) -> list[Entry]:
    """The entry that offers every agent, and one for each of `agents`."""
    base = (*program, "acp")
    single = [Entry(name_for(agent), agent, (*base, "-a", agent), env) for agent in dict.fromkeys(agents)]
    return [Entry(NAME, None, base, env), *single]


def name_for(agent: str | None) -> str:
    return f"{NAME} ({agent})" if agent else NAME


def is_own_name(name: str) -> bool:
    return re.fullmatch(rf"{NAME}(?: \(.+\))?", name) is not None


SERVERS = "agent_servers"
HIDDEN = "(hidden)"

State = Literal["absent", "same", "differs"]


@dataclass(frozen=True, slots=True)
class Standing:
    """How an entry stands in a file: not there, there as wanted, or there in another form."""

    name: str
    state: State
    old: Any
    new: dict[str, Any]


def standing(text: str, wanted: Mapping[str, dict[str, Any]]) -> list[Standing]:
    """How each wanted entry stands. Raises JsoncError."""
    there = table(text, (SERVERS,))
    found: list[Standing] = []
    for name, new in wanted.items():
        old = there.get(name)
        state: State = "absent" if name not in there else "same" if old == new else "differs"
        found.append(Standing(name, state, old, new))
    return found


def merged(text: str, wanted: Mapping[str, dict[str, Any]]) -> str:
    """The text with the wanted entries, in their order before the others. Raises JsoncError."""
    for name, server in reversed(list(wanted.items())):
        text = put(text, (SERVERS, name), server)
    return text


def without(text: str, names: Iterable[str]) -> str:
    """The text without these entries. Raises JsoncError."""
    for name in names:
        text = take(text, (SERVERS, name))
    return text


def own_servers(text: str) -> dict[str, Any]:
    """The entries that are ours: by their name, or because they run `pilothouse acp`. Raises JsoncError."""
    return {name: server for name, server in table(text, (SERVERS,)).items() if is_own_name(name) or _runs_us(server)}


def difference(entry: Standing) -> str:
    """What replacing an entry would change. The values of its environment are not shown, only those of ours."""
    old, new = (pretty({entry.name: _masked(value, entry.new)}).splitlines() for value in (entry.old, entry.new))
    return "\n".join(difflib.unified_diff(old, new, "there", "wanted", lineterm="", n=9))


def _runs_us(server: Any) -> bool:
    if not isinstance(server, dict) or not isinstance(server.get("args"), list):
        return False
    return runs_pilothouse([str(server.get("command")), *map(str, server["args"])])


def _masked(server: Any, ours: Mapping[str, Any]) -> Any:
    if not isinstance(server, dict) or not isinstance(server.get("env"), dict):
        return server
    known = ours.get("env", {})
    return {**server, "env": {key: value if key in known else HIDDEN for key, value in server["env"].items()}}


@dataclass(frozen=True, slots=True)
class Snippet:
    """What one plugin takes."""

    plugin: str
    language: str
    text: str


def neovim(entries: Iterable[Entry]) -> list[Snippet]:
    all_entries = list(entries)
    writers: tuple[tuple[str, Callable[[list[Entry]], str]], ...] = (
        ("CodeCompanion", _codecompanion),
        ("avante.nvim", lambda given: _providers("avante", given)),
        ("agentic.nvim", lambda given: _providers("agentic", given)),
    )
    return [Snippet(plugin, "lua", write(all_entries)) for plugin, write in writers]


def emacs(entries: Iterable[Entry]) -> list[Snippet]:
    text = "(with-eval-after-load 'agent-shell\n" + "\n".join(map(_agent_shell, entries)) + ")"
    return [Snippet("agent-shell", "elisp", text)]


# -- Lua ----------------------------------------------------------------------------------------------------------


def _codecompanion(entries: list[Entry]) -> str:
    adapters = "".join(map(_adapter, entries))
    return f'require("codecompanion").setup({{\n  adapters = {{\n    acp = {{\n{adapters}    }},\n  }},\n}})'


def _adapter(entry: Entry) -> str:
    """By extension of an adapter that comes with the plugin and needs no login; only the command is its own."""
    key = entry.key.replace("-", "_")
    env = f"          env = {_lua_table(entry.env)},\n" if entry.env else ""
    return (
        f"      [{_lua(key)}] = function()\n"
        f'        return require("codecompanion.adapters").extend("goose", {{\n'
        f"          name = {_lua(key)},\n"
        f"          formatted_name = {_lua(entry.name)},\n"
        f"          commands = {{ default = {_lua_list(entry.command)} }},\n"
        f"{env}"
        f"        }})\n"
        f"      end,\n"
    )


def _providers(plugin: str, entries: list[Entry]) -> str:
    providers = "".join(_provider(plugin, entry) for entry in entries)
    return (
        f'require("{plugin}").setup({{\n'
        f"  provider = {_lua(entries[0].key)},\n"
        f"  acp_providers = {{\n{providers}  }},\n"
        f"}})"
    )


def _provider(plugin: str, entry: Entry) -> str:
    name = f"      name = {_lua(entry.name)},\n" if plugin == "agentic" else ""
    env = f'vim.tbl_extend("force", vim.fn.environ(), {_lua_table(entry.env)})' if entry.env else "vim.fn.environ()"
    return (
        f"    [{_lua(entry.key)}] = {{\n"
        f"{name}"
        f"      command = {_lua(entry.command[0])},\n"
        f"      args = {_lua_list(entry.command[1:])},\n"
        f"      env = {env},\n"
        f"    }},\n"
    )


def _lua(text: str) -> str:
    escaped = re.sub(r'[\\"]', r"\\\g<0>", text)
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda found: f"\\{ord(found[0]):03d}", escaped) + '"'


def _lua_list(words: Iterable[str]) -> str:
    return "{ " + ", ".join(map(_lua, words)) + " }"


def _lua_table(table: Mapping[str, str]) -> str:
    return "{ " + ", ".join(f"{key} = {_lua(value)}" for key, value in table.items()) + " }"


# -- Emacs Lisp ---------------------------------------------------------------------------------------------------


def _agent_shell(entry: Entry) -> str:
    params = " ".join(map(_elisp, entry.command[1:]))
    variables = " ".join(_elisp(f"{key}={value}") for key, value in entry.env.items())
    client = [
        f":command {_elisp(entry.command[0])}",
        f":command-params '({params})",
        *([f":environment-variables '({variables})"] if variables else []),
        ":context-buffer buffer",
    ]
    prompt = f"{entry.name}> "
    pattern = re.sub(r"[.*+?^$\[]", r"\\\g<0>", prompt)
    lines = "\n".join(" " * 21 + line for line in client)
    return f"""  (add-to-list
   'agent-shell-agent-configs
   (agent-shell-make-agent-config
    :identifier '{entry.key}
    :mode-line-name {_elisp(entry.name)}
    :buffer-name {_elisp(entry.name)}
    :shell-prompt {_elisp(prompt)}
    :shell-prompt-regexp {_elisp(pattern)}
    :client-maker (lambda (buffer)
                    (acp-make-client
{lines}))))"""


def _elisp(text: str) -> str:
    return '"' + re.sub(r'[\\"]', r"\\\g<0>", text) + '"'
