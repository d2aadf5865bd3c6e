"""Where a new row stands among those that people keep in an order."""

from __future__ import annotations

from django.db.models import Max, Model


def next_position(model: type[Model]) -> int:
    """The position after the last row's."""
    last = model._default_manager.aggregate(last=Max("position"))["last"]
    return 0 if last is None else int(last) + 1
