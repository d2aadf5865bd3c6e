"""What a request cost, as its row keeps it: by the price of the moment it was made, whatever prices become later."""

from __future__ import annotations

from typing import Any

from routing_admin.prices.sheet import cost_now
from routing_admin.request_log.entries import Entry, find_answering

UNKNOWN: dict[str, Any] = {"cost_nanos": None, "saved_nanos": None, "currency": ""}


def cost_columns(entry: Entry) -> dict[str, Any]:
    """The columns of its cost; all of them say nothing where nobody answered, counted, or has a price."""
    facts, answered = entry.facts, find_answering(entry)
    if answered is None:
        return UNKNOWN
    tier = facts.details.service_tier or ""
    cost = cost_now(answered.provider, answered.model, facts.usage, facts.began, tier)
    if cost is None:
        return UNKNOWN
    return {"cost_nanos": cost.nanos, "saved_nanos": cost.saving, "currency": cost.currency}
