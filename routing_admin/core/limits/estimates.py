"""How much is a call likely to take? What is reserved before it is made, and settled by what it took."""

from __future__ import annotations

from dataclasses import replace

from capabilities.core.delivery.tokens import estimate_chat, text_tokens
from capabilities.core.message import ChatRequest
from capabilities.core.prices import Price, cost_of
from capabilities.core.services.agent_limits import AgentLimits
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Answer, Media, Usage

IMAGE_TOKENS = 1290
"""What Gemini counts for an image that it makes; other vendors count about as much."""
SOUND_BYTES = 2000
"""Bytes of a sound for each of its tokens: 20 to 25 a second of 48,000 bytes, as vendors make them."""
DEFAULT_OUTPUT_TOKENS = 1024
"""What an answer counts as that nobody sets a limit to."""


def estimate_call(chat: ChatRequest, model: str, most: int | None) -> tuple[int, int]:
    """About the tokens that a request has, and those that its answer may have, of which `most` are allowed."""
    return estimate_chat(chat, model), most or DEFAULT_OUTPUT_TOKENS


def tokens_of(usage: Usage | None) -> int | None:
    """The tokens that a provider counted; None where it did not say."""
    if usage is None or (usage.prompt_tokens is None and usage.completion_tokens is None):
        return usage.total_tokens if usage is not None else None
    return (usage.prompt_tokens or 0) + (usage.completion_tokens or 0)


def usage_of(usage: Usage | None, question: int, reply: Answer | None, *, is_cut: bool = False) -> Usage:
    """What a call took: as its provider counted it, and what it did not count by question and answer.

    Nothing where there is neither a count nor an answer. Of an answer that was cut, which is counted to its beginning
    at most, all that came counts.
    """
    counted = usage or Usage()
    if reply is None:
        return counted if tokens_of(usage) is not None else Usage(0, 0)
    prompt, completion, total = counted.prompt_tokens, counted.completion_tokens, counted.total_tokens
    if completion is None or is_cut:
        came = answer_tokens(reply)
        rest = None if total is None or prompt is None or is_cut else max(total - prompt, 0)
        completion = max(completion or 0, came) if rest is None else rest
    if prompt is None:
        prompt = question if total is None else max(total - completion, 0)
    return replace(counted, prompt_tokens=prompt, completion_tokens=completion)


def answer_tokens(reply: Answer) -> int:
    """About the tokens of all that came of an answer: words, reasoning, calls of tools, and files that were made."""
    calls = (text for call in reply.tool_calls for text in (call.name, call.arguments))
    texts = (reply.text, reply.reasoning or "", reply.refusal or "", *calls)
    return sum(text_tokens(each).tokens for each in texts if each) + sum(map(_media_tokens, reply.media))


def _media_tokens(media: Media) -> int:
    if media.kind is Kind.IMAGE:
        return IMAGE_TOKENS
    size = media.size if media.size is not None else len(media.data) * 3 // 4
    return size // SOUND_BYTES + text_tokens(media.transcript).tokens if media.kind is Kind.AUDIO else 0


def nanos_of(usage: Usage, price: Price | None, currency: str) -> int | None:
    """Return what that costs in a currency; None where nobody has a price in it."""
    cost = cost_of(usage, price) if price is not None and price.currency == currency else None
    return cost.nanos if cost is not None else None


def counted_nanos(usage: Usage, price: Price | None, limits: AgentLimits) -> int:
    """Return what of that a budget counts: what has no known price at the budget's own, or nothing."""
    nanos = nanos_of(usage, price, limits.currency)
    if nanos is None:
        nanos = nanos_of(usage, limits.own_price, limits.currency)
    return nanos or 0
