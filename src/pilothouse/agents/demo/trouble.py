"""Commands that go wrong on purpose, so that clients can be tried against it."""

from __future__ import annotations

import asyncio
import os
import sys

from ...acp import RequestError, StopReason
from .arguments import number
from .turn import Failure, Turn

__all__ = ["crash", "error", "limit", "noise", "refuse", "stderr", "stubborn", "wait"]

NOISE = (
    b"Welcome! This line is not JSON.\n",
    b'{"jsonrpc": "2.0", "method": "session/update", "params": {"cut":\n',
    b"null\n",
    b"42\n",
    b'"a string"\n',
    b"[]\n",
    b'[{"jsonrpc": "2.0", "id": 1, "method": "a/batch"}]\n',
    b"{}\n",
    b'{"jsonrpc": "2.0", "method": "demo/unheard_of", "params": {"n": 1}}\n',
    b'{"jsonrpc": "2.0", "id": "never-asked", "result": {}}\n',
    b"\xff\xfe broken UTF-8 \x80\n",
    b"\n",
)


async def wait(turn: Turn, args: str) -> None:
    await turn.say("Waiting until you cancel.")
    await asyncio.Event().wait()


async def stubborn(turn: Turn, args: str) -> None:
    """Stays busy for its time; being cancelled meanwhile only shows in how the turn ends."""
    loop = asyncio.get_running_loop()
    end = loop.time() + number(args, default=3, low=0, high=3600)
    await turn.say("I am busy and do not listen.")
    ignored = False
    while (left := end - loop.time()) > 0:
        try:
            await asyncio.sleep(left)
        except asyncio.CancelledError:
            # one cancellation is ignored; the next one can only mean that the connection is closing
            if ignored or not turn.cancelled:
                raise
            ignored = True


async def error(turn: Turn, args: str) -> None:
    code = number(args, default=-32603, low=-(2**31), high=2**31 - 1)
    await turn.say("This prompt ends with an error.")
    raise RequestError(code, "The scripted agent was told to fail", {"command": "error"})


async def refuse(turn: Turn, args: str) -> StopReason:
    await turn.say("I would rather not.")
    return "refusal"


async def limit(turn: Turn, args: str) -> StopReason:
    await turn.say("This answer is cut off in the mid")
    return "max_tokens"


async def crash(turn: Turn, args: str) -> None:
    """Dies with a tool call open, which is for the client to close."""
    code = number(args, default=1, low=0, high=255)
    await turn.say("I am about to crash.")
    async with turn.tool("Crash", "other", name="crash") as call:
        await call.start()
        turn.session.history.settle()
        await _flush(turn)
        sys.stderr.write("the scripted agent was told to crash\n")
        sys.stderr.flush()
        os._exit(code)


async def noise(turn: Turn, args: str) -> None:
    """Writes what does not belong there into the protocol stream, each line between two good ones."""
    output = turn.host.output
    if output is None:
        raise Failure("This connection has no byte stream to make noise on.")
    for index, line in enumerate(NOISE):
        await turn.say(f"{index} ")
        output.write(line)
    await turn.say("and still here.")


async def stderr(turn: Turn, args: str) -> None:
    kib = number(args, default=64, low=0, high=64 * 1024)
    line = ("stderr " * 146 + "\n").rjust(1024, ".")
    for index in range(kib):
        sys.stderr.write(line)
        if index % 64 == 0:
            await asyncio.sleep(0)
    sys.stderr.flush()
    await turn.say(f"{kib} KiB went to stderr.")


async def _flush(turn: Turn) -> None:
    if turn.host.output is not None:
        turn.host.output.transport.set_write_buffer_limits(0)
        await turn.host.output.drain()
