"""The dashboard: whether all routes can answer, the providers' health, recent failures, and first steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.functional import Promise, SimpleLazyObject
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_GET, require_POST

from artifacts.storage.content import byte_store
from capabilities.access import request_actor
from capabilities.errors import ActionError
from capabilities.sentences import join_names
from routing_admin.configuration import snapshot
from routing_admin.configuration.keys import KeyFrom
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.console.alerts.queries import count_open
from routing_admin.console.base.context import navigation
from routing_admin.console.base.page_responses import add_refusal_toast, add_toast, require_found
from routing_admin.console.catalogue.actions import replace_model
from routing_admin.console.catalogue.queries import list_endings
from routing_admin.console.dashboard.actions import reset_cooldowns
from routing_admin.console.dashboard.notices import list_notices
from routing_admin.console.dashboard.queries import (
    build_figures,
    find_first_steps,
    list_low_budgets,
    list_low_quotas,
    list_troubled_requests,
)
from routing_admin.console.demo.load import describe_removal
from routing_admin.console.providers.queries import (
    Evidence,
    find_provider,
    list_key_refusals,
    list_routed_models,
    read_evidence,
)
from routing_admin.console.providers.rules import ProviderState
from routing_admin.console.requests.story import build_row
from routing_admin.console.routes.queries import RouteStatus, list_statuses, list_unable
from routing_admin.console.services.queries import list_drifts, render_drifts
from routing_admin.dispatch.send import process_run_context
from routing_admin.platform.redis.link import link
from routing_admin.platform.server.store_monitor import low_disk_space
from routing_admin.request_log import health
from routing_admin.request_log.health import Health
from routing_admin.request_log.journal import journal

# Provider tiles are sorted worst first, so that a problem is visible at once.

MAX_TILES = 12
"""Maximum number of provider tiles. If there are more providers, only those that were called or are failing have one.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """A provider's tile, with the provider's state, its calls in the last hour, and whether a route uses it."""

    name: str
    label: str
    state: ProviderState
    health: Health
    is_used: bool = True

    @property
    def rank(self) -> tuple[bool, int, bool]:
        """Return the sort key of a tile: the worst providers first, then providers with calls.

        A provider without a key counts as a problem only if a route needs it.
        """
        unneeded = not self.state.is_callable and not self.is_used
        return unneeded, self.state.rank, not self.health.calls

    @property
    def is_busy(self) -> bool:
        """Return whether the provider was called in the last hour or is failing."""
        return bool(self.health.calls) or self.state.is_troubled


def build_tiles(state: Snapshot, evidence: Evidence) -> tuple[Tile, ...]:
    used_providers = list_routed_models(state)
    tiles = [
        Tile(
            name=spec.name,
            label=spec.display_name or spec.name,
            state=evidence.find_state(spec.name, is_enabled=spec.enabled),
            health=evidence.health.get(spec.name, Health()),
            is_used=spec.name in used_providers,
        )
        for spec in state.configuration.providers
    ]
    # The sort is stable, so tiles with the same rank keep the configuration's order.
    return tuple(sorted(tiles, key=lambda tile: tile.rank))


def select_shown(tiles: Sequence[Tile]) -> Sequence[Tile]:
    """Return all tiles if they are few, else only the worst tiles of providers that were called or are failing."""
    return tiles if len(tiles) <= MAX_TILES else [tile for tile in tiles if tile.is_busy][:MAX_TILES]


MAX_NAMED = 4
"""Maximum number of routes with problems that the summary names, and the same maximum for providers."""


@dataclass(frozen=True, slots=True)
class Task:
    """A step in the checklist of first steps, and the page on which the user can take it."""

    name: str
    title: str | Promise
    hint: str | Promise
    icon: str
    page: str
    action: str | Promise


TASKS = (
    Task(
        "password",
        gettext_lazy("Set your own password"),
        gettext_lazy("The first password was printed in a terminal."),
        *("lock", "password_change", gettext_lazy("Change password")),
    ),
    Task(
        "key",
        gettext_lazy("Add a provider with a key"),
        gettext_lazy("Until then, only the built-in echo answers."),
        *("key", "providers", gettext_lazy("Open providers")),
    ),
    Task(
        "route",
        gettext_lazy("Route to a real model"),
        gettext_lazy("Add a model whose provider has a key to a chain."),
        *("route", "routes", gettext_lazy("Open task routes")),
    ),
    Task(
        "agent",
        gettext_lazy("Use an agent key"),
        gettext_lazy("Give your program a key and make a call."),
        *("agent", "agents", gettext_lazy("Issue a key")),
    ),
    Task(
        "file",
        gettext_lazy("Preview your own file"),
        gettext_lazy("See how each model receives it."),
        *("doc", "artifacts", gettext_lazy("Upload a file")),
    ),
    Task(
        "request",
        gettext_lazy("Get a first answer"),
        gettext_lazy("Call /v1 with an agent key. It appears here at once."),
        *("list", "agents", gettext_lazy("See the snippet")),
    ),
)
"""The steps that prepare a new installation for use, in the recommended order."""


@require_GET
def dashboard(request: HttpRequest) -> HttpResponse:
    """Show the dashboard. The page reloads its live part every 30 seconds."""
    state, now = snapshot.current(), timezone.now()
    standings = list_statuses(state)
    tiles = build_tiles(state, read_evidence())
    today, yesterday = health.two_days(now)
    alerts = count_open()
    notices = list_notices(
        alerts=alerts.by_kind,
        standings=standings,
        budgets=list_low_budgets(state.configuration),
        refusals=list_key_refusals(state),
        quotas=list_low_quotas(state.retention),
        cooldowns=process_run_context().cooldowns,
        drifts=render_drifts(list_drifts(state.configuration)),
    )
    context = {
        "sentence": summarize(standings, tiles),
        "unread_since": snapshot.unread_since(),
        "redis_outage": link().outage,
        "store_outage": byte_store().outage,
        "unlogged_since": journal().behind_since,
        "unlogged": journal().spool.waiting() if journal().behind_since else 0,
        "unlogged_in_memory": len(journal().waiting) if journal().disk_is_full else 0,
        "log_dropped": journal().lost,
        "disk_space": low_disk_space(),
        "state": state,
        "endings": list_endings(),
        "notices": notices,
        "tiles": (shown := select_shown(tiles)),
        "more_tiles": len(tiles) - len(shown),
        "figures": build_figures(today, yesterday, health.first_content(now), now),
        "has_requests": today.total > 0,
        "troubled": _troubled_rows(now),
        "nav": SimpleLazyObject(lambda: navigation(request, alerts.waiting)),
        **_checklist(state, standings, request.user.get_username()),
    }
    # htmx names the element to be replaced. If this is `live`, only the live part of the page is rendered.
    is_live = request.headers.get("HX-Target") == "live"
    return render(request, "dashboard/dashboard.html#live" if is_live else "dashboard/dashboard.html", context)


def summarize(standings: Sequence[RouteStatus], tiles: Sequence[Tile]) -> str:
    """Return a sentence that says whether the routes can answer and which providers have problems."""
    if not standings:
        return _("No task route yet, so no request can be answered.")
    unable = list_unable(standings)
    count = len(standings)
    if len(unable) > MAX_NAMED:
        # A notice below names some of these routes and the causes, so a count suffices here.
        first = _("%(count)s of %(all)s task routes cannot answer.") % {"count": len(unable), "all": count}
    elif unable:
        first = ngettext(
            "%(names)s cannot answer.", "%(count)s of %(all)s task routes cannot answer: %(names)s.", len(unable)
        ) % {"names": _(", ").join(unable), "count": len(unable), "all": count}
    else:
        first = ngettext("The task route is working.", "All %(count)s task routes are working.", count) % {
            "count": count
        }
        skipping = sum(bool(standing.reasons) for standing in standings)
        if skipping:
            second = ngettext(
                "%(count)s of them skips candidates that cannot be called.",
                "%(count)s of them skip candidates that cannot be called.",
                skipping,
            )
            first = _("%(first)s %(second)s") % {"first": first, "second": second % {"count": skipping}}
    troubled = [tile.label for tile in tiles if tile.state.is_troubled]
    if not troubled:
        return first
    second = ngettext("%(names)s has problems.", "%(names)s have problems.", len(troubled))
    if len(troubled) > MAX_NAMED:
        second = _("%(count)s providers have problems, including %(names)s.")
    names = {"count": len(troubled), "names": _(", ").join(troubled[:MAX_NAMED])}
    parts = {"first": first, "second": second % names}
    return _("%(first)s %(second)s") % parts


def _troubled_rows(now: datetime) -> list[dict[str, Any]]:
    return [build_row(row) for row in list_troubled_requests(now)]


def _checklist(state: Snapshot, standings: Sequence[RouteStatus], user: str) -> dict[str, Any]:
    first_steps = find_first_steps(user)
    key_sources = (KeyFrom.STORED, KeyFrom.ENVIRONMENT, KeyFrom.OVERRIDE)
    is_done = {
        "password": first_steps.chose_password,
        "key": any(key.source in key_sources for key in state.keys.values()),
        "route": any(standing.ready and not standing.is_echo_only for standing in standings),
        "agent": first_steps.used_key,
        "file": first_steps.uploaded_file,
        "request": first_steps.answered_request,
    }
    finished = [task for task in TASKS if is_done[task.name]]
    open_tasks = [task for task in TASKS if not is_done[task.name]]
    # If demo data was loaded, removing it is a further step.
    had_demo = state.has_demo or first_steps.loaded_demo
    demo_gone = had_demo and not state.has_demo
    finished_count, total = len(finished) + demo_gone, len(TASKS) + had_demo
    return {
        "finished": finished,
        "open_tasks": open_tasks,
        "has_demo": state.has_demo,
        "removal": describe_removal() if state.has_demo else None,
        "demo_gone": demo_gone,
        "finished_count": finished_count,
        "total": total,
        "is_new": finished_count < total,
        "is_answering": is_done["request"],
    }


@require_POST
def providers_try_again(request: HttpRequest) -> HttpResponse:
    cooling = (provider for (provider, _model), _cooldown in process_run_context().cooldowns.list_cooling())
    try:
        names = reset_cooldowns(request_actor(request), list(dict.fromkeys(cooling)))
    except ActionError as refusal:
        add_refusal_toast(request, refusal)
    else:
        text = ngettext(
            "%(names)s is tried again with the next call", "%(names)s are tried again with the next call", len(names)
        )
        add_toast(request, text % {"names": join_names(names)})
    return redirect("dashboard")


@require_POST
def model_replace(request: HttpRequest, name: str) -> HttpResponse:
    """Replace a provider's model everywhere with the model's successor. Undo reverts it."""
    provider = require_found(find_provider(name))
    model, successor = request.POST.get("model", ""), request.POST.get("successor", "")
    try:
        act = replace_model(request_actor(request), provider, model, successor)
    except ActionError as refusal:
        add_refusal_toast(request, refusal)
    else:
        text = _("%(successor)s now replaces %(model)s")
        add_toast(request, text % {"successor": successor, "model": model}, act.revision)
    service, route = request.POST.get("service", ""), request.POST.get("route", "")
    if service:
        return redirect("service", service_id=service)
    return redirect("route", task_type=route) if route else redirect("dashboard")
