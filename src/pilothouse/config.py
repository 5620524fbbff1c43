"""The home directory and its `config.toml`, read into typed values.

    default_agent = "claude"            # what `run` uses without -a

    [agents.mine]                       # an agent of your own, or one of the known ones with other settings
    command = ["python", "agent.py"]
    env = { LOG_LEVEL = "debug" }
    cwd = "~/project"                   # where its sessions work by default
    title = "My agent"

    [agent]                             # the built-in agent, `coder`
    model = "anthropic:claude-sonnet-4-5"

    [policy.autoApprove]                # what new sessions answer without asking
    reads = true

    [server]                            # where `serve` listens
    port = 7717

An unknown key is refused, not passed over: a misspelt `deny` would be a denial that never happens. Errors name the
file, the line where it can be told, and the field. Nothing here starts or opens anything but the file.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Struct

from .model.errors import ValidationError

S = TypeVar("S", bound=Struct)

FILE = "config.toml"
DATABASE = "pilothouse.db"


class ConfigError(Exception):
    """The configuration cannot be used. `line` and `field` are None where they cannot be told."""

    def __init__(self, path: Path, message: str, *, line: int | None = None, field: str | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.line = line
        self.field = field

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else str(self.path)
        return f"{where}: {self.field + ': ' if self.field else ''}{self.args[0]}"


class AgentConfig(Struct, frozen=True, kw_only=True):
    """One agent: the program that speaks ACP, what is added to its environment, where its sessions work by default."""

    command: tuple[str, ...]
    env: dict[str, str] = {}
    cwd: str | None = None
    title: str | None = None


class CoderConfig(Struct, frozen=True, kw_only=True):
    """The built-in agent: its model, others to switch to, and how a session begins.

    `context_window` is for a model of which it is not known; `instructions` are added to what the model is told.
    """

    model: str | None = None
    models: tuple[str, ...] = ()
    mode: Literal["ask", "plan", "code"] = "code"
    context_window: Annotated[int, msgspec.Meta(ge=1000)] | None = None
    instructions: str | None = None


Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]


class ServerConfig(Struct, frozen=True, kw_only=True):
    """Where `pilothouse serve` listens and who may come. `public_url` is its address where a proxy stands before it."""

    host: str = "127.0.0.1"
    port: Port = 7717
    root_path: str = ""
    tls_cert: str | None = None
    tls_key: str | None = None
    public_url: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()


class Settings(Struct, frozen=True, kw_only=True):
    """What the file may say."""

    default_agent: str | None = None
    agents: dict[str, AgentConfig] = {}
    agent: CoderConfig = CoderConfig()
    policy: dict[str, Any] | None = None
    server: ServerConfig = ServerConfig()


class Config(Struct, frozen=True, kw_only=True):
    """The home directory and what its file says."""

    home: Path
    settings: Settings = Settings()

    @property
    def path(self) -> Path:
        return self.home / FILE

    @property
    def database(self) -> Path:
        return self.home / DATABASE

    @property
    def agents(self) -> Mapping[str, AgentConfig]:
        return self.settings.agents

    @property
    def policy(self) -> dict[str, Any] | None:
        return self.settings.policy


def home_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """Where data and configuration are: `PILOTHOUSE_HOME`, else the platform's directory for user data."""
    given = environ.get("PILOTHOUSE_HOME", "").strip()
    if given:
        return Path(given).expanduser().absolute()
    from platformdirs import user_data_path

    return user_data_path("pilothouse", appauthor=False)


def load_config(home: Path | None = None) -> Config:
    """Read the configuration; without a file everything is as it is by default. Raises ConfigError."""
    home = home_directory() if home is None else home
    path = home / FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Config(home=home)
    except (OSError, UnicodeDecodeError) as exc:
        if home.exists() and not home.is_dir():
            raise ConfigError(home, "is a file; the home must be a directory, which PILOTHOUSE_HOME names") from exc
        raise ConfigError(path, f"cannot be read: {exc}") from exc
    return Config(home=home, settings=parse_settings(text, path))


def server_settings(config: Config, environ: Mapping[str, str] = os.environ) -> ServerConfig:
    """Where to serve: what the file says, with the port of `PILOTHOUSE_PORT` if that is set. Raises ConfigError."""
    given = environ.get("PILOTHOUSE_PORT", "").strip()
    if not given:
        return config.settings.server
    if not given.isdecimal() or int(given) > 65535:
        raise ConfigError(Path("PILOTHOUSE_PORT"), f"expected a port, got {given!r}")
    return msgspec.structs.replace(config.settings.server, port=int(given))


def coder_settings(config: Config, environ: Mapping[str, str] = os.environ) -> CoderConfig:
    """The built-in agent's settings: what the file says, with the model of `PILOTHOUSE_MODEL` if that is set."""
    given = environ.get("PILOTHOUSE_MODEL", "").strip()
    return msgspec.structs.replace(config.settings.agent, model=given) if given else config.settings.agent


def parse_server(server: ServerConfig) -> ServerConfig:
    """Settings of the command line, held to the same rules as those of the file. Raises ConfigError."""
    try:
        _check_server(server)
    except _Wrong as wrong:
        option = "--" + wrong.keys[-1].replace("_", "-")
        raise ConfigError(Path(option), wrong.message) from None
    return server


def parse_settings(text: str, path: Path) -> Settings:
    """The settings that a file's text gives. Raises ConfigError."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        found = re.search(r"\(at line (\d+), column \d+\)", str(exc))
        line = int(found[1]) if found else text.count("\n") + 1
        raise ConfigError(path, re.sub(r" \(at .*\)$", "", str(exc)), line=line) from None
    try:
        _refuse_unknown(data, Settings, ())
        for name, agent in _tables(data.get("agents")):
            _refuse_unknown(agent, AgentConfig, ("agents", name))
            _check_command(agent, name)
            _convert(agent, AgentConfig, ("agents", name))
        for _, coder in _tables({"agent": data.get("agent")}):
            _refuse_unknown(coder, CoderConfig, ("agent",))
            _convert(coder, CoderConfig, ("agent",))
        for _, server in _tables({"server": data.get("server")}):
            _refuse_unknown(server, ServerConfig, ("server",))
            _check_server(_convert(server, ServerConfig, ("server",)))
        _check_policy(data.get("policy"))
        return _checked(_convert(data, Settings, ()))
    except _Wrong as wrong:
        field = ".".join(wrong.keys)
        raise ConfigError(path, wrong.message, line=_line_of(text, wrong.keys), field=field) from None


# -- checks -------------------------------------------------------------------------------------------------------


class _Wrong(Exception):
    def __init__(self, keys: tuple[str, ...], message: str) -> None:
        super().__init__(message)
        self.keys = keys
        self.message = message


def _tables(value: Any) -> Iterable[tuple[str, dict[str, Any]]]:
    return [(key, inner) for key, inner in value.items() if isinstance(inner, dict)] if isinstance(value, dict) else []


def _refuse_unknown(table: Mapping[str, Any], kind: type[Struct], where: tuple[str, ...]) -> None:
    known = kind.__struct_encode_fields__
    for key in table:
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"; did you mean `{close[0]}`?" if close else f"; known here: {', '.join(known)}"
            raise _Wrong((*where, key), f"unknown key{hint}")


def _check_command(agent: Mapping[str, Any], name: str) -> None:
    command = agent.get("command")
    where = ("agents", name, "command")
    if command is None:
        raise _Wrong(("agents", name), 'it has no `command`; give one such as ["prog", "--acp"]')
    if isinstance(command, str):
        words = ", ".join(f'"{word}"' for word in command.split())
        raise _Wrong(where, f"expected a list, got a string; write [{words}]")
    if isinstance(command, list) and (not command or not isinstance(command[0], str) or not command[0].strip()):
        raise _Wrong(where, "expected a list that begins with a program")


def _check_policy(policy: Any) -> None:
    if policy is None:
        return
    from .model.policy import parse_policy  # brings the shell parser; most files have no policy

    try:
        parse_policy(policy)
    except ValidationError as exc:
        keys = tuple(re.split(r"\.", exc.path)) if exc.path and exc.path != "policy" else ()
        raise _Wrong(("policy", *keys), exc.reason) from None


def _check_server(server: ServerConfig) -> None:
    root, url = server.root_path, server.public_url
    if root and not re.fullmatch(r"(/[\w.~-]+)+/?", root):
        raise _Wrong(("server", "root_path"), f"expected a path such as /pilothouse, got {root!r}")
    if url is not None and not re.fullmatch(r"https?://[^/\s?#]+(/[^\s?#]*)?", url):
        raise _Wrong(("server", "public_url"), f"expected http://… or https://…, got {url!r}")
    if (server.tls_cert is None) != (server.tls_key is None):
        given = "tls_cert" if server.tls_key is None else "tls_key"
        raise _Wrong(("server", given), "a certificate and its key are needed, tls_cert and tls_key")


def _checked(settings: Settings) -> Settings:
    for name in settings.agents:
        if not re.fullmatch(r"[\w.-]+", name):
            raise _Wrong(("agents", name), "a name has letters, digits, `.`, `-` and `_` only; a `title` may be longer")
    return settings


def _convert(table: Any, kind: type[S], where: tuple[str, ...]) -> S:
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as exc:
        message, keys = _located(str(exc))
        raise _Wrong((*where, *keys), message) from None


def _located(text: str) -> tuple[str, tuple[str, ...]]:
    """What msgspec says, and the field it says it of."""
    message, _, path = text.partition(" - at `")
    keys = re.sub(r"\[\.\.\.\]", "", path.rstrip("`").removeprefix("$")).split(".")
    message = message.replace("`", "").replace("array", "list").replace("object", "table").replace(" str", " string")
    return message[:1].lower() + message[1:], tuple(key for key in keys if key)


_HEADER = re.compile(r"\s*\[\[?\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")


def _line_of(text: str, keys: tuple[str, ...]) -> int | None:
    """The line where a field is set, or the table it would be in begins; a guess by letters, enough to look there."""
    table: tuple[str, ...] = ()
    best: tuple[int, int] | None = None
    plain = tuple(re.sub(r"\[\d*\]?", "", key) for key in keys)
    for number, line in enumerate(text.splitlines(), 1):
        header, key = _HEADER.match(line), _KEY.match(line)
        if header:
            table = _split(header[1])
        here = table if header else (*table, *_split(key[1])) if key else None
        if here and plain[: len(here)] == here and (best is None or len(here) > best[0]):
            best = (len(here), number)
    return best[1] if best else None


def _split(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in re.findall(r""""[^"]*"|'[^']*'|[\w-]+""", dotted))


# -- agents from editors ------------------------------------------------------------------------------------------


class Imported(Struct, frozen=True):
    """What a file of an editor gave: agents by their new names, and why others were passed over."""

    agents: dict[str, AgentConfig]
    skipped: dict[str, str]


def read_editor_agents(path: Path) -> Imported:
    """The agents of Zed's settings (`agent_servers`) or of JetBrains' `acp.json`. Raises ConfigError."""
    try:
        data = msgspec.json.decode(without_comments(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigError(path, f"cannot be read: {exc}") from exc
    except msgspec.DecodeError as exc:
        raise ConfigError(path, f"is no JSON: {exc}") from None
    servers = data.get("agent_servers") if isinstance(data, dict) else None
    if not isinstance(servers, dict):
        raise ConfigError(path, "expected an object of agents", field="agent_servers")
    agents: dict[str, AgentConfig] = {}
    skipped: dict[str, str] = {}
    for title, server in servers.items():
        name = re.sub(r"[^\w.]+", "-", title.lower()).strip("-")
        try:
            if not name or name in agents:
                raise ValueError("its name is empty, or the same as that of another one")
            agents[name] = _editor_agent(server, title if title != name else None)
        except ValueError as exc:
            skipped[title] = str(exc)
    return Imported(agents, skipped)


def _editor_agent(server: Any, title: str | None) -> AgentConfig:
    """Raises ValueError with the reason why it is none."""
    if not isinstance(server, dict):
        raise ValueError("expected an object")  # noqa: TRY004 - one kind of error for whatever is wrong with it
    command, arguments, env = (server.get(key) for key in ("command", "args", "env"))
    if isinstance(command, dict):  # an older form
        command, arguments, env = (command.get(key) for key in ("path", "args", "env"))
    if not isinstance(command, str) or not command:
        raise ValueError("it has no `command`: its editor installs it by itself")
    arguments = arguments if arguments is not None else []
    env = env if env is not None else {}
    if isinstance(arguments, list) and runs_pilothouse([command, *map(str, arguments)]):
        raise ValueError("it is Pilothouse itself")
    if not isinstance(arguments, list) or not all(isinstance(word, str) for word in arguments):
        raise ValueError("`args` is no list of strings")
    if not isinstance(env, dict) or not all(isinstance(value, str) for value in env.values()):
        raise ValueError("`env` is no object of strings")
    return AgentConfig(command=(command, *arguments), env=env, title=title)


def runs_pilothouse(command: Sequence[str]) -> bool:
    """Whether a command is `pilothouse acp`, as a script or by Python: an agent of ours that would lead back to us."""
    if Path(command[0]).name == "pilothouse":
        return list(command[1:2]) == ["acp"]
    return any(list(command[at : at + 3]) == ["-m", "pilothouse.cli", "acp"] for at in range(1, len(command)))


def without_comments(text: str) -> str:
    """JSON as editors write it, made plain: no comments, no comma before a closing bracket."""
    text = re.sub(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', lambda found: found[1] or " ", text, flags=re.DOTALL)
    return re.sub(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', lambda found: found[1] or "", text)


def add_agents(config: Config, agents: Mapping[str, AgentConfig]) -> None:
    """Write agents to the end of the file, which keeps its comments and order. Raises ConfigError.

    The names must not be in it yet, and what is written is read back before it takes the place of the old file.
    """
    path = config.path
    try:
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        text = old + ("\n" if old and not old.endswith("\n\n") else "") + "\n".join(map(_table, agents.items()))
        parse_settings(text, path)
        config.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.{os.getpid()}.new")
        draft.touch(mode=0o600)
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError as exc:
        raise ConfigError(path, f"cannot be written: {exc}") from exc


def _table(item: tuple[str, AgentConfig]) -> str:
    name, agent = item
    lines = [f"[agents.{_string(name)}]", f"command = [{', '.join(map(_string, agent.command))}]"]
    if agent.env:
        pairs = ", ".join(f"{_string(key)} = {_string(value)}" for key, value in agent.env.items())
        lines.append(f"env = {{ {pairs} }}")
    lines += [f"{key} = {_string(value)}" for key in ("cwd", "title") if (value := getattr(agent, key)) is not None]
    return "\n".join(lines) + "\n"


def _string(text: str) -> str:
    """A basic string of TOML; JSON's is one, but for the one control character that JSON leaves as it is."""
    return msgspec.json.encode(text).decode().replace("\x7f", "\\u007f")
