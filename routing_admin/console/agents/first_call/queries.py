"""What came of a new key so far: its first calls in the log, and calls that went astray while somebody waits."""

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

MAX_REQUESTS, MAX_MISSED = 20, 3
NEAREST = 3


@dataclass(frozen=True, slots=True)
class FirstCall:
    """The key's newest call that was answered, else its newest; calls that named the key and went astray, and those of
    nobody known, the newest first.
    """

    request: LoggedRequest | None
    own: tuple[RejectedCall, ...]
    others: tuple[RejectedCall, ...]

    @property
    def is_answered(self) -> bool:
        """Whether a call with the key was answered."""
        return self.request is not None and self.request.row.outcome == OK


def find_first_call(key: AgentKey, since: datetime) -> FirstCall:
    """What came of a key; of calls that may be anybody's those since that moment. Four queries at most."""
    rows = RequestLog.objects.defer("body").filter(agent=key.agent.agent_id, key=key.public_id)
    newest = list(rows.filter(started_at__gte=key.created_at).order_by("-started_at")[:MAX_REQUESTS])
    row = next((each for each in newest if each.outcome == OK), newest[0] if newest else None)
    if row is not None:
        row.body = None
    request = LoggedRequest(row, tuple(row.attempts.order_by("position"))) if row is not None else None
    own = RejectedCall.objects.filter(key=key.public_id, at__gte=key.created_at)
    others = RejectedCall.objects.filter(at__gte=since).exclude(key=key.public_id)
    return FirstCall(request, tuple(own[:MAX_MISSED]), tuple(others[:MAX_MISSED]))


def directive_of(row: RequestLog) -> str:
    """Return the line that the call's route adds to every call, as the route is now; empty for a call of no route."""
    configuration = snapshot.current().configuration
    route = configuration.route(row.task_type)
    if route is None:
        return ""
    return plan_route(configuration, route, RoutingQuery(direct=row.asked_model == row.model)).directive


def list_nearest_names(name: str) -> list[str]:
    """The model names that there are and that look most like the one that was asked for."""
    return get_close_matches(name, list(dict.fromkeys(_names())), NEAREST, 0.5)


def _names() -> Iterator[str]:
    configuration = snapshot.current().configuration
    yield from (task_name(route.task_type) for route in configuration.routes if route.enabled)
    yield from (service.id for service in configuration.services if service.enabled)
    yield from (alias.name for alias in configuration.aliases)
