"""Find the first calls that used a new key, and rejected calls that may have been meant to use it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches

from capabilities.models import AgentKey
from routing_admin.configuration import snapshot
from routing_admin.core.fallback.chain import OK
from routing_admin.core.planning.model_names import task_name
from routing_admin.core.planning.plan import RoutingQuery, plan_route
from routing_admin.models import RejectedCall, RequestLog
from routing_admin.request_log.search import LoggedRequest

# How many calls to search for an answered one, and the maximum number of rejected calls to show.
MAX_REQUESTS, MAX_MISSED = 20, 3
MAX_SUGGESTIONS = 3


@dataclass(frozen=True, slots=True)
class FirstCall:
    """A key's newest answered call (or, if none was answered, its newest call), and the newest rejected calls.

    `own` contains rejected calls that named this key, `others` those that did not.
    """

    request: LoggedRequest | None
    own: tuple[RejectedCall, ...]
    others: tuple[RejectedCall, ...]

    @property
    def is_answered(self) -> bool:
        return self.request is not None and self.request.row.outcome == OK


def find_first_call(key: AgentKey, since: datetime) -> FirstCall:
    """Find a key's newest answered call (or newest call), and rejected calls.

    Rejected calls that did not name the key are included only if they were made at or after `since`. This takes at most
    four queries.
    """
    rows = RequestLog.objects.defer("body").filter(agent=key.agent.agent_id, key=key.public_id)
    newest = list(rows.filter(started_at__gte=key.created_at).order_by("-started_at")[:MAX_REQUESTS])
    row = next((call for call in newest if call.outcome == OK), newest[0] if newest else None)
    if row is not None:
        # Setting the deferred body to None prevents a query if a template reads it.
        row.body = None
    request = LoggedRequest(row, tuple(row.attempts.order_by("position"))) if row is not None else None
    own = RejectedCall.objects.filter(key=key.public_id, at__gte=key.created_at)
    others = RejectedCall.objects.filter(at__gte=since).exclude(key=key.public_id)
    return FirstCall(request, tuple(own[:MAX_MISSED]), tuple(others[:MAX_MISSED]))


def find_directive(row: RequestLog) -> str:
    """Return the language directive that the call's route would add to a request now.

    Return an empty string if the route no longer exists.
    """
    configuration = snapshot.current().configuration
    route = configuration.route(row.task_type)
    if route is None:
        return ""
    return plan_route(configuration, route, RoutingQuery(direct=row.asked_model == row.model)).directive


def list_nearest_names(name: str) -> list[str]:
    return get_close_matches(name, list(dict.fromkeys(_callable_names())), MAX_SUGGESTIONS, 0.5)


def _callable_names() -> Iterator[str]:
    configuration = snapshot.current().configuration
    yield from (task_name(route.task_type) for route in configuration.routes if route.enabled)
    yield from (service.id for service in configuration.services if service.enabled)
    yield from (alias.name for alias in configuration.aliases)
