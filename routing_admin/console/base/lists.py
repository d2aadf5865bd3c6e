"""Search, filter, sort and paginate a list by a query string such as `?q=chat&state=no_key&sort=-requests&page=2`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.core.paginator import Page, Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

Row = TypeVar("Row")
M = TypeVar("M", bound=Model)
ASCENDING, DESCENDING = "ascending", "descending"
"""Values of the attribute `aria-sort`."""
PAGE_SIZES = (25, 50, 100)
"""Choices for the number of rows per page. The first is the default."""
SIZE = "rows"
"""Name of the query parameter and of the cookie that set the number of rows per page."""


def page_size(request: HttpRequest) -> int:
    """Return the number of rows per page from the query string, else from the cookie, else the default."""
    return find_size(request.GET) or find_size(request.COOKIES) or PAGE_SIZES[0]


def find_size(values: Mapping[str, str]) -> int:
    """Return the number of rows per page in a query string or in cookies, or 0 if it is missing or invalid."""
    return next((size for size in PAGE_SIZES if values.get(SIZE) == str(size)), 0)


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """A column by which a list can be sorted. If `falling` is true, the first click sorts in descending order."""

    key: Callable[[Row], Any]
    falling: bool = False


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column by which the database can sort a list. For `falling`, see `Column`."""

    falling: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice(Generic[Row]):
    """A filter: its query parameter, its options with their labels, and a function that returns a row's options.

    `everything` is the label of the option that disables the filter.
    """

    name: str
    label: str | Promise
    everything: str | Promise
    values: Mapping[str, str | Promise]
    values_of: Callable[[Row], Collection[str]]


def choose_state(values: Mapping[str, str | Promise], values_of: Callable[[Row], Collection[str]]) -> Choice[Row]:
    return Choice(
        name="state",
        label=gettext_lazy("State"),
        everything=gettext_lazy("All states"),
        values=values,
        values_of=values_of,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterChip:
    """A link that applies a filter or, if `is_on` is true, removes it."""

    label: str | Promise
    url: str
    key: str | Promise = ""
    icon: str = ""
    is_on: bool = False


@dataclass(frozen=True, slots=True)
class Option:
    """A filter's option, and how many rows of the unfiltered list match it."""

    value: str
    label: str | Promise
    count: int


@dataclass(frozen=True, slots=True)
class Select:
    """A filter shown as a select element. `value` is the selected value, or empty."""

    name: str
    label: str | Promise
    everything: str | Promise
    options: tuple[Option, ...]
    value: str

    @property
    def is_offered(self) -> bool:
        return len(self.options) > 1 or bool(self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing(Generic[Row]):
    """One page of a list, with the current search, filters and sort order.

    `rows` are all matching rows in order, and `total` is the number of rows without filters. `sort` is a column's name,
    with a leading minus sign for descending order, or empty for the original order.
    """

    rows: Sequence[Row] | QuerySet[Any]
    page: Page[Row]
    total: int
    q: str
    sort: str
    is_sorted: bool
    selects: tuple[Select, ...]
    columns: Mapping[str, Column[Row]] | Mapping[str, StoredColumn]

    @property
    def count(self) -> int:
        """Return the number of rows that match the search and the filters."""
        return self.page.paginator.count

    @property
    def is_filtered(self) -> bool:
        return bool(self.q) or any(select.value for select in self.selects)

    @property
    def filters(self) -> dict[str, str]:
        """Return the search and the selected filters as query parameters, for a form that acts on all matching rows."""
        chosen = {"q": self.q, **{select.name: select.value for select in self.selects}}
        return {name: value for name, value in chosen.items() if value}

    def sort_order(self, column: str) -> str:
        """Return `ascending` or `descending` if the list is sorted by this column, else an empty string."""
        if self.sort.removeprefix("-") != column:
            return ""
        return DESCENDING if self.sort.startswith("-") else ASCENDING

    def next_sort(self, column: str) -> str:
        """Return the `sort` parameter for the link in the column's heading."""
        order = self.sort_order(column)
        falls = order == ASCENDING or (not order and self.columns[column].falling)
        return f"-{column}" if falls else column


def arrange(
    rows: Sequence[Row],
    query: Mapping[str, str],
    *,
    texts: Callable[[Row], Iterable[str]],
    columns: Mapping[str, Column[Row]],
    choices: Sequence[Choice[Row]] = (),
    sort: str = "",
    per_page: int,
) -> Listing[Row]:
    """Return the page of a list that a query string selects. Unknown columns, values and pages are ignored.

    A row matches the search if one of its `texts` contains the search text, ignoring case. `sort` applies if the query
    string names no column.
    """
    q = query.get("q", "").strip()
    selects = tuple(_select(choice, rows, query.get(choice.name, "").strip()) for choice in choices)
    found = list(rows)
    if q:
        words = q.casefold()
        found = [row for row in found if any(words in text.casefold() for text in texts(row))]
    for choice, select in zip(choices, selects, strict=True):
        if select.value:
            found = [row for row in found if select.value in choice.values_of(row)]
    chosen, is_sorted = _choose_sort(query, columns, sort)
    if chosen:
        found.sort(key=columns[chosen.removeprefix("-")].key, reverse=chosen.startswith("-"))
    return Listing(
        rows=found,
        page=Paginator(found, per_page).get_page(query.get("page")),
        total=len(rows),
        q=q,
        sort=chosen,
        is_sorted=is_sorted,
        selects=selects,
        columns=columns,
    )


def arrange_stored(
    select: Callable[[str], QuerySet[M]],
    query: Mapping[str, str],
    *,
    columns: Mapping[str, StoredColumn],
    selects: Sequence[Select],
    total: int,
    sort: str,
    per_page: int,
) -> Listing[M]:
    """Return the page that a query string selects from a list that the database sorts.

    `select` takes a sort order and returns the rows that match the search and the chosen values of `selects`.
    """
    chosen, is_sorted = _choose_sort(query, columns, sort)
    rows = select(chosen)
    return Listing(
        rows=rows,
        page=Paginator(rows, per_page).get_page(query.get("page")),
        total=total,
        q=query.get("q", "").strip(),
        sort=chosen,
        is_sorted=is_sorted,
        selects=tuple(selects),
        columns=columns,
    )


def _choose_sort(query: Mapping[str, str], columns: Container[str], usual: str) -> tuple[str, bool]:
    wanted = query.get("sort", "")
    is_sorted = wanted.removeprefix("-") in columns
    return wanted if is_sorted else usual, is_sorted


def _select(choice: Choice[Row], rows: Iterable[Row], value: str) -> Select:
    counts = Counter(value for row in rows for value in choice.values_of(row))
    options = tuple(Option(name, label, counts[name]) for name, label in choice.values.items())
    return Select(choice.name, choice.label, choice.everything, options, value if value in choice.values else "")


def natural_key(name: str) -> list[tuple[int, str]]:
    """Return a sort key that puts `alias-2` before `alias-10`."""
    parts = re.split(r"(\d+)", name.casefold())
    return [(int(part), "") if position % 2 else (0, part) for position, part in enumerate(parts)]
