"""Which commands fetch a program first, and what is said of it."""

from __future__ import annotations

import pytest

from pilothouse.adapters.fetching import fetch_of


@pytest.mark.parametrize(
    ("command", "package", "runner"),
    [
        ("npx -y @some/agent --acp", "@some/agent", "npx"),
        ("/usr/bin/npx --yes agent@1.2", "agent@1.2", "npx"),
        ("npm exec -- agent", "agent", "npm exec"),
        ("npx -p @some/tools agent", "@some/tools", "npx"),
        ("npx --package=@some/tools agent", "@some/tools", "npx"),
        ("uvx --from agent-package agent", "agent-package", "uvx"),
        ("uv tool run agent", "agent", "uv tool run"),
        ("pipx run --spec git+https://example.com/x agent", "git+https://example.com/x", "pipx run"),
        ("bunx agent", "agent", "bunx"),
        ("pnpm dlx agent", "agent", "pnpm dlx"),
        ("C:\\node\\npx.cmd agent", "agent", "npx"),
    ],
)
def test_a_command_that_fetches_is_known_by_its_runner(command: str, package: str, runner: str) -> None:
    fetch = fetch_of(command.split())
    assert fetch is not None
    assert (fetch.package, fetch.runner) == (package, runner)
    assert fetch.waiting == f"Fetching {package} with {runner}; the first time takes a while"
    assert f"{fetch.install} {package}" in fetch.failed
    assert fetch.source in fetch.missing


@pytest.mark.parametrize(
    "command", ["", "claude", "uv run agent", "npm run agent", "npx", "npx --version", "/npx/agent x"]
)
def test_a_command_that_runs_what_is_there_fetches_nothing(command: str) -> None:
    assert fetch_of(command.split()) is None
