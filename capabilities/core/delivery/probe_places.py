"""Select the probes for which a model's protocol has a slot, and estimate their token usage."""

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
"""Number of files in a probe, including the control."""
ANSWER_TOKENS = 8


def list_probes(
    protocol: str, endpoint: str, own_quirks: Mapping[str, Any], limits: Mapping[str, Any] | None
) -> list[Probe]:
    template, quirks = limits_template(endpoint, protocol), quirks_for(endpoint, own_quirks)
    slots = slots_for(protocol, template, limits or None, quirks)
    probes_with_slots = ((slots.get(probe.kind), probe) for probe in PROBES.values())
    return [probe for slot, probe in probes_with_slots if slot is not None and slot.carries(probe.mime_type)]


def estimate_usage(model: str, probe: Probe) -> Usage | None:
    """Return the estimated usage of an entire probe, or None if the model's token count for such files is unknown."""
    width, height, pages, seconds = probe.measures
    file = FilePart(probe.kind, probe.mime_type, width=width, height=height, pages=pages, seconds=seconds)
    file_estimate = file_tokens(model, file)
    if file_estimate is None:
        return None
    return Usage(FILES * (text_tokens(probe.question).tokens + file_estimate.tokens), FILES * ANSWER_TOKENS)


def count_calls(probes: Iterable[Probe]) -> int:
    """Return the maximum number of calls that these probes make, including the initial greeting."""
    # The control, which is the third file, is sent only if the model could read the other two.
    return 1 + FILES * len(list(probes))
