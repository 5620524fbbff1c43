"""What a tool call is, whichever agent made it: its name, its category, its kind, and what its input says.

Agents spell the same tool in many ways and change a call's title while it runs. `names` holds the spellings
and translates between vocabularies of kinds, `identity` weighs the evidence, `commands` and `inputs` read commands,
paths, to-do lists and questions, `harmless` lists calls that need no permission.
Nothing here raises on what an agent sends.
"""

from __future__ import annotations

from .identity import Evidence, ToolIdentity, identify, tool_kind
from .inputs import (
    command_text,
    describe_tool_call,
    exact_path,
    file_paths,
    is_plan_mode,
    patch_text,
    questions_of,
    relative_path,
    relative_paths_in_text,
    todos_of,
)
from .names import (
    ACP_KINDS,
    BRIDGE_KINDS,
    PACKET_KINDS,
    AcpKind,
    BridgeKind,
    PacketKind,
    acp_kind,
    bridge_kind,
    canonical_name,
    categorize_tool,
    category_of_kind,
    chooses_mode,
    kind_of_category,
    packet_kind,
)

__all__ = [
    "ACP_KINDS",
    "BRIDGE_KINDS",
    "PACKET_KINDS",
    "AcpKind",
    "BridgeKind",
    "Evidence",
    "PacketKind",
    "ToolIdentity",
    "acp_kind",
    "bridge_kind",
    "canonical_name",
    "categorize_tool",
    "category_of_kind",
    "chooses_mode",
    "command_text",
    "describe_tool_call",
    "exact_path",
    "file_paths",
    "identify",
    "is_plan_mode",
    "kind_of_category",
    "packet_kind",
    "patch_text",
    "questions_of",
    "relative_path",
    "relative_paths_in_text",
    "todos_of",
    "tool_kind",
]
