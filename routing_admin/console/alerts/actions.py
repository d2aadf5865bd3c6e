"""Store alerts: record when a condition begins, continues and ends, and let exactly one process send each notice.

Several processes record conditions, sometimes late. Each observation therefore has its own time, and an observation
older than the stored state is ignored. If a condition returns within `RESOLVE_DELAY` of its end, its alert continues as
if it had never ended, so a flapping condition causes only two notices: one when it begins and one when it ends.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from capabilities.actors import Actor, AuditedAction
from capabilities.core.problems import Problem
from capabilities.core.translatable import decode_text, encode_text
from capabilities.errors import InvalidError, NotFoundError
from capabilities.secrets import store_key
from routing_admin.configuration.revisions import ledger
from routing_admin.core.alerts.kinds import KINDS, AlertKind, Condition, Severity, spent_subject
from routing_admin.core.alerts.webhook import Webhook, WebhookAddressError, parse_webhook
from routing_admin.models import Alert, Installation
from routing_admin.platform.server.alert_file import StoredAlert, alert_file

log = logging.getLogger(__name__)

RESOLVE_DELAY = timedelta(minutes=2)
"""How long a condition must be absent before the notice of its end is sent."""
REFRESHES_PER_LIFETIME = 3
"""While a condition lasts, its alert's row is updated this many times per lifetime of the alert."""
RETRY_DELAYS = tuple(timedelta(seconds=delay) for delay in (30, 60, 120, 240, 480, 960, 1800, 3600, 3600))
"""Delays after failed attempts to send a notice. After the last delay, the notice is abandoned."""
RETENTION = timedelta(days=90)
"""How long the page shows resolved alerts before `prune` deletes them."""


def record_condition(condition: Condition, at: datetime) -> None:
    """Begin or refresh the alert for a condition that was observed at `at`. Ignore outdated observations."""
    rows = Alert.objects.filter(kind=condition.kind, subject=condition.subject[:400])
    row = rows.first()
    if row is None:
        alert = Alert(kind=condition.kind, subject=condition.subject[:400], **_initial_values(condition, at))
        Alert.objects.bulk_create([alert], ignore_conflicts=True)  # Another process may have inserted the same alert.
        log_begin(condition)
    elif row.ended_at is None:
        _refresh(rows, row, condition, at)
    elif row.ended_at < at:
        _reopen(rows.filter(ended_at=row.ended_at), row, condition, at)


def _refresh(rows: QuerySet[Alert], row: Alert, condition: Condition, at: datetime) -> None:
    # Continuing conditions are observed every few seconds, so only some of the observations are written. Conditions
    # that are derived from calls keep the exact time of the call.
    interval = condition.lasts / REFRESHES_PER_LIFETIME if condition.is_state else timedelta(0)
    if at - row.last_seen_at > interval:
        # The new message may contain larger numbers, so it replaces the old message.
        expires_at, sentence = max(row.expires_at, at + condition.lasts), encode_text(condition.sentence)
        rows.filter(last_seen_at__lt=at).update(last_seen_at=at, expires_at=expires_at, sentence=sentence)


def log_begin(condition: Condition) -> None:
    level = logging.ERROR if KINDS[condition.kind].severity is Severity.CRITICAL else logging.WARNING
    log.log(level, "alert %s about %s: %s", condition.kind, condition.subject, condition.sentence)


def _reopen(rows: QuerySet[Alert], row: Alert, condition: Condition, at: datetime) -> None:
    if _is_flapping(row, at):
        due = at if row.sent_at is None else None
        rows.update(ended_at=None, last_seen_at=at, expires_at=at + condition.lasts, next_try_at=due)
        return
    rows.update(**_initial_values(condition, at), ended_at=None, sent_at=None, end_sent_at=None, times=F("times") + 1)
    log_begin(condition)


def _is_flapping(row: Alert, at: datetime) -> bool:
    return row.ended_at is not None and at - row.ended_at <= RESOLVE_DELAY


def import_file_alerts() -> None:
    """Import the alerts that were recorded in a file while the database was unavailable."""
    if alert_file().read():
        with alert_file().edit() as alerts:
            for alert in alerts.values():
                _import_alert(alert)
            alerts.clear()


def _import_alert(alert: StoredAlert) -> None:
    row = Alert.objects.filter(kind=alert.kind, subject=alert.subject).first()
    if row is None:
        Alert.objects.bulk_create([Alert(**asdict(alert))], ignore_conflicts=True)
    elif row.ended_at is None or _is_flapping(row, alert.first_seen_at):
        row.sent_at, row.ended_at = row.sent_at or alert.sent_at, None
        row.last_seen_at, row.expires_at = (
            max(row.last_seen_at, alert.last_seen_at),
            max(row.expires_at, alert.expires_at),
        )
        row.save(update_fields=["sent_at", "ended_at", "last_seen_at", "expires_at"])
    else:
        changes: dict[str, Any] = {"ended_at": None, "end_sent_at": None, "times": row.times + 1}
        changes |= {"acknowledged_at": None, "acknowledged_by": ""}
        Alert.objects.filter(pk=row.pk).update(**asdict(alert), **changes)


KnownAlerts = Mapping[tuple[str, str], datetime | None]
"""Maps an alert's (kind, subject) to the time at which it ended, or to None while the alert is active."""


def list_known_alerts(now: datetime, *, only_sent: bool) -> KnownAlerts:
    """Return the alerts that are active or ended less than `RESOLVE_DELAY` ago.

    With `only_sent`, return only alerts that were sent, or that must not be sent because they are muted.
    """
    rows = Alert.objects.filter(Q(ended_at=None) | Q(ended_at__gt=now - RESOLVE_DELAY))
    selected = rows.filter(Q(sent_at__isnull=False) | Q(muted_until__gt=now)) if only_sent else rows
    return {
        (kind, subject): ended_at for kind, subject, ended_at in selected.values_list("kind", "subject", "ended_at")
    }


def _initial_values(condition: Condition, at: datetime) -> dict[str, Any]:
    return {
        "sentence": encode_text(condition.sentence),
        "first_seen_at": at,
        "last_seen_at": at,
        "expires_at": at + condition.lasts,
        "next_try_at": at,
        "tries": 0,
        "error": None,
        "acknowledged_at": None,
        "acknowledged_by": "",
    }


ResolvedTimes = Mapping[tuple[AlertKind, str], datetime]
"""Maps an alert's (kind, subject) to the newest time at which the subject is known to have had no problem."""
ExistingSubjects = Mapping[AlertKind, Collection[str]]
"""Maps each kind of alert whose subjects can be deleted to the subjects that still exist."""


def end_alerts(resolved: ResolvedTimes, existing: ExistingSubjects, now: datetime) -> None:
    """End alerts that are resolved or expired, or whose subject was deleted.

    An alert expires if its condition is not observed again during its lifetime. If nothing ends, this takes one query.
    """
    rows = list(Alert.objects.filter(ended_at=None))
    active = {(row.kind, row.subject) for row in rows}
    for row in rows:
        if (row.kind, spent_subject(row.subject)) in active:
            # The alert about a used-up budget replaces the warning about this budget. A notice that the warning has
            # ended must not be sent, because the budget has not recovered.
            continue
        kind = AlertKind(row.kind)
        well_at = resolved.get((kind, row.subject))
        if well_at is not None and well_at > row.last_seen_at:
            # Filtering by `last_seen_at` skips an alert that another process has observed again.
            _end(Alert.objects.filter(pk=row.pk, last_seen_at__lt=well_at), well_at)
        elif row.expires_at <= now or row.subject not in existing.get(kind, (row.subject,)):
            _end(Alert.objects.filter(pk=row.pk, last_seen_at=row.last_seen_at), now)


def end_kind(kind: AlertKind, at: datetime) -> None:
    """End all alerts of this kind that were last observed before `at`."""
    _end(Alert.objects.filter(kind=kind, last_seen_at__lt=at), at)


def _end(rows: QuerySet[Alert], at: datetime) -> None:
    lasting = rows.filter(ended_at=None)
    for kind, subject in lasting.values_list("kind", "subject"):
        log.warning("alert %s about %s is over", kind, subject)
    lasting.update(ended_at=at, tries=0, error=None, next_try_at=at + RESOLVE_DELAY)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedAlert:
    """An alert that this process has claimed: it reports the alert's end if `ended_at` is set, else its beginning."""

    id: int
    kind: AlertKind
    subject: str
    sentence: str
    first_seen_at: datetime
    ended_at: datetime | None
    times: int
    tries: int


def claim_next(now: datetime) -> ClaimedAlert | None:
    """Claim and return the next alert that is due for a notice, or None if there is none."""
    begun = Q(ended_at=None, sent_at=None)
    ended = Q(ended_at__isnull=False, sent_at__isnull=False, end_sent_at=None)
    audible = Q(muted_until=None) | Q(muted_until__lte=now)
    for row in Alert.objects.filter(begun | ended, audible, next_try_at__lte=now).order_by("next_try_at"):
        unchanged = Q(pk=row.pk, tries=row.tries, next_try_at=row.next_try_at)
        claim = Alert.objects.filter(unchanged & (begun if row.ended_at is None else ended))
        wait = RETRY_DELAYS[row.tries] if row.tries < len(RETRY_DELAYS) else None
        # This is a compare-and-set: only the first process that increments `tries` gets the row.
        if claim.update(tries=row.tries + 1, next_try_at=None if wait is None else now + wait):
            kind, sentence = AlertKind(row.kind), decode_text(row.sentence)
            first_seen_at, tries = row.first_seen_at, row.tries + 1
            return ClaimedAlert(
                id=row.pk,
                kind=kind,
                subject=row.subject,
                sentence=sentence,
                first_seen_at=first_seen_at,
                ended_at=row.ended_at,
                times=row.times,
                tries=tries,
            )
    return None


def record_sent(claimed: ClaimedAlert, now: datetime) -> None:
    changes = {"sent_at": now} if claimed.ended_at is None else {"end_sent_at": now}
    _claimed_rows(claimed).update(**changes, error=None)


def record_failed(claimed: ClaimedAlert, reason: str) -> None:
    """Record why the webhook did not accept the notice. `claim_next` has already scheduled the next attempt."""
    _claimed_rows(claimed).update(error=encode_text(reason))


def _claimed_rows(claimed: ClaimedAlert) -> QuerySet[Alert]:
    # This filter matches no row if the alert has ended and begun again in the meantime.
    return Alert.objects.filter(pk=claimed.id, first_seen_at=claimed.first_seen_at)


def record_test(actor: Actor, webhook: Webhook | None, *, arrived: bool) -> None:
    """Record in the audit log that a test notice was sent, to which host, and whether it was accepted."""
    with ledger.audit(
        actor, AuditedAction("alert.test", "webhook", webhook.host if webhook else "", {"arrived": arrived})
    ):
        pass


MUTE_HOURS = (1, 8, 24, 168)
"""Durations, in hours, that the page offers for muting an alert."""
MAX_MUTE = timedelta(days=90)


def acknowledge(actor: Actor, number: int, *, on: bool) -> Alert:
    """Mark an alert as acknowledged by the actor, or remove the mark.

    Raise `NotFoundError` if the alert is not active.
    """
    row = _find_active(number)
    with ledger.audit(actor, AuditedAction("alert.acknowledge" if on else "alert.withdraw", "alert", _alert_name(row))):
        row.acknowledged_at, row.acknowledged_by = (timezone.now(), actor.name[:150]) if on else (None, "")
        row.save(update_fields=["acknowledged_at", "acknowledged_by"])
    return row


def mute(actor: Actor, number: int, until: datetime | None) -> Alert:
    """Suppress notices about an alert until the given time; None ends the suppression.

    Raise `NotFoundError` if the alert is not active, and `InvalidError` if the time is past or more than `MAX_MUTE`
    away.
    """
    now = timezone.now()
    if until is not None and not now < until <= now + MAX_MUTE:
        message = _("Mute an alert until a time in the next %(days)s days.") % {"days": MAX_MUTE.days}
        raise InvalidError([Problem("until", message, "range")])
    row = _find_active(number)
    details = {"until": until.isoformat() if until else None}
    with ledger.audit(
        actor, AuditedAction("alert.mute" if until else "alert.unmute", "alert", _alert_name(row), details)
    ):
        row.muted_until = until
        row.save(update_fields=["muted_until"])
    return row


def _find_active(number: int) -> Alert:
    row = Alert.objects.filter(pk=number, ended_at=None).first()
    if row is None:
        raise NotFoundError(_("This alert has ended."))
    return row


def _alert_name(row: Alert) -> str:
    return f"{row.kind} {row.subject}"[:300]


def save_webhook(actor: Actor, address: str) -> None:
    """Store the URL that alerts are sent to, encrypted. An empty URL deletes the stored one.

    A URL in the environment takes precedence. Raise `InvalidError` for a URL that `parse_webhook` rejects.
    """
    webhook = None
    if address:
        try:
            webhook = parse_webhook(address)
        except WebhookAddressError as refusal:
            raise InvalidError([Problem("address", refusal.args[0], "format")]) from None
    action, host = ("alert.webhook", webhook.host) if webhook else ("alert.webhook_delete", "")
    with ledger.audit(actor, AuditedAction(action, "webhook", host)):
        stored = store_key(address, webhook.url) if webhook else None
        Installation.objects.update_or_create(id=1, defaults={"alert_webhook": stored})


def prune_alerts(now: datetime) -> None:
    Alert.objects.filter(ended_at__lt=now - RETENTION).delete()
