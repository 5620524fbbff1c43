"""The tour: a small coding session as a real agent would have it, with a bug that is really there and really fixed."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from . import files
from .turn import Turn
from .work import edit_files, read_file, run_command

__all__ = ["tour"]

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
    code, test = (files.locate(turn, f"{PROJECT}/{name}") for name in ("cart.py", "test_cart.py"))
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
