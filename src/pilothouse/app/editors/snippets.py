"""Entries as the code that Neovim's plugins and Emacs are configured by. Pure text; the user puts it where it belongs.

Two of the plugins start agents with PATH and nothing else of the environment. A hub that is started so would start
agents without HOME, hence their entries hand over all of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from .entries import Entry

__all__ = ["Snippet", "emacs", "neovim"]


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
