"""The fire drill in its rows: which one goes on, or is over without anybody having noted it."""

from __future__ import annotations

from routing_admin.core.fallback.scripts import DrillWindow
from routing_admin.models import FireDrill


def find_open_drill() -> DrillWindow | None:
    """The newest drill whose end is not noted yet; None where there is none."""
    row = FireDrill.objects.filter(noted_at=None).order_by("-id").first()
    return None if row is None else window_of(row)


def window_of(row: FireDrill) -> DrillWindow:
    """A row as calls and pages know it."""
    return DrillWindow(
        number=row.pk,
        provider=row.provider,
        actor=row.actor,
        began=row.started_at.timestamp(),
        ends=row.ends_at.timestamp(),
    )
