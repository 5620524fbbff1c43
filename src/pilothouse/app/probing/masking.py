"""Secrets that an agent says, on stderr above all, and that a card must not repeat.

Known are the values of variables whose names say that they are secret, and the forms that keys are commonly given in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["Mask"]

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
