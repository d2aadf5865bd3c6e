"""A file sent to one model for real, from its page: the previewed request, on the data plane's way, and logged."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST

from artifacts.preview import request_for
from artifacts.queries.library import find_artifact
from artifacts.storage.content import open_artifact
from capabilities.access import actor_of
from capabilities.acts import Actor
from capabilities.views.answers import require_found
from routing_admin.configuration import snapshot
from routing_admin.core.configuration.specs import CandidateSpec, ServiceSpec
from routing_admin.core.fallback.errors import RouterError
from routing_admin.core.planning.plan import default_route_to
from routing_admin.dispatch.generated_media import store_generated
from routing_admin.dispatch.plan import PlannedRequest, plan_request
from routing_admin.dispatch.recorded import record_answer_sync, record_plan
from routing_admin.dispatch.send import Dispatch
from routing_admin.request_log.journal import journal
from routing_admin.request_log.recorder import RequestRecorder
from routing_admin.server.request_id import request_id_of

if TYPE_CHECKING:
    from artifacts.models import Artifact

SURFACE = "page"
"""What the log calls a request that somebody sent from a page."""


@require_POST
def artifact_send(request: HttpRequest, pk: str) -> HttpResponse:
    """The model's answer, or why there is none; in place for htmx, else a page.

    Raises `Http404` without that artifact or service.
    """
    row = require_found(find_artifact(pk))
    state = snapshot.current()
    service = require_found(state.configuration.service(request.POST.get("service", "")))
    planned = plan_preview(state, row, service, request.POST.get("language") or None)
    done = send_for_real(planned, service.id, request_id_of(request), actor_of(request))
    context = {"row": row, "service": service, **done}
    template = "artifacts/answer.html" if getattr(request, "htmx", None) else "artifacts/sent.html"
    return render(request, template, context)


def plan_preview(state: snapshot.Snapshot, row: Artifact, service: ServiceSpec, language: str | None) -> PlannedRequest:
    """The previewed request, as if the default route led to that one service: what was shown is what is sent."""
    route = default_route_to(state.configuration, CandidateSpec(service.provider, service.model))
    return plan_request(state, route, request_for(open_artifact(row)), language=language, service=service)


def send_for_real(planned: PlannedRequest, service: str, request_id: str, actor: Actor) -> dict[str, Any]:
    """What came of it; the log has it before the page shows it."""
    recorder = RequestRecorder(request_id, SURFACE)
    dispatch = Dispatch(planned, keep_media=partial(store_generated, actor))
    recorder.add_facts(asked_model=service)
    record_plan(recorder, planned, "")
    try:
        done = record_answer_sync(dispatch, recorder)
    except RouterError as error:
        said: dict[str, Any] = {"error": error.message, "code": error.code}
    else:
        said = {"answer": done.answer, "usage": done.answer.usage}
    journal.flush()
    return {**said, "request_id": request_id, "ms": recorder.elapsed_ms()}
