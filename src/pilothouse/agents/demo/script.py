"""The table of commands, the commands about the table, and the tour.

The tour is a small coding session as a real agent would have it, with a real bug that is really fixed.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from ...acp import (
    AudioContentBlock,
    AvailableCommand,
    ContentBlock,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    StopReason,
    TextContentBlock,
    UnstructuredCommandInput,
    update_available_commands,
)
from ..commands import Failure
from . import status, talk, work
from .turn import Turn, split
from .work import edit_files, read_file, run_command

PROJECT = "pilothouse-demo"
STEPS = ("Set up a small project", "Read the code", "Run the tests", "Fix what is broken", "Run the tests again")

CART = '''\
"""A shopping cart. Prices are in cents."""


def total(prices: list[int], discount: int = 0) -> int:
    """The sum of all prices, less `discount` percent."""
    return sum(prices) - discount
'''
FIXED = CART.replace("return sum(prices) - discount", "return sum(prices) * (100 - discount) // 100")
TEST = """\
import unittest

from cart import total


class TotalTest(unittest.TestCase):
    def test_without_discount(self):
        self.assertEqual(total([250, 750]), 1000)

    def test_with_discount(self):
        self.assertEqual(total([250, 750], discount=10), 900)


if __name__ == "__main__":
    unittest.main()
"""
SUMMARY = f"""\

## What happened

The discount was taken off as **cents** instead of **percent**. One line changed:

```python
return sum(prices) * (100 - discount) // 100
```

| step | result |
| --- | --- |
| tests before | one of two failed |
| fix in `{PROJECT}/cart.py` | written after you allowed it |
| tests after | both pass |

All of it was real: files were written, the tests did run. `help` lists what else I can show.
"""


class Stopped(Exception):
    """The tour cannot go on; the text says why."""


async def tour(turn: Turn, args: str) -> None:
    plan = Plan(turn)
    await turn.think("A tour is wanted. A small project with a bug shows best what an agent does, so I make one.")
    await turn.stream(f"I will make a small project in `{PROJECT}`, find the bug in it, and fix it.\n")
    try:
        await _work(turn, plan)
    except Stopped as exc:
        await plan.show(active=False)
        await turn.stream(
            f"{exc}\n\nThat is as far as I can go without it. "
            "Type `tour` to try again, or `help` to see what else there is.\n"
        )
    else:
        await turn.stream(SUMMARY)


async def _work(turn: Turn, plan: Plan) -> None:
    code, test = (work.locate(turn, f"{PROJECT}/{name}") for name in ("cart.py", "test_cart.py"))
    await plan.show()
    await turn.pause(20)
    await _write(turn, "Set up a small project", {code: CART, test: TEST})
    await plan.advance()
    for path in (code, test):
        if await read_file(turn, path) is None:
            raise Stopped("I cannot fix what I cannot read.")
        await turn.pause(10)
    await plan.advance()
    await _test(turn, passes=False)
    await turn.think("1000 less 10 % is 900, but the result was 990: `discount` is subtracted as if it were cents.")
    await plan.advance()
    await turn.stream("The discount is a percentage, but it is taken off as cents. I fix that line.\n")
    await _write(turn, f"Fix the discount in {PROJECT}/cart.py", {code: FIXED})
    await plan.advance()
    await _test(turn, passes=True)
    await plan.advance()


async def _write(turn: Turn, title: str, texts: dict[Path, str]) -> None:
    if reason := await edit_files(turn, title, texts):
        raise Stopped(reason)


async def _test(turn: Turn, *, passes: bool) -> None:
    python = "python3" if shutil.which("python3") else sys.executable
    # -B: no compiled files are left behind in the user's directory
    call, outcome = await run_command(turn, f"{python} -B -m unittest", directory=PROJECT)
    if outcome is None:
        raise Stopped(
            f"{'How the tests ended is not known' if call.started else 'The tests were not run'}. {call.reason}"
        )
    if outcome.ok is not passes:
        raise Stopped(f"The tests ended with {outcome}, which I did not expect.")
    await turn.pause(10)


class Plan:
    """The steps of the tour and how far it has come."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._done = 0

    async def advance(self) -> None:
        self._done += 1
        await self.show()

    async def show(self, *, active: bool = True) -> None:
        await self._turn.plan(STEPS, self._done, active=active)


Function = Callable[[Turn, str], Awaitable[StopReason | None]]


@dataclass(frozen=True)
class Command:
    """One command: how it is called, what it does, and what does it."""

    usage: str
    help: str
    run: Function

    @property
    def name(self) -> str:
        return self.usage.split()[0]


async def show_help(turn: Turn, args: str) -> None:
    rows = "".join(f"| `{command.usage}` | {command.help} |\n" for command in COMMANDS)
    await turn.say(f"The first word of a prompt is a command:\n\n| command | what it does |\n| --- | --- |\n{rows}")


async def show_commands(turn: Turn, args: str) -> None:
    await turn.send(update_available_commands(available_commands()))
    await turn.say(f"There are {len(COMMANDS)} commands; `help` explains them.")


COMMANDS = (
    Command("help", "lists the commands", show_help),
    Command("tour", "a small coding session: reads, a plan, an edit, a test run", tour),
    Command("echo TEXT", "says TEXT", talk.echo),
    Command("markdown", "headings, lists, a table and code", talk.markdown),
    Command("think", "thinks, then answers", talk.think),
    Command("plan", "a plan, step by step", talk.plan),
    Command("image", "a picture, a sound, a link and embedded files", talk.image),
    Command("tools", "one tool call of every kind", work.tools),
    Command("read [PATH]", "reads a file of the session's directory", work.read),
    Command("edit [PATH [TEXT]]", "writes a file, after asking", work.edit),
    Command("bash [COMMAND]", "runs a shell command, after asking", work.bash),
    Command("kill", "starts a long command and kills it, after asking", work.kill),
    Command("subagent", "a tool call with tool calls of its own", work.subagent),
    Command("permission", "asks for permission with every kind of option", status.permission),
    Command("question", "asks for input by a form and by a web page", status.question),
    Command("ext", "calls extension methods of the client", status.ext),
    Command("commands", "sends the list of commands", show_commands),
    Command("mode [ID]", "shows or changes the mode: ask, code, plan", status.mode),
    Command("config [ID VALUE]", "shows or changes an option", status.config),
    Command("usage", "tokens used and their cost", status.usage),
    Command("title [TEXT]", "names the session, or takes its name away", status.title),
    Command("notice [SEVERITY [TEXT]]", "a notice beside the conversation", status.notice),
    Command("compact", "pretends to compact the conversation", status.compact),
    Command("big [N]", "one message of N bytes", talk.big),
    Command("flood [N]", "N messages as fast as they go", talk.flood),
    Command("slow [SECONDS]", "a message every 100 ms", talk.slow),
    Command("wait", "waits until cancelled", talk.wait),
    Command("stubborn [SECONDS]", "does not listen to cancel for a while", talk.stubborn),
    Command("error [CODE]", "answers the prompt with an error", talk.error),
    Command("refuse", "ends the turn with a refusal", talk.refuse),
    Command("limit", "ends the turn at the token limit", talk.limit),
    Command("crash [CODE]", "dies in the middle of the turn", talk.crash),
    Command("noise", "prints rubbish into the protocol stream", talk.noise),
    Command("stderr [N]", "writes N KiB to stderr", talk.stderr),
)
BY_NAME = {command.name: command for command in COMMANDS}


def available_commands() -> list[AvailableCommand]:
    """The table as clients offer it for completion."""
    found = []
    for command in COMMANDS:
        hint = command.usage.partition(" ")[2]
        argument = UnstructuredCommandInput(hint=hint) if hint else None
        found.append(AvailableCommand(name=command.name, description=command.help, input=argument))
    return found


async def perform(turn: Turn) -> StopReason:
    """Do what the prompt says."""
    name, args = split(turn.text)
    command = BY_NAME.get(name)
    if command is None:
        await _answer_anyway(turn, name)
        return "end_turn"
    try:
        return await command.run(turn, args) or "end_turn"
    except Failure as exc:
        await turn.say(f"{exc} Usage: `{command.usage}`")
        return "end_turn"


async def _answer_anyway(turn: Turn, word: str) -> None:
    attached = [_describe(block) for block in turn.blocks if not isinstance(block, TextContentBlock)]
    if attached:
        await turn.say("\n".join(["You sent me:", "", *attached, ""]))
    if word or not attached:
        await turn.say("I am the scripted agent and know only a few words. Type `help` to see them, or `tour`.")


def _describe(block: ContentBlock) -> str:
    if isinstance(block, (ImageContentBlock, AudioContentBlock)):
        return f"- `{block.mime_type}`, {len(block.data) * 3 // 4} bytes"
    if isinstance(block, ResourceContentBlock):
        return f"- a link to `{block.uri}`"
    if isinstance(block, EmbeddedResourceContentBlock):
        return f"- the contents of `{block.resource.uri}`"
    return "- something I do not know"
