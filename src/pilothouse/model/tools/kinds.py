"""Kinds of four vocabularies, both ways: the protocol's, the Build packets', the bridge's, and event categories."""

from __future__ import annotations

from typing import Literal, get_args

from ..records import ToolCategory
from .names import AcpKind, category_of, known
from .values import text_of

PacketKind = Literal["search", "read", "edit", "execute", "task", "other"]
BridgeKind = Literal["read", "write", "edit", "command", "other"]

ACP_KINDS: frozenset[str] = frozenset(get_args(AcpKind))
PACKET_KINDS: frozenset[str] = frozenset(get_args(PacketKind))
BRIDGE_KINDS: frozenset[str] = frozenset(get_args(BridgeKind))

_TO_ACP: dict[str, AcpKind] = {"write": "edit", "command": "execute", "task": "think"}
_ACP_TO_PACKET: dict[str, PacketKind] = {
    "read": "read", "edit": "edit", "delete": "edit", "move": "edit", "search": "search", "execute": "execute",
}  # fmt: skip
_ACP_TO_BRIDGE: dict[str, BridgeKind] = {
    "read": "read", "search": "read", "edit": "edit", "delete": "edit", "move": "edit", "execute": "command",
}  # fmt: skip
_KIND_CATEGORY: dict[str, ToolCategory] = {
    "read": "file_read", "edit": "file_edit", "delete": "file_write", "move": "file_write", "search": "search",
    "execute": "terminal", "fetch": "web",
}  # fmt: skip
_CATEGORY_KIND: dict[str, AcpKind] = {
    "file_read": "read", "file_write": "edit", "file_edit": "edit", "terminal": "execute", "search": "search",
    "web": "fetch", "agent": "think", "git": "execute",
}  # fmt: skip


def acp_kind(kind_or_name: object) -> AcpKind:
    """The protocol's own kind for a kind of any vocabulary or for a tool's name; `other` when nothing is known."""
    text = text_of(kind_or_name)
    if text in ACP_KINDS:
        return text  # type: ignore[return-value]
    if text in _TO_ACP:
        return _TO_ACP[text]
    tool = known(text)
    return tool.kind if tool else kind_of_category(category_of(text))


def packet_kind(kind_or_name: object) -> PacketKind:
    """The Build packets' kind for a kind of any vocabulary or for a tool's name."""
    text = text_of(kind_or_name)
    if text in PACKET_KINDS:
        return text  # type: ignore[return-value]
    tool = known(text)
    if tool is not None and tool.name == "Task":
        return "task"
    return _ACP_TO_PACKET.get(acp_kind(text), "other")


def bridge_kind(kind: object, name: object = None) -> BridgeKind:
    """The bridge's kind; only the tool's name tells writing a file from editing one."""
    text = text_of(kind)
    tool = known(text_of(name)) if name is not None else None
    if (tool is not None and tool.name == "Write") or text == "write":
        return "write"
    if tool is not None and text in {"", "other"}:
        return _ACP_TO_BRIDGE.get(tool.kind, "other")
    return _ACP_TO_BRIDGE.get(acp_kind(text), "other")


def category_of_kind(kind: object) -> ToolCategory:
    """The category when a kind is all that is known."""
    return _KIND_CATEGORY.get(acp_kind(kind), "other")


def kind_of_category(category: object) -> AcpKind:
    """The protocol's kind when a category is all that is known."""
    return _CATEGORY_KIND.get(text_of(category), "other")
