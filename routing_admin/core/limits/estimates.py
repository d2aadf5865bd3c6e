"""How much is a call likely to take? What is reserved before it is made, and settled by what it took."""

from __future__ import annotations

from capabilities.core.delivery.token_estimates import estimate_chat
from capabilities.core.delivery.tokens import text_tokens
from capabilities.core.message import ChatRequest
from capabilities.core.prices import Price, cost_of
from capabilities.core.services.agent_limits import AgentLimits
from capabilities.core.wire import Usage

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


def usage_of(usage: Usage | None, question: int, text: str) -> Usage:
    """What a call took: as its provider counted it, else by question and answer; nothing where there is none."""
    if usage is not None and tokens_of(usage) is not None:
        return usage
    return Usage(question, text_tokens(text).tokens) if text else Usage(0, 0)


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
