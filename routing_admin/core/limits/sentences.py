"""Messages for callers that have reached a limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from capabilities.core.prices import amount_text
from capabilities.core.services.agent_limits import MONEY, Meter
from capabilities.core.translatable import Translatable, translatable

BUDGET_EXCEEDED, RATE_EXCEEDED, UNPRICED = "budget_exceeded", "rate_limit_exceeded", "budget_unpriced"
UNPRICED_SENTENCE = translatable(
    "%(who)s has a spending limit in %(currency)s that refuses calls without a known price, and %(model)s has none. An "
    "administrator can set a price on the page of its model service, an exchange rate, or what the limit does then."
)
NO_RESPONSE = translatable(
    "The limits for this call cannot be checked because the database is not responding. Send the request again in a "
    "few seconds."
)
LIMIT_SENTENCES: Mapping[Meter, str] = {
    Meter.REQUESTS_PER_MINUTE: translatable(
        "%(who)s has reached its limit of requests per minute (%(limit)s). Retry in %(wait)s."
    ),
    Meter.IN_FLIGHT: translatable(
        "%(who)s has reached its limit of concurrent requests (%(limit)s). Retry once one has finished."
    ),
    Meter.BYTES_PER_DAY: translatable(
        "%(who)s has a daily limit for request bytes of %(limit)s: %(left)s left, and this request has "
        "%(asked)s. The limit resets at %(reset)s, in %(wait)s."
    ),
    Meter.TOKENS_PER_DAY: translatable(
        "%(who)s has a daily token limit of %(limit)s: %(left)s left, and this request may take up to "
        "%(asked)s. The limit resets at %(reset)s, in %(wait)s."
    ),
    Meter.TOKENS_PER_MONTH: translatable(
        "%(who)s has a monthly token limit of %(limit)s: %(left)s left, and this request may take up to "
        "%(asked)s. The limit resets at %(reset)s, in %(wait)s."
    ),
    Meter.MONEY_PER_DAY: translatable(
        "%(who)s has a daily spending limit of %(limit)s: %(left)s left, and this request may cost up to "
        "%(asked)s. The limit resets at %(reset)s, in %(wait)s."
    ),
    Meter.MONEY_PER_MONTH: translatable(
        "%(who)s has a monthly spending limit of %(limit)s: %(left)s left, and this request may cost up to "
        "%(asked)s. The limit resets at %(reset)s, in %(wait)s."
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedNeed:
    """A limit that a request would exceed: `who` may still use `left`, but the request needs `need`."""

    who: str
    meter: Meter
    limit: int
    left: int
    need: int
    currency: str = ""


def refusal_sentence(refused: RefusedNeed, ends_at: datetime | None, now: datetime) -> Translatable:
    """Say why a request is refused and when the limit resets; `ends_at`, the reset, is in the caller's time zone."""
    wait = format_duration(ends_at - now) if ends_at else ""
    reset = f"{ends_at:%Y-%m-%d %H:%M %Z}" if ends_at else ""
    amounts = {"limit": refused.limit, "left": refused.left, "asked": refused.need}
    texts = {name: format_amount(refused.meter, amount, refused.currency) for name, amount in amounts.items()}
    return translatable(LIMIT_SENTENCES[refused.meter], who=refused.who, **texts, wait=wait, reset=reset)


def format_amount(meter: Meter, amount: int, currency: str) -> str:
    return f"{amount_text(amount)} {currency}" if meter in MONEY else f"{amount:,}"


def format_duration(time: timedelta) -> str:
    """Format a duration like OpenAI's rate limit headers: `12s`, `6m0s`, `1h0m5s`. The minimum is one second."""
    seconds = max(1, -int(-time.total_seconds() // 1))
    hours, minutes = seconds // 3600, seconds % 3600 // 60
    parts = [f"{hours}h"] if hours else []
    parts += [f"{minutes}m"] if hours or minutes else []
    return "".join([*parts, f"{seconds % 60}s"])
