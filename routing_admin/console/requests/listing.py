"""The list of requests, with selectable columns and values that are links to filters.

Rows are rendered in Python, because templates would take three times as long for the 450 cells of a page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote as quote_path
from urllib.parse import quote_plus

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from capabilities.core.delivery.decision import DeliveryForm
from capabilities.core.prices import money_text
from capabilities.labels import BADGES, KINDS, TYPE_ICONS
from capabilities.quantities import duration_text
from routing_admin.console.base.tags.ui import badge, chain, chip, icon, short_name, times
from routing_admin.console.requests.story import SHOWN_BADGES, build_row
from routing_admin.core.fallback.endings import RequestEnding
from routing_admin.models import RequestLog
from routing_admin.request_log.search_words import Search, quote
from routing_admin.request_log.sent_files import read_adaptation

COLUMNS_COOKIE = "request_columns"
NOTHING = SafeString("")
LINE_CHARS = 22
"""Longer names may be cut off in a narrow column, so they are repeated in the cell's title."""


class Links:
    """Builds links that filter the list by a value. The beginning of the URL is built only once per search key."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._starts: dict[str, str] = {}

    def url(self, key: str, value: str) -> SafeString:
        if key not in self._starts:
            rest = self._search.having(key, "").to_text()
            self._starts[key] = f"?q={quote_plus(f'{rest} {key}:' if rest else f'{key}:')}"
        return SafeString(self._starts[key] + quote_plus(quote(value)))

    def name(self, key: str, value: str) -> SafeString:
        """Return a name as a link that filters by it, or an empty string if there is no name."""
        if not value:
            return NOTHING
        title = format_html(' title="{}"', value) if len(value) > LINE_CHARS else NOTHING
        return format_html('<a class="f" href="{}"{}>{}</a>', self.url(key, value), title, short_name(value))


@dataclass(frozen=True, slots=True)
class Column:
    """A column that can be hidden. `write` renders the column's cell in a row."""

    name: str
    label: str | Promise
    write: Callable[[RequestLog, Links], SafeString | str]
    css: SafeString = NOTHING
    is_usual: bool = True


@dataclass(frozen=True, slots=True)
class Row:
    """A rendered row of the list: the start time, which links to the request's page, and the selected columns."""

    pk: str
    html: SafeString


def build_rows(rows: Sequence[RequestLog], search: Search, names: Sequence[str], now: datetime) -> list[Row]:
    links = Links(search)
    columns = [column for column in COLUMNS if column.name in names]
    # The URL is reversed only once, because the URLs of the rows differ only in one part.
    address = reverse("request", args=["-"])
    start, _dash, end = address.rpartition("-")
    return [Row(row.pk, _row(row, f"{start}{quote_path(row.pk, safe='~')}{end}", columns, links, now)) for row in rows]


def _row(row: RequestLog, url: str, columns: Sequence[Column], links: Links, now: datetime) -> SafeString:
    cells = format_html_join(
        "", '<td class="{}">{}</td>', ((column.css, column.write(row, links)) for column in columns)
    )
    return format_html('<tr><th scope="row">{}</th>{}</tr>', times(row.started_at, now, SafeString(url)), cells)


def _agent(row: RequestLog, links: Links) -> SafeString:
    return links.name("agent", row.agent)


def _asked(row: RequestLog, links: Links) -> SafeString:
    entry = build_row(row)
    asked, route, css = entry["target"], NOTHING, "xs muted"
    if asked.kind == "route" and not asked.route:
        # Most requests ask for a route, so the word "route" would only waste a line in every row.
        name, css = links.name("task", row.task_type), "xs muted" if entry["operation"] else "sr"
    elif asked.kind or asked.name != row.pk:
        name, route = short_name(asked.name), links.name("task", asked.route)
    else:
        name = format_html('<span class="muted">{}</span>', _("no model named"))
    default = NOTHING if row.matched else format_html(' <span class="badge">{}</span>', _("default route"))
    kind = f"{entry['operation']} {asked.label}".strip()
    return format_html(
        '{} <span class="{}">{} {}</span>{}<span class="sub narrow">{}</span>',
        *(name, css, kind, route, default, short_name(row.agent)),
    )


def _answered(row: RequestLog, links: Links) -> SafeString:
    provider = links.name("provider", row.provider)
    return format_html('{}<span class="sub">{}</span>', links.name("model", row.model), provider)


def _attempts(row: RequestLog, links: Links) -> SafeString:
    entry = build_row(row)
    parts = NOTHING
    if entry["chain"]:
        parts = chain(entry["chain"])
    elif row.ending != RequestEnding.CANCELLED:
        parts = chip(row.outcome, entry["tone"])
    if row.ending != RequestEnding.ANSWERED:
        state = badge(f"call_{row.ending}")
        parts = format_html('{}<a href="{}">{}</a>', parts, links.url("status", row.ending), state)
    return format_html('<div class="row tight">{}</div>', parts)


def _files(row: RequestLog, links: Links) -> SafeString:
    return SafeString(" ".join(_list_files(row.adaptation))) if row.adaptation else NOTHING


def _list_files(adaptation: str) -> Iterator[SafeString]:
    for slot, form, count in read_adaptation(adaptation):
        tone, _icon, label = BADGES[SHOWN_BADGES[form.value]]
        kind = "document" if slot == "file" else slot
        text = _("%(kind)s: %(form)s") % {"kind": KINDS.get(kind, kind), "form": label}
        yield format_html(
            '<span class="nowrap ink {}" title="{}">{}{}<span class="sr">{}</span></span>',
            *("" if form is DeliveryForm.AS_IS else tone, text, icon(TYPE_ICONS.get(kind, "doc")), count, text),
        )


def _tokens(row: RequestLog, links: Links) -> SafeString:
    reads, writes = row.prompt_tokens, row.completion_tokens
    if reads is None and writes is None:
        return NOTHING
    return format_html(
        '<span title="{}">{}</span><span class="sub" title="{}">{}</span>',
        *(_("Input tokens"), _number(reads), _("Output tokens"), _number(writes)),
    )


def _number(count: int | None) -> SafeString:
    return SafeString("–" if count is None else f"{count:,}")


def _cost(row: RequestLog, links: Links) -> str:
    return "" if row.cost_nanos is None else money_text(row.cost_nanos, row.currency)


def _first(row: RequestLog, links: Links) -> str:
    return "" if row.first_content_ms is None else duration_text(row.first_content_ms)


def _duration(row: RequestLog, links: Links) -> str:
    return duration_text(row.duration_ms)


COLUMNS = (
    Column("agent", gettext_lazy("Agent"), _agent, SafeString("p2 fit")),
    Column("asked", gettext_lazy("Asked for"), _asked, SafeString("fit")),
    Column("answered", gettext_lazy("Answered by"), _answered, SafeString("p2 fit")),
    Column("attempts", gettext_lazy("Attempts"), _attempts),
    Column("files", gettext_lazy("Files"), _files, SafeString("p3")),
    Column("tokens", gettext_lazy("Tokens"), _tokens, SafeString("num p3")),
    Column("cost", gettext_lazy("Cost"), _cost, SafeString("num p3")),
    Column("first", gettext_lazy("First content"), _first, SafeString("num p3"), is_usual=False),
    Column("duration", gettext_lazy("Duration"), _duration, SafeString("num p2")),
)
USUAL = tuple(column.name for column in COLUMNS if column.is_usual)


def chosen_columns(stored: str | None) -> tuple[str, ...]:
    """Return the column names in the cookie's value, or the default columns if there is no cookie."""
    return order_columns(stored.split(".")) if stored else USUAL


def order_columns(names: Iterable[str]) -> tuple[str, ...]:
    """Return the given names without those that are not columns, in the order of the table."""
    known = set(names)
    return tuple(column.name for column in COLUMNS if column.name in known)
