"""What servers say when a conversation is too long, each in its own words, and how much they take."""

from __future__ import annotations

import pytest
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, ModelRateLimitError

from pilothouse.agents.coder.errors import is_overflow, kind_of, window_of

WORDS = {
    "llama.cpp": (
        {
            "code": 400,
            "message": "request (9001 tokens) exceeds the available context size (8192 tokens), try increasing it",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": 9001,
            "n_ctx": 8192,
        },
        8192,
    ),
    "llama.cpp, older": (
        "the request exceeds the available context size. try increasing the context size or enable context shift",
        None,
    ),
    "LM Studio": (
        "The number of tokens to keep from the initial prompt is greater than the context length. Try to load the "
        "model with a larger context length, or provide a shorter input",
        None,
    ),
    "LM Studio, older": (
        "Trying to keep the first 15857 tokens when context the overflows. However, the model is loaded with context "
        "length of only 4096 tokens, which is not enough.",
        4096,
    ),
    "LM Studio, newer": ("Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)", 7424),
    "vLLM": (
        "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in the "
        "messages, 10000 in the completion). Please reduce the length of the messages or completion.",
        16384,
    ),
    "vLLM, older": ("The decoder prompt (length 5000) is longer than the maximum model length of 4096.", 4096),
    "SGLang": ("The input (9000 tokens) is longer than the model's context length (8192 tokens).", 8192),
    "Ollama": ("prompt too long; exceeded max context length by 12 tokens", None),
}


@pytest.mark.parametrize("server", WORDS)
@pytest.mark.parametrize("status", [400, 500])
def test_a_conversation_that_is_too_long_is_known_as_such(server: str, status: int) -> None:
    said, window = WORDS[server]
    body = {"error": said if isinstance(said, dict) else {"message": said}}
    for error in (ModelHTTPError(status, "lab", body), ModelHTTPError(status, "lab", said)):
        assert is_overflow(error)
        assert window_of(error) == window
    # some say it in the middle of an answer, where there is no status any more
    assert is_overflow(ModelAPIError("lab", str(said)))


def test_other_errors_are_what_they_were() -> None:
    assert kind_of(ModelHTTPError(400, "lab", "the image is too large")) == "invalid_request"
    assert kind_of(ModelHTTPError(500, "lab", "out of memory")) == "server_error"
    assert window_of(ModelHTTPError(400, "lab", "n_ctx 8192 is odd")) is None
    busy = ModelHTTPError.for_category(
        ModelRateLimitError, status_code=429, model_name="lab", body="more than the maximum context length per minute"
    )
    assert kind_of(busy) == "rate_limit"
