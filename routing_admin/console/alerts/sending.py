"""Send alerts to the webhook through the gateway's HTTP client. Each alert is sent once, by one process.

The text of a notice is in the chat's language. Its fields for programs contain the alert's message in English and
Chinese.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import override

from capabilities.core.translatable import Translatable, decode_text, encode_text, translatable
from capabilities.core.wire import Answer, Failure, Fault, UpstreamRequest
from capabilities.sentences import translate_sentence
from routing_admin.console.alerts import actions as rows
from routing_admin.console.alerts.actions import RETRY_DELAYS, ClaimedAlert, log_begin
from routing_admin.console.alerts.queries import find_webhook
from routing_admin.console.docs.rules import document_url
from routing_admin.core.alerts.kinds import KINDS, AlertKind, Condition, Severity, build_condition
from routing_admin.core.alerts.webhook import CHINESE, ENGLISH, Notice, ShapeName, Webhook, refusal_in, write
from routing_admin.core.fallback.chain import Timeouts
from routing_admin.platform.server.alert_file import StoredAlert, alert_file
from routing_admin.upstream import process_upstream

log = logging.getLogger(__name__)

# The total timeout is shorter than the shortest retry delay, so two attempts to send an alert never overlap.
TIMEOUTS = Timeouts(connect=5, first_content=10, between=5, total=15)
# Chat services accept about 20 messages a minute.
MAX_IN_A_ROUND = 15
FAILURES = 3
"""After this many failed attempts, an alert about the webhook itself begins."""

UNREACHABLE = translatable("Could not reach %(host)s: %(reason)s")
REASONS: Mapping[Fault, str] = {
    Fault.DNS_ERROR: translatable("its name does not resolve."),
    Fault.CONNECT_REFUSED: translatable("nothing is listening there."),
    Fault.CONNECT_TIMEOUT: translatable("no connection within 5 seconds."),
    Fault.TLS_ERROR: translatable("the encrypted connection could not be set up."),
    Fault.TLS_CERT_ERROR: translatable("its certificate is not valid."),
    Fault.READ_TIMEOUT: translatable("it did not answer within 10 seconds."),
    Fault.DEADLINE: translatable("it did not answer within 15 seconds."),
    Fault.REDIRECT: translatable("it redirects, and redirects are not followed."),
}
"""Maps faults to sentences that say why the webhook did not respond."""
CONNECTION_BROKEN = translatable("the connection broke, or its answer cannot be read.")


@dataclass(frozen=True, slots=True)
class WebhookAnswer:
    """Decodes the webhook's response, which counts as a success only if the chat service confirms the notice."""

    shape: ShapeName

    def decode(self, status: int, headers: Mapping[str, str], body: bytes) -> Answer | Failure:
        refusal = refusal_in(self.shape, status, body)
        return Failure(Fault.BAD_SHAPE, refusal, status) if refusal else Answer("")


def send(webhook: Webhook, notice: Notice) -> str:
    """Send a notice. Return an empty string if it was accepted, else why it was not, without the secret URL."""
    url, body = write(webhook.shape, notice, webhook.url, webhook.secret, time.time())
    request = UpstreamRequest(url, {"content-type": "application/json; charset=utf-8"}, body)
    outcome = process_upstream().call_sync(request, WebhookAnswer(webhook.shape), TIMEOUTS)
    return webhook.hide(_reason(webhook, outcome)) if isinstance(outcome, Failure) else ""


def _reason(webhook: Webhook, failure: Failure) -> Translatable:
    if failure.fault in (Fault.BAD_SHAPE, Fault.ORIGIN_REFUSED) and isinstance(failure.message, Translatable):
        return failure.message
    return translatable(UNREACHABLE, host=webhook.host, reason=REASONS.get(failure.fault, CONNECTION_BROKEN))


def send_test(person: str, now: datetime) -> str:
    """Send a test notice. Return an empty string if it was accepted, else the reason for the failure."""
    webhook = find_webhook()
    if webhook is None:
        return NO_WEBHOOK
    refusal = send(webhook, write_test(webhook.language, person, now))
    if not refusal:
        rows.end_kind(AlertKind.WEBHOOK_FAILING, now)
    return refusal


NO_WEBHOOK = translatable("No webhook is set. Enter its address first.")


class AlertLedger(Protocol):
    """A module that stores alerts, either in the database or, during an outage, in a file."""

    def record_condition(self, condition: Condition, at: datetime) -> None: ...

    def end_kind(self, kind: AlertKind, at: datetime) -> None: ...

    def claim_next(self, now: datetime) -> ClaimedAlert | None: ...

    def record_sent(self, claimed: ClaimedAlert, now: datetime) -> None: ...

    def record_failed(self, claimed: ClaimedAlert, reason: str) -> None: ...


Guard = Callable[[], AbstractContextManager[object]]


def send_due(webhook: Webhook, now: datetime, ledger: AlertLedger = rows, guard: Guard = nullcontext) -> None:
    """Claim and send all alerts that are due. An alert that could not be sent becomes due again later.

    The ledger is used only inside `guard`, so that the caller can distinguish a hanging database from a slow webhook.
    """
    for _round in range(MAX_IN_A_ROUND):
        with guard():
            alert = ledger.claim_next(now)
        if alert is None:
            return
        reason = send(webhook, write_notice(alert, webhook.language))
        with guard():
            if reason:
                log.warning("the alert %s about %s was not sent: %s", alert.kind, alert.subject, reason)
                ledger.record_failed(alert, reason)
                if alert.tries >= FAILURES:
                    ledger.record_condition(
                        build_condition(AlertKind.WEBHOOK_FAILING, webhook.host, problem=reason), now
                    )
            else:
                ledger.record_sent(alert, now)
                ledger.end_kind(AlertKind.WEBHOOK_FAILING, now)


# While the database is unavailable, alerts are stored in a file, which is imported into the database afterwards. From
# the file, only notices that an alert has begun are sent. Ends of alerts are recorded and sent once the database
# responds.


def record_condition(condition: Condition, at: datetime) -> None:
    with alert_file().edit() as alerts:
        key = (condition.kind.value, condition.subject)
        if key not in alerts:
            alerts[key] = StoredAlert(*key, encode_text(condition.sentence), at, at, at, next_try_at=at)
            log_begin(condition)
        alerts[key].last_seen_at, alerts[key].expires_at = at, at + condition.lasts
        alerts[key].sentence = encode_text(condition.sentence)


def end_kind(kind: AlertKind, at: datetime) -> None:
    with alert_file().edit() as alerts:
        for alert in alerts.values():
            if alert.kind == kind:
                # Hide an expired alert. It ends only after its import into the database.
                alert.expires_at = min(at, alert.expires_at)


def claim_next(now: datetime) -> ClaimedAlert | None:
    """Claim and return an alert whose beginning requires a notice, or None if there is none."""
    with alert_file().edit() as alerts:
        for alert in alerts.values():
            if alert.sent_at is None and alert.next_try_at is not None and alert.next_try_at <= now:
                alert.next_try_at = now + RETRY_DELAYS[alert.tries] if alert.tries < len(RETRY_DELAYS) else None
                alert.tries += 1
                kind, sentence = AlertKind(alert.kind), decode_text(alert.sentence)
                return ClaimedAlert(
                    id=0,
                    kind=kind,
                    subject=alert.subject,
                    sentence=sentence,
                    first_seen_at=alert.first_seen_at,
                    ended_at=None,
                    times=1,
                    tries=alert.tries,
                )
    return None


def record_sent(claimed: ClaimedAlert, now: datetime) -> None:
    with alert_file().edit() as alerts:
        if stored := alerts.get((claimed.kind, claimed.subject)):
            stored.sent_at, stored.error = now, None


def record_failed(claimed: ClaimedAlert, reason: str) -> None:
    with alert_file().edit() as alerts:
        if stored := alerts.get((claimed.kind, claimed.subject)):
            stored.error = encode_text(reason)


# Every notice contains this word, because some chat services accept only messages with a configured keyword.
KEYWORD = "routing_admin"
ALERTS_PATH = "/alerts/"


def write_notice(alert: ClaimedAlert, language: str) -> Notice:
    entry, is_over, url = KINDS[alert.kind], alert.ended_at is not None, public_url(ALERTS_PATH)
    with override(language):
        title = _("%(kind)s: resolved") if is_over else _severity_line(entry.severity)
        period = _("%(from)s – %(to)s") if is_over else _("Since %(from)s")
        moments = {"from": _format_time(alert.first_seen_at), "to": _format_time(alert.ended_at or alert.first_seen_at)}
        lines = (
            f"[{KEYWORD}] " + title % {"kind": translate_sentence(entry.title)},
            translate_sentence(alert.sentence),
            period % moments,
            _("Look: %(url)s") % {"url": url},
            _("What to do: %(page)s") % {"page": public_url(document_url(entry.page))},
        )
    fields = {
        "event": "over" if is_over else "begun",
        "kind": alert.kind.value,
        "severity": entry.severity.value,
        "subject": alert.subject,
        "message": _translate_twice(alert.sentence),
        "since": alert.first_seen_at.isoformat(),
        "ended": alert.ended_at.isoformat() if alert.ended_at else None,
        "times": alert.times,
        "url": url,
        "page": entry.page,
    }
    return Notice(lines, fields)


def write_test(language: str, person: str, now: datetime) -> Notice:
    url = public_url(ALERTS_PATH)
    with override(language):
        lines = (
            f"[{KEYWORD}] " + _("Test: alerts arrive here."),
            _("Sent by %(name)s, %(at)s.") % {"name": person, "at": _format_time(now)},
            _("Look: %(url)s") % {"url": url},
        )
    return Notice(lines, {"event": "test", "sent_by": person, "since": now.isoformat(), "url": url})


def public_url(path: str) -> str:
    return f"{settings.PUBLIC_URL}{path}"


def _severity_line(severity: Severity) -> str:
    return _("Critical – %(kind)s") if severity is Severity.CRITICAL else _("Warning – %(kind)s")


def _translate_twice(sentence: str) -> Mapping[str, Any]:
    texts = {}
    for name, language in (("en", ENGLISH), ("zh", CHINESE)):
        with override(language):
            texts[name] = translate_sentence(sentence)
    return texts


def _format_time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
