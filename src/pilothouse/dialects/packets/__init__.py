"""Build packets as a dialect: the stream of one turn for web front ends.

`updates` makes packets of updates, answers and errors, `project` of events; `reading` reads them back; `documented`
limits them to the documents' fields; `views` reads a tool's input and output, and finds artifacts; `shapes` holds the
structs and the documents' rules about what a packet shows.
"""

from __future__ import annotations

from ...model.tools import tool_kind
from . import shapes, views
from .project import Projector, packets_from_event
from .reading import PACKETS, read_packet, write_packet
from .shapes import (
    Packet,
    get_file_path,
    is_new_file_operation,
    is_task_tool,
    is_todo_write_tool,
    packet_type,
)
from .updates import (
    packet_from_error,
    packet_from_interruption,
    packet_from_result,
    packet_from_update,
    stop_reason,
)
from .views import FileText, artifact_id, artifacts_of, detect_artifact, input_view, output_view, unwrap_read

__all__ = [
    "PACKETS",
    "FileText",
    "Packet",
    "Projector",
    "artifact_id",
    "artifacts_of",
    "detect_artifact",
    "get_file_path",
    "input_view",
    "is_new_file_operation",
    "is_task_tool",
    "is_todo_write_tool",
    "output_view",
    "packet_from_error",
    "packet_from_interruption",
    "packet_from_result",
    "packet_from_update",
    "packet_type",
    "packets_from_event",
    "read_packet",
    "shapes",
    "stop_reason",
    "tool_kind",
    "unwrap_read",
    "views",
    "write_packet",
]
