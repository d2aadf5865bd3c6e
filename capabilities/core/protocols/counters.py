"""Build the requests with which a provider is asked to count tokens, and decode its responses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from capabilities.core.json_codec import read_repaired_json
from capabilities.core.message import ChatRequest
from capabilities.core.protocols.errors import bad_shape, parse_failure
from capabilities.core.translatable import translatable
from capabilities.core.wire import Answer, Failure, StreamDecoder, Target, UpstreamRequest

# The only request fields that the token counting endpoints of Anthropic and OpenAI accept.
MESSAGES = ("model", "messages", "system", "tools", "tool_choice", "thinking", "output_config")
RESPONSES = (
    *("model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "reasoning", "text"),
    "truncation",
)
GENERATE, COUNT = ":generateContent", ":countTokens"


@dataclass(frozen=True, slots=True)
class Counter:
    """A vendor's token counting endpoint.

    `path` and `body` are functions that derive its path and payload from those of a model call. `field` is the response
    field with the count.
    """

    path: Callable[[str], str]
    body: Callable[[Mapping[str, Any], str], dict[str, Any]]
    field: str

    def question(self, call: UpstreamRequest) -> UpstreamRequest:
        parts = urlsplit(call.url)
        url = urlunsplit(parts._replace(path=self.path(parts.path)))
        return replace(call, url=url, payload=self.body(call.payload, parts.path))


def _select(fields: tuple[str, ...]) -> Callable[[Mapping[str, Any], str], dict[str, Any]]:
    return lambda payload, _: {key: payload[key] for key in fields if key in payload}


def _gemini_body(payload: Mapping[str, Any], path: str) -> dict[str, Any]:
    model = path.rpartition("/models/")[2].removesuffix(GENERATE)
    return {"generateContentRequest": {"model": f"models/{model}", **payload}}


# Token counting endpoints by protocol. Other protocols have none.
COUNTERS: Mapping[str, Counter] = MappingProxyType(
    {
        "openai-responses": Counter(lambda path: f"{path}/input_tokens", _select(RESPONSES), "input_tokens"),
        "anthropic": Counter(lambda path: f"{path}/count_tokens", _select(MESSAGES), "input_tokens"),
        "gemini": Counter(lambda path: path.removesuffix(GENERATE) + COUNT, _gemini_body, "totalTokens"),
    }
)


@dataclass(frozen=True, slots=True)
class Count:
    """Decodes the response of a token counting endpoint into an answer whose text is the number of tokens."""

    field: str
    name: str = "count"

    def encode(self, chat: ChatRequest, target: Target, *, stream: bool) -> UpstreamRequest:
        raise TypeError("a count is asked by a call's request")

    def decode(self, status: int, headers: Mapping[str, str], body: bytes) -> Answer | Failure:
        if status != 200:
            return parse_failure(status, headers, body, None)
        try:
            value = read_repaired_json(body)
        except (ValueError, RecursionError):
            value = None
        tokens = value.get(self.field) if isinstance(value, dict) else None
        if isinstance(tokens, int) and not isinstance(tokens, bool) and tokens >= 0:
            return Answer(str(tokens))
        return bad_shape(translatable("expected a number of tokens"))

    def decoder(self) -> StreamDecoder:
        raise TypeError("a count is not streamed")
