from __future__ import annotations

import re
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.hub.client.browse import BINARY
from pilothouse.server.http.downloads import HEAD, TEXT, attachment, inert_type


@given(st.text(st.characters(), max_size=400))
def test_a_name_is_only_ever_plain_letters_in_its_header_and_can_be_had_back(name: str) -> None:
    header = attachment(name)
    found = re.fullmatch(r"attachment; filename=\"([A-Za-z0-9._ -]+)\"; filename\*=UTF-8''([A-Za-z0-9._~%-]*)", header)
    assert found is not None
    if len(name.encode("utf-8", "replace")) <= 600:
        assert unquote(found[2]) == name.encode("utf-8", "replace").decode()


@pytest.mark.parametrize(
    ("name", "head", "expected"),
    [
        ("a.txt", b"text", TEXT),
        ("a", b"", TEXT),
        ("a.html", b"<p>", TEXT),
        ("a.svg", b"<svg/>", TEXT),
        ("a.svgz", b"\x1f\x8b\xff", BINARY),
        ("a.js", b"x", TEXT),
        ("a.pdf", b"%PDF\xff", BINARY),
        ("A.PNG", b"\x89", "image/png"),
        ("a.mp4", b"\0", "video/mp4"),
        ("a", b"\0", BINARY),
        ("a", b"\xff", BINARY),
        ("a", b"x" * (HEAD - 1) + "é".encode()[:1], TEXT),
        ("a", b"x" * (HEAD - 9) + b"\xff" + b"x" * 8, BINARY),
        ("a", "é".encode()[:1], BINARY),
    ],
)
def test_a_type_is_one_that_runs_nothing(name: str, head: bytes, expected: str) -> None:
    assert inert_type(name, head) == expected
