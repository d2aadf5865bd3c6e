"""The list of providers with their keys, uses, requests and states. Many can be enabled or disabled at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_POST

from capabilities.access import request_actor
from capabilities.labels import BADGES
from capabilities.models import Provider
from capabilities.sentences import join_names
from routing_admin.configuration import snapshot
from routing_admin.console.base.consequences import find_unconfirmed_disabling
from routing_admin.console.base.lists import (
    PAGE_SIZES,
    Choice,
    Column,
    Listing,
    arrange,
    choose_state,
    natural_key,
    page_size,
)
from routing_admin.console.base.page_responses import add_toast, wants_fragment
from routing_admin.console.providers.actions import enable_providers
from routing_admin.console.providers.forms import PROTOCOLS
from routing_admin.console.providers.queries import ProviderLine, count_uses, find_providers, list_providers
from routing_admin.console.providers.rules import BADGES_BY_SEVERITY, DISABLED, READY
from routing_admin.core.configuration.specs import KeyKind
from routing_admin.request_log.search_words import search_last_day
from routing_admin.request_log.time_ranges import window_start
from routing_admin.request_log.usage import count_requests

STOPPED, FAILED = "stopped", "failed"
STATES: Mapping[str, str | Promise] = {
    READY: BADGES[READY][2],
    STOPPED: gettext_lazy("Not ready"),
    **{name: BADGES[name][2] for name in BADGES_BY_SEVERITY if name not in (READY, DISABLED)},
    FAILED: gettext_lazy("Last test failed"),
    DISABLED: BADGES[DISABLED][2],
}
"""Labels of the state filter's values: the states themselves, and groups of states."""


KEYS: Mapping[str, str | Promise] = {
    KeyKind.STORED: gettext_lazy("stored here"),
    KeyKind.ENV: gettext_lazy("from a variable"),
    KeyKind.NONE: gettext_lazy("not needed"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderRow:
    """A provider in the list, with its requests in the last day and the number of routes and services that use it."""

    line: ProviderLine
    routes: int
    services: int
    requests: int
    keys: Collection[str] = ()

    @property
    def provider(self) -> Provider:
        return self.line.row

    @property
    def states(self) -> Collection[str]:
        """Return the values of the state filter that include the provider."""
        found = {self.line.state.name}
        found |= {STOPPED} if self.is_stopped else set()
        return found | {FAILED} if self.line.test and self.line.test.fault else found

    @property
    def is_stopped(self) -> bool:
        return self.line.row.enabled and not self.line.state.is_ready

    @property
    def search(self) -> str:
        """Return the search text that finds, in the request log, the last day's requests that reached the provider."""
        return search_last_day("provider", self.provider.name).to_text()


COLUMNS: Mapping[str, Column[ProviderRow]] = {
    "name": Column(lambda row: natural_key(str(row.provider))),
    "protocol": Column(lambda row: row.provider.protocol),
    "used": Column(lambda row: (row.routes, row.services), falling=True),
    "requests": Column(lambda row: row.requests, falling=True),
    "state": Column(lambda row: row.line.state.rank),
}
CHOICES: Sequence[Choice[ProviderRow]] = (
    Choice(
        name="protocol",
        label=gettext_lazy("Protocol"),
        everything=gettext_lazy("All protocols"),
        values={name: name for name, _label in PROTOCOLS},
        values_of=lambda row: (row.provider.protocol,),
    ),
    choose_state(STATES, lambda row: row.states),
    Choice(
        name="key",
        label=gettext_lazy("Key"),
        everything=gettext_lazy("All keys"),
        values=KEYS,
        values_of=lambda row: row.keys,
    ),
)


def _texts(row: ProviderRow) -> Iterator[str]:
    yield from (row.provider.name, row.provider.display_name, row.provider.endpoint)
    if preset := row.line.preset:
        yield from (preset.label_en, preset.label_zh)


def list_rows() -> list[ProviderRow]:
    """Return all providers in their configured order. This takes six queries."""
    configured = snapshot.current().configuration.providers
    keys = {provider.name: {key.kind for key in (provider.key, *provider.more_keys)} for provider in configured}
    requests, (routes, services) = count_requests("provider", window_start(timezone.now())), count_uses()
    return [
        ProviderRow(
            line=line,
            routes=routes.get(line.row.pk, 0),
            services=services.get(line.row.pk, 0),
            requests=requests.get(line.row.name, 0),
            keys=keys.get(line.row.name, ()),
        )
        for line in list_providers()
    ]


def list_matches(
    rows: Sequence[ProviderRow], query: Mapping[str, str], per_page: int = PAGE_SIZES[0]
) -> Listing[ProviderRow]:
    """Return the list that a query string or form selects, by default with troubled providers first."""
    return arrange(rows, query, texts=_texts, columns=COLUMNS, choices=CHOICES, sort="state", per_page=per_page)


def providers(request: HttpRequest) -> HttpResponse:
    rows = list_rows()
    stopped = sum(row.is_stopped for row in rows)
    context = {
        "listing": list_matches(rows, request.GET, page_size(request)),
        "sentence": summarize(rows, stopped),
        "stopped": f"?state={STOPPED}" if stopped else "",
    }
    template = "capabilities/providers.html#rows" if wants_fragment(request) else "capabilities/providers.html"
    return render(request, template, context)


def summarize(rows: Sequence[ProviderRow], stopped: int) -> str:
    """Return a sentence that says how many providers are not ready."""
    if not rows:
        return _("No provider yet.")
    if stopped:
        text = ngettext(
            "%(count)s of %(all)s providers is not ready.", "%(count)s of %(all)s providers are not ready.", stopped
        )
        return text % {"count": stopped, "all": len(rows)}
    enabled = sum(row.provider.enabled for row in rows)
    text = ngettext("%(count)s enabled provider is ready.", "All %(count)s enabled providers are ready.", enabled)
    return text % {"count": enabled}


@require_POST
def providers_switch(request: HttpRequest) -> HttpResponse:
    """Enable or disable the named providers or, with `all`, those that match the posted search and filters."""
    enabled = request.POST.get("enabled") == "1"
    listing = list_matches(list_rows(), request.POST)
    chosen = [row.provider.name for row in listing.rows] if "all" in request.POST else request.POST.getlist("name")
    rows = find_providers(chosen)
    names = [row.name for row in rows if row.enabled]
    # Disabling a provider needs a confirmation if this affects routes or agents.
    effects = () if enabled else find_unconfirmed_disabling(request, "provider", names)
    if effects:
        context = {"rows": rows, "names": join_names([str(row) for row in rows]), "effects": effects}
        return render(request, "capabilities/providers_disable.html", context)
    changed = enable_providers(request_actor(request), rows, enabled=enabled)
    word = (
        ngettext("%(count)s provider enabled", "%(count)s providers enabled", changed.count)
        if enabled
        else ngettext("%(count)s provider disabled", "%(count)s providers disabled", changed.count)
    )
    add_toast(request, word % {"count": changed.count}, changed.revision)
    query = urlencode(listing.filters)
    return redirect(f"{reverse('providers')}?{query}" if query else "providers")
