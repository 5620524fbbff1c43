"""The log of a session as a hub tells it over HTTP, and what stands in it."""

from __future__ import annotations

from typing import Any

from tests.support.editors import Home
from tests.support.http_client import Client

__all__ = ["ended", "prompts_in", "stored", "token_of"]

PAGE = 40
"""Events in a page: few, so that there are many pages."""

Json = dict[str, Any]


def token_of(home: Home) -> str:
    return (home.path / "token").read_text().strip()


async def stored(home: Home, session: str) -> list[Json]:
    """The log of a session, page by page, each event with the update that it came from."""
    client = Client(home.place["port"], token=token_of(home))
    events: list[Json] = []
    while True:
        after = events[-1]["seq"] if events else 0
        target = f"/sessions/{session}/events?after={after}&limit={PAGE}&source=true"
        page = (await client.request("GET", target, headers={"Accept": "application/json"})).json()
        events += page["events"]
        if not page["events"]:
            assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
            return events


def prompts_in(events: list[Json]) -> list[tuple[int, str]]:
    """What users said, each with its seq."""
    said = [event for event in events if event["type"] == "message:complete" and event["role"] == "user"]
    return [(event["seq"], event["content"][0]["text"]) for event in said]


def ended(events: list[Json]) -> list[str]:
    """How each turn ended."""
    return [event["data"]["stopReason"] for event in events if event.get("eventName") == "turn_ended"]
