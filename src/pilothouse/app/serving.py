"""A hub on sockets: those of its home for its user and editors, and a port for browsers, phones and programs.

A hub that is opened on a home is also served on the home's socket, so that commands in other processes find it. The
address file is written when everything listens and removed before anything closes.

A file can be written to after it was deleted, so a hub whose home was removed would keep running on a log that nothing
can read; it checks for that and stops. Events are short-lived and of all sizes, and glibc keeps ever larger pieces of
freed memory in an arena per thread: the bounds set here return it to the system. Only a program may set them, so the
hub as a library does not.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import secrets
from collections.abc import AsyncIterator, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from msgspec.structs import replace

from ..config import Config, ServerConfig
from ..hub.hub import Hub
from ..model.events import utc_now
from ..remote.place import HAS_SOCKETS, Place, acp_path, clear_place, remove_place, socket_path, write_place
from .agents import AgentList
from .composition import ask_agent
from .ports import Bound, file_path, unusable

_MMAP_THRESHOLD, _TRIM_THRESHOLD, _ARENA_MAX = -3, -1, -8
_BOUNDS = {
    _MMAP_THRESHOLD: 256 << 10,  # larger pieces are the system's, and go back at once; to set it ends the learning
    _TRIM_THRESHOLD: 512 << 10,
    _ARENA_MAX: 2,
}


def bound_heap() -> bool:
    """Set the bounds where the C library has them; true if it has."""
    if "CS_GNU_LIBC_VERSION" not in getattr(os, "confstr_names", ()):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return False
    taken = [mallopt(name, value) for name, value in _BOUNDS.items()]
    return all(taken)


LOOK = 2.0
"""Seconds between two looks, of two system calls each."""


async def gone(*paths: Path) -> None:
    """Wait until one of these, which are there now, is not there any more, or is another one of that name."""
    known = {path: await asyncio.to_thread(path.stat) for path in paths}
    while not await asyncio.to_thread(_are_gone, known):  # noqa: ASYNC110 - nobody tells that a directory was deleted
        await asyncio.sleep(LOOK)


def _are_gone(known: Mapping[Path, os.stat_result]) -> bool:
    return any(_is_gone(path, before) for path, before in known.items())


def _is_gone(path: Path, before: os.stat_result) -> bool:
    try:
        return not os.path.samestat(path.stat(), before)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:  # out of reach for a while, such as on a network
        return False


logger = logging.getLogger(__name__)

HEAD_START = 0.4
"""Seconds that a session has before its hub is served aside: the first words must not wait for the server to be
loaded, and a turn that is over by then needs none."""


class Serving:
    """Serves a hub while it is open; open it by `async with`, inside of the hub. `bound` adds the port.

    Raises OSError and CannotListen when there is no socket to be had, TokenError.
    """

    def __init__(self, config: Config, hub: Hub, bound: Bound | None = None) -> None:
        self._config = config
        self._hub = hub
        self._bound = bound
        self._open = contextlib.AsyncExitStack()
        self.agents = AgentList(config, hub)
        self.server: Any = None
        self._discovering: asyncio.Task[None] | None = None
        self._listener: Any = None
        self.notices: tuple[str, ...] = ()
        """What the owner should be told."""

    async def __aenter__(self) -> Self:
        try:
            await self._listen()
        except BaseException:
            await self._open.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        remove_place(self._config.home)
        # while editors are still there: an agent must not take the loss of its terminal for the end of a program
        await self._hub.end_sessions()
        await self._open.aclose()

    async def wait(self) -> None:
        """Until it ends by itself, which it should not."""
        await self._listener.wait()

    async def _listen(self) -> None:
        await asyncio.to_thread(_load)  # importing all this takes a while, in which the agent can be started
        from ..server.acp.lines import LineListener
        from ..server.app import application
        from ..server.listener import Listener, local_socket, tcp_socket
        from ..server.state import Server

        home, bound = self._config.home, self._bound
        # told of the hub before; who finds it now must not take it for this one
        await asyncio.to_thread(clear_place, home)
        settings = bound.settings if bound is not None else ServerConfig()
        await self.agents.refresh()
        self._hub.look_for = self.agents.look_for
        self._open.push_async_callback(self.agents.close)
        self.server = Server(
            self._hub,
            token=self._token(),
            agents=self.agents,
            discover=partial(ask_agent, self._config),
            default_policy=self._config.policy,
            root_path=settings.root_path,
            url=bound.url if bound is not None else None,
            allowed_hosts=_hosts(settings),
            allowed_origins=frozenset(settings.allowed_origins),
        )
        app = application(self.server)
        place = Place(pid=os.getpid(), started=utc_now())
        if HAS_SOCKETS:
            path = await asyncio.to_thread(socket_path, home)
            own = local_socket(path)
            place = replace(place, socket=str(path))
        else:
            own = tcp_socket("127.0.0.1", 0)
            place = replace(place, host="127.0.0.1", port=own.getsockname()[1])
        listener = Listener(
            app,
            [own, bound.socket] if bound is not None else [own],
            self.server.limits,
            certificate=file_path(settings.tls_cert),
            key=file_path(settings.tls_key),
        )
        try:
            self._listener = await self._open.enter_async_context(listener)
        except OSError as exc:  # somebody else was quicker to listen
            raise unusable(settings, exc) from exc
        if HAS_SOCKETS:
            path = acp_path(path)
            editors = LineListener(self.server, local_socket(path), default_agent=self._config.settings.default_agent)
            await self._open.enter_async_context(editors)
            place = replace(place, acp=str(path))
        if bound is not None:
            place = replace(place, host=place.host or settings.host, port=place.port or bound.port, url=bound.url)
        await asyncio.to_thread(write_place, home, place)
        self._open.push_async_callback(self._end_discovery)
        self._discovering = asyncio.get_running_loop().create_task(self._discover(), name="looking for sessions")

    async def _discover(self) -> None:
        """Aside, and after everything listens: nobody waits for what is found."""
        try:
            await self._hub.discovery.begin()
        except Exception:  # the hub is of use without it
            logger.exception("sessions that were begun elsewhere cannot be looked for")

    async def _end_discovery(self) -> None:
        assert self._discovering is not None
        self._discovering.cancel()
        await asyncio.wait((self._discovering,))

    def _token(self) -> str:
        """The home's token where a port needs one; else one that nobody knows."""
        from ..server.auth.secrets import close_directory, load_token

        if self._bound is None and HAS_SOCKETS:
            self.notices = close_directory(self._config.home)
            return secrets.token_urlsafe(32)
        token = load_token(self._config.home)
        self.notices = token.notices
        return token.value


@contextlib.asynccontextmanager
async def serving_aside(config: Config, hub: Hub) -> AsyncIterator[None]:
    """Serve a hub on its home's socket without anybody waiting for it. That it cannot be served is only told."""
    serving = Serving(config, hub)
    begun = asyncio.Event()

    async def begin() -> None:
        await asyncio.sleep(HEAD_START)
        begun.set()
        await serving.__aenter__()

    opening = asyncio.get_running_loop().create_task(begin(), name="serving the hub")
    opening.add_done_callback(_told)
    try:
        yield
    finally:
        if not begun.is_set():
            opening.cancel()
        await asyncio.wait((opening,))
        if not opening.cancelled() and opening.exception() is None:
            await serving.__aexit__(None, None, None)


def _told(opening: asyncio.Task[None]) -> None:
    if not opening.cancelled() and (error := opening.exception()) is not None:
        logger.warning("other commands cannot reach this hub: %s", error, exc_info=not isinstance(error, OSError))


def _load() -> None:
    from ..server.acp import lines  # noqa: F401


def _hosts(settings: ServerConfig) -> frozenset[str]:
    """Names to answer to: those that are allowed, and the one under which a proxy offers it."""
    public = urlsplit(settings.public_url).netloc if settings.public_url is not None else ""
    return frozenset(filter(None, (*settings.allowed_hosts, public)))
