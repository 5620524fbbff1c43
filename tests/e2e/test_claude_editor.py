"""Claude Code's own program in an editor, by `pilothouse acp`: a few of its cases; `make lab` has them all."""

from __future__ import annotations

import pytest

from tests.lab.claude_cases import (
    talk,
    test_interrupt_during_a_tool,
    test_read_write_edit_and_command,
    test_resume_after_a_restart,
    test_what_is_denied_is_not_on_disk_and_the_turn_goes_on,
    work,
)
from tests.lab.claude_program import agent

__all__ = [
    "agent",
    "talk",
    "test_interrupt_during_a_tool",
    "test_read_write_edit_and_command",
    "test_resume_after_a_restart",
    "test_what_is_denied_is_not_on_disk_and_the_turn_goes_on",
    "work",
]


@pytest.fixture
def way() -> str:
    return "editor"
