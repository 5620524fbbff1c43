"""What an approval does not cover, although its request mentions it, and what a mode or a denial covers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pilothouse.hub.hub import Hub
from pilothouse.hub.session import HubSession
from tests.support.rogue import REFUSED, Tally, ask, do, run_turn


def write(path: str, content: str) -> str:
    return do("fs/write_text_file", path=path, content=content)


def text(value: str) -> list[dict[str, Any]]:
    return [{"type": "content", "content": {"type": "text", "text": value}}]


# -- commands that are shown with something else ----------------------------------------------------------------------

RUN = {"command": "touch made"}
MENTIONED: dict[str, dict[str, Any]] = {
    "directory of a script": {"rawInput": {"commands": ["cd sub", "touch made"]}},
    "end of a script": {"rawInput": {"commands": ["exit 0", "touch made"]}},
    "document of a script": {"rawInput": {"commands": ["cat <<EOF", "touch made", "EOF"]}},
    "continued line": {"rawInput": {"commands": ["echo \\", "touch made"]}},
    "blocks": {"content": text("First\n```sh\ncd sub\n```\nthen\n```sh\ntouch made\n```")},
    "prompt lines": {"content": text("$ ssh staging\n$ touch made")},
    "dry run": {"rawInput": {**RUN, "dry_run": True}},
    "sandbox": {"rawInput": {**RUN, "sandbox": True}},
    "host": {"rawInput": {**RUN, "host": "staging"}},
    "directory of another object": {"rawInput": {"cwd": "sub", "arguments": RUN}},
    "directory under another name": {"rawInput": {**RUN, "chdir": "sub"}},
    "tool of a server": {"name": "mcp__staging__exec", "rawInput": RUN},
}


@pytest.mark.parametrize("shape", MENTIONED)
async def test_a_command_that_is_only_part_of_a_request_is_asked_about(
    hub: Hub, session: HubSession, project: Path, shape: str, tally: Tally
) -> None:
    asked = ask("c1", **{"title": "Bash", "kind": "execute", **MENTIONED[shape]})
    turn = await run_turn(hub, session, f"{asked}\n{do('terminal/create', **RUN)}")
    assert not (project / "made").exists()
    (act,) = turn.acts
    assert act.notes == ["You allowed this command only together with everything else in its request."]
    tally(REFUSED, 1)


async def test_a_write_by_the_tool_of_a_server_does_not_cover_a_write_by_the_hub(
    hub: Hub, session: HubSession, project: Path, tally: Tally
) -> None:
    raw = {"file_path": "made", "content": "x\n"}
    asked = ask("c1", title="Write", kind="edit", name="mcp__staging__write", rawInput=raw)
    turn = await run_turn(hub, session, f"{asked}\n{write('made', raw['content'])}")
    assert len(turn.acts) == 1
    assert not (project / "made").exists()
    tally(REFUSED, 1)
