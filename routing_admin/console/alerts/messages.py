"""Texts of notices to a chat: lines in its language, and fields for programs in English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import override

from capabilities.sentences import translate_sentence
from routing_admin.console.alerts.actions import ClaimedAlert
from routing_admin.core.alerts.kinds import KINDS, Severity
from routing_admin.core.alerts.shapes import Notice
from routing_admin.core.alerts.webhook import CHINESE, ENGLISH

# Part of every text. Some chats accept only messages with a keyword, and this can be set as the keyword.
NAME = "routing_admin"
PAGE = "/alerts/"


def write_notice(alert: ClaimedAlert, language: str) -> Notice:
    entry, is_over, url = KINDS[alert.kind], alert.ended_at is not None, page_url()
    with override(language):
        title = _("%(kind)s: resolved") if is_over else _severity_line(entry.severity)
        period = _("%(from)s – %(to)s") if is_over else _("Since %(from)s")
        moments = {"from": _moment(alert.first_seen_at), "to": _moment(alert.ended_at or alert.first_seen_at)}
        lines = (
            f"[{NAME}] " + title % {"kind": translate_sentence(entry.title)},
            translate_sentence(alert.sentence),
            period % moments,
            _("Look: %(url)s") % {"url": url},
            _("What to do: %(page)s") % {"page": entry.page},
        )
    fields = {
        "event": "over" if is_over else "begun",
        "kind": alert.kind.value,
        "severity": entry.severity.value,
        "subject": alert.subject,
        "message": _in_both(alert.sentence),
        "since": alert.first_seen_at.isoformat(),
        "ended": alert.ended_at.isoformat() if alert.ended_at else None,
        "times": alert.times,
        "url": url,
        "page": entry.page,
    }
    return Notice(lines, fields)


def write_test(language: str, person: str, now: datetime) -> Notice:
    url = page_url()
    with override(language):
        lines = (
            f"[{NAME}] " + _("Test: alerts arrive here."),
            _("Sent by %(name)s, %(at)s.") % {"name": person, "at": _moment(now)},
            _("Look: %(url)s") % {"url": url},
        )
    return Notice(lines, {"event": "test", "sent_by": person, "since": now.isoformat(), "url": url})


def page_url() -> str:
    return f"{settings.PUBLIC_URL.rstrip('/')}{PAGE}"


def _severity_line(severity: Severity) -> str:
    return _("Critical – %(kind)s") if severity is Severity.CRITICAL else _("Warning – %(kind)s")


def _in_both(sentence: str) -> Mapping[str, Any]:
    texts = {}
    for name, language in (("en", ENGLISH), ("zh", CHINESE)):
        with override(language):
            texts[name] = translate_sentence(sentence)
    return texts


def _moment(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
