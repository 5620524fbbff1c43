"""The table of commands, and the commands about the table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

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
from . import questions, status, talk, trouble, work
from .arguments import split
from .tour import tour
from .turn import Failure, Turn

__all__ = ["COMMANDS", "available_commands", "perform"]

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
    Command("permission", "asks for permission with every kind of option", questions.permission),
    Command("question", "asks for input by a form and by a web page", questions.question),
    Command("ext", "calls extension methods of the client", questions.ext),
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
    Command("wait", "waits until cancelled", trouble.wait),
    Command("stubborn [SECONDS]", "does not listen to cancel for a while", trouble.stubborn),
    Command("error [CODE]", "answers the prompt with an error", trouble.error),
    Command("refuse", "ends the turn with a refusal", trouble.refuse),
    Command("limit", "ends the turn at the token limit", trouble.limit),
    Command("crash [CODE]", "dies in the middle of the turn", trouble.crash),
    Command("noise", "prints rubbish into the protocol stream", trouble.noise),
    Command("stderr [N]", "writes N KiB to stderr", trouble.stderr),
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
