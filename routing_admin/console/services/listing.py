"""The page that lists model services with their providers, capabilities, agents and states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from capabilities.core.protocols import PROTOCOLS
from routing_admin.console.base.lists import Choice, Column, arrange, choose_state, natural_key, page_size
from routing_admin.console.base.page_responses import wants_fragment
from routing_admin.console.providers.queries import UNKNOWN_KEY
from routing_admin.console.providers.rules import key_badge
from routing_admin.console.services.queries import ServiceName, count_agents, describe_services, list_names
from routing_admin.dispatch.model_endpoints import KeyNote, list_key_notes

STATES: Mapping[str, str | Promise] = {
    "ok": gettext_lazy("Ready"),
    "no_key": gettext_lazy("No key"),
    "not_allowed": gettext_lazy("Address not allowed"),
    "disabled": gettext_lazy("Disabled"),
}
"""Maps each state of a service, a key in `labels.BADGES`, to a label. The state depends on the provider's key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceRow:
    """A service in the list, with the number of agents that use it."""

    name: ServiceName
    key: KeyNote
    agents: int

    @property
    def state(self) -> str:
        return key_badge(self.key) if self.name.enabled and self.name.provider_enabled else "disabled"


COLUMNS: Mapping[str, Column[ServiceRow]] = {
    "name": Column(lambda row: natural_key(row.name.service_id)),
    "provider": Column(lambda row: natural_key(row.name.shown_provider)),
    "agents": Column(lambda row: row.agents, falling=True),
    "state": Column(lambda row: list(STATES).index(row.state)),
}
CHOICES: Sequence[Choice[ServiceRow]] = (
    Choice(
        name="protocol",
        label=gettext_lazy("Protocol"),
        everything=gettext_lazy("All protocols"),
        values={name: name for name in PROTOCOLS},
        values_of=lambda row: (row.name.protocol,),
    ),
    choose_state(STATES, lambda row: (row.state,)),
)


def _texts(row: ServiceRow) -> Iterator[str]:
    yield from (row.name.service_id, row.name.model, row.name.provider, row.name.shown_provider)


def services(request: HttpRequest) -> HttpResponse:
    keys, agents = list_key_notes(), count_agents()
    rows = [
        ServiceRow(name=name, key=keys.get(name.provider, UNKNOWN_KEY), agents=agents.get(name.pk, 0))
        for name in list_names()
    ]
    listing = arrange(rows, request.GET, texts=_texts, columns=COLUMNS, choices=CHOICES, per_page=page_size(request))
    lines = describe_services([row.name.pk for row in listing.page])
    context = {
        "listing": listing,
        "entries": [(row, lines[row.name.pk]) for row in listing.page if row.name.pk in lines],
    }
    template = "capabilities/services.html#rows" if wants_fragment(request) else "capabilities/services.html"
    return render(request, template, context)
