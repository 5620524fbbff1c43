"""Models of pydantic-ai by their names."""

from __future__ import annotations

import inspect
import os
import re
from typing import Any

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.providers import infer_provider_class

from ..commands import Failure
from .model_names import ModelName, parse

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
