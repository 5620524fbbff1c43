"""Small functions that programs written for the official SDK import."""

from __future__ import annotations

from typing import Any

from .model import to_wire
from .naming import camel as to_camel_case

__all__ = ["serialize_params", "to_camel_case"]


def serialize_params(params: Any) -> dict[str, Any]:
    """A model as the dict that goes on the wire."""
    wire: dict[str, Any] = to_wire(params)
    return wire
