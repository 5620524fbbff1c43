"""An agent that puts script into everything it may write: words, names, paths, files, output, options.

`python tests/support/hostile_agent.py` speaks ACP on stdio. Should any of it run, `window.pwned` is set.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))

from pilothouse.acp import Agent, PromptResponse, run_agent, text_block, update_agent_message, update_agent_thought
from pilothouse.acp.helpers import (
    plan_entry,
    start_tool_call,
    tool_content,
    tool_diff_content,
    update_plan,
    update_tool_call,
)
from pilothouse.acp.schema import (
    InitializeResponse,
    NewSessionResponse,
    PermissionOption,
    ToolCallLocation,
    ToolCallUpdate,
)

SCRIPTS = (
    "<script>pwned=1</script>",
    "<script src=//evil.example/x.js></script>",
    "<img src=x onerror=pwned=1>",
    "<img src=//evil.example/pixel.png>",
    "<svg onload=pwned=1></svg>",
    "<svg><script>pwned=1</script></svg>",
    "<svg><animate onbegin=pwned=1 attributeName=x dur=1s>",
    "<math><mtext><table><mglyph><style><img src onerror=pwned=1>",
    "<iframe src=javascript:pwned=1></iframe>",
    "<iframe srcdoc='<script>parent.pwned=1</script>'></iframe>",
    "<object data=javascript:pwned=1></object><embed src=javascript:pwned=1>",
    "<a href=javascript:pwned=1>click</a>",
    "<a href='jAvAsCrIpT&colon;pwned=1'>click</a>",
    "<a href='&#106;avascript:pwned=1'>click</a>",
    "<a href='data:text/html,<script>pwned=1</script>'>click</a>",
    "<form action=javascript:pwned=1><button>go</button></form>",
    "<input autofocus onfocus=pwned=1>",
    "<details open ontoggle=pwned=1>x</details>",
    "<body onload=pwned=1>",
    "<base href=//evil.example/>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<style>@import '//evil.example/x.css'; *{background:url(//evil.example/b)}</style>",
    "<p style='background:url(//evil.example/c)'>styled</p>",
    "<div id=app name=app class=shell>clobber</div><form id=main><input name=children></form>",
    "<template><script>pwned=1</script></template>",
    "<noscript><p title='</noscript><img src=x onerror=pwned=1>'>",
    "<!--><img src=x onerror=pwned=1>-->",
    "<x:script xmlns:x='http://www.w3.org/1999/xhtml'>pwned=1</x:script>",
    "[link](javascript:pwned=1)",
    "[link](JaVaScRiPt:pwned=1)",
    "[link](java\tscript:pwned=1)",
    "[link](data:text/html;base64,PHNjcmlwdD5wd25lZD0xPC9zY3JpcHQ+)",
    "[link](vbscript:pwned=1)",
    "![image](javascript:pwned=1)",
    "![image](//evil.example/i.png)",
    '![a](x"onerror="pwned=1)',
    "[ref]: javascript:pwned=1\n\n[ref]",
    "<javascript:pwned=1>",
    "`</code><script>pwned=1</script>`",
    "```html\n</code></pre><script>pwned=1</script>\n```",
    '```"><script>pwned=1</script>\ncode\n```',
    "| <img src=x onerror=pwned=1> |\n| --- |\n| <script>pwned=1</script> |",
    "- [ ] <img src=x onerror=pwned=1>",
    "\x1b]8;;javascript:pwned=1\x07terminal link\x1b]8;;\x07",
    "\x1b[31m<script>pwned=1</script>\x1b[0m",
    "\x1b]0;<script>pwned=1</script>\x07",
    "{{constructor.constructor('pwned=1')()}}",
    "${pwned=1}",
    "\u202e</tpircs>1=denwp<tpircs>",
    "\ufeff<scr\u0000ipt>pwned=1</scr\u0000ipt>",
    "</textarea><script>pwned=1</script>",
    "</title><script>pwned=1</script>",
    "' onmouseover='pwned=1",
    '" autofocus onfocus="pwned=1',
)


class Hostile(Agent):
    def on_connect(self, conn: Any) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        return InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        self._cwd = Path(cwd)
        return NewSessionResponse(session_id="hostile")

    async def prompt(self, prompt: list[Any], session_id: str, **_: Any) -> PromptResponse:
        async def tell(update: Any) -> None:
            await self._client.session_update(session_id, update)

        await tell(update_plan([plan_entry(script) for script in SCRIPTS]))
        for number, script in enumerate(SCRIPTS):
            await tell(update_agent_thought(text_block(script)))
            await tell(update_agent_message(text_block(f"{script}\n\n")))
            await self._call(tell, number, script)
        await self._ask(session_id)
        return PromptResponse(stop_reason="end_turn")

    async def _call(self, tell: Any, number: int, script: str) -> None:
        kind = ("read", "edit", "execute", "search", "fetch", "other")[number % 6]
        path = str(self._cwd / script.replace("/", "\u2215").replace("\x00", ""))
        call = f"call-{number}-{script[:20]}"
        started = start_tool_call(
            call,
            script,
            kind=kind,
            status="in_progress",
            locations=[ToolCallLocation(path=path)],
            raw_input={"command": script, "path": path, "url": f"https://example.org/{script}", script: script},
        )
        await tell(started)
        content = [tool_content(text_block(script)), tool_diff_content(path, f"{script}\nnew\n", f"{script}\nold\n")]
        failed = number % 5 == 0
        status = "failed" if failed else "completed"
        await tell(update_tool_call(call, status=status, content=content, raw_output={script: script}))

    async def _ask(self, session_id: str) -> None:
        options = [
            PermissionOption(option_id=SCRIPTS[0], name=SCRIPTS[2], kind="allow_once"),
            PermissionOption(option_id="no", name="Reject", kind="reject_once"),
        ]
        call = ToolCallUpdate(
            tool_call_id="ask",
            title=SCRIPTS[2],
            kind="execute",
            raw_input={"command": f"echo '{SCRIPTS[0]}'"},
        )
        await self._client.request_permission(session_id=session_id, tool_call=call, options=options)


if __name__ == "__main__":
    asyncio.run(run_agent(Hostile()))
