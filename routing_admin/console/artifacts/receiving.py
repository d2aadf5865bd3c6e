"""Describe how each model service receives an artifact, for the artifact's page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Page, Paginator
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from capabilities.core.delivery.decision import DeliveryForm, Outcome
from capabilities.core.delivery.model_endpoint import ModelEndpoint
from capabilities.core.texts.description import MAX_NAMED_AGENTS
from capabilities.core.translatable import insert_facts
from capabilities.core.vocabulary import Kind
from capabilities.sentences import translate_sentence
from routing_admin.configuration import snapshot
from routing_admin.configuration.agents.queries import list_links
from routing_admin.console.artifacts.phrases import POLICIES, is_gone, reason_sentence
from routing_admin.dispatch.preview import DeliveryPreview, Preview, Previewer

FEW, PER_PAGE = 8, 40
"""Maximum number of services to show in each group: in the overview, and on a page of a single group."""
MAX_OPEN_CHARS = 4_000
"""The first card of a group is open if its text has at most this many characters."""

MAX_SHOWN = 50_000
"""Maximum number of characters of a payload's text on the page. The API returns the whole text."""


def shorten_texts(value: Any) -> Any:
    """Return JSON in which a note replaces the middle of each long text, because some models receive megabytes."""
    if isinstance(value, dict):
        return {key: shorten_texts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shorten_texts(item) for item in value]
    if not isinstance(value, str) or len(value) <= MAX_SHOWN:
        return value
    half = MAX_SHOWN // 2
    note = insert_facts(
        _("[%(hidden)s characters are sent but not shown here]"), {"hidden": f"{len(value) - 2 * half:,}"}
    )
    return f"{value[:half]}\n{note}\n{value[-half:]}"


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
"""Ways to deliver a file, each with its badge, label, tone and hint."""

VERBATIM_OUTCOMES = frozenset({Outcome.INLINED, Outcome.EXTRACTED})
"""Outcomes in which the payload contains the file's own text. Only users with access to the file's bytes may read it.
"""


@dataclass(frozen=True, slots=True)
class DeliveryCard:
    """A service on the page: how it receives the file, why, and which content policies apply."""

    id: str
    preview: DeliveryPreview
    reason: str
    slot: str
    policies: tuple[str, ...]
    is_open: bool
    may_read: bool
    agents: tuple[str, ...]
    other_agents: int
    tone: str
    prefix: str
    loss: str
    not_described: str

    @property
    def tokens(self) -> str:
        return f"{self.preview.estimate.tokens:,}" if self.preview.estimate else ""

    @property
    def text(self) -> str | None:
        return None if self.preview.text is None else str(shorten_texts(self.preview.text))

    @property
    def payload(self) -> Any:
        return shorten_texts(self.preview.payload)

    @property
    def result(self) -> dict[str, Any]:
        return self.preview.result.as_json()


@dataclass(frozen=True, slots=True)
class Group:
    """The services that receive the file in the same way."""

    badge: str
    label: str | Promise
    tone: str
    hint: str | Promise
    cards: tuple[DeliveryCard, ...]
    total: int


def list_routed_services() -> frozenset[str]:
    routes = snapshot.current().configuration.routes
    return frozenset(link.name for route in routes for link in list_links(route.task_type))


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointFilter:
    """Selects the services to show: those that match `q`, those that routes use, or one page of a group.

    `badge` names the group. Several conditions are combined. `opened` is the service whose payload is shown.
    """

    q: str = ""
    routed: bool = False
    badge: str = ""
    page: str = ""
    opened: str = ""

    def select(self, endpoints: Iterable[ModelEndpoint]) -> list[ModelEndpoint]:
        routed, query = list_routed_services() if self.routed else None, self.q.casefold()
        return [
            endpoint
            for endpoint in endpoints
            if (routed is None or endpoint.name in routed)
            and query in f"{endpoint.name} {endpoint.target.provider} {endpoint.target.model}".casefold()
        ]


@dataclass(frozen=True, slots=True)
class EndpointList:
    """The services on the page: counts by form of delivery, groups of cards, and services that are still waiting.

    A service waits until the document pages that it receives as images have been rendered.
    """

    counts: Mapping[str, int]
    groups: tuple[Group, ...]
    page: Page[ModelEndpoint] | None
    waiting: tuple[ModelEndpoint, ...] = ()

    @property
    def forms(self) -> list[tuple[str, str, str | Promise, int]]:
        return [(badge, tone, label, self.counts[badge]) for _, badge, label, tone, _ in GROUPS if self.counts[badge]]

    @property
    def total(self) -> int:
        return sum(self.counts.values()) + len(self.waiting)


def list_endpoints(
    previewer: Previewer, asked_for: EndpointFilter, may_read: bool, *, draws: bool = True
) -> EndpointList:
    """List the services.

    Unless `draws` is true, services for which document pages must first be rendered are only listed as waiting.
    """
    selected = asked_for.select(previewer.endpoints)
    waiting = [endpoint for endpoint in selected if previewer.must_draw(endpoint)]
    is_waiting = {id(endpoint) for endpoint in waiting}
    by_form: dict[DeliveryForm, list[ModelEndpoint]] = {}
    for endpoint in selected:
        if draws or id(endpoint) not in is_waiting:
            by_form.setdefault(previewer.form_at(endpoint), []).append(endpoint)
    # Every service is counted by its form of delivery, but only services on the page get a full preview.
    counts = {badge: len(by_form.get(form, ())) for form, badge, _, _, _ in GROUPS}
    page, groups = None, []
    for form, badge, label, tone, hint in GROUPS:
        endpoints = by_form.get(form, [])
        if not endpoints or asked_for.badge not in ("", badge):
            continue
        page = Paginator(endpoints, PER_PAGE).get_page(asked_for.page) if asked_for.badge else None
        shown = list(page) if page else _first_few(endpoints, asked_for.opened)
        # If this group's services were shown as waiting before, its first card stays closed, so that the content below
        # does not move.
        opens_first = id(shown[0]) not in is_waiting
        cards = _build_cards(previewer.preview(shown), may_read, tone, asked_for.opened, opens_first=opens_first)
        groups.append(Group(badge, label, tone, hint, cards, len(endpoints)))
    return EndpointList(counts, tuple(groups), page, () if draws else tuple(waiting))


def _first_few(endpoints: list[ModelEndpoint], opened: str) -> list[ModelEndpoint]:
    return [endpoint for position, endpoint in enumerate(endpoints) if position < FEW or endpoint.name == opened]


def _build_cards(
    preview: Preview, may_read: bool, tone: str, opened: str, *, opens_first: bool
) -> tuple[DeliveryCard, ...]:
    first = preview.deliveries[0]
    # If no card is requested, the first card is open if its text is short.
    open_id = opened or (first.service_id if opens_first and len(first.text or "") <= MAX_OPEN_CHARS else "")
    return tuple(
        build_card(preview, delivery, may_read, tone, is_open=delivery.service_id == open_id)
        for delivery in preview.deliveries
    )


def pick_pair(groups: Sequence[Group]) -> str:
    """Return a query string that compares two services, from different groups if possible.

    It is empty if there are no services.
    """
    return urlencode({"a": groups[0].cards[0].id, "b": groups[-1].cards[-1].id}) if groups else ""


def build_card(
    preview: Preview, delivery: DeliveryPreview, may_read: bool, tone: str = "", *, is_open: bool = True
) -> DeliveryCard:
    """Return the card of a service. A closed card loads its content only when it is opened."""
    is_unavailable = is_gone(delivery.reason)
    is_described = delivery.description is not None and delivery.description.is_cached
    agents = () if delivery.form is not DeliveryForm.DESCRIBED or is_unavailable else preview.readers
    reads_words = delivery.outcome in VERBATIM_OUTCOMES or is_described or preview.artifact.kind is Kind.TEXT
    return DeliveryCard(
        id=delivery.service_id,
        preview=delivery,
        reason=reason_sentence(delivery.reason),
        slot=_payload_slot(delivery),
        policies=tuple(str(text) for policy, text in POLICIES.items() if policy in delivery.policies),
        is_open=is_open,
        may_read=may_read or not reads_words,
        agents=agents[:MAX_NAMED_AGENTS],
        other_agents=max(0, len(agents) - MAX_NAMED_AGENTS),
        tone=tone or next(tone for word, _, _, tone, _ in GROUPS if word is delivery.form),
        prefix=translate_sentence(delivery.prefix),
        loss=translate_sentence(delivery.loss.sentence()) if delivery.loss else "",
        not_described=reason_sentence(delivery.not_described) if delivery.not_described else "",
    )


def _payload_slot(delivery: DeliveryPreview) -> str:
    facts = delivery.reason.facts
    return "text" if delivery.text is not None else str(facts.get("slot") or _find_media_key(delivery.payload))


# OpenAI and Anthropic name the kind of content in `type`, while Gemini uses the kind as a key.
MEDIA_KEYS = (
    "image_url",
    "input_image",
    "input_file",
    "input_audio",
    "video_url",
    "inlineData",
    "inline_data",
    "document",
    "image",
    "file",
    "audio",
)


def _find_media_key(payload: Any) -> str:
    if isinstance(payload, dict):
        if payload.get("type") in MEDIA_KEYS:
            return str(payload["type"])
        media_key = next((key for key in MEDIA_KEYS if isinstance(payload.get(key), dict)), "")
        return media_key or next((name for value in payload.values() if (name := _find_media_key(value))), "")
    if isinstance(payload, list):
        return next((name for value in payload if (name := _find_media_key(value))), "")
    return ""
