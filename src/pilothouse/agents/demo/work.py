"""Commands that act: tool calls of every kind, files read and written, commands run.

`read_file`, `edit_files` and `run_command` are also used by the tour. Files are read through the client, which may hold
unsaved buffers, where it offers that; else from disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import get_args

from ...acp import RequestError, ToolCallLocation, ToolKind, text_block, tool_content, tool_diff_content
from ..commands import Command, Failure, Outcome, prepare
from .turn import Call, Turn, words


def locate(turn: Turn, name: str) -> Path:
    """The path of a file of the session. Raises Failure for anything outside of its directory."""
    root = turn.session.cwd
    path = root / name
    # The client gets the path in its own terms; only the check looks through symbolic links.
    if not path.resolve().is_relative_to(root.resolve()) or path.resolve() == root.resolve():
        raise Failure(f"`{name}` is not a file inside of `{root}`.")
    return path


async def read_text(turn: Turn, path: Path) -> str:
    """The text of a file. Raises Failure with the reason."""
    try:
        if turn.capabilities.fs.read_text_file:
            return (await turn.client.read_text_file(session_id=turn.session.id, path=str(path))).content
        return await asyncio.to_thread(path.read_text, encoding="utf-8")
    except (RequestError, OSError, UnicodeDecodeError) as exc:
        raise Failure(f"`{path.name}` could not be read: {_reason(exc)}") from exc


async def read_if_any(turn: Turn, path: Path) -> str | None:
    """The text of a file that may not exist yet."""
    try:
        return await read_text(turn, path)
    except Failure:
        # Clients do not agree on an error for a missing file, so the disk decides whether this is one.
        if await asyncio.to_thread(path.exists):
            raise
        return None


async def write_text(turn: Turn, path: Path, text: str) -> None:
    """Replace the text of a file. Raises Failure with the reason."""
    try:
        if turn.capabilities.fs.write_text_file:
            # The protocol makes files, not directories; where the disk is shared the agent can help.
            with suppress(OSError):
                await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
            await turn.client.write_text_file(session_id=turn.session.id, path=str(path), content=text)
        else:
            await asyncio.to_thread(_write, path, text)
    except (RequestError, OSError) as exc:
        raise Failure(f"`{path.name}` could not be written: {_reason(exc)}") from exc


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _reason(exc: Exception) -> str:
    if isinstance(exc, RequestError):
        if exc.code == -32002:
            return "there is no such file."
        details = exc.data.get("details") if isinstance(exc.data, dict) else None
        return f"{exc}: {details}" if details else str(exc)
    if isinstance(exc, FileNotFoundError):
        return "there is no such file."
    return getattr(exc, "strerror", None) or str(exc)


async def run(turn: Turn, call: Call, line: str, *, directory: str = "") -> Outcome:
    """Run a command and end the call with its outcome; non-zero is a failure."""
    async with _command(turn, call, line, directory) as running:
        outcome = await running.wait()
        await _end(call, outcome, ok=outcome.ok)
    return outcome


async def kill_after_start(turn: Turn, call: Call, line: str) -> Outcome:
    """Start a command that would run for long, and kill it; being killed is its success."""
    async with _command(turn, call, line) as running:
        await running.kill()
        outcome = await running.wait()
        await _end(call, outcome, ok=True)
    return outcome


def _command(turn: Turn, call: Call, line: str, directory: str = "") -> Command:
    cwd = str(turn.session.cwd / directory)
    return prepare(turn.client, turn.session.id, call, line, cwd, lent=bool(turn.capabilities.terminal))


async def _end(call: Call, outcome: Outcome, *, ok: bool) -> None:
    # A replay comes when the terminal is long gone, so it shows the output itself.
    shown = [tool_content(text_block(f"```\n{outcome.output.rstrip()}\n```\n{outcome}"))]
    await call.end("completed" if ok else "failed", raw_output=outcome.raw, replay_content=shown)


TITLES: Mapping[str, str] = {
    "read": "Read main.py",
    "edit": "Edit main.py",
    "delete": "Delete old.py",
    "move": "Rename a.py to b.py",
    "search": "Search for “TODO”",
    "execute": "Run make",
    "think": "Think it over",
    "fetch": "Fetch https://example.com",
    "switch_mode": "Switch to plan mode",
    "other": "Something else",
}


async def tools(turn: Turn, args: str) -> None:
    """One call of every kind; none of them does anything. The fetch fails, as there is no network."""
    for line, kind in enumerate(get_args(ToolKind), 1):
        location = ToolCallLocation(path=str(turn.session.cwd / "main.py"), line=line)
        async with turn.tool(
            TITLES[kind], kind, name=f"demo_{kind}", locations=[location], raw_input={"n": line}
        ) as call:
            await call.start()
            await turn.pause(5)
            if kind == "fetch":
                raise Failure("There is no network here.")
            await call.end("completed", content=[tool_content(text_block(f"{kind}: done"))], raw_output={"n": line})
    await turn.say("Ten tool calls, one of every kind. The one that wanted the network failed.")


# -- files --


async def read(turn: Turn, args: str) -> None:
    name = args.strip() or _first_file(turn.session.cwd)
    if name is None:
        await turn.say(f"There is nothing to read in `{turn.session.cwd}`. `edit` would write something.")
        return
    path = locate(turn, name)
    text = await read_file(turn, path)
    if text is not None:
        await turn.say(f"`{name}` has {len(text.splitlines())} lines:\n\n{_fenced(text)}")


async def read_file(turn: Turn, path: Path) -> str | None:
    """Read a file in a tool call; None, and said why, when that fails."""
    text = ""
    name = _shown(turn, path)
    location = ToolCallLocation(path=str(path))
    async with turn.tool(
        f"Read {name}", "read", name="read", locations=[location], raw_input={"path": str(path)}
    ) as call:
        await call.start()
        text = await read_text(turn, path)
        await call.end("completed", content=[tool_content(text_block(_fenced(text)))], raw_output={"content": text})
    if call.failed:
        await turn.say(str(call.reason))
        return None
    return text


async def edit(turn: Turn, args: str) -> None:
    name, text = words(args, 2)
    path = locate(turn, name or "demo.txt")
    if text:
        text = text if text.endswith("\n") else f"{text}\n"
    else:
        text = (await read_if_any(turn, path) or "") + "The scripted agent was here.\n"
    reason = await edit_files(turn, f"Edit {_shown(turn, path)}", {path: text})
    await turn.say(reason or f"`{_shown(turn, path)}` is written.")


async def edit_files(turn: Turn, title: str, texts: Mapping[Path, str]) -> str | None:
    """Write files in one tool call, if the user allows it; the answer is why it was not done, or None."""
    diffs = [tool_diff_content(str(path), new, await read_if_any(turn, path)) for path, new in texts.items()]
    locations = [ToolCallLocation(path=str(path), line=1) for path in texts]
    raw_input = {"files": [{"path": str(path), "content": new} for path, new in texts.items()]}
    written: list[str] = []
    async with turn.tool(title, "edit", name="edit", content=diffs, locations=locations, raw_input=raw_input) as call:
        await call.permit()
        await call.start()
        for path, new in texts.items():
            await write_text(turn, path, new)
            written.append(f"`{_shown(turn, path)}`")
        await call.end("completed", content=diffs, raw_output={"written": [str(path) for path in texts]})
    if not call.failed:
        return None
    return f"{'Only ' + ', '.join(written) if written else 'Nothing'} was written. {call.reason}"


# -- commands --


async def bash(turn: Turn, args: str) -> None:
    call, outcome = await run_command(turn, args.strip() or "echo hello from the terminal")
    if outcome is None:
        await turn.say(_not_run(call))
    else:
        await turn.say(f"It ended with {outcome}.\n\n{_fenced(outcome.output)}")


async def kill(turn: Turn, args: str) -> None:
    command = "echo started; exec sleep 600"
    outcome: Outcome | None = None
    async with turn.tool(f"`{command}`", "execute", name="bash", raw_input={"command": command}) as call:
        await call.permit()
        outcome = await kill_after_start(turn, call, command)
    await turn.say(f"The command was {outcome}." if outcome else _not_run(call))


def _not_run(call: Call) -> str:
    """What became of a command without an outcome: it was not started, or it was and its end is not known."""
    return f"{'How it ended is not known' if call.started else 'Nothing was run'}. {call.reason}"


async def run_command(turn: Turn, command: str, *, directory: str = "") -> tuple[Call, Outcome | None]:
    """Run a command in one tool call, if the user allows it."""
    outcome: Outcome | None = None
    raw_input = {"command": command, "cwd": str(turn.session.cwd / directory)}
    async with turn.tool(f"`{command}`", "execute", name="bash", raw_input=raw_input) as call:
        await call.permit()
        outcome = await run(turn, call, command, directory=directory)
    return call, outcome


# -- delegation --


async def subagent(turn: Turn, args: str) -> None:
    """A call whose own calls name it in `_meta`, as there is no stable way to say so."""
    task = {"description": "Survey the project", "prompt": args or "What is in here?", "subagent_type": "explorer"}
    async with turn.tool("Task: Survey the project", "think", name="task", raw_input=task) as parent:
        await parent.start()
        for title, kind, result in (
            ("List the files", "search", "main.py\ntest_main.py"),
            ("Read main.py", "read", "print('hello')"),
        ):
            nested: ToolKind = "search" if kind == "search" else "read"
            async with turn.tool(title, nested, name=kind, raw_input={"of": parent.id}, parent=parent) as call:
                await call.start()
                await turn.pause(5)
                await call.end("completed", content=[tool_content(text_block(result))])
        report = "Two files, one of them a test."
        await parent.end("completed", content=[tool_content(text_block(report))], raw_output={"report": report})
    await turn.say(f"The sub-agent reports: {report}")


def _first_file(cwd: Path) -> str | None:
    if (cwd / "README.md").is_file():
        return "README.md"
    if not cwd.is_dir():
        return None
    return min((path.name for path in cwd.iterdir() if path.is_file()), default=None)


def _shown(turn: Turn, path: Path) -> str:
    return path.relative_to(turn.session.cwd).as_posix() if path.is_relative_to(turn.session.cwd) else str(path)


def _fenced(text: str) -> str:
    fence = "````" if "```" in text else "```"
    return f"{fence}\n{text.rstrip()}\n{fence}\n"
