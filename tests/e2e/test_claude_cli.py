"""Claude Code's own program against a scripted model, under a hub.

`make test` installs it, in a fixed version, below the lab's directory; where it is not there these are skipped.
"""

from __future__ import annotations

import pytest

from tests.lab.claude_cases import *  # noqa: F403
from tests.lab.claude_program import agent

__all__ = ["agent"]


@pytest.fixture
def way() -> str:
    return "hub"
