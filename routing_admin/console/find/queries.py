"""What does Find ask the databases? A few rows of each kind by the beginning of an id or a name, each from an index.

What is in the configuration needs no query: it is in memory.
"""

from __future__ import annotations

from django.contrib.auth.models import User

from capabilities.models import AgentKey
from routing_admin.models import RequestLog
from routing_admin.request_log.search import LAST_CHARACTER

FEW = 6
"""Rows that are read of each kind."""


def find_requests(beginning: str) -> list[RequestLog]:
    """The requests whose id begins so, the newest ids first; one query for a range of the primary key."""
    rows = RequestLog.objects.filter(pk__gte=beginning, pk__lt=beginning + LAST_CHARACTER)
    return list(rows.only("pk", "task_type", "agent", "outcome", "started_at").order_by("-pk")[:FEW])


def find_keys(beginning: str) -> list[AgentKey]:
    """The agents' keys, ended ones too, whose public part begins so; one query."""
    rows = AgentKey.objects.filter(public_id__gte=beginning, public_id__lt=beginning + LAST_CHARACTER)
    return list(rows.select_related("agent").order_by("public_id")[:FEW])


def find_people(part: str) -> list[User]:
    """The users with that in their name; one query over what is never more than the people of one house."""
    return list(User.objects.filter(username__icontains=part).order_by("username")[:FEW])
