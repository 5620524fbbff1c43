"""Small functions that programs written for the official SDK import."""

from __future__ import annotations

from typing import Any

from .lenient import _camel as to_camel_case
from .model import to_wire

__all__ = ["serialize_params", "to_camel_case"]


def serialize_params(params: Any) -> dict[str, Any]:
    """A model as the dict that goes on the wire."""
    wire: dict[str, Any] = to_wire(params)
    return wire
