"""Tool calls that follow each other, as one line that can be opened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .entries import ApprovalEntry, ToolCallEntry, ToolGroup, TranscriptEntry

__all__ = ["group_items"]


def group_items(entries: Iterable[TranscriptEntry]) -> list[TranscriptEntry | ToolGroup]:
    """Runs of two calls or more become groups. An approval that was decided belongs to the run it stands in."""
    grouped: list[TranscriptEntry | ToolGroup] = []
    run: list[ToolCallEntry | ApprovalEntry] = []
    for entry in entries:
        if isinstance(entry, ToolCallEntry) or (isinstance(entry, ApprovalEntry) and not entry.pending):
            run.append(entry)
            continue
        grouped += _close(run)
        run = []
        grouped.append(entry)
    return [*grouped, *_close(run)]


def _close(run: list[ToolCallEntry | ApprovalEntry]) -> Iterator[TranscriptEntry | ToolGroup]:
    calls = [entry for entry in run if isinstance(entry, ToolCallEntry)]
    if len(calls) < 2:
        yield from run
        return
    failed = sum(call.status == "failed" for call in calls)
    label = f"Working · {len(calls)} calls" + (f" · {failed} failed" if failed else "")
    running = any(call.status in ("pending", "executing") for call in calls)
    yield ToolGroup(
        id=f"group:{calls[0].id}", label=label, calls=len(calls), failed=failed, running=running, entries=run
    )
