"""A served hub in which everything has happened once, so that each operation finds something to work on.

async with world(tmp_path) as (served, ids):
    await served.client.request("GET", f"/sessions/{ids.session}")
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

from .hubs import PATIENCE
from .servers import Served, serving

PAGE = "<h1>A page</h1><script>alert(1)</script>"


class Ids(NamedTuple):
    """What to name in a path."""

    workspace: Path
    session: str
    """Waits for `approval`, with `prompt` in its queue; it made `artifact`, and `rule` holds for it."""
    spare: str
    """A session that did nothing."""
    approval: str
    rule: str
    artifact: str
    prompt: str
    device: str
    credential: str
    """Of that device, which may only read."""
    pairing: str


async def pending(served: Served) -> str:
    """The approval that waits, once there is one."""
    async with asyncio.timeout(PATIENCE):
        while not (found := await served.hub.approvals()):
            await asyncio.sleep(0.01)
    return found[0].id


async def pair(served: Served, *scopes: str) -> dict[str, Any]:
    """A new device with these scopes."""
    begun = (await served.client.request("POST", "/pairings", {"scopes": list(scopes)})).json()
    wish = {"ticket": begun["ticket"], "code": begun["code"], "name": "-".join(scopes)}
    paired: dict[str, Any] = (await served.client.request("POST", "/pair", wish)).json()
    return paired


@contextlib.asynccontextmanager
async def world(place: Path, **options: Any) -> AsyncIterator[tuple[Served, Ids]]:
    home, workspace = place / "home", place / "workspace"
    home.mkdir(mode=0o700)
    workspace.mkdir()
    (workspace / "notes.txt").write_text("remember the milk\n")
    async with serving(home, **options) as served:
        session = await served.hub.start_session("demo", workspace, title="A session")
        first = await session.send(f"edit page.html {PAGE}")
        await served.hub.decide(await pending(served), approved=True, remember="session", by="somebody")
        async with asyncio.timeout(PATIENCE):
            await asyncio.shield(first.done)
        await session.send("permission")
        queued = await session.send("echo later")
        spare = await served.hub.start_session("demo", workspace)
        artifacts = (await served.client.request("GET", f"/sessions/{session.id}/artifacts")).json()["artifacts"]
        device = await pair(served, "read")
        pairing = (await served.client.request("POST", "/pairings", {})).json()
        yield (
            served,
            Ids(
                workspace=workspace,
                session=session.id,
                spare=spare.id,
                approval=await pending(served),
                rule=(await served.hub.rules())[0].id,
                artifact=artifacts[0]["id"],
                prompt=queued.turn_id,
                device=device["deviceId"],
                credential=device["credential"],
                pairing=pairing["id"],
            ),
        )
