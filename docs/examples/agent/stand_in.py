"""A model for those who have none: it does what the prompt says, to the letter, without a key and without a network.

what did I say?      shows what it remembers
read FILE            calls the tool `read`
write FILE TEXT      calls the tool `write`
count to N           talks long enough to be interrupted
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator

from pydantic_ai import ModelMessage, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

PAUSE = 0.03
"""Seconds between words, so that one can see them come."""


async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    parts = [part for message in messages for part in message.parts]
    asked = [str(part.content) for part in parts if isinstance(part, UserPromptPart)]
    tools = {tool.name for tool in info.function_tools}
    order = re.match(r"(read|write)\s+(\S+)\s*(.*)", asked[-1], re.DOTALL)
    if isinstance(parts[-1], ToolReturnPart):
        said = f"It says: {parts[-1].content}"
    elif order and order[1] in tools:
        said = f"I {order[1]} {order[2]}. "
    else:
        said = f"I have no tool to {order[1]} files." if order else reply(asked)
    for word in re.findall(r"\S+\s*", said):
        yield word
        await asyncio.sleep(PAUSE)
    if order and order[1] in tools and not isinstance(parts[-1], ToolReturnPart):
        arguments = {"path": order[2]} | ({"text": f"{order[3]}\n"} if order[1] == "write" else {})
        yield {0: DeltaToolCall(order[1], json.dumps(arguments), tool_call_id=f"call-{len(messages)}")}


def reply(asked: list[str]) -> str:
    """To a prompt that needs no tool; `asked` has all of the session, the newest last."""
    *before, now = asked
    if count := re.match(r"count to (\d+)", now):
        return " ".join(str(number + 1) for number in range(int(count[1])))
    if now.startswith("what did I say"):
        return f"You said: {'; '.join(before) or 'nothing'}."
    return f"You say: {now}"


STAND_IN = FunctionModel(stream_function=answer, model_name="stand-in")
