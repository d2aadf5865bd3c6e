"""An agent's own page and its list of calls, for visitors who have a link to it.

These pages reveal only what the agent itself may know. They accept only GET requests: under `Referrer-Policy:
no-referrer`, a browser sends no origin with a posted form, so the server could not verify it. Language and theme are
therefore chosen with query parameters and stored in cookies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from capabilities.access import list_creators
from capabilities.actors import Actor
from capabilities.core.services.agent_limits import MONEY, AgentLimits, combine_rights, parse_limits
from capabilities.core.services.agents import LINK_KIND, find_public_id
from capabilities.core.services.limit_holders import agent_holder_id
from routing_admin.configuration import snapshot
from routing_admin.configuration.agents.queries import NAMES, find_guarantee, find_profile, list_keys, list_readings
from routing_admin.configuration.offered_models import list_offered
from routing_admin.console.agents.actions import record_visit
from routing_admin.console.agents.queries import (
    find_call,
    find_key_uses,
    list_calls,
    list_key_lines,
    name_uses,
    open_link,
)
from routing_admin.console.agents.snippets import describe_use
from routing_admin.console.base.readings import record_body_read
from routing_admin.console.base.session import remember_theme
from routing_admin.console.people.language import remember_language
from routing_admin.console.people.signin import visitor_address
from routing_admin.console.requests.story import Step, build_row, build_steps, build_story, build_tracks, color_chips
from routing_admin.core.fallback.table import CALLERS_FAULTS
from routing_admin.platform.auth import throttle
from routing_admin.platform.server.request_id import read_request_id
from routing_admin.request_log.entries import requested_target
from routing_admin.request_log.operations import operation_name
from routing_admin.request_log.sentences import RenderedSentence

if TYPE_CHECKING:
    from capabilities.models import Agent, AgentLink
    from routing_admin.models import AttemptLog


# The secret is part of the URL, so it must not reach referrers, search engines or shared caches.
HEADERS = {
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex, nofollow",
    "Cache-Control": "no-store, private",
}


def by_link(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Decorate a view so that it receives the row of a valid link as its second argument.

    All invalid links get the same page, whatever the reason, with status 404, or with 429 after too many attempts from
    one IP address.
    """

    @wraps(view)
    def answer(request: HttpRequest, link: str, **kwargs: Any) -> HttpResponse:
        row, wait = try_link(request, link)
        if row is None:
            response = refuse_link(request, wait)
        else:
            record_visit(row, link)
            response = store_preferences(request) or view(request, row, link, **kwargs)
        for name, value in HEADERS.items():
            response.headers[name] = value
        return response

    return require_safe(answer)


def try_link(request: HttpRequest, text: str) -> tuple[AgentLink | None, int]:
    """Return (link, 0), or (None, 0) if the link is unknown, or (None, seconds to wait) if it is throttled."""
    name, address = find_public_id(text), visitor_address(request)
    # While the link's public part or the IP address is throttled, even a valid link is rejected.
    if wait := throttle.find_wait(name, address, kind=LINK_KIND):
        return None, wait
    row = open_link(text)
    # Requests caused by another site are not counted. Otherwise, fifty images on that site's page would lock out
    # everyone behind the visitor's IP address.
    if row is not None or request.headers.get("Sec-Fetch-Site") == "cross-site":
        return row, 0
    return None, throttle.enter(name, address, kind=LINK_KIND)


def refuse_link(request: HttpRequest, wait: int = 0) -> HttpResponse:
    """Render the page for invalid links. It reveals neither the reason nor the agent."""
    status = 429 if wait else 404
    response = render(request, "agent_page/refused.html", {"wait": wait, "minutes": -(-wait // 60)}, status=status)
    if wait:
        response.headers["Retry-After"] = str(wait)
    return response


def store_preferences(request: HttpRequest) -> HttpResponse | None:
    """Store the language or theme from the query string in a cookie and redirect.

    Return None if the query string has neither.
    """
    language, theme = request.GET.get("language", ""), request.GET.get("theme", "")
    if not (language or theme):
        return None
    response = redirect(request.path)
    remember_language(response, language if language in dict(settings.LANGUAGES) else "")
    remember_theme(response, theme)
    return response


MAX_NAMES = 25
"""Maximum number of models, and of agents, that the page names. The others are only counted."""


@by_link
def own_page(request: HttpRequest, link: AgentLink, text: str) -> HttpResponse:
    row, state = link.agent, snapshot.current()
    calls = list_calls(row.agent_id, row.created_at, request.GET.get("before", ""))
    keys, directory = list_keys(row), state.directory
    uses = find_key_uses(row, keys)
    profile = find_profile(row, directory)
    offered, agents = list(list_offered(state, find_rights(row))), list(directory)
    context = {
        "row": row,
        "link": link,
        "text": text,
        "calls": [build_row(call) for call in calls.rows],
        "shows_costs": counts_money(row),
        "older": f"?{urlencode({'before': calls.older})}#calls" if calls.older else "",
        "is_newest": not request.GET.get("before"),
        "keys": list_key_lines(keys, uses, None),
        "uses": name_uses(uses[agent_holder_id(row.agent_id)]),
        "profile": profile,
        "readings": shorten(list_readings(profile, directory)),
        "guarantee": find_guarantee(row.task_type) if row.task_type else None,
        "models": offered[:MAX_NAMES],
        "more_models": max(0, len(offered) - MAX_NAMES),
        "agents": list(islice((agent for agent in agents if agent.id != row.agent_id), MAX_NAMES)),
        "more_agents": max(0, len(agents) - 1 - MAX_NAMES),
        **describe_use(row),
    }
    return render(request, "agent_page/page.html", context)


@by_link
def own_call(request: HttpRequest, link: AgentLink, text: str, pk: str) -> HttpResponse:
    """Show one of the agent's calls: what each model received and answered. The status is 404 for any other call."""
    row, state = link.agent, snapshot.current()
    shows_bodies = link.with_bodies and state.record_bodies
    call = find_call(row.agent_id, row.created_at, pk, body=shows_bodies)
    if call is None:
        return render(request, "agent_page/no_call.html", {"text": text, "row": row}, status=404)
    record_body_read(link_actor(request, link), call.row)
    steps = list_steps(call.attempts, call.row.ending)
    has_tokens = any(step.row.is_counted or step.describer_calls for step in steps)
    context = {
        "row": call.row,
        "agent": row,
        "text": text,
        "is_shared": True,
        "target": requested_target(call.row),
        "story": build_story(call.row, steps),
        "steps": steps,
        "chain": color_chips(call.row.chain, call.row.ending),
        "has_calls": any(not step.is_skipped for step in steps),
        "tracks": build_tracks(steps, call.row.duration_ms),
        "has_files": any(step.files for step in steps),
        "has_errors": any(step.error for step in steps),
        "has_tokens": has_tokens,
        "has_costs": has_tokens and counts_money(row),
        "dropped": sorted({name for step in steps for name in step.row.dropped_params}),
        "operation": operation_name(call.row.surface),
        "shows_bodies": shows_bodies,
    }
    return render(request, "agent_page/call.html", context)


def link_actor(request: HttpRequest, link: AgentLink) -> Actor:
    return Actor("link", f"{link.name} (rap_{link.public_id})", visitor_address(request), read_request_id(request))


def counts_money(row: Agent) -> bool:
    # Costs are shown only if the agent has a spending limit.
    limits = parse_limits(row.limits)
    return limits is not None and any(meter in limits.maximums for meter in MONEY)


def find_rights(row: Agent) -> AgentLimits | None:
    """Return the combined limits of the agent and its creators, or None if there are none."""
    return combine_rights(parse_limits(row.limits), *(parse_limits(maker.limits) for maker in list_creators(row)))


def shorten(readings: Sequence[Any]) -> list[tuple[Any, tuple[str, ...], int]]:
    """Return each kind of content with the first few agents that can read it and the number of agents left out."""
    return [(reading, reading.others[:NAMES], max(0, len(reading.others) - NAMES)) for reading in readings]


def list_steps(attempts: Sequence[AttemptLog], ending: str) -> tuple[Step, ...]:
    """Return a call's attempts, without the names of the provider keys that were used.

    A provider's error message is included only if the caller caused the error.
    """
    for row in attempts:
        row.tries = [{name: value for name, value in entry.items() if name != "key"} for entry in row.tries]
    steps = build_steps(attempts, ending)
    return tuple(
        step if step.row.outcome in CALLERS_FAULTS else replace(step, error=RenderedSentence()) for step in steps
    )
