"""The catalogue of known agents: how each is started, found, installed and logged in to.

Commands are those of the agents' own documentation or the ACP registry. An agent of the same name in the configuration
replaces one of these. The ways to start a program are tried in order, each with what must be on the machine; nothing is
started or downloaded here. A way that `fetches` uses a runner such as npx, which downloads the program on first use; it
counts as available when the runner is.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import PurePath
from typing import Any, Literal

import msgspec
from msgspec import Struct

from .contract import Launch

Availability = Literal["installed", "on demand", "missing"]
Which = Callable[[str], str | None]


class Way(Struct, frozen=True):
    """One way to start a program. `needs` are other programs that it starts itself and is nothing without, `packages`
    those of this Python that it imports."""

    command: tuple[str, ...]
    fetches: bool = False
    needs: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()

    def is_here(self, which: Which) -> bool:
        return all(map(which, (self.command[0], *self.needs))) and all(map(find_spec, self.packages))


class AgentProgram(Struct, frozen=True, kw_only=True):
    """A program that speaks ACP on its stdio. `version` is the command that tells the version, if there is one."""

    name: str
    title: str
    ways: tuple[Way, ...]
    install: str | None = None
    login: str | None = None
    env: Mapping[str, str] = {}
    cwd: str | None = None
    version: tuple[str, ...] | None = None

    def way(self, which: Which | None = None) -> Way | None:
        """The first way that this machine has; None when it has none of them."""
        which = which or shutil.which
        return next((way for way in self.ways if way.is_here(which)), None)

    def availability(self, which: Which | None = None) -> Availability:
        way = self.way(which)
        if way is None:
            return "missing"
        return "on demand" if way.fetches else "installed"

    def launch(self, which: Which | None = None) -> Launch | None:
        """How it is started here; None when it cannot be."""
        which = which or shutil.which
        way = self.way(which)
        if way is None:
            return None
        # Windows starts no `npx.cmd` by the name `npx`
        program = way.command[0] if os.name == "posix" else which(way.command[0]) or way.command[0]
        return Launch(command=(program, *way.command[1:]), env=self.env, cwd=self.cwd, login=self.login)


CODER = "coder"
DEMO = "demo"
_CLAUDE_PLACE = "PILOTHOUSE_CLAUDE"
_CLAUDE_LOGIN = "run `claude` once and log in with /login"


def _npm(name: str, title: str, command: str, package: str, login: str | None = None) -> AgentProgram:
    """An agent that is installed by npm and speaks ACP itself."""
    return _program(name, title, command, f"npm install -g {package}", login)


def _bridge(name: str, title: str, program: str, package: str, login: str | None = None) -> AgentProgram:
    """A bridge to an agent, small enough that npx may fetch it when it is first used."""
    return AgentProgram(
        name=name,
        title=title,
        ways=(Way((program,)), Way(("npx", "-y", package), fetches=True)),
        install=f"npm install -g {package}",
        version=(program, "--version"),
        login=login,
    )


def _program(name: str, title: str, command: str, install: str, login: str | None = None) -> AgentProgram:
    words = tuple(command.split())
    return AgentProgram(
        name=name, title=title, ways=(Way(words),), install=install, version=(words[0], "--version"), login=login
    )


def claude_code(environ: Mapping[str, str]) -> AgentProgram:
    """Claude Code by its own command line, through the bridge of this package."""
    named = environ.get(_CLAUDE_PLACE)
    cli = named or "claude"
    install = "npm install -g @anthropic-ai/claude-code"
    # -P: it is started in the workspace, whose files must not be taken for modules
    bridge = (sys.executable, "-P", "-m", "pilothouse.agents.claude_bridge")
    return AgentProgram(
        name="claude-code",
        title="Claude Code",
        ways=(Way(bridge, needs=(cli,)),),
        install=f"set {_CLAUDE_PLACE} to a program that can be run; {named} is none" if named else install,
        version=(cli, "--version"),
        login=_CLAUDE_LOGIN,
    )


def claude(environ: Mapping[str, str]) -> AgentProgram:
    """Claude by the shortest way there is: its own command line, else the adapter for it from npm.

    Who has said where the command line is wants that one, and not another way when it is not there.
    """
    own = claude_code(environ)
    others = () if environ.get(_CLAUDE_PLACE) else _claude_acp().ways
    return msgspec.structs.replace(own, name="claude", title="Claude", ways=(*own.ways, *others))


def _claude_acp() -> AgentProgram:
    package = "@agentclientprotocol/claude-agent-acp"
    return _bridge("claude-acp", "Claude by its ACP adapter", "claude-agent-acp", package, _CLAUDE_LOGIN)


def _own(name: str, title: str, command: str, **more: Any) -> AgentProgram:
    """An agent that comes with this package."""
    python = (sys.executable, "-P", "-m", "pilothouse.cli")
    way = Way((*python, command), packages=more.pop("packages", ()))
    return AgentProgram(name=name, title=title, ways=(way,), version=(*python, "--version"), **more)


def _known() -> Iterator[AgentProgram]:
    yield _own(DEMO, "Scripted agent", "demo-agent")
    yield claude(os.environ)
    yield claude_code(os.environ)
    yield _claude_acp()
    codex = "@agentclientprotocol/codex-acp"
    yield _bridge("codex", "Codex", "codex-acp", codex, login="run `codex login`, or set OPENAI_API_KEY")
    yield _npm(
        "gemini",
        "Gemini CLI",
        "gemini --acp",
        "@google/gemini-cli",
        login="run `gemini` once and log in, or set GEMINI_API_KEY",
    )
    yield _npm("opencode", "OpenCode", "opencode acp", "opencode-ai", login="run `opencode auth login`")
    yield _npm("goose", "Goose", "goose acp", "@aaif/goose", login="run `goose configure`")
    yield _npm("qwen", "Qwen Code", "qwen --acp", "@qwen-code/qwen-code", login="run `qwen` once and log in")
    yield _npm("kimi", "Kimi Code", "kimi acp", "@moonshot-ai/kimi-code", login="run `kimi` once and use /login")
    yield _npm("copilot", "GitHub Copilot", "copilot --acp", "@github/copilot", login="run `copilot login`")
    yield _npm("junie", "Junie", "junie --acp=true", "@jetbrains/junie", login="run `junie` once and log in")
    yield _npm("cline", "Cline", "cline --acp", "cline", login="run `cline auth`")
    yield _npm("auggie", "Auggie", "auggie --acp", "@augmentcode/auggie", login="run `auggie login`")
    yield _program(
        "cursor",
        "Cursor",
        "cursor-agent acp",
        "see https://cursor.com/docs/cli/acp",
        login="run `cursor-agent login`",
    )
    yield _program("vibe", "Mistral Vibe", "vibe-acp", "uv tool install mistral-vibe", login="run `vibe` once")
    yield _program("fast-agent", "fast-agent", "fast-agent-acp -x", "uv tool install fast-agent-mcp")
    yield _program("hermes", "Hermes", "hermes-acp", "uv tool install 'hermes-agent[acp]'")
    yield _bridge("pi", "Pi", "pi-acp", "pi-acp", login="install @earendil-works/pi-coding-agent and log in with `pi`")
    yield _own(
        CODER,
        "Pilothouse agent",
        "agent",
        packages=("pydantic_ai",),
        install="pip install 'pilothouse[agent]'",
    )


KNOWN: Mapping[str, AgentProgram] = {program.name: program for program in _known()}

# Gemini CLI reads a file before it writes it, and takes no error for "it is not there yet": its ACP library rejects
# with a plain object where the CLI looks for an Error. Reading for itself, it can make new files.
FLAWED: Mapping[str, tuple[tuple[str, str], ...]] = {"gemini": (("fs", "readTextFile"),)}
"""What a program cannot be offered, because it would fail with it."""


def without_flaws(capabilities: Mapping[str, Any], command: Sequence[str]) -> dict[str, Any]:
    """A client's capabilities, as this command can be told of them."""
    told = dict(capabilities)
    for program in {PurePath(word).name for word in command} & FLAWED.keys():
        for group, name in FLAWED[program]:
            told[group] = {**told.get(group, {}), name: False}
    return told


class PermissionBehavior(msgspec.Struct, frozen=True):
    """How an agent asks for permission, as far as it is known.

    `modes_without_approval` are the modes in which it acts without asking: before `everything`, or only before `writes`
    inside the workspace. `file_programs` are programs that it treats like writes. In `modes_with_own_judgement` it
    decides itself which acts it asks about: the hub permits none for that reason, but flags none inside the workspace
    either. `question_tools` only ask the user; their answers come with the approval of the tool call. `mode_names` are
    the names under which it offers its modes, where they say less than the ids.
    """

    modes_without_approval: Mapping[str, Literal["everything", "writes"]] = {}
    question_tools: frozenset[str] = frozenset()
    modes_with_own_judgement: frozenset[str] = frozenset()
    file_programs: frozenset[str] = frozenset()
    mode_names: Mapping[str, str] = {}

    def may_act_unasked(self, mode: str | None, programs: Collection[str], *, writes: bool) -> bool:
        """Whether the agent may run some programs, or change files itself (`writes`), without asking in a mode."""
        acts = self.modes_without_approval.get(mode or "")
        if acts == "everything" or mode in self.modes_with_own_judgement:
            return True
        return acts == "writes" and (writes or bool(programs)) and self.file_programs.issuperset(programs)


_CLAUDE = PermissionBehavior(
    {"bypassPermissions": "everything", "acceptEdits": "writes"},
    frozenset({"AskUserQuestion"}),
    modes_with_own_judgement=frozenset({"auto"}),
    file_programs=frozenset({"mkdir", "touch", "rm", "rmdir", "mv", "cp", "sed"}),
)
PERMISSION_BEHAVIOR: Mapping[str, PermissionBehavior] = {
    "pilothouse.agents.claude_bridge": _CLAUDE,
    "claude-agent-acp": _CLAUDE,
    "codex-acp": PermissionBehavior(
        {"agent-full-access": "everything", "workspace-write": "writes", "agent": "writes"},
        modes_with_own_judgement=frozenset({"workspace-write", "agent"}),
        mode_names={
            "agent-full-access": "Full access",
            "workspace-write": "Workspace access",
            "agent": "Auto review",
        },
    ),
    "gemini": PermissionBehavior({"yolo": "everything", "autoEdit": "writes"}),
    "qwen": PermissionBehavior({"yolo": "everything", "auto-edit": "writes"}),
    "goose": PermissionBehavior({"auto": "everything"}),
    "vibe-acp": PermissionBehavior({"auto-approve": "everything", "accept-edits": "writes"}),
}
"""By a program or module in the agent's command, never by a name that the agent reports."""


def permission_behavior_of(command: Sequence[str]) -> PermissionBehavior:
    """How the agent that a command starts asks for permission; the default for an agent that is not known."""
    names = {PurePath(word).name for word in command}
    found = (behavior for program, behavior in PERMISSION_BEHAVIOR.items() if program in names)
    return next(found, PermissionBehavior())
