"""What does the dashboard need to know? The newest trouble, the newest revision, and how far an installation has come.

The numbers of the day and the health of providers are `request_log.health`'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q
from django.utils import timezone

from artifacts.models import Artifact
from capabilities.last_use import last_uses
from capabilities.models import AgentKey
from routing_admin.core.fallback.chain import OK
from routing_admin.core.fallback.endings import RequestEnding
from routing_admin.models import AuditEvent, Installation, RequestLog, Revision
from routing_admin.request_log.search import failed_condition, fell_back_condition
from routing_admin.request_log.time_ranges import back_from, within
from routing_admin.request_log.window import window_start

TROUBLED = 8
"""How many requests that fell back or failed are shown."""
DEMO = "demo"
"""The surface of the request that the demo brings, which proves nothing about anybody's program."""


def list_troubled_requests(now: datetime) -> list[RequestLog]:
    """The newest requests of a day that fell back or failed, without their bodies; two queries of an index each."""
    rows = RequestLog.objects.defer("body", "error", "sentence", "token_details", "answer", "prefix")
    rows = rows.filter(started_at__gte=window_start(now)).order_by("-started_at", "-pk")
    fell_back = rows.filter(fell_back_condition())[:TROUBLED]
    failed = rows.filter(failed_condition(), ending=RequestEnding.FAILED)[:TROUBLED]
    found = {row.pk: row for row in (*fell_back, *failed)}
    return sorted(found.values(), key=lambda row: (row.started_at, row.pk), reverse=True)[:TROUBLED]


def find_newest_revision() -> Revision | None:
    """The newest revision without what it changed; None before the first."""
    return Revision.objects.only("number", "created_at", "actor", "message").first()


@dataclass(frozen=True, slots=True)
class Beginnings:
    """What somebody has done on a new installation, as far as rows know it."""

    has_demo: bool
    had_demo: bool
    chose_password: bool
    used_key: bool
    uploaded_file: bool
    answered_request: bool


def find_beginnings(user: str) -> Beginnings:
    """How far the installation has come, for the user of that name; six queries at most."""
    chosen = AuditEvent.objects.filter(action__in=("user.password", "user.join"), object_name=user)
    used = Q(last_used_at__isnull=False) | Q(public_id__in=last_uses().list_noted())
    has_demo = Installation.current().has_demo
    return Beginnings(
        has_demo=has_demo,
        had_demo=has_demo or AuditEvent.objects.filter(action="demo.load").exists(),
        chose_password=chosen.exists(),
        used_key=AgentKey.objects.filter(used).exists(),
        uploaded_file=Artifact.objects.filter(owner="").exclude(uploaded_by="").exists(),  # no agent's: by the index
        answered_request=_was_answered(),
    )


def _was_answered() -> bool:
    """Whether a program was; the newest days are asked first, since mostly one was then."""
    answered = RequestLog.objects.filter(outcome=OK).exclude(surface=DEMO)
    return any(within(answered, each, "started_at").exists() for each in back_from(timezone.now()))
