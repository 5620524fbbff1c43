from __future__ import annotations

import pytest

from pilothouse.server.auth.browser_logins import cookie, cookie_name, values
from pilothouse.server.auth.guard import host_allowed, normal_origin, origin_allowed, own_origin
from pilothouse.server.http.middleware import HTML_POLICY, POLICY, secured
from pilothouse.server.listener import BindRefused, check_bind


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:7717", "localhost:8000", "LOCALHOST", "[::1]", "[::1]:7717"])
def test_names_of_this_machine_are_answered_to(host: str) -> None:
    assert host_allowed(host, "127.0.0.1")


@pytest.mark.parametrize(
    "host",
    [
        *("", "evil.example", "evil.example:7717", "localhost.evil.example", "127.0.0.1.evil.example", "localhost."),
        *("localhost:7717@evil.example", "evil.example#127.0.0.1", "127.0.0.1:", "127.0.0.1:abc", "127.0.0.1:123456"),
        *("[::1", "::1", "0.0.0.0", "192.168.0.9", "2130706433", "0x7f.1", "127.1", "local host", "localhost\t"),
        *("localhost,evil.example", "localhost:7717:7717", "[::1]evil", "лocalhost"),
    ],
)
def test_other_names_are_not(host: str) -> None:
    assert not host_allowed(host, "127.0.0.1")


def test_the_address_at_which_a_connection_arrives_is_answered_to() -> None:
    assert host_allowed("192.168.0.9:7717", "192.168.0.9")
    assert host_allowed("192.168.0.9", "::ffff:192.168.0.9")
    assert host_allowed("[fe80::1]:7717", "fe80::1%eth0")
    assert not host_allowed("192.168.0.10", "192.168.0.9")


def test_configured_names_are_answered_to_with_their_port_if_they_have_one() -> None:
    assert host_allowed("Hub.Example:9", None, {"hub.example"})
    assert host_allowed("hub.example:443", None, {"hub.example:443"})
    assert not host_allowed("hub.example:9", None, {"hub.example:443"})
    assert not host_allowed("sub.hub.example", None, {"hub.example"})


def test_only_pages_of_the_hub_itself_may_call() -> None:
    own = own_origin("http", "127.0.0.1:7717")
    assert origin_allowed("http://127.0.0.1:7717", own)
    for foreign in (
        *("null", "", "http://127.0.0.1", "https://127.0.0.1:7717", "http://localhost:7717", "http://127.0.0.1:7718"),
        *("http://127.0.0.1:7717.evil.example", "http://evil.example", "file://", "http://127.0.0.1:7717/", "*"),
        *("http://127.0.0.1:7717 http://evil.example", "http://user@127.0.0.1:7717", "chrome-extension://abc"),
    ):
        assert not origin_allowed(foreign, own), foreign


def test_ports_that_go_without_saying_are_the_same_origin() -> None:
    assert own_origin("ws", "hub.example") == normal_origin("HTTP://hub.example:80") == "http://hub.example"
    assert own_origin("wss", "hub.example:443") == "https://hub.example"


def test_the_public_url_tells_the_scheme_behind_a_proxy_that_has_the_certificate() -> None:
    assert own_origin("http", "hub.example", "https://hub.example/pilothouse") == "https://hub.example"
    assert own_origin("http", "127.0.0.1:7717", "https://hub.example") == "http://127.0.0.1:7717"


def test_configured_origins_may_call() -> None:
    assert origin_allowed("https://app.example", None, {"https://app.example:443"})
    assert not origin_allowed("https://app.example:8443", None, {"https://app.example"})
    assert not origin_allowed("null", None, {"null", "*"})


def test_every_answer_has_the_headers_and_keeps_its_own() -> None:
    plain = dict(secured([(b"Content-Type", b"application/json")]))
    assert plain[b"content-security-policy"] == POLICY.encode()
    assert (plain[b"x-content-type-options"], plain[b"cache-control"]) == (b"nosniff", b"no-store")
    assert (plain[b"referrer-policy"], plain[b"x-frame-options"]) == (b"no-referrer", b"DENY")
    page = dict(secured([(b"content-type", b"text/html; charset=utf-8"), (b"cache-control", b"private")]))
    assert page[b"content-security-policy"] == HTML_POLICY.encode()
    assert page[b"cache-control"] == b"private"
    framed = dict(secured([(b"content-security-policy", b"sandbox; frame-ancestors 'self'")]))
    assert b"x-frame-options" not in framed
    assert "unsafe-inline" not in HTML_POLICY
    assert "frame-ancestors 'none'" in HTML_POLICY


def test_the_cookie_cannot_be_read_by_scripts_nor_sent_by_other_sites_nor_without_tls_where_there_is_some() -> None:
    assert cookie("a", "b", path="/sub", secure=True) == (
        "a=b; Path=/sub; Max-Age=2592000; HttpOnly; SameSite=Strict; Secure"
    )
    assert cookie("a", None, path="", secure=False) == "a=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict"


def test_two_hubs_on_one_machine_have_two_cookies() -> None:
    assert cookie_name("127.0.0.1:7717") == "pilothouse-7717"
    assert cookie_name("[::1]:7718") == "pilothouse-7718"
    assert cookie_name("hub.example") == cookie_name("[::1]") == "pilothouse"


def test_a_few_cookies_of_our_name_are_looked_at() -> None:
    assert list(values("x=1; a=2;a=3; b=a=4; a=", "a")) == ["2", "3"]
    assert len(list(values("a=1;" * 1000, "a"))) == 4


@pytest.mark.parametrize("host", ["127.0.0.1", "127.5.5.5", "::1", "[::1]", "localhost"])
def test_listening_on_this_machine_needs_nothing(host: str) -> None:
    check_bind(host, tls=False, insecure=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.168.0.9", "hub.example", "localhost.example", "2130706433"])
def test_listening_further_needs_tls_or_a_clear_wish(host: str) -> None:
    with pytest.raises(BindRefused, match="TLS"):
        check_bind(host, tls=False, insecure=False)
    check_bind(host, tls=True, insecure=False)
    check_bind(host, tls=False, insecure=True)
