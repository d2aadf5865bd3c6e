"""The ledger of alerts while the database is unavailable: alerts in a file, which the database takes over afterwards.

Only beginnings are sent from here. What is over by then ends, and is said to, once the database is back.
"""

from __future__ import annotations

from datetime import datetime

from capabilities.core.worded import data_of, text_of
from routing_admin.console.alerts.actions import WAITS, ClaimedAlert, log_begin
from routing_admin.core.alerts.kinds import AlertKind, Condition
from routing_admin.platform.server.alert_file import KeptAlert, alert_file


def note_trouble(trouble: Condition, at: datetime) -> None:
    """A trouble as it was found at that moment: it begins or goes on."""
    with alert_file().edit() as kept:
        key = (trouble.kind.value, trouble.subject)
        if key not in kept:
            kept[key] = KeptAlert(*key, data_of(trouble.sentence), at, at, at, next_try_at=at)
            log_begin(trouble)
        kept[key].last_seen_at, kept[key].expires_at = at, at + trouble.lasts


def end_kind(kind: AlertKind, at: datetime) -> None:
    """Every alert of the kind is over."""
    with alert_file().edit() as kept:
        for each in kept.values():
            if each.kind == kind:
                each.expires_at = min(at, each.expires_at)


def claim_next(now: datetime) -> ClaimedAlert | None:
    """An alert whose beginning this caller alone is to send; None when nothing is due."""
    with alert_file().edit() as kept:
        for each in kept.values():
            if each.sent_at is None and each.next_try_at is not None and each.next_try_at <= now:
                each.next_try_at = now + WAITS[each.tries] if each.tries < len(WAITS) else None
                each.tries += 1
                kind, sentence = AlertKind(each.kind), text_of(each.sentence)
                return ClaimedAlert(0, kind, each.subject, sentence, each.first_seen_at, None, 1, each.tries)
    return None


def note_sent(claimed: ClaimedAlert, now: datetime) -> None:
    """What was claimed has arrived."""
    with alert_file().edit() as kept:
        if found := kept.get((claimed.kind, claimed.subject)):
            found.sent_at, found.error = now, None


def note_failed(claimed: ClaimedAlert, reason: str) -> None:
    """Why what was claimed did not arrive."""
    with alert_file().edit() as kept:
        if found := kept.get((claimed.kind, claimed.subject)):
            found.error = data_of(reason)
