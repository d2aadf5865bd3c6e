"""A provider's fire drills: what one would mean, begun, announced on every page, ended, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from capabilities.access import actor_of
from capabilities.errors import ActionError
from capabilities.sentences import join_words
from routing_admin.console.base.page_responses import add_refusal_toast, add_toast, require_found
from routing_admin.console.drills.actions import start_drill, stop_drill
from routing_admin.console.drills.queries import DrillLine, find_running_drill, foresee_drill, list_drills
from routing_admin.console.providers.queries import find_provider
from routing_admin.core.fallback.scripts import CHOICES, USUAL_SECONDS
from routing_admin.request_log.drill_results import DrillResult

# What came of a fire drill, in sentences.


def describe_window(started_at: datetime, ends_at: datetime) -> str:
    """From when until when, in the installation's time zone: `14:05:00–14:06:00`."""
    began, ended = timezone.localtime(started_at), timezone.localtime(ends_at)
    return f"{began:%H:%M:%S}–{ended:%H:%M:%S}"


def describe_result(result: DrillResult) -> list[str]:
    """What came of a drill, a sentence for each fact."""
    if not result.met:
        return [_("No call was affected.")]
    told = [
        ngettext(("%(count)s call was affected."), "%(count)s calls were affected.", result.met) % {"count": result.met}
    ]
    if result.answered:
        names = join_words([f"{name} ({count})" for name, count in result.answered])
        one, many = "%(count)s was answered by %(names)s.", "%(count)s were answered by %(names)s."
        told.append(ngettext(one, many, result.answers) % {"count": result.answers, "names": names})
    if result.failed:
        told.append(ngettext("%(count)s failed.", "%(count)s failed.", result.failed) % {"count": result.failed})
    if result.others:
        one, many = "%(count)s was left or refused.", "%(count)s were left or refused."
        told.append(ngettext(one, many, result.others) % {"count": result.others})
    if result.delay_ms is not None:
        told.append(_describe_delay(round(result.delay_ms)))
    return told


def _describe_delay(ms: int) -> str:
    if ms < 0:
        return _("Median: %(ms)s ms faster than the provider's own answers in the hour before.") % {"ms": -ms}
    return _("Median: %(ms)s ms slower than the provider's own answers in the hour before.") % {"ms": ms}


def describe_noted_end(details: Mapping[str, Any]) -> str:
    """The same of a drill's end as the audit log has it; empty for details that are none."""
    try:
        window = describe_window(datetime.fromisoformat(details["from"]), datetime.fromisoformat(details["until"]))
        delay = details["delayMs"]
        answered = tuple(details["answered"].items())
        met, failed = details["met"], details["failed"]
        others = met - failed - sum(count for _, count in answered)
        result = DrillResult(met, answered, failed, (), others, delay)
    except (KeyError, TypeError, ValueError, AttributeError):
        return ""
    return " ".join([window, *describe_result(result)])


@dataclass(frozen=True, slots=True)
class DrillView:
    """A drill as the page has it: its time, and what came of it in sentences."""

    line: DrillLine
    window: str
    sentences: list[str]


def view_of(line: DrillLine) -> DrillView:
    """A drill in the reader's words."""
    window = describe_window(line.row.started_at, line.row.ends_at)
    return DrillView(line, window, describe_result(line.result))


def drill(request: HttpRequest, name: str) -> HttpResponse:
    """What a drill of that provider would mean, and what came of earlier ones; begins one when it is sent."""
    row = require_found(find_provider(name))
    if request.method == "POST":
        seconds = request.POST.get("seconds", "")
        try:
            start_drill(actor_of(request), name, int(seconds) if seconds.isdecimal() else 0)
        except ActionError as refusal:
            add_refusal_toast(request, refusal)
        return redirect("drill", name=name)
    context = {
        "row": row,
        "forecast": foresee_drill(name),
        "choices": CHOICES,
        "usual": USUAL_SECONDS,
        "drills": [view_of(line) for line in list_drills(name)],
    }
    return render(request, "drills/drill.html", context)


@require_POST
def drill_end(request: HttpRequest) -> HttpResponse:
    """Ends the drill that goes on, before its time."""
    try:
        name = stop_drill(actor_of(request))
    except ActionError as refusal:
        add_refusal_toast(request, refusal)
        return redirect("providers")
    add_toast(request, _("The fire drill of %(name)s is over") % {"name": name})
    return redirect("drill", name=name)


@require_GET
def drill_banner(request: HttpRequest) -> HttpResponse:
    """What stands above every page while a drill goes on; empty while none does."""
    return render(request, "drills/banner.html", banner_context())


def banner_context() -> dict[str, Any]:
    """The drill that goes on, and for how many seconds yet."""
    now = timezone.now()
    running = find_running_drill(now)
    return {"running_drill": running, "drill_seconds": running.seconds_left(now.timestamp()) if running else 0}
