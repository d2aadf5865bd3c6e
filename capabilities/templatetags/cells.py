"""One switch of the capability matrix; drawn in Python, since a page has thousands of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from django import template
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from capabilities.models import Service
from capabilities.queries_matrix import MatrixRow, Square
from capabilities.templatetags.ui import capability_label

register = template.Library()

SOURCES: Mapping[str, str | Promise] = {
    "declared": pgettext_lazy("source", "declared"),
    "probed": pgettext_lazy("source", "probed"),
    "catalogue": pgettext_lazy("source", "catalogue"),
    "unknown": pgettext_lazy("source", "unknown"),
}
LABELS: Mapping[str, str | Promise] = {
    "input": gettext_lazy("%(service)s reads %(capability)s, %(source)s"),
    "output": gettext_lazy("%(service)s writes %(capability)s, %(source)s"),
}


@register.simple_tag
def cell(service: Service, square: Square, can_edit: bool) -> SafeString:
    """The switch of one cell; it saves itself at once."""
    return draw(service, square, can_edit, reverse("matrix_cell", args=[service.pk]))


def draw(service: Service, square: Square, can_edit: bool, url: str) -> SafeString:
    """The switch; without the right to edit it shows its state and is disabled."""
    said = {
        "service": service.service_id,
        "capability": capability_label(square.name),
        "source": SOURCES.get(square.source, square.source),
    }
    act = format_html(' hx-post="{}?side={}&amp;name={}" hx-swap="outerHTML"', url, square.side, square.name)
    return format_html(
        '<input class="cell" type="checkbox" role="switch" name="on" value="1" id="c-{}-{}-{}" data-source="{}"'
        ' title="{}" aria-label="{}"{}{}>',
        service.pk,
        square.side,
        square.name,
        square.source,
        said["source"],
        str(LABELS[square.side]) % said,
        " checked" if square.on else "",
        act if can_edit else " disabled",
    )


@register.simple_tag
def cells(row: MatrixRow, can_edit: bool) -> SafeString:
    """All cells of a row, the first of each group with the group's edge."""
    url = reverse("matrix_cell", args=[row.service.pk])
    places, last = [], ""
    for square in row.cells:
        group = "g-in" if square.side == "input" else "g-out"
        edge = "" if square.side == last else " edge"
        last = square.side
        places.append((group, edge, draw(row.service, square, can_edit, url)))
    return format_html_join("", '<td class="{}{}">{}</td>', places)


@register.filter
def source_label(source: str) -> str:
    """Where a value comes from, in words."""
    return str(SOURCES.get(source, _("unknown")))


@register.filter
def words(text: str) -> list[str]:
    """The words of a text, to loop over."""
    return text.split()


@register.filter
def short_types(types: Iterable[str]) -> list[str]:
    """MIME types by their second half, sorted: `gif`, `jpeg`, `pdf`."""
    return sorted(each.split("/")[-1] for each in types)
