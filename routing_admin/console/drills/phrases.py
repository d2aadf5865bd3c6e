"""Describe the result of a fire drill in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from capabilities.sentences import join_words
from routing_admin.request_log.drill_results import DrillResult


def describe_window(started_at: datetime, ends_at: datetime) -> str:
    """Return the start and the end in the installation's time zone, such as `14:05:00–14:06:00`."""
    start, end = timezone.localtime(started_at), timezone.localtime(ends_at)
    return f"{start:%H:%M:%S}–{end:%H:%M:%S}"


def describe_result(result: DrillResult) -> list[str]:
    if not result.met:
        return [_("No call was affected.")]
    sentences = [
        ngettext(("%(count)s call was affected."), "%(count)s calls were affected.", result.met) % {"count": result.met}
    ]
    if result.answered:
        names = join_words([f"{name} ({count})" for name, count in result.answered])
        singular, plural = "%(count)s was answered by %(names)s.", "%(count)s were answered by %(names)s."
        sentences.append(ngettext(singular, plural, result.answers) % {"count": result.answers, "names": names})
    if result.failed:
        sentences.append(ngettext("%(count)s failed.", "%(count)s failed.", result.failed) % {"count": result.failed})
    if result.others:
        singular, plural = "%(count)s was left or refused.", "%(count)s were left or refused."
        sentences.append(ngettext(singular, plural, result.others) % {"count": result.others})
    if result.delay_ms is not None:
        sentences.append(_describe_delay(round(result.delay_ms)))
    return sentences


def _describe_delay(ms: int) -> str:
    if ms < 0:
        return _("Median: %(ms)s ms faster than the provider's own answers in the hour before.") % {"ms": -ms}
    return _("Median: %(ms)s ms slower than the provider's own answers in the hour before.") % {"ms": ms}


def describe_noted_end(details: Mapping[str, Any]) -> str:
    """Return sentences on a drill from the details of its audit event, or an empty string for other details."""
    try:
        window = describe_window(datetime.fromisoformat(details["from"]), datetime.fromisoformat(details["until"]))
        delay = details["delayMs"]
        answered = tuple(details["answered"].items())
        met, failed = details["met"], details["failed"]
        others = met - failed - sum(count for _, count in answered)
        result = DrillResult(met, answered, failed, (), others, delay)
    except (KeyError, TypeError, ValueError, AttributeError):
        return ""
    return " ".join([window, *describe_result(result)])
