"""The interop client on Pilothouse: `python our_client.py [--frames=frames.jsonl] script.json agent...`.

It takes the steps of the script one by one, serves the agent real files and processes meanwhile, and prints one line
of JSON: what came of each step. tests/e2e/test_interop.py writes the script and reads the report. With `--frames`
every frame that passes is written down for the schema check.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pilothouse import acp

TIMEOUT = 10
CALLS = {
    "initialize": (acp.InitializeRequest, acp.ClientSideConnection.initialize),
    "authenticate": (acp.AuthenticateRequest, acp.ClientSideConnection.authenticate),
    "logout": (acp.LogoutRequest, acp.ClientSideConnection.logout),
    "session/new": (acp.NewSessionRequest, acp.ClientSideConnection.new_session),
    "session/load": (acp.LoadSessionRequest, acp.ClientSideConnection.load_session),
    "session/list": (acp.ListSessionsRequest, acp.ClientSideConnection.list_sessions),
    "session/resume": (acp.ResumeSessionRequest, acp.ClientSideConnection.resume_session),
    "session/close": (acp.CloseSessionRequest, acp.ClientSideConnection.close_session),
    "session/delete": (acp.DeleteSessionRequest, acp.ClientSideConnection.delete_session),
    "session/set_mode": (acp.SetSessionModeRequest, acp.ClientSideConnection.set_session_mode),
    "session/prompt": (acp.PromptRequest, acp.ClientSideConnection.prompt),
    "session/cancel": (acp.CancelNotification, acp.ClientSideConnection.cancel),
}


class Terminal:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.output = b""
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        while data := await self.process.stdout.read(65536):
            self.output += data

    async def wait(self) -> tuple[int | None, str | None]:
        await self._reading
        await self.process.wait()
        return self.exit

    @property
    def exit(self) -> tuple[int | None, str | None]:
        code = self.process.returncode
        return (code, None) if code >= 0 else (None, signal.Signals(-code).name)


@dataclass
class Step:
    """A step that is being taken and what has come of it so far."""

    script: dict[str, Any]
    report: dict[str, Any] = field(default_factory=lambda: {"updates": [], "asked": [], "notes": [], "nested": []})
    task: asyncio.Task[Any] | None = None
    nested: asyncio.Task[None] | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)


class InteropClient(acp.Client):
    def on_connect(self, conn: acp.ClientSideConnection) -> None:
        self._agent = conn
        self._terminals: dict[str, Terminal] = {}
        self._steps: dict[str | None, Step] = {}

    # -- the script --

    async def run(self, steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [await self._take(Step(script)) for script in steps]

    async def _take(self, step: Step) -> dict[str, Any]:
        report, session_id = step.report, step.script.get("params", {}).get("sessionId")
        self._steps.setdefault(session_id, step)
        step.task = asyncio.create_task(self._perform(step))
        try:
            async with asyncio.timeout(TIMEOUT):
                await step.task
                while len(report["updates"]) < step.script.get("expect", 0):
                    step.news.clear()
                    await step.news.wait()
        except acp.RequestError as exc:
            report["error"] = {"code": exc.code, "message": str(exc), "data": exc.data}
        except asyncio.CancelledError:
            report["aborted"] = True
        except TimeoutError:
            report["timeout"] = True
        if step.nested is not None:
            await step.nested
        if self._steps[session_id] is step:
            del self._steps[session_id]
        return report

    async def _perform(self, step: Step) -> None:
        method, params = step.script["method"], step.script.get("params", {})
        call = self._agent.connection.send_request if "raw" in step.script else self._call
        step.report["result"] = await call(method, params)
        step.report["at_return"] = len(step.report["updates"])

    async def _call(self, method: str, params: dict[str, Any]) -> Any:
        if method.startswith("_"):
            if "note" in params:
                return await self._agent.ext_notification(method[1:], params)
            return await self._agent.ext_method(method[1:], params)
        if method == "session/set_config_option":
            answer = await self._agent.set_config_option(params["configId"], params["sessionId"], params["value"])
            return _wire(answer)
        request_type, call = CALLS[method]
        request = request_type.model_validate(params)
        fields = {name: getattr(request, name) for name in request.model_fields_set - {"field_meta"}}
        return _wire(await call(self._agent, **fields, **(request.field_meta or {})))

    async def _nested(self, step: Step) -> None:
        for script in step.script["then"]:
            if script["method"] == "$/cancel_request":
                step.task.cancel()  # which the library makes known to the agent
            else:
                step.report["nested"].append(await self._take(Step(script)))

    # -- what the agent asks and tells --

    async def session_update(self, session_id: str, update: acp.SessionUpdate, **kwargs: Any) -> None:
        step = self._steps[session_id]
        wire = _wire(update)
        for _ in range(5 - len(step.report["updates"]) % 5):
            await asyncio.sleep(0)  # a handler that takes its time must not be overtaken
        step.report["updates"].append(wire)
        step.news.set()
        if wire.get("content") == {"type": "text", "text": step.script.get("on")}:
            step.nested = asyncio.create_task(self._nested(step))

    async def request_permission(
        self, session_id: str, tool_call: acp.ToolCallUpdate, options: list[acp.PermissionOption], **kwargs: Any
    ) -> acp.RequestPermissionResponse:
        step = self._steps[session_id]
        seen = len(step.report["updates"])
        step.report["asked"].append([tool_call.tool_call_id, [option.kind for option in options], seen])
        if step.script["permission"] == "cancel":
            await self._agent.cancel(session_id)
            return acp.RequestPermissionResponse(outcome=acp.DeniedOutcome())
        chosen = next(option for option in options if option.kind == step.script["permission"])
        return acp.RequestPermissionResponse(outcome=acp.AllowedOutcome(option_id=chosen.option_id))

    async def write_text_file(
        self, session_id: str, path: str, content: str, **kwargs: Any
    ) -> acp.WriteTextFileResponse | None:
        Path(path).write_text(content, encoding="utf-8", newline="")
        return acp.WriteTextFileResponse()

    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **kwargs: Any
    ) -> acp.ReadTextFileResponse:
        try:
            lines = Path(path).read_text(encoding="utf-8").splitlines(keepends=True)
        except FileNotFoundError:
            raise acp.RequestError.resource_not_found(path) from None
        start = (line or 1) - 1
        return acp.ReadTextFileResponse(content="".join(lines[start : None if limit is None else start + limit]))

    async def create_terminal(
        self,
        session_id: str,
        command: str,
        args: list[str] | None = None,
        env: list[acp.EnvVariable] | None = None,
        cwd: str | None = None,
        output_byte_limit: int | None = None,
        **kwargs: Any,
    ) -> acp.CreateTerminalResponse:
        process = await asyncio.create_subprocess_exec(
            command,
            *(args or []),
            env={**os.environ, **{variable.name: variable.value for variable in env or []}},
            cwd=cwd,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        terminal_id = f"terminal-{process.pid}"
        self._terminals[terminal_id] = Terminal(process)
        self._steps[session_id].report["notes"].append(["outputByteLimit", output_byte_limit])
        return acp.CreateTerminalResponse(terminal_id=terminal_id)

    async def terminal_output(self, session_id: str, terminal_id: str, **kwargs: Any) -> acp.TerminalOutputResponse:
        terminal = self._terminal(terminal_id)
        status = None
        if terminal.process.returncode is not None:
            code, name = terminal.exit
            status = acp.TerminalExitStatus(exit_code=code, signal=name)
        return acp.TerminalOutputResponse(output=terminal.output.decode(), truncated=False, exit_status=status)

    async def wait_for_terminal_exit(
        self, session_id: str, terminal_id: str, **kwargs: Any
    ) -> acp.WaitForTerminalExitResponse:
        code, name = await self._terminal(terminal_id).wait()
        return acp.WaitForTerminalExitResponse(exit_code=code, signal=name)

    async def kill_terminal(self, session_id: str, terminal_id: str, **kwargs: Any) -> acp.KillTerminalResponse | None:
        self._terminal(terminal_id).process.kill()
        return None

    async def release_terminal(self, session_id: str, terminal_id: str, **kwargs: Any) -> None:
        terminal = self._terminal(terminal_id)
        del self._terminals[terminal_id]
        with contextlib.suppress(ProcessLookupError):
            terminal.process.kill()
        await terminal.wait()

    def _terminal(self, terminal_id: str) -> Terminal:
        if terminal_id not in self._terminals:
            raise acp.RequestError.resource_not_found(terminal_id)
        return self._terminals[terminal_id]

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "interop/echo":
            return {"by": "client", "echo": params}
        raise acp.RequestError.method_not_found(f"_{method}")

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        self._steps[params["sessionId"]].report["notes"].append([method, params["note"]])


def _wire(model: acp.Model | None) -> Any:
    return None if model is None else model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def main(script: str, *agent: str, frames: str | None) -> None:
    client = InteropClient()
    diagnostics: list[str] = []
    passed: list[str] = []
    steps = json.loads(Path(script).read_text(encoding="utf-8"))
    async with acp.spawn_agent_process(client, *agent, on_diagnostic=lambda found: diagnostics.append(str(found))) as (
        conn,
        process,
    ):
        if frames is not None:
            conn.connection.add_observer(
                lambda event: passed.append(json.dumps([event.direction.value, event.raw.decode()]))
            )
        reports = await client.run(steps)
    if frames is not None:
        Path(frames).write_text("\n".join(passed))
    print(json.dumps({"steps": reports, "diagnostics": diagnostics, "exit": process.returncode}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames")
    options, rest = parser.parse_known_args()
    asyncio.run(main(*rest, frames=options.frames))
