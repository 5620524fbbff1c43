"""A real Claude Code in a terminal of its own: found with its process, read as it goes, and ended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pilothouse.adapters.discovery.claude import ClaudeStore
from pilothouse.adapters.discovery.finder import Finder
from tests.lab.claude_cases import bash, script
from tests.lab.claude_storage import Terminal, said
from tests.lab.model.server import Server

PATIENCE = 60


@pytest.fixture
def terminal(tmp_path: Path, model: Server) -> Iterator[Terminal]:
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
    terminal = Terminal(tmp_path / "home", tmp_path / "work", model.url)
    yield terminal
    terminal.kill()


async def test_a_session_in_a_terminal_is_found_with_its_process_and_read_as_it_goes(terminal: Terminal) -> None:
    finder = Finder([ClaudeStore(terminal.home / ".claude")])
    changed: list[Any] = []
    stop = finder.watch(changed.append)
    words = {"text": "Look.", "calls": [bash("touch made")]}
    try:
        async with asyncio.timeout(PATIENCE):
            await asyncio.to_thread(terminal.until, lambda: terminal.told.get("status") == "idle", "the start")
            await asyncio.to_thread(terminal.say, script(words, "Made."), "tool_use", "waiting")
            session_id = terminal.told["sessionId"]
            found = await finder.session("claude", session_id)
            assert found is not None
            assert (found.pid, found.status, found.project_path) == (terminal.pid, "waiting", str(terminal.work))
            reader = await finder.reader("claude", session_id)
            assert reader is not None
            kinds = [update["sessionUpdate"] for update in reader.read().updates]
            assert kinds == ["user_message_chunk", "agent_message_chunk", "tool_call"]
            await asyncio.to_thread(terminal.choose)
            await asyncio.to_thread(terminal.until, lambda: said("Made.") in terminal.records, "the answer")
            step = reader.read()
            assert [update["sessionUpdate"] for update in step.updates] == ["tool_call_update", "agent_message_chunk"]
            assert step.status == "idle"
            assert ("claude", session_id) in {(event.agent, event.session_id) for event in changed}
            holder = await finder.holder("claude", session_id)
            assert holder is not None
            assert (holder.pid, holder.sign) == (terminal.pid, "told")
            await finder.end(holder)
            assert await finder.holder("claude", session_id) is None
            found = await finder.session("claude", session_id)
            assert found is not None
            assert (found.pid, found.status) == (None, "idle")
    finally:
        stop()
        await finder.close()
