"""What models were asked about what they read, and what they answered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from capabilities.core.delivery.probe_places import count_calls, estimate_tokens, list_probes
from capabilities.models import NightlyProbe, ProbeTranscript, Service


def list_transcripts(row: Service) -> list[ProbeTranscript]:
    """The last probes of a service's model, by capability, the newest first; one query."""
    return list(ProbeTranscript.objects.filter(provider=row.provider.name, model=row.model))


@dataclass(frozen=True, slots=True)
class Night:
    """What a night's probes of a service take: calls, tokens, and the capabilities of whose tokens nobody knows."""

    calls: int
    tokens: int
    unknown: tuple[str, ...]
    measured: bool
    last: date | None


def estimate_night(row: Service, transcripts: Iterable[ProbeTranscript]) -> Night:
    """By what the last probes took, as the provider counted, else by the vendors' formulas; one query."""
    provider = row.provider
    probes = list_probes(provider.protocol, provider.endpoint, provider.quirks, row.limits)
    counted = {each.capability: sum_tokens(each.exchanges) for each in reversed(list(transcripts))}
    tokens = {each.capability: counted.get(each.capability) or estimate_tokens(row.model, each) for each in probes}
    unknown = tuple(name for name, count in tokens.items() if count is None)
    chosen = NightlyProbe.objects.filter(service_id=row.service_id).first()
    measured = bool(probes) and all(counted.get(each.capability) for each in probes)
    total = sum(count for count in tokens.values() if count is not None)
    return Night(count_calls(probes), total, unknown, measured, chosen.last_night if chosen else None)


def sum_tokens(exchanges: Iterable[Mapping[str, Any]]) -> int | None:
    """The tokens of all answers that came; None where one of them does not tell its own."""
    counts = [(each["promptTokens"], each["completionTokens"]) for each in exchanges if not each["fault"]]
    return sum(prompt + answer for prompt, answer in counts) if all(None not in pair for pair in counts) else None
