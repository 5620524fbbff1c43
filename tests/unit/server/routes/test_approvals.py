"""The body of a decision over HTTP."""

from __future__ import annotations

import msgspec

from pilothouse.server.routes.approvals import Decision


def test_an_option_may_have_an_empty_id() -> None:
    assert msgspec.json.decode(b'{"optionId": ""}', type=Decision).option_id == ""
