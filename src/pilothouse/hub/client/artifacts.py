"""What a session made that is worth showing by itself, told once, when the turn that made it ends.

Not before: only then is it known whether it stays, and of which application it is a part. What is made is found in the
session's own state, and so is what was told; so nothing is told twice or forgotten when a hub dies in between. An agent
names the files; none is looked at that could not be downloaded, and nothing of it is read but that it is there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Any

from ...dialects.packets import artifacts_of
from ...model.events import Event, FileChangeBatchEvent, FileChangeEvent
from ..recording.recorder import Recorder
from .browse import WorkspaceFiles, known_type
from .refusals import WorkspaceError

logger = logging.getLogger(__name__)

MOST = 1000
"""Artifacts that a session tells of: they stay in memory with it. All that it made can be listed."""
PATIENCE = 5.0
"""Seconds that the end of a turn waits for a file system that does not answer."""
APPLICATION = "nextjs_app"
"""The one type that is a directory."""


class Artifacts:
    """Of one session; `files` are those of its directory."""

    def __init__(self, recorder: Recorder, files: WorkspaceFiles) -> None:
        self._recorder = recorder
        self._files = files
        self._is_changed = bool(recorder.session.files)

    def watch(self, events: Iterable[Event]) -> None:
        """Note whether there is a change of a file among these events."""
        self._is_changed = self._is_changed or any(isinstance(event, _CHANGES) for event in events)

    async def tell(self) -> None:
        """Record what was made since the last time. Never raises: nothing else depends on it."""
        if not self._is_changed:
            return
        self._is_changed = False
        try:
            await self._recorder.settle()
            async with asyncio.timeout(PATIENCE):
                made = await asyncio.to_thread(self._there, self._untold())
        except TimeoutError:
            self._is_changed = True
        except Exception:
            logger.exception("session %s: what it made could not be looked for", self._recorder.session.id)
        else:
            for artifact in made:
                self._recorder.note("artifact_created", {"artifact": artifact})

    def _untold(self) -> list[dict[str, Any]]:
        state = self._recorder.session
        told = {item.artifact.get("id") for item in state.artifacts if isinstance(item.artifact, dict)}
        made = [artifact for artifact in artifacts_of(state.files.values()) if artifact["id"] not in told]
        return made[: max(0, MOST - len(told))]

    # -- in a thread --

    def _there(self, made: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        return [known for artifact in made if (known := self._looked_at(artifact)) is not None]

    def _looked_at(self, artifact: dict[str, Any]) -> dict[str, Any] | None:
        """The artifact with its type and size; None if it is not there, or nothing that may be shown."""
        is_application = artifact["type"] == APPLICATION
        try:
            found = self._files.look(artifact["path"])
        except WorkspaceError:
            return None
        if found.kind != ("directory" if is_application else "file"):
            return None
        mime_type = "inode/directory" if is_application else known_type(artifact["path"])
        return {**artifact, "mime_type": mime_type, "size_bytes": found.size, "metadata": {}}


_CHANGES = (FileChangeEvent, FileChangeBatchEvent)
