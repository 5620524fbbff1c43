"""What every operation works on: one hub, who may call, what is connected, and the limits."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from ..hub.hub import Hub
from ..model.discovery import DiscoveredSession
from .auth.browser_logins import Logins
from .auth.callers import Caller
from .auth.rate_limit import Failures
from .auth.secrets import Tickets
from .errors import HttpError
from .frame_cache import FrameCache
from .http.event_frames import Feeds
from .http.idempotency import Repeats
from .limits import Limits

LOGGED_OUT = 1000
"""Logins that have ended which are remembered: only what was under way when they did has to be refused."""

_exchange: ContextVar[Exchange | None] = ContextVar("exchange", default=None)


class Exchange:
    """One request, from the guard's point of view. `cut` says why it was ended from here, if it was; `login` is the
    key of the browser's login that it came by."""

    def __init__(self) -> None:
        self.task = asyncio.current_task()
        self.cut: str | None = None
        self.login: str | None = None
        _exchange.set(self)


class _Held:
    def __init__(self, caller: Caller) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.task: asyncio.Task[Any] = task
        self.caller = caller
        self.exchange = _exchange.get()

    def end(self, reason: str) -> None:
        if self.exchange is not None and self.exchange.cut is None:
            self.exchange.cut = reason
        self.task.cancel()


class Connections:
    """The streams and sockets that are open, by caller, so that they can be counted and cut."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._open: set[_Held] = set()
        self._changed: dict[str, frozenset[str]] = {}
        self._logged_out: dict[str, None] = {}
        self.served = 0

    def __len__(self) -> int:
        return len(self._open)

    def of(self, device_id: str) -> int:
        """How many a device has."""
        return sum(held.caller.device_id == device_id for held in self._open)

    @contextlib.contextmanager
    def hold(self, caller: Caller) -> Iterator[None]:
        """The current task serves a stream until the end of the block, or is cancelled. Raises HttpError 429, 401.

        Who was identified just before its device lost rights must not slip in after that device was cut.
        """
        if len(self._open) >= self._limits.connections:
            raise HttpError(429, "too_many_connections", "the hub has as many open streams as it may")
        if sum(other.caller == caller for other in self._open) >= self._limits.per_caller:
            raise HttpError(429, "too_many_connections", f"{caller.name} has too many open streams")
        self.check(caller)
        held = _Held(caller)
        self._open.add(held)
        self.served += 1
        try:
            yield
        finally:
            self._open.discard(held)

    def check(self, caller: Caller) -> None:
        """Raises HttpError 401 for a caller that has lost rights since it was identified, or whose login has ended."""
        exchange = _exchange.get()
        if exchange is not None and exchange.login in self._logged_out:
            raise HttpError(401, "unauthorized", "this browser was logged out")
        if caller.device_id is not None and self._changed.get(caller.device_id, caller.scopes) != caller.scopes:
            raise HttpError(401, "unauthorized", "what this device may do has changed; connect again")

    def cut(self, device_id: str | None = None, *, scopes: frozenset[str] = frozenset(), reason: str = "closed") -> int:
        """End the streams of a device, which from now on has only these scopes, or all; answers how many."""
        if device_id is not None:
            self._changed[device_id] = scopes
        held = [held for held in self._open if device_id is None or held.caller.device_id == device_id]
        for one in held:
            one.end(reason)
        return len(held)

    def cut_logins(self, keys: Iterable[str]) -> None:
        """End the streams of browsers that were logged out, and let none of theirs begin."""
        self._logged_out.update(dict.fromkeys(keys))
        while len(self._logged_out) > LOGGED_OUT:
            del self._logged_out[next(iter(self._logged_out))]
        for one in list(self._open):
            if one.exchange is not None and one.exchange.login in self._logged_out:
                one.end("revoked")


UPLOADS = 4
"""Files that are received at a time; each is in memory until it is written."""


class Server:
    """A hub that is being served. `url` is where others reach it, for links; without it the request tells.

    `allowed_hosts` are names it answers to beside its addresses, with or without a port; `allowed_origins` other web
    sites whose pages may call it with a token. `discover` asks an agent, which it starts for that, for the sessions
    that it keeps. `clock` counts seconds.
    """

    def __init__(
        self,
        hub: Hub,
        *,
        token: str,
        agents: Callable[[], list[Mapping[str, Any]]] = list,
        discover: Callable[[str], Awaitable[Sequence[DiscoveredSession]]] | None = None,
        default_policy: Any = None,
        limits: Limits | None = None,
        root_path: str = "",
        url: str | None = None,
        allowed_hosts: frozenset[str] = frozenset(),
        allowed_origins: frozenset[str] = frozenset(),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not token:
            raise ValueError("a server without a token would let everybody in")
        self.hub = hub
        self.token = token
        self.agents = agents
        self.discover = discover
        self.default_policy = default_policy
        self.limits = limits or Limits()
        self.root_path = root_path.rstrip("/")
        self.url = url.rstrip("/") if url else None
        self.allowed_hosts = allowed_hosts
        self.allowed_origins = allowed_origins
        self.clock = clock
        self.connections = Connections(self.limits)
        self.frame_cache = FrameCache()
        self.feeds = Feeds(hub.log, self.frame_cache, self.root_path)
        self.repeats = Repeats()
        self.questions: dict[Any, Any] = {}
        """Questions of hooks that wait for their answer; see `hooks`."""
        self.uploads = asyncio.Semaphore(UPLOADS)
        self.failures = Failures(clock)
        self.tickets = Tickets(clock)
        self.logins = Logins(hub.log, token)
        self.naming = asyncio.Lock()
        """Held while a device gets a name, so that no two get the same."""
        self.seen: dict[str, float] = {}
        """When each device's last visit was written down."""
