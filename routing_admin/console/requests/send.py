"""Send an artifact to a model from the artifact's page. The previewed request is dispatched and logged as usual."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from artifacts.library.queries import find_artifact
from artifacts.storage.content import open_artifact
from capabilities.access import request_actor
from capabilities.actors import Actor
from capabilities.core.delivery.model_description import DescriptionState, ModelDescription
from routing_admin.configuration import snapshot
from routing_admin.console.artifacts import detail
from routing_admin.console.base.page_responses import require_found
from routing_admin.core.configuration.specs import CandidateSpec, ServiceSpec
from routing_admin.core.fallback.errors import RouterError
from routing_admin.core.planning.plan import default_route_to
from routing_admin.dispatch.description_preview import have_described
from routing_admin.dispatch.generated_media import store_generated
from routing_admin.dispatch.plan import PlannedRequest, plan_request, record_plan
from routing_admin.dispatch.preview import request_for
from routing_admin.dispatch.recorded import record_answer_sync
from routing_admin.dispatch.send import Dispatch
from routing_admin.platform.server.request_id import read_request_id
from routing_admin.request_log.journal import journal
from routing_admin.request_log.recorder import RequestRecorder

if TYPE_CHECKING:
    from artifacts.models import Artifact

SURFACE = "page"
"""Value of `surface` in the log for requests that are sent from a page."""


@require_POST
def artifact_send(request: HttpRequest, pk: str) -> HttpResponse:
    """Send an artifact to a model service and show the answer or the error.

    Raise `Http404` if the artifact or the service is unknown.
    """
    row = require_found(find_artifact(pk))
    state = snapshot.current()
    service = require_found(state.configuration.service(request.POST.get("service", "")))
    planned = plan_preview(state, row, service, request.POST.get("language") or None)
    result = send_request(planned, service.id, read_request_id(request), request_actor(request))
    context = {"row": row, "service": service, **result}
    template = "artifacts/answer.html" if getattr(request, "htmx", None) else "artifacts/sent.html"
    return render(request, template, context)


@require_POST
def artifact_describe(request: HttpRequest, pk: str) -> HttpResponse:
    """Have a model describe an artifact for a service that cannot read it.

    Raise `Http404` if the artifact or the service is unknown.
    """
    row, state = require_found(find_artifact(pk)), snapshot.current()
    service = require_found(state.configuration.service(request.POST.get("service", "")))
    planned = plan_preview(state, row, service, request.POST.get("language") or None)
    request_id = read_request_id(request)
    result = have_described(planned, RequestRecorder(request_id, SURFACE), request_id)
    journal().flush()
    note = description_note(result)
    if getattr(request, "htmx", None):
        return detail.card(request, row, service.id, note=note)
    (messages.success if note.ok else messages.error)(request, note.sentence)
    query = urlencode({"service": service.id, "language": request.POST.get("language", "")})
    return redirect(f"{reverse('artifact', args=[row.pk])}?{query}#d-{service.id}")


@dataclass(frozen=True, slots=True)
class DescriptionNote:
    """A sentence about the result of describing a file. `request_id` is the id of the call to the describing model."""

    ok: bool
    sentence: str
    request_id: str = ""


def description_note(description: ModelDescription | None) -> DescriptionNote:
    if description is None:
        return DescriptionNote(False, _("No model is set to describe this file for this service."))
    names = {"describer": description.describer, "code": description.fault}
    request_id = description.call.request_id if description.call else ""
    if description.state is not DescriptionState.BY_MODEL:
        return DescriptionNote(False, _("%(describer)s did not describe the file (%(code)s).") % names, request_id)
    if description.call is None:
        return DescriptionNote(True, _("%(describer)s had already described the file, so no model was called.") % names)
    return DescriptionNote(True, _("%(describer)s described the file; its words are kept.") % names, request_id)


def plan_preview(state: snapshot.Snapshot, row: Artifact, service: ServiceSpec, language: str | None) -> PlannedRequest:
    """Plan the previewed request, with a default route whose only candidate is this service."""
    # The preview is planned in the same way, so the request that is sent is the previewed one.
    route = default_route_to(state.configuration, CandidateSpec(service.provider, service.model))
    return plan_request(state, route, request_for(open_artifact(row)), language=language, service=service)


def send_request(planned: PlannedRequest, service: str, request_id: str, actor: Actor) -> dict[str, Any]:
    """Dispatch the request and return the answer or the error."""
    recorder = RequestRecorder(request_id, SURFACE)
    dispatch = Dispatch(planned, keep_media=partial(store_generated, actor))
    recorder.add_facts(asked_model=service)
    record_plan(recorder, planned, "")
    try:
        answered = record_answer_sync(dispatch, recorder)
    except RouterError as error:
        fields: dict[str, Any] = {"error": error.message, "code": error.code}
    else:
        fields = {"answer": answered.answer, "usage": answered.answer.usage}
    # The page links to the log entry, so the entry must be written before the page is rendered.
    journal().flush()
    return {**fields, "request_id": request_id, "ms": recorder.elapsed_ms()}
