"""What the page of one artifact shows of each model service; decided by `artifacts.preview`, put into words here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from artifacts.preview import DeliveryPreview, Preview
from artifacts.views.words import POLICIES, is_gone, reason_sentence
from capabilities.core.delivery.decision import DeliveryForm, Outcome
from capabilities.core.vocabulary import Kind
from capabilities.ports import ports
from capabilities.sentences import translate_sentence

EAGER = 16
"""So many services are shown with their payloads at once; of more, all but the first of each group come when opened."""

GROUPS: tuple[tuple[DeliveryForm, str, str, Promise], ...] = (
    (DeliveryForm.AS_IS, "native", "ok", gettext_lazy("the model gets the file")),
    (DeliveryForm.CONVERTED, "converted", "info", gettext_lazy("the model gets its text, or another form of it")),
    (DeliveryForm.CUT, "cut", "warn", gettext_lazy("the model gets a part of it, or a smaller form")),
    (DeliveryForm.DESCRIBED, "described", "warn", gettext_lazy("the model is only told that it exists")),
)
"""The four words, each with its badge, its tone and one line."""

WORDS_OF_THE_FILE = frozenset({Outcome.INLINED, Outcome.EXTRACTED})
"""Outcomes whose payload holds what the file says, which a viewer may not read."""


@dataclass(frozen=True, slots=True)
class DeliveryCard:
    """One service as the page shows it: its delivery, the reason in words, the content policies in force."""

    id: str
    preview: DeliveryPreview
    reason: str
    slot: str
    policies: tuple[str, ...]
    is_open: bool
    has_body: bool
    may_read: bool
    agents: tuple[str, ...]
    tone: str
    prefix: str
    loss: str

    @property
    def tokens(self) -> str:
        """The estimate with its thousands set apart; empty when nobody knows."""
        return f"{self.preview.estimate.tokens:,}" if self.preview.estimate else ""

    @property
    def result(self) -> dict[str, Any]:
        """get_artifact's answer as JSON."""
        return self.preview.result.as_json()


@dataclass(frozen=True, slots=True)
class Group:
    """The services that get the file in one of the three ways."""

    badge: str
    tone: str
    hint: str | Promise
    cards: tuple[DeliveryCard, ...]


def list_routed_services() -> frozenset[str]:
    """The ids of services that stand in a task route."""
    routes = ports.routes
    return frozenset(link.name for task in routes.task_types() for link in routes.chain(task))


def count_forms(deliveries: Iterable[DeliveryPreview]) -> dict[str, int]:
    """How many services get the file in which of the three ways."""
    forms = [each.form for each in deliveries]
    return {badge: forms.count(word) for word, badge, _, _ in GROUPS}


def group_cards(
    preview: Preview, deliveries: Sequence[DeliveryPreview], may_read: bool, opened: str = ""
) -> list[Group]:
    """The groups that are not empty. `opened` is the service that was asked for; else the first of each is open."""
    found = []
    for form, badge, tone, hint in GROUPS:
        here = [each for each in deliveries if each.form is form]
        first = opened or (here[0].service_id if here else "")
        eager = len(deliveries) <= EAGER
        cards = tuple(
            build_card(preview, each, may_read, tone, is_open=each.service_id == first, eager=eager) for each in here
        )
        if cards:
            found.append(Group(badge, tone, hint, cards))
    return found


def build_card(
    preview: Preview, each: DeliveryPreview, may_read: bool, tone: str = "", *, is_open: bool = True, eager: bool = True
) -> DeliveryCard:
    """One service."""
    gone = is_gone(each.reason)
    reads_words = each.outcome in WORDS_OF_THE_FILE or preview.artifact.kind is Kind.TEXT
    return DeliveryCard(
        id=each.service_id,
        preview=each,
        reason=reason_sentence(each.reason),
        slot=_slot(each),
        policies=tuple(str(text) for policy, text in POLICIES.items() if policy in each.policies),
        is_open=is_open,
        has_body=is_open or eager,
        may_read=may_read or not reads_words,
        agents=() if each.form is not DeliveryForm.DESCRIBED or gone else preview.readers,
        tone=tone or next(tone for word, _, tone, _ in GROUPS if word is each.form),
        prefix=translate_sentence(each.prefix),
        loss=translate_sentence(each.loss.sentence()) if each.loss else "",
    )


def _slot(each: DeliveryPreview) -> str:
    """Where the protocol puts it; `text` for words."""
    facts = each.reason.facts
    return "text" if each.text is not None else str(facts.get("slot") or _in_payload(each.payload))


MEDIA_KEYS = (
    "image_url",
    "input_audio",
    "video_url",
    "inlineData",
    "inline_data",
    "document",
    "image",
    "file",
    "audio",
)


def _in_payload(payload: Any) -> str:
    """The name of the media part in a payload: OpenAI's and Anthropic's `type`, Gemini's key."""
    if isinstance(payload, dict):
        if payload.get("type") in MEDIA_KEYS:
            return str(payload["type"])
        found = next((key for key in MEDIA_KEYS if isinstance(payload.get(key), dict)), "")
        return found or next((name for value in payload.values() if (name := _in_payload(value))), "")
    if isinstance(payload, list):
        return next((name for value in payload if (name := _in_payload(value))), "")
    return ""
