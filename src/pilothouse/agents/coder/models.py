"""Names of models, and the models of pydantic-ai that they stand for.

A name is `PROVIDER:NAME`, or `PROVIDER:NAME@URL` for one that is served elsewhere. The providers are those of
pydantic-ai. `openai:NAME@URL` speaks Chat Completions, which most OpenAI-compatible servers have;
`openai-responses:NAME@URL` speaks Responses.
"""

from __future__ import annotations

import inspect
import os
import re
from typing import Any

import msgspec
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.providers import infer_provider_class

from ..commands import Failure

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


KEYS = {
    "openai-chat": ("OPENAI_API_KEY",),
    "openai-responses": ("OPENAI_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "alibaba": ("ALIBABA_API_KEY", "DASHSCOPE_API_KEY"),
    "cohere": ("CO_API_KEY",),
    "heroku": ("HEROKU_INFERENCE_KEY",),
    "huggingface": ("HF_TOKEN",),
}
"""Where the key is for a model at a URL, if not in PROVIDER_API_KEY; there need not be one."""
VARIABLE = re.compile(r"`([A-Z][A-Z0-9_]+)`")
OLLAMA = "http://localhost:11434/v1"
FOR_TESTS = frozenset({"test", "function"})


class NoKey(Failure):
    """The model needs a key, or another setting, that is not there."""


def resolve(text: str) -> Model:
    """Raises Failure when there is no such model, NoKey when it cannot be used yet."""
    try:
        name = parse(text)
    except ValueError as exc:
        raise Failure(f"The model cannot be used: {exc}.") from exc
    if name.provider in FOR_TESTS:
        raise Failure(f"There is no provider {name.provider!r} of models.")
    if name.provider == "ollama" and name.url is None:
        name = ModelName(name.provider, name.name, os.environ.get("OLLAMA_BASE_URL") or OLLAMA)
    try:
        return infer_model(f"{name.provider}:{name.name}") if name.url is None else _elsewhere(name)
    except UserError as exc:
        raise _unusable(text, exc) from exc
    except ImportError as exc:
        raise Failure(f"The model {text} cannot be used, as a package for it is missing: {exc}") from exc
    except Failure:
        raise
    except Exception as exc:  # whatever the provider's own package raises
        raise Failure(f"The model {text} cannot be used: {exc}") from exc


def _unusable(text: str, exc: UserError) -> Failure:
    """What the library says to programmers, in words for users."""
    if "Unknown model" in exc.message:
        return Failure(f"The model {text} cannot be used: {exc.message}")
    variables = list(dict.fromkeys(VARIABLE.findall(exc.message)))
    if not variables:
        return NoKey(f"The model {text} cannot be used: {exc.message}")
    return NoKey(
        f"The model {text} cannot be used yet: set the variable {' or '.join(variables)} and start again; "
        "the agent `demo` needs neither model nor key"
    )


def _elsewhere(name: ModelName) -> Model:
    # what calls itself compatible with OpenAI has this interface of it
    kind = "openai-chat" if name.provider == "openai" else name.provider
    provider_class: Any = infer_provider_class(kind)
    if "base_url" not in inspect.signature(provider_class).parameters:
        raise Failure(
            f"The provider {name.provider} has an address of its own and takes no other. "
            f"For a server that speaks OpenAI's interface write openai:{name.name}@{name.url}"
        )
    provider = provider_class(base_url=name.url, api_key=_key(name.provider) or "not-needed")
    return infer_model(f"{kind}:{name.name}", provider_factory=lambda _: provider)


def _key(provider: str) -> str | None:
    variables = KEYS.get(provider, (f"{provider.upper().replace('-', '_')}_API_KEY",))
    return next((key for variable in variables if (key := os.environ.get(variable))), None)
