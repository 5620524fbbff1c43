"""By what a process is known for one of ours, to whoever looks at it from outside. It loads nothing."""

from __future__ import annotations

HUB = "PILOTHOUSE_HUB"
"""The variable by which a hub marks what it starts, so that a later one finds what a dead one left, and nobody takes it
for somebody else's; its value is the hub's id."""
