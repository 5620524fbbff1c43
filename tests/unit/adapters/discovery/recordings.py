"""Recorded storage of real agents, and what any reader of it must do."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from pilothouse.acp import schema
from pilothouse.adapters.discovery.store import Problem, Reader, Update
from pilothouse.dialects.acp.translate import Translator

GOLDEN = Path(__file__).parents[3] / "golden" / "discovery"
NOW = "2026-11-16T12:00:00.000Z"


def recorded(name: str, place: Path) -> Path:
    """A copy of recorded files."""
    shutil.copytree(GOLDEN / name, place)
    return place


def rows_of(name: str) -> tuple[list[str], list[tuple[str, dict[str, Any]]]]:
    """A recorded database: the statements that make its tables, and its rows."""
    lines = [json.loads(line) for line in (GOLDEN / name).read_text().splitlines()]
    return [line["sql"] for line in lines if "sql" in line], [(x["table"], x["row"]) for x in lines if "table" in x]


def database(path: Path, tables: Iterable[str], rows: Iterable[tuple[str, dict[str, Any]]] = ()) -> sqlite3.Connection:
    """A database with a log, as its program has it open."""
    path.parent.mkdir(parents=True, exist_ok=True)
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("pragma journal_mode = wal")
    for sql in tables:
        db.execute(sql)
    for table, row in rows:
        put(db, table, row)
    return db


def put(db: sqlite3.Connection, table: str, row: dict[str, Any]) -> None:
    names = ", ".join(f'"{name}"' for name in row)
    marks = ", ".join("?" for _ in row)
    db.execute(f'insert or replace into "{table}" ({names}) values ({marks})', [*row.values()])


def read_all(reader: Reader, problems: list[Problem] | None = None) -> list[Update]:
    """Everything that is new."""
    found: list[Update] = []
    while True:
        step = reader.read()
        if problems is not None:
            problems += step.problems
        if not step.updates:
            return found
        found += step.updates


def told(updates: list[Update], kind: str) -> str:
    """The words of one kind of chunks, one message a line."""
    lines: dict[str, str] = {}
    for update in updates:
        if update["sessionUpdate"] == kind:
            key = update.get("messageId", str(len(lines)))
            lines[key] = lines.get(key, "") + update["content"].get("text", "")
    return "\n".join(line.strip() for line in lines.values())


def ends(updates: list[Update]) -> list[tuple[str, str]]:
    """The tools that were called, and how each call ended."""
    names: dict[str, str] = {}
    found = []
    for update in updates:
        if update["sessionUpdate"] == "tool_call":
            names[update["toolCallId"]] = update["name"]
        if update.get("status") in ("completed", "failed"):
            found.append((names[update["toolCallId"]], update["status"]))
    return found


def damage(path: Path, seed: int) -> None:
    """Change bytes here and there, and cut off the end."""
    chance = random.Random(seed)
    data = bytearray(path.read_bytes())
    for _ in range(40):
        data[chance.randrange(len(data))] = chance.randrange(256)
    path.write_bytes(data[: -chance.randrange(1, 200)])


def is_valid(updates: list[Update]) -> None:
    """Updates are those of the protocol."""
    for update in updates:
        assert msgspec.json.decode(msgspec.json.encode(update), type=schema.SessionUpdate)


def is_sound(updates: list[Update]) -> None:
    """Updates are those of the protocol; a call is announced once and ends once; all of them become events."""
    announced: set[str] = set()
    ended: set[str] = set()
    translator = Translator("s", workspace="/work/project")
    events = []
    is_valid(updates)
    for update in updates:
        data = msgspec.json.encode(update)
        if update["sessionUpdate"] in ("tool_call", "tool_call_update"):
            call = update["toolCallId"]
            assert (call in announced) == (update["sessionUpdate"] == "tool_call_update")
            assert call not in ended
            announced.add(call)
            if update.get("status") in ("completed", "failed"):
                ended.add(call)
        events += translator.update(data, NOW)
    assert announced == ended
    assert not [event for event in events if getattr(event, "event_name", "") in ("diagnostic", "unknown")]
