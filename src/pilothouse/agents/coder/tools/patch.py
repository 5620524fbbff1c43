"""Patches over several files, in the form that models are trained on (`*** Begin Patch`), or as unified diffs."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic_ai import RunContext

from ....acp import tool_diff_content
from ....model.patches import FilePatch, PatchError, apply, parse_patch
from ...failure import Failure
from .. import documents
from ..permission import Grant
from ..work import Work

__all__ = ["apply_patch"]

BOM = "\ufeff"


async def apply_patch(ctx: RunContext[Work], patch: str) -> str:
    """Change, create, delete or move several files at once.

    Args:
        patch: The patch. It begins with `*** Begin Patch` and ends with `*** End Patch`. In between, each file has a
            line `*** Add File: PATH` followed by its lines, each after a `+`; or `*** Delete File: PATH`; or
            `*** Update File: PATH`, perhaps `*** Move to: PATH`, and hunks: a line `@@`, lines that stay after a
            space, lines that go after a `-`, lines that come after a `+`.
    """
    work = ctx.deps
    parsed = parse_patch(patch)
    names = list(dict.fromkeys(file.move_to or file.path for file in parsed.files))
    title = f"Patch {', '.join(names)}" if names else "Patch"
    paths = [work.workspace.point(name) for name in names]
    async with work.call(
        "apply_patch", title, "edit", of=ctx.tool_call_id, raw_input={"patch": patch}, paths=paths
    ) as call:
        problems = "; ".join(f"line {at}: {why}" for at, why in parsed.errors[:5])
        if not parsed.files:
            raise Failure(f"The patch names no file; {problems}")
        changes = await _planned(work, parsed.files)
        if changes.after == changes.before:
            raise Failure(f"The patch changes nothing; {problems or 'all files are as it would make them'}.")
        await call.show(content=changes.diffs())
        await call.permit(changes.grant(work))
        async with AsyncExitStack() as locked:
            for real in sorted(set(changes.real.values())):
                await locked.enter_async_context(work.session.being_written[real])
            await changes.check(work)
            await call.start()
            await changes.carry_out(work)
        await call.end(content=changes.diffs(), raw_output={"files": sorted(map(str, changes.after))})
        return parsed.summary()


@dataclass
class _Changes:
    """Files as they are and as they will be; None is no file."""

    real: dict[Path, str] = field(default_factory=dict)
    before: dict[Path, str | None] = field(default_factory=dict)
    after: dict[Path, str | None] = field(default_factory=dict)

    def diffs(self) -> list[Any]:
        return [
            tool_diff_content(str(path), after or "", self.before[path])
            for path, after in self.after.items()
            if after != self.before[path]
        ]

    def grant(self, work: Work) -> Grant:
        """What it needs leave for. Leave to change one file, as edit and write ask for it, is none to delete it."""
        paths = sorted(self.real.values())
        touched = ", ".join(work.workspace.shown(path) for path in sorted(self.after))
        if len(paths) == 1 and None not in self.after.values():
            return Grant(("file", *paths), f"changes to {touched}")
        gone = [self.real[path] for path, after in self.after.items() if after is None]
        return Grant(("patch", *paths, "without", *sorted(gone)), f"patches of {touched}")

    async def check(self, work: Work) -> None:
        """What the user saw is still so. Raises Failure."""
        for path, before in self.before.items():
            if str(path.resolve()) != self.real[path] or await documents.read_if_any(work, path) != before:
                shown = work.workspace.shown(path)
                raise Failure(f"`{shown}` has changed since the user was shown the patch; read it again.")

    async def carry_out(self, work: Work) -> None:
        done: list[str] = []
        # what is new is there before what is old goes
        for path, after in sorted(self.after.items(), key=lambda item: item[1] is None):
            try:
                if after is None:
                    if self.before[path] is not None:
                        await documents.delete(work, path)
                elif after != self.before[path]:
                    await documents.write(work, path, after)
            except Failure as exc:
                finished = f"Done before: {', '.join(done)}." if done else "Nothing was changed."
                raise Failure(f"{str(exc).rstrip('.')}. {finished}") from exc
            done.append(work.workspace.shown(path))


async def _planned(work: Work, files: list[FilePatch]) -> _Changes:
    """What a patch comes to, with nothing done yet. Raises Failure when it does not fit."""
    changes = _Changes()
    for file in files:
        path = work.workspace.locate(file.path)
        target = work.workspace.locate(file.move_to) if file.move_to else path
        for one in (path, target):
            if one not in changes.before:
                changes.real[one] = str(one.resolve())
                if list(changes.real.values()).count(changes.real[one]) > 1:
                    raise Failure(f"`{work.workspace.shown(one)}` is in the patch under another name too.")
                changes.before[one] = changes.after[one] = await documents.read_if_any(work, one)
        _apply(changes, file, path, target)
    return changes


def _apply(changes: _Changes, file: FilePatch, path: Path, target: Path) -> None:
    now = changes.after[path]
    if file.kind == "add" and now is not None:
        raise Failure(f"`{file.path}` exists already; update it, or use write to replace it.")
    if file.kind != "add" and now is None:
        raise Failure(f"There is no file `{file.path}`.")
    if target != path and changes.after[target] is not None:
        raise Failure(f"`{file.move_to}` exists already; nothing is moved over it.")
    # a byte order mark is no part of the first line, as nobody sees it there
    mark = BOM if now is not None and now.startswith(BOM) else ""
    try:
        then = apply(file, now and now.removeprefix(mark))
    except PatchError as exc:
        raise Failure(f"The patch does not fit: {exc}") from exc
    if target != path:
        changes.after[path] = None
    changes.after[target] = then if then is None else mark + then
