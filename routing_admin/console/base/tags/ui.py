"""Template tags for all pages, in a builtin library that needs no `{% load %}`.

templates/components/README.md has examples.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from django import template
from django.contrib.messages.storage.base import Message
from django.core.paginator import Page
from django.forms import BaseForm, BoundField, CheckboxInput, Textarea
from django.forms.utils import flatatt
from django.http import HttpRequest
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from capabilities import labels
from capabilities.core.consequence import Consequence, group_by_cause
from capabilities.core.prices import money_text
from capabilities.core.side_by_side import Parts
from capabilities.core.validity import judge_validity
from capabilities.labels import capability_label, content_label
from capabilities.quantities import duration_text, size_text
from capabilities.sentences import join_sentences, join_words, translate_sentence
from routing_admin.console.base.lists import DESCENDING, PAGE_SIZES, SIZE, Listing
from routing_admin.console.base.saving import list_problems
from routing_admin.console.base.tags import charting, drawing, highlight, toasts
from routing_admin.request_log.search import find_last_use
from routing_admin.request_log.search_words import Search

MINUTE, HOUR = 60, 3600


def exact(moment: datetime) -> str:
    """Return a time as `2026-11-20 14:05:07 UTC`, in the installation's time zone."""
    return timezone.localtime(moment).strftime("%Y-%m-%d %H:%M:%S %Z")


def relative(moment: datetime, now: datetime) -> str:
    """Return a time as `just now`, `3 minutes ago`, `yesterday 14:05`, `in 5 minutes`, or its date."""
    seconds = int((now - moment).total_seconds())
    # A time that is up to half a minute in the future counts as now.
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


CONCEPTS_COOKIE = "concepts"
"""Cookie that is set when the user dismisses the explanation of the basic concepts."""

register = template.Library()
register.filter("join_words", join_words)
register.filter("translated", translate_sentence)
register.filter("capability_label", capability_label)
register.filter("content_word", content_label)
register.filter("actor_label", labels.actor_label)
register.filter("role_label", labels.role_label)
register.filter("exact", exact)


@register.simple_block_tag
def sentences(content: str) -> SafeString:
    """Join the block's sentences, which are one per line. Spaces separate them if the page's language uses spaces."""
    return SafeString(join_sentences(map(str.strip, content.splitlines())))


@register.simple_tag
@lru_cache(maxsize=200)
def icon(name: str) -> SafeString:
    # The icon is hidden from screen readers, because text always accompanies it.
    return format_html('<svg class="icon" aria-hidden="true"><use href="{}#i-{}"/></svg>', static("icons.svg"), name)


@register.simple_tag
def type_icon(name: str) -> SafeString:
    return icon(labels.TYPE_ICONS.get(name, "probe"))


@register.simple_tag
def badge(status: str, label: str = "", tone: str | None = None, icon_name: str = "") -> SafeString:
    """Render a status with its icon, text and colour from `labels.BADGES`.

    An unknown status is rendered as plain text.
    """
    own_tone, own_icon, own_label = labels.BADGES.get(status, ("", "info", status))
    shown_tone = own_tone if tone is None else tone
    return format_html(
        '<span class="badge {}">{}{}</span>', shown_tone, icon(icon_name or own_icon), label or own_label
    )


@register.inclusion_tag("components/validity.html")
def validity(row: Any, used_at: datetime | None) -> dict[str, Any]:
    """Render whether a row with `revoked_at` and `expires_at` is valid, and when it expires."""
    state = judge_validity(revoked_at=row.revoked_at, expires_at=row.expires_at, used_at=used_at, now=timezone.now())
    return {"state": state, "row": row}


@register.simple_tag
def chip(code: object, tone: str = "") -> SafeString:
    return format_html('<span class="chip {}">{}</span>', tone, code)


@register.simple_tag
def chain(attempts: Iterable[Mapping[str, Any]]) -> SafeString:
    """Render attempts as chips connected by arrows.

    Each attempt has `code`, `tone` and, for screen readers, `name`. A repeated attempt also has `tries`.
    """
    items = (
        (attempt.get("name", ""), chip(attempt["code"], attempt.get("tone", "")), _times(attempt.get("tries", 1)))
        for attempt in attempts
    )
    body = format_html_join("", '<li><span class="sr">{}: </span>{}{}</li>', items)
    return format_html('<ol class="chain">{}</ol>', body)


def _times(count: int) -> SafeString | str:
    return format_html('<span class="xs muted">×{}</span>', count) if count > 1 else ""


@register.filter
def soft_breaks(name: str) -> SafeString:
    """Allow line breaks in an id after a period, colon, slash or underscore, as browsers do after a hyphen.

    A number such as `3.2` is not broken.
    """
    # HTML entities contain none of these characters, so the breaks can be inserted after escaping.
    return SafeString(re.sub(r"[:/_](?!\Z)|\.(?!\d|\Z)", r"\g<0><wbr>", escape(name)))


LONG_NAME, NAME_START, NAME_END = 32, 16, 6
"""Names longer than the first number are shortened; the others are how many characters to keep at the start and the
end.
"""
LONG_WORDS = re.compile(r"(?=.{,40}\Z)[^-:/_.]{,24}(?:[-:/_.][^-:/_.]{,24})*\Z")
"""Pattern of names that consist of short words. On two lines they fit narrow columns, so they are not shortened."""


@register.filter
def short_name(name: object) -> SafeString:
    """Shorten a long name in the middle, and allow line breaks only at its separators.

    The middle is hidden only by the stylesheet, so copying, searching and screen readers use the whole name.
    """
    text = str(name)
    if len(text) <= LONG_NAME or LONG_WORDS.match(text):
        return format_html('<span class="name">{}</span>', soft_breaks(text))
    start, middle, end = text[:NAME_START], text[NAME_START:-NAME_END], text[-NAME_END:]
    return format_html(
        '<span class="name" title="{}">{}<span class="mid">{}</span>{}</span>',
        *(text, soft_breaks(start), middle, soft_breaks(end)),
    )


LONG_WORD = re.compile(rf"([\w.:@-]{{{LONG_NAME + 1},}})", re.ASCII)


@register.filter
def short_names(sentence: str) -> SafeString:
    """Shorten long names in a sentence as `short_name` does. A slash separates two names."""
    words = LONG_WORD.split(sentence)
    return format_html_join("", "{}", ((short_name(word) if place % 2 else word,) for place, word in enumerate(words)))


@register.inclusion_tag("components/sort_head.html", takes_context=True)
def sort_head(context: template.Context, column: str, label: str, css: str = "", hint: str = "") -> dict[str, Any]:
    """Render the heading of a column by which `listing` in the context can be sorted.

    A second click reverses the order. `hint` follows the label, for example the time zone of a column of times.
    """
    listing: Listing[Any] = context["listing"]
    order = listing.sort_order(column)
    url = query_with(context, sort=listing.next_sort(column))
    return {
        "order": order,
        "url": url,
        "label": label,
        "css": css,
        "hint": hint,
        "icon_name": "down" if order == DESCENDING else "up",
    }


@register.filter
def join_labels(names: Iterable[str]) -> str:
    return join_words(capability_label(name) for name in names)


@register.filter
def join_contents(names: Iterable[str]) -> str:
    return join_words(content_label(name) for name in names)


def _capability(name: str, side: str) -> SafeString:
    label = capability_label(name, side)
    if label.replace(" ", "_") == name:
        return format_html("<li>{}{}</li>", type_icon(name), label)
    return format_html('<li>{}{} <code class="xs">{}</code></li>', type_icon(name), label, name)


@register.simple_tag
def cap_icons(names: Iterable[str], side: str = "input") -> SafeString:
    """Render what a model reads or writes as icons, with tooltips and labels for screen readers."""
    return _cap_icons(tuple(names), side, get_language())


@lru_cache(maxsize=200)
def _cap_icons(names: tuple[str, ...], side: str, _language: str | None) -> SafeString:
    # The result is cached, because lists repeat the same few sets of capabilities many times.
    labels_of = ((name, capability_label(name, side)) for name in names)
    items = ((label, type_icon(name), label) for name, label in labels_of)
    body = format_html_join("", '<li title="{}">{}<span class="sr">{}</span></li>', items)
    return format_html('<ul class="caps nowrap">{}</ul>', body)


@register.simple_tag
def caps(names: Iterable[str], side: str = "input") -> SafeString:
    items = format_html_join("", "{}", ((_capability(name, side),) for name in names))
    return format_html('<ul class="caps">{}</ul>', items)


@register.simple_tag
def ago(moment: datetime | None, now: datetime | None = None) -> SafeString | str:
    """Render a relative time with the exact time as its title, or nothing for None."""
    if moment is None:
        return ""
    return _time(moment, relative(moment, now or timezone.now()))


@register.simple_tag
def times(moment: datetime | None, now: datetime | None = None, url: str = "") -> SafeString | str:
    """Render a relative time, linked if a URL is given, above the exact time. Render nothing for None.

    For a time before yesterday, only the exact time is rendered, because the relative time would be a date too.
    """
    if moment is None:
        return ""
    now = now or timezone.now()
    local, today = timezone.localtime(moment), timezone.localtime(now)
    text = SafeString(f"{local:%m-%d %H:%M:%S}" if local.year == today.year else f"{local:%Y-%m-%d %H:%M:%S}")
    is_recent = today.date() - local.date() < timedelta(days=2)
    first = SafeString(_time(moment, relative(moment, now) if is_recent else text))
    return format_html(
        "{}{}",
        format_html('<a class="nowrap" href="{}">{}</a>', url, first) if url else first,
        format_html('<span class="sub nowrap">{}</span>', text) if is_recent else "",
    )


def _time(moment: datetime, text: str) -> SafeString:
    return format_html('<time datetime="{}" title="{}">{}</time>', moment.isoformat(), exact(moment), text)


@register.simple_tag
def zone() -> str:
    return timezone.get_current_timezone_name()


@register.filter
def size(count: int | None) -> str:
    return "" if count is None else size_text(count)


@register.filter
def code_spans(text: str) -> SafeString:
    """Render text between backticks as code."""
    parts = enumerate(text.split("`"))
    return format_html_join(
        "", "{}", ((format_html("<code>{}</code>", part) if place % 2 else part,) for place, part in parts)
    )


@register.inclusion_tag("requests/over_time.html")
def over_time(**terms: str) -> dict[str, Any]:
    """Render a section with a chart of the requests that match these search terms, such as `agent=row.agent_id`.

    Without terms, the chart covers a day. With terms, it covers a week, or a month if the week has no requests, and the
    section is collapsed, because the page's other content matters more. If there are no requests, the section says so.
    This takes one query.
    """
    search, now = Search(tuple(terms.items())), timezone.now()
    used_at = find_last_use(search) if terms else now
    age = now - used_at if used_at else timedelta.max
    since = "1d" if not terms else "7d" if age < timedelta(days=7) else "30d"
    return {
        "search": search.to_text(),
        "drawn": search.having("since", since).to_text(),
        "is_folded": bool(terms),
        "is_empty": age >= timedelta(days=30),
        "used_at": used_at,
    }


@register.filter
def thousands(count: int) -> str:
    return f"{count:,}"


@register.filter
def money(nanos: int | None, currency: str) -> str:
    """Format an amount in billionths of a currency unit: `12.34 USD`, or `0.0035 USD` if it is small.

    None becomes an empty string.
    """
    return "" if nanos is None else money_text(nanos, currency)


@register.filter
def duration(milliseconds: float | None) -> str:
    """Format milliseconds as `35 ms`, `1.24 s` or `2 min 5 s`, and None as an empty string."""
    return "" if milliseconds is None else duration_text(milliseconds)


@register.inclusion_tag("components/code.html")
def code_block(value: Any, label: str = "", element_id: str = "", lang: str = "") -> dict[str, Any]:
    """Render a string unchanged, or any other value as highlighted JSON. If an id is given, add a copy button."""
    text = highlight.json_text(value)
    return {"body": highlight.highlight_json(text), "label": label, "id": element_id, "lang": lang}


@register.inclusion_tag("components/spark.html")
def spark(values: Sequence[float], label: str = "", tone: str = "") -> dict[str, str]:
    points = drawing.spark_points(values)
    return {"points": points, "area": f"0,32 {points} 100,32", "label": label, "tone": tone}


@register.inclusion_tag("components/split.html")
def split(counts: Mapping[str, int], label: str = "") -> dict[str, Any]:
    return {"boxes": drawing.split_boxes(counts), "label": label}


@register.inclusion_tag("components/waterfall.html")
def waterfall(tracks: Sequence[drawing.Track], total: float | None = None, label: str = "") -> dict[str, Any]:
    return {"drawing": drawing.waterfall(tracks, total), "label": label}


CHART_HEIGHT = 168
"""Height of a chart's bars in pixels."""


@register.inclusion_tag("components/chart.html")
def chart(chart: charting.Chart, height: int = CHART_HEIGHT) -> dict[str, Any]:
    return {"drawing": charting.draw(chart, height)}


# Columns and rows are joined as plain strings, because a template would take ten times as long for hundreds of values.
# Escaped texts are cached, because most of them repeat: series names and zeros.

_escape = lru_cache(maxsize=2048)(html.escape)


@register.filter
def chart_columns(columns: Iterable[charting.Column]) -> SafeString:
    """Render each bucket as a link that shows its values on hover and on focus."""
    return SafeString("".join(map(_chart_column, columns)))


def _chart_column(column: charting.Column) -> str:
    parts = "".join(
        f'<span class="{part.tone}">{_escape(part.name)} <b>{_escape(part.text)}</b></span>' for part in column.parts
    )
    names = [name for name, has in (("far", column.is_far), ("part", column.bucket.is_partial)) if has]
    attribute = f' class="{" ".join(names)}"' if names else ""
    total = _("total %(number)s") % {"number": column.total} if column.total else ""
    total = f"<span>{_escape(total)}</span>" if total else ""
    tip = f'<span class="tip"><b>{column.title}</b>{parts}{total}</span>'
    return f'<li{attribute}><a href="{_escape(column.bucket.url)}">{tip}</a>{_event(column.bucket.mark)}</li>'


def _event(mark: charting.Mark | None) -> str:
    # The link contains no text, so its title serves as the accessible name.
    return f'<a class="event" href="{_escape(mark.url)}" title="{_escape(mark.text)}"></a>' if mark else ""


@register.filter
def chart_rows(columns: Iterable[charting.Column]) -> SafeString:
    return SafeString("".join(map(_chart_row, columns)))


def _chart_row(column: charting.Column) -> str:
    texts = [*column.cells, *filter(None, (column.total, column.before))]
    cells = "".join(f'<td class="num">{_escape(text)}</td>' for text in texts)
    return f'<tr><th scope="row"><a href="{_escape(column.bucket.url)}">{column.title}</a></th>{cells}</tr>'


@register.inclusion_tag("components/field.html")
def field(bound: BoundField, hint: str = "", wide: bool = True) -> dict[str, Any]:
    """Render a form field with its label, hint and error, linked by ids. A checkbox is rendered as a switch."""
    is_switch = isinstance(bound.field.widget, CheckboxInput)
    widget_class = bound.field.widget.attrs.get("class", "")
    attrs: dict[str, str | bool] = {"class": f"{'switch' if is_switch else 'input'} {widget_class}".strip()}
    if is_switch:
        attrs["role"] = "switch"
    if isinstance(bound.field.widget, Textarea):
        attrs["rows"] = "4"
    if hint and bound.auto_id and not bound.help_text:
        attrs["aria-describedby"] = " ".join(
            [f"{bound.auto_id}_helptext", *([f"{bound.auto_id}_error"] if bound.errors else [])]
        )
    control = bound.as_widget(attrs=attrs)
    return {"field": bound, "control": control, "hint": hint or bound.help_text, "is_switch": is_switch, "wide": wide}


@register.filter
def option_tags(options: Iterable[Mapping[str, Any]]) -> SafeString:
    # A template would take five times as long to render hundreds of options.
    lines = ((option["value"], flatatt(option["attrs"]), option["label"]) for option in options)
    return format_html_join("\n", '<option value="{}"{}>{}</option>', lines)


@register.inclusion_tag("components/problems.html")
def problems(*all_forms: BaseForm) -> dict[str, Any]:
    """Render a summary of the form: all errors with links to their fields, and the legend for required fields."""
    return {"problems": list_problems(*all_forms), "has_required": any(map(_has_required, all_forms))}


def _has_required(form: BaseForm) -> bool:
    # The stylesheet marks fields with the attribute `required`, which a select without an empty choice lacks.
    return any("required" in bound.build_widget_attrs({}) for bound in form)


@register.inclusion_tag("components/concepts.html", takes_context=True)
def concepts(context: Mapping[str, Any]) -> dict[str, Any]:
    request = context["request"]
    return {"request": request, "hidden": CONCEPTS_COOKIE in request.COOKIES, "csrf_token": context.get("csrf_token")}


@register.inclusion_tag("components/pager.html", takes_context=True)
def pager(
    context: template.Context,
    page: Page[Any] | None = None,
    newer: str = "",
    older: str = "",
    summary: str = "",
    size: int = 0,
) -> dict[str, Any]:
    """Render links to the previous and next pages, from the given URLs or from a Django page and the query string.

    If the page size is one of `PAGE_SIZES`, links to the other sizes follow. If URLs are given, `size` is the page
    size. A list that fits on the smallest page gets no links.
    """
    if page is not None:
        size = page.paginator.per_page
        if page.paginator.count <= min(size, PAGE_SIZES[0]):
            return {"is_single": True}
        positions = {"first": page.start_index(), "last": page.end_index(), "all": page.paginator.count}
        summary = summary or _("%(first)s to %(last)s of %(all)s") % positions
        newer = _with_page(context, page.previous_page_number()) if page.has_previous() else ""
        older = _with_page(context, page.next_page_number()) if page.has_next() else ""
    elif not (newer or older or size > PAGE_SIZES[0]):
        size = 0
    sizes = (
        [(choice, query_with(context, **{SIZE: choice}), choice == size) for choice in PAGE_SIZES]
        if size in PAGE_SIZES
        else []
    )
    return {"newer": newer, "older": older, "summary": summary, "by_time": page is None, "sizes": sizes}


def _with_page(context: template.Context, number: int) -> str:
    return query_with(context, page=number)


@register.simple_tag(takes_context=True)
def query_with(context: template.Context, **values: object) -> str:
    """Return the current query string with these parameters changed. Empty values are removed.

    If the page is the response to a form with a URL of its own, `list_url` in the context is the URL of the list.
    """
    request: HttpRequest = context["request"]
    query = request.GET.copy()
    # A changed query starts at the first page, unless a page is given.
    for name, value in {"page": "", **values}.items():
        query[name] = str(value)
        if query[name] == "":
            del query[name]
    return f"{context.get('list_url', '')}?{query.urlencode()}"


@register.filter
def mark_parts(parts: Parts) -> SafeString:
    """Render a diff line in which the parts that differ from the other line are marked."""
    pieces = (format_html("<mark>{}</mark>" if is_different else "{}", text) for text, is_different in parts)
    return format_html_join("", "{}", ((piece,) for piece in pieces))


@register.simple_tag
def toast(message: Message) -> dict[str, str]:
    return toasts.build_toast(message)


@register.filter
def note_icon(tone: str) -> str:
    return labels.NOTE_ICONS.get(tone, "info")


@register.filter
def by_cause(effects: Iterable[Consequence]) -> list[list[Consequence]]:
    return group_by_cause(effects)
