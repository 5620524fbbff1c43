"""Rules about web pages: an origin allows only what every program reads as that origin, and denies generously."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.acp.errors import ValidationError
from pilothouse.model.policy import Rule, decide, parse_policy
from pilothouse.model.policy.web import parse_origin, url_origin

ALLOW = Rule("allow", "web", "https://example.com")
DENY = Rule("deny", "web", "https://example.com")


def outcome(rule: Rule, raw: Any, name: str = "WebFetch") -> str:
    return decide([rule], name, raw, "/work/app").outcome


@pytest.mark.parametrize(
    "raw",
    [
        {"url": "https://example.com"},
        {"url": "https://example.com/"},
        {"url": "https://example.com:443/a"},
        {"url": "HTTPS://EXAMPLE.COM/A?b=c&d=%20#e"},
        {"url": "https://example.com/a", "prompt": "What does it say?"},
        {"url": "https://example.com/a", "format": "markdown", "timeout": 30, "maxLength": 5, "raw": True},
        {"uri": "https://example.com/a", "prompt": None},
        {"url": "https://example.com/@ann/b@c"},
    ],
)
def test_an_origin_covers_its_pages(raw: dict[str, Any]) -> None:
    assert outcome(ALLOW, raw) == "allow"
    assert outcome(DENY, raw) == "deny"


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/",
        "https://example.com:8443/",
        "https://www.example.com/",
        "https://example.com.evil.example/",
        "https://evil-example.com/",
        "https://example.co/",
        "https://example.com@evil.example/",
        "https://example.com:443@evil.example/",
        "https://ann@example.com/",
        "https://ann:secret@example.com/",
        "https://example.com\\@evil.example/",
        "https:\\\\example.com/",
        "https:/example.com/",
        "https:example.com",
        "//example.com/",
        "example.com/",
        "https://example.com./",
        "https://example.com../",
        "https://.example.com/",
        "https://example..com/",
        "https://example.com#@evil.example/",
        "https://example.com?@evil.example/",
        "https://example.com;evil.example/",
        "https://example.com%2eevil.example/",
        "https://example.com%00.evil.example/",
        "https://ex\u0430mple.com/",
        "https://example\u3002com/",
        "https://\uff45xample.com/",
        "https://example.com\u200b/",
        "https://example.\u212aom/",
        " https://example.com/",
        "https://example.com/ ",
        "https://example.com/\n",
        "https://exam\tple.com/",
        "https://example.com/a b",
        "https://example.com/\\..\\x",
        "https://example.com/\u2028",
        "https://example.com:/",
        "https://example.com:0443/",
        "https://example.com:443443/",
        "https://example.com:70000/",
        "https://example.com:4\u06643/",
        "ftp://example.com/",
        "file://example.com/etc/passwd",
        "javascript:https://example.com/",
        "https://",
        "",
        "https://example.com/" + "x" * 10_000,
    ],
)
def test_any_other_url_is_not_covered(url: str) -> None:
    assert outcome(ALLOW, {"url": url}) == "ask"


@pytest.mark.parametrize(
    "extra",
    [
        {"uri": "https://evil.example"},
        {"URL": "https://evil.example"},
        {"urls": ["https://evil.example"]},
        {"prompt": "then open https://evil.example"},
        {"prompt": "then open www.evil.example"},
        {"prompt": "//evil.example"},
        {"prompt": ["x"]},
        {"prompt": {"url": "https://evil.example"}},
        {"method": "POST"},
        {"body": "x"},
        {"headers": {"Authorization": "x"}},
        {"proxy": "evil.example"},
        {"output_path": "a"},
        {"pr\u043empt": "x"},
        {"command": "rm x"},
        {"input": {"url": "https://evil.example"}},
    ],
)
def test_a_fetch_with_further_arguments_is_not_covered(extra: dict[str, Any]) -> None:
    assert outcome(ALLOW, {"url": "https://example.com/", **extra}) == "ask"


@pytest.mark.parametrize("raw", [None, {}, [], "https://example.com", {"url": None}, {"url": 7}, {"prompt": "x"}])
def test_a_call_without_an_address_is_not_covered(raw: Any) -> None:
    assert outcome(ALLOW, raw) == "ask"


@pytest.mark.parametrize("name", ["mcp__fetch__fetch", "WebSearch", "Read", "Web\u200bFetch", "Task", "Bash"])
def test_an_origin_covers_only_tools_that_fetch(name: str) -> None:
    assert outcome(ALLOW, {"url": "https://example.com/"}, name) == "ask"


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com./",
        "https://EXAMPLE.com",
        "https://ann@example.com/",
        "https://example.com\\@other.example/",
        "https://other.example\\@example.com/",
        "https:\\\\example.com/",
        "https:/example.com/",
        "https:example.com",
        "//example.com/x",
        "example.com/x",
        "https://exam\tple.com/",
        " https://example.com/ ",
        "https://\uff45xample.com/",
        "https://example\u3002com/",
        "https://example.com:0443/",
        "https://%65xample.com/",
        "https://example.com?x",
        "https://example.com#x",
        "https://exam\u200bple.com",
    ],
)
def test_a_denied_origin_is_recognised_however_it_is_written(url: str) -> None:
    assert outcome(DENY, {"url": url}) == "deny"
    everything = Rule("allow", "tools", "*")
    assert decide([DENY, everything], "WebFetch", {"url": url}).outcome == "deny"
    assert decide([DENY, everything], "mcp__fetch__fetch", {"url": url}).outcome == "deny"


def test_a_denied_origin_is_found_in_a_prompt_and_in_lists() -> None:
    assert outcome(DENY, {"prompt": "Read https://example.com, then stop."}) == "deny"
    assert outcome(DENY, {"prompt": "one\nhttps://example.com\ntwo"}) == "deny"
    assert outcome(DENY, {"urls": [{"url": "https://example.com/x"}]}) == "deny"


@pytest.mark.parametrize("url", ["https://other.example/", "https://www.example.com/", "http://example.com:8080/", "x"])
def test_a_denied_origin_leaves_others_alone(url: str) -> None:
    assert decide([DENY, Rule("allow", "tools", "*")], "WebFetch", {"url": url}).outcome == "allow"


def test_a_text_about_a_denied_origin_is_not_an_address() -> None:
    raw = {"title": "See https://example.com", "link": "https://other.example"}
    assert decide([DENY, Rule("allow", "tools", "*")], "mcp__issues__create", raw).outcome == "allow"


def test_rules_about_the_whole_web_deny_and_never_allow() -> None:
    assert outcome(Rule("deny", "web"), {"url": "https://example.com"}) == "deny"
    assert outcome(Rule("allow", "web"), {"url": "https://example.com"}) == "ask"


def test_a_policy_lists_origins() -> None:
    policy = {"autoApprove": {"web": ["https://Docs.Example.com/", "http://localhost:3000"], "tools": ["mcp__*"]}}
    assert decide(policy, "WebFetch", {"url": "https://docs.example.com/a"}).outcome == "allow"
    assert decide(policy, "WebFetch", {"url": "http://localhost:3000/"}).outcome == "allow"
    assert decide(policy, "WebFetch", {"url": "https://example.com/a"}).outcome == "ask"
    assert decide(
        {**policy, "deny": {"web": ["http://localhost:3000"]}}, "WebFetch", {"url": "http://localhost:3000/"}
    ) == (
        decide(
            [Rule("deny", "web", "http://localhost:3000", "deny.web[0]")], "WebFetch", {"url": "http://localhost:3000/"}
        )
    )


@pytest.mark.parametrize(
    "origin",
    [
        "example.com",
        "*.example.com",
        "https://*.example.com",
        "https://example.com/a",
        "https://a@b.example",
        "https://",
    ],
)
def test_a_policy_rejects_an_invalid_origin(origin: str) -> None:
    with pytest.raises(ValidationError) as caught:
        parse_policy({"autoApprove": {"web": [origin]}})
    assert caught.value.path == "autoApprove.web[0]"
    with pytest.raises(ValidationError):
        parse_policy({"deny": {"web": True}})


@given(st.text(alphabet="htps:/\\@.#?%exampl.com0123[]\t -_", max_size=40))
def test_a_url_has_at_most_the_origin_that_it_begins_with(url: str) -> None:
    origin = url_origin(url)
    if origin is not None:
        assert parse_origin(origin) == origin
        host = origin.partition("://")[2].rpartition(":")[0] if origin.count(":") == 2 else origin.partition("://")[2]
        assert url.lower().split("/")[2].partition(":")[0] == host or "[" in host
        assert not {"@", "\\", " ", "\t"} & set(url.split("/")[2])
