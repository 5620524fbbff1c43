"""The client's side of a session: updates folded into what they amount to.

`apply` costs no more than the change it makes: histories only ever grow, so a snapshot is a view of their first n
items, and the table of tool calls is copied only while somebody still holds an earlier snapshot of it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar, overload

import msgspec
from msgspec import Struct

from ..model import to_wire
from ..schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    AvailableCommand,
    AvailableCommandsUpdate,
    CurrentModeUpdate,
    PlanEntry,
    SessionNotification,
    ToolCallLocation,
    ToolCallProgress,
    ToolCallStart,
    ToolCallStatus,
    ToolKind,
    UserMessageChunk,
)

__all__ = [
    "SessionAccumulator",
    "SessionNotificationMismatchError",
    "SessionSnapshot",
    "SessionSnapshotUnavailableError",
    "ToolCallView",
]

T = TypeVar("T")
Subscriber = Callable[["SessionSnapshot", SessionNotification], None]


class SessionNotificationMismatchError(ValueError):
    """A notification of another session came while resets are off."""

    def __init__(self, expected: str, actual: str) -> None:
        super().__init__(f"SessionAccumulator received notification for {actual}, expected {expected}")


class SessionSnapshotUnavailableError(RuntimeError):
    """There is nothing to show before the first notification."""

    def __init__(self) -> None:
        super().__init__("SessionAccumulator has not processed any notifications yet")


class History(Sequence[T], Generic[T]):
    """The first n items of a list that only grows; reads like a tuple."""

    __slots__ = ("_items", "_length")

    def __init__(self, items: list[T]) -> None:
        self._items = items
        self._length = len(items)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...

    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        if isinstance(index, slice):
            return tuple(self._items[i] for i in range(*index.indices(self._length)))
        if not -self._length <= index < self._length:
            raise IndexError(f"index {index} is out of range of {self._length} items")
        return self._items[index if index >= 0 else self._length + index]

    def __iter__(self) -> Iterator[T]:
        items = self._items
        return (items[i] for i in range(self._length))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, (History, tuple, list))
            and len(self) == len(other)
            and all(a == b for a, b in zip(self, other, strict=True))
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(tuple(self))


class FrozenDict(Mapping[str, T], Generic[T]):
    """A dict that its holder cannot change."""

    __slots__ = ("__weakref__", "_data")

    def __init__(self, data: dict[str, T]) -> None:
        self._data = data

    def __getitem__(self, key: str) -> T:
        return self._data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __repr__(self) -> str:
        return repr(self._data)


class ToolCallView(Struct, frozen=True, kw_only=True):
    """A tool call with all its updates merged."""

    tool_call_id: str
    title: str | None = None
    kind: ToolKind | None = None
    status: ToolCallStatus | None = None
    content: tuple[Any, ...] | None = None
    locations: tuple[ToolCallLocation, ...] | None = None
    raw_input: Any = None
    raw_output: Any = None


class SessionSnapshot(Struct, frozen=True, kw_only=True):
    """A session as it stood after one notification; later ones do not change it."""

    session_id: str
    tool_calls: Mapping[str, ToolCallView]
    plan_entries: tuple[PlanEntry, ...]
    current_mode_id: str | None
    available_commands: tuple[AvailableCommand, ...]
    user_messages: Sequence[UserMessageChunk]
    agent_messages: Sequence[AgentMessageChunk]
    agent_thoughts: Sequence[AgentThoughtChunk]

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """The snapshot as plain values."""
        dumped: dict[str, Any] = {name: getattr(self, name) for name in self.__struct_fields__}
        dumped["tool_calls"] = {key: to_wire(view) for key, view in self.tool_calls.items()}
        for name in ("plan_entries", "available_commands", "user_messages", "agent_messages", "agent_thoughts"):
            dumped[name] = [item.model_dump() for item in dumped[name]]
        return dumped


class SessionAccumulator:
    """Merges session notifications into snapshots."""

    def __init__(self, *, auto_reset_on_session_change: bool = True) -> None:
        self._auto_reset = auto_reset_on_session_change
        self._subscribers: list[Subscriber] = []
        self.reset()

    def reset(self) -> None:
        """Forget everything; snapshots taken before keep their state."""
        self.session_id: str | None = None
        self._calls: dict[str, ToolCallView] = {}
        self._calls_view: weakref.ref[FrozenDict[ToolCallView]] | None = None
        self._plan: tuple[PlanEntry, ...] = ()
        self._mode: str | None = None
        self._commands: tuple[AvailableCommand, ...] = ()
        self._user: list[UserMessageChunk] = []
        self._agent: list[AgentMessageChunk] = []
        self._thoughts: list[AgentThoughtChunk] = []

    def subscribe(self, callback: Subscriber) -> Callable[[], None]:
        """Call back after every `apply`; what this returns ends it."""
        self._subscribers.append(callback)

        def unsubscribe() -> None:
            with suppress(ValueError):
                self._subscribers.remove(callback)

        return unsubscribe

    def apply(self, notification: SessionNotification) -> SessionSnapshot:
        """Merge one notification and answer the new snapshot."""
        self._enter(notification.session_id)
        self._merge(notification.update)
        snapshot = self.snapshot()
        for callback in tuple(self._subscribers):
            callback(snapshot, notification)
        return snapshot

    def snapshot(self) -> SessionSnapshot:
        """The session as it is now. Raises SessionSnapshotUnavailableError before the first notification."""
        if self.session_id is None:
            raise SessionSnapshotUnavailableError
        calls = self._calls_view() if self._calls_view is not None else None
        if calls is None:
            calls = FrozenDict(self._calls)
            self._calls_view = weakref.ref(calls)
        return SessionSnapshot(
            session_id=self.session_id,
            tool_calls=calls,
            plan_entries=self._plan,
            current_mode_id=self._mode,
            available_commands=self._commands,
            user_messages=History(self._user),
            agent_messages=History(self._agent),
            agent_thoughts=History(self._thoughts),
        )

    def _enter(self, session_id: str) -> None:
        if self.session_id is not None and self.session_id != session_id:
            if not self._auto_reset:
                raise SessionNotificationMismatchError(self.session_id, session_id)
            self.reset()
        self.session_id = session_id

    def _merge(self, update: Any) -> None:
        if isinstance(update, AgentMessageChunk):
            self._agent.append(_copy(update))
        elif isinstance(update, AgentThoughtChunk):
            self._thoughts.append(_copy(update))
        elif isinstance(update, UserMessageChunk):
            self._user.append(_copy(update))
        elif isinstance(update, (ToolCallStart, ToolCallProgress)):
            self._merge_call(update)
        elif isinstance(update, AgentPlanUpdate):
            self._plan = tuple(_copy(entry) for entry in update.entries)
        elif isinstance(update, CurrentModeUpdate):
            self._mode = update.current_mode_id
        elif isinstance(update, AvailableCommandsUpdate):
            self._commands = tuple(_copy(command) for command in update.available_commands)

    def _merge_call(self, update: ToolCallStart | ToolCallProgress) -> None:
        if self._calls_view is not None:
            if self._calls_view() is not None:
                self._calls = dict(self._calls)
            self._calls_view = None
        # Every message with a tool call id is an upsert: real agents send updates for calls they never announced.
        call_id = update.tool_call_id
        known = None if isinstance(update, ToolCallStart) else self._calls.get(call_id)
        changes: dict[str, Any] = {}
        for name in ("title", "kind", "status", "raw_input", "raw_output"):
            value = getattr(update, name)
            if value is not None:
                changes[name] = value
        for name in ("content", "locations"):
            value = getattr(update, name)
            if value is not None:
                changes[name] = tuple(_copy(item) for item in value)
        if known is None:
            self._calls[call_id] = ToolCallView(tool_call_id=call_id, **changes)
        else:
            self._calls[call_id] = msgspec.structs.replace(known, **changes)


def _copy(value: Any) -> Any:
    """A copy of a model and the models in it, so that a snapshot stays what it was."""
    if isinstance(value, Struct):
        copy = msgspec.structs.replace(value)
        for name in value.__struct_fields__:
            inner = getattr(value, name)
            if isinstance(inner, (Struct, list, dict)):
                setattr(copy, name, _copy(inner))
        return copy
    if isinstance(value, list):
        return [_copy(item) for item in value]
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return value
