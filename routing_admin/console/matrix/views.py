"""The page of the capability matrix, which has a switch for each service and capability.

Changes are saved immediately.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.html import escape
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from capabilities.access import can_edit, request_actor
from capabilities.core.translatable import insert_facts
from capabilities.core.vocabulary import Cell
from capabilities.errors import ActionError
from capabilities.labels import capability_label
from routing_admin.console.base.lists import PAGE_SIZES, page_size
from routing_admin.console.base.page_responses import add_refusal_toast, add_toast, require_found, wants_fragment
from routing_admin.console.matrix.cells import CellRenderer
from routing_admin.console.matrix.cells import cell as cell_tag
from routing_admin.console.matrix.queries import (
    SIDES,
    MatrixFilter,
    build_row,
    find_cell,
    find_columns,
    list_columns,
    list_page_ids,
    read_matrix,
    select_rows,
)
from routing_admin.console.services.actions import fill_from_catalogue, set_capabilities, set_cell
from routing_admin.console.services.probing import probe_service, summarize_probe
from routing_admin.console.services.queries import find_row, find_rows

if TYPE_CHECKING:
    from capabilities.models import Service

SHOW_FILTERS = ("routed", "unknown")
MAX_QUERY_CHARS = 100


def parse_filter(query: QueryDict, size: int = PAGE_SIZES[0]) -> MatrixFilter:
    name = query.get("add_name", "").strip()[:MAX_QUERY_CHARS]
    side = query.get("add_side", "input")
    # An added column exists only in the query string until one of its cells is switched on.
    extra = ((side, name),) if name and side in SIDES else ()
    show = query.get("show", "")
    q, provider, page = (query.get(key, "").strip() for key in ("q", "provider", "page"))
    return MatrixFilter(
        q=q, provider=provider, show=show if show in SHOW_FILTERS else "", page=page, size=size, extra=extra
    )


def matrix_page(request: HttpRequest) -> HttpResponse:
    matrix_filter = parse_filter(request.GET, page_size(request))
    matrix = read_matrix(matrix_filter)
    context = {
        "matrix": matrix,
        "filter": matrix_filter,
        "filtered": bool(matrix_filter.q or matrix_filter.provider or matrix_filter.show),
        "query": drop_names(request.GET, "show", "page", "probe"),
        "query_here": drop_names(request.GET, "probe"),
        "probing": "probe" in request.GET and can_edit(request),
    }
    template = "capabilities/matrix.html#grid" if wants_fragment(request) else "capabilities/matrix.html"
    return render(request, template, context)


def drop_names(query: QueryDict, *names: str) -> str:
    """Return the query string without these parameters and without empty values."""
    return urlencode([(key, value) for key, value in query.items() if key not in names and value])


@require_POST
def matrix_probe(request: HttpRequest, pk: int) -> HttpResponse:
    """Probe what a service's model can read by sending it real requests. Return the service's new row."""
    row = require_found(find_row(pk))
    probe = probe_service(request_actor(request), row)
    note = summarize_probe(row, probe)
    if not request.htmx:  # type: ignore[attr-defined]
        add_toast(request, note, probe.revision)
        return redirect("matrix")
    columns = find_columns(parse_filter(request.GET))
    (reloaded,) = find_rows([str(pk)])
    renderer = CellRenderer(can_edit(request))
    return HttpResponse(renderer.row(build_row(reloaded, *columns), escape(request.GET.urlencode()), escape(note)))


@require_POST
def matrix_cell(request: HttpRequest, pk: int) -> HttpResponse:
    """Switch a cell of the matrix on or off, and return the new cell."""
    row = require_found(find_row(pk))
    side, name = request.GET.get("side", ""), request.GET.get("name", "").strip()
    if side not in SIDES or not name or len(name) > MAX_QUERY_CHARS:
        return HttpResponseBadRequest(_("side is input or output, name a capability."))
    on = "on" in request.POST
    change = set_cell(request_actor(request), row, (side, name), supported=on)
    add_toast(request, change_sentence(row, side, name, on), change.revision)
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect("matrix")
    return HttpResponse(cell_tag(row, find_cell(row, side, name), True))


def change_sentence(row: Service, side: str, name: str, on: bool) -> str:
    texts = {
        ("input", True): _("%(service)s now reads %(capability)s"),
        ("input", False): _("%(service)s no longer reads %(capability)s"),
        ("output", True): _("%(service)s now writes %(capability)s"),
        ("output", False): _("%(service)s no longer writes %(capability)s"),
    }
    return insert_facts(texts[side, on], {"service": row.service_id, "capability": capability_label(name, side)})


def matrix_row(request: HttpRequest, pk: int) -> HttpResponse:
    row = require_found(find_row(pk))
    context = {"title": row.service_id, "ids": [row.pk], "row": row, "sides": SIDES, "back": return_query(request)}
    return render(request, "capabilities/matrix_menu.html", context)


def matrix_column(request: HttpRequest) -> HttpResponse:
    """Show a column's menu. Its actions apply to the services on the current page of the matrix."""
    side, name = request.GET.get("side", ""), request.GET.get("name", "")
    if side not in SIDES or not name:
        return HttpResponseBadRequest(_("side is input or output, name a capability."))
    ids = list_page_ids(parse_filter(request.GET, page_size(request)))
    context = {"side": side, "name": name, "ids": ids, "back": return_query(request)}
    return render(request, "capabilities/matrix_menu.html", context)


def return_query(request: HttpRequest) -> str:
    parameters = {key: request.GET[key] for key in ("q", "provider", "show", "page") if request.GET.get(key)}
    return urlencode(parameters)


@require_POST
def matrix_fill(request: HttpRequest) -> HttpResponse:
    """Switch a row or column on or off, or fill in services from the catalogue, as one revision.

    From the catalogue, the named services are filled in or, if none are named, all services that match the filter.
    """
    rows = find_rows(request.POST.getlist("service"))
    try:
        if request.POST.get("act") == "catalogue":
            fill(request, rows or list(select_rows(parse_filter(QueryDict(request.POST.get("back", ""))))))
        else:
            switch(request, rows)
    except ActionError as refusal:
        add_refusal_toast(request, refusal)
    back = request.POST.get("back", "")
    return redirect(reverse("matrix") + (f"?{back}" if back else ""))


def fill(request: HttpRequest, rows: list[Service]) -> None:
    changed = fill_from_catalogue(request_actor(request), rows)
    if not changed.count:
        add_toast(request, _("Nothing new in the catalogue. Declared and probed values stay."))
        return
    text = ngettext(
        "%(count)s model service filled from the catalogue",
        "%(count)s model services filled from the catalogue",
        changed.count,
    )
    add_toast(request, text % {"count": changed.count}, changed.revision)


def switch(request: HttpRequest, rows: list[Service]) -> None:
    """Switch all cells on one side (input or output) of a row, or all cells in one column."""
    on = request.POST.get("act") == "on"
    side, name = request.POST.get("side", ""), request.POST.get("name", "")
    if side not in SIDES or not rows:
        return
    reads, writes = list_columns(rows)
    names = [name] if name else list(reads if side == "input" else writes)
    # If no name is given, all cells on this side are switched.
    cells: dict[Cell, bool] = {(side, capability): on for capability in names}
    change = set_capabilities(request_actor(request), dict.fromkeys(rows, cells))
    text = ngettext("%(count)s switch set", "%(count)s switches set", len(rows) * len(cells))
    add_toast(request, text % {"count": len(rows) * len(cells)}, change.revision)
