"""A hub in another process: its sessions, approvals, agents and devices."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from ..model.commands import OfferId, Remember
from .errors import ConnectionLost, NoHub
from .http import Address, Client, address_of_url, segment
from .place import Place, read_place
from .session import RemoteSession, decide

NAME = "cli"
DISCOVERY = 60.0
ADOPTION = 180.0
"""Seconds for a look at everything, which may start an agent, and for a long record to be read."""
TOKEN_FILE = "token"  # noqa: S105 - a name, not the secret


class RemoteHub:
    """What a client may do with a hub. Get one by `connect`."""

    def __init__(self, client: Client, place: Place | None = None) -> None:
        self._client = client
        self.place = place

    @property
    def url(self) -> str | None:
        """Where browsers find it; None for one that only its owner's socket leads to."""
        return self.place.url if self.place is not None else str(self._client.address)

    async def health(self) -> dict[str, Any]:
        """`status` and `version`. Raises NoHub."""
        answer: dict[str, Any] = await self._client.request("GET", "/healthz", timeout=5)
        return answer

    async def agents(self) -> list[dict[str, Any]]:
        """Which agents it can run."""
        answer = await self._client.request("GET", "/agents")
        return list(answer["agents"])

    # -- sessions --

    async def sessions(self, **chosen: Any) -> list[dict[str, Any]]:
        """Sessions, the one last active first; `limit`, `status`, `agent`, `cwd`, `archived`, `before` choose."""
        answer = await self._client.request("GET", "/sessions", query=chosen)
        return list(answer["sessions"])

    def session(self, session_id: str, *, agent_name: str = "", cwd: str = "") -> RemoteSession:
        """A session by its id. Whether there is one shows when something is asked of it."""
        return RemoteSession(self._client, session_id, agent_name=agent_name, cwd=cwd)

    async def start_session(
        self, agent: str, cwd: str | Path, *, title: str | None = None, policy: Any = None
    ) -> RemoteSession:
        """A new session. Raises NotFound for the agent, Refused."""
        body: dict[str, Any] = {"agent": agent, "cwd": str(cwd)}
        body |= {key: value for key, value in (("title", title), ("policy", policy)) if value is not None}
        made = await self._client.request("POST", "/sessions", body)
        return self.session(str(made["id"]), agent_name=agent, cwd=str(cwd))

    # -- sessions that were begun elsewhere --

    async def discovered(self, *, agent: str | None = None, refresh: bool = False) -> dict[str, Any]:
        """`sessions` that agents keep on their own, the one last active first, and `problems`. Raises Refused."""
        query = {"agent": agent, "refresh": "true" if refresh else None}
        chosen = {key: value for key, value in query.items() if value is not None}
        answer: dict[str, Any] = await self._client.request("GET", "/discovered", query=chosen, timeout=DISCOVERY)
        return answer

    async def watch(self, agent: str, session_id: str) -> RemoteSession:
        """The session that tells what happens in one of an agent. Raises NotFound, Refused."""
        made = await self._client.request("POST", "/discovered/watch", {"agent": agent, "sessionId": session_id})
        return self.session(str(made["id"]), agent_name=str(made["agent"]), cwd=str(made["cwd"]))

    async def adopt(
        self,
        agent: str,
        session_id: str,
        *,
        how: Literal["resume", "fork", "take_over"] = "resume",
        pid: int | None = None,
    ) -> RemoteSession:
        """Go on with a session of an agent under the hub. Raises NotFound; Conflict with `choices`; Refused."""
        body: dict[str, Any] = {"agent": agent, "sessionId": session_id, "how": how}
        body |= {"pid": pid} if pid is not None else {}
        made = await self._client.request("POST", "/discovered/adopt", body, timeout=ADOPTION)
        return self.session(str(made["id"]), agent_name=str(made["agent"]), cwd=str(made["cwd"]))

    # -- approvals --

    async def approvals(self) -> list[dict[str, Any]]:
        """What waits for a decision, oldest first."""
        answer = await self._client.request("GET", "/approvals")
        return list(answer["approvals"])

    async def decide(
        self,
        approval_id: str,
        *,
        approved: bool | None = None,
        option_id: str | None = None,
        reason: str | None = None,
        by: str | None = None,
        remember: Remember = "once",
        rule: OfferId | None = None,
        answers: Mapping[str, str | list[str]] | None = None,
    ) -> dict[str, Any]:
        """Decide an approval of any session. Raises NotFound, Conflict that names the winner, Refused.

        `rule` is the offered rule that `remember` stores; `answers` are those to the questions of the approval.
        """
        return await decide(
            self._client,
            approval_id,
            approved=approved,
            option_id=option_id,
            reason=reason,
            by=by,
            remember=remember,
            rule=rule,
            answers=answers,
        )

    async def rules(self, *, state: Literal["active", "all"] = "active") -> list[dict[str, Any]]:
        """The rules that answer without asking, oldest first."""
        answer = await self._client.request("GET", "/rules", query={"state": state})
        return list(answer["rules"])

    async def revoke_rule(self, rule_id: str) -> dict[str, Any]:
        """From now on it answers nothing. Raises NotFound."""
        answer: dict[str, Any] = await self._client.request("DELETE", f"/rules/{segment(rule_id)}")
        return answer

    async def narrow_rule(self, rule_id: str) -> dict[str, Any]:
        """Limit a rule of an earlier version to the arguments that were approved. Raises NotFound, Conflict."""
        answer: dict[str, Any] = await self._client.request("POST", f"/rules/{segment(rule_id)}/narrow")
        return answer

    async def keep_rule(self, rule_id: str) -> dict[str, Any]:
        """Confirm a rule of an earlier version as it is. Raises NotFound, Conflict."""
        answer: dict[str, Any] = await self._client.request("POST", f"/rules/{segment(rule_id)}/keep")
        return answer

    # -- browsers and devices --

    async def login_link(self) -> dict[str, Any]:
        """A link that logs one browser in, once."""
        answer: dict[str, Any] = await self._client.request("POST", "/login-links")
        return answer

    async def start_pairing(self, *, name: str | None = None, scopes: Sequence[str] | None = None) -> dict[str, Any]:
        """A ticket for one device, and the code that is shown only here."""
        body: dict[str, Any] = {"name": name} if name is not None else {}
        body |= {"scopes": list(scopes)} if scopes is not None else {}
        answer: dict[str, Any] = await self._client.request("POST", "/pairings", body)
        return answer

    async def pairing(self, pairing_id: str) -> dict[str, Any]:
        """How far a pairing is: `state`, and `deviceId` once it is used. Raises NotFound."""
        answer: dict[str, Any] = await self._client.request("GET", f"/pairings/{segment(pairing_id)}")
        return answer

    async def withdraw_pairing(self, pairing_id: str) -> None:
        await self._client.request("DELETE", f"/pairings/{segment(pairing_id)}")

    async def devices(self) -> list[dict[str, Any]]:
        answer = await self._client.request("GET", "/devices")
        return list(answer["devices"])

    async def revoke(self, device_id: str) -> None:
        """End a device's access, and its open connections at once. Raises NotFound."""
        await self._client.request("DELETE", f"/devices/{segment(device_id)}")


@contextlib.asynccontextmanager
async def connect(
    home: str | Path | None = None, *, url: str | None = None, token: str | None = None, name: str = NAME
) -> AsyncIterator[RemoteHub]:
    """The hub that runs on a home directory, by its owner's socket, or one anywhere by URL and token.

    `name` is what decisions are signed with, by the owner's socket. Raises NoHub when none answers.
    """
    if (home is None) == (url is None):
        raise TypeError("give either `home`, a directory, or a `url`")
    if url is not None:
        hub = RemoteHub(Client(address_of_url(url, token)))
        await hub.health()
    else:
        hub = await reach(Path(str(home)), name=name)
    yield hub


async def reach(home: Path, *, name: str = NAME) -> RemoteHub:
    """The hub that runs on a home directory; it answered. Raises NoHub."""
    place = read_place(home)
    if place is None:
        raise NoHub(f"no hub runs on {home}")
    hub = RemoteHub(Client(find_address(home, place), name=name), place)
    try:
        await hub.health()
    except ConnectionLost as exc:
        raise NoHub(f"the hub of {home} does not answer: {exc}") from exc
    return hub


def find_address(home: Path, place: Place) -> Address:
    """How a hub of this home is spoken to. Raises NoHub when its token cannot be read."""
    if place.socket is not None:
        return Address(socket=place.socket)
    token = os.environ.get("PILOTHOUSE_TOKEN", "").strip()
    try:
        token = token or (home / TOKEN_FILE).read_text().strip()
    except OSError as exc:
        raise NoHub(f"the token of {home} can't be read: {exc}") from exc
    return Address(host=place.host or "127.0.0.1", port=place.port or 0, token=token)
