"""Names of models: what is understood, what is refused, and what becomes of a name."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.agents.coder.model_names import ModelName, parse, shown
from pilothouse.agents.coder.models import NoKey, resolve
from pilothouse.agents.commands import Failure


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("anthropic:claude-sonnet-4-5", ModelName("anthropic", "claude-sonnet-4-5")),
        ("ollama:qwen3:14b", ModelName("ollama", "qwen3:14b")),
        ("openai:meta/llama@http://localhost:8000/v1", ModelName("openai", "meta/llama", "http://localhost:8000/v1")),
        ("google:a@b@https://x.example/", ModelName("google", "a@b", "https://x.example/")),
        ("gateway/openai:gpt-5", ModelName("gateway/openai", "gpt-5")),
        ("openai:x@HTTP://localhost:8000/v1", ModelName("openai", "x", "HTTP://localhost:8000/v1")),
        ("google-cloud:claude-sonnet@20250929", ModelName("google-cloud", "claude-sonnet@20250929")),
        ("openai:org/model@main", ModelName("openai", "org/model@main")),
        ("  openai:gpt-5 ", ModelName("openai", "gpt-5")),
    ],
)
def test_a_name_is_taken_apart(text: str, name: ModelName) -> None:
    assert parse(text) == name


@pytest.mark.parametrize(
    "text", ["", "test", "gpt-5", "openai:", ":gpt", "openai:gpt 5", "openai:@http://x", "Open AI:x"]
)
def test_what_is_no_name_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="expected PROVIDER:NAME"):
        parse(text)


@pytest.mark.parametrize(
    "place", ["localhost:8000/v1", "127.0.0.1:8000", "10.0.0.7", "localhost", "gpu:8000", "h.example/v1", "ws://h/v1"]
)
def test_an_address_that_is_no_url_is_refused_and_not_sent_to_the_provider(place: str) -> None:
    with pytest.raises(ValueError, match="begins with http:// or https://"):
        parse(f"openai:qwen3@{place}")


def test_a_name_is_shown_with_its_provider_and_address() -> None:
    assert shown("openai:gpt-5") == "gpt-5 (openai)"
    assert shown("openai:x@http://h/v1") == "x (openai, http://h/v1)"
    assert shown("nonsense") == "nonsense"


@pytest.mark.parametrize("text", ["test", "test:x", "function:x", "nobody:model", "nonsense"])
def test_there_are_no_models_for_tests_and_none_of_nobody(text: str) -> None:
    with pytest.raises(Failure) as caught:
        resolve(text)
    assert not isinstance(caught.value, NoKey)


def test_a_model_without_its_key_says_which_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(NoKey, match="set the variable OPENAI_API_KEY and start again") as caught:
        resolve("openai:gpt-5")
    # what the library says is for programmers, and is about a model of its own
    assert "Provider(" not in str(caught.value)
    assert "Agent(" not in str(caught.value)
    assert "`demo` needs neither" in str(caught.value)


def test_a_provider_that_takes_no_address_says_what_does() -> None:
    with pytest.raises(Failure, match=r"write openai:x@http://127\.0\.0\.1:1/v1$"):
        resolve("deepseek:x@http://127.0.0.1:1/v1")


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("openai:x@http://127.0.0.1:1/v1", "OPENAI_API_KEY"),
        ("openai-responses:x@http://127.0.0.1:1/v1", "OPENAI_API_KEY"),
        ("alibaba:x@http://127.0.0.1:1/v1", "DASHSCOPE_API_KEY"),
        ("sambanova:x@http://127.0.0.1:1/v1", "SAMBANOVA_API_KEY"),
        ("google:x@http://127.0.0.1:1", "GEMINI_API_KEY"),
    ],
)
def test_the_key_of_a_provider_is_used_at_another_address_too(
    model: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GOOGLE_API_KEY", "ALIBABA_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, "the-key")
    client: Any = resolve(model).client  # type: ignore[attr-defined]
    used = getattr(client, "api_key", None) or client._api_client.api_key
    assert used == "the-key"


def test_ollama_is_looked_for_where_it_is_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OLLAMA_BASE_URL", raising=False)
    assert str(resolve("ollama:qwen3").base_url).startswith("http://localhost:11434/v1")
    monkeypatch.setenv("OLLAMA_BASE_URL", "http://127.0.0.1:1/v1")
    assert str(resolve("ollama:qwen3").base_url).startswith("http://127.0.0.1:1/v1")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("openai:x@http://127.0.0.1:1/v1", "OpenAIChatModel"),
        ("openai-responses:x@http://127.0.0.1:1/v1", "OpenAIResponsesModel"),
        ("ollama:x@http://127.0.0.1:1/v1", "OllamaModel"),
        ("anthropic:x@http://127.0.0.1:1", "AnthropicModel"),
    ],
)
def test_a_model_at_an_address_needs_no_key(text: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OLLAMA_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    model = resolve(text)
    assert type(model).__name__ == kind
    assert str(model.base_url).startswith("http://127.0.0.1:1")
