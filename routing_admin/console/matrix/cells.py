"""Template tags that render the rows and switches of the capability matrix, and name the sources of values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote

from django import template
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, gettext_lazy, pgettext_lazy
from django.utils.translation import gettext as _

from artifacts.core.detection.extensions import EXTENSIONS_OF_MIME
from capabilities.core.prices import FIELDS, Price, amount_from_rate
from capabilities.core.providers.catalogue import Fact, FactVerdict, StatedLimit
from capabilities.core.providers.catalogue.price_verdicts import find_contested, judge_price
from capabilities.labels import PRICE_LABELS, capability_label
from capabilities.sentences import join_words
from routing_admin.console.base.tags.ui import icon, short_name
from routing_admin.console.matrix.queries import MatrixCell, MatrixRow

if TYPE_CHECKING:
    from capabilities.models import Service

# Rows are rendered in Python, because templates would be slow for the thousands of switches on a page.
register = template.Library()

SOURCES: Mapping[str, str | Promise] = {
    "declared": pgettext_lazy("source", "declared"),
    "probed": pgettext_lazy("source", "probed"),
    "catalogue": pgettext_lazy("source", "catalogue"),
    "contested": pgettext_lazy("source", "contested"),
    "unknown": pgettext_lazy("source", "unknown"),
}
LABELS: Mapping[str, str | Promise] = {
    "input": gettext_lazy("%(service)s reads %(capability)s, %(source)s"),
    "output": gettext_lazy("%(service)s writes %(capability)s, %(source)s"),
}
CELL = (
    '<input class="cell" type="checkbox" role="switch" name="on" id="c-{pk}-{side}-{name}"'
    ' data-source="{source}" title="{title}" aria-label="{label}"{checked}{mark}{act}>'
)
ROW = (
    '<tr id="row-{pk}"{act}><th scope="row" class="name"><a href="{href}">{name}</a><span class="sub">{sub}</span></th>'
    "{cells}{menu}</tr>\n"
)
PROBE = ' hx-post="{url}?{query}" hx-trigger="load" hx-swap="outerHTML" hx-sync="closest table:queue all"'
"""HTML attributes that make the page probe the row's model after loading, one row at a time."""
MENU_CELL = (
    '<td class="p2"><button class="btn quiet only s" type="button" popovertarget="menu" hx-get="{url}?{query}"'
    ' hx-target="#menu" hx-swap="innerHTML" aria-label="{label}">{icon}</button></td>'
)


class CellRenderer:
    """Renders the cells and rows of the capability matrix. Each label is translated and escaped only once."""

    def __init__(self, can_edit: bool) -> None:
        self.can_edit = can_edit
        self.sources = {word: escape(str(label)) for word, label in SOURCES.items()}
        self.labels = {side: escape(str(label)) for side, label in LABELS.items()}
        self.names: dict[tuple[str, str], tuple[str, str, str]] = {}
        # Reversing a URL for each cell would be slow, so each URL is reversed once, with 0 in place of the service's
        # key.
        self.cell_url = reverse("matrix_cell", args=[0])
        self.menu_url, self.probe_url = reverse("matrix_row", args=[0]), reverse("matrix_probe", args=[0])
        self.menu_label, self.dots = escape(_("Actions for %(name)s")), icon("more")
        self.disabled, self.doubtful = escape(_("disabled")), escape(_("doubtful"))

    def name(self, name: str, side: str) -> tuple[str, str, str]:
        """Return a capability's escaped id, its escaped label, and its id quoted for a URL."""
        if (name, side) not in self.names:
            self.names[name, side] = (escape(name), escape(capability_label(name, side)), quote(name, safe=""))
        return self.names[name, side]

    def cell(self, pk: int, service_id: str, square: MatrixCell) -> str:
        """Return the HTML of a cell's switch, which is disabled for users who may not edit.

        `service_id` must already be escaped.
        """
        name, label, quoted = self.name(square.name, square.side)
        source = self.sources.get(square.source, "")
        title = escape(explain_contest(square.fact)) if square.fact else source
        if square.in_doubt:
            title, source = f"{title}, {self.doubtful}", f"{source}, {self.doubtful}"
        url = self.cell_url.replace("/0/", f"/{pk}/")
        act = f' hx-post="{url}?side={square.side}&amp;name={quoted}"'
        return CELL.format(
            pk=pk,
            side=square.side,
            name=name,
            source=square.source,
            title=title,
            label=self.labels[square.side] % {"service": service_id, "capability": label, "source": source},
            checked=" checked" if square.on else "",
            act=act if self.can_edit else " disabled",
            mark=" data-doubt" if square.in_doubt else "",
        )

    def row(self, row: MatrixRow, query: str, note: str = "", *, probing: bool = False) -> str:
        """Return the HTML of a row: the service, its cells and its menu. `query` and `note` must already be escaped."""
        service, service_id = row.service, escape(row.service.service_id)
        parts = [short_name(service.provider.name), "" if service.enabled else self.disabled, note]
        menu_url, probe_url = (url.replace("/0/", f"/{service.pk}/") for url in (self.menu_url, self.probe_url))
        label = self.menu_label % {"name": service_id}
        return ROW.format(
            pk=service.pk,
            act=PROBE.format(url=probe_url, query=query) if probing else "",
            href=escape(reverse("service", args=[service.service_id])),
            name=short_name(service.service_id),
            sub=" · ".join(part for part in parts if part),
            cells=self.cells(row, service_id),
            menu=MENU_CELL.format(url=menu_url, query=query, label=label, icon=self.dots) if self.can_edit else "",
        )

    def cells(self, row: MatrixRow, service_id: str) -> str:
        drawn, last = [], ""
        for square in row.cells:
            # The class `edge` draws a border before the first cell of each side.
            group = "g-in" if square.side == "input" else "g-out"
            edge = "" if square.side == last else " edge"
            last = square.side
            drawn.append(f'<td class="{group}{edge}">{self.cell(row.service.pk, service_id, square)}</td>')
        return "".join(drawn)


@register.simple_tag
def cell(service: Service, square: MatrixCell, can_edit: bool) -> SafeString:
    return mark_safe(CellRenderer(can_edit).cell(service.pk, escape(service.service_id), square))  # noqa: S308


@register.simple_tag
def matrix_rows(rows: Iterable[MatrixRow], can_edit: bool, query: str, probing: bool = False) -> SafeString:
    renderer, address = CellRenderer(can_edit), escape(query)
    # This is safe: `CellRenderer` escapes names and ids, the query is escaped above, and all else is constant markup.
    return mark_safe("".join(renderer.row(row, address, probing=probing) for row in rows))  # noqa: S308


@register.filter
def name_sources(sources: str) -> str:
    """Return the translated name of a value's source. Names of several catalogue sources are joined as a list."""
    translated = gettext(sources)
    return join_words(sources.split(", ")) if translated == sources else translated


@register.filter
def explain_contest(fact: Fact) -> str:
    names = {"yes": join_words(fact.yes), "no": join_words(fact.no)}
    return _("contested: %(yes)s says yes, %(no)s says no. Counts as no.") % names


@register.filter
def explain_fact(fact: Fact | None) -> str:
    if fact is None:
        return _("no source mentions it")
    if fact.verdict is FactVerdict.CONTESTED:
        return explain_contest(fact)
    names = join_words(gettext(name) for name in (fact.yes if fact.value else fact.no))
    others = join_words(fact.no if fact.value else fact.yes)
    text = {
        FactVerdict.AGREED: _("%(names)s agree, against %(others)s") if others else _("%(names)s agree"),
        FactVerdict.ONE_SOURCE: _("only %(names)s"),
    }.get(fact.verdict, "%(names)s")
    return text % {"names": names, "others": others}


@register.filter
def explain_limit(limit: StatedLimit) -> str:
    names = join_words(gettext(source) for source, _tokens in limit.statements)
    if limit.verdict is FactVerdict.CONTESTED:
        statements = join_words(f"{source} {tokens:,}" for source, tokens in limit.statements)
        return _("contested: %(each)s; the lowest counts") % {"each": statements}
    text = {FactVerdict.AGREED: _("%(names)s agree"), FactVerdict.ONE_SOURCE: _("only %(names)s")}
    return text.get(limit.verdict, "%(names)s") % {"names": names}


@register.filter
def explain_price(price: Price) -> str:
    """Return a sentence that names the price lists that contain a price, and the amounts of each if they differ."""
    prices = (price, *price.others)
    names = join_words(gettext(entry.source) for entry in prices)
    if judge_price(price) is FactVerdict.CONTESTED:
        # Input and output prices are always stated, other prices only if the price lists disagree about them.
        differing = find_contested(price) | {"input", "output"}
        amounts = join_words(f"{entry.source} ({_amounts(entry, differing)})" for entry in prices)
        return _("%(each)s; %(source)s counts") % {"each": amounts, "source": price.source}
    return (_("%(names)s agree") if price.others else _("only %(names)s")) % {"names": names}


def _amounts(price: Price, kinds: Iterable[str]) -> str:
    parts = []
    for name, kind in FIELDS.items():
        rates = [rate for tier in price.tiers if (rate := getattr(tier.rates, kind)) is not None]
        if kind in kinds and rates:
            parts.append(
                f"{PRICE_LABELS[name]} {' / '.join(f'{amount_from_rate(rate).normalize():f}' for rate in rates)}"
            )
    return join_words([*parts, price.currency])


@register.filter
def source_label(source: str) -> str:
    return str(SOURCES.get(source, _("unknown")))


@register.filter
def words(text: str) -> list[str]:
    return text.split()


@register.filter
def short_types(types: Iterable[str]) -> list[str]:
    """Return sorted file extensions for MIME types, such as `docx` or `gif`.

    For a type without a known extension, the subtype is returned.
    """
    return sorted(EXTENSIONS_OF_MIME.get(mime_type, mime_type.split("/")[-1]).split()[0] for mime_type in types)
