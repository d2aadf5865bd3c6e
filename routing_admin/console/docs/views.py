"""The repository's documents as pages. The index page can search all of them."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from routing_admin.console.base.page_responses import require_found
from routing_admin.console.docs.queries import find_document, search

MAX_QUERY_CHARS = 100
FOR_CLIENTS = {"recipes", "data-plane"}
"""Documents with examples for client machines, in which the public URL replaces the example address."""


@require_safe
def document(request: HttpRequest, name: str = "") -> HttpResponse:
    """Show a document or, if no name is given, the index with the search results for `q`."""
    found = require_found(find_document(name))
    words = request.GET.get("q", "")[:MAX_QUERY_CHARS].strip()
    folder = name.rpartition("/")[0]
    address = settings.PUBLIC_URL if name in FOR_CLIENTS else ""
    context = {
        "document": found,
        "html": found.render(address),
        "address": address,
        "is_index": not name,
        "folder": find_document(folder) if folder else None,
        "folder_name": folder,
        "words": words,
        "results": search(words) if words else (),
        "longest": MAX_QUERY_CHARS,
    }
    return render(request, "docs/document.html", context)
