"""The page that simulates or sends a request on a stored route, or repeats a logged request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from artifacts.library.queries import list_attachable
from capabilities.access import may, request_actor
from capabilities.core.permissions import PagePart
from routing_admin.configuration import snapshot
from routing_admin.console.base.readings import record_body_read
from routing_admin.console.simulate import phrases as words
from routing_admin.console.simulate.panel import Panel, read_panel, set_outcomes, write_size
from routing_admin.console.simulate.runs import run_simulation, send
from routing_admin.core.configuration.route_changes import candidate_name
from routing_admin.core.configuration.specs import DEFAULT_ROUTE, RouteSpec
from routing_admin.core.fallback.chain import OK
from routing_admin.core.fallback.scripts import SCRIPTED
from routing_admin.request_log.recorded_bodies import read_question
from routing_admin.request_log.search import LoggedRequest, find_logged_request

if TYPE_CHECKING:
    from routing_admin.models import AttemptLog


@require_http_methods(["GET", "POST"])
def simulate_page(request: HttpRequest) -> HttpResponse:
    """Show the simulation of a stored route. `?request=` repeats a logged request with its logged outcomes."""
    state = snapshot.current()
    data = request.POST if request.method == "POST" else request.GET
    may_read = may(request.user, PagePart.RECORDED_BODIES)
    logged_request = find_logged_request(data["request"], body=may_read) if data.get("request") else None
    logged = logged_request.row if logged_request else None
    if logged is not None:
        record_body_read(request_actor(request), logged)
    task = data.get("task") or (logged.task_type if logged else "") or DEFAULT_ROUTE
    # The logged request's route may have been deleted since.
    route = state.configuration.route(task) or state.configuration.route(DEFAULT_ROUTE)
    panel = read_panel(data, state.configuration, may_attach=may(request.user, PagePart.ARTIFACT_BYTES))
    if route is not None:
        candidates = [(str(number), candidate_name(spec)) for number, spec in enumerate(route.candidates, start=1)]
        set_outcomes(panel, replay_outcomes(data, logged_request, route), candidates)
        # Once the form has been posted, its values take precedence over those from the log.
        if logged_request and "sim-message" not in data:
            panel.language = logged_request.row.language
            repeat_request(panel, logged_request, may_read=may_read)
        if data.get("act") == "send" and request.method == "POST" and may(request.user, PagePart.REAL_REQUESTS):
            send(request, panel, state, route)
        else:
            run_simulation(panel, state, route)
    unknown = task if route is not None and route.task_type != task else ""
    context = {"panel": panel, "route": route, "unknown": unknown, "logged": logged}
    return render(request, "routes/simulate_page.html", context)


def repeat_request(panel: Panel, logged: LoggedRequest, *, may_read: bool) -> None:
    """Fill in the panel with a logged request's files and, if it was recorded, its question."""
    question, recorded = read_question(logged.row.body) if may_read else ("", [])
    files = list_sent_files(logged.attempts)
    ids = recorded or [file["artifactId"] for file in files if may_read and file.get("artifactId")]
    if question:
        panel.message = question
    if ids:
        panel.artifacts = list_attachable(ids)
        panel.artifact_ids = [row.pk for row in panel.artifacts if row.pk in ids]
    # A file that is not stored, or that the user may not attach, is replaced with a placeholder of its kind and size.
    for file in files:
        if file.get("artifactId") not in panel.artifact_ids and file.get("size"):
            sizes = (panel.placeholders.get(file["kind"]), write_size(file["size"]))
            panel.placeholders[file["kind"]] = ", ".join(size for size in sizes if size)


def list_sent_files(attempts: Sequence[AttemptLog]) -> list[dict[str, Any]]:
    """Return the files of the newest message, as the first candidate that received files received them."""
    files: list[dict[str, Any]] = next((attempt.deliveries for attempt in attempts if attempt.deliveries), [])
    # Earlier messages are not repeated, and neither are their files.
    newest = max((file.get("message", 0) for file in files), default=0)
    return [file for file in files if file.get("message", 0) == newest]


def replay_outcomes(data: QueryDict, logged: LoggedRequest | None, route: RouteSpec) -> QueryDict:
    outcomes = data.copy()
    if logged is None:
        return outcomes
    attempts = {(attempt.provider, attempt.model): attempt for attempt in logged.attempts}
    configuration = snapshot.current().configuration
    for number, spec in enumerate(route.candidates, start=1):
        provider = configuration.provider(spec.provider)
        attempt = attempts.get((spec.provider, spec.model or (provider.default_model if provider else "")))
        if attempt is not None and f"out-{number}" not in outcomes:
            outcomes[f"out-{number}"] = scripted_outcome(attempt)
    return outcomes


def scripted_outcome(attempt: AttemptLog) -> str:
    """Return the scripted outcome closest to an attempt's: one with the same fault, else with the same status.

    If there is none, return 200 for an answer or a skipped candidate, and 503 for any other failure.
    """
    # The order is reversed so that of several outcomes with the same fault, the first one is used.
    by_fault = {word.failure.fault.value: key for key, word in reversed(list(SCRIPTED.items())) if word.failure}
    if attempt.outcome in by_fault:
        return by_fault[attempt.outcome]
    if attempt.status is not None and str(attempt.status) in SCRIPTED:
        return str(attempt.status)
    return "200" if attempt.outcome == OK or attempt.outcome in words.SKIPPED else "503"
