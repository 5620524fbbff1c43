"""Commands that only write (text, thoughts, plans, pictures), and commands that fail on purpose."""

from __future__ import annotations

import asyncio
import base64
import math
import os
import struct
import sys
import zlib

from ...acp import (
    RequestError,
    StopReason,
    audio_block,
    embedded_blob_resource,
    embedded_text_resource,
    image_block,
    resource_block,
    resource_link_block,
)
from ..commands import Failure
from .turn import Turn, number


def png(size: int = 16) -> str:
    """A square of colour gradients as a base64 PNG."""
    step = 255 // (size - 1)
    rows = b"".join(b"\0" + b"".join(bytes((x * step, y * step, 160)) for x in range(size)) for y in range(size))
    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    chunks = _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows, 9)) + _chunk(b"IEND", b"")
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + chunks).decode()


def wav(milliseconds: int = 100, rate: int = 8000, pitch: int = 440) -> str:
    """A short beep as a base64 WAV, 8 bits mono."""
    count = rate * milliseconds // 1000
    samples = bytes(128 + round(90 * math.sin(2 * math.pi * pitch * i / rate)) for i in range(count))
    fmt = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, rate, rate, 1, 8)
    data = struct.pack("<4sI", b"data", len(samples)) + samples
    riff = struct.pack("<4sI4s", b"RIFF", 4 + len(fmt) + len(data), b"WAVE")
    return base64.b64encode(riff + fmt + data).decode()


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


MIB = 1024 * 1024

SAMPLE = """\
# A heading

A paragraph with **bold**, *italic*, `code` and a [link](https://agentclientprotocol.com).

## Lists

- apples
- pears
  - green ones
  - yellow ones

1. first
2. second

- [x] written
- [ ] read

## A table

| fruit | count |
| ----- | ----: |
| apple |     3 |
| pear  |    12 |

## Code

```python
def greet(name: str) -> str:
    return f"Hello, {name}!"
```

> A quotation to end with.
"""


async def echo(turn: Turn, args: str) -> None:
    if args:
        await turn.say(args)


async def markdown(turn: Turn, args: str) -> None:
    await turn.stream(SAMPLE)


async def think(turn: Turn, args: str) -> None:
    await turn.think("The question is what six times seven is. Six sevens are three sevens twice, so 21 and 21.")
    await turn.stream("The answer is **42**.")


async def plan(turn: Turn, args: str) -> None:
    steps = ("Look at the code", "Change it", "Run the tests")
    await turn.plan(steps, 0, active=False)
    for done in range(len(steps)):
        await turn.plan(steps, done)
        await turn.pause(10)
    await turn.plan(steps, len(steps))
    await turn.say("The plan is done.")


async def image(turn: Turn, args: str) -> None:
    await turn.say("A picture, a sound, a link and two files:\n")
    readme = (turn.session.cwd / "README.md").as_uri()
    for block in (
        image_block(png(), "image/png"),
        audio_block(wav(), "audio/wav"),
        resource_link_block("README.md", readme, mime_type="text/markdown", title="A file", size=13),
        resource_block(embedded_text_resource("demo:///note.txt", "A note.\n", mime_type="text/plain")),
        resource_block(embedded_blob_resource("demo:///dot.png", png(2), mime_type="image/png")),
    ):
        await turn.say_block(block)


async def big(turn: Turn, args: str) -> None:
    count = number(args, default=MIB, low=0, high=32 * MIB)
    await turn.say(("0123456789abcde\n" * (count // 16 + 1))[:count])


async def flood(turn: Turn, args: str) -> None:
    count = number(args, default=1000, low=0, high=1_000_000)
    await turn.pour(f"{index}\n" for index in range(count))


async def slow(turn: Turn, args: str) -> None:
    seconds = number(args, default=5, low=0, high=3600)
    for tick in range(1, seconds * 10 + 1):
        await asyncio.sleep(0.1)
        await turn.say(f"{tick / 10:.1f} s\n")


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
