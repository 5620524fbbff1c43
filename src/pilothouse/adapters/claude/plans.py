"""The agent's list of things to do, as a plan: replaced whole by TodoWrite, kept item by item by the Task tools.

Only the main agent's list is the plan of the session; a sub-agent's own list would overwrite it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .outbox import META, Outbox
from .reading import items, mapping, text
from .tools import Call

__all__ = ["Plans"]

_STATUSES = ("pending", "in_progress", "completed")


class Plans:
    """The plan of a session. It is told when a tool has changed it, not when it is about to."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._items: dict[str, dict[str, str]] = {}
        self._told: list[dict[str, Any]] = []

    def changed(self, call: Call, told: Any) -> None:
        """A call of the main agent ended well."""
        change = _CHANGES.get(call.name)
        if change is None or call.parent is not None:
            return
        change(self, call.given, mapping(told))
        self._tell()

    def clear(self) -> None:
        """The conversation begins again."""
        self._items = {}
        self._tell()

    def _tell(self) -> None:
        entries = [_entry(item) for item in self._items.values() if item["content"]]
        if entries != self._told:
            self._told = entries
            self._outbox.update("plan", entries=entries)

    def _write(self, given: dict[str, Any], told: dict[str, Any]) -> None:
        todos = items(told.get("newTodos")) or items(given.get("todos"))
        self._items = {str(place): _item(todo) for place, todo in enumerate(todos) if isinstance(todo, dict)}

    def _create(self, given: dict[str, Any], told: dict[str, Any]) -> None:
        task = mapping(told.get("task"))
        known = text(task.get("id")) or str(len(self._items) + 1)
        self._items[known] = _item({**given, **{key: value for key, value in task.items() if value}})

    def _update(self, given: dict[str, Any], told: dict[str, Any]) -> None:
        known = text(given.get("taskId"))
        item = self._items.get(known)
        if item is None:
            return
        if given.get("status") == "deleted":
            del self._items[known]
            return
        named = {"content": given.get("subject"), "status": given.get("status"), "active": given.get("activeForm")}
        item.update({key: text(value) for key, value in named.items() if text(value)})

    def _list(self, given: dict[str, Any], told: dict[str, Any]) -> None:
        tasks = [mapping(task) for task in items(told.get("tasks"))]
        found = {text(task.get("id")): task for task in tasks if text(task.get("id"))}
        if found:
            before = self._items
            self._items = {key: {**before.get(key, {}), **_item(task)} for key, task in found.items()}


_CHANGES: dict[str, Callable[[Plans, dict[str, Any], dict[str, Any]], None]] = {
    "TodoWrite": Plans._write,
    "TaskCreate": Plans._create,
    "TaskUpdate": Plans._update,
    "TaskList": Plans._list,
}


def _item(todo: dict[str, Any]) -> dict[str, str]:
    content = text(todo.get("content")) or text(todo.get("subject"))
    return {"content": content, "status": text(todo.get("status")), "active": text(todo.get("activeForm"))}


def _entry(item: dict[str, str]) -> dict[str, Any]:
    """An entry of a plan. The CLI knows no priorities, the protocol wants one."""
    status = item["status"] if item["status"] in _STATUSES else "pending"
    entry: dict[str, Any] = {"content": item["content"], "priority": "medium", "status": status}
    if item["active"] and item["active"] != item["content"]:
        entry["_meta"] = {META: {"activeForm": item["active"]}}
    return entry
