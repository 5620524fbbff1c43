"""What a program of the owner calls itself, by the home's socket."""

from __future__ import annotations

import pytest

from pilothouse.server.auth.identity import own_name


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (b"cli", "cli"),
        (b" --approve-all ", "--approve-all"),
        (b"", "local"),
        (b"x" * 41, "local"),
        (b"a\tb", "local"),
        ("é".encode("latin-1"), "local"),
        (None, "local"),
    ],
)
def test_a_name_is_taken_if_it_is_a_plain_one(given: bytes | None, name: str) -> None:
    headers = [] if given is None else [(b"pilothouse-client", given)]
    assert own_name({"type": "http", "headers": headers}) == name
