"""The page that lists task routes with their chains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_GET, require_POST

from capabilities.access import request_actor
from capabilities.core.providers.probes.drift import Drifts
from capabilities.core.vocabulary import Capabilities
from capabilities.errors import ActionError
from capabilities.sentences import translate_refusal
from routing_admin.configuration import snapshot
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.console.base.lists import Choice, Column, arrange, choose_state, natural_key, page_size
from routing_admin.console.base.page_responses import add_toast, wants_fragment
from routing_admin.console.routes import phrases as words
from routing_admin.console.routes.actions import delete_route, save_route
from routing_admin.console.routes.phrases import list_warnings
from routing_admin.console.routes.queries import (
    CAUSES,
    UNABLE,
    RouteStatus,
    Traffic,
    find_route,
    list_statuses,
    list_unable,
    map_traffic,
)
from routing_admin.console.services.queries import map_drifts
from routing_admin.core.configuration.specs import DEFAULT_ROUTE, Configuration, LanguageSpec, RouteSpec
from routing_admin.core.planning.language import LANGUAGE_DIRECTIVES, get_language_directive, resolve_language
from routing_admin.core.planning.lint import SKIPS, ChainLint, CheckedCandidate, lint
from routing_admin.dispatch.decisions import unusable_providers
from routing_admin.request_log.search_words import Search, search_last_day
from routing_admin.request_log.time_ranges import window_start
from routing_admin.request_log.usage import count_requests

MAX_CHIPS = 3
"""Maximum number of a chain's candidates that the list shows. Further ones are only counted."""
STATES = {
    "ready": gettext_lazy("Ready"),
    UNABLE: gettext_lazy("Cannot answer"),
    "disabled": gettext_lazy("Disabled"),
}
"""Route states that the list can be filtered by."""


@dataclass(frozen=True, slots=True)
class ListedCandidate:
    """A chain's candidate as a chip in the list: its name, what it reads, and the chip's tone."""

    name: str
    reads: tuple[str, ...]
    tone: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedWarning:
    """A warning about a chain. `label` is empty unless the warning is serious or the route cannot answer."""

    tone: str
    icon: str
    text: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteRow:
    task_type: str
    enabled: bool
    stays: bool
    chain: tuple[ListedCandidate, ...]
    guaranteed: Capabilities
    warnings: tuple[ListedWarning, ...]
    traffic: Traffic

    @property
    def shown(self) -> tuple[ListedCandidate, ...]:
        # A single hidden candidate would take no more space than the count of hidden candidates, so it is shown.
        return self.chain if len(self.chain) == MAX_CHIPS + 1 else self.chain[:MAX_CHIPS]

    @property
    def further(self) -> int:
        return len(self.chain) - len(self.shown)

    @property
    def requests(self) -> str:
        return f"{self.traffic.requests:,}"

    @property
    def search(self) -> str:
        """Return the search text that finds the route's requests from the last day in the request log."""
        return self._search.to_text()

    @property
    def failed_search(self) -> str:
        return self._search.having("status", "failed").to_text()

    @property
    def fallback_search(self) -> str:
        return self._search.having("status", "fallback").to_text()

    @property
    def _search(self) -> Search:
        return search_last_day("task", self.task_type)


def route_rows(state: Snapshot, routes: Iterable[RouteSpec]) -> list[RouteRow]:
    """Return the rows of these routes with their traffic.

    One query reads the traffic from the log, and one reads the evidence against models' recorded capabilities.
    """
    routes = list(routes)
    traffic = map_traffic([route.task_type for route in routes], timezone.now())
    drifts = map_drifts()
    return [route_row(state, route, traffic.get(route.task_type, Traffic()), drifts) for route in routes]


def route_row(state: Snapshot, route: RouteSpec, traffic: Traffic, drifts: Drifts) -> RouteRow:
    findings = lint(
        state.configuration,
        route,
        unusable_providers(state),
        drifts,
        today=timezone.localdate(),
        catalogue=state.catalogue,
    )
    return RouteRow(
        task_type=route.task_type,
        enabled=route.enabled,
        stays=route.task_type == DEFAULT_ROUTE,
        chain=tuple(_candidate(candidate) for candidate in findings.candidates),
        guaranteed=findings.guaranteed,
        warnings=tuple(_warnings(findings)),
        traffic=traffic,
    )


def _warnings(findings: ChainLint) -> Iterator[ListedWarning]:
    for number, (tone, icon, text) in enumerate(list_warnings(findings)):
        label = str(STATES[UNABLE]) if not findings.callable and number == 0 else text if tone == "bad" else ""
        yield ListedWarning(tone=tone, icon=icon, text=text, label=label)


def _candidate(candidate: CheckedCandidate) -> ListedCandidate:
    name = candidate.service.id if candidate.service else f"{candidate.spec.provider}/{candidate.model}"
    skips = next((words.FINDINGS[finding] for finding in candidate.findings if finding in SKIPS), None)
    media = tuple(word for word in candidate.capabilities.input if word != "text")
    return ListedCandidate(name, media, "off" if candidate.skipped else "", str(skips[2]) if skips else "")


def summarize(routes: Sequence[RouteStatus]) -> str:
    """Return a sentence that says how many of the enabled routes can answer."""
    able = len(routes) - len(list_unable(routes))
    if not routes:
        return _("All task routes are disabled.")
    if able == len(routes):
        return ngettext("The task route works.", "All %(count)d task routes are working.", able) % {"count": able}
    text = _("%(able)d of %(count)d task routes are working. The others have no candidate that can be called.")
    return text % {"able": able, "count": len(routes)}


def route_state(route: RouteSpec, causes: Mapping[str, str]) -> str:
    """Return the route's state, a key in `STATES`.

    `causes` maps each enabled route to the reason why it cannot answer, or to an empty string.
    """
    if not route.enabled:
        return "disabled"
    return UNABLE if causes[route.task_type] else "ready"


def choices(causes: Mapping[str, str]) -> list[Choice[RouteSpec]]:
    """Return the list's filters: by state and, for routes that cannot answer, by cause.

    For `causes`, see `route_state`.
    """
    counted = Counter(filter(None, causes.values())).most_common()
    return [
        choose_state(STATES, lambda route: (route_state(route, causes),)),
        Choice(
            name="cause",
            label=_("Cause"),
            everything=_("All causes"),
            values={cause: CAUSES[cause] for cause, _count in counted},
            values_of=lambda route: (causes.get(route.task_type, ""),),
        ),
    ]


def columns(causes: Mapping[str, str], requests: Mapping[str, int]) -> dict[str, Column[RouteSpec]]:
    return {
        "name": Column(lambda route: natural_key(route.task_type)),
        "requests": Column(lambda route: requests.get(route.task_type, 0), falling=True),
        "state": Column(lambda route: list(STATES).index(route_state(route, causes))),
    }


def search_texts(configuration: Configuration, route: RouteSpec) -> Iterator[str]:
    """Yield the texts that can match a search: the task type, and each candidate's provider, model and service."""
    yield route.task_type
    for candidate in route.candidates:
        provider = configuration.provider(candidate.provider)
        model = candidate.model or (provider.default_model if provider else "")
        service = configuration.service_at(candidate.provider, model)
        yield f"{candidate.provider}/{model} {service.id if service else ''}"


@dataclass(frozen=True, slots=True)
class LanguageView:
    """The default language, its directive to models, and the other languages."""

    code: str
    directive: str
    others: tuple[LanguageSpec, ...]


def language_view(configuration: Configuration) -> LanguageView:
    directives = {**LANGUAGE_DIRECTIVES, **{language.code: language.directive for language in configuration.languages}}
    default = configuration.default_language
    code = resolve_language(None, default, directives)
    others = tuple(LanguageSpec(key, text) for key, text in directives.items() if key != code)
    return LanguageView(code, get_language_directive(None, default, directives), others)


def context(request: HttpRequest, state: Snapshot) -> dict[str, Any]:
    configuration, standings = state.configuration, list_statuses(state)
    causes = {standing.task_type: standing.cause for standing in standings}
    is_by_requests = request.GET.get("sort", "").endswith("requests")
    requests = count_requests("route", window_start(timezone.now())) if is_by_requests else {}
    listing = arrange(
        # Routes that cannot answer are first. Among hundreds of routes, they could otherwise be on the last page.
        sorted(configuration.routes, key=lambda route: route_state(route, causes) != UNABLE),
        request.GET,
        texts=lambda route: search_texts(configuration, route),
        columns=columns(causes, requests),
        choices=choices(causes),
        per_page=page_size(request),
    )
    return {
        "listing": listing,
        "rows": route_rows(state, listing.page),
        "sentence": summarize(standings),
        "default_language": language_view(configuration),
        "aliases": len(configuration.aliases),
        **words.describing_context(configuration, *(route for route in configuration.routes if route.enabled)),
    }


@require_GET
def routes(request: HttpRequest) -> HttpResponse:
    template = "routes/list.html#rows" if wants_fragment(request) else "routes/list.html"
    return render(request, template, context(request, snapshot.current()))


@require_POST
def enabled(request: HttpRequest, task_type: str) -> HttpResponse:
    """Enable or disable a route and return its new row. Raise `Http404` for an unknown route."""
    row = find_route(task_type)
    if row is None:
        raise Http404
    row.enabled = "enabled" in request.POST
    try:
        change = save_route(request_actor(request), row, expected=row.version)
    except ActionError as refusal:
        messages.error(request, translate_refusal(refusal))
    else:
        text = (
            _("%(name)s is enabled.") if row.enabled else _("%(name)s is disabled; its tasks go to the default route.")
        )
        add_toast(request, text % {"name": task_type}, change.revision)
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect("routes")
    state = snapshot.current()
    spec = state.configuration.route(task_type)
    # The change has published a new snapshot, so the row is rendered from the snapshot instead of the form.
    return render(request, "routes/list.html#row", {"row": route_rows(state, [spec])[0]} if spec else {})


@require_POST
def delete(request: HttpRequest, task_type: str) -> HttpResponse:
    """Delete a route. If this is impossible, the route's page says why. Raise `Http404` for an unknown route."""
    row = find_route(task_type)
    if row is None:
        raise Http404
    try:
        change = delete_route(request_actor(request), row)
    except ActionError as refusal:
        messages.error(request, translate_refusal(refusal))
        return redirect("route", task_type)
    text = _("Task route %(name)s is deleted; its tasks go to the default route.")
    add_toast(request, text % {"name": task_type}, change.revision)
    return redirect("routes")
