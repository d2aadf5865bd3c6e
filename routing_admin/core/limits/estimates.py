"""Estimate the tokens and cost of a call before it is made, and determine its usage afterwards.

The estimate is reserved before the call. Afterwards the actual usage replaces it.
"""

from __future__ import annotations

from dataclasses import replace

from capabilities.core.delivery.tokens import estimate_chat, text_tokens
from capabilities.core.message import ChatRequest
from capabilities.core.prices import Price, calculate_cost
from capabilities.core.services.agent_limits import AgentLimits
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Answer, Media, Usage

IMAGE_TOKENS = 1290
"""Gemini's token count for a generated image; other vendors' counts are similar."""
SOUND_BYTES = 2000
"""Bytes of generated audio per token: vendors count 20 to 25 tokens for a second of audio, which is 48,000 bytes."""
DEFAULT_OUTPUT_TOKENS = 1024
"""Estimated number of tokens in an answer if the request sets no limit."""


def estimate_call(chat: ChatRequest, model: str, most: int | None) -> tuple[int, int]:
    """Estimate the tokens in a request and in its answer; `most` is the limit that the request sets, if any."""
    return estimate_chat(chat, model), most or DEFAULT_OUTPUT_TOKENS


def total_tokens(usage: Usage | None) -> int | None:
    """Return the total number of tokens that the provider reported, or None if it reported none."""
    if usage is None or (usage.prompt_tokens is None and usage.completion_tokens is None):
        return usage.total_tokens if usage is not None else None
    return (usage.prompt_tokens or 0) + (usage.completion_tokens or 0)


def estimate_usage(usage: Usage | None, question: int, reply: Answer | None, *, is_cut: bool = False) -> Usage:
    """Return the usage that the provider reported for a call, with missing counts estimated from request and reply.

    Without a report and without a reply, the usage is zero. If the reply was cut off, the larger of the reported and
    the estimated count is used.
    """
    counted = usage or Usage()
    if reply is None:
        return counted if total_tokens(usage) is not None else Usage(0, 0)
    prompt, completion, total = counted.prompt_tokens, counted.completion_tokens, counted.total_tokens
    if completion is None or is_cut:
        received = answer_tokens(reply)
        rest = None if total is None or prompt is None or is_cut else max(total - prompt, 0)
        # If the reply was cut off, the report covers at most its beginning, so count the tokens that were received.
        completion = max(completion or 0, received) if rest is None else rest
    if prompt is None:
        prompt = question if total is None else max(total - completion, 0)
    return replace(counted, prompt_tokens=prompt, completion_tokens=completion)


def answer_tokens(reply: Answer) -> int:
    """Estimate the number of tokens in an answer's text, reasoning, refusal, tool calls and generated files."""
    calls = (text for call in reply.tool_calls for text in (call.name, call.arguments))
    texts = (reply.text, reply.reasoning or "", reply.refusal or "", *calls)
    return sum(text_tokens(text).tokens for text in texts if text) + sum(map(_media_tokens, reply.media))


def _media_tokens(media: Media) -> int:
    if media.kind is Kind.IMAGE:
        return IMAGE_TOKENS
    # Base64 encodes three bytes in four characters.
    size = media.size if media.size is not None else len(media.data) * 3 // 4
    return size // SOUND_BYTES + text_tokens(media.transcript).tokens if media.kind is Kind.AUDIO else 0


def price_usage(usage: Usage, price: Price | None, currency: str) -> int | None:
    """Return the cost in billionths of `currency`, or None if there is no price in that currency."""
    cost = calculate_cost(usage, price) if price is not None and price.currency == currency else None
    return cost.nanos if cost is not None else None


def counted_nanos(usage: Usage, price: Price | None, limits: AgentLimits) -> int:
    """Return the cost to charge to a budget: computed from `price`, else from the budget's own price, else 0."""
    nanos = price_usage(usage, price, limits.currency)
    if nanos is None:
        nanos = price_usage(usage, limits.own_price, limits.currency)
    return nanos or 0
