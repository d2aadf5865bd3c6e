"""Doubts about what models read, in words, and an administrator's decision about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from capabilities.access import actor_of
from capabilities.core.insertion import insert_facts
from capabilities.core.providers.probes.drift import DriftKind
from capabilities.labels import CONTENTS, capability_label
from routing_admin.console.base.answers import add_toast, require_found
from routing_admin.console.services.drift_actions import accept_doubt, dismiss_drift
from routing_admin.console.services.drift_queries import DriftLine
from routing_admin.console.services.nightly import set_nightly
from routing_admin.console.services.queries import find_service

SENTENCES: Mapping[str, str | Promise] = {
    DriftKind.REFUSED: gettext_lazy(
        "%(name)s should read %(kinds)s, but answered a request containing them with status %(status)s."
    ),
    DriftKind.DENIED: gettext_lazy("%(name)s is declared to read %(kinds)s, but a probe found that it cannot."),
    DriftKind.STOPPED: gettext_lazy("The nightly probe found that %(name)s no longer reads %(kinds)s."),
    DriftKind.STARTED: gettext_lazy("The nightly probe found that %(name)s now reads %(kinds)s."),
}


@dataclass(frozen=True, slots=True)
class DriftView:
    """One thing that was seen of a model, with its sentence."""

    line: DriftLine
    sentence: str
    kinds: str | Promise

    @property
    def tone(self) -> str:
        """The tone of its note: what a model reads beside what it did is good news."""
        return "info" if self.line.row.kind == DriftKind.STARTED else "warn"


def render_drifts(lines: Iterable[DriftLine]) -> list[DriftView]:
    """What was seen, as pages show it."""
    return [_render(line) for line in lines]


def _render(line: DriftLine) -> DriftView:
    row = line.row
    kinds = CONTENTS.get(row.capability, capability_label(row.capability))
    facts = {"name": line.service.service_id, "kinds": kinds, "status": row.status}
    return DriftView(line, insert_facts(str(SENTENCES[row.kind]), facts), kinds)


@require_POST
def service_drift(request: HttpRequest, service_id: str) -> HttpResponse:
    """Decides about a doubt: `off` declares that the model does not read it, `dismiss` tells it no more for a week."""
    row = require_found(find_service(service_id))
    capability, act = request.POST.get("capability", "")[:100], request.POST.get("act", "")
    facts = {"service": service_id, "capability": capability_label(capability)}
    if act == "off" and capability:
        made = accept_doubt(actor_of(request), row, capability)
        add_toast(request, insert_facts(_("%(service)s no longer reads %(capability)s"), facts), made.revision)
    elif capability:
        dismiss_drift(actor_of(request), row, capability)
        add_toast(request, _("Dismissed. You will not see this again for a week."))
    return redirect("dashboard") if request.POST.get("back") == "dashboard" else redirect("service", service_id)


@require_POST
def service_nightly(request: HttpRequest, service_id: str) -> HttpResponse:
    """Chooses the service for the nightly probe, or no longer."""
    row = require_found(find_service(service_id))
    on = "on" in request.POST
    set_nightly(actor_of(request), row, on, timezone.now())
    text = _("%(name)s is probed every night") if on else _("%(name)s is no longer probed at night")
    add_toast(request, text % {"name": service_id})
    return redirect("service", service_id)
