"""Transcripts of probes as text: the question, what the file contains, the answer, and what this proves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from capabilities.core.prices import money_text
from capabilities.core.providers.probes.judgement import AnswerReading, ProbeOutcome, ProbeReason
from capabilities.core.translatable import decode_text
from capabilities.sentences import translate_sentence
from routing_admin.console.services.queries import sum_usage

if TYPE_CHECKING:
    from capabilities.models import ProbeTranscript

Text = str | Promise

OUTCOMES: Mapping[str, tuple[str, str, Text]] = {
    ProbeOutcome.YES: ("ok", "check", gettext_lazy("Reads it")),
    ProbeOutcome.NO: ("bad", "x", gettext_lazy("Does not read it")),
    ProbeOutcome.UNCLEAR: ("warn", "warn", gettext_lazy("Unclear")),
}
"""Maps each outcome of a probe to a tone, an icon and a label."""
REASONS: Mapping[str, Text] = {
    ProbeReason.READ_BOTH: gettext_lazy(
        "It named exactly what both files contain, and found nothing in the empty one."
    ),
    ProbeReason.REFUSED: gettext_lazy("The request was refused once it contained such a file."),
    ProbeReason.DENIED: gettext_lazy("It says there is nothing to read."),
    ProbeReason.WRONG: gettext_lazy("It named something the files do not contain."),
    ProbeReason.FOUND_IN_CONTROL: gettext_lazy("It found something in the empty file. Nothing is changed."),
    ProbeReason.ONE_OF_TWO: gettext_lazy("It named what one file contains, but not the other. Nothing is changed."),
    ProbeReason.HEDGED: gettext_lazy("It did not commit to one answer. Nothing is changed."),
    ProbeReason.SILENT: gettext_lazy("It said nothing. Nothing is changed."),
    ProbeReason.FAILED: gettext_lazy("A call failed for another reason. Nothing is changed. Probe again later."),
}
READINGS: Mapping[str, Text] = {
    AnswerReading.RIGHT: pgettext_lazy("of an answer", "right"),
    AnswerReading.REFUSED: pgettext_lazy("of an answer", "refused"),
    AnswerReading.DENIED: pgettext_lazy("of an answer", "nothing to read"),
    AnswerReading.WRONG: pgettext_lazy("of an answer", "wrong"),
    AnswerReading.HEDGED: pgettext_lazy("of an answer", "no clear answer"),
    AnswerReading.SILENT: pgettext_lazy("of an answer", "empty"),
    AnswerReading.FAILED: pgettext_lazy("of an answer", "failed"),
}


@dataclass(frozen=True, slots=True)
class ExchangeView:
    """A question about a file: the word in it (empty for the control file), the answer or error, and the verdict."""

    word: str
    text: str
    problem: str
    reading: Text


@dataclass(frozen=True, slots=True)
class TranscriptView:
    """The probe of one capability. `tokens` is None unless all were reported, and `cost` is empty if it is unknown."""

    capability: str
    tone: str
    icon: str
    outcome: Text
    reason: Text
    at: datetime
    actor: str
    question: str
    mime_type: str
    tokens: int | None
    cost: str
    exchanges: tuple[ExchangeView, ...]


def render_transcripts(rows: Iterable[ProbeTranscript]) -> list[TranscriptView]:
    return [_render(row) for row in rows]


def _render(row: ProbeTranscript) -> TranscriptView:
    usage, costs = sum_usage(row.exchanges), [exchange["cost"] for exchange in row.exchanges if exchange.get("cost")]
    return TranscriptView(
        row.capability,
        *OUTCOMES.get(row.outcome, OUTCOMES[ProbeOutcome.UNCLEAR]),
        REASONS.get(row.reason, ""),
        row.at,
        row.actor,
        row.question,
        row.mime_type,
        None if usage is None else (usage.prompt_tokens or 0) + (usage.completion_tokens or 0),
        money_text(sum(cost["nanos"] for cost in costs), costs[0]["currency"]) if costs else "",
        tuple(_render_exchange(exchange) for exchange in row.exchanges),
    )


def _render_exchange(data: Mapping[str, Any]) -> ExchangeView:
    status = _("status %(status)s") % {"status": data["status"]} if data["fault"] and data["status"] else ""
    message = translate_sentence(decode_text(data["message"])) if data["message"] else ""
    problem = " · ".join(part for part in (status, message or data["fault"]) if part) if data["fault"] else ""
    return ExchangeView(data["word"], data["text"], problem, READINGS.get(data["reading"], data["reading"]))
