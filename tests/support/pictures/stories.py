"""What the agents in the pictures do: the scripted agent with scripts of its own, chosen by how a prompt begins.

It really reads, writes and runs, in the way of the tour; only what it says and asks is written down here.
`python -m tests.support.pictures.stories` is the agent.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from unittest import mock

from pilothouse.acp import (
    Cost,
    ElicitationBooleanPropertySchema,
    ElicitationFormSessionMode,
    ElicitationMultiSelectPropertySchema,
    ElicitationSchema,
    ElicitationStringPropertySchema,
    EnumOption,
    StopReason,
    TitledMultiSelectItems,
    ToolCallLocation,
    UsageUpdate,
    text_block,
    tool_content,
)
from pilothouse.agents.demo import agent
from pilothouse.agents.demo import work as files
from pilothouse.agents.demo import work as shell
from pilothouse.agents.demo.turn import Turn
from pilothouse.agents.demo.work import edit_files, read_file, run_command

from .projects import CART_FIXED, CODES_STRICT

Story = Callable[[Turn], Awaitable[None]]

FIX_STEPS = ("Find where discounts are taken off", "See the tests fail", "Fix it", "Run the tests")
FIXED = """\
Fixed. The discount of a code is a **percentage**, but `Cart.total()` took it off as **cents**: with a code of 10 %
customers paid 10 cents less.

| cart of 20.00 | before | now |
| --- | ---: | ---: |
| no code | 20.00 | 20.00 |
| `WELCOME`, 10 % | 19.90 | **18.00** |
| `FRIENDS`, 25 % | 19.75 | **15.00** |

- [x] `reduction()` rounds down, in one place
- [x] both tests pass
- [ ] orders of last week were charged too much: shall I list them?
"""
FORM = ElicitationSchema(
    title="Release 2.4",
    properties={
        "audience": ElicitationStringPropertySchema(
            title="Who are the notes for?",
            one_of=[
                EnumOption(const="customers", title="Customers"),
                EnumOption(const="developers", title="Developers"),
            ],
            default="customers",
        ),
        "parts": ElicitationMultiSelectPropertySchema(
            title="What belongs in them?",
            items=TitledMultiSelectItems(
                any_of=[
                    EnumOption(const="new", title="What is new"),
                    EnumOption(const="fixed", title="What was fixed"),
                    EnumOption(const="upgrade", title="How to upgrade"),
                ]
            ),
            default=["new", "fixed"],
        ),
        "headline": ElicitationStringPropertySchema(title="Headline", description="One line, for the top of the page."),
        "publish": ElicitationBooleanPropertySchema(title="Publish when done", default=False),
    },
    required=["audience"],
)
# what a test run prints that takes its time
RUN = (
    r"printf '\033[1mcollected 212 items\033[0m\n\n';"
    r"for part in auth cart catalogue checkout; do"
    r" printf 'tests/test_%s.py \033[32m........................\033[0m\n' $part; done;"
    r"printf 'tests/test_dates.py \033[32m......\033[31mF\033[32m....\033[0m\n';"
    r"printf 'tests/test_email.py \033[32m..........\033[0m'; exec sleep 600"
)


async def fix_discount(turn: Turn) -> None:
    await turn.think(
        "Too little or too much? The report says that customers with a code pay nearly the full price. So the "
        "discount is applied, but it is far too small. I look for where the total is made."
    )
    await turn.stream("I look for where discounts are taken off, and then at the tests.\n")
    await turn.plan(FIX_STEPS, 0)
    await _search(turn, "discount", "cart.py:18\ncart.py:27\ncodes.py:1\ntest_cart.py:17")
    for name in ("cart.py", "test_cart.py"):
        await read_file(turn, files.locate(turn, name))
    await turn.plan(FIX_STEPS, 1)
    await run_command(turn, "python3 -B -m unittest -q")
    await turn.plan(FIX_STEPS, 2)
    await turn.stream(
        "10 percent of 2000 are 200, but only 10 was taken off: `discount` is used as cents. I fix that.\n"
    )
    await edit_files(turn, "Edit cart.py", {files.locate(turn, "cart.py"): CART_FIXED})
    await turn.plan(FIX_STEPS, 3)
    await run_command(turn, "python3 -B -m unittest")
    await turn.plan(FIX_STEPS, 4)
    await turn.stream(FIXED)
    await _spend(turn, 48_213, 0.31)


async def refuse_codes(turn: Turn) -> None:
    await turn.stream(
        "`register()` takes any number. I let it refuse what is no discount, and read codes with blanks.\n"
    )
    await read_file(turn, files.locate(turn, "codes.py"))
    await _spend(turn, 12_480, 0.07)
    await edit_files(turn, "Edit codes.py", {files.locate(turn, "codes.py"): CODES_STRICT})


async def release_notes(turn: Turn) -> None:
    await turn.stream("There are 31 merged changes since 2.3. Before I write, a few questions.\n")
    await turn.client.create_elicitation(
        message="How shall the release notes look?",
        mode=ElicitationFormSessionMode(session_id=turn.session.id, requested_schema=FORM),
    )


async def rotate(turn: Turn) -> None:
    await turn.stream(
        "The certificate of staging ends in six days. I remove the old secret, so that a new one is issued.\n"
    )
    await run_command(
        turn, "kubectl --context staging -n shop delete secret shop-tls && kubectl rollout restart deploy/web"
    )


async def upgrade(turn: Turn) -> None:
    steps = ("Raise the version", "Run all tests", "Mend what breaks", "Update the containers")
    await turn.plan(steps, 1)
    await turn.stream("The version is raised in `pyproject.toml`. Now all tests with the new one:\n")
    async with turn.tool("`make test`", "execute", name="bash", raw_input={"command": "make test"}) as call:
        await call.permit()
        await shell.run(turn, call, RUN)


async def dark_mode(turn: Turn) -> None:
    page = files.locate(turn, "theme.css")
    await edit_files(turn, "Edit theme.css", {page: ":root {\n  color-scheme: light dark;\n}\n"})
    await run_command(turn, "make docs")
    await turn.stream("Done: the page follows the system, and a button in the footer changes it.\n")


async def licences(turn: Turn) -> None:
    await turn.stream("All 84 packages are MIT, BSD or Apache-2.0, but one: `pdf-kit` is AGPL.\n")


async def fail(turn: Turn) -> None:
    await turn.stream("I start the emulator to see it happen.\n")
    print("emulator: no free memory", file=sys.stderr, flush=True)
    os._exit(1)


STORIES: dict[str, Story] = {
    "Customers": fix_discount,
    "Codes": refuse_codes,
    "Write": release_notes,
    "The certificate": rotate,
    "Upgrade": upgrade,
    "The documentation": dark_mode,
    "Which": licences,
    "The app": fail,
}


async def perform(turn: Turn) -> StopReason:
    story = next(story for start, story in STORIES.items() if turn.text.startswith(start))
    await story(turn)
    return "end_turn"


async def _search(turn: Turn, words: str, found: str) -> None:
    location = ToolCallLocation(path=str(turn.session.cwd))
    given = {"pattern": words, "path": str(turn.session.cwd)}
    async with turn.tool(f"Search for “{words}”", "search", name="grep", locations=[location], raw_input=given) as call:
        await call.start()
        await call.end("completed", content=[tool_content(text_block(found))], raw_output={"matches": found})


async def _spend(turn: Turn, used: int, dollars: float) -> None:
    await turn.send(UsageUpdate(used=used, size=200_000, cost=Cost(amount=dollars, currency="USD")))


def command() -> tuple[str, ...]:
    return (sys.executable, "-m", __name__)


if __name__ == "__main__":
    with mock.patch.object(agent, "perform", perform):
        asyncio.run(agent.serve())
