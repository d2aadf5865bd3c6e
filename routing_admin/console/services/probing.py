"""Find out what a model can read by sending it real requests, and record the result."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from capabilities.actors import Actor
from capabilities.core.delivery.probe_choice import list_probes
from capabilities.core.message import ChatRequest
from capabilities.core.prices import Price, calculate_cost
from capabilities.core.providers.probes.drift import DriftKind
from capabilities.core.providers.probes.judgement import Exchange, ProbeAnswer, ProbeFinding, ProbeOutcome, conduct
from capabilities.core.providers.redaction import summarize
from capabilities.core.translatable import encode_text, insert_facts
from capabilities.core.vocabulary import Cell, Source
from capabilities.core.wire import Usage
from capabilities.labels import capability_label
from capabilities.models import ProbeTranscript, Service
from capabilities.sentences import join_words
from routing_admin.console.providers import dialling
from routing_admin.console.services.actions import (
    record_drift,
    set_capabilities,
    settle_doubts,
)
from routing_admin.dispatch import provider_checks as dial
from routing_admin.dispatch.provider_checks import CheckResult
from routing_admin.limits.prices.sheet import price_for

ANSWER_BYTES = 2048
"""Maximum number of bytes of an answer that are stored."""
UNDECIDED_SOURCES = (Source.UNKNOWN, Source.CONTESTED)
"""Sources whose values are undecided. Replacing such a value does not mean that the model has changed."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of a probe.

    `answers` maps capabilities to the values that were proved. `contradicted` lists those whose declared value is the
    opposite; for these, the proved value was not recorded. `unclear` lists capabilities that the probe could not
    decide. `changed` contains values that differ from an earlier decided value. `failed` is the result of the
    plain-text call if it got no answer; in that case, no file was sent. `revision` is None if nothing changed.
    """

    answers: Mapping[str, bool] = field(default_factory=dict)
    contradicted: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()
    changed: Mapping[str, bool] = field(default_factory=dict)
    failed: CheckResult | None = None
    revision: int | None = None


def probe_service(actor: Actor, row: Service, action: str = "service.capabilities") -> ProbeResult:
    """Send files that each contain a word to the model, store transcripts, and record proved values as one revision.

    Declared capabilities do not change. If the model cannot read something that is declared, this is recorded as a
    drift.
    """
    provider = row.provider
    # All calls are made before anything is written, because a transaction must not wait for a model. If the model does
    # not even answer plain text, sending it files proves nothing.
    greeting = dial.provider_checker().test(provider.name, row.model)
    if greeting.fault:
        return ProbeResult(failed=greeting)
    probes = list_probes(provider.protocol, provider.endpoint, provider.quirks, row.limits)
    findings = conduct(probes, lambda chats: _ask_each(row, chats), random.SystemRandom().sample)
    store_transcripts(actor, row, findings)
    proved = {
        finding.probe.capability: finding.outcome is ProbeOutcome.YES for finding in findings if is_decided(finding)
    }
    unclear = tuple(finding.probe.capability for finding in findings if not is_decided(finding))
    return _record(actor, row, {"text": True, **proved}, unclear, action)


def _record(
    actor: Actor, row: Service, answers: Mapping[str, bool], unclear: tuple[str, ...], action: str
) -> ProbeResult:
    stored = {cell.name: cell for cell in row.capabilities.all() if cell.side == "input"}
    known_values = {name: cell.supported for name, cell in stored.items() if cell.source not in UNDECIDED_SOURCES}
    declared = {
        name
        for name in answers
        if (stored[name].source == Source.DECLARED if name in stored else row.declares_all_capabilities)
    }
    cells: dict[Cell, bool] = {("input", name): on for name, on in answers.items() if name not in declared}
    act = set_capabilities(actor, {row: cells}, source=Source.PROBED, action=action) if cells else None
    contradicted = tuple(sorted(name for name in declared if answers[name] != known_values.get(name, False)))
    settle_doubts(row, [name for name in answers if name not in contradicted])
    # A drift is recorded only if the model can read less than declared.
    for name in contradicted:
        if not answers[name]:
            record_drift(row, name, DriftKind.DENIED)
    changed = {name: on for (_, name), on in cells.items() if known_values.get(name, on) != on}
    return ProbeResult(answers, contradicted, unclear, changed, revision=act.revision if act else None)


def is_decided(finding: ProbeFinding) -> bool:
    return finding.outcome is not ProbeOutcome.UNCLEAR


def _ask_each(row: Service, chats: Sequence[ChatRequest]) -> list[ProbeAnswer]:
    return [
        ProbeAnswer(
            text=answer.text,
            fault=answer.fault,
            status=answer.status,
            message=answer.message,
            prompt_tokens=answer.prompt_tokens,
            completion_tokens=answer.completion_tokens,
        )
        for answer in dial.provider_checker().ask_each(row.provider.name, row.model, chats)
    ]


def store_transcripts(actor: Actor, row: Service, findings: Iterable[ProbeFinding]) -> None:
    now = timezone.now()
    price = price_for(row.price, row.provider.endpoint, row.model)
    with transaction.atomic():
        for finding in findings:
            lookup: dict[str, Any] = {
                "provider": row.provider.name,
                "model": row.model,
                "capability": finding.probe.capability,
            }
            # The transcript of a decided probe replaces all earlier transcripts for the capability. An unclear probe's
            # transcript replaces only the transcript of an earlier unclear probe.
            decided = is_decided(finding)
            if decided:
                ProbeTranscript.objects.filter(**lookup, decided=False).delete()
            values = {
                "outcome": finding.outcome.value,
                "reason": finding.reason.value,
                "at": now,
                "actor": actor.name,
                "question": finding.probe.question,
                "mime_type": finding.probe.mime_type,
                "exchanges": [_exchange_data(exchange, price) for exchange in finding.exchanges],
            }
            ProbeTranscript.objects.update_or_create(**lookup, decided=decided, defaults=values)


def _exchange_data(exchange: Exchange, price: Price | None) -> dict[str, Any]:
    answer = exchange.answer
    cost = calculate_cost(Usage(answer.prompt_tokens, answer.completion_tokens), price) if price else None
    return {
        "word": exchange.word,
        "reading": exchange.reading.value,
        "text": summarize(answer.text, limit=ANSWER_BYTES),
        "fault": answer.fault,
        "status": answer.status,
        "message": encode_text(summarize(answer.message, limit=ANSWER_BYTES)) if answer.message else "",
        "promptTokens": answer.prompt_tokens,
        "completionTokens": answer.completion_tokens,
        "cost": {"nanos": cost.nanos, "currency": cost.currency} if cost else None,
    }


def summarize_probe(row: Service, probe: ProbeResult) -> str:
    if probe.failed:
        return f"{row.service_id}: {dialling.explain_answer(row.provider.name, probe.failed).sentence}"
    reads = [str(capability_label(name)) for name, on in probe.answers.items() if on]
    parts = [insert_facts(_("%(name)s reads: %(what)s"), {"name": row.service_id, "what": join_words(reads)})]
    notes = (
        (_("unclear, left unchanged: %(names)s"), probe.unclear),
        (_("declared otherwise, kept: %(names)s"), probe.contradicted),
    )
    for text, names in notes:
        if names:
            parts.append(text % {"names": join_words(str(capability_label(name)) for name in names)})
    return " · ".join(parts)
