"""Whether an agent can take what a prompt has in it: text and links always, the rest where it says so.

Images and audio are refused where the agent has not offered to take them, because what it would make of them nobody
knows. A text file that is embedded becomes plain text with its name before it: that loses nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .errors import UnfitContent

__all__ = ["fitted"]

_NEEDS = {"image": "image", "audio": "audio"}


def fitted(blocks: Sequence[Any], capabilities: Mapping[str, Any], agent: str) -> list[Any]:
    """Blocks as on the wire, as such an agent can take them. Raises UnfitContent."""
    offered = capabilities.get("promptCapabilities")
    offers = {name for name, value in offered.items() if value is True} if isinstance(offered, dict) else set()
    return [_fitted(block, offers, agent, place) for place, block in enumerate(blocks)]


def _fitted(block: Any, offers: set[str], agent: str, place: int) -> Any:
    kind = block.get("type") if isinstance(block, dict) else None
    needed = _NEEDS.get(str(kind))
    if needed is not None and needed not in offers:
        raise _refusal(agent, f"{kind}s" if kind == "image" else str(kind), place)
    if kind != "resource" or "embeddedContext" in offers:
        return block
    resource = block.get("resource")
    if not isinstance(resource, dict) or not isinstance(resource.get("text"), str):
        raise _refusal(agent, "embedded files that are no text", place)
    return {"type": "text", "text": f"{resource.get('uri')}:\n{resource['text']}"}


def _refusal(agent: str, what: str, place: int) -> UnfitContent:
    return UnfitContent(f"{agent} takes no {what}; send the prompt without", field=f"prompt[{place}]")
