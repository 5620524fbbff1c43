"""What a probe finds out: a row for each step with its evidence, and the card that is computed from all. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...acp.naming import camel
from ...model.capabilities import ACPCapabilities, ApprovalFeatures, Features

__all__ = ["Outcome", "Report", "Row", "State", "claimed", "flags", "judged"]

State = Literal["yes", "no", "none", "untried"]
"""It works; it was said to, or should, and does not; the agent does not have it; nobody looked, or what was seen shows
nothing."""


class Outcome(NamedTuple):
    """What a step found out; `seen` is the evidence."""

    state: State
    text: str
    seen: str = ""


class Row(Struct, frozen=True, kw_only=True, rename=camel):
    """One step. `sent` and `seen` are the evidence, `ms` how long it took."""

    step: str
    state: State
    text: str
    sent: str = ""
    seen: str = ""
    ms: int | None = None


class Report(Struct, frozen=True, kw_only=True, rename=camel):
    """A whole probe. `card` has what was seen, and is None for an agent that did not even answer `initialize`; `said`
    are the flags that the agent claims, and that were neither seen nor found to be false."""

    agent: str
    version: str
    rows: list[Row]
    card: ACPCapabilities | None = None
    said: list[str] = []

    def state(self, step: str) -> State:
        return next((row.state for row in self.rows if row.step == step), "untried")

    @property
    def is_sound(self) -> bool:
        """Whether nothing failed."""
        return all(row.state != "no" for row in self.rows)


def judged(card: ACPCapabilities, rows: list[Row]) -> ACPCapabilities:
    """The card with what the steps have shown, and without what they have refuted, whatever events there were."""
    states: dict[str, State] = {row.step: row.state for row in rows}
    features = card.features
    control = replace(
        features.session_control,
        cancel=states.get("cancel") == "yes",
        resume="yes" in {states.get("load"), states.get("resume")},
    )
    approval = ApprovalFeatures() if states.get("permission") == "no" else features.approval
    return replace(card, features=replace(features, session_control=control, approval=approval))


def claimed(stated: Features, card: ACPCapabilities, rows: list[Row]) -> list[str]:
    """The flags that an agent only says that it has: nobody tried them."""
    states: dict[str, State] = {row.step: row.state for row in rows}
    tried = {"sessionControl.cancel"}  # the protocol says this of every agent, none says it of itself
    if "untried" not in {states.get("load", "untried"), states.get("resume", "untried")}:
        tried.add("sessionControl.resume")
    return [flag for flag in flags(stated) if flag not in tried and flag not in flags(card.features)]


def flags(features: Features) -> list[str]:
    """The names of all flags that are on, as on the wire: `streaming.messages`, `git`."""
    return list(_on(msgspec.to_builtins(features)))


def _on(values: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _on(value, f"{prefix}{name}.")
        elif value:
            yield prefix + name
