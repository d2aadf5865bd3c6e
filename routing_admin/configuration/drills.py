"""Read fire drills from their rows."""

from __future__ import annotations

from routing_admin.core.fallback.scripts import DrillWindow
from routing_admin.models import FireDrill


def find_open_drill() -> DrillWindow | None:
    """Return the newest drill whose end is not in the audit log yet, or None."""
    row = FireDrill.objects.filter(noted_at=None).order_by("-id").first()
    return None if row is None else window_of(row)


def window_of(row: FireDrill) -> DrillWindow:
    return DrillWindow(
        number=row.pk,
        provider=row.provider,
        actor=row.actor,
        began=row.started_at.timestamp(),
        ends=row.ends_at.timestamp(),
    )
