"""The result of a probe: a row for each step with its evidence, the card, and the stored copy of the last one.

Secrets are masked: the values of variables whose names look secret, and text in the usual forms of keys.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...acp.naming import camel
from ...model.capabilities import ACPCapabilities, ApprovalFeatures, Features

SHORTEST = 6
"""Characters of a value that can be a secret; a shorter one is in every text."""
HIDDEN = "…"

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)
_FORMS = re.compile(
    r"(?P<name>(?:api[-_ ]?key|token|secret|password|passwd|authorization)[\"']?\s*[:=]\s*[\"']?(?:bearer\s+|basic\s+)?"
    r"|bearer\s+)(?!bearer\b|basic\b)[^\s\"',;]{6,}"
    r"|\b(?:(?:sk|pk|rk|xox[abprs]|glpat)-|(?:gh[pousr]|github_pat|hf)_|ya29\.|AIza|AKIA|ASIA)[\w.-]{12,}"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|(?<=://)[^\s/@:]+:[^\s/@]+(?=@)",
    re.IGNORECASE,
)


class Mask:
    """Takes secrets out of texts; `environments` are those that the agent is started with."""

    def __init__(self, *environments: Mapping[str, str]) -> None:
        values = (value for one in environments for name, value in one.items() if _SECRET_NAME.search(name))
        self._values = sorted({value for value in values if len(value) >= SHORTEST}, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        for value in self._values:
            text = text.replace(value, HIDDEN)
        return _FORMS.sub(lambda found: (found["name"] or "") + HIDDEN, text)


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
