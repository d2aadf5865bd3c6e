"""Pages of a list that is ordered by a descending whole number: no page shifts while rows are added."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from django.db.models import Max, Model, QuerySet

PAGE = 30
"""Rows of a page."""

M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class Place:
    """Which page is asked for: the one that ends before a number, or begins after one; the newest without either."""

    before: int | None = None
    after: int | None = None


@dataclass(frozen=True, slots=True)
class KeysetPage(Generic[M]):
    """Rows, newest first, and whether there are older and newer ones."""

    rows: tuple[M, ...]
    has_older: bool
    has_newer: bool


def read_page(rows: QuerySet[M], key: str, place: Place) -> KeysetPage[M]:
    """The page at that place of these rows, which `key` orders; one query."""
    if place.after is not None:
        found = list(rows.filter(**{f"{key}__gt": place.after}).order_by(key)[: PAGE + 1])
        return KeysetPage(tuple(found[:PAGE][::-1]), True, len(found) > PAGE)
    narrowed = rows.filter(**{f"{key}__lt": place.before}) if place.before is not None else rows
    found = list(narrowed.order_by(f"-{key}")[: PAGE + 1])
    return KeysetPage(tuple(found[:PAGE]), len(found) > PAGE, place.before is not None)


# Where a new row stands among those that people keep in an order.


def next_position(model: type[Model]) -> int:
    """The position after the last row's."""
    last = model._default_manager.aggregate(last=Max("position"))["last"]
    return 0 if last is None else int(last) + 1
