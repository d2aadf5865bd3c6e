"""Suggestions for form fields that expect the name of an existing entry: the names that best match the typed text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from capabilities.labels import actor_label
from routing_admin.configuration import snapshot
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.console.base.form_fields import Chosen, split_names
from routing_admin.console.history.phrases import action_label
from routing_admin.console.history.queries import find_revisions
from routing_admin.console.people.queries import list_user_names
from routing_admin.core.planning.model_names import task_name
from routing_admin.request_log.search import match_names

MAX_OPTIONS = 20
Options = Mapping[str, str]
"""Maps each name to a note that distinguishes it from similar names."""


def list_tasks(state: Snapshot) -> Options:
    return {route.task_type: "" for route in state.configuration.routes}


def list_services(state: Snapshot) -> Options:
    return {service.id: service.provider for service in state.configuration.services}


def list_providers(state: Snapshot) -> Options:
    return {provider.name: provider.display_name for provider in state.configuration.providers}


def list_targets(state: Snapshot) -> Options:
    """Return what an alias can refer to: task routes and model services."""
    return {**{task_name(name): "" for name in list_tasks(state)}, **list_services(state)}


def list_candidates(state: Snapshot) -> Options:
    """Return what can be a candidate in a fallback chain: model services, and any model of a provider."""
    note = _("a provider: add / and a model")
    return {**{f"{provider.name}/": note for provider in state.configuration.providers}, **list_services(state)}


def list_actors(state: Snapshot) -> Options:
    """Return the names of users and agents, which are the actors in the audit log. This takes one query."""
    return dict.fromkeys([*list_user_names(), *(agent.id for agent in state.agents)], "")


def describe_revisions(part: str) -> Options:
    """Return revisions whose number begins with `part`, or whose author or description contains it.

    This takes one query.
    """
    return {
        str(row.number): " · ".join(
            (
                str(action_label(row.message)),
                actor_label(row.actor),
                f"{timezone.localtime(row.created_at):%Y-%m-%d %H:%M}",
            )
        )
        for row in find_revisions(part, MAX_OPTIONS)
    }


NAMES: Mapping[str, Callable[[Snapshot], Options]] = {
    "task": list_tasks,
    "service": list_services,
    "provider": list_providers,
    "target": list_targets,
    "candidate": list_candidates,
    "actor": list_actors,
}


@require_safe
def options(request: HttpRequest, field: str) -> HttpResponse:
    """Render the suggestions for a field's current value. Raise `Http404` for an unknown kind of field."""
    # A field posts its value under its own name, which may have a form's prefix.
    part = str(next(iter(request.GET.values()), "")).strip()
    if field == "revision":
        found = describe_revisions(part)
    elif field in NAMES:
        notes = NAMES[field](snapshot.current())
        found = {name: notes[name] for name in match_names(part, list(notes))[:MAX_OPTIONS]}
    else:
        raise Http404
    return render(request, "components/options.html", {"options": found.items()})


@require_POST
def chosen(request: HttpRequest, field: str) -> HttpResponse:
    """Render a field of the type `Chosen` after a name was added or removed. Nothing is saved yet.

    Raise `Http404` for an unknown kind of field.
    """
    if field not in NAMES:
        raise Http404
    name, identity = (request.GET.get(key, "") for key in ("field", "id"))
    dropped = request.POST.get("drop")
    widget = Chosen(field)
    lines = split_names(widget.value_from_datadict(request.POST, request.FILES, name))
    attributes = {
        "id": identity,
        "aria-describedby": f"{identity}_helptext",
        **({"autofocus": True} if dropped else {}),
    }
    text = "\n".join(line for line in lines if line != dropped)
    # This event notifies the save bar and the stored draft of the new value, as typing does.
    change = json.dumps({"change": {"target": f"#{identity}-value"}})
    return HttpResponse(widget.render(name, text, attributes), headers={"HX-Trigger-After-Settle": change})
