"""What probes have found out, kept in the home: one small record for each agent, of its last probe."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec
from msgspec import Struct

from ...acp.naming import camel
from .rows import Report, State, flags

__all__ = ["Observed", "recall_probes", "remember_probe"]

FILE = "probes.json"
SHOWN_BY = {
    "sessionControl.cancel": {"cancel"},
    "sessionControl.resume": {"load", "resume"},
    "approval.toolCalls": {"permission"},
    "approval.preview": {"permission"},
    "resources.tokenUsage": {"usage"},
    "resources.costTracking": {"usage"},
    "resources.contextWindow": {"usage"},
}
"""The steps that settle whether a flag is on: what they did not show is not kept from an earlier probe."""


class Observed(Struct, frozen=True, kw_only=True, rename=camel):
    """What an agent was seen to do: the version of it, when, the flags of its card, and how each step went."""

    version: str
    at: str
    capabilities: list[str]
    steps: dict[str, State]


def recall_probes(home: Path) -> dict[str, Observed]:
    """By the agents' names; empty when nothing is known, or what is there cannot be read."""
    with contextlib.suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
        return msgspec.json.decode((home / FILE).read_bytes(), type=dict[str, Observed])
    return {}


def remember_probe(home: Path, report: Report, at: str) -> None:
    """Nothing is kept of an agent that did not answer. What a shorter probe did not try is kept of the same version.

    Raises OSError.
    """
    if report.card is None:
        return
    known = recall_probes(home)
    before = known.get(report.agent)
    steps: dict[str, State] = {row.step: row.state for row in report.rows}
    capabilities = set(flags(report.card.features))
    if before is not None and before.version == report.version:
        untried = {step for step, state in steps.items() if state == "untried"}
        steps |= {step: state for step, state in before.steps.items() if step in untried}
        kept = set(before.capabilities) if untried else set()
        capabilities |= {flag for flag in kept if SHOWN_BY.get(flag, untried) & untried}
    known[report.agent] = Observed(version=report.version, at=at, capabilities=sorted(capabilities), steps=steps)
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = home / f"{FILE}.{os.getpid()}.new"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.encode(known))
    draft.replace(home / FILE)
