"""Start and stop fire drills, which simulate the outage of a provider.

Both actions are audited but create no configuration revision.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import DatabaseError, InterfaceError
from django.utils import timezone
from django.utils.translation import gettext as _

from capabilities.actors import SYSTEM, Actor, AuditedAction
from capabilities.core.problems import Problem
from capabilities.errors import ActionError, InvalidError, NotFoundError
from routing_admin.configuration import snapshot
from routing_admin.configuration.revisions import DRILL_END, DRILL_START, DRILL_STOP, ledger
from routing_admin.configuration.snapshot import build_drill_window
from routing_admin.core.fallback.scripts import CHOICES, DrillWindow
from routing_admin.models import FireDrill
from routing_admin.request_log.drill_results import find_result

log = logging.getLogger(__name__)

# Delay between a drill's end and recording its result. By then, the request log contains all affected requests.
RECORD_DELAY = timedelta(seconds=3)


class DrillRefusedError(ActionError):
    """A fire drill cannot start now."""

    code = "drill_refused"
    status = 409


class _AlreadyRecordedError(Exception):
    pass


def start_drill(actor: Actor, provider: str, seconds: int) -> DrillWindow:
    """Make a provider count as unavailable for `seconds`: at once in this process, within a second in all others.

    Raise `NotFoundError` for an unknown provider, `InvalidError` for a duration that is not offered, and
    `DrillRefusedError` if a drill is running or the provider is disabled.
    """
    spec = snapshot.current().configuration.provider(provider)
    if spec is None:
        raise NotFoundError(_("There is no provider %(name)s.") % {"name": provider})
    if seconds not in CHOICES:
        message = _("A fire drill lasts 30, 60 or 300 seconds.")
        raise InvalidError([Problem("seconds", message, "enum")])
    if not spec.enabled:
        raise DrillRefusedError(_("%(name)s is disabled, so it is not called anyway.") % {"name": provider})
    with ledger.audit(actor, AuditedAction(DRILL_START, "provider", provider, {"seconds": seconds})):
        now = timezone.now()
        _refuse_second(now)
        ends_at = now + timedelta(seconds=seconds)
        row = FireDrill.objects.create(provider=provider, actor=actor.name[:150], started_at=now, ends_at=ends_at)
    return build_drill_window(row)


def _refuse_second(now: datetime) -> None:
    running = FireDrill.objects.filter(noted_at=None, ends_at__gt=now).first()
    if running is not None:
        facts = {"name": running.provider, "actor": running.actor}
        facts["time"] = timezone.localtime(running.ends_at).strftime("%H:%M:%S")
        message = _("%(actor)s is running a fire drill of %(name)s until %(time)s. Only one can run at a time.")
        raise DrillRefusedError(message % facts)


def stop_drill(actor: Actor, provider: str | None = None) -> str:
    """End the running drill and return its provider's name. If `provider` is given, end only this provider's drill.

    Raise `NotFoundError` if there is no such drill.
    """
    with ledger.audit(actor, act := AuditedAction(DRILL_STOP, "provider")):
        now = timezone.now()
        rows = FireDrill.objects.filter(noted_at=None, ends_at__gt=now)
        row = (rows if provider is None else rows.filter(provider=provider)).first()
        if row is None:
            raise NotFoundError(_("No fire drill is running. It may have ended already."))
        row.ends_at = now
        row.save(update_fields=["ends_at"])
        act.object_name = row.provider
    return act.object_name


def record_drill_ends(clock: Callable[[], datetime] = timezone.now) -> None:
    """Record the result of every ended drill in the audit log. Of several processes, only one records it."""
    # If the newest snapshot contains no drill, the database is not queried.
    state = snapshot.newest().fresh()
    if state is None or state.drill is None:
        return
    cutoff = clock() - RECORD_DELAY
    if state.drill.ends > cutoff.timestamp():
        return
    for row in FireDrill.objects.filter(noted_at=None, ends_at__lte=cutoff).order_by("id"):
        try:
            _record_end(row, clock())
        except _AlreadyRecordedError:
            continue
        except (DatabaseError, InterfaceError) as error:  # The database may be busy. The next round tries again.
            log.debug("the end of the fire drill of %s is not noted yet: %s", row.provider, error)
            return


def _record_end(row: FireDrill, now: datetime) -> None:
    result = find_result(row.provider, row.started_at, row.ends_at)
    with ledger.audit(
        SYSTEM, AuditedAction(DRILL_END, "provider", row.provider, result.as_json(row.started_at, row.ends_at))
    ):
        if not FireDrill.objects.filter(pk=row.pk, noted_at=None).update(noted_at=now):
            # The exception must leave this block before `ledger.audit` writes a second audit event for the same drill.
            raise _AlreadyRecordedError
