"""The real agents of the lab: how each is installed, and how it is started against the model server.

They are installed by package name, in fixed versions, below the lab's directory; nothing of them belongs to the
product. Each runs with an environment of its own: its HOME is a temporary directory, and its proxy is the model server,
which refuses whatever is not for the model.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pilothouse.hub.agent.process import AgentSpec

CLEAN = str(Path(__file__).with_name("clean.py"))
LAB = Path(os.environ.get("PILOTHOUSE_PROGRAMS") or Path.home() / ".cache" / "pilothouse-lab")
"""Where the agents are installed."""
NODE = "node@24.21.0"
"""Some agents want a newer Node than a distribution has."""


@dataclass(frozen=True)
class RealAgent:
    """`configure` writes what it needs into its HOME and gives the variables it is started with."""

    name: str
    package: str
    command: tuple[str, ...]
    configure: Callable[[Path, str], Mapping[str, str]]
    bridge: tuple[str, ...] = ()
    """What is started in its place, and starts the program itself: it is told where that is by a variable."""
    mode: str | None = None
    """The mode in which it asks its user, where it starts in another."""
    is_binary: bool = False
    """Whether it runs without Node."""


def _claude(home: Path, url: str) -> Mapping[str, str]:
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "sk-ant-none",
        "ANTHROPIC_MODEL": "claude-sonnet-4-5",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "ENABLE_TOOL_SEARCH": "false",
        "IS_SANDBOX": "1",
    }


def _claude_code(home: Path, url: str) -> Mapping[str, str]:
    return {**_claude(home, url), "CLAUDE_CODE_MAX_RETRIES": "1"}  # else it tries a failed call for minutes


def _opencode(home: Path, url: str) -> Mapping[str, str]:
    models = {name: {"name": name, "limit": {"context": 100_000, "output": 8_000}} for name in ("large", "small")}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Lab",
        "options": {"baseURL": f"{url}/v1", "apiKey": "none"},
        "models": models,
    }
    config = {
        "autoupdate": False,
        "share": "disabled",
        "model": "lab/large",
        "small_model": "lab/small",
        "provider": {"lab": provider},
        "enabled_providers": ["lab"],
        "permission": {"edit": "ask", "bash": "ask"},
    }
    _write(home / ".config/opencode/opencode.json", json.dumps(config))
    names = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
    return {f"OPENCODE_DISABLE_{name}": "1" for name in names}


def _gemini(home: Path, url: str) -> Mapping[str, str]:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
        "model": {"name": "gemini-2.5-pro"},
    }
    _write(home / ".gemini/settings.json", json.dumps(settings))
    return {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_CLI_TRUST_WORKSPACE": "true"}


def _codex(home: Path, url: str) -> Mapping[str, str]:
    config = f"""
model = "gpt-5.5"
model_provider = "lab"
approval_policy = "on-request"
sandbox_mode = "workspace-write"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.lab]
name = "lab"
base_url = "{url}/v1"
env_key = "LAB_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
"""
    _write(home / ".codex/config.toml", config)
    return {"LAB_KEY": "none", "OPENAI_API_KEY": "none", "RUST_LOG": "error"}


def _goose(home: Path, url: str) -> Mapping[str, str]:
    config = """
GOOSE_PROVIDER: openai
GOOSE_MODEL: fake-model
GOOSE_MODE: approve
GOOSE_TELEMETRY_ENABLED: false
extensions:
  developer: {enabled: true, type: builtin, name: developer, timeout: 300, bundled: true}
"""
    _write(home / ".config/goose/config.yaml", config)
    return {"OPENAI_API_KEY": "none", "OPENAI_HOST": url, "GOOSE_DISABLE_KEYRING": "1"}


def _write(place: Path, text: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


AGENTS = {
    agent.name: agent
    for agent in (
        RealAgent("claude", "@agentclientprotocol/claude-agent-acp@0.99.1", ("claude-agent-acp",), _claude),
        RealAgent(
            "claude-code",
            "@anthropic-ai/claude-code@2.1.325",
            ("claude",),
            _claude_code,
            bridge=(sys.executable, "-P", "-m", "pilothouse.agents.claude_bridge"),
            is_binary=True,
        ),
        RealAgent("opencode", "opencode-ai@1.18.33", ("opencode", "acp"), _opencode),
        RealAgent("gemini", "@google/gemini-cli@0.61.0", ("gemini", "--acp"), _gemini),
        RealAgent("codex", "@agentclientprotocol/codex-acp@2.6.0", ("codex-acp",), _codex, mode="read-only"),
        RealAgent("goose", "@aaif/goose@0.20.1", ("goose", "acp", "--with-builtin", "developer"), _goose),
    )
}


def programs(lab: Path, name: str) -> Path:
    return lab / "npm" / name / "node_modules" / ".bin"


def spec(agent: RealAgent, lab: Path, home: Path, url: str) -> AgentSpec:
    """The agent, ready to be started by a hub."""
    home.mkdir(parents=True, exist_ok=True)
    (home / "tmp").mkdir(exist_ok=True)
    node = lab / "npm" / "node" / "node_modules" / "node" / "bin"
    environment = {
        "PATH": f"{node}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "TERM": "xterm",
        "LANG": "C.UTF-8",
        **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), url),
        **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"),
        **agent.configure(home, url),
    }
    program, *arguments = agent.command
    words = (str(programs(lab, agent.name) / program), *arguments)
    if agent.bridge:
        environment["PILOTHOUSE_CLAUDE"] = words[0]
        words = agent.bridge
    variables = (f"{name}={value}" for name, value in environment.items())
    command = (sys.executable, "-S", "-E", CLEAN, *variables, "--", *words)
    return AgentSpec(name=agent.name, command=command)


def is_installed(lab: Path, name: str) -> bool:
    return (programs(lab, name) / AGENTS[name].command[0]).exists()


def install(lab: Path, names: list[str]) -> bool:
    """Whether all of them are there, in the versions of this table."""
    packages = {name: AGENTS[name].package for name in names}
    if not all(AGENTS[name].is_binary for name in names):
        packages["node"] = NODE
    done = [_install(lab / "npm" / name, package) for name, package in packages.items()]
    return all(done)


def _install(place: Path, package: str) -> bool:
    mark = place / "installed"
    if mark.exists() and mark.read_text() == package:
        return True
    print(f"installing {package}", flush=True)
    _write(place / "package.json", '{"name": "lab", "private": true}')
    npm = ["npm", "install", "--no-fund", "--no-audit", "--loglevel=error", package]
    if subprocess.run(npm, cwd=place, check=False).returncode != 0:
        print(f"{package} could not be installed", file=sys.stderr)
        return False
    mark.write_text(package)
    return True


if __name__ == "__main__":
    directory, *wanted = sys.argv[1:]
    unknown = set(wanted) - set(AGENTS)
    if unknown:
        sys.exit(f"the lab has no {', '.join(sorted(unknown))}; it has: {', '.join(AGENTS)}")
    sys.exit(0 if install(Path(directory), wanted) else 1)
