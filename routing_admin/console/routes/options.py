"""Suggestions for fields that name a task route or a model service: the best matches of what is typed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from routing_admin.configuration import snapshot
from routing_admin.core.configuration.specs import Configuration
from routing_admin.core.planning.model_names import task_name
from routing_admin.request_log.search import match_names

MAX_OPTIONS = 20


def list_tasks(configuration: Configuration) -> list[str]:
    return [route.task_type for route in configuration.routes]


def list_targets(configuration: Configuration) -> list[str]:
    """Return the possible targets of an alias: routes and model services."""
    return [*map(task_name, list_tasks(configuration)), *(service.id for service in configuration.services)]


NAMES: Mapping[str, Callable[[Configuration], list[str]]] = {"task": list_tasks, "target": list_targets}
"""The names that a field of this name accepts."""


@require_safe
def options(request: HttpRequest, field: str) -> HttpResponse:
    """Show the options of a field for its value. Raise `Http404` for an unknown field."""
    if field not in NAMES:
        raise Http404
    names = match_names(request.GET.get(field, "").strip(), NAMES[field](snapshot.current().configuration))
    return render(request, "components/options.html", {"options": names[:MAX_OPTIONS]})
