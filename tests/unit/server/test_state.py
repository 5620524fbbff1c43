from __future__ import annotations

import asyncio

import pytest

from pilothouse.server.auth.callers import ADMIN, SCOPES, Caller, in_order
from pilothouse.server.errors import HttpError
from pilothouse.server.limits import Limits
from pilothouse.server.state import Connections

PHONE = Caller(name="phone", scopes=frozenset({"read"}), device_id="dev_1")
OTHER = Caller(name="other", scopes=frozenset({"read"}), device_id="dev_2")
OWNER = Caller(name="token", scopes=ADMIN)


async def hold(connections: Connections, caller: Caller) -> asyncio.Task[None]:
    """A stream that lasts until it is cut."""
    begun = asyncio.Event()

    async def stream() -> None:
        with connections.hold(caller):
            begun.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(stream())
    await begun.wait()
    return task


async def test_cutting_a_device_ends_its_streams_and_no_others() -> None:
    connections = Connections(Limits())
    tasks = [await hold(connections, caller) for caller in (PHONE, PHONE, OTHER, OWNER)]
    assert connections.of("dev_1") == 2
    assert connections.cut("dev_1") == 2
    await asyncio.wait(tasks[:2])
    assert [task.cancelled() for task in tasks] == [True, True, False, False]
    assert len(connections) == 2
    assert connections.cut() == 2
    await asyncio.wait(tasks)
    assert len(connections) == 0
    assert connections.served == 4


async def test_who_was_identified_before_the_device_was_cut_does_not_slip_in_after() -> None:
    connections = Connections(Limits())
    connections.cut("dev_1")
    with pytest.raises(HttpError) as caught, connections.hold(PHONE):
        pass
    assert caught.value.status == 401
    with connections.hold(OTHER):
        assert len(connections) == 1


async def test_a_device_with_other_scopes_comes_in_with_those_and_not_with_the_old_ones() -> None:
    connections = Connections(Limits())
    connections.cut("dev_1", scopes=frozenset({"approve"}))
    with pytest.raises(HttpError), connections.hold(PHONE):
        pass
    with connections.hold(Caller(name="phone", scopes=frozenset({"approve"}), device_id="dev_1")):
        pass


async def test_one_caller_has_only_so_many_and_all_together_too() -> None:
    connections = Connections(Limits(connections=3, per_caller=2))
    tasks = [await hold(connections, PHONE) for _ in range(2)]
    with pytest.raises(HttpError, match="phone has too many") as caught, connections.hold(PHONE):
        pass
    assert caught.value.status == 429
    tasks.append(await hold(connections, OTHER))
    with pytest.raises(HttpError, match="the hub has as many"), connections.hold(OWNER):
        pass
    connections.cut()
    await asyncio.wait(tasks)


def test_admin_includes_every_scope_and_no_other_scope_includes_one() -> None:
    for has in SCOPES:
        caller = Caller(name="x", scopes=frozenset({has}))
        assert [caller.may(scope) for scope in SCOPES] == [has in ("admin", scope) for scope in SCOPES]
        assert caller.may_grant([has])
        assert caller.may_grant(SCOPES) is (has == "admin")


def test_scopes_are_told_in_order_and_once() -> None:
    assert in_order(["admin", "read", "read", "nonsense"]) == ["read", "admin"]
