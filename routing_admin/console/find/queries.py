"""Queries for the search page Find: a few rows of each kind, by name or by the beginning of their id.

Searches for requests and keys use an index. Configuration entries are searched in memory, without queries.
"""

from __future__ import annotations

from django.contrib.auth.models import User

from capabilities.models import AgentKey
from routing_admin.core.ranking import MAX_OF_KIND
from routing_admin.models import RequestLog
from routing_admin.request_log.search import LAST_CHARACTER

MAX_FOUND = MAX_OF_KIND + 1
"""Maximum number of rows to read per kind. It is one more than are shown, to detect whether there are more."""


def find_requests(prefix: str) -> list[RequestLog]:
    """Return requests whose id begins with `prefix`, newest first.

    This takes one query over a range of the primary key.
    """
    rows = RequestLog.objects.filter(pk__gte=prefix, pk__lt=prefix + LAST_CHARACTER)
    return list(rows.only("pk", "task_type", "agent", "outcome", "started_at").order_by("-pk")[:MAX_FOUND])


def find_keys(prefix: str) -> list[AgentKey]:
    """Return agents' keys, including expired keys, whose public part begins with `prefix`. This takes one query."""
    rows = AgentKey.objects.filter(public_id__gte=prefix, public_id__lt=prefix + LAST_CHARACTER)
    return list(rows.select_related("agent").order_by("public_id")[:MAX_FOUND])


def find_people(part: str) -> list[User]:
    # No index supports this filter, but an installation has so few users that all of them can be searched.
    return list(User.objects.filter(username__icontains=part).order_by("username")[:MAX_FOUND])
