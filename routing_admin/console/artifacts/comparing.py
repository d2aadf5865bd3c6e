"""Compare how two models receive the same artifact, side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET

from artifacts.library.queries import find_artifact
from capabilities.access import may
from capabilities.core.permissions import PagePart
from capabilities.core.side_by_side import SideBySideRow, compare_lines
from capabilities.quantities import size_text
from capabilities.sentences import join_words
from routing_admin.console.artifacts.detail import language_context, preview_language, record_reading
from routing_admin.console.artifacts.receiving import GROUPS, DeliveryCard, build_card
from routing_admin.console.base.page_responses import require_found
from routing_admin.console.base.tags.highlight import json_text
from routing_admin.dispatch.preview import Previewer

MAX_LINES, MAX_CHARS = 500, 6_000
"""Maximum number of lines and of characters to compare per text, because some models receive megabytes."""
MIN_FACTOR = 10


@dataclass(frozen=True, slots=True)
class ComparedFact:
    """A row of the comparison: the label of a fact, and the fact itself for each of the two services."""

    label: str
    left: str
    right: str

    @property
    def is_there(self) -> bool:
        return bool(self.left or self.right)

    @property
    def is_different(self) -> bool:
        return self.left != self.right


@dataclass(frozen=True, slots=True)
class ComparedText:
    """Two compared texts as pairs of lines. `is_cut` is true if only the beginnings of the texts were compared."""

    label: str
    rows: tuple[SideBySideRow, ...]
    is_cut: bool


@require_GET
def artifact_compare(request: HttpRequest, pk: str) -> HttpResponse:
    """Show how the services `?a=` and `?b=`, by default the first two, receive the artifact."""
    row, language = require_found(find_artifact(pk)), preview_language(request)
    previewer = Previewer(row, language=language)
    names = tuple(endpoint.name for endpoint in previewer.endpoints)
    left, right = (_choose_name(request.GET.get(name, ""), names, position) for position, name in enumerate("ab"))
    preview = previewer.preview(endpoint for endpoint in previewer.endpoints if endpoint.name in (left, right))
    may_read = may(request.user, PagePart.ARTIFACT_BYTES)
    if may_read:
        # The page shows the file's content to users who may read it, and records their access in the audit log.
        record_reading(request, row)
    cards = {delivery.service_id: build_card(preview, delivery, may_read) for delivery in preview.deliveries}
    context = {"row": row, "left": left, "right": right, **language_context(language)}
    if left in cards and right in cards:
        context |= _compare(cards[left], cards[right])
    return render(request, "artifacts/compare.html", context)


def _choose_name(name: str, names: tuple[str, ...], position: int) -> str:
    return name if name in names else names[min(position, len(names) - 1)] if names else ""


def _compare(left: DeliveryCard, right: DeliveryCard) -> dict[str, Any]:
    # Compare the texts only if the user may read both of them.
    may_read = left.may_read and right.may_read
    return {
        "cards": (left, right),
        "sentence": compare_tokens(left, right),
        "facts": [
            fact
            for label, describe in FACTS
            if (fact := ComparedFact(str(label), describe(left), describe(right))).is_there
        ],
        "texts": list(_compare_payloads(left, right)) if may_read else [],
        "may_read": may_read,
    }


def _form_hint(card: DeliveryCard) -> str:
    return next(str(hint) for form, _badge, _label, _tone, hint in GROUPS if form is card.preview.form)


FACTS: tuple[tuple[str | Promise, Callable[[DeliveryCard], str]], ...] = (
    (gettext_lazy("How it is received"), _form_hint),
    (gettext_lazy("Why"), lambda card: card.reason),
    (gettext_lazy("Missing parts"), lambda card: card.loss),
    (gettext_lazy("Place in the message"), lambda card: card.slot),
    (gettext_lazy("Tokens"), lambda card: f"≈ {card.tokens}" if card.tokens else _("tokens unknown")),
    (
        gettext_lazy("Size of the request"),
        lambda card: size_text(card.preview.bytes) if card.preview.payload else _("skipped"),
    ),
    (gettext_lazy("Protocol"), lambda card: card.preview.wire),
    (gettext_lazy("Content policies"), lambda card: join_words(card.policies)),
    (gettext_lazy("In the next turn"), lambda card: card.prefix),
)
"""Labels of the compared facts, with the functions that look up the fact for a service."""


def compare_tokens(left: DeliveryCard, right: DeliveryCard) -> str:
    """Return a sentence with both token counts and their difference, or an empty string if either count is unknown."""
    first, second = left.preview.estimate, right.preview.estimate
    if first is None or second is None:
        return ""
    names = {"left": left.id, "right": right.id, "first": left.tokens, "second": right.tokens}
    if first.tokens == second.tokens:
        return _("Tokens: about %(first)s each for %(left)s and %(right)s.") % names
    # A ratio of ten or more is clearer as a factor than as a percentage. There is no ratio if the first count is zero.
    ratio = second.tokens / first.tokens if first.tokens else 0
    share = f"×{ratio:,.0f}" if ratio >= MIN_FACTOR else f"{ratio - 1:+.0%}" if first.tokens else "+"
    template = _("Tokens: about %(first)s for %(left)s, about %(second)s for %(right)s (%(share)s).")
    return template % {**names, "share": share}


def _compare_payloads(left: DeliveryCard, right: DeliveryCard) -> list[ComparedText]:
    texts = [(_("Payload"), *(json_text(card.preview.payload or "") for card in (left, right)))]
    if left.preview.text is not None and right.preview.text is not None:
        texts.insert(0, (_("What the model sees"), left.preview.text, right.preview.text))
    return [compare_texts(*text) for text in texts]


def compare_texts(label: str, left: str, right: str) -> ComparedText:
    first, second = ("\n".join(text[:MAX_CHARS].splitlines()[:MAX_LINES]) for text in (left, right))
    is_cut = any(len(text) > MAX_CHARS or len(text.splitlines()) > MAX_LINES for text in (left, right))
    return ComparedText(label, compare_lines(first, second), is_cut)
