"""What an action that changes several rows returns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BulkChange:
    """What an action on several rows did: how many it changed, and the revision it made (None when nothing changed)."""

    count: int
    revision: int | None = None
