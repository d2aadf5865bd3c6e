"""Select the capability probes whose files a model's protocol accepts, and estimate their token usage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from capabilities.core.delivery.slot_choice import slots_for
from capabilities.core.delivery.tokens import file_tokens, text_tokens
from capabilities.core.message import FilePart
from capabilities.core.providers.presets import limits_template, quirks_for
from capabilities.core.providers.probes.questions import PROBES, Probe
from capabilities.core.wire import Usage

FILES = 3
"""How many files a probe sends, including the empty control file."""
ANSWER_TOKENS = 8


def list_probes(
    protocol: str, endpoint: str, own_quirks: Mapping[str, Any], limits: Mapping[str, Any] | None
) -> list[Probe]:
    template, quirks = limits_template(endpoint, protocol), quirks_for(endpoint, own_quirks)
    slots = slots_for(protocol, template, limits or None, quirks)
    probes_with_slots = ((slots.get(probe.kind), probe) for probe in PROBES.values())
    return [probe for slot, probe in probes_with_slots if slot is not None and slot.carries(probe.mime_type)]


def estimate_usage(model: str, probe: Probe) -> Usage | None:
    """Estimate the tokens that an entire probe uses, or return None if this cannot be estimated for this model."""
    width, height, pages, seconds = probe.measures
    file = FilePart(probe.kind, probe.mime_type, width=width, height=height, pages=pages, seconds=seconds)
    file_estimate = file_tokens(model, file)
    if file_estimate is None:
        return None
    return Usage(FILES * (text_tokens(probe.question).tokens + file_estimate.tokens), FILES * ANSWER_TOKENS)


def count_calls(probes: Iterable[Probe]) -> int:
    """Return the maximum number of model calls for these probes, including the initial text-only request."""
    # The third file, the empty control file, is sent only if the model could read the other two.
    return 1 + FILES * len(list(probes))
