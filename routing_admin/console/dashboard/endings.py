"""Models that end: what the dashboard says of them, and putting a successor in a model's place."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from capabilities.access import actor_of
from capabilities.errors import ActionError
from routing_admin.console.base.answers import add_refusal_toast, add_toast, require_found
from routing_admin.console.catalogue.succession import replace_model
from routing_admin.console.providers.queries import find_provider


@require_POST
def model_replace(request: HttpRequest, name: str) -> HttpResponse:
    """Puts the successor in the place of a provider's model, wherever it stands; Undo takes it back."""
    provider = require_found(find_provider(name))
    model, successor = request.POST.get("model", ""), request.POST.get("successor", "")
    try:
        act = replace_model(actor_of(request), provider, model, successor)
    except ActionError as refusal:
        add_refusal_toast(request, refusal)
    else:
        text = _("%(successor)s now replaces %(model)s")
        add_toast(request, text % {"successor": successor, "model": model}, act.revision)
    service, route = request.POST.get("service", ""), request.POST.get("route", "")
    if service:
        return redirect("service", service_id=service)
    return redirect("route", task_type=route) if route else redirect("dashboard")
