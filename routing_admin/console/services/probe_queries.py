"""What models were asked about what they read, and what they answered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from capabilities.core.delivery.probe_places import count_calls, estimate_usage, list_probes
from capabilities.core.prices import Cost, cost_of
from capabilities.core.wire import Usage
from capabilities.models import NightlyProbe, ProbeTranscript, Service
from routing_admin.limits.prices.sheet import price_for


def list_transcripts(row: Service) -> list[ProbeTranscript]:
    """The last probes of a service's model, by capability, the newest first; one query."""
    return list(ProbeTranscript.objects.filter(provider=row.provider.name, model=row.model))


@dataclass(frozen=True, slots=True)
class Night:
    """What a night's probes of a service take: calls, tokens, the capabilities of whose tokens nobody knows, and what
    the known ones cost; `measured` says that the last probe took that, `last` the last night there was.
    """

    calls: int
    tokens: int
    unknown: tuple[str, ...]
    measured: bool
    cost: Cost | None
    last: date | None


def estimate_night(row: Service, transcripts: Iterable[ProbeTranscript]) -> Night:
    """By what the last probes took, as the provider counted, else by the vendors' formulas; one query."""
    provider = row.provider
    probes = list_probes(provider.protocol, provider.endpoint, provider.quirks, row.limits)
    counted = {each.capability: sum_usage(each.exchanges) for each in reversed(list(transcripts))}
    usages = {each.capability: counted.get(each.capability) or estimate_usage(row.model, each) for each in probes}
    known = [usage for usage in usages.values() if usage is not None]
    chosen = NightlyProbe.objects.filter(service_id=row.service_id).first()
    return Night(
        count_calls(probes),
        sum((usage.prompt_tokens or 0) + (usage.completion_tokens or 0) for usage in known),
        tuple(name for name, usage in usages.items() if usage is None),
        bool(probes) and all(counted.get(each.capability) for each in probes),
        sum_costs(row, known),
        chosen.last_night if chosen else None,
    )


def sum_costs(row: Service, usages: Iterable[Usage]) -> Cost | None:
    """What these usages cost at the price of the service's model; None where it has none."""
    price = price_for(row.price, row.provider.endpoint, row.model)
    costs = [cost_of(usage, price) for usage in usages] if price else []
    if price is None or not costs or None in costs:
        return None
    return Cost(sum(cost.nanos for cost in costs if cost), price.currency)


def sum_usage(exchanges: Iterable[Mapping[str, Any]]) -> Usage | None:
    """The tokens of all answers that came; None where one of them does not tell its own."""
    counts = [(each["promptTokens"], each["completionTokens"]) for each in exchanges if not each["fault"]]
    if any(None in pair for pair in counts):
        return None
    return Usage(sum(prompt for prompt, _ in counts), sum(answer for _, answer in counts))
