"""The page of task routes with their chains, and of the aliases."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_GET, require_POST

from capabilities.access import actor_of
from capabilities.core.providers.probes.drift import Drifts
from capabilities.core.vocabulary import Capabilities
from capabilities.errors import ActionError
from capabilities.sentences import translate_refusal
from routing_admin.configuration import snapshot
from routing_admin.configuration.guards import find_refusal
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.console.base.page_responses import add_toast, wants_fragment
from routing_admin.console.routes import phrases as words
from routing_admin.console.routes.actions import check_can_delete_route, delete_route, save_alias, save_route
from routing_admin.console.routes.forms import AliasForm
from routing_admin.console.routes.phrases import warnings_of
from routing_admin.console.routes.queries import (
    CAUSES,
    UNABLE,
    Standing,
    Traffic,
    find_route,
    list_standings,
    list_unable,
    map_traffic,
)
from routing_admin.console.services.queries import map_drifts
from routing_admin.core.configuration.specs import DEFAULT_ROUTE, AliasSpec, Configuration, LanguageSpec, RouteSpec
from routing_admin.core.planning.language import LANGUAGE_DIRECTIVES, get_language_directive, resolve_language
from routing_admin.core.planning.lint import SKIPS, CheckedCandidate, lint
from routing_admin.core.planning.model_names import CATCH_ALL, is_target, task_name
from routing_admin.dispatch.decisions import unusable_of
from routing_admin.request_log.search_words import Search
from routing_admin.request_log.time_ranges import DAY_HOURS

if TYPE_CHECKING:
    from routing_admin.models import TaskRoute

PER_PAGE = 20
STATES = {
    "ready": gettext_lazy("Ready"),
    UNABLE: gettext_lazy("Cannot answer"),
    "disabled": gettext_lazy("Disabled"),
}
"""The states of routes, as their list is filtered by them."""


@dataclass(frozen=True, slots=True)
class ListedCandidate:
    """A chip of a chain: the candidate, what it reads, and its tone."""

    name: str
    reads: tuple[str, ...]
    tone: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteRow:
    task_type: str
    enabled: bool
    stays: bool
    chain: tuple[ListedCandidate, ...]
    guaranteed: Capabilities
    warnings: tuple[tuple[str, str, str], ...]
    traffic: Traffic

    @property
    def requests(self) -> str:
        return f"{self.traffic.requests:,}"

    @property
    def search(self) -> str:
        """The search in the request log for the route's requests of the last day."""
        return self._search.to_text()

    @property
    def failed_search(self) -> str:
        return self._search.having("status", "failed").to_text()

    @property
    def fallback_search(self) -> str:
        return self._search.having("status", "fallback").to_text()

    @property
    def _search(self) -> Search:
        return Search((("task", self.task_type), ("since", f"{DAY_HOURS}h")))


def route_rows(state: Snapshot, routes: Iterable[RouteSpec]) -> list[RouteRow]:
    """Return the rows of these routes with their traffic. One query for the log and one for the drifts."""
    routes = list(routes)
    traffic = map_traffic([route.task_type for route in routes], timezone.now())
    drifts = map_drifts()
    return [route_row(state, route, traffic.get(route.task_type, Traffic()), drifts) for route in routes]


def route_row(state: Snapshot, route: RouteSpec, traffic: Traffic, drifts: Drifts) -> RouteRow:
    findings = lint(
        state.configuration, route, unusable_of(state), drifts, today=timezone.localdate(), catalogue=state.catalogue
    )
    return RouteRow(
        task_type=route.task_type,
        enabled=route.enabled,
        stays=route.task_type == DEFAULT_ROUTE,
        chain=tuple(_candidate(candidate) for candidate in findings.candidates),
        guaranteed=findings.guaranteed,
        warnings=tuple(warnings_of(findings)),
        traffic=traffic,
    )


def _candidate(candidate: CheckedCandidate) -> ListedCandidate:
    name = candidate.service.id if candidate.service else f"{candidate.spec.provider}/{candidate.model}"
    skips = next((words.FINDINGS[finding] for finding in candidate.findings if finding in SKIPS), None)
    media = tuple(word for word in candidate.capabilities.input if word != "text")
    return ListedCandidate(name, media, "off" if candidate.skipped else "", str(skips[2]) if skips else "")


def sentence(routes: Sequence[Standing]) -> str:
    """Return the page's summary: how many of the enabled routes can answer."""
    able = len(routes) - len(list_unable(routes))
    if not routes:
        return _("All task routes are disabled.")
    if able == len(routes):
        return ngettext("The task route works.", "All %(count)d task routes are working.", able) % {"count": able}
    text = _("%(able)d of %(count)d task routes are working. The others have no candidate that can be called.")
    return text % {"able": able, "count": len(routes)}


@dataclass(frozen=True, slots=True)
class RouteFilter:
    """Words in a route's task type or candidates, a state of `STATES`, and a cause of `CAUSES`; empty for all."""

    q: str = ""
    state: str = ""
    cause: str = ""

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> RouteFilter:
        return cls(*(query.get(name, "").strip() for name in ("q", "state", "cause")))

    def select(self, configuration: Configuration, causes: Mapping[str, str]) -> list[RouteSpec]:
        """Return the matching routes, in the configuration's order; `causes` are those of the enabled routes."""
        return [
            route
            for route in find_routes(configuration, self.q)
            if self.state in ("", state_of(route, causes))
            and (not self.cause or causes.get(route.task_type) == self.cause)
        ]


def state_of(route: RouteSpec, causes: Mapping[str, str]) -> str:
    """Return the route's state, a key of `STATES`; `causes` are those of the enabled routes."""
    if not route.enabled:
        return "disabled"
    return UNABLE if causes[route.task_type] else "ready"


def count_states(configuration: Configuration, causes: Mapping[str, str]) -> list[tuple[str, Promise, int]]:
    """Return the states with their labels and how many routes have them; `causes` are those of the enabled routes."""
    counts = Counter(state_of(route, causes) for route in configuration.routes)
    return [(state, label, counts[state]) for state, label in STATES.items()]


def find_routes(configuration: Configuration, q: str) -> list[RouteSpec]:
    """Return the routes whose task type or candidates contain the words, ignoring case."""
    query = q.casefold()

    def names(route: RouteSpec) -> Iterator[str]:
        yield route.task_type
        for candidate in route.candidates:
            provider = configuration.provider(candidate.provider)
            model = candidate.model or (provider.default_model if provider else "")
            service = configuration.service_at(candidate.provider, model)
            yield f"{candidate.provider}/{model} {service.id if service else ''}"

    return [route for route in configuration.routes if any(query in name.casefold() for name in names(route))]


@dataclass(frozen=True, slots=True)
class LanguageView:
    """The default language, its directive, and the other languages."""

    code: str
    directive: str
    others: tuple[LanguageSpec, ...]


def language_view(configuration: Configuration) -> LanguageView:
    directives = {**LANGUAGE_DIRECTIVES, **{language.code: language.directive for language in configuration.languages}}
    default = configuration.default_language
    code = resolve_language(None, default, directives)
    others = tuple(LanguageSpec(key, text) for key, text in directives.items() if key != code)
    return LanguageView(code, get_language_directive(None, default, directives), others)


def context(request: HttpRequest, state: Snapshot, form: AliasForm | None = None) -> dict[str, Any]:
    wanted, standings = RouteFilter.from_query(request.GET), list_standings(state)
    causes = {standing.task_type: standing.cause for standing in standings}
    routes = wanted.select(state.configuration, causes)
    page = Paginator(routes, PER_PAGE).get_page(request.GET.get("page"))
    return {
        "filter": wanted,
        "states": count_states(state.configuration, causes),
        "causes": [
            (cause, CAUSES[cause], count) for cause, count in Counter(filter(None, causes.values())).most_common()
        ],
        "page": page,
        "rows": route_rows(state, page),
        "total": len(state.configuration.routes),
        "sentence": sentence(standings),
        "default_language": language_view(state.configuration),
        "aliases": sorted(state.configuration.aliases, key=lambda entry: natural_key(entry.name)),
        # The alias for all names that have no other alias is shown separately.
        "catch_all": next((entry for entry in state.configuration.aliases if entry.name == CATCH_ALL), None),
        "alias_form": form or AliasForm(),
        "targets": targets(state.configuration),
        **words.describing_context(
            state.configuration, *(route for route in state.configuration.routes if route.enabled)
        ),
    }


def natural_key(name: str) -> list[tuple[int, str]]:
    """Return a key by which `alias-2` comes before `alias-10`."""
    parts = re.split(r"(\d+)", name.casefold())
    return [(int(part), "") if position % 2 else (0, part) for position, part in enumerate(parts)]


def targets(configuration: Configuration) -> list[str]:
    """Return the possible targets of an alias: routes and model services."""
    return [
        *(task_name(route.task_type) for route in configuration.routes),
        *(service.id for service in configuration.services),
    ]


@require_GET
def routes(request: HttpRequest) -> HttpResponse:
    template = "routes/list.html#rows" if wants_fragment(request) else "routes/list.html"
    return render(request, template, context(request, snapshot.current()))


@require_POST
def enabled(request: HttpRequest, task_type: str) -> HttpResponse:
    """Enable or disable a route. Return its row. Raise `Http404` for an unknown route."""
    row = find_route(task_type)
    if row is None:
        raise Http404
    row.enabled = "enabled" in request.POST
    try:
        change = save_route(actor_of(request), row, expected=row.version)
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
    # The change has published a new snapshot. Render the row from it, not from the form.
    return render(request, "routes/list.html#row", {"row": route_rows(state, [spec])[0]} if spec else {})


@require_POST
def alias(request: HttpRequest) -> HttpResponse:
    """Add or change an alias, or remove the alias that `remove` names."""
    removed = request.POST.get("remove", "")
    if removed:
        change = save_alias(actor_of(request), removed, "")
        add_toast(request, _("Alias %(name)s is deleted.") % {"name": removed}, change.revision)
        return redirect("routes")
    form = AliasForm(request.POST)
    if form.is_valid() and not is_target(snapshot.current().configuration, form.cleaned_data["target"]):
        form.add_error("target", _("No task route or model service has this name."))
    if not form.is_valid():
        return render(request, "routes/list.html", context(request, snapshot.current(), form), status=422)
    spec = AliasSpec(form.cleaned_data["name"], form.cleaned_data["target"])
    change = save_alias(actor_of(request), spec.name, spec.target)
    text = _("%(name)s now leads to %(target)s.")
    add_toast(request, text % {"name": spec.name, "target": spec.target}, change.revision)
    return redirect("routes")


@require_POST
def delete(request: HttpRequest, task_type: str) -> HttpResponse:
    """Delete a route. If it cannot be deleted, its page says why. Raise `Http404` for an unknown route."""
    row = find_route(task_type)
    if row is None:
        raise Http404
    try:
        change = delete_route(actor_of(request), row)
    except ActionError as refusal:
        messages.error(request, translate_refusal(refusal))
        return redirect("route", task_type)
    text = _("Task route %(name)s is deleted; its tasks go to the default route.")
    add_toast(request, text % {"name": task_type}, change.revision)
    return redirect("routes")


def find_delete_refusal(row: TaskRoute | None) -> str:
    """Return why a route cannot be deleted, or an empty string if it can be or is new."""
    return "" if row is None else find_refusal(check_can_delete_route, row)
