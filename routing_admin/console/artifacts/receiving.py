"""What the page of one artifact shows of each model service: the preview of `routing_admin.dispatch` in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Page, Paginator
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy, pgettext_lazy

from capabilities.core.delivery.decision import DeliveryForm, Outcome
from capabilities.core.delivery.model_endpoint import ModelEndpoint
from capabilities.core.vocabulary import Kind
from capabilities.sentences import translate_sentence
from routing_admin.configuration import snapshot
from routing_admin.configuration.agents.queries import list_links
from routing_admin.console.artifacts.words import POLICIES, is_gone, reason_sentence
from routing_admin.dispatch.preview import DeliveryPreview, Preview, Previewer

FEW, PER_PAGE = 8, 40
"""Of each group so many services stand on the page; where one group is asked for, a page of it."""
SHORT = 4_000
"""Characters of the words in place of a file up to which the first of a group is open; longer ones come when opened."""

GROUPS: tuple[tuple[DeliveryForm, str, str | Promise, str, Promise], ...] = (
    (
        *(DeliveryForm.AS_IS, "native", pgettext_lazy("delivery", "As it is"), "ok"),
        gettext_lazy("the model gets the file"),
    ),
    (
        *(DeliveryForm.CONVERTED, "converted", pgettext_lazy("delivery", "Converted"), "info"),
        gettext_lazy("the model gets its text, or another format"),
    ),
    (
        *(DeliveryForm.CUT, "cut", pgettext_lazy("delivery", "Not whole"), "warn"),
        gettext_lazy("the model gets part of it, or a smaller version"),
    ),
    (
        *(DeliveryForm.DESCRIBED, "described", pgettext_lazy("delivery", "Described only"), "warn"),
        gettext_lazy("the model only gets a description"),
    ),
)
"""The four words, each with its badge, its label, its tone and one line."""

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
    may_read: bool
    agents: tuple[str, ...]
    tone: str
    prefix: str
    loss: str
    not_described: str

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
    label: str | Promise
    tone: str
    hint: str | Promise
    cards: tuple[DeliveryCard, ...]
    total: int


def list_routed_services() -> frozenset[str]:
    """The ids of services that stand in a task route."""
    routes = snapshot.current().configuration.routes
    return frozenset(link.name for route in routes for link in list_links(route.task_type))


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointFilter:
    """Which services a page is asked for: words, those in a route alone, one group by its badge, and a page of it.

    `opened` is the service whose payload is asked for.
    """

    q: str = ""
    routed: bool = False
    badge: str = ""
    page: str = ""
    opened: str = ""

    def select(self, endpoints: Iterable[ModelEndpoint]) -> list[ModelEndpoint]:
        """Those that words and routes leave."""
        routed, wanted = list_routed_services() if self.routed else None, self.q.casefold()
        return [
            each
            for each in endpoints
            if (routed is None or each.name in routed)
            and wanted in f"{each.name} {each.target.provider} {each.target.model}".casefold()
        ]


@dataclass(frozen=True, slots=True)
class EndpointList:
    """What the page shows of the services: how many get the file in which form, and the groups with their cards."""

    counts: Mapping[str, int]
    groups: tuple[Group, ...]
    page: Page[ModelEndpoint] | None
    readers: tuple[str, ...]

    @property
    def forms(self) -> list[tuple[str, str, str | Promise, int]]:
        """Badge, tone, label and number of each form that some service gets."""
        return [(badge, tone, label, self.counts[badge]) for _, badge, label, tone, _ in GROUPS if self.counts[badge]]

    @property
    def total(self) -> int:
        """How many services the filter leaves."""
        return sum(self.counts.values())


def list_endpoints(previewer: Previewer, asked_for: EndpointFilter, may_read: bool) -> EndpointList:
    """The services that the filter leaves, group by group; only what stands on the page is previewed whole."""
    by_form: dict[DeliveryForm, list[ModelEndpoint]] = {}
    for endpoint in asked_for.select(previewer.endpoints):
        by_form.setdefault(previewer.form_at(endpoint), []).append(endpoint)
    counts = {badge: len(by_form.get(form, ())) for form, badge, _, _, _ in GROUPS}
    page, found, readers = None, [], previewer.readers
    for form, badge, label, tone, hint in GROUPS:
        everyone = by_form.get(form, [])
        if not everyone or asked_for.badge not in ("", badge):
            continue
        page = Paginator(everyone, PER_PAGE).get_page(asked_for.page) if asked_for.badge else None
        here = list(page) if page else _first_few(everyone, asked_for.opened)
        cards = _build_cards(previewer.preview(here), may_read, tone, asked_for.opened)
        found.append(Group(badge, label, tone, hint, cards, len(everyone)))
    return EndpointList(counts, tuple(found), page, readers)


def _first_few(endpoints: list[ModelEndpoint], opened: str) -> list[ModelEndpoint]:
    return [each for at, each in enumerate(endpoints) if at < FEW or each.name == opened]


def _build_cards(preview: Preview, may_read: bool, tone: str, opened: str) -> tuple[DeliveryCard, ...]:
    """The cards of a group; the one that was asked for is open, else the first, where it is short."""
    first = preview.deliveries[0]
    chosen = opened or (first.service_id if len(first.text or "") <= SHORT else "")
    return tuple(
        build_card(preview, each, may_read, tone, is_open=each.service_id == chosen) for each in preview.deliveries
    )


def pick_pair(groups: Sequence[Group]) -> str:
    """Two services to compare at first, as a query, of different groups where there are such; empty without any."""
    return urlencode({"a": groups[0].cards[0].id, "b": groups[-1].cards[-1].id}) if groups else ""


def build_card(
    preview: Preview, each: DeliveryPreview, may_read: bool, tone: str = "", *, is_open: bool = True
) -> DeliveryCard:
    """One service; what it gets comes when its card is opened."""
    gone = is_gone(each.reason)
    is_described = each.description is not None and each.description.is_cached
    reads_words = each.outcome in WORDS_OF_THE_FILE or is_described or preview.artifact.kind is Kind.TEXT
    return DeliveryCard(
        id=each.service_id,
        preview=each,
        reason=reason_sentence(each.reason),
        slot=_slot(each),
        policies=tuple(str(text) for policy, text in POLICIES.items() if policy in each.policies),
        is_open=is_open,
        may_read=may_read or not reads_words,
        agents=() if each.form is not DeliveryForm.DESCRIBED or gone else preview.readers,
        tone=tone or next(tone for word, _, _, tone, _ in GROUPS if word is each.form),
        prefix=translate_sentence(each.prefix),
        loss=translate_sentence(each.loss.sentence()) if each.loss else "",
        not_described=reason_sentence(each.not_described) if each.not_described else "",
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
