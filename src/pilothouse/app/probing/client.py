"""The client that a probed agent speaks with: records its messages, and grants it little.

Each prompt of a probe asks for one thing only, so that an effect can be attributed to it. Files can be read in the
probe's own directory. Permissions are rejected, files not written and programs not run, unless the user passed
`--allow`; and then only the one file and the one `echo` that the agent was asked for, and nothing that looks like them.
Memory is bounded, even for an agent that writes without end.
"""

from __future__ import annotations

import asyncio
import os
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from ...acp.dispatch import Diagnostic
from ...acp.errors import RequestError
from ...adapters.running import RawUpdate
from ...dialects.acp import Translator
from ...hub.client.refusals import Refusal, request_error
from ...hub.client.terminals import Terminals
from ...hub.client.workspace import Workspace
from ...model.capabilities import ACPCapabilities, observe
from ...model.events import ACPEvent

WORD = "pilothouse-probe"
"""Stands in every command and file of a probe."""
COMMAND = f"echo {WORD}"
"""What the agent is told to run."""
FILE = f"{WORD}.txt"
"""What the agent is told to write."""
NOTE = f"{WORD}-note.txt"
"""A file that is there, with a word in it that no prompt has."""
PROMPTS = 5


@dataclass(frozen=True, slots=True)
class Script:
    """`long` must keep the agent busy until it is cancelled."""

    say: str
    read: str
    write: str
    run: str
    long: str


SCRIPT = Script(
    say=f"Answer with the single word {WORD} and nothing else. Use no tools.",
    read=f"Read the file {NOTE} in the current directory and tell me the one word in it. Do nothing else.",
    write=f"Create the file {FILE} in the current directory with the content `hello`. Do nothing else.",
    run=f"Run the shell command `{COMMAND}` and tell me its output. Do nothing else.",
    long="Write a story of two thousand words about a lighthouse. Use no tools.",
)

DEMO_SCRIPT = Script(
    say=f"echo {WORD}", read=f"read {NOTE}", write=f"edit {FILE} hello", run=f"bash {COMMAND}", long="slow 60"
)


SHELLS = {f"{place}{name}" for place in ("", "/bin/", "/usr/bin/") for name in ("sh", "bash", "zsh", "dash")}
RUNS = ("-c", "-lc")
EDITS = ("write", "create")
"""What some agents call `command` in a call that edits a file."""


def is_the_file(directory: Path, path: str) -> bool:
    """Whether it is the file that the agent was told to write, and no other of that name."""
    return os.path.normpath(directory / path) == str(directory / FILE)


def is_the_command(words: Sequence[str]) -> bool:
    """Whether it is the command that the agent was told to run, as it stands or given to a shell."""
    if len(words) == 1:
        words = _split(words[0])
    if len(words) == 3 and words[0] in SHELLS and words[1] in RUNS:
        words = _split(words[2])
    return list(words) == COMMAND.split()


def _split(line: str) -> list[str]:
    """The words of a line; none for what is no line, or no words."""
    try:
        return [] if "\n" in line.strip() else shlex.split(line)
    except ValueError:
        return []


def fits(directory: Path, tool: Any) -> bool:
    """Whether a tool call that permission is asked for is the one thing, by all that it says of itself."""
    commands = [words for words in _commands(tool) if words not in ([name] for name in EDITS)]
    paths = [path for path in _paths(tool) if os.path.normpath(path) != str(directory)]
    if commands:
        return not paths and all(map(is_the_command, commands))
    return bool(paths) and all(is_the_file(directory, path) for path in paths)


def find_strays(directory: Path, tool: Any) -> list[str]:
    """Files of that name elsewhere that a tool call is about."""
    named = (path for path in _paths(tool) if PurePath(path).name == FILE)
    return [path for path in named if not is_the_file(directory, path)]


def _commands(tool: Any) -> Iterator[list[str]]:
    for name, value in _values(tool):
        if name in ("command", "cmd"):
            yield list(map(str, value)) if isinstance(value, list) else [str(value)]


def _paths(tool: Any) -> Iterator[str]:
    """Whatever names a file: what has the name of a path, what begins like one, and the keys that do."""
    for name, value in _values(tool):
        if name.startswith("/"):
            yield name
        if isinstance(value, str) and name not in ("command", "cmd"):
            begins = value.startswith(("/", "~", "../")) and "\n" not in value
            if begins or value == FILE or name.lower().removesuffix("name").endswith(("path", "file")):
                yield value


def _values(tool: Any) -> Iterator[tuple[str, Any]]:
    """Every value of a JSON with the key that it has, or that the list has in which it is."""
    waiting: list[tuple[str, Any]] = [("", tool)]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, dict):
            waiting += ((str(key), one) for key, one in value.items())
        elif isinstance(value, list) and name not in ("command", "cmd"):
            waiting += ((name, one) for one in value)
        yield name, value


REFUSED = "this is a probe: nothing is written or run"
HEARD = 20_000
"""Characters of an agent's words that are kept of a step."""
ASKS = 100
CALL = 64 * 1024
"""Bytes of what an agent tells of a tool call that are looked at when it then asks for it."""
KINDS = 50
OURS = "pilothouse"
"""The namespace of events that are made on this side, which show nothing of an agent."""
RESOURCES = {"resource:token_usage": "tokens", "resource:cost": "cost", "resource:context_window": "context window"}
_decode = msgspec.json.Decoder().decode


class Ask(NamedTuple):
    """Something that the agent asked of its client: what it was about, whether it was what the agent had been told to
    do, and whether it was granted. `strays` are files of the same name elsewhere."""

    method: str
    about: str
    is_told: bool
    granted: bool
    strays: tuple[str, ...] = ()


class ProbeClient:
    """`card` grows by what is seen; `now` gives the time, and `secret` is what only a file has."""

    def __init__(self, directory: Path, now: Callable[[], str], *, allows: bool, secret: str) -> None:
        self._now = now
        self._allows = allows
        self._directory = directory
        self._secret = secret
        self._workspace = Workspace(str(directory))
        self._terminals = Terminals(self._workspace)
        self._translator = Translator("probe", workspace=str(directory))
        self.card: ACPCapabilities | None = None
        self.updates: Counter[str] = Counter()
        self.requests: Counter[str] = Counter()
        self.asks: list[Ask] = []
        """What it asked for since `listen`, in order."""
        self.completed = 0
        """Tool calls that it said were done, of those that run something or are about what it was told to do."""
        self.used: dict[str, str] = {}
        """What it told of its consumption, ever."""
        self._found = False
        self._calls: dict[str, dict[str, Any]] = {}
        self.heard = ""
        """What the agent said in words, since `listen`."""
        self.problems = 0
        self.problem = ""
        """The first thing that it said and that could not be read as it was meant; `problems` counts them."""
        self.stirred = asyncio.Event()
        """Set by whatever the agent does in a turn."""

    @property
    def complaint(self) -> str:
        return f"{self.problems}× what is no message of the protocol, at first: {self.problem}" if self.problems else ""

    @property
    def told(self) -> str:
        """How often it told or asked what, since `listen`."""
        counts = (f"{count}× {kind}" for kind, count in (self.updates + self.requests).items())
        return ", ".join(counts) or "no updates"

    def listen(self) -> None:
        """A step begins: what follows belongs to it."""
        self.problems, self.problem = 0, ""
        self.updates.clear()
        self.requests.clear()
        self.asks.clear()
        self.completed = 0
        self._found = False
        self._calls.clear()
        self.heard = ""
        self.stirred.clear()

    @property
    def knows(self) -> bool:
        """Whether it said, or a tool of it showed, what only the file has."""
        return self._found or self._secret in self.heard

    def asked(self, method: str) -> list[Ask]:
        return [ask for ask in self.asks if ask.method == method]

    async def close(self) -> None:
        await self._terminals.close()

    # -- turns --

    def turn_began(self, turn_id: str) -> None:
        self._see(self._translator.began(self._now(), turn_id=turn_id))

    def turn_ended(self, result: Any) -> None:
        self._see(self._translator.result(result, self._now()))

    # -- what the agent says --

    async def updated(self, session_id: str, update: Raw) -> None:
        self._take(bytes(update))

    def several_updated(self, updates: list[RawUpdate]) -> int:
        for one in updates:
            self._take(bytes(one.update))
        return len(updates)

    def notified(self, method: str, params: Any) -> None:
        self._count(self.requests, method)

    @staticmethod
    def _count(counter: Counter[str], kind: str) -> None:
        kind = kind[:60]
        counter[kind if kind in counter or len(counter) < KINDS else "others"] += 1

    def _note(self, ask: Ask) -> None:
        if len(self.asks) < ASKS:
            self.asks.append(ask)

    def diagnosed(self, diagnostic: Diagnostic) -> None:
        self.problem = self.problem or str(diagnostic)
        self.problems += 1

    def _take(self, source: bytes) -> None:
        try:
            update = _decode(source)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            update = None
        update = update if isinstance(update, dict) else {}
        kind = update.get("sessionUpdate")
        self._count(self.updates, str(kind))
        self._found = self._found or self._secret.encode() in source
        if kind in ("tool_call", "tool_call_update") and len(source) < CALL and len(self._calls) < ASKS:
            self._follow(update)
        content = update.get("content")
        if kind == "agent_message_chunk" and isinstance(content, dict) and len(self.heard) < HEARD:
            self.heard += str(content.get("text", ""))[:HEARD]
        if kind in ("agent_message_chunk", "agent_thought_chunk", "tool_call"):
            self.stirred.set()
        self._see(self._translator.update(source, self._now()))

    def _follow(self, update: dict[str, Any]) -> None:
        """What is told of a tool call, all together."""
        call = self._calls.setdefault(str(update.get("toolCallId")), {})
        call.update(update)
        is_told = call.get("kind") == "execute" or WORD.encode() in msgspec.json.encode(call)
        self.completed += is_told and update.get("status") == "completed"

    def _see(self, events: list[ACPEvent]) -> None:
        for event in events:
            if self.card is not None and getattr(event, "namespace", "") != OURS:
                self.card = observe(self.card, event)
            if event.type in RESOURCES:
                self._use(event)

    def _use(self, event: Any) -> None:
        told = msgspec.to_builtins(getattr(event, "cumulative", {"used": getattr(event, "used", 0)}))
        values = {name: value for name, value in told.items() if value}
        if any(not isinstance(value, str) for value in values.values()):  # a currency alone is no cost
            self.used[RESOURCES[event.type]] = ", ".join(f"{name} {value}" for name, value in values.items())

    # -- what the agent asks --

    async def requested(self, method: str, params: Any, raw: bytes) -> Any:
        self._count(self.requests, method)
        self.stirred.set()
        if method == "session/request_permission":
            return self._permission(params, raw)
        serve = _ROUTES.get(method)
        if serve is None or not isinstance(params, dict):
            raise RequestError.method_not_found(method)
        try:
            return await serve(self, params)
        except Refusal as refusal:
            raise request_error(refusal) from None
        except (KeyError, TypeError, ValueError) as exc:
            raise RequestError.invalid_params({"reason": str(exc)}) from None

    def _permission(self, params: Any, raw: bytes) -> dict[str, Any]:
        request_id = f"probe-{self.requests.total()}"
        self._see(self._translator.permission(raw, self._now(), request_id=request_id))
        asked = params.get("toolCall") if isinstance(params, dict) else None
        asked = asked if isinstance(asked, dict) else {}
        tool = {**self._calls.get(str(asked.get("toolCallId")), {}), **asked}  # some have told of it before
        allowed = self._allows and fits(self._directory, tool)
        # what holds for longer than this once might be kept where the user's own sessions find it
        wanted = "allow_once" if allowed else "reject_once"
        options = params.get("options") if isinstance(params, dict) else None
        offered = [one for one in options if isinstance(one, dict)] if isinstance(options, list) else []
        chosen = next((one.get("optionId") for one in offered if one.get("kind") == wanted), None)
        granted = allowed and chosen is not None
        title = str(tool.get("title") or tool.get("toolCallId"))
        strays = tuple(find_strays(self._directory, tool))
        is_told = WORD.encode() in msgspec.json.encode(tool)
        self._note(Ask("session/request_permission", title[:200], is_told, granted, strays))
        how = "user" if chosen is not None else "cancelled"
        self._see(self._translator.resolve(request_id, self._now(), approved=granted, resolved_by=how))  # type: ignore[arg-type]
        if chosen is None:
            return {"outcome": {"outcome": "cancelled"}}
        return {"outcome": {"outcome": "selected", "optionId": chosen}}

    async def _read(self, params: Mapping[str, Any]) -> Any:
        path = str(params["path"])
        content = None
        try:
            content = await self._workspace.read_text(path, params.get("line"), params.get("limit"))
        finally:
            has_it = content is not None and self._secret in content
            self._note(Ask("fs/read_text_file", path[:200], has_it, content is not None))
        return {"content": content}

    async def _write(self, params: Mapping[str, Any]) -> Any:
        path = str(params["path"])
        is_told = is_the_file(self._directory, path)
        granted = self._allows and is_told
        strays = tuple(find_strays(self._directory, {"path": path}))
        self._note(Ask("fs/write_text_file", path[:200], is_told, granted, strays))
        self._check(granted)
        await self._workspace.write_text(path, str(params["content"]))
        return {}

    async def _create(self, params: Mapping[str, Any]) -> Any:
        words = [str(params["command"]), *map(str, params.get("args") or ())]
        granted = self._allows and is_the_command(words)
        about = " ".join(words)
        self._note(Ask("terminal/create", about[:200], WORD in about, granted))
        self._check(granted)
        limit = params.get("outputByteLimit")
        # in its own environment: a variable could make another program of the one that was allowed
        return {"terminalId": await self._terminals.create(words[0], words[1:], (), params.get("cwd"), limit)}

    async def _output(self, params: Mapping[str, Any]) -> Any:
        output = self._terminals.output(str(params["terminalId"]))
        status = {"exitStatus": _status(output.exit_status)} if output.exit_status is not None else {}
        return {"output": output.text, "truncated": output.truncated, **status}

    async def _wait(self, params: Mapping[str, Any]) -> Any:
        return _status(await self._terminals.wait(str(params["terminalId"])))

    async def _kill(self, params: Mapping[str, Any]) -> Any:
        await self._terminals.kill(str(params["terminalId"]))
        return {}

    async def _release(self, params: Mapping[str, Any]) -> Any:
        await self._terminals.release(str(params["terminalId"]))
        return {}

    def _check(self, granted: bool) -> None:
        if not granted:
            raise RequestError.internal_error({"details": REFUSED})


def _status(status: Any) -> dict[str, Any]:
    return {"exitCode": status.exit_code, "signal": status.signal}


_ROUTES = {
    "fs/read_text_file": ProbeClient._read,
    "fs/write_text_file": ProbeClient._write,
    "terminal/create": ProbeClient._create,
    "terminal/output": ProbeClient._output,
    "terminal/wait_for_exit": ProbeClient._wait,
    "terminal/kill": ProbeClient._kill,
    "terminal/release": ProbeClient._release,
}
