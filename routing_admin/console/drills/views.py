"""The page of a provider's fire drills, and the banner that every page shows while a drill is running."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from capabilities.access import request_actor
from capabilities.errors import ActionError
from routing_admin.console.base.page_responses import add_refusal_toast, add_toast, require_found
from routing_admin.console.drills.actions import start_drill, stop_drill
from routing_admin.console.drills.queries import (
    DrillLine,
    banner_context,
    describe_result,
    describe_window,
    estimate_drill,
    list_drills,
)
from routing_admin.console.providers.queries import find_provider
from routing_admin.core.fallback.scripts import CHOICES, USUAL_SECONDS


@dataclass(frozen=True, slots=True)
class DrillView:
    """A drill with its start and end, and its result as text."""

    line: DrillLine
    window: str
    sentences: list[str]


def build_view(line: DrillLine) -> DrillView:
    window = describe_window(line.row.started_at, line.row.ends_at)
    return DrillView(line, window, describe_result(line.result))


def drill(request: HttpRequest, name: str) -> HttpResponse:
    """Show the expected consequences of a drill and the results of earlier drills. A POST request starts a drill."""
    row = require_found(find_provider(name))
    if request.method == "POST":
        seconds = request.POST.get("seconds", "")
        try:
            start_drill(request_actor(request), name, int(seconds) if seconds.isdecimal() else 0)
        except ActionError as refusal:
            add_refusal_toast(request, refusal)
        return redirect("drill", name=name)
    context = {
        "row": row,
        "forecast": estimate_drill(name),
        "choices": CHOICES,
        "usual": USUAL_SECONDS,
        "drills": [build_view(line) for line in list_drills(name)],
    }
    return render(request, "drills/drill.html", context)


@require_POST
def drill_end(request: HttpRequest) -> HttpResponse:
    try:
        name = stop_drill(request_actor(request))
    except ActionError as refusal:
        add_refusal_toast(request, refusal)
        return redirect("providers")
    add_toast(request, _("The fire drill of %(name)s is over") % {"name": name})
    return redirect("drill", name=name)


@require_GET
def drill_banner(request: HttpRequest) -> HttpResponse:
    return render(request, "drills/banner.html", banner_context())
