"""The hub as a service in this terminal: started once per home, told of, and stopped in steps that are said.

The port is taken before the hub is opened, so that a start which cannot succeed changes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import click
from msgspec import Struct
from msgspec.structs import replace

from ... import __version__
from ...app.composition import open_hub
from ...app.ports import Bound, CannotListen, bind
from ...app.serving import Serving, bound_heap, gone
from ...app.stored_sessions import find_hub
from ...config import Config, ServerConfig, load_config, parse_server, server_settings
from ...hub.hub import Hub
from ...hub.recording.rules import wide_rules_notice
from ...hub.session.session import HubSession
from ...log.errors import LogLocked
from ...model.events import utc_now
from ...model.previews import make_visible
from ...remote.hub import RemoteHub, reach
from ..commands.devices import FROM_A_PHONE, print_qr
from ..exits import Exit, Failure
from ..output import say, short_path
from .background import Launcher, log_to, open_browser

logger = logging.getLogger(__name__)

PATIENCE = 20.0
"""Seconds that a hub which is about to end, or has just begun, has before one that nobody watches is started."""
TRIES = 5
"""How often a start begins anew because something was in its way that is not there any more."""

STARTING = (
    "host",
    "port",
    "root_path",
    "public_url",
    "tls_cert",
    "tls_key",
    "insecure_bind",
    "log_level",
    "log_json",
    "log_file",
)
"""Options for a start; a hub that runs already keeps its own."""


class ServeOptions(Struct, frozen=True, kw_only=True):
    """What was asked for; None is what the configuration says."""

    host: str | None = None
    port: int | None = None
    root_path: str | None = None
    public_url: str | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    insecure_bind: bool = False
    browser: bool = False
    quiet: bool = False
    log_level: str = "warning"
    log_json: bool = False
    log_file: Path | None = None
    detach: bool = False
    held: bool = False


def start(options: ServeOptions, ready: Callable[[], None] | None = None, launcher: Launcher | None = None) -> int:
    """Serve until told to stop; the answer is an exit code. Raises what `exits.reported` explains.

    With `ready`, which is called when the hub can be reached, nobody is there who could be asked or told anything.
    `launcher` is who started it for a use of its own.
    """
    log_to(level=options.log_level, as_json=options.log_json, file=options.log_file)
    config = load_config()
    settings = _settings(config, options)
    bound_heap()
    if ready is None:
        return asyncio.run(_start(config, settings, options))
    return asyncio.run(_detached(config, settings, ready, launcher))


def _settings(config: Config, options: ServeOptions) -> ServerConfig:
    """What the command says goes before the environment, and that before the file. Raises ConfigError."""
    fields = ("host", "port", "root_path", "public_url")
    given = {name: value for name in fields if (value := getattr(options, name)) is not None}
    given |= {name: str(value) for name in ("tls_cert", "tls_key") if (value := getattr(options, name)) is not None}
    return parse_server(replace(server_settings(config), **given))


async def _start(config: Config, settings: ServerConfig, options: ServeOptions) -> int:
    tell: Callable[[str], None] = _ignore if options.quiet else say
    tries = 0
    while True:
        running = await find_hub(config)
        if running is not None:
            await _already(config, running, options)
            return Exit.OK
        try:
            with contextlib.closing(bind(settings, insecure=options.insecure_bind)) as bound:
                await _Service(config, bound, options, tell).run()
                return Exit.OK
        except CannotListen as exc:
            if await find_hub(config) is None:
                raise Failure(str(exc), Exit.USAGE) from exc
        except LogLocked:
            tries += 1
            if tries > TRIES:
                raise
        # another start was quicker, and has the port or the home: that one is told of


async def _detached(
    config: Config, settings: ServerConfig, ready: Callable[[], None], launcher: Launcher | None
) -> int:
    """Serve for programs that cannot do without: whatever keeps it from its port does not keep it from its sockets."""
    if await find_hub(config, patience=PATIENCE) is not None:
        return Exit.OK
    options = ServeOptions(quiet=True)
    wishes, tries = [settings, replace(settings, port=0), None], 0
    while True:
        wanted = wishes[0]
        if wanted is None:
            os.environ.pop("PILOTHOUSE_TOKEN", None)  # a port would have needed it; no agent inherits it
        try:
            with contextlib.ExitStack() as closing:
                bound = closing.enter_context(contextlib.closing(bind(wanted))) if wanted is not None else None
                await _Service(config, bound, options, _ignore, ready, launcher).run()
                return Exit.OK
        except CannotListen as exc:
            logger.warning("%s. It is tried on a free port, else it is served without one", exc)
            if wanted is None:
                raise  # without a port nothing can be in its way
            del wishes[0]
        except LogLocked:
            if await find_hub(config, patience=PATIENCE) is not None:
                return Exit.OK  # another one was quicker
            tries += 1
            if tries > TRIES:
                raise
            # that one has ended meanwhile, as one does whose editor was closed at once: the home is free


def _ignore(text: str) -> None:
    pass


async def _already(config: Config, running: RemoteHub, options: ServeOptions) -> None:
    """A second start: tell of the first."""
    pid = running.place.pid if running.place is not None else None
    if running.url is None:
        raise Failure(
            f"process {pid} runs a session on {config.home} by `pilothouse run`, and only one hub can. Wait for it, "
            "or start `pilothouse serve` first: `run` then uses it",
            Exit.HOME,
        )
    link = await running.login_link()
    if not options.quiet:
        click.echo(f"Pilothouse runs on this home already (process {pid}).")
        _print_facts({"address": running.url, "log in": f"{link['url']} (one browser, once)"})
        if ignored := _without_effect(options):
            have = "has" if len(ignored) == 1 else "have"
            say(f"{', '.join(ignored)} {have} no effect on it; stop it first to start it otherwise.", err=True)
    if options.browser:
        await open_browser(config.home, str(link["url"]))


def _without_effect(options: ServeOptions) -> list[str]:
    """The options given that only a start would use, as they are typed."""
    usual = ServeOptions()
    names = [name for name in STARTING if getattr(options, name) != getattr(usual, name)]
    return [f"--{name.replace('_', '-')}" for name in names]


def _print_facts(facts: dict[str, str]) -> None:
    for name, text in facts.items():
        say(f"  {click.style(f'{name:8}', dim=True)} {text}", hanging=11)


class _Service:
    """From the open hub to the closed one."""

    def __init__(
        self,
        config: Config,
        bound: Bound | None,
        options: ServeOptions,
        say: Callable[[str], None],
        ready: Callable[[], None] | None = None,
        launcher: Launcher | None = None,
    ) -> None:
        self._config = config
        self._ready = ready
        self._launcher = launcher
        self._bound = bound
        self._options = options
        self._say = say
        self._stop = asyncio.Event()
        self._signals = 0
        self._live: Mapping[str, HubSession] = {}

    async def run(self) -> None:
        self._watch_signals()
        async with self._hub() as hub, self._serving(hub) as serving:
            for notice in (*hub.notices, *serving.notices):
                click.echo(make_visible(notice), err=True)
            gc.freeze()  # what was loaded stays; a collection that looked at it would hold up every session
            gc.enable()
            if self._ready is not None:
                self._begin_journal()
                self._ready()
            else:
                await self._greet(serving)
            await self._wait(serving)

    async def _wait(self, serving: Serving) -> None:
        """Until it is to stop. Raises Failure when it cannot go on."""
        ends = {
            asyncio.ensure_future(self._stop.wait()): None,
            asyncio.ensure_future(self._unneeded(serving)): None,
            asyncio.ensure_future(serving.wait()): Failure(
                "the server ended by itself; the log has the reason", Exit.ERROR
            ),
            asyncio.ensure_future(gone(self._config.home, self._config.database)): Failure(
                f"{self._config.home} was deleted or replaced, and the sessions in it are gone; the hub ends", Exit.HOME
            ),
        }
        done, rest = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        for failure in filter(None, (ends[task] for task in done)):
            raise failure

    async def _unneeded(self, serving: Serving) -> None:
        """Until it is known that whoever started this hub is gone without having used it, and nobody else does."""
        if self._launcher is None or await self._launcher.wants_it() or len(serving.server.connections):
            await asyncio.Event().wait()
        logger.warning("whoever started this hub went away before it was there, and nobody else uses it: it ends")

    @contextlib.asynccontextmanager
    async def _hub(self) -> AsyncIterator[Hub]:
        async with open_hub(self._config) as hub:
            self._live = hub.live
            notice = await wide_rules_notice(hub.log)
            if notice is not None:
                click.echo(make_visible(notice), err=True)
            try:
                yield hub
            finally:
                self._say("Closing the log.")
        self._say("Done. Every session can be taken up again.")

    @contextlib.asynccontextmanager
    async def _serving(self, hub: Hub) -> AsyncIterator[Serving]:
        serving = Serving(self._config, hub, self._bound)
        try:
            await serving.__aenter__()
        except OSError as exc:
            raise Failure(f"{self._config.home} can't be served: {exc}", Exit.HOME) from exc
        try:
            yield serving
        finally:
            running = sum(session.agent_pid is not None for session in self._live.values())
            ending = f"{_count(running, 'agent')} and {_count(len(serving.server.connections), 'connection')}"
            self._say(f"\nStopping. Ending {ending}. Ctrl-C again hurries.")
            await serving.__aexit__(None, None, None)

    # -- the greeting --

    def _begin_journal(self) -> None:
        where = self._bound.url if self._bound is not None else "its sockets only"
        click.echo(f"{utc_now()} Pilothouse {__version__} serves {self._config.home} at {where}, process {os.getpid()}")

    async def _greet(self, serving: Serving) -> None:
        own = await reach(self._config.home)
        link = str((await own.login_link())["url"])
        if not self._options.quiet and self._bound is not None:
            await self._print_greeting(own, serving, self._bound, link)
        if self._options.browser:
            await open_browser(self._config.home, link)

    async def _print_greeting(self, own: RemoteHub, serving: Serving, bound: Bound, link: str) -> None:
        ready = [str(agent["name"]) for agent in serving.agents() if agent.get("installed")]
        click.echo(f"{click.style('Pilothouse', bold=True)} {__version__}")
        facts = {
            "address": bound.url,
            "log in": f"{link} (one browser, once, within 5 minutes)",
            "agents": ", ".join(ready) or "none; `pilothouse agents` says how to get some",
            "data": short_path(str(self._config.home)),
        }
        _print_facts(facts)
        if sys.stdout.isatty():
            await self._print_pairing(own, bound)
        click.echo("  Ctrl-C stops it.")

    async def _print_pairing(self, own: RemoteHub, bound: Bound) -> None:
        if bound.is_private:
            _print_facts({"phone": f"only this machine reaches the address. {FROM_A_PHONE}"})
            return
        pairing = await own.start_pairing()
        click.echo()
        print_qr(str(pairing["url"]))
        code = click.style(str(pairing["code"]), bold=True)
        say(f"Pair a phone: scan this and type {code} there. `pilothouse pair` shows another code later.\n")

    # -- signals --

    def _watch_signals(self) -> None:
        if os.name != "posix":
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._signalled)

    def _signalled(self) -> None:
        """The first one stops in order, the second kills the agents, the third gives up waiting."""
        self._signals += 1
        if self._signals == 1:
            self._stop.set()
        elif self._signals == 2:
            self._say("Hurrying: agents are killed.")
            for pid in [session.agent_pid for session in self._live.values()]:
                if pid is not None:
                    _kill(pid)
        else:
            os._exit(Exit.CANCELLED)  # the log is whole at any moment; the next start ends what was open


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _kill(pid: int) -> None:
    """End an agent with all that it started; each has a process group of its own."""
    with contextlib.suppress(OSError):
        group = os.getpgid(pid)
        if group != os.getpgid(0):
            os.killpg(group, signal.SIGKILL)
