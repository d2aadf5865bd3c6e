"""Response headers about remaining limits: the tightest limit of each kind, and budgets that are almost used up."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from urllib.parse import quote

from capabilities.core.prices import amount_text
from capabilities.core.services.agent_limits import MONEY, RATES, TOKENS, Meter, UnpricedPolicy
from capabilities.core.services.limit_holders import LimitHolder
from routing_admin.core.limits.sentences import format_duration
from routing_admin.core.limits.shares import Share

WARN_PERCENT = 80
"""A warning header names a budget once this percentage of it has been used."""
PLAIN = " =.:@+-"
"""Characters in a holder's name that are sent unquoted, besides letters and digits. Headers can contain only ASCII."""

Held = Sequence[tuple[LimitHolder, Meter, Share]]
"""The limits that apply to a call, each with its holder and with this process's share of it."""


def build_headers(held: Held, unpriced: Collection[str] = ()) -> dict[str, str]:
    """Return headers for rate limits (OpenAI's names) and budgets (our names), and warnings about budgets.

    `unpriced` contains the currencies in which the answer has no known price. The header `x-routing-budget-uncounted`
    names budgets in these currencies that allowed the call without counting its cost.
    """
    found: dict[str, str] = {}
    requests = [share for _, meter, share in held if meter is Meter.REQUESTS_PER_MINUTE]
    if requests:
        found |= _share_headers("requests", _tightest(requests))
    tokens = [share for _, meter, share in held if meter in TOKENS]
    if tokens:
        found |= _share_headers("tokens", _tightest(tokens))
    money = [(holder.limits.currency, share) for holder, meter, share in held if meter in MONEY]
    if money:
        found |= _money_headers(*_tightest_money(money))
    uncounted = [
        _header_name(holder, meter)
        for holder, meter, _ in held
        if meter in MONEY and holder.limits.unpriced is UnpricedPolicy.ALLOW and holder.limits.currency in unpriced
    ]
    lists = {"x-routing-budget-warning": list(_warnings(held)), "x-routing-budget-uncounted": uncounted}
    return found | {name: ", ".join(values) for name, values in lists.items() if values}


def percentage(used: int, limit: int) -> int:
    return used * 100 // limit if limit else 100


def _tightest(shares: Iterable[Share]) -> Share:
    return min(shares, key=lambda share: share.remaining)


def _tightest_money(shares: Sequence[tuple[str, Share]]) -> tuple[Share, str]:
    # To compare amounts in different currencies, use the fraction of the budget that is left.
    if len({currency for currency, _ in shares}) == 1:
        currency, share = min(shares, key=lambda pair: pair[1].remaining)
    else:
        currency, share = min(shares, key=lambda pair: pair[1].remaining / pair[1].limit)
    return share, currency


def _warnings(held: Held) -> Iterator[str]:
    for holder, meter, share in held:
        percent = percentage(share.limit - share.remaining, share.limit)
        if meter not in RATES and percent >= WARN_PERCENT:
            yield f"{_header_name(holder, meter)}={percent}%"


def _header_name(holder: LimitHolder, meter: Meter) -> str:
    return f"{quote(holder.word, PLAIN)} {meter.value}".lstrip()


def _share_headers(name: str, share: Share) -> dict[str, str]:
    ends_at = share.window.ends_at
    values = {"limit": str(share.limit), "remaining": str(share.remaining)}
    if ends_at is not None:
        values["reset"] = format_duration(ends_at - datetime.now(UTC))
    return {f"x-ratelimit-{kind}-{name}": value for kind, value in values.items()}


def _money_headers(share: Share, currency: str) -> dict[str, str]:
    found = {"limit": amount_text(share.limit), "remaining": amount_text(share.remaining), "currency": currency}
    if share.window.ends_at is not None:
        found["reset"] = format_duration(share.window.ends_at - datetime.now(UTC))
    # Numbers in headers have no thousands separators.
    return {f"x-routing-budget-{kind}": value.replace(",", "") for kind, value in found.items()}
