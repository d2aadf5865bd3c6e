"""Pages of the model catalogue: its sources, and the preview of an edition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.core.files.uploadedfile import UploadedFile
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from capabilities.access import request_actor
from capabilities.core.providers.catalogue.names import ANY_HOST
from capabilities.core.providers.catalogue.refreshing import MAX_CATALOGUE_BYTES, EditionChange
from capabilities.core.vocabulary import Source
from capabilities.errors import ActionError, InvalidError, NotFoundError
from capabilities.labels import capability_label
from capabilities.sentences import translate_refusal
from routing_admin.configuration import snapshot
from routing_admin.console.base.page_responses import UNPROCESSABLE, add_toast
from routing_admin.console.catalogue import actions as editions
from routing_admin.console.catalogue.actions import CellChange
from routing_admin.console.catalogue.queries import find_called_provider, search_models
from routing_admin.console.matrix.cells import explain_fact
from routing_admin.console.providers import dialling
from routing_admin.dispatch.provider_checks import ProviderChecker

MAX_QUERY_CHARS = 100
"""Maximum length of the search text. Any further characters are ignored."""
MAX_LINES = 200
"""Maximum number of changed model capabilities that the page lists. Further changes are only counted."""


def catalogue(request: HttpRequest) -> HttpResponse:
    """Show the catalogue.

    A POST request switches back to the shipped catalogue, or stores a file or a provider's model list as an edition
    and redirects to its preview.
    """
    if request.method != "POST":
        return show_page(request)
    try:
        if request.POST.get("act") == "drop":
            act = editions.use_shipped_edition(request_actor(request))
            add_toast(request, _("The shipped catalogue is in use again"), act.revision)
            return redirect("catalogue")
        return redirect("catalogue_edition", pk=read_edition(request))
    except ActionError as refusal:
        return show_page(request, problem=translate_refusal(refusal), status=UNPROCESSABLE)


def read_edition(request: HttpRequest) -> int:
    """Store the posted file or the chosen provider's model list as an edition and return its number.

    Raise `NotFoundError` if neither is posted, the provider returns no list, or the file is too large.
    """
    if request.POST.get("act") == "ask":
        row = find_called_provider(request.POST.get("provider", ""))
        if row is None:
            raise NotFoundError(_("Choose a provider."))
        answer = ProviderChecker().models(row.name)
        if answer.fault:
            result = dialling.explain_answer(row.name, answer)
            raise NotFoundError(f"{result.sentence} {result.advice}".strip())
        return editions.store_provider_list(row, answer.entries)
    file = request.FILES.get("file")
    if not isinstance(file, UploadedFile) or not file.size:
        raise NotFoundError(_("Choose a file."))
    if file.size > MAX_CATALOGUE_BYTES:
        raise NotFoundError(_("The file is too large to be a catalogue."))
    return editions.store_edition_file(file.read())


def show_page(request: HttpRequest, *, problem: str = "", status: int = 200) -> HttpResponse:
    state = snapshot.current()
    document = state.catalogue.document
    words = request.GET.get("q", "")[:MAX_QUERY_CHARS].strip()
    found, total = search_models(state.catalogue, words)
    context = {
        "words": words,
        "longest": MAX_QUERY_CHARS,
        "found": found,
        "total": total,
        "more": total - len(found),
        "sources": document.notes,
        "own_tables": state.catalogue.own_tables,
        "checked_on": document.checked_on,
        "edition": state.configuration.catalogue,
        "count": sum(len(rows) for rows in document.models.values()),
        "hosts": len(document.models),
        "problem": problem,
        "largest": MAX_CATALOGUE_BYTES,
    }
    return render(request, "catalogue/catalogue.html", context, status=status)


@dataclass(frozen=True, slots=True)
class CellLine:
    """A changed capability as text. `place` is a service, or a model at a host."""

    place: str
    side: str
    name: str
    text: str


def catalogue_edition(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the changes that a catalogue edition would make. A POST request switches to it."""
    try:
        if request.method == "POST":
            act = editions.use_edition(request_actor(request), pk)
            add_toast(request, _("The refreshed catalogue is in use"), act.revision)
            return redirect("catalogue")
        preview = editions.preview_edition(pk)
    except NotFoundError as refusal:
        raise Http404(str(refusal)) from refusal
    except InvalidError as refusal:
        return show_page(request, problem=translate_refusal(refusal), status=UNPROCESSABLE)
    lines = list(fact_lines(preview.change))
    context = {
        "preview": preview,
        "ours": list(service_lines(preview.cells)),
        "lines": lines[:MAX_LINES],
        "added": len(preview.change.added),
        "removed": len(preview.change.removed),
        "changed": len(preview.change.changed),
        "more": len(lines) - len(lines[:MAX_LINES]),
        "in_use": snapshot.current().configuration.catalogue == preview.name,
    }
    return render(request, "catalogue/edition.html", context)


def service_lines(cells: Iterable[CellChange]) -> Iterator[CellLine]:
    for change in cells:
        text = {
            Source.CONTESTED: _("contested, and counts as no"),
            Source.UNKNOWN: _("unknown, and counts as no"),
        }.get(change.source, _("yes") if change.on else _("no"))
        yield CellLine(change.service_id, change.side, capability_label(change.name, change.side), text)


def fact_lines(change: EditionChange) -> Iterator[CellLine]:
    """Yield changed model capabilities: changes at one host, then changes at all hosts, then removed values."""
    facts = [(model, cell, after) for model in change.changed for cell, (_before, after) in model.cells.items()]
    for model, (side, name), after in sorted(facts, key=lambda fact: (fact[2] is None, fact[0].host == ANY_HOST)):
        text = explain_fact(after)
        if after is not None:
            text = _("%(value)s: %(who)s") % {"value": _("yes") if after.value else _("no"), "who": text}
        yield CellLine(f"{model.host} / {model.name}", side, capability_label(name, side), text)
