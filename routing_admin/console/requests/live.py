"""What the list of requests asks for while it stands open: whether there are newer rows, and what can be searched."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from routing_admin.configuration import snapshot
from routing_admin.request_log.search import MAX_NEW, count_newer
from routing_admin.request_log.search_words import parse
from routing_admin.request_log.suggestions import suggest

NOTHING_NEW = 204
LONGEST = 300
"""Characters of what is typed that are looked at."""


@require_GET
def requests_newer(request: HttpRequest) -> HttpResponse:
    """How many requests that match came since the first one shown; 204 where the page says so already."""
    typed, after, shown = (request.GET.get(name, "") for name in ("q", "after", "count"))
    count = count_newer(parse(typed), after)
    if str(count) == shown:
        return HttpResponse(status=NOTHING_NEW)
    context = {"count": count, "is_more": count == MAX_NEW, "typed": typed, "place": after}
    return render(request, "requests/newer.html", context)


@require_GET
def requests_words(request: HttpRequest) -> HttpResponse:
    """The suggestions for what is typed, as options."""
    return render(request, "requests/words.html", {"words": suggest_words(request.GET.get("q", "")[:LONGEST])})


def suggest_words(typed: str) -> list[str]:
    """What can stand behind what is typed, by the names of this installation."""
    state = snapshot.current()
    configuration = state.configuration
    values = {
        "task": [route.task_type for route in configuration.routes],
        "provider": [provider.name for provider in configuration.providers],
        "model": list(dict.fromkeys(service.model for service in configuration.services)),
        "agent": [agent.id for agent in state.agents],
    }
    return suggest(typed, values)
