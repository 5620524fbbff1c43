"""The records of a log, by noun: `log.sessions`, `log.approvals`, `log.rules`, `log.devices`, `log.turns`,
`log.settings`. They say what may be asked and changed; how it is stored is the log's (`Keeper`), so every
implementation shares them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar, cast

from msgspec import UNSET, UnsetType

from .errors import RecordChanged, UnknownRecord, UnknownSession
from .records import (
    Approval,
    Change,
    DeleteSession,
    Device,
    Insert,
    Outcome,
    Put,
    Record,
    Remove,
    Rule,
    SessionFilter,
    SessionPage,
    SessionRecord,
    Setting,
    Turn,
    Update,
)

R = TypeVar("R", bound=Record)


class Keeper(Protocol):
    """What a log must do with records."""

    @property
    def now(self) -> Callable[[], str]: ...

    async def apply(self, *changes: Change) -> list[Any]:
        """Make all changes in one transaction, or none. Returns their results."""

    async def find(self, kind: type[R], where: Mapping[str, Any]) -> list[R]:
        """The records whose fields equal these (None: empty), oldest first."""

    async def list_sessions(self, chosen: SessionFilter) -> SessionPage:
        """One page of sessions that are not deleted."""


class Store:
    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper

    async def _one(self, change: Change) -> Any:
        return (await self._keeper.apply(change))[0]

    async def _get(self, kind: type[R], *key: Any) -> R | None:
        found = await self._keeper.find(kind, dict(zip(kind.key, key, strict=True)))
        return found[0] if found else None


class Sessions(Store):
    """Metadata of sessions; their events are the log's own.

    `watchers` are called with the id of a session that was created, changed or deleted without an event that would
    tell of it.
    """

    def __init__(self, keeper: Keeper) -> None:
        super().__init__(keeper)
        self.watchers: set[Callable[[str], None]] = set()

    def _told(self, session_id: str) -> None:
        for watcher in self.watchers:
            watcher(session_id)

    async def create(
        self,
        session_id: str,
        *,
        agent: str,
        cwd: str,
        title: str | None = None,
        status: str = "idle",
        agent_session_id: str | None = None,
        policy: dict[str, Any] | None = None,
        meta: dict[str, Any] | None = None,
    ) -> SessionRecord:
        """Raises RecordExists, also when a deleted session had this id."""
        now = self._keeper.now()
        record = SessionRecord(
            id=session_id,
            agent=agent,
            cwd=cwd,
            title=title,
            status=status,
            agent_session_id=agent_session_id,
            policy=policy,
            meta=meta or {},
            created=now,
            updated=now,
        )
        created = cast(SessionRecord, await self._one(Insert(record)))
        self._told(session_id)
        return created

    async def get(self, session_id: str) -> SessionRecord:
        """Raises UnknownSession."""
        found = await self._get(SessionRecord, session_id)
        if found is None or found.deleted is not None:
            raise UnknownSession(session_id)
        return found

    async def list(
        self,
        *,
        agent: str | None = None,
        cwd: str | None = None,
        status: str | None = None,
        archived: bool | None = False,
        text: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> SessionPage:
        """A page of sessions, the one last active first; give its `next` as `before` for the following page."""
        chosen = SessionFilter(
            agent=agent, cwd=cwd, status=status, archived=archived, text=text, before=before, limit=limit
        )
        return await self._keeper.list_sessions(chosen)

    def updating(
        self,
        session_id: str,
        *,
        title: str | UnsetType | None = UNSET,
        status: str | UnsetType = UNSET,
        agent_session_id: str | UnsetType | None = UNSET,
        cwd: str | UnsetType = UNSET,
        policy: dict[str, Any] | UnsetType | None = UNSET,
        meta: dict[str, Any] | UnsetType = UNSET,
        archived: bool | UnsetType = UNSET,
    ) -> Update[SessionRecord]:
        """The change that `update` makes, to be committed with a batch of events (`append(..., also=[…])`)."""
        now = self._keeper.now()
        given = {
            "title": title,
            "status": status,
            "agent_session_id": agent_session_id,
            "cwd": cwd,
            "policy": policy,
            "meta": meta,
            "archived": archived if archived is UNSET else (now if archived else None),
        }
        values = {name: value for name, value in given.items() if value is not UNSET}
        return Update(SessionRecord, (session_id,), {**values, "updated": now}, where={"deleted": None}, strict=True)

    async def update(self, session_id: str, **values: Any) -> SessionRecord:
        """Set those fields that are given, as `updating` names them. Raises UnknownSession."""
        try:
            outcome: Outcome[SessionRecord] = await self._one(self.updating(session_id, **values))
        except (UnknownRecord, RecordChanged):
            raise UnknownSession(session_id) from None
        self._told(session_id)
        return outcome.record

    async def delete(self, session_id: str) -> None:
        """Delete a session with its events, approvals and turns. Its followers end. Raises UnknownSession."""
        await self._one(DeleteSession(session_id, self._keeper.now()))
        self._told(session_id)


class Approvals(Store):
    """Durable questions. The first decision wins, and everybody is told which one that was."""

    async def add(self, approval: Approval) -> Approval:
        """To commit it with the events that tell of it: `append(..., also=[Insert(approval)])`."""
        return cast(Approval, await self._one(Insert(approval)))

    async def get(self, approval_id: str) -> Approval:
        """Raises UnknownRecord."""
        found = await self._get(Approval, approval_id)
        if found is None:
            raise UnknownRecord(Approval.table, (approval_id,))
        return found

    def resolving(
        self, approval_id: str, decision: dict[str, Any], *, decided_by: str, strict: bool = True
    ) -> Update[Approval]:
        """The change that `resolve` makes, for `also`: RecordChanged, and nothing written, when somebody was first."""
        values = {"decision": decision, "decided_by": decided_by, "resolved": self._keeper.now()}
        return Update(Approval, (approval_id,), values, where={"resolved": None}, strict=strict)

    async def resolve(self, approval_id: str, decision: dict[str, Any], *, decided_by: str) -> Outcome[Approval]:
        """Decide, if nobody has. Either way the record is the winner's; `changed` says whether this was it.

        Raises UnknownRecord.
        """
        change = self.resolving(approval_id, decision, decided_by=decided_by, strict=False)
        return cast(Outcome[Approval], await self._one(change))

    async def pending(self, session_id: str | None = None) -> list[Approval]:
        """What waits for a decision, oldest first."""
        return await self._keeper.find(Approval, {"resolved": None} | _session(session_id))

    async def list(self, session_id: str | None = None) -> list[Approval]:
        return await self._keeper.find(Approval, _session(session_id))


class Rules(Store):
    """The "always" answers that the hub holds."""

    async def add(self, rule: Rule) -> Rule:
        return cast(Rule, await self._one(Insert(rule)))

    async def active(self) -> list[Rule]:
        """Those that answer now."""
        now = self._keeper.now()
        return [rule for rule in await self._keeper.find(Rule, {"revoked": None}) if rule.active(now)]

    def hitting(self, rule_id: str) -> Update[Rule]:
        """The change that `hit` makes, for `also`."""
        return Update(Rule, (rule_id,), {"last_hit": self._keeper.now()}, counts={"hits": 1})

    async def hit(self, rule_id: str) -> Rule:
        """The rule answered something. Raises UnknownRecord."""
        return cast(Rule, (await self._one(self.hitting(rule_id))).record)

    async def revoke(self, rule_id: str) -> Rule:
        """From now on it answers nothing. Raises UnknownRecord."""
        change = Update(Rule, (rule_id,), {"revoked": self._keeper.now()}, where={"revoked": None})
        return cast(Rule, (await self._one(change)).record)

    async def list(self, *, scope: str | None = None, scope_key: str | None = None) -> list[Rule]:
        """All rules, also those expired or revoked, oldest first."""
        given = {"scope": scope, "scope_key": scope_key}
        return await self._keeper.find(Rule, {name: value for name, value in given.items() if value is not None})


class Devices(Store):
    """Paired consumers."""

    async def add(self, device: Device) -> Device:
        return cast(Device, await self._one(Insert(device)))

    async def get(self, device_id: str) -> Device:
        """Raises UnknownRecord."""
        found = await self._get(Device, device_id)
        if found is None:
            raise UnknownRecord(Device.table, (device_id,))
        return found

    async def by_credential(self, credential: str) -> Device | None:
        """The device with this hash, unless it was revoked."""
        found = await self._keeper.find(Device, {"credential": credential, "revoked": None})
        return found[0] if found else None

    async def list(self) -> list[Device]:
        return await self._keeper.find(Device, {})

    async def seen(self, device_id: str) -> Device:
        """It was here just now. Raises UnknownRecord."""
        change = Update(Device, (device_id,), {"last_seen": self._keeper.now()})
        return cast(Device, (await self._one(change)).record)

    async def change(self, device_id: str, **values: Any) -> Device:
        """Give it another name, or other scopes. Raises UnknownRecord."""
        return cast(Device, (await self._one(Update(Device, (device_id,), values))).record)

    async def revoke(self, device_id: str) -> Device:
        """Its credential is worth nothing from now on. Raises UnknownRecord."""
        change = Update(Device, (device_id,), {"revoked": self._keeper.now()}, where={"revoked": None})
        return cast(Device, (await self._one(change)).record)


class Turns(Store):
    """Which turn a client's request became; sending it again must not start another."""

    def claiming(
        self, session_id: str, client_request_id: str, turn_id: str, digest: str | None = None
    ) -> Insert[Turn]:
        """The change for `also`: RecordExists when the request is known, and nothing is written."""
        return Insert(self._turn(session_id, client_request_id, turn_id, digest))

    async def claim(self, session_id: str, client_request_id: str, turn_id: str) -> str:
        """The turn of this request: `turn_id`, or the one that had it first. Raises UnknownSession."""
        turn = self._turn(session_id, client_request_id, turn_id)
        return cast(Turn, await self._one(Insert(turn, keep=True))).turn_id

    async def get(self, session_id: str, client_request_id: str) -> str | None:
        found = await self.record(session_id, client_request_id)
        return found.turn_id if found else None

    async def record(self, session_id: str, client_request_id: str) -> Turn | None:
        return await self._get(Turn, session_id, client_request_id)

    def _turn(self, session_id: str, client_request_id: str, turn_id: str, digest: str | None = None) -> Turn:
        return Turn(
            session_id=session_id,
            client_request_id=client_request_id,
            turn_id=turn_id,
            created=self._keeper.now(),
            digest=digest,
        )


class Settings(Store):
    """Values under names."""

    async def get(self, name: str, default: Any = None) -> Any:
        found = await self._get(Setting, name)
        return default if found is None else found.value

    async def set(self, name: str, value: Any) -> None:
        await self._one(Put(Setting(name=name, value=value, updated=self._keeper.now())))

    async def remove(self, name: str) -> bool:
        """Whether it was there."""
        return cast(bool, await self._one(Remove(Setting, (name,))))

    async def all(self) -> dict[str, Any]:
        return {setting.name: setting.value for setting in await self._keeper.find(Setting, {})}


def _session(session_id: str | None) -> dict[str, Any]:
    return {} if session_id is None else {"session_id": session_id}


def page_key(session: SessionRecord, number: int) -> str:
    """Where a page of sessions ended."""
    return f"{session.updated}~{number}"


def read_page_key(text: str) -> tuple[str, int]:
    """Raises ValueError for what was never a page's `next`."""
    updated, _, number = text.rpartition("~")
    if not updated or not number.isdecimal():
        raise ValueError(f"`before` is the `next` of a page; got {text!r}")
    return updated, int(number)
