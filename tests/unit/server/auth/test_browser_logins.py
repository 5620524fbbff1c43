"""What browsers are called."""

from __future__ import annotations

import pytest

from pilothouse.server.auth.browser_logins import browser_name

WEBKIT = "AppleWebKit/537.36 (KHTML, like Gecko)"
APPLE = "AppleWebKit/605.1.15 (KHTML, like Gecko)"


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        (f"Mozilla/5.0 (X11; Linux x86_64) {WEBKIT} Chrome/140.0.0.0 Safari/537.36", "Chrome on Linux"),
        (f"Mozilla/5.0 (X11; Linux x86_64) {WEBKIT} HeadlessChrome/140.0.0.0 Safari/537.36", "Chrome on Linux"),
        (f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {WEBKIT} Chrome/140.0 Safari/537.36 Edg/140.0", "Edge on Windows"),
        (f"Mozilla/5.0 (Linux; Android 10; K) {WEBKIT} Chrome/140.0 Mobile Safari/537.36", "Chrome on Android"),
        (
            f"Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) {APPLE} Version/18.6 Safari/604.1",
            "Safari on iPhone",
        ),
        (
            f"Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) {APPLE} CriOS/140.0 Safari/604.1",
            "Chrome on iPhone",
        ),
        (f"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) {APPLE} Version/18.6 Safari/605.1.15", "Safari on Mac"),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:142.0) Gecko/20100101 Firefox/142.0", "Firefox on Linux"),
        ("Firefox/1", "Firefox"),
        ("curl/8.5.0", "browser"),
        ("policy", "browser"),
        ("", "browser"),
    ],
)
def test_a_browser_is_called_by_its_program_and_its_system(user_agent: str, name: str) -> None:
    assert browser_name(user_agent) == name
