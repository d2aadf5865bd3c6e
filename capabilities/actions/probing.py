"""Asking the real model what it reads, and recording the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from capabilities.actions.services import set_capabilities
from capabilities.acts import Actor
from capabilities.core.delivery.slot_choice import slots_for
from capabilities.core.providers.presets import preset_for_endpoint, quirks_for
from capabilities.core.providers.probes import PROBES, request_of, verdict
from capabilities.core.vocabulary import Cell, Source
from capabilities.models import Service
from capabilities.ports import DialAnswer, ports


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What probing found: by capability, what was recorded, what an administrator's word kept from being recorded, and
    the revision that made (None when nothing changed).

    `failed` is the call that did not answer words alone; then nothing else was asked. A capability in none of them
    stays as unknown as it was.
    """

    answers: Mapping[str, bool] = field(default_factory=dict)
    contradicted: tuple[str, ...] = ()
    failed: DialAnswer | None = None
    revision: int | None = None


def probe_service(actor: Actor, row: Service) -> ProbeResult:
    """Sends a tiny image, sound and page to the model, and records what it could read as probed, in one revision.

    A cell that was declared stays as it is: an administrator's word wins. Calls are made before anything is written.
    """
    greeting = ports.dial.test(row.provider.name, row.model)
    if greeting.fault:
        return ProbeResult(failed=greeting)
    found = {"text": True, **answers(row)}
    there = {cell.name: cell for cell in row.capabilities.all() if cell.side == "input"}
    declared = {
        name for name in found if (there[name].source == Source.DECLARED if name in there else row.knows_the_rest)
    }
    cells: dict[Cell, bool] = {("input", name): on for name, on in found.items() if name not in declared}
    revision = set_capabilities(actor, {row: cells}, source=Source.PROBED).revision if cells else None
    against = (name for name in declared if found[name] != (name in there and there[name].supported))
    return ProbeResult(found, tuple(sorted(against)), revision=revision)


def answers(row: Service) -> dict[str, bool]:
    """What the model made of each probe that its protocol has a place for; silent about the inconclusive."""
    provider = row.provider
    preset = preset_for_endpoint(provider.endpoint)
    quirks = quirks_for(provider.endpoint, provider.quirks)
    slots = slots_for(provider.protocol, preset.slots if preset else None, row.limits or None, quirks)
    found = {}
    for name, probe in PROBES.items():
        slot = slots.get(probe.kind)
        if slot is None or not slot.carries(probe.mime_type):
            continue
        said = ports.dial.ask(provider.name, row.model, request_of(probe))
        reads = verdict(probe, said.text, said.fault)
        if reads is not None:
            found[name] = reads
    return found
