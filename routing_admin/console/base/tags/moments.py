"""Format times relative to a given moment."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

MINUTE, HOUR = 60, 3600


def exact(moment: datetime) -> str:
    """Return a time as `2026-11-20 14:05:07 UTC`, in the installation's time zone."""
    return timezone.localtime(moment).strftime("%Y-%m-%d %H:%M:%S %Z")


def relative(moment: datetime, now: datetime) -> str:
    """Return a time as `just now`, `3 minutes ago`, `yesterday 14:05`, `in 5 minutes`, or its date."""
    seconds = int((now - moment).total_seconds())
    # A time less than half a minute ahead counts as now.
    if seconds < -MINUTE // 2:
        return _ahead(moment, -seconds)
    if seconds < MINUTE:
        return _("just now")
    if seconds < HOUR:
        minutes = seconds // MINUTE
        return ngettext("%(count)s minute ago", "%(count)s minutes ago", minutes) % {"count": minutes}
    local, today = timezone.localtime(moment), timezone.localtime(now).date()
    if local.date() == today:
        hours = seconds // HOUR
        return ngettext("%(count)s hour ago", "%(count)s hours ago", hours) % {"count": hours}
    if local.date() == today - timedelta(days=1):
        return _("yesterday %(time)s") % {"time": local.strftime("%H:%M")}
    return local.strftime("%Y-%m-%d %H:%M")


def _ahead(moment: datetime, seconds: int) -> str:
    if seconds < HOUR:
        minutes = max(1, round(seconds / MINUTE))
        return ngettext("in %(count)s minute", "in %(count)s minutes", minutes) % {"count": minutes}
    if seconds < 24 * HOUR:
        hours = round(seconds / HOUR)
        return ngettext("in %(count)s hour", "in %(count)s hours", hours) % {"count": hours}
    if seconds < 60 * 24 * HOUR:
        days = round(seconds / (24 * HOUR))
        return ngettext("in %(count)s day", "in %(count)s days", days) % {"count": days}
    return timezone.localtime(moment).strftime("%Y-%m-%d")
