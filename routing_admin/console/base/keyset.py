"""Keyset pagination by a descending integer, so that pages do not shift when rows are added."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from django.db.models import Max, Model, QuerySet

M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class PageCursor:
    """A position in the list: the rows before or after a number or, if neither is given, the newest rows."""

    before: int | None = None
    after: int | None = None


@dataclass(frozen=True, slots=True)
class KeysetPage(Generic[M]):
    rows: tuple[M, ...]
    has_older: bool
    has_newer: bool


def read_page(rows: QuerySet[M], key: str, cursor: PageCursor, size: int) -> KeysetPage[M]:
    """Return the page at the cursor, in descending order of `key`. This takes one query."""
    if cursor.after is not None:
        found = list(rows.filter(**{f"{key}__gt": cursor.after}).order_by(key)[: size + 1])
        # The query reads in ascending order, so the rows must be reversed.
        return KeysetPage(tuple(found[:size][::-1]), True, len(found) > size)
    selected = rows.filter(**{f"{key}__lt": cursor.before}) if cursor.before is not None else rows
    found = list(selected.order_by(f"-{key}")[: size + 1])
    return KeysetPage(tuple(found[:size]), len(found) > size, cursor.before is not None)


def next_position(model: type[Model]) -> int:
    last = model._default_manager.aggregate(last=Max("position"))["last"]
    return 0 if last is None else int(last) + 1
