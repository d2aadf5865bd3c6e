"""Sentences about a run: the outcomes that can be chosen, each candidate's result, and what a candidate receives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from capabilities.core.delivery.adaptation import PartDelivery
from capabilities.core.delivery.decision import DeliveryForm
from capabilities.core.delivery.model_description import DescriptionState
from capabilities.core.delivery.tokens import Estimate
from capabilities.core.message import ChatRequest, FilePart, TextPart
from capabilities.core.translatable import insert_facts
from capabilities.core.vocabulary import Kind
from capabilities.sentences import join_words, translate_sentence
from routing_admin.console.requests.story import SKIP_LABELS
from routing_admin.core.fallback.chain import OK, Attempt
from routing_admin.core.fallback.table import TABLE
from routing_admin.dispatch.simulation import NOT_REACHED
from routing_admin.request_log.sentences import RenderedSentence

Text = str | Promise

OUTCOMES: Mapping[str, Text] = {
    "200": gettext_lazy("200 answers"),
    "429": gettext_lazy("429 rate limited"),
    "429_wait": gettext_lazy("429 with a long wait"),
    "quota": gettext_lazy("429 quota used up"),
    "503": gettext_lazy("503 unavailable"),
    "500": gettext_lazy("500 internal error"),
    "529": gettext_lazy("529 overloaded"),
    "timeout": gettext_lazy("timeout"),
    "refused": gettext_lazy("connection refused"),
    "empty": gettext_lazy("empty answer"),
    "html": gettext_lazy("a web page"),
    "cut": gettext_lazy("cut stream"),
    "400": gettext_lazy("400 bad request"),
    "401": gettext_lazy("401 key refused"),
    "402": gettext_lazy("402 no balance"),
    "403": gettext_lazy("403 forbidden"),
    "404": gettext_lazy("404 unknown model"),
    "413": gettext_lazy("413 too large"),
    "context": gettext_lazy("too long for the model"),
    "parameter": gettext_lazy("parameter refused"),
    "cannot_read": gettext_lazy("cannot read images"),
}
"""All outcomes that can be simulated, in the order in which the page offers them."""

SKIPPED: Mapping[str, Text] = {**SKIP_LABELS, NOT_REACHED: gettext_lazy("not asked")}
FILES: Mapping[Kind, Text] = {
    Kind.TEXT: gettext_lazy("a text"),
    Kind.IMAGE: gettext_lazy("an image"),
    Kind.AUDIO: gettext_lazy("an audio file"),
    Kind.VIDEO: gettext_lazy("a video"),
    Kind.DOCUMENT: gettext_lazy("a document"),
    Kind.OTHER: gettext_lazy("a file"),
}
DELIVERY_TEXTS: Mapping[DeliveryForm, str] = {
    DeliveryForm.AS_IS: gettext_lazy("%(file)s as it is"),  # type: ignore[dict-item]
    DeliveryForm.CONVERTED: gettext_lazy("%(file)s converted"),  # type: ignore[dict-item]
    DeliveryForm.CUT: gettext_lazy("%(file)s in part"),  # type: ignore[dict-item]
    DeliveryForm.DESCRIBED: gettext_lazy("%(file)s as a description"),  # type: ignore[dict-item]
}
DESCRIPTIONS: Mapping[DescriptionState, Text] = {
    DescriptionState.BY_MODEL: gettext_lazy("%(file)s described by %(describer)s"),
    DescriptionState.FAILED: gettext_lazy("%(file)s not described: %(describer)s failed (%(code)s)"),
}
"""Sentences that name the model that described a file, or say why the description failed."""

EstimateDescribing = Callable[[str, FilePart], Estimate | None]
"""A function that returns how many tokens the named model would read to describe a file. None means unknown."""


@dataclass(frozen=True, slots=True)
class StopView:
    """A candidate in a run, as the page shows it."""

    place: int
    name: str
    tone: str
    icon: str
    code: str
    details: list[str]
    reason: RenderedSentence
    text: str
    described: bool
    payload: Any
    wire: str
    bytes: int
    open: bool
    prefix: str = ""


def outcome_text(outcome: str, attempt: Attempt | None) -> str:
    """Return the text of a candidate's chip: an HTTP status, fault or skip reason, and the number of tries."""
    if attempt is None or outcome in SKIPPED:
        return str(SKIPPED.get(outcome, outcome))
    code = "200" if outcome == OK else str(attempt.status_code or outcome)
    return f"{code} ×{len(attempt.tries)}" if len(attempt.tries) > 1 else code


def outcome_style(outcome: str, *, last: bool) -> tuple[str, str]:
    if outcome == OK:
        return "ok", "check"
    if outcome in SKIPPED:
        return "", "right"
    # The caller gets only the last failure. Earlier ones only caused a fallback.
    return ("bad", "stop") if last else ("warn", "refresh")


def describe_delivery(part: PartDelivery, estimate: EstimateDescribing) -> str:
    description, names = part.delivery.description, {"file": FILES[part.file.kind]}
    if description is None:
        return insert_facts(str(DELIVERY_TEXTS[part.delivery.form]), names)
    names |= {"describer": description.describer, "code": description.fault}
    if description.state is not DescriptionState.NOT_ASKED:
        return insert_facts(str(DESCRIPTIONS[description.state]), names)
    tokens = estimate(part.delivery.describer, part.file)
    if tokens is None:
        return insert_facts(_("%(file)s would be described by %(describer)s; not cached, tokens unknown"), names)
    template = _("%(file)s would be described by %(describer)s; not cached, tokens: about %(tokens)s")
    return insert_facts(template, {**names, "tokens": f"{tokens.tokens:,}"})


def describe_stop(
    outcome: str, attempt: Attempt | None, deliveries: Sequence[PartDelivery], estimate: EstimateDescribing
) -> list[str]:
    lines = [describe_delivery(part, estimate) for part in deliveries]
    if outcome in TABLE:
        lines.append(translate_sentence(TABLE[outcome].meaning))
    if attempt and attempt.waits:
        waits = join_words(f"{seconds:.1f} s" for seconds in attempt.waits)
        lines.append(_("waits %(times)s") % {"times": waits})
    if attempt and attempt.dropped_params:
        lines.append(_("without %(names)s") % {"names": join_words(attempt.dropped_params)})
    return lines


def render_received(chat: ChatRequest, deliveries: Sequence[PartDelivery]) -> str:
    """Return the text that a candidate reads. Files are shown by name in angle brackets."""
    # A delivery belongs to the file at the same position in the request.
    by_position = {(delivery.message, delivery.part): delivery for delivery in deliveries}
    blocks = []
    for message_index, message in enumerate(chat.messages):
        for part_index, part in enumerate(message.parts):
            if isinstance(part, TextPart):
                blocks.append(part.text)
            elif (message_index, part_index) in by_position:
                delivery = by_position[message_index, part_index]
                blocks.append(delivery.text or f"<{delivery.file.filename or delivery.file.mime_type}>")
    return "\n\n".join(block for block in blocks if block)
