"""Commands that only talk: text, thoughts, plans, pictures, and a lot of it."""

from __future__ import annotations

import asyncio

from ...acp import (
    audio_block,
    embedded_blob_resource,
    embedded_text_resource,
    image_block,
    resource_block,
    resource_link_block,
)
from . import media
from .arguments import number
from .turn import Turn

__all__ = ["big", "echo", "flood", "image", "markdown", "plan", "slow", "think"]

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
        image_block(media.png(), "image/png"),
        audio_block(media.wav(), "audio/wav"),
        resource_link_block("README.md", readme, mime_type="text/markdown", title="A file", size=13),
        resource_block(embedded_text_resource("demo:///note.txt", "A note.\n", mime_type="text/plain")),
        resource_block(embedded_blob_resource("demo:///dot.png", media.png(2), mime_type="image/png")),
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
