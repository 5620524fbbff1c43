"""Names of models: `PROVIDER:NAME`, or `PROVIDER:NAME@URL` for one that is served elsewhere.

The providers are those of pydantic-ai. `openai:NAME@URL` speaks Chat Completions, which most OpenAI-compatible servers
have; `openai-responses:NAME@URL` speaks Responses. It loads no model library.
"""

from __future__ import annotations

import re

import msgspec

SETTING = (
    "Name a model by `pilothouse agent --model PROVIDER:NAME`, in the variable PILOTHOUSE_MODEL, or in config.toml "
    "under `[agent]` as `model`, and set the provider's key, such as ANTHROPIC_API_KEY. Examples: "
    "`anthropic:claude-sonnet-4-5`, `openai:gpt-5`, `google:gemini-2.5-pro`, `ollama:qwen3`, "
    "`openai:NAME@http://127.0.0.1:8000/v1` for any server that speaks OpenAI's interface. "
    "The agent `demo` needs no model."
)
HOW = f"No model is configured. {SETTING}"
MISSING = (
    "No model is configured: name one in PILOTHOUSE_MODEL or config.toml and set its key; "
    "`pilothouse agent --help` says how"
)
_NAME = re.compile(r"([a-z][\w/-]*):([^\s@]+(?:@(?!(?i:https?://))[^\s@]+)*)(?:@((?i:https?)://[^\s]+))?")
_ADDRESS = re.compile(r"@[^@]*(?:/|:\d|\[)|@localhost\b|@\d+\.\d+\.\d+\.\d+", re.IGNORECASE)
"""What somebody meant as an address. Names have an @ too, but before a version, such as `claude-sonnet@20250929`."""


class ModelName(msgspec.Struct, frozen=True):
    """A name taken apart."""

    provider: str
    name: str
    url: str | None = None


def parse(text: str) -> ModelName:
    """Raises ValueError, which says what is expected."""
    found = _NAME.fullmatch(text.strip())
    if found is None:
        raise ValueError(
            f"expected PROVIDER:NAME or PROVIDER:NAME@URL, such as anthropic:claude-sonnet-4-5, got {text!r}"
        )
    if _ADDRESS.search(found[2]):
        # taken for a part of the name, it would be sent to the provider's own address, with all that is said
        raise ValueError(f"expected PROVIDER:NAME@URL with a URL that begins with http:// or https://, got {text!r}")
    return ModelName(found[1], found[2], found[3])


def is_elsewhere(text: str) -> bool:
    """Whether a model is served by somebody else than its provider, on one's own machine perhaps."""
    try:
        name = parse(text)
    except ValueError:
        return False
    return name.url is not None or name.provider == "ollama"


def shown(text: str) -> str:
    """A model's name for people: without its provider, which the value itself has."""
    try:
        name = parse(text)
    except ValueError:
        return text
    return f"{name.name} ({name.provider}{f', {name.url}' if name.url else ''})"
